//! A mock venue: a server that speaks a venue's own dialect, for trying a client against.
//!
//! It is given messages as the venue sends them, from a recording or a test, and gives each
//! connection those of the topics that it has asked for. A topic's newest message goes to whoever
//! subscribes it, as a venue's snapshot does. Everything that goes wrong between a venue and a client
//! can be made to go wrong here: see [`Faults`] and the methods of [`MockVenue`].
//!
//! # What it is not
//!
//! It knows no market: any topic can be asked for, and prices are what it was given. A connection
//! that does not read is cut once [`QUEUE`] messages wait for it.

mod connection;
mod play;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use play::{MockPlan, play};

use crate::clock::{Clock, Instant};
use crate::feed::live::{Topic, Wish};
use crate::venue::Venue;
use crate::venue::desk::{Asked, Desk};

/// Messages that may wait for one connection.
pub const QUEUE: usize = 65_536;

/// Messages of a topic that are kept to be sent again.
const MOST_KEPT: usize = 1024;

/// Requests whose times are kept.
const MOST_REQUESTS: usize = 100_000;

/// What is to go wrong until it is set otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Connections are answered with 429 instead of an upgrade.
    pub refuse_connections: bool,
    /// So many further requests are refused.
    pub refuse_requests: u32,
    /// Nothing is sent but WebSocket pings; what is published meanwhile is lost to who is connected.
    pub stall: bool,
    /// The last message of each connection is sent again and again, and nothing else.
    pub repeat: bool,
    /// Each message is sent twice.
    pub duplicate: bool,
    /// Each two messages of a topic change places.
    pub reorder: bool,
    /// Messages of a topic that are sent to who subscribes it: the newest alone, or so many, as
    /// venues do after a break. Never more than are kept.
    pub resend: usize,
    /// Requests within a second before a connection is closed with 1008; 0 for no limit.
    pub requests_per_s: u32,
}

impl Default for Faults {
    /// Nothing goes wrong; the newest message of a topic goes to who subscribes it.
    fn default() -> Self {
        Self {
            refuse_connections: false,
            refuse_requests: 0,
            stall: false,
            repeat: false,
            duplicate: false,
            reorder: false,
            resend: 1,
            requests_per_s: 0,
        }
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At once, without a word.
    Cut,
    /// No more is sent: a bare FIN.
    HalfClose,
    /// By a close frame with this code.
    Close(u16),
}

/// What was seen so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Connections upgraded.
    pub connections: u64,
    /// Connections open now.
    pub open: usize,
    /// The most that were open at a time.
    pub most_open: usize,
    /// Connections refused.
    pub refused_connections: u64,
    /// When each message of a client came: connection and time.
    pub requests: Vec<(u64, Instant)>,
    /// Times that a client was over the rate.
    pub over_rate: u64,
    /// Messages sent.
    pub sent: u64,
}

/// What a connection's task is told.
#[derive(Clone, Debug)]
enum Say {
    Text(Arc<str>),
    End(End),
}

struct Connection {
    say: mpsc::Sender<Say>,
    held: BTreeSet<Topic>,
    last: Option<Arc<str>>,
}

#[derive(Default)]
struct Kept {
    messages: VecDeque<Arc<str>>,
    /// The first of two that are to change places.
    waits: Option<Arc<str>>,
}

#[derive(Default)]
struct Inner {
    faults: Faults,
    connections: BTreeMap<u64, Connection>,
    kept: BTreeMap<Topic, Kept>,
    seen: Seen,
    subscribed_once: bool,
}

