//! Rows that are declared public: `fit-public`, and `--public-data` of `fit` and `plan`.

use insta::assert_snapshot;

use crate::support::{FIT, Folder, SCHEMA, Table, json, number};

const PUBLIC: &str = "fit-public --data public.csv --schema schema.toml --out public.json";

/// A folder with a private and a public table.
fn folder() -> Folder {
    let folder = Folder::with_table();
    folder.write("public.csv", Table::of(600).csv());
    folder
}

#[test]
fn a_public_fit_is_stamped_and_charges_nothing() {
    let folder = folder();
    assert_snapshot!(folder.succeed(PUBLIC), @r"
    NOT PRIVATE: fitted without protection, to rows declared public
    Public data: public.csv (sha256 [fingerprint])
    Model: public.json
    ");
    assert!(!folder.exists("public.csv.ledger"));
    let model = folder.json("public.json");
    assert!(model["certificate"].is_null());
    assert_eq!(model["public_data"]["file"], "public.csv");
    assert!(folder.succeed("show public.json").starts_with("NOT PRIVATE"));
    let figures = json(&folder.succeed("evaluate --model public.json --data public.csv --public --json"));
    assert!(number(&figures["accuracy"]) > 0.85, "{figures}");
    let result = json(&folder.succeed(&format!("{PUBLIC} --json")));
    assert_eq!(result["public_data"], model["public_data"]);
}

#[test]
fn numbers_and_more_classes_are_fitted_too() {
    let folder = folder();
    let two_classes = "column = \"outcome\"\nclasses = [\"no\", \"yes\"]";
    let ward = "ward = { categories = [\"north\", \"south\"] }\n";
    let number = SCHEMA.replace(two_classes, "column = \"age\"\nbounds = [0, 100]");
    let outcome = "outcome = { categories = [\"no\", \"yes\"] }";
    folder.write("number.toml", number.replace("age = { bounds = [0, 100] }", outcome));
    folder.succeed("fit-public --data public.csv --schema number.toml --out number.json");
    assert_eq!(folder.json("number.json")["task"], "regression");
    let three = SCHEMA.replace(two_classes, "column = \"ward\"\nclasses = [\"north\", \"south\", \"east\"]");
    folder.write("three.toml", three.replace(ward, ""));
    folder.succeed("fit-public --data public.csv --schema three.toml --out three.json");
    assert_eq!(folder.json("three.json")["outputs"].as_array().map(Vec::len), Some(3));
}

/// The private fit starts at the public model; plan, report and certificate say which file was declared public.
#[test]
fn public_data_are_a_start_and_are_written_down() {
    let folder = folder();
    let cheap = FIT.replace("--epsilon 1 ", "--epsilon 0.001 ");
    let text = folder.succeed(&format!("{cheap} --public-data public.csv"));
    assert!(text.contains("- the rows of public.csv (sha256 "), "{text}");
    let certified = folder.json("model.json")["certificate"]["public"].to_string();
    assert!(certified.contains("the rows of public.csv (sha256 "), "{certified}");
    let figures = json(&folder.succeed("evaluate --model model.json --data table.csv --public --json"));
    assert!(number(&figures["auc"]) > 0.9, "almost nothing was paid, and the start is good: {figures}");
    let plan = folder.succeed("plan --schema schema.toml --epsilon 1 --delta 1e-6 --public-data public.csv");
    assert!(plan.contains("- the rows of public.csv (sha256 "), "{plan}");
}

/// Public rows have no unit to be charged to.
#[test]
fn the_column_of_the_unit_may_be_absent_from_public_data() {
    let folder = folder();
    folder.write("unit.toml", SCHEMA.replace("\"row\"", "{ column = \"patient\", rows_max = 2 }"));
    let table = folder.text("public.csv");
    let header = table.lines().next().expect("a header").replace("patient", "other");
    folder.write("public.csv", table.replacen(table.lines().next().expect("a header"), &header, 1));
    folder.succeed(&PUBLIC.replace("schema.toml", "unit.toml"));
}

#[test]
fn what_cannot_be_a_public_start_is_refused_and_costs_nothing() {
    let folder = folder();
    folder.succeed(PUBLIC);
    let refused = |line: &str, code: i32, says: &str| {
        let outcome = folder.run(line);
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        assert!(outcome.stderr.contains(says), "{}", outcome.stderr);
    };
    refused(&format!("{FIT} --public-data public.csv --init public.json"), 2, "cannot be used with");
    refused(&format!("{FIT} --public-data table.csv"), 2, "is the private table itself");
    std::fs::hard_link(folder.path("table.csv"), folder.path("second-name.csv")).expect("a second name");
    #[cfg(unix)]
    refused(&format!("{FIT} --public-data second-name.csv"), 2, "is the private table itself");
    folder.write("other.csv", "a,b\n1,2\n");
    refused(&format!("{FIT} --public-data other.csv"), 3, "other.csv");
    folder.write("unusable.csv", Table::of(5).with(|_, cells| cells[5] = "maybe".to_owned()).csv());
    refused(&format!("{FIT} --public-data unusable.csv"), 3, "no row has a usable target");
    refused(&format!("{FIT} --public-data public.csv").replace("model.json", "public.csv"), 2, "would replace");
    assert!(!folder.exists("table.csv.ledger"));
}
