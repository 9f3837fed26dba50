//! The fast form of one pass over lattice rows: equal to `reticent_core::contribution`, integer for integer.

use reticent_core::contribution::{CodedLabel, class_of, scale_score};
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::Loss;
use reticent_core::slope::slope;

/// Rows between two flushes of the 32-bit accumulators into 64 bits.
///
/// One product of a slope and a coordinate is at most `2048 · 32767` in magnitude, and `32 · 2048 · 32767 < 2^31`;
/// 33 of them could pass it. The bound is public: it holds for every row that the lattice admits.
pub const FLUSH_ROWS: usize = 32;

/// Coordinates that are worked on together; a stored row is filled up with zeros to a multiple of it, which change no sum.
pub const LANES: usize = 16;

type Lanes<T> = [T; LANES];

/// Adds `slope · row` of every row to `totals`: dot product, slope and accumulation while the row is in cache.
///
/// `features` has `stride` coordinates a row: those of the query, then zeros. Rows whose label is not 0 or 1 add nothing.
///
/// # Panics
/// When the stride is not the columns rounded up to whole [`LANES`].
pub fn add_gradient(
    loss: Loss,
    weights: &PassWeights,
    features: &[i16],
    steps: &[f32],
    labels: &[CodedLabel],
    totals: &mut [i64],
) {
    let stride = totals.len().next_multiple_of(LANES);
    assert_eq!(features.len(), stride * steps.len(), "whole rows, filled up to whole lanes");
    let mut padded = weights.weights().to_vec();
    padded.resize(stride, 0);
    let (lane_weights, _) = padded.as_chunks::<LANES>();
    let mut narrow = vec![[0i32; LANES]; stride / LANES];
    let blocks = features.chunks(stride * FLUSH_ROWS).zip(steps.chunks(FLUSH_ROWS)).zip(labels.chunks(FLUSH_ROWS));
    for ((features, steps), labels) in blocks {
        for ((row, step), label) in features.chunks_exact(stride).zip(steps).zip(labels) {
            let Ok(class @ (0 | 1)) = u8::try_from(*label) else { continue };
            let (row, _) = row.as_chunks::<LANES>();
            let score = scale_score(i64::from(dot(lane_weights, row)), weights, *step);
            accumulate(slope(loss, score, class), row, &mut narrow);
        }
        for (total, narrow) in totals.iter_mut().zip(narrow.as_flattened_mut()) {
            *total += i64::from(std::mem::take(narrow));
        }
    }
}

/// Adds slopes times row to `totals`, class after class, `columns` places each: see [`add_gradient`].
///
/// `slopes_of` writes the slopes of a row, each at most 2048 in magnitude, from its scores and its class.
///
/// # Panics
/// When the stride is not the columns rounded up to whole [`LANES`].
pub fn add_softmax_gradient(
    classes: usize,
    slopes_of: impl Fn(&[f32], usize, &mut [i32]),
    weights: &PassWeights,
    features: &[i16],
    steps: &[f32],
    labels: &[CodedLabel],
    totals: &mut [i64],
) {
    let columns = totals.len() / classes;
    let stride = columns.next_multiple_of(LANES);
    assert_eq!(features.len(), stride * steps.len(), "whole rows, filled up to whole lanes");
    let mut padded = vec![0; stride * classes];
    for (padded, of_class) in padded.chunks_exact_mut(stride).zip(weights.weights().chunks_exact(columns)) {
        padded[..columns].copy_from_slice(of_class);
    }
    let (lane_weights, _) = padded.as_chunks::<LANES>();
    let lanes = stride / LANES;
    let mut narrow = vec![[0i32; LANES]; lanes * classes];
    let (mut scores, mut slopes) = (vec![0.0f32; classes], vec![0i32; classes]);
    let blocks = features.chunks(stride * FLUSH_ROWS).zip(steps.chunks(FLUSH_ROWS)).zip(labels.chunks(FLUSH_ROWS));
    for ((features, steps), labels) in blocks {
        for ((row, step), label) in features.chunks_exact(stride).zip(steps).zip(labels) {
            let Some(class) = class_of(*label, classes as u32) else { continue };
            let (row, _) = row.as_chunks::<LANES>();
            for (score, of_class) in scores.iter_mut().zip(lane_weights.chunks_exact(lanes)) {
                *score = scale_score(i64::from(dot(of_class, row)), weights, *step);
            }
            slopes_of(&scores, class, &mut slopes);
            for (slope, narrow) in slopes.iter().zip(narrow.chunks_exact_mut(lanes)) {
                // The slope of a class far from likely is exactly zero.
                if *slope != 0 {
                    accumulate(*slope, row, narrow);
                }
            }
        }
        let narrow = narrow.as_flattened_mut();
        for (totals, narrow) in totals.chunks_exact_mut(columns).zip(narrow.chunks_exact_mut(stride)) {
            for (total, narrow) in totals.iter_mut().zip(narrow) {
                *total += i64::from(std::mem::take(narrow));
            }
        }
    }
}

/// Adds the upper triangle of `row rowᵀ` and `label · row` of every row to 64-bit totals, without multipliers.
///
/// At most `2^30` a product: `2^33` rows fit. `products` has the packed triangle of the first `columns` coordinates of a
/// row, then the products with the label, then the label's square.
pub fn add_products(columns: usize, stride: usize, features: &[i16], labels: &[Option<i64>], products: &mut [i64]) {
    for (row, label) in features.chunks_exact(stride).zip(labels) {
        let Some(label) = label else { continue };
        let row = &row[..columns];
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
fn dot(weights: &[Lanes<i16>], row: &[Lanes<i16>]) -> i32 {
    let mut sums = [0i32; LANES];
    for (weights, features) in weights.iter().zip(row) {
        for ((sum, weight), feature) in sums.iter_mut().zip(weights).zip(features) {
            *sum += i32::from(*weight) * i32::from(*feature);
        }
    }
    sums.iter().sum()
}

#[inline]
fn accumulate(slope: i32, row: &[Lanes<i16>], narrow: &mut [Lanes<i32>]) {
    // A slope fits 16 bits; saying so lets the compiler multiply 16-bit lanes.
    let slope = slope as i16;
    for (totals, features) in narrow.iter_mut().zip(row) {
        for (total, feature) in totals.iter_mut().zip(features) {
            *total += i32::from(slope) * i32::from(*feature);
        }
    }
}
