//! Logistic and softmax regression on soft labels with a ridge: the strongly convex problem behind majority and soft-label
//! combiners.
//!
//! ```text
//!   f(w) = (1/n) sum_i [ log sum_k e^(z_ik) - sum_k a_ik z_ik ] + ridge/2 ||w||²,    z_ik = w_k · x_i
//! ```
//! With two classes there is one score, the other is 0. The Hessian is at most `B = (1/c) XᵀX/n + ridge` for every `w`, c = 4
//! with one score and 2 with several (Böhning 1992): the step `B⁻¹ grad f` never overshoots, converges from anywhere, and
//! needs one factorisation for any number of label sets.

use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, MatRef, Side};

use crate::product::product;
use crate::vector_registers::empty_upper_halves;

/// Features and penalty; labels come later, any number of times.
pub struct SoftLabelRegression<'a> {
    features: &'a [f64],
    columns: usize,
    outputs: usize,
    ridge: f64,
    bound: Llt<f64>,
}

/// The sum of the features' products cannot be factorised: a value is not finite, or the ridge is not above 0.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the features hold a value that is not finite, or the penalty is not above 0")]
pub struct NotPositive;

/// Sizes up to which Newton's method is tried before the bound's steps.
const NEWTON_SIZE_MAX: usize = 1000;

impl<'a> SoftLabelRegression<'a> {
    /// `features` is n × `columns`, row after row; `outputs` is 1 for two classes, else the number of classes; `ridge` is on
    /// the mean loss.
    ///
    /// # Errors
    /// [`NotPositive`] for values that are not finite or a ridge that is not above 0.
    pub fn new(features: &'a [f64], columns: usize, outputs: usize, ridge: f64) -> Result<Self, NotPositive> {
        let rows = features.len() / columns;
        let matrix = MatRef::from_row_major_slice(features, rows, columns);
        let share = if outputs == 1 { 4.0 } else { 2.0 } * rows.max(1) as f64;
        let mut bound = matrix.transpose() * matrix * faer::Scale(1.0 / share);
        for column in 0..columns {
            bound[(column, column)] += ridge;
        }
        if !(ridge > 0.0 && bound.norm_l2().is_finite()) {
            return Err(NotPositive);
        }
        let bound = bound.llt(Side::Lower).map_err(|_| NotPositive)?;
        Ok(Self { features, columns, outputs, ridge, bound })
    }

    /// Weights (outputs × columns, output after output) at which the gradient's L2 norm, as computed, is at most `tolerance`.
    ///
    /// Newton's method with halving while it makes progress, then steps of the bound, which converge from anywhere: for
    /// a tolerance above the rounding error of the gradient (about `1e-12` for rows of norm 1) this ends for all labels.
    /// `labels` has one value in `[0, 1]` a row and output.
    #[must_use]
    pub fn minimise(&self, labels: &[f64], tolerance: f64) -> Vec<f64> {
        const NEWTON_STEPS: usize = 60;
        let mut weights = vec![0.0; self.outputs * self.columns];
        let (mut value, mut gradient) = self.value_and_gradient(&weights, labels);
        let mut steps = if weights.len() <= NEWTON_SIZE_MAX { NEWTON_STEPS } else { 0 };
        while norm(&gradient) > tolerance {
            let direction = if steps > 0 { self.newton_direction(&weights, &gradient) } else { None };
            steps = steps.saturating_sub(1);
            let Some(direction) = direction else {
                steps = 0;
                self.bounded_step(&mut weights, &gradient);
                (value, gradient) = self.value_and_gradient(&weights, labels);
                continue;
            };
            let mut length = 1.0;
            loop {
                let next: Vec<f64> = weights.iter().zip(&direction).map(|(at, step)| at - length * step).collect();
                let (next_value, next_gradient) = self.value_and_gradient(&next, labels);
                // Near the minimum values differ by less than rounding; the gradient decides there.
                if next_value < value || norm(&next_gradient) < 0.5 * norm(&gradient) {
                    (weights, value, gradient) = (next, next_value, next_gradient);
                    break;
                }
                length /= 2.0;
                if length < 1e-6 {
                    steps = 0;
                    break;
                }
            }
        }
        weights
    }

