//! The live feed itself: a socket, time, and the session that says what to do with them.
//!
//! Used from a thread of its own, as the line feed is: [`next`](LiveFeed::next) blocks until
//! something happens. Inside is a small runtime of one thread, so a wait ends at once for bytes, for
//! a deadline, for a change of the wanted topics, and for the stop.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::runtime::{self, Runtime};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};
use tokio_util::sync::CancellationToken;

use super::backoff::Backoff;
use super::dialect::{Dialect, Rules, Sign, Topic};
use super::session::{Outgoing, Session, Verdict};
use super::socket::{Connector, Endpoint, Socket};
use crate::clock::{Clock, Instant};
use crate::feed::report::{BadLine, Tally};

/// Longest message after unpacking, in bytes.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;

/// How long a message may take to be sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a polite close may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Settings of a live feed.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// Certificates to trust beside the platform's, PEM.
    pub ca_file: Option<PathBuf>,
    /// How long connecting may take, TLS and upgrade included.
    pub connect_timeout: Duration,
    /// Without a sign of life for so long, the connection is given up; `None`: as the dialect says.
    pub stale_after: Option<Duration>,
    /// The wait after the first failure.
    pub first_retry: Duration,
    /// The longest wait between two attempts.
    pub longest_retry: Duration,
    /// Seed of the random part of the waits. Feeds and processes should differ in it.
    pub jitter_seed: u64,
}

impl Default for LiveOptions {
    /// 10 s to connect; waits from 250 ms to 30 s; seed 0.
    fn default() -> Self {
        Self {
            ca_file: None,
            connect_timeout: Duration::from_secs(10),
            stale_after: None,
            first_retry: Duration::from_millis(250),
            longest_retry: Duration::from_secs(30),
            jitter_seed: 0,
        }
    }
}

/// What happened on a live feed.
#[derive(Debug, PartialEq, Eq)]
pub enum LiveStep<'a> {
    /// A message arrived.
    Message {
        /// When, in ns since the Unix epoch.
        receive_time: i64,
        /// The message, lent until the next call.
        text: &'a [u8],
        /// Whether it is, byte for byte, the message before it.
        repeated: bool,
    },
    /// A connection stands, and topics are being asked for.
    Connected,
    /// The connection is over, or an attempt to make one failed; another follows.
    Disconnected {
        /// What happened.
        reason: String,
        /// Whether the connection stood and gave no sign of life.
        silent: bool,
        /// The wait before the next attempt.
        retry_in: Duration,
    },
    /// The stop was cancelled.
    Stopped,
}

/// The topics that a live feed wants, to be changed from anywhere while it runs.
#[derive(Clone, Debug)]
pub struct Topics(watch::Sender<Vec<Topic>>);

impl Topics {
    /// Wants exactly these from now on.
    pub fn set(&self, topics: Vec<Topic>) {
        self.0.send_replace(topics);
    }

    /// What is wanted now.
    #[must_use]
    pub fn get(&self) -> Vec<Topic> {
        self.0.borrow().clone()
    }
}

/// See the module.
pub struct LiveFeed {
    connector: Connector,
    connect_timeout: Duration,
    clock: Clock,
    session: Session,
    backoff: Backoff,
    wanted: watch::Receiver<Vec<Topic>>,
    state: State,
    /// The message that is lent.
    text: Text,
    /// The message before it, to tell a repetition.
    before: Text,
    tally: Tally,
    /// When the last attempt to connect began.
    attempted: Option<Instant>,
    runtime: Runtime,
}

enum State {
    Waiting(Instant),
    Open(Box<Socket>),
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    None,
    Whole(Utf8Bytes),
    Unpacked(Vec<u8>),
}

impl Text {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Whole(text) => text.as_bytes(),
            Self::Unpacked(bytes) => bytes,
        }
    }
}

/// What a wait brought.
enum Woken {
    Message(Option<Result<Message, Error>>),
    Due,
    Retuned,
    Stopped,
}

