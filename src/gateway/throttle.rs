//! The rate window of one subscriber: at most `max_hz` batches a second.
//!
//! The first batch after a quiet window goes at once; the next waits until the window opens again,
//! and what changes meanwhile is conflated. Nothing is lost at the end of a burst: whoever finds
//! the window closed asks when it [opens](Window::opens) and comes back then.

use std::time::Duration;

use crate::clock::Instant;

/// Whether a batch may go now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    max_hz: f64,
    opens: Instant,
    last: Option<Instant>,
}

impl Window {
    pub(crate) fn new(max_hz: f64) -> Self {
        Self { max_hz, opens: Instant::default(), last: None }
    }

    /// The rate in force; 0 for none.
    pub(crate) fn max_hz(&self) -> f64 {
        self.max_hz
    }

    /// Changes the rate; it holds from the last batch on, so a change never grants a burst.
    pub(crate) fn set_max_hz(&mut self, max_hz: f64) {
        self.max_hz = max_hz;
        self.opens = self.last.map_or(Instant::default(), |last| last + self.interval());
    }

    fn interval(&self) -> Duration {
        if self.max_hz > 0.0 { Duration::from_secs_f64(1.0 / self.max_hz) } else { Duration::ZERO }
    }

    pub(crate) fn is_open(&self, now: Instant) -> bool {
        now >= self.opens
    }

    /// When the next batch may go.
    pub(crate) fn opens(&self) -> Instant {
        self.opens
    }

    /// A batch has gone.
    pub(crate) fn spend(&mut self, now: Instant) {
        self.last = Some(now);
        self.opens = now + self.interval();
    }
}

/// The smaller of the operator's ceiling and the client's wish, where 0 means none.
pub(crate) fn effective_hz(ceiling: f64, wish: f64) -> f64 {
    match (ceiling > 0.0, wish > 0.0) {
        (true, true) => ceiling.min(wish),
        (true, false) => ceiling,
        _ => wish,
    }
}

/// A budget of operations that refills evenly: at most `per_second` in a burst, and in the long run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    left: f64,
    refilled: Instant,
}

impl Budget {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Self { left: f64::from(per_second), refilled: now }
    }

    /// Takes one; `false` if none is left.
    pub(crate) fn take(&mut self, per_second: u32, now: Instant) -> bool {
        let most = f64::from(per_second);
        let refill = now.since(self.refilled).as_secs_f64() * most;
        self.left = (self.left + refill).min(most);
        self.refilled = now;
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn the_first_goes_at_once_and_the_next_when_the_window_opens() {
        let mut window = Window::new(10.0);
        assert!(window.is_open(ms(5)));
        window.spend(ms(5));
        assert!(!window.is_open(ms(104)));
        assert_eq!(window.opens(), ms(105));
        assert!(window.is_open(ms(105)));
    }

    #[test]
    fn a_change_of_rate_counts_from_the_last_batch() {
        let mut window = Window::new(1.0);
        window.spend(ms(1_000));
        window.set_max_hz(10.0);
        assert_eq!(window.opens(), ms(1_100));
        window.set_max_hz(0.0);
        assert!(window.is_open(ms(1_000)));
    }

    #[test]
    fn the_smaller_wish_wins_and_zero_is_no_wish() {
        for (ceiling, wish, expected) in
            [(0.0, 0.0, 0.0), (5.0, 0.0, 5.0), (0.0, 5.0, 5.0), (5.0, 10.0, 5.0), (10.0, 5.0, 5.0)]
        {
            assert_eq!(effective_hz(ceiling, wish).to_bits(), f64::to_bits(expected));
        }
    }

    #[test]
    fn a_budget_allows_its_burst_and_its_rate_and_no_more() {
        let mut budget = Budget::new(100, ms(0));
        let burst = (0..200).filter(|_| budget.take(100, ms(0))).count();
        assert_eq!(burst, 100);
        let later = (0..200).filter(|_| budget.take(100, ms(100))).count();
        assert_eq!(later, 10);
    }
}
