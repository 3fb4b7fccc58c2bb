//! Messages of every venue in the shapes that its documents show, and what they mean.

use tidegate::market::Quote;

use super::subject::{RECEIVED, Subject, decimal};

/// What a number in a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Bid,
    BidSize,
    Ask,
    AskSize,
    Last,
    LastSize,
    /// The id by which messages of the stream are ordered.
    Order,
    Time,
}

/// A message that makes a quote.
pub(crate) struct Sample {
    pub(crate) venue: &'static str,
    pub(crate) instrument: &'static str,
    pub(crate) message: &'static str,
    /// Each number of use: its member and what it is.
    pub(crate) numbers: &'static [(&'static str, Role)],
    /// When the venue says it happened, in milliseconds.
    pub(crate) venue_time_ms: Option<i64>,
}

impl Role {
    /// What the quote holds in this role.
    pub(crate) fn of(self, quote: &Quote) -> Option<tidegate::market::Decimal> {
        match self {
            Self::Bid => quote.bid,
            Self::BidSize => quote.bid_size,
            Self::Ask => quote.ask,
            Self::AskSize => quote.ask_size,
            Self::Last => quote.last,
            Self::LastSize => quote.last_size,
            Self::Order | Self::Time => None,
        }
    }

    pub(crate) fn is_price_or_size(self) -> bool {
        !matches!(self, Self::Order | Self::Time)
    }
}

const BOOK: &[(&str, Role)] = &[
    ("b", Role::Bid),
    ("B", Role::BidSize),
    ("a", Role::Ask),
    ("A", Role::AskSize),
    ("u", Role::Order),
];
const TRADE: &[(&str, Role)] =
    &[("p", Role::Last), ("q", Role::LastSize), ("t", Role::Order), ("T", Role::Time)];
const AGGREGATE: &[(&str, Role)] =
    &[("p", Role::Last), ("q", Role::LastSize), ("a", Role::Order), ("T", Role::Time)];

pub(crate) const SAMPLES: &[Sample] = &[
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"u":8800100200,"s":"SOLUSDT","b":"151.73000000","B":"20.51000000","a":"151.74000000","A":"0.98000000"}"#,
        numbers: BOOK,
        venue_time_ms: None,
    },
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"stream":"solusdt@bookTicker","data":{"u":8800100200,"s":"SOLUSDT","b":"151.73000000","B":"20.51000000","a":"151.74000000","A":"0.98000000"}}"#,
        numbers: BOOK,
        venue_time_ms: None,
    },
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"stream":"solusdt@trade","data":{"e":"trade","E":1718000000123,"s":"SOLUSDT","t":71002003,"p":"151.74000000","q":"0.50000000","T":1718000000121,"m":false,"M":true}}"#,
        numbers: TRADE,
        venue_time_ms: Some(1_718_000_000_121),
    },
    Sample {
        venue: "binance",
        instrument: "binance:SOLUSDT",
        message: r#"{"e":"aggTrade","E":1718000000123,"s":"SOLUSDT","a":4400500,"p":"151.74000000","q":"0.50000000","f":71002003,"l":71002004,"T":1718000000121,"m":false,"M":true}"#,
        numbers: AGGREGATE,
        venue_time_ms: Some(1_718_000_000_121),
    },
    Sample {
        venue: "binance-usdm",
        instrument: "binance-usdm:SOLUSDT",
        message: r#"{"stream":"solusdt@bookTicker","data":{"e":"bookTicker","u":9911223344,"s":"SOLUSDT","b":"151.730","B":"20","a":"151.740","A":"31","T":1718000000121,"E":1718000000124}}"#,
        numbers: BOOK,
        venue_time_ms: Some(1_718_000_000_121),
    },
    Sample {
        venue: "binance-usdm",
        instrument: "binance-usdm:SOLUSDT",
        message: r#"{"stream":"solusdt@trade","data":{"e":"trade","E":1718000000123,"T":1718000000121,"s":"SOLUSDT","t":71002003,"p":"151.740","q":"5","X":"MARKET","m":true}}"#,
        numbers: TRADE,
        venue_time_ms: Some(1_718_000_000_121),
    },
    Sample {
        venue: "binance-usdm",
        instrument: "binance-usdm:SOLUSDT",
        message: r#"{"e":"aggTrade","E":1718000000123,"a":4400500,"s":"SOLUSDT","p":"151.740","q":"5","f":100,"l":105,"T":1718000000121,"m":true}"#,
        numbers: AGGREGATE,
        venue_time_ms: Some(1_718_000_000_121),
    },
    Sample {
        venue: "binance-cm",
        instrument: "binance-cm:SOLUSD_PERP",
        message: r#"{"stream":"solusd_perp@bookTicker","data":{"u":771122334455,"e":"bookTicker","s":"SOLUSD_PERP","ps":"SOLUSD","b":"151.7","B":"35","a":"151.8","A":"1645","T":1718000000121,"E":1718000000124}}"#,
        numbers: BOOK,
        venue_time_ms: Some(1_718_000_000_121),
    },
    Sample {
        venue: "binance-cm",
        instrument: "binance-cm:SOLUSD_PERP",
        message: r#"{"stream":"solusd_perp@trade","data":{"e":"trade","E":1718000000123,"T":1718000000121,"s":"SOLUSD_PERP","t":849714,"p":"151.8","q":"4","X":"MARKET","m":false}}"#,
        numbers: TRADE,
        venue_time_ms: Some(1_718_000_000_121),
    },
];

