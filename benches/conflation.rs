//! What a dispatch costs that is conflated, or is not: 64-byte values over 10 to 131,072 keys.
//!
//! Three cadences, because who owns the cache lines decides the cost: `sweep`, a consumer that never
//! waits, so that nearly every value is delivered and every line travels; `20us`; and `conflated`, a
//! consumer that drains every 200 µs, so that nearly every value of few keys is superseded where it
//! lies. Each by key (hashed every time) and by handle, keys in a uniform random order or after
//! Zipf's law (`…-zipf`).
//!
//! Ours gives its values in batches, whose cells, and whose keys' places in the map, are asked for ahead
//! (`dispatch_all`, `dispatch_all_by_key`), from 1,000 keys on by handle and from 16,384 on by key, and
//! one at a time is shown beside it (`our-single-dispatch`); with fewer keys it is the other way round.
//! Ten keys are so few that both sides meet on the same lines all the time: what is measured there is
//! how long a line takes from one core to the other.
//!
//! Peers do what is written by hand otherwise. `dashmap-…`: a concurrent map of newest values and a
//! channel of the keys that became dirty (tokio's bounded mpsc, crossbeam's); the map comes as
//! `DashMap::new()` makes it, and, as `…-foldhash`, with the fast hasher that our own key map uses.
//! `entry-swap`: a private map of shared entries, each a pointer to the newest value that both sides
//! swap, and a channel of the entries that became dirty; it allocates an item. Their consumers are
//! polled, as ours is stepped, so nobody pays for a wake.
//!
//! The control is the bare copy of the value into the same kind of cell and one uncontended swap, without
//! a consumer. A second one, `both-sides`, is the same with a consumer that swaps values out at the same
//! cadence: what the travel of the lines costs whoever does it. It has no keys, no ring, no counts and
//! no end, and its consumer looks through all cells in the order of memory.
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
use harness::keyed::ours::{Dispatch, Nobody, OurProducer, Seen, Way};
use harness::keyed::run::{Cadence, Consume, Pair, Produce};
use harness::keyed::{Case, capacity, run_all};
use harness::{Subject, control, ours, peer};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
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

/// Cells like ours and nothing else: no keys, no ring, no counts, no end. As in ours, values lie in
/// slots that go from cell to cell, and the cells of up to 4,096 keys have lines of their own.
struct Cells {
    lines: Vec<Line>,
    /// Whether four cells share a line.
    shared: bool,
    slots: Vec<Slot>,
}

/// A cell is a word, which names a slot, and what ours keeps beside it.
#[repr(align(64))]
struct Line([[AtomicUsize; 2]; 4]);

/// Words of their own, so that a bench needs no unsafe code; they are plain moves.
#[repr(align(64))]
struct Slot([AtomicU64; 8]);

const DIRTY: usize = 1 << 63;

impl Cells {
    fn new(load: &Load) -> Arc<Self> {
        let keys = load.keys as usize;
        let shared = keys > 4096;
        let lines = if shared { keys / 4 } else { keys };
        let cell = |key| [AtomicUsize::new(key), AtomicUsize::new(0)];
        let line = |line| Line(std::array::from_fn(|step| cell(line + step * lines)));
        Arc::new(Self {
            lines: (0..lines).map(line).collect(),
            shared,
            slots: (0..keys + 33).map(|_| Slot(Default::default())).collect(),
        })
    }

    #[inline(always)]
    fn swap(&self, key: usize, word: usize) -> usize {
        let lines = self.lines.len();
        let (line, step) = if self.shared { (key & (lines - 1), key / lines) } else { (key, 0) };
        self.lines[line].0[step & 3][0].swap(word, Ordering::AcqRel)
    }

    #[inline(always)]
    fn is_dirty(&self, key: usize) -> bool {
        let lines = self.lines.len();
        self.lines[key % lines].0[key / lines][0].load(Ordering::Relaxed) & DIRTY != 0
    }
}

struct BareProducer {
    cells: Arc<Cells>,
    spares: [usize; 32],
    turn: usize,
}

/// Sweeps all cells, as it is not told which of them are dirty.
struct BareConsumer {
    cells: Arc<Cells>,
    hand: usize,
    seen: Newest,
}

fn both_sides(load: &Load) -> (BareProducer, BareConsumer) {
    let cells = Cells::new(load);
    let keys = load.keys as usize;
    let spares = std::array::from_fn(|spare| keys + spare);
    let producer = BareProducer { cells: cells.clone(), spares, turn: 0 };
    (producer, BareConsumer { cells, hand: keys + 32, seen: Newest::new(load.keys) })
}

impl Produce for BareProducer {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        let cells = &*self.cells;
        for number in numbers {
            let hand = self.spares[self.turn];
            for word in &cells.slots[hand].0 {
                word.store(number, Ordering::Relaxed);
            }
            let former = cells.swap(load.key(number) as usize, hand | DIRTY) & !DIRTY;
            black_box(cells.slots[former].0[0].load(Ordering::Relaxed));
            self.spares[self.turn] = former;
            self.turn = (self.turn + 1) % self.spares.len();
        }
    }
}

impl Consume for BareConsumer {
    fn drain(&mut self, _most: usize) -> usize {
        let Self { cells, hand, seen } = self;
        let mut drained = 0;
        for key in 0..seen.0.len() {
            if cells.is_dirty(key) {
                *hand = cells.swap(key, *hand) & !DIRTY;
                let words = &cells.slots[*hand].0;
                let value = Value(std::array::from_fn(|word| words[word].load(Ordering::Relaxed)));
                seen.see(key as u32, &value);
                drained += 1;
            }
        }
        drained
    }

    fn check(&mut self, numbers: Range<u64>, load: &Load) {
        self.seen.check(numbers, load);
    }
}

/// The producing side alone: the consumer comes once it has done.
fn alone<'a>(load: &'a Load) -> impl FnMut() -> f64 + 'a {
    let (producer, mut consumer) = both_sides(load);
    let mut pair = Pair::new((producer, Nobody), load, Cadence::Sweep);
    move || {
        let numbers = pair.numbers();
        let cost = pair.run();
        consumer.drain(usize::MAX);
        consumer.check(numbers, load);
        cost
    }
}

fn subjects<'a>(case: &Case, load: &'a Load) -> Vec<Subject<'a>> {
    let cadence = case.cadence;
    let (way, other, other_name) = Way::of(case);
    let mut our = Pair::new(worker(load, way), load, cadence);
    let mut other = Pair::new(worker(load, other), load, cadence);
    let mut tokio = Pair::new(dashmap::<Replace, Tokio, AsItComes, Newest>(load), load, cadence);
    let mut fast = Pair::new(dashmap::<Replace, Tokio, Fast, Newest>(load), load, cadence);
    let mut crossbeam =
        Pair::new(dashmap::<Replace, Crossbeam, AsItComes, Newest>(load), load, cadence);
    let mut both = Pair::new(both_sides(load), load, cadence);
    let mut swap = Pair::new(entry_swap(load, case.by_handle), load, cadence);
    vec![
        ours("conflation-worker", move || our.run()),
        peer("dashmap-tokio", move || tokio.run()),
        peer("dashmap-tokio-foldhash", move || fast.run()),
        peer("dashmap-crossbeam", move || crossbeam.run()),
        peer("entry-swap", move || swap.run()),
        control("copy-and-swap", alone(load)),
        control("both-sides", move || both.run()),
        peer(other_name, move || other.run()),
    ]
}

fn main() {
    run_all("conflation", subjects);
}
