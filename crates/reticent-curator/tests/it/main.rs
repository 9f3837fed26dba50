//! Integration tests of the crate that sees rows.

mod coded_rows;
mod compact_rows;
mod draft;
mod kernel;
mod label_measure;
mod ledger_file;
mod libsvm;
mod memory_engine;
mod minimum;
mod party_votes;
mod source;
mod spilled_engine;
