//! Noisy gradient descent with rows that are centred, scaled and divided by their own norm: the default for classes.
//!
//! ```text
//!   x = (1, a ∘ (columns - m))              centre m and scale a from released marginals
//!   G = sum_i l'(theta·x_i, y_i) x_i / ||x_i|| + noise       one pass; a row moves the sum by at most 1
//!   V <- beta V - (eta / n) (G + l2 theta),    theta <- theta + V
//!   result: the mean of the last iterates, drawn toward the base rate as far as a last release shows no signal
//! ```
//! With the two-sided exponential loss the division by the norm costs nothing in consistency: every weight `w(x, theta) > 0`
//! leaves the true coefficients where they are, and the one used here is the largest with sensitivity 1.
//! Proofs, constants and failures: `docs/methods/noisy-gd.md`.
//!
//! Sources: Bassily, Smith, Thakurta 2014, Alg. 1 (noisy gradient descent); Polyak 1964 (momentum); the weights and the loss
//! are derived in the page named above.

mod released_marginals;
mod saturation;
mod signal_check;

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::adjacency::Adjacency;
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX, NormRule};
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{COUNT_STEP, Loss, Map, QueryShape, SLOPE_MAX, outputs};
use reticent_core::schema::{Schema, TargetKind};

use self::released_marginals::{ClassCounts, ReleasedMarginals, ScaledColumns, centred_logs};
use self::saturation::{divisors_of, saturation_of, shares_of};
use self::signal_check::{expected_gain, kept_of_hits, kept_share};
use super::{FitRequest, Method, start_weights};
use crate::model::Model;
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, plan_release};
use crate::prepared_fit::{FitError, Fitted, PreparedFit, Releases};
use crate::softmax::softmax;

/// Name on the command line and in certificates.
pub const NAME: &str = "noisy-gd";

/// Least momentum `beta`: the effective step is `eta / (1 - beta)`.
const MOMENTUM: f64 = 0.9;
/// Where the largest stable steps are too short for the time, momentum rises to at most `1 - MEMORY/T`: swings from the start,
/// which shrink by `sqrt(beta)` a pass, are then down to `e^{-3}` at the end, before they are averaged.
const MEMORY: f64 = 6.0;
/// `mu²` is shared out in so many parts; class counts, marginals and signal check get [`SIDE_PARTS`] of them each, the check of more
/// than two classes half as many: what it measures is larger.
const PARTS: NonZeroU32 = NonZeroU32::new(400).expect("not zero");
const SIDE_PARTS: u32 = 20;
/// Parts on top for the counts and for the check, where little signal is expected: see [`weakness`].
const WEAK_PARTS: (f64, f64) = (40.0, 20.0);
/// Signal `n mu` at which half of [`WEAK_PARTS`] is given: of two classes, and for each of more, as each has a rate that must be known; and
/// the number of rows that stands for an undeclared one.
const WEAK_SIGNAL: f64 = 180.0;
const WEAK_SIGNAL_A_CLASS: f64 = 45.0;
const USUAL_ROWS: f64 = 36_000.0;
/// Fewest and most passes, unless asked otherwise, and passes a unit of mu in between: with much budget the time rule asks for
/// more time than 100 steps of the largest stable size take.
const PASSES: (f64, f64) = (100.0, 1000.0);
const PASSES_BY_MU: f64 = 1000.0;
/// Most passes that may be asked for.
const PASSES_MAX: u32 = 100_000;
/// Share of the iterates, the last ones, that the result is the mean of.
const AVERAGED_SHARE: f64 = 0.3;
/// Time of the descent of two classes, in units of `n mu / A`, and the signal-to-noise ratio `n mu` at which it is halved: see
/// [`descent_time`].
const TIME: f64 = 0.75;
const SIGNAL_HALF: f64 = 4.0;
/// The same of more classes, whose scores are larger.
const TIME_OF_MANY: f64 = 1.2;
const SIGNAL_HALF_OF_MANY: f64 = 20.0;
/// How far intercepts of more than two classes move to what their shares stand for under saturated slopes. The whole way is right
/// without features; with them early stopping, which makes scores less sure, cancels some of it.
const LINK_SHARE: f64 = 0.5;

/// The method.
pub struct NoisyGd;

