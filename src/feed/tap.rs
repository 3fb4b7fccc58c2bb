//! Recording beside the live path: what a feed receives goes to a thread that writes.
//!
//! ```text
//! feed's thread ─▶ RecordTap: a batch in memory ─▶ SpWorker ─▶ Rolling: the files
//! ticks (each 100 ms) ─┘                            (a thread a feed)
//! ```
//!
//! A record costs the feed a lock that nobody else holds but for the tick, and a copy. A batch goes
//! on to the worker when it is full, and with each tick, so that a quiet feed's records are on disk
//! as soon as a busy one's: within [`RecorderOptions::flush_age`](super::RecorderOptions) and two
//! ticks.
//!
//! *Why not an item a record:* each would be an allocation, and at a few thousand a second a wake of
//! the parked worker, which costs the feed more than all else it does with the message. *Why a lock
//! and not the feed alone:* a feed that waits for its venue cannot hand on what it holds.
//!
//! # When the disk cannot keep up
//!
//! The feed never waits for the recorder. Once [`TapOptions::queue_bytes`] wait, records are left
//! out and counted, and the first that fits again is preceded by a mark of the gap
//! ([`Mark::Gap`]), so that the file itself says where how many are missing.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::format::Mark;
use super::recorder::RecordError;
use super::rolling::{Rolling, RollingSummary};
use crate::clock::Clock;
use crate::worker::{
    ByValue, Handler, Outcome, SpProducer, SpWorker, StartError, Worker, WorkerError,
};

mod batch;

use batch::{BATCH_BYTES, Batch, Entry};

/// How often batches that are not full are handed on.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between two tries to write after a failure: a second.
const RETRY_TICKS: u32 = 10;
/// Emptied batches that are kept to be filled again.
const SPARE_BATCHES: usize = 2;

/// How much a recorder may hold.
#[derive(Clone, Copy, Debug)]
pub struct TapOptions {
    /// Bytes that may wait for the disk.
    pub queue_bytes: usize,
}

impl Default for TapOptions {
    /// 32 MiB.
    fn default() -> Self {
        Self { queue_bytes: 32 << 20 }
    }
}

/// What a recorder has done; readable at any time.
#[derive(Debug, Default)]
pub struct RecordFigures {
    records: AtomicU64,
    bytes: AtomicU64,
    files: AtomicU64,
    failed: AtomicU64,
    overflowed: AtomicU64,
    waiting: AtomicUsize,
    problem: Mutex<Option<String>>,
}

impl RecordFigures {
    /// Records in the files, flushed.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Bytes of the files.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Files begun.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Records lost because they could not be written.
    #[must_use]
    pub fn lost_to_failures(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Records lost because the disk did not keep up.
    #[must_use]
    pub fn lost_to_overflow(&self) -> u64 {
        self.overflowed.load(Ordering::Relaxed)
    }

    /// Bytes that wait for the recorder's thread.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The last failure, in words.
    #[must_use]
    pub fn last_problem(&self) -> Option<String> {
        guard(&self.problem).clone()
    }

    fn show(&self, summary: RollingSummary) {
        self.records.store(summary.records, Ordering::Relaxed);
        self.bytes.store(summary.file_bytes, Ordering::Relaxed);
        self.files.store(summary.files, Ordering::Relaxed);
        self.failed.store(summary.lost, Ordering::Relaxed);
    }
}

/// Where a feed puts what it receives. Dropping it loses nothing: [`Recorders::finish`] ends it.
#[derive(Debug)]
pub struct RecordTap {
    half: Arc<Mutex<Half>>,
    figures: Arc<RecordFigures>,
}

impl RecordTap {
    /// Takes a message, received at `receive_time` (ns since the Unix epoch). Never waits for the
    /// disk.
    #[inline]
    pub fn message(&mut self, receive_time: i64, text: &[u8]) {
        let mut half = guard(&self.half);
        if half.lost.is_none() && half.batch.fits(text) {
            half.batch.put_message(receive_time, text);
        } else {
            half.add(Entry::Message(receive_time, text));
        }
    }

    /// Takes a mark.
    pub fn mark(&mut self, receive_time: i64, mark: Mark) {
        guard(&self.half).add(Entry::Mark(receive_time, mark));
    }

