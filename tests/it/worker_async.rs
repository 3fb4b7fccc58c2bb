//! What is particular to the workers of tasks and of slots: hard stops while a handler waits, tasks
//! that are dropped, scopes that are abandoned, forgotten or panicked out of.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_support::{Census, Event, PATIENCE, Parcel, Probe, eventually};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use tidegate::worker::{
    AsyncHandler, AsyncSpWorker, CloseReason, CompletionError, HandleScope, Outcome, Refusal, Slot,
    SpProducer, SpWorker, StartError, ValueHandler, ValueSpWorker, WaitStrategy, WorkerError,
};
use tokio_util::sync::CancellationToken;

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

#[test]
fn b79_a_handler_that_waits_for_ever_is_dropped_by_a_hard_stop_and_no_task_is_left() {
    for stop in 0..3 {
        let runtime = current_thread();
        runtime.block_on(async {
            let (census, probe) = (Census::default(), Probe::default());
            probe.gate.shut();
            let token = CancellationToken::new();
            let (mut producer, worker) =
                AsyncSpWorker::builder().capacity(4).start(probe.clone(), token.clone()).unwrap();
            for number in 0..4 {
                producer.dispatch_async(census.item(number)).await.unwrap();
            }
            tokio::task::yield_now().await;
            assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 1);
            let completion = worker.completion();
            match stop {
                0 => drop(worker.cancel()),
                1 => token.cancel(),
                _ => drop(worker),
            }
            let ended = tokio::time::timeout(PATIENCE, completion).await.unwrap();
            assert!(matches!(ended, Err(CompletionError::Cancelled)));
            assert_eq!(probe.events(), [Event::Cancelled]);
            assert_eq!(census.living(), 0);
            tokio::task::yield_now().await;
            assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
        });
    }
}

#[test]
fn a_runtime_that_shuts_down_stops_its_workers_hard() {
    let (census, probe) = (Census::default(), Probe::default());
    probe.gate.shut();
    let runtime = current_thread();
    let entered = runtime.enter();
    let (mut producer, worker) =
        AsyncSpWorker::builder().start(probe.clone(), CancellationToken::new()).unwrap();
    drop(entered);
    producer.dispatch(census.item(0)).unwrap();
    producer.dispatch(census.item(1)).unwrap();
    runtime.block_on(tokio::task::yield_now());
    // Completed, but not drained: whoever asks must not be told that it was.
    producer.complete();
    drop(runtime);
    assert!(matches!(worker.completion().wait(), Err(CompletionError::Cancelled)));
    assert_eq!(census.living(), 0);
    assert_eq!(Arc::strong_count(&probe.alive), 1, "the handler is gone");
}

#[test]
fn a_task_that_is_never_polled_and_dropped_ends_its_worker() {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, worker, task) =
        AsyncSpWorker::builder().task(probe.clone(), CancellationToken::new()).unwrap();
    producer.dispatch(census.item(0)).unwrap();
    drop(task);
    assert!(matches!(worker.completion().wait(), Err(CompletionError::Cancelled)));
    let refused = producer.dispatch(census.item(1)).unwrap_err();
    drop(refused);
    assert_eq!(census.living(), 0);
}

#[test]
fn a_task_cannot_be_started_without_a_runtime() {
    let refused = AsyncSpWorker::builder()
        .start::<crate::worker_support::Item, _>(Probe::default(), CancellationToken::new());
    assert!(matches!(refused, Err(StartError::NoRuntime)));
}

#[test]
fn a_task_gives_way_to_its_neighbours_while_items_keep_coming() {
    struct Count(Arc<AtomicU32>);
    impl AsyncHandler<u32> for Count {
        type Error = std::convert::Infallible;
        async fn handle(&mut self, _item: u32) -> Result<(), Self::Error> {
            self.0.fetch_add(1, SeqCst);
            Ok(())
        }
        fn on_error(&mut self, _: WorkerError<Self::Error>) {}
        async fn on_completed(&mut self, _: Outcome) {}
    }
    let count = Arc::new(AtomicU32::new(0));
    current_thread().block_on(async {
        let (mut producer, _worker) = AsyncSpWorker::builder()
            .capacity(4096)
            .start(Count(count.clone()), CancellationToken::new())
            .unwrap();
        producer.dispatch_all(0..4096).unwrap();
        tokio::task::yield_now().await;
        let after_one_turn = count.load(SeqCst);
        assert!((1..4096).contains(&after_one_turn), "{after_one_turn} in one turn");
    });
}

#[test]
fn every_wait_strategy_passes_items_and_ends() {
    struct Sum(Arc<AtomicU32>);
    impl tidegate::worker::Handler<u32> for Sum {
        type Error = std::convert::Infallible;
        fn handle(&mut self, item: u32) -> Result<(), Self::Error> {
            self.0.fetch_add(item, SeqCst);
            Ok(())
        }
        fn on_error(&mut self, _: WorkerError<Self::Error>) {}
        fn on_completed(&mut self, _: Outcome) {}
    }
    for strategy in [WaitStrategy::Park, WaitStrategy::SpinThenPark, WaitStrategy::Spin] {
        let sum = Arc::new(AtomicU32::new(0));
        let (mut producer, worker) = SpWorker::builder()
            .capacity(2)
            .wait(strategy)
            .start(Sum(sum.clone()), CancellationToken::new())
            .unwrap();
        for item in 1..=1_000 {
            producer.dispatch(item).unwrap();
        }
        drop(producer);
        worker.completion().wait().unwrap();
        assert_eq!(sum.load(SeqCst), 500_500, "{strategy:?}");
    }
}

