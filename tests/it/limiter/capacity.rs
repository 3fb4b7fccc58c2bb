//! Capacity: what it admits, and what changing it does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tidegate::limiter::{CapacityError, DynamicConcurrencyLimiter, Snapshot, TryAcquireError};

use super::{Waiter, limiter};

/// Takes permits until none is left.
fn fill(limiter: &DynamicConcurrencyLimiter) -> Vec<tidegate::limiter::Permit<'_>> {
    std::iter::from_fn(|| limiter.try_acquire().ok()).collect()
}

#[test]
fn exactly_as_many_permits_are_given_as_the_capacity_says() {
    let limiter = limiter(3);
    let permits = fill(&limiter);
    assert_eq!(permits.len(), 3);
    assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Full));
    drop(permits);
    assert_eq!(limiter.active(), 0);
    assert_eq!(fill(&limiter).len(), 3);
}

#[test]
fn an_owned_permit_keeps_its_limiter_alive_and_comes_back() {
    let limiter = Arc::new(limiter(1));
    let permit = limiter.try_acquire_owned().unwrap();
    assert_eq!(Arc::strong_count(&limiter), 2);
    assert_eq!(limiter.try_acquire_owned().err(), Some(TryAcquireError::Full));
    std::thread::spawn(move || drop(permit)).join().unwrap();
    assert_eq!((limiter.active(), Arc::strong_count(&limiter)), (0, 1));

    limiter.try_acquire_owned().unwrap().forget();
    assert_eq!((limiter.active(), Arc::strong_count(&limiter)), (1, 1));
    limiter.release().unwrap();
}

#[test]
fn a_resize_answers_the_capacity_before() {
    let limiter = limiter(3);
    assert_eq!(limiter.set_capacity(5), Ok(3));
    assert_eq!(limiter.set_capacity(0), Ok(5));
    assert_eq!(limiter.capacity(), 0);
}

#[test]
fn b61_each_resize_takes_effect_idle_and_saturated() {
    let limiter = limiter(10);
    for capacity in [10, 3, 8, 0, 1] {
        limiter.set_capacity(capacity).unwrap();
        assert_eq!(fill(&limiter).len(), capacity);
    }

    let mut random = StdRng::seed_from_u64(61);
    let mut held = Vec::new();
    for _ in 0..10_000 {
        let before = held.len();
        let capacity = random.random_range(0..12);
        limiter.set_capacity(capacity).unwrap();
        held.extend(fill(&limiter));
        assert_eq!(held.len(), before.max(capacity));
        // What is above the limit drains, and nothing enters until it has.
        while held.len() > capacity {
            assert!(limiter.try_acquire().is_err());
            held.pop();
        }
        assert_eq!(limiter.active(), capacity);
        held.truncate(random.random_range(0..=capacity));
    }
    drop(held);
    let expected = limiter.capacity();
    assert_eq!(fill(&limiter).len(), expected);
}

#[test]
fn b62_after_a_shrink_a_newcomer_waits_until_fewer_than_the_new_limit_are_in() {
    let limiter = limiter(8);
    let mut held = fill(&limiter);
    limiter.set_capacity(2).unwrap();
    let mut newcomer = Waiter::waiting(&limiter);
    while held.len() > 2 {
        held.pop();
        assert_eq!(limiter.snapshot().room(), 0);
        assert!(!newcomer.is_woken());
        assert!(newcomer.poll().is_pending());
        assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Full));
    }
    held.pop();
    assert!(newcomer.is_woken());
    let _permit = newcomer.permit();
    assert_eq!(limiter.active(), 2);
}

#[test]
fn b64_growing_after_a_shrink_gives_out_no_more_than_the_new_limit() {
    let limiter = limiter(8);
    let mut held = fill(&limiter);
    limiter.set_capacity(4).unwrap();
    limiter.set_capacity(6).unwrap();
    assert!(limiter.try_acquire().is_err());
    held.truncate(4);
    held.extend(fill(&limiter));
    assert_eq!(held.len(), 6);
    drop(held);
    assert_eq!(fill(&limiter).len(), 6);
}

#[test]
fn b64_a_permit_comes_back_once_also_when_its_holder_panics() {
    let limiter = limiter(2);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _permit = limiter.try_acquire().unwrap();
        std::panic::resume_unwind(Box::new("the holder's own fault"));
    }));
    assert!(unwound.is_err());
    assert_eq!((limiter.active(), limiter.misuses()), (0, 0));
    assert_eq!(fill(&limiter).len(), 2);
}

#[test]
fn b65_threads_that_start_together_never_pass_the_limit() {
    const THREADS: usize = 64;
    const ROUNDS: usize = 300;
    let (limiter, start) = (limiter(10), Barrier::new(THREADS));
    let (inside, peak) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    if let Ok(_permit) = limiter.try_acquire() {
                        peak.fetch_max(1 + inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let peak = peak.into_inner();
    assert!((1..=10).contains(&peak), "{peak}");
    assert_eq!(limiter.active(), 0);
}

#[test]
fn b66_what_is_reported_is_what_is_in_force() {
    let limiter = limiter(20);
    let mut held = fill(&limiter);
    let _waiters: Vec<_> = (0..3).map(|_| Waiter::waiting(&limiter)).collect();
    let seen = |capacity, active| Snapshot { capacity, active, waiting: 3, closed: false };
    assert_eq!(limiter.snapshot(), seen(20, 20));

    limiter.set_capacity(41).unwrap();
    held.extend(fill(&limiter));
    assert_eq!(held.len(), 41);
    assert_eq!(limiter.snapshot(), seen(41, 41));

    limiter.set_capacity(5).unwrap();
    assert_eq!(limiter.snapshot(), seen(5, 41));
    assert_eq!((limiter.capacity(), limiter.active(), limiter.waiting()), (5, 41, 3));
    let shown = format!("{limiter:?}");
    for part in ["capacity: 5", "active: 41", "waiting: 3", "closed: false"] {
        assert!(shown.contains(part), "{shown}");
    }
}

#[test]
fn b69_zero_pauses_the_most_is_taken_and_more_is_refused() {
    let most = DynamicConcurrencyLimiter::MAX_CAPACITY;
    for capacity in [0, 1, most] {
        assert_eq!(limiter(capacity).capacity(), capacity);
    }
    let limiter = limiter(1);
    for asked in [most + 1, usize::MAX] {
        let refused = CapacityError::TooLarge { asked, most };
        assert_eq!(DynamicConcurrencyLimiter::new(asked).err(), Some(refused));
        assert_eq!(limiter.set_capacity(asked), Err(refused));
        assert_eq!(limiter.capacity(), 1);
        assert!(limiter.try_acquire().is_ok());
    }

    limiter.set_capacity(0).unwrap();
    assert_eq!(limiter.try_acquire().err(), Some(TryAcquireError::Full));
    let mut paused = Waiter::waiting(&limiter);
    limiter.set_capacity(1).unwrap();
    assert!(paused.is_woken());
    drop(paused.permit());
}
