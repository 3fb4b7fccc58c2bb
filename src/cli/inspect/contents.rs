//! What a recording holds, counted with its venue's codec.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::stream;
use crate::feed::{BadCount, Inspection, Record};
use crate::market::{AccountId, Accounts, FeedId, InstrumentId, Instruments, Quote, Volume};
use crate::venue::{Class, Codec, Context, Event, Oddity, codec};

/// Instruments that are told apart, at most; a codec refuses more.
const MAX_INSTRUMENTS: usize = 1_000_000;
/// Accounts that are told apart, at most; a codec refuses more.
const MAX_ACCOUNTS: usize = 100_000;
/// Kinds of streams that are told apart, at most; further ones are counted together.
const MAX_STREAMS: usize = 64;

/// What one recording holds, as `--json` prints it. Names and meanings of the members are stable;
/// times are nanoseconds since the Unix epoch, prices and quantities are strings with exact digits.
#[derive(Debug, Serialize)]
pub(super) struct Contents {
    pub(super) file: String,
    pub(super) venue: String,
    /// `plain`, `gzip` or `zstd`.
    pub(super) compression: String,
    pub(super) format: Option<String>,
    /// Bytes of the file that were used; fewer than it has if it is damaged.
    pub(super) file_bytes: u64,
    /// Bytes of the messages, unpacked.
    pub(super) text_bytes: u64,
    pub(super) lines: u64,
    pub(super) messages: u64,
    /// Connections made and broken.
    pub(super) marks: u64,
    pub(super) blank_lines: u64,
    pub(super) crlf_lines: u64,
    pub(super) other_records: u64,
    pub(super) times_out_of_range: u64,
    pub(super) first_time: Option<i64>,
    pub(super) last_time: Option<i64>,
    pub(super) span_ns: u64,
    pub(super) longest_gap_ns: u64,
    pub(super) out_of_order: u64,
    /// Messages by what they are: these six add up to `messages`.
    pub(super) quotes: u64,
    pub(super) fills: u64,
    pub(super) unused: BTreeMap<&'static str, u64>,
    pub(super) control: BTreeMap<&'static str, u64>,
    pub(super) unknown: u64,
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// What was odd about messages that were used.
    pub(super) oddities: BTreeMap<&'static str, u64>,
    /// What the last refused, unknown or error message was about.
    pub(super) last_problem: Option<String>,
    /// Messages by the stream they came over.
    pub(super) streams: BTreeMap<String, u64>,
    /// Instruments in the order of their first tick.
    pub(super) instruments: Vec<Instrument>,
    /// Fills added up, in the order of the accounts' first fills.
    pub(super) volumes: Vec<AccountVolume>,
    /// Fills whose sum has no exact form, and which `volumes` therefore lack.
    pub(super) unfolded_fills: u64,
    /// Lines that are no records, by reason.
    pub(super) bad_lines: BTreeMap<&'static str, BadLines>,
    pub(super) damage: Option<Damage>,
}

#[derive(Debug, Serialize)]
pub(super) struct Instrument {
    pub(super) instrument: String,
    pub(super) ticks: u64,
    pub(super) first_time: Option<i64>,
    pub(super) last_time: Option<i64>,
    pub(super) bid: Exact,
    pub(super) bid_size: Exact,
    pub(super) ask: Exact,
    pub(super) ask_size: Exact,
    pub(super) last: Exact,
    pub(super) last_size: Exact,
}

#[derive(Debug, Serialize)]
pub(super) struct AccountVolume {
    pub(super) account: String,
    pub(super) instrument: String,
    pub(super) fills: u64,
    pub(super) bought: String,
    pub(super) sold: String,
    pub(super) notional: String,
}

#[derive(Debug, Serialize)]
pub(super) struct BadLines {
    pub(super) count: u64,
    /// From 1.
    pub(super) first_line: u64,
    /// What is wrong, in words.
    pub(super) message: String,
}

#[derive(Debug, Serialize)]
pub(super) struct Damage {
    /// Whole records before it.
    pub(super) record: u64,
    pub(super) line: u64,
    pub(super) text_offset: u64,
    pub(super) file_offset: u64,
    /// All of it in words.
    pub(super) message: String,
}

/// A number with the venue's own digits, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exact(pub(super) Option<crate::market::Decimal>);

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Some(number) => serializer.collect_str(&number),
            None => serializer.serialize_none(),
        }
    }
}

