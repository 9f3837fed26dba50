//! Rules of the repository, as tests: who imports whom, who may say `danger`, what every file begins with, and that the
//! table of formulas is true.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Crates that a crate may import, tests apart. The trust zones of ARCHITECTURE.md.
const IMPORTS: [(&str, &[&str]); 8] = [
    ("reticent-core", &[]),
    ("reticent-math", &[]),
    ("reticent-curator", &["reticent-core", "reticent-math"]),
    ("reticent-fit", &["reticent-core", "reticent-math"]),
    ("reticent-cli", &["reticent-core", "reticent-curator", "reticent-fit", "reticent-math"]),
    ("reticent-testkit", &["reticent-core", "reticent-curator", "reticent-fit", "reticent-math"]),
    ("reticent-hostile", &["reticent-core", "reticent-curator", "reticent-fit", "reticent-math"]),
    ("xtask", &["reticent-core", "reticent-curator", "reticent-fit", "reticent-math"]),
];

/// Dependencies of the crate that must be audited whole, each with its reason in its `Cargo.toml`.
const CORE_DEPENDENCIES: [&str; 9] =
    ["getrandom", "indexmap", "rand_chacha", "rand_core", "serde", "sha2", "thiserror", "toml", "zeroize"];

/// Source files outside `tests/` that may say `danger`.
const DANGER: [&str; 7] = [
    "crates/reticent-core/src/danger.rs",
    "crates/reticent-core/src/lib.rs",
    "crates/reticent-core/src/noise/source.rs",
    "crates/reticent-core/src/session.rs",
    "crates/reticent-core/src/sum.rs",
    "crates/reticent-testkit/src/lib.rs",
    "xtask/tests/tidy.rs",
];

/// Words that only the crates that see rows may use: types that hold a row on its way into a sum, or an exact sum.
const ROW_WORDS: [&str; 5] = ["LatticeRow", "PartialSum", "CodedTable", "RawValue", "CodedLabel"];

#[test]
fn crates_import_only_what_their_trust_zone_allows() {
    let ours: BTreeSet<&str> = IMPORTS.iter().map(|(name, _)| *name).collect();
    let members: BTreeSet<String> = manifests().iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(members, ours.iter().map(|name| (*name).to_owned()).collect(), "every crate has a zone");
    for (name, manifest) in manifests() {
        let allowed = IMPORTS.iter().find(|(known, _)| *known == name).expect("has a zone").1;
        for dependency in keys(&manifest, "dependencies").into_iter().filter(|name| ours.contains(name.as_str())) {
            assert!(allowed.contains(&dependency.as_str()), "{name} must not import {dependency}");
        }
    }
}

#[test]
fn the_boundary_has_a_handful_of_dependencies() {
    let (_, manifest) = manifests().into_iter().find(|(name, _)| name == "reticent-core").expect("exists");
    assert_eq!(keys(&manifest, "dependencies"), CORE_DEPENDENCIES.map(str::to_owned).into());
}

#[test]
fn nothing_that_ships_depends_on_the_testkit_or_turns_on_danger() {
    for (name, manifest) in manifests() {
        assert!(!keys(&manifest, "dependencies").contains("reticent-testkit"), "{name}");
        let features = manifest["dependencies"].get("reticent-core").and_then(|core| core.get("features"));
        assert!(features.is_none() || name == "reticent-testkit", "{name} asks for features of reticent-core");
    }
}

#[test]
fn only_tests_say_danger() {
    for path in sources() {
        let place = place(&path);
        if place.contains("/tests/") && !place.starts_with("xtask/") || DANGER.contains(&place.as_str()) {
            continue;
        }
        let text = read(&path);
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let says = line.contains("danger::") || line.contains("\"danger\"") || line.contains("seeded_session");
            assert!(!says, "{place} says danger: {line}");
        }
    }
    for place in DANGER {
        assert!(read(&root().join(place)).contains("danger"), "{place} no longer says danger: take it off the list");
    }
}

