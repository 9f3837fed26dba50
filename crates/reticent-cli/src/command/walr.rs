//! `reticent walr`: regression on labels that another organisation holds. Files go back and forth; no command uses a network.

mod feature_holder;
mod label_holder;

use std::path::Path;

use reticent_core::label_query::{LabelRelease, NOT_PROTECTED, UnmatchedLabel, WeightList};
use reticent_core::ledger::six_decimals_up;
use reticent_core::schema::TargetKind;
use reticent_curator::weights_file::{self, WeightsFileError};
use serde_json::json;

use crate::args::WalrCommand;
use crate::failure::Failure;
use crate::{progress, report};

pub(super) fn run(command: &WalrCommand) -> Result<(), Failure> {
    match command {
        WalrCommand::Prepare(arguments) => feature_holder::prepare(arguments),
        WalrCommand::Measure(arguments) => label_holder::measure(arguments),
        WalrCommand::Fit(arguments) => feature_holder::fit(arguments),
        WalrCommand::PrepareEvaluation(arguments) => feature_holder::prepare_evaluation(arguments),
        WalrCommand::Evaluate(arguments) => feature_holder::evaluate(arguments),
    }
}

fn read_weights(path: &Path) -> Result<WeightList, Failure> {
    let bytes = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    progress::while_reading(bytes, |progress| weights_file::read_weights(path, progress)).map_err(|error| {
        if let WeightsFileError::Source(error) = error {
            return error.into();
        }
        let message = format!("{}: {error}", path.display());
        if error.is_io() { Failure::InputOutput(message) } else { Failure::Data(message) }
    })
}

fn privacy_text(release: &LabelRelease) -> String {
    format!(
        "Privacy: epsilon {} at delta {:e} (mu {:.6})\n{}Protects: {}\nNot protected: {NOT_PROTECTED}\n",
        release.epsilon,
        release.delta.get(),
        six_decimals_up(mu_of(release)),
        report::weak_claim(release.epsilon, release.delta, None),
        report::printable(&release.relation.to_string())
    )
}

fn privacy_json(release: &LabelRelease) -> serde_json::Value {
    json!({
        "relation": release.relation.to_string(),
        "epsilon": release.epsilon,
        "delta": release.delta,
        "mu": mu_of(release),
        "not_protected": NOT_PROTECTED,
    })
}

/// What rows without a usable label are taken for.
fn unmatched_text(release: &LabelRelease) -> Result<String, Failure> {
    let label = release.unmatched_label().map_err(|error| Failure::Data(error.to_string()))?;
    Ok(match label {
        UnmatchedLabel::Class(name) => format!("class {name:?}"),
        UnmatchedLabel::Number(number) => {
            let TargetKind::Bounds { low, high } = release.target else { unreachable!("numbers have bounds") };
            let (from, to) = release.read_range().unwrap_or((low, high));
            format!("{number:.*}", digits_of_range(from, to))
        }
    })
}

/// The same for programs.
fn unmatched_json(release: &LabelRelease) -> serde_json::Value {
    match release.unmatched_label() {
        Ok(UnmatchedLabel::Class(name)) => json!(name),
        Ok(UnmatchedLabel::Number(number)) => json!(number),
        Err(_) => serde_json::Value::Null,
    }
}

/// Decimals for a hundredth of a range: as much as anybody reads.
fn digits_of_range(from: f64, to: f64) -> usize {
    (2.0 - (to - from).log10().floor()).clamp(0.0, 12.0) as usize
}

fn mu_of(release: &LabelRelease) -> f64 {
    release.planned.price_up(&release.relation).map_or(f64::NAN, |price| price.mu_up())
}
