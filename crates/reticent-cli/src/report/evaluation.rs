//! Figures of models as text and as JSON.

use std::fmt::Write;
use std::ops::RangeInclusive;

use reticent_fit::evaluate::{Evaluation, Figure};
use serde_json::{Value, json};

/// Figures of a model.
pub(crate) fn evaluation(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    if let Some(n) = evaluation.n {
        line!(text, "Rows      {n:>10}");
    }
    for (name, _, figure, range) in figures(evaluation) {
        let Some(Figure { value, standard_error }) = figure else { continue };
        let note = if is_cut(value, &range) { "noise; cut at the end of its range" } else { "noise" };
        if let (true, Some(error)) = (value.is_nan(), standard_error) {
            line!(
                text,
                "{name:<9} {:>10}  ± {error:.4} (noise; more rows or a larger epsilon would show it)",
                "hidden"
            );
            continue;
        }
        if !value.is_finite() {
            line!(text, "{name:<9} {:>10}  ({})", "undefined", undefined_where(name));
            continue;
        }
        let error = standard_error.map_or_else(String::new, |error| format!("  ± {error:.4} ({note})"));
        line!(text, "{name:<9} {value:>10.4}{error}");
    }
    let Some(calibration) = &evaluation.calibration else { return text };
    if let Some(gap) = calibration.expected_error {
        line!(text, "\nCalibration (mean gap {gap:.4}):");
        line!(text, "  {:<13} {:>7} {:>10} {:>10}", "probability", "share", "predicted", "observed");
        for bucket in &calibration.buckets {
            let range = format!("{:.3}..{:.3}", bucket.low, bucket.high);
            line!(
                text,
                "  {range:<13} {:>6.1}% {:>10.4} {:>10.4}",
                bucket.share * 100.0,
                bucket.predicted,
                bucket.observed
            );
        }
    }
    text
}

/// Name in a report, in a document, the figure and where it can lie.
fn figures(evaluation: &Evaluation) -> [(&'static str, &'static str, Option<Figure>, RangeInclusive<f64>); 5] {
    let Evaluation { accuracy, auc, log_loss, mean_squared_error, r_squared, .. } = *evaluation;
    [
        ("Accuracy", "accuracy", accuracy, 0.0..=1.0),
        ("AUC", "auc", auc, 0.0..=1.0),
        ("Log loss", "log_loss", log_loss, 0.0..=f64::INFINITY),
        ("MSE", "mean_squared_error", mean_squared_error, 0.0..=f64::INFINITY),
        ("R²", "r_squared", r_squared, f64::NEG_INFINITY..=1.0),
    ]
}

/// Of which rows an exact figure is not defined.
fn undefined_where(name: &str) -> &'static str {
    match name {
        "R²" => "the target does not vary in these rows",
        "AUC" => "these rows have one class only",
        _ => "it is not a number for these rows",
    }
}

/// A noisy figure at an end of its range was beyond it: as perfect as it looks it is not.
fn is_cut(value: f64, range: &RangeInclusive<f64>) -> bool {
    value <= *range.start() || value >= *range.end()
}

/// Models side by side.
pub(crate) fn comparison(models: &[(&str, &Evaluation)]) -> String {
    let mut text = String::new();
    line!(text, "{:<14} {:>9} {:>9} {:>9}", "", "accuracy", "AUC", "log loss");
    for (name, figures) in models {
        let value = |figure: Option<Figure>| figure.map_or(f64::NAN, |figure| figure.value);
        let Evaluation { accuracy, auc, log_loss, .. } = figures;
        line!(text, "{name:<14} {:>8.2}% {:>9.4} {:>9.4}", value(*accuracy) * 100.0, value(*auc), value(*log_loss));
    }
    text
}

pub(crate) fn evaluation_json(evaluation: &Evaluation) -> Value {
    let mut document = serde_json::to_value(evaluation).expect("figures are numbers or null");
    let (mut errors, mut cut) = (serde_json::Map::new(), Vec::new());
    for (_, name, figure, range) in figures(evaluation) {
        let Some(Figure { value, standard_error: Some(error) }) = figure else { continue };
        // Of a figure that is not defined there is no error: both are null.
        errors.insert(name.to_owned(), json!(value.is_finite().then_some(error)));
        if is_cut(value, &range) {
            cut.push(name);
        }
    }
    if !errors.is_empty() {
        document["standard_error"] = Value::Object(errors);
        document["cut"] = json!(cut);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noisy_figure_at_the_end_of_its_range_says_so() {
        let figure = |value, standard_error| Some(Figure { value, standard_error });
        let bought =
            Evaluation { auc: figure(1.0, Some(0.3)), log_loss: figure(0.5, Some(0.2)), ..Evaluation::default() };
        assert_eq!(
            evaluation(&bought),
            "AUC           1.0000  ± 0.3000 (noise; cut at the end of its range)\nLog loss      0.5000  ± 0.2000 (noise)\n"
        );
        let document = evaluation_json(&bought);
        assert_eq!(document["cut"], json!(["auc"]));
        assert_eq!(document["standard_error"], json!({ "auc": 0.3, "log_loss": 0.2 }));
        let nothing = Evaluation { r_squared: figure(f64::NAN, Some(3e19)), ..Evaluation::default() };
        assert_eq!(evaluation_json(&nothing)["standard_error"], json!({ "r_squared": null }));
        let exact = Evaluation { auc: figure(1.0, None), ..Evaluation::default() };
        assert!(evaluation_json(&exact).get("cut").is_none());
        assert_eq!(evaluation(&exact), "AUC           1.0000\n");
    }
    #[test]
    fn an_undefined_figure_says_why() {
        let undefined = Some(Figure { value: f64::NAN, standard_error: None });
        let found = Evaluation { auc: undefined, r_squared: undefined, ..Evaluation::default() };
        assert_eq!(
            evaluation(&found),
            "AUC        undefined  (these rows have one class only)\nR²         undefined  (the target does not vary in these rows)\n"
        );
        assert_eq!(evaluation_json(&found), json!({ "n": null, "auc": null, "r_squared": null }));
    }
}
