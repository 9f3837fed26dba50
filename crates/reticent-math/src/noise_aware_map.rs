//! Regression from one noisy linear statistic of private labels: `t = D^T Y + noise`, with `D` and the features `X` public.
//!
//! ```text
//!   r(theta) = t - D^T p(theta)         p: means of the labels given the scores X theta
//!   Cov r    = C = D^T V D + S^2 I      V: variances of the labels, S: noise of a coordinate
//!   MAP:       min  r^T C^-1 r / 2 + (theta - theta_0)^T P (theta - theta_0) / 2,       J = D^T V X
//!   posterior covariance  H^-1 = (J^T C^-1 J + P)^-1
//! ```
//! The prior keeps the problem bounded whatever the noise. Its scale is weighed by the marginal likelihood of the released
//! statistic (Laplace's approximation): choosing it costs no privacy, nor does anything else here.
//!
//! Multinomial models are fitted in an orthonormal basis `U` of contrasts (classes × classes - 1): the columns of `Y` add
//! up to 1 and their total is public, so the noise of `t U` is still `S` a coordinate, and weights add up to 0 over classes.
//!
//! ```text
//!   statistic, response_model, prior ─▶ linearised ─▶ information ─▶ mixture ─▶ Estimate
//!                                       (descent: at the mode of each scale, then scale_of_scores; linear_model: once, by spectrum)
//!   prior, information, mixture ─▶ effect_sizes ─▶ prior: all of it once more
//!   features, prior, mixture ─▶ collinearity ─▶ Estimate's covariance
//! ```

mod algebra;
mod collinearity;
mod descent;
mod effect_sizes;
mod information;
mod linear_model;
mod linearised;
mod mixture;
mod nearest_weights;
mod predictive;
mod prior;
mod response_model;
mod row_sample;
mod scale_of_scores;
mod spectrum;
mod statistic;

use faer::Mat;
use thiserror::Error;

use self::descent::{Descent, EXACT, fit_curved};
use self::effect_sizes::Effects;
use self::linear_model::fit_linear;
use self::mixture::Choice;
pub use self::prior::Prior;
use self::prior::weights_of;
pub use self::response_model::ResponseModel;
pub use self::statistic::{Noisy, Statistic};

/// A fit with its uncertainty.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Weights, k × outputs: the mean of the modes under all scales of the prior, where effects of sizes of their own have half of the belief, and effects
    /// that are next to nothing a tenth.
    pub weights: Mat<f64>,
    /// Second moments of the posterior about the weights, outputs·k square, all weights of the first output first; where columns hardly differ, under
    /// a wider prior.
    ///
    /// Sampling error and noise are both in it. `weights ± 1.96 sqrt(diagonal)` covers 95 % on average over coefficients.
    pub covariance: Mat<f64>,
    /// Scale of the prior, as the release suggests it (geometric posterior mean): the standard deviation of a standardised effect, where its size is 1.
    pub tau: f64,
    /// Linear model: variance of a label around its mean.
    pub variance: Option<f64>,
}

/// A release that no model could be fitted to.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MapError {
    /// Sizes contradict each other.
    #[error("the release does not fit the features: {0}")]
    Shape(String),
    /// A value is not finite, or a noise scale not above zero.
    #[error(
        "the release or the public features hold a value that is not a finite number, or the noise scale is not above 0"
    )]
    NotFinite,
    /// The linear algebra failed.
    #[error("the public features are too badly scaled to fit a model; scale every column to [0, 1]")]
    Scale,
}

/// Fits the model; the prior's scale is averaged over, weighed by the marginal likelihood of the release.
///
/// Labels of a linear model must be in units in which they lie in `[-1, 1]`. Without [`Statistic::square`] the variance
/// of such labels is hardly determined by the release: it is averaged over values up to 1, which makes intervals wide.
///
/// # Errors
/// [`MapError`] when sizes contradict each other or values are not finite.
pub fn fit(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior) -> Result<Estimate, MapError> {
    statistic.check(model)?;
    match model {
        ResponseModel::Linear => fit_linear(statistic, prior),
        ResponseModel::Logistic | ResponseModel::Multinomial { .. } => fit_curved(statistic, model, prior),
    }
}

/// The mode at one prior scale.
#[derive(Clone, Debug)]
pub struct Mode {
    /// Weights, k × outputs.
    pub weights: Mat<f64>,
    /// Marginal likelihood of the release, up to a constant: Laplace's approximation.
    pub log_evidence: f64,
}

/// The MAP estimate at a fixed prior scale `tau`, for logistic and multinomial models: Gauss–Newton with halving.
///
/// `C` is taken at the current parameters and kept fixed within a step; at the end the gradient
/// `J^T C^-1 r - P (theta - theta_0)` is zero.
///
/// # Errors
/// [`MapError`] as [`fit`].
///
/// # Panics
/// For a linear model, whose mode needs the variance of the labels: use [`fit`].
pub fn mode(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior, tau: f64) -> Result<Mode, MapError> {
    assert!(model != ResponseModel::Linear, "a linear model has no mode without the variance of its labels");
    statistic.check(model)?;
    let mut descent = Descent::start(statistic, model, prior, None)?;
    let posterior = descent.mode(Choice { tau, effects: Effects::OfOneSize, variance: 0.0, log_prior: 0.0 }, EXACT)?;
    Ok(Mode { weights: weights_of(&posterior.mean, model, prior), log_evidence: posterior.log_weight })
}

#[cfg(test)]
pub(crate) mod golden;

#[cfg(test)]
mod tests;
