//! Regression without privacy, on rows that are declared public: the yardstick, and a start for a private fit.

use std::sync::Arc;

use reticent_core::coding::{Coding, Column};
use reticent_core::encoding::{CodeRange, Encoding, NormRule};
use reticent_core::schema::{Schema, TargetKind};
use reticent_math::feature_table::FeatureTable;
use reticent_math::lbfgs::LbfgsError;
use reticent_math::least_squares::{self, LeastSquaresError};
use reticent_math::logistic_newton::{self, NewtonError};
use reticent_math::softmax_regression;
use thiserror::Error;

use crate::labelled_rows::LabelledRows;
use crate::method::outputs;
use crate::model::Model;
use crate::prepared_fit::Fitted;
use crate::unit_rows::Solvable;

/// Ridge on the summed loss, in columns of values from 0 to 1: makes collinear one-hot columns unique, too little to matter otherwise.
const RIDGE: f64 = 0.001;
/// Ridge of a party, and the least of a start, in columns of variance 1: the weights have a normal prior of standard deviation 1.
const START_RIDGE: f64 = 1.0;
/// With many columns the prior is narrower, so that it expects this variance of a score at most: a start from fewer rows than columns would
/// else be sure of everything, and a private fit cannot take back what a hundred columns have learnt by heart.
const START_SCORE_VARIANCE: f64 = 10.0;
/// Prior standard deviation of a start's intercept: it is penalised next to nothing.
const START_INTERCEPT: f64 = 100.0;
/// The same of the classifier of a party, whose rows may all be of one class: log-odds.
const PARTY_INTERCEPT: f64 = 3.0;
/// Columns up to which two classes are fitted by Newton's method, whose steps take time by the cube of their number.
const NEWTON_COLUMNS: usize = 1500;
/// Nats a row that ten more steps of the multinomial fit would have to gain for it to go on.
const SOFTMAX_PRECISION: f64 = 2e-5;

