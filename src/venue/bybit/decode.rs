//! From the members of a message to events.

use super::message::{
    self as place, ACCOUNT, ASK, ASK_SIZE, ASKS, BID, BID_SIZE, BIDS, CS, Message, ROW, TS,
};
use super::names::{Execution, Topic, execution};
use crate::market::{Fill, InstrumentId};
use crate::venue::book::{Books, Last, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddities, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Kind};
use crate::venue::members::Members;
use crate::venue::read::TimeUnits::Milliseconds;
use crate::venue::recents::Recents;
use crate::venue::report::{self, Reports};
use crate::venue::row::{self, Pair, Row};
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a public or private feed of any category.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Bybit {
        message: Message::new(),
        books: Books::new(venue, context.feed, context.instruments),
        states: States::default(),
        trades: Recents::new(usize::MAX),
        reports: Reports::new(context.accounts, context.account),
        scratch: Vec::new(),
    }))
}

struct Bybit {
    message: Message,
    books: Books,
    states: States,
    trades: Recents<InstrumentId>,
    reports: Reports,
    scratch: Vec<u8>,
}

/// What is known of the streams of each instrument, by its number.
#[derive(Default)]
struct States(Vec<State>);

#[derive(Clone, Copy, Default)]
struct State {
    /// The ticker's snapshot has come.
    ticker: bool,
    /// Update id and sequence of the top of the book, once its snapshot has come.
    best: Option<(u64, Option<u64>)>,
}

impl States {
    #[inline]
    fn of(&mut self, instrument: InstrumentId) -> &mut State {
        let index = instrument.index();
        if self.0.len() <= index {
            self.0.resize(index + 1, State::default());
        }
        &mut self.0[index]
    }
}

const BID_PAIR: Pair<u8> = [BID, BID_SIZE];
const ASK_PAIR: Pair<u8> = [ASK, ASK_SIZE];
const BID_NAMES: Pair<&str> = ["bid1Price", "bid1Size"];
const ASK_NAMES: Pair<&str> = ["ask1Price", "ask1Size"];

impl Reader for Bybit {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.message.read(message)
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let top = &self.message.top;
        if top.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        let Some(topic) = top.get(place::TOPIC) else { return Ok(self.control(message)) };
        if topic.kind == Kind::Escaped {
            let name = crate::venue::read::text(topic, message, &mut self.scratch).of("topic")?;
            self.message.topic = super::names::topic(name);
        } else if topic.kind != Kind::Text {
            return Err(Trouble { reason: Refusal::WrongType, member: "topic" });
        }
        if let Some(Topic::Other(class)) = self.message.topic {
            return Ok(class);
        }
        let Some(topic) = self.message.topic else { return Ok(Class::Unknown) };
        if self.message.rows.strange {
            return Err(Trouble { reason: Refusal::WrongType, member: "data" });
        }
        match topic {
            Topic::Tickers => self.ticker(message, output),
            Topic::Best => self.best(message, output),
            Topic::Trades => self.trades(message, output),
            Topic::Executions => self.executions(message, output),
            Topic::Other(class) => Ok(class),
        }
    }

    fn new_session(&mut self) {
        self.books.new_session();
        self.states.0.clear();
        self.trades.new_session();
        self.reports.new_session();
    }
}

impl Bybit {
    /// Whether the message tells only what has changed, by its type.
    fn is_delta(&self, message: &[u8], oddities: &mut Oddities) -> bool {
        let kind = self.message.top.get(place::TYPE).map_or(&b""[..], |span| span.of(message));
        if kind != b"delta" && kind != b"snapshot" {
            oddities.insert(Oddity::UnknownValue);
        }
        kind == b"delta"
    }

    /// The only row of the data, whose envelope may hold more than is known.
    fn only(&self, oddities: &mut Oddities) -> Result<Members<ROW>, Trouble> {
        if self.message.top.unknown {
            oddities.insert(Oddity::UnknownField);
        }
        match self.message.rows.len() {
            1 => Ok(self.message.rows.get(0)),
            _ => Err(Trouble { reason: Refusal::MissingField, member: "data" }),
        }
    }