    /// What has become of what was taken.
    #[must_use]
    pub fn figures(&self) -> &Arc<RecordFigures> {
        &self.figures
    }
}

/// The recorders of a program: their threads, and the one that gives them ticks.
pub struct Recorders {
    clock: Clock,
    running: Vec<Running>,
    ticks: Arc<Ticks>,
    ticker: Option<JoinHandle<()>>,
}

struct Running {
    name: String,
    half: Arc<Mutex<Half>>,
    worker: Worker<ByValue>,
    figures: Arc<RecordFigures>,
}

#[derive(Default)]
struct Ticks {
    halves: Mutex<Vec<Arc<Mutex<Half>>>>,
    stop: Mutex<bool>,
    stopped: Condvar,
}

impl Recorders {
    /// None yet. `clock` tells how long something has waited.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, running: Vec::new(), ticks: Arc::default(), ticker: None }
    }

    /// Starts a recorder and answers the tap to it.
    ///
    /// # Errors
    ///
    /// [`StartError`] if a thread cannot be made.
    pub fn start(
        &mut self,
        name: &str,
        rolling: Rolling,
        options: TapOptions,
    ) -> Result<RecordTap, StartError> {
        let figures = Arc::new(RecordFigures::default());
        figures.show(rolling.summary());
        let spare = Arc::new(Mutex::new(Vec::with_capacity(SPARE_BATCHES)));
        let writer = Writer {
            name: name.to_owned(),
            rolling: Some(rolling),
            figures: figures.clone(),
            spare: spare.clone(),
            ticks_since_failure: 0,
        };
        // The bytes are what bounds; there are more places than batches that fit.
        let places = (options.queue_bytes / BATCH_BYTES * 2).clamp(16, 1 << 16);
        let (producer, worker) = SpWorker::builder()
            .name(format!("record-{name}"))
            .capacity(places)
            .start(writer, CancellationToken::new())?;
        let half = Arc::new(Mutex::new(Half {
            producer,
            batch: Batch::roomy(),
            lost: None,
            most: options.queue_bytes,
            figures: figures.clone(),
            spare,
        }));
        self.tick(half.clone())?;
        self.running.push(Running {
            name: name.to_owned(),
            half: half.clone(),
            worker,
            figures: figures.clone(),
        });
        Ok(RecordTap { half, figures })
    }

    /// The figures of each recorder, by the name it was started with.
    pub fn figures(&self) -> impl Iterator<Item = (&str, &RecordFigures)> {
        self.running.iter().map(|running| (running.name.as_str(), &*running.figures))
    }

    /// Hands on what the taps hold, closes the files, and waits for that, at most `most`. `false`
    /// if it took longer; the files are then good up to their last flush.
    pub fn finish(&mut self, most: Duration) -> bool {
        let until = self.clock.now() + most;
        *guard(&self.ticks.stop) = true;
        self.ticks.stopped.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        let now = self.clock.wall();
        for running in &self.running {
            let mut half = guard(&running.half);
            while !(half.send(Some(now)) && half.batch.is_empty()) && self.clock.now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            half.producer.complete();
        }
        self.running.iter().fold(true, |all, running| {
            let left = until.since(self.clock.now());
            running.worker.completion().wait_timeout(left) && all
        })
    }

    /// Gives ticks to one half more.
    fn tick(&mut self, half: Arc<Mutex<Half>>) -> Result<(), StartError> {
        guard(&self.ticks.halves).push(half);
        if self.ticker.is_none() {
            let (ticks, clock) = (self.ticks.clone(), self.clock.clone());
            let thread = std::thread::Builder::new().name("record-ticks".to_owned());
            let spawned = thread.spawn(move || ticks.run(&clock));
            self.ticker = Some(spawned.map_err(StartError::Spawn)?);
        }
        Ok(())
    }
}

impl Ticks {
    fn run(&self, clock: &Clock) {
        let mut stop = guard(&self.stop);
        while !*stop {
            let woken = self.stopped.wait_timeout(stop, TICK);
            stop = woken.map_or_else(|poisoned| poisoned.into_inner().0, |(stop, _)| stop);
            let now = clock.wall();
            for half in &*guard(&self.halves) {
                guard(half).send(Some(now));
            }
        }
    }
}

