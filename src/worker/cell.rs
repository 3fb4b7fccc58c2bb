//! The cells that hold one pending value a key, and their two ends.
//!
//! # The latest-value cell
//!
//! A triple buffer with a dirty bit. Of its three slots one is the writer's, one the reader's and
//! one lies in the middle; the state byte names the middle one and says whether it holds a value
//! that nobody has taken. The writer fills its own slot and swaps it in; the reader swaps its own,
//! empty one in. What each gets back is its own from then on:
//!
//! * *Writer, clean cell*: the middle was empty, so is what it got back.
//! * *Writer, dirty cell*: it got the superseded value back, and hands it to the caller.
//! * *Reader*: it got the newest value, and moves it out.
//! * *They meet*: the swaps of one byte have an order; each value is got back by exactly one side.
//!   So nothing is torn, lost, delivered twice or waited for.
//!
//! A seqlock would copy while the writer writes (a data race for any but plain bytes) and retry; a
//! lock would let a preempted reader hold the writer up; a pointer swap would allocate an item.
//!
//! # The folding cell
//!
//! Its value is *there* only while it is dirty. A side that needs it swings the state to `HELD`
//! with a compare-exchange, and nobody holds it for longer than one fold or one move.
//!
//! # Invariants
//!
//! 1. Writer's, middle's and reader's slot of a latest-value cell are three different ones; only
//!    the middle one ever holds a value outside of a call, and exactly if the cell is dirty.
//! 2. A key is written only before its index is first published, or after the reader has passed
//!    every place that named it.
//! 3. A cell never moves: chunks are made once and live as long as the table.
//!
//! # Orderings
//!
//! | atomic | by | order | why |
//! |---|---|---|---|
//! | latest `state` | writer and reader swap | acquire-release | each gets what the other put in its slot |
//! | fold `state` | take hold: acquire, let go: release | | the value is seen whole |
#![expect(unsafe_code, reason = "slots and keys are shared between two threads, one at a time")]

use super::lifecycle::Core;
use super::sync::{Arc, AtomicU8, UnsafeCell};
use super::wait::wait_out;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// What the two ends and the table need to know of a cell. Its state byte lies elsewhere, see
/// [`States`]; every call is given the one of its cell.
pub(super) trait Cell: Sized {
    type Value;
    /// The state of a fresh cell.
    const FRESH: u8;
    fn new() -> Self;
    /// Takes the pending value. Called by the reader alone, with the hand it keeps for this cell.
    ///
    /// # Safety
    /// `state` is this cell's; `hand` started as [`READER`] and is changed by this cell's `take`
    /// alone.
    unsafe fn take(&self, state: &AtomicU8, hand: &mut u8) -> Option<Self::Value>;
    /// Asks for what the reader will need of the cell in a moment.
    fn fetch_for_reader(&self, state: &AtomicU8);
    /// Asks for what the writer will need of the cell in a moment.
    fn fetch_for_writer(&self, hand: u8);
    /// Drops the pending value, if there is one.
    ///
    /// # Safety
    /// `state` is the last one of this cell, which nobody uses any more.
    unsafe fn wipe(&self, state: u8);
}

const READER: u8 = 0;
const WRITER: u8 = 1;
const MIDDLE: u8 = 2;
const SLOT: u8 = 3;
const DIRTY: u8 = 4;

/// The newest value of one key.
#[repr(C)]
pub(super) struct LatestCell<V> {
    slots: [UnsafeCell<MaybeUninit<V>>; 3],
}

impl<V> LatestCell<V> {
    /// Puts the newest value in; the one that it supersedes comes back.
    ///
    /// # Safety
    /// `state` is this cell's; the caller is the only writer; `hand` started as [`WRITER`] and is
    /// changed by this cell's `publish` and `retract` alone.
    #[inline(always)]
    unsafe fn publish(&self, state: &AtomicU8, hand: &mut u8, value: V) -> Option<V> {
        self.slots[usize::from(*hand)].with_mut(|slot| {
            // SAFETY: the writer's own slot (invariant 1).
            unsafe { (*slot).write(value) };
        });
        // SAFETY: the promise is handed on.
        let superseded = unsafe { self.exchange(state, hand, DIRTY) };
        if superseded.is_none() {
            // The slot that came back is the reader's old one and lies in the reader's cache. The
            // key's next value will be written there; until then its lines have time to come.
            self.slots[usize::from(*hand)].with(fetch_for_writing);
        }
        superseded
    }

