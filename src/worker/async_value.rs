//! The worker whose items live in the ring and are handled by a task.

use super::batch::Meter;
use super::builder::{Builder, StartError};
use super::completion::Outcome;
use super::control::Worker;
use super::handler::{Panicked, WorkerError, catch};
use super::lifecycle::Core;
use super::ring::PopCursor;
use super::slots::{StandingConsumer, standing_ring};
use super::task::{AsyncStage, TaskEngine, detached, start, watch};
use super::value::{HandleScope, Slot, ValueProducer, release};
use std::task::Context;
use tokio_util::sync::CancellationToken;

/// Marks a [`Worker`] of items in slots whose consumer is a task.
#[derive(Debug)]
pub enum AsyncInSlots {}

/// A worker whose items are written and read in place, and handled in a task.
///
/// ```
/// use tidegate::worker::{
///     AsyncValueHandler, AsyncValueSpWorker, HandleScope, Outcome, WorkerError,
/// };
/// use tokio_util::sync::CancellationToken;
///
/// struct Forward(tokio::sync::mpsc::Sender<u64>);
///
/// impl AsyncValueHandler<[u64; 32]> for Forward {
///     type Error = &'static str;
///
///     type Work = u64;
///
///     // First read the slot,
///     fn read(&mut self, slot: HandleScope<'_, [u64; 32]>) -> Result<u64, Self::Error> {
///         Ok(slot.iter().sum())
///     }
///
///     // then wait, the slot given back.
///     async fn handle(&mut self, sum: u64) -> Result<(), Self::Error> {
///         self.0.send(sum).await.map_err(|_| "nobody listens")
///     }
///
///     fn on_error(&mut self, error: WorkerError<Self::Error>) {
///         eprintln!("{error}");
///     }
///
///     async fn on_completed(&mut self, _outcome: Outcome) {}
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
/// let (mut producer, worker) = AsyncValueSpWorker::builder()
///     .capacity(64)
///     .start_with(|| [0; 32], Forward(sender), CancellationToken::new())?;
/// let mut slot = producer.publish_async().await?;
/// slot.fill(2);
/// drop(slot); // published
/// drop(producer);
/// assert_eq!(receiver.recv().await, Some(64));
/// worker.completion().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Scopes, slots and their clearing are those of [`ValueSpWorker`](super::ValueSpWorker); tasks and
/// hard stops are as with [`AsyncSpWorker`](super::AsyncSpWorker).
pub type AsyncValueSpWorker = Worker<AsyncInSlots>;

