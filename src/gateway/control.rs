//! Limits in force, and who is subject to them: the operator's hand on the gateway.
//!
//! Every change goes through one lock, so changes have an order and each has a generation number.
//! A change is checked before anything is touched and cannot fail after: all or nothing. Capacity
//! is set on the subscribers' limiters by the changing thread itself, so when the call returns no
//! batch starts under an old capacity; the shards are woken to resume, and to tell the clients.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use dashmap::DashMap;

use super::close::Close;
use super::port::Port;
use super::protocol::Confirm;
use crate::limiter::DynamicConcurrencyLimiter;

const MAX_CAPACITY: usize = DynamicConcurrencyLimiter::MAX_CAPACITY;

/// Everything a running gateway is limited by.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Counts every change since the start.
    pub generation: u64,
    /// Unconfirmed batches in flight a subscriber may have; 0 pauses.
    pub capacity: usize,
    /// Batches a second a subscriber may get; 0 for no ceiling.
    pub max_hz: f64,
    /// Subscribers connected at a time.
    pub max_subscribers: usize,
    /// How batches are confirmed.
    pub confirm: Confirm,
    /// How long a subscriber may owe a confirmation without progress.
    pub stall_timeout: Duration,
    /// How long a silent connection is left alone before it is pinged.
    pub heartbeat: Duration,
    /// Longest that a busy shard gathers changes before it sweeps; an idle one sweeps at once.
    pub pace: Duration,
    /// Instruments one subscriber may have.
    pub max_instruments: usize,
    /// Longest batch, in bytes of its text.
    pub max_batch_bytes: usize,
    /// How long what is in flight to a subscriber may take to arrive; zero for no bound.
    pub max_in_flight: Duration,
    /// Longest message of a client, in bytes.
    pub max_message_bytes: usize,
    /// Operations a second a client may send.
    pub max_ops_per_s: u32,
    /// How long a handshake may take.
    pub handshake_timeout: Duration,
    /// Longest request head of a handshake, in bytes.
    pub max_header_bytes: usize,
    /// Origins that may connect, exactly as browsers send them; empty for any.
    pub allowed_origins: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            generation: 1,
            capacity: 8,
            max_hz: 0.0,
            max_subscribers: 1000,
            confirm: Confirm::Pong,
            stall_timeout: Duration::from_secs(30),
            heartbeat: Duration::from_secs(20),
            pace: Duration::from_millis(3),
            max_instruments: 10_000,
            max_batch_bytes: 65_536,
            max_in_flight: Duration::ZERO,
            max_message_bytes: 65_536,
            max_ops_per_s: 100,
            handshake_timeout: Duration::from_secs(10),
            max_header_bytes: 16_384,
            allowed_origins: Vec::new(),
        }
    }
}

/// A change asked for at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Retune {
    /// Only this subscriber; all if `None`.
    pub subscriber: Option<u64>,
    /// New capacity.
    pub capacity: Option<usize>,
    /// New ceiling of the rate.
    pub max_hz: Option<f64>,
    /// New bound of subscribers; only for all.
    pub max_subscribers: Option<usize>,
}

/// Why a change was refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum RetuneError {
    /// Nothing to change.
    #[error("nothing to change: give capacity, max_hz or max_subscribers")]
    Empty,
    /// No subscriber has this id.
    #[error("subscriber: no subscriber has the id {0}")]
    UnknownSubscriber(u64),
    /// Admission is not a subscriber's own.
    #[error("max_subscribers: is for all, not for one subscriber")]
    NotOfOne,
    /// More than the limiter can hold.
    #[error("{key}: {value} is above the most, {MAX_CAPACITY}")]
    TooMuch {
        /// The key.
        key: &'static str,
        /// The value asked for.
        value: usize,
    },
    /// Not a rate.
    #[error("max_hz: batches a second, 0.001 to 1000000, or 0 for no ceiling")]
    Rate,
}

