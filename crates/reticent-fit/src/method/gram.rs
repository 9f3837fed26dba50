//! Linear regression from one joint noisy release of the Gram matrix of features and target.
//!
//! ```text
//!   release: (29 q_j²), (41 q_j q_l), (35 y q_j), (7 y²) summed over the rows, one noise scale for all
//!   fit:     posterior of the coefficients given the release, its noise in all four blocks included
//! ```
//! Before that, a tenth of the budget buys marginals: columns are centred and scaled by them, and each row is divided by its own
//! norm, target included, which is a least-squares fit in which a row has weight `1/norm²`. The marginals also say in what part of
//! its bounds the target lies; it is read in that part, and a fortieth of the budget buys its sum there.
//!
//! Sources: Wang 2018, arXiv:1803.02596 (sufficient statistics with noise); Bernstein, Sheldon 2019, arXiv:1910.13153
//! (noise-aware posterior). Sensitivity, proof and constants: `docs/methods/gram.md`.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::adjacency::Relation;
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX, NormRule};
use reticent_core::ledger::PlannedRelease;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{BIN_STEP, COUNT_STEP, Map, ProductTarget, QueryShape, target_counts};
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::sum::Release;
use reticent_core::target_window::TargetWindow;
use reticent_math::gram_regression::{GramNoise, NoisyGram, SlopePrior, TargetMean, posterior};
use reticent_math::range_search::{BinCounts, BoundsPart, RangeRule, find_part, spared};

use super::{FitRequest, Method, start_weights};
use crate::column_scaling::from_bounds;
use crate::gram_release::{GramRelease, Multipliers};
use crate::model::Model;
use crate::number_bins::{BinnedNumbers, bins_that_tell};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, plan_release};
use crate::prepared_fit::{FitError, Fitted, PreparedFit, Releases};
use crate::released_marginals::ReleasedMarginals;
use crate::row_number::{declared_rows, expected_rows, weakness};

/// Name on the command line and in certificates.
pub const NAME: &str = "gram";

/// `41² < 2 · 29²`, so that products need no more noise than squares; 35 and 7 by measurement: `docs/methods/gram.md`.
pub const MULTIPLIERS: Multipliers = Multipliers { diagonal: 29, off_diagonal: 41, cross: 35, square: 7 };

/// `mu²` is shared out in so many parts: for the marginals, the bins of numbers where they can tell something, and the mean of the target.
const PARTS: NonZeroU32 = NonZeroU32::new(400).expect("not zero");
const MARGINAL_PARTS: u32 = 40;
const BINS_PARTS: u32 = 20;
const MEAN_PARTS: u32 = 10;
/// Parts on top for the marginals where little signal is expected, and the signal `n mu` at which half of them is given: where the target
/// lies in its bounds is then worth more than what a matrix that noise hides says.
const WEAK_PARTS: f64 = 160.0;
const WEAK_SIGNAL: f64 = 60.0;

/// Numbers are read in a range that seems to hold nearly all rows, and well within their bounds: rows far out decide a slope, and one that
/// is cut short by mistake costs more than one that is left too long.
const RANGE_RULE: RangeRule = RangeRule { spared: 0.01, doubt_share: 0.25, narrower_than: 0.35 };

/// A range may leave out so many times the rows that the target's window may: it spoils the products of one column, not of all.
const FEATURE_SPARED: f64 = 4.0;

/// Noise of centres may lengthen rows as it will: columns made shorter to prevent it would leave coefficients longer than the prior expects.
const CENTRE_NOISE: f64 = f64::INFINITY;

/// A bought number of rows is one, and no accident of its noise, above this many standard deviations.
const ROWS_ABOVE_NOISE: f64 = 4.0;
/// What all slopes together are expected to explain, for features of square 1; how long they are, marginals say. Reasons:
/// `docs/methods/gram.md`.
const SLOPES: SlopePrior = SlopePrior { features_square: 1.0, explained: 0.03, deviation: 3.0 };
/// The same where features are scaled by bounds, and how much they vary is not known: as one feature does that is spread evenly over them.
const SLOPES_BY_BOUNDS: SlopePrior = SlopePrior { features_square: 1.0 / 3.0, explained: 0.03, deviation: 2.0 };

/// The method.
pub struct Gram;