impl Method for NoisyGd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "full-batch gradient descent, rows centred by released marginals and divided by their norm (classes)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[
            MethodOption {
                name: "coordinate-bits",
                value: "BITS",
                help: "Bits that keep a coordinate of a row: 8 take half the memory and three quarters of the time, and cost some \
                       accuracy where there are hundreds of columns [default: 16]",
                choices: &["16", "8"],
            },
            MethodOption {
                name: "l2",
                value: "L2",
                help: "L2 penalty: adds L2/2 times the squared norm of the encoded weights, intercept excepted, to the \
                       summed loss [default: 0]",
                choices: &[],
            },
            MethodOption {
                name: "passes",
                value: "T",
                help: "Number of passes over the table [default: 100, up to 1000 with much budget]",
                choices: &[],
            },
        ]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        let checked = Checked::new(request)?;
        let plan = plan(&checked, request)?;
        let plain = checked.plain.clone();
        let fit = Fit { checked, schema: request.schema.clone(), init: request.init.cloned() };
        Ok(PreparedFit::new(plan, Some(plain), move |releases| fit.run(releases)))
    }
}

/// Parameters that fit the schema.
struct Checked {
    classes: u32,
    loss: Loss,
    coding: Coding,
    /// The columns before anything is released: what counts are asked in, and as large as what gradients are asked in.
    plain: Arc<Encoding>,
    l2: f64,
    passes: NonZeroU32,
    /// Whether rows are kept in coordinates of 8 bits.
    is_coarse: bool,
}

impl Checked {
    fn new(request: &FitRequest<'_>) -> Result<Self, PlanError> {
        let schema = request.schema;
        let classes = match &schema.target().kind {
            TargetKind::Classes(classes) => classes.len() as u32,
            TargetKind::Bounds { .. } => {
                let found = "bounds, as for a linear regression: use --method gram".to_owned();
                return Err(PlanError::Target { method: NAME, fits: "classes", found });
            }
        };
        let coding = Coding::of(schema);
        let options = request.options;
        let is_coarse = options.word("coordinate-bits") == Some("8");
        let plain = Arc::new(Encoding::plain(coding.clone(), NormRule::OwnNorm).coarse(is_coarse));
        if let Some(init) = request.init {
            start_weights(init, schema, &plain)?;
        }
        // A changed label turns a two-sided slope around; a logistic one it moves half as far.
        let loss = match schema.privacy().adjacency {
            Adjacency::Label => Loss::Logistic,
            Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party => Loss::TwoSidedExponential,
        };
        let passes = options
            .whole_number("passes", 1..=PASSES_MAX)?
            .unwrap_or((PASSES_BY_MU * request.claim.mu).clamp(PASSES.0, PASSES.1) as u32);
        Ok(Self {
            classes,
            loss,
            coding,
            plain,
            l2: options.number("l2", "a finite number of at least 0", |l2| l2 >= 0.0)?.unwrap_or(0.0),
            passes: NonZeroU32::new(passes).expect("checked to be at least 1"),
            is_coarse,
        })
    }

    fn gradient_map(&self) -> Map {
        let columns = self.coding.columns().len() as u32;
        match (self.classes, self.loss) {
            (2, loss) => Map::Gradient { loss, columns },
            // A changed label moves the plain slope by sqrt(2), and a bounded one by up to 2.
            (classes, Loss::Logistic) => Map::SoftmaxGradient { classes, columns },
            (classes, Loss::TwoSidedExponential) => Map::BoundedSoftmaxGradient { classes, columns },
        }
    }

    fn marginals_map(&self) -> Map {
        Map::marginals(self.classes, &self.coding)
    }

    /// Number of linear scores of a row.
    fn outputs(&self) -> usize {
        outputs(self.classes)
    }

    /// Saturation of bounded slopes for a signal `n mu`; 1 where there are none.
    fn saturation(&self, signal: f64) -> f64 {
        match (self.classes, self.loss) {
            (2, _) | (_, Loss::Logistic) => 1.0,
            (_, Loss::TwoSidedExponential) => saturation_of(signal),
        }
    }

    /// The largest curvature of the loss in one score, at most; `saturation` is that of bounded slopes.
    fn curvature(&self, saturation: f64) -> f64 {
        match (self.classes, self.loss) {
            (2, Loss::TwoSidedExponential) => 1.0,
            (2, Loss::Logistic) => 0.25,
            // The softmax has curvature at most 1/2; a bounded slope is divided by at least the saturation times 1/sqrt(2).
            (_, Loss::Logistic) => 0.5,
            (_, Loss::TwoSidedExponential) => std::f64::consts::FRAC_1_SQRT_2 / saturation,
        }
    }
}

