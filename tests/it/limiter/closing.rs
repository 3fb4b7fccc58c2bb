//! Closing.

use std::task::Poll;
use std::time::Duration;

use tidegate::limiter::{AcquireError, TryAcquireError};

use super::{Waiter, limiter, woken};

#[test]
fn a_closed_limiter_admits_nobody_in_any_way() {
    let limiter = std::sync::Arc::new(limiter(2));
    assert!(limiter.close());
    assert!(limiter.is_closed() && limiter.snapshot().closed);
    assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Closed));
    assert_eq!(limiter.try_acquire_owned().err(), Some(TryAcquireError::Closed));
    assert_eq!(limiter.acquire_blocking().err(), Some(AcquireError::Closed));
    let bounded = limiter.acquire_blocking_for(Duration::from_secs(60));
    assert_eq!(bounded.err(), Some(AcquireError::Closed));
    assert!(matches!(Waiter::new(&limiter).poll(), Poll::Ready(Err(AcquireError::Closed))));
    assert_eq!(limiter.snapshot().room(), 0);
}

#[test]
fn b67_closing_wakes_every_waiter_and_each_learns_that_it_is_closed() {
    let limiter = limiter(1);
    let held = limiter.try_acquire().unwrap();
    let mut waiters: Vec<_> = (0..100).map(|_| Waiter::waiting(&limiter)).collect();
    assert!(limiter.close());
    assert_eq!(woken(&waiters), 100);
    assert_eq!(limiter.waiting(), 0);
    for waiter in &mut waiters {
        assert!(matches!(waiter.poll(), Poll::Ready(Err(AcquireError::Closed))));
    }
    drop(held);
    assert_eq!((limiter.active(), limiter.misuses()), (0, 0));
}

#[test]
fn b67_blocked_threads_end_when_the_limiter_closes() {
    let limiter = limiter(0);
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..20).map(|_| scope.spawn(|| limiter.acquire_blocking())).collect();
        while limiter.waiting() < 20 {
            std::thread::yield_now();
        }
        limiter.close();
        for thread in waiting {
            assert_eq!(thread.join().unwrap().err(), Some(AcquireError::Closed));
        }
    });
}

#[test]
fn b67_closing_while_some_are_cancelled_and_one_is_on_its_way_leaves_nothing_behind() {
    let limiter = limiter(1);
    let held = limiter.try_acquire().unwrap();
    let mut waiters: Vec<_> = (0..100).map(|_| Waiter::waiting(&limiter)).collect();
    drop(held);
    assert_eq!(woken(&waiters), 1); // its signal is unanswered
    waiters.truncate(60);
    limiter.close();
    assert_eq!(woken(&waiters), 60);
    waiters.truncate(30); // cancelled after the close
    for waiter in &mut waiters {
        assert!(matches!(waiter.poll(), Poll::Ready(Err(AcquireError::Closed))));
    }
    assert_eq!((limiter.active(), limiter.waiting()), (0, 0));
}

#[test]
fn a_permit_handed_over_before_the_close_is_kept_or_comes_back() {
    for keeps in [true, false] {
        let limiter = limiter(1);
        let mut held = Some(limiter.try_acquire().unwrap());
        let mut waiter = Waiter::waiting(&limiter);
        // Lose until the next permit is handed over.
        for _ in 0..tidegate::limiter::DynamicConcurrencyLimiter::LOSSES_BEFORE_HAND_OFF {
            held = None;
            held.replace(limiter.try_acquire().unwrap());
            assert!(waiter.poll().is_pending());
        }
        drop(held);
        assert_eq!((limiter.active(), limiter.waiting()), (1, 0));
        limiter.close();
        if keeps {
            drop(waiter.permit());
        } else {
            drop(waiter);
        }
        assert_eq!((limiter.active(), limiter.misuses()), (0, 0));
    }
}

#[test]
fn permits_held_across_a_close_are_given_back_as_ever() {
    let limiter = limiter(3);
    let permit = limiter.try_acquire().unwrap();
    limiter.try_acquire().unwrap().forget();
    limiter.close();
    assert_eq!(limiter.active(), 2);
    drop(permit);
    limiter.release().unwrap();
    assert!(limiter.release().is_err());
    assert_eq!(limiter.active(), 0);
}

#[test]
fn b70_neither_resizing_nor_releasing_reopens_and_closing_twice_is_harmless() {
    let limiter = limiter(2);
    let permit = limiter.try_acquire().unwrap();
    assert!(limiter.close());
    assert!(!limiter.close());
    for capacity in [0, 9, 1, 5] {
        limiter.set_capacity(capacity).unwrap();
        assert_eq!(limiter.capacity(), capacity);
        assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Closed));
        assert!(matches!(Waiter::new(&limiter).poll(), Poll::Ready(Err(AcquireError::Closed))));
    }
    drop(permit);
    assert!(!limiter.close());
    assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Closed));
}
