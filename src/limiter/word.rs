//! The word: everything that decides an admission, in 64 bits, as plain arithmetic.
//!
//! ```text
//! 63 ‥ 43     42     41 ‥ 21   20 ‥ 0
//! capacity  closed   active    waiting
//! ```
//!
//! *Closed* stands right above *active*, so that the two read as one number are above every
//! capacity once closed: one comparison tells whether there is room and the limiter is open.
//!
//! Nothing here is atomic and nothing here can fail silently: a step that would leave its field is
//! refused with a value that says so. The width of a field is a parameter so that the tests can
//! walk *every* word of a narrow layout against four plain integers.

/// The layout in use: 21 bits a field.
pub(super) type Word = Packed<21>;

/// Three fields of `BITS` bits and one bit. Copied freely; the limiter keeps one in an
/// atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packed<const BITS: u32>(u64);

/// Why a newcomer is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Full,
    Closed,
}

/// Why a release is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHeld {
    /// What was held instead.
    pub(super) held: u64,
}

impl<const BITS: u32> Packed<BITS> {
    /// The most that a field holds.
    pub(super) const MAX: u64 = (1 << BITS) - 1;

    const ONE_WAITING: u64 = 1;
    const ONE_ACTIVE: u64 = 1 << BITS;
    const ACTIVE: u64 = Self::MAX << BITS;
    const CLOSED: u64 = 1 << (2 * BITS);
    const CAPACITY_SHIFT: u32 = 2 * BITS + 1;
    const CAPACITY: u64 = Self::MAX << Self::CAPACITY_SHIFT;

