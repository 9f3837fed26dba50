//! UCI Adult over random splits.

use super::case::cases;
use super::plot;
use super::report;
use super::runner::Runner;
use super::table::{Table, Target};

pub(super) const TITLE: &str = "adult";

/// The rows without a missing value, as in the protocol of Iyengar et al. 2019.
pub(super) fn complete() -> Result<Table, String> {
    let mut table = Table::example("adult")?;
    table.rows.retain(|line| !line.split(',').any(|field| field == "?"));
    Ok(table)
}

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let table = complete()?;
    over_splits(runner, TITLE, &table)
}

/// The default method at several budgets, with a plot.
pub(super) fn over_splits(runner: &mut Runner<'_>, name: &str, table: &Table) -> Result<(), String> {
    let adjacencies = runner.adjacencies(&["add-remove"]);
    let all = cases(
        name,
        &["noisy-gd", "noisy-gd --coordinate-bits 8"],
        &adjacencies,
        &runner.epsilons(&[0.1, 1.0]),
        table.delta(),
    );
    for seed in 0..runner.splits(10) {
        let split = table.split(runner, seed, Target::Class)?;
        runner.compare(&all, &table.schema, &split, seed)?;
    }
    report::table(runner, report::CLASSES);
    for adjacency in adjacencies {
        plot::accuracy(runner, name, &adjacency)?;
    }
    Ok(())
}
