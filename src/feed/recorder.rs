//! Messages in, a recording out: the writer of our own format.
//!
//! Records gather in memory and are flushed by count, by size or by age, whichever comes first. A
//! flush packs them into whole blocks of the present zstd frame and hands these to the file in one
//! write, so what an abrupt kill loses is bounded: at most [`RecorderOptions::flush_records`]
//! records, none older than [`RecorderOptions::flush_age`] (if [`Recorder::flush_due`] is called
//! when nothing arrives), plus what the kill tore off the write itself. What was flushed is the
//! kernel's: a kill of the process does not touch it, a loss of power may.
//!
//! A frame goes on over many flushes and ends by size. Blocks of one frame share their window, so
//! flushing often costs little; each frame has a checksum, is read on its own, and is an entry of
//! the [`Index`] that [`Recorder::finish`] appends.
//!
//! *Why not a frame a flush:* a second of a thousand records packs up to a third larger alone.
//! *Why not one frame for all:* nothing could be found in it without reading what is before, its
//! checksum would come at the very end, and files could not be joined.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use zstd::stream::raw::{CParameter, Encoder, InBuffer, Operation, OutBuffer};

use super::format::{self, Mark};
use super::index::{FrameEntry, Index};
use super::window::MAX_LINE_BYTES;

/// What a line of our format has beside its message, and by how much escaping may lengthen it: a
/// message may have at most `MAX_LINE_BYTES / 6 - 64` bytes, so that its line is never too long.
pub(super) const MAX_MESSAGE_BYTES: usize = MAX_LINE_BYTES / 6 - 64;

/// How a recording is flushed and cut into frames.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// zstd's level, 1 (fast) to 19 (small).
    pub level: i32,
    /// At most this many records wait for the flush.
    pub flush_records: u32,
    /// A flush follows once so many bytes wait, unpacked.
    pub flush_bytes: usize,
    /// A flush follows once the first record that waits is this old, by receive time.
    pub flush_age: Duration,
    /// A frame ends with the flush that takes it to so many bytes, unpacked.
    pub frame_bytes: u64,
}

impl Default for RecorderOptions {
    /// Level 3; a flush each 8,192 records, 1 MiB or half a second; 16 MiB a frame.
    fn default() -> Self {
        Self {
            level: 3,
            flush_records: 8192,
            flush_bytes: 1 << 20,
            flush_age: Duration::from_millis(500),
            frame_bytes: 16 << 20,
        }
    }
}

/// A message was not recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The message is larger than a line may be; nothing was written, recording can go on.
    #[error(
        "recording a message of {0} bytes: the largest that is recorded has {MAX_MESSAGE_BYTES}"
    )]
    TooLong(usize),
    /// The file could not be made.
    #[error(
        "starting recording {file}: {error}{hint}",
        hint = if error.kind() == io::ErrorKind::AlreadyExists {
            "; a recording is never overwritten: name another file, or move this one away"
        } else {
            ""
        }
    )]
    Create {
        /// The file, as it was named.
        file: String,
        /// What the operating system says.
        #[source]
        error: io::Error,
    },
    /// The file could not be written. What waited for the flush is lost, and so is the recorder:
    /// it refuses whatever follows. The file is good up to the flush before.
    #[error("writing the recording after {records} records: {error}")]
    Io {
        /// Records flushed so far.
        records: u64,
        /// What the operating system says.
        #[source]
        error: io::Error,
    },
}

/// What a recording holds, as far as it has been flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecorderSummary {
    /// Records written, marks among them.
    pub records: u64,
    /// Bytes of the recording, unpacked.
    pub text_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Frames begun.
    pub frames: u64,
}

/// Writes a recording. Call [`finish`](Self::finish): what waits for the flush is lost otherwise,
/// and the file has no index.
pub struct Recorder<W: Write> {
    out: W,
    options: RecorderOptions,
    packer: Encoder<'static>,
    /// What waits for the flush, unpacked.
    waiting: Vec<u8>,
    waiting_records: u32,
    waiting_lines: u64,
    /// Receive time of the first record that waits.
    waiting_since: i64,
    packed: Vec<u8>,
    frames: Vec<FrameEntry>,
    /// The last of `frames` has begun and has not ended.
    in_frame: bool,
    lines: u64,
    summary: RecorderSummary,
    /// A write failed: the file ends in the middle of a frame, and nothing may follow.
    broken: bool,
}

impl Recorder<File> {
    /// Starts a recording in a new file.
    ///
    /// # Errors
    ///
    /// When the file exists already (a recording is never overwritten) or cannot be made.
    pub fn create(path: &Path, options: RecorderOptions) -> Result<Self, RecordError> {
        let refused = |error| RecordError::Create { file: path.display().to_string(), error };
        Self::new(File::create_new(path).map_err(refused)?, options)
    }
}

impl<W: Write> Recorder<W> {
    /// Starts a recording in `out`, which gets whole blocks, one write a flush.
    ///
    /// # Errors
    ///
    /// When zstd refuses the level.
    pub fn new(out: W, options: RecorderOptions) -> Result<Self, RecordError> {
        let lost = |error| RecordError::Io { records: 0, error };
        let mut packer = Encoder::new(options.level).map_err(lost)?;
        packer.set_parameter(CParameter::ChecksumFlag(true)).map_err(lost)?;
        let mut waiting = Vec::with_capacity(options.flush_bytes.min(MAX_LINE_BYTES) + 4096);
        format::write_header(&mut waiting);
        Ok(Self {
            out,
            options,
            packer,
            waiting,
            waiting_records: 0,
            waiting_lines: 1,
            waiting_since: 0,
            packed: Vec::new(),
            frames: Vec::new(),
            in_frame: false,
            lines: 0,
            summary: RecorderSummary::default(),
            broken: false,
        })
    }

