//! The program as a person or a script runs it: what it prints, and how it exits.

use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The program without the caller's settings.
pub(crate) fn tidegate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).stdin(Stdio::null());
    for name in ["TIDEGATE_LOG", "NO_COLOR", "COLUMNS"] {
        command.env_remove(name);
    }
    command
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    tidegate(arguments).output().unwrap()
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

const COMMANDS: [&str; 9] = [
    "serve",
    "replay",
    "subscribe",
    "inspect",
    "simulate",
    "validate",
    "config",
    "completions",
    "man",
];

#[test]
fn every_command_has_help_that_fits_and_shows_how_it_is_called() {
    let help = out(&run(&["--help"]));
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{command} is listed:\n{help}");
        let output = run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        let help = out(&output);
        assert!(help.contains("Usage: tidegate"), "{help}");
        if command != "config" {
            assert!(help.contains("Examples:\n  tidegate "), "{help}");
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
    }
}

/// The help of every command, as it was last looked at by a person. After a change on purpose, run
/// the test with `TIDEGATE_UPDATE_HELP=1` and read the difference.
#[test]
fn the_help_is_as_it_was_reviewed() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cli_help.txt");
    let mut help = String::new();
    for command in std::iter::once(None).chain(COMMANDS.map(Some)) {
        let arguments: Vec<&str> = command.into_iter().chain(["--help"]).collect();
        help += &format!("$ tidegate {}\n{}\n", arguments.join(" "), out(&run(&arguments)));
    }
    if std::env::var_os("TIDEGATE_UPDATE_HELP").is_some() {
        std::fs::write(&file, &help).unwrap();
    }
    let reviewed = std::fs::read_to_string(&file).unwrap();
    for (is, was) in help.lines().zip(reviewed.lines()) {
        assert_eq!(is, was);
    }
    assert_eq!(help.lines().count(), reviewed.lines().count());
}

#[test]
fn the_first_help_names_the_exit_codes_and_the_line_to_try() {
    let help = out(&run(&["--help"]));
    for line in [
        "  78  the configuration is wrong",
        "tidegate subscribe ws://127.0.0.1:9010/v1/stream 'binance:*'",
    ] {
        assert!(help.contains(line), "{help}");
    }
}

#[test]
fn a_wrong_command_line_exits_with_2_and_says_what_would_be_right() {
    for (arguments, expected) in [
        (&["sing"][..], "unrecognized subcommand"),
        (&["replay"], "<[VENUE=]FILE>"),
        (&["replay", "a", "--subscriber", "a:*"], "--digest"),
        (&["replay", "a", "--digest", "--subscriber", "a:*,hz=1"], "is no setting"),
        (&["replay", "a", "--digest", "--loop"], "cannot be used with"),
        (&["replay", "a", "--speed", "-1"], "write \"max\", or a number above 0"),
        (&["replay", "a", "--venue", "nyse"], "binance-usdm"),
        (&["simulate", "--out", "x", "--duration", "60"], "write a number and its unit"),
        (&["subscribe", "wss://x", "a:B"], "TLS is not spoken here"),
        (&["serve", "--log", "tidegate=loud"], "write a level"),
    ] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(err(&output).contains(expected), "{arguments:?}: {}", err(&output));
        assert_eq!(out(&output), "");
    }
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(out(&output).contains("simulate"), "{shell}");
    }
    assert!(out(&run(&["man"])).contains(".TH tidegate 1"));
    let folder = tempfile::tempdir().unwrap();
    let output = run(&["man", "--out", text(folder.path())]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(folder.path().join("tidegate-subscribe.1").is_file());
}

#[test]
fn a_good_configuration_is_ok_and_shown_with_its_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.toml");
    std::fs::write(&file, out(&run(&["config"]))).unwrap();
    let output = run(&["validate", text(&file)]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(
        out(&output)
            .ends_with("my.toml: 1 feed (sample), gateway 127.0.0.1:9010, admin 127.0.0.1:9011\n")
    );
    let shown = out(&run(&["validate", "--config", text(&file), "--show"]));
    assert!(shown.contains("max_batch_bytes = 65536"), "{shown}");
    std::fs::write(&file, shown).unwrap();
    assert_eq!(run(&["validate", text(&file)]).status.code(), Some(0), "what is shown is valid");
}

