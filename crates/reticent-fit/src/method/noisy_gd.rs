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
use reticent_core::query::{COUNT_STEP, Loss, Map, PassWeights, QueryShape, SumQuery};
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::session::{Grant, Session, SessionError};

use super::Fitted;
use crate::model::{Model, class_names};
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

/// Which iterates are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Averaging {
    /// All of them, as in the lecture.
    All,
    /// The second half: the way to the minimum is left out.
    LastHalf,
}

/// What the caller may choose. `Default` is meant to be good.
#[derive(Clone, Debug)]
pub struct Params {
    /// A public model to start at; by default the noisy base rate.
    pub init: Option<Model>,
    /// L2 penalty on the summed loss: `l2/2 ||theta||²` over the encoded columns without the intercept.
    pub l2: f64,
    /// Number of passes; by default from public figures.
    pub passes: Option<u32>,
    /// Radius of the ball that the weights are projected to.
    pub radius: Option<f64>,
    /// Which iterates are averaged.
    pub averaging: Averaging,
}

impl Default for Params {
    fn default() -> Self {
        Self { init: None, l2: 0.0, passes: None, radius: None, averaging: Averaging::LastHalf }
    }
}

/// Parameters that fit the schema.
#[derive(Clone, Debug)]
pub struct Checked {
    params: Params,
    encoding: Arc<Encoding>,
    norm_bound: f64,
    start: Option<Vec<f64>>,
}

impl Checked {
    /// The map from rows to columns that the fit will use.
    #[must_use]
    pub fn encoding(&self) -> &Arc<Encoding> {
        &self.encoding
    }
}

impl Params {
    /// Checks the parameters against the schema.
    ///
    /// # Errors
    /// [`PlanError`] names the flag or the part of the schema to change.
    pub fn check(self, schema: &Schema) -> Result<Checked, PlanError> {
        let refused = |message: &str| Err(PlanError::Parameter(message.to_owned()));
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
        if !(self.l2.is_finite() && self.l2 >= 0.0) {
            return refused("--l2 must be a finite number of at least 0");
        }
        if self.passes.is_some_and(|passes| !(1..=PASSES_MAX).contains(&passes)) {
            return refused("--passes must be between 1 and 100000");
        }
        if self.radius.is_some_and(|radius| !(radius.is_finite() && radius > 0.0)) {
            return refused("--radius must be a finite number above 0");
        }
        let (encoding, norm_bound) = encoding(schema);
        let start = match &self.init {
            None => None,
            Some(model) if model.schema.features() != schema.features() || model.classes != class_names(schema) => {
                return Err(PlanError::Init("its features or classes are not those of the schema".to_owned()));
            }
            Some(model) => {
                let weights = model.weights(&encoding);
                if !weights.iter().all(|weight| weight.is_finite()) {
                    return Err(PlanError::Init("its coefficients are too large for the schema's bounds".to_owned()));
                }
                Some(weights)
            }
        };
        Ok(Checked { params: self, encoding: Arc::new(encoding), norm_bound, start })
    }
}

/// Plans the fit: class counts for the number of rows and the base rate, then one gradient a pass.
///
/// # Errors
/// [`PlanError`] when the adjacency has no finite sensitivity or the budget is too small.
pub fn plan(checked: &Checked, schema: &Schema, claim: PrivacyClaim) -> Result<Plan, PlanError> {
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
    let sensitivity_ratio = sensitivity_ratio(&gradient, &claim)?;
    let gradient_mu = gradient_share.mu_up() / sensitivity_ratio;
    // Without a declared number of rows the passes are chosen for a large table: more passes cost little.
    let passes = checked.params.passes.unwrap_or_else(|| match schema.privacy().rows {
        Some(units) => descent(units as f64 * gradient_mu, curvature_norm(checked, schema), None).0,
        None => PASSES.1,
    });
    let passes = NonZeroU32::new(passes).expect("checked, or chosen above zero");
    let gradients = plan_release(NAME, "gradient", gradient, passes, gradient_share, &claim.relation)?;

    let expectations = expectations(checked, schema, &counts, gradient_mu, passes.get());
    Ok(Plan { method: NAME, claim, releases: vec![counts, gradients], public: public(checked, schema), expectations })
}

/// Fits the model. `grants` pays for the plan's releases in order; `progress` is told each finished release.
///
/// # Errors
/// [`SessionError`] when a release fails; what was charged stays charged.
///
/// # Panics
/// When the grants are not those of the plan: a mistake in the caller's code.
pub fn fit(
    checked: &Checked,
    plan: &Plan,
    schema: &Schema,
    session: &mut Session<'_>,
    grants: Vec<Grant>,
    progress: &mut dyn FnMut(u32),
) -> Result<Fitted, SessionError> {
    let [counts, gradient] = &plan.releases[..] else { panic!("the plan of {NAME} has two kinds of releases") };
    let encoding = &checked.encoding;
    let query = |shape: &QueryShape, weights| {
        SumQuery::new(shape.clone(), encoding.clone(), weights).expect("the plan was made with this encoding")
    };
    let mut grants = grants.into_iter();

    let grant = grants.next().expect("the plan pays for class counts");
    let counted = session.release(grant, &query(&counts.shape, PassWeights::none()))?;
    progress(1);
    let base = BaseRate::of(&counted.values(), counted.noise_standard_deviation, schema.privacy().rows);

    let mut weights = checked.start.clone().unwrap_or_else(|| {
        let mut weights = vec![0.0; encoding.coding().columns().len()];
        weights[0] = base.log_odds;
        weights
    });
    let radius = checked.params.radius.unwrap_or(RADIUS);
    project(&mut weights, radius);

    let gradient_mu = gradient.price_up(&plan.claim.relation).expect("planned with a finite price").mu_up()
        / sensitivity_ratio(&gradient.shape, &plan.claim).expect("planned with a finite sensitivity");
    let passes = gradient.times;
    let (_, step) = descent(base.rows * gradient_mu, curvature_norm(checked, schema), Some(passes));
    let mut velocity = vec![0.0; weights.len()];
    let mut sum = vec![0.0; weights.len()];
    let first_averaged = match checked.params.averaging {
        Averaging::All => 0,
        Averaging::LastHalf => passes / 2,
    };
    for (pass, grant) in grants.enumerate() {
        let released = session.release(grant, &query(&gradient.shape, PassWeights::quantise(&weights)))?;
        for (column, noisy) in released.values().into_iter().enumerate() {
            let penalty = if column == 0 { 0.0 } else { checked.params.l2 * weights[column] };
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
        progress(pass as u32 + 2);
    }
    let averaged = f64::from(passes - first_averaged);
    Ok(Fitted { encoding: encoding.clone(), weights: sum.into_iter().map(|total| total / averaged).collect() })
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

fn public(checked: &Checked, schema: &Schema) -> Vec<String> {
    let mut public = declared_public(schema);
    if let Some(model) = &checked.params.init {
        public.push(format!("the start model (--init, sha256 {}), declared public", model.fingerprint()));
        if let Some(certificate) = &model.certificate {
            public.push(format!(
                "the start model was itself fitted privately: epsilon {} at delta {:e} (mu {:.6}), ledger {}, entry {}; \
                 for units that are in both tables the two claims add up",
                certificate.epsilon,
                certificate.delta.get(),
                certificate.mu,
                certificate.ledger.id,
                certificate.ledger.entry
            ));
        }
    }
    public
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