#[test]
fn the_public_half_never_names_a_row_that_is_added_up() {
    for path in sources().iter().filter(|path| place(path).starts_with("crates/reticent-fit/src/")) {
        for word in ROW_WORDS {
            assert!(!read(path).contains(word), "{} names {word}", place(path));
        }
    }
}

#[test]
fn noise_is_added_in_one_place_and_the_ledger_charged_in_one() {
    let says = |needle: &str| -> Vec<String> {
        let of_crates = |path: &&PathBuf| {
            let place = place(path);
            // A crate of tests, whose ledger files are charged without rows.
            let is_hostile = place.starts_with("crates/reticent-hostile/");
            place.contains("/src/") && place.starts_with("crates/") && !place.ends_with("/tests.rs") && !is_hostile
        };
        let with = |path: &&PathBuf| {
            // Tests stand last in a file.
            let text = read(path);
            text.split("#[cfg(test)]").next().expect("has a first part").contains(needle)
        };
        sources().iter().filter(of_crates).filter(with).map(|path| place(path)).collect()
    };
    assert_eq!(says(".add_noise("), ["crates/reticent-core/src/session.rs"]);
    assert_eq!(says(".charge("), ["crates/reticent-core/src/session.rs"]);
    assert_eq!(says(".exact_sum("), ["crates/reticent-core/src/session.rs"]);
    assert_eq!(says(".exact_minimum("), ["crates/reticent-core/src/session.rs"]);
}

/// What core must not touch: files, threads, clocks and logs.
const NOT_IN_CORE: [&str; 7] = ["std::fs", "std::net", "std::time", "std::thread", "SystemTime", "Instant::", "eprint"];

#[test]
fn core_touches_no_file_no_thread_and_no_clock() {
    for path in sources().iter().filter(|path| place(path).starts_with("crates/reticent-core/src/")) {
        let text = read(path);
        let product = text.split("#[cfg(test)]").next().expect("has a first part");
        for word in NOT_IN_CORE {
            assert!(!product.contains(word), "{} says {word}", place(path));
        }
    }
}

/// What is printed, logged or written by accident is printed by one of these.
const TELLING: [&str; 3] = ["Debug", "Display", "Serialize"];

