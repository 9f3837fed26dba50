//! A uniform number between 0 and 1 whose digits are drawn only when a decision needs them.

use crate::units::NoiseScale;
use rand_core::TryCryptoRng;

/// `u = first/2^64 + further[0]/2^128 + further[1]/2^192 + ...`, with the digits after the last one not drawn yet.
///
/// Whatever is asked of `u` is answered from an interval that holds it; digits are drawn until the interval decides. So
/// every answer is the answer for the real number `u`. The second digit of a comparison is needed once in `2^64`, which
/// is why `further` is a vector: it stays empty, and an empty vector takes no memory from the heap.
pub(super) struct LazyUniform {
    first: u64,
    further: Vec<u64>,
}

impl LazyUniform {
    /// A new number, with its first digit drawn.
    #[inline]
    pub(super) fn draw<R: TryCryptoRng>(source: &mut R) -> Result<Self, R::Error> {
        Ok(Self { first: source.try_next_u64()?, further: Vec::new() })
    }

    /// Whether `u < 1/2`; the first binary digit says so.
    #[inline]
    pub(super) fn is_below_half(&self) -> bool {
        self.first >> 63 == 0
    }

    /// Whether `u < other`.
    #[inline]
    pub(super) fn is_below<R: TryCryptoRng>(&mut self, other: &mut Self, source: &mut R) -> Result<bool, R::Error> {
        if self.first == other.first {
            return self.is_below_after_tie(other, source);
        }
        Ok(self.first < other.first)
    }

    /// The whole number `floor(scale·u + offset/2^64)`, at most `scale`.
    ///
    /// Takes `u` by value: digits drawn here are not kept, so nothing may be asked afterwards.
    #[inline]
    pub(super) fn floor_scaled<R: TryCryptoRng>(
        self,
        scale: NoiseScale,
        offset: u64,
        source: &mut R,
    ) -> Result<u64, R::Error> {
        // In units of 2^-64 the number is at least `lowest` and less than `lowest + scale`. No overflow: scale <= 2^60.
        let lowest = u128::from(scale.get()) * u128::from(self.first) + u128::from(offset);
        let whole = (lowest >> 64) as u64;
        // Distance to the next integer, from 1 to 2^64.
        let gap = (1u128 << 64) - u128::from(lowest as u64);
        if gap >= u128::from(scale.get()) {
            return Ok(whole);
        }
        Ok(whole + u64::from(reaches(gap as u64, scale.get(), self.further, source)?))
    }

    #[cold]
    #[inline(never)]
    fn is_below_after_tie<R: TryCryptoRng>(&mut self, other: &mut Self, source: &mut R) -> Result<bool, R::Error> {
        for place in 0.. {
            let (mine, theirs) = (self.further_digit(place, source)?, other.further_digit(place, source)?);
            if mine != theirs {
                return Ok(mine < theirs);
            }
        }
        unreachable!("the loop above ends only by returning")
    }

    /// The digit after the first with this index, drawn and kept if it is not known yet.
    fn further_digit<R: TryCryptoRng>(&mut self, place: usize, source: &mut R) -> Result<u64, R::Error> {
        while self.further.len() <= place {
            self.further.push(source.try_next_u64()?);
        }
        Ok(self.further[place])
    }
}

