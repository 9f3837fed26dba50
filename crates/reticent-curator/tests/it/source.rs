//! Tables of every form give the same rows; bad input is absorbed, or refused by what is public about it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::{Decimal256Type, Float16Type, Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
    DictionaryArray, FixedSizeBinaryArray, Float16Array, Float32Array, Float64Array, Int8Array, Int64Array,
    LargeStringArray, ListArray, NullArray, StringArray, StringViewArray, TimestampMillisecondArray, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int96, Int96Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use reticent_core::coding::Coding;
use reticent_core::contribution::UNUSABLE_LABEL;
use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_curator::source::{Need, SourceError, TableSource};
use reticent_math::fixed_sequence::FixedSequence;
use tempfile::TempDir;

/// Two features and two classes; `table` goes under `[table]`.
fn schema(table: &str) -> Schema {
    schema_of_unit("\"row\"", table)
}

fn schema_of_unit(unit: &str, table: &str) -> Schema {
    schema_under("add-remove", unit, table)
}

fn schema_under(adjacency: &str, unit: &str, table: &str) -> Schema {
    let text = format!(
        "[privacy]\nunit = {unit}\nadjacency = \"{adjacency}\"\n[table]\n{table}\n[target]\ncolumn = \"income\"\n\
         classes = [\"low\", \"high\"]\n[features]\nage = {{ bounds = [0, 100], missing = 7 }}\n\
         job = {{ categories = [\"clerk\", \"cook\"], missing = \"cook\" }}\n"
    );
    Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// A row written out, so that tests can compare it: `age job label unit`.
///
/// The same table read as codes must agree, or fail alike.
fn rows_of(path: &Path, schema: &Schema, need: Need) -> Result<Vec<String>, SourceError> {
    let coded = coded_rows_of(path, schema, need);
    match (row_by_row(path, schema, need), coded) {
        (Ok((rows, codes)), Ok(coded)) => {
            assert!(codes == coded, "codes of the same rows");
            Ok(rows)
        }
        (Err(error), Err(other)) => {
            assert_eq!(error.to_string(), other.to_string());
            Err(error)
        }
        (Ok(_), Err(error)) | (Err(error), Ok(_)) => panic!("one way only: {error}"),
    }
}

/// Codes and labels, row after row.
type Codes = (Vec<u16>, Vec<i16>);

fn coded_rows_of(path: &Path, schema: &Schema, need: Need) -> Result<Codes, SourceError> {
    let (mut codes, mut labels, mut bytes) = (Vec::new(), Vec::new(), 0);
    let source = TableSource::open(path, schema, need)?;
    let bytes_total = source.bytes_total();
    let mut progress = |so_far| {
        assert!(so_far >= bytes, "progress never goes back");
        bytes = so_far;
    };
    source.for_each_coded(schema, &mut progress, &mut |rows| -> Result<(), SourceError> {
        codes.extend_from_slice(rows.codes);
        labels.extend_from_slice(rows.labels);
        Ok(())
    })?;
    assert_eq!(bytes, bytes_total, "progress ends at the end");
    Ok((codes, labels))
}

fn row_by_row(path: &Path, schema: &Schema, need: Need) -> Result<(Vec<String>, Codes), SourceError> {
    let coding = Coding::of(schema);
    let (mut codes, mut labels) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    let mut bytes = 0;
    let source = TableSource::open(path, schema, need)?;
    let bytes_total = source.bytes_total();
    let mut progress = |so_far| {
        assert!(so_far >= bytes, "progress never goes back");
        bytes = so_far;
    };
    source.for_each_row(&mut progress, &mut |row| {
        let cell = |cell: &Cell| match cell {
            Cell::Number(number) => format!("{number}"),
            Cell::Category(category) => format!("#{category}"),
        };
        let mut words: Vec<String> = row.cells.iter().map(cell).collect();
        words.push(match row.label {
            Label::Class(class) => format!("={class}"),
            Label::Value(value) => format!("={value}"),
            Label::Unusable => "-".to_owned(),
        });
        words.extend(row.unit.map(|unit| String::from_utf8_lossy(unit).into_owned()));
        rows.push(words.join(" "));
        let start = codes.len();
        codes.resize(start + coding.codes(), 0);
        coding.encode_cells(row.cells, &mut codes[start..]);
        labels.push(match row.label {
            Label::Class(class) => i16::try_from(class).expect("two classes"),
            Label::Value(_) => panic!("a target with classes"),
            Label::Unusable => UNUSABLE_LABEL,
        });
    })?;
    assert_eq!(bytes, bytes_total, "progress ends at the end");
    Ok((rows, (codes, labels)))
}

fn read(path: &Path, schema: &Schema) -> Vec<String> {
    rows_of(path, schema, Need::FeaturesAndTarget).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(path: &Path, schema: &Schema) -> SourceError {
    match rows_of(path, schema, Need::FeaturesAndTarget) {
        Ok(_) => panic!("this must not be read"),
        Err(error) => error,
    }
}

struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, bytes).expect("a file can be written");
        path
    }

    fn parquet(&self, name: &str, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
                .expect("columns of one length");
        let path = self.0.path().join(name);
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let file = fs::File::create(&path).expect("a file can be made");
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).expect("a Parquet schema");
        writer.write(&batch).expect("rows are written");
        writer.close().expect("a footer is written");
        path
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    liblzma::encode_all(bytes, 1).expect("memory takes all")
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    // With a checksum, so that damage shows.
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).expect("a level");
    encoder.include_checksum(true).expect("a setting");
    encoder.write_all(bytes).expect("memory takes all");
    encoder.finish().expect("memory takes all")
}