/// Plans the fit: class counts, marginals, one gradient a pass, and the signal check.
fn plan(checked: &Checked, request: &FitRequest<'_>) -> Result<Plan, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let shape = |map| QueryShape::of_schema(map, schema);
    let weak = weakness(schema, checked.classes, claim.mu);
    let mut left = claim.mu_squared;
    let mut once = |purpose, map, parts: u32, weak_parts: f64| {
        let parts = parts + (weak * weak_parts).round() as u32;
        let share = claim.mu_squared.fraction_down(parts, PARTS);
        left = left.checked_sub(share).expect("at most 120 parts of 400");
        plan_release(NAME, purpose, shape(map)?, NonZeroU32::MIN, share, &claim.relation)
    };

    let check_parts = if checked.classes == 2 { SIDE_PARTS } else { SIDE_PARTS / 2 };
    // The table counts classes once more, which a start that was handed in has no use for.
    let check = match (checked.classes, request.init) {
        (2, None) => Map::ScoreHistogram { buckets: 2 },
        (classes, _) => Map::ExcessHits { classes },
    };
    let counts = once("class counts", Map::ClassCount { classes: checked.classes }, SIDE_PARTS, WEAK_PARTS.0)?;
    let marginals = once("marginals", checked.marginals_map(), SIDE_PARTS, 0.0)?;
    let check = once("signal check", check, check_parts, WEAK_PARTS.1)?;
    let gradients =
        plan_release(NAME, "gradient", shape(checked.gradient_map())?, checked.passes, left, &claim.relation)?;

    let gradient_noise = gradients.noise_scale.get() as f64 * gradient_step();
    let count_noise = counts.noise_scale.get() as f64 / COUNT_STEP as f64;
    let expectations = expectations(checked, schema, count_noise, gradient_noise);
    Ok(Plan::of(NAME, request, vec![counts, marginals, gradients, check], expectations))
}

/// Between 0 and 1: how little a budget is for the rows that are declared, or for a usual number of them.
///
/// With `n mu` below 180 or so the base rates themselves are not well known, and the check decides more than the descent: both get more of
/// the budget.
fn weakness(schema: &Schema, classes: u32, mu: f64) -> f64 {
    let rows = schema.privacy().rows.map_or(USUAL_ROWS, |rows| rows as f64);
    let half = if classes == 2 { WEAK_SIGNAL } else { WEAK_SIGNAL_A_CLASS * f64::from(classes) };
    1.0 / (1.0 + (rows * mu / half).powi(2))
}

/// The declared number of rows: that of units, where each has one row at most.
fn declared_rows(schema: &Schema) -> Option<u64> {
    if schema.privacy().unit.rows_max() == 1 { schema.privacy().rows } else { None }
}

/// What one lattice unit of a gradient sum is worth when the largest contribution of a row is 1.
fn gradient_step() -> f64 {
    1.0 / (f64::from(SLOPE_MAX) * f64::from(LATTICE_NORM_MAX))
}

fn expectations(checked: &Checked, schema: &Schema, count_noise: f64, gradient_noise: f64) -> Vec<Expectation> {
    let classes = f64::from(checked.classes);
    let noise = gradient_noise / f64::from(checked.passes.get()).sqrt();
    let mut expectations = vec![
        Expectation {
            name: "noise of a gradient coordinate",
            value: gradient_noise,
            meaning: "standard deviation of one pass, in rows; a row adds at most 1".to_owned(),
        },
        Expectation {
            name: "noise of all passes together",
            value: noise,
            meaning: "standard deviation of their mean, a coordinate; a table of fewer rows has no signal".to_owned(),
        },
        Expectation {
            name: "noise of the row count",
            value: classes.sqrt() * count_noise,
            meaning: "standard deviation in rows, before it is combined with what is declared".to_owned(),
        },
    ];
    if let Some(rows) = schema.privacy().rows {
        expectations.push(Expectation {
            name: "signal against noise",
            value: rows as f64 / noise,
            meaning: "n mu: above 1000 privacy costs little; below 50 the model is little more than the base rate"
                .to_owned(),
        });
    }
    expectations
}

struct Fit {
    checked: Checked,
    schema: Schema,
    init: Option<Model>,
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let Self { checked, schema, init } = self;
        let counted = releases.sum(0, &checked.plain, PassWeights::none())?;
        let marginals = releases.sum(1, &checked.plain, PassWeights::none())?;
        let classes = checked.classes as usize;
        let mut counts = ClassCounts::of(&counted.values(), counted.noise_standard_deviation);
        counts.add(&marginals.values()[..classes], marginals.noise_standard_deviation);
        let rows = counts.rows(declared_rows(schema));

