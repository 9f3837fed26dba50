//! What will be asked and what it costs, before any row is read: pure functions of the schema and the request.

use reticent_core::account::gdp;
use reticent_core::account::pure::PureLoss;
use reticent_core::adjacency::{Adjacency, Relation};
use reticent_core::coding::Coding;
use reticent_core::label_use::LabelUse;
use reticent_core::ledger::{PlannedRelease, Request, six_decimals_up};
use reticent_core::query::{QueryError, QueryShape};
use reticent_core::schema::{FeatureKind, Schema};
use reticent_core::units::{Delta, Epsilon, Mu, MuSquared, NoiseDistribution, NoiseScale};
use serde::Serialize;
use thiserror::Error;

use crate::method::FitRequest;
use crate::model::Model;

/// The promise that a fit is planned for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PrivacyClaim {
    /// Who is protected against which difference.
    pub relation: Relation,
    /// Epsilon at [`Self::delta`].
    pub epsilon: Epsilon,
    /// Delta of the claim.
    pub delta: Delta,
    /// The same as Gaussian differential privacy, rounded down: what may be spent.
    pub mu: f64,
    /// `mu²` in the ledger's currency.
    pub mu_squared: MuSquared,
}

impl PrivacyClaim {
    /// Turns (epsilon, delta) into the budget of a fit.
    #[must_use]
    pub fn new(relation: Relation, epsilon: Epsilon, delta: Delta) -> Self {
        let mu = gdp::mu_down(epsilon, delta);
        Self { relation, epsilon, delta, mu: mu.get(), mu_squared: MuSquared::budget_down(mu) }
    }

    /// The claim of a budget that is given as `mu`, with the epsilon that it is worth at `delta`; epsilon is rounded up.
    #[must_use]
    pub fn of_mu(relation: Relation, mu: Mu, delta: Delta) -> Self {
        let worth = gdp::epsilon_up(mu, delta);
        // Where mu is worth no epsilon at this delta, or more than can be written down, the nearest that can be stands for it.
        let epsilon = Epsilon::new(worth.clamp(f64::MIN_POSITIVE, f64::MAX)).expect("positive and finite");
        Self { relation, epsilon, delta, mu: mu.get(), mu_squared: MuSquared::budget_down(mu) }
    }
}

/// Everything that a fit will ask, and what to expect of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The method.
    pub method: &'static str,
    /// The promise.
    pub claim: PrivacyClaim,
    /// The questions with their noise.
    pub releases: Vec<PlannedRelease>,
    /// Facts that are taken as public.
    pub public: Vec<String>,
    /// Figures worth knowing before paying, each with a name and a sentence.
    pub expectations: Vec<Expectation>,
    /// Why this method, where it was chosen automatically.
    pub reason: Option<String>,
    /// Fingerprint of the schema that it was made with, but for the number of rows, which may be counted for it.
    #[serde(skip)]
    schema: String,
}

/// A figure of the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expectation {
    /// What it is.
    pub name: &'static str,
    /// The number.
    pub value: f64,
    /// What it means.
    pub meaning: String,
}

/// A fit that cannot be planned.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum PlanError {
    /// The method cannot work on this kind of target.
    #[error(
        "method {method} fits {fits}, and the schema's target has {found}; choose another method (auto takes one that fits it), or describe the column otherwise in [target]"
    )]
    Target {
        /// The method.
        method: &'static str,
        /// What it fits.
        fits: &'static str,
        /// What the schema says.
        found: String,
    },
    /// The claim is about another relation than the schema: what of the table is public would be said of the wrong one.
    #[error(
        "the claim is about {claimed}, and the schema protects {protected}; make the claim of the schema's relation"
    )]
    Claim {
        /// Relation of the claim.
        claimed: Relation,
        /// Relation of the schema.
        protected: Relation,
    },
    /// The method has no finite sensitivity under the adjacency.
    #[error(
        "{method} has no finite sensitivity under {relation}; it needs {} in the schema, or another method",
        named(.possible)
    )]
    Adjacency {
        /// The method.
        method: &'static str,
        /// Relation of the schema.
        relation: Relation,
        /// Adjacencies under which it has one.
        possible: Vec<Adjacency>,
    },
    /// The budget is too small for any noise scale that the samplers support.
    #[error(
        "{unit} {budget:e} is too small a budget for {releases} {}: the noise would pass 2^60 lattice units; ask for more epsilon",
        if *releases == 1 { "release" } else { "releases" }
    )]
    TooSmall {
        /// What the budget is in: mu, or epsilon where noise is that of a pure promise.
        unit: &'static str,
        /// The budget.
        budget: f64,
        /// Releases to pay for.
        releases: u32,
    },
    /// The budget is above what a ledger can write down.
    #[error("epsilon {epsilon:e} is more than a ledger can count; ask for less: hardly anybody is protected at 100")]
    TooLarge {
        /// The budget.
        epsilon: f64,
    },
    /// No linear term of any size makes up for the ridge that was asked for.
    #[error(
        "--l2 is too small for mu {mu:.4}: the smaller the ridge, the more one row can bend the loss, and beyond that no noise hides it; ask for a larger --l2, or leave it out for one that fits the budget"
    )]
    Ridge {
        /// The budget.
        mu: f64,
    },
    /// A query that the schema's public figures do not allow.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// A parameter outside its range.
    #[error("{0}")]
    Parameter(String),
    /// A start point that belongs to another table.
    #[error("the start model does not fit the schema: {0}")]
    Init(String),
}

