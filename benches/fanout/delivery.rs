//! Runs one server of scenario a (and others like it): a crowd, a rate, a window of time.

use std::io;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use super::ages::Ages;
use super::case::Outcome;
use super::clock;
use super::crowd::{Crowd, Dialect, Write};
use super::process::{Usage, resident};
use super::publisher::{Publisher, Schedule, Walk, Wire, symbol};
use super::raw;
use super::servers::{Peers, Server, Tidegate};

/// Names of one subscription message: the gateway takes 64 KiB at a time.
const NAMES_A_MESSAGE: usize = 1500;

/// What is asked of every server of a case.
#[derive(Clone)]
pub struct Load {
    pub subscribers: usize,
    pub instruments: u32,
    /// Instruments of each subscriber; `None`: all of them.
    pub own: Option<u32>,
    pub schedule: Schedule,
    /// The first subscriber takes all instruments and reads so many bytes a second.
    pub slow: Option<u64>,
    /// Every quote's age is looked at, and each subscriber's by itself.
    pub every_age: bool,
    pub warm_up: Duration,
    pub window: Duration,
}

/// What ours wrote in its latest run, for the control.
#[derive(Default)]
pub struct Recorded {
    pub writes: Vec<Write>,
    pub sweeps_a_second: f64,
    pub writes_a_sweep: f64,
}

impl Load {
    /// The instruments of one subscriber: pseudo-random, the same for every server.
    pub fn wanted(&self, subscriber: usize) -> Option<Vec<u32>> {
        let own = self.own.filter(|_| self.slow.is_none() || subscriber > 0)?;
        let mut walk = Walk::default();
        let mut wanted = Vec::new();
        let mut taken = vec![false; self.instruments as usize];
        for _ in 0..subscriber * 7 % 1009 + 1 {
            walk.next(2);
        }
        // A walk of its own for each: the same one at another place would overlap with others'.
        let start = u64::from(walk.next(u32::MAX)) + 7919 * subscriber as u64;
        let mut at = start % u64::from(self.instruments);
        let stride = 1 + start % 97;
        while wanted.len() < own as usize {
            #[expect(clippy::cast_possible_truncation, reason = "below the instruments' number")]
            let instrument = at as u32;
            // The stride may lead in a circle.
            let new = !std::mem::replace(&mut taken[instrument as usize], true);
            if new {
                wanted.push(instrument);
            }
            at = (at + if new { stride } else { 1 }) % u64::from(self.instruments);
        }
        Some(wanted)
    }

