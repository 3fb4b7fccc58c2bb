//! What a live feed's keys must be.

use std::path::PathBuf;
use std::time::Duration;

use super::check::{DAY, HOUR, Rules, duration};
use super::raw::{Located, Section};
use super::settings::LiveSettings;
use crate::feed::live::Endpoint;
use crate::venue;

/// Instruments or channels that one feed may ask for.
const MOST_TOPICS: usize = 10_000;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// `None` if the key is absent; the value is `None` if it is there and wrong.
pub(super) fn url(section: &mut Section<'_, '_, '_>) -> Option<Located<Option<String>>> {
    const RIGHT: &str = "the venue's address, \"wss://HOST/PATH\"";
    let Some(Located { value: text, span }) = section.text("url", || RIGHT.to_owned()) else {
        return section.take("url").map(|found| Located { value: None, span: found.span });
    };
    let value = match text.parse::<Endpoint>() {
        Ok(endpoint) => Some(endpoint.to_string()),
        Err(error) => {
            section.wrong("url", &span, error.to_string());
            None
        }
    };
    Some(Located { value, span })
}

/// The keys that only a feed with a `url` has.
pub(super) fn live(
    section: &mut Section<'_, '_, '_>,
    venue: &str,
    is_live: bool,
    rules: &Rules<'_>,
) -> Option<LiveSettings> {
    const WORDS: [&str; 6] =
        ["instruments", "channels", "stale_after", "first_retry", "longest_retry", "ca_file"];
    if !is_live {
        for word in WORDS {
            if let Some(Located { span, .. }) = section.take(word) {
                section.wrong(word, &span, "is for a feed with a url");
            }
        }
        return None;
    }
    let known = venue::find(venue);
    if known.is_some_and(|known| known.dialect().is_none())
        && let Some(Located { span, .. }) = section.take("url")
    {
        section.wrong("url", &span, format!("cannot be connected to: {venue} comes as lines"));
    }
    let instruments = names(section, "instruments", "an array of symbols, such as [\"BTCUSDT\"]");
    if instruments.is_none() && section.take("instruments").is_none() {
        section.missing("instruments", "is missing: a feed with a url names what to ask for");
    }
    let asked_for = known.map_or(&[][..], venue::Venue::channels);
    let right = format!("an array of channels, such as {asked_for:?}");
    let channels = names(section, "channels", &right)
        .unwrap_or_else(|| asked_for.iter().map(|&name| name.to_owned()).collect());
    let default = LiveSettings::new(instruments.unwrap_or_default(), channels);
    let stale_after = section
        .take("stale_after")
        .map(|_| duration(section, "stale_after", SECOND, DAY, 60 * SECOND));
    let first_retry = duration(section, "first_retry", MS, HOUR, default.first_retry);
    let longest_retry = duration(section, "longest_retry", MS, HOUR, default.longest_retry);
    if let Some(Located { span, .. }) = section.take("longest_retry")
        && longest_retry < first_retry
    {
        section.wrong("longest_retry", &span, "must not be shorter than first_retry");
    }
    let ca_file = ca_file(section, rules);
    Some(LiveSettings { stale_after, first_retry, longest_retry, ca_file, ..default })
}

/// `None` if the key is absent or no array of texts.
pub(super) fn names(
    section: &mut Section<'_, '_, '_>,
    word: &'static str,
    right: &str,
) -> Option<Vec<String>> {
    let Located { value: found, span } = section.texts(word, right)?;
    if found.is_empty() {
        section.wrong(word, &span, format!("must be {right}, not an empty array"));
    }
    if found.len() > MOST_TOPICS {
        section.wrong(word, &span, format!("must have at most {MOST_TOPICS} entries"));
    }
    let mut names: Vec<String> = Vec::with_capacity(found.len());
    for Located { value: text, span } in found {
        let good = (1..=128).contains(&text.len())
            && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        if !good {
            let message = format!("{text:?} is no name: 1 to 128 bytes without spaces are");
            section.wrong(word, &span, message);
        } else if names.iter().any(|name| name == text) {
            section.wrong(word, &span, format!("{text:?} is listed twice"));
        } else {
            names.push(text.to_owned());
        }
    }
    Some(names)
}

fn ca_file(section: &mut Section<'_, '_, '_>, rules: &Rules<'_>) -> Option<PathBuf> {
    const RIGHT: &str = "a file of certificates (PEM)";
    let Located { value: text, span } = section.text("ca_file", || RIGHT.to_owned())?;
    let path = rules.folder.join(text);
    if text.is_empty() || rules.exists.is_some_and(|exists| !exists(&path)) {
        let message = format!("no file {} (from the configuration's folder)", path.display());
        section.wrong("ca_file", &span, message);
    }
    Some(path)
}
