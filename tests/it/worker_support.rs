//! What the workers' tests share: items that count themselves, a handler that writes down what it
//! is told, and the worker under test.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_subjects::{Producer, Refused, Why};
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tidegate::worker::{
    AsyncCoalescingHandler, AsyncConflationHandler, AsyncHandler, AsyncValueHandler,
    CoalescingHandler, ConflationHandler, HandleScope, Handler, Outcome, Slot, ValueHandler,
    WorkerError,
};
use tokio::sync::Notify;

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
pub(crate) struct Gate(Arc<(Mutex<GateState>, Condvar, Notify)>);

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
        self.0.2.notify_waiters();
    }

    /// Waits until the handler stands at the door.
    pub(crate) fn wait_for_arrival(&self) {
        let state = self.0.0.lock().unwrap();
        let wait = self.0.1.wait_timeout_while(state, PATIENCE, |s| s.at_the_door == 0).unwrap();
        assert!(!wait.1.timed_out(), "the handler did not come to the gate");
    }

    /// What a handler in a task does: it waits there without blocking.
    pub(crate) async fn pass_in_task(&self) {
        {
            self.0.0.lock().unwrap().at_the_door += 1;
            self.0.1.notify_all();
        }
        loop {
            let opened = self.0.2.notified();
            {
                let mut state = self.0.0.lock().unwrap();
                if !state.shut {
                    state.at_the_door -= 1;
                    return;
                }
            }
            opened.await;
        }
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
    /// Asked by every call of the handler, and its answers.
    pub(crate) ambient: Option<fn() -> Vec<&'static str>>,
    pub(crate) seen: Arc<Mutex<Vec<&'static str>>>,
    /// The worker's own producer, for the handler of item 0 to fill it up.
    pub(crate) own: Option<(Arc<Mutex<Option<Producer>>>, Census)>,
    /// How many handlers are at work.
    at_work: Arc<AtomicIsize>,
}

/// Counts a handler as at work; there must be no other.
struct AtWork(Arc<AtomicIsize>);

impl AtWork {
    fn enter(probe: &Probe) -> Self {
        assert_eq!(probe.at_work.fetch_add(1, SeqCst), 0, "two handlers at once");
        Self(probe.at_work.clone())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
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
        let _at_work = AtWork::enter(self);
        self.gate.pass();
        if item.number == 0 && self.own.is_some() {
            let (mut producer, number) = (self.take_own(), 100..);
            for number in number {
                if let Err(refused) = producer.send(self.item(number)) {
                    self.put_own(producer, refused);
                    break;
                }
            }
        }
        self.judge(item)
    }

    /// In a task: waits at the gate, gives way now and then.
    async fn take_in_task(&mut self, item: &Item) -> Result<(), Refusal> {
        let _at_work = AtWork::enter(self);
        self.gate.pass_in_task().await;
        if item.number == 0 && self.own.is_some() {
            let (mut producer, number) = (self.take_own(), 100..);
            for number in number {
                if let Err(refused) = producer.send_in_task(self.item(number)).await {
                    self.put_own(producer, refused);
                    break;
                }
            }
        }
        if item.number % 3 == 1 {
            tokio::task::yield_now().await;
        }
        self.judge(item)
    }

    fn take_own(&self) -> Producer {
        self.own.as_ref().unwrap().0.lock().unwrap().take().unwrap()
    }

    fn item(&self, number: u32) -> Item {
        self.own.as_ref().unwrap().1.item(number)
    }

    fn put_own(&self, producer: Producer, refused: Refused) {
        assert_eq!(refused.why, Why::Full);
        self.seen.lock().unwrap().push("full");
        *self.own.as_ref().unwrap().0.lock().unwrap() = Some(producer);
    }

    fn judge(&mut self, item: &Item) -> Result<(), Refusal> {
        if let Some(ask) = self.ambient {
            self.seen.lock().unwrap().extend(ask());
        }
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

/// A slot for one item.
#[derive(Debug, Default)]
pub(crate) struct Parcel(pub(crate) Option<Item>);

impl Slot for Parcel {
    fn clear(&mut self) {
        self.0 = None;
    }
}

impl ValueHandler<Parcel> for Probe {
    type Error = Refusal;

    fn handle(&mut self, mut scope: HandleScope<'_, Parcel>) -> Result<(), Refusal> {
        // Every other item is handled in its slot, the rest out of it.
        if scope.0.as_ref().unwrap().number % 2 == 1 {
            return self.take(scope.0.as_ref().unwrap());
        }
        let item = scope.0.take().unwrap();
        scope.release();
        self.take(&item)
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(outcome);
    }
}

impl AsyncHandler<Item> for Probe {
    type Error = Refusal;

    async fn handle(&mut self, item: Item) -> Result<(), Refusal> {
        self.take_in_task(&item).await
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    async fn on_completed(&mut self, outcome: Outcome) {
        tokio::task::yield_now().await;
        self.end(outcome);
    }
}

impl AsyncValueHandler<Parcel> for Probe {
    type Error = Refusal;
    type Work = Item;

    fn read(&mut self, mut slot: HandleScope<'_, Parcel>) -> Result<Item, Refusal> {
        Ok(slot.0.take().unwrap())
    }

    async fn handle(&mut self, item: Item) -> Result<(), Refusal> {
        self.take_in_task(&item).await
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    async fn on_completed(&mut self, outcome: Outcome) {
        tokio::task::yield_now().await;
        self.end(outcome);
    }
}

impl AsyncConflationHandler<u32, Item> for Probe {
    type Error = Refusal;

    async fn handle(&mut self, key: &u32, item: Item) -> Result<(), Refusal> {
        let done = self.take_in_task(&item).await;
        assert_eq!(*key, item.number);
        done
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    async fn on_completed(&mut self, outcome: Outcome) {
        self.end(outcome);
    }
}

impl AsyncCoalescingHandler<u32, Item> for Probe {
    type Error = Refusal;

    fn coalesce(current: &mut Item, incoming: Item) {
        *current = incoming;
    }

    async fn handle(&mut self, key: &u32, item: Item) -> Result<(), Refusal> {
        let done = self.take_in_task(&item).await;
        assert_eq!(*key, item.number);
        done
    }

    fn on_error(&mut self, error: WorkerError<Refusal>) {
        self.error(error);
    }

    async fn on_completed(&mut self, outcome: Outcome) {
        self.end(outcome);
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