        let gradient = releases.planned(2);
        let passes = gradient.times;
        let signal = rows * f64::from(passes).sqrt() / (gradient.noise_scale.get() as f64 * gradient_step());
        let noise = marginals.noise_standard_deviation / rows;
        let features = ReleasedMarginals::of(&checked.coding, &marginals.values()[classes..], rows, noise);
        let scaled = features.scaled(&checked.coding, signal);
        let (centre, scale) = (scaled.centre.clone(), scaled.scale.clone());
        let encoding = Encoding::new(checked.coding.clone(), centre, scale, NormRule::OwnNorm);
        let encoding = Arc::new(encoding.coarse(checked.is_coarse));

        let columns = checked.coding.columns().len();
        let saturation = checked.saturation(signal);
        let start = match init {
            Some(model) => {
                start_weights(model, schema, &encoding).map_err(|error| FitError::Numeric(error.to_string()))?
            }
            None => {
                let intercepts = match classes {
                    2 => counts.log_odds(rows),
                    _ => centred_logs(&shares_of(&counts.rates(rows), saturation)),
                };
                let mut start = vec![0.0; checked.outputs() * columns];
                for (score, intercept) in start.chunks_exact_mut(columns).zip(intercepts) {
                    score[0] = intercept;
                }
                start
            }
        };
        let time = descent_time(checked.classes, signal, scaled.row_norm);
        let largest_curvature = scaled.row_norm * checked.curvature(saturation) + checked.l2 / rows;
        let stride = Stride::of(time, largest_curvature, passes);
        let mut descent = HeavyBall::from(start.clone(), columns, stride, rows, checked.l2, passes);
        for _ in 0..passes {
            let weights = PassWeights::quantise(&descent.weights).with_saturation(saturation);
            descent.follow(&releases.sum(2, &encoding, weights)?.values());
        }
        let time = stride.time(passes);
        let weights = descent.mean();
        let is_started = init.is_some();
        let descended = Descended { encoding, scaled, counts, rows, is_started, start, weights, saturation, time };
        if matches!(releases.planned(3).shape.map(), Map::ScoreHistogram { .. }) {
            descended.check_table(releases)
        } else {
            descended.check_hits(releases)
        }
    }
}

/// Where a descent has led, and all that the check of its signal needs.
struct Descended {
    encoding: Arc<Encoding>,
    scaled: ScaledColumns,
    counts: ClassCounts,
    rows: f64,
    /// Whether it started from a model that was handed in.
    is_started: bool,
    start: Vec<f64>,
    weights: Vec<f64>,
    saturation: f64,
    /// What the steps took: see [`Stride`].
    time: f64,
}

impl Descended {
    /// Keeps what a table of two classes and signs bears out, for a start at their rates.
    fn check_table(mut self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let (mut change, rows) = (self.change(), self.rows);
        let intercept_change = std::mem::replace(&mut change[0], 0.0);
        let released = releases.sum(3, &self.encoding, PassWeights::quantise(&change))?;
        let (cells, cell_noise) = (released.values(), released.noise_standard_deviation);
        let rate = self.counts.rate(rows);
        let kept = kept_share(&cells, cell_noise, rows, rate, self.scaled.score_deviation(&change));
        self.shorten(&change, kept);
        self.counts.add(&[cells[0] + cells[1], cells[2] + cells[3]], std::f64::consts::SQRT_2 * cell_noise);
        let base = self.counts.log_odds(rows)[0];
        // The check counts rows once more. As far as the descent has not moved away from its start, a better start moves
        // the end along.
        let rate = self.counts.rate(rows);
        let left = left_of_start(rate.min(1.0 - rate), self.scaled.row_norm, self.time);
        let end = self.start[0] + intercept_change + left * (base - self.start[0]);
        // What the descent knows of the intercept beyond the counts is kept as far as the counts are noise.
        let (of_counts, of_descent) = (self.counts.log_odds_error(rows), TIME / self.scaled.row_norm);
        let kept = kept + (1.0 - kept) * of_counts.powi(2) / (of_counts.powi(2) + of_descent.powi(2));
        self.weights[0] = base + kept * (end - base);
        Ok(self.fitted())
    }

