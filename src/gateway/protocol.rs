//! Client protocol v1: what a client may say, and how each answer is spelled.
//!
//! Text in, [`Op`] out; values in, JSON text out. No state, no I/O, no clock. `PROTOCOL.md` beside this
//! file describes every message for those who write clients.

use std::borrow::Cow;
use std::io::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::market::decimal::{self, Decimal};
use crate::market::health::Health;
use crate::market::instrument::is_symbol;
use crate::market::{Quote, Volume};

/// The protocol's version, in the path and in the welcome.
pub(crate) const VERSION: u32 = 1;

/// The path that is upgraded.
pub const PATH: &str = "/v1/stream";

/// Longest accepted request id, in bytes of its JSON text.
pub(crate) const MAX_ID_BYTES: usize = 64;

/// How a batch is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Confirm {
    /// By the pong to the ping that rides behind it.
    #[default]
    Pong,
    /// By the client's own `ack` operation.
    Client,
    /// By the socket having taken all of it.
    Flush,
}

impl Confirm {
    /// As the configuration and the protocol spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pong => "pong",
            Self::Client => "client",
            Self::Flush => "flush",
        }
    }
}

/// What held the oldest change of a batch until the batch was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Why {
    /// Nothing: it went out with the first sweep that saw it.
    #[default]
    None,
    /// No permit: as many batches were unconfirmed as the capacity allows.
    Capacity,
    /// The rate window was closed.
    Rate,
    /// The sweep cadence.
    Pace,
    /// The socket would have blocked.
    Socket,
}

impl Why {
    /// Every reason, in the order of [`index`](Self::index).
    pub const ALL: [Self; 5] = [Self::None, Self::Capacity, Self::Rate, Self::Pace, Self::Socket];

    /// As the protocol spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Capacity => "capacity",
            Self::Rate => "rate",
            Self::Pace => "pace",
            Self::Socket => "socket",
        }
    }

    /// Its place in [`ALL`](Self::ALL).
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// What is in force for one subscriber.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Effective {
    /// Batches a second; 0 for no ceiling.
    pub(crate) max_hz: f64,
    /// Unconfirmed batches in flight; 0 pauses.
    pub(crate) capacity: usize,
    /// How batches are confirmed.
    pub(crate) confirm: Confirm,
}

/// A client's operation, checked as far as one message shows.
#[derive(Debug, PartialEq)]
pub(crate) enum Op<'a> {
    /// Instruments: names and `venue:*` patterns.
    Subscribe {
        names: Vec<Cow<'a, str>>,
        max_hz: Option<f64>,
    },
    /// Accounts whose volume is wanted; `*` for all.
    SubscribeVolume {
        accounts: Vec<Cow<'a, str>>,
        max_hz: Option<f64>,
    },
    Unsubscribe {
        names: Vec<Cow<'a, str>>,
    },
    UnsubscribeVolume {
        accounts: Vec<Cow<'a, str>>,
    },
    List,
    Rate {
        max_hz: f64,
    },
    Ack {
        batch: u64,
    },
    Ping,
}

/// A message with its id, as the client wrote it.
#[derive(Debug, PartialEq)]
pub(crate) struct Request<'a> {
    /// The JSON text of the id; `null` if there was none.
    pub(crate) id: &'a str,
    pub(crate) op: Result<Op<'a>, Fault>,
}

/// Why an operation was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    pub(crate) message: Cow<'static, str>,
}

fn fault(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Fault {
    Fault { code, message: message.into() }
}

/// The codes of `error` messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ErrorCode {
    /// Not a JSON object with an `op`.
    Malformed,
    /// No such operation.
    UnknownOp,
    /// A field is missing, of the wrong type, or out of range.
    BadField,
    /// No feed of that venue is configured.
    UnknownVenue,
    /// Not `venue:SYMBOL` and not `venue:*`.
    MalformedName,
    /// More instruments than `max_instruments`.
    TooManyInstruments,
}

