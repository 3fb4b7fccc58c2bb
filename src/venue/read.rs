//! Numbers, ids, times and words from the spans of a message.

use super::class::Refusal;
use super::json::{Kind, Span, unescape};
use crate::market::Decimal;
use crate::market::decimal::{self, DecimalError};

/// What a member that may be absent holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading<T> {
    /// The message has no such member.
    Missing,
    /// The member is `null` or empty text.
    Blank,
    /// It has a value.
    Value(T),
}

impl<T> Reading<T> {
    /// The value, or that the member is missing: a blank one is of no more use.
    pub(super) fn required(self) -> Result<T, Refusal> {
        match self {
            Self::Value(value) => Ok(value),
            Self::Missing | Self::Blank => Err(Refusal::MissingField),
        }
    }
}

/// The meaning of a text; escapes are resolved into `scratch`.
#[inline]
pub(super) fn text<'a>(
    span: Span,
    message: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], Refusal> {
    match span.kind {
        Kind::Text => Ok(span.of(message)),
        Kind::Escaped => {
            scratch.clear();
            unescape(span.of(message), scratch).ok_or(Refusal::Malformed)?;
            Ok(scratch)
        }
        _ => Err(Refusal::WrongType),
    }
}

/// The digits of a number, quoted or not.
#[inline]
fn digits<'a>(
    span: Option<Span>,
    message: &'a [u8],
    scratch: &'a mut Vec<u8>,
) -> Result<Reading<&'a [u8]>, Refusal> {
    let Some(span) = span else { return Ok(Reading::Missing) };
    let digits = match span.kind {
        Kind::Null => return Ok(Reading::Blank),
        Kind::Number => span.of(message),
        _ => text(span, message, scratch)?,
    };
    Ok(if digits.is_empty() { Reading::Blank } else { Reading::Value(digits) })
}

/// An exact decimal.
#[inline]
pub(super) fn decimal(
    span: Option<Span>,
    message: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<Reading<Decimal>, Refusal> {
    Ok(match digits(span, message, scratch)? {
        Reading::Missing => Reading::Missing,
        Reading::Blank => Reading::Blank,
        Reading::Value(digits) => Reading::Value(decimal::parse(digits).map_err(refusal)?),
    })
}

/// A size: a decimal that is not negative.
#[inline]
pub(super) fn size(
    span: Option<Span>,
    message: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<Reading<Decimal>, Refusal> {
    match decimal(span, message, scratch)? {
        Reading::Value(size) if size.is_sign_negative() => Err(Refusal::NegativeSize),
        reading => Ok(reading),
    }
}

/// An id: an integer of 64 bits, no sign.
#[inline]
pub(super) fn id(
    span: Option<Span>,
    message: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<u64, Refusal> {
    let digits = digits(span, message, scratch)?.required()?;
    unsigned(digits).map_err(|_| {
        let rest = digits.strip_prefix(b"-").unwrap_or(digits);
        let integer = !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
        if integer { Refusal::IdOutOfRange } else { Refusal::BadNumber }
    })
}

/// Which units a venue's times can have. The unit of one time is told by its magnitude, which is
/// never in doubt between the years 2000 and 2100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnits {
    /// Milliseconds only.
    Milliseconds,
    /// Milliseconds, or microseconds where the connection asked for them.
    MillisecondsOrMicroseconds,
}

/// A time, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// None was given.
    Missing,
    /// What was given cannot be.
    Implausible,
    /// A time between 2000 and 2100.
    At(i64),
}

const YEAR_2000_MS: u64 = 946_684_800_000;
const YEAR_2100_MS: u64 = 4_102_444_800_000;

/// A time of the venue. Times decide little, so an impossible one is told and does not refuse the
/// message.
#[inline]
pub(super) fn time(
    span: Option<Span>,
    units: TimeUnits,
    message: &[u8],
    scratch: &mut Vec<u8>,
) -> Time {
    let value = match digits(span, message, scratch) {
        Ok(Reading::Missing | Reading::Blank) => return Time::Missing,
        Ok(Reading::Value(digits)) => unsigned(digits),
        Err(_) => Err(()),
    };
    let nanoseconds = match value {
        Ok(ms) if (YEAR_2000_MS..YEAR_2100_MS).contains(&ms) => ms * 1_000_000,
        Ok(us)
            if units == TimeUnits::MillisecondsOrMicroseconds
                && (YEAR_2000_MS * 1_000..YEAR_2100_MS * 1_000).contains(&us) =>
        {
            us * 1_000
        }
        _ => return Time::Implausible,
    };
    i64::try_from(nanoseconds).map_or(Time::Implausible, Time::At)
}

/// Digits only, within 64 bits.
#[inline]
fn unsigned(digits: &[u8]) -> Result<u64, ()> {
    if digits.is_empty() {
        return Err(());
    }
    let mut value: u64 = 0;
    // Nineteen digits cannot overflow.
    let (safe, rest) = digits.split_at(digits.len().min(19));
    for &digit in safe {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return Err(());
        }
        value = value * 10 + u64::from(digit);
    }
    for &digit in rest {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return Err(());
        }
        value = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit))).ok_or(())?;
    }
    Ok(value)
}

