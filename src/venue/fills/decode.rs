//! From a line to a fill.

use std::sync::Arc;

use foldhash::HashMap;

use crate::market::instrument::InternError;
use crate::market::{Fill, InstrumentId, Instruments};
use crate::venue::answer::Answer;
use crate::venue::class::{Class, Control, Refusal, Unused};
use crate::venue::codec::{Codec, Context, find};
use crate::venue::json::{Fault, Scanner};
use crate::venue::members::{Members, Name};
use crate::venue::read::TimeUnits::Milliseconds;
use crate::venue::report::{self, Reports};
use crate::venue::row::Row;
use crate::venue::shell::{Of as _, Output, Reader, Shell, Trouble};

/// A codec for lines of fills.
pub(in crate::venue) fn codec(_: &'static str, context: Context) -> Box<dyn Codec> {
    Box::new(Shell::new(Fills {
        line: Members::new(),
        instruments: context.instruments,
        known: HashMap::default(),
        reports: Reports::new(context.accounts, context.account),
        scratch: Vec::new(),
    }))
}

/// Publishers in the house answer nothing.
pub(in crate::venue) fn answers(_: &serde_json::Value) -> Vec<Answer> {
    Vec::new()
}

const ID: u8 = 0;
const ACCOUNT: u8 = 1;
const INSTRUMENT: u8 = 2;
const SIDE: u8 = 3;
const PRICE: u8 = 4;
const QUANTITY: u8 = 5;
const TIME: u8 = 6;
const TYPE: u8 = 7;
const LINE: usize = 8;

fn name(key: &[u8]) -> Name {
    Name::Used(match key {
        b"id" => ID,
        b"account" => ACCOUNT,
        b"instrument" => INSTRUMENT,
        b"side" => SIDE,
        b"price" => PRICE,
        b"quantity" => QUANTITY,
        b"time" => TIME,
        b"type" => TYPE,
        _ => return Name::Unknown,
    })
}

struct Fills {
    line: Members<LINE>,
    instruments: Arc<Instruments>,
    /// By full name; bounded by the instruments that may be known.
    known: HashMap<Box<[u8]>, InstrumentId>,
    reports: Reports,
    scratch: Vec<u8>,
}

impl Reader for Fills {
    fn scan(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.line.clear();
        let mut scanner = Scanner::new(message);
        if scanner.next_byte() != b'{' {
            return Err(Fault::Malformed);
        }
        self.line.object(&mut scanner, message, name)?;
        scanner.finish()
    }

    fn interpret(&mut self, message: &[u8], output: &mut Output<'_>) -> Result<Class, Trouble> {
        let Self { line, instruments, known, reports, scratch } = self;
        let oddities = &mut output.oddities;
        let mut row = Row { members: line, message, scratch, oddities };
        row.check()?;
        match row.word(TYPE, "type")? {
            None | Some(b"fill") => {}
            Some(b"ping" | b"pong" | b"heartbeat") => {
                return Ok(Class::Control(Control::Heartbeat));
            }
            Some(_) => return Ok(Class::Unknown),
        }
        if line.is_empty() {
            return Ok(Class::Unknown);
        }
        let quantity = row.quantity(QUANTITY, "quantity")?;
        if quantity.is_zero() {
            return Ok(Class::Unused(Unused::Order));
        }
        let price = row.price(PRICE, "price")?;
        let side = report::side(row.text(SIDE, "side")?).of("side")?;
        let venue_time = row.time(TIME, Milliseconds);
        let account = reports.account(row.word(ACCOUNT, "account")?)?;
        let full = row.text(INSTRUMENT, "instrument")?;
        let instrument = match known.get(full) {
            Some(&instrument) => instrument,
            None => {
                let instrument = resolve(instruments, full).of("instrument")?;
                known.insert(full.into(), instrument);
                instrument
            }
        };
        let receive_time = output.receive_time;
        let fill = Fill { account, instrument, side, price, quantity, venue_time, receive_time };
        let missing = Trouble { reason: Refusal::MissingField, member: "id" };
        let id = row.word(ID, "id")?.ok_or(missing)?;
        reports.admit(&fill, id, "id")?;
        output.fill(fill);
        Ok(Class::Fill)
    }

    fn new_session(&mut self) {
        self.reports.new_session();
    }
}

/// The instrument of a full name, whose venue must be one that is known.
#[cold]
fn resolve(instruments: &Instruments, full: &[u8]) -> Result<InstrumentId, Refusal> {
    let full = std::str::from_utf8(full).map_err(|_| Refusal::BadSymbol)?;
    let (venue, symbol) = full.split_once(':').ok_or(Refusal::BadSymbol)?;
    let venue = find(venue).ok_or(Refusal::BadSymbol)?;
    instruments.resolve(venue.name, symbol).map_err(|error| match error {
        InternError::Full { .. } => Refusal::InstrumentsFull,
        _ => Refusal::BadSymbol,
    })
}
