//! Noisy gradient descent: full-batch logistic regression with one noisy gradient sum a pass.
//!
//! ```text
//!   V <- beta V - (eta / n) (sum_i l'(theta·x_i, y_i) x_i + noise + l2 theta)
//!   theta <- projection of (theta + V) to the ball of the given radius
//!   result: the mean of all iterates, or of the second half
//! ```
//! Rows are clipped to a public norm bound `R` before they reach the gradient, never the gradients after it: the loss stays
//! convex and a row moves a sum by at most `R`. Everything else (step, time, radius, averaging) is public.
//!
//! Sources: CSC2412 lecture "Private Gradient Descent & ERM" (projection, averaging); Bassily, Smith, Thakurta 2014,
//! Alg. 1 (noisy gradient descent); `docs/methods/noisy-gd.md` says where this departs from them and why.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::encoding::{Coding, Column, Encoding, NormRule};
use reticent_core::ledger::PlannedRelease;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{COUNT_STEP, Loss, Map, QueryShape, SumQuery};
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::session::{Grant, Session};

use super::{FitError, FitRequest, Fitted, Method, PreparedFit, start_weights};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, PrivacyClaim, declared_public, plan_release};

/// Name on the command line and in certificates.
pub const NAME: &str = "noisy-gd";

/// Momentum `beta`: the effective step is `eta / (1 - beta)`.
const MOMENTUM: f64 = 0.9;
/// Share of `mu²` for the class counts: 1 part in 20.
const COUNT_SHARE: u32 = 20;
/// Fewest and most passes that the default rule chooses.
const PASSES: (u32, u32) = (100, 400);
/// Most passes that may be asked for.
const PASSES_MAX: u32 = 100_000;
/// Signal-to-noise ratio `n mu` below which the descent is shortened: see [`descent`].
const SIGNAL_HALF: f64 = 20.0;
/// Default radius of the ball, in the units of the encoded columns, and of the change of the score that one column can make.
const RADIUS: f64 = 20.0;

/// The method.
pub struct NoisyGd;

impl Method for NoisyGd {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "full-batch gradient descent with a noisy gradient a pass (two classes)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[
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
                help: "Number of passes over the table [default: from public figures]",
                choices: &[],
            },
            MethodOption {
                name: "radius",
                value: "RADIUS",
                help: "Radius of the ball that the weights of the encoded columns are projected to [default: 20]",
                choices: &[],
            },
            MethodOption {
                name: "average",
                value: "WHICH",
                help: "Which iterates are averaged: all or last-half [default: last-half]",
                choices: &["all", "last-half"],
            },
        ]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<Box<dyn PreparedFit>, PlanError> {
        let checked = Checked::new(request)?;
        let plan = plan(&checked, request)?;
        Ok(Box::new(Prepared { checked, plan, schema: request.schema.clone() }))
    }
}

/// Parameters that fit the schema.
struct Checked {
    encoding: Arc<Encoding>,
    norm_bound: f64,
    start: Option<Vec<f64>>,
    l2: f64,
    passes: Option<u32>,
    radius: f64,
    average_all: bool,
}

impl Checked {
    fn new(request: &FitRequest<'_>) -> Result<Self, PlanError> {
        let schema = request.schema;
        match &schema.target().kind {
            TargetKind::Classes(classes) if classes.len() == 2 => {}
            TargetKind::Classes(classes) => {
                let found = format!("{} classes", classes.len());
                return Err(PlanError::Target { method: NAME, fits: "two classes", found });
            }
            TargetKind::Bounds { .. } => {
                let found = "bounds, as for a linear regression".to_owned();
                return Err(PlanError::Target { method: NAME, fits: "two classes", found });
            }
        }
        let options = request.options;
        let (encoding, norm_bound) = encoding(schema);
        Ok(Self {
            start: request.init.map(|model| start_weights(model, schema, &encoding)).transpose()?,
            l2: options.number("l2", "a finite number of at least 0", |l2| l2 >= 0.0)?.unwrap_or(0.0),
            passes: options.whole_number("passes", 1..=PASSES_MAX)?,
            radius: options.number("radius", "a finite number above 0", |radius| radius > 0.0)?.unwrap_or(RADIUS),
            average_all: options.word("average") == Some("all"),
            encoding: Arc::new(encoding),
            norm_bound,
        })
    }
}

