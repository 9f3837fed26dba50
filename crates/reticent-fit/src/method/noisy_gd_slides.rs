//! Differentially private gradient descent as the pre-training slides describe it, with each record's gradient clipped.
//!
//! ```text
//!   theta_{t+1} = theta_t - eta (1/n) (sum_i clip_C(l'(theta_t·x_i, y_i) x_i) + noise),   result: theta_T
//! ```
//! The slides clip the *average* of the gradients and claim that one record then moves it by `2C/n`. It does not: clipping an
//! average brings it to length `C` whatever the records are, and one record can still move it by as much as `2C`. Only
//! records that are clipped one by one, before they are added, are worth `C` each. So that is what is done here, in
//! integers, by [`Map::ClippedGradient`].
//!
//! Source: Hoseinpour et al. 2023, arXiv:2307.13771, and the slides on pre-training with public data;
//! `docs/methods/noisy-gd-slides.md` lists what was mended.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::encoding::Encoding;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{GRADIENT_NORM_MAX, Map, QueryShape};

use super::noisy_gd_lecture::{declared_units, encoding};
use super::{FitRequest, Method, classes_of, start_weights};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, PrivacyClaim, plan_release};
use crate::prepared_fit::{FitError, Fitted, PreparedFit, Releases};

/// Name on the command line and in certificates.
pub const NAME: &str = "noisy-gd-slides";

/// Passes, as in the authors' notebook.
const PASSES: u32 = 2500;
/// Most passes that may be asked for.
const PASSES_MAX: u32 = 100_000;
/// Bound on the gradient of one record.
const CLIP: f64 = 1.0;
/// Smallest clip as a share of the norm bound: the longest row then still has 64 different slopes.
const CLIP_SHARE_MIN: f64 = 1.0 / 32.0;

/// The method.
pub struct NoisyGdSlides;

impl Method for NoisyGdSlides {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "the pre-training slides' gradient descent, each record's gradient clipped (two classes; under add-remove `rows` declared)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[
            MethodOption {
                name: "clip",
                value: "C",
                help: "Bound on the norm of one record's gradient, in encoded columns [default: 1]",
                choices: &[],
            },
            MethodOption {
                name: "passes",
                value: "T",
                help: "Number of passes over the table [default: 2500]",
                choices: &[],
            },
            MethodOption {
                name: "learning-rate",
                value: "ETA",
                help: "Length of a step along the mean gradient [default: 1 over the squared bound on the norm of a row]",
                choices: &[],
            },
        ]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        let schema = request.schema;
        let classes = classes_of(NAME, schema)?;
        if classes != 2 {
            let found = format!("{classes} classes");
            return Err(PlanError::Target { method: NAME, fits: "two classes", found });
        }
        let units = declared_units(NAME, schema)?;
        let (encoding, norm_bound) = encoding(schema);
        let columns = encoding.coding().columns().len();
        let options = request.options;
        let passes = options.whole_number("passes", 1..=PASSES_MAX)?.unwrap_or(PASSES);
        // The mean loss has curvature at most L²/4: an eighth of the longest stable step.
        let learning_rate = options.number("learning-rate", "a finite number above 0", |eta| eta > 0.0)?;
        let smallest = CLIP_SHARE_MIN * norm_bound;
        let rule = format!("a finite number of at least {smallest:.4}, 1/32 of the norm bound of a row");
        let clip = options.number("clip", &rule, |clip| clip >= smallest)?.unwrap_or(CLIP.max(smallest));
        // Down to a whole number of lattice steps; beyond the longest gradient there is nothing to clip.
        let clip_lattice = ((clip / norm_bound).min(1.0) * f64::from(GRADIENT_NORM_MAX)) as u32;

        let map = Map::ClippedGradient { columns: columns as u32, clip: clip_lattice };
        let shape = QueryShape::of_schema(map, schema)?;
        let times = NonZeroU32::new(passes).expect("at least 1");
        let gradient =
            plan_release(NAME, "clipped gradient", shape, times, request.claim.mu_squared, &request.claim.relation)?;
        let step = norm_bound / f64::from(GRADIENT_NORM_MAX);
        let noise = gradient.noise.standard_deviation(gradient.noise_scale) * step / units;
        let learning_rate = learning_rate.unwrap_or(1.0 / (norm_bound * norm_bound));
        let score_noise = learning_rate * noise * f64::from(passes).sqrt() * norm_bound;
        let expect = |name, value, meaning: &str| Expectation { name, value, meaning: meaning.to_owned() };
        let expectations = vec![
            expect("norm bound of a row", norm_bound, "L2, over encoded columns with the intercept"),
            expect("clip of a record's gradient", clip, "L2; longer gradients get a smaller slope, which is a bias"),
            expect("learning rate", learning_rate, "length of a step in the mean gradient"),
            expect("noise of the mean gradient", noise, "standard deviation of a coordinate, one pass"),
            expect(
                "noise of a score at most",
                score_noise,
                "standard deviation that the noise of all passes adds to the score of the longest row, if nothing pulls it back: \
                 beyond 2 or so probabilities are mostly noise",
            ),
            expect(
                "the same by the slides' formula",
                slides_noise(clip, units, passes, request.claim),
                "(2C / (n epsilon)) sqrt(2 T ln(1.25 / delta)), for comparison: too much at small epsilon, too little at large",
            ),
        ];
        let plan = Plan::of(NAME, request, vec![gradient], expectations);
        let start = match request.init {
            Some(model) => start_weights(model, schema, &encoding)?,
            None => vec![0.0; columns],
        };
        let encoding = Arc::new(encoding);
        let fit = Fit { encoding: encoding.clone(), start, units, learning_rate };
        Ok(PreparedFit::new(plan, Some(encoding), move |releases| fit.run(releases)))
    }
}

