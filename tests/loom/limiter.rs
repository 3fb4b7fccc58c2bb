//! The limiter: acquire, release, resize, cancel and close against each other.
//!
//! Every scenario is run through its interleavings, up to a number of preemptions that keeps it
//! within seconds; a waiter that is never woken shows as a deadlock. Where permits exclude each
//! other, holders touch a plain counter with relaxed accesses: a stale read, which loom tries, is a
//! lost touch, so the orderings of the limiter's word are checked along.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use tidegate::limiter::{AcquireError, DynamicConcurrencyLimiter, ReleaseError, TryAcquireError};

fn check(preemptions: usize, scenario: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(scenario);
}

fn limiter(capacity: usize) -> Arc<DynamicConcurrencyLimiter> {
    Arc::new(DynamicConcurrencyLimiter::new(capacity).unwrap())
}

/// Wakes a thread that awaits.
struct Awaits(loom::sync::Notify);

impl Wake for Awaits {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// Awaits on this thread.
fn wait<F: Future>(future: F) -> F::Output {
    let awaits = Arc::new(Awaits(loom::sync::Notify::new()));
    let waker = Waker::from(Arc::clone(&awaits));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        awaits.0.wait();
    }
}

/// One poll, then the future is dropped, woken or not.
fn try_once_and_cancel(limiter: &DynamicConcurrencyLimiter) {
    let mut future = pin!(limiter.acquire());
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

/// What the holder of an exclusive permit does; loses a touch if it does not see the one before.
fn touch(data: &AtomicUsize) {
    let seen = data.load(Relaxed);
    data.store(seen + 1, Relaxed);
}

fn quiet(limiter: &DynamicConcurrencyLimiter) {
    let seen = limiter.snapshot();
    assert_eq!((seen.active, seen.waiting, limiter.misuses()), (0, 0, 0));
}

#[test]
fn holders_one_after_the_other_see_what_the_one_before_did() {
    check(3, || {
        let (limiter, data) = (limiter(1), Arc::new(AtomicUsize::new(0)));
        let other = {
            let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
            thread::spawn(move || {
                let _permit = wait(limiter.acquire()).unwrap();
                touch(&data);
            })
        };
        {
            let _permit = limiter.acquire_blocking().unwrap();
            touch(&data);
        }
        other.join().unwrap();
        quiet(&limiter);
        assert_eq!(data.load(Relaxed), 2);
    });
}

#[test]
fn three_that_want_one_permit_get_it_in_turn() {
    check(2, || {
        let (limiter, data) = (limiter(1), Arc::new(AtomicUsize::new(0)));
        let others: Vec<_> = (0..2)
            .map(|_| {
                let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
                thread::spawn(move || {
                    let _permit = wait(limiter.acquire()).unwrap();
                    touch(&data);
                })
            })
            .collect();
        {
            let _permit = limiter.acquire_blocking().unwrap();
            touch(&data);
        }
        for other in others {
            other.join().unwrap();
        }
        quiet(&limiter);
        assert_eq!(data.load(Relaxed), 3);
    });
}

#[test]
fn a_try_that_succeeds_sees_what_a_release_by_hand_came_after() {
    check(3, || {
        let (limiter, data) = (limiter(1), Arc::new(AtomicUsize::new(0)));
        limiter.try_acquire().unwrap().forget();
        let other = {
            let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
            thread::spawn(move || {
                touch(&data);
                limiter.release().unwrap();
            })
        };
        if let Ok(_permit) = limiter.try_acquire() {
            touch(&data);
            assert_eq!(data.load(Relaxed), 2);
        }
        other.join().unwrap();
        quiet(&limiter);
    });
}

#[test]
fn a_resize_wakes_one_waiter_and_the_relay_the_other() {
    check(2, || {
        let limiter = limiter(0);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let limiter = Arc::clone(&limiter);
                // Both keep what they got, so no release helps the second.
                thread::spawn(move || wait(limiter.acquire()).unwrap().forget())
            })
            .collect();
        limiter.set_capacity(2).unwrap();
        for other in others {
            other.join().unwrap();
        }
        let seen = limiter.snapshot();
        assert_eq!((seen.active, seen.waiting), (2, 0));
        assert!(limiter.wakes() <= 2);
    });
}

#[test]
fn a_shrink_that_has_returned_admits_nobody_above_it() {
    check(3, || {
        let limiter = limiter(2);
        let other = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || limiter.try_acquire().map(|permit| permit.forget()).is_ok())
        };
        limiter.set_capacity(0).unwrap();
        let seen = limiter.snapshot();
        let entered = other.join().unwrap();
        // Who is in now was in when the shrink returned.
        assert_eq!(seen.active, usize::from(entered));
        assert_eq!(limiter.active(), seen.active);
    });
}

#[test]
fn a_shrink_and_a_growth_beside_a_release_leave_no_waiter_asleep() {
    check(2, || {
        let limiter = limiter(1);
        limiter.try_acquire().unwrap().forget();
        let waits = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || drop(wait(limiter.acquire()).unwrap()))
        };
        let releases = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || limiter.release().unwrap())
        };
        limiter.set_capacity(0).unwrap();
        limiter.set_capacity(1).unwrap();
        waits.join().unwrap();
        releases.join().unwrap();
        quiet(&limiter);
    });
}

