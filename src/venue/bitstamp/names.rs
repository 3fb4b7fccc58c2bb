//! Names of events and channels.

use crate::venue::class::{Class, Control, Unused};

/// What a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content<'a> {
    /// An order book of a market.
    Book(&'a [u8]),
    /// A trade of a market.
    Trade(&'a [u8]),
    Other(Class),
}

/// The one market of 2015.
const FIRST: &[u8] = b"btcusd";

/// What the event called `event` of a channel carries.
pub(super) fn content<'a>(event: &[u8], channel: &'a [u8]) -> Content<'a> {
    Content::Other(match event {
        b"data" | b"trade" => return of_channel(event, channel),
        b"order_created" | b"order_changed" | b"order_deleted" => Class::Unused(Unused::Depth),
        b"bts:subscription_succeeded"
        | b"bts:unsubscription_succeeded"
        | b"pusher:connection_established"
        | b"pusher_internal:subscription_succeeded" => Class::Control(Control::Ack),
        b"bts:error" | b"pusher:error" => Class::Control(Control::Error),
        b"bts:heartbeat" | b"pusher:ping" | b"pusher:pong" | b"ping" | b"pong" => {
            Class::Control(Control::Heartbeat)
        }
        b"bts:request_reconnect" => Class::Control(Control::Shutdown),
        _ => Class::Unknown,
    })
}

fn of_channel<'a>(event: &[u8], channel: &'a [u8]) -> Content<'a> {
    let market = |name: &[u8]| match channel.strip_prefix(name)? {
        [] => Some(FIRST),
        [b'_', market @ ..] => Some(market),
        _ => None,
    };
    if let Some(market) = market(b"live_trades") {
        return if event == b"trade" {
            Content::Trade(market)
        } else {
            Content::Other(Class::Unknown)
        };
    }
    if let Some(market) = market(b"order_book").filter(|_| event == b"data") {
        return Content::Book(market);
    }
    let depth = [&b"diff_order_book"[..], b"detail_order_book", b"live_orders"];
    let class = match depth.iter().any(|name| market(name).is_some()) {
        true => Class::Unused(Unused::Depth),
        false if channel.starts_with(b"private-") => Class::Unused(Unused::Account),
        false => Class::Unknown,
    };
    Content::Other(class)
}

/// What a line of 2015 carries, by the event's name that it begins with; `None` if that is none.
pub(super) fn word(name: &[u8]) -> Option<Content<'static>> {
    Some(match name {
        b"trade" => Content::Trade(FIRST),
        b"order_book" => Content::Book(FIRST),
        b"diff_order_book" | b"order_created" | b"order_changed" | b"order_deleted" => {
            Content::Other(Class::Unused(Unused::Depth))
        }
        _ => return None,
    })
}
