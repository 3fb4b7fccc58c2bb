//! What a dispatch costs that is conflated, or is not: 64-byte values over 10 to 131,072 keys.
//!
//! Three cadences, because who owns the cache lines decides the cost: `sweep`, a consumer that never
//! waits, so that nearly every value is delivered and every line travels; `20us`; and `conflated`, a
//! consumer that drains every 200 µs, so that nearly every value of few keys is superseded where it
//! lies. Each by key (hashed every time) and by handle, keys in a uniform random order or after
//! Zipf's law (`…-zipf`).
//!
//! Ours at 16,384 and 131,072 keys by handle gives its values in batches, whose cells are fetched
//! ahead (`dispatch_all`), and one at a time is shown beside it (`our-single-dispatch`); with fewer
//! keys it is the other way round. Ten keys are few enough that both sides meet on the same lines all
//! the time: what is measured there is how long a line takes from one core to the other.
//!
//! Peers do what is written by hand otherwise. `dashmap-…`: a concurrent map of newest values and a
//! channel of the keys that became dirty (tokio's bounded mpsc, crossbeam's); the map comes as
//! `DashMap::new()` makes it, and, as `…-foldhash`, with the fast hasher that our own key map uses.
//! `entry-swap`: a private map of shared entries, each a pointer to the newest value that both sides
//! swap, and a channel of the entries that became dirty; it allocates an item. Their consumers are
//! polled, as ours is stepped, so nobody pays for a wake. The control is the bare copy of the value
//! into the same kind of cell and one uncontended swap, without a consumer.
//!
//! A run counts only if the consumer got the last value of every key.
//!
//! What the figures are not: the cost with a parked consumer (a wake is some microseconds, once a
//! drain), or of large values. They are the producer's cost; on two cores a peer whose consumer is
//! slower is also held up by it.

mod harness;

use crossbeam_utils::atomic::AtomicCell;
use dashmap::DashMap;
use harness::keyed::{
    Cadence, Case, Consume, Crossbeam, Load, Pair, Produce, Queue, Tokio, Value, capacity, cases,
    rounds,
};
use harness::{Report, Subject, control, ours, peer};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use tidegate::worker::{
    ConflationHandler, ConflationProducer, ConflationSpWorker, KeyHandle, Outcome, Stepper,
    WorkerError,
};

/// What a consumer saw last of each key.
struct Newest(Vec<u64>);

impl Newest {
    fn new(keys: u32) -> Self {
        Self(vec![0; keys as usize])
    }

    #[inline(always)]
    fn see(&mut self, key: u32, value: &Value) {
        let number = value.number();
        assert!(number > self.0[key as usize], "an older value, or the same one again");
        self.0[key as usize] = number;
    }

    /// Checks that the newest value of every key has come.
    fn check(&self, numbers: Range<u64>, load: &Load) {
        let span = load.sequence.len() as u64;
        let mut last = HashMap::new();
        for number in numbers.start.max(numbers.end.saturating_sub(span))..numbers.end {
            last.insert(load.key(number), number);
        }
        for (key, number) in last {
            assert_eq!(self.0[key as usize], number, "the last value of key {key}");
        }
    }
}

impl ConflationHandler<u32, Value> for Newest {
    type Error = std::convert::Infallible;

