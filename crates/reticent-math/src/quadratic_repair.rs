//! Minimisers of noisy quadratics: what the Functional Mechanism does with its noisy coefficients.
//!
//! ```text
//!   f(w) = w' A w - 2 b'w,   A symmetric and perhaps not positive definite, because it is noisy
//! ```
//! Without repair such an `f` may have no minimum. Two repairs, both functions of the released values alone, so that they cost
//! no privacy; drawing the noise again until `A` is positive definite does cost some, and is not offered.
//!
//! Source: Zhang, Zhang, Xiao, Yang, Winslett 2012 (VLDB 5(11)), section 6: regularisation by 4 standard deviations of the
//! noise, then spectral trimming of what is still not positive.

use faer::Mat;
use thiserror::Error;

use crate::gram_regression::symmetric;
use crate::symmetric_factors::eigen;

/// How a quadratic that may be indefinite is made to have a minimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Repair {
    /// Adds this times `||w - w0||²`, then trims what is still not positive.
    Regularise(f64),
    /// Removes the directions whose eigenvalue is not above the given floor; the result has no part in them.
    Trim {
        /// Zero in the paper.
        floor: f64,
    },
}

/// A minimiser, and how much was repaired.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairedMinimum {
    /// The minimiser in the directions that were kept, the centre in the others.
    pub weights: Vec<f64>,
    /// Directions removed.
    pub trimmed: usize,
}

/// A quadratic that cannot be repaired.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RepairError {
    /// Lengths that do not belong together, or values that are not finite.
    #[error("a quadratic of {columns} variables needs {expected} finite entries in its upper triangle; found {found}")]
    Shape {
        /// Variables, by the length of the linear part.
        columns: usize,
        /// Entries that belong to it.
        expected: usize,
        /// Entries found.
        found: usize,
    },
    /// The eigenvalue iteration did not end.
    #[error("no eigenvalues were found; the matrix holds values out of range")]
    Eigenvalues,
}

/// Minimiser of `w' A w - 2 b'w` after the repair; `upper` is the upper triangle of `A` row after row, `centre` is `w0`, zero
/// in the paper.
///
/// ```text
///   A + ridge I = V diag(l) V',   w = w0 + sum over l_k > floor of v_k (v_k'(b - A w0)) / l_k
/// ```
/// # Errors
/// [`RepairError`] when lengths or values are not those of a quadratic.
pub fn minimise(upper: &[f64], linear: &[f64], centre: &[f64], repair: Repair) -> Result<RepairedMinimum, RepairError> {
    let columns = linear.len();
    let expected = columns * (columns + 1) / 2;
    let finite = upper.iter().chain(linear).chain(centre).all(|value| value.is_finite());
    if columns == 0 || upper.len() != expected || centre.len() != columns || !finite {
        return Err(RepairError::Shape { columns, expected, found: upper.len() });
    }
    let (ridge, floor) = match repair {
        Repair::Regularise(ridge) => (ridge, 0.0),
        Repair::Trim { floor } => (0.0, floor),
    };
    let mut matrix = symmetric(upper, columns);
    let largest = matrix.norm_max();
    let column = |values: &[f64]| Mat::from_fn(columns, 1, |k, _| values[k]);
    let centre = column(centre);
    let linear = column(linear) - &matrix * &centre;
    (0..columns).for_each(|k| matrix[(k, k)] += ridge);
    let eigen = eigen(matrix.as_ref()).ok_or(RepairError::Eigenvalues)?;
    // An eigenvalue that is zero in exact arithmetic comes out as rounding error of either sign.
    let floor = floor.max(largest * columns as f64 * f64::EPSILON);
    let projected = eigen.U().transpose() * &linear;
    let mut trimmed = 0;
    let inner = Mat::from_fn(columns, 1, |k, _| {
        let value = eigen.S().column_vector()[k];
        if value > floor {
            projected[(k, 0)] / value
        } else {
            trimmed += 1;
            0.0
        }
    });
    let weights = eigen.U() * &inner + &centre;
    Ok(RepairedMinimum { weights: weights.col(0).iter().copied().collect(), trimmed })
}

#[cfg(test)]
mod tests {
    use super::*;

    // From testdata/golden/quadratic_repair.py.
    const UPPER: [f64; 6] = [4.0, 1.0, 0.5, -1.0, 0.25, 2.0];
    const LINEAR: [f64; 3] = [1.0, 2.0, -0.5];

    const GOLDEN_TRIM: [f64; 3] = [0.357_794_897_454_438_2, 0.052_350_026_433_457_535, -0.302_787_730_291_999_35];
    const GOLDEN_HALF: [f64; 3] = [0.311_392_968_686_537_04, 0.047_078_726_246_453, -0.232_422_668_461_318_82];
    const GOLDEN_THREE: [f64; 3] = [0.008_746_355_685_131_178, 1.014_577_259_475_219, -0.151_603_498_542_273_98];

    #[test]
    fn a_definite_quadratic_is_only_solved() {
        let found = minimise(&[2.0, 0.5, 1.0], &[1.0, -1.0], &[0.0; 2], Repair::Trim { floor: 0.0 }).expect("finite");
        assert_eq!(found.trimmed, 0);
        // By hand: [2 .5; .5 1] w = (1, -1).
        let expected = [1.5 / 1.75, -2.5 / 1.75];
        for (found, expected) in found.weights.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn an_indefinite_quadratic_agrees_with_the_script() {
        for (repair, trimmed, expected) in [
            (Repair::Trim { floor: 0.0 }, 1, GOLDEN_TRIM),
            (Repair::Regularise(0.5), 1, GOLDEN_HALF),
            (Repair::Regularise(3.0), 0, GOLDEN_THREE),
        ] {
            let found = minimise(&UPPER, &LINEAR, &[0.0; 3], repair).expect("finite");
            assert_eq!(found.trimmed, trimmed);
            for (found, expected) in found.weights.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-10, "{repair:?}: {found} {expected}");
            }
        }
    }

    #[test]
    fn a_direction_without_curvature_gets_no_weight() {
        let found = minimise(&[0.0, 0.0, 1.0], &[5.0, 1.0], &[0.0; 2], Repair::Trim { floor: 0.0 }).expect("finite");
        assert_eq!((found.trimmed, found.weights), (1, vec![0.0, 1.0]));
        let nothing = minimise(&[-1.0], &[5.0], &[0.0], Repair::Regularise(0.5)).expect("finite");
        assert_eq!((nothing.trimmed, nothing.weights), (1, vec![0.0]));
    }

    #[test]
    fn what_is_not_known_stays_at_the_centre() {
        let trimmed =
            minimise(&[0.0, 0.0, 1.0], &[5.0, 1.0], &[7.0, 3.0], Repair::Trim { floor: 0.0 }).expect("finite");
        assert_eq!(trimmed.weights, [7.0, 1.0]);
        // (1 + 4) w = 5 + 4 · 10.
        let pulled = minimise(&[1.0], &[5.0], &[10.0], Repair::Regularise(4.0)).expect("finite");
        assert!((pulled.weights[0] - 9.0).abs() < 1e-12);
    }

    #[test]
    fn lengths_and_values_are_checked() {
        assert!(minimise(&[1.0, 2.0], &[1.0, 1.0], &[0.0; 2], Repair::Regularise(1.0)).is_err());
        assert!(minimise(&[f64::NAN], &[1.0], &[0.0], Repair::Regularise(1.0)).is_err());
        assert!(minimise(&[], &[], &[], Repair::Regularise(1.0)).is_err());
    }
}
