//! How often 95 % intervals of real tables hold the coefficients that all rows have without privacy.
//!
//! Half of the rows are fitted, and what a fit without privacy finds on all of them stands for the truth. Coefficients of numbers alone: those of categories
//! are known by their differences. Truth and fit share rows, so that where privacy costs little intervals that are right hold it nearly always.

use super::adult;
use super::bike;
use super::california;
use super::case::{Case, Figures, cases};
use super::fitted::{Fitted, INTERVAL};
use super::report;
use super::runner::Runner;
use super::table::{Table, Target, lines};
use crate::say;

/// Standard errors of an error that no interval excuses.
const FAR: f64 = 5.0;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let tables = [
        ("adult", adult::complete()?, Target::Class),
        ("bank", Table::example("bank")?, Target::Class),
        ("california", california::table(runner)?, Target::Number),
        ("bike", bike::table(runner)?, Target::Number),
    ];
    for (name, table, target) in tables {
        of_table(runner, name, &table, target)?;
    }
    let columns = [
        ("held", "held by 95 % intervals"),
        ("far", "beyond 5 standard errors"),
        ("intervals", "intervals"),
        ("processor_seconds", "processor seconds"),
    ];
    report::table(runner, &columns);
    Ok(())
}

fn of_table(runner: &mut Runner<'_>, name: &str, table: &Table, target: Target) -> Result<(), String> {
    let all_rows = lines(&table.rows);
    let path = table.write(runner, "training.csv", &all_rows)?;
    let (model, _) = runner.fit(&Case::open(name, "truth"), &table.schema, &path, all_rows.len())?;
    let truth = Fitted::read(&model)?;
    let half = all_rows.len() / 2;
    let delta = (half as f64).powi(-2);
    let epsilons = runner.epsilons(&[0.3, 1.0, 3.0]);
    let mut asked = cases(name, &["walr"], &["label".to_owned()], &epsilons, delta);
    if target == Target::Number {
        asked.extend(cases(name, &["gram"], &["add-remove".to_owned()], &epsilons, delta));
    }
    for seed in 0..runner.splits(10) {
        let mut order = all_rows.clone();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let path = table.write(runner, "training.csv", &order[..half])?;
        for case in &asked {
            let (model, seconds) = runner.fit(case, &table.schema, &path, half)?;
            let mut figures = held(&truth, &Fitted::read(&model)?);
            figures.insert("processor_seconds", seconds);
            runner.add(case, seed, figures)?;
        }
    }
    say(&format!("{name} done"));
    Ok(())
}

/// Shares of the coefficients of numbers that are within their intervals, and far beyond them.
fn held(truth: &Fitted, found: &Fitted) -> Figures {
    let (mut held, mut far, mut intervals) = (0.0, 0.0, 0.0);
    for (column, expected) in truth.columns.iter().zip(&truth.coefficients) {
        let place = found.columns.iter().position(|other| other == column);
        let error = place.and_then(|place| found.errors_off(place, *expected));
        if let (false, Some(error)) = (column.contains('='), error) {
            intervals += 1.0;
            held += f64::from(u8::from(error <= INTERVAL));
            far += f64::from(u8::from(error > FAR));
        }
    }
    Figures::from([("held", held / intervals), ("far", far / intervals), ("intervals", intervals)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of three numbers with errors of 1 one is held, one missed and one far off; a category and a number without an error do not count.
    #[test]
    fn coefficients_of_numbers_are_held_by_name() {
        let model = |coefficients: [(&str, f64, Option<f64>); 5]| {
            let listed = coefficients.map(|(column, coefficient, error)| {
                serde_json::json!({"column": column, "coefficient": coefficient, "standard_error": error})
            });
            Fitted::of(&serde_json::json!({"outputs": [{"intercept": 0.0, "coefficients": listed}]})).expect("a model")
        };
        let truth = ["a", "b", "c", "d", "k=x"].map(|column| (column, 10.0, None));
        let found = [
            ("c", 16.0, Some(1.0)),
            ("k=x", 99.0, Some(1.0)),
            ("a", 11.9, Some(1.0)),
            ("d", 10.0, None),
            ("b", 8.0, Some(1.0)),
        ];
        let figures = held(&model(truth), &model(found));
        let expected = Figures::from([("held", 1.0 / 3.0), ("far", 1.0 / 3.0), ("intervals", 3.0)]);
        assert_eq!(figures, expected);
    }
}
