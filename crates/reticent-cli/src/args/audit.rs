//! The words of an audit, and of what it claims.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use reticent_core::units::{Delta, Epsilon, Mu};

use crate::method_choice::MethodChoice;

#[derive(Args)]
#[command(after_help = "\
No private table is read: the tables are made up, and the ledger is one in memory.

Examples:
  reticent audit --method gram --mu 1
  reticent audit --method noisy-gd --passes 20 --mu 1 --runs 20000 --plot audit.svg
  reticent audit --schema patients.toml --epsilon 2 --delta 1e-6

Exit code 70: the lower bound is above the claim.")]
pub(crate) struct AuditArguments {
    /// Schema whose fits are audited; default: two numbers and a category, with the target and adjacency that the method needs
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: Option<PathBuf>,
    /// Public model that the fits start from, as in `fit`; default: none, or one that is sure of a class, whichever shows more
    #[arg(long, value_name = "MODEL", requires = "schema")]
    pub(crate) init: Option<PathBuf>,
    /// Rows beside those of the unit that comes and goes
    #[arg(long, default_value_t = 1000, value_parser = rows)]
    pub(crate) rows: usize,
    #[command(flatten)]
    pub(crate) trial: TrialArguments,
    #[command(flatten)]
    pub(crate) choice: MethodChoice,
}

/// What is claimed, and how hard an audit tries to refute it.
#[derive(Args)]
#[command(group = ArgGroup::new("budget").args(["mu", "epsilon"]).required(true))]
pub(crate) struct TrialArguments {
    /// Budget of one fit as mu of Gaussian differential privacy; bounds are tightest near 1
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) mu: Option<Mu>,
    /// Budget of one fit as epsilon
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) epsilon: Option<Epsilon>,
    /// Failure probability of the claim
    #[arg(long, allow_negative_numbers = true, default_value = "1e-6")]
    pub(crate) delta: Delta,
    /// Fits of each neighbour that choose the test, and as many again that judge it
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) runs: u64,
    /// Probability with which the bound holds
    #[arg(long, default_value_t = 0.999, value_parser = confidence)]
    pub(crate) confidence: f64,
    /// Draw the claimed and the observed trade-off between false alarms and misses (SVG)
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn rows(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|rows| (1..=1_000_000).contains(rows)).ok_or_else(|| "must be 1 to 1000000".to_owned())
}

fn confidence(text: &str) -> Result<f64, String> {
    let between = |confidence: &f64| *confidence > 0.5 && *confidence < 1.0;
    text.parse().ok().filter(between).ok_or_else(|| "must be above 0.5 and below 1".to_owned())
}
