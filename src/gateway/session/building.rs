//! What a session sends: one batch at a time, and why it was held.

use std::time::Duration;

use super::{Phase, Session};
use crate::board::Topic;
use crate::clock::Instant;
use crate::gateway::close::Close;
use crate::gateway::confirm::Occasion;
use crate::gateway::control::Limits;
use crate::gateway::frames;
use crate::gateway::outbox::Link;
use crate::gateway::protocol::{self, BatchKind, Confirm, Why};
use crate::gateway::slots::Sent;
use crate::gateway::view::View;
use crate::market::{Quote, Volume};

/// When a client may come back after a shutdown.
const RETRY_AFTER_MS: u64 = 1000;

/// Room before a batch's values for the frame's header and the batch's head.
const ROOM: usize = frames::MAX_HEADER + protocol::MAX_BATCH_HEAD;

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

/// Where a batch is put together; one a shard, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    frame: Vec<u8>,
    head: Vec<u8>,
}

impl<L: Link> Session<L> {
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
        self.held = false;
        if !self.is_open() {
            return Built::Done;
        }
        let finishing = matches!(self.phase, Phase::Finishing);
        let Some(kind) = self.next_kind().filter(|_| !finishing || self.may_finish_with_values())
        else {
            self.hold = None;
            return if finishing { self.say_goodbye(now) } else { self.ping_late(now) };
        };
        if !self.outbox.is_empty() {
            self.held_by(Why::Socket);
            return Built::Done;
        }
        let mut most = limits.max_batch_bytes;
        if !finishing {
            if !self.window.is_open(now) {
                self.waits_for_window = true;
                self.held_by(Why::Rate);
                return self.ping_tail(now);
            }
            let room = self.room(limits, now);
            let Some(permit) = room.and_then(|_| self.subscriber.limiter().try_acquire().ok())
            else {
                self.held_by(Why::Capacity);
                return self.ping_tail(now);
            };
            // The permit comes back with the batch's confirmation, or goes with the session.
            permit.forget();
            most = room.unwrap_or(most);
        }
        self.window.spend(now);
        let (batch, start) = self.write_batch(kind, quotes, volumes, most, scratch, now);
        self.meters.batches += 1;
        sent(batch);
        let more = self.next_kind().is_some();
        self.batches.wrote(batch.bytes, now);
        if !finishing && self.confirm == Confirm::Pong {
            let pings = self.pings_now(batch.bytes, more, limits, now);
            self.flow.wrote(self.batches.sent(), batch.bytes, pings, more, now);
            if pings {
                frames::write_batch_ping(self.batches.ping(), &mut scratch.frame);
            }
        }
        if self.outbox.send(&scratch.frame[start..], &mut self.link).is_err() || !self.flush(now) {
            return Built::Gone;
        }
        if more || finishing { Built::More } else { Built::Done }
    }

    /// How long a batch may be now, by what the line delivers; `None` if it may not go. Only pongs
    /// measure a line: a client may acknowledge when it pleases.
    fn room(&self, limits: &Limits, now: Instant) -> Option<usize> {
        if self.confirm != Confirm::Pong {
            return Some(limits.max_batch_bytes);
        }
        self.flow.room(limits.max_in_flight, self.lag, limits.max_batch_bytes, now)
    }

    /// Whether a ping rides behind the batch of so many bytes, which is not counted as in flight yet.
    fn pings_now(&self, bytes: usize, more: bool, limits: &Limits, now: Instant) -> bool {
        let held = self.subscriber.limiter().snapshot();
        let window = self.flow.window(limits.max_in_flight, self.lag);
        let full = window.is_some_and(|window| self.flow.in_flight() + bytes as u64 > window / 2);
        self.batches.wants_ping(Occasion {
            capacity: held.capacity,
            more_pending: more,
            exhausted: held.room() == 0 || full,
            now,
        })
    }

    /// Nothing awaits sending. What went without a ping because more was likely to follow gets it
    /// when nothing has for a while.
    fn ping_late(&mut self, now: Instant) -> Built {
        match self.tail_due() {
            Some(due) if due <= now => self.ping_tail(now),
            _ => Built::Done,
        }
    }

    /// No batch goes now, so one that went without a ping gets it: more was to follow and was
    /// withdrawn since, or waits for the window, or for a permit that a shrink has taken.
    fn ping_tail(&mut self, now: Instant) -> Built {
        if self.confirm == Confirm::Pong
            && self.outbox.is_empty()
            && self.batches.tail_due().is_some()
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
        most: usize,
        scratch: &mut Scratch,
        now: Instant,
    ) -> (Batch, usize) {
        // The head tells how long the oldest value was held, which is known once the values are
        // written; so they are written first, with room before them for frame header and head.
        let Scratch { frame, head } = scratch;
        frame.clear();
        frame.resize(ROOM, 0);
        let most = ROOM + most.saturating_sub(protocol::MAX_BATCH_HEAD);
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
