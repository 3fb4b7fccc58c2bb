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
    /// Longest that a busy shard gathers changes before a sweep; zero: not at all.
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
            pace: Duration::from_millis(3),
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
    /// Milliseconds that what is in flight may take to arrive; 0: no bound.
    pub max_in_flight_ms: u32,
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
            max_in_flight_ms: 0,
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
    /// Recordings, a line feed, or a venue's address.
    #[serde(flatten)]
    pub input: Input,
    /// What a venue is asked for; `None` where nothing is asked.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveSettings>,
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
    /// Only records received then or later are played, in ns since the Unix epoch.
    #[serde(serialize_with = "time::serialize_wall", skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Only records received before then are played, in ns since the Unix epoch.
    #[serde(serialize_with = "time::serialize_wall", skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// Only what is about these instruments is played, and what is about none; empty: everything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Recordings of all feeds on one timeline are merged by receive time; a feed without one plays
    /// by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeline: Option<String>,
    /// Instruments that may be waiting for the board at once (the worker's capacity).
    pub queue: usize,
    /// Where what the feed receives is recorded; `None`: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordSettings>,
}

/// What a live feed asks its venue for, and how patient it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LiveSettings {
    /// Symbols as instruments are named by them; at least one. Taken while running.
    pub instruments: Vec<String>,
    /// The venue's channels; at least one. Taken while running.
    pub channels: Vec<String>,
    /// How long without a sign of life until the connection is given up; `None`: as the venue's
    /// dialect says.
    #[serde(serialize_with = "time::serialize_some", skip_serializing_if = "Option::is_none")]
    pub stale_after: Option<Duration>,
    /// The wait after the first failure to connect.
    #[serde(serialize_with = "time::serialize")]
    pub first_retry: Duration,
    /// The longest wait between two attempts to connect.
    #[serde(serialize_with = "time::serialize")]
    pub longest_retry: Duration,
    /// Certificates to trust beside the platform's (PEM); a relative path is joined to the
    /// configuration's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl LiveSettings {
    /// These channels of these instruments, all else as documented.
    #[must_use]
    pub fn new(instruments: Vec<String>, channels: Vec<String>) -> Self {
        Self {
            instruments,
            channels,
            stale_after: None,
            first_retry: Duration::from_millis(250),
            longest_retry: Duration::from_secs(30),
            ca_file: None,
        }
    }
}

/// `[feed.record]`: a feed's recorder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordSettings {
    /// Where the files go; a relative path of the configuration is joined to its folder.
    pub folder: PathBuf,
    /// A file of so many bytes is followed by the next; 0: files have any size.
    pub rotate_bytes: u64,
    /// A file this old is followed by the next; zero: files get any age.
    #[serde(serialize_with = "time::serialize")]
    pub rotate_every: Duration,
    /// So many files of the feed are kept; 0: all.
    pub keep_files: u32,
    /// The files of the feed that are kept have at most so many bytes; 0: any.
    pub keep_bytes: u64,
    /// Bytes that may wait for the disk; what comes beyond is lost and counted.
    pub queue_bytes: u64,
}

impl RecordSettings {
    /// A recorder into this folder, all else as documented.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            rotate_bytes: 1 << 30,
            rotate_every: Duration::from_secs(3600),
            keep_files: 0,
            keep_bytes: 0,
            queue_bytes: 32 << 20,
        }
    }
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
            live: None,
            speed: Speed::Times(1.0),
            looped: false,
            start: Start::AtOnce,
            max_gap: Duration::from_secs(10),
            from: None,
            to: None,
            only: Vec::new(),
            timeline: None,
            queue: 4096,
            record: None,
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
    /// A venue's address: `ws://` or `wss://`.
    Url(String),
}

impl Input {
    /// The recordings, if it is these.
    #[must_use]
    pub fn recordings(&self) -> Option<&[Recording]> {
        match self {
            Self::Recording(recordings) => Some(recordings),
            Self::Lines(_) | Self::Url(_) => None,
        }
    }

    /// The line source, if it is one.
    #[must_use]
    pub fn lines(&self) -> Option<&Lines> {
        match self {
            Self::Lines(lines) => Some(lines),
            Self::Recording(_) | Self::Url(_) => None,
        }
    }

    /// The venue's address, if it is one.
    #[must_use]
    pub fn url(&self) -> Option<&str> {
        match self {
            Self::Url(url) => Some(url),
            Self::Recording(_) | Self::Lines(_) => None,
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
