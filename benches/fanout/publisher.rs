//! Makes quotes on an open-loop schedule and writes them to one connection.
//!
//! Every quote carries the moment at which it was due, so a wait anywhere, the publisher's own
//! included, shows as age. The walk over the instruments is pseudo-random and the same each time.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::clock;

/// What is written for a quote.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// A message of the venue and a line's end: what Tidegate is fed.
    Lines,
    /// The text that subscribers get, published to a subject of NATS.
    Nats,
    /// The text that subscribers get, and a line's end.
    Text,
}

/// How many, how fast, over how many instruments.
#[derive(Clone)]
pub struct Schedule {
    /// Quotes a second; 0 for as many as the connection takes.
    pub rate: u64,
    /// How far apart the publisher writes.
    pub step: Duration,
    pub instruments: u32,
    /// Quotes carry the moment at which they were written, if that is less than a millisecond after
    /// they were due: then it was the publisher's own sleep that was late.
    pub stamp_at_write: bool,
    /// Instead of a rate: when which instrument has a quote.
    pub shape: Option<Arc<Shape>>,
}

/// Quotes in time, over and over.
pub struct Shape {
    /// Nanoseconds from the start, in order; the instrument.
    pub quotes: Vec<(u64, u32)>,
    /// Nanoseconds until it starts again.
    pub length: u64,
}

impl Shape {
    /// Writes it down for a producer inside a server: nanoseconds and instrument a line; at last
    /// the length.
    pub fn save(&self, path: &std::path::Path) -> std::io::Result<()> {
        let mut text = Vec::new();
        for (at, instrument) in &self.quotes {
            writeln!(text, "{at} {instrument}")?;
        }
        writeln!(text, "{}", self.length)?;
        std::fs::write(path, text)
    }
}

impl Schedule {
    /// A steady rate, written every millisecond.
    pub fn steady(rate: u64, instruments: u32) -> Self {
        Self {
            rate,
            step: Duration::from_millis(1),
            instruments,
            stamp_at_write: false,
            shape: None,
        }
    }
}