struct Fit {
    encoding: Arc<Encoding>,
    start: Vec<f64>,
    units: f64,
    learning_rate: f64,
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let passes = releases.planned(0).times;
        let mean_gradient = |weights: &[f64]| {
            let released = releases.sum(0, &self.encoding, PassWeights::quantise(weights))?;
            Ok::<_, FitError>(released.values().into_iter().map(|sum| sum / self.units).collect())
        };
        let weights = last_iterate(&self.start, self.learning_rate, passes, mean_gradient)?;
        Ok(Fitted { encoding: self.encoding.clone(), weights, covariance: None })
    }
}

/// `theta_T` of `passes` plain gradient steps.
fn last_iterate<E>(
    start: &[f64],
    learning_rate: f64,
    passes: u32,
    mut gradient: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Vec<f64>, E> {
    let mut weights = start.to_vec();
    for _ in 0..passes {
        let gradient = gradient(&weights)?;
        weights.iter_mut().zip(gradient).for_each(|(weight, slope)| *weight -= learning_rate * slope);
    }
    Ok(weights)
}

/// What the slides would add to a coordinate of the mean gradient: `(2C / (n epsilon)) sqrt(2 T ln(1.25 / delta))`.
fn slides_noise(clip: f64, units: f64, passes: u32, claim: &PrivacyClaim) -> f64 {
    2.0 * clip / (units * claim.epsilon.get()) * (2.0 * f64::from(passes) * (1.25 / claim.delta.get()).ln()).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
    use reticent_core::units::{Delta, Epsilon};

    /// See `testdata/golden/noisy_gd_lecture.py`.
    #[test]
    fn steps_and_noise_are_those_of_the_independent_implementation() {
        let quadratic = |at: &[f64]| Ok::<_, ()>(vec![2.0 * (at[0] - 3.0), 0.5 * (at[1] + 4.0)]);
        let last = last_iterate(&[0.5, -0.25], 0.4, 5, quadratic).expect("no error");
        for (found, expected) in last.iter().zip(GOLDEN_LAST) {
            assert!((found - expected).abs() < 1e-12, "{last:?}");
        }
        let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Replace };
        let claim = PrivacyClaim::new(relation, Epsilon::new(1.0).expect("legal"), Delta::new(1e-5).expect("legal"));
        assert!((slides_noise(1.0, 400.0, 2500, &claim) - GOLDEN_NOISE).abs() < 1e-12);
    }

    const GOLDEN_LAST: [f64; 2] = [2.9992, -2.7712];
    const GOLDEN_NOISE: f64 = 1.211_201_315_651_347_3;
}
