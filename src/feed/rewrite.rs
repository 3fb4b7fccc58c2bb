//! Recordings written anew: into another format, cut, or merged.
//!
//! | into | keeps | loses, counted |
//! |---|---|---|
//! | [`Target::Recording`] | every message byte for byte, marks, times to the ns | nothing |
//! | [`Target::Stamped`] | messages, times to the ns | marks; messages that one line cannot hold: empty, not UTF-8, a line's end inside, a blank in front or a `\r` behind; times before 1970 |
//! | [`Target::Cryptofeed`] | messages that are UTF-8, times to the ns | marks, other messages; times before 1970 |
//!
//! A record without a time (plain JSON lines have none) gets that of the one before it, the first
//! one 0; they are counted. What a capture holds beside received messages (requests, answers over
//! HTTP) is not read, so it is lost in any target.
//!
//! Several recordings are merged as they are replayed: the earliest receive time first, the
//! recording named first at equal times, each keeping its order (see [`Replay`]).

use std::io::{self, Write};

use flate2::write::GzEncoder;

use super::format::{Format, Record, RecordKind};
use super::recorder::{RecordError, Recorder, RecorderOptions};
use super::replay::{Replay, Step};
use super::report::{Damage, OpenError};
use crate::clock::Instant;

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Our own.
    Recording,
    /// `<time> <raw text>` lines in gzip, the time in ns with 19 digits.
    Stamped,
    /// A capture as cryptofeed writes them, JSON lines in zstd.
    Cryptofeed,
}

/// A recording was not rewritten.
#[derive(Debug, thiserror::Error)]
pub enum RewriteError {
    /// The target could not be written.
    #[error("after {records} records: {error}")]
    Write {
        /// Records handed on before.
        records: u64,
        /// What the operating system says.
        #[source]
        error: io::Error,
    },
    /// The same, of our own format.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A source could not be opened again.
    #[error(transparent)]
    Open(#[from] OpenError),
}

/// What was written, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Messages written.
    pub messages: u64,
    /// Marks written.
    pub marks: u64,
    /// Bytes of the messages' texts.
    pub text_bytes: u64,
    /// Messages that the target cannot hold.
    pub messages_lost: u64,
    /// Marks that the target cannot hold.
    pub marks_lost: u64,
    /// Records that had no time, and were given one.
    pub times_made_up: u64,
    /// The first and the last time written.
    pub span: Option<(i64, i64)>,
    /// Where sources are damaged, by their place in the list. What is before was written.
    pub damaged: Vec<(usize, Damage)>,
}

/// A writer of one of the [`Target`]s.
pub struct Sink<W: Write>(Kind<W>);

enum Kind<W: Write> {
    Recording(Box<Recorder<W>>),
    Stamped(GzEncoder<W>, Vec<u8>),
    Cryptofeed(zstd::Encoder<'static, W>, Vec<u8>),
}

impl<W: Write> Sink<W> {
    /// Starts to write into `out`.
    ///
    /// # Errors
    ///
    /// What `out` or the packer says.
    pub fn new(target: Target, out: W) -> Result<Self, RewriteError> {
        let refused = |error| RewriteError::Write { records: 0, error };
        Ok(Self(match target {
            Target::Recording => {
                Kind::Recording(Box::new(Recorder::new(out, RecorderOptions::default())?))
            }
            Target::Stamped => {
                Kind::Stamped(GzEncoder::new(out, flate2::Compression::default()), Vec::new())
            }
            Target::Cryptofeed => {
                let mut packer = zstd::Encoder::new(out, 3).map_err(refused)?;
                packer.include_checksum(true).map_err(refused)?;
                packer.write_all(CRYPTOFEED_HEADER).map_err(refused)?;
                Kind::Cryptofeed(packer, Vec::new())
            }
        }))
    }

