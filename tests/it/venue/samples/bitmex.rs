//! BitMEX.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Batch, Kind, Role, Sample, Speaker, Unit, control, unused};

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["bitmex"],
    samples: SAMPLES,
    fills: &[("bitmex", FILL)],
    others: OTHERS,
    refused: REFUSED,
    batch: Some(Batch {
        frame: (r#"{"table":"trade","action":"insert","data":["#, ",", "]}"),
        row: r#"{"timestamp":"2024-06-10T06:13:20.121Z","symbol":"SOLUSDT","side":"Buy","size":"SIZE","price":"PRICE","tickDirection":"PlusTick"}"#,
        // Told apart by names, not by rising ids: see the venue's own cases.
        has_ids: false,
        empty: unused(Unused::Empty),
    }),
};

const SAMPLES: &[Sample] = &[
    Sample {
        venue: "bitmex",
        instrument: "bitmex:SOLUSDT",
        message: r#"{"table":"quote","action":"insert","data":[{"timestamp":"2024-06-10T06:13:20.121Z","symbol":"SOLUSDT","bidSize":20000,"bidPrice":151.73,"askPrice":151.74,"askSize":9000}]}"#,
        numbers: QUOTE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Sides,
        unit: Unit::Text,
        symbol: ("symbol", ""),
        beside: Some("symbol"),
        informational: &[],
    },
    Sample {
        venue: "bitmex",
        instrument: "bitmex:SOLUSDT",
        message: r#"{"table":"quote","action":"partial","keys":[],"types":{"timestamp":"timestamp","symbol":"symbol","bidSize":"long"},"foreignKeys":{"symbol":"instrument"},"attributes":{"timestamp":"sorted"},"filter":{"symbol":"SOLUSDT"},"data":[{"timestamp":"2024-06-10T06:13:20.121Z","symbol":"SOLUSDT","bidSize":20000,"bidPrice":151.73,"askPrice":151.74,"askSize":9000}]}"#,
        numbers: QUOTE,
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Sides,
        unit: Unit::Text,
        symbol: ("symbol", ""),
        beside: Some("symbol"),
        informational: &[],
    },
    Sample {
        venue: "bitmex",
        instrument: "bitmex:SOLUSDT",
        message: r#"{"table":"trade","action":"insert","data":[{"timestamp":"2024-06-10T06:13:20.121Z","symbol":"SOLUSDT","side":"Sell","size":500,"price":151.74,"tickDirection":"ZeroMinusTick","trdMatchID":"710020030","grossValue":75870,"homeNotional":0.5,"foreignNotional":75.87,"trdType":"Regular"}]}"#,
        numbers: &[
            ("price", Role::Last),
            ("size", Role::LastSize),
            ("trdMatchID", Role::Id),
            ("timestamp", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Text,
        symbol: ("symbol", ""),
        beside: Some("symbol"),
        informational: &[("side", "\"Both\"")],
    },
];

const QUOTE: &[(&str, Role)] = &[
    ("bidPrice", Role::Bid),
    ("bidSize", Role::BidSize),
    ("askPrice", Role::Ask),
    ("askSize", Role::AskSize),
    ("timestamp", Role::Time),
];

/// An order of the account, executed in part.
pub(crate) const FILL: &str = r#"{"table":"execution","action":"insert","data":[{"execID":"550e8400-e29b-41d4-a716-446655440010","orderID":"550e8400-e29b-41d4-a716-446655440002","clOrdID":"mine-20","account":1234567,"symbol":"SOLUSDT","side":"Buy","lastQty":500,"lastPx":151.74,"orderQty":2000,"price":151.8,"stopPx":null,"currency":"USDT","settlCurrency":"USDt","execType":"Trade","ordType":"Limit","timeInForce":"GoodTillCancel","ordStatus":"PartiallyFilled","leavesQty":1500,"cumQty":500,"avgPx":151.74,"commission":0.00075,"trdMatchID":"00000000-006d-1000-0000-000e8737d540","execCost":-101065,"execComm":76,"transactTime":"2024-06-10T06:13:20.121Z","timestamp":"2024-06-10T06:13:20.123Z"}]}"#;

const OTHERS: &[(&str, Class)] = &[
    (
        r#"{"info":"Welcome.","version":"2.0.0","timestamp":"2024-06-10T06:13:20.121Z","docs":"https://example.test","limit":{"remaining":39}}"#,
        control(Control::Ack),
    ),
    (
        r#"{"success":true,"subscribe":"trade:SOLUSDT","request":{"op":"subscribe","args":["trade:SOLUSDT"]}}"#,
        control(Control::Ack),
    ),
    (
        r#"{"status":400,"error":"Unknown table: x","meta":{},"request":{"op":"subscribe","args":["x:SOLUSDT"]}}"#,
        control(Control::Error),
    ),
    ("pong", control(Control::Heartbeat)),
    (
        r#"{"table":"orderBookL2","action":"update","data":[{"symbol":"SOLUSDT","id":1,"side":"Sell","size":5}]}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"action":"partial","data":[{"symbol":"SOLUSDT","bids":[[1,2]],"asks":[]}],"table":"orderBook10"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"table":"instrument","action":"update","data":[{"symbol":"SOLUSDT","bidPrice":1}]}"#,
        unused(Unused::Ticker),
    ),
    (
        r#"{"table":"tradeBin1m","action":"insert","data":[{"symbol":"SOLUSDT"}]}"#,
        unused(Unused::Kline),
    ),
    (
        r#"{"table":"liquidation","action":"insert","data":[{"symbol":"X"}]}"#,
        unused(Unused::Liquidation),
    ),
    (r#"{"table":"funding","action":"partial","data":[]}"#, unused(Unused::Reference)),
    (r#"{"table":"order","action":"update","data":[{"orderID":"1"}]}"#, unused(Unused::Order)),
    (r#"{"table":"position","action":"update","data":[{"account":1}]}"#, unused(Unused::Account)),
    (
        r#"{"table":"execution","action":"partial","keys":["execID"],"data":[]}"#,
        unused(Unused::Empty),
    ),
    (
        r#"{"table":"execution","action":"insert","data":[{"execType":"Canceled","lastQty":30,"symbol":"SOLUSDT"}]}"#,
        unused(Unused::Order),
    ),
    (
        r#"{"table":"execution","action":"insert","data":[{"execType":"Funding","lastQty":30,"lastPx":1,"symbol":"SOLUSDT"}]}"#,
        unused(Unused::Calculated),
    ),
    (r#"{"table":"brandNew","action":"insert","data":[{"symbol":"SOLUSDT"}]}"#, Class::Unknown),
    (r#"{"table":"quote","action":"delete","data":[{"symbol":"SOLUSDT"}]}"#, Class::Unknown),
    ("{}", Class::Unknown),
];

const REFUSED: &[(&str, Refusal)] = &[
    ("[]", Refusal::WrongType),
    (r#"{"table":5,"action":"insert","data":[]}"#, Refusal::WrongType),
    (r#"{"table":"trade","data":[]}"#, Refusal::MissingField),
    (r#"{"table":"trade","action":"insert"}"#, Refusal::MissingField),
    (r#"{"table":"trade","action":"insert","data":{}}"#, Refusal::WrongType),
    (r#"{"table":"trade","action":"insert","data":[null]}"#, Refusal::WrongType),
    (r#"{"table":"trade","table":"order","action":"insert","data":[]}"#, Refusal::DuplicateField),
    (
        r#"{"table":"quote","action":"update","data":[{"symbol":"X","bidPrice":1,"bidSize":1}]}"#,
        Refusal::NoSnapshot,
    ),
    (r#"{"table":"execution","action":"insert","data":[{"symbol":"X"}]}"#, Refusal::MissingField),
];