const TABLE: &[u8] = b"id,age,job,income\n1,20,clerk,low\n2,30,cook,high\n3,?,pilot,high\n";
const ROWS: [&str; 3] = ["20 #1 =0", "30 #2 =1", "7 #0 =1"];

#[test]
fn every_form_of_a_text_table_gives_the_same_rows() {
    let files = Files::new();
    let with_mark = [b"\xEF\xBB\xBF", TABLE].concat();
    let dressed = b" income , age ,\"job\",id\r\nlow, 20 ,\"clerk\",1\r\n\r\nhigh,30.0,\"cook\",2\r\n\
                    high,?,\"a \"\"b\"\",\r\nc\",";
    let forms: [(&str, Vec<u8>); 10] = [
        ("plain", TABLE.to_vec()),
        ("byte order mark", with_mark.clone()),
        ("quotes, spaces, other order, CRLF, blank line, no last end", dressed.to_vec()),
        ("carriage returns", TABLE.iter().map(|byte| if *byte == b'\n' { b'\r' } else { *byte }).collect()),
        ("gzip under a wrong name.csv", gzip(TABLE)),
        ("gzip of a mark", gzip(&with_mark)),
        ("gzip of several members", [gzip(&TABLE[..25]), gzip(&TABLE[25..])].concat()),
        ("xz of several streams", [xz(&TABLE[..7]), xz(&TABLE[7..])].concat()),
        ("zstd of several frames", [zst(&TABLE[..40]), zst(&TABLE[40..])].concat()),
        ("zstd after a skippable frame", [b"\x50\x2A\x4D\x18\x02\0\0\0ab".to_vec(), zst(TABLE)].concat()),
    ];
    for (name, bytes) in forms {
        assert_eq!(read(&files.write(name, bytes), &schema("")), ROWS, "{name}");
    }
    let semicolons: Vec<u8> = TABLE.iter().map(|byte| if *byte == b',' { b';' } else { *byte }).collect();
    assert_eq!(read(&files.write("semicolons", semicolons), &schema("delimiter = \";\"")), ROWS);
    let headerless = schema("header = false\ncolumns = [\"id\", \"age\", \"job\", \"income\"]");
    assert_eq!(read(&files.write("headerless", &TABLE[18..]), &headerless), ROWS);
    let declared = schema("columns = [\"id\", \"age\", \"job\", \"income\"]");
    assert_eq!(read(&files.write("declared", TABLE), &declared), ROWS);
}

#[test]
fn what_depends_on_a_row_is_absorbed() {
    let files = Files::new();
    let cases: [(&str, &[u8], &str); 17] = [
        ("no target", b"x,20,clerk", "20 #1 -"),
        ("two fields short", b"x,20", "20 #2 -"),
        ("one field", b"x", "7 #2 -"),
        ("blank field", b" ", "7 #2 -"),
        ("only delimiters", b",,,", "7 #2 -"),
        ("surplus fields", b"x,20,clerk,low,20,cook,high,,,", "20 #1 =0"),
        ("not UTF-8", b"\xFF,\xFE\xFD,\xC3\x28,low", "7 #0 =0"),
        ("label not UTF-8", b"x,20,cook,lo\xF0w", "20 #2 -"),
        ("NUL bytes", b"x,2\x000,cook\0,low", "7 #0 =0"),
        ("words for a number", b"x,twenty,clerk,low", "7 #1 =0"),
        ("not a number", b"x,NaN,clerk,low", "7 #1 =0"),
        ("infinite", b"x,-inf,clerk,low", "0 #1 =0"),
        ("beyond the bounds", b"x,1e300,clerk,low", "100 #1 =0"),
        ("overflowing", b"x,1e999,clerk,low", "100 #1 =0"),
        ("unknown category", b"x,20,astronaut,low", "20 #0 =0"),
        ("unknown class", b"x,20,clerk,middling", "20 #1 -"),
        ("quote never closed", b"x,20,\"clerk,low\ny,30,cook,high", "20 #0 -"),
    ];
    for (name, record, expected) in cases {
        let path = files.write(name, [b"id,age,job,income\n", record].concat());
        assert_eq!(read(&path, &schema("")), [expected], "{name}");
        // Without a header, too, and with company before.
        let headerless = schema("header = false\ncolumns = [\"id\", \"age\", \"job\", \"income\"]");
        let path = files.write(name, [b"1,20,clerk,low\n", record].concat());
        assert_eq!(read(&path, &headerless), ["20 #1 =0", expected], "{name}, no header");
    }
}

