//! What one private row adds to a sum: the only arithmetic that touches a row, in scalar code.
//!
//! This is the reference. A faster kernel is right when it equals this, integer for integer, on every row.
//! A contribution is a pure function of the row and of the query's public values: never of the row's position, its
//! neighbours or the block it is read in. Slopes are the same on every machine; log losses use the platform's `exp`.

use crate::encoding::LatticeRow;
use crate::query::{COUNT_STEP, LOG_LOSS_CAP, LOG_LOSS_STEP, Map, PassWeights, SumQuery};
use crate::slope::{sigmoid, slope};

/// Label of a row as stored: a class index, or [`UNUSABLE_LABEL`].
pub type CodedLabel = i16;

/// Stored for a label that is missing or outside the declared classes: such a row adds zero to every sum.
pub const UNUSABLE_LABEL: CodedLabel = i16::MIN;

/// Adds the contribution of one row to `totals`, one place a coordinate of the query.
///
/// Guarantee: what is added has at most the norm that [`crate::query::QueryShape::sensitivity`] charges, for *every*
/// row that satisfies the invariant of [`LatticeRow`] and every label.
pub fn add_contribution(query: &SumQuery, row: LatticeRow<'_>, label: CodedLabel, totals: &mut [i128]) {
    let class = match label {
        0 => 0u8,
        1 => 1u8,
        // Unusable, or a class that a binary query does not know.
        _ => return,
    };
    match *query.shape().map() {
        Map::ClassCount { .. } => totals[usize::from(class)] += i128::from(COUNT_STEP),
        Map::Gradient { loss, .. } => {
            let slope = i128::from(slope(loss, score(query.weights(), row), class));
            for (total, feature) in totals.iter_mut().zip(row.features) {
                *total += slope * i128::from(*feature);
            }
        }
        Map::CorrectCount => {
            let predicted = u8::from(score(query.weights(), row) > 0.0);
            totals[0] += i128::from(COUNT_STEP);
            totals[1] += i128::from(COUNT_STEP) * i128::from(predicted == class);
        }
        Map::LogLoss => {
            let z = f64::from(score(query.weights(), row));
            let margin = if class == 1 { z } else { -z };
            // ln(1 + e^-margin), stable on both sides.
            let loss = (-margin).max(0.0) + (-margin.abs()).exp().ln_1p();
            let cap = LOG_LOSS_STEP * i64::from(LOG_LOSS_CAP);
            totals[0] += i128::from(((loss * LOG_LOSS_STEP as f64) as i64).clamp(0, cap));
        }
        Map::ScoreHistogram { buckets } => {
            let bucket = ((sigmoid(score(query.weights(), row)) * buckets as f32) as u32).min(buckets - 1);
            totals[(u32::from(class) * buckets + bucket) as usize] += i128::from(COUNT_STEP);
        }
    }
}

/// `z = (step_row · step_weights) · sum_j weights[j] · row[j]`: an exact integer, then two roundings in fixed order.
#[must_use]
#[inline]
pub fn score(weights: &PassWeights, row: LatticeRow<'_>) -> f32 {
    // Below 2^31 by the norms of both sides, so a narrower accumulator gives the same integer.
    let dot: i64 = weights
        .weights()
        .iter()
        .zip(row.features)
        .map(|(weight, feature)| i64::from(*weight) * i64::from(*feature))
        .sum();
    scale_score(dot, weights, row.step)
}

/// The last step of [`score`], apart so that kernels that have the exact integer already share it.
#[must_use]
#[inline]
pub fn scale_score(dot: i64, weights: &PassWeights, row_step: f32) -> f32 {
    dot as f32 * (row_step * weights.step())
}
