//! From the members of a message to events.

use std::sync::Arc;

use super::message::{Letters, Member, Message, set};
use super::names::{self, Name};
use crate::market::fill::Side as FillSide;
use crate::market::{Accounts, Fill, Volume};
use crate::venue::book::{Books, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddities, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::history::History;
use crate::venue::json::{Fault, Kind, Span};
use crate::venue::read::{self, Reading, TimeUnits};
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a spot feed. Its connection may have asked for microseconds.
pub(in crate::venue) fn spot(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Binance::new(venue, TimeUnits::MillisecondsOrMicroseconds, context)))
}

/// A codec for a futures feed of either margin.
pub(in crate::venue) fn futures(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Binance::new(venue, TimeUnits::Milliseconds, context)))
}

struct Binance {
    units: TimeUnits,
    books: Books,
    history: History,
    accounts: Arc<Accounts>,
    account: Option<String>,
    message: Message,
    oddities: Oddities,
    scratch: Vec<u8>,
}

const BOOK_TICKER: u64 = set(b"eusbBaATE");
const TRADE: u64 = set(b"eETstpqbamMX");
const AGG_TRADE: u64 = set(b"eETsapqflmMX");

impl Reader for Binance {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        if message.trim_ascii_start().first() == Some(&b'[') {
            self.message.read_array(message)
        } else {
            self.message.read(message)
        }
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        self.oddities = Oddities::default();
        let class = self.dispatch(message, output)?;
        output.oddities = self.oddities;
        Ok(class)
    }

    fn new_session(&mut self) {
        self.books.new_session();
        self.history.new_session();
    }
}

impl Binance {
    fn new(venue: &'static str, units: TimeUnits, context: Context) -> Self {
        Self {
            units,
            books: Books::new(venue, context.feed, context.instruments),
            history: History::default(),
            accounts: context.accounts,
            account: context.account,
            message: Message::new(),
            oddities: Oddities::default(),
            scratch: Vec::new(),
        }
    }

    #[inline]
    fn dispatch(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        if self.message.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        if let Some(class) = self.message.unread {
            return Ok(class);
        }
        let name = self.name(message)?;
        // The venue sends no quotes or fills in arrays: better told than read in part.
        if self.message.array && !matches!(name, Some(Name::Other(_))) {
            return Ok(Class::Unknown);
        }
        match name {
            Some(Name::BookTicker) => self.book_ticker(message, output),
            Some(Name::Trade) => self.trade(TradeStream::Trades, message, output),
            Some(Name::AggTrade) => self.trade(TradeStream::Aggregates, message, output),
            Some(Name::ExecutionReport) => self.fill(false, message, output),
            Some(Name::OrderTradeUpdate) => self.fill(true, message, output),
            Some(Name::Other(class)) => Ok(class),
            None => Ok(self.without_event(message)),
        }
    }

    /// What the message carries: by its event's name, else by its stream's, else by its shape.
    #[inline]
    fn name(&mut self, message: &[u8]) -> Result<Option<Name>, Trouble> {
        if let Some(span) = self.message.event.get(b'e') {
            let name = read::text(span, message, &mut self.scratch).of("e")?;
            return Ok(names::event(name));
        }
        if let Some(span) = self.message.get(Member::Stream) {
            let name = read::text(span, message, &mut self.scratch).of("stream")?;
            if let Some(name) = names::stream(name) {
                return Ok(Some(name));
            }
        }
        let has = |letter| self.message.event.get(letter).is_some();
        let quoted = (has(b'b') || has(b'a')) && (has(b's') || has(b'u'));
        Ok(quoted.then_some(Name::BookTicker))
    }

