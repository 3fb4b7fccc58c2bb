//! Between two tasks of one runtime with two threads: a handler that does not wait, and one that
//! yields on every item.

use super::{CAPACITY, InOrder, check};
use crate::harness::{Report, ours, peer, per_operation};
use tidegate::worker::{AsyncHandler, AsyncSpWorker, Outcome, WorkerError};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

/// [`InOrder`], yielding to the executor before each item if so told.
struct Waiting<const YIELDS: bool>(InOrder);

impl<const YIELDS: bool> AsyncHandler<u64> for Waiting<YIELDS> {
    type Error = std::convert::Infallible;

    #[inline]
    async fn handle(&mut self, item: u64) -> Result<(), Self::Error> {
        if YIELDS {
            tokio::task::yield_now().await;
        }
        self.0.see(&item);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    async fn on_completed(&mut self, outcome: Outcome) {
        assert!(matches!(outcome, Outcome::Drained));
    }
}

fn worker<const YIELDS: bool>(runtime: &Runtime, items: u64) -> f64 {
    let _entered = runtime.enter();
    let (mut producer, worker) = AsyncSpWorker::builder()
        .capacity(CAPACITY)
        .start(Waiting::<YIELDS>(InOrder(0)), CancellationToken::new())
        .expect("a worker");
    let cost = per_operation(items, || {
        let producing = runtime.spawn(async move {
            for number in 0..items {
                producer.dispatch_async(number).await.expect("an open worker");
            }
        });
        runtime.block_on(async {
            producing.await.expect("the producer");
            worker.completion().await.expect("drained");
        });
    });
    check(&worker.counters(), items);
    cost
}

fn tokio<const YIELDS: bool>(runtime: &Runtime, items: u64) -> f64 {
    let (sender, mut receiver) = tokio::sync::mpsc::channel(CAPACITY);
    per_operation(items, || {
        let consuming = runtime.spawn(async move {
            let mut order = InOrder(0);
            while let Some(item) = receiver.recv().await {
                if YIELDS {
                    tokio::task::yield_now().await;
                }
                order.see(&item);
            }
            assert_eq!(order.0, items);
        });
        let producing = runtime.spawn(async move {
            for number in 0..items {
                sender.send(number).await.expect("an open channel");
            }
        });
        runtime.block_on(async {
            producing.await.expect("the producer");
            consuming.await.expect("the consumer");
        });
    })
}

fn crossfire<const YIELDS: bool>(runtime: &Runtime, items: u64) -> f64 {
    let (sender, receiver) = crossfire::spsc::bounded_async::<u64>(CAPACITY);
    per_operation(items, || {
        let consuming = runtime.spawn(async move {
            let mut order = InOrder(0);
            while let Ok(item) = receiver.recv().await {
                if YIELDS {
                    tokio::task::yield_now().await;
                }
                order.see(&item);
            }
            assert_eq!(order.0, items);
        });
        let producing = runtime.spawn(async move {
            for number in 0..items {
                sender.send(number).await.expect("an open channel");
            }
        });
        runtime.block_on(async {
            producing.await.expect("the producer");
            consuming.await.expect("the consumer");
        });
    })
}

pub(crate) fn run(report: &mut Report, rounds: usize, items: u64) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    report.case(
        "workers",
        "async",
        rounds,
        vec![
            ours("async-sp-worker", || worker::<false>(&runtime, items)),
            peer("tokio", || tokio::<false>(&runtime, items)),
            peer("crossfire", || crossfire::<false>(&runtime, items)),
        ],
    );
    let items = items / 4;
    report.case(
        "workers",
        "async-suspend",
        rounds,
        vec![
            ours("async-sp-worker", || worker::<true>(&runtime, items)),
            peer("tokio", || tokio::<true>(&runtime, items)),
            peer("crossfire", || crossfire::<true>(&runtime, items)),
        ],
    );
}
