use std::io::Write as _;
use std::net::TcpListener;

use super::*;

fn feed_of(listener: &TcpListener) -> LineFeed {
    let options = LineFeedOptions {
        first_retry: Duration::from_millis(4),
        longest_retry: Duration::from_millis(20),
        max_line_bytes: 1000,
        ..LineFeedOptions::default()
    };
    let port = listener.local_addr().unwrap().port();
    let source = LineSource::Tcp { host: "127.0.0.1".into(), port };
    LineFeed::new(source, options, Clock::system())
}

fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A step in words, so that a course of events is a list.
fn told(step: LineStep<'_>) -> String {
    match step {
        LineStep::Message { text, .. } => String::from_utf8(text.to_vec()).unwrap(),
        LineStep::Connected => "+".into(),
        LineStep::Disconnected { .. } => "-".into(),
        LineStep::Ended { .. } => "end".into(),
        LineStep::Stopped => "stop".into(),
    }
}

#[test]
fn a_source_is_read_from_its_words_and_anything_else_is_refused_with_what_would_be_right() {
    for (text, source) in [
        ("-", LineSource::Stdin),
        ("tcp://127.0.0.1:7000", LineSource::Tcp { host: "127.0.0.1".into(), port: 7000 }),
        ("tcp://fills.example:1", LineSource::Tcp { host: "fills.example".into(), port: 1 }),
        ("tcp://[::1]:7000", LineSource::Tcp { host: "::1".into(), port: 7000 }),
    ] {
        assert_eq!(text.parse(), Ok(source.clone()));
        assert_eq!(source.to_string(), text);
    }
    for text in [
        "",
        "127.0.0.1:7000",
        "udp://x:1",
        "tcp://x",
        "tcp://:1",
        "tcp://x:0",
        "tcp://x:65536",
        "tcp://::1:7000",
        "tcp://x/y:1",
    ] {
        let refused = text.parse::<LineSource>().unwrap_err().to_string();
        assert!(refused.contains("\"tcp://HOST:PORT\""), "{refused}");
    }
}

#[test]
fn lines_of_any_kind_arrive_across_breaks_in_order() {
    let listener = listener();
    let mut feed = feed_of(&listener);
    let venue = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        for part in ["{\"a\":1}\n{\"a\"", ":2}\r\n\npong\n"] {
            socket.write_all(part.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
        socket.write_all(b"\xff\n").unwrap();
        socket.write_all(&[b'x'; 3000]).unwrap();
        socket.write_all(b"\n{\"a\":3}\n{\"torn").unwrap();
        drop(socket);
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"{\"b\":1}\n{\"whole\":2}").unwrap();
    });
    let stop = CancellationToken::new();
    let course: Vec<String> = (0..9).map(|_| told(feed.next(&stop))).collect();
    venue.join().unwrap();
    let expected = [
        "+",
        "{\"a\":1}",
        "{\"a\":2}",
        "pong",
        "{\"a\":3}",
        "-",
        "+",
        "{\"b\":1}",
        "{\"whole\":2}",
    ];
    assert_eq!(course, expected);
    let tally = feed.tally();
    assert_eq!((tally.messages, tally.blank_lines, tally.crlf_lines), (6, 1, 1));
    for reason in [BadLine::NotUtf8, BadLine::TooLong, BadLine::Torn] {
        assert_eq!(tally.bad(reason).count, 1, "{reason}");
    }
}

#[test]
fn waits_double_within_their_bound_are_jittered_and_start_over_after_a_line() {
    let listener = listener();
    let mut feed = feed_of(&listener);
    let stop = CancellationToken::new();
    let port = listener.local_addr().unwrap();
    drop(listener);
    let wait = |feed: &mut LineFeed| match feed.next(&stop) {
        LineStep::Disconnected { retry_in, .. } => retry_in,
        other => panic!("{other:?}"),
    };
    for full in [4, 8, 16, 20, 20].map(Duration::from_millis) {
        let waited = wait(&mut feed);
        assert!((full / 2..=full).contains(&waited), "{waited:?} of {full:?}");
    }
    let listener = TcpListener::bind(port).unwrap();
    let venue = thread::spawn(move || {
        listener.accept().unwrap().0.write_all(b"{}\n").unwrap();
    });
    let stop = CancellationToken::new();
    while feed.next(&stop) != LineStep::Connected {}
    assert_eq!(told(feed.next(&stop)), "{}");
    venue.join().unwrap();
    let LineStep::Disconnected { retry_in, .. } = feed.next(&stop) else { panic!("closed") };
    assert!(retry_in <= Duration::from_millis(4));
}

#[test]
fn a_stop_is_noticed_while_connected_and_while_waiting_to_connect() {
    let listener = listener();
    for accept in [true, false] {
        let mut feed = feed_of(&listener);
        feed.options.first_retry = Duration::from_secs(600);
        feed.retry = Duration::from_secs(600);
        let stop = CancellationToken::new();
        if accept {
            assert_eq!(feed.next(&stop), LineStep::Connected);
        } else {
            let LineStep::Disconnected { .. } = feed.over("no reason".into()) else { panic!() };
        }
        thread::scope(|scope| {
            let waiting = scope.spawn(|| told(feed.next(&stop)));
            thread::sleep(Duration::from_millis(10));
            stop.cancel();
            assert_eq!(waiting.join().unwrap(), "stop");
        });
    }
}

#[test]
fn an_input_in_pieces_ends_once_after_its_last_line() {
    let text: Vec<u8> = (0..20_000).flat_map(|n| format!("{{\"n\":{n}}}\n").into_bytes()).collect();
    let pieces = read_in_pieces(io::Cursor::new(text)).unwrap();
    let mut feed = LineFeed::new(LineSource::Stdin, LineFeedOptions::default(), Clock::system());
    feed.state = State::Open(Link::Pieces(pieces));
    let stop = CancellationToken::new();
    for number in 0..20_000 {
        assert_eq!(told(feed.next(&stop)), format!("{{\"n\":{number}}}"));
    }
    assert_eq!([0, 0].map(|_| told(feed.next(&stop))), ["end", "end"]);
}
