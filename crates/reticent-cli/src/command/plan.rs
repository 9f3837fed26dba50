//! `reticent plan`: what a fit would ask and pay, from public values alone.

use reticent_core::ledger::LedgerStore;
use reticent_core::schema::Schema;
use reticent_fit::method::{self, Chosen};
use reticent_fit::model::Model;
use reticent_fit::plan::{PlanError, PrivacyClaim};
use reticent_fit::prepared_fit::PreparedFit;
use serde_json::json;

use super::storage::Storage;
use super::{fit_public, ledger_place, read_model, read_schema};
use crate::args::{FitRequest, PlanArguments};
use crate::failure::Failure;
use crate::{files, report};

pub(super) fn run(arguments: &PlanArguments) -> Result<(), Failure> {
    let schema = read_schema(&arguments.request.schema)?;
    let prepared = plan(&arguments.request, &schema)?;
    let plan = prepared.plan();
    Storage::checked(&arguments.storage, &schema, plan.releases.iter().map(|release| &release.shape))?;
    let account = match &arguments.ledger {
        Some(path) => Some(ledger_place::open_for(path, &schema.relation())?.account()?),
        None => None,
    };
    let answer = account.map(|account| account.may_admit(&plan.claim.relation, &plan.request("-", &schema)));
    if arguments.json {
        let ledger = answer.map(|answer| match answer {
            Ok(_) => json!({ "admits": true }),
            Err(refusal) => json!({ "admits": false, "refusal": refusal.to_string() }),
        });
        let price = plan.request("-", &schema).price_up(&plan.claim.relation);
        let price = price.map(|price| json!({ "mu": price.mu_up(), "mu_squared": price }));
        let document =
            json!({ "plan": plan, "price": price, "pure_epsilon": plan.pure_epsilon_up(), "ledger": ledger });
        return files::print_json(&document);
    }
    let mut text = report::plan(plan, &schema);
    match answer {
        None => {}
        Some(Ok(_)) => text.push_str("\nThe ledger would admit this fit as it stands.\n"),
        Some(Err(refusal)) => text.push_str(&format!("\n{refusal}\n")),
    }
    files::print(&text)
}

/// Rows that a plan is made for while those of the table are still to be counted.
const ROWS_MEANWHILE: u64 = 36_000;

/// Plans a fit and checks its parameters, reading the start model or the public table only.
pub(super) fn plan(request: &FitRequest, schema: &Schema) -> Result<PreparedFit, Failure> {
    let start = start(request, schema)?;
    prepare(&choose(request, schema, start.as_ref())?, request, schema, start.as_ref())
}

/// The model that a fit starts from, if it has one: read, or fitted to the public table.
pub(super) fn start(request: &FitRequest, schema: &Schema) -> Result<Option<Model>, Failure> {
    match (&request.init, &request.public_data) {
        (Some(model), _) => Ok(Some(read_model(model)?)),
        (None, Some(data)) => Ok(Some(fit_public::start(data, schema)?)),
        (None, None) => Ok(None),
    }
}

/// The method that is named, or that the schema decides.
pub(super) fn choose(request: &FitRequest, schema: &Schema, start: Option<&Model>) -> Result<Chosen, Failure> {
    asking(request, schema, start, |asked| method::choose(request.choice.method, asked))
}

/// Plans a fit and checks its parameters.
pub(super) fn prepare(
    chosen: &Chosen,
    request: &FitRequest,
    schema: &Schema,
    start: Option<&Model>,
) -> Result<PreparedFit, Failure> {
    asking(request, schema, start, |asked| chosen.prepare(asked))
}

fn asking<T>(
    request: &FitRequest,
    schema: &Schema,
    start: Option<&Model>,
    answer: impl FnOnce(&method::FitRequest<'_>) -> Result<T, PlanError>,
) -> Result<T, Failure> {
    let claim = PrivacyClaim::new(schema.relation(), request.epsilon, request.delta);
    let options = &request.choice.options;
    answer(&method::FitRequest { schema, claim: &claim, init: start, options }).map_err(Failure::usage)
}

/// The schema to check a request with before the table is read: where a fit will count the rows, with a usual number of them.
pub(super) fn before_rows_are_counted(schema: &Schema) -> Schema {
    if schema.relation().has_public_row_number() { schema.with_rows(ROWS_MEANWHILE) } else { schema.clone() }
}
