//! What a dispatch costs that is folded into a total: 64-byte values over 10 to 131,072 keys.
//!
//! Cases, cadences and spreads as in the bench `conflation`: a consumer that never waits, one that
//! drains every 20 µs, and one every 200 µs (`conflated`); by key and by handle. From 1,000 keys on
//! by handle means in batches (`dispatch_all`), with one at a time shown beside it
//! (`our-single-dispatch`): a fold waits for the line of its total, which batches ask for ahead. With
//! ten keys it is the other way round, and no line is far: what is measured there is the copying by
//! which a fold that panics leaves the old total whole.
//!
//! Peers do what is written by hand otherwise: totals in a concurrent map, folded into through its
//! entries, and a channel of the keys that became dirty (tokio's bounded mpsc, crossbeam's). The map
//! comes as `DashMap::new()` makes it, and, as `…-foldhash`, with the fast hasher that our own key
//! map uses. Their consumers are polled, as ours is stepped. The control is what one thread alone
//! pays for the same fold in the same kind of cell: one compare-exchange, the addition, one store.
//!
//! A run counts only if the totals of every key add up to all that was dispatched to it.
//!
//! What the figures are not: the cost with a parked consumer, of totals that allocate when they are
//! cloned, or of long folds. They are the producer's cost; on two cores a peer whose consumer is
//! slower is also held up by it.

mod harness;

use dashmap::{DashMap, Entry};
use harness::keyed::{
    Cadence, Case, Consume, Crossbeam, Load, Pair, Produce, Queue, Tokio, Value, capacity, cases,
    rounds,
};
use harness::{Report, Subject, control, ours, peer};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tidegate::worker::{
    CoalescingHandler, CoalescingProducer, CoalescingSpWorker, KeyHandle, Outcome, Stepper,
    WorkerError,
};

/// What a consumer got of each key, and what it should have got.
struct Totals {
    seen: Vec<u64>,
    expected: Vec<u64>,
}

impl Totals {
    fn new(keys: u32) -> Self {
        Self { seen: vec![0; keys as usize], expected: vec![0; keys as usize] }
    }

    #[inline(always)]
    fn see(&mut self, key: u32, total: &Value) {
        let seen = &mut self.seen[key as usize];
        *seen = seen.wrapping_add(total.number());
    }

    /// Checks that every value has come in exactly one total.
    fn check(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let expected = &mut self.expected[load.key(number) as usize];
            *expected = expected.wrapping_add(number);
        }
        assert!(self.seen == self.expected, "a value was lost or counted twice");
    }
}

impl CoalescingHandler<u32, Value> for Totals {
    type Error = std::convert::Infallible;

    #[inline(always)]
    fn coalesce(current: &mut Value, incoming: Value) {
        current.add(incoming);
    }

    #[inline(always)]
    fn handle(&mut self, key: &u32, total: Value) -> Result<(), Self::Error> {
        self.see(*key, &total);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Key,
    Handle,
    Batch,
}

struct OurProducer {
    producer: CoalescingProducer<u32, Value, Totals>,
    handles: Vec<KeyHandle>,
    way: Way,
}

impl Produce for OurProducer {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        let Self { producer, handles, way } = self;
        let mask = handles.len() - 1;
        match way {
            Way::Key => {
                for number in numbers {
                    let folded = producer.dispatch(&load.key(number), Value::new(number));
                    folded.expect("an open worker");
                }
            }
            Way::Handle => {
                for number in numbers {
                    let handle = handles[number as usize & mask];
                    producer.dispatch_at(handle, Value::new(number)).expect("an open worker");
                }
            }
            Way::Batch => {
                let items =
                    numbers.map(|number| (handles[number as usize & mask], Value::new(number)));
                producer.dispatch_all(items).expect("an open worker");
            }
        }
    }
}

/// Ours, stepped. What it should have got is kept beside the handler, which the worker owns.
struct OurConsumer {
    stepper: Stepper<Totals>,
    expected: Totals,
}

impl Consume for OurConsumer {
    fn drain(&mut self, most: usize) -> usize {
        self.stepper.step(most)
    }

    fn check(&mut self, numbers: Range<u64>, load: &Load) {
        let counters = self.stepper.counters();
        assert_eq!(counters.errors, 0);
        assert_eq!(counters.dispatched, counters.handled + counters.conflated);
        self.expected.seen.clone_from(&self.stepper.handler().expect("its handler").seen);
        self.expected.check(numbers, load);
    }
}

fn worker(load: &Load, way: Way) -> (OurProducer, OurConsumer) {
    let (mut producer, stepper) = CoalescingSpWorker::builder()
        .capacity(capacity(load.keys))
        .max_keys(load.keys)
        .stepped(Totals::new(load.keys))
        .expect("a worker");
    let handles: Vec<_> = (0..load.keys).map(|key| producer.key(&key).expect("room")).collect();
    let expected = Totals::new(load.keys);
    let producer = OurProducer { producer, handles: load.in_sequence(&handles), way };
    (producer, OurConsumer { stepper, expected })
}

/// Totals in a concurrent map, dirty keys in a channel.
struct MapProducer<Q: Queue, S> {
    totals: Arc<DashMap<u32, Value, S>>,
    sender: Q::Sender<u32>,
}

