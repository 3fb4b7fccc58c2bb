//! What it costs to get a message out of a recording.
//!
//! * `feed/read`: one recording, unpacked in memory, record by record. The control finds the line
//!   ends of the same bytes and does nothing else.
//! * `feed/merge`: several recordings merged by receive time, at full speed. The control reads the
//!   same recordings one after the other.
//! * `feed/unpack`: a recording from its packed bytes. The control unpacks the same bytes and does
//!   not look at them.
//!
//! The figures are nanoseconds a message. They hold messages of some 180 bytes and nothing behind
//! the feed: no codec, no disk (all bytes are in memory), no waiting. A recording of few long
//! messages costs more a message and less a byte.
//!
//! Without arguments the sample that comes with the program is read; `-- FILE…` reads those files.

use std::hint::black_box;
use std::path::PathBuf;

use tidegate::clock::Instant;
use tidegate::feed::{Reader, Recording, Replay, ReplayOptions, Speed, Step};

mod harness;

use harness::{Report, control, ours, per_operation, short};

const PLENTY: u64 = 1 << 32;

fn main() {
    let files: Vec<PathBuf> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).map(PathBuf::from).collect();
    let files = if files.is_empty() {
        vec![PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("feeds/sample.jsonl.zst")]
    } else {
        files
    };
    let recordings: Vec<Recording> =
        files.iter().map(|file| loaded(Recording::load(file, PLENTY))).collect();
    let texts: Vec<Vec<u8>> = recordings.iter().map(plain_lines).collect();
    let messages: u64 = recordings.iter().map(read).sum();
    println!("{messages} messages in {} recordings", files.len());
    let rounds = if short() { 5 } else { 21 };
    let mut report = Report::default();

    report.case(
        "feed",
        "read",
        rounds,
        vec![
            ours("reader", || {
                per_operation(messages, || {
                    for recording in &recordings {
                        black_box(read(recording));
                    }
                })
            }),
            control("line-ends", || {
                per_operation(messages, || {
                    for text in &texts {
                        black_box(memchr::memchr_iter(b'\n', text).count());
                    }
                })
            }),
        ],
    );

    // A single recording is merged with itself.
    let merged: Vec<Recording> =
        recordings.iter().cycle().take(recordings.len().max(5)).cloned().collect();
    let messages: u64 = merged.iter().map(read).sum();
    report.case(
        "feed",
        "merge",
        rounds,
        vec![
            ours("replay", || per_operation(messages, || assert_eq!(replay(&merged), messages))),
            control("one-by-one", || {
                per_operation(messages, || {
                    for recording in &merged {
                        black_box(read(recording));
                    }
                })
            }),
        ],
    );

    let packed: Vec<bytes::Bytes> =
        files.iter().map(|file| loaded(std::fs::read(file)).into()).collect();
    let messages: u64 = recordings.iter().map(read).sum();
    report.case(
        "feed",
        "unpack",
        rounds.min(9),
        vec![
            ours("reader", || {
                per_operation(messages, || {
                    for bytes in &packed {
                        let mut reader = loaded(Reader::from_bytes("memory", bytes.clone()));
                        while let Some(record) = reader.read_next() {
                            black_box(record);
                        }
                    }
                })
            }),
            control("unpack", || {
                per_operation(messages, || {
                    for bytes in &packed {
                        black_box(loaded(Recording::from_bytes("memory", bytes.clone(), PLENTY)));
                    }
                })
            }),
        ],
    );
    report.close();
}

fn loaded<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2)
        }
    }
}

fn read(recording: &Recording) -> u64 {
    let mut reader = loaded(recording.reader());
    let mut messages = 0;
    while let Some(record) = reader.read_next() {
        black_box(record);
        messages += 1;
    }
    messages
}

fn replay(recordings: &[Recording]) -> u64 {
    let options = ReplayOptions { speed: Speed::Max, ..ReplayOptions::default() };
    let mut replay = loaded(Replay::new(recordings.to_vec(), options));
    let mut messages = 0;
    loop {
        match replay.next(Instant::default()) {
            Step::Record { record, .. } => {
                black_box(record);
                messages += 1;
            }
            Step::Ended => return messages,
            _ => {}
        }
    }
}

/// The recording's messages as plain lines: bytes for the control.
fn plain_lines(recording: &Recording) -> Vec<u8> {
    let mut reader = loaded(recording.reader());
    let mut text = Vec::new();
    while let Some(record) = reader.read_next() {
        text.extend_from_slice(record.text);
        text.extend_from_slice(b"0123456789012345678 \n");
    }
    text
}
