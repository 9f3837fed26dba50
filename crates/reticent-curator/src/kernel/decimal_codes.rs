//! The decimals of a row as codes: what [`Decimal::read`] reads, many fields at a time and without a branch.
//!
//! A field is loaded as the sixteen characters before its end. What stands before it there becomes leading zeros, what stands
//! before a point moves up over it, and two words of eight digits are left, whose arithmetic has no carry from one character
//! to the next.

use super::decimal::{
    BYTES_BEFORE, Decimal, LENGTH_MAX, MANTISSA_MAX, ZEROS, are_digits, digits, first_point, from_start, load,
    mantissa, signed, without_point,
};
use super::number_codes::{FirstMaps, GROUP, NumberMaps};

/// Where the decimals of a row are in its text, one field a slot: private.
pub(crate) struct DecimalFields {
    starts: Vec<u32>,
    ends: Vec<u32>,
    /// First character of each field.
    firsts: Vec<u8>,
    /// Its last eight, and the eight before them where any field is that long.
    tails: Vec<u64>,
    heads: Vec<u64>,
    /// Fields that are no short decimals.
    is_odd: Vec<bool>,
}

/// Start and end of a place that is no field's: a plain zero.
const UNSET: (usize, usize) = (0, 1);

impl DecimalFields {
    /// Fields of so many places, unset.
    pub(crate) fn of_places(places: usize) -> Self {
        Self {
            starts: vec![UNSET.0 as u32; places],
            ends: vec![UNSET.1 as u32; places],
            firsts: vec![b'0'; places],
            tails: vec![ZEROS; places],
            heads: vec![ZEROS; places],
            is_odd: vec![false; places],
        }
    }

    /// The field of a slot, `bytes[start..end]`, with sixteen bytes before it.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: usize, bytes: &[u8], start: usize, end: usize) {
        self.starts[slot] = start as u32;
        self.ends[slot] = end as u32;
        self.firsts[slot] = bytes[start];
        self.tails[slot] = load(bytes, end);
    }

    /// A field that is not there: odd, and [`Self::field`] has none.
    #[inline(always)]
    pub(crate) fn set_missing(&mut self, slot: usize) {
        self.starts[slot] = 0;
        self.ends[slot] = 0;
        self.firsts[slot] = b'0';
    }

    /// Where the field of a slot starts and ends.
    pub(crate) fn field(&self, slot: usize) -> Option<(usize, usize)> {
        (self.ends[slot] > 0).then_some((self.starts[slot] as usize, self.ends[slot] as usize))
    }

    /// Slots whose fields are no short decimals, after a pass.
    pub(crate) fn odd_slots(&self) -> impl Iterator<Item = usize> {
        self.is_odd.iter().enumerate().filter_map(|(slot, is_odd)| is_odd.then_some(slot))
    }
}

/// Fields of one row.
pub(super) struct DecimalPass<'a> {
    pub(super) maps: &'a NumberMaps,
    pub(super) bytes: &'a [u8],
    pub(super) fields: &'a mut DecimalFields,
}

impl DecimalPass<'_> {
    /// One field after another: what the fast form gives, too.
    fn run_by_field(self, codes: &mut [u16]) -> bool {
        for (slot, code) in codes.iter_mut().enumerate() {
            let decimal = match self.fields.field(slot) {
                Some(UNSET) => Some(0.0),
                Some((start, end)) => Decimal::read(self.bytes, start, end).map(Decimal::value),
                None => None,
            };
            *code = decimal.map_or(0, |number| self.maps.code(slot, number));
            self.fields.is_odd[slot] = decimal.is_none();
        }
        self.fields.is_odd.contains(&true)
    }

    /// All fields at once, in any instructions: it is compiled into the functions below.
    #[inline(always)]
    fn run(self, codes: &mut [u16]) -> bool {
        let places = codes.len();
        assert!(places.is_multiple_of(GROUP), "whole groups, with nothing left over that would go one by one");
        let Self { maps, bytes, fields: DecimalFields { starts, ends, firsts, tails, heads, is_odd } } = self;
        let (starts, ends, firsts) = (&starts[..places], &ends[..places], &firsts[..places]);
        let mut longest = 0;
        for slot in 0..places {
            longest = longest.max(length(starts[slot], ends[slot], firsts[slot]));
        }
        let is_long = longest > 8;
        if is_long {
            for (head, end) in heads.iter_mut().zip(ends) {
                let end = *end as usize;
                *head = if end < BYTES_BEFORE { ZEROS } else { load(bytes, end - 8) };
            }
        }
        let words = Words { starts, ends, firsts, tails: &tails[..places], heads: &heads[..places] };
        let (maps, is_odd) = (maps.first(places), &mut is_odd[..places]);
        if is_long {
            words.code::<true>(maps, codes, is_odd);
        } else {
            words.code::<false>(maps, codes, is_odd);
        }
        let mut any_odd = false;
        for is_odd in is_odd {
            any_odd |= *is_odd;
        }
        any_odd
    }
}

