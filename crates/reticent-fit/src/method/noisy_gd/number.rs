//! The descent for a number: Huber's loss of the residual, in the part of its bounds where the target is found.
//!
//! ```text
//!   G = sum_i clamp((theta·x_i - y_i) / c, -1, 1) x_i / ||x_i|| + noise         one pass; a row moves the sum by at most 1
//!   c = 4/5 deviation of the target · max(1, sqrt(n mu / 500)) · r              from its released bins
//!   r = 1, and up to 5/2 where most rows have one and the same target
//!   intercept: of the descent and of the released mean of the target less the mean score, by how well each is known
//!   result: what the columns change, times the factor that a last release of residuals calls for
//! ```
//! A residual that is clipped at less than the target varies by needs noise for that much only, where a matrix of products needs it for the
//! longest row times the whole target. With a larger budget `c` grows toward least squares, so that a skewed target is met at its mean.
//!
//! Sources: Huber 1964 (the loss); Bassily, Smith, Thakurta 2014, Alg. 1. Constants and failures: `docs/methods/noisy-gd.md`.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::coding::Coding;
use reticent_core::encoding::Encoding;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{Loss, Map, QueryShape};
use reticent_core::schema::Schema;
use reticent_math::gram_regression::TargetMean;

use super::column_order::ColumnOrder;
use super::heavy_ball::{Flow, HeavyBall, Stride, descent_time_of_number};
use super::number_calibration::{FACTORS, NumberChange, curvature, growth, likely_factor};
use super::rare_categories::{Descent, draw_to_their_feature};
use super::{NAME, PARTS, Settings, gradient_step, of_gradients};
use crate::method::{FitRequest, start_weights};
use crate::model::Model;
use crate::number_marginals::{NumberMarginals, plan_marginals};
use crate::plan::{Plan, PlanError, plan_release};
use crate::prepared_fit::{FitError, Fitted, PreparedFit, Releases};
use crate::released_marginals::ScalingRule;
use crate::row_number::declared_rows;

/// Of numbers columns have their share only where there is signal: noise that longer columns bring makes a model worse than the mean.
const SCALING: ScalingRule = ScalingRule { share_power: 2, ..super::SCALING };
/// `c` in standard deviations of the target up to [`CLIP_SIGNAL`], and that signal `n mu`.
const CLIP: f64 = 0.8;
const CLIP_SIGNAL: f64 = 500.0;
/// How many times as large it is where one value has most rows, and the shares of them at which it begins to be larger and no longer grows: where
/// they are half of all the median is that value whatever the columns say, and small clipped residuals balance there.
const USUAL_VALUE_CLIP: f64 = 2.5;
const USUAL_VALUE_SHARES: (f64, f64) = (0.4, 0.6);
/// Parts of `mu²`, of [`PARTS`], for the calibration.
const CALIBRATION_PARTS: u32 = 10;
/// How far from the mean, in standard deviations of the target, the descent is expected to find its intercept: clipped residuals of a skewed
/// target balance beside it, and the rows are weighted.
const INTERCEPT_ERROR: f64 = 0.1;

/// Marginals, bins and sums of the target; one gradient a pass; and the calibration.
pub(super) fn prepare(request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let settings = Settings::of(request)?;
    let plain = settings.plain_encoding(Coding::of(schema));
    if let Some(init) = request.init {
        start_weights(init, schema, &plain)?;
    }
    let (mut releases, left) = plan_marginals(NAME, request, plain.coding())?;
    let columns = plain.coding().columns().len() as u32;
    let shape = QueryShape::of_schema(Map::Gradient { loss: Loss::Huber, columns }, schema)?;
    let share = claim.mu_squared.fraction_down(CALIBRATION_PARTS, PARTS);
    let left = left.checked_sub(share).expect("shares are less than the whole");
    releases.push(plan_release(NAME, "gradient", shape, settings.passes, left, &claim.relation)?);
    let noise = releases.last().expect("just planned").noise_scale.get() as f64 * gradient_step();
    let steps = QueryShape::of_schema(Map::ResidualSteps { models: FACTORS.len() as u32 }, schema)?;
    releases.push(plan_release(NAME, "calibration", steps, NonZeroU32::MIN, share, &claim.relation)?);
    let expectations = of_gradients(
        settings.passes,
        schema,
        noise,
        "the model is little better than the mean of the target, and worse where its bounds are far too wide",
    );
    let plan = Plan::of(NAME, request, releases, expectations);
    let Settings { l2, passes, .. } = settings;
    let fit = Fit { l2, passes, plain: plain.clone(), schema: schema.clone(), init: request.init.cloned() };
    Ok(PreparedFit::new(plan, Some(plain), move |releases| fit.run(releases)))
}

struct Fit {
    l2: f64,
    passes: NonZeroU32,
    plain: Arc<Encoding>,
    schema: Schema,
    init: Option<Model>,
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let Self { l2, passes, plain, schema, init } = self;
        let of_gradient = releases.count() - 2;
        let gradient_noise = releases.planned(of_gradient).noise_scale.get() as f64 * gradient_step();
        let mu = f64::from(passes.get()).sqrt() / gradient_noise;
        let mut marginals = NumberMarginals::released(releases, plain, (mu, declared_rows(schema)), SCALING)?;
        let found = marginals.target_mean(releases, of_gradient - 1)?;
        let mean = TargetMean { value: found.expected(), ..found };
        let (window, signal, rows) = (marginals.window, marginals.signal, marginals.usable);

