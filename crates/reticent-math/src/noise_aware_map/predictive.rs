//! From the likeliest weights to those that predict best.
//!
//! A mode is where weights are likeliest. Where noise hides the labels it is far out: of a rate that is between .1 and 1 for all that
//! the release says, the likeliest log-odds are several, and the mean rate is one half. What predicts best, in log loss, are the mean
//! probabilities under the posterior. So weights are those [nearest](super::nearest_weights) to them, and where the rates of the classes are hidden,
//! of which a posterior that is linear around a mode knows too little, intercepts are moved to the mean rates:
//!
//! ```text
//!   scores z + delta e_c,  p_c(delta) their means,  q(delta) the mean of those over rows
//!   r_c = t_c - mean of t over classes + D^T 1 / K,   C = D^T V D / m + S^2 (1 - 1/K) I              (one score: t alone, S^2 I)
//!   weight(delta) = exp(-(r_c - D^T p_c)^T C^-1 (r_c - D^T p_c) / 2) q^(-1/2) (1 - q)^((K - 3)/2) dq
//!   rate = sum weight q / sum weight, normalised over classes; intercepts move until the mean prediction is that
//! ```
//! with effects and `V` as they are likeliest. The prior of rates is Jeffreys', `Dirichlet(1/2)`, of which this is one class: under a uniform one
//! a class that noise hides would be predicted as often as noise allows, and tables have rare classes.

use faer::Mat;
use faer::linalg::solvers::{Llt, Solve};
use faer::reborrow::ReborrowMut;

use super::algebra::{NormalPart, dot, second_moments};
use super::mixture::Mixture;
use super::nearest_weights::nearest_weights;
use super::prior::weights_of;
use super::{MapError, Prior, ResponseModel, Statistic};
use crate::product::add_product;
use crate::sigmoid;
use crate::symmetric_factors::cholesky;

/// Variance of the log-odds of a mean rate, and of what effects add to a row's, below which modes and means are the same for all that matters.
const RATE_KNOWN: f64 = 0.02;
const EFFECTS_KNOWN: f64 = 0.05;
/// Shifts that are weighed: so far to both sides, in log-odds, in steps of this.
const REACH: f64 = 16.0;
const STEP: f64 = 0.25;
/// Steps toward intercepts that predict the rates, and when they are near enough.
const STEPS: usize = 100;
const NEAR: f64 = 1e-9;

