//! Recording while serving, and recording a replay.

use std::path::{Path, PathBuf};

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