/// Types that can be printed in files that see rows: none of them holds a cell, a label, a vote, a key or an exact sum. Whatever else is
/// defined there is taken to hold one.
const PRINTABLE: &[(&str, &[&str])] = &[
    ("reticent-core/src/coding.rs", &["Coding", "SlotMap", "SlotKind", "Column"]),
    ("reticent-core/src/compact_row.rs", &["CompactLayout", "Part"]),
    ("reticent-core/src/encoding.rs", &["NormRule", "Encoding", "CodeRange"]),
    ("reticent-core/src/engine.rs", &["NoMinima", "EngineError"]),
    ("reticent-core/src/label_query.rs", &["PlannedAnswer"]),
    (
        "reticent-core/src/label_query/release.rs",
        &["LabelRelease", "ReleasedNumbers", "UnmatchedLabel", "LabelReleaseError"],
    ),
    ("reticent-core/src/listed_columns.rs", &["ListedColumns"]),
    ("reticent-core/src/record.rs", &["ColumnValues"]),
    ("reticent-core/src/sum.rs", &["Release"]),
    ("reticent-core/src/target_window.rs", &["TargetWindow", "WindowDocument", "NoWindow"]),
    ("reticent-curator/src/draft.rs", &["DraftOptions"]),
    ("reticent-curator/src/external_sort.rs", &["SortShape"]),
    ("reticent-curator/src/identified_rows.rs", &["UnknownId", "IdentifiedRowsError"]),
    ("reticent-curator/src/kernel/instructions.rs", &["Instructions", "Set"]),
    ("reticent-curator/src/kernel/softmax.rs", &["SoftmaxSlopes"]),
    ("reticent-curator/src/kernel/tile_unit.rs", &["TileUnit"]),
    ("reticent-curator/src/label_engine.rs", &["OtherQuestion"]),
    ("reticent-curator/src/label_measure.rs", &["LabelTerms", "LabelAnswer", "MeasureError"]),
    ("reticent-curator/src/ledger_file.rs", &["LedgerFile", "Entry"]),
    ("reticent-curator/src/ledger_file/error.rs", &["LedgerFileError"]),
    ("reticent-curator/src/memory_ceiling.rs", &["MemoryCeiling", "NotASize"]),
    ("reticent-curator/src/memory_engine.rs", &["OtherRows"]),
    ("reticent-curator/src/out_of_memory.rs", &["OutOfMemory"]),
    ("reticent-curator/src/party_votes.rs", &["VotesError", "Unanswered"]),
    ("reticent-curator/src/party_votes/ballot.rs", &["Ballot", "VoteForm"]),
    ("reticent-curator/src/party_votes/roster.rs", &["Roster", "RosterError"]),
    ("reticent-curator/src/scratch_blocks.rs", &["BlockShape"]),
    ("reticent-curator/src/scratch_file.rs", &["ScratchPlace", "ScratchError"]),
    ("reticent-curator/src/source.rs", &["Need"]),
    ("reticent-curator/src/source/compression.rs", &["ChangedWhileRead"]),
    ("reticent-curator/src/source/error.rs", &["SourceError", "NamedIn"]),
    ("reticent-curator/src/source/parquet_footer.rs", &["DeclaredPage"]),
    ("reticent-curator/src/spilled_engine.rs", &["CannotSpill", "NotStreamed", "LostScratch"]),
    ("reticent-curator/src/spilled_table.rs", &["SpillError"]),
    ("reticent-curator/src/weights_file.rs", &["WeightsFileError"]),
];

#[test]
fn what_holds_rows_cannot_be_printed() {
    let expected: BTreeSet<(String, String)> = PRINTABLE
        .iter()
        .flat_map(|(place, names)| names.iter().map(move |name| (format!("crates/{place}"), (*name).to_owned())))
        .collect();
    // Tests stand last in a file, and their rows are nobody's.
    let product = |path: &PathBuf| read(path).split("#[cfg(test)]\nmod tests").next().expect("has a part").to_owned();
    let trusted =
        |path: &&PathBuf| ["core", "curator"].iter().any(|zone| place(path).contains(&format!("-{zone}/src/")));
    let implemented: BTreeSet<String> =
        sources().iter().filter(trusted).flat_map(|path| implemented_telling(&product(path))).collect();
    let mut found = BTreeSet::new();
    let (mut files, mut silent) = (0, 0);
    for path in sources().iter().filter(|path| sees_rows(path)) {
        let text = product(path);
        let (printed, others): (Vec<String>, Vec<String>) = defined_types(&text)
            .into_iter()
            .partition(|name| is_derived_telling(name, &text) || implemented.contains(name));
        (files, silent) = (files + 1, silent + others.len());
        found.extend(printed.into_iter().map(|name| (place(path), name)));
    }
    let new: Vec<_> = found.difference(&expected).collect();
    assert!(
        new.is_empty(),
        "can be printed, in files that see rows; if they hold none, name them in PRINTABLE: {new:?}"
    );
    let old: Vec<_> = expected.difference(&found).collect();
    assert!(old.is_empty(), "cannot be printed or are not there: take them off PRINTABLE: {old:?}");
    assert!(files > 50 && silent > 100, "the types were read: {silent} in {files} files");
}

