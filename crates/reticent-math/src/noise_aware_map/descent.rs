//! Models whose means are curved: the mode, sought by descent under every scale of the prior.

use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, Side};

use super::algebra::{NormalPart, dot, log_determinant, second_moments, stack};
use super::collinearity::Collinearity;
use super::effect_sizes::{Effects, with_effect_sizes};
use super::information::Information;
use super::linearised::{Linearised, residual};
use super::mixture::{Choice, Component, Mixture, NEGLIGIBLE, TAU_STEPS};
use super::predictive::predictive;
use super::prior::PriorPrecision;
use super::row_sample::RowSample;
use super::scale_of_scores::Slices;
use super::{Estimate, MapError, Prior, ResponseModel, Statistic};
use crate::symmetric_factors::cholesky;

/// The mode under each scale of the prior, with the posterior and the marginal likelihood of the release that is treated as linear around it
/// (Laplace's approximation): with effects of one size, then with the sizes that these suggest. Around one point for all scales, large effects would
/// be judged where slopes are still steep, and small scales would get too much of a say.
///
/// The estimate is that of the weights that predict best, with a start of the mean of both, and has the second moments of the posterior about it.
pub(super) fn fit_curved(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior) -> Result<Estimate, MapError> {
    let sample = RowSample::of_long_table(statistic);
    let modes = modes_of_one_size(statistic, model, prior, sample.as_ref())?;
    let features = statistic.features;
    let gram = features.transpose_times(features);
    // Under sizes of their own the prior of a column may be too wide to be made wider by what one size leaves.
    let added = Collinearity::of(&gram, features.nrows(), model, prior)?.added(&modes)?;

    let near = modes.mean();
    let point = Linearised::at(statistic, model, prior, &near);
    let covariance = cholesky(&point.covariance).ok_or(MapError::Scale)?;
    let information = Information::new(&point, &covariance);
    let prior = &with_effect_sizes(prior, &information, model, modes.tau())?;
    let start = Descent::start(statistic, model, prior, sample.as_ref())?;
    let mut descent = Descent { parameters: near, point: Some(point), ..start };
    let modes = modes.evenly_with(descent.descend(Effects::OfOwnSizes, CLOSE)?);

    let slices = Slices::of(statistic, model, prior, &modes)?;
    let parts: Vec<NormalPart<'_>> =
        slices.as_ref().map_or_else(|| modes.parts().collect(), |slices| slices.parts().collect());
    // A start is a belief in its rates and effects, and noise leaves them as they are.
    let weights = if prior.centre.norm_max() > 0.0 {
        modes.cautious_mean()
    } else {
        predictive(&modes, &parts, &gram, statistic, model, prior)?
    };
    Ok(modes.estimate(&weights, &(second_moments(&weights, &parts) + added), model, prior))
}

/// The modes under every scale of effects that are of one size.
///
/// A public start may be wrong, and sure of it: steps from there, too, see means of 0 or 1, and can end far from everything. So with a start
/// the way is gone from zero weights as well, and the end that is likelier, release and prior together, is kept.
fn modes_of_one_size(
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
    sample: Option<&RowSample>,
) -> Result<Mixture<Llt<f64>>, MapError> {
    let start = || Descent::start(statistic, model, prior, sample);
    let mut from_start = start()?;
    if prior.centre.norm_max() == 0.0 {
        return from_start.descend(Effects::OfOneSize, CLOSE);
    }
    let zero = stack((&prior.centre * model.basis()).as_ref()) * faer::Scale(-1.0);
    let from_zero = Descent { parameters: zero, ..start()? };
    let ends = [from_start, from_zero].map(|mut descent| {
        let target = descent.descend(Effects::OfOneSize, CLOSE)?;
        Ok::<_, MapError>((descent.cost(&target)?, target))
    });
    let likelier = ends.into_iter().flatten().min_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(likelier.ok_or(MapError::Scale)?.1)
}

/// The way to the mode: present parameters (less the prior's centre) and the covariance that steps are weighed with.
pub(super) struct Descent<'a> {
    statistic: &'a Statistic<'a>,
    model: ResponseModel,
    prior: &'a Prior,
    sample: Option<&'a RowSample>,
    parameters: Mat<f64>,
    /// At these parameters, where it is known: a mode under one scale is where the way to the next begins.
    point: Option<Linearised>,
    covariance: Llt<f64>,
}

impl<'a> Descent<'a> {
    pub(super) fn start(
        statistic: &'a Statistic<'a>,
        model: ResponseModel,
        prior: &'a Prior,
        sample: Option<&'a RowSample>,
    ) -> Result<Self, MapError> {
        let parameters = Mat::zeros(prior.centre.nrows() * model.contrasts(), 1);
        // Replaced at the first point.
        let covariance = Mat::<f64>::identity(1, 1).llt(Side::Lower).map_err(|_| MapError::Scale)?;
        Ok(Self { statistic, model, prior, sample, parameters, point: None, covariance })
    }

