//! What a dispatch costs that is folded into a total: 64-byte values over 10 to 131,072 keys.
//!
//! Cases, cadences, spreads and ways as in the bench `conflation`: a consumer that never waits, one that
//! drains every 20 µs, and one every 200 µs (`conflated`); by key and by handle, in batches where that
//! pays, with the other way beside it (`our-batch-dispatch`, `our-single-dispatch`). With ten keys both
//! sides meet on the same lines all the time: a map's entry then costs one line's way from core to core,
//! a fold the same, and a dispatch to a fresh key a place in the ring besides.
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
use harness::keyed::load::{Load, Value};
use harness::keyed::map::{AsItComes, Crossbeam, Fast, Rule, Tokio, dashmap};
use harness::keyed::ours::{Dispatch, Nobody, OurProducer, Seen, Way};
use harness::keyed::run::{Cadence, Consume, Pair, Produce};
use harness::keyed::{Case, capacity, run_all};
use harness::{Subject, control, ours, peer};
use std::hash::BuildHasher;
use std::ops::Range;
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

impl Seen for Totals {
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

impl Dispatch for CoalescingProducer<u32, Value, Totals> {
    fn handle(&mut self, key: u32) -> KeyHandle {
        self.key(&key).expect("room")
    }

    #[inline(always)]
    fn by_key(&mut self, key: u32, value: Value) {
        self.dispatch(&key, value).expect("an open worker");
    }

    #[inline(always)]
    fn by_handle(&mut self, handle: KeyHandle, value: Value) {
        self.dispatch_at(handle, value).expect("an open worker");
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

type Ours = OurProducer<CoalescingProducer<u32, Value, Totals>>;

fn worker(load: &Load, way: Way) -> (Ours, OurConsumer) {
    let (producer, stepper) = CoalescingSpWorker::builder()
        .capacity(capacity(load.keys))
        .max_keys(load.keys)
        .stepped(Totals::new(load.keys))
        .expect("a worker");
    let expected = Totals::new(load.keys);
    (OurProducer::new(producer, load, way), OurConsumer { stepper, expected })
}

/// A value is added to the total that waits.
struct AddUp;

impl Rule for AddUp {
    #[inline(always)]
    fn put<S: BuildHasher + Clone>(map: &DashMap<u32, Value, S>, key: u32, value: Value) -> bool {
        match map.entry(key) {
            Entry::Occupied(mut total) => {
                total.get_mut().add(value);
                false
            }
            Entry::Vacant(place) => {
                place.insert(value);
                true
            }
        }
    }
}

/// The same kind of cell as ours, touched by one thread.
#[repr(C, align(64))]
struct BareCell {
    total: Value,
    state: AtomicU8,
}

struct BareCells(Vec<BareCell>);

impl BareCells {
    fn new(load: &Load) -> Self {
        let cell = || BareCell { total: Value::new(0), state: AtomicU8::new(1) };
        Self((0..load.keys).map(|_| cell()).collect())
    }
}

impl Produce for BareCells {
    fn produce(&mut self, numbers: Range<u64>, load: &Load) {
        for number in numbers {
            let cell = &mut self.0[load.key(number) as usize];
            let held = cell.state.compare_exchange(1, 2, Ordering::Acquire, Ordering::Relaxed);
            assert!(held.is_ok());
            cell.total.add(Value::new(number));
            cell.state.store(1, Ordering::Release);
        }
    }
}

/// The control's run, and a look at what it has left.
fn alone<'a>(load: &'a Load) -> impl FnMut() -> f64 + 'a {
    let mut pair = Pair::new((BareCells::new(load), Nobody), load, Cadence::Sweep);
    let mut seen = Totals::new(load.keys);
    move || {
        let numbers = pair.numbers();
        let cost = pair.run();
        for (key, cell) in pair.producer.0.iter_mut().enumerate() {
            seen.see(key as u32, &std::mem::take(&mut cell.total));
        }
        seen.check(numbers, load);
        cost
    }
}

fn subjects<'a>(case: &Case, load: &'a Load) -> Vec<Subject<'a>> {
    let cadence = case.cadence;
    let (way, other, other_name) = Way::of(case);
    let mut our = Pair::new(worker(load, way), load, cadence);
    let mut other = Pair::new(worker(load, other), load, cadence);
    let mut tokio = Pair::new(dashmap::<AddUp, Tokio, AsItComes, Totals>(load), load, cadence);
    let mut fast = Pair::new(dashmap::<AddUp, Tokio, Fast, Totals>(load), load, cadence);
    let mut crossbeam =
        Pair::new(dashmap::<AddUp, Crossbeam, AsItComes, Totals>(load), load, cadence);
    vec![
        ours("coalescing-worker", move || our.run()),
        peer("dashmap-tokio", move || tokio.run()),
        peer("dashmap-tokio-foldhash", move || fast.run()),
        peer("dashmap-crossbeam", move || crossbeam.run()),
        control("hold-and-add", alone(load)),
        peer(other_name, move || other.run()),
    ]
}

fn main() {
    run_all("coalescing", subjects);
}
