//! Whether the program should be given work: what `/-/ready` answers.

use std::sync::atomic::{AtomicU8, Ordering};

const STARTING: u8 = 0;
const READY: u8 = 1;
const SHUTTING_DOWN: u8 = 2;

/// How far the program has come. It goes forward only: once shutting down, never ready again.
#[derive(Debug, Default)]
pub struct Readiness(AtomicU8);

impl Readiness {
    /// Everything has been started.
    pub fn set_ready(&self) {
        self.0.fetch_max(READY, Ordering::Release);
    }

    /// The program has been told to stop.
    pub fn set_shutting_down(&self) {
        self.0.fetch_max(SHUTTING_DOWN, Ordering::Release);
    }

    /// Why the program should not be given work; `None` when it should.
    #[must_use]
    pub fn why_not(&self) -> Option<&'static str> {
        match self.0.load(Ordering::Acquire) {
            STARTING => Some("starting"),
            READY => None,
            _ => Some("shutting down"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_shuts_down_is_never_ready_again() {
        let readiness = Readiness::default();
        assert_eq!(readiness.why_not(), Some("starting"));
        readiness.set_ready();
        assert_eq!(readiness.why_not(), None);
        readiness.set_shutting_down();
        readiness.set_ready();
        assert_eq!(readiness.why_not(), Some("shutting down"));
    }
}
