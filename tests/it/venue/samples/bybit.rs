//! Bybit v5.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Batch, Kind, Role, Sample, Speaker, Unit, control, unused};

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["bybit"],
    samples: SAMPLES,
    fills: &[("bybit", FILL)],
    others: OTHERS,
    refused: REFUSED,
    batch: Some(Batch {
        frame: (
            r#"{"topic":"publicTrade.SOLUSDT","type":"snapshot","ts":1718000000123,"data":["#,
            ",",
            "]}",
        ),
        row: r#"{"T":1718000000121,"s":"SOLUSDT","S":"Buy","v":"SIZE","p":"PRICE","L":"PlusTick","i":"ID","BT":false,"RPI":false,"seq":8800100201}"#,
        // Told apart by names, not by rising ids: see the venue's own cases.
        has_ids: false,
        empty: unused(Unused::Empty),
    }),
};

const SAMPLES: &[Sample] = &[
    Sample {
        venue: "bybit",
        instrument: "bybit:SOLUSDT",
        message: r#"{"topic":"tickers.SOLUSDT","type":"snapshot","data":{"symbol":"SOLUSDT","tickDirection":"PlusTick","price24hPcnt":"0.013238","lastPrice":"151.740","prevPrice24h":"149.11","markPrice":"151.733","openInterest":"8300.1","fundingRate":"0.00000952","bid1Price":"151.730","bid1Size":"20.5","ask1Price":"151.740","ask1Size":"0.9"},"cs":8800100200,"ts":1718000000121}"#,
        numbers: &[
            ("bid1Price", Role::Bid),
            ("bid1Size", Role::BidSize),
            ("ask1Price", Role::Ask),
            ("ask1Size", Role::AskSize),
            ("lastPrice", Role::Last),
            ("cs", Role::Order),
            ("ts", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Ticker,
        unit: Unit::Milliseconds,
        symbol: ("symbol", ""),
        beside: Some("symbol"),
        informational: &[("type", "\"novel\"")],
    },
    Sample {
        venue: "bybit",
        instrument: "bybit:SOLUSDT",
        message: r#"{"topic":"orderbook.1.SOLUSDT","ts":1718000000121,"type":"snapshot","data":{"s":"SOLUSDT","b":[["151.730","20.5"]],"a":[["151.740","0.9"]],"u":4400500,"seq":8800100200},"cts":1718000000119}"#,
        numbers: &[
            ("b.0.0", Role::Bid),
            ("b.0.1", Role::BidSize),
            ("a.0.0", Role::Ask),
            ("a.0.1", Role::AskSize),
            ("u", Role::Order),
            ("seq", Role::Order),
            ("ts", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Sides,
        unit: Unit::Milliseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[("type", "\"novel\"")],
    },
    Sample {
        venue: "bybit",
        instrument: "bybit:SOLUSDT",
        message: r#"{"topic":"publicTrade.SOLUSDT","type":"snapshot","ts":1718000000123,"data":[{"T":1718000000121,"s":"SOLUSDT","S":"Sell","v":"0.5","p":"151.740","L":"MinusTick","i":"2290000000061666327","BT":false,"RPI":false,"seq":8800100201}]}"#,
        numbers: &[("p", Role::Last), ("v", Role::LastSize), ("i", Role::Id), ("T", Role::Time)],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Milliseconds,
        symbol: ("s", ""),
        beside: Some("s"),
        informational: &[("S", "\"Both\"")],
    },
];

/// An order of the account, executed in part.
pub(crate) const FILL: &str = r#"{"topic":"execution","id":"386_SOLUSDT_140","creationTime":1718000000124,"data":[{"category":"linear","symbol":"SOLUSDT","closedSize":"0","execFee":"0.04","execId":"0ab1bdf7-4219-438b-b30a-32ec863018f7","execPrice":"151.740","execQty":"0.5","execType":"Trade","execValue":"75.87","feeRate":"0.00055","leavesQty":"1.5","orderId":"9aac161b-8ed6-450d-9cab-c5cc67c21784","orderLinkId":"mine-19","orderPrice":"151.800","orderQty":"2.0","orderType":"Limit","stopOrderType":"UNKNOWN","side":"Buy","execTime":"1718000000121","isLeverage":"0","isMaker":false,"seq":8800100201}]}"#;

const OTHERS: &[(&str, Class)] = &[
    (
        r#"{"success":true,"ret_msg":"","conn_id":"d8bu","req_id":"7","op":"subscribe"}"#,
        control(Control::Ack),
    ),
    (
        r#"{"success":true,"ret_msg":"","conn_id":"95a3","request":{"op":"subscribe","args":["trade.EOSUSD"]}}"#,
        control(Control::Ack),
    ),
    (
        r#"{"success":true,"conn_id":"a","type":"COMMAND_RESP","data":{"failTopics":[],"successTopics":["tickers.X"]}}"#,
        control(Control::Ack),
    ),
    (r#"{"op":"auth","success":true,"retCode":0,"retMsg":"","connId":"c"}"#, control(Control::Ack)),
    (
        r#"{"op":"order.create","retCode":0,"retMsg":"OK","connId":"c","reqId":"r","data":{"orderId":"1"}}"#,
        control(Control::Ack),
    ),
    (
        r#"{"success":false,"ret_msg":"Invalid topic: x.Y","conn_id":"c","op":"subscribe"}"#,
        control(Control::Error),
    ),
    (
        r#"{"op":"auth","success":false,"retCode":10003,"retMsg":"Invalid apikey"}"#,
        control(Control::Error),
    ),
    (
        r#"{"success":true,"ret_msg":"pong","conn_id":"c","req_id":"","op":"ping"}"#,
        control(Control::Heartbeat),
    ),
    (r#"{"op":"pong","args":["1718000000121"],"conn_id":"c"}"#, control(Control::Heartbeat)),
    ("pong", control(Control::Heartbeat)),
    (
        r#"{"topic":"orderbook.50.SOLUSDT","type":"delta","ts":1,"data":{"s":"SOLUSDT","b":[["1","0"]],"a":[],"u":2,"seq":3}}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"data":{"s":"SOLUSDT","b":[["1","0"]],"a":[]},"topic":"orderbook.200.SOLUSDT","type":"delta"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"topic":"orderBookL2_25.SOLUSD","type":"delta","data":{"delete":[],"update":[],"insert":[]},"cross_seq":1,"timestamp_e6":1}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"topic":"kline.1.SOLUSDT","data":[{"start":1,"close":"151.7"}],"ts":1,"type":"snapshot"}"#,
        unused(Unused::Kline),
    ),
    (r#"{"topic":"liquidation.SOLUSDT","data":{"symbol":"SOLUSDT"}}"#, unused(Unused::Liquidation)),
    (
        r#"{"topic":"order","id":"1","creationTime":1,"data":[{"symbol":"SOLUSDT"}]}"#,
        unused(Unused::Order),
    ),
    (r#"{"topic":"wallet","id":"1","creationTime":1,"data":[{}]}"#, unused(Unused::Account)),
    (
        r#"{"topic":"execution.fast","id":"fast-1","creationTime":1,"data":[]}"#,
        unused(Unused::Empty),
    ),
    (
        r#"{"topic":"execution","data":[{"symbol":"SOLUSDT","execType":"AdlTrade","execQty":"0.5","execPrice":"1","side":"Buy","execId":"a"}]}"#,
        unused(Unused::Calculated),
    ),
    (r#"{"topic":"brandNew.SOLUSDT","data":{"symbol":"SOLUSDT"}}"#, Class::Unknown),
    ("{}", Class::Unknown),
    (r#"{"op":"subscribe"}"#, Class::Unknown),
];

const REFUSED: &[(&str, Refusal)] = &[
    ("[]", Refusal::WrongType),
    (r#"{"topic":5,"data":{}}"#, Refusal::WrongType),
    (r#"{"topic":"tickers.X","type":"snapshot"}"#, Refusal::MissingField),
    (r#"{"topic":"tickers.X","type":"snapshot","data":null}"#, Refusal::MissingField),
    (r#"{"topic":"tickers.X","type":"snapshot","data":[1]}"#, Refusal::WrongType),
    (r#"{"topic":"publicTrade.X","data":null}"#, Refusal::MissingField),
    (r#"{"topic":"publicTrade.X","data":[5]}"#, Refusal::WrongType),
    (r#"{"topic":"publicTrade.X","topic":"kline.1.X","data":[]}"#, Refusal::DuplicateField),
    (
        r#"{"topic":"tickers.X","type":"delta","data":{"symbol":"X","bid1Price":"1","bid1Size":"1"},"cs":1,"ts":1718000000121}"#,
        Refusal::NoSnapshot,
    ),
    (
        r#"{"topic":"orderbook.1.X","type":"delta","ts":1718000000121,"data":{"s":"X","b":[["1","1"]],"a":[],"u":5,"seq":5}}"#,
        Refusal::NoSnapshot,
    ),
    (
        r#"{"topic":"orderbook.1.X","type":"snapshot","ts":1718000000121,"data":{"s":"X","b":{},"a":[],"u":5,"seq":5}}"#,
        Refusal::WrongType,
    ),
    (
        r#"{"topic":"orderbook.1.X","type":"snapshot","ts":1718000000121,"data":{"s":"X","b":[5],"a":[],"u":5,"seq":5}}"#,
        Refusal::WrongType,
    ),
    (
        r#"{"topic":"orderbook.1.X","type":"snapshot","ts":1718000000121,"data":{"s":"X","b":[["1"]],"a":[],"u":5,"seq":5}}"#,
        Refusal::MissingField,
    ),
];
