//! Models whose means are curved: the mode, sought by descent under every scale of the prior.

use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, Side};

use super::algebra::{NormalPart, dot, log_determinant, second_moments, stack};
use super::information::Information;
use super::linearised::{Linearised, residual};
use super::mixture::{Choice, Component, Mixture, TAU_STEPS};
use super::predictive::predictive;
use super::scale_of_scores::Slices;
use super::{Estimate, MapError, Prior, ResponseModel, Statistic};
use crate::symmetric_factors::cholesky;

/// The mode under each scale of the prior, with the posterior and the marginal likelihood of the release that is treated as linear around it
/// (Laplace's approximation). Around one point for all scales, large effects would be judged where slopes are still steep, and small scales
/// would get too much of a say.
///
/// A public start may be wrong, and sure of it: steps from there, too, see means of 0 or 1, and can end far from everything. So with a start
/// the way is gone from zero weights as well, and the end that is likelier, release and prior together, is kept.
pub(super) fn fit_curved(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior) -> Result<Estimate, MapError> {
    let mut from_start = Descent::start(statistic, model, prior)?;
    if prior.centre.norm_max() == 0.0 {
        return estimate(statistic, model, prior, &from_start.descend()?);
    }
    let zero = stack((&prior.centre * model.basis()).as_ref()) * faer::Scale(-1.0);
    let from_zero = Descent { parameters: zero, ..Descent::start(statistic, model, prior)? };
    let ends = [from_start, from_zero].map(|mut descent| {
        let target = descent.descend()?;
        Ok::<_, MapError>((descent.cost(&target)?, target))
    });
    let likelier = ends.into_iter().flatten().min_by(|(one, _), (other, _)| one.total_cmp(other));
    estimate(statistic, model, prior, &likelier.ok_or(MapError::Scale)?.1)
}

/// The weights that predict best, with the second moments of the posterior about them. A start is a belief in its rates and effects, and noise
/// leaves them as they are.
fn estimate(
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
    modes: &Mixture,
) -> Result<Estimate, MapError> {
    let slices = Slices::of(statistic, model, prior, modes)?;
    let parts: Vec<NormalPart<'_>> =
        slices.as_ref().map_or_else(|| modes.parts().collect(), |slices| slices.parts().collect());
    let weights = if prior.centre.norm_max() > 0.0 {
        modes.cautious_mean()
    } else {
        predictive(modes, &parts, statistic, model, prior)?
    };
    Ok(modes.estimate_with(&weights, &second_moments(&weights, &parts), model, prior))
}

/// The way to the mode: present parameters (less the prior's centre) and the covariance that steps are weighed with.
pub(super) struct Descent<'a> {
    statistic: &'a Statistic<'a>,
    model: ResponseModel,
    prior: &'a Prior,
    parameters: Mat<f64>,
    covariance: Llt<f64>,
}

impl<'a> Descent<'a> {
    pub(super) fn start(
        statistic: &'a Statistic<'a>,
        model: ResponseModel,
        prior: &'a Prior,
    ) -> Result<Self, MapError> {
        let parameters = Mat::zeros(prior.centre.nrows() * model.contrasts(), 1);
        // Replaced at the first point.
        let covariance = Mat::<f64>::identity(1, 1).llt(Side::Lower).map_err(|_| MapError::Scale)?;
        Ok(Self { statistic, model, prior, parameters, covariance })
    }

