//! From the members of a message to events.

use super::message::{self as place, Message, ROW};
use super::names::{self, Channel};
use crate::market::{InstrumentId, Quote};
use crate::venue::book::{Books, Last, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Kind, Span};
use crate::venue::read::{self, TimeUnits::Milliseconds};
use crate::venue::row::Row;
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a feed of any kind of instrument.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Okx {
        message: Message::new(),
        books: Books::new(venue, context.feed, context.instruments),
        scratch: Vec::new(),
    }))
}

struct Okx {
    message: Message,
    books: Books,
    scratch: Vec<u8>,
}

impl Reader for Okx {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.message.read(message)
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let m = &mut self.message;
        if m.top.duplicate || m.arg.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        if m.top.has(place::EVENT) || !m.top.has(place::ARG) {
            return Ok(control(m, message));
        }
        let span = m.arg.get(place::CHANNEL).ok_or(Refusal::MissingField).of("channel")?;
        if span.kind != Kind::Text {
            let name = read::text(span, message, &mut self.scratch).of("channel")?;
            m.channel = names::channel(name);
        }
        let Some(channel) = m.channel else { return Ok(Class::Unknown) };
        if let Channel::Other(class) = channel {
            return Ok(class);
        }
        match m.top.get(place::DATA).map(|data| data.kind) {
            None | Some(Kind::Null) => {
                return Err(Trouble { reason: Refusal::MissingField, member: "data" });
            }
            Some(Kind::Array) if !m.rows.strange => {}
            Some(_) => return Err(Trouble { reason: Refusal::WrongType, member: "data" }),
        }
        if m.top.unknown || m.arg.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        if matches!(channel, Channel::Trades | Channel::AllTrades) {
            m.rows.sort_by_id(place::ID, message);
        }
        let of = m.arg.get(place::INSTRUMENT);
        let receive = output.receive_time;
        for index in 0..m.rows.len() {
            let members = &m.rows.get(index);
            let mut oddities = output.oddities;
            let scratch = &mut self.scratch;
            let mut row = Row { members, message, scratch, oddities: &mut oddities };
            let result = match channel {
                Channel::Best => best(&mut row, of, &mut self.books, receive),
                Channel::Trades => trade(&mut row, TradeStream::Trades, &mut self.books, receive),
                Channel::AllTrades => {
                    trade(&mut row, TradeStream::Aggregates, &mut self.books, receive)
                }
                _ => ticker(&mut row, &mut self.books, receive),
            };
            output.oddities = oddities;
            output.quote_row(result);
        }
        output.rows(Class::Quote, Class::Unused(Unused::Empty))
    }

    fn new_session(&mut self) {
        self.books.new_session();
    }
}

/// A message that is no data: an event, or an answer.
fn control(m: &Message, message: &[u8]) -> Class {
    let text = |place: u8| m.top.get(place).map(|span: Span| span.of(message));
    if let Some(event) = text(place::EVENT) {
        return names::event(event).map_or(Class::Unknown, Class::Control);
    }
    match (text(place::OP), text(place::CODE)) {
        (Some(b"ping" | b"pong"), _) => Class::Control(Control::Heartbeat),
        (_, Some(b"0")) => Class::Control(Control::Ack),
        (_, Some(_)) => Class::Control(Control::Error),
        _ => Class::Unknown,
    }
}

type Made = Result<(InstrumentId, Quote), Trouble>;

fn ticker(row: &mut Row<'_, ROW>, books: &mut Books, receive: i64) -> Made {
    row.check()?;
    let bid = row.side([place::BID, place::BID_SIZE], ["bidPx", "bidSz"])?;
    let ask = row.side([place::ASK, place::ASK_SIZE], ["askPx", "askSz"])?;
    let time = row.time(place::TIME, Milliseconds);
    let places = [Some(place::LAST), Some(place::LAST_SIZE)];
    let last = row.last(places, ["last", "lastSz"], time)?;
    if bid == Side::Kept && ask == Side::Kept && matches!(last, Last::Kept) {
        return Err(Trouble { reason: Refusal::MissingField, member: "last" });
    }
    let book = books.book(row.text(place::SYMBOL, "instId")?).of("instId")?;
    let instrument = book.instrument();
    let update = Update { id: None, bid, ask, last };
    Ok((instrument, *book.update(update, Times { venue: time, receive }).of("last")?))
}

fn best(row: &mut Row<'_, ROW>, of: Option<Span>, books: &mut Books, receive: i64) -> Made {
    row.check()?;
    let sequence = row.optional_id(place::SEQUENCE, "seqId")?;
    let (bid, ask) = (row.best(place::BIDS, "bids")?, row.best(place::ASKS, "asks")?);
    if bid == Side::Kept && ask == Side::Kept {
        return Err(Trouble { reason: Refusal::MissingField, member: "bids" });
    }
    let time = row.time(place::TIME, Milliseconds);
    let symbol = of.ok_or(Refusal::MissingField).of("instId")?;
    let symbol = read::text(symbol, row.message, row.scratch).of("instId")?;
    let book = books.book(symbol).of("instId")?;
    let instrument = book.instrument();
    let update = Update::sides(sequence, bid, ask);
    Ok((instrument, *book.update(update, Times { venue: time, receive }).of("seqId")?))
}

fn trade(row: &mut Row<'_, ROW>, stream: TradeStream, books: &mut Books, receive: i64) -> Made {
    row.check()?;
    let id = Some(row.id(place::ID, "tradeId")?);
    let price = row.price(place::PRICE, "px")?;
    let size = row.size(place::SIZE, "sz")?;
    let time = row.time(place::TIME, Milliseconds);
    if let Some(side) = row.members.get(place::SIDE)
        && !matches!(side.of(row.message), b"buy" | b"sell")
    {
        row.oddities.insert(Oddity::UnknownValue);
    }
    let book = books.book(row.text(place::SYMBOL, "instId")?).of("instId")?;
    let instrument = book.instrument();
    let update = Update::trade(Trade { stream, id, price, size, time });
    Ok((instrument, *book.update(update, Times { venue: time, receive }).of("tradeId")?))
}