/// A spot order of the account, executed in part.
pub(crate) const SPOT_FILL: &str = r#"{"e":"executionReport","E":1718000000124,"s":"SOLUSDT","c":"mine-17","S":"BUY","o":"LIMIT","f":"GTC","q":"2.00000000","p":"151.80000000","P":"0.00000000","F":"0.00000000","g":-1,"C":"","x":"TRADE","X":"PARTIALLY_FILLED","r":"NONE","i":5510,"l":"0.50000000","z":"0.50000000","L":"151.74000000","n":"0.0001","N":"SOL","T":1718000000121,"t":71002003,"I":9001,"w":false,"m":false,"M":true,"O":1718000000100,"Z":"75.87000000","Y":"75.87000000","Q":"0.00000000"}"#;

/// A futures order of the account, executed in full.
pub(crate) const FUTURES_FILL: &str = r#"{"e":"ORDER_TRADE_UPDATE","T":1718000000122,"E":1718000000124,"o":{"s":"SOLUSDT","c":"mine-18","S":"SELL","o":"MARKET","f":"GTC","q":"5","p":"0","ap":"151.740","sp":"0","x":"TRADE","X":"FILLED","i":5511,"l":"5","z":"5","L":"151.740","N":"USDT","n":"0.3","T":1718000000121,"t":71002003,"b":"0","a":"0","m":false,"R":false,"wt":"CONTRACT_PRICE","ot":"MARKET","ps":"BOTH","cp":false,"rp":"0"}}"#;

#[test]
fn every_sample_means_what_it_says() {
    for sample in SAMPLES {
        let mut subject = Subject::new(sample.venue);
        let quote = subject.quote(sample.message);
        assert_eq!(subject.name(), sample.instrument);
        assert!(subject.oddities.is_empty(), "{}: {:?}", sample.message, subject.oddities);
        assert_eq!((quote.tick, quote.receive_time), (1, RECEIVED));
        assert_eq!(quote.venue_time, sample.venue_time_ms.map(|ms| ms * 1_000_000));
        for role in [Role::Bid, Role::BidSize, Role::Ask, Role::AskSize, Role::Last, Role::LastSize]
        {
            let member = sample.numbers.iter().find(|(_, r)| *r == role).map(|(member, _)| member);
            let expected = member.map(|m| super::subject::get(sample.message, m).trim_matches('"'));
            let held = role.of(&quote);
            assert_eq!(held, expected.map(decimal), "{role:?} of {}", sample.message);
            assert_eq!(held.map(|d| d.scale()), expected.map(|d| decimal(d).scale()));
        }
        let quote = subject.quote(sample.message);
        assert_eq!(quote.tick, 2, "an unchanged message is a tick");
    }
}

#[test]
fn what_is_dispatched_is_complete_whichever_stream_the_message_came_on() {
    for venue in ["binance", "binance-usdm", "binance-cm"] {
        let mut subject = Subject::new(venue);
        let mut whole = Quote::default();
        for (count, sample) in SAMPLES.iter().filter(|s| s.venue == venue).enumerate() {
            let quote = subject.quote(sample.message);
            for (_, role) in sample.numbers {
                match role {
                    Role::Bid => whole.bid = quote.bid,
                    Role::BidSize => whole.bid_size = quote.bid_size,
                    Role::Ask => whole.ask = quote.ask,
                    Role::AskSize => whole.ask_size = quote.ask_size,
                    Role::Last => whole.last = quote.last,
                    Role::LastSize => whole.last_size = quote.last_size,
                    Role::Order | Role::Time => {}
                }
            }
            whole.tick = count as u64 + 1;
            whole.venue_time = quote.venue_time;
            whole.receive_time = RECEIVED;
            assert_eq!(quote, whole);
        }
        assert!(whole.bid.is_some() && whole.last.is_some());
    }
}
