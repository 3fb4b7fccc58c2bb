//! The two ends of a standing ring: they lend places.

use super::super::awaiting::Door;
use super::super::lifecycle::{CloseReason, Core, NoRoom};
use super::super::ring::PopCursor;
use super::super::sync::Arc;
use super::{RingConsumer, RingProducer};

/// The producing end of a standing ring.
pub(in crate::worker) struct StandingProducer<T>(pub(super) RingProducer<T>);

impl<T> StandingProducer<T> {
    #[inline(always)]
    pub(in crate::worker) fn has_room(&mut self) -> bool {
        self.0.has_room()
    }

    pub(in crate::worker) fn wait_for_room(&mut self) -> Result<(), NoRoom> {
        self.0.wait_for_room()
    }

    pub(in crate::worker) fn door(&mut self) -> Door<'_> {
        self.0.door()
    }

    pub(in crate::worker) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    /// The place that is published next. The caller knows that there is room.
    #[inline(always)]
    pub(in crate::worker) fn slot(&self) -> &T {
        assert!(self.0.cursor.has_room(), "a slot needs a place that is known to be free");
        let place = self.0.slots.place(self.0.cursor.position());
        // SAFETY: places of a standing ring are full; this one is free, so the consumer does not
        // touch it before it is published, which takes `&mut self`.
        place.with(|place| unsafe { (*place).assume_init_ref() })
    }

    /// The same, to be written.
    #[inline(always)]
    pub(in crate::worker) fn slot_mut(&mut self) -> &mut T {
        assert!(self.0.cursor.has_room(), "a slot needs a place that is known to be free");
        let place = self.0.slots.place(self.0.cursor.position());
        // SAFETY: as for `slot`; and this borrow is the only one of the only producing end.
        place.with_mut(|place| unsafe { (*place).assume_init_mut() })
    }

    /// Publishes the place that [`slot`](Self::slot) lends.
    ///
    /// # Errors
    /// The worker closed before: the place is the producer's still, and lent again.
    #[inline(always)]
    pub(in crate::worker) fn publish(&mut self) -> Result<(), CloseReason> {
        self.0.core.publish(&mut self.0.cursor, 1)
    }
}

/// The consuming end of a standing ring.
pub(in crate::worker) struct StandingConsumer<T>(pub(super) RingConsumer<T>);

impl<T> StandingConsumer<T> {
    pub(in crate::worker) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    pub(in crate::worker) fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.0.sight()
    }

    #[inline(always)]
    pub(in crate::worker) fn in_sight(&self) -> usize {
        self.0.in_sight()
    }

    /// The next place in sight. The caller knows that there is one.
    #[inline(always)]
    pub(in crate::worker) fn slot(&self) -> &T {
        assert!(self.0.cursor.has_item(), "a slot needs a place that is in sight");
        let place = self.0.slots.place(self.0.cursor.position());
        // SAFETY: places of a standing ring are full; this one was published and is freed only
        // after `pass`, which takes `&mut self`.
        place.with(|place| unsafe { (*place).assume_init_ref() })
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(in crate::worker) fn slot_mut(&mut self) -> &mut T {
        assert!(self.0.cursor.has_item(), "a slot needs a place that is in sight");
        let place = self.0.slots.place(self.0.cursor.position());
        // SAFETY: as for `slot`; and this borrow is the only one of the only consuming end.
        place.with_mut(|place| unsafe { (*place).assume_init_mut() })
    }

    #[inline(always)]
    pub(in crate::worker) fn position(&self) -> usize {
        self.0.position()
    }

    /// Goes past the place that [`slot`](Self::slot) lends; it is free after [`free`](Self::free).
    #[inline(always)]
    pub(in crate::worker) fn pass(&mut self) {
        if self.0.cursor.has_item() {
            self.0.cursor.advance_by(1);
        }
    }

    #[inline(always)]
    pub(in crate::worker) fn free(&self) {
        self.0.free();
    }
}
