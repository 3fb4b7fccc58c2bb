//! Limits changed while subscribers stay connected.

use serde_json::json;
use tidegate::gateway::{Confirm, Limits, Retune, RetuneError};

use super::gateway_support::{Client, Load, QUIET, Rig, eventually, pong, subscribe};

async fn connected(rig: &Rig, count: usize) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = rig.client().await;
        client.answers_pings = false;
        client.ask(&subscribe(&["binance:*"])).await;
        clients.push(client);
    }
    clients
}

/// Reads what is there; the clients' pongs stay withheld.
async fn listen(clients: &mut [Client]) {
    for client in clients {
        client.listen(QUIET / 4).await;
    }
}

async fn confirm(clients: &mut [Client]) {
    for client in clients {
        let last = client.withheld.drain(..).next_back();
        if let Some(payload) = last {
            client.send(&pong(&payload)).await;
        }
    }
}

#[tokio::test]
async fn b87_capacity_8_1_0_16_under_load_reaches_ten_saturated_subscribers_at_once() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let mut market = rig.market("binance");
    for symbol in ["A", "B", "C"] {
        market.tick(symbol);
    }
    let load = Load::run(market, 3, |market| {
        for symbol in ["A", "B", "C"] {
            market.tick(symbol);
        }
    });
    let mut clients = connected(&rig, 10).await;
    let ids: Vec<u64> = clients.iter().map(|client| client.id).collect();
    let held = |id: u64| rig.gateway.control().subscriber(id).unwrap().limiter().snapshot();
    let all = |active: usize| ids.iter().all(|&id| held(id).active == active);
    eventually("all are saturated at 8", || all(8)).await;
    listen(&mut clients).await;

    let mut generation = rig.gateway.control().limits().generation;
    let mut floor: Vec<u64> = clients.iter().map(|client| client.seen.batches).collect();
    assert_eq!(floor, [8; 10]);
    for capacity in [1_usize, 0, 16] {
        generation += 1;
        assert_eq!(rig.retune_all(capacity), generation);
        for &id in &ids {
            assert_eq!(held(id).capacity, capacity, "in force when the call returns");
        }
        for client in &mut clients {
            let limits = client.until_type("limits").await;
            assert_eq!(limits["generation"], generation);
            assert_eq!(limits["effective"]["capacity"], capacity);
        }
        if capacity < 8 {
            // What was in flight is not cancelled; once drained it is never above the new limit.
            confirm(&mut clients).await;
            eventually("all follow", || all(capacity)).await;
            listen(&mut clients).await;
            assert!(all(capacity));
            for (client, floor) in clients.iter().zip(&mut floor) {
                assert_eq!(client.seen.batches, *floor + capacity as u64);
                *floor = client.seen.batches;
            }
        }
    }
    let market = load.end();
    for client in &mut clients {
        client.answers_pings = true;
    }
    confirm(&mut clients).await;
    for client in &mut clients {
        client.until_newest(&market.newest()).await;
        let report = rig.settle(client).await;
        assert_eq!((report.capacity, report.in_flight), (16, 0));
    }
    assert_eq!(rig.gateway.control().subscribers(), 10, "nobody was dropped");
}

#[tokio::test]
async fn b88_five_in_flight_and_twenty_waiting_go_through_changes_of_the_limit_and_none_is_lost() {
    let rig = Rig::start(Limits { capacity: 5, ..Limits::default() }).await;
    let mut market = rig.market("binance");
    let symbols: Vec<String> = (0..20).map(|number| format!("S{number}")).collect();
    let mut client = connected(&rig, 1).await.remove(0);
    let held = |client: &Client| {
        let limiter = rig.gateway.control().subscriber(client.id).unwrap();
        limiter.limiter().snapshot()
    };
    // Until as many batches are in flight as may be, each of one tick.
    let mut sent = 0;
    while held(&client).active < 5 {
        sent += 1;
        let tick = market.tick("FIRST");
        client.until_tick("binance:FIRST", tick).await;
        assert!(sent <= 5);
    }
    for symbol in &symbols {
        market.tick(symbol);
    }
    client.listen(QUIET).await;
    assert_eq!((held(&client).active, client.seen.batches), (5, 5), "twenty wait");

    rig.retune_all(5);
    client.listen(QUIET).await;
    assert_eq!(
        (held(&client).active, client.seen.batches),
        (5, 5),
        "and the same limit moves none"
    );
    rig.retune_all(3);
    client.listen(QUIET).await;
    assert_eq!((held(&client).active, client.seen.batches), (5, 5), "what is in flight stays so");
    rig.retune_all(6);
    for symbol in &symbols {
        client.until_tick(&format!("binance:{symbol}"), market.last(symbol)).await;
    }
    assert_eq!(held(&client).active, 6);

    client.listen(QUIET).await;
    confirm(std::slice::from_mut(&mut client)).await;
    eventually("nothing is in flight", || held(&client).active == 0).await;
    // The next burst reaches the limit, and not one more.
    for _ in 0..6 {
        let tick = market.tick("FIRST");
        client.until_tick("binance:FIRST", tick).await;
    }
    market.tick("FIRST");
    client.listen(QUIET).await;
    let now = held(&client);
    assert_eq!((now.active, now.capacity), (6, 6));
    client.answers_pings = true;
    confirm(std::slice::from_mut(&mut client)).await;
    client.until_newest(&market.newest()).await;
    assert_eq!(rig.settle(&mut client).await.in_flight, 0);
}

