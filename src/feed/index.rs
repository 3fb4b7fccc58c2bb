//! The index of a recording: where each of its frames begins, and which times it holds.
//!
//! It stands behind the last frame, in a zstd frame of a kind that every unpacker skips, so a
//! recording with it is unpacked by any tool as one without it. All numbers are little-endian.
//!
//! ```text
//! 5e 2a 4d 18, length (u32)                            the frame that is skipped
//! file, text, lines, records (u64), earliest, latest (i64)   one entry for each frame
//! covered (u64), count (u32), crc-32 (u32), "tgindex2"  the footer, found from the file's end
//! ```
//!
//! `covered` is how many bytes of the file are before the index. If that is not where the index
//! stands, files were joined, and the index is of the last of them only: it is not used. Nor is one
//! whose sum is wrong. A recording without an index, because its recorder was killed or because it
//! is of version 1, is read from its beginning: the index saves time and decides nothing.
//!
//! *Why times as a range per frame:* stamps may be out of order. A frame is passed over exactly if
//! none of its records can be in the range that is asked for, so a range read with the index is the
//! same as one read without.

use std::io::{self, Read, Seek, SeekFrom};

use super::selection::Selection;

/// The kind of skippable frame; others of the sixteen kinds are left to other tools.
const MAGIC: [u8; 4] = [0x5e, 0x2a, 0x4d, 0x18];
const TAG: &[u8; 8] = b"tgindex2";
const ENTRY: usize = 48;
const FOOTER: usize = 24;
/// Frames that an index may have; a larger one is not believed.
const MAX_FRAMES: usize = 1 << 20;

/// One frame of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEntry {
    /// Where it begins in the file, in bytes.
    pub file_offset: u64,
    /// Where its text begins in the unpacked text, in bytes.
    pub text_offset: u64,
    /// Lines before it.
    pub lines: u64,
    /// Records before it.
    pub records: u64,
    /// The earliest receive time in it; above `latest` if it has no record.
    pub earliest: i64,
    /// The latest receive time in it.
    pub latest: i64,
}

impl FrameEntry {
    /// A frame that begins here and has no record yet.
    pub(super) fn new(file_offset: u64, text_offset: u64, lines: u64, records: u64) -> Self {
        let (earliest, latest) = (i64::MAX, i64::MIN);
        Self { file_offset, text_offset, lines, records, earliest, latest }
    }

    pub(super) fn note(&mut self, time: i64) {
        self.earliest = self.earliest.min(time);
        self.latest = self.latest.max(time);
    }
}

/// The frames of a whole recording, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    frames: Vec<FrameEntry>,
    /// Bytes of the file before the index.
    covered: u64,
}

/// What a file has at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// An index that holds for the whole file.
    Good(Index),
    /// None: the recorder was killed, or the file is not of a kind that has one.
    Missing,
    /// An index of the last of several joined files.
    Joined,
    /// Something that was an index once.
    Damaged,
}

/// What reading a selection needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// Where to begin; `None`: nothing of the file is in the range.
    pub(super) start: Option<FrameEntry>,
    /// The record, counted from the file's beginning, behind which nothing can be in the range.
    pub(super) end: Option<u64>,
}

impl Index {
    pub(super) fn new(frames: Vec<FrameEntry>, covered: u64) -> Self {
        Self { frames, covered }
    }

    /// The frames, in the order of the file.
    #[must_use]
    pub fn frames(&self) -> &[FrameEntry] {
        &self.frames
    }

    /// Bytes of the file before the index.
    #[must_use]
    pub fn covered(&self) -> u64 {
        self.covered
    }