    /// Swaps the slot in hand in and moves the value, if one comes back, out.
    ///
    /// # Safety
    /// `state` is this cell's; `hand` is the caller's own slot of it, and it is full exactly if
    /// `mark` is [`DIRTY`].
    #[inline(always)]
    unsafe fn exchange(&self, state: &AtomicU8, hand: &mut u8, mark: u8) -> Option<V> {
        let former = state.swap(*hand | mark, AcqRel);
        *hand = former & SLOT;
        (former & DIRTY != 0).then(|| {
            self.slots[usize::from(*hand)].with(|slot| {
                // SAFETY: the swap made the slot the caller's, the dirty bit says that it is full,
                // and only who got it back moves the value out.
                unsafe { (*slot).assume_init_read() }
            })
        })
    }
}

impl<V> Cell for LatestCell<V> {
    type Value = V;
    const FRESH: u8 = MIDDLE;

    fn new() -> Self {
        Self { slots: std::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit())) }
    }

    #[inline(always)]
    unsafe fn take(&self, state: &AtomicU8, hand: &mut u8) -> Option<V> {
        // SAFETY: the reader's slot is empty; the rest is the caller's promise.
        unsafe { self.exchange(state, hand, 0) }
    }

    #[inline(always)]
    fn fetch_for_reader(&self, state: &AtomicU8) {
        if FETCHES {
            // A guess: the writer may still swap another one in.
            self.slots[usize::from(state.load(Relaxed) & SLOT)].with(fetch_for_reading);
        }
    }

    #[inline(always)]
    fn fetch_for_writer(&self, hand: u8) {
        self.slots[usize::from(hand)].with(fetch_for_writing);
    }

    unsafe fn wipe(&self, state: u8) {
        if state & DIRTY != 0 {
            self.slots[usize::from(state & SLOT)].with_mut(|slot| {
                // SAFETY: nobody else is left, and the dirty bit says that the slot is full.
                unsafe { (*slot).assume_init_drop() };
            });
        }
    }
}

/// Whether memory is asked for ahead of its use.
const FETCHES: bool = cfg!(all(target_arch = "x86_64", not(feature = "loom"), not(miri)));

/// Asks for the first lines of a place, to be written soon. A hint: nothing is read or waited for.
#[inline(always)]
fn fetch_for_writing<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(feature = "loom"), not(miri)))]
    for line in 0..size_of::<T>().div_ceil(64).min(4) {
        let address = place.cast::<u8>().wrapping_add(line * 64);
        // SAFETY: `prefetchw` changes no memory, register or flag, and faults on no address; every
        // x86-64 processor takes it, older ones as no operation.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(feature = "loom"), not(miri))))]
    let _ = place;
}

/// Asks for the first lines of a place, to be read soon. A hint, too.
#[inline(always)]
fn fetch_for_reading<T>(place: *const T) {
    #[cfg(all(target_arch = "x86_64", not(feature = "loom"), not(miri)))]
    for line in 0..size_of::<T>().div_ceil(64).min(4) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = place.cast::<i8>().wrapping_add(line * 64);
        // SAFETY: the instruction changes nothing and faults on no address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(feature = "loom"), not(miri))))]
    let _ = place;
}

const CLEAN: u8 = 0;
const FULL: u8 = 1;
const HELD: u8 = 2;

/// The running total of one key.
#[repr(C)]
pub(super) struct FoldCell<V> {
    total: UnsafeCell<MaybeUninit<V>>,
}

/// What a fold did.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Folded<E> {
    /// The key was clean: a new total is pending.
    Fresh,
    /// The pending total has grown.
    Merged,
    /// The key is clean, and the caller has no place for a new one.
    Clean,
    /// The fold failed; the cell is as it was.
    Failed(E),
}

