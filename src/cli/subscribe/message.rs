//! The gateway's messages as a client reads them. Members that are not used are not read, and new
//! ones do no harm.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What every message has.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
}

/// `quotes` and `volume`: a batch of values.
#[derive(Deserialize)]
pub(super) struct Batch<'a> {
    #[serde(default)]
    pub(super) snapshot: bool,
    pub(super) batch: Option<u64>,
    pub(super) held_us: Option<u64>,
    #[serde(borrow)]
    pub(super) why: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "volumes")]
    pub(super) quotes: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Quote<'a> {
    #[serde(borrow)]
    pub(super) instrument: Cow<'a, str>,
    pub(super) tick: u64,
    #[serde(borrow)]
    pub(super) bid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) bid_size: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) ask: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) ask_size: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) last: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) last_size: Option<Cow<'a, str>>,
    pub(super) receive_time: i64,
}

#[derive(Deserialize)]
pub(super) struct Volume<'a> {
    #[serde(borrow)]
    pub(super) account: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) instrument: Cow<'a, str>,
    pub(super) fills: u64,
    #[serde(borrow)]
    pub(super) bought: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) sold: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) notional: Cow<'a, str>,
}

/// What is in force for this client.
#[derive(Deserialize)]
pub(super) struct Effective<'a> {
    pub(super) max_hz: f64,
    pub(super) capacity: u64,
    #[serde(borrow)]
    pub(super) confirm: Cow<'a, str>,
}

#[derive(Deserialize)]
pub(super) struct Welcome<'a> {
    #[serde(borrow)]
    pub(super) server: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) subscriber: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) effective: Effective<'a>,
}

#[derive(Deserialize)]
pub(super) struct Limits<'a> {
    pub(super) generation: u64,
    #[serde(borrow)]
    pub(super) effective: Effective<'a>,
}

/// `ack`: what is subscribed from now on.
#[derive(Deserialize)]
pub(super) struct Ack<'a> {
    #[serde(default, borrow)]
    pub(super) subscribed: Vec<Cow<'a, str>>,
    #[serde(default, borrow)]
    pub(super) waiting: Vec<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) effective: Option<Effective<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Refusal<'a> {
    #[serde(borrow)]
    pub(super) code: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) message: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) names: Vec<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct Status<'a> {
    #[serde(borrow)]
    pub(super) feed: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) health: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct Shutdown {
    pub(super) retry_after_ms: u64,
}

/// `pong`: the answer to a ping operation.
#[derive(Deserialize)]
pub(super) struct Pong<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
}
