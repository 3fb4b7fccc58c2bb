//! Whether a recording is whole, and if not, where it is damaged and what of it is good.
//!
//! A zstd file is walked frame by frame: a frame whose checksum is right is *proven*, and so are its
//! records. What can be read behind the last proven frame is good as far as anybody can tell (the
//! end of a recording whose recorder was killed), but nothing vouches for it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::format::{Format, Mark, RecordKind};
use super::index::{Index, IndexState};
use super::reader::Reader;
use super::report::{Damage, DamageKind, OpenError, Tally};
use super::unpack::Compression;

/// What is known of a recording.
#[derive(Clone, Debug)]
pub struct Verification {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// How it is packed.
    pub compression: Compression,
    /// The format of its lines, if any.
    pub format: Option<Format>,
    /// Counts of what can be read.
    pub tally: Tally,
    /// Records that marks say are missing.
    pub gaps_lost: u64,
    /// The index at its end.
    pub index: IndexState,
    /// Frames whose checksum is right; `None` for a file that is not zstd.
    pub frames: Option<u64>,
    /// The file is proven up to here, in bytes; for a file that is not zstd, 0 or all of it.
    pub proven_bytes: u64,
    /// Records in the proven part. What was read beyond them is unproven.
    pub proven_records: u64,
    /// Where the frame that is not good begins and how far it was read, in bytes of the file.
    pub broken_frame: Option<(u64, u64)>,
    /// Where the file stops being readable.
    pub damage: Option<Damage>,
}

impl Verification {
    /// Records that can be read.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.tally.messages + self.tally.marks
    }

    /// Whether nothing at all is wrong with it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damage.is_none() && self.tally.bad_lines() == 0 && self.index != IndexState::Damaged
    }

    /// Whether only its end is torn off, so that all that can be read is worth keeping.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.damage.as_ref().is_some_and(|damage| {
            matches!(
                damage.kind,
                DamageKind::Truncated | DamageKind::Unclosed | DamageKind::TornLine
            )
        })
    }

    /// How many records a repair keeps: all that can be read of a torn file, the proven ones of a
    /// corrupt one.
    #[must_use]
    pub fn kept_by_repair(&self) -> u64 {
        if self.damage.is_none() || self.is_torn() { self.records() } else { self.proven_records }
    }
}

/// Reads all of a file. `visit` is told now and then how many bytes of it have been used, of twice
/// its length: it is read once for its frames and once for its records.
///
/// # Errors
///
/// [`OpenError`] when it cannot be opened, or read for its frames.
pub fn verify(path: &Path, mut visit: impl FnMut(u64)) -> Result<Verification, OpenError> {
    let refused = |error: io::Error| OpenError::new(&path.display().to_string(), error.into());
    let mut file = File::open(path).map_err(refused)?;
    let file_bytes = file.metadata().map_err(refused)?.len();
    let index = Index::read(&mut file).map_err(refused)?;
    let mut reader = Reader::open(path)?;
    let frames = match reader.compression() {
        Compression::Zstd => {
            let file = File::open(path).map_err(refused)?;
            Some(Frames::walk(file, &mut visit).map_err(refused)?)
        }
        Compression::None | Compression::Gzip => None,
    };
    let proven_text = frames.as_ref().map(|frames| frames.text);
    let (mut proven_records, mut gaps_lost) = (0, 0);
    let mut records = 0_u64;
    while reader.advance() {
        records += 1;
        if proven_text.is_some_and(|proven| reader.text_position() <= proven) {
            proven_records = records;
        }
        if let Some(RecordKind::Mark(Mark::Gap { lost })) = reader.record().map(|r| r.kind) {
            gaps_lost += lost;
        }
        if records.is_multiple_of(4096) {
            visit(file_bytes + reader.file_offset());
        }
    }
    let whole = reader.damage().is_none();
    let plain_proven = if whole { (file_bytes, records) } else { (0, 0) };
    Ok(Verification {
        file_bytes,
        compression: reader.compression(),
        format: reader.format(),
        tally: *reader.tally(),
        gaps_lost,
        index,
        frames: frames.as_ref().map(|frames| frames.good),
        proven_bytes: frames.as_ref().map_or(plain_proven.0, |frames| frames.end),
        proven_records: if frames.is_some() { proven_records } else { plain_proven.1 },
        broken_frame: frames.and_then(|frames| frames.broken),
        damage: reader.damage().cloned(),
    })
}

/// What a walk over zstd frames has found.
struct Frames {
    /// Frames of data that are whole and whose checksum is right.
    good: u64,
    /// Where the last good frame ends, in bytes of the file.
    end: u64,
    /// Where its text ends.
    text: u64,
    broken: Option<(u64, u64)>,
}

impl Frames {
    fn walk(file: File, visit: &mut impl FnMut(u64)) -> io::Result<Self> {
        const CHUNK: usize = 128 << 10;
        let mut file = BufReader::with_capacity(CHUNK, file);
        let mut decoder = Decoder::new()?;
        let mut found = Self { good: 0, end: 0, text: 0, broken: None };
        let (mut read, mut text, mut in_frame_text) = (0_u64, 0_u64, 0_u64);
        let mut bytes = vec![0; CHUNK];
        let mut unpacked = vec![0; CHUNK];
        let mut between = true;
        loop {
            let length = file.read(&mut bytes)?;
            if length == 0 {
                if !between {
                    found.broken = Some((found.end, read));
                }
                return Ok(found);
            }
            let mut input = InBuffer::around(&bytes[..length]);
            loop {
                let mut output = OutBuffer::around(unpacked.as_mut_slice());
                let Ok(hint) = decoder.run(&mut input, &mut output) else {
                    found.broken = Some((found.end, read + input.pos() as u64));
                    return Ok(found);
                };
                text += output.pos() as u64;
                in_frame_text += output.pos() as u64;
                between = hint == 0;
                if hint == 0 {
                    found.end = read + input.pos() as u64;
                    found.text = text;
                    found.good += u64::from(std::mem::take(&mut in_frame_text) > 0);
                    decoder.reinit()?;
                }
                if input.pos() == length && output.pos() < CHUNK {
                    break;
                }
            }
            read += length as u64;
            visit(read);
        }
    }
}

#[cfg(test)]
mod tests;