impl<V> FoldCell<V> {
    /// Replaces the total by `fold` of it. On a clean cell the fold gets `None`, and is not called
    /// at all unless the caller `may_start` a new total.
    fn fold<E>(
        &self,
        state: &AtomicU8,
        may_start: bool,
        fold: impl FnOnce(Option<&V>) -> Result<V, E>,
    ) -> Folded<E> {
        let former = loop {
            match state.load(Acquire) {
                CLEAN if !may_start => return Folded::Clean,
                HELD => wait_for_other(state),
                seen => {
                    if state.compare_exchange(seen, HELD, Acquire, Relaxed).is_ok() {
                        break seen;
                    }
                }
            }
        };
        // Lets go also when the fold unwinds: as it was.
        let mut hold = Hold { state, then: former };
        let old = self.total.with_mut(|total| {
            // SAFETY: the cell is held, so nobody else touches the total; it is full if `former`
            // says so, and then replaced as a whole.
            unsafe {
                if former == FULL {
                    let new = fold(Some((*total).assume_init_ref()))?;
                    let old = std::mem::replace((*total).assume_init_mut(), new);
                    // What needs no drop is not carried out.
                    Ok(std::mem::needs_drop::<V>().then_some(old))
                } else {
                    (*total).write(fold(None)?);
                    Ok(None)
                }
            }
        });
        match old {
            Ok(old) => {
                hold.then = FULL;
                drop(hold);
                // The old total is dropped outside of the hold.
                drop(old);
                if former == FULL { Folded::Merged } else { Folded::Fresh }
            }
            Err(error) => Folded::Failed(error),
        }
    }

    fn take_total(&self, state: &AtomicU8) -> Option<V> {
        loop {
            match state.compare_exchange(FULL, HELD, Acquire, Relaxed) {
                Ok(_) => break,
                Err(HELD) => wait_for_other(state),
                Err(_) => return None,
            }
        }
        let total = self.total.with(|total| {
            // SAFETY: the cell was full and is held; it is marked clean before anybody else looks.
            unsafe { (*total).assume_init_read() }
        });
        state.store(CLEAN, Release);
        Some(total)
    }
}

#[cold]
fn wait_for_other(state: &AtomicU8) {
    let mut turn = 0;
    while state.load(Relaxed) == HELD {
        wait_out(&mut turn);
    }
}

struct Hold<'a> {
    state: &'a AtomicU8,
    then: u8,
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.state.store(self.then, Release);
    }
}

impl<V> Cell for FoldCell<V> {
    type Value = V;
    const FRESH: u8 = CLEAN;

    fn new() -> Self {
        Self { total: UnsafeCell::new(MaybeUninit::uninit()) }
    }

    #[inline(always)]
    unsafe fn take(&self, state: &AtomicU8, _hand: &mut u8) -> Option<V> {
        self.take_total(state)
    }

    #[inline(always)]
    fn fetch_for_reader(&self, _state: &AtomicU8) {
        self.total.with(fetch_for_writing);
    }

    #[inline(always)]
    fn fetch_for_writer(&self, _hand: u8) {
        self.total.with(fetch_for_writing);
    }

    unsafe fn wipe(&self, state: u8) {
        if state == FULL {
            self.total.with_mut(|total| {
                // SAFETY: nobody else is left, and the state says that the total is there.
                unsafe { (*total).assume_init_drop() };
            });
        }
    }
}

/// A cell on cache lines that no other key's touches.
#[repr(align(64))]
struct Alone<C>(C);

/// State bytes on one line.
#[cfg(not(feature = "loom"))]
const PER_LINE: usize = 64;
#[cfg(feature = "loom")]
const PER_LINE: usize = 2;

/// A chunk has at least so many lines of state bytes, if it has as many keys: in the chunks below
/// that each byte has a line of its own.
#[cfg(not(feature = "loom"))]
const LEAST_LINES: usize = 4096;
#[cfg(feature = "loom")]
const LEAST_LINES: usize = 2;

/// The state bytes of a chunk's cells, apart from the values.
///
/// A byte beside its values costs a line a key: one more to travel on every delivery, and one more to
/// be held in the cache on every dispatch. With few keys that is worth it, because the two sides meet
/// on a shared line all the time; with many it is not. So the first four thousand keys have lines of
/// their own, and the many behind them share lines, neighbours not the same one: the keys that were
/// first seen are often the busiest.
struct States {
    lines: Box<[Line]>,
    /// log2 of the number of lines.
    shift: u32,
}

#[repr(align(64))]
struct Line([AtomicU8; PER_LINE]);

