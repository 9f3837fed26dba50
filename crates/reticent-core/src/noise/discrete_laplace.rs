//! The discrete Laplace (two-sided geometric) distribution, drawn without error.

use super::falling_run::longest_fall_is_even;
use super::lazy_uniform::LazyUniform;
use crate::units::NoiseScale;
use rand_core::TryCryptoRng;

/// One draw of the discrete Laplace.
///
/// ```text
/// P(K = k) = (1 - e^(-1/b)) / (1 + e^(-1/b)) · e^(-|k|/b)
/// ```
///
/// `b`: scale in lattice units, a whole number from 1 to 2^60. `K`: lattice units, unbounded.
/// Variance: `2 e^(-1/b) / (1 - e^(-1/b))²`, close to `2 b²`.
///
/// Guarantee: for an integer query of L1 sensitivity `B`, `q + K` is `(B/b, 0)`-differentially private under the
/// adjacency that `B` was computed for, in any number of coordinates with independent draws.
///
/// Method: `floor(b·E)` with `E` standard exponential is geometric with ratio `e^(-1/b)`; a fair sign is added and the
/// pair (0, minus) is refused, so that zero is not counted twice.
///
/// Source: Ghosh, Roughgarden, Sundararajan 2012 for the mechanism; von Neumann 1951, "Various techniques used in
/// connection with random digits", for the exponential.
///
/// # Errors
/// The source's own error; no value has been drawn then.
#[inline]
pub fn sample_discrete_laplace<R: TryCryptoRng>(scale: NoiseScale, source: &mut R) -> Result<i128, R::Error> {
    loop {
        let (whole, fraction) = exponential(source)?;
        let negative = source.try_next_u32()? >> 31 == 1;
        // floor(b·(k + x)) = b·k + floor(b·x); b·k is below 2^124 because k is a 64-bit count.
        let floored_fraction = fraction.floor_scaled(scale, 0, source)?;
        let magnitude = i128::from(scale.get()) * i128::from(whole) + i128::from(floored_fraction);
        if !negative {
            return Ok(magnitude);
        }
        if magnitude != 0 {
            return Ok(-magnitude);
        }
    }
}

/// A standard exponential `k + x`, as the integer `k` and the lazy fraction `x`.
///
/// A uniform `x` is accepted with probability `e^(-x)`, so it has density proportional to `e^(-x)` on (0, 1). A refusal
/// has probability `e^(-1)`, so the number of refusals is geometric with that ratio and independent of `x`: it is `k`.
#[inline]
fn exponential<R: TryCryptoRng>(source: &mut R) -> Result<(u64, LazyUniform), R::Error> {
    let mut whole = 0;
    loop {
        let mut fraction = LazyUniform::draw(source)?;
        if longest_fall_is_even(source, |number, source| number.is_below(&mut fraction, source))? {
            return Ok((whole, fraction));
        }
        whole += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::scripted_source::{ScriptedSource, assert_failures_are_handed_on, assert_values_are_stable};

    const LOW: u64 = 1 << 60;
    const QUARTER: u64 = 1 << 62;
    const HALF: u64 = 1 << 63;
    const HIGH: u64 = 7 << 61;
    const PLUS: u64 = 0;
    const MINUS: u64 = 1 << 63;

    fn drawn(scale: u64, words: &[u64]) -> i128 {
        let mut source = ScriptedSource::new(words);
        let scale = NoiseScale::new(scale).expect("in range");
        let value = sample_discrete_laplace(scale, &mut source).expect("the script is long enough");
        assert_eq!(source.left(), 0, "the script was longer than the draw");
        value
    }

    #[test]
    fn an_empty_fall_accepts_and_the_sign_is_kept() {
        assert_eq!(drawn(8, &[HALF, HIGH, PLUS]), 4);
        assert_eq!(drawn(8, &[HALF, HIGH, MINUS]), -4);
        assert_eq!(drawn(1, &[HIGH, u64::MAX, PLUS]), 0);
    }

    #[test]
    fn an_odd_fall_refuses_and_counts_one() {
        // x = 1/2 falls once, to 1/4: refused. Then x = 1/4 is accepted at k = 1.
        assert_eq!(drawn(8, &[HALF, QUARTER, HIGH, QUARTER, HIGH, MINUS]), -10);
    }

    #[test]
    fn an_even_fall_accepts() {
        assert_eq!(drawn(8, &[HALF, QUARTER, LOW, HIGH, PLUS]), 4);
    }

    #[test]
    fn minus_zero_is_drawn_again() {
        assert_eq!(drawn(8, &[LOW, HIGH, MINUS, HALF, HIGH, MINUS]), -4);
        assert_eq!(drawn(8, &[LOW, HIGH, PLUS]), 0);
    }

    #[test]
    fn digits_that_a_tie_brought_out_are_used_by_the_rounding() {
        // 3 x straddles 1 after one digit (x is near 1/3) and after two; both ties leave their digits in x.
        let third = u64::MAX / 3;
        for (last, expected) in [(third, 0), (third + 1, 1)] {
            // x, u1 with the same first digit, second digits (u1, x) the same, third digits (u1, x): u1 > x accepts.
            assert_eq!(drawn(3, &[third, third, third, third, HIGH, last, PLUS, 0][..words_of(last)]), expected);
        }
    }

    /// With the third digit `1/3` rounded down the interval still straddles, so a fresh fourth digit is drawn.
    fn words_of(third_digit: u64) -> usize {
        if third_digit == u64::MAX / 3 { 8 } else { 7 }
    }

    #[test]
    fn the_largest_scale_does_not_overflow() {
        let largest = NoiseScale::MAX.get();
        assert_eq!(drawn(largest, &[HALF, QUARTER, HIGH, u64::MAX, u64::MAX, 1, 0, MINUS]), 1 - 2 * (1 << 60));
        assert_eq!(drawn(largest, &[u64::MAX, u64::MAX, 1, 0, PLUS]), (1 << 60) - 1);
    }

    #[test]
    fn every_failure_of_the_source_is_handed_on() {
        for scale in [1, 1000, 1 << 60] {
            let scale = NoiseScale::new(scale).expect("in range");
            assert_failures_are_handed_on(|source| sample_discrete_laplace(scale, source));
        }
    }

    #[test]
    fn draws_equal_those_of_the_independent_implementation() {
        assert_values_are_stable("discrete_laplace", |scale, source| match sample_discrete_laplace(scale, source) {
            Ok(value) => value,
        });
    }
}