    #[inline(always)]
    fn handle(&mut self, key: &u32, value: Value) -> Result<(), Self::Error> {
        self.see(*key, &value);
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
    producer: ConflationProducer<u32, Value>,
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
                    let old = producer.dispatch(&load.key(number), Value::new(number));
                    black_box(old.expect("an open worker").map(|old| old.0[0]));
                }
            }
            Way::Handle => {
                for number in numbers {
                    let handle = handles[number as usize & mask];
                    let old = producer.dispatch_at(handle, Value::new(number));
                    black_box(old.expect("an open worker").map(|old| old.0[0]));
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

impl Consume for Stepper<Newest> {
    fn drain(&mut self, most: usize) -> usize {
        self.step(most)
    }

    fn check(&mut self, numbers: Range<u64>, load: &Load) {
        let counters = self.counters();
        assert_eq!(counters.errors, 0);
        assert_eq!(counters.dispatched, counters.handled + counters.conflated);
        self.handler().expect("its handler").check(numbers, load);
    }
}

fn worker(load: &Load, way: Way) -> (OurProducer, Stepper<Newest>) {
    let (mut producer, stepper) = ConflationSpWorker::builder()
        .capacity(capacity(load.keys))
        .max_keys(load.keys)
        .stepped(Newest::new(load.keys))
        .expect("a worker");
    let handles: Vec<_> = (0..load.keys).map(|key| producer.key(&key).expect("room")).collect();
    (OurProducer { producer, handles: load.in_sequence(&handles), way }, stepper)
}

/// Newest values in a concurrent map, dirty keys in a channel.
struct MapProducer<Q: Queue, S> {
    newest: Arc<DashMap<u32, Value, S>>,
    sender: Q::Sender<u32>,
}

struct MapConsumer<Q: Queue, S> {
    newest: Arc<DashMap<u32, Value, S>>,
    receiver: Q::Receiver<u32>,
    seen: Newest,
}

impl<Q: Queue, S: BuildHasher + Clone> Produce for MapProducer<Q, S> {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let key = load.key(number);
            let old = self.newest.insert(key, Value::new(number)).map(|old| old.0[0]);
            if black_box(old).is_none() {
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
            if let Some((key, value)) = self.newest.remove(&key) {
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

/// The hasher of `DashMap::new()`.
type AsItComes = std::hash::RandomState;
/// The hasher of our own key map.
type Fast = foldhash::fast::RandomState;

fn dashmap<Q, S>(load: &Load) -> (MapProducer<Q, S>, MapConsumer<Q, S>)
where
    Q: Queue,
    S: BuildHasher + Clone + Default,
{
    let newest = Arc::new(DashMap::with_hasher(S::default()));
    let (sender, receiver) = Q::new(capacity(load.keys));
    let seen = Newest::new(load.keys);
    (MapProducer { newest: newest.clone(), sender }, MapConsumer { newest, receiver, seen })
}

/// A key's entry: the newest value that was not taken, if there is one.
struct Entry {
    key: u32,
    newest: AtomicCell<Option<Box<Value>>>,
}

struct EntryProducer {
    entries: HashMap<u32, Arc<Entry>, Fast>,
    sequence: Vec<Arc<Entry>>,
    sender: <Crossbeam as Queue>::Sender<Arc<Entry>>,
    by_handle: bool,
}

struct EntryConsumer {
    receiver: <Crossbeam as Queue>::Receiver<Arc<Entry>>,
    seen: Newest,
}

impl EntryProducer {
    #[inline(always)]
    fn offer(entry: &Arc<Entry>, sender: &<Crossbeam as Queue>::Sender<Arc<Entry>>, number: u64) {
        let old = entry.newest.swap(Some(Box::new(Value::new(number))));
        if black_box(old.map(|old| old.0[0])).is_none() {
            Crossbeam::send(sender, entry.clone());
        }
    }
}

impl Produce for EntryProducer {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        let Self { entries, sequence, sender, by_handle } = self;
        for number in numbers {
            if *by_handle {
                Self::offer(&sequence[number as usize & (sequence.len() - 1)], sender, number);
            } else {
                Self::offer(&entries[&load.key(number)], sender, number);
            }
        }
    }
}

impl Consume for EntryConsumer {
    fn drain(&mut self, most: usize) -> usize {
        let mut drained = 0;
        while drained < most
            && let Some(entry) = Crossbeam::receive(&mut self.receiver)
        {
            if let Some(value) = entry.newest.swap(None) {
                self.seen.see(entry.key, &value);
            }
            drained += 1;
        }
        drained
    }

    fn check(&mut self, numbers: Range<u64>, load: &Load) {
        self.seen.check(numbers, load);
    }
}

fn entry_swap(load: &Load, by_handle: bool) -> (EntryProducer, EntryConsumer) {
    assert!(AtomicCell::<Option<Box<Value>>>::is_lock_free());
    let entries: HashMap<_, _, Fast> = (0..load.keys)
        .map(|key| (key, Arc::new(Entry { key, newest: AtomicCell::new(None) })))
        .collect();
    let sequence = load.sequence.iter().map(|key| entries[key].clone()).collect();
    let (sender, receiver) = Crossbeam::new(capacity(load.keys));
    let producer = EntryProducer { entries, sequence, sender, by_handle };
    (producer, EntryConsumer { receiver, seen: Newest::new(load.keys) })
}

/// The same cell as ours, touched by one thread: the copy in and one swap.
#[repr(C, align(64))]
struct BareCell {
    slots: [UnsafeCell<Value>; 3],
    state: AtomicU8,
}

struct Bare {
    cells: Vec<BareCell>,
    hands: Vec<u8>,
    seen: Newest,
}

impl Bare {
    fn new(load: &Load) -> Self {
        let cell = || BareCell {
            slots: std::array::from_fn(|_| UnsafeCell::new(Value::new(0))),
            state: AtomicU8::new(2),
        };
        Self {
            cells: (0..load.keys).map(|_| cell()).collect(),
            hands: vec![1; load.keys as usize],
            seen: Newest::new(load.keys),
        }
    }
}

impl Produce for Bare {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let key = load.key(number) as usize;
            let (cell, hand) = (&mut self.cells[key], &mut self.hands[key]);
            *cell.slots[usize::from(*hand)].get_mut() = Value::new(number);
            *hand = cell.state.swap(*hand, Ordering::AcqRel) & 3;
            black_box(cell.slots[usize::from(*hand)].get_mut().0[0]);
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
        let Bare { cells, seen, .. } = &mut pair.producer;
        for (key, cell) in cells.iter_mut().enumerate() {
            let middle = usize::from(*cell.state.get_mut());
            seen.0[key] = cell.slots[middle].get_mut().number();
        }
        seen.check(numbers, load);
        cost
    }
}

fn subjects<'a>(case: &Case, load: &'a Load) -> Vec<Subject<'a>> {
    let (by_handle, cadence) = (case.by_handle, case.cadence);
    let batch_first = by_handle && case.keys > 10_000;
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
    let mut swap = Pair::new(entry_swap(load, by_handle), load, cadence);
    let mut subjects = vec![
        ours("conflation-worker", move || our.run()),
        peer("dashmap-tokio", move || tokio.run()),
        peer("dashmap-tokio-foldhash", move || tokio_fast.run()),
        peer("dashmap-crossbeam", move || crossbeam.run()),
        peer("entry-swap", move || swap.run()),
        control("copy-and-swap", bare(load)),
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
        report.case("conflation", &case.name, rounds(), subjects(&case, &load));
    }
    report.close();
}
