//! `reticent predict`: scores by the model file's own coefficients.

use std::fs::File;

use arrow_array::types::Float64Type;
use arrow_array::{RecordBatch, cast::AsArray};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support::{AGE, DOSE, Folder, MODEL, Table, WARD, gzip, json, number, with_own_fingerprint, xz, zstd};

const PREDICT: &str = "predict --model model.json --data table.csv --out scored.csv";

/// Probability of `yes` for each row, from the numbers in the model file.
pub(crate) fn by_hand(model: &serde_json::Value, table: &Table) -> Vec<f64> {
    let entry = |column: &str| {
        let all = model["outputs"][0]["coefficients"].as_array().expect("a list");
        all.iter().find(|one| one["column"] == column).expect("the column")
    };
    let coefficient = |column: &str| number(&entry(column)["coefficient"]);
    // Within the range of the column.
    let product = |column: &str, value: f64| {
        let [low, high] = [0, 1].map(|end| number(&entry(column)["range"][end]));
        coefficient(column) * value.max(low).min(high)
    };
    let score = |row: &[String; 6]| {
        let (age, dose): (f64, f64) = (row[AGE].parse().expect("a number"), row[DOSE].parse().expect("a number"));
        let ward = match row[WARD].as_str() {
            "north" => coefficient("ward=north"),
            "south" => coefficient("ward=south"),
            _ => coefficient("ward=other"),
        };
        number(&model["outputs"][0]["intercept"])
            + product("age", age)
            + product("dose", dose)
            + product("symlog(dose)", (1.0 + dose).ln())
            + ward
    };
    table.0.iter().map(|row| 1.0 / (1.0 + (-score(row)).exp())).collect()
}

/// Class and probability of `yes` of every row of a written CSV file.
fn scored(folder: &Folder, name: &str) -> Vec<(String, f64)> {
    let text = folder.text(name);
    let (header, rows) = text.split_once('\n').expect("a header");
    assert_eq!(header, "predicted_class,probability_no,probability_yes");
    let parse = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let [class, no, yes] = fields[..] else { panic!("{line}") };
        let (no, yes): (f64, f64) = (no.parse().expect("a number"), yes.parse().expect("a number"));
        assert!((no + yes - 1.0).abs() < 1e-12);
        (class.to_owned(), yes)
    };
    rows.lines().map(parse).collect()
}

#[test]
fn a_name_that_promises_compression_is_refused() {
    let folder = Folder::with_table();
    folder.write("model.json", MODEL);
    for name in ["scored.csv.gz", "scored.csv.ZST", "scored.xz"] {
        let message = folder.refuse(2, &PREDICT.replace("scored.csv", name));
        assert!(message.contains("predictions are not compressed"), "{message}");
        assert!(!folder.exists(name));
    }
}

#[test]
fn predictions_are_those_of_the_coefficients() {
    let folder = Folder::new();
    let table = Table::usual();
    folder.write("table.csv", table.csv());
    assert_eq!(folder.succeed(PREDICT), "");
    let expected = by_hand(&json(MODEL), &table);
    let found = scored(&folder, "scored.csv");
    assert_eq!(found.len(), expected.len());
    for ((class, probability), expected) in found.iter().zip(&expected) {
        assert!((probability - expected).abs() < 1e-12, "{probability} {expected}");
        assert_eq!(class, if *expected > 0.5 { "yes" } else { "no" });
    }
    let positive = expected.iter().filter(|probability| **probability > 0.5).count();
    assert!((50..350).contains(&positive), "the model must not say the same of all: {positive}");
}

#[test]
fn values_beyond_a_range_count_as_its_border() {
    let folder = Folder::new();
    let table = Table::usual();
    folder.write("table.csv", table.csv());
    let mut model = json(MODEL);
    for (column, range) in [(0, [40.0, 50.0]), (1, [0.0, 1000.0]), (2, [1.0, 2.0])] {
        model["outputs"][0]["coefficients"][column]["range"] = serde_json::json!(range);
    }
    folder.write("model.json", model.to_string());
    folder.succeed(PREDICT);
    let expected = by_hand(&model, &table);
    let without = by_hand(&json(MODEL), &table);
    assert!(expected.iter().zip(&without).any(|(one, other)| (one - other).abs() > 0.1), "ranges that matter");
    for ((_, probability), expected) in scored(&folder, "scored.csv").iter().zip(&expected) {
        assert!((probability - expected).abs() < 1e-12, "{probability} {expected}");
    }
    // The figures that are bought read the rows in the same ranges: nearly exact at this price.
    folder.succeed("ledger init table.csv.ledger --epsilon 1000 --delta 1e-6");
    let [public, bought] = ["--public", "--schema schema.toml --epsilon 1000 --delta 1e-6"].map(|how| {
        let figures = json(&folder.succeed(&format!("evaluate --model model.json --data table.csv {how} --json")));
        number(&figures["log_loss"])
    });
    assert!((bought - public).abs() < 0.01, "{bought} {public}");
}

