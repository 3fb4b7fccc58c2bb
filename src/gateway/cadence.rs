//! When a shard may sweep again: at once while it has little to do, ever more rarely the busier it is.
//!
//! A sweep and the sends behind it cost about the same whether a subscriber is sent one value or
//! twenty, so a busy shard gathers. How busy it is tells the time that the last sweep and all that
//! followed from it took, *spent*: the next may come a pause of `spent² / EVEN` after that was done, at
//! most the set pace. A sweep that took a tenth of [`EVEN`] is followed by a pause of a hundredth, which
//! nobody notices; one that took as long as `EVEN` by as long a pause, so that the shard is busy half
//! its time; one of a millisecond by the whole pace. So a change waits for the cadence at most `pace`
//! beyond the work in hand, and not at all in a quiet market.
//!
//! Two fixed rules lost. A least time between any two sweeps made a lone subscriber of a quiet market
//! wait for most of it; a share of the time spent, the same for short sweeps and long, either let a
//! shard with a hundred subscribers run without pause or held up one with a few.
//!
//! A sweep that finds nobody who could be sent anything, because all wait for their windows or their
//! permits, is followed by the whole pace: sooner is of no use to anybody.
//!
//! Where nobody tells how long work takes, under virtual time, sweeps are the pace apart.

use std::time::Duration;

use crate::clock::Instant;

/// The work that is followed by a pause as long as itself.
const EVEN: Duration = Duration::from_micros(300);

/// The cadence of one shard.
#[derive(Debug, Default)]
pub(crate) struct Cadence {
    swept_at: Option<Instant>,
    /// How long turns have taken since the last sweep, until its work was done.
    spent: Duration,
    /// Whether the last sweep was of no use.
    idle: bool,
    /// When the next sweep may be, once the work of the last is done and timed.
    opens: Option<Instant>,
}

impl Cadence {
    /// When the next sweep may be.
    pub(crate) fn opens(&self, pace: Duration) -> Instant {
        // While the work of the last one is not done, more may be swept into it a pace after it.
        self.opens.unwrap_or_else(|| self.swept_at.map_or(Instant::default(), |at| at + pace))
    }

    /// A sweep begins.
    pub(crate) fn sweeps(&mut self, now: Instant) {
        *self = Self { swept_at: Some(now), ..Self::default() };
    }

    /// The sweep has found nobody to be served.
    pub(crate) fn found_nobody(&mut self) {
        self.idle = true;
    }

    /// A turn took so long and ended at `now`; `done` says that nobody is left to be served.
    pub(crate) fn turned(&mut self, took: Duration, done: bool, pace: Duration, now: Instant) {
        if self.opens.is_some() || self.swept_at.is_none() {
            return;
        }
        self.spent += took;
        if done {
            if self.idle {
                self.opens = Some(now + pace);
                return;
            }
            let pause = self.spent.as_secs_f64().powi(2) / EVEN.as_secs_f64();
            self.opens =
                Some(now + Duration::try_from_secs_f64(pause).map_or(pace, |p| p.min(pace)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Duration = Duration::from_millis(3);

    const fn us(microseconds: u64) -> Instant {
        Instant::from_nanos(microseconds * 1_000)
    }

    fn pause_after(microseconds: u64) -> Duration {
        let mut cadence = Cadence::default();
        cadence.sweeps(us(100));
        cadence.turned(Duration::from_micros(microseconds), true, PACE, us(100 + microseconds));
        cadence.opens(PACE).since(us(100 + microseconds))
    }

    #[test]
    fn a_quiet_shard_hardly_pauses_and_a_busy_one_pauses_for_the_pace() {
        assert!(pause_after(20) < Duration::from_micros(2));
        assert_eq!(pause_after(300).as_micros(), 300);
        assert_eq!(pause_after(5_000), PACE);
    }

    #[test]
    fn a_sweep_that_finds_nobody_is_followed_by_the_whole_pace() {
        let mut cadence = Cadence::default();
        cadence.sweeps(us(0));
        cadence.found_nobody();
        cadence.turned(Duration::from_micros(10), true, PACE, us(10));
        assert_eq!(cadence.opens(PACE), us(3_010));
        cadence.sweeps(us(3_010));
        cadence.turned(Duration::from_micros(10), true, PACE, us(3_020));
        assert!(cadence.opens(PACE) < us(3_030));
    }

    #[test]
    fn the_work_of_a_sweep_is_all_its_turns_and_what_comes_later_is_not_its() {
        let mut cadence = Cadence::default();
        cadence.sweeps(us(0));
        cadence.turned(Duration::from_micros(100), false, PACE, us(100));
        assert_eq!(cadence.opens(PACE), us(3_000), "not done yet");
        cadence.turned(Duration::from_micros(200), true, PACE, us(300));
        assert_eq!(cadence.opens(PACE).since(us(300)).as_micros(), 300);
        let opens = cadence.opens(PACE);
        cadence.turned(Duration::from_micros(900), true, PACE, us(1_200));
        assert_eq!(cadence.opens(PACE), opens);
    }

    #[test]
    fn where_nobody_tells_how_long_work_takes_sweeps_are_the_pace_apart() {
        let mut cadence = Cadence::default();
        assert_eq!(cadence.opens(PACE), Instant::default());
        cadence.sweeps(us(50));
        assert_eq!(cadence.opens(PACE), us(3_050));
    }
}
