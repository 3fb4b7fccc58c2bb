//! The stages behind a feed's workers: newest quotes onto the board, folded fills into the ledger.

use std::convert::Infallible;
use std::sync::Arc;

use super::Shared;
use super::port::Port;
use crate::board::Board;
use crate::clock::Clock;
use crate::ingest::Accepted;
use crate::ledger::{Ledger, LedgerError};
use crate::market::{InstrumentId, Quote, Volume, VolumeId};
use crate::worker::{CoalescingHandler, ConflationHandler, Outcome, WorkerError};

/// Puts each instrument's newest quote on the board and tells the shards.
pub struct BoardStage {
    board: Arc<Board<Quote>>,
    ports: Arc<[Port]>,
    feed: String,
    /// Whether shards are rung for many quotes together.
    gathers: bool,
    /// Whether each shard is to be rung for.
    owed: Box<[bool]>,
}

impl BoardStage {
    pub(super) fn new(board: Arc<Board<Quote>>, shared: &Shared, feed: &str) -> Self {
        let (ports, feed) = (shared.ports.clone(), feed.to_owned());
        let owed = ports.iter().map(|_| false).collect();
        Self { board, ports, feed, gathers: false, owed }
    }

    /// The same stage for a caller that steps it and says when the shards are to be rung for: a ring
    /// is a system call, and a shard that is woken by the first quote of many sends it alone.
    #[must_use]
    pub fn gathering(self) -> Self {
        Self { gathers: true, ..self }
    }

    /// Rings the shards that sleep and want to hear of what was handled since the last ring.
    pub fn ring(&mut self) {
        for (port, owed) in self.ports.iter().zip(&mut self.owed) {
            if std::mem::take(owed) {
                port.ring();
            }
        }
    }
}

impl ConflationHandler<InstrumentId, Accepted<Quote>> for BoardStage {
    type Error = Infallible;

    fn handle(&mut self, key: &InstrumentId, quote: Accepted<Quote>) -> Result<(), Infallible> {
        let first = self.board.store(key.index(), quote);
        for (port, owed) in self.ports.iter().zip(&mut self.owed) {
            *owed |= port.quotes.mark(key.index(), first);
        }
        if !self.gathers {
            self.ring();
        }
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<Infallible>) {
        tracing::error!(feed = self.feed, %error, "the board's stage failed on a quote");
    }

    fn on_completed(&mut self, outcome: Outcome) {
        self.ring();
        tracing::debug!(feed = self.feed, ?outcome, "the board's stage has ended");
    }
}

impl std::fmt::Debug for BoardStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BoardStage").field("feed", &self.feed).finish_non_exhaustive()
    }
}

/// Adds each account's folded fills to its total and tells the shards.
pub struct LedgerStage {
    ledger: Arc<Ledger>,
    ports: Arc<[Port]>,
    clock: Clock,
    feed: String,
}

impl LedgerStage {
    pub(super) fn new(ledger: Arc<Ledger>, shared: &Shared, feed: &str) -> Self {
        Self {
            ledger,
            ports: shared.ports.clone(),
            clock: shared.clock.clone(),
            feed: feed.to_owned(),
        }
    }
}

impl CoalescingHandler<VolumeId, Volume> for LedgerStage {
    type Error = LedgerError;

    fn coalesce(current: &mut Volume, incoming: Volume) {
        // A sum that would round has to be refused, and a fold has no way to say so but a panic;
        // the worker keeps the old sum and hands the volume back to the feed, which counts it.
        if let Err(error) = current.add(incoming) {
            std::panic::panic_any(error.to_string());
        }
    }

    fn handle(&mut self, key: &VolumeId, total: Volume) -> Result<(), LedgerError> {
        let first = self.ledger.add(*key, total, self.clock.now())?;
        for port in self.ports.iter() {
            if port.volumes.mark(key.0 as usize, first) {
                port.ring();
            }
        }
        Ok(())
    }

    fn on_error(&mut self, error: WorkerError<LedgerError>) {
        tracing::error!(feed = self.feed, %error, "fills could not be added to their total");
    }

    fn on_completed(&mut self, outcome: Outcome) {
        tracing::debug!(feed = self.feed, ?outcome, "the ledger's stage has ended");
    }
}

impl std::fmt::Debug for LedgerStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerStage").field("feed", &self.feed).finish_non_exhaustive()
    }
}
