//! Names of events, channels and currencies.

use crate::venue::class::{Class, Control, Unused};

/// The symbol by its name in the second interface; `into` holds it if it differs.
#[inline]
pub(super) fn canonical<'a>(symbol: &'a [u8], into: &'a mut Vec<u8>) -> &'a [u8] {
    let Some(slash) = symbol.iter().position(|&byte| byte == b'/') else { return symbol };
    let (base, quote) = (&symbol[..slash], &symbol[slash + 1..]);
    let (new_base, new_quote) = (currency(base), currency(quote));
    if new_base == base && new_quote == quote {
        return symbol;
    }
    into.clear();
    into.extend_from_slice(new_base);
    into.push(b'/');
    into.extend_from_slice(new_quote);
    into
}

#[inline]
fn currency(name: &[u8]) -> &[u8] {
    match name {
        b"XBT" => b"BTC",
        b"XDG" => b"DOGE",
        _ => name,
    }
}

/// What a channel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Ticker,
    Trade,
    Other(Class),
}

/// The channel called `name` in either interface; in the first it may end in a parameter, as
/// `book-1000`.
#[inline]
pub(super) fn channel(name: &[u8]) -> Channel {
    let end = name.iter().position(|&byte| byte == b'-').unwrap_or(name.len());
    Channel::Other(match &name[..end] {
        b"ticker" => return Channel::Ticker,
        b"trade" => return Channel::Trade,
        b"book" | b"level3" => Class::Unused(Unused::Depth),
        b"spread" => Class::Unused(Unused::Ticker),
        b"ohlc" => Class::Unused(Unused::Kline),
        b"status" | b"instrument" => Class::Unused(Unused::Reference),
        b"executions" | b"balances" => Class::Unused(Unused::Account),
        b"heartbeat" => Class::Control(Control::Heartbeat),
        _ => Class::Unknown,
    })
}

/// What the first interface tells of the account.
pub(super) fn of_account(name: &[u8]) -> Class {
    match name {
        b"ownTrades" | b"openOrders" => Class::Unused(Unused::Account),
        _ => Class::Unknown,
    }
}

/// An event of the first interface. `refused` says that its status is `error`.
pub(super) fn event(name: &[u8], refused: bool) -> Class {
    match name {
        b"heartbeat" | b"ping" | b"pong" => Class::Control(Control::Heartbeat),
        b"subscriptionStatus" if !refused => Class::Control(Control::Ack),
        b"subscriptionStatus" | b"error" => Class::Control(Control::Error),
        b"systemStatus" => Class::Unused(Unused::Reference),
        b"addOrderStatus"
        | b"cancelOrderStatus"
        | b"cancelAllStatus"
        | b"editOrderStatus"
        | b"cancelAllOrdersAfterStatus" => Class::Unused(Unused::Account),
        _ => Class::Unknown,
    }
}

/// The answer to a request of the second interface.
pub(super) fn method(name: &[u8], refused: bool) -> Class {
    match name {
        b"ping" | b"pong" => Class::Control(Control::Heartbeat),
        _ if refused => Class::Control(Control::Error),
        b"subscribe" | b"unsubscribe" => Class::Control(Control::Ack),
        b"add_order"
        | b"amend_order"
        | b"edit_order"
        | b"cancel_order"
        | b"cancel_all"
        | b"cancel_all_orders_after"
        | b"batch_add"
        | b"batch_cancel" => Class::Unused(Unused::Account),
        _ => Class::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b14_a_symbol_has_one_name_whichever_part_of_it_is_spelled_otherwise() {
        for (symbol, expected) in [
            ("XBT/USD", "BTC/USD"),
            ("BTC/USD", "BTC/USD"),
            ("ETH/XBT", "ETH/BTC"),
            ("XDG/XBT", "DOGE/BTC"),
            ("XDG/USD", "DOGE/USD"),
            ("XBTX/USD", "XBTX/USD"),
            ("AXBT/XBTC", "AXBT/XBTC"),
            // Not a pair of two known parts: not guessed.
            ("XBTUSD", "XBTUSD"),
            ("XXBTZUSD", "XXBTZUSD"),
            ("A/B/XBT", "A/B/XBT"),
            ("/XBT", "/BTC"),
            ("龙/XBT", "龙/BTC"),
            ("", ""),
        ] {
            let mut into = Vec::new();
            let name = canonical(symbol.as_bytes(), &mut into);
            assert_eq!(String::from_utf8_lossy(name), expected, "{symbol}");
        }
    }
}
