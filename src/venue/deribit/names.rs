//! The names of Deribit's channels.

use crate::venue::class::{Class, Unused};

/// What a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// Both sides and, of a ticker, the last price.
    Quotes,
    Trades,
    /// Of no use here.
    Other(Class),
}

/// What the channel called `name` carries (`ticker.BTC-PERPETUAL.100ms`).
pub(super) fn channel(name: &[u8]) -> Option<Channel> {
    use Class::Unused as Not;
    let first = name.split(|&byte| byte == b'.').next()?;
    Some(Channel::Other(match first {
        b"ticker" | b"quote" => return Some(Channel::Quotes),
        b"trades" => return Some(Channel::Trades),
        b"book" => Not(Unused::Depth),
        b"incremental_ticker" => Not(Unused::Ticker),
        b"chart" => Not(Unused::Kline),
        b"perpetual"
        | b"markprice"
        | b"deribit_price_index"
        | b"deribit_price_ranking"
        | b"deribit_price_statistics"
        | b"deribit_volatility_index"
        | b"estimated_expiration_price" => Not(Unused::MarkPrice),
        b"instrument"
        | b"platform_state"
        | b"announcements"
        | b"rfq"
        | b"block_rfq"
        | b"block_trade_confirmations" => Not(Unused::Reference),
        b"user" => Not(Unused::Account),
        _ => return None,
    }))
}
