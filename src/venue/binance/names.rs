//! The names of Binance's events and streams.

use crate::venue::class::{Class, Control, Unused};

/// What an event or a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    BookTicker,
    Trade,
    AggTrade,
    /// Spot: an order of the account.
    ExecutionReport,
    /// Futures: the same.
    OrderTradeUpdate,
    /// Of no use here.
    Other(Class),
}

/// The event called `name` (its member `e`).
#[inline]
pub(super) fn event(name: &[u8]) -> Option<Name> {
    use Class::Control as Told;
    use Class::Unused as Not;
    Some(match name {
        b"bookTicker" => Name::BookTicker,
        b"trade" => Name::Trade,
        b"aggTrade" => Name::AggTrade,
        b"executionReport" => Name::ExecutionReport,
        b"ORDER_TRADE_UPDATE" => Name::OrderTradeUpdate,
        b"depthUpdate" => Name::Other(Not(Unused::Depth)),
        b"24hrTicker" | b"24hrMiniTicker" | b"1hTicker" | b"4hTicker" | b"1dTicker"
        | b"avgPrice" => Name::Other(Not(Unused::Ticker)),
        b"kline" | b"continuous_kline" | b"indexPrice_kline" | b"markPrice_kline" => {
            Name::Other(Not(Unused::Kline))
        }
        b"markPriceUpdate" | b"indexPriceUpdate" => Name::Other(Not(Unused::MarkPrice)),
        b"forceOrder" => Name::Other(Not(Unused::Liquidation)),
        b"contractInfo" | b"assetIndexUpdate" | b"compositeIndex" | b"tradingSession" => {
            Name::Other(Not(Unused::Reference))
        }
        // `TRADE_LITE` tells early and in part what `ORDER_TRADE_UPDATE` tells in full: counting
        // both would count a fill twice.
        b"TRADE_LITE"
        | b"outboundAccountPosition"
        | b"outboundAccountInfo"
        | b"balanceUpdate"
        | b"listStatus"
        | b"externalLockUpdate"
        | b"ACCOUNT_UPDATE"
        | b"ACCOUNT_CONFIG_UPDATE"
        | b"MARGIN_CALL"
        | b"STRATEGY_UPDATE"
        | b"GRID_UPDATE"
        | b"ALGO_UPDATE"
        | b"CONDITIONAL_ORDER_TRIGGER_REJECT"
        | b"openOrderLoss"
        | b"liabilityChange"
        | b"riskLevelChange" => Name::Other(Not(Unused::Account)),
        b"serverShutdown" => Name::Other(Told(Control::Shutdown)),
        b"listenKeyExpired" | b"eventStreamTerminated" => Name::Other(Told(Control::Expired)),
        b"ping" | b"pong" | b"heartbeat" => Name::Other(Told(Control::Heartbeat)),
        b"error" => Name::Other(Told(Control::Error)),
        _ => return None,
    })
}

/// What a stream carries, by its name (`btcusdt@depth@100ms`, `!miniTicker@arr`): needed for spot
/// quotes, whose event has no name.
#[inline]
pub(super) fn stream(name: &[u8]) -> Option<Name> {
    if name.ends_with(b"@bookTicker") {
        return Some(Name::BookTicker);
    }
    let kind = stream_kind(name);
    Some(match kind {
        b"bookTicker" => Name::BookTicker,
        b"trade" => Name::Trade,
        b"aggTrade" => Name::AggTrade,
        _ => Name::Other(unused_kind(kind)?),
    })
}

/// The class of a stream whose payload is of no use; `None` if it may be of use.
#[inline]
pub(super) fn unused_stream(name: &[u8]) -> Option<Class> {
    // The streams that nearly all messages come on, told at a glance.
    if name.ends_with(b"@bookTicker") || name.ends_with(b"@trade") {
        return None;
    }
    unused_kind(stream_kind(name))
}

/// The part of a stream's name that says what it carries, without its parameters.
#[inline]
fn stream_kind(name: &[u8]) -> &[u8] {
    let kind = match name {
        [b'!', rest @ ..] => rest,
        _ => match memchr::memchr(b'@', name) {
            Some(at) => &name[at + 1..],
            None => return &[],
        },
    };
    let end = memchr::memchr2(b'@', b'_', kind).unwrap_or(kind.len());
    &kind[..end]
}

#[inline]
fn unused_kind(kind: &[u8]) -> Option<Class> {
    Some(Class::Unused(match kind {
        b"depth" | b"depth5" | b"depth10" | b"depth20" | b"rpiDepth" => Unused::Depth,
        b"ticker" | b"miniTicker" | b"avgPrice" => Unused::Ticker,
        b"kline" | b"continuousKline" | b"indexPriceKline" | b"markPriceKline" => Unused::Kline,
        b"markPrice" | b"indexPrice" => Unused::MarkPrice,
        b"forceOrder" => Unused::Liquidation,
        b"contractInfo" | b"assetIndex" | b"compositeIndex" | b"tradingSession" => {
            Unused::Reference
        }
        b"serverShutdown" => return Some(Class::Control(Control::Shutdown)),
        _ => return None,
    }))
}

/// Whether `name` is an execution type (`x`) that the venue documents.
pub(super) fn is_execution_type(name: &[u8]) -> bool {
    matches!(
        name,
        b"NEW"
            | b"CANCELED"
            | b"REPLACED"
            | b"REJECTED"
            | b"TRADE"
            | b"EXPIRED"
            | b"TRADE_PREVENTION"
            | b"CALCULATED"
            | b"AMENDMENT"
            | b"PENDING_CANCEL"
    )
}

/// Whether `name` is a kind of trade (`X`) that has been seen.
pub(super) fn is_trade_kind(name: &[u8]) -> bool {
    matches!(name, b"MARKET" | b"INSURANCE_FUND" | b"ADL" | b"NA")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streams_name_says_what_it_carries_whatever_its_parameters() {
        for (name, expected) in [
            ("btcusdt@bookTicker", Some(Name::BookTicker)),
            ("!bookTicker", Some(Name::BookTicker)),
            ("btcusd_perp@trade", Some(Name::Trade)),
            ("btcusdt@aggTrade", Some(Name::AggTrade)),
            ("btcusd_perp@depth@0ms", Some(Name::Other(Class::Unused(Unused::Depth)))),
            ("btcusdt@depth20@100ms", Some(Name::Other(Class::Unused(Unused::Depth)))),
            ("btcusdt@kline_1m", Some(Name::Other(Class::Unused(Unused::Kline)))),
            ("!ticker_1h@arr", Some(Name::Other(Class::Unused(Unused::Ticker)))),
            ("!markPrice@arr@1s", Some(Name::Other(Class::Unused(Unused::MarkPrice)))),
            ("!serverShutdown", Some(Name::Other(Class::Control(Control::Shutdown)))),
            ("btcusd_perpetual_continuousKline", None),
            (
                "btcusdt_perpetual@continuousKline_1m",
                Some(Name::Other(Class::Unused(Unused::Kline))),
            ),
            ("jTfvpakT2yT0hVIo5gYWVihZhdM2PrBgJUZ5PyfZ4EVpCkx4Uoxk5timcrQc", None),
            ("btcusdt@brandNew", None),
            ("", None),
            ("@", None),
        ] {
            assert_eq!(stream(name.as_bytes()), expected, "{name}");
        }
    }
}
