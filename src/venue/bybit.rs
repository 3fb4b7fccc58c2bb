//! Bybit v5: `tickers`, `publicTrade` and `orderbook.1` as quotes, `execution` as fills.
//!
//! The shapes are those of the venue's own documents (*v5, WebSocket Stream*), for spot, linear,
//! inverse and option alike; trades also as the venue sent them before v5 (`trade.BTCUSD`).
//!
//! - A ticker's `delta` holds only what has changed and is merged into what is held. One that comes
//!   before its `snapshot` is dropped and counted (`no_snapshot`): what it leaves out is not known.
//! - Tickers and the top of the book bear the same cross sequence (`cs`, `seq`), which orders them,
//!   whichever of the two a message is. `u` of 1 says that the service has started anew.
//! - `orderbook.1` sent again unchanged, as after three seconds of silence, is no tick (`repeat`).
//! - Trades are told apart by their id, the last 10,000 of each instrument, and ordered by time.
//! - An execution of the type `Trade`, `BlockTrade` or `FutureSpread`, or of the fast stream, which
//!   says no type, is a fill; those that the venue makes itself (deleveraging, takeover, delivery,
//!   settlement) are counted as `calculated`.
//!
//! One convention is ours: a member `"account"` in a row or beside the topic names the account of a
//! fill, since the venue's messages do not.

mod answers;
mod decode;
mod message;
mod names;

pub(super) use answers::answers;
pub(super) use decode::codec;
