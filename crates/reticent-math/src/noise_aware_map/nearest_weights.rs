//! The weights whose probabilities are nearest to the mean probabilities of a posterior.
//!
//! What predicts best, in log loss, are the mean probabilities. No weights have them, where a posterior is wide; these come nearest, row by row:
//!
//! ```text
//!   P(x) = E softmax(theta x) over the posterior          Q = (1 - nothing) P + nothing (the mean of P over rows)
//!   theta = argmin  mean over rows of  -sum_k Q_k ln softmax(theta x)_k  +  e (theta - m)^T P_0 (theta - m) / 2
//! ```
//! Directions in which scores are known keep their weights, and the others are drawn in. A posterior that is narrow across the scores and wide along
//! their scale, of classes that can be told apart, keeps large scores: only its small ones are never far from a half.

use faer::Mat;

use super::algebra::{NormalPart, repeat, stack};
use super::prior::weights_of;
use super::{MapError, Prior, ResponseModel, Statistic};
use crate::fixed_sequence::FixedSequence;
use crate::lbfgs::{self, Stop};
use crate::product::product;
use crate::soft_label_regression::log_total;
use crate::symmetric_factors::{cholesky, eigen};

/// Rows that are predicted; of a longer table, rows that are spread over it.
const ROWS_MAX: usize = 10_000;
/// Pairs of opposite draws for the whole posterior, and the share below which a part of it has none.
const PAIRS: f64 = 128.0;
const SHARE_LEAST: f64 = 1e-3;
const SEED: u64 = 174;
/// `e`, what decides only between weights with the same probabilities, and the scale of the prior whose precision is `P_0`.
const TIE: f64 = 1e-8;
const TIE_SCALE: f64 = 1.0;
const STOP: Stop = Stop { gradient: 1e-8, decrease: 1e-9, evaluations: 2_000 };

