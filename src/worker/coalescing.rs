//! The worker that folds the values of each key into one total, exactly once.

mod fold;

use super::builder::{Builder, KeyedKind, StartError, sealed::Sealed};
use super::cell::FoldCell;
use super::completion::{Completion, Outcome};
use super::control::{Worker, WorkerQueue};
use super::dedicated::spawn;
use super::engine::Engine;
use super::handler::WorkerError;
use super::keyed::{
    DispatchError, KeyHandle, KeyedHandler, KeyedProducer, KeyedStage, Patient, Retired,
    TooManyKeys, keyed,
};
use super::keyed_batch::{ByKey, KeyedBatchError, dispatch_all};
use super::stepper::Stepper;
use fold::{AddUp, put_one};
use std::borrow::Borrow;
use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use tokio_util::sync::CancellationToken;

/// Marks a [`Worker`] that coalesces.
#[derive(Debug)]
pub enum Coalescing {}

impl Sealed for Coalescing {}
impl KeyedKind for Coalescing {}

/// A worker that coalesces by key: while a key is pending, further values are folded into the total
/// that waits. Every value is counted in exactly one total.
///
/// ```
/// use tidegate::worker::{CoalescingHandler, CoalescingSpWorker, Outcome, WorkerError};
/// use tokio_util::sync::CancellationToken;
///
/// #[derive(Default)]
/// struct Ledger {
///     sum: u64,
/// }
///
/// impl CoalescingHandler<u32, u64> for Ledger {
///     type Error = std::convert::Infallible;
///
///     fn coalesce(current: &mut u64, incoming: u64) {
///         *current += incoming;
///     }
///
///     fn handle(&mut self, _account: &u32, total: u64) -> Result<(), Self::Error> {
///         self.sum += total;
///         Ok(())
///     }
///
///     fn on_error(&mut self, error: WorkerError<Self::Error>) {
///         eprintln!("{error}");
///     }
///
///     fn on_completed(&mut self, _outcome: Outcome) {
///         assert_eq!(self.sum, 42);
///     }
/// }
///
/// let token = CancellationToken::new();
/// let (mut producer, worker) = CoalescingSpWorker::builder().start(Ledger::default(), token)?;
/// producer.dispatch(&7, 40)?;
/// producer.dispatch(&7, 2)?;
/// drop(producer);
/// worker.completion().wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The identity is `Default`: a fresh total starts from it. A total is copied before it is folded
/// into, so that a fold that panics leaves the old one whole; cheap for plain values, an allocation
/// for those whose `Clone` allocates.
pub type CoalescingSpWorker = Worker<Coalescing>;

/// What a [`CoalescingSpWorker`] folds with, and does with the totals.
pub trait CoalescingHandler<K, V>: Send + 'static {
    /// Why a total could not be handled.
    type Error;

    /// Folds `incoming` into `current`. Runs on the **producer's** thread while the key's cell is
    /// held, so it should be short; it has no access to the handler for the same reason.
    fn coalesce(current: &mut V, incoming: V);

    /// Handles the total of a key. On the consumer's thread, as all that follow.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do; the worker goes on with the next key.
    fn handle(&mut self, key: &K, total: V) -> Result<(), Self::Error>;

    /// Handling a total failed, or a callback panicked.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing is pending after at least one total was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more.
    fn on_completed(&mut self, outcome: Outcome);
}

impl CoalescingSpWorker {
    /// Starts with the defaults: 1,024 places, 65,536 keys.
    pub fn builder() -> Builder<Coalescing> {
        Builder::new("coalescing")
    }
}

impl<S: BuildHasher> Builder<Coalescing, S> {
    /// Starts the worker on a thread of its own. Cancelling `token` stops it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or the thread cannot be made.
    pub fn start<K, V, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Started<K, V, H, S, CoalescingSpWorker>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Default + Clone + Send + 'static,
        H: CoalescingHandler<K, V>,
    {
        let name = self.name.clone();
        let (producer, engine) = self.halves(handler)?;
        Ok((producer, spawn(engine, name, token)?))
    }

