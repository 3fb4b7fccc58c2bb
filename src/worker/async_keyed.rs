//! What the two keyed workers have in common when their consumer is a task.

mod coalescing;
mod conflation;
mod dispatch;

pub use coalescing::{AsyncCoalescingHandler, AsyncCoalescingProducer, AsyncFold};
pub use conflation::AsyncConflationHandler;

use super::cell::Cell;
use super::completion::Outcome;
use super::handler::{WorkerError, catch};
use super::keyed::KeyedStage;
use super::lifecycle::Core;
use super::ring::PopCursor;
use super::task::AsyncStage;

/// A user's asynchronous handler of either kind.
trait AsyncKeyed<K, V>: Send + 'static {
    type Error: Send;
    fn handle(&mut self, key: &K, value: V)
    -> impl Future<Output = Result<(), Self::Error>> + Send;
    fn on_error(&mut self, error: WorkerError<Self::Error>);
    fn on_idle(&mut self);
    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send;
}

/// The consuming half. The place that named a key is passed only when its handler is done, so that
/// the handler may look at the key while it waits.
struct KeyedTask<K, C: Cell, H>(KeyedStage<K, C, H>);

impl<K, C, H> AsyncStage for KeyedTask<K, C, H>
where
    K: Send + Sync + 'static,
    C: Cell + 'static,
    C::Value: Send,
    H: AsyncKeyed<K, C::Value>,
    KeyedStage<K, C, H>: Send,
{
    type Error = H::Error;

    fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.0.ring.sight()
    }

    async fn run(&mut self, most: usize) -> Result<(), H::Error> {
        let KeyedStage { ring, reader, handler, handled } = &mut self.0;
        let mut left = ring.in_sight().min(most);
        while left > 0 && !ring.core().is_cancelled() {
            left -= 1;
            let Some(index) = ring.pop() else { break };
            let value = reader.take(index);
            ring.core().offer_room();
            let mut done = Ok(());
            if let (Some(value), Some(key)) = (value, reader.key(index)) {
                *handled += 1;
                done = handler.handle(key, value).await;
                ring.core().count_handled(*handled);
            }
            ring.core().pass(ring.position());
            done?;
        }
        Ok(())
    }

    fn settle(&mut self) -> u64 {
        let KeyedStage { ring, handled, .. } = &self.0;
        ring.core().count_handled(*handled);
        ring.core().pass(ring.position());
        *handled
    }

    fn discard(&mut self) {
        let KeyedStage { ring, reader, .. } = &mut self.0;
        let Some(index) = ring.pop() else { return };
        if let Some(value) = reader.take(index) {
            let _ = catch(|| drop(value));
            ring.core().count_discarded();
        }
        ring.core().pass(ring.position());
    }

    fn on_error(&mut self, error: WorkerError<H::Error>) {
        self.0.handler.on_error(error);
    }

    fn on_idle(&mut self) {
        self.0.handler.on_idle();
    }

    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send {
        self.0.handler.on_completed(outcome)
    }
}
