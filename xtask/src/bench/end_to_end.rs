//! The shipped program from file to file: a private model beside polars and diffprivlib, predictions beside polars and scikit-learn, and labels of
//! another organisation, for which there is no rival.

use std::path::{Path, PathBuf};

use super::Bench;
use super::clock::Times;
use super::passes::OURS;
use super::python::Baseline;
use super::record::Measure;
use crate::study::build;
use crate::{print, root, say};

const COLUMNS: usize = 100;
/// Columns of features where another organisation has the labels.
const COLUMNS_OF_LABELS: usize = 50;

pub(super) fn files(bench: &mut Bench<'_>) -> Result<(), String> {
    let program = build()?.display().to_string();
    let (rows, folder) = table(bench)?;
    let place = folder.display().to_string();
    print("A file to a private logistic model; ours makes 50 passes. Peak memory is that of the whole process.\n");
    for name in ["table.csv", "table.parquet"] {
        let data = format!("{place}/{name}");
        let schema = format!("{place}/schema.toml");
        let model = format!("{place}/model.json");
        let ours = fit_of(&program, &data, &schema, &model);
        beside(bench, ("files", rows), name, &ours, ("polars and diffprivlib", &["file_to_model.py", &data]))?;
    }
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

pub(super) fn predictions(bench: &mut Bench<'_>) -> Result<(), String> {
    let program = build()?.display().to_string();
    let (rows, folder) = table(bench)?;
    let place = folder.display().to_string();
    let model = format!("{place}/model.json");
    let first = format!("{place}/table.csv");
    bench.python.run("run.py", 2, &owned("fit", &fit_of(&program, &first, &format!("{place}/schema.toml"), &model)))?;
    print("A file and a logistic model to a CSV file of predictions.\n");
    for name in ["table.csv", "table.parquet"] {
        let data = format!("{place}/{name}");
        let out = format!("{place}/predicted.csv");
        let ours = [&program, "predict", "--model", &model, "--data", &data, "--out", &out];
        let theirs = ["file_to_predictions.py", &data, &model, &out];
        beside(bench, ("predictions", rows), name, &ours, ("polars and scikit-learn", &theirs))?;
    }
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

pub(super) fn labels(bench: &mut Bench<'_>) -> Result<(), String> {
    const PART: &str = "labels";
    let program = build()?.display().to_string();
    let rows = bench.rows(1_000_000);
    let folder = bench.python.folder().join(format!("labels-{rows}"));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let place = folder.display().to_string();
    say(&format!("writing {rows} x {COLUMNS_OF_LABELS} and their labels as CSV"));
    bench.python.run("make_labels.py", 2, &[rows.to_string(), COLUMNS_OF_LABELS.to_string(), place.clone()])?;
    print("Labels of another organisation, file to file, one command after another; nothing else does this.\n");
    for threads in [1, 2] {
        let at = |name: &str| format!("{place}/{name}");
        let (features, schema, labels_schema) = (at("features.csv"), at("features.toml"), at("labels.toml"));
        let (labels, ledger, weights, questions) =
            (at("labels.csv"), at("labels.ledger"), at("weights.csv"), at("questions.csv"));
        let (release, answers, model) = (at("release.json"), at("answers.json"), at("model.json"));
        let data = ["--data", &features, "--id", "event"];
        let asked = ["--labels", &labels, "--schema", &labels_schema, "--id", "event", "--ledger", &ledger];
        let terms = ["--epsilon", "1", "--delta", "1e-6"];
        let commands: [(&str, Vec<&str>); 7] = [
            ("ledger init", vec![&ledger, "--epsilon", "4", "--delta", "1e-6", "--promise", "row:label"]),
            ("walr prepare", [&data[..], &["--schema", &schema, "--out", &weights]].concat()),
            ("walr measure", [&["--weights", &weights, "--out", &release], &asked[..], &terms].concat()),
            (
                "walr fit",
                [&data[..], &["--schema", &schema, "--weights", &weights, "--release", &release, "--out", &model]]
                    .concat(),
            ),
            ("walr prepare-evaluation", [&data[..], &["--model", &model, "--out", &questions]].concat()),
            ("walr measure", [&["--weights", &questions, "--out", &answers], &asked[..], &terms].concat()),
            (
                "walr evaluate",
                [&data[..], &["--model", &model, "--weights", &questions, "--release", &answers]].concat(),
            ),
        ];
        let mut measures = Vec::new();
        for (what, arguments) in commands {
            let words = [program.as_str()].into_iter().chain(what.split(' '));
            let command: Vec<&str> = words.chain(arguments).collect();
            let found = without_warming(bench, what, &command, threads)?;
            if what.starts_with("walr") {
                measures.push(Measure::of_baseline(PART, (rows, COLUMNS_OF_LABELS), threads, found));
            }
        }
        bench.record.table(&measures)?;
        for made in [&ledger, &weights, &questions, &release, &answers, &model] {
            std::fs::remove_file(made).map_err(|error| format!("{made}: {error}"))?;
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
}

/// A generated table of [`COLUMNS`] numbers as CSV and Parquet, with its schema: its rows, and its folder.
fn table(bench: &Bench<'_>) -> Result<(usize, PathBuf), String> {
    let rows = bench.rows(1_000_000);
    let folder = bench.python.folder().join(format!("table-{rows}"));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    say(&format!("writing {rows} x {COLUMNS} as CSV and Parquet"));
    bench.python.run("make_table.py", 2, &[rows.to_string(), COLUMNS.to_string(), folder.display().to_string()])?;
    Ok((rows, folder))
}

/// Our command beside a script of `xtask/bench` with its arguments, by one thread and by two.
fn beside(
    bench: &mut Bench<'_>,
    (part, rows): (&'static str, usize),
    data: &str,
    ours: &[&str],
    (rival, script): (&str, &[&str]),
) -> Result<(), String> {
    let python = bench.python.program().display().to_string();
    let place = root().join("xtask/bench").join(script[0]).display().to_string();
    let theirs: Vec<&str> = [python.as_str(), &place].into_iter().chain(script[1..].iter().copied()).collect();
    for threads in [1, 2] {
        let mut measures = Vec::new();
        for (who, command) in [(OURS, ours), (rival, &theirs)] {
            let found = repeated(bench, &format!("{who}, {data}"), command, threads)?;
            measures.push(Measure::of_baseline(part, (rows, COLUMNS), threads, found));
        }
        bench.record.table(&measures)?;
    }
    Ok(())
}

/// The fit of a private logistic model in fifty passes.
pub(super) fn fit_of<'a>(program: &'a str, data: &'a str, schema: &'a str, model: &'a str) -> Vec<&'a str> {
    let files = [program, "fit", "--data", data, "--schema", schema, "--out", model];
    let asked = ["--epsilon", "1", "--delta", "1e-12", "--method", "noisy-gd", "--passes", "50"];
    files.into_iter().chain(asked).collect()
}

/// The command once, as it is.
pub(super) fn without_warming(
    bench: &Bench<'_>,
    what: &str,
    command: &[&str],
    threads: usize,
) -> Result<Baseline, String> {
    bench.python.run("run.py", threads, &owned(what, command))?.pop().ok_or_else(|| "run.py prints a line".to_owned())
}

/// The arguments of `run.py`.
fn owned(what: &str, command: &[&str]) -> Vec<String> {
    [what].iter().chain(command).map(|word| (*word).to_owned()).collect()
}

/// The command some times, first once to warm the file cache.
fn repeated(bench: &Bench<'_>, what: &str, command: &[&str], threads: usize) -> Result<Baseline, String> {
    let mut all: Option<Baseline> = None;
    for run in 0..=bench.repeats(3).min(3) {
        if let Some(model) = command.iter().position(|word| *word == "--out") {
            remove(Path::new(command[model + 1]));
        }
        let found = without_warming(bench, what, command, threads)?;
        if run == 0 {
            continue;
        }
        let Times { wall, processor } = found.times.clone();
        match &mut all {
            None => all = Some(found),
            Some(known) => {
                known.times.wall.extend(wall);
                known.times.processor.extend(processor);
                known.peak_mib = known.peak_mib.zip(found.peak_mib).map(|(left, right)| left.max(right));
            }
        }
    }
    all.ok_or_else(|| "nothing was run".to_owned())
}

/// A model of the last run would be in the way.
fn remove(path: &Path) {
    if path.exists() {
        // What is left over makes the next fit fail by name.
        let _ = std::fs::remove_file(path);
    }
}
