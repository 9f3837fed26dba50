//! Generated numbers as costs, stays and counts are: many zeros, a long tail, a group far out. What part of their variance a fit leaves, and how
//! often it is clearly worse than the mean.

use fastrand::Rng;

use super::case::{Case, Figures, NON_PRIVATE};
use super::no_signal::{mean, mean_square};
use super::normal::{dot, normal};
use super::report;
use super::runner::Runner;
use crate::say;

const ROWS: usize = 1000;
const FRESH_ROWS: usize = 4000;
const DELTA: f64 = 1e-6;
/// Effects of normal numbers on the score that every target grows with, of variance 1.
const EFFECTS: [f64; 5] = [0.7, -0.5, 0.4, 0.3, 0.0];
/// How often the flag beside them is set.
const FLAG_RATE: f64 = 0.1;
/// A fit is clearly worse than the mean of its rows where it leaves so many times their variance.
const WORSE: f64 = 1.05;

/// A target and its bounds, by the score and the flag of a row.
struct Target {
    name: &'static str,
    high: f64,
    draw: fn(f64, bool, &mut Rng) -> f64,
}

const TARGETS: [Target; 5] = [
    Target {
        name: "costs, four in ten not 0",
        high: 50_000.0,
        draw: |score, _, random| {
            let cost = (8.0 + 0.5 * score + 0.6 * normal(random)).exp();
            if score + normal(random) > 0.3 { cost } else { 0.0 }
        },
    },
    Target {
        name: "costs, three in ten not 0, evenly",
        high: 10_000.0,
        draw: |score, _, random| {
            let cost = 4000.0 + 2500.0 * random.f64() + 500.0 * score;
            if score + normal(random) > 0.8 { cost } else { 0.0 }
        },
    },
    Target {
        name: "a tenth far out, by a flag",
        high: 100.0,
        draw: |score, flag, random| 20.0 + 5.0 * score + 2.0 * normal(random) + if flag { 60.0 } else { 0.0 },
    },
    Target {
        name: "a long tail",
        high: 60_000.0,
        draw: |score, _, random| (8.0 + 0.7 * score + 0.7 * normal(random)).exp(),
    },
    Target { name: "counts", high: 60.0, draw: |score, _, random| count((0.5 + 0.6 * score).exp(), random) },
];

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    for target in &TARGETS {
        for seed in 0..runner.splits(20) {
            measure(runner, target, seed)?;
        }
        say(&format!("{} done", target.name));
    }
    report::table(runner, &[("left", "variance left"), ("worse", "fits clearly worse than the mean")]);
    Ok(())
}

fn measure(runner: &mut Runner<'_>, target: &Target, seed: u64) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let (training, of_training) = rows(target, ROWS, &mut random);
    let (fresh, of_fresh) = rows(target, FRESH_ROWS, &mut random);
    let (training, fresh) = (runner.write("training.csv", &training)?, runner.write("fresh.csv", &fresh)?);
    let variance = mean_square(&of_fresh, mean(&of_training));
    let mut cases = vec![Case::open(target.name, NON_PRIVATE)];
    for epsilon in runner.epsilons(&[0.5, 1.0, 3.0]) {
        for (method, adjacency) in [("noisy-gd", "add-remove"), ("gram", "add-remove"), ("walr", "label")] {
            cases.push(Case::private(target.name, method, adjacency, epsilon, DELTA));
        }
    }
    for case in cases {
        let (model, _) = runner.fit(&case, &schema(target), &training, ROWS)?;
        let left = runner.evaluate(&model, &fresh)?["rmse"].powi(2) / variance;
        let worse = f64::from(u8::from(left > WORSE));
        runner.add(&case, seed, Figures::from([("left", left), ("worse", worse)]))?;
    }
    Ok(())
}

/// A table as CSV, and its targets.
fn rows(target: &Target, count: usize, random: &mut Rng) -> (String, Vec<f64>) {
    let mut text = (0..EFFECTS.len()).map(|place| format!("x{place},")).collect::<String>() + "flag,y\n";
    let mut targets = Vec::new();
    for _ in 0..count {
        let row: Vec<f64> = EFFECTS.iter().map(|_| normal(random).clamp(-4.0, 4.0)).collect();
        let flag = random.f64() < FLAG_RATE;
        let value = (target.draw)(dot(&row, &EFFECTS), flag, random).clamp(0.0, target.high);
        row.iter().for_each(|number| text.push_str(&format!("{number},")));
        text.push_str(&format!("{},{value}\n", u8::from(flag)));
        targets.push(value);
    }
    (text, targets)
}

/// A Poisson count of this mean, of a few: as many as products of uniform numbers stay above `e^-mean`.
fn count(mean: f64, random: &mut Rng) -> f64 {
    let (mut product, mut count) = (random.f64(), 0.0);
    while product > (-mean).exp() {
        product *= random.f64();
        count += 1.0;
    }
    count
}

fn schema(target: &Target) -> String {
    let mut schema = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [0, {}]\n[features]\n",
        target.high
    );
    (0..EFFECTS.len()).for_each(|place| schema.push_str(&format!("x{place} = {{ bounds = [-4, 4] }}\n")));
    schema + "flag = { bounds = [0, 1] }\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mean and the variance of a Poisson count are its rate, here known to some thousandths.
    #[test]
    fn counts_are_poissons() {
        let mut random = Rng::with_seed(1);
        let counts: Vec<f64> = (0..100_000).map(|_| count(2.5, &mut random)).collect();
        let mean = mean(&counts);
        let variance = mean_square(&counts, mean);
        assert!((mean - 2.5).abs() < 0.025 && (variance - 2.5).abs() < 0.07, "{mean} {variance}");
    }
}
