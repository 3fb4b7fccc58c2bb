//! From an execution report to a fill: whose it is, and whether it has been counted.

use std::sync::Arc;

use super::class::Refusal;
use super::recents::Recents;
use super::shell::{Of as _, Trouble};
use crate::market::fill::{AccountError, Side};
use crate::market::{AccountId, Accounts, Fill, InstrumentId, Volume};

/// Most triples of account, instrument and side of one feed.
const MAX_KEYS: usize = 1 << 16;

/// The fills of a feed whose execution ids have no order.
pub(super) struct Reports {
    accounts: Arc<Accounts>,
    /// Whose fills the feed carries, if the messages do not say.
    account: Option<String>,
    seen: Recents<(AccountId, InstrumentId, bool)>,
}

impl Reports {
    pub(super) fn new(accounts: Arc<Accounts>, account: Option<String>) -> Self {
        Self { accounts, account, seen: Recents::new(MAX_KEYS) }
    }

    /// The account that a message names, else the feed's own.
    pub(super) fn account(&self, named: Option<&[u8]>) -> Result<AccountId, Trouble> {
        let name = match named {
            Some(name) => std::str::from_utf8(name).map_err(|_| Refusal::BadAccount),
            None => self.account.as_deref().ok_or(Refusal::NoAccount),
        };
        let refusal = |error| match error {
            AccountError::Full { .. } => Refusal::AccountsFull,
            AccountError::Malformed => Refusal::BadAccount,
        };
        name.and_then(|name| self.accounts.intern(name).map_err(refusal)).of("account")
    }

    /// Takes note of a fill that can be folded, or says why it does not count.
    pub(super) fn admit(
        &mut self,
        fill: &Fill,
        id: &[u8],
        name: &'static str,
    ) -> Result<(), Trouble> {
        Volume::of(fill).map_err(|_| Refusal::Overflow).of("price")?;
        let key = (fill.account, fill.instrument, fill.side == Side::Buy);
        let id = self.seen.id(id);
        match self.seen.admit(key, id) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refusal::DuplicateFill),
            Err(_) => Err(Refusal::AccountsFull),
        }
        .of(name)
    }

    pub(super) fn new_session(&mut self) {
        self.seen.new_session();
    }
}

/// Which way an execution went, by the venue's word.
pub(super) fn side(word: &[u8]) -> Result<Side, Refusal> {
    if word.eq_ignore_ascii_case(b"buy") {
        Ok(Side::Buy)
    } else if word.eq_ignore_ascii_case(b"sell") {
        Ok(Side::Sell)
    } else {
        Err(Refusal::BadSide)
    }
}