#[test]
fn a_waiter_that_is_cancelled_passes_its_wake_on() {
    check(2, || {
        let limiter = limiter(1);
        limiter.try_acquire().unwrap().forget();
        let cancelled = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || try_once_and_cancel(&limiter))
        };
        let waits = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || drop(wait(limiter.acquire()).unwrap()))
        };
        limiter.release().unwrap();
        cancelled.join().unwrap();
        waits.join().unwrap();
        quiet(&limiter);
    });
}

#[test]
fn a_cancel_beside_a_resize_passes_the_relay_on() {
    check(2, || {
        let limiter = limiter(0);
        let cancelled = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || try_once_and_cancel(&limiter))
        };
        let waits = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || wait(limiter.acquire()).unwrap().forget())
        };
        limiter.set_capacity(1).unwrap();
        cancelled.join().unwrap();
        waits.join().unwrap();
        let seen = limiter.snapshot();
        assert_eq!((seen.active, seen.waiting), (1, 0));
    });
}

#[test]
fn a_close_ends_a_wait_that_a_release_may_end_first() {
    check(2, || {
        let limiter = limiter(1);
        limiter.try_acquire().unwrap().forget();
        let waits = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || match wait(limiter.acquire()) {
                Ok(permit) => drop(permit),
                Err(error) => assert_eq!(error, AcquireError::Closed),
            })
        };
        let closes = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || assert!(limiter.close()))
        };
        limiter.release().unwrap();
        waits.join().unwrap();
        closes.join().unwrap();
        quiet(&limiter);
        assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Closed));
    });
}

#[test]
fn a_close_ends_every_wait_also_one_being_cancelled() {
    check(2, || {
        let limiter = limiter(0);
        let waits = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || {
                assert_eq!(limiter.acquire_blocking().err(), Some(AcquireError::Closed));
            })
        };
        let cancelled = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || try_once_and_cancel(&limiter))
        };
        limiter.close();
        waits.join().unwrap();
        cancelled.join().unwrap();
        quiet(&limiter);
    });
}

#[test]
fn who_sees_the_limiter_closed_sees_what_came_before_the_close() {
    check(3, || {
        let (limiter, data) = (limiter(1), Arc::new(AtomicUsize::new(0)));
        let closes = {
            let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
            thread::spawn(move || {
                touch(&data);
                limiter.close();
            })
        };
        if limiter.try_acquire().err() == Some(TryAcquireError::Closed) {
            assert_eq!(data.load(Relaxed), 1);
        }
        closes.join().unwrap();
    });
}

#[test]
fn a_resize_beside_a_close_does_not_reopen() {
    check(3, || {
        let limiter = limiter(0);
        let resizes = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || limiter.set_capacity(2).unwrap())
        };
        let waits = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || drop(wait(limiter.acquire())))
        };
        limiter.close();
        assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Closed));
        resizes.join().unwrap();
        waits.join().unwrap();
        assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Closed));
        assert_eq!(limiter.capacity(), 2);
        quiet(&limiter);
    });
}

#[test]
fn of_two_releases_of_one_permit_one_is_refused() {
    check(3, || {
        let limiter = limiter(2);
        limiter.try_acquire().unwrap().forget();
        let other = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || limiter.release())
        };
        let outcomes = [limiter.release(), other.join().unwrap()];
        assert!(outcomes.contains(&Ok(())));
        assert!(outcomes.contains(&Err(ReleaseError::NothingHeld)));
        assert_eq!((limiter.active(), limiter.misuses()), (0, 1));
    });
}

/// Under loom a single loss is enough for the hand-off, so every interleaving here has cases of it.
#[test]
fn a_starving_waiter_is_handed_a_permit_and_sees_what_its_holder_did() {
    check(3, || {
        let (limiter, data) = (limiter(1), Arc::new(AtomicUsize::new(0)));
        let waits = {
            let (limiter, data) = (Arc::clone(&limiter), Arc::clone(&data));
            thread::spawn(move || {
                let _permit = wait(limiter.acquire()).unwrap();
                touch(&data);
            })
        };
        let mut touches = 1;
        for _ in 0..2 {
            if let Ok(_permit) = limiter.try_acquire() {
                touch(&data);
                touches += 1;
            }
        }
        waits.join().unwrap();
        quiet(&limiter);
        assert_eq!(data.load(Relaxed), touches);
    });
}

#[test]
fn a_starving_waiter_that_is_cancelled_gives_back_what_it_was_handed() {
    // To starve it takes as many preemptions: two to lose, two to be handed a permit and go.
    check(4, || {
        let limiter = limiter(1);
        let cancelled = {
            let limiter = Arc::clone(&limiter);
            thread::spawn(move || {
                let mut future = pin!(limiter.acquire());
                for _ in 0..2 {
                    let mut context = Context::from_waker(Waker::noop());
                    if future.as_mut().poll(&mut context).is_ready() {
                        break;
                    }
                }
            })
        };
        for _ in 0..2 {
            drop(limiter.try_acquire());
        }
        cancelled.join().unwrap();
        quiet(&limiter);
    });
}
