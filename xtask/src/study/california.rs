//! California housing: linear regression on a table of numbers and one category.

use super::case::cases;
use super::report;
use super::runner::Runner;
use super::table::{Table, Target};

const SCHEMA: &str = r#"
[privacy]
unit = "row"
adjacency = "add-remove"
[target]
column = "median_house_value"
bounds = [0, 500001]
[features]
longitude = { bounds = [-125, -114] }
latitude = { bounds = [32, 42] }
housing_median_age = { bounds = [0, 60] }
total_rooms = { bounds = [0, 40000] }
total_bedrooms = { bounds = [0, 7000] }
population = { bounds = [0, 40000] }
households = { bounds = [0, 7000] }
median_income = { bounds = [0, 16] }
ocean_proximity = { categories = ["<1H OCEAN", "INLAND", "NEAR OCEAN", "NEAR BAY", "ISLAND"] }
"#;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let table = table(runner)?;
    over_splits(runner, "california", &table)
}

pub(super) fn table(runner: &Runner<'_>) -> Result<Table, String> {
    let text = runner.data.text("california_housing/housing.csv.xz")?;
    let mut lines = text.lines().map(str::to_owned);
    let header = lines.next().ok_or("the table is empty")?;
    Ok(Table { header, rows: lines.collect(), schema: SCHEMA.to_owned() })
}

/// Every method for a number, over random splits.
pub(super) fn over_splits(runner: &mut Runner<'_>, name: &str, table: &Table) -> Result<(), String> {
    let epsilons = runner.epsilons(&[0.1, 1.0]);
    let mut all = Vec::new();
    for adjacency in runner.adjacencies(&["add-remove", "replace", "label"]) {
        let methods: &[&str] = if adjacency == "label" {
            &["walr"]
        } else {
            &["noisy-gd", "gram", "functional", "functional --noise gaussian"]
        };
        all.extend(cases(name, methods, &[adjacency], &epsilons, table.delta()));
    }
    for seed in 0..runner.splits(5) {
        let split = table.split(runner, seed, Target::Number)?;
        runner.compare(&all, &table.schema, &split, seed)?;
    }
    report::table(runner, report::NUMBERS);
    Ok(())
}
