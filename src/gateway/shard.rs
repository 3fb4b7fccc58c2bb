//! One fan-out shard: the sessions it owns, and the turn that serves them.
//!
//! A shard is a state machine over bytes and time; the reactor around it polls sockets, tells it
//! the time, and sleeps until the deadline it names. One turn does, in this order: time (stalls,
//! heartbeats, rate windows), changes of limits and health, new instruments, the sweep over what
//! has changed, then one batch at a time for each session that is ready, round and round.
//!
//! # Cadence
//!
//! A change is swept at once while the shard has little to do; the busier it is, the longer it
//! gathers changes, at most `pace`: see `cadence`.
//!
//! # Fairness
//!
//! Sessions take turns in the order in which they became ready; a session that has more to send
//! goes to the back. Inside a session a full batch leaves the rest first in line. So of *n*
//! changed instruments whose texts fill *b* batches, each goes out within the next *b* + 1
//! batches, whatever the others do.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::cadence::Cadence;
use super::close::Close;
use super::control::{Limits, Subscriber};
use super::operations;
use super::outbox::Link;
use super::protocol;
use super::session::{Built, Heard, Meters, Scratch, Session, Share};
use super::view::{Interest, View};
use crate::clock::Instant;
use crate::limiter::OwnedPermit;
use crate::market::{FeedId, InstrumentId, Quote, Volume, VolumeId};

/// Visits of sessions between two looks at what has changed.
const VISITS_A_TURN: usize = 256;

/// Bytes of operations obeyed between two looks at what has changed: a list of thousands of names
/// takes a while, and there may be many.
const OPERATIONS_A_TURN: usize = 32 * 1024;

/// An operation of so many bytes ends its session's visit.
const LONG_OPERATION: usize = 2048;

/// A connection on its way to a shard.
#[derive(Debug)]
pub(crate) struct Adoption {
    pub(crate) stream: std::net::TcpStream,
    /// Bytes that came behind the handshake.
    pub(crate) early: Vec<u8>,
    pub(crate) peer: SocketAddr,
    /// Counts the subscriber; given back when the session ends.
    pub(crate) admission: OwnedPermit,
}

/// What other threads ask of a shard.
#[derive(Debug)]
pub(crate) enum Command {
    /// Take over an upgraded connection.
    Adopt(Adoption),
    /// Report on every subscriber, or on one.
    Report { subscriber: Option<u64>, reply: tokio::sync::oneshot::Sender<Vec<Report>> },
    /// Send newest values and close every connection, within the deadline.
    Finish { deadline: Duration },
}

/// One subscriber's accounts. Ticks are counted by the definitions of the protocol; `received`
/// and `pending` come from one reading of each instrument's tick.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The subscriber's number.
    pub id: u64,
    /// Where it connects from.
    pub peer: SocketAddr,
    /// The shard that owns it.
    pub shard: usize,
    /// Unconfirmed batches it may have.
    pub capacity: usize,
    /// Permits taken: batches in flight.
    pub in_flight: usize,
    /// Batches a second it gets at most; 0 for no ceiling.
    pub max_hz: f64,
    /// Instruments subscribed.
    pub instruments: usize,
    /// Names and patterns that wait for a first tick.
    pub waiting: usize,
    /// Ticks of its instruments since the one before each first value.
    pub received: u64,
    /// Quotes written.
    pub delivered: u64,
    /// Ticks skipped because a newer value stood for them.
    pub conflated: u64,
    /// Ticks since each last value sent.
    pub pending: u64,
    /// Ticks that were pending when their instrument was unsubscribed.
    pub withdrawn: u64,
    /// Batches sent.
    pub batches: u64,
    /// Whether its socket has not taken everything yet.
    pub blocked: bool,
    /// Bytes of batches that are not confirmed, as far as that is known.
    pub bytes_in_flight: u64,
    /// Bytes that may be, by the time allowed and the rate measured; `None` for any number.
    pub bytes_window: Option<u64>,
    /// Bytes a second that its line was measured to deliver; `None` while it keeps up.
    pub line_rate: Option<f64>,
}

