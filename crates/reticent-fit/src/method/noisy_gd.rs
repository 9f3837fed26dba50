//! Noisy gradient descent with rows that are centred, scaled and divided by their own norm: the default for classes, and for numbers where
//! noise would hide much of a matrix of products.
//!
//! ```text
//!   x = (1, a ∘ (columns - m))              range, centre m and scale a from released bins and marginals
//!   G = sum_i l'(theta·x_i, y_i) x_i / ||x_i|| + noise       one pass; a row moves the sum by at most 1
//!   V <- beta V - (eta / n) (G + l2 theta),    theta <- theta + V
//!   two classes: gradients are asked for at start + factor (theta - start), with a factor and an intercept that a line search finds
//!   result: the mean of the last iterates, drawn toward the base rate as far as a last release shows no signal
//! ```
//! With the two-sided exponential loss the division by the norm costs nothing in consistency: every weight `w(x, theta) > 0`
//! leaves the true coefficients where they are, and the one used here is the largest with sensitivity 1. Numbers have Huber's
//! loss: `noisy_gd/number.rs`.
//! Proofs, constants and failures: `docs/methods/noisy-gd.md`.
//!
//! Sources: Bassily, Smith, Thakurta 2014, Alg. 1 (noisy gradient descent); Polyak 1964 (momentum); the weights and the loss
//! are derived in the page named above.

mod calibration;
mod class_counts;
mod column_order;
mod descended;
mod heavy_ball;
mod line_search;
mod number;
mod number_calibration;
mod optimism;
mod public_rows;
mod rare_categories;
mod saturation;
mod score_spread;
mod signal_check;

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::adjacency::Adjacency;
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX, NormRule};
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{COUNT_STEP, Loss, Map, QueryShape, SLOPE_MAX, outputs};
use reticent_core::schema::{Schema, TargetKind};
use reticent_math::range_search::RangeRule;

use self::calibration::FACTORS;
use self::class_counts::{ClassCounts, centred_logs};
use self::column_order::ColumnOrder;
use self::descended::Descended;
use self::heavy_ball::{Flow, HeavyBall, Progress, Stride, descent_time};
use self::line_search::{LineSearch, Searched};
use self::saturation::{saturation_in_order, saturation_of, shares_of};
use super::{FitRequest, Method, start_weights};
use crate::model::Model;
use crate::number_bins::{BinnedNumbers, bins_that_tell};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, plan_release};
use crate::prepared_fit::{FitError, Fitted, PreparedFit, Releases};
use crate::released_marginals::{ReleasedMarginals, ScaledColumns, ScalingRule};
use crate::row_number::{declared_rows, expected_rows, weakness};

/// Name on the command line and in certificates.
pub const NAME: &str = "noisy-gd";

/// `mu²` is shared out in so many parts; class counts, marginals, bins of numbers, signal check and calibration get [`SIDE_PARTS`] of them
/// each, the check of more than two classes half as many: what it measures is larger.
const PARTS: NonZeroU32 = NonZeroU32::new(400).expect("not zero");
const SIDE_PARTS: u32 = 20;
/// Parts on top for the counts and for the check, where little signal is expected: see [`weak_share`].
const WEAK_PARTS: (f64, f64) = (40.0, 20.0);
/// Signal `n mu` at which half of [`WEAK_PARTS`] is given: of two classes, and for each of more, as each has a rate that must be known.
const WEAK_SIGNAL: f64 = 180.0;
const WEAK_SIGNAL_A_CLASS: f64 = 45.0;
/// Fewest and most passes, unless asked otherwise, and passes a unit of mu in between: with much budget the time rule asks for
/// more time than 100 steps of the largest stable size take.
const PASSES: (f64, f64) = (100.0, 1000.0);
const PASSES_BY_MU: f64 = 2500.0;
/// The length of a row decides how long a descent takes, so that noise of the numeric centres must not; and what is learnt of a column is in
/// proportion to its share of that length, so that the intercept must not have most of it.
const SCALING: ScalingRule = ScalingRule { lengthened_max: 0.1, features_square_min: 3.0, share_power: 1 };
/// Numbers are read in the narrowest range that noise allows: see docs/methods/noisy-gd.md, "Wide bounds".
const RANGE_RULE: RangeRule = RangeRule { spared: 0.01, doubt_share: 1.0, narrower_than: 2.0 / 3.0 };
/// Most passes that may be asked for.
const PASSES_MAX: u32 = 100_000;

