//! Reloads in storms: nobody is disconnected, and the last good file is in effect.

use std::process::Command;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::Value;

use crate::cli::tidegate;
use crate::config_reload::{BAD, Values};
use crate::serve_support::{Client, PATIENCE, Server, eventually, signal_times, simulated};

/// The program on a good file of two feeds, on ports that are free whatever the file says.
fn start(values: &Values, through: &[&str]) -> Server {
    let folder = tempfile::tempdir().unwrap();
    simulated(&folder.path().join("a.zst"), 1, 1_000);
    std::fs::write(folder.path().join("t.toml"), good(values)).unwrap();
    let file = folder.path().join("t.toml");
    let free = "127.0.0.1:0";
    let arguments =
        ["serve", "--config", file.to_str().unwrap(), "--listen", free, "--admin-listen", free];
    let mut command = tidegate(&arguments);
    if !through.is_empty() {
        command = Command::new(through[0]);
        command.args(&through[1..]).arg(env!("CARGO_BIN_EXE_tidegate")).args(arguments);
    }
    Server::run(folder, command)
}

fn good(values: &Values) -> String {
    values.text().replace("[\"a.zst\"]", "[\"a.zst\"]\nloop = true")
}

/// What a good file sets, as far as it is hot.
fn expected(values: &Values) -> (u64, u64, u64, String) {
    let pace = if values.pace_us == 0 { "0s".to_owned() } else { format!("{}us", values.pace_us) };
    (values.capacity.into(), values.max_hz.into(), values.max_subscribers.into(), pace)
}

fn limits(shown: &Value) -> (u64, u64, u64, String) {
    let number = |key: &str| shown[key].as_u64().unwrap();
    let pace = shown["pace"].as_str().unwrap().to_owned();
    (number("capacity"), number("max_hz"), number("max_subscribers"), pace)
}

#[tokio::test]
async fn b85_b89_a_thousand_reloads_half_of_them_bad_disconnect_nobody() {
    let mut random = StdRng::seed_from_u64(86);
    let mut last = Values { capacity: 4, max_hz: 0, max_subscribers: 9, pace_us: 1, port: 9010 };
    let server = start(&last, &[]);
    let mut clients = Vec::new();
    for _ in 0..3 {
        let mut client = Client::connect(&server).await;
        client.subscribe("binance:*").await;
        clients.push(client);
    }
    let mut stop = Vec::new();
    let mut reading = Vec::new();
    for mut client in clients {
        let (tell, told) = tokio::sync::oneshot::channel::<()>();
        stop.push(tell);
        reading.push(tokio::spawn(async move {
            tokio::select! {
                () = client.read_to_the_end() => panic!("disconnected: {:?}", client.seen.close),
                _ = told => {}
            }
            client
        }));
    }
    let mut generation = 0;
    for round in 0..1_000 {
        if round % 2 == 0 {
            let (kind, spoil) = BAD[round / 2 % BAD.len()];
            match spoil(&good(&last), &mut random) {
                Ok(text) => server.save(&text),
                Err(_) => std::fs::remove_file(server.file()).unwrap(),
            }
            let answer = server.reload().await;
            assert_eq!(answer.status, 422, "{kind}: {}", answer.body);
            let errors = &answer.json()["errors"];
            assert!(errors[0]["message"].is_string(), "{kind}: {errors}");
        } else {
            last = Values { max_subscribers: 9, ..Values::random(&mut random) };
            server.save(good(&last).as_bytes());
            let answer = server.reload().await;
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
        let shown = server.json("/v1/limits").await;
        assert_eq!(limits(&shown), expected(&last), "round {round}");
        let now = shown["generation"].as_u64().unwrap();
        assert!(now >= generation && (round % 2 == 1 || generation == 0 || now == generation));
        generation = now;
        if round % 10 < 2 {
            let config = server.json("/v1/config").await;
            assert_eq!(config["subscriber"]["capacity"], last.capacity);
            assert_eq!(config["gateway"]["pace"], shown["pace"]);
        }
    }
    stop.into_iter().for_each(|stop| stop.send(()).unwrap());
    for reading in reading {
        let mut client = reading.await.unwrap();
        client.until("the last generation", |seen| seen.generation() >= generation).await;
        assert_eq!(client.seen.limits["effective"]["capacity"], last.capacity);
        assert_eq!(client.seen.backwards, 0);
    }
    let metrics = server.get("/metrics").await.body;
    let refused = metrics.lines().find(|line| {
        line.starts_with("tidegate_config_reloads_total{") && line.contains("\"refused\"")
    });
    assert!(refused.is_some(), "{metrics}");
}

#[tokio::test]
async fn b86_hangups_never_kill_from_the_start_to_the_end() {
    let mut random = StdRng::seed_from_u64(7);
    let mut last = Values { capacity: 4, max_hz: 0, max_subscribers: 9, pace_us: 1, port: 9010 };
    // Ignored from before the program's first instruction, and sent all the while it starts.
    let storm = "trap '' HUP; (i=0; while [ $i -lt 200 ]; do kill -HUP $$; i=$((i+1)); \
                 sleep 0.002; done) & exec \"$@\"";
    let mut server = start(&last, &["sh", "-c", storm, "sh"]);
    let mut client = Client::connect(&server).await;
    client.subscribe("binance:*").await;
    for _ in 0..10 {
        last = Values { max_subscribers: 9, ..Values::random(&mut random) };
        server.save(good(&last).as_bytes());
        signal_times(server.id(), "HUP", 100);
    }
    eventually("the last file", async || {
        limits(&server.json("/v1/limits").await) == expected(&last)
    })
    .await;
    client.read_for(std::time::Duration::from_millis(50)).await;
    assert!(server.is_running());
    signal_times(server.id(), "TERM", 1);
    signal_times(server.id(), "HUP", 100);
    client.read_to_the_end().await;
    assert_eq!(client.seen.close, Some(1001));
    let status = tokio::time::timeout(PATIENCE, server.exited()).await.unwrap();
    assert_eq!(status.code(), Some(0), "{}", server.log());
}

#[tokio::test]
async fn b91_what_needs_a_restart_is_named_and_the_rest_is_applied() {
    let before = Values { capacity: 4, max_hz: 0, max_subscribers: 9, pace_us: 1, port: 9010 };
    let server = start(&before, &[]);
    let after = Values { capacity: 5, port: 9011, ..before };
    server.save(good(&after).as_bytes());
    let answer = server.reload().await.json();
    // The watch may have been first, and then nothing is left to apply.
    assert!(
        answer["applied"] == serde_json::json!(["subscriber.capacity"])
            || answer["applied"] == serde_json::json!([])
    );
    assert_eq!(answer["needs_restart"], serde_json::json!(["gateway.listen"]));
    assert_eq!(server.json("/v1/limits").await["capacity"], 5);
    // What is shown as in effect is where the program listens, not what a file would like.
    let config = server.json("/v1/config").await;
    assert_eq!(config["gateway"]["listen"], server.gateway.to_string());
    assert_eq!(config["admin"]["listen"], server.admin.to_string());
    let mut client = Client::connect(&server).await;
    client.subscribe("binance:*").await;
}
