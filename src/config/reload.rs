//! Applying a configuration to a running program, all or nothing.
//!
//! [`Reloader`] keeps three things: the last loaded text, its settings, and the settings in effect.
//! They differ: a key that needs a restart keeps its running value, and a run-time override
//! ([`Reloader::retune`]) holds until a *file* changes that key. Therefore what a reload applies is
//! the difference between two files, never between a file and what is in effect.
//!
//! A change goes through the [`Part`]s in the order they were added. If one refuses, those before
//! it are rolled back in reverse, and nothing of the change remains: not in a part, not in what is
//! in effect, not in what counts as loaded, so that the same file may be tried again.

use std::io;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Map, Value};

use super::diff::{diff, with_hot_keys_of};
use super::error::{ConfigError, ConfigErrors};
use super::keys::Key;
use super::settings::Settings;
use super::source::Source;

/// Why a part refused a change.
pub type PartError = Box<dyn std::error::Error + Send + Sync>;

/// A running part of the program that follows the settings.
pub trait Part: Send + Sync {
    /// What errors call it.
    fn name(&self) -> &str;

    /// Goes from `old` to `new`. `changed` lists the hot keys concerned; a part clears run-time
    /// overrides of its own (of one subscriber, say) of exactly these, also of a key whose value
    /// is the same in both.
    ///
    /// # Errors
    ///
    /// The reason; the part must then be as it was. Add parts that can refuse before those that
    /// cannot.
    fn apply(&self, old: &Settings, new: &Settings, changed: &[Key]) -> Result<(), PartError>;

    /// Undoes the [`apply`](Self::apply) of the same arguments, because a later part refused.
    /// Unless overridden, it applies the way back.
    ///
    /// # Errors
    ///
    /// The reason why the part is not what it was.
    fn roll_back(&self, old: &Settings, new: &Settings, changed: &[Key]) -> Result<(), PartError> {
        self.apply(new, old, changed)
    }
}

/// What a reload did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReloadReport {
    /// Keys taken by the running program: those that differ from the last loaded file.
    pub applied: Vec<Key>,
    /// Keys whose value in the file is not the running one: it is taken at the next start.
    pub needs_restart: Vec<Key>,
    /// Whether the text was the last loaded one, byte for byte.
    #[serde(skip)]
    pub same_text: bool,
}

/// Why a reload or a run-time change did nothing.
#[derive(Debug, thiserror::Error)]
pub enum ReloadError {
    /// The file could not be read.
    #[error("while reading {}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The text or the change is wrong.
    #[error(transparent)]
    Refused(#[from] ConfigErrors),
    /// A part refused the change; the parts before it were rolled back.
    #[error("while applying it to {part}: {reason}{}", torn_parts(torn))]
    Part {
        /// The part that refused.
        part: String,
        /// Why.
        reason: PartError,
        /// Parts that could not be rolled back, each with its reason; empty unless something is
        /// badly wrong.
        torn: Vec<(String, PartError)>,
    },
}

fn torn_parts(torn: &[(String, PartError)]) -> String {
    torn.iter().map(|(part, reason)| format!("; {part} was not rolled back: {reason}")).collect()
}

impl ReloadError {
    /// One word for a metric's label: `unreadable`, `refused` or `part`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "unreadable",
            Self::Refused(_) => "refused",
            Self::Part { .. } => "part",
        }
    }

    /// The problems one by one, as an answer lists them; at least one.
    #[must_use]
    pub fn errors(&self) -> Vec<ConfigError> {
        match self {
            Self::Refused(errors) => errors.errors.clone(),
            other => vec![ConfigError {
                line: None,
                column: None,
                key: String::new(),
                message: other.to_string(),
            }],
        }
    }
}

/// The settings of a running program; see the module's text.
pub struct Reloader {
    source: Source,
    content: Vec<u8>,
    loaded: Settings,
    effective: Settings,
    parts: Vec<Box<dyn Part>>,
}

impl std::fmt::Debug for Reloader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts: Vec<_> = self.parts.iter().map(|part| part.name()).collect();
        f.debug_struct("Reloader")
            .field("source", &self.source)
            .field("effective", &self.effective)
            .field("parts", &parts)
            .finish_non_exhaustive()
    }
}

impl Reloader {
    /// Starts from the text that the program starts with; all of it is in effect.
    ///
    /// # Errors
    ///
    /// Every problem of the text.
    pub fn new(source: Source, content: Vec<u8>) -> Result<Self, ConfigErrors> {
        let settings = source.parse(&content)?;
        Ok(Self::of(source, content, settings))
    }

    /// Starts from settings that were given otherwise than by a text (by flags, say). A later text
    /// is compared with these.
    #[must_use]
    pub fn with_settings(source: Source, settings: Settings) -> Self {
        Self::of(source, Vec::new(), settings)
    }