/// The parameters that predict as a posterior of these parts does; `gram` is `X^T X`. Where it is narrow, the mean of the modes.
pub(super) fn predictive(
    modes: &Mixture<Llt<f64>>,
    parts: &[NormalPart<'_>],
    gram: &Mat<f64>,
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
) -> Result<Mat<f64>, MapError> {
    let likeliest = modes.cautious_mean();
    let Some((constant, value)) = prior.constant else { return Ok(likeliest) };
    let around = second_moments(&likeliest, parts);
    let [of_mean_row, of_rows] = score_variances(&around, gram, statistic.features.nrows(), model, prior);
    let mut parameters = if of_rows - of_mean_row > EFFECTS_KNOWN {
        nearest_weights(&modes.mean(), parts, modes.belief_in_nothing(), statistic, model, prior)?
    } else {
        likeliest.clone()
    };
    if of_mean_row > RATE_KNOWN {
        let scores = statistic.features.times(&weights_of(&likeliest, model, prior));
        let outputs = model.outputs();
        let mut rates: Vec<f64> =
            (0..outputs).map(|output| likely_rate(&scores, output, statistic)).collect::<Result<_, _>>()?;
        if outputs > 1 {
            let total: f64 = rates.iter().sum();
            rates.iter_mut().for_each(|rate| *rate /= total);
        }
        let scores = statistic.features.times(&weights_of(&parameters, model, prior));
        let (shifts, basis) = (shifts_to(&rates, &scores, model), model.basis());
        for contrast in 0..model.contrasts() {
            let shift: f64 = shifts.iter().enumerate().map(|(output, shift)| shift * basis[(output, contrast)]).sum();
            parameters[(contrast * statistic.features.ncols() + constant, 0)] += shift / value;
        }
    }
    Ok(parameters)
}

/// Variance of a score of the mean row, and its mean over all rows: of the one score, or of the contrasts on average.
fn score_variances(
    covariance: &Mat<f64>,
    gram: &Mat<f64>,
    rows: usize,
    model: ResponseModel,
    prior: &Prior,
) -> [f64; 2] {
    let columns = gram.ncols();
    let squares = gram * faer::Scale(1.0 / rows as f64);
    let (mut of_mean_row, mut of_rows) = (0.0, 0.0);
    for contrast in 0..model.contrasts() {
        let block = covariance.submatrix(contrast * columns, contrast * columns, columns, columns);
        of_mean_row += (prior.mean_row.transpose() * block * &prior.mean_row)[(0, 0)];
        let of_column = |column: usize| -> f64 {
            (0..columns).map(|other| block[(column, other)] * squares[(column, other)]).sum()
        };
        of_rows += (0..columns).map(of_column).sum::<f64>();
    }
    [of_mean_row, of_rows].map(|total| total / model.contrasts() as f64)
}

/// Posterior mean of the rate of an output.
fn likely_rate(scores: &Mat<f64>, output: usize, statistic: &Statistic<'_>) -> Result<f64, MapError> {
    let (rows, outputs) = (statistic.rows, scores.ncols());
    let (count, columns) = (rows.nrows(), rows.ncols());
    let classes = outputs.max(2) as f64;
    let log_odds: Vec<f64> = (0..count).map(|row| log_odds_of(scores, row, output)).collect();
    let of_labels = rows.sum((columns, columns), |sum, part, rows| {
        let log_odds = &log_odds[part];
        let scaled = Mat::from_fn(rows.nrows(), columns, |row, place| {
            let mean = sigmoid(log_odds[row]);
            rows[(row, place)] * mean * (1.0 - mean) / statistic.labels_per_row
        });
        add_product(sum, rows.transpose(), scaled);
    });
    // Sums of vectors, and the number of rows below them: at every shift times its means, and times 1.
    let points = (2.0 * REACH / STEP) as usize + 1;
    let shift = |point: usize| -REACH + STEP * point as f64;
    let sums = rows.sum((columns + 1, points + 1), |mut sum, part, rows| {
        let log_odds = &log_odds[part];
        let means = Mat::from_fn(rows.nrows(), points + 1, |row, point| {
            if point < points { sigmoid(log_odds[row] + shift(point)) } else { 1.0 }
        });
        add_product(sum.rb_mut().subrows_mut(0, columns), rows.transpose(), &means);
        (0..=points).for_each(|point| sum[(columns, point)] += means.col(point).sum());
    });

    // Votes of all classes add up to 1, and that is public.
    let known = if outputs > 1 { 1.0 / outputs as f64 } else { 0.0 };
    let released = Mat::from_fn(columns, 1, |place, _| {
        let others: f64 = (0..outputs).map(|output| statistic.released[(place, output)]).sum();
        statistic.released[(place, output)] + known * (sums[(place, points)] - others)
    });
    let noise = statistic.noise.powi(2) * (1.0 - known);
    let covariance = Mat::<f64>::identity(columns, columns) * faer::Scale(noise) + of_labels;
    let covariance = cholesky(&covariance).ok_or(MapError::Scale)?;
    let (mut rates, mut logs) = (Vec::with_capacity(points), Vec::with_capacity(points));
    for point in 0..points {
        let residual = &released - sums.col(point).subrows(0, columns).as_mat();
        let rate = (sums[(columns, point)] / count as f64).clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
        let prior = ((classes - 3.0) * (1.0 - rate).ln() - rate.ln()) / 2.0;
        logs.push(prior - dot(&residual, &covariance.solve(&residual)) / 2.0);
        rates.push(rate);
    }
    let best = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut mean, mut total) = (0.0, 0.0);
    for place in 0..points {
        let (before, after) = (rates[place.saturating_sub(1)], rates[(place + 1).min(points - 1)]);
        let weight = (logs[place] - best).exp() * (after - before);
        mean += weight * rates[place];
        total += weight;
    }
    if total > 0.0 { Ok(mean / total) } else { Err(MapError::Scale) }
}

/// Log-odds of an output of a row: a shift of its score is one of these. One score stands against a score of zero.
fn log_odds_of(scores: &Mat<f64>, row: usize, output: usize) -> f64 {
    if scores.ncols() == 1 {
        return scores[(row, 0)];
    }
    let others = || (0..scores.ncols()).filter(|other| *other != output).map(|other| scores[(row, other)]);
    let largest = others().fold(f64::NEG_INFINITY, f64::max);
    scores[(row, output)] - largest - others().map(|score| (score - largest).exp()).sum::<f64>().ln()
}

