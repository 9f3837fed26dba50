//! The standard normal distribution far into its tails: logarithm of its CDF, Mills ratio and the moments behind it.
//!
//! Everything comes from the positive integrals
//!
//! ```text
//! I_n(x) = ∫_0^∞ s^n exp(-x s - s²/2) ds        M(x) = I_0(x) = Phi(-x) / phi(x)   (Mills ratio)
//! I_1 + x I_0 = 1,   I_{n+1} + x I_n = n I_{n-1}   (by parts)
//! ```
//!
//! whose ratios `r_n = I_n / I_{n-1}` are the tails of Laplace's continued fraction, `r_n = n / (x + r_{n+1})`
//! (Abramowitz and Stegun 26.2.14). Read backwards it has only positive terms and is stable; near zero, where it
//! converges slowly, the power series 26.2.11 takes over. No table of coefficients is copied from anywhere.
//!
//! Measured against 60-digit values (`testdata/golden/accounting`): relative error below 1e-14 everywhere.

use std::f64::consts::PI;

/// Natural logarithm of the standard normal CDF.
///
/// ```text
/// x <= 0:  -x²/2 - ln sqrt(2 pi) + ln M(-x)        x > 0:  ln(1 - phi(x) M(x))
/// ```
///
/// Relative error below 1e-14 for results of normal size, on the whole line (tested against 60-digit values).
/// Edges: above `x = 38.5` the result is 0; at -infinity -infinity; NaN gives NaN.
#[must_use]
pub fn log_normal_cdf(x: f64) -> f64 {
    if x > 0.0 {
        (-upper_tail(x)).ln_1p()
    } else {
        // Both summands are negative: nothing cancels. Halved first, so that it overflows no earlier than the result.
        -(0.5 * x) * x + (mills_ratio(-x) * INVERSE_ROOT_TWO_PI).ln()
    }
}

/// `Phi(-x)` for `x >= 0`; relative error a few units in the last place until it underflows near 38.5.
fn upper_tail(x: f64) -> f64 {
    let density = normal_density(x);
    // Past the underflow of the density its product with M is 0 even where M itself is 0 or x infinite.
    if density > 0.0 { density * mills_ratio(x) } else { 0.0 }
}

/// `phi(x) = exp(-x²/2) / sqrt(2 pi)`; relative error a few units in the last place until it underflows.
pub(super) fn normal_density(x: f64) -> f64 {
    let square = x * x;
    if square > 1500.0 {
        return 0.0;
    }
    // exp would magnify the rounding of x² up to 745-fold; the fused step gives the rounded-off part back.
    let rest = x.mul_add(x, -square);
    (-0.5 * square).exp() * (-0.5 * rest).exp() * INVERSE_ROOT_TWO_PI
}

/// Mass of the standard normal between `-half_width` and `half_width`, `2 Phi(half_width) - 1`; `half_width` in `[0, 2]`.
///
/// Only positive terms, so it keeps its relative precision (a few units in the last place) down to the smallest float.
pub(super) fn central_mass(half_width: f64) -> f64 {
    2.0 * normal_density(half_width) * odd_series(half_width)
}

/// Mills ratio `M(x) = Phi(-x) / phi(x)` for `x >= 0`; relative error below 1e-14.
pub(super) fn mills_ratio(x: f64) -> f64 {
    if x < SERIES_BELOW {
        // A&S 26.2.11 under M = (1/2 - (Phi(x) - 1/2)) / phi(x); at x = 1.5 the difference costs a factor of eight.
        (0.5 * x * x).exp() / (2.0 * INVERSE_ROOT_TWO_PI) - odd_series(x)
    } else {
        1.0 / (x + fraction_tail(x, 1))
    }
}

/// Number of ratios that [`moment_ratios`] returns.
pub(super) const MOMENT_RATIOS: usize = 27;

/// `r_n = I_n(x) / I_{n-1}(x)` for `n = 1..=27` (index `n - 1`) and `x >= 0`.
pub(super) fn moment_ratios(x: f64) -> [f64; MOMENT_RATIOS] {
    let mut ratios = [0.0; MOMENT_RATIOS];
    if x < SERIES_BELOW {
        // Upwards r_{n+1} = n / r_n - x loses digits as n grows; the orders that lose many weigh little in the sum.
        ratios[0] = 1.0 / mills_ratio(x) - x;
        for n in 1..MOMENT_RATIOS {
            ratios[n] = n as f64 / ratios[n - 1] - x;
        }
    } else {
        ratios[MOMENT_RATIOS - 1] = fraction_tail(x, MOMENT_RATIOS);
        for n in (1..MOMENT_RATIOS).rev() {
            ratios[n - 1] = n as f64 / (x + ratios[n]);
        }
    }
    ratios
}

