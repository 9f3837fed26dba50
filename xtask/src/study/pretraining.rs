//! The 400 points of Hoseinpour et al. 2023: their table of budgets, without and with a public start.
//!
//! Accuracy is measured on the points that were fitted, as in the source. With a public start 80 points are declared public
//! and the other 320 are fitted and measured.

use super::case::{Case, NON_PRIVATE, cases};
use super::report;
use super::runner::{Runner, text};
use super::table::{Split, Table, lines};
use crate::say;

const DELTA: f64 = 1e-5;
const PUBLIC_ROWS: usize = 80;
const EPSILONS: [f64; 9] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 15.0, 150.0];

/// Accuracies published for them, in percent: one run each.
const PUBLISHED: [f64; 9] = [29.75, 33.0, 40.25, 53.25, 60.25, 66.25, 66.5, 67.0, 67.5];
const PUBLISHED_WITH_START: [f64; 9] = [29.75, 33.5, 41.25, 60.0, 70.5, 77.25, 77.5, 77.5, 78.0];

const SCHEMA: &str = r#"
[privacy]
unit = "row"
adjacency = "add-remove"
[target]
column = "y"
classes = ["0", "1"]
[features]
x1 = { bounds = [-15, 15] }
x2 = { bounds = [-15, 15] }
"#;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let text_of_all = runner.data.text("hoseinpour_pretraining/Data.csv")?;
    let whole = |line: &str| line.trim_end().trim_end_matches(".0").to_owned();
    let rows: Vec<String> = text_of_all.lines().filter(|line| !line.is_empty()).map(whole).collect();
    let table = Table { header: "x1,x2,y".to_owned(), rows, schema: SCHEMA.to_owned() };
    let mut order = lines(&table.rows);
    fastrand::Rng::with_seed(7).shuffle(&mut order);
    let (public, private) = order.split_at(PUBLIC_ROWS);
    let public = table.write(runner, "public.csv", public)?;
    let fitted = |name: &str, rows: &[&str]| -> Result<Split, String> {
        let path = table.write(runner, name, rows)?;
        Ok(Split { training: path.clone(), test: path, rows: rows.len(), base_rate: None })
    };
    let (all, rest) = (fitted("all.csv", &order)?, fitted("rest.csv", private)?);
    let (adjacencies, epsilons) = (runner.adjacencies(&["add-remove", "replace"]), runner.epsilons(&EPSILONS));
    let start = format!("--public-data {}", text(&public));
    for (name, split, options) in [("400 points", &all, ""), ("320 points, public start", &rest, start.as_str())] {
        runner.measure(&Case::open(name, NON_PRIVATE), SCHEMA, split, 0)?;
        for seed in 0..runner.splits(10) {
            for case in cases(name, &["noisy-gd", "noisy-gd-slides"], &adjacencies, &epsilons, DELTA) {
                let typed = Case { method: format!("{} {options}", case.method), ..case.clone() };
                let (model, seconds) = runner.fit(&typed, SCHEMA, &split.training, split.rows)?;
                let mut figures = runner.evaluate(&model, &split.test)?;
                figures.insert("processor_seconds", seconds);
                let known = case.privacy.as_ref().and_then(|privacy| published(privacy.epsilon, !options.is_empty()));
                figures.extend(known.map(|accuracy| ("published", accuracy)));
                runner.add(&case, seed, figures)?;
            }
        }
        say(&format!("{name} done"));
    }
    let columns = [
        ("accuracy", "accuracy"),
        ("published", "published"),
        ("auc", "AUC"),
        ("log_loss", "log loss"),
        ("processor_seconds", "processor seconds"),
    ];
    report::table(runner, &columns);
    Ok(())
}

/// The accuracy that the source has at this budget.
fn published(epsilon: f64, with_start: bool) -> Option<f64> {
    let at = EPSILONS.iter().position(|known| (known - epsilon).abs() < 1e-9)?;
    Some(if with_start { PUBLISHED_WITH_START[at] } else { PUBLISHED[at] } / 100.0)
}
