#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use super::super::lifecycle::Core;
use super::super::ring::Capacity;
use super::*;
use crate::worker::wait::WaitStrategy;
use std::thread;

fn fresh(capacity: usize) -> (RingProducer<String>, RingConsumer<String>) {
    ring(&Core::new(Capacity::new(capacity).unwrap(), usize::MAX - 1, WaitStrategy::Park)).unwrap()
}

#[test]
fn items_pass_from_thread_to_thread_and_places_are_used_again() {
    let (mut producer, mut consumer) = fresh(2);
    let receiver = thread::spawn(move || {
        let mut received = Vec::new();
        while received.len() < 100 {
            let (core, cursor) = consumer.sight();
            core.next(cursor);
            match consumer.pop() {
                Some(item) => received.push(item),
                None => thread::yield_now(),
            }
        }
        received
    });
    for number in 0..100 {
        while !producer.has_room() {
            thread::yield_now();
        }
        producer.push(number.to_string()).unwrap();
    }
    let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    assert_eq!(receiver.join().unwrap(), expected);
}

#[test]
fn what_comes_after_the_closing_comes_back() {
    let (mut producer, mut consumer) = fresh(4);
    producer.push("in".into()).unwrap();
    let (core, cursor) = consumer.sight();
    core.complete();
    core.close(cursor);
    assert_eq!(producer.push("out".into()).unwrap_err().0, "out");
    let mut more = ["out", "too"].map(String::from).into_iter();
    let count = producer.fill(9, &mut more);
    assert_eq!(producer.publish_filled(count).unwrap_err().0, ["out", "too"]);
    assert_eq!(consumer.pop().as_deref(), Some("in"));
    assert_eq!(consumer.pop(), None);
}

#[test]
fn a_run_is_taken_across_the_end_of_the_storage_and_survives_a_panic() {
    let (mut producer, mut consumer) = fresh(4);
    for number in 0..4 {
        producer.push(number.to_string()).unwrap();
    }
    let (core, cursor) = consumer.sight();
    core.next(cursor);
    let mut taken = Vec::new();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        consumer.take_run(9, |item| {
            assert_ne!(item, "1");
            taken.push(item);
        });
    }));
    assert!(caught.is_err());
    consumer.take_run(9, |item| taken.push(item));
    assert_eq!(taken, ["0", "2", "3"]);
    assert_eq!(consumer.in_sight(), 0);
}

#[test]
fn a_standing_place_is_lent_to_one_side_after_the_other_and_dropped_at_the_end() {
    let core = Core::new(Capacity::new(2).unwrap(), usize::MAX, WaitStrategy::Park);
    let made = std::sync::Arc::new(());
    let (mut producer, mut consumer) = standing_ring(&core, || (made.clone(), 0)).unwrap();
    assert_eq!(std::sync::Arc::strong_count(&made), 3);
    for number in 1..=5 {
        assert!(producer.has_room());
        producer.slot_mut().1 = number;
        producer.publish().unwrap();
        let (core, cursor) = consumer.sight();
        core.next(cursor);
        assert_eq!(consumer.slot().1, number);
        consumer.pass();
        assert_eq!(consumer.in_sight(), 0);
        consumer.free();
    }
    drop((producer, consumer));
    assert_eq!(std::sync::Arc::strong_count(&made), 1);
}
