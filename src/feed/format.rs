//! The formats of a recording, line by line: one file that both writer and reader go by.
//!
//! # Our own
//!
//! JSON lines, as a rule packed in zstd frames. The first line is the header, each further line a
//! record: when it was received, in nanoseconds since the Unix epoch, and the message.
//!
//! ```text
//! {"tidegate":"recording","version":2}
//! {"at":1723161254087891268,"json":{"stream":"btcusdt@bookTicker","data":{…}}}
//! {"at":1723161254087901268,"text":"pong"}
//! {"at":1723161254087911268,"hex":"00ff"}
//! {"at":1723161254087921268,"mark":"disconnected"}
//! {"tidegate":"end","records":4}
//! ```
//!
//! | member | the message is |
//! |---|---|
//! | `json` | what stands there, byte for byte; always the last member of its line |
//! | `text` | the string's content: a message that is not JSON, or not on one line |
//! | `hex` | the bytes spelled out: a message that is not UTF-8 |
//! | `mark` | none; something happened on the connection: `connected`, `disconnected`; or `gap`: `lost` records are missing here, because the disk could not keep up |
//!
//! The last line says that the recording was closed in good order, and how many records it has:
//! without it, a file cut between two frames would pass for a whole one. Files of version 1 have no
//! such line, and are read as ever. Behind the last frame, in a frame that unpackers skip, stands an
//! index (`index`) by which a reader finds a time without reading what is before it.
//!
//! So a message comes back exactly as it was received, and any JSON tool reads the file. A header
//! may stand again further down, as it does when files are joined. Members and marks that a reader
//! does not know are passed over and counted; a higher version is refused by name.
//!
//! *Why not one escaped string per message:* every quote of a venue's JSON would be escaped, which
//! costs a copy and a walk per message when read, and makes the file unreadable for people.
//!
//! # Others
//!
//! * `<time> <raw text>`: the time is digits (a fraction may follow) since the Unix epoch, its unit
//!   told by the number of digits before the point: up to 11 s, 12 to 14 ms, 15 to 17 µs, from 18
//!   on ns. These are the ranges in which times from 1973 to 2262 lie, so no two units meet.
//! * Plain JSON lines: messages without a time.
//! * The two capture formats of cryptofeed (`capture`).

use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;
use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::capture;
use super::report::BadLine;

/// The newest version of our own format that is read, and the one that is written.
pub const VERSION: u64 = 2;

/// From this version on, a recording has a last line that says so.
pub(super) const VERSION_WITH_END: u64 = 2;

/// One record of a feed, lent by whoever reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// When it was received, in nanoseconds since the Unix epoch, as it stands in the recording,
    /// however odd. `None` where the recording does not tell.
    pub receive_time: Option<i64>,
    /// What it is.
    pub kind: RecordKind,
    /// The message's bytes, as they came from the venue; empty for a mark.
    pub text: &'a [u8],
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A message.
    Message,
    /// Something that happened on the connection.
    Mark(Mark),
}

/// Something that happened on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mark {
    /// The connection to the venue stands.
    Connected,
    /// The connection to the venue broke.
    Disconnected,
    /// Records are missing here: the recorder could not keep up, or could not write.
    Gap {
        /// How many.
        lost: u64,
    },
}

impl Mark {
    /// The word that is written down.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::Gap { .. } => "gap",
        }
    }

    fn named(name: &str, lost: Option<u64>) -> Option<Self> {
        let gap = Self::Gap { lost: lost.unwrap_or(0) };
        [Self::Connected, Self::Disconnected, gap].into_iter().find(|mark| mark.name() == name)
    }
}

/// The format of a recording's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Our own.
    Recording,
    /// `<time> <raw text>`.
    Stamped,
    /// Plain JSON, without a time.
    Plain,
    /// A capture of cryptofeed's, JSON lines.
    Cryptofeed,
    /// An older capture of cryptofeed's, text lines.
    CryptofeedText,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recording => "tidegate recording",
            Self::Stamped => "time and raw text",
            Self::Plain => "plain JSON lines",
            Self::Cryptofeed => "cryptofeed capture",
            Self::CryptofeedText => "cryptofeed capture (text)",
        })
    }
}

impl Format {
    /// Tells the format by a file's first line, if that line belongs to any.
    pub(super) fn sniff(line: &[u8]) -> Option<Self> {
        let spelled_out = |line: &[u8]| {
            line.len() < 1024 && serde_json::from_slice::<Spelled>(line).is_ok_and(|s| s.ours())
        };
        match line.first()? {
            b'{' if own_record(line).is_some() || spelled_out(line) => Some(Self::Recording),
            b'{' if capture::is_json(line) => Some(Self::Cryptofeed),
            b'{' | b'[' => Some(Self::Plain),
            b'0'..=b'9' if stamped(line).is_ok() => Some(Self::Stamped),
            b'w' | b'h' | b'0'..=b'9' if capture::is_text(line) => Some(Self::CryptofeedText),
            _ => None,
        }
    }
}

