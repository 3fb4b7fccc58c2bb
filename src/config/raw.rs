//! The text as written: values with their places, read with types but without rules.
//!
//! [`Section`] is asked for each key it may have, says what is wrong with its type, and at the end
//! refuses what nobody asked for. Nothing here stops at a problem: all go to [`Problems`].

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;
use super::keys::{FEED_KEYS, KEYS};

/// A place in the text, in bytes.
pub(super) type Span = Range<usize>;

/// A value and its place.
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) span: Span,
}

/// What was found wrong so far.
pub(super) struct Problems<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    errors: Vec<ConfigError>,
    left_out: usize,
    /// Lines that TOML itself could not read: the values near them are guesses.
    broken: Vec<u32>,
}

/// Problems reported of one text; the rest is told as a number.
const MAX_ERRORS: usize = 100;

impl<'t> Problems<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, line_starts, errors: Vec::new(), left_out: 0, broken: Vec::new() }
    }

    /// Whether nothing is wrong.
    pub(super) fn none(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn into_errors(mut self) -> Vec<ConfigError> {
        if self.left_out > 0 {
            let message = format!("{} more problems are not shown", self.left_out);
            let key = String::new();
            self.errors.push(ConfigError { line: None, column: None, key, message });
        }
        self.errors
    }

    /// Notes a problem of the value at `span`.
    pub(super) fn at(&mut self, span: &Span, key: impl Into<String>, message: impl Into<String>) {
        let (line, column) = self.place(span.start);
        if self.broken.contains(&line) {
            return;
        }
        self.note(line, column, key.into(), message.into());
    }

    /// Notes that something is not there. Silent if TOML could not read all of the text, because
    /// it may be in the part that was not read.
    pub(super) fn missing(
        &mut self,
        span: &Span,
        key: impl Into<String>,
        message: impl Into<String>,
    ) {
        if self.broken.is_empty() {
            self.at(span, key, message);
        }
    }

    /// Notes what TOML itself could not read.
    pub(super) fn syntax(&mut self, errors: &[toml::de::Error]) {
        for error in errors {
            let start = error.span().map_or(self.text.len(), |span| span.start);
            let (line, column) = self.place(start);
            // The first complaint about a line is the cause, the others follow from it.
            if !self.broken.contains(&line) {
                self.broken.push(line);
                let key = self.key_near(line);
                self.note(line, column, key, format!("is not TOML: {}", error.message()));
            }
        }
    }

    /// The line of a place, from 1.
    pub(super) fn line(&self, span: &Span) -> u32 {
        self.place(span.start).0
    }

    fn note(&mut self, line: u32, column: u32, key: String, message: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(ConfigError { line: Some(line), column: Some(column), key, message });
        } else {
            self.left_out += 1;
        }
    }

    /// Line and column in characters, both from 1.
    fn place(&self, offset: usize) -> (u32, u32) {
        let offset = offset.min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count());
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column + 1).unwrap_or(u32::MAX))
    }

    /// The key that a line of unreadable text seems to set, with the section above it; empty if it
    /// does not look like setting one.
    fn key_near(&self, line: u32) -> String {
        let count = usize::try_from(line).unwrap_or(usize::MAX);
        let lines = || self.text.lines().take(count).map(str::trim);
        let text = lines().nth(count.saturating_sub(1)).unwrap_or_default();
        let section = lines().filter(|text| text.starts_with('[')).last().map(|header| {
            let header = header.split('#').next().unwrap_or(header);
            header.trim_matches(|c: char| c == '[' || c == ']' || c.is_whitespace())
        });
        let section = section.unwrap_or_default();
        if text.starts_with('[') {
            return section.to_owned();
        }
        match text.split_once('=').map_or(text, |(word, _)| word).trim() {
            word if word.is_empty() || !word.bytes().all(is_bare_key) => String::new(),
            word => keyed(section, word),
        }
    }
}

