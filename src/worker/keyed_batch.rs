//! Many dispatches at once: cells are asked for ahead of their turn, and keys that become pending
//! are published together.
//!
//! Values wait in a window of sixteen, in the very slots that they will be delivered from, or
//! superseded in. When one enters it, what its key is resolved with is asked for; half way through,
//! what that leads to; so that neither is waited for when it leaves. (With more keys than the caches
//! hold, a dispatch is little else than that wait.)
//!
//! A key that becomes pending gets its place in the ring at once, but the place is published with
//! those of others: one store, at most one wake. Until then its cell is full and the consumer does
//! not look at it, so newer values of the key find it pending, as ever. What a panicking iterator
//! leaves behind is published by the drop of [`Batch`]: no full cell is ever without a place.

use super::cell::{Cell, MOST_STAGED, SPARES, WriterEnd};
use super::handler::Panicked;
use super::key_map::Home;
use super::keyed::{DispatchError, KeyHandle, KeyedProducer};
use super::lifecycle::CloseReason;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};

/// Values that wait for their cells, at most.
const AHEAD: usize = MOST_STAGED;

/// Places published together at most, so that the first is not out of sight for long.
const TOGETHER: usize = 32;

/// Why a batch was not taken as a whole.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("after {accepted} values: {why}")]
pub struct KeyedBatchError<V, N = KeyHandle> {
    /// Values that were accepted, superseded and folded ones included.
    pub accepted: u64,
    /// What was taken from the iterator and refused, in order, with its handle or key. What the
    /// batch had already brought together of one key comes back as one value.
    pub refused: Vec<(N, V)>,
    /// What befell the first of them.
    pub why: DispatchError<()>,
}

/// Shows the kind alone, so that any value will do.
impl<V, N> fmt::Debug for KeyedBatchError<V, N> {
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

/// What a worker does with the values of a batch.
pub(super) trait Give<K, C: Cell, S> {
    /// Gives the first staged value to the cell that it is aimed at.
    fn put(writer: &mut WriterEnd<K, C>) -> Put<C::Value>;
    /// Gives one that there is no place for, and may wait.
    fn dispatch(
        half: &mut KeyedProducer<K, C, S>,
        index: u32,
        value: C::Value,
    ) -> Result<(), DispatchError<C::Value>>;
}

/// How the items of a batch name their keys.
pub(super) trait Name<K, C: Cell, S>: Sized {
    /// What is known of a key that waits in the window.
    type Note;
    /// How a refused value is named.
    type Refused;
    /// It enters the window, its value staged at `at`.
    fn enter(&self, at: usize, half: &mut KeyedProducer<K, C, S>) -> Self::Note;
    /// It is half way through.
    fn half_way(&self, note: &mut Self::Note, at: usize, half: &mut KeyedProducer<K, C, S>);
    /// It is its turn: its value is aimed at a cell, that of the index which is the answer.
    ///
    /// # Errors
    /// There is no such key, and can be none.
    fn turn(
        &self,
        note: Self::Note,
        half: &mut KeyedProducer<K, C, S>,
    ) -> Result<u32, DispatchError<()>>;
    fn refused(self) -> Self::Refused;
    /// The name of a key that was accepted before.
    fn of(index: u32, half: &KeyedProducer<K, C, S>) -> Option<Self::Refused>;
}

impl<K, C: Cell, S> Name<K, C, S> for KeyHandle {
    type Note = ();
    type Refused = Self;

    #[inline(always)]
    fn enter(&self, at: usize, half: &mut KeyedProducer<K, C, S>) {
        half.writer.aim(at, Some(self.index));
    }

    #[inline(always)]
    fn half_way(&self, (): &mut (), at: usize, half: &mut KeyedProducer<K, C, S>) {
        half.writer.fetch_aim(at);
    }

    #[inline(always)]
    fn turn(&self, (): (), half: &mut KeyedProducer<K, C, S>) -> Result<u32, DispatchError<()>> {
        if half.writer.aim_holds(self.stamp) {
            Ok(self.index)
        } else {
            Err(DispatchError::Retired(()))
        }
    }

    fn refused(self) -> Self {
        self
    }

