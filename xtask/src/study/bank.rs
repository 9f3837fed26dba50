//! UCI Bank Marketing over random splits.

use super::adult::over_splits;
use super::runner::Runner;
use super::table::Table;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    over_splits(runner, "bank", &Table::example("bank")?)
}
