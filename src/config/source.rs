//! Where a configuration comes from: a file, or the default inside the program.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::check::{Rules, parse};
use super::error::{ConfigError, ConfigErrors};
use super::settings::{
    AdminSettings, FeedSettings, GatewaySettings, Input, Recording, Settings, SubscriberSettings,
};
use crate::venue;

/// The documented default, which the program runs on when it is given no file.
pub const EMBEDDED_DEFAULT: &str = include_str!("../../config/default.toml");

/// A larger file is refused unread.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// The venue names of this program: those that have a codec.
pub const VENUES: &[&str] = &{
    let mut names = [""; venue::VENUES.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = venue::VENUES[index].name;
        index += 1;
    }
    names
};

const EMBEDDED_NAME: &str = "(embedded default)";

/// A configuration's place, and the venue names that its feeds may use.
#[derive(Clone, Debug)]
pub struct Source {
    file: Option<PathBuf>,
    venues: &'static [&'static str],
}

impl Source {
    /// A file; relative paths in it begin at its folder (the folder of this path, not that of a
    /// symlink's target).
    #[must_use]
    pub fn file(path: impl Into<PathBuf>, venues: &'static [&'static str]) -> Self {
        Self { file: Some(path.into()), venues }
    }

    /// The default inside the program.
    #[must_use]
    pub const fn embedded(venues: &'static [&'static str]) -> Self {
        Self { file: None, venues }
    }

    /// The file; `None` for the embedded default.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The name that errors use.
    #[must_use]
    pub fn name(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(EMBEDDED_NAME))
    }

    pub(super) const fn venues(&self) -> &'static [&'static str] {
        self.venues
    }

    /// Reads the whole text.
    ///
    /// # Errors
    ///
    /// The file's own, or [`io::ErrorKind::FileTooLarge`] past [`MAX_FILE_BYTES`].
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let Some(path) = &self.file else { return Ok(EMBEDDED_DEFAULT.as_bytes().to_vec()) };
        let mut content = Vec::new();
        File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut content)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            let message = format!("a configuration has at most {MAX_FILE_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(content)
    }

    /// Checks a text, without looking at any file that it names.
    ///
    /// # Errors
    ///
    /// Every problem of the text.
    pub fn parse(&self, content: &[u8]) -> Result<Settings, ConfigErrors> {
        self.check(content, None)
    }

    /// Like [`parse`](Self::parse), and refuses recordings that are not there.
    ///
    /// # Errors
    ///
    /// Every problem of the text.
    pub fn parse_with_files(&self, content: &[u8]) -> Result<Settings, ConfigErrors> {
        self.check(content, Some(Path::is_file))
    }

    fn check(
        &self,
        content: &[u8],
        exists: Option<fn(&Path) -> bool>,
    ) -> Result<Settings, ConfigErrors> {
        let text = std::str::from_utf8(content).map_err(|error| {
            let before = &content[..error.valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            let error = ConfigError {
                line: Some(u32::try_from(line).unwrap_or(u32::MAX)),
                column: None,
                key: String::new(),
                message: "is not UTF-8 text".to_owned(),
            };
            ConfigErrors::new(self.name(), vec![error])
        })?;
        let folder = self.file.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        parse(text, &Rules { file: self.name(), folder, venues: self.venues, exists })
    }
}

impl Settings {
    /// The settings of [`EMBEDDED_DEFAULT`]: all as documented, and one feed that loops over the
    /// embedded sample. Tests hold the two equal.
    #[must_use]
    pub fn embedded() -> Self {
        let input = Input::Recording(vec![Recording::Sample]);
        Self {
            gateway: GatewaySettings::default(),
            subscriber: SubscriberSettings::default(),
            admin: AdminSettings::default(),
            feeds: vec![FeedSettings {
                looped: true,
                ..FeedSettings::new("sample", "binance", input)
            }],
        }
    }
}
