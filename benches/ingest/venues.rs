//! Messages of each venue besides Binance, made here in the shapes that its documents show, and the
//! control that reads the same messages.
//!
//! A control is `serde_json` into a borrowed struct of just the members that make a quote. Members
//! of use stay text (or raw text, where the venue sends numbers): none is read as a number.

use serde::Deserialize;
use serde_json::value::RawValue;

/// Messages of one kind of one venue.
pub struct Speech {
    /// The name of the case.
    pub case: &'static str,
    /// Whose codec reads them.
    pub venue: &'static str,
    /// The message with this number.
    pub message: fn(u64) -> String,
    /// Reads a message; whether it is one that makes a quote.
    pub control: fn(&[u8]) -> bool,
}

/// Every venue that has messages here.
pub const SPEECHES: &[Speech] = &[
    Speech {
        case: "coinbase",
        venue: "coinbase",
        message: coinbase,
        control: |message| {
            let read: Result<Coinbase<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| message.product_id.is_some())
        },
    },
    Speech {
        case: "coinbase-advanced",
        venue: "coinbase-advanced",
        message: coinbase_advanced,
        control: |message| {
            let read: Result<Envelope<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| !message.events.is_empty())
        },
    },
    Speech {
        case: "kraken",
        venue: "kraken",
        message: kraken,
        control: |message| {
            let read: Result<Kraken<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| !message.data.is_empty())
        },
    },
    Speech {
        case: "kraken-v1",
        venue: "kraken",
        message: kraken_first,
        control: |message| {
            let read: Result<(u64, KrakenTicker<'_>, &str, &str), _> =
                serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok()
        },
    },
    Speech {
        case: "bitstamp",
        venue: "bitstamp",
        message: bitstamp,
        control: |message| {
            let read: Result<Bitstamp<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| message.channel.is_some())
        },
    },
];

/// A price, a time of day, and an id that rises.
fn parts(n: u64) -> (String, String, u64) {
    let price = format!("{}.{:02}", 60_000 + n % 97, n % 100);
    let time =
        format!("2024-06-10T{:02}:{:02}:{:02}.121458Z", 6 + n / 3_600 % 17, n / 60 % 60, n % 60);
    (price, time, 70_000_000 + n)
}

