//! Integration tests of the crate that sees rows.

mod draft;
mod ledger_file;
mod memory_engine;
mod minimum;
mod party_votes;
mod source;
