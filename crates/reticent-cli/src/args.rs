//! The command line's words. Names are stable: scripts rely on them.

mod audit;
mod fit;
mod ledger;
mod model;
mod party;
mod schema;
mod storage;
mod walr;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use reticent_core::units::Epsilon;

pub(crate) use self::audit::{AuditArguments, TrialArguments};
pub(crate) use self::fit::{FitArguments, FitPublicArguments, FitRequest, PlanArguments};
pub(crate) use self::ledger::LedgerCommand;
pub(crate) use self::model::{EvaluateArguments, PredictArguments, ShowArguments};
pub(crate) use self::party::{
    BallotArguments, BallotRequest, PartyAuditArguments, PartyCommand, PartyFitArguments, PartyPlanArguments,
    PartyRequest, VoteArguments,
};
pub(crate) use self::schema::SchemaCommand;
pub(crate) use self::storage::StorageArguments;
pub(crate) use self::walr::{
    AnsweredArguments, WalrCommand, WalrEvaluateArguments, WalrFitArguments, WalrMeasureArguments,
    WalrPrepareArguments, WalrPrepareEvaluationArguments,
};

/// Regression models from private tables, with a certificate of what they reveal.
#[derive(Parser)]
#[command(name = "reticent", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  reticent demo                                        see it work on a census table
  reticent schema draft patients.csv > patients.toml   start a schema; fill in the bounds
  reticent plan --schema patients.toml --epsilon 1 --delta 1e-6
  reticent fit --data patients.csv --schema patients.toml --epsilon 1 --delta 1e-6 --out model.json
  reticent show model.json

Exit codes:
  0 done   2 usage: flags, schema or model file   3 data file   4 refused by the ledger   5 input/output   70 a defect   129, 130, 143 interrupted";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Fit a private model to a table, charge the ledger, write model and certificate
    Fit(FitArguments),
    /// Fit a model without privacy to rows that are public: a yardstick, or, of many rows, a start for `fit --init`
    FitPublic(FitPublicArguments),
    /// Say what `fit` would ask, pay and expect, without reading a row
    Plan(PlanArguments),
    /// Score the rows of a table with a model
    Predict(PredictArguments),
    /// Measure a model on a table: exactly if its rows are public, by noisy counts if not
    Evaluate(EvaluateArguments),
    /// Print a model and its certificate for a person
    Show(ShowArguments),
    /// Regress on labels that another organisation holds: weights go out, a noisy answer comes back, by files
    #[command(subcommand)]
    Walr(WalrCommand),
    /// Keep the account of what a table has paid
    #[command(subcommand)]
    Ledger(LedgerCommand),
    /// Write and check schemas
    #[command(subcommand)]
    Schema(SchemaCommand),
    /// Learn from the votes of parties on public rows: no row and no model crosses
    #[command(subcommand)]
    Party(PartyCommand),
    /// Bound from below what a method reveals, by many fits of neighbouring synthetic tables
    ///
    /// That is tens of thousands of fits, and takes many minutes, with some methods much longer: on a terminal a bar tells how far it is. A small
    /// --runs makes the last part shorter, not the pilot before it.
    Audit(AuditArguments),
    /// Run the whole job on the census table that comes with the program
    Demo(DemoArguments),
}

impl Command {
    /// Whether it works on rows, with all threads. What a ledger says can be read where the system gives none.
    pub(crate) fn reads_rows(&self) -> bool {
        !matches!(self, Self::Ledger(_) | Self::Schema(_) | Self::Show(_) | Self::Plan(_))
    }
}

#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Privacy loss bound
    #[arg(long, default_value = "1", allow_negative_numbers = true)]
    pub(crate) epsilon: Epsilon,
    /// Keep table, schema, model and ledger in this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
