//! Many threads and tasks at random, for long enough to meet.
//!
//! `cargo test --release --test it limiter::stress -- --include-ignored` takes ten times as many steps.
//!
//! Three things are held against it: *over-admission* (more inside than the capacity in force),
//! *lost wakes* (somebody waits in vain; every wait here has a bound far above what it needs), and
//! *drift* (afterwards exactly as many permits are free as the capacity says).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rand::{RngExt, SeedableRng, rngs::StdRng};
use tidegate::limiter::DynamicConcurrencyLimiter;

use super::{Waiter, limiter};

/// Far above any wait that ends by itself.
const IN_VAIN: Duration = Duration::from_secs(60);

/// As many as every test run can afford; the ignored tests take ten million.
const STEPS: u64 = 1_000_000;
const MANY: u64 = 10_000_000;

/// What may be inside, told by the one who resizes; holds between two equal even epochs.
#[derive(Default)]
struct Bound {
    epoch: AtomicU64,
    most: AtomicUsize,
    inside: AtomicUsize,
    checked: AtomicU64,
}

impl Bound {
    /// Called by a holder right after it got its permit.
    fn entered(&self) {
        let epoch = self.epoch.load(Ordering::SeqCst);
        let inside = self.inside.fetch_add(1, Ordering::SeqCst) + 1;
        let most = self.most.load(Ordering::SeqCst);
        if epoch.is_multiple_of(2) && self.epoch.load(Ordering::SeqCst) == epoch {
            assert!(inside <= most, "{inside} inside a limit of {most}");
            self.checked.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Called by a holder right before it gives its permit back.
    fn left(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }

    /// Resizes, and tells the new bound once it must hold.
    fn resize(&self, limiter: &DynamicConcurrencyLimiter, capacity: usize) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        limiter.set_capacity(capacity).unwrap();
        while limiter.active() > capacity {
            std::thread::yield_now();
        }
        self.most.store(capacity, Ordering::SeqCst);
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }
}

/// Every permit that is free now, counted by taking it.
fn free(limiter: &DynamicConcurrencyLimiter) -> usize {
    let all: Vec<_> = std::iter::from_fn(|| limiter.try_acquire().ok()).collect();
    all.len()
}

#[test]
fn b60_b65_threads_at_random_neither_pass_the_limit_nor_lose_a_wake_or_a_permit() {
    threads_at_random(STEPS);
}

#[test]
#[ignore = "ten million steps take long"]
fn b60_b65_ten_million_steps_of_threads_pass_no_limit_and_lose_nothing() {
    threads_at_random(MANY);
}

#[test]
fn b60_tasks_that_wait_and_are_cancelled_at_random_lose_nothing() {
    tasks_at_random(STEPS / 10);
}

#[test]
#[ignore = "ten million steps take long"]
fn b60_ten_million_steps_of_tasks_that_are_cancelled_at_random_lose_nothing() {
    tasks_at_random(MANY);
}

fn threads_at_random(steps: u64) {
    const THREADS: u64 = 4;
    let (limiter, bound, done) = (limiter(2), Bound::default(), AtomicBool::new(false));
    bound.most.store(2, Ordering::SeqCst);
    let steps = steps / THREADS;
    let resizes = AtomicU64::new(0);
    // On a busy machine some threads may be through before others have had a turn.
    let enough =
        || resizes.load(Ordering::SeqCst) > 10 && bound.checked.load(Ordering::SeqCst) > 1000;
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|worker| {
                let (limiter, bound, enough) = (&limiter, &bound, &enough);
                scope.spawn(move || {
                    for round in 0..100 {
                        at_random(limiter, bound, steps, round * THREADS + worker);
                        if enough() {
                            return;
                        }
                    }
                })
            })
            .collect();
        let resizer = scope.spawn(|| {
            let mut random = StdRng::seed_from_u64(1);
            while !done.load(Ordering::SeqCst) {
                bound.resize(&limiter, random.random_range(0..5));
                resizes.fetch_add(1, Ordering::SeqCst);
                for _ in 0..random.random_range(0..50) {
                    std::thread::yield_now();
                }
            }
            bound.resize(&limiter, 3);
        });
        let ended: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::SeqCst);
        resizer.join().unwrap();
        ended.into_iter().for_each(|outcome| outcome.unwrap());
    });
    let seen = limiter.snapshot();
    assert_eq!((seen.active, seen.waiting, limiter.misuses()), (0, 0, 0));
    assert_eq!(free(&limiter), 3);
    assert!(resizes.into_inner() > 10 && bound.checked.into_inner() > 1000);
}