    /// Reads the index at a file's end; the file's position is anywhere afterwards.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn read(file: &mut (impl Read + Seek)) -> io::Result<IndexState> {
        let length = file.seek(SeekFrom::End(0))?;
        if length < (FOOTER + 8) as u64 {
            return Ok(IndexState::Missing);
        }
        file.seek(SeekFrom::Start(length - FOOTER as u64))?;
        let mut footer = [0; FOOTER];
        file.read_exact(&mut footer)?;
        if footer[16..] != *TAG {
            return Ok(IndexState::Missing);
        }
        let count = u32_at(&footer, 8) as usize;
        let size = 8 + count * ENTRY + FOOTER;
        if count > MAX_FRAMES || size as u64 > length {
            return Ok(IndexState::Damaged);
        }
        let at = length - size as u64;
        file.seek(SeekFrom::Start(at))?;
        let mut bytes = vec![0; size];
        file.read_exact(&mut bytes)?;
        Ok(Self::parse(&bytes, at))
    }

    /// The whole index frame, found at `at`.
    fn parse(bytes: &[u8], at: u64) -> IndexState {
        let (head, payload) = bytes.split_at(8);
        let sum = u32_at(payload, payload.len() - 12);
        let sound = head[..4] == MAGIC
            && u32_at(head, 4) as usize == payload.len()
            && sum == crc(&payload[..payload.len() - 12]);
        if !sound {
            return IndexState::Damaged;
        }
        let (entries, footer) = payload.split_at(payload.len() - FOOTER);
        let covered = u64_at(footer, 0);
        if covered != at {
            return if covered < at { IndexState::Joined } else { IndexState::Damaged };
        }
        let frames = entries
            .chunks_exact(ENTRY)
            .map(|entry| FrameEntry {
                file_offset: u64_at(entry, 0),
                text_offset: u64_at(entry, 8),
                lines: u64_at(entry, 16),
                records: u64_at(entry, 24),
                earliest: u64_at(entry, 32).cast_signed(),
                latest: u64_at(entry, 40).cast_signed(),
            })
            .collect();
        IndexState::Good(Self { frames, covered })
    }

    /// Appends the index frame.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let payload = self.frames.len() * ENTRY + FOOTER;
        out.extend_from_slice(&MAGIC);
        // An index of more frames than fit is never made: see `Recorder`.
        out.extend_from_slice(&u32::try_from(payload).unwrap_or(u32::MAX).to_le_bytes());
        let start = out.len();
        for frame in &self.frames {
            for number in [frame.file_offset, frame.text_offset, frame.lines, frame.records] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(&frame.earliest.to_le_bytes());
            out.extend_from_slice(&frame.latest.to_le_bytes());
        }
        out.extend_from_slice(&self.covered.to_le_bytes());
        out.extend_from_slice(&u32::try_from(self.frames.len()).unwrap_or(u32::MAX).to_le_bytes());
        let sum = crc(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
        out.extend_from_slice(TAG);
    }

    /// Whether one frame more still fits.
    pub(super) fn fits(frames: usize) -> bool {
        frames < MAX_FRAMES
    }

    /// Which frames a selection's range needs. A frame whose records have no place in it is passed
    /// over at both ends, never in between.
    pub(super) fn reach(&self, selection: &Selection) -> Reach {
        let (from, to) = (selection.start_time(), selection.end_time());
        let begins = |frame: &&FrameEntry| from.is_none_or(|from| frame.latest >= from);
        let ends = |frame: &FrameEntry| to.is_none_or(|to| frame.earliest < to);
        let end = self.frames.iter().rposition(ends).and_then(|last| self.frames.get(last + 1));
        Reach { start: self.frames.iter().find(begins).copied(), end: end.map(|next| next.records) }
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn index() -> Index {
        let mut frames = vec![FrameEntry::new(0, 0, 0, 0), FrameEntry::new(500, 9_000, 41, 40)];
        for time in [300, 100, 200] {
            frames[0].note(time);
        }
        frames[1].note(250);
        frames[1].note(400);
        Index::new(frames, 900)
    }

    fn file(index: &Index) -> Vec<u8> {
        let mut file = vec![7; 900];
        index.write(&mut file);
        file
    }

    fn read(file: &[u8]) -> IndexState {
        Index::read(&mut Cursor::new(file)).unwrap()
    }

    #[test]
    fn an_index_comes_back_as_it_was_written() {
        assert_eq!(read(&file(&index())), IndexState::Good(index()));
    }

    #[test]
    fn a_flipped_byte_of_the_index_makes_it_unused_and_never_wrong() {
        let whole = file(&index());
        for at in 900..whole.len() {
            for flip in 1..=255 {
                let mut bytes = whole.clone();
                bytes[at] ^= flip;
                assert!(
                    !matches!(read(&bytes), IndexState::Good(_)),
                    "byte {at} flipped by {flip}"
                );
            }
        }
    }

    #[test]
    fn a_file_without_an_index_or_with_one_of_its_end_alone_is_told() {
        assert_eq!(read(&[0; 10]), IndexState::Missing);
        assert_eq!(read(&[0; 1000]), IndexState::Missing);
        let whole = file(&index());
        assert_eq!(read(&whole[..whole.len() - 1]), IndexState::Missing);
        assert_eq!(read(&[whole.clone(), whole].concat()), IndexState::Joined);
    }

    #[test]
    fn a_range_needs_no_frame_that_is_wholly_outside_it() {
        let index = index();
        let reach = |from, to| {
            let reach = index.reach(&Selection::default().between(from, to));
            (reach.start.map(|frame| frame.file_offset), reach.end)
        };
        assert_eq!(reach(None, None), (Some(0), None));
        assert_eq!(reach(Some(300), None), (Some(0), None), "its latest is in the range");
        assert_eq!(reach(Some(301), None), (Some(500), None));
        assert_eq!(reach(Some(401), None), (None, None));
        assert_eq!(reach(None, Some(250)), (Some(0), Some(40)), "the second is all behind it");
        assert_eq!(reach(None, Some(251)), (Some(0), None));
    }
}
