//! What a venue is told, and the rules it sets.

use std::num::NonZeroU32;
use std::time::Duration;

/// A channel of a symbol, both as the venue calls them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic {
    /// The channel, such as `bookTicker`.
    pub channel: String,
    /// The symbol as instruments are named by it.
    pub symbol: String,
}

impl Topic {
    /// A channel of a symbol.
    #[must_use]
    pub fn new(channel: impl Into<String>, symbol: impl Into<String>) -> Self {
        Self { channel: channel.into(), symbol: symbol.into() }
    }
}

/// What is wanted of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wish {
    /// Its messages.
    Subscribe,
    /// No more of them.
    Unsubscribe,
}

/// One message to the venue that asks for topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The id that the answer will carry, as text; `None` where the venue's answers name topics.
    pub id: Option<String>,
    /// The message.
    pub text: String,
    /// What it asks for; its answer is about these.
    pub topics: Vec<Topic>,
}

/// A venue's own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Messages that may be sent within [`Rules::window`], pings included.
    pub messages: NonZeroU32,
    /// See [`Rules::messages`].
    pub window: Duration,
    /// Least time between two attempts to connect.
    pub connect_interval: Duration,
    /// How often to ping; `None` where the venue pings, or needs none.
    pub ping_every: Option<Duration>,
    /// Whether the venue sends heartbeats of itself; where not, one is the answer to a ping of ours.
    pub heartbeats: bool,
    /// How long a connection lives before the venue ends it; ours ends a little sooner.
    pub lifetime: Option<Duration>,
    /// How long without a sign of life until the connection is given up, unless configured.
    pub stale_after: Duration,
}

/// How one venue is spoken to.
pub trait Dialect: Send {
    /// Its rules.
    fn rules(&self) -> Rules;

    /// What to say first on every connection, before topics are asked for.
    fn greeting(&self) -> Vec<String> {
        Vec::new()
    }

    /// One message that asks for as many of `topics` as may be asked for at once, from the first on;
    /// `number` is the message's own on this connection. `topics` is not empty.
    fn request(&self, wish: Wish, topics: &[Topic], number: u64) -> Request;

    /// The text of a ping, where the venue wants one of its own making; `None`: a WebSocket ping.
    fn ping(&self, _number: u64) -> Option<String> {
        None
    }

    /// What must be said to a message at once, such as the answer to a test.
    fn reply(&self, _message: &[u8]) -> Option<String> {
        None
    }
}

/// What a venue did with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// The topic is subscribed.
    Granted,
    /// The topic is no longer subscribed.
    Released,
    /// The topic is among those that the connection has; the message lists all of them.
    Held,
    /// The request succeeded, whatever it was.
    Done,
    /// The request was refused, in the venue's words.
    Refused(String),
}

/// An answer to a request. Members are `None` where the message does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The id of the request.
    pub request: Option<String>,
    /// The channel.
    pub channel: Option<String>,
    /// The symbol.
    pub symbol: Option<String>,
    /// What became of it.
    pub outcome: ReplyOutcome,
}

/// What a message was, told to the feed by who decodes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Data, or a heartbeat that the venue sends of itself.
    Alive,
    /// Answers to requests.
    Replies(Vec<Reply>),
    /// The venue is about to close the connection.
    Closing,
    /// Anything else: no sign of life.
    Other,
}
