//! TLS: a venue whose certificate is trusted is heard, another is not.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tidegate::clock::Clock;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_tungstenite::tungstenite::Message;

use super::{FREE, config, quote, shows_bid};
use crate::serve_support::{Server, eventually};

#[tokio::test]
async fn a_venue_is_heard_over_tls_if_its_certificate_is_trusted() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from(cert.der().to_vec())],
            PrivateKeyDer::Pkcs8(key),
        )
        .unwrap();
    let listener = tokio::net::TcpListener::bind(FREE).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
                let _ = socket.next().await;
                let _ = socket.send(Message::text(quote("BTCUSDT", 4))).await;
                while let Some(Ok(_)) = socket.next().await {}
            });
        }
    });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.pem"), cert.pem()).unwrap();
    let plain =
        config("binance", &format!("wss://localhost:{port}/"), &["BTCUSDT"], &["bookTicker"]);
    let trusting = format!("{plain}ca_file = \"ca.pem\"\n");
    let server = Server::start_in(folder, &trusting);
    shows_bid(&server, "binance:BTCUSDT", "4.0").await;
    let other = Server::start(&plain);
    let clock = Clock::system();
    eventually("it is refused by name", async || {
        let feeds = other.json("/v1/feeds").await.to_string();
        feeds.contains("certificate") || clock.now().as_nanos() > 30_000_000_000
    })
    .await;
    assert!(other.json("/v1/feeds").await.to_string().contains("certificate"));
}
