//! The program `reticent` as its users meet it: flags in, files, messages and exit codes out.

mod adult;
mod audit;
mod bad_input;
mod bad_request;
mod bombs;
mod demo;
mod evaluate;
mod fit;
mod kept_inputs;
mod leaks;
mod ledger;
mod memory;
mod model_file;
mod output;
mod party;
mod plan;
mod predict;
mod public_data;
mod schema;
mod sparse;
mod support;
mod terminal;
mod walr;
