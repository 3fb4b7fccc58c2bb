//! Batches in flight: what confirms them, what withholding does, and when a client counts as
//! stalled.

use std::time::Duration;

use serde_json::json;
use tidegate::gateway::{Confirm, Limits, Why};

use super::gateway_support::{Load, QUIET, Rig, eventually, frame, pong, subscribe, unsubscribe};

#[tokio::test]
async fn a_client_that_withholds_its_pongs_gets_exactly_capacity_batches_and_then_is_stalled() {
    let limits =
        Limits { capacity: 4, stall_timeout: Duration::from_millis(700), ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let load = Load::run(market, 1, |market| {
        market.tick("A");
    });
    let mut client = rig.client().await;
    client.answers_pings = false;
    client.ask(&subscribe(&["binance:A"])).await;
    client.listen(QUIET).await;
    assert_eq!(client.seen.batches, 4);
    let report = rig.report(&client).await;
    assert_eq!((report.in_flight, report.batches), (4, 4));
    let (code, reason) = client.closed().await;
    assert_eq!(code, 4000, "{reason}");
    assert_eq!(client.seen.batches, 4, "and none on the way out");
    eventually("it is counted", || {
        rig.gateway.stats().closed[tidegate::gateway::Close::Stalled.index()].get() == 1
    })
    .await;
    load.end();
}

#[tokio::test]
async fn a_pong_for_a_batch_confirms_all_before_it_and_one_above_the_last_nothing() {
    let rig = Rig::start(Limits { capacity: 3, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    let mut client = rig.client().await;
    client.answers_pings = false;
    client.ask(&subscribe(&["binance:A"])).await;
    for tick in 1..=3 {
        market.tick("A");
        client.until_tick("binance:A", tick).await;
    }
    for payload in ["4", "1000", "h", ""] {
        client.send(&pong(payload.as_bytes())).await;
    }
    client.ask(&json!({"op": "ping"})).await;
    assert_eq!(rig.report(&client).await.in_flight, 3);
    client.send(&pong(b"2")).await;
    client.ask(&json!({"op": "ping"})).await;
    assert_eq!(rig.report(&client).await.in_flight, 1);
    client.send(&pong(b"1")).await;
    client.send(&pong(b"2")).await;
    client.ask(&json!({"op": "ping"})).await;
    assert_eq!(rig.report(&client).await.in_flight, 1, "confirmed once is confirmed");
    client.send(&pong(b"3")).await;
    client.ask(&json!({"op": "ping"})).await;
    assert_eq!(rig.report(&client).await.in_flight, 0);
}

#[tokio::test]
async fn a_change_held_for_want_of_a_permit_says_so_and_how_long() {
    let rig = Rig::start(Limits { capacity: 1, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    client.answers_pings = false;
    client.ask(&subscribe(&["binance:A"])).await;
    client.until_tick("binance:A", 1).await;
    for _ in 0..10 {
        market.tick("A");
    }
    assert!(client.listen(QUIET).await.is_empty());
    client.send(&pong(b"1")).await;
    let batch = client.until_type("quotes").await;
    assert_eq!(batch["why"], "capacity");
    assert_eq!(batch["quotes"][0]["tick"], 11, "the newest");
    let held = u128::from(batch["held_us"].as_u64().unwrap());
    assert!(held >= QUIET.as_micros() / 2, "{held}");
    assert_eq!(rig.gateway.stats().batches[Why::Capacity.index()].get(), 1);
}

#[tokio::test]
async fn with_confirm_client_only_an_ack_confirms() {
    let limits = Limits { capacity: 2, confirm: Confirm::Client, ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    let mut client = rig.client().await;
    let ack = client.ask(&subscribe(&["binance:A"])).await;
    assert_eq!(ack["effective"]["confirm"], "client");
    for tick in 1..=2 {
        market.tick("A");
        client.until_tick("binance:A", tick).await;
    }
    market.tick("A");
    client.send(&pong(b"2")).await;
    assert!(client.listen(QUIET).await.is_empty(), "a pong confirms nothing");
    assert!(client.withheld.is_empty(), "and none is asked for");
    assert_eq!(rig.report(&client).await.in_flight, 2);
    client.say(&json!({"op": "ack", "batch": 9})).await;
    assert!(client.listen(QUIET).await.is_empty(), "nor an ack of what was not sent");
    let answer = client.ask(&json!({"op": "ack", "batch": 2})).await;
    assert_eq!(answer["type"], "ack");
    client.until_tick("binance:A", 3).await;
    assert_eq!(rig.report(&client).await.in_flight, 1);
}

#[tokio::test]
async fn with_confirm_flush_a_client_that_only_reads_gets_everything() {
    let limits = Limits { capacity: 1, confirm: Confirm::Flush, ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    let mut client = rig.client().await;
    client.answers_pings = false;
    client.ask(&subscribe(&["binance:A"])).await;
    for tick in 1..=30 {
        market.tick("A");
        client.until_tick("binance:A", tick).await;
    }
    assert!(client.withheld.is_empty(), "no pings ride behind batches");
    rig.settle(&mut client).await;
}

#[tokio::test]
async fn an_idle_client_is_never_called_stalled() {
    let limits = Limits { stall_timeout: Duration::from_millis(40), ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let (mut idle, mut quiet) = (rig.client().await, rig.client().await);
    quiet.ask(&subscribe(&["binance:A"])).await;
    rig.settle(&mut quiet).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    for client in [&mut idle, &mut quiet] {
        assert_eq!(client.ask(&json!({"op": "ping"})).await["type"], "pong");
    }
    market.tick("A");
    quiet.until_tick("binance:A", 2).await;
}

#[tokio::test]
async fn a_paused_client_that_owes_nothing_is_never_called_stalled() {
    let limits =
        Limits { capacity: 0, stall_timeout: Duration::from_millis(40), ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:A"])).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    rig.retune_all(1);
    client.until_tick("binance:A", 1).await;
}

/// Small batches of many instruments, so that a batch goes while more is pending.
fn small_batches(capacity: usize) -> Limits {
    Limits {
        capacity,
        max_batch_bytes: 512,
        stall_timeout: Duration::from_millis(400),
        ..Limits::default()
    }
}

#[tokio::test]
async fn a_batch_whose_followers_were_withdrawn_is_still_confirmed() {
    let rig = Rig::start(Limits { max_hz: 4.0, ..small_batches(100) }).await;
    let mut market = rig.market("binance");
    let symbols: Vec<String> = (0..50).map(|n| format!("S{n}")).collect();
    for symbol in &symbols {
        market.tick(symbol);
    }
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    client.until_type("quotes").await;
    // A batch has gone, more is pending, and now nothing more will come.
    client.ask(&unsubscribe(&["binance:*"])).await;
    let report = rig.settle(&mut client).await;
    assert_eq!((report.instruments, report.in_flight), (0, 0));
    client.listen(Duration::from_millis(900)).await;
    assert_eq!(client.ask(&json!({"op": "ping"})).await["type"], "pong", "it owes nothing");
}

#[tokio::test]
async fn a_batch_before_a_long_window_is_confirmed_before_it() {
    let rig = Rig::start(Limits { max_hz: 0.1, ..small_batches(100) }).await;
    let mut market = rig.market("binance");
    for n in 0..50 {
        market.tick(&format!("S{n}"));
    }
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    client.until_type("quotes").await;
    client.listen(Duration::from_millis(900)).await;
    let report = rig.report(&client).await;
    assert_eq!(report.in_flight, 0, "and so it is not stalled");
    assert_eq!(client.seen.batches, 1);
}

#[tokio::test]
async fn a_batch_that_expected_followers_is_confirmed_though_a_shrink_took_their_permits() {
    let rig = Rig::start(Limits { max_hz: 50.0, ..small_batches(100) }).await;
    let mut market = rig.market("binance");
    for n in 0..120 {
        market.tick(&format!("S{n}"));
    }
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    for capacity in [1, 100, 1, 100, 1] {
        client.until_type("quotes").await;
        rig.retune_all(capacity);
    }
    client.until_newest(&market.newest()).await;
    rig.settle(&mut client).await;
}

#[tokio::test]
async fn b36_every_ping_of_a_client_is_answered_though_its_batches_wait() {
    let rig = Rig::start(Limits { capacity: 64, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    for n in 0..2_000 {
        market.tick(&format!("S{n}"));
    }
    let load = Load::run(market, 200, |market| {
        let n = market.newest().len() as u64;
        let next = market.last("S0") % n;
        market.tick("S0");
        market.tick(&format!("S{next}"));
    });
    let mut client = rig.narrow_client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    for n in 0..40_u64 {
        client.send(&frame(0x89, &n.to_be_bytes())).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        // Reads, but slowly: one message for every ping.
        client.next().await;
    }
    for _ in 0..5_000 {
        if client.pongs.len() == 40 {
            break;
        }
        client.next_within(QUIET).await;
    }
    let expected: Vec<Vec<u8>> = (0..40_u64).map(|n| n.to_be_bytes().to_vec()).collect();
    assert_eq!(client.pongs, expected);
    load.end();
}
