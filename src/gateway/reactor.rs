//! The shell of a shard: one thread, one poll, and the sockets in it.
//!
//! It reads time and events, hands both to the shard, and sleeps until the next deadline, an event,
//! or a ring. While the shard paces it sleeps by time and is not rung for; otherwise it announces
//! its sleep first and looks for work once more after.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use rustix::event::{PollFd, PollFlags, Timespec};

use super::lane::Bell;
use super::outbox::Link;
use super::shard::{Adoption, Command, Shard};
use crate::clock::{Clock, Instant};

/// The token of the waker; sessions use their seat's number.
pub(crate) const WAKER: Token = Token(usize::MAX);

const EVENTS: usize = 1024;

/// Longest sleep, so that a clock that jumps cannot hold a shard up for long.
const LONGEST_SLEEP: Duration = Duration::from_secs(10);

impl Link for TcpStream {
    /// Its readiness is edge-triggered: see epoll(7), questions and answers, the ninth.
    const SHORT_READ_EMPTIES: bool = true;

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read(buffer)
    }
}

/// One shard's thread.
pub(crate) struct Reactor {
    pub(crate) shard: Shard<TcpStream>,
    pub(crate) poll: Poll,
    pub(crate) bell: Arc<Bell>,
    pub(crate) commands: Receiver<Command>,
    pub(crate) load: Arc<AtomicUsize>,
    pub(crate) clock: Clock,
}

impl Reactor {
    /// Serves until every handle to the shard is gone, or until all connections are closed after a
    /// finish, or until `deadline` after it.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS);
        let mut finishing: Option<Instant> = None;
        let mut now = self.clock.now();
        loop {
            finishing = finishing.into_iter().chain(self.obey_commands(now)).min();
            self.shard.turn(now);
            let ended = self.clock.now();
            let due = self.shard.turned(ended.since(now), ended);
            self.forget_gone();
            if let Some(until) = finishing
                && (self.shard.len() == 0 || self.clock.now() >= until)
            {
                return;
            }
            if !self.sleep(&mut events, due.into_iter().chain(finishing).min()) {
                return;
            }
            now = self.clock.now();
            for event in &events {
                if event.token() != WAKER {
                    let over = event.is_read_closed() || event.is_error();
                    let readable = event.is_readable() || over;
                    #[expect(clippy::cast_possible_truncation, reason = "tokens are seat numbers")]
                    let index = event.token().0 as u32;
                    self.shard.stirred(index, readable, now);
                    if over {
                        self.shard.ends(index);
                    }
                }
            }
        }
    }

    /// Sleeps until the deadline, an event or a ring; `false` if the poll itself fails.
    fn sleep(&mut self, events: &mut Events, due: Option<Instant>) -> bool {
        let pacing = self.shard.is_pacing();
        if !pacing {
            self.bell.about_to_sleep();
        }
        let timeout = if !pacing && self.shard.has_work() {
            Duration::ZERO
        } else {
            due.map_or(LONGEST_SLEEP, |due| due.since(self.clock.now()).min(LONGEST_SLEEP))
        };
        let timeout = if pacing { self.nap(timeout) } else { timeout };
        let polled = self.poll.poll(events, Some(timeout));
        self.bell.awake();
        match polled {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                tracing::error!(%error, "a shard's poll failed; its connections are closed");
                false
            }
            _ => true,
        }
    }

    /// Sleeps for a pause of the cadence, or until an event; what is left to sleep. The poll's own
    /// timeout has steps of a millisecond.
    fn nap(&self, pause: Duration) -> Duration {
        let Ok(timeout) = Timespec::try_from(pause) else { return pause };
        let mut fds = [PollFd::new(self.poll.registry(), PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(_) => Duration::ZERO,
            Err(_) => pause,
        }
    }

    /// Takes what other threads ask; answers the deadline of a finish.
    fn obey_commands(&mut self, now: Instant) -> Option<Instant> {
        let mut finish = None;
        loop {
            match self.commands.try_recv() {
                Ok(Command::Adopt(adoption)) => self.adopt(adoption, now),
                Ok(Command::Report { subscriber, reply }) => {
                    // Who asked may have given up.
                    let _ = reply.send(self.shard.report(subscriber));
                }
                Ok(Command::Finish { deadline }) => {
                    self.shard.finish();
                    finish = Some(now + deadline);
                }
                Err(TryRecvError::Empty) => return finish,
                Err(TryRecvError::Disconnected) => return Some(now),
            }
        }
    }

    fn adopt(&mut self, adoption: Adoption, now: Instant) {
        let Adoption { stream, early, peer, admission } = adoption;
        let seat = self.shard.adopt(TcpStream::from_std(stream), early, peer, Some(admission), now);
        let registry = self.poll.registry();
        let registered = self.shard.link(seat).is_some_and(|stream| {
            registry
                .register(stream, Token(seat as usize), Interest::READABLE | Interest::WRITABLE)
                .is_ok()
        });
        if !registered {
            tracing::warn!(%peer, "a connection could not be polled and is dropped");
            self.shard.drop_session(seat);
        }
    }

    fn forget_gone(&mut self) {
        for mut stream in self.shard.take_gone() {
            let _ = self.poll.registry().deregister(&mut stream);
            let _ = stream.shutdown(Shutdown::Both);
            self.load.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