impl ErrorCode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownOp => "unknown_op",
            Self::BadField => "bad_field",
            Self::UnknownVenue => "unknown_venue",
            Self::MalformedName => "malformed_name",
            Self::TooManyInstruments => "too_many_instruments",
        }
    }

    /// Whether the same request may succeed later without a change.
    const fn temporary(self) -> bool {
        matches!(self, Self::TooManyInstruments)
    }
}

#[derive(Deserialize)]
struct RawRequest<'a> {
    #[serde(borrow)]
    op: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    channel: Option<Cow<'a, str>>,
    #[serde(borrow)]
    instruments: Option<&'a RawValue>,
    #[serde(borrow)]
    accounts: Option<&'a RawValue>,
    #[serde(borrow)]
    max_hz: Option<&'a RawValue>,
    #[serde(borrow)]
    batch: Option<&'a RawValue>,
}

/// Reads one text message. `Err` if it is no JSON object at all, or has no usable id.
pub(crate) fn parse(text: &str) -> Result<Request<'_>, Fault> {
    let raw: RawRequest<'_> = serde_json::from_str(text).map_err(|error| {
        fault(
            ErrorCode::Malformed,
            format!("not an operation ({error}); one looks like {{\"op\":\"subscribe\",\"id\":1,\"instruments\":[\"venue:SYMBOL\"]}}"),
        )
    })?;
    let id = match raw.id.map(RawValue::get) {
        None => "null",
        Some(id) if id.len() <= MAX_ID_BYTES && !id.starts_with(['{', '[']) => id,
        Some(_) => {
            return Err(fault(
                ErrorCode::Malformed,
                format!("id: a number or a string of at most {MAX_ID_BYTES} bytes"),
            ));
        }
    };
    Ok(Request { id, op: parse_op(&raw) })
}

fn parse_op<'a>(raw: &RawRequest<'a>) -> Result<Op<'a>, Fault> {
    let Some(op) = raw.op.as_deref() else {
        return Err(fault(ErrorCode::Malformed, "op is missing"));
    };
    let volume = match raw.channel.as_deref() {
        None | Some("quotes") => false,
        Some("volume") => true,
        Some(_) => return Err(fault(ErrorCode::BadField, "channel: \"quotes\" or \"volume\"")),
    };
    match (op, volume) {
        ("subscribe", false) => Ok(Op::Subscribe {
            names: names("instruments", raw.instruments)?,
            max_hz: raw.max_hz.map(rate).transpose()?,
        }),
        ("subscribe", true) => Ok(Op::SubscribeVolume {
            accounts: names("accounts", raw.accounts)?,
            max_hz: raw.max_hz.map(rate).transpose()?,
        }),
        ("unsubscribe", false) => {
            Ok(Op::Unsubscribe { names: names("instruments", raw.instruments)? })
        }
        ("unsubscribe", true) => {
            Ok(Op::UnsubscribeVolume { accounts: names("accounts", raw.accounts)? })
        }
        ("list", _) => Ok(Op::List),
        ("rate", _) => match raw.max_hz {
            Some(max_hz) => Ok(Op::Rate { max_hz: rate(max_hz)? }),
            None => Err(fault(
                ErrorCode::BadField,
                "max_hz is missing: batches a second, 0 for no wish",
            )),
        },
        ("ack", _) => {
            let batch = raw.batch.and_then(|batch| serde_json::from_str(batch.get()).ok());
            batch.map(|batch| Op::Ack { batch }).ok_or_else(|| {
                fault(ErrorCode::BadField, "batch: the number of the newest batch received")
            })
        }
        ("ping", _) => Ok(Op::Ping),
        _ => {
            Err(fault(ErrorCode::UnknownOp, "op: subscribe, unsubscribe, list, rate, ack or ping"))
        }
    }
}

