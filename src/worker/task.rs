//! A consumer that is a task, the same for every worker: its loop, its end, and what a hard stop does
//! to it.
//!
//! The future of the handler lies inside of the task's own, so that a handler that suspends costs no
//! allocation. It is polled under a catch; a panic ends that one item.
//!
//! * *A stop that drains* lets a suspended handler go on.
//! * *A hard stop* wakes the task, which drops the suspended handler's future where it waits, as any
//!   cancelled future in Rust; the item in its hand counts as handled. Then the pending items are
//!   dropped and `on_completed` is called. So no stop leaves a task behind.
//! * *A task that is dropped* by its executor (a runtime that shuts down) does the same in its drop;
//!   `on_completed` is then polled once, for nobody would poll it again.

use super::builder::StartError;
use super::completion::Outcome;
use super::control::Worker;
use super::dedicated::CancelWatch;
use super::handler::{Panicked, WorkerError, catch};
use super::lifecycle::{Core, Next};
use super::ring::PopCursor;
use super::sync::{Arc, this_thread};
use super::wait::{Patience, WaitStrategy};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio_util::sync::CancellationToken;

/// Items handled before the task gives way to others of its executor.
const BUDGET: usize = 256;

/// The part of a task's consumer that knows what its items are.
pub(super) trait AsyncStage: Send + 'static {
    /// What the user's handler fails with.
    type Error: Send;
    /// The consuming end's sight of the ring.
    fn sight(&mut self) -> (&Core, &mut PopCursor);
    /// Handles up to `most` of the items in sight, until one fails.
    fn run(&mut self, most: usize) -> impl Future<Output = Result<(), Self::Error>> + Send;
    /// A run is over, whichever way: frees what it kept, and tells the counts; how many items were
    /// handled so far.
    fn settle(&mut self) -> u64;
    /// A panic beside the run, such as in the clearing of a slot.
    fn failed_aside(&mut self) -> Option<Panicked> {
        None
    }
    /// Takes the next item, which is in sight, and drops it.
    fn discard(&mut self);
    fn on_error(&mut self, error: WorkerError<Self::Error>);
    fn on_idle(&mut self);
    fn on_completed(&mut self, outcome: Outcome) -> impl Future<Output = ()> + Send;
}

/// Starts a consumer on the tokio runtime of the calling thread.
///
/// # Errors
/// [`StartError::NoRuntime`].
pub(super) fn start<Kind, S: AsyncStage>(
    engine: TaskEngine<S>,
    token: CancellationToken,
) -> Result<Worker<Kind>, StartError> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| StartError::NoRuntime)?;
    let (worker, task) = detached(engine, token);
    // It ends by itself, in every case; nobody has to hold it.
    drop(runtime.spawn(task));
    Ok(worker)
}

/// The consumer as a future, for whichever executor.
pub(super) fn detached<Kind, S: AsyncStage>(
    engine: TaskEngine<S>,
    token: CancellationToken,
) -> (Worker<Kind>, impl Future<Output = ()> + Send + 'static) {
    let core = engine.core.clone();
    let watch = CancelWatch::arm(token, core.clone());
    let task = async move {
        engine.run().await;
        drop(watch);
    };
    (Worker::without_thread(core), task)
}

/// Drives a stage as a task.
pub(super) struct TaskEngine<S: AsyncStage> {
    core: Arc<Core>,
    stage: Option<S>,
    /// Decided; the handler has been told.
    outcome: Option<Outcome>,
    /// Whether something was handled since the last idle round.
    stirred: bool,
    wait: WaitStrategy,
}

impl<S: AsyncStage> TaskEngine<S> {
    pub(super) const fn new(core: Arc<Core>, wait: WaitStrategy, stage: S) -> Self {
        Self { core, stage: Some(stage), outcome: None, stirred: false, wait }
    }

    /// Handles to the end.
    async fn run(mut self) {
        let core = self.core.clone();
        let mut thread = None;
        let mut work = pin!(self.work());
        poll_fn(|context| {
            let here = this_thread();
            if thread != Some(here) {
                core.consumer_is(here);
                thread = Some(here);
            }
            core.poll_begins(context.waker());
            let polled = work.as_mut().poll(context);
            core.poll_ends();
            polled
        })
        .await;
    }

    async fn work(&mut self) {
        let Self { core, stage, outcome, stirred, wait } = self;
        let (shared, Some(at_work)) = (&**core, stage.as_mut()) else { return };
        let (mut spent, mut before) = (0, 0);
        loop {
            let (core, cursor) = at_work.sight();
            match core.next(cursor) {
                Next::Item if spent >= BUDGET => {
                    spent = 0;
                    tokio::task::yield_now().await;
                }
                Next::Item => {
                    let handled = handle(shared, at_work, BUDGET - spent).await;
                    spent += (handled - before) as usize;
                    before = handled;
                    *stirred = true;
                }
                Next::Empty => {
                    idle(at_work, stirred);
                    let (core, cursor) = at_work.sight();
                    let mut patience = Patience::of_task(*wait);
                    poll_fn(|context| core.poll_items(cursor, &mut patience, context)).await;
                }
                Next::Ended | Next::Cancelled => break,
            }
        }
        let (ending, cursor) = at_work.sight();
        ending.close(cursor);
        while at_work.sight().1.has_item() && !shared.is_cancelled() {
            handle(shared, at_work, BUDGET).await;
            *stirred = true;
        }
        discard_all(at_work);
        idle(at_work, stirred);
        let decided = outcome.insert(shared.seal()).clone();
        let _ = caught(|| at_work.on_completed(decided), || false).await;
        end(shared, stage, outcome);
    }
}

