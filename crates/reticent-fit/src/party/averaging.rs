//! Parameter averaging: the mean of one model a party, with noise. A baseline.
//!
//! Source: Pathak, Rane, Raj 2010, *Multiparty differential privacy via aggregation of locally trained classifiers*; at the
//! level of parties: each party's model is shortened to a norm `B`, so that one party moves the mean by at most `2B/M`.
//! No model crosses: a party's model is fitted to its votes, by whoever holds them.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::query::{Map, PARTY_STEPS, QueryShape};
use reticent_core::target_window::TargetWindow;

use super::{Combiner, PartyRequest, longest_minimum, noise_expectations, penalty_steps, plan};
use crate::method::{classes_of, outputs};
use crate::plan::{PlanError, plan_release};
use crate::prepared_fit::{Fitted, PreparedFit};

const NAME: &str = Combiner::Averaging.name();

/// Plans the one release.
pub(super) fn prepare(request: &PartyRequest<'_>) -> Result<PreparedFit, PlanError> {
    let (schema, claim, auxiliary) = (request.fit.schema, request.fit.claim, request.auxiliary);
    let steps = f64::from(PARTY_STEPS);
    let penalty = penalty_steps(request)?;
    let allowed = |norm: f64| (1e-3..=1e3).contains(&norm);
    let norm = request.fit.options.number("norm", "between 0.001 and 1000", allowed)?;
    let ridge = f64::from(penalty) / steps;
    let norm = norm.unwrap_or((1.0 / ridge).clamp(1e-3, 1e3));
    let map = Map::PartyVectors {
        columns: auxiliary.columns() as u32,
        outputs: outputs(schema) as u32,
        penalty,
        norm: (norm * steps) as u32,
    };
    let shape = QueryShape::new(map, schema.privacy().unit.clone(), auxiliary.rows() as u64)?;
    let purpose = "sum of the parties' models";
    let release = plan_release(NAME, purpose, shape, NonZeroU32::MIN, claim.mu_squared, &claim.relation)?;
    let parties = request.parties as f64;
    let noise = release.noise_scale.get() as f64 / steps / parties;
    let largest = norm.min(longest_minimum(classes_of(NAME, schema)?, ridge));
    let remedy = "a shorter --norm, more parties";
    let expectations = noise_expectations(noise, auxiliary.columns() * outputs(schema), largest, remedy);
    let plan = plan(Combiner::Averaging, request, release, expectations.to_vec());
    let matrix = Arc::new(auxiliary.unit_rows());
    // The sum becomes a mean, of weights for rows in their own units.
    let divisor = parties * auxiliary.largest_norm();
    let encoding = auxiliary.encoding().clone();
    Ok(PreparedFit::new(plan, None, move |releases| {
        let released = releases.of_matrix(0, &matrix, TargetWindow::BOUNDS)?;
        let weights = released.values().into_iter().map(|weight| weight / divisor).collect();
        Ok(Fitted { encoding: encoding.clone(), weights, covariance: None })
    }))
}
