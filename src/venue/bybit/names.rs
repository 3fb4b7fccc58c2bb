//! The names of Bybit's topics and kinds of execution.

use crate::venue::class::{Class, Unused};

/// What a topic carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Tickers,
    Trades,
    /// The top of the book.
    Best,
    Executions,
    /// Of no use here.
    Other(Class),
}

/// What the topic called `name` carries (`tickers.BTCUSDT`, `orderbook.1.BTCUSDT`).
pub(super) fn topic(name: &[u8]) -> Option<Topic> {
    use Class::Unused as Not;
    let mut parts = name.split(|&byte| byte == b'.');
    Some(match (parts.next()?, parts.next()) {
        (b"tickers", _) => Topic::Tickers,
        (b"publicTrade" | b"trade", _) => Topic::Trades,
        (b"orderbook", Some(b"1")) => Topic::Best,
        (b"execution", _) => Topic::Executions,
        (b"orderbook" | b"orderBookL2_25" | b"orderBook_200" | b"rpi_orderbook", _) => {
            Topic::Other(Not(Unused::Depth))
        }
        (b"tickers_lt" | b"instrument_info" | b"insurance", _) => Topic::Other(Not(Unused::Ticker)),
        (b"kline" | b"kline_lt" | b"klineV2" | b"candle", _) => Topic::Other(Not(Unused::Kline)),
        (b"liquidation" | b"allLiquidation", _) => Topic::Other(Not(Unused::Liquidation)),
        (b"lt" | b"priceLimit" | b"adlAlert" | b"system", _) => {
            Topic::Other(Not(Unused::Reference))
        }
        (b"order" | b"spread", _) => Topic::Other(Not(Unused::Order)),
        (b"position" | b"wallet" | b"greeks" | b"dcp", _) => Topic::Other(Not(Unused::Account)),
        _ => return None,
    })
}

/// What an execution of a type is to the account's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Execution {
    Trade,
    /// The venue's own doing.
    Calculated,
    Unknown,
}

/// What the execution type `name` means.
pub(super) fn execution(name: &[u8]) -> Execution {
    match name {
        b"Trade" | b"BlockTrade" | b"FutureSpread" => Execution::Trade,
        b"AdlTrade" | b"BustTrade" | b"Delivery" | b"Settle" | b"Funding" | b"MovePosition"
        | b"SessionSettlePnL" => Execution::Calculated,
        _ => Execution::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topics_first_part_says_what_it_carries_and_the_books_second_how_deep() {
        for (name, expected) in [
            ("tickers.BTCUSDT", Some(Topic::Tickers)),
            ("publicTrade.BTC", Some(Topic::Trades)),
            ("trade.linear.BTCUSDT", Some(Topic::Trades)),
            ("orderbook.1.BTCUSDT", Some(Topic::Best)),
            ("orderbook.1000.BTCUSDT", Some(Topic::Other(Class::Unused(Unused::Depth)))),
            ("execution.fast.linear", Some(Topic::Executions)),
            ("execution", Some(Topic::Executions)),
            ("kline.5.BTCUSDT", Some(Topic::Other(Class::Unused(Unused::Kline)))),
            ("brandNew.BTCUSDT", None),
            ("", None),
        ] {
            assert_eq!(topic(name.as_bytes()), expected, "{name}");
        }
    }
}