/// How far the shard is in finishing. What changes after the last sweep is not waited for: a market
/// that goes on would keep every goodbye away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Finishing {
    No,
    LastSweep,
    Swept,
}

struct Seat<L> {
    session: Session<L>,
    /// Held for as long as the subscriber is connected.
    _admission: Option<OwnedPermit>,
}

/// The sessions of one shard.
pub(crate) struct Shard<L> {
    index: usize,
    shared: Arc<Shared>,
    limits: Arc<Limits>,
    seats: Vec<Option<Seat<L>>>,
    free: Vec<u32>,
    quotes: View<Quote>,
    volumes: View<Volume>,
    /// Instruments and volume keys the shard has looked at for patterns and waiting names.
    known_instruments: usize,
    known_volumes: usize,
    /// Sessions with patterns, waiting names or accounts.
    watchers: usize,
    ready: VecDeque<u32>,
    /// One entry for each armed session.
    timers: BTreeSet<(Instant, u32)>,
    feeds_version: u64,
    feed_versions: Vec<u64>,
    cadence: Cadence,
    /// Whether a sweep is due but waits for the cadence.
    sweep_waits: bool,
    finishing: Finishing,
    scratch: Scratch,
    /// How long the last turn took.
    lag: Duration,
    /// Bytes of operations obeyed in this turn.
    heard_bytes: usize,
    /// Links of sessions that have ended, for the reactor to forget.
    gone: Vec<L>,
}

impl<L: Link> Shard<L> {
    pub(crate) fn new(
        index: usize,
        shared: Arc<Shared>,
        quotes: View<Quote>,
        volumes: View<Volume>,
    ) -> Self {
        Self {
            index,
            limits: shared.control.limits(),
            feeds_version: 0,
            feed_versions: vec![0; shared.feeds.len()],
            shared,
            seats: Vec::new(),
            free: Vec::new(),
            quotes,
            volumes,
            known_instruments: 0,
            known_volumes: 0,
            watchers: 0,
            ready: VecDeque::new(),
            timers: BTreeSet::new(),
            cadence: Cadence::default(),
            sweep_waits: false,
            finishing: Finishing::No,
            scratch: Scratch::default(),
            lag: Duration::ZERO,
            heard_bytes: 0,
            gone: Vec::new(),
        }
    }

    /// How many sessions there are.
    pub(crate) fn len(&self) -> usize {
        self.seats.len() - self.free.len()
    }

    /// Takes over a connection; answers its seat.
    pub(crate) fn adopt(
        &mut self,
        link: L,
        early: Vec<u8>,
        peer: SocketAddr,
        admission: Option<OwnedPermit>,
        now: Instant,
    ) -> u32 {
        let subscriber = self.shared.control.join(peer, self.index);
        // The generation that the welcome tells is at least the one it joined under.
        self.look_at_limits();
        self.shared.stats.accepted.inc();
        let mut session = Session::new(subscriber, link, early, &self.limits, now);
        let welcome = self.welcome(&session);
        session.say(|out| out.extend_from_slice(&welcome));
        if self.finishing != Finishing::No {
            session.finish();
        }
        let seat = Some(Seat { session, _admission: admission });
        let index = match self.free.pop() {
            Some(index) => {
                self.seats[index as usize] = seat;
                index
            }
            None => {
                self.seats.push(seat);
                #[expect(clippy::cast_possible_truncation, reason = "admission bounds subscribers")]
                let index = (self.seats.len() - 1) as u32;
                index
            }
        };
        self.enqueue(index);
        index
    }

