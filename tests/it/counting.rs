//! A counting allocator, so that a test can say "nothing was allocated here".
//!
//! A test binary has one global allocator, and its tests run side by side. So nothing is counted
//! for the process as a whole: [`allocations`] counts the calling thread, and
//! [`allocations_everywhere`] the calling thread and whichever threads [`Group::join`] it.

#![allow(dead_code, reason = "each subject uses its part of the counter")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often `work` allocated (or reallocated) on this thread.
pub(crate) fn allocations(work: impl FnOnce()) -> u64 {
    let before = HERE.get();
    work();
    HERE.get() - before
}

/// How often this thread, and every thread that joined the group handed to `work`, allocated from
/// its joining on until `work` returned.
///
/// A thread that outlives `work` is counted no further, so `work` must wait for what it measures.
pub(crate) fn allocations_everywhere(work: impl FnOnce(Group)) -> u64 {
    // A thread may outlive the measurement and hold the group: eight bytes are leaked for each.
    let group = Group(Box::leak(Box::new(AtomicU64::new(0))));
    let outer = GROUP.replace(Some(group));
    work(group);
    let counted = group.0.load(Ordering::SeqCst);
    GROUP.set(outer);
    counted
}

/// Threads that are counted together.
#[derive(Clone, Copy)]
pub(crate) struct Group(&'static AtomicU64);

impl Group {
    /// Counts the calling thread from here on. A second call changes nothing.
    pub(crate) fn join(self) {
        GROUP.set(Some(self));
    }
}

thread_local! {
    static HERE: Cell<u64> = const { Cell::new(0) };
    static GROUP: Cell<Option<Group>> = const { Cell::new(None) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Counting;

fn count() {
    // A thread on its way out may allocate after its locals are gone; nobody measures that.
    let _ = HERE.try_with(|here| here.set(here.get() + 1));
    if let Ok(Some(group)) = GROUP.try_with(Cell::get) {
        group.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[expect(unsafe_code, reason = "a global allocator is an unsafe trait")]
// SAFETY: every method hands its arguments to `System` unchanged; counting neither allocates nor
// unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is the same for `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: `block` came from `System` by one of these methods, with `layout`.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `System` by one of these methods, with `layout`.
        unsafe { System.dealloc(block, layout) }
    }
}

#[test]
fn the_counter_sees_this_thread_and_those_that_join() {
    let allocate = || drop(std::hint::black_box(Box::new(7_u64)));
    assert_eq!(allocations(|| {}), 0);
    assert_eq!(allocations(allocate), 1);

    let (handed, counted) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    let shared = std::sync::Mutex::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            handed.wait();
            let group: Group = shared.lock().unwrap().unwrap();
            allocate(); // not yet of the group
            group.join();
            allocate();
            counted.wait();
        });
        let count = allocations_everywhere(|group| {
            *shared.lock().unwrap() = Some(group);
            handed.wait();
            allocate();
            counted.wait();
        });
        assert_eq!(count, 2);
    });
}
