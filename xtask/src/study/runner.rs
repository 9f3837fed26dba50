//! Runs the shipped program as a user would, and keeps what came out.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::StudyArguments;
use super::case::{Case, Figures, NON_PRIVATE};
use super::data_folder::DataFolder;
use super::table::Split;
use crate::{root, say};

/// Methods that divide by the number of rows and ask for it in the schema.
const NEED_ROWS: [&str; 3] = ["noisy-gd-lecture", "noisy-gd-slides", "output-perturbation"];

/// What schemas of studies say before a case puts its own adjacency there.
const ADJACENCY: &str = "adjacency = \"add-remove\"";

pub(super) struct Runner<'a> {
    arguments: &'a StudyArguments,
    study: &'a str,
    program: PathBuf,
    folder: TempDir,
    record: Option<(File, String)>,
    pub(super) data: DataFolder,
    /// In the order of first runs.
    pub(super) results: Vec<(Case, Vec<Figures>)>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(arguments: &'a StudyArguments, study: &'a str) -> Result<Self, String> {
        let record = match &arguments.record {
            None => None,
            Some(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
                let path = folder.join(format!("{study}.jsonl"));
                let file = OpenOptions::new().create(true).append(true).open(&path);
                Some((file.map_err(|error| format!("{}: {error}", path.display()))?, revision()))
            }
        };
        Ok(Self {
            arguments,
            study,
            program: build()?,
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
            record,
            data: DataFolder::new(arguments.data.clone()),
            results: Vec::new(),
        })
    }

    pub(super) fn epsilons(&self, usual: &[f64]) -> Vec<f64> {
        if self.arguments.epsilon.is_empty() { usual.to_vec() } else { self.arguments.epsilon.clone() }
    }

    pub(super) fn splits(&self, usual: u64) -> u64 {
        self.arguments.splits.unwrap_or(usual)
    }

    pub(super) fn adjacencies(&self, usual: &[&str]) -> Vec<String> {
        match &self.arguments.adjacency {
            Some(adjacency) => vec![adjacency.clone()],
            None => usual.iter().map(|adjacency| (*adjacency).to_owned()).collect(),
        }
    }

    pub(super) fn record_folder(&self) -> Option<&Path> {
        self.arguments.record.as_deref()
    }

    /// A place in the study's temporary folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn write(&self, name: &str, body: &str) -> Result<PathBuf, String> {
        let path = self.path(name);
        write(&path, body)?;
        Ok(path)
    }

    /// Runs the program: what it printed.
    pub(super) fn run(&self, arguments: &[&str]) -> Result<Vec<u8>, String> {
        let output = Command::new(&self.program).args(arguments).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("reticent {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
        }
        Ok(output.stdout)
    }

    /// The same for a command line with `--json`.
    pub(super) fn reticent(&self, arguments: &[&str]) -> Result<Value, String> {
        serde_json::from_slice(&self.run(arguments)?).map_err(|error| error.to_string())
    }

    /// Fits by `reticent fit` or, without privacy, `reticent fit-public`: the model's place and the processor
    /// seconds it took.
    pub(super) fn fit(
        &self,
        case: &Case,
        schema: &str,
        training: &Path,
        rows: usize,
    ) -> Result<(PathBuf, f64), String> {
        let model = self.path("model.json");
        let mut arguments = vec!["--json".to_owned(), "--data".to_owned(), text(training)];
        arguments.extend(["--out".to_owned(), text(&model)]);
        let schema = match &case.privacy {
            None => {
                arguments.insert(0, "fit-public".to_owned());
                schema.to_owned()
            }
            Some(privacy) => {
                arguments.insert(0, "fit".to_owned());
                arguments.extend(["--epsilon".to_owned(), privacy.epsilon.to_string()]);
                arguments.extend(["--delta".to_owned(), privacy.delta.to_string(), "--method".to_owned()]);
                arguments.extend(case.method.split_whitespace().map(str::to_owned));
                let needs_rows = NEED_ROWS.contains(&case.method.split_whitespace().next().unwrap_or_default());
                let mut section = format!("adjacency = \"{}\"", privacy.adjacency);
                if self.arguments.declare_rows || needs_rows {
                    section.push_str(&format!("\nrows = {rows}"));
                }
                schema.replacen(ADJACENCY, &section, 1)
            }
        };
        let schema = self.write("schema.toml", &schema)?;
        arguments.extend(["--schema".to_owned(), text(&schema)]);
        // A ledger promises one relation, and the same rows are asked under several.
        let ledger = PathBuf::from(format!("{}.ledger", training.display()));
        if ledger.exists() {
            std::fs::remove_file(&ledger).map_err(|error| format!("{}: {error}", ledger.display()))?;
        }
        let started = Stopwatch::start();
        self.reticent(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok((model, started.seconds()))
    }

    /// Figures of a model on rows that are public, by `reticent evaluate`.
    pub(super) fn evaluate(&self, model: &Path, test: &Path) -> Result<Figures, String> {
        let found =
            self.reticent(&["evaluate", "--json", "--public", "--model", &text(model), "--data", &text(test)])?;
        let mut figures = Figures::new();
        for name in ["accuracy", "auc", "log_loss"] {
            if let Some(value) = found[name].as_f64() {
                figures.insert(name, value);
            }
        }
        if let Some(error) = found["mean_squared_error"].as_f64() {
            figures.insert("rmse", error.sqrt());
        }
        Ok(figures)
    }

    pub(super) fn measure(&mut self, case: &Case, schema: &str, split: &Split, seed: u64) -> Result<(), String> {
        let (model, seconds) = self.fit(case, schema, &split.training, split.rows)?;
        let mut figures = self.evaluate(&model, &split.test)?;
        figures.insert("processor_seconds", seconds);
        self.add(case, seed, figures)
    }

    /// The base rate, the fit without privacy and every case, on one split.
    pub(super) fn compare(&mut self, cases: &[Case], schema: &str, split: &Split, seed: u64) -> Result<(), String> {
        let table = cases.first().map_or_else(String::new, |case| case.table.clone());
        if let Some(base_rate) = &split.base_rate {
            self.add(&Case::open(&table, "base rate"), seed, base_rate.clone())?;
        }
        self.measure(&Case::open(&table, NON_PRIVATE), schema, split, seed)?;
        for case in cases {
            self.measure(case, schema, split, seed)?;
        }
        say(&format!("{table}: split {} done", seed + 1));
        Ok(())
    }

    /// Keeps the figures of one run.
    pub(super) fn add(&mut self, case: &Case, seed: u64, figures: Figures) -> Result<(), String> {
        if let Some((file, revision)) = &mut self.record {
            let privacy = case.privacy.as_ref();
            let line = json!({
                "study": self.study, "revision": revision, "table": case.table, "method": case.method,
                "adjacency": privacy.map(|privacy| &privacy.adjacency), "epsilon": privacy.map(|privacy| privacy.epsilon),
                "delta": privacy.map(|privacy| privacy.delta), "rows_declared": self.arguments.declare_rows,
                "seed": seed, "figures": figures,
            });
            writeln!(file, "{line}").map_err(|error| error.to_string())?;
        }
        match self.results.iter_mut().find(|(known, _)| known == case) {
            Some((_, all)) => all.push(figures),
            None => self.results.push((case.clone(), vec![figures])),
        }
        Ok(())
    }
}

