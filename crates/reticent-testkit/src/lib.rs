//! Tools for tests, and for tests only: this crate turns on `danger` in `reticent-core`.

pub mod generate;
pub mod memory_ledger;

pub use reticent_core::danger::{reveal, seeded_session};