impl PlanError {
    /// The method has no sensitivity under the relation; `has` says under which it has one.
    pub(crate) fn adjacency(method: &'static str, relation: &Relation, has: impl Fn(&Relation) -> bool) -> Self {
        let under = |adjacency: &Adjacency| has(&Relation { unit: relation.unit.clone(), adjacency: *adjacency });
        let possible = Adjacency::ALL.into_iter().filter(under).collect();
        Self::Adjacency { method, relation: relation.clone(), possible }
    }
}

fn named(possible: &[Adjacency]) -> String {
    if possible.is_empty() {
        return "another adjacency".to_owned();
    }
    let names: Vec<String> = possible.iter().map(|adjacency| format!("adjacency = \"{adjacency}\"")).collect();
    names.join(" or ")
}

/// Plans `times` answers of one shape within a share of the budget, with the least noise that it allows.
///
/// # Errors
/// [`PlanError`] when the sensitivity is not finite or the share too small.
pub(crate) fn plan_release(
    method: &'static str,
    purpose: &str,
    shape: QueryShape,
    times: std::num::NonZeroU32,
    share: MuSquared,
    relation: &Relation,
) -> Result<PlannedRelease, PlanError> {
    let sensitivity = shape.sensitivity(relation).ok_or_else(|| no_sensitivity(method, &shape, relation))?;
    let noise_scale = NoiseScale::smallest_within(sensitivity, share.share_down(times)).ok_or(PlanError::TooSmall {
        unit: "mu",
        budget: share.mu_up(),
        releases: times.get(),
    })?;
    let noise = NoiseDistribution::RoundedGaussian;
    Ok(PlannedRelease { purpose: purpose.to_owned(), shape, noise_scale, noise, times: times.get() })
}

/// Why a query that has no finite sensitivity under a relation cannot be planned.
pub(crate) fn no_sensitivity(method: &'static str, shape: &QueryShape, relation: &Relation) -> PlanError {
    PlanError::adjacency(method, relation, |relation| shape.sensitivity(relation).is_some())
}

/// Plans one answer with discrete Laplace noise, `epsilon`-DP with delta 0 under the relation.
///
/// # Errors
/// [`PlanError`] when the query has no L1 sensitivity, or epsilon is too small or too large.
pub(crate) fn plan_pure_release(
    method: &'static str,
    purpose: &str,
    shape: QueryShape,
    epsilon: Epsilon,
    relation: &Relation,
) -> Result<PlannedRelease, PlanError> {
    let has = |relation: &Relation| shape.l1_sensitivity(relation).is_some();
    let sensitivity = shape.l1_sensitivity(relation).ok_or_else(|| PlanError::adjacency(method, relation, has))?;
    let noise_scale = sensitivity.smallest_scale_within(epsilon).ok_or(PlanError::TooSmall {
        unit: "epsilon",
        budget: epsilon.get(),
        releases: 1,
    })?;
    let noise = NoiseDistribution::DiscreteLaplace;
    let planned = PlannedRelease { purpose: purpose.to_owned(), shape, noise_scale, noise, times: 1 };
    match planned.price_up(relation) {
        Some(_) => Ok(planned),
        None => Err(PlanError::TooLarge { epsilon: epsilon.get() }),
    }
}

impl Plan {
    /// The plan of a method: it makes the request's claim, and takes as public what the request declares so.
    pub(crate) fn of(
        method: &'static str,
        request: &FitRequest<'_>,
        releases: Vec<PlannedRelease>,
        expectations: Vec<Expectation>,
    ) -> Self {
        let public = declared_public(request);
        let plan = Self::of_schema(method, request.schema, request.claim.clone(), releases, public);
        Self { expectations, ..plan }
    }

    /// A plan of which nothing is expected.
    pub(crate) fn of_schema(
        method: &'static str,
        schema: &Schema,
        claim: PrivacyClaim,
        releases: Vec<PlannedRelease>,
        public: Vec<String>,
    ) -> Self {
        let schema = schema.fingerprint_without_rows();
        Self { method, claim, releases, public, expectations: Vec::new(), reason: None, schema }
    }

    /// Whether it was made with this schema, whatever number of rows is declared or counted.
    pub(crate) fn is_of(&self, schema: &Schema) -> bool {
        self.schema == schema.fingerprint_without_rows()
    }

