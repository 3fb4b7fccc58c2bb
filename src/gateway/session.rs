//! One subscriber's connection: a state machine over bytes and time.
//!
//! The session reads what its client says, answers by id, and builds batches when its shard offers
//! it a turn. It owns no clock and opens no socket; the shard passes both in.
//!
//! A batch may be built when all of this holds, asked in this order, and the first that does not
//! is *why* the change is held: the socket has taken everything before (`socket`), the rate window
//! is open (`rate`), the limiter gives a permit (`capacity`).

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use tungstenite::Message;
use tungstenite::error::{CapacityError, Error, ProtocolError};
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

use super::close::{Close, write_close_frame};
use super::confirm::Batches;
use super::control::{Limits, Subscriber};
use super::frames;
use super::outbox::{Link, Outbox};
use super::protocol::{self, BatchKind, Confirm, Effective, Why};
use super::slots::{Sent, Slots};
use super::throttle::{Budget, Window, effective_hz};
use super::view::View;
use crate::board::Topic;
use crate::clock::Instant;
use crate::market::{FeedId, Quote, Volume};

/// Answers queued beyond which the client's further operations wait in its socket.
const MAX_QUEUED_ANSWERS: usize = 64 * 1024;

/// Messages read in one turn, so that one talkative client does not hold up the others.
const MAX_READS_A_TURN: usize = 64;

/// Messages that are no operation before the connection is closed.
const MAX_STRIKES: u32 = 10;

/// How long a client has to answer a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// When a client may come back after a shutdown.
const RETRY_AFTER_MS: u64 = 1000;

/// Silent heartbeat periods before a connection counts as dead.
const SILENT_PERIODS: u32 = 3;

/// What reading found for the shard to do.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A text message.
    Text(String),
    /// Nothing more for now; `more` says that the turn's share was used up before the socket was.
    Nothing { more: bool },
    /// The connection is over.
    Gone,
}

/// Counts that the accounts are made of, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meters {
    /// Quotes written.
    pub(crate) delivered: u64,
    /// Ticks skipped because a newer value stood for them.
    pub(crate) conflated: u64,
    /// Ticks that awaited sending when their instrument was unsubscribed.
    pub(crate) withdrawn: u64,
    /// Ticks received through subscriptions that are no more.
    pub(crate) received_before: u64,
    /// Batches sent.
    pub(crate) batches: u64,
}

/// How a turn of building went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Built {
    /// A batch was sent and more awaits sending.
    More,
    /// Nothing is left that could be sent now.
    Done,
    /// The connection is over.
    Gone,
}

/// What a sent batch tells the figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    pub(crate) quotes: u64,
    pub(crate) conflated: u64,
    pub(crate) held: Duration,
    pub(crate) why: Why,
    pub(crate) bytes: usize,
}

enum Phase {
    Open,
    /// Newest values go out past window and limiter, then notice and close.
    Finishing,
    /// Our close frame is queued; the client's answer is awaited until then.
    Closing(Instant),
    /// The client closed; our answer is queued, and what is queued goes out until then.
    Draining(Instant),
}

/// Where a batch is put together; one a shard, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    frame: Vec<u8>,
    head: Vec<u8>,
}

/// Room before a batch's values for the frame's header and the batch's head.
const ROOM: usize = frames::MAX_HEADER + protocol::MAX_BATCH_HEAD;

