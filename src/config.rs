//! Settings: read, checked as a whole, compared, and applied all or nothing while the gateway runs.
//!
//! | step | where | outcome |
//! |---|---|---|
//! | text to located values | `raw` | every value with its line; wrong types and unknown keys named |
//! | located values to [`Settings`] | `check`, `feeds` | ranges and rules; *all* problems at once as [`ConfigErrors`] |
//! | old and new to changed keys | [`diff()`] | each key hot, or needing a restart; [`KEYS`] decides |
//! | changed keys to running parts | `reload`, `retune` | [`Reloader`]: every [`Part`] takes the change, or none keeps it |
//! | file to "look again" | `watch` | [`Watch`]: rename-saves, symlink swaps, noise |
//!
//! Three states are kept apart: the *last loaded file*, the settings *in effect* (that file, less the
//! keys that wait for a restart, plus run-time overrides), and whatever a bad file says, which is
//! reported and never in effect.
//!
//! This module opens no socket, handles no signal and knows no other part of the program: a part
//! that wants to follow changes is handed in as a [`Part`].

mod check;
mod debounce;
mod diff;
mod error;
mod feeds;
mod keys;
mod live;
mod played;
mod raw;
mod reload;
mod retune;
mod settings;
mod source;
mod steps;
mod time;
mod watch;

pub use diff::{Diff, diff};
pub use error::{ConfigError, ConfigErrors};
pub use keys::{Effect, KEYS, Key, KeyInfo};
pub use reload::{Part, PartError, ReloadError, ReloadReport, Reloader};
pub use settings::{
    AdminSettings, Confirm, FeedSettings, GatewaySettings, Input, Lines, LiveSettings,
    RecordSettings, Recording, Settings, Speed, Start, SubscriberSettings,
};
pub use source::{EMBEDDED_DEFAULT, MAX_FILE_BYTES, Source, VENUES};
pub use time::{format as format_duration, parse_wall as parse_wall_time};
pub use watch::{Watch, WatchError, WatchTiming};
