//! The peers with blocking ends, each between two threads.

use super::{CAPACITY, InOrder, Item};
use crate::harness::{Subject, peer, per_operation};
use std::sync::mpsc::sync_channel;
use std::thread;

/// Every channel with blocking ends, as a peer that passes `items` items.
pub(crate) fn all<'a, T: Item>(items: u64) -> Vec<Subject<'a>> {
    vec![
        peer("crossbeam", move || crossbeam::<T>(items)),
        peer("kanal", move || kanal::<T>(items)),
        peer("flume", move || flume::<T>(items)),
        peer("std", move || std::<T>(items)),
        peer("tokio", move || tokio::<T>(items)),
    ]
}

/// The cost of an item: `send` until all are sent, its end then dropped, and `receive` on a thread of
/// its own until there is none.
fn passing<T: Item>(
    items: u64,
    mut send: impl FnMut(T),
    mut receive: impl FnMut() -> Option<T> + Send + 'static,
) -> f64 {
    per_operation(items, move || {
        let consumer = thread::spawn(move || {
            let mut order = InOrder(0);
            while let Some(item) = receive() {
                order.see(&item);
            }
            assert_eq!(order.0, items);
        });
        (0..items).for_each(|number| send(T::new(number)));
        drop(send);
        consumer.join().expect("the consumer");
    })
}

pub(crate) fn crossbeam<T: Item>(items: u64) -> f64 {
    let (sender, receiver) = crossbeam_channel::bounded::<T>(CAPACITY);
    passing(items, move |item| sender.send(item).expect("open"), move || receiver.recv().ok())
}

pub(crate) fn kanal<T: Item>(items: u64) -> f64 {
    let (sender, receiver) = kanal::bounded::<T>(CAPACITY);
    passing(items, move |item| sender.send(item).expect("open"), move || receiver.recv().ok())
}

pub(crate) fn flume<T: Item>(items: u64) -> f64 {
    let (sender, receiver) = flume::bounded::<T>(CAPACITY);
    passing(items, move |item| sender.send(item).expect("open"), move || receiver.recv().ok())
}

pub(crate) fn std<T: Item>(items: u64) -> f64 {
    let (sender, receiver) = sync_channel::<T>(CAPACITY);
    passing(items, move |item| sender.send(item).expect("open"), move || receiver.recv().ok())
}

fn tokio<T: Item>(items: u64) -> f64 {
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<T>(CAPACITY);
    let send = move |item| sender.blocking_send(item).unwrap_or_else(|_| panic!("open"));
    passing(items, send, move || receiver.blocking_recv())
}
