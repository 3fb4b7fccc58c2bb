//! A lock-free concurrency limiter whose capacity moves at run time.
//!
//! [`DynamicConcurrencyLimiter`] caps how many [permits](Permit) are held at one time. The cap can
//! be raised, lowered or set to zero from any thread while permits are held and callers wait; the
//! next admission obeys it. This module uses nothing else of the crate but its clock.
//!
//! ```
//! use std::sync::Arc;
//! use tidegate::limiter::DynamicConcurrencyLimiter;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let limiter = Arc::new(DynamicConcurrencyLimiter::new(2)?);
//!
//! // A scope: the permit goes back when it ends, however it ends.
//! {
//!     let _permit = limiter.acquire().await?;
//!     assert_eq!(limiter.active(), 1);
//! }
//!
//! // Or by hand, for code that cannot hold a guard: what is taken here is confirmed elsewhere.
//! limiter.try_acquire()?.forget();
//! limiter.try_acquire()?.forget();
//! limiter.set_capacity(1)?; // both stay in flight; nobody enters until one is left
//! assert!(limiter.try_acquire().is_err());
//! limiter.release_many(2)?;
//! assert!(limiter.release().is_err()); // a second release is an error, not a free permit
//!
//! // Or a thread, with a bound.
//! let seen = limiter.acquire_blocking_for(std::time::Duration::from_millis(10))?;
//! assert_eq!(limiter.snapshot().room(), 0);
//! # drop(seen);
//! # Ok(())
//! # }
//! ```
//!
//! # Design
//!
//! There are no permits to move about. *One 64-bit atomic word* holds four things side by side:
//! whether the limiter is closed, its capacity, how many are active, how many wait. Every decision
//! is one compare-exchange of all four, so:
//!
//! - **No caller enters on a stale capacity.** With capacity and active in two integers a caller
//!   can read the old capacity, lose the processor, and enter after a shrink has returned. Here
//!   its exchange fails. Once [`set_capacity(n)`](DynamicConcurrencyLimiter::set_capacity)
//!   returns nobody is admitted until fewer than `n` are active.
//! - **A release knows whether somebody waits**, from the exchange itself. It needs no lock and no
//!   fence to find out, and wakes nobody if there is nobody.
//! - **What is observed is consistent**: a [`Snapshot`] is one load.
//!
//! A semaphore made anew for each capacity was no choice: permits and waiters belong to the old one,
//! so every release, cancellation and wake around the exchange would have to find out which of the
//! two it means. Nor one whose permits are added and forgotten to resize it: those to be forgotten
//! may be held, so a shrink needs somebody who waits for them, and a grow that overtakes it gives out
//! too many. Here nothing is handed about; there is one state, and whether it admits.
//!
//! Resizing is passive. A shrink cancels nothing: active stays above capacity until enough is
//! released, and only then does anybody enter. A capacity of zero is a pause, not "no limit".
//!
//! # Fast path
//!
//! Acquire: load the word; if it is open and active < capacity, exchange it for one with active + 1.
//! Release: load the word; if something is active and nobody waits, exchange it for one with
//! active − 1. No lock, no allocation, no system call. A release of nothing is refused before the
//! exchange, so a release too many cannot raise the capacity.
//!
//! # Slow path
//!
//! Who finds no room takes the mutex and *joins*: under it, one exchange either takes a permit that
//! came free meanwhile or counts one more as waiting, and then a place is put on the list. The mutex
//! guards the list alone. It is locked by those who wait and by those who found that somebody
//! waits, and no foreign code runs under it: wakers are called, and dropped, after unlocking.
//!
//! A **signal** is a slot, not a queue: a place holds one at most, and no signal is sent while as
//! many are unanswered as there is room. So signals coalesce and never pile up. Each release,
//! resize, acquirer that leaves room beside waiters, and waiter that goes away with an unanswered
//! signal, sends one if that rule allows.
//!
//! That is also the **relay**: a resize from 1 to 1,000 over 999 waiters wakes one of them; it
//! enters, sees room and waiters left, and wakes the next. 999 wakes in all, one at a time, none
//! for nothing, and no herd.
//!
//! A waiter that goes away (its future is dropped, its time is over) leaves the list and the count.
//! If it held a signal it sends it on; if it held a permit that was handed to it, it releases it.
//!
//! # When they meet
//!
//! The one thing that can go wrong is a lost wake: room and a waiter beside each other, and nobody
//! on the way. Either comes about last:
//!
//! - *The waiter comes last.* Joining is an exchange of the same word that holds active. If a
//!   release comes in between, the exchange fails, and the caller finds the room.
//! - *The room comes last.* The release (or resize) exchanges a word in which somebody waits, so it
//!   goes for the mutex. `waiting` only changes under the mutex, so by then the place is on the
//!   list, or its owner has looked again, and has found the room.
//! - *A signalled waiter finds its room taken by a newcomer.* It goes back on the list within the
//!   same locked section in which it saw no room. Whoever makes room after that look waits for the
//!   mutex, and finds the place on the list again.
//! - *A signal is held back because enough are unanswered.* Each of those looks again later: it
//!   enters and relays, or finds no room, or goes away and sends the signal on.
//!
//! # Orderings
//!
//! | access | ordering | for what |
//! |---|---|---|
//! | acquire, exchange | `Acquire` | what the last holder did in this room is visible to the next; pairs with release, also across other callers' exchanges, which continue its release sequence |
//! | release, exchange | `Release` | the other half |
//! | release, first load | `Relaxed` | only the exchange decides |
//! | other loads | `Acquire` | who sees *closed* sees what came before the closing |
//! | exchanges under the mutex, resize, close | `AcqRel` | a permit handed over passes from the releaser through this exchange and the mutex to the waiter; a close publishes what came before it |
//! | `wakes`, `misuses` | `Relaxed` | counts that decide nothing |
//!
//! Nothing needs `SeqCst`: all that must not be missed is in one word, whose changes have one order
//! for everybody. Model checks under loom run acquire, release, resize, cancel and close against
//! each other; holders there leave data for the next with relaxed accesses, which only these
//! orderings make visible.
//!
//! # Fairness
//!
//! **Not first come, first served.** Whoever exchanges the word first is in: a newcomer may take
//! the room that a waiter is just being woken for. This keeps room in use while the waiter is on
//! its way, which takes microseconds. Among waiters the oldest is woken first and one that lost
//! stays in front.
//!
//! Starvation is bounded all the same. A waiter that was woken for nothing
//! [`LOSSES_BEFORE_HAND_OFF`](DynamicConcurrencyLimiter::LOSSES_BEFORE_HAND_OFF) times gets the
//! next permit handed over in the releaser's own exchange, where no newcomer can come between. That
//! bounds wakes, not time: a newcomer may still enter many times while one wake is on its way.
//!
//! The review that a limiter without an order calls for: in the gateway no instance ever has a
//! waiter. A subscriber's limiter is tried by the one shard that owns the subscriber, which is told
//! of room by its ready list, and whose sweep has an order of its own; admission tries, and answers
//! 503 if that fails. So no subscriber can overtake another here.
//!
//! # A capacity that moves by itself
//!
//! The limiter moves only when told. [`law`] has two rules that tell it what to do from measured
//! delays; a caller that wants one measures, asks, and calls `set_capacity`.
//!
//! # Trade-offs
//!
//! - 21 bits a field: at most 2,097,151 permits and as many waiters; more are named errors.
//! - All callers exchange one word. Under contention an exchange can fail because of a change that
//!   does not matter to it, and must be repeated; the alternative, separate words, is what lets
//!   callers enter on stale values.
//! - A place costs some 48 bytes while its owner waits; a list that has emptied gives a crowd's
//!   memory back. A limiter without waiters has never allocated.
//! - Under load without an end a relay wakes waiters one after the other. Waking all that fit at
//!   once would be quicker for the last of them and is what a herd is.
//! - Absent on purpose: acquiring several permits at once (a large request would starve, or block
//!   small ones), priorities, and reopening after a close.

mod acquire;
mod dynamic;
mod error;
pub mod law;
mod permit;
mod signal;
mod sync;
mod waiting;
mod word;

pub use acquire::{Acquire, AcquireOwned};
pub use dynamic::{DynamicConcurrencyLimiter, Snapshot};
pub use error::{AcquireError, CapacityError, ReleaseError, TryAcquireError};
pub use permit::{OwnedPermit, Permit};
