//! The command line's words. Names are stable: scripts rely on them.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};
use reticent_core::adjacency::Relation;
use reticent_core::units::{Delta, Epsilon, Mu};
use reticent_curator::memory_ceiling::MemoryCeiling;

use crate::combiner_choice::CombinerChoice;
use crate::method_choice::MethodChoice;
use crate::solver_choice::SolverChoice;

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
  0 done   2 usage: flags, schema or model file   3 data file   4 refused by the ledger   5 input/output   70 a defect   130 interrupted";

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

/// Where the rows lie while they are worked on.
#[derive(Args)]
pub(crate) struct StorageArguments {
    /// Memory ceiling, for example 1GiB: rows that do not fit are kept in encrypted scratch files
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<MemoryCeiling>,
    /// Folder on a disk for the scratch files, which have no names and end with the command; default: TMPDIR, else /var/tmp
    #[arg(long, value_name = "DIR", requires = "memory")]
    pub(crate) scratch: Option<PathBuf>,
    /// Do not encrypt the scratch files: for a disk that is encrypted itself
    #[arg(long, requires = "memory")]
    pub(crate) scratch_unencrypted: bool,
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
  reticent evaluate --model model.json --data patients-2.csv --epsilon 0.2 --ledger ward.ledger")]
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
    /// Ledger to charge; default: one beside the data file
    #[arg(long, value_name = "LEDGER")]
    pub(crate) ledger: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) storage: StorageArguments,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

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

#[derive(Args)]
pub(crate) struct ShowArguments {
    /// Model file
    pub(crate) model: PathBuf,
    /// Print model and certificate as JSON, as they are kept, once they are checked
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum LedgerCommand {
    /// Make a ledger with a limit, or set the limit of one that has none yet
    #[command(after_help = "\
Examples:
  reticent ledger init ward.ledger --epsilon 2 --delta 1e-6
  reticent ledger init ward.ledger --epsilon 2 --delta 1e-6 \\
      --promise row:add-remove --promise row:replace")]
    Init {
        /// Ledger file
        ledger: PathBuf,
        /// Total epsilon that may ever be spent
        #[arg(long, allow_negative_numbers = true)]
        epsilon: Epsilon,
        /// Delta at which it is stated
        #[arg(long, allow_negative_numbers = true)]
        delta: Delta,
        /// Relation that is protected, UNIT:ADJACENCY; may be given several times [default: row:add-remove]
        #[arg(long, value_name = "RELATION")]
        promise: Vec<Relation>,
    },
    /// Print budget, spent, left and every entry
    Show {
        /// Ledger file
        ledger: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
        /// Delta at which epsilon is stated [default: that of the limit, if there is one]
        #[arg(long, allow_negative_numbers = true)]
        delta: Option<Delta>,
    },
    /// Print every entry with all its questions, as JSON
    Export {
        /// Ledger file
        ledger: PathBuf,
    },
    /// Check every seal of a ledger, and hold those of certificates against it
    #[command(after_help = "\
Example:
  reticent ledger verify ward.ledger --model model.json --model older.json")]
    Verify {
        /// Ledger file
        ledger: PathBuf,
        /// Model whose certificate names an entry of this ledger; may be given several times
        #[arg(long, value_name = "MODEL")]
        model: Vec<PathBuf>,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Subcommand)]
pub(crate) enum SchemaCommand {
    /// Write a schema to complete, from column names and types; values are read only from a file declared public
    #[command(after_help = "\
Examples:
  reticent schema draft patients.csv > patients.toml
  reticent schema draft patients.csv --target died \\
      --public-data published-sample.csv > patients.toml")]
    Draft {
        /// Table; only its column names (and types, for Parquet) are read, and nothing of it with --public-data
        data: PathBuf,
        /// Target column
        #[arg(long)]
        target: Option<String>,
        /// Another file, declared public, to draft from instead: bounds, categories and classes are filled in from its values
        #[arg(long, value_name = "FILE")]
        public_data: Option<PathBuf>,
        /// The first line of the CSV file is a header, even if it looks like a row
        #[arg(long, conflicts_with = "no_header")]
        header: bool,
        /// The CSV file has no header line
        #[arg(long)]
        no_header: bool,
        /// Character between two values of a CSV file [default: the usual one that occurs most often in the first line]
        #[arg(long, value_parser = ascii_character)]
        delimiter: Option<char>,
    },
    /// List every problem of a schema with its line
    Check {
        /// Schema file
        schema: PathBuf,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
}

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

#[derive(Args)]
pub(crate) struct WalrFitArguments {
    /// Table that the weights were made of
    #[arg(long, value_name = "FILE")]
    pub(crate) data: PathBuf,
    /// Schema that the weights were made with
    #[arg(long, value_name = "FILE")]
    pub(crate) schema: PathBuf,
    /// Column of the event ids
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: String,
    /// Weights file that was sent
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) weights: PathBuf,
    /// The label holder's answer
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: PathBuf,
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
    /// Column of the event ids
    #[arg(long, value_name = "COLUMN")]
    pub(crate) id: String,
    /// Weights file that was sent
    #[arg(long, value_name = "WEIGHTS")]
    pub(crate) weights: PathBuf,
    /// The label holder's answer
    #[arg(long, value_name = "RELEASE")]
    pub(crate) release: PathBuf,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
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

fn ascii_character(text: &str) -> Result<char, String> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(character), None) if character.is_ascii() => Ok(character),
        (Some('\\'), Some('t')) => Ok('\t'),
        _ => Err("a delimiter is one ASCII character".to_owned()),
    }
}