#[test]
fn every_problem_of_a_bad_configuration_is_told_with_its_place_and_the_exit_is_78() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.toml");
    let bad = "[subscriber]\ncapacity = -1\nmax_hzz = 5\n\n[[feed]]\nname = \"a\"\nvenue = \"nyse\"\nrecording = [\"x\"]\n";
    std::fs::write(&file, bad).unwrap();
    for command in [&["validate", text(&file)][..], &["serve", "--config", text(&file)]] {
        let output = run(command);
        assert_eq!(output.status.code(), Some(78));
        assert_eq!(out(&output), "");
        let told = err(&output);
        for place in [
            "bad.toml:2:12: subscriber.capacity: must be",
            "bad.toml:3:1: subscriber.max_hzz: is not a known key; did you mean",
            "bad.toml:7:9: feed.a.venue: must be",
        ] {
            assert!(told.contains(place), "{place} in\n{told}");
        }
        assert!(told.contains("problems in the configuration"), "{told}");
    }
    let output = run(&["validate", "no/such/file.toml"]);
    assert_eq!(output.status.code(), Some(78));
    assert!(
        err(&output)
            .starts_with("tidegate: reading the configuration no/such/file.toml: No such file")
    );
}

#[test]
fn recordings_that_are_not_there_are_warned_of_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.toml");
    let config = "[[feed]]\nname = \"a\"\nvenue = \"binance\"\nrecording = [\"gone.gz\"]\n";
    std::fs::write(&file, config).unwrap();
    let output = run(&["validate", text(&file)]);
    assert_eq!(output.status.code(), Some(0));
    assert!(err(&output).contains("warning: ") && err(&output).contains("gone.gz"));
    let output = run(&["validate", text(&file), "--recordings"]);
    assert_eq!(output.status.code(), Some(78));
}

#[test]
fn replay_refuses_what_is_no_recording_before_it_starts() {
    let folder = tempfile::tempdir().unwrap();
    let packed = folder.path().join("a.xz");
    std::fs::write(&packed, b"\xfd7zXZ\0").unwrap();
    for (file, expected) in [
        (text(&packed), "unpack it first with `xz -d`"),
        ("no/such.gz", "opening recording no/such.gz: No such file"),
        (text(folder.path()), "it is a folder"),
    ] {
        let output = run(&["replay", file, "--listen", "127.0.0.1:0"]);
        assert_eq!(output.status.code(), Some(1), "{}", err(&output));
        assert!(err(&output).contains(expected), "{}", err(&output));
    }
}

#[test]
fn the_same_seed_makes_the_same_bytes_and_another_seed_others() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, seed: &str| {
        let file = folder.path().join(name);
        let output = run(&["simulate", "--out", text(&file), "--seed", seed, "--duration", "2s"]);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert_eq!(out(&output), "", "the summary is beside the point");
        assert!(err(&output).contains("24 instruments: "), "{}", err(&output));
        std::fs::read(file).unwrap()
    };
    let first = make("a", "7");
    assert_eq!(make("b", "7"), first);
    assert_ne!(make("c", "8"), first);
    let piped = run(&["simulate", "--out", "-", "--seed", "7", "--duration", "2s"]);
    assert_eq!(piped.stdout, first);
}

#[test]
fn a_file_is_replaced_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    std::fs::write(&file, "precious").unwrap();
    let arguments = ["simulate", "--out", text(&file), "--duration", "10ms"];
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("exists; replace it with --force"), "{}", err(&output));
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let output = tidegate(&arguments).arg("--force").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_ne!(std::fs::read(&file).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    let output = run(&["simulate", "--out", "x", "--instruments", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("instruments must be from 1"), "{}", err(&output));
}

#[test]
fn inspect_finds_what_simulate_made() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    let made = run(&["simulate", "--out", text(&file), "--duration", "5s", "--json"]);
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    let output = run(&["inspect", text(&file), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["messages"], made["messages"]);
    assert_eq!(found["fills"], made["fills"]);
    assert_eq!(found["text_bytes"], made["text_bytes"]);
    assert_eq!(found["streams"]["bookTicker"], made["book_tickers"]);
    let ticks = |list: &serde_json::Value, name: &str| {
        let list = list.as_array().unwrap().iter();
        let mut ticks: Vec<(String, u64)> = list
            .map(|one| {
                let symbol = one[name].as_str().unwrap().trim_start_matches("binance:").to_owned();
                (symbol, one["ticks"].as_u64().unwrap())
            })
            .collect();
        ticks.sort();
        ticks
    };
    assert_eq!(ticks(&found["instruments"], "instrument"), ticks(&made["instruments"], "symbol"));
    let sums = |list: &serde_json::Value, name: &str| {
        let mut sums: Vec<String> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                let symbol = one[name].as_str().unwrap().trim_start_matches("binance:");
                format!(
                    "{} {symbol} {} {} {} {}",
                    one["account"], one["fills"], one["bought"], one["sold"], one["notional"]
                )
            })
            .collect();
        sums.sort();
        sums
    };
    let volumes = sums(&found["volumes"], "instrument");
    assert!(!volumes.is_empty());
    assert_eq!(volumes, sums(&made["volumes"], "symbol"));
    assert_eq!(found["refused"], serde_json::json!({}));

    let shown = out(&run(&["inspect", text(&file)]));
    for part in
        ["zstd, tidegate recording", "binance:BTCUSDT", "bookTicker", "desk-1", "0 out of order"]
    {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(!shown.contains('\x1b'), "no colour but on a terminal");
}

