//! The limiter itself: the fast path, resizing, closing, and what can be observed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::acquire::{self, Acquire, AcquireOwned};
use super::error::{AcquireError, CapacityError, ReleaseError, TryAcquireError};
use super::permit::{OwnedPermit, Permit};
use super::signal::{MOST_LOSSES, Waiters};
use super::sync::{AtomicU64, Counter, Mutex, Ordering};
use super::word::{NotHeld, Refusal, Word};

/// Caps how many permits are held at one time; the cap moves at run time, from any thread.
///
/// The [module](super) tells the design, the orderings and the trade-offs. Share it in an
/// [`Arc`]; every method takes `&self`.
///
/// ```
/// use tidegate::limiter::{DynamicConcurrencyLimiter, TryAcquireError};
///
/// let limiter = DynamicConcurrencyLimiter::new(1)?;
/// let permit = limiter.try_acquire()?;
/// assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Full));
///
/// limiter.set_capacity(2)?;
/// assert!(limiter.try_acquire().is_ok());
/// drop(permit);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DynamicConcurrencyLimiter {
    word: AtomicU64,
    pub(super) waiters: Mutex<Waiters>,
    pub(super) wakes: Counter,
    misuses: Counter,
}

/// What a limiter's word held at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Permits that may be held at one time; zero is a pause.
    pub capacity: usize,
    /// Permits held. After a shrink more than `capacity`, until enough are released.
    pub active: usize,
    /// Callers that wait for a permit.
    pub waiting: usize,
    /// Whether the limiter is closed.
    pub closed: bool,
}

impl Snapshot {
    /// Permits that a caller would still get: zero when closed, paused or full.
    #[must_use]
    pub const fn room(&self) -> usize {
        if self.closed { 0 } else { self.capacity.saturating_sub(self.active) }
    }
}

impl Default for DynamicConcurrencyLimiter {
    /// A paused limiter: capacity zero.
    fn default() -> Self {
        Self {
            word: AtomicU64::new(Word::new(0).bits()),
            waiters: Mutex::new(Waiters::new()),
            wakes: Counter::new(0),
            misuses: Counter::new(0),
        }
    }
}

impl DynamicConcurrencyLimiter {
    /// The highest capacity a limiter can have: 2,097,151.
    pub const MAX_CAPACITY: usize = Word::MAX as usize;

    /// The most callers that can wait at one time: 2,097,151.
    pub const MAX_WAITING: usize = Word::MAX as usize;

    /// How often a waiter can be woken for nothing, because a newcomer took the room first, before
    /// a permit is handed to it that no newcomer can take.
    pub const LOSSES_BEFORE_HAND_OFF: u32 = MOST_LOSSES;

    /// A limiter of `capacity` permits; zero starts it paused. Allocates nothing.
    ///
    /// # Errors
    ///
    /// [`CapacityError::TooLarge`] above [`MAX_CAPACITY`](Self::MAX_CAPACITY).
    pub fn new(capacity: usize) -> Result<Self, CapacityError> {
        let word = AtomicU64::new(Word::new(checked(capacity)?).bits());
        Ok(Self { word, ..Self::default() })
    }

