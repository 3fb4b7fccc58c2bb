//! What the gateway's tests share: a gateway on a port of its own, a market that ticks into it, and
//! a client made by hand, so that it can withhold pongs, split frames, or read nothing.

#![allow(dead_code, reason = "each subject uses its part")]

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate::clock::Clock;
use tidegate::gateway::{BoardStage, Gateway, LedgerStage, Limits, Parts, Report, Retune};
use tidegate::ingest::{Accepted, Feeds};
use tidegate::market::{
    Accounts, Fill, InstrumentId, Instruments, Quote, Side, Volume, VolumeKeys, decimal,
};
use tidegate::worker::{CoalescingHandler, ConflationHandler};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a test watches for what must not happen.
pub(crate) const QUIET: Duration = Duration::from_millis(120);

/// A gateway that listens, with one feed of `binance`, called `f`, and one of `kraken`, called `g`.
pub(crate) struct Rig {
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    pub(crate) clock: Clock,
    stop: CancellationToken,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Rig {
    pub(crate) async fn start(limits: Limits) -> Self {
        Self::with_shards(limits, 1).await
    }

    pub(crate) async fn with_shards(limits: Limits, shards: usize) -> Self {
        let clock = Clock::system();
        let feeds = [("f", "binance"), ("g", "kraken")].map(|(f, v)| (f.into(), v.into()));
        let parts = Parts {
            clock: clock.clone(),
            instruments: Arc::new(Instruments::new(20_000)),
            accounts: Arc::new(Accounts::new(100)),
            volume_keys: Arc::new(VolumeKeys::new(1_000)),
            feeds: Arc::new(Feeds::new(feeds, clock.wall())),
        };
        let gateway = Gateway::start(parts, limits, shards).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(gateway.listening(listener, stop.clone()));
        Self { gateway, address, clock, stop }
    }

    /// The market of one venue; one feed's thread at a time may hold it.
    pub(crate) fn market(&self, venue: &'static str) -> Market {
        let feed = self.gateway.feeds().iter().find(|feed| feed.venue() == venue).unwrap();
        Market {
            stage: self.gateway.board_stage(feed.name()),
            feed: feed.id(),
            venue,
            instruments: self.gateway.instruments().clone(),
            clock: self.clock.clone(),
            known: HashMap::new(),
        }
    }

    /// The desk whose fills come in beside the market.
    pub(crate) fn desk(&self) -> Desk {
        Desk {
            stage: self.gateway.ledger_stage("f"),
            instruments: self.gateway.instruments().clone(),
            accounts: self.gateway.accounts().clone(),
            keys: self.gateway.volume_keys().clone(),
        }
    }

    /// A client that answers pings and has read its welcome.
    pub(crate) async fn client(&self) -> Client {
        let mut client = self.raw_client(None).await;
        client.upgrade().await;
        client.welcomed().await;
        client
    }

    /// A client of the same kind whose kernel keeps little for it.
    pub(crate) async fn narrow_client(&self) -> Client {
        let mut client = self.raw_client(Some(4_096)).await;
        client.upgrade().await;
        client.welcomed().await;
        client
    }

    /// A connection, before any handshake.
    pub(crate) async fn raw_client(&self, receive_buffer: Option<u32>) -> Client {
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes).unwrap();
        }
        let stream = socket.connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Client {
            stream,
            id: 0,
            answers_pings: true,
            withheld: VecDeque::new(),
            pongs: Vec::new(),
            seen: Seen::default(),
            next_id: 1,
            buffer: Vec::new(),
        }
    }

    pub(crate) async fn report(&self, client: &Client) -> Report {
        let mut reports = self.gateway.report(Some(client.id)).await;
        assert_eq!(reports.len(), 1, "subscriber {} is not connected", client.id);
        reports.remove(0)
    }

    /// Reads on for a client until all that was received by it has been sent and confirmed, and it
    /// has read all of it; then its accounts must be exact.
    pub(crate) async fn settle(&self, client: &mut Client) -> Report {
        for _ in 0..2_000 {
            client.listen(Duration::from_millis(5)).await;
            let report = self.report(client).await;
            assert_balanced(&report);
            if report.pending == 0
                && !report.blocked
                && report.in_flight == 0
                && report.delivered == client.seen.delivered
            {
                assert_eq!(report.conflated, client.seen.conflated, "{report:?}");
                return report;
            }
        }
        panic!("never settled: {:?}, seen {:?}", self.report(client).await, client.seen);
    }

    pub(crate) fn retune_all(&self, capacity: usize) -> u64 {
        let change = Retune { capacity: Some(capacity), ..Retune::default() };
        self.gateway.control().retune(change).unwrap().generation
    }
}

