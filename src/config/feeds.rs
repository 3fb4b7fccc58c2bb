//! What a `[[feed]]` must be.

use std::path::PathBuf;

use toml::de::{DeTable, DeValue};

use super::check::{DAY, HOUR, MIB, NO_TIME, Rules, choice, duration, one_of};
use super::live;
use super::played;
use super::raw::{Located, Problems, Section, Span, described};
use super::settings::{FeedSettings, Input, Lines, RecordSettings, Recording, Speed, Start};

/// The feeds one by one, and what must differ between them.
pub(super) fn feeds<'d>(
    problems: &mut Problems<'_>,
    tables: &[Located<&'d DeTable<'d>>],
    rules: &Rules<'_>,
) -> Vec<FeedSettings> {
    let mut checked: Vec<FeedSettings> = Vec::with_capacity(tables.len());
    let mut names: Vec<(&str, Span)> = Vec::new();
    let mut stdin: Option<Span> = None;
    for (at, Located { value, span }) in tables.iter().enumerate() {
        let name = value.get("name").and_then(|name| match name.get_ref() {
            DeValue::String(text) => Some((text.as_ref(), name.span())),
            _ => None,
        });
        let path = match &name {
            Some((name, _)) if is_name(name) => format!("feed.{name}"),
            _ => format!("feed[{}]", at + 1),
        };
        let feed = feed(Section::of(problems, path.clone(), span.clone(), value), rules);
        if let Some((name, place)) = name {
            if let Some((_, first)) = names.iter().find(|(other, _)| *other == name) {
                let line = problems.line(first);
                let message = format!("{name:?} is the name of the feed at line {line} too");
                problems.at(&place, format!("{path}.name"), message);
            } else {
                names.push((name, place));
            }
        }
        if matches!(feed.input, Input::Lines(Lines::Stdin)) {
            let place = value.get("lines").map_or(span.clone(), toml::Spanned::span);
            match &stdin {
                Some(first) => {
                    let line = problems.line(first);
                    let message = format!("standard input is read by the feed at line {line} too");
                    problems.at(&place, format!("{path}.lines"), message);
                }
                None => stdin = Some(place),
            }
        }
        agree(problems, (&path, &feed), &checked, &tables[at]);
        checked.push(feed);
    }
    checked
}

fn feed(mut section: Section<'_, '_, '_>, rules: &Rules<'_>) -> FeedSettings {
    let s = &mut section;
    let name = name(s);
    let venue = venue(s, rules.venues);
    let account = account(s);
    let recordings = recordings(s, rules);
    let lines = lines(s);
    let url = live::url(s);
    let is_live = url.is_some();
    const ONE: &str = "a feed has one of recording, lines and url";
    let input = match (recordings, lines, url) {
        (Some(_), Some(Located { span, .. }), _) => {
            s.wrong("lines", &span, format!("cannot stand beside recording: {ONE}"));
            None
        }
        (recordings, lines, Some(Located { span, .. }))
            if recordings.is_some() || lines.is_some() =>
        {
            let other = if lines.is_some() { "lines" } else { "recording" };
            s.wrong("url", &span, format!("cannot stand beside {other}: {ONE}"));
            None
        }
        (Some(recordings), ..) => recordings.map(Input::Recording),
        (None, Some(lines), _) => lines.value.map(Input::Lines),
        (None, None, Some(url)) => url.value.map(Input::Url),
        (None, None, None) => {
            s.missing(
                "recording",
                "is missing: a feed has recording = [\"FILE\"], lines = \"-\" or url = \"wss://…\"",
            );
            None
        }
    };
    let live = live::live(s, &venue, is_live, rules);
    // A placeholder for what is wrong: the problem is noted, so it never gets out of here.
    let input = input.unwrap_or(Input::Recording(Vec::new()));
    let default = played::selected(s, FeedSettings::new(name, venue, input));
    let checked = FeedSettings {
        account,
        live,
        speed: speed(s, default.speed),
        looped: s.flag("loop", default.looped),
        start: choice(
            s,
            "start",
            &[("at_once", Start::AtOnce), ("first_subscriber", Start::FirstSubscriber)],
        ),
        max_gap: duration(s, "max_gap", NO_TIME, DAY, default.max_gap),
        timeline: timeline(s, default.input.recordings().is_some()),
        queue: s.size("queue", 1, MIB, default.queue),
        record: record(s, rules),
        ..default
    };
    section.finish();
    checked
}

