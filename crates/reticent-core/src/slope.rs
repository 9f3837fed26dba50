//! The derivative of the loss as an integer: one scalar function that every kernel must equal bit for bit.
//!
//! All operations are single IEEE-754 `f32` operations in a fixed order, without fused multiply-add: the result depends on the
//! score and the label alone, not on the machine, the lane or the neighbours of the row.

use crate::query::{Loss, SLOPE_MAX};

/// `round(2048 · dl/dz)` of a row with score `z` and class `label` (0 or 1).
///
/// ```text
///   logistic:  clamp(round(2048 sigmoid(z)), 0, 2048) - 2048 y
/// ```
/// Written as `s - 2048 y`, so that a changed label moves it by exactly 2048, as an integer fact.
#[must_use]
#[inline]
pub fn slope(loss: Loss, z: f32, label: u8) -> i32 {
    match loss {
        Loss::Logistic => {
            // `as` truncates; a NaN becomes 0, which is a legal slope.
            let rounded = (SLOPE_MAX as f32 * sigmoid(z) + 0.5) as i32;
            rounded.clamp(0, SLOPE_MAX) - SLOPE_MAX * i32::from(label.min(1))
        }
    }
}

/// `1 / (1 + e^-z)`.
#[must_use]
#[inline]
pub fn sigmoid(z: f32) -> f32 {
    1.0 / (1.0 + exp(-z))
}

/// `e^x` for `x` clamped to `[-80, 80]`, with a relative error below `3e-7`.
///
/// `e^x = 2^n e^r`, `n` the nearest integer to `x / ln 2`, `|r| <= ln(2)/2`; `e^r` by its Taylor polynomial of degree 7.
#[must_use]
#[inline]
pub fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4; // 10 bits, so that n·LN2_HIGH is exact
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting 1.5·2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-80.0, 80.0);
    let n = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let mut polynomial = 1.0 / 5040.0;
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        polynomial = polynomial * r + coefficient;
    }
    // NaN becomes 0 here, which is harmless: its polynomial is NaN already.
    let exponent = n as i32 + 127;
    polynomial * f32::from_bits((exponent as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_over_its_range() {
        let mut worst = 0.0f64;
        for step in -800_000..=800_000 {
            let x = step as f32 * 1e-4;
            let exact = f64::from(x).exp();
            worst = worst.max((f64::from(exp(x)) / exact - 1.0).abs());
        }
        assert!(worst < 3e-7, "{worst:e}");
    }

    #[test]
    fn a_label_moves_the_slope_by_exactly_its_span() {
        for step in -40_000..=40_000 {
            let z = step as f32 * 1e-3;
            let (negative, positive) = (slope(Loss::Logistic, z, 0), slope(Loss::Logistic, z, 1));
            assert_eq!(negative - positive, SLOPE_MAX);
            assert!((0..=SLOPE_MAX).contains(&negative));
            let exact = 2048.0 / (1.0 + (-f64::from(z)).exp());
            assert!((f64::from(negative) - exact).abs() <= 0.501, "{z}");
        }
    }

    #[test]
    fn no_score_escapes_the_range() {
        for z in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, -0.0] {
            for label in [0, 1, 7] {
                assert!((-SLOPE_MAX..=SLOPE_MAX).contains(&slope(Loss::Logistic, z, label)), "{z} {label}");
            }
        }
    }

    /// `2048 / (1 + e^-z)` in Python (`1024, 1497.208, 550.792, 2011.164, 0.253, 1024.512, 2046.617`), rounded by hand.
    #[test]
    fn golden_slopes() {
        for (z, expected) in [(0.0, 1024), (1.0, 1497), (-1.0, 551), (4.0, 2011), (-9.0, 0), (0.001, 1025), (7.3, 2047)]
        {
            assert_eq!(slope(Loss::Logistic, z, 0), expected, "{z}");
        }
    }
}
