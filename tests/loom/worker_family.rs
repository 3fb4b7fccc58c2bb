//! The rest of the family under the model checker: batches, slots, tasks that sleep and are woken,
//! awaiting producers, hard stops.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_support::{Log, check};
use loom::future::block_on;
use loom::thread;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use tidegate::worker::{
    AsyncHandler, AsyncSpWorker, Batch, HandleScope, Handler, Outcome, Refusal, SpWorker,
    ValueHandler, ValueSpWorker, WorkerError,
};
use tokio_util::sync::CancellationToken;

impl Handler<u32> for Log {
    type Error = std::convert::Infallible;

    fn handle(&mut self, item: u32) -> Result<(), Self::Error> {
        self.note(0, item);
        Ok(())
    }

    fn handle_batch(&mut self, batch: Batch<'_, u32>) -> Result<(), Self::Error> {
        batch.for_each(|item| self.note(0, item));
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        unreachable!("{error}");
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(&outcome);
    }
}

impl ValueHandler<u32> for Log {
    type Error = std::convert::Infallible;

    fn handle(&mut self, slot: HandleScope<'_, u32>) -> Result<(), Self::Error> {
        self.note(0, *slot);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        unreachable!("{error}");
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.end(&outcome);
    }
}

impl AsyncHandler<u32> for Log {
    type Error = std::convert::Infallible;

    async fn handle(&mut self, item: u32) -> Result<(), Self::Error> {
        self.note(0, item);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        unreachable!("{error}");
    }

    async fn on_completed(&mut self, outcome: Outcome) {
        self.end(&outcome);
    }
}

/// Batches through a ring that they overfill: a batch is seen whole or in order, and places are
/// written again only once they were read (which loom itself sees).
#[test]
fn batches_pass_in_order_through_places_that_are_used_again() {
    check(3, || {
        let log = Log::default();
        let (mut producer, mut stepper) =
            SpWorker::builder().capacity(2).stepped::<u32, _>(log.clone()).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(2);
            stepper
        });
        assert_eq!(producer.dispatch_all(1..=2).unwrap(), 2);
        let third = producer.try_dispatch(3).is_ok();
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        let expected: &[u32] = if third { &[1, 2, 3] } else { &[1, 2] };
        assert_eq!(log.of(0), expected);
    });
}

/// A batch that meets the end is accepted or refused as a whole.
#[test]
fn a_batch_that_meets_the_end_is_accepted_or_comes_back_whole() {
    check(3, || {
        let log = Log::default();
        let (mut producer, stepper) =
            SpWorker::builder().capacity(2).stepped::<u32, _>(log.clone()).unwrap();
        let consumer = thread::spawn(move || drop(stepper.finish()));
        let sent = producer.dispatch_all(1..=2);
        consumer.join().unwrap();
        match sent {
            Ok(count) => assert_eq!((count, log.of(0)), (2, vec![1, 2])),
            Err(error) => {
                assert_eq!((error.accepted, log.of(0)), (0, vec![]));
                assert!(
                    error.refused.is_empty() || error.refused == [1, 2] || error.refused == [1]
                );
            }
        }
    });
}

/// A slot belongs to one side at a time, whichever way scopes are given back.
#[test]
fn a_slot_is_written_again_only_after_it_was_released() {
    check(3, || {
        let log = Log::default();
        let (mut producer, mut stepper) =
            ValueSpWorker::builder().capacity(1).stepped(|| 0_u32, log.clone()).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(1);
            stepper.step(1);
            stepper
        });
        *producer.publish().unwrap() = 1;
        let second = match producer.try_publish() {
            Ok(mut slot) => {
                *slot = 2;
                slot.commit().is_ok()
            }
            Err(refusal) => {
                assert_eq!(refusal, Refusal::Full);
                false
            }
        };
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        assert_eq!(log.of(0), if second { vec![1, 2] } else { vec![1] });
    });
}

/// A task sleeps for an item and for the end, and is woken. A lost wake would be a deadlock, which
/// loom reports.
#[test]
fn b75_a_sleeping_task_is_woken_for_an_item_and_for_the_end() {
    check(2, || {
        let log = Log::default();
        let (mut producer, _worker, task) = AsyncSpWorker::builder()
            .capacity(1)
            .task::<u32, _>(log.clone(), CancellationToken::new())
            .unwrap();
        let consumer = thread::spawn(move || block_on(task));
        producer.dispatch(1).unwrap();
        drop(producer);
        consumer.join().unwrap();
        assert_eq!((log.of(0), log.ends()), (vec![1], vec!["drained"]));
    });
}

