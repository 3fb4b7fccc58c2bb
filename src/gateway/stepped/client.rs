//! A modelled client: reads the server's frames, answers pings and a close, as every standard
//! client does unasked.

use std::collections::VecDeque;
use std::io;

use super::ClientModel;
use super::line::Delivered;
use crate::clock::Instant;

/// What a frame is, by RFC 6455, section 5.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opcode {
    /// A message.
    Text,
    /// The last frame.
    Close,
    /// To be answered by a pong.
    Ping,
    /// Anything else, which a server of this protocol does not send.
    Other(u8),
}

impl Opcode {
    /// A word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Close => "close",
            Self::Ping => "ping",
            Self::Other(_) => "other",
        }
    }

    const fn of(first: u8) -> Self {
        match first & 0x0F {
            0x1 => Self::Text,
            0x8 => Self::Close,
            0x9 => Self::Ping,
            other => Self::Other(other),
        }
    }
}

/// See the file.
pub(super) struct Client {
    /// Read, but not a whole frame yet.
    partial: Vec<u8>,
    /// What it has said and the server has not read.
    says: VecDeque<u8>,
    /// It has answered the server's close: nothing follows but the end.
    done: bool,
}

impl Client {
    pub(super) fn new(model: &ClientModel) -> Self {
        let mut client = Self { partial: Vec::new(), says: VecDeque::new(), done: false };
        if !model.accounts.is_empty() {
            client.say_op(&serde_json::json!({
                "op": "subscribe", "id": 1, "channel": "volume", "accounts": model.accounts,
            }));
        }
        if !model.instruments.is_empty() {
            let mut op = serde_json::json!({
                "op": "subscribe", "id": 2, "instruments": model.instruments,
            });
            if let Some(max_hz) = model.max_hz {
                op["max_hz"] = max_hz.into();
            }
            client.say_op(&op);
        }
        client
    }

    fn say_op(&mut self, op: &serde_json::Value) {
        self.say(0x1, op.to_string().as_bytes());
    }

    /// Queues a frame, masked as a client's frames are; a mask of zeros leaves the text as it is.
    fn say(&mut self, opcode: u8, payload: &[u8]) {
        self.says.push_back(0x80 | opcode);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "each arm checks the range it casts to"
        )]
        match payload.len() {
            length @ 0..=125 => self.says.push_back(0x80 | length as u8),
            length @ 126..=0xFFFF => {
                self.says.push_back(0x80 | 126);
                self.says.extend((length as u16).to_be_bytes());
            }
            length => {
                self.says.push_back(0x80 | 127);
                self.says.extend((length as u64).to_be_bytes());
            }
        }
        self.says.extend([0; 4]);
        self.says.extend(payload);
    }

    /// What the server reads; the end once everything is said.
    pub(super) fn speak(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.says.is_empty() {
            return if self.done { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let count = buffer.len().min(self.says.len());
        for (to, from) in buffer.iter_mut().zip(self.says.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    /// Reads a piece, whose last byte came at `at`.
    pub(super) fn read(&mut self, piece: &[u8], at: Instant, delivered: &mut VecDeque<Delivered>) {
        self.partial.extend_from_slice(piece);
        let mut start = 0;
        while let Some((header, length)) = frame(&self.partial[start..]) {
            let bytes = self.partial[start..start + length].to_vec();
            start += length;
            let frame = Delivered { at, opcode: Opcode::of(bytes[0]), bytes, header };
            self.answer(&frame);
            delivered.push_back(frame);
        }
        self.partial.drain(..start);
    }

    fn answer(&mut self, frame: &Delivered) {
        match frame.opcode {
            Opcode::Ping => self.say(0xA, frame.payload()),
            Opcode::Close => {
                let code = frame.payload().get(..2).unwrap_or_default().to_vec();
                self.say(0x8, &code);
                self.done = true;
            }
            _ => {}
        }
    }
}

/// The lengths of a whole server frame at the beginning: of its header, and of all of it.
fn frame(bytes: &[u8]) -> Option<(usize, usize)> {
    let (header, payload) = match bytes.get(1)? & 0x7F {
        126 => (4, u64::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)),
        short => (2, u64::from(short)),
    };
    let length = usize::try_from(payload).ok()?.checked_add(header)?;
    (bytes.len() >= length).then_some((header, length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::frames;

    #[test]
    fn frames_are_found_whatever_the_pieces_and_pings_are_answered() {
        let mut wire = Vec::new();
        frames::write_text(b"{}", &mut wire);
        frames::write_text(&[b'x'; 300], &mut wire);
        frames::write_batch_ping(12, &mut wire);
        for size in [1, 2, 7, 1000] {
            let mut client = Client::new(&ClientModel::default());
            let mut delivered = VecDeque::new();
            for piece in wire.chunks(size) {
                client.read(piece, Instant::default(), &mut delivered);
            }
            let all: Vec<u8> = delivered.iter().flat_map(|frame| frame.bytes.clone()).collect();
            assert_eq!(all, wire);
            assert_eq!(delivered[1].payload(), [b'x'; 300]);
            let mut said = [0; 64];
            let count = client.speak(&mut said).unwrap();
            assert_eq!(&said[..count], b"\x8A\x82\0\0\0\x0012");
            assert_eq!(client.speak(&mut said).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
    }

    #[test]
    fn a_close_is_answered_and_then_the_line_ends() {
        let mut client = Client::new(&ClientModel::default());
        client.read(&[0x88, 2, 0x03, 0xE9], Instant::default(), &mut VecDeque::new());
        let mut said = [0; 64];
        assert_eq!(client.speak(&mut said).unwrap(), 8);
        assert_eq!(&said[..8], b"\x88\x82\0\0\0\0\x03\xE9");
        assert_eq!(client.speak(&mut said).unwrap(), 0);
    }
}
