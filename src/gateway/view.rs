//! What one shard sees of one board: a copy of the newest texts it wants, and who wants them.
//!
//! The copy is refreshed by sweeping the lane's dirty bits: once a changed topic, however many of
//! the shard's subscribers want it. Building a batch then touches no lock and no shared line.

use std::sync::Arc;

use super::lane::Lane;
use crate::board::{Board, Topic};
use crate::clock::Instant;

/// How a topic's value is spelled: topic, value, where to.
pub(crate) type Spell<T> = Arc<dyn Fn(usize, &T, &mut Vec<u8>) + Send + Sync>;

/// A subscriber's own slot for a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interest {
    pub(crate) session: u32,
    pub(crate) slot: u32,
}

/// The shard's copy of a topic's newest value.
#[derive(Debug, Default)]
pub(crate) struct Mirror {
    /// The value's tick; 0 while there is no value.
    pub(crate) tick: u64,
    /// When the value was accepted.
    pub(crate) accepted_at: Instant,
    /// The value's text.
    pub(crate) text: Vec<u8>,
}

#[derive(Debug, Default)]
struct Row {
    mirror: Mirror,
    interests: Vec<Interest>,
}

/// One shard's view of one board.
pub(crate) struct View<T> {
    board: Arc<Board<T>>,
    lane: Arc<Lane>,
    spell: Spell<T>,
    rows: Vec<Row>,
}

impl<T: Topic> View<T> {
    pub(crate) fn new(board: Arc<Board<T>>, lane: Arc<Lane>, spell: Spell<T>) -> Self {
        Self { board, lane, spell, rows: Vec::new() }
    }

    pub(crate) fn lane(&self) -> &Lane {
        &self.lane
    }

    /// The board's own tick of a topic.
    pub(crate) fn tick(&self, topic: u32) -> u64 {
        self.board.tick(topic as usize)
    }

    /// The shard's copy of a topic it wants.
    pub(crate) fn mirror(&self, topic: u32) -> Option<&Mirror> {
        self.rows.get(topic as usize).map(|row| &row.mirror)
    }

    /// Adds an interest; answers the topic's newest value as the shard now sees it.
    pub(crate) fn add(&mut self, topic: u32, interest: Interest) -> &Mirror {
        let index = topic as usize;
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, Row::default);
        }
        let row = &mut self.rows[index];
        if row.interests.is_empty() {
            // Announce first, read after: see the lane.
            self.lane.want(index);
            refresh(&self.board, &self.spell, index, &mut row.mirror);
        }
        row.interests.push(interest);
        &row.mirror
    }

    /// Removes an interest. The last one takes the shard's copy with it.
    pub(crate) fn remove(&mut self, topic: u32, interest: Interest) {
        let Some(row) = self.rows.get_mut(topic as usize) else { return };
        if let Some(place) = row.interests.iter().position(|&i| i == interest) {
            row.interests.swap_remove(place);
        }
        if row.interests.is_empty() {
            self.lane.unwant(topic as usize);
            *row = Row::default();
        }
    }

    /// Whether a session has a slot for a topic, and which.
    pub(crate) fn slot_of(&self, topic: u32, session: u32) -> Option<u32> {
        let row = self.rows.get(topic as usize)?;
        row.interests.iter().find(|i| i.session == session).map(|i| i.slot)
    }

    /// Takes every changed topic that somebody wants: refreshes the copy, then tells each
    /// interest of it.
    pub(crate) fn sweep(&mut self, mut changed: impl FnMut(Interest, &Mirror)) {
        let Self { board, lane, spell, rows } = self;
        lane.drain(|index| {
            let Some(row) = rows.get_mut(index).filter(|row| !row.interests.is_empty()) else {
                return;
            };
            if refresh(board, spell, index, &mut row.mirror) {
                for &interest in &row.interests {
                    changed(interest, &row.mirror);
                }
            }
        });
    }
}

/// Copies the board's newest value; answers whether it is newer than the copy was.
fn refresh<T: Topic>(
    board: &Board<T>,
    spell: &Spell<T>,
    index: usize,
    mirror: &mut Mirror,
) -> bool {
    let read = board.read(
        index,
        |value, out| spell(index, value, out),
        |reading| {
            let tick = reading.newest.value.tick();
            if tick <= mirror.tick {
                return false;
            }
            mirror.tick = tick;
            mirror.accepted_at = reading.newest.at;
            mirror.text.clear();
            mirror.text.extend_from_slice(reading.text);
            true
        },
    );
    read.unwrap_or(false)
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::ingest::Accepted;
    use crate::market::Quote;

    fn store(board: &Board<Quote>, topic: usize, tick: u64) -> bool {
        let value = Quote { tick, ..Quote::default() };
        board.store(topic, Accepted { value, at: Instant::from_nanos(tick) })
    }

    #[test]
    fn a_changed_topic_is_encoded_once_and_told_to_each_interest() {
        let board = Arc::new(Board::new(10));
        let lane = Arc::new(Lane::new(10));
        let spell: Spell<Quote> = Arc::new(|topic, quote, out| {
            out.extend_from_slice(format!("{topic}@{}", quote.tick).as_bytes())
        });
        let mut view = View::new(board.clone(), lane.clone(), spell);
        let (one, two) = (Interest { session: 1, slot: 0 }, Interest { session: 2, slot: 5 });
        assert_eq!(view.add(3, one).tick, 0);
        store(&board, 3, 1);
        lane.mark(3, true);
        assert_eq!(view.add(3, two).tick, 0, "the sweep will tell");
        let mut told = Vec::new();
        view.sweep(|interest, mirror| told.push((interest, mirror.tick)));
        assert_eq!(told, [(one, 1), (two, 1)]);
        assert_eq!(view.mirror(3).unwrap().text, b"3@1");
        assert_eq!(board.encodings(), 1);
        view.remove(3, one);
        view.remove(3, two);
        store(&board, 3, 2);
        assert!(!lane.mark(3, false));
        view.sweep(|_, _| unreachable!("nobody wants it"));
        assert_eq!(board.encodings(), 1);
    }
}
