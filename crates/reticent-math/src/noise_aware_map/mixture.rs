//! Posteriors under several choices of what is not known, and their mixture.

use std::borrow::Cow;

use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, MatRef};

use super::algebra::NormalPart;
use super::effect_sizes::Effects;
use super::prior::weights_of;
use super::{Estimate, Prior, ResponseModel};
use crate::public_design::symmetric;

/// One choice of what is not known.
#[derive(Clone, Copy)]
pub(super) struct Choice {
    /// Prior's scale.
    pub(super) tau: f64,
    pub(super) effects: Effects,
    /// Variance of a label around its mean, of a linear model.
    pub(super) variance: f64,
    pub(super) log_prior: f64,
}

impl Choice {
    pub(super) fn of_scale(step: u32, effects: Effects, variance: f64, prior: &Prior) -> Self {
        let tau = tau(step);
        let log_prior = -((tau / prior.typical_effect).ln() / TAU_LOG_DEVIATION).powi(2) / 2.0;
        Self { tau, effects, variance, log_prior }
    }

    pub(super) fn is_smallest(&self) -> bool {
        self.effects == Effects::OfOneSize && self.tau <= tau(0)
    }
}

/// The precision `H` of a normal posterior.
pub(super) trait Precision {
    /// `H^-1` times some columns.
    fn solved(&self, right: MatRef<'_, f64>) -> Mat<f64>;
}

impl Precision for Llt<f64> {
    fn solved(&self, right: MatRef<'_, f64>) -> Mat<f64> {
        self.solve(right)
    }
}

/// The normal posterior under one choice.
pub(super) struct Component<P> {
    pub(super) log_weight: f64,
    pub(super) choice: Choice,
    pub(super) mean: Mat<f64>,
    pub(super) precision: P,
}

impl<P> Component<P> {
    /// With the belief that effects are next to nothing, which the prior of scales alone may be far from.
    fn log_weight_at_most(&self) -> f64 {
        if self.choice.is_smallest() {
            self.log_weight.max(self.log_weight - self.choice.log_prior + NOTHING.ln())
        } else {
            self.log_weight
        }
    }
}

impl Component<Llt<f64>> {
    pub(super) fn covariance(&self) -> Mat<f64> {
        let size = self.mean.nrows();
        self.precision.solve(Mat::<f64>::identity(size, size))
    }
}

/// Posteriors under several choices, with weights.
pub(super) struct Mixture<P>(pub(super) Vec<Component<P>>);

impl<P> Default for Mixture<P> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<P> Mixture<P> {
    pub(super) fn best(&self) -> f64 {
        self.0.iter().map(|component| component.log_weight).fold(f64::NEG_INFINITY, f64::max)
    }

    pub(super) fn likeliest(&self) -> &Component<P> {
        let heavier = |one: &&Component<P>, other: &&Component<P>| one.log_weight.total_cmp(&other.log_weight);
        self.0.iter().max_by(heavier).expect("some choice is tried")
    }

    pub(super) fn push(&mut self, component: Component<P>) {
        let best = self.best().max(component.log_weight);
        self.0.push(component);
        self.0.retain(|component| component.log_weight_at_most() >= best - NEGLIGIBLE);
    }

    /// Both with even shares, whatever their marginal likelihoods: sizes that a release suggests look likelier under it than they are.
    pub(super) fn evenly_with(mut self, other: Self) -> Self {
        let shift = self.log_total() - other.log_total();
        self.0.extend(other.0.into_iter().map(|mut component| {
            component.log_weight += shift;
            // Where the release is linearised anew the shares are those of this prior.
            component.choice.log_prior += shift;
            component
        }));
        self
    }

    fn log_total(&self) -> f64 {
        let best = self.best();
        best + self.0.iter().map(|component| (component.log_weight - best).exp()).sum::<f64>().ln()
    }

    pub(super) fn weighted(&self) -> impl Iterator<Item = (f64, &Component<P>)> {
        let total = self.log_total();
        self.0.iter().map(move |component| ((component.log_weight - total).exp(), component))
    }

    pub(super) fn mean(&self) -> Mat<f64> {
        let size = self.0.first().map_or(0, |component| component.mean.nrows());
        self.weighted()
            .fold(Mat::zeros(size, 1), |mean, (share, component)| mean + &component.mean * faer::Scale(share))
    }

    /// The mean where effects may be next to nothing. Errors are second moments about this mean, without that belief: effects may be small and no less.
    pub(super) fn cautious_mean(&self) -> Mat<f64> {
        let mean = self.mean();
        let (share, nothing) =
            self.smallest().fold((0.0, mean.clone() * faer::Scale(0.0)), |(sum, nothing), (share, component)| {
                (sum + share, nothing + &component.mean * faer::Scale(share))
            });
        if share == 0.0 {
            return mean;
        }
        &mean + (nothing * faer::Scale(1.0 / share) - &mean) * faer::Scale(self.belief_in_nothing())
    }

    /// What is believed of effects that are next to nothing, after the release: on a table without signal the prior of scales alone would keep much of
    /// what noise makes of weights, so the smallest scale has a share of the belief of its own.
    pub(super) fn belief_in_nothing(&self) -> f64 {
        // Effects of sizes of their own count as likely as those of one size, and by these the odds are.
        let of_one_size = self.weighted().filter(|(_, component)| component.choice.effects == Effects::OfOneSize);
        let total: f64 = of_one_size.map(|(share, _)| share).sum();
        let odds: f64 = self
            .smallest()
            .map(|(share, component)| share / total * NOTHING * (-component.choice.log_prior).exp())
            .sum();
        odds / (1.0 + odds)
    }

