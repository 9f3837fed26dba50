//! The derivative of the loss as an integer: one scalar function that every kernel must equal bit for bit.
//!
//! All operations are single IEEE-754 `f32` operations in a fixed order, without fused multiply-add: the result depends on the
//! score and the label alone, not on the machine, the lane or the neighbours of the row.

use crate::contribution::{CodedLabel, UNUSABLE_LABEL};
use crate::pass_weights::PassWeights;
use crate::query::{Loss, SLOPE_MAX};

/// The slope of a row with score `z`, whatever its loss; 0 where the label is not one of two classes, or not a number for
/// [`Loss::Huber`]. Weights are those that gave the score.
#[must_use]
#[inline]
pub fn slope(loss: Loss, weights: &PassWeights, z: f32, label: CodedLabel) -> i32 {
    let of_class = |slope: fn(f32, u8) -> i32| match label {
        0 | 1 => slope(z, label as u8),
        _ => 0,
    };
    match loss {
        Loss::Logistic => of_class(logistic_slope),
        Loss::TwoSidedExponential => of_class(two_sided_slope),
        Loss::Huber if label == UNUSABLE_LABEL => 0,
        Loss::Huber => huber_slope(z, weights.target_window().share_of(label), weights.saturation()),
    }
}

/// `2048 (sigmoid(z) - y)`, written as `s - 2048 y`, so that a changed label moves it by exactly 2048, as an integer fact.
///
/// ```text
///   clamp(round(2048 sigmoid(z)), 0, 2048) - 2048 y
/// ```
#[must_use]
#[inline]
pub fn logistic_slope(z: f32, class: u8) -> i32 {
    // A NaN becomes 0, which is a legal slope.
    let slope = rounded((SLOPE_MAX as f32 * sigmoid(z)).max(0.0));
    slope.clamp(0, SLOPE_MAX) - SLOPE_MAX * i32::from(class.min(1))
}

/// The slope of the two-sided exponential loss.
///
/// ```text
///   clamp(round(2048 min(1, e^z)), 0, 2048) for class 0, minus the same of -z for class 1
/// ```
#[must_use]
#[inline]
pub fn two_sided_slope(z: f32, class: u8) -> i32 {
    let (sign, toward) = if class == 0 { (1, z) } else { (-1, -z) };
    // A NaN becomes 0 at `min`.
    sign * rounded(SLOPE_MAX as f32 * exp(toward.min(0.0))).clamp(0, SLOPE_MAX)
}

/// `clamp(round(2048 (z - y) / c), -2048, 2048)`: residuals of at least `c` have slope 1, whatever they are. A residual and its
/// opposite have opposite slopes.
#[must_use]
#[inline]
pub fn huber_slope(z: f32, target: f32, clip: f32) -> i32 {
    // A NaN becomes the lower bound.
    let bound = SLOPE_MAX as f32;
    rounded((bound * ((z - target) / clip)).max(-bound).min(bound))
}

/// `2048 (p - e_y)` of a row with one score a class: softmax probabilities minus the indicator of its class.
///
/// ```text
///   slopes_k = s_k - 2048 [k = class],   s_k = trunc(2048 e^(z_k - max z) / sum e^(z_l - max z)),   sum s_k <= 2048
/// ```
/// Guarantee: `sum slopes_k² <= 2 · 2048²`, as an integer fact: all `s_k` are at least 0 and sum to at most 2048, so the
/// square is at most `(2048 - s_y)² + (2048 - s_y)²`. With the same scores, another class moves two entries by 2048.
///
/// # Panics
/// When there is not one place a score, or the class is not among them.
#[inline]
pub fn softmax_slopes(scores: &[f32], class: usize, slopes: &mut [i32]) {
    assert_eq!(scores.len(), slopes.len(), "one slope a score");
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let total: f32 = scores.iter().map(|score| exp(score - largest)).sum();
    let mut left = SLOPE_MAX;
    for (slope, score) in slopes.iter_mut().zip(scores) {
        // A NaN becomes 0. What rounding might bring past the whole is cut off.
        let share = truncated(SLOPE_MAX as f32 * (exp(score - largest) / total));
        *slope = share.clamp(0, left);
        left -= *slope;
    }
    slopes[class] -= SLOPE_MAX;
}

