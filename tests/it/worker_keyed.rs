//! What is particular to the keyed workers: newest, exactly once, who waits and who never does.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_support::{Census, Event, Gate, Probe, eventually};
use std::sync::{Arc, Mutex};
use std::thread;
use tidegate::worker::{
    CoalescingHandler, CoalescingProducer, CoalescingSpWorker, ConflationHandler,
    ConflationProducer, ConflationSpWorker, DispatchError, Outcome, StartError, WorkerError,
};
use tokio_util::sync::CancellationToken;

/// A handler of closures.
struct With<F, I>(F, I);

impl<K, V, F, I> ConflationHandler<K, V> for With<F, I>
where
    F: FnMut(&K, V) + Send + 'static,
    I: FnMut() + Send + 'static,
{
    type Error = std::convert::Infallible;

    fn handle(&mut self, key: &K, value: V) -> Result<(), Self::Error> {
        (self.0)(key, value);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_idle(&mut self) {
        (self.1)();
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

/// Sums what it is given.
#[derive(Clone, Default)]
struct Sum {
    total: Arc<Mutex<u64>>,
    gate: Option<Gate>,
}

impl CoalescingHandler<u32, u64> for Sum {
    type Error = std::convert::Infallible;

    fn coalesce(current: &mut u64, incoming: u64) {
        assert_ne!(incoming, 13, "an unlucky fold");
        *current += incoming;
    }

    fn handle(&mut self, _key: &u32, total: u64) -> Result<(), Self::Error> {
        if let Some(gate) = &self.gate {
            gate.pass();
        }
        *self.total.lock().unwrap() += total;
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

#[test]
fn a_pending_key_is_overridden_in_place_even_when_the_ring_is_full() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = seen.clone();
    let handler =
        With(move |key: &u32, value: u32| note.lock().unwrap().push((*key, value)), || ());
    let (mut producer, mut stepper) =
        ConflationSpWorker::builder().capacity(2).stepped(handler).unwrap();
    assert_eq!(producer.dispatch(&1, 10), Ok(None));
    assert_eq!(producer.dispatch(&2, 20), Ok(None));
    assert_eq!(producer.try_dispatch(&3, 30), Err(DispatchError::Full(30)));
    assert_eq!(producer.dispatch(&1, 11), Ok(Some(10)), "the superseded value comes home");
    assert_eq!(producer.dispatch(&1, 12), Ok(Some(11)));
    assert_eq!(stepper.step(1), 1);
    assert_eq!(producer.try_dispatch(&1, 13), Ok(None), "delivered: pending anew, at the end");
    stepper.step(usize::MAX);
    assert_eq!(*seen.lock().unwrap(), [(1, 12), (2, 20), (1, 13)]);
}

#[test]
fn b50_the_last_value_before_completion_is_delivered_before_on_completed() {
    for round in 0..300_u32 {
        let (census, probe) = (Census::default(), Probe::default());
        let (mut producer, worker) = ConflationSpWorker::builder()
            .capacity(4)
            .start(probe.clone(), CancellationToken::new())
            .unwrap();
        for _ in 0..=(round % 7) {
            drop(producer.dispatch(&5, census.item(5)).unwrap());
        }
        drop(producer);
        worker.completion().wait().unwrap();
        let events = probe.events();
        assert_eq!(events.last(), Some(&Event::Drained));
        assert!(events.len() >= 2, "the last value was lost");
        assert_eq!(census.living(), 0);
    }
}

#[test]
fn b53_a_handler_may_dispatch_into_its_own_worker() {
    type Slot = Arc<Mutex<Option<ConflationProducer<u32, u32>>>>;
    let own: Slot = Slot::default();
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    let within = own.clone();
    let mut refused = 0;
    let handler = With(
        move |key: &u32, value: u32| {
            let mut producer = within.lock().unwrap();
            let producer = producer.as_mut().unwrap();
            if value > 0 {
                // To its own key, and to another; with two places there is room for both.
                producer.dispatch(key, value - 1).unwrap();
                producer.dispatch(&(1 - key), 0).unwrap();
                // A third key would have to wait for this very handler: it is refused instead.
                match producer.dispatch(&2, 0) {
                    Err(DispatchError::Full(0)) => refused += 1,
                    other => panic!("{other:?}"),
                }
            } else if *key == 0 {
                let _ = tell.send(refused);
            }
        },
        || (),
    );
    let (producer, worker) = ConflationSpWorker::builder()
        .capacity(2)
        .start::<u32, u32, _>(handler, CancellationToken::new())
        .unwrap();
    *own.lock().unwrap() = Some(producer);
    own.lock().unwrap().as_mut().unwrap().dispatch(&0, 20).unwrap();
    let refused = told.recv_timeout(crate::worker_support::PATIENCE).expect("0 was not reached");
    assert!(refused >= 20);
    // The handler owns its producer through the slot; taking it out lets the worker drain.
    let producer = own.lock().unwrap().take();
    drop(producer);
    worker.completion().wait().unwrap();
}

#[test]
fn b55_prices_may_skip_and_volume_is_exact_behind_the_same_slow_consumer() {
    const TICKS: u64 = 200_000;
    const KEYS: u32 = 50;
    let last = Arc::new(Mutex::new(vec![0_u64; KEYS as usize]));
    let note = last.clone();
    let handler = With(
        move |key: &u32, price: u64| {
            let mut last = note.lock().unwrap();
            assert!(price > last[*key as usize], "an instrument ran backwards");
            last[*key as usize] = price;
        },
        || (),
    );
    let (sum, token) = (Sum::default(), CancellationToken::new());
    let (mut prices, price_worker) =
        ConflationSpWorker::builder().capacity(16).start(handler, token.clone()).unwrap();
    let (mut volumes, volume_worker) =
        CoalescingSpWorker::builder().capacity(16).start(sum.clone(), token).unwrap();
    let mut expected = vec![0; KEYS as usize];
    for tick in 1..=TICKS {
        let key = (tick * 31 % u64::from(KEYS)) as u32;
        expected[key as usize] = tick;
        prices.dispatch(&key, tick).unwrap();
        volumes.dispatch(&key, 1).unwrap();
        assert!(prices.queue().queued() <= 16);
    }
    drop((prices, volumes));
    price_worker.completion().wait().unwrap();
    volume_worker.completion().wait().unwrap();
    assert_eq!(*last.lock().unwrap(), expected);
    assert_eq!(*sum.total.lock().unwrap(), TICKS);
    for counters in [price_worker.counters(), volume_worker.counters()] {
        assert_eq!(counters.dispatched, TICKS);
        assert_eq!(counters.dispatched, counters.handled + counters.conflated);
    }
}

#[test]
fn b57_conflation_is_counted_exactly_when_the_consumer_keeps_up_and_when_it_does_not() {
    let handler = With(|_: &u32, _: u64| (), || ());
    let (mut producer, mut stepper) = ConflationSpWorker::builder().stepped(handler).unwrap();
    for value in 0..1_000 {
        assert_eq!(producer.dispatch(&1, value), Ok(None));
        assert_eq!(stepper.step(1), 1);
    }
    assert_eq!(stepper.counters().conflated, 0, "nothing was conflated");
    for value in 0..1_000 {
        producer.dispatch(&1, value).unwrap();
    }
    let counters = stepper.counters();
    assert_eq!((counters.conflated, counters.dispatched), (999, 2_000));
    assert_eq!(stepper.queue().queued(), 1);
    stepper.step(1);
    assert_eq!(stepper.counters().handled, 1_001);
}

#[test]
fn counts_read_while_both_sides_run_never_show_more_out_than_in() {
    let handler = With(|_: &u32, _: u64| (), || ());
    let (mut producer, worker) =
        ConflationSpWorker::builder().capacity(8).start(handler, CancellationToken::new()).unwrap();
    let queue = worker.queue();
    let watcher = thread::spawn(move || {
        let mut snapshots = 0_u64;
        loop {
            let counters = queue.counters();
            assert!(counters.dispatched >= counters.handled + counters.conflated, "{counters:?}");
            snapshots += 1;
            if counters.dispatched == 200_000 {
                return snapshots;
            }
        }
    });
    for value in 0..200_000_u64 {
        producer.dispatch(&((value % 13) as u32), value).unwrap();
    }
    assert!(watcher.join().unwrap() > 0);
}

#[test]
fn values_of_any_size_are_never_torn() {
    fn torn<const WORDS: usize>() {
        let handler = With(
            |_: &u32, value: [u64; WORDS]| {
                assert!(value.iter().all(|word| *word == value[0]), "a torn value");
            },
            || (),
        );
        let (mut producer, worker) = ConflationSpWorker::builder()
            .capacity(4)
            .start(handler, CancellationToken::new())
            .unwrap();
        for number in 0..50_000 {
            if let Some(old) = producer.dispatch(&((number % 3) as u32), [number; WORDS]).unwrap() {
                assert!(old.iter().all(|word| *word == old[0]), "a torn superseded value");
            }
        }
        drop(producer);
        worker.completion().wait().unwrap();
        assert_eq!(worker.counters().errors, 0);
    }
    torn::<1>();
    torn::<8>();
    torn::<33>();
}

#[test]
fn b73_zero_sized_values_are_conflated_and_delivered() {
    let seen = Arc::new(Mutex::new(0_u32));
    let note = seen.clone();
    let handler = With(move |_: &(), (): ()| *note.lock().unwrap() += 1, || ());
    let (mut producer, mut stepper) =
        ConflationSpWorker::builder().capacity(1).stepped(handler).unwrap();
    assert_eq!(producer.dispatch(&(), ()), Ok(None));
    assert_eq!(producer.dispatch(&(), ()), Ok(Some(())));
    assert_eq!(stepper.step(9), 1);
    assert_eq!(*seen.lock().unwrap(), 1);
}

#[test]
fn keys_without_end_are_refused_at_the_bound_and_none_at_all_at_the_start() {
    let handler = || With(|_: &u32, _: u8| (), || ());
    let (mut producer, _stepper) =
        ConflationSpWorker::builder().max_keys(3).stepped(handler()).unwrap();
    for key in 0..3 {
        producer.dispatch(&key, 0).unwrap();
    }
    assert_eq!(producer.dispatch(&3, 9), Err(DispatchError::TooManyKeys(9)));
    assert!(producer.key(&3).is_err());
    assert_eq!(producer.dispatch(&2, 1), Ok(Some(0)), "a known key goes on");
    let none = ConflationSpWorker::builder().max_keys(0).stepped::<u32, u8, _>(handler());
    assert!(matches!(none.map(drop), Err(StartError::NoKeys)));
}

#[test]
fn keys_that_come_and_go_for_ever_use_the_same_cells() {
    let handler = With(|key: &String, value: u32| assert_eq!(*key, value.to_string()), || ());
    let (mut producer, mut stepper) =
        ConflationSpWorker::builder().capacity(4).max_keys(2).stepped(handler).unwrap();
    for day in 0..1_000_u32 {
        let handle = producer.key(&day.to_string()).unwrap();
        producer.dispatch_at(handle, day).unwrap();
        producer.retire(handle).unwrap();
        assert!(producer.retire(handle).is_err());
        assert_eq!(producer.dispatch_at(handle, day), Err(DispatchError::Retired(day)));
        assert_eq!(stepper.step(9), 1, "a pending value of a retired key is delivered");
    }
    assert_eq!(producer.known_keys(), 0);
    assert_eq!(stepper.counters().errors, 0);
}

#[test]
fn a_handle_of_another_producer_is_refused() {
    let make = || {
        let handler = With(|_: &u32, _: u8| (), || ());
        ConflationSpWorker::builder().stepped(handler).unwrap()
    };
    let ((mut one, _a), (mut other, _b)) = (make(), make());
    let (mine, theirs) = (one.key(&1).unwrap(), other.key(&1).unwrap());
    assert_eq!(one.dispatch_at(theirs, 5), Err(DispatchError::Retired(5)));
    assert_eq!(one.dispatch_at(mine, 5), Ok(None));
}

#[test]
fn a_round_that_empties_the_ring_ends_in_one_idle_call() {
    let idle = Arc::new(Mutex::new(0));
    let note = idle.clone();
    let handler = With(|_: &u32, _: u8| (), move || *note.lock().unwrap() += 1);
    let (mut producer, mut stepper) = ConflationSpWorker::builder().stepped(handler).unwrap();
    stepper.step(9);
    assert_eq!(*idle.lock().unwrap(), 0, "nothing was handled");
    for key in 0..5 {
        producer.dispatch(&key, 0).unwrap();
    }
    stepper.step(3);
    assert_eq!(*idle.lock().unwrap(), 0, "two are left");
    stepper.step(9);
    stepper.step(9);
    assert_eq!(*idle.lock().unwrap(), 1);
    producer.dispatch(&1, 0).unwrap();
    drop(stepper.finish());
    assert_eq!(*idle.lock().unwrap(), 2, "also before the end");
}

#[test]
fn a_fold_that_panics_keeps_the_total_and_hands_the_value_back() {
    let sum = Sum::default();
    let (mut producer, mut stepper) = CoalescingSpWorker::builder().stepped(sum.clone()).unwrap();
    // On a clean key, and on a pending one.
    for _ in 0..2 {
        match producer.dispatch(&1, 13) {
            Err(DispatchError::CoalescePanicked(13, panicked)) => {
                assert!(panicked.message().contains("an unlucky fold"));
            }
            other => panic!("{other:?}"),
        }
        producer.dispatch(&1, 20).unwrap();
    }
    assert_eq!(stepper.counters().dispatched, 2, "what was refused is not counted");
    stepper.step(9);
    assert_eq!(*sum.total.lock().unwrap(), 40);
}

#[test]
fn an_iterator_that_panics_in_a_batch_leaves_what_came_before_it_and_drops_what_waited() {
    for by_key in [false, true] {
        let (census, probe) = (Census::default(), Probe::default());
        let (mut producer, mut stepper) =
            ConflationSpWorker::builder().capacity(64).stepped(probe.clone()).unwrap();
        let handles: Vec<_> = (0..40).map(|key| producer.key(&key).unwrap()).collect();
        let before_the_panic = |key: u32| {
            assert!(key < 30, "an unlucky item");
            census.item(key)
        };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            if by_key {
                let items = (0..40).map(|key| (key, before_the_panic(key)));
                producer.dispatch_all_by_key(items).map(drop).map_err(drop)
            } else {
                let items = (0..40).map(|key| (handles[key as usize], before_the_panic(key)));
                producer.dispatch_all(items).map(drop).map_err(drop)
            }
        }));
        assert!(caught.is_err());
        let published = stepper.queue().queued();
        assert_eq!(published, 15, "as many waited for their cells");
        assert_eq!(census.living(), 15, "and those were dropped");
        assert_eq!(stepper.step(usize::MAX), published);
        // The producer is whole.
        drop(producer.dispatch_at(handles[39], census.item(39)).unwrap());
        assert_eq!(stepper.step(usize::MAX), 1);
        drop((producer, stepper));
        assert_eq!(census.living(), 0);
    }
}

#[test]
fn b58_a_total_in_the_handlers_hand_does_not_hold_up_the_next_fold() {
    let gate = Gate::default();
    gate.shut();
    let sum = Sum { gate: Some(gate.clone()), ..Sum::default() };
    let (mut producer, worker): (CoalescingProducer<u32, u64, Sum>, _) =
        CoalescingSpWorker::builder()
            .capacity(1)
            .start(sum.clone(), CancellationToken::new())
            .unwrap();
    producer.dispatch(&1, 1).unwrap();
    gate.wait_for_arrival();
    for _ in 0..1_000 {
        producer.dispatch(&1, 1).unwrap();
    }
    gate.open();
    drop(producer);
    worker.completion().wait().unwrap();
    assert_eq!(*sum.total.lock().unwrap(), 1_001);
    assert_eq!(worker.counters().handled, 2, "the update after the take opened a new fold");
}

#[test]
fn b75_two_sleepers_never_miss_each_other() {
    // One place, two keys: every dispatch makes the producer sleep until the consumer, which sleeps
    // as well, has freed the place. Neither has a poll to fall back on.
    let handler = With(|_: &u32, _: u32| (), || ());
    let (mut producer, worker) =
        ConflationSpWorker::builder().capacity(1).start(handler, CancellationToken::new()).unwrap();
    let done = worker.completion();
    let ping = thread::spawn(move || {
        for number in 0..5_000_u32 {
            producer.dispatch(&(number % 2), number).unwrap();
        }
    });
    eventually("the last of 5,000 hand-offs", || ping.is_finished());
    ping.join().unwrap();
    done.wait().unwrap();
    let counters = worker.counters();
    assert_eq!(counters.dispatched, counters.handled + counters.conflated);
}

#[test]
fn an_event_loop_is_woken_for_a_stepped_worker() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let seen = Arc::new(Mutex::new(0_u64));
    let note = seen.clone();
    let handler = With(move |_: &u32, value: u64| *note.lock().unwrap() = value, || ());
    let (mut producer, mut stepper) = ConflationSpWorker::builder().stepped(handler).unwrap();
    let feed = thread::spawn(move || {
        for value in 1..=50_000_u64 {
            producer.dispatch(&1, value).unwrap();
        }
    });
    runtime.block_on(async {
        let drive = async {
            while !stepper.has_ended() {
                std::future::poll_fn(|context| stepper.poll_ready(context)).await;
                stepper.step(usize::MAX);
            }
        };
        tokio::time::timeout(crate::worker_support::PATIENCE, drive).await.expect("a lost wake");
    });
    feed.join().unwrap();
    assert_eq!(*seen.lock().unwrap(), 50_000);
}
