//! One pass over a message: its envelope, and the rows of its data.

use super::names::{Table, table};
use crate::venue::json::{Fault, Scanner, Span};
use crate::venue::members::{Members, Name, Rows, each_member};

/// Places in the envelope.
pub(super) const TABLE: u8 = 0;
pub(super) const ACTION: u8 = 1;
pub(super) const DATA: u8 = 2;
pub(super) const SUCCESS: u8 = 3;
pub(super) const ERROR: u8 = 4;
pub(super) const INFO: u8 = 5;
const ENVELOPE: usize = 6;

fn envelope(key: &[u8]) -> Name {
    Name::Used(match key {
        b"table" => TABLE,
        b"action" => ACTION,
        b"data" => DATA,
        b"success" => SUCCESS,
        b"error" => ERROR,
        b"info" => INFO,
        b"keys" | b"types" | b"foreignKeys" | b"attributes" | b"filter" | b"subscribe"
        | b"unsubscribe" | b"request" | b"status" | b"meta" | b"version" | b"timestamp"
        | b"docs" | b"limit" | b"heartbeatEnabled" | b"appName" => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Places in a row.
pub(super) const SYMBOL: u8 = 0;
pub(super) const BID: u8 = 1;
pub(super) const BID_SIZE: u8 = 2;
pub(super) const ASK: u8 = 3;
pub(super) const ASK_SIZE: u8 = 4;
pub(super) const TIME: u8 = 5;
pub(super) const PRICE: u8 = 6;
pub(super) const SIZE: u8 = 7;
pub(super) const SIDE: u8 = 8;
pub(super) const MATCH: u8 = 9;
pub(super) const EXECUTION: u8 = 10;
pub(super) const KIND: u8 = 11;
pub(super) const LAST_PRICE: u8 = 12;
pub(super) const LAST_SIZE: u8 = 13;
pub(super) const ACCOUNT: u8 = 14;
pub(super) const TRANSACTED: u8 = 15;
pub(super) const ROW: usize = 16;

fn row(key: &[u8]) -> Name {
    Name::Used(match key {
        b"symbol" => SYMBOL,
        b"bidPrice" => BID,
        b"bidSize" => BID_SIZE,
        b"askPrice" => ASK,
        b"askSize" => ASK_SIZE,
        b"timestamp" => TIME,
        b"price" => PRICE,
        b"size" => SIZE,
        b"side" => SIDE,
        b"trdMatchID" => MATCH,
        b"execID" => EXECUTION,
        b"execType" => KIND,
        b"lastPx" => LAST_PRICE,
        b"lastQty" => LAST_SIZE,
        b"account" => ACCOUNT,
        b"transactTime" => TRANSACTED,
        _ if is_known(key) => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Members of a row that are of no use here.
fn is_known(key: &[u8]) -> bool {
    matches!(
        key,
        // Trades.
        b"tickDirection" | b"grossValue" | b"homeNotional" | b"foreignNotional" | b"trdType"
        | b"pool"
        // Executions.
        | b"orderID" | b"clOrdID" | b"clOrdLinkID" | b"underlyingLastPx" | b"lastMkt"
        | b"lastLiquidityInd" | b"simpleOrderQty" | b"orderQty" | b"displayQty" | b"stopPx"
        | b"pegOffsetValue" | b"pegPriceType" | b"currency" | b"settlCurrency" | b"ordType"
        | b"timeInForce" | b"execInst" | b"contingencyType" | b"exDestination" | b"ordStatus"
        | b"triggered" | b"workingIndicator" | b"ordRejReason" | b"simpleLeavesQty" | b"leavesQty"
        | b"simpleCumQty" | b"cumQty" | b"avgPx" | b"commission" | b"tradePublishIndicator"
        | b"multiLegReportingType" | b"text" | b"execCost" | b"execComm" | b"realisedPnl"
        | b"brokerCommission" | b"brokerExecComm" | b"execGrossPnl" | b"feeType" | b"strategy"
        | b"error" | b"execCommCcy"
    )
}

/// Where the members of the latest message stand.
pub(super) struct Message {
    pub(super) top: Members<ENVELOPE>,
    pub(super) rows: Rows<ROW>,
    /// What the table carries, if it is known.
    pub(super) table: Option<Table>,
}

impl Message {
    pub(super) const fn new() -> Self {
        Self { top: Members::new(), rows: Rows::new(), table: None }
    }

    pub(super) fn read(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.top.clear();
        self.rows.clear();
        self.table = None;
        let mut scanner = Scanner::new(message);
        each_member(&mut scanner, message, |scanner, key| match envelope(key) {
            Name::Used(DATA) => {
                let span = self.data(scanner, message)?;
                self.top.put(DATA, span);
                Ok(())
            }
            Name::Used(TABLE) => {
                self.table = self.top.text(TABLE, scanner, message)?.and_then(table);
                Ok(())
            }
            name => self.top.pass(name, scanner),
        })?;
        scanner.finish()
    }

    fn data(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<Span, Fault> {
        // Of no use, and long.
        if matches!(self.table, Some(Table::Other(_))) {
            return scanner.value();
        }
        self.rows.objects(scanner, message, row)
    }
}
