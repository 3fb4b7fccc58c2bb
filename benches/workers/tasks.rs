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

/// A peer: the cost of an item between a task that sends and one that receives.
macro_rules! channel {
    ($name:ident: $ends:expr, $send:ident, $receive:ident, $got:ident) => {
        fn $name<const YIELDS: bool>(runtime: &Runtime, items: u64) -> f64 {
            #[allow(unused_mut, reason = "not every receiver needs it")]
            let (sender, mut receiver) = $ends;
            per_operation(items, || {
                let consuming = runtime.spawn(async move {
                    let mut order = InOrder(0);
                    while let $got(item) = receiver.$receive().await {
                        if YIELDS {
                            tokio::task::yield_now().await;
                        }
                        order.see(&item);
                    }
                    assert_eq!(order.0, items);
                });
                let producing = runtime.spawn(async move {
                    for number in 0..items {
                        sender.$send(number).await.expect("an open channel");
                    }
                });
                runtime.block_on(async {
                    producing.await.expect("the producer");
                    consuming.await.expect("the consumer");
                });
            })
        }
    };
}

channel!(tokio: tokio::sync::mpsc::channel::<u64>(CAPACITY), send, recv, Some);
channel!(crossfire: crossfire::spsc::bounded_async::<u64>(CAPACITY), send, recv, Ok);
channel!(kanal: kanal::bounded_async::<u64>(CAPACITY), send, recv, Ok);
channel!(flume: flume::bounded::<u64>(CAPACITY), send_async, recv_async, Ok);

fn case<const YIELDS: bool>(
    report: &mut Report,
    (case, rounds): (&str, usize),
    runtime: &Runtime,
    items: u64,
) {
    report.case(
        "workers",
        case,
        rounds,
        vec![
            ours("async-sp-worker", || worker::<YIELDS>(runtime, items)),
            peer("tokio", || tokio::<YIELDS>(runtime, items)),
            peer("crossfire", || crossfire::<YIELDS>(runtime, items)),
            peer("kanal", || kanal::<YIELDS>(runtime, items)),
            peer("flume", || flume::<YIELDS>(runtime, items)),
        ],
    );
}

pub(crate) fn run(report: &mut Report, rounds: usize, items: u64) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    case::<false>(report, ("async", rounds), &runtime, items);
    case::<true>(report, ("async-suspend", rounds), &runtime, items / 4);
}
