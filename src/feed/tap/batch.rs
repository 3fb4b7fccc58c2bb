//! Records one behind the other in one buffer, on their way from a feed to its recorder.

use super::super::format::Mark;

/// A record as it is put in and comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry<'a> {
    Message(i64, &'a [u8]),
    Mark(i64, Mark),
}

/// A batch is handed on before it has more bytes than this, if it has anything. Large, because handing
/// on wakes the recorder's thread: a fourth of this, and the wakes cost the feed as much as the copies;
/// not larger, so that what is written here does not drive out of the cache what the feed works with.
pub(super) const BATCH_BYTES: usize = 256 << 10;

/// Time, kind, and a number: the text's length, or what a gap has lost.
const HEAD: usize = 8 + 1 + 8;

const MESSAGE: u8 = 0;
const CONNECTED: u8 = 1;
const DISCONNECTED: u8 = 2;
const GAP: u8 = 3;

impl Entry<'_> {
    /// Bytes that it takes in a batch.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Message(_, text) => HEAD + text.len(),
            Self::Mark(..) => HEAD,
        }
    }

    pub(super) fn time(&self) -> i64 {
        match *self {
            Self::Message(time, _) | Self::Mark(time, _) => time,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Batch(Vec<u8>);

impl Batch {
    /// An empty one with its room made, so that a record is a copy and nothing else.
    pub(super) fn roomy() -> Self {
        Self(Vec::with_capacity(BATCH_BYTES))
    }

    /// Whether a message has its place without a batch being handed on.
    #[inline]
    pub(super) fn fits(&self, text: &[u8]) -> bool {
        self.0.len() + HEAD + text.len() <= BATCH_BYTES
    }

    #[inline]
    pub(super) fn put_message(&mut self, time: i64, text: &[u8]) {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&time.to_ne_bytes());
        head[8] = MESSAGE;
        head[9..].copy_from_slice(&(text.len() as u64).to_ne_bytes());
        self.0.extend_from_slice(&head);
        self.0.extend_from_slice(text);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn put(&mut self, entry: Entry<'_>) {
        let (time, kind, number) = match entry {
            Entry::Message(time, text) => return self.put_message(time, text),
            Entry::Mark(time, Mark::Connected) => (time, CONNECTED, 0),
            Entry::Mark(time, Mark::Disconnected) => (time, DISCONNECTED, 0),
            Entry::Mark(time, Mark::Gap { lost }) => (time, GAP, lost),
        };
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&time.to_ne_bytes());
        head[8] = kind;
        head[9..].copy_from_slice(&number.to_ne_bytes());
        self.0.extend_from_slice(&head);
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (time, behind) = rest.split_first_chunk::<8>()?;
            let (kind, behind) = behind.split_first()?;
            let (number, behind) = behind.split_first_chunk::<8>()?;
            let (time, number) = (i64::from_ne_bytes(*time), u64::from_ne_bytes(*number));
            let length = if *kind == MESSAGE { usize::try_from(number).ok()? } else { 0 };
            let (text, behind) = behind.split_at_checked(length)?;
            rest = behind;
            Some(match *kind {
                MESSAGE => Entry::Message(time, text),
                CONNECTED => Entry::Mark(time, Mark::Connected),
                DISCONNECTED => Entry::Mark(time, Mark::Disconnected),
                _ => Entry::Mark(time, Mark::Gap { lost: number }),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_as_they_were_put_in() {
        let entries = [
            Entry::Mark(-5, Mark::Connected),
            Entry::Message(i64::MAX, b"{\"a\":1}"),
            Entry::Message(0, b""),
            Entry::Message(1, b"\xff\x00"),
            Entry::Mark(2, Mark::Gap { lost: u64::MAX }),
            Entry::Mark(i64::MIN, Mark::Disconnected),
        ];
        let mut batch = Batch::roomy();
        let mut length = 0;
        for entry in entries {
            batch.put(entry);
            length += entry.len();
            assert_eq!(batch.len(), length);
        }
        assert_eq!(batch.entries().collect::<Vec<_>>(), entries);
    }
}
