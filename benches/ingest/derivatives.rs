//! Messages of the venues of derivatives, made here in the shapes that their documents show, and the
//! control that reads the same messages: see `venues`.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::venues::Speech;

/// Every venue that has messages here.
pub const SPEECHES: &[Speech] = &[
    Speech {
        case: "bybit",
        venue: "bybit",
        message: bybit,
        control: |message| {
            let read: Result<Bybit<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| message.topic.is_some())
        },
    },
    Speech {
        case: "bybit-trades",
        venue: "bybit",
        message: bybit_trade,
        control: |message| {
            let read: Result<BybitTrades<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| !message.data.is_empty())
        },
    },
    Speech {
        case: "okx",
        venue: "okx",
        message: okx,
        control: |message| {
            let read: Result<Okx<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| !message.data.is_empty())
        },
    },
    Speech {
        case: "bitmex",
        venue: "bitmex",
        message: bitmex,
        control: |message| {
            let read: Result<Bitmex<'_>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok_and(|message| !message.data.is_empty())
        },
    },
    Speech {
        case: "deribit",
        venue: "deribit",
        message: deribit,
        control: |message| {
            if memchr::memmem::find(message, b"\"data\":[").is_some() {
                let read: Result<Deribit<'_, Vec<DeribitRow<'_>>>, _> =
                    serde_json::from_slice(message);
                std::hint::black_box(&read);
                return read.is_ok();
            }
            let read: Result<Deribit<'_, DeribitRow<'_>>, _> = serde_json::from_slice(message);
            std::hint::black_box(&read);
            read.is_ok()
        },
    },
];

/// A price, a time in milliseconds, and an id that rises.
fn parts(n: u64) -> (String, u64, u64) {
    (format!("{}.{:02}", 60_000 + n % 97, n % 100), 1_718_000_000_121 + n / 9, 70_000_000 + n)
}

