//! One subscriber's connection: a state machine over bytes and time.
//!
//! The session reads what its client says, answers by id, and builds batches when its shard offers
//! it a turn. It owns no clock and opens no socket; the shard passes both in.
//!
//! Here is its state and its life; `reading` hears the client, `building` sends to it.
//!
//! A batch may be built when all of this holds, asked in this order, and the first that does not
//! is *why* the change is held: the socket has taken everything before (`socket`), the rate window
//! is open (`rate`), the limiter gives a permit (`capacity`).

mod building;
mod reading;

use std::sync::Arc;
use std::time::Duration;

use foldhash::HashSet;
use tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

use super::close::{Close, write_close_frame};
use super::confirm::Batches;
use super::control::{Limits, Subscriber};
use super::flow::Flow;
use super::frames;
use super::outbox::{Link, Outbox};
use super::protocol::{self, Confirm, Effective, Why};
use super::slots::Slots;
use super::throttle::{Budget, Window, effective_hz};
use crate::clock::Instant;
use crate::market::FeedId;
pub(crate) use building::{Batch, Built, Scratch};
pub(crate) use reading::{Heard, Share};

/// Answers queued beyond which the client's further operations wait in its socket.
const MAX_QUEUED_ANSWERS: usize = 64 * 1024;

/// How long a client has to answer a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Silent heartbeat periods before a connection counts as dead.
const SILENT_PERIODS: u32 = 3;

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

enum Phase {
    Open,
    /// Newest values go out past window and limiter, then notice and close.
    Finishing,
    /// Our close frame is queued; the client's answer is awaited until then.
    Closing(Instant),
    /// The client closed; our answer is queued, and what is queued goes out until then.
    Draining(Instant),
}

/// One subscriber's connection.
pub(crate) struct Session<L> {
    pub(crate) subscriber: Arc<Subscriber>,
    pub(crate) link: L,
    pub(crate) quotes: Slots,
    pub(crate) volumes: Slots,
    /// Venues subscribed as a whole.
    pub(crate) patterns: Vec<Box<str>>,
    /// Names that have had no tick yet.
    pub(crate) waiting: HashSet<Box<str>>,
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
    /// Since when it may.
    pub(crate) readable_since: Instant,
    /// Whether the end of what can be read is near, so that it is looked for.
    pub(crate) ends: bool,
    /// How late the shard may notice what comes: the length of its last turn.
    pub(crate) lag: Duration,
    /// The generation of the operator's last change for this subscriber that was taken over.
    pub(crate) changed_in: u64,
    /// When the shard is to come back, if it has been told.
    pub(crate) armed: Option<Instant>,
    socket: WebSocketContext,
    outbox: Outbox,
    confirm: Confirm,
    wish_hz: f64,
    window: Window,
    batches: Batches,
    flow: Flow,
    hold: Option<Why>,
    /// Whose turn it is when quotes and volumes both await sending.
    volumes_next: bool,
    /// Whether the last turn found the socket full, the window closed or no permit left: then it is
    /// an event, a timer or a change of limits that brings the next turn, and no sweep.
    pub(crate) held: bool,
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
            waiting: HashSet::default(),
            accounts: Vec::new(),
            meters: Meters::default(),
            status_due: Vec::new(),
            limits_due: false,
            watching: false,
            queued: false,
            readable: true,
            readable_since: now,
            ends: false,
            lag: Duration::ZERO,
            changed_in: 0,
            armed: None,
            socket: WebSocketContext::from_partially_read(early, Role::Server, Some(config)),
            outbox: Outbox::default(),
            confirm: limits.confirm,
            wish_hz: 0.0,
            batches: Batches::default(),
            flow: Flow::default(),
            hold: None,
            volumes_next: false,
            held: false,
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

    /// Sends a message back as it came, behind what is queued.
    pub(crate) fn echo(&mut self, message: &[u8], text: bool) {
        if self.is_open() {
            let buffer = self.outbox.buffer();
            let frame = buffer.len();
            frames::write_text(message, buffer);
            if !text {
                buffer[frame] = frames::BINARY;
            }
        }
    }

    /// The client confirms every batch up to `batch` by its own operation; `false` if that says
    /// nothing new.
    pub(crate) fn acknowledged(&mut self, batch: u64, now: Instant) -> bool {
        self.confirm == Confirm::Client && self.confirmed(batch, now)
    }

    fn confirmed(&mut self, batch: u64, now: Instant) -> bool {
        let count = self.batches.confirm(batch);
        if count > 0 {
            let all = self.batches.unconfirmed() == 0;
            // When it came, not when its turn came to be read.
            let seen = self.readable_since.min(now);
            self.flow.confirmed(batch, all, seen, self.lag);
        }
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
        self.held = true;
        if matches!(self.hold, None | Some(Why::Pace)) {
            self.hold = Some(why);
        }
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
        if let Some(due) = self.tail_due() {
            deadline = deadline.min(due);
        }
        deadline
    }

    /// When a batch that has gone without a ping gets one.
    fn tail_due(&self) -> Option<Instant> {
        let pings = self.confirm == Confirm::Pong && matches!(self.phase, Phase::Open);
        self.batches.tail_due().filter(|_| pings && self.outbox.is_empty())
    }

    /// Bytes in flight, and how many may be; `None` while the line has not been the slowest part.
    pub(crate) fn in_flight_bytes(&self, limits: &Limits) -> (u64, Option<u64>) {
        (self.flow.in_flight(), self.flow.window(limits.max_in_flight, self.lag))
    }

    /// Bytes a second that the line was measured to deliver, if it has been the slowest part.
    pub(crate) fn line_rate(&self) -> Option<f64> {
        self.flow.rate()
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
