//! A recording in one file, or in a folder of files of which each is bounded.
//!
//! In a folder, a file is named after the feed and the receive time of its first record, in UTC:
//! `spot-20260105T100000.000Z.jsonl.zst`, so that the files of a feed sort by time. A file is closed
//! and the next begun by size or by time; then the oldest files *of this feed* go, until no more
//! are left than are to be kept. A file that is there is never overwritten and never written on.
//!
//! # When writing fails
//!
//! What waited in memory is lost, and so is what comes until the next try succeeds
//! ([`Rolling::retry`], to be called with some pause in between). The file that failed is good up
//! to its last flush. The next file begins with a mark of the gap, with how many records it took:
//! nothing goes missing silently. A recording in a single file has no next one; there the count is
//! all that tells ([`RollingSummary::lost`]).

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::format::Mark;
use super::recorder::{RecordError, Recorder, RecorderOptions, RecorderSummary};

/// Where a recording goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// One file.
    File {
        /// Its name.
        path: PathBuf,
        /// Whether one that is there is replaced.
        replace: bool,
    },
    /// Files named after the feed and the time, in this folder. It is made if it is not there.
    Folder(PathBuf),
}

/// How a recording is cut into files, and how many of them are kept.
#[derive(Clone, Debug, Default)]
pub struct RollingOptions {
    /// How each file is written.
    pub recorder: RecorderOptions,
    /// A file of so many bytes is followed by the next.
    pub rotate_bytes: Option<u64>,
    /// A file whose first record is older than this, by receive time, is followed by the next.
    pub rotate_every: Option<Duration>,
    /// So many files are kept, the present one among them; at least 1.
    pub keep_files: Option<u32>,
    /// The files that are kept have at most so many bytes together, the present one aside.
    pub keep_bytes: Option<u64>,
}

/// What was recorded, in all files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RollingSummary {
    /// Records in the files, as far as they are flushed.
    pub records: u64,
    /// Records that could not be written.
    pub lost: u64,
    /// Bytes unpacked.
    pub text_bytes: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// Files begun.
    pub files: u64,
    /// Files removed because newer ones came.
    pub removed: u64,
}

/// See the module.
pub struct Rolling {
    name: String,
    place: Place,
    options: RollingOptions,
    current: Option<Current>,
    /// What the files that are closed hold.
    closed: RollingSummary,
    /// Records lost that no mark tells of yet.
    untold: u64,
    failed: bool,
}

struct Current {
    recorder: Recorder<File>,
    path: PathBuf,
    first_time: i64,
}

impl Rolling {
    /// A recording of the feed called `name`. The folder is made and a single file is created at
    /// once, so that a place that cannot be written is told before anything is received.
    ///
    /// # Errors
    ///
    /// [`RecordError::Create`] with the place and what the operating system says; also when a
    /// single file exists and is not to be replaced.
    pub fn new(name: &str, place: Place, options: RollingOptions) -> Result<Self, RecordError> {
        let mut rolling = Self {
            name: name.to_owned(),
            place,
            options,
            current: None,
            closed: RollingSummary::default(),
            untold: 0,
            failed: false,
        };
        match rolling.place.clone() {
            Place::Folder(folder) => {
                fs::create_dir_all(&folder).map_err(|error| created(&folder, error))?;
            }
            Place::File { path, replace } => {
                let file = if replace { File::create(&path) } else { File::create_new(&path) };
                rolling.begin(file.map_err(|error| created(&path, error))?, path, i64::MIN)?;
            }
        }
        Ok(rolling)
    }

    /// Records a message, received at `receive_time` (ns since the Unix epoch).
    ///
    /// # Errors
    ///
    /// The first failure; until the next try the records are only counted. A message that is too
    /// long is counted and marked as lost, alone.
    pub fn message(&mut self, receive_time: i64, text: &[u8]) -> Result<(), RecordError> {
        let recorded = self.write(receive_time, |recorder| recorder.message(receive_time, text));
        if let Err(RecordError::TooLong(_)) = recorded {
            self.lose(1);
            self.untold -= 1;
            self.mark(receive_time, Mark::Gap { lost: 1 })?;
        }
        recorded
    }

