//! `reticent evaluate`: figures of a model on public or private rows.

use std::path::Path;
use std::sync::Arc;

use reticent_core::adjacency::{Adjacency, Relation};
use reticent_core::ledger::{Account, LedgerStore};
use reticent_core::record::Label;
use reticent_core::schema::Schema;
use reticent_core::session::Session;
use reticent_core::units::Epsilon;
use reticent_curator::ledger_file::LedgerFile;
use reticent_curator::source::{Need, TableSource};
use reticent_fit::evaluate::public::{self, ScoredRow};
use reticent_fit::evaluate::{Evaluation, private};
use reticent_fit::model::Model;
use reticent_fit::plan::{Plan, PlanError, PrivacyClaim};
use reticent_fit::raw_columns::RawColumns;
use serde_json::json;

use super::ledger_place::LedgerPlace;
use super::storage::{Storage, StoredRows};
use super::{data_name, for_each_made, open_private, read_model, read_schema};
use crate::args::EvaluateArguments;
use crate::failure::Failure;
use crate::{files, interrupt, report};

pub(super) fn run(arguments: &EvaluateArguments) -> Result<(), Failure> {
    match arguments.epsilon {
        None => {
            let model = read_model(&arguments.model)?;
            let evaluation = evaluate_public(&arguments.data, &model)?;
            if arguments.json {
                return files::print_json(&report::evaluation_json(&evaluation));
            }
            files::print(&report::evaluation(&evaluation))
        }
        Some(epsilon) => evaluate_private(arguments, epsilon),
    }
}

/// Exact figures; rows without a usable label are left out, and there must be others.
pub(super) fn evaluate_public(data: &Path, model: &Model) -> Result<Evaluation, Failure> {
    let need = Need::FeaturesAndTargetOfPublicRows;
    let source = TableSource::open(data, &model.schema, need).map_err(Failure::of_a_models_table)?;
    let mut scored = Vec::new();
    let make = |columns: &RawColumns, label: Label, made: &mut Vec<ScoredRow>| {
        made.extend(label.number().map(|label| ScoredRow::of(model, columns, label)));
    };
    for_each_made(source, &model.schema, 1, make, |made| {
        scored.extend(made);
        Ok(())
    })?;
    let evaluation = public::evaluate_scored(model.task, scored);
    if evaluation.n == Some(0) {
        return Err(Failure::Data(format!(
            "{}: no model can be measured on these rows: no row has a usable target; compare the spellings of its values \
             with the schema in the model",
            data.display()
        )));
    }
    Ok(evaluation)
}

