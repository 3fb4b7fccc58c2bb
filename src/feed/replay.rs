//! Recordings played again: merged by receive time, on an anchored schedule.
//!
//! A [`Replay`] is a state machine. Told the time, it answers the next record, or until when to
//! wait for it; it neither sleeps nor reads a clock, so a test runs a year in no time, and a
//! consumer steps it at any speed with the same outcome.
//!
//! # Order
//!
//! Each recording offers its next record; the earliest receive time goes first, the recording
//! named first at equal times. Within a recording the file's order is never changed, whatever the
//! stamps say. A record without a time has that of the record before it.
//!
//! # Schedule
//!
//! *Recorded position* is the sum of the gaps between records, each cut to `0..=max_gap`. A record is due
//! at `anchor + position / speed`. The anchor is set once a pass, so that what one wait oversleeps
//! the next makes up for: the error does not grow with the number of records. A gap is thus cut in
//! *recorded* time, and a pass takes its (cut) span divided by the speed, at any speed.
//!
//! # Stamps that lie
//!
//! A stamp behind the one before waits zero. A stamp that jumps by more than `max_gap`, forward or
//! back, is checked against the stamp after it: if that is nearer to where the file was, the jump
//! was a lone slip, and its record is taken to come together with the one before it. Otherwise the file did jump (a
//! pause, a second session, a clock that was set), and time goes on from there. So one bad stamp
//! neither stalls a replay, nor ends its pacing, nor holds its file's records back in a merge.
//!
//! Cost: O(log r) a record for r recordings (a heap of their next times), nothing allocated.

use std::cmp::Reverse;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Instant;

use super::format::Record;
use super::recording::Recording;
use super::report::{Damage, OpenError};

mod control;
mod schedule;
mod source;

use control::Shared;
use schedule::Pass;
use source::Source;

pub use control::{ReplayControl, ReplayEnded, ReplayStatus};

/// How fast a replay goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// So many times as fast as it was recorded.
    Times(SpeedFactor),
    /// As fast as the consumer takes it.
    Max,
}

/// A speed factor between [`SpeedFactor::MIN`] and [`SpeedFactor::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct SpeedFactor(f64);

impl SpeedFactor {
    /// The slowest: a recorded second takes a quarter of an hour.
    pub const MIN: f64 = 0.001;
    /// The fastest: a recorded day takes less than 0.1 s.
    pub const MAX: f64 = 1_000_000.0;

    /// The factor as a number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl Speed {
    /// As recorded.
    pub const ORIGINAL: Self = Self::Times(SpeedFactor(1.0));

    /// `factor` times as fast as recorded.
    ///
    /// # Errors
    ///
    /// [`SpeedError`] for a factor that is not a number in
    /// [`SpeedFactor::MIN`]`..=`[`SpeedFactor::MAX`].
    pub fn times(factor: f64) -> Result<Self, SpeedError> {
        if (SpeedFactor::MIN..=SpeedFactor::MAX).contains(&factor) {
            return Ok(Self::Times(SpeedFactor(factor)));
        }
        Err(SpeedError(factor.to_string()))
    }
}

impl FromStr for Speed {
    type Err = SpeedError;

    /// Reads `max`, or a factor.
    fn from_str(text: &str) -> Result<Self, SpeedError> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let factor: f64 = text.parse().map_err(|_| SpeedError(text.to_owned()))?;
        Self::times(factor)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(factor) => write!(f, "{}", factor.0),
            Self::Max => f.write_str("max"),
        }
    }
}

/// Not a speed; holds what was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no speed: a number from {min} to {max}, or \"max\", is", min = SpeedFactor::MIN, max = SpeedFactor::MAX)]
pub struct SpeedError(pub String);

/// How a replay goes.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// How fast.
    pub speed: Speed,
    /// How many passes; `None`: again and again.
    pub passes: Option<NonZeroU64>,
    /// Pause between two passes, at any speed.
    pub pass_delay: Duration,
    /// The longest gap between two records, in recorded time. [`Duration::MAX`] cuts none.
    pub max_gap: Duration,
}

impl Default for ReplayOptions {
    /// As recorded, once, no gap above 10 s.
    fn default() -> Self {
        Self {
            speed: Speed::ORIGINAL,
            passes: NonZeroU64::new(1),
            pass_delay: Duration::ZERO,
            max_gap: Duration::from_secs(10),
        }
    }
}

/// What to do next.
#[derive(Debug)]
pub enum Step<'a> {
    /// A record is due.
    Record {
        /// Which recording it is from, by its place in the list.
        source: usize,
        /// The record, lent until the next call.
        record: Record<'a>,
    },
    /// Nothing is due before this.
    WaitUntil(Instant),
    /// A recording ends here because of damage; told once, on the first pass.
    Damaged {
        /// Which recording, by its place in the list.
        source: usize,
        /// Where and what.
        damage: &'a Damage,
    },
    /// A recording could not be opened again for another pass, and is left out of it.
    Unreadable {
        /// Which recording, by its place in the list.
        source: usize,
        /// Why.
        error: OpenError,
    },
    /// A pass is over and another follows, whose records are a new session of the venue.
    NextPass {
        /// Its number, counted from 0.
        pass: u64,
    },
    /// The replay was told to jump: what follows is from another time, and so a new session of the
    /// venue.
    Jumped {
        /// To where, in ns since the Unix epoch.
        time: i64,
    },
    /// The replay was told to hold where it is: nothing comes until it is told to go on.
    Paused,
    /// Nothing more comes, ever.
    Ended,
}

