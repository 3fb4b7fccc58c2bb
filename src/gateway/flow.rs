//! How much may be on its way to one subscriber, by the speed at which it is confirmed.
//!
//! A permit caps *batches* in flight; over a slow line eight of them are seconds of old prices.
//! Here *bytes* in flight are held to what the line delivers in a set time: a window of
//! `rate × (least delay + time)`, where rate and least delay are measured from confirmations. A
//! batch is cut to the room that is left in the window, so a slow line gets small batches of newest
//! values, and what it cannot take is conflated here instead of growing old on the way.
//!
//! # The measurement
//!
//! Each batch whose confirmation is asked for leaves a *mark*: the bytes sent and confirmed so far.
//! Its confirmation is a sample: bytes confirmed since over the time that took. A sample of a
//! subscriber that was sent everything it wanted says only that the line is *at least* so fast, so it
//! raises the rate and never lowers it; one with more pending is taken both ways. Until the first of
//! these the window is [`FIRST`] bytes, which a fast line confirms in a moment. A confirmation that
//! came without delay raises the rate by a quarter besides, so a line that has become faster is
//! found out.
//!
//! How much of a delay is the line's own and how much is what we have put into it cannot be told
//! while the line is full. So from time to time it is let run empty, and one small batch, a *probe*,
//! goes alone; its delay is the least.
//!
//! The shard's own time must not look like the line's: a confirmation is noticed up to a turn late
//! and a turn writes many batches. That *lag* is added to the time allowed, so a gateway that is
//! itself the slowest part shrinks nobody's batches.
//!
//! # Invariants
//!
//! 1. `confirmed <= sent`; with no batch unconfirmed they are equal.
//! 2. With nothing in flight there is room, for at least [`LEAST`] bytes or [`LEAST_TIMES`] the time.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Instant;

/// Batches are not cut below this on account of the line: a send costs about the same up to here.
const LEAST: usize = 4096;

/// Unless these bytes take the line so many times the time allowed.
const LEAST_TIMES: f64 = 8.0;

/// Marks kept; with more confirmations outstanding, those between are not measured.
const MARKS: usize = 8;

/// A batch that holds one value goes whatever its length; so much longer may a probe be.
const HEADS: usize = 1024;

/// The window of a line that nothing is known of.
const FIRST: u64 = 16 * 1024;

/// Bytes of a probe, and how long its answer is believed.
const PROBE: usize = 1024;
const PROBE_AGAIN: Duration = Duration::from_secs(10);

/// The weight of a sample that lowers the rate; one that raises it weighs twice as much.
const WEIGHT: f64 = 0.25;

#[derive(Clone, Copy, Debug)]
struct Mark {
    batch: u64,
    at: Instant,
    /// Bytes sent up to and with the batch.
    sent: u64,
    /// Bytes confirmed when it was sent, and since when the line had been busy with the next.
    confirmed: u64,
    busy_since: Instant,
    /// Whether more awaited sending.
    more: bool,
    /// Whether it went alone, to find the least delay.
    probe: bool,
}

/// What is known of one subscriber's line.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    sent: u64,
    confirmed: u64,
    busy_since: Instant,
    marks: VecDeque<Mark>,
    /// Bytes a second; `None` while the line has not been seen to be the slowest part.
    rate: Option<f64>,
    least_delay: Option<Duration>,
    /// When the line is to be probed, once it is known to be the slowest part.
    probe_due: Instant,
}

impl Flow {
    /// Bytes sent and not confirmed.
    pub(crate) fn in_flight(&self) -> u64 {
        self.sent - self.confirmed
    }

