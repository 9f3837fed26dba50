//! A simple classifier for a party that has none: logistic or softmax regression with a ridge, on the party's own rows.
//!
//! It sees private rows and adds no noise: its votes are for the combiner alone, which protects them.

use reticent_core::query::outputs;
use reticent_math::soft_label_regression::{SoftLabelRegression, probabilities};

use super::Auxiliary;

/// Ridge on the summed loss, in standardised columns: a prior standard deviation of 1 an effect.
const RIDGE: f64 = 1.0;

/// Probabilities of all classes for every auxiliary row, row after row, as the party's own rows suggest them.
///
/// `rows` are raw columns with the index of their class. Without any row every class is equally likely.
#[must_use]
pub fn vote<'a>(auxiliary: &Auxiliary, classes: usize, rows: impl Iterator<Item = (&'a [f64], usize)>) -> Vec<f64> {
    let outputs = outputs(classes as u32);
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    let mut count = 0;
    for (row, class) in rows {
        features.extend(auxiliary.standardise(row));
        match outputs {
            1 => labels.push(class as f64),
            _ => labels.extend((0..classes).map(|other| f64::from(u8::from(other == class)))),
        }
        count += 1;
    }
    if count == 0 {
        return vec![1.0 / classes as f64; auxiliary.rows() * classes];
    }
    let columns = auxiliary.columns();
    let weights = SoftLabelRegression::new(&features, columns, outputs, RIDGE / f64::from(count))
        .expect("standardised columns are finite, and the ridge is above 0")
        .minimise(&labels, 1e-6);
    let score =
        |weights: &[f64], row: &[f64]| weights.iter().zip(row).map(|(weight, value)| weight * value).sum::<f64>();
    let rows = auxiliary.features().chunks_exact(columns);
    rows.flat_map(|row| {
        let scores: Vec<f64> = weights.chunks_exact(columns).map(|weights| score(weights, row)).collect();
        probabilities(&scores)
    })
    .collect()
}
