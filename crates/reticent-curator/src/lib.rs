//! The part of Reticent that sees rows.
//!
//! ```text
//!   file ─▶ source (CSV, libsvm, Parquet, compressed) ─▶ coded table (u16) ─▶ memory engine ─▶ exact, opaque sums
//!                                                     │                       (i16 lattice, kernel)
//!                                                     └▶ spilled table, on the disk ─▶ spilled engine ─▶ the same sums
//!   ledger file (SQLite) ◀── charged by reticent_core::session before any noise is drawn
//! ```
//! With `reticent-core` this crate is the trusted part: a mistake here can cost privacy. What it hands out is either an opaque
//! sum, a public fact (a header), or rows that their owner asked to be scored.

pub mod draft;
pub mod file_fingerprint;
pub mod source;

mod out_of_memory;

pub mod kernel;
pub mod lattice;
pub mod memory_engine;
mod memory_lattice;
mod minimiser;
pub mod party_votes;
pub mod running_sum;
pub mod table;
mod whole_rows;

pub mod memory_ceiling;
pub mod external_sort;
mod scratch_blocks;
pub mod scratch_file;
pub mod spilled_engine;
mod spilled_lattice;
pub mod spilled_table;
mod surplus_rows;

pub mod identified_rows;
pub mod label_engine;
pub mod label_measure;
pub mod weights_file;

pub mod ledger_file;
