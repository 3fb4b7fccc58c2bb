//! What a gateway on a network has to stand: too many, too slow, too deaf.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::serve_support::{Client, FREE_PORTS, PATIENCE, Server, eventually, simulated};

/// A recording that goes on for ever, and settings of the gateway beside it.
fn start(gateway: &str, through: &[&str]) -> Server {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    simulated(&file, 2, 200);
    let ports = FREE_PORTS.replace("[admin]", &format!("{gateway}\n[admin]"));
    let config = format!(
        "{ports}[[feed]]\nname = \"f\"\nvenue = \"binance\"\nrecording = [{file:?}]\nloop = true\n"
    );
    let [program, arguments @ ..] = through else { return Server::start_in(folder, &config) };
    std::fs::write(folder.path().join("t.toml"), config).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg(env!("CARGO_BIN_EXE_tidegate")).args(["serve", "--config"]);
    command.arg(folder.path().join("t.toml"));
    Server::run(folder, command)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn b44_out_of_descriptors_it_serves_on_rests_and_comes_back_by_itself() {
    let script = "ulimit -n 64; exec \"$@\"";
    let server = start("shards = 1", &["sh", "-c", script, "sh"]);
    let mut client = Client::connect(&server).await;
    client.subscribe("binance:*").await;
    let flood: Vec<TcpStream> =
        (0..120).map(|_| TcpStream::connect(server.gateway).unwrap()).collect();
    eventually("the limit", async || server.log().contains("cannot accept connections")).await;
    let (ticks, batches) = (server.processor_ticks(), client.seen.batches);
    client.read_for(Duration::from_secs(1)).await;
    assert!(client.seen.batches > batches, "who is connected is served");
    let used = server.processor_ticks() - ticks;
    assert!(used < 70, "{used} % of a core: it spins");
    assert_eq!(server.log().matches("cannot accept connections").count(), 1);
    drop(flood);
    let mut late = Client::connect(&server).await;
    late.subscribe("binance:*").await;
    late.until("quotes", |seen| seen.delivered > 0).await;
}

#[tokio::test]
async fn b43_slow_and_garbled_handshakes_hold_nobody_up_and_are_over_in_time() {
    let server = start("handshake_timeout = \"1s\"", &[]);
    let mut rude = Vec::new();
    for place in 0..300 {
        let mut stream = TcpStream::connect(server.gateway).unwrap();
        let said: &[u8] = match place % 3 {
            0 => b"",
            1 => b"GET /v1/stream HTTP/1.1\r\nHost: x\r\nX-Drip: ",
            _ => b"\x16\x03\x01\x02\x00garbage\r\n\r\n",
        };
        let _ = stream.write_all(said);
        rude.push(stream);
    }
    let mut client = Client::connect(&server).await;
    client.subscribe("binance:*").await;
    client.until("quotes", |seen| seen.delivered > 0).await;
    // All are answered or closed; none is left to the client's own patience.
    let over = tokio::task::spawn_blocking(move || {
        rude.into_iter().enumerate().all(|(place, mut stream)| {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut answer = Vec::new();
            let read = stream.read_to_end(&mut answer);
            let status: &[u8] = if place % 3 == 2 { b"HTTP/1.1 400" } else { b"HTTP/1.1 408" };
            // A reset may take the answer with it, a timeout of ours may not.
            read.is_ok_and(|_| answer.starts_with(status))
        })
    });
    assert!(over.await.unwrap());
    client.read_for(Duration::from_millis(50)).await;
    let metrics = server.get("/metrics").await.body;
    for (reason, count) in [("slow", 200), ("not_upgrade", 100)] {
        let line = format!("tidegate_handshakes_refused_total{{reason=\"{reason}\"}} {count}");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}

/// One that reads nothing beside twenty that read: the memory stays what it is.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn b32_a_deaf_client_costs_bounded_memory_at_fifty_thousand_ticks_a_second() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    let publisher = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = publisher.local_addr().unwrap();
    let server = Server::start(&format!(
        "{FREE_PORTS}[[feed]]\nname = \"f\"\nvenue = \"binance\"\nlines = \"tcp://{address}\"\n"
    ));
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let publishing = std::thread::spawn(move || {
        let (mut stream, _) = publisher.accept().unwrap();
        let (mut id, mut text) = (0_u64, String::new());
        while !stopped.load(Ordering::Relaxed) {
            text.clear();
            for _ in 0..100 {
                use std::fmt::Write as _;
                id += 1;
                let symbol = id % 200;
                let _ = writeln!(
                    text,
                    r#"{{"u":{id},"s":"S{symbol}","b":"1.{id:08}","B":"1","a":"2.{id:08}","A":"1"}}"#
                );
            }
            if stream.write_all(text.as_bytes()).is_err() {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        id
    });
    let mut deaf = Client::connect(&server).await;
    deaf.say(r#"{"op":"subscribe","instruments":["binance:*"]}"#).await;
    let mut reading = Vec::new();
    for _ in 0..20 {
        let mut client = Client::connect(&server).await;
        client.say(r#"{"op":"subscribe","instruments":["binance:*"],"max_hz":20}"#).await;
        reading.push(tokio::spawn(async move {
            client.read_to_the_end().await;
        }));
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = server.resident_bytes();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let after = server.resident_bytes();
    stop.store(true, Ordering::Relaxed);
    let sent = publishing.join().unwrap();
    eventually("all messages", async || {
        let feeds = server.json("/v1/feeds").await;
        feeds[0]["messages"]["quote"].as_u64().unwrap() == sent
    })
    .await;
    assert!(after < before + (8 << 20), "from {before} to {after} bytes");
    // It is still connected, conflated, and gets the newest values once it reads.
    let accounts = server.accounts(&deaf.seen.id).await;
    let of = |key: &str| accounts[key].as_u64().unwrap();
    assert_eq!(of("received_ticks"), of("delivered") + of("conflated") + of("pending"));
    assert!(of("batches") <= of("capacity"));
    deaf.until("the newest values", |seen| {
        let ticks = seen.quotes.values().map(|quote| quote["tick"].as_u64().unwrap());
        ticks.sum::<u64>() == sent
    })
    .await;
    assert_eq!(deaf.seen.backwards, 0);
    reading.iter().for_each(tokio::task::JoinHandle::abort);
}
