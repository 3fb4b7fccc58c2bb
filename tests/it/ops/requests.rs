//! What may be asked, how, and by whom.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn ready_only_between_start_and_stop_but_healthy_throughout() {
    let running = Running::start().await;
    let expect = async |status: u16, reason: Option<&str>| {
        let answer = running.get("/-/ready").await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.json()["reason"].as_str(), reason);
        assert_eq!(running.get("/-/healthy").await.status, 200);
    };
    expect(503, Some("starting")).await;
    running.readiness.set_ready();
    expect(200, None).await;
    running.readiness.set_shutting_down();
    expect(503, Some("shutting down")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_is_json_that_says_why() {
    let running = Running::start().await;
    let large = vec![b' '; 65_537];
    let asked: [(&str, &str, &[u8], u16); 6] = [
        ("GET", "/v2/limits", b"", 404),
        ("GET", "/metrics/", b"", 404),
        ("DELETE", "/v1/limits", b"", 405),
        ("GET", "/-/reload", b"", 405),
        ("GET", "/v1/volumes?limit=many", b"", 400),
        ("PATCH", "/v1/limits", &large, 413),
    ];
    for (method, path, body, status) in asked {
        let answer = http::request(running.admin, method, path, &[], body).await;
        assert_eq!(answer.status, status, "{method} {path}");
        assert!(answer.json()["error"].as_str().is_some_and(|text| !text.is_empty()));
    }
    assert_eq!(running.get("/v1/limits?subscriber=1").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_page_changes_nothing_and_the_servers_own_may() {
    let running = Running::start().await;
    running.config.write("subscriber.capacity = 2");
    let foreign = [("origin", "http://evil.example")];
    for (method, path) in [("POST", "/-/reload"), ("PATCH", "/v1/limits")] {
        let answer =
            http::request(running.admin, method, path, &foreign, b"{\"capacity\":1}").await;
        assert_eq!(answer.status, 403);
        assert!(answer.json()["error"].is_string());
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(running.json("/v1/limits").await["capacity"], 8);
    let own = format!("http://{}", running.admin);
    let answer = http::request(running.admin, "POST", "/-/reload", &[("origin", &own)], b"").await;
    assert_eq!(answer.status, 200);
    assert_eq!(running.json("/v1/limits").await["capacity"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_harms_nobody() {
    let running = Running::start().await;
    let long_head = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let garbage: [&[u8]; 6] = [
        b"\0\x01\x02\xff\xfe garbage\r\n\r\n",
        b"GET\r\n\r\n",
        b"PATCH /v1/limits HTTP/1.1\r\nhost: a\r\ncontent-length: 18446744073709551616\r\n\r\n",
        b"PATCH /v1/limits HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET /v1/instruments?contains=%ff%fe&limit=%00 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        long_head.as_bytes(),
    ];
    for bytes in garbage {
        let answer = http::raw(running.admin, bytes).await;
        let status = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || status.starts_with("HTTP/1.1 4"), "{status}");
    }
    assert_eq!(running.get("/-/healthy").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_one_file_and_every_answer_forbids_what_it_does_not_need() {
    let running = Running::start().await;
    let page = running.get("/").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    for path in ["/v1/limits", "/v1/subscribers", "/v1/instruments", "/v1/feeds", "/v1/volumes"] {
        assert!(page.body.contains(path), "the page shows {path}");
        let answer = running.get(path).await;
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_serves_many_requests_and_a_stop_ends_it() {
    let mut running = Running::start().await;
    let mut stream = TcpStream::connect(running.admin).await.unwrap();
    for _ in 0..3 {
        stream.write_all(b"GET /-/healthy HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"{\"healthy\":true}") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
    }
    running.stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), &mut running.serving).await;
    ended.unwrap().unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0, "the idle connection was closed");
    assert!(TcpStream::connect(running.admin).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_past_the_bound_wait_for_a_place() {
    let running = Running::start().await;
    let mut idle = Vec::new();
    for _ in 0..128 {
        idle.push(TcpStream::connect(running.admin).await.unwrap());
    }
    // Whichever connections were taken, at most 128 are; this one is the 129th.
    let asked = running.get("/-/healthy");
    let mut asked = std::pin::pin!(asked);
    let early = tokio::time::timeout(Duration::from_millis(100), &mut asked).await;
    assert!(early.is_err(), "no place was free");
    idle.truncate(64);
    assert_eq!(asked.await.status, 200);
}
