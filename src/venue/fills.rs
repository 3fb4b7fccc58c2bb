//! Our own lines of fills, for publishers in the house: one JSON object a line.
//!
//! ```text
//! {"id":"f-1","account":"desk-1","instrument":"binance:BTCUSDT","side":"buy","price":"61837.63","quantity":"0.5","time":1723161256000}
//! ```
//!
//! | member | is |
//! |---|---|
//! | `id` | the fill's own id, text or number: of an account's instrument and side, one of the last 10,000 counts once |
//! | `account` | whose fill; may be left out if the feed's configuration says it |
//! | `instrument` | `venue:SYMBOL`, of any venue that is known here |
//! | `side` | `buy` or `sell`, as the account sees it |
//! | `price`, `quantity` | of this execution; text or numbers |
//! | `time` | when it was executed, in milliseconds since the Unix epoch; may be left out |
//! | `type` | `fill`, or left out; any other is unknown |
//!
//! Such a feed gives no quotes: it owns no instrument, and its fills stand beside the quotes that
//! another feed gives. A fill of no quantity is counted as `order`.

mod decode;

pub(super) use decode::{answers, codec};
