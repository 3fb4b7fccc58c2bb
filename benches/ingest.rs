//! How fast messages become events.
//!
//! The messages are the five Binance recordings made at the same time, merged by receive time, when
//! they are at hand; else messages of the same shapes made here, and the bench says which.
//!
//! | case | what one operation is |
//! |---|---|
//! | `codec` | one message of the merged recordings through its venue's codec |
//! | `pipeline` | one message through codec, conflation worker and the board's stage, all on one thread |
//! | `codec-book-ticker`, `codec-trade`, `codec-depth` | the same, messages of one kind only |
//! | `codec-VENUE`, `pipeline-VENUE` | the first two, of messages of another venue, made here |
//!
//! The control is `serde_json` alone, into a borrowed struct that holds what a quote is made of: it
//! reads no number, keeps no state and decides nothing.
//!
//! What the figures do not represent: decompression, sockets, and a cold cache. All messages lie in
//! memory one behind the other and are read in a loop on one core, and the recordings hold five
//! instruments, so every state stays in the cache. The other venues' messages are of one instrument,
//! half quotes and half trades, so each is one that is used: in a real feed most may not be.

#[path = "ingest/derivatives.rs"]
#[allow(unreachable_pub, reason = "shared with this bench alone")]
mod derivatives;
mod harness;
#[path = "ingest/pipeline.rs"]
#[allow(unreachable_pub, reason = "shared with this bench alone")]
mod pipeline;
#[path = "../tests/it/venue/recordings.rs"]
mod recordings;
#[path = "ingest/venues.rs"]
#[allow(unreachable_pub, reason = "shared with this bench alone")]
mod venues;

use std::hint::black_box;
use std::sync::Arc;

use serde::Deserialize;
use tidegate::market::{Accounts, FeedId, Instruments};
use tidegate::venue::{self, Class, Codec, Context, Unused};

use harness::{Report, control, ours, per_operation, short};
use venues::{SPEECHES, Speech};

/// Messages of several feeds on one clock.
struct Corpus {
    /// The venue of each feed.
    venues: Vec<&'static str>,
    text: Vec<u8>,
    /// Feed, receive time, and where the message stands in the text.
    messages: Vec<(usize, i64, std::ops::Range<usize>)>,
    /// Reads a message with `serde_json` alone; whether it has what every quote has.
    control: fn(&[u8]) -> bool,
}

impl Corpus {
    fn load() -> Self {
        match recordings::binance() {
            Some(recordings) => {
                println!("messages: five Binance recordings, merged by receive time");
                Self::merged(&recordings)
            }
            None => {
                println!("messages: generated (no recordings at hand)");
                Self::generated()
            }
        }
    }

    fn merged(recordings: &[recordings::Recording]) -> Self {
        let mut all: Vec<(usize, i64, &[u8])> = Vec::new();
        for (feed, recording) in recordings.iter().enumerate() {
            all.extend(recording.messages().map(|(time, message)| (feed, time, message)));
        }
        all.sort_by_key(|&(_, time, _)| time);
        Self::of(recordings.iter().map(|r| r.venue).collect(), all)
    }