impl States {
    fn new(keys: usize, fresh: u8) -> Option<Self> {
        let count = (keys / PER_LINE).max(LEAST_LINES.min(keys)).next_power_of_two();
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        lines.extend((0..count).map(|_| Line(std::array::from_fn(|_| AtomicU8::new(fresh)))));
        Some(Self { lines: lines.into_boxed_slice(), shift: count.ilog2() })
    }

    #[inline(always)]
    fn get(&self, place: usize) -> &AtomicU8 {
        let line = &self.lines[place & (self.lines.len() - 1)];
        &line.0[(place >> self.shift) & (PER_LINE - 1)]
    }
}

/// Some cells, their states and their keys.
struct Chunk<K, C: Cell> {
    cells: Box<[Alone<C>]>,
    states: States,
    keys: Box<[UnsafeCell<Option<K>>]>,
}

// SAFETY: values go from one thread to another (`Value: Send`), one side at a time by the cells'
// protocols. Keys are read by both (`K: Sync`), and dropped by either (`K: Send`); they are written
// when nobody reads (invariant 2).
unsafe impl<K: Send + Sync, C: Cell<Value: Send>> Sync for Chunk<K, C> {}
// SAFETY: as above; nothing in it is tied to a thread.
unsafe impl<K: Send, C: Cell<Value: Send>> Send for Chunk<K, C> {}

impl<K, C: Cell> Chunk<K, C> {
    /// `None` if there is no memory for it.
    fn new(length: usize) -> Option<Self> {
        let (mut cells, mut keys) = (Vec::new(), Vec::new());
        cells.try_reserve_exact(length).ok()?;
        keys.try_reserve_exact(length).ok()?;
        cells.extend((0..length).map(|_| Alone(C::new())));
        keys.extend((0..length).map(|_| UnsafeCell::new(None)));
        Some(Self {
            cells: cells.into_boxed_slice(),
            states: States::new(length.next_power_of_two(), C::FRESH)?,
            keys: keys.into_boxed_slice(),
        })
    }
}

impl<K, C: Cell> Drop for Chunk<K, C> {
    fn drop(&mut self) {
        for (place, cell) in self.cells.iter().enumerate() {
            // SAFETY: nobody else is left, and the state is this cell's.
            unsafe { cell.0.wipe(self.states.get(place).load(Acquire)) };
        }
    }
}

#[cfg(not(feature = "loom"))]
const FIRST_CHUNK: u32 = 64;
#[cfg(feature = "loom")]
const FIRST_CHUNK: u32 = 2;
const CHUNKS: usize = 32 - FIRST_CHUNK.trailing_zeros() as usize;

/// Chunks of cells, each twice as long as the one before. They never move.
struct Table<K, C: Cell> {
    chunks: [OnceLock<Chunk<K, C>>; CHUNKS],
}

/// Where a key is.
struct Spot<'a, K, C: Cell> {
    cell: &'a C,
    state: &'a AtomicU8,
    key: &'a UnsafeCell<Option<K>>,
}

impl<K, C: Cell> Table<K, C> {
    #[inline(always)]
    fn get(&self, index: u32) -> Spot<'_, K, C> {
        let (chunk, place) = locate(index);
        // An index is handed out only after its chunk was made.
        let Some(chunk) = self.chunks[chunk].get() else { unmade() };
        Spot {
            cell: &chunk.cells[place].0,
            state: chunk.states.get(place),
            key: &chunk.keys[place],
        }
    }

    /// Makes the chunk of `index` if need be, no longer than `max_keys` asks for. `false` if there
    /// is no memory for it.
    fn grow(&self, index: u32, max_keys: u32) -> bool {
        let (chunk, place) = locate(index);
        if self.chunks[chunk].get().is_some() {
            return true;
        }
        let length = (FIRST_CHUNK << chunk).min(max_keys - (index - place as u32)) as usize;
        Chunk::new(length).is_some_and(|made| self.chunks[chunk].set(made).is_ok())
    }
}

#[cold]
fn unmade() -> ! {
    unreachable!("an index without a cell")
}

#[inline(always)]
const fn locate(index: u32) -> (usize, usize) {
    // The sum cannot pass `u32::MAX`: see `MAX_KEYS`.
    let number = index + FIRST_CHUNK;
    let level = number.ilog2();
    ((level - FIRST_CHUNK.ilog2()) as usize, (number - (1 << level)) as usize)
}

