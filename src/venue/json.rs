//! A borrowed scanner over JSON text.
//!
//! It gives *spans* (where a value stands and of what kind it is) and builds nothing: a codec looks
//! at a handful of a message's members, and each of those must be read in its own way (a price
//! never as a float). Everything is checked against the grammar on the way, what is skipped too.
//!
//! A general reader into a borrowed struct was tried first: it needs a type for each event before
//! the event's name is known, keys come in any order, and it costs about twice as much per message
//! (the `ingest` bench shows both). Its verdict is the oracle of this one's tests.
//!
//! 1. A span lies within the message, and its kind is that of the grammar at its start.
//! 2. The scanner only moves forward; a pass costs time in proportion to the text.
//! 3. Text is not checked for UTF-8 here; who needs a `str` checks it.

/// Where a value stands in the message. Of text, the span is what stands between the quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) kind: Kind,
}

impl Span {
    /// A span of nothing, to fill arrays with.
    pub(super) const NONE: Self = Self { start: 0, end: 0, kind: Kind::Null };

    /// The bytes of the span.
    #[inline]
    pub(super) fn of(self, message: &[u8]) -> &[u8] {
        message.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// What kind of value a span holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Number,
    /// Text without escapes: its bytes are its meaning.
    Text,
    /// Text with escapes: see [`unescape`].
    Escaped,
    Array,
    Object,
}

/// Why the text is not JSON that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The grammar is broken.
    Malformed,
    /// Longer or nested deeper than is read.
    TooLarge,
}

/// Most levels of arrays and objects within a value.
pub(super) const MAX_DEPTH: u32 = 128;

