//! Integration tests of the crate that sees rows.

mod draft;
mod kernel;
mod label_measure;
mod ledger_file;
mod memory_engine;
mod minimum;
mod party_votes;
mod source;
mod spilled_engine;
