//! The limiter: what a permit costs.
//!
//! `pair` takes one permit and gives it back, on one thread, with nobody else about: the case of a
//! gateway, where a shard owns its subscribers and their limiters. `two-threads` does the same from
//! two threads on one limiter with room for both, so that every exchange meets the other's.
//!
//! - `limiter`: `try_acquire` and drop; in `pair` also `limiter-acquire`, the future polled once and
//!   the permit dropped, which is what `tokio-acquire` does, and `limiter-forget`, forget and the
//!   release by hand.
//! - peers: the semaphores of tokio, asyncband and async-lock, by `acquire` (polled once, ready)
//!   and, with `-try` to the name or for async-lock, by `try_acquire`.
//! - control: two bare exchanges of an atomic, each a load and a compare-exchange: the least that
//!   an admission and a release can cost which are decided before they are made. `two-additions`,
//!   which decide nothing and could count below zero, are cheaper still and shown beside it.
//!
//! The figures do not represent waiting: nobody ever waits here, and what a wake costs is the
//! runtime's or the kernel's affair. Nor do they represent a cold limiter: its word stays in the
//! first cache for the whole run, where one of many thousand subscribers' would not. In
//! `two-threads` the cost is that of a cache line going to and fro, and differs between machines
//! far more than between subjects.

mod harness;

use std::hint::black_box;
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use harness::{Report, control, ours, peer, per_operation, short};
use tidegate::limiter::DynamicConcurrencyLimiter;

const CAPACITY: usize = 8;

fn main() {
    works();
    // Many short turns: a turn of a tenth of a millisecond mostly goes undisturbed, and the median
    // leaves out those that do not.
    let turns = if short() { 2_001 } else { 10_001 };
    let mut report = Report::default();
    pair(&mut report, turns, 10_000);
    two_threads(&mut report, if short() { 31 } else { 101 }, 200_000);
    report.close();
}

/// The subjects of a case that one closure a pair describes.
struct Subjects {
    limiter: DynamicConcurrencyLimiter,
    tokio: tokio::sync::Semaphore,
    asyncband: asyncband::semaphore::Semaphore,
    async_lock: async_lock::Semaphore,
    bare: AtomicU64,
}

impl Subjects {
    fn new() -> Self {
        Self {
            limiter: limiter(),
            tokio: tokio::sync::Semaphore::new(CAPACITY),
            asyncband: asyncband::semaphore::Semaphore::new(CAPACITY),
            async_lock: async_lock::Semaphore::new(CAPACITY),
            bare: AtomicU64::new(0),
        }
    }

    fn limiter(&self) {
        drop(self.limiter.try_acquire());
    }

    fn limiter_acquire(&self) {
        drop(ready(self.limiter.acquire()));
    }

    fn limiter_forget(&self) {
        if let Ok(permit) = self.limiter.try_acquire() {
            permit.forget();
        }
        let _ = self.limiter.release();
    }

    fn tokio_acquire(&self) {
        drop(ready(self.tokio.acquire()));
    }

    fn tokio_try(&self) {
        drop(self.tokio.try_acquire());
    }

    fn asyncband(&self) {
        drop(ready(self.asyncband.acquire(1)));
    }

    fn asyncband_try(&self) {
        drop(self.asyncband.try_acquire(1));
    }

    fn async_lock(&self) {
        drop(self.async_lock.try_acquire());
    }

    fn bare_additions(&self) {
        self.bare.fetch_add(1, Ordering::Acquire);
        self.bare.fetch_sub(1, Ordering::Release);
    }

    fn bare_exchanges(&self) {
        for to in [|seen| seen + 1, |seen| seen - 1_u64] {
            let mut seen = self.bare.load(Ordering::Relaxed);
            while let Err(now) =
                self.bare.compare_exchange_weak(seen, to(seen), Ordering::AcqRel, Ordering::Relaxed)
            {
                seen = now;
            }
        }
    }
}

fn pair(report: &mut Report, rounds: usize, pairs: u64) {
    let s = &Subjects::new();
    report.case(
        "limiter",
        "pair",
        rounds,
        vec![
            ours("limiter", alone(s, pairs, Subjects::limiter)),
            peer("limiter-acquire", alone(s, pairs, Subjects::limiter_acquire)),
            peer("limiter-forget", alone(s, pairs, Subjects::limiter_forget)),
            peer("tokio-acquire", alone(s, pairs, Subjects::tokio_acquire)),
            peer("tokio-try", alone(s, pairs, Subjects::tokio_try)),
            peer("asyncband", alone(s, pairs, Subjects::asyncband)),
            peer("asyncband-try", alone(s, pairs, Subjects::asyncband_try)),
            peer("async-lock", alone(s, pairs, Subjects::async_lock)),
            peer("two-additions", alone(s, pairs, Subjects::bare_additions)),
            control("two exchanges", alone(s, pairs, Subjects::bare_exchanges)),
        ],
    );
}

fn two_threads(report: &mut Report, rounds: usize, pairs: u64) {
    let s = &Subjects::new();
    report.case(
        "limiter",
        "two-threads",
        rounds,
        vec![
            ours("limiter", together(s, pairs, Subjects::limiter)),
            peer("tokio-acquire", together(s, pairs, Subjects::tokio_acquire)),
            peer("tokio-try", together(s, pairs, Subjects::tokio_try)),
            peer("asyncband", together(s, pairs, Subjects::asyncband)),
            peer("async-lock", together(s, pairs, Subjects::async_lock)),
            peer("two-additions", together(s, pairs, Subjects::bare_additions)),
            control("two exchanges", together(s, pairs, Subjects::bare_exchanges)),
        ],
    );
}

fn alone(s: &Subjects, pairs: u64, operation: impl Fn(&Subjects)) -> impl FnMut() -> f64 {
    move || {
        per_operation(pairs, || {
            for _ in 0..pairs {
                operation(black_box(s));
            }
        })
    }
}

fn together(s: &Subjects, pairs: u64, operation: impl Fn(&Subjects) + Sync) -> impl FnMut() -> f64 {
    move || {
        let start = Barrier::new(2);
        let work = || {
            start.wait();
            for _ in 0..pairs {
                operation(black_box(s));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(work);
            per_operation(pairs * 2, work)
        })
    }
}

/// Polls a future that is ready.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("there is room for everybody"),
    }
}

fn limiter() -> DynamicConcurrencyLimiter {
    match DynamicConcurrencyLimiter::new(CAPACITY) {
        Ok(limiter) => limiter,
        Err(error) => panic!("{error}"),
    }
}

/// Every subject does what it is timed for: admits up to its capacity, and not beyond.
fn works() {
    let s = Subjects::new();
    let held: Vec<_> = std::iter::from_fn(|| s.limiter.try_acquire().ok()).collect();
    assert_eq!(held.len(), CAPACITY);
    let held: Vec<_> = std::iter::from_fn(|| s.tokio.try_acquire().ok()).collect();
    assert_eq!(held.len(), CAPACITY);
    let held: Vec<_> = std::iter::from_fn(|| s.asyncband.try_acquire(1)).collect();
    assert_eq!(held.len(), CAPACITY);
    let held: Vec<_> = std::iter::from_fn(|| s.async_lock.try_acquire()).collect();
    assert_eq!(held.len(), CAPACITY);
    for operation in [Subjects::limiter, Subjects::limiter_acquire, Subjects::limiter_forget] {
        let fresh = Subjects::new();
        operation(&fresh);
        assert_eq!((fresh.limiter.active(), fresh.limiter.misuses()), (0, 0));
    }
}
