//! Two sides, and how a run of them is timed.

use super::super::{per_operation, short};
use super::load::Load;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// When the consumer drains.
#[derive(Clone, Copy)]
pub enum Cadence {
    /// Without a pause: nearly every value is delivered, every line travels.
    Sweep,
    /// This long after the beginning of the drain before.
    Every(Duration),
}

impl Cadence {
    /// Runs a consumer until it has seen `done` and then found nothing more. A drain takes at most
    /// every key once: chasing a producer that makes keys dirty again would be a sweep.
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
    fn consume(self, done: &AtomicBool, most: usize, consumer: &mut impl Consume) {
        loop {
            let began = Instant::now();
            let last = done.load(Ordering::Acquire);
            let drained = consumer.drain(most);
            if last && drained == 0 {
                return;
            }
            match self {
                Self::Sweep => std::hint::spin_loop(),
                // Not slept: the shortest sleep is longer than the shorter cadence.
                Self::Every(pause) => {
                    while began.elapsed() < pause && !done.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            }
        }
    }
}

/// A producing side.
pub trait Produce {
    /// Dispatches the values of a range of numbers.
    fn produce(&mut self, numbers: Range<u64>, load: &Load);
}

/// A consuming side.
pub trait Consume: Send {
    /// Takes up to `most` values without waiting; how many it was.
    fn drain(&mut self, most: usize) -> usize;
    /// Checks what has come, once all of `numbers` was dispatched and drained.
    fn check(&mut self, numbers: Range<u64>, load: &Load);
}

/// Both sides of a subject. They live through all rounds, so that none is measured cold.
pub struct Pair<'a, P, C> {
    /// The producing side.
    pub producer: P,
    /// The consuming side.
    pub consumer: C,
    load: &'a Load,
    cadence: Cadence,
    dispatches: u64,
    next: u64,
}

impl<'a, P: Produce, C: Consume> Pair<'a, P, C> {
    /// A pair of sides; each run is of `dispatches`.
    pub fn new((producer, consumer): (P, C), load: &'a Load, cadence: Cadence) -> Self {
        let dispatches = match (cadence, short()) {
            (Cadence::Sweep, true) => 100_000,
            (Cadence::Every(pause), true) if pause.as_micros() < 100 => 150_000,
            (_, true) => 300_000,
            (Cadence::Sweep, false) => 1_000_000,
            (_, false) => 4_000_000,
        };
        Self { producer, consumer, load, cadence, dispatches, next: 1 }
    }

    /// The numbers of the next run.
    pub fn numbers(&self) -> Range<u64> {
        self.next..self.next + self.dispatches
    }

    /// One run: the producer's cost of a dispatch, in nanoseconds.
    pub fn run(&mut self) -> f64 {
        let numbers = self.numbers();
        self.next = numbers.end;
        let (ready, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let Self { producer, consumer, load, cadence, dispatches, .. } = self;
        let cost = thread::scope(|scope| {
            let most = load.keys as usize;
            let (ready, done, cadence) = (&ready, &done, *cadence);
            scope.spawn(move || {
                stay_on_core(1);
                ready.store(true, Ordering::Release);
                cadence.consume(done, most, consumer);
            });
            stay_on_core(0);
            while !ready.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let cost = per_operation(*dispatches, || producer.produce(numbers.clone(), load));
            done.store(true, Ordering::Release);
            cost
        });
        self.consumer.check(numbers, self.load);
        cost
    }
}

/// Keeps the calling thread on a core of its own. Two sides that share one take turns, and no line
/// ever travels: on a busy machine the scheduler does that to some subjects and not to others.
fn stay_on_core(core: usize) {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(core);
    // Refused on a machine of one core, where nothing is to be separated.
    let _ = rustix::thread::sched_setaffinity(None, &cores);
}