#[test]
fn parquet_output_holds_the_same_numbers() {
    let folder = Folder::new();
    // More rows than are written at once.
    let table = Table::of(20_000);
    folder.write("table.csv", table.csv());
    folder.succeed(PREDICT);
    folder.succeed(&PREDICT.replace("scored.csv", "scored.parquet"));
    let text = scored(&folder, "scored.csv");
    assert_eq!(text.len(), 20_000);
    let file = File::open(folder.path("scored.parquet")).expect("it was written");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet").build().expect("Parquet");
    let mut rows = text.iter();
    for batch in reader {
        let batch: RecordBatch = batch.expect("rows");
        let names: Vec<&str> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["predicted_class", "probability_no", "probability_yes"]);
        let (classes, no, yes) = (
            batch.column(0).as_string::<i32>(),
            batch.column(1).as_primitive::<Float64Type>(),
            batch.column(2).as_primitive::<Float64Type>(),
        );
        for row in 0..batch.num_rows() {
            let (class, probability) = rows.next().expect("as many rows");
            assert_eq!(classes.value(row), class);
            assert_eq!(yes.value(row).to_bits(), probability.to_bits());
            assert!((no.value(row) + probability - 1.0).abs() < 1e-12);
        }
    }
    assert!(rows.next().is_none());
}

#[test]
fn every_format_of_a_table_gives_the_same_predictions() {
    let folder = Folder::new();
    let table = Table::usual();
    folder.write("table.csv", table.csv());
    folder.succeed(PREDICT);
    let expected = folder.read("scored.csv");
    // The name says nothing: the first bytes do.
    for bytes in [gzip(&table.csv()), xz(&table.csv()), zstd(&table.csv()), table.parquet()] {
        folder.write("table.csv", bytes);
        folder.succeed(PREDICT);
        assert!(folder.read("scored.csv") == expected, "other predictions");
    }
}

#[test]
fn columns_may_come_in_any_order_and_the_target_may_be_absent() {
    let folder = Folder::new();
    folder.write("table.csv", "ward,age,dose\nsouth,80,10\nnorth,10,10\n");
    folder.succeed(PREDICT);
    let table = Table::of(2).with(|index, row| {
        row[WARD] = ["south", "north"][index].to_owned();
        row[AGE] = ["80", "10"][index].to_owned();
        "10".clone_into(&mut row[DOSE]);
    });
    let expected = by_hand(&json(MODEL), &table);
    for ((_, found), expected) in scored(&folder, "scored.csv").iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12);
    }
}

/// Class names with commas and quotes stay one field.
#[test]
fn class_names_are_quoted() {
    let folder = Folder::new();
    folder.write("table.csv", "ward,age,dose\nsouth,100,10\n");
    let renamed = json(&MODEL.replace("\"yes\"", "\"yes, \\\"very\\\"\""));
    folder.write("model.json", with_own_fingerprint(renamed).to_string());
    folder.succeed(PREDICT);
    let text = folder.text("scored.csv");
    assert!(text.starts_with("predicted_class,probability_no,\"probability_yes, \"\"very\"\"\"\n"), "{text}");
    assert!(text.lines().nth(1).expect("a row").starts_with("\"yes, \"\"very\"\"\","), "{text}");
}

/// For a pipe: the file's bytes, and nothing else. Of other commands a result is one file.
#[test]
fn predictions_go_to_stdout_where_that_is_asked_for() {
    let folder = Folder::new();
    folder.write("table.csv", Table::of(20_000).csv());
    folder.succeed(PREDICT);
    let to_stdout = PREDICT.replace("scored.csv", "-");
    assert!(folder.succeed(&to_stdout) == folder.text("scored.csv"), "another text");
    assert!(!folder.exists("-"));
    folder.write("table.csv", "other,columns\n1,2\n");
    folder.refuse(3, &to_stdout);
    for line in [
        "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out -",
        "fit-public --data table.csv --schema schema.toml --out -",
        "walr prepare --data table.csv --schema schema.toml --id event --out -",
        "party ballot --schema schema.toml --auxiliary table.csv --party north --out -",
    ] {
        assert_eq!(
            folder.refuse(2, line),
            "error: -: this result is a file, written whole or not at all, and does not go to stdout; choose a name for it (./- if it \
             is to be called so)\n",
            "{line}"
        );
    }
}
