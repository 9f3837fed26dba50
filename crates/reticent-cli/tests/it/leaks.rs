//! What a command on private rows tells, channel by channel, is the same whatever the rows are.
//!
//! `PRIVACY.md` lists the channels. Tables here do not differ in one row, they differ in everything: number of rows, values, what
//! can be read at all. All but released numbers has to be equal to the letter.

use reticent_fit::method;
use serde_json::Value;

use crate::support::{AGE, CANARY, DOSE, Folder, OUTCOME, Table, WARD, json, without_remark};

/// Tables of one schema that have nothing in common but their header.
fn tables() -> Vec<(&'static str, Vec<u8>)> {
    let all = |column: usize, value: &str| {
        let value = value.to_owned();
        move |table: Table| table.with(|_, row| row[column].clone_from(&value))
    };
    vec![
        ("usual", Table::usual().csv()),
        ("without rows", Table::of(0).csv()),
        ("one row", Table::of(1).csv()),
        ("ten times as many rows", Table::of(4000).csv()),
        ("one class", all(OUTCOME, "yes")(Table::usual()).csv()),
        ("no label that can be read", all(OUTCOME, CANARY)(Table::usual()).csv()),
        ("out of bounds", all(DOSE, "-1e300")(all(AGE, "inf")(Table::usual())).csv()),
        ("no value that can be read", all(WARD, CANARY)(all(DOSE, CANARY)(all(AGE, CANARY)(Table::usual()))).csv()),
        ("rows cut short", b"patient,age,dose,ward,comment,outcome\n1\n2,3\n\n4,5,6,north\n".to_vec()),
    ]
}

/// Everything that command lines leave behind, without what is drawn anew in each run.
#[derive(Debug, PartialEq)]
struct Told {
    code: i32,
    stdout: String,
    stderr: String,
    /// Every file but the table: its name and, where it has one, its public content.
    files: Vec<(String, String)>,
}

fn told(schema: &str, table: &[u8], lines: &[&str], mask: fn(&str) -> String) -> Told {
    let folder = Folder::new();
    folder.write("schema.toml", schema);
    folder.write("table.csv", table);
    let (mut codes, mut stdout, mut stderr) = (0, String::new(), String::new());
    for line in lines {
        let outcome = folder.run(line);
        codes = codes * 100 + outcome.code;
        stdout.push_str(&mask(&without_remark(&folder.masked(&outcome.stdout))));
        stderr.push_str(&folder.masked(&outcome.stderr));
    }
    let files = folder
        .files()
        .into_iter()
        .filter(|(name, _)| name != "table.csv")
        .map(|(name, content)| {
            let public = match name.rsplit_once('.') {
                Some((_, "json")) => structure(json(&String::from_utf8(content).expect("JSON is text"))).to_string(),
                // Entries, prices and the size of the file; not its seals, times and names, which are drawn anew.
                Some((_, "ledger")) => format!("{} {}", content.len(), structure(folder.ledger(&name))),
                _ => String::from_utf8(content).expect("a schema is text"),
            };
            (name, public)
        })
        .collect();
    Told { code: codes, stdout, stderr, files }
}

