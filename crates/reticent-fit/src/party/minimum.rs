//! Majority voting and soft labels: the minimum of a strongly convex problem on the votes, with noise added to it.
//!
//! Source: Hamm, Cao, Belkin 2016, *Learning privately from multiparty data*, Algorithms 1 and 2, Theorems 1 and 3, with
//! rounded Gaussian noise in place of the `exp(-||eta||)` density, and what a computed minimum costs counted in.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::encoding::Encoding;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::{MINIMUM_STEPS, Map, PARTY_STEPS, QueryShape, SumQuery, VoteRule};
use reticent_core::session::{Grant, Session};

use super::{Auxiliary, Combiner, PartyRequest, penalty_steps, public};
use crate::method::{FitError, Fitted, PreparedFit, outputs};
use crate::plan::{Expectation, Plan, PlanError, plan_release};

struct Prepared {
    plan: Plan,
    encoding: Arc<Encoding>,
    matrix: Arc<PublicMatrix>,
    largest_norm: f64,
}

/// Plans the one release.
pub(super) fn prepare(request: &PartyRequest<'_>, rule: VoteRule) -> Result<Box<dyn PreparedFit>, PlanError> {
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
    let expectations = vec![
        Expectation {
            name: "penalty",
            value: f64::from(penalty) / f64::from(PARTY_STEPS),
            meaning: "ridge on the mean loss, for rows of norm at most 1".to_owned(),
        },
        Expectation {
            name: "noise of a weight",
            value: noise,
            meaning: "standard deviation, for rows of norm at most 1, whose scores it moves by as much".to_owned(),
        },
    ];
    let plan = Plan {
        method: combiner.name(),
        claim: claim.clone(),
        releases: vec![release],
        public: public(request),
        expectations,
        reason: None,
    };
    let matrix = Arc::new(auxiliary.unit_rows());
    let largest_norm = auxiliary.largest_norm();
    Ok(Box::new(Prepared { plan, encoding: auxiliary.encoding().clone(), matrix, largest_norm }))
}

impl PreparedFit for Prepared {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn plan_mut(&mut self) -> &mut Plan {
        &mut self.plan
    }

    fn encoding(&self) -> Option<&Arc<Encoding>> {
        None
    }

    fn fit(
        &self,
        session: &mut Session<'_>,
        grants: Vec<Grant>,
        progress: &mut dyn FnMut(),
    ) -> Result<Fitted, FitError> {
        let grant = grants.into_iter().next().expect("the plan pays for one release");
        let query = SumQuery::of_matrix(self.plan.releases[0].shape.clone(), self.matrix.clone())
            .expect("the plan was made with this matrix");
        let released = session.release(grant, &query)?;
        progress();
        let weights = released.values().into_iter().map(|weight| weight / self.largest_norm).collect();
        Ok(Fitted { encoding: self.encoding.clone(), weights, covariance: None })
    }
}
