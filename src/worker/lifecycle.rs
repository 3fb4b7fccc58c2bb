//! What both ends of a worker share, whatever they carry: positions, counts, the stop word, the
//! two sleepers and the completion.
//!
//! # Closing
//!
//! Anybody may complete or cancel a worker while its producer is in the middle of a dispatch. Which
//! items were accepted must still be one and the same answer on both sides:
//!
//! * *The consumer closes*: it puts [`CLOSED`] up, passes a heavy fence, reads the tail, publishes
//!   it as the final one and puts [`FINAL`] up. It handles (or drops) everything below, nothing
//!   above.
//! * *The producer publishes* an item, passes a light fence and looks at the stop word. If `CLOSED`
//!   is not up, the consumer's read of the tail is sure to see the item.
//! * *They meet*: the producer sees `CLOSED`, waits for `FINAL` (the consumer is between two
//!   instructions), and compares. Below the final tail the item was accepted; above it the consumer
//!   will never look, and the producer takes the item back and refuses it.
//!
//! # Orderings
//!
//! | atomic | written by | order | why |
//! |---|---|---|---|
//! | `tail` | producer | release, read acquire | makes the item of a position visible |
//! | `head` | consumer | release, read acquire | the place was read before it is written again |
//! | `passed` | consumer | release, read acquire | the key of a place is not read any more |
//! | `flags` | all | read-modify-writes acquire-release | a stop and a sleeper meet in this one word |
//! | `flags` after `tail`, after `head` | | relaxed, behind a light fence | see [`super::fence`] |
//! | `final_tail` | consumer | relaxed, before `FINAL` (release) | read after `FINAL` (acquire) |
//! | `polled` | consumer | release, read acquire | who finds a poll under way then finds its thread |
//! | the task's waker | consumer, cancel | under a mutex, before and after the flag | cancel sees the waker, or the poll sees the flag |
//! | counts | their one writer | release, read acquire | a snapshot never shows more out than in |

mod consume;
mod produce;

use super::completion::{Completion, CompletionCell, Fault};
use super::fence;
use super::ring::{Capacity, PopCursor, PushCursor};
use super::sync::{Arc, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Mutex, Padded, lock, thread};
use super::wait::{WaitSlot, WaitStrategy};
use std::error::Error;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

const COMPLETING: u32 = 1;
const FAULTED: u32 = 1 << 1;
const CANCELLED: u32 = 1 << 2;
const CLOSED: u32 = 1 << 3;
const FINAL: u32 = 1 << 4;
const CONSUMER_WAITS: u32 = 1 << 5;
const PRODUCER_WAITS: u32 = 1 << 6;
/// The outcome is decided.
const ENDED: u32 = 1 << 7;
const STOPPING: u32 = COMPLETING | CANCELLED | CLOSED;

/// Why a worker takes no more items.
// A word wide: next to a value in a result, a single byte would split the value's copies at odd
// places, which costs a stalled load a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum CloseReason {
    /// It was completed: what was accepted before is still handled.
    Completed,
    /// It was completed with an error.
    Faulted,
    /// It was stopped hard, or its consumer is gone.
    Cancelled,
}

impl std::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Completed => "completed",
            Self::Faulted => "faulted",
            Self::Cancelled => "cancelled",
        })
    }
}

/// What a consumer finds when it looks for the next item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Item,
    /// Nothing now.
    Empty,
    /// Nothing now and nothing more to be accepted.
    Ended,
    /// Stopped hard.
    Cancelled,
}

/// What a consumer in the middle of a run is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attention {
    None,
    /// The producer waits for a place.
    Room,
    Cancelled,
}

/// Why a blocked producer did not get a place.
pub(super) enum NoRoom {
    Closed(CloseReason),
    /// The caller is the consumer itself: nobody would ever make room.
    WouldDeadlock,
}

/// Shared by the two ends and by all who watch.
pub(super) struct Core {
    tail: Padded<AtomicUsize>,
    head: Padded<AtomicUsize>,
    consumer: Padded<ConsumerLine>,
    producer: Padded<ProducerLine>,
    flags: Padded<AtomicU32>,
    final_tail: AtomicUsize,
    capacity: Capacity,
    start: usize,
    consumer_waiter: WaitSlot,
    producer_waiter: WaitSlot,
    fault: Mutex<Option<Fault>>,
    completion: Arc<CompletionCell>,
    strategy: WaitStrategy,
    /// How many free places an awaiting producer holds out for; see [`Core::poll_room`].
    good_room: usize,
    /// The consumer's task, to be woken by a hard stop also while its handler is suspended.
    task: WaitSlot,
    consumer_thread: Mutex<Option<thread::ThreadId>>,
    /// Whether the consumer is a task, and being polled; see [`Core::waits_for_itself`].
    polled: AtomicU8,
}

/// Values of `polled`.
const NO_TASK: u8 = 0;
const TASK_AT_REST: u8 = 1;
const TASK_POLLED: u8 = 2;

/// Written by the consumer alone, as the head is, which the producer reads much oftener.
#[derive(Default)]
struct ConsumerLine {
    passed: AtomicUsize,
    handled: AtomicU64,
    errors: AtomicU64,
    discarded: AtomicU64,
}

/// Written by the producer alone.
#[derive(Default)]
struct ProducerLine {
    conflated: AtomicU64,
}

