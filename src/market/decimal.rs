//! Exact decimals: read from the venue's text, written with the venue's own digits.
//!
//! A price is never a float. [`parse`] keeps every digit, trailing zeros included, reads exponent
//! notation, and refuses what is not a finite number or has more digits than can be kept exactly.
//! [`write()`] never writes an exponent. [`Sum`] adds and multiplies without rounding, or says so.

pub use rust_decimal::Decimal;

/// Why a text is not a number that can be kept exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text is empty. Venues use it for *absent*; that is the caller's to decide.
    #[error("the text is empty")]
    Empty,
    /// Not a decimal number (`NaN` and `inf` included).
    #[error("not a finite decimal number")]
    Malformed,
    /// More digits than the 28 that can be kept exactly, or a magnitude of 2⁹⁶ or more.
    #[error("more digits than can be kept exactly")]
    TooLong,
    /// An exact result would not fit.
    #[error("the exact result does not fit")]
    Overflow,
}

/// Most fraction digits a [`Decimal`] keeps.
pub const MAX_SCALE: u32 = 28;

/// Reads a decimal: optional sign, digits with an optional point, optional exponent.
///
/// Every digit is kept: `"1.50"` stays `1.50`. An exponent is applied exactly. `"-0"` reads as
/// `0`, since a price has no sign of zero. Costs a pass over the text; no allocation.
///
/// # Errors
///
/// [`DecimalError`]: empty, not a finite number, or too many digits.
pub fn parse(text: &[u8]) -> Result<Decimal, DecimalError> {
    if let Some(value) = parse_plain(text) {
        return Ok(value);
    }
    let mut rest = text;
    if rest.is_empty() {
        return Err(DecimalError::Empty);
    }
    let negative = rest[0] == b'-';
    if negative || rest[0] == b'+' {
        rest = &rest[1..];
    }
    let mut mantissa: u128 = 0;
    let mut scale: i64 = 0;
    let mut digits = 0_usize;
    let mut point = false;
    let mut position = 0;
    while let Some(&byte) = rest.get(position) {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                mantissa = mantissa * 10 + u128::from(byte - b'0');
                if mantissa >> 96 != 0 {
                    return Err(DecimalError::TooLong);
                }
                scale += i64::from(point);
            }
            b'.' if !point => point = true,
            b'e' | b'E' => break,
            _ => return Err(DecimalError::Malformed),
        }
        position += 1;
    }
    if digits == 0 {
        return Err(DecimalError::Malformed);
    }
    if position < rest.len() {
        scale -= exponent(&rest[position + 1..])?;
        while scale < 0 && mantissa != 0 {
            mantissa *= 10;
            if mantissa >> 96 != 0 {
                return Err(DecimalError::TooLong);
            }
            scale += 1;
        }
        scale = scale.max(0);
    }
    let scale = u32::try_from(scale).map_err(|_| DecimalError::TooLong)?;
    if scale > MAX_SCALE {
        return Err(DecimalError::TooLong);
    }
    Ok(compose(mantissa, scale, negative && mantissa != 0))
}

/// The everyday case: at most 19 characters, digits and at most one point, in 64-bit
/// arithmetic. `None` for anything else, which the general reading decides.
#[inline]
fn parse_plain(text: &[u8]) -> Option<Decimal> {
    if text.len() > 19 {
        return None;
    }
    let mut mantissa: u64 = 0;
    let mut point = None;
    for (position, &byte) in text.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
        } else if byte == b'.' && point.is_none() {
            point = Some(position + 1);
        } else {
            return None;
        }
    }
    let digits = text.len() - usize::from(point.is_some());
    let scale = point.map_or(0, |after| text.len() - after);
    (digits > 0).then(|| compose(mantissa.into(), u32::try_from(scale).unwrap_or(0), false))
}

