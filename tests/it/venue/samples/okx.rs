//! OKX v5.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Batch, Kind, Role, Sample, Speaker, Unit, control, unused};

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["okx"],
    samples: SAMPLES,
    fills: &[],
    others: OTHERS,
    refused: REFUSED,
    batch: Some(Batch {
        frame: (r#"{"arg":{"channel":"trades","instId":"SOL-USDT"},"data":["#, ",", "]}"),
        row: r#"{"instId":"SOL-USDT","tradeId":"ID","px":"PRICE","sz":"SIZE","side":"buy","ts":"1718000000121"}"#,
        has_ids: true,
        empty: unused(Unused::Empty),
    }),
};

const SAMPLES: &[Sample] = &[
    Sample {
        venue: "okx",
        instrument: "okx:SOL-USDT",
        message: r#"{"arg":{"channel":"tickers","instId":"SOL-USDT"},"data":[{"instType":"SPOT","instId":"SOL-USDT","last":"151.74","lastSz":"0.5","askPx":"151.74","askSz":"0.98","bidPx":"151.73","bidSz":"20.51","open24h":"149","high24h":"152","low24h":"148.8","sodUtc0":"150","sodUtc8":"150","volCcy24h":"2222","vol24h":"22","ts":"1718000000121"}]}"#,
        numbers: &[
            ("bidPx", Role::Bid),
            ("bidSz", Role::BidSize),
            ("askPx", Role::Ask),
            ("askSz", Role::AskSize),
            ("last", Role::Last),
            ("lastSz", Role::LastSize),
            ("ts", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Ticker,
        unit: Unit::Milliseconds,
        symbol: ("instId", ""),
        beside: Some("last"),
        informational: &[],
    },
    Sample {
        venue: "okx",
        instrument: "okx:SOL-USDT",
        message: r#"{"arg":{"channel":"bbo-tbt","instId":"SOL-USDT"},"data":[{"asks":[["151.74","0.98","0","13"]],"bids":[["151.73","20.51","0","12"]],"ts":"1718000000121","seqId":123456}]}"#,
        numbers: &[
            ("bids.0.0", Role::Bid),
            ("bids.0.1", Role::BidSize),
            ("asks.0.0", Role::Ask),
            ("asks.0.1", Role::AskSize),
            ("seqId", Role::Order),
            ("ts", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Sides,
        unit: Unit::Milliseconds,
        symbol: ("instId", ""),
        beside: Some("asks"),
        informational: &[],
    },
    Sample {
        venue: "okx",
        instrument: "okx:SOL-USDT",
        message: r#"{"arg":{"channel":"trades","instId":"SOL-USDT"},"data":[{"instId":"SOL-USDT","tradeId":"130639474","px":"151.74","sz":"0.5","side":"buy","ts":"1718000000121","count":"3"}]}"#,
        numbers: TRADE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Milliseconds,
        symbol: ("instId", ""),
        beside: Some("px"),
        informational: &[("side", "\"both\"")],
    },
    Sample {
        venue: "okx",
        instrument: "okx:SOL-USDT",
        message: r#"{"arg":{"channel":"trades-all","instId":"SOL-USDT"},"data":[{"instId":"SOL-USDT","tradeId":"130639474","px":"151.74","sz":"0.5","side":"sell","ts":"1718000000121"}]}"#,
        numbers: TRADE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Milliseconds,
        symbol: ("instId", ""),
        beside: Some("px"),
        informational: &[("side", "\"both\"")],
    },
];

const TRADE: &[(&str, Role)] =
    &[("px", Role::Last), ("sz", Role::LastSize), ("tradeId", Role::Order), ("ts", Role::Time)];

const OTHERS: &[(&str, Class)] = &[
    (
        r#"{"event":"subscribe","arg":{"channel":"tickers","instId":"SOL-USDT"},"connId":"a4d3"}"#,
        control(Control::Ack),
    ),
    (
        r#"{"event":"unsubscribe","arg":{"channel":"trades","instId":"SOL-USDT"},"connId":"a4d3"}"#,
        control(Control::Ack),
    ),
    (r#"{"event":"login","code":"0","msg":"","connId":"a4d3"}"#, control(Control::Ack)),
    (
        r#"{"event":"channel-conn-count","channel":"orders","connCount":"2","connId":"a"}"#,
        control(Control::Ack),
    ),
    (r#"{"id":"1","op":"order","code":"0","msg":"","data":[]}"#, control(Control::Ack)),
    (r#"{"id":"1","op":"order","code":"1","msg":"no","data":[]}"#, control(Control::Error)),
    (
        r#"{"event":"error","code":"60012","msg":"Invalid request: {\"op\":\"x\"}","connId":"a4d3"}"#,
        control(Control::Error),
    ),
    (
        r#"{"event":"notice","code":"64008","msg":"The connection will soon be closed","connId":"a"}"#,
        control(Control::Shutdown),
    ),
    ("pong", control(Control::Heartbeat)),
    ("ping\n", control(Control::Heartbeat)),
    (r#"{"op":"pong"}"#, control(Control::Heartbeat)),
    (
        r#"{"arg":{"channel":"books","instId":"SOL-USDT"},"action":"update","data":[{"asks":[["1","0","0","0"]],"bids":[],"ts":"1","checksum":-1}]}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"data":[{"asks":[],"bids":[],"ts":"1"}],"arg":{"channel":"books5","instId":"SOL-USDT"}}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"arg":{"channel":"candle1m","instId":"SOL-USDT"},"data":[["1","2","3"]]}"#,
        unused(Unused::Kline),
    ),
    (
        r#"{"arg":{"channel":"mark-price","instId":"SOL-USDT"},"data":[{"instId":"SOL-USDT","markPx":"1"}]}"#,
        unused(Unused::MarkPrice),
    ),
    (
        r#"{"arg":{"channel":"orders","instType":"SPOT","uid":"1"},"data":[{"instId":"SOL-USDT"}]}"#,
        unused(Unused::Order),
    ),
    (r#"{"arg":{"channel":"account"},"data":[{}]}"#, unused(Unused::Account)),
    (r#"{"arg":{"channel":"brand-new","instId":"X"},"data":[{"instId":"X"}]}"#, Class::Unknown),
    (r#"{"event":"brand-new"}"#, Class::Unknown),
    ("{}", Class::Unknown),
];

const REFUSED: &[(&str, Refusal)] = &[
    ("[]", Refusal::WrongType),
    (r#"{"arg":{},"data":[]}"#, Refusal::MissingField),
    (r#"{"arg":{"channel":5},"data":[]}"#, Refusal::WrongType),
    (r#"{"arg":{"channel":"tickers","instId":"X"}}"#, Refusal::MissingField),
    (r#"{"arg":{"channel":"tickers","instId":"X"},"data":{}}"#, Refusal::WrongType),
    (r#"{"arg":{"channel":"tickers","instId":"X"},"data":[[]]}"#, Refusal::WrongType),
    (r#"{"arg":{"channel":"tickers","instId":"X"},"data":[{}]}"#, Refusal::MissingField),
    (
        r#"{"arg":{"channel":"trades","channel":"books","instId":"X"},"data":[]}"#,
        Refusal::DuplicateField,
    ),
    (
        r#"{"arg":{"channel":"bbo-tbt"},"data":[{"asks":[],"bids":[],"ts":"1718000000121","seqId":1}]}"#,
        Refusal::MissingField,
    ),
];