/// received = delivered + conflated + pending + withdrawn, whenever it is asked.
pub(crate) fn assert_balanced(report: &Report) {
    let explained = report.delivered + report.conflated + report.pending + report.withdrawn;
    assert_eq!(report.received, explained, "{report:?}");
}

/// Waits, with patience, until `holds` does.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 5 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("in vain waited until {what}");
}

/// Ticks into the board as a feed's stage does.
pub(crate) struct Market {
    stage: BoardStage,
    feed: tidegate::market::FeedId,
    venue: &'static str,
    instruments: Arc<Instruments>,
    clock: Clock,
    known: HashMap<String, (InstrumentId, u64)>,
}

impl Market {
    /// One more tick of a symbol, whose bid says which; answers the tick.
    pub(crate) fn tick(&mut self, symbol: &str) -> u64 {
        self.skip(symbol, 1)
    }

    /// `count` more ticks of which only the last reaches the board: the rest is conflated before.
    pub(crate) fn skip(&mut self, symbol: &str, count: u64) -> u64 {
        if !self.known.contains_key(symbol) {
            let id = self.instruments.intern(self.venue, symbol, self.feed).unwrap();
            self.known.insert(symbol.to_owned(), (id, 0));
        }
        let (id, tick) = self.known.get_mut(symbol).unwrap();
        *tick += count;
        let bid = decimal::parse(tick.to_string().as_bytes()).ok();
        let value = Quote { tick: *tick, bid, receive_time: self.clock.wall(), ..Quote::default() };
        self.stage.handle(id, Accepted { value, at: self.clock.now() }).unwrap();
        *tick
    }

    /// Makes a symbol known without a tick.
    pub(crate) fn know(&mut self, symbol: &str) {
        let id = self.instruments.intern(self.venue, symbol, self.feed).unwrap();
        self.known.insert(symbol.to_owned(), (id, 0));
    }

    /// The last tick of a symbol.
    pub(crate) fn last(&self, symbol: &str) -> u64 {
        self.known.get(symbol).map_or(0, |known| known.1)
    }

    /// The last tick of every symbol by full name.
    pub(crate) fn newest(&self) -> HashMap<String, u64> {
        let full = |symbol: &String| format!("{}:{symbol}", self.venue);
        self.known.iter().map(|(symbol, known)| (full(symbol), known.1)).collect()
    }
}

/// Runs `work` on a thread, over and over, until dropped or ended, and hands the market back.
pub(crate) struct Load {
    stop: CancellationToken,
    thread: std::thread::JoinHandle<Market>,
}

impl Load {
    /// About `rounds_per_ms` rounds of `work` a millisecond.
    pub(crate) fn run(
        mut market: Market,
        rounds_per_ms: usize,
        mut work: impl FnMut(&mut Market) + Send + 'static,
    ) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.is_cancelled() {
                for _ in 0..rounds_per_ms {
                    work(&mut market);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            market
        });
        Self { stop, thread }
    }

    pub(crate) fn end(self) -> Market {
        self.stop.cancel();
        self.thread.join().unwrap()
    }
}

/// Fills into the ledger as a feed's stage does.
pub(crate) struct Desk {
    stage: LedgerStage,
    instruments: Arc<Instruments>,
    accounts: Arc<Accounts>,
    keys: Arc<VolumeKeys>,
}

impl Desk {
    /// An account buys `quantity` at `price`.
    pub(crate) fn buys(&mut self, account: &str, symbol: &str, quantity: &str, price: &str) {
        let instrument = self.instruments.resolve("binance", symbol).unwrap();
        let account = self.accounts.intern(account).unwrap();
        let fill = Fill {
            account,
            instrument,
            side: Side::Buy,
            price: decimal::parse(price.as_bytes()).unwrap(),
            quantity: decimal::parse(quantity.as_bytes()).unwrap(),
            venue_time: None,
            receive_time: 0,
        };
        let key = self.keys.intern(account, instrument).unwrap();
        self.stage.handle(&key, Volume::of(&fill).unwrap()).unwrap();
    }
}

/// What a client received.
#[derive(Debug)]
pub(crate) enum Frame {
    Text(Value),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(u16, String),
    /// The connection ended without a close, or after it.
    End,
}

/// What a client can tell from the batches it got, and nothing else.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The newest tick of each instrument since it was subscribed.
    pub(crate) ticks: HashMap<String, u64>,
    /// Quotes.
    pub(crate) delivered: u64,
    /// Ticks between a quote and the one before it.
    pub(crate) conflated: u64,
    /// Batches of any kind.
    pub(crate) batches: u64,
    /// The number of the last batch.
    pub(crate) last_batch: u64,
    /// Fills by account and instrument.
    pub(crate) fills: HashMap<(String, String), u64>,
}

