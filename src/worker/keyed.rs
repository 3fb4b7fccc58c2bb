//! What the two keyed workers share: resolving keys, pushing their indices, and the consumer's
//! stage.

use super::cell::{Cell, MAX_KEYS, ReaderEnd, WriterEnd, table};
use super::completion::{Completion, Outcome};
use super::control::WorkerQueue;
use super::engine::Stage;
use super::handler::{Panicked, WorkerError, catch};
use super::lifecycle::{Attention, CloseReason, Core};
use super::refusal::Refusal;
use super::ring::{CapacityError, PopCursor};
use super::slots::{RingConsumer, RingProducer, ring};
use super::sync::Arc;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Names a key of one producer without its hash. Cheap to copy, good until the key is retired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyHandle {
    pub(super) index: u32,
    pub(super) stamp: u32,
}

/// Why a value was not taken. The value is inside.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError<V> {
    /// Taking it would have to wait: the key is not pending, and as many keys as the worker has
    /// places are. Only `try_dispatch` says so, and a dispatch from the consumer's own thread (its
    /// handler, or who steps it), which would wait for itself.
    #[error("dispatching a value: as many keys are pending as the worker has places")]
    Full(V),
    /// The worker takes no more values.
    #[error("dispatching a value: the worker is {1}")]
    Closed(V, CloseReason),
    /// The handle's key was retired, or is another producer's.
    #[error("dispatching a value: the handle's key is retired")]
    Retired(V),
    /// The key is new, and `max_keys` are in use already.
    #[error("dispatching a value: as many keys are known as the worker may hold")]
    TooManyKeys(V),
    /// `coalesce` panicked; the total is what it was before.
    #[error("dispatching a value: folding it panicked: {1}")]
    CoalescePanicked(V, Panicked),
}

impl Refusal {
    /// The refusal of one value.
    pub(super) fn of<V>(self, value: V) -> DispatchError<V> {
        match self {
            Self::Full => DispatchError::Full(value),
            Self::Closed(reason) => DispatchError::Closed(value, reason),
        }
    }
}

impl<V> DispatchError<V> {
    /// The value that was refused.
    pub fn into_value(self) -> V {
        match self {
            Self::Full(value)
            | Self::Closed(value, _)
            | Self::Retired(value)
            | Self::TooManyKeys(value)
            | Self::CoalescePanicked(value, _) => value,
        }
    }
}

/// Shows the kind alone, so that any value will do.
impl<V> fmt::Debug for DispatchError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_, reason) => write!(f, "Closed(.., {reason:?})"),
            Self::Retired(_) => f.write_str("Retired(..)"),
            Self::TooManyKeys(_) => f.write_str("TooManyKeys(..)"),
            Self::CoalescePanicked(_, panicked) => write!(f, "CoalescePanicked(.., {panicked:?})"),
        }
    }
}

/// As many keys are in use as the worker may hold, retired ones included that its consumer has not
/// passed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("resolving a key: as many keys are known as the worker may hold")]
pub struct TooManyKeys;

/// The handle's key was retired before, or is another producer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the handle's key is retired")]
pub struct Retired;

/// Stamps are unique among all producers of the process, until they wrap after four thousand
/// million keys.
static NEXT_STAMP: AtomicU32 = AtomicU32::new(1);

fn next_stamp() -> u32 {
    loop {
        let stamp = NEXT_STAMP.fetch_add(1, Relaxed);
        if stamp != 0 {
            return stamp;
        }
    }
}

/// The producing half of a keyed worker, whatever its cells do.
pub(super) struct KeyedProducer<K, C: Cell, S> {
    keys: HashMap<K, u32, S>,
    pub(super) writer: WriterEnd<K, C>,
    pub(super) ring: RingProducer<u32>,
    pub(super) conflated: u64,
    /// One producer at a time: it may move to another thread, not be shared.
    _not_sync: PhantomData<std::cell::Cell<()>>,
}

/// Whether a dispatch may wait.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patient {
    Yes,
    No,
}

impl<K, C: Cell, S> KeyedProducer<K, C, S> {
    pub(super) fn core(&self) -> &Arc<Core> {
        self.ring.core()
    }

    pub(super) fn fault(&self, error: Box<dyn Error + Send + Sync>) -> bool {
        self.core().fault(error)
    }

    pub(super) fn completion(&self) -> Completion {
        self.core().completion()
    }