impl Method for Gram {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "linear regression from one noisy matrix of all products of features and target, with standard errors"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[
            MethodOption {
                name: "scaling",
                value: "HOW",
                help: "Scale columns by marginals, bought with a tenth of the budget, or by the schema's bounds alone \
                       [default: marginals, or bounds where the schema declares row_norm]",
                choices: &["marginals", "bounds"],
            },
            MethodOption {
                name: "intercept",
                value: "WHETHER",
                help: "Fit an intercept; without one it needs --scaling bounds [default: yes]",
                choices: &["yes", "no"],
            },
        ]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        let schema = request.schema;
        if let TargetKind::Classes(classes) = &schema.target().kind {
            let found = format!("{} classes", classes.len());
            return Err(PlanError::Target { method: NAME, fits: "a number (bounds)", found });
        }
        let by_bounds = match request.options.word("scaling") {
            Some(word) => word == "bounds",
            None => schema.privacy().row_norm.is_some(),
        };
        let intercept = request.options.word("intercept") != Some("no");
        if !intercept && !by_bounds {
            return Err(PlanError::Parameter(
                "--intercept no needs --scaling bounds: marginals centre columns".to_owned(),
            ));
        }
        let (encoding, norm_bound) = if by_bounds {
            let (encoding, bound) = from_bounds(schema, intercept);
            (encoding, Some(bound))
        } else {
            (Encoding::plain(Coding::of(schema), NormRule::OwnNorm), None)
        };
        if let Some(init) = request.init {
            if !intercept {
                return Err(PlanError::Parameter(
                    "a model without an intercept cannot keep that of a start model; leave --init out, or fit an intercept"
                        .to_owned(),
                ));
            }
            start_weights(init, schema, &encoding)?;
        }
        let plan = plan(request, &encoding, norm_bound)?;
        let encoding = Arc::new(encoding);
        let fit = Fit {
            schema: schema.clone(),
            init: request.init.cloned(),
            encoding: encoding.clone(),
            norm_bound,
            mu: request.claim.mu,
        };
        Ok(PreparedFit::new(plan, Some(encoding), move |releases| fit.run(releases)))
    }
}

/// One Gram release, after marginals and the sum of the target where columns are scaled by marginals.
fn plan(request: &FitRequest<'_>, encoding: &Encoding, norm_bound: Option<f64>) -> Result<Plan, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let release = |purpose: &str, map, share| {
        plan_release(NAME, purpose, QueryShape::of_schema(map, schema)?, NonZeroU32::MIN, share, &claim.relation)
    };
    let columns = encoding.coding().columns().len();
    let mut releases = Vec::new();
    let mut left = claim.mu_squared;
    if norm_bound.is_none() {
        let coding = encoding.coding();
        let bins_share = claim.mu_squared.fraction_down(BINS_PARTS, PARTS);
        let bins = bins_that_tell(coding, schema, bins_share, &claim.relation);
        let weak = weakness(expected_rows(schema) * claim.mu, WEAK_SIGNAL);
        let marginal_parts = MARGINAL_PARTS + (weak * WEAK_PARTS).round() as u32;
        let sides = [
            Some(("marginals", Map::marginals(0, coding), marginal_parts)),
            bins.map(|map| ("bins of numbers", map, BINS_PARTS)),
            Some(("sum of the target", Map::TargetSum, MEAN_PARTS)),
        ];
        for (purpose, map, parts) in sides.into_iter().flatten() {
            let share = claim.mu_squared.fraction_down(parts, PARTS);
            left = left.checked_sub(share).expect("shares are less than the whole");
            releases.push(release(purpose, map, share)?);
        }
    }
    let target = if norm_bound.is_none() { ProductTarget::NumberOverNorm } else { ProductTarget::Number };
    releases.push(release("Gram matrix", MULTIPLIERS.map(columns as u32, target), left)?);
    let expectations = expectations(schema, &releases, norm_bound);
    Ok(Plan::of(NAME, request, releases, expectations))
}

struct Fit {
    schema: Schema,
    init: Option<Model>,
    /// Of the Gram release; before marginals are known, one with the same columns.
    encoding: Arc<Encoding>,
    /// Bound on the norm of rows that are shortened; `None` where each row is divided by its own norm.
    norm_bound: Option<f64>,
    /// Of the whole claim.
    mu: f64,
}