/// A document without what is released or drawn: coefficients, names of ledgers, seals, times. The rest stays, numbers too:
/// prices, scales, declared counts.
fn structure(mut document: Value) -> Value {
    const DRAWN: [&str; 11] = [
        "coefficient",
        "intercept",
        "range",
        "counts_as",
        "standard_error",
        "difference",
        "id",
        "seal",
        "time",
        "made",
        "set_at",
    ];
    match &mut document {
        Value::Object(fields) => {
            fields.remove("remark");
            for (name, value) in fields.iter_mut() {
                *value = if DRAWN.contains(&name.as_str()) { "drawn".into() } else { structure(value.take()) };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = structure(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    document
}

fn as_printed(text: &str) -> String {
    text.to_owned()
}

/// What is computed from noisy figures, as the replay of evaluations shows: which lines are printed depends on them.
fn not_compared(_: &str) -> String {
    String::new()
}

/// The same lines on every table; the first must work.
#[track_caller]
fn assert_tells_nothing(schema: &str, lines: &[&str], mask: fn(&str) -> String) {
    assert_tells_nothing_on(&tables(), schema, lines, mask);
}

#[track_caller]
fn assert_tells_nothing_on(tables: &[(&str, Vec<u8>)], schema: &str, lines: &[&str], mask: fn(&str) -> String) {
    let usual = told(schema, &tables[0].1, lines, mask);
    assert!(usual.code == 0 && usual.stderr.is_empty(), "{lines:?}: {usual:?}");
    for (name, table) in &tables[1..] {
        assert_eq!(told(schema, table, lines, mask), usual, "{lines:?} on a table {name}");
    }
}

fn schema_under(adjacency: &str) -> String {
    crate::support::SCHEMA.replace("\"add-remove\"", &format!("{adjacency:?}"))
}

#[test]
fn a_fit_tells_nothing_but_its_releases() {
    for method in method::ALL {
        let adjacency = if method.name() == "walr" { "label" } else { "add-remove" };
        let schema = match method.name() {
            "gram" => schema_under(adjacency)
                .replace("column = \"outcome\"\nclasses = [\"no\", \"yes\"]", "column = \"age\"\nbounds = [0, 100]")
                .replace("age = { bounds = [0, 100] }\n", ""),
            _ => schema_under(adjacency),
        };
        let counts_passes = method.options().iter().any(|option| option.name == "passes");
        let few = if counts_passes { " --passes 3" } else { "" };
        let line = format!(
            "fit --data table.csv --schema schema.toml --method {} --epsilon 1 --delta 1e-6 --out model.json{few}",
            method.name()
        );
        // A public round figure, which some methods want.
        let schema = schema.replace("[target]", "rows = 1000\n[target]").replace("\n\nrows", "\nrows");
        // Under `label` the features and which rows have a usable label are public, by the adjacency itself.
        let differ_in_labels = |(name, _): &(&str, Vec<u8>)| matches!(*name, "usual" | "one class");
        let is_label = adjacency == "label";
        let tables: Vec<_> = tables().into_iter().filter(|table| !is_label || differ_in_labels(table)).collect();
        assert_tells_nothing_on(&tables, &schema, &[&line], as_printed);
    }
}

#[test]
fn a_fit_in_scratch_files_tells_nothing_but_its_releases() {
    let fit = "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --passes 3 --out model.json";
    let line = format!("{fit} --memory 4GiB --scratch {}", env!("CARGO_TARGET_TMPDIR"));
    assert_tells_nothing(&schema_under("add-remove"), &[&line], as_printed);
}

#[test]
fn a_unit_column_tells_nothing() {
    let unit = r#"unit = { column = "patient", rows_max = 2 }"#;
    let schema = schema_under("replace").replace("unit = \"row\"", unit);
    let line = "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --passes 3 --out model.json";
    assert_tells_nothing(&schema, &[line], as_printed);
    let line = format!("{line} --memory 4GiB --scratch {}", env!("CARGO_TARGET_TMPDIR"));
    assert_tells_nothing(&schema, &[&line], as_printed);
}

#[test]
fn bought_figures_tell_nothing_but_themselves() {
    for json in ["", " --json"] {
        let line =
            format!("evaluate --model model.json --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6{json}");
        let init = "ledger init table.csv.ledger --epsilon 2 --delta 1e-6";
        assert_tells_nothing(&schema_under("add-remove"), &[init, &line], not_compared);
    }
}

/// A refusal is the same before and after the rows have been looked at: a second fit finds the budget spent.
#[test]
fn a_refusal_tells_nothing() {
    let fit = "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --passes 3 --out model.json --ledger l.ledger";
    let tables = tables();
    let lines = ["ledger init l.ledger --epsilon 1.2 --delta 1e-6", fit, &fit.replace("model.json", "second.json")];
    let usual = told(&schema_under("add-remove"), &tables[0].1, &lines, as_printed);
    assert_eq!(usual.code, 4, "{usual:?}");
    assert!(!usual.stderr.is_empty());
    for (name, table) in &tables[1..] {
        assert_eq!(told(&schema_under("add-remove"), table, &lines, as_printed), usual, "{name}");
    }
}

/// The comparison notices a single word or number that depends on the rows.
#[test]
fn the_comparison_sees_what_is_not_masked() {
    let one = structure(json(r#"{"outputs": [{"coefficient": 1.5}], "certificate": {"rows": 400}}"#));
    let other = structure(json(r#"{"outputs": [{"coefficient": 2.5}], "certificate": {"rows": 400}}"#));
    let counted = structure(json(r#"{"outputs": [{"coefficient": 2.5}], "certificate": {"rows": 401}}"#));
    assert_eq!(one, other);
    assert_ne!(one, counted);
}