#[test]
fn a_record_of_any_length_is_one_row() {
    let files = Files::new();
    let long_field = [b"x,20,".to_vec(), vec![b'j'; 10_000_000], b",low\ny,30,cook,high\n".to_vec()].concat();
    let path = files.write("long.csv", [b"id,age,job,income\n".to_vec(), long_field].concat());
    assert_eq!(read(&path, &schema("")), ["20 #0 =0", "30 #2 =1"]);

    // A record beyond 64 MiB has no values, wherever it is long: a label of blanks and a class takes the features behind it along, and
    // no features are left that count with that class. The next record is whole again.
    let nothing = read(&files.write("nothing.csv", b"id,age,job,income\n,,,\n"), &schema(""));
    let padded = [vec![b' '; 70_000_000], b"low".to_vec()].concat();
    for (place, header) in [("before", "income,age,job,id\n"), ("behind", "id,age,job,income\n")] {
        let row = if place == "before" {
            [padded.as_slice(), b",20,clerk,x\nhigh,30,cook,y\n"].concat()
        } else {
            [b"x,20,clerk,", padded.as_slice(), b"\ny,30,cook,high\n"].concat()
        };
        let path = files.write("longer.csv.gz", gzip(&[header.as_bytes().to_vec(), row].concat()));
        assert_eq!(read(&path, &schema("")), [nothing[0].as_str(), "30 #2 =1"], "{place}");
    }

    let many_fields = [b"x,20,clerk,low".to_vec(), vec![b','; 5_000_000], b"\ny,30,cook,high".to_vec()].concat();
    let path = files.write("many.csv", [b"id,age,job,income\n".to_vec(), many_fields].concat());
    assert_eq!(read(&path, &schema("")), ["20 #1 =0", "30 #2 =1"]);
}

#[test]
fn blocks_do_not_show() {
    // Records that end at every place around the boundaries of the 256 KiB blocks.
    let files = Files::new();
    let mut text = b"id,age,job,income\n".to_vec();
    let mut expected = Vec::new();
    for row in 0..60_000 {
        let age = row % 101;
        text.extend(format!("\"{}\",{age},cook,high\n", "x\"\"".repeat(row % 13)).bytes());
        expected.push(format!("{age} #2 =1"));
    }
    for (name, bytes) in [("plain", text.clone()), ("gzip", gzip(&text)), ("xz", xz(&text)), ("zstd", zst(&text))] {
        assert!(read(&files.write(name, bytes), &schema("")) == expected, "{name}");
    }
}

#[test]
fn no_rows_are_legal_but_no_header_is_not() {
    let files = Files::new();
    let headerless = schema("header = false\ncolumns = [\"id\", \"age\", \"job\", \"income\"]");
    assert!(read(&files.write("header only", &TABLE[..18]), &schema("")).is_empty());
    assert!(read(&files.write("header only, no end", &TABLE[..17]), &schema("")).is_empty());
    assert!(read(&files.write("nothing", b""), &headerless).is_empty());
    for (name, bytes) in [("nothing", b"".to_vec()), ("mark", b"\xEF\xBB\xBF".to_vec()), ("packed", gzip(b""))] {
        let error = refused(&files.write(name, bytes), &schema(""));
        assert!(matches!(error, SourceError::Empty { .. }), "{name}: {error}");
    }
    let empty: Vec<(&str, ArrayRef)> = vec![
        ("age", Arc::new(Int64Array::from(Vec::<i64>::new()))),
        ("job", Arc::new(StringArray::from(Vec::<&str>::new()))),
        ("income", Arc::new(StringArray::from(Vec::<&str>::new()))),
    ];
    assert!(read(&files.parquet("empty.parquet", empty), &schema("")).is_empty());
}

#[test]
fn a_header_that_does_not_fit_is_explained() {
    let files = Files::new();
    let message = |header: &str, table: &str| {
        let path = files.write("table.csv", format!("{header}\nsecret,33,spy,low\n"));
        let message = refused(&path, &schema(table)).to_string();
        assert!(!message.contains("secret") && !message.contains("spy"), "a row in {message:?}");
        message.replace(&path.display().to_string(), "FILE")
    };
    assert_eq!(
        message("id,Age,job,income", ""),
        "FILE has no column \"age\", which the schema lists as a feature with bounds; did you mean \"Age\"?; its \
         columns are \"id\", \"Age\", \"job\", \"income\"; mend the name in the schema or give the right file"
    );
    assert!(message("id,age,job", "").contains("no column \"income\", which the schema names as the target"));
    assert!(message("age,job,income,job", "").contains("more than one column \"job\""));
    assert!(message("id;age;job;income", "").contains("has no ',', but it has ';'"));
    assert!(message("a,b", "").contains("has no header"));
    assert!(message("age,job,income", "columns = [\"age\", \"income\", \"job\"]").contains("column 2 of FILE is not"));
    assert!(message("age,job,income", "columns = [\"age\", \"job\", \"income\", \"x\"]").contains("has 3 columns"));
    // A repeated column that nobody wants is nobody's problem.
    let path = files.write("table.csv", "id,age,id,job,income\n1,20,1,clerk,low\n");
    assert_eq!(read(&path, &schema("")), ["20 #1 =0"]);
}

#[test]
fn a_first_line_that_may_be_a_row_is_not_quoted() {
    let files = Files::new();
    for first in ["Smith,41,spy,low", "Smith,41,age,low"] {
        let path = files.write("table.csv", format!("{first}\nJones,20,cook,high\n"));
        let message = refused(&path, &schema("")).to_string();
        assert!(!message.contains("Smith") && !message.contains("41") && !message.contains("spy"), "{message}");
    }
}

