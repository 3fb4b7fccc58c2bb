//! How fast and how much at a time: rate windows, batches, fairness, volumes beside quotes.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::gateway::Limits;

use super::gateway_support::{Load, PATIENCE, QUIET, Rig, frame, subscribe};

fn with_rate(max_hz: f64) -> Limits {
    Limits { max_hz, ..Limits::default() }
}

#[tokio::test]
async fn b50_b51_the_first_goes_at_once_and_the_last_of_a_burst_always() {
    let rig = Rig::start(with_rate(4.0)).await;
    let mut market = rig.market("binance");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:A"])).await;
    market.tick("A");
    client.until_tick("binance:A", 1).await;
    for _ in 0..50 {
        market.tick("A");
    }
    let batch = client.until_type("quotes").await;
    assert_eq!(batch["quotes"][0]["tick"], 51, "the burst is conflated into its last");
    assert_eq!(batch["why"], "rate");
    assert!(client.listen(Duration::from_millis(600)).await.is_empty(), "and it comes once");
    // After a quiet window a lone value goes at once, and once.
    market.tick("A");
    let batch = client.until_type("quotes").await;
    assert_eq!(batch["quotes"][0]["tick"], 52);
    assert!(["none", "pace"].contains(&batch["why"].as_str().unwrap()));
    let report = rig.settle(&mut client).await;
    assert_eq!((report.delivered, report.conflated), (3, 49));
}

#[tokio::test]
async fn no_more_than_max_hz_batches_go_in_a_second() {
    let rig = Rig::start(with_rate(20.0)).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let load = Load::run(market, 5, |market| {
        market.tick("A");
    });
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:A"])).await;
    let started = rig.clock.now();
    while rig.clock.now().since(started) < Duration::from_secs(1) {
        client.next_within(QUIET).await;
    }
    let elapsed = rig.clock.now().since(started).as_secs_f64();
    let most = 20.0 * elapsed + 2.0;
    assert!(client.seen.batches as f64 <= most, "{} in {elapsed} s", client.seen.batches);
    assert!(client.seen.batches >= 5, "{}", client.seen.batches);
    let market = load.end();
    client.until_newest(&market.newest()).await;
    rig.settle(&mut client).await;
}

#[tokio::test]
async fn a_client_may_change_its_rate_and_is_not_held_by_the_old_one() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    let mut wish = subscribe(&["binance:A"]);
    wish["max_hz"] = json!(0.01);
    client.ask(&wish).await;
    client.until_tick("binance:A", 1).await;
    market.tick("A");
    assert!(client.listen(QUIET).await.is_empty(), "a hundred seconds to wait");
    client.ask(&json!({"op": "rate", "max_hz": 0})).await;
    client.until_tick("binance:A", 2).await;
}

#[tokio::test]
async fn b54_a_quiet_instrument_is_not_held_back_by_a_busy_one() {
    let rig = Rig::start(with_rate(20.0)).await;
    let mut market = rig.market("binance");
    market.tick("BUSY");
    market.tick("QUIET");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:BUSY", "binance:QUIET"])).await;
    client.until_newest(&market.newest()).await;
    let mut rounds = 0_u32;
    let load = Load::run(market, 20, move |market| {
        market.tick("BUSY");
        rounds += 1;
        if rounds == 2_000 {
            market.tick("QUIET");
        }
    });
    client.until_tick("binance:QUIET", 2).await;
    load.end();
}