    /// Records that something happened on the connection; or that records were lost on the way
    /// here, which are then counted too.
    ///
    /// # Errors
    ///
    /// As [`message`](Self::message).
    pub fn mark(&mut self, receive_time: i64, mark: Mark) -> Result<(), RecordError> {
        self.write(receive_time, |recorder| recorder.mark(receive_time, mark))
    }

    /// Flushes what has waited long enough at `now` (ns since the Unix epoch).
    ///
    /// # Errors
    ///
    /// As [`message`](Self::message).
    pub fn flush_due(&mut self, now: i64) -> Result<(), RecordError> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let flushed = current.recorder.flush_due(now);
        flushed.map_err(|error| self.fail(error))
    }

    /// After a failure: the next record is tried again, in a file of its own.
    pub fn retry(&mut self) {
        if matches!(self.place, Place::Folder(_)) {
            self.failed = false;
        }
    }

    /// Whether the last try failed, and nothing is written until [`retry`](Self::retry).
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// The file that is being written.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.current.as_ref().map(|current| current.path.as_path())
    }

    /// What was written so far.
    #[must_use]
    pub fn summary(&self) -> RollingSummary {
        match &self.current {
            None => self.closed,
            Some(current) => added(self.closed, current.recorder.summary()),
        }
    }

    /// Closes the present file.
    ///
    /// # Errors
    ///
    /// [`RecordError::Io`] when its end could not be written.
    pub fn finish(mut self) -> Result<RollingSummary, RecordError> {
        self.close()?;
        Ok(self.closed)
    }

    fn write(
        &mut self,
        time: i64,
        write: impl FnOnce(&mut Recorder<File>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        if self.failed {
            self.lose(1);
            return Ok(());
        }
        let mut taken = false;
        let written = self.at_hand(time).and_then(|recorder| {
            let before = recorder.waiting();
            let written = write(recorder);
            taken = recorder.waiting() > before;
            written
        });
        match written {
            Err(error @ RecordError::TooLong(_)) => Err(error),
            Err(error) => {
                // The record is lost with what waits, if it got that far.
                self.lose(u64::from(!taken));
                Err(self.fail(error))
            }
            Ok(()) => Ok(()),
        }
    }

    /// The recorder for a record of this time.
    fn at_hand(&mut self, time: i64) -> Result<&mut Recorder<File>, RecordError> {
        if self.is_full(time) {
            self.close()?;
        }
        if self.current.is_none() {
            self.next_file(time)?;
        }
        match &mut self.current {
            Some(current) => {
                if current.first_time == i64::MIN {
                    current.first_time = time;
                }
                if self.untold > 0 {
                    current.recorder.mark(time, Mark::Gap { lost: self.untold })?;
                    self.untold = 0;
                }
                Ok(&mut current.recorder)
            }
            // Just made, so this does not happen.
            None => Err(created(Path::new(&self.name), io::ErrorKind::NotFound.into())),
        }
    }

    fn is_full(&self, time: i64) -> bool {
        let (Some(current), Place::Folder(_)) = (&self.current, &self.place) else { return false };
        let summary = current.recorder.summary();
        let age = u128::from(time.abs_diff(current.first_time));
        self.options.rotate_bytes.is_some_and(|most| summary.file_bytes >= most)
            || self.options.rotate_every.is_some_and(|most| age >= most.as_nanos())
    }

    fn close(&mut self) -> Result<(), RecordError> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let (before, waiting) = (current.recorder.summary(), current.recorder.waiting());
        match current.recorder.finish() {
            Ok((_, summary)) => {
                self.closed = added(self.closed, summary);
                Ok(())
            }
            Err(error) => {
                self.closed = added(self.closed, before);
                self.lose(waiting);
                Err(error)
            }
        }
    }

    fn next_file(&mut self, time: i64) -> Result<(), RecordError> {
        let Place::Folder(folder) = &self.place else {
            let error = io::Error::other("its only file has failed");
            return Err(created(Path::new(&self.name), error));
        };
        let (folder, stem) = (folder.clone(), format!("{}-{}", self.name, stamp(time)));
        for again in 1..=100 {
            let more = if again == 1 { String::new() } else { format!("_{again}") };
            let path = folder.join(format!("{stem}{more}{SUFFIX}"));
            match File::create_new(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(created(&path, error)),
                Ok(file) => {
                    self.begin(file, path, time)?;
                    self.closed.removed += self.remove_old(&folder);
                    return Ok(());
                }
            }
        }
        Err(created(&folder.join(stem + SUFFIX), io::ErrorKind::AlreadyExists.into()))
    }

    fn begin(&mut self, file: File, path: PathBuf, first_time: i64) -> Result<(), RecordError> {
        let mut recorder = Recorder::new(file, self.options.recorder.clone())?;
        // The header at once: whatever happens, the file says what it is.
        recorder.flush()?;
        self.closed.files += 1;
        self.current = Some(Current { recorder, path, first_time });
        Ok(())
    }

    /// Removes the oldest files that are too many; answers how many. What cannot be removed is left
    /// where it is: that is no reason not to record.
    fn remove_old(&self, folder: &Path) -> u64 {
        let RollingOptions { keep_files, keep_bytes, .. } = self.options;
        if keep_files.is_none() && keep_bytes.is_none() {
            return 0;
        }
        let mut old = self.files_of_this_feed(folder);
        // By name, so by time; the newest first.
        old.sort_by(|one, other| other.0.cmp(&one.0));
        let most = keep_files.map_or(usize::MAX, |files| (files as usize).saturating_sub(1));
        let mut bytes = 0_u64;
        let mut removed = 0;
        for (at, (path, length)) in old.iter().enumerate() {
            bytes = bytes.saturating_add(*length);
            let too_many = at >= most || keep_bytes.is_some_and(|most| bytes > most);
            if too_many && fs::remove_file(path).is_ok() {
                removed += 1;
            }
        }
        removed
    }

    /// Every file of the folder that was named as ours are, but the present one; with its length.
    fn files_of_this_feed(&self, folder: &Path) -> Vec<(PathBuf, u64)> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        entries
            .filter_map(Result::ok)
            .filter(|entry| Some(entry.path().as_path()) != self.path())
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| self.is_ours(name)))
            .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.len())))
            .collect()
    }

    fn is_ours(&self, file: &str) -> bool {
        let rest = file.strip_prefix(self.name.as_str()).and_then(|rest| rest.strip_prefix('-'));
        let Some(stamp) = rest.and_then(|rest| rest.strip_suffix(SUFFIX)) else { return false };
        let stamp = stamp.split_once('_').map_or(stamp, |(stamp, _)| stamp);
        stamp.len() == "20260105T100000.000Z".len()
            && stamp.bytes().enumerate().all(|(at, byte)| match at {
                8 => byte == b'T',
                15 => byte == b'.',
                19 => byte == b'Z',
                _ => byte.is_ascii_digit(),
            })
    }

    fn lose(&mut self, records: u64) {
        self.closed.lost += records;
        self.untold += records;
    }

    #[cold]
    fn fail(&mut self, error: RecordError) -> RecordError {
        self.failed = true;
        if let Some(current) = self.current.take() {
            self.lose(current.recorder.waiting());
            self.closed = added(self.closed, current.recorder.summary());
        }
        error
    }
}

const SUFFIX: &str = ".jsonl.zst";

/// The time in a file's name. One that no calendar has is that of the epoch's.
fn stamp(time: i64) -> String {
    let time = Timestamp::from_nanosecond(time.into()).unwrap_or(Timestamp::UNIX_EPOCH);
    time.strftime("%Y%m%dT%H%M%S.%3fZ").to_string()
}

fn added(sum: RollingSummary, file: RecorderSummary) -> RollingSummary {
    RollingSummary {
        records: sum.records + file.records,
        text_bytes: sum.text_bytes + file.text_bytes,
        file_bytes: sum.file_bytes + file.file_bytes,
        ..sum
    }
}

fn created(path: &Path, error: io::Error) -> RecordError {
    RecordError::Create { file: path.display().to_string(), error }
}

#[cfg(test)]
mod tests;
