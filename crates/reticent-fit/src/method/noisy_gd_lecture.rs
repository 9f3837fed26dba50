//! Private gradient descent as the CSC2412 lecture states it, with the theorem's bound on the excess loss.
//!
//! ```text
//!   theta_0 = 0,   theta_{t+1} = projection of (theta_t - eta g_t) to the ball B(R),   eta = R / (B sqrt(T))
//!   g_t = (1/n) (sum_i l'(theta_t·x_i, y_i) x_i + noise),   B² >= E ||g_t||²,   result: mean of theta_0 .. theta_{T-1}
//!   T - 1 passes: the last gradient of the proof is asked for by nobody
//!   E L(result) - min over B(R) of L <= R B / sqrt(T)
//! ```
//! The number of rows `n` is public. Rows are held to a norm bound before they reach a gradient, and no gradient is clipped.
//! With `--init` the start point is the centre of the ball, and everything else stays as it is.
//!
//! Source: CSC2412 lecture "Private Gradient Descent & ERM"; `docs/methods/noisy-gd-lecture.md` lists what was mended.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::coding::{Coding, Column};
use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX, NormRule};
use reticent_core::ledger::PlannedRelease;
use reticent_core::listed_columns::ListedColumns;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{GRADIENT_NORM_MAX, Loss, Map, QueryShape, SLOPE_MAX};
use reticent_core::schema::Schema;

use super::{FitRequest, Method, classes_of, outputs, start_weights};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, plan_release};
use crate::prepared_fit::{FitError, Fitted, PreparedFit, Releases};

/// Name on the command line and in certificates.
pub const NAME: &str = "noisy-gd-lecture";

/// Radius of the ball: a choice, the lecture leaves it to the reader.
const RADIUS: f64 = 5.0;
/// Fewest and most passes that the default rule chooses.
const PASSES: (f64, f64) = (10.0, 1000.0);
/// Most passes that may be asked for.
const PASSES_MAX: u32 = 100_000;

/// The method.
pub struct NoisyGdLecture;

impl Method for NoisyGdLecture {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "the lecture's projected gradient descent, with a bound on the excess loss (two or more classes; under add-remove `rows` declared)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[
            MethodOption {
                name: "passes",
                value: "T",
                help: "Number of passes over the table [default: so many that more would lower the bound by less than 5 %, from 10 to 1000]",
                choices: &[],
            },
            MethodOption {
                name: "radius",
                value: "RADIUS",
                help: "Radius of the ball that the weights of the encoded columns are projected to [default: 5]",
                choices: &[],
            },
        ]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        let schema = request.schema;
        let classes = classes_of(NAME, schema)?;
        let units = declared_units(NAME, schema)?;
        let (encoding, norm_bound) = encoding(schema);
        let columns = encoding.coding().columns().len();
        let options = request.options;
        let radius = options.number("radius", "a finite number above 0", |radius| radius > 0.0)?.unwrap_or(RADIUS);
        let map = if classes == 2 {
            Map::Gradient { loss: Loss::Logistic, columns: columns as u32 }
        } else {
            Map::SoftmaxGradient { classes, columns: columns as u32 }
        };
        let shape = QueryShape::of_schema(map, schema)?;

        let mut theorem = Theorem {
            radius,
            // A gradient of all the rows of one unit.
            unit_gradient: norm_bound * row_factor(classes) * f64::from(schema.privacy().unit.rows_max()),
            dimensions: (columns * outputs(schema)) as f64,
            noise: 0.0,
            points: 0.0,
        };
        let price = |passes: NonZeroU32| {
            plan_release(NAME, "gradient", shape.clone(), passes, request.claim.mu_squared, &request.claim.relation)
        };
        let step = norm_bound / f64::from(GRADIENT_NORM_MAX);
        let noise = |gradient: &PlannedRelease| gradient.noise.standard_deviation(gradient.noise_scale) * step / units;
        let passes = match options.whole_number("passes", 1..=PASSES_MAX)? {
            Some(passes) => passes,
            None => theorem.default_passes(noise(&price(NonZeroU32::MIN)?)),
        };
        let gradient = price(NonZeroU32::new(passes).expect("checked, or chosen above zero"))?;
        (theorem.noise, theorem.points) = (noise(&gradient), f64::from(passes) + 1.0);

        let start = match request.init {
            Some(model) => start_weights(model, schema, &encoding)?,
            None => vec![0.0; columns * outputs(schema)],
        };
        let rounding = Rounding { reach: radius + norm(&start), norm_bound, columns: columns as f64, classes };
        let expectations = expectations(&theorem, &rounding, norm_bound, schema);
        let plan = Plan::of(NAME, request, vec![gradient], expectations);
        let encoding = Arc::new(encoding);
        let fit = Fit { encoding: encoding.clone(), start, units, theorem };
        Ok(PreparedFit::new(plan, Some(encoding), move |releases| fit.run(releases)))
    }
}