    /// Epsilon at delta 0 of all releases together, rounded up; `None` where the noise of one is Gaussian, which has none.
    #[must_use]
    pub fn pure_epsilon_up(&self) -> Option<f64> {
        pure_epsilon_up(&self.releases, &self.claim.relation)
    }

    /// What a ledger calls a fit by this method.
    #[must_use]
    pub fn purpose(method: &str) -> String {
        format!("fit {method}")
    }

    /// What the ledger will be asked to charge.
    #[must_use]
    pub fn request(&self, data: &str, schema: &Schema) -> Request {
        Request {
            purpose: Self::purpose(self.method),
            data: data.to_owned(),
            schema: schema.fingerprint(),
            labels: Some(LabelUse::of(schema)),
            table: Some(schema.table().as_read()),
            releases: self.releases.clone(),
        }
    }
}

/// Epsilon at delta 0 of releases together, rounded up; `None` where the noise of one is Gaussian.
pub(crate) fn pure_epsilon_up<'a>(
    releases: impl IntoIterator<Item = &'a PlannedRelease>,
    relation: &Relation,
) -> Option<f64> {
    let with = |sum: PureLoss, release: &PlannedRelease| {
        sum.checked_add(Epsilon::new(release.pure_epsilon_up(relation)?).ok()?)
    };
    releases.into_iter().try_fold(PureLoss::ZERO, with).map(PureLoss::get)
}

/// The facts that a fit takes as public: from the schema, and a model that was declared public.
fn declared_public(request: &FitRequest<'_>) -> Vec<String> {
    let mut public = public_of_schema(request.schema);
    if request.schema.privacy().rows.is_none() && request.schema.relation().has_public_row_number() {
        public.push(
            "the number of rows, which a fit counts and plans with: declare it as `rows` to see that plan".to_owned(),
        );
    }
    if let Some(model) = request.init {
        public.extend(public_of_start(model));
    }
    public
}

/// What a start model takes as public.
pub(crate) fn public_of_start(model: &Model) -> Vec<String> {
    let mut public = vec![match &model.public_data {
        Some(data) => format!(
            "the rows of {} (sha256 {}), declared public, and the start model fitted to them (sha256 {})",
            data.file,
            data.sha256,
            model.fingerprint()
        ),
        None => format!("the start model (sha256 {}), declared public", model.fingerprint()),
    }];
    if let Some(certificate) = &model.certificate {
        public.push(format!(
            "the start model was itself fitted privately: epsilon {} at delta {:e} (mu {:.6}), ledger {}, entry {}; \
             for units that are in both tables the two claims add up",
            certificate.epsilon,
            certificate.delta.get(),
            six_decimals_up(certificate.mu),
            certificate.ledger.id,
            certificate.ledger.entry
        ));
    }
    public
}

/// What one table with features and labels keeps from nobody where labels are protected.
pub(crate) const USABLE_LABELS_PUBLIC: &str =
    "all features, the number of rows and which rows have a usable label: NOT protected under label";

/// The facts that a schema declares public.
pub(crate) fn public_of_schema(schema: &Schema) -> Vec<String> {
    let (mut bounds, mut categories, mut hashed) = (0, 0, 0);
    for feature in schema.features() {
        match feature.kind {
            FeatureKind::Numeric { .. } => bounds += 1,
            FeatureKind::Categorical { .. } => categories += 1,
            FeatureKind::Hashed { .. } => hashed += 1,
        }
    }
    let mut public = vec![
        format!("names of the columns; bounds of {bounds} numeric and categories of {categories} categorical features"),
        format!("target column `{}` and its classes or bounds", schema.target().column),
        format!("at most {} rows", schema.privacy().rows_max),
        format!("{} encoded columns", Coding::of(schema).columns().len()),
    ];
    if hashed > 0 {
        public.push(format!("number of hash buckets of {hashed} hashed feature{}", if hashed == 1 { "" } else { "s" }));
    }
    if let Some(most) = schema.nonzeros_max() {
        public.push(format!("of the values of a row that are not 0 the first {most} count (nonzeros_max)"));
    }
    match schema.privacy().adjacency {
        Adjacency::AddRemove => {}
        Adjacency::Replace => public.push("the number of units: NOT protected under replace".to_owned()),
        Adjacency::Label => public.push(USABLE_LABELS_PUBLIC.to_owned()),
        Adjacency::Party => public.push("the number of parties: NOT protected under party".to_owned()),
    }
    if let Some(rows) = schema.privacy().rows {
        public.push(match schema.privacy().adjacency {
            Adjacency::AddRemove | Adjacency::Party => {
                format!("a round figure of {rows} for the number of units, declared in the schema")
            }
            Adjacency::Replace | Adjacency::Label => {
                format!("a figure of {rows} for the number of units, declared in the schema or counted where it declares none (a usual one where a plan for the counted number would not fit in the ledger)")
            }
        });
    }
    if schema.privacy().row_norm.is_some() {
        public.push("the bound on the norm of an encoded row, declared in the schema".to_owned());
    }
    public
}
