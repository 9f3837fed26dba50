//! `reticent plan`: what a fit would ask and pay, from public values alone.

use reticent_core::schema::Schema;
use reticent_curator::ledger_file::LedgerFile;
use reticent_fit::method::noisy_gd::{self, Averaging, Checked, Params};
use reticent_fit::plan::{Plan, PrivacyClaim};
use serde_json::json;

use super::{read_model, read_schema};
use crate::args::{AverageName, FitRequest, MethodName, PlanArguments};
use crate::failure::Failure;
use crate::{files, report};

pub(super) fn run(arguments: &PlanArguments) -> Result<(), Failure> {
    let schema = read_schema(&arguments.request.schema)?;
    let (plan, _) = plan(&arguments.request, &schema)?;
    let account = match &arguments.ledger {
        Some(path) => Some(reticent_core::ledger::LedgerStore::account(&LedgerFile::open(path)?)?),
        None => None,
    };
    let answer = account.map(|account| {
        account.check_promised(&plan.claim.relation)?;
        account.admit(&plan.request("-", &schema))
    });
    if arguments.json {
        let ledger = answer.map(|answer| match answer {
            Ok(_) => json!({ "admits": true }),
            Err(refusal) => json!({ "admits": false, "refusal": refusal.to_string() }),
        });
        let document = json!({ "plan": plan, "ledger": ledger });
        return files::print(&format!("{document:#}\n"));
    }
    let mut text = report::plan(&plan);
    match answer {
        None => {}
        Some(Ok(_)) => text.push_str("\nThe ledger would admit this fit as it stands.\n"),
        Some(Err(refusal)) => text.push_str(&format!("\n{refusal}\n")),
    }
    files::print(&text)
}

/// Plans a fit and checks its parameters, reading schema and start model only.
pub(super) fn plan(request: &FitRequest, schema: &Schema) -> Result<(Plan, Checked), Failure> {
    let claim = PrivacyClaim::new(schema.relation(), request.epsilon, request.delta);
    match request.method {
        MethodName::NoisyGd => {
            let params = Params {
                init: request.init.as_deref().map(read_model).transpose()?,
                l2: request.l2,
                passes: request.passes,
                radius: request.radius,
                averaging: match request.average {
                    AverageName::All => Averaging::All,
                    AverageName::LastHalf => Averaging::LastHalf,
                },
            };
            let checked = params.check(schema).map_err(Failure::usage)?;
            let plan = noisy_gd::plan(&checked, schema, claim).map_err(Failure::usage)?;
            Ok((plan, checked))
        }
    }
}
