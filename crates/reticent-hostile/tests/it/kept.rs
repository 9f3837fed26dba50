//! The inputs in `fuzz/corpus`, seeds and what the fuzzer found, are read and used again: none ends in a panic.

use std::fs;
use std::path::Path;

use reticent_hostile::TARGETS;

#[test]
fn kept_inputs_of_every_kind_are_read_and_used_without_a_panic() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for target in TARGETS {
        let folder = corpus.join(target.name);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut names: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
        names.sort();
        assert!(names.len() >= 3, "{} has no inputs", folder.display());
        for name in names {
            let input = fs::read(&name).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
            let run = std::panic::AssertUnwindSafe(|| (target.run)(&input));
            assert!(std::panic::catch_unwind(run).is_ok(), "{} ends in a panic", name.display());
        }
    }
}

#[test]
fn a_kind_that_does_not_exist_is_refused() {
    assert!(std::panic::catch_unwind(|| reticent_hostile::run("no such kind", b"")).is_err());
}