/// Counts messages as they are read.
pub(super) struct Counter {
    venue: String,
    instruments: Arc<Instruments>,
    accounts: Arc<Accounts>,
    codec: Option<Box<dyn Codec>>,
    events: Vec<Event>,
    classes: [u64; Class::COUNT],
    oddities: [u64; Oddity::ALL.len()],
    streams: BTreeMap<String, u64>,
    /// By instrument.
    seen: Vec<Option<Seen>>,
    volumes: HashMap<(AccountId, InstrumentId), Volume>,
    unfolded_fills: u64,
}

#[derive(Clone, Copy)]
struct Seen {
    first_time: Option<i64>,
    last_time: Option<i64>,
    quote: Quote,
}

impl Counter {
    /// Counts messages of `venue`, fills of `account` where the messages do not say whose.
    pub(super) fn new(venue: &str, account: Option<String>) -> Self {
        let instruments = Arc::new(Instruments::new(MAX_INSTRUMENTS));
        let accounts = Arc::new(Accounts::new(MAX_ACCOUNTS));
        let context = Context {
            instruments: Arc::clone(&instruments),
            accounts: Arc::clone(&accounts),
            feed: FeedId(0),
            account,
        };
        Self {
            venue: venue.to_owned(),
            codec: codec(venue, context),
            instruments,
            accounts,
            events: Vec::new(),
            classes: [0; Class::COUNT],
            oddities: [0; Oddity::ALL.len()],
            streams: BTreeMap::new(),
            seen: Vec::new(),
            volumes: HashMap::new(),
            unfolded_fills: 0,
        }
    }

    pub(super) fn message(&mut self, record: Record<'_>) {
        self.stream(record.text);
        let Some(codec) = &mut self.codec else { return };
        self.events.clear();
        let time = record.receive_time;
        let decoded = codec.decode(record.text, time.unwrap_or(0), &mut self.events);
        self.classes[decoded.class.index()] += 1;
        for oddity in decoded.oddities.iter() {
            self.oddities[oddity.index()] += 1;
        }
        for at in 0..self.events.len() {
            match self.events[at] {
                Event::Quote { instrument, quote } => self.quote(instrument, quote, time),
                Event::Fill(fill) => {
                    let total = self.volumes.entry((fill.account, fill.instrument)).or_default();
                    if Volume::of(&fill).and_then(|volume| total.add(volume)).is_err() {
                        self.unfolded_fills += 1;
                    }
                }
            }
        }
    }

    fn quote(&mut self, instrument: InstrumentId, quote: Quote, time: Option<i64>) {
        let index = instrument.index();
        if self.seen.len() <= index {
            self.seen.resize(index + 1, None);
        }
        let seen = &mut self.seen[index];
        let first_time = seen.map_or(time, |seen| seen.first_time);
        *seen = Some(Seen { first_time, last_time: time, quote });
    }

    fn stream(&mut self, message: &[u8]) {
        let kind = stream::kind(message);
        if let Some(count) = self.streams.get_mut(kind.as_ref()) {
            *count += 1;
            return;
        }
        let full = self.streams.len() >= MAX_STREAMS;
        let kind = if full { "(others)".to_owned() } else { kind.into_owned() };
        *self.streams.entry(kind).or_default() += 1;
    }

    /// What was counted, with what the reading itself found.
    pub(super) fn finish(self, found: &Inspection) -> Contents {
        let tally = &found.tally;
        let span = found.span;
        Contents {
            file: found.file.clone(),
            venue: self.venue.clone(),
            compression: found.compression.to_string(),
            format: found.format.map(|format| format.to_string()),
            file_bytes: found.file_bytes,
            text_bytes: tally.text_bytes,
            lines: tally.lines,
            messages: tally.messages,
            marks: tally.marks,
            blank_lines: tally.blank_lines,
            crlf_lines: tally.crlf_lines,
            other_records: tally.other_records,
            times_out_of_range: tally.times_out_of_range,
            first_time: span.map(|(first, _)| first),
            last_time: span.map(|(_, last)| last),
            span_ns: span.map_or(0, |(first, last)| last.abs_diff(first)),
            longest_gap_ns: u64::try_from(found.longest_gap.as_nanos()).unwrap_or(u64::MAX),
            out_of_order: found.out_of_order,
            quotes: self.classes[Class::Quote.index()],
            fills: self.classes[Class::Fill.index()],
            unknown: self.classes[Class::Unknown.index()],
            unused: self.group("unused"),
            control: self.group("control"),
            refused: self.group("refused"),
            oddities: Oddity::ALL
                .iter()
                .map(|oddity| (oddity.label(), self.oddities[oddity.index()]))
                .filter(|&(_, count)| count > 0)
                .collect(),
            last_problem: self.codec.as_ref().and_then(|c| c.last_problem()),
            instruments: self.instruments(),
            volumes: self.volumes(),
            unfolded_fills: self.unfolded_fills,
            bad_lines: tally
                .bad_by_reason()
                .map(|(reason, BadCount { count, first_line })| {
                    (reason.name(), BadLines { count, first_line, message: reason.to_string() })
                })
                .collect(),
            damage: found.damage.as_ref().map(|damage| Damage {
                record: damage.record,
                line: damage.line,
                text_offset: damage.text_offset,
                file_offset: damage.file_offset,
                message: damage.to_string(),
            }),
            streams: self.streams,
        }
    }

