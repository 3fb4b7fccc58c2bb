//! Mixes of more threads than a model can hold: a producer that changes threads, a consumer, two
//! that watch, and one that stops the worker at any moment, against every worker.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::worker_subjects::{Consumer, Control, Kind, Producer, Start, Subject, Waits, Why};
use crate::worker_support::{Census, Event, PATIENCE, Probe, eventually};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use tokio_util::sync::CancellationToken;

const ROUNDS: u64 = 40;
const MANY_ROUNDS: u64 = 2_000;
const ITEMS: u32 = 400;

macro_rules! mixes {
    ($($name:ident, $long:ident: $kind:ident;)*) => {
        $(
            #[test]
            fn $name() {
                rounds(Kind::$kind, ROUNDS);
            }

            #[test]
            #[ignore = "thousands of rounds take long"]
            fn $long() {
                rounds(Kind::$kind, MANY_ROUNDS);
            }
        )*
    };
}

mixes! {
    five_threads_around_moved_items, long_five_threads_around_moved_items: ByValue;
    five_threads_around_slots, long_five_threads_around_slots: InSlots;
    five_threads_around_conflated_values, long_five_threads_around_conflated_values: Conflation;
    five_threads_around_totals, long_five_threads_around_totals: Coalescing;
}

fn rounds(kind: Kind, rounds: u64) {
    for consumer in [Consumer::Thread, Consumer::Task, Consumer::Stepped] {
        for waits in [Waits::Blocking, Waits::Awaiting] {
            for seed in 0..rounds {
                round(Subject { kind, consumer, waits }, StdRng::seed_from_u64(seed));
            }
        }
    }
}

fn round(subject: Subject, mut random: StdRng) {
    let (census, probe, token) = (Census::default(), Probe::default(), CancellationToken::new());
    let capacity = [1, 2, 8, 64][random.random_range(0..4)];
    let start = Start { token: token.clone(), ..Start::with_capacity(capacity) };
    let (producer, control) = subject.start(start, probe.clone()).unwrap();
    let over = AtomicBool::new(false);
    let items = ITEMS.min(random.random_range(1..ITEMS * 2));
    let changes_at = random.random_range(0..ITEMS);
    let (moment, way) = (random.random_range(0..200), random.random_range(0..6));
    let accepted = thread::scope(|scope| {
        let sending = scope.spawn(|| send(producer, &census, items, changes_at));
        for _ in 0..2 {
            scope.spawn(|| watch(&*control, capacity, &over));
        }
        scope.spawn(|| {
            for _ in 0..moment {
                thread::yield_now();
            }
            stop(&*control, &token, way);
        });
        let accepted = sending.join().unwrap();
        over.store(true, SeqCst);
        accepted
    });

    assert!(control.completion().wait_timeout(PATIENCE), "{subject:?} never ended");
    let mut events = probe.events();
    let end = events.pop().unwrap();
    let handled = events.len() as u32;
    assert_eq!(events, (0..handled).map(Event::Handled).collect::<Vec<_>>(), "{subject:?}");
    match end {
        Event::Drained | Event::Faulted(_) => assert_eq!(handled, accepted, "{subject:?}"),
        Event::Cancelled => assert!(handled <= accepted, "{subject:?}"),
        other => panic!("{other:?} was the last event of {subject:?}"),
    }
    let counts = control.counters();
    assert_eq!(counts.dispatched, u64::from(accepted), "{subject:?}");
    assert_eq!(counts.handled + counts.discarded, counts.dispatched, "{subject:?}");
    drop(control);
    eventually("no item is left", || census.living() == 0);
}

/// Sends from two threads, one after the other; how many items were accepted.
fn send(mut producer: Producer, census: &Census, items: u32, changes_at: u32) -> u32 {
    let mut offer = |number| match producer.send(census.item(number)) {
        Ok(()) => true,
        Err(refused) => {
            assert_eq!(refused.item.number, number, "another item came back");
            assert!(matches!(refused.why, Why::Closed(_)), "{:?}", refused.why);
            false
        }
    };
    let first = (0..items.min(changes_at)).take_while(|number| offer(*number)).count() as u32;
    if first < items.min(changes_at) {
        return first;
    }
    let rest = thread::scope(|scope| {
        let second = scope.spawn(|| (first..items).take_while(|number| offer(*number)).count());
        second.join().unwrap()
    });
    first + rest as u32
}

/// No snapshot shows more going out than came in.
fn watch(control: &dyn Control, capacity: usize, over: &AtomicBool) {
    while !over.load(SeqCst) {
        let seen = control.counters();
        let out = seen.handled + seen.conflated + seen.discarded;
        assert!(out <= seen.dispatched, "{seen:?}");
        assert!(control.queue().queued() <= capacity);
        thread::yield_now();
    }
}

fn stop(control: &dyn Control, token: &CancellationToken, way: u32) {
    match way {
        0 => drop(control.complete()),
        1 => drop(control.fault("enough")),
        2 => drop(control.cancel()),
        3 => token.cancel(),
        4 => {
            control.complete();
            control.cancel();
        }
        // The producer's end is the worker's.
        _ => {}
    }
}