impl Fit {
    fn run(&self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let last = releases.count() - 1;
        let (encoding, window, target_mean, slopes) = if last == 0 {
            (self.encoding.clone(), TargetWindow::BOUNDS, None, SLOPES_BY_BOUNDS)
        } else {
            let marginals = releases.sum(0, &self.encoding, PassWeights::none())?;
            let binned = BinnedNumbers::released(releases, 1, &self.encoding, RANGE_RULE)?;
            let marginals = self.read_marginals(&marginals, binned, releases.planned(last));
            let window = marginals.window;
            let target_sum = releases.sum(last - 1, &marginals.encoding, PassWeights::of_target(window))?;
            let target_mean = marginals.target_mean(&target_sum);
            (marginals.encoding, window, target_mean, marginals.slopes)
        };
        let released = releases.sum(last, &encoding, PassWeights::of_target(window))?;
        let gram = GramRelease::of(&released, &releases.planned(last).shape, &encoding);

        // Weights of lattice rows: those of encoded columns times the bound that stands for norm 1.
        let unit = self.norm_bound.unwrap_or(1.0);
        let prior_mean = self.init.as_ref().map(|init| {
            let mut weights = init.weights(&encoding);
            weights[0] -= window.centre();
            gram.columns.iter().map(|column| weights[*column] / window.half() * unit).collect::<Vec<f64>>()
        });
        let [_, matrix, cross, square] = gram.noise;
        let found = posterior(&NoisyGram {
            upper: &gram.upper,
            cross: &gram.cross,
            square: gram.square.expect("the query asks for it"),
            rows: self.rows(&gram, &encoding),
            noise: GramNoise { matrix, cross, square },
            prior_mean: prior_mean.as_deref(),
            unit,
            slopes,
            // A start model's intercept is as near as its other coefficients.
            free_intercept: self.init.is_none() && gram.columns.first() == Some(&0),
            target_mean,
        })
        .map_err(|error| FitError::Numeric(error.to_string()))?;

        let all = encoding.coding().columns().len();
        let unit = unit / window.half();
        let weights: Vec<f64> = found.weights.iter().map(|weight| weight / unit).collect();
        let covariance: Vec<f64> = found.covariance.iter().map(|value| value / (unit * unit)).collect();
        let mut weights = gram.spread(&weights, all);
        weights[0] += window.centre();
        Ok(Fitted { weights, covariance: Some(gram.spread_matrix(&covariance, all)), encoding })
    }
}

/// What a fit learns from released marginals.
struct ReadMarginals {
    /// Columns centred and scaled.
    encoding: Arc<Encoding>,
    /// Where the target lies.
    window: TargetWindow,
    /// Rows with a usable target, as bought: no other row is in the sums. A declared number is round, and one of all rows.
    usable: f64,
    /// Noise of every sum.
    noise: f64,
    /// What the noise of a centre is in its scaled column: root of the mean square.
    centre_noise: f64,
    /// What is expected of slopes for features so long.
    slopes: SlopePrior,
}

impl ReadMarginals {
    /// The mean of the target in its window. What is left of the means of centred columns, some noise of the marginals each, adds to the
    /// intercept by their slopes, whose squares add up to no more than 1. None where their number does not stand out of its noise: a sum is
    /// then no mean.
    fn target_mean(&self, sum: &Release) -> Option<TargetMean> {
        if self.usable < ROWS_ABOVE_NOISE * self.noise {
            return None;
        }
        let value = (sum.values()[0] / self.usable).clamp(-1.0, 1.0);
        let noises = [sum.noise_standard_deviation, self.centre_noise * self.usable, self.noise * value];
        Some(TargetMean { value, deviation: noises.into_iter().fold(0.0, f64::hypot) / self.usable })
    }
}

impl Fit {
    fn read_marginals(
        &self,
        marginals: &Release,
        binned: Option<BinnedNumbers>,
        gram: &PlannedRelease,
    ) -> ReadMarginals {
        let noise = marginals.noise_standard_deviation;
        let values = marginals.values();
        let (of_target, of_slots) = values.split_at(target_counts(0) as usize);
        let usable = of_target[0].max(noise).max(1.0);
        let signal = usable * effective_mu(gram, &self.schema.relation(), self.mu);
        let coding = self.encoding.coding();
        let spared = spared(coding.columns().len(), signal);
        // Rows beyond a range are a bias that no budget would take away.
        let rule = RangeRule { spared: (FEATURE_SPARED * spared).min(RANGE_RULE.spared), ..RANGE_RULE };
        let binned = binned.map(|binned| BinnedNumbers { rule, ..binned });
        let features = ReleasedMarginals::of(coding, of_slots, usable, noise / usable, binned.as_ref());
        let scaled = features.scaled(coding, signal, CENTRE_NOISE);
        let centre_noise = scaled.centre_noise;
        let encoding = features.encoding(coding, &scaled);

        let steps = COUNT_STEP as f64 / BIN_STEP as f64;
        let bins: Vec<f64> = of_target[1..].iter().map(|count| count * steps).collect();
        let counts = BinCounts { bins: &bins, noise: noise * steps, rows: usable, rows_noise: noise };
        let BoundsPart { centre, half } = find_part(&counts, spared);
        let window = TargetWindow::new(centre, half);
        // The intercept is 1 in every row.
        let slopes = SlopePrior { features_square: (scaled.row_norm.powi(2) - 1.0).max(1e-3), ..SLOPES };
        ReadMarginals { encoding: Arc::new(encoding), window, usable, noise, centre_noise, slopes }
    }

