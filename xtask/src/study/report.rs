//! Figures as a Markdown table: mean ± standard error over runs.

use super::case::{Case, Figures, NON_PRIVATE};
use super::runner::Runner;
use crate::print;

/// Accuracy, AUC and log loss of classifiers, and the processor time of a fit.
pub(super) const CLASSES: &[(&str, &str)] =
    &[("accuracy", "accuracy"), ("auc", "AUC"), ("log_loss", "log loss"), ("processor_seconds", "processor seconds")];

/// The root of the mean squared error, and the processor time of a fit.
pub(super) const NUMBERS: &[(&str, &str)] = &[("rmse", "RMSE"), ("processor_seconds", "processor seconds")];

/// Prints every case with the figures named, in the order of first runs.
pub(super) fn table(runner: &Runner<'_>, columns: &[(&str, &str)]) {
    let with_ratio = columns.iter().any(|(name, _)| *name == "log_loss");
    let mut headings = vec!["table", "method", "adjacency", "epsilon"];
    for (name, heading) in columns {
        headings.push(heading);
        if *name == "log_loss" && with_ratio {
            headings.push("/ non-private");
        }
    }
    headings.push("runs");
    print(&format!("| {} |", headings.join(" | ")));
    print(&format!("|{}", "---|".repeat(headings.len())));
    for (case, runs) in &runner.results {
        let privacy = case.privacy.as_ref();
        let mut cells = vec![case.table.clone(), case.method.clone()];
        cells.push(privacy.map_or_else(String::new, |privacy| privacy.adjacency.clone()));
        cells.push(privacy.map_or_else(String::new, |privacy| shortened(privacy.epsilon)));
        for (name, _) in columns {
            cells.push(cell(name, runs));
            if *name == "log_loss" && with_ratio {
                cells.push(ratio(runner, case, runs));
            }
        }
        cells.push(runs.len().to_string());
        print(&format!("| {} |", cells.join(" | ")));
    }
}

/// Mean and standard error of a figure over the runs that have it.
pub(super) fn summary(name: &str, runs: &[Figures]) -> Option<(f64, f64)> {
    let values: Vec<f64> = runs.iter().filter_map(|figures| figures.get(name).copied()).collect();
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    Some((mean, (variance / count).sqrt()))
}

fn cell(name: &str, runs: &[Figures]) -> String {
    let Some((mean, error)) = summary(name, runs) else { return String::new() };
    if name == "processor_seconds" {
        // The least disturbed by whatever else the machine did.
        let least = runs.iter().filter_map(|figures| figures.get(name)).copied().fold(f64::INFINITY, f64::min);
        return format!("{least:.2}");
    }
    let digits = match mean.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 2,
        size if size >= 0.1 => 4,
        _ => 5,
    };
    if error > 1e-12 * mean.abs() { format!("{mean:.digits$} ± {error:.digits$}") } else { format!("{mean:.digits$}") }
}

/// Mean log loss over that of the fit without privacy.
fn ratio(runner: &Runner<'_>, case: &Case, runs: &[Figures]) -> String {
    let open = runner.results.iter().find(|(open, _)| open.table == case.table && open.method == NON_PRIVATE);
    let open = open.and_then(|(_, runs)| summary("log_loss", runs));
    match (summary("log_loss", runs), open) {
        (Some((loss, _)), Some((open, _))) if case.method != NON_PRIVATE => format!("{:.2}", loss / open),
        _ => String::new(),
    }
}

fn shortened(epsilon: f64) -> String {
    let digits = if epsilon.fract().abs() > 0.0 { 3 } else { 0 };
    let fixed = format!("{epsilon:.digits$}");
    if digits > 0 { fixed.trim_end_matches('0').to_owned() } else { fixed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_mean_and_standard_error_of_the_runs_that_have_the_figure() {
        let runs = [Figures::from([("auc", 1.0)]), Figures::new(), Figures::from([("auc", 3.0)])];
        let (mean, error) = summary("auc", &runs).expect("two runs have it");
        assert!((mean - 2.0).abs() < 1e-12 && (error - 1.0).abs() < 1e-12, "{mean} {error}");
        assert!(summary("accuracy", &runs).is_none());
    }

    #[test]
    fn figures_are_printed_with_the_digits_that_they_have() {
        let once = |value: f64| cell("rmse", &[Figures::from([("rmse", value)])]);
        assert_eq!([once(65_400.6), once(12.345), once(0.75), once(0.00123)], ["65401", "12.35", "0.7500", "0.00123"]);
        assert_eq!([shortened(10.0), shortened(0.05), shortened(0.5)], ["10", "0.05", "0.5"]);
    }
}
