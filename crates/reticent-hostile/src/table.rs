//! A table file read in both ways, row by row and straight to codes: the two agree, in rows and in refusals.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::{CODE_MAX, Coding};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::encoding::LATTICE_NORM_MAX;
use reticent_core::public_features::PublicFeatures;
use reticent_core::record::Label;
use reticent_core::schema::{Schema, TargetKind};
use reticent_curator::draft::{DraftOptions, draft_schema};
use reticent_curator::identified_rows::IdentifiedRows;
use reticent_curator::source::{Need, Row, SourceError, TableSource};
use reticent_fit::raw_columns::{Columns as _, RawColumns};
use tempfile::NamedTempFile;

/// A file with these bytes.
pub(crate) fn file(bytes: &[u8]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a folder for temporary files");
    file.write_all(bytes).expect("room for a temporary file");
    file
}

pub(crate) fn schema(text: &str) -> Schema {
    Schema::from_text(text).unwrap_or_else(|problems| panic!("a schema of these targets: {problems}"))
}

/// The schemas that tables are read by; the first byte of an input chooses one. Together they have every kind of column,
/// target, unit and header.
pub(crate) fn schemas() -> &'static [Schema] {
    static SCHEMAS: OnceLock<Vec<Schema>> = OnceLock::new();
    SCHEMAS.get_or_init(make_schemas)
}

fn make_schemas() -> Vec<Schema> {
    const FEATURES: &str = "a = { bounds = [-10, 10], missing = 7 }\nb = { bounds = [0, 1000000] }\n\
                            c = { bounds = [0, 100], log = false }\n\
                            job = { categories = [\"clerk\", \"cook\", 1], missing = \"cook\" }\n";
    const NAMES: &str = "columns = [\"c\", \"unused\", \"job\", \"a\", \"person\", \"y\", \"b\"]";
    let unit = "{ column = \"person\", rows_max = 2 }";
    let classes = "classes = [\"no\", [\"yes\", 1]]";
    let of = |unit: &str, table: &str, target: &str| {
        schema(&format!(
            "[privacy]\nunit = {unit}\nadjacency = \"add-remove\"\n[table]\n{table}\n[target]\ncolumn = \"y\"\n{target}\n\
             [features]\n{FEATURES}"
        ))
    };
    vec![
        of("\"row\"", "", classes),
        of(unit, "", classes),
        of(unit, "delimiter = \";\"", "bounds = [-1, 1]"),
        of("\"row\"", &format!("header = false\n{NAMES}"), "classes = [\"a\", \"b\", \"c\"]"),
        of(unit, &format!("header = false\n{NAMES}\ndelimiter = \" \"\nmissing = [\"\", \"7\"]"), "bounds = [0, 1e9]"),
        of(unit, &format!("header = true\n{NAMES}\ndelimiter = \"\\t\""), classes),
    ]
}

/// Codes and labels, row after row.
type Codes = (Vec<u16>, Vec<CodedLabel>);

/// Reads a table row by row and straight to codes.
pub(crate) fn compare(path: &Path, schema: &Schema) {
    let by_rows = by_rows(path, schema).map_err(|error| error.to_string());
    let by_codes = by_codes(path, schema).map_err(|error| error.to_string());
    match (by_rows, by_codes) {
        (Ok(by_rows), Ok(by_codes)) => assert!(by_rows == by_codes, "row by row and straight to codes differ"),
        (by_rows, by_codes) => {
            let (by_rows, by_codes) = (by_rows.err(), by_codes.err());
            let same =
                by_rows == by_codes || by_rows.iter().chain(&by_codes).filter(|error| is_damage(error)).count() == 2;
            assert!(same, "row by row and straight to codes differ: {by_rows:?} {by_codes:?}");
        }
    }
}

/// Of several damaged columns of a Parquet file the first is told, and the two ways have orders of their own.
fn is_damage(error: &str) -> bool {
    error.contains("its Parquet data cannot be decoded") || error.contains("a Parquet file with a page of more than ")
}

/// The columns of a row that may not be 0, and its label, to the bit.
type RowBits = (Vec<(usize, u64)>, Option<u64>);

