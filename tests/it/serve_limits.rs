//! Capacity retuned under load while ten saturated subscribers stay connected.

use std::path::Path;
use std::time::Duration;

use crate::serve_support::{Client, FREE_PORTS, Server, eventually, simulated};

const SUBSCRIBERS: usize = 10;

fn config(file: &Path, capacity: u64, max_hz: u64) -> String {
    format!(
        "{FREE_PORTS}[subscriber]\nconfirm = \"client\"\ncapacity = {capacity}\nmax_hz = {max_hz}\n\
         [[feed]]\nname = \"f\"\nvenue = \"binance\"\nrecording = [{file:?}]\nloop = true\n"
    )
}

/// How a change is asked for.
#[derive(Clone, Copy, Debug)]
enum How {
    Patch,
    Reload,
    Signal,
    Watch,
}

async fn change(server: &Server, file: &Path, capacity: u64, how: How) -> u64 {
    let text = config(file, capacity, 0);
    match how {
        How::Patch => drop(server.patch(&format!(r#"{{"capacity":{capacity}}}"#)).await),
        How::Reload => {
            server.save(text.as_bytes());
            assert_eq!(server.reload().await.status, 200);
        }
        How::Signal => {
            server.save(text.as_bytes());
            server.signal("HUP");
        }
        How::Watch => server.save(text.as_bytes()),
    }
    let mut generation = 0;
    eventually("the capacity asked for", async || {
        let limits = server.json("/v1/limits").await;
        generation = limits["generation"].as_u64().unwrap();
        limits["capacity"] == capacity
    })
    .await;
    generation
}

/// Capacity and batches in flight of every subscriber.
async fn in_flight(server: &Server) -> Vec<(u64, u64)> {
    let all = server.json("/v1/subscribers").await;
    let of = |one: &serde_json::Value, key: &str| one[key].as_u64().unwrap();
    all.as_array().unwrap().iter().map(|one| (of(one, "capacity"), of(one, "in_flight"))).collect()
}

#[tokio::test]
async fn b87_saturated_subscribers_follow_every_change_of_capacity_however_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    simulated(&file, 3, 2_000);
    let server = Server::start_in(folder, &config(&file, 8, 0));
    let mut clients = Vec::new();
    for _ in 0..SUBSCRIBERS {
        let mut client = Client::connect(&server).await;
        client.subscribe("binance:*").await;
        clients.push(client);
    }
    for how in [How::Patch, How::Reload, How::Signal, How::Watch] {
        // Nobody confirms: each gets what the capacity allows and no more.
        let before = clients[0].seen.batches;
        for client in &mut clients {
            client.until("8 in flight", |seen| seen.batches == before + 8).await;
        }
        assert_eq!(in_flight(&server).await, [(8, 8); SUBSCRIBERS], "{how:?}");

        // Down: what is in flight stays, and drains to the new capacity.
        let generation = change(&server, &file, 1, how).await;
        assert_eq!(in_flight(&server).await, [(1, 8); SUBSCRIBERS], "{how:?}");
        for client in &mut clients {
            client.until("the limits", |seen| seen.generation() >= generation).await;
            assert_eq!(client.seen.limits["effective"]["capacity"], 1);
            assert_eq!(client.seen.batches, before + 8);
            client.confirm().await;
            client.until("one more", |seen| seen.batches == before + 9).await;
        }
        assert_eq!(in_flight(&server).await, [(1, 1); SUBSCRIBERS], "{how:?}");

        // To nothing: paused, connected.
        let generation = change(&server, &file, 0, how).await;
        for client in &mut clients {
            client.until("the limits", |seen| seen.generation() >= generation).await;
            client.confirm().await;
        }
        eventually("drained", async || in_flight(&server).await == [(0, 0); SUBSCRIBERS]).await;
        for client in &mut clients {
            client.read_for(Duration::from_millis(10)).await;
            assert_eq!(client.seen.batches, before + 9, "{how:?}: paused");
        }

        // Up: all go on, with values that are newer than anything they have.
        let shown = server.json("/v1/instruments").await;
        let generation = change(&server, &file, 16, how).await;
        for client in &mut clients {
            client.until("16 in flight", |seen| seen.batches == before + 25).await;
            client.until("the limits", |seen| seen.generation() >= generation).await;
            for one in shown.as_array().unwrap() {
                let seen = &client.seen.quotes[one["instrument"].as_str().unwrap()];
                // The resumed batches hold everything that changed during the pause.
                assert!(seen["tick"].as_u64() >= one["tick"].as_u64() || one["tick"].is_null());
            }
            assert_eq!(client.seen.backwards, 0);
        }
        assert_eq!(in_flight(&server).await, [(16, 16); SUBSCRIBERS], "{how:?}");
        change(&server, &file, 8, how).await;
        for client in &mut clients {
            client.confirm().await;
        }
    }
}

#[tokio::test]
async fn what_is_set_for_one_subscriber_gives_way_exactly_when_the_file_changes_that_key() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    simulated(&file, 1, 100);
    let server = Server::start_in(folder, &config(&file, 8, 0));
    let (one, other) = (Client::connect(&server).await, Client::connect(&server).await);
    let id = &one.seen.id;
    server.patch(&format!(r#"{{"subscriber":"{id}","capacity":3,"max_hz":7}}"#)).await;
    let of = async |client: &Client| {
        let id = &client.seen.id;
        let shown = server.json(&format!("/v1/limits?subscriber={id}")).await;
        (shown["capacity"].as_u64().unwrap(), shown["max_hz"].as_u64().unwrap())
    };
    assert_eq!((of(&one).await, of(&other).await), ((3, 7), (8, 0)));
    for (capacity, max_hz, expected) in [
        // The same file, then a key changed and the other not, then the other.
        (8, 0, ((3, 7), (8, 0))),
        (8, 5, ((3, 5), (8, 5))),
        (6, 5, ((6, 5), (6, 5))),
    ] {
        server.save(config(&file, capacity, max_hz).as_bytes());
        assert_eq!(server.reload().await.status, 200);
        assert_eq!((of(&one).await, of(&other).await), expected);
    }
}