/// Plans the fit: class counts for the number of rows and the base rate, then one gradient a pass.
fn plan(checked: &Checked, request: &FitRequest<'_>) -> Result<Plan, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let shape = |map| QueryShape::new(map, schema.privacy().unit.clone(), schema.privacy().rows_max);
    let twenty = NonZeroU32::new(COUNT_SHARE).expect("a constant above zero");
    let count_share = claim.mu_squared.share_down(twenty);
    let counts = plan_release(
        NAME,
        "class counts",
        shape(Map::ClassCount { classes: 2 })?,
        NonZeroU32::MIN,
        count_share,
        &claim.relation,
    )?;

    let columns = checked.encoding.coding().columns().len();
    let gradient = shape(Map::Gradient { loss: Loss::Logistic, columns: columns as u32 })?;
    let gradient_share = claim.mu_squared.checked_sub(count_share).expect("a share is at most the whole");
    let sensitivity_ratio = sensitivity_ratio(&gradient, claim)?;
    let gradient_mu = gradient_share.mu_up() / sensitivity_ratio;
    // Without a declared number of rows the passes are chosen for a large table: more passes cost little.
    let passes = checked.passes.unwrap_or_else(|| match schema.privacy().rows {
        Some(units) => descent(units as f64 * gradient_mu, curvature_norm(checked, schema), None).0,
        None => PASSES.1,
    });
    let passes = NonZeroU32::new(passes).expect("checked, or chosen above zero");
    let gradients = plan_release(NAME, "gradient", gradient, passes, gradient_share, &claim.relation)?;

    let expectations = expectations(checked, schema, &counts, gradient_mu, passes.get());
    let public = declared_public(request);
    Ok(Plan {
        method: NAME,
        claim: claim.clone(),
        releases: vec![counts, gradients],
        public,
        expectations,
        reason: None,
    })
}

struct Prepared {
    checked: Checked,
    plan: Plan,
    schema: Schema,
}

impl PreparedFit for Prepared {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn plan_mut(&mut self) -> &mut Plan {
        &mut self.plan
    }

    fn encoding(&self) -> Option<&Arc<Encoding>> {
        Some(&self.checked.encoding)
    }

    fn fit(
        &self,
        session: &mut Session<'_>,
        grants: Vec<Grant>,
        progress: &mut dyn FnMut(),
    ) -> Result<Fitted, FitError> {
        let Self { checked, plan, .. } = self;
        let [counts, gradient] = &plan.releases[..] else { panic!("the plan of {NAME} has two kinds of releases") };
        let encoding = &checked.encoding;
        let query = |shape: &QueryShape, weights| {
            SumQuery::new(shape.clone(), encoding.clone(), weights).expect("the plan was made with this encoding")
        };
        let mut grants = grants.into_iter();

        let grant = grants.next().expect("the plan pays for class counts");
        let counted = session.release(grant, &query(&counts.shape, PassWeights::none()))?;
        progress();
        let base = BaseRate::of(&counted.values(), counted.noise_standard_deviation, self.schema.privacy().rows);

        let mut weights = checked.start.clone().unwrap_or_else(|| {
            let mut weights = vec![0.0; encoding.coding().columns().len()];
            weights[0] = base.log_odds;
            weights
        });
        let radius = checked.radius;
        project(&mut weights, radius);

        let gradient_mu = gradient.price_up(&plan.claim.relation).expect("planned with a finite price").mu_up()
            / sensitivity_ratio(&gradient.shape, &plan.claim).expect("planned with a finite sensitivity");
        let passes = gradient.times;
        let (_, step) = descent(base.rows * gradient_mu, curvature_norm(checked, &self.schema), Some(passes));
        let mut velocity = vec![0.0; weights.len()];
        let mut sum = vec![0.0; weights.len()];
        let first_averaged = if checked.average_all { 0 } else { passes / 2 };
        for (pass, grant) in grants.enumerate() {
            let released = session.release(grant, &query(&gradient.shape, PassWeights::quantise(&weights)))?;
            for (column, noisy) in released.values().into_iter().enumerate() {
                let penalty = if column == 0 { 0.0 } else { checked.l2 * weights[column] };
                velocity[column] = MOMENTUM * velocity[column] - step / base.rows * (noisy + penalty);
                weights[column] += velocity[column];
            }
            if project(&mut weights, radius) {
                // Momentum would push against the boundary for many passes.
                velocity.fill(0.0);
            }
            if pass as u32 >= first_averaged {
                for (total, weight) in sum.iter_mut().zip(&weights) {
                    *total += weight;
                }
            }
            progress();
        }
        let averaged = f64::from(passes - first_averaged);
        let weights = sum.into_iter().map(|total| total / averaged).collect();
        Ok(Fitted { encoding: encoding.clone(), weights, covariance: None })
    }
}

