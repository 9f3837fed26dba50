//! The noise covariance of `A X^T y + noise` that makes the error of an unregularised estimate small, for public `X`: the
//! yardstick of the tests of [`super`].
//!
//! ```text
//!   minimise tr(M Sigma)  subject to  x_i^T Sigma^-1 x_i <= 1 for every row,   Sigma = (A^T A)^-1
//!   dual: maximise tr((M^1/2 S(p) M^1/2)^1/2) over p,  S(p) = sum_i p_i x_i x_i^T
//!   Sigma^-1 = M^1/2 (M^1/2 S M^1/2)^-1/2 M^1/2 (up to scale),   p_i <- p_i g_i / sum_j p_j g_j,  g_i = x_i^T Sigma^-1 x_i
//! ```
//! `||A x_i|| <= 1` holds for every row that the matrix is made for, after any number of steps: it is scaled at the end.

use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, Side};

use super::{DesignError, symmetric};
use crate::noise_aware_map::golden;
use crate::public_rows::PublicRows;

/// The prior-aware metric `M = G F G`, `G = (F + kappa n diag(var x))^-1`, with the Fisher information `F = f X^T X`.
///
/// `features` is n × k; `loss` is `f`, the second derivative of a row's loss at the public reference point.
/// With `kappa` = 0.3 directions that noise would swamp anyway get little of the budget. The result is k × k.
///
/// # Errors
/// [`DesignError`] when the features are empty or badly scaled.
pub(super) fn prior_aware_metric(features: MatRef<'_, f64>, loss: f64, kappa: f64) -> Result<Mat<f64>, DesignError> {
    let (rows, columns) = features.shape();
    if rows == 0 || columns == 0 {
        return Err(DesignError::Empty);
    }
    let fisher = features.transpose() * features * faer::Scale(loss);
    let largest = (0..columns).map(|column| fisher[(column, column)]).fold(0.0, f64::max);
    let mut penalised = fisher.clone();
    for column in 0..columns {
        let mean = features.col(column).sum() / rows as f64;
        let variance = features.col(column).squared_norm_l2() / rows as f64 - mean * mean;
        // The last term keeps columns that are copies of others, or zero, from making the matrix singular.
        penalised[(column, column)] += kappa * rows as f64 * variance.max(0.0) + 1e-9 * largest;
    }
    let factor = penalised.llt(Side::Lower).map_err(|_| DesignError::Scale)?;
    let half = factor.solve(&fisher);
    Ok(symmetric(&factor.solve(&half.transpose().to_owned())))
}

/// The matrix `A`, rank × k, with `max_i ||A x_i|| = 1`.
///
/// `features` is n × k, `metric` k × k and positive semidefinite, `iterations` multiplicative steps (300 are enough).
/// Cost: `2 n k^2` a step.
/// Source: derived above, by Lagrange duality of the convex problem; the step is Titterington's for optimal designs.
///
/// # Errors
/// [`DesignError`] when the features are empty, not finite or badly scaled.
pub(super) fn optimal_covariance(
    features: MatRef<'_, f64>,
    metric: MatRef<'_, f64>,
    iterations: u32,
) -> Result<Mat<f64>, DesignError> {
    let rows = features.nrows();
    let root = {
        let eigen = metric.self_adjoint_eigen(Side::Lower).map_err(|_| DesignError::Scale)?;
        let roots: Vec<f64> = eigen.S().column_vector().iter().map(|value| value.max(0.0).sqrt()).collect();
        let scaled =
            Mat::from_fn(metric.nrows(), metric.nrows(), |row, column| eigen.U()[(row, column)] * roots[column]);
        symmetric(&(&scaled * eigen.U().transpose()))
    };
    let turned = features * &root;
    let mut shares = vec![1.0 / rows as f64; rows];
    let mut directions = Mat::new();
    for step in 0..=iterations {
        let weighted = Mat::from_fn(rows, turned.ncols(), |row, column| turned[(row, column)] * shares[row].sqrt());
        let moments = symmetric(&(weighted.transpose() * &weighted));
        let eigen = moments.self_adjoint_eigen(Side::Lower).map_err(|_| DesignError::Scale)?;
        let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
        let largest = values.iter().fold(0.0, |largest: f64, &value| largest.max(value));
        if largest.is_nan() || largest <= 0.0 {
            return Err(DesignError::Empty);
        }
        let kept: Vec<usize> = (0..values.len()).filter(|&index| values[index] > largest * 1e-14).collect();
        // Lambda^-1/4 E^T: its Gram matrix is the inverse root of the moments.
        directions = Mat::from_fn(kept.len(), turned.ncols(), |output, column| {
            eigen.U()[(column, kept[output])] / values[kept[output]].powf(0.25)
        });
        if step == iterations {
            break;
        }
        let mapped = &turned * directions.transpose();
        let lengths: Vec<f64> = (0..rows).map(|row| mapped.row(row).squared_norm_l2()).collect();
        let mean: f64 = lengths.iter().zip(&shares).map(|(length, share)| length * share).sum();
        shares.iter_mut().zip(&lengths).for_each(|(share, length)| *share *= length / mean);
    }
    let matrix = &directions * &root;
    let longest = PublicRows::from((features * matrix.transpose()).as_ref()).longest_row();
    if !longest.is_finite() || longest <= 0.0 {
        return Err(DesignError::NotFinite);
    }
    Ok(matrix * faer::Scale(1.0 / longest))
}

#[test]
fn reaches_the_optimum_that_the_dual_problem_gives() {
    let data = golden::data();
    let mut inverse = data.features.transpose() * &data.features * faer::Scale(0.25);
    for (column, extra) in [0.1, 1.0, 2.0].into_iter().enumerate() {
        inverse[(column, column)] += extra;
    }
    let metric = inverse.llt(Side::Lower).expect("positive").solve(Mat::<f64>::identity(3, 3));
    let matrix = optimal_covariance(data.features.as_ref(), metric.as_ref(), 2000).expect("three columns");
    assert!((PublicRows::from((&data.features * matrix.transpose()).as_ref()).longest_row() - 1.0).abs() < 1e-12);
    let precision = matrix.transpose() * &matrix;
    let noise = precision.llt(Side::Lower).expect("full rank").solve(&metric);
    let trace: f64 = (0..3).map(|index| noise[(index, index)]).sum();
    assert!((trace / golden::OPTIMAL_COVARIANCE_TRACE - 1.0).abs() < 1e-3, "{trace}");
}

#[test]
fn a_rank_deficient_table_gives_fewer_outputs() {
    let features = Mat::from_fn(30, 3, |row, column| match column {
        0 => 1.0,
        1 => f64::from(row % 2 == 0),
        _ => f64::from(row % 2 == 1),
    });
    let metric = prior_aware_metric(features.as_ref(), 0.25, 0.3).expect("rows");
    let matrix = optimal_covariance(features.as_ref(), metric.as_ref(), 100).expect("rows");
    assert_eq!(matrix.nrows(), 2);
}