    /// An open word with nobody in it; `capacity` is at most [`MAX`](Self::MAX).
    pub(super) const fn new(capacity: u64) -> Self {
        Self((capacity & Self::MAX) << Self::CAPACITY_SHIFT)
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    pub(super) const fn waiting(self) -> u64 {
        self.0 & Self::MAX
    }

    pub(super) const fn active(self) -> u64 {
        (self.0 >> BITS) & Self::MAX
    }

    pub(super) const fn capacity(self) -> u64 {
        (self.0 >> Self::CAPACITY_SHIFT) & Self::MAX
    }

    pub(super) const fn is_closed(self) -> bool {
        self.0 & Self::CLOSED != 0
    }

    /// How many more would be admitted now: zero when closed, paused, full, or drained from a
    /// higher capacity.
    #[inline]
    pub(super) const fn room(self) -> u64 {
        self.capacity().saturating_sub(self.closed_and_active())
    }

    /// Whether somebody waits who could be admitted.
    #[inline]
    pub(super) const fn wants_a_wake(self) -> bool {
        self.waiting() != 0 && self.room() != 0
    }

    /// One newcomer in.
    #[inline]
    pub(super) const fn admit(self) -> Result<Self, Refusal> {
        if self.closed_and_active() < self.capacity() {
            // Below a capacity that fits its field, so the sum fits too.
            Ok(Self(self.0 + Self::ONE_ACTIVE))
        } else if self.is_closed() {
            Err(Refusal::Closed)
        } else {
            Err(Refusal::Full)
        }
    }

    /// Active while open, more than any capacity once closed.
    #[inline]
    const fn closed_and_active(self) -> u64 {
        (self.0 & (Self::CLOSED | Self::ACTIVE)) >> BITS
    }

    /// One of the waiting in; `None` if there is no room or nobody waits.
    pub(super) const fn admit_waiting(self) -> Option<Self> {
        match (self.waiting(), self.admit()) {
            (1.., Ok(admitted)) => Some(Self(admitted.0 - Self::ONE_WAITING)),
            _ => None,
        }
    }

    /// One more waiting; `None` if as many wait as can be counted.
    pub(super) const fn enlist(self) -> Option<Self> {
        if self.waiting() == Self::MAX { None } else { Some(Self(self.0 + Self::ONE_WAITING)) }
    }

    /// One fewer waiting; `None` if nobody waits.
    pub(super) const fn delist(self) -> Option<Self> {
        if self.waiting() == 0 { None } else { Some(Self(self.0 - Self::ONE_WAITING)) }
    }

    /// `count` fewer active.
    #[inline]
    pub(super) const fn release(self, count: u64) -> Result<Self, NotHeld> {
        if count > self.active() {
            return Err(NotHeld { held: self.active() });
        }
        // At most the active field, which fits; so the product neither overflows nor borrows.
        Ok(Self(self.0 - count * Self::ONE_ACTIVE))
    }

    /// Another capacity (at most [`MAX`](Self::MAX)) under the same active and waiting.
    pub(super) const fn with_capacity(self, capacity: u64) -> Self {
        Self((self.0 & !Self::CAPACITY) | Self::new(capacity).0)
    }

    /// Closed, and so with nobody waiting.
    pub(super) const fn close(self) -> Self {
        Self((self.0 | Self::CLOSED) & !Self::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same state as four plain values, with the rules written the long way.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Plain {
        closed: bool,
        capacity: u64,
        active: u64,
        waiting: u64,
    }

    type Narrow = Packed<3>;

    fn plain<const BITS: u32>(word: Packed<BITS>) -> Plain {
        Plain {
            closed: word.is_closed(),
            capacity: word.capacity(),
            active: word.active(),
            waiting: word.waiting(),
        }
    }

    fn every_word() -> impl Iterator<Item = (Narrow, Plain)> {
        (0..1 << 10).map(|bits| {
            let word = Narrow::from_bits(bits);
            (word, plain(word))
        })
    }

    #[test]
    fn the_fields_tell_every_word_apart() {
        let mut seen = std::collections::HashSet::new();
        for (word, p) in every_word() {
            assert!(seen.insert((p.closed, p.capacity, p.active, p.waiting)), "{word:?}");
            assert!(p.capacity <= Narrow::MAX && p.active <= Narrow::MAX);
            assert!(p.waiting <= Narrow::MAX);
        }
        assert_eq!(seen.len(), 1024);
    }

    #[test]
    fn a_newcomer_enters_every_open_word_with_room_and_no_other() {
        for (word, p) in every_word() {
            let expected = if p.closed {
                Err(Refusal::Closed)
            } else if p.active >= p.capacity {
                Err(Refusal::Full)
            } else {
                Ok(Plain { active: p.active + 1, ..p })
            };
            assert_eq!(word.admit().map(plain), expected, "{p:?}");
            let room = if p.closed || p.active > p.capacity { 0 } else { p.capacity - p.active };
            assert_eq!(word.room(), room, "{p:?}");
            assert_eq!(word.wants_a_wake(), room > 0 && p.waiting > 0, "{p:?}");
        }
    }

    #[test]
    fn one_of_the_waiting_enters_where_a_newcomer_would() {
        for (word, p) in every_word() {
            let enters = !p.closed && p.active < p.capacity && p.waiting > 0;
            let expected =
                enters.then(|| Plain { active: p.active + 1, waiting: p.waiting - 1, ..p });
            assert_eq!(word.admit_waiting().map(plain), expected, "{p:?}");
        }
    }

    #[test]
    fn waiting_is_counted_within_its_field() {
        for (word, p) in every_word() {
            let more = (p.waiting < Narrow::MAX).then(|| Plain { waiting: p.waiting + 1, ..p });
            let fewer = (p.waiting > 0).then(|| Plain { waiting: p.waiting - 1, ..p });
            assert_eq!(word.enlist().map(plain), more, "{p:?}");
            assert_eq!(word.delist().map(plain), fewer, "{p:?}");
        }
    }

    #[test]
    fn a_release_of_more_than_is_held_is_refused_in_every_word() {
        for (word, p) in every_word() {
            for count in (0..=Narrow::MAX + 2).chain([u64::MAX]) {
                let expected = if count > p.active {
                    Err(NotHeld { held: p.active })
                } else {
                    Ok(Plain { active: p.active - count, ..p })
                };
                assert_eq!(word.release(count).map(plain), expected, "{p:?} - {count}");
            }
        }
    }

    #[test]
    fn a_resize_touches_the_capacity_alone() {
        for (word, p) in every_word() {
            for capacity in 0..=Narrow::MAX {
                assert_eq!(plain(word.with_capacity(capacity)), Plain { capacity, ..p });
            }
        }
    }

    #[test]
    fn closing_keeps_what_is_held_and_lets_nobody_wait() {
        for (word, p) in every_word() {
            let closed = Plain { closed: true, waiting: 0, ..p };
            assert_eq!(plain(word.close()), closed);
            assert_eq!(plain(word.close().close()), closed);
        }
    }

    #[test]
    fn the_wide_layout_holds_its_maxima_side_by_side() {
        let full = Word::from_bits(u64::MAX);
        let expected =
            Plain { closed: true, capacity: Word::MAX, active: Word::MAX, waiting: Word::MAX };
        assert_eq!(plain(full), expected);
        assert_eq!(Word::MAX, 2_097_151);

        let mut word = Word::new(Word::MAX);
        for _ in 0..Word::MAX {
            word = word.admit().unwrap();
        }
        assert_eq!(word.admit(), Err(Refusal::Full));
        let expected = Plain { closed: false, capacity: Word::MAX, active: Word::MAX, waiting: 0 };
        assert_eq!(plain(word), expected);
        assert_eq!(plain(word.release(Word::MAX).unwrap()), Plain { active: 0, ..expected });
    }
}
