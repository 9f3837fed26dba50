//! A generated table with flags, numbers that are 0 or 1, some of them hardly ever 1: what they cost, and whether intervals hold their slopes.

use fastrand::Rng;

use super::case::{Case, Figures};
use super::fitted::{Fitted, INTERVAL, excess_loss};
use super::normal::{dot, happens, normal};
use super::report;
use super::runner::Runner;
use crate::say;

/// How often each flag is 1.
const RATES: [f64; 6] = [0.003, 0.008, 0.02, 0.05, 0.1, 0.3];
/// Slopes of the flags, then of four normal numbers that are read between 0 and 1.
const SLOPES: [f64; 10] = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 2.0, -2.0, 1.0, 0.0];
/// Log-odds of the classes are so many times a number without its noise, plus the second.
const LOG_ODDS: (f64, f64) = (1.5, -0.5);
/// Noise of a number.
const NOISE: f64 = 0.5;
const FRESH_ROWS: usize = 20_000;
const DELTA: f64 = 1e-6;

/// What is predicted.
struct Target {
    name: &'static str,
    is_number: bool,
    methods: &'static [&'static str],
}

const TARGETS: [Target; 2] = [
    Target { name: "two classes", is_number: false, methods: &["noisy-gd"] },
    Target { name: "a number", is_number: true, methods: &["noisy-gd", "gram"] },
];

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    for target in &TARGETS {
        for rows in [2000, 5000, 20_000] {
            for seed in 0..runner.splits(20) {
                measure(runner, target, rows, seed)?;
            }
            say(&format!("{}, {rows} rows done", target.name));
        }
    }
    report::table(runner, &[("excess", "log loss or mean square beyond the truth's"), ("held", "flags' slopes held")]);
    Ok(())
}

fn measure(runner: &mut Runner<'_>, target: &Target, rows: usize, seed: u64) -> Result<(), String> {
    let Target { name, is_number, methods } = *target;
    let mut random = Rng::with_seed(seed);
    let mut text = format!("{}y\n", (0..SLOPES.len()).map(|place| format!("x{place},")).collect::<String>());
    for _ in 0..rows {
        let row = row(&mut random);
        row.iter().for_each(|value| text.push_str(&format!("{value},")));
        let score = dot(&row, &SLOPES);
        text.push_str(&match is_number {
            true => format!("{}\n", score + NOISE * normal(&mut random)),
            false => format!("{}\n", u8::from(happens(&mut random, log_odds(score)))),
        });
    }
    let training = runner.write("training.csv", &text)?;
    let fresh: Vec<Vec<f64>> = (0..FRESH_ROWS).map(|_| row(&mut random)).collect();
    for epsilon in runner.epsilons(&[0.5, 1.0, 3.0]) {
        for adjacency in runner.adjacencies(&["add-remove"]) {
            for method in methods {
                let case = Case::private(&format!("{name}, {rows} rows"), method, &adjacency, epsilon, DELTA);
                let (model, _) = runner.fit(&case, &schema(is_number), &training, rows)?;
                let model = Fitted::read(&model)?;
                let excess = fresh.iter().map(|row| {
                    let (truth, found) = (dot(row, &SLOPES), model.score(row));
                    if is_number { (found - truth).powi(2) } else { excess_loss(log_odds(truth), found) }
                });
                let mut figures = Figures::from([("excess", excess.sum::<f64>() / FRESH_ROWS as f64)]);
                if let Some(held) = held(&model) {
                    figures.insert("held", held);
                }
                runner.add(&case, seed, figures)?;
            }
        }
    }
    Ok(())
}

fn row(random: &mut Rng) -> Vec<f64> {
    let mut row: Vec<f64> = RATES.iter().map(|rate| f64::from(u8::from(random.f64() < *rate))).collect();
    row.extend((RATES.len()..SLOPES.len()).map(|_| (0.5 + normal(random) / 6.0).clamp(0.0, 1.0)));
    row
}

fn log_odds(score: f64) -> f64 {
    LOG_ODDS.0 * score + LOG_ODDS.1
}

/// Share of the flags whose 95 % interval holds the slope; none where the method knows of no intervals.
fn held(model: &Fitted) -> Option<f64> {
    let holds = |place: usize| Some(f64::from(u8::from(model.errors_off(place, SLOPES[place])? <= INTERVAL)));
    (0..RATES.len()).map(holds).sum::<Option<f64>>().map(|held| held / RATES.len() as f64)
}

fn schema(is_number: bool) -> String {
    let target = if is_number { "bounds = [-6, 6]" } else { "classes = [\"0\", \"1\"]" };
    let mut schema = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\n{target}\n[features]\n"
    );
    (0..SLOPES.len()).for_each(|place| schema.push_str(&format!("x{place} = {{ bounds = [0, 1] }}\n")));
    schema
}
