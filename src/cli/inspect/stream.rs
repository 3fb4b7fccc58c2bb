//! Which stream a message belongs to, as far as its envelope tells.

use std::borrow::Cow;

use serde::Deserialize;

/// What no member names.
pub(super) const UNNAMED: &str = "(unnamed)";

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    stream: Option<Cow<'a, str>>,
    #[serde(borrow)]
    e: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event: Option<Event<'a>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    e: Option<Cow<'a, str>>,
}

/// The kind of stream: `bookTicker` of `btcusdt@bookTicker`, or the kind of event where no stream is
/// named. Costs a pass over the message.
pub(super) fn kind(message: &[u8]) -> Cow<'_, str> {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(message) else {
        return UNNAMED.into();
    };
    match envelope {
        Envelope { stream: Some(stream), .. } => of_stream(stream),
        Envelope { e: Some(event), .. } => event,
        Envelope { event: Some(Event { e: Some(event) }), .. } => event,
        _ => UNNAMED.into(),
    }
}

/// A stream of one symbol is `symbol@kind`, one of all symbols `!kind@arr`.
fn of_stream(stream: Cow<'_, str>) -> Cow<'_, str> {
    match stream.split_once('@') {
        Some((symbol, kind)) if !symbol.starts_with('!') => kind.to_owned().into(),
        _ => stream,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_told_by_the_stream_or_the_event() {
        for (message, expected) in [
            (r#"{"stream":"btcusdt@bookTicker","data":{"u":1}}"#, "bookTicker"),
            (r#"{"stream":"btcusdt@depth5@100ms","data":{}}"#, "depth5@100ms"),
            (r#"{"stream":"!miniTicker@arr","data":[]}"#, "!miniTicker@arr"),
            (r#"{"data":{"e":"x"},"stream":"a@trade"}"#, "trade"),
            (r#"{"e":"aggTrade","E":1}"#, "aggTrade"),
            (r#"{"subscriptionId":0,"event":{"e":"executionReport"}}"#, "executionReport"),
            (r#"{"u":1,"s":"BTCUSDT"}"#, UNNAMED),
            (r#"{"stream":7}"#, UNNAMED),
            ("[1]", UNNAMED),
            ("pong", UNNAMED),
        ] {
            assert_eq!(kind(message.as_bytes()), expected, "{message}");
        }
    }
}
