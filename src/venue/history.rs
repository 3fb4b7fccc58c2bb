//! Which fills and trades have been seen, so that each counts once.
//!
//! A trade has one buyer and one seller, so (account, instrument, side, trade id) names a fill; an
//! account that trades with itself has two fills of one trade id, one a side.
//!
//! Where ids rise ([`History`]), a venue under load may still deliver them out of order, so the
//! newest [`WINDOW`] ids are kept: one among them is a duplicate, one that is missing among them is
//! merely late and counts. An id below all that are kept can no longer be told, and is refused as
//! old: it is never counted twice. Keeping the highest id alone was the other choice: smaller, but
//! it loses a fill that is late by one place.
//!
//! Where ids have no order ([`Recents`](super::recents::Recents)), the last ten thousand are kept.

use foldhash::HashMap;

use super::class::Refusal;
use crate::market::fill::Side;
use crate::market::{AccountId, InstrumentId};

/// How many ids are kept of each account, instrument and side.
pub(super) const WINDOW: usize = 64;

/// Most triples of account, instrument and side of one feed.
const MAX_KEYS: usize = 1 << 16;

/// Whose fill, of what, which way.
type Key = (AccountId, InstrumentId, bool);

/// The fills seen in this session. At most [`MAX_KEYS`] × [`WINDOW`] ids.
#[derive(Default)]
pub(super) struct History {
    seen: HashMap<Key, Seen>,
}

/// Ids in rising order.
#[derive(Default)]
struct Seen(Vec<u64>);

impl History {
    /// Takes note of a fill, or says why it does not count. A hash, and a step for each place that
    /// the fill is out of order.
    pub(super) fn admit(
        &mut self,
        account: AccountId,
        instrument: InstrumentId,
        side: Side,
        trade: u64,
    ) -> Result<(), Refusal> {
        let key = (account, instrument, side == Side::Buy);
        if let Some(seen) = self.seen.get_mut(&key) {
            return seen.admit(trade);
        }
        if self.seen.len() == MAX_KEYS {
            return Err(Refusal::AccountsFull);
        }
        self.seen.entry(key).or_default().admit(trade)
    }

    /// Forgets every id.
    pub(super) fn new_session(&mut self) {
        for seen in self.seen.values_mut() {
            seen.0.clear();
        }
    }
}

impl Seen {
    fn admit(&mut self, trade: u64) -> Result<(), Refusal> {
        let later = self.0.iter().rev().take_while(|&&id| id > trade).count();
        let place = self.0.len() - later;
        if place > 0 && self.0[place - 1] == trade {
            return Err(Refusal::DuplicateFill);
        }
        if self.0.len() < WINDOW {
            self.0.insert(place, trade);
            return Ok(());
        }
        if place == 0 {
            return Err(Refusal::OldFill);
        }
        self.0.copy_within(1..place, 0);
        self.0[place - 1] = trade;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn admit(history: &mut History, side: Side, trade: u64) -> Result<(), Refusal> {
        history.admit(AccountId(0), InstrumentId(0), side, trade)
    }

    #[test]
    fn a_fill_counts_once_and_a_trade_with_oneself_is_two_fills() {
        let mut history = History::default();
        assert_eq!(admit(&mut history, Side::Buy, 7), Ok(()));
        assert_eq!(admit(&mut history, Side::Sell, 7), Ok(()));
        assert_eq!(admit(&mut history, Side::Buy, 7), Err(Refusal::DuplicateFill));
        assert_eq!(history.admit(AccountId(1), InstrumentId(0), Side::Buy, 7), Ok(()));
        history.new_session();
        assert_eq!(admit(&mut history, Side::Buy, 7), Ok(()));
    }

    #[test]
    fn a_late_fill_counts_while_it_can_be_told_from_a_duplicate() {
        let mut history = History::default();
        for trade in (100..).step_by(2).take(WINDOW) {
            assert_eq!(admit(&mut history, Side::Buy, trade), Ok(()));
        }
        assert_eq!(admit(&mut history, Side::Buy, 103), Ok(()));
        assert_eq!(admit(&mut history, Side::Buy, 103), Err(Refusal::DuplicateFill));
        assert_eq!(admit(&mut history, Side::Buy, 100), Err(Refusal::OldFill));
        assert_eq!(admit(&mut history, Side::Buy, 1), Err(Refusal::OldFill));
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: proptest::test_runner::RngSeed::Fixed(2),
            failure_persistence: None,
            ..ProptestConfig::with_cases(2_000)
        })]

        #[test]
        fn no_fill_is_counted_twice_and_none_within_the_window_is_lost(
            trades in proptest::collection::vec(0_u64..200, 0..400),
        ) {
            let mut history = History::default();
            let mut counted = BTreeSet::new();
            for trade in trades {
                let newer = counted.range(trade..).count();
                match admit(&mut history, Side::Sell, trade) {
                    Ok(()) => prop_assert!(counted.insert(trade)),
                    Err(Refusal::DuplicateFill) => prop_assert!(counted.contains(&trade)),
                    Err(reason) => {
                        prop_assert_eq!(reason, Refusal::OldFill);
                        prop_assert!(newer >= WINDOW);
                    }
                }
            }
        }
    }
}
