//! Live messages, one a line, from a TCP address or standard input: the way in for in-house
//! publishers and fills.
//!
//! A [`LineFeed`] is used from a thread of its own: [`next`](LineFeed::next) blocks until
//! something happens, and looks at its stop about every 50 ms whatever it waits for. It connects,
//! and after a break connects again, with a wait that doubles from [`LineFeedOptions::first_retry`]
//! to [`LineFeedOptions::longest_retry`], each shortened by a random part of up to a half so that
//! many feeds do not come back in step. The wait starts over once a connection has delivered a line.
//!
//! Lines are treated as the reader of recordings treats them: `\r\n` and empty lines are fine, a
//! line that is too long or not UTF-8 is skipped and counted. A line that lost its end to a break
//! is skipped, unless it is a whole JSON object or array.
//!
//! # Trade-offs
//!
//! * Name resolution and connecting cannot be interrupted with what the standard library offers, so
//!   each attempt runs on a thread of its own; a stop leaves it behind, and it is over after
//!   [`LineFeedOptions::connect_timeout`] (the resolver has a timeout of its own). There is never
//!   more than one.
//! * Standard input is read on a thread of its own for the same reason. After a stop it stays in its read
//!   until the input gives something or ends, or the process does.

use std::fmt;
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Instant};

use super::format;
use super::report::{BadLine, Tally};
use super::seeded::Seeded;
use super::wait::wait_until;
use super::window::{Found, MAX_LINE_BYTES, Window};

/// How often a blocked feed looks at its stop.
const LOOK: Duration = Duration::from_millis(50);

/// A quiet connection is probed this often, so that one whose other side vanished without a word
/// breaks instead of staying silent for ever.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Pieces of standard input on their way.
const PIECES: usize = 4;
const PIECE_BYTES: usize = 64 << 10;

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// `tcp://HOST:PORT`.
    Tcp {
        /// A name or an address; an IPv6 address without its brackets.
        host: String,
        /// The port.
        port: u16,
    },
    /// `-`: standard input.
    Stdin,
}

impl FromStr for LineSource {
    type Err = LineSourceError;

    fn from_str(text: &str) -> Result<Self, LineSourceError> {
        if text == "-" {
            return Ok(Self::Stdin);
        }
        let refused = || LineSourceError(text.to_owned());
        let address = text.strip_prefix("tcp://").ok_or_else(refused)?;
        let (host, port) = address.rsplit_once(':').ok_or_else(refused)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(refused)?;
        let host = match bracketed {
            Some(host) => host,
            None if host.contains([':', '/', '[', ']', '@']) => return Err(refused()),
            None => host,
        };
        if host.is_empty() {
            return Err(refused());
        }
        Ok(Self::Tcp { host: host.to_owned(), port })
    }
}

impl fmt::Display for LineSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Stdin => f.write_str("-"),
        }
    }
}

/// Not a source of lines; holds what was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no source of lines: \"tcp://HOST:PORT\", or \"-\" for standard input, is")]
pub struct LineSourceError(pub String);

/// Waits and bounds of a line feed.
#[derive(Clone, Debug)]
pub struct LineFeedOptions {
    /// How long one attempt to connect may take (per address of the name).
    pub connect_timeout: Duration,
    /// The wait after the first failure.
    pub first_retry: Duration,
    /// The longest wait between two attempts.
    pub longest_retry: Duration,
    /// The longest line, in bytes, without its end.
    pub max_line_bytes: usize,
    /// Seed of the random part of the waits. Feeds and processes should differ in it.
    pub jitter_seed: u64,
}

impl Default for LineFeedOptions {
    /// 5 s to connect; waits from 100 ms to 10 s; lines up to [`MAX_LINE_BYTES`]; seed 0.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            first_retry: Duration::from_millis(100),
            longest_retry: Duration::from_secs(10),
            max_line_bytes: MAX_LINE_BYTES,
            jitter_seed: 0,
        }
    }
}

/// What happened on a line feed.
#[derive(Debug, PartialEq, Eq)]
pub enum LineStep<'a> {
    /// A message arrived.
    Message {
        /// When, in ns since the Unix epoch. Lines that arrived together have the same time.
        receive_time: i64,
        /// The line without its end, lent until the next call.
        text: &'a [u8],
    },
    /// A connection stands.
    Connected,
    /// The connection broke, or an attempt to make one failed; another follows.
    Disconnected {
        /// What happened.
        reason: String,
        /// The wait before the next attempt.
        retry_in: Duration,
    },
    /// Standard input is over. Nothing more comes.
    Ended {
        /// What ended it.
        reason: String,
    },
    /// The stop was cancelled. A later call with another stop goes on.
    Stopped,
}

