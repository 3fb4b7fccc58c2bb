//! Durations and times as people write them: `"30s"`, `"1m 30s"`, `"2026-01-05T10:00:00Z"`.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::friendly::SpanParser;
use serde::Serializer;

/// Reads a duration that names its unit; the error says what was wrong.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(format!("{text:?} has no unit"));
    }
    let span = SpanParser::new()
        .parse_duration(text)
        .map_err(|_| format!("{text:?} is not a duration in h, m, s, ms, us or ns"))?;
    Duration::try_from(span).map_err(|_| format!("{text:?} is negative"))
}

/// Writes a duration as a configuration has it: in the largest unit that divides it, so that it can
/// be read again.
#[must_use]
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let units = [("h", 3_600_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
    for (unit, size) in units {
        if nanos.is_multiple_of(size) {
            return format!("{}{unit}", nanos / size);
        }
    }
    format!("{nanos}ns")
}

/// A wall time in ns since the Unix epoch: `2026-01-05T10:00:00Z`, or digits since 1970 whose number
/// tells the unit: up to 11 are s, 12 to 14 ms, 15 to 17 us, from 18 on ns.
///
/// # Errors
///
/// What would be right.
pub fn parse_wall(text: &str) -> Result<i64, String> {
    const RIGHT: &str = "write 2026-01-05T10:00:00Z, or s, ms, us or ns since 1970";
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let unit = match text.len() {
            ..=11 => 1_000_000_000,
            12..=14 => 1_000_000,
            15..=17 => 1_000,
            _ => 1,
        };
        let number = text.parse::<i64>().ok().and_then(|number| number.checked_mul(unit));
        return number.ok_or_else(|| RIGHT.to_owned());
    }
    let time: Timestamp = text.parse().map_err(|_| RIGHT.to_owned())?;
    i64::try_from(time.as_nanosecond()).map_err(|_| RIGHT.to_owned())
}

/// Writes a wall time so that it can be read again; nothing where there is none.
pub(super) fn serialize_wall<S: Serializer>(
    time: &Option<i64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time.map(|time| Timestamp::from_nanosecond(i128::from(time))) {
        Some(Ok(time)) => serializer.collect_str(&time),
        Some(Err(error)) => Err(serde::ser::Error::custom(error)),
        None => serializer.serialize_none(),
    }
}

pub(super) fn serialize<S: Serializer>(
    duration: &Duration,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&format(*duration))
}

/// For what may be left out; nothing is written then.
pub(super) fn serialize_some<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match duration {
        Some(duration) => serialize(duration, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_names_its_unit() {
        for (text, nanos) in [
            ("30s", 30_000_000_000),
            ("500ms", 500_000_000),
            ("0s", 0),
            ("1m 30s", 90_000_000_000),
            ("1h", 3_600_000_000_000),
            ("250us", 250_000),
            ("7ns", 7),
            ("1.5s", 1_500_000_000),
        ] {
            assert_eq!(parse(text).unwrap(), Duration::from_nanos(nanos), "{text}");
        }
        assert_eq!(parse("30").unwrap_err(), "\"30\" has no unit");
        assert_eq!(parse("-5s").unwrap_err(), "\"-5s\" is negative");
        for text in ["", " ", "s", "soon", "5 parsecs", "5s5", "1y", "99999999999999999999h"] {
            parse(text).unwrap_err();
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for nanos in [0, 1, 1_000, 1_500, 1_000_000, 999_999_999, 90_000_000_000] {
            let duration = Duration::from_nanos(nanos);
            assert_eq!(parse(&format(duration)).unwrap(), duration);
        }
        assert_eq!(format(Duration::from_millis(1500)), "1500ms");
        assert_eq!(format(Duration::from_secs(24 * 3600)), "24h");
        assert_eq!(format(Duration::ZERO), "0s");
    }
}