    /// Writes a record at `time`; `false` if the target cannot hold it.
    fn write(&mut self, time: i64, record: Record<'_>) -> Result<bool, RecordError> {
        let lost = |error| RecordError::Io { records: 0, error };
        match (&mut self.0, record.kind) {
            (Kind::Recording(recorder), RecordKind::Mark(mark)) => {
                recorder.mark(time, mark).map(|()| true)
            }
            (Kind::Recording(recorder), RecordKind::Message) => {
                match recorder.message(time, record.text) {
                    Err(RecordError::TooLong(_)) => Ok(false),
                    written => written.map(|()| true),
                }
            }
            (_, RecordKind::Mark(_)) => Ok(false),
            (Kind::Stamped(packer, line), RecordKind::Message) => {
                if time < 0 || !fits_a_line(record.text) {
                    return Ok(false);
                }
                line.clear();
                write!(line, "{time:019} ").map_err(lost)?;
                line.extend_from_slice(record.text);
                line.push(b'\n');
                packer.write_all(line).map(|()| true).map_err(lost)
            }
            (Kind::Cryptofeed(packer, line), RecordKind::Message) => {
                let Ok(text) = std::str::from_utf8(record.text) else { return Ok(false) };
                if time < 0 {
                    return Ok(false);
                }
                let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
                line.clear();
                write!(
                    line,
                    "{{\"t\":\"recv\",\"conn\":\"{CONNECTION}\",\"ts\":{seconds}.{nanos:09},\"data\":"
                )
                .map_err(lost)?;
                serde_json::to_writer(&mut *line, text).map_err(|error| lost(error.into()))?;
                line.extend_from_slice(b"}\n");
                packer.write_all(line).map(|()| true).map_err(lost)
            }
        }
    }

    /// Ends the file; answers what was written to.
    ///
    /// # Errors
    ///
    /// What `out` says.
    pub fn finish(self) -> Result<W, RewriteError> {
        let refused = |error| RewriteError::Write { records: 0, error };
        match self.0 {
            Kind::Recording(recorder) => Ok(recorder.finish()?.0),
            Kind::Stamped(packer, _) => packer.finish().map_err(refused),
            Kind::Cryptofeed(packer, _) => packer.finish().map_err(refused),
        }
    }
}

const CONNECTION: &str = "TIDEGATE.ws.1";
const CRYPTOFEED_HEADER: &[u8] = b"{\"t\":\"header\",\"format\":2,\"exchange\":\"TIDEGATE\"}\n";

/// Whether a stamped line gives these bytes back.
fn fits_a_line(text: &[u8]) -> bool {
    !text.is_empty()
        && !matches!(text.first(), Some(b' ' | b'\t'))
        && text.last() != Some(&b'\r')
        && memchr::memchr(b'\n', text).is_none()
        && std::str::from_utf8(text).is_ok()
}

/// Writes everything that is left of `replay`, one pass without waiting whatever its speed, into
/// `sink`. `visit` is shown the records written so far now and then, with the replay for what its
/// readers have used.
///
/// Cost: one pass over the recordings, O(log r) a record for r of them.
///
/// # Errors
///
/// [`RewriteError`] of the first write that fails.
pub fn rewrite<W: Write>(
    replay: &mut Replay,
    sink: &mut Sink<W>,
    mut visit: impl FnMut(u64, &Replay),
) -> Result<Rewritten, RewriteError> {
    const VISIT_EVERY: u64 = 4096;
    let mut done = Rewritten::default();
    let mut now = Instant::default();
    let mut last = 0;
    let mut records = 0_u64;
    loop {
        match replay.next(now) {
            Step::Record { record, .. } => {
                let time = record.receive_time.unwrap_or(last);
                last = time;
                done.times_made_up += u64::from(record.receive_time.is_none());
                let written = sink.write(time, record).map_err(|error| match error {
                    RecordError::Io { error, .. } => RewriteError::Write { records, error },
                    other => other.into(),
                })?;
                done.count(record, time, written);
                records += 1;
                if records.is_multiple_of(VISIT_EVERY) {
                    visit(records, replay);
                }
            }
            Step::WaitUntil(due) => now = due,
            Step::Damaged { source, damage } => done.damaged.push((source, damage.clone())),
            Step::Unreadable { error, .. } => return Err(error.into()),
            Step::Jumped { .. } | Step::Paused => {}
            Step::NextPass { .. } | Step::Ended => return Ok(done),
        }
    }
}

impl Rewritten {
    fn count(&mut self, record: Record<'_>, time: i64, written: bool) {
        let place = match (record.kind, written) {
            (RecordKind::Message, true) => &mut self.messages,
            (RecordKind::Message, false) => &mut self.messages_lost,
            (RecordKind::Mark(_), true) => &mut self.marks,
            (RecordKind::Mark(_), false) => &mut self.marks_lost,
        };
        *place += 1;
        if written {
            self.text_bytes += record.text.len() as u64;
            let (first, _) = self.span.unwrap_or((time, time));
            self.span = Some((first, time));
        }
    }
}

impl Target {
    /// The format that a reader tells the file to have.
    #[must_use]
    pub fn format(self) -> Format {
        match self {
            Self::Recording => Format::Recording,
            Self::Stamped => Format::Stamped,
            Self::Cryptofeed => Format::Cryptofeed,
        }
    }
}

#[cfg(test)]
mod tests;
