//! Ridge least squares by the normal equations: the non-private yardstick of linear regression.

use faer::linalg::solvers::Solve;
use faer::{MatRef, Side};
use thiserror::Error;

/// Normal equations without a unique solution.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the normal equations are not positive definite; use a ridge above 0")]
pub struct Singular;

/// Weights `w` that minimise `1/2 sum_i (x_i w - y_i)² + ridge/2 ||w||²`.
///
/// `features` is n × `columns`, row after row; `targets` has n values; `ridge` is a total (not multiplied by n).
/// The relative error is about `1e-16` times the condition number of `XᵀX + ridge I`: small where columns have like scales.
///
/// # Errors
/// [`Singular`] when the ridge is too small for the data.
///
/// # Panics
/// When `targets` does not have one value a row.
pub fn fit(features: &[f64], columns: usize, targets: &[f64], ridge: f64) -> Result<Vec<f64>, Singular> {
    let features = MatRef::from_row_major_slice(features, targets.len(), columns);
    let targets = MatRef::from_column_major_slice(targets, targets.len(), 1);
    let mut normal = features.transpose() * features;
    for diagonal in 0..columns {
        normal[(diagonal, diagonal)] += ridge;
    }
    let solution = normal.llt(Side::Lower).map_err(|_| Singular)?.solve(features.transpose() * targets);
    Ok(solution.col(0).iter().copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden weights from `numpy.linalg.solve` (see the script in `testdata/golden/public_fits.py`).
    #[test]
    fn agrees_with_numpy() {
        let features: Vec<f64> = (0..8).flat_map(|row| [1.0, f64::from(row) / 4.0 - 1.0]).collect();
        let targets = [0.3, -0.1, 0.4, 0.2, 0.9, 0.5, 1.1, 1.4];
        let weights = fit(&features, 2, &targets, 0.1).expect("ridge makes it unique");
        for (found, expected) in weights.iter().zip(GOLDEN) {
            assert!((found - expected).abs() < 1e-12, "{weights:?}");
        }
    }

    const GOLDEN: [f64; 2] = [0.663_119_764_546_072, 0.671_270_092_823_183_2];

    #[test]
    fn a_column_of_zeros_without_ridge_is_an_error() {
        assert_eq!(fit(&[1.0, 0.0, 2.0, 0.0], 2, &[1.0, 2.0], 0.0), Err(Singular));
    }
}