/// The half of the feed and of the ticks.
struct Half {
    producer: SpProducer<Sent>,
    batch: Batch,
    /// Records left out that no mark tells of yet: the time of the first, and how many.
    lost: Option<(i64, u64)>,
    most: usize,
    figures: Arc<RecordFigures>,
    spare: Arc<Mutex<Vec<Batch>>>,
}

/// A batch on its way, and the wall time if a tick sends it.
struct Sent {
    batch: Batch,
    tick: Option<i64>,
}

impl Half {
    #[cold]
    fn add(&mut self, entry: Entry<'_>) {
        let full = !self.batch.is_empty() && self.batch.len() + entry.len() > BATCH_BYTES;
        // Behind a loss, nothing goes into the batch that the mark of the gap would come after.
        if (full || self.lost.is_some()) && !self.send(None) {
            self.lose(entry.time());
            return;
        }
        self.batch.put(entry);
    }

    /// Hands on the batch; `false` if the recorder has no room, and it stays here.
    fn send(&mut self, tick: Option<i64>) -> bool {
        let bytes = self.batch.len();
        let waiting = &self.figures.waiting;
        if waiting.load(Ordering::Relaxed) + bytes > self.most.max(bytes) {
            return false;
        }
        // A tick with nothing in it is sent too: what the recorder holds may be due.
        waiting.fetch_add(bytes, Ordering::Relaxed);
        let batch = std::mem::take(&mut self.batch);
        match self.producer.try_dispatch(Sent { batch, tick }) {
            Ok(()) => {
                self.batch = guard(&self.spare).pop().unwrap_or_else(Batch::roomy);
                if let Some((time, lost)) = self.lost.take() {
                    self.batch.put(Entry::Mark(time, Mark::Gap { lost }));
                }
                true
            }
            Err(refused) => {
                waiting.fetch_sub(bytes, Ordering::Relaxed);
                self.batch = refused.into_item().batch;
                false
            }
        }
    }

    #[cold]
    fn lose(&mut self, time: i64) {
        let (first, lost) = self.lost.unwrap_or((time, 0));
        self.lost = Some((first, lost + 1));
        self.figures.overflowed.fetch_add(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Half {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Half").field("batch", &self.batch.len()).finish_non_exhaustive()
    }
}

/// The recorder's thread.
struct Writer {
    name: String,
    /// `None` once closed.
    rolling: Option<Rolling>,
    figures: Arc<RecordFigures>,
    spare: Arc<Mutex<Vec<Batch>>>,
    ticks_since_failure: u32,
}

impl Handler<Sent> for Writer {
    type Error = RecordError;

    /// Writes a batch to its end; of several failures the first is told.
    fn handle(&mut self, Sent { mut batch, tick }: Sent) -> Result<(), RecordError> {
        let Some(rolling) = &mut self.rolling else { return Ok(()) };
        let mut outcome = Ok(());
        for entry in batch.entries() {
            let written = match entry {
                Entry::Message(time, text) => rolling.message(time, text),
                Entry::Mark(time, mark) => rolling.mark(time, mark),
            };
            outcome = outcome.and(written);
        }
        if let Some(now) = tick {
            outcome = outcome.and(rolling.flush_due(now));
            self.ticks_since_failure += 1;
            if rolling.has_failed() && self.ticks_since_failure >= RETRY_TICKS {
                self.ticks_since_failure = 0;
                rolling.retry();
            }
        }
        if outcome.is_err() {
            self.ticks_since_failure = 0;
        }
        self.figures.show(rolling.summary());
        self.figures.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
        batch.clear();
        let mut spare = guard(&self.spare);
        if spare.len() < SPARE_BATCHES {
            spare.push(batch);
        }
        outcome
    }

    fn on_error(&mut self, error: WorkerError<RecordError>) {
        let error = error.to_string();
        tracing::error!(feed = self.name, error, "recording failed");
        *guard(&self.figures.problem) = Some(error);
    }

    fn on_completed(&mut self, _outcome: Outcome) {
        let Some(rolling) = self.rolling.take() else { return };
        let before = rolling.summary();
        match rolling.finish() {
            Ok(summary) => self.figures.show(summary),
            Err(error) => {
                self.figures.show(before);
                tracing::error!(feed = self.name, %error, "closing a recording failed");
                *guard(&self.figures.problem) = Some(error.to_string());
            }
        }
    }
}

/// What a panic left behind is still what it was.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
