//! The coalescing worker with a task for a consumer.

use super::super::builder::{Builder, StartError};
use super::super::cell::FoldCell;
use super::super::coalescing::{
    Coalescing, CoalescingHandler, CoalescingProducer, CoalescingSpWorker,
};
use super::super::completion::Outcome;
use super::super::handler::WorkerError;
use super::super::keyed::keyed;
use super::super::task::{TaskEngine, detached, start};
use super::{AsyncKeyed, KeyedTask};
use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use tokio_util::sync::CancellationToken;

/// What a [`CoalescingSpWorker`] does in a task with what it delivers: one call at a time.
///
/// ```
/// use tidegate::worker::{AsyncCoalescingHandler, CoalescingSpWorker, Outcome, WorkerError};
/// use tokio_util::sync::CancellationToken;
///
/// struct Send(tokio::sync::mpsc::Sender<(u32, u64)>);
///
/// impl AsyncCoalescingHandler<u32, u64> for Send {
///     type Error = &'static str;
///
///     fn coalesce(current: &mut u64, incoming: u64) {
///         *current += incoming;
///     }
///
///     async fn handle(&mut self, key: &u32, total: u64) -> Result<(), Self::Error> {
///         self.0.send((*key, total)).await.map_err(|_| "nobody listens")
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
/// let (sender, mut receiver) = tokio::sync::mpsc::channel(8);
/// let (mut producer, worker) =
///     CoalescingSpWorker::builder().start_async(Send(sender), CancellationToken::new())?;
/// producer.dispatch_async(&7, 40).await?;
/// producer.dispatch_async(&7, 2).await?;
/// drop(producer);
/// worker.completion().await?;
/// assert_eq!(receiver.recv().await, Some((7, 42)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **A hard stop** drops the future of [`handle`](Self::handle) where it waits; see
/// [`AsyncHandler`](crate::worker::AsyncHandler).
pub trait AsyncCoalescingHandler<K, V>: Send + 'static {
    /// Why a total could not be handled.
    type Error: Send;

    /// Folds `incoming` into `current`. Runs on the **producer's** thread while the key's cell is
    /// held, so it should be short; it has no access to the handler for the same reason.
    fn coalesce(current: &mut V, incoming: V);

    /// Handles the total of a key. While it waits, further values of the key start the next total.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do; the worker goes on with the next key.
    fn handle(&mut self, key: &K, total: V)
    -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Handling a total failed, or a callback panicked. Not asynchronous: it should be short.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing is pending after at least one total was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more. It is awaited, also after a hard stop; only when
    /// the task itself is dropped, as by a runtime that shuts down, is it polled but once.
    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send;
}

/// The producing half of a [`CoalescingSpWorker`] whose consumer is a task.
pub type AsyncCoalescingProducer<K, V, H, S = foldhash::fast::RandomState> =
    CoalescingProducer<K, V, AsyncFold<H>, S>;

/// Tells a producing half which [`AsyncCoalescingHandler`] folds. There is no value of it.
pub struct AsyncFold<H>(Infallible, PhantomData<fn() -> H>);

impl<H> std::fmt::Debug for AsyncFold<H> {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {}
    }
}

impl<K, V, H: AsyncCoalescingHandler<K, V>> CoalescingHandler<K, V> for AsyncFold<H> {
    type Error = H::Error;

    fn coalesce(current: &mut V, incoming: V) {
        H::coalesce(current, incoming);
    }

    fn handle(&mut self, _key: &K, _total: V) -> Result<(), H::Error> {
        match self.0 {}
    }

    fn on_error(&mut self, _error: WorkerError<H::Error>) {
        match self.0 {}
    }

    fn on_completed(&mut self, _outcome: Outcome) {
        match self.0 {}
    }
}

impl<S: BuildHasher> Builder<Coalescing, S> {
    /// Starts the worker with a task for a consumer, on the tokio runtime of the calling thread.
    /// Cancelling `token` stops it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or there is no runtime.
    pub fn start_async<K, V, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Result<(AsyncCoalescingProducer<K, V, H, S>, CoalescingSpWorker), StartError>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Default + Clone + Send + 'static,
        H: AsyncCoalescingHandler<K, V>,
    {
        let (producer, engine) = self.task_halves(handler)?;
        Ok((producer, start(engine, token)?))
    }

    /// Makes the worker, and its task for an executor of your choice. The task dropped, the worker is
    /// stopped hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused.
    pub fn task<K, V, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Result<
        (
            AsyncCoalescingProducer<K, V, H, S>,
            CoalescingSpWorker,
            impl Future<Output = ()> + Send + use<K, V, H, S>,
        ),
        StartError,
    >
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Default + Clone + Send + 'static,
        H: AsyncCoalescingHandler<K, V>,
    {
        let (producer, engine) = self.task_halves(handler)?;
        let (worker, task) = detached(engine, token);
        Ok((producer, worker, task))
    }

    fn task_halves<K, V, H>(self, handler: H) -> Result<Halves<K, V, H, S>, StartError>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Default + Clone + Send + 'static,
        H: AsyncCoalescingHandler<K, V>,
    {
        let core = self.core()?;
        let (half, stage) = keyed(&core, self.max_keys, self.hasher, Totals(handler))?;
        Ok((
            CoalescingProducer { half, _fold: PhantomData },
            TaskEngine::new(core, self.wait, KeyedTask(stage)),
        ))
    }
}

type Halves<K, V, H, S> =
    (AsyncCoalescingProducer<K, V, H, S>, TaskEngine<KeyedTask<K, FoldCell<V>, Totals<H>>>);

/// The handler as the keyed task sees it.
struct Totals<H>(H);

impl<K, V, H: AsyncCoalescingHandler<K, V>> AsyncKeyed<K, V> for Totals<H> {
    type Error = H::Error;

    #[inline(always)]
    fn handle(&mut self, key: &K, value: V) -> impl Future<Output = Result<(), H::Error>> + Send {
        self.0.handle(key, value)
    }

    fn on_error(&mut self, error: WorkerError<H::Error>) {
        self.0.on_error(error);
    }

    fn on_idle(&mut self) {
        self.0.on_idle();
    }

    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send {
        self.0.on_completed(outcome)
    }
}
