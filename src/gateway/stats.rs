//! What the gateway counts, where it happens. The admin server shows it.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use super::close::Close;
use super::protocol::Why;
use super::session::Batch;

/// Why a handshake was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many subscribers as allowed: 503.
    Full,
    /// Not the stream's path: 404.
    Path,
    /// The origin is not allowed: 403.
    Origin,
    /// Not a WebSocket upgrade: 400 or 426.
    NotUpgrade,
    /// The request's head is too long: 431.
    TooLong,
    /// The head did not come in time: 408.
    Slow,
    /// The gateway is shutting down, or a shard's queue is full: 503.
    Unavailable,
}

impl Refused {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Full,
        Self::Path,
        Self::Origin,
        Self::NotUpgrade,
        Self::TooLong,
        Self::Slow,
        Self::Unavailable,
    ];

    /// As metrics spell it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Path => "path",
            Self::Origin => "origin",
            Self::NotUpgrade => "not_upgrade",
            Self::TooLong => "too_long",
            Self::Slow => "slow",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The gateway's counters.
#[derive(Debug)]
pub struct Stats {
    /// Quotes written to subscribers.
    pub delivered: Counter,
    /// Ticks skipped for subscribers because a newer value stood for them.
    pub conflated: Counter,
    /// Bytes of batches.
    pub bytes: Counter,
    /// Batches sent, by what held them.
    pub batches: [Counter; Why::ALL.len()],
    /// Connections the gateway closed, by reason.
    pub closed: [Counter; Close::ALL.len()],
    /// Handshakes refused, by reason.
    pub refused: [Counter; Refused::ALL.len()],
    /// Connections accepted.
    pub accepted: Counter,
    /// Sweeps over changed topics.
    pub sweeps: Counter,
    /// Seconds from the acceptance of the oldest change in a batch to its send.
    pub held: Histogram,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            delivered: Counter::default(),
            conflated: Counter::default(),
            bytes: Counter::default(),
            batches: Default::default(),
            closed: Default::default(),
            refused: Default::default(),
            accepted: Counter::default(),
            sweeps: Counter::default(),
            held: Histogram::new(exponential_buckets(10e-6, 2.0, 22)),
        }
    }
}

impl Stats {
    pub(crate) fn sent(&self, batch: &Batch) {
        self.delivered.inc_by(batch.quotes);
        self.conflated.inc_by(batch.conflated);
        self.bytes.inc_by(batch.bytes as u64);
        self.batches[batch.why.index()].inc();
        self.held.observe(batch.held.as_secs_f64());
    }
}
