//! Ridge least squares by the normal equations: the non-private yardstick of linear regression.

use std::ops::Range;

use faer::linalg::solvers::Solve;
use faer::{Mat, Scale, Side};
use thiserror::Error;

use crate::feature_table::FeatureTable;

/// Normal equations that were not solved.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LeastSquaresError {
    /// There is no unique solution.
    #[error("the normal equations are not positive definite; use a ridge above 0")]
    Singular,
    /// The conjugate gradients did not become small.
    #[error(
        "no convergence in {0} steps of conjugate gradients: some columns say nearly the same; leave one of them out"
    )]
    Steps(usize),
}

/// Columns up to which the matrix of the normal equations is written down in any case.
const MATRIX_COLUMNS: usize = 1500;

/// Weights `w` that minimise `1/2 sum_i (x_i w - y_i)² + ridge/2 ||w||²`.
///
/// `targets` has one value a row; `ridge` is a total (not multiplied by the number of rows). The relative error is about `1e-16` times the
/// condition number of `XᵀX + ridge I`: small where columns have like scales. Of many columns, where the matrix would be larger than
/// the table itself, it is found by conjugate gradients, in time and memory by what rows list.
///
/// # Errors
/// [`LeastSquaresError`] when the ridge is too small for the data.
///
/// # Panics
/// When `targets` does not have one value a row.
pub fn fit(features: &FeatureTable, targets: &[f64], ridge: f64) -> Result<Vec<f64>, LeastSquaresError> {
    assert_eq!(targets.len(), features.rows(), "one target a row");
    let columns = features.columns();
    if columns <= MATRIX_COLUMNS || columns.saturating_mul(columns) <= features.numbers() {
        by_factorisation(features, targets, ridge)
    } else {
        by_conjugate_gradients(features, targets, ridge)
    }
}

fn by_factorisation(features: &FeatureTable, targets: &[f64], ridge: f64) -> Result<Vec<f64>, LeastSquaresError> {
    let mut normal = features.gram(None);
    for diagonal in 0..features.columns() {
        normal[(diagonal, diagonal)] += ridge;
    }
    let right = targets_by_column(features, targets);
    let solution = normal.llt(Side::Lower).map_err(|_| LeastSquaresError::Singular)?.solve(right);
    Ok(solution.col(0).iter().copied().collect())
}

/// Steps after which conjugate gradients are given up.
const STEPS_MAX: usize = 20_000;
/// Length of what is left of the equations, next to what was there at first, at which a solution counts as found.
const PRECISION: f64 = 1e-13;

/// Conjugate gradients on columns scaled to the same diagonal of the normal equations, so that rare columns move as fast as common ones.
///
/// Source: Nocedal, Wright 2006, *Numerical Optimization*, algorithm 5.3, with the diagonal as the preconditioner.
fn by_conjugate_gradients(features: &FeatureTable, targets: &[f64], ridge: f64) -> Result<Vec<f64>, LeastSquaresError> {
    let diagonal: Vec<f64> = features.squares().iter().map(|square| square + ridge).collect();
    if diagonal.iter().any(|entry| *entry <= 0.0) {
        return Err(LeastSquaresError::Singular);
    }
    let preconditioned =
        |residual: &Mat<f64>| Mat::from_fn(residual.nrows(), 1, |row, _| residual[(row, 0)] / diagonal[row]);
    let mut weights = Mat::<f64>::zeros(features.columns(), 1);
    let mut residual = targets_by_column(features, targets);
    let mut scaled = preconditioned(&residual);
    let mut direction = scaled.clone();
    let mut square = dot(&residual, &scaled);
    let enough = square * PRECISION * PRECISION;
    for _ in 0..STEPS_MAX {
        if square <= enough {
            return Ok(weights.col(0).iter().copied().collect());
        }
        let image = features.loss_and_slopes(&direction, |_, _| 0.0).1 + &direction * Scale(ridge);
        let curvature = dot(&direction, &image);
        if curvature <= 0.0 {
            return Err(LeastSquaresError::Singular);
        }
        let length = square / curvature;
        weights += &direction * Scale(length);
        residual -= image * Scale(length);
        scaled = preconditioned(&residual);
        let next = dot(&residual, &scaled);
        direction = &scaled + direction * Scale(next / square);
        square = next;
    }
    Err(LeastSquaresError::Steps(STEPS_MAX))
}

/// `Xᵀ y`.
fn targets_by_column(features: &FeatureTable, targets: &[f64]) -> Mat<f64> {
    let nothing = Mat::zeros(features.columns(), 1);
    let to_targets = |block: Range<usize>, scores: &mut Mat<f64>| {
        scores.col_mut(0).iter_mut().zip(&targets[block]).for_each(|(score, target)| *score = *target);
        0.0
    };
    features.loss_and_slopes(&nothing, to_targets).1
}

fn dot(left: &Mat<f64>, right: &Mat<f64>) -> f64 {
    left.col(0).iter().zip(right.col(0).iter()).map(|(left, right)| left * right).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry_lists::EntryLists;
    use crate::fixed_sequence::FixedSequence;

    /// Golden weights from `numpy.linalg.solve` (see the script in `testdata/golden/public_fits.py`).
    #[test]
    fn agrees_with_numpy() {
        let features: Vec<f64> = (0..8).flat_map(|row| [1.0, f64::from(row) / 4.0 - 1.0]).collect();
        let targets = [0.3, -0.1, 0.4, 0.2, 0.9, 0.5, 1.1, 1.4];
        let weights = fit(&FeatureTable::packed(features, 2), &targets, 0.1).expect("ridge makes it unique");
        for (found, expected) in weights.iter().zip(GOLDEN) {
            assert!((found - expected).abs() < 1e-12, "{weights:?}");
        }
    }

    const GOLDEN: [f64; 2] = [0.663_119_764_546_072, 0.671_270_092_823_183_2];

    #[test]
    fn a_column_of_zeros_without_ridge_is_an_error() {
        let features = FeatureTable::packed(vec![1.0, 0.0, 2.0, 0.0], 2);
        assert_eq!(fit(&features, &[1.0, 2.0], 0.0), Err(LeastSquaresError::Singular));
        assert_eq!(by_conjugate_gradients(&features, &[1.0, 2.0], 0.0), Err(LeastSquaresError::Singular));
    }

    /// Categories beside an intercept, one of them rare: without the ridge there would be no unique solution.
    #[test]
    fn conjugate_gradients_find_what_the_factorisation_finds() {
        let (mut by_row, mut packed) = (EntryLists::default(), Vec::new());
        let mut sequence = FixedSequence::new(2);
        let targets: Vec<f64> = (0..3000u32)
            .map(|row| {
                let category = if row == 17 { 50 } else { row * row % 50 };
                by_row.push(std::iter::once((category, 1.0)));
                let number = sequence.next_normal();
                packed.extend([1.0, number]);
                0.3 * number + f64::from(category) / 50.0 + sequence.next_normal()
            })
            .collect();
        for centre in [0.0, 0.02] {
            let table = FeatureTable::packed(packed.clone(), 2);
            let table = table.with_listed(by_row.clone(), vec![centre; 51], vec![1.5; 51]);
            let direct = by_factorisation(&table, &targets, 0.001).expect("a solution");
            let found = by_conjugate_gradients(&table, &targets, 0.001).expect("a solution");
            for (found, direct) in found.iter().zip(&direct) {
                assert!((found - direct).abs() < 1e-8, "{found} and {direct}");
            }
        }
    }
}
