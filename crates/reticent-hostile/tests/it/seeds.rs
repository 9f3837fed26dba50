//! Writes the inputs that the fuzzer starts from, one or more sound files of every kind, into `fuzz/corpus`.
//!
//! `cargo test --workspace --test hostile seeds -- --ignored`. A ledger and what comes out of one are drawn anew each time.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float32Array,
    Float64Array, Int8Array, Int64Array, ListArray, StringArray, TimestampMillisecondArray, UInt64Array,
};
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use reticent_core::adjacency::Relation;
use reticent_core::ledger::Budget;
use reticent_core::schema::Schema;
use reticent_core::units::{Delta, Epsilon};
use reticent_curator::label_measure::{LabelTerms, measure};
use reticent_curator::ledger_file::LedgerFile;
use reticent_curator::weights_file::read_weights;

#[test]
#[ignore = "writes files of the repository"]
fn seeds_are_written() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let seeds = [
        ("csv", csv()),
        ("parquet", parquet()),
        ("libsvm", LIBSVM.map(<[u8]>::to_vec).into()),
        ("schema", SCHEMAS.map(|text| text.as_bytes().to_vec()).into()),
        ("model", models()),
        ("votes", VOTES.map(<[u8]>::to_vec).into()),
        ("weights", WEIGHTS.map(<[u8]>::to_vec).into()),
    ];
    for (kind, seeds) in seeds {
        write(&corpus, kind, &seeds);
    }
    let (ledgers, releases) = ledgers_and_releases();
    write(&corpus, "ledger", &ledgers);
    write(&corpus, "releases", &releases);
}

fn write(corpus: &Path, kind: &str, seeds: &[Vec<u8>]) {
    let folder = corpus.join(kind);
    fs::create_dir_all(&folder).expect("the repository can be written");
    for (number, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{number:02}")), seed).expect("the repository can be written");
    }
}

/// Texts for each schema and way of packing (`src/libsvm.rs` says what the first byte means).
const LIBSVM: [&[u8]; 6] = [
    b"\x00+1 1:0.5 3:-1 12:a 30:u 0:1e6\n-1 2:1\n\n1 qid:7 9:nan # a remark\n",
    b"\x01a qid:p 1:0 3:1 3:0.25\nb qid:p 12:1\nc qid:q\n0 qid:p 5:x y :3 -3:7",
    b"\x02-3.5 qid:1 1:1\r\n9 30:x\r\n\xEF\xBB\xBF2 1:1\n",
    b"\x031 1:1\n-1 2:1\n",
    b"\x06qid:7 1:1\n1 18446744073709551616:1 00012:a\n",
    b"\x0b1e0 qid:\xFF 4:.5\n",
];

/// Texts for each schema and way of packing (`src/csv.rs` says what the first byte means).
fn csv() -> Vec<Vec<u8>> {
    const HEADER: &str = "c,unused,job,a,person,y,b\n";
    const ROWS: &str = "1.5,x,clerk,3,p,yes,12345\n2,,cook,-3,p,no,1e5\n,\"q\"\"u,o\nted\",\"1\",NaN,q,1,\n\n7,x\r\n-0.000001,x,?,\
                        99999999999,\"p\",maybe,9007199254740993,surplus\r";
    let with = |delimiter: &str, header: bool| {
        let text = if header { format!("{HEADER}{ROWS}") } else { ROWS.to_owned() };
        text.replace(',', delimiter).into_bytes()
    };
    let texts =
        [with(",", true), with(",", true), with(";", true), with(",", false), with(" ", false), with("\t", true)];
    let mut seeds = Vec::new();
    for way in [0, 2, 3, 4, 5] {
        for (schema, text) in texts.iter().enumerate() {
            if way == 0 || schema == way % 6 {
                let choice = if way == 5 { 250 + schema } else { way * 6 + schema };
                seeds.push([&[choice as u8], text.as_slice()].concat());
            }
        }
    }
    seeds.push([b"\x00\xEF\xBB\xBF", HEADER.as_bytes(), b"\"1\" ,x,\xFF\xFE,-.5,p,true,+1\n"].concat());
    // Packed streams as they are.
    let text = with(",", true);
    let packed = zstd::encode_all(text.as_slice(), 3).expect("memory is written");
    seeds.push([&[1], packed.as_slice()].concat());
    seeds.push([&[1], packed.as_slice(), packed.as_slice()].concat());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &text).expect("memory is written");
    seeds.push([&[1], gzip.finish().expect("memory is written").as_slice()].concat());
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 0);
    std::io::Write::write_all(&mut xz, &text).expect("memory is written");
    seeds.push([&[1], xz.finish().expect("memory is written").as_slice()].concat());
    seeds
}

