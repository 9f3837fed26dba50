//! A libsvm file gives the rows of the same table as delimited text, with zeros where it has nothing.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use reticent_core::coding::Coding;
use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_curator::source::{Need, SourceError, TableSource};

fn schema(table: &str, unit: &str, target: &str) -> Schema {
    let text = format!(
        "[privacy]\nunit = {unit}\nadjacency = \"add-remove\"\n[table]\n{table}\n[target]\ncolumn = \"label\"\n{target}\n\
         [features]\n3 = {{ bounds = [-10, 10] }}\n0 = {{ bounds = [0, 1], missing = 1 }}\n\
         12 = {{ categories = [\"1\", \"2\", \"x\"] }}\n7000000 = {{ hash_buckets = 9 }}\n"
    );
    Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}"))
}

const UNIT: &str = "{ column = \"qid\", rows_max = 2 }";
const CLASSES: &str = "classes = [-1, 1]";

/// Codes and labels, row after row.
fn coded(path: &Path, schema: &Schema) -> (Vec<u16>, Vec<i16>) {
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let source = TableSource::open(path, schema, Need::FeaturesAndTarget).expect("a table");
    let read = source.for_each_coded(schema, &mut |_| {}, &mut |rows| -> Result<(), SourceError> {
        codes.extend_from_slice(rows.codes);
        labels.extend_from_slice(rows.labels);
        Ok(())
    });
    read.expect("a whole file");
    (codes, labels)
}

/// Cells of the first row, with its label and unit.
fn first_row(text: &str, schema: &Schema) -> (Vec<Cell>, Label, Option<Vec<u8>>) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("table.svm");
    fs::write(&path, text).expect("written");
    let mut rows = Vec::new();
    let source = TableSource::open(&path, schema, Need::FeaturesAndTarget).expect("a table");
    let read = source.for_each_row(&mut |_| {}, &mut |row| {
        rows.push((row.cells.to_vec(), row.label, row.unit.map(<[u8]>::to_vec)));
    });
    read.expect("a whole file");
    assert_eq!(rows.len(), 1, "{text:?}");
    rows.swap_remove(0)
}

#[test]
fn a_line_beyond_64_mib_has_no_values() {
    let schema = schema("format = \"libsvm\"", UNIT, CLASSES);
    let long = format!("+1 qid:7 3:5 {}12:x\n", " ".repeat(67_200_000));
    assert!(first_row(&long, &schema) == first_row(":\n", &schema));
    assert!(first_row(":\n", &schema).1 == Label::Unusable);
    assert!(first_row("+1 qid:7 3:5 12:x\n", &schema).1 != Label::Unusable);
}

#[test]
fn lines_are_read_as_their_writers_mean_them() {
    let schema = schema("format = \"libsvm\"", UNIT, CLASSES);
    let (zero, one) = (Cell::Number(0.0), Cell::Number(1.0));
    let hashed = |text: &[u8]| Cell::Category(reticent_core::record::hash_bucket(text, 9));
    let row = |number: f64, unit, category, other: &[u8]| {
        vec![Cell::Number(number), unit, Cell::Category(category), hashed(other)]
    };
    let key = |text: &str| Some(text.as_bytes().to_vec());
    for (text, cells, label, unit) in [
        ("+1 qid:7 3:2.5 12:2 7000000:u\n", row(2.5, zero, 2, b"u"), Label::Class(1), key("7")),
        ("\u{feff}+1 qid:7 3:2.5", row(2.5, zero, 0, b"0"), Label::Class(1), key("7")),
        ("-1 qid:7", row(0.0, zero, 0, b"0"), Label::Class(0), key("7")),
        ("\n \t\r\n# a remark\n1.0\tqid:a  0:1 3:99 # 3:1\r\n", row(10.0, one, 0, b"0"), Label::Class(1), key("a")),
        // An index twice, one that nobody asked for, and words that are nothing.
        ("1 qid:7 3:1 3:4 4:1 3 x :5 a:3 -3:7 3.0:8", row(4.0, zero, 0, b"0"), Label::Class(1), key("7")),
        // A value that cannot be read is missing, as everywhere: the middle of the bounds, or what the schema says.
        ("1 qid:7 3:? 0: 12:x", row(0.0, one, 3, b"0"), Label::Class(1), key("7")),
        ("qid:7 3:1", row(1.0, zero, 0, b"0"), Label::Unusable, key("7")),
        ("2 qid:7 3:1", row(1.0, zero, 0, b"0"), Label::Unusable, key("7")),
        // Whose row it is cannot be told.
        ("1 3:1", row(1.0, zero, 0, b"0"), Label::Unusable, None),
    ] {
        assert!(first_row(text, &schema) == (cells, label, unit), "{text:?}");
    }
}

