//! `reticent schema`: from a table's names to a schema that a fit accepts.

use insta::assert_snapshot;

use crate::support::{FIT, Folder, SCHEMA, Table, json, keys};

#[test]
fn a_draft_is_filled_in_checked_and_fitted() {
    let folder = Folder::with_table();
    let draft = folder.succeed("schema draft table.csv --target outcome");
    assert_snapshot!(draft, @"");
    // Names only: what the rows hold does not change a letter.
    folder.write("table.csv", Table(Vec::new()).csv());
    assert_eq!(folder.succeed("schema draft table.csv --target outcome"), draft);
    folder.write("table.csv", Table::usual().csv());

    folder.write("schema.toml", &draft);
    assert_snapshot!(folder.refuse(2, "schema check schema.toml"), @"");
    let filled: String = draft
        .lines()
        .filter(|line| !line.starts_with("patient") && !line.starts_with("comment"))
        .map(|line| match line.split(" =").next() {
            Some("age") => "age = { bounds = [0, 100] }\n".to_owned(),
            Some("dose") => "dose = { bounds = [0, 5000] }\n".to_owned(),
            Some("ward") => "ward = { categories = [\"north\", \"south\"] }\n".to_owned(),
            Some("classes" | "# classes") => "classes = [\"no\", \"yes\"]\n".to_owned(),
            _ if line.contains("classes = ") => "classes = [\"no\", \"yes\"]\n".to_owned(),
            _ => format!("{line}\n"),
        })
        .collect();
    folder.write("schema.toml", &filled);
    assert_snapshot!(folder.succeed("schema check schema.toml"), @"");
    folder.succeed(FIT);
}

#[test]
fn a_public_file_fills_in_the_draft() {
    let folder = Folder::with_table();
    let public = String::from_utf8(Table::usual().csv()).expect("UTF-8").replace(crate::support::CANARY, "none");
    folder.write("open.csv", public);
    let draft = folder.succeed("schema draft table.csv --target outcome --public-data open.csv");
    assert_snapshot!(draft, @"");
    folder.write("schema.toml", draft);
    folder.succeed("schema check schema.toml");
    folder.succeed(FIT);
}

#[test]
fn a_draft_of_a_table_without_header_is_refused_until_it_is_said() {
    let folder = Folder::new();
    folder.write("table.csv", "20,SECRETCELL42,yes\n30,north,no\n");
    assert_snapshot!(folder.refuse(3, "schema draft table.csv"), @"");
    let draft = folder.succeed("schema draft table.csv --no-header --target c3");
    assert!(draft.contains("header = false") && draft.contains("columns = [\"c1\", \"c2\", \"c3\"]"), "{draft}");
    let message = folder.refuse(3, "schema draft table.csv --no-header --target income");
    assert!(message.contains("has no column \"income\", which was named as the target"), "{message}");
    folder.refuse(2, "schema draft table.csv --delimiter ab");
}

#[test]
fn problems_are_listed_with_their_lines() {
    let folder = Folder::new();
    let wrong =
        SCHEMA.replace("[0, 100]", "[100, 0]").replace("add-remove", "removal").replace("\"south\"", "\"north\"");
    folder.write("schema.toml", wrong);
    let outcome = folder.run("schema check schema.toml --json");
    assert_eq!(outcome.code, 2);
    let result = json(&outcome.stdout);
    assert_eq!(keys(&result), ["ok", "problems"]);
    let lines: Vec<u64> = result["problems"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|problem| problem["line"].as_u64().expect("a line"))
        .collect();
    assert_eq!(lines, [3, 10, 12]);
    assert_snapshot!(outcome.stderr, @"");
}

#[test]
fn a_complete_schema_is_told_as_json() {
    let folder = Folder::new();
    let result = json(&folder.succeed("schema check schema.toml --json"));
    assert_eq!(keys(&result), ["ok", "fingerprint", "schema"]);
    assert_eq!(result["ok"], true);
    // The fingerprint is of the meaning, not of the text.
    folder.write("schema.toml", format!("# a comment\n{}", SCHEMA.replace("[0, 5000]", "[0, 5_000.0]")));
    assert_eq!(json(&folder.succeed("schema check schema.toml --json"))["fingerprint"], result["fingerprint"]);
    folder.write("schema.toml", SCHEMA.replace("5000", "5001"));
    assert_ne!(json(&folder.succeed("schema check schema.toml --json"))["fingerprint"], result["fingerprint"]);
}