impl Seen {
    fn note(&mut self, message: &Value) {
        let kind = message["type"].as_str().unwrap();
        if kind == "ack" {
            for name in message["unsubscribed"].as_array().into_iter().flatten() {
                self.ticks.remove(name.as_str().unwrap());
            }
        }
        if kind != "quotes" && kind != "volume" {
            return;
        }
        self.batches += 1;
        let batch = message["batch"].as_u64().unwrap();
        assert_eq!(batch, self.last_batch + 1, "batches are numbered without gaps");
        self.last_batch = batch;
        let first = message["snapshot"] == json!(true);
        for quote in message["quotes"].as_array().into_iter().flatten() {
            let name = quote["instrument"].as_str().unwrap();
            let tick = quote["tick"].as_u64().unwrap();
            assert_eq!(quote["bid"], json!(tick.to_string()), "the value of another tick");
            let before = self.ticks.insert(name.to_owned(), tick);
            assert_eq!(before.is_none(), first, "{name}: first quotes go in a snapshot, alone");
            if let Some(before) = before {
                assert!(tick > before, "{name} ran from {before} to {tick}");
                self.conflated += tick - before - 1;
            }
            self.delivered += 1;
        }
        for volume in message["volumes"].as_array().into_iter().flatten() {
            let text = |field: &str| volume[field].as_str().unwrap().to_owned();
            let fills = volume["fills"].as_u64().unwrap();
            let before = self.fills.insert((text("account"), text("instrument")), fills);
            assert!(before.unwrap_or(0) < fills, "a total never falls");
        }
    }
}

/// A WebSocket client made by hand.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    /// The subscriber's number, from the welcome.
    pub(crate) id: u64,
    pub(crate) answers_pings: bool,
    /// Payloads of pings that were not answered.
    pub(crate) withheld: VecDeque<Vec<u8>>,
    /// Payloads of pongs received.
    pub(crate) pongs: Vec<Vec<u8>>,
    pub(crate) seen: Seen,
    next_id: u64,
    buffer: Vec<u8>,
}

/// A frame as a client sends it: masked.
pub(crate) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ 0..=125 => bytes.push(0x80 | length as u8),
        length @ 126..=0xFFFF => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    bytes.extend_from_slice(&mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    bytes
}

pub(crate) fn text(message: &Value) -> Vec<u8> {
    frame(0x81, message.to_string().as_bytes())
}

pub(crate) fn pong(payload: &[u8]) -> Vec<u8> {
    frame(0x8a, payload)
}

pub(crate) fn subscribe(names: &[&str]) -> Value {
    json!({"op": "subscribe", "instruments": names})
}

pub(crate) fn unsubscribe(names: &[&str]) -> Value {
    json!({"op": "unsubscribe", "instruments": names})
}

impl Client {
    pub(crate) async fn upgrade(&mut self) {
        let request = handshake("/v1/stream", "");
        self.send(request.as_bytes()).await;
        let answer = self.http_answer().await;
        assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    }