    fn welcome(&self, session: &Session<L>) -> Vec<u8> {
        let limits = protocol::WelcomeLimits {
            max_instruments: self.limits.max_instruments,
            max_message_bytes: self.limits.max_message_bytes,
            max_ops_per_s: self.limits.max_ops_per_s,
            max_batch_bytes: self.limits.max_batch_bytes,
        };
        let heartbeat = u64::try_from(self.limits.heartbeat.as_millis()).unwrap_or(u64::MAX);
        let mut out = Vec::new();
        protocol::write_welcome(
            session.subscriber.id(),
            &self.shared.epoch,
            heartbeat,
            self.limits.generation,
            session.effective(),
            &limits,
            &mut out,
        );
        out
    }

    /// A session's socket may have become readable or writable.
    pub(crate) fn stirred(&mut self, index: u32, readable: bool, now: Instant) {
        if let Some(seat) = self.seat(index) {
            if readable && !seat.session.readable {
                seat.session.readable_since = now;
            }
            seat.session.readable |= readable;
            self.enqueue(index);
        }
    }

    /// The other side of a session's socket has ended: it is read to its end.
    pub(crate) fn ends(&mut self, index: u32) {
        if let Some(seat) = self.seat(index) {
            seat.session.ends = true;
        }
    }

    /// The link of a session, for the reactor.
    pub(crate) fn link(&mut self, index: u32) -> Option<&mut L> {
        self.seat(index).map(|seat| &mut seat.session.link)
    }

    /// A session's subscriber.
    pub(crate) fn subscriber(&self, index: u32) -> Option<&Subscriber> {
        let seat = self.seats.get(index as usize)?.as_ref()?;
        Some(&seat.session.subscriber)
    }

    fn seat(&mut self, index: u32) -> Option<&mut Seat<L>> {
        self.seats.get_mut(index as usize)?.as_mut()
    }

    fn enqueue(&mut self, index: u32) {
        if let Some(Some(seat)) = self.seats.get_mut(index as usize)
            && !std::mem::replace(&mut seat.session.queued, true)
        {
            self.ready.push_back(index);
        }
    }

    /// Begins to close every connection: newest values, notice, close.
    pub(crate) fn finish(&mut self) {
        if self.finishing == Finishing::No {
            self.finishing = Finishing::LastSweep;
        }
        for index in self.occupied() {
            if let Some(seat) = self.seat(index) {
                seat.session.finish();
            }
            self.enqueue(index);
        }
    }

    fn occupied(&self) -> Vec<u32> {
        (0..).zip(&self.seats).filter(|(_, seat)| seat.is_some()).map(|(index, _)| index).collect()
    }

    /// Whether topics have changed that wait for nothing but a sweep.
    pub(crate) fn has_work(&self) -> bool {
        self.finishing != Finishing::Swept
            && (self.quotes.lane().has_work()
                || self.volumes.lane().has_work()
                || self.has_new_topics())
    }

    fn has_new_topics(&self) -> bool {
        self.watchers > 0
            && (self.shared.instruments.len() > self.known_instruments
                || self.shared.volume_keys.len() > self.known_volumes)
    }

    /// Tells how long the last turn took, and that it is over now; answers anew when the next is due.
    pub(crate) fn turned(&mut self, took: Duration, now: Instant) -> Option<Instant> {
        self.lag = took;
        self.cadence.turned(took, self.ready.is_empty(), self.limits.pace, now);
        self.due(now)
    }

    /// Whether a sweep waits for the cadence: the reactor then sleeps by time and needs no bell.
    pub(crate) fn is_pacing(&self) -> bool {
        self.sweep_waits
    }

    /// Links of the sessions that have ended since this was last asked.
    pub(crate) fn take_gone(&mut self) -> Vec<L> {
        std::mem::take(&mut self.gone)
    }

    /// Serves everybody once; answers when the next turn is due if nothing stirs before.
    pub(crate) fn turn(&mut self, now: Instant) -> Option<Instant> {
        self.look_at_limits();
        self.look_at_time(now);
        self.look_at_feeds();
        self.look_for_new_topics(now);
        self.sweep(now);
        let mut visits = 0;
        self.heard_bytes = 0;
        while visits < VISITS_A_TURN && self.heard_bytes < OPERATIONS_A_TURN {
            let Some(index) = self.ready.pop_front() else { break };
            visits += 1;
            self.visit(index, now);
        }
        self.due(now)
    }

