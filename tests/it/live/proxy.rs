//! A path that stops carrying without a word: no FIN, no reset, the sockets stay open.

use std::net::SocketAddr;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{FREE, config, health, held, mock, quote, shows_bid};
use crate::serve_support::{Server, eventually};

/// Forwards connections to a server until they are frozen. Ends when dropped.
struct CutProxy {
    address: SocketAddr,
    /// How often everything that stood was frozen.
    frozen: watch::Sender<u64>,
}

impl CutProxy {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(FREE).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (frozen, watched) = watch::channel(0);
        tokio::spawn(async move {
            let mut over = watched.clone();
            loop {
                let (mut client, _) = tokio::select! {
                    accepted = listener.accept() => accepted.unwrap(),
                    () = ended(&mut over) => return,
                };
                let mut watched = watched.clone();
                watched.mark_unchanged();
                tokio::spawn(async move {
                    let mut upstream = TcpStream::connect(server).await.unwrap();
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut upstream) => return,
                        changed = watched.changed() => if changed.is_err() { return },
                    }
                    // Both sockets stay open and are never read again.
                    ended(&mut watched).await;
                });
            }
        });
        Self { address, frozen }
    }

    /// Freezes the connections that stand; later ones are forwarded.
    fn freeze(&self) {
        self.frozen.send_modify(|times| *times += 1);
    }
}

/// Waits until the proxy is dropped.
async fn ended(frozen: &mut watch::Receiver<u64>) {
    while frozen.changed().await.is_ok() {}
}

#[tokio::test]
async fn b21_a_path_that_stops_carrying_without_closing_is_noticed_and_left() {
    let mock = mock("binance");
    let proxy = CutProxy::to(mock.address()).await;
    let url = format!("ws://{}/", proxy.address);
    let server = Server::start(&config("binance", &url, &["BTCUSDT"], &["bookTicker"]));
    held(&mock, 1).await;
    for round in 1..=2 {
        mock.publish(&quote("BTCUSDT", 10 * round));
        shows_bid(&server, "binance:BTCUSDT", &format!("{}.0", 10 * round)).await;
        let before = mock.seen().connections;
        proxy.freeze();
        mock.publish(&quote("BTCUSDT", 10 * round + 1));
        // Nothing but silence can have ended the connection: the path never does.
        eventually("it has left", async || mock.seen().connections > before).await;
        let told = server.json("/v1/feeds").await.to_string();
        assert!(told.contains("no sign of life"), "{told}");
        // What was lost on the way comes with the next connection.
        shows_bid(&server, "binance:BTCUSDT", &format!("{}.0", 10 * round + 1)).await;
        eventually("it is live again", async || health(&server).await.0 == "live").await;
    }
}
