//! One client of a mock venue.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async};
use tokio_util::sync::CancellationToken;

use super::{Connection, End, MOST_REQUESTS, QUEUE, Say, Shared};
use crate::clock::Instant;
use crate::venue::desk::Heard;

/// How often a repeated message is sent.
const REPEAT: Duration = Duration::from_millis(20);

/// How often heartbeats and pings are sent.
const BEAT: Duration = Duration::from_secs(1);

/// How long an upgrade may take, and a client to answer a close.
const PATIENCE: Duration = Duration::from_secs(5);

/// Accepts connections until stopped.
pub(super) async fn accept(
    listener: std::net::TcpListener,
    shared: Arc<Shared>,
    stop: CancellationToken,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(%error, "the mock venue cannot listen"),
    };
    let mut next = 0;
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                next += 1;
                tokio::spawn(greet(stream, shared.clone(), next, stop.clone()));
            }
            Err(error) => {
                tracing::debug!(%error, "the mock venue could not accept");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn greet(mut stream: TcpStream, shared: Arc<Shared>, id: u64, stop: CancellationToken) {
    if shared.lock().faults.refuse_connections {
        shared.lock().seen.refused_connections += 1;
        let answer =
            b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(answer).await;
        return;
    }
    let _ = stream.set_nodelay(true);
    let Ok(Ok(socket)) = tokio::time::timeout(PATIENCE, accept_async(stream)).await else { return };
    let (say, told) = mpsc::channel(QUEUE);
    {
        let mut inner = shared.lock();
        let connection = Connection { say, held: Default::default(), last: None };
        inner.connections.insert(id, connection);
        inner.seen.connections += 1;
        inner.seen.open += 1;
        inner.seen.most_open = inner.seen.most_open.max(inner.seen.open);
    }
    tokio::select! {
        () = stop.cancelled() => {}
        () = converse(socket, told, &shared, id) => {}
    }
    let mut inner = shared.lock();
    inner.connections.remove(&id);
    inner.seen.open -= 1;
}

async fn converse(
    mut socket: WebSocketStream<TcpStream>,
    mut told: mpsc::Receiver<Say>,
    shared: &Shared,
    id: u64,
) {
    let mut beat = interval(BEAT);
    let mut repeat = interval(REPEAT);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    repeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut recent = VecDeque::new();
    loop {
        tokio::select! {
            said = told.recv() => match said {
                Some(Say::Text(text)) => {
                    if socket.send(Message::text(&*text)).await.is_err() {
                        return;
                    }
                }
                Some(Say::End(end)) => return finish(socket, end).await,
                // Cut, or it did not keep up.
                None => return,
            },
            heard = socket.next() => match heard {
                Some(Ok(Message::Text(text))) => {
                    if !in_rate(shared, &mut recent, id) {
                        return finish(socket, End::Close(1008)).await;
                    }
                    match shared.desk.hear(&text) {
                        Heard::Asked(asked) => shared.obey(id, &asked),
                        Heard::Answer(answer) => {
                            if socket.send(Message::text(answer)).await.is_err() {
                                return;
                            }
                        }
                        Heard::Nothing => {}
                    }
                }
                Some(Ok(Message::Close(_))) | None | Some(Err(_)) => return,
                Some(Ok(_)) => {}
            },
            _ = beat.tick() => {
                let (stall, beat) = {
                    let inner = shared.lock();
                    (inner.faults.stall || inner.faults.repeat, shared.desk.heartbeat())
                };
                let message = match beat {
                    Some(text) if !stall => Message::text(text),
                    _ => Message::Ping(Default::default()),
                };
                if socket.send(message).await.is_err() {
                    return;
                }
            },
            _ = repeat.tick() => {
                let last = {
                    let inner = shared.lock();
                    let repeat = inner.faults.repeat;
                    inner.connections.get(&id).filter(|_| repeat).and_then(|c| c.last.clone())
                };
                if let Some(last) = last
                    && socket.send(Message::text(&*last)).await.is_err()
                {
                    return;
                }
            },
        }
    }
}

/// Takes note of a request; `false` if the client is over the rate.
fn in_rate(shared: &Shared, recent: &mut VecDeque<Instant>, id: u64) -> bool {
    let now = shared.clock.now();
    let mut inner = shared.lock();
    if inner.seen.requests.len() < MOST_REQUESTS {
        inner.seen.requests.push((id, now));
    }
    let most = inner.faults.requests_per_s;
    recent.push_back(now);
    while recent.front().is_some_and(|first| now.since(*first) >= Duration::from_secs(1)) {
        recent.pop_front();
    }
    if most > 0 && recent.len() > most as usize {
        inner.seen.over_rate += 1;
        return false;
    }
    true
}

async fn finish(mut socket: WebSocketStream<TcpStream>, end: End) {
    match end {
        End::Cut => {}
        End::HalfClose => {
            let _ = socket.get_mut().shutdown().await;
            // The client has gone once it ends its own half.
            let _ = tokio::time::timeout(PATIENCE, async {
                while let Some(Ok(_)) = socket.next().await {}
            })
            .await;
        }
        End::Close(code) => {
            let frame = CloseFrame { code: code.into(), reason: "on purpose".into() };
            let _ = tokio::time::timeout(PATIENCE, async {
                socket.close(Some(frame)).await?;
                while let Some(Ok(_)) = socket.next().await {}
                Ok::<_, tokio_tungstenite::tungstenite::Error>(())
            })
            .await;
        }
    }
}