fn bybit(n: u64) -> String {
    let (price, time, id) = parts(n);
    match n % 50 {
        0 => format!(
            r#"{{"topic":"tickers.BTCUSDT","type":"snapshot","data":{{"symbol":"BTCUSDT","tickDirection":"ZeroPlusTick","price24hPcnt":"0.001624","lastPrice":"{price}","prevPrice24h":"65008.70","highPrice24h":"65282.30","lowPrice24h":"64694.40","markPrice":"65117.44","indexPrice":"65137.76","openInterest":"59891.732","fundingRate":"0.0001","bid1Price":"{price}","bid1Size":"5.954","ask1Price":"65114.30","ask1Size":"10.470"}},"cs":{id},"ts":{time}}}"#
        ),
        step if step % 2 == 0 => format!(
            r#"{{"topic":"tickers.BTCUSDT","type":"delta","data":{{"symbol":"BTCUSDT","bid1Price":"{price}","bid1Size":"6.054","ask1Price":"65114.30","ask1Size":"10.486"}},"cs":{id},"ts":{time}}}"#
        ),
        _ => format!(
            r#"{{"topic":"orderbook.1.BTCUSDT","type":"snapshot","ts":{time},"data":{{"s":"BTCUSDT","b":[["{price}","16.493"]],"a":[["65114.30","1.104"]],"u":{id},"seq":{id}}},"cts":{time}}}"#
        ),
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Bybit<'a> {
    topic: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'a str,
    ts: u64,
    cs: Option<u64>,
    #[serde(borrow)]
    data: BybitData<'a>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct BybitData<'a> {
    symbol: Option<&'a str>,
    s: Option<&'a str>,
    #[serde(rename = "lastPrice")]
    last: Option<&'a str>,
    #[serde(rename = "bid1Price")]
    bid: Option<&'a str>,
    #[serde(rename = "bid1Size")]
    bid_size: Option<&'a str>,
    #[serde(rename = "ask1Price")]
    ask: Option<&'a str>,
    #[serde(rename = "ask1Size")]
    ask_size: Option<&'a str>,
    #[serde(borrow)]
    b: Option<Vec<(&'a str, &'a str)>>,
    #[serde(borrow)]
    a: Option<Vec<(&'a str, &'a str)>>,
    u: Option<u64>,
    seq: Option<u64>,
}

fn bybit_trade(n: u64) -> String {
    let (price, time, id) = parts(n);
    format!(
        r#"{{"topic":"publicTrade.BTCUSDT","type":"snapshot","ts":{time},"data":[{{"T":{time},"s":"BTCUSDT","S":"Sell","v":"0.004","p":"{price}","L":"MinusTick","i":"{n:08x}-82bc-50de-be60-03eedbe3cdd7","BT":false,"RPI":false,"seq":{id}}}]}}"#
    )
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct BybitTrades<'a> {
    topic: &'a str,
    #[serde(borrow)]
    data: Vec<BybitTrade<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct BybitTrade<'a> {
    #[serde(rename = "T")]
    time: u64,
    s: &'a str,
    #[serde(rename = "S")]
    side: &'a str,
    v: &'a str,
    p: &'a str,
    i: &'a str,
}

fn okx(n: u64) -> String {
    let (price, time, id) = parts(n);
    match n % 3 {
        0 => format!(
            r#"{{"arg":{{"channel":"tickers","instId":"BTC-USDT"}},"data":[{{"instType":"SPOT","instId":"BTC-USDT","last":"{price}","lastSz":"0.00000088","askPx":"30230.3","askSz":"1.92174778","bidPx":"{price}","bidSz":"0.4112","open24h":"29571.4","high24h":"31003.3","low24h":"27930.8","sodUtc0":"28935.3","sodUtc8":"30320.5","volCcy24h":"2620.289","vol24h":"779573","ts":"{time}"}}]}}"#
        ),
        1 => format!(
            r#"{{"arg":{{"channel":"trades","instId":"BTC-USDT"}},"data":[{{"instId":"BTC-USDT","tradeId":"{id}","px":"{price}","sz":"0.00132","side":"buy","ts":"{time}"}}]}}"#
        ),
        _ => format!(
            r#"{{"arg":{{"channel":"bbo-tbt","instId":"BTC-USDT"}},"data":[{{"asks":[["30230.3","1.92174778","0","13"]],"bids":[["{price}","0.4112","0","12"]],"ts":"{time}","seqId":{id}}}]}}"#
        ),
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Okx<'a> {
    #[serde(borrow)]
    arg: OkxArgument<'a>,
    #[serde(borrow)]
    data: Vec<OkxRow<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct OkxArgument<'a> {
    channel: &'a str,
    #[serde(rename = "instId")]
    instrument: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct OkxRow<'a> {
    inst_id: Option<&'a str>,
    last: Option<&'a str>,
    last_sz: Option<&'a str>,
    ask_px: Option<&'a str>,
    ask_sz: Option<&'a str>,
    bid_px: Option<&'a str>,
    bid_sz: Option<&'a str>,
    ts: &'a str,
    trade_id: Option<&'a str>,
    px: Option<&'a str>,
    sz: Option<&'a str>,
    side: Option<&'a str>,
    #[serde(borrow)]
    asks: Option<Vec<[&'a str; 4]>>,
    #[serde(borrow)]
    bids: Option<Vec<[&'a str; 4]>>,
    seq_id: Option<u64>,
}

fn bitmex(n: u64) -> String {
    let (price, _, _) = parts(n);
    let time =
        format!("2024-06-10T{:02}:{:02}:{:02}.121Z", 6 + n / 3_600 % 17, n / 60 % 60, n % 60);
    if n.is_multiple_of(2) {
        format!(
            r#"{{"table":"quote","action":"insert","data":[{{"timestamp":"{time}","symbol":"XBTUSD","bidSize":1046200,"bidPrice":{price},"askPrice":60098.5,"askSize":161000}}]}}"#
        )
    } else {
        format!(
            r#"{{"table":"trade","action":"insert","data":[{{"timestamp":"{time}","symbol":"XBTUSD","side":"Buy","size":1000,"price":{price},"tickDirection":"ZeroMinusTick","trdMatchID":"{n:08x}-ff0c-d428-cde7-d166a181c1d2","grossValue":3108000,"homeNotional":0.03108,"foreignNotional":1000}}]}}"#
        )
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Bitmex<'a> {
    table: &'a str,
    action: &'a str,
    #[serde(borrow)]
    data: Vec<BitmexRow<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct BitmexRow<'a> {
    timestamp: &'a str,
    symbol: &'a str,
    #[serde(borrow)]
    bid_size: Option<&'a RawValue>,
    #[serde(borrow)]
    bid_price: Option<&'a RawValue>,
    #[serde(borrow)]
    ask_price: Option<&'a RawValue>,
    #[serde(borrow)]
    ask_size: Option<&'a RawValue>,
    #[serde(borrow)]
    size: Option<&'a RawValue>,
    #[serde(borrow)]
    price: Option<&'a RawValue>,
    side: Option<&'a str>,
    #[serde(rename = "trdMatchID")]
    id: Option<&'a str>,
}

fn deribit(n: u64) -> String {
    let (price, time, id) = parts(n);
    match n % 3 {
        0 => format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"ticker.BTC-PERPETUAL.raw","data":{{"timestamp":{time},"state":"open","stats":{{"high":93612.0,"low":89277.5,"price_change":2.3275,"volume":11897.27640428,"volume_usd":1092371540.0}},"index_price":92263.55,"instrument_name":"BTC-PERPETUAL","last_price":{price},"settlement_price":92464.66,"min_price":90897.5,"max_price":93666.5,"open_interest":1132329370.0,"mark_price":92281.78,"best_ask_price":60098.5,"best_bid_price":{price},"estimated_delivery_price":92263.55,"best_ask_amount":186520.0,"best_bid_amount":117660.0,"current_funding":0.0,"funding_8h":0.00001742}}}}}}"#
        ),
        1 => format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"quote.BTC-PERPETUAL","data":{{"timestamp":{time},"instrument_name":"BTC-PERPETUAL","best_ask_price":60098.5,"best_bid_price":{price},"best_ask_amount":99470.0,"best_bid_amount":133440.0}}}}}}"#
        ),
        _ => format!(
            r#"{{"jsonrpc":"2.0","method":"subscription","params":{{"channel":"trades.BTC-PERPETUAL.raw","data":[{{"timestamp":{time},"price":{price},"amount":10.0,"direction":"sell","index_price":92276.75,"instrument_name":"BTC-PERPETUAL","trade_seq":{id},"mark_price":92287.11,"tick_direction":2,"contracts":1.0,"trade_id":"403691824"}}]}}}}"#
        ),
    }
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Deribit<'a, D> {
    method: &'a str,
    params: DeribitParams<'a, D>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct DeribitParams<'a, D> {
    channel: &'a str,
    data: D,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct DeribitRow<'a> {
    timestamp: u64,
    instrument_name: &'a str,
    #[serde(borrow)]
    last_price: Option<&'a RawValue>,
    #[serde(borrow)]
    best_bid_price: Option<&'a RawValue>,
    #[serde(borrow)]
    best_bid_amount: Option<&'a RawValue>,
    #[serde(borrow)]
    best_ask_price: Option<&'a RawValue>,
    #[serde(borrow)]
    best_ask_amount: Option<&'a RawValue>,
    #[serde(borrow)]
    price: Option<&'a RawValue>,
    #[serde(borrow)]
    amount: Option<&'a RawValue>,
    trade_seq: Option<u64>,
    direction: Option<&'a str>,
}
