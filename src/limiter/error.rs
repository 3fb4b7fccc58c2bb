//! What can go wrong, by operation.

use std::time::Duration;

/// Why a permit was not given at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TryAcquireError {
    /// As many permits are held as the capacity allows, or more after a shrink, or the limiter is
    /// paused by a capacity of zero.
    #[error("no permit is free")]
    Full,
    /// The limiter is closed and gives no permit again.
    #[error("the limiter is closed")]
    Closed,
}

/// Why waiting for a permit ended without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AcquireError {
    /// The limiter was closed, before or while the caller waited.
    #[error("the limiter was closed while a permit was awaited")]
    Closed,
    /// As many callers wait as a limiter keeps account of.
    #[error("{most} callers wait for a permit already, and no more can")]
    TooManyWaiting {
        /// The most that may wait at one time.
        most: usize,
    },
    /// The time given was over. Only a wait with a bound of its own ends so.
    #[error("no permit came free within {waited:?}")]
    TimedOut {
        /// The bound that the caller gave.
        waited: Duration,
    },
}

/// Why a release by hand was refused. The limiter is as it was before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseError {
    /// Nothing is held, so this release is the second of a pair.
    #[error("a permit was released while none is held")]
    NothingHeld,
    /// Fewer permits are held than were to be released.
    #[error("{asked} permits were released while {held} are held")]
    MoreThanHeld {
        /// Permits to be released.
        asked: usize,
        /// Permits held.
        held: usize,
    },
}

/// Why a capacity was refused. A limiter that has one keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// Above what the packed word counts.
    #[error("a capacity of {asked} permits is above the most that a limiter can have, {most}")]
    TooLarge {
        /// The capacity asked for.
        asked: usize,
        /// The most that is possible.
        most: usize,
    },
}
