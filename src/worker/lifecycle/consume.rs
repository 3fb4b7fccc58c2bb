//! The consumer's side of the shared state.

use super::super::completion::Outcome;
use super::super::fence;
use super::super::ring::PopCursor;
use super::super::sync::{lock, thread};
use super::super::wait::{Patience, Turn, Waiter};
use super::{
    Attention, CANCELLED, CLOSED, COMPLETING, CONSUMER_WAITS, Core, ENDED, FAULTED, FINAL, NO_TASK,
    Next, PRODUCER_WAITS, TASK_AT_REST, TASK_POLLED,
};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::task::{Context, Poll, Waker};

impl Core {
    /// Names the thread that handles.
    pub(in crate::worker) fn consumer_is(&self, id: thread::ThreadId) {
        *lock(&self.consumer_thread) = Some(id);
    }

    /// Says whether this thread, which is the consumer, is at work: then an awaiting dispatch from
    /// it would wait for itself.
    pub(in crate::worker) fn at_work(&self, now: bool) {
        self.polled.store(if now { TASK_POLLED } else { NO_TASK }, Release);
    }

    #[inline(always)]
    pub(in crate::worker) fn next(&self, cursor: &mut PopCursor) -> Next {
        let flags = self.flags.0.load(Acquire);
        if flags & CANCELLED != 0 {
            return Next::Cancelled;
        }
        if self.has_more(cursor) {
            return Next::Item;
        }
        // The flag was read before the tail, so an item accepted before it may still be missed
        // here; closing looks again.
        if flags & COMPLETING != 0 { Next::Ended } else { Next::Empty }
    }

    /// Whether an item waits.
    #[inline]
    pub(in crate::worker) fn has_more(&self, cursor: &mut PopCursor) -> bool {
        cursor.has_item() || cursor.refresh(self.tail.0.load(Acquire))
    }

    /// Frees the places below the cursor, which the caller has emptied.
    #[inline(always)]
    pub(in crate::worker) fn free(&self, cursor: &PopCursor) {
        self.head.0.store(cursor.position(), Release);
    }

    /// Whether the consumer should look up from what it is doing: the producer waits for a place,
    /// or the worker is cancelled.
    #[inline(always)]
    pub(in crate::worker) fn asks_for_attention(&self) -> Attention {
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
    pub(in crate::worker) fn offer_room(&self) {
        fence::light();
        if self.flags.0.load(Relaxed) & PRODUCER_WAITS != 0 {
            self.wake_producer();
        }
    }

    /// Whether the producer sleeps for want of a place; comes after [`free`](Self::free).
    #[inline(always)]
    pub(in crate::worker) fn producer_waits(&self) -> bool {
        fence::light();
        self.flags.0.load(Relaxed) & PRODUCER_WAITS != 0
    }

    /// Says that nothing taken from below `position` is looked at any more.
    #[inline(always)]
    pub(in crate::worker) fn pass(&self, position: usize) {
        self.consumer.0.passed.store(position, Release);
    }

    #[inline(always)]
    pub(in crate::worker) fn count_handled(&self, total: u64) {
        self.consumer.0.handled.store(total, Release);
    }

    pub(in crate::worker) fn count_error(&self) {
        let errors = &self.consumer.0.errors;
        errors.store(errors.load(Relaxed) + 1, Release);
    }

    pub(in crate::worker) fn count_discarded(&self) {
        let discarded = &self.consumer.0.discarded;
        discarded.store(discarded.load(Relaxed) + 1, Release);
    }

    /// Blocks until there is something to do: an item, or an end.
    pub(in crate::worker) fn wait_for_items(&self, cursor: &mut PopCursor) {
        let mut patience = Patience::of_thread(self.strategy);
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
    pub(in crate::worker) fn register_consumer(
        &self,
        cursor: &mut PopCursor,
        waiter: Waiter,
    ) -> bool {
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

    /// Ready once there is something to do: an item, or an end. Until then the task is registered.
    pub(in crate::worker) fn poll_items(
        &self,
        cursor: &mut PopCursor,
        patience: &mut Patience,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            if self.next(cursor) != Next::Empty {
                self.unregister_if_needed();
                return Poll::Ready(());
            }
            match patience.wait_in_task(context) {
                Turn::Spin => {}
                Turn::Yield => return Poll::Pending,
                Turn::Sleep => break,
            }
        }
        if self.register_consumer(cursor, Waiter::Task(context.waker().clone())) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn unregister_if_needed(&self) {
        if self.flags.0.load(Relaxed) & CONSUMER_WAITS != 0 {
            self.unregister_consumer();
        }
    }

    /// A task begins to be polled: it is to be woken by a hard stop, and a dispatch from inside of
    /// it must not wait.
    pub(in crate::worker) fn poll_begins(&self, waker: &Waker) {
        self.task.register_task(waker);
        self.polled.store(TASK_POLLED, Release);
    }

    pub(in crate::worker) fn poll_ends(&self) {
        self.polled.store(TASK_AT_REST, Release);
    }

    /// Lets go of the task that a hard stop would have woken.
    pub(in crate::worker) fn task_is_over(&self) {
        self.task.clear();
    }

    /// Closes the worker: decides which items were accepted. A worker that nobody has stopped is
    /// cancelled by it. Everything up to the final tail is then in the cursor's sight.
    pub(in crate::worker) fn close(&self, cursor: &mut PopCursor) {
        let _ = self.flags.0.fetch_update(AcqRel, Acquire, |flags| {
            let cancelled = if flags & COMPLETING == 0 { CANCELLED } else { 0 };
            Some(flags | CLOSED | cancelled)
        });
        fence::heavy();
        let tail = self.tail.0.load(Acquire);
        self.final_tail.store(tail, Relaxed);
        self.flags.0.fetch_or(FINAL, AcqRel);
        cursor.refresh(tail);
        self.unregister_consumer();
        self.wake_producer();
    }

    /// Decides the outcome, once what was accepted is dealt with; no stop changes it any more.
    pub(in crate::worker) fn seal(&self) -> Outcome {
        let flags = self.flags.0.fetch_or(ENDED, AcqRel);
        if flags & CANCELLED != 0 {
            return Outcome::Cancelled;
        }
        if flags & FAULTED == 0 {
            return Outcome::Drained;
        }
        lock(&self.fault).clone().map_or(Outcome::Drained, Outcome::Faulted)
    }

    pub(in crate::worker) fn resolve(&self, outcome: Outcome) {
        self.completion.resolve(outcome);
    }
}