    /// When the next turn is due if nothing stirs before.
    fn due(&self, now: Instant) -> Option<Instant> {
        if !self.ready.is_empty() {
            return Some(now);
        }
        let timer = self.timers.first().map(|&(at, _)| at);
        let sweep = self.sweep_waits.then(|| self.cadence.opens(self.limits.pace));
        timer.into_iter().chain(sweep).min()
    }

    fn look_at_limits(&mut self) {
        let limits = self.shared.control.limits();
        if limits.generation == self.limits.generation {
            return;
        }
        self.limits = limits;
        let generation = self.limits.generation;
        for index in self.occupied() {
            let Some(seat) = self.seat(index) else { continue };
            let session = &mut seat.session;
            let changed_in = session.subscriber.changed_in();
            if changed_in != session.changed_in && changed_in <= generation {
                session.changed_in = changed_in;
                session.limits_changed();
                self.enqueue(index);
            }
        }
    }

    fn look_at_time(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.timers.first() {
            if at > now {
                return;
            }
            self.timers.pop_first();
            let Self { seats, limits, .. } = self;
            let Some(Some(seat)) = seats.get_mut(index as usize) else { continue };
            seat.session.armed = None;
            if seat.session.tick(limits, now) {
                self.enqueue(index);
            } else {
                self.remove(index);
            }
        }
    }

    fn look_at_feeds(&mut self) {
        let version = self.shared.feeds.version();
        if version == self.feeds_version {
            return;
        }
        self.feeds_version = version;
        for feed in self.shared.feeds.ids() {
            let version = self.shared.feeds.get(feed).health_version();
            if std::mem::replace(&mut self.feed_versions[feed.index()], version) == version {
                continue;
            }
            for index in self.occupied() {
                let Self { seats, shared, .. } = self;
                let Some(Some(seat)) = seats.get_mut(index as usize) else { continue };
                if operations::follows(&seat.session, shared, feed) {
                    owe_status(&mut seat.session.status_due, feed);
                    self.enqueue(index);
                }
            }
        }
    }

    /// Gives new instruments and volume keys to the sessions whose patterns, names or accounts
    /// they match.
    fn look_for_new_topics(&mut self, now: Instant) {
        if self.watchers == 0 {
            // Operations look through what is known themselves.
            self.known_instruments = self.shared.instruments.len();
            self.known_volumes = self.shared.volume_keys.len();
            return;
        }
        while self.known_instruments < self.shared.instruments.len() {
            #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
            let id = InstrumentId(self.known_instruments as u32);
            self.known_instruments += 1;
            for index in self.occupied() {
                let Self { seats, shared, quotes, limits, .. } = self;
                let Some(Some(seat)) = seats.get_mut(index as usize) else { continue };
                if operations::claims(&mut seat.session, shared.instruments.name(id))
                    && seat.session.quotes.len() < limits.max_instruments
                {
                    operations::add_quote(&mut seat.session, index, id, quotes, now);
                    self.enqueue(index);
                }
                // A claimed name is waited for no more.
                self.count_watcher(index);
            }
        }
        while self.known_volumes < self.shared.volume_keys.len() {
            #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
            let id = VolumeId(self.known_volumes as u32);
            self.known_volumes += 1;
            for index in self.occupied() {
                let Self { seats, shared, volumes, .. } = self;
                let Some(Some(seat)) = seats.get_mut(index as usize) else { continue };
                if operations::wants_volume(&seat.session, shared, id) {
                    operations::add_volume(&mut seat.session, index, id, volumes, now);
                    self.enqueue(index);
                }
            }
        }
    }

