//! The texts of the simulated messages, member for member as the venue orders them.
//!
//! Shapes: Binance spot API documentation, *WebSocket streams* and *User data stream*.

use std::fmt;
use std::io::Write as _;

use super::account::{Report, What};
use super::instrument::{Instrument, ONE, Taker};

/// A number of 10⁻⁸s, with the venue's eight places.
struct Places(u64);

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:08}", self.0 / ONE, self.0 % ONE)
    }
}

pub(super) fn answer(out: &mut Vec<u8>, id: u64) {
    put(out, format_args!("{{\"result\":null,\"id\":{id}}}"));
}

pub(super) fn book_ticker(out: &mut Vec<u8>, instrument: &Instrument, _time: i64) {
    open(out, instrument, "bookTicker");
    let i = instrument;
    put(
        out,
        format_args!(
            "{{\"u\":{},\"s\":\"{}\",\"b\":\"{}\",\"B\":\"{}\",\"a\":\"{}\",\"A\":\"{}\"}}}}",
            i.update_id,
            i.symbol(),
            Places(i.price(i.bid)),
            Places(i.size(i.bid_size)),
            Places(i.price(i.ask())),
            Places(i.size(i.ask_size)),
        ),
    );
}

pub(super) fn trade(out: &mut Vec<u8>, instrument: &Instrument, time: i64) {
    open(out, instrument, "trade");
    let trade = &instrument.trade;
    put(
        out,
        format_args!(
            "{{\"e\":\"trade\",\"E\":{time},\"s\":\"{}\",\"t\":{},\"p\":\"{}\",\"q\":\"{}\",\"T\":{},\
             \"m\":{},\"M\":true}}}}",
            instrument.symbol(),
            trade.id,
            Places(instrument.price(trade.price)),
            Places(instrument.size(trade.size)),
            time - 1,
            trade.taker == Taker::Sells,
        ),
    );
}

pub(super) fn aggregate_trade(out: &mut Vec<u8>, instrument: &Instrument, time: i64) {
    open(out, instrument, "aggTrade");
    let trade = &instrument.trade;
    put(
        out,
        format_args!(
            "{{\"e\":\"aggTrade\",\"E\":{time},\"s\":\"{}\",\"a\":{},\"p\":\"{}\",\"q\":\"{}\",\
             \"f\":{},\"l\":{},\"T\":{},\"m\":{},\"M\":true}}}}",
            instrument.symbol(),
            instrument.aggregate_id,
            Places(instrument.price(trade.price)),
            Places(instrument.size(trade.size)),
            trade.id,
            trade.id,
            time - 1,
            trade.taker == Taker::Sells,
        ),
    );
}

pub(super) fn depth(out: &mut Vec<u8>, instrument: &Instrument, time: i64) {
    open(out, instrument, "depth@100ms");
    let depth = &instrument.depth;
    put(
        out,
        format_args!(
            "{{\"e\":\"depthUpdate\",\"E\":{time},\"s\":\"{}\",\"U\":{},\"u\":{},\
             \"b\":[[\"{}\",\"{}\"]],\"a\":[[\"{}\",\"{}\"]]}}}}",
            instrument.symbol(),
            depth.first_id,
            instrument.update_id,
            Places(instrument.price(depth.bid)),
            Places(instrument.size(depth.bid_size)),
            Places(instrument.price(depth.ask)),
            Places(instrument.size(depth.ask_size)),
        ),
    );
}

/// A stream that makes no quote.
pub(super) fn candle(out: &mut Vec<u8>, instrument: &Instrument, time: i64) {
    open(out, instrument, "kline_1m");
    let (start, price) = (time - time % 60_000, Places(instrument.price(instrument.bid)));
    put(
        out,
        format_args!(
            "{{\"e\":\"kline\",\"E\":{time},\"s\":\"{0}\",\"k\":{{\"t\":{start},\"T\":{1},\
             \"s\":\"{0}\",\"i\":\"1m\",\"o\":\"{price}\",\"c\":\"{price}\",\"h\":\"{price}\",\
             \"l\":\"{price}\",\"x\":false}}}}}}",
            instrument.symbol(),
            start + 59_999,
        ),
    );
}

pub(super) fn execution_report(out: &mut Vec<u8>, report: &Report, time: i64) {
    let Report { account, order, .. } = report;
    if report.in_wrapper {
        let subscription = report.subscription;
        put(
            out,
            format_args!(
                "{{\"subscriptionId\":{subscription},\"account\":\"{account}\",\"event\":"
            ),
        );
    } else {
        put(out, format_args!("{{\"stream\":\"executionReport\",\"data\":"));
    }
    let (kind, status, trade) = match report.what {
        What::New => ("NEW", "NEW", None),
        What::Canceled => ("CANCELED", "CANCELED", None),
        What::Fill { trade_id, quantity, value } => {
            let whole = order.filled == order.quantity;
            let status = if whole { "FILLED" } else { "PARTIALLY_FILLED" };
            ("TRADE", status, Some((trade_id, quantity, value)))
        }
    };
    let (quantity, value) = trade.map_or((0, 0), |(_, quantity, value)| (quantity, value));
    put(
        out,
        format_args!(
            "{{\"e\":\"executionReport\",\"E\":{time},\"s\":\"{}\",\"c\":\"sim-{}\",\"S\":\"{}\",\
             \"o\":\"LIMIT\",\"f\":\"GTC\",\"q\":\"{}\",\"p\":\"{}\",\"P\":\"0.00000000\",\
             \"F\":\"0.00000000\",\"g\":-1,\"C\":\"\",\"x\":\"{kind}\",\"X\":\"{status}\",\
             \"r\":\"NONE\",\"i\":{},\"l\":\"{}\",\"z\":\"{}\",\"L\":\"{}\",",
            order.symbol,
            order.id,
            if order.buys { "BUY" } else { "SELL" },
            Places(order.quantity),
            Places(order.price),
            order.id,
            Places(quantity),
            Places(order.filled),
            Places(if trade.is_some() { order.price } else { 0 }),
        ),
    );
    match trade {
        // A fee of a thousandth, in what was received.
        Some((id, quantity, value)) => {
            let (fee, asset) =
                if order.buys { (quantity, &order.base) } else { (value, &order.quote) };
            let fee = Places(fee / 1000);
            put(
                out,
                format_args!("\"n\":\"{fee}\",\"N\":\"{asset}\",\"T\":{},\"t\":{id},", time - 1),
            );
        }
        None => put(out, format_args!("\"n\":\"0\",\"N\":null,\"T\":{},\"t\":-1,", time - 1)),
    }
    put(
        out,
        format_args!(
            "\"I\":{},\"w\":{},\"m\":{},\"M\":false,\"O\":{},\"Z\":\"{}\",\"Y\":\"{}\",\
             \"Q\":\"0.00000000\"",
            order.id * 2,
            status != "FILLED" && status != "CANCELED",
            trade.is_some(),
            order.placed,
            Places(order.filled_value),
            Places(value),
        ),
    );
    if !report.in_wrapper {
        put(out, format_args!(",\"account\":\"{account}\""));
    }
    out.extend_from_slice(b"}}");
}

fn open(out: &mut Vec<u8>, instrument: &Instrument, stream: &str) {
    put(out, format_args!("{{\"stream\":\"{}@{stream}\",\"data\":", instrument.lower_case));
}

fn put(out: &mut Vec<u8>, what: fmt::Arguments<'_>) {
    // Writing into memory cannot fail.
    let _ = out.write_fmt(what);
}
