//! Real recordings, read beside a naive fold over general JSON values, and beside a fold of another
//! hand in another language (`tests/oracle/fold.py`); every line of them accounted for.

use std::collections::{BTreeMap, HashMap};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tidegate::market::Quote;
use tidegate::venue::{Class, Event, Refusal, Unused, VENUES};

use super::recordings::{self, FILES, Recording};
use super::samples::{Role, SPEAKERS, samples_of};
use super::subject::Subject;

/// The texts of the newest bid, its size, ask, its size, last, its size; and how many messages led
/// there.
type Held = ([Option<String>; 6], u64);

/// What a person would write in ten minutes: no order of ids, no refusals.
fn naive(recording: &Recording) -> HashMap<String, Held> {
    let mut held: HashMap<String, Held> = HashMap::new();
    for (_, message) in recording.messages() {
        let message: Value = serde_json::from_slice(message).unwrap();
        let stream = message["stream"].as_str().unwrap_or_default();
        let event = message.get("data").unwrap_or(&message);
        let places: &[(usize, &str)] = match event["e"].as_str() {
            Some("bookTicker") => &[(0, "b"), (1, "B"), (2, "a"), (3, "A")],
            None if stream.ends_with("@bookTicker") => &[(0, "b"), (1, "B"), (2, "a"), (3, "A")],
            Some("trade" | "aggTrade") => &[(4, "p"), (5, "q")],
            _ => continue,
        };
        let symbol = event["s"].as_str().unwrap();
        let (texts, count) = held.entry(format!("{}:{symbol}", recording.venue)).or_default();
        *count += 1;
        for (place, member) in places {
            texts[*place] = Some(event[member].as_str().unwrap().to_owned());
        }
    }
    held
}

fn ours(recording: &Recording) -> HashMap<String, Held> {
    let mut subject = Subject::new(recording.venue);
    let mut held: HashMap<String, Held> = HashMap::new();
    let mut snapshots = 0;
    for (_, message) in recording.messages() {
        match subject.read(message) {
            Class::Quote => {
                let Event::Quote { quote, .. } = subject.events[0] else { panic!() };
                let numbers = [
                    quote.bid,
                    quote.bid_size,
                    quote.ask,
                    quote.ask_size,
                    quote.last,
                    quote.last_size,
                ];
                let (texts, tick) = held.entry(subject.name().to_owned()).or_default();
                assert_eq!(quote.tick, *tick + 1, "ticks rise by one");
                *tick = quote.tick;
                *texts = numbers.map(|number| {
                    let mut text = Vec::new();
                    tidegate::market::decimal::write(number?, &mut text);
                    Some(String::from_utf8(text).unwrap())
                });
            }
            Class::Unused(Unused::Snapshot) => snapshots += 1,
            Class::Unused(Unused::Depth | Unused::Kline) | Class::Control(_) => {}
            class => panic!("{class:?}: {}", String::from_utf8_lossy(message)),
        }
        assert!(subject.oddities.is_empty());
    }
    assert!(snapshots <= 1);
    held
}

#[test]
fn the_last_value_of_each_instrument_and_its_ticks_are_those_of_a_naive_fold() {
    let found = recordings::binance().into_iter().chain(recordings::binance_conversations());
    let mut count = 0;
    for recording in found.flatten() {
        let (ours, naive) = (ours(&recording), naive(&recording));
        assert_eq!(ours, naive, "{}", recording.name);
        assert!(!ours.is_empty(), "{}", recording.name);
        count += 1;
    }
    if count == 0 {
        eprintln!("SKIPPED: no recordings at hand, so the codecs were not held against them");
    }
}

/// By symbol the texts of the sides, the last price and its size, and the ticks.
type Fold = BTreeMap<String, Vec<Value>>;

/// What the script makes of a recording's text; `None` if it cannot be run here.
fn script(venue: &str, text: &[u8]) -> Option<Fold> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/fold.py");
    let mut command = Command::new("python3");
    command.arg(&path).arg(venue).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("SKIPPED: no python3 here to run the fold of another hand");
        return None;
    };
    // It reads everything before it writes anything.
    let mut input = child.stdin.take().unwrap();
    input.write_all(text).unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success(), "{venue}: the script failed");
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

/// The same by the codec.
fn codec<'a>(venue: &str, messages: impl Iterator<Item = &'a [u8]>) -> Fold {
    let mut subject = Subject::new(venue);
    let mut newest: BTreeMap<String, Quote> = BTreeMap::new();
    for message in messages {
        subject.read(message);
        for event in &subject.events {
            if let Event::Quote { instrument, quote } = event {
                let name = subject.instruments.name(*instrument);
                let symbol = name.split_once(':').unwrap().1.to_owned();
                let before = newest.insert(symbol, *quote).map_or(0, |quote| quote.tick);
                assert_eq!(quote.tick, before + 1, "ticks rise by one");
            }
        }
    }
    let fold = |quote: Quote| {
        let text = |role: Role| {
            let mut text = Vec::new();
            tidegate::market::decimal::write(role.of(&quote)?, &mut text);
            Some(String::from_utf8(text).unwrap())
        };
        let numbers = Role::QUOTED.map(|role| text(role).map_or(Value::Null, Value::from));
        numbers.into_iter().chain([Value::from(quote.tick)]).collect()
    };
    newest.into_iter().map(|(symbol, quote)| (symbol, fold(quote))).collect()
}