/// Number of rows and base rate, from noisy class counts.
struct BaseRate {
    rows: f64,
    log_odds: f64,
}

impl BaseRate {
    /// `noise` is the standard deviation of one count. The rate is drawn toward 1/2 as far as the counts are noise, with a
    /// prior standard deviation of 0.3.
    fn of(counts: &[f64], noise: f64, declared_rows: Option<u64>) -> Self {
        // A noisy count may be anything: below its own noise it says no more than "few".
        let counted = (counts[0] + counts[1]).max(2.0 * noise).max(1.0);
        let rows = declared_rows.map_or(counted, |rows| rows as f64);
        let (rate, error) = ((counts[1] - counts[0]) / (2.0 * counted), noise / (std::f64::consts::SQRT_2 * counted));
        const PRIOR: f64 = 0.3 * 0.3;
        let rate = (0.5 + PRIOR / (PRIOR + error * error) * rate).clamp(0.02, 0.98);
        Self { rows, log_odds: (rate / (1.0 - rate)).ln() }
    }
}

/// How much larger the gradient's sensitivity is under the claimed adjacency than one clipped row: 1 or 2, times a unit's rows.
fn sensitivity_ratio(gradient: &QueryShape, claim: &PrivacyClaim) -> Result<f64, PlanError> {
    let sensitivity = gradient
        .sensitivity(&claim.relation)
        .ok_or_else(|| PlanError::Adjacency { method: NAME, relation: claim.relation.clone() })?;
    let row = reticent_core::query::SLOPE_MAX as f64 * f64::from(reticent_core::encoding::LATTICE_NORM_MAX);
    Ok((sensitivity.get() as f64).sqrt() / row)
}

/// Root of the largest curvature (times 4) of the summed loss over the number that it is divided by.
///
/// Declared figures count units, and a unit may have several rows; bought counts count rows.
fn curvature_norm(checked: &Checked, schema: &Schema) -> f64 {
    let privacy = schema.privacy();
    let rows_per_counted = if privacy.rows.is_some() { privacy.unit.rows_max() } else { 1 };
    checked.norm_bound * f64::from(rows_per_counted).sqrt()
}

/// Number of passes and step `eta` for a signal `n mu` and a norm bound `R`.
///
/// ```text
///   time = eta T / (1 - beta) = c n mu / R²,   c = n mu / (n mu + 20)
/// ```
/// At that time the noise of a pass, added up, has moved each weight by about `1/R`: the score of a row, then, by about 1, the
/// size of a usual score. Going on would add noise faster than signal. `eta` stays below half the heavy-ball bound
/// `2 (1 + beta) / (R²/4)`.
fn descent(signal: f64, norm_bound: f64, passes: Option<u32>) -> (u32, f64) {
    let square = norm_bound * norm_bound;
    let time = signal / (signal + SIGNAL_HALF) * signal / square;
    let largest_step = 0.5 * 2.0 * (1.0 + MOMENTUM) / (square / 4.0);
    let needed = (time * (1.0 - MOMENTUM) / largest_step).ceil();
    let passes = passes.unwrap_or_else(|| (needed as u32).clamp(PASSES.0, PASSES.1));
    (passes, (time * (1.0 - MOMENTUM) / f64::from(passes)).min(largest_step))
}

/// Shortens the weights to the ball; says whether it had to.
fn project(weights: &mut [f64], radius: f64) -> bool {
    let norm = weights.iter().map(|weight| weight * weight).sum::<f64>().sqrt();
    if norm <= radius {
        return false;
    }
    weights.iter_mut().for_each(|weight| *weight *= radius / norm);
    true
}

