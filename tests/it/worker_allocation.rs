//! Nothing is allocated per item, on either side, sleeping and waking included.

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use crate::counting::{Group, allocations_everywhere};
use crate::worker_support::eventually;
use std::sync::{Arc, Mutex};
use tidegate::worker::{
    CoalescingHandler, CoalescingSpWorker, ConflationHandler, ConflationSpWorker, Outcome,
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
