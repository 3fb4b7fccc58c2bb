//! Whether a feed's data is live. Kept beside the instruments, never inside a quote.

/// The state of a feed's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// Data flows, or a quiet market is known to be quiet.
    Live,
    /// What is known may be old.
    Stale(StaleReason),
}

/// Why a feed's data may be old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StaleReason {
    /// Nothing has been received yet.
    Starting,
    /// The feed starts with the first subscriber to one of its instruments.
    AwaitingSubscriber,
    /// A replay is held where it is, by whoever controls it.
    Paused,
    /// The recording has been played to its end.
    Ended,
    /// The connection to the source is down; the feed tries again.
    Disconnected,
    /// The connection stood and gave no sign of life; it was given up, and the feed tries again.
    Silent,
    /// The feed has failed and does not go on.
    Failed,
    /// The gateway is shutting down.
    Shutdown,
}

impl Health {
    /// `live` or `stale`, as the protocol spells it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Stale(_) => "stale",
        }
    }

    /// The reason, as the protocol spells it; `None` while live.
    #[must_use]
    pub const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Live => None,
            Self::Stale(reason) => Some(match reason {
                StaleReason::Starting => "starting",
                StaleReason::AwaitingSubscriber => "awaiting_subscriber",
                StaleReason::Paused => "paused",
                StaleReason::Ended => "ended",
                StaleReason::Disconnected => "disconnected",
                StaleReason::Silent => "silent",
                StaleReason::Failed => "failed",
                StaleReason::Shutdown => "shutdown",
            }),
        }
    }
}