fn at_random(limiter: &DynamicConcurrencyLimiter, bound: &Bound, steps: u64, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let inside = |random: &mut StdRng| {
        bound.entered();
        if random.random_range(0..64) == 0 {
            std::thread::yield_now();
        }
        bound.left();
    };
    for _ in 0..steps {
        match random.random_range(0..16) {
            0..6 => {
                if let Ok(_permit) = limiter.try_acquire() {
                    inside(&mut random);
                }
            }
            6..8 => {
                let permit = limiter.acquire_blocking_for(IN_VAIN).expect("waited in vain");
                inside(&mut random);
                drop(permit);
            }
            8..11 => {
                // Polled once or twice and dropped, perhaps just after it was woken.
                let mut waiter = Waiter::new(limiter);
                for _ in 0..random.random_range(1..3) {
                    if let std::task::Poll::Ready(permit) = waiter.poll() {
                        let _permit = permit.expect("never closed");
                        inside(&mut random);
                        break;
                    }
                }
            }
            11..13 => {
                if let Ok(permit) = limiter.try_acquire() {
                    permit.forget();
                    inside(&mut random);
                    limiter.release().unwrap();
                }
            }
            13 => {
                let taken = (0..3).filter(|_| {
                    limiter.try_acquire().map(tidegate::limiter::Permit::forget).is_ok()
                });
                limiter.release_many(taken.count()).unwrap();
            }
            14 => {
                let short = Duration::from_micros(random.random_range(0..20));
                if let Ok(_permit) = limiter.acquire_blocking_for(short) {
                    inside(&mut random);
                }
            }
            _ => {
                let seen = limiter.snapshot();
                assert!(seen.active <= 5 && seen.waiting <= 4, "{seen:?}");
            }
        }
    }
}

fn tasks_at_random(steps: u64) {
    const TASKS: u64 = 16;
    let steps = steps / TASKS;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let limiter = Arc::new(limiter(3));
    runtime.unwrap().block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let limiter = Arc::clone(&limiter);
                tokio::spawn(async move {
                    let mut random = StdRng::seed_from_u64(task);
                    for _ in 0..steps {
                        let acquire = limiter.acquire();
                        let permit = if random.random_range(0..3) == 0 {
                            tokio::select! {
                                biased;
                                permit = acquire => Some(permit),
                                () = tokio::task::yield_now() => None,
                            }
                        } else {
                            let bounded = tokio::time::timeout(IN_VAIN, acquire).await;
                            Some(bounded.expect("waited in vain"))
                        };
                        if let Some(permit) = permit {
                            let _permit = permit.unwrap();
                            assert!(limiter.active() <= 5);
                            if random.random_range(0..4) == 0 {
                                tokio::task::yield_now().await;
                            }
                        }
                        if task == 0 {
                            limiter.set_capacity(random.random_range(0..=5)).unwrap();
                            tokio::task::yield_now().await;
                            limiter.set_capacity(3).unwrap();
                        }
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let seen = limiter.snapshot();
    assert_eq!((seen.active, seen.waiting, seen.capacity), (0, 0, 3));
    assert_eq!(free(&limiter), 3);
}

#[test]
fn b67_a_close_amid_threads_at_random_ends_every_wait() {
    for round in 0..200 {
        let limiter = limiter(1);
        std::thread::scope(|scope| {
            for worker in 0..3 {
                let limiter = &limiter;
                scope.spawn(move || {
                    let mut random = StdRng::seed_from_u64(round * 3 + worker);
                    // The last wait of each thread ends by the close alone.
                    loop {
                        match limiter.acquire_blocking_for(IN_VAIN) {
                            Ok(permit) if random.random_range(0..8) == 0 => permit.forget(),
                            Ok(permit) => drop(permit),
                            Err(tidegate::limiter::AcquireError::Closed) => break,
                            Err(other) => panic!("{other}"),
                        }
                        if random.random_range(0..4) == 0 {
                            drop(Waiter::new(limiter).poll());
                        }
                    }
                });
            }
            for _ in 0..round % 20 {
                std::thread::yield_now();
            }
            limiter.close();
        });
        let seen = limiter.snapshot();
        assert!(seen.closed && seen.waiting == 0 && seen.active <= 1, "{seen:?}");
    }
}
