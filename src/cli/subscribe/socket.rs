//! The connection: where to, its bounds, and how it ends.

use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};
use tungstenite::http::Uri;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, WebSocketConfig};

use super::ended::Ended;
use crate::gateway::PATH;

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Longest message that is taken: the longest batch that a gateway can be configured to send, with
/// room for what stands around it.
const MAX_MESSAGE_BYTES: usize = (64 << 20) + 4096;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Completes an address that a person typed: `localhost:9010` is `ws://localhost:9010/v1/stream`.
pub(super) fn url(text: &str) -> Result<String, String> {
    const RIGHT: &str = "write ws://HOST:PORT/v1/stream, or HOST:PORT";
    if text.starts_with("wss://") || text.starts_with("https://") {
        return Err("TLS is not spoken here: connect with ws://, through a proxy if need be".into());
    }
    let text = match text.split_once("://") {
        None => format!("ws://{text}"),
        Some(("ws", _)) => text.to_owned(),
        Some(("http", rest)) => format!("ws://{rest}"),
        Some(_) => return Err(RIGHT.to_owned()),
    };
    let uri: Uri = text.parse().map_err(|error| format!("{error}; {RIGHT}"))?;
    if uri.host().is_none_or(str::is_empty) {
        return Err(RIGHT.to_owned());
    }
    if uri.path() == "/" && uri.query().is_none() {
        return Ok(format!("{}{PATH}", text.trim_end_matches('/')));
    }
    Ok(text)
}

/// Connects to a URL that [`url`] completed.
pub(super) async fn connect(url: &str) -> Result<Socket, Ended> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES))
        .write_buffer_size(0)
        .max_write_buffer_size(1 << 20);
    let connecting = connect_async_with_config(url, Some(config), true);
    match timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(Ended::handshake(url, error)),
        Err(_) => {
            let why = format!("no answer within {} s", CONNECT_TIMEOUT.as_secs());
            Err(Ended::Unreachable { url: url.to_owned(), why })
        }
    }
}

/// Closes in good order, if that takes no longer than `most`.
pub(super) async fn say_goodbye(socket: &mut Socket, most: Duration) {
    let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    // It is the end either way.
    let _ = timeout(most, async {
        if socket.close(Some(normal)).await.is_ok() {
            while let Some(Ok(_)) = socket.next().await {}
        }
    })
    .await;
}

/// Answers the other side's close frame, if that takes no longer than `most`.
pub(super) async fn finish_closing(socket: &mut Socket, most: Duration) {
    let _ = timeout(most, async { while let Some(Ok(_)) = socket.next().await {} }).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_types_becomes_the_streams_address() {
        for (typed, meant) in [
            ("localhost:9010", "ws://localhost:9010/v1/stream"),
            ("ws://127.0.0.1:9010", "ws://127.0.0.1:9010/v1/stream"),
            ("ws://127.0.0.1:9010/", "ws://127.0.0.1:9010/v1/stream"),
            ("http://[::1]:9010", "ws://[::1]:9010/v1/stream"),
            ("ws://127.0.0.1:9010/v1/stream", "ws://127.0.0.1:9010/v1/stream"),
            ("ws://proxy/tide/v1/stream?x=1", "ws://proxy/tide/v1/stream?x=1"),
        ] {
            assert_eq!(url(typed).unwrap(), meant);
        }
        for bad in ["", "ws://", "ftp://a", "wss://a", "a b:1", "ws://:9010"] {
            assert!(url(bad).is_err(), "{bad}");
        }
    }
}
