//! Regression without privacy, on rows that are declared public: the yardstick, and a start for a private fit.

use std::sync::Arc;

use reticent_core::coding::{Coding, Column};
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::schema::{Schema, TargetKind};
use reticent_math::feature_table::FeatureTable;
use reticent_math::lbfgs::LbfgsError;
use reticent_math::least_squares::{self, LeastSquaresError};
use reticent_math::logistic_newton::{self, NewtonError};
use reticent_math::softmax_regression;
use thiserror::Error;

use crate::method::outputs;
use crate::model::{Model, transformed_bounds};
use crate::prepared_fit::Fitted;

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

/// Fits raw columns ([`Coding::raw_columns`]) and labels (index of a class, or a number) to full precision: logistic
/// regression for two classes, multinomial logistic regression for more, least squares for a number. No certificate.
///
/// # Errors
/// [`PublicFitError`] when there is nothing to fit, or the optimum is not reached.
pub fn fit<'a>(schema: &Schema, rows: impl Iterator<Item = (&'a [f64], f64)>) -> Result<Model, PublicFitError> {
    let mut table = UnitTable::of(schema, rows)?;
    let coding = Coding::of(schema);
    // Under wide bounds numbers vary little, their weights are large, and the smallest ridge would hold them back.
    let (centre, scale) = table.rescale(|table, column| match coding.columns()[column] {
        Column::Linear { .. } | Column::SymLog { .. } => table.range(column),
        Column::Intercept | Column::Category { .. } => (0.0, 1.0),
    });
    fit_encoded(schema, Encoding::new(coding, centre, scale, NormRule::OwnNorm), table, RIDGE)
}

/// The same as a start for a private fit: every column centred and scaled by its public mean and standard deviation, with
/// enough ridge that a public table with few rows does not give a wild start.
///
/// Columns that are constant in the public rows keep the schema's scale, and get weight 0.
///
/// # Errors
/// [`PublicFitError`] when there is nothing to fit, or the optimum is not reached.
pub fn fit_start<'a>(schema: &Schema, rows: impl Iterator<Item = (&'a [f64], f64)>) -> Result<Model, PublicFitError> {
    let mut table = UnitTable::of(schema, rows)?;
    let shape = table.rescale(|table, column| if column == 0 { (0.0, 1.0) } else { table.moments(column) });
    let ridge = START_RIDGE.max(table.columns as f64 / START_SCORE_VARIANCE);
    fit_under_prior(schema, table, shape, ridge, START_INTERCEPT)
}

/// The classifier of a party, however few and alike its rows are. Columns are scaled as in `encoding`, by public rows: what hardly varies in
/// a party's own rows is not to decide votes on others. One that is constant in public rows keeps the schema's scale.
///
/// The ridge does not grow with the columns: what many parties have learnt by heart is averaged away, and what a prior has taken from every
/// one of them is not.
///
/// # Errors
/// [`PublicFitError`] when there is nothing to fit, or the optimum is not reached.
pub(crate) fn fit_of_party<'a>(
    schema: &Schema,
    encoding: &Encoding,
    rows: impl Iterator<Item = (&'a [f64], f64)>,
) -> Result<Model, PublicFitError> {
    let mut table = UnitTable::of(schema, rows)?;
    let shape = table.rescale(|_, column| (encoding.centre()[column], 1.0 / encoding.scale()[column]));
    fit_under_prior(schema, table, shape, START_RIDGE, PARTY_INTERCEPT)
}

/// Fits a table of which `shape` tells what was subtracted from every column and what multiplied by then.
fn fit_under_prior(
    schema: &Schema,
    mut table: UnitTable,
    (centre, mut scale): (Vec<f64>, Vec<f64>),
    ridge: f64,
    intercept_deviation: f64,
) -> Result<Model, PublicFitError> {
    // The ridge draws the weight of a longer column less.
    let longer = intercept_deviation * ridge.sqrt();
    scale[0] = longer;
    table.values.iter_mut().step_by(table.columns).for_each(|one| *one *= longer);
    let encoding = Encoding::new(Coding::of(schema), centre, scale, NormRule::OwnNorm);
    fit_encoded(schema, encoding, table, ridge)
}

/// Standard deviation or range, in shares of the schema's span, below which a column counts as constant.
const CONSTANT: f64 = 1e-9;

