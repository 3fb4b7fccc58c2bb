//! Real recordings, read beside a naive fold over general JSON values.

use std::collections::HashMap;

use serde_json::Value;
use tidegate::venue::{Class, Event, Unused};

use super::recordings::{self, Recording};
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