    fn of(index: u32, half: &KeyedProducer<K, C, S>) -> Option<Self> {
        Some(Self { index, stamp: half.writer.stamp(index) })
    }
}

/// A key, owned or borrowed.
pub(super) struct ByKey<B>(pub(super) B);

/// Where a key begins to be looked for, and its index, once that was found.
pub(super) struct Sought {
    home: Home,
    index: Option<u32>,
}

impl<B, K, C, S> Name<K, C, S> for ByKey<B>
where
    B: Borrow<K>,
    K: Hash + Eq + Clone,
    C: Cell,
    S: BuildHasher,
{
    type Note = Sought;
    type Refused = K;

    #[inline(always)]
    fn enter(&self, at: usize, half: &mut KeyedProducer<K, C, S>) -> Sought {
        half.writer.aim(at, None);
        let home = half.keys.home(self.0.borrow());
        half.keys.fetch(home);
        Sought { home, index: None }
    }

    #[inline(always)]
    fn half_way(&self, note: &mut Sought, at: usize, half: &mut KeyedProducer<K, C, S>) {
        note.index = half.keys.get(self.0.borrow(), note.home);
        half.writer.aim(at, note.index);
    }

    #[inline(always)]
    fn turn(
        &self,
        note: Sought,
        half: &mut KeyedProducer<K, C, S>,
    ) -> Result<u32, DispatchError<()>> {
        if let Some(index) = note.index {
            return Ok(index);
        }
        // Not found before, it may have been added by an item of the same key.
        let Some(index) = half.resolve::<K>(self.0.borrow()) else {
            return Err(half.no_room_for_key(()));
        };
        half.writer.aim(half.writer.staged_at(0), Some(index));
        Ok(index)
    }

    fn refused(self) -> K {
        self.0.borrow().clone()
    }

    fn of(index: u32, half: &KeyedProducer<K, C, S>) -> Option<K> {
        half.writer.key(index).cloned()
    }
}

/// Gives every value of `items`.
#[inline(always)]
pub(super) fn dispatch_all<G, K, C: Cell, S, N>(
    half: &mut KeyedProducer<K, C, S>,
    items: impl Iterator<Item = (N, C::Value)>,
) -> Result<u64, KeyedBatchError<C::Value, N::Refused>>
where
    G: Give<K, C, S>,
    N: Name<K, C, S>,
{
    let mut items = items.fuse();
    let mut batch = Batch::new(half);
    while let Some((name, note)) = batch.next(&mut items) {
        match batch.give::<G>(&name, note) {
            Ok(()) => batch.accepted += 1,
            Err((why, value)) => return Err(batch.refuse(Some((name, value)), why)),
        }
        if batch.places == TOGETHER
            && let Err(reason) = batch.publish()
        {
            return Err(batch.refuse(None, DispatchError::Closed((), reason)));
        }
    }
    match batch.publish() {
        Ok(()) => Ok(batch.accepted),
        Err(reason) => Err(batch.refuse(None, DispatchError::Closed((), reason))),
    }
}

/// A batch on its way: its window, and what was done and not told yet.
struct Batch<'a, K, C: Cell, S, N: Name<K, C, S>> {
    half: &'a mut KeyedProducer<K, C, S>,
    /// The names of the staged values, where those are staged.
    window: [Option<(N, N::Note)>; SPARES],
    accepted: u64,
    /// Places filled and not published.
    places: usize,
    /// Places besides that are free for certain.
    room: usize,
    /// Values superseded or folded, and not counted.
    conflated: u64,
    /// Values whose places could not be published.
    unpublished: Vec<(N::Refused, C::Value)>,
}

impl<'a, K, C: Cell, S, N: Name<K, C, S>> Batch<'a, K, C, S, N> {
    #[inline(always)]
    fn new(half: &'a mut KeyedProducer<K, C, S>) -> Self {
        Self {
            half,
            window: [const { None }; SPARES],
            accepted: 0,
            places: 0,
            room: 0,
            conflated: 0,
            unpublished: Vec::new(),
        }
    }

