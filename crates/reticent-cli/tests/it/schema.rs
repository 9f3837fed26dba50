//! `reticent schema`: from a table's names to a schema that a fit accepts.

use insta::assert_snapshot;

use crate::support::{FIT, Folder, SCHEMA, Table, json, keys};

#[test]
fn a_draft_is_filled_in_checked_and_fitted() {
    let folder = Folder::with_table();
    let draft = folder.succeed("schema draft table.csv --target outcome");
    assert_snapshot!(draft, @r#"
    # Drafted from the column names of "table.csv"; no value of it was looked at.
    # Complete every line that says "fill in", from what everybody may know:
    # what stands here is public, so do not look it up in the private table.
    # `reticent schema check` tells what is still wrong or missing.

    # Who is protected. unit = "row": every row is somebody else. When one person has several rows, name the column that
    # tells whose row it is, and how many of them may count: unit = { column = "patient_id", rows_max = 4 }.
    # adjacency = "add-remove" hides whether somebody is in the table at all; "replace" only what is recorded there.
    [privacy]
    unit = "row"
    adjacency = "add-remove"
    # rows = 10_000  # about how many rows there are, if that is public; else it is bought with some of the budget

    # What is predicted: one of several classes, or a number within bounds.
    [target]
    column = "outcome"
    # fill in one of these two; of two classes, the last is the positive one:
    # classes = ["no", "yes"]
    # bounds = [0, 100]

    # What it is predicted from. A value beyond its bounds counts as the nearer bound, one that is not listed as "other".
    # Delete the lines of columns that are not to be used, such as names and row numbers.
    [features]
    patient = {}  # fill in: bounds = [low, high] or categories = ["a", "b"]
    age = {}  # fill in: bounds = [low, high] or categories = ["a", "b"]
    dose = {}  # fill in: bounds = [low, high] or categories = ["a", "b"]
    ward = {}  # fill in: bounds = [low, high] or categories = ["a", "b"]
    comment = {}  # fill in: bounds = [low, high] or categories = ["a", "b"]
    "#);
    // Names only: what the rows hold does not change a letter.
    folder.write("table.csv", Table(Vec::new()).csv());
    assert_eq!(folder.succeed("schema draft table.csv --target outcome"), draft);
    folder.write("table.csv", Table::usual().csv());

    folder.write("schema.toml", &draft);
    assert_snapshot!(folder.refuse(2, "schema check schema.toml"), @r#"
    error: schema.toml:
    the schema has 6 problems:
      line 15: target: has neither classes nor bounds; write classes = ["no", "yes"] for a category, bounds = [0, 100] for a number
      line 24: features.patient: is not filled in; write { bounds = [0, 100] } for a number, { categories = ["a", "b"] } for a category, or delete the line to leave the column out
      line 25: features.age: is not filled in; write { bounds = [0, 100] } for a number, { categories = ["a", "b"] } for a category, or delete the line to leave the column out
      line 26: features.dose: is not filled in; write { bounds = [0, 100] } for a number, { categories = ["a", "b"] } for a category, or delete the line to leave the column out
      line 27: features.ward: is not filled in; write { bounds = [0, 100] } for a number, { categories = ["a", "b"] } for a category, or delete the line to leave the column out
      line 28: features.comment: is not filled in; write { bounds = [0, 100] } for a number, { categories = ["a", "b"] } for a category, or delete the line to leave the column out
    "#);
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
    assert_snapshot!(folder.succeed("schema check schema.toml"), @r"
    The schema is complete.
    Protects: row:add-remove
    Target: outcome (no / yes)
    Features: 3 (7 encoded columns with the intercept, row norm at most 2.2361)
    Rows: not declared; a fit that needs their number buys it with some of its budget
    Fingerprint: [fingerprint]
    ");
    folder.succeed(FIT);
}

#[test]
fn a_public_file_fills_in_the_draft() {
    let folder = Folder::with_table();
    let public = String::from_utf8(Table::usual().csv()).expect("UTF-8").replace(crate::support::CANARY, "none");
    folder.write("open.csv", public);
    let draft = folder.succeed("schema draft table.csv --target outcome --public-data open.csv");
    assert_snapshot!(draft, @r#"
    # Drafted from the values of "open.csv", which was declared public.
    # Check that the bounds and lists below also suit the private table.
    # `reticent schema check` tells what is still wrong or missing.

    # Who is protected. unit = "row": every row is somebody else. When one person has several rows, name the column that
    # tells whose row it is, and how many of them may count: unit = { column = "patient_id", rows_max = 4 }.
    # adjacency = "add-remove" hides whether somebody is in the table at all; "replace" only what is recorded there.
    [privacy]
    unit = "row"
    adjacency = "add-remove"
    # rows = 10_000  # about how many rows there are, if that is public; else it is bought with some of the budget

    # What is predicted: one of several classes, or a number within bounds.
    [target]
    column = "outcome"
    # of two classes, the last is the positive one:
    classes = ["no", "yes"]

    # What it is predicted from. A value beyond its bounds counts as the nearer bound, one that is not listed as "other".
    # Delete the lines of columns that are not to be used, such as names and row numbers.
    [features]
    patient = { bounds = [0, 99] }
    age = { bounds = [0, 100] }
    dose = { bounds = [0, 5000] }
    ward = { categories = ["east", "north", "south"] }
    comment = { categories = ["none"] }
    "#);
    folder.write("schema.toml", draft);
    folder.succeed("schema check schema.toml");
    folder.succeed(FIT);
}

#[test]
fn a_draft_of_a_table_without_header_is_refused_until_it_is_said() {
    let folder = Folder::new();
    folder.write("table.csv", "20,SECRETCELL42,yes\n30,north,no\n");
    assert_snapshot!(folder.refuse(3, "schema draft table.csv"), @"error: the first line of table.csv does not look like a header: it has a number where a name is expected; give --no-header if it is a row of data, or --header if it is a header all the same");
    let draft = folder.succeed("schema draft table.csv --no-header --target c3");
    assert!(draft.contains("header = false") && draft.contains("columns = [\"c1\", \"c2\", \"c3\"]"), "{draft}");
    let message = folder.refuse(3, "schema draft table.csv --no-header --target income");
    assert!(message.contains("has no column \"income\", which was named as the target"), "{message}");
    assert!(message.contains("mend the name after --target"), "{message}");
    folder.refuse(2, "schema draft table.csv --delimiter ab");
    folder.write("table.arff", "@RELATION cells\n@ATTRIBUTE age NUMERIC\n@DATA\n20\n");
    let message = folder.refuse(3, "schema draft table.arff");
    assert!(message.contains("it begins as ARFF files do, which are not read"), "{message}");
}

/// What is not written as a number here may be one elsewhere: a row is no header for it.
#[test]
fn a_draft_takes_no_foreign_number_and_no_date_for_a_name() {
    let folder = Folder::new();
    for value in ["\"77,1\"", "\"1.234,00\"", "$12.50", "2021-08-06", "06.08.2021", "06/08/2021"] {
        folder.write("table.csv", format!("SECRETCELL42,{value},yes\n"));
        let message = folder.refuse(3, "schema draft table.csv");
        assert!(message.contains("where a name is expected; give --no-header"), "{message}");
        let draft = folder.succeed("schema draft table.csv --no-header --target c3");
        assert!(draft.contains("columns = [\"c1\", \"c2\", \"c3\"]"), "{draft}");
    }
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
    assert_snapshot!(outcome.stderr, @r#"
    error: schema.toml:
    the schema has 3 problems:
      line 3: privacy.adjacency: "removal" is not one of "add-remove", "replace", "label", "party"
      line 10: features.age.bounds: [100, 0] has the larger number first; write [0, 100]
      line 12: features.ward.categories: category "north" is listed twice; keep one
    "#);
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
