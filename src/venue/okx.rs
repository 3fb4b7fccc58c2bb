//! OKX v5: `tickers`, `trades`, `trades-all` and `bbo-tbt` as quotes.
//!
//! The shapes are those of the venue's own documents (*API v5, WebSocket*): one `arg` that names
//! channel and instrument, and `data` of rows. Every number is text.
//!
//! - `bbo-tbt` is the whole top of the book: a side without levels is withdrawn. Its `seqId` orders
//!   it; tickers bear no such id, and count in the order of their arrival.
//! - The trade ids of a channel rise; `trades` joins trades of one price, so it counts apart from
//!   `trades-all`.
//! - The text `pong`, which is not JSON, answers the text `ping`.
//! - `notice` says that the connection is about to be closed.

mod answers;
mod decode;
mod message;
mod names;

pub(super) use answers::answers;
pub(super) use decode::codec;