fn name(section: &mut Section<'_, '_, '_>) -> String {
    const RIGHT: &str = "1 to 64 letters, digits, - and _";
    match section.text("name", || RIGHT.to_owned()) {
        Some(Located { value: name, .. }) if is_name(name) => name.to_owned(),
        Some(Located { value: name, span }) => {
            section.wrong("name", &span, format!("{name:?} is no name: it must be {RIGHT}"));
            String::new()
        }
        None => required(section, "name", RIGHT),
    }
}

/// Notes that a key is missing, unless it is there with the wrong type, which is noted already.
fn required(section: &mut Section<'_, '_, '_>, word: &'static str, right: &str) -> String {
    if section.take(word).is_none() {
        section.missing(word, format!("is missing: every feed has one, {right}"));
    }
    String::new()
}

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

fn venue(section: &mut Section<'_, '_, '_>, venues: &[&str]) -> String {
    let right = || one_of(venues.iter().copied());
    match section.text("venue", right) {
        Some(Located { value: venue, .. }) if venues.contains(&venue) => venue.to_owned(),
        Some(Located { value: venue, span }) => {
            section.wrong("venue", &span, format!("must be {}, not {venue:?}", right()));
            String::new()
        }
        None => required(section, "venue", &right()),
    }
}

fn account(section: &mut Section<'_, '_, '_>) -> Option<String> {
    const RIGHT: &str = "1 to 64 visible ASCII characters";
    let Located { value: text, span } = section.text("account", || RIGHT.to_owned())?;
    if (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text.to_owned());
    }
    section.wrong("account", &span, format!("must be {RIGHT}, not {text:?}"));
    None
}

fn timeline(section: &mut Section<'_, '_, '_>, recorded: bool) -> Option<String> {
    const RIGHT: &str = "1 to 64 letters, digits, - and _";
    let Located { value: text, span } = section.text("timeline", || RIGHT.to_owned())?;
    if !recorded {
        section.wrong("timeline", &span, "is for recordings: a live feed comes as it comes");
        return None;
    }
    if !is_name(text) {
        section.wrong("timeline", &span, format!("must be {RIGHT}, not {text:?}"));
        return None;
    }
    Some(text.to_owned())
}

/// Feeds on one timeline are played as one, so what says how they are played must be the same.
fn agree(
    problems: &mut Problems<'_>,
    (path, feed): (&str, &FeedSettings),
    before: &[FeedSettings],
    table: &Located<&DeTable<'_>>,
) {
    let Some(first) =
        before.iter().find(|other| other.timeline.is_some() && other.timeline == feed.timeline)
    else {
        return;
    };
    let differs = [
        ("speed", feed.speed != first.speed),
        ("loop", feed.looped != first.looped),
        ("start", feed.start != first.start),
        ("max_gap", feed.max_gap != first.max_gap),
    ];
    for (word, _) in differs.into_iter().filter(|(_, differs)| *differs) {
        let place = table.value.get(word).map_or(table.span.clone(), toml::Spanned::span);
        let message =
            format!("must be as in the feed {:?}, which is on the same timeline", first.name);
        problems.at(&place, format!("{path}.{word}"), message);
    }
}

/// `None` if the key is absent, `Some(None)` if it is there and wrong.
fn recordings(
    section: &mut Section<'_, '_, '_>,
    rules: &Rules<'_>,
) -> Option<Option<Vec<Recording>>> {
    const WORD: &str = "recording";
    const RIGHT: &str = "an array of files, such as [\"feeds/spot.jsonl.zst\"]";
    let Some(found) = section.texts(WORD, RIGHT) else {
        return section.take(WORD).map(|_| None);
    };
    let mut recordings: Vec<Recording> = Vec::with_capacity(found.value.len());
    if found.value.is_empty() {
        section.wrong(WORD, &found.span, format!("must be {RIGHT}, not an empty array"));
    }
    for Located { value: text, span } in found.value {
        match recording(text, rules) {
            Err(problem) => section.wrong(WORD, &span, problem),
            Ok(recording) if recordings.contains(&recording) => {
                section.wrong(WORD, &span, format!("{text:?} is listed twice"));
            }
            Ok(recording) => recordings.push(recording),
        }
    }
    Some(Some(recordings))
}

