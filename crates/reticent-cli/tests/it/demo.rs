//! `reticent demo`: the main job on the table that comes with the program.

use insta::assert_snapshot;

use crate::support::{Folder, Outcome, json, keys, number};

#[test]
fn the_demo_compares_private_non_private_and_base_rate() {
    let folder = Folder::new();
    let result = json(&folder.succeed("demo --epsilon 1 --keep demo --json"));
    assert_eq!(keys(&result), ["private", "non_private", "base_rate", "certificate", "ledger"]);
    let accuracy = |model: &str| number(&result[model]["accuracy"]);
    assert!(accuracy("private") > accuracy("base_rate") + 0.04, "{result:#}");
    assert!(accuracy("non_private") > 0.84, "{}", accuracy("non_private"));
    assert_eq!(result["private"]["n"], 16_281, "the official test file");
    // What is kept works as anybody's own files do.
    let figures = json(&folder.succeed("evaluate --model demo/model.json --data demo/adult-test.csv --public --json"));
    assert_eq!(figures, result["private"]);
    let ledger = folder.ledger("demo/adult-train.csv.ledger");
    assert_eq!(ledger["entries"].as_array().map(Vec::len), Some(1));
    folder.succeed("schema check demo/adult.toml");
}

#[test]
fn a_demo_without_a_temporary_folder_says_what_to_do() {
    let folder = Folder::new();
    let outcome = Outcome::of(folder.reticent().arg("demo").env("TMPDIR", "/nothere").output().expect("it starts"));
    assert_eq!(outcome.code, 5);
    assert_snapshot!(outcome.stderr, @"error: /nothere: making a temporary folder: entity not found; set TMPDIR to a folder that can be written, or name one with --keep");
}

#[test]
fn without_keep_nothing_is_left() {
    let folder = Folder::new();
    let before = folder.files();
    let text = folder.succeed("demo");
    assert_eq!(keys(&json(&folder.succeed("demo --json"))), ["private", "non_private", "base_rate", "certificate"]);
    assert!(folder.files() == before);
    for word in ["private", "non-private", "base rate", "Protects: row:add-remove", "Privacy: epsilon 1 at delta"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}
