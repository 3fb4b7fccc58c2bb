//! The words of the market: instruments, quotes, fills, and the exact numbers in them.
//!
//! | module | holds |
//! |---|---|
//! | [`decimal`] | reading and writing exact decimals, and sums that never round |
//! | [`instrument`] | `venue:SYMBOL` names interned to dense ids |
//! | [`quote`] | the newest state of one instrument |
//! | [`fill`] | one execution of an account, and what fills fold into |
//! | [`health`] | whether a feed's data is live |
//!
//! Nothing here does I/O, reads a clock or knows a venue's format.

pub mod decimal;
pub mod fill;
pub mod health;
pub mod instrument;
pub mod quote;
pub(crate) mod registry;
pub(crate) mod table;

pub use decimal::Decimal;
pub use fill::{AccountId, Accounts, Fill, Side, Volume, VolumeId, VolumeKeys};
pub use health::Health;
pub use instrument::{FeedId, InstrumentId, Instruments};
pub use quote::Quote;
