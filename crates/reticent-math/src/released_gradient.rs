//! Gradient descent with the labels' part of the gradient replaced by its one noisy release: the method as it was published.
//!
//! ```text
//!   gradient of the mean loss = (D^T p(theta) - t + l2 theta) / n       t = D^T Y + noise, released once
//!                              label-free, exact; t: every step the same
//! ```
//! `full-batch` takes the first term over all rows, `hybrid-minibatch` over a few of them a step. Without `l2` the loss may
//! be unbounded below once noise is in `t`: then only the number of steps keeps the weights finite.

use faer::{Mat, MatRef};
use thiserror::Error;

use crate::fixed_sequence::FixedSequence;
use crate::noise_aware_map::{ResponseModel, Statistic};
use crate::product::{add_product, product};
use crate::public_rows::PublicRows;

/// How to descend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Descent {
    /// Step length; `None` takes 1 over the largest curvature of the mean loss: a public figure.
    pub learning_rate: Option<f64>,
    /// Number of steps, at least 1.
    pub steps: u32,
    /// Rows a step for the label-free term; `None` takes all.
    pub batch: Option<usize>,
    /// Adds `l2/2` times the squared norm of the weights, those of the first column (the intercept) excepted, to the summed
    /// loss.
    pub l2: f64,
}

/// Longest step at which a descent for a number need not grow without bound, whatever the features are.
///
/// A step of length `eta` multiplies what is left of the way by `1 - eta h` along a direction of curvature `h`. The largest `h` is that of
/// `X^T X / n`, at least the 1 that its first column has, which is 1 in every row. The losses of classes have bounded slopes: no step drives their
/// weights apart.
pub const LINEAR_RATE_MAX: f64 = 2.0;

/// A descent that cannot be made.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DescentError {
    /// A parameter outside its range.
    #[error("{0}")]
    Parameter(&'static str),
    /// The vectors do not have the features' columns.
    #[error(
        "this solver works on noisy sums of the features themselves: {vectors} vectors' columns where the features have {features}"
    )]
    Shape {
        /// Columns of the vectors.
        vectors: usize,
        /// Columns of the features.
        features: usize,
    },
    /// Weights left the range of numbers.
    #[error("the weights grew without bound; use a smaller learning rate")]
    Diverged,
}

/// Weights, k × outputs, after the given number of steps from `start` (zero if there is none).
///
/// `statistic.rows` must be the features times one constant, `rows = features / unit`, up to their truncation to integers;
/// the gradient is taken with these rows on both sides.
///
/// # Errors
/// [`DescentError`] for parameters out of range, and when the weights grow without bound.
pub fn descend(
    statistic: &Statistic<'_>,
    model: ResponseModel,
    unit: f64,
    descent: &Descent,
    start: Option<MatRef<'_, f64>>,
) -> Result<Mat<f64>, DescentError> {
    let (total, columns) = (statistic.features.nrows(), statistic.features.ncols());
    if statistic.rows.ncols() != columns {
        return Err(DescentError::Shape { vectors: statistic.rows.ncols(), features: columns });
    }
    if descent.steps == 0 {
        return Err(DescentError::Parameter("--steps must be at least 1"));
    }
    if !(descent.l2.is_finite() && descent.l2 >= 0.0) {
        return Err(DescentError::Parameter("--l2 must be a finite number of at least 0"));
    }
    if descent.learning_rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
        return Err(DescentError::Parameter("--learning-rate must be a finite number above 0"));
    }
    if descent.batch == Some(0) {
        return Err(DescentError::Parameter("--batch must be at least 1"));
    }
    let penalty = descent.l2 / total as f64;
    let rate = descent.learning_rate.unwrap_or_else(|| 1.0 / (largest_curvature(statistic.features, model) + penalty));
    let labels = statistic.released * faer::Scale(unit / total as f64);
    let mut weights = start.map_or_else(|| Mat::zeros(columns, model.outputs()), |start| start.to_owned());
    let mut order = Shuffled::new(total);
    for _ in 0..descent.steps {
        let label_free = match descent.batch.filter(|batch| *batch < total) {
            None => mean_product(statistic.features, statistic.rows, model, &weights),
            Some(batch) => {
                let taken: Vec<usize> = (0..batch).map(|_| order.next()).collect();
                let mut mean = Mat::zeros(columns, model.outputs());
                for taken in taken.chunks(statistic.features.rows_of_part()) {
                    let (features, rows) = (statistic.features.gathered(taken), statistic.rows.gathered(taken));
                    let of_these = mean_product(features.as_ref().into(), rows.as_ref().into(), model, &weights);
                    mean += of_these * faer::Scale(taken.len() as f64 / batch as f64);
                }
                mean
            }
        };
        let mut gradient = label_free * faer::Scale(unit) - &labels;
        for column in 1..columns {
            for output in 0..model.outputs() {
                gradient[(column, output)] += penalty * weights[(column, output)];
            }
        }
        weights -= gradient * faer::Scale(rate);
        if !weights.norm_l2().is_finite() {
            return Err(DescentError::Diverged);
        }
    }
    Ok(weights)
}

