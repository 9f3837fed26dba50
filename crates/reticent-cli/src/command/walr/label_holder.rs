//! The side that has labels and answers: one noisy release, paid from its own ledger and kept there.

use reticent_core::label_query::LabelRelease;
use reticent_core::ledger::LedgerStore;
use reticent_core::schema::TargetKind;
use reticent_curator::label_measure::{self, LabelTerms};
use serde_json::json;

use super::super::{data_name, ledger_place, read_schema};
use super::{digits_of_range, privacy_json, privacy_text, read_weights, unmatched_json, unmatched_text};
use crate::args::WalrMeasureArguments;
use crate::failure::Failure;
use crate::files::OutputFile;
use crate::{files, interrupt, progress, report};

pub(super) fn measure(arguments: &WalrMeasureArguments) -> Result<(), Failure> {
    files::refuse_other_format(&arguments.out, "releases", &[".json"])?;
    let inputs = [&arguments.weights, &arguments.labels, &arguments.schema, &arguments.ledger].map(AsRef::as_ref);
    let out = OutputFile::create_beside(&arguments.out, &inputs)?;
    let schema = read_schema(&arguments.schema)?;
    // Columns are found by their names without the blanks around them.
    if schema.target().column.trim_ascii() == arguments.id.trim_ascii() {
        return Err(Failure::Usage(format!(
            "--id {}: this column is the target; name the column of the event ids",
            arguments.id
        )));
    }
    let list = read_weights(&arguments.weights)?;
    let mut ledger = ledger_place::open_for(&arguments.ledger, &schema.relation())?;
    let terms = LabelTerms {
        schema: &schema,
        id_column: &arguments.id,
        unmatched: arguments.unmatched.as_deref(),
        epsilon: arguments.epsilon,
        delta: arguments.delta,
        data: &data_name(&arguments.labels),
    };
    interrupt::may_pay(ledger.path());
    let answer = progress::while_reading(0, |progress| {
        label_measure::measure(&list, &arguments.labels, &terms, &mut ledger, progress)
    })?;
    out.write_and_finish(&answer.text).map_err(|failure| {
        failure.with_remedy(
            "the answer is paid for and kept in the ledger: the same command gives it again and charges nothing",
        )
    })?;

    let release: LabelRelease = serde_json::from_str(&answer.text).map_err(|error| {
        Failure::InputOutput(format!("{}: a kept answer is damaged: {error}", arguments.ledger.display()))
    })?;
    let unprinted = |failure: Failure| {
        failure.with_remedy(&format!("the answer is paid for, and complete in {}", arguments.out.display()))
    };
    let account = ledger.account().map_err(|error| unprinted(error.into()))?;
    if arguments.json {
        let document = json!({
            "release": report::path_json(&arguments.out),
            "repeated": answer.repeated,
            "privacy": privacy_json(&release),
            "read_range": release.read_range(),
            "unmatched": unmatched_json(&release),
            "ledger": report::account_json(ledger.path(), &account, arguments.delta),
        });
        return files::print_json(&document).map_err(unprinted);
    }
    let read = match (release.read_range(), &release.target) {
        (Some((from, to)), _) => {
            let digits = digits_of_range(from, to);
            format!(
                "Labels were read from {from:.digits$} to {to:.digits$}, where nearly all seem to lie; those beyond count as the border\n"
            )
        }
        (None, TargetKind::Bounds { .. }) => "Labels were read in all of their bounds\n".to_owned(),
        (None, TargetKind::Classes(_)) => String::new(),
    };
    let unmatched =
        format!("Ids without a usable label count as {}; --unmatched names another label\n", unmatched_text(&release)?);
    let repeated = if answer.repeated {
        "The same question was answered before: the same answer, nothing charged. It does not change with the labels, the table or \
         --id: grant clearly more or less epsilon for a new one.\n"
    } else {
        ""
    };
    files::print(&format!(
        "{repeated}{}{read}{unmatched}Release: {}\n\n{}",
        privacy_text(&release),
        report::path_text(&arguments.out),
        report::account(ledger.path(), &account, arguments.delta)
    ))
    .map_err(unprinted)
}
