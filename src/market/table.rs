//! A table that grows and never moves: dense indices, lock-free reads, bounded size.

use std::sync::OnceLock;

const CHUNK: usize = 1024;

type Chunk<T> = Box<[OnceLock<T>]>;

/// Values by dense index, in chunks that are made when first needed.
///
/// Reading takes no lock. A value is set once and stays; what changes goes inside it.
pub(crate) struct Table<T> {
    chunks: Box<[OnceLock<Chunk<T>>]>,
    limit: usize,
}

impl<T> Table<T> {
    /// A table for at most `limit` values; memory is taken a chunk at a time.
    pub(crate) fn new(limit: usize) -> Self {
        let chunks = (0..limit.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect();
        Self { chunks, limit }
    }

    /// How many values fit.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The value at `index`, if it has been set.
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        self.chunks.get(index / CHUNK)?.get()?.get(index % CHUNK)?.get()
    }

    /// The value at `index`, made by `make` if nobody has yet; `None` past the limit.
    pub(crate) fn get_or_set(&self, index: usize, make: impl FnOnce() -> T) -> Option<&T> {
        if index >= self.limit {
            return None;
        }
        let chunk = self.chunks[index / CHUNK]
            .get_or_init(|| (0..CHUNK).map(|_| OnceLock::new()).collect());
        Some(chunk[index % CHUNK].get_or_init(make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_where_they_were_set_and_the_limit_holds() {
        let table = Table::new(CHUNK + 1);
        assert_eq!(table.get(CHUNK), None);
        assert_eq!(table.get_or_set(CHUNK, || 7), Some(&7));
        assert_eq!(table.get_or_set(CHUNK, || 8), Some(&7));
        assert_eq!(table.get(CHUNK), Some(&7));
        assert_eq!(table.get_or_set(CHUNK + 1, || 9), None);
        assert_eq!(table.get(0), None);
    }
}
