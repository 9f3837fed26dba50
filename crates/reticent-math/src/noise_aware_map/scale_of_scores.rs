//! The posterior along the common scale of all scores.
//!
//! Means level off as scores grow: of how large large scores are a release says little, and less the larger they are. Linear around a
//! mode, it seems to say as much of larger scores as of those there, and all coefficients are too sure at once. So the release is
//! linearised anew at one scale after another, and the posterior is put together from slices.
//!
//! ```text
//!   s = u^T theta,  u = G (weights at the mean of the modes),  G the columns' variances: s is in proportion to the scores' spread
//!   slice at s:  density  p(t) N(s; u^T m, u^T S u),  mean  m + S u (s - u^T m)/(u^T S u),  covariance  S - S u u^T S/(u^T S u)
//! ```
//! with `m`, `S` and `p(t)` the normal posterior and the likelihood of the release linearised at the slice, added up over scales of the
//! prior and both beliefs about effects. A release that is linear has the same of all three everywhere, and the slices add up to its posterior.

use std::borrow::Cow;

use faer::Mat;
use faer::linalg::solvers::{Llt, Solve};

use super::algebra::{NormalPart, dot, second_moments, stack};
use super::information::Information;
use super::linearised::Linearised;
use super::mixture::{self, Choice, Component, Mixture};
use super::prior::PriorPrecision;
use super::{MapError, Prior, ResponseModel, Statistic};
use crate::symmetric_factors::cholesky;

/// What the posterior is where scores have one scale.
struct Slice {
    scale: f64,
    log_density: f64,
    mean: Mat<f64>,
    covariance: Mat<f64>,
    /// Derivative of the mean by the scale.
    direction: Mat<f64>,
    /// Standard deviation of the scale, as it looks from here.
    deviation: f64,
}

/// Slices from small scales to large ones.
pub(super) struct Slices(Vec<Slice>);

/// Where slices are made.
struct Line<'a> {
    statistic: &'a Statistic<'a>,
    model: ResponseModel,
    prior: &'a Prior,
    /// Scales of the prior and kinds of effects, and its precision under each.
    choices: Vec<(Choice, PriorPrecision)>,
    /// `u`.
    functional: Mat<f64>,
}

impl Slices {
    /// Through the mean of the modes, outward as long as the density is worth it. None where the scale is known well: means are as good as linear
    /// then, and every slice takes the time of a step of the fit.
    pub(super) fn of(
        statistic: &Statistic<'_>,
        model: ResponseModel,
        prior: &Prior,
        modes: &Mixture<Llt<f64>>,
    ) -> Result<Option<Self>, MapError> {
        let mean = modes.mean();
        let weights = stack((&prior.centre * model.basis()).as_ref()) + &mean;
        let functional = prior.times_spread(&weights);
        let variance = dot(&functional, &modes.likeliest().precision.solve(&functional));
        if variance.sqrt() <= KNOWN * dot(&functional, &weights) {
            return Ok(None);
        }
        let under = |choice: Choice| (choice, prior.precision_of_all(choice.tau, choice.effects, model));
        let choices = modes.0.iter().map(|component| under(component.choice)).collect();
        let line = Line { statistic, model, prior, choices, functional };
        let middle = line.slice(&mean)?;
        let (mut best, mut ways) = (middle.log_density, [Vec::new(), Vec::new()]);
        for (sign, way) in [-1.0, 1.0].into_iter().zip(&mut ways) {
            while way.len() < SLICES_MAX {
                let last = way.last().unwrap_or(&middle);
                if last.log_density < best - NEGLIGIBLE {
                    break;
                }
                let next = &last.mean + &last.direction * faer::Scale(sign * STRIDE * last.deviation);
                let next = line.slice(&next)?;
                best = best.max(next.log_density);
                way.push(next);
            }
        }
        let [smaller, larger] = ways;
        Ok(Some(Self(smaller.into_iter().rev().chain([middle]).chain(larger).collect())))
    }

    /// What the posterior is in each slice.
    pub(super) fn parts(&self) -> impl Iterator<Item = NormalPart<'_>> {
        self.0.iter().zip(self.shares()).map(|(slice, share)| NormalPart {
            share,
            mean: &slice.mean,
            covariance: Cow::Borrowed(&slice.covariance),
        })
    }

    /// The posterior's share of each slice, by the trapezium rule.
    fn shares(&self) -> Vec<f64> {
        let slices = &self.0;
        let best = slices.iter().map(|slice| slice.log_density).fold(f64::NEG_INFINITY, f64::max);
        let mass = |at: usize| {
            let (before, after) = (slices[at.saturating_sub(1)].scale, slices[(at + 1).min(slices.len() - 1)].scale);
            (slices[at].log_density - best).exp() * (after - before)
        };
        let masses: Vec<f64> = (0..slices.len()).map(mass).collect();
        let total: f64 = masses.iter().sum();
        masses.iter().map(|mass| mass / total).collect()
    }
}

