//! Laws: which capacity to have next, from what was measured under the present one.
//!
//! A law is a pure function. It holds no limiter, reads no clock and starts nothing: whoever wants
//! a capacity that moves by itself measures how long permits are held, asks the law, and tells the
//! limiter. Without that nothing moves, so a law is off unless used, and each limiter can have its
//! own.
//!
//! | law | state | reacts to | for |
//! |---|---|---|---|
//! | [`Aimd`] | the capacity alone | a delay above a bound, or a failure | a known bound that must hold |
//! | [`Gradient`] | a [`Trend`] | delay in proportion to its long-term mean | a bound nobody knows |
//!
//! The rules are those of Netflix's `concurrency-limits` library (its AIMD and Gradient2 limits),
//! where their parameters' defaults come from too.
//!
//! ```
//! use std::time::Duration;
//! use tidegate::limiter::DynamicConcurrencyLimiter;
//! use tidegate::limiter::law::{Aimd, Range, Sample};
//!
//! let limiter = DynamicConcurrencyLimiter::new(8)?;
//! let law = Aimd::new(Range::new(1, 64)?, Duration::from_millis(100));
//!
//! // A permit was held for 250 ms, with all eight in use.
//! let seen = Sample { delay: Duration::from_millis(250), in_flight: 8, failed: false };
//! limiter.set_capacity(law.next(limiter.capacity(), seen))?;
//! assert_eq!(limiter.capacity(), 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::Duration;

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// From the acquire to the release of a permit; of several permits, their mean.
    pub delay: Duration,
    /// Permits held when the measured one was taken, itself among them.
    pub in_flight: usize,
    /// Whether the work came to nothing for want of capacity behind the limiter: it timed out, or
    /// was turned away. Its delay is not looked at.
    pub failed: bool,
}

/// The capacities a law may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    lowest: usize,
    highest: usize,
}

/// Why a range was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// A law that reaches zero pauses its limiter, and without permits there is no sample that
    /// would end the pause.
    #[error("the lowest capacity of a law is 1: at 0 nothing is measured any more")]
    Zero,
    /// Nothing lies between the two.
    #[error("the lowest capacity, {lowest}, is above the highest, {highest}")]
    Empty {
        /// The lowest asked for.
        lowest: usize,
        /// The highest asked for.
        highest: usize,
    },
}

impl Range {
    /// From `lowest` to `highest`, both included.
    ///
    /// # Errors
    ///
    /// [`RangeError::Zero`] or [`RangeError::Empty`].
    pub const fn new(lowest: usize, highest: usize) -> Result<Self, RangeError> {
        if lowest == 0 {
            Err(RangeError::Zero)
        } else if lowest > highest {
            Err(RangeError::Empty { lowest, highest })
        } else {
            Ok(Self { lowest, highest })
        }
    }

    const fn nearest(self, capacity: f64) -> f64 {
        capacity.clamp(self.lowest as f64, self.highest as f64)
    }
}

/// Additive increase, multiplicative decrease: one more while all is well, a tenth less otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimd {
    range: Range,
    too_slow: Duration,
}

impl Aimd {
    /// What is left of a capacity after a slow or failed sample.
    const BACKOFF: f64 = 0.9;

    /// A law within `range` that takes a delay above `too_slow` for a sign of too much.
    #[must_use]
    pub const fn new(range: Range, too_slow: Duration) -> Self {
        Self { range, too_slow }
    }

    /// The capacity to have after `capacity` saw `sample`.
    ///
    /// It grows only where at least half of it was in use: what is not used proves nothing.
    #[must_use]
    pub fn next(&self, capacity: usize, sample: Sample) -> usize {
        let next = if sample.failed || sample.delay > self.too_slow {
            capacity as f64 * Self::BACKOFF
        } else if sample.in_flight.saturating_mul(2) >= capacity {
            capacity as f64 + 1.0
        } else {
            capacity as f64
        };
        self.range.nearest(next.floor()) as usize
    }
}