/// `2048 (p - e_y) / max(||p - e_y||, s max_k ||p - e_k||)`: softmax slopes divided by the largest norm that another class could
/// give them, or by a share `s` of it, the saturation, and where that is less than their own norm, by that.
///
/// ```text
///   ||p - e_k||² = sum p_l² + 1 - 2 p_k,   the largest has the least p_k,   slopes_k = trunc(2048 (p_k - [k = class]) / max(..))
/// ```
/// Guarantee: `sum slopes_k² <= 2048²`, enforced in integers: where rounding passed it, all slopes move toward zero. For two
/// classes and `s = 1` these are the slopes of the two-sided exponential loss over `sqrt(2)`, once for each score.
///
/// # Panics
/// When there is not one place a score, or the class is not among them.
#[inline]
pub fn bounded_softmax_slopes(scores: &[f32], class: usize, saturation: f32, slopes: &mut [i32]) {
    assert_eq!(scores.len(), slopes.len(), "one slope a score");
    let largest = scores.iter().fold(f32::NEG_INFINITY, |largest, score| largest.max(*score));
    let exponential = |score: &f32| exp(score - largest);
    let (mut total, mut squares, mut least) = (0.0f32, 0.0f32, f32::MAX);
    for value in scores.iter().map(exponential) {
        total += value;
        squares += value * value;
        least = least.min(value);
    }
    let norm_of = |value: f32| (squares / (total * total) + 1.0 - 2.0 * (value / total)).sqrt();
    // The own norm of a sure row is 0, or by rounding the root of a negative number; `max` then takes the other.
    let divisor = norm_of(exponential(&scores[class])).max(saturation * norm_of(least));
    for (place, (slope, score)) in slopes.iter_mut().zip(scores).enumerate() {
        let indicator = if place == class { 1.0 } else { 0.0 };
        // A NaN becomes 0.
        let bounded = truncated(SLOPE_MAX as f32 * ((exponential(score) / total - indicator) / divisor));
        *slope = bounded.clamp(-SLOPE_MAX, SLOPE_MAX);
    }
    shorten(slopes);
}

