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

use super::awaiting::Door;
use super::lifecycle::{CloseReason, Core, NoRoom};
use super::ring::{Capacity, CapacityError, PopCursor, PushCursor};
use super::sync::{Arc, UnsafeCell};
use super::wait::wait_out;
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

    /// What a task waits for room at.
    /// A number of free places, at least as many as wanted if there are.
    pub(super) fn room(&mut self, wanted: usize) -> usize {
        if self.cursor.room() < wanted.max(1) {
            self.cursor.refresh(self.core.head());
        }
        self.cursor.room()
    }

    pub(super) fn door(&mut self) -> Door<'_> {
        Door::new(&self.core, &mut self.cursor)
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
    pub(super) fn push(&mut self, mut item: T) -> Result<(), (T, CloseReason)> {
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
    pub(super) fn try_push(&mut self, item: T) -> Result<(), (T, Option<CloseReason>)> {
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
    pub(super) fn free_places(&mut self, wanted: usize) -> usize {
        if self.cursor.room() < wanted.max(1) {
            self.refresh();
        }
        self.cursor.room()
    }

    /// Fills up to `most` free places without publishing them; how many it was. If the iterator
    /// panics, what was filled is dropped.
    #[inline]
    pub(super) fn fill(&mut self, most: usize, items: &mut impl Iterator<Item = T>) -> usize {
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
        self.cursor.advance_by(1);
        Some(item)
    }

    /// How many items are in sight.
    #[inline(always)]
    pub(super) fn in_sight(&self) -> usize {
        self.cursor.in_sight()
    }

    /// Takes `count` items out one after the other; their places are free only after
    /// [`free`](Self::free). If `each` panics, the items behind the one it was given stay.
    #[inline(always)]
    pub(super) fn take_run(&mut self, count: usize, mut each: impl FnMut(T)) {
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
    pub(super) fn free(&self) {
        self.core.free(&self.cursor);
        self.core.offer_room();
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

/// The producing end of a standing ring.
pub(super) struct StandingProducer<T>(RingProducer<T>);

impl<T> StandingProducer<T> {
    #[inline(always)]
    pub(super) fn has_room(&mut self) -> bool {
        self.0.has_room()
    }

    pub(super) fn wait_for_room(&mut self) -> Result<(), NoRoom> {
        self.0.wait_for_room()
    }

    pub(super) fn door(&mut self) -> Door<'_> {
        self.0.door()
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    /// The place that is published next. The caller knows that there is room.
    #[inline(always)]
    pub(super) fn slot(&self) -> &T {
        assert!(self.0.cursor.has_room(), "a slot needs a place that is known to be free");
        let place = self.0.slots.place(self.0.cursor.position());
        // SAFETY: places of a standing ring are full; this one is free, so the consumer does not
        // touch it before it is published, which takes `&mut self`.
        place.with(|place| unsafe { (*place).assume_init_ref() })
    }

    /// The same, to be written.
    #[inline(always)]
    pub(super) fn slot_mut(&mut self) -> &mut T {
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
    pub(super) fn publish(&mut self) -> Result<(), CloseReason> {
        self.0.core.publish(&mut self.0.cursor, 1)
    }
}

/// The consuming end of a standing ring.
pub(super) struct StandingConsumer<T>(RingConsumer<T>);

impl<T> StandingConsumer<T> {
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    pub(super) fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.0.sight()
    }

    #[inline(always)]
    pub(super) fn in_sight(&self) -> usize {
        self.0.in_sight()
    }

    /// The next place in sight. The caller knows that there is one.
    #[inline(always)]
    pub(super) fn slot(&self) -> &T {
        assert!(self.0.cursor.has_item(), "a slot needs a place that is in sight");
        let place = self.0.slots.place(self.0.cursor.position());
        // SAFETY: places of a standing ring are full; this one was published and is freed only
        // after `pass`, which takes `&mut self`.
        place.with(|place| unsafe { (*place).assume_init_ref() })
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(super) fn slot_mut(&mut self) -> &mut T {
        assert!(self.0.cursor.has_item(), "a slot needs a place that is in sight");
        let place = self.0.slots.place(self.0.cursor.position());
        // SAFETY: as for `slot`; and this borrow is the only one of the only consuming end.
        place.with_mut(|place| unsafe { (*place).assume_init_mut() })
    }

    #[inline(always)]
    pub(super) fn position(&self) -> usize {
        self.0.position()
    }

    /// Goes past the place that [`slot`](Self::slot) lends; it is free after [`free`](Self::free).
    #[inline(always)]
    pub(super) fn pass(&mut self) {
        if self.0.cursor.has_item() {
            self.0.cursor.advance_by(1);
        }
    }

    #[inline(always)]
    pub(super) fn free(&self) {
        self.0.free();
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
    use crate::worker::wait::WaitStrategy;
    use std::thread;

    fn fresh(capacity: usize) -> (RingProducer<String>, RingConsumer<String>) {
        ring(&Core::new(Capacity::new(capacity).unwrap(), usize::MAX - 1, WaitStrategy::Park))
            .unwrap()
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

    #[test]
    fn a_run_is_taken_across_the_end_of_the_storage_and_survives_a_panic() {
        let (mut producer, mut consumer) = fresh(4);
        for number in 0..4 {
            producer.push(number.to_string()).unwrap();
        }
        let (core, cursor) = consumer.sight();
        core.next(cursor);
        let mut taken = Vec::new();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            consumer.take_run(9, |item| {
                assert_ne!(item, "1");
                taken.push(item);
            });
        }));
        assert!(caught.is_err());
        consumer.take_run(9, |item| taken.push(item));
        assert_eq!(taken, ["0", "2", "3"]);
        assert_eq!(consumer.in_sight(), 0);
    }

    #[test]
    fn a_standing_place_is_lent_to_one_side_after_the_other_and_dropped_at_the_end() {
        let core = Core::new(Capacity::new(2).unwrap(), usize::MAX, WaitStrategy::Park);
        let made = std::sync::Arc::new(());
        let (mut producer, mut consumer) = standing_ring(&core, || (made.clone(), 0)).unwrap();
        assert_eq!(std::sync::Arc::strong_count(&made), 3);
        for number in 1..=5 {
            assert!(producer.has_room());
            producer.slot_mut().1 = number;
            producer.publish().unwrap();
            let (core, cursor) = consumer.sight();
            core.next(cursor);
            assert_eq!(consumer.slot().1, number);
            consumer.pass();
            assert_eq!(consumer.in_sight(), 0);
            consumer.free();
        }
        drop((producer, consumer));
        assert_eq!(std::sync::Arc::strong_count(&made), 1);
    }
}