/// What a [`Gradient`] remembers from one sample to the next. Start with `Trend::from(capacity)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// With its fraction, so that slow growth adds up.
    capacity: f64,
    /// Long-term mean of the delay in nanoseconds; `None` before the first sample.
    usual: Option<f64>,
}

impl Trend {
    /// The capacity to have now.
    #[must_use]
    pub const fn capacity(self) -> usize {
        self.capacity as usize
    }
}

impl From<usize> for Trend {
    fn from(capacity: usize) -> Self {
        Self { capacity: capacity as f64, usual: None }
    }
}

/// Follows the ratio of the usual delay to the present one: while they agree it probes upwards,
/// and where delay rises it shrinks in proportion.
///
/// Under a load that never lets up the usual delay follows the present one, and the capacity creeps
/// up: over hundreds of samples, but without an end. So choose the top of the range as you would
/// choose a fixed capacity, or use [`Aimd`] where the delay has a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient {
    range: Range,
}

impl Gradient {
    /// How far delay may rise above the usual before capacity shrinks.
    const TOLERANCE: f64 = 1.5;
    /// The least that one sample leaves, before smoothing.
    const STEEPEST: f64 = 0.5;
    /// What may queue behind the limiter, in permits: the upward probe.
    const QUEUE: f64 = 4.0;
    /// The weight of one sample in the capacity.
    const SMOOTHING: f64 = 0.2;
    /// The weight of one sample in the usual delay: a window of some 600 samples.
    const USUAL_WEIGHT: f64 = 2.0 / 601.0;
    /// After a time of overload the usual delay is too high; while it is more than twice the
    /// present one it is let down by this factor a sample.
    const LETTING_DOWN: f64 = 0.95;

    /// A law within `range`.
    #[must_use]
    pub const fn new(range: Range) -> Self {
        Self { range }
    }

    /// The trend after `sample`. A failed sample counts as the steepest rise.
    #[must_use]
    pub fn next(&self, trend: Trend, sample: Sample) -> Trend {
        let capacity = self.range.nearest(trend.capacity);
        if sample.failed {
            let capacity = self.smoothed(capacity, capacity * Self::STEEPEST);
            return Trend { capacity, ..trend };
        }
        // Never zero, so that it can be divided by.
        let present = (sample.delay.as_nanos() as f64).max(1.0);
        let mut usual = match trend.usual {
            None => present,
            Some(usual) => usual + (present - usual) * Self::USUAL_WEIGHT,
        };
        if usual > 2.0 * present {
            usual *= Self::LETTING_DOWN;
        }
        let trend = Trend { capacity, usual: Some(usual) };
        // What is not used proves nothing.
        if (sample.in_flight as f64) < capacity / 2.0 {
            return trend;
        }
        let slope = (Self::TOLERANCE * usual / present).clamp(Self::STEEPEST, 1.0);
        Trend { capacity: self.smoothed(capacity, capacity * slope + Self::QUEUE), ..trend }
    }

