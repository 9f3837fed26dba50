//! Exact noise and accounting: draws a second, and how far both are from what they should be.

use std::time::Instant;

use reticent_core::account::gdp;
use reticent_core::noise::discrete_laplace::sample_discrete_laplace;
use reticent_core::noise::entropy::OsEntropy;
use reticent_core::noise::rounded_gaussian::sample_rounded_gaussian;
use reticent_core::units::{Delta, Epsilon, Mu, NoiseScale};
use serde_json::{Value, json};

use super::Bench;
use super::clock::Times;
use crate::{print, root};

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), String> {
    draws(bench)?;
    accounting(bench)
}

/// Draws a second by one thread, and mean and variance in standard errors of a true sample.
fn draws(bench: &mut Bench<'_>) -> Result<(), String> {
    let (count, repeats) = (bench.rows(1_000_000), bench.repeats(5));
    print("Exact draws by one thread; mean and variance of all draws, in standard errors.\n");
    print("| distribution | scale | million draws a second, best | median | mean | variance |");
    print("|---|---|---|---|---|---|");
    for (name, power) in
        [("rounded Gaussian", 10), ("rounded Gaussian", 30), ("rounded Gaussian", 50), ("discrete Laplace", 30)]
    {
        let gaussian = name == "rounded Gaussian";
        let scale = NoiseScale::new(1 << power).expect("within the range");
        let size = 2f64.powi(power);
        let mut entropy = OsEntropy::new().map_err(|error| error.to_string())?;
        let (mut sum, mut squares, mut drawn) = (0.0, 0.0, 0.0);
        let times = Times::of(repeats, || {
            let mut stream = entropy.for_this_process().expect("the operating system gives random bits");
            for _ in 0..count {
                let draw = if gaussian {
                    sample_rounded_gaussian(scale, &mut stream)
                } else {
                    sample_discrete_laplace(scale, &mut stream)
                };
                let draw = draw.expect("the operating system gives random bits") as f64 / size;
                sum += draw;
                squares += draw * draw;
                drawn += 1.0;
            }
        });
        // In units of the scale: variance 1 (and 1/12 of a squared step) or 2, fourth moment 3 or 24.
        let (variance, fourth) = if gaussian { (1.0 + 1.0 / (12.0 * size * size), 3.0) } else { (2.0, 24.0) };
        let mean_error = sum / drawn / f64::sqrt(variance / drawn);
        let variance_error = (squares / drawn - variance) / f64::sqrt((fourth - variance * variance) / drawn);
        let rate = |seconds: f64| count as f64 / seconds / 1e6;
        print(&format!(
            "| {name} | 2^{power} | {:.2} | {:.2} | {mean_error:+.1} | {variance_error:+.1} |",
            rate(times.least(1)),
            rate(times.median(1))
        ));
        bench.record.line(&json!({
            "part": "noise", "what": name, "scale": size, "draws": count, "wall": times.wall,
            "processor": times.processor, "mean_in_standard_errors": mean_error,
            "variance_in_standard_errors": variance_error,
        }))?;
    }
    print("");
    Ok(())
}

/// The largest relative error over the reference numbers of `testdata/golden/accounting`, and the time of a call.
fn accounting(bench: &mut Bench<'_>) -> Result<(), String> {
    let budgets = golden("budget.json")?;
    let profiles = golden("profile.json")?;
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap_or(f64::NAN);
    print("Accounting against reference numbers; an error is on the safe side.\n");
    print("| function | numbers | largest relative error | microseconds a call |");
    print("|---|---|---|---|");
    let mut row = |name: &str, rows: &[Value], found: &dyn Fn(&Value) -> (f64, f64)| -> Result<(), String> {
        let started = Instant::now();
        const CALLS: usize = 20;
        let mut worst = 0.0f64;
        for _ in 0..CALLS {
            for row in rows {
                let (found, expected) = found(row);
                if expected.is_finite() && expected.abs() > 0.0 {
                    worst = worst.max((found / expected - 1.0).abs());
                }
            }
        }
        let micros = started.elapsed().as_secs_f64() * 1e6 / (CALLS * rows.len()) as f64;
        print(&format!("| {name} | {} | {worst:.1e} | {micros:.1} |", rows.len()));
        bench.record.line(&json!({
            "part": "accounting", "what": name, "numbers": rows.len(), "largest_relative_error": worst,
            "microseconds": micros,
        }))
    };
    row("mu of (epsilon, delta)", &budgets, &|row| {
        let epsilon = Epsilon::new(number(row, "epsilon")).expect("a reference number is legal");
        let delta = Delta::new(number(row, "delta")).expect("a reference number is legal");
        (gdp::mu_down(epsilon, delta).get(), number(row, "mu"))
    })?;
    row("log delta of (mu, epsilon)", &profiles, &|row| {
        let mu = Mu::new(number(row, "mu")).expect("a reference number is legal");
        (gdp::log_delta_up(mu, number(row, "epsilon")), number(row, "log_delta"))
    })?;
    print("");
    Ok(())
}

fn golden(name: &str) -> Result<Vec<Value>, String> {
    let path = root().join("testdata/golden/accounting").join(name);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
}