fn recording(text: &str, rules: &Rules<'_>) -> Result<Recording, String> {
    if text.is_empty() {
        return Err("a file has no name".to_owned());
    }
    if text == Recording::SAMPLE {
        return Ok(Recording::Sample);
    }
    if text.starts_with(Recording::SCHEME) {
        return Err(format!("{text:?} is not in the program; {:?} is", Recording::SAMPLE));
    }
    let path: PathBuf = rules.folder.join(text);
    if rules.exists.is_some_and(|exists| !exists(&path)) {
        return Err(format!("no file {} (from the configuration's folder)", path.display()));
    }
    Ok(Recording::File(path))
}

/// `None` if the key is absent; the value is `None` if it is there and wrong.
fn lines(section: &mut Section<'_, '_, '_>) -> Option<Located<Option<Lines>>> {
    const RIGHT: &str = "\"tcp://HOST:PORT\" or \"-\" for standard input";
    let Some(Located { value: text, span }) = section.text("lines", || RIGHT.to_owned()) else {
        return section.take("lines").map(|found| Located { value: None, span: found.span });
    };
    let value = if text == "-" {
        Some(Lines::Stdin)
    } else {
        text.strip_prefix("tcp://")
            .filter(|address| is_host_and_port(address))
            .map(|address| Lines::Tcp(address.to_owned()))
    };
    if value.is_none() {
        section.wrong("lines", &span, format!("must be {RIGHT}, not {text:?}"));
    }
    Some(Located { value, span })
}

/// Where a feed is recorded.
fn record(section: &mut Section<'_, '_, '_>, rules: &Rules<'_>) -> Option<RecordSettings> {
    const WORD: &str = "record";
    const MOST: u64 = 1 << 50;
    const MIB: u64 = 1 << 20;
    let Located { value, span } = section.take(WORD)?;
    let DeValue::Table(table) = value else {
        let message = format!("must be a section, written [feed.record], not {}", described(value));
        section.wrong(WORD, &span, message);
        return None;
    };
    let path = format!("{}.{WORD}", section.path);
    let mut section = Section::of(section.problems, path, span, table);
    let s = &mut section;
    let folder = match s.text("folder", || "a folder".to_owned()) {
        Some(Located { value: "", span }) => {
            s.wrong("folder", &span, "must be a folder, not an empty text");
            PathBuf::new()
        }
        Some(Located { value, .. }) => rules.folder.join(value),
        None => {
            if s.take("folder").is_none() {
                s.missing("folder", "is missing: a recorder has one, such as \"recordings\"");
            }
            PathBuf::new()
        }
    };
    let default = RecordSettings::new(folder);
    let checked = RecordSettings {
        rotate_bytes: s.count("rotate_bytes", 0, MOST, default.rotate_bytes),
        rotate_every: duration(s, "rotate_every", NO_TIME, 24 * 366 * HOUR, default.rotate_every),
        keep_files: s.integer("keep_files", 0, 1_000_000, default.keep_files),
        keep_bytes: s.count("keep_bytes", 0, MOST, default.keep_bytes),
        queue_bytes: s.count("queue_bytes", MIB, 4096 * MIB, default.queue_bytes),
        ..default
    };
    section.finish();
    Some(checked)
}

fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_graphic() && !b"/@[]".contains(&byte))
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn speed(section: &mut Section<'_, '_, '_>, default: Speed) -> Speed {
    const MOST: f64 = 1_000_000.0;
    let Some(Located { value, span }) = section.take("speed") else { return default };
    let factor = match value {
        DeValue::String(text) if text == "max" => return Speed::Max,
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse::<f64>().ok(),
        DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
        _ => None,
    };
    if let Some(factor) = factor
        && factor > 0.0
        && factor <= MOST
    {
        return Speed::Times(factor);
    }
    let message =
        format!("must be \"max\" or a number above 0 up to {MOST}, not {}", described(value));
    section.wrong("speed", &span, message);
    default
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_source_has_a_host_and_a_port() {
        for good in ["localhost:7000", "10.0.0.1:1", "[::1]:7000"] {
            assert!(is_host_and_port(good), "{good}");
        }
        for bad in ["", "localhost", ":7000", "a:0", "a:70000", "a:-1", "a/b:1", "u@a:1", "a b:1"] {
            assert!(!is_host_and_port(bad), "{bad}");
        }
    }

    #[test]
    fn a_name_can_stand_in_a_key() {
        assert!(is_name("spot-1_A") && is_name(&"a".repeat(64)));
        for bad in ["", "a.b", "a b", "ü", &"a".repeat(65)] {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
