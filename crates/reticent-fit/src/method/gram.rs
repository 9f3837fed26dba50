//! Linear regression from one joint noisy release of the Gram matrix of features and target.
//!
//! ```text
//!   release: (29 q_j²), (41 q_j q_l), (35 y q_j), (7 y²) summed over the rows, one noise scale for all
//!   fit:     posterior of the coefficients given the release, its noise in all four blocks included
//! ```
//! Before that, a fifth of the budget buys marginals: columns are centred and scaled by them, and each row is divided by its own
//! norm, target included, which is a least-squares fit in which a row has weight `1/norm²`; bins of the target, which say in what part of
//! its bounds it lies, where it is read; and its sums, there and over all bounds, which tell where noise has hidden rows beyond that part.
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
use reticent_core::query::{COUNT_STEP, Map, ProductTarget, QueryShape};
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::target_window::TargetWindow;
use reticent_math::gram_regression::{GramNoise, NoisyGram, SlopePrior, posterior};

use super::{FitRequest, Method, start_weights_with_intercept};
use crate::column_scaling::{from_bounds, leave_some_rows_whole};
use crate::gram_release::{GramRelease, Multipliers};
use crate::model::Model;
use crate::number_marginals::{NumberMarginals, plan_marginals};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, plan_release};
use crate::prepared_fit::{Covariance, FitError, Fitted, PreparedFit, Releases};
use crate::released_marginals::ScalingRule;
use crate::row_number::declared_rows;

/// Name on the command line and in certificates.
pub const NAME: &str = "gram";

/// `41² < 2 · 29²`, so that products need no more noise than squares; 35 and 7 by measurement: `docs/methods/gram.md`.
pub const MULTIPLIERS: Multipliers = Multipliers { diagonal: 29, off_diagonal: 41, cross: 35, square: 7 };

/// Noise of centres may lengthen rows as it will: columns made shorter to prevent it would leave coefficients longer than the prior expects. Nor
/// are they made longer: the prior knows the size that they have.
const SCALING: ScalingRule = ScalingRule { lengthened_max: f64::INFINITY, features_square_min: 0.0, share_power: 1 };

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
                help: "Scale columns by marginals, bought with a part of the budget, or by the schema's bounds alone \
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
            leave_some_rows_whole(schema, &encoding)?;
            (encoding, Some(bound))
        } else {
            (Encoding::plain(Coding::of(schema), NormRule::OwnNorm), None)
        };
        if let Some(init) = request.init {
            start_weights_with_intercept(init, schema, &encoding, intercept)?;
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

/// One Gram release, after marginals, bins and sums of the target where columns are scaled by marginals.
fn plan(request: &FitRequest<'_>, encoding: &Encoding, norm_bound: Option<f64>) -> Result<Plan, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let columns = encoding.coding().columns().len();
    let (mut releases, left) = match norm_bound {
        Some(_) => (Vec::new(), claim.mu_squared),
        None => plan_marginals(NAME, request, encoding.coding())?,
    };
    let target = if norm_bound.is_none() { ProductTarget::NumberOverNorm } else { ProductTarget::Number };
    let shape = QueryShape::of_schema(MULTIPLIERS.map(columns as u32, target), schema)?;
    releases.push(plan_release(NAME, "Gram matrix", shape, NonZeroU32::MIN, left, &claim.relation)?);
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
        let (encoding, window, target_mean, mean_deviations, target_variance, slopes) = if last == 0 {
            (self.encoding.clone(), TargetWindow::BOUNDS, None, Vec::new(), None, SLOPES_BY_BOUNDS)
        } else {
            let gram = releases.planned(last);
            let (mu, noise) = (effective_mu(gram, &self.schema.relation(), self.mu), target_noise(gram));
            let mut marginals =
                NumberMarginals::released(releases, &self.encoding, (mu, declared_rows(&self.schema)), SCALING)?;
            marginals.widen_window(noise);
            let target_mean = marginals.target_mean(releases, last - 1)?;
            let target_variance = marginals.target_variance(target_mean.value);
            // The intercept is 1 in every row.
            let features_square = (marginals.scaled.row_norm.powi(2) - 1.0).max(1e-3);
            let slopes = SlopePrior { features_square, ..SLOPES };
            let mean_deviations = marginals.scaled.mean_deviations();
            (marginals.encoding, marginals.window, Some(target_mean), mean_deviations, Some(target_variance), slopes)
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
        let of_columns = |values: &[f64]| -> Vec<f64> { gram.columns.iter().map(|column| values[*column]).collect() };
        let mean_deviations = target_mean.map_or(Vec::new(), |_| of_columns(&mean_deviations));
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
            mean_deviations: &mean_deviations,
            target_variance,
        })
        .map_err(|error| FitError::Numeric(error.to_string()))?;

        let all = encoding.coding().columns().len();
        let unit = unit / window.half();
        let weights: Vec<f64> = found.weights.iter().map(|weight| weight / unit).collect();
        let covariance: Vec<f64> = found.covariance.iter().map(|value| value / (unit * unit)).collect();
        let mut weights = gram.spread(&weights, all);
        weights[0] += window.centre();
        let covariance = Covariance {
            values: gram.spread_matrix(&covariance, all),
            // Categories are centred by their released shares, or as if all were as frequent.
            column_means: encoding.centre().to_vec(),
        };
        Ok(Fitted { weights, covariance: Some(covariance), encoding })
    }
}

impl Fit {
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

/// Noise of a product of a column with the target, in rows of norm 1 and with what is read of the target's bounds as -1 to 1.
fn target_noise(gram: &PlannedRelease) -> f64 {
    gram.noise.standard_deviation(gram.noise_scale) / f64::from(LATTICE_NORM_MAX).powi(2) / f64::from(MULTIPLIERS.cross)
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
        value: target_noise(gram),
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