/// The check itself: a derive, over several lines too, an implementation, and what is neither.
#[test]
fn a_type_that_can_be_printed_is_noticed() {
    let text = "/// Not Debug.\n#[derive(Clone)]\npub struct Kept<'a>(&'a [u8]);\n\n\
                #[derive(\n    Clone,\n    Debug,\n)]\n#[repr(C)]\npub(crate) enum Derived {\n    A,\n}\n\n\
                struct Written;\n\nimpl<T> fmt::Display for Written {}\n\n\
                struct Wrapped;\n\nimpl Deserialize for Wrapped {}\nimpl Serialize for crate::table::Elsewhere<'_> {}\n";
    assert_eq!(defined_types(text), ["Kept", "Derived", "Written", "Wrapped"]);
    let derived = ["Kept", "Derived", "Written", "Wrapped"].map(|name| is_derived_telling(name, text));
    assert_eq!(derived, [false, true, false, false]);
    assert_eq!(implemented_telling(text), ["Written", "Elsewhere"]);
}

/// All of the curator, and what of core names a row, a cell or an exact sum. Apart from `danger.rs`, whose tape of exact sums tests may print: no
/// release build holds it.
fn sees_rows(path: &Path) -> bool {
    let place = place(path);
    let names_rows = || {
        let text = read(path);
        let mut words = text.split(|letter: char| !letter.is_alphanumeric());
        words.any(|word| ["Cell", "CompactRowMut"].contains(&word) || ROW_WORDS.contains(&word))
    };
    !place.ends_with("/tests.rs")
        && !place.ends_with("/danger.rs")
        && (place.starts_with("crates/reticent-curator/src/")
            || place.starts_with("crates/reticent-core/src/") && names_rows())
}

/// Names of the structs, enums and unions that a text defines.
fn defined_types(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| defined_type(line).map(str::to_owned)).collect()
}

fn defined_type(line: &str) -> Option<&str> {
    let mut words = line.trim_start().split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let kind = words.find(|word| !["pub", "crate", "super", "in", ""].contains(word))?;
    if ["struct", "enum", "union"].contains(&kind) { words.next() } else { None }
}

/// Whether one of [`TELLING`] is derived for a type of this name.
fn is_derived_telling(name: &str, text: &str) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    lines.iter().enumerate().filter(|(_, line)| defined_type(line) == Some(name)).any(|(number, _)| {
        let before = lines[..number].iter().rev().map(|line| line.trim());
        let mut attributes = before.take_while(|line| !line.is_empty() && !line.ends_with(['{', '}', ';']));
        attributes.any(|line| !line.starts_with("//") && is_telling(line))
    })
}

/// Names of the types that a text implements one of [`TELLING`] for.
fn implemented_telling(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.trim_start().starts_with("impl"));
    let implemented = lines.filter_map(|line| line.split_once(" for ")).filter(|(what, _)| is_telling(what));
    let name = |(_, of): (&str, &str)| {
        let of = of.split(['<', ' ', '{']).next().expect("has a first part");
        of.rsplit("::").next().expect("has a last part").to_owned()
    };
    implemented.map(name).collect()
}

fn is_telling(text: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric()).any(|word| TELLING.contains(&word))
}

#[test]
fn three_files_alone_are_allowed_what_the_compiler_cannot_check() {
    let word = concat!("un", "safe");
    let says =
        |path: &&PathBuf| read(path).lines().any(|line| !line.trim_start().starts_with("//") && line.contains(word));
    let places: Vec<String> = sources().iter().filter(says).map(|path| place(path)).collect();
    const KERNEL: &str = "crates/reticent-curator/src/kernel";
    const NUMERICS: &str = "crates/reticent-math/src";
    let allowed = [
        format!("{KERNEL}/instructions.rs"),
        format!("{KERNEL}/tile_unit.rs"),
        format!("{NUMERICS}/vector_registers.rs"),
    ];
    assert_eq!(places, allowed);
}

#[test]
fn every_file_opens_with_a_sentence() {
    for path in sources() {
        let text = read(&path);
        let first = text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 20, "{} opens with {first:?}", place(&path));
    }
}

