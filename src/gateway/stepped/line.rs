//! A connection in memory: what a socket and a network would hold, and a client who reads at its
//! own speed.

use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;

use super::ClientModel;
use super::client::{Client, Opcode};
use crate::clock::{Clock, Instant};
use crate::gateway::outbox::Link;

/// Bytes that may be on their way to a client, as a socket bounded for this use holds them.
const BUFFER: usize = 64 * 1024;

/// A slow client reads in pieces of at most so many bytes.
const PIECE: usize = 4096;

/// A frame that a modelled client has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// When its last byte was read.
    pub at: Instant,
    /// What kind of frame it is.
    pub opcode: Opcode,
    /// The whole frame as it was on the wire.
    pub bytes: Vec<u8>,
    /// How many bytes of it are the header.
    pub header: usize,
}

impl Delivered {
    /// What the frame carries.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.header..]
    }
}

/// See the file.
pub(super) struct Line {
    /// Its client's place among all.
    place: usize,
    clock: Clock,
    reads_per_s: Option<NonZeroU64>,
    /// When each piece on its way has been read, and its bytes.
    pieces: VecDeque<(Instant, Vec<u8>)>,
    on_its_way: usize,
    /// When the client is done with all of them, in parts of a nanosecond: see `reading_time`.
    busy_until: u128,
    client: Client,
    delivered: VecDeque<Delivered>,
}

/// Parts of a nanosecond that reading times are kept in, so that rounding does not add up.
const PARTS: u128 = 1 << 16;

impl Line {
    pub(super) fn new(place: usize, clock: Clock, model: &ClientModel) -> Self {
        Self {
            place,
            clock,
            reads_per_s: model.reads_per_s,
            pieces: VecDeque::new(),
            on_its_way: 0,
            busy_until: 0,
            client: Client::new(model),
            delivered: VecDeque::new(),
        }
    }

    pub(super) fn place(&self) -> usize {
        self.place
    }

    /// When the client will have read the next piece.
    pub(super) fn next_read(&self) -> Option<Instant> {
        self.pieces.front().map(|&(at, _)| at)
    }

    /// Lets the client read what it has had the time for, and answer; `false` if there was nothing.
    pub(super) fn read(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((at, piece)) = self.pieces.pop_front_if(|&mut (at, _)| at <= now) {
            any = true;
            self.on_its_way -= piece.len();
            self.client.read(&piece, at, &mut self.delivered);
        }
        any
    }

    pub(super) fn take_delivered(&mut self, take: &mut impl FnMut(Delivered)) {
        self.delivered.drain(..).for_each(take);
    }

    /// When a piece that is sent now will have been read.
    fn reading_time(&mut self, bytes: usize) -> Instant {
        let now = self.clock.now();
        let Some(rate) = self.reads_per_s else { return now };
        let begins = self.busy_until.max(u128::from(now.as_nanos()) * PARTS);
        let takes = (bytes as u128 * 1_000_000_000 * PARTS).div_ceil(u128::from(rate.get()));
        self.busy_until = begins + takes;
        Instant::from_nanos(u64::try_from(self.busy_until.div_ceil(PARTS)).unwrap_or(u64::MAX))
    }
}

impl Link for Line {
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(BUFFER - self.on_its_way);
        if taken == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        for piece in bytes[..taken].chunks(PIECE) {
            let at = self.reading_time(piece.len());
            self.pieces.push_back((at, piece.to_vec()));
        }
        self.on_its_way += taken;
        Ok(taken)
    }

    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.client.speak(buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_slow_client_reads_at_its_speed_and_the_buffer_fills() {
        let clock = Clock::manual();
        let model = ClientModel { reads_per_s: NonZeroU64::new(1_000_000), ..Default::default() };
        let mut line = Line::new(0, clock.clone(), &model);
        assert_eq!(line.send(&[0; 100_000]).unwrap(), BUFFER);
        assert_eq!(line.send(&[0]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // 4,096 bytes at a byte a microsecond.
        assert_eq!(line.next_read(), Some(Instant::from_nanos(4_096_000)));
        assert!(!line.read(clock.now()));
        clock.advance(Duration::from_micros(4_096));
        assert!(line.read(clock.now()));
        assert_eq!(line.send(&[0; 100_000]).unwrap(), 4_096);
        assert_eq!(line.pieces.back().unwrap().0, Instant::from_nanos(69_632_000));
    }

    #[test]
    fn rounding_does_not_add_up() {
        let clock = Clock::manual();
        let model =
            ClientModel { reads_per_s: NonZeroU64::new(3_000_000_000), ..Default::default() };
        let mut line = Line::new(0, clock, &model);
        for _ in 0..30_000 {
            line.send(&[0]).unwrap();
        }
        assert!(line.pieces.back().unwrap().0 <= Instant::from_nanos(10_001));
    }
}
