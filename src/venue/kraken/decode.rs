//! From the members of a message to events.

use super::names::{self, Channel};
use super::scan::{
    ASK, ASK_SIZE, BID, BID_SIZE, CHANNEL, DATA, ERROR, EVENT, Found, LAST, METHOD, ORDER_TYPE,
    PRICE, ROW, SIDE, SIZE, STATUS, SUCCESS, SYMBOL, TIME, TRADE_ID,
};
use crate::venue::book::{Books, Last, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Span};
use crate::venue::members::Members;
use crate::venue::read::{self, Reading, TimeUnits};
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a feed of Kraken spot.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Kraken {
        books: Books::new(venue, context.feed, context.instruments),
        found: Found::new(),
        scratch: Vec::new(),
        symbol: Vec::new(),
    }))
}

struct Kraken {
    books: Books,
    found: Found,
    scratch: Vec<u8>,
    /// The symbol by its name here, if the message has another.
    symbol: Vec<u8>,
}

impl Reader for Kraken {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.found.scan(message)
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        if self.found.array {
            return self.array(message, output);
        }
        let top = &self.found.top;
        if top.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        let Some(span) = top.get(CHANNEL) else { return self.without_channel(message) };
        let name = read::text(span, message, &mut self.scratch).of("channel")?;
        let channel = names::channel(name);
        if let Channel::Other(class) = channel {
            return Ok(class);
        }
        if top.get(DATA).is_none() {
            return Err(Trouble { reason: Refusal::MissingField, member: "data" });
        }
        if top.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        if channel == Channel::Trade {
            self.found.rows.sort_by_id(TRADE_ID, message);
        }
        for index in 0..self.found.rows.len() {
            let row = self.found.rows.get(index);
            let result = match channel {
                Channel::Ticker => self.ticker(&row, row.get(SYMBOL), message, output),
                _ => self.trade(&row, row.get(SYMBOL), true, message, output),
            };
            output.row(result);
        }
        output.rows(Class::Quote, Class::Unused(Unused::Ticker))
    }

    fn new_session(&mut self) {
        self.books.new_session();
    }
}

impl Kraken {
    /// Data of the first interface.
    #[inline]
    fn array(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let [name, symbol] = match (self.found.elements, self.found.tail) {
            (4, [name, symbol, _]) | (5, [_, name, symbol]) => [name, symbol],
            // Of the account: rows, name, sequence.
            (3, _) => return Ok(names::of_account(self.found.second.of(message))),
            _ => return Ok(Class::Unknown),
        };
        let channel = match read::text(name, message, &mut self.scratch) {
            Ok(name) => names::channel(name),
            Err(_) => return Ok(Class::Unknown),
        };
        match channel {
            Channel::Other(class) => return Ok(class),
            // Only order books come in two parts.
            _ if self.found.elements != 4 => return Ok(Class::Unknown),
            _ => {}
        }
        for index in 0..self.found.rows.len() {
            let row = self.found.rows.get(index);
            let result = match channel {
                Channel::Ticker => self.ticker(&row, Some(symbol), message, output),
                _ => self.trade(&row, Some(symbol), false, message, output),
            };
            output.row(result);
        }
        output.rows(Class::Quote, Class::Unused(Unused::Ticker))
    }

    /// An event of the first interface, or an answer of the second.
    fn without_channel(&mut self, message: &[u8]) -> Result<Class, Trouble> {
        let top = &self.found.top;
        let is = |place, value: &[u8]| top.get(place).is_some_and(|span| span.of(message) == value);
        if let Some(span) = top.get(EVENT) {
            let refused = is(STATUS, b"error");
            let name = read::text(span, message, &mut self.scratch).of("event")?;
            return Ok(names::event(name, refused));
        }
        let refused = is(SUCCESS, b"false");
        if let Some(span) = top.get(METHOD) {
            let name = read::text(span, message, &mut self.scratch).of("method")?;
            return Ok(names::method(name, refused));
        }
        let complains = refused || top.get(ERROR).is_some();
        Ok(if complains { Class::Control(Control::Error) } else { Class::Unknown })
    }

    #[inline]
    fn ticker(
        &mut self,
        row: &Members<ROW>,
        symbol: Option<Span>,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), Trouble> {
        let scratch = &mut self.scratch;
        let mut absent = false;
        let bid = [row.get(BID), row.get(BID_SIZE)];
        let bid = read::side(bid, ["bid", "bid_qty"], message, scratch, &mut absent)?;
        let ask = [row.get(ASK), row.get(ASK_SIZE)];
        let ask = read::side(ask, ["ask", "ask_qty"], message, scratch, &mut absent)?;
        let time = row.get(TIME);
        let time = read::time_noted(time, TimeUnits::Text, message, scratch, &mut output.oddities);
        let size = read::size(row.get(SIZE), message, scratch).of("last_qty")?;
        absent |= size == Reading::Blank;
        let last = match read::decimal(row.get(LAST), message, scratch).of("last")? {
            Reading::Missing => Last::Kept,
            Reading::Blank => {
                absent = true;
                Last::Withdrawn
            }
            Reading::Value(price) => {
                let stream = TradeStream::Ticker;
                Last::Trade(Trade { stream, id: None, price, size: size.value(), time })
            }
        };
        if bid == Side::Kept && ask == Side::Kept && matches!(last, Last::Kept) {
            return Err(Trouble { reason: Refusal::MissingField, member: "bid" });
        }
        if absent {
            output.oddities.insert(Oddity::Absent);
        }
        self.apply(row, symbol, Update { id: None, bid, ask, last }, time, message, output)
    }

    /// A trade; in the second interface it has an id.
    #[inline]
    fn trade(
        &mut self,
        row: &Members<ROW>,
        symbol: Option<Span>,
        second: bool,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), Trouble> {
        let scratch = &mut self.scratch;
        let id = match second {
            true => Some(read::id(row.get(TRADE_ID), message, scratch).of("trade_id")?),
            false => None,
        };
        let members = [row.get(PRICE), row.get(SIZE)];
        let oddities = &mut output.oddities;
        let trade = read::trade(members, ["price", "qty"], message, scratch, oddities)?;
        let units = if second { TimeUnits::Text } else { TimeUnits::Seconds };
        let time = read::time_noted(row.get(TIME), units, message, scratch, oddities);
        let strange = |place, known: &[&[u8]]| {
            row.get(place).is_some_and(|span| !known.contains(&span.of(message)))
        };
        if strange(SIDE, &[b"b", b"s", b"buy", b"sell"])
            || strange(ORDER_TYPE, &[b"l", b"m", b"limit", b"market"])
        {
            oddities.insert(Oddity::UnknownValue);
        }
        let trade = Trade { id, time, ..trade };
        self.apply(row, symbol, Update::trade(trade), time, message, output)
    }

    #[inline]
    fn apply(
        &mut self,
        row: &Members<ROW>,
        symbol: Option<Span>,
        update: Update,
        venue: Option<i64>,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), Trouble> {
        if row.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        if row.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        let span = symbol.ok_or(Refusal::MissingField).of("symbol")?;
        let symbol = read::text(span, message, &mut self.scratch).of("symbol")?;
        let symbol = names::canonical(symbol, &mut self.symbol);
        let book = self.books.book(symbol).of("symbol")?;
        let instrument = book.instrument();
        let times = Times { venue, receive: output.receive_time };
        let quote = book.update(update, times).of("trade_id")?;
        output.quote(instrument, quote);
        Ok(())
    }
}
