//! From a file's name to checked settings.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::{Settings, Source, VENUES};

/// A configuration could not be read at all.
#[derive(Debug, thiserror::Error)]
#[error("reading the configuration {}: {source}", file.display())]
pub(super) struct Unreadable {
    /// The file.
    file: PathBuf,
    /// What the operating system says.
    #[source]
    source: io::Error,
}

/// A configuration, read and checked.
pub(super) struct Loaded {
    pub(super) source: Source,
    pub(super) content: Vec<u8>,
    pub(super) settings: Settings,
}

/// Whether the recordings that a configuration names must be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Recordings {
    /// They must.
    Required,
    /// They are not looked for.
    Ignored,
}

/// Reads and checks a file.
///
/// # Errors
///
/// [`Unreadable`], or every problem of the text as [`ConfigErrors`](crate::config::ConfigErrors).
pub(super) fn load(file: &Path, recordings: Recordings) -> anyhow::Result<Loaded> {
    let source = Source::file(file, VENUES);
    let content = source.read().map_err(|source| Unreadable { file: file.to_owned(), source })?;
    let settings = match recordings {
        Recordings::Required => source.parse_with_files(&content)?,
        Recordings::Ignored => source.parse(&content)?,
    };
    Ok(Loaded { source, content, settings })
}
