//! Random operations against a model that is a few plain integers.
//!
//! One thread polls every waiter by hand, so each step is checked exactly: what it answered, what
//! the limiter reports after it, and that no waiter is left asleep beside room.

use std::task::Poll;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use tidegate::limiter::{AcquireError, Permit, ReleaseError, TryAcquireError};

use super::{Waiter, limiter, woken};

#[derive(Clone, Debug)]
enum Operation {
    TryAcquire,
    Wait,
    /// Polls a waiter, woken or not.
    Poll(prop::sample::Index),
    /// Polls a waiter that was woken.
    Answer(prop::sample::Index),
    Cancel(prop::sample::Index),
    DropPermit(prop::sample::Index),
    ForgetPermit(prop::sample::Index),
    Release,
    ReleaseMany(usize),
    SetCapacity(usize),
    Close,
}

fn operation() -> impl Strategy<Value = Operation> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => Just(Operation::TryAcquire),
        6 => Just(Operation::Wait),
        3 => index().prop_map(Operation::Poll),
        6 => index().prop_map(Operation::Answer),
        3 => index().prop_map(Operation::Cancel),
        6 => index().prop_map(Operation::DropPermit),
        3 => index().prop_map(Operation::ForgetPermit),
        3 => Just(Operation::Release),
        2 => (0..5_usize).prop_map(Operation::ReleaseMany),
        3 => (0..6_usize).prop_map(Operation::SetCapacity),
    ]
}

fn operation_or_close() -> impl Strategy<Value = Operation> {
    prop_oneof![40 => operation(), 1 => Just(Operation::Close)]
}

/// The model, and what the test holds of the limiter.
struct Run<'a> {
    limiter: &'a tidegate::limiter::DynamicConcurrencyLimiter,
    closed: bool,
    capacity: usize,
    permits: Vec<Permit<'a>>,
    /// Permits forgotten and owed.
    owed: usize,
    waiters: Vec<Waiter<'a>>,
}

