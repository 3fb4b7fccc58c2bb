//! Values of options: read, or refused with what would be right.

use std::time::Duration;

use clap::builder::PossibleValuesParser;
use jiff::fmt::friendly::SpanParser;

use crate::config::{Speed, VENUES, parse_wall_time};

/// Which venue's messages a recording holds.
pub(super) fn venue() -> PossibleValuesParser {
    PossibleValuesParser::new(VENUES)
}

/// A duration that names its unit: `60s`, `1m 30s`, `500ms`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    SpanParser::new()
        .parse_unsigned_duration(text.trim())
        .map_err(|_| "write a number and its unit, as 500ms, 60s, 1m30s or 2h".to_owned())
}

/// A wall time, in ns since the Unix epoch.
pub(super) fn time(text: &str) -> Result<i64, String> {
    parse_wall_time(text)
}

/// A speed: `max`, or a number above 0.
pub(super) fn speed(text: &str) -> Result<Speed, String> {
    const MOST: f64 = 1_000_000.0;
    if text == "max" {
        return Ok(Speed::Max);
    }
    let number = text.strip_suffix('x').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(factor) if factor > 0.0 && factor <= MOST => Ok(Speed::Times(factor)),
        _ => Err(format!("write \"max\", or a number above 0 up to {MOST}")),
    }
}

/// A rate wish: batches a second; 0 for none.
pub(super) fn max_hz(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hz) if hz == 0.0 || (0.001..=1_000_000.0).contains(&hz) => Ok(hz),
        _ => Err("write batches a second, 0.001 to 1000000, or 0 for no wish".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_names_its_unit() {
        assert_eq!(duration("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for bad in ["", "60", "-1s", "soon", "5 parsecs"] {
            duration(bad).unwrap_err();
        }
    }

    #[test]
    fn a_time_is_a_date_or_digits_that_tell_their_unit() {
        let ten = 1_767_607_200_000_000_000;
        for text in ["2026-01-05T10:00:00Z", "1767607200", "1767607200000", "1767607200000000000"] {
            assert_eq!(time(text), Ok(ten), "{text}");
        }
        assert_eq!(time("2026-01-05T12:00:00.5+02:00"), Ok(ten + 500_000_000));
        for bad in ["", "soon", "2026-01-05", "99999999999999999999", "-5"] {
            time(bad).unwrap_err();
        }
    }

    #[test]
    fn a_speed_is_a_factor_or_max() {
        assert_eq!(speed("max"), Ok(Speed::Max));
        assert_eq!(speed("2.5"), Ok(Speed::Times(2.5)));
        assert_eq!(speed("10x"), Ok(Speed::Times(10.0)));
        for bad in ["0", "-1", "nan", "inf", "fast", "1000001", ""] {
            speed(bad).unwrap_err();
        }
    }

    #[test]
    fn a_rate_is_what_the_protocol_takes() {
        assert_eq!(max_hz("0"), Ok(0.0));
        assert_eq!(max_hz("0.5"), Ok(0.5));
        for bad in ["-1", "nan", "0.0001", "1e7", "x"] {
            max_hz(bad).unwrap_err();
        }
    }
}
