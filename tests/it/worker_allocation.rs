//! Nothing is allocated per item, on either side, sleeping and waking included.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::counting::{Group, allocations_everywhere};
use crate::worker_support::eventually;
use std::sync::{Arc, Mutex};
use tidegate::worker::{
    AsyncCoalescingHandler, AsyncConflationHandler, AsyncHandler, AsyncSpWorker, AsyncValueHandler,
    AsyncValueSpWorker, CoalescingHandler, CoalescingSpWorker, ConflationHandler,
    ConflationSpWorker, HandleScope, Handler, Outcome, SpWorker, ValueHandler, ValueSpWorker,
    WorkerError,
};
use tokio_util::sync::CancellationToken;

/// Joins the measured group from the consumer's thread, and allocates nothing itself.
#[derive(Clone, Default)]
struct Quiet(Arc<Mutex<Option<Group>>>);

impl Quiet {
    fn join(&self) {
        if let Some(group) = *self.0.lock().unwrap() {
            group.join();
        }
    }
}

type Value = [u64; 8];

impl ConflationHandler<u32, Value> for Quiet {
    type Error = std::convert::Infallible;

    fn handle(&mut self, _key: &u32, _value: Value) -> Result<(), Self::Error> {
        self.join();
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

impl CoalescingHandler<u32, Value> for Quiet {
    type Error = std::convert::Infallible;

    fn coalesce(current: &mut Value, incoming: Value) {
        current[0] += incoming[0];
    }

    fn handle(&mut self, _key: &u32, _value: Value) -> Result<(), Self::Error> {
        self.join();
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

const KEYS: u32 = 100;

/// Every key once to warm up; then a measured run that fills the ring again and again, and lets the
/// consumer fall asleep between rounds.
macro_rules! measure {
    ($worker:ident) => {{
        let quiet = Quiet::default();
        let (mut producer, worker) =
            $worker::builder().capacity(4).start(quiet.clone(), CancellationToken::new()).unwrap();
        for key in 0..KEYS {
            producer.dispatch(&key, [1; 8]).unwrap();
        }
        let handles: Vec<_> = (0..KEYS).map(|key| producer.key(&key).unwrap()).collect();
        let settled = || {
            let counters = worker.counters();
            counters.dispatched == counters.handled + counters.conflated
        };
        eventually("the warm-up is handled", settled);
        let count = allocations_everywhere(|group| {
            *quiet.0.lock().unwrap() = Some(group);
            for round in 0..20_u64 {
                for number in 0..1_000_u64 {
                    let key = (number * 7 % u64::from(KEYS)) as u32;
                    producer.dispatch(&key, [round; 8]).unwrap();
                    producer.dispatch_at(handles[key as usize], [number; 8]).unwrap();
                }
                let batch = handles.iter().cycle().take(1_000).map(|handle| (*handle, [round; 8]));
                producer.dispatch_all(batch).unwrap();
                let batch = (0..KEYS).cycle().take(1_000).map(|key| (key, [round; 8]));
                producer.dispatch_all_by_key(batch).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            eventually("everything is handled", settled);
        });
        *quiet.0.lock().unwrap() = None;
        assert!(worker.counters().handled > u64::from(KEYS) + 20, "the consumer was measured, too");
        count
    }};
}

#[test]
fn a_conflating_worker_allocates_nothing_per_item() {
    assert_eq!(measure!(ConflationSpWorker), 0);
}

#[test]
fn a_coalescing_worker_allocates_nothing_per_item() {
    assert_eq!(measure!(CoalescingSpWorker), 0);
}

impl Handler<Value> for Quiet {
    type Error = std::convert::Infallible;

    fn handle(&mut self, _value: Value) -> Result<(), Self::Error> {
        self.join();
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

impl ValueHandler<Value> for Quiet {
    type Error = std::convert::Infallible;

    fn handle(&mut self, _slot: HandleScope<'_, Value>) -> Result<(), Self::Error> {
        self.join();
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

impl Quiet {
    /// Suspends, and then goes on, on whichever thread.
    async fn wait(&self) {
        self.join();
        tokio::task::yield_now().await;
        self.join();
    }
}

impl AsyncHandler<Value> for Quiet {
    type Error = std::convert::Infallible;

    async fn handle(&mut self, _value: Value) -> Result<(), Self::Error> {
        self.wait().await;
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    async fn on_completed(&mut self, _outcome: Outcome) {}
}

impl AsyncValueHandler<Value> for Quiet {
    type Error = std::convert::Infallible;
    type Work = u64;

    fn read(&mut self, slot: HandleScope<'_, Value>) -> Result<u64, Self::Error> {
        Ok(slot[0])
    }

    async fn handle(&mut self, _work: u64) -> Result<(), Self::Error> {
        self.wait().await;
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    async fn on_completed(&mut self, _outcome: Outcome) {}
}

impl AsyncConflationHandler<u32, Value> for Quiet {
    type Error = std::convert::Infallible;

    async fn handle(&mut self, _key: &u32, _value: Value) -> Result<(), Self::Error> {
        self.wait().await;
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    async fn on_completed(&mut self, _outcome: Outcome) {}
}

impl AsyncCoalescingHandler<u32, Value> for Quiet {
    type Error = std::convert::Infallible;

    fn coalesce(current: &mut Value, incoming: Value) {
        current[0] += incoming[0];
    }

    async fn handle(&mut self, _key: &u32, _value: Value) -> Result<(), Self::Error> {
        self.wait().await;
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    async fn on_completed(&mut self, _outcome: Outcome) {}
}

/// A small ring filled again and again, its consumer falling asleep between rounds: each send once
/// blocking and once awaiting.
macro_rules! measure_sends {
    ($worker:expr, $producer:ident, $number:ident, $blocking:expr, $awaiting:expr) => {{
        let quiet = Quiet::default();
        let (mut $producer, worker) = $worker(quiet.clone());
        let $number = 0;
        $blocking;
        $awaiting;
        let queue = $producer.queue();
        eventually("the warm-up is handled", || queue.counters().handled > 0);
        let count = allocations_everywhere(|group| {
            *quiet.0.lock().unwrap() = Some(group);
            for $number in 0..2_000_u64 {
                $blocking;
                $awaiting;
                if $number % 100 == 0 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
            let settled = || {
                let counters = queue.counters();
                counters.dispatched == counters.handled + counters.conflated
            };
            eventually("everything is handled", settled);
        });
        *quiet.0.lock().unwrap() = None;
        assert!(queue.counters().handled > 200, "the consumer was measured, too");
        drop(worker);
        count
    }};
}

/// A runtime of one thread that does nothing else: its own first steps are over when it is measured.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap()
}

/// Awaits without a waker of its own to allocate for each.
fn wait_for<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return answer;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_worker_that_moves_items_allocates_nothing_per_item() {
    let start =
        |quiet| SpWorker::builder().capacity(4).start(quiet, CancellationToken::new()).unwrap();
    let count = measure_sends!(
        start,
        producer,
        number,
        producer.dispatch([number; 8]).unwrap(),
        wait_for(producer.dispatch_async([number; 8])).unwrap()
    );
    assert_eq!(count, 0);
}

#[test]
fn a_worker_of_slots_allocates_nothing_per_item() {
    let start = |quiet| {
        ValueSpWorker::builder().capacity(4).start(quiet, CancellationToken::new()).unwrap()
    };
    let count = measure_sends!(
        start,
        producer,
        number,
        producer.publish().unwrap()[0] = number,
        wait_for(producer.publish_async()).unwrap()[0] = number
    );
    assert_eq!(count, 0);
}

#[test]
fn a_task_allocates_nothing_per_item_that_its_handler_suspends_on() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let start = |quiet| {
        AsyncSpWorker::builder().capacity(4).start(quiet, CancellationToken::new()).unwrap()
    };
    let count = measure_sends!(
        start,
        producer,
        number,
        producer.dispatch([number; 8]).unwrap(),
        wait_for(producer.dispatch_async([number; 8])).unwrap()
    );
    assert_eq!(count, 0);
}

#[test]
fn a_task_of_slots_allocates_nothing_per_item_that_its_handler_suspends_on() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let start = |quiet| {
        AsyncValueSpWorker::builder().capacity(4).start(quiet, CancellationToken::new()).unwrap()
    };
    let count = measure_sends!(
        start,
        producer,
        number,
        producer.publish().unwrap()[0] = number,
        wait_for(producer.publish_async()).unwrap()[0] = number
    );
    assert_eq!(count, 0);
}

#[test]
fn keyed_tasks_allocate_nothing_per_item_that_their_handlers_suspend_on() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let conflating = |quiet| {
        let builder = ConflationSpWorker::builder().capacity(4);
        let (mut producer, worker) = builder.start_async(quiet, CancellationToken::new()).unwrap();
        (0..KEYS).for_each(|key| {
            producer.dispatch(&key, [0; 8]).unwrap();
        });
        (producer, worker)
    };
    let count = measure_sends!(
        conflating,
        producer,
        number,
        producer.dispatch(&((number % 100) as u32), [number; 8]).unwrap(),
        wait_for(producer.dispatch_async(&((number % 7) as u32), [number; 8])).unwrap()
    );
    assert_eq!(count, 0);
    let coalescing = |quiet| {
        let builder = CoalescingSpWorker::builder().capacity(4);
        let (mut producer, worker) = builder.start_async(quiet, CancellationToken::new()).unwrap();
        (0..KEYS).for_each(|key| producer.dispatch(&key, [0; 8]).unwrap());
        (producer, worker)
    };
    let count = measure_sends!(
        coalescing,
        producer,
        number,
        producer.dispatch(&((number % 100) as u32), [number; 8]).unwrap(),
        wait_for(producer.dispatch_async(&((number % 7) as u32), [number; 8])).unwrap()
    );
    assert_eq!(count, 0);
}
