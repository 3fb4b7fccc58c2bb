//! One pass over a message: its envelope, its argument, and the rows of its data.

use super::names::{Channel, channel};
use crate::venue::json::{Fault, Kind, Scanner, Span};
use crate::venue::members::{Members, Name, Rows, each_member};

/// Places in the envelope.
pub(super) const EVENT: u8 = 0;
pub(super) const ARG: u8 = 1;
pub(super) const DATA: u8 = 2;
pub(super) const CODE: u8 = 3;
pub(super) const OP: u8 = 4;
const ENVELOPE: usize = 5;

fn envelope(key: &[u8]) -> Name {
    Name::Used(match key {
        b"event" => EVENT,
        b"arg" => ARG,
        b"data" => DATA,
        b"code" => CODE,
        b"op" => OP,
        b"msg" | b"connId" | b"id" | b"action" | b"channel" | b"connCount" | b"inTime"
        | b"outTime" | b"eventType" | b"curPage" | b"lastPage" => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Places in the argument.
pub(super) const CHANNEL: u8 = 0;
pub(super) const INSTRUMENT: u8 = 1;
const ARGUMENT: usize = 2;

fn argument(key: &[u8]) -> Name {
    match key {
        b"channel" => Name::Used(CHANNEL),
        b"instId" => Name::Used(INSTRUMENT),
        b"instType" | b"instFamily" | b"uid" | b"ccy" | b"sprdId" | b"algoId" => Name::Known,
        _ => Name::Unknown,
    }
}

/// Places in a row.
pub(super) const SYMBOL: u8 = 0;
pub(super) const BID: u8 = 1;
pub(super) const BID_SIZE: u8 = 2;
pub(super) const ASK: u8 = 3;
pub(super) const ASK_SIZE: u8 = 4;
pub(super) const LAST: u8 = 5;
pub(super) const LAST_SIZE: u8 = 6;
pub(super) const TIME: u8 = 7;
pub(super) const ID: u8 = 8;
pub(super) const PRICE: u8 = 9;
pub(super) const SIZE: u8 = 10;
pub(super) const SIDE: u8 = 11;
pub(super) const BIDS: u8 = 12;
pub(super) const ASKS: u8 = 13;
pub(super) const SEQUENCE: u8 = 14;
pub(super) const ROW: usize = 15;

fn row(key: &[u8]) -> Name {
    Name::Used(match key {
        b"instId" => SYMBOL,
        b"bidPx" => BID,
        b"bidSz" => BID_SIZE,
        b"askPx" => ASK,
        b"askSz" => ASK_SIZE,
        b"last" => LAST,
        b"lastSz" => LAST_SIZE,
        b"ts" => TIME,
        b"tradeId" => ID,
        b"px" => PRICE,
        b"sz" => SIZE,
        b"side" => SIDE,
        b"bids" => BIDS,
        b"asks" => ASKS,
        b"seqId" => SEQUENCE,
        b"instType" | b"open24h" | b"high24h" | b"low24h" | b"sodUtc0" | b"sodUtc8"
        | b"volCcy24h" | b"vol24h" | b"count" | b"source" | b"checksum" | b"prevSeqId" => {
            return Name::Known;
        }
        _ => return Name::Unknown,
    })
}

/// Where the members of the latest message stand.
pub(super) struct Message {
    pub(super) top: Members<ENVELOPE>,
    pub(super) arg: Members<ARGUMENT>,
    pub(super) rows: Rows<ROW>,
    /// What the channel carries, if it is known.
    pub(super) channel: Option<Channel>,
}

impl Message {
    pub(super) const fn new() -> Self {
        Self { top: Members::new(), arg: Members::new(), rows: Rows::new(), channel: None }
    }

    pub(super) fn read(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.top.clear();
        self.arg.clear();
        self.rows.clear();
        self.channel = None;
        let mut scanner = Scanner::new(message);
        each_member(&mut scanner, message, |scanner, key| match envelope(key) {
            Name::Used(DATA) => {
                let span = self.data(scanner, message)?;
                self.top.put(DATA, span);
                Ok(())
            }
            Name::Used(ARG) => {
                let span = self.arg.object(scanner, message, argument)?;
                self.top.put(ARG, span);
                if let Some(name) = self.arg.get(CHANNEL).filter(|name| name.kind == Kind::Text) {
                    self.channel = channel(name.of(message));
                }
                Ok(())
            }
            name => self.top.pass(name, scanner),
        })?;
        scanner.finish()
    }

    fn data(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<Span, Fault> {
        // Of no use, and long.
        if matches!(self.channel, Some(Channel::Other(_))) {
            return scanner.value();
        }
        self.rows.objects(scanner, message, row)
    }
}
