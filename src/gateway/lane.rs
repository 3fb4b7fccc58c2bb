//! A lane: how a writer tells one shard which topics have changed.
//!
//! A two-level bitmap (a bit a topic, a summary bit per 64 topics) and a bell. However often a
//! topic changes between two sweeps, it costs the shard one visit; a writer never waits.
//!
//! # The order that loses nothing
//!
//! A writer stores the board, *then* sets the topic's bit by an unconditional read-modify-write,
//! *then* rings. The shard clears the bit, *then* reads the board. So whatever the shard reads
//! after clearing is at least as new as the store behind the bit; a later store sets the bit again.
//! Looking first whether the bit is set already and skipping the write would break it: the shard
//! may have cleared the bit and read the board between the look and the store.
//!
//! The summary bit may be skipped when the read-modify-write of the word says that other bits stood
//! there: whoever set the first of them sets the summary, and the shard clears the summary before
//! the words below it.
//!
//! # Sleeping
//!
//! The shard says that it sleeps, *then* looks once more for work, then sleeps; a writer sets its
//! bit, *then* looks whether the shard sleeps. Both steps are sequentially consistent, so at least
//! one of them sees the other. The same pair of fences covers `wanted`: a shard announces its
//! wish, then reads the board; a writer stores the board, then looks at the wish.
//!
//! | operation | ordering | why |
//! |---|---|---|
//! | `mark`: word `fetch_or` | `AcqRel` | publishes the board's store to the sweep that takes the bit |
//! | `mark`: summary `fetch_or` | `AcqRel` | publishes the word |
//! | `drain`: `swap(0)` of both | `AcqRel` | takes the bit before the board is read |
//! | fence in `mark`, `want`, `about_to_sleep` | `SeqCst` | the store-then-look pairs above |
//! | bell state | `SeqCst` | the same pairs |

#![allow(unreachable_pub, reason = "public for the model checks, which are another crate")]

#[cfg(feature = "loom")]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
#[cfg(not(feature = "loom"))]
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// Which topics of one shard have changed, and which the shard wants.
pub struct Lane {
    words: Box<[AtomicU64]>,
    summary: Box<[AtomicU64]>,
    wanted: Box<[AtomicU64]>,
    /// Set while topics nobody has asked for by name yet may still matter (patterns, waiting names).
    wants_new: AtomicBool,
}

impl Lane {
    /// A lane for so many topics, none changed and none wanted.
    pub fn new(topics: usize) -> Self {
        let words = topics.div_ceil(64).max(1);
        Self {
            words: zeroes(words),
            summary: zeroes(words.div_ceil(64)),
            wanted: zeroes(words),
            wants_new: AtomicBool::new(false),
        }
    }

    /// Notes that a topic has changed; its new value is on the board already. `first` says that
    /// the topic is new to the board. Answers whether the shard wants to hear of it.
    pub fn mark(&self, topic: usize, first: bool) -> bool {
        let (word, bit) = (topic / 64, 1 << (topic % 64));
        let Some(bits) = self.words.get(word) else { return false };
        if bits.fetch_or(bit, Ordering::AcqRel) == 0 {
            self.summary[word / 64].fetch_or(1 << (word % 64), Ordering::AcqRel);
        }
        fence(Ordering::SeqCst);
        self.wanted[word].load(Ordering::Relaxed) & bit != 0
            || (first && self.wants_new.load(Ordering::Relaxed))
    }

    /// Announces that the shard wants a topic. What the board says of it is to be read *after*.
    pub fn want(&self, topic: usize) {
        if let Some(bits) = self.wanted.get(topic / 64) {
            bits.fetch_or(1 << (topic % 64), Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }

    /// The shard no longer wants a topic.
    pub fn unwant(&self, topic: usize) {
        if let Some(bits) = self.wanted.get(topic / 64) {
            bits.fetch_and(!(1 << (topic % 64)), Ordering::Relaxed);
        }
    }

    /// Announces whether the shard wants to hear of topics that are new. What is known already is
    /// to be looked through *after*.
    pub fn want_new(&self, wants: bool) {
        self.wants_new.store(wants, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Whether a wanted topic has changed since the last drain.
    pub fn has_work(&self) -> bool {
        self.summary.iter().enumerate().any(|(index, summary)| {
            let mut groups = summary.load(Ordering::Acquire);
            while groups != 0 {
                let word = index * 64 + groups.trailing_zeros() as usize;
                groups &= groups - 1;
                let changed = self.words[word].load(Ordering::Acquire);
                if changed & self.wanted[word].load(Ordering::Relaxed) != 0 {
                    return true;
                }
            }
            false
        })
    }

    /// Takes every changed topic and gives it to `visit`, which may read the board.
    pub fn drain(&self, mut visit: impl FnMut(usize)) {
        for (index, summary) in self.summary.iter().enumerate() {
            // A look first is safe on this side: a bit missed now is rung for, or seen next time.
            if summary.load(Ordering::Acquire) == 0 {
                continue;
            }
            let mut groups = summary.swap(0, Ordering::AcqRel);
            while groups != 0 {
                let word = index * 64 + groups.trailing_zeros() as usize;
                groups &= groups - 1;
                let mut bits = self.words[word].swap(0, Ordering::AcqRel);
                while bits != 0 {
                    visit(word * 64 + bits.trailing_zeros() as usize);
                    bits &= bits - 1;
                }
            }
        }
    }
}

fn zeroes(count: usize) -> Box<[AtomicU64]> {
    (0..count).map(|_| AtomicU64::new(0)).collect()
}

/// Whether a shard sleeps, so that a writer rings only then: a ring costs a system call.
pub struct Bell {
    asleep: AtomicBool,
}

impl Bell {
    /// A bell of a shard that is awake.
    pub fn new() -> Self {
        Self { asleep: AtomicBool::new(false) }
    }

    /// The shard is about to sleep; it looks once more for work *after* this.
    pub fn about_to_sleep(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The shard is awake.
    pub fn awake(&self) {
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Whether the caller has to wake the shard; says so to one caller only.
    pub fn must_ring(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst)
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;

    fn drained(lane: &Lane) -> Vec<usize> {
        let mut topics = Vec::new();
        lane.drain(|topic| topics.push(topic));
        topics
    }

    #[test]
    fn a_topic_is_visited_once_however_often_it_changed() {
        let lane = Lane::new(10_000);
        for topic in [9_999, 0, 63, 64, 4_096, 63, 63] {
            lane.mark(topic, false);
        }
        assert_eq!(drained(&lane), [0, 63, 64, 4_096, 9_999]);
        assert_eq!(drained(&lane), [0; 0]);
    }

    #[test]
    fn only_a_wanted_topic_asks_for_a_ring() {
        let lane = Lane::new(100);
        assert!(!lane.mark(7, true));
        lane.want(7);
        assert!(lane.has_work());
        assert!(lane.mark(7, false));
        assert!(!lane.mark(8, true));
        lane.want_new(true);
        assert!(lane.mark(8, true));
        assert!(!lane.mark(8, false));
        lane.unwant(7);
        assert!(!lane.mark(7, false));
        assert!(!lane.has_work());
    }

    #[test]
    fn a_topic_past_the_end_is_ignored() {
        let lane = Lane::new(64);
        assert!(!lane.mark(64, true));
        assert_eq!(drained(&lane), [0; 0]);
    }

    #[test]
    fn one_caller_rings_for_one_sleep() {
        let bell = Bell::new();
        assert!(!bell.must_ring());
        bell.about_to_sleep();
        assert!(bell.must_ring());
        assert!(!bell.must_ring());
    }
}
