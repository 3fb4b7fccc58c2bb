//! Slow and deaf subscribers: exact accounts, bounded memory, and nobody else's delay.

use std::time::Duration;

use tidegate::gateway::{Confirm, Limits, Retune};

use super::gateway_support::{Client, Load, QUIET, Rig, assert_balanced, pong, subscribe};

const SYMBOLS: [&str; 5] = ["A", "B", "C", "D", "E"];

/// A market of five symbols under load, some of whose ticks are conflated before the board.
fn busy(rig: &Rig, rounds_per_ms: usize) -> Load {
    let mut market = rig.market("binance");
    for symbol in SYMBOLS {
        market.skip(symbol, 7);
    }
    Load::run(market, rounds_per_ms, |market| {
        for (skip, symbol) in (1..).zip(SYMBOLS) {
            market.skip(symbol, skip);
        }
    })
}

/// Reads for a while, at one message a `pause`, with the accounts asked in between.
async fn read_slowly(rig: &Rig, client: &mut Client, messages: usize, pause: Duration) {
    for _ in 0..messages {
        client.next_within(QUIET).await;
        tokio::time::sleep(pause).await;
        assert_balanced(&rig.report(client).await);
    }
}

/// Ends the load; then the client's own recount and the gateway's must agree to the tick.
async fn agree(rig: &Rig, client: &mut Client, load: Load) {
    let market = load.end();
    client.until_newest(&market.newest()).await;
    let report = rig.settle(client).await;
    assert!(report.conflated > 0 && report.delivered > 0);
    // By its definition: from the tick before each first quote to the board's tick now.
    assert_eq!(report.received, report.delivered + report.conflated);
}

#[tokio::test]
async fn b57_the_accounts_of_a_fast_subscriber_are_exact() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let load = busy(&rig, 5);
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    read_slowly(&rig, &mut client, 100, Duration::ZERO).await;
    agree(&rig, &mut client, load).await;
}

#[tokio::test]
async fn b57_the_accounts_of_a_slow_subscriber_are_exact() {
    let rig = Rig::start(Limits { capacity: 100, ..Limits::default() }).await;
    let load = busy(&rig, 5);
    let mut client = rig.narrow_client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    read_slowly(&rig, &mut client, 40, Duration::from_millis(8)).await;
    agree(&rig, &mut client, load).await;
}

#[tokio::test]
async fn b57_the_accounts_of_a_subscriber_held_by_capacity_are_exact() {
    let rig = Rig::start(Limits { capacity: 1, ..Limits::default() }).await;
    let load = busy(&rig, 5);
    let mut client = rig.client().await;
    client.answers_pings = false;
    client.ask(&subscribe(&["binance:*"])).await;
    for _ in 0..30 {
        client.listen(Duration::from_millis(8)).await;
        assert_balanced(&rig.report(&client).await);
        for payload in std::mem::take(&mut client.withheld) {
            client.send(&pong(&payload)).await;
        }
    }
    client.answers_pings = true;
    for payload in std::mem::take(&mut client.withheld) {
        client.send(&pong(&payload)).await;
    }
    agree(&rig, &mut client, load).await;
}

#[tokio::test]
async fn b57_the_accounts_of_a_subscriber_held_by_its_rate_are_exact() {
    let rig = Rig::start(Limits { max_hz: 25.0, ..Limits::default() }).await;
    let load = busy(&rig, 5);
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    read_slowly(&rig, &mut client, 15, Duration::ZERO).await;
    agree(&rig, &mut client, load).await;
}

#[tokio::test]
async fn b57_the_accounts_stay_exact_across_retunes() {
    let rig = Rig::start(Limits::default()).await;
    let load = busy(&rig, 5);
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:*"])).await;
    for round in 0..30 {
        let change = Retune {
            capacity: Some(round % 4),
            max_hz: Some(f64::from(u8::try_from(round % 3).unwrap()) * 100.0),
            ..Retune::default()
        };
        rig.gateway.control().retune(change).unwrap();
        client.listen_for(Duration::from_millis(4)).await;
        assert_balanced(&rig.report(&client).await);
    }
    rig.retune_all(8);
    agree(&rig, &mut client, load).await;
}

