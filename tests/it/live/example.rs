//! The example configuration of live feeds.

use std::time::Duration;

use tidegate::config::{Settings, Source, VENUES};

const LIVE: &str = include_str!("../../../config/live.toml");

fn parse(text: &str) -> Result<Settings, String> {
    Source::file("live.toml", VENUES).parse(text.as_bytes()).map_err(|errors| errors.to_string())
}

#[test]
fn the_example_is_right_and_asks_each_venue_for_what_it_says() {
    let settings = parse(LIVE).unwrap();
    let [spot, kraken, mock] = &settings.feeds[..] else { panic!("three feeds") };
    let urls = [spot, kraken, mock].map(|feed| feed.input.url().unwrap());
    assert_eq!(urls[0], "wss://stream.binance.com:9443/stream");
    assert_eq!(urls[1], "wss://ws.kraken.com/v2");
    assert_eq!(urls[2], "ws://127.0.0.1:9020/");
    let [spot, kraken, mock] = [spot, kraken, mock].map(|feed| feed.live.as_ref().unwrap());
    assert_eq!(spot.channels, ["bookTicker", "trade"], "the venue's quotes and trades");
    assert_eq!((&kraken.channels[..], kraken.instruments.len()), (&["ticker".to_owned()][..], 2));
    assert_eq!((spot.stale_after, kraken.stale_after), (None, Some(Duration::from_secs(10))));
    assert_eq!(mock.longest_retry, Duration::from_secs(2));
}

#[test]
fn a_url_that_cannot_be_connected_to_is_told_with_its_line_and_key() {
    let line = 1 + LIVE.lines().position(|line| line.contains("ws.kraken.com")).unwrap();
    for (url, why) in [
        ("https://ws.kraken.com/v2", "another scheme than ws or wss"),
        ("ws.kraken.com", "no scheme"),
        ("wss://ws.kraken.com:0/v2", "bad port"),
        ("wss://me:secret@ws.kraken.com", "name or password"),
    ] {
        let told = parse(&LIVE.replace("wss://ws.kraken.com/v2", url)).unwrap_err();
        assert!(told.starts_with(&format!("live.toml:{line}:")), "{told}");
        assert!(told.contains("feed.kraken.url") && told.contains(why), "{told}");
    }
}
