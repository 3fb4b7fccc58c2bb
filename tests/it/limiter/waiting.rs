//! Waiting: who is woken, when, and what becomes of a waiter that goes away.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tidegate::limiter::{AcquireError, DynamicConcurrencyLimiter};

use super::{Waiter, limiter, woken};

#[test]
fn a_release_with_waiters_wakes_exactly_one_and_without_them_nobody() {
    let limiter = limiter(3);
    let mut held: Vec<_> = (0..3).map(|_| limiter.try_acquire().unwrap()).collect();
    let mut waiters: Vec<_> = (0..5).map(|_| Waiter::waiting(&limiter)).collect();
    for expected in 1..=3 {
        held.pop();
        assert_eq!(woken(&waiters), expected);
    }
    assert_eq!(limiter.wakes(), 3);
    let permits: Vec<_> = waiters[..3].iter_mut().map(Waiter::permit).collect();
    waiters.drain(..3);
    assert_eq!(woken(&waiters), 0);
    waiters.clear();
    drop(permits);
    assert_eq!(limiter.wakes(), 3);
}

#[test]
fn a_burst_of_releases_without_waiters_wakes_nobody() {
    let limiter = limiter(1000);
    for _ in 0..1000 {
        limiter.try_acquire().unwrap().forget();
    }
    for _ in 0..500 {
        limiter.release().unwrap();
    }
    limiter.release_many(500).unwrap();
    assert_eq!(limiter.wakes(), 0);
}

#[test]
fn a_resize_wakes_one_and_each_that_enters_wakes_exactly_one_more() {
    let limiter = limiter(1);
    let _held = limiter.try_acquire().unwrap();
    let mut waiters: Vec<_> = (0..999).map(|_| Waiter::waiting(&limiter)).collect();
    assert_eq!((limiter.wakes(), woken(&waiters)), (0, 0));

    limiter.set_capacity(1000).unwrap();
    let mut permits = Vec::new();
    for entered in 0..999 {
        assert_eq!(limiter.wakes(), entered + 1);
        assert_eq!(woken(&waiters), 1);
        let next = waiters.iter_mut().find(|waiter| waiter.is_woken()).unwrap();
        permits.push(next.permit());
    }
    assert_eq!((limiter.wakes(), woken(&waiters)), (999, 0));
    assert_eq!((limiter.active(), limiter.waiting()), (1000, 0));
}

#[test]
fn a_relay_stops_where_the_room_ends() {
    let limiter = limiter(0);
    let mut waiters: Vec<_> = (0..10).map(|_| Waiter::waiting(&limiter)).collect();
    limiter.set_capacity(4).unwrap();
    let mut permits = Vec::new();
    while let Some(next) = waiters.iter_mut().find(|waiter| waiter.is_woken()) {
        permits.push(next.permit());
    }
    assert_eq!((permits.len(), limiter.wakes(), limiter.waiting()), (4, 4, 6));
}

#[test]
fn many_released_at_once_admit_as_many_by_relay() {
    let limiter = limiter(4);
    for _ in 0..4 {
        limiter.try_acquire().unwrap().forget();
    }
    let mut waiters: Vec<_> = (0..6).map(|_| Waiter::waiting(&limiter)).collect();
    limiter.release_many(3).unwrap();
    assert_eq!(limiter.wakes(), 1);
    let mut permits = Vec::new();
    while let Some(next) = waiters.iter_mut().find(|waiter| waiter.is_woken()) {
        permits.push(next.permit());
    }
    assert_eq!((permits.len(), limiter.wakes(), limiter.waiting()), (3, 3, 3));
}

#[test]
fn signals_coalesce_where_there_is_no_room_for_more() {
    let limiter = limiter(0);
    let waiters: Vec<_> = (0..10).map(|_| Waiter::waiting(&limiter)).collect();
    for _ in 0..100 {
        limiter.set_capacity(1).unwrap();
        limiter.set_capacity(0).unwrap();
        limiter.set_capacity(2).unwrap();
    }
    assert_eq!((limiter.wakes(), woken(&waiters)), (2, 2));
}

#[test]
fn b60_a_waiter_cancelled_after_its_wake_passes_it_on() {
    let limiter = limiter(1);
    let held = limiter.try_acquire().unwrap();
    let mut waiters: Vec<_> = (0..4).map(|_| Waiter::waiting(&limiter)).collect();
    drop(held);
    for left in (1..4).rev() {
        let leaver = waiters.iter().position(Waiter::is_woken).unwrap();
        waiters.swap_remove(leaver);
        assert_eq!((waiters.len(), woken(&waiters)), (left, 1));
    }
    drop(waiters.pop());
    assert_eq!(limiter.snapshot().room(), 1);
    assert_eq!((limiter.active(), limiter.waiting()), (0, 0));
}