/// Shifts of all scores of each output after which the mean predictions are these rates.
fn shifts_to(rates: &[f64], scores: &Mat<f64>, model: ResponseModel) -> Vec<f64> {
    let mut shifts = vec![0.0; rates.len()];
    for _ in 0..STEPS {
        let predicted = MeanPredictions::of(scores, &shifts, model);
        let mut farthest: f64 = 0.0;
        for (output, shift) in shifts.iter_mut().enumerate() {
            let apart = rates[output] - predicted.rates[output];
            let step = (apart / predicted.slopes[output].max(f64::MIN_POSITIVE)).clamp(-1.0, 1.0);
            *shift += step;
            farthest = farthest.max(step.abs());
        }
        if farthest < NEAR {
            break;
        }
    }
    shifts
}

/// Mean predictions of the outputs over rows, and their mean derivatives by their own score.
struct MeanPredictions {
    rates: Vec<f64>,
    slopes: Vec<f64>,
}

impl MeanPredictions {
    fn of(scores: &Mat<f64>, shifts: &[f64], model: ResponseModel) -> Self {
        let rows = scores.nrows();
        let (mut rates, mut slopes) = (vec![0.0; shifts.len()], vec![0.0; shifts.len()]);
        let mut of_row = vec![0.0; shifts.len()];
        for row in 0..rows {
            for (output, score) in of_row.iter_mut().enumerate() {
                *score = scores[(row, output)] + shifts[output];
            }
            model.mean(&mut of_row);
            for (output, mean) in of_row.iter().enumerate() {
                rates[output] += mean / rows as f64;
                slopes[output] += mean * (1.0 - mean) / rows as f64;
            }
        }
        Self { rates, slopes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{fit, golden};
    use super::*;

    /// Rows that differ in nothing: the rate alone, `sin² x` with `x` uniform from 0 to a right angle under Jeffreys' prior. The labels' own
    /// variance is some hundredths of the noise's here, or less.
    #[test]
    fn a_rate_that_noise_hides_is_predicted_at_its_posterior_mean() {
        let features = Mat::<f64>::from_fn(100, 1, |_, _| 1.0);
        for (released, noise) in [(120.0, 60.0), (-40.0, 60.0), (50.0, 60.0), (95.0, 20.0), (2.0, 10.0)] {
            let sums = Mat::from_fn(1, 1, |_, _| released);
            let statistic = golden::statistic(&features, &features, &sums, noise);
            let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None);
            let weight = fit(&statistic, ResponseModel::Logistic, &prior).expect("bounded").weights[(0, 0)];
            let found = 1.0 / (1.0 + (-weight).exp());
            let (mut mean, mut total) = (0.0, 0.0);
            for place in 0..10_000 {
                let rate = ((f64::from(place) + 0.5) / 1e4 * std::f64::consts::FRAC_PI_2).sin().powi(2);
                let density = (-0.5 * ((released - 100.0 * rate) / noise).powi(2)).exp();
                mean += density * rate;
                total += density;
            }
            assert!((found - mean / total).abs() < 0.01, "{released} {noise}: {found} {}", mean / total);
        }
    }

    /// One vote in three goes to each class as far as noise lets one see, however far out the release is.
    #[test]
    fn rates_of_many_classes_add_up_to_one_and_are_drawn_together() {
        let features = Mat::<f64>::from_fn(100, 1, |_, _| 1.0);
        let sums = Mat::from_fn(1, 3, |_, class| [130.0, 20.0, -50.0][class]);
        let statistic = golden::statistic(&features, &features, &sums, 100.0);
        let model = ResponseModel::Multinomial { classes: 3 };
        let prior = Prior::new(features.as_ref(), model, None);
        let weights = fit(&statistic, model, &prior).expect("bounded").weights;
        let mut shares: Vec<f64> = (0..3).map(|class| weights[(0, class)]).collect();
        model.mean(&mut shares);
        assert!(shares[0] > shares[1] && shares[1] > shares[2], "{shares:?}");
        assert!(shares[0] < 0.5 && shares[2] > 0.2, "{shares:?}");
    }
}