    /// Number of rows where the trace of the matrix is not it: rows that are shortened may be shorter than 1.
    fn rows(&self, gram: &GramRelease, encoding: &Encoding) -> Option<f64> {
        let bound = self.norm_bound?;
        // The square of the intercept's column is (scale / bound)² in every row.
        let from_intercept =
            || (gram.columns.first() == Some(&0)).then(|| gram.upper[0] * (bound / encoding.scale()[0]).powi(2));
        let trace: f64 = diagonal(&gram.upper, gram.columns.len()).sum();
        declared_rows(&self.schema).or_else(from_intercept).map(|rows| rows.max(trace))
    }
}

fn diagonal(upper: &[f64], columns: usize) -> impl Iterator<Item = f64> {
    (0..columns).map(move |column| upper[column * (2 * columns - column + 1) / 2])
}

/// `mu` of the whole fit, divided by how much larger the sensitivity is than under add-remove of one row.
fn effective_mu(gram: &PlannedRelease, relation: &Relation, mu: f64) -> f64 {
    let sensitivity = gram.shape.sensitivity(relation).expect("planned with a finite sensitivity");
    let one_row = [MULTIPLIERS.diagonal, MULTIPLIERS.cross, MULTIPLIERS.square].map(|one| f64::from(one).powi(2));
    let one_row = one_row.iter().sum::<f64>().sqrt() * f64::from(LATTICE_NORM_MAX).powi(2);
    mu * one_row / (sensitivity.get() as f64).sqrt()
}

fn expectations(schema: &Schema, releases: &[PlannedRelease], norm_bound: Option<f64>) -> Vec<Expectation> {
    let mut expectations = Vec::new();
    if let Some(bound) = norm_bound {
        expectations.push(Expectation {
            name: "norm bound of a row",
            value: bound,
            meaning: "L2, over encoded columns with the intercept; products are in units of its square".to_owned(),
        });
    }
    if let [marginals, .., sum, _] = releases {
        expectations.push(Expectation {
            name: "noise of a marginal count",
            value: marginals.noise.standard_deviation(marginals.noise_scale) / COUNT_STEP as f64,
            meaning: "standard deviation, in rows".to_owned(),
        });
        expectations.push(Expectation {
            name: "noise of the sum of the target",
            value: sum.noise.standard_deviation(sum.noise_scale) / f64::from(LATTICE_NORM_MAX),
            meaning: "standard deviation, with the part of its bounds where the target is found as -1 to 1".to_owned(),
        });
    }
    let gram = releases.last().expect("a Gram release is planned");
    let unit = f64::from(LATTICE_NORM_MAX).powi(2);
    let noise = gram.noise.standard_deviation(gram.noise_scale) / unit;
    let entry = noise / f64::from(MULTIPLIERS.off_diagonal);
    expectations.push(Expectation {
        name: "noise of a product of two columns",
        value: entry,
        meaning: "standard deviation of the sum over all rows, in rows of norm 1".to_owned(),
    });
    expectations.push(Expectation {
        name: "noise of a product with the target",
        value: noise / f64::from(MULTIPLIERS.cross),
        meaning: if norm_bound.is_some() {
            "the same, with the bounds of the target as -1 to 1".to_owned()
        } else {
            "the same, with that part of the bounds as -1 to 1".to_owned()
        },
    });
    let Map::Gram { columns, .. } = *gram.shape.map() else { unreachable!("the last release is of a Gram query") };
    // Largest eigenvalue of a symmetric matrix of such noise: 2 s sqrt(d).
    let largest = 2.0 * entry * f64::from(columns).sqrt();
    expectations.push(Expectation {
        name: "largest eigenvalue of the noise",
        value: largest,
        meaning: "directions of the table with less weight than this, in rows, are shrunken toward zero".to_owned(),
    });
    if let Some(rows) = declared_rows(schema) {
        expectations.push(Expectation {
            name: "the same as a share of all rows",
            value: largest / rows,
            meaning: "far below 1 over the number of columns, privacy costs little".to_owned(),
        });
    }
    expectations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_need_no_more_noise_than_squares() {
        let Multipliers { diagonal, off_diagonal, cross, square } = MULTIPLIERS;
        assert!(off_diagonal * off_diagonal <= 2 * diagonal * diagonal);
        assert!((off_diagonal + 1).pow(2) > 2 * diagonal * diagonal, "the largest such whole number");
        assert!(cross * cross >= 2 * square * square, "then the square costs nothing when a row is replaced");
    }

    #[test]
    fn the_diagonal_is_found_in_the_packed_triangle() {
        let upper = [1.0, 0.0, 0.0, 2.0, 0.0, 3.0];
        assert_eq!(diagonal(&upper, 3).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
    }
}
