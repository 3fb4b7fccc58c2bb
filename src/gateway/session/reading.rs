//! What a session hears: frames by the WebSocket's rules, then operations, pongs and closes.

use std::io::{self, Read, Write};

use tungstenite::Message;
use tungstenite::error::{CapacityError, Error, ProtocolError};

use super::{CLOSE_TIMEOUT, Phase, Session};
use crate::clock::Instant;
use crate::gateway::close::Close;
use crate::gateway::control::Limits;
use crate::gateway::frames;
use crate::gateway::outbox::{Link, Outbox};
use crate::gateway::protocol::Confirm;

/// Messages read in one turn, so that one talkative client does not hold up the others.
const MAX_READS_A_TURN: usize = 64;

/// Bytes read in one turn: empty fragments and pongs make no message to count.
const MAX_BYTES_A_TURN: usize = 64 * 1024;

/// Messages that are no operation before the connection is closed.
const MAX_STRIKES: u32 = 10;

/// What reading found for the shard to do.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A text message.
    Text(String),
    /// A binary message, which is no operation.
    Binary(Vec<u8>),
    /// Nothing more for now; `more` says that the turn's share was used up before the socket was.
    Nothing { more: bool },
    /// The connection is over.
    Gone,
}

/// What one turn may still read.
#[derive(Debug)]
pub(crate) struct Share {
    reads: usize,
    bytes: usize,
    /// Whether this turn has emptied the socket.
    emptied: bool,
}

impl Default for Share {
    fn default() -> Self {
        Self { reads: MAX_READS_A_TURN, bytes: MAX_BYTES_A_TURN, emptied: false }
    }
}

/// The socket as tungstenite sees it: reads come from the link, replies go behind what is queued.
struct Pipe<'a, L> {
    link: &'a mut L,
    outbox: &'a mut Outbox,
    heard: bool,
    /// Whether a short read may have left something.
    ends: bool,
    /// Whether nothing is left to be read before the socket stirs again.
    emptied: bool,
    /// Bytes that may still be read in this turn.
    left: &'a mut usize,
    /// Nothing follows our own close frame.
    mute: bool,
}

impl<L: Link> Read for Pipe<'_, L> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if *self.left == 0 || self.emptied {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let most = buffer.len().min(*self.left);
        let count = self.link.receive(&mut buffer[..most])?;
        *self.left -= count;
        self.heard |= count > 0;
        self.emptied = L::SHORT_READ_EMPTIES && !self.ends && (1..most).contains(&count);
        Ok(count)
    }
}

impl<L> Write for Pipe<'_, L> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.mute {
            self.outbox.buffer().extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<L: Link> Session<L> {
    /// Reads the next message, if the client may speak now.
    pub(crate) fn read(&mut self, share: &mut Share, limits: &Limits, now: Instant) -> Heard {
        loop {
            if matches!(self.phase, Phase::Draining(_)) || !self.may_speak(limits) {
                return Heard::Nothing { more: false };
            }
            if share.reads == 0 || share.bytes == 0 {
                return Heard::Nothing { more: true };
            }
            share.reads -= 1;
            if self.deafened {
                match self.discard() {
                    Some(heard) => return heard,
                    None => continue,
                }
            }
            let mute = matches!(self.phase, Phase::Closing(_));
            let mut pipe = Pipe {
                link: &mut self.link,
                outbox: &mut self.outbox,
                heard: false,
                ends: self.ends,
                emptied: share.emptied,
                left: &mut share.bytes,
                mute,
            };
            let read = self.socket.read(&mut pipe);
            share.emptied = pipe.emptied;
            if pipe.heard {
                self.last_heard = now;
            }
            match read {
                Ok(Message::Close(_)) if mute => return Heard::Gone,
                // The answer is made, and written here: behind what is queued, and nothing after.
                Ok(Message::Close(_)) => {
                    let _ = self.socket.flush(&mut pipe);
                    return self.drain(now);
                }
                Ok(Message::Pong(payload)) => {
                    let batch = frames::batch_of_pong(&payload);
                    let useful = self.confirm == Confirm::Pong
                        && batch.is_some_and(|batch| self.confirmed(batch, now));
                    // As many useful pongs may come as batches went; others count as operations.
                    if !useful && self.is_open() {
                        self.spend(limits, now);
                    }
                }
                Ok(_) if !self.is_open() => {}
                Ok(Message::Text(text)) => return Heard::Text(text.as_str().to_owned()),
                Ok(Message::Binary(bytes)) => return Heard::Binary(bytes.to_vec()),
                Ok(Message::Ping(_)) => self.spend(limits, now),
                Ok(Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    // Nothing there, or the turn's share is used up and there may be more.
                    self.readable = share.bytes == 0;
                    return Heard::Nothing { more: self.readable };
                }
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    if let Some(heard) = self.broken(&error, now) {
                        return heard;
                    }
                }
            }
        }
    }

    /// The reader ended or lost its place.
    fn broken(&mut self, error: &Error, now: Instant) -> Option<Heard> {
        match error {
            Error::Capacity(CapacityError::MessageTooLong { max_size, .. }) => {
                self.close(Close::TooBig, &format!("a message is at most {max_size} bytes"), now);
            }
            Error::Utf8(_) => self.close(Close::InvalidText, "text is UTF-8", now),
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                return Some(Heard::Gone);
            }
            Error::Protocol(error) => self.close(Close::WebSocket, &error.to_string(), now),
            // The client closed and the reader has answered: the answer is in the outbox.
            Error::ConnectionClosed => return Some(self.drain(now)),
            _ => return Some(Heard::Gone),
        }
        self.deafened = true;
        None
    }

    /// The client has closed: what is queued goes out, then it is over.
    fn drain(&mut self, now: Instant) -> Heard {
        if self.outbox.flush(&mut self.link).is_err() || self.outbox.is_empty() {
            return Heard::Gone;
        }
        self.phase = Phase::Draining(now + CLOSE_TIMEOUT);
        Heard::Nothing { more: false }
    }

    /// Throws away what comes: dropping a socket with unread bytes would reset the connection and
    /// lose the close frame.
    fn discard(&mut self) -> Option<Heard> {
        match self.link.receive(&mut [0; 4096]) {
            Ok(0) => Some(Heard::Gone),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => None,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Some(Heard::Nothing { more: false })
            }
            Err(_) => Some(Heard::Gone),
        }
    }

    /// Takes one operation from the client's budget; closes the connection if there is none left.
    pub(crate) fn spend(&mut self, limits: &Limits, now: Instant) {
        if !self.budget.take(limits.max_ops_per_s, now) {
            let reason = format!("at most {} operations a second", limits.max_ops_per_s);
            self.close(Close::Policy, &reason, now);
        }
    }

    /// A message was no operation.
    pub(crate) fn strike(&mut self, now: Instant) {
        self.strikes += 1;
        if self.strikes >= MAX_STRIKES {
            self.close(Close::Protocol, "too many messages that are no operation", now);
        }
    }
}