fn names<'a>(field: &str, raw: Option<&'a RawValue>) -> Result<Vec<Cow<'a, str>>, Fault> {
    let example = if field == "accounts" { "desk-1" } else { "venue:SYMBOL" };
    let expected =
        || fault(ErrorCode::BadField, format!("{field}: a list of names, as [\"{example}\"]"));
    let names: Vec<BorrowedName<'a>> =
        serde_json::from_str(raw.ok_or_else(expected)?.get()).map_err(|_| expected())?;
    if names.is_empty() {
        return Err(expected());
    }
    Ok(names.into_iter().map(|name| name.0).collect())
}

/// serde borrows a `Cow` only when told so, which a list's element cannot be.
#[derive(Deserialize)]
struct BorrowedName<'a>(#[serde(borrow)] Cow<'a, str>);

fn rate(raw: &RawValue) -> Result<f64, Fault> {
    match serde_json::from_str::<f64>(raw.get()) {
        Ok(hz) if hz == 0.0 || (0.001..=1_000_000.0).contains(&hz) => Ok(hz),
        _ => Err(fault(
            ErrorCode::BadField,
            "max_hz: batches a second, 0.001 to 1000000, or 0 for no wish",
        )),
    }
}

/// What a client's instrument name asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Name<'a> {
    /// One instrument.
    Instrument,
    /// Every instrument of a venue.
    Venue(&'a str),
}

/// Tells a name from a pattern; `None` if it is neither. The venue is the first part.
pub(crate) fn classify(name: &str) -> Option<(&str, Name<'_>)> {
    let (venue, symbol) = name.split_once(':')?;
    if venue.is_empty() {
        return None;
    }
    if symbol == "*" {
        return Some((venue, Name::Venue(venue)));
    }
    is_symbol(symbol).then_some((venue, Name::Instrument))
}

/// Appends a quote as every subscriber gets it.
pub(crate) fn write_quote(instrument: &str, quote: &Quote, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"instrument\":\"");
    out.extend_from_slice(instrument.as_bytes());
    out.extend_from_slice(b"\",\"tick\":");
    write_integer(quote.tick, out);
    for (field, value) in [
        (&b",\"bid\":"[..], quote.bid),
        (b",\"bid_size\":", quote.bid_size),
        (b",\"ask\":", quote.ask),
        (b",\"ask_size\":", quote.ask_size),
        (b",\"last\":", quote.last),
        (b",\"last_size\":", quote.last_size),
    ] {
        out.extend_from_slice(field);
        write_decimal(value, out);
    }
    out.extend_from_slice(b",\"venue_time\":");
    match quote.venue_time {
        Some(time) => write_integer(time, out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"receive_time\":");
    write_integer(quote.receive_time, out);
    out.push(b'}');
}

/// Appends an account's volume in one instrument.
pub(crate) fn write_volume(account: &str, instrument: &str, volume: &Volume, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"account\":\"");
    out.extend_from_slice(account.as_bytes());
    out.extend_from_slice(b"\",\"instrument\":\"");
    out.extend_from_slice(instrument.as_bytes());
    out.extend_from_slice(b"\",\"fills\":");
    write_integer(volume.fills, out);
    for (field, sum) in [
        (&b",\"bought\":\""[..], volume.bought),
        (b"\",\"sold\":\"", volume.sold),
        (b"\",\"notional\":\"", volume.notional),
    ] {
        out.extend_from_slice(field);
        sum.write(out);
    }
    out.extend_from_slice(b"\"}");
}

fn write_decimal(value: Option<Decimal>, out: &mut Vec<u8>) {
    match value {
        Some(value) => {
            out.push(b'"');
            decimal::write(value, out);
            out.push(b'"');
        }
        None => out.extend_from_slice(b"null"),
    }
}

