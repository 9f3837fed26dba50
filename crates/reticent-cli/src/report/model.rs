//! A model and its certificate as text.

use std::fmt::Write;

use reticent_core::ledger::six_decimals_up;
use reticent_fit::model::{Coefficient, FromAverage, Model, Output, Task};

use super::{Claim, printable};

/// The first lines about a model that protects nobody.
pub(crate) fn not_private(model: &Model) -> String {
    let mut text = String::new();
    line!(text, "NOT PRIVATE: fitted without protection, to rows declared public");
    if let Some(data) = &model.public_data {
        line!(text, "Public data: {} (sha256 {})", printable(&data.file), printable(&data.sha256));
    }
    text
}

/// What released figures say against a model, where they do.
pub(crate) fn remark(model: &Model) -> String {
    model.remark.as_ref().map_or_else(String::new, |remark| format!("Remark: {}\n", printable(remark)))
}

/// What a model says, and what it reveals.
pub(crate) fn model(model: &Model) -> String {
    let mut text = String::new();
    match &model.certificate {
        None => {
            text.push_str(&not_private(model));
            line!(text, "");
        }
        Some(certificate) => {
            text.push_str(&Claim::of_certificate(certificate, model.schema.privacy().rows).text());
            line!(text, "\nMethod: {}, by {}", printable(&certificate.method), printable(&certificate.software));
            line!(text, "Schema: {}", printable(&certificate.schema));
            line!(text, "Ledger: {}, entry {}", printable(&certificate.ledger.id), certificate.ledger.entry);
            line!(
                text,
                "\n{:<24} {:>6} {:>18} {:>18} {:>12}",
                "Question",
                "times",
                "sensitivity",
                "noise",
                "mu of one"
            );
            for release in &certificate.releases {
                line!(
                    text,
                    "{:<24} {:>6} {:>18.1} {:>18} {:>12.6}",
                    printable(&release.planned.purpose),
                    release.planned.times,
                    release.sensitivity,
                    release.planned.noise_scale.get(),
                    six_decimals_up(release.mu_of_one)
                );
            }
            line!(text, "");
        }
    }
    if model.remark.is_some() {
        line!(text, "{}", remark(model));
    }
    for output in &model.outputs {
        let classes = printable(&model.classes.join(" / "));
        match (model.task, output.class.as_deref().map(printable)) {
            (Task::BinaryClassification, Some(class)) => line!(text, "Log-odds of {class} (classes {classes}):"),
            (_, Some(class)) => line!(text, "Score of {class} (classes {classes}):"),
            (_, None) => line!(text, "{}:", printable(&model.schema.target().column)),
        }
        let names: Vec<String> = output.coefficients.iter().map(|one| printable(&one.column)).collect();
        let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0).clamp(11, 48);
        let interval = |value: f64, error: Option<f64>| {
            error.map_or_else(String::new, |error| {
                let [low, high] = [value - NORMAL_975 * error, value + NORMAL_975 * error].map(number);
                format!("  95 % interval {low:>14} to {high:>14}")
            })
        };
        let of_intercept = interval(output.intercept, output.standard_error);
        line!(text, "  {:<width$} {:>14}{of_intercept}", "(intercept)", number(output.intercept));
        for (name, one) in names.iter().zip(&output.coefficients) {
            let Coefficient { coefficient, standard_error, from_average, range, .. } = one;
            let interval = match from_average {
                Some(FromAverage { difference, standard_error }) => {
                    format!(
                        "  from average {:>14}{}",
                        number(*difference),
                        interval(*difference, Some(*standard_error))
                    )
                }
                None => interval(*coefficient, *standard_error),
            };
            let range = range.map_or_else(String::new, |range| {
                let [low, high] = range.map(|end| rounded(end, range[1] - range[0]));
                format!("  within {low} to {high}")
            });
            line!(text, "  {name:<width$} {:>14}{interval}{range}", number(*coefficient));
        }
    }
    if has_intervals_of_categories(model) {
        text.push_str(DIFFERENCES);
    }
    text
}

/// Whether a category is shown beside the average of its feature.
fn has_intervals_of_categories(model: &Model) -> bool {
    let is_known = |output: &Output| output.coefficients.iter().any(|one| one.from_average.is_some());
    model.outputs.iter().any(is_known)
}

const DIFFERENCES: &str = "Categories of a feature are known by their differences: what is added to all of them can be taken from the \
                           intercept. So the interval of a category is that of its difference from the average of its feature, whose \
                           categories are weighted by how frequent the method took them to be.\n";

/// Six decimals, or four digits and a power of ten where those would say little: a coefficient of a column in euros may be tiny.
fn number(value: f64) -> String {
    /// Below this fewer than four of six decimals say something.
    const SMALL: f64 = 0.001;
    if value.abs() >= SMALL || value.abs() <= 0.0 { format!("{value:.6}") } else { format!("{value:.3e}") }
}

/// An end of a range, rounded to four digits, or to as many as it takes to be off by a thousandth of the range at most: of times in
/// seconds those that differ come last.
fn rounded(end: f64, width: f64) -> f64 {
    const OFF_MAX: f64 = 1e-3;
    /// With so many behind the point of the first, every number is itself.
    const ALL: usize = 16;
    let to_digits = |behind: usize| format!("{end:.behind$e}").parse().expect("a number as it was written");
    (3..ALL).map(to_digits).find(|shown: &f64| (shown - end).abs() <= OFF_MAX * width).unwrap_or(end)
}

/// The 97.5 % quantile of the standard normal distribution.
const NORMAL_975: f64 = 1.959_963_984_540_054;

#[cfg(test)]
mod tests {
    use super::{number, rounded};

    #[test]
    fn small_numbers_keep_their_digits() {
        assert_eq!(
            [0.0, 1.5, -0.001, -0.000_012_345_6].map(number),
            ["0.000000", "1.500000", "-0.001000", "-1.235e-5"]
        );
    }
    #[test]
    fn ends_of_a_range_stay_apart() {
        let shown = |ends: [f64; 2]| ends.map(|end| rounded(end, ends[1] - ends[0]).to_string());
        assert_eq!(shown([0.123_456, 98.765_4]), ["0.1235", "98.77"]);
        assert_eq!(shown([1_609_459_200.0, 1_609_545_600.0]), ["1609459200", "1609545600"]);
        assert_eq!(shown([1_609_459_234.0, 1_641_081_634.0]), ["1609460000", "1641100000"]);
        assert_eq!(shown([1_000_000.0, 1_000_001.0]), ["1000000", "1000001"]);
        assert_eq!(shown([-0.000_012_345_6, 5000.4]), ["-0.00001235", "5000"]);
        assert_eq!(shown([7.123_456_789, 7.123_456_789]), ["7.123456789", "7.123456789"]);
    }
}
