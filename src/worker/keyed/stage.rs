//! The consumer's stage of a keyed worker.

use super::super::cell::{Cell, ReaderEnd};
use super::super::completion::Outcome;
use super::super::engine::Stage;
use super::super::handler::{WorkerError, catch};
use super::super::lifecycle::{Attention, Core};
use super::super::ring::PopCursor;
use super::super::slots::RingConsumer;

/// A user's handler of either kind.
pub(in crate::worker) trait KeyedHandler<K, V> {
    type User;
    type Error;
    fn handle(&mut self, key: &K, value: V) -> Result<(), Self::Error>;
    fn on_error(&mut self, error: WorkerError<Self::Error>);
    fn on_idle(&mut self);
    fn on_completed(&mut self, outcome: Outcome);
    fn user(&self) -> &Self::User;
    fn user_mut(&mut self) -> &mut Self::User;
    fn into_user(self) -> Self::User;
}

/// How many items ahead the consumer asks for a cell's state.
const STATE_AHEAD: usize = 6;
/// How many items ahead it asks for the value, which the state names.
const VALUE_AHEAD: usize = 3;
/// The first index that it asks ahead for. The cells of fewer keys stay in the caches, where a line
/// asked for early is a line taken from a producer that is about to write to it again.
const FAR: u32 = 16_384;

/// The consuming half of a keyed worker.
pub(in crate::worker) struct KeyedStage<K, C: Cell, H> {
    pub(in crate::worker) ring: RingConsumer<u32>,
    pub(in crate::worker) reader: ReaderEnd<K, C>,
    pub(in crate::worker) handler: H,
    pub(in crate::worker) handled: u64,
}

impl<K, C: Cell, H: KeyedHandler<K, C::Value>> KeyedStage<K, C, H> {
    #[inline(always)]
    fn fetch_state(&self, ahead: usize) {
        if let Some(index) = self.ring.peek(ahead)
            && index >= FAR
        {
            self.reader.fetch_cell(index);
        }
    }

    #[inline(always)]
    fn fetch_value(&self, ahead: usize) {
        if let Some(index) = self.ring.peek(ahead)
            && index >= FAR
        {
            self.reader.fetch_value(index);
        }
    }

    #[cold]
    fn report(&mut self, error: WorkerError<H::Error>) {
        self.ring.core().count_error();
        // A panic in the report of an error has nobody left to be reported to.
        let _ = catch(|| self.handler.on_error(error));
    }
}

impl<K, C: Cell, H: KeyedHandler<K, C::Value>> Stage for KeyedStage<K, C, H> {
    type Handler = H::User;

    #[inline(always)]
    fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.ring.sight()
    }

    #[inline(always)]
    fn handle(&mut self) {
        let Some(index) = self.ring.pop() else { return };
        let value = self.reader.take(index);
        self.ring.core().offer_room();
        if let Some(value) = value {
            let (reader, handler) = (&self.reader, &mut self.handler);
            let done = catch(|| reader.with_key(index, |key| handler.handle(key, value)));
            self.handled += 1;
            self.ring.core().count_handled(self.handled);
            match done {
                Ok(Some(Err(error))) => self.report(WorkerError::Handler(error)),
                Err(panicked) => self.report(WorkerError::Panicked(panicked)),
                Ok(_) => {}
            }
        }
        self.ring.core().pass(self.ring.position());
    }

    /// A run of items, whose cells, if they are far, are asked for a few items ahead.
    #[inline(always)]
    fn handle_some(&mut self, most: usize) -> usize {
        for ahead in 0..STATE_AHEAD {
            self.fetch_state(ahead);
        }
        for ahead in 0..VALUE_AHEAD {
            self.fetch_value(ahead);
        }
        let mut done = 0;
        while done < most && self.ring.peek(0).is_some() {
            if self.ring.core().asks_for_attention() == Attention::Cancelled {
                break;
            }
            self.fetch_state(STATE_AHEAD);
            self.fetch_value(VALUE_AHEAD);
            self.handle();
            done += 1;
        }
        done
    }

    fn discard(&mut self) {
        let Some(index) = self.ring.pop() else { return };
        if let Some(value) = self.reader.take(index) {
            let _ = catch(|| drop(value));
            self.ring.core().count_discarded();
        }
        self.ring.core().pass(self.ring.position());
    }

    fn idle(&mut self) {
        if let Err(panicked) = catch(|| self.handler.on_idle()) {
            self.report(WorkerError::Panicked(panicked));
        }
    }

    fn completed(&mut self, outcome: Outcome) {
        self.handler.on_completed(outcome);
    }

    fn handler(&self) -> &H::User {
        self.handler.user()
    }

    fn handler_mut(&mut self) -> &mut H::User {
        self.handler.user_mut()
    }

    fn into_handler(self) -> H::User {
        self.handler.into_user()
    }
}