struct Fit {
    encoding: Arc<Encoding>,
    start: Vec<f64>,
    units: f64,
    theorem: Theorem,
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let passes = releases.planned(0).times;
        let mean_gradient = |weights: &[f64]| {
            let released = releases.sum(0, &self.encoding, PassWeights::quantise(weights))?;
            Ok::<_, FitError>(released.values().into_iter().map(|sum| sum / self.units).collect())
        };
        let Theorem { radius, .. } = self.theorem;
        let weights = projected_mean(&self.start, radius, self.theorem.step(), passes, mean_gradient)?;
        Ok(Fitted { encoding: self.encoding.clone(), weights, covariance: None })
    }
}

/// Mean of `theta_0 .. theta_{T-1}`, the start and the points after each of `T - 1` passes: steps of length `step`, each followed
/// by the projection to the ball of `radius` around the start.
fn projected_mean<E>(
    start: &[f64],
    radius: f64,
    step: f64,
    passes: u32,
    mut gradient: impl FnMut(&[f64]) -> Result<Vec<f64>, E>,
) -> Result<Vec<f64>, E> {
    let mut weights = start.to_vec();
    let mut sum = start.to_vec();
    for _ in 0..passes {
        let gradient = gradient(&weights)?;
        let mut away: Vec<f64> = weights
            .iter()
            .zip(start)
            .zip(gradient)
            .map(|((weight, start), slope)| weight - step * slope - start)
            .collect();
        let length = norm(&away);
        if length > radius {
            away.iter_mut().for_each(|coordinate| *coordinate *= radius / length);
        }
        weights = away.iter().zip(start).map(|(away, start)| start + away).collect();
        sum.iter_mut().zip(&weights).for_each(|(sum, weight)| *sum += weight);
    }
    Ok(sum.into_iter().map(|sum| sum / (f64::from(passes) + 1.0)).collect())
}

/// What the theorem speaks of.
struct Theorem {
    /// Radius of the ball.
    radius: f64,
    /// Bound on the norm of the gradient of one unit's rows: `m L`.
    unit_gradient: f64,
    /// Number of weights.
    dimensions: f64,
    /// Standard deviation of a coordinate of the released mean gradient.
    noise: f64,
    /// Number of points `T` that are averaged: one more than there are passes.
    points: f64,
}

impl Theorem {
    /// `B = sqrt((m L)² + d s²)`: root of a bound on the mean square of a noisy gradient's norm. Independent of the rows.
    fn gradient_bound(&self) -> f64 {
        (self.unit_gradient.powi(2) + self.dimensions * self.noise.powi(2)).sqrt()
    }

    /// `eta = R / (B sqrt(T))`.
    fn step(&self) -> f64 {
        self.radius / (self.gradient_bound() * self.points.sqrt())
    }

    /// `R B / sqrt(T)`: bound on the expected excess of the mean loss over the ball's minimum, with exact gradients.
    fn excess(&self) -> f64 {
        self.radius * self.gradient_bound() / self.points.sqrt()
    }

    /// Passes from which more lower the bound by less than 5 %: `B²/T = (m L)²/T + d s_1²` with `s_1` the noise of one pass
    /// that gets the whole budget, and the first term is a tenth of the second.
    fn default_passes(&self, noise_of_one: f64) -> u32 {
        let passes = 10.0 * self.unit_gradient.powi(2) / (self.dimensions * noise_of_one.powi(2));
        passes.ceil().clamp(PASSES.0, PASSES.1) as u32
    }
}

/// What rounding can add to the excess loss; the theorem's own bound is for exact gradients.
struct Rounding {
    /// Bound on the norm of the weights.
    reach: f64,
    /// Bound `L` on the norm of a row.
    norm_bound: f64,
    columns: f64,
    classes: u32,
}

impl Rounding {
    /// `b`: how far the sum of a row's rounded slope times row can be from its gradient, at most.
    ///
    /// ```text
    ///   b = L (slope + curvature · L (sqrt(d) reach / 32766 + reach 2^-22))
    ///   two classes: slope 0.502/2048, curvature 1/4;   K classes: sqrt(K)/2000, 1/2, and K d weights for d
    /// ```
    fn gradient_error(&self) -> f64 {
        let steps = f64::from(SLOPE_MAX);
        let (slope, curvature, weights) = match self.classes {
            2 => (0.502 / steps, 0.25, self.columns),
            classes => (f64::from(classes).sqrt() / 2000.0, 0.5, self.columns * f64::from(classes)),
        };
        // Weights are rounded to half a step, and a step is a power of two; a score is three single-precision roundings off.
        let score = self.reach * (weights.sqrt() / (f64::from(LATTICE_NORM_MAX) - 1.0) + 2f64.powi(-22));
        self.norm_bound * (slope + curvature * self.norm_bound * score)
    }

    /// Bound on the change of any row's loss by the lattice: each coordinate is off by at most two lattice steps `L/32767`,
    /// and a number's code by `1/32767`.
    fn loss_error(&self) -> f64 {
        let row = self.columns.sqrt() * (2.0 * self.norm_bound + 1.0) / f64::from(LATTICE_NORM_MAX);
        self.reach * row * row_factor(self.classes)
    }

