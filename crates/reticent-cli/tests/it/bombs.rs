//! Small files that stand for a lot: packed text without end, sizes that no file has, counts in the billions, deep nesting. The
//! program runs with a limit on its memory and ends with an answer or with a message, never by a signal.

#![cfg(unix)]

use std::process::Command;

use crate::support::{FIT, Folder, MODEL, Outcome, SCHEMA, Table, gzip, program, xz, zstd};

/// Address space of a run, which is more than the memory it uses. The reader's own limits, 64 MiB for a record and 256 MiB for
/// a page, fit in; what is unpacked does not.
const MEBIBYTES: u64 = 768;

fn run_within(folder: &Folder, mebibytes: u64, line: &str) -> Outcome {
    let script = format!("ulimit -v {}; exec \"$0\" {line}", mebibytes * 1024);
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(program()).current_dir(folder.path(""));
    Outcome::of(command.output().expect("a shell"))
}

/// Runs a command that must fail with a message, and leave no result.
#[track_caller]
fn refuse(folder: &Folder, code: i32, line: &str) -> String {
    let before = folder.files();
    let outcome = run_within(folder, MEBIBYTES, line);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (code, ""), "{line}: {}", outcome.stderr);
    assert!(outcome.stderr.starts_with("error: ") && outcome.stderr.lines().count() < 60, "{}", outcome.stderr);
    assert!(folder.files() == before, "{line} left something");
    outcome.stderr
}

/// A packed text that begins with `beginning` and goes on with as many mebibytes of `filling`: each packing may be continued by
/// another packed piece.
fn packed(pack: Pack, beginning: &[u8], filling: u8, mebibytes: usize) -> Vec<u8> {
    const PIECE: usize = 16;
    let piece = pack(&vec![filling; PIECE << 20]);
    [pack(beginning), piece.repeat(mebibytes / PIECE)].concat()
}

/// The same with a row that is repeated.
fn packed_rows(pack: Pack, beginning: &[u8], row: &[u8], mebibytes: usize) -> Vec<u8> {
    const PIECE: usize = 16;
    let piece = pack(&row.repeat((PIECE << 20) / row.len()));
    [pack(beginning), piece.repeat(mebibytes / PIECE)].concat()
}

/// A way to pack bytes.
type Pack = fn(&[u8]) -> Vec<u8>;

const PACKINGS: [(&str, Pack); 3] = [("gzip", gzip), ("xz", xz), ("zstd", zstd)];

#[test]
fn a_first_line_without_end_is_no_header() {
    for (name, pack) in PACKINGS {
        let folder = Folder::new();
        folder.write("table.csv", packed(pack, b"age", b'x', 1024));
        let message = refuse(&folder, 3, FIT);
        assert!(message.contains("the first line of table.csv is too long for a header"), "{name}: {message}");
        refuse(&folder, 3, "schema draft table.csv");
        refuse(&folder, 3, "predict --model model.json --data table.csv --out p.csv");
    }
    let folder = Folder::new();
    folder.write("table.csv", packed(zstd, b"age", b',', 1024));
    let message = refuse(&folder, 3, FIT);
    assert!(message.contains("the first line of table.csv is too long for a header"), "{message}");
}

/// What passes the limit of a record is not there: one row more, and memory does not grow with it.
#[test]
fn a_field_without_end_is_one_row_more() {
    let usual = Table::usual().csv();
    for (name, pack) in PACKINGS {
        let folder = Folder::new();
        folder.write("table.csv", packed(pack, &[&usual, &b"1,20,\""[..]].concat(), 0, 1024));
        let before = folder.files();
        let outcome = run_within(&folder, MEBIBYTES, "predict --model model.json --data table.csv --out p.csv");
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{name}");
        assert_eq!(folder.text("p.csv").lines().count(), 402, "{name}: header, 400 rows and this one");
        folder.remove("p.csv");
        assert!(folder.files() == before);
    }
    // The other reader, straight to codes.
    let folder = Folder::new();
    folder.write("table.csv", packed(zstd, &[&usual, &b"1,20,\""[..]].concat(), b'"', 1024));
    folder.remove("model.json");
    let outcome = run_within(&folder, MEBIBYTES, FIT);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

const UNITS: &str = "{ column = \"ward\", rows_max = 2 }";

/// Keys of units are kept while a table is read. Where there is no memory for them the message is the same whatever they are, and no
/// aborting allocation prints their length.
#[test]
fn keys_that_do_not_fit_end_with_the_same_words_however_long_they_are() {
    let told = [100, 250, 300].map(|bytes| {
        let folder = Folder::new();
        folder.remove("model.json");
        folder.write("schema.toml", SCHEMA.replace("\"row\"", "{ column = \"patient\", rows_max = 1 }"));
        let mut text = b"patient,age,dose,ward,comment,outcome\n".to_vec();
        for row in 0..1_500_000 {
            text.extend(format!("{row:0bytes$},20,100,north,,yes\n").as_bytes());
        }
        folder.write("table.csv", zstd(&text));
        let outcome = run_within(&folder, 160, FIT);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (5, ""), "{}", outcome.stderr);
        outcome.stderr
    });
    assert_eq!(told, [told[0].as_str(); 3]);
    assert!(told[0].contains("not enough memory for the table") && told[0].contains("--memory"), "{}", told[0]);
}