    /// The head of an HTTP answer.
    pub(crate) async fn http_answer(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            assert!(self.fill(PATIENCE).await, "ended in the answer's head");
        }
    }

    pub(crate) async fn welcomed(&mut self) -> Value {
        let welcome = self.next().await;
        assert_eq!(welcome["type"], "welcome", "{welcome}");
        self.id = welcome["subscriber"].as_str().unwrap().parse().unwrap();
        welcome
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        let sent = tokio::time::timeout(PATIENCE, self.stream.write_all(bytes)).await;
        sent.expect("the gateway reads").unwrap();
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.send(&text(message)).await;
    }

    /// Sends an operation with an id of its own and reads on to its answer.
    pub(crate) async fn ask(&mut self, message: &Value) -> Value {
        let mut message = message.clone();
        let id = self.next_id;
        self.next_id += 1;
        message["id"] = json!(id);
        self.say(&message).await;
        self.until(|answer| answer["id"] == json!(id)).await
    }

    /// Reads more bytes; `false` at the end, or when `patience` has passed.
    async fn fill(&mut self, patience: Duration) -> bool {
        let read = tokio::time::timeout(patience, self.stream.read_buf(&mut self.buffer)).await;
        matches!(read, Ok(Ok(count)) if count > 0)
    }

    /// The next frame, or `None` if none came in time.
    pub(crate) async fn frame_within(&mut self, patience: Duration) -> Option<Frame> {
        loop {
            if let Some(frame) = self.parse() {
                return Some(frame);
            }
            match tokio::time::timeout(patience, self.stream.read_buf(&mut self.buffer)).await {
                Err(_) => return None,
                Ok(Ok(0) | Err(_)) => return Some(Frame::End),
                Ok(Ok(_)) => {}
            }
        }
    }

    fn parse(&mut self) -> Option<Frame> {
        let (&first, rest) = self.buffer.split_first()?;
        let (&second, rest) = rest.split_first()?;
        assert_eq!(second & 0x80, 0, "a server masks nothing");
        let (length, header) = match second {
            126 => (usize::from(u16::from_be_bytes(rest.get(..2)?.try_into().unwrap())), 4),
            127 => (u64::from_be_bytes(rest.get(..8)?.try_into().unwrap()) as usize, 10),
            length => (usize::from(length), 2),
        };
        let payload = self.buffer.get(header..header + length)?.to_vec();
        self.buffer.drain(..header + length);
        Some(match first {
            0x81 => Frame::Text(serde_json::from_slice(&payload).unwrap()),
            0x89 => Frame::Ping(payload),
            0x8a => Frame::Pong(payload),
            0x88 if payload.len() >= 2 => Frame::Close(
                u16::from_be_bytes([payload[0], payload[1]]),
                String::from_utf8(payload[2..].to_vec()).unwrap(),
            ),
            0x88 => Frame::Close(1005, String::new()),
            other => panic!("a frame that begins with {other:#x}"),
        })
    }

    /// The next message, with pings answered (or withheld) and batches noted on the way; `None` if
    /// none came in time.
    pub(crate) async fn next_within(&mut self, patience: Duration) -> Option<Value> {
        let until = tokio::time::Instant::now() + patience;
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            match self.frame_within(left).await? {
                Frame::Text(message) => {
                    self.seen.note(&message);
                    return Some(message);
                }
                Frame::Ping(payload) if self.answers_pings => self.send(&pong(&payload)).await,
                Frame::Ping(payload) => self.withheld.push_back(payload),
                Frame::Pong(payload) => self.pongs.push(payload),
                other => panic!("expected a message, not {other:?}"),
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Value {
        self.next_within(PATIENCE).await.expect("a message within the test's patience")
    }

    /// Reads on to the first message that `is` what is looked for.
    pub(crate) async fn until(&mut self, mut is: impl FnMut(&Value) -> bool) -> Value {
        // A market that goes on ticking must not hide for ever that what is awaited does not come.
        let until = tokio::time::Instant::now() + 3 * PATIENCE;
        while tokio::time::Instant::now() < until {
            let message = self.next().await;
            if is(&message) {
                return message;
            }
        }
        panic!("messages came, but not the one that was awaited");
    }

    /// Reads on to the next message of a type.
    pub(crate) async fn until_type(&mut self, kind: &str) -> Value {
        self.until(|message| message["type"] == kind).await
    }

    /// Reads until nothing has come for `quiet`; answers the messages.
    pub(crate) async fn listen(&mut self, quiet: Duration) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next_within(quiet).await {
            messages.push(message);
        }
        messages
    }

    /// Reads for a span of time, however much comes.
    pub(crate) async fn listen_for(&mut self, span: Duration) {
        let until = tokio::time::Instant::now() + span;
        while let Some(left) = until.checked_duration_since(tokio::time::Instant::now()) {
            self.next_within(left).await;
        }
    }

    /// Reads until the newest tick of an instrument is `tick`.
    pub(crate) async fn until_tick(&mut self, name: &str, tick: u64) {
        while self.seen.ticks.get(name) != Some(&tick) {
            self.next().await;
        }
    }

    /// Reads until each of `newest` has been seen.
    pub(crate) async fn until_newest(&mut self, newest: &HashMap<String, u64>) {
        while self.seen.ticks != *newest {
            self.next().await;
        }
    }

    /// Reads on to the close; answers its code and reason. Batches on the way are noted.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            match self.frame_within(PATIENCE).await {
                Some(Frame::Close(code, reason)) => return (code, reason),
                Some(Frame::Text(message)) => self.seen.note(&message),
                Some(Frame::Ping(payload)) if self.answers_pings => {
                    let _ = self.stream.write_all(&pong(&payload)).await;
                }
                Some(Frame::Ping(payload)) => self.withheld.push_back(payload),
                Some(Frame::Pong(payload)) => self.pongs.push(payload),
                Some(Frame::End) => panic!("ended without a close"),
                None => panic!("not closed within the test's patience"),
            }
        }
    }

    /// Whether the connection ends within the test's patience, with nothing more before.
    pub(crate) async fn ended(&mut self) -> bool {
        matches!(self.frame_within(PATIENCE).await, Some(Frame::End))
    }
}

pub(crate) fn handshake(path: &str, extra: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{extra}\r\n"
    )
}
