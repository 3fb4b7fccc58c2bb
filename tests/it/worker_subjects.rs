//! Every worker there is, by one face: which one, what its consumer is, how its producer waits.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_support::{Item, Parcel, Probe};
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use tidegate::worker::{
    AsyncSpWorker, AsyncValueSpWorker, CloseReason, CoalescingHandler, CoalescingProducer,
    CoalescingSpWorker, Completion, ConflationProducer, ConflationSpWorker, Counters,
    DispatchError, Refusal, SendError, SpProducer, SpWorker, StartError, Stepped, Stepper,
    ValueProducer, ValueSpWorker, Worker, WorkerQueue,
};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// Where the consumers live that are tasks. Nobody blocks in it.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
});

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    ByValue,
    InSlots,
    Conflation,
    Coalescing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consumer {
    Thread,
    Task,
    /// Stepped by an event loop on a thread of its own.
    Stepped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    Blocking,
    Awaiting,
}

/// A member of the worker family. Every item is a key of its own, so keyed workers are first in,
/// first out, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) kind: Kind,
    pub(crate) consumer: Consumer,
    pub(crate) waits: Waits,
}

/// How a worker is started here.
pub(crate) struct Start {
    pub(crate) capacity: usize,
    pub(crate) position: usize,
    pub(crate) token: CancellationToken,
}

impl Start {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self { capacity, position: usize::MAX - 5, token: CancellationToken::new() }
    }
}

/// An item that came back, and why.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) item: Item,
    pub(crate) why: Why,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Full,
    Closed(CloseReason),
}

impl From<Refusal> for Why {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Full,
            Refusal::Closed(reason) => Self::Closed(reason),
        }
    }
}

impl From<DispatchError<Item>> for Refused {
    fn from(error: DispatchError<Item>) -> Self {
        let why = match &error {
            DispatchError::Full(_) => Why::Full,
            DispatchError::Closed(_, reason) => Why::Closed(*reason),
            other => panic!("unexpected refusal {other:?}"),
        };
        Self { item: error.into_value(), why }
    }
}

impl From<SendError<Item>> for Refused {
    fn from(error: SendError<Item>) -> Self {
        match error {
            SendError::Full(item) => Self { item, why: Why::Full },
            SendError::Closed(item, reason) => Self { item, why: Why::Closed(reason) },
        }
    }
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<(), Refused>> + Send + 'a>>;

/// A producing half without its type.
trait Sends: Send {
    fn send(&mut self, item: Item) -> Result<(), Refused>;
    fn try_send(&mut self, item: Item) -> Result<(), Refused>;
    fn send_async(&mut self, item: Item) -> Sending<'_>;
    fn complete(&mut self) -> bool;
}

/// A producing half that waits as its subject does.
pub(crate) struct Producer {
    half: Box<dyn Sends>,
    waits: Waits,
}

impl Producer {
    pub(crate) fn send(&mut self, item: Item) -> Result<(), Refused> {
        match self.waits {
            Waits::Blocking => self.half.send(item),
            Waits::Awaiting => block_on(self.half.send_async(item)),
        }
    }

    pub(crate) fn try_send(&mut self, item: Item) -> Result<(), Refused> {
        self.half.try_send(item)
    }

    pub(crate) fn send_async(&mut self, item: Item) -> Sending<'_> {
        self.half.send_async(item)
    }

    /// As [`send`](Self::send), inside of a task.
    pub(crate) async fn send_in_task(&mut self, item: Item) -> Result<(), Refused> {
        match self.waits {
            Waits::Blocking => self.half.send(item),
            Waits::Awaiting => self.half.send_async(item).await,
        }
    }

    pub(crate) fn complete(&mut self) -> bool {
        self.half.complete()
    }
}

impl Sends for SpProducer<Item> {
    fn send(&mut self, item: Item) -> Result<(), Refused> {
        self.dispatch(item).map_err(Refused::from)
    }

    fn try_send(&mut self, item: Item) -> Result<(), Refused> {
        self.try_dispatch(item).map_err(Refused::from)
    }

    fn send_async(&mut self, item: Item) -> Sending<'_> {
        Box::pin(async { self.dispatch_async(item).await.map_err(Refused::from) })
    }

    fn complete(&mut self) -> bool {
        self.complete()
    }
}

/// Writes an item into a slot, if there is one.
fn put(
    scope: Result<tidegate::worker::PublishScope<'_, Parcel>, Refusal>,
    item: Item,
) -> Result<(), Refused> {
    match scope {
        Err(refusal) => Err(Refused { item, why: refusal.into() }),
        Ok(mut scope) => {
            assert!(scope.0.is_none(), "a slot that was not cleared");
            scope.0 = Some(item);
            scope.commit().map_err(|mut back| Refused {
                item: back.0.take().unwrap(),
                why: Why::Closed(back.reason()),
            })
        }
    }
}

impl Sends for ValueProducer<Parcel> {
    fn send(&mut self, item: Item) -> Result<(), Refused> {
        put(self.publish(), item)
    }

    fn try_send(&mut self, item: Item) -> Result<(), Refused> {
        put(self.try_publish(), item)
    }

    fn send_async(&mut self, item: Item) -> Sending<'_> {
        Box::pin(async { put(self.publish_async().await, item) })
    }

    fn complete(&mut self) -> bool {
        self.complete()
    }
}

impl Sends for ConflationProducer<u32, Item> {
    fn send(&mut self, item: Item) -> Result<(), Refused> {
        self.dispatch(&item.number.clone(), item).map(drop).map_err(Refused::from)
    }