/// Long ones are kept by their digest: a gigabyte of them fits.
#[test]
fn keys_may_be_long() {
    let told = [1, 24].map(|mebibytes| {
        let folder = Folder::new();
        folder.remove("model.json");
        folder.write("schema.toml", SCHEMA.replace("\"row\"", "{ column = \"patient\", rows_max = 1 }"));
        let key = vec![b'x'; mebibytes << 20];
        let row = |row: usize| zstd(&[&key, row.to_string().as_bytes(), b",20,100,north,,yes\n"].concat());
        let header = zstd(b"patient,age,dose,ward,comment,outcome\n");
        folder.write("table.csv", [header, (0..1000 / mebibytes).flat_map(row).collect()].concat());
        let outcome = run_within(&folder, MEBIBYTES, FIT);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
        outcome.stdout
    });
    assert!(told.iter().all(|told| told.contains("Protects: patient<=1:add-remove")), "{told:?}");
}

/// One key for thousands of rows, which the file holds once; and a page for each row, which a batch of them would hold all.
#[test]
fn long_texts_of_parquet_do_not_fill_the_memory() {
    let folder = Folder::new();
    folder.remove("model.json");
    let units = SCHEMA.replace("\"row\"", UNITS).replace("ward = { categories = [\"north\", \"south\"] }\n", "");
    folder.write("schema.toml", units);
    let file = equal_texts(20_000, 100_000, Layout::Dictionary);
    assert!(file.len() < 1 << 20, "a small file");
    folder.write("table.csv", file);
    let outcome = run_within(&folder, MEBIBYTES, FIT);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));

    folder.remove("model.json");
    folder.remove("table.csv.ledger");
    folder.write("schema.toml", SCHEMA);
    folder.write("table.csv", equal_texts(60, 30 << 20, Layout::GroupsOfOneRow));
    let outcome = run_within(&folder, MEBIBYTES, FIT);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn blank_lines_without_end_are_no_rows() {
    let folder = Folder::new();
    folder.write("table.csv", packed(zstd, &Table::usual().csv(), b'\n', 1024));
    folder.remove("model.json");
    let outcome = run_within(&folder, MEBIBYTES, FIT);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

/// What a forged Parquet file says of itself; `None` where the file is left as it should be.
#[derive(Default)]
struct Forged {
    /// Row groups, while one is there.
    row_groups: Option<i64>,
    /// Columns of the table, while three are there.
    columns: Option<i64>,
    /// Groups of columns around the first.
    nesting: usize,
    /// Rows of the file, of its row group, and values of its columns.
    rows: Option<i64>,
    /// Values of each page.
    page_values: Option<i64>,
    uncompressed: Option<i64>,
    compressed: Option<i64>,
    /// Entries of a dictionary before the first page.
    dictionary: Option<i64>,
    /// Bytes of a page's only value.
    text: Option<u32>,
    codec: i64,
}

/// Thrift's compact protocol, as far as a forger needs it.
#[derive(Default)]
struct Thrift(Vec<u8>);

impl Thrift {
    fn count(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// An integer `delta` fields after the last one.
    fn integer(&mut self, delta: u8, value: i64) -> &mut Self {
        // Of 32 bits, or of 64.
        self.0.push(delta << 4 | if i32::try_from(value).is_ok() { 5 } else { 6 });
        self.element(value)
    }

    fn long(&mut self, delta: u8, value: i64) -> &mut Self {
        self.0.push(delta << 4 | 6);
        self.element(value)
    }

    fn element(&mut self, value: i64) -> &mut Self {
        self.count((value << 1 ^ value >> 63) as u64);
        self
    }

    fn text(&mut self, delta: u8, text: &str) -> &mut Self {
        self.0.push(delta << 4 | 8);
        self.count(text.len() as u64);
        self.0.extend(text.bytes());
        self
    }

    fn list(&mut self, delta: u8, code: u8, size: i64) -> &mut Self {
        self.0.extend([delta << 4 | 9, 0xF0 | code]);
        self.count(size as u64);
        self
    }

    fn structure(&mut self, delta: u8) -> &mut Self {
        self.0.push(delta << 4 | 12);
        self
    }

    fn end(&mut self) -> &mut Self {
        self.0.push(0);
        self
    }
}

/// Columns that the usual schema reads, with one row.
fn forged(forged: &Forged) -> Vec<u8> {
    const COLUMNS: [(&str, i64); 4] = [("age", 5), ("dose", 5), ("ward", 6), ("outcome", 6)];
    let mut file = b"PAR1".to_vec();
    let mut chunks = Vec::new();
    for (_, physical) in COLUMNS {
        let mut data = match (physical, forged.text) {
            (5, _) => 1.5f64.to_le_bytes().to_vec(),
            (_, None) => [&3u32.to_le_bytes()[..], b"yes"].concat(),
            (_, Some(length)) => [&length.to_le_bytes()[..], b"yes"].concat(),
        };
        let unpacked = data.len() as i64;
        if forged.codec == 6 {
            data = zstd(&data);
        }
        let start = file.len();
        let mut header = Thrift::default();
        if let Some(entries) = forged.dictionary {
            header.integer(1, 2).integer(1, data.len() as i64).integer(1, data.len() as i64);
            header.structure(4).integer(1, entries).integer(1, 0).end().end();
            header.0.extend(&data);
        }
        header.integer(1, 0);
        header.integer(1, forged.uncompressed.unwrap_or(unpacked));
        header.integer(1, forged.compressed.unwrap_or(data.len() as i64));
        header
            .structure(2)
            .integer(1, forged.page_values.unwrap_or(1))
            .integer(1, 0)
            .integer(1, 3)
            .integer(1, 3)
            .end()
            .end();
        file.extend(header.0);
        file.extend(data);
        chunks.push((start, file.len() - start));
    }
    let rows = forged.rows.unwrap_or(1);
    let mut footer = Thrift::default();
    footer.integer(1, 1).list(1, 12, (COLUMNS.len() + 1 + forged.nesting) as i64);
    footer.text(4, "schema").integer(1, forged.columns.unwrap_or(COLUMNS.len() as i64)).end();
    for (place, (name, physical)) in COLUMNS.into_iter().enumerate() {
        if place == 0 {
            for _ in 0..forged.nesting {
                footer.integer(3, 0).text(1, "age").integer(1, 1).end();
            }
        }
        footer.integer(1, physical).integer(2, 0).text(1, name);
        if physical == 6 {
            footer.integer(2, 0);
        }
        footer.end();
    }
    footer.long(1, rows).list(1, 12, forged.row_groups.unwrap_or(1)).list(1, 12, COLUMNS.len() as i64);
    for ((name, physical), (start, length)) in COLUMNS.into_iter().zip(chunks) {
        let total = forged.compressed.unwrap_or(0) + length as i64;
        footer.long(2, 4).structure(1).integer(1, physical).list(1, 5, 1).element(0).list(1, 8, 1);
        footer.count(name.len() as u64);
        footer.0.extend(name.bytes());
        footer.integer(1, forged.codec).long(1, rows).long(1, total).long(1, total).long(2, start as i64).end().end();
    }
    footer.long(1, 100).long(1, rows).end().end();
    let length = footer.0.len() as u32;
    file.extend(footer.0);
    file.extend(length.to_le_bytes());
    file.extend(b"PAR1");
    file
}

#[test]
fn a_forged_file_that_is_as_it_says_is_read() {
    for codec in [0, 6] {
        let folder = Folder::new();
        folder.write("table.csv", forged(&Forged { codec, ..Forged::default() }));
        folder.succeed("predict --model model.json --data table.csv --out p.csv");
        assert_eq!(folder.text("p.csv").lines().count(), 2);
    }
}

#[test]
fn sizes_that_no_parquet_file_has_are_refused() {
    const HUGE: i64 = i32::MAX as i64;
    let of = Forged::default;
    let cases = [
        ("row groups", Forged { row_groups: Some(HUGE), ..of() }),
        ("columns", Forged { columns: Some(HUGE), ..of() }),
        ("nesting", Forged { nesting: 200_000, ..of() }),
        ("rows", Forged { rows: Some(1 << 60), ..of() }),
        ("fewer than no rows", Forged { rows: Some(-1), ..of() }),
        ("values of a page", Forged { page_values: Some(HUGE), rows: Some(HUGE), ..of() }),
        ("uncompressed page", Forged { uncompressed: Some(HUGE), codec: 6, ..of() }),
        ("uncompressed page of snappy", Forged { uncompressed: Some(HUGE), codec: 1, ..of() }),
        ("compressed page", Forged { compressed: Some(HUGE), ..of() }),
        ("dictionary", Forged { dictionary: Some(HUGE), ..of() }),
        ("text", Forged { text: Some(u32::MAX), ..of() }),
    ];
    for (name, case) in cases {
        let folder = Folder::new();
        folder.write("table.csv", forged(&case));
        for command in [FIT, "predict --model model.json --data table.csv --out p.csv"] {
            let outcome = run_within(&folder, MEBIBYTES, command);
            assert_eq!((outcome.code, outcome.stdout.as_str()), (3, ""), "{name}: {}", outcome.stderr);
            assert!(outcome.stderr.starts_with("error: table.csv is "), "{name}: {}", outcome.stderr);
        }
        run_within(&folder, MEBIBYTES, "schema draft table.csv --public-data table.csv");
    }
    let folder = Folder::new();
    folder.write("table.csv", forged(&Forged { uncompressed: Some(HUGE), codec: 6, ..of() }));
    let message = refuse(&folder, 3, FIT);
    assert!(message.contains("a Parquet file with a page of more than 256 MiB"), "{message}");
}

/// A page of zeros, well packed, up to the limit of a page: read, and no row of it means anything.
#[test]
fn a_page_that_is_unpacked_to_its_limit_is_read() {
    let folder = Folder::new();
    let text: String = "x".repeat(100 << 20);
    let columns: [(&str, arrow_array::ArrayRef); 4] = [
        ("age", std::sync::Arc::new(arrow_array::Float64Array::from(vec![1.0]))),
        ("dose", std::sync::Arc::new(arrow_array::Float64Array::from(vec![1.0]))),
        ("ward", std::sync::Arc::new(arrow_array::StringArray::from(vec![text.as_str()]))),
        ("outcome", std::sync::Arc::new(arrow_array::StringArray::from(vec!["yes"]))),
    ];
    folder.write("table.csv", crate::support::parquet_of(columns));
    let outcome = run_within(&folder, MEBIBYTES, "predict --model model.json --data table.csv --out p.csv");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

/// How a file says that texts are equal.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// Each but the first is written as nothing more than the one before.
    SharedBeginnings,
    /// Each is the number of the one text in a dictionary.
    Dictionary,
    /// Not at all, but for being packed: each stands in a page of its own.
    GroupsOfOneRow,
}

/// A table of so many equal texts of a number of bytes.
fn equal_texts(rows: usize, bytes: usize, layout: Layout) -> Vec<u8> {
    use parquet::basic::{Compression, Encoding};
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
    use parquet::file::properties::{EnabledStatistics, WriterProperties};
    use parquet::file::writer::SerializedFileWriter;

    let columns = "message table { required double age; required double dose; required binary ward (UTF8); \
                   required binary outcome (UTF8); }";
    let columns = parquet::schema::parser::parse_message_type(columns).expect("a schema");
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(layout == Layout::Dictionary)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_compression(Compression::SNAPPY);
    let properties = match layout {
        Layout::SharedBeginnings => properties.set_column_encoding("ward".into(), Encoding::DELTA_BYTE_ARRAY),
        Layout::Dictionary | Layout::GroupsOfOneRow => properties,
    };
    let properties = properties.build();
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, columns.into(), properties.into()).expect("in memory");
    let (groups, rows) = if layout == Layout::GroupsOfOneRow { (rows, 1) } else { (1, rows) };
    let text = ByteArray::from(vec![b'x'; bytes]);
    for _ in 0..groups {
        let mut group = writer.next_row_group().expect("in memory");
        for texts in [None, None, Some(text.clone()), Some(ByteArray::from("yes"))] {
            let mut column = group.next_column().expect("in memory").expect("there are four");
            let written = match texts {
                None => column.typed::<DoubleType>().write_batch(&vec![1.0; rows], None, None),
                Some(text) => column.typed::<ByteArrayType>().write_batch(&vec![text; rows], None, None),
            };
            assert_eq!(written.expect("in memory"), rows);
            column.close().expect("in memory");
        }
        group.close().expect("in memory");
    }
    writer.close().expect("in memory");
    file
}

/// Texts that share their beginnings: a page of 3 MiB stands for two gibibytes.
#[test]
fn texts_that_are_written_once_are_read_a_few_at_a_time() {
    let folder = Folder::new();
    let file = equal_texts(700, 3 << 20, Layout::SharedBeginnings);
    assert!(file.len() < 4 << 20, "a small file");
    folder.write("table.csv", file);
    let outcome = run_within(&folder, MEBIBYTES, "predict --model model.json --data table.csv --out p.csv");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert_eq!(folder.text("p.csv").lines().count(), 701);
    folder.remove("p.csv");

    folder.write("table.csv", equal_texts(3, 5 << 20, Layout::SharedBeginnings));
    let message = refuse(&folder, 3, "predict --model model.json --data table.csv --out p.csv");
    assert!(message.contains("more than 4 MiB of texts that share their beginnings"), "{message}");
}

#[test]
fn counts_that_a_schema_cannot_mean_are_refused() {
    let folder = Folder::with_table();
    let with = |from: &str, to: &str| SCHEMA.replace(from, to);
    let many = |count: u32| (0..count).map(|number| format!("\"w{number}\"")).collect::<Vec<_>>().join(", ");
    let cases = [
        with("adjacency = \"add-remove\"", "adjacency = \"add-remove\"\nrows_max = 1152921504606846976"),
        with("adjacency = \"add-remove\"", "adjacency = \"add-remove\"\nrows = 1e18"),
        with("unit = \"row\"", "unit = { column = \"patient\", rows_max = 18446744073709551616 }"),
        with("\"north\", \"south\"", &many(70_000)),
        with("\"no\", \"yes\"", &many(40_000)),
        with("[0, 100]", "[0, 1e308]"),
        with("[0, 100]", &format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000))),
        with("age = ", &format!("{}age = ", "a.".repeat(100_000))),
        with("age = { bounds = [0, 100] }", &format!("age = {}1{}", "{ a = ".repeat(100_000), " }".repeat(100_000))),
        with("age = ", &format!("\"{}\" = ", "é".repeat(1_000_000))).replace("[0, 100]", "[100, 0]"),
    ];
    for schema in cases {
        folder.write("schema.toml", &schema);
        refuse(&folder, 2, FIT);
        refuse(&folder, 2, "schema check schema.toml");
    }
    // A column with a name like a book is only not there.
    folder.write("schema.toml", with("age = ", &format!("\"{}\" = ", "é".repeat(1_000_000))));
    let before = folder.files();
    assert_eq!(run_within(&folder, MEBIBYTES, FIT).code, 3);
    assert!(folder.files() == before);
}