    pub(super) fn queue(&self) -> WorkerQueue {
        WorkerQueue::new(self.core().clone())
    }

    #[inline(always)]
    pub(super) fn index_of(&self, handle: KeyHandle) -> Option<u32> {
        self.writer.holds(handle.index, handle.stamp).then_some(handle.index)
    }

    /// Whether a new key may become pending now.
    #[inline(always)]
    pub(super) fn has_room(&mut self) -> bool {
        self.ring.has_room()
    }

    /// Why a key without a cell is refused.
    #[cold]
    pub(super) fn no_room_for_key(&self, value: C::Value) -> DispatchError<C::Value> {
        match self.core().refuses() {
            Some(reason) => DispatchError::Closed(value, reason),
            None => DispatchError::TooManyKeys(value),
        }
    }

    /// Waits for a place, if the caller is patient.
    #[cold]
    pub(super) fn make_room(&mut self, patient: Patient) -> Result<(), Refusal> {
        // The consumer may have taken this very key since the ring was seen full; then its place is
        // free.
        if self.ring.has_room() {
            return Ok(());
        }
        if patient == Patient::No {
            return Err(Refusal::Full);
        }
        self.ring.wait_for_room().map_err(Refusal::from)
    }

    /// Counted before the superseded value is published, so that no snapshot shows more values leave
    /// than came.
    #[inline(always)]
    pub(super) fn count_conflated(&mut self) {
        self.conflated += 1;
        self.core().count_conflated(self.conflated);
    }

    /// Publishes the index of a key that has become pending; there is room.
    ///
    /// # Errors
    /// The worker closed before: the value in the cell is the producer's again.
    #[inline(always)]
    pub(super) fn push(&mut self, index: u32) -> Result<(), Refusal> {
        self.ring.push(index).map_err(|(_, reason)| Refusal::Closed(reason))
    }

    /// [`push`](Self::push) once there is room.
    #[cold]
    pub(super) fn push_later(&mut self, index: u32, patient: Patient) -> Result<(), Refusal> {
        self.make_room(patient)?;
        self.push(index)
    }
}

impl<K: Hash + Eq + Clone, C: Cell, S: BuildHasher> KeyedProducer<K, C, S> {
    /// The index of a key, a new one if need be.
    #[inline]
    pub(super) fn resolve<Q>(&mut self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        match self.keys.get(key) {
            Some(&index) => Some(index),
            None => self.add(key.to_owned()),
        }
    }

    pub(super) fn key<Q>(&mut self, key: &Q) -> Result<KeyHandle, TooManyKeys>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let index = self.resolve(key).ok_or(TooManyKeys)?;
        Ok(KeyHandle { index, stamp: self.writer.stamp(index) })
    }

    #[cold]
    fn add(&mut self, key: K) -> Option<u32> {
        let index = self.writer.add(key.clone(), next_stamp(), self.ring.core())?;
        self.keys.insert(key, index);
        Some(index)
    }

    pub(super) fn retire(&mut self, handle: KeyHandle) -> Result<(), Retired> {
        let index = self.index_of(handle).ok_or(Retired)?;
        let position = self.ring.position();
        let keys = &mut self.keys;
        self.writer.retire(index, position, |key| {
            keys.remove(key);
        });
        Ok(())
    }

    pub(super) fn known_keys(&self) -> usize {
        self.keys.len()
    }
}

impl<K, C: Cell, S> Drop for KeyedProducer<K, C, S> {
    fn drop(&mut self) {
        self.core().complete();
    }
}

/// A user's handler of either kind.
pub(super) trait KeyedHandler<K, V> {
    type User;
    type Error;
    fn handle(&mut self, key: &K, value: V) -> Result<(), Self::Error>;
    fn on_error(&mut self, error: WorkerError<Self::Error>);
    fn on_idle(&mut self);
    fn on_completed(&mut self, outcome: Outcome);
    fn user(&self) -> &Self::User;
    fn user_mut(&mut self) -> &mut Self::User;
    fn into_user(self) -> Self::User;
}

/// How many items ahead the consumer asks for a cell's state.
const STATE_AHEAD: usize = 6;
/// How many items ahead it asks for the value, which the state names.
const VALUE_AHEAD: usize = 3;
/// The first index that it asks ahead for. The cells of fewer keys stay in the caches, where a line
/// asked for early is a line taken from a producer that is about to write to it again.
const FAR: u32 = 16_384;

