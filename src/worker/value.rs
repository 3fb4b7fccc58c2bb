//! The worker whose items live in the places of the ring: written there, read there, never moved.

mod producer;
mod scopes;
mod slot;

pub use producer::ValueProducer;
pub(super) use scopes::release;
pub use scopes::{HandleScope, PublishScope, Unpublished};
pub use slot::Slot;

use super::batch::Meter;
use super::builder::{Builder, StartError};
use super::completion::Outcome;
use super::control::Worker;
use super::dedicated::spawn;
use super::engine::{Engine, Stage};
use super::handler::{Panicked, WorkerError, catch};
use super::lifecycle::Core;
use super::ring::PopCursor;
use super::slots::{StandingConsumer, standing_ring};
use super::stepper::Stepper;
use tokio_util::sync::CancellationToken;

/// Marks a [`Worker`] of items in slots.
#[derive(Debug)]
pub enum InSlots {}

/// A worker whose items are written and read in place: for those that are large, or own memory that
/// is worth keeping.
///
/// ```
/// use tidegate::worker::{HandleScope, Outcome, Slot, ValueHandler, ValueSpWorker, WorkerError};
/// use tokio_util::sync::CancellationToken;
///
/// #[derive(Default)]
/// struct Book {
///     bids: Vec<u64>,
/// }
///
/// impl Slot for Book {
///     fn clear(&mut self) {
///         self.bids.clear();
///     }
/// }
///
/// struct Best(u64);
///
/// impl ValueHandler<Book> for Best {
///     type Error = std::convert::Infallible;
///
///     fn handle(&mut self, book: HandleScope<'_, Book>) -> Result<(), Self::Error> {
///         let best = book.bids.iter().copied().max();
///         book.release(); // optional: the producer may write it again from here on
///         self.0 = self.0.max(best.unwrap_or(0));
///         Ok(())
///     }
///
///     fn on_error(&mut self, error: WorkerError<Self::Error>) {
///         eprintln!("{error}");
///     }
///
///     fn on_completed(&mut self, _outcome: Outcome) {
///         assert_eq!(self.0, 9);
///     }
/// }
///
/// let (mut producer, worker) =
///     ValueSpWorker::builder().capacity(64).start(Best(0), CancellationToken::new())?;
/// let mut book = producer.publish()?;
/// book.bids.extend([3, 9, 4]);
/// drop(book); // published
///
/// let mut book = producer.publish()?;
/// book.bids.push(100);
/// book.abandon(); // on second thought
///
/// drop(producer);
/// worker.completion().wait()?;
/// assert_eq!(worker.counters().handled, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A place for each slot is made at the start (by `Default`, or by
/// [`start_with`](Builder::start_with)) and dropped with the worker and its producer. In between
/// [`Slot::clear`] sees to it that a slot keeps alive nothing of an item that is done with.
pub type ValueSpWorker = Worker<InSlots>;

/// What a [`ValueSpWorker`] does with its items. All of it runs on the consumer's thread, one call at
/// a time.
pub trait ValueHandler<T: Slot>: Send + 'static {
    /// Why an item could not be handled.
    type Error;

    /// Handles an item in its slot, which is given back when the scope is released or dropped.
    ///
    /// The scope cannot outlive the call (a lifetime that may not live long enough, an error without
    /// a code):
    ///
    /// ```compile_fail
    /// use tidegate::worker::{HandleScope, Outcome, ValueHandler, WorkerError};
    ///
    /// struct Keep<'a>(Option<HandleScope<'a, u64>>);
    ///
    /// impl ValueHandler<u64> for Keep<'static> {
    ///     type Error = std::convert::Infallible;
    ///     fn handle(&mut self, scope: HandleScope<'_, u64>) -> Result<(), Self::Error> {
    ///         self.0 = Some(scope);
    ///         Ok(())
    ///     }
    ///     fn on_error(&mut self, _: WorkerError<Self::Error>) {}
    ///     fn on_completed(&mut self, _: Outcome) {}
    /// }
    /// ```
    ///
    /// nor be read once it is released:
    ///
    /// ```compile_fail,E0382
    /// fn late(scope: tidegate::worker::HandleScope<'_, u64>) -> u64 {
    ///     scope.release();
    ///     *scope
    /// }
    /// ```
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do (also those of [`Slot::clear`]); the worker
    /// goes on with the next item.
    fn handle(&mut self, scope: HandleScope<'_, T>) -> Result<(), Self::Error>;

    /// Handling an item failed, or a callback panicked.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing waits after at least one item was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more.
    fn on_completed(&mut self, outcome: Outcome);
}

impl ValueSpWorker {
    /// Starts with the default: 1,024 slots.
    pub fn builder() -> Builder<InSlots> {
        Builder::new("value-sp")
    }
}

