//! When each record is due, and how that changes while a replay runs.
//!
//! A pass has one anchor, and every record of it is due at `anchor + position / speed`. A change of
//! speed moves the anchor to the present and takes along what is left to wait, in recorded time; a
//! pause moves it by as long as the pause lasted. So no error adds up over changes either.

use std::time::Duration;

use super::control::PATIENCE;
use super::source;
use super::{Replay, Reverse, Speed, SpeedFactor, State, Step};
use crate::clock::Instant;
use std::sync::atomic::Ordering;

use super::super::report::OpenError;

/// The schedule of one pass.
#[derive(Clone, Copy, Default)]
pub(super) struct Pass {
    /// When its first record is due; `None`: at once, whenever that is.
    pub(super) anchor: Option<Instant>,
    /// Key of the record reached last.
    pub(super) reached: Option<i64>,
    /// Recorded position of that record, in ns since the anchor.
    pub(super) position: u64,
    /// Recorded position of the anchor: above zero once the speed was changed.
    pub(super) base: u64,
    /// The present head's position is in `position` already.
    pub(super) counted: bool,
    /// A record was yielded in this pass.
    pub(super) any: bool,
}

/// A step that borrows nothing.
pub(super) enum Obeyed {
    Wait(Instant),
    Paused,
    Jumped(i64),
    Unreadable(usize, OpenError),
}

impl From<Obeyed> for Step<'_> {
    fn from(obeyed: Obeyed) -> Self {
        match obeyed {
            Obeyed::Wait(until) => Self::WaitUntil(until),
            Obeyed::Paused => Self::Paused,
            Obeyed::Jumped(time) => Self::Jumped { time },
            Obeyed::Unreadable(source, error) => Self::Unreadable { source, error },
        }
    }
}

impl Replay {
    /// When the record with this key is due; `None`: at once.
    #[inline]
    pub(super) fn due(&mut self, key: i64, now: Instant) -> Option<Instant> {
        let Speed::Times(SpeedFactor(speed)) = self.options.speed else {
            // At full speed only a pause between passes is waited for.
            return self.pass.anchor;
        };
        let pass = &mut self.pass;
        if !pass.counted {
            pass.counted = true;
            pass.count(key, self.max_gap);
        }
        let anchor = *pass.anchor.get_or_insert(now);
        Some(anchor + scaled(pass.position, speed))
    }

    /// Obeys what was wished for; answers what is to be done before the next record.
    pub(super) fn obey(&mut self, now: Instant) -> Option<Obeyed> {
        let mut held = false;
        if let Some(wishes) = self.control.as_ref()?.news()
            && self.state != State::Ended
        {
            if wishes.speed != self.options.speed {
                self.change_speed(wishes.speed, self.paused_at.unwrap_or(now));
            }
            match (wishes.paused, self.paused_at) {
                (true, None) => {
                    self.paused_at = Some(now);
                    held = true;
                }
                (false, Some(since)) => {
                    self.paused_at = None;
                    let anchor = self.pass.anchor;
                    self.pass.anchor = anchor.map(|anchor| anchor + now.since(since));
                }
                _ => {}
            }
            if let Some(time) = wishes.seek {
                self.heads.clear();
                self.pass = Pass { any: true, ..Pass::default() };
                self.state = State::Playing;
                self.jumping = Some((time, self.sources.len()));
            }
        }
        if held {
            return Some(Obeyed::Paused);
        }
        if let Some(jumped) = self.jump() {
            return Some(jumped);
        }
        (self.paused_at.is_some() && self.state != State::Ended)
            .then(|| Obeyed::Wait(now + PATIENCE))
    }

    /// Takes every source to where the replay jumps.
    fn jump(&mut self) -> Option<Obeyed> {
        let (time, left) = self.jumping?;
        for source in (0..left).rev() {
            self.jumping = Some((time, source));
            match self.sources[source].seek(time) {
                Ok(Some(key)) => self.heads.push(Reverse((key, source))),
                Ok(None) => self.left(source),
                Err(error) => return Some(Obeyed::Unreadable(source, error)),
            }
        }
        self.jumping = None;
        Some(Obeyed::Jumped(time))
    }

    /// Goes on at another speed from where the replay is at `now`.
    fn change_speed(&mut self, speed: Speed, now: Instant) {
        let head = self.heads.peek().map(|&Reverse((key, _))| key);
        let before = self.options.speed;
        // What is left to wait for the next record, or for the end of the pass, in recorded time.
        let due = match (head, before) {
            (Some(key), _) => self.due(key, now),
            (None, Speed::Times(SpeedFactor(factor))) => {
                self.pass.anchor.map(|anchor| anchor + scaled(self.pass.position, factor))
            }
            (None, Speed::Max) => self.pass.anchor,
        };
        let left = due.map_or(Duration::ZERO, |due| due.since(now));
        self.pass.base = self.pass.base.saturating_add(self.pass.position);
        self.pass.position = 0;
        self.pass.anchor = match (before, speed) {
            (Speed::Times(SpeedFactor(old)), Speed::Times(SpeedFactor(new))) => {
                // A record that is late is due now: lateness at one speed is not carried to another.
                Some(now + left.mul_f64(old / new))
            }
            (Speed::Max, Speed::Times(_)) => {
                self.pass.reached = head;
                self.pass.counted = head.is_some();
                Some(now + left)
            }
            (_, Speed::Max) => None,
        };
        self.options.speed = speed;
    }

    /// The end of a wait: not as far off as a wish may come.
    #[inline]
    pub(super) fn patient(&self, due: Instant, now: Instant) -> Instant {
        if self.control.is_some() { due.min(now + PATIENCE) } else { due }
    }

    /// Shows where the replay is, to whoever controls it.
    #[inline]
    pub(super) fn show(&self, key: i64) {
        if let Some(shared) = &self.control {
            let position = self.pass.base.saturating_add(self.pass.position);
            shared.time.store(key, Ordering::Relaxed);
            shared.position.store(position, Ordering::Relaxed);
            shared.pass.store(self.number, Ordering::Relaxed);
        }
    }

    #[cold]
    pub(super) fn show_end(&self) {
        if let Some(shared) = &self.control {
            shared.ended.store(true, Ordering::Relaxed);
        }
    }

    /// The next pass follows on the schedule of this one, not on when this one was really over.
    pub(super) fn next_anchor(&self, now: Instant) -> Option<Instant> {
        let delay = self.options.pass_delay;
        match (self.options.speed, self.pass.anchor) {
            (Speed::Times(SpeedFactor(speed)), Some(anchor)) => {
                Some(anchor + scaled(self.pass.position, speed) + delay)
            }
            _ if delay.is_zero() => None,
            _ => Some(now + delay),
        }
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        self.show_end();
    }
}

impl Pass {
    /// Adds the gap to the record with this key.
    #[inline]
    fn count(&mut self, key: i64, max_gap: u64) {
        if key == source::NO_TIME {
            return;
        }
        // A key is behind the last one only where a file's clock was set back (see `Source`): time
        // goes on from there.
        let reached = self.reached.replace(key).unwrap_or(key);
        let gap = if key > reached { key.abs_diff(reached).min(max_gap) } else { 0 };
        self.position = self.position.saturating_add(gap);
    }
}

/// A recorded time as it passes at `speed`. Exact to the nanosecond for the first three months,
/// with an error below one in 10¹⁵ behind them.
#[inline]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "see above; what is too large saturates"
)]
fn scaled(position: u64, speed: f64) -> Duration {
    Duration::from_nanos((position as f64 / speed) as u64)
}