/// A snapshot of a worker's counts.
///
/// Each is counted where it happens. Once both ends are quiet,
/// `dispatched = handled + conflated + discarded + pending`, pending being
/// [`WorkerQueue::queued`](super::WorkerQueue::queued). While they run, the snapshot never shows
/// more going out than came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Items accepted from the producer (a 32-bit machine counts those that took a place of the ring
    /// modulo 2³²).
    pub dispatched: u64,
    /// Items that never reach the handler by themselves: superseded by a newer value of their key,
    /// or folded into the total of their key.
    pub conflated: u64,
    /// Items given to the handler, those included that it failed on.
    pub handled: u64,
    /// Errors and panics reported to `on_error`.
    pub errors: u64,
    /// Items dropped unhandled by a hard stop.
    pub discarded: u64,
}

// What all may do.
impl Core {
    pub(super) fn new(capacity: Capacity, start: usize, strategy: WaitStrategy) -> Arc<Self> {
        Self::with_good_room(capacity, start, strategy, 1)
    }

    /// With a consumer that wakes a waiting producer only for `good_room` places, if it goes on.
    pub(super) fn with_good_room(
        capacity: Capacity,
        start: usize,
        strategy: WaitStrategy,
        good_room: usize,
    ) -> Arc<Self> {
        fence::prepare();
        let core = Self {
            tail: Padded(AtomicUsize::new(start)),
            head: Padded(AtomicUsize::new(start)),
            consumer: Padded::default(),
            producer: Padded::default(),
            flags: Padded(AtomicU32::new(0)),
            final_tail: AtomicUsize::new(start),
            capacity,
            start,
            consumer_waiter: WaitSlot::new(),
            producer_waiter: WaitSlot::new(),
            fault: Mutex::new(None),
            completion: CompletionCell::new(),
            strategy,
            good_room,
            task: WaitSlot::new(),
            consumer_thread: Mutex::new(None),
            polled: AtomicU8::new(NO_TASK),
        };
        core.consumer.0.passed.store(start, Relaxed);
        Arc::new(core)
    }

    pub(super) const fn capacity(&self) -> Capacity {
        self.capacity
    }

    pub(super) const fn push_cursor(&self) -> PushCursor {
        PushCursor::new(self.start, self.capacity)
    }

    pub(super) const fn pop_cursor(&self) -> PopCursor {
        PopCursor::new(self.start)
    }

    /// Places taken, approximately: the two positions are read one after the other.
    pub(super) fn queued(&self) -> usize {
        let head = self.head.0.load(Acquire);
        self.tail.0.load(Acquire).wrapping_sub(head).min(self.capacity.get())
    }

    pub(super) fn counters(&self) -> Counters {
        // Out before in, so that no snapshot shows an item leave that has not come.
        let consumer = &self.consumer.0;
        let errors = consumer.errors.load(Acquire);
        let handled = consumer.handled.load(Acquire);
        let discarded = consumer.discarded.load(Acquire);
        let conflated = self.producer.0.conflated.load(Acquire);
        // Every item that was pushed has its position.
        let pushed = self.tail.0.load(Acquire).wrapping_sub(self.start) as u64;
        // What was superseded or folded took no place, so the two sorts are counted apart.
        Counters { dispatched: pushed + conflated, conflated, handled, errors, discarded }
    }

    pub(super) fn completion(&self) -> Completion {
        CompletionCell::completion(&self.completion)
    }

    /// No more items; what was accepted is handled. `false` if the worker stops already.
    pub(super) fn complete(&self) -> bool {
        let former = self.flags.0.fetch_or(COMPLETING, AcqRel);
        self.wake_all();
        former & STOPPING == 0
    }

    /// Like [`complete`](Self::complete), with an error for the completion.
    pub(super) fn fault(&self, error: Box<dyn Error + Send + Sync>) -> bool {
        let mut fault = lock(&self.fault);
        // Put down before the flag goes up: the consumer reads it once it sees the flag.
        if fault.is_some() {
            return false;
        }
        *fault = Some(Fault::new(error));
        let raised = self.flags.0.fetch_update(AcqRel, Acquire, |flags| {
            (flags & STOPPING == 0).then_some(flags | COMPLETING | FAULTED)
        });
        if raised.is_err() {
            *fault = None;
        }
        drop(fault);
        self.wake_all();
        raised.is_ok()
    }

    /// Stops hard. `false` if the outcome is decided already, or it was cancelled before.
    pub(super) fn cancel(&self) -> bool {
        let raised = self.flags.0.fetch_update(AcqRel, Acquire, |flags| {
            (flags & (ENDED | CANCELLED) == 0).then_some(flags | CANCELLED)
        });
        self.wake_all();
        self.task.wake();
        raised.is_ok()
    }

    #[inline(always)]
    pub(super) fn is_cancelled(&self) -> bool {
        self.flags.0.load(Acquire) & CANCELLED != 0
    }

    fn wake_all(&self) {
        self.wake_consumer();
        self.wake_producer();
    }

    fn wake_consumer(&self) {
        if self.flags.0.fetch_and(!CONSUMER_WAITS, AcqRel) & CONSUMER_WAITS != 0 {
            self.consumer_waiter.wake();
        }
    }

    fn wake_producer(&self) {
        if self.flags.0.fetch_and(!PRODUCER_WAITS, AcqRel) & PRODUCER_WAITS != 0 {
            self.producer_waiter.wake();
        }
    }
}

const fn reason(flags: u32) -> CloseReason {
    if flags & CANCELLED != 0 {
        CloseReason::Cancelled
    } else if flags & FAULTED != 0 {
        CloseReason::Faulted
    } else {
        CloseReason::Completed
    }
}
