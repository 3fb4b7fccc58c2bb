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
//! | counts | their one writer | release, read acquire | a snapshot never shows more out than in |

use super::completion::{Completion, CompletionCell, Fault, Outcome};
use super::fence;
use super::ring::{Capacity, PopCursor, PushCursor, reached};
use super::sync::{
    Arc, AtomicU32, AtomicU64, AtomicUsize, Mutex, Padded, lock, this_thread, thread,
};
use super::wait::{Patience, WaitSlot, Waiter, wait_out};
use std::error::Error;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

const COMPLETING: u32 = 1;
const FAULTED: u32 = 1 << 1;
const CANCELLED: u32 = 1 << 2;
const CLOSED: u32 = 1 << 3;
const FINAL: u32 = 1 << 4;
const CONSUMER_WAITS: u32 = 1 << 5;
const PRODUCER_WAITS: u32 = 1 << 6;
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
    consumer_thread: Mutex<Option<thread::ThreadId>>,
}

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
    pushed: AtomicU64,
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
    /// Items accepted from the producer.
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
    pub(super) fn new(capacity: Capacity, start: usize) -> Arc<Self> {
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
            consumer_thread: Mutex::new(None),
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
        let pushed = self.producer.0.pushed.load(Acquire);
        // What was superseded or folded took no place, so the two sorts are counted apart: one
        // store a dispatch.
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

    /// Stops hard. `false` if the worker has closed already, or was cancelled before.
    pub(super) fn cancel(&self) -> bool {
        let raised = self.flags.0.fetch_update(AcqRel, Acquire, |flags| {
            (flags & (CLOSED | CANCELLED) == 0).then_some(flags | CANCELLED)
        });
        self.wake_all();
        raised.is_ok()
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

// The producer's side.
impl Core {
    /// Whether items are refused, and why.
    #[inline(always)]
    pub(super) fn refuses(&self) -> Option<CloseReason> {
        let flags = self.flags.0.load(Acquire);
        if flags & STOPPING == 0 { None } else { Some(reason(flags)) }
    }

    #[inline]
    pub(super) fn head(&self) -> usize {
        self.head.0.load(Acquire)
    }

    /// How far the consumer is done with what it took out.
    pub(super) fn passed(&self, target: usize) -> bool {
        reached(self.consumer.0.passed.load(Acquire), target)
    }

    /// Publishes `count` places from the cursor on, which the caller has filled, and wakes the
    /// consumer if it sleeps.
    ///
    /// # Errors
    /// The worker closed before: the cursor has not moved, all the places are the producer's again.
    #[inline(always)]
    pub(super) fn publish(&self, cursor: &mut PushCursor, count: usize) -> Result<(), CloseReason> {
        let position = cursor.position();
        self.tail.0.store(position.wrapping_add(count), Release);
        fence::light();
        if self.flags.0.load(Relaxed) & (CONSUMER_WAITS | CLOSED) != 0 {
            self.published_to_sleeper(position)?;
        }
        cursor.advance(count);
        Ok(())
    }

    #[cold]
    fn published_to_sleeper(&self, position: usize) -> Result<(), CloseReason> {
        if self.flags.0.load(Acquire) & CLOSED != 0 {
            let mut turn = 0;
            while self.flags.0.load(Acquire) & FINAL == 0 {
                wait_out(&mut turn);
            }
            if reached(position, self.final_tail.load(Relaxed)) {
                self.tail.0.store(position, Release);
                return Err(reason(self.flags.0.load(Relaxed)));
            }
            return Ok(());
        }
        self.wake_consumer();
        Ok(())
    }

    /// Blocks until the ring has a free place.
    ///
    /// # Errors
    /// The worker stops, or the caller is its consumer.
    #[cold]
    pub(super) fn wait_for_room(&self, cursor: &mut PushCursor) -> Result<(), NoRoom> {
        let mut patience = Patience::default();
        loop {
            if let Some(reason) = self.refuses() {
                return Err(NoRoom::Closed(reason));
            }
            if cursor.refresh(self.head()) {
                return Ok(());
            }
            if !patience.wait() {
                break;
            }
        }
        if *lock(&self.consumer_thread) == Some(this_thread()) {
            return Err(NoRoom::WouldDeadlock);
        }
        loop {
            self.producer_waiter.register(Waiter::this_thread());
            let before = self.flags.0.fetch_or(PRODUCER_WAITS, AcqRel);
            fence::heavy();
            let room = cursor.refresh(self.head());
            if before & STOPPING == 0 && !room {
                thread::park();
            }
            let flags = self.flags.0.load(Acquire);
            if flags & STOPPING != 0 || cursor.refresh(self.head()) {
                self.flags.0.fetch_and(!PRODUCER_WAITS, AcqRel);
                self.producer_waiter.clear();
                return if flags & STOPPING == 0 {
                    Ok(())
                } else {
                    Err(NoRoom::Closed(reason(flags)))
                };
            }
        }
    }

    #[inline(always)]
    pub(super) fn count_pushed(&self, total: u64) {
        self.producer.0.pushed.store(total, Release);
    }

    #[inline(always)]
    pub(super) fn count_conflated(&self, total: u64) {
        self.producer.0.conflated.store(total, Release);
    }
}

// The consumer's side.
impl Core {
    /// Names the thread that handles.
    pub(super) fn consumer_is(&self, id: thread::ThreadId) {
        *lock(&self.consumer_thread) = Some(id);
    }

    #[inline(always)]
    pub(super) fn next(&self, cursor: &mut PopCursor) -> Next {
        let flags = self.flags.0.load(Acquire);
        if flags & CANCELLED != 0 {
            return Next::Cancelled;
        }
        if cursor.has_item() || cursor.refresh(self.tail.0.load(Acquire)) {
            return Next::Item;
        }
        // The flag was read before the tail, so an item accepted before it may still be missed
        // here; closing looks again.
        if flags & COMPLETING != 0 { Next::Ended } else { Next::Empty }
    }

    /// Frees the places below the cursor, which the caller has emptied.
    #[inline(always)]
    pub(super) fn free(&self, cursor: &PopCursor) {
        self.head.0.store(cursor.position(), Release);
    }

    /// Whether the consumer should look up from what it is doing: the producer waits for a place,
    /// or the worker is cancelled.
    #[inline(always)]
    pub(super) fn asks_for_attention(&self) -> Attention {
        let flags = self.flags.0.load(Relaxed);
        if flags & (PRODUCER_WAITS | CANCELLED) == 0 {
            Attention::None
        } else if flags & CANCELLED != 0 {
            Attention::Cancelled
        } else {
            Attention::Room
        }
    }

    /// Wakes the producer if it waits for a place; comes after [`free`](Self::free).
    #[inline(always)]
    pub(super) fn offer_room(&self) {
        fence::light();
        if self.flags.0.load(Relaxed) & PRODUCER_WAITS != 0 {
            self.wake_producer();
        }
    }

    /// Says that nothing taken from below `position` is looked at any more.
    #[inline(always)]
    pub(super) fn pass(&self, position: usize) {
        self.consumer.0.passed.store(position, Release);
    }

    #[inline(always)]
    pub(super) fn count_handled(&self, total: u64) {
        self.consumer.0.handled.store(total, Release);
    }

    pub(super) fn count_error(&self) {
        let errors = &self.consumer.0.errors;
        errors.store(errors.load(Relaxed) + 1, Release);
    }

    pub(super) fn count_discarded(&self) {
        let discarded = &self.consumer.0.discarded;
        discarded.store(discarded.load(Relaxed) + 1, Release);
    }

    /// Blocks until there is something to do: an item, or an end.
    pub(super) fn wait_for_items(&self, cursor: &mut PopCursor) {
        let mut patience = Patience::default();
        while patience.wait() {
            if self.next(cursor) != Next::Empty {
                return;
            }
        }
        while !self.register_consumer(cursor, Waiter::this_thread()) {
            thread::park();
            if self.next(cursor) != Next::Empty {
                self.unregister_consumer();
                return;
            }
        }
    }

    /// Registers who is to be woken for the next item or end. `true` if there is something to do
    /// already; then nobody is registered.
    pub(super) fn register_consumer(&self, cursor: &mut PopCursor, waiter: Waiter) -> bool {
        self.consumer_waiter.register(waiter);
        self.flags.0.fetch_or(CONSUMER_WAITS, AcqRel);
        fence::heavy();
        let ready = self.next(cursor) != Next::Empty;
        if ready {
            self.unregister_consumer();
        }
        ready
    }

    fn unregister_consumer(&self) {
        self.flags.0.fetch_and(!CONSUMER_WAITS, AcqRel);
        self.consumer_waiter.clear();
    }

    /// Closes the worker: decides the outcome and which items were accepted. A worker that nobody
    /// has stopped is cancelled by it. Everything up to the final tail is then in the cursor's
    /// sight.
    pub(super) fn close(&self, cursor: &mut PopCursor) -> Outcome {
        let closed = self.flags.0.fetch_update(AcqRel, Acquire, |flags| {
            let cancelled = if flags & COMPLETING == 0 { CANCELLED } else { 0 };
            Some(flags | CLOSED | cancelled)
        });
        let (Ok(flags) | Err(flags)) = closed;
        fence::heavy();
        let tail = self.tail.0.load(Acquire);
        self.final_tail.store(tail, Relaxed);
        self.flags.0.fetch_or(FINAL, AcqRel);
        cursor.refresh(tail);
        self.unregister_consumer();
        self.wake_producer();
        if flags & CANCELLED != 0 || flags & COMPLETING == 0 {
            return Outcome::Cancelled;
        }
        if flags & FAULTED == 0 {
            return Outcome::Drained;
        }
        lock(&self.fault).clone().map_or(Outcome::Drained, Outcome::Faulted)
    }

    pub(super) fn resolve(&self, outcome: Outcome) {
        self.completion.resolve(outcome);
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