impl Line<'_> {
    /// The slice through some parameters, linearised there.
    fn slice(&self, parameters: &Mat<f64>) -> Result<Slice, MapError> {
        let point = Linearised::at(self.statistic, self.model, self.prior, parameters);
        let covariance = cholesky(&point.covariance).ok_or(MapError::Scale)?;
        let information = Information::new(&point, &covariance);
        let scale = dot(&self.functional, parameters);
        let mut parts = Vec::with_capacity(self.choices.len());
        for (choice, precision) in &self.choices {
            parts.push(Part::of(information.posterior(precision, *choice)?, &self.functional, scale));
        }
        let best = parts.iter().map(|part| part.log_density).fold(f64::NEG_INFINITY, f64::max);
        // An inverse takes the time of the rest together.
        parts.retain(|part| part.log_density >= best - mixture::NEGLIGIBLE);
        let total: f64 = parts.iter().map(|part| (part.log_density - best).exp()).sum();
        let log_density = best + total.ln();
        let share = |part: &Part| (part.log_density - log_density).exp();
        let size = parameters.nrows();
        let zero = || Mat::<f64>::zeros(size, 1);
        let (mut mean, mut direction, mut variance) = (zero(), zero(), 0.0);
        for part in &parts {
            mean += &part.mean * faer::Scale(share(part));
            direction += &part.direction * faer::Scale(share(part));
            variance += share(part) * part.variance;
        }
        let normal = parts.iter().map(|part| NormalPart {
            share: share(part),
            mean: &part.mean,
            covariance: Cow::Owned(part.covariance()),
        });
        let covariance = second_moments(&mean, normal);
        Ok(Slice { scale, log_density, mean, covariance, direction, deviation: variance.sqrt() })
    }
}

/// A slice under one scale of the prior.
struct Part {
    log_density: f64,
    mean: Mat<f64>,
    direction: Mat<f64>,
    /// Of the scale.
    variance: f64,
    /// Of all scales of the scores.
    posterior: Component<Llt<f64>>,
}

impl Part {
    fn of(posterior: Component<Llt<f64>>, functional: &Mat<f64>, scale: f64) -> Self {
        let image = posterior.precision.solve(functional);
        let variance = dot(functional, &image);
        let direction = image * faer::Scale(1.0 / variance);
        let apart = scale - dot(functional, &posterior.mean);
        Self {
            log_density: posterior.log_weight - apart * apart / (2.0 * variance) - variance.ln() / 2.0,
            mean: &posterior.mean + &direction * faer::Scale(apart),
            direction,
            variance,
            posterior,
        }
    }

    fn covariance(&self) -> Mat<f64> {
        self.posterior.covariance() - &self.direction * self.direction.transpose() * faer::Scale(self.variance)
    }
}

/// Standard deviation of the scale over the scale, up to which it is known well: what is lopsided is as much of the variance squared. Weights of zero have no
/// scale, and no deviation of it.
const KNOWN: f64 = 0.05;
/// Slices on a side; how far apart they are, in standard deviations of the scale; and how far below the best a density is not worth the next.
const SLICES_MAX: usize = 16;
const STRIDE: f64 = 1.0;
const NEGLIGIBLE: f64 = 7.0;

#[cfg(test)]
mod tests {
    use super::super::descent::{CLOSE, Descent};
    use super::super::effect_sizes::Effects;
    use super::super::golden;
    use super::super::predictive::predictive;
    use super::*;

    /// Large effects under noise that leaves their scale open. Around the modes alone deviations are half as large, and the mean of the weights is half
    /// as far out again as those that predict best.
    #[test]
    fn weights_and_second_moments_are_those_of_the_exact_posterior() {
        let text = include_str!("../../../../testdata/golden/scale_of_scores.json");
        let golden: serde_json::Value = serde_json::from_str(text).expect("golden values");
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
        };
        let features = Mat::from_fn(400, 3, |row, column| match column {
            0 => 1.0,
            1 => 1.4 * (row as f64 * 1.7).sin(),
            _ => 1.4 * (row as f64 * 2.9 + 0.3).cos(),
        });
        let rows = &features * faer::Scale(1.0 / crate::public_rows::PublicRows::from(features.as_ref()).longest_row());
        let released = numbers(&golden["released"]);
        let released = Mat::from_fn(3, 1, |row, _| released[row]);
        let statistic = golden::statistic(&features, &rows, &released, golden["noise"].as_f64().expect("a number"));
        let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None);
        let model = ResponseModel::Logistic;
        let mut descent = Descent::start(&statistic, model, &prior, None).expect("finite");
        let modes = descent.descend(Effects::OfOneSize, CLOSE).expect("bounded");
        let slices = Slices::of(&statistic, model, &prior, &modes).expect("definite").expect("an open scale");
        let parts: Vec<NormalPart<'_>> = slices.parts().collect();
        let gram = features.transpose() * &features;
        let weights = predictive(&modes, &parts, &gram, &statistic, model, &prior).expect("bounded");
        let moments = second_moments(&weights, &parts);
        let mean = numbers(&golden["mean"]);
        let covariance = golden["covariance"].as_array().expect("rows");
        for (row, of_row) in covariance.iter().enumerate() {
            let apart = mean[row] - weights[(row, 0)];
            let (found, expected) = (moments[(row, row)], numbers(of_row)[row] + apart * apart);
            // Slices are normal within.
            assert!((found / expected).sqrt() > 0.9 && (found / expected).sqrt() < 1.1, "{row}: {found} {expected}");
        }
        let nearest = numbers(&golden["nearest"]);
        for (row, expected) in nearest.iter().enumerate() {
            let found = weights[(row, 0)];
            assert!((found - expected).abs() < 0.05 * nearest[1], "{row}: {found} {expected}");
        }
    }
}
