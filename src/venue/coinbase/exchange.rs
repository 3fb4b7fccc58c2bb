//! Coinbase Exchange: one object a message, told by its `type`.

use crate::venue::book::{Books, Last, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Scanner, Span};
use crate::venue::members::{Members, Name, each_member};
use crate::venue::read::{self, Reading, TimeUnits};
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a feed of Coinbase Exchange.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Exchange {
        books: Books::new(venue, context.feed, context.instruments),
        members: Members::new(),
        scratch: Vec::new(),
    }))
}

struct Exchange {
    books: Books,
    members: Members<COUNT>,
    scratch: Vec<u8>,
}

const TYPE: u8 = 0;
const PRODUCT: u8 = 1;
const SEQUENCE: u8 = 2;
const PRICE: u8 = 3;
const BID: u8 = 4;
const BID_SIZE: u8 = 5;
const ASK: u8 = 6;
const ASK_SIZE: u8 = 7;
const SIZE: u8 = 8;
const LAST_SIZE: u8 = 9;
const TRADE_ID: u8 = 10;
const TIME: u8 = 11;
const SIDE: u8 = 12;
const COUNT: usize = 13;

fn name(key: &[u8]) -> Name {
    Name::Used(match key {
        b"type" => TYPE,
        b"product_id" => PRODUCT,
        b"sequence" => SEQUENCE,
        b"price" => PRICE,
        b"best_bid" => BID,
        b"best_bid_size" => BID_SIZE,
        b"best_ask" => ASK,
        b"best_ask_size" => ASK_SIZE,
        b"size" => SIZE,
        b"last_size" => LAST_SIZE,
        b"trade_id" => TRADE_ID,
        b"time" => TIME,
        b"side" => SIDE,
        b"open_24h" | b"volume_24h" | b"low_24h" | b"high_24h" | b"volume_30d"
        | b"maker_order_id" | b"taker_order_id" | b"maker_user_id" | b"user_id"
        | b"maker_profile_id" | b"taker_profile_id" | b"profile_id" | b"taker_user_id"
        | b"taker_fee_rate" | b"maker_fee_rate" | b"changes" | b"bids" | b"asks" | b"channels"
        | b"message" | b"reason" | b"last_trade_id" => return Name::Known,
        _ => return Name::Unknown,
    })
}

impl Reader for Exchange {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.members.clear();
        let mut scanner = Scanner::new(message);
        if scanner.next_byte() == b'[' {
            scanner.value()?;
        } else {
            each_member(&mut scanner, message, |scanner, key| {
                self.members.pass(name(key), scanner)
            })?;
        }
        scanner.finish()
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let Some(span) = self.members.get(TYPE) else { return Ok(Class::Unknown) };
        match read::text(span, message, &mut self.scratch).of("type")? {
            b"ticker" => self.ticker(message, output),
            b"match" | b"last_match" => self.trade(message, output),
            kind => Ok(other(kind)),
        }
    }

    fn new_session(&mut self) {
        self.books.new_session();
    }
}

/// A message that is neither a ticker nor a match.
fn other(kind: &[u8]) -> Class {
    match kind {
        b"l2update" => Class::Unused(Unused::Depth),
        b"snapshot" => Class::Unused(Unused::Snapshot),
        b"received" | b"open" | b"done" | b"change" | b"activate" => Class::Unused(Unused::Depth),
        b"status" | b"auction" => Class::Unused(Unused::Reference),
        b"rfq_match" => Class::Unused(Unused::Reference),
        b"balance" => Class::Unused(Unused::Account),
        b"subscriptions" => Class::Control(Control::Ack),
        b"heartbeat" | b"ping" | b"pong" => Class::Control(Control::Heartbeat),
        b"error" => Class::Control(Control::Error),
        _ => Class::Unknown,
    }
}

