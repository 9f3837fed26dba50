//! Models whose means are linear: one exact fit per prior scale and label variance.

use std::rc::Rc;

use faer::Mat;
use faer::linalg::solvers::Llt;

use super::algebra::dot;
use super::collinearity::Collinearity;
use super::effect_sizes::{Effects, with_effect_sizes};
use super::information::Information;
use super::linearised::Linearised;
use super::mixture::{Choice, Mixture, TAU_STEPS};
use super::spectrum::{OfSpectrum, Spectrum};
use super::{Estimate, MapError, Prior, ResponseModel, Statistic};
use crate::public_design::symmetric;
use crate::symmetric_factors::cholesky;

/// One linear fit per prior scale and label variance, with effects of one size, then with the sizes that these suggest: each is exact.
pub(super) fn fit_linear(statistic: &Statistic<'_>, prior: &Prior) -> Result<Estimate, MapError> {
    let mut linear = LinearModel::new(statistic, prior.clone());
    let mixture = linear.of_one_size()?;
    let rows = statistic.features.nrows();
    // As of classes: see `fit_curved`.
    let added = Collinearity::of(&linear.gram, rows, ResponseModel::Linear, prior)?.added(&mixture)?;

    let (log_variance, log_spread) = mixture.log_variance();
    let information = Information::new(&linear.point, &linear.covariance(log_variance.exp())?);
    linear.prior = with_effect_sizes(prior, &information, ResponseModel::Linear, mixture.tau())?;
    // Effects of other sizes leave about the same variance.
    let of_own_sizes = linear.grid(log_variance, (4.0 * log_spread).max(0.04), Effects::OfOwnSizes)?;
    let mixture = mixture.evenly_with(of_own_sizes);

    let mean = mixture.cautious_mean();
    let covariance = mixture.second_moments(&mean) + added;
    Ok(mixture.estimate(&mean, &covariance, ResponseModel::Linear, prior))
}

struct LinearModel<'a> {
    statistic: &'a Statistic<'a>,
    prior: Prior,
    /// `D^T D`.
    square: Mat<f64>,
    /// `X^T X`.
    gram: Mat<f64>,
    /// At the prior's centre.
    point: Linearised,
}

impl<'a> LinearModel<'a> {
    fn new(statistic: &'a Statistic<'a>, prior: Prior) -> Self {
        let jacobian = statistic.rows.transpose_times(statistic.features);
        let residual = statistic.released - &jacobian * &prior.centre;
        let square = symmetric(&statistic.rows.transpose_times(statistic.rows));
        let gram = statistic.features.transpose_times(statistic.features);
        let point =
            Linearised { parameters: Mat::zeros(jacobian.ncols(), 1), residual, jacobian, covariance: Mat::new() };
        Self { statistic, prior, square, gram, point }
    }

    /// One posterior for each scale of the prior and each variance that is likely, with effects of one size.
    fn of_one_size(&self) -> Result<Mixture<OfSpectrum>, MapError> {
        const COARSE: f64 = 0.94;
        const COARSE_STEPS: i32 = 12;
        const LEVELS: u32 = 3;
        let mut mixture = Mixture::default();
        for step in 0..COARSE_STEPS {
            self.add((-f64::from(step) * COARSE).exp(), Effects::OfOneSize, &mut mixture)?;
        }
        // With the sum of squares the variance is known to much better than a step of this grid: each further grid finds its place between two steps
        // of the one before, and the last one is as wide as its posterior, two standard deviations to either side.
        let mut step = COARSE;
        for level in 0..LEVELS {
            let (log_middle, log_spread) = mixture.log_variance();
            let width = if level == 0 { log_spread.max(step) } else { (2.0 * log_spread).max(step) };
            mixture = self.grid(log_middle, width, Effects::OfOneSize)?;
            step = width / f64::from(STEPS);
        }
        Ok(mixture)
    }

    /// One for each scale of the prior and each of some variances around one, at most so far from it in logarithms.
    fn grid(&self, log_middle: f64, width: f64, effects: Effects) -> Result<Mixture<OfSpectrum>, MapError> {
        let mut mixture = Mixture::default();
        for step in -STEPS..=STEPS {
            let log_variance = log_middle + width * f64::from(step) / f64::from(STEPS);
            self.add(log_variance.exp().min(1.0), effects, &mut mixture)?;
        }
        Ok(mixture)
    }

    /// Of the release, where labels have this variance around their mean.
    fn covariance(&self, variance: f64) -> Result<Llt<f64>, MapError> {
        let outputs = self.square.nrows();
        let covariance = &self.square * faer::Scale(variance / self.statistic.labels_per_row)
            + Mat::<f64>::identity(outputs, outputs) * faer::Scale(self.statistic.noise.powi(2));
        cholesky(&covariance).ok_or(MapError::Scale)
    }

    fn add(&self, variance: f64, effects: Effects, mixture: &mut Mixture<OfSpectrum>) -> Result<(), MapError> {
        let information = Information::new(&self.point, &self.covariance(variance)?);
        let spectrum = Rc::new(Spectrum::of(&information, &self.prior, effects)?);
        let square = self.statistic.square.map(|square| (square, spectrum.forms(&self.gram)));
        for step in 0..TAU_STEPS {
            let mut component = spectrum.posterior(&self.prior, Choice::of_scale(step, effects, variance, &self.prior));
            if let Some((square, forms)) = &square {
                // E sum (x theta)^2 under the posterior, plus the labels' own variance.
                let weights = &component.mean + &self.prior.centre;
                let explained = dot(&weights, &(&self.gram * &weights)) + component.precision.trace(forms);
                let rows = self.statistic.features.nrows() as f64;
                let expected = explained + rows * variance;
                let error = square.noise.powi(2) + 2.0 * rows * variance * variance;
                component.log_weight -= (square.value - expected).powi(2) / (2.0 * error) + error.ln() / 2.0;
            }
            mixture.push(component);
        }
        Ok(())
    }
}

/// Steps of a grid of variances to either side: of a posterior as wide as half of it or less, the mean and the spread are as good as those of its density.
const STEPS: i32 = 4;

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::super::mixture::Precision;
    use super::*;

    #[test]
    fn linear_posterior_and_evidence_agree_with_an_independent_computation() {
        let data = golden::data();
        let released = data.linear_release();
        let statistic = data.statistic(&released);
        let prior = Prior::new(data.features.as_ref(), ResponseModel::Linear, None);
        let mut mixture = Mixture::default();
        LinearModel::new(&statistic, prior).add(0.25, Effects::OfOneSize, &mut mixture).expect("small");
        let of_scale = mixture.0.iter().find(|component| (component.choice.tau - 0.16).abs() < 1e-12);
        let component = of_scale.expect("0.01 · 2^4 is tried");
        golden::assert_close(component.mean.as_ref(), &golden::LINEAR_MEAN, 1e-9);
        let covariance = component.precision.solved(Mat::identity(3, 3).as_ref());
        let deviations = Mat::from_fn(3, 1, |row, _| covariance[(row, row)].sqrt());
        golden::assert_close(deviations.as_ref(), &golden::LINEAR_DEVIATION, 1e-9);
        let evidence = component.log_weight - component.choice.log_prior;
        assert!((evidence - golden::LINEAR_LOG_EVIDENCE).abs() < 1e-9, "{evidence}");
    }
}
