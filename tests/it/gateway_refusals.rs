//! What the gateway refuses: bad handshakes, bad messages, broken frames, too much of anything.

use std::time::Duration;

use serde_json::json;
use tidegate::gateway::{Limits, Refused, Retune};

use super::gateway_support::{
    Client, QUIET, Rig, eventually, frame, handshake, pong, subscribe, text,
};

/// The head of the answer to a raw request.
async fn answer_to(rig: &Rig, request: &[u8]) -> String {
    let mut client = rig.raw_client(None).await;
    client.send(request).await;
    client.http_answer().await
}

#[tokio::test]
async fn a_request_that_cannot_be_upgraded_is_told_why() {
    let limits =
        Limits { allowed_origins: vec!["https://good.example".into()], ..Limits::default() };
    let rig = Rig::start(limits).await;
    for (request, status) in [
        (handshake("/other", ""), "404"),
        ("GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n".into(), "426"),
        ("NOT HTTP AT ALL\r\n\r\n".into(), "400"),
        ("\u{16}\u{3}\u{1}".into(), "400"),
        (handshake("/v1/stream", "Origin: https://evil.example\r\n"), "403"),
        (handshake("/v1/stream", "Origin: https://good.example\r\n"), "101"),
        (handshake("/v1/stream", ""), "101"),
    ] {
        let answer = answer_to(&rig, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
        assert_eq!(answer.contains("Connection: close"), status != "101", "{answer}");
    }
    let refused = |reason: Refused| rig.gateway.stats().refused[reason as usize].get();
    assert_eq!(refused(Refused::Path), 1);
    assert_eq!(refused(Refused::NotUpgrade), 3);
    assert_eq!(refused(Refused::Origin), 1);
}

#[tokio::test]
async fn b43_a_head_too_long_or_too_slow_is_refused_and_holds_nobody_up() {
    let limits = Limits {
        handshake_timeout: Duration::from_millis(300),
        max_header_bytes: 2_048,
        ..Limits::default()
    };
    let rig = Rig::start(limits).await;
    let long = handshake("/v1/stream", &format!("X: {}\r\n", "y".repeat(4_096)));
    let answer = answer_to(&rig, long.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let mut silent = Vec::new();
    for _ in 0..50 {
        let mut client = rig.raw_client(None).await;
        client.send(b"GET /v1/str").await;
        silent.push(client);
    }
    let _served = rig.client().await;
    for client in &mut silent {
        let answer = client.http_answer().await;
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    }
    assert_eq!(rig.gateway.control().subscribers(), 1);
}

#[tokio::test]
async fn a_head_in_single_bytes_and_an_operation_in_the_same_segment_are_understood() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.raw_client(None).await;
    let request = handshake("/v1/stream", "");
    let (most, rest) = request.as_bytes().split_at(request.len() - 3);
    for byte in most {
        client.send(&[*byte]).await;
    }
    let mut last = rest.to_vec();
    last.extend(text(&json!({"op": "ping", "id": 1})));
    client.send(&last).await;
    assert!(client.http_answer().await.starts_with("HTTP/1.1 101 "));
    client.welcomed().await;
    assert_eq!(client.next().await["type"], "pong");
}

#[tokio::test]
async fn one_subscriber_too_many_is_told_to_come_back_and_lowering_the_bound_drops_nobody() {
    let rig = Rig::start(Limits { max_subscribers: 2, ..Limits::default() }).await;
    let (mut one, mut two) = (rig.client().await, rig.client().await);
    let answer = answer_to(&rig, handshake("/v1/stream", "").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("Retry-After: "), "{answer}");
    let bound = |max_subscribers| Retune { max_subscribers, ..Retune::default() };
    rig.gateway.control().retune(bound(Some(1))).unwrap();
    for client in [&mut one, &mut two] {
        client.until_type("limits").await;
        assert_eq!(client.ask(&json!({"op": "ping"})).await["type"], "pong");
    }
    // One leaves, and there is still no room: one is connected of one allowed.
    drop(one);
    eventually("one is gone", || rig.gateway.control().subscribers() == 1).await;
    eventually("its place is", || rig.gateway.control().admission().active() == 1).await;
    let answer = answer_to(&rig, handshake("/v1/stream", "").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    rig.gateway.control().retune(bound(Some(2))).unwrap();
    rig.client().await;
}

#[tokio::test]
async fn a_message_that_is_no_operation_is_answered_and_the_tenth_ends_it() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    for _ in 0..9 {
        client.send(&frame(0x81, b"hello")).await;
        let error = client.next().await;
        assert_eq!((&error["code"], &error["id"]), (&json!("malformed"), &json!(null)));
    }
    assert_eq!(client.ask(&json!({"op": "ping"})).await["type"], "pong");
    client.send(&frame(0x81, b"{")).await;
    assert_eq!(client.closed().await.0, 4001);
}

#[tokio::test]
async fn a_binary_message_is_not_this_protocol() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    client.send(&frame(0x82, br#"{"op":"list"}"#)).await;
    assert_eq!(client.closed().await.0, 4001);
    client.send(&frame(0x88, &4001_u16.to_be_bytes())).await;
    assert!(client.ended().await);
}

#[tokio::test]
async fn the_hundred_and_first_operation_in_a_second_is_against_the_policy() {
    // A hundred at once are within the budget; it comes back evenly, so two hundred more are not,
    // however slow the machine is at sending them.
    let rig = Rig::start(Limits { max_ops_per_s: 100, ..Limits::default() }).await;
    let mut client = rig.client().await;
    let mut pipeline = Vec::new();
    for id in 0..100 {
        pipeline.extend(text(&json!({"op": "ping", "id": id})));
    }
    client.send(&pipeline).await;
    for id in 0..100 {
        assert_eq!(client.next().await["id"], id, "a hundred are served");
    }
    let mut pipeline = Vec::new();
    for id in 0..200 {
        pipeline.extend(text(&json!({"op": "ping", "id": id})));
    }
    client.send(&pipeline).await;
    assert_eq!(client.closed().await.0, 1008);
}

#[tokio::test]
async fn useful_acks_cost_nothing_of_the_budget() {
    let limits = Limits {
        max_ops_per_s: 3,
        confirm: tidegate::gateway::Confirm::Client,
        ..Limits::default()
    };
    let rig = Rig::start(limits).await;
    let mut market = rig.market("binance");
    let mut client = rig.client().await;
    client.ask(&subscribe(&["binance:A"])).await;
    for tick in 1..=50 {
        market.tick("A");
        client.until_tick("binance:A", tick).await;
        let batch = client.seen.last_batch;
        client.say(&json!({"op": "ack", "batch": batch})).await;
    }
    rig.settle(&mut client).await;
}

/// A list operation of exactly `bytes`.
fn padded(bytes: usize) -> Vec<u8> {
    let bare = r#"{"op":"list","id":9}"#;
    format!("{bare}{}", " ".repeat(bytes - bare.len())).into_bytes()
}

async fn is_answered(client: &mut Client) {
    assert_eq!(client.next().await["id"], 9);
}

#[tokio::test]
async fn b45_a_message_at_the_limit_is_served_and_one_byte_more_is_too_big() {
    let limit = 65_536;
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    client.send(&frame(0x81, &padded(limit))).await;
    is_answered(&mut client).await;
    client.send(&frame(0x81, &padded(limit + 1))).await;
    assert_eq!(client.closed().await.0, 1009);

    // The limit is the whole message's, in however many fragments it comes.
    for (bytes, fits) in [(limit, true), (limit + 1, false)] {
        let mut client = rig.client().await;
        let message = padded(bytes);
        let chunks: Vec<&[u8]> = message.chunks(4_096).collect();
        for (place, chunk) in chunks.iter().enumerate() {
            let opcode = u8::from(place == 0);
            let last = if place + 1 == chunks.len() { 0x80 } else { 0 };
            client.send(&frame(opcode | last, chunk)).await;
        }
        if fits {
            is_answered(&mut client).await;
        } else {
            assert_eq!(client.closed().await.0, 1009);
        }
    }
}

#[tokio::test]
async fn b45_a_message_that_claims_gigabytes_is_refused_by_its_header() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    client.send(&[0x81, 0xFF, 0, 0, 0, 0x40, 0, 0, 0, 0, 1, 2, 3, 4]).await;
    assert_eq!(client.closed().await.0, 1009);
}

#[tokio::test]
async fn b47_broken_frames_end_the_connection_and_nothing_of_them_is_acted_on() {
    let rig = Rig::start(Limits::default()).await;
    let subscription = subscribe(&["binance:A"]).to_string();
    let unmasked = {
        let mut bytes = vec![0x81, subscription.len() as u8];
        bytes.extend_from_slice(subscription.as_bytes());
        bytes
    };
    let begun = frame(0x01, b"{\"op\":");
    let with = |rest: Vec<u8>| [begun.clone(), rest].concat();
    let table: Vec<(&str, Vec<u8>, u16)> = vec![
        ("unmasked", unmasked, 1002),
        ("a new message inside a fragmented one", with(frame(0x81, b"\"list\"}")), 1002),
        ("a continuation of nothing", frame(0x80, b"{}"), 1002),
        ("a ping of 126 bytes", frame(0x89, &[b'x'; 126]), 1002),
        ("a fragmented ping", frame(0x09, b"x"), 1002),
        ("a reserved bit", frame(0xC1, b"{}"), 1002),
        ("a reserved opcode", frame(0x83, b"{}"), 1002),
        ("a reserved control opcode", frame(0x8B, b"{}"), 1002),
        ("a close of one byte", frame(0x88, b"x"), 1002),
        ("a close with 1005", frame(0x88, &1005_u16.to_be_bytes()), 1002),
        ("text that is not UTF-8", frame(0x81, b"{\"op\":\"\xff\"}"), 1007),
        ("half a character at the end", frame(0x81, b"{\"op\":\"\xc3"), 1007),
    ];
    for (what, bytes, code) in table {
        let mut client = rig.client().await;
        client.send(&bytes).await;
        assert_eq!(client.closed().await.0, code, "{what}");
        assert_eq!(client.seen.batches, 0);
    }
    // Nobody else noticed, and nothing is left.
    eventually("all are gone", || rig.gateway.control().subscribers() == 0).await;
    rig.client().await;
}

#[tokio::test]
async fn a_ping_between_fragments_is_answered_at_once() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    client.send(&frame(0x01, b"{\"op\":\"pi")).await;
    client.send(&frame(0x89, b"now")).await;
    assert!(client.next_within(QUIET).await.is_none());
    assert_eq!(client.pongs, [b"now".to_vec()]);
    client.send(&frame(0x80, b"ng\"}")).await;
    assert_eq!(client.next().await["type"], "pong");
}

#[tokio::test]
async fn pongs_nobody_asked_for_are_ignored() {
    let rig = Rig::start(Limits::default()).await;
    let mut client = rig.client().await;
    for payload in [&b""[..], b"h", b"1", b"18446744073709551615", b"99999999999999999999999"] {
        client.send(&pong(payload)).await;
    }
    assert_eq!(client.ask(&json!({"op": "ping"})).await["type"], "pong");
    assert_eq!(rig.report(&client).await.in_flight, 0);
}