impl LiveFeed {
    /// A feed that starts with the first call of [`next`](Self::next), and the handle on its topics.
    ///
    /// # Errors
    ///
    /// If certificates cannot be read, or no runtime can be had.
    pub fn new(
        endpoint: Endpoint,
        dialect: Box<dyn Dialect>,
        topics: Vec<Topic>,
        options: &LiveOptions,
        clock: Clock,
    ) -> io::Result<(Self, Topics)> {
        let connector =
            Connector::new(endpoint, options.ca_file.as_deref()).map_err(io::Error::other)?;
        let (sender, wanted) = watch::channel(topics);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let (first, longest) = (options.first_retry, options.longest_retry);
        let mut session = Session::new(dialect, options.stale_after);
        session.want(wanted.borrow().clone(), clock.now());
        let feed = Self {
            connector,
            connect_timeout: options.connect_timeout,
            session,
            backoff: Backoff::new(first, longest, options.jitter_seed),
            wanted,
            state: State::Waiting(Instant::default()),
            text: Text::None,
            before: Text::None,
            tally: Tally::default(),
            attempted: None,
            runtime,
            clock,
        };
        Ok((feed, Topics(sender)))
    }

    /// What was received so far, over all connections.
    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The venue's rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        self.session.rules()
    }

    /// Topics granted, and topics wanted.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        self.session.held()
    }

    /// Tells what the message was that was lent last; answers what the venue refused, in its words.
    pub fn heard(&mut self, sign: &Sign) -> Vec<String> {
        if *sign == Sign::Alive {
            self.backoff.gave_data();
        }
        self.session.heard(sign, self.clock.now())
    }

    /// Blocks until something happens, or `stop` is cancelled.
    pub fn next(&mut self, stop: &CancellationToken) -> LiveStep<'_> {
        loop {
            if self.wanted.has_changed().unwrap_or(false) {
                let wanted = self.wanted.borrow_and_update().clone();
                self.session.want(wanted, self.clock.now());
            }
            match &mut self.state {
                State::Waiting(until) => {
                    let until = *until;
                    if !self.wait(until, stop) {
                        return LiveStep::Stopped;
                    }
                    return self.connect(stop);
                }
                State::Open(_) => {}
            }
            if let Err(reason) = self.say() {
                return self.over(reason, Verdict::Broken);
            }
            let now = self.clock.now();
            if let Some((reason, why)) = self.session.verdict(now) {
                self.close();
                return self.over(reason, why);
            }
            let message = match self.listen(stop) {
                Woken::Stopped => {
                    self.close();
                    return LiveStep::Stopped;
                }
                Woken::Due | Woken::Retuned => continue,
                Woken::Message(message) => message,
            };
            let text = match message {
                None => {
                    return self.over("the venue ended the connection".to_owned(), Verdict::Broken);
                }
                Some(Err(error)) => return self.over(error.to_string(), Verdict::Broken),
                Some(Ok(Message::Close(frame))) => {
                    let reason = frame.map_or_else(
                        || "the venue closed the connection".to_owned(),
                        |frame| format!("the venue closed with {}: {}", frame.code, frame.reason),
                    );
                    self.close();
                    return self.over(reason, Verdict::Broken);
                }
                Some(Ok(Message::Text(text))) => Text::Whole(text),
                Some(Ok(Message::Binary(bytes))) => match unpacked(&bytes) {
                    Some(bytes) => Text::Unpacked(bytes),
                    None => {
                        self.tally.lines += 1;
                        self.tally.skip(BadLine::NotUnpacked);
                        continue;
                    }
                },
                // tungstenite answers pings itself, with the next write.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            };
            self.before = std::mem::replace(&mut self.text, text);
            self.tally.lines += 1;
            self.tally.messages += 1;
            self.tally.text_bytes += self.text.bytes().len() as u64;
            self.session.reply(self.text.bytes());
            return LiveStep::Message {
                receive_time: self.clock.wall(),
                text: self.text.bytes(),
                repeated: self.text.bytes() == self.before.bytes(),
            };
        }
    }

    /// `false` if stopped before.
    fn wait(&mut self, until: Instant, stop: &CancellationToken) -> bool {
        // A venue counts attempts to connect.
        let interval = self.session.rules().connect_interval;
        let until = self.attempted.map_or(until, |last| until.max(last + interval));
        let left = until.since(self.clock.now());
        if left.is_zero() {
            return !stop.is_cancelled();
        }
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = stop.cancelled() => false,
                () = tokio::time::sleep(left) => true,
            }
        })
    }

    fn connect(&mut self, stop: &CancellationToken) -> LiveStep<'static> {
        self.attempted = Some(self.clock.now());
        let connected = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = stop.cancelled() => None,
                connected = self.connector.connect(self.connect_timeout) => Some(connected),
            }
        });
        match connected {
            None => LiveStep::Stopped,
            Some(Err(error)) => self.over(format!("connecting: {error}"), Verdict::Broken),
            Some(Ok(socket)) => {
                let now = self.clock.now();
                self.state = State::Open(Box::new(socket));
                self.session.opened(now);
                self.backoff.connected(now);
                self.before = Text::None;
                self.text = Text::None;
                LiveStep::Connected
            }
        }
    }

    /// Sends what is due.
    fn say(&mut self) -> Result<(), String> {
        let State::Open(socket) = &mut self.state else { return Ok(()) };
        while let Some(outgoing) = self.session.outgoing(self.clock.now()) {
            let message = match outgoing {
                Outgoing::Text(text) => Message::text(text),
                Outgoing::Ping => Message::Ping(Bytes::new()),
            };
            let sent = self
                .runtime
                .block_on(async { tokio::time::timeout(SEND_TIMEOUT, socket.send(message)).await });
            match sent {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(format!("sending: {error}")),
                Err(_) => return Err(format!("sending: not within {SEND_TIMEOUT:?}")),
            }
        }
        Ok(())
    }

    fn listen(&mut self, stop: &CancellationToken) -> Woken {
        let State::Open(socket) = &mut self.state else { return Woken::Due };
        let left = self.session.deadline().since(self.clock.now());
        let wanted = &mut self.wanted;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = stop.cancelled() => Woken::Stopped,
                changed = wanted.changed() => match changed {
                    Ok(()) => {
                        // Looked at, and marked as seen, at the loop's top.
                        wanted.mark_changed();
                        Woken::Retuned
                    }
                    // Nobody is left who could change them.
                    Err(_) => tokio::select! {
                        message = socket.next() => Woken::Message(message),
                        () = tokio::time::sleep(left) => Woken::Due,
                    },
                },
                message = socket.next() => Woken::Message(message),
                () = tokio::time::sleep(left) => Woken::Due,
            }
        })
    }

    /// Closes politely, if the other side is there to see it. The old connection is gone before the
    /// next is made.
    fn close(&mut self) {
        if let State::Open(socket) = &mut self.state {
            let _ = self.runtime.block_on(async {
                tokio::time::timeout(CLOSE_TIMEOUT, (**socket).close(None)).await
            });
        }
    }

    fn over(&mut self, reason: String, why: Verdict) -> LiveStep<'static> {
        let now = self.clock.now();
        let wait = self.backoff.wait(now);
        let retry_in = if why == Verdict::Planned { Duration::ZERO } else { wait };
        self.state = State::Waiting(now + retry_in);
        LiveStep::Disconnected { reason, silent: why == Verdict::Silent, retry_in }
    }
}

