//! From the members of a message to events.

use super::message::{self as place, Message, ROW};
use super::names::{self, Execution, Table};
use crate::market::{Fill, InstrumentId, Quote};
use crate::venue::book::{Books, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Kind};
use crate::venue::read::{self, TimeUnits::Text};
use crate::venue::recents::Recents;
use crate::venue::report::{self, Reports};
use crate::venue::row::Row;
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a feed of tables.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Bitmex {
        message: Message::new(),
        books: Books::new(venue, context.feed, context.instruments),
        trades: Recents::new(usize::MAX),
        reports: Reports::new(context.accounts, context.account),
        scratch: Vec::new(),
    }))
}

struct Bitmex {
    message: Message,
    books: Books,
    trades: Recents<InstrumentId>,
    reports: Reports,
    scratch: Vec<u8>,
}

impl Reader for Bitmex {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.message.read(message)
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let Self { message: m, books, trades, reports, scratch } = self;
        if m.top.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        let Some(span) = m.top.get(place::TABLE) else { return Ok(control(m)) };
        if span.kind != Kind::Text {
            let name = read::text(span, message, scratch).of("table")?;
            m.table = names::table(name);
        }
        let Some(table) = m.table else { return Ok(Class::Unknown) };
        if let Table::Other(class) = table {
            return Ok(class);
        }
        let update = match m.top.get(place::ACTION).map(|action| action.of(message)) {
            Some(b"partial" | b"insert") => false,
            Some(b"update") => true,
            // Nothing is ever taken back from these tables.
            Some(_) => return Ok(Class::Unknown),
            None => return Err(Trouble { reason: Refusal::MissingField, member: "action" }),
        };
        match m.top.get(place::DATA).map(|data| data.kind) {
            None | Some(Kind::Null) => {
                return Err(Trouble { reason: Refusal::MissingField, member: "data" });
            }
            Some(Kind::Array) if !m.rows.strange => {}
            Some(_) => return Err(Trouble { reason: Refusal::WrongType, member: "data" }),
        }
        if m.top.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        let receive = output.receive_time;
        let mut unused = Unused::Empty;
        for index in 0..m.rows.len() {
            let members = &m.rows.get(index);
            let mut oddities = output.oddities;
            let mut row = Row { members, message, scratch, oddities: &mut oddities };
            match table {
                Table::Quotes => {
                    let result = quote(&mut row, update, books, receive);
                    output.oddities = oddities;
                    output.quote_row(result);
                }
                Table::Trades => {
                    let result = trade(&mut row, books, trades, receive);
                    output.oddities = oddities;
                    output.quote_row(result);
                }
                _ => {
                    let result = fill(&mut row, books, reports, receive);
                    output.oddities = oddities;
                    match result {
                        Ok(Err(other)) => unused = other,
                        Ok(Ok(fill)) => output.fill_row(Ok(fill)),
                        Err(trouble) => output.fill_row(Err(trouble)),
                    }
                }
            }
        }
        let made = if table == Table::Executions { Class::Fill } else { Class::Quote };
        output.rows(made, Class::Unused(unused))
    }

    fn new_session(&mut self) {
        self.books.new_session();
        self.trades.new_session();
        self.reports.new_session();
    }
}

/// A message that is no table: a welcome, or an answer.
fn control(m: &Message) -> Class {
    if m.top.has(place::ERROR) {
        Class::Control(Control::Error)
    } else if m.top.has(place::SUCCESS) || m.top.has(place::INFO) {
        Class::Control(Control::Ack)
    } else {
        Class::Unknown
    }
}

type Made = Result<(InstrumentId, Quote), Trouble>;

