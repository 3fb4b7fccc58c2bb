//! Each venue's dialect, both sides of it, over a socket.

use tidegate::venue::{VENUES, find};

use super::{config, held, instrument, mock};
use crate::serve_support::{Server, eventually};
use crate::venue::samples::SPEAKERS;

#[tokio::test]
async fn every_venue_is_asked_granted_and_heard_in_its_own_words() {
    for venue in VENUES.iter().filter(|venue| venue.dialect().is_some()) {
        let desk = find(venue.name).unwrap().desk().unwrap();
        let messages: Vec<_> = SPEAKERS
            .iter()
            .flat_map(|speaker| speaker.samples)
            .filter(|sample| sample.venue == venue.name)
            .filter_map(|sample| Some((desk.topic(sample.message.as_bytes())?, sample)))
            .collect();
        assert!(!messages.is_empty(), "{}", venue.name);
        let mock = mock(venue.name);
        let mut symbols: Vec<&str> = messages.iter().map(|(t, _)| t.symbol.as_str()).collect();
        let mut channels: Vec<&str> = messages.iter().map(|(t, _)| t.channel.as_str()).collect();
        for names in [&mut symbols, &mut channels] {
            names.sort_unstable();
            names.dedup();
        }
        let server = Server::start(&config(venue.name, &mock.url(), &symbols, &channels));
        // The heartbeat of Coinbase is asked for beside each channel.
        let extra =
            if venue.name == "coinbase" && !channels.contains(&"heartbeat") { 1 } else { 0 };
        held(&mock, symbols.len() * (channels.len() + extra)).await;
        for (topic, sample) in &messages {
            assert_eq!(mock.publish(sample.message), 1, "{}: {topic:?}", venue.name);
            let name = format!("{}:{}", venue.name, sample.instrument);
            let name = if sample.instrument.contains(':') { sample.instrument } else { &name };
            eventually(&format!("{} gives {name}", venue.name), async || {
                instrument(&server, name).await.is_some()
            })
            .await;
        }
    }
}