    #[inline]
    fn ticker(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let delta = self.is_delta(message, &mut output.oddities);
        let members = &self.only(&mut output.oddities)?;
        let Self { message: m, books, states, scratch, .. } = self;
        let oddities = &mut output.oddities;
        let mut top = Row { members: &m.top, message, scratch, oddities };
        let sequence = top.optional_id(CS, "cs")?;
        let time = top.time(TS, Milliseconds);
        let mut row = Row { members, message, scratch, oddities };
        row.check()?;
        let last = row.last([Some(place::LAST), None], ["lastPrice", ""], time)?;
        let symbol = row.text(place::SYMBOL, "symbol")?;
        let book = if delta { books.held(symbol).of("symbol")? } else { None };
        if delta {
            let known = book.as_ref().is_some_and(|book| states.of(book.instrument()).ticker);
            if !known {
                return Err(Trouble { reason: Refusal::NoSnapshot, member: "type" });
            }
        }
        let (bid, ask) = match &book {
            Some(book) => {
                let held = book.quote();
                let bid = row.change(BID_PAIR, BID_NAMES, [held.bid, held.bid_size])?;
                (bid, row.change(ASK_PAIR, ASK_NAMES, [held.ask, held.ask_size])?)
            }
            None => (row.side(BID_PAIR, BID_NAMES)?, row.side(ASK_PAIR, ASK_NAMES)?),
        };
        if bid == Side::Kept && ask == Side::Kept && matches!(last, Last::Kept) {
            // A mark price, open interest, or the like.
            return Ok(Class::Unused(Unused::Ticker));
        }
        let book = match book {
            Some(book) => book,
            None => books.book(row.text(place::SYMBOL, "symbol")?).of("symbol")?,
        };
        let instrument = book.instrument();
        let times = Times { venue: time, receive: output.receive_time };
        let quote = book.update(Update { id: sequence, bid, ask, last }, times).of("cs")?;
        states.of(instrument).ticker = true;
        output.quote(instrument, quote);
        Ok(Class::Quote)
    }

    /// The top of the book.
    #[inline]
    fn best(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let delta = self.is_delta(message, &mut output.oddities);
        let members = &self.only(&mut output.oddities)?;
        let Self { message: m, books, states, scratch, .. } = self;
        let oddities = &mut output.oddities;
        let time = Row { members: &m.top, message, scratch, oddities }.time(TS, Milliseconds);
        let mut row = Row { members, message, scratch, oddities };
        row.check()?;
        let update = row.id(place::UPDATE, "u")?;
        let sequence = row.optional_id(place::SEQUENCE, "seq")?;
        let symbol = row.text(place::SYMBOL, "s")?;
        let held = books.held(symbol).of("s")?;
        let before = held.as_ref().and_then(|book| states.of(book.instrument()).best);
        if delta && before.is_none() {
            return Err(Trouble { reason: Refusal::NoSnapshot, member: "type" });
        }
        let (bid, ask) = match &held {
            Some(book) if delta => {
                let (bid, ask) = (book.quote().bid, book.quote().ask);
                (changed(&mut row, BIDS, "b", bid)?, changed(&mut row, ASKS, "a", ask)?)
            }
            _ => (row.best(BIDS, "b")?, row.best(ASKS, "a")?),
        };
        if bid == Side::Kept && ask == Side::Kept {
            return Err(Trouble { reason: Refusal::MissingField, member: "b" });
        }
        // The service has started anew, and counts anew.
        let restarted = update == 1 && !delta;
        match before {
            Some((held, _)) if update < held && !restarted => {
                return Err(Trouble { reason: Refusal::LateQuote, member: "u" });
            }
            Some(held) if held == (update, sequence) && !delta => {
                return Ok(Class::Unused(Unused::Repeat));
            }
            _ => {}
        }
        let book = match held {
            Some(book) => book,
            None => books.book(row.text(place::SYMBOL, "s")?).of("s")?,
        };
        if restarted {
            book.restart();
        }
        let instrument = book.instrument();
        let times = Times { venue: time, receive: output.receive_time };
        let quote = book.update(Update::sides(sequence, bid, ask), times).of("seq")?;
        states.of(instrument).best = Some((update, sequence));
        output.quote(instrument, quote);
        Ok(Class::Quote)
    }

    fn trades(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let Self { message: m, books, trades, scratch, .. } = self;
        if m.top.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        if m.top.get(place::DATA).is_none_or(|data| data.kind == Kind::Null) {
            return Err(Trouble { reason: Refusal::MissingField, member: "data" });
        }
        let receive = output.receive_time;
        for index in 0..m.rows.len() {
            let members = &m.rows.get(index);
            let mut oddities = output.oddities;
            let mut row = Row { members, message, scratch, oddities: &mut oddities };
            let result = trade(&mut row, books, trades, receive);
            output.oddities = oddities;
            output.quote_row(result);
        }
        output.rows(Class::Quote, Class::Unused(Unused::Empty))
    }

    fn executions(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let Self { message: m, books, reports, scratch, .. } = self;
        if m.top.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        if m.top.get(place::DATA).is_none_or(|data| data.kind == Kind::Null) {
            return Err(Trouble { reason: Refusal::MissingField, member: "data" });
        }
        let mut unused = Unused::Empty;
        for index in 0..m.rows.len() {
            let members = &m.rows.get(index);
            let mut oddities = output.oddities;
            let mut row = Row { members, message, scratch, oddities: &mut oddities };
            let fill = fill(&mut row, &m.top, books, reports, output.receive_time);
            output.oddities = oddities;
            match fill {
                Ok(Err(other)) => unused = other,
                Ok(Ok(fill)) => output.fill_row(Ok(fill)),
                Err(trouble) => output.fill_row(Err(trouble)),
            }
        }
        output.rows(Class::Fill, Class::Unused(unused))
    }

