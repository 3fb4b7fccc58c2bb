//! The outside of a shard: what other threads may do to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use super::lane::{Bell, Lane};
use super::shard::Command;

/// How a shard that sleeps in its socket poll is woken.
pub(crate) type Waker = Arc<dyn Fn() + Send + Sync>;

/// What other threads hold of a shard.
pub(crate) struct Port {
    pub(crate) quotes: Arc<Lane>,
    pub(crate) volumes: Arc<Lane>,
    pub(crate) bell: Arc<Bell>,
    /// Connections the shard has or is about to get.
    pub(crate) load: Arc<AtomicUsize>,
    pub(crate) commands: SyncSender<Command>,
    pub(crate) waker: Waker,
}

impl Port {
    /// Hands the shard a command and wakes it; gives it back if the shard's queue is full.
    pub(crate) fn command(&self, command: Command) -> Result<(), Command> {
        match self.commands.try_send(command) {
            Ok(()) => {
                self.wake();
                Ok(())
            }
            Err(TrySendError::Full(command) | TrySendError::Disconnected(command)) => Err(command),
        }
    }

    /// Wakes the shard if it sleeps until something is marked.
    pub(crate) fn ring(&self) {
        if self.bell.must_ring() {
            self.wake();
        }
    }

    /// Wakes the shard whether it sleeps or paces.
    pub(crate) fn wake(&self) {
        (self.waker)();
    }

    /// A connection is about to be handed over.
    pub(crate) fn joining(&self) {
        self.load.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection that was about to be handed over was not.
    pub(crate) fn left(&self) {
        self.load.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }
}
