//! Numbers, ids, times and words from the spans of a message.

use super::book::{Side, Trade, TradeStream};
use super::class::{Oddities, Oddity, Refusal};
use super::json::{Kind, Span, unescape};
use super::shell::{Of as _, Trouble};
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

    /// The value, if there is one.
    pub(super) fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Missing | Self::Blank => None,
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
    optional_id(span, message, scratch)?.required()
}

/// An id that may be absent.
#[inline]
pub(super) fn optional_id(
    span: Option<Span>,
    message: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<Reading<u64>, Refusal> {
    let digits = match digits(span, message, scratch)? {
        Reading::Missing => return Ok(Reading::Missing),
        Reading::Blank => return Ok(Reading::Blank),
        Reading::Value(digits) => digits,
    };
    unsigned(digits).map(Reading::Value).map_err(|()| {
        let rest = digits.strip_prefix(b"-").unwrap_or(digits);
        let integer = !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
        if integer { Refusal::IdOutOfRange } else { Refusal::BadNumber }
    })
}

/// A trade from its price and size; its id and time are for the caller to add. A trade without a
/// price says nothing; one with a blank size still says the price.
#[inline]
pub(super) fn trade(
    [price, size]: [Option<Span>; 2],
    names: [&'static str; 2],
    message: &[u8],
    scratch: &mut Vec<u8>,
    oddities: &mut Oddities,
) -> Result<Trade, Trouble> {
    let price = decimal(price, message, scratch).and_then(Reading::required).of(names[0])?;
    let size = match self::size(size, message, scratch).of(names[1])? {
        Reading::Value(size) => Some(size),
        Reading::Blank => {
            oddities.insert(Oddity::Absent);
            None
        }
        Reading::Missing => {
            return Err(Trouble { reason: Refusal::MissingField, member: names[1] });
        }
    };
    Ok(Trade { stream: TradeStream::Trades, id: None, price, size, time: None })
}

/// A side of a quote from its price and size. A side that the message leaves out whole is kept, half
/// a side is an error that names what is missing; a price without a size is an offer of unknown size,
/// a size at no price is none. What is blank is noted in `absent`.
#[inline]
pub(super) fn side(
    [price, size]: [Option<Span>; 2],
    names: [&'static str; 2],
    message: &[u8],
    scratch: &mut Vec<u8>,
    absent: &mut bool,
) -> Result<Side, Trouble> {
    let price = decimal(price, message, scratch).of(names[0])?;
    let size = self::size(size, message, scratch).of(names[1])?;
    match (price, size) {
        (Reading::Value(price), Reading::Value(size)) => Ok(Side::At(price, Some(size))),
        (Reading::Missing, Reading::Missing) => Ok(Side::Kept),
        (Reading::Missing, _) => Err(Trouble { reason: Refusal::MissingField, member: names[0] }),
        (_, Reading::Missing) => Err(Trouble { reason: Refusal::MissingField, member: names[1] }),
        (Reading::Value(price), Reading::Blank) => {
            *absent = true;
            Ok(Side::At(price, None))
        }
        (Reading::Blank, _) => {
            *absent = true;
            Ok(Side::Withdrawn)
        }
    }
}

/// Which units a venue's times can have. Where there are two, the unit of one time is told by its
/// magnitude, which is never in doubt between the years 2000 and 2100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeUnits {
    /// Seconds, with or without a fraction.
    Seconds,
    /// Milliseconds only.
    Milliseconds,
    /// Milliseconds, or microseconds where the connection asked for them.
    MillisecondsOrMicroseconds,
    /// Microseconds only.
    Microseconds,
    /// Text such as `2023-10-06T17:35:55.440295Z` (RFC 3339).
    Text,
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

const YEAR_2000: u64 = 946_684_800;
const YEAR_2100: u64 = 4_102_444_800;

/// A time of the venue. Times decide little, so an impossible one is told and does not refuse the
/// message.
#[inline]
pub(super) fn time(
    span: Option<Span>,
    units: TimeUnits,
    message: &[u8],
    scratch: &mut Vec<u8>,
) -> Time {
    let text = match digits(span, message, scratch) {
        Ok(Reading::Missing | Reading::Blank) => return Time::Missing,
        Ok(Reading::Value(text)) => text,
        Err(_) => return Time::Implausible,
    };
    let within = |per_second: u64| {
        let value = unsigned(text).ok()?;
        let plausible = (YEAR_2000 * per_second..YEAR_2100 * per_second).contains(&value);
        plausible.then(|| value * (1_000_000_000 / per_second))
    };
    let nanoseconds = match units {
        TimeUnits::Milliseconds => within(1_000),
        TimeUnits::MillisecondsOrMicroseconds => within(1_000).or_else(|| within(1_000_000)),
        TimeUnits::Microseconds => within(1_000_000),
        TimeUnits::Seconds => seconds(text),
        TimeUnits::Text => instant(text),
    };
    nanoseconds
        .and_then(|nanoseconds| i64::try_from(nanoseconds).ok())
        .map_or(Time::Implausible, Time::At)
}

/// The same, an impossible time noted and treated as absent.
#[inline]
pub(super) fn time_noted(
    span: Option<Span>,
    units: TimeUnits,
    message: &[u8],
    scratch: &mut Vec<u8>,
    oddities: &mut Oddities,
) -> Option<i64> {
    match time(span, units, message, scratch) {
        Time::At(time) => Some(time),
        Time::Missing => None,
        Time::Implausible => {
            oddities.insert(Oddity::ImplausibleTime);
            None
        }
    }
}

/// Seconds with or without a fraction, whose digits past the ninth are dropped.
fn seconds(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|&byte| byte == b'.');
    let (whole, rest) = text.split_at(point.unwrap_or(text.len()));
    let whole = unsigned(whole).ok().filter(|whole| (YEAR_2000..YEAR_2100).contains(whole))?;
    Some(whole * 1_000_000_000 + if rest.is_empty() { 0 } else { fraction(&rest[1..])? })
}

/// Nanoseconds of a decimal fraction of a second, which has at least one digit.
fn fraction(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    Some(padded.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// `YYYY-MM-DDTHH:MM:SS`, a fraction or none, and `Z` or an offset such as `+00:00`.
fn instant(text: &[u8]) -> Option<u64> {
    let (&clock, rest) = text.split_first_chunk::<19>()?;
    let two = |at: usize| {
        let pair = [clock[at].wrapping_sub(b'0'), clock[at + 1].wrapping_sub(b'0')];
        (pair[0] <= 9 && pair[1] <= 9).then(|| u64::from(pair[0]) * 10 + u64::from(pair[1]))
    };
    let marks = [clock[4], clock[7], clock[10], clock[13], clock[16]];
    if marks != *b"--T::" {
        return None;
    }
    let (year, month, day) = (two(0)? * 100 + two(2)?, two(5)?, two(8)?);
    let (hour, minute, second) = (two(11)?, two(14)?, two(17)?);
    let leap = year % 4 == 0;
    let in_month = [31, 28 + u64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let days = in_month.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    let in_range = (2000..2100).contains(&year) && (1..=*days).contains(&day);
    // Second 60 is a leap second.
    if !in_range || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let before: u64 = in_month[..usize::try_from(month).ok()? - 1].iter().sum();
    // Every fourth year from 2000 on, 2000 included, is a leap year until 2100.
    let days = (year - 2000) * 365 + (year - 2000).div_ceil(4) + before + day - 1;
    let seconds = YEAR_2000 + days * 86_400 + hour * 3_600 + minute * 60 + second;
    let (fraction, zone) = match rest {
        [b'.', rest @ ..] => {
            let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            (fraction(&rest[..length])?, &rest[length..])
        }
        _ => (0, rest),
    };
    let seconds = match zone {
        b"Z" => seconds,
        [sign, h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (unsigned(&[*h1, *h2]).ok()?, unsigned(&[*m1, *m2]).ok()?);
            let offset = (hours <= 23 && minutes <= 59).then_some(hours * 3_600 + minutes * 60)?;
            match sign {
                b'+' => seconds - offset,
                b'-' => seconds + offset,
                _ => return None,
            }
        }
        _ => return None,
    };
    (YEAR_2000..YEAR_2100).contains(&seconds).then_some(seconds * 1_000_000_000 + fraction)
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

    #[test]
    fn b09_one_instant_in_seconds_microseconds_and_text_is_one_time() {
        use TimeUnits::{Microseconds, Seconds, Text};
        let instant = Time::At(1_723_161_255_342_000_000);
        for (text, units) in [
            ("\"1723161255.342\"", Seconds),
            ("1723161255.342000000999", Seconds),
            ("\"1723161255342000\"", Microseconds),
            ("\"2024-08-08T23:54:15.342Z\"", Text),
            ("\"2024-08-08T23:54:15.342000000Z\"", Text),
            ("\"2024-08-09T01:24:15.342+01:30\"", Text),
            ("\"2024-08-08T22:54:15.342-01:00\"", Text),
        ] {
            assert_eq!(time_of(text, units), instant, "{text}");
        }
        let (first, last) =
            (Time::At(946_684_800_000_000_000), Time::At(4_102_444_799_000_000_000));
        assert_eq!(time_of("\"2000-01-01T00:00:00Z\"", Text), first);
        assert_eq!(time_of("\"2099-12-31T23:59:59Z\"", Text), last);
        assert_eq!(time_of("\"2024-02-29T00:00:00Z\"", Text), Time::At(1_709_164_800_000_000_000));
        assert_eq!(time_of("\"2024-03-01T00:00:00Z\"", Text), Time::At(1_709_251_200_000_000_000));
        for (text, units) in [
            ("1723161255342", Seconds),
            ("\"1723161255.\"", Seconds),
            ("\".5\"", Seconds),
            ("1723161255342", Microseconds),
            ("1723161255", Text),
            ("\"2024-08-08\"", Text),
            ("\"2024-08-08T23:54:15\"", Text),
            ("\"2024-08-08T23:54:15.Z\"", Text),
            ("\"2024-08-08 23:54:15Z\"", Text),
            ("\"2023-02-29T00:00:00Z\"", Text),
            ("\"2024-13-01T00:00:00Z\"", Text),
            ("\"2024-00-01T00:00:00Z\"", Text),
            ("\"2024-01-00T00:00:00Z\"", Text),
            ("\"2024-01-01T24:00:00Z\"", Text),
            ("\"1999-12-31T23:59:59Z\"", Text),
            ("\"2000-01-01T00:00:00+00:01\"", Text),
            ("\"2024-01-01T00:00:00+0100\"", Text),
        ] {
            assert_eq!(time_of(text, units), Time::Implausible, "{text}");
        }
    }
}
