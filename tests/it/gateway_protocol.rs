//! The client protocol over a real socket: what each operation is answered, and in which order.

use std::collections::{BTreeSet, HashMap};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tidegate::gateway::{Limits, Retune};
use tidegate::market::Health;

use super::gateway_support::{Load, QUIET, Rig, frame, subscribe, text, unsubscribe};

fn names(list: &Value) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn the_order_is_welcome_ack_status_snapshot_then_updates() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.skip("A", 41);
    let mut client = rig.raw_client(None).await;
    client.upgrade().await;
    let welcome = client.welcomed().await;
    assert_eq!(welcome["version"], 1);
    assert_eq!(welcome["generation"], 1);
    assert_eq!(welcome["heartbeat_ms"], 20_000);
    assert_eq!(welcome["effective"], json!({"max_hz": 0, "capacity": 8, "confirm": "pong"}));
    assert_eq!(welcome["limits"]["max_message_bytes"], 65_536);
    assert!(welcome["epoch"].is_string());

    client.say(&json!({"op": "subscribe", "id": "first", "instruments": ["binance:A"]})).await;
    let ack = client.next().await;
    assert_eq!((&ack["type"], &ack["id"]), (&json!("ack"), &json!("first")));
    assert_eq!(ack["subscribed"], json!(["binance:A"]));
    assert_eq!(ack["waiting"], json!([]));
    let status = client.next().await;
    assert_eq!(status["type"], "status");
    assert_eq!((&status["feed"], &status["health"]), (&json!("f"), &json!("stale")));
    let snapshot = client.next().await;
    assert_eq!(snapshot["snapshot"], true);
    assert_eq!(snapshot["quotes"][0]["tick"], 41);
    assert_eq!(snapshot["quotes"][0]["ask"], Value::Null, "a missing side is null");
    market.tick("A");
    let update = client.next().await;
    assert_eq!(update["type"], "quotes");
    assert!(update.get("snapshot").is_none());
    assert_eq!(update["quotes"][0]["tick"], 42);
    assert!(["none", "pace"].contains(&update["why"].as_str().unwrap()));
    assert!(update["held_us"].is_u64());
}

#[tokio::test]
async fn ticks_strictly_rise_from_a_snapshot_taken_under_load() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let load = Load::run(market, 20, |market| {
        market.tick("A");
        market.tick("B");
    });
    // The client's own record asserts that a snapshot comes first and that ticks rise.
    for _ in 0..10 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:A", "binance:B"])).await;
        for _ in 0..20 {
            client.until_type("quotes").await;
        }
    }
    load.end();
}

#[tokio::test]
async fn a_pattern_brings_every_instrument_of_its_venue_and_later_ones_too() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let (mut market, mut other) = (rig.market("binance"), rig.market("kraken"));
    market.tick("A");
    market.tick("B");
    other.tick("X");
    let mut client = rig.client().await;
    let ack = client.ask(&subscribe(&["binance:*"])).await;
    assert_eq!(names(&ack["subscribed"]), set(&["binance:A", "binance:B"]));
    market.tick("C");
    other.tick("Y");
    market.tick("A");
    client.until_newest(&market.newest()).await;
    assert_eq!(client.listen(QUIET).await.len(), 0, "nothing of another venue");
    let list = client.ask(&json!({"op": "list"})).await;
    assert_eq!(names(&list["subscribed"]), set(&["binance:A", "binance:B", "binance:C"]));
    assert_eq!(list["patterns"], json!(["binance:*"]));
}

#[tokio::test]
async fn a_pattern_of_a_venue_without_ticks_waits_and_is_served() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    let ack = client.ask(&subscribe(&["kraken:*"])).await;
    assert_eq!(ack["waiting"], json!(["kraken:*"]));
    let mut market = rig.market("kraken");
    market.tick("X/Y");
    client.until_tick("kraken:X/Y", 1).await;
}