#[test]
fn every_method_has_a_page_and_formulas() {
    let formulas = read(&root().join("docs/formulas.md"));
    for entry in fs::read_dir(root().join("crates/reticent-fit/src/method")).expect("the folder of methods") {
        let name = entry.expect("readable").path().file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(formulas.contains(&format!("method/{name}.rs")), "method {name} has no row in docs/formulas.md");
        let page = root().join(format!("docs/methods/{}.md", name.replace('_', "-")));
        assert!(page.exists(), "{} is missing", page.display());
    }
}

#[test]
fn the_table_of_formulas_points_at_code_that_exists() {
    let formulas = read(&root().join("docs/formulas.md"));
    let mut checked = 0;
    for quoted in formulas.split('`').skip(1).step_by(2) {
        let Some((path, name)) = quoted.split_once("::") else { continue };
        if !path.ends_with(".rs") {
            continue;
        }
        let text = read(&root().join(path));
        let name = name.rsplit("::").next().expect("a name");
        let defined = ["fn ", "const ", "struct ", "enum "].iter().any(|kind| text.contains(&format!("{kind}{name}")));
        assert!(defined, "docs/formulas.md points at `{quoted}`, which is not there");
        checked += 1;
    }
    assert!(checked >= 30, "the table was read: {checked}");
}

#[test]
fn every_row_of_formulas_has_a_name_of_its_own() {
    let formulas = read(&root().join("docs/formulas.md"));
    let mut names = BTreeSet::new();
    for line in formulas.lines() {
        let Some(name) = line.strip_prefix("| ").and_then(|row| row.split(" |").next()) else { continue };
        if name.starts_with(['F', 'G']) && name[1..].parse::<u32>().is_ok() {
            assert!(names.insert(name), "docs/formulas.md has two rows {name}");
        }
    }
    assert!(names.len() >= 100, "the table was read: {}", names.len());
}

#[test]
fn rows_of_formulas_named_in_code_exist() {
    let formulas = read(&root().join("docs/formulas.md"));
    for path in sources() {
        let text = read(&path);
        for (at, _) in text.match_indices("row F") {
            let id: String = text[at + 4..].chars().take_while(char::is_ascii_alphanumeric).collect();
            if id.len() > 1 && id[1..].chars().all(|digit| digit.is_ascii_digit()) {
                assert!(formulas.contains(&format!("| {id} |")), "{} names row {id} of docs/formulas.md", place(&path));
            }
        }
    }
}

#[test]
fn the_architecture_names_every_crate() {
    let architecture = read(&root().join("ARCHITECTURE.md"));
    for (name, _) in IMPORTS {
        assert!(architecture.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name {name}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the repository").to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn place(path: &Path) -> String {
    path.strip_prefix(root()).expect("in the repository").to_string_lossy().replace('\\', "/")
}

/// Name and manifest of every crate.
fn manifests() -> Vec<(String, toml::Table)> {
    let crates = fs::read_dir(root().join("crates")).expect("the folder of crates");
    let mut paths: Vec<PathBuf> = crates.map(|entry| entry.expect("readable").path().join("Cargo.toml")).collect();
    paths.push(root().join("xtask/Cargo.toml"));
    let parse = |path: &PathBuf| {
        let manifest: toml::Table = read(path).parse().expect("a manifest is TOML");
        (manifest["package"]["name"].as_str().expect("a name").to_owned(), manifest)
    };
    paths.iter().map(parse).collect()
}

fn keys(manifest: &toml::Table, section: &str) -> BTreeSet<String> {
    let table = manifest.get(section).and_then(toml::Value::as_table);
    table.into_iter().flat_map(|table| table.keys().cloned()).collect()
}

/// Every Rust file of the repository.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let fuzz = ["fuzz/src", "fuzz/fuzz_targets"].map(|folder| root().join(folder));
    let mut folders = [vec![root().join("crates"), root().join("xtask")], fuzz.into()].concat();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("readable") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() > 40, "the repository was walked");
    found
}
