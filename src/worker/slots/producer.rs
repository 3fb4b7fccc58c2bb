//! The producing end of a ring.

use super::super::awaiting::Door;
use super::super::lifecycle::{CloseReason, Core, NoRoom};
use super::super::ring::PushCursor;
use super::super::sync::Arc;
use super::super::wait::wait_out;
use super::Slots;

/// The producing end.
pub(in crate::worker) struct RingProducer<T> {
    pub(super) core: Arc<Core>,
    pub(super) slots: Arc<Slots<T>>,
    pub(super) cursor: PushCursor,
}

impl<T> RingProducer<T> {
    pub(in crate::worker) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Whether a place is free; once true it stays so until the next push.
    #[inline(always)]
    pub(in crate::worker) fn has_room(&mut self) -> bool {
        self.cursor.has_room() || self.refresh()
    }

    #[cold]
    fn refresh(&mut self) -> bool {
        self.cursor.refresh(self.core.head())
    }

    /// Blocks until a place is free.
    ///
    /// # Errors
    /// The worker stops, or the caller is its consumer.
    #[cold]
    pub(in crate::worker) fn wait_for_room(&mut self) -> Result<(), NoRoom> {
        self.core.wait_for_room(&mut self.cursor)
    }

    /// What a task waits for room at.
    pub(in crate::worker) fn door(&mut self) -> Door<'_> {
        Door::new(&self.core, &mut self.cursor)
    }

    /// Where the next item goes.
    pub(in crate::worker) fn position(&self) -> usize {
        self.cursor.position()
    }

    /// Publishes an item. The caller knows that there is room.
    ///
    /// # Errors
    /// The worker closed before; the item comes back.
    #[inline(always)]
    pub(in crate::worker) fn push(&mut self, mut item: T) -> Result<(), (T, CloseReason)> {
        let mut turn = 0;
        loop {
            item = match self.try_push(item) {
                Ok(()) => return Ok(()),
                Err((item, Some(reason))) => return Err((item, reason)),
                Err((item, None)) => item,
            };
            debug_assert!(false, "a push needs a place that is known to be free");
            wait_out(&mut turn);
        }
    }

    /// Publishes an item if there is room.
    ///
    /// # Errors
    /// There is none, or, with a reason, the worker closed before. The item comes back.
    #[inline(always)]
    pub(in crate::worker) fn try_push(&mut self, item: T) -> Result<(), (T, Option<CloseReason>)> {
        if !self.has_room() {
            return Err((item, None));
        }
        let position = self.cursor.position();
        // SAFETY: this is the only producing end, and the cursor has room: the consumer's
        // published position is less than one capacity behind.
        unsafe { self.slots.write(position, item) };
        self.core.publish(&mut self.cursor, 1).map_err(|reason| {
            // SAFETY: the place was written just above, and its position is not below the final
            // tail, so the consumer never reads it.
            (unsafe { self.slots.read(position) }, Some(reason))
        })
    }
}

impl<T> RingProducer<T> {
    /// A number of free places, at least as many as wanted if there are.
    #[inline]
    pub(in crate::worker) fn free_places(&mut self, wanted: usize) -> usize {
        if self.cursor.room() < wanted.max(1) {
            self.refresh();
        }
        self.cursor.room()
    }

    /// Fills up to `most` free places without publishing them; how many it was. If the iterator
    /// panics, what was filled is dropped.
    #[inline]
    pub(in crate::worker) fn fill(
        &mut self,
        most: usize,
        items: &mut impl Iterator<Item = T>,
    ) -> usize {
        let mut filled = Filled { slots: &self.slots, from: self.cursor.position(), count: 0 };
        let most = most.min(self.cursor.room());
        // At most two runs: up to the storage's end, and from its start on.
        'runs: while filled.count < most {
            let position = filled.from.wrapping_add(filled.count);
            for place in self.slots.run(position, most - filled.count) {
                let Some(item) = items.next() else { break 'runs };
                // SAFETY: this is the only producing end, and `most` places are free.
                place.with_mut(|place| unsafe { (*place).write(item) });
                filled.count += 1;
            }
        }
        let count = filled.count;
        std::mem::forget(filled);
        count
    }

    /// Publishes what [`fill`](Self::fill) has just filled.
    ///
    /// # Errors
    /// The worker closed before; all of it comes back.
    #[inline]
    pub(in crate::worker) fn publish_filled(
        &mut self,
        count: usize,
    ) -> Result<(), (Vec<T>, CloseReason)> {
        let from = self.cursor.position();
        self.core.publish(&mut self.cursor, count).map_err(|reason| {
            // SAFETY: the places were just filled, and their positions are not below the final
            // tail (one store published them all), so the consumer never reads them.
            let take = |step| unsafe { self.slots.read(from.wrapping_add(step)) };
            ((0..count).map(take).collect(), reason)
        })
    }
}

impl<T: Copy> RingProducer<T> {
    /// Fills the free place that comes `ahead` places behind the next one, without publishing it.
    /// `false` if it is not free. See [`publish_filled`](Self::publish_filled).
    #[inline(always)]
    pub(in crate::worker) fn stage(&mut self, ahead: usize, item: T) -> bool {
        if self.cursor.room() <= ahead {
            return false;
        }
        // SAFETY: this is the only producing end, and the place is free.
        unsafe { self.slots.write(self.cursor.position().wrapping_add(ahead), item) };
        true
    }
}

/// Places filled and not published: dropped, if it comes to that.
struct Filled<'a, T> {
    slots: &'a Slots<T>,
    from: usize,
    count: usize,
}

impl<T> Drop for Filled<'_, T> {
    fn drop(&mut self) {
        for step in 0..self.count {
            // SAFETY: filled by the producing end that still holds it, and never published.
            drop(unsafe { self.slots.read(self.from.wrapping_add(step)) });
        }
    }
}
