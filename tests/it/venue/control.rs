//! Messages about the connection, messages of no use, and messages that nobody knows.

use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::StdRng};
use tidegate::venue::{Class, Control, Refusal, Unused};

use super::golden::SAMPLES;
use super::subject::Subject;

use Class::Unknown;

const fn unused(unused: Unused) -> Class {
    Class::Unused(unused)
}

const fn control(control: Control) -> Class {
    Class::Control(control)
}

/// Messages that make neither a quote nor a fill, and are no errors of ours.
const OTHERS: &[(&str, Class)] = &[
    (r#"{"result":null,"id":1}"#, control(Control::Ack)),
    (r#"{"id":"a-1","result":["solusdt@trade"]}"#, control(Control::Ack)),
    (r#"{"result":true,"id":null}"#, control(Control::Ack)),
    (
        r#"{"id":7,"status":200,"result":{"subscriptionId":0},"rateLimits":[]}"#,
        control(Control::Ack),
    ),
    (r#"{"code":2,"msg":"Invalid request: no method","id":3}"#, control(Control::Error)),
    (r#"{"error":{"code":2,"msg":"Invalid request"},"id":1}"#, control(Control::Error)),
    (r#"{"id":7,"status":400,"error":{"code":-1102,"msg":"no"}}"#, control(Control::Error)),
    ("pong", control(Control::Heartbeat)),
    ("ping\n", control(Control::Heartbeat)),
    (r#"{"op":"pong"}"#, control(Control::Heartbeat)),
    (r#"{"method":"pong","req_id":101}"#, control(Control::Heartbeat)),
    (r#"{"event":"pong"}"#, control(Control::Heartbeat)),
    (r#"{"pong":1718000000123}"#, control(Control::Heartbeat)),
    (r#"{"type":"heartbeat"}"#, control(Control::Heartbeat)),
    (r#"{"e":"heartbeat","E":1718000000123}"#, control(Control::Heartbeat)),
    (r#"{"e":"serverShutdown","E":1718000000123}"#, control(Control::Shutdown)),
    (
        r#"{"stream":"!serverShutdown","data":{"e":"serverShutdown","E":1}}"#,
        control(Control::Shutdown),
    ),
    (
        r#"{"data":{"e":"serverShutdown","E":1},"stream":"!serverShutdown"}"#,
        control(Control::Shutdown),
    ),
    (r#"{"e":"listenKeyExpired","E":1718000000123}"#, control(Control::Expired)),
    (
        r#"{"subscriptionId":0,"event":{"e":"eventStreamTerminated","E":1}}"#,
        control(Control::Expired),
    ),
    (r#"{"lastUpdateId":50,"bids":[["1","2"]],"asks":[]}"#, unused(Unused::Snapshot)),
    (
        r#"{"lastUpdateId":50,"E":1,"T":1,"symbol":"SOLUSD_PERP","pair":"SOLUSD","bids":[],"asks":[]}"#,
        unused(Unused::Snapshot),
    ),
    (
        r#"{"stream":"solusdt@depth5","data":{"lastUpdateId":50,"bids":[],"asks":[]}}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"stream":"solusdt@depth@0ms","data":{"e":"depthUpdate","E":1,"s":"SOLUSDT","U":1,"u":2,"b":[["151.7","0"]],"a":[]}}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"e":"depthUpdate","E":1,"s":"SOLUSDT","U":1,"u":2,"b":[["151.7","0"]],"a":[]}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"data":{"e":"depthUpdate","s":"SOLUSDT","u":2,"b":[],"a":[]},"stream":"solusdt@depth"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"e":"24hrTicker","s":"SOLUSDT","b":"1","B":"1","a":"2","A":"2","u":5}"#,
        unused(Unused::Ticker),
    ),
    (
        r#"{"stream":"!miniTicker@arr","data":[{"e":"24hrMiniTicker","s":"SOLUSDT","c":"1"}]}"#,
        unused(Unused::Ticker),
    ),
    (
        r#"[{"e":"24hrMiniTicker","s":"SOLUSDT","c":"1"},{"e":"24hrMiniTicker","s":"ETHUSDT"}]"#,
        unused(Unused::Ticker),
    ),
    (
        r#"{"stream":"solusdt@kline_1m","data":{"e":"kline","s":"SOLUSDT","k":{"o":"1"}}}"#,
        unused(Unused::Kline),
    ),
    (r#"{"e":"continuous_kline","ps":"SOLUSDT","k":{}}"#, unused(Unused::Kline)),
    (r#"{"e":"markPriceUpdate","E":1,"s":"SOLUSDT","p":"151.7","T":1}"#, unused(Unused::MarkPrice)),
    (
        r#"{"e":"forceOrder","E":1,"o":{"s":"SOLUSDT","S":"SELL","x":"TRADE","l":"1","L":"2"}}"#,
        unused(Unused::Liquidation),
    ),
    (r#"{"e":"contractInfo","s":"SOLUSDT"}"#, unused(Unused::Reference)),
    (
        r#"{"e":"outboundAccountPosition","E":1,"u":1,"B":[{"a":"SOL","f":"1","l":"0"}]}"#,
        unused(Unused::Account),
    ),
    (
        r#"{"subscriptionId":0,"event":{"e":"balanceUpdate","E":1,"a":"SOL","d":"1","T":1}}"#,
        unused(Unused::Account),
    ),
    (
        r#"{"e":"listStatus","E":1,"s":"SOLUSDT","l":"EXEC_STARTED","L":"EXECUTING","O":[]}"#,
        unused(Unused::Account),
    ),
    (r#"{"e":"ACCOUNT_UPDATE","E":1,"a":{"B":[]}}"#, unused(Unused::Account)),
    (
        r#"{"e":"TRADE_LITE","E":1,"s":"SOLUSDT","S":"BUY","L":"151.7","l":"1","t":5}"#,
        unused(Unused::Account),
    ),
    (r#"{"e":"brandNewEvent","s":"SOLUSDT","p":"1","q":"1","t":1}"#, Unknown),
    (r#"{"stream":"solusdt@brandNew","data":{"p":"1"}}"#, Unknown),
    (r#"{"stream":"solusdt@brandNew","data":[1,2]}"#, Unknown),
    ("{}", Unknown),
    ("[]", Unknown),
    ("[1]", Unknown),
    (r#"[{"e":"trade","s":"SOLUSDT","t":1,"p":"1","q":"1"}]"#, Unknown),
    (r#" [{"u":1,"s":"SOLUSDT","b":"1","B":"1","a":"2","A":"2"}]"#, Unknown),
];

/// What cannot be read at all.
const REFUSED: &[(&str, Refusal)] = &[
    ("", Refusal::Malformed),
    ("   ", Refusal::Malformed),
    ("hello", Refusal::Malformed),
    ("<html>429</html>", Refusal::Malformed),
    ("{", Refusal::Malformed),
    (r#"{"stream":"solusdt@depth","data":{"b":[["1","2"]}}"#, Refusal::Malformed),
    (r#"{"result":null,"id":1}{"result":null,"id":2}"#, Refusal::Malformed),
    ("5", Refusal::WrongType),
    ("\"pong\"", Refusal::WrongType),
    ("null", Refusal::WrongType),
    (r#"{"e":5}"#, Refusal::WrongType),
    (r#"{"e":null,"s":"SOLUSDT"}"#, Refusal::WrongType),
    (r#"{"stream":"solusdt@bookTicker","data":null}"#, Refusal::MissingField),
    (r#"{"stream":"solusdt@trade","data":[]}"#, Refusal::MissingField),
    (r#"{"stream":5,"data":{}}"#, Refusal::WrongType),
    (r#"{"stream":"solusdt@trade","stream":"solusdt@depth","data":{}}"#, Refusal::DuplicateField),
    (
        r#"{"stream":"solusdt@bookTicker","s":"ETHUSDT","data":{"u":1,"s":"SOLUSDT"}}"#,
        Refusal::DuplicateField,
    ),
];

#[test]
fn b12_what_is_no_quote_is_classified_and_never_an_error() {
    for venue in ["binance", "binance-usdm", "binance-cm"] {
        let mut subject = Subject::new(venue);
        for (message, expected) in OTHERS {
            assert_eq!(subject.read(message), *expected, "{message}");
        }
        assert!(subject.instruments.is_empty(), "none of these names an instrument");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason() {
    let mut subject = Subject::new("binance");
    for (message, expected) in REFUSED {
        assert_eq!(subject.refused(message), *expected, "{message}");
    }
    assert_eq!(subject.read(vec![b'['; 1_000_000]), Class::Refused(Refusal::TooLarge));
    assert_eq!(subject.read(vec![b' '; 17 << 20]), Class::Refused(Refusal::TooLarge));
    assert!(subject.instruments.is_empty());
}

#[test]
fn b12_control_messages_in_any_order_cost_no_tick_and_no_refusal() {
    let mut random = StdRng::seed_from_u64(12);
    let quotes: Vec<_> = SAMPLES.iter().filter(|s| s.venue == "binance").collect();
    let mut mix: Vec<(&str, Class)> = OTHERS.to_vec();
    mix.extend(quotes.iter().map(|sample| (sample.message, Class::Quote)));
    let mut subject = Subject::new("binance");
    let mut ticks = 0;
    for _ in 0..1_000 {
        mix.shuffle(&mut random);
        for (message, expected) in &mix {
            assert_eq!(subject.read(message), *expected, "{message}");
        }
        ticks += quotes.len() as u64;
    }
    assert_eq!(subject.quote(quotes[0].message).tick, ticks + 1);
}

#[test]
fn the_venues_error_and_an_unknown_streams_name_can_be_read() {
    let mut subject = Subject::new("binance");
    assert_eq!(subject.codec.last_problem(), None);
    subject.read(r#"{"code":2,"msg":"Invalid request: no method","id":3}"#);
    let problem = subject.codec.last_problem().unwrap();
    assert!(problem.contains("reports an error") && problem.contains("no method"), "{problem}");
    subject.read(r#"{"stream":"solusdt@brandNew","data":{}}"#);
    assert!(subject.codec.last_problem().unwrap().contains("brandNew"));
    subject.read(r#"{"e":"trade","s":"SOLUSDT","t":1,"p":"NaN","q":"1"}"#);
    assert!(subject.codec.last_problem().unwrap().starts_with("bad_number (member \"p\")"));
    subject.read(vec![b'x'; 100_000]);
    assert!(subject.codec.last_problem().unwrap().len() < 1_000);
}
