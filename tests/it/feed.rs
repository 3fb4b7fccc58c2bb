//! Feeds on real recordings, where there are any.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use tidegate::clock::Instant;
use tidegate::feed::{
    Compression, Format, Reader, Recorder, RecorderOptions, Recording, Replay, ReplayOptions,
    Speed, Step, inspect,
};

/// Memory enough for any of the recordings.
const PLENTY: u64 = 1 << 30;

/// A folder of real recordings, if one is kept beside the sources or above them.
fn recordings() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = here.ancestors().map(|folder| folder.join("shared/feeds")).find(|p| p.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: no folder shared/feeds with real recordings was found");
    }
    found
}

/// The five that were recorded at the same time on one clock.
fn together(folder: &Path) -> Vec<PathBuf> {
    [
        "spot/btcusdt_20240808.gz",
        "spot/ethusdt_20240808.gz",
        "usdm/btcusdt_20240808.gz",
        "cm/btcusd_perp_20240808.gz",
        "cm/ethusd_perp_20240808.gz",
    ]
    .map(|file| folder.join("binance").join(file))
    .to_vec()
}

/// A file's text by another way: unpacked whole.
fn text_of(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(std::fs::File::open(path)?).read_to_string(&mut text)?;
    Ok(text)
}

#[test]
fn real_stamped_recordings_are_read_line_by_line_without_loss() {
    let Some(folder) = recordings() else { return };
    for path in together(&folder) {
        let text = text_of(&path).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        for line in text.lines() {
            let (time, message) = line.split_once(' ').unwrap();
            let record = reader.read_next().unwrap();
            assert_eq!(record.receive_time, Some(time.parse().unwrap()));
            assert_eq!(record.text, message.as_bytes());
        }
        assert!(!reader.advance());
        assert_eq!((reader.damage(), reader.tally().bad_lines()), (None, 0));
        assert_eq!(reader.format(), Some(Format::Stamped));
        assert_eq!(reader.compression(), Compression::Gzip);
        assert_eq!(reader.file_offset(), std::fs::metadata(&path).unwrap().len());
    }
}

#[test]
fn real_recordings_are_merged_in_time_and_each_keeps_its_order() {
    let Some(folder) = recordings() else { return };
    let paths = together(&folder);
    let recordings = paths.iter().map(|path| Recording::load(path, PLENTY).unwrap()).collect();
    let options = ReplayOptions { speed: Speed::Max, ..ReplayOptions::default() };
    let mut replay = Replay::new(recordings, options).unwrap();
    let texts: Vec<String> = paths.iter().map(|path| text_of(path).unwrap()).collect();
    let mut lines: Vec<_> = texts.iter().map(|text| text.lines()).collect();
    let mut last = 0;
    loop {
        match replay.next(Instant::default()) {
            Step::Record { source, record } => {
                let (time, message) = lines[source].next().unwrap().split_once(' ').unwrap();
                assert_eq!(record.text, message.as_bytes());
                let time: i64 = time.parse().unwrap();
                assert!(time >= last, "the stamps of these recordings are in order");
                last = time;
            }
            Step::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(lines.iter_mut().all(|lines| lines.next().is_none()), "every line was played");
}

#[test]
fn a_real_recording_takes_its_span_at_any_speed() {
    let Some(folder) = recordings() else { return };
    let path = &together(&folder)[0];
    let recording = Recording::load(path, PLENTY).unwrap();
    let found = inspect(&mut recording.reader().unwrap(), |_, _| {});
    let (first, last) = found.span.unwrap();
    assert_eq!(found.out_of_order, 0);
    for factor in [0.5, 1.0, 1000.0] {
        let options = ReplayOptions { speed: Speed::times(factor).unwrap(), ..Default::default() };
        let mut replay = Replay::new(vec![recording.clone()], options).unwrap();
        let mut now = Instant::default();
        let mut records = 0;
        loop {
            match replay.next(now) {
                Step::Record { .. } => records += 1,
                Step::WaitUntil(due) => now = due,
                Step::Ended => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(records, found.tally.messages);
        let span = (last - first) as f64 / factor;
        assert!((now.as_nanos() as f64 - span).abs() <= 1.0, "at {factor}");
    }
}

#[test]
fn a_real_recording_rewritten_in_our_format_is_the_same_and_packs_about_as_small() {
    let Some(folder) = recordings() else { return };
    let path = &together(&folder)[2];
    let mut original = Reader::open(path).unwrap();
    let mut recorder = Recorder::new(Vec::new(), RecorderOptions::default()).unwrap();
    while let Some(record) = original.read_next() {
        recorder.message(record.receive_time.unwrap(), record.text).unwrap();
    }
    let (file, summary) = recorder.finish().unwrap();
    assert_eq!(summary.records, original.tally().messages);
    assert!(summary.file_bytes < std::fs::metadata(path).unwrap().len() * 5 / 4);
    let mut original = Reader::open(path).unwrap();
    let mut rewritten = Reader::from_bytes("rewritten", file.into()).unwrap();
    while let Some(record) = original.read_next() {
        assert_eq!(rewritten.read_next(), Some(record));
    }
    assert!(!rewritten.advance());
}

#[test]
fn a_real_recording_cut_short_plays_what_is_whole_and_tells_where_it_ends() {
    let Some(folder) = recordings() else { return };
    let path = &together(&folder)[0];
    let (whole, text) = (std::fs::read(path).unwrap(), text_of(path).unwrap());
    for part in 1..8 {
        let cut = whole.len() * part / 8;
        let mut reader = Reader::from_bytes("cut", whole[..cut].to_vec().into()).unwrap();
        let mut lines = text.lines();
        while let Some(record) = reader.read_next() {
            let message = lines.next().unwrap().split_once(' ').unwrap().1;
            assert_eq!(record.text, message.as_bytes());
        }
        let (played, damage) = (reader.tally().messages, reader.damage().unwrap());
        assert_eq!(damage.record, played);
        assert!(played > text.lines().count() as u64 * (part as u64 - 1) / 8);
        let start: usize = text.lines().take(played as usize).map(|line| line.len() + 1).sum();
        assert_eq!(damage.text_offset, start as u64);
    }
}

#[test]
fn real_captures_yield_what_was_received_and_nothing_else() {
    let Some(folder) = recordings() else { return };
    for (file, format, received) in [
        ("binance/cryptofeed/cf_binance.jsonl.zst", Format::Cryptofeed, 265),
        ("binance/cryptofeed/cf_binance_delivery.jsonl.zst", Format::Cryptofeed, 4371),
        ("kraken/cf_kraken.jsonl.zst", Format::Cryptofeed, 4430),
        ("binance/cryptofeed/cfv1_binance-ee25be.0.gz", Format::CryptofeedText, 4716),
        ("bybit/cfv1_bybit.ws.25.0.gz", Format::CryptofeedText, 3342),
    ] {
        let mut reader = Reader::open(&folder.join(file)).unwrap();
        let found = inspect(&mut reader, |record, _| {
            assert!(record.receive_time.is_some_and(|time| time > 1_600_000_000_000_000_000));
            assert!(serde_json::from_slice::<serde_json::Value>(record.text).is_ok(), "{file}");
        });
        assert_eq!((found.format, found.tally.messages), (Some(format), received), "{file}");
        assert!(found.tally.other_records > 0, "{file}");
        assert_eq!((found.tally.bad_lines(), found.damage), (0, None), "{file}");
    }
}
