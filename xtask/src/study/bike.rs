//! UCI bike sharing: linear regression under bounds of its own, not the protocol of the `linear` study.

use super::california::over_splits;
use super::runner::Runner;
use super::table::Table;

/// Public bounds of the 17 columns of the file, symmetric about 0: round figures.
const BOUNDS: [u32; 17] = [1, 10, 20, 2, 1, 10, 20, 1, 5, 1, 5, 1, 1, 1, 1, 500, 999];

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let table = table(runner)?;
    over_splits(runner, "bike", &table)
}

pub(super) fn table(runner: &Runner<'_>) -> Result<Table, String> {
    let text = runner.data.text("uci_regression/bike.csv.gz")?;
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [-5, 5]\n[features]\n",
    );
    let mut header = String::new();
    for (column, bound) in BOUNDS.iter().enumerate() {
        schema.push_str(&format!("x{column} = {{ bounds = [-{bound}, {bound}] }}\n"));
        header.push_str(&format!("x{column},"));
    }
    header.push('y');
    let rows = text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    Ok(Table { header, rows, schema })
}
