//! The three ways to hold a slot: to write it, to take back what was refused, to read it.

use super::super::batch::Meter;
use super::super::handler::{Panicked, catch};
use super::super::lifecycle::{Attention, CloseReason};
use super::super::slots::{StandingConsumer, StandingProducer};
use super::Slot;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A slot claimed for writing. Dropping it publishes; while the thread panics it is abandoned
/// instead, so nothing half written gets out.
#[must_use = "dropping the scope publishes its slot"]
pub struct PublishScope<'a, T: Slot> {
    slot: Unpublished<'a, T>,
}

impl<'a, T: Slot> PublishScope<'a, T> {
    #[inline(always)]
    pub(in crate::worker) const fn new(ring: &'a mut StandingProducer<T>) -> Self {
        // The reason is set when it comes to that.
        Self { slot: Unpublished { ring, reason: CloseReason::Cancelled, own: Own::Claimed } }
    }

    /// Publishes the slot, and tells whether it was taken.
    ///
    /// # Errors
    /// [`Unpublished`] if the worker closed since the slot was claimed: what was written is in it.
    #[inline]
    pub fn commit(mut self) -> Result<(), Unpublished<'a, T>> {
        self.slot.publish();
        match self.slot.own {
            Own::Refused => Err(self.slot),
            _ => Ok(()),
        }
    }

    /// Publishes nothing, and clears the slot.
    pub fn abandon(mut self) {
        self.slot.own = Own::Refused;
    }
}

impl<T: Slot> Deref for PublishScope<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.slot
    }
}

impl<T: Slot> DerefMut for PublishScope<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.slot
    }
}

impl<T: Slot> fmt::Debug for PublishScope<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublishScope(..)")
    }
}

/// A slot that its worker did not take. What was written can be moved out of it; dropping it clears
/// the slot.
pub struct Unpublished<'a, T: Slot> {
    ring: &'a mut StandingProducer<T>,
    reason: CloseReason,
    own: Own,
}

/// Whose the slot is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Own {
    /// The producer's, to be published.
    Claimed,
    /// The producer's, to be cleared.
    Refused,
    Published,
}

impl<T: Slot> Unpublished<'_, T> {
    /// Why it was not taken.
    #[must_use]
    pub const fn reason(&self) -> CloseReason {
        self.reason
    }

    #[inline(always)]
    fn publish(&mut self) {
        match self.ring.publish() {
            Ok(()) => self.own = Own::Published,
            Err(reason) => (self.own, self.reason) = (Own::Refused, reason),
        }
    }
}

impl<T: Slot> Drop for Unpublished<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.own == Own::Claimed && !std::thread::panicking() {
            self.publish();
        }
        if self.own != Own::Published {
            // A second panic in the middle of a first would end the process.
            let _ = catch(|| self.ring.slot_mut().clear());
        }
    }
}

impl<T: Slot> Deref for Unpublished<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.ring.slot()
    }
}

impl<T: Slot> DerefMut for Unpublished<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.ring.slot_mut()
    }
}

impl<T: Slot> fmt::Debug for Unpublished<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unpublished(.., {:?})", self.reason)
    }
}

impl<T: Slot> fmt::Display for Unpublished<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "publishing a slot: the worker is {}", self.reason)
    }
}

/// A published slot in the handler's hand. When it is dropped or [`release`](Self::release)d, the
/// slot is cleared and goes back to the producer.
pub struct HandleScope<'a, T: Slot> {
    ring: &'a mut StandingConsumer<T>,
    meter: &'a mut Meter,
    /// What `clear` panicked with.
    failed: &'a mut Option<Panicked>,
    at_once: bool,
}

impl<'a, T: Slot> HandleScope<'a, T> {
    #[inline(always)]
    pub(in crate::worker) const fn new(
        ring: &'a mut StandingConsumer<T>,
        meter: &'a mut Meter,
        failed: &'a mut Option<Panicked>,
    ) -> Self {
        Self { ring, meter, failed, at_once: false }
    }

    /// Gives the slot back now, before the handler is done. (Without it, slots that the handler is
    /// done with are given back a few at a time: each one in a ring of 64 or fewer, up to 16
    /// together in larger ones, and at once when the producer waits.)
    #[inline]
    pub fn release(mut self) {
        self.at_once = true;
    }

    /// How many more slots are in sight behind this one: at 0 it is the last of its batch.
    #[must_use]
    #[inline]
    pub fn left(&self) -> usize {
        self.ring.in_sight().saturating_sub(1)
    }
}

impl<T: Slot> Drop for HandleScope<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        release(self.ring, self.meter, self.failed, self.at_once);
    }
}

/// Clears the slot in hand and gives it back, now or with the next few.
#[inline(always)]
pub(in crate::worker) fn release<T: Slot>(
    ring: &mut StandingConsumer<T>,
    meter: &mut Meter,
    failed: &mut Option<Panicked>,
    at_once: bool,
) {
    if let Err(panicked) = catch(|| ring.slot_mut().clear()) {
        *failed = Some(panicked);
    }
    ring.pass();
    let attention = if at_once { Attention::Room } else { ring.core().asks_for_attention() };
    if meter.empties(attention) {
        meter.freed();
        ring.free();
    }
}

impl<T: Slot> Deref for HandleScope<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.ring.slot()
    }
}

impl<T: Slot> DerefMut for HandleScope<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.ring.slot_mut()
    }
}

impl<T: Slot> fmt::Debug for HandleScope<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandleScope(..)")
    }
}
