//! What costs no allocation.

use std::sync::Arc;

use super::{Waiter, limiter};
use crate::counting::allocations;

#[test]
fn a_permit_taken_and_given_back_allocates_nothing() {
    let limiter = Arc::new(limiter(8));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let count = allocations(|| {
        for _ in 0..1000 {
            drop(limiter.try_acquire().unwrap());
            drop(limiter.try_acquire_owned().unwrap());
            limiter.try_acquire().unwrap().forget();
            limiter.try_acquire_owned().unwrap().forget();
            limiter.release_many(2).unwrap();
            let mut acquire = std::pin::pin!(limiter.acquire());
            assert!(acquire.as_mut().poll(&mut context).is_ready());
            drop(limiter.acquire_blocking().unwrap());
            limiter.set_capacity(9).unwrap();
            limiter.set_capacity(8).unwrap();
            let _ = limiter.snapshot();
        }
    });
    assert_eq!(count, 0);
}

#[test]
fn a_limiter_that_is_made_refuses_and_is_dropped_without_an_allocation() {
    let count = allocations(|| {
        let limiter = limiter(1);
        let permit = limiter.try_acquire().unwrap();
        assert!(limiter.try_acquire().is_err());
        drop(permit);
        assert!(limiter.release().is_err());
        limiter.close();
    });
    assert_eq!(count, 0);
}

#[test]
fn waiting_again_and_again_allocates_nothing_once_as_many_have_waited_before() {
    let limiter = limiter(1);
    let held = limiter.try_acquire().unwrap();
    let mut waiters: Vec<_> = (0..8).map(|_| Waiter::waiting(&limiter)).collect();
    waiters.clear();
    drop(held);

    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let count = allocations(|| {
        for _ in 0..1000 {
            let held = limiter.try_acquire().unwrap();
            let mut first = std::pin::pin!(limiter.acquire());
            let mut second = std::pin::pin!(limiter.acquire());
            assert!(first.as_mut().poll(&mut context).is_pending());
            assert!(second.as_mut().poll(&mut context).is_pending());
            drop(held);
            assert!(first.as_mut().poll(&mut context).is_ready());
            assert!(second.as_mut().poll(&mut context).is_ready());
        }
    });
    assert_eq!(count, 0);
}
