//! From the members of a message to events.

use std::fmt::Write as _;
use std::sync::Arc;

use super::message::{Letters, Member, Message, set};
use super::names::{self, Name};
use crate::market::fill::Side as FillSide;
use crate::market::{Accounts, Decimal, Fill, Volume};
use crate::venue::book::{Books, Side, Times, Trade, TradeStream};
use crate::venue::class::{Class, Control, Oddities, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context, Decoded, Event, MAX_MESSAGE_BYTES};
use crate::venue::history::History;
use crate::venue::json::{Fault, Kind, Scanner, Span};
use crate::venue::read::{self, Reading, Time, TimeUnits};

/// A codec for a spot feed. Its connection may have asked for microseconds.
pub(in crate::venue) fn spot(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Binance::new(venue, TimeUnits::MillisecondsOrMicroseconds, context))
}

/// A codec for a futures feed of either margin.
pub(in crate::venue) fn futures(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Binance::new(venue, TimeUnits::Milliseconds, context))
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
    problem: Option<Problem>,
    /// The start of the message that was the problem.
    excerpt: Vec<u8>,
}

/// The latest problem, put into words only when somebody asks.
struct Problem {
    what: &'static str,
    member: &'static str,
    /// The excerpt is not the whole message.
    cut: bool,
}

/// Why a message is refused, and the member that is to blame.
struct Trouble {
    reason: Refusal,
    member: &'static str,
}

/// Names the member that a reading is of.
trait Of<T> {
    fn of(self, member: &'static str) -> Result<T, Trouble>;
}

impl<T> Of<T> for Result<T, Refusal> {
    #[inline]
    fn of(self, member: &'static str) -> Result<T, Trouble> {
        self.map_err(|reason| Trouble { reason, member })
    }
}

const BOOK_TICKER: u64 = set(b"eusbBaATE");
const TRADE: u64 = set(b"eETstpqbamMX");
const AGG_TRADE: u64 = set(b"eETsapqflmMX");

impl Codec for Binance {
    fn decode(&mut self, message: &[u8], receive_time: i64, events: &mut Vec<Event>) -> Decoded {
        self.oddities = Oddities::default();
        let class = match self.read(message) {
            Ok(()) => match self.dispatch(message, receive_time, events) {
                Ok(class) => class,
                Err(trouble) => self.refuse(&trouble, message),
            },
            Err(fault) => self.unreadable(fault, message),
        };
        Decoded { class, oddities: self.oddities }
    }

    fn new_session(&mut self) {
        self.books.new_session();
        self.history.new_session();
    }

    fn last_problem(&self) -> Option<String> {
        let Problem { what, member, cut } = self.problem.as_ref()?;
        let mut text = (*what).to_owned();
        if !member.is_empty() {
            let _ = write!(text, " (member \"{member}\")");
        }
        let more = if *cut { "…" } else { "" };
        let _ = write!(text, " in {}{more}", self.excerpt.escape_ascii());
        Some(text)
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
            problem: None,
            excerpt: Vec::new(),
        }
    }

    #[inline]
    fn read(&mut self, message: &[u8]) -> Result<(), Fault> {
        if message.len() > MAX_MESSAGE_BYTES {
            return Err(Fault::TooLarge);
        }
        if message.trim_ascii_start().first() == Some(&b'[') {
            self.message.read_array(message)
        } else {
            self.message.read(message)
        }
    }

