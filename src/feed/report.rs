//! What a reader tells about a file: counts, bad lines, damage, and why it could not be opened.

use std::fmt;
use std::io;

use super::window::MAX_LINE_BYTES;

/// Why a line was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BadLine {
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// Not UTF-8.
    NotUtf8,
    /// No line of any format that is read, at the beginning of a file.
    Unrecognised,
    /// In a file of `<time> <raw text>` lines: the time is missing or not a number.
    NoTime,
    /// A time, and nothing behind it.
    NoText,
    /// In a recording of our own or a capture: none of its lines.
    NotARecord,
    /// On a line feed: the connection broke before the line's end. (The torn last line of a
    /// recording is [`DamageKind::TornLine`].)
    Torn,
    /// On a live feed: a binary message that is neither text nor packed text, or is cut short.
    NotUnpacked,
}

impl BadLine {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::TooLong,
        Self::NotUtf8,
        Self::Unrecognised,
        Self::NoTime,
        Self::NoText,
        Self::NotARecord,
        Self::Torn,
        Self::NotUnpacked,
    ];

    /// The reason as one word, for counts and metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NotUtf8 => "not_utf8",
            Self::Unrecognised => "unrecognised",
            Self::NoTime => "no_time",
            Self::NoText => "no_text",
            Self::NotARecord => "not_a_record",
            Self::Torn => "torn",
            Self::NotUnpacked => "not_unpacked",
        }
    }
}

impl fmt::Display for BadLine {
    /// What is wrong with the line, and what would be right.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => {
                write!(f, "the line is too long; a line has at most {MAX_LINE_BYTES} bytes")
            }
            Self::NotUtf8 => f.write_str("the line is not UTF-8; a message is text"),
            Self::Unrecognised => f.write_str(
                "no format is recognised; a recording starts with its header, \
                 `<time> <raw text>`, or a JSON object or array",
            ),
            Self::NoTime => f.write_str(
                "the line does not start with a time; \
                 `<time> <raw text>` is expected, the time in s, ms, us or ns since 1970",
            ),
            Self::NoText => {
                f.write_str("nothing follows the time; `<time> <raw text>` is expected")
            }
            Self::NotARecord => f.write_str(
                "not a line of the file's format; in a recording \
                 `{\"at\":<ns>,\"json\":<message>}`, or with \"text\", \"hex\" or \"mark\", is \
                 expected",
            ),
            Self::Torn => f.write_str("the connection broke in the middle of the line"),
            Self::NotUnpacked => f.write_str(
                "the binary message is neither text nor text packed with gzip, zlib or deflate",
            ),
        }
    }
}

/// How often one reason for skipping a line was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BadCount {
    /// Lines skipped for it.
    pub count: u64,
    /// Number of the first such line, from 1; 0 when there was none.
    pub first_line: u64,
}

/// Counts of what was read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Lines met, of any kind.
    pub lines: u64,
    /// Messages yielded.
    pub messages: u64,
    /// Marks yielded (connected, disconnected).
    pub marks: u64,
    /// Bytes of the messages' texts.
    pub text_bytes: u64,
    /// Empty lines, skipped without blame.
    pub blank_lines: u64,
    /// Lines that ended in `\r\n`; the `\r` is taken off.
    pub crlf_lines: u64,
    /// Byte order marks taken off the text's beginning: 0 or 1.
    pub byte_order_marks: u64,
    /// Messages whose time does not fit a time; they are yielded without one.
    pub times_out_of_range: u64,
    /// Lines that hold no received message, skipped without blame: requests and HTTP answers in a
    /// capture, kinds of record that this version does not know.
    pub other_records: u64,
    /// Records that the reader's selection left out.
    pub left_out: u64,
    bad: [BadCount; BadLine::ALL.len()],
}

impl Tally {
    /// How often, and where first, lines were skipped for `reason`.
    #[must_use]
    pub fn bad(&self, reason: BadLine) -> BadCount {
        self.bad[reason as usize]
    }

