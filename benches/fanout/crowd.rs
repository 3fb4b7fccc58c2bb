//! The load generator's subscribers: many connections, one thread, as little work a byte as can be.
//!
//! Frames are told apart and quotes counted in all of them; the age of a quote is looked at for one
//! quote of a frame, at a random place, so that no server gains by where a quote stands.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use memchr::memmem::Finder;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::ages::Ages;
use super::clock;
use super::publisher::Walk;

/// What the other side speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Tidegate's batches.
    Batches,
    /// One quote a frame.
    Single,
    /// NATS: its text in binary frames, cut anywhere.
    Nats,
    /// Bytes without meaning.
    Raw,
    /// Lines of quotes.
    Lines,
}

/// What asks for a WebSocket. Peers take any path, Tidegate its own.
pub const UPGRADE: &str = "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Frames of one quote whose age is not looked at, for each that is.
const SINGLES_SKIPPED: u32 = 8;

/// Writes that are kept for the control.
const MOST_WRITES: usize = 2_000_000;

/// What arrived.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub frames: u64,
    pub quotes: u64,
    pub bytes: u64,
    pub acks: u64,
    pub closed: u64,
}

/// One write of the server: a frame, and the ping behind it.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub subscriber: u32,
    pub bytes: u32,
    pub quotes: u32,
}

struct Member {
    stream: TcpStream,
    carry: Vec<u8>,
    /// Answers that the socket has not taken.
    out: Vec<u8>,
    /// Reads so many bytes a second, at most.
    slow: Option<Slow>,
    /// Whether it stands among those to be read.
    queued: bool,
    open: bool,
}

struct Slow {
    bytes_a_second: u64,
    since: u64,
    read: u64,
}

/// Connections, and what they have received.
pub struct Crowd {
    poll: Poll,
    members: Vec<Member>,
    dialect: Dialect,
    scratch: Vec<u8>,
    pub heard: Heard,
}

/// What is kept of the bytes.
pub struct Heard {
    dialect: Dialect,
    pub counts: Counts,
    /// Ages, of members that read as fast as they can and of slow ones; kept while measuring.
    pub ages: [Ages; 2],
    pub measuring: bool,
    pub writes: Vec<Write>,
    pub record_writes: bool,
    /// Every age is looked at, not a sample; of slow members it always is.
    pub every_age: bool,
    /// The ages of each member by itself, if they are wanted so.
    pub each: Vec<Ages>,
    skipped: u32,
    walk: Walk,
    bid: Finder<'static>,
    pongs: Vec<u8>,
}

impl Crowd {
    pub fn new(dialect: Dialect) -> io::Result<Self> {
        Ok(Self {
            poll: Poll::new()?,
            members: Vec::new(),
            dialect,
            scratch: vec![0; 512 * 1024],
            heard: Heard {
                dialect,
                counts: Counts::default(),
                ages: [Ages::default(), Ages::default()],
                measuring: false,
                writes: Vec::new(),
                record_writes: false,
                every_age: false,
                each: Vec::new(),
                skipped: 0,
                walk: Walk::default(),
                bid: Finder::new(b"\"bid\":\""),
                pongs: Vec::new(),
            },
        })
    }

    /// Connects one more, with these messages for a greeting.
    pub fn join(&mut self, address: SocketAddr, hello: &[Vec<u8>]) -> io::Result<()> {
        let mut stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let mut carry = Vec::new();
        if !matches!(self.dialect, Dialect::Raw | Dialect::Lines) {
            carry = shake_hands(&mut stream)?;
        }
        let mut greeting = Vec::new();
        let opcode = if self.dialect == Dialect::Nats { 2 } else { 1 };
        for message in hello {
            write_masked(opcode, message, &mut greeting);
        }
        stream.write_all(&greeting)?;
        self.adopt(stream, carry)
    }

    /// Takes over a connection that stands.
    pub fn adopt(&mut self, stream: std::net::TcpStream, carry: Vec<u8>) -> io::Result<()> {
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let token = Token(self.members.len());
        self.poll.registry().register(&mut stream, token, Interest::READABLE)?;
        self.members.push(Member {
            stream,
            carry,
            out: Vec::new(),
            slow: None,
            queued: false,
            open: true,
        });
        Ok(())
    }