impl std::fmt::Debug for LiveFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveFeed").field("session", &self.session).finish_non_exhaustive()
    }
}

/// A binary message's text: packed with gzip, zlib or bare deflate, or as it is. `None` if it is
/// none of these whole, or too long.
fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
    let read = |from: &mut dyn io::Read| {
        let mut text = Vec::new();
        let count = from.take(MAX_MESSAGE_BYTES + 1).read_to_end(&mut text).ok()?;
        (count as u64 <= MAX_MESSAGE_BYTES && std::str::from_utf8(&text).is_ok()).then_some(text)
    };
    match bytes {
        [0x1F, 0x8B, ..] => read(&mut MultiGzDecoder::new(bytes)),
        [0x78, 0x01 | 0x5E | 0x9C | 0xDA, ..] => read(&mut ZlibDecoder::new(bytes)),
        // JSON, or a word such as `pong`.
        [b'{' | b'[' | b' ' | b'a'..=b'z', ..] if std::str::from_utf8(bytes).is_ok() => {
            Some(bytes.to_vec())
        }
        _ => read(&mut DeflateDecoder::new(bytes)).filter(|text| !text.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn b22_a_packed_message_is_unpacked_and_a_cut_one_refused_alone() {
        let text = br#"{"price":"1.25","note":"some text that packs, some text that packs"}"#;
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text).unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(text).unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(text).unwrap();
        for packed in [gzip.finish().unwrap(), zlib.finish().unwrap(), bare.finish().unwrap()] {
            assert_eq!(unpacked(&packed).unwrap(), text);
            assert_eq!(unpacked(&packed[..packed.len() / 2]), None);
        }
        assert_eq!(unpacked(text).unwrap(), text);
        assert_eq!(unpacked(b"pong").unwrap(), b"pong");
        assert_eq!(unpacked(&[0xFF; 40]), None);
    }

    #[test]
    fn b22_a_message_that_unpacks_to_too_much_is_refused() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        let piece = [b' '; 1 << 20];
        for _ in 0..17 {
            gzip.write_all(&piece).unwrap();
        }
        assert_eq!(unpacked(&gzip.finish().unwrap()), None);
    }
}
