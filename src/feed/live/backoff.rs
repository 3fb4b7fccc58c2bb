//! How long to wait before the next attempt to connect.

use std::time::Duration;

use crate::clock::Instant;
use crate::feed::seeded::Seeded;

/// Waits that double from the first to the longest, each shortened by a random part of up to a half,
/// so that many feeds do not come back in step. They start over once a connection has given data and
/// has stood for at least the wait before it: a venue that takes every connection and ends it at
/// once is not asked at full speed for ever.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
    last: Duration,
    connected: Option<Instant>,
    gave_data: bool,
    jitter: Seeded,
}

impl Backoff {
    /// Waits from `first` to `longest`, their random part from `seed`.
    #[must_use]
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self {
            first,
            longest: longest.max(first),
            next: first,
            last: Duration::ZERO,
            connected: None,
            gave_data: false,
            jitter: Seeded::new(seed),
        }
    }

    /// A connection stands.
    pub fn connected(&mut self, now: Instant) {
        self.connected = Some(now);
        self.gave_data = false;
    }

    /// The connection has given data.
    pub fn gave_data(&mut self) {
        self.gave_data = true;
    }

    /// The connection is over, or an attempt has failed: how long to wait.
    pub fn wait(&mut self, now: Instant) -> Duration {
        let stood = self.connected.take().map(|since| now.since(since));
        if self.gave_data && stood.is_some_and(|stood| stood >= self.last) {
            self.next = self.first;
        }
        let whole = u64::try_from(self.next.as_nanos()).unwrap_or(u64::MAX);
        self.next = (self.next * 2).min(self.longest);
        self.last = Duration::from_nanos(whole - self.jitter.below(whole / 2 + 1));
        self.last
    }

    /// The longest that the next wait can be.
    #[must_use]
    pub fn at_most(&self) -> Duration {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(1);

    #[test]
    fn waits_double_up_to_the_longest_and_start_over_after_a_good_connection() {
        let mut backoff = Backoff::new(FIRST, LONGEST, 1);
        let mut now = Instant::default();
        for whole in [100, 200, 400, 800, 1000, 1000] {
            let whole = Duration::from_millis(whole);
            let wait = backoff.wait(now);
            assert!(wait <= whole && wait >= whole / 2, "{wait:?} of {whole:?}");
        }
        backoff.connected(now);
        backoff.gave_data();
        now = now + LONGEST;
        assert!(backoff.wait(now) <= FIRST);
    }

    #[test]
    fn a_venue_that_takes_connections_and_ends_them_at_once_is_asked_ever_less() {
        let mut backoff = Backoff::new(FIRST, LONGEST, 1);
        let mut now = Instant::default();
        for _ in 0..6 {
            backoff.connected(now);
            backoff.gave_data();
            now = now + Duration::from_millis(1);
            now = now + backoff.wait(now);
        }
        assert_eq!(backoff.at_most(), LONGEST);
    }

    #[test]
    fn two_feeds_do_not_come_back_in_step() {
        let waits = |seed| {
            let mut backoff = Backoff::new(FIRST, LONGEST, seed);
            [(); 4].map(|()| backoff.wait(Instant::default()))
        };
        assert_ne!(waits(1), waits(2));
    }
}
