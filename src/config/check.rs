//! What every key must be: ranges, forms and the rules between keys.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, ConfigErrors};
use super::raw::{Located, Problems, Section, Span, described};
use super::settings::{
    AdminSettings, Confirm, FeedSettings, GatewaySettings, Input, Lines, Recording, Settings,
    Speed, Start, SubscriberSettings,
};
use super::time;

/// What a text is checked against.
pub(super) struct Rules<'a> {
    /// The file as errors name it.
    pub(super) file: &'a Path,
    /// Where relative paths begin.
    pub(super) folder: &'a Path,
    pub(super) venues: &'a [&'a str],
    /// Whether a recording is there; `None` to leave that to whoever opens it.
    pub(super) exists: Option<fn(&Path) -> bool>,
}

/// The limiter packs capacity into 20 bits.
const MAX_CAPACITY: u32 = (1 << 20) - 1;
const MILLION: u32 = 1_000_000;
const MIB: u32 = 1 << 20;

const NO_TIME: Duration = Duration::ZERO;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Reads and checks a whole text; every problem is in the error.
pub(super) fn parse(text: &str, rules: &Rules<'_>) -> Result<Settings, ConfigErrors> {
    let (root, syntax) = DeTable::parse_recoverable(text);
    if syntax.is_empty() && root.get_ref().is_empty() {
        return Err(ConfigErrors::new(rules.file, vec![nothing_set(text)]));
    }
    let mut problems = Problems::of(text);
    problems.syntax(&syntax);
    let settings = settings(&mut problems, root.get_ref(), rules);
    if problems.none() {
        return Ok(settings);
    }
    Err(ConfigErrors::new(rules.file, problems.into_errors()))
}

fn nothing_set(text: &str) -> ConfigError {
    let message = if text.is_empty() {
        "the file is empty; a configuration has at least one [[feed]]"
    } else {
        "the file sets nothing; a configuration has at least one [[feed]]"
    };
    ConfigError {
        line: Some(1),
        column: Some(1),
        key: "feed".to_owned(),
        message: message.to_owned(),
    }
}

fn settings<'d>(
    problems: &mut Problems<'_>,
    table: &'d DeTable<'d>,
    rules: &Rules<'_>,
) -> Settings {
    let mut root = Section::root(problems, table);
    let gateway = gateway(root.section("gateway"));
    let subscriber = subscriber(root.section("subscriber"));
    let admin = admin(root.section("admin"), &gateway);
    let tables = root.sections("feed");
    // A text cut short is most often short of its feeds: insisting on one keeps such a text from
    // silently putting every limit back to its default.
    if tables.is_empty() {
        root.missing("feed", "is missing: a configuration has at least one [[feed]]");
    }
    root.finish();
    Settings { gateway, subscriber, admin, feeds: feeds(problems, &tables, rules) }
}

fn gateway(mut section: Section<'_, '_, '_>) -> GatewaySettings {
    let default = GatewaySettings::default();
    let s = &mut section;
    let checked = GatewaySettings {
        listen: address(s, default.listen).0,
        max_subscribers: s.integer("max_subscribers", 0, MAX_CAPACITY, default.max_subscribers),
        max_known_instruments: s.size(
            "max_known_instruments",
            1,
            10 * MILLION,
            default.max_known_instruments,
        ),
        max_known_accounts: s.size(
            "max_known_accounts",
            1,
            10 * MILLION,
            default.max_known_accounts,
        ),
        shards: s.size("shards", 0, 256, default.shards),
        pace: duration(s, "pace", NO_TIME, SECOND, default.pace),
        handshake_timeout: duration(
            s,
            "handshake_timeout",
            10 * MS,
            HOUR,
            default.handshake_timeout,
        ),
        max_header_bytes: s.size("max_header_bytes", 512, MIB, default.max_header_bytes),
        heartbeat: duration(s, "heartbeat", 10 * MS, HOUR, default.heartbeat),
        shutdown_deadline: duration(
            s,
            "shutdown_deadline",
            NO_TIME,
            HOUR,
            default.shutdown_deadline,
        ),
        allowed_origins: origins(s),
    };
    section.finish();
    checked
}

fn subscriber(mut section: Section<'_, '_, '_>) -> SubscriberSettings {
    let default = SubscriberSettings::default();
    let s = &mut section;
    let checked = SubscriberSettings {
        capacity: s.integer("capacity", 0, MAX_CAPACITY, default.capacity),
        confirm: choice(
            s,
            "confirm",
            &[("pong", Confirm::Pong), ("client", Confirm::Client), ("flush", Confirm::Flush)],
        ),
        max_hz: s.integer("max_hz", 0, MILLION, default.max_hz),
        stall_timeout: duration(s, "stall_timeout", 10 * MS, DAY, default.stall_timeout),
        max_instruments: s.size("max_instruments", 1, 10 * MILLION, default.max_instruments),
        max_batch_bytes: s.size("max_batch_bytes", 512, 64 * MIB, default.max_batch_bytes),
        max_message_bytes: s.size("max_message_bytes", 128, 64 * MIB, default.max_message_bytes),
        max_ops_per_s: s.integer("max_ops_per_s", 1, MILLION, default.max_ops_per_s),
    };
    section.finish();
    checked
}

