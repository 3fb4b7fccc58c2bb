//! What the benches of the two keyed workers share: loads, cadences, and channels of dirty keys.

use super::{per_operation, short};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// 64 bytes, all of them told by one number.
#[derive(Clone, Copy, Default)]
pub struct Value(pub [u64; 8]);

impl Value {
    /// The value that stands for `number`.
    #[inline(always)]
    pub fn new(number: u64) -> Self {
        Self([number; 8])
    }

    /// The number that the value stands for. Checks that the value is whole.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        assert!(self.0.iter().all(|word| *word == self.0[0]), "a torn value");
        self.0[0]
    }

    /// Adds up, word by word.
    #[inline(always)]
    pub fn add(&mut self, other: Self) {
        for (sum, word) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(word);
        }
    }
}

/// How often a key is dispatched to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// All alike, in random order.
    Uniform,
    /// The key of rank r in proportion to 1 / r. Low ranks have low indices: the hottest keys lie
    /// beside each other, as they do if indices are given in the order of first appearance.
    Zipf,
}

/// Which key each dispatch goes to: a random sequence, repeated.
pub struct Load {
    /// The number of keys.
    pub keys: u32,
    /// A power of two of keys.
    pub sequence: Vec<u32>,
}

impl Load {
    /// A sequence about four times as long as there are keys; always the same one.
    pub fn new(keys: u32, spread: Spread) -> Self {
        let length = (keys as usize * 4).next_power_of_two().max(4096);
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            // splitmix64
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = seed;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        };
        let mut below = 0.0;
        let ranks: Vec<f64> = (1..=keys)
            .map(|rank| {
                below += 1.0 / f64::from(rank);
                below
            })
            .collect();
        let key = |word: u64| match spread {
            Spread::Uniform => (word % u64::from(keys)) as u32,
            Spread::Zipf => {
                let point = (word >> 11) as f64 / (1_u64 << 53) as f64 * below;
                ranks.partition_point(|up_to| *up_to <= point) as u32
            }
        };
        Self { keys, sequence: (0..length).map(|_| key(random())).collect() }
    }

    /// The key of a dispatch.
    #[inline(always)]
    pub fn key(&self, number: u64) -> u32 {
        self.sequence[number as usize & (self.sequence.len() - 1)]
    }

    /// One thing a key, in the order of the sequence.
    pub fn in_sequence<T: Copy>(&self, of_key: &[T]) -> Vec<T> {
        self.sequence.iter().map(|key| of_key[*key as usize]).collect()
    }
}

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
        let done = AtomicBool::new(false);
        let Self { producer, consumer, load, cadence, dispatches, .. } = self;
        let cost = thread::scope(|scope| {
            let most = load.keys as usize;
            let (done, cadence) = (&done, *cadence);
            scope.spawn(move || cadence.consume(done, most, consumer));
            let cost = per_operation(*dispatches, || producer.produce(numbers.clone(), load));
            done.store(true, Ordering::Release);
            cost
        });
        self.consumer.check(numbers, self.load);
        cost
    }
}

/// A bounded queue of dirty keys.
pub trait Queue {
    /// Its sending side.
    type Sender<T: Send>: Send;
    /// Its receiving side.
    type Receiver<T: Send>: Send;
    /// Both sides.
    fn new<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
    /// Sends; waits while the queue is full.
    fn send<T: Send>(sender: &Self::Sender<T>, item: T);
    /// Receives without waiting.
    fn receive<T: Send>(receiver: &mut Self::Receiver<T>) -> Option<T>;
}

/// tokio's bounded mpsc.
pub struct Tokio;

impl Queue for Tokio {
    type Sender<T: Send> = tokio::sync::mpsc::Sender<T>;
    type Receiver<T: Send> = tokio::sync::mpsc::Receiver<T>;

    fn new<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        tokio::sync::mpsc::channel(capacity)
    }

    fn send<T: Send>(sender: &Self::Sender<T>, item: T) {
        sender
            .try_send(item)
            .or_else(|full| sender.blocking_send(full.into_inner()))
            .unwrap_or_else(|_| panic!("a closed channel"));
    }

    fn receive<T: Send>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok()
    }
}

/// crossbeam's bounded channel.
pub struct Crossbeam;

impl Queue for Crossbeam {
    type Sender<T: Send> = crossbeam_channel::Sender<T>;
    type Receiver<T: Send> = crossbeam_channel::Receiver<T>;

    fn new<T: Send>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>) {
        crossbeam_channel::bounded(capacity)
    }

    fn send<T: Send>(sender: &Self::Sender<T>, item: T) {
        sender.send(item).unwrap_or_else(|_| panic!("a closed channel"));
    }

    fn receive<T: Send>(receiver: &mut Self::Receiver<T>) -> Option<T> {
        receiver.try_recv().ok()
    }
}

/// The cases of both benches: number of keys, its name, spread, cadence and its name, by handle.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (keys, name) in [(10, "10"), (1_000, "1000"), (16_384, "16k"), (131_072, "128k")] {
        for spread in [Spread::Uniform, Spread::Zipf] {
            if spread == Spread::Zipf && (keys == 10 || keys == 131_072) {
                continue;
            }
            for (cadence, cadence_name) in [
                (Cadence::Sweep, "sweep"),
                (Cadence::Every(Duration::from_micros(20)), "20us"),
                (Cadence::Every(Duration::from_micros(200)), "conflated"),
            ] {
                for by_handle in [false, true] {
                    let way = if by_handle { "handle" } else { "key" };
                    let tail = if spread == Spread::Zipf { "-zipf" } else { "" };
                    let name = format!("{name}-{cadence_name}-{way}{tail}");
                    if wanted(&name) {
                        cases.push(Case { keys, spread, cadence, by_handle, name });
                    }
                }
            }
        }
    }
    cases
}

/// One case.
pub struct Case {
    /// The number of keys.
    pub keys: u32,
    /// How often each.
    pub spread: Spread,
    /// When the consumer drains.
    pub cadence: Cadence,
    /// Whether keys are resolved beforehand.
    pub by_handle: bool,
    /// Its name in the closing lines.
    pub name: String,
}

/// Rounds a case.
pub fn rounds() -> usize {
    if short() { 5 } else { 15 }
}

/// Places of every queue: each key may be pending.
pub fn capacity(keys: u32) -> usize {
    (keys as usize).next_power_of_two().max(16)
}

/// Whether the command line asks for this case: any of its words is in the name, or it has none.
fn wanted(name: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-')).peekable();
    words.peek().is_none() || words.any(|word| name.contains(&word))
}