impl Exchange {
    /// Sides, and the trade that caused them. Before the sizes were added to the ticker (2022) a
    /// side was its price alone.
    #[inline]
    fn ticker(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        self.check()?;
        let members = &self.members;
        let scratch = &mut self.scratch;
        let sequence = read::id(members.get(SEQUENCE), message, scratch).of("sequence")?;
        let mut absent = false;
        let sized = members.get(BID_SIZE).is_some() || members.get(ASK_SIZE).is_some();
        let (bid, ask) = if sized {
            let bid = [members.get(BID), members.get(BID_SIZE)];
            let ask = [members.get(ASK), members.get(ASK_SIZE)];
            let (b, a) = (["best_bid", "best_bid_size"], ["best_ask", "best_ask_size"]);
            (
                read::side(bid, b, message, scratch, &mut absent)?,
                read::side(ask, a, message, scratch, &mut absent)?,
            )
        } else {
            (
                unsized_side(members.get(BID), "best_bid", message, scratch, &mut absent)?,
                unsized_side(members.get(ASK), "best_ask", message, scratch, &mut absent)?,
            )
        };
        let time = read::time_noted(
            members.get(TIME),
            TimeUnits::Text,
            message,
            scratch,
            &mut output.oddities,
        );
        let size = read::size(members.get(LAST_SIZE), message, scratch).of("last_size")?;
        absent |= size == Reading::Blank;
        let last = match read::decimal(members.get(PRICE), message, scratch).of("price")? {
            Reading::Missing => Last::Kept,
            Reading::Blank => {
                absent = true;
                Last::Withdrawn
            }
            Reading::Value(price) => {
                let id =
                    read::optional_id(members.get(TRADE_ID), message, scratch).of("trade_id")?;
                absent |= id == Reading::Blank;
                let id = id.value();
                let stream = if id.is_some() { TradeStream::Trades } else { TradeStream::Ticker };
                Last::Trade(Trade { stream, id, price, size: size.value(), time })
            }
        };
        if bid == Side::Kept && ask == Side::Kept && matches!(last, Last::Kept) {
            return Err(Trouble { reason: Refusal::MissingField, member: "best_bid" });
        }
        if absent {
            output.oddities.insert(Oddity::Absent);
        }
        let update = Update { id: Some(sequence), bid, ask, last };
        self.apply(update, time, "sequence", message, output)
    }

    #[inline]
    fn trade(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        self.check()?;
        let members = &self.members;
        let scratch = &mut self.scratch;
        let id = read::id(members.get(TRADE_ID), message, scratch).of("trade_id")?;
        let trade = read::trade(
            [members.get(PRICE), members.get(SIZE)],
            ["price", "size"],
            message,
            scratch,
            &mut output.oddities,
        )?;
        let time = read::time_noted(
            members.get(TIME),
            TimeUnits::Text,
            message,
            scratch,
            &mut output.oddities,
        );
        let trade = Trade { stream: TradeStream::Trades, id: Some(id), time, ..trade };
        self.apply(Update::trade(trade), time, "trade_id", message, output)
    }

    fn check(&self) -> Result<(), Trouble> {
        if self.members.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        Ok(())
    }

    #[inline]
    fn apply(
        &mut self,
        update: Update,
        venue: Option<i64>,
        order: &'static str,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<Class, Trouble> {
        let side = self.members.get(SIDE);
        if side.is_some_and(|side| !matches!(side.of(message), b"buy" | b"sell")) {
            output.oddities.insert(Oddity::UnknownValue);
        }
        if self.members.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        let span = self.members.get(PRODUCT).ok_or(Refusal::MissingField).of("product_id")?;
        let symbol = read::text(span, message, &mut self.scratch).of("product_id")?;
        let book = self.books.book(symbol).of("product_id")?;
        let instrument = book.instrument();
        let times = Times { venue, receive: output.receive_time };
        let quote = book.update(update, times).of(order)?;
        output.quote(instrument, quote);
        Ok(Class::Quote)
    }
}

/// A side whose size is not told.
fn unsized_side(
    span: Option<Span>,
    member: &'static str,
    message: &[u8],
    scratch: &mut Vec<u8>,
    absent: &mut bool,
) -> Result<Side, Trouble> {
    Ok(match read::decimal(span, message, scratch).of(member)? {
        Reading::Missing => Side::Kept,
        Reading::Blank => {
            *absent = true;
            Side::Withdrawn
        }
        Reading::Value(price) => Side::At(price, None),
    })
}
