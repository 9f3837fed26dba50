//! The fast form of one pass over lattice rows: equal to `reticent_core::contribution`, integer for integer.

use reticent_core::contribution::{CodedLabel, class_of, scale_score};
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::Loss;
use reticent_core::slope::slope;

use crate::lattice::Steps;

/// Rows between two flushes of the 32-bit accumulators into 64 bits.
///
/// One product of a slope and a coordinate is at most `2048 · 32767` in magnitude, and `32 · 2048 · 32767 < 2^31`;
/// 33 of them could pass it. The bound is public: it holds for every row that the lattice admits.
pub const FLUSH_ROWS: usize = 32;

/// Coordinates that are worked on together.
const LANES: usize = 16;

/// Adds `slope · row` of every row to `totals`: dot product, slope and accumulation while the row is in cache.
///
/// Rows whose label is not 0 or 1 add nothing.
///
/// # Panics
/// When features and labels are not of the same rows.
pub fn add_gradient(
    loss: Loss,
    weights: &PassWeights,
    features: &[i16],
    steps: Steps<'_>,
    labels: &[CodedLabel],
    totals: &mut [i64],
) {
    let columns = totals.len();
    assert_eq!(features.len(), columns * labels.len(), "one row a label");
    let mut narrow = vec![0i32; columns];
    for (block, (features, labels)) in features.chunks(columns * FLUSH_ROWS).zip(labels.chunks(FLUSH_ROWS)).enumerate()
    {
        for (row, (features, label)) in features.chunks_exact(columns).zip(labels).enumerate() {
            let Ok(class @ (0 | 1)) = u8::try_from(*label) else { continue };
            let step = steps.of_row(block * FLUSH_ROWS + row);
            let score = scale_score(i64::from(dot(weights.weights(), features)), weights, step);
            accumulate(slope(loss, score, class), features, &mut narrow);
        }
        for (total, narrow) in totals.iter_mut().zip(&mut narrow) {
            *total += i64::from(std::mem::take(narrow));
        }
    }
}

/// Adds slopes times row to `totals`, class after class, `columns` places each: see [`add_gradient`].
///
/// `slopes_of` writes the slopes of a row, each at most 2048 in magnitude, from its scores and its class.
///
/// # Panics
/// When features and labels are not of the same rows.
pub fn add_softmax_gradient(
    classes: usize,
    slopes_of: impl Fn(&[f32], usize, &mut [i32]),
    weights: &PassWeights,
    features: &[i16],
    steps: Steps<'_>,
    labels: &[CodedLabel],
    totals: &mut [i64],
) {
    let columns = totals.len() / classes;
    assert_eq!(features.len(), columns * labels.len(), "one row a label");
    let mut narrow = vec![0i32; columns * classes];
    let (mut scores, mut slopes) = (vec![0.0f32; classes], vec![0i32; classes]);
    for (block, (features, labels)) in features.chunks(columns * FLUSH_ROWS).zip(labels.chunks(FLUSH_ROWS)).enumerate()
    {
        for (row, (features, label)) in features.chunks_exact(columns).zip(labels).enumerate() {
            let Some(class) = class_of(*label, classes as u32) else { continue };
            let step = steps.of_row(block * FLUSH_ROWS + row);
            for (score, of_class) in scores.iter_mut().zip(weights.weights().chunks_exact(columns)) {
                *score = scale_score(i64::from(dot(of_class, features)), weights, step);
            }
            slopes_of(&scores, class, &mut slopes);
            for (slope, narrow) in slopes.iter().zip(narrow.chunks_exact_mut(columns)) {
                // The slope of a class far from likely is exactly zero.
                if *slope != 0 {
                    accumulate(*slope, features, narrow);
                }
            }
        }
        for (total, narrow) in totals.iter_mut().zip(&mut narrow) {
            *total += i64::from(std::mem::take(narrow));
        }
    }
}

/// Adds the upper triangle of `row rowᵀ` and `label · row` of every row to 64-bit totals, without multipliers.
///
/// At most `2^30` a product: `2^33` rows fit. `products` has the packed triangle of the first `columns` coordinates of a
/// row, then the products with the label, then the label's square.
pub fn add_products(columns: usize, features: &[i16], labels: &[Option<i64>], products: &mut [i64]) {
    for (row, label) in features.chunks_exact(columns).zip(labels) {
        let Some(label) = label else { continue };
        let mut rest = &mut *products;
        for (first, feature) in row.iter().enumerate() {
            let (line, after) = rest.split_at_mut(columns - first);
            for (total, other) in line.iter_mut().zip(&row[first..]) {
                *total += i64::from(i32::from(*feature) * i32::from(*other));
            }
            rest = after;
        }
        for (total, feature) in rest.iter_mut().zip(row) {
            *total += label * i64::from(*feature);
        }
        rest[columns] += label * label;
    }
}

/// Exact in 32 bits in any order: every partial sum is at most `||weights|| ||row|| <= 65535 · 32767 < 2^31`.
#[inline]
fn dot(weights: &[i16], row: &[i16]) -> i32 {
    let (weights, weights_left) = weights.as_chunks::<LANES>();
    let (row, row_left) = row.as_chunks::<LANES>();
    let mut sums = [0i32; LANES];
    for (weights, features) in weights.iter().zip(row) {
        for ((sum, weight), feature) in sums.iter_mut().zip(weights).zip(features) {
            *sum += i32::from(*weight) * i32::from(*feature);
        }
    }
    let left: i32 = weights_left.iter().zip(row_left).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum();
    sums.iter().sum::<i32>() + left
}

#[inline]
fn accumulate(slope: i32, row: &[i16], totals: &mut [i32]) {
    // A slope fits 16 bits; saying so lets the compiler multiply 16-bit lanes.
    let slope = slope as i16;
    for (total, feature) in totals.iter_mut().zip(row) {
        *total += i32::from(slope) * i32::from(*feature);
    }
}