/// Whether `scale·f >= gap`, where `f` in (0, 1) is the number whose digits are `known` followed by undrawn ones.
///
/// Long division: `0 < gap < scale <= 2^60` holds before every digit, so the products below stay under `2^124`.
#[cold]
#[inline(never)]
fn reaches<R: TryCryptoRng>(gap: u64, scale: u64, known: Vec<u64>, source: &mut R) -> Result<bool, R::Error> {
    let mut gap = gap;
    let mut known = known.into_iter();
    loop {
        debug_assert!(0 < gap && gap < scale, "an interval that does not straddle the integer was decided before");
        let digit = match known.next() {
            Some(digit) => digit,
            None => source.try_next_u64()?,
        };
        let lowest = u128::from(scale) * u128::from(digit);
        let needed = u128::from(gap) << 64;
        if lowest >= needed {
            return Ok(true);
        }
        // The digits to come add less than `scale`.
        if needed - lowest >= u128::from(scale) {
            return Ok(false);
        }
        gap = (needed - lowest) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::scripted_source::{Refused, ScriptedSource};
    use proptest::prelude::*;

    fn lazy(first: u64) -> LazyUniform {
        LazyUniform { first, further: Vec::new() }
    }

    #[test]
    fn comparisons_draw_only_what_they_need() {
        let mut nothing = ScriptedSource::new(&[]);
        assert_eq!(lazy(3).is_below(&mut lazy(4), &mut nothing), Ok(true));
        assert_eq!(lazy(4).is_below(&mut lazy(3), &mut nothing), Ok(false));
        assert!(lazy((1 << 63) - 1).is_below_half());
        assert!(!lazy(1 << 63).is_below_half());
    }

    #[test]
    fn ties_are_broken_by_later_digits_which_stay() {
        for depth in 0..6 {
            for (mine, theirs) in [(1, 2), (2, 1)] {
                let mut script = vec![7; 2 * depth];
                script.extend([mine, theirs]);
                let mut source = ScriptedSource::new(&script);
                let (mut left, mut right) = (lazy(5), lazy(5));
                assert_eq!(left.is_below(&mut right, &mut source), Ok(mine < theirs));
                assert_eq!(source.left(), 0);
                // Asked again, and the other way round, the answer costs nothing and is the same.
                assert_eq!(left.is_below(&mut right, &mut source), Ok(mine < theirs));
                assert_eq!(right.is_below(&mut left, &mut source), Ok(theirs < mine));
                assert_eq!((left.further.len(), right.further.len()), (depth + 1, depth + 1));
            }
        }
    }

    #[test]
    fn a_failure_within_a_tie_is_handed_on() {
        for known in 0..4 {
            let mut source = ScriptedSource::new(&vec![9; known]);
            assert_eq!(lazy(5).is_below(&mut lazy(5), &mut source), Err(Refused { call: known }));
        }
    }

    #[test]
    fn a_number_near_a_half_integer_is_rounded_by_its_last_digit() {
        // 3 x + 1/2 is near 1 when x is near 1/6 = 0.00101010... in base 2.
        for depth in 0..8 {
            for (last, expected) in [(SIXTH_NEXT - 1, 0), (SIXTH_NEXT + 1, 1)] {
                let mut script = vec![SIXTH_NEXT; depth];
                script.push(last);
                let scale = NoiseScale::new(3).expect("in range");
                let mut source = ScriptedSource::new(&script);
                assert_eq!(lazy(SIXTH_FIRST).floor_scaled(scale, 1 << 63, &mut source), Ok(expected));
                assert_eq!(source.left(), 0, "depth {depth}");
                // The same with some of the digits known beforehand.
                let mut source = ScriptedSource::new(&script[depth / 2..]);
                let number = LazyUniform { first: SIXTH_FIRST, further: script[..depth / 2].to_vec() };
                assert_eq!(number.floor_scaled(scale, 1 << 63, &mut source), Ok(expected));
                assert_eq!(source.left(), 0, "depth {depth}");
                let mut source = ScriptedSource::new(&script[..depth]);
                let failed = lazy(SIXTH_FIRST).floor_scaled(scale, 1 << 63, &mut source);
                assert_eq!(failed, Err(Refused { call: depth }));
            }
        }
    }

    /// The first base-2^64 digit of 1/6, and every later one.
    const SIXTH_FIRST: u64 = 0x2AAA_AAAA_AAAA_AAAA;
    const SIXTH_NEXT: u64 = 0xAAAA_AAAA_AAAA_AAAA;

    /// `floor((scale · X + offset·2^(64(n-1)) + plus) / 2^(64 n))`, `X` the integer of `n` digits, by the schoolbook.
    fn floor_of_prefix(scale: u64, offset: u64, digits: &[u64], plus: u64) -> u64 {
        let mut carry = u128::from(plus);
        for (place, digit) in digits.iter().enumerate().rev() {
            carry += u128::from(scale) * u128::from(*digit);
            if place == 0 {
                carry += u128::from(offset);
            }
            carry >>= 64;
        }
        u64::try_from(carry).expect("at most the scale")
    }

    /// Digits of `numerator / denominator < 1`, so that the scaled number comes near an integer or a half.
    fn digits_of_ratio(numerator: u64, denominator: u64, count: usize) -> Vec<u64> {
        let mut remainder = u128::from(numerator);
        let digit = |_| {
            let shifted = remainder << 64;
            remainder = shifted % u128::from(denominator);
            (shifted / u128::from(denominator)) as u64
        };
        (0..count).map(digit).collect()
    }

    proptest! {
        #[test]
        fn floor_is_known_from_no_fewer_digits(
            scale in prop_oneof![1u64..100, 1u64..=1 << 60, Just(1 << 60), Just((1 << 60) - 1)],
            at in any::<prop::sample::Index>(),
            random in prop::collection::vec(any::<u64>(), 8),
            near in 0usize..8,
            nudge in -1i64..=1,
            half in any::<bool>(),
        ) {
            // `near` digits follow (2j+1)/(2 scale) or j/scale closely, one is nudged, the others are random.
            let offset = if half { 1 << 63 } else { 0 };
            let numerator = 2 * at.index(scale as usize) as u64 + u64::from(half);
            let mut digits = digits_of_ratio(numerator, 2 * scale, near);
            if let Some(last) = digits.last_mut() {
                *last = last.wrapping_add_signed(nudge);
            }
            digits.extend(&random[near..]);
            digits.push(0x1234_5678_9ABC_DEF0);
            let mut source = ScriptedSource::new(&digits[1..]);
            let result = lazy(digits[0]).floor_scaled(NoiseScale::new(scale).expect("in range"), offset, &mut source);
            let used = digits.len() - source.left();
            prop_assert_eq!(result, Ok(floor_of_prefix(scale, offset, &digits, 0)));
            // The used digits decide: the largest number that starts with them has the same floor.
            prop_assert_eq!(result, Ok(floor_of_prefix(scale, offset, &digits[..used], scale - 1)));
            // One digit less would not have decided.
            if used > 1 {
                let shorter = &digits[..used - 1];
                prop_assert_ne!(
                    floor_of_prefix(scale, offset, shorter, 0),
                    floor_of_prefix(scale, offset, shorter, scale - 1)
                );
            }
        }
    }
}
