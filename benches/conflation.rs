//! What a dispatch costs that is conflated, or is not: 64-byte values over 10 to 131,072 keys.
//!
//! Three cadences, because who owns the cache lines decides the cost: `sweep`, a consumer that never
//! waits, so that nearly every value is delivered and every line travels; `20us`; and `conflated`, a
//! consumer that drains every 200 µs, so that nearly every value of few keys is superseded where it
//! lies. Each by key (hashed every time) and by handle, keys in a uniform random order or after
//! Zipf's law (`…-zipf`).
//!
//! Ours at 16,384 and 131,072 keys gives its values in batches, whose cells, and whose keys' places in
//! the map, are asked for ahead (`dispatch_all`, `dispatch_all_by_key`), and one at a time is shown
//! beside it (`our-single-dispatch`); with fewer keys it is the other way round. Ten keys are few
//! enough that both sides meet on the same lines all the time: what is measured there is how long a
//! line takes from one core to the other.
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
use harness::keyed::load::{Load, Value};
use harness::keyed::map::{AsItComes, Crossbeam, Fast, Queue, Rule, Tokio, dashmap};
use harness::keyed::ours::{Bare, Dispatch, OurProducer, Seen, Way, bare};
use harness::keyed::run::{Consume, Pair, Produce};
use harness::keyed::{Case, capacity, run_all};
use harness::{Subject, control, ours, peer};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tidegate::worker::{
    ConflationHandler, ConflationProducer, ConflationSpWorker, KeyHandle, Outcome, Stepper,
    WorkerError,
};

/// What a consumer saw last of each key.
struct Newest(Vec<u64>);

impl Seen for Newest {
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
    fn check(&mut self, numbers: Range<u64>, load: &Load) {
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

impl Dispatch for ConflationProducer<u32, Value> {
    fn handle(&mut self, key: u32) -> KeyHandle {
        self.key(&key).expect("room")
    }

    #[inline(always)]
    fn by_key(&mut self, key: u32, value: Value) {
        let old = self.dispatch(&key, value);
        black_box(old.expect("an open worker").map(|old| old.0[0]));
    }

    #[inline(always)]
    fn by_handle(&mut self, handle: KeyHandle, value: Value) {
        let old = self.dispatch_at(handle, value);
        black_box(old.expect("an open worker").map(|old| old.0[0]));
    }

    #[inline(always)]
    fn all_by_key(&mut self, items: impl Iterator<Item = (u32, Value)>) {
        self.dispatch_all_by_key(items).expect("an open worker");
    }

    #[inline(always)]
    fn all(&mut self, items: impl Iterator<Item = (KeyHandle, Value)>) {
        self.dispatch_all(items).expect("an open worker");
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
        self.handler_mut().expect("its handler").check(numbers, load);
    }
}

type Ours = OurProducer<ConflationProducer<u32, Value>>;

fn worker(load: &Load, way: Way) -> (Ours, Stepper<Newest>) {
    let (producer, stepper) = ConflationSpWorker::builder()
        .capacity(capacity(load.keys))
        .max_keys(load.keys)
        .stepped(Newest::new(load.keys))
        .expect("a worker");
    (OurProducer::new(producer, load, way), stepper)
}

/// A newer value takes the place of the one that waits.
struct Replace;

impl Rule for Replace {
    #[inline(always)]
    fn put<S: BuildHasher + Clone>(map: &DashMap<u32, Value, S>, key: u32, value: Value) -> bool {
        black_box(map.insert(key, value).map(|old| old.0[0])).is_none()
    }
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

/// Cells like ours, touched by one thread: the copy in and one swap. As in ours, values lie in slots
/// that go from cell to cell, and the cells of up to 4,096 keys have lines of their own.
struct BareCells {
    cells: Vec<Line>,
    /// log2 of the cells on a line.
    shift: u32,
    slots: Vec<Slot>,
    spares: [usize; 32],
    turn: usize,
}

#[repr(align(64))]
struct Line([[AtomicUsize; 2]; 4]);

#[repr(align(64))]
struct Slot(Value);

impl BareCells {
    fn new(load: &Load) -> Self {
        let keys = load.keys as usize;
        let shift = if keys > 4096 { 2 } else { 0 };
        let lines = keys >> shift;
        // The second half of a cell stands for what ours keeps beside the word.
        let cell = |key| [AtomicUsize::new(key), AtomicUsize::new(0)];
        Self {
            cells: (0..lines)
                .map(|line| Line(std::array::from_fn(|step| cell(line + step * lines))))
                .collect(),
            shift,
            slots: (0..keys + 32).map(|_| Slot(Value::new(0))).collect(),
            spares: std::array::from_fn(|spare| keys + spare),
            turn: 0,
        }
    }

    #[inline(always)]
    fn cell(&self, key: usize) -> &AtomicUsize {
        let lines = self.cells.len();
        let (line, step) =
            if self.shift == 0 { (key, 0) } else { (key & (lines - 1), key / lines) };
        &self.cells[line].0[step & 3][0]
    }
}

impl Produce for BareCells {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let hand = self.spares[self.turn];
            self.slots[hand].0 = Value::new(number);
            let former = self.cell(load.key(number) as usize).swap(hand, Ordering::AcqRel);
            black_box(self.slots[former].0.0[0]);
            self.spares[self.turn] = former;
            self.turn = (self.turn + 1) % self.spares.len();
        }
    }
}

impl Bare for BareCells {
    fn take(&mut self, key: u32) -> Value {
        let slot = self.cell(key as usize).load(Ordering::Relaxed);
        std::mem::replace(&mut self.slots[slot].0, Value::new(0))
    }
}

fn subjects<'a>(case: &Case, load: &'a Load) -> Vec<Subject<'a>> {
    let cadence = case.cadence;
    let (way, other, other_name) = Way::of(case, 10_000);
    let mut our = Pair::new(worker(load, way), load, cadence);
    let mut other = Pair::new(worker(load, other), load, cadence);
    let mut tokio = Pair::new(dashmap::<Replace, Tokio, AsItComes, Newest>(load), load, cadence);
    let mut fast = Pair::new(dashmap::<Replace, Tokio, Fast, Newest>(load), load, cadence);
    let mut crossbeam =
        Pair::new(dashmap::<Replace, Crossbeam, AsItComes, Newest>(load), load, cadence);
    let mut swap = Pair::new(entry_swap(load, case.by_handle), load, cadence);
    vec![
        ours("conflation-worker", move || our.run()),
        peer("dashmap-tokio", move || tokio.run()),
        peer("dashmap-tokio-foldhash", move || fast.run()),
        peer("dashmap-crossbeam", move || crossbeam.run()),
        peer("entry-swap", move || swap.run()),
        control("copy-and-swap", bare::<Newest>(BareCells::new(load), load)),
        peer(other_name, move || other.run()),
    ]
}

fn main() {
    run_all("conflation", subjects);
}
