//! What it costs to pass an item by value from one thread to another: u64 and 64 bytes, one item a
//! dispatch and in batches.
//!
//! `sp-u64`, `sp-64b` and `sp-batch` have spinning ends, as rtrb's are: our consumer is stepped by a
//! thread that never sleeps, and both producers try until there is room. `sp-u64-blocking` and
//! `sp-64b-blocking` have blocking ends: ours is `start`ed on its own thread, and the peers' receivers
//! block.
//!
//! `value-256b` has the same spinning ends. `async` and `async-suspend` run between two tasks;
//! `sp-one-core` has blocking ends, both on one core. `wake` is the time from a dispatch to a consumer
//! that is parked for certain until its handler runs, beside the same over a bare futex.
//!
//! Every consumer checks that it got each item once and in order, and does nothing else; an item's
//! cost is that of the whole hand-over, divided by the items. What the figures are not: a latency,
//! or the cost of a wake.

#[path = "workers/channels.rs"]
mod channels;
#[path = "workers/cores.rs"]
mod cores;
mod harness;
#[path = "workers/slots.rs"]
mod slots;
#[path = "workers/tasks.rs"]
mod tasks;

use harness::{Report, Subject, ours, peer, per_operation, short};
use std::thread;
use tidegate::worker::{Batch, Handler, Outcome, SpWorker, WorkerError};
use tokio_util::sync::CancellationToken;

const CAPACITY: usize = 1_024;
const BATCH: u64 = 32;

