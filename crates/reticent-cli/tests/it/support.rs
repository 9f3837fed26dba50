//! A folder of its own for every test, a small deterministic table, and runs of `reticent` that check what always holds.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use parquet::arrow::ArrowWriter;
use reticent_core::schema::Schema;
use serde_json::Value;
use tempfile::TempDir;

/// Stands in cells of every table and must never come out of the program.
pub(crate) const CANARY: &str = "SECRETCELL42";

/// The schema of [`Table`].
pub(crate) const SCHEMA: &str = r#"[privacy]
unit = "row"
adjacency = "add-remove"

[target]
column = "outcome"
classes = ["no", "yes"]

[features]
age = { bounds = [0, 100] }
dose = { bounds = [0, 5000] }
ward = { categories = ["north", "south"] }
"#;

/// A unit of several rows of the usual table.
pub(crate) const BY_PATIENT: &str = "{ column = \"patient\", rows_max = 4 }";

/// A model of [`SCHEMA`] that was written once by version 3 of the format; its coefficients are round.
pub(crate) const MODEL: &str = include_str!("fixtures/model.json");

/// A fit of the usual files at a usual price.
pub(crate) const FIT: &str = "fit --data table.csv --schema schema.toml --epsilon 1 --delta 1e-6 --out model.json";

/// A folder with `schema.toml` and `model.json`, in which commands are run. Snapshots taken while it lives have no
/// machine's names in them.
pub(crate) struct Folder {
    root: PathBuf,
    _removed_at_the_end: TempDir,
    _filters: insta::internals::SettingsBindDropGuard,
}

/// What a run left behind.
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a temporary folder");
        let root = directory.path().canonicalize().expect("the folder exists");
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(&escaped(&root), "[folder]");
        settings.add_filter("[0-9a-f]{64}", "[fingerprint]");
        settings.add_filter("[0-9a-f]{32}", "[id]");
        settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "[time]");
        settings.add_filter(r"\.reticent-\w+\.partial", "[temporary]");
        let folder = Self { root, _removed_at_the_end: directory, _filters: settings.bind_to_scope() };
        folder.write("schema.toml", SCHEMA);
        folder.write("model.json", MODEL);
        folder
    }

    /// A folder with the usual table, and no model yet.
    pub(crate) fn with_table() -> Self {
        let folder = Self::new();
        folder.remove("model.json");
        folder.write("table.csv", Table::usual().csv());
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("the folder can be written");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("UTF-8")
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        json(&self.text(name))
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("the file was there");
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// Name and content of everything in the folder.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(&self.root).expect("the folder can be listed");
        let content = |path: &Path| if path.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
        entries
            .map(|entry| entry.expect("an entry").path())
            .map(|path| (path.file_name().expect("a name").to_string_lossy().into_owned(), content(&path)))
            .collect()
    }

    /// The program, to be run in this folder.
    pub(crate) fn reticent(&self) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new(program());
        // Help is wrapped to the terminal, of which there is none.
        command.env_remove("COLUMNS");
        command.current_dir(&self.root).timeout(std::time::Duration::from_secs(600));
        command
    }

    /// Runs a command line in which no argument has a space, and checks that no cell came out of it anywhere.
    pub(crate) fn run(&self, line: &str) -> Outcome {
        let before = self.files();
        let output = self.reticent().args(line.split_whitespace()).output().expect("the program starts");
        let outcome = Outcome::of(output);
        for (name, content) in self.files() {
            if before.get(&name) != Some(&content) {
                assert!(!contains(&content, CANARY.as_bytes()), "{name} holds the text of a cell after {line}");
            }
            assert!(!name.ends_with(".partial") && !name.ends_with(".new"), "{name} was left by {line}");
        }
        outcome
    }

    /// Runs a command that must work: nothing on stderr; returns stdout.
    pub(crate) fn succeed(&self, line: &str) -> String {
        let Outcome { code, stdout, stderr } = self.run(line);
        assert!(code == 0 && stderr.is_empty(), "{line}: exit code {code}\n{stderr}");
        stdout
    }

    /// Runs a command that must fail with `code`, write nothing to stdout and leave every file as it was: no output, no
    /// new ledger, nothing charged. Returns the message.
    pub(crate) fn refuse(&self, code: i32, line: &str) -> String {
        let before = self.files();
        let outcome = self.run(line);
        assert_eq!(outcome.code, code, "{line}: {}{}", outcome.stdout, outcome.stderr);
        assert_eq!(outcome.stdout, "", "stdout is for results: {line}");
        let after = self.files();
        assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "files after {line}");
        assert!(before == after, "a file was changed by {line}");
        outcome.stderr
    }

    /// The ledger as `reticent ledger show --json` tells it.
    pub(crate) fn ledger(&self, name: &str) -> Value {
        json(&self.succeed(&format!("ledger show {name} --json --delta 1e-6")))
    }

    /// The text without the name of this folder.
    pub(crate) fn masked(&self, text: &str) -> String {
        text.replace(&*self.root.to_string_lossy(), "[folder]")
    }

    /// Spent of a ledger's first promise, as mu.
    pub(crate) fn spent(&self, name: &str) -> f64 {
        number(&self.ledger(name)["relations"][0]["spent"]["mu"])
    }
}