/// Numeric columns in `[-1, 1]`, categories centred at equal shares: public, and shorter than uncentred columns.
fn encoding(schema: &Schema) -> (Encoding, f64) {
    let coding = Coding::of(schema);
    let categories = |feature: usize| {
        let of_feature =
            |column: &&Column| matches!(column, Column::Category { feature: other, .. } if *other == feature);
        coding.columns().iter().filter(of_feature).count() as f64
    };
    let (mut centre, mut scale) = (Vec::new(), Vec::new());
    for column in coding.columns() {
        let (at, times) = match column {
            Column::Intercept => (0.0, 1.0),
            Column::Linear { .. } | Column::SymLog { .. } => (0.5, 2.0),
            Column::Category { feature, .. } => (1.0 / categories(*feature), 1.0),
        };
        centre.push(at);
        scale.push(times);
    }
    let largest = Encoding::largest_norm(&coding, &centre, &scale);
    let bound = schema.privacy().row_norm.map_or(largest, |declared| declared.min(largest));
    (Encoding::new(coding, centre, scale, NormRule::Clip(bound)), bound)
}

fn expectations(checked: &Checked, schema: &Schema, counts: &PlannedRelease, mu: f64, passes: u32) -> Vec<Expectation> {
    let mut expectations = vec![Expectation {
        name: "norm bound of a row",
        value: checked.norm_bound,
        meaning: "L2, over encoded columns with the intercept".to_owned(),
    }];
    let per_pass = checked.norm_bound * f64::from(passes).sqrt() / mu;
    expectations.push(Expectation {
        name: "noise of a gradient coordinate",
        value: per_pass,
        meaning: "standard deviation of one pass, in rows times encoded units".to_owned(),
    });
    expectations.push(Expectation {
        name: "rows at which noise is no worse",
        value: (2.0 * checked.norm_bound / mu).powi(2).ceil(),
        meaning: "than sampling error, in the mean gradient; with fewer rows privacy costs more than sampling"
            .to_owned(),
    });
    let Some(rows) = schema.privacy().rows else {
        expectations.push(Expectation {
            name: "noise of the row count",
            value: std::f64::consts::SQRT_2 * counts.noise_scale.get() as f64 / COUNT_STEP as f64,
            meaning: "standard deviation in rows; declare `rows` in the schema to avoid it".to_owned(),
        });
        return expectations;
    };
    let columns = checked.encoding.coding().columns().len() as f64;
    let averaged = checked.norm_bound / (mu * rows as f64);
    expectations.push(Expectation {
        name: "noise of the mean gradient",
        value: averaged,
        meaning: "all passes together, a coordinate; signals below it are lost".to_owned(),
    });
    expectations.push(Expectation {
        name: "sampling error of the same",
        value: 0.5 / (rows as f64).sqrt(),
        meaning: "what a new sample of the same size would change; at most".to_owned(),
    });
    expectations.push(Expectation {
        name: "noise against sampling error",
        value: averaged / (0.5 / (rows as f64).sqrt()),
        meaning: format!("below 1 privacy costs little; over {columns} columns"),
    });
    expectations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_stays_in_the_stable_range() {
        for signal in [1e-3, 1.0, 1e3, 1e6, 1e12] {
            for norm in [0.5, 3.0, 30.0] {
                let (passes, step) = descent(signal, norm, None);
                assert!((PASSES.0..=PASSES.1).contains(&passes));
                // Heavy ball on a quadratic with curvature up to R²/4 converges for eta < 2 (1 + beta) / (R²/4).
                assert!(step > 0.0 && step < 2.0 * (1.0 + MOMENTUM) / (norm * norm / 4.0));
            }
        }
    }

    #[test]
    fn a_count_that_is_only_noise_gives_a_base_rate_near_one_half() {
        let base = BaseRate::of(&[-900.0, 1100.0], 1000.0, None);
        assert!(base.rows >= 2000.0);
        assert!(base.log_odds.abs() < 1.0, "drawn toward zero: {}", base.log_odds);
        let base = BaseRate::of(&[30_000.0, 10_000.0], 10.0, Some(40_000));
        assert!((base.log_odds - (1.0f64 / 3.0).ln()).abs() < 1e-3);
    }

    #[test]
    fn projection_shortens_only_what_is_too_long() {
        let mut weights = [3.0, 4.0];
        assert!(!project(&mut weights, 5.0));
        assert!(project(&mut weights, 1.0));
        assert!((weights[0] - 0.6).abs() < 1e-12 && (weights[1] - 0.8).abs() < 1e-12);
    }
}
