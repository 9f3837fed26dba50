//! Results as text for a person and as JSON for a machine. Everything here is public.

use std::fmt::Write;
use std::path::Path;

use reticent_core::coding::Coding;
use reticent_core::ledger::{Account, affordable_epsilon_down, epsilon_of, six_decimals_down};
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::units::{Delta, MuSquared};
use reticent_curator::ledger_file::Entry;
use reticent_fit::certificate::Certificate;
use reticent_fit::evaluate::{Evaluation, Figure};
use reticent_fit::model::{Coefficient, Model, Task};
use reticent_fit::plan::Plan;
use serde_json::{Value, json};

/// Writing to a `String` does not fail.
macro_rules! line {
    ($text:expr, $($argument:tt)*) => {
        writeln!($text, $($argument)*).expect("a string grows")
    };
}

/// The claim's first lines, in every plan, certificate and report.
pub(crate) fn claim(certificate: &Certificate) -> String {
    let mut text = String::new();
    line!(
        text,
        "Privacy: epsilon {} at delta {:e} (mu {:.6})",
        certificate.epsilon,
        certificate.delta.get(),
        certificate.mu
    );
    if let Some(pure) = certificate.pure_epsilon {
        line!(
            text,
            "All noise is Laplace noise: epsilon {pure:.6} at delta 0, as one release; a ledger charges the mu above"
        );
    }
    line!(text, "Protects: {}", certificate.relation);
    line!(text, "Public:");
    for fact in &certificate.public {
        line!(text, "  - {fact}");
    }
    text
}

pub(crate) fn plan(plan: &Plan) -> String {
    let mut text = String::new();
    let claim = &plan.claim;
    line!(text, "Method: {}", plan.method);
    if let Some(reason) = &plan.reason {
        line!(text, "Chosen because {reason}");
    }
    line!(text, "Privacy: epsilon {} at delta {:e} (mu {:.6})", claim.epsilon, claim.delta.get(), claim.mu);
    if let Some(pure) = plan.pure_epsilon_up().filter(|pure| *pure > 0.0) {
        line!(
            text,
            "All noise is Laplace noise: epsilon {pure:.6} at delta 0. A ledger counts in mu, where that is worth more than the \
             mu above: see `mu of all`"
        );
    }
    line!(text, "Protects: {}", claim.relation);
    line!(text, "Public:");
    for fact in &plan.public {
        line!(text, "  - {fact}");
    }
    line!(
        text,
        "\n{:<24} {:>6} {:>12} {:>18} {:>12} {:>10}",
        "Question",
        "times",
        "coordinates",
        "noise [lattice]",
        "mu of one",
        "mu of all"
    );
    for release in &plan.releases {
        let all = release.price_up(&claim.relation).unwrap_or(MuSquared::ZERO);
        let one = all.mu_up() / f64::from(release.times).sqrt();
        line!(
            text,
            "{:<24} {:>6} {:>12} {:>18} {:>12.6} {:>10.6}",
            release.purpose,
            release.times,
            release.shape.coordinates(),
            release.noise_scale.get(),
            one,
            all.mu_up()
        );
    }
    if !plan.expectations.is_empty() {
        line!(text, "\nExpect:");
        for expectation in &plan.expectations {
            line!(text, "  {:<34} {:>12.5}   {}", expectation.name, expectation.value, expectation.meaning);
        }
    }
    text
}

/// The first lines about a model that protects nobody.
pub(crate) fn not_private(model: &Model) -> String {
    let mut text = String::new();
    line!(text, "NOT PRIVATE: fitted without protection, to rows declared public");
    if let Some(data) = &model.public_data {
        line!(text, "Public data: {} (sha256 {})", data.file, data.sha256);
    }
    text
}

pub(crate) fn model(model: &Model) -> String {
    let mut text = String::new();
    match &model.certificate {
        None => {
            text.push_str(&not_private(model));
            line!(text, "");
        }
        Some(certificate) => {
            text.push_str(&claim(certificate));
            line!(text, "\nMethod: {}, by {}", certificate.method, certificate.software);
            line!(text, "Schema: {}", certificate.schema);
            line!(text, "Ledger: {}, entry {}", certificate.ledger.id, certificate.ledger.entry);
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
                    release.planned.purpose,
                    release.planned.times,
                    release.sensitivity,
                    release.planned.noise_scale.get(),
                    release.mu_of_one
                );
            }
            line!(text, "");
        }
    }
    for output in &model.outputs {
        let classes = printable(&model.classes.join(" / "));
        match (model.task, output.class.as_deref().map(printable)) {
            (Task::BinaryClassification, Some(class)) => line!(text, "Log-odds of {class} (classes {classes}):"),
            (_, Some(class)) => line!(text, "Score of {class} (classes {classes}):"),
            (_, None) => line!(text, "{}:", model.schema.target().column),
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
        for (name, Coefficient { coefficient, standard_error, .. }) in names.iter().zip(&output.coefficients) {
            let interval = interval(*coefficient, *standard_error);
            line!(text, "  {name:<width$} {:>14}{interval}", number(*coefficient));
        }
    }
    text
}