/// [`DecimalFields`] as they are read.
#[derive(Clone, Copy)]
struct Words<'a> {
    starts: &'a [u32],
    ends: &'a [u32],
    firsts: &'a [u8],
    tails: &'a [u64],
    heads: &'a [u64],
}

impl Words<'_> {
    /// Codes all places; fields of more than eight characters only where `LONG`.
    #[inline(always)]
    fn code<const LONG: bool>(self, maps: FirstMaps<'_>, codes: &mut [u16], is_odd: &mut [bool]) {
        for slot in 0..codes.len() {
            let length = length(self.starts[slot], self.ends[slot], self.firsts[slot]);
            let tail = self.tails[slot] ^ ZEROS;
            let read = if LONG {
                long(self.heads[slot] ^ ZEROS, tail, u64::from(length))
            } else {
                short(tail, u64::from(length))
            };
            is_odd[slot] = !read.is_decimal(length);
            codes[slot] = maps.code(slot, read.value(self.firsts[slot]));
        }
    }
}

/// Characters of a field without its sign; of one that is not there, none.
#[inline(always)]
fn length(start: u32, end: u32, first: u8) -> u32 {
    end.wrapping_sub(start).wrapping_sub(u32::from(first == b'-'))
}

/// What the characters of a field are, if they are those of a decimal.
struct Characters {
    mantissa: u64,
    divisor: f64,
    has_point: bool,
    are_digits: bool,
}

impl Characters {
    /// Whether a field of so many characters without its sign is a decimal.
    #[inline(always)]
    fn is_decimal(&self, length: u32) -> bool {
        let has_digits = (length.wrapping_sub(1) < LENGTH_MAX as u32) & (length > u32::from(self.has_point));
        has_digits & self.are_digits & (self.mantissa <= MANTISSA_MAX)
    }

    /// The decimal, if it is one.
    #[inline(always)]
    fn value(&self, first: u8) -> f64 {
        Decimal { mantissa: signed(self.mantissa, first == b'-'), divisor: self.divisor }.value()
    }
}

/// Of a field of up to 8 characters.
#[inline(always)]
fn short(tail: u64, length: u64) -> Characters {
    let tail = tail & from_start(length);
    let point = first_point(tail);
    let has_point = point != 0;
    let tail = if has_point { without_point(tail, point) } else { tail };
    let divisor = if has_point { power_after(point) } else { 1.0 };
    Characters { mantissa: digits(tail), divisor, has_point, are_digits: are_digits(tail) }
}

/// Of a field of up to 16 characters.
#[inline(always)]
fn long(head: u64, tail: u64, length: u64) -> Characters {
    let is_short = length <= 8;
    let start = from_start(length);
    let (head, tail) = if is_short { (0, tail & start) } else { (head & start, tail) };
    let (in_head, in_tail) = (first_point(head), first_point(tail));
    let (is_in_head, is_in_tail) = (in_head != 0, in_tail != 0);
    let without = if is_in_tail { without_point(tail, in_tail) | head >> 56 } else { tail };
    // Where both have a point, one is left, and is no digit.
    let head = if is_in_tail {
        head << 8
    } else if is_in_head {
        without_point(head, in_head)
    } else {
        head
    };
    let of_head = if is_in_head { 1e8 * power_after(in_head) } else { 1.0 };
    Characters {
        mantissa: mantissa(head, without),
        divisor: if is_in_tail { power_after(in_tail) } else { of_head },
        has_point: is_in_head | is_in_tail,
        are_digits: are_digits(head) & are_digits(without),
    }
}

/// Ten to the number of characters after a point in its word: exact, as all of its factors are, and without a table.
#[inline(always)]
fn power_after(point: u64) -> f64 {
    choose(point, 0x8080_8080_0000_0000, 1e4)
        * choose(point, 0x8080_0000_8080_0000, 1e2)
        * choose(point, 0x8000_8000_8000_8000, 1e1)
}

/// The power where a point is in none of the later places.
#[inline(always)]
fn choose(point: u64, later: u64, power: f64) -> f64 {
    if point & later == 0 { power } else { 1.0 }
}

