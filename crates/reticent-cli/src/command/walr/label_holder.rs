//! The side that has labels and answers: one noisy release, paid from its own ledger and kept there.

use reticent_core::label_query::LabelRelease;
use reticent_core::ledger::LedgerStore;
use reticent_core::schema::TargetKind;
use reticent_curator::label_measure::{self, LabelTerms};
use serde_json::json;

use super::super::{data_name, ledger_place, read_schema};
use super::{privacy_json, privacy_text, read_weights};
use crate::args::WalrMeasureArguments;
use crate::failure::Failure;
use crate::files::OutputFile;
use crate::{files, interrupt, progress, report};

pub(super) fn measure(arguments: &WalrMeasureArguments) -> Result<(), Failure> {
    let inputs = [&arguments.weights, &arguments.labels, &arguments.schema, &arguments.ledger].map(AsRef::as_ref);
    let out = OutputFile::create_beside(&arguments.out, &inputs)?;
    let schema = read_schema(&arguments.schema)?;
    // Columns are found by their names without the blanks around them.
    if schema.target().column.trim_ascii() == arguments.id.trim_ascii() {
        return Err(Failure::Usage(format!("--id {}: this column is the target", arguments.id)));
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
    // It is kept in the ledger: if it cannot be written, the same command gives it again without a charge.
    out.write_and_finish(&answer.text)?;

    let release: LabelRelease = serde_json::from_str(&answer.text).map_err(|error| {
        Failure::InputOutput(format!("{}: a kept answer is damaged: {error}", arguments.ledger.display()))
    })?;
    let account = ledger.account()?;
    if arguments.json {
        let document = json!({
            "release": arguments.out,
            "repeated": answer.repeated,
            "privacy": privacy_json(&release),
            "read_range": release.read_range(),
            "ledger": report::account_json(ledger.path(), &account, Some(arguments.delta)),
        });
        return files::print_json(&document);
    }
    let read = release.read_range().map_or_else(String::new, |(from, to)| {
        // A hundredth of the range is as much as anybody reads.
        let digits = (2.0 - (to - from).log10().floor()).clamp(0.0, 12.0) as usize;
        format!(
            "Labels were read from {from:.digits$} to {to:.digits$}, where nearly all seem to lie; those beyond count as the border\n"
        )
    });
    let unmatched = match (&arguments.unmatched, &schema.target().kind) {
        (Some(label), _) => format!("{label:?}"),
        (None, TargetKind::Classes(classes)) => format!("{:?}, the first class", classes[0].name),
        (None, TargetKind::Bounds { .. }) => "the middle of that range".to_owned(),
    };
    let unmatched = format!("Ids without a label count as {unmatched}; --unmatched names another label\n");
    let repeated =
        if answer.repeated { "The same question was answered before: the same answer, nothing charged.\n" } else { "" };
    files::print(&format!(
        "{repeated}{}{read}{unmatched}Release: {}\n\n{}",
        privacy_text(&release),
        arguments.out.display(),
        report::account(ledger.path(), &account, arguments.delta)
    ))
}
