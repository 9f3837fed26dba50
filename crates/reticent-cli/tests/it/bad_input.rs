//! Tables that are not as they should be. What depends on a row's values has a declared meaning and cannot be told from
//! outside; what is a public fact about the file is refused, at no charge, without a word from a row.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int8Array, Int64Array, NullArray,
    StringArray, UInt8Array,
};
use insta::assert_snapshot;

use crate::support::{
    AGE, CANARY, DOSE, FIT, Folder, HEADER, OUTCOME, Outcome, SCHEMA, Table, WARD, gzip, json, parquet_of,
    without_remark, xz, zstd,
};

const FIT_WITH_LEDGER: &str =
    "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --ledger l.ledger --out model.json";

/// The cells of `dirty` mean the cells of `plain`: a fixed model gives the same predictions and exact figures, and from a
/// fit's exit code, stdout, stderr and certificate nobody can tell which table was read.
#[track_caller]
fn assert_absorbed(dirty: &[u8], plain: &[u8]) {
    let told: Vec<_> = [dirty, plain].map(what_is_told).into();
    assert!(told[0].1 == told[1].1, "predictions differ");
    assert_eq!(told[0].0, told[1].0);
    for table in [dirty, plain] {
        assert_fitted_as_usual(table);
    }
}

/// A fit tells of this table what it tells of the usual one.
#[track_caller]
fn assert_fitted_as_usual(table: &[u8]) {
    let folder = Folder::with_table();
    folder.write("table.csv", table);
    let stdout = folder.succeed(FIT);
    let mut certificate = folder.json("model.json")["certificate"].take();
    certificate["ledger"]["id"] = "".into();
    certificate["ledger"]["seal"] = "".into();
    let usual = Folder::with_table();
    assert_eq!(without_remark(&folder.masked(&stdout)), usual.masked(&usual.succeed(FIT)));
    let mut expected = usual.json("model.json")["certificate"].take();
    expected["ledger"]["id"] = "".into();
    expected["ledger"]["seal"] = "".into();
    assert_eq!(certificate, expected);
    assert_eq!(folder.ledger("table.csv.ledger")["relations"], usual.ledger("table.csv.ledger")["relations"]);
}

/// Exact figures and predictions of a fixed model.
fn what_is_told(table: &[u8]) -> (String, Vec<u8>) {
    let folder = Folder::new();
    folder.write("table.csv", table);
    let figures = folder.succeed("evaluate --model model.json --data table.csv --public --json");
    folder.succeed("predict --model model.json --data table.csv --out predictions.csv");
    (figures, folder.read("predictions.csv"))
}

#[test]
fn values_out_of_bounds_are_clamped() {
    let dirty = Table::usual().with(|index, row| {
        let value = ["101", "1e300", "inf", "1e999", "+Infinity", "-1", "-inf", "-1e999"][index % 8];
        if index % 3 == 0 {
            row[AGE] = value.to_owned();
        }
    });
    let plain = Table::usual().with(|index, row| {
        if index % 3 == 0 {
            row[AGE] = if index % 8 < 5 { "100" } else { "0" }.to_owned();
        }
    });
    assert_absorbed(&dirty.csv(), &plain.csv());
}

#[test]
fn missing_nan_and_mistyped_numbers_are_the_middle_of_the_bounds() {
    let dirty = Table::usual().with(|index, row| {
        if index % 2 == 0 {
            row[DOSE] =
                ["", "NaN", "nan", "?", CANARY, "1,000".split(',').next().expect("one"), "0x1f"][index % 7].into();
        }
    });
    let plain = Table::usual().with(|index, row| {
        if index % 2 == 0 {
            row[DOSE] = if index % 7 == 5 { "1" } else { "2500" }.to_owned();
        }
    });
    assert_absorbed(&dirty.csv(), &plain.csv());
}

#[test]
fn unknown_and_missing_categories_are_other() {
    let dirty = Table::usual().with(|index, row| match index % 5 {
        0 => CANARY.clone_into(&mut row[WARD]),
        1 => row[WARD].clear(),
        _ => {}
    });
    let plain = Table::usual().with(|index, row| {
        if index % 5 < 2 {
            "other".clone_into(&mut row[WARD]);
        }
    });
    assert_absorbed(&dirty.csv(), &plain.csv());
}