/// The greatest bound on the number of keys.
pub(super) const MAX_KEYS: u32 = u32::MAX - FIRST_CHUNK;

/// The two ends of a fresh table. Each exists once.
pub(super) fn table<K, C: Cell>(max_keys: u32) -> (WriterEnd<K, C>, ReaderEnd<K, C>) {
    let table = Arc::new(Table { chunks: [const { OnceLock::new() }; CHUNKS] });
    let writer = WriterEnd {
        table: table.clone(),
        entries: Vec::new(),
        retired: VecDeque::new(),
        max_keys: max_keys.min(MAX_KEYS),
    };
    (writer, ReaderEnd { table, hands: Vec::new() })
}

/// The producer's end: what it keeps of each cell lies close together, apart from the cells.
pub(super) struct WriterEnd<K, C: Cell> {
    table: Arc<Table<K, C>>,
    entries: Vec<Entry>,
    /// Retired indices, oldest first, with the position that the reader must have passed.
    retired: VecDeque<(u32, usize)>,
    max_keys: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Tells this use of the index from every other; 0 once the key is retired.
    stamp: u32,
    hand: u8,
}

impl<K, C: Cell> WriterEnd<K, C> {
    /// Gives a key a cell, a retired one if the reader is done with it. `None` if `max_keys` are in
    /// use, or there is no memory.
    pub(super) fn add(&mut self, key: K, stamp: u32, core: &Core) -> Option<u32> {
        let index = match self.retired.front() {
            Some(&(index, position)) if core.passed(position) => {
                self.retired.pop_front();
                self.entries[index as usize].stamp = stamp;
                index
            }
            _ => {
                let index = u32::try_from(self.entries.len()).ok()?;
                if index >= self.max_keys || !self.table.grow(index, self.max_keys) {
                    return None;
                }
                self.entries.push(Entry { stamp, hand: WRITER });
                index
            }
        };
        let former = self.table.get(index).key.with_mut(|place| {
            // SAFETY: the index is new and not published yet, or the reader has passed every place
            // that named it (invariant 2).
            unsafe { (*place).replace(key) }
        });
        drop(former);
        Some(index)
    }

    /// Whether `stamp` is the one of the key that now has this index.
    #[inline(always)]
    pub(super) fn holds(&self, index: u32, stamp: u32) -> bool {
        self.entries.get(index as usize).is_some_and(|entry| entry.stamp == stamp)
    }

    pub(super) fn stamp(&self, index: u32) -> u32 {
        self.entries[index as usize].stamp
    }

    /// Ends this use of the index. It is given to another key once the reader has passed
    /// `position`, the next one to be published. The key goes to `forget`.
    pub(super) fn retire(&mut self, index: u32, position: usize, forget: impl FnOnce(&K)) {
        self.entries[index as usize].stamp = 0;
        self.retired.push_back((index, position));
        self.table.get(index).key.with(|key| {
            // SAFETY: only this end writes keys, and it does not now.
            if let Some(key) = unsafe { &*key } {
                forget(key);
            }
        });
    }

    /// Asks for what this end keeps of a cell. Comes before
    /// [`fetch_cell`](Self::fetch_cell), which reads it.
    #[inline(always)]
    pub(super) fn fetch_entry(&self, index: u32) {
        if FETCHES {
            fetch_for_writing(self.entries.as_ptr().wrapping_add(index as usize));
        }
    }

    /// Asks for a cell that will be written to in a moment. Any index will do.
    #[inline(always)]
    pub(super) fn fetch_cell(&self, index: u32) {
        if FETCHES && let Some(entry) = self.entries.get(index as usize) {
            let spot = self.table.get(index);
            fetch_for_writing(spot.state);
            spot.cell.fetch_for_writer(entry.hand);
        }
    }

    /// Takes a value back that the reader will never look for.
    pub(super) fn retract(&mut self, index: u32) -> Option<C::Value> {
        let hand = &mut self.entries[index as usize].hand;
        let spot = self.table.get(index);
        // SAFETY: `hand` is this end's empty slot, which may be swapped in just as the reader's.
        unsafe { spot.cell.take(spot.state, hand) }
    }
}

