//! BitMEX: the tables `quote` and `trade` as quotes, `execution` as fills.
//!
//! The shapes are those of the venue's own documents (*WebSocket API*): a table, an action
//! (`partial`, `insert`, `update`, `delete`), and rows. Numbers are JSON numbers, read as decimals.
//!
//! - Each row is a tick: quotes come several in a message, in their order.
//! - An `update` holds only what has changed, and is merged into what is held; one before anything is
//!   held is dropped and counted (`no_snapshot`).
//! - Trades are told apart by `trdMatchID`, the last 10,000 of each instrument, and ordered by time.
//!   Index prices come as trades too, with an id of zeros or none: those cannot be told apart.
//! - An execution of the type `Trade` is a fill, of the account that it names. Funding, settlement and
//!   the like, which the venue makes itself, are counted as `calculated`.

mod answers;
mod decode;
mod message;
mod names;

pub(super) use answers::answers;
pub(super) use decode::codec;
