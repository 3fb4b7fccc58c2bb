//! The worker that moves items to a task.

use super::batch::{Batch, Meter};
use super::builder::{Builder, StartError};
use super::completion::Outcome;
use super::control::Worker;
use super::handler::{WorkerError, catch};
use super::lifecycle::Core;
use super::ring::PopCursor;
use super::slots::{RingConsumer, ring};
use super::sp::SpProducer;
use super::task::{AsyncStage, TaskEngine, detached, start, watch};
use std::task::Context;
use tokio_util::sync::CancellationToken;

/// Marks a [`Worker`] of items by value whose consumer is a task.
#[derive(Debug)]
pub enum AsyncByValue {}

/// A worker that is given items by value and handles them in a task: a bounded channel whose one
/// receiver awaits your handler, one item at a time.
///
/// ```
/// use tidegate::worker::{AsyncHandler, AsyncSpWorker, Outcome, WorkerError};
/// use tokio_util::sync::CancellationToken;
///
/// struct Store(tokio::sync::mpsc::Sender<u64>);
///
/// impl AsyncHandler<u64> for Store {
///     type Error = &'static str;
///
///     async fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
///         self.0.send(item).await.map_err(|_| "nobody listens")
///     }
///
///     fn on_error(&mut self, error: WorkerError<Self::Error>) {
///         eprintln!("{error}");
///     }
///
///     async fn on_completed(&mut self, _outcome: Outcome) {}
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
/// let (mut producer, worker) =
///     AsyncSpWorker::builder().start(Store(sender), CancellationToken::new())?;
/// for item in 1..=3 {
///     producer.dispatch_async(item).await?;
/// }
/// drop(producer);
/// let mut stored = Vec::new();
/// while let Some(item) = receiver.recv().await {
///     stored.push(item);
/// }
/// assert_eq!(stored, [1, 2, 3]);
/// worker.completion().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A handler that waits holds up no thread and costs no allocation: its future lies inside of the
/// worker's one task. One that does not wait is run in a tight loop; every 256 items the task gives
/// way to its neighbours.
///
/// A hard stop drops the future of a handler that waits; see [`AsyncHandler`].
pub type AsyncSpWorker = Worker<AsyncByValue>;

/// What an [`AsyncSpWorker`] does with its items: one call at a time, all in the worker's task.
///
/// **A hard stop** drops the future of [`handle`](Self::handle) where it waits, and the item with it
/// if the future has it. What the handler keeps in `self` is whole only if it is so at every `await`;
/// what must not be cut off belongs in a task of its own. Completing waits for the handler instead.
///
/// A dispatch to the worker's own producer from inside of a handler never waits, since it would wait
/// for itself: it answers `Full`.
pub trait AsyncHandler<T>: Send + 'static {
    /// Why an item could not be handled.
    type Error: Send;

    /// Handles an item.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do; the worker goes on with the next item.
    fn handle(&mut self, item: T) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Handling an item failed, or a callback panicked. Not asynchronous: it should be short.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing waits after at least one item was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more. It is awaited, also after a hard stop; only when
    /// the task itself is dropped, as by a runtime that shuts down, is it polled but once.
    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send;
}

impl AsyncSpWorker {
    /// Starts with the default: 1,024 places.
    pub fn builder() -> Builder<AsyncByValue> {
        Builder::new("async-sp")
    }
}

impl<S> Builder<AsyncByValue, S> {
    /// Starts the worker's task on the tokio runtime of the calling thread. Cancelling `token` stops
    /// it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or there is no runtime.
    pub fn start<T, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Result<(SpProducer<T>, AsyncSpWorker), StartError>
    where
        T: Send + 'static,
        H: AsyncHandler<T>,
    {
        let (producer, engine) = self.halves(handler)?;
        Ok((producer, start(engine, token)?))
    }

    /// Makes the worker, and its task for an executor of your choice. The task dropped, the worker is
    /// stopped hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused.
    pub fn task<T, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Result<(SpProducer<T>, AsyncSpWorker, impl Future<Output = ()> + Send + 'static), StartError>
    where
        T: Send + 'static,
        H: AsyncHandler<T>,
    {
        let (producer, engine) = self.halves(handler)?;
        let (worker, task) = detached(engine, token);
        Ok((producer, worker, task))
    }

    fn halves<T, H>(self, handler: H) -> Result<Halves<T, H>, StartError>
    where
        T: Send + 'static,
        H: AsyncHandler<T>,
    {
        let (core, meter) = self.core_of_runs()?;
        let (push, pop) = ring(&core)?;
        let stage = MovedStage { ring: pop, handler, meter };
        Ok((SpProducer::new(push), TaskEngine::new(core, self.wait, stage)))
    }
}

type Halves<T, H> = (SpProducer<T>, TaskEngine<MovedStage<T, H>>);

/// The consuming half.
struct MovedStage<T, H> {
    ring: RingConsumer<T>,
    handler: H,
    meter: Meter,
}

impl<T: Send + 'static, H: AsyncHandler<T>> AsyncStage for MovedStage<T, H> {
    type Error = H::Error;

    #[inline]
    fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.ring.sight()
    }

    #[inline]
    async fn run(&mut self, most: usize) -> Result<(), H::Error> {
        let Self { ring, handler, meter } = self;
        let mut batch = Batch::new(ring, meter, most);
        while let Some(item) = batch.next_in_task() {
            watch!(handler.handle(item), |nth: usize, context: &mut Context<'_>| batch
                .suspends(nth, context))?;
        }
        Ok(())
    }

    fn settle(&mut self) -> u64 {
        let (core, cursor) = self.ring.sight();
        core.count_handled(self.meter.taken);
        self.meter.settles(core, cursor);
        self.meter.taken
    }

    fn discard(&mut self) {
        let Some(item) = self.ring.pop() else { return };
        let _ = catch(|| drop(item));
        self.ring.core().count_discarded();
    }

    fn on_error(&mut self, error: WorkerError<H::Error>) {
        self.handler.on_error(error);
    }

    fn on_idle(&mut self) {
        self.handler.on_idle();
    }

    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send {
        self.handler.on_completed(outcome)
    }
}
