//! Six tables of Wang 2018 under that protocol, beside the figures published there.
//!
//! Ten folds, delta 1e-6, add-remove; the target is divided by its largest magnitude, columns are standardised, every row
//! is divided by its norm: all of it with public knowledge of the table, as in the source. Predictions are kept in [-1, 1].

use std::path::Path;

use super::case::{Case, Figures, NON_PRIVATE, cases};
use super::fitted::Fitted;
use super::report;
use super::runner::Runner;
use crate::say;

const FOLDS: usize = 10;
const DELTA: f64 = 1e-6;
const EPSILONS: [f64; 3] = [0.1, 1.0, 10.0];

/// Test mean squared errors of Wang 2018: without privacy, then AdaSSP and AdaOPS at epsilon 0.1, 1 and 10.
const PUBLISHED: [(&str, f64, [f64; 3], [f64; 3]); 6] = [
    ("bike", 0.0279, [0.0472, 0.0287, 0.0279], [0.0488, 0.0313, 0.0285]),
    ("pol", 0.1349, [0.2236, 0.1398, 0.1351], [0.2188, 0.1427, 0.1361]),
    ("airfoil", 0.0533, [0.0912, 0.0588, 0.0534], [0.0928, 0.0702, 0.0541]),
    ("skillcraft", 0.0203, [0.0381, 0.0243, 0.0205], [0.0390, 0.0273, 0.0210]),
    ("gas", 0.0214, [0.0891, 0.0474, 0.0351], [0.0746, 0.0469, 0.0374]),
    ("energy", 0.0232, [0.1477, 0.0429, 0.0255], [0.1889, 0.0695, 0.0317]),
];

/// Columns and target of one row.
type Row = (Vec<f64>, f64);

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let epsilons = runner.epsilons(&EPSILONS);
    for (name, open, ada_ssp, ada_ops) in PUBLISHED {
        let rows = read(runner, name)?;
        let schema = schema(rows.first().map_or(0, |(columns, _)| columns.len()));
        let mut all = vec![Case::open(name, NON_PRIVATE)];
        all.extend(cases(name, &["gram --intercept no", "noisy-gd"], &["add-remove".to_owned()], &epsilons, DELTA));
        for seed in 0..runner.splits(1) {
            let mut order: Vec<&Row> = rows.iter().collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut order);
            let mut errors = vec![0.0; all.len()];
            for fold in 0..FOLDS {
                let cut = |fold: usize| fold * order.len() / FOLDS;
                let test = &order[cut(fold)..cut(fold + 1)];
                let training = [&order[..cut(fold)], &order[cut(fold + 1)..]].concat();
                let path = runner.write("training.csv", &text_of(&training))?;
                for (case, error) in all.iter().zip(&mut errors) {
                    let (model, _) = runner.fit(case, &schema, &path, training.len())?;
                    *error += mean_squared_error(&model, test)? / FOLDS as f64;
                }
            }
            for (case, error) in all.iter().zip(errors) {
                let mut figures = Figures::from([("mse", error)]);
                match &case.privacy {
                    None => drop(figures.insert("published", open)),
                    Some(privacy) => {
                        // The budgets that were published, and no others.
                        let known = EPSILONS.iter().position(|epsilon| (epsilon - privacy.epsilon).abs() < 1e-9);
                        if let Some(at) = known {
                            figures.extend([("ada_ssp", ada_ssp[at]), ("ada_ops", ada_ops[at])]);
                        }
                    }
                }
                runner.add(case, seed, figures)?;
            }
        }
        say(&format!("{name} done"));
    }
    let columns = [
        ("mse", "test MSE"),
        ("ada_ssp", "AdaSSP, published"),
        ("ada_ops", "AdaOPS, published"),
        ("published", "non-private, published"),
    ];
    report::table(runner, &columns);
    Ok(())
}

/// Rows under the protocol.
fn read(runner: &Runner<'_>, name: &str) -> Result<Vec<Row>, String> {
    let text = runner.data.text(&format!("uci_regression/{name}.csv.gz"))?;
    let parse = |line: &str| -> Result<Row, String> {
        let mut values: Vec<f64> = line
            .split(',')
            .map(|value| value.trim().parse().map_err(|_| format!("{name}: {value:?} is no number")))
            .collect::<Result<_, _>>()?;
        let target = values.pop().ok_or("an empty line")?;
        Ok((values, target))
    };
    let mut rows: Vec<Row> = text.lines().filter(|line| !line.is_empty()).map(parse).collect::<Result<_, _>>()?;
    let count = rows.len() as f64;
    let largest = rows.iter().map(|(_, target)| target.abs()).fold(0.0, f64::max);
    for column in 0..rows.first().map_or(0, |(columns, _)| columns.len()) {
        let mean = rows.iter().map(|(columns, _)| columns[column]).sum::<f64>() / count;
        let variance = rows.iter().map(|(columns, _)| (columns[column] - mean).powi(2)).sum::<f64>() / count;
        let scale = if variance > 0.0 { variance.sqrt() } else { 1.0 };
        rows.iter_mut().for_each(|(columns, _)| columns[column] = (columns[column] - mean) / scale);
    }
    for (columns, target) in &mut rows {
        *target /= largest;
        let norm = columns.iter().map(|value| value * value).sum::<f64>().sqrt().max(1e-12);
        columns.iter_mut().for_each(|value| *value /= norm);
    }
    Ok(rows)
}

fn schema(columns: usize) -> String {
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\nrow_norm = 1.0\n[target]\ncolumn = \"y\"\nbounds = [-1, \
         1]\n[features]\n",
    );
    (0..columns).for_each(|column| schema.push_str(&format!("x{column} = {{ bounds = [-1, 1] }}\n")));
    schema
}

fn text_of(rows: &[&Row]) -> String {
    let columns = rows.first().map_or(0, |(columns, _)| columns.len());
    let mut text = (0..columns).map(|column| format!("x{column},")).collect::<String>();
    text.push_str("y\n");
    for (columns, target) in rows {
        columns.iter().for_each(|value| text.push_str(&format!("{value:.9},")));
        text.push_str(&format!("{target:.9}\n"));
    }
    text
}

fn mean_squared_error(model: &Path, test: &[&Row]) -> Result<f64, String> {
    let model = Fitted::read(model)?;
    let error = |(columns, target): &&Row| (target - model.score(columns).clamp(-1.0, 1.0)).powi(2);
    Ok(test.iter().map(error).sum::<f64>() / test.len() as f64)
}
