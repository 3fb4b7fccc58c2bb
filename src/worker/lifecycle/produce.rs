//! The producer's side of the shared state.

use super::super::fence;
use super::super::ring::{PushCursor, reached};
use super::super::sync::{lock, spin_hint, this_thread, thread};
use super::super::wait::{Patience, Turn, Waiter, wait_out};
use super::{
    CLOSED, CONSUMER_WAITS, CloseReason, Core, FINAL, NO_TASK, NoRoom, PRODUCER_WAITS, STOPPING,
    TASK_POLLED, reason,
};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::task::{Context, Poll};

impl Core {
    /// Whether items are refused, and why.
    #[inline(always)]
    pub(in crate::worker) fn refuses(&self) -> Option<CloseReason> {
        let flags = self.flags.0.load(Acquire);
        if flags & STOPPING == 0 { None } else { Some(reason(flags)) }
    }

    #[inline]
    pub(in crate::worker) fn head(&self) -> usize {
        self.head.0.load(Acquire)
    }

    /// How far the consumer is done with what it took out.
    pub(in crate::worker) fn passed(&self, target: usize) -> bool {
        reached(self.consumer.0.passed.load(Acquire), target)
    }

    /// Publishes `count` places from the cursor on, which the caller has filled, and wakes the
    /// consumer if it sleeps.
    ///
    /// # Errors
    /// The worker closed before: the cursor has not moved, all the places are the producer's again.
    #[inline(always)]
    pub(in crate::worker) fn publish(
        &self,
        cursor: &mut PushCursor,
        count: usize,
    ) -> Result<(), CloseReason> {
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
    pub(in crate::worker) fn wait_for_room(&self, cursor: &mut PushCursor) -> Result<(), NoRoom> {
        let mut patience = Patience::of_thread(self.strategy);
        // Once past its spins a caller that would wait for itself must be told so.
        let mut asked = false;
        loop {
            if let Some(answer) = self.room(cursor) {
                return answer;
            }
            let turn = patience.turn();
            if turn != Turn::Spin && !asked {
                asked = true;
                if self.waits_for_itself(true) {
                    return Err(NoRoom::WouldDeadlock);
                }
            }
            match turn {
                Turn::Spin => spin_hint(),
                Turn::Yield => thread::yield_now(),
                Turn::Sleep => break,
            }
        }
        while !self.register_producer(cursor, Waiter::this_thread()) {
            thread::park();
            if self.room(cursor).is_some() {
                break;
            }
        }
        self.unregister_producer();
        self.room(cursor).unwrap_or(Ok(()))
    }

    /// Ready once the ring has a free place, or the worker stops; until then the task is
    /// `registered` in the end. Whoever then gives up must [`forget_room`](Self::forget_room).
    ///
    /// A producer that took each place as it comes free would be polled, and the ring be full again,
    /// once an item. So it first holds out for a good number of places (where the consumer is a task
    /// that wakes it for as many). It does not sleep on fewer unless the consumer looks once more:
    /// a handler that waits may wait for what this very producer does next.
    pub(in crate::worker) fn poll_room(
        &self,
        cursor: &mut PushCursor,
        patience: &mut Option<Patience>,
        registered: &mut bool,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), NoRoom>> {
        let patience = patience.get_or_insert_with(|| Patience::of_task(self.strategy));
        let good = if *registered || patience.is_endless() { 1 } else { self.good_room };
        loop {
            if let Some(answer) = self.good_room(cursor, good) {
                return Poll::Ready(answer);
            }
            match patience.wait_in_task(context) {
                Turn::Spin => {}
                Turn::Yield => return Poll::Pending,
                Turn::Sleep => break,
            }
        }
        if self.waits_for_itself(false) {
            return Poll::Ready(self.room(cursor).unwrap_or(Err(NoRoom::WouldDeadlock)));
        }
        *registered = true;
        let some = self.register_producer(cursor, Waiter::Task(context.waker().clone()));
        if some && let Some(answer) = self.good_room(cursor, good) {
            self.unregister_producer();
            return Poll::Ready(answer);
        }
        if some {
            // The consumer's task is polled once more, and then sees who waits.
            self.task.wake();
        }
        Poll::Pending
    }

    /// Takes back the registration of a task that waits no more.
    pub(in crate::worker) fn forget_room(&self) {
        // The flag is put up by this side alone. Whoever took it down takes the waiter, too.
        if self.flags.0.load(Relaxed) & PRODUCER_WAITS != 0 {
            self.unregister_producer();
        }
    }

    /// Whether a producer has to wait no more, and why.
    fn room(&self, cursor: &mut PushCursor) -> Option<Result<(), NoRoom>> {
        if let Some(reason) = self.refuses() {
            return Some(Err(NoRoom::Closed(reason)));
        }
        cursor.refresh(self.head()).then_some(Ok(()))
    }

    /// [`room`](Self::room) for at least `count` places.
    fn good_room(&self, cursor: &mut PushCursor, count: usize) -> Option<Result<(), NoRoom>> {
        let answer = self.room(cursor)?;
        (answer.is_err() || cursor.room() >= count).then_some(answer)
    }

    /// Registers who is to be woken for room or a stop. `true` if there is one already.
    fn register_producer(&self, cursor: &mut PushCursor, waiter: Waiter) -> bool {
        self.producer_waiter.register(waiter);
        let before = self.flags.0.fetch_or(PRODUCER_WAITS, AcqRel);
        fence::heavy();
        before & STOPPING != 0 || cursor.refresh(self.head())
    }

    fn unregister_producer(&self) {
        self.flags.0.fetch_and(!PRODUCER_WAITS, AcqRel);
        self.producer_waiter.clear();
    }

    /// Whether the caller is the consumer itself, so that nobody would make room while it waits.
    ///
    /// A thread is its consumer for good; a task is the consumer of the thread that polls it, while
    /// it does. So the state is read first: if it was a poll elsewhere, then the thread read after
    /// it is that one, or a later one.
    fn waits_for_itself(&self, blocking: bool) -> bool {
        let polled = self.polled.load(Acquire);
        let held = polled == TASK_POLLED || (blocking && polled == NO_TASK);
        held && *lock(&self.consumer_thread) == Some(this_thread())
    }

    #[inline(always)]
    pub(in crate::worker) fn count_conflated(&self, total: u64) {
        self.producer.0.conflated.store(total, Release);
    }
}
