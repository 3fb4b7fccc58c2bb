//! What differs between two settings, by key.

use serde::Serialize;

use super::keys::{Effect, FEED_KEYS, KEYS, Key};
use super::settings::{FeedSettings, Settings};

/// The keys that differ, in the order of [`KEYS`], then of the feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// Taken while running.
    pub hot: Vec<Key>,
    /// Taken with the next start.
    pub needs_restart: Vec<Key>,
}

impl Diff {
    /// Whether nothing differs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hot.is_empty() && self.needs_restart.is_empty()
    }
}

/// Compares two settings. O(keys + feeds²); feeds are few.
#[must_use]
pub fn diff(old: &Settings, new: &Settings) -> Diff {
    let mut diff = Diff::default();
    for info in KEYS.iter().filter(|info| !(info.same)(old, new)) {
        match info.effect {
            Effect::Hot => diff.hot.push(info.key()),
            Effect::Restart => diff.needs_restart.push(info.key()),
        }
    }
    feeds(&old.feeds, &new.feeds, &mut diff);
    diff
}

fn feeds(old: &[FeedSettings], new: &[FeedSettings], diff: &mut Diff) {
    let Diff { hot, needs_restart: changed } = diff;
    let named = |feeds: &[FeedSettings], name: &str| feeds.iter().any(|feed| feed.name == name);
    for feed in old {
        match new.iter().find(|other| other.name == feed.name) {
            None => changed.push(Key::feed(&feed.name)),
            Some(other) => {
                for info in FEED_KEYS.iter().filter(|info| !(info.same)(feed, other)) {
                    let key = Key::of_feed(&feed.name, info.word);
                    // A feed that becomes live, or is no longer, is another feed.
                    let both_live = feed.live.is_some() && other.live.is_some();
                    match info.effect {
                        Effect::Hot if both_live => hot.push(key),
                        _ => changed.push(key),
                    }
                }
            }
        }
    }
    changed.extend(
        new.iter().filter(|feed| !named(old, &feed.name)).map(|feed| Key::feed(&feed.name)),
    );
    // The first feed that gives an instrument owns it, so the order is a setting too.
    let kept = old.iter().map(|feed| &feed.name).filter(|name| named(new, name));
    if !kept.eq(new.iter().map(|feed| &feed.name).filter(|name| named(old, name))) {
        changed.push(Key::FEED_ORDER);
    }
}