/// The method.
pub struct NoisyGd;

impl Method for NoisyGd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "full-batch gradient descent, rows centred by released marginals and divided by their norm"
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
        let TargetKind::Classes(classes) = &request.schema.target().kind else { return number::prepare(request) };
        let checked = Checked::new(request, classes.len() as u32)?;
        let plan = plan(&checked, request)?;
        let plain = checked.plain.clone();
        let fit = Fit { checked, schema: request.schema.clone(), init: request.init.cloned() };
        Ok(PreparedFit::new(plan, Some(plain), move |releases| fit.run(releases)))
    }
}

/// Values of the options.
struct Settings {
    l2: f64,
    passes: NonZeroU32,
    /// Whether rows are kept in coordinates of 8 bits.
    is_coarse: bool,
}

impl Settings {
    fn of(request: &FitRequest<'_>) -> Result<Self, PlanError> {
        let options = request.options;
        let passes = options
            .whole_number("passes", 1..=PASSES_MAX)?
            .unwrap_or((PASSES_BY_MU * request.claim.mu).clamp(PASSES.0, PASSES.1) as u32);
        Ok(Self {
            l2: options.number("l2", "a finite number of at least 0", |l2| l2 >= 0.0)?.unwrap_or(0.0),
            passes: NonZeroU32::new(passes).expect("checked to be at least 1"),
            is_coarse: options.word("coordinate-bits") == Some("8"),
        })
    }

    /// The columns before anything is released: what counts are asked in, and as large as what gradients are asked in.
    fn plain_encoding(&self, coding: Coding) -> Arc<Encoding> {
        Arc::new(Encoding::plain(coding, NormRule::OwnNorm).coarse(self.is_coarse))
    }
}

/// Parameters that fit the schema.
struct Checked {
    classes: u32,
    loss: Loss,
    coding: Coding,
    plain: Arc<Encoding>,
    settings: Settings,
}

impl Checked {
    fn new(request: &FitRequest<'_>, classes: u32) -> Result<Self, PlanError> {
        let schema = request.schema;
        let coding = Coding::of(schema);
        let settings = Settings::of(request)?;
        let plain = settings.plain_encoding(coding.clone());
        if let Some(init) = request.init {
            start_weights(init, schema, &plain)?;
        }
        // A changed label turns a two-sided slope around; a logistic one it moves half as far.
        let loss = match schema.privacy().adjacency {
            Adjacency::Label => Loss::Logistic,
            Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party => Loss::TwoSidedExponential,
        };
        Ok(Self { classes, loss, coding, plain, settings })
    }

    fn gradient_map(&self) -> Map {
        let columns = self.coding.columns().len() as u32;
        match (self.classes, self.loss) {
            (2, loss) => Map::Gradient { loss, columns },
            // A changed label moves the plain slope by sqrt(2), and a bounded one by up to 2.
            (classes, Loss::Logistic) => Map::SoftmaxGradient { classes, columns },
            (classes, _) => Map::BoundedSoftmaxGradient { classes, columns },
        }
    }

    fn marginals_map(&self) -> Map {
        Map::marginals(self.classes, &self.coding)
    }

    /// Number of linear scores of a row.
    fn outputs(&self) -> usize {
        outputs(self.classes)
    }

