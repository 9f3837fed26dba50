//! Codes made on several threads are those that are made row by row, whatever is in the file.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::Coding;
use reticent_core::record::Cell;
use reticent_core::schema::Schema;
use tempfile::NamedTempFile;

use super::column_threads::code_columns;
use super::made_batch::MadeBatch;
use super::row_coder::RowCoder;
use super::row_workers::{RowWorker, TextRows, share_rows};
use super::text_coder::TextCoder;
use super::text_threads::TextThreads;
use super::{Need, Row, SourceError, Table, TableSource};
use crate::table::code_label;

/// Codes and labels of a table, row after row.
type Codes = (Vec<u16>, Vec<i16>);

fn schema(unit: &str, table: &str) -> Schema {
    let text = format!(
        "[privacy]\nunit = {unit}\nadjacency = \"add-remove\"\n[table]\n{table}\n[target]\ncolumn = \"y\"\n\
         classes = [\"no\", 1]\n[features]\na = {{ bounds = [-10, 10], missing = 7 }}\n\
         b = {{ bounds = [0, 1000000] }}\nc = {{ bounds = [0, 100], log = false }}\n\
         job = {{ categories = [\"clerk\", \"cook\", 1], missing = \"cook\" }}\n"
    );
    Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn schemas() -> Vec<Schema> {
    let columns = "columns = [\"c\", \"unused\", \"job\", \"a\", \"person\", \"y\", \"b\"]";
    let unit = "{ column = \"person\", rows_max = 2 }";
    vec![
        schema("\"row\"", &format!("header = false\n{columns}")),
        schema(unit, &format!("header = false\n{columns}")),
        schema(unit, &format!("header = true\n{columns}")),
        schema("\"row\"", &format!("header = false\n{columns}\nmissing = [\"\", \"7\", \"true\"]\ndelimiter = \" \"")),
        schema(unit, &format!("header = false\n{columns}\ndelimiter = \"\\t\"")),
    ]
}

/// Row by row, through cells.
fn reference(path: &Path, schema: &Schema) -> Result<Codes, SourceError> {
    let coding = Coding::of(schema);
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let mut rows_of_unit: HashMap<Vec<u8>, u32> = HashMap::new();
    TableSource::open(path, schema, Need::FeaturesAndTarget)?.for_each_row(&mut |_| {}, &mut |row| {
        let rows = rows_of_unit.entry(row.unit.unwrap_or_default().to_vec()).or_insert(0);
        *rows += 1;
        if *rows <= schema.privacy().unit.rows_max() || schema.privacy().unit == PrivacyUnit::Row {
            let start = codes.len();
            codes.resize(start + coding.codes(), 0);
            coding.encode_cells(row.cells, &mut codes[start..]);
            labels.push(code_label(&schema.target().kind, row.label));
        }
    })?;
    Ok((codes, labels))
}

/// In blocks of any size.
fn in_blocks(path: &Path, schema: &Schema, sizes: (usize, usize), threads: usize) -> Result<Codes, SourceError> {
    let source = TableSource::open(path, schema, Need::FeaturesAndTarget)?;
    let Table::Csv(table) = source.table else { panic!("a text") };
    let (cutter, delimiter, columns) = table.into_records();
    let mut filter = super::RowFilter::new(schema.privacy());
    let slots = Coding::of(schema).codes();
    let coder = TextCoder::new(RowCoder::new(schema, source.assembler.readers), delimiter, columns);
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let coding = TextThreads { reader: &coder, threads };
    coding.run(cutter.with_sizes(sizes.0, sizes.1), &mut |batch| -> Result<(), SourceError> {
        filter.apply(slots, batch)?;
        codes.extend_from_slice(&batch.codes);
        labels.extend_from_slice(&batch.labels);
        Ok(())
    })?;
    Ok((codes, labels))
}

/// A row as text: cells, label, unit and id.
fn text_of(row: &Row<'_>) -> String {
    let cells: Vec<String> = row
        .cells
        .iter()
        .map(|cell| match cell {
            Cell::Number(number) => format!("{:x}", number.to_bits()),
            Cell::Category(place) => format!("category {place}"),
        })
        .collect();
    format!("{cells:?} {:?} {:?} {:?} {:?}", row.given, row.label.number(), row.unit, row.id)
}

/// Rows one after another, and the same made on threads from blocks of any size; the id is a column that a slot has, too.
fn rows_of_text(path: &Path, schema: &Schema, sizes: (usize, usize), threads: usize) -> [Vec<String>; 2] {
    let open = || TableSource::open_with_ids(path, schema, Need::FeaturesAndTarget, "job").expect("the same file");
    let mut expected = Vec::new();
    open().for_each_row(&mut |_| {}, &mut |row| expected.push(text_of(&row))).expect("a whole file");
    let source = open();
    let Table::Csv(table) = source.table else { panic!("a text") };
    let (cutter, delimiter, columns) = table.into_records();
    let worker = || |row: Row<'_>, made: &mut Vec<String>| made.push(text_of(&row));
    let reader = &TextRows::new(&source.assembler, delimiter, columns, sizes.0.min(7), &worker);
    let mut found = Vec::new();
    let reading = TextThreads { reader, threads };
    reading
        .run(cutter.with_sizes(sizes.0, sizes.1), &mut |batch: &mut MadeBatch<Vec<String>>| {
            found.extend(batch.take()?);
            Ok::<(), SourceError>(())
        })
        .expect("a whole file");
    [expected, found]
}

fn whole(path: &Path, schema: &Schema) -> Result<Codes, SourceError> {
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let source = TableSource::open(path, schema, Need::FeaturesAndTarget)?;
    source.for_each_coded(schema, &mut |_| {}, &mut |rows| -> Result<(), SourceError> {
        codes.extend_from_slice(rows.codes);
        labels.extend_from_slice(rows.labels);
        Ok(())
    })?;
    Ok((codes, labels))
}

/// The cap counted by whoever takes the rows.
fn capped_elsewhere(path: &Path, schema: &Schema) -> Result<Codes, SourceError> {
    let (slots, unit) = (Coding::of(schema).codes(), &schema.privacy().unit);
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let mut rows_of_unit: HashMap<Vec<u8>, u32> = HashMap::new();
    let source = TableSource::open(path, schema, Need::FeaturesAndTarget)?;
    source.for_each_uncapped(schema, &mut |_| {}, &mut |rows| -> Result<(), SourceError> {
        assert_eq!(rows.unit_keys().count(), rows.labels.len());
        for (row, key) in rows.unit_keys().enumerate() {
            let rows_so_far = rows_of_unit.entry(key.to_vec()).or_insert(0);
            *rows_so_far += 1;
            if *rows_so_far <= unit.rows_max() || *unit == PrivacyUnit::Row {
                codes.extend_from_slice(&rows.codes[row * slots..(row + 1) * slots]);
                labels.push(rows.labels[row]);
            }
        }
        Ok(())
    })?;
    Ok((codes, labels))
}

fn check(text: &[u8]) -> Result<(), TestCaseError> {
    for schema in schemas() {
        let mut file = NamedTempFile::new().expect("a temporary file");
        let header: &[u8] = if schema.table().header { b"c,unused,job,a,person,y,b\r\n" } else { b"" };
        file.write_all(&[header, text].concat()).expect("is written");
        // A text that begins like another format is refused either way.
        let Ok(expected) = reference(file.path(), &schema) else { continue };
        for sizes in [(1, 1), (1, 60), (7, 50), (64, 40), (200, 1000), (100_000, 1 << 20)] {
            for threads in [1, 3] {
                let found = in_blocks(file.path(), &schema, sizes, threads).expect("the same file");
                prop_assert_eq!(&found, &expected, "{:?} {}", sizes, threads);
                let [expected, found] = rows_of_text(file.path(), &schema, sizes, threads);
                prop_assert_eq!(found, expected, "{:?} {}", sizes, threads);
            }
        }
        prop_assert_eq!(&whole(file.path(), &schema).expect("the same file"), &expected);
        prop_assert_eq!(&capped_elsewhere(file.path(), &schema).expect("the same file"), &expected);
    }
    Ok(())
}

/// Columns of a typed table, with every kind of value that is absorbed.
fn columns(rows: usize) -> RecordBatch {
    let odd = |row: usize| match row % 97 {
        0 => None,
        1 => Some(f64::NAN),
        2 => Some(f64::NEG_INFINITY),
        3 => Some(-0.0),
        _ => Some((row % 1013) as f64 * 0.37 - 60.0),
    };
    let job = |row: usize| [Some("clerk"), Some("cook"), Some("1.0"), Some(""), None, Some("pilot")][row % 6];
    let columns: [(&str, ArrayRef); 6] = [
        ("c", Arc::new(Float64Array::from_iter((0..rows).map(odd)))),
        ("job", Arc::new(StringArray::from_iter((0..rows).map(job)))),
        ("a", Arc::new(Float32Array::from_iter_values((0..rows).map(|row| row as f32 * 0.013 - 20.0)))),
        ("person", Arc::new(Int64Array::from_iter((0..rows).map(|row| (row % 5 > 0).then_some((row / 3) as i64))))),
        ("y", Arc::new(StringArray::from_iter((0..rows).map(|row| [Some("no"), Some("1"), None][row % 3])))),
        ("b", Arc::new(Int64Array::from_iter((0..rows).map(|row| (row % 7 > 0).then_some(row as i64 * 31))))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).expect("one length")
}

#[test]
fn columns_and_threads_change_no_code() {
    for unit in ["\"row\"", "{ column = \"person\", rows_max = 2 }"] {
        let schema = schema(unit, "");
        for (rows, group_rows) in [(0, 10), (1, 10), (20_000, 3_001), (20_000, 100_000)] {
            let file = NamedTempFile::new().expect("a temporary file");
            let batch = columns(rows);
            let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
            let handle = file.reopen().expect("a second handle");
            let mut writer = ArrowWriter::try_new(handle, batch.schema(), Some(properties)).expect("a schema");
            writer.write(&batch).expect("is written");
            writer.close().expect("a footer");
            let open = || TableSource::open(file.path(), &schema, Need::FeaturesAndTarget).expect("opens");
            let mut one_by_one = Vec::new();
            open().for_each_row(&mut |_| {}, &mut |row| one_by_one.push(text_of(&row))).expect("is read");
            for threads in [1, 2, 3, 9] {
                let TableSource { table: Table::Parquet(table), assembler, .. } = open() else {
                    panic!("a Parquet table")
                };
                let worker = || {
                    let add = |row: Row<'_>, made: &mut Vec<String>| made.push(text_of(&row));
                    (RowWorker::new(&assembler, add), MadeBatch::default())
                };
                let mut workers: Vec<_> = (0..threads).map(|_| worker()).collect();
                let mut made = Vec::new();
                let mut take = |rows: Vec<String>| -> Result<(), SourceError> {
                    made.extend(rows);
                    Ok(())
                };
                table
                    .for_each_batch(&mut |_| {}, |columns, rows| {
                        share_rows(columns, rows, 1000, &mut workers, &mut take)
                    })
                    .expect("is read");
                assert!(made == one_by_one, "{unit} {rows} {group_rows} {threads}");
            }
            let expected = reference(file.path(), &schema).expect("is read");
            assert!(expected.1.len() <= rows && (rows < 9 || expected.1.len() > rows / 4));
            for threads in [1, 2, 3, 9] {
                let source = TableSource::open(file.path(), &schema, Need::FeaturesAndTarget).expect("opens");
                let Table::Parquet(table) = source.table else { panic!("a Parquet table") };
                let coder = RowCoder::new(&schema, source.assembler.readers);
                let (slots, mut filter) = (coder.coding.codes(), super::RowFilter::new(schema.privacy()));
                let (mut codes, mut labels) = (Vec::new(), Vec::new());
                code_columns(&table, &coder, threads, &mut |batch| -> Result<(), SourceError> {
                    filter.apply(slots, batch)?;
                    codes.extend_from_slice(&batch.codes);
                    labels.extend_from_slice(&batch.labels);
                    Ok(())
                })
                .expect("is read");
                assert!((codes, labels) == expected, "{unit} {rows} {group_rows} {threads}");
            }
        }
    }
}

/// Under label adjacency rows without a label are left out before their unit's are counted, and the keys of the others stay with them.
#[test]
fn keys_stay_with_their_rows() {
    let text = "[privacy]\nunit = { column = \"person\", rows_max = 2 }\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\n\
                classes = [\"no\", \"yes\"]\n[features]\na = { bounds = [0, 10] }\n";
    let schema = Schema::from_text(text).unwrap_or_else(|problems| panic!("{problems}"));
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(b"a,person,y\n1,ann,no\n2,,no\n3,bob,neither\n4,carol,yes\n5,ann,\n6,ann,yes\n7,ann,yes\n")
        .expect("is written");
    let mut found = Vec::new();
    let source = TableSource::open(file.path(), &schema, Need::FeaturesAndTarget).expect("opens");
    let read = source.for_each_uncapped(&schema, &mut |_| {}, &mut |rows| -> Result<(), SourceError> {
        found.extend(rows.unit_keys().map(<[u8]>::to_vec).zip(rows.labels.iter().copied()));
        Ok(())
    });
    read.expect("a whole file");
    let expected = [("ann", 0), ("carol", 1), ("ann", 1), ("ann", 1)];
    assert_eq!(found, expected.map(|(key, label)| (key.as_bytes().to_vec(), label)));
    let (_, labels) = whole(file.path(), &schema).expect("a whole file");
    assert_eq!(labels, [0, 1, 1]);
    assert_eq!(capped_elsewhere(file.path(), &schema).expect("a whole file").1, labels);
}

/// Whoever takes the rows may stop, and the threads end.
#[test]
fn an_error_of_the_receiver_ends_the_reading() {
    let schema = schema("\"row\"", "");
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(b"c,job,a,y,b\n").expect("is written");
    file.write_all(&b"1,cook,2,no,3\n".repeat(300_000)).expect("is written");
    let source = TableSource::open(file.path(), &schema, Need::FeaturesAndTarget).expect("opens");
    let Table::Csv(table) = source.table else { panic!("a text") };
    let (cutter, delimiter, columns) = table.into_records();
    let coder = TextCoder::new(RowCoder::new(&schema, source.assembler.readers), delimiter, columns);
    let mut batches = 0;
    let outcome = TextThreads { reader: &coder, threads: 3 }.run(cutter, &mut |_| {
        batches += 1;
        if batches == 4 { Err(SourceError::OutOfMemory) } else { Ok(()) }
    });
    assert!(matches!(outcome, Err(SourceError::OutOfMemory)) && batches == 4);
}

fn token() -> impl Strategy<Value = Vec<u8>> {
    let spelling = prop_oneof![
        Just("clerk"),
        Just("cook"),
        Just("no"),
        Just("1"),
        Just("1.0"),
        Just("01"),
        Just("7"),
        Just("true"),
        Just("NA"),
        Just("?"),
        Just("nan"),
        Just("-inf"),
        Just("1e3"),
        Just("-0"),
        Just("9007199254740993"),
        Just("5."),
        Just(".5"),
        Just("\u{FEFF}"),
        Just("\""),
        Just("\"\""),
        Just("\"\"\""),
        Just("ann"),
        Just("bob"),
        Just("\r"),
        Just("\r\n"),
        Just(" "),
        Just("\t"),
        Just("\0"),
    ];
    prop_oneof![
        8 => Just(b",".to_vec()),
        3 => Just(b"\n".to_vec()),
        4 => "-?[0-9]{1,3}(\\.[0-9]{1,6})?".prop_map(String::into_bytes),
        1 => "-?[0-9]{0,12}\\.?[0-9]{0,12}".prop_map(String::into_bytes),
        8 => spelling.prop_map(|text| text.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        1 => proptest::collection::vec(any::<u8>(), 0..100),
    ]
}

/// Rows as they usually are.
fn row() -> impl Strategy<Value = Vec<u8>> {
    let number = "-?[0-9]{1,3}(\\.[0-9]{1,6})?";
    (number, "[a-z]{0,3}", "(clerk|cook|1|\"co\"\"ok\"|\"cook\"|\"a,b\nc\")", number, "[a-e]?", "(no|1|)", number)
        .prop_map(|(c, unused, job, a, person, y, b)| format!("{c},{unused},{job},{a},{person},{y},{b}\n").into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn blocks_and_threads_change_no_code(tokens in proptest::collection::vec(token(), 0..150)) {
        check(&tokens.concat())?;
    }

    #[test]
    fn blocks_and_threads_change_no_code_of_usual_rows(rows in proptest::collection::vec(row(), 0..60)) {
        check(&rows.concat())?;
    }

    #[test]
    fn blocks_and_threads_change_no_code_of_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }
}
