use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use serde_json::Value;

use super::super::{Reader, RecorderOptions};
use super::*;

fn shipped() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("feeds/sample.jsonl.zst")
}

fn short(seed: u64) -> SimulateOptions {
    SimulateOptions { seed, duration: Duration::from_secs(10), ..SimulateOptions::default() }
}

fn messages(options: SimulateOptions) -> (Vec<(i64, String)>, Simulator) {
    let mut simulator = Simulator::new(options).unwrap();
    let mut messages = Vec::new();
    while let Some((time, text)) = simulator.next() {
        messages.push((time, String::from_utf8(text.to_vec()).unwrap()));
    }
    (messages, simulator)
}

/// FNV-1a, 64 bits.
fn digest(messages: &[(i64, String)]) -> u64 {
    let bytes = messages
        .iter()
        .flat_map(|(time, text)| time.to_le_bytes().into_iter().chain(text.bytes()).chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The event in a message, if it is one.
fn event(message: &str) -> Option<Value> {
    let mut message: Value = serde_json::from_str(message).unwrap();
    let account = message.get("account").cloned();
    let mut event = message.get_mut("data").or(None).map(Value::take);
    if event.is_none() {
        event = message.get_mut("event").map(Value::take);
    }
    let mut event = event?;
    if let Some(account) = account {
        event["account"] = account;
    }
    Some(event)
}

fn units(value: &Value) -> u128 {
    let text = value.as_str().unwrap();
    let (_, places) = text.split_once('.').unwrap();
    assert_eq!(places.len(), 8, "the venue's eight places: {text}");
    text.replace('.', "").parse().unwrap()
}

#[test]
fn the_bytes_of_a_seed_are_the_same_for_ever() {
    let (first, _) = messages(short(1));
    let (again, _) = messages(short(1));
    let (other, _) = messages(short(2));
    assert_eq!(first, again);
    assert_ne!(digest(&first), digest(&other));
    assert_eq!(digest(&first), 0x1d12_cea4_50c7_2f9c, "{:#x}", digest(&first));
}

#[test]
fn every_message_is_json_and_receive_times_rise_within_the_span() {
    let options = short(5);
    let (messages, simulator) = messages(options.clone());
    let mut last = options.start_time;
    for (time, text) in &messages {
        assert!(*time >= last, "{text}");
        last = *time;
        serde_json::from_str::<Value>(text).unwrap();
    }
    assert!(last < options.start_time + 10_000_000_000);
    let summary = simulator.summary();
    assert_eq!(summary.messages, messages.len() as u64);
    let kinds = summary.book_tickers
        + summary.trades
        + summary.aggregate_trades
        + summary.depth_updates
        + summary.execution_reports
        + summary.others;
    assert_eq!(kinds, summary.messages);
}

#[test]
fn ids_rise_books_never_cross_and_ticks_are_counted() {
    let (messages, simulator) = messages(short(9));
    let mut ids: HashMap<(String, &str), u64> = HashMap::new();
    let mut ticks: BTreeMap<String, u64> = BTreeMap::new();
    let (mut last_event, mut streams) = (0, BTreeSet::new());
    for (_, text) in &messages {
        let Some(event) = event(text) else { continue };
        let symbol = event["s"].as_str().unwrap().to_owned();
        let (kind, id) = match event["e"].as_str() {
            None => ("u", &event["u"]),
            Some("trade") => ("t", &event["t"]),
            Some("aggTrade") => ("a", &event["a"]),
            Some("depthUpdate") => ("u", &event["u"]),
            Some(_) => continue,
        };
        let id = id.as_u64().unwrap();
        let before = ids.insert((symbol.clone(), kind), id).unwrap_or(0);
        assert!(id > before, "{text}");
        if event["e"].is_null() {
            assert!(units(&event["b"]) < units(&event["a"]), "{text}");
            assert!(units(&event["B"]) > 0 && units(&event["A"]) > 0, "{text}");
        } else {
            let time = event["E"].as_u64().unwrap();
            assert!(time >= last_event, "{text}");
            last_event = time;
        }
        if event["e"] != "depthUpdate" {
            *ticks.entry(symbol.clone()).or_default() += 1;
        }
        let stream = serde_json::from_str::<Value>(text).unwrap()["stream"].clone();
        assert!(stream.as_str().unwrap().starts_with(&symbol.to_lowercase()), "{text}");
        streams.insert(stream.to_string());
    }
    let counted: BTreeMap<String, u64> =
        simulator.ticks().map(|(symbol, ticks)| (symbol.to_owned(), ticks)).collect();
    assert_eq!(ticks, counted);
    assert_eq!(ticks.len(), 24);
    assert!(ticks.keys().any(|symbol| !symbol.is_ascii()), "one symbol is not ASCII");
}

#[test]
fn fills_add_up_to_the_totals_and_belong_to_public_trades() {
    let (messages, simulator) = messages(short(4));
    let mut sums: BTreeMap<(String, String), [u128; 4]> = BTreeMap::new();
    let mut filled: HashMap<u64, u128> = HashMap::new();
    let mut states = BTreeSet::new();
    let mut trades = HashMap::new();
    let mut fills = Vec::new();
    for (_, text) in &messages {
        let Some(event) = event(text) else { continue };
        let symbol = event["s"].as_str().unwrap().to_owned();
        if event["e"] == "trade" {
            let trade = (units(&event["p"]), units(&event["q"]));
            trades.insert((symbol.clone(), event["t"].as_u64().unwrap()), trade);
        }
        if event["e"] != "executionReport" {
            continue;
        }
        states.insert(event["X"].as_str().unwrap().to_owned());
        if event["x"] != "TRADE" {
            assert_eq!((event["t"].as_i64(), units(&event["l"])), (Some(-1), 0));
            continue;
        }
        let (price, quantity) = (units(&event["L"]), units(&event["l"]));
        assert_eq!(price * quantity % u128::from(instrument::ONE), 0);
        assert_eq!(units(&event["Y"]), price * quantity / u128::from(instrument::ONE));
        let order = filled.entry(event["i"].as_u64().unwrap()).or_default();
        *order += quantity;
        assert_eq!(units(&event["z"]), *order, "cumulative: {text}");
        assert_eq!(event["X"] == "FILLED", *order == units(&event["q"]), "{text}");
        let account = event["account"].as_str().unwrap().to_owned();
        let sum = sums.entry((account, symbol.clone())).or_default();
        sum[0] += 1;
        sum[if event["S"] == "BUY" { 1 } else { 2 }] += quantity;
        sum[3] += units(&event["Y"]);
        fills.push(((symbol, event["t"].as_u64().unwrap()), (price, quantity)));
    }
    for (trade, filled) in &fills {
        assert_eq!(trades.get(trade), Some(filled));
    }
    assert_eq!(fills.len() as u64, simulator.summary().fills);
    let totals: BTreeMap<(String, String), [u128; 4]> = simulator
        .account_totals()
        .map(|t| {
            let sum = [u128::from(t.fills), t.bought, t.sold, t.notional];
            ((t.account.clone(), t.symbol.clone()), sum)
        })
        .collect();
    assert_eq!(sums, totals);
    let accounts: BTreeSet<&String> = sums.keys().map(|(account, _)| account).collect();
    assert_eq!(accounts.len(), 3);
    for state in ["NEW", "PARTIALLY_FILLED", "FILLED", "CANCELED"] {
        assert!(states.contains(state), "{state} occurs");
    }
}

#[test]
fn activity_has_bursts_within_a_millisecond_and_quiet_stretches_and_the_average_asked_for() {
    let options = SimulateOptions::default();
    let (messages, _) = messages(options.clone());
    let average = messages.len() as f64 / options.duration.as_secs_f64();
    assert!((800.0..1200.0).contains(&average), "{average} a second");
    let mut by_millisecond: HashMap<i64, u64> = HashMap::new();
    let mut by_second: BTreeMap<i64, u64> = BTreeMap::new();
    for (time, _) in &messages {
        *by_millisecond.entry(time / 1_000_000).or_default() += 1;
        *by_second.entry(time / 1_000_000_000).or_default() += 1;
    }
    let bursts = by_millisecond.values().filter(|count| **count >= 25).count();
    assert!(bursts >= 20, "{bursts} bursts");
    assert!(by_second.values().min() < Some(&300), "quiet");
    assert!(by_second.values().max() > Some(&1200), "busy");
    let together = messages.windows(2).filter(|pair| pair[0].0 == pair[1].0).count();
    assert!(together > 100, "some share a receive time");
}

#[test]
fn other_sizes_are_simulated_as_asked() {
    let options = SimulateOptions {
        instruments: 300,
        rate: 50_000,
        accounts: 0,
        duration: Duration::from_secs(2),
        ..SimulateOptions::default()
    };
    let (messages, simulator) = messages(options);
    assert!((80_000..160_000).contains(&messages.len()), "{}", messages.len());
    assert_eq!(simulator.ticks().count(), 300);
    assert!(simulator.ticks().all(|(_, ticks)| ticks > 0));
    assert_eq!((simulator.summary().execution_reports, simulator.account_totals().count()), (0, 0));
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    for (options, named) in [
        (
            SimulateOptions { instruments: 0, ..short(1) },
            "instruments must be from 1 to 100000, not 0",
        ),
        (SimulateOptions { rate: 0, ..short(1) }, "rate must be from 1 to 5000000"),
        (SimulateOptions { accounts: 10_001, ..short(1) }, "accounts"),
        (SimulateOptions { duration: Duration::ZERO, ..short(1) }, "duration"),
        (SimulateOptions { start_time: -1, ..short(1) }, "start time"),
    ] {
        let refused = Simulator::new(options).err().unwrap().to_string();
        assert!(refused.contains(named), "{refused}");
    }
}

#[test]
fn the_shipped_sample_is_what_the_defaults_simulate() {
    let mut simulator = Simulator::new(SimulateOptions::default()).unwrap();
    let mut sample = Reader::open(&shipped()).unwrap();
    while let Some((time, text)) = simulator.next() {
        let record = sample.read_next().expect("as many messages");
        assert_eq!((record.receive_time, record.text), (Some(time), text));
    }
    assert!(!sample.advance(), "no more messages");
    assert_eq!((sample.damage(), sample.tally().bad_lines()), (None, 0));
    assert!(std::fs::metadata(shipped()).unwrap().len() < 2 << 20, "two MiB at most");
}

#[test]
#[ignore = "writes the file that is shipped; to be run when the simulation was changed on purpose"]
fn write_the_shipped_sample() {
    let _ = std::fs::remove_file(shipped());
    let options = RecorderOptions {
        level: 19,
        flush_records: u32::MAX,
        flush_bytes: 8 << 20,
        flush_age: Duration::from_secs(3600),
        frame_bytes: 8 << 20,
    };
    let mut recorder = Recorder::create(&shipped(), options).unwrap();
    let mut simulator = Simulator::new(SimulateOptions::default()).unwrap();
    simulate(&mut simulator, &mut recorder).unwrap();
    recorder.finish().unwrap();
}
