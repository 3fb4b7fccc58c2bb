//! The quote state of each symbol of a feed, and the rules of order.
//!
//! 1. A tick is counted only here, and only for an accepted message or row.
//! 2. A refused message leaves the book as it was.
//! 3. Within a feed's connection messages count in the order of their arrival, guarded by the
//!    venue's own update id or sequence where there is one: a quote with a lower id than the one
//!    held is late. An equal one is accepted: venues repeat a quote, and a repeated quote is a tick.
//! 4. A trade counts once. Where a stream's ids rise, one that is not above the highest is late or a
//!    duplicate.
//! 5. `last` follows the ids of a stream where they rise. Between streams (each has ids of its own),
//!    and where there are no such ids, the time decides: an older trade is a tick and does not move
//!    `last`. An impossible time is none, and neither wins nor loses.
//! 6. A price that a ticker gives without the id of its trade moves `last` if it is not older; one
//!    without a time gives way to every trade that has been told. If it is the price that is held, it
//!    is taken for the same trade, whose size is kept.

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

    /// The book of a symbol if there is one: what changes a quote that nobody has told makes none.
    #[inline]
    pub(super) fn held(&mut self, symbol: &[u8]) -> Result<Option<&mut Book>, Refusal> {
        match self.by_symbol.get(symbol) {
            Some(&Place::Here(index)) => Ok(Some(&mut self.books[index as usize])),
            Some(&Place::Elsewhere(_)) => Err(Refusal::NotOwner),
            None => Ok(None),
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
            book.trade_ids = [None; STREAMS];
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
    /// The highest of each stream.
    trade_ids: [Option<u64>; STREAMS],
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

/// The last price.
#[derive(Clone, Copy, Debug)]
pub(super) enum Last {
    /// The message says nothing of it.
    Kept,
    /// The venue has withdrawn it.
    Withdrawn,
    /// By a trade.
    Trade(Trade),
}

/// Which of a venue's streams a trade came from: each has ids of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TradeStream {
    Trades = 0,
    Aggregates = 1,
    /// A price told beside a quote, without the id of its trade.
    Ticker = 2,
}

const STREAMS: usize = TradeStream::Ticker as usize + 1;

/// A trade of the market.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trade {
    pub(super) stream: TradeStream,
    /// Its id, where the ids of the stream rise.
    pub(super) id: Option<u64>,
    pub(super) price: Decimal,
    pub(super) size: Option<Decimal>,
    /// When the venue says it happened, if it says so plausibly.
    pub(super) time: Option<i64>,
}

/// What a message or row changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update {
    /// The update id or sequence of the sides, where the venue has one.
    pub(super) id: Option<u64>,
    pub(super) bid: Side,
    pub(super) ask: Side,
    pub(super) last: Last,
}

impl Update {
    /// Both sides, and nothing of a trade.
    #[inline]
    pub(super) fn sides(id: Option<u64>, bid: Side, ask: Side) -> Self {
        Self { id, bid, ask, last: Last::Kept }
    }

