//! From the members of a message to events.

use super::names::{self, Content};
use crate::venue::book::{Books, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Oddities, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Kind, Scanner, Span};
use crate::venue::members::{Members, Name, each_member, elements};
use crate::venue::read::{self, Time, TimeUnits};
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a feed of Bitstamp.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Bitstamp {
        books: Books::new(venue, context.feed, context.instruments),
        top: Members::new(),
        data: Members::new(),
        word: None,
        scratch: Vec::new(),
        channel: Vec::new(),
    }))
}

struct Bitstamp {
    books: Books,
    top: Members<TOP>,
    data: Members<DATA_COUNT>,
    /// What a line of 2015 carries.
    word: Option<Content<'static>>,
    scratch: Vec<u8>,
    /// The channel's name, if it was written with escapes.
    channel: Vec<u8>,
}

const EVENT: u8 = 0;
const CHANNEL: u8 = 1;
const DATA: u8 = 2;
const TOP: usize = 3;

const PRICE: u8 = 0;
const PRICE_TEXT: u8 = 1;
const AMOUNT: u8 = 2;
const AMOUNT_TEXT: u8 = 3;
const ID: u8 = 4;
const MICROS: u8 = 5;
const SECONDS: u8 = 6;
const DATE: u8 = 7;
const BIDS: u8 = 8;
const ASKS: u8 = 9;
const TYPE: u8 = 10;
const DATA_COUNT: usize = 11;

fn data_name(key: &[u8]) -> Name {
    Name::Used(match key {
        b"price" => PRICE,
        b"price_str" => PRICE_TEXT,
        b"amount" => AMOUNT,
        b"amount_str" => AMOUNT_TEXT,
        b"id" => ID,
        b"microtimestamp" => MICROS,
        b"timestamp" => SECONDS,
        b"datetime" => DATE,
        b"bids" => BIDS,
        b"asks" => ASKS,
        b"type" | b"order_type" => TYPE,
        b"buy_order_id" | b"sell_order_id" => return Name::Known,
        _ => return Name::Unknown,
    })
}

impl Reader for Bitstamp {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.top.clear();
        self.data.clear();
        self.word = None;
        let mut scanner = Scanner::new(message);
        match scanner.next_byte() {
            b'[' => drop(scanner.value()?),
            b'a'..=b'z' => self.line(&mut scanner, message)?,
            _ => drop(each_member(&mut scanner, message, |scanner, key| {
                let place = match key {
                    b"event" => EVENT,
                    b"channel" => CHANNEL,
                    b"data" => {
                        let span = self.data.object(scanner, message, data_name)?;
                        self.top.put(DATA, span);
                        return Ok(());
                    }
                    // Data alone, as a request for an order book is answered.
                    b"bids" | b"asks" => {
                        return self.data.pass(data_name(key), scanner);
                    }
                    _ => return self.top.pass(Name::Unknown, scanner),
                };
                self.top.pass(Name::Used(place), scanner)
            })?),
        }
        scanner.finish()
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let top = &self.top;
        let content = match self.word {
            Some(content) => content,
            None => {
                if top.duplicate {
                    return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
                }
                let Some(span) = top.get(EVENT) else { return Ok(without_event(&self.data)) };
                let channel = match top.get(CHANNEL) {
                    Some(Span { kind: Kind::Null, .. }) | None => None,
                    Some(span) => Some(read::text(span, message, &mut self.channel).of("channel")?),
                };
                let event = read::text(span, message, &mut self.scratch).of("event")?;
                if channel.is_none() && matches!(event, b"data" | b"trade") {
                    let null = top.get(CHANNEL).is_some();
                    let reason = if null { Refusal::WrongType } else { Refusal::MissingField };
                    return Err(Trouble { reason, member: "channel" });
                }
                names::content(event, channel.unwrap_or_default())
            }
        };
        if let Content::Other(class) = content {
            return Ok(class);
        }
        let time = time(&self.data, message, &mut self.scratch, &mut output.oddities);
        let (update, market, order) = match content {
            Content::Other(class) => return Ok(class),
            Content::Book(market) => {
                let absent = &mut output.oddities;
                let bid = level(self.data.get(BIDS), "bids", message, &mut self.scratch, absent)?;
                let ask = level(self.data.get(ASKS), "asks", message, &mut self.scratch, absent)?;
                if bid == Side::Kept && ask == Side::Kept {
                    return Err(Trouble { reason: Refusal::MissingField, member: "bids" });
                }
                (Update::sides(None, bid, ask), market, "bids")
            }
            Content::Trade(market) => {
                let data = &self.data;
                let scratch = &mut self.scratch;
                let either = |text, number| data.get(text).or_else(|| data.get(number));
                let members = [either(PRICE_TEXT, PRICE), either(AMOUNT_TEXT, AMOUNT)];
                let id = read::id(data.get(ID), message, scratch).of("id")?;
                let names = ["price", "amount"];
                let oddities = &mut output.oddities;
                let trade = read::trade(members, names, message, scratch, oddities)?;
                let side = data.get(TYPE);
                if side.is_some_and(|side| !matches!(side.of(message), b"0" | b"1")) {
                    oddities.insert(Oddity::UnknownValue);
                }
                let stream = TradeStream::Trades;
                (Update::trade(Trade { stream, id: Some(id), time, ..trade }), market, "id")
            }
        };
        if self.data.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        if self.data.unknown || self.top.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        let book = self.books.book(market).of("channel")?;
        let instrument = book.instrument();
        let times = Times { venue: time, receive: output.receive_time };
        let quote = book.update(update, times).of(order)?;
        output.quote(instrument, quote);
        Ok(Class::Quote)
    }

    fn new_session(&mut self) {
        self.books.new_session();
    }
}

