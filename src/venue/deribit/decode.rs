//! From the members of a message to events.

use super::message::{self as place, Message, ROW};
use super::names::{self, Channel};
use crate::market::{InstrumentId, Quote};
use crate::venue::book::{Books, Last, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Kind};
use crate::venue::read::{self, TimeUnits::Milliseconds};
use crate::venue::row::Row;
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a feed of notifications.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Deribit {
        message: Message::new(),
        books: Books::new(venue, context.feed, context.instruments),
        scratch: Vec::new(),
    }))
}

struct Deribit {
    message: Message,
    books: Books,
    scratch: Vec<u8>,
}

impl Reader for Deribit {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.message.read(message)
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let Self { message: m, books, scratch } = self;
        if m.top.duplicate || m.params.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        let method = m.top.get(place::METHOD).map(|method| method.of(message));
        if method != Some(b"subscription") {
            return Ok(control(m, method));
        }
        let span = m.params.get(place::CHANNEL).ok_or(Refusal::MissingField).of("channel")?;
        if span.kind != Kind::Text {
            m.channel = names::channel(read::text(span, message, scratch).of("channel")?);
        }
        let Some(channel) = m.channel else { return Ok(Class::Unknown) };
        if let Channel::Other(class) = channel {
            return Ok(class);
        }
        match m.params.get(place::DATA).map(|data| data.kind) {
            None | Some(Kind::Null) => {
                return Err(Trouble { reason: Refusal::MissingField, member: "data" });
            }
            Some(Kind::Array | Kind::Object) if !m.rows.strange => {}
            Some(_) => return Err(Trouble { reason: Refusal::WrongType, member: "data" }),
        }
        if m.top.unknown || m.params.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        if channel == Channel::Trades {
            m.rows.sort_by_id(place::SEQUENCE, message);
        }
        for index in 0..m.rows.len() {
            let members = &m.rows.get(index);
            let mut oddities = output.oddities;
            let mut row = Row { members, message, scratch, oddities: &mut oddities };
            let result = match channel {
                Channel::Trades => trade(&mut row, books, output.receive_time),
                _ => quote(&mut row, books, output.receive_time),
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

/// A message that is no notification of a channel: an answer, or a heartbeat.
fn control(m: &Message, method: Option<&[u8]>) -> Class {
    match method {
        Some(b"heartbeat") => Class::Control(Control::Heartbeat),
        Some(_) => Class::Unknown,
        None if m.top.has(place::ERROR) => Class::Control(Control::Error),
        None if m.top.get(place::RESULT).is_some() => Class::Control(Control::Ack),
        None => Class::Unknown,
    }
}

type Made = Result<(InstrumentId, Quote), Trouble>;

fn quote(row: &mut Row<'_, ROW>, books: &mut Books, receive: i64) -> Made {
    row.check()?;
    let names = ["best_bid_price", "best_bid_amount"];
    let bid = row.side([place::BID, place::BID_SIZE], names)?;
    let names = ["best_ask_price", "best_ask_amount"];
    let ask = row.side([place::ASK, place::ASK_SIZE], names)?;
    let time = row.time(place::TIME, Milliseconds);
    let last = row.last([Some(place::LAST), None], ["last_price", ""], time)?;
    if bid == Side::Kept && ask == Side::Kept && matches!(last, Last::Kept) {
        return Err(Trouble { reason: Refusal::MissingField, member: "best_bid_price" });
    }
    let symbol = row.text(place::SYMBOL, "instrument_name")?;
    let book = books.book(symbol).of("instrument_name")?;
    let instrument = book.instrument();
    let update = Update { id: None, bid, ask, last };
    Ok((instrument, *book.update(update, Times { venue: time, receive }).of("timestamp")?))
}

fn trade(row: &mut Row<'_, ROW>, books: &mut Books, receive: i64) -> Made {
    row.check()?;
    let id = Some(row.id(place::SEQUENCE, "trade_seq")?);
    let price = row.price(place::PRICE, "price")?;
    let size = row.size(place::SIZE, "amount")?;
    let time = row.time(place::TIME, Milliseconds);
    if let Some(side) = row.members.get(place::SIDE)
        && !matches!(side.of(row.message), b"buy" | b"sell" | b"zero")
    {
        row.oddities.insert(Oddity::UnknownValue);
    }
    let symbol = row.text(place::SYMBOL, "instrument_name")?;
    let book = books.book(symbol).of("instrument_name")?;
    let instrument = book.instrument();
    let stream = TradeStream::Trades;
    let update = Update::trade(Trade { stream, id, price, size, time });
    Ok((instrument, *book.update(update, Times { venue: time, receive }).of("trade_seq")?))
}
