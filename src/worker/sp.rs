//! The worker whose items are moved through the ring, first in, first out.

mod producer;

pub use producer::SpProducer;

use super::batch::{Batch, Meter};
use super::builder::{Builder, StartError};
use super::completion::Outcome;
use super::control::Worker;
use super::dedicated::spawn;
use super::engine::{Engine, Stage};
use super::handler::{WorkerError, catch};
use super::lifecycle::Core;
use super::ring::PopCursor;
use super::slots::{RingConsumer, ring};
use super::stepper::Stepper;
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

    /// Handles the items that wait, oldest first. Unless overridden, each goes to
    /// [`handle`](Self::handle); override it where items are better handled together, or where
    /// something is to be done once a batch.
    ///
    /// An item is this handler's once it is drawn from the batch. What is not drawn is offered again
    /// in the next call; to a handler that draws nothing, the next item is given by `handle`.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do; the worker goes on with the next item that
    /// was not drawn.
    #[inline]
    fn handle_batch(&mut self, batch: Batch<'_, T>) -> Result<(), Self::Error> {
        for item in batch {
            self.handle(item)?;
        }
        Ok(())
    }

    /// Handling an item failed, or a callback panicked.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing waits after at least one item was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more.
    fn on_completed(&mut self, outcome: Outcome);
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
        let meter = Meter::new(core.capacity().get());
        Ok((SpProducer::new(push), Engine::new(core, SpStage { ring: pop, handler, meter })))
    }
}

/// The producing half, and the consuming one ready to be driven.
type Halves<T, H> = (SpProducer<T>, Engine<SpStage<T, H>>);

/// The consuming half.
struct SpStage<T, H> {
    ring: RingConsumer<T>,
    handler: H,
    meter: Meter,
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

    /// A run of items under one catch, which goes on behind an item that failed.
    #[inline]
    fn handle_some(&mut self, most: usize) -> usize {
        let Self { ring, handler, meter } = self;
        let before = meter.taken;
        let mut failure = catch(|| handler.handle_batch(Batch::new(ring, meter, most)));
        if meter.taken == before && matches!(failure, Ok(Ok(()))) && !ring.core().is_cancelled() {
            // The handler left the batch as it was; so that it gets on, it is given one by hand.
            failure =
                catch(|| Batch::new(ring, meter, 1).next().map_or(Ok(()), |i| handler.handle(i)));
        }
        let done = (meter.taken - before) as usize;
        meter.freed();
        ring.core().count_handled(meter.taken);
        ring.free();
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