    /// Makes the worker without a thread: its consumer runs in the caller's hand.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused.
    pub fn stepped<K, V, H>(self, handler: H) -> Started<K, V, H, S, Stepper<H>>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Default + Clone + Send + 'static,
        H: CoalescingHandler<K, V>,
    {
        let (producer, engine) = self.halves(handler)?;
        Ok((producer, Stepper::new(engine)))
    }

    fn halves<K, V, H>(self, handler: H) -> Started<K, V, H, S, Consumer<K, V, H>>
    where
        H: CoalescingHandler<K, V>,
    {
        let core = self.core()?;
        let (half, stage) = keyed(&core, self.max_keys, self.hasher, Totals(handler))?;
        Ok((CoalescingProducer { half, _fold: PhantomData }, Engine::new(core, stage)))
    }
}

/// The consuming half, ready to be driven.
type Consumer<K, V, H> = Engine<KeyedStage<K, FoldCell<V>, Totals<H>>>;

/// A producing half and what it produces for.
type Started<K, V, H, S, Other> = Result<(CoalescingProducer<K, V, H, S>, Other), StartError>;

/// The producing half of a [`CoalescingSpWorker`]. It may move to another thread; two threads
/// cannot use it at once:
///
/// ```compile_fail,E0277
/// use tidegate::worker::CoalescingProducer;
/// fn shared<T: Sync>() {}
/// shared::<CoalescingProducer<u32, u64, ()>>();
/// ```
///
/// ```compile_fail,E0599
/// use tidegate::worker::CoalescingProducer;
/// fn two(producer: CoalescingProducer<u32, u64, ()>) {
///     let other = producer.clone();
/// }
/// ```
///
/// Dropping it completes the worker: what was accepted is still handled.
pub struct CoalescingProducer<K, V, H, S = foldhash::fast::RandomState> {
    pub(super) half: KeyedProducer<K, FoldCell<V>, S>,
    /// The fold is the handler's; the handler itself lives with the consumer.
    pub(super) _fold: PhantomData<fn() -> H>,
}

impl<K, V, H, S> CoalescingProducer<K, V, H, S>
where
    K: Hash + Eq + Clone,
    V: Default + Clone,
    H: CoalescingHandler<K, V>,
    S: BuildHasher,
{
    /// Folds a value into the pending total of its key, or starts one.
    ///
    /// Waits only if the key is not pending and as many keys are as the worker has places. O(1).
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: `Closed`, `TooManyKeys` and `CoalescePanicked`.
    #[inline(always)]
    pub fn dispatch<Q>(&mut self, key: &Q, value: V) -> Result<(), DispatchError<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.half.resolve(key) {
            Some(index) => put_one::<K, V, H, S>(&mut self.half, index, value, Patient::Yes),
            None => Err(self.half.no_room_for_key(value)),
        }
    }

    /// Like [`dispatch`](Self::dispatch), and never waits.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: also `Full`.
    #[inline(always)]
    pub fn try_dispatch<Q>(&mut self, key: &Q, value: V) -> Result<(), DispatchError<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.half.resolve(key) {
            Some(index) => put_one::<K, V, H, S>(&mut self.half, index, value, Patient::No),
            None => Err(self.half.no_room_for_key(value)),
        }
    }

    /// A handle that dispatches to `key` without its hash.
    ///
    /// # Errors
    /// [`TooManyKeys`] if the key is new and there is no room for it.
    pub fn key<Q>(&mut self, key: &Q) -> Result<KeyHandle, TooManyKeys>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.half.key(key)
    }

    /// Folds the values of an iterator by key, in order; how many it was. See
    /// [`dispatch_all`](Self::dispatch_all): here the keys' places in the map are asked for ahead,
    /// too.
    ///
    /// A key may be owned or borrowed; it is cloned if it is new.
    ///
    /// # Errors
    /// [`KeyedBatchError`], with the values that were taken from the iterator and refused, and their
    /// keys.
    #[inline]
    pub fn dispatch_all_by_key<B: Borrow<K>>(
        &mut self,
        items: impl IntoIterator<Item = (B, V)>,
    ) -> Result<u64, KeyedBatchError<V, K>> {
        let items = items.into_iter().map(|(key, value)| (ByKey(key), value));
        dispatch_all::<AddUp<H>, _, _, _, _>(&mut self.half, items)
    }

    /// Forgets a key, so that its cell can serve another once the consumer has passed it. A total
    /// of it that is pending is still delivered. The same key dispatched anew is a new key.
    ///
    /// # Errors
    /// [`Retired`] if that has happened before.
    pub fn retire(&mut self, handle: KeyHandle) -> Result<(), Retired> {
        self.half.retire(handle)
    }

    /// The number of keys that are known and not retired.
    #[must_use]
    pub fn known_keys(&self) -> usize {
        self.half.known_keys()
    }
}

