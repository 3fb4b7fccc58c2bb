//! Our own side of both benches: one worker in its four ways to be given values.

use super::Case;
use super::load::{Load, Value};
use super::run::{Consume, Produce};
use std::ops::Range;
use tidegate::worker::KeyHandle;

/// What a consumer got.
pub trait Seen {
    /// Nothing yet.
    fn new(keys: u32) -> Self;
    /// Takes note of a value that was delivered.
    fn see(&mut self, key: u32, value: &Value);
    /// Checks what has come, once all of `numbers` was dispatched and drained.
    fn check(&mut self, numbers: Range<u64>, load: &Load);
}

/// How values are given to our worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// One at a time, hashed every time.
    Key,
    /// One at a time, by a handle that was resolved before.
    Handle,
    /// Many at once by key, whose places in the map are asked for ahead.
    BatchByKey,
    /// Many at once by handle, whose cells are asked for ahead.
    Batch,
}

impl Way {
    /// The way that a case is about, and the other one, to be shown beside it, with its name.
    ///
    /// In batches once there is something to be asked for ahead: the cells of 1,000 keys, which
    /// travel, and the places of 10,000 keys in the map, which do not.
    pub fn of(case: &Case) -> (Self, Self, &'static str) {
        let (one, many, batch_from) = if case.by_handle {
            (Self::Handle, Self::Batch, 1_000)
        } else {
            (Self::Key, Self::BatchByKey, 10_000)
        };
        if case.keys >= batch_from {
            (many, one, "our-single-dispatch")
        } else {
            (one, many, "our-batch-dispatch")
        }
    }
}

/// The producing half of a worker, whichever.
pub trait Dispatch {
    /// The handle of a key.
    fn handle(&mut self, key: u32) -> KeyHandle;
    /// By key.
    fn by_key(&mut self, key: u32, value: Value);
    /// By handle.
    fn by_handle(&mut self, handle: KeyHandle, value: Value);
    /// Many by key.
    fn all_by_key(&mut self, items: impl Iterator<Item = (u32, Value)>);
    /// Many by handle.
    fn all(&mut self, items: impl Iterator<Item = (KeyHandle, Value)>);
}

/// Our worker, given its values in one way.
pub struct OurProducer<D> {
    producer: D,
    /// In the order of the sequence.
    handles: Vec<KeyHandle>,
    way: Way,
}

impl<D: Dispatch> OurProducer<D> {
    /// Resolves every key.
    pub fn new(mut producer: D, load: &Load, way: Way) -> Self {
        let handles: Vec<_> = (0..load.keys).map(|key| producer.handle(key)).collect();
        Self { producer, handles: load.in_sequence(&handles), way }
    }
}

impl<D: Dispatch> Produce for OurProducer<D> {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        let Self { producer, handles, way } = self;
        let handle = |number: u64| handles[number as usize & (handles.len() - 1)];
        match way {
            Way::Key => {
                for number in numbers {
                    producer.by_key(load.key(number), Value::new(number));
                }
            }
            Way::Handle => {
                for number in numbers {
                    producer.by_handle(handle(number), Value::new(number));
                }
            }
            Way::BatchByKey => {
                producer.all_by_key(numbers.map(|number| (load.key(number), Value::new(number))));
            }
            Way::Batch => {
                producer.all(numbers.map(|number| (handle(number), Value::new(number))));
            }
        }
    }
}

/// Nobody consumes beside the control: it is read after the run.
pub struct Nobody;

impl Consume for Nobody {
    fn drain(&mut self, _most: usize) -> usize {
        0
    }

    fn check(&mut self, _numbers: Range<u64>, _load: &Load) {}
}