/// A position in a message.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// At the start of a message, whose length must fit 32 bits.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// At `position` of a message.
    pub(super) fn from(bytes: &'a [u8], position: u32) -> Self {
        Self { bytes, at: position as usize }
    }

    /// The next byte after white space; 0, which no JSON holds outside text, at the end.
    #[inline]
    pub(super) fn next_byte(&mut self) -> u8 {
        loop {
            match self.peek() {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return byte,
            }
        }
    }

    /// Passes `text` if it comes next, to the byte; else nothing, and `false`.
    #[inline]
    pub(super) fn pass(&mut self, text: &[u8]) -> bool {
        let comes = self.bytes.get(self.at..self.at + text.len()) == Some(text);
        if comes {
            self.at += text.len();
        }
        comes
    }

    /// Steps into an object, to be read by [`key`](Self::key) and [`value`](Self::value).
    #[inline]
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        self.expect(b'{')
    }

    /// The next key of the object stepped into, its colon passed; `None` once it is closed.
    /// `first` must be true for the first key and false after.
    #[inline]
    pub(super) fn key(&mut self, first: bool) -> Result<Option<Span>, Fault> {
        match self.next_byte() {
            b'}' => {
                self.at += 1;
                return Ok(None);
            }
            b',' if !first => {
                self.at += 1;
                self.next_byte();
            }
            _ if first => {}
            _ => return Err(Fault::Malformed),
        }
        let key = self.text()?;
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Steps into an array, to be read by [`element`](Self::element) and [`value`](Self::value).
    #[inline]
    pub(super) fn enter_array(&mut self) -> Result<(), Fault> {
        self.expect(b'[')
    }

    /// Whether the array stepped into has a further element, before which the scanner then stands;
    /// passes the closing bracket if not. `first` must be true for the first element and false
    /// after.
    #[inline]
    pub(super) fn element(&mut self, first: bool) -> Result<bool, Fault> {
        match self.next_byte() {
            b']' => {
                self.at += 1;
                Ok(false)
            }
            b',' if !first => {
                self.at += 1;
                Ok(true)
            }
            _ if first => Ok(true),
            _ => Err(Fault::Malformed),
        }
    }

    /// Passes a key of one letter and its colon, written without white space before or between, as
    /// nearly all keys are; `None`, and nothing passed, if anything else comes. `first` as for
    /// [`key`](Self::key).
    #[inline]
    pub(super) fn letter_key(&mut self, first: bool) -> Option<u8> {
        let at = if first {
            self.at
        } else if self.peek() == b',' {
            self.at + 1
        } else {
            return None;
        };
        match self.bytes.get(at..)?.first_chunk() {
            Some(&[b'"', letter, b'"', b':']) if letter.is_ascii_alphabetic() => {
                self.at = at + 4;
                Some(letter)
            }
            _ => None,
        }
    }

    /// Passes the next value, whatever it is.
    #[inline]
    pub(super) fn value(&mut self) -> Result<Span, Fault> {
        // Most values are text right behind the colon.
        if self.peek() == b'"' { self.text() } else { self.other_value() }
    }

    fn other_value(&mut self) -> Result<Span, Fault> {
        match self.next_byte() {
            b'"' => self.text(),
            b'-' | b'0'..=b'9' => self.number(),
            b'{' => self.container(Kind::Object),
            b'[' => self.container(Kind::Array),
            b'n' => self.word(b"null", Kind::Null),
            b't' => self.word(b"true", Kind::Bool),
            b'f' => self.word(b"false", Kind::Bool),
            _ => Err(Fault::Malformed),
        }
    }

    /// Makes sure that nothing but white space follows.
    #[inline]
    pub(super) fn finish(&mut self) -> Result<(), Fault> {
        self.next_byte();
        if self.at == self.bytes.len() { Ok(()) } else { Err(Fault::Malformed) }
    }

    #[inline]
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.next_byte() == byte {
            self.at += 1;
            Ok(())
        } else {
            Err(Fault::Malformed)
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a message's length fits 32 bits")]
    fn span(start: usize, end: usize, kind: Kind) -> Span {
        Span { start: start as u32, end: end as u32, kind }
    }

    #[inline]
    fn text(&mut self) -> Result<Span, Fault> {
        if self.peek() != b'"' {
            return Err(Fault::Malformed);
        }
        let start = self.at + 1;
        let end = plain_end(self.bytes, start);
        if self.bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Self::span(start, end, Kind::Text));
        }
        self.escaped_text(start, end)
    }

    /// The rest of a text from its first escape (or fault) on.
    #[cold]
    fn escaped_text(&mut self, start: usize, from: usize) -> Result<Span, Fault> {
        self.at = from;
        loop {
            self.at = plain_end(self.bytes, self.at);
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    return Ok(Self::span(start, self.at - 1, Kind::Escaped));
                }
                b'\\' => {
                    self.at += 1;
                    match self.peek() {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                        b'u' if hex4(self.bytes, self.at + 1).is_some() => self.at += 5,
                        _ => return Err(Fault::Malformed),
                    }
                }
                _ => return Err(Fault::Malformed),
            }
        }
    }

    #[inline]
    fn number(&mut self) -> Result<Span, Fault> {
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        if self.peek() == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Self::span(start, self.at, Kind::Number))
    }

    /// At least one digit.
    #[inline]
    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        // Ids and times have thirteen digits and more.
        while let Some(eight) = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk)
            && all_digits(u64::from_le_bytes(*eight))
        {
            self.at += 8;
        }
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start { Err(Fault::Malformed) } else { Ok(()) }
    }

    fn word(&mut self, word: &[u8], kind: Kind) -> Result<Span, Fault> {
        let start = self.at;
        if self.bytes.get(start..start + word.len()) != Some(word) {
            return Err(Fault::Malformed);
        }
        self.at += word.len();
        Ok(Self::span(start, self.at, kind))
    }

    /// Passes an array or object without recursion: one bit a level says which of the two it is.
    fn container(&mut self, kind: Kind) -> Result<Span, Fault> {
        let start = self.at;
        let mut objects: u128 = 0;
        let mut depth: u32 = 0;
        let mut opening = kind;
        'open: loop {
            if depth == MAX_DEPTH {
                return Err(Fault::TooLarge);
            }
            depth += 1;
            objects = objects << 1 | u128::from(opening == Kind::Object);
            self.at += 1;
            let mut inside = opening == Kind::Object;
            let mut first = true;
            loop {
                let byte = self.next_byte();
                if byte == if inside { b'}' } else { b']' } {
                    self.at += 1;
                    depth -= 1;
                    if depth == 0 {
                        return Ok(Self::span(start, self.at, kind));
                    }
                    objects >>= 1;
                    inside = objects & 1 == 1;
                    first = false;
                    continue;
                }
                if !first {
                    if byte != b',' {
                        return Err(Fault::Malformed);
                    }
                    self.at += 1;
                    self.next_byte();
                }
                first = false;
                if inside {
                    self.text()?;
                    self.expect(b':')?;
                }
                match self.next_byte() {
                    // The most of any order book: a price or a size.
                    b'"' => {
                        self.text()?;
                    }
                    b'[' if self.level() => {}
                    b'[' => {
                        opening = Kind::Array;
                        continue 'open;
                    }
                    b'{' => {
                        opening = Kind::Object;
                        continue 'open;
                    }
                    _ => {
                        self.value()?;
                    }
                }
            }
        }
    }

    /// Passes a level of an order book, `["price","size"]` without white space; nothing, and
    /// `false`, if anything else comes.
    #[inline]
    fn level(&mut self) -> bool {
        let bytes = self.bytes;
        let starts = |at: usize, with: &[u8]| bytes.get(at..at + with.len()) == Some(with);
        if !starts(self.at, b"[\"") {
            return false;
        }
        let price = plain_end(bytes, self.at + 2);
        if !starts(price, b"\",\"") {
            return false;
        }
        let size = plain_end(bytes, price + 3);
        if !starts(size, b"\"]") {
            return false;
        }
        self.at = size + 2;
        true
    }
}

