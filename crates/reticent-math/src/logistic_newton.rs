//! Ridge logistic regression to full precision by Newton's method: the non-private yardstick.

use std::ops::Range;

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};
use thiserror::Error;

use crate::feature_table::FeatureTable;
use crate::row_blocks::of_row_blocks;
use crate::sigmoid;

/// A fit that did not come to an end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum NewtonError {
    /// The Hessian was not positive definite.
    #[error("the Hessian is not positive definite; use a ridge above 0")]
    Singular,
    /// The gradient did not become small.
    #[error("no convergence in {0} Newton steps; use a larger ridge")]
    Steps(usize),
}

/// Weights `w` that minimise `sum_i ln(1 + e^{x_i w}) - y_i x_i w + ridge/2 ||w||²`.
///
/// `labels` has one value in `[0, 1]` a row; `ridge` is a total (not multiplied by the number of rows, n).
/// Newton steps with halving until the gradient's largest entry is below `1e-8 n`. The matrix of a step has the square of the number of columns.
///
/// # Errors
/// [`NewtonError`] when the ridge is too small for the data.
///
/// # Panics
/// When `labels` does not have one value a row.
pub fn fit(features: &FeatureTable, labels: &[f64], ridge: f64) -> Result<Vec<f64>, NewtonError> {
    const STEPS_MAX: usize = 100;
    let (rows, columns) = (features.rows(), features.columns());
    assert_eq!(labels.len(), rows, "one label a row");
    let mut weights = Mat::<f64>::zeros(columns, 1);
    let mut current = objective(features, labels, ridge, &weights);
    // Near the minimum a whole step gains less than a sum of so many losses is rounded by; it is what makes the gradient small.
    let rounding = f64::EPSILON * rows as f64;
    for _ in 0..STEPS_MAX {
        let gradient = slopes(features, labels, &weights) + &weights * ridge;
        if gradient.norm_max() <= 1e-8 * rows.max(1) as f64 {
            return Ok(weights.col(0).iter().copied().collect());
        }
        let mut hessian = curvature(features, &weights);
        for diagonal in 0..columns {
            hessian[(diagonal, diagonal)] += ridge;
        }
        let direction = hessian.llt(Side::Lower).map_err(|_| NewtonError::Singular)?.solve(&gradient);
        let mut length = 1.0;
        loop {
            let next = &weights - &direction * length;
            let value = objective(features, labels, ridge, &next);
            if value <= current * (1.0 + rounding) || length < 1e-10 {
                (weights, current) = (next, value);
                break;
            }
            length /= 2.0;
        }
    }
    Err(NewtonError::Steps(STEPS_MAX))
}

fn objective(features: &FeatureTable, labels: &[f64], ridge: f64, weights: &Mat<f64>) -> f64 {
    let scorer = features.scorer(weights);
    let losses = of_row_blocks(features.rows(), 1, |block| {
        let scores = scorer.of(block.clone());
        let loss = |(z, label): (&f64, &f64)| z.max(0.0) + (-z.abs()).exp().ln_1p() - label * z;
        scores.col(0).iter().zip(&labels[block]).map(loss).sum::<f64>()
    });
    losses.iter().sum::<f64>() + ridge / 2.0 * weights.squared_norm_l2()
}

/// `X^T (p - y)`.
fn slopes(features: &FeatureTable, labels: &[f64], weights: &Mat<f64>) -> Mat<f64> {
    let to_residuals = |block: Range<usize>, scores: &mut Mat<f64>| {
        let of_block = scores.col_mut(0).iter_mut().zip(&labels[block]);
        of_block.for_each(|(score, label)| *score = sigmoid(*score) - label);
        0.0
    };
    features.loss_and_slopes(weights, to_residuals).1
}

/// `X^T V X`, `V` the variances `p (1 - p)`.
fn curvature(features: &FeatureTable, weights: &Mat<f64>) -> Mat<f64> {
    let scorer = features.scorer(weights);
    features.gram(Some(&|block| {
        let scores = scorer.of(block);
        scores.col(0).iter().map(|score| sigmoid(*score)).map(|p| p * (1.0 - p)).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_sequence::FixedSequence;

    /// Golden weights from `scipy.optimize.minimize` (see the script in `testdata/golden/logistic_newton.py`).
    #[test]
    fn agrees_with_an_independent_solver() {
        let features: Vec<f64> = (0..8).flat_map(|row| [1.0, f64::from(row) / 4.0 - 1.0]).collect();
        let labels = [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0];
        let weights = fit(&FeatureTable::packed(features, 2), &labels, 0.1).expect("ridge makes it strictly convex");
        for (found, expected) in weights.iter().zip([GOLDEN.0, GOLDEN.1]) {
            assert!((found - expected).abs() < 1e-6, "{weights:?}");
        }
    }

    const GOLDEN: (f64, f64) = (0.219_971_388_531_921_39, 1.871_829_279_916_214_8);

    #[test]
    fn separable_data_without_ridge_ends() {
        // There is no optimum; the gradient still becomes small, far out.
        let features = FeatureTable::packed(vec![-1.5, -0.5, 0.5, 1.5], 1);
        let weights = fit(&features, &[0.0, 0.0, 1.0, 1.0], 0.0);
        assert!(weights.is_err() || weights.is_ok_and(|weights| weights[0] > 10.0));
    }

    /// Near the minimum of a long table a step gains less than the rounding of the summed losses; some of these rates meet that.
    #[test]
    fn copies_of_a_column_of_a_long_table_are_fitted() {
        const ROWS: usize = 200_000;
        for hundredths in [38, 39, 44, 46, 48, 61, 68] {
            let rise = f64::from(hundredths) / 100.0;
            let mut sequence = FixedSequence::new(1);
            let mut share = || (sequence.next_uniform() + 1.0) / 2.0;
            let (mut features, mut labels) = (Vec::with_capacity(9 * ROWS), Vec::with_capacity(ROWS));
            // Rows, and those of them with label 1, of the group whose copies are 0 and of the other.
            let mut groups = [(0.0, 0.0); 2];
            for _ in 0..ROWS {
                let copied = f64::from(u8::from(share() < 0.5));
                let label = f64::from(u8::from(share() < 0.27 + rise * copied));
                features.extend(std::iter::once(1.0).chain([copied; 8]));
                labels.push(label);
                let (rows, ones) = &mut groups[copied as usize];
                (*rows, *ones) = (*rows + 1.0, *ones + label);
            }
            let weights = fit(&FeatureTable::packed(features, 9), &labels, 0.001).expect("a minimum");
            // Without a column that tells more, the fit is the two groups' log odds.
            let [low, high] = groups.map(|(rows, ones)| (ones / (rows - ones)).ln());
            assert!((weights[0] - low).abs() < 1e-5, "{weights:?}");
            assert!((weights.iter().sum::<f64>() - high).abs() < 1e-5, "{weights:?}");
        }
    }

    #[test]
    fn a_column_of_zeros_without_ridge_is_an_error() {
        let features = FeatureTable::packed(vec![1.0, 0.0, -1.0, 0.0, 1.0, 0.0], 2);
        assert_eq!(fit(&features, &[0.0, 0.0, 1.0], 0.0), Err(NewtonError::Singular));
    }
}
