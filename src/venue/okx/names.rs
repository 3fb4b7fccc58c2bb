//! The names of OKX's channels and events.

use crate::venue::class::{Class, Control, Unused};

/// What a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Tickers,
    Trades,
    AllTrades,
    /// The top of the book.
    Best,
    /// Of no use here.
    Other(Class),
}

/// What the channel called `name` carries.
pub(super) fn channel(name: &[u8]) -> Option<Channel> {
    use Class::Unused as Not;
    Some(Channel::Other(match name {
        b"tickers" => return Some(Channel::Tickers),
        b"trades" => return Some(Channel::Trades),
        b"trades-all" => return Some(Channel::AllTrades),
        b"bbo-tbt" => return Some(Channel::Best),
        b"books" | b"books5" | b"books-l2-tbt" | b"books50-l2-tbt" | b"books-elp"
        | b"sprd-bbo-tbt" | b"sprd-books5" | b"sprd-books-l2-tbt" => Not(Unused::Depth),
        b"mark-price" | b"index-tickers" | b"price-limit" | b"estimated-price" => {
            Not(Unused::MarkPrice)
        }
        b"liquidation-orders" | b"adl-warning" => Not(Unused::Liquidation),
        b"instruments" | b"status" | b"funding-rate" | b"open-interest" | b"economic-calendar" => {
            Not(Unused::Reference)
        }
        b"opt-summary"
        | b"sprd-tickers"
        | b"sprd-public-trades"
        | b"option-trades"
        | b"public-struc-block-trades"
        | b"public-block-trades"
        | b"block-tickers"
        | b"call-auction-details" => Not(Unused::Ticker),
        b"orders" | b"orders-algo" | b"algo-advance" | b"sprd-orders" => Not(Unused::Order),
        b"account"
        | b"positions"
        | b"balance_and_position"
        | b"liquidation-warning"
        | b"account-greeks"
        | b"fills"
        | b"deposit-info"
        | b"withdrawal-info"
        | b"rfqs"
        | b"quotes"
        | b"struc-block-trades"
        | b"sprd-trades"
        | b"grid-orders-spot"
        | b"grid-orders-contract"
        | b"grid-positions"
        | b"grid-sub-orders" => Not(Unused::Account),
        _ if has_candles(name) => Not(Unused::Kline),
        _ => return None,
    }))
}

/// `candle1m`, `mark-price-candle5m`, `index-candle1D`, `sprd-candle1H`.
fn has_candles(name: &[u8]) -> bool {
    memchr::memmem::find(name, b"candle").is_some()
}

/// What the event called `name` says of the connection.
pub(super) fn event(name: &[u8]) -> Option<Control> {
    Some(match name {
        b"subscribe" | b"unsubscribe" | b"login" | b"channel-conn-count" => Control::Ack,
        b"error" | b"channel-conn-count-error" => Control::Error,
        b"notice" => Control::Shutdown,
        b"ping" | b"pong" => Control::Heartbeat,
        _ => return None,
    })
}