#[test]
fn prediction_needs_neither_target_nor_unit() {
    let files = Files::new();
    let schema = schema_of_unit("{ column = \"person\", rows_max = 2 }", "");
    let path = files.write("table.csv", "job,age\ncook,20\n");
    let rows = rows_of(&path, &schema, Need::Features).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(rows, ["20 #2 -"]);
    assert!(matches!(refused(&path, &schema), SourceError::MissingColumn { .. }));
}

#[test]
fn keys_of_units_are_the_same_in_text_and_parquet() {
    let files = Files::new();
    let schema = schema_of_unit("{ column = \"person\", rows_max = 2 }", "");
    let text =
        "person,age,job,income\n9007199254740993,20,clerk,low\n -5 ,30,cook,high\n,20,clerk,low\nNA,20,clerk,low\n";
    // The third and fourth belong to nobody who could be charged.
    let expected = ["20 #1 =0 9007199254740993", "30 #2 =1 -5", "20 #1 -", "20 #1 -"];
    assert_eq!(read(&files.write("table.csv", text), &schema), expected);
    let with_keys = |person: ArrayRef| -> Vec<(&str, ArrayRef)> {
        vec![
            ("person", person),
            ("age", Arc::new(Int8Array::from(vec![20, 30, 20, 20]))),
            ("job", Arc::new(StringArray::from(vec!["clerk", "cook", "clerk", "clerk"]))),
            ("income", Arc::new(StringArray::from(vec!["low", "high", "low", "low"]))),
        ]
    };
    let numbers = Arc::new(Int64Array::from(vec![Some(9_007_199_254_740_993), Some(-5), None, None]));
    assert_eq!(read(&files.parquet("numbers", with_keys(numbers)), &schema), expected);
    let words = Arc::new(StringArray::from(vec![Some("9007199254740993"), Some(" -5"), None, Some("NA")]));
    assert_eq!(read(&files.parquet("words", with_keys(words)), &schema), expected);
    let decimals = |digits| -> ArrayRef {
        let values = vec![Some(9_007_199_254_740_993), Some(-5), None, None];
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, digits).expect("legal"))
    };
    assert_eq!(read(&files.parquet("whole decimals", with_keys(decimals(0))), &schema), expected);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0]));
    // Two binary keys that differ in a byte that is white space would become one person after trimming.
    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"\x01\x09", b"\x01\x0A", b"\x01\x0C", b"\x01\x20"]));
    let fixed = FixedSizeBinaryArray::try_from_iter([b"\x01\x09", b"\x01\x0A", b"\x01\x0C", b"\x01\x20"].into_iter());
    let fixed: ArrayRef = Arc::new(fixed.expect("keys of two bytes"));
    // A date that no calendar holds made Arrow fail: an error that told one row from another.
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![1, 2, 3, i32::MAX]));
    let nothing: ArrayRef = Arc::new(NullArray::new(4));
    for (name, keys) in [
        ("Float64", floats),
        ("Binary", bytes),
        ("FixedSizeBinary", fixed),
        ("Date32", dates),
        ("Decimal128", decimals(2)),
        ("Null", nothing),
    ] {
        let error = refused(&files.parquet(name, with_keys(keys)), &schema);
        assert!(matches!(error, SourceError::ColumnType { .. }), "{name}: {error}");
        assert!(error.to_string().contains("\"person\"") && error.to_string().contains(name), "{error}");
    }
}

/// Arrow fails on a decimal with more bytes than its type holds, which would depend on a value.
#[test]
fn decimals_in_a_variable_number_of_bytes_are_refused_by_their_type() {
    let files = Files::new();
    for value in [vec![1u8], [vec![0; 20], vec![1]].concat()] {
        let path = files.0.path().join("table.parquet");
        let message = "message t { required binary age (DECIMAL(9, 2)); required binary job (UTF8); \
                       required binary income (UTF8); }";
        let file = fs::File::create(&path).expect("a file can be made");
        let parsed = Arc::new(parse_message_type(message).expect("a Parquet schema"));
        let mut writer = SerializedFileWriter::new(file, parsed, Arc::default()).expect("a writer");
        let mut group = writer.next_row_group().expect("a row group");
        for value in [value, b"cook".to_vec(), b"low".to_vec()] {
            let mut column = group.next_column().expect("no failure").expect("three columns");
            column.typed::<ByteArrayType>().write_batch(&[ByteArray::from(value)], None, None).expect("is written");
            column.close().expect("a column ends");
        }
        group.close().expect("a row group ends");
        writer.close().expect("a footer is written");
        assert!(matches!(refused(&path, &schema("")), SourceError::ColumnType { .. }));
    }
}

/// Which rows have a label is public there: a sum that counts the others as of some class would be of another table.
#[test]
fn under_label_rows_without_a_usable_label_are_not_handed_on() {
    let files = Files::new();
    let lines = "income,age,job,person\nlow,1,cook,ann\n,2,cook,ann\nhigh,3,cook,ann\nmaybe,4,cook,bob\nlow,5,cook,ann\n?,6,cook,bob\n\
                 high,7,cook,bob\n";
    let table = files.write("table.csv", lines);
    let labels = |adjacency: &str, unit: &str| {
        coded_rows_of(&table, &schema_under(adjacency, unit, ""), Need::FeaturesAndTarget).expect("it can be read").1
    };
    assert_eq!(labels("label", "\"row\""), [0, 1, 0, 1]);
    let missing = UNUSABLE_LABEL;
    assert_eq!(labels("replace", "\"row\""), [0, missing, 1, missing, 0, missing, 1]);
    // Of ann the first two rows that have a label, of bob the only one.
    assert_eq!(labels("label", "{ column = \"person\", rows_max = 2 }"), [0, 1, 1]);
    assert_eq!(labels("replace", "{ column = \"person\", rows_max = 2 }"), [0, missing, missing, missing]);
}

