use super::*;
use crate::feed::live::Wish;
use crate::venue::VENUES;

/// What each venue is told to get `channel` of two symbols, and to give up the first of them.
const REQUESTS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "binance",
        "bookTicker",
        "BTCUSDT",
        r#"{"id":7,"method":"SUBSCRIBE","params":["btcusdt@bookTicker"]}"#,
        r#"{"id":7,"method":"UNSUBSCRIBE","params":["btcusdt@bookTicker"]}"#,
    ),
    (
        "coinbase",
        "ticker",
        "BTC-USD",
        r#"{"channels":["ticker","heartbeat"],"product_ids":["BTC-USD"],"type":"subscribe"}"#,
        r#"{"channels":["ticker"],"product_ids":["BTC-USD"],"type":"unsubscribe"}"#,
    ),
    (
        "coinbase-advanced",
        "ticker",
        "BTC-USD",
        r#"{"channel":"ticker","product_ids":["BTC-USD"],"type":"subscribe"}"#,
        r#"{"channel":"ticker","product_ids":["BTC-USD"],"type":"unsubscribe"}"#,
    ),
    (
        "kraken",
        "ticker",
        "BTC/USD",
        r#"{"method":"subscribe","params":{"channel":"ticker","event_trigger":"bbo","symbol":["BTC/USD"]},"req_id":7}"#,
        r#"{"method":"unsubscribe","params":{"channel":"ticker","symbol":["BTC/USD"]},"req_id":7}"#,
    ),
    (
        "bybit",
        "orderbook.1",
        "BTCUSDT",
        r#"{"args":["orderbook.1.BTCUSDT"],"op":"subscribe","req_id":"7"}"#,
        r#"{"args":["orderbook.1.BTCUSDT"],"op":"unsubscribe","req_id":"7"}"#,
    ),
    (
        "okx",
        "bbo-tbt",
        "BTC-USDT",
        r#"{"args":[{"channel":"bbo-tbt","instId":"BTC-USDT"}],"id":"7","op":"subscribe"}"#,
        r#"{"args":[{"channel":"bbo-tbt","instId":"BTC-USDT"}],"id":"7","op":"unsubscribe"}"#,
    ),
    (
        "bitstamp",
        "order_book",
        "btcusd",
        r#"{"data":{"channel":"order_book_btcusd"},"event":"bts:subscribe"}"#,
        r#"{"data":{"channel":"order_book_btcusd"},"event":"bts:unsubscribe"}"#,
    ),
    (
        "bitmex",
        "quote",
        "XBTUSD",
        r#"{"args":["quote:XBTUSD"],"op":"subscribe"}"#,
        r#"{"args":["quote:XBTUSD"],"op":"unsubscribe"}"#,
    ),
    (
        "deribit",
        "trades.100ms",
        "BTC-PERPETUAL",
        r#"{"id":7,"jsonrpc":"2.0","method":"public/subscribe","params":{"channels":["trades.BTC-PERPETUAL.100ms"]}}"#,
        r#"{"id":7,"jsonrpc":"2.0","method":"public/unsubscribe","params":{"channels":["trades.BTC-PERPETUAL.100ms"]}}"#,
    ),
];

fn dialect(venue: &str) -> Box<dyn Dialect> {
    crate::venue::find(venue).unwrap().dialect().unwrap()
}

#[test]
fn each_venue_is_asked_in_its_own_words() {
    for &(venue, channel, symbol, subscribe, unsubscribe) in REQUESTS {
        let dialect = dialect(venue);
        let topics = [Topic::new(channel, symbol)];
        for (wish, text) in [(Wish::Subscribe, subscribe), (Wish::Unsubscribe, unsubscribe)] {
            let request = dialect.request(wish, &topics, 7);
            assert_eq!(request.text, text, "{venue}");
            assert_eq!(request.topics, topics);
            assert!(request.id.is_none_or(|id| id == "7"));
        }
    }
}

#[test]
fn each_venue_that_can_be_connected_to_has_its_words_its_pace_and_channels_tried_here() {
    for venue in VENUES {
        let Some(dialect) = venue.dialect() else {
            assert_eq!(venue.name, "fills", "only our own lines are not asked for");
            continue;
        };
        assert!(!venue.channels().is_empty());
        let tried = REQUESTS.iter().any(|(name, ..)| *name == venue.name);
        assert!(tried || venue.name.starts_with("binance-"), "{}", venue.name);
        let topics: Vec<Topic> = (0..1_000)
            .map(|n| Topic::new(venue.channels()[n % venue.channels().len()], format!("S{n}")))
            .collect();
        // However much is wanted, messages stay short and each asks for something from the front.
        let request = dialect.request(Wish::Subscribe, &topics, 1);
        assert_eq!(request.topics[0], topics[0]);
        assert!(request.topics.len() <= 200 && request.text.len() < 16_384, "{}", venue.name);
        let rules = dialect.rules();
        assert!(rules.stale_after > rules.ping_every.unwrap_or_default());
    }
}

#[test]
fn a_test_of_deribit_is_answered_and_nothing_else_is() {
    let deribit = dialect("deribit");
    let test = br#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#;
    assert!(deribit.reply(test).unwrap().contains("public/test"));
    let beat = br#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"heartbeat"}}"#;
    assert_eq!(deribit.reply(beat), None);
    assert_eq!(deribit.reply(b"test_request"), None);
}
