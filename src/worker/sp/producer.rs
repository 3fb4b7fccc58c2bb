//! The producing half of the workers that move items.

use super::super::awaiting::Wait;
use super::super::completion::Completion;
use super::super::control::WorkerQueue;
use super::super::refusal::{BatchError, Refusal, SendError};
use super::super::slots::RingProducer;
use std::error::Error;
use std::fmt;
use std::iter::once;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The producing half of an [`SpWorker`](super::SpWorker) or an
/// [`AsyncSpWorker`](crate::worker::AsyncSpWorker). It may move to another thread; two threads cannot use it
/// at once:
///
/// ```compile_fail,E0277
/// use tidegate::worker::SpProducer;
/// fn shared<T: Sync>() {}
/// shared::<SpProducer<u64>>();
/// ```
///
/// ```compile_fail,E0599
/// use tidegate::worker::SpProducer;
/// fn two(producer: SpProducer<u64>) {
///     let other = producer.clone();
/// }
/// ```
///
/// Dropping it completes the worker: what was accepted is still handled.
pub struct SpProducer<T> {
    ring: RingProducer<T>,
    /// One producer at a time: it may move to another thread, not be shared.
    _not_sync: PhantomData<std::cell::Cell<()>>,
}

impl<T> SpProducer<T> {
    pub(in crate::worker) const fn new(ring: RingProducer<T>) -> Self {
        Self { ring, _not_sync: PhantomData }
    }

    /// Gives the worker an item; waits while every place is taken. O(1).
    ///
    /// # Errors
    /// [`SendError::Closed`], with the item inside.
    #[inline(always)]
    pub fn dispatch(&mut self, item: T) -> Result<(), SendError<T>> {
        if let Some(reason) = self.ring.core().refuses() {
            return Err(SendError::Closed(item, reason));
        }
        match self.ring.try_push(item) {
            Ok(()) => Ok(()),
            Err((item, None)) => self.wait_and_push(item),
            Err((item, Some(reason))) => Err(SendError::Closed(item, reason)),
        }
    }

    /// Like [`dispatch`](Self::dispatch), and never waits.
    ///
    /// # Errors
    /// [`SendError`], with the item inside.
    #[inline(always)]
    pub fn try_dispatch(&mut self, item: T) -> Result<(), SendError<T>> {
        if let Some(reason) = self.ring.core().refuses() {
            return Err(SendError::Closed(item, reason));
        }
        self.push(item)
    }

    /// Gives the worker every item of an iterator, waiting for places as needed; how many it was.
    ///
    /// As many as there are places for are published together: one store, at most one wake. An item
    /// is out of sight until then, so a slow iterator delays those before it.
    ///
    /// # Errors
    /// [`BatchError`], with the items that were taken from the iterator and refused. Pass `&mut
    /// iterator` to keep those behind them.
    pub fn dispatch_all(
        &mut self,
        items: impl IntoIterator<Item = T>,
    ) -> Result<u64, BatchError<T>> {
        let (mut items, mut accepted) = (items.into_iter(), 0);
        // Drawn and not placed yet: whether there is an item at all is known before a place is
        // waited for.
        let mut drawn = None;
        loop {
            let wanted = items.size_hint().0 + usize::from(drawn.is_some());
            if wanted == 0 {
                drawn = items.next();
                if drawn.is_none() {
                    return Ok(accepted);
                }
            }
            let room = match self.make_room(wanted) {
                Ok(room) => room,
                Err(why) => {
                    let refused = drawn.or_else(|| items.next()).into_iter().collect();
                    return Err(BatchError { accepted, refused, why });
                }
            };
            let count = match drawn.take() {
                None => self.ring.fill(room, &mut items),
                Some(first) => self.ring.fill(room, &mut once(first).chain(items.by_ref())),
            };
            if let Err((refused, reason)) = self.ring.publish_filled(count) {
                return Err(BatchError { accepted, refused, why: reason.into() });
            }
            accepted += count as u64;
            if count < room {
                return Ok(accepted);
            }
        }
    }

    /// Places for a batch, at least one.
    #[inline(always)]
    fn make_room(&mut self, wanted: usize) -> Result<usize, Refusal> {
        if let Some(reason) = self.ring.core().refuses() {
            return Err(reason.into());
        }
        let room = self.ring.free_places(wanted);
        if room > 0 {
            return Ok(room);
        }
        self.ring.wait_for_room()?;
        Ok(self.ring.free_places(wanted))
    }

    /// Waits, without blocking, until there is room: the next `try_dispatch` is not `Full`. The
    /// future carries no item, so whoever drops it loses none.
    ///
    /// # Errors
    /// [`Refusal::Closed`]; and [`Refusal::Full`] inside of the worker's own handler, which would
    /// wait for itself.
    pub async fn ready(&mut self) -> Result<(), Refusal> {
        if let Some(reason) = self.ring.core().refuses() {
            return Err(reason.into());
        }
        if !self.ring.has_room() {
            self.ring.door().opens().await?;
        }
        Ok(())
    }

    /// Like [`dispatch`](Self::dispatch), and waits without blocking the thread.
    ///
    /// Dropped before it is done, the future drops its item, which was not dispatched then. To keep
    /// the item, await [`ready`](Self::ready) and dispatch after it.
    ///
    /// # Errors
    /// [`SendError`], with the item inside. `Full` only inside of the worker's own handler.
    #[inline]
    pub fn dispatch_async(
        &mut self,
        item: T,
    ) -> impl Future<Output = Result<(), SendError<T>>> + use<'_, T> {
        Dispatching { producer: self, item: Some(item), wait: Wait::default() }
    }

    /// Completes the worker: what was accepted is handled, nothing more is taken. `false` if it was
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

    #[cold]
    fn wait_and_push(&mut self, item: T) -> Result<(), SendError<T>> {
        match self.ring.wait_for_room() {
            Ok(()) => self.push(item),
            Err(none) => Err(SendError::new(item, none.into())),
        }
    }

    #[inline(always)]
    fn push(&mut self, item: T) -> Result<(), SendError<T>> {
        self.ring.try_push(item).map_err(|(item, reason)| match reason {
            Some(reason) => SendError::Closed(item, reason),
            None => SendError::Full(item),
        })
    }
}

/// A dispatch that awaits its place. Written by hand, because an `async fn` is a machine of states
/// that costs each item more than the push does.
struct Dispatching<'a, T> {
    producer: &'a mut SpProducer<T>,
    /// Not given yet.
    item: Option<T>,
    wait: Wait,
}

// The item is moved, never pinned.
impl<T> Unpin for Dispatching<'_, T> {}

impl<T> Future for Dispatching<'_, T> {
    type Output = Result<(), SendError<T>>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { producer, item, wait } = &mut *self;
        if (wait.begun() || !producer.ring.has_room())
            && let Err(none) = ready!(wait.poll(producer.ring.door(), context))
        {
            let refused = item.take().map(|item| SendError::new(item, none.into()));
            return refused.map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
        }
        // A future that is polled behind its end has nothing to give, and stays pending.
        item.take().map_or(Poll::Pending, |item| Poll::Ready(producer.try_dispatch(item)))
    }
}

impl<T> Drop for Dispatching<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.wait.is_registered() {
            self.producer.ring.core().forget_room();
        }
    }
}

impl<T> Drop for SpProducer<T> {
    fn drop(&mut self) {
        self.ring.core().complete();
    }
}

impl<T> fmt::Debug for SpProducer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpProducer").field("queue", &self.queue()).finish_non_exhaustive()
    }
}