    /// The rate measured, in bytes a second, if the line has been the slowest part.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// A batch was written; `marked` says that its confirmation is awaited, `more` that more
    /// awaited sending then.
    pub(crate) fn wrote(
        &mut self,
        batch: u64,
        bytes: usize,
        marked: bool,
        more: bool,
        at: Instant,
    ) {
        if self.in_flight() == 0 {
            self.busy_since = at;
        }
        self.sent += bytes as u64;
        if marked && self.marks.len() < MARKS {
            let Self { sent, confirmed, busy_since, .. } = *self;
            let alone = sent - confirmed == bytes as u64 && bytes <= PROBE + HEADS;
            let probe = alone && self.probes(at);
            if probe {
                self.probe_due = at + PROBE_AGAIN;
            }
            self.marks.push_back(Mark { batch, at, sent, confirmed, busy_since, more, probe });
        }
    }

    /// Every batch up to `batch` is confirmed, as was seen at `at`, `lag` late at most; `all` says
    /// that nothing is unconfirmed now. Answers how long the newest that was measured took.
    pub(crate) fn confirmed(
        &mut self,
        batch: u64,
        all: bool,
        at: Instant,
        lag: Duration,
    ) -> Option<Duration> {
        let mut newest = None;
        while let Some(&mark) = self.marks.front().filter(|mark| mark.batch <= batch) {
            newest = Some(mark);
            self.marks.pop_front();
        }
        let delay = newest.map(|mark| {
            self.confirmed = self.confirmed.max(mark.sent);
            self.busy_since = at;
            self.learn(mark, at, lag)
        });
        if all {
            self.confirmed = self.sent;
            self.marks.clear();
        }
        delay
    }

    fn learn(&mut self, mark: Mark, at: Instant, lag: Duration) -> Duration {
        let delay = at.since(mark.at);
        let took = at.since(mark.busy_since).as_secs_f64().max(1e-6);
        let sample = (mark.sent - mark.confirmed) as f64 / took;
        let least = match (self.least_delay, self.rate) {
            // A slow line takes its time for the probe's bytes too.
            (_, Some(rate)) if mark.probe => {
                let bytes = (mark.sent - mark.confirmed) as f64;
                let took = Duration::try_from_secs_f64(bytes / rate).unwrap_or(delay);
                delay.saturating_sub(took)
            }
            (Some(least), _) => least.min(delay),
            (None, _) => delay,
        };
        self.least_delay = Some(least);
        let at_once = delay <= least + least / 4 + lag;
        self.rate = match self.rate {
            // A probe's few bytes say nothing of the rate.
            rate if mark.probe => rate,
            None => mark.more.then_some(sample),
            Some(rate) if sample >= rate => {
                let probing = if mark.more && at_once { rate * (1.0 + WEIGHT) } else { rate };
                Some(probing.max(rate + (sample - rate) * 2.0 * WEIGHT))
            }
            Some(rate) if mark.more && at_once => Some(rate * (1.0 + WEIGHT)),
            Some(rate) if mark.more => Some(rate + (sample - rate) * WEIGHT),
            Some(rate) => Some(rate),
        };
        delay
    }

    /// Whether the line is to be probed now.
    fn probes(&self, now: Instant) -> bool {
        self.rate.is_some() && now >= self.probe_due
    }

    /// Bytes that may be in flight so that they arrive within `time`, beyond the line's least delay
    /// and the shard's `lag`; `None` for any number. A zero `time` is no bound.
    pub(crate) fn window(&self, time: Duration, lag: Duration) -> Option<u64> {
        if time.is_zero() {
            return None;
        }
        let Some(rate) = self.rate else { return Some(FIRST) };
        let least = (rate * LEAST_TIMES * time.as_secs_f64()).min(LEAST as f64);
        let allowed = self.least_delay.unwrap_or_default() + time + lag * 2;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let bytes = (rate * allowed.as_secs_f64()).max(least) as u64;
        Some(bytes)
    }