/// The digits after the `e`: an optional sign and at least one digit.
fn exponent(text: &[u8]) -> Result<i64, DecimalError> {
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(DecimalError::Malformed);
    }
    // Anything past four digits is out of range whatever the mantissa; leading zeros are not digits.
    let mut value = 0_i64;
    for &digit in digits {
        value = (value * 10 + i64::from(digit - b'0')).min(10_000);
    }
    Ok(if negative { -value } else { value })
}

#[expect(clippy::cast_possible_truncation, reason = "the three 32-bit words of a 96-bit number")]
fn compose(mantissa: u128, scale: u32, negative: bool) -> Decimal {
    Decimal::from_parts(
        mantissa as u32,
        (mantissa >> 32) as u32,
        (mantissa >> 64) as u32,
        negative,
        scale,
    )
}

/// Appends the decimal's digits: no exponent, the scale it was read with. No allocation but the
/// buffer's own growth.
pub fn write(value: Decimal, out: &mut Vec<u8>) {
    write_scaled(value.mantissa(), value.scale(), out);
}

/// Appends `mantissa × 10^-scale`.
fn write_scaled(mantissa: i128, scale: u32, out: &mut Vec<u8>) {
    if mantissa < 0 {
        out.push(b'-');
    }
    let magnitude = mantissa.unsigned_abs();
    let mut digits = itoa::Buffer::new();
    // 64-bit formatting is several times cheaper, and nearly every price fits.
    let digits = match u64::try_from(magnitude) {
        Ok(small) => digits.format(small).as_bytes(),
        Err(_) => digits.format(magnitude).as_bytes(),
    };
    let scale = scale as usize;
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

/// An exact running sum: `mantissa × 10^-scale` with 38 digits of room.
///
/// Sums of prices times quantities outgrow 28 digits long before money runs out; a rounded total
/// would be a lie. Every operation is exact or refused with [`DecimalError::Overflow`], leaving
/// the sum as it was. Trailing zeros of a fraction are not kept: a sum has no venue whose digits
/// it could follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    mantissa: i128,
    scale: u32,
}

impl Sum {
    /// The exact product of two decimals.
    ///
    /// # Errors
    ///
    /// [`DecimalError::Overflow`] if it has more than 38 significant digits.
    pub fn product(left: Decimal, right: Decimal) -> Result<Self, DecimalError> {
        let (left, right) = (Self::from(left), Self::from(right));
        let mantissa = left.mantissa.checked_mul(right.mantissa).ok_or(DecimalError::Overflow)?;
        Ok(Self { mantissa, scale: left.scale + right.scale }.normalized())
    }

    /// Adds exactly.
    ///
    /// # Errors
    ///
    /// [`DecimalError::Overflow`]; the sum is left as it was.
    pub fn add(&mut self, other: Self) -> Result<(), DecimalError> {
        let scale = self.scale.max(other.scale);
        let left = self.at_scale(scale).ok_or(DecimalError::Overflow)?;
        let right = other.at_scale(scale).ok_or(DecimalError::Overflow)?;
        let mantissa = left.checked_add(right).ok_or(DecimalError::Overflow)?;
        *self = Self { mantissa, scale }.normalized();
        Ok(())
    }

    fn at_scale(self, scale: u32) -> Option<i128> {
        10_i128.checked_pow(scale - self.scale)?.checked_mul(self.mantissa)
    }

    fn normalized(mut self) -> Self {
        if self.mantissa == 0 {
            return Self::default();
        }
        while self.scale > 0 && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }

    /// Appends the digits: no exponent, no trailing zeros of a fraction.
    pub fn write(self, out: &mut Vec<u8>) {
        write_scaled(self.mantissa, self.scale, out);
    }
}

