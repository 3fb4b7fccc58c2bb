//! A small generator of random numbers whose sequence never changes.
//!
//! SplitMix64 (Steele, Lea, Flood: *Fast splittable pseudorandom number generators*, 2014): one
//! word of state, integer arithmetic alone, so a seed gives the same numbers on every machine and
//! with every version of every library. It is for made-up data and for jitter, not for secrets.

/// A seeded sequence of numbers.
#[derive(Clone, Debug)]
pub(super) struct Seeded(u64);

impl Seeded {
    /// The sequence of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `0..bound` (0 for a bound of 0), by multiplication: the bias is below 2⁻³² for
    /// the small bounds used here.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.bits()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// A number in `low..=high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in `parts` of a thousand cases.
    pub(super) fn chance(&mut self, parts: u64) -> bool {
        self.below(1000) < parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut seeded = Seeded::new(1_234_567);
        assert_eq!(seeded.bits(), 6_457_827_717_110_365_317);
        assert_eq!(seeded.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut seeded = Seeded::new(7);
        assert_eq!(seeded.below(0), 0);
        assert!((0..1000).all(|_| (3..=5).contains(&seeded.between(3, 5))));
    }
}
