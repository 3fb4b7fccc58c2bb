//! Checked settings: what the rest of the program is given, each part its own struct.
//!
//! Every value here has passed its range and rules. The `Default`s are the documented ones; a test
//! holds them equal to the embedded `config/default.toml`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::time;

/// All settings, checked.
///
/// Serialises to the shape of the configuration file, so that what an endpoint shows can be saved
/// and loaded again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// Listening, admission and what is shared by all subscribers.
    pub gateway: GatewaySettings,
    /// What each subscriber is allowed.
    pub subscriber: SubscriberSettings,
    /// The operators' HTTP server.
    pub admin: AdminSettings,
    /// Where ticks come from, in the order of the file; at least one, names unique.
    #[serde(rename = "feed")]
    pub feeds: Vec<FeedSettings>,
}

/// `[gateway]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GatewaySettings {
    /// Where subscribers connect; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Subscribers connected at once, at most; 0 admits nobody new. Lowering disconnects nobody.
    pub max_subscribers: u32,
    /// Instruments kept, at most; a new one past it is refused and counted.
    pub max_known_instruments: usize,
    /// Accounts kept, at most; a fill of a new one past it is refused and counted.
    pub max_known_accounts: usize,
    /// Fan-out shards; 0: one per core.
    pub shards: usize,
    /// Least time between two sweeps of a shard under load; zero: none.
    #[serde(serialize_with = "time::serialize")]
    pub pace: Duration,
    /// Longest a connection may take to become a WebSocket.
    #[serde(serialize_with = "time::serialize")]
    pub handshake_timeout: Duration,
    /// Bytes of HTTP headers a handshake may send.
    pub max_header_bytes: usize,
    /// Period of the heartbeat that an otherwise silent connection gets.
    #[serde(serialize_with = "time::serialize")]
    pub heartbeat: Duration,
    /// Longest a shutdown may take before connections are dropped.
    #[serde(serialize_with = "time::serialize")]
    pub shutdown_deadline: Duration,
    /// `Origin`s that a browser may connect from, matched exactly; empty: any.
    pub allowed_origins: Vec<String>,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9010)),
            max_subscribers: 1000,
            max_known_instruments: 100_000,
            max_known_accounts: 10_000,
            shards: 0,
            pace: Duration::from_millis(1),
            handshake_timeout: Duration::from_secs(10),
            max_header_bytes: 16_384,
            heartbeat: Duration::from_secs(20),
            shutdown_deadline: Duration::from_secs(5),
            allowed_origins: Vec::new(),
        }
    }
}

/// `[subscriber]`: the allowance of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SubscriberSettings {
    /// Unconfirmed batches in flight, at most; 0 pauses.
    pub capacity: u32,
    /// What confirms a batch.
    pub confirm: Confirm,
    /// Batches a second, at most; 0: no ceiling.
    pub max_hz: u32,
    /// Longest a subscriber may owe a confirmation before it is closed as stalled.
    #[serde(serialize_with = "time::serialize")]
    pub stall_timeout: Duration,
    /// Instruments one subscriber may hold, at most.
    pub max_instruments: usize,
    /// Bytes of one batch, at most.
    pub max_batch_bytes: usize,
    /// Bytes of one message from a client, at most.
    pub max_message_bytes: usize,
    /// Operations a client may send in a second.
    pub max_ops_per_s: u32,
}

impl Default for SubscriberSettings {
    fn default() -> Self {
        Self {
            capacity: 8,
            confirm: Confirm::Pong,
            max_hz: 0,
            stall_timeout: Duration::from_secs(30),
            max_instruments: 10_000,
            max_batch_bytes: 65_536,
            max_message_bytes: 65_536,
            max_ops_per_s: 100,
        }
    }
}

/// `[admin]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AdminSettings {
    /// Where operators connect; port 0 lets the system choose. It has no access control of its own.
    pub listen: SocketAddr,
}

impl Default for AdminSettings {
    fn default() -> Self {
        Self { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 9011)) }
    }
}

