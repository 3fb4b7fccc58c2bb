//! Recordings in, records out.
//!
//! A [`Reader`] walks over one recording. Packing and format are told by content, never by name.
//! It moves with [`advance`](Reader::advance) and lends the record it stands on, so reading
//! allocates nothing per record (a message that our own format had to escape excepted).
//!
//! What is not good is never fatal and never silent:
//!
//! | met | outcome |
//! |---|---|
//! | a bad line | skipped, counted by reason with the first line's number ([`Tally`]) |
//! | an empty line, `\r\n`, a byte order mark | taken off, counted |
//! | a time that fits no time | the message is yielded without one, counted |
//! | a record that the [`Selection`] leaves out | passed over, counted |
//! | a torn last line, a packed file that ends early or is corrupt, a recording that was not closed | every whole record before it is yielded, then [`Reader::damage`] tells the place |
//!
//! A last line without its end counts as whole if it is a whole JSON object or array; anything else
//! could be the beginning of something longer, and counts as torn.

use std::fs::File;
use std::io::{Cursor, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use super::capture;
use super::format::{self, Content, Format, Record, RecordKind};
use super::index::FrameEntry;
use super::report::{BadLine, Damage, DamageKind, OpenError, OpenProblem, Tally};
use super::selection::Selection;
use super::unpack::{Compression, Unpacker};
use super::window::{Found, MAX_LINE_BYTES, Window};

mod selected;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// See the module.
pub struct Reader {
    name: Arc<str>,
    input: Input,
    window: Window,
    format: Option<Format>,
    current: Option<Current>,
    /// Messages that had to be decoded.
    scratch: Vec<u8>,
    tally: Tally,
    /// What unpacking ended with, if not with the file's end.
    fault: Option<DamageKind>,
    damage: Option<Damage>,
    /// No more bytes come.
    ended: bool,
    selection: Selection,
    /// Whether the selection leaves anything out.
    selective: bool,
    /// The record before was in the selection's range.
    inside: bool,
    /// Where reading began.
    base: FrameEntry,
    /// Behind this many records of the file, nothing is in the selection's range.
    reach: u64,
    /// The recording says how many records it has, and has not said so yet.
    open: bool,
    /// Records since the last header.
    since_header: u64,
}

/// Where the text comes from.
enum Input {
    /// From a file, piece by piece.
    Packed(Box<Unpacker>),
    /// Nowhere: the window holds it all.
    Loaded { compression: Compression, file_bytes: u64 },
}

/// A text unpacked into memory, with what unpacking ended with.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) text: Bytes,
    pub(super) compression: Compression,
    pub(super) file_bytes: u64,
    pub(super) fault: Option<DamageKind>,
}

#[derive(Clone)]
struct Current {
    time: Option<i64>,
    kind: RecordKind,
    place: Place,
}

#[derive(Clone)]
enum Place {
    Window(Range<usize>),
    Scratch,
}

