//! Sleeping and waking.
//!
//! One side sleeps until the other has published something or the worker stops. Told as paths:
//!
//! * *The waker publishes*, passes a [`light`](super::fence::light) fence and looks at the flag of
//!   the sleeper; only if it is up does it take it down and wake who is registered.
//! * *The sleeper registers*, puts its flag up, passes a [`heavy`](super::fence::heavy) fence, and
//!   looks again for what it waits for. Only then does it sleep.
//! * *They meet*: by the pair of fences the waker sees the flag, or the sleeper sees what was
//!   published, or both. In the last case one wake is spurious, and every sleeper looks again.
//!
//! A sleeper registers anew after every wake. Otherwise a slow waker of an earlier round could take
//! its registration away while the flag of this round is up, and the next waker would find nobody.
//!
//! The two flags are bits of the word that also says whether the worker stops, so a stop and a
//! sleeper meet in the order of that one word and need no fence.

use super::sync::{Mutex, SPINS, YIELDS, lock, spin_hint, thread};
use std::task::Waker;

/// Who sleeps on one side: a thread or a task.
pub(super) enum Waiter {
    Thread(thread::Thread),
    Task(Waker),
}

impl Waiter {
    pub(super) fn this_thread() -> Self {
        Self::Thread(thread::current())
    }

    fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            Self::Task(waker) => waker.wake(),
        }
    }
}

/// Where the sleeper of one side is registered.
pub(super) struct WaitSlot(Mutex<Option<Waiter>>);

impl WaitSlot {
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn register(&self, waiter: Waiter) {
        let former = lock(&self.0).replace(waiter);
        drop(former);
    }

    pub(super) fn clear(&self) {
        let former = lock(&self.0).take();
        drop(former);
    }

    /// Wakes who is registered, outside the lock.
    pub(super) fn wake(&self) {
        let waiter = lock(&self.0).take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// The bounded busy wait before a sleep: some spins, a few yields (so that two threads on one core
/// do not spend their time slices waiting for each other), then it is over.
#[derive(Default)]
pub(super) struct Patience(u32);

impl Patience {
    /// Waits a little; `false` once it is time to sleep.
    pub(super) fn wait(&mut self) -> bool {
        if self.0 >= SPINS + YIELDS {
            return false;
        }
        if self.0 < SPINS {
            spin_hint();
        } else {
            thread::yield_now();
        }
        self.0 += 1;
        true
    }
}

/// A wait for something that the other side is in the middle of: spins, then yields, without end.
pub(super) fn wait_out(turn: &mut u32) {
    *turn = turn.saturating_add(1);
    if *turn < SPINS {
        spin_hint();
    } else {
        thread::yield_now();
    }
}
