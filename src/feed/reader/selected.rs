//! A reader of a part of a recording: where it begins and ends, and what it leaves out.

use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::path::Path;

use super::super::format::{Format, Record};
use super::super::index::{FrameEntry, Index, IndexState};
use super::super::report::OpenError;
use super::super::selection::Selection;
use super::{Current, Place, Reader};

impl Reader {
    /// Opens a file to read what `selection` wants of it. If the file has an index, reading begins
    /// and ends with the frames that the range reaches; what is read is the same without one.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn open_selected(path: &Path, selection: Selection) -> Result<Self, OpenError> {
        Self::open_at(path, &selection.clone(), selection)
    }

    /// Opens a file at the first frame that `reach` may want, and reads what `selection` wants.
    pub(in crate::feed) fn open_at(
        path: &Path,
        reach: &Selection,
        selection: Selection,
    ) -> Result<Self, OpenError> {
        let name = path.display().to_string();
        let refused = |error: std::io::Error| OpenError::new(&name, error.into());
        let mut file = File::open(path).map_err(refused)?;
        // A pipe cannot be looked at from its end.
        let index = if reach.is_bounded() && file.metadata().is_ok_and(|data| data.is_file()) {
            let index = Index::read(&mut file).map_err(refused)?;
            file.rewind().map_err(refused)?;
            index
        } else {
            IndexState::Missing
        };
        let IndexState::Good(index) = index else {
            return Ok(Self::from_reader(&name, Box::new(file))?.selecting(selection));
        };
        let needed = index.reach(reach);
        let start = needed.start.unwrap_or(FrameEntry::new(index.covered(), 0, 0, 0));
        file.seek(SeekFrom::Start(start.file_offset)).map_err(refused)?;
        let mut reader = Self::from_reader(&name, Box::new(file))?.selecting(selection);
        if start.file_offset > 0 {
            reader.base = start;
            reader.format = Some(Format::Recording);
            reader.open = needed.start.is_some();
            reader.since_header = start.records;
        }
        if let Some(end) = needed.end {
            reader.reach = end;
        }
        Ok(reader)
    }

    /// The same, of which only `selection` is yielded.
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        self.selective = !selection.is_all();
        self.inside = selection.start_time().is_none();
        self.selection = selection;
        self
    }

    /// Whether a record is wanted.
    pub(super) fn selects(&mut self, current: &Current) -> bool {
        if let Some(time) = current.time {
            self.inside = self.selection.has(time);
        }
        if !self.inside {
            return false;
        }
        let text = match &current.place {
            Place::Window(range) => &self.window.bytes()[range.clone()],
            Place::Scratch => &self.scratch,
        };
        let Current { time: receive_time, kind, .. } = *current;
        self.selection.keeps(Record { receive_time, kind, text })
    }
}
