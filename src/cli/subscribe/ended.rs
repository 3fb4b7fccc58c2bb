//! Why a connection to a gateway is not there, or is there no longer: told with what to do.

use tungstenite::error::Error;
use tungstenite::http::StatusCode;
use tungstenite::protocol::CloseFrame;

use crate::gateway::Close;

/// The gateway cannot be reached, refused, or ended the connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// Nothing answers there.
    #[error("connecting to {url}: {why}")]
    Unreachable {
        /// Where.
        url: String,
        /// What happened.
        why: String,
    },
    /// Something answers there, and refuses.
    #[error("connecting to {url}: refused with HTTP status {status}{said}; {advice}")]
    Refused {
        /// Where.
        url: String,
        /// The status.
        status: StatusCode,
        /// What the answer says, in brackets, or nothing.
        said: String,
        /// What may help.
        advice: String,
    },
    /// Every name was refused; the errors were told one by one.
    #[error("nothing is subscribed: every name was refused")]
    NothingSubscribed,
    /// The connection was closed in good order.
    #[error("the gateway closed the connection with code {code}{said}: {explained}")]
    Closed {
        /// The close code.
        code: u16,
        /// The reason that came along, in brackets, or nothing.
        said: String,
        /// What the code means, and whether to come back.
        explained: &'static str,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}

impl Ended {
    /// A handshake that failed.
    pub(super) fn handshake(url: &str, error: Error) -> Self {
        let url = url.to_owned();
        match error {
            Error::Http(answer) => {
                let status = answer.status();
                let text = answer.body().as_deref().map(String::from_utf8_lossy);
                let retry = answer.headers().get("retry-after").and_then(|v| v.to_str().ok());
                Self::Refused {
                    url,
                    status,
                    said: bracketed(text.as_deref()),
                    advice: advice(status, retry),
                }
            }
            Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                let why =
                    "nobody listens there (connection refused); start a gateway with `tidegate`";
                Self::Unreachable { url, why: why.to_owned() }
            }
            Error::Protocol(error) => Self::Unreachable {
                url,
                why: format!("no WebSocket server answers there ({error})"),
            },
            Error::Io(error) => Self::Unreachable { url, why: error.to_string() },
            other => Self::Unreachable { url, why: other.to_string() },
        }
    }

    /// A connection that broke.
    pub(super) fn broken(error: &Error) -> Self {
        Self::Broken(match error {
            Error::Io(error) => error.to_string(),
            Error::ConnectionClosed | Error::AlreadyClosed => "it is closed".to_owned(),
            other => other.to_string(),
        })
    }

    /// A connection that was closed, with or without a close frame.
    pub(super) fn closed(frame: Option<&CloseFrame>) -> Self {
        // 1005 stands for "no code was sent" (RFC 6455, section 7.1.5).
        let code = frame.map_or(1005, |frame| frame.code.into());
        let said = bracketed(frame.map(|frame| frame.reason.as_str()));
        Self::Closed { code, said, explained: explain(code) }
    }
}

/// What a close code means to a client.
fn explain(code: u16) -> &'static str {
    let Some(close) = Close::ALL.into_iter().find(|close| close.code() == code) else {
        return match code {
            1000 => "it is done with this connection",
            1005 => "it gave no reason",
            1011 => "something went wrong there; its log tells what",
            1013 => "it is overloaded; come back later",
            _ => "this is not a code of the gateway's own; something may stand in between",
        };
    };
    match close {
        Close::Shutdown => "it shuts down; come back in a moment",
        Close::WebSocket => "the WebSocket protocol was broken; something may stand in between",
        Close::InvalidText => "a message was not UTF-8",
        Close::Policy => "operations came too fast; come back and send fewer",
        Close::TooBig => {
            "a message was too long: subscribe to fewer names at once, or use 'venue:*'"
        }
        Close::Stalled => {
            "nothing was confirmed for too long: this end read too slowly, or withheld \
             acknowledgements; come back when it can"
        }
        Close::Protocol => "it did not understand this client; is it the same version?",
    }
}

fn advice(status: StatusCode, retry_after: Option<&str>) -> String {
    match status.as_u16() {
        503 => {
            let when = retry_after.map_or("later".to_owned(), |s| format!("in {s} s"));
            format!("it is full or not ready; come back {when}")
        }
        404 => "the stream is at the path /v1/stream; is this the gateway's port?".to_owned(),
        403 => "this origin is not allowed".to_owned(),
        401 | 407 => "something in between asks for a password".to_owned(),
        301..=308 => "it points elsewhere, which is not followed".to_owned(),
        _ => "is this a gateway's address?".to_owned(),
    }
}

/// ` ("text")`, shortened, or nothing.
fn bracketed(text: Option<&str>) -> String {
    const MOST: usize = 200;
    let text = text.unwrap_or_default().trim();
    if text.is_empty() {
        return String::new();
    }
    let short: String = text.chars().take(MOST).collect();
    format!(" ({})", short.escape_debug())
}

#[cfg(test)]
mod tests {
    use tungstenite::protocol::frame::coding::CloseCode;

    use super::*;

    #[test]
    fn every_close_code_of_the_gateway_is_explained() {
        for close in Close::ALL {
            assert!(!explain(close.code()).contains("not a code of"), "{close:?}");
        }
        let frame = CloseFrame { code: CloseCode::from(4000), reason: "no pong\nfor 30s".into() };
        let told = Ended::closed(Some(&frame)).to_string();
        assert!(told.contains("code 4000 (no pong\\nfor 30s): nothing was confirmed"), "{told}");
        assert!(Ended::closed(None).to_string().contains("code 1005: it gave no reason"));
        assert!(explain(4999).contains("not a code of the gateway's own"));
    }

    #[test]
    fn a_refusal_says_when_to_come_back() {
        let full = StatusCode::SERVICE_UNAVAILABLE;
        assert!(advice(full, Some("1")).ends_with("come back in 1 s"));
        assert!(advice(full, None).ends_with("come back later"));
    }
}
