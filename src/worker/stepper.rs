//! A consumer that runs on the caller's thread, when the caller says so.

use super::completion::Completion;
use super::control::{Worker, WorkerQueue};
use super::engine::{Engine, Stage};
use super::lifecycle::{Core, Counters};
use super::sync::Arc;
use std::fmt;
use std::task::{Context, Poll};

/// Marks a [`Worker`] whose consumer is stepped.
#[derive(Debug)]
pub enum Stepped {}

/// The stepped consumer of any worker: nothing is handled but inside of [`step`](Self::step) and
/// [`finish`](Self::finish).
///
/// It is woken like a thread's consumer ([`poll_ready`](Self::poll_ready)), so it can live in an
/// event loop. A dispatch from the thread that steps it never waits, since no step could come: it
/// answers `Full`, as `try_dispatch` does. Dropping it before its end stops hard.
#[must_use = "a stepped consumer does nothing until it is stepped"]
pub struct Stepper<H> {
    /// One indirect call a step; inside, every item is handled by a direct one.
    engine: Box<dyn Steps<H> + Send>,
}

impl<H> Stepper<H> {
    pub(super) fn new<S>(engine: Engine<S>) -> Self
    where
        S: Stage<Handler = H> + Send + 'static,
    {
        Self { engine: Box::new(engine) }
    }

    /// Handles up to `most` items without waiting; how many it was.
    pub fn step(&mut self, most: usize) -> usize {
        self.engine.step(most)
    }

    /// Whether the worker has come to its end, and nothing will be handled any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.engine.handler().is_none()
    }

    /// Ready once there is something to [`step`](Self::step), or the end has come; until then the
    /// task is registered and woken.
    pub fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.engine.poll_ready(context)
    }

    /// The handler, while the worker has not come to its end.
    #[must_use]
    pub fn handler(&self) -> Option<&H> {
        self.engine.handler()
    }

    /// The handler, to be changed between steps.
    pub fn handler_mut(&mut self) -> Option<&mut H> {
        self.engine.handler_mut()
    }

    /// Completes, handles what is left, tells the handler, and gives it back; `None` if the end had
    /// come before.
    pub fn finish(self) -> Option<H> {
        self.engine.finish()
    }

    /// A handle to watch and stop the worker by from elsewhere. As with every [`Worker`], dropping it
    /// stops hard.
    pub fn worker(&self) -> Worker<Stepped> {
        Worker::without_thread(self.engine.core().clone())
    }

    /// The worker's end.
    #[must_use]
    pub fn completion(&self) -> Completion {
        self.engine.core().completion()
    }

    /// The worker's telemetry.
    #[must_use]
    pub fn queue(&self) -> WorkerQueue {
        WorkerQueue::new(self.engine.core().clone())
    }

    /// A snapshot of the counts.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.engine.core().counters()
    }
}

impl<H> fmt::Debug for Stepper<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stepper").field("queue", &self.queue()).finish_non_exhaustive()
    }
}

trait Steps<H> {
    fn core(&self) -> &Arc<Core>;
    fn step(&mut self, most: usize) -> usize;
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()>;
    fn handler(&self) -> Option<&H>;
    fn handler_mut(&mut self) -> Option<&mut H>;
    fn finish(self: Box<Self>) -> Option<H>;
}

impl<S: Stage> Steps<S::Handler> for Engine<S> {
    fn core(&self) -> &Arc<Core> {
        self.core()
    }

    fn step(&mut self, most: usize) -> usize {
        self.on_this_thread();
        self.core().at_work(true);
        let done = self.step(most);
        self.core().at_work(false);
        done
    }

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.poll_ready(context)
    }

    fn handler(&self) -> Option<&S::Handler> {
        self.stage().map(Stage::handler)
    }

    fn handler_mut(&mut self) -> Option<&mut S::Handler> {
        self.stage_mut().map(Stage::handler_mut)
    }

    fn finish(self: Box<Self>) -> Option<S::Handler> {
        let mut engine = *self;
        engine.on_this_thread();
        engine.finish().map(Stage::into_handler)
    }
}
