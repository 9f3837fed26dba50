//! Short decimals read eight digits at a time, exactly as `str::parse::<f64>` reads them.
//!
//! A decimal of up to 16 characters has an integer mantissa below 10^16 and a power of ten of at most 10^15. When the
//! mantissa is at most 2^53 both are floats without error, and IEEE division rounds their exact quotient to the nearest
//! float, ties to even: what `str::parse` is specified to return. Anything else is not read here.

/// A decimal as the quotient of two floats that are exact.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    pub(super) mantissa: f64,
    pub(super) divisor: f64,
}

/// Bytes that must be there before a field, which is loaded by its last sixteen.
pub(super) const BYTES_BEFORE: usize = 16;

/// The longest field that is read, without its sign.
pub(super) const LENGTH_MAX: u64 = 16;

/// The largest mantissa: up to here every integer is a float.
pub(super) const MANTISSA_MAX: u64 = 1 << 53;

impl Decimal {
    /// The decimal in `bytes[start..end]`, one of digits, at most one point and at most a minus sign. None when it is
    /// anything else, or longer, and for `str::parse` to decide.
    ///
    /// `bytes` has 16 bytes before `start` and one after `end` that is no part of a number.
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8], start: usize, end: usize) -> Option<Self> {
        let negative = bytes[start] == b'-';
        let length = end.wrapping_sub(start + usize::from(negative)) as u64;
        if length.wrapping_sub(1) >= LENGTH_MAX {
            return None;
        }
        let tail = load(bytes, end) ^ ZEROS;
        let (mantissa, decimals) =
            if length <= 8 { short(tail, length) } else { long(load(bytes, end - 8) ^ ZEROS, tail, length) }?;
        Some(Self { mantissa: signed(mantissa, negative), divisor: POWERS_OF_TEN[decimals & 15] })
    }

    /// The number itself.
    #[inline(always)]
    pub(crate) fn value(self) -> f64 {
        self.mantissa / self.divisor
    }
}

/// Mantissa and number of decimals of a field of 1 to 8 characters, which are the last of `tail`, each less `0`.
#[inline]
fn short(tail: u64, length: u64) -> Option<(u64, usize)> {
    let tail = tail & from_start(length);
    let point = first_point(tail);
    if point == 0 {
        return are_digits(tail).then(|| (digits(tail), 0));
    }
    let tail = without_point(tail, point);
    // A point alone is no number, and a second one is no digit.
    (length > 1 && are_digits(tail)).then(|| (digits(tail), point.leading_zeros() as usize / 8))
}

/// The same of a field of 9 to 16 characters.
#[inline]
fn long(head: u64, tail: u64, length: u64) -> Option<(u64, usize)> {
    let head = head & from_start(length - 8);
    let (in_head, in_tail) = (first_point(head), first_point(tail));
    let (head, tail, decimals) = if in_tail != 0 {
        (head << 8, without_point(tail, in_tail) | head >> 56, in_tail.leading_zeros() as usize / 8)
    } else if in_head != 0 {
        (without_point(head, in_head), tail, 8 + in_head.leading_zeros() as usize / 8)
    } else {
        (head, tail, 0)
    };
    let mantissa = (are_digits(head) && are_digits(tail)).then(|| mantissa(head, tail))?;
    (mantissa <= MANTISSA_MAX).then_some((mantissa, decimals))
}

/// Ones from where a field of so many characters starts in the word that it ends with. What stands before it becomes leading
/// zeros.
#[inline(always)]
pub(super) fn from_start(length: u64) -> u64 {
    u64::MAX << (64_u64.wrapping_sub(8 * length) & 63)
}

/// The top bit of the first point, or 0.
#[inline(always)]
pub(super) fn first_point(word: u64) -> u64 {
    let word = word ^ POINTS;
    // The top bits of bytes that are zero; exact up to the first one.
    let zeros = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
    zeros & zeros.wrapping_neg()
}

/// The characters before a point moved up by one, over it.
#[inline(always)]
pub(super) fn without_point(word: u64, point: u64) -> u64 {
    let before = (point >> 7).wrapping_sub(1);
    (word & before) << 8 | word & !(before << 8 | 0xFF)
}

#[inline(always)]
pub(super) fn load(bytes: &[u8], end: usize) -> u64 {
    u64::from_le_bytes(bytes[end - 8..end].try_into().expect("eight bytes"))
}

/// Whether every byte is at most 9.
#[inline(always)]
pub(super) fn are_digits(word: u64) -> bool {
    // A byte of 0x80 or more shows itself; below, 0x76 takes what is above 9 there and carries nothing over. A carry from
    // a byte of 0x8A or more changes others, but that byte shows itself.
    (word.wrapping_add(0x7676_7676_7676_7676) | word) & 0x8080_8080_8080_8080 == 0
}

/// The number of sixteen digits.
#[inline(always)]
pub(super) fn mantissa(head: u64, tail: u64) -> u64 {
    digits(head) * 100_000_000 + digits(tail)
}

/// The number of eight digits, the first in the lowest byte: pairs, then fours, then all, in three multiplications.
#[inline(always)]
pub(super) fn digits(word: u64) -> u64 {
    const FOURS: u64 = 0x0000_00FF_0000_00FF;
    let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
    let upper = (pairs & FOURS).wrapping_mul(100 + (1_000_000 << 32));
    let lower = (pairs >> 16 & FOURS).wrapping_mul(1 + (10_000 << 32));
    upper.wrapping_add(lower) >> 32
}

/// A mantissa below 2^63 as a float, with its sign: exact up to [`MANTISSA_MAX`].
#[inline(always)]
pub(super) fn signed(mantissa: u64, is_negative: bool) -> f64 {
    let magnitude = (mantissa as i64) as f64;
    f64::from_bits(magnitude.to_bits() | u64::from(is_negative) << 63)
}

pub(super) const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
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
