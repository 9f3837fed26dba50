//! The words of a fit, private or public, and of its plan.

use std::path::PathBuf;

use clap::Args;
use reticent_core::units::{Delta, Epsilon};

use super::storage::StorageArguments;
use crate::method_choice::MethodChoice;

/// What a private fit asks for.
#[derive(Args)]
pub(crate) struct FitRequest {
    /// Schema (TOML): bounds, categories, privacy unit, adjacency
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Privacy loss bound, above 0
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) epsilon: Epsilon,
    /// Failure probability, between 0 and 1; common choice: 1 / (a public round figure for the number of rows)²
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) delta: Delta,
    /// Use a public model: as start, prior mean or centre of the penalty, as the method says
    #[arg(long, value_name = "MODEL")]
    pub(crate) init: Option<PathBuf>,
    /// Fit a public model to this table first and use it as with --init; its rows are declared public
    #[arg(long, value_name = "FILE", conflicts_with = "init")]
    pub(crate) public_data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) choice: MethodChoice,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  reticent fit --data patients.csv --schema patients.toml --epsilon 1 --delta 1e-6 --out model.json
  reticent fit --data patients.parquet --schema patients.toml --epsilon 0.5 --delta 1e-6 \\
      --ledger ward.ledger --out model.json --json
  reticent fit --data visits.csv.zst --schema visits.toml --epsilon 1 --delta 1e-6 \\
      --out model.json --memory 1GiB --scratch /data/tmp")]
pub(crate) struct FitArguments {
    /// Table: CSV or libsvm (plain, gzip, xz or zstd), or Parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    #[command(flatten)]
    pub(crate) request: FitRequest,
    /// Ledger to charge; default: one beside the data file, named after it with `.ledger`
    #[arg(long, value_name = "LEDGER")]
    pub(crate) ledger: Option<PathBuf>,
    /// Where the model goes
    #[arg(long, value_name = "MODEL")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  reticent fit-public --data published.csv --schema patients.toml --out public.json")]
pub(crate) struct FitPublicArguments {
    /// Table whose rows are declared public: nothing in it is protected
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Schema (TOML); its privacy section is not used
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Where the model goes; it is marked as not private
    #[arg(long, value_name = "MODEL")]
    pub(crate) out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  reticent plan --schema patients.toml --epsilon 1 --delta 1e-6")]
pub(crate) struct PlanArguments {
    /// Accepted so that a `fit` line can be reused; the file is not opened
    #[arg(long, value_name = "FILE")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) request: FitRequest,
    /// Accepted so that a `fit` line can be reused; the ledger is read, not charged
    #[arg(long, value_name = "LEDGER")]
    pub(crate) ledger: Option<PathBuf>,
    /// Accepted so that a `fit` line can be reused; nothing is written
    #[arg(long, value_name = "MODEL")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
