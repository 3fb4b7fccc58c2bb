//! Many dispatches at once: cells are asked for ahead of their turn, and keys that become pending
//! are published together.
//!
//! Values wait in a window of [`AHEAD`] items. When one enters it, the producer's own notes on its
//! key are asked for; half way through, its cell is; so that neither is waited for when it leaves.
//! (With more keys than the caches hold, a dispatch is little else than that wait.)
//!
//! A key that becomes pending gets its place in the ring at once, but the place is published with
//! those of others: one store, at most one wake. Until then its cell is full and the consumer does
//! not look at it, so newer values of the key find it pending, as ever. What a panicking iterator
//! leaves behind is published by the drop of [`Batch`]: no full cell is ever without a place.

use super::cell::{Cell, WriterEnd};
use super::handler::Panicked;
use super::keyed::{DispatchError, KeyHandle, KeyedProducer};
use super::lifecycle::CloseReason;
use std::fmt;

/// Values that wait for their cells.
const AHEAD: usize = 16;

/// Places published together at most, so that the first is not out of sight for long.
const TOGETHER: usize = 32;

/// Why a batch was not taken as a whole.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("after {accepted} values: {why}")]
pub struct KeyedBatchError<V> {
    /// Values that were accepted, superseded and folded ones included.
    pub accepted: u64,
    /// What was taken from the iterator and refused, in order. What the batch had already brought
    /// together of one key comes back as one value.
    pub refused: Vec<(KeyHandle, V)>,
    /// What befell the first of them.
    pub why: DispatchError<()>,
}

/// Shows the kind alone, so that any value will do.
impl<V> fmt::Debug for KeyedBatchError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyedBatchError({}, .., {:?})", self.accepted, self.why)
    }
}

/// What became of a value given to a cell for which there is a place.
pub(super) enum Put<V> {
    /// Its key was clean and needs the place.
    Fresh,
    /// Its key was pending.
    Merged,
    /// Folding it panicked.
    Failed(V, Panicked),
}

/// Gives every value of `items`. `put` gives one to its cell; `dispatch` gives one that there is
/// no place for, and may wait.
#[inline]
pub(super) fn dispatch_all<K, C: Cell, S>(
    half: &mut KeyedProducer<K, C, S>,
    items: impl Iterator<Item = (KeyHandle, C::Value)>,
    mut put: impl FnMut(&mut WriterEnd<K, C>, u32, C::Value) -> Put<C::Value>,
    mut dispatch: impl FnMut(
        &mut KeyedProducer<K, C, S>,
        u32,
        C::Value,
    ) -> Result<(), DispatchError<C::Value>>,
) -> Result<u64, KeyedBatchError<C::Value>> {
    let mut batch = Batch { half, staged: 0, conflated: 0 };
    let mut window = Window::new(items);
    let mut accepted = 0;
    while let Some((handle, value)) = window.next(&batch.half.writer) {
        let failed = match batch.half.index_of(handle) {
            None => Some(DispatchError::Retired(value)),
            Some(index) => match batch.half.core().refuses() {
                Some(reason) => Some(DispatchError::Closed(value, reason)),
                None if batch.has_room() => match put(&mut batch.half.writer, index, value) {
                    Put::Merged => {
                        batch.conflated += 1;
                        None
                    }
                    Put::Fresh => {
                        batch.stage(index);
                        None
                    }
                    Put::Failed(value, panicked) => {
                        Some(DispatchError::CoalescePanicked(value, panicked))
                    }
                },
                // What the consumer sees it can make room of.
                None => match batch.publish() {
                    Ok(()) => dispatch(batch.half, index, value).err(),
                    Err((mut refused, reason)) => {
                        accepted -= refused.len() as u64;
                        refused.push((handle, value));
                        refused.extend(window.rest());
                        let why = DispatchError::Closed((), reason);
                        return Err(KeyedBatchError { accepted, refused, why });
                    }
                },
            },
        };
        let Some(failed) = failed else {
            accepted += 1;
            if batch.staged == TOGETHER
                && let Err((mut refused, reason)) = batch.publish()
            {
                accepted -= refused.len() as u64;
                refused.extend(window.rest());
                let why = DispatchError::Closed((), reason);
                return Err(KeyedBatchError { accepted, refused, why });
            }
            continue;
        };
        let (why, value) = failed.split();
        let mut refused = Vec::new();
        if let Err((unpublished, _)) = batch.publish() {
            accepted -= unpublished.len() as u64;
            refused = unpublished;
        }
        refused.push((handle, value));
        refused.extend(window.rest());
        return Err(KeyedBatchError { accepted, refused, why });
    }
    batch.publish().map(|()| accepted).map_err(|(refused, reason)| KeyedBatchError {
        accepted: accepted - refused.len() as u64,
        refused,
        why: DispatchError::Closed((), reason),
    })
}

