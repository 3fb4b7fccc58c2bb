//! What the workers' tests share: items that count themselves, a handler that writes down what it
//! is told, and the worker under test.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tidegate::worker::{
    CloseReason, CoalescingHandler, CoalescingProducer, CoalescingSpWorker, Completion,
    ConflationHandler, ConflationProducer, ConflationSpWorker, Counters, DispatchError, Handler,
    Outcome, SendError, SpProducer, SpWorker, StartError, Worker, WorkerError, WorkerQueue,
};
use tokio_util::sync::CancellationToken;

/// Counts the living items of a test.
#[derive(Clone, Debug, Default)]
pub(crate) struct Census(Arc<AtomicIsize>);

impl Census {
    pub(crate) fn living(&self) -> isize {
        self.0.load(SeqCst)
    }

    pub(crate) fn item(&self, number: u32) -> Item {
        self.0.fetch_add(1, SeqCst);
        Item { number, census: Some(self.clone()) }
    }
}

/// An item that is counted from its making to its drop.
#[derive(Debug, Default)]
pub(crate) struct Item {
    pub(crate) number: u32,
    census: Option<Census>,
}

impl Clone for Item {
    fn clone(&self) -> Self {
        match &self.census {
            Some(census) => census.item(self.number),
            None => Self { number: self.number, census: None },
        }
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        if let Some(census) = &self.census {
            let before = census.0.fetch_sub(1, SeqCst);
            assert!(before > 0, "item {} was dropped twice", self.number);
        }
    }
}

/// What a handler was told, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Handled(u32),
    Failed(u32),
    Panicked(String),
    Drained,
    Faulted(String),
    Cancelled,
}

/// A door that a handler stops at.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Default)]
struct GateState {
    shut: bool,
    at_the_door: usize,
}

impl Gate {
    pub(crate) fn shut(&self) {
        self.0.0.lock().unwrap().shut = true;
    }

    pub(crate) fn open(&self) {
        self.0.0.lock().unwrap().shut = false;
        self.0.1.notify_all();
    }

    /// Waits until the handler stands at the door.
    pub(crate) fn wait_for_arrival(&self) {
        let state = self.0.0.lock().unwrap();
        let wait = self.0.1.wait_timeout_while(state, PATIENCE, |s| s.at_the_door == 0).unwrap();
        assert!(!wait.1.timed_out(), "the handler did not come to the gate");
    }

    /// What a handler does: stands at the door until it is open.
    pub(crate) fn pass(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.at_the_door += 1;
        self.0.1.notify_all();
        state = self.0.1.wait_while(state, |s| s.shut).unwrap();
        state.at_the_door -= 1;
    }
}

/// How long a test waits for what must come at once. Never asserted tightly.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The handler of the tests.
#[derive(Clone, Default)]
pub(crate) struct Probe {
    events: Arc<Mutex<Vec<Event>>>,
    pub(crate) gate: Gate,
    pub(crate) fail_on: Vec<u32>,
    pub(crate) panic_on: Vec<u32>,
    pub(crate) panic_in_on_error: bool,
    pub(crate) panic_in_on_completed: bool,
    pub(crate) alive: Arc<()>,
    /// Whether a runtime was in sight, item by item.
    ambient: Arc<Mutex<Vec<bool>>>,
}

/// What the handler sees of the place where its worker was started.
pub(crate) struct AmbientCheck;

impl AmbientCheck {
    pub(crate) fn watch(probe: &Probe) -> Arc<Mutex<Vec<bool>>> {
        probe.ambient.clone()
    }
}

/// What the probe fails with.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) u32);

impl Probe {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    fn note(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }

    fn take(&mut self, item: &Item) -> Result<(), Refusal> {
        self.gate.pass();
        self.ambient.lock().unwrap().push(tokio::runtime::Handle::try_current().is_ok());
        let number = item.number;
        if self.panic_on.contains(&number) {
            panic!("item {number}");
        }
        if self.fail_on.contains(&number) {
            return Err(Refusal(number));
        }
        self.note(Event::Handled(number));
        Ok(())
    }

    fn error(&mut self, error: WorkerError<Refusal>) {
        match error {
            WorkerError::Handler(Refusal(number)) => self.note(Event::Failed(number)),
            WorkerError::Panicked(panicked) => {
                self.note(Event::Panicked(panicked.message().to_owned()));
            }
            other => panic!("unknown error {other:?}"),
        }
        assert!(!self.panic_in_on_error, "on_error");
    }

