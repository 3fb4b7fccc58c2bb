//! The newest state of one instrument.

use super::decimal::Decimal;

/// What is known of an instrument now: both sides, the last trade, and how many ticks led here.
///
/// A quote is always complete: a message that carries one side or one trade is merged into the
/// state held before it is passed on, so keeping only the newest can never mix fields wrongly.
/// `None` means *not known, or withdrawn by the venue*; zero is a value.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Quote {
    /// Ticks of this instrument so far, this one included. Rises by one with every accepted
    /// message and never falls, so `later.tick - earlier.tick - 1` ticks lie between two quotes.
    pub tick: u64,
    /// Best price to sell at.
    pub bid: Option<Decimal>,
    /// Size at the bid.
    pub bid_size: Option<Decimal>,
    /// Best price to buy at.
    pub ask: Option<Decimal>,
    /// Size at the ask.
    pub ask_size: Option<Decimal>,
    /// Price of the last trade.
    pub last: Option<Decimal>,
    /// Size of the last trade.
    pub last_size: Option<Decimal>,
    /// When the venue says the newest message happened, in nanoseconds since the Unix epoch;
    /// `None` if that message bore no time.
    pub venue_time: Option<i64>,
    /// When the newest message was received, in nanoseconds since the Unix epoch, on the
    /// receiver's clock. It may lie *before* `venue_time`: clocks differ.
    pub receive_time: i64,
}
