//! The gateway: subscribers, and the newest quotes on their way to them.
//!
//! | module | holds |
//! |---|---|
//! | `listener`, `handshake` | from an accepted socket to an upgraded connection |
//! | `reactor`, `shard` | a thread a core: the poll loop, and the state machine in it |
//! | `session`, `operations` | one subscriber's connection, and what its operations do |
//! | `slots`, `view`, `lane`, `port` | what is subscribed, what has changed, how a shard is told |
//! | `outbox`, `frames`, `protocol` | bytes, frames and messages on their way out |
//! | `cadence`, `confirm`, `flow`, `throttle`, `close` | the rules of one connection |
//! | [`control`] | limits in force, and the operator's hand on them |
//! | `stages` | what stands behind a feed's workers |
//! | [`stepped`] | all of it on one thread, under virtual time |
//! | [`stats`] | what is counted |
//! | `echo` | a session that echoes, to be tried by a conformance suite |
//!
//! What clients say and hear is written down in `src/gateway/PROTOCOL.md`.
//!
//! A value's way: a stage stores it on the board and marks it in each shard's lane; the shard
//! sweeps the lane, refreshes its copy, and marks the slots of those who want it; each session
//! builds a batch when its socket, its rate window and its limiter allow.

mod cadence;
pub mod close;
mod confirm;
pub mod control;
#[doc(hidden)]
pub mod echo;
mod flow;
mod frames;
mod handshake;
mod lane;
mod listener;
mod operations;
mod outbox;
mod port;
mod protocol;
mod reactor;
mod session;
mod shard;
mod slots;
mod stages;
pub mod stats;
pub mod stepped;
mod throttle;
mod view;

/// The lane and the bell by themselves, for the model checks alone.
#[cfg(feature = "loom")]
#[doc(hidden)]
pub mod model {
    pub use super::lane::{Bell, Lane};
}

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use mio::{Poll, Waker};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use close::Close;
pub use control::{Control, Limits, Retune, RetuneError, Subscriber};
pub use protocol::{Confirm, PATH, Why};
pub use shard::Report;
pub use stages::{BoardStage, LedgerStage};
pub use stats::{Refused, Stats};

use crate::board::Board;
use crate::clock::Clock;
use crate::ingest::Feeds;
use crate::ledger::Ledger;
use crate::market::{Accounts, InstrumentId, Instruments, Quote, Volume, VolumeId, VolumeKeys};
use lane::{Bell, Lane};
use port::Port;
use reactor::{Reactor, WAKER};
use shard::{Command, Shard};
use view::{Spell, View};

/// Commands that may wait for a shard.
const COMMANDS: usize = 4096;

/// How long an answer of the shards may take.
const REPORT_TIMEOUT: Duration = Duration::from_secs(2);

/// What the parts of a gateway share.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) volume_keys: Arc<VolumeKeys>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) control: Control,
    pub(crate) stats: Stats,
    /// Changes with every start: ticks are counted anew then.
    pub(crate) epoch: String,
    /// The venues of the configured feeds.
    pub(crate) venues: Vec<String>,
    ports: Arc<[Port]>,
}

impl Shared {
    fn new(parts: Parts, limits: Limits, ports: Arc<[Port]>) -> Arc<Self> {
        let Parts { clock, instruments, accounts, volume_keys, feeds } = parts;
        let mut venues: Vec<String> = feeds.iter().map(|feed| feed.venue().to_owned()).collect();
        venues.sort_unstable();
        venues.dedup();
        Arc::new(Self {
            epoch: format!("{:x}", clock.wall()),
            clock,
            instruments,
            accounts,
            volume_keys,
            feeds,
            control: Control::new(limits, ports.clone()),
            stats: Stats::default(),
            venues,
            ports,
        })
    }

    fn least_loaded_port(&self) -> &Port {
        // There is always a first: a gateway has at least one shard.
        self.ports.iter().min_by_key(|port| port.load()).unwrap_or(&self.ports[0])
    }
}

/// What a gateway is made of that others made before it.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Time.
    pub clock: Clock,
    /// Every instrument.
    pub instruments: Arc<Instruments>,
    /// Every account.
    pub accounts: Arc<Accounts>,
    /// Every pair of account and instrument.
    pub volume_keys: Arc<VolumeKeys>,
    /// Every feed.
    pub feeds: Arc<Feeds>,
}

/// A running gateway.
pub struct Gateway {
    shared: Arc<Shared>,
    board: Arc<Board<Quote>>,
    ledger: Arc<Ledger>,
    threads: Vec<JoinHandle<()>>,
}

