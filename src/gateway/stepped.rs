//! A gateway without threads and sockets, stepped on the caller's thread under a time it is told.
//!
//! Shard, sessions, board and ledger are those of a running [`Gateway`](super::Gateway), and so are
//! the protocol's bytes; only the connections are in memory, each with a modelled client at its
//! end. What comes out is then a function of what goes in: the same changes at the same times give
//! the same bytes, on any machine.
//!
//! The caller owns a [manual clock](crate::clock::Clock::manual), moves it to the time when something
//! is due next, brings what has changed then onto the board, and [settles](Stepped::settle) the
//! gateway.

mod client;
mod line;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, sync_channel};

pub use client::Opcode;
pub use line::Delivered;

use super::lane::{Bell, Lane};
use super::port::Port;
use super::shard::{Command, Report, Shard};
use super::view::View;
use super::{
    BoardStage, Control, Limits, Parts, Retune, RetuneError, Shared, Stats, spell_quote,
    spell_volume,
};
use crate::board::Board;
use crate::clock::Instant;
use crate::ledger::Ledger;
use crate::market::Quote;
use line::Line;

/// Turns of the shard at one instant before the time is moved on all the same. One turn sends each
/// session a batch, so this is far above what a gateway needs that comes to rest.
const TURNS_AT_ONCE: usize = 100_000;

/// A modelled client: what it asks for, and how fast it reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientModel {
    /// Instruments and patterns, as the protocol's `subscribe` takes them.
    pub instruments: Vec<String>,
    /// Accounts whose volume is wanted; `*` is all.
    pub accounts: Vec<String>,
    /// The rate it wishes for, in batches a second; `None` for no wish.
    pub max_hz: Option<f64>,
    /// Batches in flight the operator allows it; `None` for the common limit.
    pub capacity: Option<usize>,
    /// Bytes a second that it reads; `None` reads at once whatever is sent.
    pub reads_per_s: Option<NonZeroU64>,
}

/// See the module.
pub struct Stepped {
    shared: Arc<Shared>,
    board: Arc<Board<Quote>>,
    ledger: Arc<Ledger>,
    shard: Shard<Line>,
    /// Clients in the order in which they connected.
    seats: Vec<Seat>,
    /// Kept so that the port has somebody to send to.
    _commands: Receiver<Command>,
}

enum Seat {
    /// Its session's number in the shard, and its subscriber's.
    Open { index: u32, subscriber: u64 },
    /// The connection is over; what its client has not read yet is still on its way.
    Ended(Box<Line>),
}

impl Stepped {
    /// A gateway of one shard. The clock in `parts` should be a manual one.
    #[must_use]
    pub fn new(parts: Parts, limits: Limits) -> Self {
        let (sender, commands) = sync_channel(1);
        let port = Port {
            quotes: Arc::new(Lane::new(parts.instruments.limit())),
            volumes: Arc::new(Lane::new(parts.volume_keys.limit())),
            bell: Arc::new(Bell::new()),
            load: Arc::new(AtomicUsize::new(0)),
            commands: sender,
            waker: Arc::new(|| {}),
        };
        let board = Arc::new(Board::new(parts.instruments.limit()));
        let ledger = Arc::new(Ledger::new(
            parts.volume_keys.clone(),
            parts.accounts.clone(),
            parts.instruments.clone(),
        ));
        let shared = Shared::new(parts, limits, Arc::new([port]));
        let port = &shared.ports[0];
        let quotes = View::new(board.clone(), port.quotes.clone(), spell_quote(&shared));
        let volumes =
            View::new(ledger.board().clone(), port.volumes.clone(), spell_volume(&shared));
        let shard = Shard::new(0, shared.clone(), quotes, volumes);
        Self { shared, board, ledger, shard, seats: Vec::new(), _commands: commands }
    }

