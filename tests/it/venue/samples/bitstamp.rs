//! Bitstamp, as it speaks today. What it said in 2015 names no market, and has its own tests.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Kind, Role, Sample, Speaker, Unit, control, unused};

use Class::Unknown;

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["bitstamp"],
    samples: SAMPLES,
    fills: &[],
    others: OTHERS,
    refused: REFUSED,
    batch: None,
};

const TIME: Option<i64> = Some(1_718_000_000_121_000_000);

const SAMPLES: &[Sample] = &[
    Sample {
        venue: "bitstamp",
        instrument: "bitstamp:solusd",
        message: r#"{"data":{"timestamp":"1718000000","microtimestamp":"1718000000121000","bids":[["151.73","20.51000000"],["151.72","1.00000000"]],"asks":[["151.75","0.98000000"],["151.76","5.18000000"]]},"channel":"order_book_solusd","event":"data"}"#,
        numbers: &[
            ("bids.0.0", Role::Bid),
            ("bids.0.1", Role::BidSize),
            ("asks.0.0", Role::Ask),
            ("asks.0.1", Role::AskSize),
            ("timestamp", Role::Time),
            ("microtimestamp", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Sides,
        unit: Unit::Microseconds,
        symbol: ("channel", "order_book_"),
        beside: Some("bids"),
        informational: &[],
    },
    Sample {
        venue: "bitstamp",
        instrument: "bitstamp:solusd",
        message: r#"{"data":{"id":71002003,"timestamp":"1718000000","amount":0.5,"amount_str":"0.50000000","price":151.74,"price_str":"151.740","type":0,"microtimestamp":"1718000000121000","buy_order_id":1443875737346049,"sell_order_id":1443875731320832},"channel":"live_trades_solusd","event":"trade"}"#,
        numbers: &[
            ("price_str", Role::Last),
            ("amount_str", Role::LastSize),
            ("id", Role::Order),
            ("timestamp", Role::Time),
            ("microtimestamp", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Trade,
        unit: Unit::Microseconds,
        symbol: ("channel", "live_trades_"),
        beside: Some("id"),
        informational: &[("type", "7")],
    },
    Sample {
        venue: "bitstamp",
        instrument: "bitstamp:solusd",
        message: r#"{"event":"trade","channel":"live_trades_solusd","data":{"microtimestamp":"1718000000121000","price":151.73999999999999,"amount":0.50000000000000001,"id":71002003,"order_type":1}}"#,
        numbers: &[
            ("price", Role::Last),
            ("amount", Role::LastSize),
            ("id", Role::Order),
            ("microtimestamp", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Trade,
        unit: Unit::Microseconds,
        symbol: ("channel", "live_trades_"),
        beside: Some("id"),
        informational: &[("order_type", "\"x\"")],
    },
];

const OTHERS: &[(&str, Class)] = &[
    (
        r#"{"event":"bts:subscription_succeeded","channel":"live_trades_solusd","data":{}}"#,
        control(Control::Ack),
    ),
    (
        r#"{"event":"bts:unsubscription_succeeded","channel":"live_trades_solusd","data":{}}"#,
        control(Control::Ack),
    ),
    (
        r#"{"event":"bts:error","channel":"","data":{"code":null,"message":"Incorrect JSON format."}}"#,
        control(Control::Error),
    ),
    (
        r#"{"event":"bts:heartbeat","channel":"","data":{"status":"success"}}"#,
        control(Control::Heartbeat),
    ),
    (r#"{"event":"bts:request_reconnect","channel":"","data":""}"#, control(Control::Shutdown)),
    ("pong", control(Control::Heartbeat)),
    (
        r#"{"data":{"timestamp":"1718000000","microtimestamp":"1718000000121000","bids":[["151.73","0.00000000"]],"asks":[]},"channel":"diff_order_book_solusd","event":"data"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"data":{"bids":[["151.73","1","17"]],"asks":[]},"channel":"detail_order_book_solusd","event":"data"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"data":{"id":17,"price":151.7,"amount":1},"channel":"live_orders_solusd","event":"order_created"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"timestamp":"1718000000","microtimestamp":"1718000000121000","bids":[["151.73","1"]],"asks":[]}"#,
        unused(Unused::Snapshot),
    ),
    (
        r#"order_created {"price": "151.73", "amount": "2.00000000", "datetime": "1430438404", "id": 65595247, "order_type": 0}"#,
        unused(Unused::Depth),
    ),
    (
        r#"order_deleted {"price": "151.73", "amount": "0.00000000", "id": 65595247, "order_type": 1}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"data":{"id":17,"price":"151.7"},"channel":"private-my_trades_solusd-17","event":"trade"}"#,
        unused(Unused::Account),
    ),
    (r#"{"event":"brand_new","channel":"live_trades_solusd","data":{}}"#, Unknown),
    (r#"{"event":"data","channel":"brand_new_solusd","data":{"price":1}}"#, Unknown),
    (r#"{"event":"data","channel":"order_bookish","data":{"bids":[],"asks":[]}}"#, Unknown),
    ("{}", Unknown),
    ("[]", Unknown),
    (r#"[{"event":"trade"}]"#, Unknown),
];

const REFUSED: &[(&str, Refusal)] = &[
    (r#"{"event":5}"#, Refusal::WrongType),
    (r#"{"event":"data","data":{}}"#, Refusal::MissingField),
    (r#"{"event":"data","channel":"order_book_solusd"}"#, Refusal::MissingField),
    (r#"{"event":"data","channel":"order_book_solusd","data":5}"#, Refusal::MissingField),
    (r#"{"event":"data","channel":"order_book_solusd","data":{"bids":5}}"#, Refusal::WrongType),
    (r#"{"event":"data","channel":"order_book_solusd","data":{"bids":[5]}}"#, Refusal::WrongType),
    (
        r#"{"event":"data","channel":"order_book_solusd","data":{"bids":[["1"]]}}"#,
        Refusal::MissingField,
    ),
    (
        r#"{"event":"data","channel":"order_book_solusd","data":{"bids":[[]]}}"#,
        Refusal::MissingField,
    ),
    (
        r#"{"event":"data","channel":"order_book_solusd","data":{"bids":[["1","1"]],"bids":[]}}"#,
        Refusal::DuplicateField,
    ),
    (
        r#"{"event":"data","event":"data","channel":"order_book_solusd","data":{}}"#,
        Refusal::DuplicateField,
    ),
    (
        r#"{"event":"data","channel":"diff_order_book_solusd","data":{"bids":[}}"#,
        Refusal::Malformed,
    ),
    ("trade", Refusal::Malformed),
    ("trade 5", Refusal::Malformed),
    ("trade {\"id\":1,\"price\":2}", Refusal::MissingField),
    ("brand_new {\"id\":1}", Refusal::Malformed),
];