    /// The posterior at the mode under every scale that is not far less likely than another: outward from the scale that is believed in.
    fn descend(&mut self) -> Result<Mixture, MapError> {
        let choices = (0..TAU_STEPS).map(|step| Choice::of_scale(step, 0.0, self.prior)).collect::<Vec<_>>();
        let believed =
            |(_, one): &(usize, &Choice), (_, other): &(usize, &Choice)| one.log_prior.total_cmp(&other.log_prior);
        let (middle, _) = choices.iter().enumerate().max_by(believed).expect("some scales");
        let mut posteriors = Mixture::default();
        posteriors.push(self.mode(choices[middle], CLOSE)?);
        let start = self.parameters.clone();
        let (smaller, larger) = (choices[..middle].iter().rev().copied(), choices[middle + 1..].iter().copied());
        for way in [smaller.collect::<Vec<_>>(), larger.collect()] {
            self.parameters.clone_from(&start);
            for choice in way {
                let posterior = self.mode(choice, CLOSE)?;
                let is_unlikely = posterior.log_weight < posteriors.best() - Mixture::NEGLIGIBLE;
                posteriors.push(posterior);
                if is_unlikely {
                    break;
                }
            }
        }
        Ok(posteriors)
    }

    /// The posterior at the mode under one scale, to within the square root of `close` standard deviations.
    pub(super) fn mode(&mut self, choice: Choice, close: f64) -> Result<Component, MapError> {
        let precision = self.prior.precision_of_all(choice.tau, self.model);
        let mut step = 0;
        loop {
            let point = self.point(step)?;
            let posterior = Information::new(&point, &self.covariance).posterior(&precision, choice)?;
            step += 1;
            if self.move_to(&point, &posterior.mean, &precision)? < close || step == STEPS_MAX {
                return Ok(posterior);
            }
        }
    }

    /// Twice the negative log of the release's likelihood and the prior's density, up to a constant, at the mean of the posteriors.
    fn cost(&self, target: &Mixture) -> Result<f64, MapError> {
        let point = Linearised::at(self.statistic, self.model, self.prior, &target.mean());
        let precision = self.prior.precision_of_all(target.tau(), self.model);
        let covariance = cholesky(&point.covariance).ok_or(MapError::Scale)?;
        let prior_factor = cholesky(&precision).ok_or(MapError::Scale)?;
        let misfit = dot(&point.residual, &covariance.solve(&point.residual)) + 2.0 * log_determinant(covariance.L());
        let of_prior =
            dot(&point.parameters, &(&precision * &point.parameters)) - 2.0 * log_determinant(prior_factor.L());
        Ok(misfit + of_prior)
    }

    fn point(&mut self, step: usize) -> Result<Linearised, MapError> {
        let point = Linearised::at(self.statistic, self.model, self.prior, &self.parameters);
        if step < UPDATES {
            self.covariance = cholesky(&point.covariance).ok_or(MapError::Scale)?;
        }
        Ok(point)
    }

    /// Moves toward `aim` as far as the objective falls; gives the squared length of the whole way, in the posterior's
    /// standard deviations.
    fn move_to(&mut self, point: &Linearised, aim: &Mat<f64>, precision: &Mat<f64>) -> Result<f64, MapError> {
        let objective = |residual: &Mat<f64>, parameters: &Mat<f64>| {
            dot(residual, &self.covariance.solve(residual)) + dot(parameters, &(precision * parameters))
        };
        let direction = aim - &self.parameters;
        let moved = &point.jacobian * &direction;
        let decrement = dot(&moved, &self.covariance.solve(&moved)) + dot(&direction, &(precision * &direction));
        let current = objective(&point.residual, &self.parameters);
        let mut length = 1.0;
        let next = loop {
            let next = &self.parameters + &direction * faer::Scale(length);
            if objective(&residual(self.statistic, self.model, self.prior, &next), &next) <= current || length < 1e-3 {
                break next;
            }
            length /= 2.0;
        };
        self.parameters = next;
        if decrement.is_finite() { Ok(decrement) } else { Err(MapError::Scale) }
    }
}

/// After so many steps the covariance `C` is no longer brought up to date, so that every further step is a descent.
const UPDATES: usize = 30;
const STEPS_MAX: usize = 80;

/// Squared length of the last step, in posterior standard deviations, at which a mode is found; and one that is found exactly.
const CLOSE: f64 = 1e-7;
pub(super) const EXACT: f64 = 1e-18;
