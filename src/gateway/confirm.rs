//! Which batches are confirmed, and when a ping is due.
//!
//! Batches are numbered from 1 without gaps, so what is in flight is a difference. A confirmation
//! of batch *n* confirms every batch up to *n*, because a client may answer only its latest ping;
//! one above the last batch sent means nothing and is ignored.
//!
//! # When to ping
//!
//! A ping and its pong cost about a third of a small batch and next to nothing of a large one. So
//! one rides behind every large batch, behind the last that a permit was left for, and at least
//! every half window. Behind small batches in quick succession it can wait for the next; if none
//! comes after all, it follows by itself after [`TAIL`]. A batch after a quiet spell has its ping at
//! once, in the same write: none may follow soon.

use std::time::Duration;

use crate::clock::Instant;

/// Bytes since the last ping that have one ride behind them.
const LARGE: usize = 16 * 1024;

/// Batches closer than this follow each other; a ping rides at least so often.
const FLOWING: Duration = Duration::from_millis(10);

/// A batch without a ping gets one after this, whatever happens.
const TAIL: Duration = Duration::from_millis(25);

/// The numbers of one subscriber's batches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batches {
    sent: u64,
    confirmed: u64,
    pinged: u64,
    bytes_since: usize,
    /// When the first batch since the last ping was sent.
    first_since: Instant,
    last: Option<Instant>,
    /// Whether the last batch came after a quiet spell.
    lone: bool,
}

/// What a ping may have to be sent for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occasion {
    /// Batches that may be in flight.
    pub(crate) capacity: usize,
    /// Whether another batch will follow at once.
    pub(crate) more_pending: bool,
    /// Whether nothing more may be sent until something is confirmed.
    pub(crate) exhausted: bool,
    /// Now.
    pub(crate) now: Instant,
}

impl Batches {
    /// The number of the next batch.
    pub(crate) fn next(&mut self) -> u64 {
        self.sent += 1;
        self.sent
    }

    /// The batch numbered last has been written.
    pub(crate) fn wrote(&mut self, bytes: usize, now: Instant) {
        if self.sent - self.pinged == 1 {
            self.bytes_since = 0;
            self.first_since = now;
        }
        self.bytes_since += bytes;
        self.lone = self.last.is_none_or(|last| now.since(last) >= FLOWING);
        self.last = Some(now);
    }

    /// The number of the last batch.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Confirms every batch up to `batch`; answers how many that were not confirmed before.
    pub(crate) fn confirm(&mut self, batch: u64) -> u64 {
        if batch > self.sent || batch <= self.confirmed {
            return 0;
        }
        let count = batch - self.confirmed;
        self.confirmed = batch;
        count
    }

    /// Confirms every batch sent; answers how many that were not confirmed before.
    pub(crate) fn confirm_all(&mut self) -> u64 {
        self.confirm(self.sent)
    }

    pub(crate) fn unconfirmed(&self) -> u64 {
        self.sent - self.confirmed
    }

    /// Whether a ping is to ride behind the batch just written.
    pub(crate) fn wants_ping(&self, occasion: Occasion) -> bool {
        let Occasion { capacity, more_pending, exhausted, now } = occasion;
        let since = self.sent - self.pinged;
        since > 0
            && (exhausted
                || since >= (capacity as u64 / 2).max(1)
                || self.bytes_since >= LARGE
                || !more_pending && (self.lone || now.since(self.first_since) >= FLOWING))
    }

    /// When a batch that went without a ping is to have one of its own.
    pub(crate) fn tail_due(&self) -> Option<Instant> {
        (self.sent > self.pinged).then(|| self.first_since + TAIL)
    }

    /// A ping with the number of the last batch has been written.
    pub(crate) fn ping(&mut self) -> u64 {
        self.pinged = self.sent;
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn sent(count: u64) -> Batches {
        let mut batches = Batches::default();
        for number in 1..=count {
            assert_eq!(batches.next(), number);
            batches.wrote(100, ms(100 + number));
        }
        batches
    }

    fn at(now: u64) -> Occasion {
        Occasion { capacity: 8, more_pending: false, exhausted: false, now: ms(now) }
    }

    #[test]
    fn a_confirmation_covers_all_before_it_once() {
        let mut batches = sent(5);
        assert_eq!(batches.confirm(3), 3);
        assert_eq!(batches.confirm(3), 0);
        assert_eq!(batches.confirm(2), 0);
        assert_eq!(batches.unconfirmed(), 2);
        assert_eq!(batches.confirm_all(), 2);
        assert_eq!(batches.unconfirmed(), 0);
    }

    #[test]
    fn a_confirmation_above_the_last_batch_is_ignored() {
        let mut batches = sent(2);
        assert_eq!(batches.confirm(3), 0);
        assert_eq!(batches.unconfirmed(), 2);
    }

    #[test]
    fn a_batch_after_a_quiet_spell_has_its_ping_at_once() {
        let mut batches = sent(1);
        assert!(batches.wants_ping(at(101)));
        assert!(!batches.wants_ping(Occasion { more_pending: true, ..at(101) }));
        assert!(batches.wants_ping(Occasion { more_pending: true, exhausted: true, ..at(101) }));
        assert!(batches.wants_ping(Occasion { more_pending: true, capacity: 1, ..at(101) }));
        assert_eq!(batches.ping(), 1);
        assert!(!batches.wants_ping(Occasion { exhausted: true, ..at(101) }), "it has one already");
    }

    #[test]
    fn small_batches_in_quick_succession_share_a_ping_and_the_last_is_not_forgotten() {
        let mut batches = sent(1);
        batches.ping();
        for now in 102..105 {
            batches.next();
            batches.wrote(100, ms(now));
            assert!(!batches.wants_ping(at(now)), "at {now}");
            assert_eq!(batches.tail_due(), Some(ms(127)));
        }
        batches.next();
        batches.wrote(100, ms(105));
        assert!(batches.wants_ping(at(105)), "half a window");
        assert!(batches.wants_ping(Occasion { capacity: 100, ..at(112) }), "or some time");
        batches.ping();
        assert_eq!(batches.tail_due(), None);
    }

    #[test]
    fn every_large_batch_has_a_ping() {
        let mut batches = sent(1);
        batches.ping();
        batches.next();
        batches.wrote(LARGE, ms(102));
        assert!(batches.wants_ping(Occasion { more_pending: true, ..at(102) }));
    }
}