    /// The next key, whose value is the first staged one. One enters the window as one leaves: half a
    /// window at a time was slower.
    #[inline(always)]
    fn next(&mut self, items: &mut impl Iterator<Item = (N, C::Value)>) -> Option<(N, N::Note)> {
        while self.half.writer.staged() < AHEAD
            && let Some((name, value)) = items.next()
        {
            let at = self.half.writer.stage(value);
            let note = name.enter(at, self.half);
            self.window[at] = Some((name, note));
        }
        let at = self.half.writer.staged_at(AHEAD / 2);
        if let Some((name, note)) = &mut self.window[at] {
            name.half_way(note, at, self.half);
        }
        self.window[self.half.writer.staged_at(0)].take()
    }

    /// Gives the first staged value to its key.
    #[inline(always)]
    fn give<G: Give<K, C, S>>(
        &mut self,
        name: &N,
        note: N::Note,
    ) -> Result<(), (DispatchError<()>, C::Value)> {
        let index = match name.turn(note, self.half) {
            Ok(index) => index,
            Err(why) => return Err((why, self.half.writer.unstage())),
        };
        if let Some(reason) = self.half.core().refuses() {
            return Err((DispatchError::Closed((), reason), self.half.writer.unstage()));
        }
        if self.room == 0 && !self.finds_room() {
            return self.give_later::<G>(index);
        }
        match G::put(&mut self.half.writer) {
            Put::Merged => self.conflated += 1,
            Put::Fresh => {
                let taken = self.half.ring.stage(self.places, index);
                debug_assert!(taken, "a fresh key needs a place that is known to be free");
                self.places += 1;
                self.room -= 1;
            }
            Put::Failed(value, panicked) => {
                return Err((DispatchError::CoalescePanicked((), panicked), value));
            }
        }
        Ok(())
    }

    /// Gives it when every place is taken: what the consumer sees it can make room of.
    #[cold]
    fn give_later<G: Give<K, C, S>>(
        &mut self,
        index: u32,
    ) -> Result<(), (DispatchError<()>, C::Value)> {
        let published = self.publish();
        let value = self.half.writer.unstage();
        match published {
            // It may take a place: how many are left is found anew.
            Ok(()) => G::dispatch(self.half, index, value).map_err(DispatchError::split),
            Err(reason) => Err((DispatchError::Closed((), reason), value)),
        }
    }

    /// Whether one more key may become pending.
    #[cold]
    fn finds_room(&mut self) -> bool {
        self.room = self.half.ring.free_places(self.places + 1).saturating_sub(self.places);
        self.room > 0
    }

    /// Publishes the places.
    ///
    /// # Errors
    /// The worker closed before: their values are the caller's again.
    #[inline(never)]
    fn publish(&mut self) -> Result<(), CloseReason> {
        let Self { half, .. } = self;
        if self.conflated > 0 {
            half.conflated += std::mem::take(&mut self.conflated);
            half.core().count_conflated(half.conflated);
        }
        let count = std::mem::take(&mut self.places);
        if count == 0 {
            return Ok(());
        }
        half.ring.publish_filled(count).map_err(|(indices, reason)| {
            for index in indices {
                if let (Some(name), Some(value)) = (N::of(index, half), half.writer.retract(index))
                {
                    self.unpublished.push((name, value));
                }
            }
            reason
        })
    }

    /// The end of a batch that is not taken as a whole: `this` is refused, and all behind it.
    #[cold]
    fn refuse(
        mut self,
        this: Option<(N, C::Value)>,
        why: DispatchError<()>,
    ) -> KeyedBatchError<C::Value, N::Refused> {
        // Fails only as the worker closes, and then tells what it could not publish.
        let _ = self.publish();
        let accepted = self.accepted - self.unpublished.len() as u64;
        let mut refused = std::mem::take(&mut self.unpublished);
        refused.extend(this.map(|(name, value)| (name.refused(), value)));
        while let Some((name, _)) = self.window[self.half.writer.staged_at(0)].take() {
            refused.push((name.refused(), self.half.writer.unstage()));
        }
        KeyedBatchError { accepted, refused, why }
    }
}

impl<K, C: Cell, S, N: Name<K, C, S>> Drop for Batch<'_, K, C, S, N> {
    fn drop(&mut self) {
        // Something is left only if the iterator, a key, a fold's clone or a value's drop panicked.
        let _ = self.publish();
        self.half.writer.drop_staged();
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
