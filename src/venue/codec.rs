//! The codec trait, its events, and the list of venues.

use std::sync::Arc;

use super::answer::Answer;
use super::class::{Class, Oddities};
use super::desk::{self, Desk};
use super::dialect::{self, Spoken};
use super::{binance, bitmex, bitstamp, bybit, coinbase, deribit, fills, kraken, okx};
use crate::feed::live::Dialect;
use crate::market::{Accounts, FeedId, Fill, InstrumentId, Instruments, Quote};

/// Longest accepted message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// What a message means to the market.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// The newest quote of an instrument, complete, one tick on.
    Quote {
        /// Of what.
        instrument: InstrumentId,
        /// Everything known of it.
        quote: Quote,
    },
    /// An account's execution, told once.
    Fill(Fill),
}

/// What became of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// What it was.
    pub class: Class,
    /// What was odd about it; empty for a refused message, whose class says it all.
    pub oddities: Oddities,
}

/// Turns one feed's messages into events.
///
/// A codec does no I/O, reads no clock, logs nothing, and in steady state (all symbols and accounts
/// seen, no problem) allocates nothing. It never panics, whatever the bytes.
pub trait Codec: Send {
    /// Reads one message and appends its events, one for each row that is used, to `events`.
    ///
    /// `receive_time` is in nanoseconds since the Unix epoch and passed on as it is. A refused
    /// message appends nothing and changes nothing. Costs a pass over the message.
    fn decode(&mut self, message: &[u8], receive_time: i64, events: &mut Vec<Event>) -> Decoded;

    /// A new session of the venue begins, as when a recording is played again from its start: ids
    /// may start lower, so what was held to tell late and repeated messages is forgotten. Quotes
    /// are kept, and ticks rise on. A reconnect to the same venue is *not* a new session.
    fn new_session(&mut self);

    /// What the latest refused, unknown or error message said, for a log; at most a thousand
    /// bytes, put together when asked for. `None` before the first.
    fn last_problem(&self) -> Option<String>;
}

/// What a codec needs to know beside the messages.
#[derive(Clone, Debug)]
pub struct Context {
    /// Where instruments get their ids.
    pub instruments: Arc<Instruments>,
    /// Where accounts get their ids.
    pub accounts: Arc<Accounts>,
    /// The feed, which owns the instruments that it is first to give.
    pub feed: FeedId,
    /// Whose fills the feed carries, if the messages do not say.
    pub account: Option<String>,
}

/// A venue whose messages can be read.
#[derive(Clone, Copy, Debug)]
pub struct Venue {
    /// The name, as configurations and instruments spell it.
    pub name: &'static str,
    /// What it is, in a few words.
    pub about: &'static str,
    make: fn(&'static str, Context) -> Box<dyn Codec>,
    answers: fn(&serde_json::Value) -> Vec<Answer>,
    spoken: Option<Spoken>,
}

impl Venue {
    /// A codec for one feed of this venue.
    #[must_use]
    pub fn codec(&self, context: Context) -> Box<dyn Codec> {
        (self.make)(self.name, context)
    }

    /// How it is spoken to over a live connection; `None` where it cannot be.
    #[must_use]
    pub fn dialect(&self) -> Option<Box<dyn Dialect>> {
        self.spoken.map(|spoken| (spoken.make)())
    }

    /// The channels that are asked for if nothing else is said.
    #[must_use]
    pub fn channels(&self) -> &'static [&'static str] {
        self.spoken.map_or(&[], |spoken| spoken.channels)
    }

    /// The venue's own side of its dialect; `None` where there is none.
    #[must_use]
    pub fn desk(&self) -> Option<Desk> {
        self.spoken.map(|spoken| spoken.desk)
    }

    /// What a message that the codec called [`Control::Ack`](super::Control::Ack) or
    /// [`Control::Error`](super::Control::Error) answers, in the order in which it says so; nothing
    /// if it answers no request that is known here, or is not JSON. Reads the message anew.
    #[must_use]
    pub fn answers(&self, message: &[u8]) -> Vec<Answer> {
        let message = serde_json::from_slice(message);
        message.map_or_else(|_| Vec::new(), |message| (self.answers)(&message))
    }
}

/// Every venue.
pub const VENUES: &[Venue] = &[
    Venue {
        name: "binance",
        about: "Binance spot",
        make: binance::spot,
        answers: binance::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Binance),
            desk: desk::BINANCE,
            channels: &["bookTicker", "trade"],
        }),
    },
    Venue {
        name: "binance-usdm",
        about: "Binance USDⓈ-M futures",
        make: binance::futures,
        answers: binance::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Binance),
            desk: desk::BINANCE,
            channels: &["bookTicker", "trade"],
        }),
    },
    Venue {
        name: "binance-cm",
        about: "Binance COIN-M futures",
        make: binance::futures,
        answers: binance::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Binance),
            desk: desk::BINANCE,
            channels: &["bookTicker", "trade"],
        }),
    },
    Venue {
        name: "coinbase",
        about: "Coinbase Exchange",
        make: coinbase::exchange,
        answers: coinbase::exchange_answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Exchange),
            desk: desk::COINBASE,
            channels: &["ticker", "matches"],
        }),
    },
    Venue {
        name: "coinbase-advanced",
        about: "Coinbase Advanced Trade",
        make: coinbase::advanced,
        answers: coinbase::advanced_answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Advanced),
            desk: desk::COINBASE_ADVANCED,
            channels: &["ticker", "market_trades"],
        }),
    },
    Venue {
        name: "kraken",
        about: "Kraken spot",
        make: kraken::codec,
        answers: kraken::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Kraken),
            desk: desk::KRAKEN,
            channels: &["ticker", "trade"],
        }),
    },
    Venue {
        name: "bitstamp",
        about: "Bitstamp",
        make: bitstamp::codec,
        answers: bitstamp::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Bitstamp),
            desk: desk::BITSTAMP,
            channels: &["order_book", "live_trades"],
        }),
    },
    Venue {
        name: "bybit",
        about: "Bybit v5, all categories",
        make: bybit::codec,
        answers: bybit::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Bybit),
            desk: desk::BYBIT,
            channels: &["orderbook.1", "publicTrade"],
        }),
    },
    Venue {
        name: "okx",
        about: "OKX v5",
        make: okx::codec,
        answers: okx::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Okx),
            desk: desk::OKX,
            channels: &["bbo-tbt", "trades"],
        }),
    },
    Venue {
        name: "bitmex",
        about: "BitMEX",
        make: bitmex::codec,
        answers: bitmex::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Bitmex),
            desk: desk::BITMEX,
            channels: &["quote", "trade"],
        }),
    },
    Venue {
        name: "deribit",
        about: "Deribit",
        make: deribit::codec,
        answers: deribit::answers,
        spoken: Some(Spoken {
            make: || Box::new(dialect::Deribit),
            desk: desk::DERIBIT,
            channels: &["quote", "trades.100ms"],
        }),
    },
    Venue {
        name: "fills",
        about: "our own lines of fills",
        make: fills::codec,
        answers: fills::answers,
        spoken: None,
    },
];

/// A codec for a feed of the venue called `venue`; `None` if there is no such venue.
#[must_use]
pub fn codec(venue: &str, context: Context) -> Option<Box<dyn Codec>> {
    find(venue).map(|known| known.codec(context))
}

/// The venue called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Venue> {
    VENUES.iter().find(|known| known.name == name)
}
