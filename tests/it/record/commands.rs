//! `convert`, `cut`, `merge` and `verify` as a person runs them.

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use super::{read, texts};
use crate::cli::{err, out, run};
use crate::serve_support::simulated;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn name(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Runs a command; words that begin with @ are files of the folder.
    fn run(&self, line: &str) -> Output {
        let words: Vec<String> = line
            .split(' ')
            .map(|word| word.strip_prefix('@').map_or(word.to_owned(), |file| self.name(file)))
            .collect();
        run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn json(&self, line: &str, code: i32) -> Value {
        let output = self.run(&format!("{line} --json"));
        assert_eq!(output.status.code(), Some(code), "{line}: {}", err(&output));
        serde_json::from_str(&out(&output)).unwrap()
    }
}

fn torn(path: &Path, to: &Path) {
    let bytes = std::fs::read(path).unwrap();
    std::fs::write(to, &bytes[..bytes.len() * 2 / 3]).unwrap();
}

#[test]
fn a_recording_goes_into_every_format_and_comes_back_the_same() {
    let folder = Folder::new();
    simulated(&folder.path("a.zst"), 3, 1000);
    for format in ["lines", "cryptofeed", "recording"] {
        let there = folder.json(&format!("convert @a.zst --to {format} --out @{format}"), 0);
        assert_eq!(there["messages_lost"], 0);
        folder.json(&format!("convert @{format} --out @back-{format}.zst"), 0);
        let back = folder.path(&format!("back-{format}.zst"));
        assert_eq!(read(&back), read(&folder.path("a.zst")), "{format}");
    }
    let refused = folder.run("convert @a.zst --out @lines");
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains("exists; replace it with --force"), "{}", err(&refused));
    let itself = folder.run("convert @a.zst --out @a.zst --force");
    assert!(err(&itself).contains("cannot be written"), "{}", err(&itself));
    folder.json("convert @a.zst --out @lines --force", 0);
}

#[test]
fn a_cut_keeps_the_range_and_the_instruments_that_are_asked_for() {
    let folder = Folder::new();
    simulated(&folder.path("a.zst"), 4, 2000);
    let (all, _) = read(&folder.path("a.zst"));
    let start = all[0].0;
    let (from, to) = (start + 1_000_000_000, start + 2_500_000_000);
    folder.json(&format!("cut @a.zst --from {from} --to {to} --out @range.zst"), 0);
    let expected: Vec<_> =
        all.iter().filter(|(time, _)| (from..to).contains(time)).cloned().collect();
    assert!(!expected.is_empty());
    assert_eq!(read(&folder.path("range.zst")), (expected, None));

    let made = folder.json("cut @a.zst --out @btc.zst --instruments BTCUSDT", 0);
    let kept = texts(&folder.path("btc.zst"));
    let quotes = |texts: &[String]| {
        texts.iter().filter(|text| text.contains("\"btcusdt@bookTicker\"")).count()
    };
    let texts: Vec<String> = all.iter().map(|(_, text)| text.clone()).collect();
    assert!(quotes(&kept) > 10);
    assert_eq!(quotes(&kept), quotes(&texts));
    assert!(!kept.iter().any(|text| text.contains("\"s\":\"ETHUSDT\"")));
    let (messages, left) = (made["messages"].as_u64().unwrap(), made["left_out"].as_u64().unwrap());
    assert_eq!(messages + left, texts.len() as u64, "every record is accounted for");

    for (bad, why) in [
        ("cut @a.zst --out @x.zst", "nothing is cut"),
        ("cut @a.zst --from 20 --to 10 --out @x.zst", "nothing is left"),
        ("cut @a.zst --instruments kraken:XBT --out @x.zst", "is of another venue"),
    ] {
        let refused = folder.run(bad);
        assert_eq!(refused.status.code(), Some(1), "{bad}");
        assert!(err(&refused).contains(why), "{}", err(&refused));
        assert!(!folder.path("x.zst").exists());
    }
}

#[test]
fn merged_parts_are_the_whole_again() {
    let folder = Folder::new();
    simulated(&folder.path("a.zst"), 4, 1000);
    let (all, _) = read(&folder.path("a.zst"));
    let at = all[all.len() / 2].0;
    folder.json(&format!("cut @a.zst --to {at} --out @one.zst"), 0);
    folder.json(&format!("cut @a.zst --from {at} --out @two.zst"), 0);
    folder.json("merge @two.zst @one.zst --out @both.zst", 0);
    assert_eq!(read(&folder.path("both.zst")), (all, None));
    assert_eq!(folder.run("merge @one.zst @one.zst --out @x.zst").status.code(), Some(1));
}

#[test]
fn b30_a_torn_recording_is_told_from_a_whole_one_and_repaired() {
    let folder = Folder::new();
    simulated(&folder.path("a.zst"), 4, 1000);
    let whole = folder.json("verify @a.zst", 0);
    assert_eq!((&whole["state"], &whole["index"]), (&"whole".into(), &"good".into()));
    torn(&folder.path("a.zst"), &folder.path("torn.zst"));
    let told = folder.json("verify @torn.zst", 2);
    assert_eq!((&told["state"], &told["index"]), (&"torn".into(), &"missing".into()));
    let damage = told["damage"].as_str().unwrap();
    assert!(damage.contains("byte") && damage.contains("whole records"), "{damage}");

    let refused = folder.run("verify @torn.zst --repair");
    assert!(err(&refused).contains("give --force, or --out FILE"), "{}", err(&refused));
    folder.json("verify @torn.zst --repair --out @new.zst", 0);
    let kept = texts(&folder.path("new.zst"));
    let all = texts(&folder.path("a.zst"));
    assert!(kept.len() > all.len() / 4);
    assert_eq!(kept, all[..kept.len()]);
    assert_eq!(folder.json("verify @new.zst", 0)["state"], "whole");
    let in_place = folder.json("verify @torn.zst --repair --force", 0);
    assert_eq!(in_place["repaired"], kept.len());
    assert_eq!(texts(&folder.path("torn.zst")), kept);

    // Work goes on with what is whole, and the damage is told.
    torn(&folder.path("a.zst"), &folder.path("torn.zst"));
    let made = folder.json("convert @torn.zst --to lines --out @lines.gz", 2);
    assert_eq!(made["messages"], kept.len());
    assert_eq!(made["damage"][0]["record"], kept.len());
    assert_eq!(texts(&folder.path("lines.gz")), kept);
}

#[test]
fn a_recording_of_the_version_before_is_read_and_verified() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("feeds/sample.jsonl.zst");
    let folder = Folder::new();
    std::fs::copy(sample, folder.path("old.zst")).unwrap();
    let told = folder.json("verify @old.zst", 0);
    assert_eq!((&told["state"], &told["index"]), (&"whole".into(), &"missing".into()));
    folder.json("convert @old.zst --out @new.zst", 0);
    assert_eq!(folder.json("verify @new.zst", 0)["index"], "good");
    assert_eq!(read(&folder.path("new.zst")), read(&folder.path("old.zst")));
}