#[test]
fn parquet_types_are_read_by_what_they_mean() {
    let files = Files::new();
    let ages: Vec<(&str, ArrayRef)> = vec![
        ("Int8", Arc::new(Int8Array::from(vec![Some(20), None, Some(-3)]))),
        ("UInt64", Arc::new(UInt64Array::from(vec![Some(20), None, Some(0)]))),
        ("Float32", Arc::new(Float32Array::from(vec![Some(20.0), None, Some(f32::NEG_INFINITY)]))),
        ("NaN", Arc::new(Float64Array::from(vec![20.0, f64::NAN, -1e300]))),
        (
            "Decimal128",
            Arc::new(
                Decimal128Array::from(vec![Some(2000), None, Some(-1)]).with_precision_and_scale(9, 2).expect("legal"),
            ),
        ),
        ("Date32", Arc::new(Date32Array::from(vec![Some(20), None, Some(-400)]))),
        ("Timestamp", Arc::new(TimestampMillisecondArray::from(vec![Some(20_000), None, Some(-1)]))),
    ];
    for (name, age) in ages {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("income", Arc::new(LargeStringArray::from(vec![Some("low"), Some("high"), None]))),
            ("unused", Arc::new(StringArray::from(vec!["secret", "secret", "secret"]))),
            ("age", age),
            ("job", Arc::new(StringViewArray::from(vec![Some("clerk"), Some("a view that is long"), None]))),
        ];
        let rows = read(&files.parquet(name, columns), &schema(""));
        assert_eq!(rows, ["20 #1 =0", "7 #0 =1", "0 #2 -"], "{name}");
    }

    let words: Vec<(&str, ArrayRef)> = vec![
        ("dictionary", Arc::new(DictionaryArray::<Int32Type>::from_iter([Some("cook"), None, Some("pilot")]))),
        ("binary", Arc::new(BinaryArray::from(vec![Some(b"cook".as_slice()), None, Some(b"\xFF\xFE")]))),
    ];
    for (name, job) in words {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("age", Arc::new(BooleanArray::from(vec![true, false, true]))),
            ("job", job),
            ("income", Arc::new(StringArray::from(vec!["low", "high", "high"]))),
        ];
        assert_eq!(read(&files.parquet(name, columns), &schema("")), ["1 #2 =0", "0 #2 =1", "1 #0 =1"], "{name}");
    }

    let coded = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\n\
                 classes = [false, true]\n\
                 [features]\ncode = { categories = [1, 2] }\nflag = { categories = [false, true] }\n\
                 nothing = { bounds = [0, 1] }\n";
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("y", Arc::new(BooleanArray::from(vec![Some(false), Some(true), None]))),
        ("code", Arc::new(Int64Array::from(vec![Some(2), Some(3), None]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("nothing", Arc::new(NullArray::new(3))),
    ];
    let schema = Schema::from_text(coded).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(read(&files.parquet("coded", columns), &schema), ["#2 #2 0.5 =0", "#0 #1 0.5 =1", "#0 #0 0.5 -"]);
}

/// What a text table would spell is found, and stands in the same bucket, however many bits or digits a typed one has for it.
#[test]
fn parquet_words_are_the_numbers_of_a_text_table() {
    let files = Files::new();
    let schema = |categories: &str| {
        Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [false, true]\n\
             [features]\nlisted = {{ categories = [{categories}] }}\nhashed = {{ hash_buckets = 65521 }}\n"
        ))
        .unwrap_or_else(|problems| panic!("{problems}"))
    };
    let decimal = |values: Vec<i128>, digits: i8| -> ArrayRef {
        Arc::new(Decimal128Array::from(values).with_precision_and_scale(38, digits).expect("legal"))
    };
    let tenths: i128 = 10i128.pow(29);
    let halves = [0.1f32, 0.2, 0.4].map(<Float16Type as ArrowPrimitiveType>::Native::from_f32);
    let columns: Vec<(&str, [&str; 3], ArrayRef)> = vec![
        ("Float16", ["0.1", "0.2", "0.4"], Arc::new(Float16Array::from(halves.to_vec()))),
        ("Float32", ["0.1", "0.2", "0.4"], Arc::new(Float32Array::from(vec![0.1, 0.2, 0.4]))),
        ("Float64", ["0.1", "0.2", "0.4"], Arc::new(Float64Array::from(vec![0.1, 0.2, 0.4]))),
        ("few digits", ["0.1", "0.2", "0.4"], decimal(vec![10, 20, 40], 2)),
        ("many digits", ["0.1", "0.2", "0.4"], decimal(vec![tenths, 2 * tenths, 4 * tenths], 30)),
        (
            "long ids",
            ["9007199254740992", "9007199254740993", "-9007199254740993"],
            Arc::new(Int64Array::from(vec![9_007_199_254_740_992, 9_007_199_254_740_993, -9_007_199_254_740_993])),
        ),
        (
            "the longest ids",
            ["18446744073709551615", "18446744073709551614", "7"],
            Arc::new(UInt64Array::from(vec![u64::MAX, u64::MAX - 1, 7])),
        ),
    ];
    for (name, spelled, column) in columns {
        let schema = schema(&spelled.map(|word| format!("\"{word}\"")).join(", "));
        let lines: String = spelled.map(|word| format!("{word},{word},true\n")).concat();
        let text = read(&files.write("table.csv", format!("listed,hashed,y\n{lines}")), &schema);
        let listed: Vec<&str> = text.iter().map(|row| &row[..2]).collect();
        assert_eq!(listed, ["#1", "#2", "#3"], "{name}");
        let y: ArrayRef = Arc::new(BooleanArray::from(vec![true; 3]));
        let typed = files.parquet(name, vec![("listed", column.clone()), ("hashed", column), ("y", y)]);
        assert_eq!(read(&typed, &schema), text, "{name}");
    }
}