/// Neither an error nor a count of them: a label outside the classes is a private fact.
#[test]
fn labels_outside_the_classes_have_no_weight() {
    let strange = |label: &str| {
        Table::usual().with(|index, row| {
            if index % 4 == 0 {
                label.clone_into(&mut row[OUTCOME]);
            }
        })
    };
    assert_absorbed(&strange(CANARY).csv(), &strange("").csv());
    // They are left out of exact figures of public rows, which say so by `n`.
    let folder = Folder::new();
    folder.write("table.csv", strange(CANARY).csv());
    let figures = json(&folder.succeed("evaluate --model model.json --data table.csv --public --json"));
    assert_eq!(figures["n"], 300);
}

#[test]
fn one_class_only_and_constant_columns_are_fitted() {
    let constant = Table::usual().with(|_, row| {
        "33".clone_into(&mut row[AGE]);
        "7.5".clone_into(&mut row[DOSE]);
        "north".clone_into(&mut row[WARD]);
        "yes".clone_into(&mut row[OUTCOME]);
    });
    assert_absorbed(&constant.csv(), &constant.csv());
    let folder = Folder::new();
    folder.write("table.csv", constant.csv());
    // The AUC over one class is not defined: null, and no error.
    let figures = json(&folder.succeed("evaluate --model model.json --data table.csv --public --json"));
    assert!(figures["auc"].is_null() && figures["accuracy"].is_number(), "{figures}");
}

/// The lines of the usual table, some of them replaced.
fn lines_replaced(replace: impl Fn(usize) -> Option<Vec<u8>>) -> Vec<u8> {
    let csv = Table::usual().csv();
    let mut bytes = Vec::new();
    for (index, line) in csv.split_inclusive(|byte| *byte == b'\n').enumerate() {
        match index.checked_sub(1).and_then(&replace) {
            Some(other) => bytes.extend(other),
            None => bytes.extend(line),
        }
    }
    bytes
}

#[test]
fn ragged_rows_lack_fields_or_have_too_many() {
    let dirty = lines_replaced(|index| match index {
        3 => Some(b"0,44\n".to_vec()),
        5 => Some(format!("1,44,100,south,x,yes,{CANARY},{CANARY}\n").into_bytes()),
        7 => Some(b"\n".to_vec()),
        _ => None,
    });
    let plain = lines_replaced(|index| match index {
        3 => Some(b"0,44,2500,other,x,?\n".to_vec()),
        5 => Some(b"1,44,100,south,x,yes\n".to_vec()),
        7 => Some(Vec::new()),
        _ => None,
    });
    assert_absorbed(&dirty, &plain);
}

#[test]
fn text_that_is_not_utf8_is_an_unknown_value() {
    let dirty = lines_replaced(|index| match index {
        2 => Some(b"0,\xff\xfe,100,\xc3\x28,\xed\xa0\x80,yes\n".to_vec()),
        4 => Some(b"1,20,100,nor\0th,\0,\xffno\n".to_vec()),
        _ => None,
    });
    let plain = lines_replaced(|index| match index {
        2 => Some(b"0,50,100,other,x,yes\n".to_vec()),
        4 => Some(b"1,20,100,other,x,?\n".to_vec()),
        _ => None,
    });
    assert_absorbed(&dirty, &plain);
}

#[test]
fn a_field_of_ten_million_characters_is_an_unknown_value() {
    let long = CANARY.repeat(10_000_000 / CANARY.len() + 1);
    let row = |cell: &str| format!("0,20,100,{cell},x,yes\n0,{cell},100,north,{cell},{cell}\n").into_bytes();
    let dirty = lines_replaced(|index| (index == 9).then(|| row(&long)));
    let plain = lines_replaced(|index| (index == 9).then(|| b"0,20,100,other,x,yes\n0,50,100,north,x,?\n".to_vec()));
    assert_absorbed(&dirty, &plain);
}

#[test]
fn a_quote_that_is_never_closed_makes_the_rest_one_field() {
    let dirty = lines_replaced(|index| (index == 200).then(|| b"50,20,100,north,x,\"yes\n".to_vec()));
    let plain = lines_replaced(|index| {
        (index >= 200).then(|| if index == 200 { b"50,20,100,north,x,?\n".to_vec() } else { Vec::new() })
    });
    assert_absorbed(&dirty, &plain);
}

/// Under add-remove the number of rows is private: none at all is a table like any other.
#[test]
fn header_only_gives_a_model() {
    let header = Table(Vec::new()).csv();
    assert_fitted_as_usual(&header);
    let folder = Folder::new();
    folder.write("table.csv", &header);
    folder.succeed("predict --model model.json --data table.csv --out predictions.csv");
    assert_eq!(folder.read("predictions.csv"), b"predicted_class,probability_no,probability_yes\n");
    // Of public rows it is said that there are none: see `evaluate.rs`.
}

