//! A simple classifier for a party that has none: logistic or softmax regression under a prior, on the party's own rows.
//!
//! It sees private rows and adds no noise: its votes are for the combiner alone, which protects them.

use reticent_core::schema::Schema;

use super::Auxiliary;
use crate::labelled_rows::LabelledRows;
use crate::model::class_names;
use crate::public_fit::{PublicFitError, fit_of_party};

/// Probabilities of all classes for every auxiliary row, row after row, as the party's own rows suggest them.
///
/// Without any row every class is equally likely. Columns are scaled by the auxiliary rows. Coefficients have a ridge of 1, the intercept a
/// normal prior of standard deviation 3, which hardly draws a base rate and keeps a party that has seen one class only from being sure of it.
///
/// # Errors
/// [`PublicFitError`] when the optimum is not reached.
pub fn vote(schema: &Schema, auxiliary: &Auxiliary, rows: LabelledRows) -> Result<Vec<f64>, PublicFitError> {
    match fit_of_party(schema, auxiliary.encoding(), rows) {
        Ok(model) => Ok(auxiliary.raw_rows().flat_map(|row| model.probabilities(&row)).collect()),
        Err(PublicFitError::NoRows) => {
            let classes = class_names(schema).len();
            Ok(vec![1.0 / classes as f64; auxiliary.rows() * classes])
        }
        Err(error) => Err(error),
    }
}
