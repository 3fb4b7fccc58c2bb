//! What one subscriber is subscribed to, and which of it awaits sending.
//!
//! A slot a topic. Memory is sized by what is subscribed, never by the universe. Two bitmaps over
//! the slots say what awaits sending: *fresh* slots have not had their first value yet, *pending*
//! ones have changed since their last. Each bitmap is swept from where the last sweep stopped, so
//! a batch that is full leaves the rest first in line.
//!
//! # Invariants
//!
//! 1. A free slot is in neither bitmap; a slot is never in both.
//! 2. For a slot that has been sent, `base < built`, and `built − base` = values delivered through
//!    it + ticks conflated.

use crate::clock::Instant;

/// A slot's topic while it is free.
const FREE: u32 = u32::MAX;

/// One subscription of a subscriber.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    topic: u32,
    /// Whether the first value has been sent.
    sent: bool,
    /// The tick before the first value sent.
    base: u64,
    /// The tick of the last value sent.
    built: u64,
    /// When the oldest change that awaits sending was accepted.
    since: Instant,
}

/// What sending a value meant for the accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Ticks between this value and the one sent before it: skipped on purpose.
    pub(crate) conflated: u64,
}

/// Ticks of the topics subscribed now, by the definitions of the accounts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    /// Ticks since the one before each first value.
    pub(crate) received: u64,
    /// Ticks since each last value sent.
    pub(crate) pending: u64,
}

/// The subscriptions of one subscriber to one kind of topic.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
    fresh: Bits,
    pending: Bits,
}

impl Slots {
    /// How many topics are subscribed.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a slot for a topic; the caller sees to it that the topic has none yet.
    pub(crate) fn add(&mut self, topic: u32) -> u32 {
        let slot = Slot { topic, sent: false, base: 0, built: 0, since: Instant::default() };
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = slot;
            return index;
        }
        self.slots.push(slot);
        self.fresh.grow(self.slots.len());
        self.pending.grow(self.slots.len());
        #[expect(clippy::cast_possible_truncation, reason = "topics are numbered in 32 bits")]
        let index = (self.slots.len() - 1) as u32;
        index
    }

    /// Frees a slot; answers its ticks so that the accounts can keep them.
    pub(crate) fn remove(&mut self, index: u32, now_tick: u64) -> Ticks {
        let slot = &mut self.slots[index as usize];
        let ticks = slot.ticks(now_tick);
        slot.topic = FREE;
        self.fresh.clear(index);
        self.pending.clear(index);
        self.free.push(index);
        ticks
    }

    /// Every topic subscribed, with its slot.
    pub(crate) fn topics(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.slots.iter().zip(0_u32..).filter(|(s, _)| s.topic != FREE).map(|(s, i)| (s.topic, i))
    }

    /// Notes that the topic of a slot has changed to `tick`, accepted at `accepted_at`.
    pub(crate) fn mark(&mut self, index: u32, tick: u64, accepted_at: Instant) {
        let slot = &mut self.slots[index as usize];
        if slot.topic == FREE || tick <= slot.built {
            return;
        }
        let bits = if slot.sent { &mut self.pending } else { &mut self.fresh };
        if bits.set(index) {
            slot.since = accepted_at;
        }
    }

    /// Whether a first value awaits sending.
    pub(crate) fn has_fresh(&self) -> bool {
        self.fresh.count > 0
    }

    /// Whether any value awaits sending.
    pub(crate) fn has_pending(&self) -> bool {
        self.fresh.count + self.pending.count > 0
    }

    /// Offers the topics of fresh (or else pending) slots to `write`, which answers the tick it
    /// has written, or `None` if there was no room and the sweep is to stop there.
    ///
    /// Answers when the oldest change written was accepted; `sent` hears of each value.
    pub(crate) fn sweep(
        &mut self,
        fresh: bool,
        mut write: impl FnMut(u32) -> Option<u64>,
        mut sent: impl FnMut(Sent),
    ) -> Option<Instant> {
        let mut oldest: Option<Instant> = None;
        let bits = if fresh { &mut self.fresh } else { &mut self.pending };
        let slots = &mut self.slots;
        bits.sweep(|index| {
            let slot = &mut slots[index as usize];
            let Some(tick) = write(slot.topic) else { return false };
            if tick > slot.built {
                let before = if slot.sent { slot.built } else { tick - 1 };
                if !slot.sent {
                    slot.sent = true;
                    slot.base = before;
                }
                slot.built = tick;
                sent(Sent { conflated: tick - before - 1 });
                oldest = Some(oldest.map_or(slot.since, |oldest| oldest.min(slot.since)));
            }
            true
        });
        oldest
    }

    /// The tick a slot's topic was last sent at, and whether it has been sent at all.
    #[cfg(test)]
    fn built(&self, index: u32) -> u64 {
        self.slots[index as usize].built
    }

    /// The ticks of every topic subscribed; `tick` is asked once for each.
    pub(crate) fn ticks(&self, mut tick: impl FnMut(u32) -> u64) -> Ticks {
        self.slots.iter().filter(|slot| slot.topic != FREE).fold(Ticks::default(), |sum, slot| {
            let ticks = slot.ticks(tick(slot.topic));
            Ticks { received: sum.received + ticks.received, pending: sum.pending + ticks.pending }
        })
    }
}