/// Six decimals, or four digits and a power of ten where those would say little: a coefficient of a column in euros may be tiny.
fn number(value: f64) -> String {
    /// Below this fewer than four of six decimals say something.
    const SMALL: f64 = 0.001;
    if value.abs() >= SMALL || value.abs() <= 0.0 { format!("{value:.6}") } else { format!("{value:.3e}") }
}

/// Text of a file that somebody else may have written: control characters stay out of the terminal.
fn printable(text: &str) -> String {
    let shown = |character: char| {
        if character.is_control() { character.escape_default().to_string() } else { character.to_string() }
    };
    text.chars().map(shown).collect()
}

/// The 97.5 % quantile of the standard normal distribution.
const NORMAL_975: f64 = 1.959_963_984_540_054;

pub(crate) fn schema(schema: &Schema) -> String {
    let coding = Coding::of(schema);
    let columns = coding.columns().len();
    let norm = reticent_core::encoding::Encoding::largest_norm(&coding, &vec![0.0; columns], &vec![1.0; columns]);
    let mut text = String::new();
    line!(text, "The schema is complete.");
    line!(text, "Protects: {}", schema.relation());
    let target = match &schema.target().kind {
        TargetKind::Classes(classes) => {
            classes.iter().map(|class| printable(&class.name)).collect::<Vec<_>>().join(" / ")
        }
        TargetKind::Bounds { low, high } => format!("a number in [{low}, {high}]"),
    };
    line!(text, "Target: {} ({target})", schema.target().column);
    line!(
        text,
        "Features: {} ({columns} encoded columns with the intercept, row norm at most {norm:.4})",
        schema.features().len()
    );
    match schema.privacy().rows {
        Some(rows) => line!(text, "Rows: about {rows}, declared public"),
        None => line!(text, "Rows: not declared; a fit that needs their number buys it with some of its budget"),
    }
    line!(text, "Fingerprint: {}", schema.fingerprint());
    text
}

pub(crate) fn account(path: &Path, account: &Account, delta: Delta) -> String {
    let mut text = String::new();
    let delta = account.budget.map_or(delta, |budget| budget.delta);
    for (relation, spent) in &account.spent {
        let (mu, epsilon) = (spent.mu_up(), epsilon_of(*spent, delta));
        line!(
            text,
            "Ledger {}: this table has paid mu {mu:.6} (epsilon {epsilon:.6} at delta {:e}) in all, under {relation}",
            path.display(),
            delta.get()
        );
        match left(account, *spent) {
            Some((left, epsilon)) => {
                let epsilon = six_decimals_down(epsilon);
                line!(
                    text,
                    "  left: mu {:.6}; the largest request that fits is epsilon {epsilon:.6} at delta {:e}",
                    left.mu_up(),
                    delta.get()
                );
            }
            None => line!(text, "  no limit is set; the owner can set one with `reticent ledger init`"),
        }
    }
    if account.budget.is_some() && account.spent.len() > 1 {
        line!(text, "  a request has a price under each of these, and has to fit under all of them");
    }
    text
}

pub(crate) fn ledger(path: &Path, account: &Account, entries: &[Entry], delta: Option<Delta>) -> String {
    let mut text = String::new();
    match account.budget {
        Some(budget) => line!(
            text,
            "Budget: epsilon {} at delta {:e} (mu {:.6})",
            budget.epsilon,
            budget.delta.get(),
            budget.mu_squared_down().mu_up()
        ),
        None => line!(text, "Budget: no limit is set"),
    }
    match delta {
        Some(delta) => text.push_str(&self::account(path, account, delta)),
        None => {
            for (relation, spent) in &account.spent {
                line!(text, "Spent: mu {:.6} under {relation}; give --delta to see it as epsilon", spent.mu_up());
            }
        }
    }
    if entries.is_empty() {
        line!(text, "No entries.");
        return text;
    }
    let width = |heading: &str, of: fn(&Entry) -> &str| {
        entries.iter().map(|entry| of(entry).chars().count()).max().unwrap_or(0).max(heading.len())
    };
    let purposes = width("purpose", |entry| &entry.request.purpose);
    let data = width("data", |entry| &entry.request.data);
    line!(text, "\n{:>5}  {:<20}  {:<purposes$}  {:<data$}  mu", "entry", "time (UTC)", "purpose", "data");
    for entry in entries {
        let prices: Vec<String> =
            entry.charged.iter().map(|(relation, price)| format!("{:.6} {relation}", price.mu_up())).collect();
        let Entry { id, time, request, .. } = entry;
        line!(
            text,
            "{id:>5}  {time:<20}  {:<purposes$}  {:<data$}  {}",
            request.purpose,
            request.data,
            prices.join(", ")
        );
    }
    text
}

