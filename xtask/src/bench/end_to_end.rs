//! A file to a private model: the shipped program beside polars and diffprivlib, with the peak memory of both.

use std::path::Path;

use super::Bench;
use super::clock::Times;
use super::passes::OURS;
use super::python::Baseline;
use super::record::Measure;
use crate::study::build;
use crate::{print, root, say};

const PART: &str = "files";
const COLUMNS: usize = 100;

pub(super) fn files(bench: &mut Bench<'_>) -> Result<(), String> {
    let program = build()?.display().to_string();
    let rows = bench.rows(1_000_000);
    let folder = bench.python.folder().join(format!("table-{rows}"));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    say(&format!("writing {rows} x {COLUMNS} as CSV and Parquet"));
    let place = folder.display().to_string();
    bench.python.run("make_table.py", 2, &[rows.to_string(), COLUMNS.to_string(), place.clone()])?;
    print("A file to a private logistic model; ours makes 50 passes. Peak memory is that of the whole process.\n");
    for name in ["table.csv", "table.parquet"] {
        let data = format!("{place}/{name}");
        for threads in [1, 2] {
            let schema = format!("{place}/schema.toml");
            let model = format!("{place}/model.json");
            let ours = fit_of(&program, &data, &schema, &model);
            let python = bench.python.program().display().to_string();
            let script = root().join("xtask/bench/file_to_model.py").display().to_string();
            let theirs = [python.as_str(), &script, &data];
            let mut measures = Vec::new();
            for (what, command) in [(OURS, &ours[..]), ("polars and diffprivlib", &theirs[..])] {
                let what = format!("{what}, {name}");
                let found = repeated(bench, &what, command, threads)?;
                measures.push(Measure::of_baseline(PART, (rows, COLUMNS), threads, found));
            }
            bench.record.table(&measures)?;
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
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
    let arguments: Vec<String> = [what].iter().chain(command).map(|word| (*word).to_owned()).collect();
    bench.python.run("run.py", threads, &arguments)?.pop().ok_or_else(|| "run.py prints a line".to_owned())
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
