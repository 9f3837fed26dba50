//! Output perturbation: the minimiser of the loss plus a ridge, with noise for its own sensitivity.
//!
//! ```text
//!   theta = argmin  sum_i l(theta · x_i, y_i) + (lambda/2) ||theta - w_0||²,      released with noise for  G/lambda
//! ```
//! One release; the simplest method and seldom the best: a baseline. Sensitivity and proof: `docs/methods/output-perturbation.md`.
//!
//! Source: Chaudhuri, Monteleoni, Sarwate 2011, JMLR 12, Algorithm 1, with Gaussian noise on a lattice.

use std::num::NonZeroU32;

use reticent_core::minimum::{ANSWER_BITS, L2_BITS, L2_RANGE};

use super::{FitRequest, Method};
use crate::checked_minimum::{CheckedMinimum, rows_changed};
use crate::options::MethodOption;
use crate::plan::{Plan, PlanError, plan_release};
use crate::prepared_fit::PreparedFit;

/// Name on the command line and in certificates.
pub const NAME: &str = "output-perturbation";

/// The default ridge supposes weights of this squared norm, for rows of norm 1, times 0.3: see [`default_ridge`].
const RIDGE_DIVISOR: f64 = 100.0;

/// The method.
pub struct OutputPerturbation;

impl Method for OutputPerturbation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn summary(&self) -> &'static str {
        "minimum of the regularised loss, released once with noise (classes; a baseline)"
    }

    fn options(&self) -> &'static [MethodOption] {
        &[MethodOption {
            name: "l2",
            value: "L2",
            help: "Ridge: adds L2/2 times the squared distance of the encoded weights, intercept included, from the start \
                   model or 0 to the summed loss [default: from the budget and the declared rows]",
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
    let rows_changed = f64::from(rows_changed(NAME, request)?);
    let default_l2 = match schema.privacy().rows {
        Some(units) => default_ridge(units as f64, claim.mu / rows_changed),
        None if checked.has_l2() => 1.0,
        None => {
            return Err(PlanError::Parameter(format!(
                "method {NAME} needs the number of rows for its ridge: declare a round figure as `rows` under [privacy] in \
                 the schema (`reticent fit` counts it itself under replace and label), or give --l2"
            )));
        }
    };
    let minimum = checked.minimum(default_l2, claim.relation.adjacency);
    let shape = checked.shape(minimum, schema)?;
    let release = plan_release(NAME, "minimum", shape, NonZeroU32::MIN, claim.mu_squared, &claim.relation)?;
    let noise = release.noise_scale.get() as f64 / (1u64 << ANSWER_BITS) as f64;
    Ok(Plan::of(NAME, request, vec![release], checked.expectations(minimum, noise)))
}

/// Ridge for rows of norm 1: the balance of noise, `0.15 n / (2 lambda² mu²)`, and bias, `lambda ||omega||²/2`, with
/// `||omega||² = 30`. Brought into the range of a ridge: whether a fit is possible must not tell the number of rows, which may have been
/// counted and is not paid for yet.
fn default_ridge(rows: f64, mu: f64) -> f64 {
    let [least, most] = [L2_RANGE.start(), L2_RANGE.end()].map(|steps| *steps as f64 / f64::from(1u32 << L2_BITS));
    (rows / (RIDGE_DIVISOR * mu * mu)).cbrt().clamp(least, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_ridge_is_one_that_a_minimum_may_have() {
        assert!((default_ridge(1e5, 0.1) - 1e5f64.cbrt()).abs() < 1e-9);
        for (rows, mu) in [(1.0, 1e-300), (1e12, 1e-20), (1.0, 65_536.0), (388.0, 1e150), (1e12, 1e9)] {
            let steps = (default_ridge(rows, mu) * f64::from(1u32 << L2_BITS)).round() as u64;
            assert!(L2_RANGE.contains(&steps), "{rows} {mu}: {steps}");
        }
    }
}
