//! The list of those who wait, and the signal that wakes one of them.
//!
//! Plain state without atomics: the limiter keeps it behind its mutex, which only callers that
//! wait, or that found somebody waiting, ever lock.
//!
//! A doubly linked list threaded through a slab, so that joining, leaving from the middle and
//! taking the first cost O(1) and a steady state allocates nothing. A place goes through these
//! states:
//!
//! ```text
//!            signal              found no room
//!  Linked ───────────▶ Signalled ─────────────▶ Linked (in front, one loss more)
//!    │                     │
//!    │ hand-off            │ found room: gone
//!    ▼                     ▼
//!  Granted            Closed ◀── close, from Linked and Signalled
//! ```
//!
//! A place holds at most one signal, however many are sent: signalling takes the place off the
//! list, so the next signal goes to the next place. The number of places with a signal that has
//! not been answered yet is [`unanswered`](Waiters::unanswered); the limiter sends no signal
//! beyond the room there is.
//!
//! # Invariants
//!
//! 1. A place is on the list if and only if its state is `Linked`.
//! 2. Every `Linked` place holds a wake.
//! 3. `unanswered` is the number of `Signalled` places.
//! 4. `Linked` + `Signalled` is the word's `waiting`, whenever the lock is free.
//!
//! `Waiters::validate`, which only tests have, re-checks the first three; a test holds it against
//! the word for the fourth.

use std::task::Waker;

use super::sync::Thread;

/// How often a waiter may be woken for nothing, because a newcomer took the room, before the next
/// permit is handed to it directly.
pub(super) const MOST_LOSSES: u32 = if cfg!(feature = "loom") { 1 } else { 8 };

/// How to wake a waiter.
#[derive(Debug)]
pub(super) enum Wake {
    Task(Waker),
    Thread(Thread),
}

impl Wake {
    pub(super) fn wake(self) {
        match self {
            Self::Task(waker) => waker.wake(),
            Self::Thread(thread) => thread.unpark(),
        }
    }
}

/// A waiter's place; owned by one future or one blocked thread, which gives it back by
/// [`Waiters::remove`].
#[derive(Debug)]
pub(super) struct Place(u32);

/// Where a place stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// On the list.
    Linked,
    /// Woken to try; has not answered yet.
    Signalled,
    /// Holds a permit that was handed over.
    Granted,
    /// The limiter was closed over it.
    Closed,
    /// Nobody's.
    Vacant,
}

/// Those who wait, in the order in which they will be woken.
#[derive(Debug)]
pub(super) struct Waiters {
    slots: Vec<Slot>,
    /// Vacant slots, threaded through `after`.
    vacant: u32,
    occupied: u32,
    first: u32,
    last: u32,
    unanswered: u32,
}

#[derive(Debug)]
struct Slot {
    standing: Standing,
    wake: Option<Wake>,
    losses: u32,
    before: u32,
    after: u32,
}

const NOWHERE: u32 = u32::MAX;

/// A crowd's memory is given back once it has gone; a handful's is kept.
const SLOTS_KEPT: usize = 64;

impl Waiters {
    pub(super) const fn new() -> Self {
        Self {
            slots: Vec::new(),
            vacant: NOWHERE,
            occupied: 0,
            first: NOWHERE,
            last: NOWHERE,
            unanswered: 0,
        }
    }

    /// Places woken to try which have not answered yet.
    pub(super) const fn unanswered(&self) -> u32 {
        self.unanswered
    }

    /// Whether the first on the list was woken for nothing too often.
    pub(super) fn first_starves(&self) -> bool {
        self.slots.get(self.first as usize).is_some_and(|slot| slot.losses >= MOST_LOSSES)
    }

    pub(super) fn standing(&self, place: &Place) -> Standing {
        self.slots[place.0 as usize].standing
    }

    /// Joins at the end, to be woken by `wake`.
    pub(super) fn join(&mut self, wake: Option<Wake>) -> Place {
        let slot =
            Slot { standing: Standing::Linked, wake, losses: 0, before: NOWHERE, after: NOWHERE };
        let index = self.vacant;
        let index = if index == NOWHERE {
            self.slots.push(slot);
            // As many slots as places, of which the word counts fewer than 2^21 (and a few
            // granted or closed ones that have not left yet).
            (self.slots.len() - 1) as u32
        } else {
            self.vacant = self.slots[index as usize].after;
            self.slots[index as usize] = slot;
            index
        };
        self.occupied += 1;
        self.link_last(index);
        Place(index)
    }

