//! The ledger: what every account's fills add up to, exactly.
//!
//! Each feed folds its fills per account and instrument in a coalescing worker; the totals of all
//! feeds come together here. A fill is counted once on its way in, at the codec, and once in a
//! total; [`Ledger::folded_fills`] and the feeds' own counts are the two sides of the audit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::board::Board;
use crate::clock::Instant;
use crate::market::decimal::DecimalError;
use crate::market::{Accounts, Instruments, Volume, VolumeId, VolumeKeys};

/// Why a volume was not added. It is given back with the reason.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LedgerError {
    /// An exact total would not fit.
    #[error("adding {} fills to a total: {reason}", volume.fills)]
    Inexact {
        /// What was to be added.
        volume: Box<Volume>,
        /// Why not.
        reason: DecimalError,
    },
    /// The pair's number is past the ledger's bound.
    #[error("adding {} fills to a total: the ledger is full", volume.fills)]
    Full {
        /// What was to be added.
        volume: Box<Volume>,
    },
}

/// Totals by account and instrument.
pub struct Ledger {
    totals: Arc<Board<Volume>>,
    keys: Arc<VolumeKeys>,
    accounts: Arc<Accounts>,
    instruments: Arc<Instruments>,
    refused_fills: AtomicU64,
}

/// One account's volume in one instrument, with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// The account's name.
    pub account: String,
    /// The instrument's full name.
    pub instrument: String,
    /// Everything folded so far.
    pub volume: Volume,
}

impl Ledger {
    /// An empty ledger over the given registries.
    #[must_use]
    pub fn new(
        keys: Arc<VolumeKeys>,
        accounts: Arc<Accounts>,
        instruments: Arc<Instruments>,
    ) -> Self {
        Self {
            totals: Arc::new(Board::new(keys.limit())),
            keys,
            accounts,
            instruments,
            refused_fills: AtomicU64::new(0),
        }
    }

    /// Adds a folded volume to its total. Answers whether it is the pair's first.
    ///
    /// # Errors
    ///
    /// [`LedgerError`]; the total is as it was then, and the fills are counted as refused.
    pub fn add(&self, key: VolumeId, volume: Volume, at: Instant) -> Result<bool, LedgerError> {
        let added = self.totals.update(key.0 as usize, at, |total| total.add(volume));
        let refused = match added {
            Ok(Some(first)) => return Ok(first),
            Ok(None) => LedgerError::Full { volume: Box::new(volume) },
            Err(reason) => LedgerError::Inexact { volume: Box::new(volume), reason },
        };
        self.refused_fills.fetch_add(volume.fills, Ordering::Relaxed);
        Err(refused)
    }

    /// The totals as a board, for those who show them.
    #[must_use]
    pub fn board(&self) -> &Arc<Board<Volume>> {
        &self.totals
    }

    /// Every total, sorted by account and instrument.
    #[must_use]
    pub fn totals(&self) -> Vec<Total> {
        let mut totals: Vec<Total> = (0..self.keys.len())
            .filter_map(|index| {
                let volume = self.totals.get(index).filter(|volume| volume.fills > 0)?;
                #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
                let (account, instrument) = self.keys.key(VolumeId(index as u32))?;
                Some(Total {
                    account: self.accounts.name(account).to_owned(),
                    instrument: self.instruments.name(instrument).to_owned(),
                    volume,
                })
            })
            .collect();
        totals.sort_by(|a, b| (&a.account, &a.instrument).cmp(&(&b.account, &b.instrument)));
        totals
    }

    /// Fills in all totals.
    #[must_use]
    pub fn folded_fills(&self) -> u64 {
        (0..self.keys.len()).map(|index| self.totals.tick(index)).sum()
    }

    /// Fills that could not be added to a total.
    #[must_use]
    pub fn refused_fills(&self) -> u64 {
        self.refused_fills.load(Ordering::Relaxed)
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("totals", &self.keys.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::decimal::{Sum, parse};
    use crate::market::{FeedId, InstrumentId};

    fn ledger() -> (Ledger, VolumeId) {
        let instruments = Arc::new(Instruments::new(4));
        let accounts = Arc::new(Accounts::new(4));
        let keys = Arc::new(VolumeKeys::new(1));
        let instrument: InstrumentId = instruments.intern("binance", "BTCUSDT", FeedId(0)).unwrap();
        let key = keys.intern(accounts.intern("desk-1").unwrap(), instrument).unwrap();
        (Ledger::new(keys, accounts, instruments), key)
    }

    fn volume(quantity: &str) -> Volume {
        let bought = Sum::from(parse(quantity.as_bytes()).unwrap());
        Volume { fills: 1, bought, ..Volume::default() }
    }

    #[test]
    fn volumes_from_anywhere_add_up() {
        let (ledger, key) = ledger();
        assert_eq!(ledger.add(key, volume("0.10"), Instant::default()), Ok(true));
        assert_eq!(ledger.add(key, volume("0.2"), Instant::default()), Ok(false));
        let totals = ledger.totals();
        assert_eq!(totals.len(), 1);
        assert_eq!(
            (totals[0].account.as_str(), totals[0].instrument.as_str()),
            ("desk-1", "binance:BTCUSDT")
        );
        assert_eq!(totals[0].volume.bought.to_string(), "0.3");
        assert_eq!(ledger.folded_fills(), 2);
    }

    #[test]
    fn what_cannot_be_added_is_handed_back_and_counted() {
        let (ledger, key) = ledger();
        let most = volume("79228162514264337593543950335");
        ledger.add(key, most, Instant::default()).unwrap();
        let refused = ledger.add(key, volume("1e-28"), Instant::default()).unwrap_err();
        assert!(matches!(refused, LedgerError::Inexact { volume, .. } if volume.fills == 1));
        let past = ledger.add(VolumeId(1), volume("1"), Instant::default());
        assert!(matches!(past, Err(LedgerError::Full { .. })));
        assert_eq!((ledger.folded_fills(), ledger.refused_fills()), (1, 2));
        assert_eq!(ledger.totals()[0].volume, most);
    }
}