/// What an [`AsyncValueSpWorker`] does with its items: one call at a time, all in the worker's task.
///
/// An item is handled in two steps. [`read`](Self::read) has the slot and cannot wait;
/// [`handle`](Self::handle) can wait and has what was read, not the slot. So a handler that waits
/// never keeps a slot from the producer, and that is a matter of types: work cannot borrow from the
/// slot, whose scope ends with `read`. This does not compile (the compiler calls it a lifetime that
/// may not live long enough, an error without a code):
///
/// ```compile_fail
/// use tidegate::worker::{AsyncValueHandler, HandleScope, Outcome, WorkerError};
///
/// struct Keep;
///
/// impl AsyncValueHandler<u64> for Keep {
///     type Error = std::convert::Infallible;
///     type Work = HandleScope<'static, u64>; // a scope that would live across the await
///
///     fn read(&mut self, slot: HandleScope<'_, u64>) -> Result<Self::Work, Self::Error> {
///         Ok(slot)
///     }
///
///     async fn handle(&mut self, slot: Self::Work) -> Result<(), Self::Error> {
///         std::future::ready(()).await;
///         println!("{}", *slot);
///         Ok(())
///     }
///
///     fn on_error(&mut self, _: WorkerError<Self::Error>) {}
///     async fn on_completed(&mut self, _: Outcome) {}
/// }
/// ```
///
/// Nor can the slot go into a task of its own, and wait there:
///
/// ```compile_fail,E0521
/// use tidegate::worker::HandleScope;
///
/// fn read(slot: HandleScope<'_, u64>) {
///     tokio::task::spawn_local(async move {
///         std::future::ready(()).await;
///         println!("{}", *slot);
///     });
/// }
/// ```
///
/// And `read` itself cannot wait:
///
/// ```compile_fail,E0053
/// use tidegate::worker::{AsyncValueHandler, HandleScope, Outcome, WorkerError};
///
/// struct Wait;
///
/// impl AsyncValueHandler<u64> for Wait {
///     type Error = std::convert::Infallible;
///     type Work = u64;
///
///     async fn read(&mut self, slot: HandleScope<'_, u64>) -> Result<u64, Self::Error> {
///         std::future::ready(()).await;
///         Ok(*slot)
///     }
///
///     async fn handle(&mut self, _: u64) -> Result<(), Self::Error> {
///         Ok(())
///     }
///
///     fn on_error(&mut self, _: WorkerError<Self::Error>) {}
///     async fn on_completed(&mut self, _: Outcome) {}
/// }
/// ```
///
/// Moving the value out of the slot compiles, and is the way for items that `handle` needs whole:
///
/// ```
/// use tidegate::worker::{AsyncValueHandler, HandleScope, Outcome, WorkerError};
///
/// struct Take;
///
/// impl AsyncValueHandler<Option<String>> for Take {
///     type Error = std::convert::Infallible;
///     type Work = Option<String>;
///
///     fn read(
///         &mut self,
///         mut slot: HandleScope<'_, Option<String>>,
///     ) -> Result<Option<String>, Self::Error> {
///         Ok(slot.take())
///     }
///
///     async fn handle(&mut self, text: Option<String>) -> Result<(), Self::Error> {
///         std::future::ready(()).await;
///         println!("{text:?}");
///         Ok(())
///     }
///
///     fn on_error(&mut self, _: WorkerError<Self::Error>) {}
///     async fn on_completed(&mut self, _: Outcome) {}
/// }
/// ```
///
/// **A hard stop** drops the future of `handle` where it waits, and the work with it if the future
/// has it; see [`AsyncHandler`](super::AsyncHandler).
pub trait AsyncValueHandler<T: Slot>: Send + 'static {
    /// Why an item could not be handled.
    type Error: Send;

    /// What is left to do with an item once its slot was read.
    type Work: Send;

    /// Reads an item in its slot, which is given back when the scope is released or dropped.
    ///
    /// # Errors
    /// As those of [`handle`](Self::handle), which is then not called for this item.
    fn read(&mut self, slot: HandleScope<'_, T>) -> Result<Self::Work, Self::Error>;

    /// Handles what was read.
    ///
    /// # Errors
    /// Go to [`on_error`](Self::on_error), as panics do (also those of [`Slot::clear`]); the worker
    /// goes on with the next item.
    fn handle(&mut self, work: Self::Work) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Handling an item failed, or a callback panicked. Not asynchronous: it should be short.
    fn on_error(&mut self, error: WorkerError<Self::Error>);

    /// Nothing waits after at least one item was handled.
    fn on_idle(&mut self) {}

    /// The last call: nothing is handled any more. It is awaited, also after a hard stop; only when
    /// the task itself is dropped, as by a runtime that shuts down, is it polled but once.
    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send;
}

impl AsyncValueSpWorker {
    /// Starts with the default: 1,024 slots.
    pub fn builder() -> Builder<AsyncInSlots> {
        Builder::new("async-value-sp")
    }
}

impl<S> Builder<AsyncInSlots, S> {
    /// Starts the worker's task on the tokio runtime of the calling thread, its slots made by
    /// `Default`. Cancelling `token` stops it hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or there is no runtime.
    pub fn start<T, H>(
        self,
        handler: H,
        token: CancellationToken,
    ) -> Result<(ValueProducer<T>, AsyncValueSpWorker), StartError>
    where
        T: Slot + Default,
        H: AsyncValueHandler<T>,
    {
        self.start_with(T::default, handler, token)
    }

    /// Like [`start`](Self::start), each slot made by `make`.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused or there is no runtime.
    pub fn start_with<T, H>(
        self,
        make: impl FnMut() -> T,
        handler: H,
        token: CancellationToken,
    ) -> Result<(ValueProducer<T>, AsyncValueSpWorker), StartError>
    where
        T: Slot,
        H: AsyncValueHandler<T>,
    {
        let (producer, engine) = self.halves(make, handler)?;
        Ok((producer, start(engine, token)?))
    }

