//! Sizes of the effects of single columns.
//!
//! Under a normal prior of one size for all, a few effects that are far larger than the others are drawn to zero with them, or leave the prior wide for all.
//! So half of the belief is in effects that are Cauchy (as Gelman et al. 2008 take those of logistic regression to be): normal, each of a size of its own
//! that is not known.
//!
//! ```text
//!   effect_jk = theta_jk sqrt(G_j) ~ N(0, tau² q_j) for all K contrasts,   1/q_j ~ Gamma(1/2, 1/2)
//!   q_j <- (1 + sum_k E effect_jk²/tau²)/(1 + K),   ten times from q_j = 1
//! ```
//! with `E` over the posterior under the `q` before, `G` the columns' variances of the prior, `tau` as it was found for effects of one size: steps of
//! variational Bayes, `q_j` the inverse of the mean of `1/q_j`. Where a release says nothing of a column its size remains 1.

use super::information::Information;
use super::mixture::Choice;
use super::{MapError, Prior, ResponseModel};

/// What a prior believes of the effects of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effects {
    /// Normal, of one size.
    OfOneSize,
    /// Cauchy, by a size for each.
    OfOwnSizes,
}

/// The prior with the sizes that a release suggests, which is taken to be linear.
pub(super) fn with_effect_sizes(
    prior: &Prior,
    information: &Information,
    model: ResponseModel,
    tau: f64,
) -> Result<Prior, MapError> {
    let choice = Choice { tau, effects: Effects::OfOwnSizes, variance: 0.0, log_prior: 0.0 };
    let mut prior = prior.clone();
    for _ in 0..STEPS {
        let posterior = information.posterior(&prior.precision_of_all(tau, choice.effects, model), choice)?;
        let covariance = posterior.covariance();
        let mut squares = vec![0.0; prior.effect_sizes.len()];
        for (place, mean) in posterior.mean.col(0).iter().enumerate() {
            let column = place % squares.len();
            squares[column] += (mean * mean + covariance[(place, place)]) * prior.spread_square[column] / (tau * tau);
        }
        for ((size, square), deviation) in prior.effect_sizes.iter_mut().zip(squares).zip(&prior.deviations) {
            // What a constant column does is the intercept's.
            if *deviation > 0.0 {
                *size = (1.0 + square) / (1.0 + model.contrasts() as f64);
            }
        }
    }
    Ok(prior)
}

const STEPS: u32 = 10;

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::super::golden;
    use super::super::linearised::Linearised;
    use super::*;
    use crate::symmetric_factors::cholesky;

    /// Three classes; the intercept, a strong column, a rare flag, a weak column.
    #[test]
    fn sizes_agree_with_an_independent_computation() {
        let text = include_str!("../../../../testdata/golden/effect_sizes.json");
        let golden: serde_json::Value = serde_json::from_str(text).expect("golden values");
        let numbers = |name: &str| -> Vec<f64> {
            let values = golden[name].as_array().expect("a list");
            values.iter().map(|number| number.as_f64().expect("a number")).collect()
        };
        let features = Mat::from_fn(40, 4, |row, column| match column {
            0 => 1.0,
            1 => (row % 7) as f64 / 6.0,
            2 => f64::from(u8::from(row == 3)),
            _ => (row * 3 % 5) as f64 / 4.0,
        });
        let model = ResponseModel::Multinomial { classes: 3 };
        let products = features.transpose() * &features;
        let jacobian = super::super::algebra::repeat(&products, 2);
        let observed = numbers("observed");
        let covariance = Mat::<f64>::identity(8, 8) * faer::Scale(0.25);
        let point = Linearised {
            parameters: Mat::zeros(8, 1),
            residual: Mat::from_fn(8, 1, |row, _| observed[row]),
            jacobian,
            covariance: Mat::new(),
        };
        let information = Information::new(&point, &cholesky(&covariance).expect("definite"));
        let found = with_effect_sizes(&Prior::new(features.as_ref(), model, None), &information, model, 0.3);
        let sizes = found.expect("definite").effect_sizes;
        let sizes = Mat::from_fn(4, 1, |row, _| sizes[row]);
        golden::assert_close(sizes.as_ref(), &numbers("sizes"), 1e-9);
    }
}
