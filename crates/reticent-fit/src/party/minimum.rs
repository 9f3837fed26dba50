//! Majority voting and soft labels: the minimum of a strongly convex problem on the votes, with noise added to it.
//!
//! Source: Hamm, Cao, Belkin 2016, *Learning privately from multiparty data*, Algorithms 1 and 2, Theorems 1 and 3, with
//! rounded Gaussian noise in place of the `exp(-||eta||)` density, and what a computed minimum costs counted in.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::query::{MINIMUM_STEPS, Map, PARTY_STEPS, QueryShape, VoteRule};
use reticent_core::target_window::TargetWindow;

use super::{Auxiliary, Combiner, PartyRequest, longest_minimum, noise_expectations, penalty_steps, plan};
use crate::method::{classes_of, outputs};
use crate::plan::{Expectation, PlanError, plan_release};
use crate::prepared_fit::{Fitted, PreparedFit};

/// Plans the one release.
pub(super) fn prepare(request: &PartyRequest<'_>, rule: VoteRule) -> Result<PreparedFit, PlanError> {
    let combiner = match rule {
        VoteRule::Majority => Combiner::Majority,
        VoteRule::Soft => Combiner::SoftLabels,
    };
    let (schema, claim, auxiliary): (_, _, &Auxiliary) = (request.fit.schema, request.fit.claim, request.auxiliary);
    let penalty = penalty_steps(request)?;
    let map = Map::PartyMinimum {
        columns: auxiliary.columns() as u32,
        outputs: outputs(schema) as u32,
        rule,
        penalty,
        parties: request.parties,
    };
    let shape = QueryShape::new(map, schema.privacy().unit.clone(), auxiliary.rows() as u64)?;
    let purpose = "minimum of the loss on the votes";
    let release = plan_release(combiner.name(), purpose, shape, NonZeroU32::MIN, claim.mu_squared, &claim.relation)?;
    let noise = release.noise_scale.get() as f64 / f64::from(MINIMUM_STEPS);
    let ridge = f64::from(penalty) / f64::from(PARTY_STEPS);
    let mut expectations = vec![Expectation {
        name: "penalty",
        value: ridge,
        meaning: "ridge on the mean loss, for rows of norm at most 1".to_owned(),
    }];
    let largest = longest_minimum(classes_of(combiner.name(), schema)?, ridge);
    let remedy = match rule {
        VoteRule::Majority => "party-soft-labels with more parties",
        VoteRule::Soft => "a larger --penalty, more parties",
    };
    expectations.extend(noise_expectations(noise, auxiliary.columns() * outputs(schema), largest, remedy));
    let plan = plan(combiner, request, release, expectations);
    let matrix = Arc::new(auxiliary.unit_rows());
    let largest_norm = auxiliary.largest_norm();
    let encoding = auxiliary.encoding().clone();
    Ok(PreparedFit::new(plan, None, move |releases| {
        let released = releases.of_matrix(0, &matrix, TargetWindow::BOUNDS)?;
        let weights = released.values().into_iter().map(|weight| weight / largest_norm).collect();
        Ok(Fitted { encoding: encoding.clone(), weights, covariance: None })
    }))
}
