//! The board: the newest value of everything, and its encoded text.
//!
//! One writer stores a topic's newest value (its feed's stage); any number of shards read it. The
//! text is made at most once per newest value, by the first reader that wants it: a value that is
//! replaced before anybody looks is never encoded at all.
//!
//! An entry is a short lock around one value and one reused buffer. A seqlock or a per-tick
//! allocation behind an atomic pointer would spare readers the lock, but the first needs unsafe
//! code for values this large and the second allocates a tick; the lock is held for a copy of some
//! 150 bytes, or by a reader for one encoding.
//!
//! # Invariants
//!
//! 1. The tick read with [`Board::tick`] is never ahead of the value: both change under the lock.
//! 2. The ticks of an entry never fall: a store that is not newer is ignored.
//! 3. `text` belongs to the value if and only if `encoded` holds.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::clock::Instant;
use crate::ingest::Accepted;
use crate::market::table::Table;
use crate::market::{Quote, Volume};

/// What can stand on a board.
pub trait Topic: Clone + Send + 'static {
    /// How many changes led to this value; rises with every change.
    fn tick(&self) -> u64;
}

impl Topic for Quote {
    fn tick(&self) -> u64 {
        self.tick
    }
}

impl Topic for Volume {
    /// Every change of a volume adds at least a fill.
    fn tick(&self) -> u64 {
        self.fills
    }
}

struct Entry<T> {
    tick: AtomicU64,
    state: Mutex<State<T>>,
}

struct State<T> {
    newest: Accepted<T>,
    text: Vec<u8>,
    encoded: bool,
}

/// A topic's newest value as a reader sees it.
#[derive(Debug)]
pub struct Reading<'a, T> {
    /// The newest value and when it was accepted.
    pub newest: &'a Accepted<T>,
    /// The value's encoded text.
    pub text: &'a [u8],
}

/// The newest value of every topic, by dense index.
pub struct Board<T> {
    entries: Table<Entry<T>>,
    encoded: AtomicU64,
}

impl<T: Topic> Board<T> {
    /// A board for at most `limit` topics.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { entries: Table::new(limit), encoded: AtomicU64::new(0) }
    }

    /// Stores the newest value of a topic. Answers whether it is the topic's first, and `false`
    /// also where nothing was stored: past the limit, or not newer than what stands there.
    pub fn store(&self, index: usize, accepted: Accepted<T>) -> bool {
        let mut first = false;
        let tick = accepted.value.tick();
        let Some(entry) = self.entries.get_or_set(index, || {
            first = true;
            Entry {
                tick: AtomicU64::new(tick),
                state: Mutex::new(State {
                    newest: accepted.clone(),
                    text: Vec::new(),
                    encoded: false,
                }),
            }
        }) else {
            return false;
        };
        if first {
            return true;
        }
        let mut state = entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        if tick > state.newest.value.tick() {
            state.newest = accepted;
            state.encoded = false;
            entry.tick.store(tick, Ordering::Release);
        }
        false
    }

    /// Changes a topic's value in place, from the default if it has none. Answers whether it is the
    /// topic's first; `None` past the limit. A refused change leaves everything as it was.
    ///
    /// # Errors
    ///
    /// Whatever `change` answers.
    pub fn update<E>(
        &self,
        index: usize,
        at: Instant,
        change: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<Option<bool>, E>
    where
        T: Default,
    {
        let Some(entry) = self.entries.get_or_set(index, || Entry {
            tick: AtomicU64::new(0),
            state: Mutex::new(State {
                newest: Accepted { value: T::default(), at },
                text: Vec::new(),
                encoded: false,
            }),
        }) else {
            return Ok(None);
        };
        let mut state = entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        let first = state.newest.value.tick() == 0;
        let mut value = state.newest.value.clone();
        change(&mut value)?;
        entry.tick.store(value.tick(), Ordering::Release);
        state.newest = Accepted { value, at };
        state.encoded = false;
        Ok(Some(first))
    }

    /// The tick of a topic's newest value; 0 if it has none.
    #[must_use]
    pub fn tick(&self, index: usize) -> u64 {
        self.entries.get(index).map_or(0, |entry| entry.tick.load(Ordering::Acquire))
    }

    /// Reads a topic's newest value with its text, which `encode` makes if nobody has yet.
    pub fn read<R>(
        &self,
        index: usize,
        encode: impl FnOnce(&T, &mut Vec<u8>),
        reader: impl FnOnce(Reading<'_, T>) -> R,
    ) -> Option<R> {
        let entry = self.entries.get(index)?;
        let mut state = entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { newest, text, encoded } = &mut *state;
        if !*encoded {
            text.clear();
            encode(&newest.value, text);
            *encoded = true;
            self.encoded.fetch_add(1, Ordering::Relaxed);
        }
        Some(reader(Reading { newest, text }))
    }

    /// A copy of a topic's newest value.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<T> {
        let entry = self.entries.get(index)?;
        let state = entry.state.lock().unwrap_or_else(PoisonError::into_inner);
        Some(state.newest.value.clone())
    }

    /// How many encodings were made: at most one per newest value.
    #[must_use]
    pub fn encodings(&self) -> u64 {
        self.encoded.load(Ordering::Relaxed)
    }
}

impl<T: Topic> std::fmt::Debug for Board<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("limit", &self.entries.limit()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(tick: u64) -> Accepted<Quote> {
        Accepted { value: Quote { tick, ..Quote::default() }, at: Instant::from_nanos(tick) }
    }

    fn text(board: &Board<Quote>, index: usize) -> Option<String> {
        board.read(
            index,
            |quote, out| out.extend_from_slice(quote.tick.to_string().as_bytes()),
            |reading| String::from_utf8_lossy(reading.text).into_owned(),
        )
    }

    #[test]
    fn a_value_is_encoded_once_and_only_if_wanted() {
        let board = Board::new(10);
        assert!(board.store(3, update(1)));
        assert!(!board.store(3, update(2)));
        assert_eq!(board.encodings(), 0);
        assert_eq!(text(&board, 3).as_deref(), Some("2"));
        assert_eq!(text(&board, 3).as_deref(), Some("2"));
        assert_eq!(board.encodings(), 1);
        board.store(3, update(3));
        assert_eq!(text(&board, 3).as_deref(), Some("3"));
        assert_eq!(board.encodings(), 2);
    }

    #[test]
    fn a_topic_never_runs_backwards() {
        let board = Board::new(10);
        board.store(0, update(5));
        board.store(0, update(4));
        assert_eq!(board.tick(0), 5);
        assert_eq!(text(&board, 0).as_deref(), Some("5"));
    }

    #[test]
    fn past_the_limit_nothing_is_stored() {
        let board = Board::new(1);
        assert!(!board.store(1, update(1)));
        assert_eq!(board.tick(1), 0);
        assert_eq!(text(&board, 1), None);
    }
}