/// As large as a schema may be.
#[test]
fn a_schema_with_all_that_it_may_have_is_planned_or_refused() {
    let folder = Folder::with_table();
    let list =
        |name: &str, count: u32| (0..count).map(|number| format!("\"{name}{number}\"")).collect::<Vec<_>>().join(", ");
    let wide = SCHEMA.replace("\"north\", \"south\"", &list("w", 60_000));
    let both = wide.replace("\"no\", \"yes\"", &list("c", 30_000));
    let hashed: String = (0..15).map(|number| format!("h{number} = {{ hash_buckets = 65535 }}\n")).collect();
    let hashed = SCHEMA.replace("age = ", &format!("{hashed}age = "));
    let many_classes = hashed.replace("\"no\", \"yes\"", &list("c", 30_000));
    for schema in [wide, both, hashed, many_classes] {
        folder.write("schema.toml", &schema);
        let check = run_within(&folder, MEBIBYTES, "schema check schema.toml");
        assert_eq!((check.code, check.stderr.as_str()), (0, ""));
        for method in ["auto", "gram", "walr", "functional", "noisy-gd", "noisy-gd-slides", "output-perturbation"] {
            let line = format!("plan --schema schema.toml --epsilon 1 --delta 1e-6 --method {method}");
            let plan = run_within(&folder, MEBIBYTES, &line);
            assert!([0, 2].contains(&plan.code), "{method}: {}", plan.stderr);
        }
    }
}

