//! Directions along which public rows vary equally.

use faer::{Mat, MatRef};

use crate::symmetric_factors::eigen;

/// Directions whose share of the largest eigenvalue is below this are left out: nothing in the rows varies along them.
const RANK_TOLERANCE: f64 = 1e-9;

/// `X U diag(1/sqrt(s))` for `XᵀX / n = U diag(s) Uᵀ`: n × rank, with `n` times the identity as its Gram matrix.
///
/// `None` when a value is not finite or all are zero.
#[must_use]
pub fn whitened(features: MatRef<'_, f64>) -> Option<Mat<f64>> {
    let gram = features.transpose() * features * faer::Scale(1.0 / features.nrows().max(1) as f64);
    if !gram.norm_l2().is_finite() {
        return None;
    }
    let eigen = eigen(gram.as_ref())?;
    let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
    let floor = values.iter().copied().fold(0.0, f64::max) * RANK_TOLERANCE;
    let kept: Vec<usize> = (0..values.len()).filter(|place| values[*place] > floor).collect();
    if kept.is_empty() {
        return None;
    }
    let scaled = |column, place: usize| eigen.U()[(column, kept[place])] / values[kept[place]].sqrt();
    Some(features * Mat::from_fn(features.ncols(), kept.len(), scaled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whitened_rows_vary_equally_in_as_many_directions_as_there_are() {
        // The third column is the sum of the others.
        let features = Mat::from_fn(50, 3, |row, column| {
            let (one, other) = ((row as f64).sin(), (row as f64 * 1.7).cos() * 30.0);
            [one, other, one + other][column]
        });
        let white = whitened(features.as_ref()).expect("finite");
        assert_eq!(white.shape(), (50, 2));
        let gram = white.transpose() * &white;
        for row in 0..2 {
            for column in 0..2 {
                let expected = if row == column { 50.0 } else { 0.0 };
                assert!((gram[(row, column)] - expected).abs() < 1e-8, "{gram:?}");
            }
        }
        assert!(whitened(Mat::<f64>::zeros(3, 2).as_ref()).is_none());
        assert!(whitened(Mat::from_fn(2, 2, |_, _| f64::NAN).as_ref()).is_none());
    }
}
