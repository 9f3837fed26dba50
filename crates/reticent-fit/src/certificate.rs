//! What a model reveals, and why: the page for a review board.

use std::num::NonZeroU32;

use reticent_core::adjacency::Relation;
use reticent_core::ledger::{Budget, LedgerReference, PlannedRelease, Request};
use reticent_core::units::{Delta, Epsilon, MuSquared, NoiseDistribution};
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, PrivacyClaim, pure_epsilon_up};

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

impl Certificate {
    /// Writes down a paid request.
    ///
    /// # Panics
    /// When the request has no finite price under the claimed relation: the ledger would have refused it.
    #[must_use]
    pub(crate) fn of(plan: &Plan, request: &Request, ledger: LedgerReference) -> Self {
        let PrivacyClaim { relation, epsilon, delta, .. } = plan.claim.clone();
        let price = request.price_up(&relation).expect("the ledger admits finite prices only");
        let certify = |planned: &PlannedRelease| {
            CertifiedRelease::of(planned, &relation).expect("the ledger admits finite sensitivities and prices only")
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

    /// Checks that the claim is not smaller than what its own releases cost: who edits a figure has to edit all that follows from it, and
    /// then it is another entry than the ledger's.
    ///
    /// Not that it is as large to the last digit: it may have been made on another machine, or by a release that priced higher.
    ///
    /// # Errors
    /// What contradicts what.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut price = MuSquared::ZERO;
        for release in &self.releases {
            let own = CertifiedRelease::of(&release.planned, &self.relation);
            let own = own.ok_or("its certificate has a release without a finite price under its relation")?;
            if !is_covered(own.sensitivity, release.sensitivity) || !is_covered(own.mu_of_one, release.mu_of_one) {
                return Err("its certificate states a smaller sensitivity or mu of a release than the release has");
            }
            let planned = release.planned.price_up(&self.relation);
            price =
                planned.and_then(|one| price.checked_add(one)).ok_or("its certificate costs more than can be told")?;
        }
        let is_within = |spent: MuSquared, limit: MuSquared| {
            spent <= limit.checked_add(limit.fraction_down(1, CLAIM_SLACK)).unwrap_or(MuSquared::MAX)
        };
        if !is_within(price, self.mu_squared) || !is_covered(self.mu_squared.mu_up(), self.mu) {
            return Err("its certificate states a smaller mu than its releases cost");
        }
        let pure = pure_epsilon_up(self.releases.iter().map(|release| &release.planned), &self.relation);
        let is_pure_within = |claimed: f64| pure.is_some_and(|pure| is_covered(pure, claimed));
        if self.pure_epsilon.is_some_and(|claimed| !is_pure_within(claimed)) {
            return Err("its certificate states a smaller epsilon at delta 0 than its releases have");
        }
        let budget = Budget { epsilon: self.epsilon, delta: self.delta }.mu_squared_down();
        if !is_within(self.mu_squared, budget) && !is_pure_within(self.epsilon.get()) {
            return Err("its certificate states a smaller epsilon than its mu has at its delta");
        }
        Ok(())
    }
}

impl CertifiedRelease {
    /// `None` where the release has no finite sensitivity or price under the relation.
    fn of(planned: &PlannedRelease, relation: &Relation) -> Option<Self> {
        let sensitivity = match planned.noise {
            NoiseDistribution::RoundedGaussian => (planned.shape.sensitivity(relation)?.get() as f64).sqrt(),
            NoiseDistribution::DiscreteLaplace => planned.shape.l1_sensitivity(relation)?.get() as f64,
        };
        let mu_of_one = planned.price_up(relation)?.mu_up() / f64::from(planned.times).sqrt();
        Some(Self { planned: planned.clone(), sensitivity, mu_of_one })
    }
}

/// Whether what is claimed is at least what was computed, but for roundings.
fn is_covered(computed: f64, claimed: f64) -> bool {
    claimed >= computed * (1.0 - 1.0 / f64::from(CLAIM_SLACK.get()))
}

/// One part of that many: another machine may have rounded logarithms and roots otherwise, by a part in 10^11.
const CLAIM_SLACK: NonZeroU32 = NonZeroU32::new(1_000_000_000).expect("not zero");
