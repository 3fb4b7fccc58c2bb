//! Deribit: `ticker`, `quote` and `trades` as quotes.
//!
//! The shapes are those of the venue's own documents (*API v2, JSON-RPC over WebSocket*): a
//! notification `{"method":"subscription","params":{"channel":…,"data":…}}`. Numbers are JSON numbers,
//! read as decimals; best prices of zero, as the venue sends them for a side that nobody offers, are
//! passed on as they are.
//!
//! - Trades of an instrument are ordered by `trade_seq`, which rises by one.
//! - A combination's trade is one of the combination; its legs are told on their own channels.
//! - Heartbeats come as `{"method":"heartbeat","params":{"type":"test_request"}}`, which must be
//!   answered.

mod answers;
mod decode;
mod message;
mod names;

pub(super) use answers::answers;
pub(super) use decode::codec;
