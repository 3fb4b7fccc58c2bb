//! The cells alone under the model checker. In a worker the ring and its fences stand between a
//! value's coming and its going, and hide what the cells owe to their own orderings.
//!
//! `cargo test --release --features loom --lib worker::cell`

#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use super::*;
use crate::worker::lifecycle::Core;
use crate::worker::ring::Capacity;
use crate::worker::wait::WaitStrategy;
use loom::thread;

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.check(model);
}

/// Both ends, and three keys, of which the first two are pending.
fn ends<C: Cell>(
    mut put: impl FnMut(&mut WriterEnd<u8, C>, u32, u32),
) -> (WriterEnd<u8, C>, ReaderEnd<u8, C>) {
    let core = Core::new(Capacity::new(4).unwrap(), 0, WaitStrategy::Park);
    let (mut writer, reader) = table::<u8, C>(3).unwrap();
    for key in 0..3 {
        assert_eq!(writer.add(key, 1 + u32::from(key), &core), Some(u32::from(key)));
    }
    put(&mut writer, 0, 1);
    put(&mut writer, 1, 10);
    (writer, reader)
}

/// Slots go from key to key: what the reader emptied under the first is left under the second, comes
/// back from there, and is filled for the third.
#[test]
fn latest_cells_hand_slots_over_whole() {
    check(|| {
        let (mut writer, mut reader) = ends::<LatestCell<u32>>(|writer, key, value| {
            assert_eq!(writer.publish(key, value), None);
        });
        let consumer = thread::spawn(move || {
            let taken = [0, 1, 1].map(|key| reader.take(key));
            (taken, reader)
        });
        let mut back = Vec::new();
        for (key, value) in [(1, 20), (0, 2), (2, 100)] {
            back.extend(writer.publish(key, value));
        }
        let (taken, mut reader) = consumer.join().unwrap();
        back.extend(taken.into_iter().flatten());
        back.extend((0..3).filter_map(|key| reader.take(key)));
        back.sort_unstable();
        assert_eq!(back, [1, 2, 10, 20, 100]);
    });
}

#[test]
fn totals_hand_slots_over_whole() {
    fn fold(writer: &mut WriterEnd<u8, FoldCell<u32>>, key: u32, value: u32) {
        if let Some(mut total) = writer.hold(key) {
            total.with(|total| *total += value);
            return;
        }
        writer.start(key, value);
    }
    check(|| {
        let (mut writer, mut reader) = ends::<FoldCell<u32>>(fold);
        let consumer = thread::spawn(move || {
            let taken = [0, 1, 1].map(|key| reader.take(key));
            (taken, reader)
        });
        for (key, value) in [(1, 20), (0, 2), (2, 100)] {
            fold(&mut writer, key, value);
        }
        let (taken, mut reader) = consumer.join().unwrap();
        let left: u32 = (0..3).filter_map(|key| reader.take(key)).sum();
        assert_eq!(taken.into_iter().flatten().sum::<u32>() + left, 133);
    });
}