fn coinbase(n: u64) -> String {
    let (price, time, id) = parts(n);
    if n.is_multiple_of(2) {
        format!(
            r#"{{"type":"ticker","sequence":{id},"product_id":"BTC-USD","price":"{price}","open_24h":"59102.11","volume_24h":"8123.10420000","low_24h":"58811.42","high_24h":"61090.01","volume_30d":"290100.21000000","best_bid":"{price}","best_bid_size":"0.51230000","best_ask":"60098.12","best_ask_size":"0.00980000","side":"buy","time":"{time}","trade_id":{id},"last_size":"0.00500000"}}"#
        )
    } else {
        format!(
            r#"{{"type":"match","trade_id":{id},"maker_order_id":"6f0c7dfc-1b05-45b0-9f0e-6a9b5a7ac301","taker_order_id":"a1de4f0e-9a0b-4f43-8d0b-3a2f6b9a7a11","side":"sell","size":"0.00500000","price":"{price}","product_id":"BTC-USD","sequence":{id},"time":"{time}"}}"#
        )
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Coinbase<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    product_id: Option<&'a str>,
    sequence: Option<u64>,
    price: Option<&'a str>,
    best_bid: Option<&'a str>,
    best_bid_size: Option<&'a str>,
    best_ask: Option<&'a str>,
    best_ask_size: Option<&'a str>,
    size: Option<&'a str>,
    last_size: Option<&'a str>,
    trade_id: Option<u64>,
    time: Option<&'a str>,
    side: Option<&'a str>,
}

fn coinbase_advanced(n: u64) -> String {
    let (price, time, id) = parts(n);
    if n.is_multiple_of(2) {
        format!(
            r#"{{"channel":"ticker","timestamp":"{time}","sequence_num":{n},"events":[{{"type":"update","tickers":[{{"type":"ticker","product_id":"BTC-USD","price":"{price}","volume_24_h":"2867.54532609","low_24_h":"59675.22","high_24_h":"61252.99","low_52_w":"37717.55","high_52_w":"76296","price_percent_chg_24_h":"0.09601107287722","best_bid":"{price}","best_ask":"60098.12","best_bid_quantity":"0.20371215","best_ask_quantity":"0.24290402"}}]}}]}}"#
        )
    } else {
        format!(
            r#"{{"channel":"market_trades","timestamp":"{time}","sequence_num":{n},"events":[{{"type":"update","trades":[{{"product_id":"BTC-USD","trade_id":"{id}","price":"{price}","size":"0.01034361","time":"{time}","side":"SELL"}}]}}]}}"#
        )
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Envelope<'a> {
    channel: &'a str,
    timestamp: &'a str,
    #[serde(borrow)]
    events: Vec<Rows<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Rows<'a> {
    #[serde(borrow, default)]
    tickers: Vec<Row<'a>>,
    #[serde(borrow, default)]
    trades: Vec<Row<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Row<'a> {
    product_id: &'a str,
    price: Option<&'a str>,
    best_bid: Option<&'a str>,
    best_bid_quantity: Option<&'a str>,
    best_ask: Option<&'a str>,
    best_ask_quantity: Option<&'a str>,
    size: Option<&'a str>,
    trade_id: Option<&'a str>,
    time: Option<&'a str>,
    side: Option<&'a str>,
}

fn kraken(n: u64) -> String {
    let (price, time, id) = parts(n);
    if n.is_multiple_of(2) {
        format!(
            r#"{{"channel":"ticker","type":"update","data":[{{"symbol":"BTC/USD","bid":{price},"bid_qty":2.51000000,"ask":60098.10,"ask_qty":0.98000000,"last":{price},"volume":163.28808096,"vwap":60102.39279,"low":58711.00,"high":61613.10,"change":250.00,"change_pct":0.24,"timestamp":"{time}"}}]}}"#
        )
    } else {
        format!(
            r#"{{"channel":"trade","type":"update","data":[{{"symbol":"BTC/USD","side":"buy","price":{price},"qty":0.00027625,"ord_type":"limit","trade_id":{id},"timestamp":"{time}"}}]}}"#
        )
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Kraken<'a> {
    channel: &'a str,
    #[serde(borrow)]
    data: Vec<KrakenRow<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct KrakenRow<'a> {
    symbol: &'a str,
    #[serde(borrow)]
    bid: Option<&'a RawValue>,
    #[serde(borrow)]
    bid_qty: Option<&'a RawValue>,
    #[serde(borrow)]
    ask: Option<&'a RawValue>,
    #[serde(borrow)]
    ask_qty: Option<&'a RawValue>,
    #[serde(borrow)]
    last: Option<&'a RawValue>,
    #[serde(borrow)]
    price: Option<&'a RawValue>,
    #[serde(borrow)]
    qty: Option<&'a RawValue>,
    trade_id: Option<u64>,
    timestamp: Option<&'a str>,
    side: Option<&'a str>,
    ord_type: Option<&'a str>,
}

fn kraken_first(n: u64) -> String {
    let (price, ..) = parts(n);
    format!(
        r#"[1668,{{"a":["60098.10000",35,"35.72892241"],"b":["{price}000",185,"185.18432037"],"c":["{price}000","3.71672000"],"v":["26560.85364463","72035.05488104"],"p":["60152.90031","60173.47342"],"t":[640,1353],"l":["59102.18000","58813.18000"],"h":["61394.20000","61421.12000"],"o":["60380.40000","59942.83000"]}},"ticker","XBT/USD"]"#
    )
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct KrakenTicker<'a> {
    #[serde(borrow)]
    a: (&'a str, u64, &'a str),
    #[serde(borrow)]
    b: (&'a str, u64, &'a str),
    #[serde(borrow)]
    c: (&'a str, &'a str),
}

fn bitstamp(n: u64) -> String {
    let (price, _, id) = parts(n);
    let (seconds, micros) = (1_718_000_000 + n / 9, 1_718_000_000_121_000 + n * 111_111);
    if n.is_multiple_of(2) {
        let levels = r#",["60001.11","0.51230000"],["60000.02","1.20000000"]"#.repeat(10);
        format!(
            r#"{{"data":{{"timestamp":"{seconds}","microtimestamp":"{micros}","bids":[["{price}","0.92200000"]{levels}],"asks":[["60098.12","2.89000000"]{levels}]}},"channel":"order_book_btcusd","event":"data"}}"#
        )
    } else {
        format!(
            r#"{{"data":{{"id":{id},"timestamp":"{seconds}","amount":0.0792,"amount_str":"0.07920000","price":{price},"price_str":"{price}","type":0,"microtimestamp":"{micros}","buy_order_id":1443875737346049,"sell_order_id":1443875731320832}},"channel":"live_trades_btcusd","event":"trade"}}"#
        )
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Bitstamp<'a> {
    event: &'a str,
    channel: Option<&'a str>,
    #[serde(borrow)]
    data: BitstampData<'a>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct BitstampData<'a> {
    id: Option<u64>,
    price_str: Option<&'a str>,
    amount_str: Option<&'a str>,
    microtimestamp: Option<&'a str>,
    #[serde(borrow)]
    bids: Option<Vec<(&'a str, &'a str)>>,
    #[serde(borrow)]
    asks: Option<Vec<(&'a str, &'a str)>>,
}
