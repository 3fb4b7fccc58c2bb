//! A consumer on a thread of its own, stopped by a cancellation token.

use super::builder::StartError;
use super::control::Worker;
use super::engine::{Engine, Stage};
use super::lifecycle::Core;
use super::sync::{Arc, thread};
use std::pin::Pin;
use std::task::{Context, Wake, Waker};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Starts the thread. A worker whose token is cancelled already ends at once.
pub(super) fn spawn<Kind, S>(
    engine: Engine<S>,
    name: String,
    token: CancellationToken,
) -> Result<Worker<Kind>, StartError>
where
    S: Stage + Send + 'static,
{
    let core = engine.core().clone();
    let watch = CancelWatch::arm(token, core.clone());
    let thread = thread::Builder::new()
        .name(name)
        .spawn(move || {
            engine.run();
            drop(watch);
        })
        .map_err(StartError::Spawn)?;
    Ok(Worker::new(core, thread))
}

/// Stops the worker hard when the token is cancelled, on the canceller's thread. No runtime is
/// needed: the future is polled once, and its waker does the work.
pub(super) struct CancelWatch {
    _registered: Pin<Box<WaitForCancellationFutureOwned>>,
}

struct StopHard(Arc<Core>);

impl Wake for StopHard {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.cancel();
    }
}

impl CancelWatch {
    pub(super) fn arm(token: CancellationToken, core: Arc<Core>) -> Self {
        let stop = std::sync::Arc::new(StopHard(core));
        let waker = Waker::from(stop.clone());
        let mut cancelled = Box::pin(token.cancelled_owned());
        if cancelled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            stop.wake();
        }
        Self { _registered: cancelled }
    }
}
