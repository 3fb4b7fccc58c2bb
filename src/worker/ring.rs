//! The arithmetic of the bounded ring, apart from its atomics and its storage.
//!
//! Positions count up for ever and may wrap; `tail - head`, wrapping, is the number of items. Each
//! side keeps its own position and the last it saw of the other's, which is never ahead of the
//! truth: a producer that sees room has room, a consumer that sees an item has one.

/// The number of places of a ring: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity(usize);

/// Why a number of places was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapacityError {
    /// A ring without a place can carry nothing.
    #[error("a worker needs a capacity of at least 1")]
    Zero,
    /// Rounded up to a power of two the number would pass the greatest, a quarter of the address space.
    #[error("capacity {requested} is above the greatest, {}", Capacity::MAX)]
    TooLarge {
        /// What was asked for.
        requested: usize,
    },
    /// The memory for that many places could not be had.
    #[error("no memory for a ring of {places} places")]
    OutOfMemory {
        /// The capacity asked for, rounded up.
        places: usize,
    },
}

impl Capacity {
    /// The greatest capacity: a quarter of the address space, so that positions may wrap.
    pub(super) const MAX: usize = 1 << (usize::BITS - 2);

    /// Rounds `requested` up to a power of two.
    ///
    /// # Errors
    /// [`CapacityError::Zero`] and [`CapacityError::TooLarge`].
    pub(super) const fn new(requested: usize) -> Result<Self, CapacityError> {
        if requested == 0 {
            return Err(CapacityError::Zero);
        }
        if requested > Self::MAX {
            return Err(CapacityError::TooLarge { requested });
        }
        Ok(Self(requested.next_power_of_two()))
    }

    /// The number of places.
    pub(super) const fn get(self) -> usize {
        self.0
    }

    /// The place that a position falls on.
    #[cfg(test)]
    pub(super) const fn place(self, position: usize) -> usize {
        position & (self.0 - 1)
    }
}

/// The producer's view of the ring.
#[derive(Debug)]
pub(super) struct PushCursor {
    tail: usize,
    /// One capacity ahead of the consumer's position as last seen.
    limit: usize,
    capacity: usize,
}

impl PushCursor {
    pub(super) const fn new(start: usize, capacity: Capacity) -> Self {
        let limit = start.wrapping_add(capacity.get());
        Self { tail: start, limit, capacity: capacity.get() }
    }

    #[inline(always)]
    pub(super) const fn position(&self) -> usize {
        self.tail
    }

    /// Whether a place is free for certain; `false` may be out of date.
    #[inline(always)]
    pub(super) const fn has_room(&self) -> bool {
        self.tail != self.limit
    }

    /// Takes note of the consumer's position and answers anew.
    #[inline]
    pub(super) const fn refresh(&mut self, head: usize) -> bool {
        self.limit = head.wrapping_add(self.capacity);
        self.has_room()
    }

    /// The number of places that are free for certain.
    #[inline(always)]
    pub(super) const fn room(&self) -> usize {
        self.limit.wrapping_sub(self.tail)
    }

    #[inline(always)]
    pub(super) const fn advance(&mut self, count: usize) {
        self.tail = self.tail.wrapping_add(count);
    }
}

/// The consumer's view of the ring.
#[derive(Debug)]
pub(super) struct PopCursor {
    head: usize,
    tail_seen: usize,
}

impl PopCursor {
    pub(super) const fn new(start: usize) -> Self {
        Self { head: start, tail_seen: start }
    }

    #[inline(always)]
    pub(super) const fn position(&self) -> usize {
        self.head
    }

    /// Whether an item waits for certain; `false` may be out of date.
    #[inline(always)]
    pub(super) const fn has_item(&self) -> bool {
        self.head != self.tail_seen
    }

    /// The number of items that wait for certain.
    #[inline(always)]
    pub(super) const fn in_sight(&self) -> usize {
        self.tail_seen.wrapping_sub(self.head)
    }

    /// Takes note of the producer's position and answers anew.
    #[inline]
    pub(super) const fn refresh(&mut self, tail: usize) -> bool {
        self.tail_seen = tail;
        self.has_item()
    }

    /// Past `count` items in sight.
    #[inline(always)]
    pub(super) const fn advance_by(&mut self, count: usize) {
        self.head = self.head.wrapping_add(count);
    }
}

/// Whether a position that only grows has come as far as `target`, across a wrap.
#[inline]
pub(super) const fn reached(position: usize, target: usize) -> bool {
    (position.wrapping_sub(target) as isize) >= 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    #[test]
    fn b73_capacity_rounds_up_and_impossible_ones_are_named() {
        for (asked, got) in [(1, 1), (2, 2), (3, 4), (64, 64), (65, 128)] {
            assert_eq!(Capacity::new(asked).map(Capacity::get), Ok(got));
        }
        assert_eq!(Capacity::new(Capacity::MAX).map(Capacity::get), Ok(Capacity::MAX));
        assert_eq!(Capacity::new(0), Err(CapacityError::Zero));
        for requested in [Capacity::MAX + 1, (1 << 63) + 1, usize::MAX] {
            assert_eq!(Capacity::new(requested), Err(CapacityError::TooLarge { requested }));
        }
    }

    #[test]
    fn b74_full_empty_and_order_hold_across_the_wrap_of_positions() {
        for asked in [1, 2, 3, 64] {
            let capacity = Capacity::new(asked).unwrap();
            let start = usize::MAX - 5;
            let (mut push, mut pop) = (PushCursor::new(start, capacity), PopCursor::new(start));
            let (mut places, mut model) = (vec![0_u32; capacity.get()], VecDeque::new());
            let mut seed = 7_u32;
            for step in 0..10_000_u32 {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if seed & 0x1_0000 == 0 {
                    let room = push.has_room() || push.refresh(pop.position());
                    assert_eq!(room, model.len() < capacity.get());
                    assert!(push.room() <= capacity.get() - model.len());
                    if room {
                        places[capacity.place(push.position())] = step;
                        push.advance(1);
                        model.push_back(step);
                    }
                } else {
                    let item = pop.has_item() || pop.refresh(push.position());
                    assert_eq!(item, !model.is_empty());
                    if item {
                        assert_eq!(Some(places[capacity.place(pop.position())]), model.pop_front());
                        pop.advance_by(1);
                    }
                }
                assert_eq!(push.position().wrapping_sub(pop.position()), model.len());
            }
        }
    }

    #[test]
    fn a_position_reaches_its_target_also_across_the_wrap() {
        assert!(reached(5, 5) && reached(6, 5) && !reached(4, 5));
        assert!(reached(2, usize::MAX) && !reached(usize::MAX, 2));
    }
}
