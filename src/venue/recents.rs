//! The last ids of something whose ids have no order, so that each counts once.
//!
//! A window is a ring of the newest ids and an index into it: an open-addressed table of ring
//! places, half empty at most, out of which the oldest id is taken when the ring is full. Ids are
//! kept in 128 bits: a UUID or a number as it is, any other text by two seeded hashes of it.
//!
//! A `HashSet` beside a queue was the other choice: twice the memory, and it moves all its ids every
//! few thousand insertions, where this one moves a handful each time.
//!
//! 1. An id is in the index if and only if it is in the ring, once.
//! 2. A probe for an id meets no empty slot before the id's own: taking one out moves those behind
//!    it up.
//! 3. All windows together hold at most [`MAX_IDS`] ids beyond the first [`FIRST`] of each: when
//!    that is reached, a window no longer grows and forgets its oldest sooner.

use std::hash::{BuildHasher as _, Hash};

use foldhash::HashMap;
use foldhash::fast::RandomState;

/// How many ids are remembered of each key.
pub(super) const WINDOW: usize = 10_000;
/// Room that a window starts with.
const FIRST: usize = 64;
/// Room beyond [`FIRST`] that all windows share: at 22 bytes an id, about 90 MB.
const MAX_IDS: usize = 1 << 22;

/// An id in 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Id(u128);

/// The last ids of each key.
pub(super) struct Recents<K> {
    windows: HashMap<K, Window>,
    most_keys: usize,
    /// Room that windows may still grow by.
    spare: usize,
    /// Seeds of ids that are neither numbers nor UUIDs, and of places in the index.
    seeds: [RandomState; 2],
}

/// As many keys as there may be are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeysFull;

impl<K: Copy + Eq + Hash> Recents<K> {
    /// Remembers ids of at most `most_keys` keys.
    pub(super) fn new(most_keys: usize) -> Self {
        Self::with(most_keys, MAX_IDS)
    }

    fn with(most_keys: usize, spare: usize) -> Self {
        let seeds = [RandomState::default(), RandomState::default()];
        Self { windows: HashMap::default(), most_keys, spare, seeds }
    }

    /// The id that a text stands for: one id for each text, but that the digits of a UUID may be in
    /// either case, and that leading zeros of a number say nothing.
    #[inline]
    pub(super) fn id(&self, text: &[u8]) -> Id {
        Id(uuid(text).or_else(|| number(text)).unwrap_or_else(|| {
            let [high, low] = [0, 1].map(|n: usize| u128::from(self.seeds[n].hash_one(text)));
            high << 64 | low
        }))
    }

    /// Takes note of an id; `false` if it is among the key's last ones. A hash of the key and one
    /// of the id.
    #[inline]
    pub(super) fn admit(&mut self, key: K, id: Id) -> Result<bool, KeysFull> {
        let hash = self.hash(id.0);
        if let Some(window) = self.windows.get_mut(&key) {
            if window.find(id.0, hash).is_some() {
                return Ok(false);
            }
            if window.ids.len() == window.room && window.room < WINDOW {
                let wanted = (window.room * 4).min(WINDOW) - window.room;
                if wanted <= self.spare {
                    self.spare -= wanted;
                    window.grow(wanted, &self.seeds[0]);
                }
            }
            window.push(id.0, hash, &self.seeds[0]);
            return Ok(true);
        }
        if self.windows.len() == self.most_keys {
            return Err(KeysFull);
        }
        let mut window = Window::new(FIRST);
        window.push(id.0, hash, &self.seeds[0]);
        self.windows.insert(key, window);
        Ok(true)
    }

    /// Forgets every id.
    pub(super) fn new_session(&mut self) {
        for window in self.windows.values_mut() {
            window.forget();
        }
    }

    #[inline]
    fn hash(&self, id: u128) -> u64 {
        self.seeds[0].hash_one(id)
    }
}

struct Window {
    ids: Vec<u128>,
    room: usize,
    /// Where the oldest stands once the ring is full.
    oldest: usize,
    /// Places in the ring plus one; zero is empty.
    index: Vec<u16>,
}

