//! What every key must be: ranges, forms and the rules between keys. Feeds have a file of their own.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use toml::de::DeTable;

use super::error::{ConfigError, ConfigErrors};
use super::feeds::feeds;
use super::raw::{Located, Problems, Section, Span};
use super::settings::{AdminSettings, Confirm, GatewaySettings, Settings, SubscriberSettings};
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
pub(super) const MIB: u32 = 1 << 20;

pub(super) const NO_TIME: Duration = Duration::ZERO;
const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

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
        max_in_flight_ms: s.integer("max_in_flight_ms", 0, 60_000, default.max_in_flight_ms),
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

pub(super) fn duration(
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

pub(super) fn choice<T: Copy + Default>(
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

pub(super) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
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
}
