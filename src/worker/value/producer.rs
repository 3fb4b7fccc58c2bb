//! The producing half of the workers whose items live in the ring.

use super::super::awaiting::Wait;
use super::super::completion::Completion;
use super::super::control::WorkerQueue;
use super::super::refusal::Refusal;
use super::super::slots::StandingProducer;
use super::{PublishScope, Slot};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The producing half of a [`ValueSpWorker`](super::ValueSpWorker) or an
/// [`AsyncValueSpWorker`](crate::worker::AsyncValueSpWorker). It may move to another thread; two
/// threads cannot use it at once:
///
/// ```compile_fail,E0277
/// use tidegate::worker::ValueProducer;
/// fn shared<T: Sync>() {}
/// shared::<ValueProducer<u64>>();
/// ```
///
/// ```compile_fail,E0599
/// use tidegate::worker::ValueProducer;
/// fn two(producer: ValueProducer<u64>) {
///     let other = producer.clone();
/// }
/// ```
///
/// and a second slot cannot be claimed while the first is held:
///
/// ```compile_fail,E0499
/// use tidegate::worker::ValueProducer;
/// fn two(producer: &mut ValueProducer<u64>) {
///     let first = producer.try_publish();
///     let second = producer.try_publish();
///     drop(first);
/// }
/// ```
///
/// Dropping it completes the worker: what was published is still handled.
pub struct ValueProducer<T: Slot> {
    ring: StandingProducer<T>,
    /// One producer at a time: it may move to another thread, not be shared.
    _not_sync: PhantomData<std::cell::Cell<()>>,
}

impl<T: Slot> ValueProducer<T> {
    pub(in crate::worker) const fn new(ring: StandingProducer<T>) -> Self {
        Self { ring, _not_sync: PhantomData }
    }

    /// Claims a slot to write; waits while every slot is taken. What it holds is what
    /// [`Slot::clear`] has left of its last use. O(1).
    ///
    /// # Errors
    /// [`Refusal::Closed`]: there is nothing to write to. [`Refusal::Full`] only on the consumer's
    /// own thread, which would wait for itself.
    #[inline]
    pub fn publish(&mut self) -> Result<PublishScope<'_, T>, Refusal> {
        if let Some(reason) = self.ring.core().refuses() {
            return Err(reason.into());
        }
        if !self.ring.has_room() {
            self.ring.wait_for_room()?;
        }
        Ok(PublishScope::new(&mut self.ring))
    }

    /// Like [`publish`](Self::publish), and never waits.
    ///
    /// # Errors
    /// [`Refusal::Full`] and [`Refusal::Closed`].
    #[inline]
    pub fn try_publish(&mut self) -> Result<PublishScope<'_, T>, Refusal> {
        if let Some(reason) = self.ring.core().refuses() {
            return Err(reason.into());
        }
        if !self.ring.has_room() {
            return Err(Refusal::Full);
        }
        Ok(PublishScope::new(&mut self.ring))
    }

    /// Like [`publish`](Self::publish), and waits without blocking the thread. The future claims
    /// nothing before it is done, so whoever drops it loses nothing.
    ///
    /// # Errors
    /// [`Refusal::Closed`]; [`Refusal::Full`] only inside of the worker's own handler.
    #[inline]
    pub fn publish_async(
        &mut self,
    ) -> impl Future<Output = Result<PublishScope<'_, T>, Refusal>> + use<'_, T> {
        Publishing { ring: Some(&mut self.ring), wait: Wait::default() }
    }

    /// Completes the worker: what was published is handled, nothing more is taken. `false` if it was
    /// stopping already.
    pub fn complete(&mut self) -> bool {
        self.ring.core().complete()
    }

    /// Completes the worker with an error for its completion. `false` if it was stopping already.
    pub fn fault(&mut self, error: impl Into<Box<dyn Error + Send + Sync>>) -> bool {
        self.ring.core().fault(error.into())
    }

    /// The worker's end.
    #[must_use]
    pub fn completion(&self) -> Completion {
        self.ring.core().completion()
    }

    /// The worker's telemetry.
    #[must_use]
    pub fn queue(&self) -> WorkerQueue {
        WorkerQueue::new(self.ring.core().clone())
    }
}

/// A claim that awaits its slot; by hand for the reason that an awaited dispatch is.
struct Publishing<'a, T> {
    /// Not claimed yet.
    ring: Option<&'a mut StandingProducer<T>>,
    wait: Wait,
}

impl<'a, T: Slot> Future for Publishing<'a, T> {
    type Output = Result<PublishScope<'a, T>, Refusal>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { ring, wait } = &mut *self;
        // A future that is polled behind its end has nothing to give, and stays pending.
        let Some(at) = ring else { return Poll::Pending };
        if let Some(reason) = at.core().refuses() {
            return Poll::Ready(Err(reason.into()));
        }
        if wait.begun() || !at.has_room() {
            ready!(wait.poll(at.door(), context))?;
        }
        if wait.is_registered() {
            at.core().forget_room();
        }
        ring.take().map_or(Poll::Pending, |ring| Poll::Ready(Ok(PublishScope::new(ring))))
    }
}

impl<T> Drop for Publishing<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.wait.is_registered()
            && let Some(ring) = &self.ring
        {
            ring.core().forget_room();
        }
    }
}

impl<T: Slot> Drop for ValueProducer<T> {
    fn drop(&mut self) {
        self.ring.core().complete();
    }
}

impl<T: Slot> fmt::Debug for ValueProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueProducer").field("queue", &self.queue()).finish_non_exhaustive()
    }
}
