//! Accepts connections, does their handshakes, and hands them to the shards.
//!
//! Handshakes run as tasks of their own with a bound on their number, time and size, so slow or
//! garbled ones hold nobody up. A connection takes a place among the subscribers only once its
//! request is known to be good.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Shared;
use super::handshake::{Refusal, Verdict, judge};
use super::shard::{Adoption, Command};
use super::stats::Refused;

/// Handshakes under way at a time; further connections wait in the kernel's backlog.
const MAX_HANDSHAKES: usize = 4096;

/// How long accepting rests when the process is out of descriptors.
const EXHAUSTED_REST: Duration = Duration::from_millis(100);

/// Unsent bytes the kernel keeps for a subscriber: what waits longer is conflated instead.
const NOTSENT_LOWAT: u32 = 16 * 1024;

/// Accepts until stopped.
pub(crate) async fn listen(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let handshakes = Arc::new(Semaphore::new(MAX_HANDSHAKES));
    let tasks = TaskTracker::new();
    let mut resting = false;
    loop {
        let Ok(place) = handshakes.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                resting = false;
                let shared = shared.clone();
                let stop = stop.clone();
                tasks.spawn(async move {
                    let _place = place;
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = greet(stream, peer, &shared) => {}
                    }
                });
            }
            Err(error) if is_exhausted(&error) => {
                // Said once a spell: the condition lasts, the log should not.
                if !std::mem::replace(&mut resting, true) {
                    tracing::warn!(%error, "cannot accept connections; trying again");
                }
                tokio::time::sleep(EXHAUSTED_REST).await;
            }
            // The connection was gone before it was accepted.
            Err(error) => tracing::debug!(%error, "a connection was not accepted"),
        }
    }
    tasks.close();
    tasks.wait().await;
}

fn is_exhausted(error: &io::Error) -> bool {
    // ENFILE, EMFILE, ENOBUFS, ENOMEM on Linux; other systems share the first two.
    matches!(error.raw_os_error(), Some(23 | 24 | 105 | 12))
}

/// One connection's handshake.
async fn greet(mut stream: TcpStream, peer: SocketAddr, shared: &Shared) {
    let limits = shared.control.limits();
    let judged = tokio::time::timeout(
        limits.handshake_timeout,
        receive_request(&mut stream, limits.max_header_bytes, &limits.allowed_origins),
    );
    let (early, answer) = match judged.await {
        Ok(Ok(Ok(upgrade))) => upgrade,
        Ok(Ok(Err(refusal))) => return refuse(stream, &refusal, shared).await,
        // The client went away.
        Ok(Err(_)) => return,
        Err(_) => return refuse(stream, &Refusal::slow(), shared).await,
    };
    let Ok(admission) = shared.control.admission().try_acquire_owned() else {
        return refuse(stream, &Refusal::full(), shared).await;
    };
    let welcome = tokio::time::timeout(limits.handshake_timeout, stream.write_all(&answer));
    if !matches!(welcome.await, Ok(Ok(()))) {
        return;
    }
    let socket = SockRef::from(&stream);
    let tuned =
        socket.set_tcp_nodelay(true).and_then(|()| socket.set_tcp_notsent_lowat(NOTSENT_LOWAT));
    if let Err(error) = tuned {
        tracing::debug!(%peer, %error, "a socket could not be tuned");
    }
    let Ok(stream) = stream.into_std() else { return };
    let port = shared.least_loaded_port();
    port.joining();
    let adoption = Adoption { stream, early, peer, admission };
    if port.command(Command::Adopt(adoption)).is_err() {
        port.left();
        shared.stats.refused[Refused::Unavailable as usize].inc();
        tracing::warn!(%peer, "a shard takes no more connections; one is dropped");
    }
}

/// Reads a request's head and judges it: what came behind it and the answer, or a refusal.
async fn receive_request(
    stream: &mut TcpStream,
    most: usize,
    origins: &[String],
) -> io::Result<Result<(Vec<u8>, Vec<u8>), Refusal>> {
    let mut head = Vec::with_capacity(1024);
    loop {
        match judge(&head, origins) {
            Verdict::Upgrade { length, answer } => {
                return Ok(Ok((head.split_off(length), answer)));
            }
            Verdict::Refuse(refusal) => return Ok(Err(refusal)),
            Verdict::Incomplete if head.len() >= most => return Ok(Err(Refusal::too_long(most))),
            Verdict::Incomplete => {}
        }
        let room = (most - head.len()).min(4096);
        let count = (&mut *stream).take(room as u64).read_buf(&mut head).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn refuse(mut stream: TcpStream, refusal: &Refusal, shared: &Shared) {
    shared.stats.refused[refusal.reason as usize].inc();
    let answer = refusal.answer();
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        // What is still on its way is read, or the answer could be lost to a reset.
        let mut rest = [0; 1024];
        for _ in 0..64 {
            if stream.read(&mut rest).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    })
    .await;
}
