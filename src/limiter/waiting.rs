//! The slow path: joining those who wait, waking one of them, leaving.
//!
//! Everything here runs under the limiter's mutex, and *only* here does the word's `waiting`
//! change, so within a locked section `waiting` stands still while `active` and `capacity` move.
//! Wakes are sent and stale wakers dropped after unlocking: both may run code of the caller's,
//! which may come straight back to the same limiter.

use std::task::Poll;

use super::dynamic::DynamicConcurrencyLimiter;
use super::error::{AcquireError, ReleaseError};
use super::signal::{Place, Standing, Waiters, Wake};
use super::sync::{MutexGuard, Ordering};
use super::word::{NotHeld, Word};

/// What is left to do when the lock is free again.
#[derive(Default)]
struct Afterwards {
    granted: Option<Wake>,
    signalled: Option<Wake>,
    /// What was replaced or left over: dropped, not woken.
    stale: Option<Wake>,
    /// What the caller is to be woken by, until a place takes it; dropped otherwise.
    fresh: Option<Wake>,
}

impl DynamicConcurrencyLimiter {
    /// One step of waiting: joins if `place` is `None`, looks again otherwise.
    ///
    /// `Ready` leaves `place` empty. `Pending` leaves a place in it that will be woken by `wake`.
    pub(super) fn wait(
        &self,
        place: &mut Option<Place>,
        wake: Wake,
    ) -> Poll<Result<(), AcquireError>> {
        let mut afterwards = Afterwards { fresh: Some(wake), ..Afterwards::default() };
        let outcome = {
            let mut waiters = self.lock();
            match place.take() {
                None => self.join(&mut waiters, place, &mut afterwards),
                Some(held) => self.look_again(&mut waiters, place, held, &mut afterwards),
            }
        };
        self.finish(afterwards);
        outcome
    }

    /// Gives up a place before it led to anything: a permit handed to it goes back, and a signal
    /// sent to it goes on to the next.
    pub(super) fn abandon(&self, place: Place) {
        let mut afterwards = Afterwards::default();
        {
            let mut waiters = self.lock();
            let standing = waiters.standing(&place);
            afterwards.stale = waiters.remove(place);
            match standing {
                Standing::Linked | Standing::Signalled => {
                    self.change_waiting(Word::delist);
                    if standing == Standing::Signalled {
                        self.signal(&mut waiters, &mut afterwards);
                    }
                }
                Standing::Granted => {
                    // Cannot be refused: the permit that was handed over is among those held.
                    let _ = self.release_locked(&mut waiters, 1, &mut afterwards);
                }
                Standing::Closed | Standing::Vacant => {}
            }
        }
        self.finish(afterwards);
    }

    /// Wakes one of the waiting, if one can be admitted and is not on its way already.
    #[cold]
    pub(super) fn relay(&self) {
        let mut afterwards = Afterwards::default();
        self.signal(&mut self.lock(), &mut afterwards);
        self.finish(afterwards);
    }

    /// A release that found somebody waiting.
    #[cold]
    pub(super) fn release_waited_for(&self, count: u64) -> Result<(), ReleaseError> {
        let mut afterwards = Afterwards::default();
        let outcome = self.release_locked(&mut self.lock(), count, &mut afterwards);
        self.finish(afterwards);
        outcome.map_err(|refused| self.refused(count, refused))
    }

    /// Closes and wakes everybody; `false` if it was closed before.
    pub(super) fn close_locked(&self) -> bool {
        let (first, wakes) = {
            let mut waiters = self.lock();
            // Under the lock, so that whoever joins sees it, or is seen by it.
            let before = self.update(|word| Some(word.close()));
            (before.is_none_or(|word| !word.is_closed()), waiters.close())
        };
        self.count_wakes(wakes.len() as u64);
        wakes.into_iter().for_each(Wake::wake);
        first
    }

