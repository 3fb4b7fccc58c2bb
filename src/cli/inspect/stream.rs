//! Which stream a message belongs to, as far as its envelope tells.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// What no member names.
pub(super) const UNNAMED: &str = "(unnamed)";

/// The members by which venues say what a message is.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    stream: Option<Cow<'a, str>>,
    #[serde(borrow)]
    e: Option<Cow<'a, str>>,
    /// An event's name, or the event.
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    #[serde(borrow)]
    channel: Option<Cow<'a, str>>,
    #[serde(borrow)]
    topic: Option<Cow<'a, str>>,
    #[serde(borrow)]
    table: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arg: Option<Channel<'a>>,
    #[serde(borrow)]
    params: Option<Channel<'a>>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    e: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Channel<'a> {
    #[serde(borrow)]
    channel: Option<Cow<'a, str>>,
}

/// The kind of stream: `bookTicker` of `btcusdt@bookTicker`, the channel or table without its symbol,
/// or the kind of event where no stream is named. Costs a pass over the message.
pub(super) fn kind(message: &[u8]) -> Cow<'_, str> {
    if message.first() == Some(&b'[') {
        return of_array(message).unwrap_or(UNNAMED.into());
    }
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(message) else {
        return UNNAMED.into();
    };
    let event = envelope.event.map_or("", RawValue::get);
    match envelope {
        Envelope { stream: Some(stream), .. } => of_stream(stream),
        Envelope { e: Some(event), .. } => event,
        // Where the event's name stands beside it, the channel's ends in the market.
        Envelope { channel: Some(channel), .. } if event.starts_with('"') => before(channel, '_'),
        Envelope { channel: Some(channel), .. } => channel,
        Envelope { topic: Some(topic), .. } => before(topic, '.'),
        Envelope { table: Some(table), .. } => table,
        Envelope { arg: Some(Channel { channel: Some(channel) }), .. } => channel,
        Envelope { params: Some(Channel { channel: Some(channel) }), .. } => {
            channel.split('.').next().unwrap_or_default().to_owned().into()
        }
        Envelope { kind: Some(kind), .. } => kind,
        _ => of_event(event).unwrap_or(UNNAMED.into()),
    }
}

/// `[id, payload, "ticker", "XBT/USD"]`: the last but one.
fn of_array(message: &[u8]) -> Option<Cow<'_, str>> {
    let parts: Vec<&RawValue> = serde_json::from_slice(message).ok()?;
    let name = parts.get(parts.len().checked_sub(2)?).filter(|_| parts.len() > 3)?;
    serde_json::from_str::<&str>(name.get()).ok().map(Cow::Borrowed)
}

/// An event by its name, or by the name in it.
fn of_event(event: &str) -> Option<Cow<'_, str>> {
    if event.starts_with('"') {
        return serde_json::from_str::<&str>(event).ok().map(Cow::Borrowed);
    }
    serde_json::from_str::<Event<'_>>(event).ok()?.e
}

/// What stands before the last `mark`.
fn before(name: Cow<'_, str>, mark: char) -> Cow<'_, str> {
    match name.rsplit_once(mark) {
        Some((name, _)) => name.to_owned().into(),
        None => name,
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
            (r#"{"channel":"market_trades","events":[]}"#, "market_trades"),
            (r#"{"data":{},"channel":"live_trades_btcusd","event":"trade"}"#, "live_trades"),
            (r#"{"topic":"orderbook.1.BTCUSDT","data":{}}"#, "orderbook.1"),
            (r#"{"table":"quote","action":"partial"}"#, "quote"),
            (r#"{"arg":{"channel":"tickers","instId":"BTC-USDT"},"data":[]}"#, "tickers"),
            (r#"{"method":"subscription","params":{"channel":"quote.BTC-PERPETUAL"}}"#, "quote"),
            (r#"{"type":"l2update","product_id":"BTC-USD"}"#, "l2update"),
            (r#"{"event":"heartbeat"}"#, "heartbeat"),
            (r#"[1668,{"a":["1",1,"1"]},"ticker","XBT/USD"]"#, "ticker"),
            (r#"[1920,{},{},"book-1000","SC/EUR"]"#, "book-1000"),
            (r#"{"u":1,"s":"BTCUSDT"}"#, UNNAMED),
            (r#"{"stream":7}"#, UNNAMED),
            ("[1]", UNNAMED),
            ("pong", UNNAMED),
        ] {
            assert_eq!(kind(message.as_bytes()), expected, "{message}");
        }
    }
}
