//! Waiting for a permit: as a future, and as a blocked thread.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::dynamic::DynamicConcurrencyLimiter;
use super::error::{AcquireError, TryAcquireError};
use super::permit::{OwnedPermit, Permit};
use super::signal::{Place, Wake};
use super::sync;
use crate::clock::Clock;

/// Awaits a permit; see [`acquire`](DynamicConcurrencyLimiter::acquire).
///
/// A future that was woken and is then neither polled nor dropped keeps its wake to itself: one
/// permit's room stays unused meanwhile, and a relay that came to it stands still until the next
/// release, resize or acquire.
#[derive(Debug)]
#[must_use = "a future does nothing unless awaited"]
pub struct Acquire<'a> {
    limiter: &'a DynamicConcurrencyLimiter,
    place: Option<Place>,
}

impl<'a> Acquire<'a> {
    #[inline]
    pub(super) const fn new(limiter: &'a DynamicConcurrencyLimiter) -> Self {
        Self { limiter, place: None }
    }
}

impl<'a> Future for Acquire<'a> {
    type Output = Result<Permit<'a>, AcquireError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let limiter = self.limiter;
        poll(limiter, &mut self.place, context).map_ok(|()| Permit::new(limiter))
    }
}

impl Drop for Acquire<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.limiter.abandon(place);
        }
    }
}

/// Awaits a permit that keeps its limiter alive; see
/// [`acquire_owned`](DynamicConcurrencyLimiter::acquire_owned) and [`Acquire`].
#[derive(Debug)]
#[must_use = "a future does nothing unless awaited"]
pub struct AcquireOwned {
    limiter: Arc<DynamicConcurrencyLimiter>,
    place: Option<Place>,
}

impl AcquireOwned {
    #[inline]
    pub(super) const fn new(limiter: Arc<DynamicConcurrencyLimiter>) -> Self {
        Self { limiter, place: None }
    }
}

impl Future for AcquireOwned {
    type Output = Result<OwnedPermit, AcquireError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { limiter, place } = &mut *self;
        poll(limiter, place, context).map_ok(|()| OwnedPermit::new(Arc::clone(limiter)))
    }
}

impl Drop for AcquireOwned {
    #[inline]
    fn drop(&mut self) {
        if let Some(place) = self.place.take() {
            self.limiter.abandon(place);
        }
    }
}

/// Blocks this thread until it has a permit, at most for as long as told.
pub(super) fn block(
    limiter: &DynamicConcurrencyLimiter,
    at_most: Option<Duration>,
) -> Result<Permit<'_>, AcquireError> {
    match limiter.enter() {
        Ok(()) => return Ok(Permit::new(limiter)),
        Err(TryAcquireError::Closed) => return Err(AcquireError::Closed),
        Err(TryAcquireError::Full) => {}
    }
    let bound = at_most.map(|waited| (waited, Clock::system()));
    // Borrowed for what it does when dropped: giving the place up when the time is over.
    let mut waits = Acquire::new(limiter);
    loop {
        let wake = Wake::Thread(sync::current());
        if let Poll::Ready(outcome) = limiter.wait(&mut waits.place, wake) {
            return outcome.map(|()| Permit::new(limiter));
        }
        // Unparked by a signal, by something else that uses this thread's token, or by the clock:
        // looking again tells.
        match &bound {
            None => sync::park(None),
            Some((waited, clock)) => {
                let left = waited.saturating_sub(Duration::from_nanos(clock.now().as_nanos()));
                if left.is_zero() {
                    return Err(AcquireError::TimedOut { waited: *waited });
                }
                sync::park(Some(left));
            }
        }
    }
}

#[inline]
fn poll(
    limiter: &DynamicConcurrencyLimiter,
    place: &mut Option<Place>,
    context: &Context<'_>,
) -> Poll<Result<(), AcquireError>> {
    if place.is_none() {
        match limiter.enter() {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(TryAcquireError::Closed) => return Poll::Ready(Err(AcquireError::Closed)),
            Err(TryAcquireError::Full) => {}
        }
    }
    poll_waiting(limiter, place, context)
}

#[cold]
fn poll_waiting(
    limiter: &DynamicConcurrencyLimiter,
    place: &mut Option<Place>,
    context: &Context<'_>,
) -> Poll<Result<(), AcquireError>> {
    limiter.wait(place, Wake::Task(context.waker().clone()))
}
