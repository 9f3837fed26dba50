//! The words of ledgers.

use std::path::PathBuf;

use clap::Subcommand;
use reticent_core::adjacency::Relation;
use reticent_core::units::{Delta, Epsilon};

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
