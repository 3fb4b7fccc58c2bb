//! What the limiter takes from the standard library, or from loom when a model is checked.

#[cfg(feature = "loom")]
pub(super) use loom::{
    sync::{Mutex, MutexGuard, atomic::AtomicU64},
    thread::{Thread, current},
};
#[cfg(not(feature = "loom"))]
pub(super) use std::{
    sync::{Mutex, MutexGuard, atomic::AtomicU64},
    thread::{Thread, current},
};

pub(super) use std::sync::atomic::Ordering;

/// A count that decides nothing, so a model need not interleave it.
pub(super) type Counter = std::sync::atomic::AtomicU64;

/// Sleeps until somebody unparks this thread, or until `at_most` has gone by.
pub(super) fn park(at_most: Option<std::time::Duration>) {
    #[cfg(not(feature = "loom"))]
    match at_most {
        None => std::thread::park(),
        Some(duration) => std::thread::park_timeout(duration),
    }
    // A model has no time: whoever waits is woken or the model reports a deadlock.
    #[cfg(feature = "loom")]
    {
        let _ = at_most;
        loom::thread::park();
    }
}