    /// Weights after a fixed number of the bound's steps from zero: the same work for all labels.
    #[must_use]
    pub fn approach(&self, labels: &[f64], steps: usize) -> Vec<f64> {
        let mut weights = vec![0.0; self.outputs * self.columns];
        for _ in 0..steps {
            let (_, gradient) = self.value_and_gradient(&weights, labels);
            self.bounded_step(&mut weights, &gradient);
        }
        weights
    }

    fn bounded_step(&self, weights: &mut [f64], gradient: &[f64]) {
        let step = self
            .bound
            .solve(Mat::from_fn(self.columns, self.outputs, |column, output| gradient[output * self.columns + column]));
        for (place, weight) in weights.iter_mut().enumerate() {
            *weight -= step[(place % self.columns, place / self.columns)];
        }
    }

    /// Objective and gradient; the order of all sums is fixed.
    fn value_and_gradient(&self, weights: &[f64], labels: &[f64]) -> (f64, Vec<f64>) {
        let rows = self.features.len() / self.columns;
        let mut gradient = vec![0.0; weights.len()];
        let mut value = 0.0;
        let mut means = vec![0.0; self.outputs];
        // After the solution of a step.
        empty_upper_halves();
        for (row, labels) in self.features.chunks_exact(self.columns).zip(labels.chunks_exact(self.outputs)) {
            let normaliser = self.means(weights, row, &mut means);
            value += normaliser.log_total;
            for (output, (mean, label)) in means.iter().zip(labels).enumerate() {
                value -= label * normaliser.score(output);
                let residual = mean - label;
                let gradient = &mut gradient[output * self.columns..][..self.columns];
                gradient.iter_mut().zip(row).for_each(|(total, feature)| *total += residual * feature);
            }
        }
        let share = 1.0 / rows.max(1) as f64;
        for (total, weight) in gradient.iter_mut().zip(weights) {
            *total = *total * share + self.ridge * weight;
        }
        let square: f64 = weights.iter().map(|weight| weight * weight).sum();
        (value * share + self.ridge / 2.0 * square, gradient)
    }

    /// Probabilities of the outputs for one row, into `means`.
    fn means(&self, weights: &[f64], row: &[f64], means: &mut [f64]) -> Scores {
        let scores: Vec<f64> = weights
            .chunks_exact(self.columns)
            .map(|weights| weights.iter().zip(row).map(|(weight, feature)| weight * feature).sum())
            .collect();
        let log_total = log_total(&scores);
        for (mean, score) in means.iter_mut().zip(&scores) {
            *mean = (score - log_total).exp();
        }
        Scores { scores, log_total }
    }

    fn newton_direction(&self, weights: &[f64], gradient: &[f64]) -> Option<Vec<f64>> {
        let (columns, outputs) = (self.columns, self.outputs);
        let rows = self.features.len() / columns;
        let share = 1.0 / rows.max(1) as f64;
        let mut hessian = Mat::<f64>::zeros(columns * outputs, columns * outputs);
        let matrix = MatRef::from_row_major_slice(self.features, rows, columns);
        let mut all_means = vec![0.0; rows * outputs];
        for (row, means) in self.features.chunks_exact(columns).zip(all_means.chunks_exact_mut(outputs)) {
            self.means(weights, row, means);
        }
        for first in 0..outputs {
            for second in 0..=first {
                let weighted = Mat::from_fn(rows, columns, |row, column| {
                    let (one, other) = (all_means[row * outputs + first], all_means[row * outputs + second]);
                    let curvature = if first == second { one * (1.0 - one) } else { -one * other };
                    share * curvature * self.features[row * columns + column]
                });
                let block = product(matrix.transpose(), &weighted);
                hessian.as_mut().submatrix_mut(first * columns, second * columns, columns, columns).copy_from(&block);
            }
        }
        for place in 0..hessian.nrows() {
            hessian[(place, place)] += self.ridge;
        }
        let right = Mat::from_fn(gradient.len(), 1, |place, _| gradient[place]);
        let direction = hessian.llt(Side::Lower).ok()?.solve(&right);
        Some(direction.col(0).iter().copied().collect())
    }
}

/// Scores of one row and their normaliser.
struct Scores {
    scores: Vec<f64>,
    log_total: f64,
}

