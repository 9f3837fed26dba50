//! Rows from a pipe to a private model under a memory ceiling: time a row, and peak memory, against the number of rows.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;

use super::Bench;
use super::end_to_end::{fit_of, without_warming};
use super::passes::OURS;
use super::record::Measure;
use crate::study::build;
use crate::{print, say};

const PART: &str = "streamed";
const COLUMNS: usize = 20;
/// Generated rows that are written again and again.
const ROWS_WRITTEN: usize = 10_000;
/// Room for millions of rows, and for hardly any.
const CEILINGS: [&str; 2] = ["1GiB", "128MiB"];
const THREADS: usize = 2;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), String> {
    let program = build()?.display().to_string();
    let folder = bench.python.folder().join("streamed");
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let place = folder.display().to_string();
    bench.python.run("make_table.py", 1, &[ROWS_WRITTEN.to_string(), COLUMNS.to_string(), place.clone()])?;
    let table = std::fs::read(folder.join("table.csv")).map_err(|error| error.to_string())?;
    let header = 1 + table.iter().position(|byte| *byte == b'\n').ok_or("a table has a header")?;
    let mut rows = [1_000_000, 10_000_000].map(|rows| bench.rows(rows)).to_vec();
    if bench.arguments.large {
        rows.push(100_000_000);
    }
    let mut measures = Vec::new();
    for rows in rows {
        for ceiling in CEILINGS {
            let pipe = folder.join("pipe.csv");
            succeed(Command::new("mkfifo").arg(&pipe))?;
            let ledger = format!("{place}/pipe.ledger");
            // Beside a pipe none is made.
            succeed(Command::new(&program).args(["ledger", "init", &ledger, "--epsilon", "2", "--delta", "1e-12"]))?;
            let (data, schema, model) =
                (pipe.display().to_string(), format!("{place}/schema.toml"), format!("{place}/model.json"));
            let mut command = fit_of(&program, &data, &schema, &model);
            command.extend(["--ledger", &ledger, "--memory", ceiling, "--scratch", &place]);
            let (header, body) = (table[..header].to_vec(), table[header..].to_vec());
            let writer = thread::spawn(move || write(&pipe, &header, &body, rows / ROWS_WRITTEN));
            let found = without_warming(bench, &format!("{OURS}, --memory {ceiling}"), &command, THREADS)?;
            writer.join().map_err(|_| "the writer of the pipe panicked")?.map_err(|error| error.to_string())?;
            for name in ["pipe.csv", "pipe.ledger", "model.json"] {
                std::fs::remove_file(folder.join(name)).map_err(|error| format!("{name}: {error}"))?;
            }
            measures.push(Measure::of_baseline(PART, (rows, COLUMNS), THREADS, found));
            say(&format!("{PART}: {rows} rows under {ceiling} done"));
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    print("CSV from a pipe to a private logistic model, 50 passes, under a memory ceiling: the whole command.\n");
    print("| rows | ceiling | seconds | nanoseconds a row | processor seconds | peak MiB |");
    print("|---|---|---|---|---|---|");
    for (measure, ceiling) in measures.iter().zip(CEILINGS.iter().cycle()) {
        let (wall, processor) = (measure.times.least(THREADS), measure.times.least(1));
        let row = 1e9 * wall / measure.rows as f64;
        let peak = measure.peak_mib.unwrap_or(f64::NAN);
        print(&format!("| {} | {ceiling} | {wall:.1} | {row:.0} | {processor:.1} | {peak:.0} |", measure.rows));
    }
    print("");
    bench.record.keep(&measures)
}

/// The header, then the rows so many times.
fn write(pipe: &Path, header: &[u8], body: &[u8], times: usize) -> std::io::Result<()> {
    let mut pipe = File::options().write(true).open(pipe)?;
    pipe.write_all(header)?;
    (0..times).try_for_each(|_| pipe.write_all(body))
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