    /// A message without a topic: an answer or a heartbeat.
    fn control(&self, message: &[u8]) -> Class {
        let top = &self.message.top;
        let is = |place, word: &[u8]| top.get(place).is_some_and(|span| span.of(message) == word);
        if is(place::OP, b"pong") || is(place::OP, b"ping") || is(place::RET_MSG, b"pong") {
            return Class::Control(Control::Heartbeat);
        }
        let code = top.get(place::RET_CODE).is_some_and(|span| span.of(message) != b"0");
        if is(place::SUCCESS, b"false") || code {
            return Class::Control(Control::Error);
        }
        let command = is(place::TYPE, b"COMMAND_RESP") || is(place::TYPE, b"AUTH_RESP");
        if top.has(place::SUCCESS) || top.has(place::RET_CODE) || command {
            return Class::Control(Control::Ack);
        }
        Class::Unknown
    }
}

/// What a side of the book becomes by the levels that have changed: a level of no size is gone.
fn changed(
    row: &mut Row<'_, ROW>,
    place: u8,
    name: &'static str,
    held: Option<crate::market::Decimal>,
) -> Result<Side, Trouble> {
    let Some(levels) = row.members.get(place).filter(|levels| levels.kind == Kind::Array) else {
        return row.best(place, name);
    };
    let mut side = Side::Kept;
    row.each_level(levels, name, |row, _, spans| {
        match row.level(spans, name)? {
            Side::At(price, Some(size)) if size.is_zero() => {
                let now = match side {
                    Side::At(price, _) => Some(price),
                    Side::Kept => held,
                    Side::Withdrawn => None,
                };
                if now == Some(price) {
                    side = Side::Withdrawn;
                }
            }
            level => side = level,
        }
        Ok(())
    })?;
    Ok(side)
}

fn trade(
    row: &mut Row<'_, ROW>,
    books: &mut Books,
    trades: &mut Recents<InstrumentId>,
    receive: i64,
) -> Result<(InstrumentId, crate::market::Quote), Trouble> {
    row.check()?;
    let price = row.price(place::PRICE, "p")?;
    let size = row.size(place::SIZE, "v")?;
    let time = row.time(place::TIME, Milliseconds);
    if let Some(side) = row.members.get(place::SIDE)
        && !matches!(side.of(row.message), b"Buy" | b"Sell")
    {
        row.oddities.insert(Oddity::UnknownValue);
    }
    let id = row.word(place::ID, "i")?.map(|id| trades.id(id));
    let book = books.book(row.text(place::SYMBOL, "s")?).of("s")?;
    let instrument = book.instrument();
    if let Some(id) = id
        && trades.admit(instrument, id) == Ok(false)
    {
        return Err(Trouble { reason: Refusal::DuplicateTrade, member: "i" });
    }
    let trade = Trade { stream: TradeStream::Trades, id: None, price, size, time };
    let times = Times { venue: time, receive };
    Ok((instrument, *book.update(Update::trade(trade), times).of("i")?))
}

/// A row of the account's executions: a fill, or what else it is.
fn fill<const N: usize>(
    row: &mut Row<'_, ROW>,
    top: &Members<N>,
    books: &mut Books,
    reports: &mut Reports,
    receive_time: i64,
) -> Result<Result<Fill, Unused>, Trouble> {
    row.check()?;
    let kind = match row.members.get(place::EXECUTION) {
        // The fast stream tells trades only.
        None => Execution::Trade,
        Some(_) => execution(row.text(place::EXECUTION, "execType")?),
    };
    if kind == Execution::Unknown {
        row.oddities.insert(Oddity::UnknownValue);
        return Ok(Err(Unused::Order));
    }
    let quantity = row.quantity(place::SIZE, "execQty")?;
    if quantity.is_zero() {
        return Ok(Err(Unused::Order));
    }
    if kind == Execution::Calculated {
        return Ok(Err(Unused::Calculated));
    }
    let price = row.price(place::PRICE, "execPrice")?;
    let side = report::side(row.text(place::SIDE, "side")?).of("side")?;
    let venue_time = row.time(place::TIME, Milliseconds);
    let account = match row::word(row.members.get(place::OWNER), row.message, row.scratch) {
        Ok(Some(name)) => reports.account(Some(name))?,
        Ok(None) => {
            let named = row::word(top.get(ACCOUNT), row.message, row.scratch).of("account")?;
            reports.account(named)?
        }
        Err(reason) => return Err(Trouble { reason, member: "account" }),
    };
    let symbol = row.text(place::SYMBOL, "symbol")?;
    let instrument = books.instrument(symbol).of("symbol")?;
    let fill = Fill { account, instrument, side, price, quantity, venue_time, receive_time };
    let missing = Trouble { reason: Refusal::MissingField, member: "execId" };
    let id = row.word(place::ID, "execId")?.ok_or(missing)?;
    reports.admit(&fill, id, "execId")?;
    Ok(Ok(fill))
}