    /// Takes a permit if one is free. Never blocks or allocates: one load and one exchange, unless
    /// other threads interfere.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Full`] or [`TryAcquireError::Closed`].
    #[inline]
    pub fn try_acquire(&self) -> Result<Permit<'_>, TryAcquireError> {
        self.enter()?;
        Ok(Permit::new(self))
    }

    /// [`try_acquire`](Self::try_acquire) for a permit that keeps the limiter alive.
    ///
    /// # Errors
    ///
    /// [`TryAcquireError::Full`] or [`TryAcquireError::Closed`].
    #[inline]
    pub fn try_acquire_owned(self: &Arc<Self>) -> Result<OwnedPermit, TryAcquireError> {
        self.enter()?;
        Ok(OwnedPermit::new(Arc::clone(self)))
    }

    /// Awaits a permit. The future may be dropped at any point, which loses neither a permit nor a
    /// wake; it yields [`AcquireError::Closed`] or [`AcquireError::TooManyWaiting`] where no
    /// permit will come. Put a bound on the wait with the runtime's own timeout.
    ///
    /// ```
    /// # use tidegate::limiter::{AcquireError, DynamicConcurrencyLimiter};
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let limiter = DynamicConcurrencyLimiter::new(0)?; // paused
    /// let waits = async { limiter.acquire().await.map(drop) };
    /// let operator = async { limiter.set_capacity(1) };
    /// let (admitted, resized) = tokio::join!(waits, operator);
    /// admitted?;
    /// resized?;
    ///
    /// limiter.close();
    /// assert_eq!(limiter.acquire().await.err(), Some(AcquireError::Closed));
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn acquire(&self) -> Acquire<'_> {
        Acquire::new(self)
    }

    /// [`acquire`](Self::acquire) for a permit that keeps the limiter alive.
    #[inline]
    pub fn acquire_owned(self: &Arc<Self>) -> AcquireOwned {
        AcquireOwned::new(Arc::clone(self))
    }

    /// Waits for a permit on this thread, for as long as it takes. Not for async code, whose
    /// thread it would hold up.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Closed`] or [`AcquireError::TooManyWaiting`].
    pub fn acquire_blocking(&self) -> Result<Permit<'_>, AcquireError> {
        acquire::block(self, None)
    }

    /// Waits for a permit on this thread, for `at_most` as long. A zero bound tries once.
    ///
    /// # Errors
    ///
    /// [`AcquireError::TimedOut`] when the time is over, otherwise as
    /// [`acquire_blocking`](Self::acquire_blocking).
    pub fn acquire_blocking_for(&self, at_most: Duration) -> Result<Permit<'_>, AcquireError> {
        acquire::block(self, Some(at_most))
    }

    /// Gives back a permit that was [forgotten](Permit::forget), from any thread, also after the
    /// limiter was closed. One load and one exchange if nobody waits.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::NothingHeld`] if no permit is held; the limiter is as it was before, and the
    /// attempt is counted in [`misuses`](Self::misuses).
    ///
    /// ```
    /// use tidegate::limiter::{DynamicConcurrencyLimiter, ReleaseError};
    ///
    /// let limiter = DynamicConcurrencyLimiter::new(8)?;
    /// limiter.try_acquire()?.forget(); // a batch is sent…
    /// assert_eq!(limiter.active(), 1);
    /// limiter.release()?; // …and confirmed elsewhere
    /// assert_eq!(limiter.release(), Err(ReleaseError::NothingHeld));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn release(&self) -> Result<(), ReleaseError> {
        self.leave(1)
    }

    /// Gives back `count` forgotten permits in one exchange: all of them or, if fewer are held,
    /// none. Wakes at most one waiter, which goes on to wake the next. Zero changes nothing.
    ///
    /// # Errors
    ///
    /// [`ReleaseError::NothingHeld`] or [`ReleaseError::MoreThanHeld`], as
    /// [`release`](Self::release).
    #[inline]
    pub fn release_many(&self, count: usize) -> Result<(), ReleaseError> {
        self.leave(count as u64)
    }

    /// Changes the capacity, at any time and from any thread, and answers the one before.
    ///
    /// Once this returns nobody is admitted until fewer than `capacity` permits are held; permits
    /// that are held stay so. Zero pauses. Where the change makes room for waiters, one is woken,
    /// and each that enters wakes the next. A closed limiter takes the change and stays closed.
    ///
    /// # Errors
    ///
    /// [`CapacityError::TooLarge`] above [`MAX_CAPACITY`](Self::MAX_CAPACITY); the capacity stays.
    pub fn set_capacity(&self, capacity: usize) -> Result<usize, CapacityError> {
        let capacity = checked(capacity)?;
        let mut seen = self.load();
        loop {
            let next = seen.with_capacity(capacity);
            match self.exchange(seen, next) {
                Ok(()) => {
                    if next.wants_a_wake() {
                        self.relay();
                    }
                    return Ok(seen.capacity() as usize);
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Closes for good: everybody who waits is woken with [`AcquireError::Closed`], and later
    /// attempts fail. Permits held are still given back as ever. Answers whether this call closed
    /// it; closing again is harmless. O(waiting).
    pub fn close(&self) -> bool {
        self.close_locked()
    }

    /// Whether the limiter is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.load().is_closed()
    }

    /// Permits held at this moment.
    #[must_use]
    pub fn active(&self) -> usize {
        self.load().active() as usize
    }

    /// Permits that may be held at one time.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.load().capacity() as usize
    }

    /// Callers that wait for a permit at this moment.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.load().waiting() as usize
    }

    /// All of it as it stood at one moment, from one load.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let word = self.load();
        Snapshot {
            capacity: word.capacity() as usize,
            active: word.active() as usize,
            waiting: word.waiting() as usize,
            closed: word.is_closed(),
        }
    }

    /// How many waiters were woken since the limiter was made, each wake counted.
    #[must_use]
    pub fn wakes(&self) -> u64 {
        self.wakes.load(Ordering::Relaxed)
    }

    /// How many releases found fewer permits held than they gave back: refused calls of
    /// [`release`](Self::release), and permits dropped after a release too many had stolen their
    /// place. Anything but zero is a mistake in the caller's accounting.
    #[must_use]
    pub fn misuses(&self) -> u64 {
        self.misuses.load(Ordering::Relaxed)
    }

    /// The fast path in.
    #[inline]
    pub(super) fn enter(&self) -> Result<(), TryAcquireError> {
        let mut seen = self.load();
        loop {
            let next = match seen.admit() {
                Ok(next) => next,
                Err(Refusal::Full) => return Err(TryAcquireError::Full),
                Err(Refusal::Closed) => return Err(TryAcquireError::Closed),
            };
            match self.word.compare_exchange_weak(
                seen.bits(),
                next.bits(),
                // What the last holder of this room did is visible to the next.
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => {
                    if next.wants_a_wake() {
                        self.relay();
                    }
                    return Ok(());
                }
                Err(now) => seen = Word::from_bits(now),
            }
        }
    }

    /// The fast path out.
    #[inline]
    fn leave(&self, count: u64) -> Result<(), ReleaseError> {
        let mut seen = Word::from_bits(self.word.load(Ordering::Relaxed));
        loop {
            if seen.waiting() != 0 {
                return self.release_waited_for(count);
            }
            let next = match seen.release(count) {
                Ok(next) => next,
                Err(refused) => return Err(self.refused(count, refused)),
            };
            match self.word.compare_exchange_weak(
                seen.bits(),
                next.bits(),
                // What this holder did is visible to the next.
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Ok(()),
                Err(now) => seen = Word::from_bits(now),
            }
        }
    }

    /// Counts and names a release that was refused.
    #[cold]
    pub(super) fn refused(&self, asked: u64, refused: NotHeld) -> ReleaseError {
        self.misuses.fetch_add(1, Ordering::Relaxed);
        match refused.held {
            0 => ReleaseError::NothingHeld,
            held => ReleaseError::MoreThanHeld { asked: asked as usize, held: held as usize },
        }
    }

    pub(super) fn load(&self) -> Word {
        Word::from_bits(self.word.load(Ordering::Acquire))
    }

    /// One attempt to put `next` in the place of `seen`; the word found instead otherwise.
    pub(super) fn exchange(&self, seen: Word, next: Word) -> Result<(), Word> {
        self.word
            .compare_exchange(seen.bits(), next.bits(), Ordering::AcqRel, Ordering::Acquire)
            .map(drop)
            .map_err(Word::from_bits)
    }

    /// Replaces the word by what `change` makes of it and answers the word before; `None` if
    /// `change` wants none.
    pub(super) fn update(&self, change: impl Fn(Word) -> Option<Word>) -> Option<Word> {
        let mut seen = self.load();
        loop {
            match self.exchange(seen, change(seen)?) {
                Ok(()) => return Some(seen),
                Err(now) => seen = now,
            }
        }
    }
}

