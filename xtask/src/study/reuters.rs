//! Reuters-21578: 11,842 words, a document listing a few dozen; earnings or not, and eight topics, on the official test documents.

use super::case::cases;
use super::report;
use super::runner::Runner;
use super::table::{Table, Target, lines};

const WORDS: usize = 11_842;

/// Name of the files, and the classes as the schema writes them.
const TASKS: [(&str, &str); 2] = [("earn", "-1, 1"), ("r8", "0, 1, 2, 3, 4, 5, 6, 7")];

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let (adjacencies, epsilons) = (runner.adjacencies(&["add-remove"]), runner.epsilons(&[0.1, 1.0]));
    for (task, classes) in TASKS {
        let training = read(runner, task, "train")?;
        let test = read(runner, task, "test")?;
        let schema = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[table]\nformat = \"libsvm\"\n[target]\ncolumn = \"topic\"\n\
             classes = [{classes}]\n[features]\n\"1..{WORDS}\" = {{ bounds = [0, 1] }}\n"
        );
        let table = Table { header: String::new(), rows: Vec::new(), schema };
        let split = table.save(runner, &lines(&training), &lines(&test), Target::FirstWord)?;
        let delta = (training.len() as f64).powi(-2);
        let all = cases(&format!("reuters {task}"), &["noisy-gd"], &adjacencies, &epsilons, delta);
        for seed in 0..runner.splits(3) {
            runner.compare(&all, &table.schema, &split, seed)?;
        }
    }
    report::table(runner, report::CLASSES);
    Ok(())
}

fn read(runner: &Runner<'_>, task: &str, part: &str) -> Result<Vec<String>, String> {
    let text = runner.data.text(&format!("reuters21578/{task}_{part}.libsvm.xz"))?;
    Ok(text.lines().map(str::to_owned).collect())
}
