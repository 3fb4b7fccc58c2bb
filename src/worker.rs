//! Single-producer single-consumer workers: a bounded mailbox and one handler.

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
mod keyed;
mod lifecycle;
mod refusal;
mod ring;
mod slots;
mod sp;
mod stepper;
mod sync;
mod wait;

pub use builder::{Builder, KeyedKind, StartError};
pub use coalescing::{Coalescing, CoalescingHandler, CoalescingProducer, CoalescingSpWorker};
pub use completion::{Completion, CompletionError, Fault, Outcome};
pub use conflation::{Conflation, ConflationHandler, ConflationProducer, ConflationSpWorker};
pub use control::{Worker, WorkerQueue};
pub use handler::{Panicked, WorkerError};
pub use keyed::{DispatchError, KeyHandle, Retired, TooManyKeys};
pub use lifecycle::{CloseReason, Counters};
pub use refusal::Refusal;
pub use ring::CapacityError;
pub use sp::{BatchError, ByValue, Handler, SendError, SpProducer, SpWorker};
pub use stepper::Stepper;