/// See the module.
pub struct Replay {
    sources: Vec<Source>,
    options: ReplayOptions,
    max_gap: u64,
    /// The next record of each source: its key in time, and the source.
    heads: BinaryHeap<Reverse<(i64, usize)>>,
    /// The source whose record is lent, and is to move on with the next call.
    lent: bool,
    pass: Pass,
    /// Sources whose damage is still to be told.
    damaged: Vec<usize>,
    number: u64,
    state: State,
    control: Option<Arc<Shared>>,
    paused_at: Option<Instant>,
    /// Sources that are to jump, from the last on.
    jumping: Option<(i64, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Playing,
    /// The sources are to be opened again.
    Rewind,
    Ended,
}

impl Replay {
    /// A replay of `recordings`, which starts with the first call of [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// [`OpenError`] of the first recording that cannot be opened.
    pub fn new(recordings: Vec<Recording>, options: ReplayOptions) -> Result<Self, OpenError> {
        let max_gap = u64::try_from(options.max_gap.as_nanos()).unwrap_or(u64::MAX);
        let sources = recordings
            .into_iter()
            .map(|recording| Source::new(recording, max_gap))
            .collect::<Result<Vec<_>, _>>()?;
        let mut replay = Self {
            heads: BinaryHeap::with_capacity(sources.len()),
            damaged: Vec::with_capacity(sources.len()),
            sources,
            options,
            max_gap,
            lent: false,
            pass: Pass::default(),
            number: 0,
            state: State::Playing,
            control: None,
            paused_at: None,
            jumping: None,
        };
        for source in (0..replay.sources.len()).rev() {
            replay.enter(source);
        }
        Ok(replay)
    }

    /// What is next at the time `now`.
    #[inline]
    pub fn next(&mut self, now: Instant) -> Step<'_> {
        if self.lent {
            self.lent = false;
            self.move_on();
        }
        if let Some(source) = self.damaged.pop() {
            return self.tell_damage(source);
        }
        if self.control.is_some()
            && let Some(step) = self.obey(now)
        {
            return step.into();
        }
        let Some(&Reverse((key, source))) = self.heads.peek() else {
            return self.between_passes(now);
        };
        if let Some(due) = self.due(key, now)
            && due > now
        {
            return Step::WaitUntil(self.patient(due, now));
        }
        self.lent = true;
        self.pass.any = true;
        self.show(key);
        match self.sources[source].record() {
            Some(record) => Step::Record { source, record },
            // A head is a record, so this does not happen; the next call moves on.
            None => Step::WaitUntil(now),
        }
    }

    /// The recordings' readers in the order given, with their counts of the present pass.
    pub fn readers(&self) -> impl Iterator<Item = &super::Reader> + '_ {
        self.sources.iter().map(Source::reader)
    }

    /// The present pass, from 0.
    #[must_use]
    pub fn pass(&self) -> u64 {
        self.number
    }

    /// Recorded time reached in the present pass: gaps cut, speed not applied. Not kept at
    /// [`Speed::Max`], where it is zero.
    #[must_use]
    pub fn position(&self) -> Duration {
        Duration::from_nanos(self.pass.base.saturating_add(self.pass.position))
    }

    /// A handle by which other threads control this replay from now on.
    pub fn control(&mut self) -> ReplayControl {
        let speed = self.options.speed;
        ReplayControl(self.control.get_or_insert_with(|| Arc::new(Shared::new(speed))).clone())
    }

    /// Takes the head's source to its next record.
    #[inline]
    fn move_on(&mut self) {
        self.pass.counted = false;
        let Some(mut head) = self.heads.peek_mut() else { return };
        let source = head.0.1;
        if let Some(key) = self.sources[source].advance() {
            head.0.0 = key;
            return;
        }
        PeekMut::pop(head);
        self.left(source);
    }

    fn enter(&mut self, source: usize) {
        match self.sources[source].advance() {
            Some(key) => self.heads.push(Reverse((key, source))),
            None => self.left(source),
        }
    }

    #[cold]
    fn left(&mut self, source: usize) {
        if self.number == 0 && self.sources[source].reader().damage().is_some() {
            self.damaged.push(source);
        }
    }

    #[cold]
    fn tell_damage(&mut self, source: usize) -> Step<'_> {
        match self.sources[source].reader().damage() {
            Some(damage) => Step::Damaged { source, damage },
            // Only a damaged source is put on the list, so this does not happen.
            None => Step::WaitUntil(Instant::default()),
        }
    }

    #[cold]
    fn between_passes(&mut self, now: Instant) -> Step<'_> {
        if self.state == State::Rewind {
            return self.rewind(now);
        }
        let wanted = self.options.passes.is_none_or(|passes| self.number + 1 < passes.get());
        // A pass without records would be followed by nothing but its like.
        if self.state == State::Ended || !wanted || !self.pass.any {
            self.state = State::Ended;
            self.show_end();
            return Step::Ended;
        }
        self.state = State::Rewind;
        self.number += 1;
        self.pass = Pass { anchor: self.next_anchor(now), ..Pass::default() };
        for source in &mut self.sources {
            source.rewind_later();
        }
        Step::NextPass { pass: self.number }
    }

    fn rewind(&mut self, now: Instant) -> Step<'_> {
        for source in (0..self.sources.len()).rev() {
            match self.sources[source].open_again() {
                Ok(false) => {}
                Ok(true) => self.enter(source),
                Err(error) => return Step::Unreadable { source, error },
            }
        }
        self.state = State::Playing;
        self.next(now)
    }
}

#[cfg(test)]
mod tests;