    fn generated() -> Self {
        let mut owned = Vec::new();
        for n in 0..100_000_u64 {
            let (price, id, time) = (60_000 + n % 97, 5_000_000 + n, 1_723_161_256_313 + n / 9);
            owned.push(match n % 8 {
                0..=3 => format!(
                    r#"{{"stream":"btcusdt@bookTicker","data":{{"e":"bookTicker","u":{id},"s":"BTCUSDT","b":"{price}.20","B":"2.507","a":"{price}.30","A":"2.510","T":{time},"E":{time}}}}}"#
                ),
                4 | 5 => format!(
                    r#"{{"stream":"btcusdt@trade","data":{{"e":"trade","E":{time},"T":{time},"s":"BTCUSDT","t":{id},"p":"{price}.20","q":"0.020","X":"MARKET","m":true}}}}"#
                ),
                _ => {
                    let level = format!(r#"["{price}.60","1001"],"#).repeat(12);
                    let level = level.trim_end_matches(',');
                    format!(
                        r#"{{"stream":"btcusdt@depth@0ms","data":{{"e":"depthUpdate","E":{time},"T":{time},"s":"BTCUSDT","U":{id},"u":{id},"pu":{id},"b":[{level}],"a":[{level}]}}}}"#
                    )
                }
            });
        }
        let all = owned.iter().map(|message| (0, 0, message.as_bytes())).collect();
        Self::of(vec!["binance-usdm"], all)
    }

    fn of(venues: Vec<&'static str>, all: Vec<(usize, i64, &[u8])>) -> Self {
        let mut corpus =
            Self { venues, text: Vec::new(), messages: Vec::new(), control: has_symbol };
        for (feed, time, message) in all {
            let start = corpus.text.len();
            corpus.text.extend_from_slice(message);
            corpus.messages.push((feed, time, start..corpus.text.len()));
        }
        corpus
    }

    fn codecs(&self) -> Vec<Box<dyn Codec>> {
        let instruments = Arc::new(Instruments::new(1_000));
        let accounts = Arc::new(Accounts::new(10));
        let context = |feed| Context {
            instruments: Arc::clone(&instruments),
            accounts: Arc::clone(&accounts),
            feed: FeedId(u16::try_from(feed).unwrap_or(u16::MAX)),
            account: None,
        };
        let codec = |(feed, venue)| venue::codec(venue, context(feed));
        self.venues.iter().copied().enumerate().filter_map(codec).collect()
    }

    /// Those messages whose class is `wanted`, with the same feeds.
    fn only(&self, wanted: impl Fn(Class, &[u8]) -> bool) -> Self {
        let mut codecs = self.codecs();
        let mut events = Vec::new();
        let mut kept = Vec::new();
        for (feed, time, range) in &self.messages {
            let message = &self.text[range.clone()];
            let class = codecs[*feed].decode(message, *time, &mut events).class;
            events.clear();
            if wanted(class, message) {
                kept.push((*feed, *time, message));
            }
        }
        Self::of(self.venues.clone(), kept)
    }

    /// Reads every message; answers how many events that made.
    fn decode(&self, codecs: &mut [Box<dyn Codec>]) -> u64 {
        let mut events = Vec::with_capacity(8);
        let mut made = 0;
        for (feed, time, range) in &self.messages {
            codecs[*feed].decode(&self.text[range.clone()], *time, &mut events);
            made += black_box(&events).len() as u64;
            events.clear();
        }
        made
    }

    /// Reads every message with `serde_json` alone; answers how many had what a quote has.
    fn control(&self) -> u64 {
        let read = |range: &std::ops::Range<usize>| (self.control)(&self.text[range.clone()]);
        self.messages.iter().map(|(_, _, range)| u64::from(read(range))).sum()
    }

    /// Messages of another venue.
    fn of_speech(speech: &Speech) -> Self {
        let owned: Vec<String> = (0..50_000).map(speech.message).collect();
        let time = 1_718_000_000_000_000_000;
        let all = owned.iter().map(|message| (0, time, message.as_bytes())).collect();
        Self { control: speech.control, ..Self::of(vec![speech.venue], all) }
    }
}

/// Whether a message of Binance has a symbol.
fn has_symbol(message: &[u8]) -> bool {
    let message: Result<Wrapped<'_>, _> = serde_json::from_slice(message);
    let message = black_box(message);
    message.is_ok_and(|message| message.data.is_some_and(|data| data.s.is_some()))
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Wrapped<'a> {
    #[serde(borrow)]
    stream: Option<&'a str>,
    #[serde(borrow)]
    data: Option<Data<'a>>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
struct Data<'a> {
    e: Option<&'a str>,
    s: Option<&'a str>,
    u: Option<u64>,
    t: Option<u64>,
    #[serde(rename = "T")]
    transaction: Option<u64>,
    #[serde(rename = "E")]
    event: Option<u64>,
    #[serde(borrow, default)]
    b: Loose<'a>,
    #[serde(rename = "B")]
    bid_size: Option<&'a str>,
    #[serde(borrow, default)]
    a: Loose<'a>,
    #[serde(rename = "A")]
    ask_size: Option<&'a str>,
    p: Option<&'a str>,
    q: Option<&'a str>,
}

/// A price in a quote, levels in a change of the book, which nobody needs.
#[derive(Default)]
#[allow(dead_code, reason = "read by nobody: the control measures the reading")]
enum Loose<'a> {
    #[default]
    Absent,
    Price(&'a str),
    Levels,
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Loose<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a price or levels")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Loose::Price(text))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut levels: A,
            ) -> Result<Self::Value, A::Error> {
                while levels.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                Ok(Loose::Levels)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// Checks that the corpus is read as it should be, then times it.
fn case(report: &mut Report, name: &str, corpus: &Corpus, rounds: usize) {
    let count = corpus.messages.len() as u64;
    println!("\n{name}: {count} messages of {} bytes on average", corpus.text.len() as u64 / count);
    let made = corpus.decode(&mut corpus.codecs());
    let read = corpus.control();
    println!("  {made} events; the control found a quote's members in {read}");
    assert!(read >= made, "the control must read every message that makes a quote");
    let subjects = vec![
        ours("ours", || {
            let mut codecs = corpus.codecs();
            per_operation(count, || {
                black_box(corpus.decode(&mut codecs));
            })
        }),
        control("serde-json", || {
            per_operation(count, || {
                black_box(corpus.control());
            })
        }),
    ];
    report.case("ingest", name, rounds, subjects);
}

/// The whole of ingest, checked, then timed beside the same control.
fn whole(report: &mut Report, name: &str, corpus: &Corpus, rounds: usize) {
    let count = corpus.messages.len() as u64;
    let made = corpus.decode(&mut corpus.codecs());
    let mut pipeline = pipeline::Pipeline::new(&corpus.venues);
    let mut before = 0;
    let mut run = || {
        let messages = corpus.messages.iter();
        let ticks = pipeline
            .run(messages.map(|(feed, time, range)| (*feed, *time, &corpus.text[range.clone()])));
        pipeline.new_session();
        assert_eq!(ticks - before, made, "every event is a tick on the board");
        before = ticks;
    };
    run();
    let subjects = vec![
        ours("ours", || per_operation(count, &mut run)),
        control("serde-json", || {
            per_operation(count, || {
                black_box(corpus.control());
            })
        }),
    ];
    report.case("ingest", name, rounds, subjects);
}

fn main() {
    let rounds = if short() { 5 } else { 21 };
    let corpus = Corpus::load();
    let mut report = Report::default();
    case(&mut report, "codec", &corpus, rounds);
    whole(&mut report, "pipeline", &corpus, rounds);
    let quotes = |trade: bool| {
        corpus.only(|class, message| {
            let is_trade = memchr::memmem::find(message, b"@trade").is_some();
            class == Class::Quote && is_trade == trade
        })
    };
    case(&mut report, "codec-book-ticker", &quotes(false), rounds);
    case(&mut report, "codec-trade", &quotes(true), rounds);
    let depth = corpus.only(|class, _| class == Class::Unused(Unused::Depth));
    case(&mut report, "codec-depth", &depth, rounds);
    for speech in SPEECHES.iter().chain(derivatives::SPEECHES) {
        let corpus = Corpus::of_speech(speech);
        assert_eq!(corpus.decode(&mut corpus.codecs()), corpus.messages.len() as u64);
        case(&mut report, &format!("codec-{}", speech.case), &corpus, rounds);
        whole(&mut report, &format!("pipeline-{}", speech.case), &corpus, rounds);
    }
    report.close();
}