    /// Effects of the smallest scale, under every variance of a label.
    fn smallest(&self) -> impl Iterator<Item = (f64, &Component<P>)> {
        self.weighted().filter(|(_, component)| component.choice.is_smallest())
    }

    /// Geometric mean of the prior's scale.
    pub(super) fn tau(&self) -> f64 {
        self.weighted().map(|(weight, component)| weight * component.choice.tau.ln()).sum::<f64>().exp()
    }

    /// Mean and standard deviation of the log of the labels' variance.
    pub(super) fn log_variance(&self) -> (f64, f64) {
        let log = |component: &Component<P>| component.choice.variance.ln();
        let mean: f64 = self.weighted().map(|(weight, component)| weight * log(component)).sum();
        let square: f64 = self.weighted().map(|(weight, component)| weight * (log(component) - mean).powi(2)).sum();
        (mean, square.sqrt())
    }

    /// The estimate of this mean and covariance.
    pub(super) fn estimate(
        &self,
        mean: &Mat<f64>,
        covariance: &Mat<f64>,
        model: ResponseModel,
        prior: &Prior,
    ) -> Estimate {
        let columns = prior.centre.nrows();
        let basis = model.basis();
        let lift = Mat::from_fn(columns * basis.nrows(), columns * basis.ncols(), |row, column| {
            if row % columns == column % columns { basis[(row / columns, column / columns)] } else { 0.0 }
        });
        Estimate {
            weights: weights_of(mean, model, prior),
            covariance: symmetric(&(&lift * covariance * lift.transpose())),
            tau: self.tau(),
            variance: (model == ResponseModel::Linear).then(|| self.log_variance().0.exp()),
        }
    }
}

impl Mixture<Llt<f64>> {
    /// The posterior under each choice.
    pub(super) fn parts(&self) -> impl Iterator<Item = NormalPart<'_>> {
        self.weighted().map(|(share, component)| NormalPart {
            share,
            mean: &component.mean,
            covariance: Cow::Owned(component.covariance()),
        })
    }
}

/// Components so far below the best carry no weight.
pub(super) const NEGLIGIBLE: f64 = 12.0;

pub(super) fn tau(step: u32) -> f64 {
    0.01 * 2.0f64.powi(step as i32)
}

/// Prior scales tried: `0.01 · 2^(step)`, from no effect to speak of to effects that separate the classes.
pub(super) const TAU_STEPS: u32 = 11;
/// Two standard deviations are a factor of 7: a release that is all noise must not give large scales a say.
const TAU_LOG_DEVIATION: f64 = 1.0;
/// What is believed of effects that are next to nothing, beside all scales of the prior together, which add up to `sqrt(2 pi)/ln 2 = 3.6`: a tenth.
const NOTHING: f64 = 0.4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symmetric_factors::cholesky;

    fn component(effects: Effects, tau: f64, log_weight: f64, mean: f64) -> Component<Llt<f64>> {
        Component {
            log_weight,
            choice: Choice { tau, effects, variance: 0.0, log_prior: -1.0 },
            mean: Mat::from_fn(1, 1, |_, _| mean),
            precision: cholesky(&Mat::identity(1, 1)).expect("definite"),
        }
    }

    fn of_one_size() -> Mixture<Llt<f64>> {
        Mixture(vec![component(Effects::OfOneSize, tau(0), 0.0, 0.0), component(Effects::OfOneSize, 1.0, 0.0, 4.0)])
    }

    /// However much likelier one of the two is; what is next to nothing is that of effects of one size alone.
    #[test]
    fn two_mixtures_have_even_shares() {
        let of_own_sizes = Mixture(vec![component(Effects::OfOwnSizes, tau(0), 50.0, 10.0)]);
        let alone = of_one_size().belief_in_nothing();
        let both = of_one_size().evenly_with(of_own_sizes);
        assert!((both.mean()[(0, 0)] - 6.0).abs() < 1e-12);
        assert!((both.belief_in_nothing() - alone).abs() < 1e-12);
        assert!((both.cautious_mean()[(0, 0)] - 6.0 * (1.0 - alone)).abs() < 1e-12);
        // The odds of nothing are .4 e times half of all.
        assert!((alone / (1.0 - alone) - 0.2 * 1f64.exp()).abs() < 1e-12);
        // What is likely of the release stays, and the prior has changed.
        let own = &both.0[2];
        assert!((own.log_weight - own.choice.log_prior - 51.0).abs() < 1e-12);
    }

    /// Of numbers there is one component of the smallest scale for each variance.
    #[test]
    fn next_to_nothing_is_believed_under_every_variance() {
        let mut two = of_one_size();
        two.0.extend(of_one_size().0);
        assert!((two.belief_in_nothing() - of_one_size().belief_in_nothing()).abs() < 1e-12);
    }

    /// Of few columns the scale that is believed in is far above the smallest.
    #[test]
    fn next_to_nothing_is_kept_however_far_the_prior_of_scales_is_from_it() {
        let mut mixture = Mixture::default();
        for (tau, log_prior) in [(tau(0), -13.0), (tau(1), -13.0), (1.0, 0.0)] {
            let mut component = component(Effects::OfOneSize, tau, log_prior, 1.0);
            component.choice.log_prior = log_prior;
            mixture.push(component);
        }
        assert_eq!(mixture.0.len(), 2);
        assert!((mixture.belief_in_nothing() - 0.4 / 1.4).abs() < 1e-5);
    }
}
