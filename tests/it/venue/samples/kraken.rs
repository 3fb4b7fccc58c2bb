//! Kraken spot, first and second interface.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Batch, Kind, Role, Sample, Speaker, Unit, control, unused};

use Class::Unknown;

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["kraken"],
    samples: SAMPLES,
    fills: &[],
    others: OTHERS,
    refused: REFUSED,
    batch: Some(Batch {
        frame: (r#"{"channel":"trade","type":"update","data":["#, ",", "]}"),
        row: r#"{"symbol":"SOL/USD","side":"buy","price":PRICE,"qty":SIZE,"ord_type":"limit","trade_id":ID,"timestamp":"2024-06-10T06:13:20.121000Z"}"#,
        has_ids: true,
        empty: Class::Unused(Unused::Ticker),
    }),
};

/// The first interface numbers no trades.
pub(crate) const FIRST: Speaker = Speaker {
    venues: &["kraken"],
    samples: &[],
    fills: &[],
    others: OTHERS,
    refused: REFUSED,
    batch: Some(Batch {
        frame: ("[993,[", ",", r#"],"trade","SOL/USD"]"#),
        row: r#"["PRICE","SIZE","1718000000.121000","s","l",""]"#,
        has_ids: false,
        empty: Class::Unused(Unused::Ticker),
    }),
};

const TIME: Option<i64> = Some(1_718_000_000_121_000_000);

const SAMPLES: &[Sample] = &[
    Sample {
        venue: "kraken",
        instrument: "kraken:SOL/USD",
        message: r#"{"channel":"ticker","type":"update","data":[{"symbol":"SOL/USD","bid":151.73,"bid_qty":20.51000000,"ask":151.75,"ask_qty":0.98000000,"last":151.740,"volume":163288.08096,"vwap":150.02,"low":148.11,"high":153.90,"change":-0.25,"change_pct":-0.24,"timestamp":"2024-06-10T06:13:20.121000Z"}]}"#,
        numbers: &[
            ("bid", Role::Bid),
            ("bid_qty", Role::BidSize),
            ("ask", Role::Ask),
            ("ask_qty", Role::AskSize),
            ("last", Role::Last),
            ("timestamp", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Ticker,
        unit: Unit::Text,
        symbol: ("symbol", ""),
        beside: Some("symbol"),
        informational: &[],
    },
    Sample {
        venue: "kraken",
        instrument: "kraken:SOL/USD",
        message: r#"{"channel":"trade","type":"update","data":[{"symbol":"SOL/USD","side":"buy","price":151.740,"qty":0.50000000,"ord_type":"limit","trade_id":71002003,"timestamp":"2024-06-10T06:13:20.121000Z"}]}"#,
        numbers: &[
            ("price", Role::Last),
            ("qty", Role::LastSize),
            ("trade_id", Role::Order),
            ("timestamp", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Trade,
        unit: Unit::Text,
        symbol: ("symbol", ""),
        beside: Some("symbol"),
        informational: &[("side", "\"maybe\""), ("ord_type", "\"iceberg\"")],
    },
    Sample {
        venue: "kraken",
        instrument: "kraken:SOL/USD",
        message: r#"[1668,{"a":["151.75000",35,"0.98000000"],"b":["151.73000",185,"20.51000000"],"c":["151.74000","0.50000000"],"v":["26560.85364463","72035.05488104"],"p":["151.52","151.73"],"t":[640,1353],"l":["148.02","148.02"],"h":["153.94","154.21"],"o":["149.80","150.42"]},"ticker","SOL/USD"]"#,
        numbers: &[
            ("b.0", Role::Bid),
            ("b.2", Role::BidSize),
            ("a.0", Role::Ask),
            ("a.2", Role::AskSize),
            ("c.0", Role::Last),
            ("c.1", Role::LastSize),
        ],
        venue_time: None,
        kind: Kind::Ticker,
        unit: Unit::Seconds,
        symbol: ("$.3", ""),
        beside: Some("b"),
        informational: &[],
    },
    Sample {
        venue: "kraken",
        instrument: "kraken:SOL/USD",
        message: r#"[993,[["151.74000","0.50000000","1718000000.121000","s","l",""]],"trade","SOL/USD"]"#,
        numbers: &[("$.1.0.0", Role::Last), ("$.1.0.1", Role::LastSize), ("$.1.0.2", Role::Time)],
        venue_time: TIME,
        kind: Kind::Trade,
        unit: Unit::Seconds,
        symbol: ("$.3", ""),
        beside: None,
        informational: &[("$.1.0.3", "\"x\""), ("$.1.0.4", "\"x\"")],
    },
];

const OTHERS: &[(&str, Class)] = &[
    (
        r#"{"method":"subscribe","result":{"channel":"ticker","symbol":"SOL/USD","snapshot":true},"success":true,"time_in":"2024-06-10T06:13:20.121Z","time_out":"2024-06-10T06:13:20.122Z","req_id":1}"#,
        control(Control::Ack),
    ),
    (
        r#"{"method":"unsubscribe","result":{"channel":"ticker","symbol":"SOL/USD"},"success":true,"req_id":2}"#,
        control(Control::Ack),
    ),
    (
        r#"{"error":"Currency pair not supported SOL/XXX","method":"subscribe","success":false,"symbol":"SOL/XXX","req_id":3}"#,
        control(Control::Error),
    ),
    (r#"{"error":"Unsupported field","success":false}"#, control(Control::Error)),
    (
        r#"{"method":"pong","req_id":101,"time_in":"2024-06-10T06:13:20.121Z"}"#,
        control(Control::Heartbeat),
    ),
    (r#"{"channel":"heartbeat"}"#, control(Control::Heartbeat)),
    (
        r#"{"channel":"status","type":"update","data":[{"system":"online","api_version":"v2","connection_id":1,"version":"2.0.0"}]}"#,
        unused(Unused::Reference),
    ),
    (r#"{"event":"heartbeat"}"#, control(Control::Heartbeat)),
    (r#"{"event":"pong","reqid":7}"#, control(Control::Heartbeat)),
    (
        r#"{"connectionID":18239578009413566319,"event":"systemStatus","status":"online","version":"1.8.3"}"#,
        unused(Unused::Reference),
    ),
    (
        r#"{"channelID":1665,"channelName":"trade","event":"subscriptionStatus","pair":"SOL/USD","status":"subscribed","subscription":{"name":"trade"}}"#,
        control(Control::Ack),
    ),
    (
        r#"{"errorMessage":"Currency pair not supported SOL/XXX","event":"subscriptionStatus","pair":"SOL/XXX","status":"error","subscription":{"name":"trade"}}"#,
        control(Control::Error),
    ),
    (r#"{"errorMessage":"Malformed request","event":"error"}"#, control(Control::Error)),
    ("pong", control(Control::Heartbeat)),
    (
        r#"[1920,{"a":[["151.75","1.5","1718000000.121"]],"c":"4105471083"},"book-1000","SOL/USD"]"#,
        unused(Unused::Depth),
    ),
    (
        r#"[1920,{"as":[["151.75","1.5","1718000000.121"]],"bs":[]},"book-10","SOL/USD"]"#,
        unused(Unused::Depth),
    ),
    (
        r#"[1920,{"a":[["151.75","0","1718000000.121"]]},{"b":[["151.73","1","1718000000.121"]],"c":"4105471083"},"book-1000","SOL/USD"]"#,
        unused(Unused::Depth),
    ),
    (
        r#"[13337,["1718000000.1","1718000060.1","1","2","3","4","5","6",2],"ohlc-5","SOL/USD"]"#,
        unused(Unused::Kline),
    ),
    (
        r#"[1333337,["151.73","151.75","1718000000.121","1.0","2.0"],"spread","SOL/USD"]"#,
        unused(Unused::Ticker),
    ),
    (
        r#"{"channel":"book","type":"update","data":[{"symbol":"SOL/USD","bids":[{"price":151.73,"qty":0.25}],"asks":[],"checksum":2114181697}]}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"data":[{"symbol":"SOL/USD","bids":[{"price":151.73,"qty":0.25}],"asks":[]}],"type":"update","channel":"book"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"channel":"ohlc","type":"update","data":[{"symbol":"SOL/USD","open":1,"close":2}]}"#,
        unused(Unused::Kline),
    ),
    (
        r#"{"channel":"instrument","type":"snapshot","data":{"assets":[]}}"#,
        unused(Unused::Reference),
    ),
    (r#"{"channel":"executions","type":"snapshot","data":[]}"#, unused(Unused::Account)),
    (r#"[[{"txid":{"pair":"SOL/USD"}}],"ownTrades",{"sequence":1}]"#, unused(Unused::Account)),
    (r#"{"method":"add_order","success":true,"result":{}}"#, unused(Unused::Account)),
    (r#"{"channel":"ticker","type":"update","data":[]}"#, unused(Unused::Ticker)),
    (r#"[993,[],"trade","SOL/USD"]"#, unused(Unused::Ticker)),
    (r#"{"channel":"brand_new","data":[{"symbol":"SOL/USD","bid":1}]}"#, Unknown),
    (r#"{"event":"brandNew"}"#, Unknown),
    (r#"{"method":"brand_new","success":true}"#, Unknown),
    (r#"[1,{"a":["1",1,"1"]},"brand-new","SOL/USD"]"#, Unknown),
    (r#"[1,{"a":["1",1,"1"]},{"b":["1",1,"1"]},"ticker","SOL/USD"]"#, Unknown),
    (r#"[[{"txid":{}}],"somebodysTrades",{"sequence":1}]"#, Unknown),
    ("{}", Unknown),
    ("[]", Unknown),
    ("[1]", Unknown),
];

const REFUSED: &[(&str, Refusal)] = &[
    (r#"{"channel":5}"#, Refusal::WrongType),
    (r#"{"event":5}"#, Refusal::WrongType),
    (r#"{"channel":"ticker"}"#, Refusal::MissingField),
    (r#"{"channel":"ticker","data":[{}]}"#, Refusal::MissingField),
    (r#"{"channel":"ticker","data":[5]}"#, Refusal::MissingField),
    (r#"{"channel":"ticker","channel":"trade","data":[]}"#, Refusal::DuplicateField),
    (r#"{"channel":"book","data":[{]}"#, Refusal::Malformed),
    (r#"[1,{},"ticker","SOL/USD"]"#, Refusal::MissingField),
    (r#"[1,{"b":["1",1,"1"],"b":["1",1,"1"]},"ticker","SOL/USD"]"#, Refusal::DuplicateField),
    (r#"[1,{"b":["1"]},"ticker","SOL/USD"]"#, Refusal::MissingField),
    (r#"[1,{"b":["1",1,"-1"]},"ticker","SOL/USD"]"#, Refusal::NegativeSize),
    (r#"[1,{"b":{}},"ticker","SOL/USD"]"#, Refusal::WrongType),
    (r#"[1,[["1"]],"trade","SOL/USD"]"#, Refusal::MissingField),
    (r#"[1,["1"],"trade","SOL/USD"]"#, Refusal::MissingField),
    (r#"[1,[["1","1","1718000000.1"]],"trade",5]"#, Refusal::WrongType),
    (r#"[1,{"b":["1",1,"1"]},"ticker","SOL/USD""#, Refusal::Malformed),
];
