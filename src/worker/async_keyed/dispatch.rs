//! Awaiting dispatches of the keyed workers.

use super::super::coalescing::{CoalescingHandler, CoalescingProducer};
use super::super::conflation::ConflationProducer;
use super::super::keyed::{DispatchError, KeyHandle};
use super::super::refusal::Refusal;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};

impl<K: Hash + Eq + Clone, V, S: BuildHasher> ConflationProducer<K, V, S> {
    /// Like [`dispatch`](Self::dispatch), and waits without blocking the thread; answers the value that it supersedes, if one was pending.
    ///
    /// Dropped before it is done, the future drops its value, which was not dispatched then. To keep
    /// the value, await [`ready`](Self::ready) and dispatch after it.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside. `Full` only inside of the worker's own handler.
    pub async fn dispatch_async<Q>(
        &mut self,
        key: &Q,
        mut value: V,
    ) -> Result<Option<V>, DispatchError<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        loop {
            value = match self.try_dispatch(key, value) {
                Err(DispatchError::Full(value)) => value,
                other => return other,
            };
            if let Err(refusal) = self.ready().await {
                return Err(refusal.of(value));
            }
        }
    }
}

impl<K, V, S> ConflationProducer<K, V, S> {
    /// [`dispatch_async`](Self::dispatch_async) by handle.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside. `Full` only inside of the worker's own handler.
    pub async fn dispatch_at_async(
        &mut self,
        handle: KeyHandle,
        mut value: V,
    ) -> Result<Option<V>, DispatchError<V>> {
        loop {
            value = match self.try_dispatch_at(handle, value) {
                Err(DispatchError::Full(value)) => value,
                other => return other,
            };
            if let Err(refusal) = self.ready().await {
                return Err(refusal.of(value));
            }
        }
    }

    /// Waits, without blocking, until there is room for a key that is not pending: the next
    /// `try_dispatch` is not `Full`. The future carries nothing, so whoever drops it loses nothing.
    ///
    /// # Errors
    /// [`Refusal::Closed`]; and [`Refusal::Full`] inside of the worker's own handler, which would
    /// wait for itself.
    pub async fn ready(&mut self) -> Result<(), Refusal> {
        if let Some(reason) = self.half.core().refuses() {
            return Err(reason.into());
        }
        if !self.half.has_room() {
            self.half.ring.door().opens().await?;
        }
        Ok(())
    }
}

impl<K, V, H, S> CoalescingProducer<K, V, H, S>
where
    K: Hash + Eq + Clone,
    V: Default + Clone,
    H: CoalescingHandler<K, V>,
    S: BuildHasher,
{
    /// Like [`dispatch`](Self::dispatch), and waits without blocking the thread.
    ///
    /// Dropped before it is done, the future drops its value, which was not dispatched then. To keep
    /// the value, await [`ready`](Self::ready) and dispatch after it.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside. `Full` only inside of the worker's own handler.
    pub async fn dispatch_async<Q>(&mut self, key: &Q, mut value: V) -> Result<(), DispatchError<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        loop {
            value = match self.try_dispatch(key, value) {
                Err(DispatchError::Full(value)) => value,
                other => return other,
            };
            if let Err(refusal) = self.ready().await {
                return Err(refusal.of(value));
            }
        }
    }
}

impl<K, V, H, S> CoalescingProducer<K, V, H, S>
where
    V: Default + Clone,
    H: CoalescingHandler<K, V>,
{
    /// [`dispatch_async`](Self::dispatch_async) by handle.
    ///
    /// # Errors
    /// [`DispatchError`], with the value inside. `Full` only inside of the worker's own handler.
    pub async fn dispatch_at_async(
        &mut self,
        handle: KeyHandle,
        mut value: V,
    ) -> Result<(), DispatchError<V>> {
        loop {
            value = match self.try_dispatch_at(handle, value) {
                Err(DispatchError::Full(value)) => value,
                other => return other,
            };
            if let Err(refusal) = self.ready().await {
                return Err(refusal.of(value));
            }
        }
    }

    /// Waits, without blocking, until there is room for a key that is not pending: the next
    /// `try_dispatch` is not `Full`. The future carries nothing, so whoever drops it loses nothing.
    ///
    /// # Errors
    /// [`Refusal::Closed`]; and [`Refusal::Full`] inside of the worker's own handler, which would
    /// wait for itself.
    pub async fn ready(&mut self) -> Result<(), Refusal> {
        if let Some(reason) = self.half.core().refuses() {
            return Err(reason.into());
        }
        if !self.half.has_room() {
            self.half.ring.door().opens().await?;
        }
        Ok(())
    }
}
