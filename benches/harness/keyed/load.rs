//! Values, and which key each goes to.

/// 64 bytes, all of them told by one number.
#[derive(Clone, Copy, Default)]
pub struct Value(pub [u64; 8]);

impl Value {
    /// The value that stands for `number`.
    #[inline(always)]
    pub fn new(number: u64) -> Self {
        Self([number; 8])
    }

    /// The number that the value stands for. Checks that the value is whole.
    #[inline(always)]
    pub fn number(&self) -> u64 {
        assert!(self.0.iter().all(|word| *word == self.0[0]), "a torn value");
        self.0[0]
    }

    /// Adds up, word by word.
    #[inline(always)]
    pub fn add(&mut self, other: Self) {
        for (sum, word) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(word);
        }
    }
}

/// How often a key is dispatched to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// All alike, in random order.
    Uniform,
    /// The key of rank r in proportion to 1 / r. Low ranks have low indices: the hottest keys lie
    /// beside each other, as they do if indices are given in the order of first appearance.
    Zipf,
}

/// Which key each dispatch goes to: a random sequence, repeated.
pub struct Load {
    /// The number of keys.
    pub keys: u32,
    /// A power of two of keys.
    pub sequence: Vec<u32>,
}

impl Load {
    /// A sequence about four times as long as there are keys; always the same one.
    pub fn new(keys: u32, spread: Spread) -> Self {
        let length = (keys as usize * 4).next_power_of_two().max(4096);
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move || {
            // splitmix64
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut word = seed;
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        };
        let mut below = 0.0;
        let ranks: Vec<f64> = (1..=keys)
            .map(|rank| {
                below += 1.0 / f64::from(rank);
                below
            })
            .collect();
        let key = |word: u64| match spread {
            Spread::Uniform => (word % u64::from(keys)) as u32,
            Spread::Zipf => {
                let point = (word >> 11) as f64 / (1_u64 << 53) as f64 * below;
                ranks.partition_point(|up_to| *up_to <= point) as u32
            }
        };
        Self { keys, sequence: (0..length).map(|_| key(random())).collect() }
    }

    /// The key of a dispatch.
    #[inline(always)]
    pub fn key(&self, number: u64) -> u32 {
        self.sequence[number as usize & (self.sequence.len() - 1)]
    }

    /// One thing a key, in the order of the sequence.
    pub fn in_sequence<T: Copy>(&self, of_key: &[T]) -> Vec<T> {
        self.sequence.iter().map(|key| of_key[*key as usize]).collect()
    }
}