/// The consuming half of a keyed worker.
pub(super) struct KeyedStage<K, C: Cell, H> {
    pub(super) ring: RingConsumer<u32>,
    pub(super) reader: ReaderEnd<K, C>,
    pub(super) handler: H,
    pub(super) handled: u64,
}

impl<K, C: Cell, H: KeyedHandler<K, C::Value>> KeyedStage<K, C, H> {
    #[inline(always)]
    fn fetch_state(&self, ahead: usize) {
        if let Some(index) = self.ring.peek(ahead)
            && index >= FAR
        {
            self.reader.fetch_state(index);
        }
    }

    #[inline(always)]
    fn fetch_value(&self, ahead: usize) {
        if let Some(index) = self.ring.peek(ahead)
            && index >= FAR
        {
            self.reader.fetch_value(index);
        }
    }

    #[cold]
    fn report(&mut self, error: WorkerError<H::Error>) {
        self.ring.core().count_error();
        // A panic in the report of an error has nobody left to be reported to.
        let _ = catch(|| self.handler.on_error(error));
    }
}

impl<K, C: Cell, H: KeyedHandler<K, C::Value>> Stage for KeyedStage<K, C, H> {
    type Handler = H::User;

    #[inline(always)]
    fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.ring.sight()
    }

    #[inline(always)]
    fn handle(&mut self) {
        let Some(index) = self.ring.pop() else { return };
        let value = self.reader.take(index);
        self.ring.core().offer_room();
        if let Some(value) = value {
            let (reader, handler) = (&self.reader, &mut self.handler);
            let done = catch(|| reader.with_key(index, |key| handler.handle(key, value)));
            self.handled += 1;
            self.ring.core().count_handled(self.handled);
            match done {
                Ok(Some(Err(error))) => self.report(WorkerError::Handler(error)),
                Err(panicked) => self.report(WorkerError::Panicked(panicked)),
                Ok(_) => {}
            }
        }
        self.ring.core().pass(self.ring.position());
    }

    /// A run of items, whose cells, if they are far, are asked for a few items ahead.
    #[inline(always)]
    fn handle_some(&mut self, most: usize) -> usize {
        for ahead in 0..STATE_AHEAD {
            self.fetch_state(ahead);
        }
        for ahead in 0..VALUE_AHEAD {
            self.fetch_value(ahead);
        }
        let mut done = 0;
        while done < most && self.ring.peek(0).is_some() {
            if self.ring.core().asks_for_attention() == Attention::Cancelled {
                break;
            }
            self.fetch_state(STATE_AHEAD);
            self.fetch_value(VALUE_AHEAD);
            self.handle();
            done += 1;
        }
        done
    }

    fn discard(&mut self) {
        let Some(index) = self.ring.pop() else { return };
        if let Some(value) = self.reader.take(index) {
            let _ = catch(|| drop(value));
            self.ring.core().count_discarded();
        }
        self.ring.core().pass(self.ring.position());
    }

    fn idle(&mut self) {
        if let Err(panicked) = catch(|| self.handler.on_idle()) {
            self.report(WorkerError::Panicked(panicked));
        }
    }

    fn completed(&mut self, outcome: Outcome) {
        self.handler.on_completed(outcome);
    }

    fn handler(&self) -> &H::User {
        self.handler.user()
    }

    fn handler_mut(&mut self) -> &mut H::User {
        self.handler.user_mut()
    }

    fn into_handler(self) -> H::User {
        self.handler.into_user()
    }
}

/// What a keyed worker is made of.
pub(super) type Halves<K, C, H, S> = (KeyedProducer<K, C, S>, KeyedStage<K, C, H>);

/// The two halves of a fresh keyed worker.
pub(super) fn keyed<K, C: Cell, H, S>(
    core: &Arc<Core>,
    max_keys: u32,
    hasher: S,
    handler: H,
) -> Result<Halves<K, C, H, S>, CapacityError> {
    let (push, pop) = ring(core)?;
    let (writer, reader) = table(max_keys.min(MAX_KEYS));
    let producer = KeyedProducer {
        keys: HashMap::with_hasher(hasher),
        writer,
        ring: push,
        conflated: 0,
        _not_sync: PhantomData,
    };
    Ok((producer, KeyedStage { ring: pop, reader, handler, handled: 0 }))
}
