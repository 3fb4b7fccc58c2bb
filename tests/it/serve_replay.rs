//! A replay held, moved and sped up over the admin address, with subscribers connected.

use serde_json::{Value, json};
use tidegate::clock::Clock;
use tidegate::feed::Reader;

use crate::cli::tidegate;
use crate::serve_support::{Client, FREE_PORTS, Seen, Server, eventually, simulated};
use crate::support_http::{self as http, Answer};

/// A second of the recording takes a quarter of an hour.
const SLOW: &str = "speed = 0.001\n";

/// The program playing a recording of twenty seconds, told more about its feed by `keys`.
fn start(keys: &str) -> Server {
    let folder = tempfile::tempdir().unwrap();
    simulated(&folder.path().join("a.zst"), 20, 500);
    let feed = "[[feed]]\nname = \"day\"\nvenue = \"binance\"\nrecording = [\"a.zst\"]\n";
    let lines = "[[feed]]\nname = \"piped\"\nvenue = \"binance\"\nlines = \"tcp://127.0.0.1:1\"\n";
    Server::start_in(folder, &format!("{FREE_PORTS}{feed}{keys}\n{lines}"))
}

async fn move_it(server: &Server, feed: &str, body: &str) -> Answer {
    let path = format!("/v1/feeds/{feed}/replay");
    http::request(server.admin, "PATCH", &path, &[], body.as_bytes()).await
}

async fn status(server: &Server) -> Value {
    server.json("/v1/feeds/day/replay").await
}

/// Whether the feed's newest health is this.
fn is(seen: &Seen, health: &str) -> bool {
    seen.health.get("day").is_some_and(|known| known == health)
}

