//! `reticent audit`: how much repeated fits of neighbouring synthetic tables really tell apart, against the claim.
//!
//! ```text
//!   pilot: every candidate pair of tables, a few fits each ──▶ the pair that differs most
//!   then:  fits of that pair ──▶ a linear test ──▶ fresh fits judge it ──▶ lower bound on mu, with confidence
//! ```
//! What the test sees are all releases of a fit, as an adversary may; how they were computed it does not know. The tables
//! are made up here and nobody is in them, so the fits are charged to a ledger in memory. Noise is that of every fit, from
//! the operating system.

mod pairs;
mod plot;

use std::collections::BTreeMap;

use rayon::prelude::*;
use reticent_core::adjacency::Adjacency;
use reticent_core::ledger::{Account, LedgerError, LedgerStore, Request};
use reticent_core::schema::Schema;
use reticent_core::session::Session;
use reticent_core::units::MuSquared;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_fit::audit::{LowerBounds, TestErrors};
use reticent_fit::method::{self, FitRequest};
use reticent_fit::plan::{PlanError, PrivacyClaim};
use reticent_fit::prepared_fit::{FitError, PreparedFit};
use reticent_math::discriminant::{direction, separation_square};
use serde_json::json;

use self::pairs::Pair;
use super::read_schema;
use crate::args::AuditArguments;
use crate::failure::Failure;
use crate::files::{self, OutputFile};
use crate::progress;

/// Fits of each table of a candidate pair in the pilot.
const PILOT_RUNS: u64 = 200;
/// Sums that the answers of one repeated release are put together in: a test of every single answer would drown in the noise of
/// its own weights.
const GROUPS: usize = 4;

/// What was audited, and what came out.
struct Audit {
    method: &'static str,
    claim: PrivacyClaim,
    pair: String,
    errors: TestErrors,
    bounds: LowerBounds,
    /// Scores of the fresh fits, by table.
    scores: [Vec<f64>; 2],
}

pub(super) fn run(arguments: &AuditArguments) -> Result<(), Failure> {
    let plot = arguments.plot.as_deref().map(OutputFile::create).transpose()?;
    let (schema, prepared) = prepare(arguments)?;
    let audit = audit(arguments, &schema, &prepared)?;
    if let Some(mut file) = plot {
        plot::draw(&audit, file.writer())?;
        file.finish()?;
    }
    let above = audit.bounds.mu > audit.claim.mu;
    files::print(&if arguments.json {
        format!("{:#}\n", json(&audit, arguments.confidence))
    } else {
        text(&audit, arguments.confidence)
    })?;
    if above {
        return Err(Failure::Defect(format!(
            "the lower bound is above the claim: {} reveals more than it says, or this is one of the rare runs in which a true \
             claim fails the test; run the audit again, and report it if it happens twice",
            audit.method
        )));
    }
    Ok(())
}

/// The fit to be audited: under the given schema, or under a small one that the method fits.
fn prepare(arguments: &AuditArguments) -> Result<(Schema, PreparedFit), Failure> {
    if let Some(path) = &arguments.schema {
        let schema = read_schema(path)?;
        let prepared = prepare_under(arguments, &schema).map_err(Failure::usage)?;
        return Ok((schema, prepared));
    }
    let mut refused = None;
    for schema in pairs::small_schemas(arguments.rows) {
        match prepare_under(arguments, &schema) {
            Ok(prepared) => return Ok((schema, prepared)),
            Err(error @ (PlanError::Target { .. } | PlanError::Adjacency { .. })) => refused = Some(error),
            Err(error) => return Err(Failure::usage(error)),
        }
    }
    Err(Failure::usage(refused.expect("there is more than one small schema")))
}

fn prepare_under(arguments: &AuditArguments, schema: &Schema) -> Result<PreparedFit, PlanError> {
    let relation = schema.relation();
    if relation.adjacency == Adjacency::Party {
        return Err(PlanError::Parameter(
            "an audit fits tables; under party adjacency votes are combined, and `reticent party` has no audit"
                .to_owned(),
        ));
    }
    let claim = match (arguments.mu, arguments.epsilon) {
        (Some(mu), _) => PrivacyClaim::of_mu(relation, mu, arguments.delta),
        (None, Some(epsilon)) => PrivacyClaim::new(relation, epsilon, arguments.delta),
        (None, None) => unreachable!("the parser asks for one of them"),
    };
    let request = FitRequest { schema, claim: &claim, init: None, options: &arguments.choice.options };
    method::prepare(arguments.choice.method, &request)
}