    /// How long a batch may be now, at most `most`; `None` if none may go. A batch waits until half
    /// the window is free, or it would be cut to crumbs.
    pub(crate) fn room(
        &self,
        time: Duration,
        lag: Duration,
        most: usize,
        now: Instant,
    ) -> Option<usize> {
        let Some(window) = self.window(time, lag) else { return Some(most) };
        let in_flight = self.in_flight();
        if self.probes(now) {
            return (in_flight == 0).then_some(most.min(PROBE));
        }
        if in_flight > 0 && in_flight > window / 2 {
            return None;
        }
        Some(usize::try_from(window - in_flight).unwrap_or(usize::MAX).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: Duration = Duration::from_millis(5);

    /// A line of a rate and a latency behind a subscriber that always wants more, up to `most`
    /// bytes a batch and eight batches in flight.
    struct Line {
        flow: Flow,
        now: u64,
        free_at: u64,
        batch: u64,
        /// When each batch is confirmed.
        coming: VecDeque<(u64, u64)>,
        sizes: Vec<usize>,
        /// Time from writing a batch to its confirmation, in nanoseconds.
        delays: Vec<u64>,
    }

    impl Line {
        fn new() -> Self {
            Self {
                flow: Flow::default(),
                now: 1,
                free_at: 0,
                batch: 0,
                coming: VecDeque::new(),
                sizes: Vec::new(),
                delays: Vec::new(),
            }
        }

        /// Runs for a time; `want` is what a batch would hold if nothing held it.
        fn run(&mut self, span: Duration, bytes_a_second: f64, latency: Duration, want: usize) {
            self.sizes.clear();
            self.delays.clear();
            let until = self.now + span.as_nanos() as u64;
            while self.now < until {
                while let Some(&(batch, at)) = self.coming.front().filter(|due| due.1 <= self.now) {
                    self.coming.pop_front();
                    let seen = Instant::from_nanos(at);
                    let all = self.coming.is_empty();
                    let delay = self.flow.confirmed(batch, all, seen, Duration::ZERO);
                    self.delays.extend(delay.map(|delay| delay.as_nanos() as u64));
                }
                let now = Instant::from_nanos(self.now);
                if self.coming.len() < 8
                    && let Some(room) = self.flow.room(T, Duration::ZERO, 65_536, now)
                {
                    let size = room.min(want).max(200);
                    self.batch += 1;
                    self.flow.wrote(self.batch, size, true, want > room || want >= 65_536, now);
                    let takes = (size as f64 / bytes_a_second * 1e9) as u64;
                    self.free_at = self.free_at.max(self.now) + takes;
                    let arrives = self.free_at + latency.as_nanos() as u64;
                    self.coming.push_back((self.batch, arrives));
                    self.sizes.push(size);
                }
                self.now += 20_000;
            }
        }

        fn delivered(&self) -> f64 {
            self.flow.confirmed as f64
        }
    }

    fn median(values: &[u64]) -> u64 {
        let mut values = values.to_vec();
        values.sort_unstable();
        values[values.len() / 2]
    }

    const LOOP: Duration = Duration::from_micros(60);

    #[test]
    fn a_slow_line_gets_small_batches_that_arrive_within_the_time_and_is_kept_busy() {
        let mut line = Line::new();
        line.run(Duration::from_secs(1), 2e6, LOOP, 200_000);
        let before = line.delivered();
        line.run(Duration::from_secs(2), 2e6, LOOP, 200_000);
        let most = line.delays.iter().max().copied().unwrap();
        assert!(most <= 12_000_000, "{most} ns in flight");
        assert!(median(&line.delays) <= 7_000_000, "{} ns", median(&line.delays));
        let rate = (line.delivered() - before) / 2.0;
        assert!(rate > 1.8e6, "{rate} bytes a second of 2,000,000");
    }

    #[test]
    fn a_fast_line_is_sent_whole_batches() {
        let mut line = Line::new();
        line.run(Duration::from_secs(1), 400e6, LOOP, 200_000);
        line.run(Duration::from_secs(1), 400e6, LOOP, 200_000);
        assert!(
            line.sizes.iter().filter(|&&size| size == 65_536).count() * 100 > line.sizes.len() * 95
        );
    }

    #[test]
    fn a_subscriber_that_gets_all_it_wants_is_never_held_whatever_its_delay() {
        let mut line = Line::new();
        line.run(Duration::from_secs(1), 1e6, Duration::from_millis(80), 900);
        assert_eq!(line.flow.rate(), None);
        let now = Instant::from_nanos(line.now);
        assert!(line.flow.room(T, Duration::ZERO, 65_536, now).is_some());
    }

    #[test]
    fn a_long_fat_line_is_used_although_its_latency_is_above_the_time() {
        let mut line = Line::new();
        let latency = Duration::from_millis(40);
        line.run(Duration::from_secs(4), 10e6, latency, 200_000);
        let before = line.delivered();
        line.run(Duration::from_secs(2), 10e6, latency, 200_000);
        let rate = (line.delivered() - before) / 2.0;
        assert!(rate > 6e6, "{rate} bytes a second of 10,000,000");
        assert!(median(&line.delays) < 60_000_000, "{} ns", median(&line.delays));
    }

    #[test]
    fn a_line_of_64_kbit_gets_a_few_quotes_at_a_time() {
        let mut line = Line::new();
        line.run(Duration::from_secs(30), 8e3, Duration::from_millis(20), 200_000);
        line.run(Duration::from_secs(30), 8e3, Duration::from_millis(20), 200_000);
        assert!(line.sizes.iter().all(|&size| size <= 1_200), "{:?}", line.sizes);
        assert!(median(&line.delays) < 160_000_000, "{} ns", median(&line.delays));
    }

    #[test]
    fn a_line_that_becomes_faster_is_found_out() {
        let mut line = Line::new();
        line.run(Duration::from_secs(2), 1e6, LOOP, 200_000);
        assert!(*line.sizes.last().unwrap() < 10_000);
        line.run(Duration::from_secs(2), 400e6, LOOP, 200_000);
        assert_eq!(*line.sizes.last().unwrap(), 65_536);
    }

    #[test]
    fn a_reader_that_stops_for_a_second_has_one_window_in_flight_and_recovers() {
        let mut line = Line::new();
        line.run(Duration::from_secs(1), 2e6, LOOP, 200_000);
        line.free_at = line.now + 1_000_000_000;
        line.run(Duration::from_secs(1), 2e6, LOOP, 200_000);
        let window = line.flow.window(T, Duration::ZERO).unwrap();
        assert!(line.flow.in_flight() <= window, "{} of {window}", line.flow.in_flight());
        line.run(Duration::from_secs(3), 2e6, LOOP, 200_000);
        let before = line.delivered();
        line.run(Duration::from_secs(1), 2e6, LOOP, 200_000);
        assert!(line.delivered() - before > 1.7e6, "{}", line.delivered() - before);
    }

    #[test]
    fn the_shards_own_slowness_is_not_the_lines() {
        // A thousand subscribers of one shard: each confirmation is seen 15 ms late.
        let lag = Duration::from_millis(15);
        let mut flow = Flow::default();
        for batch in 1..200 {
            let at = Instant::from_nanos(batch * 15_000_000);
            let room = flow.room(T, lag, 65_536, at).expect("nothing is in flight");
            let probe = flow.probes(at);
            assert!(batch < 6 || probe || room == 65_536, "{room} at batch {batch}");
            flow.wrote(batch, room, true, true, at);
            flow.confirmed(batch, true, at + lag, lag);
        }
    }

    #[test]
    fn a_zero_time_is_no_bound_and_unmarked_batches_are_confirmed_by_a_later_mark() {
        let mut flow = Flow::default();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        flow.wrote(1, 1_000, false, true, at(1));
        flow.wrote(2, 1_000, true, true, at(1));
        flow.wrote(3, 1_000, false, true, at(1));
        assert_eq!(
            flow.confirmed(2, false, at(21), Duration::ZERO),
            Some(Duration::from_millis(20))
        );
        assert_eq!(flow.in_flight(), 1_000);
        assert_eq!(flow.room(Duration::ZERO, Duration::ZERO, 9_999, at(22)), Some(9_999));
        assert!(flow.rate().is_some());
        assert_eq!(flow.confirmed(3, true, at(25), Duration::ZERO), None);
        assert_eq!(flow.in_flight(), 0);
    }
}
