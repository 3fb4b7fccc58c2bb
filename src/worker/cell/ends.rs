//! The two ends of a table of cells.

use super::super::lifecycle::Core;
use super::super::sync::Arc;
use super::chunk::{FIRST_CHUNK, Table};
use super::fetch::{FETCHES, fetch_for_reading, fetch_for_writing};
use super::{Cell, DIRTY, FoldCell, Held, LatestCell, Place, empty, fill, is, unmark};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

/// Spare slots of the writer: a power of two. A slot that came back rests for as many dispatches
/// before it is written to, so that its lines have time to come.
#[cfg(not(feature = "loom"))]
pub(in crate::worker) const SPARES: usize = 32;
#[cfg(feature = "loom")]
pub(in crate::worker) const SPARES: usize = 2;

/// Values that are staged at most; a slot must be left.
pub(in crate::worker) const MOST_STAGED: usize = SPARES / 2;

/// The greatest bound on the number of keys.
pub(in crate::worker) const MAX_KEYS: u32 = u32::MAX - FIRST_CHUNK;

/// The two ends of a fresh table. Each exists once. `None` if there is no memory for it.
pub(in crate::worker) fn table<K, C: Cell>(
    max_keys: u32,
) -> Option<(WriterEnd<K, C>, ReaderEnd<K, C>)> {
    let table = Arc::new(Table::new(SPARES + 1)?);
    let writer = WriterEnd {
        spares: std::array::from_fn(|number| table.spare(number)),
        turn: 0,
        staged: 0,
        aims: [None; SPARES],
        table: table.clone(),
        known: 0,
        retired: VecDeque::new(),
        max_keys: max_keys.min(MAX_KEYS),
    };
    Some((writer, ReaderEnd { hand: table.spare(SPARES), table }))
}

/// The producer's end.
pub(in crate::worker) struct WriterEnd<K, C: Cell> {
    table: Arc<Table<K, C>>,
    /// Empty slots, used in turn.
    spares: [Place<C::Value>; SPARES],
    turn: usize,
    /// So many from `turn` on are full: values that wait for their cells.
    staged: usize,
    /// The cells of the staged values, once they are known.
    aims: [Option<NonNull<C>>; SPARES],
    /// Indices that were ever handed out.
    known: u32,
    /// Retired indices, oldest first, with the position that the reader must have passed.
    retired: VecDeque<(u32, usize)>,
    max_keys: u32,
}

// SAFETY: its slots are its own, wherever it goes; the table may be shared and sent as it says.
unsafe impl<K: Send + Sync, C: Cell<Value: Send>> Send for WriterEnd<K, C> {}

impl<K, C: Cell> WriterEnd<K, C> {
    /// Gives a key a cell, a retired one if the reader is done with it. `None` if `max_keys` are in
    /// use, or there is no memory.
    pub(in crate::worker) fn add(&mut self, key: K, stamp: u32, core: &Core) -> Option<u32> {
        let index = match self.retired.front() {
            Some(&(index, position)) if core.passed(position) => {
                self.retired.pop_front();
                index
            }
            _ => {
                let index = self.known;
                if index >= self.max_keys || !self.table.grow(index, self.max_keys) {
                    return None;
                }
                self.known += 1;
                index
            }
        };
        self.table.cell(index).word().stamp.store(stamp, Relaxed);
        let former = self.table.key(index).with_mut(|place| {
            // SAFETY: the index is new and not published yet, or the reader has passed every place
            // that named it (invariant 3).
            unsafe { (*place).replace(key) }
        });
        drop(former);
        Some(index)
    }

    /// Whether `stamp` is the one of the key that now has this index. The cell is about to be
    /// written to.
    #[inline(always)]
    pub(in crate::worker) fn holds(&self, index: u32, stamp: u32) -> bool {
        if index >= self.known {
            return false;
        }
        let word = self.table.cell(index).word();
        // A look brings the line to be read only, and the write would ask for it again.
        fetch_for_writing(word);
        word.stamp.load(Relaxed) == stamp
    }

    pub(in crate::worker) fn stamp(&self, index: u32) -> u32 {
        self.table.cell(index).word().stamp.load(Relaxed)
    }

    /// Ends this use of the index. It is given to another key once the reader has passed
    /// `position`, the next one to be published. The key goes to `forget`.
    pub(in crate::worker) fn retire(
        &mut self,
        index: u32,
        position: usize,
        forget: impl FnOnce(&K),
    ) {
        self.table.cell(index).word().stamp.store(0, Relaxed);
        self.retired.push_back((index, position));
        self.table.key(index).with(|key| {
            // SAFETY: only this end writes keys, and it does not now.
            if let Some(key) = unsafe { &*key } {
                forget(key);
            }
        });
    }

    /// The number of staged values.
    #[inline(always)]
    pub(in crate::worker) fn staged(&self) -> usize {
        self.staged
    }

