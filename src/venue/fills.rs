//! Our own lines of fills, for publishers in the house: one JSON object a line, whose members
//! [`venue`](super) tells.
//!
//! Such a feed gives no quotes: it owns no instrument, and its fills stand beside the quotes that
//! another feed gives. A fill of no quantity is counted as `order`.

mod decode;

pub(super) use decode::{answers, codec};
