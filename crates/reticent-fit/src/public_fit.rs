//! Logistic regression without privacy, on rows that are declared public: the yardstick, and a start for a private fit.

use std::sync::Arc;

use reticent_core::encoding::{Coding, Column, Encoding, NormRule};
use reticent_core::schema::Schema;
use reticent_math::logistic_newton::{self, NewtonError};

use crate::method::Fitted;
use crate::model::{Model, transformed_bounds};

/// Ridge on the summed loss, in unit-scaled columns: makes collinear one-hot columns unique, too little to matter otherwise.
const RIDGE: f64 = 0.01;

/// Fits raw columns ([`Coding::raw_columns`]) and labels (class 0 or 1) to full precision. The model has no certificate.
///
/// # Errors
/// [`NewtonError`] when the optimum is not reached.
pub fn fit<'a>(schema: &Schema, rows: impl Iterator<Item = (&'a [f64], f64)>) -> Result<Model, NewtonError> {
    let coding = Coding::of(schema);
    let to_unit: Vec<(f64, f64)> = coding
        .columns()
        .iter()
        .map(|column| match column {
            Column::Linear { feature } | Column::SymLog { feature } => transformed_bounds(schema, *feature, column),
            Column::Intercept | Column::Category { .. } => (0.0, 1.0),
        })
        .collect();
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for (row, label) in rows {
        features.extend(row.iter().zip(&to_unit).map(|(value, (low, high))| (value - low) / (high - low)));
        labels.push(label);
    }
    let weights = logistic_newton::fit(&features, to_unit.len(), &labels, RIDGE)?;
    let encoding = Arc::new(Encoding::plain(coding, NormRule::OwnNorm));
    Ok(Model::from_weights(schema, &Fitted { encoding, weights, covariance: None }, None))
}