#[tokio::test]
async fn a_name_without_ticks_waits_and_is_served_from_its_first() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.know("KNOWN");
    let mut client = rig.client().await;
    let ack = client.ask(&subscribe(&["binance:NEW", "binance:KNOWN"])).await;
    assert_eq!(ack["subscribed"], json!([]));
    assert_eq!(names(&ack["waiting"]), set(&["binance:KNOWN", "binance:NEW"]));
    market.tick("OTHER");
    for symbol in ["NEW", "KNOWN"] {
        market.tick(symbol);
        client.until_tick(&format!("binance:{symbol}"), 1).await;
    }
    assert_eq!(client.seen.ticks.len(), 2);
    let report = rig.settle(&mut client).await;
    assert_eq!((report.instruments, report.waiting, report.received), (2, 0, 2));
    let list = client.ask(&json!({"op": "list"})).await;
    assert_eq!(list["waiting"], json!([]));
}

#[tokio::test]
async fn b16_bad_names_are_told_apart_and_the_rest_of_the_operation_applies() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    let asked = ["nowhere:A", "binance:A", "binance", "binance:b c", "nowhere:*"];
    client.say(&json!({"op": "subscribe", "id": 7, "instruments": asked})).await;
    let mut answers = HashMap::new();
    for _ in 0..3 {
        let answer = client.until(|message| message["id"] == 7).await;
        let kind = answer["code"].as_str().unwrap_or("ack").to_owned();
        answers.insert(kind, answer);
    }
    assert_eq!(answers["ack"]["subscribed"], json!(["binance:A"]));
    assert_eq!(names(&answers["unknown_venue"]["names"]), set(&["nowhere:A", "nowhere:*"]));
    assert_eq!(answers["unknown_venue"]["temporary"], false);
    assert_eq!(names(&answers["malformed_name"]["names"]), set(&["binance", "binance:b c"]));
    client.until_tick("binance:A", 1).await;
}

#[tokio::test]
async fn b16_a_name_is_the_same_key_both_ways_and_another_case_is_another_name() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("BTCUSDT");
    let mut client = rig.client().await;
    let ack = client.ask(&subscribe(&["binance:BtcUsdt"])).await;
    assert_eq!(ack["waiting"], json!(["binance:BtcUsdt"]), "it is said that nothing came yet");
    client.ask(&subscribe(&["binance:BTCUSDT"])).await;
    client.until_tick("binance:BTCUSDT", 1).await;
    let ack = client.ask(&unsubscribe(&["binance:BTCUSDT"])).await;
    assert_eq!(ack["unsubscribed"], json!(["binance:BTCUSDT"]));
    market.tick("BTCUSDT");
    assert_eq!(client.listen(QUIET).await.len(), 0);
}

#[tokio::test]
async fn b15_a_symbol_that_is_not_ascii_goes_through_byte_for_byte() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    let mut client = rig.client().await;
    let ack = client.ask(&subscribe(&["binance:币安人生USDT"])).await;
    assert_eq!(ack["waiting"], json!(["binance:币安人生USDT"]));
    market.tick("币安人生USDT");
    client.until_tick("binance:币安人生USDT", 1).await;
}

#[tokio::test]
async fn b41_subscribing_twice_gives_one_subscription_and_two_answers() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    let mut both = Vec::new();
    for id in [1, 2] {
        both.extend(text(&json!({"op": "subscribe", "id": id, "instruments": ["binance:A"]})));
    }
    client.send(&both).await;
    for id in [1, 2] {
        let ack = client.until(|message| message["id"] == id).await;
        assert_eq!(ack["subscribed"], json!(["binance:A"]));
    }
    client.until_tick("binance:A", 1).await;
    market.tick("A");
    let report = rig.settle(&mut client).await;
    assert_eq!((report.instruments, report.delivered), (1, 2));
}

#[tokio::test]
async fn b41_sub_unsub_sub_in_one_segment_leaves_one_live_subscription() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    let mut three = Vec::new();
    for (id, op) in [(1, "subscribe"), (2, "unsubscribe"), (3, "subscribe")] {
        three.extend(text(&json!({"op": op, "id": id, "instruments": ["binance:A"]})));
    }
    client.send(&three).await;
    for id in 1..=3 {
        let ack = client.until(|message| !message["id"].is_null()).await;
        assert_eq!((&ack["type"], &ack["id"]), (&json!("ack"), &json!(id)));
    }
    client.until_tick("binance:A", 1).await;
    market.tick("A");
    let report = rig.settle(&mut client).await;
    // The first subscription was withdrawn before its snapshot went: that tick is accounted for.
    assert_eq!((report.instruments, report.delivered, report.withdrawn), (1, 2, 1));
}