impl Scores {
    fn score(&self, output: usize) -> f64 {
        self.scores[output]
    }
}

/// `log sum e^z`; of one score beside a score of 0.
pub(crate) fn log_total(scores: &[f64]) -> f64 {
    let reference = if scores.len() == 1 { 0.0 } else { f64::NEG_INFINITY };
    let largest = scores.iter().copied().fold(reference, f64::max);
    let beside = if scores.len() == 1 { (-largest).exp() } else { 0.0 };
    largest + (scores.iter().map(|score| (score - largest).exp()).sum::<f64>() + beside).ln()
}

/// Probabilities of all classes of a row, from the scores of one output (two classes) or of one a class.
#[must_use]
pub fn probabilities(scores: &[f64]) -> Vec<f64> {
    let log_total = log_total(scores);
    let of_scores = scores.iter().map(|score| (score - log_total).exp());
    if scores.len() == 1 { std::iter::once((-log_total).exp()).chain(of_scores).collect() } else { of_scores.collect() }
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|value| value * value).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden weights from `scipy.optimize.minimize` (see `testdata/golden/soft_label_regression.py`).
    #[test]
    fn agrees_with_an_independent_solver() {
        let features: Vec<f64> = (0..8).flat_map(|row| [0.5, f64::from(row) / 8.0 - 0.4]).collect();
        let soft = [0.1, 0.3, 0.2, 0.55, 0.4, 0.7, 0.95, 0.8];
        let binary = SoftLabelRegression::new(&features, 2, 1, 0.01).expect("finite").minimise(&soft, 1e-11);
        for (found, expected) in binary.iter().zip(GOLDEN_BINARY) {
            assert!((found - expected).abs() < 1e-6, "{binary:?}");
        }
        let three: Vec<f64> = soft.iter().flat_map(|share| [share * 0.5, 1.0 - share, share * 0.5]).collect();
        let softmax = SoftLabelRegression::new(&features, 2, 3, 0.05).expect("finite").minimise(&three, 1e-11);
        for (found, expected) in softmax.iter().zip(GOLDEN_SOFTMAX) {
            assert!((found - expected).abs() < 1e-6, "{softmax:?}");
        }
    }

    const GOLDEN_BINARY: [f64; 2] = [-0.161_956_892, 2.549_954_685];
    const GOLDEN_SOFTMAX: [f64; 6] =
        [-0.318_691_929, 0.451_127_466, 0.637_383_87, -0.902_254_936, -0.318_691_929, 0.451_127_466];

    #[test]
    fn extreme_labels_and_tiny_penalties_still_end() {
        let features: Vec<f64> = (0..50).flat_map(|row| [0.6, 0.8 * (f64::from(row) / 25.0 - 0.98)]).collect();
        let labels: Vec<f64> = (0..50).map(|row| if row < 25 { 0.0 } else { 1.0 }).collect();
        for ridge in [1e-6, 1e-3, 1.0] {
            let problem = SoftLabelRegression::new(&features, 2, 1, ridge).expect("finite");
            let weights = problem.minimise(&labels, 1e-8);
            assert!(norm(&problem.value_and_gradient(&weights, &labels).1) <= 1e-8);
        }
        assert!(SoftLabelRegression::new(&features, 2, 1, 0.0).is_err());
        assert!(SoftLabelRegression::new(&[f64::NAN, 1.0], 2, 1, 1.0).is_err());
    }

    #[test]
    fn the_bounds_steps_come_to_the_same_minimum() {
        let features: Vec<f64> = (0..20).flat_map(|row| [0.5, (f64::from(row) * 0.7).sin() * 0.8]).collect();
        let labels: Vec<f64> = (0..20).flat_map(|row| probabilities(&[f64::from(row % 3), 0.5, 0.0])).collect();
        let problem = SoftLabelRegression::new(&features, 2, 3, 0.05).expect("finite");
        let (newton, bounded) = (problem.minimise(&labels, 1e-11), problem.approach(&labels, 400));
        for (one, other) in newton.iter().zip(&bounded) {
            assert!((one - other).abs() < 1e-6, "{newton:?} {bounded:?}");
        }
    }
}
