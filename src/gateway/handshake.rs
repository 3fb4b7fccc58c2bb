//! The WebSocket handshake: a request's head in, a verdict out. No I/O.
//!
//! Order of the checks: is it a request at all, the path, the upgrade, the origin. Admission comes
//! after them, so that a request that could never be served takes no place.

use tungstenite::handshake::machine::TryParse;
use tungstenite::handshake::server::{Request, create_response, write_response};

use super::protocol::PATH;
use super::stats::Refused;

/// What a request's head amounts to.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Not all of it is there yet.
    Incomplete,
    /// An upgrade that may go on: `length` bytes of head, and the answer that accepts it.
    Upgrade { length: usize, answer: Vec<u8> },
    /// Not to be upgraded.
    Refuse(Refusal),
}

/// A refusal, as it is counted and as it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Refused,
    status: &'static str,
    headers: &'static str,
    body: String,
}

impl Refusal {
    fn new(reason: Refused, status: &'static str, body: impl Into<String>) -> Self {
        Self { reason, status, headers: "", body: body.into() }
    }

    pub(crate) fn full() -> Self {
        let body = "as many subscribers are connected as are allowed";
        Self {
            headers: "Retry-After: 1\r\n",
            ..Self::new(Refused::Full, "503 Service Unavailable", body)
        }
    }

    pub(crate) fn unavailable() -> Self {
        let body = "not taking connections now";
        Self {
            headers: "Retry-After: 1\r\n",
            ..Self::new(Refused::Unavailable, "503 Service Unavailable", body)
        }
    }

    pub(crate) fn too_long(most: usize) -> Self {
        let body = format!("a request's head is at most {most} bytes");
        Self::new(Refused::TooLong, "431 Request Header Fields Too Large", body)
    }

    pub(crate) fn slow() -> Self {
        Self::new(Refused::Slow, "408 Request Timeout", "the request's head did not come in time")
    }

    /// The HTTP answer, after which the connection is closed.
    pub(crate) fn answer(&self) -> Vec<u8> {
        format!(
            "HTTP/1.1 {}\r\n{}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}\n",
            self.status,
            self.headers,
            self.body.len() + 1,
            self.body,
        )
        .into_bytes()
    }
}

/// Judges what has been received of a request. `origins` are those allowed; empty for any.
///
/// A request without an origin does not come from a page in a browser, which always sends one, so
/// it is let through: the check protects people's browsers, not the gateway from programs.
pub(crate) fn judge(head: &[u8], origins: &[String]) -> Verdict {
    if !could_be_request(head) {
        return Verdict::Refuse(not_upgrade("400 Bad Request", "not an HTTP request"));
    }
    let (length, request) = match Request::try_parse(head) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return Verdict::Incomplete,
        Err(error) => {
            return Verdict::Refuse(not_upgrade(
                "400 Bad Request",
                format!("not a request: {error}"),
            ));
        }
    };
    if request.uri().path() != PATH {
        return Verdict::Refuse(Refusal::new(
            Refused::Path,
            "404 Not Found",
            format!("the stream is at {PATH}"),
        ));
    }
    let response = match create_response(&request) {
        Ok(response) => response,
        Err(error) => {
            let body = format!("{PATH} speaks WebSocket (RFC 6455): {error}");
            let refusal = Refusal {
                headers: "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n",
                ..not_upgrade("426 Upgrade Required", body)
            };
            return Verdict::Refuse(refusal);
        }
    };
    if let Some(origin) = request.headers().get("origin")
        && !origins.is_empty()
        && !origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes())
    {
        return Verdict::Refuse(Refusal::new(
            Refused::Origin,
            "403 Forbidden",
            "the origin is not among those allowed",
        ));
    }
    let mut answer = Vec::with_capacity(160);
    if write_response(&mut answer, &response).is_err() {
        return Verdict::Refuse(Refusal::unavailable());
    }
    Verdict::Upgrade { length, answer }
}

fn not_upgrade(status: &'static str, body: impl Into<String>) -> Refusal {
    Refusal::new(Refused::NotUpgrade, status, body)
}

/// Whether the first bytes can begin a request line: garbage is told at once, not after a timeout.
fn could_be_request(head: &[u8]) -> bool {
    head.iter().take(16).take_while(|&&byte| byte != b' ').all(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str, extra: &str) -> Vec<u8> {
        format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{extra}\r\n"
        )
        .into_bytes()
    }

    fn status(head: &[u8], origins: &[String]) -> String {
        match judge(head, origins) {
            Verdict::Incomplete => "incomplete".into(),
            Verdict::Upgrade { answer, .. } => String::from_utf8_lossy(&answer[9..12]).into_owned(),
            Verdict::Refuse(refusal) => refusal.status[..3].into(),
        }
    }

    #[test]
    fn a_good_request_is_accepted_and_what_follows_it_is_left_alone() {
        let mut head = request("/v1/stream?x=1", "");
        let whole = head.len();
        head.extend_from_slice(b"\x81\x80abcd");
        let Verdict::Upgrade { length, answer } = judge(&head, &[]) else { panic!("refused") };
        assert_eq!(length, whole);
        // The answer to the key of RFC 6455, section 1.3.
        assert!(String::from_utf8_lossy(&answer).contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    }

    #[test]
    fn every_prefix_of_a_request_is_incomplete() {
        let head = request("/v1/stream", "");
        for cut in 0..head.len() {
            assert_eq!(status(&head[..cut], &[]), "incomplete", "{cut}");
        }
    }

    #[test]
    fn what_is_no_upgrade_is_told_why() {
        assert_eq!(status(&request("/", ""), &[]), "404");
        assert_eq!(status(b"GET /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n", &[]), "426");
        assert_eq!(status(b"POST /v1/stream HTTP/1.1\r\nHost: x\r\n\r\n", &[]), "400");
        assert_eq!(status(b"\x16\x03\x01\x02\x00\x01", &[]), "400");
        assert_eq!(status(b"hello\r\n\r\n", &[]), "400");
        assert_eq!(status(b"GET /v1/stream HTTP/1.1\r\nbad header\r\n\r\n", &[]), "400");
    }

    #[test]
    fn b48_an_origin_is_matched_exactly_or_not_at_all() {
        let allowed = ["https://allowed.example".to_owned()];
        for (origin, expected) in [
            ("https://allowed.example", "101"),
            ("https://allowed.example.evil.test", "403"),
            ("https://allowed.example:8443", "403"),
            ("http://allowed.example", "403"),
            ("null", "403"),
        ] {
            let head = request("/v1/stream", &format!("Origin: {origin}\r\n"));
            assert_eq!(status(&head, &allowed), expected, "{origin}");
            assert_eq!(status(&head, &[]), "101", "no list allows any");
        }
        assert_eq!(status(&request("/v1/stream", ""), &allowed), "101", "not a browser's page");
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let answer = String::from_utf8(Refusal::full().answer()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n"));
        assert!(answer.ends_with("\r\n\r\nas many subscribers are connected as are allowed\n"));
    }
}
