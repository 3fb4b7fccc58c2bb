//! Fills of accounts, and the volume they fold into.

use super::decimal::{Decimal, DecimalError, Sum};
use super::instrument::InstrumentId;
use super::registry::Registry;

/// The dense number of an account, from 0 in the order of first sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(pub u32);

/// Which way a fill went, as the account sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The account bought.
    Buy,
    /// The account sold.
    Sell,
}

/// One execution of an account's order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// Whose fill.
    pub account: AccountId,
    /// Of what.
    pub instrument: InstrumentId,
    /// Which way.
    pub side: Side,
    /// Price of this execution.
    pub price: Decimal,
    /// Quantity of this execution, not the order's running total.
    pub quantity: Decimal,
    /// When the venue says it happened, in nanoseconds since the Unix epoch.
    pub venue_time: Option<i64>,
    /// When it was received, in nanoseconds since the Unix epoch.
    pub receive_time: i64,
}

/// What fills of one account in one instrument add up to. The default is *nothing*.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// How many fills.
    pub fills: u64,
    /// Quantity bought.
    pub bought: Sum,
    /// Quantity sold.
    pub sold: Sum,
    /// Σ price × quantity over all fills, bought and sold alike.
    pub notional: Sum,
}

impl Volume {
    /// The volume of one fill.
    ///
    /// # Errors
    ///
    /// [`DecimalError::Overflow`] if price × quantity has no exact form.
    pub fn of(fill: &Fill) -> Result<Self, DecimalError> {
        let quantity = Sum::from(fill.quantity);
        let (bought, sold) = match fill.side {
            Side::Buy => (quantity, Sum::default()),
            Side::Sell => (Sum::default(), quantity),
        };
        Ok(Self { fills: 1, bought, sold, notional: Sum::product(fill.price, fill.quantity)? })
    }

    /// Adds another volume exactly.
    ///
    /// # Errors
    ///
    /// [`DecimalError::Overflow`]; nothing is added then.
    pub fn add(&mut self, other: Self) -> Result<(), DecimalError> {
        let mut next = *self;
        next.fills = next.fills.checked_add(other.fills).ok_or(DecimalError::Overflow)?;
        next.bought.add(other.bought)?;
        next.sold.add(other.sold)?;
        next.notional.add(other.notional)?;
        *self = next;
        Ok(())
    }
}

/// Longest accepted account name, in bytes.
pub const MAX_ACCOUNT_BYTES: usize = 64;

/// Why an account was not given an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// As many accounts (or account and instrument pairs) are known as the configuration allows.
    #[error("{limit} accounts are known, which is all that max_known_accounts allows")]
    Full {
        /// The bound.
        limit: usize,
    },
    /// Empty, too long, or holds white space, control characters, `*`, `"` or `\`.
    #[error(
        "not an account name: 1 to {MAX_ACCOUNT_BYTES} bytes without white space, control characters, '*', '\"' or '\\'"
    )]
    Malformed,
}

/// Whether `name` can name an account.
#[must_use]
pub fn is_account(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_ACCOUNT_BYTES
        && !name
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, '*' | '"' | '\\'))
}

/// Every account seen so far, bounded.
pub struct Accounts(Registry<Box<str>, Box<str>>);

impl Accounts {
    /// Room for at most `limit` accounts.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Registry::new(limit))
    }

    /// The id of the account, made if it is new.
    ///
    /// # Errors
    ///
    /// [`AccountError`]: no room, or not a name.
    pub fn intern(&self, name: &str) -> Result<AccountId, AccountError> {
        if let Some(id) = self.find(name) {
            return Ok(id);
        }
        if !is_account(name) {
            return Err(AccountError::Malformed);
        }
        let id = self.0.intern(name, || (name.into(), name.into()));
        id.map(AccountId).ok_or(AccountError::Full { limit: self.0.limit() })
    }

    /// The id of a known account.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<AccountId> {
        self.0.find(name).map(AccountId)
    }

    /// The name of an id that this registry gave; empty for any other.
    #[must_use]
    pub fn name(&self, id: AccountId) -> &str {
        self.0.get(id.0).map_or("", |name| name)
    }
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").field("limit", &self.0.limit()).finish_non_exhaustive()
    }
}

/// The dense number of an account and instrument pair, from 0 in the order of first fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VolumeId(pub u32);

/// Every account and instrument pair that has had a fill, bounded.
pub struct VolumeKeys(Registry<Pair, Pair>);

type Pair = (AccountId, InstrumentId);

impl VolumeKeys {
    /// Room for at most `limit` pairs.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Registry::new(limit))
    }

    /// The id of the pair, made if it is new.
    ///
    /// # Errors
    ///
    /// [`AccountError::Full`].
    pub fn intern(
        &self,
        account: AccountId,
        instrument: InstrumentId,
    ) -> Result<VolumeId, AccountError> {
        let pair = (account, instrument);
        let id = self.0.intern(&pair, || (pair, pair));
        id.map(VolumeId).ok_or(AccountError::Full { limit: self.0.limit() })
    }

    /// The pair behind an id that this registry gave.
    #[must_use]
    pub fn key(&self, id: VolumeId) -> Option<(AccountId, InstrumentId)> {
        self.0.get(id.0).copied()
    }

    /// How many pairs are known; their ids are `0..len`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no pair is known yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many pairs may be known.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit()
    }
}

impl std::fmt::Debug for VolumeKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VolumeKeys").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::decimal::parse;

    fn fill(side: Side, price: &str, quantity: &str) -> Fill {
        Fill {
            account: AccountId(0),
            instrument: InstrumentId(0),
            side,
            price: parse(price.as_bytes()).unwrap(),
            quantity: parse(quantity.as_bytes()).unwrap(),
            venue_time: None,
            receive_time: 0,
        }
    }

    #[test]
    fn fills_fold_into_bought_sold_and_notional() {
        let mut total = Volume::default();
        for f in [fill(Side::Buy, "61837.63000000", "0.5"), fill(Side::Sell, "2", "0.25000000")] {
            total.add(Volume::of(&f).unwrap()).unwrap();
        }
        assert_eq!(total.fills, 2);
        assert_eq!(total.bought.to_string(), "0.5");
        assert_eq!(total.sold.to_string(), "0.25");
        assert_eq!(total.notional.to_string(), "30919.315");
    }

    #[test]
    fn an_overflow_adds_nothing_at_all() {
        let mut total = Volume::of(&fill(Side::Buy, "1", "79228162514264337593543950335")).unwrap();
        let before = total;
        assert_eq!(
            total.add(Volume::of(&fill(Side::Sell, "1", "1e-28")).unwrap()),
            Err(DecimalError::Overflow)
        );
        assert_eq!(total, before);
    }

    #[test]
    fn accounts_keep_their_ids_and_the_limit_holds() {
        let accounts = Accounts::new(1);
        let id = accounts.intern("desk-1").unwrap();
        assert_eq!(accounts.intern("desk-1"), Ok(id));
        assert_eq!(accounts.intern("desk-2"), Err(AccountError::Full { limit: 1 }));
        assert_eq!(accounts.intern("a b"), Err(AccountError::Malformed));
        assert_eq!(accounts.name(id), "desk-1");
        assert_eq!(accounts.find("desk-2"), None);
    }
}
