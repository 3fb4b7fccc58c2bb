//! Time, passed in.
//!
//! Rules and state machines never read a clock: they are given an [`Instant`] or a receive time.
//! Only shells read one, and they read it here; the lint `clippy::disallowed_methods` holds that.
//!
//! Two kinds of time exist and are never mixed: *monotonic* time (`Instant`, for waits, windows and
//! ages inside this process) and *wall* time (`i64` nanoseconds since the Unix epoch, for what is
//! written down or shown).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as StdInstant, SystemTime, UNIX_EPOCH};

/// A point of monotonic time: nanoseconds since the clock was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The instant `nanoseconds` after the clock was made.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the clock was made.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`, zero if that lies ahead.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Where a shell reads time. Cheap to clone; clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(StdInstant),
    Manual { elapsed: Arc<AtomicU64>, epoch: i64 },
}

impl Clock {
    /// The machine's own clocks.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the monotonic clock")]
    pub fn system() -> Self {
        Self(Source::System(StdInstant::now()))
    }

    /// A clock that stands until [`advance`](Self::advance) moves it; its wall time equals its
    /// monotonic time.
    #[must_use]
    pub fn manual() -> Self {
        Self::manual_from(0)
    }

    /// A manual clock whose wall time is `wall` at first, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn manual_from(wall: i64) -> Self {
        Self(Source::Manual { elapsed: Arc::new(AtomicU64::new(0)), epoch: wall })
    }

    /// Moves a manual clock forward. The system's clock moves by itself and ignores this.
    pub fn advance(&self, duration: Duration) {
        if let Source::Manual { elapsed, .. } = &self.0 {
            let step = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            elapsed.fetch_add(step, Ordering::Relaxed);
        }
    }

    /// The present monotonic time.
    #[must_use]
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::System(start) => {
                Instant(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
            }
            Source::Manual { elapsed, .. } => Instant(elapsed.load(Ordering::Relaxed)),
        }
    }

    /// The present wall time, in nanoseconds since the Unix epoch.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    pub fn wall(&self) -> i64 {
        match &self.0 {
            Source::System(_) => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
            Source::Manual { elapsed, epoch } => {
                epoch.saturating_add_unsigned(elapsed.load(Ordering::Relaxed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual();
        let before = clock.now();
        assert_eq!(clock.clone().now(), before);
        clock.advance(Duration::from_millis(3));
        assert_eq!(clock.now().since(before), Duration::from_millis(3));
        assert_eq!(clock.wall(), 3_000_000);
        assert_eq!(Clock::manual_from(7).wall(), 7);
    }

    #[test]
    fn the_time_since_something_ahead_is_zero() {
        assert_eq!(Instant(1).since(Instant(2)), Duration::ZERO);
    }
}
