//! What a venue answered to requests, for those who made them.
//!
//! A codec says that a message is [`Control::Ack`](super::Control::Ack) or
//! [`Control::Error`](super::Control::Error) and looks no further: answers make neither quotes nor
//! fills. Who asked for a channel wants to know more, a few times in a connection's life: *which*
//! channel of *which* symbol was granted or refused, and why. [`Venue::answers`](super::Venue::answers)
//! reads that from the same message, with a general JSON reader and no state.

use serde_json::Value;

/// What a venue did with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The channel is subscribed.
    Subscribed,
    /// The channel is no longer subscribed.
    Unsubscribed,
    /// The channel is among those that the connection has, all of which the same message lists: a
    /// channel that is not among its answers is not subscribed. One answer without a channel says
    /// that there is none.
    Held,
    /// The request succeeded, and the message does not say what it was: its id does.
    Done,
    /// The request was refused, or the venue complains of something else if nothing says what.
    Refused(
        /// The venue's own words, at most [`MAX_REASON_BYTES`].
        String,
    ),
}

/// One answer. Members are `None` where the message does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The id of the request, as text (a number in its digits).
    pub request: Option<String>,
    /// The venue's name of the channel, as in a request.
    pub channel: Option<String>,
    /// The symbol as instruments are named by it.
    pub symbol: Option<String>,
    /// What became of the request.
    pub outcome: Outcome,
}

/// Longest reason that is passed on, in bytes.
pub const MAX_REASON_BYTES: usize = 500;

impl Answer {
    /// An answer that says nothing else.
    #[must_use]
    pub const fn new(outcome: Outcome) -> Self {
        Self { request: None, channel: None, symbol: None, outcome }
    }

    /// A refusal in the venue's words, cut to [`MAX_REASON_BYTES`].
    pub(super) fn refused(reason: &str) -> Self {
        let end = reason.floor_char_boundary(MAX_REASON_BYTES);
        Self::new(Outcome::Refused(reason[..end].to_owned()))
    }

    pub(super) fn request(mut self, id: &Value) -> Self {
        self.request = text_of(id);
        self
    }

    pub(super) fn channel(mut self, channel: impl Into<Option<String>>) -> Self {
        self.channel = channel.into();
        self
    }

    pub(super) fn symbol(mut self, symbol: impl Into<Option<String>>) -> Self {
        self.symbol = symbol.into();
        self
    }
}

/// Text or a number, as text.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