type NamedColumn = (&'static str, ArrayRef);

/// Columns by the names of the schemas, in many types, encodings and compressions.
fn parquet() -> Vec<Vec<u8>> {
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![Some(1.5), None, Some(f64::NAN), Some(-1e300)]));
    let words: ArrayRef = Arc::new(StringArray::from(vec![Some("clerk"), Some("cook"), None, Some("1")]));
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["p", "p", "q", "p"]));
    let labels: ArrayRef = Arc::new(StringArray::from(vec![Some("yes"), Some("no"), None, Some("maybe")]));
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1, i64::MAX, i64::MIN, 7]));
    let usual = || {
        vec![
            ("c", numbers.clone()),
            ("job", words.clone()),
            ("a", numbers.clone()),
            ("person", keys.clone()),
            ("y", labels.clone()),
            ("b", whole.clone()),
        ]
    };
    let with = |changes: Vec<(&'static str, ArrayRef)>| {
        let mut columns = usual();
        for (name, array) in changes {
            match columns.iter_mut().find(|(known, _)| *known == name) {
                Some((_, column)) => *column = array,
                None => columns.push((name, array)),
            }
        }
        columns
    };
    let plain = || WriterProperties::builder();
    let encoded = |column: &str, encoding| {
        plain()
            .set_dictionary_enabled(false)
            .set_column_encoding(ColumnPath::from(column), encoding)
            .set_writer_version(WriterVersion::PARQUET_2_0)
            .build()
    };
    let compressed = |compression| plain().set_compression(compression).build();
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1)]),
        None,
        Some(vec![]),
        Some(vec![None]),
    ]);
    let fixed = FixedSizeBinaryArray::try_from_iter([*b"ab", *b"cd", *b"ef", *b"gh"].into_iter()).expect("one length");
    let decimal = Decimal128Array::from(vec![Some(12_345), None, Some(-1), Some(0)]).with_precision_and_scale(20, 2);
    let dates: ArrayRef = Arc::new(Date32Array::from(vec![Some(0), None, Some(i32::MAX), Some(-1)]));
    let files = [
        (usual(), plain().build()),
        (usual(), plain().set_dictionary_enabled(false).set_write_page_header_statistics(true).build()),
        (usual(), plain().set_writer_version(WriterVersion::PARQUET_2_0).set_max_row_group_row_count(Some(2)).build()),
        (usual(), encoded("b", Encoding::DELTA_BINARY_PACKED)),
        (usual(), encoded("a", Encoding::BYTE_STREAM_SPLIT)),
        (usual(), encoded("job", Encoding::DELTA_BYTE_ARRAY)),
        (usual(), encoded("y", Encoding::DELTA_LENGTH_BYTE_ARRAY)),
        (usual(), compressed(Compression::SNAPPY)),
        (usual(), compressed(Compression::ZSTD(ZstdLevel::default()))),
        (usual(), compressed(Compression::GZIP(GzipLevel::default()))),
        (usual(), compressed(Compression::BROTLI(BrotliLevel::default()))),
        (usual(), compressed(Compression::LZ4_RAW)),
        (with(vec![("unused", Arc::new(list)), ("job", Arc::new(fixed))]), plain().build()),
        (with(vec![("a", Arc::new(decimal.expect("legal"))), ("c", dates)]), plain().build()),
        (
            with(vec![
                ("a", Arc::new(TimestampMillisecondArray::from(vec![0, -1, i64::MAX, i64::MIN]))),
                ("c", Arc::new(Float32Array::from(vec![1.0, f32::NAN, f32::INFINITY, -0.0]))),
                ("b", Arc::new(UInt64Array::from(vec![0, 1, u64::MAX, 5]))),
                ("job", Arc::new(BinaryArray::from(vec![b"clerk".as_slice(), b"\xFF", b"", b"cook"]))),
                ("y", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
                ("person", Arc::new(Int8Array::from(vec![Some(1), None, Some(1), Some(-1)]))),
            ]),
            plain().build(),
        ),
    ];
    let bytes = |(place, (columns, properties)): (usize, (Vec<NamedColumn>, WriterProperties))| {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
        let batch = batch.expect("columns of one length");
        let mut file = vec![[0, 1, 3, 240][place % 4]];
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).expect("a legal schema");
        writer.write(&batch).expect("memory is written");
        writer.close().expect("memory is written");
        file
    };
    files.into_iter().enumerate().map(bytes).collect()
}