#[test]
fn b60_a_waiter_cancelled_before_its_wake_is_passed_over() {
    let limiter = limiter(1);
    let held = limiter.try_acquire().unwrap();
    let (first, mut second) = (Waiter::waiting(&limiter), Waiter::waiting(&limiter));
    drop(first);
    assert_eq!(limiter.waiting(), 1);
    drop(held);
    assert_eq!(limiter.wakes(), 1);
    drop(second.permit());
}

#[test]
fn b60_a_permit_handed_to_a_waiter_that_is_cancelled_comes_back() {
    let limiter = limiter(1);
    let mut held = Some(limiter.try_acquire().unwrap());
    let (mut starved, mut next) = (Waiter::waiting(&limiter), Waiter::waiting(&limiter));
    for _ in 0..DynamicConcurrencyLimiter::LOSSES_BEFORE_HAND_OFF {
        held = None;
        held.replace(limiter.try_acquire().unwrap());
        assert!(starved.poll().is_pending());
    }
    drop(held);
    assert_eq!((limiter.active(), limiter.waiting()), (1, 1));
    assert!(starved.is_woken() && !next.is_woken());
    drop(starved);
    assert_eq!((limiter.active(), limiter.waiting()), (0, 1));
    assert!(next.is_woken());
    drop(next.permit());
}

#[test]
fn a_waiter_that_is_woken_and_not_polled_holds_back_one_permit_and_no_more() {
    let limiter = limiter(3);
    for _ in 0..3 {
        limiter.try_acquire().unwrap().forget();
    }
    let mut waiters: Vec<_> = (0..4).map(|_| Waiter::waiting(&limiter)).collect();
    limiter.release_many(3).unwrap();
    let asleep = waiters.remove(waiters.iter().position(Waiter::is_woken).unwrap());
    assert_eq!(woken(&waiters), 0); // the relay stands still …
    let passes = limiter.try_acquire().unwrap(); // … until anybody passes
    assert_eq!(woken(&waiters), 1);
    drop(passes);
    assert_eq!(woken(&waiters), 2);
    let mut permits = Vec::new();
    while let Some(next) = waiters.iter_mut().find(|waiter| waiter.is_woken()) {
        permits.push(next.permit());
    }
    assert_eq!((permits.len(), limiter.snapshot().room()), (2, 1));
    drop(asleep);
    assert_eq!(woken(&waiters), 1);
}

#[test]
fn whoever_is_polled_while_there_is_room_enters_woken_or_not() {
    let limiter = limiter(1);
    let held = limiter.try_acquire().unwrap();
    let (mut first, mut second) = (Waiter::waiting(&limiter), Waiter::waiting(&limiter));
    drop(held);
    assert!(first.is_woken() && !second.is_woken());
    let permit = second.permit();
    assert!(first.poll().is_pending());
    drop(permit);
    drop(first.permit());
}

#[test]
fn the_waker_of_the_latest_poll_is_the_one_that_is_woken() {
    let limiter = limiter(0);
    let mut waiter = Waiter::waiting(&limiter);
    let former = std::mem::take(&mut waiter.woken);
    assert!(waiter.poll().is_pending());
    assert_eq!(Arc::strong_count(&former), 1);
    limiter.set_capacity(1).unwrap();
    assert!(waiter.is_woken());
}

#[test]
fn b68_a_waiter_is_admitted_within_a_bounded_number_of_losses() {
    let limiter = limiter(1);
    let mut hot = vec![limiter.try_acquire().unwrap()];
    let mut waiter = Waiter::waiting(&limiter);
    let mut grants_to_the_hot_one = 0;
    let permit = loop {
        // Gives back and takes again at once, before the waiter has come.
        hot.clear();
        if let Ok(again) = limiter.try_acquire() {
            hot.push(again);
            grants_to_the_hot_one += 1;
            assert!(grants_to_the_hot_one < 1000, "the waiter starves");
        }
        if let Poll::Ready(permit) = waiter.poll() {
            break permit.unwrap();
        }
    };
    assert_eq!(grants_to_the_hot_one, DynamicConcurrencyLimiter::LOSSES_BEFORE_HAND_OFF);
    assert!(hot.is_empty());
    drop(permit);
    assert_eq!((limiter.active(), limiter.waiting()), (0, 0));
}

