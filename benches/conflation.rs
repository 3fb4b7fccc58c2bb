//! What a dispatch costs that is conflated, or is not: 64-byte values over 1,000 keys.
//!
//! Two cadences, because who owns the cache lines decides the cost: `sweep`, a consumer that never
//! waits, so that nearly every value is delivered and every line travels; and `conflated`, a
//! consumer that drains every 200 µs, so that nearly every value is superseded where it lies. Each
//! by key (hashed every time) and by handle.
//!
//! Peers do what is written by hand otherwise: a concurrent map of newest values and a channel of
//! the keys that became dirty (`dashmap-tokio`: tokio's bounded mpsc; `dashmap-crossbeam`:
//! crossbeam's). The map comes as `DashMap::new()` makes it, and, as `…-foldhash`, with the fast
//! hasher that our own key map uses, which is its best mode. Their consumer is polled, as ours is stepped, so nobody pays for a wake. The
//! control is the bare copy of the value into the same kind of cell and one uncontended swap.
//!
//! A run counts only if the consumer got the last value of every key.
//!
//! What the figures are not: the cost with a parked consumer (a wake is some microseconds, once a
//! drain), of large values, or of more keys than the caches hold. They are the producer's cost; on
//! two cores a peer whose consumer is slower is also held up by it.

mod harness;

use dashmap::DashMap;
use harness::{Report, control, ours, peer, per_operation, short};
use std::cell::UnsafeCell;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;
use tidegate::worker::{ConflationHandler, ConflationSpWorker, Outcome, WorkerError};

const KEYS: u32 = 1_000;
const CAPACITY: usize = 1_024;

/// 64 bytes, all of them told by one number.
#[derive(Clone, Copy)]
struct Value([u64; 8]);

impl Value {
    fn new(number: u64) -> Self {
        Self([number; 8])
    }

    fn number(&self) -> u64 {
        assert!(self.0.iter().all(|word| *word == self.0[0]), "a torn value");
        self.0[0]
    }
}

/// What a consumer saw last of each key.
struct Newest(Vec<u64>);

impl Newest {
    fn new() -> Self {
        Self(vec![0; KEYS as usize])
    }

    fn see(&mut self, key: u32, value: &Value) {
        let number = value.number();
        assert!(number > self.0[key as usize], "an older value, or the same one again");
        self.0[key as usize] = number;
    }

    /// Checks that the newest value of every key has come.
    fn check(&self, dispatches: u64) {
        for (key, seen) in self.0.iter().enumerate() {
            assert_eq!(*seen, last_of(key as u64, dispatches), "the last value of key {key}");
        }
    }
}

/// Keys are walked in a scattered order that visits each once a round.
fn key_of(number: u64) -> u32 {
    (number * 619 % u64::from(KEYS)) as u32
}

/// The last number up to `dispatches` that goes to `key`.
fn last_of(key: u64, dispatches: u64) -> u64 {
    (0..u64::from(KEYS))
        .map(|back| dispatches - back)
        .find(|number| u64::from(key_of(*number)) == key)
        .expect("every key is visited once a round")
}

#[derive(Clone, Copy)]
enum Cadence {
    Sweep,
    Every200Micros,
}

impl Cadence {
    /// Runs a consumer until it has seen `done` and then found nothing more. A drain takes at most
    /// every key once: chasing a producer that makes keys dirty again would be a sweep.
    fn consume(self, done: &AtomicBool, mut drain: impl FnMut(usize) -> usize) {
        loop {
            let last = done.load(Ordering::Acquire);
            let drained = drain(KEYS as usize);
            if last && drained == 0 {
                return;
            }
            match self {
                Self::Sweep => std::hint::spin_loop(),
                Self::Every200Micros => thread::sleep(Duration::from_micros(200)),
            }
        }
    }
}

impl ConflationHandler<u32, Value> for Newest {
    type Error = std::convert::Infallible;

