//! Items of 256 bytes of which the producer writes 16 and the handler reads 16: in their slots,
//! against moved ones. (Whoever must write all 256 gains less.)

use super::{CAPACITY, InOrder, check};
use crate::harness::{Report, ours, peer, per_operation};
use std::thread;
use tidegate::worker::{
    HandleScope, Handler, Outcome, SpWorker, Stepper, ValueHandler, ValueSpWorker, WorkerError,
};

type Large = [u64; 32];

/// Reads the first and the last word.
struct Ends(InOrder);

impl Ends {
    #[inline]
    fn read(&mut self, item: &Large) {
        assert_eq!(item[31], item[0]);
        self.0.see(&item[0]);
    }
}

impl ValueHandler<Large> for Ends {
    type Error = std::convert::Infallible;

    #[inline]
    fn handle(&mut self, slot: HandleScope<'_, Large>) -> Result<(), Self::Error> {
        self.read(&slot);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

impl Handler<Large> for Ends {
    type Error = std::convert::Infallible;

    #[inline]
    fn handle(&mut self, item: Large) -> Result<(), Self::Error> {
        self.read(&item);
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Self::Error>) {
        panic!("{error}");
    }

    fn on_completed(&mut self, _outcome: Outcome) {}
}

fn stepping<H: Send + 'static>(mut stepper: Stepper<H>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        while !stepper.has_ended() {
            stepper.step(CAPACITY);
            std::hint::spin_loop();
        }
    })
}

fn in_slots(items: u64) -> f64 {
    let (mut producer, stepper) = ValueSpWorker::builder()
        .capacity(CAPACITY)
        .stepped(|| [0; 32], Ends(InOrder(0)))
        .expect("a worker");
    let queue = stepper.queue();
    let cost = per_operation(items, || {
        let consumer = stepping(stepper);
        for number in 0..items {
            loop {
                if let Ok(mut slot) = producer.try_publish() {
                    slot[0] = number;
                    slot[31] = number;
                    break;
                }
                std::hint::spin_loop();
            }
        }
        drop(producer);
        consumer.join().expect("the consumer");
    });
    check(&queue.counters(), items);
    cost
}

fn by_value(items: u64) -> f64 {
    let (mut producer, stepper) =
        SpWorker::builder().capacity(CAPACITY).stepped(Ends(InOrder(0))).expect("a worker");
    let queue = stepper.queue();
    let cost = per_operation(items, || {
        let consumer = stepping(stepper);
        let mut item = [0; 32];
        for number in 0..items {
            item[0] = number;
            item[31] = number;
            while producer.try_dispatch(item).is_err() {
                std::hint::spin_loop();
            }
        }
        drop(producer);
        consumer.join().expect("the consumer");
    });
    check(&queue.counters(), items);
    cost
}

pub(crate) fn run(report: &mut Report, rounds: usize, items: u64) {
    report.case(
        "workers",
        "value-256b",
        rounds,
        vec![ours("value-sp-worker", || in_slots(items)), peer("by-value", || by_value(items))],
    );
}