#[tokio::test]
async fn at_capacity_zero_nothing_is_sent_and_growth_resumes_with_the_newest() {
    let rig = Rig::start(Limits::default()).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:A"])).await;
    client.until_tick("binance:A", 1).await;
    rig.settle(&mut client).await;
    rig.retune_all(0);
    client.until_type("limits").await;
    for _ in 0..100 {
        market.tick("A");
    }
    assert!(client.listen(QUIET).await.is_empty());
    let report = rig.report(&client).await;
    assert_eq!((report.capacity, report.in_flight, report.pending), (0, 0, 100));
    assert_eq!(client.ask(&json!({"op": "ping"})).await["type"], "pong", "it is still heard");
    rig.retune_all(2);
    let batch = client.until_type("quotes").await;
    assert_eq!(batch["quotes"][0]["tick"], 101);
    assert_eq!(batch["why"], "capacity");
    let report = rig.settle(&mut client).await;
    assert_eq!((report.delivered, report.conflated), (2, 99));
}

#[tokio::test]
async fn one_subscriber_can_be_retuned_alone_and_all_means_all() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    let (mut one, mut other) = (rig.client().await, rig.client().await);
    let control = rig.gateway.control();
    let change = Retune {
        subscriber: Some(one.id),
        capacity: Some(3),
        max_hz: Some(7.0),
        ..Retune::default()
    };
    assert_eq!(control.retune(change).unwrap().generation, 2);
    let limits = one.until_type("limits").await;
    let effective = json!({"max_hz": 7, "capacity": 3, "confirm": "pong"});
    assert_eq!((&limits["generation"], &limits["effective"]), (&json!(2), &effective));
    assert!(other.listen(QUIET).await.is_empty());
    assert_eq!(control.subscriber(other.id).unwrap().limiter().capacity(), 8);
    assert_eq!(control.limits().capacity, 8);

    rig.retune_all(5);
    for client in [&mut one, &mut other] {
        let limits = client.until_type("limits").await;
        assert_eq!(limits["effective"]["capacity"], 5);
    }
    assert_eq!(control.subscriber(one.id).unwrap().ceiling_hz().to_bits(), 7_f64.to_bits());
}

#[tokio::test]
async fn a_change_that_is_refused_changes_nothing() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    let control = rig.gateway.control();
    let before = control.limits();
    let none = Retune::default();
    for (change, expected) in [
        (none, RetuneError::Empty),
        (Retune { subscriber: Some(client.id), ..none }, RetuneError::Empty),
        (
            Retune { subscriber: Some(99), capacity: Some(1), ..none },
            RetuneError::UnknownSubscriber(99),
        ),
        (
            Retune { subscriber: Some(client.id), max_subscribers: Some(1), ..none },
            RetuneError::NotOfOne,
        ),
        (
            Retune { capacity: Some(usize::MAX), max_hz: Some(5.0), ..none },
            RetuneError::TooMuch { key: "capacity", value: usize::MAX },
        ),
        (Retune { capacity: Some(1), max_hz: Some(-1.0), ..none }, RetuneError::Rate),
        (Retune { max_hz: Some(f64::NAN), ..none }, RetuneError::Rate),
    ] {
        assert_eq!(control.retune(change), Err(expected));
    }
    assert_eq!(control.limits(), before);
    assert!(client.listen(QUIET).await.is_empty());
    assert_eq!(control.subscriber(client.id).unwrap().limiter().capacity(), 8);
}

#[tokio::test]
async fn every_change_of_a_storm_reaches_everybody_in_the_end() {
    let rig = Rig::with_shards(Limits { confirm: Confirm::Flush, ..Limits::default() }, 2).await;
    let mut market = rig.market("binance");
    market.tick("A");
    let load = Load::run(market, 2, |market| {
        market.tick("A");
    });
    let mut clients = Vec::new();
    for _ in 0..4 {
        let mut client = rig.client().await;
        client.ask(&subscribe(&["binance:A"])).await;
        clients.push(client);
    }
    for round in 0..200_usize {
        rig.retune_all(round % 9);
    }
    let last = rig.retune_all(6);
    for client in &mut clients {
        let limits = client
            .until(|message| message["type"] == "limits" && message["generation"] == last)
            .await;
        assert_eq!(limits["effective"]["capacity"], 6);
    }
    let market = load.end();
    for client in &mut clients {
        client.until_newest(&market.newest()).await;
        rig.settle(client).await;
    }
}

#[tokio::test]
async fn who_connects_during_a_storm_of_changes_ends_under_the_last() {
    let rig = Rig::with_shards(Limits::default(), 2).await;
    for round in 0..40_usize {
        rig.retune_all(1 + round % 5);
        let connecting = rig.client();
        let last = rig.retune_all(7 + round % 3);
        let mut client = connecting.await;
        let ack = client.ask(&json!({"op": "rate", "max_hz": 0})).await;
        assert_eq!(ack["generation"], last);
        assert_eq!(ack["effective"]["capacity"], 7 + round % 3);
    }
}

#[tokio::test]
async fn limits_put_back_are_told_once_and_hold_what_was_held() {
    let rig = Rig::start(Limits::default()).await;
    let (mut one, mut other) = (rig.client().await, rig.client().await);
    let control = rig.gateway.control();
    let own = Retune { subscriber: Some(one.id), capacity: Some(3), ..Retune::default() };
    control.retune(own).unwrap();
    let (limits, held) = (control.limits(), control.held());
    rig.retune_all(1);
    control.restore(&limits, &held);
    for (client, capacity) in [(&mut one, 3), (&mut other, 8)] {
        let told =
            client.until(|message| message["type"] == "limits" && message["generation"] == 4).await;
        assert_eq!(told["effective"]["capacity"], capacity);
        assert!(client.listen(QUIET / 4).await.is_empty());
    }
    assert_eq!(control.limits().capacity, 8);
}