const SCHEMAS: [&str; 4] = [
    "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\nrows = 1000\n\n[target]\ncolumn = \"outcome\"\nclasses = [\"no\", [\"yes\", \
     1, true]]\n\n[features]\nage = { bounds = [0, 100], missing = 7, log = true }\nward = { categories = [\"north\", \"south\"], missing = \
     \"south\" }\n",
    "[privacy]\nunit = { column = \"patient id\", rows_max = 4 }\nadjacency = \"label\"\nrows_max = 68719476736\nrow_norm = \
     2.5\n[table]\nheader = false\ncolumns = [\"patient id\", \"x\", \"y\"]\ndelimiter = \"\\t\"\nmissing = [\"\", \"-99\", \"\\u00e9\"]\n[target]\ncolumn \
     = \"y\"\nbounds = [-1e100, 1e100]\n[features]\nx = { bounds = [-0.0, 1e-9] }\n",
    "# replace\nprivacy = { unit = \"row\", adjacency = \"replace\", rows = 5, rows_max = 10 }\ntarget.column = 'c'\ntarget.classes = [0, 1, \
     2]\nfeatures.\"a.b\" = { categories = [1.0, 2, \"other words\"] }\nfeatures.d = { bounds = [0x10, 1_000] }\n",
    "{\"privacy\":{\"unit\":\"row\",\"adjacency\":\"party\",\"rows\":null,\"rows_max\":100,\"row_norm\":null},\"table\":{\"header\":true,\
     \"columns\":null,\"delimiter\":44,\"missing\":[]},\"target\":{\"column\":\"y\",\"kind\":{\"bounds\":{\"low\":0,\"high\":1}}},\"features\":[{\
     \"name\":\"x\",\"kind\":{\"numeric\":{\"low\":0,\"high\":1,\"missing\":0.5,\"log\":false}}}]}",
];

/// A private model as a fit wrote it, and public ones of the other tasks.
fn models() -> Vec<Vec<u8>> {
    let fixture = include_str!("../../../reticent-cli/tests/it/fixtures/model.json");
    let fixture: serde_json::Value = serde_json::from_str(fixture).expect("JSON");
    let mut seeds = vec![fixture.to_string().into_bytes()];
    for target in ["classes = [\"a\", \"b\", \"c\"]", "bounds = [-5, 5]"] {
        let schema = label_schema(target);
        let rows: Vec<([f64; 5], f64)> = (0..30u32)
            .map(|row| {
                ([1.0, f64::from(row % 7) - 3.0, f64::from(row % 2), f64::from((row + 1) % 2), 0.0], f64::from(row % 3))
            })
            .collect();
        let rows = rows.iter().map(|(columns, label)| (columns, *label));
        let rows = reticent_fit::labelled_rows::LabelledRows::of(&schema, rows).expect("few columns");
        let model = reticent_fit::public_fit::fit(&schema, rows).expect("rows of all classes");
        let model: serde_json::Value = serde_json::from_str(&model.to_json()).expect("JSON");
        seeds.push(model.to_string().into_bytes());
    }
    seeds
}