/// As a number, too, a decimal is the float nearest to it, whatever its digits.
#[test]
fn parquet_decimals_are_the_nearest_floats() {
    let files = Files::new();
    let mut sequence = FixedSequence::new(7);
    for digits in [0i8, 3, 17, 22, 23, 37] {
        let values: Vec<i128> = (0..300)
            .map(|place| {
                let wide = u128::from(sequence.next_below(u64::MAX)) * u128::from(sequence.next_below(u64::MAX));
                i128::try_from((wide >> (place % 120)) % 10u128.pow(38)).expect("38 digits")
            })
            .collect();
        let lines: String = values.iter().map(|value| format!("{value}e-{digits},cook,low\n")).collect();
        let schema = schema("");
        let text = read(&files.write("table.csv", format!("age,job,income\n{lines}")), &schema);
        let words = |word: &str| -> ArrayRef { Arc::new(StringArray::from(vec![word; 300])) };
        type Wide = <Decimal256Type as ArrowPrimitiveType>::Native;
        let wide: Decimal256Array = values.iter().map(|value| Some(Wide::from_i128(*value))).collect();
        let narrow = Decimal128Array::from(values).with_precision_and_scale(38, digits).expect("legal");
        let wide = wide.with_precision_and_scale(76, digits).expect("legal");
        for age in [Arc::new(narrow) as ArrayRef, Arc::new(wide)] {
            let columns = vec![("age", age), ("job", words("cook")), ("income", words("low"))];
            assert!(read(&files.parquet("table.parquet", columns), &schema) == text, "{digits}");
        }
    }
}

/// Spark's and Hive's timestamps: Julian days and nanoseconds of the day. The end of what can be said in nanoseconds is in 2262.
#[test]
fn timestamps_of_96_bits_reach_as_far_as_they_are_written() {
    let files = Files::new();
    let path = files.0.path().join("table.parquet");
    let message = "message t { required int96 age; required binary job (UTF8); required binary income (UTF8); }";
    let file = fs::File::create(&path).expect("a file can be made");
    let parsed = Arc::new(parse_message_type(message).expect("a Parquet schema"));
    let mut writer = SerializedFileWriter::new(file, parsed, Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    // 9999-12-31, and a minute past 1500-01-01.
    let of = |day: i64, nanoseconds: u64| {
        let mut value = Int96::new();
        value.set_data(nanoseconds as u32, (nanoseconds >> 32) as u32, (2_440_588 + day) as u32);
        value
    };
    let mut column = group.next_column().expect("no failure").expect("three columns");
    let values = [of(2_932_896, 0), of(-171_664, 60_000_000_000)];
    column.typed::<Int96Type>().write_batch(&values, None, None).expect("is written");
    column.close().expect("a column ends");
    for value in ["cook", "low"] {
        let mut column = group.next_column().expect("no failure").expect("three columns");
        column.typed::<ByteArrayType>().write_batch(&[value; 2].map(ByteArray::from), None, None).expect("is written");
        column.close().expect("a column ends");
    }
    group.close().expect("a row group ends");
    writer.close().expect("a footer is written");
    let wide = Schema::from_text(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"income\"\nclasses = [\"low\", \"high\"]\n\
         [features]\nage = { bounds = [-1e12, 1e12] }\njob = { categories = [\"clerk\", \"cook\"] }\n",
    )
    .unwrap_or_else(|problems| panic!("{problems}"));
    let (last, first) = (2_932_896i64 * 86_400, -171_664i64 * 86_400 + 60);
    assert_eq!(read(&path, &wide), [format!("{last} #2 =0"), format!("{first} #2 =0")]);
}

#[test]
fn parquet_text_that_is_not_utf8_is_absorbed() {
    // A column that promises UTF-8 and breaks the promise in one row.
    let files = Files::new();
    let path = files.0.path().join("table.parquet");
    let message =
        "message t { required binary age (UTF8); required binary job (UTF8); required binary income (UTF8); }";
    let message = message.replace("required binary age (UTF8)", "required binary unused (UTF8)");
    let file = fs::File::create(&path).expect("a file can be made");
    let parsed = Arc::new(parse_message_type(&message).expect("a Parquet schema"));
    let mut writer = SerializedFileWriter::new(file, parsed, Arc::default()).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    for values in [["a", "b"].map(str::as_bytes), [b"\xFF\xFF", b"cook"], [b"high", b"low"]] {
        let mut column = group.next_column().expect("no failure").expect("three columns");
        let values = values.map(|value| ByteArray::from(value.to_vec()));
        column.typed::<ByteArrayType>().write_batch(&values, None, None).expect("values are written");
        column.close().expect("a column ends");
    }
    group.close().expect("a row group ends");
    writer.close().expect("a footer is written");
    let text = "[privacy]\nunit = \"row\"\nadjacency = \"replace\"\n[target]\ncolumn = \"income\"\n\
                classes = [\"low\", \"high\"]\n[features]\njob = { categories = [\"cook\"] }\n";
    let schema = Schema::from_text(text).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(read(&path, &schema), ["#0 =1", "#1 =0"]);
}

#[test]
fn parquet_columns_that_cannot_fit_are_refused_by_their_type() {
    let files = Files::new();
    let columns = |age: ArrayRef, job: ArrayRef| -> Vec<(&str, ArrayRef)> {
        vec![("age", age), ("job", job), ("income", Arc::new(StringArray::from(vec!["low"])))]
    };
    let word = || -> ArrayRef { Arc::new(StringArray::from(vec!["secret"])) };
    let number = || -> ArrayRef { Arc::new(Int64Array::from(vec![1])) };
    let list = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1)])]));
    let date = Arc::new(Date32Array::from(vec![1]));
    for (name, bad, age, job) in [
        ("text for a number", "\"age\"", word(), word()),
        ("a list", "\"age\"", list as ArrayRef, word()),
        ("a date for a category", "\"job\"", number(), date as ArrayRef),
    ] {
        let error = refused(&files.parquet(name, columns(age, job)), &schema(""));
        assert!(matches!(error, SourceError::ColumnType { .. }), "{name}: {error}");
        let message = error.to_string();
        assert!(message.contains(bad) && !message.contains("secret"), "{message}");
    }
    let path = files.parquet("missing", vec![("age", number()), ("Job", word())]);
    assert!(refused(&path, &schema("")).to_string().contains("did you mean \"Job\""));
}

