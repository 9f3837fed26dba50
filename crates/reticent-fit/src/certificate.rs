//! What a model reveals, and why: the page for a review board.

use reticent_core::adjacency::Relation;
use reticent_core::ledger::{PlannedRelease, Request};
use reticent_core::units::{Delta, Epsilon, MuSquared, NoiseDistribution};
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, PrivacyClaim};

/// The claim, what it rests on, and every question that was asked. Holds no private value: no seed, no exact sum, no count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Certificate {
    /// Who is protected against which difference.
    pub relation: Relation,
    /// Epsilon of the claim at [`Self::delta`].
    pub epsilon: Epsilon,
    /// Delta of the claim.
    pub delta: Delta,
    /// Epsilon at delta 0, where all noise is Laplace noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pure_epsilon: Option<f64>,
    /// The same claim as Gaussian differential privacy, rounded up; the price of all releases together.
    pub mu: f64,
    /// The price in the ledger's exact currency, in steps of 2^-96.
    pub mu_squared: MuSquared,
    /// The method.
    pub method: String,
    /// Every kind of question, with its sensitivity and noise.
    pub releases: Vec<CertifiedRelease>,
    /// Facts that were taken as public; the claim does not protect them.
    pub public: Vec<String>,
    /// Fingerprint of the schema that bounds the rows.
    pub schema: String,
    /// Where the spend is recorded.
    pub ledger: LedgerReference,
    /// Version of the software that made the release.
    pub software: String,
}

/// One kind of question and its price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CertifiedRelease {
    /// The question as planned and charged.
    #[serde(flatten)]
    pub planned: PlannedRelease,
    /// L2 sensitivity of the integer sum under the claimed relation, in lattice units; L1 where the noise is Laplace noise.
    pub sensitivity: f64,
    /// The price of one answer.
    pub mu_of_one: f64,
}

/// Entry of a ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerReference {
    /// Identity of the ledger, as its file states it.
    pub id: String,
    /// Number of the entry.
    pub entry: u64,
    /// Its seal, where the ledger is at hand: `reticent ledger verify --model` holds it against the file, and finds every later
    /// change of this entry and of all before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
}

impl Certificate {
    /// Writes down a paid request.
    ///
    /// # Panics
    /// When the request has no finite price under the claimed relation: the ledger would have refused it.
    #[must_use]
    pub fn of(plan: &Plan, request: &Request, ledger: LedgerReference) -> Self {
        let PrivacyClaim { relation, epsilon, delta, .. } = plan.claim.clone();
        let price = request.price_up(&relation).expect("the ledger admits finite prices only");
        let certify = |planned: &PlannedRelease| {
            let sensitivity = match planned.noise {
                NoiseDistribution::RoundedGaussian => {
                    planned.shape.sensitivity(&relation).map(|square| (square.get() as f64).sqrt())
                }
                NoiseDistribution::DiscreteLaplace => planned.shape.l1_sensitivity(&relation).map(|l1| l1.get() as f64),
            }
            .expect("the ledger admits finite sensitivities only");
            let all = planned.price_up(&relation).expect("the ledger admits finite prices only").mu_up();
            let mu_of_one = all / f64::from(planned.times).sqrt();
            CertifiedRelease { planned: planned.clone(), sensitivity, mu_of_one }
        };
        Self {
            releases: request.releases.iter().map(certify).collect(),
            epsilon,
            delta,
            pure_epsilon: plan.pure_epsilon_up(),
            mu: price.mu_up(),
            mu_squared: price,
            method: plan.method.to_owned(),
            public: plan.public.clone(),
            schema: request.schema.clone(),
            ledger,
            software: concat!("reticent ", env!("CARGO_PKG_VERSION")).to_owned(),
            relation,
        }
    }
}