impl fmt::Debug for DynamicConcurrencyLimiter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot { capacity, active, waiting, closed } = self.snapshot();
        formatter
            .debug_struct("DynamicConcurrencyLimiter")
            .field("capacity", &capacity)
            .field("active", &active)
            .field("waiting", &waiting)
            .field("closed", &closed)
            .finish_non_exhaustive()
    }
}

const fn checked(capacity: usize) -> Result<u64, CapacityError> {
    let most = DynamicConcurrencyLimiter::MAX_CAPACITY;
    if capacity > most {
        return Err(CapacityError::TooLarge { asked: capacity, most });
    }
    Ok(capacity as u64)
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    #[test]
    fn one_waiter_more_than_can_be_counted_is_turned_away() {
        let limiter = DynamicConcurrencyLimiter::new(0).unwrap();
        // As many waiters as fit, by the word alone: two million futures would prove no more.
        let crowded = Word::from_bits(Word::MAX);
        assert_eq!(crowded.waiting(), Word::MAX);
        limiter.word.store(crowded.bits(), Ordering::Relaxed);
        let refused = limiter.acquire_blocking().err();
        let most = DynamicConcurrencyLimiter::MAX_WAITING;
        assert_eq!(refused, Some(AcquireError::TooManyWaiting { most }));
        assert_eq!(limiter.load(), crowded);
    }

    #[test]
    fn the_list_of_waiters_and_the_word_agree_through_every_way_to_leave() {
        let limiter = DynamicConcurrencyLimiter::new(1).unwrap();
        let held = limiter.try_acquire().unwrap();
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let agree = || {
            let linked_and_signalled = limiter.waiters.lock().unwrap().validate();
            assert_eq!(limiter.waiting() as u64, linked_and_signalled);
        };
        let mut futures: Vec<_> = (0..6).map(|_| Box::pin(limiter.acquire())).collect();
        for future in &mut futures {
            assert!(future.as_mut().poll(&mut context).is_pending());
            agree();
        }
        drop(held);
        agree();
        drop(futures.remove(0)); // with its signal
        agree();
        let next = futures[0].as_mut().poll(&mut context);
        agree();
        drop(futures.remove(2)); // from the middle
        agree();
        drop(next);
        limiter.close();
        agree();
        for mut future in futures.drain(1..) {
            assert!(future.as_mut().poll(&mut context).is_ready());
            agree();
        }
        assert_eq!(limiter.active(), 0);
    }
}
