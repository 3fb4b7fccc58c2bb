//! What is shown is what happened.

use std::collections::{HashMap, HashSet};

use serde_json::json;
use tidegate::market::health::{Health, StaleReason};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn instruments_are_shown_with_the_venues_digits_and_null_for_what_is_missing() {
    let mut running = Running::start().await;
    assert_eq!(running.json("/v1/instruments").await, json!([]));
    running.feed(&[BOOK, ONE_SIDED, BOOK_AGAIN]);
    running.drain();
    running.gateway.feeds().get(FeedId(0)).set_health(Health::Live, 5);
    let shown = running.json("/v1/instruments").await;
    let received = shown[0]["receive_time"].clone();
    assert!(received.is_i64());
    assert_eq!(
        shown[0],
        json!({
            "instrument": "binance:BTCUSDT", "tick": 2,
            "bid": "61837.70000000", "bid_size": "1.00000000", "ask": null, "ask_size": null,
            "last": null, "last_size": null, "venue_time": null, "receive_time": received,
            "feed": "spot", "health": "live",
        })
    );
    assert_eq!(shown[1]["instrument"], "binance:ETHUSDT");
    assert_eq!(shown[1]["bid"], "2500.10");
    let encodings = running.gateway.board().encodings();
    assert_eq!(encodings, 0, "looking is not wanting: nothing was encoded for subscribers");

    let one = running.get("/v1/instruments?limit=1").await;
    assert_eq!(one.json().as_array().unwrap().len(), 1);
    assert_eq!(one.header("tidegate-total"), Some("2"));
    let found = running.get("/v1/instruments?contains=eth").await;
    assert_eq!(found.json()[0]["instrument"], "binance:ETHUSDT");
    assert_eq!(found.header("tidegate-total"), Some("1"));
    assert_eq!(running.get("/v1/instruments?limit=-1").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instrument_that_only_had_fills_has_no_quote_to_show() {
    let mut running = Running::start().await;
    running.feed(&[FILL]);
    running.drain();
    assert_eq!(running.json("/v1/instruments").await, json!([]));
    assert_eq!(running.gateway.instruments().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn b57_a_subscribers_accounts_add_up() {
    let mut running = Running::start().await;
    let mut client = running.subscribe().await;
    // The first tick is seen alone, so that every later one counts as received.
    running.feed(&[BOOK]);
    client.next("quotes").await;
    running.feed(&[BOOK_AGAIN, ONE_SIDED]);
    running.drain();
    eventually("every tick is delivered or conflated", || async {
        let one = running.json("/v1/subscribers").await[0].clone();
        one["received_ticks"] == 3 && one["pending"] == 0
    })
    .await;
    let answer = running.get("/v1/subscribers").await;
    assert_eq!(answer.header("tidegate-total"), Some("1"));
    let shown = answer.json();
    let one = &shown[0];
    let of = |key: &str| one[key].as_u64().unwrap_or_else(|| panic!("{key} in {one}"));
    assert_eq!(of("received_ticks"), of("delivered") + of("conflated") + of("pending"));
    assert_eq!((of("instruments"), of("withdrawn")), (2, 0));
    assert_eq!((of("capacity"), of("max_hz"), of("shard"), of("waiting")), (8, 0, 0, 1));
    assert!(of("batches") >= 1);
    assert_eq!(one["blocked"], false);
    assert!(one["id"].is_string() && one["peer"].is_string());
    drop(client);
    eventually("the subscriber is gone", || async {
        running.json("/v1/subscribers").await == json!([])
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_is_shown_with_every_message_accounted_for() {
    let mut running = Running::start().await;
    running.feed(&[BOOK, BOOK_AGAIN, LATE, "{", r#"{"e":"kline","s":"BTCUSDT"}"#, FILL, FILL]);
    running.drain();
    let feed = running.gateway.feeds().get(FeedId(0)).clone();
    feed.set_health(Health::Stale(StaleReason::Ended), 7);
    let shown = running.json("/v1/feeds").await;
    let one = &shown[0];
    assert_eq!((&one["name"], &one["venue"]), (&json!("spot"), &json!("binance")));
    assert_eq!((&one["health"], &one["reason"]), (&json!("stale"), &json!("ended")));
    assert_eq!(one["since"], 7);
    assert_eq!(
        one["messages"],
        json!({"total": 7, "quote": 2, "fill": 1, "unknown": 0, "refused": 3,
               "unused": {"kline": 1}, "control": {}})
    );
    assert_eq!(one["refused"], json!({"late_quote": 1, "malformed": 1, "duplicate_fill": 1}));
    assert_eq!(one["oddities"]["absent"], 1);
    let quotes = &one["quotes"];
    assert_eq!(quotes["dispatched"], 2);
    assert_eq!(
        quotes["conflated"].as_u64().unwrap() + quotes["handled"].as_u64().unwrap(),
        2,
        "{quotes}"
    );
    assert_eq!((&quotes["pending"], &quotes["capacity"]), (&json!(0), &json!(64)));
    assert_eq!((&one["fills"]["dispatched"], &one["fills"]["coalesced"]), (&json!(1), &json!(0)));
    assert!(one["problem"].is_string());
    assert_eq!(one["damaged"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_exact_and_the_audit_adds_up() {
    let mut running = Running::start().await;
    running.feed(&[FILL, SOLD, FILL]);
    running.drain();
    let shown = running.json("/v1/volumes").await;
    assert_eq!(
        shown["volumes"],
        json!([{"account": "desk-1", "instrument": "binance:BTCUSDT", "fills": 2,
                "bought": "0.5", "sold": "0.25", "notional": "75.075"}])
    );
    for key in ["fills_in", "dispatched_fills", "folded_fills"] {
        assert_eq!(shown[key], 2, "{key}");
    }
    assert_eq!((&shown["refused_fills"], &shown["refused_dispatches"]), (&json!(0), &json!(0)));
    let none = running.json("/v1/volumes?contains=desk-2").await;
    assert_eq!((&none["volumes"], &none["total"]), (&json!([]), &json!(1)));
    assert_eq!(none["folded_fills"], 2, "the audit is of all, whatever is listed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_in_effect_can_be_saved_and_loaded_again() {
    let running = Running::start().await;
    running.patch(r#"{"capacity":3}"#).await;
    let shown = running.json("/v1/config").await;
    assert_eq!(shown["subscriber"]["capacity"], 3);
    assert_eq!(shown, serde_json::to_value(running.config.effective()).unwrap());
}

/// One series of an exposition.
#[derive(Debug)]
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

/// Reads a sample line strictly, by the grammar of the text formats.
fn sample(line: &str) -> Sample<'_> {
    let at = line.find(['{', ' ']).unwrap_or_else(|| panic!("{line:?}"));
    let (name, mut rest) = line.split_at(at);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (key, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{line:?}"));
            let mut value = String::new();
            let mut chars = after.char_indices();
            let end = loop {
                match chars.next().unwrap_or_else(|| panic!("{line:?}")) {
                    (at, '"') => break at,
                    (_, '\\') => match chars.next() {
                        Some((_, 'n')) => value.push('\n'),
                        Some((_, c @ ('\\' | '"'))) => value.push(c),
                        other => panic!("{other:?} in {line:?}"),
                    },
                    (_, c) => value.push(c),
                }
            };
            labels.push((key, value));
            rest = &after[end + 1..];
            match rest.split_at(1) {
                (",", more) => rest = more,
                ("}", more) => {
                    rest = more;
                    break;
                }
                _ => panic!("{line:?}"),
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("{line:?}"));
    Sample { name, labels, value: value.parse().unwrap_or_else(|_| panic!("{line:?}")) }
}

/// Checks a whole exposition and answers its series by name and labels.
fn read(text: &str, open_metrics: bool) -> HashMap<String, f64> {
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    let mut helped = HashSet::new();
    let mut series = HashMap::new();
    let mut family = "";
    assert!(text.ends_with('\n'));
    assert_eq!(text.ends_with("# EOF\n"), open_metrics);
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(helped.insert(name), "{name} twice");
            assert!(help.ends_with('.'), "{help:?}");
            family = name;
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert!(kinds.insert(name, kind).is_none(), "{name} twice");
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (name, unit) = unit.split_once(' ').unwrap();
            assert!(name.ends_with(unit), "{line}");
        } else if line == "# EOF" {
            assert!(open_metrics);
        } else {
            let one = sample(line);
            let kind = kinds[family];
            lint(&one, family, kind, open_metrics);
            let mut key = one.name.to_owned();
            for (name, value) in &one.labels {
                key += &format!(" {name}={value}");
            }
            assert!(series.insert(key, one.value).is_none(), "{line} twice");
        }
    }
    assert_eq!(helped.len(), kinds.len());
    series
}

/// The rules for names, by the Prometheus and OpenMetrics documents.
fn lint(one: &Sample<'_>, family: &str, kind: &str, open_metrics: bool) {
    let name = one.name;
    assert!(name.starts_with("tidegate_"), "{name}");
    let snake = |name: &str| {
        name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && !name.contains("__")
    };
    assert!(snake(name), "{name}");
    let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{name} under {family}"));
    match kind {
        "counter" if open_metrics => assert_eq!(suffix, "_total", "{name}"),
        "counter" => assert!(family.ends_with("_total") && suffix.is_empty(), "{name}"),
        "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{name}"),
        "gauge" => assert!(!family.ends_with("_total"), "{name}"),
        "info" => assert_eq!(suffix, "_info"),
        other => panic!("{other}"),
    }
    for unit in ["milliseconds", "_ms", "_us", "_ns", "kilobytes", "_mb"] {
        assert!(!name.ends_with(unit), "{name} has no base unit");
    }
    for (label, value) in &one.labels {
        assert!(snake(label), "{label}");
        assert!(!["subscriber", "account", "peer", "id"].contains(label), "{name} {label}={value}");
    }
}

async fn scrape(running: &Running, open_metrics: bool) -> HashMap<String, f64> {
    let accept =
        if open_metrics { "application/openmetrics-text;version=1.0.0,*/*" } else { "*/*" };
    let answer = http::request(running.admin, "GET", "/metrics", &[("accept", accept)], b"").await;
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    let expected = if open_metrics {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; version=0.0.4; charset=utf-8"
    };
    assert_eq!(kind, expected);
    read(&answer.body, open_metrics)
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_say_what_happened_in_both_formats_and_by_the_rules_for_names() {
    let mut running = Running::start().await;
    let mut client = running.subscribe().await;
    running.feed(&[BOOK]);
    client.next("quotes").await;
    running.feed(&[BOOK_AGAIN, LATE, "{", FILL]);
    running.drain();
    running.readiness.set_ready();
    running.config.write("subscriber.capacity = 4");
    http::request(running.admin, "POST", "/-/reload", &[], b"").await;
    running.config.write("subscriber.capacity = -4");
    http::request(running.admin, "POST", "/-/reload", &[], b"").await;
    eventually("the last quote is delivered", || async {
        running.json("/v1/subscribers").await[0]["pending"] == 0
    })
    .await;

    for open_metrics in [true, false] {
        let series = scrape(&running, open_metrics).await;
        let of = |key: &str| *series.get(key).unwrap_or_else(|| panic!("{key} in {series:#?}"));
        assert_eq!(of("tidegate_feed_ticks_total feed=spot"), 2.0);
        assert_eq!(of("tidegate_feed_fills_total feed=spot"), 1.0);
        assert_eq!(of("tidegate_feed_refused_total feed=spot reason=late_quote"), 1.0);
        assert_eq!(of("tidegate_feed_refused_total feed=spot reason=malformed"), 1.0);
        assert_eq!(
            of("tidegate_feed_messages_total feed=spot group=refused class=late_quote"),
            1.0
        );
        let messages: f64 = series
            .iter()
            .filter(|(key, _)| key.starts_with("tidegate_feed_messages_total"))
            .map(|(_, value)| value)
            .sum();
        assert_eq!(messages, 5.0, "each message is of exactly one class");
        assert_eq!(of("tidegate_feed_live feed=spot"), 0.0);
        let worker =
            |what: &str| of(&format!("tidegate_worker_{what}_total feed=spot worker=quotes"));
        let conflated = of("tidegate_worker_conflated_total feed=spot");
        assert_eq!(worker("dispatched"), conflated + worker("handled"));
        assert_eq!(of("tidegate_worker_capacity feed=spot worker=fills"), 32.0);
        let delivered = of("tidegate_subscriber_quotes_delivered_total");
        let skipped = of("tidegate_subscriber_ticks_conflated_total");
        assert_eq!(delivered + skipped, 2.0);
        assert!(of("tidegate_batch_held_seconds_count") >= 1.0);
        assert!(of("tidegate_subscriber_sent_bytes_total") > 100.0);
        assert_eq!(of("tidegate_subscribers"), 1.0);
        assert_eq!(of("tidegate_subscribers_limit"), 1000.0);
        assert_eq!(of("tidegate_subscriber_capacity"), 4.0);
        assert_eq!(of("tidegate_instruments"), 1.0);
        assert_eq!(of("tidegate_ledger_fills_total"), 1.0);
        assert_eq!(of("tidegate_config_reloads_total outcome=success"), 1.0);
        assert_eq!(of("tidegate_config_reloads_total outcome=refused"), 1.0);
        assert_eq!(of("tidegate_config_last_reload_successful"), 0.0);
        assert!(of("tidegate_config_last_reload_success_timestamp_seconds") > 1.7e9);
        assert_eq!(of("tidegate_ready"), 1.0);
        assert_eq!(of("tidegate_handshakes_refused_total reason=full"), 0.0);
        assert_eq!(of("tidegate_connections_closed_total reason=stalled"), 0.0);
        assert_eq!(of("tidegate_connections_accepted_total"), 1.0);
    }
}
