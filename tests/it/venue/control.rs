//! Messages about the connection, messages of no use, and messages that nobody knows.

use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::StdRng};
use tidegate::venue::{Class, Refusal};

use super::samples::{SPEAKERS, samples_of};
use super::subject::Subject;

#[test]
fn b12_what_is_no_quote_is_classified_and_never_an_error() {
    for speaker in SPEAKERS {
        for venue in speaker.venues {
            let mut subject = Subject::new(venue);
            for (message, expected) in speaker.others {
                assert_eq!(subject.read(message), *expected, "{venue}: {message}");
            }
            assert!(subject.instruments.is_empty(), "none of these names an instrument");
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason() {
    for speaker in SPEAKERS {
        let mut subject = Subject::new(speaker.venues[0]);
        let common = [
            ("", Refusal::Malformed),
            ("   ", Refusal::Malformed),
            ("hello", Refusal::Malformed),
            ("<html>429</html>", Refusal::Malformed),
            ("{", Refusal::Malformed),
            ("[", Refusal::Malformed),
            (r#"{"result":null,"id":1}{"result":null,"id":2}"#, Refusal::Malformed),
            ("5", Refusal::WrongType),
            ("\"pong\"", Refusal::WrongType),
            ("null", Refusal::WrongType),
        ];
        for (message, expected) in common.iter().chain(speaker.refused) {
            assert_eq!(subject.refused(message), *expected, "{}: {message}", speaker.venues[0]);
        }
        assert_eq!(subject.read(vec![b'['; 1_000_000]), Class::Refused(Refusal::TooLarge));
        assert_eq!(subject.read(vec![b' '; 17 << 20]), Class::Refused(Refusal::TooLarge));
        assert!(subject.instruments.is_empty());
    }
}

#[test]
fn b12_control_messages_in_any_order_cost_no_tick_and_no_refusal() {
    let mut random = StdRng::seed_from_u64(12);
    for speaker in SPEAKERS {
        let venue = speaker.venues[0];
        let quotes = samples_of(venue);
        let Some(first) = quotes.first() else { continue };
        let mut subject = Subject::new(venue);
        let mut ticks = 0;
        for round in 0..1_000_u64.div_ceil(SPEAKERS.len() as u64) {
            let owned: Vec<String> = quotes
                .iter()
                .enumerate()
                .map(|(place, sample)| sample.numbered(100 * round + 10 * place as u64))
                .collect();
            let mut mix: Vec<(&str, Class)> = speaker.others.to_vec();
            mix.shuffle(&mut random);
            // The quotes keep their own order among the rest: a later one of a stream is later.
            for (place, quote) in owned.iter().enumerate() {
                mix.insert((place + 1) * mix.len() / (owned.len() + 1), (quote, Class::Quote));
            }
            for (message, expected) in &mix {
                assert_eq!(subject.read(message), *expected, "{message}");
            }
            ticks += quotes.len() as u64;
        }
        assert_eq!(subject.quote(&first.numbered(1_000_000)).tick, ticks + 1);
    }
}

#[test]
fn the_venues_error_and_an_unknown_streams_name_can_be_read() {
    let mut subject = Subject::new("binance");
    assert_eq!(subject.codec.last_problem(), None);
    subject.read(r#"{"code":2,"msg":"Invalid request: no method","id":3}"#);
    let problem = subject.codec.last_problem().unwrap();
    assert!(problem.contains("reports an error") && problem.contains("no method"), "{problem}");
    subject.read(r#"{"stream":"solusdt@brandNew","data":{}}"#);
    assert!(subject.codec.last_problem().unwrap().contains("brandNew"));
    subject.read(r#"{"e":"trade","s":"SOLUSDT","t":1,"p":"NaN","q":"1"}"#);
    assert!(subject.codec.last_problem().unwrap().starts_with("bad_number (member \"p\")"));
    subject.read(vec![b'x'; 100_000]);
    assert!(subject.codec.last_problem().unwrap().len() < 1_000);
}