impl<K, V> WriterEnd<K, LatestCell<V>> {
    /// Puts the newest value of a key in; the one that it supersedes comes back.
    #[inline(always)]
    pub(super) fn publish(&mut self, index: u32, value: V) -> Option<V> {
        let hand = &mut self.entries[index as usize].hand;
        let spot = self.table.get(index);
        // SAFETY: this is the only writer's end, and the hand is the one kept for this cell.
        unsafe { spot.cell.publish(spot.state, hand, value) }
    }

    pub(super) fn is_dirty(&self, index: u32) -> bool {
        self.table.get(index).state.load(Acquire) & DIRTY != 0
    }
}

impl<K, V> WriterEnd<K, FoldCell<V>> {
    /// Folds into the total of a key; see [`FoldCell::fold`].
    #[inline]
    pub(super) fn fold<E>(
        &mut self,
        index: u32,
        may_start: bool,
        fold: impl FnOnce(Option<&V>) -> Result<V, E>,
    ) -> Folded<E> {
        let spot = self.table.get(index);
        // Both at once, and both to be written: a look at the state would bring its line to be read
        // only, and the hold would ask for it again.
        fetch_for_writing(spot.state);
        spot.cell.fetch_for_writer(WRITER);
        spot.cell.fold(spot.state, may_start, fold)
    }
}

/// The consumer's end.
pub(super) struct ReaderEnd<K, C: Cell> {
    table: Arc<Table<K, C>>,
    /// The slot in hand of each cell; grows by whole chunks.
    hands: Vec<u8>,
}

impl<K, C: Cell> ReaderEnd<K, C> {
    /// Takes the pending value of a key whose index came out of the ring.
    #[inline(always)]
    pub(super) fn take(&mut self, index: u32) -> Option<C::Value> {
        if index as usize >= self.hands.len() {
            self.reach_for(index);
        }
        let hand = &mut self.hands[index as usize];
        let spot = self.table.get(index);
        // SAFETY: this is the only reader's end, and the hand is the one kept for this cell.
        unsafe { spot.cell.take(spot.state, hand) }
    }

    /// Asks for the state of a key whose index came out of the ring. Comes before
    /// [`fetch_value`](Self::fetch_value), which reads it.
    #[inline(always)]
    pub(super) fn fetch_state(&self, index: u32) {
        if FETCHES {
            fetch_for_writing(self.table.get(index).state);
        }
    }

    /// Asks for the value of a key, and the key.
    #[inline(always)]
    pub(super) fn fetch_value(&self, index: u32) {
        if FETCHES {
            let spot = self.table.get(index);
            spot.cell.fetch_for_reader(spot.state);
            spot.key.with(fetch_for_reading);
        }
    }

    /// Shows the key of an index. The place of the ring that named it is passed only after this has
    /// returned: that is what keeps the key in place.
    #[inline(always)]
    pub(super) fn with_key<R>(&self, index: u32, show: impl FnOnce(&K) -> R) -> Option<R> {
        self.table.get(index).key.with(|key| {
            // SAFETY: the writer changes a key only after the place that named it was passed
            // (invariant 2), and the consumer's engine passes it after the call.
            unsafe { (*key).as_ref() }.map(show)
        })
    }

    #[cold]
    fn reach_for(&mut self, index: u32) {
        let length = (index as usize + 1).next_power_of_two().max(FIRST_CHUNK as usize);
        self.hands.resize(length, READER);
    }
}

impl<K, C: Cell> ReaderEnd<K, C> {
    /// The key of an index, for a handler that waits. As with [`with_key`](Self::with_key) the place
    /// of the ring that named it is passed only when the reference is gone.
    pub(super) fn key(&self, index: u32) -> Option<&K> {
        self.table.get(index).key.with(|key| {
            // SAFETY: the writer changes a key only after the place that named it was passed
            // (invariant 2), and the consumer's task passes it after the handler is done.
            unsafe { (*key).as_ref() }
        })
    }
}

