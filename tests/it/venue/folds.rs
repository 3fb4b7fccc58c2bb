//! Real recordings of venues with partial updates, beside a fold in another language over the raw file.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tidegate::feed::{Reader, RecordKind, inspect};
use tidegate::venue::{Class, Event};

use super::subject::{Subject, decimal};

/// Every recording of these venues, with how many of its messages are of which group.
const RECORDINGS: &[(&str, &str)] = &[
    ("bybit", "bybit/cf_bybit_first_third.jsonl.zst"),
    ("bybit", "bybit/cfv1_bybit.ws.25.0.gz"),
    ("bybit", "bybit/cfv1_bybit.ws.26.0.gz"),
    ("okx", "okx/cf_okx.jsonl.zst"),
    ("okx", "okx/cfv1_okcoin.ws.1.0.gz"),
    ("bitmex", "bitmex/cfv1_bitmex.ws.1.0.gz"),
    ("bitmex", "bitmex/cfv1_bitmex.ws.17.0.gz"),
    ("deribit", "deribit/cf_deribit.jsonl.zst"),
];

/// Six numbers and a count of ticks.
type Last = ([Option<String>; 6], u64);

fn folder() -> Option<PathBuf> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().map(|above| above.join("shared/feeds")).find(|path| path.is_dir())
}

fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap();
    if path.extension().is_some_and(|extension| extension == "zst") {
        return zstd::decode_all(packed.as_slice()).unwrap();
    }
    let mut text = Vec::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut text).unwrap();
    text
}

/// What the other fold says; `None` if there is no interpreter for it.
fn oracle(venue: &str, path: &Path) -> Option<(BTreeMap<String, Last>, u64)> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/derivatives.py");
    let mut child = Command::new("python3")
        .arg(script)
        .arg(venue)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take().unwrap();
    let text = unpacked(path);
    let writer = std::thread::spawn(move || input.write_all(&text));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    let mut told: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(&output.stdout).unwrap();
    let made = told.remove("").unwrap().as_u64().unwrap();
    let last = told.into_iter().map(|(symbol, row)| {
        let number = |at: usize| row[at].as_str().map(|text| decimal(text).to_string());
        let six = [number(0), number(1), number(2), number(3), number(4), number(5)];
        (format!("{venue}:{symbol}"), (six, row[6].as_u64().unwrap()))
    });
    Some((last.collect(), made))
}

/// What the codec says, every message accounted for.
fn ours(venue: &'static str, path: &Path) -> (BTreeMap<String, Last>, u64) {
    let mut subject = Subject::new(venue);
    let mut last: BTreeMap<String, Last> = BTreeMap::new();
    let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
    let mut reader = Reader::open(path).unwrap();
    let inspection = inspect(&mut reader, |record, _| {
        if record.kind != RecordKind::Message {
            return;
        }
        let class = subject.read(record.text);
        *groups.entry(class.group()).or_default() += 1;
        match class {
            Class::Quote | Class::Unused(_) | Class::Control(_) => {}
            other => panic!("{other:?}: {:?}", subject.codec.last_problem()),
        }
        assert!(
            subject.oddities.is_empty(),
            "{:?}: {}",
            subject.oddities,
            String::from_utf8_lossy(record.text)
        );
        for event in &subject.events {
            let Event::Quote { instrument, quote } = event else { panic!() };
            let numbers =
                [quote.bid, quote.bid_size, quote.ask, quote.ask_size, quote.last, quote.last_size];
            let name = subject.instruments.name(*instrument).to_owned();
            let (texts, tick) = last.entry(name).or_default();
            assert_eq!(quote.tick, *tick + 1, "ticks rise by one");
            *tick = quote.tick;
            *texts = numbers.map(|number| Some(number?.to_string()));
        }
    });
    assert!(inspection.damage.is_none());
    assert_eq!(groups.values().sum::<u64>(), inspection.tally.messages);
    let made = groups.get("quote").copied().unwrap_or(0);
    println!("{}: {groups:?}", path.display());
    (last, made)
}

#[test]
fn every_line_is_accounted_for_and_the_last_quote_is_that_of_a_fold_in_another_language() {
    let Some(folder) = folder() else {
        eprintln!("SKIPPED: no recordings at hand, so the codecs were not held against them");
        return;
    };
    for (venue, file) in RECORDINGS {
        let path = folder.join(file);
        let (last, made) = ours(venue, &path);
        assert!(!last.is_empty(), "{file}");
        let Some((told, told_made)) = oracle(venue, &path) else {
            eprintln!("SKIPPED: no python3 here, so no other fold to compare with");
            continue;
        };
        assert_eq!(last, told, "{file}");
        assert_eq!(made, told_made, "{file}");
    }
}

#[test]
fn an_archive_of_many_files_is_refused_by_its_name() {
    let mut archive = b"PK\x03\x04\x14\x00".to_vec();
    archive.extend_from_slice(&[0; 400]);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), archive).unwrap();
    let error = Reader::open(file.path()).err().map(|error| {
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    });
    let error = error.expect("an archive is no recording");
    assert!(error.contains("zip is not read here") && error.contains("`unzip`"), "{error}");
}
