//! Parameter averaging: the mean of one model a party, with noise. A baseline.
//!
//! Source: Pathak, Rane, Raj 2010, *Multiparty differential privacy via aggregation of locally trained classifiers*; at the
//! level of parties: each party's model is shortened to a norm `B`, so that one party moves the mean by at most `2B/M`.
//! No model crosses: a party's model is fitted to its votes, by whoever holds them.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::encoding::Encoding;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::{Map, PARTY_STEPS, QueryShape, SumQuery};
use reticent_core::session::{Grant, Session};

use super::{Combiner, PartyRequest, penalty_steps, public};
use crate::method::{FitError, Fitted, PreparedFit, outputs};
use crate::plan::{Expectation, Plan, PlanError, plan_release};

const NAME: &str = Combiner::Averaging.name();

struct Prepared {
    plan: Plan,
    encoding: Arc<Encoding>,
    matrix: Arc<PublicMatrix>,
    /// What a released weight is divided by: the number of parties times the largest norm of a row.
    divisor: f64,
}

/// Plans the one release.
pub(super) fn prepare(request: &PartyRequest<'_>) -> Result<Box<dyn PreparedFit>, PlanError> {
    let (schema, claim, auxiliary) = (request.fit.schema, request.fit.claim, request.auxiliary);
    let steps = f64::from(PARTY_STEPS);
    let penalty = penalty_steps(request)?;
    let allowed = |norm: f64| (1e-3..=1e3).contains(&norm);
    let norm = request.fit.options.number("norm", "between 0.001 and 1000", allowed)?;
    let norm = norm.unwrap_or_else(|| (steps / f64::from(penalty)).clamp(1e-3, 1e3));
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
    let expectations = vec![Expectation {
        name: "noise of a weight",
        value: release.noise_scale.get() as f64 / steps / parties,
        meaning: "standard deviation, for rows of norm at most 1, whose scores it moves by as much".to_owned(),
    }];
    let plan = Plan {
        method: NAME,
        claim: claim.clone(),
        releases: vec![release],
        public: public(request),
        expectations,
        reason: None,
    };
    let matrix = Arc::new(auxiliary.unit_rows());
    let divisor = parties * auxiliary.largest_norm();
    Ok(Box::new(Prepared { plan, encoding: auxiliary.encoding().clone(), matrix, divisor }))
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
        let weights = released.values().into_iter().map(|weight| weight / self.divisor).collect();
        Ok(Fitted { encoding: self.encoding.clone(), weights, covariance: None })
    }
}
