//! Binance spot, USDⓈ-M and COIN-M.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Kind, Role, Sample, Speaker, Unit, control, unused};

use Class::Unknown;

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["binance", "binance-usdm", "binance-cm"],
    samples: SAMPLES,
    fills: &[("binance", SPOT_FILL), ("binance-usdm", FUTURES_FILL), ("binance-cm", FUTURES_FILL)],
    others: OTHERS,
    refused: REFUSED,
    batch: None,
};

const BOOK: &[(&str, Role)] = &[
    ("b", Role::Bid),
    ("B", Role::BidSize),
    ("a", Role::Ask),
    ("A", Role::AskSize),
    ("u", Role::Order),
];
const TRADE: &[(&str, Role)] =
    &[("p", Role::Last), ("q", Role::LastSize), ("t", Role::Order), ("T", Role::Time)];
const AGGREGATE: &[(&str, Role)] =
    &[("p", Role::Last), ("q", Role::LastSize), ("a", Role::Order), ("T", Role::Time)];

pub(crate) const SAMPLES: &[Sample] = &[
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"u":8800100200,"s":"SOLUSDT","b":"151.73000000","B":"20.51000000","a":"151.74000000","A":"0.98000000"}"#,
        numbers: BOOK,
        venue_time: None,
        kind: Kind::Sides,
        unit: Unit::MillisecondsOrMicroseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[],
    },
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"stream":"solusdt@bookTicker","data":{"u":8800100200,"s":"SOLUSDT","b":"151.73000000","B":"20.51000000","a":"151.74000000","A":"0.98000000"}}"#,
        numbers: BOOK,
        venue_time: None,
        kind: Kind::Sides,
        unit: Unit::MillisecondsOrMicroseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[],
    },
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"stream":"solusdt@trade","data":{"e":"trade","E":1718000000123,"s":"SOLUSDT","t":71002003,"p":"151.74000000","q":"0.50000000","T":1718000000121,"m":false,"M":true}}"#,
        numbers: TRADE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::MillisecondsOrMicroseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[("m", "\"maybe\"")],
    },
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"e":"aggTrade","E":1718000000123,"s":"SOLUSDT","a":4400500,"p":"151.74000000","q":"0.50000000","f":71002003,"l":71002004,"T":1718000000121,"m":false,"M":true}"#,
        numbers: AGGREGATE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::MillisecondsOrMicroseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[("m", "\"maybe\"")],
    },
    Sample {
        venue: "binance-usdm",
        instrument: "binance-usdm:SOLUSDT",
        message: r#"{"stream":"solusdt@bookTicker","data":{"e":"bookTicker","u":9911223344,"s":"SOLUSDT","b":"151.730","B":"20","a":"151.740","A":"31","T":1718000000121,"E":1718000000124}}"#,
        numbers: BOOK,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Sides,
        unit: Unit::Milliseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[],
    },
    Sample {
        venue: "binance-usdm",
        instrument: "binance-usdm:SOLUSDT",
        message: r#"{"stream":"solusdt@trade","data":{"e":"trade","E":1718000000123,"T":1718000000121,"s":"SOLUSDT","t":71002003,"p":"151.740","q":"5","X":"MARKET","m":true}}"#,
        numbers: TRADE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Milliseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[("X", "\"BRAND_NEW\""), ("m", "\"maybe\"")],
    },
    Sample {
        venue: "binance-usdm",
        instrument: "binance-usdm:SOLUSDT",
        message: r#"{"e":"aggTrade","E":1718000000123,"a":4400500,"s":"SOLUSDT","p":"151.740","q":"5","f":100,"l":105,"T":1718000000121,"m":true}"#,
        numbers: AGGREGATE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Milliseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[("m", "\"maybe\"")],
    },
    Sample {
        venue: "binance-cm",
        instrument: "binance-cm:SOLUSD_PERP",
        message: r#"{"stream":"solusd_perp@bookTicker","data":{"u":771122334455,"e":"bookTicker","s":"SOLUSD_PERP","ps":"SOLUSD","b":"151.7","B":"35","a":"151.8","A":"1645","T":1718000000121,"E":1718000000124}}"#,
        numbers: BOOK,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Sides,
        unit: Unit::Milliseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[],
    },
    Sample {
        venue: "binance-cm",
        instrument: "binance-cm:SOLUSD_PERP",
        message: r#"{"stream":"solusd_perp@trade","data":{"e":"trade","E":1718000000123,"T":1718000000121,"s":"SOLUSD_PERP","t":849714,"p":"151.8","q":"4","X":"MARKET","m":false}}"#,
        numbers: TRADE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Milliseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[("X", "\"BRAND_NEW\""), ("m", "\"maybe\"")],
    },
];

/// A spot order of the account, executed in part.
pub(crate) const SPOT_FILL: &str = r#"{"e":"executionReport","E":1718000000124,"s":"SOLUSDT","c":"mine-17","S":"BUY","o":"LIMIT","f":"GTC","q":"2.00000000","p":"151.80000000","P":"0.00000000","F":"0.00000000","g":-1,"C":"","x":"TRADE","X":"PARTIALLY_FILLED","r":"NONE","i":5510,"l":"0.50000000","z":"0.50000000","L":"151.74000000","n":"0.0001","N":"SOL","T":1718000000121,"t":71002003,"I":9001,"w":false,"m":false,"M":true,"O":1718000000100,"Z":"75.87000000","Y":"75.87000000","Q":"0.00000000"}"#;

/// A futures order of the account, executed in full.
pub(crate) const FUTURES_FILL: &str = r#"{"e":"ORDER_TRADE_UPDATE","T":1718000000122,"E":1718000000124,"o":{"s":"SOLUSDT","c":"mine-18","S":"SELL","o":"MARKET","f":"GTC","q":"5","p":"0","ap":"151.740","sp":"0","x":"TRADE","X":"FILLED","i":5511,"l":"5","z":"5","L":"151.740","N":"USDT","n":"0.3","T":1718000000121,"t":71002003,"b":"0","a":"0","m":false,"R":false,"wt":"CONTRACT_PRICE","ot":"MARKET","ps":"BOTH","cp":false,"rp":"0"}}"#;

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
    (r#"{"stream":"solusdt@depth","data":{"b":[["1","2"]}}"#, Refusal::Malformed),
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