#[test]
fn the_last_quote_of_each_instrument_is_that_of_the_fold_of_another_hand() {
    let Some(folder) = recordings::folder() else {
        eprintln!("SKIPPED: no recordings at hand, so the folds were not compared on them");
        return;
    };
    for (venue, file) in FILES {
        let Some(text) = recordings::unpacked(&folder.join(file)) else { continue };
        let recording = recordings::captured(venue, file, &text);
        let ours = codec(venue, recording.messages().map(|(_, message)| message));
        let Some(theirs) = script(venue, &text) else { return };
        assert_eq!(ours, theirs, "{file}");
    }
}

#[test]
fn both_folds_agree_on_our_own_messages() {
    for venue in VENUES.iter().filter(|venue| !samples_of(venue.name).is_empty()) {
        let mut messages: Vec<String> = Vec::new();
        for round in 0..20_u64 {
            for (place, sample) in samples_of(venue.name).into_iter().enumerate() {
                // Also late and repeated ones.
                messages.push(sample.numbered(100 + round * 7 % 11 * 10 + place as u64));
                messages.push(sample.of(&sample.numbered(round), "OTHER"));
            }
        }
        for speaker in SPEAKERS.iter().filter(|s| s.venues.contains(&venue.name)) {
            for batch in speaker.batch.iter() {
                let rows = |first: u64| {
                    let price = |n: u64| format!("{}.5", 100 + n % 7);
                    let rows = (first..first + 9).rev();
                    rows.map(|n| (n, price(n), format!("0.{n}"))).collect::<Vec<_>>()
                };
                messages.extend([90_000_000, 90_000_004, 80_000_000].map(|n| batch.of(&rows(n))));
            }
        }
        let ours = codec(venue.name, messages.iter().map(String::as_bytes));
        assert!(!ours.is_empty());
        let Some(theirs) = script(venue.name, messages.join("\n").as_bytes()) else { return };
        assert_eq!(ours, theirs, "{}", venue.name);
    }
}

#[test]
fn every_message_of_every_recording_is_explained() {
    let Some(folder) = recordings::folder() else {
        eprintln!("SKIPPED: no recordings at hand, so their messages were not counted");
        return;
    };
    for (venue, file) in FILES {
        let Some(text) = recordings::unpacked(&folder.join(file)) else { continue };
        let recording = recordings::captured(venue, file, &text);
        let mut subject = Subject::new(venue);
        let mut counts: HashMap<Class, u64> = HashMap::new();
        for (_, message) in recording.messages() {
            let class = subject.read(message);
            *counts.entry(class).or_default() += 1;
            let explained = match class {
                Class::Unknown => false,
                // What was told before, by the other channel or a snapshot.
                Class::Refused(reason) => {
                    matches!(reason, Refusal::DuplicateTrade | Refusal::LateTrade)
                }
                _ => true,
            };
            assert!(explained, "{file}: {class:?} {}", String::from_utf8_lossy(message));
        }
        assert!(counts.values().sum::<u64>() > 0, "{file}");
        let quoted = counts.contains_key(&Class::Quote);
        assert!(quoted || file.ends_with("kraken.ws.50.0.gz"), "{file} holds order books alone");
    }
}

#[test]
fn inspect_accounts_for_every_line_of_every_recording() {
    let Some(folder) = recordings::folder() else {
        eprintln!("SKIPPED: no recordings at hand, so none was inspected");
        return;
    };
    for (venue, file) in FILES.iter().filter(|(_, file)| file.contains("cf")) {
        let path = folder.join(file);
        let output =
            crate::cli::run(&["inspect", path.to_str().unwrap(), "--venue", venue, "--json"]);
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
        let count = |member: &str| match &shown[member] {
            Value::Object(counts) => counts.values().filter_map(Value::as_u64).sum::<u64>(),
            count => count.as_u64().unwrap(),
        };
        let total = |members: &[&str]| members.iter().map(|member| count(member)).sum::<u64>();
        let classes = ["quotes", "fills", "unused", "control", "unknown", "refused"];
        assert_eq!(total(&classes), count("messages"), "{file}");
        assert_eq!(count("unknown"), 0, "{file}");
        assert_eq!(shown["bad_lines"], serde_json::json!({}), "{file}");
        let lines = ["messages", "marks", "blank_lines", "other_records"];
        assert_eq!(total(&lines), count("lines"), "{file}");
    }
}
