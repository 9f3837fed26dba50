//! Slopes of a group of rows, lane by lane the operations of `reticent_core::slope`, in the same order.

#![allow(
    clippy::needless_range_loop,
    reason = "lanes of several arrays, by number, are what the compiler turns into vectors"
)]

use super::lanes::GROUP;
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL, scale_score};
use reticent_core::encoding::LATTICE_NORM_MAX;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{Loss, SLOPE_MAX};
use reticent_core::slope::{exp, huber_slope, logistic_slope, truncated, two_sided_slope};

/// Scores of a group from its exact dot products.
#[inline(always)]
pub(super) fn scores(dots: &[i32; GROUP], weights: &PassWeights, steps: &[f32; GROUP]) -> [f32; GROUP] {
    let mut scores = [0.0; GROUP];
    for row in 0..GROUP {
        scores[row] = scale_score(i64::from(dots[row]), weights, steps[row]);
    }
    scores
}

/// [`reticent_core::slope::slope`] of each row: of one score, by core's functions themselves.
#[inline(always)]
pub(super) fn single(
    loss: Loss,
    weights: &PassWeights,
    scores: &[f32; GROUP],
    labels: &[CodedLabel; GROUP],
) -> [i32; GROUP] {
    // The loss is chosen once, outside the loop over the lanes.
    match loss {
        Loss::Logistic => binary_of(logistic_slope, scores, labels),
        Loss::TwoSidedExponential => binary_of(two_sided_slope, scores, labels),
        Loss::Huber => {
            let (window, clip) = (weights.target_window(), weights.saturation());
            let mut slopes = [0; GROUP];
            for row in 0..GROUP {
                let usable = i32::from(labels[row] != UNUSABLE_LABEL);
                slopes[row] = huber_slope(scores[row], window.share_of(labels[row]), clip) * usable;
            }
            slopes
        }
    }
}

#[inline(always)]
fn binary_of(slope: impl Fn(f32, u8) -> i32, scores: &[f32; GROUP], labels: &[CodedLabel; GROUP]) -> [i32; GROUP] {
    let mut slopes = [0; GROUP];
    for row in 0..GROUP {
        let usable = i32::from(labels[row] == 0 || labels[row] == 1);
        slopes[row] = slope(scores[row], (labels[row] & 1) as u8) * usable;
    }
    slopes
}

/// Brings the slope of each row within its bound.
#[inline(always)]
pub(super) fn clip(slopes: &mut [i32; GROUP], largest: &[i16; GROUP]) {
    for row in 0..GROUP {
        // Not `clamp`, which looks at the order of its bounds, row by row.
        slopes[row] = slopes[row].max(-i32::from(largest[row])).min(i32::from(largest[row]));
    }
}

/// [`reticent_core::contribution::largest_slope`] of each row, from its squared norm.
#[inline(always)]
pub(super) fn largest(squares: &[i32; GROUP], clip: u32) -> [i16; GROUP] {
    // `slope² · square` is at most 2^22 · 2^30, and no clip is longer than that: all products are exact in 64-bit floats. So the
    // quotient's root is off by less than one, and the two comparisons mend that.
    let longest = f64::from(SLOPE_MAX) * f64::from(LATTICE_NORM_MAX);
    let bound = f64::from(clip).min(longest).powi(2);
    let fits = |slope: f64, square: f64| slope * slope * square <= bound;
    let mut largest = [0; GROUP];
    for row in 0..GROUP {
        let square = f64::from(squares[row]);
        let root = (bound / square).sqrt().min(f64::from(SLOPE_MAX)).floor();
        let lower = if fits(root, square) { root } else { root - 1.0 };
        let next = (lower + 1.0).min(f64::from(SLOPE_MAX));
        largest[row] = if fits(next, square) { next } else { lower } as i16;
    }
    largest
}

/// [`reticent_core::slope::softmax_slopes`] of each row, from one group of scores a class, which are overwritten.
#[inline(always)]
pub(super) fn softmax(scores: &mut [[f32; GROUP]], labels: &[CodedLabel; GROUP], slopes: &mut [[i32; GROUP]]) {
    let total = exponentials(scores);
    let mut left = [SLOPE_MAX; GROUP];
    for (class, (slopes, values)) in slopes.iter_mut().zip(scores).enumerate() {
        for row in 0..GROUP {
            let share = truncated(SLOPE_MAX as f32 * (values[row] / total[row]));
            let share = share.clamp(0, left[row]);
            left[row] -= share;
            slopes[row] = share - SLOPE_MAX * i32::from(i32::from(labels[row]) == class as i32);
        }
    }
    without_unusable(labels, slopes);
}