#[test]
fn documents_that_nest_or_count_without_end_are_refused() {
    let folder = Folder::with_table();
    let deep = |opening: &str, closing: &str| [opening.repeat(1_000_000), closing.repeat(1_000_000)].concat();
    let documents = [
        deep("[", "]"),
        deep("{\"a\":", "}"),
        MODEL.replacen("\"outputs\": [", &format!("\"outputs\": [{}", "[".repeat(1_000_000)), 1),
        MODEL.replacen("\"version\": 3", "\"version\": 1e400", 1),
        MODEL.replacen("2147483648", "1152921504606846976", 1),
        MODEL.replacen("-3.0", &"9".repeat(1_000_000), 1),
    ];
    for document in documents {
        folder.write("model.json", &document);
        refuse(&folder, 2, "show model.json");
        refuse(&folder, 2, "predict --model model.json --data table.csv --out p.csv");
        folder.write("release.json", &document);
        folder.write("weights.csv", "id,q1\n1,1\n");
        let walr = "walr fit --data table.csv --schema schema.toml --id patient --weights weights.csv --release release.json --out m.json";
        refuse(&folder, 3, walr);
    }
}

/// A document that has no size, and does not end.
#[cfg(target_os = "linux")]
#[test]
fn a_document_without_end_is_refused() {
    let folder = Folder::with_table();
    for line in ["show /dev/zero", "schema check /dev/zero", "ledger show /dev/zero"] {
        let outcome = run_within(&folder, MEBIBYTES, line);
        assert!([2, 5].contains(&outcome.code), "{line}: {}", outcome.stderr);
    }
}

