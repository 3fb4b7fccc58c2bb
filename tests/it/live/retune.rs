//! Instruments and channels follow the configuration on the connection that stands.

use tidegate::feed::live::Topic;

use super::{config, held, mock, quote, shows_bid};
use crate::serve_support::{Server, eventually};

#[tokio::test]
async fn a_reload_subscribes_and_unsubscribes_without_reconnecting() {
    let mock = mock("binance");
    let of = |instruments: &[&str], channels: &[&str]| {
        config("binance", &mock.url(), instruments, channels)
    };
    let server = Server::start(&of(&["BTCUSDT", "ETHUSDT"], &["bookTicker"]));
    held(&mock, 2).await;
    server.save(of(&["ETHUSDT", "SOLUSDT"], &["bookTicker", "trade"]).as_bytes());
    let answer = server.reload().await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let applied = answer.json()["applied"].to_string();
    assert!(applied.contains("feed.f.instruments") && applied.contains("feed.f.channels"));
    assert!(answer.json()["needs_restart"].as_array().unwrap().is_empty(), "{}", answer.body);
    let expected: Vec<Topic> = [
        ("bookTicker", "ETHUSDT"),
        ("bookTicker", "SOLUSDT"),
        ("trade", "ETHUSDT"),
        ("trade", "SOLUSDT"),
    ]
    .map(|(channel, symbol)| Topic::new(channel, symbol))
    .into();
    eventually("the venue has the new topics", async || mock.held() == expected).await;
    mock.publish(&quote("SOLUSDT", 9));
    shows_bid(&server, "binance:SOLUSDT", "9.0").await;
    assert_eq!(mock.seen().connections, 1);
    // What makes the feed another one waits for a restart, and is told so.
    server.save(of(&["ETHUSDT"], &["bookTicker"]).replace("ws://", "ws://x.").as_bytes());
    let answer = server.reload().await;
    assert!(answer.json()["needs_restart"].to_string().contains("feed.f.url"), "{}", answer.body);
}