/// Reads a table in every way that a command reads one: private, public, and with an id.
pub(crate) fn read_in_every_way(path: &Path, schema: &Schema, id_column: &str) {
    compare(path, schema);
    let open = || TableSource::open(path, schema, Need::FeaturesAndTargetOfPublicRows);
    if let (Ok(source), Ok(again)) = (open(), open()) {
        let coding = Coding::of(schema);
        let worker = || {
            let mut columns = RawColumns::new(&coding);
            move |row: Row<'_>, made: &mut Vec<RowBits>| {
                columns.set(row.cells, row.given);
                assert!(columns.nonzero().all(|(_, value)| value.is_finite()), "cells are finite");
                assert!(row.label.number().is_none_or(f64::is_finite), "labels are finite");
                let values = columns.nonzero().map(|(column, value)| (column, value.to_bits())).collect();
                made.push((values, row.label.number().map(f64::to_bits)));
            }
        };
        let (mut one_by_one, mut on_threads, mut look) = (Vec::new(), Vec::new(), worker());
        let read = source.for_each_row(&mut |_| {}, &mut |row| look(row, &mut one_by_one));
        let made = again.for_each_made(1, &mut |_| {}, &worker, &mut |rows| -> Result<(), SourceError> {
            on_threads.extend(rows);
            Ok(())
        });
        assert_eq!(read.is_ok(), made.is_ok(), "both ways read a file to its end, or neither");
        // Of a file that ends too soon one may have read farther.
        assert!(read.is_err() || one_by_one == on_threads, "rows made on threads are others");
    }
    if let Ok(source) = TableSource::open_with_ids(path, schema, Need::Features, id_column)
        && let Ok(rows) = IdentifiedRows::features(source, schema, &mut |_| {})
    {
        let features = PublicFeatures::of_expanded(&Coding::of(schema), rows.numbers);
        assert_eq!(rows.ids.len(), features.rows(), "one id a row");
        assert!(features.codes.iter().all(|code| *code <= CODE_MAX), "columns are within their unit");
    }
}

/// Drafts schemas of a table as if it were private, and as if it were public.
pub(crate) fn draft(path: &Path) {
    for (public, header) in [(false, None), (true, Some(true)), (true, Some(false))] {
        for target in [None, Some("y".to_owned())] {
            let complete = public && target.is_some();
            let options = DraftOptions { target, public, header, delimiter: None };
            let Ok(text) = draft_schema(path, &options) else { continue };
            if let Err(problems) = Schema::from_text(&text) {
                // What a person has to fill in is wrong; a draft that is wrong as TOML is a mistake here.
                assert!(
                    problems.0.iter().all(|problem| !problem.message.starts_with("this is not TOML")),
                    "{problems}\n{text}"
                );
                let open = text.contains("fill in") || text.contains("# ");
                assert!(!complete || open, "a complete draft is wrong: {problems}\n{text}");
            }
        }
    }
}

fn by_rows(path: &Path, schema: &Schema) -> Result<Codes, SourceError> {
    let coding = Coding::of(schema);
    let unit = &schema.privacy().unit;
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let mut rows_of_unit: HashMap<Vec<u8>, u32> = HashMap::new();
    TableSource::open(path, schema, Need::FeaturesAndTarget)?.for_each_row(&mut |_| {}, &mut |row| {
        // Rows without a key have no usable label, and count as one unit.
        let rows = rows_of_unit.entry(row.unit.unwrap_or_default().to_vec()).or_insert(0);
        *rows += 1;
        if *rows <= unit.rows_max() || *unit == PrivacyUnit::Row {
            let start = codes.len();
            codes.resize(start + coding.codes(), 0);
            coding.encode_cells(row.cells, &mut codes[start..]);
            labels.push(code_of(&schema.target().kind, row.label));
        }
    })?;
    Ok((codes, labels))
}

fn by_codes(path: &Path, schema: &Schema) -> Result<Codes, SourceError> {
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let source = TableSource::open(path, schema, Need::FeaturesAndTarget)?;
    source.for_each_coded(schema, &mut |_| {}, &mut |rows| -> Result<(), SourceError> {
        codes.extend_from_slice(rows.codes);
        labels.extend_from_slice(rows.labels);
        Ok(())
    })?;
    Ok((codes, labels))
}

/// The code of a label, written down once more: a class by its place, a number by its place between the bounds.
fn code_of(target: &TargetKind, label: Label) -> CodedLabel {
    match (label, target) {
        (Label::Class(class), TargetKind::Classes(_)) => class as CodedLabel,
        (Label::Value(value), TargetKind::Bounds { low, high }) => {
            let full = f64::from(LATTICE_NORM_MAX);
            (((value - low) / (high - low) * 2.0 - 1.0) * full).round().clamp(-full, full) as CodedLabel
        }
        (Label::Class(_) | Label::Value(_), _) => panic!("a label of another kind than the target"),
        (Label::Unusable, _) => UNUSABLE_LABEL,
    }
}