impl<K, V, H, S> CoalescingProducer<K, V, H, S>
where
    V: Default + Clone,
    H: CoalescingHandler<K, V>,
{
    /// [`dispatch`](Self::dispatch) by handle.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: `Closed`, `Retired` and `CoalescePanicked`.
    #[inline(always)]
    pub fn dispatch_at(&mut self, handle: KeyHandle, value: V) -> Result<(), DispatchError<V>> {
        match self.half.index_of(handle) {
            Some(index) => put_one::<K, V, H, S>(&mut self.half, index, value, Patient::Yes),
            None => Err(DispatchError::Retired(value)),
        }
    }

    /// [`try_dispatch`](Self::try_dispatch) by handle.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: also `Full`.
    #[inline(always)]
    pub fn try_dispatch_at(&mut self, handle: KeyHandle, value: V) -> Result<(), DispatchError<V>> {
        match self.half.index_of(handle) {
            Some(index) => put_one::<K, V, H, S>(&mut self.half, index, value, Patient::No),
            None => Err(DispatchError::Retired(value)),
        }
    }

    /// Folds the values of an iterator, in order, waiting for places as needed; how many it was.
    ///
    /// Their cells are asked for 16 values ahead. Keys that become pending are published up to 32 at
    /// a time, with one store and at most one wake, and are out of sight until then, so a slow
    /// iterator delays what came before it.
    ///
    /// # Errors
    /// [`KeyedBatchError`], with the values that were taken from the iterator and refused. Pass `&mut
    /// iterator` to keep those behind them.
    #[inline(always)]
    pub fn dispatch_all(
        &mut self,
        items: impl IntoIterator<Item = (KeyHandle, V)>,
    ) -> Result<u64, KeyedBatchError<V>> {
        dispatch_all::<AddUp<H>, _, _, _, _>(&mut self.half, items.into_iter())
    }
}

impl<K, V, H, S> CoalescingProducer<K, V, H, S> {
    /// Completes the worker: what was accepted is handled, nothing more is taken. `false` if it was
    /// stopping already.
    pub fn complete(&mut self) -> bool {
        self.half.core().complete()
    }

    /// Completes the worker with an error for its completion. `false` if it was stopping already.
    pub fn fault(&mut self, error: impl Into<Box<dyn Error + Send + Sync>>) -> bool {
        self.half.fault(error.into())
    }

    /// The worker's end.
    #[must_use]
    pub fn completion(&self) -> Completion {
        self.half.completion()
    }

    /// The worker's telemetry.
    #[must_use]
    pub fn queue(&self) -> WorkerQueue {
        self.half.queue()
    }
}

impl<K, V, H, S> fmt::Debug for CoalescingProducer<K, V, H, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoalescingProducer").field("queue", &self.queue()).finish_non_exhaustive()
    }
}

/// A coalescing handler as the keyed stage sees it.
struct Totals<H>(H);

impl<K, V, H: CoalescingHandler<K, V>> KeyedHandler<K, V> for Totals<H> {
    type User = H;
    type Error = H::Error;

    #[inline(always)]
    fn handle(&mut self, key: &K, value: V) -> Result<(), H::Error> {
        self.0.handle(key, value)
    }

    fn on_error(&mut self, error: WorkerError<H::Error>) {
        self.0.on_error(error);
    }

    fn on_idle(&mut self) {
        self.0.on_idle();
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.0.on_completed(outcome);
    }

    fn user(&self) -> &H {
        &self.0
    }

    fn user_mut(&mut self) -> &mut H {
        &mut self.0
    }

    fn into_user(self) -> H {
        self.0
    }
}
