//! The keyed workers under the model checker: cells, folds, places, sleeping, waking, closing.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_support::{Log, check};
use loom::thread;
use tidegate::worker::{CoalescingSpWorker, ConflationSpWorker, DispatchError};
use tokio_util::sync::CancellationToken;

/// A cell swapped from both sides: every value is either handed back or delivered, once, in order,
/// and the last one is delivered. (Loom itself sees a slot that both sides touch.)
#[test]
fn a_cell_hands_every_value_to_exactly_one_side() {
    check(4, || {
        let log = Log::default();
        let (mut producer, mut stepper) = ConflationSpWorker::builder()
            .capacity(1)
            .max_keys(1)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let key = producer.key(&7).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(2);
            stepper
        });
        let mut superseded = Vec::new();
        for value in 1..=3 {
            superseded.extend(producer.dispatch_at(key, value).unwrap());
        }
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        let delivered = log.of(7);
        assert!(delivered.is_sorted() && superseded.is_sorted());
        assert_eq!(delivered.last(), Some(&3));
        let mut all = [delivered, superseded].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// Two keys, one place, nobody waits: every value is delivered, handed back superseded, or refused,
/// whichever way the two meet. (A key may be out of the ring and not yet taken while its place goes
/// to the other key.)
#[test]
fn two_keys_share_one_place_and_every_value_is_accounted_for() {
    check(3, || {
        let log = Log::default();
        let (mut producer, mut stepper) = ConflationSpWorker::builder()
            .capacity(1)
            .max_keys(2)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let (one, two) = (producer.key(&1).unwrap(), producer.key(&2).unwrap());
        producer.dispatch_at(one, 1).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(1);
            stepper
        });
        let mut accounted = Vec::new();
        for (key, value) in [(two, 2), (one, 3)] {
            match producer.try_dispatch_at(key, value) {
                Ok(superseded) => accounted.extend(superseded),
                Err(DispatchError::Full(value)) => accounted.push(value),
                Err(other) => panic!("{other:?}"),
            }
        }
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        assert!(log.of(1).is_sorted());
        accounted.extend(log.items().iter().map(|(_, value)| *value));
        accounted.sort_unstable();
        assert_eq!(accounted, [1, 2, 3]);
        let counters = stepper.counters();
        assert_eq!(counters.dispatched, counters.handled + counters.conflated);
    });
}

/// A batch whose places are published together, while the other side takes, and may close in the
/// middle of it: what was accepted is delivered or superseded, what was refused comes back.
#[test]
fn a_batch_that_meets_the_consumer_and_the_end_is_accounted_for() {
    check(2, || {
        let log = Log::default();
        let (mut producer, stepper) = ConflationSpWorker::builder()
            .capacity(2)
            .max_keys(2)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let queue = stepper.queue();
        let (one, two) = (producer.key(&1).unwrap(), producer.key(&2).unwrap());
        producer.dispatch_at(one, 1).unwrap();
        let consumer = thread::spawn(move || drop(stepper.finish()));
        let mut items = [(one, 2), (two, 3), (two, 4)].into_iter();
        let refused: Vec<u32> = match producer.dispatch_all(&mut items) {
            Ok(accepted) => {
                assert_eq!(accepted, 3);
                vec![]
            }
            Err(error) => {
                assert!(matches!(error.why, DispatchError::Closed((), _)));
                error.refused.into_iter().chain(items).map(|(_, value)| value).collect()
            }
        };
        consumer.join().unwrap();
        assert!(log.of(1).is_sorted());
        let newest_of_two = log.of(2).last().copied();
        assert_eq!(newest_of_two == Some(4), !refused.contains(&4));
        let counters = queue.counters();
        assert_eq!(counters.dispatched, counters.handled + counters.conflated);
        assert_eq!(counters.handled, log.items().len() as u64);
    });
}

/// Slots go from key to key: one that the reader emptied under one key is filled for the other, and
/// the other way round. (Loom itself sees a slot that both sides touch.)
#[test]
fn slots_that_change_hands_between_keys_carry_each_value_once() {
    check(3, || {
        let log = Log::default();
        let (mut producer, mut stepper) = ConflationSpWorker::builder()
            .capacity(2)
            .max_keys(2)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let (one, two) = (producer.key(&1).unwrap(), producer.key(&2).unwrap());
        producer.dispatch_at(one, 1).unwrap();
        producer.dispatch_at(two, 2).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(2);
            stepper
        });
        let mut accounted = Vec::new();
        for (key, value) in [(one, 3), (two, 4), (one, 5)] {
            accounted.extend(producer.dispatch_at(key, value).unwrap());
        }
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        assert_eq!((log.of(1).last(), log.of(2).last()), (Some(&5), Some(&4)));
        accounted.extend(log.items().iter().map(|(_, value)| *value));
        accounted.sort_unstable();
        assert_eq!(accounted, [1, 2, 3, 4, 5]);
    });
}

