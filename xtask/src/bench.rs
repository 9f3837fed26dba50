//! `cargo xtask bench`: what this code takes, side by side in one run with what a user would take instead.
//!
//! Every piece of work is done once to warm up, then repeated; the least and the median time are printed. With one thread
//! times are processor time, which other programs on the machine disturb less than the wall clock; with more they are wall
//! clock. Python baselines run in a virtual environment of pinned versions under `target/bench`, made on first use.

mod clock;
mod end_to_end;
mod memory;
mod noise;
mod passes;
mod python;
mod record;
mod scaling;
mod streamed;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

pub(crate) use passes::{Loaded, schema_of};
use python::Python;
use record::Record;

#[derive(Args)]
pub(crate) struct BenchArguments {
    /// Parts to run [default: all]
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// A tenth of the rows and few repeats: does it run?
    #[arg(long)]
    quick: bool,
    /// Also 100 million rows of 20 columns, in memory (12 GB) and under a ceiling (9 GB of scratch files)
    #[arg(long)]
    large: bool,
    /// Also JAX
    #[arg(long)]
    jax: bool,
    /// Also PyTorch with Opacus, which takes some gigabytes to install
    #[arg(long)]
    opacus: bool,
    /// Append the times of every run here (JSON lines)
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Part {
    /// One gradient pass, beside NumPy
    Gradient,
    /// One gradient pass of ten classes, beside NumPy
    Classes,
    /// The matrix of products, beside NumPy
    Products,
    /// Fifty passes over a table in memory, beside scikit-learn and diffprivlib
    Fits,
    /// CSV and Parquet to a private model, beside polars with diffprivlib
    Files,
    /// CSV and Parquet to predictions, beside polars with scikit-learn
    Predictions,
    /// Labels of another organisation: CSV to a model and its figures, command after command
    Labels,
    /// A pass over a sparse table, beside SciPy
    Sparse,
    /// Exact noise and accounting: speed and error
    Noise,
    /// Time a row against rows, columns and threads
    Scaling,
    /// Time a row against rows under a memory ceiling
    Streamed,
}

/// What all parts use.
struct Bench<'a> {
    arguments: &'a BenchArguments,
    python: Python,
    record: Record,
}

/// Shapes of the comparisons: one that fits the cache, a usual one, a wide one.
const SHAPES: [(usize, usize); 3] = [(100_000, 20), (1_000_000, 100), (200_000, 1000)];

impl Bench<'_> {
    fn shapes(&self) -> [(usize, usize); 3] {
        SHAPES.map(|(rows, columns)| (self.rows(rows), columns))
    }

    fn rows(&self, rows: usize) -> usize {
        if self.arguments.quick { rows / 10 } else { rows }
    }

    fn repeats(&self, usual: usize) -> usize {
        if self.arguments.quick { 3 } else { usual }
    }
}

pub(crate) fn run(arguments: &BenchArguments) -> Result<(), String> {
    if cfg!(debug_assertions) {
        return crate::run_optimised();
    }
    let record = Record::new(arguments.record.as_deref())?;
    let read_bandwidth = memory::read_bandwidth(arguments.quick);
    let mut bench = Bench { arguments, python: Python::new()?, record };
    bench.record.describe_machine(read_bandwidth)?;
    let mut parts = arguments.parts.clone();
    if parts.is_empty() {
        parts = Part::value_variants().to_vec();
    }
    for part in parts {
        match part {
            Part::Gradient => passes::gradient(&mut bench)?,
            Part::Classes => passes::classes(&mut bench)?,
            Part::Products => passes::products(&mut bench)?,
            Part::Fits => passes::fits(&mut bench)?,
            Part::Files => end_to_end::files(&mut bench)?,
            Part::Predictions => end_to_end::predictions(&mut bench)?,
            Part::Labels => end_to_end::labels(&mut bench)?,
            Part::Sparse => passes::sparse(&mut bench)?,
            Part::Noise => noise::run(&mut bench)?,
            Part::Scaling => scaling::run(&mut bench)?,
            Part::Streamed => streamed::run(&mut bench)?,
        }
    }
    Ok(())
}
