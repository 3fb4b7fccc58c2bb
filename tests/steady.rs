//! Once everybody is served, delivering costs no allocation: from the venue's message through codec,
//! worker, board and shard to the socket, and from the client's pong back.
//!
//! A program of its own, because what is counted is the whole process: the threads of a gateway are
//! nobody else's, and a test beside it would be counted with them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate::clock::Clock;
use tidegate::gateway::{Gateway, Limits, Parts};
use tidegate::ingest::{Feeds, Intake};
use tidegate::market::{Accounts, FeedId, InstrumentId, Instruments, VolumeKeys};
use tidegate::venue::{self, Context};
use tidegate::worker::{CoalescingSpWorker, ConflationSpWorker};
use tokio_util::sync::CancellationToken;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

#[expect(unsafe_code, reason = "a global allocator is an unsafe trait")]
// SAFETY: every method hands its arguments to `System` unchanged; counting neither allocates nor
// unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same for `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `block` came from `System` by one of these methods, with `layout`.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System` by one of these methods, with `layout`.
        unsafe { System.dealloc(block, layout) }
    }
}

const INSTRUMENTS: usize = 40;
const CLIENTS: usize = 4;

#[test]
fn a_delivered_quote_allocates_nothing() {
    let clock = Clock::system();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let parts = Parts {
        clock: clock.clone(),
        instruments: Arc::new(Instruments::new(100)),
        accounts: Arc::new(Accounts::new(4)),
        volume_keys: Arc::new(VolumeKeys::new(4)),
        feeds: Arc::new(Feeds::new([("spot".into(), "binance".into())], clock.wall())),
    };
    let feed = parts.feeds.get(FeedId(0)).clone();
    let context = Context {
        instruments: parts.instruments.clone(),
        accounts: parts.accounts.clone(),
        feed: FeedId(0),
        account: None,
    };
    let keys = parts.volume_keys.clone();
    // No heartbeat falls into what is measured.
    let limits = Limits { heartbeat: Duration::from_secs(600), ..Limits::default() };
    let gateway = Arc::new(Gateway::start(parts, limits, 1).unwrap());
    let stop = CancellationToken::new();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(gateway.listening(listener, stop.clone()));
    let codec = venue::codec("binance", context).unwrap();
    let (quotes, _quotes) = ConflationSpWorker::builder()
        .capacity(64)
        .start::<InstrumentId, _, _>(gateway.board_stage("spot"), CancellationToken::new())
        .unwrap();
    let (fills, _fills) = CoalescingSpWorker::builder()
        .capacity(4)
        .start(gateway.ledger_stage("spot"), CancellationToken::new())
        .unwrap();
    let mut market =
        Market { intake: Intake::new(codec, feed, quotes, fills, keys), clock, text: Text::new() };

    market.round(0);
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| Client::connect(address)).collect();
    // The longest quote there will be, so that every buffer has grown to what it needs.
    let mut number = 1_000_000;
    let mut rounds = |count: u64, clients: &mut [Client]| {
        for _ in 0..count {
            number += 1;
            market.round(number);
            for client in &mut *clients {
                client.until(number);
            }
        }
    };
    rounds(200, &mut clients);
    let (before, quotes) = (ALLOCATIONS.load(Ordering::SeqCst), delivered(&clients));
    rounds(1_000, &mut clients);
    let counted = ALLOCATIONS.load(Ordering::SeqCst) - before;
    let quotes = delivered(&clients) - quotes;
    assert!(quotes > 1_000 * CLIENTS as u64, "{quotes} quotes");
    assert_eq!(counted, 0, "allocations for {quotes} quotes");
    stop.cancel();
    gateway.finish(Duration::from_millis(10));
}

fn delivered(clients: &[Client]) -> u64 {
    clients.iter().map(|client| client.quotes).sum()
}

/// The venue: a quote of each instrument a round, the last one numbered.
struct Market {
    intake: Intake<tidegate::gateway::LedgerStage>,
    clock: Clock,
    text: Text,
}

