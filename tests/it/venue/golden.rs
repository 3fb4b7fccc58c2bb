//! Every sample means what it says.

use tidegate::market::Quote;
use tidegate::venue::VENUES;

use super::samples::{Role, SPEAKERS, fills, samples, samples_of};
use super::subject::{RECEIVED, Subject, decimal};

#[test]
fn every_venue_has_samples_and_other_messages() {
    for venue in VENUES {
        let quoted = samples().any(|sample| sample.venue == venue.name);
        assert!(quoted || fills().any(|(of, _)| of == venue.name), "{}", venue.name);
        let speaker = SPEAKERS.iter().find(|s| s.venues.contains(&venue.name)).unwrap();
        assert!(!speaker.others.is_empty() && !speaker.refused.is_empty(), "{}", venue.name);
    }
}

#[test]
fn every_sample_means_what_it_says() {
    for sample in samples() {
        let mut subject = Subject::new(sample.venue);
        let quote = subject.quote(sample.message);
        assert_eq!(subject.name(), sample.instrument);
        assert!(subject.oddities.is_empty(), "{}: {:?}", sample.message, subject.oddities);
        assert_eq!((quote.tick, quote.receive_time), (1, RECEIVED));
        assert_eq!(quote.venue_time, sample.venue_time, "{}", sample.message);
        for role in Role::QUOTED {
            let expected = sample.text(role);
            let held = role.of(&quote);
            assert_eq!(held, expected.map(decimal), "{role:?} of {}", sample.message);
            assert_eq!(held.map(|d| d.scale()), expected.map(|d| decimal(d).scale()));
        }
        let quote = subject.quote(&sample.numbered(1));
        assert_eq!(quote.tick, 2, "an unchanged message is a tick");
    }
}

#[test]
fn what_is_dispatched_is_complete_whichever_stream_the_message_came_on() {
    for venue in VENUES.iter().filter(|venue| !samples_of(venue.name).is_empty()) {
        let mut subject = Subject::new(venue.name);
        let mut whole = Quote::default();
        for (count, sample) in samples_of(venue.name).into_iter().enumerate() {
            let quote = subject.quote(&sample.numbered(10 * count as u64));
            for (_, role) in sample.numbers {
                match role {
                    Role::Bid => whole.bid = quote.bid,
                    Role::BidSize => whole.bid_size = quote.bid_size,
                    Role::Ask => whole.ask = quote.ask,
                    Role::AskSize => whole.ask_size = quote.ask_size,
                    Role::Last => (whole.last, whole.last_size) = (quote.last, quote.last_size),
                    Role::LastSize | Role::Order | Role::Id | Role::Time => {}
                }
            }
            whole.tick = count as u64 + 1;
            whole.venue_time = quote.venue_time;
            whole.receive_time = RECEIVED;
            assert_eq!(quote, whole, "{}", sample.message);
        }
        assert!(whole.bid.is_some() && whole.last.is_some());
    }
}
