//! Told to stop: newest values, a notice, a close, and an end in time.

use std::net::TcpListener;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::cli::{err, tidegate};
use crate::serve_support::{Client, FREE_PORTS, PATIENCE, Server, eventually, simulated};

#[tokio::test]
async fn b39_everybody_gets_the_last_values_and_a_close_though_one_is_deaf() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.zst");
        simulated(&file, 3, 2_000);
        let config = format!(
            "{FREE_PORTS}[[feed]]\nname = \"f\"\nvenue = \"binance\"\nrecording = [{file:?}]\n\
             loop = true\n"
        )
        .replace("[admin]", "shutdown_deadline = \"2s\"\n[admin]");
        let mut server = Server::start_in(folder, &config);
        let deaf = deaf_client(&server).await;
        let mut reading = Vec::new();
        for _ in 0..49 {
            let mut client = Client::connect(&server).await;
            client.subscribe("binance:*").await;
            client.until("quotes", |seen| seen.quotes.len() >= 20).await;
            reading.push(tokio::spawn(async move {
                client.read_to_the_end().await;
                client
            }));
        }
        server.signal(signal);
        eventually("not ready", async || server.get("/-/ready").await.status == 503).await;
        assert_eq!(server.get("/-/healthy").await.status, 200);
        assert!(Client::try_connect(server.gateway).await.is_err(), "no new subscribers");
        let mut clients = Vec::new();
        for reading in reading {
            clients.push(reading.await.unwrap());
        }
        // The deaf one holds up the end, so that the last values can still be asked for.
        let last = server.json("/v1/instruments").await;
        for client in &clients {
            assert!(client.seen.shutdown);
            assert_eq!(client.seen.close, Some(1001));
            assert_eq!(client.seen.backwards, 0);
            assert_eq!(client.seen.quotes.len(), last.as_array().unwrap().len());
            for one in last.as_array().unwrap() {
                let seen = &client.seen.quotes[one["instrument"].as_str().unwrap()];
                assert_eq!(seen["tick"], one["tick"], "{one}");
                assert_eq!(seen["bid"], one["bid"], "{one}");
            }
        }
        let status = tokio::time::timeout(PATIENCE, server.exited()).await.unwrap();
        assert_eq!(status.code(), Some(0), "{}", server.log());
        drop(deaf);
    }
}

/// Subscribes over a socket that takes little, and never reads again.
async fn deaf_client(server: &Server) -> tokio_tungstenite::WebSocketStream<tokio::net::TcpStream> {
    use futures_util::SinkExt as _;
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&server.gateway.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let stream = tokio::net::TcpStream::from_std(socket.into()).unwrap();
    let url = format!("ws://{}/v1/stream", server.gateway);
    let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    let text = r#"{"op":"subscribe","instruments":["binance:*"]}"#;
    socket.send(text.into()).await.unwrap();
    socket
}

#[tokio::test]
async fn an_end_while_waiting_for_a_first_subscriber_is_prompt() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.zst");
    simulated(&file, 1, 100);
    let mut server = Server::start_in(
        folder,
        &format!(
            "{FREE_PORTS}[[feed]]\nname = \"f\"\nvenue = \"binance\"\nrecording = [{file:?}]\n\
             start = \"first_subscriber\"\n[[feed]]\nname = \"g\"\nvenue = \"binance\"\n\
             lines = \"tcp://127.0.0.1:1\"\n"
        ),
    );
    server.signal("TERM");
    let status = tokio::time::timeout(Duration::from_secs(20), server.exited()).await.unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(!server.log().contains("in time"), "{}", server.log());
}

#[test]
fn a_port_in_use_is_told_with_its_key_and_the_exit_is_1() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (flag, other, key) in [
        ("--listen", "--admin-listen", "gateway.listen"),
        ("--admin-listen", "--listen", "admin.listen"),
    ] {
        let output = tidegate(&["serve", flag, &address, other, "127.0.0.1:0"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let told = err(&output);
        assert!(told.contains(&format!("{key}: cannot listen on {address}")), "{told}");
        assert!(output.stdout.is_empty());
    }
}
