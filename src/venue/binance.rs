//! Binance spot, USDⓈ-M and COIN-M: `bookTicker`, `trade` and `aggTrade` as quotes,
//! `executionReport` and `ORDER_TRADE_UPDATE` as fills.
//!
//! The shapes are those of the venue's own documents (spot: *WebSocket Streams* and *User Data
//! Streams*; futures: *Websocket Market Streams* and *User Data Streams*), raw or in the wrappers
//! `{"stream":…,"data":…}` and `{"subscriptionId":…,"event":…}`.
//!
//! One convention is ours: a member `"account"` beside an event's members, or in its wrapper, names
//! the account that a fill belongs to, since the venue's messages do not.

mod answers;
mod decode;
mod message;
mod names;

pub(super) use answers::answers;
pub(super) use decode::{futures, spot};