#[test]
fn weights_and_votes_without_end_are_refused() {
    let folder = Folder::with_table();
    let label = SCHEMA.replace("add-remove", "label");
    folder.write("schema.toml", &label);
    folder.succeed("ledger init l.ledger --epsilon 2 --delta 1e-6 --promise row:label");
    let measure = "walr measure --weights weights.csv --labels table.csv --schema schema.toml --id patient --ledger l.ledger \
                   --epsilon 1 --delta 1e-6 --out release.json";
    for weights in [
        packed(zstd, b"id,q1\n", b'1', 1024),
        packed(gzip, b"id,q1\n1,", b'1', 1024),
        packed(xz, b"id", b',', 1024),
        packed(zstd, b"", b'#', 1024),
        packed(zstd, b"id,q1\nx,1\n\"", b'\n', 1024),
        packed_rows(zstd, b"id,q1\n", b"a,0\n", 1024),
    ] {
        folder.write("weights.csv", weights);
        refuse(&folder, 3, measure);
    }

    folder.write("schema.toml", SCHEMA.replace("add-remove", "party"));
    folder.write("auxiliary.csv", "age,dose,ward\n1,2,north\n50,2,south\n");
    folder.write("parties", "a\nb\n");
    std::fs::create_dir(folder.path("votes")).expect("a folder");
    let fit = "party fit --schema schema.toml --auxiliary auxiliary.csv --parties parties --votes votes --epsilon 1 --delta 1e-6 \
               --out m.json";
    let file = std::fs::File::create(folder.path("votes/a.csv")).expect("a file");
    file.set_len(1 << 40).expect("a file with a hole");
    std::fs::write(folder.path("votes/b.csv"), "# reticent votes 1\n").expect("a file");
    let message = refuse(&folder, 3, fit);
    assert!(message.contains("far longer than votes on these rows can be"), "{message}");
}