pub(super) fn portable(pass: DecimalPass<'_>, codes: &mut [u16]) -> bool {
    pass.run_by_field(codes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(pass: DecimalPass<'_>, codes: &mut [u16]) -> bool {
    pass.run(codes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512(pass: DecimalPass<'_>, codes: &mut [u16]) -> bool {
    pass.run(codes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{Instructions, code_decimals};

    /// A field of a row.
    #[derive(Clone, Debug)]
    enum Field {
        Unset,
        Missing,
        Text(Vec<u8>),
    }

    /// Codes of the fields of a row, and which of them are odd. A map is so narrow that the last bit of its number changes its code.
    fn coded(instructions: Instructions, fields: &[Field], before: u8) -> (Vec<Option<u16>>, bool) {
        let mut bytes = vec![before; BYTES_BEFORE];
        let mut maps = NumberMaps::of_slots(fields.len());
        let mut row = DecimalFields::of_places(maps.places());
        for (slot, field) in fields.iter().enumerate() {
            match field {
                Field::Unset => {}
                Field::Missing => row.set_missing(slot),
                Field::Text(text) => {
                    let start = bytes.len();
                    bytes.extend_from_slice(text);
                    bytes.push(b',');
                    row.set(slot, &bytes, start, start + text.len());
                    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
                    let number = number.filter(|number| number.is_finite()).unwrap_or(0.0);
                    let span = number.abs() * 2.0_f64.powi(-40) + f64::MIN_POSITIVE;
                    maps.set(slot, [-1e300, 1e300], number - span / 2.0, span);
                }
            }
        }
        let mut codes = vec![0; maps.places()];
        let any_odd = code_decimals(instructions, &maps, &bytes, &mut row, &mut codes);
        let odd: Vec<usize> = row.odd_slots().collect();
        let codes = codes.iter().enumerate().map(|(slot, code)| (!odd.contains(&slot)).then_some(*code)).collect();
        (codes, any_odd)
    }

    fn check(fields: &[Field]) -> Result<(), TestCaseError> {
        for before in [b'0', b'.', b',', b'-', 0xFF] {
            let expected = coded(Instructions::PORTABLE, fields, before);
            prop_assert_eq!(expected.1, expected.0.contains(&None));
            for instructions in Instructions::available() {
                let found = coded(instructions, fields, before);
                prop_assert_eq!(&found, &expected, "{} {:?}", instructions.name(), fields);
            }
        }
        Ok(())
    }

    fn field() -> impl Strategy<Value = Field> {
        let near_digits = prop::collection::vec(
            prop_oneof![
                8 => b'0'..=b'9', 1 => Just(b'.'), 1 => any::<u8>(), 1 => (b'0'..=b'9').prop_map(|digit| digit | 0x80)
            ],
            1..19,
        );
        prop_oneof![
            1 => Just(Field::Unset),
            1 => Just(Field::Missing),
            8 => "-?[0-9]{0,10}\\.?[0-9]{0,9}".prop_map(|text| Field::Text(text.into_bytes())),
            8 => "-?[0-9]{1,4}\\.[0-9]{1,3}".prop_map(|text| Field::Text(text.into_bytes())),
            2 => "[-+.0-9eEn /:\u{FF10}]{0,18}".prop_map(|text| Field::Text(text.into_bytes())),
            2 => near_digits.prop_map(Field::Text),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn all_instructions_give_the_codes_of_one_field_after_another(fields in prop::collection::vec(field(), 1..40)) {
            check(&fields)?;
        }
    }

    #[test]
    fn decimals_with_a_point_at_every_place_are_coded() {
        for length in 1..=17 {
            for point in 0..=length {
                for sign in ["", "-"] {
                    let digits: String = (0..length).map(|place| char::from(b'1' + place as u8 % 9)).collect();
                    let text = [sign, &digits[..point], ".", &digits[point..]].concat();
                    let fields = [Field::Text(text.into_bytes()), Field::Text([sign, &digits].concat().into_bytes())];
                    check(&fields).expect("equal");
                    let (codes, any_odd) = coded(Instructions::best(), &fields, b'.');
                    assert_eq!(codes[0].is_none(), length > 15, "{fields:?}");
                    assert_eq!(codes[1].is_none(), length > 16, "{fields:?}");
                    assert_eq!(any_odd, length > 15);
                    // The middle of its map, whose ends are rounded by as much as a few codes.
                    codes[..2].iter().flatten().for_each(|code| assert!(code.abs_diff(16_384) <= 8, "{fields:?}"));
                }
            }
        }
    }
}
