//! The words of parties: ballots, votes, and what combines them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use reticent_core::units::{Delta, Epsilon};

use super::audit::TrialArguments;
use crate::combiner_choice::CombinerChoice;

#[derive(Subcommand)]
pub(crate) enum PartyCommand {
    /// Write a votes file to fill in: for a party that votes with a classifier of its own
    #[command(after_help = "\
Example:
  reticent party ballot --schema study.toml --auxiliary public.csv --party north --out north.csv")]
    Ballot(BallotArguments),
    /// Train a simple classifier on a party's own rows and write its votes. NOT private by themselves: for the combiner only
    #[command(after_help = "\
Example:
  reticent party vote --schema study.toml --auxiliary public.csv --party north \\
      --data north-patients.csv --out north.csv")]
    Vote(VoteArguments),
    /// Say what `party fit` would ask, pay and expect, without reading a vote
    #[command(after_help = "\
Example:
  reticent party plan --schema study.toml --auxiliary public.csv --parties parties.txt \\
      --epsilon 1 --delta 1e-6")]
    Plan(PartyPlanArguments),
    /// Read the votes of all parties, charge the ledger, write model and certificate
    #[command(after_help = "\
Examples:
  reticent party fit --schema study.toml --auxiliary public.csv --parties parties.txt \\
      --votes votes --epsilon 1 --delta 1e-6 --out model.json
  reticent party fit --schema study.toml --auxiliary public.csv --parties parties.txt \\
      --votes votes --epsilon 1 --delta 1e-6 --combiner party-soft-labels --penalty 0.1 \\
      --out algorithm-2.json --json")]
    Fit(PartyFitArguments),
    /// Bound from below what combined votes reveal of one party, by many fits of made-up votes
    #[command(after_help = "\
No vote is read: votes are made up, on auxiliary rows that are made up or given, and the ledger is one in memory.

Examples:
  reticent party audit --mu 1
  reticent party audit --combiner party-averaging --mu 1 --runs 20000 --plot audit.svg
  reticent party audit --schema study.toml --auxiliary public.csv --others 20 \\
      --epsilon 2 --delta 1e-6

Exit code 70: the lower bound is above the claim.")]
    Audit(PartyAuditArguments),
}

/// What all parties vote on.
#[derive(Args)]
pub(crate) struct BallotRequest {
    /// Schema (TOML) with adjacency = "party": bounds, categories, classes
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// The public rows that are voted on, the same file for all; a target column is not looked at
    #[arg(long, value_name = "FILE")]
    pub(crate) auxiliary: PathBuf,
}

#[derive(Args)]
pub(crate) struct BallotArguments {
    #[command(flatten)]
    pub(crate) ballot: BallotRequest,
    /// Name of the party, as in the list of parties
    #[arg(long, value_name = "NAME")]
    pub(crate) party: String,
    /// Where the votes file goes
    #[arg(long, value_name = "VOTES")]
    pub(crate) out: PathBuf,
}

#[derive(Args)]
pub(crate) struct VoteArguments {
    #[command(flatten)]
    pub(crate) ballot: BallotRequest,
    /// Name of the party, as in the list of parties
    #[arg(long, value_name = "NAME")]
    pub(crate) party: String,
    /// The party's own rows, with the target
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Vote with probabilities instead of classes
    #[arg(long)]
    pub(crate) probabilities: bool,
    /// Where the votes file goes
    #[arg(long, value_name = "VOTES")]
    pub(crate) out: PathBuf,
}

/// What a combination of votes asks for.
#[derive(Args)]
pub(crate) struct PartyRequest {
    #[command(flatten)]
    pub(crate) ballot: BallotRequest,
    /// List of all parties, one name a line: public, and fixed before anybody votes
    #[arg(long, value_name = "LIST")]
    pub(crate) parties: PathBuf,
    /// Privacy loss bound, above 0
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) epsilon: Epsilon,
    /// Failure probability, between 0 and 1
    #[arg(long, allow_negative_numbers = true)]
    pub(crate) delta: Delta,
    #[command(flatten)]
    pub(crate) choice: CombinerChoice,
}

#[derive(Args)]
pub(crate) struct PartyPlanArguments {
    #[command(flatten)]
    pub(crate) request: PartyRequest,
    /// Print the plan as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct PartyFitArguments {
    #[command(flatten)]
    pub(crate) request: PartyRequest,
    /// Folder with one votes file a party, named PARTY.csv, and nothing else
    #[arg(long, value_name = "FOLDER")]
    pub(crate) votes: PathBuf,
    /// Ledger to charge; default: one beside the folder of votes, named after it with `.ledger`
    #[arg(long, value_name = "LEDGER")]
    pub(crate) ledger: Option<PathBuf>,
    /// Where the model goes
    #[arg(long, value_name = "MODEL")]
    pub(crate) out: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct PartyAuditArguments {
    /// Schema (TOML) with adjacency = "party"; default: two numbers, a category and two classes
    #[arg(long, value_name = "FILE", requires = "auxiliary")]
    pub(crate) schema: Option<PathBuf>,
    /// The public rows that are voted on; default: 64 rows that are made up
    #[arg(long, value_name = "FILE", requires = "schema")]
    pub(crate) auxiliary: Option<PathBuf>,
    /// Parties beside the one whose votes change
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub(crate) others: u16,
    #[command(flatten)]
    pub(crate) trial: TrialArguments,
    #[command(flatten)]
    pub(crate) choice: CombinerChoice,
}
