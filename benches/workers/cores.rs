//! Both ends on one core; and the wake of a consumer that is parked for certain.

use super::{blocking, channels};
use crate::harness::{Report, control, median, ours, peer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Instant;
use tidegate::worker::{Handler, Outcome, SpWorker, WaitStrategy, WorkerError};
use tokio_util::sync::CancellationToken;

/// Runs `work`, and every thread that it starts, on one core.
fn on_one_core(work: impl FnOnce() -> f64 + Send) -> f64 {
    thread::scope(|scope| {
        let pinned = scope.spawn(|| {
            pin_to_core(0);
            work()
        });
        pinned.join().expect("the pinned run")
    })
}

#[expect(unsafe_code, reason = "the system call has no safe wrapper")]
fn pin_to_core(core: usize) {
    // SAFETY: a plain set of bits on the stack, of the size that is passed with it.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    assert_eq!(pinned, 0, "pinning to core {core}");
}

/// Nanoseconds since the program's first call.
#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Long enough for the other side to have gone to sleep, without giving this core away.
fn let_it_sleep() {
    let until = now() + 150_000;
    while now() < until {
        std::hint::spin_loop();
    }
}

/// Tells when it was called.
struct Stamp(Arc<AtomicU64>, bool);

impl Handler<u64> for Stamp {
    type Error = std::convert::Infallible;

    fn handle(&mut self, _item: u64) -> Result<(), Self::Error> {
        if !std::mem::replace(&mut self.1, true) {
            pin_to_core(1);
        }
        self.0.store(now(), Ordering::Release);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

fn arrival(stamp: &AtomicU64) -> u64 {
    loop {
        let at = stamp.swap(0, Ordering::Acquire);
        if at != 0 {
            return at;
        }
        std::hint::spin_loop();
    }
}

/// The median time from a dispatch to a parked consumer on the other core until its handler runs.
fn worker_wake(wakes: usize) -> f64 {
    let stamp = Arc::new(AtomicU64::new(0));
    let (mut producer, worker) = SpWorker::builder()
        .wait(WaitStrategy::Park)
        .start(Stamp(stamp.clone(), false), CancellationToken::new())
        .expect("a worker");
    let mut times: Vec<f64> = (0..wakes)
        .map(|_| {
            let_it_sleep();
            let sent = now();
            producer.dispatch(sent).expect("an open worker");
            (arrival(&stamp) - sent) as f64
        })
        .collect();
    drop(producer);
    worker.completion().wait().expect("drained");
    median(&mut times)
}

/// The same over a futex and nothing else.
fn futex_wake(wakes: usize) -> f64 {
    let stamp = Arc::new(AtomicU64::new(0));
    let word = Arc::new(AtomicU32::new(0));
    let (told, seen) = (stamp.clone(), word.clone());
    let sleeper = thread::spawn(move || {
        pin_to_core(1);
        for round in 0..wakes as u32 {
            while seen.load(Ordering::Acquire) == round {
                futex(&seen, libc::FUTEX_WAIT, round);
            }
            told.store(now(), Ordering::Release);
        }
    });
    let mut times: Vec<f64> = (0..wakes)
        .map(|_| {
            let_it_sleep();
            let sent = now();
            word.fetch_add(1, Ordering::Release);
            futex(&word, libc::FUTEX_WAKE, 1);
            (arrival(&stamp) - sent) as f64
        })
        .collect();
    sleeper.join().expect("the sleeper");
    median(&mut times)
}

#[expect(unsafe_code, reason = "the system call has no safe wrapper")]
fn futex(word: &AtomicU32, operation: libc::c_int, value: u32) {
    // SAFETY: the word outlives the call, and no timeout is passed.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation | libc::FUTEX_PRIVATE_FLAG,
            value,
            std::ptr::null::<libc::timespec>(),
        );
    }
}

pub(crate) fn run(report: &mut Report, rounds: usize, items: u64, wakes: usize) {
    report.case(
        "workers",
        "sp-one-core",
        rounds,
        vec![
            ours("sp-worker", || on_one_core(|| blocking::<u64>(items))),
            peer("crossbeam", || on_one_core(|| channels::crossbeam::<u64>(items))),
            peer("kanal", || on_one_core(|| channels::kanal::<u64>(items))),
            peer("flume", || on_one_core(|| channels::flume::<u64>(items))),
            peer("std", || on_one_core(|| channels::std::<u64>(items))),
        ],
    );
    // The clock is read once a side, which both pay; let the first call set its start.
    let _ = now();
    report.case(
        "workers",
        "wake",
        rounds,
        vec![
            ours("sp-worker", || on_one_core(|| worker_wake(wakes))),
            control("futex", || on_one_core(|| futex_wake(wakes))),
        ],
    );
}
