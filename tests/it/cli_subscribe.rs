//! `tidegate subscribe` against a small server that plays the gateway.

use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};
use std::thread;

use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Message, WebSocket, accept, accept_hdr};

use super::cli::{err, out, tidegate};

const WELCOME: &str = r#"{"type":"welcome","version":1,"server":"tidegate/0","epoch":"e","subscriber":"7","heartbeat_ms":20000,"generation":1,"effective":{"max_hz":0,"capacity":8,"confirm":"CONFIRM"},"limits":{}}"#;

type Socket = WebSocket<TcpStream>;

/// Runs `subscribe` with these arguments against a server that does `play` with the one connection
/// that it takes. Answers the output, and what `play` answered.
fn subscribed<T: Send + 'static>(
    arguments: &[&str],
    play: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (Output, T) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || play(listener.accept().unwrap().0));
    let output = tidegate(&["subscribe", &address]).args(arguments).output().unwrap();
    (output, server.join().unwrap())
}

fn say(socket: &mut Socket, text: &str) {
    socket.send(Message::text(text)).unwrap();
}

/// The next text that the client sends.
fn heard(socket: &mut Socket) -> serde_json::Value {
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// Welcomes the client and acknowledges what it asks for; answers its first operation.
fn welcome(stream: TcpStream, confirm: &str) -> (Socket, serde_json::Value) {
    let mut socket = accept(stream).unwrap();
    say(&mut socket, &WELCOME.replace("CONFIRM", confirm));
    let asked = heard(&mut socket);
    let ack = r#"{"type":"ack","id":"quotes","subscribed":["binance:A"],"waiting":[],"effective":{"max_hz":0,"capacity":8,"confirm":"pong"},"generation":1}"#;
    say(&mut socket, ack);
    let ping = heard(&mut socket);
    say(&mut socket, &format!(r#"{{"type":"pong","id":{},"time":1}}"#, ping["id"]));
    (socket, asked)
}

fn batch(number: u64, tick: u64) -> String {
    format!(
        r#"{{"type":"quotes","batch":{number},"held_us":5,"why":"none","quotes":[{{"instrument":"binance:A","tick":{tick},"bid":"1.50","bid_size":"2","ask":"1.60","ask_size":"3","last":null,"last_size":null,"venue_time":null,"receive_time":1767607200123456789}}]}}"#
    )
}

fn close(socket: &mut Socket, code: u16, reason: &'static str) {
    let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
    socket.close(Some(frame)).unwrap();
    while socket.read().is_ok() {}
}

#[test]
fn quotes_are_printed_a_line_each_until_the_count_is_reached_and_it_says_goodbye() {
    let (output, (asked, goodbye)) =
        subscribed(&["binance:A", "--max-hz", "5", "--count", "2"], |stream| {
            let (mut socket, asked) = welcome(stream, "pong");
            say(&mut socket, &batch(1, 10));
            say(
                &mut socket,
                r#"{"type":"status","feed":"spot","health":"stale","reason":"ended","since":1}"#,
            );
            say(&mut socket, &batch(2, 15));
            let goodbye = loop {
                match socket.read() {
                    Ok(Message::Close(frame)) => break frame.map(|frame| u16::from(frame.code)),
                    Ok(_) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            (asked, goodbye)
        });
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(asked["instruments"], serde_json::json!(["binance:A"]));
    assert_eq!(asked["max_hz"], 5.0);
    assert_eq!(goodbye, Some(1000));
    let lines = out(&output);
    let lines: Vec<&str> = lines.lines().collect();
    let [first, status, second] = &lines[..] else { panic!("{lines:?}") };
    assert!(first.starts_with("10:00:00.123  binance:A "), "{first}");
    assert!(first.contains("1.50 × 2 ") && first.ends_with("tick 10"), "{first}");
    assert_eq!(*status, "status        feed spot is stale (ended)");
    assert!(second.ends_with("tick 15  4 conflated"), "{second}");
    let told = err(&output);
    assert!(told.contains("as subscriber 7: capacity 8"), "{told}");
    assert!(told.contains("2 updates of 1 instrument; 4 ticks conflated"), "{told}");
}

#[test]
fn json_lines_hold_everything_and_standard_error_nothing() {
    let (output, ()) = subscribed(&["binance:A", "--json", "-n", "1"], |stream| {
        let (mut socket, _) = welcome(stream, "pong");
        say(&mut socket, &batch(1, 10));
        while socket.read().is_ok() {}
    });
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    let lines: Vec<serde_json::Value> =
        out(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["welcome", "ack", "quote"]);
    assert_eq!((&lines[2]["bid"], &lines[2]["why"]), (&"1.50".into(), &"none".into()));
}

#[test]
fn batches_are_acknowledged_after_printing_if_the_gateway_wants_that_unless_told_not_to() {
    let (output, acknowledged) = subscribed(&["binance:A"], |stream| {
        let (mut socket, _) = welcome(stream, "client");
        say(&mut socket, &batch(3, 10));
        let ack = heard(&mut socket);
        close(&mut socket, 1001, "shutdown");
        ack
    });
    assert_eq!(acknowledged, serde_json::json!({"op": "ack", "batch": 3}));
    assert_eq!(output.status.code(), Some(69));

    let (_, heard_anything) = subscribed(&["binance:A", "--no-ack"], |stream| {
        let (mut socket, _) = welcome(stream, "client");
        say(&mut socket, &batch(3, 10));
        socket.close(None).unwrap();
        loop {
            match socket.read() {
                Ok(Message::Text(text)) => break Some(text.to_string()),
                Ok(_) => {}
                Err(_) => break None,
            }
        }
    });
    assert_eq!(heard_anything, None);
}

#[test]
fn a_connection_that_the_gateway_closes_is_explained_and_the_exit_is_69() {
    for (code, expected) in [
        (1001, "it shuts down; come back in a moment"),
        (1008, "operations came too fast"),
        (4000, "nothing was confirmed for too long"),
        (4001, "is it the same version?"),
    ] {
        let (output, ()) = subscribed(&["binance:A"], move |stream| {
            let (mut socket, _) = welcome(stream, "pong");
            close(&mut socket, code, "the reason");
        });
        assert_eq!(output.status.code(), Some(69));
        let told = err(&output);
        assert!(
            told.contains(&format!("closed the connection with code {code} (the reason): ")),
            "{told}"
        );
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn a_connection_that_breaks_is_told_as_such() {
    let (output, ()) = subscribed(&["binance:A"], |stream| {
        let (mut socket, _) = welcome(stream, "pong");
        say(&mut socket, &batch(1, 1));
        drop(socket);
    });
    assert_eq!(output.status.code(), Some(69));
    assert!(err(&output).contains("tidegate: the connection broke"), "{}", err(&output));
}

#[test]
fn names_that_are_all_refused_end_it() {
    let (output, ()) = subscribed(&["kraken:*"], |stream| {
        let mut socket = accept(stream).unwrap();
        say(&mut socket, &WELCOME.replace("CONFIRM", "pong"));
        heard(&mut socket);
        say(
            &mut socket,
            r#"{"type":"error","id":"quotes","code":"unknown_venue","temporary":false,"message":"no feed of that venue; there are: binance","names":["kraken:*"]}"#,
        );
        let ping = heard(&mut socket);
        say(&mut socket, &format!(r#"{{"type":"pong","id":{},"time":1}}"#, ping["id"]));
        while socket.read().is_ok() {}
    });
    assert_eq!(output.status.code(), Some(69));
    let told = err(&output);
    assert!(told.contains("refused (unknown_venue) for kraken:*: no feed of that venue"), "{told}");
    assert!(told.contains("nothing is subscribed"), "{told}");
}

#[test]
fn a_full_gateway_says_when_to_come_back() {
    let (output, ()) = subscribed(&["binance:A"], |stream| {
        #[expect(clippy::result_large_err, reason = "the shape is the library's")]
        let refuse = |_: &Request, _: Response| -> Result<Response, ErrorResponse> {
            let mut answer = ErrorResponse::new(Some("as many subscribers as are allowed".into()));
            *answer.status_mut() = tungstenite::http::StatusCode::SERVICE_UNAVAILABLE;
            answer.headers_mut().insert("Retry-After", "1".parse().unwrap());
            Err(answer)
        };
        assert!(accept_hdr(stream, refuse).is_err());
    });
    assert_eq!(output.status.code(), Some(69));
    let told = err(&output);
    assert!(told.contains("HTTP status 503") && told.contains("come back in 1 s"), "{told}");
}

#[test]
fn nobody_there_is_said_with_what_to_start() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let output = tidegate(&["subscribe", &free, "binance:A"]).output().unwrap();
    assert_eq!(output.status.code(), Some(69));
    let told = err(&output);
    assert!(
        told.contains(&format!("tidegate: connecting to ws://{free}/v1/stream: nobody listens")),
        "{told}"
    );
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = thread::spawn(move || {
        let (mut socket, _) = welcome(listener.accept().unwrap().0, "pong");
        let mut number = 0;
        // Until it is gone, which a write finds out sooner or later.
        while socket.send(Message::text(batch(number, number + 1))).is_ok() {
            number += 1;
        }
    });
    let mut child = tidegate(&["subscribe", &address, "binance:A", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), err(&output).as_str()), (Some(0), ""));
    server.join().unwrap();
}