fn evaluate_private(arguments: &EvaluateArguments, epsilon: Epsilon) -> Result<(), Failure> {
    let place = LedgerPlace::of(arguments.ledger.as_deref(), "--data", &arguments.data)?;
    let mut model = read_model(&arguments.model)?;
    if !arguments.data.exists() {
        open_private(&arguments.data, &model.schema)?;
    }
    let (ledger, account) = match &arguments.schema {
        Some(schema) => {
            model.schema = of_owner(&model.schema, schema)?;
            let ledger = place.existing(&model.schema.relation())?;
            let account = ledger.as_ref().map(LedgerFile::account).transpose()?;
            (ledger, account)
        }
        None => {
            let relation = model.schema.relation();
            if relation.adjacency == Adjacency::Party {
                return Err(without_price(&relation));
            }
            let ledger = place.open(&relation).map_err(|failure| failure.with_remedy(OF_MODEL))?;
            let account = ledger.account()?;
            is_owners_word(&model.schema, &account, ledger.path())?;
            (Some(ledger), Some(account))
        }
    };
    let schema = &model.schema;
    // The sums of an evaluation have a handful of coordinates, and need no more memory than reading.
    let storage = Storage::checked(&arguments.storage, schema, [])?;
    // Nobody vouches for a model file: a delta by which little is protected has to be said by the caller.
    let certified = model.certificate.as_ref().map(|certificate| certificate.delta);
    let certified = certified.filter(|delta| !report::is_large(*delta));
    let budget_delta = account.as_ref().and_then(|account| account.budget).map(|budget| budget.delta);
    let delta = arguments.delta.or(budget_delta).or(certified).ok_or_else(|| {
        Failure::Usage(
            "neither ledger nor model states a delta, or only one of 1/1000 or more: give one with --delta".to_owned(),
        )
    })?;
    let plan = plan(schema, PrivacyClaim::new(schema.relation(), epsilon, delta))?;
    let mut request = plan.request(&data_name(&arguments.data), schema);
    "evaluate".clone_into(&mut request.purpose);
    // Before the file is opened: read by a model's [table], its first row could be a header, and messages name columns.
    if let Some(account) = &account {
        account.may_admit(&schema.relation(), &request)?;
    }
    let source = open_private(&arguments.data, schema)?;
    let rows = StoredRows::read(source, schema, &storage)?;
    let mut ledger = place.or_beside(ledger, schema.relation())?;

    let encoding = Arc::new(model.encoding());
    rows.prepare(&encoding)?;
    interrupt::may_pay(ledger.path());
    let mut session = Session::open(rows.engine(), &mut ledger, schema.relation())?;
    let grants = session.pay(&request)?;
    let price = request.price_up(&plan.claim.relation).expect("the ledger admits finite prices only");
    let evaluation = private::evaluate(&mut session, grants, &plan, schema, &encoding, &model.weights(&encoding))?;
    drop(session);

    // The figures are paid for: whatever happens to the ledger or to stdout from here on, they are shown.
    let account = ledger.account();
    if arguments.json {
        let mut document = report::evaluation_json(&evaluation);
        document["privacy"] = json!({
            "relation": plan.claim.relation.to_string(),
            "epsilon": epsilon,
            "delta": delta,
            "mu": price.mu_up(),
            "public": plan.public,
        });
        document["ledger"] =
            account.map_or(serde_json::Value::Null, |account| report::account_json(ledger.path(), &account, delta));
        return files::print_or_rescue(&format!("{document:#}\n"));
    }
    let account =
        account.map_or_else(|error| format!("{error}\n"), |account| report::account(ledger.path(), &account, delta));
    let cut = match evaluation.log_loss {
        Some(_) => format!("In the log loss, the loss of a row counts as {} at most.\n", private::loss_cap(schema)),
        None => String::new(),
    };
    let (relation, rows, public) = (&plan.claim.relation, schema.privacy().rows, &plan.public);
    let claim = report::Claim { relation, epsilon, delta, mu: price.mu_up(), pure: None, rows, public };
    files::print_or_rescue(&format!("{}\n{cut}{}{account}", report::evaluation(&evaluation), claim.text()))
}

/// The model's schema for the rows of an owner, whose own says who is protected and how the table is read.
fn of_owner(schema: &Schema, owner: &Path) -> Result<Schema, Failure> {
    let owners = read_schema(owner)?;
    if owners.relation().adjacency == Adjacency::Label && owners.target() != schema.target() {
        return Err(Failure::Usage(format!(
            "{}: under label adjacency features are public, and the target of this schema is not the model's: columns, classes or bounds \
             differ",
            owner.display()
        )));
    }
    schema.in_table_of(&owners).map_err(|problems| {
        Failure::Usage(format!("{}: [privacy] and [table] do not go with the model: {problems}", owner.display()))
    })
}

/// What to do where the model's word about the rows is not enough.
const OF_MODEL: &str = "the schema is the model's here: give the schema of these rows with --schema";

/// Refuses a schema that came with the model and that nothing earlier of the ledger bears out. By another `[table]` a row could be many, another
/// column the unit's, or the first row a header, which messages tell.
fn is_owners_word(schema: &Schema, account: &Account, ledger: &Path) -> Result<(), Failure> {
    if !account.tables.contains(&schema.table().as_read()) {
        return Err(Failure::Refused(format!(
            "{}: no earlier request of this ledger says that the table is read as the model's schema reads it; {OF_MODEL}",
            ledger.display()
        )));
    }
    account.check_promised(&schema.relation()).map_err(|refusal| Failure::Refused(format!("{refusal}; {OF_MODEL}")))
}

/// The questions. There is no other method to choose.
fn plan(schema: &Schema, claim: PrivacyClaim) -> Result<Plan, Failure> {
    private::plan(schema, claim).map_err(|error| {
        let PlanError::Adjacency { relation, .. } = error else { return Failure::usage(error) };
        without_price(&relation)
    })
}

fn without_price(relation: &Relation) -> Failure {
    Failure::Usage(format!(
        "--epsilon has no price under {relation}, and so no figures can be bought; give a schema of these rows that says who of them is \
         protected, with --schema, or measure the model on rows that need no protection, with --public"
    ))
}
