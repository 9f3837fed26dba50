//! The public rows that parties vote on.

use std::sync::Arc;

use reticent_core::coding::{Coding, Column};
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::public_matrix::{MATRIX_NORM_MAX, PublicMatrix};
use reticent_core::query::MINIMUM_ROWS_MAX;
use reticent_core::schema::Schema;
use thiserror::Error;

use crate::model::transformed_bounds;

/// Columns of a smaller standard deviation, next to their bounds, are scaled as if it were this: a rare category must not
/// make a row long.
const DEVIATION_MIN: f64 = 0.05;

/// Auxiliary rows with columns centred and scaled by their own mean and standard deviation: all of it is public.
#[derive(Clone, Debug)]
pub struct Auxiliary {
    encoding: Arc<Encoding>,
    bounds: Vec<(f64, f64)>,
    /// Standardised columns, the intercept first, row after row.
    features: Vec<f64>,
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
    /// Takes raw columns ([`Coding::raw_columns`]) of the auxiliary rows, and the fingerprint of their file.
    ///
    /// # Errors
    /// [`AuxiliaryError`] when there are too few or too many.
    pub fn new<'a>(
        schema: &Schema,
        rows: impl Iterator<Item = &'a [f64]>,
        fingerprint: String,
    ) -> Result<Self, AuxiliaryError> {
        let coding = Coding::of(schema);
        let columns = coding.columns().len();
        let bounds: Vec<(f64, f64)> = coding
            .columns()
            .iter()
            .map(|column| match column {
                Column::Linear { feature } | Column::SymLog { feature } => transformed_bounds(schema, *feature, column),
                Column::Intercept | Column::Category { .. } => (0.0, 1.0),
            })
            .collect();
        let mut features: Vec<f64> = rows.flat_map(|row| to_unit(row, &bounds).collect::<Vec<_>>()).collect();
        let count = features.len() / columns;
        if !(2..=MINIMUM_ROWS_MAX as usize).contains(&count) {
            return Err(AuxiliaryError::Rows(count));
        }
        let (mut centre, mut scale) = (vec![0.0; columns], vec![1.0; columns]);
        for column in 1..columns {
            let values = || features.iter().skip(column).step_by(columns);
            let mean = values().sum::<f64>() / count as f64;
            let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count as f64).sqrt();
            centre[column] = mean;
            // A constant column says nothing about votes.
            scale[column] = if deviation > 1e-9 { 1.0 / deviation.max(DEVIATION_MIN) } else { 0.0 };
        }
        for (place, value) in features.iter_mut().enumerate() {
            *value = (*value - centre[place % columns]) * scale[place % columns];
        }
        let encoding = Arc::new(Encoding::new(coding, centre, scale, NormRule::OwnNorm));
        Ok(Self { encoding, bounds, features, fingerprint })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.features.len() / self.columns()
    }

    /// Number of columns, the intercept first.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.bounds.len()
    }

    /// Fingerprint of the file.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Standardised columns, row after row.
    #[must_use]
    pub fn features(&self) -> &[f64] {
        &self.features
    }

    /// The map from rows to standardised columns.
    #[must_use]
    pub fn encoding(&self) -> &Arc<Encoding> {
        &self.encoding
    }

    /// Raw columns of the auxiliary rows, but for rounding.
    pub(super) fn raw_rows(&self) -> impl Iterator<Item = Vec<f64>> + '_ {
        self.features.chunks_exact(self.columns()).map(|row| {
            let shapes = self.encoding.centre().iter().zip(self.encoding.scale()).zip(&self.bounds);
            // A constant column has a scale of 0, and is its centre.
            row.iter()
                .zip(shapes)
                .map(|(value, ((centre, scale), (low, high)))| {
                    let in_bounds = if *scale > 0.0 { centre + value / scale } else { *centre };
                    low + (high - low) * in_bounds
                })
                .collect()
        })
    }

    /// The largest norm of a standardised row: at least 1, the intercept.
    #[must_use]
    pub fn largest_norm(&self) -> f64 {
        let square = |row: &[f64]| row.iter().map(|value| value * value).sum::<f64>();
        self.features.chunks_exact(self.columns()).map(square).fold(1.0, f64::max).sqrt()
    }

    /// Standardised rows over their largest norm, in steps of `2^-20`: the rows of norm at most 1 that the papers ask for.
    pub(super) fn unit_rows(&self) -> PublicMatrix {
        integer_rows(self.columns(), &self.features)
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

fn to_unit<'a>(raw: &'a [f64], bounds: &'a [(f64, f64)]) -> impl Iterator<Item = f64> + 'a {
    raw.iter().zip(bounds).map(|(value, (low, high))| (value - low) / (high - low))
}