/// A producing half and what it produces for.
type Started<T, Other> = Result<(ValueProducer<T>, Other), StartError>;

impl<S> Builder<InSlots, S> {
    /// Starts the worker on a thread of its own, its slots made by `Default`. Cancelling `token`
    /// stops it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or the thread cannot be made.
    pub fn start<T, H>(self, handler: H, token: CancellationToken) -> Started<T, ValueSpWorker>
    where
        T: Slot + Default,
        H: ValueHandler<T>,
    {
        self.start_with(T::default, handler, token)
    }

    /// Like [`start`](Self::start), each slot made by `make`.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or the thread cannot be made.
    pub fn start_with<T, H>(
        self,
        make: impl FnMut() -> T,
        handler: H,
        token: CancellationToken,
    ) -> Started<T, ValueSpWorker>
    where
        T: Slot,
        H: ValueHandler<T>,
    {
        let name = self.name.clone();
        let (producer, engine) = self.halves(make, handler)?;
        Ok((producer, spawn(engine, name, token)?))
    }

    /// Makes the worker without a thread, its slots by `make`: its consumer runs in the caller's
    /// hand.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused.
    pub fn stepped<T, H>(self, make: impl FnMut() -> T, handler: H) -> Started<T, Stepper<H>>
    where
        T: Slot,
        H: ValueHandler<T>,
    {
        let (producer, engine) = self.halves(make, handler)?;
        Ok((producer, Stepper::new(engine)))
    }

    fn halves<T, H>(
        self,
        make: impl FnMut() -> T,
        handler: H,
    ) -> Started<T, Engine<ValueStage<T, H>>>
    where
        T: Slot,
        H: ValueHandler<T>,
    {
        let core = self.core()?;
        let (push, pop) = standing_ring(&core, make)?;
        let meter = Meter::new(core.capacity().get());
        let stage = ValueStage { ring: pop, handler, meter, failed: None };
        Ok((ValueProducer::new(push), Engine::new(core, stage)))
    }
}

/// The consuming half.
struct ValueStage<T: Slot, H> {
    ring: StandingConsumer<T>,
    handler: H,
    meter: Meter,
    /// What the clearing of a slot panicked with.
    failed: Option<Panicked>,
}

impl<T: Slot, H: ValueHandler<T>> ValueStage<T, H> {
    #[cold]
    fn report(&mut self, error: WorkerError<H::Error>) {
        self.ring.core().count_error();
        // A panic in the report of an error has nobody left to be reported to.
        let _ = catch(|| self.handler.on_error(error));
    }
}

impl<T: Slot, H: ValueHandler<T>> Stage for ValueStage<T, H> {
    type Handler = H;

    #[inline(always)]
    fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.ring.sight()
    }

    fn handle(&mut self) {
        self.handle_some(1);
    }

    /// A run of items under one catch, which goes on behind an item that failed.
    #[inline]
    fn handle_some(&mut self, most: usize) -> usize {
        let Self { ring, handler, meter, failed } = self;
        let before = meter.taken;
        let mut left = ring.in_sight().min(most);
        let mut in_hand = None;
        let failure = catch(|| {
            while left > 0 && !ring.core().is_cancelled() && failed.is_none() {
                left -= 1;
                in_hand = Some(ring.position());
                let handled = handler.handle(HandleScope::new(ring, meter, failed));
                if in_hand == Some(ring.position()) {
                    // The handler forgot its scope, in the strict sense.
                    release(ring, meter, failed, false);
                }
                handled?;
                ring.core().count_handled(meter.taken);
            }
            Ok(())
        });
        if failure.is_err() && in_hand == Some(ring.position()) {
            release(ring, meter, failed, false);
        }
        let done = (meter.taken - before) as usize;
        meter.freed();
        ring.core().count_handled(meter.taken);
        ring.free();
        match failure {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.report(WorkerError::Handler(error)),
            Err(panicked) => self.report(WorkerError::Panicked(panicked)),
        }
        if let Some(panicked) = self.failed.take() {
            self.report(WorkerError::Panicked(panicked));
        }
        done
    }

    fn discard(&mut self) {
        // Its own count: a slot dropped unhandled is not one handled.
        let _ = catch(|| self.ring.slot_mut().clear());
        self.ring.pass();
        self.ring.free();
        self.ring.core().count_discarded();
    }

    fn idle(&mut self) {
        if let Err(panicked) = catch(|| self.handler.on_idle()) {
            self.report(WorkerError::Panicked(panicked));
        }
    }

    fn completed(&mut self, outcome: Outcome) {
        self.handler.on_completed(outcome);
    }

    fn handler(&self) -> &H {
        &self.handler
    }

    fn handler_mut(&mut self) -> &mut H {
        &mut self.handler
    }

    fn into_handler(self) -> H {
        self.handler
    }
}