    /// Renews how a place is woken; answers what that replaced, to be dropped without the lock.
    pub(super) fn renew(&mut self, place: &Place, wake: Option<Wake>) -> Option<Wake> {
        std::mem::replace(&mut self.slots[place.0 as usize].wake, wake)
    }

    /// A signalled place found no room: it goes back, in front, one loss the richer.
    pub(super) fn lose(&mut self, place: &Place, wake: Option<Wake>) {
        let slot = &mut self.slots[place.0 as usize];
        debug_assert_eq!(slot.standing, Standing::Signalled);
        slot.standing = Standing::Linked;
        slot.wake = wake;
        slot.losses = slot.losses.saturating_add(1);
        self.unanswered -= 1;
        self.link_first(place.0);
    }

    /// Signals the first on the list; answers how to wake it.
    pub(super) fn signal_first(&mut self) -> Option<Wake> {
        let wake = self.take_first(Standing::Signalled)?;
        self.unanswered += 1;
        Some(wake)
    }

    /// Marks the first on the list as holding a permit; answers how to wake it.
    pub(super) fn grant_first(&mut self) -> Option<Wake> {
        self.take_first(Standing::Granted)
    }

    /// Gives a place back; answers its wake, to be dropped without the lock.
    pub(super) fn remove(&mut self, place: Place) -> Option<Wake> {
        let index = place.0;
        match self.slots[index as usize].standing {
            Standing::Linked => self.unlink(index),
            Standing::Signalled => self.unanswered -= 1,
            Standing::Granted | Standing::Closed | Standing::Vacant => {}
        }
        let slot = &mut self.slots[index as usize];
        slot.standing = Standing::Vacant;
        slot.after = self.vacant;
        let wake = slot.wake.take();
        self.vacant = index;
        self.occupied -= 1;
        if self.occupied == 0 && self.slots.len() > SLOTS_KEPT {
            *self = Self::new();
        }
        wake
    }

    /// Marks everybody who waits as closed; answers how to wake them, O(waiting).
    pub(super) fn close(&mut self) -> Vec<Wake> {
        let mut wakes = Vec::new();
        for slot in &mut self.slots {
            if matches!(slot.standing, Standing::Linked | Standing::Signalled) {
                slot.standing = Standing::Closed;
                wakes.extend(slot.wake.take());
            }
        }
        (self.first, self.last, self.unanswered) = (NOWHERE, NOWHERE, 0);
        wakes
    }

    fn take_first(&mut self, standing: Standing) -> Option<Wake> {
        let first = self.first;
        if first == NOWHERE {
            return None;
        }
        self.unlink(first);
        let slot = &mut self.slots[first as usize];
        slot.standing = standing;
        slot.wake.take()
    }

    fn link_last(&mut self, index: u32) {
        let last = std::mem::replace(&mut self.last, index);
        self.slots[index as usize].before = last;
        self.slots[index as usize].after = NOWHERE;
        match last {
            NOWHERE => self.first = index,
            last => self.slots[last as usize].after = index,
        }
    }

    fn link_first(&mut self, index: u32) {
        let first = std::mem::replace(&mut self.first, index);
        self.slots[index as usize].before = NOWHERE;
        self.slots[index as usize].after = first;
        match first {
            NOWHERE => self.last = index,
            first => self.slots[first as usize].before = index,
        }
    }

    fn unlink(&mut self, index: u32) {
        let (before, after) = {
            let slot = &self.slots[index as usize];
            (slot.before, slot.after)
        };
        match before {
            NOWHERE => self.first = after,
            before => self.slots[before as usize].after = after,
        }
        match after {
            NOWHERE => self.last = before,
            after => self.slots[after as usize].before = before,
        }
    }

