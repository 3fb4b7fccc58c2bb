//! The worker whose items are moved through the ring, first in, first out.

use super::builder::{Builder, StartError};
use super::completion::{Completion, Outcome};
use super::control::{Worker, WorkerQueue};
use super::dedicated::spawn;
use super::engine::{Engine, Stage};
use super::handler::{WorkerError, catch};
use super::lifecycle::{Attention, CloseReason, Core};
use super::refusal::Refusal;
use super::ring::PopCursor;
use super::slots::{RingConsumer, RingProducer, ring};
use super::stepper::Stepper;
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use tokio_util::sync::CancellationToken;

/// Marks a [`Worker`] of items by value.
#[derive(Debug)]
pub enum ByValue {}

/// A worker that is given items by value: a bounded channel whose one receiver is a thread that
/// runs your handler.
///
/// ```
/// use tidegate::worker::{Handler, Outcome, SpWorker, WorkerError};
/// use tokio_util::sync::CancellationToken;
///
/// struct Print;
///
/// impl Handler<u64> for Print {
///     type Error = std::convert::Infallible;
///
///     fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
///         println!("{item}");
///         Ok(())
///     }
///
///     fn on_error(&mut self, error: WorkerError<Self::Error>) {
///         eprintln!("{error}");
///     }
///
///     fn on_completed(&mut self, _outcome: Outcome) {}
/// }
///
/// let (mut producer, worker) =
///     SpWorker::builder().capacity(1024).start(Print, CancellationToken::new())?;
/// producer.dispatch(1)?;
/// // Many at once are published together, with one store and at most one wake.
/// assert_eq!(producer.dispatch_all(2..=1_000)?, 999);
/// drop(producer);
/// worker.completion().wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SpWorker = Worker<ByValue>;

/// What an [`SpWorker`] does with its items. All of it runs on the consumer's thread, one call at a
/// time.
pub trait Handler<T>: Send + 'static {
    /// Why an item could not be handled.
    type Error;

    /// Handles an item.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do; the worker goes on with the next item.
    fn handle(&mut self, item: T) -> Result<(), Self::Error>;

    /// Handling an item failed, or a callback panicked.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing waits after at least one item was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more.
    fn on_completed(&mut self, outcome: Outcome);
}

/// Why an item was not taken. The item is inside.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError<T> {
    /// Taking it would have to wait. Only `try_dispatch` says so, and a dispatch from the consumer's
    /// own thread, which would wait for itself.
    #[error("dispatching an item: every place is taken")]
    Full(T),
    /// The worker takes no more items.
    #[error("dispatching an item: the worker is {1}")]
    Closed(T, CloseReason),
}

impl<T> SendError<T> {
    /// The item that was refused.
    pub fn into_item(self) -> T {
        match self {
            Self::Full(item) | Self::Closed(item, _) => item,
        }
    }
}

/// Shows the kind alone, so that any item will do.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_, reason) => write!(f, "Closed(.., {reason:?})"),
        }
    }
}

/// Why a batch was not taken to its end.
#[derive(thiserror::Error)]
#[error("dispatching a batch: after {accepted} items {why}")]
pub struct BatchError<T> {
    /// How many items were accepted before.
    pub accepted: u64,
    /// Items that were taken from the iterator and refused, in order; often none.
    pub refused: Vec<T>,
    /// Why.
    pub why: Refusal,
}

impl<T> fmt::Debug for BatchError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchError({}, .., {:?})", self.accepted, self.why)
    }
}

impl SpWorker {
    /// Starts with the default: 1,024 places.
    pub fn builder() -> Builder<ByValue> {
        Builder::new("sp")
    }
}

impl<S> Builder<ByValue, S> {
    /// Starts the worker on a thread of its own. Cancelling `token` stops it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or the thread cannot be made.
    pub fn start<T, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Result<(SpProducer<T>, SpWorker), StartError>
    where
        T: Send + 'static,
        H: Handler<T>,
    {
        let name = self.name.clone();
        let (producer, engine) = self.halves(handler)?;
        Ok((producer, spawn(engine, name, token)?))
    }

    /// Makes the worker without a thread: its consumer runs in the caller's hand.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused.
    pub fn stepped<T, H>(self, handler: H) -> Result<(SpProducer<T>, Stepper<H>), StartError>
    where
        T: Send + 'static,
        H: Handler<T>,
    {
        let (producer, engine) = self.halves(handler)?;
        Ok((producer, Stepper::new(engine)))
    }

    fn halves<T, H: Handler<T>>(self, handler: H) -> Result<Halves<T, H>, StartError> {
        let core = self.core()?;
        let (push, pop) = ring(&core)?;
        let producer = SpProducer { ring: push, dispatched: 0, _not_sync: PhantomData };
        let stride = (core.capacity().get() / 64).clamp(1, 16);
        Ok((producer, Engine::new(core, SpStage { ring: pop, handler, handled: 0, stride })))
    }
}

/// The producing half, and the consuming one ready to be driven.
type Halves<T, H> = (SpProducer<T>, Engine<SpStage<T, H>>);