    /// Where the staged value is that has so many before it.
    #[inline(always)]
    pub(in crate::worker) fn staged_at(&self, before: usize) -> usize {
        (self.turn + before) & (SPARES - 1)
    }

    /// Puts a value into a spare slot, where it waits for its cell; where that is. At most
    /// [`MOST_STAGED`] at a time. To be [`aim`](Self::aim)ed.
    #[inline(always)]
    pub(in crate::worker) fn stage(&mut self, value: C::Value) -> usize {
        let at = self.staged_at(self.staged);
        if self.staged == MOST_STAGED {
            misused();
        }
        // SAFETY: the slot is this end's, and empty: it is not one of the staged.
        unsafe { fill(self.spares[at], value) };
        self.staged += 1;
        at
    }

    /// Says which cell a staged value goes to, and asks for it; none if there is no such index.
    #[inline(always)]
    pub(in crate::worker) fn aim(&mut self, at: usize, index: Option<u32>) {
        let index = index.filter(|index| *index < self.known);
        self.aims[at & (SPARES - 1)] = index.map(|index| {
            let cell = self.table.cell(index);
            fetch_for_writing(cell.word());
            NonNull::from(cell)
        });
    }

    /// Asks for what else will be needed of the cell that a staged value goes to.
    #[inline(always)]
    pub(in crate::worker) fn fetch_aim(&self, at: usize) {
        if FETCHES
            && C::LEADS_FURTHER
            && let Some(cell) = self.aim_at(at)
        {
            cell.fetch_for_writer();
        }
    }

    /// Whether the first staged value is aimed at a cell that has this stamp.
    #[inline(always)]
    pub(in crate::worker) fn aim_holds(&self, stamp: u32) -> bool {
        self.aim_at(self.turn).is_some_and(|cell| cell.word().stamp.load(Relaxed) == stamp)
    }

    #[inline(always)]
    fn aim_at(&self, at: usize) -> Option<&C> {
        // SAFETY: it was made from a cell of this end's table, where cells never move and live as
        // long as the table.
        self.aims[at & (SPARES - 1)].map(|cell| unsafe { cell.as_ref() })
    }

    /// Takes the value back that was staged first.
    #[inline(always)]
    pub(in crate::worker) fn unstage(&mut self) -> C::Value {
        let hand = self.spares[self.turn];
        self.unstaged();
        // SAFETY: the slot was staged, so it is full, and is not staged any more.
        unsafe { empty(hand) }
    }

    #[inline(always)]
    fn unstaged(&mut self) {
        if self.staged == 0 {
            misused();
        }
        self.staged -= 1;
        self.turn = (self.turn + 1) & (SPARES - 1);
    }

    /// Drops what is still staged.
    pub(in crate::worker) fn drop_staged(&mut self) {
        while self.staged > 0 {
            drop(self.unstage());
        }
    }

    /// The key of an index.
    pub(in crate::worker) fn key(&self, index: u32) -> Option<&K> {
        self.table.key(index).with(|key| {
            // SAFETY: only this end writes keys, and it is borrowed.
            unsafe { (*key).as_ref() }
        })
    }

    /// Takes a value back that the reader will never look for.
    pub(in crate::worker) fn retract(&mut self, index: u32) -> Option<C::Value> {
        let hand = &mut self.spares[(self.turn + self.staged) & (SPARES - 1)];
        // SAFETY: the slot is this end's and empty, and the reader was not told of the cell.
        unsafe { self.table.cell(index).take(hand) }
    }
}

impl<K, V> WriterEnd<K, LatestCell<V>> {
    /// Puts the newest value of a key in; the one that it supersedes comes back.
    #[inline(always)]
    pub(in crate::worker) fn publish(&mut self, index: u32, value: V) -> Option<V> {
        let hand = &mut self.spares[(self.turn + self.staged) & (SPARES - 1)];
        // SAFETY: the slot is this end's and empty, and then full.
        let superseded = unsafe {
            fill(*hand, value);
            self.table.cell(index).exchange(hand, DIRTY)
        };
        fetch_for_writing(*hand);
        // What came back becomes the last of the spares. (In the middle of a batch, where this is
        // the way without a place, it is used at once again.)
        self.turn = (self.turn + usize::from(self.staged == 0)) & (SPARES - 1);
        superseded
    }

    /// Puts the value that was staged first into the cell that it is aimed at.
    #[inline(always)]
    pub(in crate::worker) fn publish_staged(&mut self) -> Option<V> {
        let mut hand = self.spares[self.turn];
        let Some(cell) = self.aim_at(self.turn) else { misused() };
        if self.staged == 0 {
            misused();
        }
        // SAFETY: the slot is this end's, and it was staged, so it is full.
        let superseded = unsafe { cell.exchange(&mut hand, DIRTY) };
        self.spares[self.turn] = hand;
        self.unstaged();
        fetch_for_writing(hand);
        superseded
    }

    pub(in crate::worker) fn is_dirty(&self, index: u32) -> bool {
        is(self.table.cell(index).word().slot.load(Acquire), DIRTY)
    }
}