fn quote(row: &mut Row<'_, ROW>, update: bool, books: &mut Books, receive: i64) -> Made {
    const BID: [u8; 2] = [place::BID, place::BID_SIZE];
    const ASK: [u8; 2] = [place::ASK, place::ASK_SIZE];
    const BID_NAMES: [&str; 2] = ["bidPrice", "bidSize"];
    const ASK_NAMES: [&str; 2] = ["askPrice", "askSize"];
    row.check()?;
    let time = row.time(place::TIME, Text);
    let symbol = row.text(place::SYMBOL, "symbol")?;
    let held = if update { books.held(symbol).of("symbol")? } else { None };
    let (bid, ask) = match &held {
        Some(book) => {
            let held = book.quote();
            let bid = row.change(BID, BID_NAMES, [held.bid, held.bid_size])?;
            (bid, row.change(ASK, ASK_NAMES, [held.ask, held.ask_size])?)
        }
        None if update => {
            return Err(Trouble { reason: Refusal::NoSnapshot, member: "action" });
        }
        None => (row.side(BID, BID_NAMES)?, row.side(ASK, ASK_NAMES)?),
    };
    if bid == Side::Kept && ask == Side::Kept {
        return Err(Trouble { reason: Refusal::MissingField, member: "bidPrice" });
    }
    let book = match held {
        Some(book) => book,
        None => books.book(row.text(place::SYMBOL, "symbol")?).of("symbol")?,
    };
    let instrument = book.instrument();
    let times = Times { venue: time, receive };
    Ok((instrument, *book.update(Update::sides(None, bid, ask), times).of("symbol")?))
}

fn trade(
    row: &mut Row<'_, ROW>,
    books: &mut Books,
    trades: &mut Recents<InstrumentId>,
    receive: i64,
) -> Made {
    row.check()?;
    let price = row.price(place::PRICE, "price")?;
    let size = row.size(place::SIZE, "size")?;
    let time = row.time(place::TIME, Text);
    if let Some(side) = row.members.get(place::SIDE)
        && !matches!(side.of(row.message), b"Buy" | b"Sell" | b"" | b"null")
    {
        row.oddities.insert(Oddity::UnknownValue);
    }
    let id = row.word(place::MATCH, "trdMatchID")?.filter(|id| !is_nobodys(id));
    let id = id.map(|id| trades.id(id));
    let book = books.book(row.text(place::SYMBOL, "symbol")?).of("symbol")?;
    let instrument = book.instrument();
    if let Some(id) = id
        && trades.admit(instrument, id) == Ok(false)
    {
        return Err(Trouble { reason: Refusal::DuplicateTrade, member: "trdMatchID" });
    }
    let trade = Trade { stream: TradeStream::Trades, id: None, price, size, time };
    let times = Times { venue: time, receive };
    Ok((instrument, *book.update(Update::trade(trade), times).of("trdMatchID")?))
}

/// The id of zeros that index prices have.
fn is_nobodys(id: &[u8]) -> bool {
    id.len() == 36 && id.iter().all(|byte| matches!(byte, b'0' | b'-'))
}

/// A row of the account's executions: a fill, or what else it is.
fn fill(
    row: &mut Row<'_, ROW>,
    books: &mut Books,
    reports: &mut Reports,
    receive_time: i64,
) -> Result<Result<Fill, Unused>, Trouble> {
    row.check()?;
    let kind = names::execution(row.text(place::KIND, "execType")?);
    match kind {
        Execution::Order => return Ok(Err(Unused::Order)),
        Execution::Unknown => {
            row.oddities.insert(Oddity::UnknownValue);
            return Ok(Err(Unused::Order));
        }
        Execution::Calculated => return Ok(Err(Unused::Calculated)),
        Execution::Trade => {}
    }
    let quantity = row.quantity(place::LAST_SIZE, "lastQty")?;
    if quantity.is_zero() {
        return Ok(Err(Unused::Order));
    }
    let price = row.price(place::LAST_PRICE, "lastPx")?;
    let side = report::side(row.text(place::SIDE, "side")?).of("side")?;
    let venue_time = row.time(place::TRANSACTED, Text).or_else(|| row.time(place::TIME, Text));
    let account = reports.account(row.word(place::ACCOUNT, "account")?)?;
    let instrument = books.instrument(row.text(place::SYMBOL, "symbol")?).of("symbol")?;
    let fill = Fill { account, instrument, side, price, quantity, venue_time, receive_time };
    let missing = Trouble { reason: Refusal::MissingField, member: "execID" };
    let id = row.word(place::EXECUTION, "execID")?.ok_or(missing)?;
    reports.admit(&fill, id, "execID")?;
    Ok(Ok(fill))
}