impl Run<'_> {
    fn step(&mut self, operation: &Operation) {
        let limiter = self.limiter;
        let before = limiter.snapshot();
        match operation {
            Operation::TryAcquire => match limiter.try_acquire() {
                Ok(permit) => {
                    assert!(before.room() > 0);
                    self.permits.push(permit);
                }
                Err(TryAcquireError::Full) => assert!(before.room() == 0 && !self.closed),
                Err(TryAcquireError::Closed) => assert!(self.closed),
            },
            Operation::Wait => {
                let mut waiter = Waiter::new(limiter);
                match waiter.poll() {
                    Poll::Ready(Ok(permit)) => {
                        assert!(before.room() > 0);
                        self.permits.push(permit);
                    }
                    Poll::Ready(Err(error)) => {
                        assert!(self.closed && error == AcquireError::Closed);
                    }
                    Poll::Pending => {
                        assert!(before.room() == 0 && !self.closed);
                        self.waiters.push(waiter);
                    }
                }
            }
            Operation::Poll(index) => {
                if !self.waiters.is_empty() {
                    self.poll(index.index(self.waiters.len()));
                }
            }
            Operation::Answer(index) => {
                let woken: Vec<_> =
                    (0..self.waiters.len()).filter(|&w| self.waiters[w].is_woken()).collect();
                if !woken.is_empty() {
                    self.poll(woken[index.index(woken.len())]);
                }
            }
            Operation::Cancel(index) => {
                if !self.waiters.is_empty() {
                    self.waiters.swap_remove(index.index(self.waiters.len()));
                }
            }
            Operation::DropPermit(index) => {
                if !self.permits.is_empty() {
                    drop(self.permits.swap_remove(index.index(self.permits.len())));
                }
            }
            Operation::ForgetPermit(index) => {
                if !self.permits.is_empty() {
                    self.permits.swap_remove(index.index(self.permits.len())).forget();
                    self.owed += 1;
                }
            }
            Operation::Release => {
                if self.owed > 0 {
                    limiter.release().unwrap();
                    self.owed -= 1;
                } else if before.active == 0 {
                    assert_eq!(limiter.release(), Err(ReleaseError::NothingHeld));
                    assert_eq!(limiter.snapshot(), before);
                }
            }
            Operation::ReleaseMany(count) => {
                if *count <= self.owed {
                    limiter.release_many(*count).unwrap();
                    self.owed -= count;
                }
                if before.active > 0 && *count > before.active {
                    let (asked, held) = (*count, before.active);
                    let refused = ReleaseError::MoreThanHeld { asked, held };
                    assert_eq!(limiter.release_many(asked), Err(refused));
                    assert_eq!(limiter.snapshot(), before);
                }
            }
            Operation::SetCapacity(capacity) => {
                assert_eq!(limiter.set_capacity(*capacity), Ok(self.capacity));
                self.capacity = *capacity;
            }
            Operation::Close => {
                assert_eq!(limiter.close(), !self.closed);
                self.closed = true;
            }
        }
        self.check(before.active);
    }

    fn poll(&mut self, index: usize) {
        let before = self.limiter.snapshot();
        match self.waiters[index].poll() {
            Poll::Ready(Ok(permit)) => {
                // There was room, or the permit had been handed over before.
                let after = self.limiter.snapshot();
                assert!(before.room() > 0 || after.active == before.active);
                self.permits.push(permit);
                self.waiters.swap_remove(index);
            }
            Poll::Ready(Err(error)) => {
                assert!(self.closed && error == AcquireError::Closed);
                self.waiters.swap_remove(index);
            }
            Poll::Pending => assert!(before.room() == 0 && !self.closed),
        }
    }

    fn check(&self, active_before: usize) {
        let seen = self.limiter.snapshot();
        assert_eq!((seen.closed, seen.capacity), (self.closed, self.capacity));
        // Conservation: active = held + owed + handed over to waiters that have not come for it.
        let held = self.permits.len() + self.owed;
        let handed = seen.active.checked_sub(held).expect("a permit is held and not counted");
        if self.closed {
            assert_eq!(seen.waiting, 0);
            assert!(handed <= self.waiters.len());
        } else {
            assert_eq!(seen.waiting + handed, self.waiters.len());
        }
        // No over-admission: only a shrink leaves more active than the capacity.
        assert!(seen.active <= seen.capacity.max(active_before));
        // No lost wake: beside room somebody is on the way.
        let on_the_way = woken(&self.waiters);
        if seen.room() > 0 && seen.waiting > 0 {
            assert!(on_the_way > 0, "room beside sleepers: {seen:?}");
        }
        assert!(on_the_way >= handed);
        if self.closed {
            assert_eq!(on_the_way, self.waiters.len());
        }
    }

    /// Lets every woken waiter look until none is woken, then checks that all room is used, and
    /// gives everything back.
    fn settle(mut self) {
        while let Some(index) = self.waiters.iter().position(Waiter::is_woken) {
            self.poll(index);
            self.check(usize::MAX);
        }
        let seen = self.limiter.snapshot();
        assert!(seen.waiting == 0 || seen.room() == 0, "somebody was forgotten: {seen:?}");
        self.waiters.clear();
        self.permits.clear();
        self.limiter.release_many(self.owed).unwrap();
        let seen = self.limiter.snapshot();
        assert_eq!((seen.active, seen.waiting), (0, 0));
        let all: Vec<_> = std::iter::from_fn(|| self.limiter.try_acquire().ok()).collect();
        assert_eq!(all.len(), if self.closed { 0 } else { self.capacity });
    }
}

fn run(capacity: usize, operations: &[Operation]) {
    let limiter = limiter(capacity);
    let mut run = Run {
        limiter: &limiter,
        closed: false,
        capacity,
        permits: Vec::new(),
        owed: 0,
        waiters: Vec::new(),
    };
    for operation in operations {
        run.step(operation);
    }
    run.settle();
}

fn config(cases: u32, seed: u64) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config(600, 60))]

    #[test]
    fn random_operations_agree_with_the_model(
        capacity in 0..5_usize,
        operations in prop::collection::vec(operation(), 1..300),
    ) {
        run(capacity, &operations);
    }

    #[test]
    fn b70_random_operations_around_a_close_agree_with_the_model(
        capacity in 0..5_usize,
        operations in prop::collection::vec(operation_or_close(), 1..150),
    ) {
        run(capacity, &operations);
    }
}
