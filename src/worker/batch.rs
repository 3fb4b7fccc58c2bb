//! A consumer's run through the items in sight, and what is told on the way.

use super::lifecycle::Attention;
use super::slots::RingConsumer;
use std::fmt;

/// How far a consumer is, and when it tells the producer.
#[derive(Debug)]
pub(super) struct Meter {
    /// Items taken so far: all but the last are handled.
    pub(super) taken: u64,
    /// Places emptied and not freed yet.
    kept: usize,
    /// How many places are freed together: one in a ring of 64 or fewer, 16 at most.
    stride: usize,
    /// The same for a handler that takes a whole batch.
    long_stride: usize,
}

impl Meter {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            taken: 0,
            kept: 0,
            stride: (capacity / 64).clamp(1, 16),
            long_stride: (capacity / 4).clamp(1, 256),
        }
    }

    /// Takes note of a place emptied; whether it is time to free.
    #[inline(always)]
    pub(super) const fn empties(&mut self, attention: Attention) -> bool {
        self.taken += 1;
        self.kept += 1;
        self.kept >= self.stride || !matches!(attention, Attention::None)
    }

    #[inline(always)]
    pub(super) const fn freed(&mut self) {
        self.kept = 0;
    }

    #[inline(always)]
    pub(super) const fn keeps_some(&self) -> bool {
        self.kept > 0
    }
}

/// The items that wait, oldest first: what [`handle_batch`](super::Handler::handle_batch) is given.
///
/// An item is the handler's once it is drawn; those that are not drawn stay where they are. A hard
/// stop ends the batch early. `for_each` is the quick way through: it looks up and frees places only
/// every 256 items (a quarter of the ring, if that is less).
pub struct Batch<'a, T> {
    ring: &'a mut RingConsumer<T>,
    meter: &'a mut Meter,
    left: usize,
}

impl<'a, T> Batch<'a, T> {
    #[inline(always)]
    pub(super) fn new(ring: &'a mut RingConsumer<T>, meter: &'a mut Meter, most: usize) -> Self {
        let left = ring.in_sight().min(most);
        Self { ring, meter, left }
    }

    /// How many items are left; 0 while the last one is in hand. A hard stop may keep some back.
    #[must_use]
    #[inline]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Frees what was taken, if something is kept.
    pub(super) fn free(&mut self) {
        if self.meter.keeps_some() {
            self.meter.freed();
            self.ring.free();
        }
    }
}

impl<T> fmt::Debug for Batch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("left", &self.left).finish_non_exhaustive()
    }
}

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    #[inline(always)]
    fn next(&mut self) -> Option<T> {
        if self.left == 0 {
            return None;
        }
        let core = self.ring.core();
        let attention = core.asks_for_attention();
        if attention == Attention::Cancelled {
            return None;
        }
        // Whoever asks for another is done with the one before.
        core.count_handled(self.meter.taken);
        let item = self.ring.take()?;
        self.left -= 1;
        if self.meter.empties(attention) {
            self.meter.freed();
            self.ring.free();
        }
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }

    #[inline]
    fn for_each<F: FnMut(T)>(self, mut f: F) {
        let Self { ring, meter, mut left } = self;
        while left > 0 && ring.core().asks_for_attention() != Attention::Cancelled {
            let count = left.min(meter.long_stride);
            let drawn = Drawn { before: ring.in_sight(), ring, meter };
            drawn.ring.take_run(count, &mut f);
            drop(drawn);
            meter.freed();
            ring.core().count_handled(meter.taken);
            ring.free();
            left -= count;
        }
    }
}

/// Counts a run of items by the cursor, also on the way out of a panic.
struct Drawn<'a, T> {
    before: usize,
    ring: &'a mut RingConsumer<T>,
    meter: &'a mut Meter,
}

impl<T> Drop for Drawn<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.meter.taken += (self.before - self.ring.in_sight()) as u64;
    }
}