impl<S: AsyncStage> Drop for TaskEngine<S> {
    fn drop(&mut self) {
        let Some(stage) = &mut self.stage else { return };
        if self.outcome.is_none() {
            self.core.cancel();
            let (core, cursor) = stage.sight();
            core.close(cursor);
            discard_all(stage);
            let told = self.outcome.insert(self.core.seal()).clone();
            let mut last = pin!(caught(|| stage.on_completed(told), || false));
            let _ = last.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        end(&self.core, &mut self.stage, &mut self.outcome);
    }
}

/// The handler is gone before anybody learns of the end.
fn end<S>(core: &Core, stage: &mut Option<S>, outcome: &mut Option<Outcome>) {
    let stage = stage.take();
    let _ = catch(|| drop(stage));
    core.task_is_over();
    if let Some(outcome) = outcome.take() {
        core.resolve(outcome);
    }
}

/// A run of items, of which one may fail; how many were handled so far.
async fn handle<S: AsyncStage>(core: &Core, stage: &mut S, most: usize) -> u64 {
    let ended = caught(|| stage.run(most), || core.is_cancelled()).await;
    let handled = stage.settle();
    let failure = match ended {
        Ended::With(Ok(())) | Ended::GivenUp(None) => None,
        Ended::With(Err(error)) => Some(WorkerError::Handler(error)),
        Ended::Panicked(panicked) | Ended::GivenUp(Some(panicked)) => {
            Some(WorkerError::Panicked(panicked))
        }
    };
    let aside = stage.failed_aside().map(WorkerError::Panicked);
    for error in failure.into_iter().chain(aside) {
        report(stage, error);
    }
    handled
}

fn report<S: AsyncStage>(stage: &mut S, error: WorkerError<S::Error>) {
    stage.sight().0.count_error();
    // A panic in the report of an error has nobody left to be reported to.
    let _ = catch(|| stage.on_error(error));
}

fn idle<S: AsyncStage>(stage: &mut S, stirred: &mut bool) {
    if std::mem::take(stirred)
        && let Err(panicked) = catch(|| stage.on_idle())
    {
        report(stage, WorkerError::Panicked(panicked));
    }
}

fn discard_all<S: AsyncStage>(stage: &mut S) {
    while stage.sight().1.has_item() {
        stage.discard();
    }
}

/// How a piece of the user's asynchronous code came to its end.
enum Ended<R> {
    With(R),
    Panicked(Panicked),
    /// Dropped where it waited, perhaps with a panic.
    GivenUp(Option<Panicked>),
}

/// Makes a future and polls it to its end, each under a catch, until `give_up` says otherwise.
async fn caught<F: Future>(
    make: impl FnOnce() -> F,
    give_up: impl Fn() -> bool,
) -> Ended<F::Output> {
    let made = match catch(make) {
        Ok(made) => made,
        Err(panicked) => return Ended::Panicked(panicked),
    };
    let mut future = pin!(Some(made));
    let ended = poll_fn(|context| {
        if give_up() {
            return Poll::Ready(Ended::GivenUp(None));
        }
        poll_caught(future.as_mut(), context)
    })
    .await;
    // Dropped under a catch, too.
    match (ended, catch(|| future.set(None))) {
        (Ended::With(_) | Ended::GivenUp(None), Err(panicked)) => Ended::GivenUp(Some(panicked)),
        (ended, _) => ended,
    }
}

fn poll_caught<F: Future>(
    future: Pin<&mut Option<F>>,
    context: &mut Context<'_>,
) -> Poll<Ended<F::Output>> {
    let Some(future) = future.as_pin_mut() else { return Poll::Ready(Ended::GivenUp(None)) };
    match catch(|| future.poll(context)) {
        Ok(polled) => polled.map(Ended::With),
        Err(panicked) => Poll::Ready(Ended::Panicked(panicked)),
    }
}

/// Awaits a handler's future; `suspends` is called each time that it waits, with the count of it. A
/// macro, because a future that is handed from function to function is copied each time, an item.
macro_rules! watch {
    ($future:expr, $suspends:expr) => {
        crate::worker::task::Watched::new(std::pin::pin!($future), $suspends).await
    };
}

pub(super) use watch;

/// What [`watch`] awaits. By hand, so that a handler that does not wait is polled in line.
pub(super) struct Watched<'a, F, S> {
    future: Pin<&'a mut F>,
    suspends: S,
    times: usize,
}

impl<'a, F, S> Watched<'a, F, S> {
    #[inline(always)]
    pub(super) const fn new(future: Pin<&'a mut F>, suspends: S) -> Self {
        Self { future, suspends, times: 0 }
    }
}

// The future is pinned where it lies, not in here.
impl<F, S> Unpin for Watched<'_, F, S> {}

impl<F: Future, S: FnMut(usize, &mut Context<'_>)> Future for Watched<'_, F, S> {
    type Output = F::Output;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.future.as_mut().poll(context);
        if polled.is_pending() {
            self.times += 1;
            let times = self.times;
            (self.suspends)(times, context);
        }
        polled
    }
}
