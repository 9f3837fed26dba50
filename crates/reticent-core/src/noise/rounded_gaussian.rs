//! The rounded Gaussian: `round(S·Z)`, `Z` standard normal, drawn without error.
#![doc = include_str!("rounded_gaussian.md")]

use super::falling_run::longest_fall_is_even;
use super::lazy_uniform::LazyUniform;
use crate::units::NoiseScale;
use rand_core::TryCryptoRng;

/// One draw of the rounded Gaussian.
///
/// ```text
/// K = round(S·Z)     P(K = k) = Phi((k + 1/2)/S) - Phi((k - 1/2)/S)
/// ```
///
/// `S`: scale in lattice units, a whole number from 1 to 2^60. `Z`: standard normal. `K`: lattice units, unbounded.
/// Variance: `S² + 1/12`, up to a term below `e^(-18 S²)`.
///
/// Guarantee: for an integer sum `q` of L2 sensitivity `B`, `q + K = round(q + S·Z)` is post-processing of the
/// continuous Gaussian mechanism, so it is `B/S`-GDP under the adjacency that `B` was computed for, in any number of
/// coordinates with independent draws.
///
/// Source: Karney 2016, "Sampling exactly from the normal distribution", ACM TOMS 42(1):3, algorithm N.
/// Edges: `S = 1` is legal and draws 0 with probability 0.383; ties have probability 0.
///
/// # Errors
/// The source's own error; no value has been drawn then.
#[inline]
pub fn sample_rounded_gaussian<R: TryCryptoRng>(scale: NoiseScale, source: &mut R) -> Result<i128, R::Error> {
    let (whole, fraction) = half_normal(source)?;
    let negative = step_n6_sign(source)?;
    // round(S·(k + x)) = S·k + floor(S·x + 1/2); S·k is below 2^124 because k is a 64-bit count.
    let rounded_fraction = fraction.floor_scaled(scale, ONE_HALF, source)?;
    let magnitude = i128::from(scale.get()) * i128::from(whole) + i128::from(rounded_fraction);
    Ok(if negative { -magnitude } else { magnitude })
}

/// Steps N1 to N5: `|Z| = k + x`, as the integer `k` and the lazy fraction `x`.
#[inline]
fn half_normal<R: TryCryptoRng>(source: &mut R) -> Result<(u64, LazyUniform), R::Error> {
    loop {
        let whole = step_n1_whole_part(source)?;
        if !step_n2_accepts(whole, source)? {
            continue;
        }
        let mut fraction = LazyUniform::draw(source)?; // step N3
        if step_n4_accepts(whole, &mut fraction, source)? {
            return Ok((whole, fraction)); // step N5
        }
    }
}

/// Step N1 (algorithm G): `k >= 0` with probability `e^(-k/2) (1 - e^(-1/2))`.
#[inline]
fn step_n1_whole_part<R: TryCryptoRng>(source: &mut R) -> Result<u64, R::Error> {
    let mut whole = 0;
    while algorithm_h(source)? {
        whole += 1;
    }
    Ok(whole)
}

/// Step N2 (algorithm P): true with probability `e^(-k(k-1)/2)`.
#[inline]
fn step_n2_accepts<R: TryCryptoRng>(whole: u64, source: &mut R) -> Result<bool, R::Error> {
    // As two loops, because the product k(k-1) could in principle overflow.
    for _ in 0..whole {
        for _ in 1..whole {
            if !algorithm_h(source)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Step N4: true with probability `e^(-x(2k+x)/2)`, as `k + 1` successes of algorithm B.
#[inline]
fn step_n4_accepts<R: TryCryptoRng>(whole: u64, fraction: &mut LazyUniform, source: &mut R) -> Result<bool, R::Error> {
    for _ in 0..=whole {
        if !algorithm_b(whole, fraction, source)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Step N6: a fair sign.
#[inline]
fn step_n6_sign<R: TryCryptoRng>(source: &mut R) -> Result<bool, R::Error> {
    Ok(source.try_next_u32()? >> 31 == 1)
}

/// Algorithm H: true with probability `e^(-1/2)`.
#[inline]
fn algorithm_h<R: TryCryptoRng>(source: &mut R) -> Result<bool, R::Error> {
    longest_fall_is_even(source, |number, _| Ok(number.is_below_half()))
}

/// Algorithm B: true with probability `e^(-x(2k+x)/(2k+2))`.
///
/// The longest run `x > z1 > z2 > ... > zn` in which each step also passes a trial of probability `(2k+x)/(2k+2)` has
/// even length with this probability.
#[inline]
fn algorithm_b<R: TryCryptoRng>(whole: u64, fraction: &mut LazyUniform, source: &mut R) -> Result<bool, R::Error> {
    let mut even = true;
    let mut last: Option<LazyUniform> = None;
    loop {
        // The cheap part of the trial goes first: at k = 0 it fails every second time.
        let trial = algorithm_c(whole, source)?;
        if matches!(trial, Trial::Fails) {
            return Ok(even);
        }
        let mut next = LazyUniform::draw(source)?;
        let falls = match &mut last {
            Some(previous) => next.is_below(previous, source)?,
            None => next.is_below(fraction, source)?,
        };
        if !falls {
            return Ok(even);
        }
        if matches!(trial, Trial::PassesBelowFraction) && !LazyUniform::draw(source)?.is_below(fraction, source)? {
            return Ok(even);
        }
        last = Some(next);
        even = !even;
    }
}

/// What algorithm C says about a trial of probability `(2k+x)/(2k+2)`.
enum Trial {
    /// The trial is lost; probability `1/(2k+2)`.
    Fails,
    /// A fresh uniform number below `x` wins the trial; probability `1/(2k+2)`.
    PassesBelowFraction,
    /// The trial is won; probability `2k/(2k+2)`.
    Passes,
}

/// Algorithm C with `m = 2k + 2`: the part of a trial of probability `(2k+x)/(2k+2)` that does not depend on `x`.
#[inline]
fn algorithm_c<R: TryCryptoRng>(whole: u64, source: &mut R) -> Result<Trial, R::Error> {
    let twice = 2 * whole;
    let drawn = uniform_below(twice + 2, source)?;
    Ok(if drawn < twice {
        Trial::Passes
    } else if drawn == twice {
        Trial::PassesBelowFraction
    } else {
        Trial::Fails
    })
}

/// A uniform whole number below `bound >= 1`, by Lemire 2019, "Fast random integer generation in an interval".
///
/// The high half of `word · bound` takes each value for exactly `floor(2^64 / bound)` of the accepted words.
#[inline]
fn uniform_below<R: TryCryptoRng>(bound: u64, source: &mut R) -> Result<u64, R::Error> {
    loop {
        let product = u128::from(source.try_next_u64()?) * u128::from(bound);
        // The remainder is below `bound`, so the division is seldom needed.
        if product as u64 >= bound || product as u64 >= bound.wrapping_neg() % bound {
            return Ok((product >> 64) as u64);
        }
    }
}

/// One half in units of 2^-64.
const ONE_HALF: u64 = 1 << 63;

#[cfg(test)]
mod tests;
