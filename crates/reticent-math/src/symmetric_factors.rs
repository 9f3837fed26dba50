//! Factors of symmetric matrices that rounding, or many values that are the same, makes hard for the algebra: of public features of which some
//! go together almost exactly, as a timestamp within wide bounds and the intercept, or of hundreds of categories that are equally rare.

use faer::linalg::solvers::{Llt, SelfAdjointEigen};
use faer::{Mat, MatRef, Side};

/// Shares of a matrix that are nothing beside its rounding, the least first.
const NEXT_TO_NOTHING: std::ops::RangeInclusive<i32> = -14..=-8;

/// The Cholesky factor; where rounding has made the matrix indefinite, of one whose diagonal is longer by a share of itself, by the
/// least of `1e-14` to `1e-8` that is enough. What only so small a part of the diagonal tells apart is not told by the matrix either.
///
/// `None` when more is missing, or a number is not finite.
pub(crate) fn cholesky(matrix: &Mat<f64>) -> Option<Llt<f64>> {
    let exact = matrix.llt(Side::Lower).ok();
    exact.or_else(|| {
        NEXT_TO_NOTHING.into_iter().find_map(|power| {
            with_diagonal(matrix.as_ref(), |_, value| value * (1.0 + 10f64.powi(power))).llt(Side::Lower).ok()
        })
    })
}

/// Eigenvalues, ascending, and eigenvectors; where their iteration does not end, as it may not with many equal ones, of a matrix whose diagonal
/// differs from the given one by next to nothing, by as much as is needed, and in each place by another amount.
///
/// `None` when that does not end either.
pub(crate) fn eigen(matrix: MatRef<'_, f64>) -> Option<SelfAdjointEigen<f64>> {
    let exact = matrix.self_adjoint_eigen(Side::Lower).ok();
    exact.or_else(|| {
        let largest =
            matrix.diagonal().column_vector().iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        NEXT_TO_NOTHING.into_iter().find_map(|power| {
            // Multiples of the golden ratio modulo 1 lie apart from each other.
            let apart = |place: usize| (place as f64 * 0.618_033_988_749_895).fract();
            let shifted = |place, value| value + largest * 10f64.powi(power) * apart(place);
            with_diagonal(matrix, shifted).self_adjoint_eigen(Side::Lower).ok()
        })
    })
}

fn with_diagonal(matrix: MatRef<'_, f64>, of: impl Fn(usize, f64) -> f64) -> Mat<f64> {
    let mut changed = matrix.to_owned();
    for place in 0..matrix.nrows() {
        changed[(place, place)] = of(place, matrix[(place, place)]);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use faer::linalg::solvers::Solve;
    use faer::mat;

    use crate::fixed_sequence::FixedSequence;

    #[test]
    fn columns_that_go_together_have_a_factor_and_opposite_ones_have_none() {
        // Twice the same column but for rounding that went the wrong way.
        let twice = mat![[1.0, 1.0 + 1e-13], [1.0 + 1e-13, 1.0]];
        assert!(twice.llt(Side::Lower).is_err());
        let solved = cholesky(&twice).expect("nearly positive").solve(&mat![[2.0], [2.0]]);
        let sum = solved[(0, 0)] + solved[(1, 0)];
        assert!((sum - 2.0).abs() < 1e-6, "{solved:?}");
        let usual = mat![[4.0, 1.0], [1.0, 3.0]];
        let solved = cholesky(&usual).expect("positive").solve(&mat![[5.0], [4.0]]);
        assert!((solved[(0, 0)] - 1.0).abs() < 1e-14, "{solved:?}");
        for wrong in [mat![[1.0, 2.0], [2.0, 1.0]], mat![[f64::NAN, 0.0], [0.0, 1.0]], mat![[-1.0, 0.0], [0.0, 1.0]]] {
            assert!(cholesky(&wrong).is_none(), "{wrong:?}");
        }
    }

    /// Products of an intercept and 450 categories of 3000 rows, a few frequent, most occurring once, twice or never: the plain iteration does not
    /// end for most of such tables; for which, depends on the machine.
    #[test]
    fn equally_rare_categories_have_eigenvectors() {
        let mut sequence = FixedSequence::new(1);
        for table in 0..2 {
            let mut counts = vec![0.0; 450];
            for _ in 0..3000 {
                counts[((1.0 / sequence.next_share().max(1e-9)) as usize).min(450) - 1] += 1.0;
            }
            let gram = Mat::from_fn(451, 451, |row, column| match (row, column) {
                (0, 0) => 3000.0,
                (0, place) | (place, 0) => counts[place - 1],
                _ if row == column => counts[row - 1],
                _ => 0.0,
            });
            let eigen = eigen(gram.as_ref()).expect("finite");
            let again = eigen.U() * eigen.S() * eigen.U().transpose();
            assert!((again - &gram).norm_max() < 1e-8 * 3000.0, "{table}");
        }
    }
}