/// What one line holds. Ranges are of the line's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// A message that stands in the line as it is.
    Here(Option<i64>, Range<usize>),
    /// A message that had to be decoded; it is in the scratch buffer.
    Decoded(Option<i64>),
    Mark(Option<i64>, Mark),
    Header(u64),
    /// The end of a recording, and how many records it says it has.
    End(u64),
    /// No message: a request, an answer over HTTP, or of a kind that this version does not know.
    Unknown,
}

/// Appends the header line.
pub(super) fn write_header(out: &mut Vec<u8>) {
    put(out, format_args!("{{\"tidegate\":\"recording\",\"version\":{VERSION}}}\n"));
}

/// Appends a message's line.
pub(super) fn write_message(out: &mut Vec<u8>, receive_time: i64, text: &[u8]) {
    put(out, format_args!("{{\"at\":{receive_time},"));
    match std::str::from_utf8(text) {
        Ok(_) if is_one_line_of_json(text) => {
            out.extend_from_slice(b"\"json\":");
            out.extend_from_slice(text);
        }
        Ok(string) => {
            out.extend_from_slice(b"\"text\":");
            // Writing a string into memory cannot fail.
            let _ = serde_json::to_writer(&mut *out, string);
        }
        Err(_) => {
            out.extend_from_slice(b"\"hex\":\"");
            for byte in text {
                put(out, format_args!("{byte:02x}"));
            }
            out.push(b'"');
        }
    }
    out.extend_from_slice(b"}\n");
}

/// Appends a mark's line.
pub(super) fn write_mark(out: &mut Vec<u8>, receive_time: i64, mark: Mark) {
    put(out, format_args!("{{\"at\":{receive_time},\"mark\":\"{}\"", mark.name()));
    if let Mark::Gap { lost } = mark {
        put(out, format_args!(",\"lost\":{lost}"));
    }
    out.extend_from_slice(b"}\n");
}

/// Appends the last line.
pub(super) fn write_end(out: &mut Vec<u8>, records: u64) {
    put(out, format_args!("{{\"tidegate\":\"end\",\"records\":{records}}}\n"));
}

/// Reads a line of our own format. What does not stand in the line as it is goes into `scratch`.
#[inline]
pub(super) fn read_own(line: &[u8], scratch: &mut Vec<u8>) -> Result<Content, BadLine> {
    if let Some((time, text)) = own_record(line) {
        return Ok(Content::Here(Some(time), text));
    }
    read_spelled(line, scratch).ok_or(BadLine::NotARecord)
}

/// Reads a `<time> <raw text>` line.
#[inline]
pub(super) fn read_stamped(line: &[u8]) -> Result<Content, BadLine> {
    let (time, text) = stamped(line)?;
    Ok(Content::Here(time, text..line.len()))
}

/// Whether the bytes are one whole JSON object or array, so that a line that holds them lost
/// nothing even if its end is missing: no proper beginning of an object is an object.
pub(super) fn is_whole_json(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'{' | b'[')) && serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

fn put(out: &mut Vec<u8>, what: fmt::Arguments<'_>) {
    // Writing into memory cannot fail.
    let _ = out.write_fmt(what);
}

fn is_one_line_of_json(text: &[u8]) -> bool {
    is_whole_json(text)
        && matches!(text.last(), Some(b'}' | b']'))
        && memchr::memchr2(b'\n', b'\r', text).is_none()
}

/// The fast path of our own format: `{"at":<ns>,"json":<message>}` exactly as we write it.
#[inline]
fn own_record(line: &[u8]) -> Option<(i64, Range<usize>)> {
    const BEFORE: &[u8] = b"{\"at\":";
    const BETWEEN: &[u8] = b",\"json\":";
    let rest = line.strip_prefix(BEFORE)?;
    let negative = rest.first() == Some(&b'-');
    let number = &rest[usize::from(negative)..];
    let (magnitude, digits) = leading_digits(number);
    if digits == 0 || !number[digits..].starts_with(BETWEEN) {
        return None;
    }
    let time = i64::try_from(magnitude?).ok()?;
    let start = BEFORE.len() + usize::from(negative) + digits + BETWEEN.len();
    let end = line.len().checked_sub(1).filter(|&end| line[end] == b'}' && end > start)?;
    Some((if negative { -time } else { time }, start..end))
}

