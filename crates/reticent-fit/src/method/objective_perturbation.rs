//! Objective perturbation: the minimiser of the loss plus a ridge plus a random linear term.
//!
//! ```text
//!   theta = argmin  sum_i l(theta · x_i, y_i) + (lambda/2) ||theta - w_0||² + b · theta,      b Gaussian
//! ```
//! One release. The loss is logistic or softmax, the ridge a public total in every coordinate, `w_0` zero or a public model.
//! Bound, price and proof: `docs/methods/objective-perturbation.md`.
//!
//! Sources: Chaudhuri, Monteleoni, Sarwate 2011, JMLR 12, Algorithm 2; Kifer, Smith, Thakurta 2012 (Gaussian term); Iyengar
//! et al. 2019 (approximate minima); the bound is our own.

use std::num::NonZeroU32;

use reticent_core::minimum::{ANSWER_BITS, PERTURBATION_BITS};

use super::{FitRequest, Method};
use crate::checked_minimum::{CheckedMinimum, rows_changed};
use crate::options::MethodOption;
use crate::plan::{Expectation, Plan, PlanError, plan_release};
use crate::prepared_fit::PreparedFit;

/// Name on the command line and in certificates.
pub const NAME: &str = "objective-perturbation";

/// Share of `mu²` for the noise that covers the certificate of the minimum: 1 part in 100.
const ANSWER_SHARE: u32 = 100;

/// The method.
pub struct ObjectivePerturbation;

impl Method for ObjectivePerturbation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "minimum of a randomly tilted regularised loss, released once (classes)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[MethodOption {
            name: "l2",
            value: "L2",
            help: "Ridge: adds L2/2 times the squared distance of the encoded weights, intercept included, from the start \
                   model or 0 to the summed loss [default: from the budget]",
            choices: &[],
        }]
    }

    fn prepare(&self, request: &FitRequest<'_>) -> Result<PreparedFit, PlanError> {
        let checked = CheckedMinimum::new(NAME, request)?;
        let plan = plan(&checked, request)?;
        Ok(checked.prepared(plan))
    }
}

fn plan(checked: &CheckedMinimum, request: &FitRequest<'_>) -> Result<Plan, PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let adjacency = claim.relation.adjacency;
    let unit_rows = schema.privacy().unit.rows_max();
    let rows_changed = rows_changed(NAME, request)?;
    let hundred = NonZeroU32::new(ANSWER_SHARE).expect("a constant above zero");
    let answer_share = claim.mu_squared.share_down(hundred);
    let term_share = claim.mu_squared.checked_sub(answer_share).expect("a share is at most the whole");

    let free = checked.minimum(default_ridge(claim.mu / f64::from(rows_changed), outputs_factor(schema)), adjacency);
    // Checked before the search for a scale, so that a ridge out of range is told as such.
    checked.shape(free, schema)?;
    let minimum = free.smallest_perturbation(adjacency, unit_rows, term_share).ok_or(if checked.has_l2() {
        PlanError::Ridge { mu: claim.mu }
    } else {
        PlanError::TooSmall { unit: "mu", budget: claim.mu, releases: 1 }
    })?;
    let shape = checked.shape(minimum, schema)?;
    let release = plan_release(NAME, "minimum", shape, NonZeroU32::MIN, answer_share, &claim.relation)?;

    let noise = release.noise_scale.get() as f64 / (1u64 << ANSWER_BITS) as f64;
    let mut expectations = checked.expectations(minimum, noise);
    expectations.push(Expectation {
        name: "linear term against one row",
        value: minimum.perturbation as f64 / (1u64 << PERTURBATION_BITS) as f64,
        meaning: "standard deviation of a coordinate of b, in units of the longest row: as many rows are hidden"
            .to_owned(),
    });
    Ok(Plan::of(NAME, request, vec![release], expectations))
}

/// Ridge for rows of norm 1, from the budget alone: `1/mu` for two classes, `4/mu` for more.
///
/// The determinant's share of epsilon is then about `mu/4`, which a GDP price feels as some 35 % more noise; less ridge
/// would cost more noise, more ridge more bias.
fn default_ridge(mu: f64, factor: f64) -> f64 {
    factor / mu
}

fn outputs_factor(schema: &reticent_core::schema::Schema) -> f64 {
    if super::outputs(schema) == 1 { 1.0 } else { 4.0 }
}
