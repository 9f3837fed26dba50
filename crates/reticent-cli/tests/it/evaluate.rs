//! `reticent evaluate`: exact on public rows, bought on private ones.

use insta::assert_snapshot;
use serde_json::Value;

use crate::predict::by_hand;
use crate::support::{FIT, Folder, MODEL, OUTCOME, Table, is_close, json, keys, number, with_own_fingerprint};

const PUBLIC: &str = "evaluate --model model.json --data table.csv --public --json";
const PRIVATE: &str = "evaluate --model model.json --data table.csv --schema schema.toml --epsilon 4 --delta 1e-6";
/// By the word of the model alone.
const BY_THE_MODEL: &str = "evaluate --model model.json --data table.csv --epsilon 4 --delta 1e-6";

fn folder_of(table: &Table) -> Folder {
    let folder = Folder::new();
    folder.write("table.csv", table.csv());
    folder
}

/// With a ledger beside the table.
fn paying_folder_of(table: &Table) -> Folder {
    let folder = folder_of(table);
    folder.succeed("ledger init table.csv.ledger --epsilon 20 --delta 1e-6");
    folder
}

/// A ledger beside the table that has no limit, and so no delta.
fn without_a_limit(folder: &Folder) {
    folder.succeed(&FIT.replace("model.json", "fitted.json"));
}

/// What a ledger promises does not change, and who is protected is not a model file's to say.
#[test]
fn a_model_makes_no_ledger() {
    let folder = folder_of(&Table::usual());
    let message = folder.refuse(5, BY_THE_MODEL);
    assert_snapshot!(message, @"error: table.csv.ledger: there is no such ledger; check the name, or make one that promises what the schema protects: `reticent ledger init table.csv.ledger --epsilon EPSILON --delta DELTA --promise row:add-remove`, with the most that may ever be spent; the schema is the model's here: give the schema of these rows with --schema");
    assert!(!folder.exists("table.csv.ledger"));
    folder.succeed("ledger init table.csv.ledger --epsilon 20 --delta 1e-6");
    assert_snapshot!(folder.refuse(4, BY_THE_MODEL), @"error: [folder]/table.csv.ledger: no earlier request of this ledger says that the table is read as the model's schema reads it; the schema is the model's here: give the schema of these rows with --schema");
    folder.succeed(PRIVATE);
    folder.succeed(BY_THE_MODEL);
    let mut weaker = json(MODEL);
    weaker["schema"]["privacy"]["adjacency"] = "label".into();
    weaker["certificate"] = Value::Null;
    folder.write("weaker.json", weaker.to_string());
    let message = folder.refuse(4, &BY_THE_MODEL.replace("model.json", "weaker.json"));
    assert!(message.contains("the ledger promises only row:add-remove") && message.contains("--schema"), "{message}");
    // A schema is the owner's word: a ledger is made for it as for a fit, and it protects what the schema does.
    folder.remove("table.csv.ledger");
    let bought = json(&folder.succeed(&format!("{} --json", PRIVATE.replace("model.json", "weaker.json"))));
    assert_eq!(bought["privacy"]["relation"], "row:add-remove");
}