fn admin(mut section: Section<'_, '_, '_>, gateway: &GatewaySettings) -> AdminSettings {
    let (listen, span) = address(&mut section, AdminSettings::default().listen);
    if listen == gateway.listen && listen.port() != 0 {
        let span = span.unwrap_or(section.span.clone());
        section.wrong("listen", &span, format!("{listen} is the address of gateway.listen too"));
    }
    section.finish();
    AdminSettings { listen }
}

fn feeds<'d>(
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
    let input = match (recordings, lines) {
        (Some(_), Some(Located { span, .. })) => {
            s.wrong("lines", &span, "cannot stand beside recording: a feed has one of the two");
            None
        }
        (Some(recordings), None) => recordings.map(Input::Recording),
        (None, Some(lines)) => lines.value.map(Input::Lines),
        (None, None) => {
            s.missing(
                "recording",
                "is missing: a feed has recording = [\"FILE\"] or lines = \"-\"",
            );
            None
        }
    };
    // A placeholder for what is wrong: the problem is noted, so it never gets out of here.
    let input = input.unwrap_or(Input::Recording(Vec::new()));
    let default = FeedSettings::new(name, venue, input);
    let checked = FeedSettings {
        account,
        speed: speed(s, default.speed),
        looped: s.flag("loop", default.looped),
        start: choice(
            s,
            "start",
            &[("at_once", Start::AtOnce), ("first_subscriber", Start::FirstSubscriber)],
        ),
        max_gap: duration(s, "max_gap", NO_TIME, DAY, default.max_gap),
        queue: s.size("queue", 1, MIB, default.queue),
        ..default
    };
    section.finish();
    checked
}

fn duration(
    section: &mut Section<'_, '_, '_>,
    word: &'static str,
    least: Duration,
    most: Duration,
    default: Duration,
) -> Duration {
    let right = || {
        let (least, most) = (time::format(least), time::format(most));
        format!("a duration with its unit from \"{least}\" to \"{most}\"")
    };
    let Some(Located { value: text, span }) = section.text(word, right) else { return default };
    let problem = match time::parse(text) {
        Ok(duration) if (least..=most).contains(&duration) => return duration,
        Ok(_) => format!("{text:?} is out of range"),
        Err(problem) => problem,
    };
    section.wrong(word, &span, format!("{problem}; it must be {}", right()));
    default
}

fn choice<T: Copy + Default>(
    section: &mut Section<'_, '_, '_>,
    word: &'static str,
    choices: &[(&str, T)],
) -> T {
    let right = || one_of(choices.iter().map(|(name, _)| *name));
    let Some(Located { value: text, span }) = section.text(word, right) else {
        return T::default();
    };
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
        return *choice;
    }
    section.wrong(word, &span, format!("must be {}, not {text:?}", right()));
    T::default()
}

fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(|name| format!("{name:?}")).collect();
    format!("one of {}", names.join(", "))
}

fn address(section: &mut Section<'_, '_, '_>, default: SocketAddr) -> (SocketAddr, Option<Span>) {
    let right =
        || format!("an IP address with a port, such as \"{default}\" (port 0: the system chooses)");
    let Some(Located { value: text, span }) = section.text("listen", right) else {
        return (default, None);
    };
    match text.parse() {
        Ok(address) => (address, Some(span)),
        Err(_) => {
            section.wrong("listen", &span, format!("must be {}, not {text:?}", right()));
            (default, None)
        }
    }
}

fn origins(section: &mut Section<'_, '_, '_>) -> Vec<String> {
    const WORD: &str = "allowed_origins";
    const RIGHT: &str = "an array of origins, such as [\"https://desk.example:8443\"]";
    let Some(found) = section.texts(WORD, RIGHT) else { return Vec::new() };
    let mut origins: Vec<String> = Vec::with_capacity(found.value.len());
    for Located { value: text, span } in found.value {
        if !is_origin(text) {
            let message =
                format!("{text:?} is no origin: write scheme://host or scheme://host:port");
            section.wrong(WORD, &span, message);
        } else if origins.iter().any(|other| other == text) {
            section.wrong(WORD, &span, format!("{text:?} is listed twice"));
        } else {
            origins.push(text.to_owned());
        }
    }
    origins
}

/// An origin as browsers send it (RFC 6454, section 6.2), lower case, without a path.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return text == "null" };
    let plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        && !authority.is_empty()
        && authority.bytes().all(|byte| plain(byte) && !b"/?#@*\\".contains(&byte))
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
    fn an_origin_is_what_a_browser_sends() {
        for good in ["https://desk.example", "http://127.0.0.1:8080", "http://[::1]:1", "null"] {
            assert!(is_origin(good), "{good}");
        }
        for bad in ["", "*", "desk.example", "https://", "https://a/", "https://A", "https://a b"] {
            assert!(!is_origin(bad), "{bad}");
        }
    }

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