    /// The lock. A holder never runs code that may panic, so a poisoned list is a sound one.
    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes a permit after all, or joins the list. Both are one exchange of the word, so nobody
    /// can release in between and see nobody waiting.
    fn join(
        &self,
        waiters: &mut Waiters,
        place: &mut Option<Place>,
        afterwards: &mut Afterwards,
    ) -> Poll<Result<(), AcquireError>> {
        let mut seen = self.load();
        loop {
            if seen.is_closed() {
                return Poll::Ready(Err(AcquireError::Closed));
            }
            let admitted = seen.admit();
            let Some(next) = admitted.ok().or_else(|| seen.enlist()) else {
                return Poll::Ready(Err(AcquireError::TooManyWaiting {
                    most: DynamicConcurrencyLimiter::MAX_WAITING,
                }));
            };
            match self.exchange(seen, next) {
                Ok(()) if admitted.is_ok() => {
                    self.signal(waiters, afterwards);
                    return Poll::Ready(Ok(()));
                }
                Ok(()) => {
                    *place = Some(waiters.join(afterwards.fresh.take()));
                    return Poll::Pending;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// A waiter looks again, woken or not: whoever looks and finds room takes it.
    fn look_again(
        &self,
        waiters: &mut Waiters,
        place: &mut Option<Place>,
        held: Place,
        afterwards: &mut Afterwards,
    ) -> Poll<Result<(), AcquireError>> {
        let standing = waiters.standing(&held);
        match standing {
            Standing::Granted => {
                afterwards.stale = waiters.remove(held);
                self.signal(waiters, afterwards);
                Poll::Ready(Ok(()))
            }
            Standing::Closed | Standing::Vacant => {
                afterwards.stale = waiters.remove(held);
                Poll::Ready(Err(AcquireError::Closed))
            }
            Standing::Linked | Standing::Signalled => {
                if self.update(Word::admit_waiting).is_some() {
                    afterwards.stale = waiters.remove(held);
                    // The relay: there may be room for one more.
                    self.signal(waiters, afterwards);
                    return Poll::Ready(Ok(()));
                }
                // No room. A release from here on finds `waiting` above zero and waits for this
                // lock before it signals, so it finds the place as it is left here.
                if standing == Standing::Signalled {
                    waiters.lose(&held, afterwards.fresh.take());
                } else {
                    afterwards.stale = waiters.renew(&held, afterwards.fresh.take());
                }
                *place = Some(held);
                Poll::Pending
            }
        }
    }

    /// Releases `count`, hands one of them to a starving waiter, and wakes one more if there is
    /// room beyond.
    fn release_locked(
        &self,
        waiters: &mut Waiters,
        count: u64,
        afterwards: &mut Afterwards,
    ) -> Result<(), NotHeld> {
        let mut seen = self.load();
        loop {
            let released = seen.release(count)?;
            // Released and taken in one exchange, so no newcomer can come between.
            let handed = released.admit_waiting().filter(|_| count > 0 && waiters.first_starves());
            match self.exchange(seen, handed.unwrap_or(released)) {
                Ok(()) => {
                    if handed.is_some() {
                        afterwards.granted = waiters.grant_first();
                    }
                    break;
                }
                Err(now) => seen = now,
            }
        }
        self.signal(waiters, afterwards);
        Ok(())
    }

    /// Sends one signal, unless as many are unanswered as there is room.
    ///
    /// Every way in which room and waiters come to stand beside each other ends here: a release, a
    /// resize, an acquirer that leaves room, a waiter that leaves with a signal.
    fn signal(&self, waiters: &mut Waiters, afterwards: &mut Afterwards) {
        if self.load().room() > u64::from(waiters.unanswered()) {
            afterwards.signalled = waiters.signal_first();
        }
    }

    fn change_waiting(&self, change: impl Fn(Word) -> Option<Word>) {
        let changed = self.update(change);
        debug_assert!(changed.is_some(), "a place was not counted as waiting");
    }

    fn finish(&self, afterwards: Afterwards) {
        let Afterwards { granted, signalled, stale, fresh } = afterwards;
        drop((stale, fresh));
        for wake in [granted, signalled].into_iter().flatten() {
            self.count_wakes(1);
            wake.wake();
        }
    }

    fn count_wakes(&self, wakes: u64) {
        self.wakes.fetch_add(wakes, Ordering::Relaxed);
    }
}
