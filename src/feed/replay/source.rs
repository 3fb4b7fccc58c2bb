//! One recording of a replay: its next record, and the key in time by which it is merged.

use super::super::format::{Record, RecordKind};
use super::super::reader::Reader;
use super::super::recording::Recording;
use super::super::report::OpenError;

/// Key of the records before the first that has a time.
pub(super) const NO_TIME: i64 = i64::MIN;

pub(super) struct Source {
    recording: Recording,
    reader: Reader,
    to_be_opened: bool,
    max_gap: u64,
    /// Key of the present record.
    key: i64,
    /// A record has been reached in this pass.
    any: bool,
    /// The present record, if the reader had to be moved on to judge it.
    held: Held,
}

/// A record kept while the reader stands on the one after it.
#[derive(Default)]
struct Held {
    record: Option<(Option<i64>, RecordKind)>,
    text: Vec<u8>,
    /// Whether the reader stands on a record.
    more: bool,
}

impl Source {
    pub(super) fn new(recording: Recording, max_gap: u64) -> Result<Self, OpenError> {
        Ok(Self {
            reader: recording.reader()?,
            recording,
            to_be_opened: false,
            max_gap,
            key: NO_TIME,
            any: false,
            held: Held::default(),
        })
    }

    /// Moves to the next record and answers its key, or `None` at the end.
    #[inline]
    pub(super) fn advance(&mut self) -> Option<i64> {
        let there = match self.held.record.take() {
            None => self.reader.advance(),
            Some(_) => self.held.more,
        };
        if !there {
            return None;
        }
        let time = self.reader.record()?.receive_time;
        let Some(time) = time else { return Some(self.key) };
        if self.any && time.abs_diff(self.key) > self.max_gap {
            return Some(self.judge(time));
        }
        self.any = true;
        // Disorder within the bound keeps the file's order and does not hold up a merge.
        self.key = self.key.max(time);
        Some(self.key)
    }

    /// The present record.
    #[inline]
    pub(super) fn record(&self) -> Option<Record<'_>> {
        match self.held.record {
            None => self.reader.record(),
            Some((receive_time, kind)) => {
                Some(Record { receive_time, kind, text: &self.held.text })
            }
        }
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Another pass follows.
    pub(super) fn rewind_later(&mut self) {
        self.to_be_opened = true;
    }

    /// Opens the recording for another pass; `false` if that was done already.
    pub(super) fn open_again(&mut self) -> Result<bool, OpenError> {
        if !std::mem::take(&mut self.to_be_opened) {
            return Ok(false);
        }
        self.reader = self.recording.reader()?;
        self.key = NO_TIME;
        self.any = false;
        self.held.record = None;
        Ok(true)
    }

    /// Moves to the first record whose key is `time` or later, forward or back, and answers its key.
    pub(super) fn seek(&mut self, time: i64) -> Result<Option<i64>, OpenError> {
        self.to_be_opened = false;
        self.reader = self.recording.reader_at(time)?;
        self.key = NO_TIME;
        self.any = false;
        self.held.record = None;
        loop {
            match self.advance() {
                Some(key) if key < time => {}
                reached => return Ok(reached),
            }
        }
    }

    /// The key of a record whose stamp jumps: is it a lone slip, or has the file moved?
    #[cold]
    fn judge(&mut self, time: i64) -> i64 {
        if let Some(record) = self.reader.record() {
            self.held.record = Some((record.receive_time, record.kind));
            self.held.text.clear();
            self.held.text.extend_from_slice(record.text);
        }
        self.held.more = self.reader.advance();
        let after = self.reader.record().and_then(|record| record.receive_time);
        let slip = after.is_some_and(|after| after.abs_diff(self.key) < after.abs_diff(time));
        if !slip {
            self.key = time;
        }
        self.key
    }
}
