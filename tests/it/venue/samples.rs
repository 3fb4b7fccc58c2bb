//! Messages of every venue in the shapes that its documents show, and what they mean.
//!
//! A venue is a [`Speaker`]: its samples are what the shared list of cases is run over.

use tidegate::market::{Decimal, Quote};
use tidegate::venue::{Class, Control, Refusal, Unused};

use super::subject::{get, set};

pub(crate) mod binance;
pub(crate) mod bitmex;
mod bitstamp;
pub(crate) mod bybit;
mod coinbase;
mod deribit;
mod kraken;
pub(crate) mod lines;
mod okx;

/// Every venue that has messages here.
pub(crate) const SPEAKERS: &[Speaker] = &[
    binance::SPEAKER,
    coinbase::EXCHANGE,
    coinbase::ADVANCED,
    bybit::SPEAKER,
    okx::SPEAKER,
    bitmex::SPEAKER,
    deribit::SPEAKER,
    lines::SPEAKER,
    kraken::SPEAKER,
    kraken::FIRST,
    bitstamp::SPEAKER,
];

/// What a number in a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Bid,
    BidSize,
    Ask,
    AskSize,
    Last,
    LastSize,
    /// The id by which messages of the stream are ordered, without which they are of no use.
    Order,
    /// The id of a trade, without which the message is of use too.
    Id,
    Time,
}

impl Role {
    pub(crate) const QUOTED: [Self; 6] =
        [Self::Bid, Self::BidSize, Self::Ask, Self::AskSize, Self::Last, Self::LastSize];

    /// What the quote holds in this role.
    pub(crate) fn of(self, quote: &Quote) -> Option<Decimal> {
        match self {
            Self::Bid => quote.bid,
            Self::BidSize => quote.bid_size,
            Self::Ask => quote.ask,
            Self::AskSize => quote.ask_size,
            Self::Last => quote.last,
            Self::LastSize => quote.last_size,
            Self::Order | Self::Id | Self::Time => None,
        }
    }

    pub(crate) fn is_price_or_size(self) -> bool {
        Self::QUOTED.contains(&self)
    }
}

/// What a message carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Both sides, which a message without them is refused for.
    Sides,
    /// One trade.
    Trade,
    /// Sides and the last price, any of which may be left out.
    Ticker,
}

/// What units the times of a message can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    MillisecondsOrMicroseconds,
    Microseconds,
    /// As RFC 3339 has it.
    Text,
}

/// A message that makes one quote. Members are named by paths: see [`get`].
pub(crate) struct Sample {
    pub(crate) venue: &'static str,
    pub(crate) instrument: &'static str,
    pub(crate) message: &'static str,
    /// Each number of use: its member and what it is.
    pub(crate) numbers: &'static [(&'static str, Role)],
    /// When the venue says it happened, in nanoseconds.
    pub(crate) venue_time: Option<i64>,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    /// The member with the symbol, and what stands before the symbol in it.
    pub(crate) symbol: (&'static str, &'static str),
    /// A member of the object that holds the numbers, if they are in one.
    pub(crate) beside: Option<&'static str>,
    /// Members whose values are known and of no use, and values that nobody knows.
    pub(crate) informational: &'static [(&'static str, &'static str)],
}

impl Sample {
    /// The message with its ids `further` on: with 1 and more a later one of the same stream.
    pub(crate) fn numbered(&self, further: u64) -> String {
        let mut message = self.message.to_owned();
        for (member, role) in self.numbers {
            if matches!(role, Role::Order | Role::Id) {
                let written = get(self.message, member);
                let id: u64 = written.trim_matches('"').parse().unwrap();
                let quote = if written.starts_with('"') { "\"" } else { "" };
                message = set(&message, member, &format!("{quote}{}{quote}", id + further));
            }
        }
        message
    }

    /// A message of another symbol.
    pub(crate) fn of(&self, message: &str, symbol: &str) -> String {
        let (member, before) = self.symbol;
        set(message, member, &format!("\"{before}{symbol}\""))
    }

    /// The member in this role.
    pub(crate) fn member(&self, role: Role) -> Option<&'static str> {
        self.numbers.iter().find(|(_, r)| *r == role).map(|(member, _)| *member)
    }

    /// The text of the number in this role.
    pub(crate) fn text(&self, role: Role) -> Option<&'static str> {
        self.member(role).map(|member| get(self.message, member).trim_matches('"'))
    }
}

/// Venues that speak alike, and what they say.
pub(crate) struct Speaker {
    pub(crate) venues: &'static [&'static str],
    pub(crate) samples: &'static [Sample],
    /// Messages that make one fill, each of a venue.
    pub(crate) fills: &'static [(&'static str, &'static str)],
    /// Messages that make neither a quote nor a fill, and are no errors of ours.
    pub(crate) others: &'static [(&'static str, Class)],
    /// Messages that cannot be read.
    pub(crate) refused: &'static [(&'static str, Refusal)],
    /// A message of several trades of one symbol, if there is such a kind.
    pub(crate) batch: Option<Batch>,
}

/// How to write a message of several trades of one symbol.
pub(crate) struct Batch {
    /// What stands before, between and after the rows.
    pub(crate) frame: (&'static str, &'static str, &'static str),
    /// A row, with `ID`, `PRICE` and `SIZE` to be replaced.
    pub(crate) row: &'static str,
    /// Whether rows have an id by which a repeated one is told.
    pub(crate) has_ids: bool,
    /// What a message without rows is.
    pub(crate) empty: Class,
}

impl Batch {
    /// A message of trades: id, price and size of each.
    pub(crate) fn of(&self, trades: &[(u64, String, String)]) -> String {
        let row = |(id, price, size): &(u64, String, String)| {
            let row = self.row.replace("ID", &id.to_string());
            row.replace("PRICE", price).replace("SIZE", size)
        };
        let rows: Vec<String> = trades.iter().map(row).collect();
        format!("{}{}{}", self.frame.0, rows.join(self.frame.1), self.frame.2)
    }
}

/// Every sample of every venue.
pub(crate) fn samples() -> impl Iterator<Item = &'static Sample> {
    SPEAKERS.iter().flat_map(|speaker| speaker.samples)
}

/// The samples of a venue.
pub(crate) fn samples_of(venue: &str) -> Vec<&'static Sample> {
    samples().filter(|sample| sample.venue == venue).collect()
}

/// Every message that makes one fill, with its venue.
pub(crate) fn fills() -> impl Iterator<Item = (&'static str, &'static str)> {
    SPEAKERS.iter().flat_map(|speaker| speaker.fills.iter().copied())
}

const fn unused(unused: Unused) -> Class {
    Class::Unused(unused)
}

const fn control(control: Control) -> Class {
    Class::Control(control)
}
