//! The two capture formats of the Python library cryptofeed, line by line. Read, never written.
//!
//! The newer one is JSON lines, each with its kind under `t`: `header`, `http`, `connect`, `send`,
//! `recv`. What was received has `ts`, in seconds with a fraction, and the text as a string:
//!
//! ```text
//! {"t":"recv","conn":"BINANCE.ws.1","ts":1633998512.0633569,"data":"{\"stream\":…}"}
//! ```
//!
//! The older one is text: `<time>: <text>` was received; `<url> <-> <time>` is a connection,
//! `<url> <- <time>: <text>` was sent, `<url> -> <time>: <text>` came by HTTP.
//!
//! A capture may hold several connections to one venue; their messages are in the order in which
//! they came. Only what was received over a WebSocket is a message here.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::format::{Content, decimal_time};
use super::report::BadLine;

/// Whether a first line is that of a JSON capture.
pub(super) fn is_json(line: &[u8]) -> bool {
    line.starts_with(b"{\"t\":\"header\",\"format\":") || line.starts_with(RECEIVED)
}

/// Whether a first line is that of a text capture.
pub(super) fn is_text(line: &[u8]) -> bool {
    read_text(line).is_ok()
}

/// Reads a line of a JSON capture; a message's text goes into `scratch`.
pub(super) fn read_json(line: &[u8], scratch: &mut Vec<u8>) -> Result<Content, BadLine> {
    if let Some(content) = received(line, scratch) {
        return Ok(content);
    }
    let line: Line = serde_json::from_slice(line).map_err(|_| BadLine::NotARecord)?;
    if line.t != "recv" {
        return Ok(Content::Unknown);
    }
    let (Some(time), Some(data)) = (line.ts, line.data) else { return Err(BadLine::NotARecord) };
    let time = time.get().as_bytes();
    let (time, _) = decimal_time(time).ok_or(BadLine::NoTime)?;
    scratch.clear();
    scratch.extend_from_slice(data.as_bytes());
    Ok(Content::Decoded(time))
}

/// Reads a line of a text capture.
pub(super) fn read_text(line: &[u8]) -> Result<Content, BadLine> {
    if is_url(line) {
        let arrow = [&b" <-> "[..], b" <- ", b" -> "]
            .iter()
            .find_map(|arrow| memchr::memmem::find(line, arrow).map(|at| at + arrow.len()));
        let known = arrow.and_then(|at| decimal_time(&line[at..])).is_some();
        return if known { Ok(Content::Unknown) } else { Err(BadLine::NotARecord) };
    }
    let (time, length) = decimal_time(line).ok_or(BadLine::NoTime)?;
    if !line[length..].starts_with(b": ") {
        return Err(BadLine::NoTime);
    }
    if line.len() == length + 2 {
        return Err(BadLine::NoText);
    }
    Ok(Content::Here(time, length + 2..line.len()))
}

const RECEIVED: &[u8] = b"{\"t\":\"recv\",\"conn\":\"";

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    t: Cow<'a, str>,
    #[serde(borrow)]
    ts: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<Cow<'a, str>>,
}

fn is_url(line: &[u8]) -> bool {
    [&b"wss://"[..], b"ws://", b"https://", b"http://"].iter().any(|start| line.starts_with(start))
}

/// The fast path: a received message exactly as cryptofeed writes it.
fn received(line: &[u8], scratch: &mut Vec<u8>) -> Option<Content> {
    let rest = line.strip_prefix(RECEIVED)?;
    let rest = rest[memchr::memchr(b'"', rest)?..].strip_prefix(b"\",\"ts\":")?;
    let (time, length) = decimal_time(rest)?;
    let string = rest[length..].strip_prefix(b",\"data\":\"")?.strip_suffix(b"\"}")?;
    scratch.clear();
    unescape(string, scratch)?;
    Some(Content::Decoded(time))
}

/// Appends a JSON string's content. `None` leaves it to a full reader: an escape beyond the simple
/// ones, or a string that ends before its end.
fn unescape(mut string: &[u8], out: &mut Vec<u8>) -> Option<()> {
    while let Some(at) = memchr::memchr2(b'\\', b'"', string) {
        out.extend_from_slice(&string[..at]);
        let escape = if string[at] == b'\\' { string.get(at + 1)? } else { return None };
        out.push(match escape {
            b'"' | b'\\' | b'/' => *escape,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            _ => return None,
        });
        string = &string[at + 2..];
    }
    out.extend_from_slice(string);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(line: &str) -> (Option<i64>, String) {
        let mut scratch = b"left over".to_vec();
        match read_json(line.as_bytes(), &mut scratch) {
            Ok(Content::Decoded(time)) => (time, String::from_utf8(scratch).unwrap()),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_received_message_comes_with_its_time_and_its_escapes_undone() {
        let time = Some(1_633_998_512_063_356_900);
        for (data, text) in [
            (r#"{\"a\":\"b\"}"#, r#"{"a":"b"}"#),
            (r"a\\b\/c\nd", "a\\b/c\nd"),
            (r"\u6f6e\ud83c\udf0a\u0000", "潮\u{1f30a}\0"),
            ("pong", "pong"),
            ("", ""),
        ] {
            let fast = format!(
                r#"{{"t":"recv","conn":"X.ws.1","ts":1633998512.0633569,"data":"{data}"}}"#
            );
            assert_eq!(decoded(&fast), (time, text.to_owned()));
            let slow = format!(r#"{{"ts": 1633998512.0633569, "data": "{data}", "t": "recv"}}"#);
            assert_eq!(decoded(&slow), (time, text.to_owned()));
        }
    }

    #[test]
    fn what_was_not_received_over_a_websocket_is_no_message() {
        for line in [
            r#"{"t":"header","format":2,"exchange":"X"}"#,
            r#"{"t":"http","conn":"X","ts":1.5,"url":"https://x","data":"{}"}"#,
            r#"{"t":"connect","conn":"X","ts":1.5,"addr":"wss://x"}"#,
        ] {
            assert_eq!(read_json(line.as_bytes(), &mut Vec::new()), Ok(Content::Unknown), "{line}");
        }
        for line in [
            "wss://x/y?z=1 <-> 1617566590.378895",
            "wss://x <- 1617566590.378895: {}",
            "https://x -> 1617566590.378895: {}",
        ] {
            assert_eq!(read_text(line.as_bytes()), Ok(Content::Unknown), "{line}");
            assert!(is_text(line.as_bytes()));
        }
    }

    #[test]
    fn a_line_of_a_text_capture_is_read_in_place() {
        let line = b"1617566591.326123: {\"a\":1}";
        assert_eq!(read_text(line), Ok(Content::Here(Some(1_617_566_591_326_123_000), 19..26)));
    }

    #[test]
    fn lines_that_are_damaged_are_refused() {
        for line in [
            r#"{"t":"recv","conn":"X","ts":1.5,"data":"a"b"}"#,
            r#"{"t":"recv","conn":"X","ts":1.5,"data":{}}"#,
            r#"{"t":"recv","conn":"X","ts":1.5}"#,
            r#"{"t":"recv","conn":"X","ts":1.5,"data":"a\"}"#,
            r#"{"t":"re"#,
        ] {
            assert!(read_json(line.as_bytes(), &mut Vec::new()).is_err(), "{line}");
        }
        for line in ["1617566591.3 {}", "1617566591.3: ", "x", "wss://x", "wss://x <-> y"] {
            assert!(read_text(line.as_bytes()).is_err(), "{line}");
        }
    }
}