/// Whether a ceiling is one that can be held.
#[must_use]
pub fn is_rate(hz: f64) -> bool {
    hz == 0.0 || (0.001..=1_000_000.0).contains(&hz)
}

/// One subscriber, as the operator sees it. The shard that owns the connection shares it.
#[derive(Debug)]
pub struct Subscriber {
    id: u64,
    peer: SocketAddr,
    shard: usize,
    limiter: DynamicConcurrencyLimiter,
    /// The operator's ceiling for it, as the bits of an `f64`.
    ceiling_hz: AtomicU64,
    /// The generation of the last change for it, which may not be in force yet.
    changed_in: AtomicU64,
    closed_for: AtomicU8,
}

impl Subscriber {
    /// Its number, unique for the life of the process.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where it connects from.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The shard that owns its connection.
    #[must_use]
    pub fn shard(&self) -> usize {
        self.shard
    }

    /// Caps its unconfirmed batches.
    #[must_use]
    pub fn limiter(&self) -> &DynamicConcurrencyLimiter {
        &self.limiter
    }

    /// The operator's ceiling for its rate.
    #[must_use]
    pub fn ceiling_hz(&self) -> f64 {
        f64::from_bits(self.ceiling_hz.load(Ordering::Acquire))
    }

    /// The generation of the last change for it; one above that in force is about to be.
    pub(crate) fn changed_in(&self) -> u64 {
        self.changed_in.load(Ordering::Acquire)
    }

    fn set(&self, generation: u64, capacity: Option<usize>, max_hz: Option<f64>) {
        if let Some(capacity) = capacity {
            // Checked against the limiter's bound before anything was touched.
            let set = self.limiter.set_capacity(capacity);
            debug_assert!(set.is_ok(), "the capacity was checked");
        }
        if let Some(max_hz) = max_hz {
            self.ceiling_hz.store(max_hz.to_bits(), Ordering::Release);
        }
        self.changed_in.store(generation, Ordering::Release);
    }

    pub(crate) fn closed_for(&self, close: Close) {
        #[expect(clippy::cast_possible_truncation, reason = "a handful of reasons")]
        self.closed_for.store(close.index() as u8 + 1, Ordering::Relaxed);
    }

    /// Why the gateway closed it, if it did.
    pub(crate) fn close_reason(&self) -> Option<Close> {
        let index = usize::from(self.closed_for.load(Ordering::Relaxed)).checked_sub(1)?;
        Close::ALL.get(index).copied()
    }
}

/// What was in force for each subscriber at one moment.
#[derive(Clone, Debug, Default)]
pub struct Held(HashMap<u64, (usize, f64)>);

/// Limits in force and the subscribers under them.
pub struct Control {
    /// Held while limits change and while a subscriber joins, so that none joins between.
    changing: Mutex<()>,
    limits: ArcSwap<Limits>,
    admission: Arc<DynamicConcurrencyLimiter>,
    subscribers: DashMap<u64, Arc<Subscriber>>,
    next_id: AtomicU64,
    ports: Arc<[Port]>,
}

impl Control {
    /// Starts with the given limits, of which the capacities have been checked.
    pub(crate) fn new(limits: Limits, ports: Arc<[Port]>) -> Self {
        let most = limits.max_subscribers.min(MAX_CAPACITY);
        Self {
            changing: Mutex::new(()),
            admission: Arc::new(limiter(most)),
            limits: ArcSwap::from_pointee(limits),
            subscribers: DashMap::new(),
            next_id: AtomicU64::new(1),
            ports,
        }
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> Arc<Limits> {
        self.limits.load_full()
    }

    /// Caps the number of subscribers.
    #[must_use]
    pub fn admission(&self) -> &Arc<DynamicConcurrencyLimiter> {
        &self.admission
    }

    /// How many subscribers there are.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.subscribers.len()
    }

    /// The subscriber of an id, if it is connected.
    #[must_use]
    pub fn subscriber(&self, id: u64) -> Option<Arc<Subscriber>> {
        self.subscribers.get(&id).map(|entry| entry.value().clone())
    }