#[tokio::test]
async fn b42_no_update_follows_the_ack_of_an_unsubscribe() {
    let rig = Rig::start(Limits { max_ops_per_s: 100_000, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    market.tick("A");
    market.tick("B");
    let load = Load::run(market, 10, |market| {
        market.tick("A");
        market.tick("B");
    });
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:B"])).await;
    for _ in 0..300 {
        client.ask(&subscribe(&["binance:A"])).await;
        client.until(|_| true).await;
        // From the ack on the client's record takes any quote of A that is no snapshot for a fault.
        client.ask(&unsubscribe(&["binance:A"])).await;
        assert!(!client.seen.ticks.contains_key("binance:A"));
    }
    let market = load.end();
    client.until_tick("binance:B", market.last("B")).await;
    let report = rig.settle(&mut client).await;
    assert!(report.withdrawn > 0, "{report:?}");
    assert_eq!(report.instruments, 1);
}

#[tokio::test]
async fn a_rate_is_the_smallest_wish_that_is_not_zero_and_is_echoed() {
    let rig = Rig::start(Limits { max_hz: 50.0, ..Limits::default() }).await;
    let mut client = rig.client().await;
    for (wish, effective) in [(10.0, 10.0), (0.0, 50.0), (80.0, 50.0), (0.5, 0.5)] {
        let ack = client.ask(&json!({"op": "rate", "max_hz": wish})).await;
        assert_eq!(ack["effective"]["max_hz"].as_f64(), Some(effective), "{wish}");
    }
    let mut wish = subscribe(&["binance:A"]);
    wish["max_hz"] = json!(20);
    let ack = client.ask(&wish).await;
    assert_eq!(ack["effective"]["max_hz"].as_f64(), Some(20.0));
    rig.gateway.control().retune(Retune { max_hz: Some(5.0), ..Retune::default() }).unwrap();
    let limits = client.until_type("limits").await;
    assert_eq!(limits["effective"]["max_hz"].as_f64(), Some(5.0), "echoed when it changes");
    assert_eq!(limits["generation"], 2);
}

#[tokio::test]
async fn every_operation_is_answered_by_its_id_as_it_was_written() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    for (id, op, kind) in [
        ("17", r#""op":"list""#, "list"),
        ("\"a b\"", r#""op":"ping""#, "pong"),
        ("-3", r#""op":"rate","max_hz":0"#, "ack"),
        ("null", r#""op":"ping""#, "pong"),
        ("4", r#""op":"ack","batch":99"#, "ack"),
        ("5", r#""op":"unsubscribe","instruments":["binance:NONE"]"#, "ack"),
        ("6", r#""op":"dance""#, "error"),
        ("7", r#""op":"subscribe""#, "error"),
        ("8", r#""op":"rate","max_hz":-1"#, "error"),
    ] {
        client.send(&frame(0x81, format!(r#"{{{op},"id":{id}}}"#).as_bytes())).await;
        let answer = client.next().await;
        assert_eq!(answer["type"], kind, "{op}: {answer}");
        assert_eq!(answer["id"], serde_json::from_str::<Value>(id).unwrap(), "{op}");
    }
}

#[tokio::test]
async fn a_status_is_told_on_change_to_those_who_follow_the_feed() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let (mut by_name, mut by_pattern, mut other) =
        (rig.client().await, rig.client().await, rig.client().await);
    by_name.ask(&subscribe(&["binance:A"])).await;
    by_pattern.ask(&subscribe(&["binance:*"])).await;
    other.ask(&subscribe(&["kraken:*"])).await;
    for client in [&mut by_name, &mut by_pattern, &mut other] {
        client.until_type("status").await;
    }
    let feeds = rig.gateway.feeds();
    feeds.iter().find(|feed| feed.name() == "f").unwrap().set_health(Health::Live, 77);
    for client in [&mut by_name, &mut by_pattern] {
        let status = client.until_type("status").await;
        assert_eq!(status["health"], "live");
        assert_eq!(status["reason"], Value::Null);
        assert_eq!(status["since"], 77);
    }
    assert_eq!(other.listen(QUIET).await.len(), 0);
}

#[tokio::test]
async fn more_instruments_than_allowed_are_refused_by_name() {
    let rig = Rig::start(Limits { max_instruments: 2, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    for symbol in ["A", "B", "C"] {
        market.tick(symbol);
    }
    let mut client = rig.client().await;
    client.say(&subscribe(&["binance:A", "binance:B", "binance:C", "binance:LATER"])).await;
    let error = client.until_type("error").await;
    assert_eq!(error["code"], "too_many_instruments");
    assert_eq!(error["temporary"], true);
    assert_eq!(names(&error["names"]), set(&["binance:C", "binance:LATER"]));
    client.ask(&unsubscribe(&["binance:A"])).await;
    let ack = client.ask(&subscribe(&["binance:C"])).await;
    assert_eq!(ack["subscribed"], json!(["binance:C"]));
}

#[tokio::test]
async fn b46_every_subscriber_gets_the_same_bytes() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:A"])).await;
        client.until_tick("binance:A", 1).await;
        clients.push(client);
    }
    for _ in 0..50 {
        let tick = market.tick("A");
        let mut quotes = BTreeSet::new();
        for client in &mut clients {
            let batch = client.until(|message| message["quotes"][0]["tick"] == tick).await;
            quotes.insert(batch["quotes"].to_string());
        }
        assert_eq!(quotes.len(), 1);
    }
    assert!(rig.gateway.board().encodings() <= 51, "encoded once, whoever reads it");
}

#[tokio::test]
async fn b41_random_pipelines_of_subscribe_and_unsubscribe_leave_what_a_set_would() {
    let rig = Rig::with_shards(Limits { max_ops_per_s: 100_000, ..Limits::default() }, 2).await;
    let mut market = rig.market("binance");
    let symbols = ["A", "B", "C", "D", "E", "F", "G", "H"];
    // The last two have no tick yet.
    for symbol in &symbols[..6] {
        market.tick(symbol);
    }
    let load = Load::run(market, 5, |market| {
        for symbol in ["A", "B", "C"] {
            market.tick(symbol);
        }
    });
    let mut random = SmallRng::seed_from_u64(0x71DE);
    let mut client = rig.client().await;
    let mut model: BTreeSet<String> = BTreeSet::new();
    for round in 0..60 {
        let mut pipeline = Vec::new();
        let count = random.random_range(1..12);
        for step in 0..count {
            let some: Vec<String> = (0..random.random_range(1..4))
                .map(|_| format!("binance:{}", symbols[random.random_range(0..symbols.len())]))
                .collect();
            let joins = random.random_bool(0.6);
            if joins {
                model.extend(some.iter().cloned());
            } else {
                model.retain(|name| !some.contains(name));
            }
            let op = if joins { "subscribe" } else { "unsubscribe" };
            let id = format!("{round}.{step}");
            pipeline.extend(text(&json!({"op": op, "id": id, "instruments": some})));
        }
        // Cut anywhere: segments respect no frame.
        let cut = random.random_range(0..pipeline.len());
        client.send(&pipeline[..cut]).await;
        client.send(&pipeline[cut..]).await;
        for step in 0..count {
            let id = json!(format!("{round}.{step}"));
            let answer = client.until(|message| !message["id"].is_null()).await;
            assert_eq!((&answer["type"], &answer["id"]), (&json!("ack"), &id));
        }
        let list = client.ask(&json!({"op": "list"})).await;
        let mut listed = names(&list["subscribed"]);
        listed.extend(names(&list["waiting"]));
        assert_eq!(listed, model, "round {round}");
    }
    let mut market = load.end();
    for symbol in symbols {
        market.tick(symbol);
    }
    let mut newest = market.newest();
    newest.retain(|name, _| model.contains(name));
    client.until_newest(&newest).await;
    let report = rig.settle(&mut client).await;
    assert_eq!(report.instruments, model.len());
}
