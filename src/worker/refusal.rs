//! Why a worker does not take what it is given.

use super::lifecycle::{CloseReason, NoRoom};
use std::fmt;

/// Why items were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Every place is taken, and the caller does not wait or would wait for itself.
    #[error("every place is taken")]
    Full,
    /// The worker takes no more items.
    #[error("the worker is {0}")]
    Closed(CloseReason),
}

impl From<CloseReason> for Refusal {
    fn from(reason: CloseReason) -> Self {
        Self::Closed(reason)
    }
}

impl From<NoRoom> for Refusal {
    fn from(none: NoRoom) -> Self {
        match none {
            NoRoom::Closed(reason) => Self::Closed(reason),
            NoRoom::WouldDeadlock => Self::Full,
        }
    }
}

/// Why an item was not taken. The item is inside.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError<T> {
    /// Taking it would have to wait. Only `try_dispatch` says so, and a dispatch from the consumer's
    /// own thread, which would wait for itself.
    #[error("dispatching an item: every place is taken")]
    Full(T),
    /// The worker takes no more items.
    #[error("dispatching an item: the worker is {1}")]
    Closed(T, CloseReason),
}

impl<T> SendError<T> {
    /// The item that was refused.
    pub fn into_item(self) -> T {
        match self {
            Self::Full(item) | Self::Closed(item, _) => item,
        }
    }
}

/// Shows the kind alone, so that any item will do.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(_) => f.write_str("Full(..)"),
            Self::Closed(_, reason) => write!(f, "Closed(.., {reason:?})"),
        }
    }
}

/// Why a batch was not taken to its end.
#[derive(thiserror::Error)]
#[error("dispatching a batch: after {accepted} items {why}")]
pub struct BatchError<T> {
    /// How many items were accepted before.
    pub accepted: u64,
    /// Items that were taken from the iterator and refused, in order; often none.
    pub refused: Vec<T>,
    /// Why.
    pub why: Refusal,
}

impl<T> fmt::Debug for BatchError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchError({}, .., {:?})", self.accepted, self.why)
    }
}

impl<T> SendError<T> {
    pub(super) fn new(item: T, refusal: Refusal) -> Self {
        match refusal {
            Refusal::Full => Self::Full(item),
            Refusal::Closed(reason) => Self::Closed(item, reason),
        }
    }
}
