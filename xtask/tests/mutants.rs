//! The list of mutants cannot rot: every edit still fits, exactly once.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_mutant_still_fits_its_source_exactly_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository");
    let text = fs::read_to_string(root.join("xtask/mutants.toml")).expect("the list");
    let table: toml::Table = text.parse().expect("TOML");
    let mutants = table["mutant"].as_array().expect("a list");
    let mut names = BTreeSet::new();
    let mut edits = 0;
    for mutant in mutants {
        let word = |key: &str| mutant.get(key).and_then(toml::Value::as_str);
        let name = word("name").expect("every mutant has a name");
        assert!(names.insert(name), "{name} is there twice");
        assert!(["classic", "review", "own"].contains(&word("idea").expect("where it comes from")), "{name}");
        if let Some(because) = word("because") {
            assert!(because.len() > 20 && word("file").is_none(), "{name} says why, or makes an edit");
            continue;
        }
        let (file, old, new) = (word("file"), word("old"), word("new"));
        let (Some(file), Some(old), Some(new)) = (file, old, new) else { panic!("{name} is no whole edit") };
        let source = fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{name}: {file}: {error}"));
        assert_eq!(source.matches(old).count(), 1, "{name} must fit {file} exactly once");
        assert_ne!(old, new, "{name}");
        let killers = mutant["killers"].as_array().expect("where to look first");
        assert!(!killers.is_empty(), "{name} names no test");
        for killer in killers {
            let mut words = killer.as_str().expect("text").split(' ');
            assert!(["core", "curator", "fit", "xtask"].contains(&words.next().expect("a crate")), "{name}");
            assert!(
                ["lib", "it", "stat", "replay", "faults", "tidy"].contains(&words.next().expect("a binary")),
                "{name}"
            );
        }
        edits += 1;
    }
    assert!(edits >= 70, "the list was read: {edits}");
}
