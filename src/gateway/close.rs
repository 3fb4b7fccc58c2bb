//! Every way the gateway ends a connection, in one table.
//!
//! | code | name | meaning | come back? |
//! |---|---|---|---|
//! | 1000 | normal | the client closed; its own code is echoed | as it likes |
//! | 1001 | going away | the gateway shuts down; a `shutdown` notice went before | yes, after `retry_after_ms` |
//! | 1002 | protocol error | the WebSocket protocol itself was broken (RFC 6455) | after a fix |
//! | 1007 | invalid text | a text message was not UTF-8 | after a fix |
//! | 1008 | policy | operations came faster than `max_ops_per_s` | yes, more slowly |
//! | 1009 | too big | a message was longer than `max_message_bytes` | after a fix |
//! | 4000 | stalled | nothing was confirmed or read for `stall_timeout` | yes |
//! | 4001 | protocol error | binary message, or too many messages that are no operation | after a fix |

use std::borrow::Cow;

/// Why the gateway ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Close {
    /// The gateway shuts down.
    Shutdown,
    /// The WebSocket protocol was broken.
    WebSocket,
    /// Text that is not UTF-8.
    InvalidText,
    /// Operations too fast.
    Policy,
    /// A message too long.
    TooBig,
    /// Nothing confirmed, or nothing read, for too long.
    Stalled,
    /// Not this protocol.
    Protocol,
}

impl Close {
    /// Every reason, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Shutdown,
        Self::WebSocket,
        Self::InvalidText,
        Self::Policy,
        Self::TooBig,
        Self::Stalled,
        Self::Protocol,
    ];

    /// The close code on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Shutdown => 1001,
            Self::WebSocket => 1002,
            Self::InvalidText => 1007,
            Self::Policy => 1008,
            Self::TooBig => 1009,
            Self::Stalled => 4000,
            Self::Protocol => 4001,
        }
    }

    /// The name that metrics and logs use.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Shutdown => "shutdown",
            Self::WebSocket => "websocket_error",
            Self::InvalidText => "invalid_text",
            Self::Policy => "policy",
            Self::TooBig => "too_big",
            Self::Stalled => "stalled",
            Self::Protocol => "protocol_error",
        }
    }

    /// Its place in [`ALL`](Self::ALL).
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Appends a close frame: code and reason, the reason cut to what a control frame holds.
pub(crate) fn write_close_frame(close: Close, reason: &str, out: &mut Vec<u8>) {
    const MOST: usize = 123;
    let mut reason = Cow::Borrowed(reason);
    if reason.len() > MOST {
        let cut = (0..=MOST).rev().find(|&at| reason.is_char_boundary(at)).unwrap_or(0);
        reason = Cow::Owned(reason[..cut].to_owned());
    }
    out.push(0x88);
    #[expect(clippy::cast_possible_truncation, reason = "at most 125")]
    out.push(2 + reason.len() as u8);
    out.extend_from_slice(&close.code().to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_indices_are_those_of_the_table() {
        for (index, close) in Close::ALL.into_iter().enumerate() {
            assert_eq!(close.index(), index);
        }
        assert_eq!(Close::ALL.map(Close::code), [1001, 1002, 1007, 1008, 1009, 4000, 4001]);
    }

    #[test]
    fn b15_a_long_reason_is_cut_between_characters() {
        let mut frame = Vec::new();
        write_close_frame(Close::Policy, &"é".repeat(100), &mut frame);
        assert_eq!(frame[1] as usize, frame.len() - 2);
        assert!(frame.len() <= 127);
        assert!(std::str::from_utf8(&frame[4..]).is_ok());
    }
}
