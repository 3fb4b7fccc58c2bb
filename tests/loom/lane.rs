//! The lane and the bell: no change is lost between writers and a shard that sweeps and sleeps.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use tidegate::gateway::model::{Bell, Lane};

/// The board, as small as it gets: one newest value a topic.
fn board(topics: usize) -> Arc<Vec<AtomicU64>> {
    Arc::new((0..topics).map(|_| AtomicU64::new(0)).collect())
}

#[test]
fn what_is_stored_before_a_bit_is_read_after_it() {
    loom::model(|| {
        let (board, lane) = (board(2), Arc::new(Lane::new(128)));
        let writer = {
            let (board, lane) = (board.clone(), lane.clone());
            thread::spawn(move || {
                for value in 1..=2 {
                    board[0].store(value, Ordering::Relaxed);
                    lane.mark(0, false);
                }
            })
        };
        // Sweep while it writes, then once after it has ended: the newest value must have been
        // read by one sweep or the other, and never an older one after a newer.
        let mut last = 0;
        let mut sweep = |lane: &Lane| {
            lane.drain(|topic| {
                let value = board[topic].load(Ordering::Relaxed);
                assert!(value >= last);
                last = value;
            });
        };
        sweep(&lane);
        writer.join().unwrap();
        sweep(&lane);
        assert_eq!(last, 2);
    });
}

#[test]
fn two_writers_of_one_word_lose_no_bit() {
    loom::model(|| {
        let lane = Arc::new(Lane::new(64));
        let writers: Vec<_> = [3, 5]
            .map(|topic| {
                let lane = lane.clone();
                thread::spawn(move || {
                    lane.mark(topic, false);
                })
            })
            .into();
        let mut seen = [false; 64];
        lane.drain(|topic| seen[topic] = true);
        for writer in writers {
            writer.join().unwrap();
        }
        lane.drain(|topic| seen[topic] = true);
        assert!(seen[3] && seen[5]);
    });
}

#[test]
fn a_shard_that_sleeps_is_rung_for_or_has_seen_the_change() {
    loom::model(|| {
        let (lane, bell) = (Arc::new(Lane::new(64)), Arc::new(Bell::new()));
        lane.want(7);
        let writer = {
            let (lane, bell) = (lane.clone(), bell.clone());
            thread::spawn(move || lane.mark(7, false) && bell.must_ring())
        };
        bell.about_to_sleep();
        let seen = lane.has_work();
        let rung = writer.join().unwrap();
        assert!(seen || rung, "asleep with work and nobody rings");
    });
}

#[test]
fn a_wish_announced_before_reading_misses_nothing() {
    loom::model(|| {
        let (board, lane) = (board(1), Arc::new(Lane::new(64)));
        let writer = {
            let (board, lane) = (board.clone(), lane.clone());
            thread::spawn(move || {
                board[0].store(1, Ordering::Relaxed);
                lane.mark(0, false)
            })
        };
        lane.want(0);
        let read = board[0].load(Ordering::Relaxed);
        let told = writer.join().unwrap();
        assert!(read == 1 || told, "neither read nor told of");
    });
}
