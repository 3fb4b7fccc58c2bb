//! Lines out of a stream of bytes, within a bound.
//!
//! A [`Window`] holds the part of a text that is being looked at. It is filled from outside (a
//! file, a socket) or is the whole text at once, and answers one line after the other as a range of
//! its bytes, so that nothing is copied or allocated per line. A line longer than the bound is
//! walked over, not kept: it comes out as [`Found::TooLong`], once.

use std::ops::Range;

use bytes::Bytes;

/// The longest line that is kept, in bytes, without its end: 16 MiB.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// What the window grows by, and how much it asks for at a time.
const CHUNK: usize = 256 << 10;

/// A line found in the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A line with its end; the range leaves the `\n` out and holds until the window is filled again.
    Line(Range<usize>),
    /// A line above the bound; its bytes are gone.
    TooLong,
}

enum Store {
    Own(Vec<u8>),
    Shared(Bytes),
}

/// See the module.
pub(super) struct Window {
    store: Store,
    /// First byte that no line has taken.
    start: usize,
    /// First byte not yet searched for a line's end.
    scanned: usize,
    /// Behind the last byte that is filled.
    end: usize,
    /// Position in the whole text of the window's first byte.
    base: u64,
    /// Inside a line that was found too long.
    skipping: bool,
    max_line: usize,
}

impl Window {
    /// An empty window, to be filled by [`space`](Self::space) and [`filled`](Self::filled).
    pub(super) fn new(max_line: usize) -> Self {
        Self::over(Store::Own(Vec::new()), 0, max_line)
    }

    /// A window that holds the whole text.
    pub(super) fn whole(text: Bytes, max_line: usize) -> Self {
        let end = text.len();
        Self::over(Store::Shared(text), end, max_line)
    }

    fn over(store: Store, end: usize, max_line: usize) -> Self {
        Self { store, start: 0, scanned: 0, end, base: 0, skipping: false, max_line }
    }

    /// The bytes that ranges refer to.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.store {
            Store::Own(buffer) => buffer,
            Store::Shared(text) => text,
        }
    }

    /// The next line, or `None` when more bytes are needed.
    #[inline]
    pub(super) fn line(&mut self) -> Option<Found> {
        let Some(length) = memchr::memchr(b'\n', &self.bytes()[self.scanned..self.end]) else {
            self.scanned = self.end;
            if self.end - self.start > self.max_line {
                self.skip_to_end();
            }
            return None;
        };
        let line = self.start..self.scanned + length;
        self.start = line.end + 1;
        self.scanned = self.start;
        if std::mem::take(&mut self.skipping) || line.len() > self.max_line {
            return Some(Found::TooLong);
        }
        Some(Found::Line(line))
    }

    /// What is left when no more bytes come: a line without its end, or nothing.
    pub(super) fn rest(&mut self) -> Option<Found> {
        let rest = self.start..self.end;
        self.start = self.end;
        self.scanned = self.end;
        if std::mem::take(&mut self.skipping) || rest.len() > self.max_line {
            return Some(Found::TooLong);
        }
        (!rest.is_empty()).then_some(Found::Line(rest))
    }

    /// Room for more bytes (never empty). Ranges answered so far are void afterwards.
    pub(super) fn space(&mut self) -> &mut [u8] {
        if let Store::Shared(text) = &self.store {
            self.store = Store::Own(text.to_vec());
        }
        let Store::Own(buffer) = &mut self.store else { return &mut [] };
        if self.start > 0 {
            buffer.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.scanned -= self.start;
            self.start = 0;
        }
        // At least half a chunk of room, so that a line is not fetched in tiny pieces. The bound
        // holds: whatever is above `max_line` has been let go by `line`.
        if buffer.len() - self.end < CHUNK / 2 {
            let wanted = (self.end + CHUNK).max(buffer.len());
            buffer.resize(wanted, 0);
        }
        &mut buffer[self.end..]
    }

    /// Says that the first `count` bytes of the last [`space`](Self::space) were written.
    pub(super) fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes().len());
    }

    /// Adds bytes.
    pub(super) fn put(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = bytes.len().min(space.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// How many bytes are in the window that no line has taken.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// The first byte of the window that no line has taken.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Behind the last byte of the window.
    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Everything in the window that no line has taken.
    pub(super) fn into_bytes(self) -> Bytes {
        match self.store {
            Store::Own(mut buffer) => {
                buffer.truncate(self.end);
                buffer.shrink_to_fit();
                Bytes::from(buffer).slice(self.start..)
            }
            Store::Shared(text) => text.slice(self.start..self.end),
        }
    }

    /// Forgets what is in the window: a new connection starts with a new line.
    pub(super) fn clear(&mut self) {
        let _ = self.rest();
    }

    /// Position in the whole text of the byte at `index` of the window.
    pub(super) fn offset(&self, index: usize) -> u64 {
        self.base + index as u64
    }

    #[cold]
    fn skip_to_end(&mut self) {
        self.skipping = true;
        self.start = self.end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8], piece: usize, max_line: usize) -> Vec<Option<Vec<u8>>> {
        let mut window = Window::new(max_line);
        let mut found = Vec::new();
        let keep = |window: &Window, line: Found| match line {
            Found::Line(range) => Some(window.bytes()[range].to_vec()),
            Found::TooLong => None,
        };
        for part in text.chunks(piece) {
            window.space()[..part.len()].copy_from_slice(part);
            window.filled(part.len());
            while let Some(line) = window.line() {
                found.push(keep(&window, line));
            }
        }
        if let Some(line) = window.rest() {
            found.push(keep(&window, line));
        }
        found
    }

    #[test]
    fn a_text_gives_the_same_lines_in_pieces_of_any_size() {
        let text = b"one\n\nthree is longer\nfour\nlast";
        let whole = lines(text, text.len(), 100);
        assert_eq!(whole.len(), 5);
        assert_eq!(whole[1], Some(Vec::new()));
        assert_eq!(whole[4], Some(b"last".to_vec()));
        for piece in 1..text.len() {
            assert_eq!(lines(text, piece, 100), whole, "pieces of {piece}");
        }
    }

    #[test]
    fn a_line_above_the_bound_comes_out_once_and_its_neighbours_whole() {
        let mut text = b"before\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', 50));
        text.extend_from_slice(b"\nexactly ten\nafter\n");
        for piece in 1..text.len() {
            let found = lines(&text, piece, 11);
            assert_eq!(found.len(), 4, "pieces of {piece}");
            assert_eq!(found[1], None);
            assert_eq!(found[2].as_deref(), Some(&b"exactly ten"[..]));
            assert_eq!(found[3].as_deref(), Some(&b"after"[..]));
        }
    }

    #[test]
    fn a_line_above_the_bound_does_not_stay_in_memory() {
        let mut window = Window::new(1000);
        for _ in 0..4000 {
            window.space()[..1000].fill(b'x');
            window.filled(1000);
            assert_eq!(window.line(), None);
        }
        assert!(window.bytes().len() <= 1000 + 2 * CHUNK);
        assert_eq!(window.rest(), Some(Found::TooLong));
    }

    #[test]
    fn offsets_are_those_of_the_whole_text() {
        let mut window = Window::new(100);
        let mut at = 0;
        for number in 0..5000_u32 {
            let line = format!("line {number}\n");
            window.space()[..line.len()].copy_from_slice(line.as_bytes());
            window.filled(line.len());
            let Some(Found::Line(range)) = window.line() else { panic!("a line was put in") };
            assert_eq!(window.offset(range.start), at);
            at += line.len() as u64;
        }
    }
}