fn is_bare_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' || byte == b'.'
}

/// A table that is asked for its keys one by one.
pub(super) struct Section<'p, 't, 'd> {
    pub(super) problems: &'p mut Problems<'t>,
    /// The name that its keys are reported under.
    pub(super) path: String,
    /// Where the section begins.
    pub(super) span: Span,
    table: Option<&'d DeTable<'d>>,
    asked: Vec<&'static str>,
}

impl<'p, 't, 'd> Section<'p, 't, 'd> {
    /// The whole text.
    pub(super) fn root(problems: &'p mut Problems<'t>, table: &'d DeTable<'d>) -> Self {
        Self { problems, path: String::new(), span: 0..0, table: Some(table), asked: Vec::new() }
    }

    /// A table of its own, such as one feed.
    pub(super) fn of(
        problems: &'p mut Problems<'t>,
        path: String,
        span: Span,
        table: &'d DeTable<'d>,
    ) -> Self {
        Self { problems, path, span, table: Some(table), asked: Vec::new() }
    }

    /// The table of this key; one without keys if it is absent.
    pub(super) fn section<'s>(&'s mut self, word: &'static str) -> Section<'s, 't, 'd> {
        let found = self.take(word);
        let (table, span) = match found {
            None => (None, 0..0),
            Some(Located { value: DeValue::Table(table), span }) => (Some(table), span),
            Some(Located { span, .. }) => {
                self.problems.at(&span, word, format!("must be a section: write [{word}]"));
                (None, span)
            }
        };
        Section { problems: &mut *self.problems, path: word.to_owned(), span, table, asked: vec![] }
    }

    /// The tables of this key, written `[[word]]`.
    pub(super) fn sections(&mut self, word: &'static str) -> Vec<Located<&'d DeTable<'d>>> {
        let how = || format!("must be written [[{word}]], once for each {word}");
        let Some(Located { value, span }) = self.take(word) else { return Vec::new() };
        match value {
            DeValue::Array(values) => values
                .iter()
                .filter_map(|item| match item.get_ref() {
                    DeValue::Table(value) => Some(Located { value, span: item.span() }),
                    _ => {
                        self.problems.at(&item.span(), word, how());
                        None
                    }
                })
                .collect(),
            DeValue::Table(value) => {
                self.problems.at(&span, word, how());
                vec![Located { value, span }]
            }
            _ => {
                self.problems.at(&span, word, how());
                Vec::new()
            }
        }
    }

    /// The value of this key, if it is set.
    pub(super) fn take(&mut self, word: &'static str) -> Option<Located<&'d DeValue<'d>>> {
        if !self.asked.contains(&word) {
            self.asked.push(word);
        }
        let found = self.table?.get(word)?;
        Some(Located { value: found.get_ref(), span: found.span() })
    }

    /// A whole number from `least` to `most`, or `default`.
    pub(super) fn integer(
        &mut self,
        word: &'static str,
        least: u32,
        most: u32,
        default: u32,
    ) -> u32 {
        let number = self.count(word, least.into(), most.into(), default.into());
        u32::try_from(number).unwrap_or(default)
    }

    /// The same for what may be larger.
    pub(super) fn count(&mut self, word: &'static str, least: u64, most: u64, default: u64) -> u64 {
        let Some(Located { value, span }) = self.take(word) else { return default };
        if let DeValue::Integer(written) = value
            && let Ok(number) = u64::from_str_radix(written.as_str(), written.radix())
            && (least..=most).contains(&number)
        {
            return number;
        }
        let message =
            format!("must be a whole number from {least} to {most}, not {}", described(value));
        self.wrong(word, &span, message);
        default
    }

    /// The same for what the program counts in `usize`.
    pub(super) fn size(
        &mut self,
        word: &'static str,
        least: u32,
        most: u32,
        default: usize,
    ) -> usize {
        let default = u32::try_from(default).unwrap_or(most);
        usize::try_from(self.integer(word, least, most, default)).unwrap_or(usize::MAX)
    }

