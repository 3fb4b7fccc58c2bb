//! The one place where the workers get their atomics, cells and threads from, so that a build with
//! the `loom` feature runs the very same algorithms under the model checker.

#[cfg(not(feature = "loom"))]
pub(super) use real::*;

#[cfg(feature = "loom")]
pub(super) use model::*;

/// Locks, whoever panicked before: nothing behind these locks is left half changed by a panic.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A value on cache lines of its own: 128 bytes, because adjacent lines are fetched in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Padded<T>(pub(super) T);

#[cfg(not(feature = "loom"))]
mod real {
    pub(crate) use std::sync::atomic::{
        AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread;

    /// Turns of busy waiting before a waiter starts to yield.
    pub(crate) const SPINS: u32 = 64;
    /// Yields before a waiter parks.
    pub(crate) const YIELDS: u32 = 4;
    /// The same for tasks, whose yields go to their executor.
    pub(crate) const TASK_SPINS: u32 = 8;
    pub(crate) const TASK_YIELDS: u32 = 8;
    /// The part of a ring that is freed, or offered to a task, together.
    pub(crate) const SHARE: usize = 4;

    pub(crate) fn spin_hint() {
        std::hint::spin_loop();
    }

    /// The calling thread's id, without the two counter updates of `thread::current`.
    pub(crate) fn this_thread() -> thread::ThreadId {
        thread_local! {
            static ID: thread::ThreadId = thread::current().id();
        }
        ID.try_with(|id| *id).unwrap_or_else(|_| thread::current().id())
    }

    /// `UnsafeCell` with loom's manner of access.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
            access(self.0.get())
        }

        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
            access(self.0.get())
        }
    }
}

#[cfg(feature = "loom")]
mod model {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::atomic::{
        AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    pub(crate) use loom::thread;

    /// The model explores schedules; spinning would only multiply equal ones.
    pub(crate) const SPINS: u32 = 0;
    pub(crate) const YIELDS: u32 = 0;
    pub(crate) const TASK_SPINS: u32 = 0;
    pub(crate) const TASK_YIELDS: u32 = 0;
    /// So that a model's small ring has more than one place to offer.
    pub(crate) const SHARE: usize = 1;

    pub(crate) fn spin_hint() {
        loom::thread::yield_now();
    }

    pub(crate) fn this_thread() -> thread::ThreadId {
        thread::current().id()
    }
}