    fn handle(&mut self, key: &u32, value: Value) -> Result<(), Self::Error> {
        self.see(*key, &value);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

fn worker(cadence: Cadence, dispatches: u64, by_handle: bool) -> f64 {
    let (mut producer, mut stepper) = ConflationSpWorker::builder()
        .capacity(CAPACITY)
        .max_keys(KEYS)
        .stepped(Newest::new())
        .expect("a worker");
    let handles: Vec<_> = (0..KEYS).map(|key| producer.key(&key).expect("room")).collect();
    let done = Arc::new(AtomicBool::new(false));
    let told = done.clone();
    let consumer = thread::spawn(move || {
        cadence.consume(&told, |most| stepper.step(most));
        stepper
    });
    let cost = per_operation(dispatches, || {
        for number in 1..=dispatches {
            let (key, value) = (key_of(number), Value::new(number));
            let superseded = if by_handle {
                producer.dispatch_at(handles[key as usize], value)
            } else {
                producer.dispatch(&key, value)
            };
            black_box(superseded.expect("an open worker").map(|old| old.0[0]));
        }
    });
    done.store(true, Ordering::Release);
    let stepper = consumer.join().expect("the consumer");
    let counters = stepper.counters();
    assert_eq!(counters.errors, 0);
    assert_eq!(counters.dispatched, counters.handled + counters.conflated);
    stepper.finish().expect("its handler").check(dispatches);
    cost
}

/// A bounded queue of dirty keys.
trait Queue {
    type Sender: Send;
    type Receiver: Send + 'static;
    fn new(capacity: usize) -> (Self::Sender, Self::Receiver);
    fn send(sender: &Self::Sender, key: u32);
    fn receive(receiver: &mut Self::Receiver) -> Option<u32>;
}

struct Tokio;

impl Queue for Tokio {
    type Sender = tokio::sync::mpsc::Sender<u32>;
    type Receiver = tokio::sync::mpsc::Receiver<u32>;

    fn new(capacity: usize) -> (Self::Sender, Self::Receiver) {
        tokio::sync::mpsc::channel(capacity)
    }

    fn send(sender: &Self::Sender, key: u32) {
        sender.try_send(key).or_else(|_| sender.blocking_send(key)).expect("an open channel");
    }

    fn receive(receiver: &mut Self::Receiver) -> Option<u32> {
        receiver.try_recv().ok()
    }
}

struct Crossbeam;

impl Queue for Crossbeam {
    type Sender = crossbeam_channel::Sender<u32>;
    type Receiver = crossbeam_channel::Receiver<u32>;

    fn new(capacity: usize) -> (Self::Sender, Self::Receiver) {
        crossbeam_channel::bounded(capacity)
    }

    fn send(sender: &Self::Sender, key: u32) {
        sender.send(key).expect("an open channel");
    }

    fn receive(receiver: &mut Self::Receiver) -> Option<u32> {
        receiver.try_recv().ok()
    }
}

/// The hasher of `DashMap::new()`.
type AsItComes = std::hash::RandomState;
/// The hasher of our own key map.
type Fast = foldhash::fast::RandomState;

/// Newest values in a concurrent map, dirty keys in a channel.
fn dashmap<Q: Queue, S>(cadence: Cadence, dispatches: u64) -> f64
where
    S: BuildHasher + Clone + Default + Send + Sync + 'static,
{
    let newest = Arc::new(DashMap::with_hasher(S::default()));
    let (sender, mut receiver) = Q::new(CAPACITY);
    let done = Arc::new(AtomicBool::new(false));
    let (told, map) = (done.clone(), newest.clone());
    let consumer = thread::spawn(move || {
        let mut seen = Newest::new();
        cadence.consume(&told, |most| {
            let mut drained = 0;
            while drained < most
                && let Some(key) = Q::receive(&mut receiver)
            {
                // Out of the map, so that the next value makes the key dirty again.
                if let Some((key, value)) = map.remove(&key) {
                    seen.see(key, &value);
                }
                drained += 1;
            }
            drained
        });
        seen
    });
    let cost = per_operation(dispatches, || {
        for number in 1..=dispatches {
            let (key, value) = (key_of(number), Value::new(number));
            if black_box(newest.insert(key, value).map(|old| old.0[0])).is_none() {
                Q::send(&sender, key);
            }
        }
    });
    done.store(true, Ordering::Release);
    consumer.join().expect("the consumer").check(dispatches);
    cost
}

/// The same cell as ours, touched by one thread: the copy in and one swap.
#[repr(C, align(64))]
struct BareCell {
    slots: [UnsafeCell<Value>; 3],
    state: AtomicU8,
}

fn bare(dispatches: u64) -> f64 {
    let mut cells: Vec<BareCell> = (0..KEYS)
        .map(|_| BareCell {
            slots: std::array::from_fn(|_| UnsafeCell::new(Value::new(0))),
            state: AtomicU8::new(2),
        })
        .collect();
    let mut hands = vec![1_u8; KEYS as usize];
    let cost = per_operation(dispatches, || {
        for number in 1..=dispatches {
            let key = key_of(number) as usize;
            let (cell, hand) = (&mut cells[key], &mut hands[key]);
            *cell.slots[usize::from(*hand)].get_mut() = Value::new(number);
            *hand = cell.state.swap(*hand, Ordering::AcqRel) & 3;
            black_box(cell.slots[usize::from(*hand)].get_mut().0[0]);
        }
    });
    for (key, cell) in cells.iter_mut().enumerate() {
        let middle = usize::from(*cell.state.get_mut());
        assert_eq!(
            cell.slots[middle].get_mut().number(),
            last_of(key as u64, dispatches),
            "the last value of key {key}"
        );
    }
    cost
}

fn main() {
    let (rounds, dispatches) = if short() { (9, 4_000_000) } else { (21, 8_000_000) };
    let mut report = Report::default();
    for (cadence, cadence_name) in
        [(Cadence::Sweep, "sweep"), (Cadence::Every200Micros, "conflated")]
    {
        for (by_handle, way) in [(false, "key"), (true, "handle")] {
            report.case(
                "conflation",
                &format!("1000-{cadence_name}-{way}"),
                rounds,
                vec![
                    ours("conflation-worker", || worker(cadence, dispatches, by_handle)),
                    peer("dashmap-tokio", || dashmap::<Tokio, AsItComes>(cadence, dispatches)),
                    peer("dashmap-tokio-foldhash", || dashmap::<Tokio, Fast>(cadence, dispatches)),
                    peer("dashmap-crossbeam", || {
                        dashmap::<Crossbeam, AsItComes>(cadence, dispatches)
                    }),
                    peer("dashmap-crossbeam-foldhash", || {
                        dashmap::<Crossbeam, Fast>(cadence, dispatches)
                    }),
                    control("copy-and-swap", || bare(dispatches)),
                ],
            );
        }
    }
    report.close();
}
