//! Why a worker does not take what it is given, apart from what that is.

use super::lifecycle::{CloseReason, NoRoom};

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
