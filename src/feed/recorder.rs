//! Messages in, a recording out: the writer of our own format.
//!
//! Records gather in memory and go out as whole zstd frames, each with its checksum, in one write.
//! A frame is ended by count, by size or by age, whichever comes first, so what an abrupt kill
//! loses is bounded: at most [`RecorderOptions::frame_records`] records, none older than
//! [`RecorderOptions::frame_age`] (if [`Recorder::flush_due`] is called when nothing arrives), plus
//! a torn frame if the kill hit the write itself. The reader plays everything before it.
//!
//! *Why not one long frame with flushes in between:* it packs a little better, but a torn or
//! corrupt place then takes all of its future with it, and files could not be joined.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use zstd::bulk::Compressor;

use super::format::{self, Mark};
use super::window::MAX_LINE_BYTES;

/// What a line of our format has beside its message, and by how much escaping may lengthen it: a
/// message may have at most `MAX_LINE_BYTES / 6 - 64` bytes, so that its line is never too long.
const MAX_MESSAGE_BYTES: usize = MAX_LINE_BYTES / 6 - 64;

/// How a recording is cut into frames.
#[derive(Clone, Debug)]
pub struct RecorderOptions {
    /// zstd's level, 1 (fast) to 19 (small).
    pub level: i32,
    /// A frame has at most this many records.
    pub frame_records: u32,
    /// A frame ends once it has this many bytes, unpacked.
    pub frame_bytes: usize,
    /// A frame ends once its first record is this old, by receive time.
    pub frame_age: Duration,
}

impl Default for RecorderOptions {
    /// Level 3; 8,192 records, 1 MiB or 1 s a frame.
    fn default() -> Self {
        Self {
            level: 3,
            frame_records: 8192,
            frame_bytes: 1 << 20,
            frame_age: Duration::from_secs(1),
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
    /// The file could not be written. The frame's records are lost; the file is good up to the
    /// frame before.
    #[error("writing the recording after {records} records: {error}")]
    Io {
        /// Records in the frames written so far.
        records: u64,
        /// What the operating system says.
        #[source]
        error: io::Error,
    },
}

/// What a finished recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecorderSummary {
    /// Records written.
    pub records: u64,
    /// Bytes of the recording, unpacked.
    pub text_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Frames written.
    pub frames: u64,
}

/// Writes a recording. Call [`finish`](Self::finish): what is in the last frame is lost otherwise.
pub struct Recorder<W: Write> {
    out: W,
    options: RecorderOptions,
    packer: Compressor<'static>,
    /// The present frame, unpacked.
    frame: Vec<u8>,
    packed: Vec<u8>,
    frame_records: u32,
    /// Receive time of the frame's first record.
    frame_start: i64,
    summary: RecorderSummary,
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
    /// Starts a recording in `out`, which gets whole frames, one write each.
    ///
    /// # Errors
    ///
    /// When zstd refuses the level.
    pub fn new(out: W, options: RecorderOptions) -> Result<Self, RecordError> {
        let lost = |error| RecordError::Io { records: 0, error };
        let mut packer = Compressor::new(options.level).map_err(lost)?;
        packer.include_checksum(true).map_err(lost)?;
        let mut frame = Vec::with_capacity(options.frame_bytes.min(MAX_LINE_BYTES) + 4096);
        format::write_header(&mut frame);
        Ok(Self {
            out,
            options,
            packer,
            frame,
            packed: Vec::new(),
            frame_records: 0,
            frame_start: 0,
            summary: RecorderSummary::default(),
        })
    }

    /// Records a message, received at `receive_time` (ns since the Unix epoch).
    ///
    /// # Errors
    ///
    /// [`RecordError::TooLong`] for a message above the bound, [`RecordError::Io`] when a frame
    /// that this call ended could not be written.
    pub fn message(&mut self, receive_time: i64, text: &[u8]) -> Result<(), RecordError> {
        if text.len() > MAX_MESSAGE_BYTES {
            return Err(RecordError::TooLong(text.len()));
        }
        self.flush_due(receive_time)?;
        format::write_message(&mut self.frame, receive_time, text);
        self.count(receive_time)
    }

    /// Records that something happened on the connection.
    ///
    /// # Errors
    ///
    /// As [`message`](Self::message).
    pub fn mark(&mut self, receive_time: i64, mark: Mark) -> Result<(), RecordError> {
        self.flush_due(receive_time)?;
        format::write_mark(&mut self.frame, receive_time, mark);
        self.count(receive_time)
    }

