//! The peers that are written by hand otherwise: a concurrent map, and a channel of the keys that
//! became dirty.

use super::load::{Load, Value};
use super::ours::Seen;
use super::run::{Consume, Produce};
use dashmap::DashMap;
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// A bounded queue of dirty keys.
pub trait Queue {
    /// Its sending side.
    type Sender<T: Send>: Send;
    /// Its receiving side.
    type Receiver<T: Send>: Send;
    /// Both sides.
    fn new<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
    /// Sends; waits while the queue is full.
    fn send<T: Send>(sender: &Self::Sender<T>, item: T);
    /// Receives without waiting.
    fn receive<T: Send>(receiver: &mut Self::Receiver<T>) -> Option<T>;
}

/// tokio's bounded mpsc.
pub struct Tokio;

impl Queue for Tokio {
    type Sender<T: Send> = tokio::sync::mpsc::Sender<T>;
    type Receiver<T: Send> = tokio::sync::mpsc::Receiver<T>;

    fn new<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        tokio::sync::mpsc::channel(capacity)
    }

    fn send<T: Send>(sender: &Self::Sender<T>, item: T) {
        sender
            .try_send(item)
            .or_else(|full| sender.blocking_send(full.into_inner()))
            .unwrap_or_else(|_| panic!("a closed channel"));
    }

    fn receive<T: Send>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok()
    }
}

/// crossbeam's bounded channel.
pub struct Crossbeam;

impl Queue for Crossbeam {
    type Sender<T: Send> = crossbeam_channel::Sender<T>;
    type Receiver<T: Send> = crossbeam_channel::Receiver<T>;

    fn new<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        crossbeam_channel::bounded(capacity)
    }

    fn send<T: Send>(sender: &Self::Sender<T>, item: T) {
        sender.send(item).unwrap_or_else(|_| panic!("a closed channel"));
    }

    fn receive<T: Send>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok()
    }
}

/// The hasher of `DashMap::new()`.
pub type AsItComes = std::hash::RandomState;
/// The hasher of our own key map.
pub type Fast = foldhash::fast::RandomState;

/// What is done with a value and the map.
pub trait Rule: Send {
    /// Puts a value in; whether its key was not there.
    fn put<S: BuildHasher + Clone>(map: &DashMap<u32, Value, S>, key: u32, value: Value) -> bool;
}

/// Pending values in a concurrent map, dirty keys in a channel.
pub struct MapProducer<R, Q: Queue, S> {
    pending: Arc<DashMap<u32, Value, S>>,
    sender: Q::Sender<u32>,
    rule: PhantomData<R>,
}

/// Its other side.
pub struct MapConsumer<Q: Queue, S, C> {
    pending: Arc<DashMap<u32, Value, S>>,
    receiver: Q::Receiver<u32>,
    seen: C,
}

impl<R: Rule, Q: Queue, S: BuildHasher + Clone> Produce for MapProducer<R, Q, S> {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let key = load.key(number);
            // Sent out of the entry, which holds the consumer up.
            if R::put(&self.pending, key, Value::new(number)) {
                Q::send(&self.sender, key);
            }
        }
    }
}

impl<Q, S, C> Consume for MapConsumer<Q, S, C>
where
    Q: Queue,
    S: BuildHasher + Clone + Send + Sync,
    C: Seen + Send,
{
    fn drain(&mut self, most: usize) -> usize {
        let mut drained = 0;
        while drained < most
            && let Some(key) = Q::receive(&mut self.receiver)
        {
            // Out of the map, so that the next value makes the key dirty again.
            if let Some((key, value)) = self.pending.remove(&key) {
                self.seen.see(key, &value);
            }
            drained += 1;
        }
        drained
    }

    fn check(&mut self, numbers: Range<u64>, load: &Load) {
        self.seen.check(numbers, load);
    }
}

/// Both sides of a peer.
pub fn dashmap<R: Rule, Q: Queue, S, C: Seen>(
    load: &Load,
) -> (MapProducer<R, Q, S>, MapConsumer<Q, S, C>)
where
    S: BuildHasher + Clone + Default,
{
    let pending = Arc::new(DashMap::with_hasher(S::default()));
    let (sender, receiver) = Q::new(super::capacity(load.keys));
    let producer = MapProducer { pending: pending.clone(), sender, rule: PhantomData };
    (producer, MapConsumer { pending, receiver, seen: C::new(load.keys) })
}