    /// The reasons met, with their counts.
    pub fn bad_by_reason(&self) -> impl Iterator<Item = (BadLine, BadCount)> + '_ {
        BadLine::ALL
            .into_iter()
            .map(|reason| (reason, self.bad(reason)))
            .filter(|(_, b)| b.count > 0)
    }

    /// Lines skipped, for any reason.
    #[must_use]
    pub fn bad_lines(&self) -> u64 {
        self.bad.iter().map(|bad| bad.count).sum()
    }

    /// Adds the counts of another source; the first bad lines stay those of the first source.
    pub fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.messages += other.messages;
        self.marks += other.marks;
        self.text_bytes += other.text_bytes;
        self.blank_lines += other.blank_lines;
        self.crlf_lines += other.crlf_lines;
        self.byte_order_marks += other.byte_order_marks;
        self.times_out_of_range += other.times_out_of_range;
        self.other_records += other.other_records;
        self.left_out += other.left_out;
        for (mine, theirs) in self.bad.iter_mut().zip(other.bad) {
            if mine.count == 0 {
                mine.first_line = theirs.first_line;
            }
            mine.count += theirs.count;
        }
    }

    /// Counts the present line as skipped for `reason`.
    pub(super) fn skip(&mut self, reason: BadLine) {
        let line = self.lines;
        let bad = &mut self.bad[reason as usize];
        if bad.count == 0 {
            bad.first_line = line;
        }
        bad.count += 1;
    }
}

/// The place where a file stops being readable. Everything whole before it has been yielded, and
/// nothing behind it is: to go on past a hole would be to say that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Records (messages and marks) yielded before it, which is also the index of the first one lost.
    pub record: u64,
    /// Number of the first line lost, from 1.
    pub line: u64,
    /// Position of the first byte lost, in the unpacked text.
    pub text_offset: u64,
    /// How many bytes of the file itself had been used when the damage was met.
    pub file_offset: u64,
    /// What is wrong there.
    pub kind: DamageKind,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at record {}, line {}, byte {} of the text (byte {} of the file); {} whole records \
             before it are good",
            self.kind, self.record, self.line, self.text_offset, self.file_offset, self.record
        )
    }
}

/// What is wrong at a place of damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// The packed file ends in the middle.
    Truncated,
    /// The packed file holds something that does not unpack.
    Corrupt(String),
    /// The last line has no end and is not a whole message.
    TornLine,
    /// The recording ends at a whole record, and without the line that says so: its recorder was
    /// killed, or is still at work.
    Unclosed,
    /// The recording says that it has more or fewer records than were found in it.
    Count {
        /// How many it says.
        told: u64,
        /// How many were read.
        read: u64,
    },
    /// The file could not be read on.
    Io(String),
    /// From here on the recording has a version that is newer than this program.
    Version(u64),
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the packed file ends in the middle"),
            Self::Corrupt(why) => write!(f, "the packed file is corrupt ({why})"),
            Self::TornLine => f.write_str("the last line is torn"),
            Self::Unclosed => f.write_str("the recording was not closed"),
            Self::Count { told, read } => {
                write!(f, "the recording says it has {told} records, and {read} were read")
            }
            Self::Io(why) => write!(f, "the file could not be read on ({why})"),
            Self::Version(version) => write!(
                f,
                "the recording goes on in format version {version}, newer than {} of this program",
                super::format::VERSION
            ),
        }
    }
}

/// A recording could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("opening recording {file}: {problem}")]
pub struct OpenError {
    /// The file, as it was named.
    pub file: String,
    /// What stands in the way.
    #[source]
    pub problem: OpenProblem,
}

impl OpenError {
    pub(super) fn new(file: &str, problem: OpenProblem) -> Self {
        Self { file: file.to_owned(), problem }
    }
}

/// Why a recording could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenProblem {
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Packed in a way that is not read: its name, and the command that unpacks it.
    #[error("{0} is not read here; plain, gzip and zstd are: unpack it first with `{1}`")]
    Packed(&'static str, &'static str),
    /// The recording's version is newer than this program.
    #[error("line 1: format version {0} is newer than {supported}, the newest that this program reads", supported = super::format::VERSION)]
    Version(u64),
    /// Unpacked, it is larger than the limit on what may be held in memory.
    #[error(
        "it has more than {0} bytes unpacked, the limit on what is held in memory; stream it instead"
    )]
    TooLarge(u64),
}