        // Weights of scores with the window as [-1, 1].
        let encoding = marginals.encoding.clone();
        let columns = encoding.coding().columns().len();
        let mut start = match init {
            Some(init) => {
                let in_bounds =
                    start_weights(init, schema, &encoding).map_err(|error| FitError::Numeric(error.to_string()))?;
                let mut start: Vec<f64> = in_bounds.iter().map(|weight| weight / window.half()).collect();
                start[0] -= window.centre() / window.half();
                start
            }
            None => {
                let mut start = vec![0.0; columns];
                start[0] = mean.value;
                start
            }
        };
        let deviation = marginals.target_deviation(mean.value);
        let largest_residual = clip(deviation, signal, marginals.usual_value_share(deviation));
        let pass = |weights: &[f64]| {
            PassWeights::quantise(weights).with_saturation(largest_residual).with_target_window(window)
        };
        let row_norm = marginals.scaled.row_norm;
        let largest_curvature = row_norm / f64::from(pass(&[]).saturation()) + l2 / rows;
        let time = descent_time_of_number(deviation, signal, row_norm);
        let stride = Stride::of(time, largest_curvature, passes.get());
        let mut descent = HeavyBall::from(start.clone(), columns, stride, rows, *l2, passes.get());
        let mut order = ColumnOrder::of(encoding.coding(), 1, passes.get(), gradient_noise);
        for _ in 0..passes.get() {
            let noisy = releases.sum(of_gradient, &encoding, pass(&descent.weights))?.values();
            let stretched = |stretch| Stride::of(stretch * time, largest_curvature, passes.get());
            descent.follow_in_order(&noisy, &start, &mut order, stretched);
        }
        let mut weights = descent.mean();
        let clip = f64::from(pass(&[]).saturation());
        let flow = Flow { stride, passes: passes.get(), ridge: l2 / rows };
        let of_rare = Descent { time: flow.time(), signal, curvature: curvature(clip, deviation), effect: deviation };
        draw_to_their_feature(&mut weights, &start, &marginals.scaled, of_rare);
        // The mean says nothing of the intercept where those of listed columns are not known, or of a start.
        if init.is_none() && !marginals.scaled.has_list() {
            let mean_score = marginals.scaled.mean_score(&weights);
            let error = mean.deviation.hypot(marginals.scaled.mean_score_error(&weights));
            let of_mean = TargetMean { value: mean.value - mean_score, deviation: error };
            weights[0] = pooled(of_mean, weights[0], INTERCEPT_ERROR * deviation);
            // What the intercept makes up for columns that are not centred goes with them.
            start[0] = weights[0] + mean_score;
        }
        let change: Vec<f64> = weights.iter().zip(&start).map(|(weight, start)| weight - start).collect();
        let change = NumberChange { start, change, scaled: &marginals.scaled, signal };
        let steps = releases.sum(of_gradient + 1, &encoding, pass(&change.compared()))?;
        let chance = change.chance(clip, deviation, flow, rows);
        let factor =
            if change.is_flat() { 1.0 } else { likely_factor(&steps.values(), steps.noise_standard_deviation, chance) };
        let mut weights = change.scaled_by(factor);
        weights.iter_mut().for_each(|weight| *weight *= window.half());
        weights[0] += window.centre();
        Ok(Fitted { encoding, weights, covariance: None })
    }
}

/// An intercept by a mean and by a descent, whose error is `error`, or what the two are apart beyond twice their errors. Then the target is
/// skewed, and the mean is what is asked for.
fn pooled(mean: TargetMean, descended: f64, error: f64) -> f64 {
    let apart = (descended - mean.value).abs() - 2.0 * mean.deviation.hypot(error);
    let (of_mean, of_descent) = (mean.deviation.powi(2), error.max(apart).powi(2));
    (of_descent * mean.value + of_mean * descended) / (of_descent + of_mean)
}

/// Largest residual that a row's slope tells of, as a share of half the target's window, of a target that has one value in a share of the rows.
fn clip(deviation: f64, signal: f64, usual_value_share: f64) -> f64 {
    let (from, to) = USUAL_VALUE_SHARES;
    let beyond = ((usual_value_share - from) / (to - from)).clamp(0.0, 1.0);
    CLIP * deviation * growth(signal, CLIP_SIGNAL) * (1.0 + (USUAL_VALUE_CLIP - 1.0) * beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_and_a_descent_are_pooled_unless_they_contradict_each_other() {
        let mean = TargetMean { value: 0.2, deviation: 0.03 };
        assert!((pooled(mean, 0.25, 0.04) - (16.0 * 0.2 + 9.0 * 0.25) / 25.0).abs() < 1e-12);
        // Twelve errors of .05 apart, ten beyond two.
        assert!((pooled(mean, -0.4, 0.04) - (0.2 - 0.6 * 0.0009 / (0.25 + 0.0009))).abs() < 1e-12);
    }

    /// By hand: `.8 · .25 = .2`; four times the signal, twice the residual; `.8 · .25 · 480/500 · 480 / 4`.
    #[test]
    fn residuals_are_clipped_by_the_deviation_and_later_with_more_signal() {
        for (signal, usual, expected) in
            [(1.0, 0.0, 0.2), (500.0, 0.4, 0.2), (2000.0, 0.0, 0.4), (1.0, 0.5, 0.35), (500.0, 0.9, 0.5)]
        {
            assert!((clip(0.25, signal, usual) - expected).abs() < 1e-12, "{signal} {usual}");
        }
        assert!((descent_time_of_number(0.25, 480.0, 4.0) - 23.04).abs() < 1e-9);
    }
}