    /// Saturation of bounded slopes for a signal `n mu`, and from the pass on in which columns are found to be in order; 1 where there are
    /// none.
    fn saturations(&self, signal: f64) -> (f64, f64) {
        match (self.classes, self.loss) {
            (2, _) | (_, Loss::Logistic) => (1.0, 1.0),
            _ => (saturation_of(signal), saturation_in_order(signal)),
        }
    }

    /// The largest curvature of the loss in one score, at most; `saturation` is that of bounded slopes.
    fn curvature(&self, saturation: f64) -> f64 {
        match (self.classes, self.loss) {
            (2, Loss::Logistic) => 0.25,
            (2, _) => 1.0,
            // The softmax has curvature at most 1/2; a bounded slope is divided by at least the saturation times 1/sqrt(2).
            (_, Loss::Logistic) => 0.5,
            _ => std::f64::consts::FRAC_1_SQRT_2 / saturation,
        }
    }
}

/// Plans the fit: class counts, marginals, bins of numbers where they can tell something, one gradient a pass, the signal check, and the
/// calibration.
fn plan(checked: &Checked, request: &FitRequest<'_>) -> Result<Plan, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let shape = |map| QueryShape::of_schema(map, schema);
    let weak = weak_share(schema, checked.classes, claim.mu);
    let mut left = claim.mu_squared;
    let mut once = |purpose, map, parts: u32, weak_parts: f64| {
        let parts = parts + (weak * weak_parts).round() as u32;
        let share = claim.mu_squared.fraction_down(parts, PARTS);
        left = left.checked_sub(share).expect("at most 160 parts of 400");
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
    let bins_share = claim.mu_squared.fraction_down(SIDE_PARTS, PARTS);
    let bins = bins_that_tell(&checked.coding, schema, bins_share, &claim.relation);
    let bins = bins.map(|map| once("bins of numbers", map, SIDE_PARTS, 0.0)).transpose()?;
    let check = once("signal check", check, check_parts, WEAK_PARTS.1)?;
    let steps = Map::ConfidenceSteps { classes: checked.classes, models: FACTORS.len() as u32 };
    let calibration = once("calibration", steps, SIDE_PARTS, 0.0)?;
    let gradients =
        plan_release(NAME, "gradient", shape(checked.gradient_map())?, checked.settings.passes, left, &claim.relation)?;

    let gradient_noise = gradients.noise_scale.get() as f64 * gradient_step();
    let count_noise = counts.noise_scale.get() as f64 / COUNT_STEP as f64;
    let expectations = expectations(checked, schema, count_noise, gradient_noise);
    let releases = [counts, marginals].into_iter().chain(bins).chain([gradients, check, calibration]).collect();
    Ok(Plan::of(NAME, request, releases, expectations))
}

/// How little a budget is for the rows that are declared, or for a usual number of them.
///
/// With `n mu` below 180 or so the base rates themselves are not well known, and the check decides more than the descent: both get more of
/// the budget.
fn weak_share(schema: &Schema, classes: u32, mu: f64) -> f64 {
    let half = if classes == 2 { WEAK_SIGNAL } else { WEAK_SIGNAL_A_CLASS * f64::from(classes) };
    weakness(expected_rows(schema) * mu, half)
}

/// What one lattice unit of a gradient sum is worth when the largest contribution of a row is 1.
fn gradient_step() -> f64 {
    1.0 / (f64::from(SLOPE_MAX) * f64::from(LATTICE_NORM_MAX))
}

fn expectations(checked: &Checked, schema: &Schema, count_noise: f64, gradient_noise: f64) -> Vec<Expectation> {
    let counts = Expectation {
        name: "noise of the row count",
        value: f64::from(checked.classes).sqrt() * count_noise,
        meaning: "standard deviation in rows, before it is combined with what is declared".to_owned(),
    };
    let little = "the model is little more than the base rate";
    let mut all = of_gradients(checked.settings.passes, schema, gradient_noise, little);
    all.insert(2, counts);
    all
}

/// What noise gradients have, and what signal there is; what to expect where it is too `little`.
fn of_gradients(passes: NonZeroU32, schema: &Schema, gradient_noise: f64, little: &str) -> Vec<Expectation> {
    let noise = gradient_noise / f64::from(passes.get()).sqrt();
    let mut expectations = vec![
        Expectation {
            name: "noise of a gradient coordinate",
            value: gradient_noise,
            meaning: "standard deviation of one pass, in rows; a row adds at most 1".to_owned(),
        },
        Expectation {
            name: "noise of all passes together",
            value: noise,
            meaning: "standard deviation per coordinate of the mean over all passes, in rows; a table of fewer rows has no signal".to_owned(),
        },
    ];
    let signal = format!("above 1000, and above 100 a column, privacy costs little; below 50 {little}");
    expectations.push(match schema.privacy().rows {
        Some(rows) => Expectation {
            name: "signal against noise",
            value: rows as f64 / noise,
            meaning: format!("n mu of the gradients: {signal}"),
        },
        None => Expectation {
            name: "signal of one row",
            value: 1.0 / noise,
            meaning: format!(
                "multiply by the number of rows to get n mu of the gradients (declare `rows` to have it printed): {signal}"
            ),
        },
    });
    expectations
}

struct Fit {
    checked: Checked,
    schema: Schema,
    init: Option<Model>,
}

/// What the first releases say, and how the descent is to go.
struct Begun {
    counts: ClassCounts,
    rows: f64,
    scaled: ScaledColumns,
    encoding: Arc<Encoding>,
    /// Weights to descend from.
    start: Vec<f64>,
    passes: u32,
    gradient_noise: f64,
    /// `n mu` of the gradients.
    signal: f64,
}

/// Place of the gradients in the plan: the signal check and the calibration come after them.
fn place_of_gradients(releases: &Releases<'_, '_>) -> usize {
    releases.count() - 3
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let begun = self.begin(releases)?;
        let signal = begun.signal;
        let descended = self.descend(begun, releases)?.without_noise_of_rare_categories(signal);
        let check = releases.planned(place_of_gradients(releases) + 1);
        if matches!(check.shape.map(), Map::ScoreHistogram { .. }) {
            descended.check_table(releases)?.calibrated(releases)
        } else {
            descended.check_hits(releases)?.calibrated(releases)
        }
    }

    /// Counts classes, and scales columns by their marginals and the bins of numbers.
    fn begin(&self, releases: &mut Releases<'_, '_>) -> Result<Begun, FitError> {
        let Self { checked, schema, .. } = self;
        let counted = releases.sum(0, &checked.plain, PassWeights::none())?;
        let marginals = releases.sum(1, &checked.plain, PassWeights::none())?;
        let binned = BinnedNumbers::released(releases, 2, &checked.plain)?;
        let classes = checked.classes as usize;
        let mut counts = ClassCounts::of(&counted.values(), counted.noise_standard_deviation);
        counts.add(&marginals.values()[..classes], marginals.noise_standard_deviation);
        let rows = counts.rows(declared_rows(schema));

        let gradient = releases.planned(place_of_gradients(releases));
        let passes = gradient.times;
        let gradient_noise = gradient.noise_scale.get() as f64 * gradient_step();
        let signal = rows * f64::from(passes).sqrt() / gradient_noise;
        let noise = marginals.noise_standard_deviation / rows;
        let binned = binned.as_ref().map(|binned| (binned, RANGE_RULE));
        let features = ReleasedMarginals::of(&checked.coding, &marginals.values()[classes..], rows, noise, binned);
        let scaled = features.scaled(&checked.coding, signal, SCALING);
        let encoding = features.encoding(&checked.coding, &scaled);
        let encoding = Arc::new(encoding.coarse(checked.settings.is_coarse));
        let start = self.start(&encoding, &counts, rows, signal)?;
        Ok(Begun { counts, rows, scaled, encoding, start, passes, gradient_noise, signal })
    }

    /// The model that was handed in, or one that predicts the base rates.
    fn start(
        &self,
        encoding: &Arc<Encoding>,
        counts: &ClassCounts,
        rows: f64,
        signal: f64,
    ) -> Result<Vec<f64>, FitError> {
        let Self { checked, schema, init } = self;
        if let Some(model) = init {
            return start_weights(model, schema, encoding).map_err(|error| FitError::Numeric(error.to_string()));
        }
        let (saturation, _) = checked.saturations(signal);
        let intercepts = match checked.classes {
            2 => counts.log_odds(rows),
            _ => centred_logs(&shares_of(&counts.rates(rows), saturation)),
        };
        let columns = checked.coding.columns().len();
        let mut start = vec![0.0; checked.outputs() * columns];
        for (score, intercept) in start.chunks_exact_mut(columns).zip(intercepts) {
            score[0] = intercept;
        }
        Ok(start)
    }

    /// All passes, with a line search beside those of two classes.
    fn descend(&self, begun: Begun, releases: &mut Releases<'_, '_>) -> Result<Descended, FitError> {
        let Self { checked, init, .. } = self;
        let Begun { counts, rows, scaled, encoding, start, passes, gradient_noise, signal } = begun;
        let (loss, l2) = (checked.loss, checked.settings.l2);
        let of_gradient = place_of_gradients(releases);
        let columns = checked.coding.columns().len();
        let (mut saturation, in_order) = checked.saturations(signal);
        let time = descent_time(checked.classes, signal, scaled.row_norm);
        let largest_curvature = |saturation| scaled.row_norm * checked.curvature(saturation) + l2 / rows;
        let mut stride = Stride::of(time, largest_curvature(saturation), passes);
        let mut descent = HeavyBall::from(start.clone(), columns, stride, rows, l2, passes);
        let mut progress = Progress::of(start.len(), passes);
        let mut order = ColumnOrder::of(&checked.coding, checked.outputs(), passes, gradient_noise);
        // More than two classes gain nothing by it, and of a start that was handed in it would have to know how far its scores lie apart.
        let mut search = (checked.classes == 2 && init.is_none()).then(|| {
            LineSearch::along(Searched {
                start: &start,
                scaled: &scaled,
                loss,
                rows,
                l2,
                noise: gradient_noise,
                passes,
            })
        });
        for _ in 0..passes {
            let asked =
                search.as_ref().map_or_else(|| descent.weights.clone(), |search| search.asked(&descent.weights));
            let weights = PassWeights::quantise(&asked).with_saturation(saturation);
            let noisy = releases.sum(of_gradient, &encoding, weights)?.values();
            if let Some(search) = &mut search {
                search.follow(&noisy, &asked);
            }
            let stretched = |stretch| Stride::of(stretch * time, largest_curvature(in_order), passes);
            if descent.follow_in_order(&noisy, &start, &mut order, stretched) {
                saturation = in_order;
            }
            if progress.is_halfway(&noisy) {
                let times = progress.times(signal, gradient_noise);
                if times > 1.0 {
                    let left = progress.left();
                    let rest = times * time - stride.time(passes - left);
                    descent.turn(Stride::of(order.stretch() * rest, largest_curvature(saturation), left));
                    // What chance explains, and what a start keeps, is as of even strides.
                    stride = Stride::of(times * time, largest_curvature(saturation), passes);
                }
            }
        }
        let mean = descent.mean();
        let (factor, weights) = match search {
            Some(search) => search.end(&mean),
            None => (1.0, mean),
        };
        Ok(Descended {
            encoding,
            scaled,
            counts,
            rows,
            loss,
            is_started: init.is_some(),
            start,
            weights,
            saturation,
            flow: Flow { stride, passes, ridge: l2 / rows },
            factor,
            kept: 1.0,
            unexplained: 1.0,
            of_centres: 0.0,
            of_known_means: 0.0,
        })
    }
}

#[cfg(test)]
mod tests;
