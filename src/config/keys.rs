//! Every key of the configuration, once: whether a change of it is taken while running, how it is
//! compared and how it is carried over. A test holds this table and the settings' fields equal.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::settings::{FeedSettings, Settings};

/// When a change of a key takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// At once, for subscribers that are connected too.
    Hot,
    /// With the next start of the program.
    Restart,
}

/// A key by its full name, such as `subscriber.capacity` or `feed.spot.speed`; `feed.spot` is a
/// feed as a whole (added or removed), `feed` their order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Cow<'static, str>);

impl Key {
    /// The full name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hot key of this full name (`subscriber.capacity`) or last word (`capacity`; those of
    /// hot keys are unique). `None` if there is none.
    #[must_use]
    pub fn hot(name: &str) -> Option<Self> {
        KEYS.iter()
            .filter(|key| key.effect == Effect::Hot)
            .find(|key| {
                key.name == name || key.name.rsplit_once('.').is_some_and(|(_, word)| word == name)
            })
            .map(KeyInfo::key)
    }

    /// The full names of all hot keys.
    pub(super) fn all_hot() -> Vec<&'static str> {
        KEYS.iter().filter(|key| key.effect == Effect::Hot).map(|key| key.name).collect()
    }

    pub(super) fn of_feed(feed: &str, word: &str) -> Self {
        Self(Cow::Owned(format!("feed.{feed}.{word}")))
    }

    pub(super) fn feed(feed: &str) -> Self {
        Self(Cow::Owned(format!("feed.{feed}")))
    }

    pub(super) const FEED_ORDER: Self = Self(Cow::Borrowed("feed"));
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl PartialEq<str> for Key {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for Key {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// One key outside the feeds.
#[derive(Debug)]
pub struct KeyInfo {
    /// The full name.
    pub name: &'static str,
    /// When a change takes effect.
    pub effect: Effect,
    pub(super) same: fn(&Settings, &Settings) -> bool,
    pub(super) carry: fn(&mut Settings, &Settings),
}

impl KeyInfo {
    pub(super) fn key(&self) -> Key {
        Key(Cow::Borrowed(self.name))
    }
}

/// One key of a feed. Most need a restart: a feed's connection, codec state and order are one thing.
#[derive(Debug)]
pub(super) struct FeedKeyInfo {
    pub(super) word: &'static str,
    pub(super) effect: Effect,
    pub(super) same: fn(&FeedSettings, &FeedSettings) -> bool,
    /// Takes the value over; does nothing where a change needs a restart.
    pub(super) carry: fn(&mut FeedSettings, &FeedSettings),
}

macro_rules! key {
    ($section:ident . $field:ident, $effect:ident) => {
        KeyInfo {
            name: concat!(stringify!($section), ".", stringify!($field)),
            effect: Effect::$effect,
            same: |one, other| one.$section.$field == other.$section.$field,
            carry: |to, from| to.$section.$field.clone_from(&from.$section.$field),
        }
    };
}

macro_rules! feed_key {
    ($word:literal, |$feed:ident| $value:expr) => {
        FeedKeyInfo {
            word: $word,
            effect: Effect::Restart,
            carry: |_, _| {},
            same: |one, other| {
                let value = |$feed: &FeedSettings| $value;
                value(one) == value(other)
            },
        }
    };
}

/// A key of a live feed that is taken while it runs.
macro_rules! live_key {
    ($field:ident) => {
        FeedKeyInfo {
            word: stringify!($field),
            effect: Effect::Hot,
            same: |one, other| {
                let value = |feed: &FeedSettings| feed.live.as_ref().map(|l| l.$field.clone());
                value(one) == value(other)
            },
            carry: |to, from| {
                if let (Some(to), Some(from)) = (&mut to.live, &from.live) {
                    to.$field.clone_from(&from.$field);
                }
            },
        }
    };
}

/// Every key outside the feeds.
pub const KEYS: &[KeyInfo] = &[
    key!(gateway.listen, Restart),
    key!(gateway.max_subscribers, Hot),
    key!(gateway.max_known_instruments, Restart),
    key!(gateway.max_known_accounts, Restart),
    key!(gateway.shards, Restart),
    key!(gateway.pace, Hot),
    key!(gateway.handshake_timeout, Restart),
    key!(gateway.max_header_bytes, Restart),
    key!(gateway.heartbeat, Hot),
    key!(gateway.shutdown_deadline, Hot),
    key!(gateway.allowed_origins, Hot),
    key!(subscriber.capacity, Hot),
    key!(subscriber.confirm, Restart),
    key!(subscriber.max_hz, Hot),
    key!(subscriber.stall_timeout, Hot),
    key!(subscriber.max_instruments, Hot),
    key!(subscriber.max_batch_bytes, Hot),
    key!(subscriber.max_in_flight_ms, Hot),
    key!(subscriber.max_message_bytes, Hot),
    key!(subscriber.max_ops_per_s, Hot),
    key!(admin.listen, Restart),
];

/// Every key of a feed but its name, which is what tells feeds apart.
pub(super) const FEED_KEYS: &[FeedKeyInfo] = &[
    feed_key!("venue", |feed| feed.venue.clone()),
    feed_key!("account", |feed| feed.account.clone()),
    feed_key!("recording", |feed| feed.input.recordings().map(<[_]>::to_vec)),
    feed_key!("lines", |feed| feed.input.lines().cloned()),
    feed_key!("url", |feed| feed.input.url().map(str::to_owned)),
    live_key!(instruments),
    live_key!(channels),
    feed_key!("stale_after", |feed| feed.live.as_ref().and_then(|live| live.stale_after)),
    feed_key!("first_retry", |feed| feed.live.as_ref().map(|live| live.first_retry)),
    feed_key!("longest_retry", |feed| feed.live.as_ref().map(|live| live.longest_retry)),
    feed_key!("ca_file", |feed| feed.live.as_ref().and_then(|live| live.ca_file.clone())),
    feed_key!("speed", |feed| feed.speed),
    feed_key!("loop", |feed| feed.looped),
    feed_key!("start", |feed| feed.start),
    feed_key!("max_gap", |feed| feed.max_gap),
    feed_key!("from", |feed| feed.from),
    feed_key!("to", |feed| feed.to),
    feed_key!("only", |feed| feed.only.clone()),
    feed_key!("timeline", |feed| feed.timeline.clone()),
    feed_key!("queue", |feed| feed.queue),
    feed_key!("record", |feed| feed.record.clone()),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{Input, Lines, LiveSettings, Recording};

    /// The keys that serialised settings have, taken from the structs themselves.
    fn written(settings: &Settings) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        let value = serde_json::to_value(settings).unwrap();
        for (section, fields) in value.as_object().unwrap() {
            match fields {
                serde_json::Value::Array(feeds) => keys.extend(
                    feeds
                        .iter()
                        .flat_map(|feed| feed.as_object().unwrap().keys())
                        .map(|word| format!("{section}.{word}")),
                ),
                fields => keys.extend(
                    fields.as_object().unwrap().keys().map(|word| format!("{section}.{word}")),
                ),
            }
        }
        keys
    }

    #[test]
    fn every_field_of_the_settings_is_in_the_table_and_nothing_else() {
        let mut settings = Settings::embedded();
        let mut recorded =
            FeedSettings::new("a", "binance", Input::Recording(vec![Recording::Sample]));
        recorded.account = Some("desk".to_owned());
        recorded.timeline = Some("day".to_owned());
        (recorded.from, recorded.to) = (Some(1), Some(2));
        recorded.only = vec!["A".to_owned()];
        recorded.record = Some(crate::config::RecordSettings::new("recordings"));
        let mut live = FeedSettings::new("c", "binance", Input::Url("ws://a".to_owned()));
        live.live = Some(LiveSettings {
            stale_after: Some(std::time::Duration::from_secs(1)),
            ca_file: Some("ca.pem".into()),
            ..LiveSettings::new(vec!["A".to_owned()], vec!["trade".to_owned()])
        });
        let lines = FeedSettings::new("b", "b", Input::Lines(Lines::Stdin));
        settings.feeds = vec![recorded, lines, live];
        let table: BTreeSet<String> = KEYS
            .iter()
            .map(|key| key.name.to_owned())
            .chain(FEED_KEYS.iter().map(|key| format!("feed.{}", key.word)))
            .chain(["feed.name".to_owned()])
            .collect();
        assert_eq!(table, written(&settings));
        assert_eq!(table.len(), KEYS.len() + FEED_KEYS.len() + 1, "no key is listed twice");
    }

    #[test]
    fn the_last_words_of_hot_keys_are_unique_and_find_them() {
        for info in KEYS.iter().filter(|info| info.effect == Effect::Hot) {
            let word = info.name.rsplit_once('.').unwrap().1;
            assert_eq!(Key::hot(word).unwrap(), info.name);
            assert_eq!(Key::hot(info.name).unwrap(), info.name);
        }
        assert_eq!(Key::hot("listen"), None);
        assert_eq!(Key::hot("gateway.listen"), None);
        assert_eq!(Key::hot("nonsense"), None);
    }
}
