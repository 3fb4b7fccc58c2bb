//! WebSocket frames as a server writes them: unmasked, whole, straight into a buffer.

/// The first byte of a whole binary frame.
pub(crate) const BINARY: u8 = 0x82;

/// Most bytes that a frame header takes.
pub(crate) const MAX_HEADER: usize = 10;

/// Appends a text frame.
pub(crate) fn write_text(payload: &[u8], out: &mut Vec<u8>) {
    let (header, length) = text_header(payload.len());
    out.extend_from_slice(&header[..length]);
    out.extend_from_slice(payload);
}

/// The header of a text frame with `payload` bytes, and how many of its bytes count.
#[expect(clippy::cast_possible_truncation, reason = "each arm checks the range it casts to")]
pub(crate) fn text_header(payload: usize) -> ([u8; MAX_HEADER], usize) {
    let mut header = [0; MAX_HEADER];
    header[0] = 0x81;
    match payload {
        0..=125 => {
            header[1] = payload as u8;
            (header, 2)
        }
        126..=0xFFFF => {
            header[1] = 126;
            header[2..4].copy_from_slice(&(payload as u16).to_be_bytes());
            (header, 4)
        }
        _ => {
            header[1] = 127;
            header[2..10].copy_from_slice(&(payload as u64).to_be_bytes());
            (header, 10)
        }
    }
}

/// Appends a ping frame that carries a batch number in decimal digits.
pub(crate) fn write_batch_ping(batch: u64, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(batch).as_bytes();
    out.push(0x89);
    #[expect(clippy::cast_possible_truncation, reason = "at most 20 digits")]
    out.push(digits.len() as u8);
    out.extend_from_slice(digits);
}

/// Appends the ping frame of a heartbeat; no batch number can look like it.
pub(crate) fn write_heartbeat(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x89, 1, b'h']);
}

/// The batch number that a pong carries, if it answers a batch's ping.
pub(crate) fn batch_of_pong(payload: &[u8]) -> Option<u64> {
    if payload.is_empty() || !payload.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(payload).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_takes_the_shortest_form() {
        for (length, header) in [
            (0, &[0x81, 0][..]),
            (125, &[0x81, 125]),
            (126, &[0x81, 126, 0, 126]),
            (65_535, &[0x81, 126, 255, 255]),
            (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let (bytes, count) = text_header(length);
            assert_eq!(&bytes[..count], header);
        }
    }

    #[test]
    fn a_pong_tells_its_batch_and_anything_else_tells_none() {
        let mut frame = Vec::new();
        write_batch_ping(1_234, &mut frame);
        assert_eq!(frame, b"\x89\x041234");
        assert_eq!(batch_of_pong(b"1234"), Some(1_234));
        for payload in [&b""[..], b"h", b"-1", b"+1", b"12x", b"99999999999999999999999", b"\xff"] {
            assert_eq!(batch_of_pong(payload), None);
        }
    }
}
