//! Inputs that the fuzzer started from or found (`fuzz/corpus`), given to the commands that read such files: a message or an
//! answer, and never a defect.

use std::fs;
use std::path::Path;

use crate::support::Folder;

/// Runs commands on every kept input of a kind, as the file `name`; [`Folder::run`] refuses defects and signals.
fn run_on_all(kind: &str, name: &str, skipped: usize, commands: &[&str]) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(kind);
    let entries = fs::read_dir(&corpus).unwrap_or_else(|error| panic!("{}: {error}", corpus.display()));
    let mut inputs: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    inputs.sort();
    assert!(inputs.len() >= 3, "{} has no inputs", corpus.display());
    let folder = Folder::with_table();
    for input in inputs {
        let bytes = fs::read(&input).expect("readable");
        // The first byte of some is a choice.
        folder.write(name, bytes.get(skipped..).unwrap_or_default());
        for command in commands {
            let outcome = folder.run(command);
            assert!([0, 2, 3, 4, 5].contains(&outcome.code), "{}: {command}: {}", input.display(), outcome.stderr);
        }
    }
}

#[test]
fn kept_models_are_shown_or_refused() {
    run_on_all(
        "model",
        "model.json",
        0,
        &["show model.json", "predict --model model.json --data table.csv --out p.csv"],
    );
}

#[test]
fn kept_ledgers_are_shown_or_refused() {
    run_on_all("ledger", "l.ledger", 0, &["ledger show l.ledger --delta 1e-6", "ledger export l.ledger"]);
}

#[test]
fn kept_schemas_are_checked() {
    run_on_all("schema", "schema.toml", 0, &["schema check schema.toml", "schema check schema.toml --json"]);
}

#[test]
fn kept_tables_are_drafted_or_refused() {
    for kind in ["csv", "parquet", "libsvm"] {
        run_on_all(kind, "table.csv", 1, &["schema draft table.csv", "schema draft table.csv --public-data table.csv"]);
    }
}
