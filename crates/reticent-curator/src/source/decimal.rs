//! Short decimals read eight digits at a time, exactly as `str::parse::<f64>` reads them.
//!
//! A decimal of up to 16 characters has an integer mantissa below 10^16 and a power of ten of at most 10^15. When the
//! mantissa is at most 2^53 both are floats without error, and IEEE division rounds their exact quotient to the nearest
//! float, ties to even: what `str::parse` is specified to return. Anything else is not read here.

/// A decimal as the quotient of two floats that are exact.
#[derive(Clone, Copy)]
pub(super) struct Decimal {
    pub(super) mantissa: f64,
    pub(super) divisor: f64,
}

/// Bytes that must be there before a field, which is loaded by its last sixteen.
#[cfg(test)]
const BYTES_BEFORE: usize = 16;

/// The longest field that is read, without its sign.
const LENGTH_MAX: usize = 16;

impl Decimal {
    /// The decimal in `bytes[start..end]`, one of digits, at most one point and at most a minus sign. None when it is
    /// anything else, or longer, and for `str::parse` to decide.
    ///
    /// `bytes` has 16 bytes before `start` and one after `end` that is no part of a number.
    #[inline(always)]
    pub(super) fn read(bytes: &[u8], start: usize, end: usize) -> Option<Self> {
        let negative = bytes[start] == b'-';
        let length = end.wrapping_sub(start + usize::from(negative));
        if length.wrapping_sub(1) >= LENGTH_MAX {
            return None;
        }
        let last = load(bytes, end) ^ ZEROS;
        let (mantissa, decimals) =
            if length <= 8 { short(last, length) } else { long(load(bytes, end - 8) ^ ZEROS, last, length) }?;
        // Below 10^16, so the sign bit is free and the conversion exact up to 2^53.
        let magnitude = (mantissa as i64) as f64;
        let mantissa = f64::from_bits(magnitude.to_bits() | u64::from(negative) << 63);
        Some(Self { mantissa, divisor: POWERS_OF_TEN[decimals & 15] })
    }

    /// The number itself.
    pub(super) fn value(self) -> f64 {
        self.mantissa / self.divisor
    }
}

/// Mantissa and number of decimals of a field of 1 to 8 characters, which are the last of `word`, each less `0`.
#[inline]
fn short(word: u64, length: usize) -> Option<(u64, usize)> {
    // What stands before the field becomes leading zeros.
    let word = word & u64::MAX << (8 * (8 - length));
    let points = zero_bytes(word ^ POINTS);
    if points == 0 {
        return are_digits(word).then(|| (digits(word), 0));
    }
    // The characters before the first point move up by one, over it.
    let before = ((points & points.wrapping_neg()) >> 7).wrapping_sub(1);
    let word = (word & before) << 8 | (word & !(before << 8 | 0xFF));
    // A point alone is no number. What else is marked above the first, a second point or a slash, is no digit.
    (length > 1 && are_digits(word)).then(|| (digits(word), points.leading_zeros() as usize / 8))
}

/// The same of a field of 9 to 16 characters.
#[inline]
fn long(first: u64, last: u64, length: usize) -> Option<(u64, usize)> {
    let first = first & u64::MAX << (8 * (16 - length));
    let points = zero_bytes(last ^ POINTS);
    let (first, last, decimals) = if points != 0 {
        let place = points.trailing_zeros() & !7;
        (first << 8, without(last, place) | first >> 56, 7 - place as usize / 8)
    } else {
        let points = zero_bytes(first ^ POINTS);
        if points == 0 {
            (first, last, 0)
        } else {
            let place = points.trailing_zeros() & !7;
            (without(first, place), last, 15 - place as usize / 8)
        }
    };
    if !(are_digits(first) && are_digits(last)) {
        return None;
    }
    let mantissa = digits(first) * 100_000_000 + digits(last);
    (mantissa <= 1 << 53).then_some((mantissa, decimals))
}