impl Gateway {
    /// Starts the shards: `shards` threads, or one a core if 0. Nothing is listened to yet.
    ///
    /// # Errors
    ///
    /// If a poll or a thread cannot be made.
    pub fn start(parts: Parts, limits: Limits, shards: usize) -> io::Result<Self> {
        let Parts { instruments, accounts, volume_keys, .. } = &parts;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = if shards == 0 { cores } else { shards };
        let board = Arc::new(Board::new(instruments.limit()));
        let ledger =
            Arc::new(Ledger::new(volume_keys.clone(), accounts.clone(), instruments.clone()));
        let mut ports = Vec::with_capacity(count);
        let mut insides = Vec::with_capacity(count);
        for _ in 0..count {
            let poll = Poll::new()?;
            let waker = Waker::new(poll.registry(), WAKER)?;
            let (sender, commands) = sync_channel(COMMANDS);
            let (bell, load) = (Arc::new(Bell::new()), Arc::new(AtomicUsize::new(0)));
            ports.push(Port {
                quotes: Arc::new(Lane::new(instruments.limit())),
                volumes: Arc::new(Lane::new(volume_keys.limit())),
                bell: bell.clone(),
                load: load.clone(),
                commands: sender,
                waker: Arc::new(move || {
                    if let Err(error) = waker.wake() {
                        tracing::error!(%error, "a shard could not be woken");
                    }
                }),
            });
            insides.push((poll, commands, bell, load));
        }
        let ports: Arc<[Port]> = ports.into();
        let shared = Shared::new(parts, limits, ports.clone());
        shared.feeds.on_change(Box::new(move || ports.iter().for_each(Port::wake)));
        let threads = insides
            .into_iter()
            .enumerate()
            .map(|(index, (poll, commands, bell, load))| {
                let port = &shared.ports[index];
                let quotes = View::new(board.clone(), port.quotes.clone(), spell_quote(&shared));
                let volumes =
                    View::new(ledger.board().clone(), port.volumes.clone(), spell_volume(&shared));
                let shard = Shard::new(index, shared.clone(), quotes, volumes);
                let clock = shared.clock.clone();
                let reactor = Reactor { shard, poll, bell, commands, load, clock };
                std::thread::Builder::new()
                    .name(format!("shard-{index}"))
                    .spawn(move || reactor.run())
            })
            .collect::<io::Result<Vec<_>>>()?;
        Ok(Self { shared, board, ledger, threads })
    }

    /// A future that accepts subscribers until stopped, to be spawned.
    pub fn listening(
        &self,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + use<> {
        listener::listen(listener, self.shared.clone(), stop)
    }

    /// The stage that puts a feed's quotes on the board.
    #[must_use]
    pub fn board_stage(&self, feed: &str) -> BoardStage {
        BoardStage::new(self.board.clone(), &self.shared, feed)
    }

    /// The stage that adds a feed's fills to the ledger.
    #[must_use]
    pub fn ledger_stage(&self, feed: &str) -> LedgerStage {
        LedgerStage::new(self.ledger.clone(), &self.shared, feed)
    }

    /// Limits in force, and the operator's hand on them.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.shared.control
    }

    /// What is counted.
    #[must_use]
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// Every feed.
    #[must_use]
    pub fn feeds(&self) -> &Arc<Feeds> {
        &self.shared.feeds
    }

    /// Every instrument.
    #[must_use]
    pub fn instruments(&self) -> &Arc<Instruments> {
        &self.shared.instruments
    }

    /// Every account.
    #[must_use]
    pub fn accounts(&self) -> &Arc<Accounts> {
        &self.shared.accounts
    }

    /// Every pair of account and instrument.
    #[must_use]
    pub fn volume_keys(&self) -> &Arc<VolumeKeys> {
        &self.shared.volume_keys
    }

    /// The newest quote of every instrument.
    #[must_use]
    pub fn board(&self) -> &Arc<Board<Quote>> {
        &self.board
    }

    /// Every account's volume.
    #[must_use]
    pub fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// The accounts of one subscriber, or of all, in the order of their numbers; shards that do
    /// not answer within two seconds are left out.
    pub async fn report(&self, subscriber: Option<u64>) -> Vec<Report> {
        let ports = match subscriber {
            Some(id) => match self.shared.control.shard_of(id) {
                Some(shard) => &self.shared.ports[shard..=shard],
                None => return Vec::new(),
            },
            None => &self.shared.ports[..],
        };
        let answers = ports.iter().filter_map(|port| {
            let (reply, answer) = tokio::sync::oneshot::channel();
            port.command(Command::Report { subscriber, reply }).ok().map(|()| answer)
        });
        let answers: Vec<_> = answers.collect();
        let mut reports = Vec::new();
        for answer in answers {
            match tokio::time::timeout(REPORT_TIMEOUT, answer).await {
                Ok(Ok(part)) => reports.extend(part),
                _ => tracing::warn!("a shard did not answer in time"),
            }
        }
        reports.sort_by_key(|report| report.id);
        reports
    }

    /// Sends newest values, notice and close to everybody, within `deadline`.
    pub fn finish(&self, deadline: Duration) {
        for port in self.shared.ports.iter() {
            if port.command(Command::Finish { deadline }).is_err() {
                tracing::error!("a shard could not be told to finish");
            }
        }
    }

    /// Whether every shard has ended, which each does once its connections are closed after a
    /// [`finish`](Self::finish).
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits until every shard has ended.
    pub async fn finished(&self) {
        while !self.has_finished() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

impl Drop for Gateway {
    /// Ends the shards and their connections at once, where no [`finish`](Self::finish) has.
    fn drop(&mut self) {
        for port in self.shared.ports.iter() {
            // A shard that has ended already takes no command.
            let _ = port.command(Command::Finish { deadline: Duration::ZERO });
        }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").field("control", self.control()).finish_non_exhaustive()
    }
}

fn spell_quote(shared: &Arc<Shared>) -> Spell<Quote> {
    let instruments = shared.instruments.clone();
    Arc::new(move |topic, quote, out| {
        #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
        protocol::write_quote(instruments.name(InstrumentId(topic as u32)), quote, out);
    })
}

fn spell_volume(shared: &Arc<Shared>) -> Spell<Volume> {
    let (keys, accounts, instruments) =
        (shared.volume_keys.clone(), shared.accounts.clone(), shared.instruments.clone());
    Arc::new(move |topic, volume, out| {
        #[expect(clippy::cast_possible_truncation, reason = "ids are 32 bits")]
        if let Some((account, instrument)) = keys.key(VolumeId(topic as u32)) {
            protocol::write_volume(
                accounts.name(account),
                instruments.name(instrument),
                volume,
                out,
            );
        }
    })
}