    fn try_send(&mut self, item: Item) -> Result<(), Refused> {
        self.try_dispatch(&item.number.clone(), item).map(drop).map_err(Refused::from)
    }

    fn send_async(&mut self, item: Item) -> Sending<'_> {
        let key = item.number;
        Box::pin(
            async move { self.dispatch_async(&key, item).await.map(drop).map_err(Refused::from) },
        )
    }

    fn complete(&mut self) -> bool {
        self.complete()
    }
}

impl<H: CoalescingHandler<u32, Item> + 'static> Sends for CoalescingProducer<u32, Item, H> {
    fn send(&mut self, item: Item) -> Result<(), Refused> {
        self.dispatch(&item.number.clone(), item).map_err(Refused::from)
    }

    fn try_send(&mut self, item: Item) -> Result<(), Refused> {
        self.try_dispatch(&item.number.clone(), item).map_err(Refused::from)
    }

    fn send_async(&mut self, item: Item) -> Sending<'_> {
        let key = item.number;
        Box::pin(async move { self.dispatch_async(&key, item).await.map_err(Refused::from) })
    }

    fn complete(&mut self) -> bool {
        self.complete()
    }
}

/// A worker's handle without its type.
pub(crate) trait Control: Send + Sync {
    fn complete(&self) -> bool;
    fn fault(&self, error: &str) -> bool;
    fn cancel(&self) -> bool;
    fn completion(&self) -> Completion;
    fn counters(&self) -> Counters;
    fn queue(&self) -> WorkerQueue;
}

impl<Kind> Control for Worker<Kind> {
    fn complete(&self) -> bool {
        Self::complete(self)
    }

    fn fault(&self, error: &str) -> bool {
        Self::fault(self, error)
    }

    fn cancel(&self) -> bool {
        Self::cancel(self)
    }

    fn completion(&self) -> Completion {
        Self::completion(self)
    }

    fn counters(&self) -> Counters {
        Self::counters(self)
    }

    fn queue(&self) -> WorkerQueue {
        Self::queue(self)
    }
}

type Started = Result<(Producer, Box<dyn Control>), StartError>;

impl Subject {
    pub(crate) fn start(self, start: Start, probe: Probe) -> Started {
        // What starts a task needs the runtime in sight; what starts a thread is not to see it.
        let _entered = (self.consumer == Consumer::Task).then(|| RUNTIME.enter());
        macro_rules! start {
            ($worker:ident, $method:ident) => {{
                let builder =
                    $worker::builder().capacity(start.capacity).start_position(start.position);
                let (half, worker) = builder.$method(probe, start.token)?;
                (Box::new(half) as Box<dyn Sends>, Box::new(worker) as Box<dyn Control>)
            }};
        }
        macro_rules! stepped {
            ($worker:ident $(, $make:expr)?) => {{
                let builder = $worker::builder()
                    .capacity(start.capacity)
                    .start_position(start.position);
                let (half, stepper) = builder.stepped($($make,)? probe)?;
                (Box::new(half) as Box<dyn Sends>, drive(stepper, start.token))
            }};
        }
        let (half, worker) = match (self.kind, self.consumer) {
            (Kind::ByValue, Consumer::Thread) => start!(SpWorker, start),
            (Kind::ByValue, Consumer::Task) => start!(AsyncSpWorker, start),
            (Kind::ByValue, Consumer::Stepped) => stepped!(SpWorker),
            (Kind::InSlots, Consumer::Thread) => start!(ValueSpWorker, start),
            (Kind::InSlots, Consumer::Task) => start!(AsyncValueSpWorker, start),
            (Kind::InSlots, Consumer::Stepped) => stepped!(ValueSpWorker, Parcel::default),
            (Kind::Conflation, Consumer::Thread) => start!(ConflationSpWorker, start),
            (Kind::Conflation, Consumer::Task) => start!(ConflationSpWorker, start_async),
            (Kind::Conflation, Consumer::Stepped) => stepped!(ConflationSpWorker),
            (Kind::Coalescing, Consumer::Thread) => start!(CoalescingSpWorker, start),
            (Kind::Coalescing, Consumer::Task) => start!(CoalescingSpWorker, start_async),
            (Kind::Coalescing, Consumer::Stepped) => stepped!(CoalescingSpWorker),
        };
        Ok((Producer { half, waits: self.waits }, worker))
    }
}

/// A stepped worker in the hand of an event loop, and its token watched.
struct Driven(Arc<Worker<Stepped>>);

impl Control for Driven {
    fn complete(&self) -> bool {
        self.0.complete()
    }

    fn fault(&self, error: &str) -> bool {
        self.0.fault(error)
    }

    fn cancel(&self) -> bool {
        self.0.cancel()
    }

    fn completion(&self) -> Completion {
        self.0.completion()
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }

    fn queue(&self) -> WorkerQueue {
        self.0.queue()
    }
}

fn drive(mut stepper: Stepper<Probe>, token: CancellationToken) -> Box<dyn Control> {
    let worker = Arc::new(stepper.worker());
    if token.is_cancelled() {
        worker.cancel();
    }
    let (watched, completion) = (Arc::downgrade(&worker), stepper.completion());
    drop(RUNTIME.spawn(async move {
        tokio::select! {
            () = token.cancelled() => drop(watched.upgrade().map(|worker| worker.cancel())),
            _ = completion => {}
        }
    }));
    thread::spawn(move || {
        while !stepper.has_ended() {
            block_on(std::future::poll_fn(|context| stepper.poll_ready(context)));
            stepper.step(2);
        }
    });
    Box::new(Driven(worker))
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Awaits on the calling thread, inside of a runtime or not.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(answer) => return answer,
            Poll::Pending => thread::park(),
        }
    }
}