    /// `2 m (R b + loss error)`: a gradient that is off by `b` costs at most `b` times the distance to the best point.
    fn excess(&self, radius: f64, unit_rows: f64) -> f64 {
        2.0 * unit_rows * (radius * self.gradient_error() + self.loss_error())
    }
}

/// Norm of the derivative of a row's loss by its scores, at most: 1, or `sqrt(2)` with a score a class.
fn row_factor(classes: u32) -> f64 {
    if classes == 2 { 1.0 } else { std::f64::consts::SQRT_2 }
}

fn expectations(theorem: &Theorem, rounding: &Rounding, norm_bound: f64, schema: &Schema) -> Vec<Expectation> {
    let expect = |name, value, meaning: &str| Expectation { name, value, meaning: meaning.to_owned() };
    let rounded = rounding.excess(theorem.radius, f64::from(schema.privacy().unit.rows_max()));
    vec![
        expect("norm bound of a row", norm_bound, "L2, over encoded columns with the intercept"),
        expect("noise of the mean gradient", theorem.noise, "standard deviation of a coordinate, one pass"),
        expect("step", theorem.step(), "R / (B sqrt(T)), the theorem's"),
        expect(
            "excess loss at most",
            theorem.excess() + rounded,
            "expected mean log loss above the best weights in the ball, in nats; with fewer rows than declared, times declared / actual",
        ),
        expect("of which rounding at most", rounded, "of slopes, weights and rows to integers"),
    ]
}

/// The declared number of units, each of which may have several rows: what the mean gradient is divided by.
pub(super) fn declared_units(method: &'static str, schema: &Schema) -> Result<f64, PlanError> {
    schema.privacy().rows.map(|units| units as f64).ok_or_else(|| {
        PlanError::Parameter(format!(
            "method {method} divides by the number of rows, which its source takes as public; declare it as `rows` in \
             [privacy] (`reticent fit` counts it itself under replace and label), or use noisy-gd"
        ))
    })
}

/// Numeric columns in `[-1, 1]`, as in the lecture; categories 0 or 1. With the norm bound: the schema's, if it declares one,
/// or the largest norm that such a row can have, at which nothing is clipped.
pub(super) fn encoding(schema: &Schema) -> (Encoding, f64) {
    let coding = Coding::of(schema);
    let first_listed = coding.listed().map_or(coding.columns().len(), ListedColumns::first_column);
    let shape = |(place, column): (usize, &Column)| match column {
        Column::Intercept | Column::Category { .. } => (0.0, 1.0),
        Column::Linear { .. } | Column::SymLog { .. } if place < first_listed => (0.5, 2.0),
        // 0 where a row does not list them, so that it stays short.
        Column::Linear { .. } | Column::SymLog { .. } => (0.0, 1.0),
    };
    let (centre, scale): (Vec<f64>, Vec<f64>) = coding.columns().iter().enumerate().map(shape).unzip();
    let largest = Encoding::largest_norm(&coding, &centre, &scale);
    let bound = schema.privacy().row_norm.map_or(largest, |declared| declared.min(largest));
    (Encoding::new(coding, centre, scale, NormRule::Clip(bound)), bound)
}

fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|coordinate| coordinate * coordinate).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEOREM: Theorem = Theorem { radius: 3.0, unit_gradient: 2.0, dimensions: 6.0, noise: 0.5, points: 100.0 };

    /// See `testdata/golden/noisy_gd_lecture.py`.
    #[test]
    fn the_bound_and_the_step_are_the_theorems() {
        assert!((THEOREM.excess() - GOLDEN_EXCESS).abs() < 1e-12, "{}", THEOREM.excess());
        assert!((THEOREM.step() - GOLDEN_STEP).abs() < 1e-12, "{}", THEOREM.step());
    }

    /// The mean of five points on a quadratic, from NumPy: the ball is reached after two steps.
    #[test]
    fn iterates_are_those_of_the_independent_implementation() {
        let quadratic = |at: &[f64]| Ok::<_, ()>(vec![2.0 * (at[0] - 3.0), 0.5 * (at[1] + 4.0)]);
        let mean = projected_mean(&[0.5, -0.25], 2.0, 0.4, 4, quadratic).expect("no error");
        for (found, expected) in mean.iter().zip(GOLDEN_MEAN) {
            assert!((found - expected).abs() < 1e-12, "{mean:?}");
        }
    }

    const GOLDEN_EXCESS: f64 = 0.703_562_363_973_514_5;
    const GOLDEN_STEP: f64 = 0.127_920_429_813_366_24;
    const GOLDEN_MEAN: [f64; 2] = [1.888_936_398_441_217, -1.029_490_687_927_383];

    #[test]
    fn the_default_passes_leave_little_to_gain() {
        let noise_of_one = 0.2;
        let passes = f64::from(THEOREM.default_passes(noise_of_one));
        let bound = |passes: f64| Theorem { noise: noise_of_one * passes.sqrt(), points: passes, ..THEOREM }.excess();
        assert!(bound(passes) < 1.05 * bound(1e9) && (PASSES.0..=PASSES.1).contains(&passes), "{passes}");
        assert!((f64::from(THEOREM.default_passes(1e-9)) - PASSES.1).abs() < 0.5);
    }
}
