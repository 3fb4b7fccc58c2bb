//! What the workers' models share.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use std::sync::{Arc, Mutex};
use tidegate::worker::{CoalescingHandler, ConflationHandler, Outcome, WorkerError};

/// Runs a model; preemptions are bounded, because every schedule with up to three of them is far
/// more than the algorithms have states.
pub(crate) fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Writes down what it is given. Its lock is a plain one: what it guards is no part of the model.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    items: Vec<(u32, u32)>,
    ends: Vec<&'static str>,
}

impl Log {
    pub(crate) fn items(&self) -> Vec<(u32, u32)> {
        self.0.lock().unwrap().items.clone()
    }

    pub(crate) fn ends(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().ends.clone()
    }

    /// The values of one key, in the order they came.
    pub(crate) fn of(&self, key: u32) -> Vec<u32> {
        self.items().into_iter().filter(|(k, _)| *k == key).map(|(_, v)| v).collect()
    }

    pub(crate) fn note(&self, key: u32, value: u32) {
        self.0.lock().unwrap().items.push((key, value));
    }

    pub(crate) fn end(&self, outcome: &Outcome) {
        self.0.lock().unwrap().ends.push(match outcome {
            Outcome::Drained => "drained",
            Outcome::Faulted(_) => "faulted",
            Outcome::Cancelled => "cancelled",
        });
    }
}

impl ConflationHandler<u32, u32> for Log {
    type Error = std::convert::Infallible;

    fn handle(&mut self, key: &u32, value: u32) -> Result<(), Self::Error> {
        self.note(*key, value);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        unreachable!("{error}");
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(&outcome);
    }
}

impl CoalescingHandler<u32, u32> for Log {
    type Error = std::convert::Infallible;

    fn coalesce(current: &mut u32, incoming: u32) {
        *current += incoming;
    }

    fn handle(&mut self, key: &u32, total: u32) -> Result<(), Self::Error> {
        self.note(*key, total);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        unreachable!("{error}");
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(&outcome);
    }
}
