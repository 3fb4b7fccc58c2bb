//! The reproducible mode: the same bytes every time, and the true ones.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tidegate::app::reproduce::{Outcome, Script, open, reproduce};
use tidegate::config::{Settings, Speed};
use tidegate::gateway::stepped::{ClientModel, Delivered, Opcode};
use tokio_util::sync::CancellationToken;

use crate::serve_support::{Naive, simulated};

/// What the shipped sample gives to `everything`, `sampled` and `slow`, in this order. The welcome
/// names the version, so a new version has new digests.
const SAMPLE: [&str; 4] = [
    "d01bd7891afe70a3b6d541a2ec6c42c841a1d58c3e7b644cab56a3af4af37471",
    "7ab9ec225191b2fa1c1b07977b8f53f727233dc50e267306ef93a8a9e4a10ac2",
    "f3682763ddf24a87cc0cba38267fa2590cb2f58a5be5a437fd926c704967dffb",
    "dc1bf7ded95df03c6f577e471309cc42c0dda48bda80d3b1ad5fd7369a5b345d",
];

fn everything() -> ClientModel {
    ClientModel {
        instruments: vec!["binance:*".into()],
        accounts: vec!["*".into()],
        ..ClientModel::default()
    }
}

fn sampled() -> ClientModel {
    ClientModel {
        instruments: vec!["binance:BTCUSDT".into(), "binance:ETHUSDT".into()],
        max_hz: Some(10.0),
        capacity: Some(2),
        ..ClientModel::default()
    }
}

fn slow() -> ClientModel {
    ClientModel { reads_per_s: NonZeroU64::new(20_000), ..everything() }
}

fn script(files: &[&Path], clients: Vec<ClientModel>) -> Script {
    Script {
        settings: Settings::embedded(),
        recordings: files.iter().map(|file| ("binance".to_owned(), open(file).unwrap())).collect(),
        account: None,
        clients,
        max_gap: Duration::from_secs(10),
        speed: Speed::Max,
    }
}

fn run(script: &Script) -> (Outcome, Vec<Vec<Delivered>>) {
    let mut frames = vec![Vec::new(); script.clients.len()];
    let outcome = reproduce(script, &CancellationToken::new(), |client, frame| {
        frames[client].push(frame.clone());
        Ok(())
    });
    (outcome.unwrap(), frames)
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("feeds/sample.jsonl.zst")
}

fn messages(frames: &[Delivered]) -> impl Iterator<Item = (u64, Value)> {
    frames
        .iter()
        .filter(|frame| frame.opcode == Opcode::Text)
        .map(|frame| (frame.at.as_nanos(), serde_json::from_slice(frame.payload()).unwrap()))
}

#[test]
fn the_shipped_sample_gives_the_digests_written_down_here_every_time() {
    let script = script(&[&sample()], vec![everything(), sampled(), slow()]);
    let run = || {
        let outcome = reproduce(&script, &CancellationToken::new(), |_, _| Ok(())).unwrap();
        let clients = outcome.clients.into_iter().map(|client| client.digest);
        clients.chain([outcome.digest]).collect::<Vec<_>>()
    };
    assert_eq!(run(), SAMPLE);
    assert_eq!(run(), SAMPLE);
}

#[test]
fn speed_changes_how_long_it_takes_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    simulated(&file, 5, 500);
    let mut script = script(&[&file], vec![everything(), slow()]);
    let fast = run(&script).0;
    script.speed = Speed::Times(100.0);
    let paced = run(&script).0;
    assert_eq!(fast.digest, paced.digest);
    assert_eq!(fast.played, paced.played);
}

#[test]
fn another_reader_speed_gives_another_digest_and_leaves_the_others_alone() {
    let first = run(&script(&[&sample()], vec![sampled(), slow()])).0;
    let slower = ClientModel { reads_per_s: NonZeroU64::new(10_000), ..slow() };
    let second = run(&script(&[&sample()], vec![sampled(), slower])).0;
    assert_eq!(first.clients[0].digest, second.clients[0].digest);
    assert_ne!(first.clients[1].digest, second.clients[1].digest);
    assert_ne!(first.digest, second.digest);
}

