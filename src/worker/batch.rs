//! A consumer's run through the items in sight, and what is told on the way.

use super::lifecycle::{Attention, Core};
use super::ring::PopCursor;
use super::slots::RingConsumer;
use super::sync::SHARE;
use super::wait::give_way;
use std::fmt;
use std::task::Context;

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
    /// Places freed while the producer waited and was not woken yet.
    unoffered: usize,
}

impl Meter {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            taken: 0,
            kept: 0,
            stride: (capacity / 64).clamp(1, 16),
            long_stride: (capacity / SHARE).clamp(1, 256),
            unoffered: 0,
        }
    }

    /// For how many places a task wakes a producer that waits, if it goes on itself.
    pub(super) const fn good_room(&self) -> usize {
        self.long_stride
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

    /// Takes note of a place emptied by a task. A producer that waits is another task, perhaps next
    /// on this very thread: it is woken for a good number of places, not for each. Until then they
    /// are free, and it finds them if it looks.
    #[inline(always)]
    pub(super) fn empties_in_task(
        &mut self,
        attention: Attention,
        core: &Core,
        cursor: &PopCursor,
    ) {
        if !self.empties(attention) {
            return;
        }
        self.freed();
        self.unoffered = if attention == Attention::Room { self.unoffered + 1 } else { 0 };
        if self.unoffered >= self.long_stride {
            self.unoffered = 0;
            core.free(cursor);
            core.offer_room();
        } else {
            core.free(cursor);
        }
    }

    /// A run of a task is over: all that was emptied is the producer's. One that sleeps is woken if
    /// there is nothing more to handle; otherwise the next run goes on counting.
    pub(super) fn settles(&mut self, core: &Core, cursor: &mut PopCursor) {
        self.freed();
        core.free(cursor);
        if !core.producer_waits() {
            self.unoffered = 0;
        } else if self.unoffered >= self.long_stride || !core.has_more(cursor) {
            self.unoffered = 0;
            core.offer_room();
        }
    }

    /// The handler of a task waits: for the `nth` time with this item. What was emptied must be the
    /// producer's now. If the producer sleeps, it is woken the second time: a handler that does but
    /// yield is not worth it, one that waits for something may wait for the producer.
    pub(super) fn suspends(
        &mut self,
        nth: usize,
        core: &Core,
        cursor: &PopCursor,
        context: &mut Context<'_>,
    ) {
        if self.kept > 0 {
            self.freed();
            core.free(cursor);
        }
        if !core.producer_waits() {
            self.unoffered = 0;
        } else if nth > 1 || self.unoffered >= self.long_stride {
            self.unoffered = 0;
            core.offer_room();
        } else {
            // To be polled a second time, whatever the handler waits for.
            give_way(context);
        }
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

    /// [`next`](Iterator::next) for a task.
    #[inline(always)]
    pub(super) fn next_in_task(&mut self) -> Option<T> {
        if self.left == 0 {
            return None;
        }
        let attention = self.ring.core().asks_for_attention();
        if attention == Attention::Cancelled {
            return None;
        }
        self.ring.core().count_handled(self.meter.taken);
        let item = self.ring.take()?;
        self.left -= 1;
        let (core, cursor) = self.ring.sight();
        self.meter.empties_in_task(attention, core, cursor);
        Some(item)
    }

    /// The handler of a task waits, for the `nth` time with this item.
    pub(super) fn suspends(&mut self, nth: usize, context: &mut Context<'_>) {
        let (core, cursor) = self.ring.sight();
        self.meter.suspends(nth, core, cursor, context);
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