fn left(account: &Account, spent: MuSquared) -> Option<(MuSquared, f64)> {
    let budget = account.budget?;
    let left = budget.mu_squared_down().checked_sub(spent).unwrap_or(MuSquared::ZERO);
    Some((left, affordable_epsilon_down(left, budget.delta)))
}

pub(crate) fn account_json(path: &Path, account: &Account, delta: Option<Delta>) -> Value {
    let delta = account.budget.map(|budget| budget.delta).or(delta);
    let amount = |mu_squared: MuSquared| json!({ "mu": mu_squared.mu_up(), "epsilon": delta.map(|delta| epsilon_of(mu_squared, delta)) });
    let relations: Vec<Value> = account
        .spent
        .iter()
        .map(|(relation, spent)| {
            let left = left(account, *spent).map(|(left, epsilon)| json!({ "mu": left.mu_up(), "epsilon": epsilon }));
            json!({ "relation": relation.to_string(), "spent": amount(*spent), "left": left })
        })
        .collect();
    let budget = account.budget.map(
        |budget| json!({ "epsilon": budget.epsilon, "delta": budget.delta, "mu": budget.mu_squared_down().mu_up() }),
    );
    json!({ "path": path, "delta": delta, "budget": budget, "relations": relations })
}

pub(crate) fn entry_json(entry: &Entry, delta: Option<Delta>) -> Value {
    let charged: Vec<Value> = entry
        .charged
        .iter()
        .map(|(relation, price)| {
            let epsilon = delta.map(|delta| epsilon_of(*price, delta));
            json!({ "relation": relation.to_string(), "mu": price.mu_up(), "epsilon": epsilon })
        })
        .collect();
    json!({
        "entry": entry.id, "time": entry.time, "purpose": entry.request.purpose, "data": entry.request.data,
        "schema": entry.request.schema, "charged": charged,
    })
}

pub(crate) fn evaluation(evaluation: &Evaluation) -> String {
    let mut text = String::new();
    if let Some(n) = evaluation.n {
        line!(text, "Rows      {n:>10}");
    }
    let figures = [
        ("Accuracy", evaluation.accuracy, 0.0..=1.0),
        ("AUC", evaluation.auc, 0.0..=1.0),
        ("Log loss", evaluation.log_loss, 0.0..=f64::INFINITY),
        ("MSE", evaluation.mean_squared_error, 0.0..=f64::INFINITY),
        ("R²", evaluation.r_squared, f64::NEG_INFINITY..=1.0),
    ];
    for (name, figure, range) in figures {
        let Some(Figure { value, standard_error }) = figure else { continue };
        // A noisy figure at an end of its range was beyond it: as perfect as it looks it is not.
        let is_cut = value <= *range.start() || value >= *range.end();
        let note = if is_cut { "noise; cut at the end of its range" } else { "noise" };
        let error = standard_error.map_or_else(String::new, |error| format!("  ± {error:.4} ({note})"));
        line!(text, "{name:<9} {value:>10.4}{error}");
    }
    let Some(calibration) = &evaluation.calibration else { return text };
    if let Some(gap) = calibration.expected_error {
        line!(text, "\nCalibration (mean gap {gap:.4}):");
        line!(text, "  {:<13} {:>7} {:>10} {:>10}", "probability", "rows", "predicted", "observed");
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
    let figures = [
        ("accuracy", evaluation.accuracy),
        ("auc", evaluation.auc),
        ("log_loss", evaluation.log_loss),
        ("mean_squared_error", evaluation.mean_squared_error),
        ("r_squared", evaluation.r_squared),
    ];
    let errors =
        figures.into_iter().filter_map(|(name, figure)| Some((name.to_owned(), json!(figure?.standard_error?))));
    let errors: serde_json::Map<String, Value> = errors.collect();
    if !errors.is_empty() {
        document["standard_error"] = Value::Object(errors);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_keep_their_digits_and_control_characters_are_spelt_out() {
        assert_eq!(
            [0.0, 1.5, -0.001, -0.000_012_345_6].map(number),
            ["0.000000", "1.500000", "-0.001000", "-1.235e-5"]
        );
        assert_eq!(printable("a\u{1b}[2J\nß"), "a\\u{1b}[2J\\nß");
    }

    #[test]
    fn a_noisy_figure_at_the_end_of_its_range_says_so() {
        let figure = |value, standard_error| Some(Figure { value, standard_error });
        let bought =
            Evaluation { auc: figure(1.0, Some(0.3)), log_loss: figure(0.5, Some(0.2)), ..Evaluation::default() };
        assert_eq!(
            evaluation(&bought),
            "AUC           1.0000  ± 0.3000 (noise; cut at the end of its range)\nLog loss      0.5000  ± 0.2000 (noise)\n"
        );
        let exact = Evaluation { auc: figure(1.0, None), ..Evaluation::default() };
        assert_eq!(evaluation(&exact), "AUC           1.0000\n");
    }
}
