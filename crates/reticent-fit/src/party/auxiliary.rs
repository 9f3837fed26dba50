//! The public rows that parties vote on.

use std::sync::Arc;

use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::query::MINIMUM_ROWS_MAX;
use reticent_core::schema::Schema;
use thiserror::Error;

use crate::unit_rows::{UnitRow, UnitRows};

/// Columns of a smaller standard deviation, next to their bounds, are scaled as if it were this: a rare category must not
/// make a row long.
const DEVIATION_MIN: f64 = 0.05;

/// Auxiliary rows, and how their columns are centred and scaled by their own mean and standard deviation: all of it is public.
#[derive(Clone)]
pub struct Auxiliary {
    encoding: Arc<Encoding>,
    rows: Arc<UnitRows>,
    fingerprint: String,
}

/// Auxiliary rows that cannot be voted on.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum AuxiliaryError {
    /// Too few or too many.
    #[error("the auxiliary file has {0} rows; between 2 and {MINIMUM_ROWS_MAX} can be voted on")]
    Rows(usize),
}

impl Auxiliary {
    /// Takes the rows, and the fingerprint of their file.
    ///
    /// # Errors
    /// [`AuxiliaryError`] when there are too few or too many.
    pub fn new(schema: &Schema, rows: UnitRows, fingerprint: String) -> Result<Self, AuxiliaryError> {
        if !(2..=MINIMUM_ROWS_MAX as usize).contains(&rows.len()) {
            return Err(AuxiliaryError::Rows(rows.len()));
        }
        // A constant column says nothing about votes.
        let scale = |deviation: f64| if deviation > 1e-9 { 1.0 / deviation.max(DEVIATION_MIN) } else { 0.0 };
        let (mut centre, deviations): (Vec<f64>, Vec<f64>) = rows.moments().into_iter().unzip();
        let mut scale: Vec<f64> = deviations.into_iter().map(scale).collect();
        (centre[0], scale[0]) = (0.0, 1.0);
        let encoding = Arc::new(Encoding::new(Coding::of(schema), centre, scale, NormRule::OwnNorm));
        Ok(Self { encoding, rows: Arc::new(rows), fingerprint })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Number of columns, the intercept first.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.rows.columns()
    }

    /// Fingerprint of the file.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Standardised columns, the intercept first, row after row: made anew, as many numbers as rows times columns.
    #[must_use]
    pub fn features(&self) -> Vec<f64> {
        self.rows.written_out(self.encoding.centre(), self.encoding.scale())
    }

    /// The map from rows to standardised columns.
    #[must_use]
    pub fn encoding(&self) -> &Arc<Encoding> {
        &self.encoding
    }

    /// The rows in the user's units, but for rounding.
    pub(super) fn raw_rows(&self) -> impl Iterator<Item = UnitRow<'_>> {
        self.rows.rows()
    }

    /// The largest norm of a standardised row: at least 1, the intercept.
    #[must_use]
    pub fn largest_norm(&self) -> f64 {
        let square = |row: &[f64]| row.iter().map(|value| value * value).sum::<f64>();
        self.features().chunks_exact(self.columns()).map(square).fold(1.0, f64::max).sqrt()
    }

    /// Standardised rows over their largest norm, in steps of `2^-20`: the rows of norm at most 1 that the papers ask for.
    pub(super) fn unit_rows(&self) -> PublicMatrix {
        integer_rows(self.columns(), &self.features())
    }
}

/// Rows over their largest norm as integers, truncated toward zero.
pub(super) fn integer_rows(columns: usize, values: &[f64]) -> PublicMatrix {
    let square = |row: &[f64]| row.iter().map(|value| value * value).sum::<f64>();
    let longest = values.chunks_exact(columns).map(square).fold(0.0, f64::max).sqrt();
    // The last bits are left for the rounding of the norm itself.
    let scale = f64::from(MATRIX_NORM_MAX) * (1.0 - 1e-9) / longest.max(f64::MIN_POSITIVE);
    let integers = values.iter().map(|value| (value * scale) as i32).collect();
    PublicMatrix::new(columns, integers).expect("rows were scaled below the bound, and there are at most 2^20 of them")
}
