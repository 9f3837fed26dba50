//! Sums over matrices, and arrangements of them, that the fit is written in.

use std::borrow::{Borrow, Cow};

use faer::{Mat, MatMut, MatRef};

/// Columns below each other.
pub(super) fn stack(matrix: MatRef<'_, f64>) -> Mat<f64> {
    let rows = matrix.nrows();
    Mat::from_fn(rows * matrix.ncols(), 1, |index, _| matrix[(index % rows, index / rows)])
}

/// The matrix along the diagonal, `times` times.
pub(super) fn repeat(matrix: &Mat<f64>, times: usize) -> Mat<f64> {
    let (rows, columns) = matrix.shape();
    Mat::from_fn(rows * times, columns * times, |row, column| {
        if row / rows == column / columns { matrix[(row % rows, column % columns)] } else { 0.0 }
    })
}

/// Fills what lies above the diagonal of a symmetric matrix.
pub(super) fn mirror_lower_half(mut matrix: MatMut<'_, f64>) {
    let size = matrix.nrows();
    for (row, column) in (0..size).flat_map(|row| (row + 1..size).map(move |column| (row, column))) {
        matrix[(row, column)] = matrix[(column, row)];
    }
}

/// Half the log determinant of `L L^T`.
pub(super) fn log_determinant(factor: MatRef<'_, f64>) -> f64 {
    (0..factor.nrows()).map(|index| factor[(index, index)].ln()).sum()
}

pub(super) fn dot(left: &Mat<f64>, right: &Mat<f64>) -> f64 {
    left.col(0).iter().zip(right.col(0).iter()).map(|(left, right)| left * right).sum()
}

/// A normal part of a posterior.
pub(super) struct NormalPart<'a> {
    pub(super) share: f64,
    pub(super) mean: &'a Mat<f64>,
    pub(super) covariance: Cow<'a, Mat<f64>>,
}

/// Second moments of a posterior of these parts about a point.
///
/// Of parts that are made as they are asked for, one covariance at a time is in memory.
pub(super) fn second_moments<'a>(point: &Mat<f64>, parts: impl IntoIterator<Item: Borrow<NormalPart<'a>>>) -> Mat<f64> {
    parts.into_iter().fold(Mat::zeros(point.nrows(), point.nrows()), |sum, part| {
        let part = part.borrow();
        let apart = part.mean - point;
        sum + (&*part.covariance + &apart * apart.transpose()) * faer::Scale(part.share)
    })
}
