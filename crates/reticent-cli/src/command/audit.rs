//! `reticent audit` and `reticent party audit`: how much repeated fits of neighbours really tell apart, against the claim.
//!
//! ```text
//!   pilot: every candidate start and pair of neighbours, a few fits each; more fits of the best ──▶ those that differ most
//!   then:  fits of that pair ──▶ a linear test ──▶ fresh fits judge it ──▶ lower bound on mu, with confidence
//! ```
//! What the test sees are all releases of a fit, as an adversary may; how they were computed it does not know. The tables
//! and votes are made up here and nobody is in them, so the fits are charged to a ledger in memory. Noise is that of every
//! fit, from the operating system.

mod plot;
mod start;
mod tables;
mod trial;
mod votes;

use reticent_core::adjacency::{Adjacency, Relation};
use reticent_core::schema::Schema;
use reticent_fit::audit::{LowerBounds, TestErrors};
use reticent_fit::method::{self, FitRequest};
use reticent_fit::model::Model;
use reticent_fit::party;
use reticent_fit::plan::{PlanError, PrivacyClaim};
use reticent_fit::prepared_fit::PreparedFit;
use serde_json::json;

use self::start::Start;
use self::trial::Trial;
use super::party::read_auxiliary;
use super::{read_model, read_schema};
use crate::args::{AuditArguments, PartyAuditArguments, TrialArguments};
use crate::combiner_choice::CombinerChoice;
use crate::failure::Failure;
use crate::files::{self, OutputFile};

/// What was audited, and what came out.
struct Audit {
    method: &'static str,
    claim: PrivacyClaim,
    /// What a ledger is charged for one fit, and so what is claimed: of pure epsilon it is more than the mu of the same epsilon at
    /// [`PrivacyClaim::delta`], which Laplace noise does not keep.
    mu: f64,
    pair: String,
    errors: TestErrors,
    bounds: LowerBounds,
    /// Scores of the fresh fits, by neighbour.
    scores: [Vec<f64>; 2],
}

/// Fits of tables.
pub(super) fn tables(arguments: &AuditArguments) -> Result<(), Failure> {
    let (schema, fits) = prepare(arguments)?;
    let trials = fits.iter().flat_map(|(start, prepared)| tables::trials(&schema, arguments.rows, start, prepared));
    run(&arguments.trial, &schema, trials.collect())
}

/// Fits of votes.
pub(super) fn votes(arguments: &PartyAuditArguments) -> Result<(), Failure> {
    let (schema, auxiliary) = match (&arguments.schema, &arguments.auxiliary) {
        (Some(schema), Some(auxiliary)) => {
            let schema = read_schema(schema)?;
            let auxiliary = read_auxiliary(auxiliary, &schema)?;
            (schema, auxiliary)
        }
        _ => votes::small_question(),
    };
    let CombinerChoice { combiner, options } = &arguments.choice;
    let claim = claim(schema.relation(), &arguments.trial);
    let request = party::PartyRequest {
        fit: FitRequest { schema: &schema, claim: &claim, init: None, options },
        auxiliary: &auxiliary,
        parties: u64::from(arguments.others) + 1,
    };
    let prepared = party::prepare(*combiner, &request).map_err(Failure::usage)?;
    run(&arguments.trial, &schema, votes::trials(&schema, &auxiliary, arguments.others.into(), &prepared))
}

fn run(arguments: &TrialArguments, schema: &Schema, trials: Vec<Trial<'_>>) -> Result<(), Failure> {
    let plot = arguments.plot.as_deref().map(OutputFile::create).transpose()?;
    let audit = trial::judge(arguments, schema, trials)?;
    // Figures that took minutes are not lost for a plot that cannot be written, nor the plot for a full stdout.
    let printed = if arguments.json {
        files::print_json(&json(&audit, arguments.confidence))
    } else {
        files::print(&text(&audit, arguments.confidence))
    };
    let drawn = plot.map_or(Ok(()), |mut file| {
        plot::draw(&audit, file.writer())?;
        file.finish()
    });
    printed?;
    if audit.bounds.mu > audit.mu {
        return Err(Failure::Defect(format!(
            "the lower bound is above the claim: {} reveals more than it says, or this is one of the rare runs in which a true \
             claim fails the test; run the audit again, and report it if it happens twice",
            audit.method
        )));
    }
    drawn
}

