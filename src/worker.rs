//! Single-producer single-consumer workers: a bounded mailbox and the one handler behind it.
//!
//! | worker | consumer | an item is | full means | handler |
//! |---|---|---|---|---|
//! | [`SpWorker`] | thread | moved through the ring, first in, first out | `capacity` items wait | [`Handler`] |
//! | [`ValueSpWorker`] | thread | written and read in its [`Slot`] | `capacity` slots are taken | [`ValueHandler`] |
//! | [`AsyncSpWorker`] | task | moved through the ring | `capacity` items wait | [`AsyncHandler`] |
//! | [`AsyncValueSpWorker`] | task | written and read in its [`Slot`] | `capacity` slots are taken | [`AsyncValueHandler`] |
//! | [`ConflationSpWorker`] | thread or task | the newest value of its key; a newer one takes its place | `capacity` keys are pending | [`ConflationHandler`], [`AsyncConflationHandler`] |
//! | [`CoalescingSpWorker`] | thread or task | folded into the total of its key, exactly once | `capacity` keys are pending | [`CoalescingHandler`], [`AsyncCoalescingHandler`] |
//!
//! Each has a producing half (`Send`, not `Clone`, not `Sync`, dispatching through `&mut self`: one
//! producer is a matter of types) that blocks, tries or awaits, and a consumer: a thread of its own
//! (`start`), a task (`start` of the asynchronous ones, `start_async`; `task` for other executors
//! than tokio), or the caller (`stepped`, a [`Stepper`]). Never are two handlers at work at once, and
//! nothing ambient (a span, a task-local) flows from the start into a handler: what belongs to an item
//! is in the item. All share one lifecycle:
//!
//! * *drain*: drop or complete the producing half, or [`Worker::complete`]. What was accepted is
//!   handled. [`Worker::fault`] does the same and passes an error on.
//! * *stop hard*: cancel the token, [`Worker::cancel`], or drop the [`Worker`]. What is pending is
//!   dropped, each item once. A thread's handler finishes the item in hand; a task's handler that
//!   waits is dropped where it does, and `on_completed` is still awaited.
//! * *end*: `on_completed` is called once and last, the handler is dropped, then
//!   [`Completion`] resolves, for tasks that await it and threads that wait.
//!
//! Errors and panics of `handle` go to `on_error`, and the worker goes on. A producer that waits for
//! a place is freed at once when the worker stops, with the reason; what it could not give comes
//! back inside the error.
//!
//! # A pipeline
//!
//! Completion is passed on by letting a stage's handler own the producer of the next: it is dropped
//! with its handler, and so each stage drains after the one before it.
//!
//! ```
//! use tidegate::worker::{Handler, Outcome, SpProducer, SpWorker, WorkerError};
//! use tokio_util::sync::CancellationToken;
//!
//! struct Double(SpProducer<u64>);
//! struct Sum(u64, std::sync::mpsc::SyncSender<u64>);
//!
//! impl Handler<u64> for Double {
//!     type Error = &'static str;
//!     fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
//!         self.0.dispatch(item * 2).map_err(|_| "the next stage is closed")
//!     }
//!     fn on_error(&mut self, error: WorkerError<Self::Error>) {
//!         eprintln!("{error}");
//!     }
//!     fn on_completed(&mut self, outcome: Outcome) {
//!         match outcome {
//!             Outcome::Drained => self.0.complete(),
//!             Outcome::Faulted(fault) => self.0.fault(fault),
//!             Outcome::Cancelled => self.0.fault("the stage before was cancelled"),
//!         };
//!     }
//! }
//!
//! impl Handler<u64> for Sum {
//!     type Error = std::convert::Infallible;
//!     fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
//!         self.0 += item;
//!         Ok(())
//!     }
//!     fn on_error(&mut self, _error: WorkerError<Self::Error>) {}
//!     fn on_completed(&mut self, _outcome: Outcome) {
//!         let _ = self.1.send(self.0);
//!     }
//! }
//!
//! let token = CancellationToken::new();
//! let (tell, told) = std::sync::mpsc::sync_channel(1);
//! let (next, last_stage) = SpWorker::builder().start(Sum(0, tell), token.clone())?;
//! let (mut first, first_stage) = SpWorker::builder().start(Double(next), token)?;
//! for item in 1..=10 {
//!     first.dispatch(item)?;
//! }
//! first.complete();
//! first_stage.completion().wait()?;
//! last_stage.completion().wait()?;
//! assert_eq!(told.recv()?, 110);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Stages that are tasks do the same with `dispatch_async`, and waiting for the next stage then holds
//! up no thread. Here the first stage is faulted, drains, and passes its error on:
//!
//! ```
//! use tidegate::worker::{
//!     AsyncHandler, AsyncSpWorker, CompletionError, Outcome, SendError, SpProducer, WorkerError,
//! };
//! use tokio_util::sync::CancellationToken;
//!
//! struct Double(SpProducer<u64>);
//! struct Store(tokio::sync::mpsc::Sender<u64>);
//!
//! impl AsyncHandler<u64> for Double {
//!     type Error = SendError<u64>;
//!     async fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
//!         self.0.dispatch_async(item * 2).await
//!     }
//!     fn on_error(&mut self, error: WorkerError<Self::Error>) {
//!         eprintln!("{error}");
//!     }
//!     async fn on_completed(&mut self, outcome: Outcome) {
//!         match outcome {
//!             Outcome::Drained => self.0.complete(),
//!             Outcome::Faulted(fault) => self.0.fault(fault),
//!             Outcome::Cancelled => self.0.fault("the stage before was cancelled"),
//!         };
//!     }
//! }
//!
//! impl AsyncHandler<u64> for Store {
//!     type Error = &'static str;
//!     async fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
//!         self.0.send(item).await.map_err(|_| "nobody listens")
//!     }
//!     fn on_error(&mut self, error: WorkerError<Self::Error>) {
//!         eprintln!("{error}");
//!     }
//!     async fn on_completed(&mut self, _outcome: Outcome) {}
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let token = CancellationToken::new();
//! let (store, mut stored) = tokio::sync::mpsc::channel(1);
//! let (next, last_stage) = AsyncSpWorker::builder().start(Store(store), token.clone())?;
//! let (mut first, first_stage) = AsyncSpWorker::builder().start(Double(next), token)?;
//! for item in 1..=3 {
//!     first.dispatch_async(item).await?;
//! }
//! first.fault("the feed was cut");
//! // What was accepted goes all the way, and then the end.
//! let mut seen = Vec::new();
//! while let Some(item) = stored.recv().await {
//!     seen.push(item);
//! }
//! assert_eq!(seen, [2, 4, 6]);
//! for stage in [first_stage.completion(), last_stage.completion()] {
//!     let Err(CompletionError::Faulted(fault)) = stage.await else { panic!("not faulted") };
//!     assert_eq!(fault.to_string(), "the feed was cut");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! Items (keyed workers: indices of keys) go through a bounded ring of two positions, each written
//! by one side. The values of keys lie in cells beside it and never move. Each algorithm is told
//! where it lives, with its orderings: sleeping and waking in `wait`, its fences in `fence`, closing
//! in `lifecycle`, the cells in `cell`.
//!
//! Orderings in short (each of those files has the whole argument, and loom runs what would break
//! without them):
//!
//! | what | written by | order | makes sure |
//! |---|---|---|---|
//! | tail, head of the ring | their one side | release, read acquire | an item is seen once it is written, a place written again once it is read |
//! | the word of stops and sleepers | all | read-modify-writes acquire-release | a stop and a sleeper meet in one order |
//! | publish, then look for a sleeper; fall asleep, then look for an item | one side each | a light and a heavy fence | one of the two sees the other |
//! | the final tail | consumer | behind a heavy fence, before a release | both sides agree on what was accepted |
//! | a cell's state | both sides | swaps acquire-release | a value and its buffer change hands whole |
//! | counts | their one writer | release, read acquire, out before in | no snapshot shows more out than in |
//!
//! # Trade-offs
//!
//! * Memory is taken in advance: a ring place is as large as an item (four bytes in keyed workers);
//!   a key takes one value on cache lines of its own, 16 bytes beside it (64 for the first four
//!   thousand keys), two copies of the key and 8 to 16 bytes to find it by, in chunks that grow by
//!   doubling and are never given back before the worker's end; large ones ask for large pages. A keyed
//!   worker has 33 values' room besides.
//! * A slot is as large as its value and lives as long as the worker; its `clear` decides what it
//!   keeps. While a slot is in the handler's hand it counts as taken.
//! * Emptied places are given back a few at a time (16 at most, one in rings of 64 or fewer, a quarter
//!   of the ring to a batch handler), so a full ring may look full that much longer. An awaiting
//!   producer of a task is woken once a quarter of the ring (256 places at most) is free, nothing is
//!   left to handle, or the handler waits for something else than its turn.
//! * A dispatch that is awaited and given up drops its item; `ready` awaits without one.
//! * A dispatch costs no fence; a side that falls asleep pays for both (some microseconds, on Linux
//!   with `membarrier`). Waking a sleeper is a system call; a busy worker makes none.
//! * A key that is hot on both sides costs two cache-line transfers a hand-over, whatever the
//!   container.
//! * There is no unbounded mailbox, no second producer, no priority, no peeking, and no way to take
//!   an item back: on purpose.

