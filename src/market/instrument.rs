//! Instruments: `venue:SYMBOL` names, interned to dense ids.
//!
//! A symbol is the venue's own spelling, byte for byte: `binance:BTCUSDT` and
//! `binance-usdm:BTCUSDT` are two instruments with two prices. Ids are dense and never reused, so
//! every other part keeps its state in plain arrays.

use std::sync::OnceLock;

use super::registry::Registry;

/// The dense number of an instrument, from 0 in the order of first sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstrumentId(pub u32);

impl InstrumentId {
    /// The id as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The dense number of a feed, from 0 in the order of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FeedId(pub u16);

impl FeedId {
    /// The id as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Longest accepted symbol, in bytes.
pub const MAX_SYMBOL_BYTES: usize = 64;

/// Why an instrument was not given an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InternError {
    /// As many instruments are known as the configuration allows.
    #[error("{limit} instruments are known, which is all that max_known_instruments allows")]
    Full {
        /// The bound.
        limit: usize,
    },
    /// Another feed gave the instrument first and owns it.
    #[error("the instrument is owned by feed number {}, which gave it first", owner.0)]
    Owned {
        /// The feed that owns it.
        owner: FeedId,
    },
    /// The symbol is empty, too long, or holds white space, control characters, `:`, `*` or `"`.
    #[error(
        "not a symbol: 1 to {MAX_SYMBOL_BYTES} bytes without white space, control characters, ':', '*', '\"' or '\\'"
    )]
    Malformed,
}

/// Whether `symbol` can name an instrument: 1 to [`MAX_SYMBOL_BYTES`] bytes, no white space, no
/// control character, none of `:` `*` `"` `\`. Any other character is welcome, ASCII or not.
#[must_use]
pub fn is_symbol(symbol: &str) -> bool {
    !symbol.is_empty()
        && symbol.len() <= MAX_SYMBOL_BYTES
        && !symbol
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || matches!(c, ':' | '*' | '"' | '\\'))
}

#[derive(Debug)]
struct Known {
    name: Box<str>,
    venue_length: usize,
    /// The feed that was first to give a quote of it.
    owner: OnceLock<FeedId>,
}

/// Every instrument seen so far, bounded.
///
/// Looking up an id by name takes a read lock and a hash; reading a name by id takes neither.
/// Codecs remember the ids of their symbols, so neither happens a tick.
pub struct Instruments(Registry<Box<str>, Known>);

impl Instruments {
    /// Room for at most `limit` instruments.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(Registry::new(limit))
    }

    /// The id of `venue:symbol` for the quotes of `feed`, made if it is new. The first feed to ask
    /// owns the instrument: no other may give quotes of it.
    ///
    /// # Errors
    ///
    /// [`InternError`]: no room, owned by another feed, or not a symbol.
    pub fn intern(
        &self,
        venue: &str,
        symbol: &str,
        feed: FeedId,
    ) -> Result<InstrumentId, InternError> {
        let id = self.resolve(venue, symbol)?;
        let owner = self.0.get(id.0).map(|known| *known.owner.get_or_init(|| feed));
        match owner {
            Some(owner) if owner != feed => Err(InternError::Owned { owner }),
            _ => Ok(id),
        }
    }

    /// The id of `venue:symbol`, made if it is new, without a claim to its quotes: an account's
    /// fills may come over another connection than the market's prices.
    ///
    /// # Errors
    ///
    /// [`InternError`]: no room, or not a symbol.
    pub fn resolve(&self, venue: &str, symbol: &str) -> Result<InstrumentId, InternError> {
        if !is_symbol(symbol) {
            return Err(InternError::Malformed);
        }
        let name = format!("{venue}:{symbol}");
        let id = self.0.intern(name.as_str(), || {
            let name: Box<str> = name.as_str().into();
            let known =
                Known { name: name.clone(), venue_length: venue.len(), owner: OnceLock::new() };
            (name, known)
        });
        id.map(InstrumentId).ok_or(InternError::Full { limit: self.limit() })
    }

    /// The id of a full name (`venue:SYMBOL`), if it is known.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<InstrumentId> {
        self.0.find(name).map(InstrumentId)
    }

    /// The full name of an id that this registry gave; empty for any other.
    #[must_use]
    pub fn name(&self, id: InstrumentId) -> &str {
        self.0.get(id.0).map_or("", |known| &known.name)
    }

    /// The venue part of the name.
    #[must_use]
    pub fn venue(&self, id: InstrumentId) -> &str {
        self.0.get(id.0).map_or("", |known| &known.name[..known.venue_length])
    }

    /// The feed that gives the instrument's quotes; `None` while none has.
    #[must_use]
    pub fn owner(&self, id: InstrumentId) -> Option<FeedId> {
        self.0.get(id.0)?.owner.get().copied()
    }

    /// How many instruments are known; their ids are `0..len`.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no instrument is known yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many instruments may be known.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.0.limit()
    }
}

