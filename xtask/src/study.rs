//! `cargo xtask study`: accuracy by the commands that a user runs, on real and generated tables.
//!
//! A study is a table and a list of fits. Rows are shuffled with a fixed seed; the noise is fresh each time. Beside every
//! private figure stands the fit without privacy (`reticent fit-public`) on the same rows.

mod adult;
mod bank;
mod bike;
mod bounds;
mod california;
mod case;
mod covertype;
mod criteo;
mod data_folder;
mod fitted;
mod flags;
mod intervals;
mod kdd;
mod linear;
mod methods;
mod mnist;
mod no_signal;
mod normal;
mod party;
mod plot;
mod pretraining;
mod report;
mod reuters;
mod runner;
mod skewed;
mod synthetic;
mod table;
mod walr;

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use runner::Runner;
pub(crate) use runner::{build, revision};

#[derive(Args)]
pub(crate) struct StudyArguments {
    #[arg(value_enum)]
    study: Study,
    /// Values of epsilon [default: those of the study]
    #[arg(long, value_delimiter = ',')]
    epsilon: Vec<f64>,
    /// Random splits, or repetitions where the study has no split [default: those of the study]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    splits: Option<u64>,
    /// Adjacency, where the study has a choice [default: those of the study]
    #[arg(long)]
    adjacency: Option<String>,
    /// Declare the number of training rows in the schema instead of buying it
    #[arg(long)]
    declare_rows: bool,
    /// Folder with the public tables that do not come with the repository; a study names the file that it misses
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Append the figures of every run here (JSON lines), and draw plots (SVG)
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Study {
    /// UCI Adult, the 45,222 rows without a missing value (the protocol of Iyengar et al. 2019)
    Adult,
    /// UCI Bank Marketing, all rows
    Bank,
    /// The same with bounds of numbers 10, 100 and 1000 times as wide as they need be
    Bounds,
    /// California housing and bike sharing, the same with all bounds 10, 100 and 1000 times as wide (needs --data)
    LinearBounds,
    /// Every method for two classes on Adult, at one budget
    Methods,
    /// KDD Cup 1999, 70,000 rows: attack or not (needs --data)
    Kdd,
    /// Covertype, seven classes, 150,265 rows (needs --data)
    Covertype,
    /// Reuters-21578, earnings or not and eight topics, 11,842 words, the official test documents (needs --data)
    Reuters,
    /// MNIST, ten classes, raw pixels, the official test images (needs --data)
    Mnist,
    /// Six tables of Wang 2018 under that protocol, beside the published figures (needs --data)
    Linear,
    /// California housing: linear regression (needs --data)
    California,
    /// UCI bike sharing: linear regression (needs --data)
    Bike,
    /// The 400 points of Hoseinpour et al. 2023, with and without a public start (needs --data)
    Pretraining,
    /// Label-private regression on three generated families: excess log loss, coverage of intervals
    Walr,
    /// Multiparty combiners: 1000 generated parties, WISDM by user and vehicle sensors by device (needs --data)
    Party,
    /// Criteo attribution between two organisations (needs --data)
    Criteo,
    /// A generated table, N = 10,000 and d = 10: excess log loss
    Synthetic,
    /// Generated tables that say nothing of the target: excess over the base rate or the mean
    NoSignal,
    /// Generated numbers as costs and counts are: zeros, long tails, a group far out (variance that a fit leaves)
    Skewed,
    /// Generated tables with flags that are hardly ever set: excess over the truth, and whether intervals hold their slopes
    Flags,
    /// Adult, Bank, California housing and bike sharing: how often 95 % intervals hold what all rows say without privacy (needs --data)
    Intervals,
}

pub(crate) fn run(arguments: &StudyArguments) -> Result<(), String> {
    let value = arguments.study.to_possible_value().expect("every study has a name");
    let mut runner = Runner::new(arguments, value.get_name())?;
    match arguments.study {
        Study::Adult => adult::run(&mut runner),
        Study::Bank => bank::run(&mut runner),
        Study::Bounds => bounds::classes(&mut runner),
        Study::LinearBounds => bounds::numbers(&mut runner),
        Study::Methods => methods::run(&mut runner),
        Study::Kdd => kdd::run(&mut runner),
        Study::Covertype => covertype::run(&mut runner),
        Study::Reuters => reuters::run(&mut runner),
        Study::Mnist => mnist::run(&mut runner),
        Study::Linear => linear::run(&mut runner),
        Study::California => california::run(&mut runner),
        Study::Bike => bike::run(&mut runner),
        Study::Pretraining => pretraining::run(&mut runner),
        Study::Walr => walr::run(&mut runner),
        Study::Party => party::run(&mut runner),
        Study::Criteo => criteo::run(&mut runner),
        Study::Synthetic => synthetic::run(&mut runner),
        Study::NoSignal => no_signal::run(&mut runner),
        Study::Skewed => skewed::run(&mut runner),
        Study::Flags => flags::run(&mut runner),
        Study::Intervals => intervals::run(&mut runner),
    }
}
