//! The memory of cells: chunks that are made once and never move.

use super::super::sync::UnsafeCell;
use super::fetch::on_large_pages;
use super::{Cell, DIRTY, Place, Slot, empty, is, unmark};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Acquire;

/// Cells on one line.
#[cfg(not(feature = "loom"))]
const PER_LINE: usize = 4;
#[cfg(feature = "loom")]
const PER_LINE: usize = 2;

/// A chunk has at least so many lines of cells, if it has as many keys: in the chunks below that
/// each cell has a line of its own.
#[cfg(not(feature = "loom"))]
const LEAST_LINES: usize = 4096;
#[cfg(feature = "loom")]
const LEAST_LINES: usize = 2;

/// The cells of a chunk, apart from the values.
///
/// With few keys the two sides meet on a shared line all the time, so the first four thousand keys
/// have lines of their own; the many behind them share lines, of which more stay in the caches. But
/// neighbours do not share one: the keys that were first seen are often the busiest.
struct Cells<C> {
    lines: Vec<Line<C>>,
    /// One less than the number of lines, a power of two.
    mask: usize,
    /// log2 of it.
    shift: u32,
}

#[repr(align(64))]
struct Line<C>([C; PER_LINE]);

impl<C: Cell> Cells<C> {
    /// A cell for each of the slots.
    fn new(slots: &[Slot<C::Value>]) -> Option<Self> {
        let keys = slots.len().next_power_of_two();
        let count = (keys / PER_LINE).max(LEAST_LINES.min(keys)).next_power_of_two();
        let shift = count.ilog2();
        let mut lines = Vec::new();
        lines.try_reserve_exact(count).ok()?;
        on_large_pages(lines.spare_capacity_mut());
        // A cell without a key is never looked at; any slot will do.
        let slot = |place: usize| slots.as_ptr().wrapping_add(place.min(slots.len() - 1));
        lines.extend((0..count).map(|line| {
            Line(std::array::from_fn(|step| C::new(slot(line | (step << shift)).cast_mut())))
        }));
        Some(Self { mask: lines.len() - 1, lines, shift })
    }

    #[inline(always)]
    fn get(&self, place: usize) -> &C {
        // SAFETY: there are one more lines than the mask says.
        let line = unsafe { self.lines.get_unchecked(place & self.mask) };
        &line.0[(place >> self.shift) & (PER_LINE - 1)]
    }
}

/// Some cells, their first slots and their keys.
struct Chunk<K, C: Cell> {
    cells: Cells<C>,
    /// Behind the cells' words. A vector, because moving a box would say that nobody else points
    /// into it.
    slots: Vec<Slot<C::Value>>,
    keys: Box<[UnsafeCell<Option<K>>]>,
}

impl<K, C: Cell> Chunk<K, C> {
    /// `None` if there is no memory for it.
    fn new(length: usize) -> Option<Self> {
        let slots = slots(length)?;
        let mut keys = Vec::new();
        keys.try_reserve_exact(length).ok()?;
        keys.extend((0..length).map(|_| UnsafeCell::new(None)));
        Some(Self { cells: Cells::new(&slots)?, slots, keys: keys.into_boxed_slice() })
    }
}

fn slots<V>(count: usize) -> Option<Vec<Slot<V>>> {
    let mut slots = Vec::new();
    slots.try_reserve_exact(count).ok()?;
    on_large_pages(slots.spare_capacity_mut());
    slots.extend((0..count).map(|_| Slot::new()));
    Some(slots)
}

/// A table lives until both of its ends are gone; then every slot that is full is emptied.
impl<K, C: Cell> Drop for Table<K, C> {
    fn drop(&mut self) {
        for chunk in &self.chunks {
            let Some(chunk) = chunk.get() else { continue };
            for place in 0..chunk.slots.len() {
                let word = chunk.cells.get(place).word().slot.load(Acquire);
                if is(word, DIRTY) {
                    // SAFETY: nobody else is left, the slot is of this table, and the dirty bit says
                    // that it is full.
                    drop(unsafe { empty(unmark(word)) });
                }
            }
        }
    }
}

#[cfg(not(feature = "loom"))]
pub(super) const FIRST_CHUNK: u32 = 64;
#[cfg(feature = "loom")]
pub(super) const FIRST_CHUNK: u32 = 2;
/// A chunk's number is the log2 of its length, so the first few are never made.
pub(super) const CHUNKS: usize = 32;

/// Chunks of cells, each twice as long as the one before.
pub(super) struct Table<K, C: Cell> {
    chunks: [OnceLock<Chunk<K, C>>; CHUNKS],
    /// The slots that no cell names at first.
    spares: Vec<Slot<C::Value>>,
}

// SAFETY: values go from one thread to another (`Value: Send`), one side at a time by the cells'
// protocols. Keys are read by both (`K: Sync`), and dropped by either (`K: Send`); they are written
// when nobody reads (invariant 3).
unsafe impl<K: Send + Sync, C: Cell<Value: Send>> Sync for Table<K, C> {}
// SAFETY: as above; nothing in it is tied to a thread.
unsafe impl<K: Send, C: Cell<Value: Send>> Send for Table<K, C> {}

impl<K, C: Cell> Table<K, C> {
    /// A table without a key. `None` if there is no memory for the spare slots.
    pub(super) fn new(spares: usize) -> Option<Self> {
        Some(Self { chunks: [const { OnceLock::new() }; CHUNKS], spares: slots(spares)? })
    }

    pub(super) fn spare(&self, number: usize) -> Place<C::Value> {
        self.spares.as_ptr().wrapping_add(number).cast_mut()
    }

    /// The cell of an index that was handed out.
    #[inline(always)]
    pub(super) fn cell(&self, index: u32) -> &C {
        let (chunk, place) = locate(index);
        let Some(chunk) = self.chunks[chunk].get() else { unmade() };
        chunk.cells.get(place)
    }

    /// The key of an index that was handed out.
    #[inline(always)]
    pub(super) fn key(&self, index: u32) -> &UnsafeCell<Option<K>> {
        let (chunk, place) = locate(index);
        let Some(chunk) = self.chunks[chunk].get() else { unmade() };
        &chunk.keys[place]
    }

    /// Makes the chunk of `index` if need be, no longer than `max_keys` asks for. `false` if there
    /// is no memory for it.
    pub(super) fn grow(&self, index: u32, max_keys: u32) -> bool {
        let (chunk, place) = locate(index);
        if self.chunks[chunk].get().is_some() {
            return true;
        }
        let length = (1 << chunk).min(max_keys - (index - place as u32)) as usize;
        Chunk::new(length).is_some_and(|made| self.chunks[chunk].set(made).is_ok())
    }
}

#[cold]
fn unmade() -> ! {
    unreachable!("an index is handed out only after its chunk was made")
}

#[inline(always)]
pub(super) const fn locate(index: u32) -> (usize, usize) {
    // The sum cannot pass `u32::MAX`: see `MAX_KEYS`.
    let number = index + FIRST_CHUNK;
    let level = number.ilog2();
    (level as usize & (CHUNKS - 1), (number - (1 << level)) as usize)
}