    /// From now on a member reads only so much.
    pub fn slow_down(&mut self, member: usize, bytes_a_second: u64) {
        self.members[member].slow = Some(Slow { bytes_a_second, since: clock::now(), read: 0 });
    }

    /// Sends a message from a member.
    pub fn say(&mut self, member: usize, text: &[u8]) -> io::Result<()> {
        let mut frame = Vec::new();
        write_masked(1, text, &mut frame);
        self.members[member].stream.write_all(&frame)
    }

    /// Reads for a while.
    pub fn run_for(&mut self, time: Duration) -> io::Result<()> {
        let until = clock::now() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.run(until, |_| false)
    }

    /// Reads until then, or until it is enough.
    pub fn run(&mut self, until: u64, enough: impl Fn(&Heard) -> bool) -> io::Result<()> {
        let mut events = Events::with_capacity(1024);
        let mut again: Vec<usize> = Vec::new();
        let slow: Vec<usize> =
            (0..self.members.len()).filter(|&i| self.members[i].slow.is_some()).collect();
        loop {
            let now = clock::now();
            if now >= until || enough(&self.heard) {
                return Ok(());
            }
            let mut wait = Duration::from_nanos(until - now);
            if !slow.is_empty() {
                wait = wait.min(Duration::from_millis(1));
            }
            if !again.is_empty() {
                wait = Duration::ZERO;
            }
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                polled => polled?,
            }
            let mut ready = std::mem::take(&mut again);
            let stirred = events.iter().map(|event| event.token().0);
            for member in stirred.chain(slow.iter().copied()) {
                if !std::mem::replace(&mut self.members[member].queued, true) {
                    ready.push(member);
                }
            }
            for member in ready {
                let more = self.read(member);
                self.members[member].queued = more;
                if more {
                    again.push(member);
                }
            }
        }
    }

    /// Reads once; whether there may be more.
    fn read(&mut self, index: usize) -> bool {
        let Self { members, scratch, heard, .. } = self;
        let member = &mut members[index];
        if !member.open {
            return false;
        }
        let kept = member.carry.len();
        if scratch.len() < kept + (64 << 10) {
            scratch.resize(2 * kept + (64 << 10), 0);
        }
        scratch[..kept].copy_from_slice(&member.carry);
        let mut room = scratch.len() - kept;
        if let Some(slow) = &member.slow {
            let allowed = u128::from(clock::now() - slow.since) * u128::from(slow.bytes_a_second);
            let allowed = u64::try_from(allowed / 1_000_000_000).unwrap_or(u64::MAX);
            let allowed = usize::try_from(allowed.saturating_sub(slow.read)).unwrap_or(usize::MAX);
            // Not byte by byte: a reader that lags behind its own rate reads a page at once.
            if allowed < 1024 {
                return false;
            }
            room = room.min(allowed);
        }
        let count = match member.stream.read(&mut scratch[kept..kept + room]) {
            Ok(0) => 0,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(_) => 0,
        };
        if count == 0 {
            member.open = false;
            heard.counts.closed += 1;
            return false;
        }
        let now = clock::now();
        heard.counts.bytes += count as u64;
        let class = usize::from(member.slow.is_some());
        if let Some(slow) = &mut member.slow {
            slow.read += count as u64;
        }
        let filled = kept + count;
        let used = heard.take(index, class, now, &scratch[..filled]);
        member.carry.clear();
        member.carry.extend_from_slice(&scratch[used..filled]);
        if !heard.pongs.is_empty() {
            member.out.append(&mut heard.pongs);
        }
        if !member.out.is_empty()
            && let Ok(count) = member.stream.write(&member.out)
        {
            member.out.drain(..count);
        }
        // A read that did not fill its room emptied the socket.
        member.slow.is_none() && count == room
    }
}

impl Heard {
    /// Takes whole frames off the front; answers how many bytes those were.
    fn take(&mut self, member: usize, class: usize, now: u64, bytes: &[u8]) -> usize {
        match self.dialect {
            Dialect::Raw => return bytes.len(),
            Dialect::Lines => {
                let Some(end) = memchr::memrchr(b'\n', bytes) else { return 0 };
                for line in bytes[..end].split(|&byte| byte == b'\n') {
                    self.counts.quotes += 1;
                    self.age(member, class, now, line, 0);
                }
                return end + 1;
            }
            _ => {}
        }
        let mut at = 0;
        while let Some((opcode, head, length)) = header(&bytes[at..]) {
            let Some(payload) = bytes.get(at + head..at + head + length) else { break };
            at += head + length;
            match opcode {
                0..=2 => self.message(member, class, now, head, payload),
                8 => self.counts.closed += 1,
                9 => {
                    write_masked(10, payload, &mut self.pongs);
                    if self.record_writes
                        && let Some(write) = self.writes.last_mut()
                    {
                        write.bytes += u32::try_from(head + length).unwrap_or(u32::MAX);
                    }
                }
                _ => {}
            }
        }
        at
    }