/// Appends the meaning of escaped text. `None` if an escape stands for no character (half of a
/// surrogate pair).
pub(super) fn unescape(raw: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        if byte != b'\\' {
            out.push(byte);
            at += 1;
            continue;
        }
        let plain = match raw.get(at + 1)? {
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let mut code = u32::from(hex4(raw, at + 2)?);
                at += 6;
                if (0xD800..0xDC00).contains(&code) && raw.get(at..at + 2) == Some(b"\\u") {
                    let low = u32::from(hex4(raw, at + 2)?);
                    code = 0x1_0000 + ((code - 0xD800) << 10) + low.checked_sub(0xDC00)?;
                    at += 6;
                    if low > 0xDFFF {
                        return None;
                    }
                }
                let mut utf8 = [0; 4];
                out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut utf8).as_bytes());
                continue;
            }
            &same => same,
        };
        out.push(plain);
        at += 2;
    }
    Some(())
}

/// Four hexadecimal digits.
fn hex4(bytes: &[u8], at: usize) -> Option<u16> {
    let digits: &[u8; 4] = bytes.get(at..)?.first_chunk()?;
    let mut value = 0;
    for &digit in digits {
        value = value << 4 | u16::try_from(char::from(digit).to_digit(16)?).ok()?;
    }
    Some(value)
}

const ONES: u64 = u64::from_ne_bytes([1; 8]);
const TOPS: u64 = ONES << 7;

/// Whether all eight bytes are digits: the high half of each must be 3, and still be 3 after adding
/// 6. No sum carries into the next byte where the first holds.
#[inline]
fn all_digits(word: u64) -> bool {
    let halves = |word: u64| word & (ONES * 0xF0);
    halves(word) == ONES * 0x30 && halves(word.wrapping_add(ONES * 6)) == ONES * 0x30
}

/// Where the run of plain text from `at` ends: at a quote, a backslash, a control character, or the
/// end of the message. Eight bytes at a time.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*eight);
        let quotes = word ^ (ONES * b'"' as u64);
        let backslashes = word ^ (ONES * b'\\' as u64);
        // The top bit of each byte that is zero (or, in the last, below a space). A borrow can only
        // mark bytes *above* one that is rightly marked, so the lowest mark is always right.
        let stops = (quotes.wrapping_sub(ONES) & !quotes)
            | (backslashes.wrapping_sub(ONES) & !backslashes)
            | (word.wrapping_sub(ONES * 0x20) & !word);
        if stops & TOPS != 0 {
            return at + (stops & TOPS).trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while bytes.get(at).is_some_and(|&byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests;
