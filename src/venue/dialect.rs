//! How each venue is spoken to over a live connection: what it is asked, how fast, how it is kept
//! open. The rules are the venues' own, from their public documentation.
//!
//! | venue | asked for | at a time | pace | kept open by | default channels |
//! |---|---|---|---|---|---|
//! | `binance` | `{"method":"SUBSCRIBE","params":["btcusdt@trade"]}` | 200 streams | 5 messages/s | its WebSocket pings; ends after 24 h | `bookTicker`, `trade` |
//! | `binance-usdm`, `binance-cm` | the same | 200 | 5/s | the same | the same |
//! | `coinbase` | `{"type":"subscribe","product_ids":[…],"channels":["ticker","heartbeat"]}` | 100 products | 100/s | `heartbeat` | `ticker`, `matches` |
//! | `coinbase-advanced` | `{"type":"subscribe","product_ids":[…],"channel":"ticker"}` | 100 products | 8/s | `heartbeats` | `ticker`, `market_trades` |
//! | `kraken` | `{"method":"subscribe","params":{"channel":"ticker","symbol":[…]}}` | 100 symbols | 10/s | its heartbeats | `ticker`, `trade` |
//! | `bybit` | `{"op":"subscribe","args":["orderbook.1.BTCUSDT"]}` | 10 topics | 10/s | `{"op":"ping"}` each 20 s | `orderbook.1`, `publicTrade` |
//! | `okx` | `{"op":"subscribe","args":[{"channel":"bbo-tbt","instId":"BTC-USDT"}]}` | 100 | 480 an hour | `ping` each 20 s | `bbo-tbt`, `trades` |
//! | `bitstamp` | `{"event":"bts:subscribe","data":{"channel":"order_book_btcusd"}}` | 1 | 10/s | `bts:heartbeat` each 20 s | `order_book`, `live_trades` |
//! | `bitmex` | `{"op":"subscribe","args":["quote:XBTUSD"]}` | 20 | 10/s | `ping` each 5 s | `quote`, `trade` |
//! | `deribit` | `{"method":"public/subscribe","params":{"channels":["quote.BTC-PERPETUAL"]}}` | 100 | 10/s | heartbeats, each test answered | `quote`, `trades.100ms` |
//!
//! Paces are those of the venues or below them, pings included. A venue that is asked for what it
//! does not have refuses by name; it is asked again after a wait, because instruments are listed
//! while a gateway runs.

mod binance;
mod bitmex;
mod bitstamp;
mod bybit;
mod coinbase;
mod deribit;
mod kraken;
mod okx;

use std::num::NonZeroU32;
use std::time::Duration;

pub(super) use binance::Binance;
pub(super) use bitmex::Bitmex;
pub(super) use bitstamp::Bitstamp;
pub(super) use bybit::Bybit;
pub(super) use coinbase::{Advanced, Exchange};
pub(super) use deribit::Deribit;
pub(super) use kraken::Kraken;
pub(super) use okx::Okx;

use super::desk::Desk;
use crate::feed::live::{Dialect, Rules, Topic};

/// A venue's dialect, and what is asked for if nothing is said.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spoken {
    pub(super) make: fn() -> Box<dyn Dialect>,
    pub(super) desk: Desk,
    pub(super) channels: &'static [&'static str],
}

const fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// So many messages a second, and what else is commonest.
const fn rules(messages: u32) -> Rules {
    Rules {
        messages: match NonZeroU32::new(messages) {
            Some(messages) => messages,
            None => NonZeroU32::MIN,
        },
        window: second(1),
        connect_interval: second(1),
        ping_every: None,
        heartbeats: true,
        lifetime: None,
        stale_after: second(60),
    }
}

/// The first topic's channel, and the topics of that channel from the front, at most `most`.
fn of_one_channel(topics: &[Topic], most: usize) -> Vec<Topic> {
    let channel = topics.first().map(|topic| &topic.channel);
    topics.iter().filter(|topic| Some(&topic.channel) == channel).take(most).cloned().collect()
}

fn symbols(topics: &[Topic]) -> Vec<&str> {
    topics.iter().map(|topic| topic.symbol.as_str()).collect()
}

#[cfg(test)]
mod tests;
