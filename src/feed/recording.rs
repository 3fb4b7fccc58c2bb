//! A recording that can be played any number of times: from its file, or from memory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::reader::{Loaded, Reader};
use super::report::OpenError;
use super::selection::Selection;

/// A recording to play. Cheap to clone; clones share what is in memory.
#[derive(Clone, Debug)]
pub struct Recording {
    name: Arc<str>,
    from: From,
    selection: Selection,
}

#[derive(Clone, Debug)]
enum From {
    File(PathBuf),
    Memory(Loaded),
}

impl Recording {
    /// Plays from the file: memory stays at a few hundred KiB (one line more, at most), each pass
    /// unpacks anew.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when the file cannot be opened now.
    pub fn stream(path: &Path) -> Result<Self, OpenError> {
        let reader = Reader::open(path)?;
        let selection = Selection::default();
        Ok(Self { name: reader.name().into(), from: From::File(path.to_owned()), selection })
    }

    /// Unpacks the file into memory first, at most `max_bytes` of it, so that a pass costs no
    /// unpacking. The text is kept once, however many readers there are.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when the file cannot be opened, or is larger than `max_bytes` unpacked.
    pub fn load(path: &Path, max_bytes: u64) -> Result<Self, OpenError> {
        Self::unpack(Reader::open(path)?, max_bytes)
    }

    /// As [`load`](Self::load) where that fits into `max_bytes`, as [`stream`](Self::stream)
    /// otherwise.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when the file cannot be opened.
    pub fn load_or_stream(path: &Path, max_bytes: u64) -> Result<Self, OpenError> {
        use super::report::OpenProblem::TooLarge;
        match Self::load(path, max_bytes) {
            Err(OpenError { problem: TooLarge(_), .. }) => Self::stream(path),
            other => other,
        }
    }

    /// A recording from a file's bytes, packed as they are; `name` stands for the file in messages.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn from_bytes(name: &str, file: bytes::Bytes, max_bytes: u64) -> Result<Self, OpenError> {
        Self::unpack(Reader::from_bytes(name, file)?, max_bytes)
    }

    /// The file, as it was named.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same, of which only `selection` is played.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// A reader at the recording's beginning.
    ///
    /// # Errors
    ///
    /// [`OpenError`] when the file can no longer be opened.
    pub fn reader(&self) -> Result<Reader, OpenError> {
        match &self.from {
            From::File(path) => Reader::open_selected(path, self.selection.clone()),
            From::Memory(loaded) => Ok(Reader::from_loaded(Arc::clone(&self.name), loaded)?
                .selecting(self.selection.clone())),
        }
    }

    /// A reader at a place that no record of `time` (ns since the Unix epoch) or later is before.
    /// Of a file with an index that costs no reading; otherwise it is the beginning.
    ///
    /// # Errors
    ///
    /// As [`reader`](Self::reader).
    pub fn reader_at(&self, time: i64) -> Result<Reader, OpenError> {
        let From::File(path) = &self.from else { return self.reader() };
        let from = self.selection.start_time().map_or(time, |start| start.max(time));
        let reach = Selection::default().between(Some(from), self.selection.end_time());
        Reader::open_at(path, &reach, self.selection.clone())
    }

    fn unpack(reader: Reader, max_bytes: u64) -> Result<Self, OpenError> {
        let name = reader.name().into();
        let selection = Selection::default();
        Ok(Self { name, from: From::Memory(reader.load(max_bytes)?), selection })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_loaded_recording_reads_as_the_file_does_damage_included() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for number in 0..5000 {
            writeln!(packed, "{} {{\"n\":{number}}}", 1_700_000_000_000_i64 + number).unwrap();
        }
        let mut packed = packed.finish().unwrap();
        packed.truncate(packed.len() * 2 / 3);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut");
        std::fs::write(&path, &packed).unwrap();

        let all = |recording: &Recording| {
            let mut reader = recording.reader().unwrap();
            let mut read = Vec::new();
            while let Some(record) = reader.read_next() {
                read.push((record.receive_time, record.text.to_vec()));
            }
            (read, *reader.tally(), reader.damage().cloned())
        };
        let streamed = all(&Recording::stream(&path).unwrap());
        let recording = Recording::load(&path, 1 << 20).unwrap();
        assert_eq!(all(&recording), streamed);
        assert_eq!(all(&recording), streamed, "and again");
        assert_eq!(streamed.2.unwrap().record, streamed.0.len() as u64);
        assert!(streamed.0.len() > 2000);
    }

    #[test]
    fn a_recording_above_the_limit_is_refused_by_name_or_streamed() {
        let text = Bytes::from("{\"a\":1}\n".repeat(100_000));
        let refused = Recording::from_bytes("big", text.clone(), 1000).unwrap_err().to_string();
        assert!(refused.contains("big") && refused.contains("1000 bytes"), "{refused}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("big");
        std::fs::write(&path, &text).unwrap();
        let streamed = Recording::load_or_stream(&path, 1000).unwrap();
        assert!(matches!(streamed.from, From::File(_)));
        let loaded = Recording::load_or_stream(&path, 1 << 20).unwrap();
        assert!(matches!(loaded.from, From::Memory(_)));
    }
}
