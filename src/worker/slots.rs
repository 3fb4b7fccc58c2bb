//! The storage of the bounded ring.
//!
//! Rules, upheld by the two owners of a ring's ends: a place is written only by the producer and
//! only while it is free, read only by the consumer and only after its position was published; the
//! two sides tell each other by the release stores and acquire loads of their positions. What is
//! left in the ring when it goes away must have been taken out by one of them: the storage itself
//! drops nothing, it does not know which places are full.
#![expect(unsafe_code, reason = "places are shared between two threads, one at a time")]

use super::lifecycle::{CloseReason, Core, NoRoom};
use super::ring::{Capacity, CapacityError, PopCursor, PushCursor};
use super::sync::{Arc, UnsafeCell};
use super::wait::wait_out;
use std::mem::MaybeUninit;

/// The places of one ring.
struct Slots<T> {
    places: Box<[UnsafeCell<MaybeUninit<T>>]>,
    capacity: Capacity,
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
        Ok(Self { places: places.into_boxed_slice(), capacity })
    }

    /// Puts an item into the place of `position`.
    ///
    /// # Safety
    /// The caller is the only producer, and the place is free: the consumer's published position
    /// is less than one capacity behind `position`.
    #[inline(always)]
    unsafe fn write(&self, position: usize, item: T) {
        self.places[self.capacity.place(position)].with_mut(|place| {
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
        self.places[self.capacity.place(position)].with(|place| {
            // SAFETY: the place is full and read once (the caller's promise).
            unsafe { (*place).assume_init_read() }
        })
    }
}

/// The two ends of a fresh ring over `core`'s positions. Each exists once.
///
/// # Errors
/// [`CapacityError::OutOfMemory`].
pub(super) fn ring<T>(
    core: &Arc<Core>,
) -> Result<(RingProducer<T>, RingConsumer<T>), CapacityError> {
    let slots = Arc::new(Slots::new(core.capacity())?);
    let producer =
        RingProducer { core: core.clone(), slots: slots.clone(), cursor: core.push_cursor() };
    let consumer = RingConsumer { core: core.clone(), slots, cursor: core.pop_cursor() };
    Ok((producer, consumer))
}

/// The producing end.
pub(super) struct RingProducer<T> {
    core: Arc<Core>,
    slots: Arc<Slots<T>>,
    cursor: PushCursor,
}

impl<T> RingProducer<T> {
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Whether a place is free; once true it stays so until the next push.
    #[inline(always)]
    pub(super) fn has_room(&mut self) -> bool {
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
    pub(super) fn wait_for_room(&mut self) -> Result<(), NoRoom> {
        self.core.wait_for_room(&mut self.cursor)
    }

    /// Where the next item goes.
    pub(super) fn position(&self) -> usize {
        self.cursor.position()
    }

    /// Publishes an item. The caller knows that there is room.
    ///
    /// # Errors
    /// The worker closed before; the item comes back.
    #[inline(always)]
    pub(super) fn push(&mut self, item: T) -> Result<(), (T, CloseReason)> {
        let mut turn = 0;
        while !self.has_room() {
            debug_assert!(false, "a push needs a place that is known to be free");
            wait_out(&mut turn);
        }
        let position = self.cursor.position();
        // SAFETY: this is the only producing end, and the cursor has room: the consumer's
        // published position is less than one capacity behind.
        unsafe { self.slots.write(position, item) };
        self.core.publish(&mut self.cursor, 1).map_err(|reason| {
            // SAFETY: the place was written just above, and its position is not below the final
            // tail, so the consumer never reads it.
            (unsafe { self.slots.read(position) }, reason)
        })
    }
}

impl<T> RingProducer<T> {
    /// A number of free places, at least as many as wanted if there are.
    pub(super) fn room(&mut self, wanted: usize) -> usize {
        if self.cursor.room() < wanted.max(1) {
            self.refresh();
        }
        self.cursor.room()
    }

    /// Fills up to `most` free places without publishing them; how many it was. If the iterator
    /// panics, what was filled is dropped.
    pub(super) fn fill(&mut self, most: usize, items: &mut impl Iterator<Item = T>) -> usize {
        let mut filled = Filled { slots: &self.slots, from: self.cursor.position(), count: 0 };
        let most = most.min(self.cursor.room());
        while filled.count < most
            && let Some(item) = items.next()
        {
            // SAFETY: this is the only producing end, and `most` places are free.
            unsafe { self.slots.write(filled.from.wrapping_add(filled.count), item) };
            filled.count += 1;
        }
        let count = filled.count;
        std::mem::forget(filled);
        count
    }

    /// Publishes what [`fill`](Self::fill) has just filled.
    ///
    /// # Errors
    /// The worker closed before; all of it comes back.
    pub(super) fn publish_filled(&mut self, count: usize) -> Result<(), (Vec<T>, CloseReason)> {
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
    pub(super) fn stage(&mut self, ahead: usize, item: T) -> bool {
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

/// The consuming end.
pub(super) struct RingConsumer<T> {
    core: Arc<Core>,
    slots: Arc<Slots<T>>,
    cursor: PopCursor,
}

impl<T> RingConsumer<T> {
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The cursor, to look and to wait with.
    pub(super) fn sight(&mut self) -> (&Core, &mut PopCursor) {
        (&self.core, &mut self.cursor)
    }

    /// Where the next item comes from; what was taken below it and is done with can be passed.
    #[inline(always)]
    pub(super) fn position(&self) -> usize {
        self.cursor.position()
    }

    /// Takes the next item out and frees its place. `None` if none is in sight.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.take()?;
        self.core.free(&self.cursor);
        Some(item)
    }

    /// Takes the next item out; its place is free only after [`free`](Self::free).
    #[inline(always)]
    pub(super) fn take(&mut self) -> Option<T> {
        if !self.cursor.has_item() {
            return None;
        }
        // SAFETY: this is the only consuming end; the position lies below a tail that was read
        // with acquire, so the place was written, and the cursor moves past it right away.
        let item = unsafe { self.slots.read(self.cursor.position()) };
        self.cursor.advance();
        Some(item)
    }

    /// Frees the places of all that was taken, and wakes the producer if it waits for one.
    #[inline(always)]
    pub(super) fn free(&self) {
        self.core.free(&self.cursor);
        self.core.offer_room();
    }
}

impl<T: Copy> RingConsumer<T> {
    /// Looks at an item in sight, `ahead` places behind the next one.
    #[inline(always)]
    pub(super) fn peek(&self, ahead: usize) -> Option<T> {
        // SAFETY: this is the only consuming end, and the position lies below a tail that was read
        // with acquire, so the place was written; reading a copy takes nothing out.
        (self.cursor.in_sight() > ahead)
            .then(|| unsafe { self.slots.read(self.cursor.position().wrapping_add(ahead)) })
    }
}

// Also run under Miri, which sees a misuse of the places.
#[cfg(all(test, not(feature = "loom")))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

    use super::*;
    use std::thread;

    fn fresh(capacity: usize) -> (RingProducer<String>, RingConsumer<String>) {
        ring(&Core::new(Capacity::new(capacity).unwrap(), usize::MAX - 1)).unwrap()
    }

    #[test]
    fn items_pass_from_thread_to_thread_and_places_are_used_again() {
        let (mut producer, mut consumer) = fresh(2);
        let receiver = thread::spawn(move || {
            let mut received = Vec::new();
            while received.len() < 100 {
                let (core, cursor) = consumer.sight();
                core.next(cursor);
                match consumer.pop() {
                    Some(item) => received.push(item),
                    None => thread::yield_now(),
                }
            }
            received
        });
        for number in 0..100 {
            while !producer.has_room() {
                thread::yield_now();
            }
            producer.push(number.to_string()).unwrap();
        }
        let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(receiver.join().unwrap(), expected);
    }

    #[test]
    fn what_comes_after_the_closing_comes_back() {
        let (mut producer, mut consumer) = fresh(4);
        producer.push("in".into()).unwrap();
        let (core, cursor) = consumer.sight();
        core.complete();
        core.close(cursor);
        assert_eq!(producer.push("out".into()).unwrap_err().0, "out");
        let mut more = ["out", "too"].map(String::from).into_iter();
        let count = producer.fill(9, &mut more);
        assert_eq!(producer.publish_filled(count).unwrap_err().0, ["out", "too"]);
        assert_eq!(consumer.pop().as_deref(), Some("in"));
        assert_eq!(consumer.pop(), None);
    }
}