/// By another list of columns each visit is a patient, by another format each line of a long field is a row, and by a header the first row is
/// names: a model that says so is not believed, whoever made it.
#[test]
fn a_model_does_not_say_how_a_table_is_read() {
    let folder = Folder::new();
    let rows: String = (0..90).map(|row| format!("p{},v{row},{},{}\n", row % 3, row % 5, row % 2)).collect();
    let headed = format!("patient,visit,a,y\n{rows}");
    let schema = |unit: &str, table: &str| {
        format!(
            "[privacy]\nunit = {unit}\nadjacency = \"add-remove\"\n[table]\n{table}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
             [features]\na = {{ bounds = [0, 5] }}\n"
        )
    };
    let (row, patient) = ("\"row\"", "{ column = \"patient\", rows_max = 1 }");
    let (own, other) = ("[\"patient\", \"visit\", \"a\", \"y\"]", "[\"visit\", \"patient\", \"a\", \"y\"]");
    let [bare, other] = [own, other].map(|columns| format!("header = false\ncolumns = {columns}"));
    let libsvm = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[table]\nformat = \"libsvm\"\n[target]\ncolumn = \"label\"\n\
                  classes = [0, 1]\n[features]\n\"1\" = { bounds = [0, 5] }\n"
        .to_owned();
    // The table, the owner's schema, the schema of the model, and what it was fitted to.
    for (name, table, owners, models, fitted) in [
        ("columns", &headed, schema(patient, ""), schema(patient, &other), rows.as_str()),
        ("format", &headed, schema(row, ""), libsvm, "0 1:1\n1 1:2\n"),
        ("header", &rows, schema(row, &bare), schema(row, ""), headed.as_str()),
    ] {
        let file = |ending: &str| format!("{name}.{ending}");
        folder.write(&file("csv"), table);
        folder.write(&file("toml"), owners);
        folder.write("models.toml", models);
        folder.write("models.data", fitted);
        folder.succeed(&format!("fit-public --data models.data --schema models.toml --out {name}.json"));
        let evaluate = format!("evaluate --model {name}.json --data {name}.csv --epsilon 1 --delta 1e-6");
        let promise = if name == "columns" { "patient<=1" } else { "row" };
        folder
            .succeed(&format!("ledger init {name}.csv.ledger --promise {promise}:add-remove --epsilon 9 --delta 1e-6"));
        for has_been_read in [false, true] {
            if has_been_read {
                folder.succeed(&format!(
                    "fit --data {name}.csv --schema {name}.toml --epsilon 1 --delta 1e-6 --out {name}-own.json"
                ));
            }
            let spent = folder.spent(&file("csv.ledger"));
            let message = folder.refuse(4, &evaluate);
            assert!(message.trim_end().ends_with("give the schema of these rows with --schema"), "{name}: {message}");
            assert!(!message.contains("p0") && !message.contains("v0"), "{name}: {message}");
            assert!(is_close(folder.spent(&file("csv.ledger")), spent, 1e-12));
        }
        folder.succeed(&evaluate.replace(&file("json"), &format!("{name}-own.json")));
        // As its owner reads it, the table has what the model needs, or has not.
        let as_owned = format!("{evaluate} --schema {name}.toml");
        if name == "format" {
            assert!(folder.refuse(3, &as_owned).contains("none of the schema's columns is in the first line"));
        } else {
            folder.succeed(&as_owned);
        }
    }
}

