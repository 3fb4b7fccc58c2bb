//! Recording while serving, and recording a replay.

use std::path::{Path, PathBuf};

use tidegate::feed::{Mark, Reader, Recorder, RecorderOptions};

use super::texts;
use crate::cli::{err, out, run};
use crate::serve_support::{FREE_PORTS, Server, eventually, simulated};

fn recorded_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "zst"))
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn what_a_served_feed_receives_is_recorded_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (messages, _) = simulated(&folder.path().join("source.zst"), 4, 2000);
    let recordings = folder.path().join("recordings");
    let config = format!(
        "{FREE_PORTS}[[feed]]\nname = \"spot\"\nvenue = \"binance\"\nrecording = [\"source.zst\"]\n\
         speed = \"max\"\n[feed.record]\nfolder = \"recordings\"\nrotate_every = \"1s\"\n"
    );
    let mut server = Server::start_in(folder, &config);
    let count = format!("tidegate_feed_records_written_total{{feed=\"spot\"}} {}", messages.len());
    eventually("every record is flushed", async || {
        server.get("/metrics").await.body.contains(&count)
    })
    .await;
    let metrics = server.get("/metrics").await.body;
    for reason in ["overflow", "failure"] {
        let lost =
            format!("tidegate_feed_records_lost_total{{feed=\"spot\",reason=\"{reason}\"}} 0");
        assert!(metrics.contains(&lost), "{metrics}");
    }
    server.signal("TERM");
    assert!(server.exited().await.success(), "{}", server.log());
    let files = recorded_files(&recordings);
    assert!(files.len() >= 4, "a file each second of the recording: {files:?}");
    let recorded: Vec<_> = files.iter().flat_map(|file| texts(file)).collect();
    assert_eq!(recorded, messages);
}

#[tokio::test]
async fn a_break_of_the_connection_is_played_as_stale_data_and_recorded_again() {
    let folder = tempfile::tempdir().unwrap();
    let start = 1_767_607_200_000_000_000;
    let mut recorder =
        Recorder::create(&folder.path().join("source.zst"), RecorderOptions::default()).unwrap();
    let quote = br#"{"u":1,"s":"BTCUSDT","b":"1","B":"1","a":"2","A":"1"}"#;
    recorder.mark(start, Mark::Connected).unwrap();
    recorder.message(start, quote).unwrap();
    recorder.mark(start + 1_000_000_000, Mark::Disconnected).unwrap();
    recorder.message(start + 4_000_000_000, quote).unwrap();
    recorder.mark(start + 5_000_000_000, Mark::Gap { lost: 7 }).unwrap();
    recorder.message(start + 8_000_000_000, quote).unwrap();
    recorder.finish().unwrap();
    let (source, recordings) = (folder.path().join("source.zst"), folder.path().join("out"));
    let config = format!(
        "{FREE_PORTS}[[feed]]\nname = \"spot\"\nvenue = \"binance\"\nrecording = [\"source.zst\"]\n\
         speed = 20\n[feed.record]\nfolder = \"out\"\n"
    );
    let mut server = Server::start_in(folder, &config);
    eventually("the recording has ended", async || {
        server.json("/v1/feeds").await[0]["reason"] == "ended"
    })
    .await;
    let log = server.log();
    let changes = log.lines().filter(|line| line.contains("the health of a feed has changed"));
    let seen: Vec<&str> = changes
        .map(|line| {
            line.split_once("reason=").map_or("live", |(_, reason)| reason.trim_matches('"'))
        })
        .collect();
    assert_eq!(seen, ["live", "disconnected", "live", "disconnected", "live", "ended"]);
    server.signal("TERM");
    assert!(server.exited().await.success());
    let everything = |path: &Path| {
        let mut reader = Reader::open(path).unwrap();
        let mut records = Vec::new();
        while let Some(record) = reader.read_next() {
            records.push((record.receive_time, record.kind, record.text.to_vec()));
        }
        records
    };
    assert_eq!(everything(&recorded_files(&recordings)[0]), everything(&source));
}

#[test]
fn a_replay_is_recorded_as_it_was_and_never_over_a_file_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source.zst");
    let (messages, _) = simulated(&source, 3, 2000);
    let config = folder.path().join("t.toml");
    std::fs::write(
        &config,
        "[[feed]]\nname = \"spot\"\nvenue = \"binance\"\nrecording = [\"source.zst\"]\n\
         speed = \"max\"\n",
    )
    .unwrap();
    let target = folder.path().join("out.jsonl.zst");
    let arguments = |more: &'static [&'static str]| {
        let named = ["record", "--config", config.to_str().unwrap(), "--out"];
        let all: Vec<String> = named
            .into_iter()
            .chain([target.to_str().unwrap()])
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect();
        all
    };
    let record = |more| {
        let arguments = arguments(more);
        run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let done = record(&["--json"]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    let summary: serde_json::Value = serde_json::from_str(&out(&done)).unwrap();
    assert_eq!(summary["records"], messages.len());
    assert_eq!((&summary["lost_to_overflow"], &summary["files"]), (&0.into(), &1.into()));
    assert_eq!(super::read(&target), super::read(&source), "times and texts are the same");

    let before = std::fs::read(&target).unwrap();
    let refused = record(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("exists; replace it with --force"), "{}", err(&refused));
    assert_eq!(std::fs::read(&target).unwrap(), before);
    assert_eq!(record(&["--force"]).status.code(), Some(0));
    let unknown = record(&["--force", "--feed", "perp"]);
    assert!(err(&unknown).contains("no feed \"perp\""), "{}", err(&unknown));
    assert_eq!(texts(&target), messages);
}
