//! The consuming end of a ring.

use super::super::lifecycle::Core;
use super::super::ring::PopCursor;
use super::super::sync::Arc;
use super::Slots;

/// The consuming end.
pub(in crate::worker) struct RingConsumer<T> {
    pub(super) core: Arc<Core>,
    pub(super) slots: Arc<Slots<T>>,
    pub(super) cursor: PopCursor,
}

impl<T> RingConsumer<T> {
    pub(in crate::worker) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The cursor, to look and to wait with.
    pub(in crate::worker) fn sight(&mut self) -> (&Core, &mut PopCursor) {
        (&self.core, &mut self.cursor)
    }

    /// Where the next item comes from; what was taken below it and is done with can be passed.
    #[inline(always)]
    pub(in crate::worker) fn position(&self) -> usize {
        self.cursor.position()
    }

    /// Takes the next item out and frees its place. `None` if none is in sight.
    #[inline(always)]
    pub(in crate::worker) fn pop(&mut self) -> Option<T> {
        let item = self.take()?;
        self.core.free(&self.cursor);
        Some(item)
    }

    /// Takes the next item out; its place is free only after [`free`](Self::free).
    #[inline(always)]
    pub(in crate::worker) fn take(&mut self) -> Option<T> {
        if !self.cursor.has_item() {
            return None;
        }
        // SAFETY: this is the only consuming end; the position lies below a tail that was read
        // with acquire, so the place was written, and the cursor moves past it right away.
        let item = unsafe { self.slots.read(self.cursor.position()) };
        self.cursor.advance_by(1);
        Some(item)
    }

    /// How many items are in sight.
    #[inline(always)]
    pub(in crate::worker) fn in_sight(&self) -> usize {
        self.cursor.in_sight()
    }

    /// Takes `count` items out one after the other; their places are free only after
    /// [`free`](Self::free). If `each` panics, the items behind the one it was given stay.
    #[inline(always)]
    pub(in crate::worker) fn take_run(&mut self, count: usize, mut each: impl FnMut(T)) {
        let mut taken = Taken { cursor: &mut self.cursor, count: 0 };
        let count = count.min(taken.cursor.in_sight());
        while taken.count < count {
            let position = taken.cursor.position().wrapping_add(taken.count);
            for place in self.slots.run(position, count - taken.count) {
                // SAFETY: as in `take`: the position is in sight, and counted as passed before
                // anything else can happen.
                let item = place.with(|place| unsafe { (*place).assume_init_read() });
                taken.count += 1;
                each(item);
            }
        }
    }

    /// Frees the places of all that was taken, and wakes the producer if it waits for one.
    #[inline(always)]
    pub(in crate::worker) fn free(&self) {
        self.core.free(&self.cursor);
        self.core.offer_room();
    }
}

impl<T: Copy> RingConsumer<T> {
    /// Looks at an item in sight, `ahead` places behind the next one.
    #[inline(always)]
    pub(in crate::worker) fn peek(&self, ahead: usize) -> Option<T> {
        // SAFETY: this is the only consuming end, and the position lies below a tail that was read
        // with acquire, so the place was written; reading a copy takes nothing out.
        (self.cursor.in_sight() > ahead)
            .then(|| unsafe { self.slots.read(self.cursor.position().wrapping_add(ahead)) })
    }
}

/// Moves the cursor past what was taken, also on the way out of a panic.
struct Taken<'a> {
    cursor: &'a mut PopCursor,
    count: usize,
}

impl Drop for Taken<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cursor.advance_by(self.count);
    }
}