impl Reader {
    /// Opens a file. Its format shows with the first line that belongs to one.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when the file cannot be opened, is packed in a way that is not read, or is a
    /// recording of a newer version.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| OpenError::new(&name, error.into()))?;
        Self::from_reader(&name, Box::new(file))
    }

    /// Reads a file's bytes that are in memory, packed as they are; `name` stands for the file in
    /// messages.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_bytes(name: &str, file: Bytes) -> Result<Self, OpenError> {
        Self::from_reader(name, Box::new(Cursor::new(file)))
    }

    /// Reads a file's bytes from wherever they come; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_reader(name: &str, file: Box<dyn Read + Send>) -> Result<Self, OpenError> {
        let unpacker = Unpacker::new(file).map_err(|problem| OpenError::new(name, problem))?;
        let window = Window::new(MAX_LINE_BYTES);
        Self::start(name.into(), Input::Packed(Box::new(unpacker)), window)
    }

    /// Reads a text that was unpacked before. No byte is copied.
    pub(super) fn from_loaded(name: Arc<str>, loaded: &Loaded) -> Result<Self, OpenError> {
        let Loaded { compression, file_bytes, .. } = *loaded;
        let window = Window::whole(loaded.text.clone(), MAX_LINE_BYTES);
        let mut reader = Self::start(name, Input::Loaded { compression, file_bytes }, window)?;
        reader.fault = loaded.fault.clone();
        Ok(reader)
    }

    fn start(name: Arc<str>, input: Input, window: Window) -> Result<Self, OpenError> {
        let ended = matches!(input, Input::Loaded { .. });
        let mut reader = Self {
            name,
            input,
            window,
            format: None,
            current: None,
            scratch: Vec::new(),
            tally: Tally::default(),
            fault: None,
            damage: None,
            ended,
            selection: Selection::default(),
            selective: false,
            inside: true,
            base: FrameEntry::new(0, 0, 0, 0),
            reach: u64::MAX,
            open: false,
            since_header: 0,
        };
        match reader.version_in_header() {
            Some(version) if version > format::VERSION => {
                Err(OpenError::new(&reader.name, OpenProblem::Version(version)))
            }
            _ => Ok(reader),
        }
    }

    /// Moves to the next record. `false` at the end of what is whole: [`damage`](Self::damage)
    /// tells whether the file went on.
    #[inline]
    pub fn advance(&mut self) -> bool {
        while self.damage.is_none() {
            if self.selective && self.records() >= self.reach {
                break;
            }
            match self.window.line() {
                Some(Found::Line(line)) => {
                    if self.take(line) {
                        return true;
                    }
                }
                Some(Found::TooLong) => self.skip_too_long(),
                None if self.fill() => {}
                None => return self.finish(),
            }
        }
        self.current = None;
        false
    }

    /// The record that the last [`advance`](Self::advance) moved to.
    #[inline]
    #[must_use]
    pub fn record(&self) -> Option<Record<'_>> {
        let Current { time, kind, ref place } = *self.current.as_ref()?;
        let text = match place {
            Place::Window(range) => &self.window.bytes()[range.clone()],
            Place::Scratch => &self.scratch,
        };
        Some(Record { receive_time: time, kind, text })
    }

    /// Moves to the next record and lends it.
    #[inline]
    pub fn read_next(&mut self) -> Option<Record<'_>> {
        if self.advance() { self.record() } else { None }
    }

    /// What was read so far.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Where the file stopped being readable; known once [`advance`](Self::advance) has answered
    /// `false`.
    #[must_use]
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// The format of the lines, once a line has told it.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// How the file is packed.
    #[must_use]
    pub fn compression(&self) -> Compression {
        match &self.input {
            Input::Packed(unpacker) => unpacker.compression(),
            Input::Loaded { compression, .. } => *compression,
        }
    }

    /// How many bytes of the file have been used, for showing progress. Runs ahead of the records
    /// by what is buffered.
    #[must_use]
    pub fn file_offset(&self) -> u64 {
        match &self.input {
            Input::Packed(unpacker) => self.base.file_offset + unpacker.file_offset(),
            Input::Loaded { file_bytes, .. } => *file_bytes,
        }
    }

    /// Where the unpacked text goes on behind the present line.
    pub(super) fn text_position(&self) -> u64 {
        self.base.text_offset + self.window.offset(self.window.start())
    }

    /// The file, as it was named.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Unpacks everything, to be read any number of times.
    pub(super) fn load(mut self, max_bytes: u64) -> Result<Loaded, OpenError> {
        while self.fill() {
            if self.window.len() as u64 > max_bytes {
                return Err(OpenError::new(&self.name, OpenProblem::TooLarge(max_bytes)));
            }
        }
        Ok(Loaded {
            compression: self.compression(),
            file_bytes: self.file_offset(),
            fault: self.fault,
            text: self.window.into_bytes(),
        })
    }

    /// Takes a line; `true` when it is a record, which is then the current one.
    #[inline]
    fn take(&mut self, mut line: Range<usize>) -> bool {
        if self.tally.lines == 0 {
            line = self.without_byte_order_mark(line);
        }
        self.tally.lines += 1;
        let mut bytes = &self.window.bytes()[line.clone()];
        if let Some(before) = bytes.strip_suffix(b"\r") {
            bytes = before;
            line.end -= 1;
            self.tally.crlf_lines += 1;
        }
        if bytes.is_empty() {
            self.tally.blank_lines += 1;
            return false;
        }
        if std::str::from_utf8(bytes).is_err() {
            self.tally.skip(BadLine::NotUtf8);
            return false;
        }
        if self.format.is_none() {
            self.format = Format::sniff(bytes);
        }
        let content = match self.format {
            Some(Format::Plain) => Ok(Content::Here(None, 0..bytes.len())),
            Some(Format::Stamped) => format::read_stamped(bytes),
            Some(Format::Recording) => format::read_own(bytes, &mut self.scratch),
            Some(Format::Cryptofeed) => capture::read_json(bytes, &mut self.scratch),
            Some(Format::CryptofeedText) => capture::read_text(bytes),
            None => Err(BadLine::Unrecognised),
        };
        let (time, kind, place) = match content {
            Ok(Content::Here(time, text)) => {
                let text = line.start + text.start..line.start + text.end;
                (time, RecordKind::Message, Place::Window(text))
            }
            Ok(other) => return self.take_rare(other, line.start),
            Err(reason) => {
                self.tally.skip(reason);
                return false;
            }
        };
        self.yields(Current { time, kind, place })
    }

    /// What seldom stands in a line.
    #[cold]
    fn take_rare(&mut self, content: Content, line_start: usize) -> bool {
        let (time, kind) = match content {
            Content::Decoded(time) => (time, RecordKind::Message),
            Content::Mark(time, mark) => (time, RecordKind::Mark(mark)),
            Content::Unknown => {
                self.tally.other_records += 1;
                return false;
            }
            Content::Header(version) if version > format::VERSION => {
                self.tally.lines -= 1;
                self.damaged(DamageKind::Version(version), line_start);
                return false;
            }
            Content::Header(_) if self.open => {
                self.tally.lines -= 1;
                self.damaged(DamageKind::Unclosed, line_start);
                return false;
            }
            Content::Header(version) => {
                self.open = version >= format::VERSION_WITH_END;
                self.since_header = 0;
                return false;
            }
            Content::End(records) => {
                if self.open && records != self.since_header {
                    let kind = DamageKind::Count { told: records, read: self.since_header };
                    self.damaged(kind, line_start);
                }
                self.open = false;
                return false;
            }
            Content::Here(..) => return false,
        };
        if let RecordKind::Mark(_) = kind {
            self.scratch.clear();
        }
        self.yields(Current { time, kind, place: Place::Scratch })
    }

    /// Counts a record and makes it the current one, if it is selected.
    #[inline]
    fn yields(&mut self, current: Current) -> bool {
        self.since_header += 1;
        if self.selective && !self.selects(&current) {
            self.tally.left_out += 1;
            return false;
        }
        match current.kind {
            RecordKind::Message => self.tally.messages += 1,
            RecordKind::Mark(_) => self.tally.marks += 1,
        }
        if current.time.is_none() && self.format != Some(Format::Plain) {
            self.tally.times_out_of_range += 1;
        }
        self.tally.text_bytes += match &current.place {
            Place::Window(text) => text.len() as u64,
            Place::Scratch => self.scratch.len() as u64,
        };
        self.current = Some(current);
        true
    }

    /// Records met so far, from the file's beginning.
    fn records(&self) -> u64 {
        self.base.records + self.tally.messages + self.tally.marks + self.tally.left_out
    }

    #[cold]
    fn skip_too_long(&mut self) {
        self.tally.lines += 1;
        self.tally.skip(BadLine::TooLong);
    }

    /// No line with an end is left: what remains is a whole message without one, or damage.
    #[cold]
    fn finish(&mut self) -> bool {
        self.current = None;
        match self.window.rest() {
            Some(Found::Line(line)) => {
                if !self.is_whole(line.clone()) {
                    let kind = self.fault.take().unwrap_or(DamageKind::TornLine);
                    self.damaged(kind, line.start);
                } else if self.take(line) {
                    return true;
                }
            }
            Some(Found::TooLong) => self.skip_too_long(),
            None => {}
        }
        if let Some(fault) = self.fault.take() {
            self.damaged(fault, self.window.end());
        } else if self.damage.is_none() && std::mem::take(&mut self.open) {
            self.damaged(DamageKind::Unclosed, self.window.end());
        }
        false
    }

    /// Whether a line without its end lost nothing.
    fn is_whole(&mut self, line: Range<usize>) -> bool {
        let line = if self.tally.lines == 0 { self.without_byte_order_mark(line) } else { line };
        let line = &self.window.bytes()[line];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let text = match (format::read_stamped(line), capture::read_text(line)) {
            (Ok(Content::Here(_, text)), _) | (_, Ok(Content::Here(_, text))) => &line[text],
            _ => line,
        };
        text.is_empty() || format::is_whole_json(text)
    }

    fn damaged(&mut self, kind: DamageKind, index: usize) {
        self.damage = Some(Damage {
            record: self.records(),
            line: self.base.lines + self.tally.lines + 1,
            text_offset: self.base.text_offset + self.window.offset(index),
            file_offset: self.file_offset(),
            kind,
        });
    }

    /// The version of a header on the first line, looked at before anything else is done with the
    /// file.
    fn version_in_header(&mut self) -> Option<u64> {
        const LONGEST_HEADER: usize = 4096;
        while self.window.len() < LONGEST_HEADER && self.fill() {}
        let text = self.window.bytes();
        let text = &text[..self.window.len().min(LONGEST_HEADER)];
        let line = &text[..memchr::memchr(b'\n', text)?];
        match format::read_own(line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line), &mut Vec::new())
        {
            Ok(Content::Header(version)) => Some(version),
            _ => None,
        }
    }

    fn without_byte_order_mark(&mut self, line: Range<usize>) -> Range<usize> {
        if !self.window.bytes()[line.clone()].starts_with(BYTE_ORDER_MARK) {
            return line;
        }
        self.tally.byte_order_marks = 1;
        line.start + BYTE_ORDER_MARK.len()..line.end
    }

    /// Gets more of the text; `false` when there is no more.
    #[cold]
    fn fill(&mut self) -> bool {
        let Input::Packed(unpacker) = &mut self.input else { return false };
        if self.ended {
            return false;
        }
        match unpacker.read(self.window.space()) {
            Ok(0) => self.ended = true,
            Ok(count) => self.window.filled(count),
            Err(fault) => {
                self.ended = true;
                self.fault = Some(fault);
            }
        }
        !self.ended
    }
}

#[cfg(test)]
mod tests;