impl Bitstamp {
    /// An event's name and its data.
    fn line(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<(), Fault> {
        let line = message.trim_ascii_start();
        let end = line.iter().position(|byte| *byte == b' ').ok_or(Fault::Malformed)?;
        self.word = Some(names::word(&line[..end]).ok_or(Fault::Malformed)?);
        let passed = scanner.pass(&line[..end]);
        debug_assert!(passed, "the scanner stands at the first byte that is not white space");
        if scanner.next_byte() != b'{' {
            return Err(Fault::Malformed);
        }
        self.data.object(scanner, message, data_name).map(drop)
    }
}

/// The time in microseconds, and where there is none that in seconds.
fn time(
    data: &Members<DATA_COUNT>,
    message: &[u8],
    scratch: &mut Vec<u8>,
    oddities: &mut Oddities,
) -> Option<i64> {
    let mut time = read::time(data.get(MICROS), TimeUnits::Microseconds, message, scratch);
    for seconds in [SECONDS, DATE] {
        if time == Time::Missing {
            time = read::time(data.get(seconds), TimeUnits::Seconds, message, scratch);
        }
    }
    match time {
        Time::At(time) => Some(time),
        Time::Missing => None,
        Time::Implausible => {
            oddities.insert(Oddity::ImplausibleTime);
            None
        }
    }
}

/// A side from the levels of an order book, of which the first is the best: `[["819.9","0.922"],…]`.
/// A book without levels on a side has no offer there.
fn level(
    levels: Option<Span>,
    member: &'static str,
    message: &[u8],
    scratch: &mut Vec<u8>,
    oddities: &mut Oddities,
) -> Result<Side, Trouble> {
    let wrong = Trouble { reason: Refusal::WrongType, member };
    let levels = match levels {
        None => return Ok(Side::Kept),
        Some(Span { kind: Kind::Null, .. }) => {
            oddities.insert(Oddity::Absent);
            return Ok(Side::Withdrawn);
        }
        Some(span) if span.kind == Kind::Array => span,
        Some(_) => return Err(wrong),
    };
    // The grammar of the whole was checked on the way here.
    let mut scanner = Scanner::from(message, levels.start + 1);
    match scanner.next_byte() {
        b']' => return Ok(Side::Withdrawn),
        b'[' => {}
        _ => return Err(wrong),
    }
    let mut best = Members::<2>::new();
    elements(&mut scanner, &mut best, &[Some(0), Some(1)]).map_err(|_| wrong)?;
    let mut absent = false;
    let side = [best.get(0), best.get(1)];
    let side = read::side(side, [member; 2], message, scratch, &mut absent)?;
    if absent {
        oddities.insert(Oddity::Absent);
    }
    // A level of nothing is none that can be read.
    if side == Side::Kept {
        Err(Trouble { reason: Refusal::MissingField, member })
    } else {
        Ok(side)
    }
}

/// A message that names no event.
fn without_event(data: &Members<DATA_COUNT>) -> Class {
    match data.get(BIDS).or_else(|| data.get(ASKS)) {
        Some(_) => Class::Unused(Unused::Snapshot),
        None => Class::Unknown,
    }
}