fn refusal(error: DecimalError) -> Refusal {
    match error {
        DecimalError::TooLong | DecimalError::Overflow => Refusal::NumberTooLong,
        DecimalError::Empty | DecimalError::Malformed => Refusal::BadNumber,
    }
}

#[cfg(test)]
mod tests {
    use super::super::json::Scanner;
    use super::*;

    fn span(text: &str) -> Option<Span> {
        Some(Scanner::new(text.as_bytes()).value().unwrap())
    }

    fn id_of(text: &str) -> Result<u64, Refusal> {
        id(span(text), text.as_bytes(), &mut Vec::new())
    }

    fn time_of(text: &str, units: TimeUnits) -> Time {
        time(span(text), units, text.as_bytes(), &mut Vec::new())
    }

    #[test]
    fn b10_ids_are_exact_to_their_last_digit() {
        assert_eq!(id_of("9007199254740993"), Ok(9_007_199_254_740_993));
        assert_eq!(id_of("\"9007199254740992\""), Ok(9_007_199_254_740_992));
        assert_eq!(id_of("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(id_of("18446744073709551616"), Err(Refusal::IdOutOfRange));
        assert_eq!(id_of("-1"), Err(Refusal::IdOutOfRange));
        assert_eq!(id_of("1.0"), Err(Refusal::BadNumber));
        assert_eq!(id_of("1e3"), Err(Refusal::BadNumber));
        assert_eq!(id_of("null"), Err(Refusal::MissingField));
        assert_eq!(id_of("[1]"), Err(Refusal::WrongType));
    }

    #[test]
    fn b09_one_instant_in_two_units_is_one_time_and_an_impossible_one_is_told() {
        use TimeUnits::{Milliseconds, MillisecondsOrMicroseconds as Both};
        let instant = Time::At(1_723_161_255_342_000_000);
        assert_eq!(time_of("1723161255342", Both), instant);
        assert_eq!(time_of("\"1723161255342\"", Both), instant);
        assert_eq!(time_of("1723161255342000", Both), instant);
        assert_eq!(time_of("1723161255342", Milliseconds), instant);
        assert_eq!(time_of("1723161255342000", Milliseconds), Time::Implausible);
        for text in ["1723161255", "1723161255342000000", "0", "-1", "1.7e12", "\"soon\"", "[]"] {
            assert_eq!(time_of(text, Both), Time::Implausible, "{text}");
        }
        assert_eq!(time_of("null", Both), Time::Missing);
        assert_eq!(time_of("4102444799999", Both), Time::At(4_102_444_799_999_000_000));
        assert_eq!(time_of("4102444800000", Both), Time::Implausible);
    }
}