    /// Makes the worker, its slots by `make`, and its task for an executor of your choice. The task
    /// dropped, the worker is stopped hard.
    ///
    /// # Errors
    /// [`StartError`] if the capacity is refused.
    pub fn task<T, H, M>(
        self,
        make: M,
        handler: H,
        token: CancellationToken,
    ) -> Result<
        (ValueProducer<T>, AsyncValueSpWorker, impl Future<Output = ()> + Send + use<T, H, S, M>),
        StartError,
    >
    where
        T: Slot,
        H: AsyncValueHandler<T>,
        M: FnMut() -> T,
    {
        let (producer, engine) = self.halves(make, handler)?;
        let (worker, task) = detached(engine, token);
        Ok((producer, worker, task))
    }

    fn halves<T, H>(self, make: impl FnMut() -> T, handler: H) -> Result<Halves<T, H>, StartError>
    where
        T: Slot,
        H: AsyncValueHandler<T>,
    {
        let (core, meter) = self.core_of_runs()?;
        let (push, pop) = standing_ring(&core, make)?;
        let stage = SlotStage { ring: pop, handler, meter, failed: None, in_hand: None };
        Ok((ValueProducer::new(push), TaskEngine::new(core, self.wait, stage)))
    }
}

type Halves<T, H> = (ValueProducer<T>, TaskEngine<SlotStage<T, H>>);

/// The consuming half.
struct SlotStage<T: Slot, H> {
    ring: StandingConsumer<T>,
    handler: H,
    meter: Meter,
    /// What the clearing of a slot panicked with.
    failed: Option<Panicked>,
    /// Where the slot is that was last given to the handler.
    in_hand: Option<usize>,
}

impl<T: Slot, H: AsyncValueHandler<T>> SlotStage<T, H> {
    /// Gives a slot back whose scope the handler forgot, in the strict sense.
    #[inline]
    fn recover(&mut self) {
        if self.in_hand.take() == Some(self.ring.position()) && self.ring.in_sight() > 0 {
            release(&mut self.ring, &mut self.meter, &mut self.failed, false);
        }
    }
}

impl<T: Slot, H: AsyncValueHandler<T>> AsyncStage for SlotStage<T, H> {
    type Error = H::Error;

    #[inline]
    fn sight(&mut self) -> (&Core, &mut PopCursor) {
        self.ring.sight()
    }

    async fn run(&mut self, most: usize) -> Result<(), H::Error> {
        let mut left = self.ring.in_sight().min(most);
        while left > 0 && !self.ring.core().is_cancelled() && self.failed.is_none() {
            left -= 1;
            self.in_hand = Some(self.ring.position());
            let scope = HandleScope::new(&mut self.ring, &mut self.meter, &mut self.failed);
            let work = self.handler.read(scope);
            self.recover();
            let Self { ring, meter, handler, .. } = self;
            let (core, cursor) = ring.sight();
            watch!(handler.handle(work?), |nth: usize, context: &mut Context<'_>| {
                meter.suspends(nth, core, cursor, context);
            })?;
            self.ring.core().count_handled(self.meter.taken);
        }
        Ok(())
    }

    fn settle(&mut self) -> u64 {
        self.recover();
        let (core, cursor) = self.ring.sight();
        core.count_handled(self.meter.taken);
        self.meter.settles(core, cursor);
        self.meter.taken
    }

    fn failed_aside(&mut self) -> Option<Panicked> {
        self.failed.take()
    }

    fn discard(&mut self) {
        let _ = catch(|| self.ring.slot_mut().clear());
        self.ring.pass();
        self.ring.free();
        self.ring.core().count_discarded();
    }

    fn on_error(&mut self, error: WorkerError<H::Error>) {
        self.handler.on_error(error);
    }

    fn on_idle(&mut self) {
        self.handler.on_idle();
    }

    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send {
        self.handler.on_completed(outcome)
    }
}