/// A line of our own format, whatever its spacing and the order of its members.
#[derive(Deserialize)]
struct Spelled<'a> {
    #[serde(borrow)]
    tidegate: Option<Cow<'a, str>>,
    version: Option<u64>,
    at: Option<i64>,
    #[serde(borrow)]
    json: Option<&'a RawValue>,
    text: Option<String>,
    hex: Option<String>,
    mark: Option<String>,
    lost: Option<u64>,
    records: Option<u64>,
}

impl Spelled<'_> {
    /// Whether such a first line says that the file is a recording of ours: the header, or a
    /// record (of a file that lost its header).
    fn ours(&self) -> bool {
        let said = self.tidegate.as_deref() == Some("recording");
        let record = self.json.is_some() || self.text.is_some() || self.hex.is_some();
        said || (self.at.is_some() && (record || self.mark.is_some()))
    }
}

#[cold]
fn read_spelled(line: &[u8], scratch: &mut Vec<u8>) -> Option<Content> {
    let line: Spelled = serde_json::from_slice(line).ok()?;
    if line.tidegate.as_deref() == Some("recording") {
        return Some(Content::Header(line.version?));
    }
    if line.tidegate.as_deref() == Some("end") {
        return Some(Content::End(line.records?));
    }
    let time = Some(line.at?);
    if let Some(mark) = line.mark {
        let mark = Mark::named(&mark, line.lost);
        return Some(mark.map_or(Content::Unknown, |mark| Content::Mark(time, mark)));
    }
    scratch.clear();
    if let Some(json) = line.json {
        scratch.extend_from_slice(json.get().as_bytes());
    } else if let Some(text) = line.text {
        scratch.extend_from_slice(text.as_bytes());
    } else if let Some(hex) = line.hex {
        from_hex(&hex, scratch)?;
    } else {
        return Some(Content::Unknown);
    }
    Some(Content::Decoded(time))
}

fn from_hex(hex: &str, out: &mut Vec<u8>) -> Option<()> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    for [high, low] in pairs {
        out.push(digit(*high)? << 4 | digit(*low)?);
    }
    Some(())
}

/// The time of a stamped line (`None`: too large for a time) and where its text starts.
#[inline]
fn stamped(line: &[u8]) -> Result<(Option<i64>, usize), BadLine> {
    let (time, at) = decimal_time(line).ok_or(BadLine::NoTime)?;
    match line.get(at) {
        Some(b' ' | b'\t') => {}
        Some(_) => return Err(BadLine::NoTime),
        None => return Err(BadLine::NoText),
    }
    let blanks = line[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if at + blanks == line.len() {
        return Err(BadLine::NoText);
    }
    Ok((time, at + blanks))
}

/// The time that `bytes` start with, in ns (inner `None`: too large for a time), and how long it
/// is. `None` when they do not start with one.
#[inline]
pub(super) fn decimal_time(bytes: &[u8]) -> Option<(Option<i64>, usize)> {
    let (number, digits) = leading_digits(bytes);
    let unit: u64 = match digits {
        0 => return None,
        1..=11 => 1_000_000_000,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        _ => 1,
    };
    let mut nanos = number.and_then(|number| number.checked_mul(unit));
    let mut at = digits;
    if bytes.get(at) == Some(&b'.') {
        let (fraction, length) = fraction(&bytes[at + 1..], unit);
        nanos = nanos.and_then(|nanos| nanos.checked_add(fraction));
        at += 1 + length;
    }
    Some((nanos.and_then(|nanos| i64::try_from(nanos).ok()), at))
}

/// The number that `bytes` start with (`None`: above 64 bits) and how many digits it has.
#[inline]
fn leading_digits(bytes: &[u8]) -> (Option<u64>, usize) {
    let mut number = Some(0_u64);
    let mut digits = 0;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        digits += 1;
        // Nineteen digits cannot overflow.
        number = if digits <= 19 {
            number.map(|number| number * 10 + u64::from(digit))
        } else {
            number.and_then(|n| n.checked_mul(10)).and_then(|n| n.checked_add(u64::from(digit)))
        };
    }
    (number, digits)
}

/// A decimal fraction of `unit` (a power of ten), rounded down, and how many digits it has.
fn fraction(bytes: &[u8], mut unit: u64) -> (u64, usize) {
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold((0, 0), |(sum, length), digit| {
        unit /= 10;
        (sum + u64::from(digit - b'0') * unit, length + 1)
    })
}

#[cfg(test)]
mod tests;