#[test]
fn other_keys_than_the_group_are_refused() {
    let schema = schema("format = \"libsvm\"", "\"row\"", CLASSES);
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("table.svm");
    fs::write(&path, "1 3:1\n").expect("written");
    let opened = TableSource::open_with_ids(&path, &schema, Need::Features, "event");
    let error = opened.err().expect("there are no other columns").to_string();
    assert!(error.contains("has no column \"event\"") && error.contains("qid"), "{error}");
    assert!(TableSource::open_with_ids(&path, &schema, Need::Features, "qid").is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rows_are_those_of_the_same_table_as_text(
        rows in prop::collection::vec(
            (
                prop::sample::select(vec!["-1", "+1", "1", "-1.0", "0", "1e0", "x"]),
                prop::sample::select(vec!["", "a", "b", "7"]),
                prop::array::uniform4(prop::sample::select(vec!["0", "1", "2", "0.5", "-3.25", "1e9", "nan", "x"])),
                any::<prop::sample::Index>(),
            ),
            0..40,
        ),
        by_unit in any::<bool>(),
        bounds in any::<bool>(),
        packed in any::<bool>(),
        with_remarks in any::<bool>(),
    ) {
        let unit = if by_unit { UNIT } else { "\"row\"" };
        let target = if bounds { "bounds = [-2, 2]" } else { CLASSES };
        let mut csv = "label,qid,3,0,12,7000000\n".to_owned();
        let mut libsvm = String::new();
        for (label, group, values, place) in &rows {
            csv.push_str(&format!("{label},{group},{}\n", values.join(",")));
            let mut pairs: Vec<String> = ["3", "0", "12", "7000000"]
                .iter()
                .zip(values)
                .filter(|(_, value)| **value != "0")
                .map(|(index, value)| format!("{index}:{value}"))
                .collect();
            if !group.is_empty() {
                pairs.insert(place.index(pairs.len() + 1), format!("qid:{group}"));
            }
            let remark = if with_remarks { " # 3:1\n\n" } else { "\n" };
            libsvm.push_str(&format!("{label} {}{remark}", pairs.join(" ")));
        }
        let folder = tempfile::tempdir().expect("temporary folder");
        let (csv_path, path) = (folder.path().join("table.csv"), folder.path().join("table.svm"));
        fs::write(&csv_path, csv).expect("written");
        let bytes = if packed { zstd::encode_all(libsvm.as_bytes(), 1).expect("memory") } else { libsvm.into_bytes() };
        fs::write(&path, bytes).expect("written");
        let expected = coded(&csv_path, &schema("", unit, target));
        let schema = schema("format = \"libsvm\"", unit, target);
        let found = coded(&path, &schema);
        prop_assert_eq!(found.0.len(), found.1.len() * Coding::of(&schema).slots());
        prop_assert_eq!(found, expected);
    }
}

/// Five numbers that rows list, between features that they do not, and the group.
fn listing(most: u32) -> Schema {
    let text = format!(
        "[privacy]\nunit = {UNIT}\nadjacency = \"add-remove\"\n[table]\nformat = \"libsvm\"\nnonzeros_max = {most}\n[target]\n\
         column = \"label\"\n{CLASSES}\n[features]\n9 = {{ bounds = [0, 4] }}\n2 = {{ bounds = [-4, 4] }}\n\
         \"3..5\" = {{ bounds = [0, 2], missing = 1 }}\n1 = {{ categories = [1] }}\n7 = {{ bounds = [0, 4] }}\n"
    );
    Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn a_parquet_table_has_no_lists() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("table.parquet");
    fs::write(&path, "PAR1\u{15} and so on PAR1").expect("written");
    let error = TableSource::open(&path, &listing(2), Need::Features).err().expect("has no lists").to_string();
    assert!(error.contains("is a Parquet file") && error.contains("nonzeros_max = 0"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn listed_values_are_coded_as_their_cells(
        rows in prop::collection::vec(
            prop::collection::vec((prop::sample::select(vec!["9", "2", "3", "4", "5", "1", "7", "6", "x"]),
                prop::sample::select(vec!["0", "1", "2", "0.5", "-3.25", "1e9", "nan", "", "0.00001"])), 0..12),
            0..30,
        ),
        most in 1..7u32,
    ) {
        let schema = listing(most);
        let coding = Coding::of(&schema);
        let mut text = String::new();
        for (place, row) in rows.iter().enumerate() {
            let pairs: Vec<String> = row.iter().map(|(index, value)| format!("{index}:{value}")).collect();
            text.push_str(&format!("1 qid:{} {}\n", place / 3, pairs.join(" ")));
        }
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("table.svm");
        fs::write(&path, text).expect("written");
        let (mut expected, mut row_of_unit) = (Vec::new(), 0);
        let source = TableSource::open(&path, &schema, Need::FeaturesAndTarget).expect("a table");
        let read = source.for_each_row(&mut |_| {}, &mut |row| {
            // The first two of each unit count.
            if row_of_unit % 3 < 2 {
                let start = expected.len();
                expected.resize(start + coding.codes(), 0);
                coding.encode_cells(row.cells, &mut expected[start..]);
            }
            row_of_unit += 1;
        });
        read.expect("a whole file");
        let (codes, labels) = coded(&path, &schema);
        prop_assert_eq!(codes.len(), labels.len() * coding.codes());
        prop_assert_eq!(codes, expected);
    }
}