#[test]
fn many_batches_and_one_value_in_all_of_them() {
    let files = Files::new();
    let rows = 20_000;
    // Materialised, 20,000 times 100 kB would be 2 GB.
    let word = "j".repeat(100_000);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("age", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row % 101)))),
        ("job", Arc::new(DictionaryArray::<Int32Type>::from_iter((0..rows).map(|_| word.as_str())))),
        ("income", Arc::new(StringArray::from_iter_values((0..rows).map(|_| "high")))),
    ];
    let expected: Vec<String> = (0..rows).map(|row| format!("{} #0 =1", row % 101)).collect();
    assert!(read(&files.parquet("table", columns), &schema("")) == expected);
}

#[test]
fn broken_files_are_refused_without_a_word_of_their_rows() {
    let files = Files::new();
    let mut table = b"id,age,job,income\n".to_vec();
    let mut sequence = FixedSequence::new(1);
    for _ in 0..20_000 {
        table.extend(format!("secret{},20,cook,low\n", sequence.next_word()).bytes());
    }
    let check = |name: &str, bytes: &[u8], is_expected: fn(&SourceError) -> bool| {
        let error = refused(&files.write(name, bytes), &schema(""));
        assert!(is_expected(&error), "{name}: {error:?}");
        assert!(!error.to_string().contains("secret"), "{error}");
    };
    for (name, packed) in [("gzip", gzip(&table)), ("xz", xz(&table)), ("zstd", zst(&table))] {
        for keep in [packed.len() - 1, packed.len() / 2, 20] {
            check(name, &packed[..keep], |error| matches!(error, SourceError::Truncated { .. }));
        }
        let mut damaged = packed.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x55;
        damaged[middle + 1] ^= 0x55;
        check(name, &damaged, |error| matches!(error, SourceError::Damaged { .. } | SourceError::Truncated { .. }));
        let trailed = [packed.clone(), b"trailing garbage".to_vec()].concat();
        check(name, &trailed, |error| matches!(error, SourceError::Damaged { .. }));
        check(name, &gzip(&packed), |error| matches!(error, SourceError::Unsupported { .. }));
    }
    let age: ArrayRef = Arc::new(Int64Array::from_iter_values(0..5000));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((0..5000).map(|row| format!("secret{row}"))));
    let columns = vec![("age", age), ("job", Arc::clone(&words)), ("income", words)];
    let parquet = fs::read(files.parquet("table.parquet", columns)).expect("it was just written");
    for keep in [parquet.len() - 1, parquet.len() / 2, 12, 4] {
        check("parquet", &parquet[..keep], |error| matches!(error, SourceError::Truncated { .. }));
    }
    let mut damaged = parquet.clone();
    let end = parquet.len() / 2;
    damaged[4..end].iter_mut().for_each(|byte| *byte ^= 0xA5);
    check("parquet", &damaged, |error| matches!(error, SourceError::Damaged { reason: None, .. }));
    let mut damaged = parquet.clone();
    let footer = parquet.len() - 100;
    damaged[footer..footer + 80].fill(0xFF);
    check("parquet", &damaged, |error| matches!(error, SourceError::Damaged { .. }));
    check("parquet in gzip", &gzip(&parquet), |error| matches!(error, SourceError::Unsupported { .. }));
}

