//! Coinbase Advanced Trade: events of a channel, each with rows, in one envelope.

use crate::venue::book::{Books, Last, Side, Times, Trade, TradeStream, Update};
use crate::venue::class::{Class, Control, Oddity, Refusal, Unused};
use crate::venue::codec::{Codec, Context};
use crate::venue::json::{Fault, Scanner, Span};
use crate::venue::members::{Members, Name, Rows, each_element, each_member};
use crate::venue::read::{self, Reading, TimeUnits};
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for a feed of Coinbase Advanced Trade.
pub(in crate::venue) fn codec(venue: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Advanced {
        books: Books::new(venue, context.feed, context.instruments),
        envelope: Members::new(),
        rows: Rows::new(),
        unknown: false,
        scratch: Vec::new(),
    }))
}

struct Advanced {
    books: Books,
    envelope: Members<ENVELOPE>,
    /// Of all events, as nearly all messages have one.
    rows: Rows<ROW>,
    /// An event has a member that is not known.
    unknown: bool,
    scratch: Vec<u8>,
}

const CHANNEL: u8 = 0;
const TIMESTAMP: u8 = 1;
const EVENTS: u8 = 2;
const TYPE: u8 = 3;
const ENVELOPE: usize = 4;

const PRODUCT: u8 = 0;
const PRICE: u8 = 1;
const BID: u8 = 2;
const BID_SIZE: u8 = 3;
const ASK: u8 = 4;
const ASK_SIZE: u8 = 5;
const SIZE: u8 = 6;
const TRADE_ID: u8 = 7;
const TIME: u8 = 8;
const SIDE: u8 = 9;
const ROW: usize = 10;