impl<K, V> WriterEnd<K, FoldCell<V>> {
    /// The pending total of a key, held, if there is one. If there is none, nobody but this end
    /// changes that.
    #[inline(always)]
    pub(in crate::worker) fn hold(&self, index: u32) -> Option<Held<'_, V>> {
        self.table.cell(index).hold()
    }

    /// Gives a clean key a fresh total.
    #[inline(always)]
    pub(in crate::worker) fn start(&mut self, index: u32, total: V) {
        let cell = NonNull::from(self.table.cell(index));
        self.start_at(cell, total);
    }

    /// The pending total, held, that the value which was unstaged last was aimed at.
    #[inline(always)]
    pub(in crate::worker) fn hold_aim(&self) -> Option<Held<'_, V>> {
        self.aim_at(self.turn + SPARES - 1)?.hold()
    }

    /// Gives the clean key that the value which was unstaged last was aimed at a fresh total.
    #[inline(always)]
    pub(in crate::worker) fn start_aim(&mut self, total: V) {
        let Some(cell) = self.aims[(self.turn + SPARES - 1) & (SPARES - 1)] else { misused() };
        self.start_at(cell, total);
    }

    /// `cell` is one of this end's table.
    #[inline(always)]
    fn start_at(&mut self, cell: NonNull<FoldCell<V>>, total: V) {
        let next = self.staged_at(self.staged);
        let mut hand = self.spares[next];
        // SAFETY: cells never move and live as long as the table; the slot is this end's and empty,
        // and then full.
        let started = unsafe {
            fill(hand, total);
            cell.as_ref().start(&mut hand)
        };
        if !started {
            misused();
        }
        fetch_for_writing(hand);
        // What came back becomes the last of the spares, also when others are staged.
        self.turn = (self.turn + usize::from(self.staged == 0)) & (SPARES - 1);
        let last = (self.turn + SPARES - 1) & (SPARES - 1);
        self.spares[next] = self.spares[last];
        self.spares[last] = hand;
    }
}

#[cold]
fn misused() -> ! {
    unreachable!("staged beyond the slots, taken without being staged, or started over a total")
}

/// The consumer's end.
pub(in crate::worker) struct ReaderEnd<K, C: Cell> {
    table: Arc<Table<K, C>>,
    /// Its own, empty slot.
    hand: Place<C::Value>,
}

// SAFETY: its slot is its own, wherever it goes; the table may be shared and sent as it says.
unsafe impl<K: Send + Sync, C: Cell<Value: Send>> Send for ReaderEnd<K, C> {}
// SAFETY: shared it shows keys alone (`K: Sync`).
unsafe impl<K: Send + Sync, C: Cell<Value: Send>> Sync for ReaderEnd<K, C> {}

impl<K, C: Cell> ReaderEnd<K, C> {
    /// Takes the pending value of a key whose index came out of the ring.
    #[inline(always)]
    pub(in crate::worker) fn take(&mut self, index: u32) -> Option<C::Value> {
        // SAFETY: this is the only reader's end, and the slot is its own and empty.
        unsafe { self.table.cell(index).take(&mut self.hand) }
    }

    /// Asks for the cell of a key whose index came out of the ring. Comes before
    /// [`fetch_value`](Self::fetch_value), which reads it.
    #[inline(always)]
    pub(in crate::worker) fn fetch_cell(&self, index: u32) {
        if FETCHES {
            fetch_for_writing(self.table.cell(index).word());
        }
    }

    /// Asks for the value of a key, and the key.
    #[inline(always)]
    pub(in crate::worker) fn fetch_value(&self, index: u32) {
        if FETCHES {
            // A guess: the writer may still swap another one in.
            let slot = self.table.cell(index).word().slot.load(Relaxed);
            fetch_for_reading(unmark(slot));
            self.table.key(index).with(fetch_for_reading);
        }
    }

    /// Shows the key of an index. The place of the ring that named it is passed only after this has
    /// returned: that is what keeps the key in place.
    #[inline(always)]
    pub(in crate::worker) fn with_key<R>(
        &self,
        index: u32,
        show: impl FnOnce(&K) -> R,
    ) -> Option<R> {
        self.table.key(index).with(|key| {
            // SAFETY: the writer changes a key only after the place that named it was passed
            // (invariant 3), and the consumer's engine passes it after the call.
            unsafe { (*key).as_ref() }.map(show)
        })
    }

    /// The key of an index, for a handler that waits. As with [`with_key`](Self::with_key) the place
    /// of the ring that named it is passed only when the reference is gone.
    pub(in crate::worker) fn key(&self, index: u32) -> Option<&K> {
        self.table.key(index).with(|key| {
            // SAFETY: the writer changes a key only after the place that named it was passed
            // (invariant 3), and the consumer's task passes it after the handler is done.
            unsafe { (*key).as_ref() }
        })
    }
}