#[tokio::test]
async fn a_replay_is_held_moved_and_let_go_while_subscribers_are_told() {
    let server = start("speed = 1\n");
    let mut client = Client::connect(&server).await;
    client.subscribe("binance:*").await;
    client.until("quotes", |seen| seen.delivered > 50).await;
    assert_eq!(status(&server).await["paused"], false);

    let answer = move_it(&server, "day", r#"{"paused":true}"#).await;
    assert_eq!((answer.status, &answer.json()["paused"]), (200, &json!(true)));
    client.until("a word of it", |seen| is(seen, "paused")).await;
    let held = status(&server).await["time"].as_i64().unwrap();
    // The first jump goes nearly to the end: held it stays, with nothing from there.
    let late = held + 15_000_000_000;
    assert_eq!(move_it(&server, "day", &format!("{{\"seek\":{late}}}")).await.status, 200);
    client.read_for(std::time::Duration::from_millis(150)).await;
    assert_eq!(status(&server).await["time"], held);
    assert!(client.seen.quotes.values().all(|quote| quote["receive_time"].as_i64() <= Some(held)));

    let answer = move_it(&server, "day", r#"{"paused":false,"speed":2}"#).await;
    assert_eq!((answer.status, &answer.json()["speed"]), (200, &json!(2)));
    client.until("it to go on", |seen| is(seen, "live")).await;
    let newest = |quotes: &std::collections::HashMap<String, Value>| {
        quotes.values().map(|quote| quote["receive_time"].as_i64().unwrap()).max().unwrap()
    };
    client.until("quotes from there", |seen| newest(&seen.quotes) >= late).await;

    // At full speed from the beginning to the end, and then there is nothing left to move.
    let answer = move_it(&server, "day", r#"{"seek":0,"speed":"max"}"#).await;
    assert_eq!((answer.status, &answer.json()["speed"]), (200, &json!("max")));
    client.until("the end", |seen| is(seen, "ended")).await;
    assert_eq!(client.seen.backwards, 0, "ticks rise, whatever the recorded time does");
    assert_eq!(status(&server).await["ended"], true);
    let answer = move_it(&server, "day", r#"{"seek":0}"#).await;
    assert_eq!(answer.status, 409, "{}", answer.body);
}

#[tokio::test]
async fn what_cannot_be_moved_is_refused_with_the_reason() {
    let server = start(SLOW);
    for (feed, body, status, says) in [
        ("night", "{}", 404, "no feed is called"),
        ("piped", r#"{"paused":true}"#, 409, "plays no recording"),
        ("day", "{}", 400, "nothing to change"),
        ("day", "paused", 400, "a JSON object"),
        ("day", r#"{"speed":0}"#, 400, "speed: "),
        ("day", r#"{"paused":true,"seek":"soon"}"#, 400, "seek: write 2026-"),
        ("day", r#"{"paused":true,"back":1}"#, 400, "back: only paused, speed and seek"),
    ] {
        let answer = move_it(&server, feed, body).await;
        assert_eq!(answer.status, status, "{feed} {body}: {}", answer.body);
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(error.contains(says), "{feed} {body}: {error}");
    }
    assert_eq!(status(&server).await["paused"], false, "nothing of a refused change is taken");
    let path = "/v1/feeds/day/replay";
    let answer = http::request(server.admin, "DELETE", path, &[], b"").await;
    assert_eq!(answer.status, 405);
}

#[tokio::test]
async fn rate_windows_run_on_real_time_through_loops_and_jumps() {
    let server = start("speed = 200\nloop = true\n");
    let mut client = Client::connect(&server).await;
    let clock = Clock::system();
    let wish = r#"{"op":"rate","max_hz":20,"id":9}"#;
    client.say(wish).await;
    client.until("the wish to hold", |seen| seen.acks > 0).await;
    let began = clock.now();
    let before = client.seen.batches;
    client.subscribe("binance:*").await;
    for step in 0..20_i64 {
        let seek = if step % 2 == 0 { 0 } else { status(&server).await["time"].as_i64().unwrap() };
        assert_eq!(move_it(&server, "day", &format!("{{\"seek\":{seek}}}")).await.status, 200);
        client.read_for(std::time::Duration::from_millis(60)).await;
    }
    client.until("another pass", |seen| seen.batches > before + 5).await;
    // Jumps back neither stop the windows nor let a batch through early: one more than the rate
    // gives, for the first, and one for a window that is half over.
    let most = clock.now().since(began).as_secs_f64() * 20.0 + 2.0;
    let got = client.seen.batches - before;
    assert!(got as f64 <= most, "{got} batches where {most:.1} are allowed");
    assert_eq!(client.seen.backwards, 0);
}

#[tokio::test]
async fn a_feed_plays_the_part_of_its_recording_that_it_is_told_to() {
    let server = start("speed = \"max\"\nonly = [\"BTC*\"]\n");
    let mut client = Client::connect(&server).await;
    client.subscribe("binance:*").await;
    eventually("the end", async || status(&server).await["ended"] == true).await;
    client.until("the end", |seen| is(seen, "ended")).await;
    client.until("a quote", |seen| !seen.quotes.is_empty()).await;
    assert!(client.seen.quotes.keys().all(|name| name.starts_with("binance:BTC")));
}

#[tokio::test]
async fn a_range_and_instruments_on_the_command_line_are_what_a_cut_recording_has() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    let (messages, _) = simulated(&file, 10, 500);
    assert!(messages.len() > 100);
    let file = file.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let out = tidegate(arguments).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let mut reader = Reader::open(file.as_ref()).unwrap();
    let first = reader.read_next().unwrap().receive_time.unwrap();
    let (from, to) = (first + 2_000_000_000, first + 5_000_000_000);
    let (from, to) = (from.to_string(), to.to_string());
    let part = ["--from", &from, "--to", &to, "--instruments", "BTC*", "ETHUSDT"];
    let cut = folder.path().join("cut.zst");
    let cut = cut.to_str().unwrap();
    run(&[&["cut", file, "--out", cut][..], &part].concat());
    let of_the_cut = run(&["replay", cut, "--digest"]);
    let of_the_part = run(&[&["replay", file, "--digest"][..], &part].concat());
    let of_the_whole = run(&["replay", file, "--digest"]);
    assert_eq!(of_the_part, of_the_cut);
    assert_ne!(of_the_part, of_the_whole);

    let none = ["replay", file, "--digest", "--instruments", "kraken:XBT/USD"];
    let out = tidegate(&none).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("none of binance"));
    assert!(!out.status.success());
}
