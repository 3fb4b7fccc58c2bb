//! What a configuration may say, and what is told when it says something else.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tidegate::config::{
    Confirm, EMBEDDED_DEFAULT, Input, KEYS, Lines, MAX_FILE_BYTES, RecordSettings, Recording,
    Settings, Source, Speed, Start, VENUES,
};

const EXAMPLE: &str = include_str!("../../config/example.toml");

/// A feed that is right, to stand under settings that are to be judged.
const SECOND: i64 = 1_000_000_000;

const FEED: &str = "[[feed]]\nname = \"a\"\nvenue = \"binance\"\nlines = \"-\"\n";

fn source() -> Source {
    Source::file("etc/t.toml", VENUES)
}

fn parse(text: &str) -> Settings {
    source().parse(text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}\nof\n{text}"))
}

/// The problems of a text, one a line, without the file's name.
fn problems(text: &str) -> Vec<String> {
    let errors = source().parse(text.as_bytes()).expect_err(text);
    errors.to_string().lines().map(|line| line.replacen("etc/t.toml:", "", 1)).collect()
}

#[test]
fn the_embedded_default_is_what_the_program_has_as_defaults() {
    let embedded = Source::embedded(VENUES);
    assert_eq!(embedded.read().unwrap(), EMBEDDED_DEFAULT.as_bytes());
    assert_eq!(
        embedded.parse_with_files(EMBEDDED_DEFAULT.as_bytes()).unwrap(),
        Settings::embedded()
    );
}

#[test]
fn what_a_file_leaves_out_has_the_documented_default() {
    let left_out = parse(FEED);
    let documented = Settings::embedded();
    assert_eq!(left_out.gateway, documented.gateway);
    assert_eq!(left_out.subscriber, documented.subscriber);
    assert_eq!(left_out.admin, documented.admin);
    let (feed, sample) = (&left_out.feeds[0], &documented.feeds[0]);
    assert_eq!((feed.speed, feed.start), (sample.speed, sample.start));
    assert_eq!((feed.max_gap, feed.queue), (sample.max_gap, sample.queue));
    assert_eq!((feed.looped, &feed.account), (false, &None));
}