impl Market {
    fn round(&mut self, number: u64) {
        for instrument in 0..INSTRUMENTS {
            self.text.len = 0;
            write!(
                self.text,
                "{{\"u\":{},\"s\":\"S{instrument}\",\"b\":\"{number}.5\",\"B\":\"1.25\",\
                 \"a\":\"9000000.5\",\"A\":\"2.5\"}}",
                number + 1,
            )
            .unwrap();
            let (now, time) = (self.clock.now(), self.clock.wall());
            assert!(self.intake.message(&self.text.bytes[..self.text.len], time, now));
        }
    }
}

/// A line that is written over and over.
struct Text {
    bytes: [u8; 256],
    len: usize,
}

impl Text {
    fn new() -> Self {
        Self { bytes: [0; 256], len: 0 }
    }
}

impl std::io::Write for Text {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let room = &mut self.bytes[self.len..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text[..count]);
        self.len += count;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A subscriber that answers pings and allocates nothing.
struct Client {
    stream: TcpStream,
    bytes: Box<[u8; 1 << 16]>,
    len: usize,
    /// Quotes seen.
    quotes: u64,
    /// Number of the newest round of which the last instrument was seen.
    newest: u64,
}

impl Client {
    fn connect(address: std::net::SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let request = "GET /v1/stream HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut client =
            Self { stream, bytes: Box::new([0; 1 << 16]), len: 0, quotes: 0, newest: 0 };
        loop {
            client.read();
            let text = &client.bytes[..client.len];
            if let Some(end) = text.windows(4).position(|four| four == b"\r\n\r\n") {
                client.forget(end + 4);
                break;
            }
        }
        client.send(1, br#"{"op":"subscribe","id":1,"instruments":["binance:*"]}"#);
        client
    }

    /// Reads frames until the last instrument of this round has come.
    fn until(&mut self, number: u64) {
        while self.newest < number {
            while let Some((opcode, from, to)) = frame(&self.bytes[..self.len]) {
                match opcode {
                    1 => self.look(from, to),
                    9 => {
                        let mut payload = [0; 125];
                        let ping = &self.bytes[from..to];
                        payload[..ping.len()].copy_from_slice(ping);
                        let count = ping.len();
                        self.send(10, &payload[..count]);
                    }
                    other => panic!("a frame of kind {other}"),
                }
                self.forget(to);
            }
            if self.newest < number {
                self.read();
            }
        }
    }

    /// Counts the quotes of a message.
    fn look(&mut self, from: usize, to: usize) {
        let text = &self.bytes[from..to];
        let mut at = 0;
        while let Some(found) = find(&text[at..], b"{\"instrument\":\"") {
            at += found + 1;
            self.quotes += 1;
            if find(&text[at..], b"binance:S39\"") == Some(14) {
                let bid = find(&text[at..], b"\"bid\":\"").unwrap() + 7;
                let digits = text[at + bid..].iter().take_while(|byte| byte.is_ascii_digit());
                let number = digits.fold(0, |sum, byte| sum * 10 + u64::from(byte - b'0'));
                self.newest = self.newest.max(number);
            }
        }
    }

    fn read(&mut self) {
        let count = self.stream.read(&mut self.bytes[self.len..]).unwrap();
        assert!(count > 0, "the gateway has closed");
        self.len += count;
    }

    fn forget(&mut self, count: usize) {
        self.bytes.copy_within(count..self.len, 0);
        self.len -= count;
    }

    /// Sends a short frame with a mask of zeroes.
    fn send(&mut self, opcode: u8, payload: &[u8]) {
        let mut frame = [0; 6 + 125];
        frame[0] = 0x80 | opcode;
        frame[1] = 0x80 | u8::try_from(payload.len()).unwrap();
        frame[6..6 + payload.len()].copy_from_slice(payload);
        self.stream.write_all(&frame[..6 + payload.len()]).unwrap();
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Opcode of the first frame, and where its payload lies; `None` if it is not whole.
fn frame(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let opcode = bytes.first()? & 0x0f;
    let (from, len) = match bytes.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]))),
        127 => panic!("longer than anything that is sent here"),
        len => (2, usize::from(*len)),
    };
    (bytes.len() >= from + len).then_some((opcode, from, from + len))
}