/// [`reticent_core::slope::bounded_softmax_slopes`] of each row, from one group of scores a class, which are overwritten.
#[inline(always)]
pub(super) fn bounded_softmax(
    scores: &mut [[f32; GROUP]],
    labels: &[CodedLabel; GROUP],
    saturation: f32,
    slopes: &mut [[i32; GROUP]],
) {
    let total = exponentials(scores);
    let (mut squares, mut least, mut own) = ([0.0f32; GROUP], [f32::MAX; GROUP], [0.0f32; GROUP]);
    for (class, values) in scores.iter().enumerate() {
        for row in 0..GROUP {
            squares[row] += values[row] * values[row];
            least[row] = least[row].min(values[row]);
            own[row] = if i32::from(labels[row]) == class as i32 { values[row] } else { own[row] };
        }
    }
    let mut divisor = [0.0f32; GROUP];
    for row in 0..GROUP {
        let norm_of = |value: f32| (squares[row] / (total[row] * total[row]) + 1.0 - 2.0 * (value / total[row])).sqrt();
        divisor[row] = norm_of(own[row]).max(saturation * norm_of(least[row]));
    }
    let mut square = [0i64; GROUP];
    for (class, (slopes, values)) in slopes.iter_mut().zip(scores).enumerate() {
        for row in 0..GROUP {
            let indicator = if i32::from(labels[row]) == class as i32 { 1.0 } else { 0.0 };
            let bounded = truncated(SLOPE_MAX as f32 * ((values[row] / total[row] - indicator) / divisor[row]));
            slopes[row] = bounded.clamp(-SLOPE_MAX, SLOPE_MAX);
        }
        // Apart, as a vector has half as many of the squares.
        for row in 0..GROUP {
            square[row] += i64::from(slopes[row].pow(2));
        }
    }
    // Rarely, rounding passes the bound.
    for (row, square) in square.iter_mut().enumerate() {
        while *square > i64::from(SLOPE_MAX).pow(2) {
            *square = 0;
            for slopes in slopes.iter_mut() {
                slopes[row] -= slopes[row].signum();
                *square += i64::from(slopes[row]).pow(2);
            }
        }
    }
    without_unusable(labels, slopes);
}

/// Replaces scores by `e^(score - largest of the row)`, and returns their sum, added class after class.
#[inline(always)]
fn exponentials(scores: &mut [[f32; GROUP]]) -> [f32; GROUP] {
    let mut largest = [f32::NEG_INFINITY; GROUP];
    for scores in &*scores {
        for row in 0..GROUP {
            largest[row] = largest[row].max(scores[row]);
        }
    }
    let mut total = [0.0f32; GROUP];
    for scores in scores {
        for row in 0..GROUP {
            scores[row] = exp(scores[row] - largest[row]);
            total[row] += scores[row];
        }
    }
    total
}

/// Rows whose label is not a class have slopes zero.
#[inline(always)]
fn without_unusable(labels: &[CodedLabel; GROUP], slopes: &mut [[i32; GROUP]]) {
    let classes = slopes.len() as i32;
    for slopes in slopes {
        for row in 0..GROUP {
            slopes[row] *= i32::from((0..classes).contains(&i32::from(labels[row])));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use reticent_core::contribution::class_of;
    use reticent_core::slope::{bounded_softmax_slopes, slope, softmax_slopes};
    use reticent_core::target_window::TargetWindow;

    fn score() -> impl Strategy<Value = f32> {
        prop_oneof![
            4 => -12.0f32..12.0,
            2 => -100.0f32..100.0,
            1 => prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.0, -0.0]),
            1 => any::<f32>(),
        ]
    }

    proptest! {
        #[test]
        fn lanes_have_the_slopes_of_the_scalar_functions(
            scores in prop::collection::vec(prop::array::uniform32(score()), 1..7),
            labels in prop::array::uniform32(prop_oneof![0i16..8, any::<i16>()]),
            saturation in prop_oneof![Just(1.0f32), 0.0625f32..1.0],
        ) {
            let weights = PassWeights::of_target(TargetWindow::new(0.2, 0.25)).with_saturation(saturation.into());
            for loss in [Loss::Logistic, Loss::TwoSidedExponential, Loss::Huber] {
                let found = single(loss, &weights, &scores[0], &labels);
                for row in 0..GROUP {
                    prop_assert_eq!(found[row], slope(loss, &weights, scores[0][row], labels[row]));
                }
            }
            for bounded in [false, true] {
                let mut found = vec![[7; GROUP]; scores.len()];
                let mut overwritten = scores.clone();
                if bounded {
                    bounded_softmax(&mut overwritten, &labels, saturation, &mut found);
                } else {
                    softmax(&mut overwritten, &labels, &mut found);
                }
                for row in 0..GROUP {
                    let of_row: Vec<f32> = scores.iter().map(|scores| scores[row]).collect();
                    let mut expected = vec![0; scores.len()];
                    if let Some(class) = class_of(labels[row], scores.len() as u32) {
                        if bounded {
                            bounded_softmax_slopes(&of_row, class, saturation, &mut expected);
                        } else {
                            softmax_slopes(&of_row, class, &mut expected);
                        }
                    }
                    let found: Vec<i32> = found.iter().map(|slopes| slopes[row]).collect();
                    prop_assert_eq!(found, expected, "{:?}", of_row);
                }
            }
        }
    }
}