    /// Unconfirmed batches of all subscribers. O(subscribers).
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.subscribers.iter().map(|entry| entry.value().limiter.active()).sum()
    }

    /// Changes capacity, rate or admission at run time, for all or for one. For all means all: a
    /// value set for one subscriber before gives way.
    ///
    /// # Errors
    ///
    /// [`RetuneError`]; nothing has changed then.
    pub fn retune(&self, change: Retune) -> Result<Arc<Limits>, RetuneError> {
        let Retune { subscriber, capacity, max_hz, max_subscribers } = change;
        if capacity.is_none() && max_hz.is_none() && max_subscribers.is_none() {
            return Err(RetuneError::Empty);
        }
        for (key, value) in [("capacity", capacity), ("max_subscribers", max_subscribers)] {
            if let Some(value) = value.filter(|&value| value > MAX_CAPACITY) {
                return Err(RetuneError::TooMuch { key, value });
            }
        }
        if max_hz.is_some_and(|hz| !is_rate(hz)) {
            return Err(RetuneError::Rate);
        }
        if let Some(id) = subscriber {
            if max_subscribers.is_some() {
                return Err(RetuneError::NotOfOne);
            }
            let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
            let one = self.subscribers.get(&id).map(|entry| entry.value().clone());
            let one = one.ok_or(RetuneError::UnknownSubscriber(id))?;
            let limits = Limits::clone(&self.limits.load());
            one.set(limits.generation + 1, capacity, max_hz);
            let limits = self.publish(limits);
            drop(changing);
            if let Some(port) = self.ports.get(one.shard) {
                port.wake();
            }
            return Ok(limits);
        }
        Ok(self.change(|limits| {
            limits.capacity = capacity.unwrap_or(limits.capacity);
            limits.max_hz = max_hz.unwrap_or(limits.max_hz);
            limits.max_subscribers = max_subscribers.unwrap_or(limits.max_subscribers);
            (capacity.is_some(), max_hz.is_some())
        }))
    }

    /// Changes limits by `edit`, which answers whether capacity and rate are to be set on every
    /// subscriber (values set for one give way then). The values have been checked before.
    pub fn change(&self, edit: impl FnOnce(&mut Limits) -> (bool, bool)) -> Arc<Limits> {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut limits = Limits::clone(&self.limits.load());
        let set = edit(&mut limits);
        let (capacity, max_hz) = (set.0.then_some(limits.capacity), set.1.then_some(limits.max_hz));
        self.apply(changing, limits, |_| (capacity, max_hz))
    }

    /// What is in force for each subscriber, to be put back by [`restore`](Self::restore).
    #[must_use]
    pub fn held(&self) -> Held {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let one = |s: &Arc<Subscriber>| (s.id, (s.limiter.capacity(), s.ceiling_hz()));
        Held(self.subscribers.iter().map(|entry| one(entry.value())).collect())
    }

    /// Puts back limits, and what was in force for each subscriber then. This, too, is a change
    /// with a generation of its own.
    pub fn restore(&self, before: &Limits, held: &Held) {
        let changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = Limits { generation: self.limits.load().generation, ..before.clone() };
        let of_all = (limits.capacity, limits.max_hz);
        self.apply(changing, limits, |subscriber| {
            let (capacity, max_hz) = held.0.get(&subscriber.id).copied().unwrap_or(of_all);
            (Some(capacity), Some(max_hz))
        });
    }

    /// Sets what is in force for everybody, then publishes the limits. In this order, because a
    /// shard looks at its subscribers once a generation: whoever sees the generation must see every
    /// value that was set under it. A shard that looks in between, on account of the generation
    /// before, finds a change that is not in force yet, and comes back for it.
    fn apply(
        &self,
        changing: MutexGuard<'_, ()>,
        limits: Limits,
        of: impl Fn(&Subscriber) -> (Option<usize>, Option<f64>),
    ) -> Arc<Limits> {
        let admitted = self.admission.set_capacity(limits.max_subscribers.min(MAX_CAPACITY));
        debug_assert!(admitted.is_ok(), "the bound was checked");
        for entry in &self.subscribers {
            let (capacity, max_hz) = of(entry.value());
            entry.value().set(limits.generation + 1, capacity, max_hz);
        }
        let limits = self.publish(limits);
        drop(changing);
        for port in self.ports.iter() {
            port.wake();
        }
        limits
    }

    fn publish(&self, mut limits: Limits) -> Arc<Limits> {
        limits.generation += 1;
        let limits = Arc::new(limits);
        self.limits.store(limits.clone());
        limits
    }

    /// A new subscriber under the limits in force.
    pub(crate) fn join(&self, peer: SocketAddr, shard: usize) -> Arc<Subscriber> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = self.limits.load();
        let subscriber = Arc::new(Subscriber {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            peer,
            shard,
            limiter: limiter(limits.capacity.min(MAX_CAPACITY)),
            ceiling_hz: AtomicU64::new(limits.max_hz.to_bits()),
            changed_in: AtomicU64::new(0),
            closed_for: AtomicU8::new(0),
        });
        self.subscribers.insert(subscriber.id, subscriber.clone());
        subscriber
    }

    /// A subscriber is gone.
    pub(crate) fn leave(&self, subscriber: &Subscriber) {
        self.subscribers.remove(&subscriber.id);
    }

    /// Where a subscriber's connection lives.
    pub(crate) fn shard_of(&self, id: u64) -> Option<usize> {
        self.subscribers.get(&id).map(|entry| entry.value().shard)
    }
}

