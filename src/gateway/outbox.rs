//! Whole frames that the socket has not taken yet.
//!
//! Every byte a session writes goes through here or, when nothing is queued, straight to the
//! socket with only the rest kept. Frames are appended whole, so a pong, an answer or a close
//! never lands inside a batch that was cut short by a full socket.

use std::io;

/// The non-blocking byte stream under a session.
pub(crate) trait Link {
    /// Writes what fits; `WouldBlock` if nothing does.
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Reads what is there; `WouldBlock` if nothing is, 0 at the end.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
    /// Whether a read that did not fill its buffer has emptied the link, so that none is needed to
    /// find that out: what comes after stirs it anew.
    const SHORT_READ_EMPTIES: bool = false;
}

/// Kept capacity above which an emptied outbox gives its memory back.
const KEPT_BYTES: usize = 4096;

/// Frames queued for a socket.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    start: usize,
    /// Bytes the socket has taken so far, for liveness.
    taken: u64,
}

impl Outbox {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes the socket has taken since the session began.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Where whole frames are appended.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Gives the socket what it takes of the queue.
    pub(crate) fn flush(&mut self, link: &mut impl Link) -> io::Result<()> {
        while !self.is_empty() {
            match send(link, &self.bytes[self.start..])? {
                0 => return Ok(()),
                count => {
                    self.start += count;
                    self.taken += count as u64;
                }
            }
        }
        self.bytes.clear();
        self.start = 0;
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        Ok(())
    }

    /// Sends whole frames, at once as far as the socket takes them, behind what is queued.
    pub(crate) fn send(&mut self, frames: &[u8], link: &mut impl Link) -> io::Result<()> {
        let mut rest = frames;
        if self.is_empty() {
            while !rest.is_empty() {
                match send(link, rest)? {
                    0 => break,
                    count => {
                        self.taken += count as u64;
                        rest = &rest[count..];
                    }
                }
            }
        }
        self.bytes.extend_from_slice(rest);
        Ok(())
    }
}

/// Sends once; 0 means that the socket is full.
fn send(link: &mut impl Link, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match link.send(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A socket that takes `room` bytes.
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
    }

    impl Link for Narrow {
        fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn receive(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    #[test]
    fn b46_frames_stay_whole_and_in_order_when_the_socket_is_full() {
        let mut link = Narrow { room: 4, taken: Vec::new() };
        let mut outbox = Outbox::default();
        outbox.send(b"batch-1;", &mut link).unwrap();
        outbox.buffer().extend_from_slice(b"pong;");
        outbox.send(b"batch-2;", &mut link).unwrap();
        assert_eq!(outbox.len(), 17);
        link.room = 6;
        outbox.flush(&mut link).unwrap();
        link.room = 100;
        outbox.flush(&mut link).unwrap();
        assert_eq!(link.taken, b"batch-1;pong;batch-2;");
        assert!(outbox.is_empty());
        assert_eq!(outbox.taken(), 21);
    }
}
