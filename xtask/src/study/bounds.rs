//! Bounds that are wider than they need be, to both sides: UCI Bank Marketing for classes, California housing and
//! bike sharing for a number.

use super::case::cases;
use super::report;
use super::runner::Runner;
use super::table::{Table, Target};
use super::{bike, california};

/// How many times as wide as in the example's schema.
const TIMES: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];

pub(super) fn classes(runner: &mut Runner<'_>) -> Result<(), String> {
    under_bounds(runner, "bank", &Table::example("bank")?, Target::Class, &["noisy-gd"], &[])?;
    report::table(runner, report::CLASSES);
    Ok(())
}

pub(super) fn numbers(runner: &mut Runner<'_>) -> Result<(), String> {
    let methods = ["noisy-gd", "gram"];
    under_bounds(runner, "california", &california::table(runner)?, Target::Number, &methods, &["walr"])?;
    under_bounds(runner, "bike", &bike::table(runner)?, Target::Number, &methods, &["walr"])?;
    report::table(runner, report::NUMBERS);
    Ok(())
}

/// Methods under the adjacency of the study or the one that was asked for, and those that protect labels alone.
fn under_bounds(
    runner: &mut Runner<'_>,
    name: &str,
    table: &Table,
    target: Target,
    methods: &[&str],
    of_labels: &[&str],
) -> Result<(), String> {
    let (adjacencies, epsilons) = (runner.adjacencies(&["add-remove"]), runner.epsilons(&[0.1, 1.0]));
    for seed in 0..runner.splits(10) {
        let split = table.split(runner, seed, target)?;
        for times in TIMES {
            let name = format!("{name}, bounds {times} times as wide");
            let mut all = cases(&name, methods, &adjacencies, &epsilons, table.delta());
            all.extend(cases(&name, of_labels, &["label".to_owned()], &epsilons, table.delta()));
            runner.compare(&all, &widened(&table.schema, times)?, &split, seed)?;
        }
    }
    Ok(())
}

/// The schema with all bounds so many times as wide, around the same middles.
fn widened(schema: &str, times: f64) -> Result<String, String> {
    let (mut text, mut rest) = (String::new(), schema);
    while let Some((before, after)) = rest.split_once("bounds = [") {
        let (ends, behind) = after.split_once(']').ok_or("bounds without an end")?;
        let ends: Result<Vec<f64>, _> = ends.split(',').map(|end| end.trim().parse()).collect();
        let [low, high] = ends.map_err(|error| format!("bounds: {error}"))?[..] else {
            return Err("bounds that are not two numbers".to_owned());
        };
        let more = (times - 1.0) / 2.0 * (high - low);
        text.push_str(&format!("{before}bounds = [{}, {}]", low - more, high + more));
        rest = behind;
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::widened;

    #[test]
    fn bounds_are_widened_and_nothing_else() {
        let schema = "a = { bounds = [0, 10] }\nk = { categories = [\"x\"] }\nb = { bounds = [-1, 1], log = false }\n";
        let expected =
            "a = { bounds = [-10, 20] }\nk = { categories = [\"x\"] }\nb = { bounds = [-3, 3], log = false }\n";
        assert_eq!(widened(schema, 3.0).as_deref(), Ok(expected));
        assert!(widened("a = { bounds = [0, x] }", 3.0).is_err());
    }
}