    #[inline]
    fn book_ticker(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let event = &self.message.event;
        let scratch = &mut self.scratch;
        let update_id = read::id(event.get(b'u'), message, scratch).of("u")?;
        let mut absent = false;
        let pair = |price, size| [event.get(price), event.get(size)];
        let bid = read::side(pair(b'b', b'B'), ["b", "B"], message, scratch, &mut absent)?;
        let ask = read::side(pair(b'a', b'A'), ["a", "A"], message, scratch, &mut absent)?;
        if bid == Side::Kept && ask == Side::Kept {
            return Err(Trouble { reason: Refusal::MissingField, member: "b" });
        }
        let odd = self.message.unknown_member || event.any_beside(BOOK_TICKER);
        let (times, _) = self.times(output.receive_time, message);
        if absent {
            self.oddities.insert(Oddity::Absent);
        }
        if odd {
            self.oddities.insert(Oddity::UnknownField);
        }
        let symbol = symbol(&self.message.event, message, &mut self.scratch)?;
        let book = self.books.book(symbol).of("s")?;
        let instrument = book.instrument();
        let quote = book.update(Update::sides(Some(update_id), bid, ask), times).of("u")?;
        output.quote(instrument, quote);
        Ok(Class::Quote)
    }

    #[inline]
    fn trade(
        &mut self,
        stream: TradeStream,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<Class, Trouble> {
        let (id, member, known) = match stream {
            TradeStream::Aggregates => (b'a', "a", AGG_TRADE),
            _ => (b't', "t", TRADE),
        };
        let event = &self.message.event;
        let scratch = &mut self.scratch;
        let id = read::id(event.get(id), message, scratch).of(member)?;
        let members = [event.get(b'p'), event.get(b'q')];
        let trade = read::trade(members, ["p", "q"], message, scratch, &mut self.oddities)?;
        if self.message.unknown_member || event.any_beside(known) {
            self.oddities.insert(Oddity::UnknownField);
        }
        let strange = |letter: u8, expected: &dyn Fn(Span) -> bool| {
            event.get(letter).is_some_and(|span| !expected(span))
        };
        if strange(b'm', &|span| span.kind == Kind::Bool)
            || strange(b'M', &|span| span.kind == Kind::Bool)
            || strange(b'X', &|span| names::is_trade_kind(span.of(message)))
        {
            self.oddities.insert(Oddity::UnknownValue);
        }
        let (times, time) = self.times(output.receive_time, message);
        let symbol = symbol(&self.message.event, message, &mut self.scratch)?;
        let book = self.books.book(symbol).of("s")?;
        let instrument = book.instrument();
        let trade = Trade { stream, id: Some(id), time, ..trade };
        let quote = book.update(Update::trade(trade), times).of(member)?;
        output.quote(instrument, quote);
        Ok(Class::Quote)
    }

    /// An order of the account. Only the execution type `TRADE` with a positive last quantity is a
    /// fill. In futures the order's members stand in an object of their own.
    fn fill(
        &mut self,
        nested: bool,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<Class, Trouble> {
        let order = if nested { &self.message.order } else { &self.message.event };
        let scratch = &mut self.scratch;
        let missing = |member| Trouble { reason: Refusal::MissingField, member };
        let span = order.get(b'x').ok_or(missing("x"))?;
        let execution = read::text(span, message, scratch).of("x")?;
        let trade = execution == b"TRADE";
        let calculated = execution == b"CALCULATED";
        if !names::is_execution_type(execution) {
            self.oddities.insert(Oddity::UnknownValue);
        }
        if !trade && !calculated {
            return Ok(Class::Unused(Unused::Order));
        }
        let quantity = read::size(order.get(b'l'), message, scratch);
        let quantity = quantity.and_then(Reading::required).of("l")?;
        if quantity.is_zero() {
            return Ok(Class::Unused(Unused::Order));
        }
        if calculated {
            return Ok(Class::Unused(Unused::Calculated));
        }
        let price = read::decimal(order.get(b'L'), message, scratch);
        let price = price.and_then(Reading::required).of("L")?;
        let trade = read::id(order.get(b't'), message, scratch).of("t")?;
        let span = order.get(b'S').ok_or(missing("S"))?;
        let side = match read::text(span, message, scratch).of("S")? {
            b"BUY" => FillSide::Buy,
            b"SELL" => FillSide::Sell,
            _ => return Err(Trouble { reason: Refusal::BadSide, member: "S" }),
        };
        let executed = time(order, b'T', self.units, message, scratch, &mut self.oddities);
        let (times, _) = self.times(output.receive_time, message);
        let account = self.account(message)?;
        let order = if nested { &self.message.order } else { &self.message.event };
        let symbol = symbol(order, message, &mut self.scratch)?;
        let instrument = self.books.instrument(symbol).of("s")?;
        let fill = Fill {
            account,
            instrument,
            side,
            price,
            quantity,
            venue_time: executed.or(times.venue),
            receive_time: output.receive_time,
        };
        Volume::of(&fill).map_err(|_| Refusal::Overflow).of("L")?;
        self.history.admit(account, instrument, side, trade).of("t")?;
        output.fill(fill);
        Ok(Class::Fill)
    }

    /// Whose fill: the message's own word, else the feed's configuration.
    fn account(&mut self, message: &[u8]) -> Result<crate::market::AccountId, Trouble> {
        use crate::market::fill::AccountError;
        let named = match self.message.get(Member::Account) {
            None | Some(Span { kind: Kind::Null, .. }) => None,
            Some(span) => {
                let name = read::text(span, message, &mut self.scratch).of("account")?;
                let name = std::str::from_utf8(name).map_err(|_| Refusal::BadAccount);
                Some(name.of("account")?)
            }
        };
        let name = named.filter(|name| !name.is_empty()).or(self.account.as_deref());
        let name = name.ok_or(Refusal::NoAccount).of("account")?;
        let refusal = |error| match error {
            AccountError::Full { .. } => Refusal::AccountsFull,
            AccountError::Malformed => Refusal::BadAccount,
        };
        self.accounts.intern(name).map_err(refusal).of("account")
    }

    /// The message's times, and the time of the transaction itself (`T`). A transaction's time is
    /// nearer to the market than the time of the event that tells it (`E`), which is read only where
    /// there is no other.
    #[inline]
    fn times(&mut self, receive: i64, message: &[u8]) -> (Times, Option<i64>) {
        let (event, oddities) = (&self.message.event, &mut self.oddities);
        let transaction = time(event, b'T', self.units, message, &mut self.scratch, oddities);
        let venue = transaction
            .or_else(|| time(event, b'E', self.units, message, &mut self.scratch, oddities));
        (Times { venue, receive }, transaction)
    }

    /// A message that is no event: an answer, a heartbeat, a snapshot, or unknown.
    fn without_event(&self, message: &[u8]) -> Class {
        let has =
            |member| self.message.get(member).is_some_and(|span: Span| span.kind != Kind::Null);
        if has(Member::LastUpdateId) {
            return Class::Unused(Unused::Snapshot);
        }
        if has(Member::Error) || has(Member::Code) {
            return Class::Control(Control::Error);
        }
        if self.message.get(Member::Result).is_some() || has(Member::Status) {
            return Class::Control(Control::Ack);
        }
        let word = |member| self.message.get(member).map_or(&[][..], |span| span.of(message));
        let beat = |member| matches!(word(member), b"ping" | b"pong" | b"heartbeat");
        if self.message.get(Member::Beat).is_some() || beat(Member::Word) || beat(Member::Payload) {
            return Class::Control(Control::Heartbeat);
        }
        Class::Unknown
    }
}

#[inline]
fn symbol<'a>(
    event: &Letters,
    message: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], Trouble> {
    let span = event.get(b's').ok_or(Refusal::MissingField).of("s")?;
    read::text(span, message, scratch).of("s")
}

#[inline]
fn time(
    event: &Letters,
    letter: u8,
    units: TimeUnits,
    message: &[u8],
    scratch: &mut Vec<u8>,
    oddities: &mut Oddities,
) -> Option<i64> {
    read::time_noted(event.get(letter), units, message, scratch, oddities)
}
