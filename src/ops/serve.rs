//! Connections of the admin server, each with its bounds.
//!
//! The plain loop of the HTTP library bounds neither how many connections there are nor how long
//! one may dawdle; an operator's scripts and a scraper need few, so everything is small here.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at a time; more wait in the listener's backlog.
const MAX_CONNECTIONS: usize = 128;

/// How long a request's head may take, the idle time before it included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 16 * 1024;

/// How long a connection is kept, so that one whose client reads nothing goes away in the end.
const LIFE: Duration = Duration::from_secs(600);

/// How long a request in hand may take once its connection is to end.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait when accepting fails, say for want of file descriptors.
const RETRY: Duration = Duration::from_millis(100);

/// Serves until stopped, then lets requests in hand finish for at most two seconds.
pub async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    let mut failing = false;
    while let Some(accepted) = accept(&listener, &room, &stop).await {
        match accepted {
            Ok((stream, place)) => {
                failing = false;
                let (router, stop) = (router.clone(), stop.clone());
                connections.spawn(async move {
                    connection(stream, router, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Said once a spell: the condition lasts, the log should not.
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(%error, "accepting a connection of the admin server failed");
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// The next connection with its place among those allowed; `None` once stopped.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    stop: &CancellationToken,
) -> Option<io::Result<(TcpStream, OwnedSemaphorePermit)>> {
    let next = async {
        let place = room.clone().acquire_owned().await.map_err(io::Error::other)?;
        let (stream, _) = listener.accept().await?;
        Ok((stream, place))
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => None,
        accepted = next => Some(accepted),
    }
}

async fn connection(stream: TcpStream, router: Router, stop: CancellationToken) {
    // Answers are small and written whole; waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = std::pin::pin!(served);
    tokio::select! {
        ended = &mut served => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection of the admin server ended early");
            }
            return;
        }
        () = stop.cancelled() => {}
        () = tokio::time::sleep(LIFE) => {}
    }
    served.as_mut().graceful_shutdown();
    if tokio::time::timeout(GRACE, served).await.is_err() {
        tracing::debug!("a connection of the admin server was cut");
    }
}