/// A producer that awaits room is woken by it.
#[test]
fn b75_an_awaiting_producer_is_woken_by_a_free_place() {
    check(2, || {
        let log = Log::default();
        let (mut producer, mut stepper) =
            SpWorker::builder().capacity(1).stepped::<u32, _>(log.clone()).unwrap();
        producer.dispatch(1).unwrap();
        let waiting = thread::spawn(move || {
            block_on(producer.dispatch_async(2)).unwrap();
            producer
        });
        stepper.step(1);
        drop(waiting.join().unwrap());
        stepper.step(usize::MAX);
        assert_eq!((log.of(0), log.ends()), (vec![1, 2], vec!["drained"]));
    });
}

/// A producer that holds out for more places than are free still gets the one it needs, if the handler
/// in turn waits for what the producer does next.
#[test]
fn b75_a_handler_that_waits_for_its_producer_leaves_it_the_place_it_needs() {
    // Whether it is open, and who waits. A plain lock: it is no part of the model.
    type Gate = Arc<Mutex<(bool, Option<Waker>)>>;
    struct Waits(Log, Gate);
    impl AsyncHandler<u32> for Waits {
        type Error = std::convert::Infallible;
        async fn handle(&mut self, item: u32) -> Result<(), Self::Error> {
            let gate = &self.1;
            poll_fn(|context| {
                // Nothing that the model counts as a step may happen under the plain lock.
                let waker = context.waker().clone();
                let (open, former) = {
                    let mut gate = gate.lock().unwrap();
                    (gate.0, gate.1.replace(waker))
                };
                drop(former);
                if open { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            self.0.note(0, item);
            Ok(())
        }
        fn on_error(&mut self, error: WorkerError<Self::Error>) {
            unreachable!("{error}");
        }
        async fn on_completed(&mut self, outcome: Outcome) {
            self.0.end(&outcome);
        }
    }
    check(1, || {
        let (log, gate) = (Log::default(), Gate::default());
        let (mut producer, _worker, task) = AsyncSpWorker::builder()
            .capacity(2)
            .task(Waits(log.clone(), gate.clone()), CancellationToken::new())
            .unwrap();
        assert_eq!(producer.dispatch_all(1..=2).unwrap(), 2);
        let consumer = thread::spawn(move || block_on(task));
        block_on(producer.dispatch_async(3)).unwrap();
        let waiting = std::mem::replace(&mut *gate.lock().unwrap(), (true, None)).1;
        waiting.into_iter().for_each(Waker::wake);
        drop(producer);
        consumer.join().unwrap();
        assert_eq!((log.of(0), log.ends()), (vec![1, 2, 3], vec!["drained"]));
    });
}

/// A hard stop reaches a task wherever it is, and nothing pending is handled after it is over.
#[test]
fn a_hard_stop_wakes_a_task_that_sleeps() {
    check(3, || {
        let log = Log::default();
        let (producer, worker, task) = AsyncSpWorker::builder()
            .capacity(1)
            .task::<u32, _>(log.clone(), CancellationToken::new())
            .unwrap();
        let consumer = thread::spawn(move || block_on(task));
        assert!(worker.cancel());
        consumer.join().unwrap();
        assert_eq!(log.ends(), ["cancelled"]);
        drop(producer);
    });
}

/// A handler that waits for ever is no hindrance to a hard stop, at whatever moment it comes.
#[test]
fn a_hard_stop_wakes_a_task_whose_handler_waits() {
    struct Never(Log);
    impl AsyncHandler<u32> for Never {
        type Error = std::convert::Infallible;
        async fn handle(&mut self, _item: u32) -> Result<(), Self::Error> {
            std::future::pending().await
        }
        fn on_error(&mut self, error: WorkerError<Self::Error>) {
            unreachable!("{error}");
        }
        async fn on_completed(&mut self, outcome: Outcome) {
            self.0.end(&outcome);
        }
    }
    check(2, || {
        let log = Log::default();
        let (mut producer, worker, task) = AsyncSpWorker::builder()
            .capacity(1)
            .task(Never(log.clone()), CancellationToken::new())
            .unwrap();
        producer.dispatch(1).unwrap();
        let consumer = thread::spawn(move || block_on(task));
        worker.cancel();
        consumer.join().unwrap();
        assert_eq!(log.ends(), ["cancelled"]);
        let counters = worker.counters();
        assert_eq!(counters.handled + counters.discarded, 1);
    });
}

/// An awaiting producer is freed by a stop, with its item.
#[test]
fn b76_an_awaiting_producer_is_freed_by_a_hard_stop() {
    check(3, || {
        let log = Log::default();
        let (mut producer, stepper) =
            SpWorker::builder().capacity(1).stepped::<u32, _>(log.clone()).unwrap();
        producer.dispatch(1).unwrap();
        let waiting = thread::spawn(move || block_on(producer.dispatch_async(2)));
        drop(stepper);
        assert_eq!(waiting.join().unwrap().unwrap_err().into_item(), 2);
        assert_eq!((log.of(0), log.ends()), (vec![], vec!["cancelled"]));
    });
}
