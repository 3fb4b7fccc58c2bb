//! Random operations on stepped keyed workers against a plain model.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use tidegate::worker::{
    CoalescingHandler, CoalescingProducer, CoalescingSpWorker, ConflationHandler,
    ConflationProducer, ConflationSpWorker, Counters, DispatchError, KeyHandle, KeyedBatchError,
    Outcome, Stepper, WorkerError,
};

/// Gives every key the same hash.
#[derive(Default)]
struct OneHash;

impl Hasher for OneHash {
    fn finish(&self) -> u64 {
        42
    }

    fn write(&mut self, _bytes: &[u8]) {}
}

type SameHash = BuildHasherDefault<OneHash>;

/// Writes down what it is given.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(u8, u64)>>>);

impl Log {
    fn take(&self) -> Vec<(u8, u64)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl ConflationHandler<u8, u64> for Log {
    type Error = std::convert::Infallible;

    fn handle(&mut self, key: &u8, value: u64) -> Result<(), Self::Error> {
        self.0.lock().unwrap().push((*key, value));
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

impl CoalescingHandler<u8, u64> for Log {
    type Error = std::convert::Infallible;

    fn coalesce(current: &mut u64, incoming: u64) {
        *current += incoming;
    }

    fn handle(&mut self, key: &u8, total: u64) -> Result<(), Self::Error> {
        self.0.lock().unwrap().push((*key, total));
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

/// What the model needs of either worker.
trait Producer {
    /// The answer: what came back superseded (conflation), or nothing.
    fn offer(&mut self, key: u8, value: u64) -> Result<Option<u64>, DispatchError<u64>>;
    fn offer_at(&mut self, at: KeyHandle, value: u64) -> Result<Option<u64>, DispatchError<u64>>;
    fn offer_all(
        &mut self,
        items: &mut dyn Iterator<Item = (KeyHandle, u64)>,
    ) -> Result<u64, KeyedBatchError<u64>>;
    fn offer_all_by_key(
        &mut self,
        items: &mut dyn Iterator<Item = (u8, u64)>,
    ) -> Result<u64, KeyedBatchError<u64, u8>>;
    fn handle(&mut self, key: u8) -> Option<KeyHandle>;
    fn forget(&mut self, at: KeyHandle) -> bool;
    fn known(&self) -> usize;
    /// What becomes of a pending value when another comes.
    fn merge(pending: u64, incoming: u64) -> u64;
    const HANDS_BACK: bool;
}

impl Producer for ConflationProducer<u8, u64, SameHash> {
    fn offer(&mut self, key: u8, value: u64) -> Result<Option<u64>, DispatchError<u64>> {
        self.try_dispatch(&key, value)
    }

    fn offer_at(&mut self, at: KeyHandle, value: u64) -> Result<Option<u64>, DispatchError<u64>> {
        self.try_dispatch_at(at, value)
    }

    fn offer_all(
        &mut self,
        items: &mut dyn Iterator<Item = (KeyHandle, u64)>,
    ) -> Result<u64, KeyedBatchError<u64>> {
        self.dispatch_all(items)
    }

    fn offer_all_by_key(
        &mut self,
        items: &mut dyn Iterator<Item = (u8, u64)>,
    ) -> Result<u64, KeyedBatchError<u64, u8>> {
        self.dispatch_all_by_key(items)
    }

    fn handle(&mut self, key: u8) -> Option<KeyHandle> {
        self.key(&key).ok()
    }

    fn forget(&mut self, at: KeyHandle) -> bool {
        self.retire(at).is_ok()
    }

    fn known(&self) -> usize {
        self.known_keys()
    }

    fn merge(_pending: u64, incoming: u64) -> u64 {
        incoming
    }

    const HANDS_BACK: bool = true;
}

impl Producer for CoalescingProducer<u8, u64, Log, SameHash> {
    fn offer(&mut self, key: u8, value: u64) -> Result<Option<u64>, DispatchError<u64>> {
        self.try_dispatch(&key, value).map(|()| None)
    }

    fn offer_at(&mut self, at: KeyHandle, value: u64) -> Result<Option<u64>, DispatchError<u64>> {
        self.try_dispatch_at(at, value).map(|()| None)
    }

    fn offer_all(
        &mut self,
        items: &mut dyn Iterator<Item = (KeyHandle, u64)>,
    ) -> Result<u64, KeyedBatchError<u64>> {
        self.dispatch_all(items)
    }

    fn offer_all_by_key(
        &mut self,
        items: &mut dyn Iterator<Item = (u8, u64)>,
    ) -> Result<u64, KeyedBatchError<u64, u8>> {
        self.dispatch_all_by_key(items)
    }

    fn handle(&mut self, key: u8) -> Option<KeyHandle> {
        self.key(&key).ok()
    }

    fn forget(&mut self, at: KeyHandle) -> bool {
        self.retire(at).is_ok()
    }

    fn known(&self) -> usize {
        self.known_keys()
    }

    fn merge(pending: u64, incoming: u64) -> u64 {
        pending + incoming
    }

    const HANDS_BACK: bool = false;
}

/// The worker as anybody would write it down: a queue of pending uses of keys, and their values.
struct Model {
    capacity: usize,
    max_keys: usize,
    /// Each use of a key, from its first dispatch to its retirement, has a number.
    uses: HashMap<u8, usize>,
    next_use: usize,
    pending: VecDeque<(usize, u8)>,
    values: HashMap<usize, u64>,
    pushed: usize,
    popped: usize,
    /// Retired cells wait for the position at which they were retired.
    retired: VecDeque<usize>,
    counters: Counters,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Taken(Option<u64>),
    Full,
    TooManyKeys,
    Retired,
}

impl From<Result<Option<u64>, DispatchError<u64>>> for Answer {
    fn from(result: Result<Option<u64>, DispatchError<u64>>) -> Self {
        match result {
            Ok(superseded) => Self::Taken(superseded),
            Err(error) => Self::of(&error),
        }
    }
}

impl Answer {
    fn of<V>(error: &DispatchError<V>) -> Self {
        match error {
            DispatchError::Full(_) => Self::Full,
            DispatchError::TooManyKeys(_) => Self::TooManyKeys,
            DispatchError::Retired(_) => Self::Retired,
            other => panic!("{other:?}"),
        }
    }
}

impl Model {
    fn new(capacity: usize, max_keys: usize) -> Self {
        Self {
            capacity: capacity.next_power_of_two(),
            max_keys,
            uses: HashMap::new(),
            next_use: 0,
            pending: VecDeque::new(),
            values: HashMap::new(),
            pushed: 0,
            popped: 0,
            retired: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    fn resolve(&mut self, key: u8) -> Option<usize> {
        if let Some(known) = self.uses.get(&key) {
            return Some(*known);
        }
        if self.retired.front().is_some_and(|position| *position <= self.popped) {
            self.retired.pop_front();
        } else if self.uses.len() + self.retired.len() >= self.max_keys {
            return None;
        }
        self.next_use += 1;
        self.uses.insert(key, self.next_use);
        Some(self.next_use)
    }

    fn offer<P: Producer>(&mut self, key: u8, value: u64) -> Answer {
        match self.resolve(key) {
            Some(number) => self.offer_to::<P>(number, key, value),
            None => Answer::TooManyKeys,
        }
    }

    fn offer_to<P: Producer>(&mut self, number: usize, key: u8, value: u64) -> Answer {
        if let Some(pending) = self.values.get_mut(&number) {
            let former = std::mem::replace(pending, P::merge(*pending, value));
            self.counters.dispatched += 1;
            self.counters.conflated += 1;
            return Answer::Taken(P::HANDS_BACK.then_some(former));
        }
        if self.pending.len() == self.capacity {
            return Answer::Full;
        }
        self.values.insert(number, value);
        self.pending.push_back((number, key));
        self.pushed += 1;
        self.counters.dispatched += 1;
        Answer::Taken(None)
    }

    fn step(&mut self, most: usize) -> Vec<(u8, u64)> {
        let count = most.min(self.pending.len());
        self.popped += count;
        self.counters.handled += count as u64;
        let taken = self.pending.drain(..count);
        taken.map(|(number, key)| (key, self.values.remove(&number).unwrap())).collect()
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn run<P: Producer>(
    capacity: usize,
    max_keys: usize,
    seed: u64,
    mut producer: P,
    mut stepper: Stepper<Log>,
    log: &Log,
) {
    let mut model = Model::new(capacity, max_keys);
    let mut random = Random(seed);
    // Every handle ever given out, with the use of the key that it stands for.
    let handles: Rc<RefCell<Vec<(KeyHandle, usize, u8)>>> = Rc::default();
    for number in 0..4_000_u64 {
        let key = random.below(12) as u8;
        match random.below(100) {
            0..40 => {
                let got = Answer::from(producer.offer(key, number));
                assert_eq!(got, model.offer::<P>(key, number), "offer {number} to {key}");
            }
            40..50 => {
                let handle = producer.handle(key);
                let number = model.resolve(key);
                assert_eq!(handle.is_some(), number.is_some());
                if let (Some(handle), Some(number)) = (handle, number) {
                    handles.borrow_mut().push((handle, number, key));
                }
            }
            50..73 => {
                let count = handles.borrow().len() as u64;
                if count > 0 {
                    let at = random.below(count) as usize;
                    let (handle, usage, key) = handles.borrow()[at];
                    let expected = if model.uses.get(&key) == Some(&usage) {
                        model.offer_to::<P>(usage, key, number)
                    } else {
                        Answer::Retired
                    };
                    assert_eq!(Answer::from(producer.offer_at(handle, number)), expected);
                }
            }
            73..76 => {
                let known = handles.borrow().clone();
                // The stepping thread is known from here on: a full ring is an error on it.
                assert_eq!(stepper.step(0), 0);
                let count = if known.is_empty() { 0 } else { random.below(60) };
                let batch: Vec<_> = (0..count)
                    .map(|step| {
                        // Mostly handles of the last days, so that not every batch ends early.
                        let back = random.below(known.len().min(6) as u64) as usize;
                        (known[known.len() - 1 - back], number * 100 + step)
                    })
                    .collect();
                let mut items = batch.iter().map(|((handle, ..), value)| (*handle, *value));
                let answer = producer.offer_all(&mut items);
                let left = items.map(|(_, value)| value).collect();
                compare_batch(answer, left, &batch, |(_, usage, key), value| {
                    if model.uses.get(key) == Some(usage) {
                        model.offer_to::<P>(*usage, *key, value)
                    } else {
                        Answer::Retired
                    }
                });
            }
            76..78 => {
                assert_eq!(stepper.step(0), 0);
                let count = random.below(60);
                let batch: Vec<_> =
                    (0..count).map(|step| (random.below(8) as u8, number * 100 + step)).collect();
                let mut items = batch.iter().copied();
                let answer = producer.offer_all_by_key(&mut items);
                if let Err(error) = &answer {
                    let refused = batch[error.accepted as usize..].iter();
                    assert!(refused.zip(&error.refused).all(|(offered, back)| offered == back));
                }
                let left = items.map(|(_, value)| value).collect();
                compare_batch(answer, left, &batch, |key, value| model.offer::<P>(*key, value));
            }
            78..80 => {
                let count = handles.borrow().len() as u64;
                if count > 0 {
                    let at = random.below(count) as usize;
                    let (handle, usage, key) = handles.borrow()[at];
                    let current = model.uses.get(&key) == Some(&usage);
                    assert_eq!(producer.forget(handle), current);
                    if current {
                        model.uses.remove(&key);
                        model.retired.push_back(model.pushed);
                    }
                }
            }
            _ => {
                let most = random.below(4) as usize;
                let expected = model.step(most);
                assert_eq!(stepper.step(most), expected.len());
                assert_eq!(log.take(), expected);
            }
        }
        assert_eq!(producer.known(), model.uses.len());
        let counters = stepper.counters();
        assert_eq!(counters, model.counters);
        let pending = stepper.queue().queued();
        assert_eq!(pending, model.pending.len());
        assert_eq!(counters.dispatched, counters.handled + counters.conflated + pending as u64);
    }
    let expected = model.step(usize::MAX);
    assert!(stepper.finish().is_some());
    assert_eq!(log.take(), expected);
    assert!(matches!(producer.offer(0, 0), Err(DispatchError::Closed(0, _))));
}

/// Compares what became of a batch with the model's answers to its values, one after the other. What
/// the producer refuses is the first that the model refuses, and what was taken from the iterator
/// behind it; the rest is `left` in the iterator.
fn compare_batch<N, M: std::fmt::Debug>(
    answer: Result<u64, KeyedBatchError<u64, N>>,
    left: Vec<u64>,
    batch: &[(M, u64)],
    mut offer: impl FnMut(&M, u64) -> Answer,
) {
    let mut accepted = 0;
    let mut failure = None;
    for (name, value) in batch {
        match offer(name, *value) {
            Answer::Taken(_) => accepted += 1,
            other => {
                failure = Some(other);
                break;
            }
        }
    }
    let Some(failure) = failure else {
        assert_eq!((answer.ok(), left), (Some(accepted as u64), vec![]));
        return;
    };
    let Err(error) = answer else { panic!("the model says {failure:?}") };
    assert_eq!(error.accepted, accepted as u64);
    assert_eq!(Answer::of(&error.why), failure);
    let came_back = error.refused.iter().map(|(_, value)| *value).chain(left);
    assert!(came_back.eq(batch[accepted..].iter().map(|(_, value)| *value)));
}

const SHAPES: [(usize, usize); 6] = [(1, 1), (1, 12), (2, 5), (3, 8), (8, 6), (64, 10)];

#[test]
fn a_conflating_worker_does_what_a_queue_and_a_map_do() {
    for (capacity, max_keys) in SHAPES {
        for seed in 0..6 {
            let log = Log::default();
            let (producer, stepper) = ConflationSpWorker::builder()
                .capacity(capacity)
                .max_keys(max_keys as u32)
                .hasher(SameHash::default())
                .start_position(usize::MAX - 300)
                .stepped::<u8, u64, _>(log.clone())
                .unwrap();
            run(capacity, max_keys, seed, producer, stepper, &log);
        }
    }
}

#[test]
fn a_coalescing_worker_does_what_a_queue_and_a_map_do() {
    for (capacity, max_keys) in SHAPES {
        for seed in 0..6 {
            let log = Log::default();
            let (producer, stepper) = CoalescingSpWorker::builder()
                .capacity(capacity)
                .max_keys(max_keys as u32)
                .hasher(SameHash::default())
                .start_position(usize::MAX - 300)
                .stepped::<u8, u64, _>(log.clone())
                .unwrap();
            run(capacity, max_keys, seed, producer, stepper, &log);
        }
    }
}