/// What confirms that a batch has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    /// The pong to the ping that rides behind a batch; every standard client sends it unasked.
    #[default]
    Pong,
    /// An explicit `ack` operation.
    Client,
    /// The socket having taken the whole batch.
    Flush,
}

/// One `[[feed]]`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FeedSettings {
    /// Unique; 1 to 64 ASCII letters, digits, `-` and `_`.
    pub name: String,
    /// One of the venue names that the file was checked against.
    pub venue: String,
    /// Whose fills this feed carries, if its messages do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Recordings, or a line feed.
    #[serde(flatten)]
    pub input: Input,
    /// How fast recordings are played. A line feed comes as it comes.
    pub speed: Speed,
    /// Whether recordings start again at their end. A line feed has none.
    #[serde(rename = "loop")]
    pub looped: bool,
    /// When the feed begins.
    pub start: Start,
    /// Longest pause between two records of a recording, in its own time; zero: as recorded.
    #[serde(serialize_with = "time::serialize")]
    pub max_gap: Duration,
    /// Recordings of all feeds on one timeline are merged by receive time; a feed without one plays
    /// by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<String>,
    /// Instruments that may be waiting for the board at once (the worker's capacity).
    pub queue: usize,
}

impl FeedSettings {
    /// A feed of this name, venue and input, all else as documented.
    #[must_use]
    pub fn new(name: impl Into<String>, venue: impl Into<String>, input: Input) -> Self {
        Self {
            name: name.into(),
            venue: venue.into(),
            account: None,
            input,
            speed: Speed::Times(1.0),
            looped: false,
            start: Start::AtOnce,
            max_gap: Duration::from_secs(10),
            timeline: None,
            queue: 4096,
        }
    }
}

/// Where the bytes of a feed come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Input {
    /// Recordings, merged by receive time; at least one.
    Recording(Vec<Recording>),
    /// Raw messages, one a line.
    Lines(Lines),
}

impl Input {
    /// The recordings, if it is these.
    #[must_use]
    pub fn recordings(&self) -> Option<&[Recording]> {
        match self {
            Self::Recording(recordings) => Some(recordings),
            Self::Lines(_) => None,
        }
    }

    /// The line source, if it is one.
    #[must_use]
    pub fn lines(&self) -> Option<&Lines> {
        match self {
            Self::Recording(_) => None,
            Self::Lines(lines) => Some(lines),
        }
    }
}

/// One recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recording {
    /// The sample inside the program; written `embedded:sample`.
    Sample,
    /// A file; a relative path of the configuration is joined to the configuration's folder.
    File(PathBuf),
}

impl Recording {
    pub(super) const SCHEME: &'static str = "embedded:";
    pub(super) const SAMPLE: &'static str = "embedded:sample";
}

impl Serialize for Recording {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Sample => serializer.serialize_str(Self::SAMPLE),
            Self::File(path) => serializer.collect_str(&path.display()),
        }
    }
}

/// Where a line feed reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lines {
    /// The program's standard input; written `-`.
    Stdin,
    /// A TCP address `host:port` to connect to; written `tcp://host:port`.
    Tcp(String),
}

impl Serialize for Lines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Stdin => serializer.serialize_str("-"),
            Self::Tcp(address) => serializer.collect_str(&format_args!("tcp://{address}")),
        }
    }
}

/// How fast a recording is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// This many times as fast as it was recorded; finite and above zero.
    Times(f64),
    /// As fast as it can be read; written `max`.
    Max,
}

impl Serialize for Speed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Times(factor) => serializer.serialize_f64(*factor),
            Self::Max => serializer.serialize_str("max"),
        }
    }
}

/// When a feed begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// With the program.
    #[default]
    AtOnce,
    /// With the first subscriber.
    FirstSubscriber,
}

impl Settings {
    /// The settings as a configuration file.
    ///
    /// # Errors
    ///
    /// A value that TOML cannot hold; no checked settings have one.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }
}