const VOTES: [&[u8]; 5] = [
    b"\x00# reticent votes 1\n# party: a\n# auxiliary: f00d\nrow,class\n1,yes\n2,no\n3,1\n",
    b"\x02# reticent votes 1\n# party: a\n# auxiliary: f00d\nrow,no,yes\n1,0.25,0.75\n2,1,0\n3,0,1\n",
    b"\x01# reticent votes 1\r\n# party: a\r\n# auxiliary: f00d\r\nrow,class\r\n1,\"a,b\"\r\n2,\"#c\"\r\n3,\"d\"\"e\"\r\n",
    b"\x05# reticent votes 1\n# party: a\n# auxiliary: f00d\nrow,\"d\"\"e\",#c,\"a,b\"\n1,0.333,0.333,0.334\n2,1,0,0\n3,0,0.5,0.5\n",
    b"\x00# parties\nnorth-clinic\nsouth.clinic\n\nClinic_3\n",
];

const WEIGHTS: [&[u8]; 3] = [
    b"# weights of a regression by reticent: 3 rows, 2 columns\nid,q1,q2\n1,1048576,0\n2,-7,100\nunknown,0,1\n",
    b"id,q1\n\"a,\"\"b\",1\r\nx,-2147483648\r\n",
    b"id,q1,q2,q3,q4,q5\n1,100,3,4,5,0\n2,-7,1,0,0,0\n3,0,0,250,1,1\n4,1,1,1,1,1\nx,0,2,0,2,0\n",
];

fn label_schema(target: &str) -> Schema {
    let text = format!(
        "[privacy]\nunit = {{ column = \"person\", rows_max = 2 }}\nadjacency = \"label\"\nrows_max = 1000\n[target]\n\
         column = \"y\"\n{target}\n[features]\na = {{ bounds = [-10, 10] }}\njob = {{ categories = [\"clerk\", \"cook\"] }}\n"
    );
    Schema::from_text(&text).unwrap_or_else(|problems| panic!("{problems}"))
}

/// Ledgers with nothing, a limit, entries, a kept answer; and the answers.
fn ledgers_and_releases() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let place = |name: &str| -> PathBuf { folder.path().join(name) };
    let budget = Budget { epsilon: Epsilon::new(8.0).expect("above 0"), delta: Delta::new(1e-6).expect("below 1") };
    let relation = |text: &str| text.parse::<Relation>().expect("a relation");
    let promised = [relation("row:add-remove"), relation("row:replace")].into();
    LedgerFile::create(&place("empty"), &promised, None).expect("a new ledger");
    LedgerFile::create(&place("limited"), &promised, Some(budget)).expect("a new ledger");

    fs::write(place("weights"), WEIGHTS[2]).expect("room");
    fs::write(
        place("labels"),
        "id,person,y,a,job\n1,p,yes,3,clerk\n2,p,no,-3,cook\n3,q,1,1,x\n4,,b,9,clerk\nx,s,yes,1,cook\n",
    )
    .expect("room");
    let list = read_weights(&place("weights"), &mut |_| {}).expect("sound");
    let mut ledger = LedgerFile::create(&place("answered"), &[relation("person<=2:label")].into(), Some(budget))
        .expect("a new ledger");
    let mut releases = Vec::new();
    for target in ["classes = [\"no\", \"yes\"]", "classes = [\"a\", \"b\", \"c\"]", "bounds = [-5, 5]"] {
        let schema = label_schema(target);
        let terms = LabelTerms {
            schema: &schema,
            id_column: "id",
            unmatched: None,
            epsilon: Epsilon::new(1.0).expect("above 0"),
            delta: Delta::new(1e-6).expect("below 1"),
            data: "labels.csv",
        };
        let answer = measure(&list, &place("labels"), &terms, &mut ledger, &mut |_| {}).expect("within the limit");
        releases.push(answer.text.into_bytes());
    }
    let mut ledgers: Vec<Vec<u8>> =
        ["empty", "limited", "answered"].map(|name| fs::read(place(name)).expect("it was written")).into();
    // Texts that a ledger keeps.
    let request = &ledger.entries().expect("sound")[0].request;
    ledgers.push(serde_json::to_vec(request).expect("text and integers"));
    ledgers.push(b"patient<=4:replace".to_vec());
    ledgers.push(b"\"79228162514264337593543950336\"".to_vec());
    (ledgers, releases)
}