/// Processor time of the programs that were run since, which other work on the machine does not lengthen much; the wall
/// clock where the system does not tell.
pub(super) struct Stopwatch {
    at: Instant,
    processor: Option<f64>,
}

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self { at: Instant::now(), processor: processor_seconds_of_children() }
    }

    pub(super) fn seconds(&self) -> f64 {
        let processor = self.processor.zip(processor_seconds_of_children());
        processor.map_or_else(|| self.at.elapsed().as_secs_f64(), |(before, after)| after - before)
    }
}

/// From the fields `cutime` and `cstime` of Linux, in hundredths of a second.
fn processor_seconds_of_children() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is a name in parentheses and may hold blanks.
    let mut fields = status.rsplit(')').next()?.split_whitespace().skip(13);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// Builds the program that ships; cargo says where.
pub(crate) fn build() -> Result<PathBuf, String> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--package", "reticent-cli"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| error.to_string())?;
    let told = String::from_utf8_lossy(&output.stdout);
    let mut messages = told.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = messages.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.filter(|_| output.status.success()).ok_or_else(|| "the release build failed".to_owned())
}

/// The last commit that changed a crate, so that lines of several runs can be told apart.
pub(crate) fn revision() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).args(["--", "crates"]).current_dir(root()).output();
        output.map_or_else(|_| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let changed = if git(&["status", "--porcelain"]).is_empty() { "" } else { "-changed" };
    git(&["log", "-1", "--format=%h"]) + changed
}

pub(super) fn write(path: &Path, body: &str) -> Result<(), String> {
    std::fs::write(path, body).map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn text(path: &Path) -> String {
    path.display().to_string()
}
