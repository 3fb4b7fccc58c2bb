//! The worker that keeps the newest value of each key.

use super::builder::{Builder, KeyedKind, StartError, sealed::Sealed};
use super::cell::{LatestCell, WriterEnd};
use super::completion::{Completion, Outcome};
use super::control::{Worker, WorkerQueue};
use super::dedicated::spawn;
use super::engine::Engine;
use super::handler::WorkerError;
use super::keyed::{
    DispatchError, KeyHandle, KeyedHandler, KeyedProducer, KeyedStage, Patient, Retired,
    TooManyKeys, keyed,
};
use super::keyed_batch::{ByKey, Give, KeyedBatchError, Put, dispatch_all};
use super::stepper::Stepper;
use std::borrow::Borrow;
use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use tokio_util::sync::CancellationToken;

/// Marks a [`Worker`] that conflates.
#[derive(Debug)]
pub enum Conflation {}

impl Sealed for Conflation {}
impl KeyedKind for Conflation {}

/// A worker that conflates by key: while a key is pending, a newer value takes the place of the one
/// that waits, and the superseded one goes back to the producer.
///
/// ```
/// use tidegate::worker::{ConflationHandler, ConflationSpWorker, Outcome, WorkerError};
/// use tokio_util::sync::CancellationToken;
///
/// struct Print;
///
/// impl ConflationHandler<String, u64> for Print {
///     type Error = std::convert::Infallible;
///
///     fn handle(&mut self, key: &String, price: u64) -> Result<(), Self::Error> {
///         println!("{key} is at {price}");
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
/// let token = CancellationToken::new();
/// let (mut producer, worker) =
///     ConflationSpWorker::builder().capacity(1024).name("prices").start(Print, token)?;
/// producer.dispatch("BTCUSDT", 61_837)?;
/// producer.dispatch("BTCUSDT", 61_838)?;
///
/// let eth = producer.key("ETHUSDT")?;
/// producer.dispatch_at(eth, 2_411)?;
///
/// drop(producer);
/// worker.completion().wait()?;
/// assert_eq!(worker.counters().dispatched, 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The handler is told the newest value of a key that was dispatched before it is called, keys in
/// the order in which they became pending. No value is delivered twice, none is torn, none is left
/// behind. Each key takes one value on cache lines of its own, the key itself twice, and some bytes.
pub type ConflationSpWorker = Worker<Conflation>;

/// What a [`ConflationSpWorker`] does with what it delivers. All of it runs on the consumer's
/// thread, one call at a time.
pub trait ConflationHandler<K, V>: Send + 'static {
    /// Why a value could not be handled.
    type Error;

    /// Handles the newest value of a key.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do; the worker goes on with the next key.
    fn handle(&mut self, key: &K, value: V) -> Result<(), Self::Error>;

    /// Handling a value failed, or a callback panicked.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing is pending after at least one value was handled: the moment to wake what is
    /// downstream, once a drain instead of once a value.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more.
    fn on_completed(&mut self, outcome: Outcome);
}

impl ConflationSpWorker {
    /// Starts with the defaults: 1,024 places, 65,536 keys.
    pub fn builder() -> Builder<Conflation> {
        Builder::new("conflation")
    }
}

impl<S: BuildHasher> Builder<Conflation, S> {
    /// Starts the worker on a thread of its own. Cancelling `token` stops it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or the thread cannot be made.
    pub fn start<K, V, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Started<K, V, S, ConflationSpWorker>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + 'static,
        H: ConflationHandler<K, V>,
    {
        let name = self.name.clone();
        let (producer, engine) = self.halves(handler)?;
        Ok((producer, spawn(engine, name, token)?))
    }

    /// Makes the worker without a thread: its consumer runs in the caller's hand.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused.
    pub fn stepped<K, V, H>(self, handler: H) -> Started<K, V, S, Stepper<H>>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Send + 'static,
        H: ConflationHandler<K, V>,
    {
        let (producer, engine) = self.halves(handler)?;
        Ok((producer, Stepper::new(engine)))
    }

    fn halves<K, V, H>(self, handler: H) -> Started<K, V, S, Consumer<K, V, H>>
    where
        H: ConflationHandler<K, V>,
    {
        let core = self.core()?;
        let (half, stage) = keyed(&core, self.max_keys, self.hasher, Newest(handler))?;
        Ok((ConflationProducer { half }, Engine::new(core, stage)))
    }
}

/// The consuming half, ready to be driven.
type Consumer<K, V, H> = Engine<KeyedStage<K, LatestCell<V>, Newest<H>>>;

/// A producing half and what it produces for.
type Started<K, V, S, Other> = Result<(ConflationProducer<K, V, S>, Other), StartError>;

/// The producing half of a [`ConflationSpWorker`]. It may move to another thread; two threads
/// cannot use it at once:
///
/// ```compile_fail,E0277
/// use tidegate::worker::ConflationProducer;
/// fn shared<T: Sync>() {}
/// shared::<ConflationProducer<u32, u64>>();
/// ```
///
/// ```compile_fail,E0599
/// use tidegate::worker::ConflationProducer;
/// fn two(producer: ConflationProducer<u32, u64>) {
///     let other = producer.clone();
/// }
/// ```
///
/// Dropping it completes the worker: what was accepted is still handled.
pub struct ConflationProducer<K, V, S = foldhash::fast::RandomState> {
    pub(super) half: KeyedProducer<K, LatestCell<V>, S>,
}

