//! How a worker came to its end, and waiting for it: by a task or by a thread.

use super::sync::{Arc, Condvar, Mutex, lock};
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The error that a worker was faulted with; shared by the handler and all who wait.
#[derive(Clone)]
pub struct Fault(std::sync::Arc<dyn Error + Send + Sync>);

impl Fault {
    pub(super) fn new(error: Box<dyn Error + Send + Sync>) -> Self {
        Self(error.into())
    }

    /// The error itself.
    #[must_use]
    pub fn error(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Fault {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

/// The way in which a worker came to its end.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Completed: every accepted item was handled.
    Drained,
    /// Faulted: every accepted item was handled, then the error was passed on.
    Faulted(Fault),
    /// Stopped hard: the items still pending were dropped unhandled.
    Cancelled,
}

impl Outcome {
    /// `Ok` if the worker was completed.
    ///
    /// # Errors
    /// [`CompletionError`] if it was faulted or cancelled.
    pub fn into_result(self) -> Result<(), CompletionError> {
        match self {
            Self::Drained => Ok(()),
            Self::Faulted(fault) => Err(CompletionError::Faulted(fault)),
            Self::Cancelled => Err(CompletionError::Cancelled),
        }
    }
}

/// What [`Completion`] resolves to when a worker was not simply drained.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompletionError {
    /// The worker was faulted with this error.
    #[error("the worker was faulted: {0}")]
    Faulted(Fault),
    /// The worker was stopped hard.
    #[error("the worker was cancelled, its pending items were dropped")]
    Cancelled,
}

/// The end of a worker: await it, or [`wait`](Self::wait) for it from a thread.
///
/// It resolves after `on_completed` has returned and the handler is gone. Clones wait for the same
/// end; each holds at most one registration.
pub struct Completion {
    cell: Arc<CompletionCell>,
    registration: Option<u64>,
}

impl Completion {
    /// The outcome, if the worker has come to its end.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        lock(&self.cell.state).outcome.clone()
    }

    /// Blocks the calling thread until the worker has come to its end.
    ///
    /// # Errors
    /// [`CompletionError`] if it was faulted or cancelled.
    pub fn wait(&self) -> Result<(), CompletionError> {
        let mut state = lock(&self.cell.state);
        loop {
            if let Some(outcome) = &state.outcome {
                return outcome.clone().into_result();
            }
            state = self.cell.ended.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// Blocks for at most `timeout`; whether the worker has come to its end.
    #[cfg(feature = "loom")]
    #[must_use]
    pub fn wait_timeout(&self, _: std::time::Duration) -> bool {
        // A model has no time: it waits to the end.
        let _ = self.wait();
        true
    }

    /// Blocks for at most `timeout`; whether the worker has come to its end.
    #[cfg(not(feature = "loom"))]
    #[must_use]
    pub fn wait_timeout(&self, timeout: std::time::Duration) -> bool {
        let state = lock(&self.cell.state);
        let ended = self.cell.ended.wait_timeout_while(state, timeout, |s| s.outcome.is_none());
        ended.unwrap_or_else(std::sync::PoisonError::into_inner).0.outcome.is_some()
    }
}

impl Clone for Completion {
    fn clone(&self) -> Self {
        CompletionCell::completion(&self.cell)
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Completion").field(&self.outcome()).finish()
    }
}

impl Future for Completion {
    type Output = Result<(), CompletionError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut state = lock(&this.cell.state);
        if let Some(outcome) = &state.outcome {
            return Poll::Ready(outcome.clone().into_result());
        }
        let id = *this.registration.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        let former = match state.wakers.iter_mut().find(|(other, _)| *other == id) {
            Some((_, waker)) => Some(std::mem::replace(waker, context.waker().clone())),
            None => {
                state.wakers.push((id, context.waker().clone()));
                None
            }
        };
        drop(state);
        drop(former);
        Poll::Pending
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(id) = self.registration {
            lock(&self.cell.state).wakers.retain(|(other, _)| *other != id);
        }
    }
}

/// Where the outcome is put down, once.
pub(super) struct CompletionCell {
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    outcome: Option<Outcome>,
    /// At most one for each living [`Completion`].
    wakers: Vec<(u64, Waker)>,
    next: u64,
}

impl CompletionCell {
    pub(super) fn new() -> Arc<Self> {
        let state = State { outcome: None, wakers: Vec::new(), next: 0 };
        Arc::new(Self { state: Mutex::new(state), ended: Condvar::new() })
    }

    pub(super) fn completion(this: &Arc<Self>) -> Completion {
        Completion { cell: this.clone(), registration: None }
    }

    pub(super) fn resolve(&self, outcome: Outcome) {
        let wakers = {
            let mut state = lock(&self.state);
            if state.outcome.is_some() {
                return;
            }
            state.outcome = Some(outcome);
            std::mem::take(&mut state.wakers)
        };
        self.ended.notify_all();
        for (_, waker) in wakers {
            waker.wake();
        }
    }
}
