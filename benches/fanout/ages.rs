//! Ages of quotes, kept as counts by size.

/// Steps in each doubling: a figure read back is at most 1.6 % off.
const STEPS: u64 = 64;

/// How many of each age there were.
#[derive(Clone)]
pub struct Ages {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Ages {
    fn default() -> Self {
        Self { counts: vec![0; index(u64::MAX) + 1], total: 0 }
    }
}

impl Ages {
    /// Counts one age, in nanoseconds.
    pub fn add(&mut self, age: u64) {
        self.counts[index(age)] += 1;
        self.total += 1;
    }

    /// Counts all of another's.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    pub fn len(&self) -> u64 {
        self.total
    }

    /// The age that a share of all (0 to 1) does not exceed, in nanoseconds; 0 if there is none.
    pub fn at(&self, share: f64) -> f64 {
        let rank = (self.total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if *count > 0 && seen >= rank {
                return middle(index) as f64;
            }
        }
        0.0
    }
}

fn index(value: u64) -> usize {
    let index = if value < STEPS {
        value
    } else {
        let shift = u64::from(value.ilog2()) - u64::from(STEPS.ilog2());
        (shift + 1) * STEPS + (value >> shift) - STEPS
    };
    index as usize
}

fn middle(index: usize) -> u64 {
    let index = index as u64;
    if index < STEPS {
        return index;
    }
    let shift = index / STEPS - 1;
    ((index % STEPS + STEPS) << shift) + (1_u64 << shift) / 2
}