impl Window {
    fn new(room: usize) -> Self {
        let index = vec![0; room.next_power_of_two() * 2];
        Self { ids: Vec::with_capacity(room), room, oldest: 0, index }
    }

    fn forget(&mut self) {
        self.ids.clear();
        self.oldest = 0;
        self.index.fill(0);
    }

    /// The slot of an id.
    #[inline]
    fn find(&self, id: u128, hash: u64) -> Option<usize> {
        let mut slot = self.home(hash);
        loop {
            match self.index[slot] {
                0 => return None,
                place if self.ids[place as usize - 1] == id => return Some(slot),
                _ => slot = self.next(slot),
            }
        }
    }

    /// Appends an id that is not there, in place of the oldest if the ring is full.
    #[inline]
    fn push(&mut self, id: u128, hash: u64, seed: &RandomState) {
        let place = if self.ids.len() < self.room {
            self.ids.push(id);
            self.ids.len() - 1
        } else {
            let place = self.oldest;
            self.take_out(self.ids[place], seed);
            self.ids[place] = id;
            self.oldest = if place + 1 == self.room { 0 } else { place + 1 };
            place
        };
        self.enter(place, hash);
    }

    fn enter(&mut self, place: usize, hash: u64) {
        let mut slot = self.home(hash);
        while self.index[slot] != 0 {
            slot = self.next(slot);
        }
        self.index[slot] = u16::try_from(place + 1).unwrap_or(0);
    }

    /// Takes an id out of the index, and moves those up that were pushed past its slot.
    fn take_out(&mut self, id: u128, seed: &RandomState) {
        let Some(mut hole) = self.find(id, seed.hash_one(id)) else { return };
        let mut slot = hole;
        loop {
            slot = self.next(slot);
            let place = self.index[slot];
            if place == 0 {
                break;
            }
            let home = self.home(seed.hash_one(self.ids[place as usize - 1]));
            // Whether its way from home to here leads over the hole.
            let mask = self.index.len() - 1;
            if (slot.wrapping_sub(home) & mask) >= (slot.wrapping_sub(hole) & mask) {
                self.index[hole] = place;
                hole = slot;
            }
        }
        self.index[hole] = 0;
    }

    #[cold]
    fn grow(&mut self, by: usize, seed: &RandomState) {
        let mut larger = Self::new(self.room + by);
        self.ids.rotate_left(self.oldest);
        for &id in &self.ids {
            larger.push(id, seed.hash_one(id), seed);
        }
        *self = larger;
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        #[expect(clippy::cast_possible_truncation, reason = "an index has 32,768 slots at most")]
        let low = hash as usize;
        low & (self.index.len() - 1)
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.index.len() - 1)
    }
}

/// The value of each hexadecimal digit; 16 for any other byte.
const DIGITS: [u8; 256] = {
    let mut digits = [16; 256];
    let mut value = 0;
    while value < 16 {
        digits[b"0123456789abcdef"[value as usize] as usize] = value;
        digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
        value += 1;
    }
    digits
};

/// A UUID in its usual writing. Without a branch for each digit, since every trade of some venues
/// has one.
#[inline]
fn uuid(text: &[u8]) -> Option<u128> {
    let text: &[u8; 36] = text.try_into().ok()?;
    if [text[8], text[13], text[18], text[23]] != *b"----" {
        return None;
    }
    let (mut value, mut worst) = (0_u128, 0);
    for group in [&text[..8], &text[9..13], &text[14..18], &text[19..23], &text[24..]] {
        let mut part = 0_u64;
        for &byte in group {
            let digit = DIGITS[byte as usize];
            worst |= digit;
            part = part << 4 | u64::from(digit & 15);
        }
        value = value << (4 * group.len()) | u128::from(part);
    }
    (worst < 16).then_some(value)
}