struct MapConsumer<Q: Queue, S> {
    totals: Arc<DashMap<u32, Value, S>>,
    receiver: Q::Receiver<u32>,
    seen: Totals,
}

impl<Q: Queue, S: BuildHasher + Clone> Produce for MapProducer<Q, S> {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let key = load.key(number);
            let fresh = match self.totals.entry(key) {
                Entry::Occupied(mut total) => {
                    total.get_mut().add(Value::new(number));
                    false
                }
                Entry::Vacant(place) => {
                    place.insert(Value::new(number));
                    true
                }
            };
            // Out of the entry, which holds the consumer up.
            if fresh {
                Q::send(&self.sender, key);
            }
        }
    }
}

impl<Q: Queue, S: BuildHasher + Clone + Send + Sync> Consume for MapConsumer<Q, S> {
    fn drain(&mut self, most: usize) -> usize {
        let mut drained = 0;
        while drained < most
            && let Some(key) = Q::receive(&mut self.receiver)
        {
            // Out of the map, so that the next value makes the key dirty again.
            if let Some((key, total)) = self.totals.remove(&key) {
                self.seen.see(key, &total);
            }
            drained += 1;
        }
        drained
    }

    fn check(&mut self, numbers: Range<u64>, load: &Load) {
        self.seen.check(numbers, load);
    }
}

/// The hasher of `DashMap::new()`.
type AsItComes = std::hash::RandomState;
/// The hasher of our own key map.
type Fast = foldhash::fast::RandomState;

fn dashmap<Q, S>(load: &Load) -> (MapProducer<Q, S>, MapConsumer<Q, S>)
where
    Q: Queue,
    S: BuildHasher + Clone + Default,
{
    let totals = Arc::new(DashMap::with_hasher(S::default()));
    let (sender, receiver) = Q::new(capacity(load.keys));
    let seen = Totals::new(load.keys);
    (MapProducer { totals: totals.clone(), sender }, MapConsumer { totals, receiver, seen })
}

/// The same cell as ours, touched by one thread.
#[repr(C, align(64))]
struct BareCell {
    total: Value,
    state: AtomicU8,
}

struct Bare {
    cells: Vec<BareCell>,
    seen: Totals,
}

impl Bare {
    fn new(load: &Load) -> Self {
        let cell = || BareCell { total: Value::new(0), state: AtomicU8::new(1) };
        let cells = (0..load.keys).map(|_| cell()).collect();
        Self { cells, seen: Totals::new(load.keys) }
    }
}

impl Produce for Bare {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let cell = &mut self.cells[load.key(number) as usize];
            let held = cell.state.compare_exchange(1, 2, Ordering::Acquire, Ordering::Relaxed);
            assert!(held.is_ok());
            cell.total.add(Value::new(number));
            cell.state.store(1, Ordering::Release);
        }
    }
}

/// Nobody consumes beside the control: it is read after the run.
struct Nobody;

impl Consume for Nobody {
    fn drain(&mut self, _most: usize) -> usize {
        0
    }

    fn check(&mut self, _numbers: Range<u64>, _load: &Load) {}
}

fn bare(load: &Load) -> impl FnMut() -> f64 {
    let mut pair = Pair::new((Bare::new(load), Nobody), load, Cadence::Sweep);
    move || {
        let numbers = pair.numbers();
        let cost = pair.run();
        let Bare { cells, seen } = &mut pair.producer;
        for (seen, cell) in seen.seen.iter_mut().zip(cells) {
            *seen = cell.total.number();
        }
        seen.check(numbers, load);
        cost
    }
}

fn subjects<'a>(case: &Case, load: &'a Load) -> Vec<Subject<'a>> {
    let (by_handle, cadence) = (case.by_handle, case.cadence);
    let batch_first = by_handle && case.keys >= 1_000;
    let way = if batch_first {
        Way::Batch
    } else if by_handle {
        Way::Handle
    } else {
        Way::Key
    };
    let mut our = Pair::new(worker(load, way), load, cadence);
    let mut tokio = Pair::new(dashmap::<Tokio, AsItComes>(load), load, cadence);
    let mut tokio_fast = Pair::new(dashmap::<Tokio, Fast>(load), load, cadence);
    let mut crossbeam = Pair::new(dashmap::<Crossbeam, AsItComes>(load), load, cadence);
    let mut subjects = vec![
        ours("coalescing-worker", move || our.run()),
        peer("dashmap-tokio", move || tokio.run()),
        peer("dashmap-tokio-foldhash", move || tokio_fast.run()),
        peer("dashmap-crossbeam", move || crossbeam.run()),
        control("hold-and-add", bare(load)),
    ];
    if by_handle {
        let (name, way) = if batch_first {
            ("our-single-dispatch", Way::Handle)
        } else {
            ("our-batch-dispatch", Way::Batch)
        };
        let mut other = Pair::new(worker(load, way), load, cadence);
        subjects.push(peer(name, move || other.run()));
    }
    subjects
}

fn main() {
    let mut report = Report::default();
    for case in cases() {
        let load = Load::new(case.keys, case.spread);
        report.case("coalescing", &case.name, rounds(), subjects(&case, &load));
    }
    report.close();
}