impl std::fmt::Debug for Instruments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instruments")
            .field("len", &self.len())
            .field("limit", &self.limit())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_symbol_on_two_venues_is_two_instruments() {
        let instruments = Instruments::new(10);
        let spot = instruments.intern("binance", "BTCUSDT", FeedId(0)).unwrap();
        let futures = instruments.intern("binance-usdm", "BTCUSDT", FeedId(1)).unwrap();
        assert_ne!(spot, futures);
        assert_eq!(instruments.name(futures), "binance-usdm:BTCUSDT");
        assert_eq!(instruments.venue(futures), "binance-usdm");
        assert_eq!(instruments.find("binance:BTCUSDT"), Some(spot));
        assert_eq!(instruments.len(), 2);
    }

    #[test]
    fn an_instrument_stays_with_the_feed_that_gave_it_first() {
        let instruments = Instruments::new(10);
        let id = instruments.intern("binance", "BTCUSDT", FeedId(3)).unwrap();
        assert_eq!(instruments.intern("binance", "BTCUSDT", FeedId(3)), Ok(id));
        assert_eq!(
            instruments.intern("binance", "BTCUSDT", FeedId(4)),
            Err(InternError::Owned { owner: FeedId(3) })
        );
        assert_eq!(instruments.owner(id), Some(FeedId(3)));
    }

    #[test]
    fn fills_alone_claim_nothing() {
        let instruments = Instruments::new(10);
        let id = instruments.resolve("binance", "BTCUSDT").unwrap();
        assert_eq!(instruments.owner(id), None);
        assert_eq!(instruments.intern("binance", "BTCUSDT", FeedId(2)), Ok(id));
        assert_eq!(instruments.resolve("binance", "BTCUSDT"), Ok(id));
        assert_eq!(instruments.owner(id), Some(FeedId(2)));
    }

    #[test]
    fn past_the_limit_a_new_instrument_is_refused_and_the_known_ones_stay() {
        let instruments = Instruments::new(1);
        let id = instruments.intern("binance", "BTCUSDT", FeedId(0)).unwrap();
        assert_eq!(
            instruments.intern("binance", "ETHUSDT", FeedId(0)),
            Err(InternError::Full { limit: 1 })
        );
        assert_eq!(instruments.intern("binance", "BTCUSDT", FeedId(0)), Ok(id));
        assert_eq!(instruments.len(), 1);
    }

    #[test]
    fn b15_a_symbol_need_not_be_ascii() {
        let instruments = Instruments::new(2);
        let id = instruments.intern("binance", "龙币USDT", FeedId(0)).unwrap();
        assert_eq!(instruments.name(id), "binance:龙币USDT");
        assert_eq!(instruments.venue(id), "binance");
    }

    #[test]
    fn what_cannot_be_typed_as_a_name_is_no_symbol() {
        for text in ["", "A B", "A:B", "A*", "A\"B", "A\\B", "A\n", &"A".repeat(65)] {
            assert!(!is_symbol(text), "{text:?}");
        }
        assert!(is_symbol("BTCUSD_PERP") && is_symbol("XBT/USD") && is_symbol("BTC-27DEC24"));
    }
}