/// `running` with every hot key as `file` has it.
pub(super) fn with_hot_keys_of(running: &Settings, file: &Settings, keys: &[Key]) -> Settings {
    let mut settings = running.clone();
    for info in KEYS.iter().filter(|info| info.effect == Effect::Hot) {
        if keys.iter().any(|key| key == info.name) {
            (info.carry)(&mut settings, file);
        }
    }
    for feed in &mut settings.feeds {
        let Some(other) = file.feeds.iter().find(|other| other.name == feed.name) else { continue };
        for info in FEED_KEYS.iter().filter(|info| info.effect == Effect::Hot) {
            if keys.contains(&Key::of_feed(&feed.name, info.word)) {
                (info.carry)(feed, other);
            }
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Confirm, Input, Lines, Recording, Speed, Start};

    fn feed(name: &str) -> FeedSettings {
        FeedSettings::new(name, "binance", Input::Recording(vec![Recording::Sample]))
    }

    fn settings(feeds: Vec<FeedSettings>) -> Settings {
        Settings { feeds, ..Settings::embedded() }
    }

    #[test]
    fn equal_settings_differ_in_nothing() {
        assert!(diff(&Settings::embedded(), &Settings::embedded()).is_empty());
    }

    /// Changes one field after the other and expects exactly its key, so that no `same` of the
    /// table can compare the wrong field.
    #[test]
    fn each_key_alone_is_told_and_carried() {
        type Edit = fn(&mut Settings);
        let edits: &[(&str, Edit)] = &[
            ("gateway.listen", |s| s.gateway.listen.set_port(1)),
            ("gateway.max_subscribers", |s| s.gateway.max_subscribers = 1),
            ("gateway.max_known_instruments", |s| s.gateway.max_known_instruments = 1),
            ("gateway.max_known_accounts", |s| s.gateway.max_known_accounts = 1),
            ("gateway.shards", |s| s.gateway.shards = 1),
            ("gateway.pace", |s| s.gateway.pace = Duration::ZERO),
            ("gateway.handshake_timeout", |s| s.gateway.handshake_timeout = Duration::ZERO),
            ("gateway.max_header_bytes", |s| s.gateway.max_header_bytes = 1),
            ("gateway.heartbeat", |s| s.gateway.heartbeat = Duration::ZERO),
            ("gateway.shutdown_deadline", |s| s.gateway.shutdown_deadline = Duration::ZERO),
            ("gateway.allowed_origins", |s| s.gateway.allowed_origins.push(String::new())),
            ("subscriber.capacity", |s| s.subscriber.capacity = 1),
            ("subscriber.confirm", |s| s.subscriber.confirm = Confirm::Flush),
            ("subscriber.max_hz", |s| s.subscriber.max_hz = 1),
            ("subscriber.stall_timeout", |s| s.subscriber.stall_timeout = Duration::ZERO),
            ("subscriber.max_instruments", |s| s.subscriber.max_instruments = 1),
            ("subscriber.max_batch_bytes", |s| s.subscriber.max_batch_bytes = 1),
            ("subscriber.max_in_flight_ms", |s| s.subscriber.max_in_flight_ms = 1),
            ("subscriber.max_message_bytes", |s| s.subscriber.max_message_bytes = 1),
            ("subscriber.max_ops_per_s", |s| s.subscriber.max_ops_per_s = 1),
            ("admin.listen", |s| s.admin.listen.set_port(1)),
        ];
        assert_eq!(edits.iter().map(|(name, _)| *name).collect::<Vec<_>>(), {
            KEYS.iter().map(|info| info.name).collect::<Vec<_>>()
        });
        let old = Settings::embedded();
        for ((name, edit), info) in edits.iter().zip(KEYS) {
            let mut new = old.clone();
            edit(&mut new);
            let found = diff(&old, &new);
            let (told, silent) = match info.effect {
                Effect::Hot => (&found.hot, &found.needs_restart),
                Effect::Restart => (&found.needs_restart, &found.hot),
            };
            assert_eq!(told, &[*name], "{name}");
            assert!(silent.is_empty(), "{name}");
            let carried = with_hot_keys_of(&old, &new, told);
            assert_eq!(carried == new, info.effect == Effect::Hot, "{name}");
            assert_eq!(carried == old, info.effect == Effect::Restart, "{name}");
        }
    }

    #[test]
    fn each_key_of_a_feed_is_told_with_the_feeds_name() {
        type Edit = fn(&mut FeedSettings);
        let edits: &[(&[&str], Edit)] = &[
            (&["feed.a.venue"], |f| f.venue = "x".to_owned()),
            (&["feed.a.account"], |f| f.account = Some("x".to_owned())),
            (&["feed.a.recording"], |f| {
                f.input = Input::Recording(vec![Recording::File("x".into())]);
            }),
            (&["feed.a.recording", "feed.a.lines"], |f| f.input = Input::Lines(Lines::Stdin)),
            (&["feed.a.speed"], |f| f.speed = Speed::Max),
            (&["feed.a.loop"], |f| f.looped = true),
            (&["feed.a.start"], |f| f.start = Start::FirstSubscriber),
            (&["feed.a.max_gap"], |f| f.max_gap = Duration::ZERO),
            (&["feed.a.from"], |f| f.from = Some(1)),
            (&["feed.a.to"], |f| f.to = Some(1)),
            (&["feed.a.only"], |f| f.only.push("A".to_owned())),
            (&["feed.a.timeline"], |f| f.timeline = Some("x".to_owned())),
            (&["feed.a.queue"], |f| f.queue = 1),
        ];
        let old = settings(vec![feed("a"), feed("b")]);
        for (keys, edit) in edits {
            let mut new = old.clone();
            edit(&mut new.feeds[0]);
            assert_eq!(diff(&old, &new).needs_restart, *keys);
        }
    }

    #[test]
    fn feeds_added_removed_and_reordered_are_told() {
        let old = settings(vec![feed("a"), feed("b"), feed("c")]);
        let told = |names: &[&str]| {
            let new = settings(names.iter().map(|name| feed(name)).collect());
            diff(&old, &new).needs_restart
        };
        assert_eq!(told(&["a", "b"]), ["feed.c"]);
        assert_eq!(told(&["b", "c"]), ["feed.a"]);
        assert_eq!(told(&["x", "a", "b", "c"]), ["feed.x"]);
        assert_eq!(told(&["b", "a", "c"]), ["feed"]);
        assert_eq!(told(&["c", "x", "a"]), ["feed.b", "feed.x", "feed"]);
    }
}