    /// Keeps what excess hits bear out. With more than two classes intercepts move to what their shares stand for: the whole way as far
    /// as they still are where the counts put them, and half of it else.
    fn check_hits(mut self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let (mut change, rows) = (self.change(), self.rows);
        let deviations = self.scaled.deviations();
        let columns = deviations.len();
        change.iter_mut().step_by(columns).for_each(|of_intercept| *of_intercept = 0.0);
        let intercepts = |weights: &[f64]| -> Vec<f64> { weights.iter().copied().step_by(columns).collect() };
        let bases = if self.is_started { intercepts(&self.start) } else { self.counts.log_odds(rows) };
        let mut first = self.start.clone();
        first.iter_mut().step_by(columns).zip(&bases).for_each(|(intercept, base)| *intercept = *base);
        let second = first.iter().zip(&change).map(|(first, change)| first + change);
        let both: Vec<f64> = first.iter().copied().chain(second).collect();
        let released = releases.sum(3, &self.encoding, PassWeights::quantise(&both))?;
        let expected = rows * expected_gain(&first, &change, &deviations);
        let kept = kept_of_hits(&released.values(), released.noise_standard_deviation, expected);
        self.shorten(&change, kept);

        let links = self.links(&intercepts(&self.start), &intercepts(&self.weights));
        for (class, (base, link)) in bases.into_iter().zip(links).enumerate() {
            let end = self.weights[class * columns] + link;
            self.weights[class * columns] = base + kept * (end - base);
        }
        Ok(self.fitted())
    }

    /// What intercepts at the end of a descent move by. With more than two classes what shares stand for is the shares times their
    /// divisors, normalised.
    fn links(&self, starts: &[f64], ends: &[f64]) -> Vec<f64> {
        if ends.len() == 1 {
            return vec![0.0];
        }
        let shares = softmax(starts);
        let curvatures = shares.iter().zip(divisors_of(&shares, self.saturation));
        let moved = curvatures.map(|(share, divisor)| {
            let left = left_of_start(share * (1.0 - share) / divisor, self.scaled.row_norm, self.time);
            // A start that was handed in stands for itself.
            let of_start = if self.is_started { 0.0 } else { left };
            of_start + (1.0 - left) * LINK_SHARE
        });
        let factors = centred_logs(&divisors_of(&softmax(ends), self.saturation));
        moved.zip(factors).map(|(moved, factor)| moved * factor).collect()
    }

    fn change(&self) -> Vec<f64> {
        self.weights.iter().zip(&self.start).map(|(weight, start)| weight - start).collect()
    }

    /// Takes back what is not kept of a change.
    fn shorten(&mut self, change: &[f64], kept: f64) {
        for (weight, change) in self.weights.iter_mut().zip(change) {
            *weight -= (1.0 - kept) * change;
        }
    }

    fn fitted(self) -> Fitted {
        Fitted { encoding: self.encoding, weights: self.weights, covariance: None }
    }
}

/// How long a descent goes on, for a signal `n mu` and a typical row norm `A`.
///
/// ```text
///   time = eta T / (1 - beta) = c n mu / A,    c = 3/4 · n mu / (n mu + 4),  with more than two classes  6/5 · n mu / (n mu + 20)
/// ```
/// At that time the noise of all passes, added up, has moved each weight by about `c/A`: the score of a row, then, by about `c`, the size of a usual
/// score. Going on would add noise faster than signal.
fn descent_time(classes: u32, signal: f64, row_norm: f64) -> f64 {
    let (time, half) = if classes == 2 { (TIME, SIGNAL_HALF) } else { (TIME_OF_MANY, SIGNAL_HALF_OF_MANY) };
    time * signal / (signal + half) * signal / row_norm
}

/// Step `eta` and momentum `beta` of a descent.
#[derive(Debug, Clone, Copy)]
struct Stride {
    step: f64,
    momentum: f64,
}

impl Stride {
    /// That of `passes` passes `T` that take `time = eta T / (1 - beta)` together, or as near as they come to it.
    ///
    /// ```text
    ///   eta <= 2 (1 + beta) / L      stable: Polyak 1964, with L the largest eigenvalue of the mean Hessian
    ///   time = 2 T (1 + beta) / ((1 - beta) L)  at that step,   so  beta = 1 - 2/(r + 1)  with  r = time L / (2 T)
    /// ```
    /// within `[9/10, 1 - 6/T]`. `largest_curvature` is at least `L`: the curvature of the loss times the mean row norm, and the
    /// penalty a row.
    fn of(time: f64, largest_curvature: f64, passes: u32) -> Self {
        let passes = f64::from(passes);
        let ratio = time * largest_curvature / (2.0 * passes);
        let most = (1.0 - MEMORY / passes).max(MOMENTUM);
        let momentum = (1.0 - 2.0 / (ratio + 1.0)).clamp(MOMENTUM, most);
        let step = (time * (1.0 - momentum) / passes).min(2.0 * (1.0 + momentum) / largest_curvature);
        Self { step, momentum }
    }