/// See the module.
pub struct LineFeed {
    source: LineSource,
    options: LineFeedOptions,
    clock: Clock,
    jitter: Seeded,
    state: State,
    window: Window,
    /// When the bytes in the window arrived.
    receive_time: i64,
    tally: Tally,
    /// The wait that the next failure leads to.
    retry: Duration,
    /// Why the connection is over, while its last line is looked at.
    broken: Option<String>,
}

enum State {
    /// Connect when the time has come.
    Waiting(Instant),
    Connecting(Receiver<io::Result<TcpStream>>),
    Open(Link),
    Ended(String),
}

enum Link {
    Socket(TcpStream),
    Pieces(Receiver<io::Result<Vec<u8>>>),
}

/// What a look at the link brought.
enum Looked {
    Bytes,
    Nothing,
    Over(String),
}

impl LineFeed {
    /// A feed that starts with the first call of [`next`](Self::next).
    #[must_use]
    pub fn new(source: LineSource, options: LineFeedOptions, clock: Clock) -> Self {
        Self {
            source,
            jitter: Seeded::new(options.jitter_seed),
            state: State::Waiting(Instant::default()),
            window: Window::new(options.max_line_bytes),
            receive_time: 0,
            tally: Tally::default(),
            retry: options.first_retry,
            broken: None,
            options,
            clock,
        }
    }

    /// Where the lines come from.
    #[must_use]
    pub fn source(&self) -> &LineSource {
        &self.source
    }

    /// What was received so far, over all connections.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A message that has arrived already, without waiting for anything.
    pub fn at_hand(&mut self) -> Option<LineStep<'_>> {
        let line = self.line()?;
        Some(LineStep::Message {
            receive_time: self.receive_time,
            text: &self.window.bytes()[line],
        })
    }

    /// Blocks until something happens, or `stop` is cancelled (noticed within about 50 ms).
    pub fn next(&mut self, stop: &CancellationToken) -> LineStep<'_> {
        loop {
            if let Some(line) = self.line() {
                return LineStep::Message {
                    receive_time: self.receive_time,
                    text: &self.window.bytes()[line],
                };
            }
            if let Some(reason) = self.broken.take() {
                return self.over(reason);
            }
            if stop.is_cancelled() {
                return LineStep::Stopped;
            }
            match &mut self.state {
                State::Ended(reason) => return LineStep::Ended { reason: reason.clone() },
                State::Waiting(until) => {
                    if !wait_until(&self.clock, *until, stop) {
                        return LineStep::Stopped;
                    }
                    if let Some(step) = self.connect() {
                        return step;
                    }
                }
                State::Connecting(attempt) => match attempt.recv_timeout(LOOK) {
                    Ok(Ok(socket)) => return self.connected(socket),
                    Ok(Err(error)) => return self.over(format!("connecting: {error}")),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        return self.over("connecting: the attempt was given up".to_owned());
                    }
                },
                State::Open(link) => match link.look(&mut self.window) {
                    Looked::Bytes => self.receive_time = self.clock.wall(),
                    Looked::Nothing => {}
                    Looked::Over(reason) => self.broken = Some(reason),
                },
            }
        }
    }

    /// The next good line in the window; the one without an end, if the link is over.
    fn line(&mut self) -> Option<Range<usize>> {
        loop {
            let found = match self.window.line() {
                Some(found) => found,
                None if self.broken.is_some() => self.last_line()?,
                None => return None,
            };
            self.tally.lines += 1;
            let Found::Line(mut line) = found else {
                self.tally.skip(BadLine::TooLong);
                continue;
            };
            let mut text = &self.window.bytes()[line.clone()];
            if let Some(before) = text.strip_suffix(b"\r") {
                text = before;
                line.end -= 1;
                self.tally.crlf_lines += 1;
            }
            if text.is_empty() {
                self.tally.blank_lines += 1;
            } else if std::str::from_utf8(text).is_err() {
                self.tally.skip(BadLine::NotUtf8);
            } else {
                self.tally.messages += 1;
                self.tally.text_bytes += text.len() as u64;
                self.retry = self.options.first_retry;
                return Some(line);
            }
        }
    }

    fn last_line(&mut self) -> Option<Found> {
        let rest = self.window.rest()?;
        if let Found::Line(line) = &rest
            && !format::is_whole_json(&self.window.bytes()[line.clone()])
        {
            self.tally.lines += 1;
            self.tally.skip(BadLine::Torn);
            return None;
        }
        Some(rest)
    }

    /// Starts to connect, or to read standard input.
    fn connect(&mut self) -> Option<LineStep<'static>> {
        let started = match &self.source {
            LineSource::Stdin => read_in_pieces(io::stdin()).map(|pieces| {
                self.state = State::Open(Link::Pieces(pieces));
                Some(LineStep::Connected)
            }),
            LineSource::Tcp { host, port } => {
                connect_aside(host.clone(), *port, self.options.connect_timeout).map(|attempt| {
                    self.state = State::Connecting(attempt);
                    None
                })
            }
        };
        started.unwrap_or_else(|error| Some(self.over(format!("starting a thread: {error}"))))
    }

    fn connected(&mut self, socket: TcpStream) -> LineStep<'static> {
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE / 3);
        let set_up = SockRef::from(&socket)
            .set_tcp_keepalive(&keepalive)
            .and_then(|()| socket.set_read_timeout(Some(LOOK)));
        if let Err(error) = set_up {
            return self.over(format!("connecting: {error}"));
        }
        self.window.clear();
        self.state = State::Open(Link::Socket(socket));
        LineStep::Connected
    }

    /// The link is over, or did not come to be.
    fn over(&mut self, reason: String) -> LineStep<'static> {
        if self.source == LineSource::Stdin {
            self.state = State::Ended(reason.clone());
            return LineStep::Ended { reason };
        }
        let full = u64::try_from(self.retry.as_nanos()).unwrap_or(u64::MAX);
        let retry_in = Duration::from_nanos(full - self.jitter.below(full / 2 + 1));
        self.retry = (self.retry * 2).min(self.options.longest_retry);
        self.state = State::Waiting(self.clock.now() + retry_in);
        LineStep::Disconnected { reason, retry_in }
    }
}

