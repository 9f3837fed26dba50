//! Tools for tests, and for tests only: this crate turns on `danger` in `reticent-core`.
//!
//! ```text
//!   raw_table ─▶ two neighbouring tables as text ─▶ (an engine each) ─▶ replay: same control flow, same outputs from the
//!                                                                       same releases, no sum past its sensitivity
//! ```

pub mod generate;
pub mod memory_ledger;
pub mod raw_table;
pub mod replay;

pub use reticent_core::danger::{SharedTape, Step, Tape, disclosure, hold, reveal, seeded_session, taped_session};