#[test]
fn a_damaged_recording_is_told_up_to_its_damage_and_the_exit_is_2() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    run(&["simulate", "--out", text(&whole), "--duration", "5s"]);
    let bytes = std::fs::read(&whole).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let output = run(&["inspect", text(&cut), "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["messages"].as_u64().unwrap() > 1000);
    assert_eq!(found["damage"]["record"], found["messages"]);
    assert!(found["damage"]["message"].as_str().unwrap().contains("ends in the middle"));
    let both = run(&["inspect", text(&whole), text(&cut)]);
    assert_eq!(both.status.code(), Some(2));
    assert!(out(&both).contains("DAMAGED: the packed file ends in the middle at record"));
    let with_missing = run(&["inspect", "no/such", text(&cut)]);
    assert_eq!(with_missing.status.code(), Some(1), "the other is told nevertheless");
    assert!(out(&with_missing).contains("DAMAGED") && err(&with_missing).contains("no/such"));
}

#[test]
fn bad_lines_and_refused_messages_are_told_by_reason_and_are_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    let book = |id: u32, bid: &str| {
        format!(r#"1700000001 {{"u":{id},"s":"A","b":"{bid}","B":"1","a":"2","A":"1"}}"#)
    };
    std::fs::write(
        &file,
        format!("{}\nno time\n{}\n{}\n", book(2, "1.0"), book(1, "9"), book(3, "x")),
    )
    .unwrap();
    let output = run(&["inspect", text(&file), "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["refused"], serde_json::json!({"late_quote": 1, "bad_number": 1}));
    assert_eq!(found["bad_lines"]["no_time"]["first_line"], 2);
    assert_eq!(found["instruments"][0]["bid"], "1.0");
    let shown = out(&run(&["inspect", text(&file)]));
    assert!(shown.contains("refused: late_quote") && shown.contains("line 2"), "{shown}");
}

#[test]
fn an_output_that_nobody_reads_ends_the_program_quietly() {
    let mut child =
        tidegate(&["config"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Closed before or while it is written: either way there is nothing to complain about.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
}

#[test]
fn a_digest_is_the_last_line_and_frames_are_written_out_but_over_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let frames = folder.path().join("frames.jsonl");
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("feeds/sample.jsonl.zst");
    let sample = sample.to_str().unwrap();
    let arguments = [
        "replay",
        sample,
        "--digest",
        "--subscriber",
        "binance:BTCUSDT,max_hz=1",
        "--out",
        frames.to_str().unwrap(),
    ];
    let first = run(&arguments);
    assert_eq!(first.status.code(), Some(0), "{}", err(&first));
    assert_eq!(err(&first), "", "nothing is served, so nothing is told");
    let last = out(&first).lines().last().unwrap().to_owned();
    assert_eq!(last.strip_prefix("sha256 ").unwrap().len(), 64);
    let written = std::fs::read_to_string(&frames).unwrap();
    let kinds: Vec<String> = written
        .lines()
        .map(|line| {
            let frame: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(frame["subscriber"], 1);
            frame["message"]["type"].as_str().or(frame["frame"].as_str()).unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds[0], "welcome");
    assert_eq!(kinds.last().unwrap(), "close");
    assert!(kinds.iter().filter(|kind| *kind == "quotes").count() > 50);
    let again = run(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(err(&again).contains("--force writes over it"), "{}", err(&again));
    let again = run(&[&arguments[..], &["--force", "--speed", "1000"]].concat());
    assert_eq!(out(&again).lines().last().unwrap(), last);
}