impl Link {
    /// Waits a little for bytes and puts them into the window.
    fn look(&mut self, window: &mut Window) -> Looked {
        match self {
            Self::Socket(socket) => match socket.read(window.space()) {
                Ok(0) => Looked::Over("the other side closed the connection".to_owned()),
                Ok(count) => {
                    window.filled(count);
                    Looked::Bytes
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock
                    | io::ErrorKind::TimedOut
                    | io::ErrorKind::Interrupted => Looked::Nothing,
                    _ => Looked::Over(format!("reading: {error}")),
                },
            },
            Self::Pieces(pieces) => match pieces.recv_timeout(LOOK) {
                Ok(Ok(piece)) => {
                    window.put(&piece);
                    Looked::Bytes
                }
                Ok(Err(error)) => Looked::Over(format!("reading standard input: {error}")),
                Err(RecvTimeoutError::Timeout) => Looked::Nothing,
                Err(RecvTimeoutError::Disconnected) => {
                    Looked::Over("the end of standard input".to_owned())
                }
            },
        }
    }
}

/// Resolves and connects on a thread of its own.
fn connect_aside(
    host: String,
    port: u16,
    timeout: Duration,
) -> io::Result<Receiver<io::Result<TcpStream>>> {
    let (tell, attempt) = sync_channel(1);
    let work = move || {
        // Whether somebody still waits for the answer does not matter here.
        let _ = tell.send(connect_to_any(&host, port, timeout));
    };
    thread::Builder::new().name("line-connect".into()).spawn(work)?;
    Ok(attempt)
}

fn connect_to_any(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Reads on a thread of its own; at most [`PIECES`] pieces wait.
fn read_in_pieces(
    mut input: impl Read + Send + 'static,
) -> io::Result<Receiver<io::Result<Vec<u8>>>> {
    let (give, pieces) = sync_channel(PIECES);
    let work = move || {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = match input.read(&mut piece) {
                Ok(0) => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(count) => Ok(piece[..count].to_vec()),
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if give.send(read).is_err() || failed {
                return;
            }
        }
    };
    thread::Builder::new().name("line-input".into()).spawn(work)?;
    Ok(pieces)
}

#[cfg(test)]
mod tests;
