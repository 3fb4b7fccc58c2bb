//! The cells that hold one pending value a key, and the protocols of their two ends.
//!
//! A value lies in a *slot*; a cell is one word that names a slot and says what is in it. There are
//! as many slots as keys and a few more: the writer's spare ones, and the reader's one. Slots belong
//! to no key, they change hands.
//!
//! # The latest-value cell
//!
//! The writer fills a spare slot and swaps it in; the reader swaps its own, empty one in. What each
//! gets back is its own from then on:
//!
//! * *Writer, clean cell*: the slot that comes back is empty.
//! * *Writer, dirty cell*: it holds the superseded value, which goes to the caller.
//! * *Reader*: it holds the newest value, which is moved out.
//! * *They meet*: the swaps of one word have an order; each slot is got back by exactly one side. So
//!   nothing is torn, lost, delivered twice or waited for.
//!
//! A seqlock would copy while the writer writes (a data race for any but plain bytes) and retry; a
//! lock would let a preempted reader hold the writer up; a box a value would allocate. Three slots a
//! key, of which one is the writer's and one the reader's (a triple buffer), would do the same with
//! three times the memory; and the writer would meet the slot that it gets back from the reader, and
//! whose lines lie in the reader's cache, at the key's next value, and wait for them. Here it puts
//! that slot at the end of its spares and asks for its lines; they have come when its turn does.
//!
//! # The folding cell
//!
//! The reader takes a total as above, but only a pending one: it swings the word with a
//! compare-exchange. So a clean cell is the writer's alone, and a fresh total is put in by a plain
//! store. To fold into a pending one the writer marks the cell as held, for as long as one fold takes;
//! a reader that comes in between waits.
//!
//! # Invariants
//!
//! 1. Each slot is named by one cell, or is one of the writer's spares, or the reader's own.
//! 2. Outside of a call a slot is full exactly if a dirty cell names it.
//! 3. A key is written only before its index is first published, or after the reader has passed
//!    every place that named it.
//! 4. A cell and a slot never move: chunks are made once and live as long as the table.
//!
//! # Orderings
//!
//! | atomic | by | order | why |
//! |---|---|---|---|
//! | latest `word` | writer and reader swap | acquire-release | each gets what the other put in its slot |
//! | fold `word` | reader takes | acquire-release | it gets the total, the writer an emptied slot |
//! | fold `word` | writer takes an empty slot | acquire | the reader is done with it |
//! | fold `word` | writer holds | relaxed | what is pending was put there by itself |
//! | fold `word` | writer puts in, and lets go | release | the total is seen whole |
//! | `stamp` | writer alone | relaxed | no other side looks |
#![expect(unsafe_code, reason = "slots and keys are shared between two threads, one at a time")]

mod chunk;
mod ends;
mod fetch;
#[cfg(all(test, feature = "loom"))]
mod model;
#[cfg(all(test, not(feature = "loom")))]
mod tests;

pub(super) use ends::{MAX_KEYS, MOST_STAGED, ReaderEnd, SPARES, WriterEnd, table};
pub(super) use fetch::fetch_for_reading;

use super::sync::{AtomicPtr, UnsafeCell};
use super::wait::wait_out;
use fetch::fetch_for_writing;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// A place for one value, on cache lines of its own.
#[repr(align(64))]
pub(super) struct Slot<V>(UnsafeCell<MaybeUninit<V>>);

impl<V> Slot<V> {
    fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }
}

/// Names a slot of a table. Whoever has it keeps the table alive.
type Place<V> = *mut Slot<V>;

/// The word of a cell names a slot and, in the bits that its alignment leaves, says what is in it.
const DIRTY: usize = 1;
const HELD: usize = 2;
const MARKS: usize = DIRTY | HELD;

#[inline(always)]
fn mark<V>(place: Place<V>, marks: usize) -> Place<V> {
    place.map_addr(|address| address | marks)
}

#[inline(always)]
fn unmark<V>(word: Place<V>) -> Place<V> {
    word.map_addr(|address| address & !MARKS)
}

#[inline(always)]
fn is<V>(word: Place<V>, marks: usize) -> bool {
    word.addr() & marks != 0
}

/// Puts a value into a slot.
///
/// # Safety
/// The slot is the caller's, empty, and of a table that lives.
#[inline(always)]
unsafe fn fill<V>(place: Place<V>, value: V) {
    // SAFETY: the slot lives (the caller's promise).
    let slot = unsafe { &(*place).0 };
    slot.with_mut(|slot| {
        // SAFETY: nobody else touches a slot that is the caller's.
        unsafe { (*slot).write(value) };
    });
}

/// Moves the value out of a slot.
///
/// # Safety
/// The slot is the caller's, full, and of a table that lives.
#[inline(always)]
unsafe fn empty<V>(place: Place<V>) -> V {
    // SAFETY: the slot lives (the caller's promise).
    let slot = unsafe { &(*place).0 };
    slot.with(|slot| {
        // SAFETY: it is full, nobody else touches it, and it counts as empty from here on.
        unsafe { (*slot).assume_init_read() }
    })
}

/// What is written of a key: the cell's word, and what the writer knows of the key, which it needs
/// together with it.
pub(super) struct Word<V> {
    slot: AtomicPtr<Slot<V>>,
    /// Tells this use of the index from every other; 0 once the key is retired. The writer's alone.
    stamp: AtomicU32,
}

impl<V> Word<V> {
    fn new(place: Place<V>) -> Self {
        Self { slot: AtomicPtr::new(place), stamp: AtomicU32::new(0) }
    }
}