/// The comment above each key of the embedded default.
fn documented() -> Vec<(String, String)> {
    let (mut section, mut comment) = (String::new(), String::new());
    let mut found = Vec::new();
    for line in EMBEDDED_DEFAULT.lines() {
        let plain = line.strip_prefix("# ").unwrap_or(line);
        let word = plain.split_once(" = ").map(|(word, _)| word);
        if let Some(word) =
            word.filter(|word| word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        {
            found.push((format!("{section}.{word}"), std::mem::take(&mut comment)));
        } else if plain.starts_with('[') {
            section = plain.trim_matches(['[', ']']).to_owned();
            comment.clear();
        } else {
            comment.push_str(plain);
            comment.push(' ');
        }
    }
    found
}

#[test]
fn the_embedded_default_explains_every_key_once_and_marks_the_hot_ones() {
    let feed_words = [
        "name",
        "venue",
        "account",
        "recording",
        "lines",
        "url",
        "instruments",
        "channels",
        "stale_after",
        "first_retry",
        "longest_retry",
        "ca_file",
        "speed",
        "loop",
        "start",
        "max_gap",
        "from",
        "to",
        "only",
        "timeline",
        "queue",
        "record.folder",
        "record.rotate_bytes",
        "record.rotate_every",
        "record.keep_files",
        "record.keep_bytes",
        "record.queue_bytes",
    ];
    let expected: Vec<String> = KEYS
        .iter()
        .map(|key| key.name.to_owned())
        .chain(feed_words.map(|word| format!("feed.{word}")))
        .collect();
    let documented = documented();
    let mut names: Vec<_> = documented.iter().map(|(name, _)| name.clone()).collect();
    let mut sorted = expected.clone();
    names.sort();
    sorted.sort();
    assert_eq!(names, sorted);
    for (name, comment) in &documented {
        assert!(comment.len() > 20, "{name} is explained");
        let hot =
            KEYS.iter().any(|key| key.name == name && key.effect == tidegate::config::Effect::Hot);
        assert_eq!(comment.contains("(hot)"), hot, "{name}");
    }
}

#[test]
fn what_the_embedded_default_has_as_comments_can_be_switched_on() {
    let text = EMBEDDED_DEFAULT
        .replace("# account =", "account =")
        .replace("recording =", "# recording =")
        .replace("# lines =", "lines =");
    let feed = &parse(&text).feeds[0];
    assert_eq!(feed.account.as_deref(), Some("desk-1"));
    assert_eq!(feed.input, Input::Lines(Lines::Tcp("127.0.0.1:7000".to_owned())));
}

#[test]
fn a_recorder_is_what_its_section_says_and_is_written_as_it_is_read() {
    let start = EMBEDDED_DEFAULT.find("# [feed.record]").unwrap();
    let (before, section) = EMBEDDED_DEFAULT.split_at(start);
    let keys = section.lines().filter(|line| line.contains(" = ") || line.contains("[feed"));
    let section: String = keys.map(|line| format!("{}\n", &line[2..])).collect();
    let settings = parse(&format!("{before}{section}"));
    let record = settings.feeds[0].record.as_ref().unwrap();
    assert_eq!(*record, RecordSettings::new("etc/recordings"), "what is documented is the default");
    let written = settings.to_toml().unwrap();
    let again = parse(&written).feeds[0].record.clone().unwrap();
    assert_eq!(RecordSettings { folder: record.folder.clone(), ..again }, *record);

    for (wrong, told) in [
        ("record = 1", "feed.a.record: must be a section"),
        ("[feed.record]", "feed.a.record.folder: is missing"),
        ("[feed.record]\nfolder = \"\"", "feed.a.record.folder: must be a folder"),
        ("[feed.record]\nfolder = \"x\"\nkeep = 1", "feed.a.record.keep: is not a known key"),
        ("[feed.record]\nfolder = \"x\"\nqueue_bytes = 0", "from 1048576 to 4294967296, not 0"),
        ("[feed.record]\nfolder = \"x\"\nrotate_every = \"-1s\"", "feed.a.record.rotate_every"),
    ] {
        let feed = "[[feed]]\nname = \"a\"\nvenue = \"binance\"\nlines = \"-\"\n";
        let found = problems(&format!("{feed}{wrong}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(told), "{found:?}");
    }
}

#[test]
fn the_part_of_a_recording_that_is_played_is_named_rightly_or_refused() {
    const RECORDED: &str =
        "[[feed]]\nname = \"a\"\nvenue = \"binance\"\nrecording = [\"embedded:sample\"]\n";
    let good = "from = \"2026-01-05T10:00:00Z\"\nto = \"1767607260\"\nonly = [\"BTC*\"]\n";
    let feed = parse(&format!("{RECORDED}{good}")).feeds.remove(0);
    assert_eq!(feed.from.zip(feed.to), Some((1_767_607_200 * SECOND, 1_767_607_260 * SECOND)));
    assert_eq!(feed.only, ["BTC*"]);
    for (wrong, told) in [
        ("from = \"noon\"", "feed.a.from: must be a time"),
        ("to = 12", "feed.a.to: must be a time"),
        ("from = \"2\"\nto = \"1\"", "feed.a.to: must be later than from"),
        ("only = []", "feed.a.only: must be an array of symbols"),
        ("only = [\"kraken:XBT/USD\"]", "no instrument of binance"),
    ] {
        let found = problems(&format!("{RECORDED}{wrong}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(told), "{found:?}");
        let found = problems(&format!("{FEED}{wrong}\n"));
        assert!(found[0].contains("is for recordings"), "{found:?}");
    }
}

#[test]
fn b69_each_range_ends_where_its_documentation_says() {
    // Key, least, most, below, above; `-` where there is nothing below.
    let ranges = [
        ("gateway.max_subscribers", "0", "1048575", "-1", "1048576"),
        ("gateway.max_known_instruments", "1", "10000000", "0", "10000001"),
        ("gateway.max_known_accounts", "1", "10000000", "0", "10000001"),
        ("gateway.shards", "0", "256", "-1", "257"),
        ("gateway.pace", "\"0s\"", "\"1s\"", "\"-1ms\"", "\"1001ms\""),
        ("gateway.handshake_timeout", "\"10ms\"", "\"1h\"", "\"9ms\"", "\"3601s\""),
        ("gateway.max_header_bytes", "512", "1048576", "511", "1048577"),
        ("gateway.heartbeat", "\"10ms\"", "\"1h\"", "\"9ms\"", "\"3601s\""),
        ("gateway.shutdown_deadline", "\"0s\"", "\"1h\"", "\"-1s\"", "\"3601s\""),
        ("subscriber.capacity", "0", "1048575", "-1", "1048576"),
        ("subscriber.max_hz", "0", "1000000", "-1", "1000001"),
        ("subscriber.stall_timeout", "\"10ms\"", "\"24h\"", "\"0s\"", "\"25h\""),
        ("subscriber.max_instruments", "1", "10000000", "0", "10000001"),
        ("subscriber.max_batch_bytes", "512", "67108864", "511", "67108865"),
        ("subscriber.max_message_bytes", "128", "67108864", "127", "67108865"),
        ("subscriber.max_ops_per_s", "1", "1000000", "0", "1000001"),
        ("feed.max_gap", "\"0s\"", "\"24h\"", "\"-1s\"", "\"25h\""),
        ("feed.queue", "1", "1048576", "0", "1048577"),
    ];
    let documented = documented();
    for (key, least, most, below, above) in ranges {
        let (_, comment) = documented.iter().find(|(name, _)| name == key).unwrap();
        let (section, word) = key.split_once('.').unwrap();
        let text = |value: &str| match section {
            "feed" => format!("{FEED}{word} = {value}\n"),
            section => format!("[{section}]\n{word} = {value}\n{FEED}"),
        };
        for end in [least, most] {
            assert!(comment.contains(end), "{word} is documented with {end}");
            parse(&text(end));
        }
        for beyond in [below, above, "99999999999999999999", "\"\"", "true", "[]", "1979-05-27"] {
            let found = problems(&text(beyond));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(&format!(".{word}: ")), "{found:?}");
            assert!(
                found[0].contains(least) && found[0].contains(most),
                "{found:?} tells the range"
            );
        }
    }
}

#[test]
fn the_example_is_right_and_says_what_its_comments_say() {
    let settings = parse(EXAMPLE);
    assert_eq!(settings.subscriber.confirm, Confirm::Client);
    assert_eq!(settings.gateway.allowed_origins, ["https://desk.example"]);
    assert_eq!(settings.feeds.len(), 4);
    assert_eq!(settings.feeds[2].max_gap, Duration::from_secs(2));
    assert_eq!(settings.feeds[3].account.as_deref(), Some("desk-1"));
    assert_eq!(settings.feeds[3].start, Start::AtOnce);
}

#[test]
fn every_form_of_a_feed_is_read() {
    let feed = |line: &str| {
        let head = "[[feed]]\nname = \"a\"\nvenue = \"binance-cm\"\n";
        parse(&format!("{head}{line}\n")).feeds.remove(0)
    };
    assert_eq!(feed("lines = \"-\"").input, Input::Lines(Lines::Stdin));
    let tcp = Lines::Tcp("[::1]:7000".to_owned());
    assert_eq!(feed("lines = \"tcp://[::1]:7000\"").input, Input::Lines(tcp));
    let expected = vec![
        Recording::Sample,
        Recording::File(PathBuf::from("etc/feeds/x.zst")),
        Recording::File(PathBuf::from("/abs/y.gz")),
    ];
    let three = "recording = [\"embedded:sample\", \"feeds/x.zst\", \"/abs/y.gz\"]";
    assert_eq!(feed(three).input, Input::Recording(expected));
    for (written, speed) in [
        ("\"max\"", Speed::Max),
        ("1", Speed::Times(1.0)),
        ("0.25", Speed::Times(0.25)),
        ("1e3", Speed::Times(1000.0)),
        ("1_000_000", Speed::Times(1e6)),
    ] {
        assert_eq!(feed(&format!("lines = \"-\"\nspeed = {written}")).speed, speed);
    }
    let all = feed("lines = \"-\"\naccount = \"d\"\nloop = true\nstart = \"first_subscriber\"");
    assert_eq!(
        (all.account.as_deref(), all.looped, all.start),
        (Some("d"), true, Start::FirstSubscriber)
    );
}

#[test]
fn zero_capacity_is_a_pause_and_not_an_error() {
    assert_eq!(parse(&format!("subscriber.capacity = 0\n{FEED}")).subscriber.capacity, 0);
}

#[test]
fn all_problems_are_told_at_once_with_line_key_and_what_would_be_right() {
    let text = r#"
speed = 3
[gateway]
listen = "localhost"
pace = 1
heartbeat = "20"
allowed_origins = ["https://a.example", "https://a.example", 3, "a.example/"]
shards = 1.5
[subscriber]
capcity = 4
confirm = "Pong"
max_hz = -1
listen = "127.0.0.1:1"
stall_timeout = "soon"
[subscribers]
capacity = 1
[admin]
listen = "127.0.0.1:9010"
[[feed]]
name = "a"
venue = "krakken"
recording = []
account = "desk 1"
lines = "-"
[[feed]]
name = "a"
venue = "binance"
lines = "udp://x:1"
speed = 0
loop = "yes"
[[feed]]
recording = "one.zst"
start = "later"
[[feed]]
name = "no dots.please"
venue = "binance"
recording = ["x", "x", "", "embedded:other", 7]
"#;
    let expected = r#"
2: speed: is not a known key; it belongs to a [[feed]]
4: gateway.listen: must be an IP address with a port, such as "127.0.0.1:9010" (port 0: the system chooses), not "localhost"
5: gateway.pace: must be a duration with its unit from "0s" to "1s", not 1
6: gateway.heartbeat: "20" has no unit; it must be a duration with its unit from "10ms" to "1h"
7: gateway.allowed_origins: "https://a.example" is listed twice
7: gateway.allowed_origins: must be an array of origins, such as ["https://desk.example:8443"], without 3
7: gateway.allowed_origins: "a.example/" is no origin: write scheme://host or scheme://host:port
8: gateway.shards: must be a whole number from 0 to 256, not the fraction 1.5
10: subscriber.capcity: is not a known key; did you mean subscriber.capacity?
11: subscriber.confirm: must be one of "pong", "client", "flush", not "Pong"
12: subscriber.max_hz: must be a whole number from 0 to 1000000, not -1
13: subscriber.listen: is not a known key; it belongs to [gateway]
14: subscriber.stall_timeout: "soon" is not a duration in h, m, s, ms, us or ns; it must be a duration with its unit from "10ms" to "24h"
15: subscribers: is not a known key; did you mean subscriber?
18: admin.listen: 127.0.0.1:9010 is the address of gateway.listen too
21: feed.a.venue: must be one of VENUES, not "krakken"
22: feed.a.recording: must be an array of files, such as ["feeds/spot.jsonl.zst"], not an empty array
23: feed.a.account: must be 1 to 64 visible ASCII characters, not "desk 1"
24: feed.a.lines: cannot stand beside recording: a feed has one of recording, lines and url
26: feed.a.name: "a" is the name of the feed at line 20 too
28: feed.a.lines: must be "tcp://HOST:PORT" or "-" for standard input, not "udp://x:1"
29: feed.a.speed: must be "max" or a number above 0 up to 1000000, not 0
30: feed.a.loop: must be true or false, not the text "yes"
31: feed[3].name: is missing: every feed has one, 1 to 64 letters, digits, - and _
31: feed[3].venue: is missing: every feed has one, one of VENUES
32: feed[3].recording: must be an array of files, such as ["feeds/spot.jsonl.zst"], not the text "one.zst"
33: feed[3].start: must be one of "at_once", "first_subscriber", not "later"
35: feed[4].name: "no dots.please" is no name: it must be 1 to 64 letters, digits, - and _
37: feed[4].recording: "x" is listed twice
37: feed[4].recording: a file has no name
37: feed[4].recording: "embedded:other" is not in the program; "embedded:sample" is
37: feed[4].recording: must be an array of files, such as ["feeds/spot.jsonl.zst"], without 7
"#;
    let venues: Vec<String> = VENUES.iter().map(|venue| format!("\"{venue}\"")).collect();
    let expected = expected.replace("VENUES", &venues.join(", "));
    assert_eq!(problems(text).join("\n"), expected.trim());
}

#[test]
fn text_that_is_not_toml_is_told_with_its_line_beside_what_else_is_wrong() {
    for (text, expected) in [
        ("[gateway\npace = 3\n", "1: gateway: is not TOML: unclosed table"),
        ("[gateway]\n\npace = 1ms\n", "3: gateway.pace: is not TOML: string values must be quoted"),
        ("[gateway]\npace = \"1ms\n", "2: gateway.pace: is not TOML: invalid basic string"),
        ("[admin]\nlisten\n", "2: admin.listen: is not TOML: "),
        ("[admin]\na = 1\n[admin]\n", "2: admin.a: is not a known key; known here: listen"),
        ("[admin]\n[subscriber]\n[admin]\n", "3: admin: is not TOML: duplicate key"),
        ("{\"gateway\": {}}\n", "1: is not TOML: "),
        ("\0\0\0\0", "1: is not TOML: "),
        ("<<<<<<< HEAD\n", "1: is not TOML: "),
    ] {
        let found = problems(text);
        assert!(found[0].starts_with(expected), "{found:?}");
    }
    // One broken line does not hide the others, and what may stand in it is not called missing.
    let found = problems("[gateway]\npace = 1ms\n[subscriber]\ncapacity = -1\n[[feed]\nname = 3\n");
    let lines: Vec<_> = found.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(lines, ["2", "4", "5", "6"], "{found:?}");
    assert!(found.iter().all(|line| !line.contains("missing")), "{found:?}");
}

#[test]
fn a_text_without_settings_is_told_to_be_that() {
    assert_eq!(
        problems(""),
        ["1: feed: the file is empty; a configuration has at least one [[feed]]"]
    );
    for text in ["\n", " \n\t\n", "# all\n# comments", "\u{feff}"] {
        assert!(problems(text)[0].contains("sets nothing"), "{text:?}");
    }
    assert!(problems("[gateway]\n")[0].contains("at least one [[feed]]"));
    assert!(problems("feed = []\n")[0].contains("at least one [[feed]]"));
}

#[test]
fn bytes_that_are_not_text_are_told_with_their_line() {
    let error = source().parse(b"[gateway]\npace = \"\xff\"\n").unwrap_err();
    assert_eq!(error.to_string(), "etc/t.toml:2: is not UTF-8 text");
}

#[test]
fn line_and_column_count_from_one_in_characters() {
    let text =
        format!("# ü\r\n[gateway]\r\nallowed_origins = [ \"https://ü.example\", 3 ]\r\n{FEED}");
    let error = source().parse(text.as_bytes()).unwrap_err();
    let places: Vec<_> = error.errors.iter().map(|e| (e.line, e.column)).collect();
    assert_eq!(places, [(Some(3), Some(21)), (Some(3), Some(42))]);
    let json = serde_json::to_value(&error.errors).unwrap();
    assert_eq!(json[0]["line"], 3);
    assert_eq!(json[0]["key"], "gateway.allowed_origins");
    assert!(json[0]["message"].is_string());
}

#[test]
fn a_flood_of_problems_is_cut_and_counted() {
    let text: String = (0..5_000).map(|at| format!("k{at} = 0\n")).collect();
    let found = problems(&format!("{text}{FEED}"));
    assert_eq!(found.len(), 101);
    assert!(found[100].ends_with("4900 more problems are not shown"), "{}", found[100]);
}

#[test]
fn standard_input_is_read_by_one_feed_only() {
    let other = FEED.replace("\"a\"", "\"b\"");
    assert_eq!(
        problems(&format!("{FEED}{other}")),
        ["8: feed.b.lines: standard input is read by the feed at line 4 too"]
    );
}

#[test]
fn what_is_shown_of_the_settings_can_be_loaded_again() {
    let text = EXAMPLE.replace("speed = 1\n", "speed = 0.1\n").replace("\"5ms\"", "\"1500us\"");
    for settings in [parse(&text), Settings::embedded()] {
        let shown = settings.to_toml().unwrap();
        // Its paths are joined to the folder already.
        let again = Source::file("t.toml", VENUES).parse(shown.as_bytes()).unwrap();
        assert_eq!(again, settings, "{shown}");
        let json = serde_json::to_value(&settings).unwrap();
        assert_eq!(json["gateway"]["heartbeat"], "20s");
        assert!(json["feed"][0]["loop"].is_boolean());
    }
}

#[test]
fn a_recording_that_is_not_there_is_refused_when_files_are_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("here.zst"), "").unwrap();
    let source = Source::file(folder.path().join("t.toml"), VENUES);
    let text = |file: &str| {
        format!("[[feed]]\nname = \"a\"\nvenue = \"binance\"\nrecording = [{file:?}]\n")
            .into_bytes()
    };
    source.parse_with_files(&text("here.zst")).unwrap();
    source.parse(&text("gone.zst")).unwrap();
    let error = source.parse_with_files(&text("gone.zst")).unwrap_err();
    assert_eq!(error.errors[0].line, Some(4));
    assert_eq!(error.errors[0].key, "feed.a.recording");
    assert!(error.errors[0].message.starts_with("no file "), "{error}");
}

#[test]
fn a_file_that_is_too_large_or_not_there_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    let source = Source::file(&path, VENUES);
    assert_eq!(source.read().unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let limit = usize::try_from(MAX_FILE_BYTES).unwrap();
    std::fs::write(&path, vec![b'#'; limit]).unwrap();
    assert_eq!(source.read().unwrap().len(), limit);
    std::fs::write(&path, vec![b'#'; limit + 1]).unwrap();
    assert_eq!(source.read().unwrap_err().kind(), std::io::ErrorKind::FileTooLarge);
    assert_eq!(source.path(), Some(Path::new(&path)));
}

#[test]
fn no_text_makes_the_check_panic_or_be_wrong_without_saying_where() {
    let mut random = StdRng::seed_from_u64(7);
    let pieces =
        ["=", "[", "]", "\"", "'", "#", "\n", ".", ",", "{", "}", "\\", "-", "9", "\u{fe0f}"];
    let mut refused = 0;
    for text in [EMBEDDED_DEFAULT, EXAMPLE] {
        // Without the comments nearly every change matters.
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let text: Vec<char> = lines.flat_map(|line| line.chars().chain(['\n'])).collect();
        for _ in 0..3_000 {
            let mut text = text.clone();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..text.len());
                let end = text.len().min(at + random.random_range(0..12));
                let piece = pieces[random.random_range(0..pieces.len())];
                text.splice(at..end, piece.chars());
            }
            let text: String = text.into_iter().collect();
            let Err(errors) = source().parse(text.as_bytes()) else { continue };
            refused += 1;
            assert!(!errors.errors.is_empty(), "{text}");
            let lines = u32::try_from(text.split('\n').count()).unwrap();
            for error in &errors.errors {
                let line = error.line.unwrap();
                assert!((1..=lines).contains(&line), "{error} of {text}");
            }
        }
    }
    assert!(refused > 3_000, "{refused}");
}
