//! Live messages over a WebSocket, from a venue that has to be asked for them.
//!
//! | part | does |
//! |---|---|
//! | [`Dialect`] | what is said to one venue, and the rules it sets; knows no I/O and no time |
//! | [`Wishes`] | which topics are wanted, asked for, granted, refused: one connection's subscriptions |
//! | [`Pacer`] | keeps requests under the venue's rate |
//! | [`Backoff`] | how long to wait before the next attempt to connect |
//! | [`Session`] | the above on one connection, and silence told from a quiet market |
//! | [`LiveFeed`] | the shell: socket, TLS, time |
//!
//! All but the shell are state machines over time that is passed in.
//!
//! # A connection's life
//!
//! Connect, then ask for every wanted topic, as fast as the venue allows. A topic counts as granted
//! only when the venue has said so; one that is refused, or not answered in time, is asked for
//! again after a wait that grows. Data of a topic is taken whenever it comes, also before the
//! answer. Retuning the wanted topics asks for what is new and takes leave of what is gone, on the
//! connection that stands.
//!
//! There is never a second connection of the same feed: the old one is closed before the next is
//! opened, also where a venue ends connections by the day ([`Rules::lifetime`]). That leaves a gap of
//! a round trip or two and cannot double anything; what the venue sends again is told by its ids.
//!
//! # Silence
//!
//! The connection is given up when no *sign of life* has come for `stale_after`. A sign is data, or a
//! heartbeat that the venue sends of itself beside its data. A WebSocket ping, or the answer to a
//! ping of ours, says that a machine is there, not that it still gives us data: no sign. Nor is a
//! message equal to the one before it, byte for byte. So a quiet market with heartbeats is left
//! alone; a quiet market of a venue without any needs a `stale_after` longer than its silences.

mod backoff;
mod dialect;
mod pacer;
mod session;
mod shell;
mod socket;
mod wishes;

pub use backoff::Backoff;
pub use dialect::{Dialect, Reply, ReplyOutcome, Request, Rules, Sign, Topic, Wish};
pub use pacer::Pacer;
pub use session::{Outgoing, Session, Verdict};
pub use shell::{LiveFeed, LiveOptions, LiveStep, Topics};
pub use socket::{Endpoint, EndpointError};
pub use wishes::Wishes;
