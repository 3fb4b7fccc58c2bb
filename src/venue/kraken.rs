//! Kraken spot: `ticker` and `trade`, in the arrays of its first socket interface and the objects of
//! its second.
//!
//! The shapes are those of the venue's own documents (*Spot WebSockets v1* and *v2*). One codec reads
//! both, since both tell of one market: an instrument is called by the second interface's name, so
//! that `XBT/USD` of the first is `kraken:BTC/USD`, and `XDG/USD` is `kraken:DOGE/USD`. Each of the
//! two parts between which the `/` stands is looked at alone, and nothing else is changed.
//!
//! - The first interface numbers no trade. A trade that is sent again cannot be told from another of
//!   the same price and size in the same microsecond, and is a tick; an older one never moves `last`.
//! - Its ticker has no time, so its last price gives way to any trade that was told.
//! - The second interface sends its numbers unquoted. They are read by their digits.

mod answers;
mod decode;
mod names;
mod scan;

pub(super) use answers::answers;
pub(super) use decode::codec;