    /// Ends the frame if its first record is older than [`RecorderOptions::frame_age`] at `now` (ns
    /// since the Unix epoch). To be called now and then while nothing arrives.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] when the frame could not be written.
    pub fn flush_due(&mut self, now: i64) -> Result<(), RecordError> {
        let age = u128::from(now.abs_diff(self.frame_start));
        if self.frame_records > 0 && age >= self.options.frame_age.as_nanos() {
            return self.flush();
        }
        Ok(())
    }

    /// Ends the frame and hands it to the file.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] when the frame could not be written.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        if self.frame.is_empty() {
            return Ok(());
        }
        let written = self.write_frame();
        let (text, records) = (self.frame.len() as u64, u64::from(self.frame_records));
        self.frame.clear();
        self.frame_records = 0;
        written.map_err(|error| RecordError::Io { records: self.summary.records, error })?;
        self.summary.frames += 1;
        self.summary.records += records;
        self.summary.text_bytes += text;
        self.summary.file_bytes += self.packed.len() as u64;
        Ok(())
    }

    /// Ends the recording; answers what was written to, and what it holds.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] when the last frame could not be written.
    pub fn finish(mut self) -> Result<(W, RecorderSummary), RecordError> {
        self.flush()?;
        Ok((self.out, self.summary))
    }

    /// What the frames written so far hold.
    #[must_use]
    pub fn summary(&self) -> RecorderSummary {
        self.summary
    }

    fn count(&mut self, receive_time: i64) -> Result<(), RecordError> {
        if self.frame_records == 0 {
            self.frame_start = receive_time;
        }
        self.frame_records += 1;
        if self.frame_records >= self.options.frame_records
            || self.frame.len() >= self.options.frame_bytes
        {
            return self.flush();
        }
        Ok(())
    }

    fn write_frame(&mut self) -> io::Result<()> {
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(self.frame.len()));
        self.packer.compress_to_buffer(&self.frame, &mut self.packed)?;
        self.out.write_all(&self.packed)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::reader::Reader;
    use super::super::{RecordKind, report::DamageKind};
    use super::*;

    fn tiny_frames() -> RecorderOptions {
        RecorderOptions { frame_records: 7, ..RecorderOptions::default() }
    }

    /// A recording of `count` messages, one a second.
    fn recording(count: i64) -> Vec<u8> {
        let mut recorder = Recorder::new(Vec::new(), tiny_frames()).unwrap();
        for number in 0..count {
            recorder.message(number, format!("{{\"number\":{number}}}").as_bytes()).unwrap();
        }
        recorder.finish().unwrap().0
    }

    #[test]
    fn what_is_recorded_is_read_again_in_order_and_exactly() {
        let messages: [&[u8]; 4] = [b"{\"a\":1}", b"pong", b"\xff\xfe", b"line\nbreak"];
        let mut recorder = Recorder::new(Vec::new(), tiny_frames()).unwrap();
        recorder.mark(5, Mark::Connected).unwrap();
        for (time, text) in messages.iter().enumerate() {
            recorder.message(i64::try_from(time).unwrap() * 100, text).unwrap();
        }
        recorder.mark(-1, Mark::Disconnected).unwrap();
        let (file, summary) = recorder.finish().unwrap();
        assert_eq!((summary.records, summary.file_bytes), (6, file.len() as u64));

        let mut reader = Reader::from_bytes("memory", Bytes::from(file)).unwrap();
        let mut read = Vec::new();
        while let Some(record) = reader.read_next() {
            read.push((record.receive_time.unwrap(), record.kind, record.text.to_vec()));
        }
        assert_eq!(reader.damage(), None);
        assert_eq!(read[0], (5, RecordKind::Mark(Mark::Connected), Vec::new()));
        assert_eq!(read[5], (-1, RecordKind::Mark(Mark::Disconnected), Vec::new()));
        for (index, text) in messages.iter().enumerate() {
            let time = i64::try_from(index).unwrap() * 100;
            assert_eq!(read[index + 1], (time, RecordKind::Message, text.to_vec()));
        }
        assert_eq!((reader.tally().messages, reader.tally().marks), (4, 2));
    }

    #[test]
    fn joined_recordings_are_one_recording() {
        let mut joined = recording(10);
        joined.extend(recording(10));
        let mut reader = Reader::from_bytes("memory", Bytes::from(joined)).unwrap();
        while reader.advance() {}
        assert_eq!((reader.tally().messages, reader.damage()), (20, None));
    }

    #[test]
    fn b30_a_recording_cut_anywhere_plays_every_whole_frame_and_an_exact_prefix() {
        let whole = recording(100);
        for cut in 0..whole.len() {
            let mut reader =
                Reader::from_bytes("memory", Bytes::from(whole[..cut].to_vec())).unwrap();
            let mut played = 0;
            while let Some(record) = reader.read_next() {
                assert_eq!(record.receive_time, Some(played), "cut at {cut}");
                assert_eq!(record.text, format!("{{\"number\":{played}}}").as_bytes());
                played += 1;
            }
            // Frames are all but equal in size, so this many of them are whole at least.
            let frames = 100_usize.div_ceil(7);
            let whole_frames = (cut * frames / whole.len()).saturating_sub(2);
            assert!(played >= whole_frames as i64 * 7, "cut at {cut}: {played} played");
            if let Some(damage) = reader.damage() {
                assert_eq!(damage.record, played as u64, "cut at {cut}");
            } else {
                assert_eq!(played % 7, 0, "an undamaged cut is one between frames");
            }
        }
    }

    #[test]
    fn b30_a_slow_feed_loses_no_more_than_the_age_of_a_frame() {
        let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default()).unwrap();
        recorder.message(0, b"{\"first\":1}").unwrap();
        recorder.flush_due(999_999_999).unwrap();
        assert_eq!(recorder.summary().records, 0);
        recorder.flush_due(1_000_000_000).unwrap();
        assert_eq!(recorder.summary().records, 1, "on its way to the file after a second");
        assert!(!recorder.out.is_empty());
    }

    #[test]
    fn a_flipped_byte_never_panics_and_is_noticed_or_harmless() {
        let whole = recording(40);
        let mut noticed = 0;
        for at in 0..whole.len() {
            for bit in [0x01, 0x80] {
                let mut bytes = whole.clone();
                bytes[at] ^= bit;
                let Ok(mut reader) = Reader::from_bytes("memory", Bytes::from(bytes)) else {
                    noticed += 1;
                    continue;
                };
                while reader.advance() {}
                let tally = *reader.tally();
                if reader.damage().is_some() || tally.bad_lines() > 0 {
                    noticed += 1;
                } else {
                    // zstd leaves a few bits of its headers free.
                    assert_eq!(tally.messages, 40, "byte {at}");
                }
            }
        }
        assert!(noticed > whole.len() * 2 * 9 / 10, "{noticed} of {}", whole.len() * 2);
    }

    #[test]
    fn a_message_above_the_bound_is_refused_and_recording_goes_on() {
        let mut recorder = Recorder::new(Vec::new(), tiny_frames()).unwrap();
        let long = vec![b'"'; MAX_MESSAGE_BYTES + 1];
        assert!(matches!(recorder.message(1, &long), Err(RecordError::TooLong(_))));
        recorder.message(2, &long[1..]).unwrap();
        let (file, summary) = recorder.finish().unwrap();
        assert_eq!(summary.records, 1);
        let mut reader = Reader::from_bytes("memory", Bytes::from(file)).unwrap();
        assert_eq!(reader.read_next().unwrap().text, &long[1..], "and what is at it is read again");
    }

    #[test]
    fn a_write_that_fails_is_told_with_what_is_good() {
        struct Full(usize);
        impl Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut recorder = Recorder::new(Full(2), tiny_frames()).unwrap();
        let refused = (0..100).find_map(|time| recorder.message(time, b"{}").err()).unwrap();
        assert!(matches!(refused, RecordError::Io { records: 14, .. }), "{refused}");
    }

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        std::fs::write(&path, "precious").unwrap();
        let refused = Recorder::create(&path, RecorderOptions::default()).err().unwrap();
        assert!(refused.to_string().contains("taken: "), "{refused}");
        assert!(refused.to_string().contains("name another file"), "{refused}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn a_newer_version_is_refused_at_the_start_and_is_damage_further_on() {
        let newer = "{\"tidegate\":\"recording\",\"version\":2}\n";
        let refused = Reader::from_bytes("memory", Bytes::from_static(newer.as_bytes())).err();
        assert!(refused.unwrap().to_string().contains("line 1: format version 2"));

        let later = format!("{{\"at\":1,\"json\":{{}}}}\n{newer}{{\"at\":2,\"json\":{{}}}}\n");
        let mut reader = Reader::from_bytes("memory", Bytes::from(later)).unwrap();
        while reader.advance() {}
        let damage = reader.damage().unwrap();
        assert_eq!((damage.record, damage.line), (1, 2));
        assert_eq!(damage.kind, DamageKind::Version(2));
    }
}
