//! The dynamic concurrency limiter, through its public face.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod allocation;
mod capacity;
mod closing;
mod misuse;
mod model;
mod stress;
mod waiting;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tidegate::limiter::{Acquire, AcquireError, DynamicConcurrencyLimiter, Permit};

fn limiter(capacity: usize) -> DynamicConcurrencyLimiter {
    DynamicConcurrencyLimiter::new(capacity).unwrap()
}

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A waiter polled by hand.
struct Waiter<'a> {
    future: Pin<Box<Acquire<'a>>>,
    woken: Arc<Woken>,
    seen: usize,
}

impl<'a> Waiter<'a> {
    fn new(limiter: &'a DynamicConcurrencyLimiter) -> Self {
        Self { future: Box::pin(limiter.acquire()), woken: Arc::default(), seen: 0 }
    }

    /// One that waits already.
    fn waiting(limiter: &'a DynamicConcurrencyLimiter) -> Self {
        let mut waiter = Self::new(limiter);
        assert!(waiter.poll().is_pending());
        waiter
    }

    fn poll(&mut self) -> Poll<Result<Permit<'a>, AcquireError>> {
        self.seen = self.wakes();
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// The permit that must be there now.
    fn permit(&mut self) -> Permit<'a> {
        match self.poll() {
            Poll::Ready(Ok(permit)) => permit,
            other => panic!("{other:?}"),
        }
    }

    fn wakes(&self) -> usize {
        self.woken.0.load(Ordering::SeqCst)
    }

    /// Whether it was woken since it was last polled.
    fn is_woken(&self) -> bool {
        self.wakes() > self.seen
    }
}

fn woken(waiters: &[Waiter<'_>]) -> usize {
    waiters.iter().filter(|waiter| waiter.is_woken()).count()
}
