//! `cargo xtask instructions`: machine instructions of the inner loops, counted by valgrind, beside what they were.
//!
//! ```text
//!   this program under valgrind, a piece of work once ─┐
//!                    the same, once more ten times ────┴▶ (difference) / 10 ─▶ against xtask/instructions.toml
//! ```
//! A count does not depend on what else the machine does, so a change that makes a loop slower is seen where a clock would
//! not tell. It is no time: what waits for memory costs none. Valgrind knows AVX2 and not AVX-512.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;

use clap::{Args, ValueEnum};
use reticent_core::query::{Loss, Map, ProductTarget};
use reticent_curator::kernel::Instructions;
use reticent_curator::source::{Need, TableSource};
use reticent_curator::table::CodedTable;

use crate::bench::{Loaded, schema_of};
use crate::{print, root, say};

#[derive(Args)]
pub(crate) struct InstructionsArguments {
    /// Keep the counts as those to compare with
    #[arg(long)]
    record: bool,
    /// What valgrind runs: a piece of work, so many times
    #[arg(long, hide = true, num_args = 2, value_names = ["WORK", "TIMES"])]
    work: Vec<String>,
}

/// Pieces of work.
#[derive(Clone, Copy, ValueEnum)]
enum Work {
    /// A gradient of 20 columns
    Gradient,
    /// The same, each row clipped
    ClippedGradient,
    /// A gradient of three classes
    SoftmaxGradient,
    /// A gradient of 5 features of 1,000 hash buckets
    SparseGradient,
    /// The matrix of products of 40 columns
    Products,
    /// A histogram of scores
    Histogram,
    /// CSV to codes, ten columns
    Csv,
}

/// A count may be so much larger than what is kept.
const TOLERANCE: f64 = 0.05;
const TIMES: u64 = 10;

pub(crate) fn run(arguments: &InstructionsArguments) -> Result<(), String> {
    if let [work, times] = &arguments.work[..] {
        let times = times.parse().map_err(|error| format!("{times}: {error}"))?;
        return do_work(Work::from_str(work, false)?, times);
    }
    if cfg!(debug_assertions) {
        return crate::run_optimised();
    }
    let place = root().join("xtask/instructions.toml");
    let text = fs::read_to_string(&place).map_err(|error| format!("{}: {error}", place.display()))?;
    let kept: BTreeMap<String, u64> = toml::from_str(&text).map_err(|error| format!("{}: {error}", place.display()))?;
    print("| a pass | instructions | kept | change |");
    print("|---|---|---|---|");
    let mut found = String::from(HEAD);
    let mut grown = Vec::new();
    for work in Work::value_variants() {
        let name = work.to_possible_value().expect("every piece has a name").get_name().to_owned();
        let (once, more) = (count(&name, 1)?, count(&name, 1 + TIMES)?);
        let each = more.saturating_sub(once) / TIMES;
        found.push_str(&format!("{name} = {each}\n"));
        let before = kept.get(&name).copied();
        let change = before.map(|before| each as f64 / before as f64 - 1.0);
        let shown = |value: Option<String>| value.unwrap_or_default();
        let (was, change_shown) = (
            shown(before.map(|before| before.to_string())),
            shown(change.map(|change| format!("{:+.1} %", 100.0 * change))),
        );
        print(&format!("| {name} | {each} | {was} | {change_shown} |"));
        if change.is_none_or(|change| change > TOLERANCE) {
            grown.push(name);
        }
    }
    if arguments.record {
        return fs::write(&place, found).map_err(|error| format!("{}: {error}", place.display()));
    }
    if grown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "more instructions than before, by more than {:.0} %: {}; mend it, or keep the new counts with --record and say why",
        100.0 * TOLERANCE,
        grown.join(", ")
    ))
}

const HEAD: &str = "# Instructions of one pass, counted by `cargo xtask instructions --record` with AVX2.\n";

/// Whether there is something to count with.
pub(crate) fn can_count() -> bool {
    let answers = Command::new("valgrind").arg("--version").output().is_ok_and(|answer| answer.status.success());
    let has_avx2 = Instructions::available().iter().any(|instructions| instructions.name() == "avx2");
    answers && has_avx2
}

/// Instructions of a run of this program.
fn count(work: &str, times: u64) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["instructions", "--work", work, &times.to_string()])
        .env("RAYON_NUM_THREADS", "1")
        .output()
        .map_err(|error| format!("valgrind: {error}; install it, as the package of that name"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let counted = text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    match counted {
        Some(counted) if output.status.success() => Ok(counted),
        Some(_) | None => Err(format!("{work} does not run under valgrind: {text}")),
    }
}

fn do_work(work: Work, times: u64) -> Result<(), String> {
    if Instructions::best().name() != "avx2" {
        say(&format!("counts are those of avx2, and valgrind offers {}", Instructions::best().name()));
    }
    let (rows, columns) = (20_000, 20);
    let narrow = || Loaded::generate(rows, columns);
    let columns = columns as u32;
    let pass = |table: &Loaded, map: Map| (0..times).for_each(|_| table.pass_once(&map));
    match work {
        Work::Gradient => pass(&narrow(), Map::Gradient { loss: Loss::TwoSidedExponential, columns }),
        Work::ClippedGradient => pass(&narrow(), Map::ClippedGradient { columns, clip: 2048 * 4000 }),
        Work::SoftmaxGradient => pass(&narrow(), Map::BoundedSoftmaxGradient { classes: 3, columns }),
        Work::SparseGradient => {
            let table = Loaded::generate_sparse(rows, 5, 1000);
            pass(&table, Map::Gradient { loss: Loss::TwoSidedExponential, columns: table.columns() });
        }
        Work::Products => {
            let table = Loaded::generate(5000, 40);
            let target = ProductTarget::Class;
            pass(&table, Map::Gram { columns: 40, target, diagonal: 1, off_diagonal: 1, cross: 1, square: 1 });
        }
        Work::Histogram => pass(&narrow(), Map::ScoreHistogram { buckets: 16 }),
        Work::Csv => return read_csv(times),
    }
    Ok(())
}

fn read_csv(times: u64) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let names: Vec<String> = (0..10).map(|column| format!("x{column}")).collect();
    let features: String = names.iter().map(|name| format!("{name} = {{ bounds = [-1, 1] }}\n")).collect();
    let schema = schema_of(&features);
    let mut random = fastrand::Rng::with_seed(3);
    let mut file = tempfile::NamedTempFile::new().map_err(|error| failed(&error))?;
    let mut text = format!("{},y\n", names.join(","));
    for row in 0..5000 {
        names.iter().for_each(|_| text.push_str(&format!("{:.6},", 2.0 * random.f64() - 1.0)));
        text.push_str(if row % 2 == 0 { "0\n" } else { "1\n" });
    }
    file.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    let path: PathBuf = file.path().to_owned();
    for _ in 0..times {
        let source = TableSource::open(&path, &schema, Need::FeaturesAndTarget).map_err(|error| failed(&error))?;
        drop(std::hint::black_box(CodedTable::read(source, &schema, &mut |_| {}).map_err(|error| failed(&error))?));
    }
    Ok(())
}