    /// The posterior at the mode under every scale that is not far less likely than another: outward from the scale that is believed in, each to
    /// within the square root of `close` standard deviations.
    pub(super) fn descend(&mut self, effects: Effects, close: f64) -> Result<Mixture<Llt<f64>>, MapError> {
        let choices = (0..TAU_STEPS).map(|step| Choice::of_scale(step, effects, 0.0, self.prior)).collect::<Vec<_>>();
        let believed =
            |(_, one): &(usize, &Choice), (_, other): &(usize, &Choice)| one.log_prior.total_cmp(&other.log_prior);
        let (middle, _) = choices.iter().enumerate().max_by(believed).expect("some scales");
        let mut posteriors = Mixture::default();
        posteriors.push(self.mode(choices[middle], close)?);
        let start = (self.parameters.clone(), self.point.clone());
        let (smaller, larger) = (choices[..middle].iter().rev().copied(), choices[middle + 1..].iter().copied());
        for way in [smaller.collect::<Vec<_>>(), larger.collect()] {
            (self.parameters, self.point) = start.clone();
            let mut is_past = false;
            for choice in way {
                // Beside the prior of scales there is a belief in the smallest.
                if is_past && !choice.is_smallest() {
                    continue;
                }
                let posterior = self.mode(choice, close)?;
                is_past = posterior.log_weight < posteriors.best() - NEGLIGIBLE;
                posteriors.push(posterior);
            }
        }
        Ok(posteriors)
    }

    /// The posterior at the mode under one scale, to within the square root of `close` standard deviations.
    pub(super) fn mode(&mut self, choice: Choice, close: f64) -> Result<Component<Llt<f64>>, MapError> {
        let precision = self.prior.precision_of_all(choice.tau, choice.effects, self.model);
        self.come_near(choice, &precision);
        let (mut step, mut whole) = (0, None);
        loop {
            let point = self.point(step)?;
            let posterior = Information::new(&point, &self.covariance).posterior(&precision, choice)?;
            step += 1;
            if self.decrement(&point, &posterior.mean, &precision)? < close || step == STEPS_MAX {
                self.point = Some(point);
                return Ok(posterior);
            }
            // In standard deviations. As covariance and derivative change with the parameters, whole steps often go beyond the mode, each by about the
            // same share of the one before: a step that is shorter by as much ends there.
            let way = posterior.precision.L().transpose() * (&posterior.mean - &self.parameters);
            let back = whole.take().map_or(0.0, |before: Mat<f64>| -dot(&way, &before) / dot(&before, &before));
            let is_shorter = back > BACK_LEAST;
            let longest = if is_shorter { 1.0 / (1.0 + back.min(1.0)) } else { 1.0 };
            self.move_to(&point, &posterior.mean, &precision, (longest, LENGTH_LEAST));
            whole = (!is_shorter).then_some(way);
        }
    }

    /// Goes to about where the mode is by the rows of the sample, whose sums take a small part of the time of those of all; or nowhere.
    fn come_near(&mut self, choice: Choice, precision: &PriorPrecision) {
        let Some(sample) = self.sample else { return };
        let known = self.point.take().map(|point| point.residual);
        let mut residual = known.unwrap_or_else(|| self.residual_at(&self.parameters));
        for _ in 0..STEPS_NEAR {
            let point = Linearised::near(self.statistic, sample, self.model, self.prior, &self.parameters, residual);
            // What some rows are too badly scaled for all may not be.
            let Some(covariance) = cholesky(&point.covariance) else { return };
            let Ok(posterior) = Information::new(&point, &covariance).posterior(precision, choice) else { return };
            self.covariance = covariance;
            let Ok(decrement) = self.decrement(&point, &posterior.mean, precision) else { return };
            let start = self.parameters.clone();
            match self.move_to(&point, &posterior.mean, precision, (1.0, LENGTH_NEAR)) {
                Some(at_end) if decrement >= NEAR => residual = at_end,
                Some(_) => return,
                // Where no step helps the way by the sample is another than that by all rows.
                None => {
                    self.parameters = start;
                    return;
                }
            }
        }
    }

    fn residual_at(&self, parameters: &Mat<f64>) -> Mat<f64> {
        residual(self.statistic, self.model, self.prior, parameters)
    }

    /// Twice the negative log of the release's likelihood and the prior's density, up to a constant, at the mean of the posteriors.
    fn cost(&self, target: &Mixture<Llt<f64>>) -> Result<f64, MapError> {
        let point = Linearised::at(self.statistic, self.model, self.prior, &target.mean());
        let precision = self.prior.precision_of_all(target.tau(), Effects::OfOneSize, self.model);
        let covariance = cholesky(&point.covariance).ok_or(MapError::Scale)?;
        let misfit = dot(&point.residual, &covariance.solve(&point.residual)) + 2.0 * log_determinant(covariance.L());
        let of_prior =
            dot(&point.parameters, &(&precision.matrix * &point.parameters)) - 2.0 * precision.half_log_determinant;
        Ok(misfit + of_prior)
    }

    fn point(&mut self, step: usize) -> Result<Linearised, MapError> {
        let at = || Linearised::at(self.statistic, self.model, self.prior, &self.parameters);
        let point = self.point.take().unwrap_or_else(at);
        if step < UPDATES {
            self.covariance = cholesky(&point.covariance).ok_or(MapError::Scale)?;
        }
        Ok(point)
    }

