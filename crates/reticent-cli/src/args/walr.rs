//! The words of a regression on labels that another organisation holds.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reticent_core::units::{Delta, Epsilon};

use crate::solver_choice::SolverChoice;

/// The feature holder runs `prepare`, `fit`, `prepare-evaluation` and `evaluate`; the label holder runs `measure`.
#[derive(Subcommand)]
pub(crate) enum WalrCommand {
    /// Feature holder: make the weights file that goes to the label holder
    #[command(after_help = "\
Example:
  reticent walr prepare --data features.csv --schema features.toml --id event --out weights.csv")]
    Prepare(WalrPrepareArguments),
    /// Label holder: check a weights file, charge the ledger, answer with noise; an equal question is answered as before
    #[command(after_help = "\
Example:
  reticent ledger init labels.ledger --epsilon 2 --delta 1e-7 --promise row:label
  reticent walr measure --weights weights.csv --labels labels.csv --schema labels.toml --id event \\
      --epsilon 1 --delta 1e-7 --ledger labels.ledger --out release.json")]
    Measure(WalrMeasureArguments),
    /// Feature holder: fit a model to the answer
    #[command(after_help = "\
Example:
  reticent walr fit --data features.csv --schema features.toml --id event --weights weights.csv \\
      --release release.json --out model.json")]
    Fit(WalrFitArguments),
    /// Feature holder: make a weights file whose answer tells how good a model is
    PrepareEvaluation(WalrPrepareEvaluationArguments),
    /// Feature holder: print log loss, accuracy, AUC and calibration from the answer
    Evaluate(WalrEvaluateArguments),
}

#[derive(Args)]
pub(crate) struct WalrPrepareArguments {
    /// Table with the features and an event id; a target column may be absent
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Schema of the features and of the agreed target, with adjacency = "label"
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Column of the event ids
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: String,
    /// Epsilon that you expect to be granted: it only shapes the weights, the label holder decides
    #[arg(long, default_value = "1", allow_negative_numbers = true)]
    pub(crate) epsilon: Epsilon,
    /// Delta of the wish
    #[arg(long, default_value = "1e-6", allow_negative_numbers = true)]
    pub(crate) delta: Delta,
    #[command(flatten)]
    pub(crate) solver: SolverChoice<false>,
    /// Where the weights go: CSV
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct WalrMeasureArguments {
    /// Weights file; it is not trusted
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) weights: PathBuf,
    /// Table with event ids and labels
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: PathBuf,
    /// Schema of the labels: target, privacy unit and cap, adjacency = "label", and an empty features section
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Column of the event ids
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: String,
    /// Label of ids that are not in the table [default: the first class; of numbers, the middle of where they lie]
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    pub(crate) unmatched: Option<String>,
    /// Privacy loss bound of this answer
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) epsilon: Epsilon,
    /// Failure probability
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) delta: Delta,
    /// The one ledger of these labels, for all their versions and all who ask; `ledger init --promise UNIT:label` makes one
    #[arg(long, value_name = "LEDGER")]
    pub(crate) ledger: PathBuf,
    /// Where the answer goes
    #[arg(long, value_name = "RELEASE")]
    pub(crate) out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A question and its answer.
#[derive(Args)]
pub(crate) struct AnsweredArguments {
    /// Column of the event ids
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: String,
    /// Weights file that was sent
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) weights: PathBuf,
    /// The label holder's answer
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: PathBuf,
}

#[derive(Args)]
pub(crate) struct WalrFitArguments {
    /// Table that the weights were made of
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Schema that the weights were made with
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    #[command(flatten)]
    pub(crate) answered: AnsweredArguments,
    /// A public model: centre of the prior, or start of a descent
    #[arg(long, value_name = "MODEL")]
    pub(crate) init: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) solver: SolverChoice<true>,
    /// Where the model goes
    #[arg(long, value_name = "MODEL")]
    pub(crate) out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct WalrPrepareEvaluationArguments {
    /// Model file
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Table with the model's features and an event id
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Column of the event ids
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: String,
    /// Where the weights go: CSV
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct WalrEvaluateArguments {
    /// Model file
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Table that the weights were made of
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) answered: AnsweredArguments,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