/// In Parquet, too, nulls, strange text and labels are absorbed.
#[test]
fn parquet_cells_are_absorbed_as_text_cells_are() {
    let parquet = |ages: [Option<f64>; 4], wards: [Option<&str>; 4], outcomes: [Option<&str>; 4]| {
        let columns: [(&str, ArrayRef); 4] = [
            ("age", Arc::new(Float64Array::from(ages.to_vec()))),
            ("dose", Arc::new(Float64Array::from(vec![1.0; 4]))),
            ("ward", Arc::new(StringArray::from(wards.to_vec()))),
            ("outcome", Arc::new(StringArray::from(outcomes.to_vec()))),
        ];
        parquet_of(columns)
    };
    let dirty = parquet(
        [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1e300)],
        [Some(CANARY), None, Some("north"), Some("south")],
        [Some("yes"), Some("no"), Some(CANARY), None],
    );
    let plain = parquet(
        [Some(50.0), Some(50.0), Some(100.0), Some(0.0)],
        [Some("other"), Some("other"), Some("north"), Some("south")],
        [Some("yes"), Some("no"), None, Some("?")],
    );
    assert_absorbed(&dirty, &plain);
}

#[test]
fn a_missing_column_is_named_with_those_that_are_there() {
    let folder = Folder::new();
    let csv = String::from_utf8(Table::usual().csv()).expect("UTF-8").replacen("dose", "doses", 1);
    folder.write("table.csv", csv);
    assert_snapshot!(folder.refuse(3, FIT), @r#"error: table.csv has no column "dose", which the schema lists as a feature with bounds; did you mean "doses"?; its columns are "patient", "age", "doses", "ward", "comment", "outcome"; mend the name in the schema or give the right file"#);
    let predict = folder.refuse(3, "predict --model model.json --data table.csv --out p.csv");
    assert!(predict.contains("has no column \"dose\""), "{predict}");
    let evaluate = folder.refuse(3, "evaluate --model model.json --data table.csv --public");
    assert!(evaluate.contains("has no column \"dose\""), "{evaluate}");
}

#[test]
fn a_header_that_is_not_utf_8_is_said_to_be_that() {
    let folder = Folder::new();
    folder.write("table.csv", b"age,d\xF6se,ward,outcome\n20,100,north,no\n");
    assert_snapshot!(folder.refuse(3, FIT), @r#"error: table.csv has no column "dose", which the schema lists as a feature with bounds; did you mean "d�se"?; its columns are "age", "d�se", "ward", "outcome" (� stands for letters that are not UTF-8: save the table as UTF-8); mend the name in the schema or give the right file"#);
    assert_snapshot!(folder.refuse(3, "schema draft table.csv"), @"error: the first line of table.csv does not look like a header: it has letters that are not UTF-8; save the file as UTF-8; give --no-header if it is a row of data, or --header if it is a header all the same");
}

#[test]
fn a_missing_target_is_an_error_for_a_fit_only() {
    let folder = Folder::new();
    folder.write("table.csv", "age,dose,ward\n20,100,north\n");
    assert_snapshot!(folder.refuse(3, FIT), @r#"error: table.csv has no column "outcome", which the schema names as the target with classes; its columns are "age", "dose", "ward"; mend the name in the schema or give the right file"#);
    folder.succeed("predict --model model.json --data table.csv --out p.csv");
}

#[test]
fn a_duplicate_column_is_an_error_only_if_the_schema_uses_it() {
    let folder = Folder::new();
    folder.write("table.csv", format!("age,dose,ward,age,outcome\n20,100,{CANARY},30,no\n"));
    assert_snapshot!(folder.refuse(3, FIT), @r#"error: table.csv has more than one column "age", which the schema lists as a feature with bounds; rename or remove all but one of them in the file"#);
    folder.write("table.csv", "age,dose,x,ward,x,outcome\n20,100,1,south,2,no\n");
    folder.succeed(FIT);
}

#[test]
fn an_empty_file_lacks_its_header() {
    let folder = Folder::new();
    folder.write("table.csv", "");
    assert_snapshot!(folder.refuse(3, FIT), @"error: table.csv is empty, but a header line is expected; give the complete file, or write header = false and columns = [..] under [table] in the schema if it has no header");
    for packed in [gzip(b""), xz(b""), zstd(b"")] {
        folder.write("table.csv", packed);
        folder.refuse(3, FIT);
    }
}

/// The name that is told is the schema's, whatever the first line is.
#[test]
fn a_header_in_other_capitals_is_told_from_a_row() {
    let folder = Folder::with_table();
    folder.write("table.csv", "AGE,DOSE,WARD,OUTCOME\n50,10,north,no\n");
    assert!(folder.refuse(3, FIT).contains("it has \"age\" in other capitals"));
}

/// The first line may be a row: it is not quoted.
#[test]
fn a_row_in_place_of_the_header_is_not_quoted() {
    let folder = Folder::new();
    folder.write("table.csv", format!("20,100,{CANARY},no\n30,200,north,yes\n"));
    assert_snapshot!(folder.refuse(3, FIT), @r#"error: none of the schema's columns is in the first line of table.csv; either the schema belongs to another table, or the file has no header: then write header = false and columns = [..] under [table] in the schema, or format = "libsvm" if it is one of libsvm"#);
    folder.write("table.csv", format!("age,{CANARY},100,no\n"));
    let message = folder.refuse(3, FIT);
    assert!(message.contains("has no column"), "{message}");
}

#[test]
fn another_delimiter_is_guessed() {
    let folder = Folder::new();
    folder.write(
        "table.csv",
        Table::usual().csv().iter().map(|byte| if *byte == b',' { b';' } else { *byte }).collect::<Vec<_>>(),
    );
    assert_snapshot!(folder.refuse(3, FIT), @r#"error: none of the schema's columns is in the first line of table.csv; it has no ',', but it has ';': probably the schema needs delimiter = ";" under [table]"#);
}

#[test]
fn the_schema_of_another_table_is_refused() {
    let folder = Folder::with_table();
    let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"income\"\nclasses = [0, 1]\n\
                  [features]\nhours = { bounds = [0, 100] }\nsex = { categories = [\"f\", \"m\"] }\n";
    folder.write("schema.toml", schema);
    assert_snapshot!(folder.refuse(3, FIT), @r#"error: none of the schema's columns is in the first line of table.csv; either the schema belongs to another table, or the file has no header: then write header = false and columns = [..] under [table] in the schema, or format = "libsvm" if it is one of libsvm"#);
}

#[test]
fn a_header_unlike_the_declared_one_is_refused() {
    let folder = Folder::with_table();
    let columns = HEADER.map(|name| format!("{name:?}")).join(", ").replace("\"ward\"", "\"station\"");
    folder.write("schema.toml", format!("[table]\ncolumns = [{columns}, \"ward\"]\n{}", crate::support::SCHEMA));
    assert_snapshot!(folder.refuse(3, FIT), @"error: the header of table.csv has 6 columns, but table.columns in the schema has 7; mend table.columns, or leave it out to use the file's header");
}

/// Its footer comes last.
#[cfg(unix)]
#[test]
fn a_parquet_file_through_a_pipe_is_refused() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 10 --delta 1e-6");
    let columns = [("age", Arc::new(Float64Array::from(vec![1.0])) as ArrayRef)];
    let mut command = folder.reticent();
    command
        .args(FIT_WITH_LEDGER.replace("table.csv", "/dev/stdin").split_whitespace())
        .write_stdin(parquet_of(columns));
    let outcome = Outcome::of(command.output().expect("the program starts"));
    assert_eq!(outcome.code, 3);
    assert_snapshot!(outcome.stderr, @"error: /dev/stdin is a Parquet file through a pipe, which is not read; name the file itself, or write what comes through the pipe to one");
}

#[test]
fn a_parquet_column_of_a_type_that_cannot_fit_is_refused() {
    let folder = Folder::new();
    let text = |values: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let columns = [
        ("age", text([CANARY, "20"])),
        ("dose", Arc::new(Float64Array::from(vec![1.0, 2.0])) as ArrayRef),
        ("ward", text(["north", CANARY])),
        ("outcome", text(["yes", "no"])),
    ];
    folder.write("table.csv", parquet_of(columns));
    let message = folder.refuse(3, FIT);
    for part in [
        "column \"age\" of table.csv has the Parquet type Utf8",
        "a number, a boolean, a date or a time",
        "mend the schema",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

/// No row of such a column can have a declared class or category: that is a public fact, and a fit would be paid for nothing.
#[test]
fn parquet_columns_whose_type_holds_no_declared_spelling_are_refused() {
    let folder = Folder::new();
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6");
    let text = |values: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let booleans = || -> ArrayRef { Arc::new(BooleanArray::from(vec![true, false])) };
    let whole = || -> ArrayRef { Arc::new(Int64Array::from(vec![0, 1])) };
    let floats = || -> ArrayRef { Arc::new(Float64Array::from(vec![0.0, 1.0])) };
    let write = |ward: ArrayRef, outcome: ArrayRef| {
        let columns = [("age", floats()), ("dose", floats()), ("ward", ward), ("outcome", outcome)];
        folder.write("table.csv", parquet_of(columns));
    };
    let wards = || text(["north", "south"]);
    let mut messages = String::new();
    for (ward, outcome) in [
        (wards(), booleans()),
        (wards(), whole()),
        (wards(), floats()),
        (booleans(), text(["no", "yes"])),
        (whole(), text(["no", "yes"])),
    ] {
        write(ward, outcome);
        messages.push_str(&folder.refuse(3, FIT_WITH_LEDGER));
    }
    assert_snapshot!(messages, @r#"
    error: column "outcome" of table.csv has the Parquet type Boolean, and fewer than two of its classes in the schema can be a value of that type: write classes = [false, true], or turn the column into text
    error: column "outcome" of table.csv has the Parquet type Int64, and fewer than two of its classes in the schema can be a value of that type: write whole numbers of this type, such as classes = [0, 1], or turn the column into text
    error: column "outcome" of table.csv has the Parquet type Float64, and fewer than two of its classes in the schema can be a value of that type: write numbers, such as classes = [0, 1], or turn the column into text
    error: column "ward" of table.csv has the Parquet type Boolean, and none of its categories in the schema can be a value of that type: write categories = [false, true], or turn the column into text
    error: column "ward" of table.csv has the Parquet type Int64, and none of its categories in the schema can be a value of that type: write whole numbers of this type, such as categories = [1, 2, 3], or turn the column into text
    "#);
    assert!(folder.spent("l.ledger") <= 0.0);
    for (outcome, classes) in [
        (booleans(), "[0, 1]"),
        (booleans(), r#"["false", "TRUE"]"#),
        (whole(), "[false, true]"),
        (floats(), r#"["0.0", ["yes", "1"]]"#),
    ] {
        write(wards(), outcome);
        folder.write("schema.toml", SCHEMA.replace(r#"["no", "yes"]"#, classes));
        folder.succeed("fit-public --data table.csv --schema schema.toml --out model.json");
    }
}

#[test]
fn the_message_about_a_parquet_type_is_a_sentence() {
    let folder = Folder::new();
    let text: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    folder.write("table.csv", parquet_of(["age", "dose", "ward", "outcome"].map(|name| (name, text.clone()))));
    let message = folder.refuse(3, FIT);
    assert!(!message.contains("it the schema"), "{message}");
}

/// Whatever was read before the break is thrown away, and the ledger is not charged.
#[test]
fn truncated_files_are_refused() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6");
    let table = Table::of(20_000);
    let mut messages = String::new();
    for (name, packed) in [
        ("gzip", gzip(&table.csv())),
        ("xz", xz(&table.csv())),
        ("zstd", zstd(&table.csv())),
        ("Parquet", table.parquet()),
    ] {
        // Cut in the middle, and short of the last byte.
        for length in [packed.len() / 2, packed.len() - 1] {
            folder.write("table.csv", &packed[..length]);
            let message = folder.refuse(3, FIT_WITH_LEDGER);
            if length == packed.len() - 1 {
                messages.push_str(&format!("{name}: {message}"));
            } else {
                assert!(message.contains("is cut short") || message.contains("is damaged"), "{name}: {message}");
            }
            folder.write("whole.json", crate::support::MODEL);
            folder.refuse(3, "predict --model whole.json --data table.csv --out p.csv");
            folder.refuse(3, "evaluate --model whole.json --data table.csv --public --json");
            folder.refuse(
                3,
                "evaluate --model whole.json --data table.csv --schema schema.toml --epsilon 1 --ledger l.ledger",
            );
        }
    }
    assert_snapshot!(messages, @r"
    gzip: error: table.csv is cut short: its gzip data stop before their end, or something else follows them; copy or download it again
    xz: error: table.csv is cut short: its xz data stop before their end, or something else follows them; copy or download it again
    zstd: error: table.csv is cut short: its zstd data stop before their end, or something else follows them; copy or download it again
    Parquet: error: table.csv is cut short: its Parquet data stop before their end, or something else follows them; copy or download it again
    ");
    assert!(folder.spent("l.ledger") <= 0.0);
}

/// Nor one of a type that is too narrow for it, has too few decimals, or holds bytes of another length.
#[test]
fn parquet_columns_whose_type_is_too_narrow_are_refused() {
    let folder = Folder::new();
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6");
    let words = |values: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let floats = || -> ArrayRef { Arc::new(Float64Array::from(vec![0.0, 1.0])) };
    let bytes = FixedSizeBinaryArray::try_from_iter([[0u8; 16], [1; 16]].into_iter()).expect("of one length");
    let decimals = Decimal128Array::from(vec![1, 2]).with_precision_and_scale(9, 2).expect("legal");
    let small: ArrayRef = Arc::new(Int8Array::from(vec![0, 1]));
    let mut messages = String::new();
    for (ward, wards, outcome, classes) in [
        (words(["a", "b"]), "[\"a\", \"b\"]", small.clone(), "[1000, 2000]"),
        (words(["a", "b"]), "[\"a\", \"b\"]", Arc::new(UInt8Array::from(vec![0, 1])), "[-1, 1]"),
        (words(["a", "b"]), "[\"a\", \"b\"]", Arc::new(NullArray::new(2)), "[0, 1]"),
        (Arc::new(decimals), "[0.001, 0.002]", small.clone(), "[0, 1]"),
        (Arc::new(bytes), "[1, 2]", small, "[0, 1]"),
    ] {
        let columns = [("age", floats()), ("dose", floats()), ("ward", ward), ("outcome", outcome)];
        folder.write("table.csv", parquet_of(columns));
        let schema = SCHEMA.replace("[\"no\", \"yes\"]", classes).replace("[\"north\", \"south\"]", wards);
        folder.write("schema.toml", schema);
        messages.push_str(&folder.refuse(3, FIT_WITH_LEDGER));
    }
    assert_snapshot!(messages, @r#"
    error: column "outcome" of table.csv has the Parquet type Int8, and fewer than two of its classes in the schema can be a value of that type: write whole numbers of this type, such as classes = [0, 1], or turn the column into text
    error: column "outcome" of table.csv has the Parquet type UInt8, and fewer than two of its classes in the schema can be a value of that type: write whole numbers of this type, such as classes = [0, 1], or turn the column into text
    error: column "outcome" of table.csv has the Parquet type Null; a column that the schema names as the target with classes should be text, a boolean or a number: mend the schema or convert the column
    error: column "ward" of table.csv has the Parquet type Decimal128(9, 2), and none of its categories in the schema can be a value of that type: write numbers of as many decimals, such as categories = [1, 2, 3], or turn the column into text
    error: column "ward" of table.csv has the Parquet type FixedSizeBinary(16), and none of its categories in the schema can be a value of that type: write texts of as many bytes, or turn the column into text
    "#);
    assert!(folder.spent("l.ledger") <= 0.0);
}

/// Reading may take long: what is refused whatever the rows are is refused before.
#[test]
fn a_ledger_refuses_before_a_table_is_read_to_its_end() {
    let folder = Folder::with_table();
    folder.succeed(FIT);
    folder.remove("model.json");
    folder.succeed("ledger init table.csv.ledger --epsilon 1.2 --delta 1e-6");
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6 --promise row:replace");
    let packed = gzip(&Table::of(20_000).csv());
    folder.write("table.csv", &packed[..packed.len() / 2]);
    folder.write("whole.json", crate::support::MODEL);
    for refused in [FIT, FIT_WITH_LEDGER, "evaluate --model whole.json --data table.csv --epsilon 1 --json"] {
        let message = folder.refuse(4, refused);
        assert!(message.starts_with("error: the ledger refuses"), "{message}");
    }
}

#[test]
fn a_truncated_file_leaves_no_new_ledger_beside_it() {
    let folder = Folder::new();
    let packed = gzip(&Table::of(20_000).csv());
    folder.write("table.csv", &packed[..packed.len() / 2]);
    folder.refuse(3, FIT);
}

#[test]
fn damaged_files_are_refused() {
    let folder = Folder::with_table();
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6");
    let table = Table::of(5_000);
    let mut messages = String::new();
    // Of Parquet the footer is damaged: its pages have no checksum, so a value that is overwritten is another value.
    let parquet = table.parquet();
    let length = parquet.last_chunk::<8>().expect("length and mark").first_chunk::<4>().expect("the length");
    let footer = parquet.len() - 8 - u32::from_le_bytes(*length) as usize;
    for (name, mut packed, from) in [
        ("gzip", gzip(&table.csv()), 5000),
        ("xz", xz(&table.csv()), 5000),
        ("zstd", zstd(&table.csv()), 5000),
        ("Parquet", parquet, footer),
    ] {
        packed[from..from + 64].fill(0xff);
        folder.write("table.csv", packed);
        messages.push_str(&format!("{name}: {}", folder.refuse(3, FIT_WITH_LEDGER)));
    }
    assert_snapshot!(messages, @r"
    gzip: error: table.csv is damaged (corrupt deflate stream): its gzip data cannot be decoded; copy it again or write it anew
    xz: error: table.csv is damaged (lzma data error): its xz data cannot be decoded; copy it again or write it anew
    zstd: error: table.csv is damaged (Restored data doesn't match checksum): its zstd data cannot be decoded; copy it again or write it anew
    Parquet: error: table.csv is damaged: its Parquet data cannot be decoded; copy it again or write it anew
    ");
    assert!(folder.spent("l.ledger") <= 0.0);
}

/// A frame that its writer packed for more memory than a reader gives it is whole.
#[test]
fn zstd_of_a_large_window_is_not_called_damaged() {
    let folder = Folder::with_table();
    let text = Table::usual().csv();
    // A frame whose header asks for a window of 2^28 bytes, with one last block of bytes as they are.
    let block = (1 | text.len() << 3).to_le_bytes();
    folder.write("table.csv", [b"\x28\xB5\x2F\xFD\x00\x90", &block[..3], &text].concat());
    assert_snapshot!(folder.refuse(3, FIT), @"error: table.csv is zstd with a window of more than 128 MiB, which is not read; it is not damaged: pack it anew without --long, or with --long=27");
}

/// Where the number of rows is public, none is nothing to pay for.
#[test]
fn no_rows_under_replace_cost_nothing() {
    let folder = Folder::new();
    folder.write("table.csv", format!("{}\n", HEADER.join(",")));
    let schema = SCHEMA.replace("add-remove", "replace");
    folder.write("schema.toml", &schema);
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6 --promise row:replace");
    assert_snapshot!(folder.refuse(3, FIT_WITH_LEDGER), @"error: table.csv: the table has no rows; under row:replace their number is public, and nothing can be learnt from none. Nothing was charged");
    assert!(folder.spent("l.ledger") <= 0.0);
    // Their number is private under add-remove: the same file is fitted.
    folder.write("schema.toml", SCHEMA);
    folder.succeed(FIT);
}

/// Asked with one pair of classes after the other, the refusal of a table in which no row has one of them would list the labels, unpaid.
#[test]
fn that_no_row_has_a_label_of_these_classes_is_told_of_one_choice_of_classes() {
    let folder = Folder::new();
    folder.write("table.csv", "a,y\n0.5,yes\n0.25,no\n");
    let schema = |classes: &str| {
        let text = "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nclasses = CLASSES\n[features]\na = { bounds = [0, 1] }\n";
        folder.write("schema.toml", text.replace("CLASSES", classes));
    };
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6 --promise row:label");
    schema(r#"["Yes", "No"]"#);
    let refused = folder.run(FIT_WITH_LEDGER);
    assert!(refused.code == 3 && refused.stderr.contains("no row has a usable label"), "{}", refused.stderr);
    assert!(folder.spent("l.ledger") <= 0.0);
    for classes in [r#"["yes", "other"]"#, r#"["no", "other"]"#] {
        schema(classes);
        folder.refuse(4, FIT_WITH_LEDGER);
    }
}

#[test]
fn other_kinds_of_files_are_named() {
    let folder = Folder::new();
    folder.write("table.csv", b"PK\x03\x04\x14\x00\x00\x00\x08\x00SECRETCELL42");
    assert_snapshot!(folder.refuse(3, FIT), @"error: table.csv is a zip archive or an office document, which is not read; unpack it, or save the sheet as CSV");
    folder.write("table.csv", "\u{feff}age".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    assert_snapshot!(folder.refuse(3, FIT), @"error: table.csv is text in UTF-16, which is not read; save it as UTF-8");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = Folder::new();
    assert_snapshot!(folder.refuse(5, FIT), @"error: there is no file table.csv; check the spelling and the folder");
    let piped = FIT.replace("table.csv", "- --ledger l.ledger");
    assert_snapshot!(folder.refuse(5, &piped), @"error: there is no file -; a table from a pipe is /dev/stdin");
    std::fs::create_dir(folder.path("table.csv")).expect("a folder");
    assert_snapshot!(folder.refuse(5, FIT), @"error: table.csv is a folder; name one CSV, libsvm or Parquet file");
}

/// A line without a byte is no row: counted by the rows that are left, labels would be told that are spelt so.
#[test]
fn labels_that_are_blank_lines_are_refused() {
    let folder = Folder::new();
    let schema = |table: &str, classes: &str| {
        format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[table]\n{table}\n[target]\ncolumn = \"y\"\nclasses = {classes}\n[features]\n"
        )
    };
    let blank = "[[\"no\", \"\"], \"yes\"]";
    for (table, head) in [("", "y\n"), ("header = false\ncolumns = [\"y\"]", "")] {
        folder.write("schema.toml", schema(table, blank));
        folder.write("table.csv", format!("{head}yes\n\nyes\n"));
        assert!(folder.refuse(3, FIT).contains("such a row would be a blank line, which is not a row"));
        folder.write("schema.toml", schema(table, "[\"no\", \"yes\"]"));
        folder.succeed(&FIT.replace("model.json", "words.json"));
        folder.remove("words.json");
        folder.remove("table.csv.ledger");
    }
    // With a second column its row has a delimiter.
    folder.write("schema.toml", schema("", blank));
    folder.write("table.csv", "y,note\nyes,\n,\nyes,\n");
    folder.succeed(FIT);
    assert!(folder.json("model.json")["certificate"].to_string().contains("a figure of 3 for the number of units"));
}

/// A record must not be printed as if its cells were names of columns.
#[test]
fn json_is_no_table() {
    let folder = Folder::new();
    for text in [
        format!("{{\"age\": 20, \"note\": \"{CANARY}\"}}\n{{\"age\": 30, \"note\": \"x\"}}\n"),
        format!("[\n  {{\"age\": 20, \"note\": \"{CANARY}\"}}\n]\n"),
        format!("\u{feff}\n  [[20, \"{CANARY}\"]]\n"),
        format!("[\"{CANARY}\", 20]\n"),
        format!("[null, \"{CANARY}\"]\n"),
    ] {
        for bytes in [text.clone().into_bytes(), gzip(text.as_bytes())] {
            folder.write("table.csv", bytes);
            for command in [
                "schema draft table.csv",
                "schema draft table.csv --header",
                FIT,
                "predict --model model.json --data table.csv --out p.csv",
                "evaluate --model model.json --data table.csv --public",
            ] {
                let message = folder.refuse(3, command);
                assert_eq!(
                    message, "error: table.csv is JSON, which is not read; convert it to CSV or Parquet\n",
                    "{command}"
                );
            }
        }
    }
    // Some databases write names so.
    folder.write("table.csv", "[age],[dose],{x}\n1,2,3\n");
    assert!(folder.succeed("schema draft table.csv").contains("\"[age]\" = {}"));
}

/// Of a table without a header the first line is a row, and its letters decide nothing.
#[test]
fn a_row_that_looks_like_json_is_a_row() {
    let folder = Folder::new();
    let schema = format!("[table]\nheader = false\ncolumns = [\"ward\", \"age\", \"dose\", \"outcome\"]\n{SCHEMA}");
    folder.write("schema.toml", schema);
    folder.write("table.csv", format!("{{{CANARY},20,100,no\n[1,30,200,yes\n"));
    folder.succeed(FIT);
    let draft = folder.succeed("schema draft table.csv --no-header");
    assert!(draft.contains("columns = [\"c1\", \"c2\", \"c3\", \"c4\"]"), "{draft}");
}

/// They are not passed over: the file would be another table for whoever reads it otherwise.
#[test]
fn lines_above_the_header_are_to_be_removed() {
    let folder = Folder::new();
    let declared = format!("[table]\ncolumns = {HEADER:?}\n{SCHEMA}");
    let table = String::from_utf8(Table::usual().csv()).expect("UTF-8");
    let says = |found: &str| {
        format!("error: the first line of table.csv is {found}, and no header; remove that line from the file\n")
    };
    for schema in [SCHEMA, &declared] {
        folder.write("schema.toml", schema);
        folder.write("table.csv", format!("sep=,\n{table}"));
        assert_eq!(folder.refuse(3, FIT), says("a note of the delimiter for a spreadsheet (sep=)"));
        folder.write("table.csv", format!("# made by hand, in May\n{table}"));
        assert_eq!(folder.refuse(3, FIT), says("a comment, which begins with #"));
    }
    for note in ["sep=;", "\"SEP=\t\"", "sep=|"] {
        folder.write("table.csv", format!("{note}\na;b\n"));
        let message = folder.refuse(3, "schema draft table.csv");
        assert!(message.contains("(sep=), and no header; remove that line"), "{message}");
    }
    for comment in ["# made by hand, in May", "#made by hand", "## 1"] {
        folder.write("table.csv", format!("{comment}\n{table}"));
        let message = folder.refuse(3, "schema draft table.csv");
        assert!(message.contains("it begins with # as a comment does; remove that line"), "{message}");
    }
    for name in ["#", "#patient"] {
        folder.write("table.csv", table.replacen("patient", name, 1));
        assert!(folder.succeed("schema draft table.csv").contains(&format!("{name:?} = {{}}")));
        folder.write("schema.toml", SCHEMA);
        folder.succeed(FIT);
    }
}