fn row_name(key: &[u8]) -> Name {
    Name::Used(match key {
        b"product_id" => PRODUCT,
        b"price" => PRICE,
        b"best_bid" => BID,
        b"best_bid_quantity" => BID_SIZE,
        b"best_ask" => ASK,
        b"best_ask_quantity" => ASK_SIZE,
        b"size" => SIZE,
        b"trade_id" => TRADE_ID,
        b"time" => TIME,
        b"side" => SIDE,
        b"type"
        | b"volume_24_h"
        | b"low_24_h"
        | b"high_24_h"
        | b"low_52_w"
        | b"high_52_w"
        | b"price_percent_chg_24_h" => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Whether the channel's rows mean something here.
fn is_read(channel: &[u8]) -> bool {
    matches!(channel, b"ticker" | b"ticker_batch" | b"market_trades")
}

impl Reader for Advanced {
    #[inline]
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.envelope.clear();
        self.rows.clear();
        self.unknown = false;
        let mut scanner = Scanner::new(message);
        if scanner.next_byte() == b'[' {
            scanner.value()?;
            return scanner.finish();
        }
        let mut read = true;
        each_member(&mut scanner, message, |scanner, key| {
            let place = match key {
                b"channel" => CHANNEL,
                b"timestamp" => TIMESTAMP,
                b"type" => TYPE,
                b"events" if read && scanner.next_byte() == b'[' => {
                    let span = each_element(scanner, |scanner, _| self.event(scanner, message))?;
                    self.envelope.put(EVENTS, span);
                    return Ok(());
                }
                b"events" => EVENTS,
                b"sequence_num" | b"client_id" | b"message" | b"reason" => {
                    return scanner.value().map(drop);
                }
                _ => return self.envelope.pass(Name::Unknown, scanner),
            };
            let span = scanner.value()?;
            if place == CHANNEL {
                // Order books are most of what is sent: their events are checked, and not read.
                read = is_read(span.of(message));
            }
            self.envelope.put(place, span);
            Ok(())
        })?;
        scanner.finish()
    }

    #[inline]
    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        if self.envelope.duplicate {
            return Err(Trouble { reason: Refusal::DuplicateField, member: "" });
        }
        let Some(span) = self.envelope.get(CHANNEL) else { return self.without_channel(message) };
        let (ticker, empty) = match read::text(span, message, &mut self.scratch).of("channel")? {
            b"ticker" | b"ticker_batch" => (true, Class::Unused(Unused::Ticker)),
            b"market_trades" => (false, Class::Unused(Unused::Ticker)),
            channel => return Ok(other(channel)),
        };
        if self.envelope.get(EVENTS).is_none() {
            return Err(Trouble { reason: Refusal::MissingField, member: "events" });
        }
        if self.envelope.unknown || self.unknown {
            output.oddities.insert(Oddity::UnknownField);
        }
        let sent = read::time_noted(
            self.envelope.get(TIMESTAMP),
            TimeUnits::Text,
            message,
            &mut self.scratch,
            &mut output.oddities,
        );
        if !ticker {
            self.rows.sort_by_id(TRADE_ID, message);
        }
        for index in 0..self.rows.len() {
            let row = self.rows.get(index);
            let result = if ticker {
                self.ticker(&row, sent, message, output)
            } else {
                self.trade(&row, message, output)
            };
            output.row(result);
        }
        output.rows(Class::Quote, empty)
    }

    fn new_session(&mut self) {
        self.books.new_session();
    }
}

/// A channel that makes no quotes.
fn other(channel: &[u8]) -> Class {
    match channel {
        b"l2_data" | b"level2" => Class::Unused(Unused::Depth),
        b"candles" => Class::Unused(Unused::Kline),
        b"status" => Class::Unused(Unused::Reference),
        b"user" | b"futures_balance_summary" => Class::Unused(Unused::Account),
        b"subscriptions" => Class::Control(Control::Ack),
        b"heartbeats" => Class::Control(Control::Heartbeat),
        _ => Class::Unknown,
    }
}

impl Advanced {
    /// An event: its rows, under the name of their kind.
    #[inline]
    fn event(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<(), Fault> {
        if scanner.next_byte() != b'{' {
            self.unknown = true;
            return scanner.value().map(drop);
        }
        each_member(scanner, message, |scanner, key| match key {
            b"tickers" | b"trades" if scanner.next_byte() == b'[' => {
                each_element(scanner, |scanner, _| {
                    let row = self.rows.add();
                    row.object(scanner, message, row_name).map(drop)
                })
                .map(drop)
            }
            b"type" => scanner.value().map(drop),
            _ => {
                self.unknown = true;
                scanner.value().map(drop)
            }
        })
        .map(drop)
    }

    /// The venue tells an error, and nothing else, without a channel.
    fn without_channel(&mut self, message: &[u8]) -> Result<Class, Trouble> {
        let Some(span) = self.envelope.get(TYPE) else { return Ok(Class::Unknown) };
        Ok(match read::text(span, message, &mut self.scratch).of("type")? {
            b"error" => Class::Control(Control::Error),
            b"ping" | b"pong" | b"heartbeat" => Class::Control(Control::Heartbeat),
            _ => Class::Unknown,
        })
    }

    #[inline]
    fn ticker(
        &mut self,
        row: &Members<ROW>,
        sent: Option<i64>,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), Trouble> {
        let scratch = &mut self.scratch;
        let mut absent = false;
        let side = |price, size, names, absent: &mut bool, scratch: &mut Vec<u8>| {
            read::side([row.get(price), row.get(size)], names, message, scratch, absent)
        };
        let bid = ["best_bid", "best_bid_quantity"];
        let bid = side(BID, BID_SIZE, bid, &mut absent, scratch)?;
        let ask = ["best_ask", "best_ask_quantity"];
        let ask = side(ASK, ASK_SIZE, ask, &mut absent, scratch)?;
        let last = match read::decimal(row.get(PRICE), message, scratch).of("price")? {
            Reading::Missing => Last::Kept,
            Reading::Blank => {
                absent = true;
                Last::Withdrawn
            }
            Reading::Value(price) => Last::Trade(Trade {
                stream: TradeStream::Ticker,
                id: None,
                price,
                size: None,
                time: sent,
            }),
        };
        if bid == Side::Kept && ask == Side::Kept && matches!(last, Last::Kept) {
            return Err(Trouble { reason: Refusal::MissingField, member: "best_bid" });
        }
        if absent {
            output.oddities.insert(Oddity::Absent);
        }
        self.apply(row, Update { id: None, bid, ask, last }, sent, message, output)
    }

    #[inline]
    fn trade(
        &mut self,
        row: &Members<ROW>,
        message: &[u8],
        output: &mut Output<'_>,
    ) -> Result<(), Trouble> {
        let scratch = &mut self.scratch;
        let id = read::id(row.get(TRADE_ID), message, scratch).of("trade_id")?;
        let trade = read::trade(
            [row.get(PRICE), row.get(SIZE)],
            ["price", "size"],
            message,
            scratch,
            &mut output.oddities,
        )?;
        let time: Option<Span> = row.get(TIME);
        let time = read::time_noted(time, TimeUnits::Text, message, scratch, &mut output.oddities);
        if row.get(SIDE).is_some_and(|side| !matches!(side.of(message), b"BUY" | b"SELL")) {
            output.oddities.insert(Oddity::UnknownValue);
        }
        let trade = Trade { stream: TradeStream::Trades, id: Some(id), time, ..trade };
        self.apply(row, Update::trade(trade), time, message, output)
    }

    #[inline]
    fn apply(
        &mut self,
        row: &Members<ROW>,
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
        let span = row.get(PRODUCT).ok_or(Refusal::MissingField).of("product_id")?;
        let symbol = read::text(span, message, &mut self.scratch).of("product_id")?;
        let book = self.books.book(symbol).of("product_id")?;
        let instrument = book.instrument();
        let times = Times { venue, receive: output.receive_time };
        let quote = book.update(update, times).of("trade_id")?;
        output.quote(instrument, quote);
        Ok(())
    }
}
