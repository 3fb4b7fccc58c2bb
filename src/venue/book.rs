//! The quote state of each symbol of a feed, and the rules of order.
//!
//! 1. A tick is counted only here, and only for an accepted message.
//! 2. A refused message leaves the book as it was.
//! 3. A quote with a lower update id than the one held is late. An equal one is accepted: venues
//!    repeat a quote, and a repeated quote is a tick.
//! 4. A trade with a lower id than the one held *of the same stream* is late. `trade` and
//!    `aggTrade` have id spaces of their own, so between the two the trade's time decides: an older
//!    one is accepted as a tick and does not move `last`. An impossible time decides nothing.

use std::sync::Arc;

use foldhash::HashMap;

use super::class::Refusal;
use crate::market::instrument::InternError;
use crate::market::{Decimal, FeedId, InstrumentId, Instruments, Quote};

/// The books of one feed, by symbol.
pub(super) struct Books {
    venue: &'static str,
    feed: FeedId,
    instruments: Arc<Instruments>,
    by_symbol: HashMap<Box<[u8]>, Place>,
    /// Instruments that have had fills here and no quote.
    unclaimed: HashMap<Box<[u8]>, InstrumentId>,
    books: Vec<Book>,
}

/// Where the book of a symbol is. Bounded by the instruments that may be known: a symbol that got
/// no id is not remembered.
#[derive(Clone, Copy)]
enum Place {
    Here(u32),
    /// Another feed owns the instrument, which never changes.
    Elsewhere(InstrumentId),
}

impl Books {
    /// No books yet.
    pub(super) fn new(venue: &'static str, feed: FeedId, instruments: Arc<Instruments>) -> Self {
        Self {
            venue,
            feed,
            instruments,
            by_symbol: HashMap::default(),
            unclaimed: HashMap::default(),
            books: Vec::new(),
        }
    }

    /// The book of a symbol, made if it is new: a hash and no allocation if it is not.
    #[inline]
    pub(super) fn book(&mut self, symbol: &[u8]) -> Result<&mut Book, Refusal> {
        let place = match self.by_symbol.get(symbol) {
            Some(&place) => place,
            None => self.open(symbol)?,
        };
        match place {
            Place::Here(index) => Ok(&mut self.books[index as usize]),
            Place::Elsewhere(_) => Err(Refusal::NotOwner),
        }
    }

    /// The instrument of a symbol, without a claim to its quotes: an account's fills may come over
    /// another connection than the market's prices. A hash or two and no allocation if it is known.
    pub(super) fn instrument(&mut self, symbol: &[u8]) -> Result<InstrumentId, Refusal> {
        match self.by_symbol.get(symbol) {
            Some(&Place::Here(index)) => return Ok(self.books[index as usize].instrument),
            Some(&Place::Elsewhere(instrument)) => return Ok(instrument),
            None => {}
        }
        if let Some(&instrument) = self.unclaimed.get(symbol) {
            return Ok(instrument);
        }
        let name = std::str::from_utf8(symbol).map_err(|_| Refusal::BadSymbol)?;
        let instrument = self.instruments.resolve(self.venue, name).map_err(refusal)?;
        self.unclaimed.insert(symbol.into(), instrument);
        Ok(instrument)
    }

    /// Forgets what tells late messages; quotes and ticks stay.
    pub(super) fn new_session(&mut self) {
        for book in &mut self.books {
            book.update_id = None;
            book.trade_ids = [None; 2];
            book.last_traded = None;
        }
    }

    #[cold]
    fn open(&mut self, symbol: &[u8]) -> Result<Place, Refusal> {
        let name = std::str::from_utf8(symbol).map_err(|_| Refusal::BadSymbol)?;
        let place = match self.instruments.intern(self.venue, name, self.feed) {
            Ok(instrument) => {
                let index =
                    u32::try_from(self.books.len()).map_err(|_| Refusal::InstrumentsFull)?;
                self.books.push(Book::new(instrument));
                Place::Here(index)
            }
            Err(InternError::Owned { .. }) => {
                Place::Elsewhere(self.instruments.resolve(self.venue, name).map_err(refusal)?)
            }
            Err(error) => return Err(refusal(error)),
        };
        self.by_symbol.insert(symbol.into(), place);
        Ok(place)
    }
}

fn refusal(error: InternError) -> Refusal {
    match error {
        InternError::Owned { .. } => Refusal::NotOwner,
        InternError::Full { .. } => Refusal::InstrumentsFull,
        InternError::Malformed => Refusal::BadSymbol,
    }
}

/// What is held of one symbol.
pub(super) struct Book {
    instrument: InstrumentId,
    quote: Quote,
    update_id: Option<u64>,
    trade_ids: [Option<u64>; 2],
    /// The stream and, if it had one, the time of the trade that `last` is from.
    last_traded: Option<(TradeStream, Option<i64>)>,
}

/// One side of a quote.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Side {
    /// The message says nothing of it.
    Kept,
    /// The venue has withdrawn it.
    Withdrawn,
    /// Price, and size if it is known.
    At(Decimal, Option<Decimal>),
}

/// Which of a venue's streams a trade came from: each has ids of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TradeStream {
    Trades = 0,
    Aggregates = 1,
}

/// A trade of the market.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trade {
    pub(super) stream: TradeStream,
    pub(super) id: u64,
    pub(super) price: Decimal,
    pub(super) size: Option<Decimal>,
    /// When the venue says it happened, if it says so plausibly.
    pub(super) time: Option<i64>,
}

