//! A public integer matrix with one row for each private label.

use std::sync::OnceLock;

use thiserror::Error;

use crate::spectral_bound::largest_eigenvalue_bound;

/// Largest coordinate in magnitude, and bound on the L2 norm of a row: `2^20`.
pub const MATRIX_NORM_MAX: i32 = 1 << 20;

/// Rows of integers that a sum of labels is weighted with, and what they say about sensitivity.
///
/// The bounds are computed from the integers when the matrix is made: nobody states them.
#[derive(Clone)]
pub struct PublicMatrix {
    columns: usize,
    values: Vec<i32>,
    row_norm_square: u64,
    /// Sum of all squares: the trace of the Gram matrix.
    trace: u128,
    /// Found when it is first asked for: only party adjacency needs it.
    eigenvalue_bound: OnceLock<u64>,
}

impl PartialEq for PublicMatrix {
    fn eq(&self, other: &Self) -> bool {
        (self.columns, &self.values) == (other.columns, &other.values)
    }
}

impl Eq for PublicMatrix {}

/// Integers that do not make a matrix within the bounds.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MatrixError {
    /// No column, or values that do not fill whole rows.
    #[error("a matrix with {columns} columns cannot be made of {values} numbers")]
    Shape {
        /// Columns.
        columns: usize,
        /// Numbers.
        values: usize,
    },
    /// A row that is too long.
    #[error("row {row} has an L2 norm above {MATRIX_NORM_MAX}")]
    Norm {
        /// Its place, counted from 1. Rows of a public matrix are public.
        row: usize,
    },
    /// So many rows that the bound of an eigenvalue does not fit 64 bits.
    #[error("the sum of all squares of the matrix does not fit 64 bits; take fewer than 2^23 rows")]
    Size,
}

impl PublicMatrix {
    /// Takes integers, row after row.
    ///
    /// # Errors
    /// [`MatrixError`] says which bound does not hold; never [`MatrixError::Size`].
    pub fn new(columns: usize, values: Vec<i32>) -> Result<Self, MatrixError> {
        if columns == 0 || !values.len().is_multiple_of(columns) {
            return Err(MatrixError::Shape { columns, values: values.len() });
        }
        let bound = u64::from(MATRIX_NORM_MAX.unsigned_abs()).pow(2);
        let (mut largest, mut total) = (0u64, 0u128);
        for (row, values) in values.chunks_exact(columns).enumerate() {
            let square: u128 = values.iter().map(|value| u128::from(value.unsigned_abs()).pow(2)).sum();
            match u64::try_from(square) {
                Ok(square) if square <= bound => largest = largest.max(square),
                Ok(_) | Err(_) => return Err(MatrixError::Norm { row: row + 1 }),
            }
            total += square;
        }
        Ok(Self { columns, values, row_norm_square: largest, trace: total, eigenvalue_bound: OnceLock::new() })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// Number of columns, at least 1.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Integers of one row.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[i32] {
        &self.values[row * self.columns..(row + 1) * self.columns]
    }

    /// All integers, row after row.
    #[must_use]
    pub fn values(&self) -> &[i32] {
        &self.values
    }

    /// Square of the largest L2 norm of a row.
    #[must_use]
    pub fn row_norm_square(&self) -> u64 {
        self.row_norm_square
    }

    /// The sum of squares of each column, with a row of the largest norm that is allowed as 1.
    #[must_use]
    pub fn column_squares(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.columns];
        for row in self.values.chunks_exact(self.columns) {
            for (square, value) in squares.iter_mut().zip(row) {
                *square += f64::from(*value).powi(2);
            }
        }
        squares.iter().map(|square| square / f64::from(MATRIX_NORM_MAX).powi(2)).collect()
    }

    /// An integer that is certainly at least the largest eigenvalue of `matrixᵀ matrix`, and at least 1.
    ///
    /// Source: `spectral_bound.rs`, row F90 of `docs/formulas.md`.
    ///
    /// # Errors
    /// [`MatrixError::Size`] when the sum of all squares does not fit 64 bits.
    pub fn eigenvalue_bound(&self) -> Result<u64, MatrixError> {
        let trace = u64::try_from(self.trace).map_err(|_| MatrixError::Size)?;
        Ok(*self.eigenvalue_bound.get_or_init(|| largest_eigenvalue_bound(self.columns, &self.values, trace)))
    }
}

impl std::fmt::Debug for PublicMatrix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "PublicMatrix({} x {})", self.rows(), self.columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_squares_in_units_of_the_longest_row() {
        let half = MATRIX_NORM_MAX / 2;
        let matrix = PublicMatrix::new(2, vec![half, 0, -half, MATRIX_NORM_MAX / 4, half, 0]).expect("short rows");
        assert_eq!(matrix.column_squares(), [0.75, 0.0625]);
    }

    #[test]
    fn equal_matrices_have_equal_columns_and_integers() {
        let matrix = |columns, values: &[i32]| PublicMatrix::new(columns, values.to_vec()).expect("short rows");
        assert!(matrix(2, &[3, 4]) == matrix(2, &[3, 4]));
        assert!(matrix(2, &[3, 4]) != matrix(2, &[3, 5]) && matrix(2, &[3, 4]) != matrix(1, &[3, 4]));
        assert_eq!(format!("{:?}", matrix(2, &[3, 4])), "PublicMatrix(1 x 2)");
    }

    #[test]
    fn bounds_come_from_the_integers() {
        let matrix = PublicMatrix::new(2, vec![3, 4, 0, -5, 1, 0]).expect("short rows");
        assert_eq!((matrix.rows(), matrix.row_norm_square()), (3, 25));
        assert_eq!(matrix.row(1), [0, -5]);
        // Eigenvalues of ((10, 12), (12, 41)) are 5.9 and 45.1.
        assert!((46..=51).contains(&matrix.eigenvalue_bound().expect("small")));
    }

    #[test]
    fn rows_past_the_bound_are_refused_by_place() {
        assert_eq!(PublicMatrix::new(1, vec![0, i32::MIN]), Err(MatrixError::Norm { row: 2 }));
        assert_eq!(PublicMatrix::new(2, vec![MATRIX_NORM_MAX, 1]), Err(MatrixError::Norm { row: 1 }));
        assert_eq!(PublicMatrix::new(2, vec![1]), Err(MatrixError::Shape { columns: 2, values: 1 }));
        assert!(PublicMatrix::new(2, vec![MATRIX_NORM_MAX, 0]).is_ok());
    }
}