    fn end(&mut self, outcome: Outcome) {
        self.note(match outcome {
            Outcome::Drained => Event::Drained,
            Outcome::Faulted(fault) => Event::Faulted(fault.to_string()),
            Outcome::Cancelled => Event::Cancelled,
        });
        assert!(!self.panic_in_on_completed, "on_completed");
    }
}

impl ConflationHandler<u32, Item> for Probe {
    type Error = Refusal;

    fn handle(&mut self, key: &u32, item: Item) -> Result<(), Refusal> {
        assert_eq!(*key, item.number);
        self.take(&item)
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(outcome);
    }
}

impl CoalescingHandler<u32, Item> for Probe {
    type Error = Refusal;

    fn coalesce(current: &mut Item, incoming: Item) {
        *current = incoming;
    }

    fn handle(&mut self, key: &u32, item: Item) -> Result<(), Refusal> {
        assert_eq!(*key, item.number);
        self.take(&item)
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(outcome);
    }
}

impl Handler<Item> for Probe {
    type Error = Refusal;

    fn handle(&mut self, item: Item) -> Result<(), Refusal> {
        self.take(&item)
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(outcome);
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

/// A member of the worker family, as the conformance tests see it. Every item is a key of its own,
/// so keyed workers are first in, first out, too.
pub(crate) trait Subject {
    type Producer: Send + 'static;

    fn start(start: Start, probe: Probe) -> Result<(Self::Producer, Box<dyn Control>), StartError>;
    fn send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused>;
    fn try_send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused>;
    fn complete(producer: &mut Self::Producer) -> bool;
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

pub(crate) enum Conflating {}

impl Subject for Conflating {
    type Producer = ConflationProducer<u32, Item>;

    fn start(start: Start, probe: Probe) -> Result<(Self::Producer, Box<dyn Control>), StartError> {
        let (producer, worker) = ConflationSpWorker::builder()
            .capacity(start.capacity)
            .start_position(start.position)
            .start(probe, start.token)?;
        Ok((producer, Box::new(worker)))
    }

    fn send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused> {
        producer.dispatch(&item.number.clone(), item).map(drop).map_err(Refused::from)
    }

    fn try_send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused> {
        producer.try_dispatch(&item.number.clone(), item).map(drop).map_err(Refused::from)
    }

    fn complete(producer: &mut Self::Producer) -> bool {
        producer.complete()
    }
}

pub(crate) enum Coalescing {}

impl Subject for Coalescing {
    type Producer = CoalescingProducer<u32, Item, Probe>;

    fn start(start: Start, probe: Probe) -> Result<(Self::Producer, Box<dyn Control>), StartError> {
        let (producer, worker) = CoalescingSpWorker::builder()
            .capacity(start.capacity)
            .start_position(start.position)
            .start(probe, start.token)?;
        Ok((producer, Box::new(worker)))
    }

    fn send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused> {
        producer.dispatch(&item.number.clone(), item).map_err(Refused::from)
    }

    fn try_send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused> {
        producer.try_dispatch(&item.number.clone(), item).map_err(Refused::from)
    }

    fn complete(producer: &mut Self::Producer) -> bool {
        producer.complete()
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

pub(crate) enum Moving {}

impl Subject for Moving {
    type Producer = SpProducer<Item>;

    fn start(start: Start, probe: Probe) -> Result<(Self::Producer, Box<dyn Control>), StartError> {
        let (producer, worker) = SpWorker::builder()
            .capacity(start.capacity)
            .start_position(start.position)
            .start(probe, start.token)?;
        Ok((producer, Box::new(worker)))
    }

    fn send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused> {
        producer.dispatch(item).map_err(Refused::from)
    }

    fn try_send(producer: &mut Self::Producer, item: Item) -> Result<(), Refused> {
        producer.try_dispatch(item).map_err(Refused::from)
    }

    fn complete(producer: &mut Self::Producer) -> bool {
        producer.complete()
    }
}

/// Waits until `condition` holds.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let tries = PATIENCE.as_millis();
    for _ in 0..tries {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("still not so: {what}");
}
