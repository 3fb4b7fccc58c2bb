//! Bitstamp: the top of `order_book` and `live_trades`, in today's form and in that of 2015.
//!
//! Today's shapes are those of the venue's own document (*Websocket API v2*). In 2015 the messages of
//! the one market there was, `btcusd`, came without a channel's name; recordings of that time hold an
//! event's name and its data in one line: `trade {"price": 236.47, …}`.
//!
//! - The market stands in the channel's name, `live_trades_btcusd`, and is spelled as there.
//! - Order books have no number, so the order of arrival counts; ids of trades rise.
//! - A trade tells its price and size twice, as a number and as text with all its digits. The text is
//!   read where there is one. The numbers of 2015 show the floats that they were; they are kept as
//!   sent.

mod answers;
mod decode;
mod names;

pub(super) use answers::answers;
pub(super) use decode::codec;