/// The producing half of an [`SpWorker`]. It may move to another thread; two threads cannot use it
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
    dispatched: u64,
    /// One producer at a time: it may move to another thread, not be shared.
    _not_sync: PhantomData<std::cell::Cell<()>>,
}

impl<T> SpProducer<T> {
    /// Gives the worker an item; waits while every place is taken. O(1).
    ///
    /// # Errors
    /// [`SendError::Closed`], with the item inside.
    #[inline(always)]
    pub fn dispatch(&mut self, item: T) -> Result<(), SendError<T>> {
        if let Some(reason) = self.ring.core().refuses() {
            return Err(SendError::Closed(item, reason));
        }
        if !self.ring.has_room() {
            return self.wait_and_push(item);
        }
        self.push(item)
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
        if !self.ring.has_room() {
            return Err(SendError::Full(item));
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
        let mut items = items.into_iter().peekable();
        let mut accepted = 0;
        let fail = |accepted, refused, why| Err(BatchError { accepted, refused, why });
        // Whether there is an item at all is known before a place is waited for.
        while items.peek().is_some() {
            if let Some(reason) = self.ring.core().refuses() {
                return fail(accepted, items.next().into_iter().collect(), reason.into());
            }
            let wanted = items.size_hint().0;
            let mut room = self.ring.room(wanted);
            if room == 0 {
                if let Err(none) = self.ring.wait_for_room() {
                    return fail(accepted, items.next().into_iter().collect(), none.into());
                }
                room = self.ring.room(wanted);
            }
            let count = self.ring.fill(room, &mut items);
            self.count(self.dispatched + count as u64);
            if let Err((refused, reason)) = self.ring.publish_filled(count) {
                self.count(self.dispatched - count as u64);
                return fail(accepted, refused, reason.into());
            }
            accepted += count as u64;
        }
        Ok(accepted)
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
        match self.ring.wait_for_room().map_err(Refusal::from) {
            Ok(()) => self.push(item),
            Err(Refusal::Closed(reason)) => Err(SendError::Closed(item, reason)),
            Err(Refusal::Full) => Err(SendError::Full(item)),
        }
    }

    #[inline(always)]
    fn push(&mut self, item: T) -> Result<(), SendError<T>> {
        self.count(self.dispatched + 1);
        match self.ring.push(item) {
            Ok(()) => Ok(()),
            Err((item, reason)) => {
                self.count(self.dispatched - 1);
                Err(SendError::Closed(item, reason))
            }
        }
    }

    #[inline(always)]
    fn count(&mut self, total: u64) {
        self.dispatched = total;
        self.ring.core().count_pushed(total);
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

/// The consuming half.
struct SpStage<T, H> {
    ring: RingConsumer<T>,
    handler: H,
    handled: u64,
    /// How many places are freed together.
    stride: usize,
}

impl<T, H: Handler<T>> SpStage<T, H> {
    #[cold]
    fn report(&mut self, error: WorkerError<H::Error>) {
        self.ring.core().count_error();
        // A panic in the report of an error has nobody left to be reported to.
        let _ = catch(|| self.handler.on_error(error));
    }
}

impl<T, H: Handler<T>> Stage for SpStage<T, H> {
    type Handler = H;

    #[inline(always)]
    fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.ring.sight()
    }

    fn handle(&mut self) {
        self.handle_some(1);
    }

    /// A run of items under one catch, which goes on behind an item that panicked. Places are freed
    /// every few items (each one in a ring of 64 or fewer), or as soon as the producer waits.
    fn handle_some(&mut self, most: usize) -> usize {
        let Self { ring, handler, handled, stride } = self;
        let (mut done, mut kept) = (0, 0);
        let failure = catch(|| {
            while done < most {
                let attention = ring.core().asks_for_attention();
                if attention == Attention::Cancelled {
                    break;
                }
                let Some(item) = ring.take() else { break };
                done += 1;
                kept += 1;
                if kept >= *stride || attention != Attention::None {
                    ring.free();
                    kept = 0;
                }
                // Counted before: nobody can tell, and a panic needs no second place to count.
                *handled += 1;
                handler.handle(item)?;
                ring.core().count_handled(*handled);
            }
            Ok(())
        });
        self.ring.core().count_handled(self.handled);
        self.ring.free();
        match failure {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.report(WorkerError::Handler(error)),
            Err(panicked) => self.report(WorkerError::Panicked(panicked)),
        }
        done
    }

    fn discard(&mut self) {
        let Some(item) = self.ring.pop() else { return };
        let _ = catch(|| drop(item));
        self.ring.core().count_discarded();
    }

    fn idle(&mut self) {
        if let Err(panicked) = catch(|| self.handler.on_idle()) {
            self.report(WorkerError::Panicked(panicked));
        }
    }

    fn completed(&mut self, outcome: Outcome) {
        self.handler.on_completed(outcome);
    }

    fn handler(&self) -> &H {
        &self.handler
    }

    fn handler_mut(&mut self) -> &mut H {
        &mut self.handler
    }

    fn into_handler(self) -> H {
        self.handler
    }
}