mod async_keyed;
mod async_sp;
mod async_value;
mod awaiting;
mod batch;
mod builder;
mod cell;
mod coalescing;
mod completion;
mod conflation;
mod control;
mod dedicated;
mod engine;
mod fence;
mod handler;
mod key_map;
mod keyed;
mod keyed_batch;
mod lifecycle;
mod refusal;
mod ring;
mod slots;
mod sp;
mod stepper;
mod sync;
mod task;
mod value;
mod wait;

pub use async_keyed::{
    AsyncCoalescingHandler, AsyncCoalescingProducer, AsyncConflationHandler, AsyncFold,
};
pub use async_sp::{AsyncByValue, AsyncHandler, AsyncSpWorker};
pub use async_value::{AsyncInSlots, AsyncValueHandler, AsyncValueSpWorker};
pub use batch::Batch;
pub use builder::{Builder, KeyedKind, StartError};
pub use coalescing::{Coalescing, CoalescingHandler, CoalescingProducer, CoalescingSpWorker};
pub use completion::{Completion, CompletionError, Fault, Outcome};
pub use conflation::{Conflation, ConflationHandler, ConflationProducer, ConflationSpWorker};
pub use control::{Worker, WorkerQueue};
pub use handler::{Panicked, WorkerError};
pub use keyed::{DispatchError, KeyHandle, Retired, TooManyKeys};
pub use keyed_batch::KeyedBatchError;
pub use lifecycle::{CloseReason, Counters};
pub use refusal::{BatchError, Refusal, SendError};
pub use ring::CapacityError;
pub use sp::{ByValue, Handler, SpProducer, SpWorker};
pub use stepper::{Stepped, Stepper};
pub use value::{
    HandleScope, InSlots, PublishScope, Slot, Unpublished, ValueHandler, ValueProducer,
    ValueSpWorker,
};
pub use wait::WaitStrategy;