    /// `eta T / (1 - beta)`.
    fn time(self, passes: u32) -> f64 {
        self.step * f64::from(passes) / (1.0 - self.momentum)
    }
}

/// How much of a change of its start an intercept keeps: `e^{-h t}` with the curvature `h = curvature / A` of the mean loss at the base
/// rates: `min(p, 1 - p)` of the two-sided loss, `p_k (1 - p_k) / d_k` of bounded slopes with divisors `d`.
fn left_of_start(curvature: f64, row_norm: f64, time: f64) -> f64 {
    (-curvature / row_norm * time).exp()
}

/// Heavy-ball descent on noisy gradients, and the mean of its last points.
struct HeavyBall {
    weights: Vec<f64>,
    velocity: Vec<f64>,
    sum: Vec<f64>,
    columns: usize,
    stride: Stride,
    rows: f64,
    l2: f64,
    left: u32,
    averaged: u32,
}

impl HeavyBall {
    /// The first of every `columns` weights is an intercept, which is not penalised.
    fn from(start: Vec<f64>, columns: usize, stride: Stride, rows: f64, l2: f64, passes: u32) -> Self {
        let averaged = ((f64::from(passes) * AVERAGED_SHARE).ceil() as u32).clamp(1, passes);
        let zero = vec![0.0; start.len()];
        Self { weights: start, velocity: zero.clone(), sum: zero, columns, stride, rows, l2, left: passes, averaged }
    }

    fn follow(&mut self, gradient: &[f64]) {
        let Stride { step, momentum } = self.stride;
        let step = step / self.rows;
        for (place, noisy) in gradient.iter().enumerate() {
            let penalty = if place % self.columns == 0 { 0.0 } else { self.l2 * self.weights[place] };
            self.velocity[place] = momentum * self.velocity[place] - step * (noisy + penalty);
            self.weights[place] += self.velocity[place];
        }
        if self.left <= self.averaged {
            for (total, weight) in self.sum.iter_mut().zip(&self.weights) {
                *total += weight;
            }
        }
        self.left -= 1;
    }

