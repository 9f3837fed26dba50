//! A generated table: 10,000 rows, uniform in the unit ball of 10 dimensions, labels from a logistic model.

use super::case::{Case, Figures, NON_PRIVATE};
use super::fitted::{Fitted, excess_loss};
use super::normal::{direction, dot, happens, in_ball};
use super::report;
use super::runner::Runner;
use crate::say;

const ROWS: usize = 10_000;
const COLUMNS: usize = 10;
const FRESH_ROWS: usize = 50_000;
/// Norm of the true weights.
const NORM: f64 = 5.0;
const DELTA: f64 = 1e-6;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let schema = schema();
    for seed in 0..runner.splits(8) {
        let mut random = fastrand::Rng::with_seed(seed);
        let truth = direction(&mut random, COLUMNS, NORM);
        let mut text = (0..COLUMNS).map(|column| format!("x{column},")).collect::<String>();
        text.push_str("y\n");
        for _ in 0..ROWS {
            let row = in_ball(&mut random, COLUMNS);
            row.iter().for_each(|value| text.push_str(&format!("{value},")));
            text.push_str(if happens(&mut random, dot(&row, &truth)) { "1\n" } else { "0\n" });
        }
        let fresh: Vec<Vec<f64>> = (0..FRESH_ROWS).map(|_| in_ball(&mut random, COLUMNS)).collect();
        let path = runner.write("training.csv", &text)?;
        let mut all = vec![Case::open("generated", NON_PRIVATE)];
        for epsilon in runner.epsilons(&[1.0]) {
            all.extend(runner.adjacencies(&["add-remove", "replace"]).iter().flat_map(|adjacency| {
                ["noisy-gd", "objective-perturbation"]
                    .map(|method| Case::private("generated", method, adjacency, epsilon, DELTA))
            }));
        }
        for case in &all {
            let (model, seconds) = runner.fit(case, &schema, &path, ROWS)?;
            let model = Fitted::read(&model)?;
            let excess = fresh.iter().map(|row| excess_loss(dot(row, &truth), model.score(row))).sum::<f64>();
            runner.add(
                case,
                seed,
                Figures::from([("excess_loss", excess / FRESH_ROWS as f64), ("processor_seconds", seconds)]),
            )?;
        }
        say(&format!("world {} done", seed + 1));
    }
    report::table(runner, &[("excess_loss", "excess log loss"), ("processor_seconds", "processor seconds")]);
    Ok(())
}

fn schema() -> String {
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"0\", \
         \"1\"]\n[features]\n",
    );
    (0..COLUMNS).for_each(|column| schema.push_str(&format!("x{column} = {{ bounds = [-1, 1] }}\n")));
    schema
}