/// Who is protected is said by the schema of the rows: a model of rows is measured on units of several, and one of parties on rows.
#[test]
fn rows_are_protected_as_their_own_schema_says() {
    let folder = folder_of(&Table::usual());
    let evaluate = format!("{PRIVATE} --json");
    for (unit, adjacency, relation) in
        [(crate::support::BY_PATIENT, "replace", "patient<=4:replace"), ("\"row\"", "label", "row:label")]
    {
        folder.write("schema.toml", crate::support::SCHEMA.replace("\"row\"", unit).replace("add-remove", adjacency));
        let bought = json(&folder.succeed(&evaluate));
        assert_eq!(bought["privacy"]["relation"], relation);
        folder.remove("table.csv.ledger");
    }
    // Under label adjacency another target would make a private column a public feature.
    let swapped =
        crate::support::SCHEMA.replace("add-remove", "label").replace("[\"no\", \"yes\"]", "[\"no\", \"si\"]");
    folder.write("schema.toml", swapped);
    assert_snapshot!(folder.refuse(2, PRIVATE), @"error: schema.toml: under label adjacency features are public, and the target of this schema is not the model's: columns, classes or bounds differ");
    folder.write(
        "schema.toml",
        crate::support::SCHEMA
            .replace("\"row\"", "{ column = \"age\", rows_max = 4 }")
            .replace("age = { bounds = [0, 100] }\n", ""),
    );
    assert_snapshot!(folder.refuse(2, PRIVATE), @r"
    error: schema.toml: [privacy] and [table] do not go with the model: the schema has 1 problem:
      features.age: is the column of the privacy unit; a model must not learn who somebody is: delete this line
    ");
    assert!(!folder.exists("table.csv.ledger"));
}

/// A record of several lines is one row, and a schema by which each line is one is refused: one person would count for many.
#[test]
fn a_schema_that_finds_other_rows_in_the_table_is_refused() {
    let folder = paying_folder_of(&Table::usual());
    folder.succeed(PRIVATE);
    folder.write("schema.toml", format!("[table]\ndelimiter = \" \"\n{}", crate::support::SCHEMA));
    let spaced = String::from_utf8(Table::usual().csv()).expect("text").replace(',', " ");
    folder.write("table.csv", spaced);
    let message = folder.refuse(4, PRIVATE);
    assert!(message.contains("another `format` or `delimiter`"), "{message}");
}

#[test]
fn what_cannot_be_asked_leaves_no_ledger() {
    let folder = folder_of(&Table::usual());
    let mut model = json(MODEL);
    model["schema"]["privacy"]["adjacency"] = "party".into();
    let public = model["certificate"]["public"].as_array_mut().expect("a list");
    public.push("the number of parties: NOT protected under party".into());
    folder.write("model.json", with_own_fingerprint(model).to_string());
    let message = folder.refuse(2, BY_THE_MODEL);
    assert_snapshot!(message, @"error: --epsilon has no price under row:party, and so no figures can be bought; give a schema of these rows that says who of them is protected, with --schema, or measure the model on rows that need no protection, with --public");
    assert!(!folder.exists("table.csv.ledger"));
    folder.succeed(PUBLIC);
    folder.succeed(PRIVATE);
}

#[test]
fn exact_figures_are_those_of_their_definitions() {
    let table = Table::usual();
    let folder = folder_of(&table);
    let figures = json(&folder.succeed(PUBLIC));
    assert_eq!(keys(&figures), ["n", "accuracy", "auc", "log_loss", "calibration"]);
    assert_eq!(keys(&figures["calibration"]), ["expected_error", "bias", "buckets"]);
    let scored: Vec<(f64, bool)> =
        by_hand(&json(MODEL), &table).into_iter().zip(table.0.iter().map(|row| row[OUTCOME] == "yes")).collect();
    let rows = scored.len() as f64;
    let correct = scored.iter().filter(|(probability, class)| (*probability > 0.5) == *class).count() as f64;
    let loss: f64 =
        scored.iter().map(|(probability, class)| -if *class { *probability } else { 1.0 - probability }.ln()).sum();
    let (mut wins, mut pairs) = (0.0, 0.0);
    for (positive, _) in scored.iter().filter(|(_, class)| *class) {
        for (negative, _) in scored.iter().filter(|(_, class)| !*class) {
            pairs += 1.0;
            wins += if positive > negative { 1.0 } else { 0.0 };
        }
    }
    assert_eq!(figures["n"], 400);
    assert!(is_close(number(&figures["accuracy"]), correct / rows, 1e-12));
    assert!(is_close(number(&figures["log_loss"]), loss / rows, 1e-9));
    assert!(is_close(number(&figures["auc"]), wins / pairs, 1e-9));
    let bias = scored.iter().map(|(probability, class)| f64::from(u8::from(*class)) - probability).sum::<f64>() / rows;
    assert!((number(&figures["calibration"]["bias"]) - bias).abs() < 1e-9);
}

#[test]
fn public_figures_are_printed_and_touch_no_ledger() {
    let folder = folder_of(&Table::usual());
    let before = folder.files();
    assert_snapshot!(folder.succeed(&PUBLIC.replace(" --json", "")), @"
    Rows             400
    Accuracy      0.8950
    AUC           0.9648
    Log loss      0.3066

    Calibration (mean gap 0.1067):
      probability     share  predicted   observed
      0.000..0.100    12.2%     0.0565     0.0000
      0.100..0.200    13.8%     0.1453     0.0000
      0.200..0.300     7.5%     0.2508     0.0333
      0.300..0.400     7.2%     0.3516     0.1724
      0.400..0.500     6.2%     0.4457     0.4400
      0.500..0.600     7.8%     0.5543     0.6129
      0.600..0.700     8.0%     0.6577     0.8125
      0.700..0.800     9.5%     0.7548     0.8158
      0.800..0.900    13.2%     0.8568     1.0000
      0.900..1.000    14.5%     0.9415     1.0000
    ");
    assert!(folder.files() == before);
}

/// A share of no rows would be printed as a figure that is no number.
#[test]
fn public_rows_without_a_usable_label_have_no_figures() {
    let folder = folder_of(&Table::of(5).with(|_, cells| cells[OUTCOME] = "maybe".to_owned()));
    assert_snapshot!(folder.refuse(3, PUBLIC), @"error: table.csv: no model can be measured on these rows: no row has a usable target; compare the spellings of its values with the schema in the model");
    folder.write("table.csv", Table::of(0).csv());
    folder.refuse(3, &PUBLIC.replace(" --json", ""));
}

/// Within eight standard errors of the noise, which the result itself states, and the width of its buckets.
#[test]
fn bought_figures_are_near_the_exact_ones_and_are_charged() {
    let folder = paying_folder_of(&Table::of(4000));
    let exact = json(&folder.succeed(PUBLIC));
    let bought = json(&folder.succeed(&format!("{PRIVATE} --json")));
    assert_eq!(
        keys(&bought),
        ["n", "accuracy", "auc", "log_loss", "calibration", "standard_error", "cut", "privacy", "ledger"]
    );
    assert!(bought["n"].is_null(), "the number of rows is private");
    for (figure, resolution) in [("accuracy", 1e-3), ("auc", 0.02), ("log_loss", 0.01)] {
        let error = number(&bought["standard_error"][figure]);
        assert!(error > 0.0 && error < 0.05, "{figure} ± {error}");
        let gap = (number(&bought[figure]) - number(&exact[figure])).abs();
        assert!(gap <= 8.0 * error + resolution, "{figure}: {gap} ± {error}");
    }
    assert_eq!(keys(&bought["privacy"]), ["relation", "epsilon", "delta", "mu", "public"]);
    let spent = folder.spent("table.csv.ledger");
    assert!(is_close(spent, number(&bought["privacy"]["mu"]), 1e-12));
    let entry = folder.ledger("table.csv.ledger")["entries"][0].take();
    assert_eq!(entry["purpose"], "evaluate");
    let epsilon = number(&entry["charged"][0]["epsilon"]);
    assert!(epsilon <= 4.0 + 1e-9 && epsilon > 3.99, "{epsilon}");
    // A second look is paid for again, and does not give the same noise.
    let again = json(&folder.succeed(&format!("{PRIVATE} --json")));
    assert_ne!(again["accuracy"], bought["accuracy"]);
    assert!(is_close(folder.spent("table.csv.ledger"), spent * 2f64.sqrt(), 1e-9));
}

#[test]
fn bought_figures_are_printed_with_their_error() {
    // So many rows that no figure is near an end of its range, where it would say so.
    let folder = paying_folder_of(&Table::of(4000));
    let text = folder.succeed(PRIVATE);
    let masked: String = text.chars().map(|letter| if letter.is_ascii_digit() { '#' } else { letter }).collect();
    let head: Vec<&str> = masked.lines().take(3).collect();
    assert_snapshot!(head.join("\n"), @r"
    Accuracy      #.####  ± #.#### (noise)
    AUC           #.####  ± #.#### (noise)
    Log loss      #.####  ± #.#### (noise)
    ");
    assert!(!text.contains("Rows "), "{text}");
    assert!(text.contains("the loss of a row counts as 4 at most"), "{text}");
    assert!(text.contains("this table has paid mu"), "{text}");
}

#[test]
fn an_evaluation_beyond_the_budget_is_refused() {
    let folder = folder_of(&Table::usual());
    folder.succeed("ledger init l.ledger --epsilon 1 --delta 1e-6");
    let message = folder
        .refuse(4, "evaluate --model model.json --data table.csv --schema schema.toml --epsilon 2 --ledger l.ledger");
    assert!(message.starts_with("error: the ledger refuses: under row:add-remove the request costs mu"), "{message}");
    // Delta is the ledger's where it is not given.
    let bought = json(&folder.succeed(
        "evaluate --model model.json --data table.csv --schema schema.toml --epsilon 1 --ledger l.ledger --json",
    ));
    assert!(is_close(number(&bought["privacy"]["delta"]), 1e-6, 1e-12));
}

#[test]
fn without_any_delta_one_is_asked_for() {
    let folder = folder_of(&Table::usual());
    without_a_limit(&folder);
    let mut public = json(MODEL);
    public["certificate"] = Value::Null;
    folder.write("model.json", public.to_string());
    let message = folder.run("evaluate --model model.json --data table.csv --epsilon 1");
    assert_eq!(message.code, 2);
    assert_snapshot!(message.stderr, @"error: neither ledger nor model states a delta, or only one of 1/1000 or more: give one with --delta");
}

/// A model file is not trusted, and what it states must not let an evaluation tell much.
#[test]
fn a_large_delta_is_not_taken_from_a_model_and_is_named_where_it_is_given() {
    let folder = folder_of(&Table::usual());
    without_a_limit(&folder);
    let mut changed = json(MODEL);
    changed["certificate"]["delta"] = 0.5.into();
    folder.write("changed.json", changed.to_string());
    let message = folder.run("evaluate --model changed.json --data table.csv --epsilon 1");
    assert_eq!((message.code, message.stderr.contains("give one with --delta")), (2, true), "{}", message.stderr);
    let text = folder.succeed("evaluate --model model.json --data table.csv --epsilon 1 --delta 0.5");
    assert!(text.contains("Delta 0.5 is large"), "{text}");
}

/// Rows of the features' kind, with the other unit: nothing may be bought of a table without the unit's column.
#[test]
fn a_model_of_grouped_units_needs_the_unit_to_be_evaluated() {
    let folder = folder_of(&Table::usual());
    folder.write("schema.toml", crate::support::SCHEMA.replace("\"row\"", "{ column = \"patient\", rows_max = 4 }"));
    folder.succeed(FIT);
    let bought = json(&folder.succeed(&format!("{PRIVATE} --json")));
    assert_eq!(bought["privacy"]["relation"], "patient<=4:add-remove");
    folder.write("open.csv", "age,dose,ward,outcome\n20,100,north,no\n");
    let message = folder.refuse(
        3,
        &PRIVATE.replace("table.csv", "open.csv").replace("--epsilon", "--ledger table.csv.ledger --epsilon"),
    );
    assert!(message.contains("has no column \"patient\""), "{message}");
    // Of public rows nobody is protected: without the column, and without a key, each counts.
    assert_eq!(json(&folder.succeed(&PUBLIC.replace("table.csv", "open.csv")))["n"], 1);
    folder.write("open.csv", "patient,age,dose,ward,outcome\nNA,20,100,north,no\np,30,100,north,yes\n");
    assert_eq!(json(&folder.succeed(&PUBLIC.replace("table.csv", "open.csv")))["n"], 2);
}
