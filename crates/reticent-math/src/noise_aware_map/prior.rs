//! What is believed about the weights before the release, and how far from its centre they are.

use faer::{Mat, MatRef};

use super::ResponseModel;
use super::algebra::repeat;
use super::effect_sizes::Effects;
use crate::public_rows::PublicRows;
use crate::row_blocks::of_row_blocks;

/// What is believed about the weights before the release, and the sizes of effects that a release suggests: public.
///
/// Effects of standardised columns are independent with mean `centre` and standard deviation `tau`, itself log-normal about
/// the scale at which all effects together make a score of standard deviation 1.5, for numbers 0.3 (a third of it around a start). That is half of the
/// belief, and the other that each column's effects have a size of their own. The
/// mean score over the rows has a wide prior of its own, so that the intercept is hardly drawn to zero.
#[derive(Clone, Debug)]
pub struct Prior {
    /// Variances of the columns, or what they are taken to be where that is more.
    pub(super) spread_square: Vec<f64>,
    /// Squares of the sizes of the columns' effects, in units of the prior's scale: 1 before a release suggests others. For [`Effects::OfOwnSizes`].
    pub(super) effect_sizes: Vec<f64>,
    /// Standard deviations of the columns; 0 of one that is the same in every row.
    pub(super) deviations: Vec<f64>,
    pub(super) mean_row: Mat<f64>,
    pub(super) mean_score_deviation: f64,
    /// Scale that `tau` is believed to be near: effects that together make a score of [`TYPICAL_SCORE`] or [`TYPICAL_SCORE_NUMBER`].
    pub(super) typical_effect: f64,
    pub(super) centre: Mat<f64>,
    /// The first column that is the same in every row, and its value.
    pub(super) constant: Option<(usize, f64)>,
}

impl Prior {
    /// The prior for a model on public features; `centre` (k × outputs) is a public start model, zero if there is none.
    ///
    /// # Panics
    /// When the centre does not have a row for every column of the features and a column for every output.
    #[must_use]
    pub fn new<'a>(features: impl Into<PublicRows<'a>>, model: ResponseModel, centre: Option<MatRef<'_, f64>>) -> Self {
        let features = features.into();
        let (rows, columns) = (features.nrows(), features.ncols());
        let ranges = ColumnRanges::of(features);
        let means: Vec<f64> = ranges.sums.iter().map(|sum| sum / rows.max(1) as f64).collect();
        let variances = variances(features, &means);
        let (mut of_constant, mut constant) = (CONSTANT.0, None);
        let spread_square = (0..columns)
            .map(|column| {
                let (range, mean) = (ranges.high[column] - ranges.low[column], means[column]);
                // A rare category must not get a huge prior effect for being rare, nor one that never occurs. Whether a column
                // is constant the range tells: rounding gives a constant a variance.
                if range > 0.0 {
                    variances[column].max(RARE * range * range)
                } else if mean.abs() > 0.0 {
                    constant = constant.or(Some((column, mean)));
                    std::mem::replace(&mut of_constant, CONSTANT.1) * mean * mean
                } else {
                    RARE
                }
            })
            .collect();
        let varies = |column: usize| ranges.high[column] > ranges.low[column];
        let deviations =
            (0..columns).map(|column| if varies(column) { variances[column].sqrt() } else { 0.0 }).collect();
        let mean_row = Mat::from_fn(columns, 1, |column, _| means[column]);
        if let Some(centre) = centre {
            assert_eq!(centre.shape(), (columns, model.outputs()), "one start weight for each column and output");
        }
        let mean_score_deviation = match (model, centre.is_some()) {
            (ResponseModel::Linear, false) => 1.0,
            (ResponseModel::Linear, true) => START_FACTOR,
            (ResponseModel::Logistic | ResponseModel::Multinomial { .. }, false) => 3.0,
            // Base rates of two tables of one kind differ by little: 0.5 in log-odds.
            (ResponseModel::Logistic | ResponseModel::Multinomial { .. }, true) => 0.5,
        };
        let effects = columns.saturating_sub(1).max(1) as f64;
        let typical_score = match model {
            ResponseModel::Linear => TYPICAL_SCORE_NUMBER,
            ResponseModel::Logistic | ResponseModel::Multinomial { .. } => TYPICAL_SCORE,
        };
        let typical_effect = typical_score / effects.sqrt() * if centre.is_some() { START_FACTOR } else { 1.0 };
        let centre = centre.map_or_else(|| Mat::zeros(columns, model.outputs()), |centre| centre.to_owned());
        let effect_sizes = vec![1.0; columns];
        Self {
            spread_square,
            effect_sizes,
            deviations,
            mean_row,
            mean_score_deviation,
            typical_effect,
            centre,
            constant,
        }
    }

    /// The precision `P` of one output's weights, k × k, positive definite.
    #[must_use]
    pub fn precision(&self, tau: f64) -> Mat<f64> {
        self.precision_of(tau, Effects::OfOneSize)
    }

    fn precision_of(&self, tau: f64, effects: Effects) -> Mat<f64> {
        let mut precision =
            &self.mean_row * self.mean_row.transpose() * faer::Scale(self.mean_score_deviation.powi(-2));
        for (column, of_column) in self.column_precisions(effects).into_iter().enumerate() {
            precision[(column, column)] += of_column / (tau * tau);
        }
        precision
    }

    /// Precisions of the columns' weights under a scale of 1.
    pub(super) fn column_precisions(&self, effects: Effects) -> Vec<f64> {
        let size = |size: f64| if effects == Effects::OfOwnSizes { size } else { 1.0 };
        self.spread_square.iter().zip(&self.effect_sizes).map(|(spread, of_effect)| spread / size(*of_effect)).collect()
    }

    /// Half the log determinant of one output's precision: of a diagonal and a row.
    pub(super) fn half_log_determinant(&self, tau: f64, effects: Effects) -> f64 {
        let (mut logs, mut of_mean_row) = (0.0, 0.0);
        for (of_column, mean) in self.column_precisions(effects).into_iter().zip(self.mean_row.col(0).iter()) {
            let of_column = of_column / (tau * tau);
            logs += of_column.ln();
            of_mean_row += mean * mean / of_column;
        }
        (logs + (of_mean_row / self.mean_score_deviation.powi(2)).ln_1p()) / 2.0
    }

    /// Of all contrasts.
    pub(super) fn precision_of_all(&self, tau: f64, effects: Effects, model: ResponseModel) -> PriorPrecision {
        let contrasts = model.contrasts();
        PriorPrecision {
            matrix: repeat(&self.precision_of(tau, effects), contrasts),
            half_log_determinant: contrasts as f64 * self.half_log_determinant(tau, effects),
        }
    }

    /// Parameters of all contrasts times the variances of their columns.
    pub(super) fn times_spread(&self, parameters: &Mat<f64>) -> Mat<f64> {
        let columns = self.spread_square.len();
        Mat::from_fn(parameters.nrows(), 1, |index, _| parameters[(index, 0)] * self.spread_square[index % columns])
    }
}

