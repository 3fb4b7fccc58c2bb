//! What is wrong with a configuration: every problem, each with its place.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// One problem. Displays as `LINE: key: message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigError {
    /// Line, from 1; `None` if the problem is not of the text (a run-time change, a failing part).
    pub line: Option<u32>,
    /// Column in characters, from 1.
    pub column: Option<u32>,
    /// The key concerned, such as `subscriber.capacity` or `feed.spot.speed`; a feed without a
    /// usable name is told by its place from 1, as `feed[2]`. Empty if no key is concerned.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "{line}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// All problems of one text, in the order of its lines; never empty.
///
/// Displays one a line as `FILE:LINE: key: message`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConfigErrors {
    /// The file as it was named.
    pub file: PathBuf,
    /// At least one.
    pub errors: Vec<ConfigError>,
}

impl ConfigErrors {
    pub(super) fn new(file: &Path, mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by_key(|error| (error.line.unwrap_or(u32::MAX), error.column));
        Self { file: file.to_owned(), errors }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.errors.iter().enumerate() {
            let newline = if at == 0 { "" } else { "\n" };
            let space = if error.line.is_none() { " " } else { "" };
            write!(f, "{newline}{}:{space}{error}", self.file.display())?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