    fn mean(self) -> Vec<f64> {
        let averaged = f64::from(self.averaged);
        self.sum.into_iter().map(|total| total / averaged).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_stays_in_the_stable_range() {
        for signal in [1e-3, 1.0, 1e3, 1e6, 1e12] {
            for norm in [1.0, 3.0, 30.0] {
                for curvature in [0.25, 1.0] {
                    for penalty in [0.0, 1.0, 1e9] {
                        for passes in [1, 7, 100, 1000] {
                            let largest = norm * curvature + penalty;
                            let stride = Stride::of(descent_time(2, signal, norm), largest, passes);
                            // Heavy ball on a quadratic with curvature up to L converges for eta <= 2 (1 + beta) / L.
                            let most = 2.0 * (1.0 + stride.momentum) / largest;
                            assert!(stride.step > 0.0 && stride.step <= most * (1.0 + 1e-12), "{stride:?}");
                            assert!((0.9..1.0).contains(&stride.momentum), "{stride:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn momentum_rises_where_steps_alone_are_too_short() {
        // The longest time of a momentum of nine tenths: 38 passes over the curvature.
        let short = Stride::of(1900.0, 2.0, 100);
        assert!((short.momentum - 0.9).abs() < 1e-12 && (short.time(100) - 1900.0).abs() < 1e-6, "{short:?}");
        let longer = Stride::of(2500.0, 2.0, 100);
        assert!(longer.momentum > 0.9 && (longer.time(100) - 2500.0).abs() < 1e-6, "{longer:?}");
        let longest = Stride::of(1e9, 2.0, 100);
        assert!(
            (longest.momentum - 0.94).abs() < 1e-12 && (longest.time(100) - 9700.0 / 3.0).abs() < 1e-6,
            "{longest:?}"
        );
    }

    #[test]
    fn counts_and_check_get_more_where_little_signal_is_expected() {
        let of_classes = |rows: &str, classes: &str| {
            let text = format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{rows}\n[target]\ncolumn = \"y\"\nclasses = [{classes}]\n\
                 [features]\na = {{ bounds = [0, 10] }}\n"
            );
            Schema::from_text(&text).expect("legal")
        };
        let schema = |rows: &str| of_classes(rows, "1, 2");
        assert!((weakness(&schema("rows = 3000"), 2, 0.06) - 0.5).abs() < 1e-12, "n mu = 180");
        assert!((weakness(&schema("rows = 3000"), 8, 0.12) - 0.5).abs() < 1e-12, "n mu = 360");
        assert!((weakness(&schema(""), 2, 0.0025) - 0.8).abs() < 1e-12, "36,000 rows: n mu = 90");
        let shares = |epsilon: f64, schema: &Schema| -> Vec<f64> {
            use reticent_core::units::{Delta, Epsilon};
            let claim = crate::plan::PrivacyClaim::new(
                schema.relation(),
                Epsilon::new(epsilon).expect("legal"),
                Delta::new(1e-6).expect("legal"),
            );
            let options = crate::options::Options::default();
            let prepared = NoisyGd.prepare(&FitRequest { schema, claim: &claim, init: None, options: &options });
            let plan = prepared.expect("affordable");
            let price = |release: &reticent_core::ledger::PlannedRelease| {
                let sensitivity = release.shape.sensitivity(&claim.relation).expect("finite").get() as f64;
                let noise = release.noise_scale.get() as f64;
                f64::from(release.times) * sensitivity / (noise * noise) / (claim.mu * claim.mu)
            };
            plan.plan().releases.iter().map(price).collect()
        };
        for (found, expected) in [
            (shares(3.0, &schema("rows = 1000000")), [0.05, 0.05, 0.85, 0.05]),
            (shares(0.001, &schema("rows = 100")), [0.15, 0.05, 0.7, 0.1]),
            (shares(3.0, &of_classes("rows = 1000000", "1, 2, 3")), [0.05, 0.05, 0.875, 0.025]),
            (shares(0.001, &of_classes("rows = 100", "1, 2, 3")), [0.15, 0.05, 0.725, 0.075]),
        ] {
            assert!(found.iter().sum::<f64>() <= 1.0);
            assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 2e-4), "{found:?}");
        }
    }

    #[test]
    fn the_intercept_follows_a_better_start_as_far_as_it_has_not_moved() {
        assert!((left_of_start(0.25, 2.0, 8.0) - (-1f64).exp()).abs() < 1e-15);
        assert!((left_of_start(0.1, 3.0, 0.0) - 1.0).abs() < 1e-15);
    }

    /// Base rates go in as the shares that stand for them, and come out as themselves where the descent has not moved.
    #[test]
    fn intercepts_move_to_what_their_shares_stand_for() {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [1, 2, 3]\n\
                      [features]\na = { bounds = [0, 10] }\n";
        let coding = Coding::of(&Schema::from_text(schema).expect("legal"));
        let descended = |is_started, time| Descended {
            scaled: ReleasedMarginals::of(&coding, &[0.0, 0.0], 100.0, 0.0).scaled(&coding, 100.0),
            encoding: Arc::new(Encoding::plain(coding.clone(), NormRule::OwnNorm)),
            counts: ClassCounts::of(&[80.0, 10.0, 10.0], 1.0),
            rows: 100.0,
            is_started,
            start: vec![0.0; 6],
            weights: vec![0.0; 6],
            saturation: 0.5,
            time,
        };
        let rates = [0.8, 0.1, 0.1];
        let start = centred_logs(&shares_of(&rates, 0.5));
        let moved = |is_started, time| -> Vec<f64> {
            let links = descended(is_started, time).links(&start, &start);
            start.iter().zip(links).map(|(start, link)| start + link).collect()
        };
        assert_close(&moved(false, 0.0), &centred_logs(&rates));
        assert_close(&moved(true, 0.0), &start);
        let halfway: Vec<f64> =
            start.iter().zip(centred_logs(&rates)).map(|(start, whole)| (start + whole) / 2.0).collect();
        assert_close(&moved(false, 1e9), &halfway);
        assert_close(&moved(true, 1e9), &halfway);
        assert_eq!(descended(false, 0.0).links(&[0.3], &[0.9]), [0.0]);
    }

    #[test]
    fn the_mean_is_that_of_the_last_points_after_their_steps() {
        let stride = Stride { step: 5.0, momentum: 0.9 };
        let mut descent = HeavyBall::from(vec![0.0, 0.0], 2, stride, 10.0, 2.0, 4);
        for gradient in [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]] {
            descent.follow(&gradient);
        }
        // By hand: the intercept feels no penalty; thirty in a hundred of four passes are the last two.
        let points = [-0.5, -0.95, -1.355, -1.7195];
        let other = [0.0, -0.5, -0.45, 0.045];
        let mean = descent.mean();
        assert!((mean[0] - (points[2] + points[3]) / 2.0).abs() < 1e-12, "{mean:?}");
        assert!((mean[1] - (other[2] + other[3]) / 2.0).abs() < 1e-12, "{mean:?}");
    }

    fn numbers(golden: &serde_json::Value, name: &str) -> Vec<f64> {
        let values = golden[name].as_array().expect("a list");
        values.iter().map(|value| value.as_f64().expect("a number")).collect()
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} instead of {expected}");
        }
    }

    fn assert_slopes(found: &[i32], expected: &serde_json::Value) {
        for (found, expected) in found.iter().zip(expected.as_array().expect("a list")) {
            let expected = expected.as_f64().expect("a number");
            assert!((f64::from(*found) - expected).abs() < 1.01, "{found} instead of {expected}");
        }
    }

    /// Reference numbers by `testdata/golden/noisy_gd.py`.
    #[test]
    fn golden_marginals_descent_and_check() {
        let text = include_str!("../../../../testdata/golden/noisy_gd.json");
        let golden: serde_json::Value = serde_json::from_str(text).expect("JSON");
        let number = |name: &str| golden[name].as_f64().expect("a number");
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
                      [features]\na = { bounds = [0, 10] }\nb = { bounds = [0, 10] }\nk = { categories = [\"a\", \"b\", \"c\"] }\n";
        let coding = Coding::of(&Schema::from_text(schema).expect("legal"));
        let (rows, signal) = (number("rows"), number("signal"));
        let released = ReleasedMarginals::of(&coding, &numbers(&golden, "sums"), rows, number("noise"));
        let scaled = released.scaled(&coding, signal);
        assert_close(&scaled.centre, &numbers(&golden, "centre"));
        assert_close(&scaled.scale, &numbers(&golden, "scale"));
        assert_close(&[scaled.row_norm], &[number("row_norm")]);
        assert_close(&[2, 3].map(|classes| descent_time(classes, signal, scaled.row_norm)), &numbers(&golden, "times"));
        for case in golden["strides"].as_array().expect("a list") {
            let [time, passes, step, momentum] = [0, 1, 2, 3].map(|place| case[place].as_f64().expect("a number"));
            let stride = Stride::of(time, scaled.row_norm, passes as u32);
            assert_close(&[stride.step, stride.momentum], &[step, momentum]);
        }

        let count = |place: usize| -> Vec<f64> {
            golden["counts"][place]
                .as_array()
                .expect("a list")
                .iter()
                .map(|one| one.as_f64().expect("number"))
                .collect()
        };
        let noise = numbers(&golden, "count_noise");
        let mut counts = ClassCounts::of(&count(0), noise[0]);
        counts.add(&count(1), noise[1]);
        let counted = counts.rows(None);
        assert_close(&[counted, counts.log_odds(counted)[0]], &[number("counted"), number("log_odds")]);

        let gradients = golden["gradients"].as_array().expect("a list");
        let passes = gradients.len() as u32;
        let stride = Stride { step: number("step"), momentum: 0.9 };
        let mut descent = HeavyBall::from(numbers(&golden, "start"), 3, stride, 1.0, number("l2"), passes);
        for gradient in gradients {
            let gradient: Vec<f64> =
                gradient.as_array().expect("a list").iter().map(|one| one.as_f64().expect("number")).collect();
            descent.follow(&gradient);
        }
        assert_close(&descent.mean(), &numbers(&golden, "averaged"));

        let cells = numbers(&golden, "cells");
        let kept = kept_share(&cells, number("cell_noise"), rows, number("base"), number("deviation"));
        assert_close(&[kept], &[number("kept")]);

        let slopes = golden["softmax_slopes"].as_array().expect("a list");
        for (class, expected) in slopes.iter().enumerate() {
            let mut found = [0; 3];
            reticent_core::slope::bounded_softmax_slopes(&[0.5, -1.0, 2.0], class, 1.0, &mut found);
            assert_slopes(&found, expected);
        }
        let saturation = saturation_of(signal);
        assert_close(&[saturation, saturation_of(3.0 * signal)], &numbers(&golden, "saturations"));
        let shares = numbers(&golden, "shares");
        assert_close(&shares_of(&numbers(&golden, "stood_for"), 0.6), &shares);
        let slopes = golden["saturated_slopes"].as_array().expect("a list");
        for (class, expected) in slopes.iter().enumerate() {
            let mut found = [0; 3];
            reticent_core::slope::bounded_softmax_slopes(&[0.5, -1.0, 2.0], class, saturation as f32, &mut found);
            assert_slopes(&found, expected);
        }
    }
}