// Also run under Miri, which sees a misuse of the slots.
#[cfg(all(test, not(feature = "loom")))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

    use super::*;
    use crate::worker::ring::Capacity;
    use crate::worker::wait::WaitStrategy;
    use std::sync::mpsc::sync_channel;
    use std::thread;

    fn core() -> Arc<Core> {
        Core::new(Capacity::new(4).unwrap(), 0, WaitStrategy::Park)
    }

    #[test]
    fn every_value_comes_out_of_a_latest_cell_on_one_side() {
        let (mut writer, mut reader) = table::<u8, LatestCell<String>>(1);
        let index = writer.add(7, 1, &core()).unwrap();
        let (tell, told) = sync_channel(0);
        let taker = thread::spawn(move || {
            let mut taken = Vec::new();
            for () in told {
                taken.extend(reader.take(index));
            }
            (taken, reader)
        });
        let mut back = Vec::new();
        for number in 0..100 {
            back.extend(writer.publish(index, number.to_string()));
            if number % 3 == 0 {
                tell.send(()).unwrap();
            }
        }
        drop(tell);
        let (taken, mut reader) = taker.join().unwrap();
        assert!(!taken.is_empty() && !back.is_empty());
        back.extend(taken);
        back.extend(reader.take(index));
        assert_eq!(reader.take(index), None);
        back.sort_by_key(|text| text.parse::<u32>().unwrap());
        assert_eq!(back, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_pending_is_dropped_with_its_cell() {
        let held = std::sync::Arc::new(());
        let (mut latest, reader) = table::<String, LatestCell<std::sync::Arc<()>>>(200);
        let (mut folded, taker) = table::<String, FoldCell<std::sync::Arc<()>>>(200);
        for key in 0..200 {
            let index = latest.add(key.to_string(), 1, &core()).unwrap();
            drop(latest.publish(index, held.clone()));
            drop(latest.publish(index, held.clone()));
            let index = folded.add(key.to_string(), 1, &core()).unwrap();
            let started = folded.fold(index, true, |none| {
                assert!(none.is_none());
                Ok::<_, ()>(held.clone())
            });
            assert_eq!(started, Folded::Fresh);
        }
        assert_eq!(std::sync::Arc::strong_count(&held), 401);
        drop((latest, reader, folded, taker));
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
    }

    #[test]
    fn folds_and_takes_from_two_threads_lose_nothing() {
        let (mut writer, mut reader) = table::<u8, FoldCell<Vec<u32>>>(1);
        let index = writer.add(7, 1, &core()).unwrap();
        let (stop, stopped) = sync_channel::<()>(0);
        let taker = thread::spawn(move || {
            let mut taken = Vec::new();
            while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                taken.extend(reader.take(index).unwrap_or_default());
                thread::yield_now();
            }
            taken.extend(reader.take(index).unwrap_or_default());
            taken
        });
        for number in 0..200 {
            let folded = writer.fold(index, true, |total| {
                let mut total = total.cloned().unwrap_or_default();
                total.push(number);
                if number % 50 == 49 { Err(number) } else { Ok(total) }
            });
            assert_eq!(matches!(folded, Folded::Failed(_)), number % 50 == 49);
        }
        drop(stop);
        let expected: Vec<u32> = (0..200).filter(|number| number % 50 != 49).collect();
        assert_eq!(taker.join().unwrap(), expected);
    }

    #[test]
    fn a_clean_cell_is_not_started_without_a_place() {
        let (mut writer, mut reader) = table::<u8, FoldCell<u32>>(1);
        let index = writer.add(7, 1, &core()).unwrap();
        assert_eq!(writer.fold(index, false, |_| Ok::<_, ()>(1)), Folded::Clean);
        assert_eq!(writer.fold(index, true, |_| Ok::<_, ()>(1)), Folded::Fresh);
        assert_eq!(writer.fold(index, false, |t| Ok::<_, ()>(t.unwrap() + 1)), Folded::Merged);
        assert_eq!(reader.take(index), Some(2));
    }

    #[test]
    fn chunks_cover_every_index_once_and_stop_at_the_bound() {
        let mut expected = (0, 0);
        for index in 0..10_000 {
            assert_eq!(locate(index), expected);
            expected.1 += 1;
            if expected.1 == (FIRST_CHUNK as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        assert!(locate(MAX_KEYS - 1).0 < CHUNKS);
        let (mut writer, _reader) = table::<u32, LatestCell<u8>>(70);
        let core = core();
        let added = (0..100).filter_map(|key| writer.add(key, 1, &core)).count();
        assert_eq!(added, 70);
    }
}