    fn of(source: Source, content: Vec<u8>, settings: Settings) -> Self {
        Self { source, content, loaded: settings.clone(), effective: settings, parts: Vec::new() }
    }

    /// Adds a part; it is taken to follow [`effective`](Self::effective) already.
    pub fn add_part(&mut self, part: impl Part + 'static) {
        self.parts.push(Box::new(part));
    }

    /// The settings that the program runs on.
    #[must_use]
    pub const fn effective(&self) -> &Settings {
        &self.effective
    }

    /// The settings of the last loaded text.
    #[must_use]
    pub const fn loaded(&self) -> &Settings {
        &self.loaded
    }

    /// Where the text comes from.
    #[must_use]
    pub const fn source(&self) -> &Source {
        &self.source
    }

    /// Reads the source again and applies what differs.
    ///
    /// # Errors
    ///
    /// As [`reload`](Self::reload), or the file cannot be read.
    pub fn reload_from_source(&mut self) -> Result<ReloadReport, ReloadError> {
        let content = self.source.read();
        self.reload(content)
    }

    /// Applies a text that was read, or fails as its reading did.
    ///
    /// # Errors
    ///
    /// The program runs on as before, and the same text may be tried again.
    pub fn reload(&mut self, content: io::Result<Vec<u8>>) -> Result<ReloadReport, ReloadError> {
        let content = content.map_err(|source| ReloadError::Unreadable {
            file: self.source.name().to_owned(),
            source,
        })?;
        if content == self.content {
            let needs_restart = diff(&self.effective, &self.loaded).needs_restart;
            return Ok(ReloadReport { applied: Vec::new(), needs_restart, same_text: true });
        }
        let file = self.source.parse(&content)?;
        let applied = diff(&self.loaded, &file).hot;
        let next = with_hot_keys_of(&self.effective, &file, &applied);
        self.apply(next, &applied)?;
        let needs_restart = diff(&self.effective, &file).needs_restart;
        self.content = content;
        self.loaded = file;
        Ok(ReloadReport { applied, needs_restart, same_text: false })
    }

    /// Overrides hot keys until a file changes them. Keys may be given in full or by their last
    /// word; every key given is applied, also with the value that it has.
    ///
    /// # Errors
    ///
    /// Every key that is unknown or needs a restart and every value that is wrong, or a part's
    /// refusal; nothing has changed then.
    pub fn retune(&mut self, changes: &Map<String, Value>) -> Result<ReloadReport, ReloadError> {
        let (next, applied) = self.source.with_changes(&self.effective, changes)?;
        self.apply(next, &applied)?;
        let needs_restart = diff(&self.effective, &self.loaded).needs_restart;
        Ok(ReloadReport { applied, needs_restart, same_text: false })
    }

