//! The consumer's loop, the same for every worker: steps, idle rounds, and the one way to the end.

use super::completion::Outcome;
use super::handler::catch;
use super::lifecycle::{Core, Next};
use super::ring::PopCursor;
use super::sync::{Arc, this_thread, thread};
use super::wait::Waiter;
use std::task::{Context, Poll};

/// The part of a consumer that knows what its items are. Callbacks of the user that panic are the
/// stage's to contain, all but [`completed`](Self::completed).
pub(super) trait Stage {
    /// The user's handler.
    type Handler;
    /// The consuming end's sight of the ring.
    fn sight(&mut self) -> (&Core, &mut PopCursor);
    /// Takes the next item, which is in sight, and handles it.
    fn handle(&mut self);
    /// Handles up to `most` of the items in sight, at least one unless the worker is cancelled; how
    /// many it was.
    #[inline(always)]
    fn handle_some(&mut self, _most: usize) -> usize {
        self.handle();
        1
    }
    /// Takes the next item, which is in sight, and drops it.
    fn discard(&mut self);
    /// The ring was found empty after at least one item.
    fn idle(&mut self);
    /// The end; nothing is handled any more.
    fn completed(&mut self, outcome: Outcome);
    fn handler(&self) -> &Self::Handler;
    fn handler_mut(&mut self) -> &mut Self::Handler;
    fn into_handler(self) -> Self::Handler;
}

/// Drives a stage. Dropped before its end it stops hard, so a worker cannot be left without one.
pub(super) struct Engine<S: Stage> {
    core: Arc<Core>,
    stage: Option<S>,
    /// Whether something was handled since the last idle round.
    stirred: bool,
    thread: Option<thread::ThreadId>,
}

impl<S: Stage> Engine<S> {
    pub(super) fn new(core: Arc<Core>, stage: S) -> Self {
        Self { core, stage: Some(stage), stirred: false, thread: None }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(super) fn stage(&self) -> Option<&S> {
        self.stage.as_ref()
    }

    pub(super) fn stage_mut(&mut self) -> Option<&mut S> {
        self.stage.as_mut()
    }

    /// Takes note of the thread that handles from now on: a dispatch from it must not wait.
    pub(super) fn on_this_thread(&mut self) {
        let id = this_thread();
        if self.thread != Some(id) {
            self.core.consumer_is(id);
            self.thread = Some(id);
        }
    }

    /// Handles up to `most` items without waiting; how many it was.
    pub(super) fn step(&mut self, most: usize) -> usize {
        let mut done = 0;
        while let Some(stage) = &mut self.stage {
            let (core, cursor) = stage.sight();
            match core.next(cursor) {
                Next::Item if done == most => break,
                Next::Item => {
                    done += stage.handle_some(most - done);
                    self.stirred = true;
                }
                Next::Empty => {
                    self.idle();
                    break;
                }
                Next::Ended | Next::Cancelled => {
                    self.idle();
                    self.conclude();
                    break;
                }
            }
        }
        done
    }

    /// Handles until the end, sleeping whenever there is nothing to do.
    pub(super) fn run(mut self) {
        self.on_this_thread();
        self.core.at_work(true);
        loop {
            self.step(usize::MAX);
            let Some(stage) = &mut self.stage else { break };
            let (core, cursor) = stage.sight();
            core.wait_for_items(cursor);
        }
    }

    /// Ready once there is something to step, or the end has come; otherwise the task is woken.
    pub(super) fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(stage) = &mut self.stage else { return Poll::Ready(()) };
        let (core, cursor) = stage.sight();
        if core.next(cursor) != Next::Empty {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        if core.register_consumer(cursor, Waiter::Task(waker)) {
            return Poll::Ready(());
        }
        Poll::Pending
    }

    /// Completes, handles what is left, and gives the stage back; `None` if the end had come.
    pub(super) fn finish(mut self) -> Option<S> {
        self.core.complete();
        while let Some(stage) = &mut self.stage {
            let (core, cursor) = stage.sight();
            if core.next(cursor) != Next::Item {
                break;
            }
            stage.handle();
            self.stirred = true;
        }
        let (stage, outcome) = self.close()?;
        self.core.resolve(outcome);
        Some(stage)
    }

    fn idle(&mut self) {
        if std::mem::take(&mut self.stirred)
            && let Some(stage) = &mut self.stage
        {
            stage.idle();
        }
    }

    /// The way to the end: the handler is gone before anybody learns of it.
    fn conclude(&mut self) {
        if let Some((stage, outcome)) = self.close() {
            let _ = catch(|| drop(stage));
            self.core.resolve(outcome);
        }
    }

    /// Closes, deals with every accepted item, and tells the handler the outcome.
    fn close(&mut self) -> Option<(S, Outcome)> {
        let mut stage = self.stage.take()?;
        let (core, cursor) = stage.sight();
        core.close(cursor);
        while stage.sight().1.has_item() {
            if self.core.is_cancelled() {
                stage.discard();
            } else {
                stage.handle();
                self.stirred = true;
            }
        }
        if std::mem::take(&mut self.stirred) {
            stage.idle();
        }
        let outcome = self.core.seal();
        let told = outcome.clone();
        let _ = catch(|| stage.completed(told));
        Some((stage, outcome))
    }
}

impl<S: Stage> Drop for Engine<S> {
    fn drop(&mut self) {
        self.conclude();
    }
}