#[tokio::test]
async fn batches_are_bounded_and_every_instrument_goes_within_the_stated_number() {
    const INSTRUMENTS: usize = 300;
    let limits = Limits { max_batch_bytes: 4_096, ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    let symbols: Vec<String> = (0..INSTRUMENTS).map(|n| format!("SYMBOL-{n:03}")).collect();
    for symbol in &symbols {
        market.tick(symbol);
    }
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    client.until_newest(&market.newest()).await;
    let all = symbols.clone();
    // Everything changes all the time: every batch is full, and more always pends.
    let load = Load::run(market, 3, move |market| {
        for symbol in &all {
            market.tick(symbol);
        }
    });
    let mut sent_in: HashMap<String, u64> =
        symbols.iter().map(|symbol| (format!("binance:{symbol}"), 0)).collect();
    let (mut number, mut fewest) = (0, INSTRUMENTS);
    while number < 150 {
        let batch = client.until_type("quotes").await;
        assert!(batch.to_string().len() <= 4_096);
        number += 1;
        let quotes = batch["quotes"].as_array().unwrap();
        if number > 1 {
            fewest = fewest.min(quotes.len());
        }
        for quote in quotes {
            sent_in.insert(quote["instrument"].as_str().unwrap().to_owned(), number);
        }
        // So many batches do all texts fill, and one more for where the sweep stood.
        let bound = INSTRUMENTS.div_ceil(fewest) as u64 + 1;
        for (name, last) in &sent_in {
            assert!(number - last <= bound, "{name}: in {last}, not since, now {number}");
        }
    }
    load.end();
}

#[tokio::test]
async fn a_value_longer_than_a_batch_goes_alone() {
    let rig = Rig::start(Limits { max_batch_bytes: 16, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    market.tick("A");
    market.tick("B");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    client.until_newest(&market.newest()).await;
    assert_eq!(client.seen.batches, 2);
}

async fn subscribe_volume(client: &mut super::gateway_support::Client, accounts: &[&str]) -> Value {
    client.ask(&json!({"op": "subscribe", "channel": "volume", "accounts": accounts})).await
}

#[tokio::test]
async fn volumes_are_totals_that_conflate_and_stay_exact() {
    let rig = Rig::start(with_rate(20.0)).await;
    let mut desk = rig.desk();
    desk.buys("desk-1", "A", "0.10", "2");
    let (mut one, mut all) = (rig.client().await, rig.client().await);
    let ack = subscribe_volume(&mut one, &["desk-1"]).await;
    assert_eq!(ack["accounts"], json!(["desk-1"]));
    subscribe_volume(&mut all, &["*"]).await;
    for client in [&mut one, &mut all] {
        let first = client.until_type("volume").await;
        assert_eq!(first["snapshot"], true);
        let expected = json!([{"account": "desk-1", "instrument": "binance:A", "fills": 1,
            "bought": "0.1", "sold": "0", "notional": "0.2"}]);
        assert_eq!(first["volumes"], expected);
    }
    for _ in 0..1_000 {
        desk.buys("desk-1", "A", "0.001", "3");
        desk.buys("desk-2", "A", "1", "1");
    }
    let last = one.until(|message| message["volumes"][0]["fills"] == 1_001).await;
    assert_eq!(last["volumes"][0]["bought"], "1.1");
    assert_eq!(last["volumes"][0]["notional"], "3.2");
    assert!(one.seen.batches < 100, "conflated: {}", one.seen.batches);
    assert_eq!(one.seen.fills.len(), 1, "only its own account");
    let key = |account: &str| (account.to_owned(), "binance:A".to_owned());
    while all.seen.fills.get(&key("desk-2")) != Some(&1_000)
        || all.seen.fills.get(&key("desk-1")) != Some(&1_001)
    {
        all.next().await;
    }
    assert_eq!(rig.gateway.ledger().folded_fills(), 2_001);

    let off = json!({"op": "unsubscribe", "channel": "volume", "accounts": ["desk-1"]});
    one.ask(&off).await;
    desk.buys("desk-1", "A", "1", "1");
    assert!(one.listen(QUIET).await.is_empty());
}

#[tokio::test]
async fn a_bad_account_is_refused_and_a_later_one_is_served() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    let bad = json!({"op": "subscribe", "channel": "volume", "accounts": ["a b", "late"]});
    client.say(&bad).await;
    let ack = client.until_type("ack").await;
    assert_eq!(ack["accounts"], json!(["late"]));
    let error = client.until_type("error").await;
    assert_eq!((&error["code"], &error["names"]), (&json!("malformed_name"), &json!(["a b"])));
    rig.desk().buys("late", "A", "1", "1");
    let volume = client.until_type("volume").await;
    assert_eq!(volume["volumes"][0]["account"], "late");
}

#[tokio::test]
async fn b54_an_accounts_volume_is_not_held_back_by_a_busy_market() {
    let rig = Rig::start(with_rate(20.0)).await;
    let (mut market, mut desk) = (rig.market("binance"), rig.desk());
    market.tick("A");
    desk.buys("desk-1", "A", "1", "1");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:A"])).await;
    subscribe_volume(&mut client, &["*"]).await;
    client.until_type("volume").await;
    let load = Load::run(market, 5, |market| {
        market.tick("A");
    });
    client.until_type("quotes").await;
    desk.buys("desk-1", "A", "1", "1");
    let mut quotes_before = 0;
    let found = tokio::time::timeout(PATIENCE, async {
        while client.next().await["type"] != "volume" {
            quotes_before += 1;
        }
    });
    found.await.expect("the volume has its turn");
    assert!(quotes_before <= 3, "{quotes_before}");
    load.end();
}

#[tokio::test]
async fn one_talkative_client_does_not_hold_up_another() {
    let rig = Rig::start(Limits { max_ops_per_s: 1_000_000, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let (mut loud, mut quiet) = (rig.client().await, rig.client().await);
    quiet.ask(&subscribe(&["binance:A"])).await;
    quiet.until_tick("binance:A", 1).await;
    // Pings whose answers nobody reads: past a bound the gateway stops hearing them.
    let one = frame(0x81, br#"{"op":"ping","id":1}"#);
    let flood: Vec<u8> = one.iter().copied().cycle().take(one.len() * 1_000).collect();
    let mut sent = 0_usize;
    while sent < 200 {
        let write = tokio::io::AsyncWriteExt::write_all(&mut loud.stream, &flood);
        if tokio::time::timeout(QUIET, write).await.is_err() {
            break;
        }
        sent += 1;
    }
    assert!(sent < 200, "it is heard without a bound");
    for _ in 0..20 {
        let tick = market.tick("A");
        quiet.until_tick("binance:A", tick).await;
    }
}