    /// `true` or `false`, or `default`.
    pub(super) fn flag(&mut self, word: &'static str, default: bool) -> bool {
        match self.take(word) {
            None => default,
            Some(Located { value: DeValue::Boolean(flag), .. }) => *flag,
            Some(Located { value, span }) => {
                self.wrong(word, &span, format!("must be true or false, not {}", described(value)));
                default
            }
        }
    }

    /// A text; `right` completes "must be …" if it is none.
    pub(super) fn text(
        &mut self,
        word: &'static str,
        right: impl FnOnce() -> String,
    ) -> Option<Located<&'d str>> {
        let Located { value, span } = self.take(word)?;
        if let DeValue::String(text) = value {
            return Some(Located { value: text.as_ref(), span });
        }
        self.wrong(word, &span, format!("must be {}, not {}", right(), described(value)));
        None
    }

    /// An array of texts; `right` completes "must be …" if it is none.
    pub(super) fn texts(
        &mut self,
        word: &'static str,
        right: &str,
    ) -> Option<Located<Vec<Located<&'d str>>>> {
        let Located { value, span } = self.take(word)?;
        let DeValue::Array(items) = value else {
            self.wrong(word, &span, format!("must be {right}, not {}", described(value)));
            return None;
        };
        let texts = items.iter().filter_map(|item: &'d Spanned<DeValue<'d>>| {
            if let DeValue::String(text) = item.get_ref() {
                return Some(Located { value: text.as_ref(), span: item.span() });
            }
            let message = format!("must be {right}, without {}", described(item.get_ref()));
            self.problems.at(&item.span(), keyed(&self.path, word), message);
            None
        });
        Some(Located { value: texts.collect(), span })
    }

    /// Notes that the value at `span` of this key is wrong.
    pub(super) fn wrong(&mut self, word: &str, span: &Span, message: impl Into<String>) {
        self.problems.at(span, keyed(&self.path, word), message);
    }

    /// Notes that this key must be set and is not.
    pub(super) fn missing(&mut self, word: &str, message: impl Into<String>) {
        self.problems.missing(&self.span, keyed(&self.path, word), message);
    }

    /// Refuses every key that was not asked for.
    pub(super) fn finish(self) {
        let Some(table) = self.table else { return };
        for (key, _) in table {
            let word = key.get_ref().as_ref();
            if !self.asked.contains(&word) {
                let hint = hint(word, &self.path, &self.asked);
                let message = format!("is not a known key; {hint}");
                self.problems.at(&key.span(), keyed(&self.path, word), message);
            }
        }
    }
}

fn keyed(path: &str, word: &str) -> String {
    if path.is_empty() { word.to_owned() } else { format!("{path}.{word}") }
}

/// What an unknown key was perhaps meant to be.
fn hint(word: &str, path: &str, known: &[&'static str]) -> String {
    let plain = word.to_ascii_lowercase().replace('-', "_");
    let near = known
        .iter()
        .map(|other| (strsim::damerau_levenshtein(&plain, other), *other))
        .min()
        .filter(|(distance, other)| *distance <= (other.len() / 3).max(1));
    if let Some((_, other)) = near {
        return format!("did you mean {}?", keyed(path, other));
    }
    let elsewhere = KEYS
        .iter()
        .filter_map(|info| info.name.split_once('.'))
        .chain(FEED_KEYS.iter().map(|info| ("feed", info.word)))
        .find(|(section, other)| *other == plain && *section != path);
    match elsewhere {
        Some(("feed", _)) => "it belongs to a [[feed]]".to_owned(),
        Some((section, _)) => format!("it belongs to [{section}]"),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// A value as an error names it.
pub(super) fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() > 40 => "a longer text".to_owned(),
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) if number.as_str().len() > 20 => "a huge number".to_owned(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => format!("the fraction {number}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
