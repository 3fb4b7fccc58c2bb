//! Which batches are confirmed, and when a ping is due.
//!
//! Batches are numbered from 1 without gaps, so what is in flight is a difference. A confirmation
//! of batch *n* confirms every batch up to *n*, because a client may answer only its latest ping;
//! one above the last batch sent means nothing and is ignored.

/// The numbers of one subscriber's batches.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batches {
    sent: u64,
    confirmed: u64,
    pinged: u64,
}

impl Batches {
    /// Numbers the next batch.
    pub(crate) fn next(&mut self) -> u64 {
        self.sent += 1;
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

    /// Whether a ping is to ride behind the batch just sent. Half a window apart is enough, but
    /// the last before a pause must have one, or its permits would never come back: when nothing
    /// awaits sending any more, and when no permit is left.
    pub(crate) fn wants_ping(&self, capacity: usize, more_pending: bool, exhausted: bool) -> bool {
        let since = self.sent - self.pinged;
        since > 0 && (!more_pending || exhausted || since >= (capacity as u64 / 2).max(1))
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

    fn sent(count: u64) -> Batches {
        let mut batches = Batches::default();
        for number in 1..=count {
            assert_eq!(batches.next(), number);
        }
        batches
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
    fn a_ping_rides_behind_the_last_batch_before_any_pause() {
        let mut batches = sent(1);
        assert!(!batches.wants_ping(8, true, false));
        assert!(batches.wants_ping(8, false, false), "nothing more to send");
        assert!(batches.wants_ping(8, true, true), "no permit left");
        assert_eq!(batches.ping(), 1);
        assert!(!batches.wants_ping(8, false, true), "it has one already");
        for _ in 0..3 {
            batches.next();
            assert!(!batches.wants_ping(8, true, false));
        }
        batches.next();
        assert!(batches.wants_ping(8, true, false), "half a window");
        assert!(sent(1).wants_ping(1, true, false));
    }
}
