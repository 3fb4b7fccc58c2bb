//! A server that echoes every message, over the reading and writing of a subscriber's session.
//!
//! No part of the product: conformance suites of the WebSocket protocol want a server that echoes,
//! and a gateway does not. One thread a connection, a poll in each.

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::control::{Control, Limits};
use super::handshake::{Verdict, judge};
use super::protocol::PATH;
use super::session::{Heard, Session, Share};
use crate::clock::Clock;

/// Longest message that a suite sends: 16 MiB.
const MAX_MESSAGE: usize = 16 << 20;

/// Longest request head.
const MAX_HEAD: usize = 16 * 1024;

/// Accepts connections for ever and echoes what comes, whatever path was asked for.
///
/// # Errors
///
/// If accepting fails.
pub fn serve(listener: &TcpListener) -> io::Result<()> {
    let limits = Limits {
        max_message_bytes: MAX_MESSAGE,
        max_batch_bytes: 2 * MAX_MESSAGE,
        max_ops_per_s: u32::MAX,
        ..Limits::default()
    };
    let control = Arc::new(Control::new(limits, Arc::new([])));
    loop {
        let (stream, _) = listener.accept()?;
        let control = control.clone();
        std::thread::spawn(move || {
            if let Err(error) = converse(stream, &control) {
                tracing::debug!(%error, "an echoing connection has ended");
            }
        });
    }
}

fn converse(mut stream: std::net::TcpStream, control: &Control) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    let early = loop {
        let mut piece = [0; 1024];
        let count = stream.read(&mut piece)?;
        if count == 0 || head.len() > MAX_HEAD {
            return Ok(());
        }
        head.extend_from_slice(&piece[..count]);
        match judge(&asked_for_stream(&head), &[]) {
            Verdict::Incomplete => {}
            Verdict::Refuse(refusal) => return stream.write_all(&refusal.answer()),
            Verdict::Upgrade { length, answer } => {
                stream.write_all(&answer)?;
                break asked_for_stream(&head).split_off(length);
            }
        }
    };
    stream.set_nonblocking(true)?;
    echo(TcpStream::from_std(stream), early, control)
}

/// The request, its path changed to the one that is served.
fn asked_for_stream(head: &[u8]) -> Vec<u8> {
    let Some(end) = head.iter().skip(4).position(|&byte| byte == b' ').map(|at| at + 4) else {
        return head.to_vec();
    };
    [b"GET ", PATH.as_bytes(), &head[end..]].concat()
}

fn echo(stream: TcpStream, early: Vec<u8>, control: &Control) -> io::Result<()> {
    let clock = Clock::system();
    let peer = stream.peer_addr()?;
    let subscriber = control.join(peer, 0);
    let limits = control.limits();
    let mut session = Session::new(subscriber.clone(), stream, early, &limits, clock.now());
    let mut poll = Poll::new()?;
    poll.registry().register(
        &mut session.link,
        Token(0),
        Interest::READABLE | Interest::WRITABLE,
    )?;
    let mut events = Events::with_capacity(8);
    loop {
        session.readable = true;
        let mut share = Share::default();
        let wait = loop {
            match session.read(&mut share, &limits, clock.now()) {
                Heard::Text(text) => session.echo(text.as_bytes(), true),
                Heard::Binary(bytes) => session.echo(&bytes, false),
                Heard::Nothing { more } => break !more,
                Heard::Gone => {
                    let _ = session.flush(clock.now());
                    control.leave(&subscriber);
                    return Ok(());
                }
            }
        };
        let now = clock.now();
        if !session.flush(now) || !session.tick(&limits, now) {
            control.leave(&subscriber);
            return Ok(());
        }
        if wait {
            let due = session.deadline(&limits).since(now).min(Duration::from_secs(1));
            poll.poll(&mut events, Some(due))?;
            session.ends |= events.iter().any(|event| event.is_read_closed() || event.is_error());
        }
    }
}
