//! How connections end: closes by either side, silence, mass disconnects, the gateway's own end.

use std::time::Duration;

use serde_json::json;
use tidegate::gateway::{Close, Confirm, Limits};

use super::gateway_support::{Frame, Load, PATIENCE, QUIET, Rig, eventually, frame, subscribe};

fn close(code: u16) -> Vec<u8> {
    frame(0x88, &code.to_be_bytes())
}

async fn nobody_is_left(rig: &Rig) {
    let control = rig.gateway.control();
    eventually("nobody is left", || {
        control.subscribers() == 0 && control.admission().active() == 0 && control.in_flight() == 0
    })
    .await;
    assert!(rig.gateway.report(None).await.is_empty());
}

#[tokio::test]
async fn b38_a_clients_close_is_echoed_and_the_connection_ends() {
    let rig = Rig::start(Limits::default()).await;
    for code in [1000, 1001, 3000, 4999] {
        let mut client = rig.client().await;
        client.send(&close(code)).await;
        assert_eq!(client.closed().await.0, code);
        assert!(client.ended().await);
    }
    let mut client = rig.client().await;
    client.send(&frame(0x88, b"")).await;
    assert_eq!(client.closed().await.0, 1005, "a close without a code is echoed without one");
    nobody_is_left(&rig).await;
}

#[tokio::test]
async fn b38_a_clients_close_is_echoed_behind_a_large_write_that_pends() {
    // Without a bound on what is in flight, so that a batch is larger than the socket takes.
    let max_in_flight = Duration::ZERO;
    let limits = Limits { max_batch_bytes: 1 << 20, max_in_flight, ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    for n in 0..4_000 {
        market.tick(&format!("SYMBOL-{n:04}"));
    }
    for _ in 0..5 {
        let mut client = rig.narrow_client().await;
        client.ask(&subscribe(&["binance:*"])).await;
        let one = rig.gateway.control().subscriber(client.id).unwrap();
        eventually("a batch is on its way", || one.limiter().active() > 0).await;
        assert!(rig.report(&client).await.blocked, "and the socket has not taken it");
        client.send(&close(1000)).await;
        let started = rig.clock.now();
        assert_eq!(client.closed().await.0, 1000);
        // The bound is a second; a loaded machine is given some more.
        assert!(rig.clock.now().since(started) < Duration::from_secs(3));
        assert!(client.ended().await);
    }
    nobody_is_left(&rig).await;
}

#[tokio::test]
async fn nothing_follows_the_echo_of_a_close() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let load = Load::run(market, 5, |market| {
        market.tick("A");
    });
    for _ in 0..20 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:A"])).await;
        client.until_type("quotes").await;
        client.send(&close(1000)).await;
        client.closed().await;
        assert!(client.ended().await);
    }
    load.end();
    nobody_is_left(&rig).await;
}

#[tokio::test]
async fn b49_two_hundred_that_drop_at_once_leave_nothing_behind() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let mut market = rig.market("binance");
    for n in 0..50 {
        market.tick(&format!("S{n}"));
    }
    let load = Load::run(market, 2, |market| {
        for n in 0..50 {
            market.tick(&format!("S{n}"));
        }
    });
    for _ in 0..2 {
        let mut clients = Vec::new();
        for _ in 0..200 {
            let mut client = rig.client().await;
            client.say(&subscribe(&["binance:*"])).await;
            clients.push(client);
        }
        assert_eq!(rig.gateway.control().subscribers(), 200);
        // Unread bytes make it a reset, mid-send.
        drop(clients);
        nobody_is_left(&rig).await;
    }
    for _ in 0..20 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:*"])).await;
        client.until_type("quotes").await;
    }
    load.end();
}

#[tokio::test]
async fn b37_a_peer_that_answers_no_heartbeat_is_found_and_one_that_does_is_kept() {
    let limits = Limits { heartbeat: Duration::from_millis(60), ..Limits::default() };
    let rig = Rig::start(limits).await;
    let (mut silent, mut living) = (rig.client().await, rig.client().await);
    silent.answers_pings = false;
    let (code, reason) = tokio::select! {
        closed = silent.closed() => closed,
        _ = living.listen(PATIENCE) => panic!("the silent one is not found"),
    };
    assert_eq!(code, 4000, "{reason}");
    assert!(silent.withheld.contains(&b"h".to_vec()), "it was asked");
    assert_eq!(living.ask(&json!({"op": "ping"})).await["type"], "pong");
}

