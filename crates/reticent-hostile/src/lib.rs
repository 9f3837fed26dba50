//! What is done with a hostile file of each kind: it is read as the commands read it, and what was read is used.
//!
//! ```text
//!   bytes ─▶ target ─▶ an error, or a value that is used as a command would      a panic, or two answers that differ: a defect
//! ```
//! The fuzzer (`fuzz/`, `cargo xtask fuzz`) runs these functions on what it makes up, and the tests of this crate on the inputs
//! that are kept in `fuzz/corpus`. Nothing here is seeded or revealed: it is the code that ships, with assertions on.

mod csv;
mod ledger;
mod libsvm;
mod model;
mod parquet;
mod releases;
mod schema;
mod table;
mod used_model;
mod votes;
mod weights;

/// A kind of file and what is done with one.
pub struct Target {
    /// Name of the kind, of its fuzz target and of its folder of kept inputs.
    pub name: &'static str,
    /// Reads and uses a file. Panics where the code is wrong.
    pub run: fn(&[u8]),
}

/// All kinds.
pub const TARGETS: [Target; 9] = [
    Target { name: "csv", run: csv::run },
    Target { name: "parquet", run: parquet::run },
    Target { name: "libsvm", run: libsvm::run },
    Target { name: "schema", run: schema::run },
    Target { name: "model", run: model::run },
    Target { name: "votes", run: votes::run },
    Target { name: "weights", run: weights::run },
    Target { name: "releases", run: releases::run },
    Target { name: "ledger", run: ledger::run },
];

/// Reads and uses `input` as the kind of file that `name` says.
///
/// # Panics
/// When there is no such kind, and where the code is wrong.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a kind of TARGETS");
    (target.run)(input);
}