/// The same for totals: the slot that the reader emptied under the first key and left under the second
/// comes back with the second's next total, and is filled for the third key.
#[test]
fn slots_that_change_hands_between_totals_carry_each_once() {
    check(3, || {
        let log = Log::default();
        let (mut producer, mut stepper) = CoalescingSpWorker::builder()
            .capacity(4)
            .max_keys(3)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let keys = [1, 2, 3].map(|key| producer.key(&key).unwrap());
        producer.dispatch_at(keys[0], 1).unwrap();
        producer.dispatch_at(keys[1], 10).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(2);
            stepper
        });
        for (key, value) in [(keys[1], 20), (keys[0], 2), (keys[2], 100)] {
            producer.dispatch_at(key, value).unwrap();
        }
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        let totals = [1, 2, 3].map(|key| log.of(key).iter().sum::<u32>());
        assert_eq!(totals, [3, 30, 100]);
    });
}

/// A batch by key, of keys that were known and of a new one, meets the consumer.
#[test]
fn a_batch_by_key_that_meets_the_consumer_is_accounted_for() {
    check(2, || {
        let log = Log::default();
        let (mut producer, mut stepper) = ConflationSpWorker::builder()
            .capacity(2)
            .max_keys(2)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        producer.dispatch(&1, 1).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(2);
            stepper
        });
        assert_eq!(producer.dispatch_all_by_key([(1, 2), (2, 3), (1, 4), (2, 5)]), Ok(4));
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        assert!(log.of(1).is_sorted() && log.of(2).is_sorted());
        assert_eq!((log.of(1).last(), log.of(2).last()), (Some(&4), Some(&5)));
        let counters = stepper.counters();
        assert_eq!(counters.dispatched, 5);
        assert_eq!(counters.dispatched, counters.handled + counters.conflated);
    });
}

/// The same for totals: each contribution of a batch is in exactly one.
#[test]
fn b58_every_contribution_of_a_batch_is_in_exactly_one_total() {
    check(2, || {
        let log = Log::default();
        let (mut producer, mut stepper) = CoalescingSpWorker::builder()
            .capacity(2)
            .max_keys(2)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        producer.dispatch(&1, 1).unwrap();
        let (one, two) = (producer.key(&1).unwrap(), producer.key(&2).unwrap());
        let consumer = thread::spawn(move || {
            stepper.step(2);
            stepper
        });
        assert_eq!(producer.dispatch_all([(one, 10), (two, 7), (one, 100), (two, 70)]), Ok(4));
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        assert_eq!(log.of(1).iter().sum::<u32>(), 111);
        assert_eq!(log.of(2).iter().sum::<u32>(), 77);
    });
}

/// Two keys through one place, both sides sleeping and waking each other. A lost wake would be a
/// deadlock, which loom reports.
#[test]
fn two_keys_pass_through_one_place_end_to_end() {
    check(2, || {
        let log = Log::default();
        let (mut producer, worker) = ConflationSpWorker::builder()
            .capacity(1)
            .max_keys(2)
            .start::<u32, u32, _>(log.clone(), CancellationToken::new())
            .unwrap();
        producer.dispatch(&1, 1).unwrap();
        producer.dispatch(&2, 2).unwrap();
        drop(producer);
        assert!(worker.completion().wait().is_ok());
        assert_eq!(log.items(), [(1, 1), (2, 2)]);
    });
}

/// The thread's own park and notify: one item, then the end.
#[test]
fn a_sleeping_consumer_is_woken_for_an_item_and_for_the_end() {
    check(3, || {
        let log = Log::default();
        let (mut producer, worker) = ConflationSpWorker::builder()
            .capacity(1)
            .max_keys(1)
            .start::<u32, u32, _>(log.clone(), CancellationToken::new())
            .unwrap();
        producer.dispatch(&1, 1).unwrap();
        drop(producer);
        assert!(worker.completion().wait().is_ok());
        assert_eq!(log.items(), [(1, 1)]);
        assert_eq!(log.ends(), ["drained"]);
    });
}

/// A producer that sleeps on a full ring is woken by room.
#[test]
fn a_sleeping_producer_is_woken_by_a_free_place() {
    check(3, || {
        let log = Log::default();
        let (mut producer, mut stepper) = ConflationSpWorker::builder()
            .capacity(1)
            .max_keys(2)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        producer.dispatch(&1, 1).unwrap();
        let blocked = thread::spawn(move || {
            producer.dispatch(&2, 2).unwrap();
            producer
        });
        stepper.step(1);
        let producer = blocked.join().unwrap();
        assert_eq!(stepper.finish().map(|log| log.items()), Some(vec![(1, 1), (2, 2)]));
        drop(producer);
    });
}

