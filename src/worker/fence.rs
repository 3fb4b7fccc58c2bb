//! An asymmetric store-load fence.
//!
//! Two parties publish and then look: a producer stores an item and looks whether the consumer
//! sleeps; the consumer says that it sleeps and looks for an item. Without a full fence on *both*
//! sides each may miss the other's store, and both sleep for ever.
//!
//! A full fence an item costs more than the rest of a dispatch. So the side that acts once an item
//! pays [`light`], which only keeps the compiler from reordering, and the side that is about to
//! sleep or close anyway pays [`heavy`]: Linux' `membarrier(PRIVATE_EXPEDITED)`, which makes every
//! running thread of the process execute a full fence (some microseconds). If the light side's
//! store came before that forced fence, the heavy side sees it; if it came after, then so does the
//! light side's look, and it sees the heavy side's store.
//!
//! Where the system has no `membarrier` (other systems, old kernels, sandboxes, the model checker,
//! Miri) both are plain sequentially consistent fences; that is the form that loom proves.

use super::sync::fence;
use std::sync::atomic::Ordering::SeqCst;

pub(super) use choice::{heavy, light, prepare};

#[cfg(all(target_os = "linux", not(feature = "loom"), not(miri), not(tidegate_plain_fences)))]
mod choice {
    use super::{SeqCst, fence};
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed, compiler_fence};

    const UNKNOWN: u8 = 0;
    const PLAIN: u8 = 1;
    const ASYMMETRIC: u8 = 2;

    const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
    const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

    static CHOICE: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Decides once a process. Every worker calls it before it has anything to fence.
    pub(crate) fn prepare() {
        if CHOICE.load(Relaxed) == UNKNOWN {
            let registered = membarrier(REGISTER_PRIVATE_EXPEDITED);
            let choice = if registered { ASYMMETRIC } else { PLAIN };
            // The first answer stands: both sides of a fence must agree.
            let _ = CHOICE.compare_exchange(UNKNOWN, choice, Relaxed, Relaxed);
        }
    }

    /// The side that acts once an item.
    #[inline(always)]
    pub(crate) fn light() {
        if CHOICE.load(Relaxed) == ASYMMETRIC {
            compiler_fence(SeqCst);
        } else {
            fence(SeqCst);
        }
    }

    /// The side that is about to sleep or to close.
    #[cold]
    pub(crate) fn heavy() {
        fence(SeqCst);
        if CHOICE.load(Relaxed) == ASYMMETRIC {
            // The one failure after a registration is a passing lack of kernel memory.
            while !membarrier(PRIVATE_EXPEDITED) {
                std::thread::yield_now();
            }
        }
    }

    #[expect(unsafe_code, reason = "the system call has no safe wrapper")]
    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: `membarrier` takes integers alone and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }
}

#[cfg(not(all(
    target_os = "linux",
    not(feature = "loom"),
    not(miri),
    not(tidegate_plain_fences)
)))]
mod choice {
    use super::{SeqCst, fence};

    pub(crate) fn prepare() {}

    #[inline(always)]
    pub(crate) fn light() {
        fence(SeqCst);
    }

    pub(crate) fn heavy() {
        fence(SeqCst);
    }
}