    #[inline]
    fn dispatch(
        &mut self,
        message: &[u8],
        receive_time: i64,
        events: &mut Vec<Event>,
    ) -> Result<Class, Trouble> {
        if self.message.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        if let Some(class) = self.message.unread {
            return Ok(class);
        }
        let name = self.name(message)?;
        // The venue sends no quotes or fills in arrays: better told than read in part.
        if self.message.array && !matches!(name, Some(Name::Other(_))) {
            self.tell("unknown array", "", message);
            return Ok(Class::Unknown);
        }
        match name {
            Some(Name::BookTicker) => self.book_ticker(message, receive_time, events),
            Some(Name::Trade) => self.trade(TradeStream::Trades, message, receive_time, events),
            Some(Name::AggTrade) => {
                self.trade(TradeStream::Aggregates, message, receive_time, events)
            }
            Some(Name::ExecutionReport) => self.fill(false, message, receive_time, events),
            Some(Name::OrderTradeUpdate) => self.fill(true, message, receive_time, events),
            Some(Name::Other(class)) => {
                if class == Class::Control(Control::Error) {
                    self.tell("the venue reports an error", "", message);
                }
                Ok(class)
            }
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
    fn book_ticker(
        &mut self,
        message: &[u8],
        receive_time: i64,
        events: &mut Vec<Event>,
    ) -> Result<Class, Trouble> {
        let event = &self.message.event;
        let scratch = &mut self.scratch;
        let update_id = read::id(event.get(b'u'), message, scratch).of("u")?;
        let mut absent = false;
        let bid = side(event, [b'b', b'B'], ["b", "B"], message, scratch, &mut absent)?;
        let ask = side(event, [b'a', b'A'], ["a", "A"], message, scratch, &mut absent)?;
        if bid == Side::Kept && ask == Side::Kept {
            return Err(Trouble { reason: Refusal::MissingField, member: "b" });
        }
        let odd = self.message.unknown_member || event.any_beside(BOOK_TICKER);
        let (times, _) = self.times(receive_time, message);
        if absent {
            self.oddities.insert(Oddity::Absent);
        }
        if odd {
            self.oddities.insert(Oddity::UnknownField);
        }
        let symbol = symbol(&self.message.event, message, &mut self.scratch)?;
        let book = self.books.book(symbol).of("s")?;
        let instrument = book.instrument();
        let quote = book.sides(update_id, bid, ask, times).of("u")?;
        events.push(Event::Quote { instrument, quote: *quote });
        Ok(Class::Quote)
    }

    #[inline]
    fn trade(
        &mut self,
        stream: TradeStream,
        message: &[u8],
        receive_time: i64,
        events: &mut Vec<Event>,
    ) -> Result<Class, Trouble> {
        let (id, member, known) = match stream {
            TradeStream::Trades => (b't', "t", TRADE),
            TradeStream::Aggregates => (b'a', "a", AGG_TRADE),
        };
        let event = &self.message.event;
        let scratch = &mut self.scratch;
        let id = read::id(event.get(id), message, scratch).of(member)?;
        // A trade without a price says nothing; one without a size still says the price.
        let price = read::decimal(event.get(b'p'), message, scratch);
        let price = price.and_then(Reading::required).of("p")?;
        let size = match read::size(event.get(b'q'), message, scratch).of("q")? {
            Reading::Value(size) => Some(size),
            Reading::Blank => {
                self.oddities.insert(Oddity::Absent);
                None
            }
            Reading::Missing => return Err(Trouble { reason: Refusal::MissingField, member: "q" }),
        };
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
        let (times, time) = self.times(receive_time, message);
        let symbol = symbol(&self.message.event, message, &mut self.scratch)?;
        let book = self.books.book(symbol).of("s")?;
        let instrument = book.instrument();
        let quote = book.trade(Trade { stream, id, price, size, time }, times).of(member)?;
        events.push(Event::Quote { instrument, quote: *quote });
        Ok(Class::Quote)
    }

    /// An order of the account. Only the execution type `TRADE` with a positive last quantity is a
    /// fill. In futures the order's members stand in an object of their own.
    fn fill(
        &mut self,
        nested: bool,
        message: &[u8],
        receive_time: i64,
        events: &mut Vec<Event>,
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
        let (times, _) = self.times(receive_time, message);
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
            receive_time,
        };
        Volume::of(&fill).map_err(|_| Refusal::Overflow).of("L")?;
        self.history.admit(account, instrument, side, trade).of("t")?;
        events.push(Event::Fill(fill));
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
    fn without_event(&mut self, message: &[u8]) -> Class {
        let has =
            |member| self.message.get(member).is_some_and(|span: Span| span.kind != Kind::Null);
        if has(Member::LastUpdateId) {
            return Class::Unused(Unused::Snapshot);
        }
        if has(Member::Error) || has(Member::Code) {
            self.tell("the venue reports an error", "", message);
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
        self.tell("unknown stream or event", "", message);
        Class::Unknown
    }

    /// What is not an object or array: the text of a heartbeat, or not for us.
    #[cold]
    fn unreadable(&mut self, fault: Fault, message: &[u8]) -> Class {
        let text = message.trim_ascii();
        if text.eq_ignore_ascii_case(b"pong") || text.eq_ignore_ascii_case(b"ping") {
            return Class::Control(Control::Heartbeat);
        }
        if fault == Fault::TooLarge {
            return self.refuse(&Trouble { reason: Refusal::TooLarge, member: "" }, message);
        }
        let mut scanner = Scanner::new(message);
        let scalar = scanner.value().is_ok_and(|_| scanner.finish().is_ok());
        let reason = if scalar { Refusal::WrongType } else { Refusal::Malformed };
        self.refuse(&Trouble { reason, member: "" }, message)
    }

    #[cold]
    fn refuse(&mut self, trouble: &Trouble, message: &[u8]) -> Class {
        self.oddities = Oddities::default();
        self.tell(trouble.reason.label(), trouble.member, message);
        Class::Refused(trouble.reason)
    }

    #[cold]
    fn tell(&mut self, what: &'static str, member: &'static str, message: &[u8]) {
        const MOST: usize = 160;
        self.excerpt.clear();
        self.excerpt.extend_from_slice(&message[..message.len().min(MOST)]);
        self.problem = Some(Problem { what, member, cut: message.len() > MOST });
    }
}

/// One side of a quote. A side that the message leaves out whole is kept; half a side is an error.
#[inline]
fn side(
    event: &Letters,
    [price, size]: [u8; 2],
    names: [&'static str; 2],
    message: &[u8],
    scratch: &mut Vec<u8>,
    absent: &mut bool,
) -> Result<Side, Trouble> {
    let price: Reading<Decimal> = read::decimal(event.get(price), message, scratch).of(names[0])?;
    let size = read::size(event.get(size), message, scratch).of(names[1])?;
    match (price, size) {
        (Reading::Value(price), Reading::Value(size)) => Ok(Side::At(price, Some(size))),
        (Reading::Missing, Reading::Missing) => Ok(Side::Kept),
        (Reading::Missing, _) => Err(Trouble { reason: Refusal::MissingField, member: names[0] }),
        (_, Reading::Missing) => Err(Trouble { reason: Refusal::MissingField, member: names[1] }),
        (Reading::Value(price), Reading::Blank) => {
            *absent = true;
            Ok(Side::At(price, None))
        }
        // A size at no price is no offer.
        (Reading::Blank, _) => {
            *absent = true;
            Ok(Side::Withdrawn)
        }
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
    match read::time(event.get(letter), units, message, scratch) {
        Time::At(time) => Some(time),
        Time::Missing => None,
        Time::Implausible => {
            oddities.insert(Oddity::ImplausibleTime);
            None
        }
    }
}
