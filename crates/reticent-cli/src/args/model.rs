//! The words of what is done with a model: rows are scored, it is measured, it is printed.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use reticent_core::units::{Delta, Epsilon};

use super::storage::StorageArguments;

#[derive(Args)]
#[command(after_help = "\
Examples:
  reticent predict --model model.json --data new.csv --out scored.parquet
  reticent predict --model model.json --data new.csv --out - | head")]
pub(crate) struct PredictArguments {
    /// Model file
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Table with the model's features; the target column may be absent
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Where the predictions go: Parquet if the name ends in .parquet, else CSV, not compressed; - for CSV to stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Args)]
// Both ways are named when neither is chosen: whoever has private rows must not be led to declare them public.
#[command(group = ArgGroup::new("protection").args(["epsilon", "public"]).required(true))]
#[command(after_help = "\
Examples:
  reticent evaluate --model model.json --data open-test-set.csv --public --json
  reticent evaluate --model model.json --data patients-2.csv --schema patients.toml \\
      --epsilon 0.2 --ledger ward.ledger")]
pub(crate) struct EvaluateArguments {
    /// Model file
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Table with the model's features and its target
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Declare that the rows need no protection: exact figures, nothing charged
    #[arg(long, conflicts_with_all = ["delta", "ledger", "memory"])]
    pub(crate) public: bool,
    /// Protect the rows with this privacy loss bound: noisy figures, charged to the ledger
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) epsilon: Option<Epsilon>,
    /// Failure probability; default: the ledger's, else the model's
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) delta: Option<Delta>,
    /// Schema of these rows: who is protected, and how the table is read, is its word and not the model's. Needed with --epsilon unless an earlier
    /// request of the ledger read the table as the model's schema does
    #[arg(long, value_name = "FILE", requires = "epsilon")]
    pub(crate) schema: Option<PathBuf>,
    /// Ledger to charge; default: the one beside the data file, made if it is absent and there is a --schema
    #[arg(long, value_name = "LEDGER")]
    pub(crate) ledger: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// Model file
    pub(crate) model: PathBuf,
    /// Print model and certificate as JSON, as they are kept, once they are checked
    #[arg(long)]
    pub(crate) json: bool,
}
