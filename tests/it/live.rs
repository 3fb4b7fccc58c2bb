//! Live feeds, from a venue that answers, fails and comes back, to the gateway's own figures.

mod dialects;
mod example;
mod faults;
mod proxy;
mod retune;
mod tls;

use std::time::Duration;

use serde_json::Value;
use tidegate::app::mock::MockVenue;
use tidegate::clock::Clock;
use tidegate::venue::find;

use crate::serve_support::{FREE_PORTS, Server, eventually};

pub(crate) const FREE: &str = "127.0.0.1:0";

/// A mock of a venue on a port of its own.
pub(crate) fn mock(venue: &str) -> MockVenue {
    MockVenue::start(find(venue).unwrap(), FREE.parse().unwrap(), Clock::system()).unwrap()
}

/// A configuration with one live feed, called `f`, that does not wait for long.
pub(crate) fn config(venue: &str, url: &str, instruments: &[&str], channels: &[&str]) -> String {
    format!(
        "{FREE_PORTS}[[feed]]\nname = \"f\"\nvenue = \"{venue}\"\naccount = \"desk\"\n\
         url = \"{url}\"\ninstruments = {instruments:?}\nchannels = {channels:?}\n\
         stale_after = \"1500ms\"\nfirst_retry = \"20ms\"\nlongest_retry = \"200ms\"\n"
    )
}

/// What the server knows of an instrument.
pub(crate) async fn instrument(server: &Server, name: &str) -> Option<Value> {
    let all = server.json("/v1/instruments").await;
    all.as_array().unwrap().iter().find(|one| one["instrument"] == name).cloned()
}

pub(crate) async fn health(server: &Server) -> (String, String) {
    let feeds = server.json("/v1/feeds").await;
    let text = |key: &str| feeds[0][key].as_str().unwrap_or_default().to_owned();
    (text("health"), text("reason"))
}

/// Waits until the mock's clients hold so many topics.
pub(crate) async fn held(mock: &MockVenue, count: usize) {
    eventually("the topics are held", async || mock.held().len() == count).await;
}

/// A quote of Binance with this update id, whose prices tell it too.
pub(crate) fn quote(symbol: &str, id: u64) -> String {
    format!(
        "{{\"stream\":\"{}@bookTicker\",\"data\":{{\"u\":{id},\"s\":\"{symbol}\",\"b\":\"{id}.0\",\
         \"B\":\"1\",\"a\":\"{id}.5\",\"A\":\"1\"}}}}",
        symbol.to_lowercase()
    )
}

pub(crate) async fn shows_bid(server: &Server, name: &str, bid: &str) {
    eventually(&format!("{name} bids {bid}"), async || {
        instrument(server, name).await.is_some_and(|one| one["bid"] == bid)
    })
    .await;
}

#[tokio::test]
async fn quotes_come_live_after_the_topics_are_granted_and_health_is_told() {
    let mock = mock("binance");
    let channels = ["bookTicker", "trade"];
    let server = Server::start(&config("binance", &mock.url(), &["BTCUSDT", "ETHUSDT"], &channels));
    held(&mock, 4).await;
    mock.publish(&quote("BTCUSDT", 7));
    shows_bid(&server, "binance:BTCUSDT", "7.0").await;
    assert_eq!(health(&server).await.0, "live");
    assert_eq!(mock.publish(&quote("SOLUSDT", 1)), 0, "nobody has asked for it");
    assert_eq!(mock.seen().connections, 1);
    drop(mock);
    eventually("it is told as stale", async || health(&server).await.0 == "stale").await;
    assert_eq!(health(&server).await.1, "disconnected");
}

#[tokio::test]
async fn b16_what_the_venue_refuses_is_told_and_asked_for_again() {
    let mock = mock("binance");
    mock.set_faults(tidegate::app::mock::Faults { refuse_requests: 2, ..Default::default() });
    let server = Server::start(&config("binance", &mock.url(), &["BTCUSDT"], &["bookTicker"]));
    eventually("the refusal is told", async || {
        let feeds = server.json("/v1/feeds").await;
        feeds[0].to_string().contains("try again later")
    })
    .await;
    held(&mock, 1).await;
    mock.publish(&quote("BTCUSDT", 3));
    shows_bid(&server, "binance:BTCUSDT", "3.0").await;
    assert_eq!(mock.seen().connections, 1, "a refusal is no reason to reconnect");
}

#[tokio::test]
async fn b15_a_symbol_of_other_letters_goes_through_from_the_request_to_the_quote() {
    let mock = mock("binance");
    let symbol = "币安人生USDT";
    let server = Server::start(&config("binance", &mock.url(), &[symbol], &["bookTicker"]));
    held(&mock, 1).await;
    mock.publish(&quote(symbol, 5));
    shows_bid(&server, &format!("binance:{symbol}"), "5.0").await;
}

#[tokio::test]
async fn b22_packed_messages_are_read_and_a_broken_one_is_left_out_alone() {
    // Through a server of its own: the mock sends text alone.
    use futures_util::{SinkExt as _, StreamExt as _};
    use std::io::Write as _;
    use tokio_tungstenite::tungstenite::Message;

    let listener = tokio::net::TcpListener::bind(FREE).await.unwrap();
    let url = format!("ws://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        let _ = socket.next().await;
        for id in 1..=200_u64 {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packed.write_all(quote("BTCUSDT", id).as_bytes()).unwrap();
            let mut packed = packed.finish().unwrap();
            if id % 100 == 50 {
                packed.truncate(packed.len() / 2);
            }
            socket.send(Message::binary(packed)).await.unwrap();
        }
        socket.send(Message::text(r#"{"code":2,"msg":"an error in plain text"}"#)).await.unwrap();
        while let Some(Ok(_)) = socket.next().await {}
    });
    let server = Server::start(&config("binance", &url, &["BTCUSDT"], &["bookTicker"]));
    shows_bid(&server, "binance:BTCUSDT", "200.0").await;
    let one = instrument(&server, "binance:BTCUSDT").await.unwrap();
    assert_eq!(one["tick"], 198, "two of two hundred were cut");
    eventually("the broken ones are counted", async || {
        server
            .get("/metrics")
            .await
            .body
            .lines()
            .any(|line| line.contains("not_unpacked") && line.ends_with(" 2"))
    })
    .await;
    drop(server);
    let _ = tokio::time::timeout(Duration::from_secs(5), serving).await;
}
