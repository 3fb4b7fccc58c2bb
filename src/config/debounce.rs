//! When to look at a file after signs of change: once it is quiet, or at the latest by a cap.
//!
//! Pure: it is told what happened and when.

use std::time::Duration;

use crate::clock::Instant;

/// Gathers signs of change into one look.
///
/// 1. It is due `quiet` after the newest sign, so that a save in several steps is one look.
/// 2. It is due `cap` after the oldest sign that was not looked at, so that signs that never cease
///    cannot put it off.
/// 3. After a sign there is always a look; without one there is none.
#[derive(Debug)]
pub(super) struct Debounce {
    quiet: Duration,
    cap: Duration,
    signs: Option<Signs>,
}

#[derive(Clone, Copy, Debug)]
struct Signs {
    oldest: Instant,
    newest: Instant,
}

impl Debounce {
    pub(super) const fn new(quiet: Duration, cap: Duration) -> Self {
        Self { quiet, cap, signs: None }
    }

    /// Something happened.
    pub(super) fn sign(&mut self, now: Instant) {
        let oldest = self.signs.map_or(now, |signs| signs.oldest);
        self.signs = Some(Signs { oldest, newest: now });
    }

    /// When to look, if ever.
    pub(super) fn due(&self) -> Option<Instant> {
        self.signs.map(|signs| (signs.newest + self.quiet).min(signs.oldest + self.cap))
    }

    /// Whether to look now; says so once.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let due = self.due().is_some_and(|due| due <= now);
        if due {
            self.signs = None;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const QUIET: Duration = Duration::from_millis(100);
    const CAP: Duration = Duration::from_secs(1);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn nothing_is_due_without_a_sign() {
        let mut debounce = Debounce::new(QUIET, CAP);
        assert_eq!(debounce.due(), None);
        assert!(!debounce.take(at(10_000)));
    }

    #[test]
    fn a_save_in_steps_is_one_look_after_it_is_quiet() {
        let mut debounce = Debounce::new(QUIET, CAP);
        for step in [0, 40, 90] {
            debounce.sign(at(step));
            assert!(!debounce.take(at(step)));
        }
        assert!(!debounce.take(at(189)));
        assert!(debounce.take(at(190)));
        assert!(!debounce.take(at(5_000)));
    }

    #[test]
    fn b90_signs_that_never_cease_put_it_off_no_longer_than_the_cap() {
        let mut debounce = Debounce::new(QUIET, CAP);
        let mut looks = Vec::new();
        for now in (0..=3_000).step_by(5) {
            debounce.sign(at(now));
            if debounce.take(at(now)) {
                looks.push(now);
            }
        }
        assert_eq!(looks, [1_000, 2_005]);
    }

    proptest! {
        /// A shell that sleeps until `due` looks after every sign, between quiet and cap.
        #[test]
        fn every_sign_is_looked_at_in_time(gaps in prop::collection::vec(0u64..300, 1..200)) {
            let mut debounce = Debounce::new(QUIET, CAP);
            let mut waiting: Vec<Instant> = Vec::new();
            let mut now = 0;
            for gap in gaps {
                now += gap;
                while let Some(due) = debounce.due().filter(|due| *due <= at(now)) {
                    prop_assert!(debounce.take(due));
                    for sign in waiting.drain(..) {
                        prop_assert!(due.since(sign) <= CAP);
                    }
                }
                debounce.sign(at(now));
                waiting.push(at(now));
                prop_assert!(debounce.due().is_some());
            }
            let due = debounce.due().unwrap();
            prop_assert!(due >= at(now) && due.since(waiting[0]) <= CAP);
        }
    }
}