/// A running publisher. It first gives every instrument one quote, then waits until it is let go.
pub struct Publisher {
    go: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    primed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Publisher {
    pub fn start(stream: TcpStream, wire: Wire, schedule: Schedule) -> Self {
        let [go, stop, primed] = [(); 3].map(|()| Arc::new(AtomicBool::new(false)));
        let writer = Writer {
            stream,
            wire,
            text: Vec::with_capacity(1 << 20),
            payload: Vec::new(),
            ticks: vec![0; schedule.instruments as usize],
            updates: 0,
            stop: stop.clone(),
            walk: Walk::default(),
        };
        let (going, first) = (go.clone(), primed.clone());
        let thread = std::thread::spawn(move || {
            // What ends it is the other side's end.
            let _ = writer.run(&schedule, &going, &first);
        });
        Self { go, stop, primed, thread: Some(thread) }
    }

    /// Whether every instrument has had its first quote.
    pub fn is_primed(&self) -> bool {
        self.primed.load(Ordering::Acquire)
    }

    pub fn go(&self) {
        self.go.store(true, Ordering::Release);
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.go.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A pseudo-random walk, the same for every server.
pub struct Walk(u32);

impl Default for Walk {
    fn default() -> Self {
        Self(0x9E37_79B9)
    }
}

impl Walk {
    pub fn next(&mut self, below: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0 % below
    }
}

/// The symbol of an instrument.
pub fn symbol(instrument: u32) -> String {
    format!("S{instrument:06}")
}

struct Writer {
    stream: TcpStream,
    wire: Wire,
    text: Vec<u8>,
    payload: Vec<u8>,
    ticks: Vec<u64>,
    updates: u64,
    stop: Arc<AtomicBool>,
    walk: Walk,
}

impl Writer {
    fn run(
        mut self,
        schedule: &Schedule,
        go: &AtomicBool,
        primed: &AtomicBool,
    ) -> std::io::Result<()> {
        self.stream.set_nodelay(true)?;
        // A server that takes nothing must not keep the publisher from hearing its stop.
        self.stream.set_write_timeout(Some(Duration::from_millis(500)))?;
        for instrument in 0..schedule.instruments {
            self.quote(instrument, clock::now(), clock::wall());
            if self.text.len() > 64 << 10 {
                self.send()?;
            }
        }
        self.send()?;
        primed.store(true, Ordering::Release);
        while !go.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(1));
        }
        match &schedule.shape {
            Some(shape) => self.follow(shape),
            None if schedule.rate == 0 => self.flood(schedule.instruments),
            None => self.keep_to(schedule),
        }
    }

    /// As much as the connection takes.
    fn flood(&mut self, instruments: u32) -> std::io::Result<()> {
        while !self.stop.load(Ordering::Relaxed) {
            let (now, wall) = (clock::now(), clock::wall());
            for _ in 0..256 {
                let instrument = self.walk.next(instruments);
                self.quote(instrument, now, wall);
            }
            self.send()?;
        }
        Ok(())
    }

    fn keep_to(&mut self, schedule: &Schedule) -> std::io::Result<()> {
        let step = u64::try_from(schedule.step.as_nanos()).unwrap_or(u64::MAX);
        let (began, mut steps, mut made) = (clock::now(), 0_u64, 0_u64);
        while !self.stop.load(Ordering::Relaxed) {
            steps += 1;
            let due = self.sleep_until(began + steps * step);
            let now = clock::now();
            let late = schedule.stamp_at_write && now - due.min(now) < 1_000_000;
            let stamp = if late { now } else { due };
            let wall = clock::wall();
            let until = u128::from(steps) * u128::from(step) * u128::from(schedule.rate);
            let until = u64::try_from(until / 1_000_000_000).unwrap_or(u64::MAX);
            while made < until {
                made += 1;
                let instrument = self.walk.next(schedule.instruments);
                self.quote(instrument, stamp, wall);
            }
            self.send()?;
        }
        Ok(())
    }

    fn follow(&mut self, shape: &Shape) -> std::io::Result<()> {
        let mut began = clock::now();
        while !self.stop.load(Ordering::Relaxed) {
            let mut quotes = shape.quotes.iter().peekable();
            while let Some(&(at, instrument)) = quotes.next() {
                let due = self.sleep_until(began + at);
                self.quote(instrument, due, clock::wall());
                // What is due by now goes together.
                let now = clock::now();
                if quotes.peek().is_none_or(|(next, _)| began + next > now) {
                    self.send()?;
                }
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            began += shape.length;
        }
        Ok(())
    }

    fn sleep_until(&self, due: u64) -> u64 {
        let wait = due.saturating_sub(clock::now());
        if wait > 0 {
            std::thread::sleep(Duration::from_nanos(wait));
        }
        due
    }

    fn send(&mut self) -> std::io::Result<()> {
        self.stream.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    fn quote(&mut self, instrument: u32, stamp: u64, wall: u64) {
        self.updates += 1;
        let tick = &mut self.ticks[instrument as usize];
        *tick += 1;
        match self.wire {
            Wire::Lines => {
                let _ = writeln!(
                    self.text,
                    r#"{{"u":{},"s":"S{instrument:06}","b":"{stamp}","B":"1.50000000","a":"{stamp}.1","A":"2.50000000"}}"#,
                    self.updates
                );
            }
            Wire::Text => {
                write_quote(instrument, *tick, stamp, wall, &mut self.text);
                self.text.push(b'\n');
            }
            Wire::Nats => {
                self.payload.clear();
                write_quote(instrument, *tick, stamp, wall, &mut self.payload);
                let _ = write!(self.text, "PUB q.{instrument} {}\r\n", self.payload.len());
                self.text.extend_from_slice(&self.payload);
                self.text.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// A quote as Tidegate spells it: what every peer sends is the same bytes.
pub fn write_quote(instrument: u32, tick: u64, stamp: u64, wall: u64, out: &mut Vec<u8>) {
    let _ = write!(
        out,
        "{{\"instrument\":\"binance:S{instrument:06}\",\"tick\":{tick},\"bid\":\"{stamp}\",\"bid_size\":\"1.50000000\",\
         \"ask\":\"{stamp}.1\",\"ask_size\":\"2.50000000\",\"last\":null,\"last_size\":null,\"venue_time\":null,\
         \"receive_time\":{wall}}}"
    );
}
