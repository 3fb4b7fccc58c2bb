//! The storage of the bounded ring.
//!
//! Rules, upheld by the two owners of a ring's ends: a place is written only by the producer and
//! only while it is free, read only by the consumer and only after its position was published; the
//! two sides tell each other by the release stores and acquire loads of their positions. What is
//! left in the ring when it goes away must have been taken out by one of them: the storage itself
//! drops nothing, it does not know which places are full.
//!
//! A *standing* ring differs in one point: every place is full for ever, and its two sides borrow a
//! place where those of the other kind move an item in or out. Its storage drops what is in it.
#![expect(unsafe_code, reason = "places are shared between two threads, one at a time")]

mod consumer;
mod producer;
mod standing;
// Also run under Miri, which sees a misuse of the places.
#[cfg(all(test, not(feature = "loom")))]
mod tests;

pub(super) use consumer::RingConsumer;
pub(super) use producer::RingProducer;
pub(super) use standing::{StandingConsumer, StandingProducer};

use super::lifecycle::Core;
use super::ring::{Capacity, CapacityError};
use super::sync::{Arc, UnsafeCell};
use std::mem::MaybeUninit;

/// The places of one ring.
struct Slots<T> {
    /// As many as the capacity, a power of two.
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
    /// Whether every place is full, for ever.
    standing: bool,
}

// SAFETY: a place is touched by one thread at a time (the rules above), so sharing the storage
// only ever sends items from one thread to another.
unsafe impl<T: Send> Sync for Slots<T> {}

impl<T> Slots<T> {
    /// # Errors
    /// [`CapacityError::OutOfMemory`].
    fn new(capacity: Capacity) -> Result<Self, CapacityError> {
        let mut places = Vec::new();
        places
            .try_reserve_exact(capacity.get())
            .map_err(|_| CapacityError::OutOfMemory { places: capacity.get() })?;
        places.extend((0..capacity.get()).map(|_| UnsafeCell::new(MaybeUninit::uninit())));
        Ok(Self { places: places.into_boxed_slice(), standing: false })
    }

    /// Places that are full for ever.
    ///
    /// # Errors
    /// [`CapacityError::OutOfMemory`].
    fn standing(capacity: Capacity, make: impl FnMut() -> T) -> Result<Self, CapacityError> {
        let mut values = Vec::new();
        values
            .try_reserve_exact(capacity.get())
            .map_err(|_| CapacityError::OutOfMemory { places: capacity.get() })?;
        values.extend(std::iter::repeat_with(make).take(capacity.get()));
        let full = |value| UnsafeCell::new(MaybeUninit::new(value));
        Ok(Self { places: values.into_iter().map(full).collect(), standing: true })
    }

    /// The place of a position.
    #[inline(always)]
    fn place(&self, position: usize) -> &UnsafeCell<MaybeUninit<T>> {
        let index = position & (self.places.len() - 1);
        // SAFETY: the number of places is a power of two, so the mask leaves an index below it.
        unsafe { self.places.get_unchecked(index) }
    }

    /// The places from a position on that lie side by side, at most `most` of them.
    #[inline(always)]
    fn run(&self, position: usize, most: usize) -> &[UnsafeCell<MaybeUninit<T>>] {
        let rest = &self.places[position & (self.places.len() - 1)..];
        &rest[..most.min(rest.len())]
    }

    /// Puts an item into the place of `position`.
    ///
    /// # Safety
    /// The caller is the only producer, and the place is free: the consumer's published position
    /// is less than one capacity behind `position`.
    #[inline(always)]
    unsafe fn write(&self, position: usize, item: T) {
        self.place(position).with_mut(|place| {
            // SAFETY: nobody else touches a free place (the caller's promise).
            unsafe { (*place).write(item) };
        });
    }

    /// Takes the item out of the place of `position`.
    ///
    /// # Safety
    /// The caller is the only one that reads `position`, once, after it was written.
    #[inline(always)]
    unsafe fn read(&self, position: usize) -> T {
        self.place(position).with(|place| {
            // SAFETY: the place is full and read once (the caller's promise).
            unsafe { (*place).assume_init_read() }
        })
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        if self.standing {
            for place in &self.places {
                // SAFETY: both sides are gone (the storage is being dropped), the place is full,
                // and nothing looks at it again.
                place.with_mut(|place| unsafe { (*place).assume_init_drop() });
            }
        }
    }
}

/// The two ends of a fresh ring over `core`'s positions. Each exists once.
///
/// # Errors
/// [`CapacityError::OutOfMemory`].
pub(super) fn ring<T>(
    core: &Arc<Core>,
) -> Result<(RingProducer<T>, RingConsumer<T>), CapacityError> {
    Ok(ends(core, Slots::new(core.capacity())?))
}

/// The two ends of a fresh standing ring, each of its places filled by `make`.
///
/// # Errors
/// [`CapacityError::OutOfMemory`].
pub(super) fn standing_ring<T>(
    core: &Arc<Core>,
    make: impl FnMut() -> T,
) -> Result<(StandingProducer<T>, StandingConsumer<T>), CapacityError> {
    let (producer, consumer) = ends(core, Slots::standing(core.capacity(), make)?);
    Ok((StandingProducer(producer), StandingConsumer(consumer)))
}

fn ends<T>(core: &Arc<Core>, slots: Slots<T>) -> (RingProducer<T>, RingConsumer<T>) {
    let slots = Arc::new(slots);
    let producer =
        RingProducer { core: core.clone(), slots: slots.clone(), cursor: core.push_cursor() };
    let consumer = RingConsumer { core: core.clone(), slots, cursor: core.pop_cursor() };
    (producer, consumer)
}
