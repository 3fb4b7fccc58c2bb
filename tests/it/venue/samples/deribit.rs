//! Deribit.

use tidegate::venue::{Class, Control, Refusal, Unused};

use super::{Batch, Kind, Role, Sample, Speaker, Unit, control, unused};

pub(crate) const SPEAKER: Speaker = Speaker {
    venues: &["deribit"],
    samples: SAMPLES,
    fills: &[],
    others: OTHERS,
    refused: REFUSED,
    batch: Some(Batch {
        frame: (
            r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"trades.SOL_USDC.100ms","data":["#,
            ",",
            "]}}",
        ),
        row: r#"{"timestamp":1718000000121,"price":"PRICE","amount":"SIZE","direction":"sell","instrument_name":"SOL_USDC","trade_seq":ID,"trade_id":"x-ID"}"#,
        has_ids: true,
        empty: unused(Unused::Empty),
    }),
};

const SAMPLES: &[Sample] = &[
    Sample {
        venue: "deribit",
        instrument: "deribit:SOL_USDC",
        message: r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"ticker.SOL_USDC.100ms","data":{"timestamp":1718000000121,"state":"open","stats":{"high":152.0,"low":null},"index_price":151.7,"instrument_name":"SOL_USDC","last_price":151.74,"mark_price":151.733,"greeks":{"delta":1},"best_ask_price":151.74,"best_bid_price":151.73,"best_ask_amount":0.9,"best_bid_amount":20.5,"funding_8h":0.00001742}}}"#,
        numbers: &[
            ("best_bid_price", Role::Bid),
            ("best_bid_amount", Role::BidSize),
            ("best_ask_price", Role::Ask),
            ("best_ask_amount", Role::AskSize),
            ("last_price", Role::Last),
            ("timestamp", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Ticker,
        unit: Unit::Milliseconds,
        symbol: ("instrument_name", ""),
        beside: Some("instrument_name"),
        informational: &[],
    },
    Sample {
        venue: "deribit",
        instrument: "deribit:SOL_USDC",
        message: r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"quote.SOL_USDC","data":{"timestamp":1718000000121,"instrument_name":"SOL_USDC","best_ask_price":151.74,"best_bid_price":151.73,"best_ask_amount":0.9,"best_bid_amount":20.5}}}"#,
        numbers: &[
            ("best_bid_price", Role::Bid),
            ("best_bid_amount", Role::BidSize),
            ("best_ask_price", Role::Ask),
            ("best_ask_amount", Role::AskSize),
            ("timestamp", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Sides,
        unit: Unit::Milliseconds,
        symbol: ("instrument_name", ""),
        beside: Some("instrument_name"),
        informational: &[],
    },
    Sample {
        venue: "deribit",
        instrument: "deribit:SOL_USDC",
        message: r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"trades.SOL_USDC.raw","data":[{"timestamp":1718000000121,"price":151.74,"amount":0.5,"direction":"sell","index_price":151.7,"instrument_name":"SOL_USDC","trade_seq":271252854,"mark_price":151.733,"tick_direction":2,"contracts":0.5,"trade_id":"403691824"}]}}"#,
        numbers: &[
            ("price", Role::Last),
            ("amount", Role::LastSize),
            ("trade_seq", Role::Order),
            ("timestamp", Role::Time),
        ],
        venue_time: Some(1_718_000_000_121_000_000),
        kind: Kind::Trade,
        unit: Unit::Milliseconds,
        symbol: ("instrument_name", ""),
        beside: Some("instrument_name"),
        informational: &[("direction", "\"both\"")],
    },
];

const OTHERS: &[(&str, Class)] = &[
    (
        r#"{"jsonrpc":"2.0","id":1,"result":["ticker.SOL_USDC.raw"],"usIn":1,"usOut":2,"usDiff":1,"testnet":false}"#,
        control(Control::Ack),
    ),
    (r#"{"jsonrpc":"2.0","id":2,"result":"ok"}"#, control(Control::Ack)),
    (r#"{"jsonrpc":"2.0","id":3,"result":{"version":"1.2.26"}}"#, control(Control::Ack)),
    (
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":10028,"message":"too_many_requests","data":null}}"#,
        control(Control::Error),
    ),
    (
        r#"{"jsonrpc":"2.0","method":"heartbeat","params":{"type":"test_request"}}"#,
        control(Control::Heartbeat),
    ),
    (
        r#"{"params":{"type":"heartbeat"},"method":"heartbeat","jsonrpc":"2.0"}"#,
        control(Control::Heartbeat),
    ),
    (
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"book.SOL_USDC.raw","data":{"type":"change","timestamp":1,"instrument_name":"SOL_USDC","change_id":2,"bids":[],"asks":[["new",1,2]]}}}"#,
        unused(Unused::Depth),
    ),
    (
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"data":{"instrument_name":"SOL_USDC"},"channel":"chart.trades.SOL_USDC.1"}}"#,
        unused(Unused::Kline),
    ),
    (
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"deribit_price_index.sol_usd","data":{"price":1}}}"#,
        unused(Unused::MarkPrice),
    ),
    (
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"user.portfolio.btc","data":{}}}"#,
        unused(Unused::Account),
    ),
    (
        r#"{"jsonrpc":"2.0","method":"subscription","params":{"channel":"brand_new.X","data":{"price":1}}}"#,
        Class::Unknown,
    ),
    (r#"{"jsonrpc":"2.0","method":"brand_new","params":{}}"#, Class::Unknown),
    ("{}", Class::Unknown),
];

const REFUSED: &[(&str, Refusal)] = &[
    ("[]", Refusal::WrongType),
    (r#"{"method":"subscription","params":{}}"#, Refusal::MissingField),
    (r#"{"method":"subscription"}"#, Refusal::MissingField),
    (r#"{"method":"subscription","params":{"channel":5,"data":{}}}"#, Refusal::WrongType),
    (r#"{"method":"subscription","params":{"channel":"ticker.X.raw"}}"#, Refusal::MissingField),
    (
        r#"{"method":"subscription","params":{"channel":"ticker.X.raw","data":null}}"#,
        Refusal::MissingField,
    ),
    (
        r#"{"method":"subscription","params":{"channel":"trades.X.raw","data":[1]}}"#,
        Refusal::WrongType,
    ),
    (
        r#"{"method":"subscription","params":{"channel":"ticker.X.raw","channel":"book.X.raw","data":{}}}"#,
        Refusal::DuplicateField,
    ),
    (
        r#"{"method":"subscription","params":{"channel":"ticker.X.raw","data":{"instrument_name":"X"}}}"#,
        Refusal::MissingField,
    ),
];
