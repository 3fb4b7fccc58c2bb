//! Coinbase: Exchange (`ticker`, `matches`) and Advanced Trade (`ticker`, `market_trades`).
//!
//! The shapes are those of the venue's own documents (*Exchange WebSocket Channels*, *Advanced Trade
//! WebSocket Channels*). Both feeds tell of one order book with one series of trade ids; they are
//! two venues here since their connections are others.
//!
//! - Exchange numbers every message of a product: a ticker with a lower `sequence` is late. A ticker
//!   is told with the trade that caused it, so it counts as that trade, once, whichever of `match`
//!   and `ticker` came first.
//! - Advanced Trade numbers the messages of a connection, which says nothing about a product: there
//!   the order of arrival counts. Its ticker names no trade; the price is as old as the message's
//!   `timestamp`.

mod advanced;
mod answers;
mod exchange;

pub(super) use advanced::codec as advanced;
pub(super) use answers::{advanced as advanced_answers, exchange as exchange_answers};
pub(super) use exchange::codec as exchange;