/// Completed from elsewhere in the middle of a dispatch: what was accepted is delivered, what was
/// refused comes back, and there is no third way.
#[test]
fn an_accepted_value_is_delivered_and_a_refused_one_comes_back() {
    check(3, || {
        let log = Log::default();
        let (mut producer, stepper) = ConflationSpWorker::builder()
            .capacity(2)
            .max_keys(1)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let completion = stepper.completion();
        let queue = stepper.queue();
        let consumer = thread::spawn(move || stepper.finish());
        let sent = producer.dispatch(&1, 1);
        drop(consumer.join().unwrap());
        assert!(completion.wait().is_ok());
        match sent {
            Ok(superseded) => {
                assert_eq!(superseded, None);
                assert_eq!(log.items(), [(1, 1)]);
            }
            Err(DispatchError::Closed(value, _)) => {
                assert_eq!(value, 1);
                assert_eq!(log.items(), []);
            }
            Err(other) => panic!("{other:?}"),
        }
        let counters = queue.counters();
        assert_eq!(counters.dispatched, counters.handled);
        assert_eq!(log.ends(), ["drained"]);
    });
}

/// A hard stop frees a producer that sleeps on a full ring, and the pending value is dropped once.
#[test]
fn a_hard_stop_frees_a_sleeping_producer() {
    check(3, || {
        let log = Log::default();
        let (mut producer, stepper) = ConflationSpWorker::builder()
            .capacity(1)
            .max_keys(2)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let queue = stepper.queue();
        producer.dispatch(&1, 1).unwrap();
        let blocked = thread::spawn(move || producer.dispatch(&2, 2));
        drop(stepper);
        let refused = blocked.join().unwrap();
        assert!(matches!(refused, Err(DispatchError::Closed(2, _))));
        assert_eq!(log.items(), []);
        assert_eq!(log.ends(), ["cancelled"]);
        assert_eq!((queue.counters().discarded, queue.counters().dispatched), (1, 1));
    });
}

/// Contributions folded while the total is taken: none lost, none counted twice.
#[test]
fn b58_every_contribution_is_in_exactly_one_total() {
    check(4, || {
        let log = Log::default();
        let (mut producer, mut stepper) = CoalescingSpWorker::builder()
            .capacity(1)
            .max_keys(1)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let key = producer.key(&7).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(2);
            stepper
        });
        for value in [1, 10, 100] {
            producer.dispatch_at(key, value).unwrap();
        }
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        assert_eq!(log.of(7).iter().sum::<u32>(), 111);
    });
}

/// Cancelled or completed from elsewhere while a fold runs: what was taken is in a total, or was
/// dropped with it, and nothing is counted that was refused.
#[test]
fn b58_a_fold_that_meets_the_end_is_accepted_or_refused_as_a_whole() {
    check(3, || {
        let log = Log::default();
        let (mut producer, stepper) = CoalescingSpWorker::builder()
            .capacity(1)
            .max_keys(1)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let consumer = thread::spawn(move || drop(stepper.finish()));
        let accepted: u32 =
            [1, 10].into_iter().filter(|value| producer.dispatch(&7, *value).is_ok()).sum();
        consumer.join().unwrap();
        assert_eq!(log.of(7).iter().sum::<u32>(), accepted);
    });
}

/// A retired key's cell serves another only after the consumer is done with it: loom sees a key
/// that is written while it is read.
#[test]
fn a_retired_index_is_used_again_only_after_the_consumer_has_passed_it() {
    check(3, || {
        let log = Log::default();
        let (mut producer, mut stepper) = ConflationSpWorker::builder()
            .capacity(2)
            .max_keys(1)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        producer.dispatch(&1, 1).unwrap();
        let first = producer.key(&1).unwrap();
        let consumer = thread::spawn(move || {
            stepper.step(1);
            stepper
        });
        producer.retire(first).unwrap();
        assert!(matches!(producer.dispatch_at(first, 5), Err(DispatchError::Retired(5))));
        let second = producer.dispatch(&2, 2);
        let mut stepper = consumer.join().unwrap();
        stepper.step(usize::MAX);
        match second {
            Ok(superseded) => {
                assert_eq!(superseded, None);
                assert_eq!(log.items(), [(1, 1), (2, 2)]);
            }
            Err(DispatchError::TooManyKeys(2)) => assert_eq!(log.items(), [(1, 1)]),
            Err(other) => panic!("{other:?}"),
        }
    });
}

/// The completion wakes a task and a thread, after `on_completed`.
#[test]
fn a_completion_resolves_for_tasks_and_threads() {
    check(3, || {
        let log = Log::default();
        let (producer, stepper) = ConflationSpWorker::builder()
            .capacity(1)
            .max_keys(1)
            .stepped::<u32, u32, _>(log.clone())
            .unwrap();
        let (awaited, waited) = (stepper.completion(), stepper.completion());
        let ender = thread::spawn(move || drop(stepper.finish()));
        assert!(loom::future::block_on(awaited).is_ok());
        assert_eq!(log.ends(), ["drained"]);
        assert!(waited.wait().is_ok());
        ender.join().unwrap();
        drop(producer);
    });
}