    /// Connects a client, which subscribes at once; answers its place among all clients, from 0.
    ///
    /// # Errors
    ///
    /// [`RetuneError`] if its capacity is above the most.
    pub fn connect(&mut self, model: &ClientModel) -> Result<usize, RetuneError> {
        let now = self.shared.clock.now();
        let place = self.seats.len();
        let line = Line::new(place, self.shared.clock.clone(), model);
        let peer = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let index = self.shard.adopt(line, Vec::new(), peer, None, now);
        let subscriber = self.shard.subscriber(index).map_or(0, |subscriber| subscriber.id());
        self.seats.push(Seat::Open { index, subscriber });
        if model.capacity.is_some() {
            self.control().retune(Retune {
                subscriber: Some(subscriber),
                capacity: model.capacity,
                ..Retune::default()
            })?;
        }
        self.shard.stirred(index, true, now);
        Ok(place)
    }

    /// The stage that puts a feed's quotes on the board.
    #[must_use]
    pub fn board_stage(&self, feed: &str) -> BoardStage {
        BoardStage::new(self.board.clone(), &self.shared, feed)
    }

    /// The stage that adds a feed's fills to the ledger.
    #[must_use]
    pub fn ledger_stage(&self, feed: &str) -> super::LedgerStage {
        super::LedgerStage::new(self.ledger.clone(), &self.shared, feed)
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

    /// Lets everything happen that is to happen now. Answers when something is due next, if nothing
    /// changes before.
    pub fn settle(&mut self) -> Option<Instant> {
        let now = self.shared.clock.now();
        for _ in 0..TURNS_AT_ONCE {
            let due = self.shard.turn(now);
            self.keep_ended();
            let read = self.read(now);
            let waits = self.shard.has_work() && !self.shard.is_pacing();
            if !read && !waits && due.is_none_or(|due| due > now) {
                return self.due(due);
            }
        }
        self.due(None)
    }

    /// The earliest of what the shard waits for and what the clients will have read.
    fn due(&mut self, shard: Option<Instant>) -> Option<Instant> {
        let mut due = shard;
        for place in 0..self.seats.len() {
            let read = self.line(place).and_then(|line| line.next_read());
            due = due.into_iter().chain(read).min();
        }
        due
    }

    /// Lets each client read what it has had the time for; answers whether any did.
    fn read(&mut self, now: Instant) -> bool {
        let mut any = false;
        for place in 0..self.seats.len() {
            let Some(line) = self.line(place) else { continue };
            if !line.read(now) {
                continue;
            }
            any = true;
            if let Seat::Open { index, .. } = self.seats[place] {
                self.shard.stirred(index, true, now);
            }
        }
        any
    }

    fn line(&mut self, place: usize) -> Option<&mut Line> {
        match self.seats.get_mut(place)? {
            Seat::Open { index, .. } => self.shard.link(*index),
            Seat::Ended(line) => Some(line),
        }
    }

    /// Keeps the lines of sessions that have ended: their clients still read.
    fn keep_ended(&mut self) {
        for line in self.shard.take_gone() {
            if let Some(seat) = self.seats.get_mut(line.place()) {
                *seat = Seat::Ended(Box::new(line));
            }
        }
    }

    /// Hands over the frames that a client has read since this was last asked, in order.
    pub fn take_delivered(&mut self, client: usize, mut take: impl FnMut(Delivered)) {
        if let Some(line) = self.line(client) {
            line.take_delivered(&mut take);
        }
    }

    /// A client's accounts, while it is connected.
    #[must_use]
    pub fn report(&self, client: usize) -> Option<Report> {
        match self.seats.get(client)? {
            Seat::Open { subscriber, .. } => self.shard.report(Some(*subscriber)).pop(),
            Seat::Ended(_) => None,
        }
    }

    /// Begins to close every connection: newest values, notice, close.
    pub fn finish(&mut self) {
        self.shard.finish();
    }

    /// Whether every connection is closed and every client has read all that was sent to it.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.seats.iter().all(|seat| match seat {
            Seat::Open { .. } => false,
            Seat::Ended(line) => line.next_read().is_none(),
        })
    }
}

impl std::fmt::Debug for Stepped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stepped").field("clients", &self.seats.len()).finish_non_exhaustive()
    }
}
