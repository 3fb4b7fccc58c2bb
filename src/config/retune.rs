//! Run-time changes: some keys given as JSON, checked by the same rules as a file.

use std::path::Path;

use serde_json::{Map, Value};

use super::check::{Rules, parse};
use super::diff::with_hot_keys_of;
use super::error::{ConfigError, ConfigErrors};
use super::keys::{KEYS, Key};
use super::settings::Settings;
use super::source::Source;

const NAME: &str = "(run-time change)";

impl Source {
    /// `settings` with these hot keys changed, and the keys in full. A key may be given by its
    /// last word. Nothing is applied by this; it may be used to check a change that concerns one
    /// subscriber.
    ///
    /// The changed settings are written as a file and checked as one, so that no rule exists
    /// twice.
    ///
    /// # Errors
    ///
    /// Every key that is unknown or needs a restart, or every value that is wrong; or no key is
    /// given.
    pub fn with_changes(
        &self,
        settings: &Settings,
        changes: &Map<String, Value>,
    ) -> Result<(Settings, Vec<Key>), ConfigErrors> {
        let keys = resolve(changes)?;
        let mut table =
            toml::Table::try_from(settings).map_err(|error| refused("", error.to_string()))?;
        for (key, value) in keys.iter().zip(changes.values()) {
            let Some((section, word)) = key.as_str().split_once('.') else { continue };
            if let Some(toml::Value::Table(section)) = table.get_mut(section) {
                section.insert(word.to_owned(), as_toml(value));
            }
        }
        let rules = Rules {
            file: Path::new(NAME),
            folder: Path::new(""),
            venues: self.venues(),
            exists: None,
        };
        let text = table.to_string();
        let checked = parse(&text, &rules).map_err(|mut errors| {
            for error in &mut errors.errors {
                (error.line, error.column) = (None, None);
            }
            errors
        })?;
        // Only what was asked for: a path that is no Unicode text does not survive being written.
        Ok((with_hot_keys_of(settings, &checked, &keys), keys))
    }
}

/// The keys in the order given.
fn resolve(changes: &Map<String, Value>) -> Result<Vec<Key>, ConfigErrors> {
    let mut keys: Vec<Key> = Vec::with_capacity(changes.len());
    let mut errors = Vec::new();
    for name in changes.keys() {
        let message = match Key::hot(name) {
            Some(key) if !keys.contains(&key) => {
                keys.push(key);
                continue;
            }
            Some(_) => "is given twice".to_owned(),
            None if KEYS.iter().any(|info| info.name == name) => {
                "needs a restart: change it in the file".to_owned()
            }
            None => format!("is not a known key; known here: {}", Key::all_hot().join(", ")),
        };
        errors.push(problem(name, message));
    }
    if changes.is_empty() {
        errors.push(problem("", "no key is given".to_owned()));
    }
    if errors.is_empty() { Ok(keys) } else { Err(ConfigErrors::new(Path::new(NAME), errors)) }
}

/// The value as a file would have it. What TOML does not have (null, numbers past 64 bits) becomes
/// a text, which no key that takes numbers accepts.
fn as_toml(value: &Value) -> toml::Value {
    toml::Value::try_from(value).unwrap_or_else(|_| toml::Value::String(value.to_string()))
}

fn refused(key: &str, message: String) -> ConfigErrors {
    ConfigErrors::new(Path::new(NAME), vec![problem(key, message)])
}

fn problem(key: &str, message: String) -> ConfigError {
    ConfigError { line: None, column: None, key: key.to_owned(), message }
}
