//! Every method for two classes on Adult, as it is and as its source has it.

use super::adult;
use super::case::cases;
use super::report;
use super::runner::Runner;
use super::table::Target;

/// Features and labels private.
const PRIVATE_ROWS: [&str; 8] = [
    "noisy-gd",
    "noisy-gd-lecture",
    "noisy-gd-slides",
    "objective-perturbation",
    "output-perturbation",
    "functional",
    "functional --noise gaussian",
    "functional --repair regularise",
];

/// Labels alone private.
const PRIVATE_LABELS: [&str; 4] = ["walr", "walr --solver full-batch", "walr --solver hybrid-minibatch", "noisy-gd"];

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let table = adult::complete()?;
    let (adjacencies, epsilons) = (runner.adjacencies(&["add-remove", "replace", "label"]), runner.epsilons(&[1.0]));
    let mut all = Vec::new();
    for adjacency in adjacencies {
        let methods: &[&str] = if adjacency == "label" { &PRIVATE_LABELS } else { &PRIVATE_ROWS };
        all.extend(cases(adult::TITLE, methods, &[adjacency], &epsilons, table.delta()));
    }
    for seed in 0..runner.splits(3) {
        let split = table.split(runner, seed, Target::Class)?;
        runner.compare(&all, &table.schema, &split, seed)?;
    }
    report::table(runner, report::CLASSES);
    Ok(())
}