/// `(1/n) D^T p(theta)`.
fn mean_product(features: PublicRows<'_>, rows: PublicRows<'_>, model: ResponseModel, weights: &Mat<f64>) -> Mat<f64> {
    model.expected_sum(features, rows, weights) * faer::Scale(1.0 / features.nrows() as f64)
}

/// Largest eigenvalue of `X^T X / n` times the largest second derivative of the loss, by power iteration, 10 % up.
///
/// Of few columns that of their matrix of products; with more columns than rounds the products would cost more than the rounds.
fn largest_curvature(features: PublicRows<'_>, model: ResponseModel) -> f64 {
    const ROUNDS: usize = 100;
    let mean = faer::Scale(1.0 / features.nrows().max(1) as f64);
    let gram = (features.ncols() <= ROUNDS).then(|| features.transpose_times(features));
    let times_gram = |vector: &Mat<f64>| match &gram {
        Some(gram) => gram * vector,
        None => features.sum((vector.nrows(), 1), |sum, _, rows| {
            add_product(sum, rows.transpose(), product(rows, vector));
        }),
    };
    let mut vector = Mat::<f64>::ones(features.ncols(), 1);
    let mut value = 0.0;
    for _ in 0..ROUNDS {
        let next = times_gram(&vector) * mean;
        let norm = next.norm_l2();
        if norm <= 0.0 {
            break;
        }
        value = norm / vector.norm_l2();
        vector = next * faer::Scale(1.0 / norm);
    }
    let second = match model {
        ResponseModel::Linear => 1.0,
        ResponseModel::Logistic => 0.25,
        ResponseModel::Multinomial { .. } => 0.5,
    };
    (value * second * 1.1).max(f64::MIN_POSITIVE)
}

/// Row numbers in a shuffled order, all before any twice: public and the same every time, so a fit can be repeated.
struct Shuffled {
    order: Vec<usize>,
    position: usize,
    words: FixedSequence,
}

impl Shuffled {
    fn new(rows: usize) -> Self {
        Self { order: (0..rows).collect(), position: rows, words: FixedSequence::new(0x9e37_79b9_7f4a_7c15) }
    }

    fn next(&mut self) -> usize {
        if self.position == self.order.len() {
            for last in (1..self.order.len()).rev() {
                let other = self.words.next_below(last as u64 + 1) as usize;
                self.order.swap(last, other);
            }
            self.position = 0;
        }
        self.position += 1;
        self.order[self.position - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise_aware_map::golden;

    fn descent() -> Descent {
        Descent { learning_rate: Some(0.5), steps: 50, batch: None, l2: 0.4 }
    }

    #[test]
    fn agrees_with_an_independent_descent() {
        let data = golden::data();
        let released = data.logistic_release();
        let statistic = data.statistic(&released);
        let weights =
            descend(&statistic, ResponseModel::Logistic, data.longest, &descent(), None).expect("small steps");
        golden::assert_close(weights.as_ref(), &golden::DESCENT, 1e-12);
    }

    #[test]
    fn minibatches_of_all_rows_are_the_full_batch_and_small_ones_come_near() {
        let data = golden::data();
        let released = data.logistic_release();
        let statistic = data.statistic(&released);
        let run = |batch, steps, rate| {
            let asked = Descent { batch, steps, learning_rate: Some(rate), l2: 4.0 };
            descend(&statistic, ResponseModel::Logistic, data.longest, &asked, None).expect("small steps")
        };
        let full = run(None, 4000, 0.1);
        assert!((&run(Some(40), 4000, 0.1) - &full).norm_max() < 1e-12);
        let hybrid = run(Some(8), 40_000, 0.01);
        assert!((&hybrid - &full).norm_max() < 0.05, "{hybrid:?} {full:?}");
        assert!((&hybrid - &full).norm_max() > 1e-6, "a minibatch is not the full batch");
    }

    #[test]
    fn a_diverging_descent_and_illegal_parameters_are_errors() {
        let data = golden::data();
        let released = data.logistic_release();
        let statistic = data.statistic(&released);
        let run = |asked: Descent| descend(&statistic, ResponseModel::Linear, data.longest, &asked, None);
        assert_eq!(run(Descent { learning_rate: Some(1e6), steps: 1000, ..descent() }), Err(DescentError::Diverged));
        let beyond = Some(1.001 * LINEAR_RATE_MAX);
        let intercept_alone = Statistic {
            features: data.features.subcols(0, 1).into(),
            rows: data.rows.subcols(0, 1).into(),
            released: statistic.released.subrows(0, 1),
            ..statistic
        };
        let alone = |rate: Option<f64>| {
            let asked = Descent { learning_rate: rate, steps: 1_000_000, l2: 0.0, ..descent() };
            descend(&intercept_alone, ResponseModel::Linear, data.longest, &asked, None)
        };
        assert_eq!(alone(beyond), Err(DescentError::Diverged));
        assert!(
            alone(Some(0.999 * LINEAR_RATE_MAX)).expect("finite").norm_max() < 1e3,
            "the least features allow all but that"
        );
        for illegal in [
            Descent { steps: 0, ..descent() },
            Descent { l2: f64::NAN, ..descent() },
            Descent { learning_rate: Some(0.0), ..descent() },
            Descent { batch: Some(0), ..descent() },
        ] {
            assert!(matches!(run(illegal), Err(DescentError::Parameter(_))));
        }
    }
}
