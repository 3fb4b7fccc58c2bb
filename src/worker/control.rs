//! The handle that a worker is watched and stopped by, the same for the whole family.

use super::completion::Completion;
use super::lifecycle::{Core, Counters};
use super::sync::{Arc, thread};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;

/// A running worker: watch it, complete it, stop it.
///
/// **Dropping it stops hard**: pending items are dropped unhandled, and outside of an async runtime
/// the drop waits up to one second for the consumer's thread (never for a task). A handler that takes
/// longer is left to finish its item; the thread ends after it, and [`Completion`] tells when. To let it drain, drop or complete the
/// producing half and wait for [`completion`](Self::completion) first.
#[must_use = "dropping a worker stops it hard"]
pub struct Worker<Kind> {
    core: Arc<Core>,
    thread: Option<thread::JoinHandle<()>>,
    _kind: PhantomData<fn() -> Kind>,
}

impl<Kind> Worker<Kind> {
    pub(super) fn new(core: Arc<Core>, thread: thread::JoinHandle<()>) -> Self {
        Self { core, thread: Some(thread), _kind: PhantomData }
    }

    pub(super) const fn without_thread(core: Arc<Core>) -> Self {
        Self { core, thread: None, _kind: PhantomData }
    }

    /// Takes no more items, handles what was accepted, then ends. `false` if it was stopping
    /// already. A producer that is blocked on a full ring is refused at once.
    pub fn complete(&self) -> bool {
        self.core.complete()
    }

    /// Like [`complete`](Self::complete), and the [`completion`](Self::completion) then fails with
    /// `error`. `false` if it was stopping already; then the error is dropped.
    pub fn fault(&self, error: impl Into<Box<dyn Error + Send + Sync>>) -> bool {
        self.core.fault(error.into())
    }

    /// Stops hard: the item in hand is finished (a task's handler that waits is dropped where it
    /// does), pending ones are dropped. `false` if it had ended
    /// or been cancelled already. Does not wait.
    pub fn cancel(&self) -> bool {
        self.core.cancel()
    }

    /// The worker's end, to be awaited or waited for.
    #[must_use]
    pub fn completion(&self) -> Completion {
        self.core.completion()
    }

    /// The worker's telemetry.
    #[must_use]
    pub fn queue(&self) -> WorkerQueue {
        WorkerQueue::new(self.core.clone())
    }

    /// A snapshot of the counts.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.core.counters()
    }
}

impl<Kind> Drop for Worker<Kind> {
    fn drop(&mut self) {
        self.core.cancel();
        if let Some(thread) = self.thread.take() {
            join_within_a_second(&self.core, thread);
        }
    }
}

#[cfg(not(feature = "loom"))]
fn join_within_a_second(core: &Core, consumer: thread::JoinHandle<()>) {
    let own = consumer.thread().id() == thread::current().id();
    // An executor's thread must not be blocked, and a thread cannot wait for itself.
    if own || tokio::runtime::Handle::try_current().is_ok() {
        return;
    }
    if core.completion().wait_timeout(std::time::Duration::from_secs(1)) {
        // It has nothing left to do but to return.
        let _ = consumer.join();
    }
}

#[cfg(feature = "loom")]
fn join_within_a_second(_core: &Core, consumer: thread::JoinHandle<()>) {
    let _ = consumer.join();
}

impl<Kind> fmt::Debug for Worker<Kind> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("queue", &self.queue()).finish_non_exhaustive()
    }
}

/// The telemetry of a worker, without its types: how much is queued, how much may be, the counts.
/// Cheap to clone; readable from any thread, also after the worker's end.
#[derive(Clone)]
pub struct WorkerQueue(Arc<Core>);

impl WorkerQueue {
    pub(super) const fn new(core: Arc<Core>) -> Self {
        Self(core)
    }

    /// Items (keyed workers: keys) that wait to be handled, approximately while the worker runs.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.0.queued()
    }

    /// The most that can wait: what was asked for, rounded up to a power of two.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity().get()
    }

    /// A snapshot of the counts.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.0.counters()
    }
}

impl fmt::Debug for WorkerQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerQueue")
            .field("queued", &self.queued())
            .field("capacity", &self.capacity())
            .field("counters", &self.counters())
            .finish()
    }
}