/// What the server and its handle share.
struct Shared {
    desk: Desk,
    clock: Clock,
    inner: Mutex<Inner>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module. Stops when dropped.
pub struct MockVenue {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: CancellationToken,
}

impl MockVenue {
    /// Starts a mock of `venue` on a thread of its own.
    ///
    /// # Errors
    ///
    /// If the address cannot be had, the thread cannot be started, or the venue has no dialect.
    pub fn start(venue: &Venue, listen: SocketAddr, clock: Clock) -> io::Result<Self> {
        let desk = venue.desk().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the venue {} cannot be connected to", venue.name),
            )
        })?;
        let listener = std::net::TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { desk, clock, inner: Mutex::default() });
        let stop = CancellationToken::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("mock-venue".to_owned()).spawn({
            let (shared, stop) = (shared.clone(), stop.clone());
            move || runtime.block_on(connection::accept(listener, shared, stop))
        })?;
        Ok(Self { shared, address, stop })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a client connects to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// What is to go wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.lock().faults = faults;
    }

    /// Publishes a message; answers how many connections it went to. A message that is of no topic
    /// goes to nobody.
    pub fn publish(&self, message: &str) -> usize {
        let Some(topic) = self.shared.desk.topic(message.as_bytes()) else { return 0 };
        let message: Arc<str> = message.into();
        let mut inner = self.shared.lock();
        let Inner { faults, connections, kept, seen, .. } = &mut *inner;
        let kept = kept.entry(topic.clone()).or_default();
        if kept.messages.len() >= MOST_KEPT {
            kept.messages.pop_front();
        }
        kept.messages.push_back(message.clone());
        if faults.stall || faults.repeat {
            return 0;
        }
        let mut out = Vec::with_capacity(2);
        if faults.reorder {
            match kept.waits.take() {
                None => {
                    kept.waits = Some(message);
                    return 0;
                }
                Some(first) => out.extend([message, first]),
            }
        } else {
            out.extend(kept.waits.take());
            out.push(message);
        }
        if faults.duplicate {
            out = out.into_iter().flat_map(|message| [message.clone(), message]).collect();
        }
        let mut reached = 0;
        for connection in connections.values_mut().filter(|c| c.held.contains(&topic)) {
            reached += 1;
            for message in &out {
                seen.sent += 1;
                connection.say(message.clone());
            }
        }
        reached
    }

    /// Ends every connection; answers how many there were.
    pub fn end(&self, end: End) -> usize {
        let mut inner = self.shared.lock();
        // No longer sent to; the task takes what is queued before it ends.
        let connections = std::mem::take(&mut inner.connections);
        let count = connections.len();
        for (id, connection) in connections {
            if connection.say.try_send(Say::End(end)).is_ok() && end != End::Cut {
                // It goes on until the client has gone, or is cut.
                inner.connections.insert(id, Connection { held: BTreeSet::new(), ..connection });
            }
        }
        count
    }

    /// What was seen so far.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.shared.lock().seen.clone()
    }

    /// The topics that the connections hold, in order; twice where two hold one.
    #[must_use]
    pub fn held(&self) -> Vec<Topic> {
        let inner = self.shared.lock();
        let mut held: Vec<Topic> =
            inner.connections.values().flat_map(|c| c.held.iter().cloned()).collect();
        held.sort_unstable();
        held
    }

    /// Waits until somebody has subscribed to something; `false` if `stop` was cancelled before.
    #[must_use]
    pub fn wait_for_subscriber(&self, stop: &CancellationToken) -> bool {
        while !stop.is_cancelled() {
            if self.shared.lock().subscribed_once {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }
}

impl Drop for MockVenue {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl std::fmt::Debug for MockVenue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MockVenue").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Connection {
    /// A connection that does not keep up is told nothing more and ends when its queue is read.
    fn say(&mut self, message: Arc<str>) {
        self.last = Some(message.clone());
        if self.say.try_send(Say::Text(message)).is_err() {
            self.held.clear();
        }
    }
}

impl Shared {
    /// Answers a request, and sends what who subscribes gets at once.
    fn obey(&self, id: u64, asked: &Asked) {
        let mut inner = self.lock();
        let Inner { faults, connections, kept, seen, subscribed_once, .. } = &mut *inner;
        let Some(connection) = connections.get_mut(&id) else { return };
        if faults.refuse_requests > 0 {
            faults.refuse_requests -= 1;
            let held: Vec<Topic> = connection.held.iter().cloned().collect();
            for answer in self.desk.answer(asked, &held, Some("try again later")) {
                let _ = connection.say.try_send(Say::Text(answer.into()));
            }
            return;
        }
        let mut fresh = Vec::new();
        for topic in &asked.topics {
            match asked.wish {
                Wish::Subscribe if connection.held.insert(topic.clone()) => fresh.push(topic),
                Wish::Subscribe => {}
                Wish::Unsubscribe => {
                    connection.held.remove(topic);
                }
            }
        }
        *subscribed_once |= !fresh.is_empty();
        let held: Vec<Topic> = connection.held.iter().cloned().collect();
        for answer in self.desk.answer(asked, &held, None) {
            let _ = connection.say.try_send(Say::Text(answer.into()));
        }
        for topic in fresh {
            let Some(kept) = kept.get(topic) else { continue };
            let skip = kept.messages.len().saturating_sub(faults.resend);
            for message in kept.messages.iter().skip(skip) {
                seen.sent += 1;
                connection.say(message.clone());
            }
        }
    }
}
