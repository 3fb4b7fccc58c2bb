//! What is particular to the worker that moves items: batches, any size of item.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_support::{Census, Event, Item, Probe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use tidegate::worker::{CloseReason, Handler, Outcome, Refusal, SpWorker, WorkerError};
use tokio_util::sync::CancellationToken;

/// Checks that items come as 0, 1, 2, …
struct InOrder(u64);

impl Handler<u64> for InOrder {
    type Error = std::convert::Infallible;

    fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
        assert_eq!(item, self.0);
        self.0 += 1;
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

#[test]
fn batches_longer_and_shorter_than_the_ring_keep_their_order() {
    for capacity in [1, 4, 64] {
        let (mut producer, worker) = SpWorker::builder()
            .capacity(capacity)
            .start_position(usize::MAX - 70)
            .start(InOrder(0), CancellationToken::new())
            .unwrap();
        let mut next = 0;
        for length in [0, 1, 3, 4, 5, 64, 65, 1_000] {
            assert_eq!(producer.dispatch_all(next..next + length).unwrap(), length);
            next += length;
            producer.dispatch(next).unwrap();
            next += 1;
        }
        drop(producer);
        worker.completion().wait().unwrap();
        let counters = worker.counters();
        assert_eq!((counters.dispatched, counters.handled, counters.errors), (next, next, 0));
    }
}

#[test]
fn a_batch_that_just_fits_does_not_wait_for_more_room() {
    let (mut producer, mut stepper) = SpWorker::builder().capacity(4).stepped(InOrder(0)).unwrap();
    assert_eq!(producer.dispatch_all(0..4).unwrap(), 4);
    assert_eq!(producer.dispatch_all(std::iter::empty()).unwrap(), 0, "the ring is full");
    assert_eq!(stepper.step(9), 4);
}

#[test]
fn a_batch_that_is_cut_off_hands_back_what_it_took() {
    let (census, probe) = (Census::default(), Probe::default());
    probe.gate.shut();
    let (mut producer, worker) =
        SpWorker::builder().capacity(2).start(probe.clone(), CancellationToken::new()).unwrap();
    producer.dispatch(census.item(0)).unwrap();
    probe.gate.wait_for_arrival();
    let items: Vec<Item> = (1..10).map(|number| census.item(number)).collect();
    let (blocked, worker) = thread::scope(|scope| {
        let blocked = scope.spawn(move || {
            let mut items = items.into_iter();
            let error = producer.dispatch_all(&mut items).unwrap_err();
            let numbers: Vec<u32> =
                error.refused.iter().chain(items.as_slice()).map(|item| item.number).collect();
            (error.accepted, error.why, numbers)
        });
        thread::sleep(std::time::Duration::from_millis(5));
        worker.complete();
        (blocked.join().unwrap(), worker)
    });
    let (accepted, why, rest) = blocked;
    assert_eq!(why, Refusal::Closed(CloseReason::Completed));
    assert_eq!(rest, (accepted as u32 + 1..10).collect::<Vec<_>>());
    probe.gate.open();
    worker.completion().wait().unwrap();
    assert_eq!(worker.counters().handled, accepted + 1);
    assert_eq!(census.living(), 0);
}

#[test]
fn an_iterator_that_panics_leaves_the_ring_whole() {
    let (census, probe) = (Census::default(), Probe::default());
    let (mut producer, mut stepper) = SpWorker::builder().stepped(probe.clone()).unwrap();
    let items = (0..5).map(|number| {
        assert!(number < 3, "no more");
        census.item(number)
    });
    let caught = catch_unwind(AssertUnwindSafe(|| producer.dispatch_all(items)));
    assert!(caught.is_err());
    assert_eq!(census.living(), 0, "what was taken is dropped");
    assert_eq!(stepper.counters().dispatched, 0);
    producer.dispatch(census.item(9)).unwrap();
    assert_eq!(stepper.step(9), 1);
    assert_eq!(probe.events(), [Event::Handled(9)]);
}

#[test]
fn b73_zero_sized_items_are_counted_like_any_other() {
    struct Count(u32);

    impl Handler<()> for Count {
        type Error = std::convert::Infallible;

        fn handle(&mut self, (): ()) -> Result<(), Self::Error> {
            self.0 += 1;
            Ok(())
        }

        fn on_error(&mut self, error: WorkerError<Self::Error>) {
            panic!("{error}");
        }

        fn on_completed(&mut self, _outcome: Outcome) {}
    }

    let (mut producer, mut stepper) = SpWorker::builder().capacity(2).stepped(Count(0)).unwrap();
    producer.dispatch(()).unwrap();
    producer.dispatch(()).unwrap();
    assert!(producer.try_dispatch(()).is_err());
    stepper.step(1);
    producer.try_dispatch(()).unwrap();
    assert_eq!(stepper.finish().unwrap().0, 3);
}