fn fit_encoded(schema: &Schema, encoding: Encoding, table: UnitTable, ridge: f64) -> Result<Model, PublicFitError> {
    let UnitTable { columns, values, labels } = table;
    let features = FeatureTable::packed(values, columns);
    let weights = match &schema.target().kind {
        TargetKind::Bounds { .. } => least_squares::fit(&features, &labels, ridge)?,
        TargetKind::Classes(classes) if classes.len() == 2 && columns <= NEWTON_COLUMNS => {
            logistic_newton::fit(&features, &labels, ridge)?
        }
        TargetKind::Classes(classes) if classes.len() == 2 => logistic_of_many_columns(&features, &labels, ridge)?,
        TargetKind::Classes(_) => {
            let labels: Vec<usize> = labels.iter().map(|label| *label as usize).collect();
            softmax_regression::fit(&features, &labels, outputs(schema), ridge, SOFTMAX_PRECISION)?
        }
    };
    let fitted = Fitted { encoding: Arc::new(encoding), weights, covariance: None };
    Ok(Model::from_weights(schema, &fitted, None))
}

/// Two classes by a quasi-Newton method, whose steps take time by the number of columns.
fn logistic_of_many_columns(features: &FeatureTable, labels: &[f64], ridge: f64) -> Result<Vec<f64>, LbfgsError> {
    let labels: Vec<usize> = labels.iter().map(|label| *label as usize).collect();
    // Two scores of opposite weights, each of them half: twice the ridge is the same penalty.
    let weights = softmax_regression::fit(features, &labels, 2, 2.0 * ridge, SOFTMAX_PRECISION)?;
    let (first, second) = weights.split_at(features.columns());
    Ok(second.iter().zip(first).map(|(second, first)| second - first).collect())
}

/// Public rows with every column on the scale of the schema's bounds, and a numeric target on `[-1, 1]`.
struct UnitTable {
    columns: usize,
    values: Vec<f64>,
    labels: Vec<f64>,
}

impl UnitTable {
    fn of<'a>(schema: &Schema, rows: impl Iterator<Item = (&'a [f64], f64)>) -> Result<Self, PublicFitError> {
        let coding = Coding::of(schema);
        let bounds = |column: &Column| match column {
            Column::Linear { feature } | Column::SymLog { feature } => transformed_bounds(schema, *feature, column),
            Column::Intercept | Column::Category { .. } => (0.0, 1.0),
        };
        let to_unit: Vec<(f64, f64)> = coding.columns().iter().map(bounds).collect();
        let mut table = Self { columns: to_unit.len(), values: Vec::new(), labels: Vec::new() };
        for (row, label) in rows {
            table.values.extend(row.iter().zip(&to_unit).map(|(value, (low, high))| (value - low) / (high - low)));
            table.labels.push(match schema.target().kind {
                TargetKind::Classes(_) => label,
                TargetKind::Bounds { low, high } => (label.clamp(low, high) - low) / (high - low) * 2.0 - 1.0,
            });
        }
        if table.labels.is_empty() { Err(PublicFitError::NoRows) } else { Ok(table) }
    }

    /// Subtracts from every column what `place_and_width` says, and divides by the width; constant columns keep their scale. Gives what was
    /// subtracted, and what was multiplied by then.
    fn rescale(&mut self, place_and_width: impl Fn(&Self, usize) -> (f64, f64)) -> (Vec<f64>, Vec<f64>) {
        let (mut centre, mut scale) = (vec![0.0; self.columns], vec![1.0; self.columns]);
        for column in 0..self.columns {
            let (place, width) = place_and_width(self, column);
            centre[column] = place;
            scale[column] = if width > CONSTANT && width.is_finite() { 1.0 / width } else { 1.0 };
        }
        for row in self.values.chunks_exact_mut(self.columns) {
            for ((value, centre), scale) in row.iter_mut().zip(&centre).zip(&scale) {
                *value = scale * (*value - centre);
            }
        }
        (centre, scale)
    }

    /// Least value of a column, and how far the largest is from it.
    fn range(&self, column: usize) -> (f64, f64) {
        let of_column = self.values.chunks_exact(self.columns).map(|row| row[column]);
        let (low, high) =
            of_column.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        (low, high - low)
    }

    /// Mean and standard deviation of a column.
    fn moments(&self, column: usize) -> (f64, f64) {
        let of_column = || self.values.chunks_exact(self.columns).map(|row| row[column]);
        let count = self.labels.len() as f64;
        let mean = of_column().sum::<f64>() / count;
        (mean, (of_column().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt())
    }
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
            let model = fit(&schema.expect("legal"), rows).expect("a minimum");
            model.outputs[0].coefficients.iter().map(|column| column.coefficient).collect()
        };
        let (narrow, wide) = (coefficients("[0, 3]"), coefficients("[-3000, 3000]"));
        for (narrow, wide) in narrow.iter().zip(&wide) {
            assert!((narrow - wide).abs() < 1e-3 * (1.0 + narrow.abs()), "{narrow} {wide}");
        }
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
