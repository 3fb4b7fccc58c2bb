#![allow(clippy::unwrap_used, reason = "the helpers of a test are part of it")]

use super::chunk::{CHUNKS, FIRST_CHUNK, locate};
use super::*;
use crate::worker::lifecycle::Core;
use crate::worker::ring::Capacity;
use crate::worker::wait::WaitStrategy;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

fn core() -> Arc<Core> {
    Core::new(Capacity::new(4).unwrap(), 0, WaitStrategy::Park)
}

#[test]
fn every_value_comes_out_of_a_latest_cell_on_one_side() {
    let (mut writer, mut reader) = table::<u8, LatestCell<String>>(1).unwrap();
    let index = writer.add(7, 1, &core()).unwrap();
    let (tell, told) = sync_channel(0);
    let taker = thread::spawn(move || {
        let mut taken = Vec::new();
        for () in told {
            taken.extend(reader.take(index));
        }
        (taken, reader)
    });
    let mut back = Vec::new();
    for number in 0..100 {
        back.extend(writer.publish(index, number.to_string()));
        if number % 3 == 0 {
            tell.send(()).unwrap();
        }
    }
    drop(tell);
    let (taken, mut reader) = taker.join().unwrap();
    assert!(!taken.is_empty() && !back.is_empty());
    back.extend(taken);
    back.extend(reader.take(index));
    assert_eq!(reader.take(index), None);
    back.sort_by_key(|text| text.parse::<u32>().unwrap());
    assert_eq!(back, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn what_is_pending_is_dropped_with_its_cell() {
    let held = Arc::new(());
    let (mut latest, reader) = table::<String, LatestCell<Arc<()>>>(200).unwrap();
    let (mut folded, taker) = table::<String, FoldCell<Arc<()>>>(200).unwrap();
    for key in 0..200 {
        let index = latest.add(key.to_string(), 1, &core()).unwrap();
        drop(latest.publish(index, held.clone()));
        drop(latest.publish(index, held.clone()));
        let index = folded.add(key.to_string(), 1, &core()).unwrap();
        assert!(folded.hold(index).is_none());
        folded.start(index, held.clone());
    }
    assert_eq!(Arc::strong_count(&held), 401);
    drop((latest, reader, folded, taker));
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn folds_and_takes_from_two_threads_lose_nothing() {
    let (mut writer, mut reader) = table::<u8, FoldCell<Vec<u32>>>(1).unwrap();
    let index = writer.add(7, 1, &core()).unwrap();
    let (stop, stopped) = sync_channel::<()>(0);
    let taker = thread::spawn(move || {
        let mut taken = Vec::new();
        while stopped.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
            taken.extend(reader.take(index).unwrap_or_default());
            thread::yield_now();
        }
        taken.extend(reader.take(index).unwrap_or_default());
        taken
    });
    for number in 0..200 {
        let Some(mut total) = writer.hold(index) else {
            writer.start(index, vec![number]);
            continue;
        };
        let folded = total.with(|total| {
            total.push(number);
            total.len()
        });
        drop(total);
        assert!(folded > 1, "a pending total has something in it");
    }
    drop(stop);
    assert_eq!(taker.join().unwrap(), (0..200).collect::<Vec<u32>>());
}

#[test]
fn a_clean_cell_has_no_total_and_a_pending_one_is_changed_in_place() {
    let (mut writer, mut reader) = table::<u8, FoldCell<u32>>(1).unwrap();
    let index = writer.add(7, 1, &core()).unwrap();
    assert!(writer.hold(index).is_none());
    writer.start(index, 1);
    writer.hold(index).unwrap().with(|total| *total += 1);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        writer.hold(index).unwrap().with(|_| panic!("half way"));
    }));
    assert!(panicked.is_err());
    assert_eq!(reader.take(index), Some(2), "it was let go");
    assert_eq!(reader.take(index), None);
}

#[test]
fn what_is_staged_goes_where_it_is_aimed_comes_back_or_is_dropped() {
    let held = Arc::new(());
    let (mut writer, mut reader) = table::<u8, LatestCell<(u8, Arc<()>)>>(2).unwrap();
    let one = writer.add(1, 11, &core()).unwrap();
    let two = writer.add(2, 12, &core()).unwrap();
    // Far more than there are slots, so that every one of them is used in every role.
    for round in 0..100_u8 {
        for number in 0..MOST_STAGED as u8 {
            let at = writer.stage((number, held.clone()));
            writer.aim(at, Some(if number % 2 == 0 { one } else { two }));
        }
        assert_eq!(Arc::strong_count(&held), 1 + MOST_STAGED);
        // Past what is staged.
        assert_eq!(writer.publish(one, (99, held.clone())), None);
        assert!(writer.aim_holds(11) && !writer.aim_holds(12));
        assert_eq!(writer.publish_staged().map(|(number, _)| number), Some(99));
        assert!(writer.aim_holds(12));
        assert_eq!(writer.publish_staged(), None);
        assert_eq!(writer.unstage().0, 2);
        assert_eq!(writer.publish_staged().map(|(number, _)| number), Some(1));
        if round % 3 == 0 {
            writer.drop_staged();
        } else {
            while writer.staged() > 0 {
                writer.unstage();
            }
        }
        assert_eq!(reader.take(one).map(|(number, _)| number), Some(0));
        assert_eq!(reader.take(two).map(|(number, _)| number), Some(3));
        assert_eq!(Arc::strong_count(&held), 1);
    }
}

#[test]
fn a_value_that_is_aimed_at_no_cell_holds_no_stamp() {
    let (mut writer, _reader) = table::<u8, LatestCell<u8>>(1).unwrap();
    let at = writer.stage(1);
    writer.aim(at, Some(0));
    assert!(!writer.aim_holds(0), "no key was added yet");
    writer.add(7, 5, &core()).unwrap();
    writer.aim(at, Some(0));
    assert!(writer.aim_holds(5));
    assert_eq!(writer.unstage(), 1);
}

#[test]
fn chunks_cover_every_index_once_and_stop_at_the_bound() {
    let mut expected = (FIRST_CHUNK.ilog2() as usize, 0);
    for index in 0..10_000 {
        assert_eq!(locate(index), expected);
        expected.1 += 1;
        if expected.1 == 1 << expected.0 {
            expected = (expected.0 + 1, 0);
        }
    }
    assert!(locate(MAX_KEYS - 1).0 < CHUNKS);
    let (mut writer, _reader) = table::<u32, LatestCell<u8>>(70).unwrap();
    let core = core();
    let added = (0..100).filter_map(|key| writer.add(key, 1, &core)).count();
    assert_eq!(added, 70);
}