    /// Subscriptions as Tidegate's protocol has them.
    pub fn subscribe(&self, subscriber: usize) -> Vec<Vec<u8>> {
        let wanted = self.wanted(subscriber).unwrap_or_else(|| (0..self.instruments).collect());
        let message = |instruments: &[u32]| {
            let names: Vec<String> =
                instruments.iter().map(|&id| format!("\"binance:{}\"", symbol(id))).collect();
            format!(r#"{{"op":"subscribe","id":1,"instruments":[{}]}}"#, names.join(","))
                .into_bytes()
        };
        wanted.chunks(NAMES_A_MESSAGE).map(message).collect()
    }

    /// The first message that the other WebSocket servers take.
    fn ask(&self, subscriber: usize) -> Vec<u8> {
        match (self.wanted(subscriber), self.own) {
            (None, None) => b"all".to_vec(),
            (wanted, _) => {
                let wanted = wanted.unwrap_or_else(|| (0..self.instruments).collect());
                format!("{wanted:?}").into_bytes()
            }
        }
    }

    fn ask_nats(&self, subscriber: usize) -> Vec<u8> {
        let mut text = b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n".to_vec();
        match self.wanted(subscriber) {
            None => text.extend_from_slice(b"SUB q.> 1\r\n"),
            Some(wanted) => {
                for (sid, instrument) in wanted.iter().enumerate() {
                    text.extend_from_slice(format!("SUB q.{instrument} {sid}\r\n").as_bytes());
                }
            }
        }
        text
    }

    fn arguments(&self) -> Vec<String> {
        let mode = if self.own.is_some() { "own" } else { "all" };
        vec![self.schedule.rate.to_string(), self.instruments.to_string(), mode.to_owned()]
    }

    /// Tidegate, fed by a line feed.
    pub fn ours(&self, settings: &Tidegate, recorded: &mut Recorded) -> io::Result<Outcome> {
        let (server, feed) = Server::tidegate(settings)?;
        let publisher = Publisher::start(feed, Wire::Lines, self.schedule.clone());
        wait_for("the first quotes", || publisher.is_primed())?;
        let mut crowd = self.subscribed(&server)?;
        self.slow_down(&mut crowd);
        publisher.go();
        crowd.run_for(self.warm_up)?;
        crowd.heard.record_writes = true;
        let (sweeps, since) = (server.metric("tidegate_sweeps_total"), clock::now());
        let outcome = self.measure(&server, &mut crowd, "shard")?;
        let seconds = (clock::now() - since) as f64 / 1e9;
        let sweeps = (server.metric("tidegate_sweeps_total") - sweeps) / seconds;
        recorded.sweeps_a_second = if self.schedule.rate == 0 { 0.0 } else { sweeps };
        let writes = crowd.heard.writes.len() as f64 / self.window.as_secs_f64();
        recorded.writes_a_sweep = writes / sweeps.max(1.0);
        recorded.writes = std::mem::take(&mut crowd.heard.writes);
        Ok(outcome)
    }

    /// Connects everybody to Tidegate and waits until all are answered.
    pub fn subscribed(&self, server: &Server) -> io::Result<Crowd> {
        let mut crowd = Crowd::new(Dialect::Batches)?;
        let mut asked = 0;
        for subscriber in 0..self.subscribers {
            let messages = self.subscribe(subscriber);
            asked += messages.len() as u64;
            crowd.join(server.address, &messages)?;
            if subscriber % 50 == 49 {
                crowd.run(clock::now(), |_| true)?;
                crowd.run_for(Duration::from_millis(1))?;
            }
        }
        let until = clock::now() + 20_000_000_000;
        crowd.run(until, |heard| heard.counts.acks >= asked)?;
        match crowd.heard.counts.acks {
            acks if acks >= asked => Ok(crowd),
            acks => Err(io::Error::other(format!("{acks} of {asked} subscriptions answered"))),
        }
    }

    /// The bare writes that ours made.
    pub fn control(&self, recorded: &Recorded) -> io::Result<Outcome> {
        let replay = raw::Replay {
            subscribers: self.subscribers,
            writes: &recorded.writes,
            sweeps: recorded.sweeps_a_second,
            writes_a_sweep: recorded.writes_a_sweep,
        };
        let folder = tempfile::tempdir()?;
        let file: PathBuf = folder.path().join("writes");
        replay.save(&file)?;
        let server = Server::role(&["raw".to_owned(), file.to_string_lossy().into_owned()])?;
        let mut crowd = Crowd::new(Dialect::Raw)?;
        for _ in 0..self.subscribers {
            crowd.join(server.address, &[])?;
        }
        crowd.run_for(self.warm_up)?;
        let mut outcome = self.measure(&server, &mut crowd, "")?;
        // Bytes were counted; what they stand for is known from the recording.
        let bytes = outcome.quotes_a_second;
        outcome.quotes_a_second = bytes * replay.quotes_a_byte();
        outcome.whole /= replay.quotes_a_byte();
        outcome.shard = outcome.whole;
        outcome.quotes_a_frame = replay.writes.iter().map(|w| f64::from(w.quotes)).sum::<f64>()
            / replay.writes.len().max(1) as f64;
        Ok(outcome)
    }

    /// A WebSocket server with its producer inside.
    pub fn peer(&self, server: &Server) -> io::Result<Outcome> {
        let mut crowd = Crowd::new(Dialect::Single)?;
        for subscriber in 0..self.subscribers {
            crowd.join(server.address, &[self.ask(subscriber)])?;
        }
        crowd.run_for(Duration::from_millis(150))?;
        self.slow_down(&mut crowd);
        // Not from the slow one: it may be long in saying so.
        crowd.say(self.subscribers - 1, b"start")?;
        crowd.run_for(self.warm_up)?;
        self.measure(server, &mut crowd, "")
    }

    pub fn bun(&self, peers: &Peers) -> io::Result<Outcome> {
        let folder = tempfile::tempdir()?;
        let mut arguments = self.arguments();
        if let Some(shape) = &self.schedule.shape {
            let file = folder.path().join("shape");
            shape.save(&file)?;
            arguments.push(file.to_string_lossy().into_owned());
        }
        self.peer(&Server::bun(peers, &arguments)?)
    }

    pub fn nodews(&self, peers: &Peers) -> io::Result<Outcome> {
        self.peer(&Server::node(peers, &self.arguments())?)
    }

    pub fn tungstenite(&self, flush: bool) -> io::Result<Outcome> {
        let role = if flush { "tungstenite-flush" } else { "tungstenite-each" };
        let mut arguments = vec![role.to_owned()];
        arguments.extend(self.arguments());
        self.peer(&Server::role(&arguments)?)
    }

    /// nats-server, published to over its own protocol.
    pub fn nats(&self, peers: &Peers) -> io::Result<Outcome> {
        let (server, stream) = Server::nats(peers)?;
        let publisher = Publisher::start(stream, Wire::Nats, self.schedule.clone());
        wait_for("the first quotes", || publisher.is_primed())?;
        let mut crowd = Crowd::new(Dialect::Nats)?;
        for subscriber in 0..self.subscribers {
            crowd.join(server.address, &[self.ask_nats(subscriber)])?;
        }
        crowd.run_for(Duration::from_millis(150))?;
        self.slow_down(&mut crowd);
        publisher.go();
        crowd.run_for(self.warm_up)?;
        self.measure(&server, &mut crowd, "")
    }

    /// A bare relay from one connection to another.
    pub fn relay(&self) -> io::Result<Outcome> {
        let server = Server::role(&["relay".to_owned()])?;
        let stream = TcpStream::connect(server.address)?;
        let publisher = Publisher::start(stream, Wire::Text, self.schedule.clone());
        let mut crowd = Crowd::new(Dialect::Lines)?;
        crowd.join(server.address, &[])?;
        let until = clock::now() + 10_000_000_000;
        crowd.run(until, |_| publisher.is_primed())?;
        publisher.go();
        crowd.run_for(self.warm_up)?;
        self.measure(&server, &mut crowd, "")
    }

    fn slow_down(&self, crowd: &mut Crowd) {
        if let Some(bytes_a_second) = self.slow {
            crowd.slow_down(0, bytes_a_second);
        }
    }

    /// Reads for the window; what the server's threads of that name had is the shard's.
    pub fn measure(&self, server: &Server, crowd: &mut Crowd, shard: &str) -> io::Result<Outcome> {
        crowd.heard.measuring = true;
        if self.every_age {
            crowd.heard.every_age = true;
            crowd.heard.each = vec![Ages::default(); self.subscribers];
        }
        let memory = resident(server.id());
        let (before, used, since) = (crowd.heard.counts, Usage::of(server.id()), clock::now());
        crowd.run_for(self.window)?;
        let (after, used_then, now) = (crowd.heard.counts, Usage::of(server.id()), clock::now());
        crowd.heard.measuring = false;
        let seconds = (now - since) as f64 / 1e9;
        let quotes = match after.quotes - before.quotes {
            // Raw bytes are told apart by who knows what they stand for.
            0 => (after.bytes - before.bytes) as f64,
            quotes => quotes as f64,
        };
        if quotes == 0.0 {
            return Err(io::Error::other("nothing arrived"));
        }
        let whole = used_then.since(&used, "") as f64;
        let [ages, slow] = std::mem::take(&mut crowd.heard.ages);
        let each = std::mem::take(&mut crowd.heard.each).into_iter();
        let last = each.max_by(|a, b| a.at(0.5).total_cmp(&b.at(0.5))).unwrap_or_default();
        let resident = resident(server.id());
        Ok(Outcome {
            whole: whole / quotes,
            shard: used_then.since(&used, shard) as f64 / quotes,
            quotes_a_second: quotes / seconds,
            quotes_a_frame: quotes / (after.frames - before.frames).max(1) as f64,
            busy: whole / (now - since) as f64,
            ages,
            slow,
            last,
            resident,
            grown: resident as f64 - memory as f64,
            closed: after.closed,
        })
    }
}

/// Waits until something is so, for ten seconds at most.
pub fn wait_for(what: &str, so: impl Fn() -> bool) -> io::Result<()> {
    let until = clock::now() + 10_000_000_000;
    while !so() {
        if clock::now() > until {
            return Err(io::Error::other(format!("waited for {what} in vain")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}
