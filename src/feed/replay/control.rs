//! A replay's handle for other threads: pause, resume, seek, speed.
//!
//! A wish is left in a slot and obeyed by the replay with its next step, at the time that step is
//! told; of several wishes of one kind the last counts. While a handle exists, the replay asks its
//! shell to wait no longer than [`PATIENCE`] at a time, so a wish is obeyed within that, also in the
//! middle of a gap of hours.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::Speed;
use super::source::NO_TIME;

/// The longest wait of a replay that somebody controls, and how often a paused one looks around.
pub(super) const PATIENCE: Duration = Duration::from_millis(20);

/// The replay is over, so there is nothing left to control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the replay has ended")]
pub struct ReplayEnded;

/// How a replay stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayStatus {
    /// It is paused, or will be with its next step.
    pub paused: bool,
    /// The speed that was last asked for.
    pub speed: Speed,
    /// Receive time of the last record, in ns since the Unix epoch; `None` before the first, and
    /// while records have no times.
    pub time: Option<i64>,
    /// Recorded time played in the present pass since its start or the last jump: gaps cut, speed
    /// not applied. What was played at [`Speed::Max`] is not in it.
    pub position: Duration,
    /// The present pass, from 0.
    pub pass: u64,
    /// Nothing more comes.
    pub ended: bool,
}

/// See the module. Clones control the same replay; dropping them changes nothing.
#[derive(Clone, Debug)]
pub struct ReplayControl(pub(super) Arc<Shared>);

impl ReplayControl {
    /// Holds the replay where it is. Once obeyed no record comes until [`resume`](Self::resume);
    /// what was left of a wait is kept.
    ///
    /// # Errors
    ///
    /// [`ReplayEnded`].
    pub fn pause(&self) -> Result<(), ReplayEnded> {
        self.wish(|wishes| wishes.paused = true)
    }

    /// Goes on where [`pause`](Self::pause) held.
    ///
    /// # Errors
    ///
    /// [`ReplayEnded`].
    pub fn resume(&self) -> Result<(), ReplayEnded> {
        self.wish(|wishes| wishes.paused = false)
    }

    /// Jumps, forward or back within the present pass, so that the next record is the first that was
    /// received at `time` (ns since the Unix epoch) or later; it is due at once. Behind the last
    /// record, the pass is over. Pausing is not changed by it.
    ///
    /// # Errors
    ///
    /// [`ReplayEnded`].
    pub fn seek(&self, time: i64) -> Result<(), ReplayEnded> {
        self.wish(|wishes| wishes.seek = Some(time))
    }

    /// Goes on at another speed from where the replay is.
    ///
    /// # Errors
    ///
    /// [`ReplayEnded`].
    pub fn set_speed(&self, speed: Speed) -> Result<(), ReplayEnded> {
        self.wish(|wishes| wishes.speed = speed)
    }

    /// How the replay stands.
    #[must_use]
    pub fn status(&self) -> ReplayStatus {
        let wishes = self.0.wishes();
        let time = self.0.time.load(Ordering::Relaxed);
        ReplayStatus {
            paused: wishes.paused,
            speed: wishes.speed,
            time: (time != NO_TIME).then_some(time),
            position: Duration::from_nanos(self.0.position.load(Ordering::Relaxed)),
            pass: self.0.pass.load(Ordering::Relaxed),
            ended: self.0.ended.load(Ordering::Relaxed),
        }
    }

    fn wish(&self, change: impl FnOnce(&mut Wishes)) -> Result<(), ReplayEnded> {
        if self.0.ended.load(Ordering::Relaxed) {
            return Err(ReplayEnded);
        }
        change(&mut self.0.wishes());
        // The lock publishes the wish; this says that there is one.
        self.0.changed.store(true, Ordering::Release);
        Ok(())
    }
}

/// What is wished for. A seek is obeyed once, the others hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    pub(super) paused: bool,
    pub(super) speed: Speed,
    pub(super) seek: Option<i64>,
}

#[derive(Debug)]
pub(super) struct Shared {
    changed: AtomicBool,
    wishes: Mutex<Wishes>,
    pub(super) time: AtomicI64,
    pub(super) position: AtomicU64,
    pub(super) pass: AtomicU64,
    pub(super) ended: AtomicBool,
}

impl Shared {
    pub(super) fn new(speed: Speed) -> Self {
        Self {
            changed: AtomicBool::new(false),
            wishes: Mutex::new(Wishes { paused: false, speed, seek: None }),
            time: AtomicI64::new(NO_TIME),
            position: AtomicU64::new(0),
            pass: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        }
    }

    /// The wishes, if any is new. One load where none is.
    #[inline]
    pub(super) fn news(&self) -> Option<Wishes> {
        if !self.changed.load(Ordering::Acquire) {
            return None;
        }
        // Taken down before the wishes are read: one that comes meanwhile is read now or next time.
        self.changed.store(false, Ordering::Relaxed);
        let mut wishes = self.wishes();
        let now = *wishes;
        wishes.seek = None;
        Some(now)
    }

    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
