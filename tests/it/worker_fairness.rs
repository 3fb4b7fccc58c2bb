//! A key that never rests does not hold the others back.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use tidegate::worker::{
    CoalescingHandler, CoalescingSpWorker, ConflationHandler, ConflationSpWorker, Outcome,
    WorkerError,
};
use tokio_util::sync::CancellationToken;

/// The key that never rests.
const LOUD: u32 = 0;
/// Another, with one value.
const QUIET: u32 = 999;

/// Writes down the keys that it is given, in order.
#[derive(Clone, Default)]
struct Order(Arc<Mutex<Vec<u32>>>);

impl ConflationHandler<u32, u64> for Order {
    type Error = std::convert::Infallible;

    fn handle(&mut self, key: &u32, _value: u64) -> Result<(), Self::Error> {
        self.0.lock().unwrap().push(*key);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

#[test]
fn b54_every_key_waits_for_those_only_that_were_pending_before_it() {
    let order = Order::default();
    let (mut producer, mut stepper) =
        ConflationSpWorker::builder().capacity(1024).stepped(order.clone()).unwrap();
    // Of each pending key: in which step it is due.
    let mut due = HashMap::new();
    let (mut steps, mut number, mut loud_handled) = (0_usize, 0_u64, 0);
    let mut seed = 7_u32;
    for round in 0..20_000 {
        let mut keys = vec![LOUD; 50];
        if round < 10_000 || round % 2 == 0 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            keys.push((seed >> 8) % 1_000);
            keys.push((seed >> 18) % 1_000);
        }
        for key in keys {
            number += 1;
            let waiting = due.len();
            producer.try_dispatch(&key, number).unwrap();
            due.entry(key).or_insert(steps + waiting + 1);
        }
        stepper.step(1);
        steps += 1;
        let handled = order.0.lock().unwrap().pop().unwrap();
        assert_eq!(due.remove(&handled), Some(steps), "key {handled} was due in another step");
        loud_handled += usize::from(handled == LOUD);
    }
    assert!(loud_handled >= steps / 1_000, "at least once a round of all keys");
}

/// Tells that the quiet key has come.
struct Waits(Arc<AtomicBool>);

impl ConflationHandler<u32, u64> for Waits {
    type Error = std::convert::Infallible;

    fn handle(&mut self, key: &u32, _value: u64) -> Result<(), Self::Error> {
        self.0.fetch_or(*key == QUIET, SeqCst);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

impl CoalescingHandler<u32, u64> for Waits {
    type Error = std::convert::Infallible;

    fn coalesce(current: &mut u64, incoming: u64) {
        *current = current.wrapping_add(incoming);
    }

    fn handle(&mut self, key: &u32, total: u64) -> Result<(), Self::Error> {
        <Self as ConflationHandler<u32, u64>>::handle(self, key, total)
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

/// The loud key is given values without a pause, more than 50,000 a second, until the quiet one has
/// come: if a loud key could hold it back, that would be never.
fn until_the_quiet_one_has_come(came: &AtomicBool, mut dispatch: impl FnMut(u32, u64)) {
    for number in 0..1_000 {
        dispatch(LOUD, number);
    }
    dispatch(QUIET, 1);
    let mut number = 0;
    while !came.load(SeqCst) {
        number += 1;
        assert!(number < 1_000_000_000, "the quiet key was held back");
        dispatch(LOUD, number);
    }
}

#[test]
fn b54_a_quiet_key_is_delivered_while_a_loud_one_goes_on_for_ever() {
    let came = Arc::new(AtomicBool::new(false));
    let (mut producer, worker) =
        ConflationSpWorker::builder().start(Waits(came.clone()), CancellationToken::new()).unwrap();
    until_the_quiet_one_has_come(&came, |key, number| {
        producer.dispatch(&key, number).unwrap();
    });
    drop(producer);
    worker.completion().wait().unwrap();
}

#[test]
fn b54_a_quiet_total_is_delivered_while_a_loud_one_goes_on_for_ever() {
    let came = Arc::new(AtomicBool::new(false));
    let (mut producer, worker) =
        CoalescingSpWorker::builder().start(Waits(came.clone()), CancellationToken::new()).unwrap();
    until_the_quiet_one_has_come(&came, |key, number| {
        producer.dispatch(&key, number).unwrap();
    });
    drop(producer);
    worker.completion().wait().unwrap();
}