/// A footer may be plain where columns are encrypted: what cannot be decoded is then not damaged, and what can is read.
#[test]
fn encrypted_columns_are_not_called_damaged() {
    let files = Files::new();
    let words = |word: &str| -> ArrayRef { Arc::new(StringArray::from(vec![word; 3])) };
    let age: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let path = files.parquet("table.parquet", vec![("age", age), ("job", words("cook")), ("income", words("low"))]);
    let mut bytes = fs::read(&path).expect("it is there");
    // Field 8 of the footer, behind field 7 and before its end: the algorithm.
    let end = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[end..end + 4].try_into().expect("four bytes")) + 4;
    bytes.truncate(end - 1);
    bytes.extend([0x1C, 0x1C, 0, 0, 0]);
    bytes.extend(length.to_le_bytes());
    bytes.extend(b"PAR1");
    assert_eq!(read(&files.write("readable", &bytes), &schema("")).len(), 3);
    bytes[4..24].fill(0xff);
    let error = refused(&files.write("encrypted", &bytes), &schema(""));
    assert!(error.to_string().contains("is an encrypted Parquet file"), "{error}");
}

#[test]
fn other_kinds_of_files_are_named() {
    let files = Files::new();
    for (bytes, name) in [
        (b"PK\x03\x04rest".to_vec(), "zip"),
        (b"ORC\n\x0a\x03\x00\x01".to_vec(), "ORC"),
        (b"BZh91AY&SY\x8f\x1d\0\0rest".to_vec(), "bzip2"),
        (b"SQLite format 3\0rest".to_vec(), "SQLite"),
        (b"\xFF\xFEa\0g\0e\0".to_vec(), "UTF-16"),
        (gzip(&[vec![0; 257], b"ustar  ".to_vec(), vec![0; 300]].concat()), "tar"),
    ] {
        let message = refused(&files.write("table", bytes), &schema("")).to_string();
        assert!(message.contains(name), "{name}: {message}");
    }
    let directory = refused(files.0.path(), &schema(""));
    assert!(matches!(directory, SourceError::Directory { .. }) && directory.is_io(), "{directory}");
    let nowhere = refused(&files.0.path().join("nowhere.csv"), &schema(""));
    assert!(matches!(nowhere, SourceError::NotFound { .. }), "{nowhere}");
}

#[test]
fn a_text_that_begins_like_another_format_is_a_text() {
    let files = Files::new();
    let headerless = schema("header = false\ncolumns = [\"id\", \"age\", \"job\", \"income\"]");
    for id in ["PAR1", "PARE", "ORC", "ORCHARD", "BZh91AY&SY"] {
        let path = files.write("table", format!("{id},20,clerk,low\n"));
        assert_eq!(read(&path, &headerless), ["20 #1 =0"], "{id}");
    }
}

/// What is said of a file must not depend on a row: neither on its bytes, nor on whether it is there.
#[test]
fn rows_do_not_decide_what_kind_of_file_it_is() {
    let files = Files::new();
    for header in ["age,job,income,PAR1", "PAR1,age,job,income"] {
        for row in ["20,clerk,low,PAR1", "20,clerk,low,PARE", "20,clerk,low,\u{1}", "20,clerk,low,ustar"] {
            let row = format!("{row},{}", "x".repeat(300));
            let rows = if header.starts_with("PAR1") { format!("1,{row}") } else { row };
            assert_eq!(
                read(&files.write("table", format!("{header}\n{rows}\n{rows}")), &schema("")).len(),
                2,
                "{rows}"
            );
        }
    }
    // Letters of tar where tar has them.
    for place in 200..260 {
        let table = format!("age,job,income\n20,clerk,low,{}ustar\n", "x".repeat(place));
        assert_eq!(read(&files.write("table", table), &schema("")), ["20 #1 =0"], "{place}");
    }
}

#[test]
fn a_header_whose_quotes_are_not_closed_is_refused_and_nothing_behind_it_is_looked_at() {
    let files = Files::new();
    let broken = |text: &str| refused(&files.write("table.csv", text), &schema("")).to_string();
    let header = "\u{feff}\r\nage,job,\"income";
    let message = broken(&format!("{header}\n20,SECRET,low\n30,SECRET,high\n"));
    assert!(message.contains("is not closed"), "{message}");
    let long = "SECRET,".repeat(3 << 20);
    for rows in ["", "\n", "\r\n20,\"SECRET\",low\n", "\n20,SECRET,low\"\n", "\n\"\",SECRET,job,age,income\n", &long] {
        let end = if rows.starts_with("SECRET") { "\n" } else { "" };
        let rows = format!("{header}{end}{rows}");
        assert_eq!(broken(&rows), message);
    }
    assert!(read(&files.write("table.csv", "age,job,\"income\""), &schema("")).is_empty(), "no line end, and no rows");
    // However long it is, it is read in pieces.
    let wide: String = (0..5000).map(|column| format!("column {column} \"\" ,")).collect();
    let table = format!("{wide}age,job,\"income\"\n{}20,clerk,low\n", ",".repeat(5000));
    assert_eq!(read(&files.write("table.csv", table), &schema("")), ["20 #1 =0"]);
    // A closed one may hold anything but a line end.
    let table = "\n\r\n\"age\",\"a \"\"job\"\", or none\",job,income\r\n20,,clerk,low\r\n";
    assert_eq!(read(&files.write("table.csv", table), &schema("")), ["20 #1 =0"]);
}