/// A manner of keeping one pending value.
pub(super) trait Cell: Sized {
    type Value;
    /// Whether the writer needs more of a cell than its word.
    const LEADS_FURTHER: bool;
    /// A clean cell with an empty slot.
    fn new(place: *mut Slot<Self::Value>) -> Self;
    fn word(&self) -> &Word<Self::Value>;
    /// Asks for what the writer will need besides the word, which it asked for before.
    fn fetch_for_writer(&self);
    /// Takes the pending value, and a slot for the one in hand.
    ///
    /// # Safety
    /// The caller is the reader, or nobody is told of this cell; `hand` is its own empty slot, of
    /// this cell's table.
    unsafe fn take(&self, hand: &mut *mut Slot<Self::Value>) -> Option<Self::Value>;
}

/// The newest value of one key.
pub(super) struct LatestCell<V>(Word<V>);

impl<V> LatestCell<V> {
    /// Swaps the slot in hand in and moves the value, if one comes back, out.
    ///
    /// # Safety
    /// `hand` is the caller's own slot, of this cell's table, and full exactly if `marks` has
    /// [`DIRTY`].
    #[inline(always)]
    unsafe fn exchange(&self, hand: &mut Place<V>, marks: usize) -> Option<V> {
        let former = self.0.slot.swap(mark(*hand, marks), AcqRel);
        *hand = unmark(former);
        // SAFETY: the swap made the slot the caller's (invariant 1), the dirty bit says that it is
        // full, and only who got it back moves the value out.
        is(former, DIRTY).then(|| unsafe { empty(*hand) })
    }
}

impl<V> Cell for LatestCell<V> {
    type Value = V;
    const LEADS_FURTHER: bool = false;

    fn new(place: Place<V>) -> Self {
        Self(Word::new(place))
    }

    #[inline(always)]
    fn word(&self) -> &Word<V> {
        &self.0
    }

    #[inline(always)]
    fn fetch_for_writer(&self) {}

    #[inline(always)]
    unsafe fn take(&self, hand: &mut Place<V>) -> Option<V> {
        // SAFETY: the caller's promise.
        unsafe { self.exchange(hand, 0) }
    }
}

/// The running total of one key.
pub(super) struct FoldCell<V>(Word<V>);

impl<V> FoldCell<V> {
    /// Holds the pending total, if there is one. For the writer alone.
    #[inline(always)]
    fn hold(&self) -> Option<Held<'_, V>> {
        // A look brings the line to be read only, and the exchange would ask for it again.
        fetch_for_writing(&raw const self.0);
        loop {
            let seen = self.0.slot.load(Relaxed);
            if !is(seen, DIRTY) {
                return None;
            }
            let place = unmark(seen);
            // Relaxed: what is pending was put there by this side.
            let held =
                self.0.slot.compare_exchange(seen, mark(place, HELD), Relaxed, Relaxed).is_ok();
            if held {
                return Some(Held { cell: self, place });
            }
        }
    }

    /// Puts a fresh total in, and takes the cell's empty slot for it. For the writer alone. `false`
    /// if a total is pending already.
    ///
    /// # Safety
    /// `hand` is the writer's own slot, of this cell's table, and full.
    #[inline(always)]
    unsafe fn start(&self, hand: &mut Place<V>) -> bool {
        let former = self.0.slot.load(Acquire);
        if is(former, MARKS) {
            return false;
        }
        self.0.slot.store(mark(*hand, DIRTY), Release);
        *hand = former;
        true
    }
}

/// A total that the writer holds.
pub(super) struct Held<'a, V> {
    cell: &'a FoldCell<V>,
    place: Place<V>,
}

impl<V> Held<'_, V> {
    /// Changes the total in place. If that panics, the total is what it was left as.
    #[inline(always)]
    pub(super) fn with<R>(&mut self, change: impl FnOnce(&mut V) -> R) -> R {
        // SAFETY: the cell's slots live as long as the cell, which is borrowed.
        let slot = unsafe { &(*self.place).0 };
        slot.with_mut(|slot| {
            // SAFETY: a pending total is there, and nobody else touches it while it is held.
            change(unsafe { (*slot).assume_init_mut() })
        })
    }
}

impl<V> Drop for Held<'_, V> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cell.0.slot.store(mark(self.place, DIRTY), Release);
    }
}

impl<V> Cell for FoldCell<V> {
    type Value = V;
    const LEADS_FURTHER: bool = true;

    fn new(place: Place<V>) -> Self {
        Self(Word::new(place))
    }

    #[inline(always)]
    fn word(&self) -> &Word<V> {
        &self.0
    }

    #[inline(always)]
    fn fetch_for_writer(&self) {
        fetch_for_writing(unmark(self.0.slot.load(Relaxed)));
    }

    #[inline(always)]
    unsafe fn take(&self, hand: &mut Place<V>) -> Option<V> {
        loop {
            let seen = self.0.slot.load(Relaxed);
            if is(seen, HELD) {
                wait_for_writer(&self.0.slot);
            } else if !is(seen, DIRTY) {
                return None;
            } else if self.0.slot.compare_exchange(seen, *hand, AcqRel, Relaxed).is_ok() {
                *hand = unmark(seen);
                // SAFETY: the exchange made the slot the caller's, and it was dirty.
                return Some(unsafe { empty(*hand) });
            }
        }
    }
}

#[cold]
fn wait_for_writer<V>(word: &AtomicPtr<Slot<V>>) {
    let mut turn = 0;
    while is(word.load(Relaxed), HELD) {
        wait_out(&mut turn);
    }
}