impl Slot {
    /// A slot that awaits its first value stands for one tick: the one it will be sent.
    fn ticks(&self, now: u64) -> Ticks {
        if self.sent {
            Ticks { received: now - self.base, pending: now - self.built }
        } else {
            let one = u64::from(now > 0);
            Ticks { received: one, pending: one }
        }
    }
}

/// A bitmap that knows how many bits are set and where its last sweep stopped.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    count: u32,
    cursor: u32,
}

impl Bits {
    fn grow(&mut self, bits: usize) {
        let words = bits.div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
    }

    /// Sets a bit; answers whether it was clear.
    fn set(&mut self, index: u32) -> bool {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        let clear = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u32::from(clear);
        clear
    }

    fn clear(&mut self, index: u32) {
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        self.count -= u32::from(self.words[word] & bit != 0);
        self.words[word] &= !bit;
    }

    /// Visits set bits from the cursor round once, clearing each that `visit` takes; stops at the
    /// first it does not, which is where the next sweep starts.
    fn sweep(&mut self, mut visit: impl FnMut(u32) -> bool) {
        let words = self.words.len();
        let start = self.cursor as usize;
        let (first_word, first_bit) = ((start / 64).min(words.saturating_sub(1)), start % 64);
        for step in 0..=words {
            if self.count == 0 {
                return;
            }
            let word = (first_word + step) % words;
            let mask = match step {
                0 => !0 << first_bit,
                _ if step == words => (1_u64 << first_bit) - 1,
                _ => !0,
            };
            let mut bits = self.words[word] & mask;
            while bits != 0 {
                let bit = bits.trailing_zeros();
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "slots are numbered in 32 bits"
                )]
                let index = word as u32 * 64 + bit;
                if !visit(index) {
                    self.cursor = index;
                    return;
                }
                self.words[word] &= !(1 << bit);
                self.count -= 1;
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_nanos(5);

    /// Sends at most `room` values; answers the topics sent and the ticks conflated.
    fn send(slots: &mut Slots, fresh: bool, room: usize, tick: u64) -> (Vec<u32>, u64) {
        let (mut topics, mut conflated) = (Vec::new(), 0);
        slots.sweep(
            fresh,
            |topic| {
                (topics.len() < room).then(|| {
                    topics.push(topic);
                    tick
                })
            },
            |sent| conflated += sent.conflated,
        );
        (topics, conflated)
    }

    #[test]
    fn the_first_value_conflates_nothing_and_later_ones_count_the_gap() {
        let mut slots = Slots::default();
        let index = slots.add(9);
        slots.mark(index, 41, NOW);
        assert!(slots.has_fresh());
        assert_eq!(slots.ticks(|_| 43), Ticks { received: 1, pending: 1 });
        assert_eq!(send(&mut slots, true, 9, 43), (vec![9], 0));
        slots.mark(index, 47, NOW);
        assert!(!slots.has_fresh() && slots.has_pending());
        assert_eq!(slots.ticks(|_| 48), Ticks { received: 6, pending: 5 });
        assert_eq!(send(&mut slots, false, 9, 48), (vec![9], 4));
        assert_eq!(slots.ticks(|_| 48), Ticks { received: 6, pending: 0 });
        assert_eq!(slots.built(index), 48);
    }

    #[test]
    fn a_value_that_is_not_newer_is_not_sent() {
        let mut slots = Slots::default();
        let index = slots.add(1);
        slots.mark(index, 5, NOW);
        send(&mut slots, true, 9, 7);
        slots.mark(index, 7, NOW);
        assert!(!slots.has_pending());
    }

    #[test]
    fn a_full_batch_leaves_the_rest_first_in_line() {
        let mut slots = Slots::default();
        for topic in 0..200 {
            let index = slots.add(topic);
            slots.mark(index, 1, NOW);
        }
        send(&mut slots, true, 200, 1);
        let mut seen = Vec::new();
        for tick in 2..8 {
            for index in 0..200 {
                slots.mark(index, tick, NOW);
            }
            seen.extend(send(&mut slots, false, 70, tick).0);
        }
        let expected: Vec<u32> = (0..420).map(|n| n % 200).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_freed_slot_is_used_again_and_owes_nothing() {
        let mut slots = Slots::default();
        let index = slots.add(1);
        slots.mark(index, 3, NOW);
        send(&mut slots, true, 9, 3);
        slots.mark(index, 8, NOW);
        assert_eq!(slots.remove(index, 8), Ticks { received: 6, pending: 5 });
        assert!(!slots.has_pending() && slots.len() == 0);
        slots.mark(index, 9, NOW);
        assert!(!slots.has_pending());
        assert_eq!(slots.add(2), index);
        assert_eq!(slots.topics().collect::<Vec<_>>(), [(2, index)]);
    }

    #[test]
    fn the_oldest_change_of_a_batch_is_told() {
        let mut slots = Slots::default();
        for (topic, at) in [(0, 30), (1, 10), (2, 20)] {
            let index = slots.add(topic);
            slots.mark(index, 1, Instant::from_nanos(at));
            slots.mark(index, 2, Instant::from_nanos(at + 100));
        }
        let oldest = slots.sweep(true, |_| Some(2), |_| {});
        assert_eq!(oldest, Some(Instant::from_nanos(10)));
    }
}
