//! One pass over a message: its envelope, its parameters, and the rows of its data.

use super::names::{Channel, channel};
use crate::venue::json::{Fault, Scanner, Span};
use crate::venue::members::{Members, Name, Rows, each_member};

/// Places in the envelope.
pub(super) const METHOD: u8 = 0;
pub(super) const PARAMS: u8 = 1;
pub(super) const RESULT: u8 = 2;
pub(super) const ERROR: u8 = 3;
const ENVELOPE: usize = 4;

fn envelope(key: &[u8]) -> Name {
    Name::Used(match key {
        b"method" => METHOD,
        b"params" => PARAMS,
        b"result" => RESULT,
        b"error" => ERROR,
        b"jsonrpc" | b"id" | b"usIn" | b"usOut" | b"usDiff" | b"testnet" => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Places in the parameters.
pub(super) const CHANNEL: u8 = 0;
pub(super) const DATA: u8 = 1;
const PARAMETERS: usize = 2;

fn parameter(key: &[u8]) -> Name {
    match key {
        b"channel" => Name::Used(CHANNEL),
        b"data" => Name::Used(DATA),
        b"type" | b"label" => Name::Known,
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
pub(super) const TIME: u8 = 6;
pub(super) const SEQUENCE: u8 = 7;
pub(super) const PRICE: u8 = 8;
pub(super) const SIZE: u8 = 9;
pub(super) const SIDE: u8 = 10;
pub(super) const ROW: usize = 11;

fn row(key: &[u8]) -> Name {
    Name::Used(match key {
        b"instrument_name" => SYMBOL,
        b"best_bid_price" => BID,
        b"best_bid_amount" => BID_SIZE,
        b"best_ask_price" => ASK,
        b"best_ask_amount" => ASK_SIZE,
        b"last_price" => LAST,
        b"timestamp" => TIME,
        b"trade_seq" => SEQUENCE,
        b"price" => PRICE,
        b"amount" => SIZE,
        b"direction" => SIDE,
        _ if is_known(key) => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Members of a row that are of no use here.
fn is_known(key: &[u8]) -> bool {
    matches!(
        key,
        // Tickers.
        b"underlying_price" | b"underlying_index" | b"stats" | b"state" | b"settlement_price"
        | b"open_interest" | b"min_price" | b"max_price" | b"mark_price" | b"mark_iv"
        | b"interest_rate" | b"index_price" | b"greeks" | b"estimated_delivery_price"
        | b"delivery_price" | b"bid_iv" | b"ask_iv" | b"current_funding" | b"funding_8h"
        | b"interest_value" | b"combo_state" | b"implied_bid" | b"implied_ask" | b"volume"
        // Trades.
        | b"tick_direction" | b"trade_id" | b"iv" | b"contracts" | b"liquidation"
        | b"block_trade_id" | b"block_trade_leg_count" | b"block_rfq_id" | b"combo_id"
        | b"combo_trade_id" | b"legs"
    )
}

/// Where the members of the latest message stand.
pub(super) struct Message {
    pub(super) top: Members<ENVELOPE>,
    pub(super) params: Members<PARAMETERS>,
    pub(super) rows: Rows<ROW>,
    /// What the channel carries, if it is known.
    pub(super) channel: Option<Channel>,
}

impl Message {
    pub(super) const fn new() -> Self {
        Self { top: Members::new(), params: Members::new(), rows: Rows::new(), channel: None }
    }

    pub(super) fn read(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.top.clear();
        self.params.clear();
        self.rows.clear();
        self.channel = None;
        let mut scanner = Scanner::new(message);
        each_member(&mut scanner, message, |scanner, key| match envelope(key) {
            Name::Used(PARAMS) => {
                let span = self.parameters(scanner, message)?;
                self.top.put(PARAMS, span);
                Ok(())
            }
            name => self.top.pass(name, scanner),
        })?;
        scanner.finish()
    }

    fn parameters(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<Span, Fault> {
        if scanner.next_byte() != b'{' {
            return scanner.value();
        }
        each_member(scanner, message, |scanner, key| match parameter(key) {
            Name::Used(DATA) => {
                let span = self.data(scanner, message)?;
                self.params.put(DATA, span);
                Ok(())
            }
            Name::Used(CHANNEL) => {
                self.channel = self.params.text(CHANNEL, scanner, message)?.and_then(channel);
                Ok(())
            }
            name => self.params.pass(name, scanner),
        })
    }

    fn data(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<Span, Fault> {
        // Of no use, and long.
        if matches!(self.channel, Some(Channel::Other(_))) {
            return scanner.value();
        }
        if scanner.next_byte() == b'{' {
            return self.rows.add().object(scanner, message, row);
        }
        self.rows.objects(scanner, message, row)
    }
}