    /// Squared length of the way to `aim`, in the posterior's standard deviations.
    fn decrement(&self, point: &Linearised, aim: &Mat<f64>, precision: &PriorPrecision) -> Result<f64, MapError> {
        let direction = aim - &self.parameters;
        let moved = &point.jacobian * &direction;
        let decrement =
            dot(&moved, &self.covariance.solve(&moved)) + dot(&direction, &(&precision.matrix * &direction));
        if decrement.is_finite() { Ok(decrement) } else { Err(MapError::Scale) }
    }

    /// Moves toward `aim` by as much of the way as the objective falls, from the first share of it at most, and says what the residual is there; or by the
    /// second share, and it is `None`.
    fn move_to(
        &mut self,
        point: &Linearised,
        aim: &Mat<f64>,
        precision: &PriorPrecision,
        (longest, least): (f64, f64),
    ) -> Option<Mat<f64>> {
        let objective = |residual: &Mat<f64>, parameters: &Mat<f64>| {
            dot(residual, &self.covariance.solve(residual)) + dot(parameters, &(&precision.matrix * parameters))
        };
        let direction = aim - &self.parameters;
        let current = objective(&point.residual, &self.parameters);
        let mut length = longest;
        let (next, residual) = loop {
            let next = &self.parameters + &direction * faer::Scale(length);
            let residual = self.residual_at(&next);
            if objective(&residual, &next) <= current {
                break (next, Some(residual));
            }
            if length <= least {
                break (next, None);
            }
            length /= 2.0;
        };
        self.parameters = next;
        residual
    }
}

/// After so many steps the covariance `C` is no longer brought up to date, so that every further step is a descent.
const UPDATES: usize = 30;
const STEPS_MAX: usize = 80;

/// Share of a step that the next one goes back by, from which on it is made shorter.
const BACK_LEAST: f64 = 0.1;

/// Shortest share of a step.
const LENGTH_LEAST: f64 = 1.0 / 1024.0;

/// Most steps by a sample of the rows, squared length of the last one, and the share of a step at which it is given up.
const STEPS_NEAR: usize = 20;
const NEAR: f64 = 1e-2;
const LENGTH_NEAR: f64 = 0.25;

/// Squared length of the last step, in posterior standard deviations, at which a mode is found, for what matters to an error of one; and one that is found
/// exactly. A step more takes the time of all products of all rows.
pub(super) const CLOSE: f64 = 1e-4;
pub(super) const EXACT: f64 = 1e-18;

#[cfg(test)]
mod tests {
    use super::super::golden;
    use super::*;
    use crate::fixed_sequence::FixedSequence;

    /// A table that is long enough for a sample, with a flag of 80 rows, of which the sample has some ten.
    #[test]
    fn modes_are_the_same_with_a_sample_and_without() {
        const ROWS: usize = 160_000;
        let mut sequence = FixedSequence::new(12);
        let mut features = Mat::from_fn(ROWS, 4, |row, column| match column {
            0 => 1.0,
            3 => f64::from(u8::from(row % 2_000 == 1)),
            _ => sequence.next_uniform(),
        });
        features.col_mut(2).iter_mut().for_each(|value| *value = value.powi(3));
        let vectors = &features * faer::Scale(0.5);
        let model = ResponseModel::Logistic;
        let prior = Prior::new(features.as_ref(), model, None);
        for noise in [2.0, 3_000.0] {
            let labels = Mat::from_fn(ROWS, 1, |row, _| {
                let score = features[(row, 1)] + 2.0 * features[(row, 2)] + 1.5 * features[(row, 3)];
                f64::from(u8::from(score + 1.4 * sequence.next_uniform() > 1.5))
            });
            let exact = vectors.transpose() * labels;
            let noisy = |row, output| exact[(row, output)] + noise * sequence.next_normal();
            let released = Mat::from_fn(4, 1, noisy);
            let statistic = golden::statistic(&features, &vectors, &released, noise);
            let sample = RowSample::of_long_table(&statistic).expect("a long table");
            assert_eq!(sample.of(&statistic).features.nrows(), 20_000);
            let modes = |sample| {
                let mut descent = Descent::start(&statistic, model, &prior, sample).expect("finite");
                descent.descend(Effects::OfOneSize, 1e-7).expect("bounded").0
            };
            let (with, without) = (modes(Some(&sample)), modes(None));
            assert_eq!(with.len(), without.len());
            for (with, without) in with.iter().zip(&without) {
                assert!((with.choice.tau - without.choice.tau).abs() < 1e-12);
                assert!((with.log_weight - without.log_weight).abs() < 1e-3, "{noise}");
                let (apart, covariance) = (&with.mean - &without.mean, without.covariance());
                for place in 0..apart.nrows() {
                    let errors = apart[(place, 0)] / covariance[(place, place)].sqrt();
                    assert!(errors.abs() < 1e-3, "{noise}, {place}: {errors} standard deviations");
                }
            }
        }
    }
}