    fn apply(&mut self, next: Settings, changed: &[Key]) -> Result<(), ReloadError> {
        if changed.is_empty() {
            return Ok(());
        }
        for (at, part) in self.parts.iter().enumerate() {
            if let Err(reason) = part.apply(&self.effective, &next, changed) {
                let before = self.parts[..at].iter().rev();
                let torn = before
                    .filter_map(|done| {
                        let failed = done.roll_back(&self.effective, &next, changed).err()?;
                        Some((done.name().to_owned(), failed))
                    })
                    .collect();
                return Err(ReloadError::Part { part: part.name().to_owned(), reason, torn });
            }
        }
        self.effective = next;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;
    use crate::config::VENUES;

    const FEED: &str = "[[feed]]\nname = \"a\"\nvenue = \"binance\"\nlines = \"-\"\n";

    fn reloader(text: &str) -> Reloader {
        Reloader::new(Source::file("t.toml", VENUES), format!("{text}\n{FEED}").into_bytes())
            .unwrap()
    }

    fn reload(reloader: &mut Reloader, text: &str) -> Result<ReloadReport, ReloadError> {
        reloader.reload(Ok(format!("{text}\n{FEED}").into_bytes()))
    }

    fn retune(reloader: &mut Reloader, changes: Value) -> Result<ReloadReport, ReloadError> {
        reloader.retune(changes.as_object().unwrap())
    }

    /// Follows one number and writes down what it is told; refuses or fails to roll back on demand.
    #[derive(Clone)]
    struct Follower {
        name: &'static str,
        state: Arc<Mutex<State>>,
    }

    #[derive(Default)]
    struct State {
        capacity: u32,
        told: Vec<Vec<String>>,
        refuse: bool,
        stuck: bool,
    }

    impl Follower {
        fn new(name: &'static str, capacity: u32) -> Self {
            let state = State { capacity, ..State::default() };
            Self { name, state: Arc::new(Mutex::new(state)) }
        }

        fn capacity(&self) -> u32 {
            self.state.lock().unwrap().capacity
        }

        fn told(&self) -> usize {
            self.state.lock().unwrap().told.len()
        }
    }

    impl Part for Follower {
        fn name(&self) -> &str {
            self.name
        }

        fn apply(&self, old: &Settings, new: &Settings, changed: &[Key]) -> Result<(), PartError> {
            let mut state = self.state.lock().unwrap();
            if state.refuse {
                return Err("told to refuse".into());
            }
            assert_eq!(state.capacity, old.subscriber.capacity, "{} missed a change", self.name);
            state.capacity = new.subscriber.capacity;
            state.told.push(changed.iter().map(ToString::to_string).collect());
            Ok(())
        }

        fn roll_back(&self, old: &Settings, new: &Settings, keys: &[Key]) -> Result<(), PartError> {
            if self.state.lock().unwrap().stuck {
                return Err("stuck".into());
            }
            self.apply(new, old, keys)
        }
    }

    #[test]
    fn changed_hot_keys_are_applied_and_the_others_are_named() {
        let mut reloader = reloader("subscriber.capacity = 8");
        let part = Follower::new("one", 8);
        reloader.add_part(part.clone());
        let text =
            "subscriber.capacity = 2\nsubscriber.confirm = \"flush\"\ngateway.pace = \"2ms\"";
        let report = reload(&mut reloader, text).unwrap();
        assert_eq!(report.applied, ["gateway.pace", "subscriber.capacity"]);
        assert_eq!(report.needs_restart, ["subscriber.confirm"]);
        assert_eq!(part.capacity(), 2);
        assert_eq!(part.state.lock().unwrap().told, [["gateway.pace", "subscriber.capacity"]]);
    }

    #[test]
    fn b91_a_key_that_needs_a_restart_keeps_its_running_value_and_stays_named() {
        let mut reloader = reloader("gateway.listen = \"127.0.0.1:1000\"");
        let running = reloader.effective().gateway.listen;
        let moved = "gateway.listen = \"127.0.0.1:2000\"\n";
        let report = reload(&mut reloader, &format!("{moved}subscriber.capacity = 3")).unwrap();
        assert_eq!(report.applied, ["subscriber.capacity"]);
        assert_eq!(report.needs_restart, ["gateway.listen"]);
        assert_eq!(reloader.effective().gateway.listen, running);
        assert_eq!(reloader.loaded().gateway.listen.port(), 2000);
        // It still waits for a restart when something else is saved, or nothing is.
        for _ in 0..2 {
            let text = format!("{moved}subscriber.capacity = 4");
            let report = reload(&mut reloader, &text).unwrap();
            assert_eq!(report.needs_restart, ["gateway.listen"]);
        }
        // Put back, it is in effect as it always was.
        let report = reload(&mut reloader, "gateway.listen = \"127.0.0.1:1000\"").unwrap();
        assert!(report.needs_restart.is_empty());
        assert_eq!(reloader.effective(), reloader.loaded());
    }

    #[test]
    fn b89_an_unchanged_text_and_a_changed_comment_apply_nothing() {
        let mut reloader = reloader("subscriber.capacity = 8");
        let part = Follower::new("one", 8);
        reloader.add_part(part.clone());
        for _ in 0..20 {
            let report = reload(&mut reloader, "subscriber.capacity = 8").unwrap();
            assert!(report.same_text && report.applied.is_empty());
        }
        let report = reload(&mut reloader, "# said otherwise\nsubscriber.capacity = 0x8").unwrap();
        assert!(!report.same_text && report.applied.is_empty());
        assert_eq!(part.told(), 0);
    }

    #[test]
    fn each_part_that_refuses_leaves_all_parts_and_the_settings_as_they_were() {
        let mut reloader = reloader("subscriber.capacity = 8");
        let parts = ["one", "two", "three"].map(|name| Follower::new(name, 8));
        for part in &parts {
            reloader.add_part(part.clone());
        }
        let before = reloader.effective().clone();
        for (at, part) in parts.iter().enumerate() {
            part.state.lock().unwrap().refuse = true;
            let error = reload(&mut reloader, "subscriber.capacity = 2").unwrap_err();
            assert_eq!(error.kind(), "part");
            assert_eq!(
                error.to_string(),
                format!("while applying it to {}: told to refuse", part.name)
            );
            assert_eq!(reloader.effective(), &before);
            assert_eq!(reloader.loaded(), &before);
            assert!(parts.iter().all(|part| part.capacity() == 8));
            // The parts before it went there and back; those after it never heard of it.
            let told: Vec<_> = parts.iter().map(Follower::told).collect();
            assert_eq!(told, [[0, 0, 0], [2, 0, 0], [4, 2, 0]][at]);
            part.state.lock().unwrap().refuse = false;
        }
        // The same text is not "unchanged": it was never loaded.
        let report = reload(&mut reloader, "subscriber.capacity = 2").unwrap();
        assert_eq!(report.applied, ["subscriber.capacity"]);
        assert!(parts.iter().all(|part| part.capacity() == 2));
    }

    #[test]
    fn a_part_that_cannot_be_rolled_back_is_named() {
        let mut reloader = reloader("");
        let parts = ["one", "two"].map(|name| Follower::new(name, 8));
        parts[0].state.lock().unwrap().stuck = true;
        parts[1].state.lock().unwrap().refuse = true;
        for part in &parts {
            reloader.add_part(part.clone());
        }
        let error = reload(&mut reloader, "subscriber.capacity = 2").unwrap_err();
        assert!(error.to_string().ends_with("; one was not rolled back: stuck"), "{error}");
        assert_eq!(reloader.effective().subscriber.capacity, 8);
    }

    #[test]
    fn a_file_that_cannot_be_read_changes_nothing() {
        let mut reloader = reloader("subscriber.capacity = 3");
        let error = reloader.reload(Err(io::ErrorKind::NotFound.into())).unwrap_err();
        assert_eq!(error.kind(), "unreadable");
        assert!(error.errors()[0].message.starts_with("while reading t.toml: "));
        assert_eq!(reloader.effective().subscriber.capacity, 3);
    }

    #[test]
    fn a_run_time_change_holds_until_a_file_changes_that_key() {
        let mut reloader = reloader("subscriber.capacity = 8\nsubscriber.max_hz = 10");
        let report = retune(&mut reloader, json!({"capacity": 1, "subscriber.max_hz": 5})).unwrap();
        assert_eq!(report.applied, ["subscriber.capacity", "subscriber.max_hz"]);
        assert_eq!(reloader.loaded().subscriber.capacity, 8);
        // Another key is saved: both overrides stay.
        let text = "subscriber.capacity = 8\nsubscriber.max_hz = 10\ngateway.pace = \"4ms\"";
        assert_eq!(reload(&mut reloader, text).unwrap().applied, ["gateway.pace"]);
        assert_eq!(reloader.effective().subscriber.capacity, 1);
        // One of them is saved: that one goes, also if the file says what the override said.
        let report = reload(&mut reloader, "subscriber.capacity = 1\nsubscriber.max_hz = 10");
        assert_eq!(report.unwrap().applied, ["gateway.pace", "subscriber.capacity"]);
        assert_eq!(reloader.effective().subscriber.max_hz, 5);
        let report = reload(&mut reloader, "subscriber.capacity = 1").unwrap();
        assert_eq!(report.applied, ["subscriber.max_hz"]);
        assert_eq!(reloader.effective(), reloader.loaded());
    }

    #[test]
    fn b69_a_wrong_run_time_change_is_refused_whole() {
        let mut reloader = reloader("subscriber.capacity = 8");
        let part = Follower::new("one", 8);
        reloader.add_part(part.clone());
        let before = reloader.effective().clone();
        for (change, message) in [
            (json!({"capacity": -1}), "subscriber.capacity: must be a whole number from 0 to"),
            (json!({"capacity": 1_048_576}), "subscriber.capacity: must be a whole number from 0"),
            (json!({"capacity": u64::MAX}), "subscriber.capacity: must be"),
            (json!({"capacity": 1.5}), "subscriber.capacity: must be"),
            (json!({"capacity": "8"}), "subscriber.capacity: must be"),
            (json!({"capacity": null}), "subscriber.capacity: must be"),
            (json!({"capacity": {"a": null}}), "subscriber.capacity: must be"),
            (json!({"capacity": 3, "max_hz": -1}), "subscriber.max_hz: must be"),
            (json!({"stall_timeout": "30"}), "subscriber.stall_timeout: \"30\" has no unit"),
            (json!({"capacty": 3}), "capacty: is not a known key"),
            (json!({"gateway.listen": "127.0.0.1:1"}), "gateway.listen: needs a restart"),
            (json!({"capacity": 1, "subscriber.capacity": 2}), "is given twice"),
            (json!({}), "no key is given"),
        ] {
            let error = retune(&mut reloader, change.clone()).unwrap_err().to_string();
            assert!(error.contains(message), "{change} gave {error}");
            assert_eq!(reloader.effective(), &before);
        }
        assert_eq!(part.told(), 0);
        retune(&mut reloader, json!({"capacity": 0})).unwrap();
        assert_eq!(part.capacity(), 0);
    }

    #[test]
    fn settings_given_by_flags_are_what_the_first_text_is_compared_with() {
        let mut settings = Settings::embedded();
        settings.subscriber.capacity = 3;
        let mut reloader = Reloader::with_settings(Source::embedded(VENUES), settings);
        let report = reloader.reload_from_source().unwrap();
        assert_eq!(report.applied, ["subscriber.capacity"]);
        assert_eq!(reloader.effective(), &Settings::embedded());
    }
}
