//! The public part of Reticent: everything here works on declared facts and noisy releases, and never on a row.
//!
//! ```text
//!   schema, epsilon, delta ─▶ plan (pure) ─▶ method: asks a Session ─▶ model + certificate ─▶ report, evaluation
//! ```
//! A mistake in this crate costs accuracy, never privacy: it can only ask what the ledger has been charged for.

pub mod audit;
pub mod certificate;
pub mod column_scaling;
pub mod evaluate;
pub mod gram_release;
pub mod labels_elsewhere;
pub mod method;
mod minimum;
pub mod model;
pub mod options;
pub mod party;
pub mod plan;
pub mod prepared_fit;
pub mod public_fit;
pub mod raw_columns;