    /// The classes of a group that were met.
    fn group(&self, group: &str) -> BTreeMap<&'static str, u64> {
        Class::all()
            .filter(|class| class.group() == group)
            .map(|class| (class.label(), self.classes[class.index()]))
            .filter(|&(_, count)| count > 0)
            .collect()
    }

    fn instruments(&self) -> Vec<Instrument> {
        let seen = self.seen.iter().enumerate().filter_map(|(id, seen)| Some((id, (*seen)?)));
        seen.map(|(id, Seen { first_time, last_time, quote })| Instrument {
            instrument: self.name(InstrumentId(u32::try_from(id).unwrap_or(u32::MAX))),
            ticks: quote.tick,
            first_time,
            last_time,
            bid: Exact(quote.bid),
            bid_size: Exact(quote.bid_size),
            ask: Exact(quote.ask),
            ask_size: Exact(quote.ask_size),
            last: Exact(quote.last),
            last_size: Exact(quote.last_size),
        })
        .collect()
    }

    fn volumes(&self) -> Vec<AccountVolume> {
        let mut volumes: Vec<_> = self.volumes.iter().collect();
        volumes.sort_by_key(|(key, _)| **key);
        volumes
            .into_iter()
            .map(|(&(account, instrument), volume)| AccountVolume {
                account: self.accounts.name(account).to_owned(),
                instrument: self.name(instrument),
                fills: volume.fills,
                bought: volume.bought.to_string(),
                sold: volume.sold.to_string(),
                notional: volume.notional.to_string(),
            })
            .collect()
    }

    fn name(&self, id: InstrumentId) -> String {
        self.instruments.name(id).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::feed::{Reader, inspect};

    fn contents(text: &str) -> Contents {
        let mut reader = Reader::from_bytes("x", Bytes::from(text.to_owned())).unwrap();
        let mut counter = Counter::new("binance", Some("desk-1".to_owned()));
        let found = inspect(&mut reader, |record, _| counter.message(record));
        counter.finish(&found)
    }

    #[test]
    fn every_message_has_one_class_and_the_last_quote_keeps_its_digits() {
        let book = |u: u32, bid: &str| {
            format!(
                r#"{{"stream":"a@bookTicker","data":{{"u":{u},"s":"A","b":"{bid}","B":"1","a":"2.00","A":"3"}}}}"#
            )
        };
        let text = format!(
            "1700000001 {}\n1700000002 {}\n1700000003 {}\n1700000004 {{\"e\":\"nonsense\"}}\n\
             1700000005 {{\"result\":null,\"id\":1}}\nbad line\n",
            book(5, "1.50"),
            book(4, "9"),
            book(6, "1.60"),
        );
        let found = contents(&text);
        assert_eq!((found.messages, found.quotes, found.unknown), (5, 2, 1));
        assert_eq!(found.refused, BTreeMap::from([("late_quote", 1)]));
        assert_eq!(found.control, BTreeMap::from([("ack", 1)]));
        assert_eq!(found.streams["bookTicker"], 3);
        assert_eq!(found.streams["nonsense"], 1);
        let [instrument] = &found.instruments[..] else { panic!("one instrument") };
        assert_eq!((instrument.instrument.as_str(), instrument.ticks), ("binance:A", 2));
        assert_eq!(instrument.bid.0.unwrap().to_string(), "1.60");
        assert_eq!(instrument.last_time, Some(1_700_000_003_000_000_000));
        assert_eq!(
            (found.bad_lines["no_time"].count, found.bad_lines["no_time"].first_line),
            (1, 6)
        );
        assert!(found.damage.is_none());
    }

    #[test]
    fn the_kinds_of_streams_are_bounded() {
        let text: String =
            (0..200).map(|n| format!("1700000001 {{\"e\":\"kind{n}\"}}\n")).collect();
        let found = contents(&text);
        assert_eq!(found.streams.len(), MAX_STREAMS + 1);
        assert_eq!(found.streams["(others)"], 200 - MAX_STREAMS as u64);
    }
}
