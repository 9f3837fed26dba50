//! Products of matrices in loops over rows: on one thread where threads would wait for each other, and nothing left that slows down what follows.

use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::mat::AsMatRef;
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::vector_registers::empty_upper_halves;

/// `left · right`, for a loop of exponentials to follow at its full speed.
pub(crate) fn product(
    left: impl AsMatRef<T = f64, Rows = usize, Cols = usize>,
    right: impl AsMatRef<T = f64, Rows = usize, Cols = usize>,
) -> Mat<f64> {
    let mut product = Mat::zeros(left.as_mat_ref().nrows(), right.as_mat_ref().ncols());
    add_product(product.as_mut(), left, right);
    product
}

/// Adds `left · right`.
pub(crate) fn add_product(
    sum: MatMut<'_, f64>,
    left: impl AsMatRef<T = f64, Rows = usize, Cols = usize>,
    right: impl AsMatRef<T = f64, Rows = usize, Cols = usize>,
) {
    let (left, right) = (left.as_mat_ref(), right.as_mat_ref());
    matmul(sum, Accum::Add, left, right, 1.0, threads_for(left, right));
    empty_upper_halves();
}

/// Adds the lower half of `left · right`, with its diagonal, where that is symmetric.
pub(crate) fn add_lower_half(sum: MatMut<'_, f64>, left: MatRef<'_, f64>, right: MatRef<'_, f64>) {
    let (half, whole) = (BlockStructure::TriangularLower, BlockStructure::Rectangular);
    triangular::matmul(sum, half, Accum::Add, left, whole, right, whole, 1.0, threads_for(left, right));
    empty_upper_halves();
}

/// Several threads share a product where all sides are long and no other threads are at work on other blocks of rows.
fn threads_for(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Par {
    let sides = [left.nrows(), left.ncols(), right.ncols()];
    let is_shared = rayon::current_thread_index().is_none() && sides.iter().all(|side| *side >= SHARED_SIDE_MIN);
    if is_shared { faer::get_global_parallelism() } else { Par::Seq }
}

/// The threads of a product meet after every few hundred terms of its sums. Between two meetings there is work enough where sides are this long;
/// where one is shorter, as with a few classes, they spend longer on waiting than one thread takes for all of it.
const SHARED_SIDE_MIN: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_sequence::FixedSequence;

    #[test]
    fn short_and_long_sides_give_the_sums_of_products() {
        let mut sequence = FixedSequence::new(8);
        for (rows, terms, columns) in [(1, 1, 1), (300, 7, 2), (2, 5000, 3), (150, 140, 130)] {
            let left = Mat::from_fn(rows, terms, |_, _| sequence.next_normal());
            let right = Mat::from_fn(terms, columns, |_, _| sequence.next_normal());
            let found = product(&left, right.as_ref());
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let sum: f64 = (0..terms).map(|term| left[(row, term)] * right[(term, column)]).sum();
                assert!((found[(row, column)] - sum).abs() < 1e-10 * (terms as f64).sqrt(), "{row} {column}");
            }
            let mut half = Mat::zeros(rows, rows);
            add_lower_half(half.as_mut(), left.as_ref(), left.transpose());
            let whole = product(&left, left.transpose());
            for (row, column) in (0..rows).flat_map(|row| (0..=row).map(move |column| (row, column))) {
                assert!((half[(row, column)] - whole[(row, column)]).abs() < 1e-10 * (terms as f64), "{row} {column}");
            }
        }
    }
}
