//! The body of the fuzz targets, run by the stable toolchain over what the corpus starts from.

use tidegate::venue::VENUES;

use super::samples::{SPEAKERS, fills, samples_of};

#[path = "../../../fuzz/src/lib.rs"]
#[allow(unreachable_pub, reason = "a library of its own for the fuzz targets")]
mod target;

#[test]
fn the_body_of_the_fuzz_targets_holds_for_everything_that_venues_are_known_to_say() {
    for venue in VENUES {
        let mut said: Vec<String> = Vec::new();
        for round in 0..20 {
            said.extend(samples_of(venue.name).iter().map(|sample| sample.numbered(round)));
        }
        said.extend(fills().filter(|(of, _)| *of == venue.name).map(|(_, fill)| fill.to_owned()));
        for speaker in SPEAKERS.iter().filter(|s| s.venues.contains(&venue.name)) {
            said.extend(speaker.others.iter().map(|(message, _)| (*message).to_owned()));
            said.extend(speaker.refused.iter().map(|(message, _)| (*message).to_owned()));
        }
        let all = said.join("\n");
        target::messages(venue.name, all.as_bytes());
        // Cut anywhere, and everything twice.
        for end in (0..all.len()).step_by(997) {
            target::messages(venue.name, &all.as_bytes()[end / 2..end]);
        }
        target::messages(venue.name, format!("{all}\n{all}").as_bytes());
    }
}
