//! Scenario d: ten thousand idle subscribers, twenty instruments of ten thousand each.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::clock;
use super::crowd::{Crowd, Dialect, UPGRADE};
use super::delivery::{Load, wait_for};
use super::harness::median;
use super::process::{Usage, resident};
use super::publisher::{Publisher, Schedule, Wire};
use super::scenario_a::Effort;
use super::servers::{Server, Tidegate};

pub const CASE: &str = "d";

const SUBSCRIBERS: usize = 10_000;
const INSTRUMENTS: u32 = 10_000;

/// Connections that are being made at a time.
const AT_A_TIME: usize = 500;

struct Figures {
    accepts_a_second: f64,
    /// Processor time of one accept and its handshake, in nanoseconds.
    accept: f64,
    /// Bytes a connection, before it has asked for anything; and subscribed.
    connected: f64,
    subscribed: f64,
    /// Share of a core.
    idle: f64,
    lost: u64,
}

/// Runs the case; answers its closing lines.
pub fn run(effort: Effort) -> Vec<String> {
    let rounds = if effort.rounds > 2 { 5 } else { 2 };
    let mut figures = Vec::new();
    println!("\nfanout/d: {SUBSCRIBERS} idle subscribers, 20 of {INSTRUMENTS} instruments each");
    println!(
        "  {:>10} {:>12} {:>18} {:>18} {:>10} {:>6}",
        "accepts/s", "µs an accept", "B connected each", "B subscribed each", "idle CPU %", "lost"
    );
    for _ in 0..rounds {
        match once(effort.window) {
            Ok(one) => {
                println!(
                    "  {:>10.0} {:>12.1} {:>18.0} {:>18.0} {:>10.2} {:>6}",
                    one.accepts_a_second,
                    one.accept / 1e3,
                    one.connected,
                    one.subscribed,
                    100.0 * one.idle,
                    one.lost
                );
                figures.push(one);
            }
            Err(error) => println!("d: failed: {error}"),
        }
    }
    if figures.is_empty() {
        return Vec::new();
    }
    let middle = |figure: fn(&Figures) -> f64| {
        let mut all: Vec<f64> = figures.iter().map(figure).collect();
        median(&mut all)
    };
    // What the bare minimum would be is a wish: 5 KiB, 15,000 a second, a hundredth of a core.
    vec![
        format!("control fanout/d-memory {:.2}", middle(|f| f.subscribed) / 5120.0),
        format!("control fanout/d-accepts {:.2}", 15_000.0 / middle(|f| f.accepts_a_second)),
        format!("control fanout/d-idle {:.2}", middle(|f| f.idle) / 0.01),
    ]
}

fn once(window: Duration) -> io::Result<Figures> {
    let (server, feed) = Server::tidegate(&Tidegate::default())?;
    let publisher = Publisher::start(feed, Wire::Lines, Schedule::steady(1, INSTRUMENTS));
    wait_for("the first quotes", || publisher.is_primed())?;
    std::thread::sleep(Duration::from_millis(300));
    let load = Load {
        subscribers: SUBSCRIBERS,
        instruments: INSTRUMENTS,
        own: Some(20),
        slow: None,
        every_age: false,
        schedule: Schedule::steady(1, INSTRUMENTS),
        warm_up: Duration::ZERO,
        window,
    };
    let (memory, used, since) = (resident(server.id()), Usage::of(server.id()), clock::now());
    let mut streams = Vec::with_capacity(SUBSCRIBERS);
    while streams.len() < SUBSCRIBERS {
        accept_some(server.address, &mut streams)?;
    }
    let seconds = (clock::now() - since) as f64 / 1e9;
    let accepting = Usage::of(server.id()).since(&used, "") as f64;
    std::thread::sleep(Duration::from_millis(200));
    let each = |now: u64| (now as f64 - memory as f64) / SUBSCRIBERS as f64;
    let connected = each(resident(server.id()));

    let mut crowd = Crowd::new(Dialect::Batches)?;
    for (subscriber, (stream, carry)) in streams.into_iter().enumerate() {
        crowd.adopt(stream, carry)?;
        for message in load.subscribe(subscriber) {
            crowd.say(subscriber, &message)?;
        }
        if subscriber % 200 == 199 {
            crowd.run_for(Duration::from_millis(2))?;
        }
    }
    let until = clock::now() + 30_000_000_000;
    crowd.run(until, |heard| heard.counts.acks >= SUBSCRIBERS as u64)?;
    if crowd.heard.counts.acks < SUBSCRIBERS as u64 {
        return Err(io::Error::other(format!("{} subscribed", crowd.heard.counts.acks)));
    }
    crowd.run_for(Duration::from_secs(1))?;
    let subscribed = each(resident(server.id()));
    let (used, since) = (Usage::of(server.id()), clock::now());
    // Heartbeats come every twenty seconds: a window holds its share of them.
    crowd.run_for(window.max(Duration::from_secs(5)))?;
    let idle = Usage::of(server.id()).since(&used, "") as f64 / (clock::now() - since) as f64;
    Ok(Figures {
        accepts_a_second: SUBSCRIBERS as f64 / seconds,
        accept: accepting / SUBSCRIBERS as f64,
        connected,
        subscribed,
        idle,
        lost: crowd.heard.counts.closed,
    })
}

/// Makes some connections at a time: all connect and ask, then all are heard.
fn accept_some(address: SocketAddr, streams: &mut Vec<(TcpStream, Vec<u8>)>) -> io::Result<()> {
    let mut fresh = Vec::with_capacity(AT_A_TIME);
    for _ in 0..AT_A_TIME.min(SUBSCRIBERS - streams.len()) {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(UPGRADE.as_bytes())?;
        fresh.push(stream);
    }
    for mut stream in fresh {
        let mut answer = Vec::with_capacity(1024);
        let mut chunk = [0; 1024];
        let rest = loop {
            if let Some(end) = memchr::memmem::find(&answer, b"\r\n\r\n") {
                break answer.split_off(end + 4);
            }
            match stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => answer.extend_from_slice(&chunk[..count]),
            }
        };
        streams.push((stream, rest));
    }
    Ok(())
}