/// The characters before a place moved up by one, over what stands there.
#[inline]
fn without(word: u64, place: u32) -> u64 {
    let from_place = u64::MAX << place;
    word & from_place << 8 | (word & !from_place) << 8
}

#[inline]
fn load(bytes: &[u8], end: usize) -> u64 {
    u64::from_le_bytes(bytes[end - 8..end].try_into().expect("eight bytes"))
}

/// The top bit of each byte that is zero; exact up to the first one.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080
}

/// Whether every byte is at most 9.
#[inline]
fn are_digits(word: u64) -> bool {
    // A byte of 0x80 or more shows itself; below, 0x76 takes what is above 9 there and carries nothing over. A carry from
    // a byte of 0x8A or more changes others, but that byte shows itself.
    (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080 == 0
}

/// The number of eight digits, the first in the lowest byte: pairs, then fours, then all, in three multiplications.
#[inline]
fn digits(word: u64) -> u64 {
    const FOURS: u64 = 0x0000_00FF_0000_00FF;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let upper = (pairs & FOURS).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & FOURS).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
const POINTS: u64 = u64::from_le_bytes([b'.' ^ b'0'; 8]);
const POWERS_OF_TEN: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

#[cfg(test)]
mod tests {
    use super::{BYTES_BEFORE, Decimal};
    use proptest::prelude::*;

    fn read(before: u8, text: &[u8]) -> Option<f64> {
        let bytes = [&[before; BYTES_BEFORE][..], text, b","].concat();
        Decimal::read(&bytes, BYTES_BEFORE, BYTES_BEFORE + text.len()).map(Decimal::value)
    }

    fn check(text: &[u8]) -> Result<bool, TestCaseError> {
        let expected = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        let mut was_read = false;
        for before in [b'0', b'9', b'.', b',', b'-', 0, 0xFF] {
            if let Some(number) = read(before, text) {
                was_read = true;
                prop_assert_eq!(Some(number.to_bits()), expected.map(f64::to_bits), "{:?}", text);
            }
        }
        Ok(was_read)
    }

    #[test]
    fn usual_decimals_are_read() {
        for text in ["0", "7", "-0", "0.123456", "-0.000001", "12345678", "-12.345678", "5.", ".5", "-.5", "1234567.8"]
        {
            assert!(check(text.as_bytes()).expect("equal"), "{text}");
        }
        for text in ["123456789", "90071992547.0992", "0.00000000000001", "9007199254740992", "99999999.9999999"] {
            assert!(check(text.as_bytes()).expect("equal"), "{text}");
        }
    }

    #[test]
    fn what_is_no_short_decimal_is_left_to_others() {
        for text in
            ["", "-", ".", "-.", "+1", "1e5", "1 ", " 1", "1..2", "1.2.3", "--1", "1-", "nan", "inf", "0x1", "1_0"]
        {
            assert!(!check(text.as_bytes()).expect("equal"), "{text}");
        }
        // One above 2^53, and one character too many.
        for text in ["9007199254740993", "9999999999999999", "12345678901234567", "0.1234567890123456"] {
            assert!(!check(text.as_bytes()).expect("equal"), "{text}");
        }
        assert!(!check(b"12\xB945678").expect("equal"), "a digit with its top bit set is no digit");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn every_decimal_is_what_parse_says(text in "-?[0-9]{0,10}\\.?[0-9]{0,9}") {
            check(text.as_bytes())?;
        }

        #[test]
        fn every_text_is_what_parse_says(text in "[-+.0-9eEn /:\u{FF10}]{0,18}") {
            check(text.as_bytes())?;
        }

        #[test]
        fn all_bytes_are_what_parse_says(text in proptest::collection::vec(any::<u8>(), 0..18)) {
            check(&text)?;
        }

        #[test]
        fn near_digits_are_what_parse_says(text in proptest::collection::vec(prop_oneof![
            8 => b'0'..=b'9', 1 => Just(b'.'), 1 => any::<u8>(), 1 => (b'0'..=b'9').prop_map(|digit| digit | 0x80)
        ], 1..17)) {
            check(&text)?;
        }
    }
}