/// An item that tells its number.
trait Item: Copy + Send + 'static {
    fn new(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Item for u64 {
    fn new(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

impl Item for [u64; 8] {
    fn new(number: u64) -> Self {
        [number; 8]
    }

    fn number(&self) -> u64 {
        self[7]
    }
}

/// Expects 0, 1, 2, …
struct InOrder(u64);

impl InOrder {
    #[inline]
    fn see(&mut self, item: &impl Item) {
        assert_eq!(item.number(), self.0, "out of order");
        self.0 += 1;
    }
}

impl<T: Item> Handler<T> for InOrder {
    type Error = std::convert::Infallible;

    #[inline]
    fn handle(&mut self, item: T) -> Result<(), Self::Error> {
        self.see(&item);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, outcome: Outcome) {
        assert!(matches!(outcome, Outcome::Drained));
    }
}

fn spinning<T: Item>(items: u64) -> f64 {
    let (mut producer, mut stepper) =
        SpWorker::builder().capacity(CAPACITY).stepped::<T, _>(InOrder(0)).expect("a worker");
    let queue = stepper.queue();
    let cost = per_operation(items, || {
        let consumer = thread::spawn(move || {
            while !stepper.has_ended() {
                stepper.step(CAPACITY);
                std::hint::spin_loop();
            }
        });
        for number in 0..items {
            while producer.try_dispatch(T::new(number)).is_err() {
                std::hint::spin_loop();
            }
        }
        drop(producer);
        consumer.join().expect("the consumer");
    });
    check(&queue.counters(), items);
    cost
}

/// [`InOrder`], a batch at a time.
struct InBatches(InOrder);

impl<T: Item> Handler<T> for InBatches {
    type Error = std::convert::Infallible;

    fn handle(&mut self, item: T) -> Result<(), Self::Error> {
        self.0.handle(item)
    }

    #[inline]
    fn handle_batch(&mut self, batch: Batch<'_, T>) -> Result<(), Self::Error> {
        batch.for_each(|item| self.0.see(&item));
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

fn spinning_batches<T: Item>(items: u64) -> f64 {
    let handler = InBatches(InOrder(0));
    let (mut producer, mut stepper) =
        SpWorker::builder().capacity(CAPACITY).stepped::<T, _>(handler).expect("a worker");
    let queue = stepper.queue();
    let cost = per_operation(items, || {
        let consumer = thread::spawn(move || {
            while !stepper.has_ended() {
                stepper.step(CAPACITY);
                std::hint::spin_loop();
            }
        });
        for first in (0..items).step_by(BATCH as usize) {
            let batch = (first..items.min(first + BATCH)).map(T::new);
            producer.dispatch_all(batch).expect("an open worker");
        }
        drop(producer);
        consumer.join().expect("the consumer");
    });
    check(&queue.counters(), items);
    cost
}

fn blocking<T: Item>(items: u64) -> f64 {
    let (mut producer, worker) = SpWorker::builder()
        .capacity(CAPACITY)
        .start::<T, _>(InOrder(0), CancellationToken::new())
        .expect("a worker");
    let cost = per_operation(items, || {
        for number in 0..items {
            producer.dispatch(T::new(number)).expect("an open worker");
        }
        drop(producer);
        worker.completion().wait().expect("drained");
    });
    check(&worker.counters(), items);
    cost
}

fn check(counters: &tidegate::worker::Counters, items: u64) {
    assert_eq!((counters.dispatched, counters.handled, counters.errors), (items, items, 0));
}

fn rtrb<T: Item>(items: u64) -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(CAPACITY);
    per_operation(items, || {
        let consumer = thread::spawn(move || {
            let mut order = InOrder(0);
            while order.0 < items {
                match consumer.pop() {
                    Ok(item) => order.see(&item),
                    Err(_) => std::hint::spin_loop(),
                }
            }
        });
        for number in 0..items {
            while producer.push(T::new(number)).is_err() {
                std::hint::spin_loop();
            }
        }
        consumer.join().expect("the consumer");
    })
}

fn rtrb_chunks<T: Item>(items: u64) -> f64 {
    let (mut producer, mut consumer) = rtrb::RingBuffer::<T>::new(CAPACITY);
    per_operation(items, || {
        let consumer = thread::spawn(move || {
            let mut order = InOrder(0);
            while order.0 < items {
                match consumer.read_chunk(consumer.slots()) {
                    Ok(chunk) => chunk.into_iter().for_each(|item| order.see(&item)),
                    Err(_) => std::hint::spin_loop(),
                }
            }
        });
        for first in (0..items).step_by(BATCH as usize) {
            let length = BATCH.min(items - first) as usize;
            let chunk = loop {
                match producer.write_chunk_uninit(length) {
                    Ok(chunk) => break chunk,
                    Err(_) => std::hint::spin_loop(),
                }
            };
            chunk.fill_from_iter((first..).map(T::new));
        }
        consumer.join().expect("the consumer");
    })
}

fn main() {
    let (rounds, items) = if short() { (15, 1_000_000) } else { (21, 5_000_000) };
    let mut report = Report::default();
    if wanted("slots") {
        slots::run(&mut report, rounds, items / 2);
    }
    if wanted("tasks") {
        tasks::run(&mut report, rounds, items / 2);
    }
    if wanted("cores") {
        cores::run(&mut report, rounds, items / 2, if short() { 200 } else { 1_000 });
    }
    if wanted("threads") {
        threads(&mut report, rounds, items);
    }
    report.close();
}

/// Whether a part was asked for: `-- tasks` runs that part alone.
fn wanted(part: &str) -> bool {
    let mut asked = std::env::args().skip(1).filter(|a| !a.starts_with('-')).peekable();
    asked.peek().is_none() || asked.any(|name| name == part)
}

/// Ours, then its peers.
fn with<'a>(ours: Subject<'a>, peers: Vec<Subject<'a>>) -> Vec<Subject<'a>> {
    std::iter::once(ours).chain(peers).collect()
}

fn threads(report: &mut Report, rounds: usize, items: u64) {
    report.case(
        "workers",
        "sp-u64",
        rounds,
        vec![ours("sp-worker", || spinning::<u64>(items)), peer("rtrb", || rtrb::<u64>(items))],
    );
    report.case(
        "workers",
        "sp-64b",
        rounds,
        vec![
            ours("sp-worker", || spinning::<[u64; 8]>(items)),
            peer("rtrb", || rtrb::<[u64; 8]>(items)),
        ],
    );
    report.case(
        "workers",
        "sp-batch",
        rounds,
        vec![
            ours("sp-worker", || spinning_batches::<u64>(items)),
            peer("rtrb-chunks", || rtrb_chunks::<u64>(items)),
        ],
    );
    report.case(
        "workers",
        "sp-u64-blocking",
        rounds,
        with(ours("sp-worker", || blocking::<u64>(items)), channels::all::<u64>(items)),
    );
    report.case(
        "workers",
        "sp-64b-blocking",
        rounds,
        with(ours("sp-worker", || blocking::<[u64; 8]>(items)), channels::all::<[u64; 8]>(items)),
    );
}