fn write_integer(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Most bytes that [`write_batch_head`] appends.
pub(crate) const MAX_BATCH_HEAD: usize = 128;

/// Appends the opening of a batch up to the first value.
pub(crate) fn write_batch_head(
    kind: BatchKind,
    batch: u64,
    held_us: u64,
    why: Why,
    out: &mut Vec<u8>,
) {
    let (kind, list): (&[u8], &[u8]) = match kind {
        BatchKind::Snapshot => (b"{\"type\":\"quotes\",\"snapshot\":true,\"batch\":", b"quotes"),
        BatchKind::Quotes => (b"{\"type\":\"quotes\",\"batch\":", b"quotes"),
        BatchKind::VolumeSnapshot => {
            (b"{\"type\":\"volume\",\"snapshot\":true,\"batch\":", b"volumes")
        }
        BatchKind::Volumes => (b"{\"type\":\"volume\",\"batch\":", b"volumes"),
    };
    out.extend_from_slice(kind);
    write_integer(batch, out);
    out.extend_from_slice(b",\"held_us\":");
    write_integer(held_us, out);
    out.extend_from_slice(b",\"why\":\"");
    out.extend_from_slice(why.as_str().as_bytes());
    out.extend_from_slice(b"\",\"");
    out.extend_from_slice(list);
    out.extend_from_slice(b"\":[");
}

/// What a batch holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchKind {
    Snapshot,
    Quotes,
    VolumeSnapshot,
    Volumes,
}

/// Limits that the welcome tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WelcomeLimits {
    pub(crate) max_instruments: usize,
    pub(crate) max_message_bytes: usize,
    pub(crate) max_ops_per_s: u32,
    pub(crate) max_batch_bytes: usize,
}

pub(crate) fn write_welcome(
    subscriber: u64,
    epoch: &str,
    heartbeat_ms: u64,
    generation: u64,
    effective: Effective,
    limits: &WelcomeLimits,
    out: &mut Vec<u8>,
) {
    let _ = write!(
        out,
        "{{\"type\":\"welcome\",\"version\":{VERSION},\"server\":\"tidegate/{}\",\"epoch\":\"{epoch}\",\
         \"subscriber\":\"{subscriber}\",\"heartbeat_ms\":{heartbeat_ms},\"generation\":{generation},\"effective\":",
        env!("CARGO_PKG_VERSION"),
    );
    write_effective(effective, out);
    let _ = write!(
        out,
        ",\"limits\":{{\"max_instruments\":{},\"max_message_bytes\":{},\"max_ops_per_s\":{},\"max_batch_bytes\":{}}}}}",
        limits.max_instruments,
        limits.max_message_bytes,
        limits.max_ops_per_s,
        limits.max_batch_bytes,
    );
}

fn write_effective(effective: Effective, out: &mut Vec<u8>) {
    let _ = write!(
        out,
        "{{\"max_hz\":{},\"capacity\":{},\"confirm\":\"{}\"}}",
        effective.max_hz,
        effective.capacity,
        effective.confirm.as_str(),
    );
}

pub(crate) fn write_limits(generation: u64, effective: Effective, out: &mut Vec<u8>) {
    let _ = write!(out, "{{\"type\":\"limits\",\"generation\":{generation},\"effective\":");
    write_effective(effective, out);
    out.push(b'}');
}

pub(crate) fn write_status(feed: &str, health: Health, since: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"status\",\"feed\":");
    write_string(feed, out);
    let _ = write!(out, ",\"health\":\"{}\",\"reason\":", health.as_str());
    match health.reason() {
        Some(reason) => {
            let _ = write!(out, "\"{reason}\"");
        }
        None => out.extend_from_slice(b"null"),
    }
    let _ = write!(out, ",\"since\":{since}}}");
}

pub(crate) fn write_shutdown(retry_after_ms: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "{{\"type\":\"shutdown\",\"retry_after_ms\":{retry_after_ms}}}");
}

pub(crate) fn write_pong(id: &str, time: i64, out: &mut Vec<u8>) {
    let _ = write!(out, "{{\"type\":\"pong\",\"id\":{id},\"time\":{time}}}");
}