    fn message(&mut self, member: usize, class: usize, now: u64, head: usize, payload: &[u8]) {
        let quotes = match self.dialect {
            Dialect::Single => 1,
            _ if payload.starts_with(b"{\"type\":\"quotes\"") => objects(payload) - 1,
            _ if payload.starts_with(b"{\"type\":\"ack\"") => {
                self.counts.acks += 1;
                return;
            }
            Dialect::Batches => return,
            _ => objects(payload),
        };
        self.counts.frames += 1;
        self.counts.quotes += quotes;
        if quotes == 0 {
            return;
        }
        if self.record_writes && self.writes.len() < MOST_WRITES {
            let number = |value| u32::try_from(value).unwrap_or(u32::MAX);
            self.writes.push(Write {
                subscriber: number(member),
                bytes: number(head + payload.len()),
                quotes: u32::try_from(quotes).unwrap_or(u32::MAX),
            });
        }
        if !self.measuring || payload.starts_with(b"{\"type\":\"quotes\",\"snapshot\"") {
            return;
        }
        if self.every_age || class == 1 {
            let mut at = 0;
            while let Some(next) = self.age(member, class, now, payload, at) {
                at = next;
            }
            return;
        }
        if quotes == 1 {
            self.skipped += 1;
            if self.skipped < SINGLES_SKIPPED {
                return;
            }
            self.skipped = 0;
            self.age(member, class, now, payload, 0);
            return;
        }
        let from = self.walk.next(u32::try_from(payload.len()).unwrap_or(u32::MAX)) as usize;
        if self.age(member, class, now, payload, from).is_none() {
            self.age(member, class, now, payload, 0);
        }
    }

    /// The age of the first quote from a place on; answers where it stands.
    fn age(
        &mut self,
        member: usize,
        class: usize,
        now: u64,
        payload: &[u8],
        from: usize,
    ) -> Option<usize> {
        let at = from + self.bid.find(&payload[from..])? + 7;
        if !self.measuring {
            return Some(at);
        }
        let digits = payload[at..].iter().take_while(|byte| byte.is_ascii_digit());
        let stamp = digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        let age = now.saturating_sub(stamp);
        self.ages[class].add(age);
        if let Some(ages) = self.each.get_mut(member) {
            ages.add(age);
        }
        Some(at)
    }
}

/// Opcode, length of the header, length of the payload of the frame that starts here.
fn header(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    let (head, length) = match second & 0x7f {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => {
            let length = u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?);
            (10, usize::try_from(length).ok()?)
        }
        short => (2, usize::from(short)),
    };
    Some((first & 0x0f, head, length))
}

/// Every quote is one object without another inside.
fn objects(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'{', text).count() as u64
}

fn shake_hands(stream: &mut std::net::TcpStream) -> io::Result<Vec<u8>> {
    stream.write_all(UPGRADE.as_bytes())?;
    let mut answer = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        if let Some(end) = memchr::memmem::find(&answer, b"\r\n\r\n") {
            let rest = answer.split_off(end + 4);
            if !answer.starts_with(b"HTTP/1.1 101") {
                let answer = String::from_utf8_lossy(&answer).into_owned();
                return Err(io::Error::other(answer));
            }
            return Ok(rest);
        }
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => answer.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Appends a client's frame; the mask is zero, which masks nothing and is allowed.
fn write_masked(opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(0x80 | opcode);
    if let Ok(length) = u8::try_from(payload.len())
        && length < 126
    {
        out.push(0x80 | length);
    } else if let Ok(length) = u16::try_from(payload.len()) {
        out.push(0x80 | 126);
        out.extend_from_slice(&length.to_be_bytes());
    } else {
        out.push(0x80 | 127);
        out.extend_from_slice(&(payload.len() as u64).to_be_bytes());
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
}
