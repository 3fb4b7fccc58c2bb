//! Damaged messages: none makes a codec panic, and none makes it say a number that was not there.

use std::collections::HashSet;

use rand::rngs::StdRng;
use rand::{Rng as _, RngExt as _, SeedableRng};
use tidegate::market::Decimal;
use tidegate::venue::{Class, Codec, Event, VENUES};

use super::recordings;
use super::samples::{Role, fills, samples_of};
use super::subject::Subject;

/// Of each venue, in a short run.
const MUTANTS: usize = 15_000;

/// Pieces that are likely to mean something where they do not belong.
const PIECES: &[&str] = &[
    "null",
    "\"\"",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "e",
    "E",
    "-",
    "+",
    ".",
    "0",
    "1e99",
    "NaN",
    "true",
    "\\u0000",
    "\\ud800",
    "18446744073709551616",
    "\"s\":\"ETHUSDT\",",
    "\"data\":{",
    "\"b\":\"1\",",
    "\u{0}",
    "龙",
    "1e-7",
    "999999999999999999999999999999",
];

fn mutate(message: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = message.to_vec();
    let mutations = if random.random() { 1 } else { random.random_range(2..=4) };
    for _ in 0..mutations {
        if bytes.is_empty() {
            break;
        }
        let at = random.random_range(0..bytes.len());
        let end = (at + random.random_range(1..=12)).min(bytes.len());
        match random.random_range(0..8) {
            0 => bytes[at] ^= 1 << random.random_range(0..8),
            1 => bytes[at] = random.random(),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                drop(bytes.splice(at..at, piece.bytes()));
            }
            4 => {
                let piece = PIECES[random.random_range(0..PIECES.len())];
                drop(bytes.splice(at..end, piece.bytes()));
            }
            5 => {
                let copied = bytes[at..end].to_vec();
                let to = random.random_range(0..=bytes.len());
                drop(bytes.splice(to..to, copied));
            }
            6 => bytes.truncate(at),
            _ => {
                let digits: Vec<usize> =
                    (0..bytes.len()).filter(|&at| bytes[at].is_ascii_digit()).collect();
                if !digits.is_empty() {
                    let at = digits[random.random_range(0..digits.len())];
                    bytes[at] = b'0' + random.random_range(0..10);
                }
            }
        }
    }
    bytes
}

/// Every number in the message: each run of the characters that numbers are made of, read by another
/// reader than the codec's.
fn numbers(message: &[u8]) -> HashSet<Decimal> {
    let text = String::from_utf8_lossy(message);
    // A digit may be written as an escape: what it means is there too.
    let meant = (b'!'..=b'z').fold(text.clone().into_owned(), |text, byte| {
        let escape = format!("\\u{byte:04x}");
        if text.contains("\\u00") {
            text.replace(&escape, &char::from(byte).to_string())
        } else {
            text
        }
    });
    let text = format!("{text} {meant}");
    let numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E');
    let runs = text.split(|c| !numeric(c)).filter(|run| !run.is_empty() && run.len() < 64);
    runs.filter_map(spelled_out).collect()
}

/// A number with its exponent spelled out in zeros, which that reader is then given.
fn spelled_out(run: &str) -> Option<Decimal> {
    let (mantissa, exponent) = run.split_once(['e', 'E']).unwrap_or((run, "0"));
    let exponent: i64 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let (sign, whole) = match whole.strip_prefix('-') {
        Some(whole) => ("-", whole),
        None => ("", whole.strip_prefix('+').unwrap_or(whole)),
    };
    let digits = format!("{whole}{fraction}");
    if !digits.is_empty() && digits.bytes().all(|digit| digit == b'0') {
        return Some(Decimal::ZERO);
    }
    let point = whole.len() as i64 + exponent;
    if digits.is_empty() || !(-40..=80).contains(&point) {
        return None;
    }
    let padded = format!("{}{digits}{}", "0".repeat(41), "0".repeat(81));
    let (whole, fraction) = padded.split_at(usize::try_from(point + 41).ok()?);
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    format!("{sign}0{whole}.{fraction}0").parse().ok()
}