#[test]
fn what_is_delivered_is_the_fold_of_the_recording_whoever_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    let (texts, simulator) = simulated(&file, 10, 2_000);
    let mut naive = Naive::default();
    texts.iter().for_each(|text| naive.take("binance", text));
    let ticks = simulator.ticks().map(|(_, ticks)| ticks).sum::<u64>();
    let (outcome, frames) = run(&script(&[&file], vec![everything(), slow()]));
    for (client, frames) in outcome.clients.iter().zip(&frames) {
        let report = client.report.as_ref().unwrap();
        assert_eq!((report.pending, report.in_flight), (0, 0));
        let (mut delivered, mut skipped, mut last) = (0, 0, HashMap::new());
        for (_, message) in messages(frames).filter(|(_, message)| message["type"] == "quotes") {
            for quote in message["quotes"].as_array().unwrap() {
                let name = quote["instrument"].as_str().unwrap().to_owned();
                let tick = quote["tick"].as_u64().unwrap();
                // Ticks before the first value of an instrument are nobody's.
                let before = last.insert(name, (tick, quote.clone()));
                let before = before.map_or(tick - 1, |(before, _)| before);
                assert!(tick > before, "{quote}");
                skipped += tick - before - 1;
                delivered += 1;
            }
        }
        assert_eq!(report.delivered, delivered);
        assert_eq!((report.conflated, report.received), (skipped, delivered + skipped));
        assert_eq!(last.values().map(|(tick, _)| tick).sum::<u64>(), ticks);
        naive.assert_quotes(&last.into_iter().map(|(name, (_, quote))| (name, quote)).collect());
        let close = frames.last().unwrap();
        assert_eq!((close.opcode, &close.payload()[..2]), (Opcode::Close, &[0x03, 0xE9][..]));
    }
    assert!(outcome.clients[1].report.as_ref().unwrap().conflated > 0, "the slow one is slow");
}

#[test]
fn a_slow_reader_reads_at_its_speed_and_a_rate_is_kept_in_virtual_time() {
    let (_, frames) = run(&script(&[&sample()], vec![sampled(), slow()]));
    let batches: Vec<u64> = messages(&frames[0])
        .filter(|(_, message)| message["type"] == "quotes")
        .map(|(at, _)| at)
        .collect();
    assert!(batches.len() > 300, "{}", batches.len());
    // The first batch is the snapshot; a window is a tenth of a second.
    assert!(batches.windows(2).all(|pair| pair[1] - pair[0] >= 100_000_000));
    let bytes: usize = frames[1].iter().map(|frame| frame.bytes.len()).sum();
    let took = frames[1].last().unwrap().at.as_nanos();
    assert!(bytes as u64 * 50_000 <= took, "{bytes} bytes in {took} ns");
    assert!(bytes as u64 * 50_000 > took / 2, "it was kept busy: {bytes} bytes in {took} ns");
}

#[test]
fn recordings_of_two_venues_play_on_one_clock() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    simulated(&file, 3, 300);
    let clients = vec![ClientModel {
        instruments: vec!["binance:*".into(), "binance-cm:*".into()],
        ..ClientModel::default()
    }];
    let mut script = script(&[&file], clients);
    script.recordings.push(("binance-cm".to_owned(), open(&file).unwrap()));
    let (outcome, frames) = run(&script);
    let report = outcome.clients[0].report.as_ref().unwrap();
    assert_eq!(report.instruments, 48);
    // The same file twice: both venues move on together, so no batch holds older values than the
    // batch before, whichever venue they are of.
    let mut reached = 0;
    for (_, message) in messages(&frames[0]).filter(|(_, message)| message["type"] == "quotes") {
        let quotes = message["quotes"].as_array().unwrap();
        let times = quotes.iter().map(|quote| quote["receive_time"].as_i64().unwrap());
        assert!(times.clone().min().unwrap() >= reached, "{message}");
        reached = times.max().unwrap();
    }
}

#[test]
fn a_paused_subscriber_gets_no_quote_and_the_run_ends() {
    let paused = ClientModel { capacity: Some(0), ..everything() };
    let (outcome, frames) = run(&script(&[&sample()], vec![paused]));
    assert!(messages(&frames[0]).all(|(_, message)| message["type"] != "quotes"));
    let report = outcome.clients[0].report.as_ref().unwrap();
    assert_eq!(report.pending, report.received);
    assert_eq!(frames[0].last().unwrap().opcode, Opcode::Close);
}

#[test]
fn what_stops_a_run_is_told() {
    let stop = CancellationToken::new();
    stop.cancel();
    let script = script(&[&sample()], vec![sampled()]);
    assert_eq!(reproduce(&script, &stop, |_, _| Ok(())).unwrap_err().to_string(), "stopped");
    let full = reproduce(&script, &CancellationToken::new(), |_, _| anyhow::bail!("disk full"));
    assert_eq!(full.unwrap_err().to_string(), "disk full");
}