    /// Takes what has changed, if the cadence allows it now.
    fn sweep(&mut self, now: Instant) {
        let late = std::mem::take(&mut self.sweep_waits);
        match self.finishing {
            Finishing::No => {}
            Finishing::LastSweep => self.finishing = Finishing::Swept,
            Finishing::Swept => return,
        }
        if !self.quotes.lane().has_work() && !self.volumes.lane().has_work() {
            return;
        }
        if now < self.cadence.opens(self.limits.pace) && self.finishing == Finishing::No {
            self.sweep_waits = true;
            return;
        }
        self.cadence.sweeps(now);
        self.shared.stats.sweeps.inc();
        let Self { seats, quotes, volumes, ready, cadence, .. } = self;
        let mut mark = |interest: Interest, quote: bool, tick: u64, accepted_at: Instant| {
            let Some(Some(seat)) = seats.get_mut(interest.session as usize) else { return };
            let session = &mut seat.session;
            let slots = if quote { &mut session.quotes } else { &mut session.volumes };
            slots.mark(interest.slot, tick, accepted_at);
            if late {
                session.paced();
            }
            // One that is held would only be found held again.
            if !session.held && !std::mem::replace(&mut session.queued, true) {
                ready.push_back(interest.session);
            }
        };
        quotes.sweep(|interest, mirror| mark(interest, true, mirror.tick, mirror.accepted_at));
        volumes.sweep(|interest, mirror| mark(interest, false, mirror.tick, mirror.accepted_at));
        if ready.is_empty() {
            cadence.found_nobody();
        }
    }

    /// One session's turn: hear it, tell it what it is owed, send it one batch.
    fn visit(&mut self, index: u32, now: Instant) {
        let lag = self.lag;
        let Some(seat) = self.seat(index) else { return };
        seat.session.queued = false;
        seat.session.lag = lag;
        if !self.hear(index, now) {
            self.remove(index);
            return;
        }
        let Self { seats, shared, limits, quotes, volumes, scratch, .. } = self;
        let Some(Some(seat)) = seats.get_mut(index as usize) else { return };
        let session = &mut seat.session;
        let flushed = session.flush(now);
        session.say_notices(limits.generation, |feed, out| {
            let feed = shared.feeds.get(feed);
            let (health, since) = feed.health();
            protocol::write_status(feed.name(), health, since, out);
        });
        let built = if flushed && session.flush(now) {
            session.build(quotes, volumes, limits, scratch, now, &mut |batch| {
                shared.stats.sent(&batch);
            })
        } else {
            Built::Gone
        };
        match built {
            Built::Gone => return self.remove(index),
            Built::More => self.enqueue(index),
            Built::Done => {}
        }
        self.arm(index);
    }

    /// Reads and obeys what a session's client says; `false` if the connection is over.
    fn hear(&mut self, index: u32, now: Instant) -> bool {
        let mut share = Share::default();
        loop {
            let Self { seats, limits, .. } = self;
            let Some(Some(seat)) = seats.get_mut(index as usize) else { return true };
            match seat.session.read(&mut share, limits, now) {
                Heard::Gone => return false,
                Heard::Nothing { more } => {
                    if more {
                        self.enqueue(index);
                    }
                    return true;
                }
                Heard::Binary(_) => {
                    let reason = "operations are JSON text, not binary";
                    seat.session.close(Close::Protocol, reason, now);
                }
                Heard::Text(text) => {
                    self.heard_bytes += text.len();
                    self.obey(index, &text, now);
                    if text.len() >= LONG_OPERATION {
                        self.enqueue(index);
                        return true;
                    }
                }
            }
        }
    }

    fn obey(&mut self, index: u32, text: &str, now: Instant) {
        let Self { seats, shared, limits, quotes, volumes, .. } = self;
        let Some(Some(seat)) = seats.get_mut(index as usize) else { return };
        let session = &mut seat.session;
        operations::obey(
            session,
            index,
            text,
            &mut operations::Reach { shared, limits, quotes, volumes, now },
        );
        self.count_watcher(index);
        if self.watchers > 0 {
            // Announced first, looked for after: a topic new in between is seen by one of both.
            self.look_for_new_topics(now);
        }
    }