#[test]
fn b68_a_thread_waits_a_bounded_time_beside_one_that_hardly_lets_go() {
    let limiter = limiter(1);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let hot = scope.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                let permit = limiter.acquire_blocking_for(Duration::from_secs(60)).unwrap();
                for _ in 0..200 {
                    std::hint::spin_loop();
                }
                drop(permit);
            }
        });
        for _ in 0..200 {
            drop(limiter.acquire_blocking_for(Duration::from_secs(60)).unwrap());
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        hot.join().unwrap();
    });
}

#[test]
fn a_blocked_thread_gives_up_when_its_time_is_over_and_leaves_nothing_behind() {
    let limiter = limiter(1);
    let _held = limiter.try_acquire().unwrap();
    for waited in [Duration::ZERO, Duration::from_millis(2)] {
        let outcome = limiter.acquire_blocking_for(waited).err();
        assert_eq!(outcome, Some(AcquireError::TimedOut { waited }));
        assert_eq!((limiter.active(), limiter.waiting()), (1, 0));
    }
}

#[test]
fn a_blocked_thread_is_woken_by_a_release_and_by_a_resize() {
    let limiter = limiter(1);
    let held = limiter.try_acquire().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| limiter.acquire_blocking().unwrap().forget());
        while limiter.waiting() == 0 {
            std::thread::yield_now();
        }
        drop(held);
        waits.join().unwrap();

        let waits = scope.spawn(|| limiter.acquire_blocking_for(Duration::from_secs(60)).map(drop));
        while limiter.waiting() == 0 {
            std::thread::yield_now();
        }
        limiter.set_capacity(2).unwrap();
        waits.join().unwrap().unwrap();
    });
    assert_eq!(limiter.active(), 1);
}

#[test]
fn a_thread_unparked_for_another_reason_goes_on_waiting() {
    let limiter = limiter(0);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| limiter.acquire_blocking().map(drop));
        for _ in 0..20 {
            while limiter.waiting() == 0 {
                std::thread::yield_now();
            }
            waits.thread().unpark();
        }
        assert!(!waits.is_finished());
        limiter.set_capacity(1).unwrap();
        waits.join().unwrap().unwrap();
    });
}

/// Comes straight back to the limiter when woken and when dropped.
struct ComesBack(Arc<DynamicConcurrencyLimiter>);

impl std::task::Wake for ComesBack {
    fn wake(self: Arc<Self>) {
        drop(self.0.try_acquire());
    }
}

impl Drop for ComesBack {
    fn drop(&mut self) {
        let mut acquire = std::pin::pin!(self.0.acquire());
        let _ = acquire.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

#[test]
fn wakers_that_use_the_same_limiter_do_not_lock_it_up() {
    let limiter = Arc::new(limiter(0));
    let comes_back = || Waker::from(Arc::new(ComesBack(Arc::clone(&limiter))));
    let mut waits = Box::pin(limiter.acquire());
    for _ in 0..2 {
        // The second poll drops the first waker.
        assert!(waits.as_mut().poll(&mut Context::from_waker(&comes_back())).is_pending());
    }
    limiter.set_capacity(1).unwrap(); // wakes
    drop(waits);
    limiter.set_capacity(0).unwrap();
    let mut cancelled = Box::pin(limiter.acquire());
    assert!(cancelled.as_mut().poll(&mut Context::from_waker(&comes_back())).is_pending());
    drop(cancelled);
    let mut closed = Box::pin(limiter.acquire());
    assert!(closed.as_mut().poll(&mut Context::from_waker(&comes_back())).is_pending());
    limiter.close();
    drop(closed);
    assert_eq!((limiter.active(), limiter.waiting()), (0, 0));
}

#[tokio::test]
async fn tasks_wait_with_a_bound_of_the_runtime_and_enter_when_there_is_room() {
    let limiter = Arc::new(limiter(1));
    let held = limiter.acquire_owned().await.unwrap();
    let late = tokio::time::timeout(Duration::from_millis(1), limiter.acquire()).await;
    assert!(late.is_err());
    assert_eq!(limiter.waiting(), 0);

    let waits = tokio::spawn(limiter.acquire_owned());
    tokio::task::yield_now().await;
    drop(held);
    let permit = waits.await.unwrap().unwrap();
    assert_eq!(limiter.active(), 1);
    drop(permit);
    assert_eq!(limiter.active(), 0);
}
