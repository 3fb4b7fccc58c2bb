//! The control: a bare server that sends the bytes of writes that ours made, to as many sockets.
//!
//! No frames are built, nothing is parsed, nobody answers. Paced, it makes as many writes at a time
//! as ours did in a sweep, in the order in which they arrived, as many times a second as ours swept.
//! Unpaced, it gives each socket the next write of its own as soon as the socket takes one.

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use socket2::SockRef;

use super::clock;
use super::crowd::Write;

/// The same as the gateway's: what its sockets keep unsent.
const NOTSENT_LOWAT: u32 = 16 * 1024;

/// What is replayed.
pub struct Replay<'a> {
    pub subscribers: usize,
    pub writes: &'a [Write],
    /// Sweeps a second, and writes of each; 0 for no pace.
    pub sweeps: f64,
    pub writes_a_sweep: f64,
}

impl Replay<'_> {
    /// Quotes that a byte stood for, over all writes.
    pub fn quotes_a_byte(&self) -> f64 {
        let quotes: f64 = self.writes.iter().map(|write| f64::from(write.quotes)).sum();
        let bytes: f64 = self.writes.iter().map(|write| f64::from(write.bytes)).sum();
        quotes / bytes.max(1.0)
    }

    pub fn save(&self, path: &Path) -> io::Result<()> {
        let mut text =
            format!("{} {} {}\n", self.subscribers, self.sweeps, self.writes_a_sweep).into_bytes();
        for write in self.writes {
            writeln!(text, "{} {}", write.subscriber, write.bytes)?;
        }
        std::fs::write(path, text)
    }
}

struct Loaded {
    subscribers: usize,
    sweeps: f64,
    writes_a_sweep: f64,
    writes: Vec<(usize, usize)>,
}

impl Loaded {
    fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let mut lines = text.lines();
        let mut head = lines.next().unwrap_or_default().split(' ');
        let mut number = || head.next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
        let (subscribers, sweeps, writes_a_sweep) = (number() as usize, number(), number());
        let write = |line: &str| {
            let (subscriber, bytes) = line.split_once(' ')?;
            Some((subscriber.parse().ok()?, bytes.parse().ok()?))
        };
        Ok(Self { subscribers, sweeps, writes_a_sweep, writes: lines.filter_map(write).collect() })
    }
}

struct Socket {
    stream: TcpStream,
    /// Bytes of a write that the socket has not taken.
    rest: usize,
    full: bool,
    next: usize,
    sizes: Vec<usize>,
}

impl Socket {
    /// Sends what is left of a write; whether it is all gone.
    fn push(&mut self, bytes: &[u8]) -> io::Result<bool> {
        while self.rest > 0 {
            match self.stream.write(&bytes[..self.rest.min(bytes.len())]) {
                Ok(count) => self.rest -= count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.full = true;
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// The server's process: says its port, takes its connections, sends until it is killed.
pub fn serve(path: &Path) -> io::Result<()> {
    let loaded = Loaded::read(path)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("ready {}", listener.local_addr()?.port());
    let mut poll = Poll::new()?;
    let mut sockets = Vec::with_capacity(loaded.subscribers);
    for index in 0..loaded.subscribers {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        SockRef::from(&stream).set_tcp_notsent_lowat(NOTSENT_LOWAT)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut stream, Token(index), interest)?;
        sockets.push(Socket { stream, rest: 0, full: false, next: 0, sizes: Vec::new() });
    }
    let most = loaded.writes.iter().map(|&(_, bytes)| bytes).max().unwrap_or(1);
    let bytes = vec![b'x'; most];
    let over = if loaded.sweeps > 0.0 {
        paced(&loaded, &mut poll, &mut sockets, &bytes)
    } else {
        flooding(&loaded, &mut poll, &mut sockets, &bytes)
    };
    // The load generator is done.
    over.or_else(|error| match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}

/// The server's process of a bare relay: the first connection's bytes go to the second.
pub fn relay() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("ready {}", listener.local_addr()?.port());
    let (mut from, _) = listener.accept()?;
    let (mut to, _) = listener.accept()?;
    to.set_nodelay(true)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
    }
}

fn paced(loaded: &Loaded, poll: &mut Poll, sockets: &mut [Socket], bytes: &[u8]) -> io::Result<()> {
    let mut events = Events::with_capacity(1024);
    let period = (1e9 / loaded.sweeps) as u64;
    let mut writes = loaded.writes.iter().cycle();
    let (mut due, mut owed) = (clock::now(), 0.0);
    loop {
        due += period;
        // As ours: the poll's timeout has steps of a millisecond, so a shorter wait is a sleep.
        loop {
            let wait = due.saturating_sub(clock::now());
            poll.poll(&mut events, Some(Duration::from_nanos(wait)))?;
            for event in &events {
                let socket = &mut sockets[event.token().0];
                if std::mem::take(&mut socket.full) {
                    socket.push(bytes)?;
                }
            }
            if clock::now() >= due {
                break;
            }
        }
        // Behind by much: the machine was away, and what was missed is not made up for.
        due = due.max(clock::now().saturating_sub(20 * period));
        owed += loaded.writes_a_sweep;
        while owed >= 1.0 {
            owed -= 1.0;
            let Some(&(subscriber, size)) = writes.next() else { return Ok(()) };
            let socket = &mut sockets[subscriber];
            socket.rest += size;
            if !socket.full {
                socket.push(bytes)?;
            }
        }
    }
}

fn flooding(
    loaded: &Loaded,
    poll: &mut Poll,
    sockets: &mut [Socket],
    bytes: &[u8],
) -> io::Result<()> {
    for &(subscriber, size) in &loaded.writes {
        sockets[subscriber].sizes.push(size);
    }
    let mut events = Events::with_capacity(1024);
    let mut ready: Vec<usize> = (0..sockets.len()).collect();
    loop {
        let wait = if ready.is_empty() { Duration::from_secs(1) } else { Duration::ZERO };
        poll.poll(&mut events, Some(wait))?;
        for event in &events {
            let index = event.token().0;
            if std::mem::take(&mut sockets[index].full) {
                ready.push(index);
            }
        }
        let mut still = Vec::with_capacity(ready.len());
        for index in ready {
            let socket = &mut sockets[index];
            if socket.rest == 0 && !socket.sizes.is_empty() {
                socket.rest = socket.sizes[socket.next % socket.sizes.len()];
                socket.next += 1;
            }
            if socket.rest > 0 && socket.push(bytes)? {
                still.push(index);
            }
        }
        ready = still;
    }
}
