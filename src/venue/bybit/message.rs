//! One pass over a message: its envelope, and the rows of its data.

use super::names::{Topic, topic};
use crate::venue::json::{Fault, Scanner, Span};
use crate::venue::members::{Members, Name, Rows, each_member};

/// Places in the envelope.
pub(super) const TOPIC: u8 = 0;
pub(super) const TYPE: u8 = 1;
pub(super) const TS: u8 = 2;
pub(super) const CS: u8 = 3;
pub(super) const DATA: u8 = 4;
pub(super) const ACCOUNT: u8 = 5;
pub(super) const OP: u8 = 6;
pub(super) const SUCCESS: u8 = 7;
pub(super) const RET_MSG: u8 = 8;
pub(super) const RET_CODE: u8 = 9;
const ENVELOPE: usize = 10;

fn envelope(key: &[u8]) -> Name {
    Name::Used(match key {
        b"topic" => TOPIC,
        b"type" => TYPE,
        b"ts" => TS,
        b"cs" => CS,
        b"data" => DATA,
        b"account" => ACCOUNT,
        b"op" => OP,
        b"success" => SUCCESS,
        b"ret_msg" | b"retMsg" => RET_MSG,
        b"retCode" => RET_CODE,
        b"cts" | b"creationTime" | b"id" | b"conn_id" | b"connId" | b"req_id" | b"reqId"
        | b"request" | b"args" | b"cross_seq" | b"timestamp_e6" | b"header" | b"retExtInfo"
        | b"time" => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Places in a row.
pub(super) const SYMBOL: u8 = 0;
pub(super) const BID: u8 = 1;
pub(super) const BID_SIZE: u8 = 2;
pub(super) const ASK: u8 = 3;
pub(super) const ASK_SIZE: u8 = 4;
pub(super) const LAST: u8 = 5;
pub(super) const BIDS: u8 = 6;
pub(super) const ASKS: u8 = 7;
pub(super) const UPDATE: u8 = 8;
pub(super) const SEQUENCE: u8 = 9;
pub(super) const TIME: u8 = 10;
pub(super) const SIDE: u8 = 11;
pub(super) const PRICE: u8 = 12;
pub(super) const SIZE: u8 = 13;
pub(super) const ID: u8 = 14;
pub(super) const EXECUTION: u8 = 15;
pub(super) const OWNER: u8 = 16;
pub(super) const ROW: usize = 17;

fn row(key: &[u8]) -> Name {
    Name::Used(match key {
        b"symbol" | b"s" => SYMBOL,
        b"bid1Price" | b"bidPrice" => BID,
        b"bid1Size" | b"bidSize" => BID_SIZE,
        b"ask1Price" | b"askPrice" => ASK,
        b"ask1Size" | b"askSize" => ASK_SIZE,
        b"lastPrice" => LAST,
        b"b" => BIDS,
        b"a" => ASKS,
        b"u" => UPDATE,
        b"seq" => SEQUENCE,
        b"T" | b"execTime" | b"trade_time_ms" => TIME,
        b"S" | b"side" => SIDE,
        b"p" | b"execPrice" | b"price" => PRICE,
        b"v" | b"execQty" | b"size" => SIZE,
        b"i" | b"execId" | b"trade_id" => ID,
        b"execType" => EXECUTION,
        b"account" => OWNER,
        _ if is_known(key) => return Name::Known,
        _ => return Name::Unknown,
    })
}

/// Members of a row that are of no use here.
fn is_known(key: &[u8]) -> bool {
    matches!(
        key,
        // Tickers.
        b"tickDirection" | b"price24hPcnt" | b"prevPrice24h" | b"highPrice24h" | b"lowPrice24h"
        | b"prevPrice1h" | b"markPrice" | b"indexPrice" | b"openInterest" | b"openInterestValue"
        | b"turnover24h" | b"volume24h" | b"nextFundingTime" | b"fundingRate"
        | b"fundingIntervalHour" | b"fundingCap" | b"singleOpenInterest"
        | b"singleOpenInterestValue" | b"preOpenPrice" | b"preQty" | b"curPreListingPhase"
        | b"deliveryTime" | b"basisRate" | b"deliveryFeeRate" | b"predictedDeliveryPrice"
        | b"basis" | b"basisRateYear" | b"usdIndexPrice" | b"bidIv" | b"askIv" | b"markPriceIv"
        | b"underlyingPrice" | b"totalVolume" | b"totalTurnover" | b"delta" | b"gamma" | b"vega"
        | b"theta" | b"change24h"
        // Trades.
        | b"L" | b"BT" | b"RPI" | b"mP" | b"iP" | b"mIv" | b"iv" | b"timestamp"
        | b"tick_direction" | b"cross_seq" | b"is_block_trade"
        // Executions.
        | b"category" | b"closedSize" | b"execFee" | b"execFeeV2" | b"execValue" | b"feeRate"
        | b"tradeIv" | b"markIv" | b"blockTradeId" | b"leavesQty" | b"orderId" | b"orderLinkId"
        | b"orderPrice" | b"orderQty" | b"orderType" | b"stopOrderType" | b"isLeverage"
        | b"isMaker" | b"marketUnit" | b"execPnl" | b"createType" | b"feeCurrency" | b"extraFees"
    )
}

/// Where the members of the latest message stand.
pub(super) struct Message {
    pub(super) top: Members<ENVELOPE>,
    pub(super) rows: Rows<ROW>,
    /// What the topic carries, if it is known.
    pub(super) topic: Option<Topic>,
}

impl Message {
    pub(super) const fn new() -> Self {
        Self { top: Members::new(), rows: Rows::new(), topic: None }
    }

    pub(super) fn read(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.top.clear();
        self.rows.clear();
        self.topic = None;
        let mut scanner = Scanner::new(message);
        each_member(&mut scanner, message, |scanner, key| match envelope(key) {
            Name::Used(DATA) => {
                let span = self.data(scanner, message)?;
                self.top.put(DATA, span);
                Ok(())
            }
            Name::Used(TOPIC) => {
                self.topic = self.top.text(TOPIC, scanner, message)?.and_then(topic);
                Ok(())
            }
            name => self.top.pass(name, scanner),
        })?;
        scanner.finish()
    }

    fn data(&mut self, scanner: &mut Scanner<'_>, message: &[u8]) -> Result<Span, Fault> {
        // Of no use, and long.
        if matches!(self.topic, Some(Topic::Other(_))) {
            return scanner.value();
        }
        if scanner.next_byte() == b'{' {
            return self.rows.add().object(scanner, message, row);
        }
        self.rows.objects(scanner, message, row)
    }
}