/// Values taken back, in order, with their keys, and the reason.
type Unpublished<V> = (Vec<(KeyHandle, V)>, CloseReason);

/// What a batch has done and not told yet.
struct Batch<'a, K, C: Cell, S> {
    half: &'a mut KeyedProducer<K, C, S>,
    /// Places filled and not published.
    staged: usize,
    /// Values superseded or folded, and not counted.
    conflated: u64,
}

impl<K, C: Cell, S> Batch<'_, K, C, S> {
    /// Whether one more key may become pending.
    #[inline(always)]
    fn has_room(&mut self) -> bool {
        self.half.ring.room(self.staged + 1) > self.staged
    }

    #[inline(always)]
    fn stage(&mut self, index: u32) {
        let staged = self.half.ring.stage(self.staged, index);
        debug_assert!(staged, "a fresh key needs a place that is known to be free");
        self.staged += 1;
    }

    /// Publishes the places.
    ///
    /// # Errors
    /// The worker closed before: their values are the caller's again.
    fn publish(&mut self) -> Result<(), Unpublished<C::Value>> {
        let Self { half, .. } = self;
        if self.conflated > 0 {
            half.conflated += std::mem::take(&mut self.conflated);
            half.core().count_conflated(half.conflated);
        }
        let count = std::mem::take(&mut self.staged);
        if count == 0 {
            return Ok(());
        }
        half.ring.publish_filled(count).map_err(|(indices, reason)| {
            let take_back = |index| {
                let handle = KeyHandle { index, stamp: half.writer.stamp(index) };
                half.writer.retract(index).map(|value| (handle, value))
            };
            (indices.into_iter().filter_map(take_back).collect(), reason)
        })
    }
}

impl<K, C: Cell, S> Drop for Batch<'_, K, C, S> {
    fn drop(&mut self) {
        // Something is left only if the iterator, a fold's clone or a value's drop panicked.
        let _ = self.publish();
    }
}

/// The next items of an iterator.
struct Window<I: Iterator> {
    items: I,
    ahead: [Option<I::Item>; AHEAD],
    entered: usize,
    left: usize,
}

impl<V, I: Iterator<Item = (KeyHandle, V)>> Window<I> {
    #[inline(always)]
    fn new(items: I) -> Self {
        Self { items, ahead: [const { None }; AHEAD], entered: 0, left: 0 }
    }

    /// The next item, once its cell was asked for.
    #[inline(always)]
    fn next<K, C: Cell>(&mut self, writer: &WriterEnd<K, C>) -> Option<(KeyHandle, V)> {
        while self.entered - self.left < AHEAD
            && let Some(item) = self.items.next()
        {
            writer.fetch_entry(item.0.index);
            self.ahead[self.entered % AHEAD] = Some(item);
            self.entered += 1;
        }
        if let Some((handle, _)) = &self.ahead[(self.left + AHEAD / 2) % AHEAD] {
            writer.fetch_cell(handle.index);
        }
        let item = self.ahead[self.left % AHEAD].take();
        self.left += usize::from(item.is_some());
        item
    }

    /// What has entered and not left.
    fn rest(mut self) -> impl Iterator<Item = (KeyHandle, V)> {
        (self.left..self.entered).filter_map(move |number| self.ahead[number % AHEAD].take())
    }
}

impl<V> DispatchError<V> {
    /// The kind and the value.
    fn split(self) -> (DispatchError<()>, V) {
        match self {
            Self::Full(value) => (DispatchError::Full(()), value),
            Self::Closed(value, reason) => (DispatchError::Closed((), reason), value),
            Self::Retired(value) => (DispatchError::Retired(()), value),
            Self::TooManyKeys(value) => (DispatchError::TooManyKeys(()), value),
            Self::CoalescePanicked(value, panicked) => {
                (DispatchError::CoalescePanicked((), panicked), value)
            }
        }
    }
}