    fn smoothed(&self, from: f64, to: f64) -> f64 {
        self.range.nearest(from + (to - from) * Self::SMOOTHING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(10);

    fn range(lowest: usize, highest: usize) -> Range {
        Range::new(lowest, highest).unwrap()
    }

    fn sample(delay: Duration, in_flight: usize) -> Sample {
        Sample { delay, in_flight, failed: false }
    }

    /// Something behind the limiter that does 20 at a time in `BASE`, and queues the rest.
    fn served(in_flight: usize) -> Sample {
        sample(BASE.mul_f64((in_flight as f64 / 20.0).max(1.0)), in_flight)
    }

    #[test]
    fn a_range_that_is_empty_or_starts_at_zero_is_refused() {
        assert_eq!(Range::new(0, 5), Err(RangeError::Zero));
        assert_eq!(Range::new(6, 5), Err(RangeError::Empty { lowest: 6, highest: 5 }));
        assert!(Range::new(5, 5).is_ok());
    }

    #[test]
    fn aimd_grows_by_one_where_half_is_used_and_falls_by_a_tenth_where_it_is_slow() {
        let law = Aimd::new(range(1, 100), BASE);
        assert_eq!(law.next(10, sample(BASE, 5)), 11);
        assert_eq!(law.next(10, sample(BASE, 4)), 10);
        assert_eq!(law.next(10, sample(BASE * 2, 10)), 9);
        assert_eq!(law.next(10, Sample { failed: true, ..sample(Duration::ZERO, 10) }), 9);
        assert_eq!(law.next(1, sample(BASE * 2, 1)), 1);
        assert_eq!(law.next(100, sample(BASE, 100)), 100);
    }

    #[test]
    fn aimd_stays_about_where_the_delay_reaches_its_bound() {
        let law = Aimd::new(range(1, 1000), BASE * 2);
        let mut capacity = 1;
        for step in 0..2000 {
            capacity = law.next(capacity, served(capacity));
            assert!(step < 100 || (36..=41).contains(&capacity), "{capacity} at {step}");
        }
    }

    #[test]
    fn gradient_probes_upwards_while_delay_is_as_usual() {
        let law = Gradient::new(range(1, 50));
        let mut trend = Trend::from(10);
        for _ in 0..100 {
            trend = law.next(trend, sample(BASE, trend.capacity()));
        }
        assert_eq!(trend.capacity(), 50);
    }

    #[test]
    fn gradient_leaves_a_capacity_alone_that_is_not_used() {
        let law = Gradient::new(range(1, 50));
        let mut trend = Trend::from(10);
        for _ in 0..100 {
            trend = law.next(trend, sample(BASE, 4));
        }
        assert_eq!(trend.capacity(), 10);
    }

    #[test]
    fn gradient_shrinks_when_delay_rises_and_grows_again_when_it_falls() {
        let law = Gradient::new(range(1, 40));
        let mut trend = Trend::from(40);
        for _ in 0..50 {
            trend = law.next(trend, sample(BASE, trend.capacity()));
        }
        assert_eq!(trend.capacity(), 40);
        for _ in 0..20 {
            trend = law.next(trend, sample(BASE * 10, trend.capacity()));
        }
        let shrunk = trend.capacity();
        assert!(shrunk < 20, "{shrunk}");
        for _ in 0..200 {
            trend = law.next(trend, sample(BASE, trend.capacity()));
        }
        assert_eq!(trend.capacity(), 40);
    }

    #[test]
    fn gradient_holds_back_at_first_and_creeps_under_a_load_that_never_lets_up() {
        let law = Gradient::new(range(1, 200));
        let mut trend = Trend::from(1);
        for step in 0..300 {
            trend = law.next(trend, served(trend.capacity()));
            let capacity = trend.capacity();
            assert!(step < 100 || (20..=80).contains(&capacity), "{capacity} at {step}");
        }
        for _ in 0..100_000 {
            trend = law.next(trend, served(trend.capacity()));
        }
        assert_eq!(trend.capacity(), 200);
    }

    #[test]
    fn no_sample_however_odd_leads_out_of_the_range() {
        let delays = [Duration::ZERO, Duration::from_nanos(1), BASE, Duration::MAX];
        let (aimd, gradient) = (Aimd::new(range(2, 9), BASE), Gradient::new(range(2, 9)));
        for start in [0, 1, 2, 5, 9, 10, usize::MAX] {
            let (mut capacity, mut trend) = (start, Trend::from(start));
            for step in 0..1000_usize {
                let seen = Sample {
                    delay: delays[step * 7 % 4],
                    in_flight: [0, 5, usize::MAX][step % 3],
                    failed: step % 5 == 0,
                };
                capacity = aimd.next(capacity, seen);
                trend = gradient.next(trend, seen);
                assert!((2..=9).contains(&capacity) && (2..=9).contains(&trend.capacity()));
            }
        }
    }
}
