//! Which part of its recordings a feed plays.

use super::live::names;
use super::raw::{Located, Section};
use super::settings::FeedSettings;
use super::time;

/// `feed` with the range and the instruments that the section names.
pub(super) fn selected(section: &mut Section<'_, '_, '_>, feed: FeedSettings) -> FeedSettings {
    if feed.input.recordings().is_none() {
        for word in ["from", "to", "only"] {
            if let Some(Located { span, .. }) = section.take(word) {
                section.wrong(word, &span, "is for recordings: other feeds come as they come");
            }
        }
        return feed;
    }
    let from = wall_time(section, "from");
    let to = wall_time(section, "to");
    if let (Some(from), Some(to)) = (from, to)
        && from >= to
        && let Some(Located { span, .. }) = section.take("to")
    {
        section.wrong("to", &span, "must be later than from, or nothing is left");
    }
    const RIGHT: &str = "an array of symbols, such as [\"BTCUSDT\", \"ETH*\"]";
    let only = names(section, "only", RIGHT).unwrap_or_default();
    for name in &only {
        if let Some((venue, _)) = name.split_once(':')
            && venue != feed.venue
            && let Some(Located { span, .. }) = section.take("only")
        {
            let message = format!("{name:?} is no instrument of {}", feed.venue);
            section.wrong("only", &span, message);
        }
    }
    FeedSettings { from, to, only, ..feed }
}

fn wall_time(section: &mut Section<'_, '_, '_>, word: &'static str) -> Option<i64> {
    const RIGHT: &str = "a time, \"2026-01-05T10:00:00Z\" or digits since 1970";
    let Located { value: text, span } = section.text(word, || RIGHT.to_owned())?;
    match time::parse_wall(text) {
        Ok(time) => Some(time),
        Err(_) => {
            section.wrong(word, &span, format!("must be {RIGHT}, not {text:?}"));
            None
        }
    }
}