fn claim(relation: Relation, arguments: &TrialArguments) -> PrivacyClaim {
    match (arguments.mu, arguments.epsilon) {
        (Some(mu), _) => PrivacyClaim::of_mu(relation, mu, arguments.delta),
        (None, Some(epsilon)) => PrivacyClaim::new(relation, epsilon, arguments.delta),
        (None, None) => unreachable!("the parser asks for one of them"),
    }
}

/// The fits to be audited, one a start: under the given schema, or under a small one that the method fits.
fn prepare(arguments: &AuditArguments) -> Result<(Schema, Vec<(Start, PreparedFit)>), Failure> {
    let schema = match &arguments.schema {
        Some(path) => read_schema(path)?,
        None => small_schema(arguments)?,
    };
    let starts = match &arguments.init {
        Some(path) => vec![Start::of(Some(read_model(path)?))],
        None => Start::candidates(&schema),
    };
    let fit = |start: Start| {
        let prepared = prepare_under(arguments, &schema, start.model.as_ref())?;
        Ok((start, prepared))
    };
    let fits = starts.into_iter().map(fit).collect::<Result<_, PlanError>>().map_err(Failure::usage)?;
    Ok((schema, fits))
}

/// The first of the small schemas that the method fits.
fn small_schema(arguments: &AuditArguments) -> Result<Schema, Failure> {
    let mut refused = None;
    for schema in tables::small_schemas(arguments.rows) {
        match prepare_under(arguments, &schema, None) {
            Ok(_) => return Ok(schema),
            Err(error @ (PlanError::Target { .. } | PlanError::Adjacency { .. })) => refused = Some(error),
            Err(error) => return Err(Failure::usage(error)),
        }
    }
    Err(Failure::usage(refused.expect("there is more than one small schema")))
}

fn prepare_under(arguments: &AuditArguments, schema: &Schema, init: Option<&Model>) -> Result<PreparedFit, PlanError> {
    if schema.relation().adjacency == Adjacency::Party {
        let message =
            "an audit of a method fits tables; under party adjacency votes are combined: `reticent party audit`";
        return Err(PlanError::Parameter(message.to_owned()));
    }
    let claim = claim(schema.relation(), &arguments.trial);
    let request = FitRequest { schema, claim: &claim, init, options: &arguments.choice.options };
    method::prepare(arguments.choice.method, &request)
}

fn json(audit: &Audit, confidence: f64) -> serde_json::Value {
    let Audit { method, claim, mu, pair, errors, bounds, .. } = audit;
    json!({
        "method": method,
        "relation": claim.relation.to_string(),
        "claimed": { "mu": mu, "epsilon": claim.epsilon.get(), "delta": claim.delta.get() },
        "pair": pair,
        "runs_per_neighbour": errors.runs,
        "false_alarms": errors.false_alarms,
        "misses": errors.misses,
        "confidence": confidence,
        "lower_bound": { "mu": bounds.mu, "epsilon": bounds.epsilon, "mu_over_claim": bounds.mu / mu },
    })
}

fn text(audit: &Audit, confidence: f64) -> String {
    let Audit { method, claim, mu, pair, errors, bounds, .. } = audit;
    let percent = |count: u64| 100.0 * count as f64 / errors.runs as f64;
    format!(
        "Audit of {method}: {}\n\
         Claim: mu {mu:.6}, what a ledger is charged for one fit (epsilon {:.4} at delta {:e})\n\
         Pair:  {pair}\n\
         Test:  a linear score of all releases, {} fresh fits of each neighbour; it mistook the first for the second in \
         {:.2} %, the second for the first in {:.2} %\n\n\
         Lower bound with {} % confidence: mu {:.4}, {:.1} % of the claim; epsilon {:.4} at the same delta\n\n\
         A bound above the claim shows that noise is missing. One below it proves nothing about other pairs and tests; the \
         closer it comes to the claim, the less noise could be missing unseen by this one.\n",
        claim.relation,
        claim.epsilon,
        claim.delta.get(),
        errors.runs,
        percent(errors.false_alarms),
        percent(errors.misses),
        100.0 * confidence,
        bounds.mu,
        100.0 * bounds.mu / mu,
        bounds.epsilon,
    )
}