    /// A trade, and nothing of the sides.
    #[inline]
    pub(super) fn trade(trade: Trade) -> Self {
        Self { id: None, bid: Side::Kept, ask: Side::Kept, last: Last::Trade(trade) }
    }
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
            trade_ids: [None; STREAMS],
            last_traded: None,
        }
    }

    /// Whose book it is.
    pub(super) fn instrument(&self) -> InstrumentId {
        self.instrument
    }

    /// What is held.
    #[inline]
    pub(super) fn quote(&self) -> &Quote {
        &self.quote
    }

    /// The venue counts its update ids anew.
    pub(super) fn restart(&mut self) {
        self.update_id = None;
    }

    /// Takes an update, and answers the complete quote one tick on. A trade that comes with sides
    /// and has been told before is passed over; one that comes alone is refused.
    #[inline]
    pub(super) fn update(&mut self, update: Update, times: Times) -> Result<&Quote, Refusal> {
        if let (Some(id), Some(held)) = (update.id, self.update_id)
            && id < held
        {
            return Err(Refusal::LateQuote);
        }
        match update.last {
            Last::Kept => {}
            Last::Withdrawn => {
                (self.quote.last, self.quote.last_size, self.last_traded) = (None, None, None);
            }
            Last::Trade(trade) => {
                let alone = update.bid == Side::Kept && update.ask == Side::Kept;
                match self.trade(trade) {
                    Err(refusal) if alone => return Err(refusal),
                    _ => {}
                }
            }
        }
        self.update_id = update.id.or(self.update_id);
        let quote = &mut self.quote;
        take(update.bid, &mut quote.bid, &mut quote.bid_size);
        take(update.ask, &mut quote.ask, &mut quote.ask_size);
        quote.tick += 1;
        quote.venue_time = times.venue;
        quote.receive_time = times.receive;
        Ok(quote)
    }

    #[inline]
    fn trade(&mut self, trade: Trade) -> Result<(), Refusal> {
        if let Some(id) = trade.id {
            let held = &mut self.trade_ids[trade.stream as usize];
            match *held {
                Some(held) if id == held => return Err(Refusal::DuplicateTrade),
                Some(held) if id < held => return Err(Refusal::LateTrade),
                _ => *held = Some(id),
            }
        }
        let passed_over = match (self.last_traded, trade.time) {
            (None, _) => false,
            // Rising ids are the order, whatever the times.
            (Some((stream, _)), _) if stream == trade.stream && trade.id.is_some() => false,
            (Some((_, Some(held))), Some(time)) => time < held,
            (Some((stream, _)), None) => {
                trade.stream == TradeStream::Ticker && stream != TradeStream::Ticker
            }
            (Some((_, None)), Some(_)) => false,
        };
        if passed_over {
            return Ok(());
        }
        let quote = &mut self.quote;
        // A ticker that repeats the price tells nothing new of the trade.
        let same = trade.stream == TradeStream::Ticker && quote.last == Some(trade.price);
        quote.last = Some(trade.price);
        quote.last_size = if same { trade.size.or(quote.last_size) } else { trade.size };
        self.last_traded = Some((trade.stream, trade.time));
        Ok(())
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

    fn trade(stream: TradeStream, id: u64, price: i64, time: Option<i64>) -> Update {
        let price = Decimal::from(price);
        Update::trade(Trade { stream, id: Some(id), price, size: Some(price), time })
    }

    /// A price beside a quote.
    fn ticker(price: i64, time: Option<i64>) -> Update {
        let price = Decimal::from(price);
        let stream = TradeStream::Ticker;
        let last = Last::Trade(Trade { stream, id: None, price, size: None, time });
        Update { last, ..Update::sides(None, Side::At(Decimal::ONE, None), Side::Kept) }
    }

    fn last(book: &mut Book, update: Update) -> (u64, Option<Decimal>) {
        let quote = book.update(update, TIMES).unwrap();
        (quote.tick, quote.last)
    }

    #[test]
    fn a_side_is_kept_withdrawn_or_taken_and_only_what_is_accepted_is_a_tick() {
        let mut book = Book::new(InstrumentId(0));
        let one = Decimal::ONE;
        let mut sides =
            |id, bid, ask| book.update(Update::sides(Some(id), bid, ask), TIMES).copied();
        let quote = sides(5, Side::At(one, Some(one)), Side::Kept).unwrap();
        assert_eq!((quote.tick, quote.bid, quote.ask), (1, Some(one), None));
        let quote = sides(5, Side::Withdrawn, Side::At(one, None)).unwrap();
        assert_eq!((quote.tick, quote.bid, quote.bid_size, quote.ask), (2, None, None, Some(one)));
        assert_eq!(sides(4, Side::At(one, None), Side::Kept), Err(Refusal::LateQuote));
        let quote = sides(6, Side::Kept, Side::Kept).unwrap();
        assert_eq!((quote.tick, quote.bid, quote.receive_time), (3, None, 7));
    }

    #[test]
    fn trades_are_ordered_by_id_in_their_stream_and_by_time_between_streams() {
        use TradeStream::{Aggregates, Trades};
        let mut book = Book::new(InstrumentId(0));
        last(&mut book, trade(Trades, 900, 1, Some(50)));
        // Another id space: 3 is not late. It is older in time, so it does not move the last price.
        assert_eq!(last(&mut book, trade(Aggregates, 3, 2, Some(49))), (2, Some(Decimal::ONE)));
        assert_eq!(last(&mut book, trade(Aggregates, 4, 2, Some(50))), (3, Some(Decimal::TWO)));
        let late = book.update(trade(Aggregates, 3, 9, Some(99)), TIMES);
        assert_eq!(late, Err(Refusal::LateTrade));
        let again = book.update(trade(Aggregates, 4, 9, Some(99)), TIMES);
        assert_eq!(again, Err(Refusal::DuplicateTrade));
        // Without a time nothing speaks against it.
        assert_eq!(last(&mut book, trade(Trades, 901, 1, None)), (4, Some(Decimal::ONE)));
        // The order of ids is the order, whatever the times.
        last(&mut book, trade(Trades, 902, 5, Some(70)));
        assert_eq!(last(&mut book, trade(Trades, 903, 6, Some(60))), (6, Some(Decimal::from(6))));
    }

    #[test]
    fn a_tickers_price_moves_the_last_one_unless_it_is_older_or_has_no_time() {
        let mut book = Book::new(InstrumentId(0));
        assert_eq!(last(&mut book, ticker(1, None)), (1, Some(Decimal::ONE)));
        assert_eq!(last(&mut book, ticker(2, None)), (2, Some(Decimal::TWO)));
        last(&mut book, trade(TradeStream::Trades, 1, 3, Some(50)));
        assert_eq!(last(&mut book, ticker(4, None)), (4, Some(Decimal::from(3))));
        assert_eq!(last(&mut book, ticker(4, Some(49))), (5, Some(Decimal::from(3))));
        let quote = book.update(ticker(3, Some(51)), TIMES).unwrap();
        assert_eq!(quote.last_size, Some(Decimal::from(3)), "the same trade, and its size");
        let quote = book.update(ticker(4, Some(52)), TIMES).unwrap();
        assert_eq!((quote.last, quote.last_size), (Some(Decimal::from(4)), None));
        // A trade that is told late, after the ticker that had it, is no news.
        assert_eq!(
            last(&mut book, trade(TradeStream::Trades, 2, 9, Some(51))),
            (8, Some(Decimal::from(4)))
        );
    }

    #[test]
    fn a_trade_told_before_does_not_keep_the_sides_back_that_come_with_it() {
        let mut book = Book::new(InstrumentId(0));
        last(&mut book, trade(TradeStream::Trades, 7, 3, Some(50)));
        let Last::Trade(again) = trade(TradeStream::Trades, 7, 3, Some(50)).last else { panic!() };
        let both = Update {
            last: Last::Trade(again),
            ..Update::sides(Some(1), Side::At(Decimal::ONE, None), Side::Kept)
        };
        let quote = book.update(both, TIMES).unwrap();
        assert_eq!(
            (quote.tick, quote.bid, quote.last),
            (2, Some(Decimal::ONE), Some(Decimal::from(3)))
        );
        let gone = Update { last: Last::Withdrawn, ..both };
        assert_eq!(last(&mut book, gone), (3, None));
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