/// One subscriber's connection.
pub(crate) struct Session<L> {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) link: L,
    pub(crate) quotes: Slots,
    pub(crate) volumes: Slots,
    /// Venues subscribed as a whole.
    pub(crate) patterns: Vec<Box<str>>,
    /// Names that have had no tick yet.
    pub(crate) waiting: Vec<Box<str>>,
    /// Accounts whose volume is wanted; `*` is all.
    pub(crate) accounts: Vec<Box<str>>,
    pub(crate) meters: Meters,
    /// Feeds whose status the client is to be told.
    pub(crate) status_due: Vec<FeedId>,
    /// Whether the limits in force are to be told.
    pub(crate) limits_due: bool,
    /// Whether the shard counts it among those who wait for new topics.
    pub(crate) watching: bool,
    /// Whether the session stands in the shard's ready list.
    pub(crate) queued: bool,
    /// Whether its socket may hold unread bytes.
    pub(crate) readable: bool,
    /// The operator's changes for this subscriber that have been taken over.
    pub(crate) changes_seen: u64,
    /// When the shard is to come back, if it has been told.
    pub(crate) armed: Option<Instant>,
    socket: WebSocketContext,
    outbox: Outbox,
    confirm: Confirm,
    wish_hz: f64,
    window: Window,
    batches: Batches,
    hold: Option<Why>,
    /// Whose turn it is when quotes and volumes both await sending.
    volumes_next: bool,
    /// Whether the last turn found the rate window closed.
    waits_for_window: bool,
    /// Since when the client owes a confirmation or the reading of bytes, without progress.
    owes_since: Option<Instant>,
    /// Whether the socket was full when it was last written to.
    blocked: bool,
    /// Whether the reader has lost its place, so that what comes is only thrown away.
    deafened: bool,
    last_heard: Instant,
    last_heartbeat: Instant,
    budget: Budget,
    strikes: u32,
    phase: Phase,
}

/// The socket as tungstenite sees it: reads come from the link, replies go behind what is queued.
struct Pipe<'a, L> {
    link: &'a mut L,
    outbox: &'a mut Outbox,
    heard: bool,
    /// Nothing follows our own close frame.
    mute: bool,
}

impl<L: Link> Read for Pipe<'_, L> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.link.receive(buffer)?;
        self.heard |= count > 0;
        Ok(count)
    }
}