    /// Counts a session among those who wait for new topics, or no longer.
    fn count_watcher(&mut self, index: u32) {
        let Self { seats, watchers, .. } = self;
        let Some(Some(seat)) = seats.get_mut(index as usize) else { return };
        let watching = is_watcher(&seat.session);
        match (std::mem::replace(&mut seat.session.watching, watching), watching) {
            (false, true) => *watchers += 1,
            (true, false) => *watchers -= 1,
            _ => return,
        }
        self.announce_watchers();
    }

    /// Tells the lanes whether anybody waits for new topics.
    fn announce_watchers(&self) {
        self.quotes.lane().want_new(self.watchers > 0);
        self.volumes.lane().want_new(self.watchers > 0);
    }

    fn arm(&mut self, index: u32) {
        let Self { seats, limits, timers, .. } = self;
        let Some(Some(seat)) = seats.get_mut(index as usize) else { return };
        let deadline = seat.session.deadline(limits);
        if seat.session.armed.is_none_or(|armed| deadline < armed) {
            if let Some(armed) = seat.session.armed.replace(deadline) {
                timers.remove(&(armed, index));
            }
            timers.insert((deadline, index));
        }
    }

    fn remove(&mut self, index: u32) {
        let Some(mut seat) = self.seats.get_mut(index as usize).and_then(Option::take) else {
            return;
        };
        let session = &mut seat.session;
        for (topic, slot) in session.quotes.topics() {
            self.quotes.remove(topic, Interest { session: index, slot });
        }
        for (topic, slot) in session.volumes.topics() {
            self.volumes.remove(topic, Interest { session: index, slot });
        }
        if let Some(armed) = session.armed {
            self.timers.remove(&(armed, index));
        }
        if session.watching {
            self.watchers -= 1;
            self.announce_watchers();
        }
        let close = session.subscriber.close_reason();
        if let Some(close) = close {
            self.shared.stats.closed[close.index()].inc();
        }
        tracing::debug!(subscriber = session.subscriber.id(), ?close, "a subscriber is gone");
        self.shared.control.leave(&session.subscriber);
        self.free.push(index);
        self.gone.push(seat.session.link);
    }

    /// Ends a session without a word.
    pub(crate) fn drop_session(&mut self, index: u32) {
        self.remove(index);
    }

    /// The accounts of one subscriber, or of all.
    pub(crate) fn report(&self, subscriber: Option<u64>) -> Vec<Report> {
        self.seats
            .iter()
            .flatten()
            .map(|seat| &seat.session)
            .filter(|session| subscriber.is_none_or(|id| id == session.subscriber.id()))
            .map(|session| self.report_one(session))
            .collect()
    }

    fn report_one(&self, session: &Session<L>) -> Report {
        let subscriber: &Subscriber = &session.subscriber;
        let ticks = session.quotes.ticks(|topic| self.quotes.tick(topic));
        let Meters { delivered, conflated, withdrawn, received_before, batches } = session.meters;
        let held = subscriber.limiter().snapshot();
        let (bytes_in_flight, bytes_window) = session.in_flight_bytes(&self.limits);
        Report {
            id: subscriber.id(),
            peer: subscriber.peer(),
            shard: self.index,
            capacity: held.capacity,
            in_flight: held.active,
            max_hz: session.effective().max_hz,
            instruments: session.quotes.len(),
            waiting: session.waiting.len() + session.patterns.len(),
            received: received_before + ticks.received,
            delivered,
            conflated,
            pending: ticks.pending,
            withdrawn,
            batches,
            blocked: session.is_blocked(),
            bytes_in_flight,
            bytes_window,
            line_rate: session.line_rate(),
        }
    }
}

fn is_watcher<L>(session: &Session<L>) -> bool {
    !session.patterns.is_empty() || !session.waiting.is_empty() || !session.accounts.is_empty()
}

/// Notes that a client is to be told of a feed's status, once however often it changes.
pub(crate) fn owe_status(due: &mut Vec<FeedId>, feed: FeedId) {
    if !due.contains(&feed) {
        due.push(feed);
    }
}