/// Moves slopes toward zero until `sum slopes² <= 2048²`: no scores are known that need it.
#[inline]
fn shorten(slopes: &mut [i32]) {
    let square = |slopes: &[i32]| -> i64 { slopes.iter().map(|slope| i64::from(*slope).pow(2)).sum() };
    while square(slopes) > i64::from(SLOPE_MAX).pow(2) {
        slopes.iter_mut().for_each(|slope| *slope -= slope.signum());
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
/// `e^x = 2^n e^r`, `n` the nearest integer to `x / ln 2`, `|r| <= ln(2)/2`; `e^r` by its Taylor polynomial of degree 6.
#[must_use]
#[inline]
pub fn exp(x: f32) -> f32 {
    const LN2_HIGH: f32 = 0.693_359_4; // 10 bits, so that n·LN2_HIGH is exact
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // Adding and subtracting 1.5·2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-80.0, 80.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    // In parts that do not wait for each other (Estrin 1960), as a pass has many rows and each has but one chain of steps.
    let square = r * r;
    let low = (1.0 + r) + (0.5 + r * (1.0 / 6.0)) * square;
    let high = (1.0 / 24.0 + r * (1.0 / 120.0)) + square * (1.0 / 720.0);
    let polynomial = low + high * (square * square);
    // The last bits of `rounded` are those of n. With a NaN they are anything, which is harmless: its polynomial is NaN.
    let exponent = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    polynomial * f32::from_bits(exponent << 23)
}

/// The integer nearest to a value within `[-2^21, 2^21]`, of two the even one; of other values any integer.
#[inline]
fn rounded(value: f32) -> i32 {
    // From 2^23 on floats are whole numbers, and up to 2^24 their last bits are an integer's.
    const WHOLE: f32 = 12_582_912.0;
    (value + WHOLE).to_bits().wrapping_sub(WHOLE.to_bits()) as i32
}

/// `value` without its fraction, limited to `[-4096, 4096]`; a NaN becomes 0.
///
/// The same integer as `value as i32` with that limit, by operations that compilers do for many lanes at once.
#[must_use]
#[inline]
pub fn truncated(value: f32) -> i32 {
    let value = if value.is_nan() { 0.0 } else { value.clamp(-4096.0, 4096.0) };
    rounded(value.trunc())
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
    fn truncation_is_that_of_a_cast() {
        let near_whole = (-4100..=4100).flat_map(|whole| {
            let whole = whole as f32;
            [whole.next_down(), whole, whole.next_up(), whole - 0.5, (whole - 0.5).next_down()]
        });
        let all = (0..=u32::MAX).step_by(509).map(f32::from_bits);
        for value in near_whole.chain(all).chain([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0]) {
            assert_eq!(truncated(value), (value as i32).clamp(-4096, 4096), "{value}");
        }
    }

    #[test]
    fn rounding_is_to_the_nearest_of_two_the_even_one() {
        for half in -(1 << 13)..=1 << 13 {
            let exact = half as f32 * 0.5;
            for value in [exact, exact.next_up(), exact.next_down(), exact + 0.25, exact * 500.0] {
                assert_eq!(rounded(value), value.round_ties_even() as i32, "{value}");
            }
        }
    }

    #[test]
    fn a_label_moves_the_slope_by_exactly_its_span() {
        for step in -40_000..=40_000 {
            let z = step as f32 * 1e-3;
            let (negative, positive) = (logistic_slope(z, 0), logistic_slope(z, 1));
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
                for slope in [logistic_slope(z, label), two_sided_slope(z, label)] {
                    assert!((-SLOPE_MAX..=SLOPE_MAX).contains(&slope), "{z} {label}");
                }
            }
        }
    }

    #[test]
    fn the_huber_slope_is_the_residual_within_its_bound() {
        for (z, target, clip) in (-400..=400).flat_map(|step| {
            let z = step as f32 * 0.01;
            [(z, 0.3f32, 0.0625f32), (z, -1.0, 0.5), (z, 0.0, 1.0)]
        }) {
            let exact = 2048.0 * (f64::from(z - target) / f64::from(clip)).clamp(-1.0, 1.0);
            let found = huber_slope(z, target, clip);
            assert!((f64::from(found) - exact).abs() < 0.502, "{z}");
            assert_eq!(huber_slope(-z, -target, clip), -found);
        }
        for z in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN] {
            assert!((-SLOPE_MAX..=SLOPE_MAX).contains(&huber_slope(z, 0.5, 0.0625)), "{z}");
        }
    }

    #[test]
    fn labels_that_are_not_usable_have_no_slope() {
        let weights = PassWeights::none();
        for (loss, label) in [(Loss::Logistic, 2), (Loss::TwoSidedExponential, -1), (Loss::Huber, UNUSABLE_LABEL)] {
            assert_eq!(slope(loss, &weights, 0.5, label), 0);
        }
        for (loss, expected) in [(Loss::Logistic, 1275 - 2048), (Loss::TwoSidedExponential, -1242), (Loss::Huber, 1024)]
        {
            assert_eq!(slope(loss, &weights, 0.5, 1), expected, "{loss:?}");
        }
    }

    #[test]
    fn the_two_sided_slope_is_that_of_its_loss() {
        for step in -40_000..=40_000 {
            let z = step as f32 * 1e-3;
            let exact = |toward: f64| 2048.0 * toward.min(0.0).exp();
            assert!((f64::from(two_sided_slope(z, 0)) - exact(f64::from(z))).abs() <= 0.502, "{z}");
            assert!((f64::from(two_sided_slope(z, 1)) + exact(-f64::from(z))).abs() <= 0.502, "{z}");
        }
    }

    #[test]
    fn softmax_slopes_keep_their_norm_and_their_label_difference() {
        let extreme = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 0.0, 3.5, -2.0];
        for first in extreme {
            for second in extreme {
                let scores = [first, second, 1.0];
                let of = |class| {
                    let mut slopes = [0; 3];
                    softmax_slopes(&scores, class, &mut slopes);
                    slopes
                };
                for class in 0..3 {
                    let square: i64 = of(class).iter().map(|slope| i64::from(*slope).pow(2)).sum();
                    assert!(square <= 2 * i64::from(SLOPE_MAX).pow(2), "{scores:?} {class}");
                }
                assert_eq!(of(0)[0] + SLOPE_MAX, of(1)[0]);
                assert_eq!(of(0)[2], of(1)[2]);
            }
        }
    }

    #[test]
    fn bounded_softmax_slopes_keep_their_norm_and_reach_it() {
        let extreme = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 0.0, 3.5, -2.0];
        let whole = |square: i64| square > i64::from(SLOPE_MAX - 4).pow(2);
        for (first, second) in extreme.into_iter().flat_map(|first| extreme.map(|second| (first, second))) {
            for (class, saturation) in (0..3).flat_map(|class| [1.0, 0.7, 0.0625].map(|share| (class, share))) {
                let mut slopes = [0; 3];
                bounded_softmax_slopes(&[first, second, 1.0], class, saturation, &mut slopes);
                let square: i64 = slopes.iter().map(|slope| i64::from(*slope).pow(2)).sum();
                assert!(square <= i64::from(SLOPE_MAX).pow(2), "{first} {second} {class} {saturation}");
                // The least likely class has the whole norm, up to truncation; with less saturation others have too, but
                // not the likeliest, 12 times as likely as the next.
                if (first - 3.5).abs() < 1e-6 && (second + 2.0).abs() < 1e-6 {
                    let expected = class == 1 || saturation < 0.1 || (class == 2 && saturation < 0.9);
                    assert_eq!(whole(square), expected, "{slopes:?} {saturation}");
                }
            }
        }
    }

    #[test]
    fn bounded_softmax_slopes_of_two_classes_are_those_of_the_two_sided_loss() {
        for step in -80..=80 {
            let z = step as f32 * 0.1;
            for class in 0..2 {
                let mut slopes = [0; 2];
                bounded_softmax_slopes(&[0.0, z], class, 1.0, &mut slopes);
                let two_sided = f64::from(two_sided_slope(z, class as u8)) / 2f64.sqrt();
                assert!((f64::from(slopes[1]) - two_sided).abs() <= 1.5, "{z} {class}");
                assert_eq!(slopes[0], -slopes[1]);
            }
        }
    }

    #[test]
    fn slopes_that_are_too_long_are_shortened_until_they_fit() {
        let shortened = |slopes: &[i32]| {
            let mut slopes = slopes.to_vec();
            shorten(&mut slopes);
            slopes
        };
        assert_eq!(shortened(&[SLOPE_MAX, 0]), [SLOPE_MAX, 0]);
        assert_eq!(shortened(&[SLOPE_MAX, -1, 0]), [SLOPE_MAX - 1, 0, 0]);
        assert_eq!(shortened(&[-SLOPE_MAX, SLOPE_MAX]), [-1448, 1448]);
    }

    #[test]
    fn softmax_slopes_do_not_change_with_a_shift_of_all_scores() {
        let bounded =
            |scores: &[f32], class: usize, slopes: &mut [i32]| bounded_softmax_slopes(scores, class, 0.8, slopes);
        for slopes_of in [&softmax_slopes as &dyn Fn(&[f32], usize, &mut [i32]), &bounded] {
            let (mut near, mut far) = ([0; 3], [0; 3]);
            slopes_of(&[1.0, 2.0, 4.0], 1, &mut near);
            slopes_of(&[101.0, 102.0, 104.0], 1, &mut far);
            assert_eq!(near, far);
        }
    }

    #[test]
    fn softmax_slopes_of_two_classes_are_those_of_the_logistic_loss() {
        for step in -80..=80 {
            let z = step as f32 * 0.1;
            let mut slopes = [0; 2];
            softmax_slopes(&[0.0, z], 1, &mut slopes);
            assert!((slopes[1] - logistic_slope(z, 1)).abs() <= 1, "{z}");
        }
    }

    /// `2048 / (1 + e^-z)` in Python (`1024, 1497.208, 550.792, 2011.164, 0.253, 1024.512, 2046.617`), rounded by hand.
    #[test]
    fn golden_slopes() {
        for (z, expected) in [(0.0, 1024), (1.0, 1497), (-1.0, 551), (4.0, 2011), (-9.0, 0), (0.001, 1025), (7.3, 2047)]
        {
            assert_eq!(logistic_slope(z, 0), expected, "{z}");
        }
    }
}