/// `r_first(x) = first / (x + (first + 1) / (x + ...))` for `x >= SERIES_BELOW`.
fn fraction_tail(x: f64, first: usize) -> f64 {
    // The truncation error after n levels falls like exp(-2 x sqrt(n)); this many bring it below 1e-17.
    let last = first + 16 + (400.0 / (x * x)) as usize;
    let mut tail = 0.0;
    for n in (first..=last).rev() {
        tail = n as f64 / (x + tail);
    }
    tail
}

/// `x + x³/3 + x⁵/(3·5) + ... = (Phi(x) - 1/2) / phi(x)`, for `0 <= x <= 2`.
fn odd_series(x: f64) -> f64 {
    let square = x * x;
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term > sum * 1e-18 {
        odd += 2.0;
        term *= square / odd;
        sum += term;
    }
    sum
}

/// `1 / sqrt(2 pi)`.
const INVERSE_ROOT_TWO_PI: f64 = 0.398_942_280_401_432_7;

/// Below it the power series, from it on the continued fraction.
const SERIES_BELOW: f64 = 1.5;

// The constant is a literal because `sqrt` is not const; this ties it to pi.
const _: () = {
    let product = INVERSE_ROOT_TWO_PI * INVERSE_ROOT_TWO_PI * 2.0 * PI;
    assert!(product > 1.0 - 4.0 * f64::EPSILON && product < 1.0 + 4.0 * f64::EPSILON);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// 60-digit values from Python's `decimal`. The rounding of `x²` alone would move the fourth by 3e-14.
    #[test]
    fn a_density_keeps_its_digits_until_it_underflows() {
        for (x, density) in [
            (0.3, 0.381_387_815_460_524_1),
            (-1.7, 0.094_049_077_376_886_93),
            (7.1, 4.513_543_677_205_521e-12),
            (30.1, 7.300_259_384_280_611e-198),
        ] {
            assert!((normal_density(x) / density - 1.0).abs() < 1e-15, "{x}: {}", normal_density(x));
        }
        for beyond in [40.0, 1e200, f64::INFINITY] {
            assert_eq!(normal_density(beyond).to_bits(), 0, "{beyond}");
        }
    }

    #[test]
    fn series_and_fraction_agree_on_both_sides_of_the_switch() {
        for x in [1.0f64, 1.25, 1.4, 1.5, 1.6, 1.8, 2.0] {
            let series = (0.5 * x * x).exp() / (2.0 * INVERSE_ROOT_TWO_PI) - odd_series(x);
            let fraction = 1.0 / (x + fraction_tail(x, 1));
            assert!((series / fraction - 1.0).abs() < 3e-14, "x = {x}: {series} and {fraction}");
        }
    }

    #[test]
    fn ratios_follow_the_recurrence_from_either_end() {
        for x in [0.0, 0.3, 1.0, 1.5 - 1e-12, 1.5 + 1e-12, 4.0, 1e3, 1e160] {
            let ratios = moment_ratios(x);
            assert!((ratios[0] * mills_ratio(x) + x * mills_ratio(x) - 1.0).abs() < 1e-14, "I_1 + x I_0 = 1 at {x}");
            for n in 1..MOMENT_RATIOS {
                let sum = ratios[n - 1] * (x + ratios[n]);
                assert!((sum / n as f64 - 1.0).abs() < 1e-14, "order {n} at {x}: {sum}");
            }
        }
        // The recurrence alone would accept a wrong start; I_2 / I_1 at 0 is M(0) = sqrt(pi / 2).
        assert!((moment_ratios(0.0)[1] - (PI / 2.0).sqrt()).abs() < 1e-15);
        let (below, above) = (moment_ratios(1.5 - 1e-15), moment_ratios(1.5));
        for n in 0..8 {
            assert!((below[n] / above[n] - 1.0).abs() < 1e-11, "order {} jumps at the switch", n + 1);
        }
    }

    #[test]
    fn central_mass_and_tail_add_up_to_one() {
        for x in [1e-3, 0.2, 1.0, 1.7, 2.0] {
            assert!((central_mass(x) + 2.0 * upper_tail(x) - 1.0).abs() < 1e-15, "x = {x}");
        }
        assert!((central_mass(1e-300) / (2e-300 * INVERSE_ROOT_TWO_PI) - 1.0).abs() < 1e-15);
    }
}
