//! Coinbase: Exchange and Advanced Trade.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Batch, Kind, Role, Sample, Speaker, Unit, control, unused};

use Class::Unknown;

pub(crate) const EXCHANGE: Speaker = Speaker {
    venues: &["coinbase"],
    samples: EXCHANGE_SAMPLES,
    fills: &[],
    others: EXCHANGE_OTHERS,
    refused: &[
        (r#"{"type":5}"#, Refusal::WrongType),
        (r#"{"type":null}"#, Refusal::WrongType),
        (r#"{"type":"ticker"}"#, Refusal::MissingField),
        (r#"{"type":"ticker","sequence":1,"product_id":"SOL-USD"}"#, Refusal::MissingField),
        (r#"{"type":"match","type":"match"}"#, Refusal::DuplicateField),
        (r#"{"type":"l2update","changes":[["buy","1","2"]}"#, Refusal::Malformed),
    ],
    batch: None,
};

pub(crate) const ADVANCED: Speaker = Speaker {
    venues: &["coinbase-advanced"],
    samples: ADVANCED_SAMPLES,
    fills: &[],
    others: ADVANCED_OTHERS,
    refused: &[
        (r#"{"channel":5}"#, Refusal::WrongType),
        (r#"{"channel":"ticker"}"#, Refusal::MissingField),
        (r#"{"channel":"ticker","channel":"ticker","events":[]}"#, Refusal::DuplicateField),
        (r#"{"channel":"ticker","events":[{"tickers":[{}]}]}"#, Refusal::MissingField),
        (r#"{"channel":"market_trades","events":[{"trades":[5]}]}"#, Refusal::MissingField),
        (r#"{"channel":"l2_data","events":[{"updates":[}]}"#, Refusal::Malformed),
    ],
    batch: Some(Batch {
        frame: (
            r#"{"channel":"market_trades","timestamp":"2024-06-10T06:13:20.2Z","sequence_num":7,"events":[{"type":"update","trades":["#,
            ",",
            "]}]}",
        ),
        row: r#"{"product_id":"SOL-USD","trade_id":"ID","price":"PRICE","size":"SIZE","time":"2024-06-10T06:13:20.121Z","side":"BUY"}"#,
        has_ids: true,
        empty: Class::Unused(Unused::Ticker),
    }),
};

const TIME: Option<i64> = Some(1_718_000_000_121_000_000);

const EXCHANGE_SAMPLES: &[Sample] = &[
    Sample {
        venue: "coinbase",
        instrument: "coinbase:SOL-USD",
        message: r#"{"type":"ticker","sequence":7700100200,"product_id":"SOL-USD","price":"151.74","open_24h":"149.02","volume_24h":"81232.10420000","low_24h":"148.11","high_24h":"153.9","volume_30d":"2901002.11","best_bid":"151.73","best_bid_size":"20.51000000","best_ask":"151.75","best_ask_size":"0.98000000","side":"buy","time":"2024-06-10T06:13:20.121000Z","trade_id":71002003,"last_size":"0.50"}"#,
        numbers: &[
            ("best_bid", Role::Bid),
            ("best_bid_size", Role::BidSize),
            ("best_ask", Role::Ask),
            ("best_ask_size", Role::AskSize),
            ("price", Role::Last),
            ("last_size", Role::LastSize),
            ("sequence", Role::Order),
            ("trade_id", Role::Id),
            ("time", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Ticker,
        unit: Unit::Text,
        symbol: ("product_id", ""),
        beside: Some("product_id"),
        informational: &[("side", "\"maybe\"")],
    },
    Sample {
        venue: "coinbase",
        instrument: "coinbase:SOL-USD",
        message: r#"{"type":"match","trade_id":71002003,"maker_order_id":"6f0c7dfc-1b05-45b0-9f0e-6a9b5a7ac301","taker_order_id":"a1de4f0e-9a0b-4f43-8d0b-3a2f6b9a7a11","side":"sell","size":"0.50","price":"151.74","product_id":"SOL-USD","sequence":7700100200,"time":"2024-06-10T06:13:20.121000Z"}"#,
        numbers: &[
            ("price", Role::Last),
            ("size", Role::LastSize),
            ("trade_id", Role::Order),
            ("time", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Trade,
        unit: Unit::Text,
        symbol: ("product_id", ""),
        beside: Some("product_id"),
        informational: &[("side", "\"maybe\"")],
    },
    Sample {
        venue: "coinbase",
        instrument: "coinbase:SOL-USD",
        message: r#"{"type":"last_match","trade_id":71002003,"maker_order_id":"6f0c7dfc-1b05-45b0-9f0e-6a9b5a7ac301","taker_order_id":"a1de4f0e-9a0b-4f43-8d0b-3a2f6b9a7a11","side":"sell","size":"0.50","price":"151.74","product_id":"SOL-USD","sequence":7700100200,"time":"2024-06-10T06:13:20.121Z"}"#,
        numbers: &[
            ("price", Role::Last),
            ("size", Role::LastSize),
            ("trade_id", Role::Order),
            ("time", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Trade,
        unit: Unit::Text,
        symbol: ("product_id", ""),
        beside: Some("product_id"),
        informational: &[("side", "\"maybe\"")],
    },
];

const EXCHANGE_OTHERS: &[(&str, Class)] = &[
    (
        r#"{"type":"subscriptions","channels":[{"name":"ticker","product_ids":["SOL-USD"]}]}"#,
        control(Control::Ack),
    ),
    (r#"{"type":"subscriptions","channels":[]}"#, control(Control::Ack)),
    (
        r#"{"type":"heartbeat","sequence":90,"last_trade_id":20,"product_id":"SOL-USD","time":"2024-06-10T06:13:20.121Z"}"#,
        control(Control::Heartbeat),
    ),
    (
        r#"{"type":"error","message":"Failed to subscribe","reason":"nope is not a valid product"}"#,
        control(Control::Error),
    ),
    ("pong", control(Control::Heartbeat)),
    (
        r#"{"type":"l2update","product_id":"SOL-USD","changes":[["sell","151.75","0.00"]],"time":"2024-06-10T06:13:20.121Z"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"type":"snapshot","product_id":"SOL-USD","bids":[["151.73","1"]],"asks":[["151.75","2"]]}"#,
        unused(Unused::Snapshot),
    ),
    (
        r#"{"type":"open","product_id":"SOL-USD","price":"151.7","remaining_size":"1","sequence":10}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"type":"done","product_id":"SOL-USD","reason":"filled","sequence":10}"#,
        unused(Unused::Depth),
    ),
    (r#"{"type":"status","products":[],"currencies":[]}"#, unused(Unused::Reference)),
    (r#"{"type":"brand_new","product_id":"SOL-USD","price":"1"}"#, Unknown),
    (r#"{"product_id":"SOL-USD","price":"1"}"#, Unknown),
    ("{}", Unknown),
    ("[]", Unknown),
    (r#"[{"type":"match"}]"#, Unknown),
];

const ADVANCED_SAMPLES: &[Sample] = &[
    Sample {
        venue: "coinbase-advanced",
        instrument: "coinbase-advanced:SOL-USD",
        message: r#"{"channel":"ticker","client_id":"","timestamp":"2024-06-10T06:13:20.121000000Z","sequence_num":6,"events":[{"type":"update","tickers":[{"type":"ticker","product_id":"SOL-USD","price":"151.74","volume_24_h":"81232.1042","low_24_h":"148.11","high_24_h":"153.9","low_52_w":"98.2","high_52_w":"210","price_percent_chg_24_h":"1.85","best_bid":"151.73","best_bid_quantity":"20.51000000","best_ask":"151.75","best_ask_quantity":"0.98"}]}]}"#,
        numbers: &[
            ("best_bid", Role::Bid),
            ("best_bid_quantity", Role::BidSize),
            ("best_ask", Role::Ask),
            ("best_ask_quantity", Role::AskSize),
            ("price", Role::Last),
            ("timestamp", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Ticker,
        unit: Unit::Text,
        symbol: ("product_id", ""),
        beside: Some("product_id"),
        informational: &[],
    },
    Sample {
        venue: "coinbase-advanced",
        instrument: "coinbase-advanced:SOL-USD",
        message: r#"{"channel":"market_trades","timestamp":"2024-06-10T06:13:20.251397169Z","sequence_num":9,"events":[{"type":"update","trades":[{"product_id":"SOL-USD","trade_id":"71002003","price":"151.74","size":"0.50","time":"2024-06-10T06:13:20.121000Z","side":"SELL"}]}]}"#,
        numbers: &[
            ("price", Role::Last),
            ("size", Role::LastSize),
            ("trade_id", Role::Order),
            ("time", Role::Time),
        ],
        venue_time: TIME,
        kind: Kind::Trade,
        unit: Unit::Text,
        symbol: ("product_id", ""),
        beside: Some("product_id"),
        informational: &[("side", "\"UNKNOWN_ORDER_SIDE\"")],
    },
];

const ADVANCED_OTHERS: &[(&str, Class)] = &[
    (
        r#"{"channel":"subscriptions","client_id":"","timestamp":"2024-06-10T06:13:20.251Z","sequence_num":2,"events":[{"subscriptions":{"ticker":["SOL-USD"]}}]}"#,
        control(Control::Ack),
    ),
    (
        r#"{"channel":"heartbeats","timestamp":"2024-06-10T06:13:20.251Z","sequence_num":35,"events":[{"current_time":"2024-06-10 06:13:20.25 +0000 UTC m=+41691.26","heartbeat_counter":41691}]}"#,
        control(Control::Heartbeat),
    ),
    (r#"{"type":"error","message":"authentication failure"}"#, control(Control::Error)),
    ("pong", control(Control::Heartbeat)),
    (
        r#"{"channel":"l2_data","timestamp":"2024-06-10T06:13:20.251Z","sequence_num":14,"events":[{"type":"update","product_id":"SOL-USD","updates":[{"side":"bid","price_level":"151.7","new_quantity":"0"}]}]}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"events":[{"type":"snapshot","product_id":"SOL-USD","updates":[{"side":"bid","price_level":"151.7","new_quantity":"0"}]}],"channel":"l2_data"}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"channel":"candles","timestamp":"2024-06-10T06:13:20.251Z","sequence_num":3,"events":[{"type":"snapshot","candles":[{"start":"1718000000","high":"1","product_id":"SOL-USD"}]}]}"#,
        unused(Unused::Kline),
    ),
    (r#"{"channel":"user","events":[{"type":"snapshot","orders":[]}]}"#, unused(Unused::Account)),
    (r#"{"channel":"status","events":[]}"#, unused(Unused::Reference)),
    (r#"{"channel":"ticker","events":[]}"#, unused(Unused::Ticker)),
    (
        r#"{"channel":"market_trades","events":[{"type":"snapshot","trades":[]}]}"#,
        unused(Unused::Ticker),
    ),
    (r#"{"channel":"brand_new","events":[{"product_id":"SOL-USD"}]}"#, Unknown),
    (r#"{"type":"brand_new"}"#, Unknown),
    ("{}", Unknown),
    ("[]", Unknown),
];