/// Parameters (less the prior's centre) near `middle`, which is `m`, for a posterior of these parts; `nothing` is the belief that effects are
/// next to nothing, beside the posterior.
pub(super) fn nearest_weights(
    middle: &Mat<f64>,
    parts: &[NormalPart<'_>],
    nothing: f64,
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
) -> Result<Mat<f64>, MapError> {
    let rows = statistic.features.spread(ROWS_MAX);
    let probabilities = mean_probabilities(&rows, parts, model, prior)?;
    let count = rows.nrows() as f64;
    let rates: Vec<f64> = (0..model.outputs()).map(|output| probabilities.col(output).sum() / count).collect();
    let target = Mat::from_fn(rows.nrows(), rates.len(), |row, output| {
        probabilities[(row, output)] + nothing * (rates[output] - probabilities[(row, output)])
    });

    // Parameters are `m + L^-T u`, `P_0 = L L^T`: columns of one variance.
    let precision = repeat(&prior.precision(TIE_SCALE), model.contrasts());
    let factor = cholesky(&precision).ok_or(MapError::Scale)?;
    let basis = model.basis();
    let parameters_at = |place: &[f64]| {
        let mut away = Mat::from_fn(place.len(), 1, |index, _| place[index]);
        factor.L().transpose().solve_upper_triangular_in_place(away.as_mut());
        away + middle
    };
    let objective = |place: &[f64], slope: &mut [f64]| {
        let mut residuals = product(&rows, weights_of(&parameters_at(place), model, prior));
        let mut loss = 0.0;
        for row in 0..residuals.nrows() {
            loss += to_residuals(&mut residuals, &target, row);
        }
        let mut slopes = stack((product(rows.transpose(), &residuals) * &basis).as_ref());
        factor.L().solve_lower_triangular_in_place(slopes.as_mut());
        for ((slope, place), of_loss) in slope.iter_mut().zip(place).zip(slopes.col(0).iter()) {
            loss += count * TIE * place * place / 2.0;
            *slope = of_loss / count + TIE * place;
        }
        loss / count
    };
    // Of classes that are told apart by columns that go together the way down may not end. What is left of it changes no prediction to speak of.
    let descended = lbfgs::descend(vec![0.0; middle.nrows()], objective, STOP).map_err(|_| MapError::Scale)?;
    Ok(parameters_at(&descended.point))
}

/// `P`, rows × outputs, over fixed draws from the posterior.
fn mean_probabilities(
    rows: &Mat<f64>,
    parts: &[NormalPart<'_>],
    model: ResponseModel,
    prior: &Prior,
) -> Result<Mat<f64>, MapError> {
    let outputs = model.outputs();
    let mut sequence = FixedSequence::new(SEED);
    let (mut sum, mut total) = (Mat::<f64>::zeros(rows.nrows(), outputs), 0.0);
    let mut of_row = vec![0.0; outputs];
    for part in parts.iter().filter(|part| part.share >= SHARE_LEAST) {
        let root = root(&part.covariance)?;
        let pairs = (part.share * PAIRS).ceil();
        let weight = part.share / (2.0 * pairs);
        total += part.share;
        for _ in 0..pairs as usize {
            let draw = Mat::from_fn(root.ncols(), 1, |_, _| sequence.next_normal());
            let away = &root * draw;
            for parameters in [part.mean + &away, part.mean - &away] {
                let scores = product(rows, weights_of(&parameters, model, prior));
                for row in 0..rows.nrows() {
                    of_row.iter_mut().zip(scores.row(row).iter()).for_each(|(place, score)| *place = *score);
                    model.mean(&mut of_row);
                    of_row.iter().enumerate().for_each(|(output, mean)| sum[(row, output)] += weight * mean);
                }
            }
        }
    }
    Ok(sum * faer::Scale(1.0 / total))
}

/// `R` with `R R^T` next to a covariance. One that is the difference of larger matrices may have correlations a little beyond one: where rounding
/// has left less than nothing, there is nothing.
fn root(covariance: &Mat<f64>) -> Result<Mat<f64>, MapError> {
    let deviations: Vec<f64> =
        covariance.diagonal().column_vector().iter().map(|variance| variance.max(0.0).sqrt()).collect();
    let inverse = |place: usize| if deviations[place] > 0.0 { 1.0 / deviations[place] } else { 0.0 };
    let correlations = Mat::from_fn(covariance.nrows(), covariance.ncols(), |row, column| {
        covariance[(row, column)] * inverse(row) * inverse(column)
    });
    let eigen = eigen(correlations.as_ref()).ok_or(MapError::Scale)?;
    let values = eigen.S().column_vector();
    Ok(Mat::from_fn(covariance.nrows(), covariance.ncols(), |row, column| {
        deviations[row] * eigen.U()[(row, column)] * values[column].max(0.0).sqrt()
    }))
}

/// Turns the scores of a row into its probabilities less the target's, and returns its loss. One score stands against a score of zero.
fn to_residuals(scores: &mut Mat<f64>, target: &Mat<f64>, row: usize) -> f64 {
    let of_row: Vec<f64> = scores.row(row).iter().copied().collect();
    let log_total = log_total(&of_row);
    let mut loss = log_total;
    for (output, score) in of_row.into_iter().enumerate() {
        loss -= target[(row, output)] * score;
        scores[(row, output)] = (score - log_total).exp() - target[(row, output)];
    }
    loss
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::golden;
    use super::*;

    /// Weights of a posterior, given by its mean and a variance of every parameter, on the rows of `golden`.
    fn weights(mean: &[f64], variance: f64, nothing: f64, model: ResponseModel) -> Mat<f64> {
        let data = golden::data();
        let released = Mat::zeros(3, model.outputs());
        let prior = Prior::new(data.features.as_ref(), model, None);
        let mean = Mat::from_fn(mean.len(), 1, |row, _| mean[row]);
        let covariance = Mat::<f64>::identity(mean.nrows(), mean.nrows()) * faer::Scale(variance);
        let part = NormalPart { share: 1.0, mean: &mean, covariance: Cow::Owned(covariance) };
        let middle = Mat::zeros(mean.nrows(), 1);
        nearest_weights(&middle, &[part], nothing, &data.statistic(&released), model, &prior).expect("finite")
    }

    /// Scores of small differences of columns, under large and small weights that are hardly known: the way down is longer than anybody would wait for.
    #[test]
    fn weights_that_are_still_on_their_way_are_weights() {
        let mut sequence = FixedSequence::new(4);
        let mut rows = Mat::from_fn(60, 30, |_, _| sequence.next_uniform());
        for column in 1..30 {
            let near = 10f64.powi(-(column as i32 % 5));
            (0..60).for_each(|row| rows[(row, column)] = rows[(row, column - 1)] + near * rows[(row, column)]);
        }
        let released = Mat::zeros(30, 3);
        let statistic = golden::statistic(&rows, &rows, &released, 1.0);
        let prior = Prior::new(rows.as_ref(), THREE_CLASSES, None);
        let mean = Mat::from_fn(60, 1, |_, _| 300.0 * sequence.next_normal());
        let covariance = Cow::Owned(Mat::<f64>::identity(60, 60) * faer::Scale(1e4));
        let parts = [NormalPart { share: 1.0, mean: &mean, covariance }];
        let target = mean_probabilities(&rows, &parts, THREE_CLASSES, &prior).expect("finite");
        let start = Mat::zeros(60, 1);
        let found = nearest_weights(&start, &parts, 0.0, &statistic, THREE_CLASSES, &prior).expect("finite");
        let loss = |parameters: &Mat<f64>| -> f64 {
            let mut scores = &rows * weights_of(parameters, THREE_CLASSES, &prior);
            (0..60).map(|row| to_residuals(&mut scores, &target, row)).sum::<f64>() / 60.0
        };
        assert!(loss(&found) < 0.6 * loss(&start), "{} {}", loss(&found), loss(&start));
    }

    const THREE_CLASSES: ResponseModel = ResponseModel::Multinomial { classes: 3 };

    #[test]
    fn weights_that_are_known_are_found_again() {
        let two = [0.4, -2.0, 1.0];
        let three = [0.4, -2.0, 1.0, -0.3, 0.5, 1.5];
        let found = weights(&two, 1e-10, 0.0, ResponseModel::Logistic);
        golden::assert_close(found.as_ref(), &two, 1e-4);
        let found = weights(&three, 1e-10, 0.0, THREE_CLASSES);
        golden::assert_close(found.as_ref(), &three, 1e-4);
    }

    #[test]
    fn effects_go_where_they_are_believed_to_be_nothing() {
        for (mean, model) in
            [(vec![0.4, -2.0, 1.0], ResponseModel::Logistic), (vec![0.4, -2.0, 1.0, -0.3, 0.5, 1.5], THREE_CLASSES)]
        {
            let found = weights(&mean, 1e-10, 1.0, model);
            for column in 0..mean.len() {
                assert!(column % 3 == 0 || found[(column, 0)].abs() < 1e-4, "{column}: {}", found[(column, 0)]);
            }
        }
    }

    #[test]
    fn a_covariance_that_rounding_took_beyond_one_has_a_root() {
        for covariance in [
            [[5.6, 1.1, 0.0], [1.1, 0.4, 0.0], [0.0, 0.0, 2.0]],
            [
                [8.979019125676373, -0.0004601831467931618, 0.0],
                [-0.0004601831467082435, 2.3584438054029216e-8, 0.0],
                [0.0; 3],
            ],
            [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, -1e-18]],
        ] {
            let covariance = Mat::from_fn(3, 3, |row, column| covariance[row][column]);
            let root = root(&covariance).expect("finite");
            let again = &root * root.transpose();
            for (row, column) in (0..9).map(|place| (place / 3, place % 3)) {
                let scale = (covariance[(row, row)] * covariance[(column, column)]).abs().sqrt();
                let error = again[(row, column)] - covariance[(row, column)];
                assert!(error.abs() <= 1e-5 * scale + 1e-15, "{row} {column}: {error}");
            }
        }
    }

    /// By MacKay's approximation a score of mean m and variance v is seen as `m / sqrt(1 + pi v / 8)`; all rows have one score here.
    #[test]
    fn effects_that_are_known_badly_are_drawn_in() {
        let rows = Mat::<f64>::from_fn(8, 1, |_, _| 1.0);
        let released = Mat::zeros(1, 1);
        let statistic = golden::statistic(&rows, &rows, &released, 1.0);
        let prior = Prior::new(rows.as_ref(), ResponseModel::Logistic, None);
        for (score, variance) in [(1.0, 0.5), (2.0, 4.0)] {
            let mean = Mat::from_fn(1, 1, |_, _| score);
            let covariance = Cow::Owned(Mat::from_fn(1, 1, |_, _| variance));
            let part = NormalPart { share: 1.0, mean: &mean, covariance };
            let found = nearest_weights(&mean, &[part], 0.0, &statistic, ResponseModel::Logistic, &prior);
            let (found, expected) =
                (found.expect("finite")[(0, 0)], score / (1.0 + std::f64::consts::PI * variance / 8.0f64).sqrt());
            // The approximation is good to some per cent, and so are 128 pairs of draws.
            assert!((found / expected - 1.0).abs() < 0.08, "{score} {variance}: {found} {expected}");
        }
    }
}
