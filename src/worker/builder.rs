//! How a worker is configured.

use super::batch::Meter;
use super::lifecycle::Core;
use super::ring::{Capacity, CapacityError};
use super::sync::Arc;
use super::wait::WaitStrategy;
use std::io;
use std::marker::PhantomData;

/// The settings of a worker to be. Made by `builder()` of the worker's type.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is started"]
pub struct Builder<Kind, S = foldhash::fast::RandomState> {
    capacity: usize,
    pub(super) max_keys: u32,
    pub(super) name: String,
    pub(super) hasher: S,
    start_position: usize,
    pub(super) wait: WaitStrategy,
    _kind: PhantomData<fn() -> Kind>,
}

/// Why a worker could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The capacity was refused.
    #[error("starting a worker: {0}")]
    Capacity(#[from] CapacityError),
    /// `max_keys` was 0: no key could ever be dispatched.
    #[error("starting a worker: it needs room for at least 1 key")]
    NoKeys,
    /// A task was to be started outside of a tokio runtime.
    #[error("starting a worker's task: this thread is in no tokio runtime")]
    NoRuntime,
    /// The consumer's thread could not be made.
    #[error("starting a worker's thread: {0}")]
    Spawn(#[source] io::Error),
}

impl<Kind> Builder<Kind> {
    pub(super) fn new(name: &str) -> Self {
        Self {
            capacity: 1024,
            max_keys: 1 << 16,
            name: name.to_owned(),
            hasher: foldhash::fast::RandomState::default(),
            start_position: 0,
            wait: WaitStrategy::default(),
            _kind: PhantomData,
        }
    }
}

impl<Kind, S> Builder<Kind, S> {
    /// How much may wait to be handled; rounded up to a power of two. 1,024 unless set.
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// The name of the consumer's thread.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// What both sides do while they have nothing to do: a consumer without items, a producer that
    /// waits for room. [`WaitStrategy::SpinThenPark`] unless set.
    pub fn wait(mut self, strategy: WaitStrategy) -> Self {
        self.wait = strategy;
        self
    }

    /// Positions start here: lets tests reach their wrap.
    #[doc(hidden)]
    pub fn start_position(mut self, position: usize) -> Self {
        self.start_position = position;
        self
    }

    pub(super) fn core(&self) -> Result<Arc<Core>, StartError> {
        if self.max_keys == 0 {
            return Err(StartError::NoKeys);
        }
        Ok(Core::new(Capacity::new(self.capacity)?, self.start_position, self.wait))
    }

    /// The core of a task that handles items in runs, as [`Meter`] has it.
    pub(super) fn core_of_runs(&self) -> Result<(Arc<Core>, Meter), StartError> {
        let capacity = Capacity::new(self.capacity)?;
        let meter = Meter::new(capacity.get());
        let good_room = meter.good_room();
        Ok((Core::with_good_room(capacity, self.start_position, self.wait, good_room), meter))
    }
}

/// A worker that has keys.
pub trait KeyedKind: sealed::Sealed {}

pub(super) mod sealed {
    pub trait Sealed {}
}

impl<Kind: KeyedKind, S> Builder<Kind, S> {
    /// How many keys may be known at once, retired ones included until the consumer has passed
    /// them; 65,536 unless set. Memory is taken as keys come.
    pub fn max_keys(mut self, max_keys: u32) -> Self {
        self.max_keys = max_keys;
        self
    }

    /// Hashes keys with `hasher` instead of foldhash. For small integers `rustc_hash` is quicker;
    /// never for keys that come from outside.
    pub fn hasher<T>(self, hasher: T) -> Builder<Kind, T> {
        Builder {
            capacity: self.capacity,
            max_keys: self.max_keys,
            name: self.name,
            hasher,
            start_position: self.start_position,
            wait: self.wait,
            _kind: PhantomData,
        }
    }
}