impl<L> Write for Pipe<'_, L> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.mute {
            self.outbox.buffer().extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<L: Link> Session<L> {
    /// A session over an upgraded connection; `early` are bytes that came with the handshake.
    pub(crate) fn new(
        subscriber: Arc<Subscriber>,
        link: L,
        early: Vec<u8>,
        limits: &Limits,
        now: Instant,
    ) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(1024)
            .write_buffer_size(0)
            .max_write_buffer_size(MAX_QUEUED_ANSWERS)
            .max_message_size(Some(limits.max_message_bytes))
            .max_frame_size(Some(limits.max_message_bytes));
        Self {
            window: Window::new(subscriber.ceiling_hz()),
            subscriber,
            link,
            quotes: Slots::default(),
            volumes: Slots::default(),
            patterns: Vec::new(),
            waiting: Vec::new(),
            accounts: Vec::new(),
            meters: Meters::default(),
            status_due: Vec::new(),
            limits_due: false,
            watching: false,
            queued: false,
            readable: true,
            changes_seen: 0,
            armed: None,
            socket: WebSocketContext::from_partially_read(early, Role::Server, Some(config)),
            outbox: Outbox::default(),
            confirm: limits.confirm,
            wish_hz: 0.0,
            batches: Batches::default(),
            hold: None,
            volumes_next: false,
            waits_for_window: false,
            owes_since: None,
            blocked: false,
            deafened: false,
            last_heard: now,
            last_heartbeat: now,
            budget: Budget::new(limits.max_ops_per_s, now),
            strikes: 0,
            phase: Phase::Open,
        }
    }

    /// What is in force for this subscriber.
    pub(crate) fn effective(&self) -> Effective {
        Effective {
            max_hz: self.window.max_hz(),
            capacity: self.subscriber.limiter().capacity(),
            confirm: self.confirm,
        }
    }

    /// Takes the client's wish for a rate.
    pub(crate) fn wish(&mut self, max_hz: f64) {
        self.wish_hz = max_hz;
        self.window.set_max_hz(effective_hz(self.subscriber.ceiling_hz(), max_hz));
    }

    /// Takes over limits that have changed.
    pub(crate) fn limits_changed(&mut self) {
        self.wish(self.wish_hz);
        self.limits_due = true;
    }

    /// Whether messages may still be sent.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Finishing)
    }

    /// Sends the newest values past window and limiter, then notice and close.
    pub(crate) fn finish(&mut self) {
        if self.is_open() {
            self.phase = Phase::Finishing;
        }
    }

    /// Queues a text message.
    pub(crate) fn say(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_open() {
            let mut text = Vec::with_capacity(256);
            write(&mut text);
            frames::write_text(&text, self.outbox.buffer());
        }
    }

    /// Reads the next message, if the client may speak now.
    pub(crate) fn read(&mut self, reads: &mut usize, limits: &Limits, now: Instant) -> Heard {
        loop {
            if matches!(self.phase, Phase::Draining(_)) || !self.may_speak(limits) {
                return Heard::Nothing { more: false };
            }
            if *reads >= MAX_READS_A_TURN {
                return Heard::Nothing { more: true };
            }
            *reads += 1;
            if self.deafened {
                match self.discard() {
                    Some(heard) => return heard,
                    None => continue,
                }
            }
            let mute = matches!(self.phase, Phase::Closing(_));
            let mut pipe =
                Pipe { link: &mut self.link, outbox: &mut self.outbox, heard: false, mute };
            let read = self.socket.read(&mut pipe);
            if pipe.heard {
                self.last_heard = now;
            }
            match read {
                Ok(Message::Close(_)) if mute => return Heard::Gone,
                // The answer is made, and written here: behind what is queued, and nothing after.
                Ok(Message::Close(_)) => {
                    let _ = self.socket.flush(&mut pipe);
                    return self.drain(now);
                }
                Ok(Message::Pong(payload)) => {
                    if self.confirm == Confirm::Pong
                        && let Some(batch) = frames::batch_of_pong(&payload)
                    {
                        self.confirmed(batch, now);
                    }
                }
                Ok(_) if !self.is_open() => {}
                Ok(Message::Text(text)) => return Heard::Text(text.as_str().to_owned()),
                Ok(Message::Binary(_)) => {
                    self.close(Close::Protocol, "operations are JSON text, not binary", now);
                }
                Ok(Message::Ping(_)) => self.spend(limits, now),
                Ok(Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.readable = false;
                    return Heard::Nothing { more: false };
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if let Some(heard) = self.broken(&error, now) {
                        return heard;
                    }
                }
            }
        }
    }

    /// The reader ended or lost its place.
    fn broken(&mut self, error: &Error, now: Instant) -> Option<Heard> {
        match error {
            Error::Capacity(CapacityError::MessageTooLong { max_size, .. }) => {
                self.close(Close::TooBig, &format!("a message is at most {max_size} bytes"), now);
            }
            Error::Utf8(_) => self.close(Close::InvalidText, "text is UTF-8", now),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                return Some(Heard::Gone);
            }
            Error::Protocol(error) => self.close(Close::WebSocket, &error.to_string(), now),
            // The client closed and the reader has answered: the answer is in the outbox.
            Error::ConnectionClosed => return Some(self.drain(now)),
            _ => return Some(Heard::Gone),
        }
        self.deafened = true;
        None
    }

    /// The client has closed: what is queued goes out, then it is over.
    fn drain(&mut self, now: Instant) -> Heard {
        if self.outbox.flush(&mut self.link).is_err() || self.outbox.is_empty() {
            return Heard::Gone;
        }
        self.phase = Phase::Draining(now + CLOSE_TIMEOUT);
        Heard::Nothing { more: false }
    }

    /// Throws away what comes: dropping a socket with unread bytes would reset the connection and
    /// lose the close frame.
    fn discard(&mut self) -> Option<Heard> {
        match self.link.receive(&mut [0; 4096]) {
            Ok(0) => Some(Heard::Gone),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Some(Heard::Nothing { more: false })
            }
            Err(_) => Some(Heard::Gone),
        }
    }

    /// Takes one operation from the client's budget; closes the connection if there is none left.
    pub(crate) fn spend(&mut self, limits: &Limits, now: Instant) {
        if !self.budget.take(limits.max_ops_per_s, now) {
            let reason = format!("at most {} operations a second", limits.max_ops_per_s);
            self.close(Close::Policy, &reason, now);
        }
    }

    /// A message was no operation.
    pub(crate) fn strike(&mut self, now: Instant) {
        self.strikes += 1;
        if self.strikes >= MAX_STRIKES {
            self.close(Close::Protocol, "too many messages that are no operation", now);
        }
    }

    /// The client confirms every batch up to `batch` by its own operation; `false` if that says
    /// nothing new.
    pub(crate) fn acknowledged(&mut self, batch: u64, now: Instant) -> bool {
        self.confirm == Confirm::Client && self.confirmed(batch, now)
    }

    fn confirmed(&mut self, batch: u64, now: Instant) -> bool {
        let count = self.batches.confirm(batch);
        self.release(count, now);
        count > 0
    }

    fn release(&mut self, count: u64, now: Instant) {
        // The last batches before a shutdown take no permits, so none come back from then on.
        if count > 0 && matches!(self.phase, Phase::Open) {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let released = self.subscriber.limiter().release_many(count);
            debug_assert!(released.is_ok(), "a permit was taken for each batch");
            self.progressed(now);
        }
    }

    /// The client did something it owed.
    fn progressed(&mut self, now: Instant) {
        self.owes_since = self.owes().then_some(now);
    }

    fn owes(&self) -> bool {
        self.batches.unconfirmed() > 0 || !self.outbox.is_empty()
    }

    /// Sends what is queued, and keeps account of whether the client takes it. `false` if the
    /// connection is over.
    pub(crate) fn flush(&mut self, now: Instant) -> bool {
        let before = self.outbox.taken();
        if self.outbox.flush(&mut self.link).is_err() {
            return false;
        }
        if self.outbox.is_empty() {
            if self.confirm == Confirm::Flush {
                let count = self.batches.confirm_all();
                self.release(count, now);
            }
            if matches!(self.phase, Phase::Draining(_)) {
                return false;
            }
        }
        if self.blocked && self.outbox.taken() != before {
            self.progressed(now);
            // No heartbeat can be answered while none can be sent; that it reads is sign enough.
            self.last_heard = now;
        }
        self.blocked = !self.outbox.is_empty();
        if !self.owes() {
            self.owes_since = None;
        } else if self.owes_since.is_none() {
            self.owes_since = Some(now);
        }
        true
    }

    /// Whether anything is queued for the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// Whether the client has read its answers, so that its operations are heard. A batch that
    /// waits for the socket keeps no client from speaking: it may want to confirm, or to close.
    fn may_speak(&self, limits: &Limits) -> bool {
        let most = MAX_QUEUED_ANSWERS + limits.max_batch_bytes;
        self.readable && (!self.is_open() || self.outbox.len() <= most)
    }

    /// Notes that a sweep came late because of the cadence.
    pub(crate) fn paced(&mut self) {
        self.hold.get_or_insert(Why::Pace);
    }

    /// Notes what holds the oldest change that awaits sending: the first that did, except that a
    /// wait for the cadence, a moment, is forgotten over any other.
    fn held_by(&mut self, why: Why) {
        if matches!(self.hold, None | Some(Why::Pace)) {
            self.hold = Some(why);
        }
    }

    /// Builds and sends one batch, if anything awaits sending and nothing holds it.
    pub(crate) fn build(
        &mut self,
        quotes: &View<Quote>,
        volumes: &View<Volume>,
        limits: &Limits,
        scratch: &mut Scratch,
        now: Instant,
        sent: &mut impl FnMut(Batch),
    ) -> Built {
        self.waits_for_window = false;
        if !self.is_open() {
            return Built::Done;
        }
        let finishing = matches!(self.phase, Phase::Finishing);
        let Some(kind) = self.next_kind().filter(|_| !finishing || self.may_finish_with_values())
        else {
            self.hold = None;
            return if finishing { self.say_goodbye(now) } else { self.ping_tail(now) };
        };
        if !self.outbox.is_empty() {
            self.held_by(Why::Socket);
            return Built::Done;
        }
        if !finishing {
            if !self.window.is_open(now) {
                self.waits_for_window = true;
                self.held_by(Why::Rate);
                return self.ping_tail(now);
            }
            let Ok(permit) = self.subscriber.limiter().try_acquire() else {
                self.held_by(Why::Capacity);
                return self.ping_tail(now);
            };
            // The permit comes back with the batch's confirmation, or goes with the session.
            permit.forget();
        }
        self.window.spend(now);
        let (batch, start) = self.write_batch(kind, quotes, volumes, limits, scratch, now);
        self.meters.batches += 1;
        sent(batch);
        let more = self.next_kind().is_some();
        if self.confirm == Confirm::Pong && !finishing {
            let limiter = self.subscriber.limiter();
            if self.batches.wants_ping(limiter.capacity(), more, limiter.snapshot().room() == 0) {
                frames::write_batch_ping(self.batches.ping(), &mut scratch.frame);
            }
        }
        if self.outbox.send(&scratch.frame[start..], &mut self.link).is_err() || !self.flush(now) {
            return Built::Gone;
        }
        if more || finishing { Built::More } else { Built::Done }
    }

    /// No batch goes now, so one that went without a ping gets it: more was to follow and was
    /// withdrawn since, or waits for the window, or for a permit that a shrink has taken.
    fn ping_tail(&mut self, now: Instant) -> Built {
        if self.confirm == Confirm::Pong
            && self.outbox.is_empty()
            && self.batches.wants_ping(0, false, true)
        {
            frames::write_batch_ping(self.batches.ping(), self.outbox.buffer());
            if !self.flush(now) {
                return Built::Gone;
            }
        }
        Built::Done
    }

    /// What the next batch would hold: first values before changes; of changes, quotes and volumes
    /// by turns, so that a busy market does not hold an account's volume back for ever.
    fn next_kind(&self) -> Option<BatchKind> {
        if self.quotes.has_fresh() {
            return Some(BatchKind::Snapshot);
        }
        if self.volumes.has_fresh() {
            return Some(BatchKind::VolumeSnapshot);
        }
        match (self.quotes.has_pending(), self.volumes.has_pending()) {
            (true, true) if self.volumes_next => Some(BatchKind::Volumes),
            (true, _) => Some(BatchKind::Quotes),
            (false, true) => Some(BatchKind::Volumes),
            (false, false) => None,
        }
    }

    /// A paused subscriber is sent nothing, not even last values.
    fn may_finish_with_values(&self) -> bool {
        self.subscriber.limiter().capacity() > 0
    }

    /// Queues the shutdown notice and the close.
    fn say_goodbye(&mut self, now: Instant) -> Built {
        self.say(|out| protocol::write_shutdown(RETRY_AFTER_MS, out));
        self.close(Close::Shutdown, "the gateway shuts down", now);
        if self.flush(now) { Built::Done } else { Built::Gone }
    }

    /// Writes one batch as a frame into the scratch; answers where in it the frame starts.
    fn write_batch(
        &mut self,
        kind: BatchKind,
        quotes: &View<Quote>,
        volumes: &View<Volume>,
        limits: &Limits,
        scratch: &mut Scratch,
        now: Instant,
    ) -> (Batch, usize) {
        // The head tells how long the oldest value was held, which is known once the values are
        // written; so they are written first, with room before them for frame header and head.
        let Scratch { frame, head } = scratch;
        frame.clear();
        frame.resize(ROOM, 0);
        let most = ROOM + limits.max_batch_bytes.saturating_sub(protocol::MAX_BATCH_HEAD);
        let mut values = 0_u64;
        let mut conflated = 0_u64;
        let count = |sent: Sent| {
            values += 1;
            conflated += sent.conflated;
        };
        let fresh = matches!(kind, BatchKind::Snapshot | BatchKind::VolumeSnapshot);
        let is_quotes = matches!(kind, BatchKind::Snapshot | BatchKind::Quotes);
        self.volumes_next = is_quotes;
        let oldest = if is_quotes {
            self.quotes.sweep(fresh, |topic| write_value(quotes, topic, most, frame), count)
        } else {
            self.volumes.sweep(fresh, |topic| write_value(volumes, topic, most, frame), count)
        };
        // Each value ends with a comma; the last one's place is taken by the closing.
        if frame.len() > ROOM {
            frame.pop();
        }
        frame.extend_from_slice(b"]}");
        if is_quotes {
            self.meters.delivered += values;
            self.meters.conflated += conflated;
        } else {
            (values, conflated) = (0, 0);
        }
        let held = oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
        let why = self.hold.take().unwrap_or_default();
        let held_us = u64::try_from(held.as_micros()).unwrap_or(u64::MAX);
        head.clear();
        protocol::write_batch_head(kind, self.batches.next(), held_us, why, head);
        let (header, length) = frames::text_header(head.len() + frame.len() - ROOM);
        let start = ROOM - head.len() - length;
        frame[start..start + length].copy_from_slice(&header[..length]);
        frame[start + length..ROOM].copy_from_slice(head);
        (Batch { quotes: values, conflated, held, why, bytes: frame.len() - start }, start)
    }

    /// Says what the client is owed besides batches, if the socket has room.
    pub(crate) fn say_notices(
        &mut self,
        generation: u64,
        mut status: impl FnMut(FeedId, &mut Vec<u8>),
    ) {
        if !self.outbox.is_empty() || !self.is_open() {
            return;
        }
        if std::mem::take(&mut self.limits_due) {
            let effective = self.effective();
            self.say(|out| protocol::write_limits(generation, effective, out));
        }
        for feed in std::mem::take(&mut self.status_due) {
            self.say(|out| status(feed, out));
        }
    }

    /// Looks at the time: heartbeats, stalls, the end of a close. `false` if it is over.
    pub(crate) fn tick(&mut self, limits: &Limits, now: Instant) -> bool {
        if let Phase::Closing(until) | Phase::Draining(until) = self.phase {
            return now < until;
        }
        if self.owes_since.is_some_and(|since| now >= since + limits.stall_timeout) {
            let reason = if self.batches.unconfirmed() > 0 {
                "no batch was confirmed in time"
            } else {
                "nothing was read in time"
            };
            self.close(Close::Stalled, reason, now);
        } else if now >= self.last_heard + limits.heartbeat * SILENT_PERIODS {
            self.close(Close::Stalled, "no heartbeat was answered", now);
        } else if now >= self.last_heard.max(self.last_heartbeat) + limits.heartbeat
            && self.outbox.is_empty()
        {
            self.last_heartbeat = now;
            frames::write_heartbeat(self.outbox.buffer());
        }
        true
    }

    /// When the session wants to be looked at again.
    pub(crate) fn deadline(&self, limits: &Limits) -> Instant {
        if let Phase::Closing(until) | Phase::Draining(until) = self.phase {
            return until;
        }
        let mut deadline = (self.last_heard.max(self.last_heartbeat) + limits.heartbeat)
            .min(self.last_heard + limits.heartbeat * SILENT_PERIODS);
        if !self.outbox.is_empty() {
            // No heartbeat rides behind what is not read: the stall and the silence count then.
            deadline = self.last_heard + limits.heartbeat * SILENT_PERIODS;
        }
        if let Some(since) = self.owes_since {
            deadline = deadline.min(since + limits.stall_timeout);
        }
        if self.waits_for_window {
            deadline = deadline.min(self.window.opens());
        }
        deadline
    }

    /// Queues a close frame; nothing is sent after it.
    pub(crate) fn close(&mut self, close: Close, reason: &str, now: Instant) {
        if self.is_open() {
            self.phase = Phase::Closing(now + CLOSE_TIMEOUT);
            self.subscriber.closed_for(close);
            tracing::debug!(
                subscriber = self.subscriber.id(),
                code = close.code(),
                reason,
                "closing a subscriber"
            );
            write_close_frame(close, reason, self.outbox.buffer());
        }
    }
}

/// Appends a topic's value and a comma; `None` if it does not fit behind what is there already.
fn write_value<T: Topic>(
    view: &View<T>,
    topic: u32,
    most: usize,
    frame: &mut Vec<u8>,
) -> Option<u64> {
    let Some(mirror) = view.mirror(topic) else { return Some(0) };
    if frame.len() > ROOM && frame.len() + mirror.text.len() + 2 > most {
        return None;
    }
    frame.extend_from_slice(&mirror.text);
    frame.push(b',');
    Some(mirror.tick)
}