    /// Re-checks the invariants in O(slots) and answers how many are linked and signalled.
    #[cfg(test)]
    pub(super) fn validate(&self) -> u64 {
        let (mut linked, mut before, mut index) = (0, NOWHERE, self.first);
        while index != NOWHERE {
            let slot = &self.slots[index as usize];
            assert_eq!(slot.standing, Standing::Linked);
            assert!(slot.wake.is_some());
            assert_eq!(slot.before, before);
            linked += 1;
            (before, index) = (index, slot.after);
        }
        assert_eq!(self.last, before);
        let count = |standing| self.slots.iter().filter(|s| s.standing == standing).count();
        assert_eq!(count(Standing::Linked), linked);
        assert_eq!(count(Standing::Signalled), self.unanswered as usize);
        let vacant = count(Standing::Vacant);
        assert_eq!(self.slots.len() - vacant, self.occupied as usize);
        let (mut free, mut index) = (0, self.vacant);
        while index != NOWHERE {
            assert_eq!(self.slots[index as usize].standing, Standing::Vacant);
            free += 1;
            index = self.slots[index as usize].after;
        }
        assert_eq!(free, vacant);
        linked as u64 + u64::from(self.unanswered)
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A waker that writes down who was woken.
    struct Named(usize, Arc<AtomicUsize>);

    impl std::task::Wake for Named {
        fn wake(self: Arc<Self>) {
            self.1.store(self.0, Ordering::SeqCst);
        }
    }

    fn named(name: usize, woken: &Arc<AtomicUsize>) -> Option<Wake> {
        Some(Wake::Task(Arc::new(Named(name, Arc::clone(woken))).into()))
    }

    #[test]
    fn signals_go_to_one_after_the_other_in_order_of_arrival() {
        let (woken, mut waiters) = (Arc::new(AtomicUsize::new(0)), Waiters::new());
        let places: Vec<_> = (1..=3).map(|name| waiters.join(named(name, &woken))).collect();
        for name in 1..=3 {
            waiters.signal_first().unwrap().wake();
            assert_eq!(woken.load(Ordering::SeqCst), name);
            assert_eq!(waiters.validate(), 3);
        }
        assert!(waiters.signal_first().is_none());
        for place in places {
            waiters.remove(place);
        }
        assert_eq!(waiters.validate(), 0);
    }

    #[test]
    fn whoever_loses_is_next_and_starves_after_its_share_of_losses() {
        let (woken, mut waiters) = (Arc::new(AtomicUsize::new(0)), Waiters::new());
        let first = waiters.join(named(1, &woken));
        let _second = waiters.join(named(2, &woken));
        for _ in 0..MOST_LOSSES {
            assert!(!waiters.first_starves());
            waiters.signal_first().unwrap().wake();
            assert_eq!(woken.load(Ordering::SeqCst), 1);
            waiters.lose(&first, named(1, &woken));
            waiters.validate();
        }
        assert!(waiters.first_starves());
        waiters.grant_first().unwrap().wake();
        assert_eq!(waiters.standing(&first), Standing::Granted);
        assert!(!waiters.first_starves());
        assert_eq!(waiters.validate(), 1);
    }

    #[test]
    fn places_leave_from_anywhere_and_their_slots_are_used_again() {
        let (woken, mut waiters) = (Arc::new(AtomicUsize::new(0)), Waiters::new());
        for leaver in 0..4 {
            let mut places: Vec<_> = (0..4).map(|name| waiters.join(named(name, &woken))).collect();
            waiters.remove(places.remove(leaver));
            assert_eq!(waiters.validate(), 3);
            waiters.signal_first();
            for place in places {
                waiters.remove(place);
                waiters.validate();
            }
        }
        assert_eq!(waiters.slots.len(), 4);
    }

    #[test]
    fn a_crowd_that_has_left_leaves_no_memory_behind() {
        let (woken, mut waiters) = (Arc::new(AtomicUsize::new(0)), Waiters::new());
        let places: Vec<_> = (0..1000).map(|name| waiters.join(named(name, &woken))).collect();
        for place in places {
            waiters.remove(place);
        }
        assert_eq!(waiters.slots.capacity(), 0);
        assert_eq!(waiters.validate(), 0);
    }

    #[test]
    fn closing_leaves_nobody_to_signal_and_each_place_to_its_owner() {
        let (woken, mut waiters) = (Arc::new(AtomicUsize::new(0)), Waiters::new());
        let places: Vec<_> = (0..3).map(|name| waiters.join(named(name, &woken))).collect();
        waiters.signal_first();
        assert_eq!(waiters.close().len(), 2); // the signalled one has been woken already
        assert!(waiters.signal_first().is_none());
        for place in places {
            assert_eq!(waiters.standing(&place), Standing::Closed);
            waiters.remove(place);
        }
        assert_eq!(waiters.validate(), 0);
    }
}