/// The precision of all contrasts' weights.
pub(super) struct PriorPrecision {
    pub(super) matrix: Mat<f64>,
    pub(super) half_log_determinant: f64,
}

/// Sums, smallest and largest values of columns. Row after row: the rows of a large table lie one after the other in memory.
struct ColumnRanges {
    sums: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl ColumnRanges {
    fn of(features: PublicRows<'_>) -> Self {
        let columns = features.ncols();
        let of_blocks = of_row_blocks(features.nrows(), columns, |block| {
            let mut found = Self::of_no_rows(columns);
            features.for_each_row(block, |row| {
                let places = found.sums.iter_mut().zip(&mut found.low).zip(&mut found.high);
                for (value, ((sum, low), high)) in row.iter().zip(places) {
                    *sum += value;
                    *low = low.min(*value);
                    *high = high.max(*value);
                }
            });
            found
        });
        of_blocks.into_iter().fold(Self::of_no_rows(columns), Self::joined)
    }

    fn of_no_rows(columns: usize) -> Self {
        let all = |value: f64| vec![value; columns];
        Self { sums: all(0.0), low: all(f64::INFINITY), high: all(f64::NEG_INFINITY) }
    }

    fn joined(mut self, other: Self) -> Self {
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, more)| *sum += more);
        self.low.iter_mut().zip(other.low).for_each(|(low, other)| *low = low.min(other));
        self.high.iter_mut().zip(other.high).for_each(|(high, other)| *high = high.max(other));
        self
    }
}

/// Variances of columns about their means.
fn variances(features: PublicRows<'_>, means: &[f64]) -> Vec<f64> {
    let (rows, columns) = (features.nrows(), features.ncols());
    let of_blocks = of_row_blocks(rows, columns, |block| {
        let mut sums = vec![0.0; columns];
        features.for_each_row(block, |row| {
            for ((sum, value), mean) in sums.iter_mut().zip(row).zip(means) {
                *sum += (value - mean).powi(2);
            }
        });
        sums
    });
    let mut variances = vec![0.0; columns];
    for sums in of_blocks {
        variances.iter_mut().zip(sums).for_each(|(variance, sum)| *variance += sum / rows as f64);
    }
    variances
}

/// `theta_0 + theta U^T`.
pub(super) fn weights_of(parameters: &Mat<f64>, model: ResponseModel, prior: &Prior) -> Mat<f64> {
    let columns = prior.centre.nrows();
    let unstacked =
        Mat::from_fn(columns, model.contrasts(), |column, contrast| parameters[(contrast * columns + column, 0)]);
    &prior.centre + unstacked * model.basis().transpose()
}

/// Columns of standard deviation below `sqrt(RARE)` times their range are treated as if it were that.
const RARE: f64 = 0.02;
/// Variance of a constant column in the prior, in squares of its mean. The first, the intercept, is left to the other part of the prior: its
/// share of the mean score is all that it does. What another one does the first does, too: it is drawn to nothing, or no release could
/// tell the two apart.
const CONSTANT: (f64, f64) = (2e-6, 1e4);

/// Standard deviation of a score under the typical effects, in log-odds; and of numbers, whose labels lie in `[-1, 1]`.
const TYPICAL_SCORE: f64 = 1.5;
const TYPICAL_SCORE_NUMBER: f64 = 0.3;
/// How much less effects are believed to differ from those of a public start than from zero.
const START_FACTOR: f64 = 1.0 / 3.0;