/// A limiter of a capacity that has been cut to what one can hold.
fn limiter(capacity: usize) -> DynamicConcurrencyLimiter {
    let limiter = DynamicConcurrencyLimiter::default();
    let set = limiter.set_capacity(capacity);
    debug_assert!(set.is_ok(), "the capacity was cut to the most");
    limiter
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("limits", &self.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::gateway::Parts;
    use crate::gateway::stepped::{ClientModel, Stepped};
    use crate::ingest::Feeds;
    use crate::market::{Accounts, Instruments, VolumeKeys};

    /// The limits that the client has been told, by generation and capacity.
    fn told(gateway: &mut Stepped) -> Vec<(u64, u64)> {
        gateway.settle();
        let mut told = Vec::new();
        gateway.take_delivered(0, |frame| {
            let message = serde_json::from_slice::<serde_json::Value>(frame.payload());
            if let Some(message) = message.ok().filter(|message| message["type"] == "limits") {
                let capacity = message["effective"]["capacity"].as_u64().unwrap();
                told.push((message["generation"].as_u64().unwrap(), capacity));
            }
        });
        told
    }

    #[test]
    fn a_look_between_the_values_of_a_change_and_its_generation_tells_it_once_it_is_in_force() {
        let clock = Clock::manual();
        let parts = Parts {
            instruments: Arc::new(Instruments::new(10)),
            accounts: Arc::new(Accounts::new(1)),
            volume_keys: Arc::new(VolumeKeys::new(1)),
            feeds: Arc::new(Feeds::new([], clock.wall())),
            clock,
        };
        let mut gateway = Stepped::new(parts, Limits::default());
        gateway.connect(&ClientModel::default()).unwrap();
        assert_eq!(told(&mut gateway), []);
        let before = gateway.control().limits();
        gateway.control().subscriber(1).unwrap().set(before.generation + 2, Some(6), None);
        gateway.control().publish(Limits::clone(&before));
        assert_eq!(told(&mut gateway), []);
        gateway
            .control()
            .publish(Limits { generation: before.generation + 1, ..Limits::clone(&before) });
        assert_eq!(told(&mut gateway), [(before.generation + 2, 6)]);
        assert_eq!(told(&mut gateway), []);
    }
}
