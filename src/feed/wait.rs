//! Waiting that a stop cuts short.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Instant};

/// How long a wait may sleep before it looks at the stop again.
const SLICE: Duration = Duration::from_millis(20);

/// Sleeps on the caller's thread until `until`; answers `false` as soon as `stop` is cancelled
/// (noticed within about 20 ms), `true` when the time has come.
///
/// The shell around a [`Replay`](super::Replay) waits with it.
#[must_use]
pub fn wait_until(clock: &Clock, until: Instant, stop: &CancellationToken) -> bool {
    loop {
        if stop.is_cancelled() {
            return false;
        }
        let left = until.since(clock.now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(SLICE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b28_a_stop_cuts_a_long_wait_short() {
        let clock = Clock::system();
        let stop = CancellationToken::new();
        let started = clock.now();
        std::thread::scope(|scope| {
            let waiting = scope
                .spawn(|| wait_until(&clock, clock.now() + Duration::from_secs(65_536), &stop));
            std::thread::sleep(Duration::from_millis(5));
            stop.cancel();
            assert!(!waiting.join().unwrap());
        });
        assert!(clock.now().since(started) < Duration::from_secs(10));
    }

    #[test]
    fn a_time_that_has_passed_is_not_waited_for() {
        assert!(wait_until(&Clock::manual(), Instant::default(), &CancellationToken::new()));
    }
}