/// When a message happened and when it came, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) venue: Option<i64>,
    pub(super) receive: i64,
}

impl Book {
    fn new(instrument: InstrumentId) -> Self {
        Self {
            instrument,
            quote: Quote::default(),
            update_id: None,
            trade_ids: [None; 2],
            last_traded: None,
        }
    }

    /// Whose book it is.
    pub(super) fn instrument(&self) -> InstrumentId {
        self.instrument
    }

    /// Takes a quote's sides, and answers the complete quote one tick on.
    #[inline]
    pub(super) fn sides(
        &mut self,
        update_id: u64,
        bid: Side,
        ask: Side,
        times: Times,
    ) -> Result<&Quote, Refusal> {
        if self.update_id.is_some_and(|held| update_id < held) {
            return Err(Refusal::LateQuote);
        }
        self.update_id = Some(update_id);
        let quote = &mut self.quote;
        take(bid, &mut quote.bid, &mut quote.bid_size);
        take(ask, &mut quote.ask, &mut quote.ask_size);
        Ok(self.tick(times))
    }

    /// Takes a trade, and answers the complete quote one tick on.
    #[inline]
    pub(super) fn trade(&mut self, trade: Trade, times: Times) -> Result<&Quote, Refusal> {
        let held = &mut self.trade_ids[trade.stream as usize];
        if held.is_some_and(|held| trade.id < held) {
            return Err(Refusal::LateTrade);
        }
        *held = Some(trade.id);
        let older = match (self.last_traded, trade.time) {
            (Some((stream, Some(held))), Some(time)) => stream != trade.stream && time < held,
            _ => false,
        };
        if !older {
            self.last_traded = Some((trade.stream, trade.time));
            self.quote.last = Some(trade.price);
            self.quote.last_size = trade.size;
        }
        Ok(self.tick(times))
    }

    #[inline]
    fn tick(&mut self, times: Times) -> &Quote {
        self.quote.tick += 1;
        self.quote.venue_time = times.venue;
        self.quote.receive_time = times.receive;
        &self.quote
    }
}

#[inline]
fn take(side: Side, price: &mut Option<Decimal>, size: &mut Option<Decimal>) {
    match side {
        Side::Kept => {}
        Side::Withdrawn => (*price, *size) = (None, None),
        Side::At(new_price, new_size) => (*price, *size) = (Some(new_price), new_size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: Times = Times { venue: None, receive: 7 };

    fn trade(stream: TradeStream, id: u64, price: i64, time: Option<i64>) -> Trade {
        Trade { stream, id, price: Decimal::from(price), size: None, time }
    }

    #[test]
    fn a_side_is_kept_withdrawn_or_taken_and_only_what_is_accepted_is_a_tick() {
        let mut book = Book::new(InstrumentId(0));
        let one = Decimal::ONE;
        let quote = book.sides(5, Side::At(one, Some(one)), Side::Kept, TIMES).unwrap();
        assert_eq!((quote.tick, quote.bid, quote.ask), (1, Some(one), None));
        let quote = book.sides(5, Side::Withdrawn, Side::At(one, None), TIMES).unwrap();
        assert_eq!((quote.tick, quote.bid, quote.bid_size, quote.ask), (2, None, None, Some(one)));
        assert_eq!(book.sides(4, Side::At(one, None), Side::Kept, TIMES), Err(Refusal::LateQuote));
        let quote = book.sides(6, Side::Kept, Side::Kept, TIMES).unwrap();
        assert_eq!((quote.tick, quote.bid, quote.receive_time), (3, None, 7));
    }

    #[test]
    fn trades_are_ordered_by_id_in_their_stream_and_by_time_between_streams() {
        use TradeStream::{Aggregates, Trades};
        let mut book = Book::new(InstrumentId(0));
        book.trade(trade(Trades, 900, 1, Some(50)), TIMES).unwrap();
        // Another id space: 3 is not late. It is older in time, so it does not move the last price.
        let quote = book.trade(trade(Aggregates, 3, 2, Some(49)), TIMES).unwrap();
        assert_eq!((quote.tick, quote.last), (2, Some(Decimal::ONE)));
        let quote = book.trade(trade(Aggregates, 4, 2, Some(50)), TIMES).unwrap();
        assert_eq!((quote.tick, quote.last), (3, Some(Decimal::TWO)));
        assert_eq!(book.trade(trade(Aggregates, 3, 9, Some(99)), TIMES), Err(Refusal::LateTrade));
        // Without a time nothing speaks against it.
        let quote = book.trade(trade(Trades, 901, 1, None), TIMES).unwrap();
        assert_eq!((quote.tick, quote.last), (4, Some(Decimal::ONE)));
    }

    #[test]
    fn a_symbol_of_another_feed_is_refused_each_time() {
        let instruments = Arc::new(Instruments::new(2));
        instruments.intern("v", "A", FeedId(1)).unwrap();
        let mut books = Books::new("v", FeedId(0), Arc::clone(&instruments));
        for _ in 0..2 {
            assert_eq!(books.book(b"A").err(), Some(Refusal::NotOwner));
        }
        assert!(books.book("龙".as_bytes()).is_ok());
        assert_eq!(books.book(b"C").err(), Some(Refusal::InstrumentsFull));
        assert_eq!(books.book(b"\xFF").err(), Some(Refusal::BadSymbol));
        assert_eq!(instruments.len(), 2);
    }
}