    /// Records a message, received at `receive_time` (ns since the Unix epoch). Whatever its bytes,
    /// a reader gets exactly them.
    ///
    /// # Errors
    ///
    /// [`RecordError::TooLong`] for a message above the bound, [`RecordError::Io`] when a flush that
    /// this call made due failed.
    pub fn message(&mut self, receive_time: i64, text: &[u8]) -> Result<(), RecordError> {
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(RecordError::TooLong(text.len()));
        }
        self.flush_due(receive_time)?;
        format::write_message(&mut self.waiting, receive_time, text);
        self.count(receive_time)
    }

    /// Records that something happened on the connection.
    ///
    /// # Errors
    ///
    /// As [`message`](Self::message).
    pub fn mark(&mut self, receive_time: i64, mark: Mark) -> Result<(), RecordError> {
        self.flush_due(receive_time)?;
        format::write_mark(&mut self.waiting, receive_time, mark);
        self.count(receive_time)
    }

    /// Flushes if the first record that waits is older than [`RecorderOptions::flush_age`] at `now`
    /// (ns since the Unix epoch). To be called now and then while nothing arrives.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] when the file could not be written.
    pub fn flush_due(&mut self, now: i64) -> Result<(), RecordError> {
        let age = u128::from(now.abs_diff(self.waiting_since));
        if self.waiting_records > 0 && age >= self.options.flush_age.as_nanos() {
            return self.flush();
        }
        Ok(())
    }

    /// Hands to the file what waits.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] when the file could not be written.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        if self.waiting.is_empty() && !self.broken {
            return Ok(());
        }
        let ends = self.summary.text_bytes + self.waiting.len() as u64
            >= self.frames.last().map_or(0, |frame| frame.text_offset) + self.options.frame_bytes;
        self.write(ends && Index::fits(self.frames.len() + 1))
    }

    /// Ends the recording; answers what was written to, and what it holds.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] when the file could not be written.
    pub fn finish(mut self) -> Result<(W, RecorderSummary), RecordError> {
        let records = self.summary.records + u64::from(self.waiting_records);
        format::write_end(&mut self.waiting, records);
        self.waiting_lines += 1;
        self.write(true)?;
        let index = Index::new(std::mem::take(&mut self.frames), self.summary.file_bytes);
        self.packed.clear();
        index.write(&mut self.packed);
        self.write_packed()?;
        Ok((self.out, self.summary))
    }

    /// What the flushes so far have written.
    #[must_use]
    pub fn summary(&self) -> RecorderSummary {
        self.summary
    }

    /// Records that wait for the flush.
    pub(super) fn waiting(&self) -> u64 {
        u64::from(self.waiting_records)
    }

    fn count(&mut self, receive_time: i64) -> Result<(), RecordError> {
        if self.waiting_records == 0 {
            self.waiting_since = receive_time;
        }
        self.frame().note(receive_time);
        self.waiting_records += 1;
        self.waiting_lines += 1;
        if self.waiting_records >= self.options.flush_records
            || self.waiting.len() >= self.options.flush_bytes
        {
            return self.flush();
        }
        Ok(())
    }

    /// The present frame, begun if need be.
    fn frame(&mut self) -> &mut FrameEntry {
        if !self.in_frame {
            self.in_frame = true;
            self.summary.frames += 1;
            let RecorderSummary { file_bytes, text_bytes, records, .. } = self.summary;
            self.frames.push(FrameEntry::new(file_bytes, text_bytes, self.lines, records));
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// Packs and writes what waits, and ends the frame if told so.
    fn write(&mut self, ends: bool) -> Result<(), RecordError> {
        if self.broken {
            let error = io::Error::other("an earlier write failed");
            return Err(RecordError::Io { records: self.summary.records, error });
        }
        self.frame();
        if let Err(error) = self.pack(ends) {
            return Err(self.breaks(error));
        }
        self.write_packed()?;
        self.in_frame = !ends;
        self.summary.records += u64::from(self.waiting_records);
        self.summary.text_bytes += self.waiting.len() as u64;
        self.lines += self.waiting_lines;
        self.waiting.clear();
        (self.waiting_records, self.waiting_lines) = (0, 0);
        Ok(())
    }

    fn write_packed(&mut self) -> Result<(), RecordError> {
        let written = self.out.write_all(&self.packed).and_then(|()| self.out.flush());
        written.map_err(|error| self.breaks(error))?;
        self.summary.file_bytes += self.packed.len() as u64;
        Ok(())
    }

    #[cold]
    fn breaks(&mut self, error: io::Error) -> RecordError {
        self.broken = true;
        RecordError::Io { records: self.summary.records, error }
    }

    fn pack(&mut self, ends: bool) -> io::Result<()> {
        let Self { packer, packed, waiting, .. } = self;
        packed.clear();
        let mut input = InBuffer::around(waiting);
        while input.pos() < waiting.len() {
            let mut output = room(packed);
            packer.run(&mut input, &mut output)?;
        }
        loop {
            let mut output = room(packed);
            let left =
                if ends { packer.finish(&mut output, true)? } else { packer.flush(&mut output)? };
            if left == 0 {
                break;
            }
        }
        if ends { packer.reinit() } else { Ok(()) }
    }
}

/// What is behind the bytes of `packed`, never less than a block.
fn room(packed: &mut Vec<u8>) -> OutBuffer<'_, Vec<u8>> {
    packed.reserve(128 << 10);
    let end = packed.len();
    OutBuffer::around_pos(packed, end)
}

#[cfg(test)]
mod tests;
