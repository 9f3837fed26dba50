//! The fast form of one pass over lattice rows: equal to `reticent_core::contribution`, integer for integer.

use reticent_core::contribution::{CodedLabel, scale_score};
use reticent_core::query::{Loss, PassWeights};
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
