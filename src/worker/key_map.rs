//! The producer's map from keys to the indices of their cells.
//!
//! Open addressing, linear probing, at most half full: a look-up of a small key reads one cache line,
//! where a map with its tags apart from its entries reads two; and its line can be asked for ahead.
//! Without tags a probe compares keys; with half of the places empty that is once and a half on
//! average. Removal shifts what follows back, so that nothing is left behind in a universe of keys
//! that changes daily.

use super::cell::fetch_for_reading;
use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;

/// Keys and their indices.
pub(super) struct KeyMap<K, S> {
    hasher: S,
    /// None, or a power of two; at least half are empty. An index is kept with one added, so that an
    /// empty place takes no room of its own.
    places: Vec<Option<(K, NonZeroU32)>>,
    /// What leaves as many of a home's upper bits as number the places.
    shift: u32,
    len: usize,
}

/// Where the search for a key begins, whatever the number of places.
#[derive(Clone, Copy)]
pub(super) struct Home(u64);

const FEWEST: usize = 16;

impl<K, S> KeyMap<K, S> {
    pub(super) fn new(hasher: S) -> Self {
        Self { hasher, places: Vec::new(), shift: 63, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn place(&self, home: Home) -> usize {
        // The upper bits: the lower ones of a product depend on fewer.
        (home.0 >> (self.shift & 63)) as usize
    }

    /// Asks for the place of a key that will be looked for in a moment.
    #[inline(always)]
    pub(super) fn fetch(&self, home: Home) {
        fetch_for_reading(self.places.as_ptr().wrapping_add(self.place(home)));
    }
}

impl<K: Hash + Eq, S: BuildHasher> KeyMap<K, S> {
    #[inline(always)]
    pub(super) fn home<Q: Hash + ?Sized>(&self, key: &Q) -> Home {
        // Spreads also what a poor hasher leaves in a few of the bits.
        Home(self.hasher.hash_one(key).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The index of a key.
    #[inline(always)]
    pub(super) fn get<Q>(&self, key: &Q, home: Home) -> Option<u32>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        if self.places.is_empty() {
            return None;
        }
        let mask = self.places.len() - 1;
        let mut place = self.place(home);
        loop {
            // The mask changes nothing but tells that the place is one.
            let (known, index) = self.places[place & mask].as_ref()?;
            if known.borrow() == key {
                return Some(index.get() - 1);
            }
            place += 1;
        }
    }

    /// Adds a key that is not there yet. Indices stay below `u32::MAX`.
    pub(super) fn insert(&mut self, key: K, index: u32) {
        if (self.len + 1) * 2 > self.places.len() {
            self.grow();
        }
        let mask = self.places.len() - 1;
        let mut place = self.place(self.home(&key));
        while self.places[place & mask].is_some() {
            place += 1;
        }
        self.places[place & mask] = Some((key, NonZeroU32::MIN.saturating_add(index)));
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let count = (self.places.len() * 2).max(FEWEST);
        let mut places = Vec::with_capacity(count);
        places.resize_with(count, || None);
        self.shift = 64 - count.trailing_zeros();
        self.len = 0;
        for (key, index) in std::mem::replace(&mut self.places, places).into_iter().flatten() {
            self.insert(key, index.get() - 1);
        }
    }

    /// Takes a key out.
    pub(super) fn remove(&mut self, key: &K) {
        if self.places.is_empty() {
            return;
        }
        let mask = self.places.len() - 1;
        let mut hole = self.place(self.home(key));
        loop {
            match &self.places[hole & mask] {
                None => return,
                Some((known, _)) if known == key => break,
                Some(_) => hole += 1,
            }
        }
        hole &= mask;
        self.places[hole] = None;
        self.len -= 1;
        let mut next = (hole + 1) & mask;
        while let Some((known, _)) = &self.places[next] {
            let home = self.place(self.home(known));
            // What lies at or behind its home as seen from the hole may move into it.
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.places.swap(hole, next);
                hole = next;
            }
            next = (next + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::hash::{BuildHasherDefault, Hasher};

    /// As poor as asked for: all keys alike, or four homes only.
    #[derive(Default)]
    struct Poor<const HOMES: u64>(u64);

    impl<const HOMES: u64> Hasher for Poor<HOMES> {
        fn finish(&self) -> u64 {
            self.0 % HOMES
        }

        fn write(&mut self, bytes: &[u8]) {
            self.0 += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
    }

    fn agrees_with_a_model<S: BuildHasher + Default>() {
        let mut map = KeyMap::new(S::default());
        let mut model = HashMap::new();
        let mut seed = 7_u32;
        for step in 0..20_000_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = format!("key {}", (seed >> 8) % 60);
            let home = map.home(key.as_str());
            assert_eq!(map.get(key.as_str(), home), model.get(&key).copied());
            if model.remove(&key).is_some() {
                map.remove(&key);
            } else {
                map.insert(key.clone(), step);
                model.insert(key, step);
            }
            assert_eq!(map.len(), model.len());
            assert!(map.places.len() <= 128, "no more than twice the keys, and rounded up");
        }
        for (key, index) in &model {
            assert_eq!(map.get(key, map.home(key)), Some(*index));
        }
    }

    #[test]
    fn it_agrees_with_a_model_whatever_the_hasher() {
        agrees_with_a_model::<foldhash::fast::RandomState>();
        agrees_with_a_model::<BuildHasherDefault<Poor<1>>>();
        agrees_with_a_model::<BuildHasherDefault<Poor<4>>>();
    }

    #[test]
    fn a_small_key_and_its_index_take_eight_bytes() {
        assert_eq!(size_of::<Option<(u32, NonZeroU32)>>(), 8);
        let map = KeyMap::<u32, _>::new(foldhash::fast::RandomState::default());
        assert_eq!(map.get(&7, map.home(&7)), None);
        map.fetch(map.home(&7));
    }
}