#[inline]
fn number(text: &[u8]) -> Option<u128> {
    if text.is_empty() || text.len() > 38 {
        return None;
    }
    text.iter().try_fold(0, |value: u128, &byte| {
        byte.is_ascii_digit().then(|| value * 10 + u128::from(byte - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    use super::*;

    fn admit(recents: &mut Recents<u8>, key: u8, text: &str) -> bool {
        let id = recents.id(text.as_bytes());
        recents.admit(key, id).unwrap()
    }

    #[test]
    fn an_id_counts_once_of_each_key_until_a_new_session() {
        let mut recents = Recents::new(2);
        let uuid = "a9188a0a-82bc-50de-be60-03eedbe3cdd7";
        for text in [uuid, "71002003", "fill-1", ""] {
            assert!(admit(&mut recents, 0, text));
            assert!(!admit(&mut recents, 0, text));
            assert!(admit(&mut recents, 1, text));
        }
        assert!(!admit(&mut recents, 0, &uuid.to_uppercase()));
        assert!(!admit(&mut recents, 0, "0071002003"));
        let id = recents.id(b"1");
        assert_eq!(recents.admit(2, id), Err(KeysFull));
        recents.new_session();
        assert!(admit(&mut recents, 0, uuid));
        assert!(!admit(&mut recents, 0, uuid));
    }

    #[test]
    fn a_uuid_is_its_digits_and_anything_else_is_none() {
        let text = "a9188a0a-82bc-50de-be60-03eedbe3cdd7";
        let value = 0xa918_8a0a_82bc_50de_be60_03ee_dbe3_cdd7;
        assert_eq!(uuid(text.as_bytes()), Some(value));
        assert_eq!(uuid(text.to_uppercase().as_bytes()), Some(value));
        for at in 0..36 {
            for wrong in [b'g', b'-', b'/', b':', b'@', b'`', 0, 0xFF] {
                let mut other = text.as_bytes().to_vec();
                if other[at] != wrong {
                    other[at] = wrong;
                    assert_eq!(uuid(&other), None, "{at} {wrong}");
                }
            }
        }
        assert_eq!(uuid(b""), None);
    }

    #[test]
    fn exactly_the_last_ten_thousand_are_told() {
        let mut recents = Recents::new(1);
        for n in 0..25_000_u32 {
            assert!(admit(&mut recents, 0, &format!("{n}")));
        }
        for n in 15_000..25_000_u32 {
            assert!(!admit(&mut recents, 0, &format!("{n}")), "{n}");
        }
        assert!(admit(&mut recents, 0, "14999"), "one more is forgotten");
        assert_eq!(recents.windows[&0].ids.len(), WINDOW);
    }

    #[test]
    fn a_window_tells_what_a_plain_queue_tells() {
        // Without room to grow, so that the ring turns often; few ids, so that many repeat.
        let mut random = StdRng::seed_from_u64(5);
        for spare in [0, 192, 1_000_000] {
            let mut recents = Recents::with(1, spare);
            let mut queue: VecDeque<u128> = VecDeque::new();
            for _ in 0..60_000 {
                let id: u128 = random.random_range(0..300);
                let told = recents.admit(0, Id(id)).unwrap();
                let room = recents.windows[&0].room;
                assert_eq!(told, !queue.contains(&id));
                if told {
                    queue.push_back(id);
                }
                while queue.len() > room {
                    queue.pop_front();
                }
            }
            let filled = recents.windows[&0].index.iter().filter(|&&place| place > 0).count();
            assert_eq!(filled, recents.windows[&0].ids.len());
        }
    }

    #[test]
    fn windows_share_their_room_and_forget_sooner_without_it() {
        let mut recents = Recents::with(100, 192);
        for n in 0..1_000_u32 {
            assert!(admit(&mut recents, 0, &format!("{n}")));
            assert!(admit(&mut recents, 1, &format!("{n}")));
        }
        let rooms = [recents.windows[&0].room, recents.windows[&1].room];
        assert_eq!(rooms, [256, 64]);
        assert_eq!(recents.spare, 0);
        assert!(!admit(&mut recents, 1, "936") && admit(&mut recents, 1, "935"));
    }
}