/// A public fit that did not come to an end.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PublicFitError {
    /// No row has a usable target.
    #[error("no row has a usable target; compare the spellings of its values with the schema")]
    NoRows,
    /// Two classes.
    #[error(transparent)]
    Logistic(#[from] NewtonError),
    /// More classes.
    #[error(transparent)]
    Softmax(#[from] LbfgsError),
    /// A number.
    #[error(transparent)]
    LeastSquares(#[from] LeastSquaresError),
}

/// Fits rows to full precision: logistic regression for two classes, multinomial logistic regression for more, least squares for a
/// number. No certificate. Missing numbers that the schema leaves open are read as the mean of the others where they are apart.
///
/// # Errors
/// [`PublicFitError`] when there is nothing to fit, or the optimum is not reached.
pub fn fit(schema: &Schema, mut rows: LabelledRows) -> Result<Model, PublicFitError> {
    let coding = Coding::of(schema);
    let missing = rows.rows.read_missing_as_mean(&coding);
    // Under wide bounds numbers vary little, their weights are large, and the smallest ridge would hold them back.
    let place_and_width = |(column, range): (&Column, (f64, f64))| match column {
        Column::Linear { .. } | Column::SymLog { .. } => range,
        Column::Intercept | Column::Category { .. } => (0.0, 1.0),
    };
    let shape = shape(coding.columns().iter().zip(rows.rows.ranges()).map(place_and_width));
    fit_encoded(schema, rows, shape, RIDGE, missing)
}

/// The same as a start for a private fit: every column centred and scaled by its public mean and standard deviation, with
/// enough ridge that a public table with few rows does not give a wild start.
///
/// Columns that are constant in the public rows keep the schema's scale, and get weight 0.
///
/// # Errors
/// [`PublicFitError`] when there is nothing to fit, or the optimum is not reached.
pub fn fit_start(schema: &Schema, rows: LabelledRows) -> Result<Model, PublicFitError> {
    let ridge = START_RIDGE.max(rows.rows.columns() as f64 / START_SCORE_VARIANCE);
    let mut moments = rows.rows.moments();
    moments[0] = (0.0, 1.0);
    fit_under_prior(schema, rows, shape(moments.into_iter()), ridge, START_INTERCEPT)
}

/// The classifier of a party, however few and alike its rows are. Columns are scaled as in `encoding`, by public rows: what hardly varies in
/// a party's own rows is not to decide votes on others. One that is constant in public rows keeps the schema's scale.
///
/// The ridge does not grow with the columns: what many parties have learnt by heart is averaged away, and what a prior has taken from every
/// one of them is not.
///
/// # Errors
/// [`PublicFitError`] when the optimum is not reached.
pub(crate) fn fit_of_party(schema: &Schema, encoding: &Encoding, rows: LabelledRows) -> Result<Model, PublicFitError> {
    let widths = encoding.scale().iter().map(|scale| 1.0 / scale);
    let shape = shape(encoding.centre().iter().copied().zip(widths));
    fit_under_prior(schema, rows, shape, START_RIDGE, PARTY_INTERCEPT)
}

/// What is subtracted from every column, and what it is multiplied by then.
struct Shape {
    centre: Vec<f64>,
    scale: Vec<f64>,
}

/// Standard deviation or range, in shares of the schema's span, below which a column counts as constant.
const CONSTANT: f64 = 1e-9;

/// Subtracts the place of every column, and divides by its width; constant columns keep their scale.
fn shape(places_and_widths: impl Iterator<Item = (f64, f64)>) -> Shape {
    let (centre, widths): (Vec<f64>, Vec<f64>) = places_and_widths.unzip();
    let scale = |width: f64| if width > CONSTANT && width.is_finite() { 1.0 / width } else { 1.0 };
    Shape { centre, scale: widths.into_iter().map(scale).collect() }
}

/// Fits rows with a prior of the intercept of its own.
fn fit_under_prior(
    schema: &Schema,
    rows: LabelledRows,
    mut shape: Shape,
    ridge: f64,
    intercept_deviation: f64,
) -> Result<Model, PublicFitError> {
    // The ridge draws the weight of a longer column less.
    shape.scale[0] = intercept_deviation * ridge.sqrt();
    // Missing numbers are what the schema makes of them: a private fit that starts there, and a vote beside others, may not read them otherwise.
    fit_encoded(schema, rows, shape, ridge, Vec::new())
}

/// The rows are read by `missing` already, one range a slot: the model says so where it sets anything aside.
fn fit_encoded(
    schema: &Schema,
    rows: LabelledRows,
    shape: Shape,
    ridge: f64,
    missing: Vec<CodeRange>,
) -> Result<Model, PublicFitError> {
    let (rows, labels) = rows.into_parts();
    if labels.is_empty() {
        return Err(PublicFitError::NoRows);
    }
    let Shape { centre, scale } = shape;
    let Solvable { features, columns } = rows.solvable(&centre, &scale);
    let solved = match &schema.target().kind {
        TargetKind::Bounds { .. } => least_squares::fit(&features, &labels, ridge)?,
        TargetKind::Classes(classes) if classes.len() == 2 && columns.len() <= NEWTON_COLUMNS => {
            logistic_newton::fit(&features, &labels, ridge)?
        }
        TargetKind::Classes(classes) if classes.len() == 2 => logistic_of_many_columns(&features, &labels, ridge)?,
        TargetKind::Classes(_) => {
            let labels: Vec<usize> = labels.iter().map(|label| *label as usize).collect();
            softmax_regression::fit(&features, &labels, outputs(schema), ridge, SOFTMAX_PRECISION)?
        }
    };
    drop(features);
    let mut weights = vec![0.0; solved.len()];
    for (weights, solved) in weights.chunks_exact_mut(columns.len()).zip(solved.chunks_exact(columns.len())) {
        columns.iter().zip(solved).for_each(|(column, weight)| weights[*column] = *weight);
    }
    let encoding = Encoding::new(Coding::of(schema), centre, scale, NormRule::OwnNorm);
    let is_any_aside = missing.iter().any(|range| range.sets_aside());
    let encoding = Arc::new(if is_any_aside { encoding.within(missing) } else { encoding });
    Ok(Model::from_weights(schema, &Fitted { encoding, weights, covariance: None }, None))
}

/// Two classes by a quasi-Newton method, whose steps take time by the number of columns.
fn logistic_of_many_columns(features: &FeatureTable, labels: &[f64], ridge: f64) -> Result<Vec<f64>, LbfgsError> {
    let labels: Vec<usize> = labels.iter().map(|label| *label as usize).collect();
    // Two scores of opposite weights, each of them half: twice the ridge is the same penalty.
    let weights = softmax_regression::fit(features, &labels, 2, 2.0 * ridge, SOFTMAX_PRECISION)?;
    let (first, second) = weights.split_at(features.columns());
    Ok(second.iter().zip(first).map(|(second, first)| second - first).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds a thousand times too wide do not change what is fitted.
    #[test]
    fn the_optimum_does_not_depend_on_the_bounds() {
        let label = |row: usize| f64::from(u8::from((row * row) % 11 < 3 + row % 5));
        let rows: Vec<[f64; 2]> = (0..400).map(|row| [1.0, (row % 7) as f64 / 7.0 + 2.0 * label(row)]).collect();
        let coefficients = |bounds: &str| -> Vec<f64> {
            let schema = Schema::from_text(&format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                 [features]\na = {{ bounds = {bounds}, log = false }}\n"
            ));
            let rows = rows.iter().enumerate().map(|(row, values)| (&values[..], label((row * 3) % 400)));
            let schema = schema.expect("legal");
            let rows = LabelledRows::of(&schema, rows).expect("few columns");
            let model = fit(&schema, rows).expect("a minimum");
            model.outputs[0].coefficients.iter().map(|column| column.coefficient).collect()
        };
        let (narrow, wide) = (coefficients("[0, 3]"), coefficients("[-3000, 3000]"));
        for (narrow, wide) in narrow.iter().zip(&wide) {
            assert!((narrow - wide).abs() < 1e-3 * (1.0 + narrow.abs()), "{narrow} {wide}");
        }
    }

    /// A third of the values are missing, and the middle of the bounds is far from all others: the slope is that of the others, and a row without the number
    /// is predicted as one with its mean.
    #[test]
    fn missing_numbers_are_read_as_the_mean() {
        let schema = Schema::from_text(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [0, 100]\n\
             [features]\na = { bounds = [0, 1000], log = false }\nb = { categories = [1, 2] }\n",
        )
        .expect("legal");
        let row = |row: usize| {
            let value = 20.0 + (row % 301) as f64 / 10.0;
            ([1.0, if row.is_multiple_of(3) { 500.0 } else { value }, 0.0, 1.0, 0.0], 10.0 + value)
        };
        let rows =
            || LabelledRows::of(&schema, (0..930).map(row).map(|(row, label)| (row.to_vec(), label))).expect("few");
        let others: Vec<f64> = (0..930).map(|place| row(place).0[1]).filter(|value| *value < 500.0).collect();
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        let model = fit(&schema, rows()).expect("a minimum");
        let score = |value: f64| model.score(0, &[1.0, value, 0.0, 1.0, 0.0][..]);
        // To a step of the codes, of which a thousand units have 32,767.
        assert!((score(500.0) - score(mean)).abs() < 0.05, "{model:?}");
        assert!((score(45.0) - 55.0).abs() < 0.2, "{model:?}");
        assert!((score(499.0) - 509.0).abs() < 10.0, "another number is taken as it comes");
        // A private fit may read missing values as the schema has them, and starts from a model that does.
        let start = fit_start(&schema, rows()).expect("a minimum");
        assert!(start.outputs[0].coefficients.iter().all(|one| one.missing.is_none()));
    }

    #[test]
    fn many_columns_are_fitted_as_few_are() {
        let row = |row: usize| [1.0, (row % 7) as f64 / 7.0, f64::from(u8::from(row.is_multiple_of(5)))];
        let values: Vec<f64> = (0..200).flat_map(row).collect();
        let features = FeatureTable::packed(values, 3);
        let labels: Vec<f64> = (0..200).map(|row| f64::from(u8::from((row * row) % 11 < 3 + row % 5))).collect();
        for ridge in [0.1, 20.0] {
            let few = logistic_newton::fit(&features, &labels, ridge).expect("a minimum");
            let many = logistic_of_many_columns(&features, &labels, ridge).expect("a minimum");
            for (few, many) in few.iter().zip(&many) {
                assert!((few - many).abs() < 0.02, "{few} and {many}");
            }
        }
    }
}