#[test]
fn b75_two_tasks_on_one_place_never_miss_each_other() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    struct Back(SpProducer<u32>);
    impl AsyncHandler<u32> for Back {
        type Error = &'static str;
        async fn handle(&mut self, item: u32) -> Result<(), Self::Error> {
            self.0.dispatch_async(item).await.map_err(|_| "closed")
        }
        fn on_error(&mut self, error: WorkerError<Self::Error>) {
            panic!("{error}");
        }
        async fn on_completed(&mut self, _: Outcome) {}
    }
    struct Count(Arc<AtomicU32>);
    impl AsyncHandler<u32> for Count {
        type Error = std::convert::Infallible;
        async fn handle(&mut self, _item: u32) -> Result<(), Self::Error> {
            self.0.fetch_add(1, SeqCst);
            Ok(())
        }
        fn on_error(&mut self, _: WorkerError<Self::Error>) {}
        async fn on_completed(&mut self, _: Outcome) {}
    }
    // A pipeline of two tasks, one place each: every item makes both of them sleep and wake.
    let count = Arc::new(AtomicU32::new(0));
    runtime.block_on(async {
        let token = CancellationToken::new();
        let builder = || AsyncSpWorker::builder().capacity(1).wait(WaitStrategy::Park);
        let (next, last) = builder().start(Count(count.clone()), token.clone()).unwrap();
        let (mut first, _worker) = builder().start(Back(next), token).unwrap();
        let sending = async {
            for item in 0..20_000 {
                first.dispatch_async(item).await.unwrap();
            }
            drop(first);
            last.completion().await.unwrap();
        };
        tokio::time::timeout(PATIENCE, sending).await.expect("two sleepers missed each other");
    });
    assert_eq!(count.load(SeqCst), 20_000);
}

#[test]
fn a_panic_while_a_slot_is_written_publishes_nothing_and_clears_it() {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, mut stepper) =
        ValueSpWorker::builder().capacity(2).stepped(Parcel::default, probe.clone()).unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let mut slot = producer.publish().unwrap();
        slot.0 = Some(census.item(1));
        panic!("half written");
    }));
    assert!(caught.is_err());
    assert_eq!(census.living(), 0, "cleared");
    let mut slot = producer.publish().unwrap();
    slot.0 = Some(census.item(2));
    slot.abandon();
    assert_eq!(census.living(), 0);
    assert_eq!(stepper.step(9), 0);
    assert_eq!(stepper.counters().dispatched, 0);
    producer.publish().unwrap().0 = Some(census.item(3));
    assert_eq!(stepper.step(9), 1);
    assert_eq!(probe.events(), [Event::Handled(3)]);
    drop(stepper);
    assert!(matches!(producer.publish(), Err(Refusal::Closed(CloseReason::Cancelled))));
}

/// Counts its clears; panics in one of them.
struct Fussy(Arc<AtomicU32>, u32);

impl Slot for Fussy {
    fn clear(&mut self) {
        self.0.fetch_add(1, SeqCst);
        assert_ne!(self.1, 3, "cannot be cleared");
    }
}

struct Careless(Arc<AtomicU32>, Vec<u32>);

impl ValueHandler<Fussy> for Careless {
    type Error = std::convert::Infallible;

    fn handle(&mut self, scope: HandleScope<'_, Fussy>) -> Result<(), Self::Error> {
        self.1.push(scope.1);
        match scope.1 {
            1 => std::mem::forget(scope),
            2 => {
                std::mem::forget(scope);
                panic!("forgetful");
            }
            4 => scope.release(),
            _ => {}
        }
        Ok(())
    }

    fn on_error(&mut self, _error: WorkerError<Self::Error>) {
        self.0.fetch_add(1, SeqCst);
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

#[test]
fn b81_every_slot_is_cleared_once_whatever_the_handler_does_with_its_scope() {
    let (cleared, errors) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let make = || Fussy(cleared.clone(), 0);
    let (mut producer, mut stepper) = ValueSpWorker::builder()
        .capacity(8)
        .stepped(make, Careless(errors.clone(), Vec::new()))
        .unwrap();
    for number in 1..=6 {
        producer.publish().unwrap().1 = number;
    }
    assert_eq!(stepper.step(9), 6);
    assert_eq!(stepper.handler().unwrap().1, [1, 2, 3, 4, 5, 6]);
    assert_eq!(cleared.load(SeqCst), 6);
    assert_eq!(errors.load(SeqCst), 2, "the panic of 2, and that of clearing 3");
    assert_eq!(stepper.counters().errors, 2);
    assert_eq!(stepper.counters().handled, 6);
    producer.publish().unwrap().1 = 7;
    drop(stepper);
    assert_eq!(cleared.load(SeqCst), 7, "what is dropped unhandled is cleared, too");
}

#[test]
fn a_slot_released_early_is_the_producers_before_the_handler_returns() {
    struct Slow(crate::worker_support::Gate);
    impl ValueHandler<u64> for Slow {
        type Error = std::convert::Infallible;
        fn handle(&mut self, scope: HandleScope<'_, u64>) -> Result<(), Self::Error> {
            scope.release();
            self.0.pass();
            Ok(())
        }
        fn on_error(&mut self, _: WorkerError<Self::Error>) {}
        fn on_completed(&mut self, _: Outcome) {}
    }
    let gate = crate::worker_support::Gate::default();
    gate.shut();
    let (mut producer, worker) = ValueSpWorker::builder()
        .capacity(1)
        .start(Slow(gate.clone()), CancellationToken::new())
        .unwrap();
    *producer.publish().unwrap() = 1;
    gate.wait_for_arrival();
    *producer.publish().unwrap() = 2;
    assert!(matches!(producer.try_publish(), Err(Refusal::Full)));
    gate.open();
    eventually("both are handled", || worker.counters().handled == 2);
    drop(producer);
}
