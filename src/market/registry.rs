//! Dense numbers for things met while running: bounded, never reused.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use foldhash::HashMap;

use super::table::Table;

/// Things by key and by number, the numbers dense from 0 in the order of first sight.
///
/// Looking up by key takes a read lock and a hash; reading by number takes neither.
pub(crate) struct Registry<K, V> {
    by_key: RwLock<HashMap<K, u32>>,
    by_number: Table<V>,
    count: AtomicU32,
}

impl<K: Hash + Eq, V> Registry<K, V> {
    /// Room for at most `limit` things.
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.min(u32::MAX as usize);
        Self { by_key: RwLock::default(), by_number: Table::new(limit), count: AtomicU32::new(0) }
    }

    /// The number of a known key.
    pub(crate) fn find<Q>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.by_key.read().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }

    /// The number of a key, given by `make` what it stands for if it is new; `None` if there is no
    /// room for a new one.
    pub(crate) fn intern<Q>(&self, key: &Q, make: impl FnOnce() -> (K, V)) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some(number) = self.find(key) {
            return Some(number);
        }
        let mut by_key = self.by_key.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = by_key.get(key) {
            return Some(number);
        }
        let number = self.count.load(Ordering::Relaxed);
        let (key, value) = make();
        self.by_number.get_or_set(number as usize, || value)?;
        by_key.insert(key, number);
        // Whoever sees the new count sees the value: it was set before.
        self.count.store(number + 1, Ordering::Release);
        Some(number)
    }

    /// What a number stands for.
    pub(crate) fn get(&self, number: u32) -> Option<&V> {
        self.by_number.get(number as usize)
    }

    /// How many things are known; their numbers are `0..len`.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire) as usize
    }

    /// How many may be known.
    pub(crate) fn limit(&self) -> usize {
        self.by_number.limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_its_number_and_the_limit_holds() {
        let registry: Registry<String, usize> = Registry::new(2);
        let intern = |key: &str| registry.intern(key, || (key.to_owned(), key.len()));
        assert_eq!(intern("one"), Some(0));
        assert_eq!(intern("three"), Some(1));
        assert_eq!(intern("one"), Some(0));
        assert_eq!(intern("four"), None);
        assert_eq!((registry.len(), registry.limit()), (2, 2));
        assert_eq!(registry.get(1), Some(&5));
        assert_eq!(registry.find("four"), None);
    }

    #[test]
    fn threads_that_meet_a_key_at_once_agree_on_its_number() {
        let registry: Registry<u32, u32> = Registry::new(100);
        let numbers = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..100).map(|key| registry.intern(&key, || (key, key))).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(registry.len(), 100);
        assert!(numbers.iter().all(|same| *same == numbers[0]));
        for (key, number) in (0..100).zip(&numbers[0]) {
            assert_eq!(registry.get(number.unwrap()), Some(&key));
        }
    }
}