fn audit(arguments: &AuditArguments, schema: &Schema, prepared: &PreparedFit) -> Result<Audit, Failure> {
    let request = prepared.plan().request("synthetic", schema);
    let candidates = pairs::candidates(schema, arguments.rows);
    let bar = progress::fits(2 * (PILOT_RUNS * candidates.len() as u64 + 2 * arguments.runs));
    let collect = |pair: &Pair, runs: u64| -> Result<[Vec<Vec<f64>>; 2], Failure> {
        let of_table = |engine: &MemoryEngine| {
            let one = |_| {
                bar.inc(1);
                releases_of_one_fit(engine, schema, prepared, &request)
            };
            (0..runs).into_par_iter().map(one).collect::<Result<Vec<_>, Failure>>()
        };
        Ok([of_table(&pair.first)?, of_table(&pair.second)?])
    };

    let mut best: Option<(f64, Pair)> = None;
    for pair in candidates {
        let [first, second] = collect(&pair, PILOT_RUNS)?;
        let apart = separation_square(&first, &second);
        if best.as_ref().is_none_or(|(most, _)| apart > *most) {
            best = Some((apart, pair));
        }
    }
    let (_, pair) = best.expect("every adjacency has candidates");

    let [first, second] = collect(&pair, arguments.runs)?;
    let weights = direction(&first, &second);
    let score = |one: &Vec<f64>| one.iter().zip(&weights).map(|(value, weight)| value * weight).sum::<f64>();
    let mean = |sample: &[Vec<f64>]| sample.iter().map(score).sum::<f64>() / sample.len() as f64;
    let threshold = 0.5 * (mean(&first) + mean(&second));

    let [first, second] = collect(&pair, arguments.runs)?;
    bar.finish_and_clear();
    let scores = [first, second].map(|sample| sample.iter().map(score).collect::<Vec<f64>>());
    let errors = TestErrors {
        false_alarms: scores[0].iter().filter(|score| **score > threshold).count() as u64,
        misses: scores[1].iter().filter(|score| **score <= threshold).count() as u64,
        runs: arguments.runs,
    };
    let plan = prepared.plan();
    Ok(Audit {
        method: plan.method,
        claim: plan.claim.clone(),
        pair: pair.description,
        errors,
        bounds: errors.lower_bounds(arguments.confidence, arguments.delta.get()),
        scores,
    })
}

/// All that one fit releases, the answers of a repeated release added up in a few groups.
fn releases_of_one_fit(
    engine: &MemoryEngine,
    schema: &Schema,
    prepared: &PreparedFit,
    request: &Request,
) -> Result<Vec<f64>, Failure> {
    let mut ledger = SyntheticLedger::new(schema);
    let mut session = Session::open(engine, &mut ledger, schema.relation())?;
    // The planned release and the group that each answer belongs to.
    let mut places = prepared.plan().releases.iter().enumerate().flat_map(|(release, planned)| {
        (0..planned.times as usize).map(move |time| (release, time * GROUPS / planned.times as usize))
    });
    let mut sums: Vec<((usize, usize), Vec<f64>)> = Vec::new();
    let fitted = prepared.fit(&mut session, request, &mut |released| {
        let place = places.next().expect("the plan has each release");
        let values = released.values();
        match sums.last_mut() {
            Some((last, sum)) if *last == place => {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
            }
            _ => sums.push((place, values)),
        }
    });
    match fitted {
        // A model that cannot be computed from its releases changes nothing about what was released.
        Ok(_) | Err(FitError::Numeric(_)) => {}
        Err(error @ (FitError::Session(_) | FitError::PublicFeatures(_))) => return Err(error.into()),
    }
    Ok(sums.into_iter().flat_map(|(_, sum)| sum).collect())
}

fn json(audit: &Audit, confidence: f64) -> serde_json::Value {
    let Audit { method, claim, pair, errors, bounds, .. } = audit;
    json!({
        "method": method,
        "relation": claim.relation.to_string(),
        "claimed": { "mu": claim.mu, "epsilon": claim.epsilon.get(), "delta": claim.delta.get() },
        "pair": pair,
        "runs_per_table": errors.runs,
        "false_alarms": errors.false_alarms,
        "misses": errors.misses,
        "confidence": confidence,
        "lower_bound": { "mu": bounds.mu, "epsilon": bounds.epsilon, "mu_over_claim": bounds.mu / claim.mu },
    })
}

fn text(audit: &Audit, confidence: f64) -> String {
    let Audit { method, claim, pair, errors, bounds, .. } = audit;
    let percent = |count: u64| 100.0 * count as f64 / errors.runs as f64;
    format!(
        "Audit of {method}: {}\n\
         Claim: mu {:.6} (epsilon {} at delta {:e})\n\
         Pair:  {pair}\n\
         Test:  a linear score of all releases, {} fresh fits of each table; it mistook the first table for the second in \
         {:.2} %, the second for the first in {:.2} %\n\n\
         Lower bound with {} % confidence: mu {:.4}, {:.1} % of the claim; epsilon {:.4} at the same delta\n\n\
         A bound below the claim proves nothing about other pairs and tests; it shows that no noise is missing here. A bound \
         close to the claim shows that this audit would have seen it.\n",
        claim.relation,
        claim.mu,
        claim.epsilon,
        claim.delta.get(),
        errors.runs,
        percent(errors.false_alarms),
        percent(errors.misses),
        100.0 * confidence,
        bounds.mu,
        100.0 * bounds.mu / claim.mu,
        bounds.epsilon,
    )
}

/// The account of tables that nobody is in: it follows the rules and forgets.
struct SyntheticLedger(Account);

impl SyntheticLedger {
    fn new(schema: &Schema) -> Self {
        Self(Account { budget: None, spent: BTreeMap::from([(schema.relation(), MuSquared::ZERO)]) })
    }
}

impl LedgerStore for SyntheticLedger {
    fn account(&self) -> Result<Account, LedgerError> {
        Ok(self.0.clone())
    }

    fn charge(&mut self, request: &Request) -> Result<(), LedgerError> {
        Ok(self.0.book(request)?)
    }
}