/// The lists of an answer: a field name, and the names under it.
pub(crate) type Lists<'a> = &'a [(&'a str, &'a [Cow<'a, str>])];

/// Appends an answer of `kind` (`ack` or `list`).
pub(crate) fn write_answer(
    kind: &str,
    id: &str,
    lists: Lists<'_>,
    effective: Effective,
    generation: u64,
    out: &mut Vec<u8>,
) {
    let _ = write!(out, "{{\"type\":\"{kind}\",\"id\":{id}");
    for (field, names) in lists {
        let _ = write!(out, ",\"{field}\":");
        write_names(names, out);
    }
    out.extend_from_slice(b",\"effective\":");
    write_effective(effective, out);
    let _ = write!(out, ",\"generation\":{generation}}}");
}

fn write_names(names: &[Cow<'_, str>], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, name) in names.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(name, out);
    }
    out.push(b']');
}

/// Appends an `error`; `names` tells which names of the request it is about.
pub(crate) fn write_error(
    id: &str,
    code: ErrorCode,
    message: &str,
    names: &[Cow<'_, str>],
    out: &mut Vec<u8>,
) {
    let _ = write!(
        out,
        "{{\"type\":\"error\",\"id\":{id},\"code\":\"{}\",\"temporary\":{},\"message\":",
        code.as_str(),
        code.temporary(),
    );
    write_string(message, out);
    if !names.is_empty() {
        out.extend_from_slice(b",\"names\":");
        write_names(names, out);
    }
    out.push(b'}');
}

/// Appends a JSON string; what clients send may need escaping.
fn write_string(text: &str, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail, and a string always serializes.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(text: &str) -> Result<Op<'_>, Fault> {
        parse(text).and_then(|request| request.op)
    }

    fn code(text: &str) -> ErrorCode {
        op(text).unwrap_err().code
    }

    #[test]
    fn every_operation_is_read() {
        assert_eq!(
            op(
                r#"{"op":"subscribe","id":1,"instruments":["binance:BTCUSDT","kraken:*"],"max_hz":10}"#
            ),
            Ok(Op::Subscribe {
                names: vec!["binance:BTCUSDT".into(), "kraken:*".into()],
                max_hz: Some(10.0)
            })
        );
        assert_eq!(
            op(r#"{"op":"subscribe","channel":"volume","accounts":["desk-1"]}"#),
            Ok(Op::SubscribeVolume { accounts: vec!["desk-1".into()], max_hz: None })
        );
        assert_eq!(
            op(r#"{"op":"unsubscribe","instruments":["a:B"]}"#),
            Ok(Op::Unsubscribe { names: vec!["a:B".into()] })
        );
        assert_eq!(op(r#"{"op":"rate","max_hz":0.5}"#), Ok(Op::Rate { max_hz: 0.5 }));
        assert_eq!(op(r#"{"op":"ack","batch":17}"#), Ok(Op::Ack { batch: 17 }));
        assert_eq!(op(r#"{"op":"list"}"#), Ok(Op::List));
        assert_eq!(op(r#"{"op":"ping","extra":[1,{}]}"#), Ok(Op::Ping));
    }

    #[test]
    fn an_id_is_given_back_as_it_was_written() {
        for id in ["1", "\"a\\u0041\"", "-7", "1e3", "true"] {
            assert_eq!(parse(&format!(r#"{{"op":"list","id":{id}}}"#)).unwrap().id, id);
        }
        assert_eq!(parse(r#"{"op":"list"}"#).unwrap().id, "null");
        assert!(parse(r#"{"op":"list","id":[1]}"#).is_err());
        assert!(parse(&format!(r#"{{"op":"list","id":"{}"}}"#, "x".repeat(64))).is_err());
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(code("hello"), ErrorCode::Malformed);
        assert_eq!(code("[]"), ErrorCode::Malformed);
        assert_eq!(code("{}"), ErrorCode::Malformed);
        assert_eq!(code(r#"{"op":"buy"}"#), ErrorCode::UnknownOp);
        assert_eq!(code(r#"{"op":"subscribe"}"#), ErrorCode::BadField);
        assert_eq!(code(r#"{"op":"subscribe","instruments":[]}"#), ErrorCode::BadField);
        assert_eq!(code(r#"{"op":"subscribe","instruments":"a:B"}"#), ErrorCode::BadField);
        assert_eq!(code(r#"{"op":"subscribe","instruments":[1]}"#), ErrorCode::BadField);
        assert_eq!(code(r#"{"op":"subscribe","channel":"news"}"#), ErrorCode::BadField);
        for hz in ["-1", "1e999", "\"5\"", "0.0001", "2000000", "null"] {
            let text = format!(r#"{{"op":"rate","max_hz":{hz}}}"#);
            assert_eq!(code(&text), ErrorCode::BadField, "{hz}");
        }
        for batch in ["-1", "1.5", "\"1\"", "null"] {
            assert_eq!(code(&format!(r#"{{"op":"ack","batch":{batch}}}"#)), ErrorCode::BadField);
        }
    }

    #[test]
    fn a_name_is_an_instrument_a_venue_or_neither() {
        assert_eq!(classify("binance:BTCUSDT"), Some(("binance", Name::Instrument)));
        assert_eq!(classify("binance:*"), Some(("binance", Name::Venue("binance"))));
        for name in ["BTCUSDT", ":BTCUSDT", "binance:", "*", "binance:B*", "a:b:c", "a:b c"] {
            assert_eq!(classify(name), None, "{name}");
        }
    }

    #[test]
    fn a_quote_is_spelled_with_the_venues_digits_and_null_for_what_is_missing() {
        let quote = Quote {
            tick: 48_213,
            bid: decimal::parse(b"61837.63000000").ok(),
            bid_size: decimal::parse(b"0").ok(),
            venue_time: None,
            receive_time: 1_723_161_253_937_085_768,
            ..Quote::default()
        };
        let mut out = Vec::new();
        write_quote("binance:BTCUSDT", &quote, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            r#"{"instrument":"binance:BTCUSDT","tick":48213,"bid":"61837.63000000","bid_size":"0","ask":null,"ask_size":null,"last":null,"last_size":null,"venue_time":null,"receive_time":1723161253937085768}"#
        );
    }

    #[test]
    fn every_message_is_json() {
        let effective = Effective { max_hz: 2.5, capacity: 8, confirm: Confirm::Pong };
        let mut messages = vec![Vec::new(); 7];
        let limits = WelcomeLimits {
            max_instruments: 1,
            max_message_bytes: 2,
            max_ops_per_s: 3,
            max_batch_bytes: 4,
        };
        write_welcome(7, "1f", 20_000, 3, effective, &limits, &mut messages[0]);
        write_limits(4, effective, &mut messages[1]);
        write_status("a\"b", Health::Live, 5, &mut messages[2]);
        write_shutdown(1_000, &mut messages[3]);
        write_pong("\"x\"", 5, &mut messages[4]);
        let names = ["a:B".into(), "bad \"name\"\n".into()];
        write_answer("ack", "1", &[("subscribed", &names)], effective, 3, &mut messages[5]);
        write_error("null", ErrorCode::MalformedName, "like \"this\"", &names, &mut messages[6]);
        for message in messages {
            let value: serde_json::Value = serde_json::from_slice(&message).unwrap();
            assert!(value["type"].is_string());
        }
    }

    #[test]
    fn the_head_of_a_batch_fits_its_bound() {
        for kind in
            [BatchKind::Snapshot, BatchKind::Quotes, BatchKind::VolumeSnapshot, BatchKind::Volumes]
        {
            let mut out = Vec::new();
            write_batch_head(kind, u64::MAX, u64::MAX, Why::Capacity, &mut out);
            assert!(out.len() <= MAX_BATCH_HEAD, "{}", out.len());
            out.extend_from_slice(b"]}");
            assert!(serde_json::from_slice::<serde_json::Value>(&out).is_ok());
        }
    }
}