impl Outcome {
    pub(crate) fn of(output: std::process::Output) -> Self {
        let stdout = String::from_utf8(output.stdout).expect("UTF-8");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(!stdout.contains(CANARY), "a cell on stdout: {stdout}");
        assert!(!stderr.contains(CANARY), "a cell on stderr: {stderr}");
        let code = output.status.code().unwrap_or_else(|| panic!("ended by a signal: {stderr}"));
        assert_ne!(code, 70, "a defect: {stderr}");
        Self { code, stdout, stderr }
    }
}

/// Columns of a [`Table`]; the schema names all but the first and the one before the last.
pub(crate) const HEADER: [&str; 6] = ["patient", "age", "dose", "ward", "comment", "outcome"];
pub(crate) const PATIENT: usize = 0;
pub(crate) const AGE: usize = 1;
pub(crate) const DOSE: usize = 2;
pub(crate) const WARD: usize = 3;
pub(crate) const OUTCOME: usize = 5;

/// Rows as text, in which the outcome depends on age and ward, and somewhat on chance.
#[derive(Clone)]
pub(crate) struct Table(pub(crate) Vec<[String; 6]>);

impl Table {
    /// 400 rows, the same in every run.
    pub(crate) fn usual() -> Self {
        Self::of(400)
    }

    pub(crate) fn of(rows: usize) -> Self {
        let mut state = 42u64;
        // A linear congruential generator (Knuth, MMIX); its high bits are good enough for a table. Not the fixed sequence of other tests:
        // snapshots keep exact figures of these rows, and which error a decoder has where their bytes are damaged.
        let mut draw = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let row = |index: usize| {
            let (age, dose, ward) = (draw(101), draw(50_000), ["north", "south", "east"][draw(3) as usize]);
            let score = age as i64 - 50 + if ward == "south" { 25 } else { -10 };
            let outcome = if score + draw(40) as i64 - 20 > 0 { "yes" } else { "no" };
            let cells = [(index / 4).to_string(), age.to_string(), (dose as f64 / 10.0).to_string()];
            let [patient, age, dose] = cells;
            [patient, age, dose, ward.to_owned(), CANARY.to_owned(), outcome.to_owned()]
        };
        Self((0..rows).map(row).collect())
    }

    pub(crate) fn csv(&self) -> Vec<u8> {
        let mut text = HEADER.join(",");
        text.push('\n');
        for row in &self.0 {
            text.push_str(&row.join(","));
            text.push('\n');
        }
        text.into_bytes()
    }

    /// Each row changed.
    pub(crate) fn with(mut self, mut change: impl FnMut(usize, &mut [String; 6])) -> Self {
        self.0.iter_mut().enumerate().for_each(|(index, row)| change(index, row));
        self
    }

    pub(crate) fn parquet(&self) -> Vec<u8> {
        let text = |column: usize| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(self.0.iter().map(|row| row[column].as_str())))
        };
        let number = |column: usize| -> ArrayRef {
            let parse = |row: &[String; 6]| row[column].parse::<f64>().expect("a number");
            Arc::new(Float64Array::from_iter_values(self.0.iter().map(parse)))
        };
        let patients = self.0.iter().map(|row| row[PATIENT].parse().expect("a number"));
        let columns: [ArrayRef; 6] = [
            Arc::new(Int64Array::from_iter_values(patients)),
            number(AGE),
            number(DOSE),
            text(WARD),
            text(4),
            text(OUTCOME),
        ];
        parquet_of(HEADER.into_iter().zip(columns))
    }
}

/// The largest resident memory that the program ever had until its success, in bytes.
#[cfg(target_os = "linux")]
pub(crate) fn peak_memory(mut child: std::process::Child) -> u64 {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("it is ours").is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or(0) << 10);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    assert!(child.wait().expect("it is ours").success());
    peak
}

pub(crate) fn parquet_of<'a>(columns: impl IntoIterator<Item = (&'a str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a Parquet schema");
    writer.write(&batch).expect("rows are written");
    writer.close().expect("a footer is written");
    bytes
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    writer.write_all(bytes).expect("to memory");
    writer.finish().expect("to memory")
}

pub(crate) fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut writer = liblzma::write::XzEncoder::new(Vec::new(), 1);
    writer.write_all(bytes).expect("to memory");
    writer.finish().expect("to memory")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut writer = zstd::stream::write::Encoder::new(Vec::new(), 1).expect("to memory");
    // As the command `zstd` does; without it a damaged file is another file.
    writer.include_checksum(true).expect("a legal option");
    writer.write_all(bytes).expect("to memory");
    writer.finish().expect("to memory")
}

pub(crate) fn program() -> &'static Path {
    assert_cmd::cargo::cargo_bin!("reticent")
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The model with the fingerprint of its own schema in its certificate: without it an edited schema is refused.
pub(crate) fn with_own_fingerprint(mut model: Value) -> Value {
    let schema: Schema = serde_json::from_value(model["schema"].clone()).expect("a schema");
    model["certificate"]["schema"] = schema.fingerprint().into();
    model
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Without what a fit says where its released counts show no rows: that is computed from releases, as coefficients are.
pub(crate) fn without_remark(text: &str) -> String {
    text.split_inclusive('\n').filter(|line| !line.starts_with("Remark: the released counts")).collect()
}

/// Keys of a JSON object, in their order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("{value} is no object")).keys().map(String::as_str).collect()
}

pub(crate) fn is_close(left: f64, right: f64, relative: f64) -> bool {
    (left - right).abs() <= relative * left.abs().max(right.abs())
}

pub(crate) fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn escaped(path: &Path) -> String {
    let escape = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_string() } else { format!("\\{letter}") };
    path.to_string_lossy().chars().map(escape).collect()
}