impl<K: Hash + Eq + Clone, V, S: BuildHasher> ConflationProducer<K, V, S> {
    /// Gives the newest value of a key; answers the one that it supersedes, if one was pending.
    ///
    /// Waits only if the key is not pending and as many keys are as the worker has places. O(1).
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: `Closed` and `TooManyKeys`.
    #[inline(always)]
    pub fn dispatch<Q>(&mut self, key: &Q, value: V) -> Result<Option<V>, DispatchError<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.half.resolve(key) {
            Some(index) => put_one(&mut self.half, index, value, Patient::Yes),
            None => Err(self.half.no_room_for_key(value)),
        }
    }

    /// Like [`dispatch`](Self::dispatch), and never waits.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: also `Full`.
    #[inline(always)]
    pub fn try_dispatch<Q>(&mut self, key: &Q, value: V) -> Result<Option<V>, DispatchError<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.half.resolve(key) {
            Some(index) => put_one(&mut self.half, index, value, Patient::No),
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

    /// Gives the values of an iterator by key, in order; how many it was. Superseded values are
    /// dropped. See [`dispatch_all`](Self::dispatch_all): here the keys' places in the map are asked
    /// for ahead, too.
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
        dispatch_all::<Replace, _, _, _, _>(&mut self.half, items)
    }

    /// Forgets a key, so that its cell can serve another once the consumer has passed it. A value
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

impl<K, V, S> ConflationProducer<K, V, S> {
    /// [`dispatch`](Self::dispatch) by handle.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: `Closed` and `Retired`.
    #[inline(always)]
    pub fn dispatch_at(
        &mut self,
        handle: KeyHandle,
        value: V,
    ) -> Result<Option<V>, DispatchError<V>> {
        match self.half.index_of(handle) {
            Some(index) => put_one(&mut self.half, index, value, Patient::Yes),
            None => Err(DispatchError::Retired(value)),
        }
    }

    /// [`try_dispatch`](Self::try_dispatch) by handle.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside: `Full`, `Closed` and `Retired`.
    #[inline(always)]
    pub fn try_dispatch_at(
        &mut self,
        handle: KeyHandle,
        value: V,
    ) -> Result<Option<V>, DispatchError<V>> {
        match self.half.index_of(handle) {
            Some(index) => put_one(&mut self.half, index, value, Patient::No),
            None => Err(DispatchError::Retired(value)),
        }
    }

    /// Gives the values of an iterator, in order, waiting for places as needed; how many it was.
    /// Superseded values are dropped.
    ///
    /// With more keys than the caches hold it takes about half as long as as many calls of
    /// [`dispatch_at`](Self::dispatch_at): 16 values are taken from the iterator ahead of their turn,
    /// and their cells asked for. Keys that become pending are published up to 32 at a time, with one
    /// store and at most one wake, and are out of sight until then, so a slow iterator delays what
    /// came before it.
    ///
    /// # Errors
    /// [`KeyedBatchError`], with the values that were taken from the iterator and refused. Pass `&mut
    /// iterator` to keep those behind them.
    #[inline]
    pub fn dispatch_all(
        &mut self,
        items: impl IntoIterator<Item = (KeyHandle, V)>,
    ) -> Result<u64, KeyedBatchError<V>> {
        dispatch_all::<Replace, _, _, _, _>(&mut self.half, items.into_iter())
    }

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

/// In a batch, too, a newer value takes the place of the one that waits.
struct Replace;

impl<K, V, S> Give<K, LatestCell<V>, S> for Replace {
    #[inline(always)]
    fn put(writer: &mut WriterEnd<K, LatestCell<V>>) -> Put<V> {
        if writer.publish_staged().is_some() { Put::Merged } else { Put::Fresh }
    }

    fn dispatch(
        half: &mut KeyedProducer<K, LatestCell<V>, S>,
        index: u32,
        value: V,
    ) -> Result<(), DispatchError<V>> {
        put_one(half, index, value, Patient::Yes).map(drop)
    }
}

/// With a place in hand nothing needs to be known of the cell, the swap tells. Inlined, and the slow
/// parts take no value, so that a value is written where it stays and the superseded one is read
/// from where it lies.
#[inline(always)]
fn put_one<K, V, S>(
    half: &mut KeyedProducer<K, LatestCell<V>, S>,
    index: u32,
    value: V,
    patient: Patient,
) -> Result<Option<V>, DispatchError<V>> {
    if let Some(reason) = half.core().refuses() {
        return Err(DispatchError::Closed(value, reason));
    }
    // Without a place only a pending key may go on.
    if !half.has_room()
        && !half.writer.is_dirty(index)
        && let Err(refusal) = half.make_room(patient)
    {
        return Err(refusal.of(value));
    }
    if let Some(superseded) = half.writer.publish(index, value) {
        half.count_conflated();
        return Ok(Some(superseded));
    }
    // Without a place here, too: the consumer took this key between the look and the swap, and the
    // place that it had was given to another key before (between its leaving the ring and its cell's
    // cleaning). So it is a new key at a full ring, and nobody looks for it yet.
    let pushed = if half.has_room() { half.push(index) } else { half.push_later(index, patient) };
    let Err(refusal) = pushed else { return Ok(None) };
    // It is there: the consumer never looks at an index that it was not given.
    half.writer.retract(index).map_or(Ok(None), |value| Err(refusal.of(value)))
}

impl<K, V, S> fmt::Debug for ConflationProducer<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConflationProducer").field("queue", &self.queue()).finish_non_exhaustive()
    }
}

/// A conflating handler as the keyed stage sees it.
struct Newest<H>(H);

impl<K, V, H: ConflationHandler<K, V>> KeyedHandler<K, V> for Newest<H> {
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