/// The corpus of a venue: our own messages, and real ones if they are at hand.
fn corpus(venue: &str) -> Vec<Vec<u8>> {
    let own = samples_of(venue).into_iter().map(|s| s.message);
    let fills = fills().filter(|(of, _)| *of == venue).map(|(_, message)| message);
    let mut corpus: Vec<Vec<u8>> = own.chain(fills).map(|m| m.as_bytes().to_vec()).collect();
    let Some(recordings) = recordings::of(venue) else {
        eprintln!("SKIPPED: no recordings at hand, so only our own messages were mutated");
        return corpus;
    };
    for recording in &recordings {
        let mut subject = Subject::new(venue);
        let (mut used, mut other) = (Vec::new(), Vec::new());
        for (_, message) in recording.messages().filter(|(_, message)| message.len() < 4_000) {
            match subject.read(message) {
                Class::Quote | Class::Fill => used.push(message),
                _ => other.push(message),
            }
        }
        // Every few hundredth of many, so that the whole recording has its part; few of those that
        // make nothing, which most are.
        for (found, most) in [(used, 200), (other, 20)] {
            let step = (found.len() / most).max(1);
            corpus.extend(found.into_iter().step_by(step).map(<[u8]>::to_vec));
        }
    }
    corpus
}

#[test]
fn b06_no_damaged_message_panics_or_makes_a_number_that_was_not_in_it() {
    damage(MUTANTS);
}

#[test]
#[ignore = "a million of each venue: some minutes, or an hour without optimization"]
fn b06_no_million_of_damaged_messages_does_either() {
    damage(1_000_000);
}

/// Reads so many damaged messages of every venue.
fn damage(mutants: usize) {
    for venue in VENUES {
        let venue = venue.name;
        let mut random = StdRng::seed_from_u64(0x7467);
        let (mut accepted, mut refused) = (0, 0);
        let corpus = corpus(venue);
        for _ in 0..mutants {
            let message = mutate(&corpus[random.random_range(0..corpus.len())], &mut random);
            // A codec of its own: whatever it emits must be from this message alone.
            let mut subject = Subject::new(venue);
            match subject.read(&message) {
                Class::Refused(_) => refused += 1,
                Class::Quote | Class::Fill => {
                    accepted += 1;
                    for event in &subject.events {
                        check(&message, event);
                    }
                }
                _ => {}
            }
        }
        assert!(accepted > mutants / 20, "{accepted}: too few of {venue} still meant something");
        assert!(refused > mutants / 20, "{refused}: too few of {venue} were damaged enough");
    }
}

fn check(message: &[u8], event: &Event) {
    let told = match event {
        Event::Quote { quote, .. } => Role::QUOTED.map(|role| role.of(quote)).to_vec(),
        Event::Fill(fill) => vec![Some(fill.price), Some(fill.quantity)],
    };
    let there = numbers(message);
    for number in told.iter().flatten() {
        assert!(there.contains(number), "{number} from {}", String::from_utf8_lossy(message));
    }
}

#[test]
fn a_codec_that_has_read_any_damage_still_reads_the_next_good_message() {
    let mut random = StdRng::seed_from_u64(7);
    for venue in VENUES.iter().filter(|venue| !samples_of(venue.name).is_empty()) {
        let samples = samples_of(venue.name);
        let mut subject = Subject::new(venue.name);
        let mut ticks = 0;
        for round in 0..2_000 {
            let sample = samples[random.random_range(0..samples.len())];
            // Another symbol, so that what damage makes of it stays beside the good one.
            let damaged = sample.of(sample.message, "BADLY");
            subject.read(mutate(damaged.as_bytes(), &mut random));
            ticks += 1;
            assert_eq!(subject.quote(&sample.numbered(round)).tick, ticks);
        }
    }
}

#[test]
fn random_bytes_panic_nowhere() {
    let mut random = StdRng::seed_from_u64(9);
    for venue in VENUES {
        let mut subject = Subject::new(venue.name);
        for length in 0..2_000 {
            let mut bytes = vec![0; length];
            random.fill_bytes(&mut bytes);
            subject.read(&bytes);
        }
        let codec: &mut dyn Codec = subject.codec.as_mut();
        codec.new_session();
    }
}