#[tokio::test]
async fn b37_an_idle_client_that_answers_heartbeats_stays_for_many_of_them() {
    let limits = Limits { heartbeat: Duration::from_millis(50), ..Limits::default() };
    let rig = Rig::start(limits).await;
    let mut client = rig.client().await;
    let started = rig.clock.now();
    let mut pings = 0;
    while rig.clock.now().since(started) < Duration::from_millis(600) {
        match client.frame_within(QUIET).await {
            Some(Frame::Ping(payload)) => {
                pings += 1;
                client.send(&super::gateway_support::pong(&payload)).await;
            }
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    }
    assert!(pings >= 3, "{pings}");
    assert_eq!(client.ask(&json!({"op": "ping"})).await["type"], "pong");
}

#[tokio::test]
async fn a_client_that_does_not_answer_a_close_is_cut_off() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    client.send(&frame(0x82, b"x")).await;
    assert_eq!(client.closed().await.0, Close::Protocol.code());
    // It goes on talking instead; nothing of it is heard.
    for _ in 0..20 {
        let _ = tokio::io::AsyncWriteExt::write_all(
            &mut client.stream,
            &super::gateway_support::text(&subscribe(&["binance:A"])),
        )
        .await;
    }
    assert!(client.ended().await);
    nobody_is_left(&rig).await;
}

async fn ends_well(confirm: Confirm) {
    let rig = Rig::with_shards(Limits { confirm, max_hz: 0.5, ..Limits::default() }, 2).await;
    let mut market = rig.market("binance");
    market.tick("A");
    market.tick("B");
    let mut clients = Vec::new();
    for _ in 0..6 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:*"])).await;
        client.until_newest(&market.newest()).await;
        clients.push(client);
    }
    // Held by the rate, they go all the same when it ends.
    market.tick("A");
    market.tick("B");
    rig.gateway.finish(PATIENCE);
    for client in &mut clients {
        client.until_newest(&market.newest()).await;
        let notice = client.next().await;
        assert_eq!(notice["type"], "shutdown");
        assert!(notice["retry_after_ms"].is_u64());
        let (code, _) = client.closed().await;
        assert_eq!(code, 1001);
        client.send(&close(1001)).await;
        assert!(client.ended().await);
    }
    tokio::time::timeout(PATIENCE, rig.gateway.finished()).await.expect("every shard ends");
    assert_eq!(rig.gateway.stats().closed[Close::Shutdown.index()].get(), 6);
    assert_eq!(rig.gateway.control().admission().active(), 0);
}

#[tokio::test]
async fn b39_the_end_sends_newest_values_then_a_notice_then_1001() {
    ends_well(Confirm::Pong).await;
}

#[tokio::test]
async fn b39_the_end_is_the_same_where_flushing_confirms() {
    ends_well(Confirm::Flush).await;
}

#[tokio::test]
async fn b39_the_end_comes_though_the_market_goes_on() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let load = Load::run(market, 20, |market| {
        market.tick("A");
    });
    let (mut client, _deaf) = (rig.client().await, rig.client().await);
    client.ask(&subscribe(&["binance:A"])).await;
    client.until_type("quotes").await;
    rig.gateway.finish(Duration::from_secs(60));
    client.until_type("shutdown").await;
    assert_eq!(client.closed().await.0, 1001);
    client.send(&close(1001)).await;
    assert!(client.ended().await);
    // The other one never answers the close, and is not waited for until the deadline.
    tokio::time::timeout(PATIENCE, rig.gateway.finished()).await.expect("every shard ends");
    load.end();
}

#[tokio::test]
async fn a_paused_subscriber_gets_only_the_notice_at_the_end() {
    let rig = Rig::start(Limits { capacity: 0, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:A"])).await;
    client.until_type("status").await;
    rig.gateway.finish(PATIENCE);
    assert_eq!(client.next().await["type"], "shutdown");
    assert_eq!(client.closed().await.0, 1001);
    assert_eq!(client.seen.batches, 0);
}

#[tokio::test]
async fn a_late_confirmation_during_the_end_does_no_harm() {
    let rig = Rig::start(Limits { capacity: 1, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    client.answers_pings = false;
    client.ask(&subscribe(&["binance:A"])).await;
    client.until_tick("binance:A", 1).await;
    market.tick("A");
    rig.gateway.finish(PATIENCE);
    client.until_tick("binance:A", 2).await;
    for batch in [b"2", b"1"] {
        client.send(&super::gateway_support::pong(batch)).await;
    }
    assert_eq!(client.closed().await.0, 1001);
    client.send(&close(1001)).await;
    tokio::time::timeout(PATIENCE, rig.gateway.finished()).await.expect("every shard ends");
}

#[tokio::test]
async fn a_gateway_that_is_dropped_ends_its_connections() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    drop(rig);
    assert_eq!(client.next().await["type"], "shutdown");
    assert_eq!(client.closed().await.0, 1001);
    assert!(client.ended().await);
}
