//! The conflating worker with a task for a consumer.

use super::super::builder::{Builder, StartError};
use super::super::cell::LatestCell;
use super::super::completion::Outcome;
use super::super::conflation::{Conflation, ConflationProducer, ConflationSpWorker};
use super::super::handler::WorkerError;
use super::super::keyed::keyed;
use super::super::task::{TaskEngine, detached, start};
use super::{AsyncKeyed, KeyedTask};
use std::hash::{BuildHasher, Hash};
use tokio_util::sync::CancellationToken;

/// What a [`ConflationSpWorker`] does in a task with what it delivers: one call at a time.
///
/// ```
/// use tidegate::worker::{AsyncConflationHandler, ConflationSpWorker, Outcome, WorkerError};
/// use tokio_util::sync::CancellationToken;
///
/// struct Send(tokio::sync::mpsc::Sender<(u32, u64)>);
///
/// impl AsyncConflationHandler<u32, u64> for Send {
///     type Error = &'static str;
///
///     async fn handle(&mut self, key: &u32, price: u64) -> Result<(), Self::Error> {
///         self.0.send((*key, price)).await.map_err(|_| "nobody listens")
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
///     ConflationSpWorker::builder().start_async(Send(sender), CancellationToken::new())?;
/// producer.dispatch_async(&7, 40).await?;
/// producer.dispatch_async(&7, 2).await?;
/// drop(producer);
/// worker.completion().await?;
/// assert_eq!(receiver.recv().await, Some((7, 2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **A hard stop** drops the future of [`handle`](Self::handle) where it waits; see
/// [`AsyncHandler`](crate::worker::AsyncHandler).
pub trait AsyncConflationHandler<K, V>: Send + 'static {
    /// Why a value could not be handled.
    type Error: Send;

    /// Handles the newest value of a key. While it waits, newer values of the key conflate.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do; the worker goes on with the next key.
    fn handle(&mut self, key: &K, value: V)
    -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Handling a value failed, or a callback panicked. Not asynchronous: it should be short.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing is pending after at least one value was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more. It is awaited, also after a hard stop; only when
    /// the task itself is dropped, as by a runtime that shuts down, is it polled but once.
    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send;
}

impl<S: BuildHasher> Builder<Conflation, S> {
    /// Starts the worker with a task for a consumer, on the tokio runtime of the calling thread.
    /// Cancelling `token` stops it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or there is no runtime.
    pub fn start_async<K, V, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Result<(ConflationProducer<K, V, S>, ConflationSpWorker), StartError>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + 'static,
        H: AsyncConflationHandler<K, V>,
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
            ConflationProducer<K, V, S>,
            ConflationSpWorker,
            impl Future<Output = ()> + Send + use<K, V, H, S>,
        ),
        StartError,
    >
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + 'static,
        H: AsyncConflationHandler<K, V>,
    {
        let (producer, engine) = self.task_halves(handler)?;
        let (worker, task) = detached(engine, token);
        Ok((producer, worker, task))
    }

    fn task_halves<K, V, H>(self, handler: H) -> Result<Halves<K, V, H, S>, StartError>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + 'static,
        H: AsyncConflationHandler<K, V>,
    {
        let core = self.core()?;
        let (half, stage) = keyed(&core, self.max_keys, self.hasher, Newest(handler))?;
        Ok((ConflationProducer { half }, TaskEngine::new(core, self.wait, KeyedTask(stage))))
    }
}

type Halves<K, V, H, S> =
    (ConflationProducer<K, V, S>, TaskEngine<KeyedTask<K, LatestCell<V>, Newest<H>>>);

/// The handler as the keyed task sees it.
struct Newest<H>(H);

impl<K, V, H: AsyncConflationHandler<K, V>> AsyncKeyed<K, V> for Newest<H> {
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