impl From<Decimal> for Sum {
    fn from(value: Decimal) -> Self {
        Self { mantissa: value.mantissa(), scale: value.scale() }.normalized()
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = Vec::with_capacity(48);
        self.write(&mut text);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        let mut out = Vec::new();
        write(parse(text.as_bytes()).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_venues_own_digits_are_kept() {
        for text in ["61837.63000000", "0.00000000", "2.507", "35", "-17", "0", "0.1", "0.00000001"]
        {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn exponents_are_read_and_never_written() {
        assert_eq!(shown("1e-7"), "0.0000001");
        assert_eq!(shown("1.50E+3"), "1500");
        assert_eq!(shown("1.5e0"), "1.5");
        assert_eq!(shown("12e2"), "1200");
        assert_eq!(shown("0e5"), "0");
        assert_eq!(shown("0.000e99999999999999999999"), "0");
    }

    #[test]
    fn b06_what_is_not_a_finite_number_is_refused_and_minus_zero_is_zero() {
        for text in [
            "NaN", "inf", "-inf", "Infinity", "1,5", "1.2.3", "0x10", " 1", "1 ", "-", ".", "1e",
            "1e+", "--1", "1_000", "e5", "١",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(DecimalError::Malformed), "{text}");
        }
        assert_eq!(parse(b""), Err(DecimalError::Empty));
        assert_eq!(shown("-0"), "0");
        assert_eq!(shown("-0.00"), "0.00");
        assert_eq!(shown("+5"), "5");
    }

    #[test]
    fn too_many_digits_are_refused_rather_than_rounded() {
        assert_eq!(parse(b"1e99"), Err(DecimalError::TooLong));
        assert_eq!(parse(b"1e-29"), Err(DecimalError::TooLong));
        assert_eq!(parse(b"79228162514264337593543950336"), Err(DecimalError::TooLong));
        assert_eq!(shown("79228162514264337593543950335"), "79228162514264337593543950335");
        assert_eq!(parse(&[b'9'; 10_000]), Err(DecimalError::TooLong));
        assert_eq!(shown("1e-28"), "0.0000000000000000000000000001");
    }

    #[test]
    fn a_sum_past_28_digits_is_still_exact() {
        let mut sum = Sum::default();
        let big = Sum::product(
            parse(b"123456789012.12345678").unwrap(),
            parse(b"98765432.12345679").unwrap(),
        )
        .unwrap();
        sum.add(big).unwrap();
        assert_eq!(sum.to_string(), "12193263115356805321.3540620177625362");
        sum.add(Sum::from(parse(b"-0.0000000077625362").unwrap())).unwrap();
        assert_eq!(sum.to_string(), "12193263115356805321.35406201");
    }

    #[test]
    fn a_sum_that_does_not_fit_is_refused_and_left_as_it_was() {
        let most = parse(b"79228162514264337593543950335").unwrap();
        assert_eq!(Sum::product(most, most), Err(DecimalError::Overflow));
        let mut sum = Sum::from(most);
        let tiny = Sum::from(parse(b"1e-28").unwrap());
        assert_eq!(sum.add(tiny), Err(DecimalError::Overflow));
        assert_eq!(sum, Sum::from(most));
    }

    proptest! {
        #[test]
        fn reading_agrees_with_the_library_and_writing_gives_the_text_back(
            negative: bool, whole in 0_u64..1_000_000_000_000, fraction in "[0-9]{0,10}",
        ) {
            let point = if fraction.is_empty() { "" } else { "." };
            let sign = if negative { "-" } else { "" };
            let text = format!("{sign}{whole}{point}{fraction}");
            let value = parse(text.as_bytes()).unwrap();
            let library: Decimal = text.parse().unwrap();
            prop_assert_eq!(value, library);
            prop_assert_eq!(value.scale(), library.scale());
            let digits_only_zero = text.trim_start_matches('-').bytes().all(|b| b == b'0' || b == b'.');
            let expected = if digits_only_zero { text.trim_start_matches('-') } else { &text };
            prop_assert_eq!(shown(&text), expected);
        }

        #[test]
        fn no_text_makes_reading_panic(text in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&text);
        }
    }
}