#[tokio::test]
async fn figures_of_the_gateway_are_the_sums_of_its_subscribers() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let load = busy(&rig, 2);
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:*"])).await;
        clients.push(client);
    }
    let market = load.end();
    for client in &mut clients {
        client.until_newest(&market.newest()).await;
        rig.settle(client).await;
    }
    let reports = rig.gateway.report(None).await;
    assert_eq!(reports.iter().map(|report| report.id).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let stats = rig.gateway.stats();
    assert_eq!(stats.delivered.get(), reports.iter().map(|report| report.delivered).sum::<u64>());
    assert_eq!(stats.conflated.get(), reports.iter().map(|report| report.conflated).sum::<u64>());
    let batches: u64 = stats.batches.iter().map(|counter| counter.get()).sum();
    assert_eq!(batches, reports.iter().map(|report| report.batches).sum::<u64>());
}

/// A universe whose texts fill several batches, so that a deaf client's socket fills up.
const WIDE: usize = 2_000;

#[tokio::test]
async fn b32_b33_b35_a_deaf_client_disturbs_nobody_and_reads_the_newest_when_it_reads_again() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    let symbols: Vec<String> = (0..WIDE).map(|n| format!("SYMBOL-{n:04}")).collect();
    for symbol in &symbols {
        market.tick(symbol);
    }
    let mut deaf = rig.narrow_client().await;
    deaf.ask(&subscribe(&["binance:*"])).await;
    let mut healthy = Vec::new();
    for _ in 0..5 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:SYMBOL-0000", "binance:SYMBOL-1999"])).await;
        healthy.push(client);
    }
    let mut next = 0;
    let load = Load::run(market, 50, move |market| {
        market.tick(&symbols[next % WIDE]);
        next += 1;
    });
    // The healthy are served all the while, at their own pace.
    for _ in 0..50 {
        for client in &mut healthy {
            client.until_type("quotes").await;
            assert_balanced(&rig.report(client).await);
        }
    }
    let report = rig.report(&deaf).await;
    assert_balanced(&report);
    assert!(report.batches <= 8, "unconfirmed, they wait: {report:?}");
    assert!(report.in_flight <= 8);
    let sent_while_deaf = report.batches;
    let mut market = load.end();
    // The last update of a key is one that finds no room, and then the key goes quiet.
    for n in [0, 999, 1_999] {
        market.tick(&format!("SYMBOL-{n:04}"));
    }
    let newest = market.newest();
    for client in &mut healthy {
        for name in ["binance:SYMBOL-0000", "binance:SYMBOL-1999"] {
            client.until_tick(name, newest[name]).await;
        }
    }
    // It reads again: at most `capacity` older batches, and then the newest of everything.
    let mut older = 0_u64;
    while deaf.seen.ticks != newest {
        let message = deaf.next().await;
        let quotes = message["quotes"].as_array().into_iter().flatten();
        let stale = quotes
            .filter(|quote| {
                quote["tick"].as_u64() != newest.get(quote["instrument"].as_str().unwrap()).copied()
            })
            .count();
        if stale > 0 {
            older += 1;
            assert!(deaf.seen.batches <= sent_while_deaf, "an old value, sent after it read again");
        }
    }
    assert!(older <= 8, "{older}");
    rig.settle(&mut deaf).await;
    assert_eq!(rig.gateway.control().subscribers(), 6);
}

#[tokio::test]
async fn b32_a_deaf_client_is_bounded_by_its_socket_where_flushing_confirms() {
    // Where the socket confirms, more than `capacity` batches may lie in the kernel, but never more
    // bytes than it was told to keep.
    let rig = Rig::start(Limits { confirm: Confirm::Flush, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    let symbols: Vec<String> = (0..WIDE).map(|n| format!("SYMBOL-{n:04}")).collect();
    for symbol in &symbols {
        market.tick(symbol);
    }
    let mut deaf = rig.narrow_client().await;
    deaf.ask(&subscribe(&["binance:*"])).await;
    let mut next = 0;
    let load = Load::run(market, 200, move |market| {
        market.tick(&symbols[next % WIDE]);
        next += 1;
    });
    super::gateway_support::eventually("the socket is full", || {
        rig.gateway.control().subscriber(deaf.id).is_some_and(|one| one.limiter().active() == 1)
    })
    .await;
    tokio::time::sleep(QUIET).await;
    let report = rig.report(&deaf).await;
    assert!(report.blocked && report.in_flight == 1, "{report:?}");
    let bytes = rig.gateway.stats().bytes.get();
    tokio::time::sleep(QUIET).await;
    assert_eq!(rig.gateway.stats().bytes.get(), bytes, "nothing is queued for it");
    assert!(bytes < 1 << 20, "{bytes} bytes for a client that reads nothing");
    let market = load.end();
    deaf.until_newest(&market.newest()).await;
    rig.settle(&mut deaf).await;
}
