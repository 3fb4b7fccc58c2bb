//! From a URL to an open WebSocket: address, TLS, upgrade.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::Uri;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

/// Longest message that is taken, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// What a WebSocket runs over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// An open connection.
pub(super) type Socket = WebSocketStream<Box<dyn Stream>>;

/// Where a venue is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    url: String,
    tls: bool,
    host: String,
    port: u16,
}

/// Not an address of a WebSocket; holds what was given and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} {1}; write ws://HOST[:PORT][/PATH], or wss:// for TLS")]
pub struct EndpointError(pub String, pub &'static str);

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(url: &str) -> Result<Self, EndpointError> {
        let refused = |why| EndpointError(url.to_owned(), why);
        let uri: Uri = url.parse().map_err(|_| refused("is no URL"))?;
        let tls = match uri.scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            Some(_) => return Err(refused("has another scheme than ws or wss")),
            None => return Err(refused("has no scheme")),
        };
        let authority = uri.authority().ok_or_else(|| refused("names no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("has a name or password in it, which is not supported"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(refused("names no host"));
        }
        let port = match authority.as_str().rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => port
                .parse()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| refused("has a bad port"))?,
            _ if tls => 443,
            _ => 80,
        };
        Ok(Self { url: url.to_owned(), tls, host, port })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// What connecting needs beside the endpoint.
#[derive(Clone)]
pub(super) struct Connector {
    endpoint: Endpoint,
    tls: Option<Arc<ClientConfig>>,
}

/// Why a feed cannot be set up to connect.
#[derive(Debug, thiserror::Error)]
pub(super) enum SetupError {
    #[error("reading certificates from {0}: {1}")]
    Certificates(PathBuf, rustls::pki_types::pem::Error),
    #[error("{0} holds no certificate")]
    NoCertificates(PathBuf),
    #[error("setting up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Connector {
    /// Roots are the platform's, and those in `ca_file` (PEM).
    pub(super) fn new(endpoint: Endpoint, ca_file: Option<&Path>) -> Result<Self, SetupError> {
        let tls = endpoint.tls.then(|| client_config(ca_file)).transpose()?;
        Ok(Self { endpoint, tls })
    }

    /// Connects, within `timeout` altogether.
    pub(super) async fn connect(&self, timeout: Duration) -> io::Result<Socket> {
        match tokio::time::timeout(timeout, self.open()).await {
            Ok(opened) => opened,
            Err(_) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, format!("not within {timeout:?}")))
            }
        }
    }

    async fn open(&self) -> io::Result<Socket> {
        let Endpoint { url, host, port, .. } = &self.endpoint;
        let tcp = TcpStream::connect((host.as_str(), *port)).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match &self.tls {
            None => Box::new(tcp),
            Some(config) => {
                let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                Box::new(tokio_rustls::TlsConnector::from(config.clone()).connect(name, tcp).await?)
            }
        };
        let request = url.into_client_request().map_err(io::Error::other)?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let opened =
            tokio_tungstenite::client_async_with_config(request, stream, Some(config)).await;
        opened.map(|(socket, _)| socket).map_err(io::Error::other)
    }
}

fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, SetupError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "a root certificate of the platform cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    if let Some(path) = ca_file {
        let wrong = |error| SetupError::Certificates(path.to_owned(), error);
        let before = roots.len();
        for certificate in CertificateDer::pem_file_iter(path).map_err(wrong)? {
            roots.add(certificate.map_err(wrong)?)?;
        }
        if roots.len() == before {
            return Err(SetupError::NoCertificates(path.to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_url_of_a_websocket() {
        for (url, host, port, tls) in [
            ("ws://127.0.0.1:9001/stream", "127.0.0.1", 9001, false),
            ("wss://stream.binance.com:9443/ws", "stream.binance.com", 9443, true),
            ("wss://ws.kraken.com/v2", "ws.kraken.com", 443, true),
            ("ws://[::1]:80", "::1", 80, false),
            ("ws://[::1]/x", "::1", 80, false),
        ] {
            let endpoint: Endpoint = url.parse().unwrap();
            assert_eq!((endpoint.host.as_str(), endpoint.port, endpoint.tls), (host, port, tls));
            assert_eq!(endpoint.to_string(), url);
        }
        for (url, says) in [
            ("http://a", "another scheme"),
            ("a:1", "no scheme"),
            ("stream.binance.com", "no scheme"),
            ("ws://", "no URL"),
            ("ws://a:0", "bad port"),
            ("ws://a:99999", "bad port"),
            ("ws://u:p@a", "name or password"),
        ] {
            let error = url.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(says) || error.contains("no host"), "{url}: {error}");
        }
    }
}
