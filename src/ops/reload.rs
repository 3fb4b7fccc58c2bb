//! What the admin server needs of a program that can be reloaded, and what came of its reloads.

use serde_json::{Map, Value};

use crate::config::{ReloadError, ReloadReport, Settings};

/// The one place through which configuration changes: reloads from wherever they are asked for,
/// and run-time changes for all subscribers.
///
/// Implementations put a lock around one [`Reloader`](crate::config::Reloader), of which the gateway
/// is a part. A run-time change then moves the settings in effect together with the limits in
/// force, so the next reload starts from what is true: it leaves the override alone unless the
/// file changes that very key. A change for one subscriber does not come here; it is a matter of
/// the gateway's [`Control`](crate::gateway::Control), and gives way when the key changes for all.
///
/// The methods may block, for reading a file and for the lock; the server calls them where that
/// is allowed.
pub trait Reload: Send + Sync {
    /// Reads the configuration again, applies what differs, and counts the outcome.
    ///
    /// # Errors
    ///
    /// Everything is as it was before.
    fn reload(&self) -> Result<ReloadReport, ReloadError>;

    /// Overrides keys until a file changes them, as
    /// [`Reloader::retune`](crate::config::Reloader::retune).
    ///
    /// # Errors
    ///
    /// Everything is as it was before.
    fn retune(&self, changes: &Map<String, Value>) -> Result<ReloadReport, ReloadError>;

    /// The settings in effect, overrides included.
    fn effective(&self) -> Settings;

    /// What came of the reloads so far, by whatever they were caused.
    fn outcomes(&self) -> Outcomes;
}

/// How reloads have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// Reloads that succeeded, those included that found nothing changed.
    pub succeeded: u64,
    /// Reloads that failed, in the order of [`FAILURES`](Self::FAILURES).
    pub failed: [u64; Self::FAILURES.len()],
    /// When one last succeeded, in nanoseconds since the Unix epoch.
    pub last_success: Option<i64>,
    /// Whether the last one failed.
    pub last_failed: bool,
}

impl Outcomes {
    /// The kinds of failure, as [`ReloadError::kind`] names them.
    pub const FAILURES: [&'static str; 3] = ["unreadable", "refused", "part"];

    /// Counts one reload that ended at `now`, in nanoseconds since the Unix epoch.
    pub fn record(&mut self, outcome: &Result<ReloadReport, ReloadError>, now: i64) {
        self.last_failed = outcome.is_err();
        match outcome {
            Ok(_) => {
                self.succeeded += 1;
                self.last_success = Some(now);
            }
            Err(error) => {
                let kind = Self::FAILURES.iter().position(|kind| *kind == error.kind());
                // A kind that is not in the list fails the test below.
                if let Some(count) = kind.and_then(|at| self.failed.get_mut(at)) {
                    *count += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Source, VENUES};

    #[test]
    fn every_outcome_is_counted_under_its_name() {
        let mut outcomes = Outcomes::default();
        let done = ReloadReport { applied: vec![], needs_restart: vec![], same_text: false };
        outcomes.record(&Ok(done), 7);
        assert_eq!((outcomes.succeeded, outcomes.last_success), (1, Some(7)));
        assert!(!outcomes.last_failed);

        let refused = Source::embedded(VENUES).parse(b"nonsense").unwrap_err();
        let failures = [
            ReloadError::Unreadable {
                file: "t.toml".into(),
                source: std::io::ErrorKind::NotFound.into(),
            },
            ReloadError::Refused(refused),
            ReloadError::Part { part: "p".into(), reason: "r".into(), torn: vec![] },
        ];
        for failure in failures {
            outcomes.record(&Err(failure), 9);
        }
        assert_eq!(outcomes.failed, [1, 1, 1]);
        assert_eq!((outcomes.succeeded, outcomes.last_success), (1, Some(7)));
        assert!(outcomes.last_failed);
    }
}
