//! Criteo attribution: one organisation has the impressions, another the clicks, and they exchange files.

use super::case::{Case, Figures, NON_PRIVATE};
use super::report;
use super::runner::{Runner, Stopwatch, text};
use super::table::{Table, Target, lines};

const DELTA: f64 = 1e-7;
const LABELS: &str = "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"click\"\nclasses = [\"0\", \
                      \"1\"]\n[features]\n";

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    let (header, training) = read(runner, "train")?;
    let (_, valid) = read(runner, "valid")?;
    let features = schema(&header, &training);
    let table = Table { header, rows: Vec::new(), schema: features.replace("label\"", "add-remove\"") };
    let split = table.save(runner, &lines(&training), &lines(&valid), Target::Class)?;
    let base = split.base_rate.clone().unwrap_or_default();
    // The yardstick of the source: the entropy of the mean label of the rows that are measured.
    let share = valid.iter().filter(|line| line.ends_with(",1")).count() as f64 / valid.len() as f64;
    let entropy = -share * share.ln() - (1.0 - share) * (1.0 - share).ln();
    let with_gain = |mut figures: Figures| {
        let loss = figures["log_loss"];
        figures.insert("gain", 1.0 - loss / entropy);
        figures
    };
    runner.add(&Case::open("criteo", "base rate"), 0, with_gain(base))?;
    let open = Case::open("criteo", NON_PRIVATE);
    let (model, seconds) = runner.fit(&open, &table.schema, &split.training, split.rows)?;
    let mut figures = with_gain(runner.evaluate(&model, &split.test)?);
    figures.insert("processor_seconds", seconds);
    runner.add(&open, 0, figures)?;

    let (features_path, labels_path) = two_files(runner, &table.header, &training)?;
    let features_schema = text(&runner.write("features.toml", &features)?);
    let labels_schema = text(&runner.write("labels.toml", LABELS)?);
    for epsilon in runner.epsilons(&[0.5, 1.0, 2.0]) {
        for seed in 0..runner.splits(2) {
            let started = Stopwatch::start();
            let parts = [&features_path, &features_schema, &labels_path, &labels_schema];
            let model = between_two(runner, parts, epsilon, &format!("{epsilon}-{seed}"))?;
            let seconds = started.seconds();
            let mut figures = with_gain(runner.evaluate(model.as_ref(), &split.test)?);
            figures.insert("processor_seconds", seconds);
            let case = Case::private("criteo", "walr prepare, measure, fit", "label", epsilon, DELTA);
            runner.add(&case, seed, figures)?;
        }
    }
    let columns =
        [("gain", "NLLH"), ("log_loss", "log loss"), ("auc", "AUC"), ("processor_seconds", "processor seconds")];
    report::table(runner, &columns);
    Ok(())
}

/// Weights go out, a noisy answer comes back, a model is fitted: its place.
fn between_two(
    runner: &Runner<'_>,
    [features, features_schema, labels, labels_schema]: [&String; 4],
    epsilon: f64,
    run: &str,
) -> Result<String, String> {
    let place = |name: &str| text(&runner.path(&format!("{name}-{run}")));
    let (weights, release, ledger, model) = (place("weights"), place("release"), place("ledger"), place("model"));
    let (epsilon, delta) = (epsilon.to_string(), DELTA.to_string());
    let of_features = ["--data", features, "--schema", features_schema, "--id", "event", "--json"];
    let of_labels = ["--labels", labels, "--schema", labels_schema, "--id", "event", "--json"];
    let budget = ["--epsilon", epsilon.as_str(), "--delta", delta.as_str()];
    runner.reticent(&[&["walr", "prepare", "--out", &weights][..], &of_features, &budget].concat())?;
    runner.run(&[&["ledger", "init", &ledger, "--promise", "row:label"][..], &budget].concat())?;
    let measure = ["walr", "measure", "--weights", &weights, "--ledger", &ledger, "--out", &release];
    runner.reticent(&[&measure[..], &of_labels, &budget].concat())?;
    let fit = ["walr", "fit", "--weights", &weights, "--release", &release, "--out", &model];
    runner.reticent(&[&fit[..], &of_features].concat())?;
    Ok(model)
}

fn read(runner: &Runner<'_>, part: &str) -> Result<(String, Vec<String>), String> {
    let text = runner.data.text(&format!("criteo_attribution_small/{part}.csv.xz"))?;
    let mut lines = text.lines().map(str::to_owned);
    Ok((lines.next().ok_or("the table is empty")?, lines.collect()))
}

/// Categories are those of the training rows: features are public here.
fn schema(header: &str, training: &[String]) -> String {
    let names: Vec<&str> = header.split(',').collect();
    let mut categories = vec![std::collections::BTreeSet::new(); names.len()];
    for line in training {
        line.split(',').zip(&mut categories).for_each(|(value, known)| {
            known.insert(value);
        });
    }
    let mut schema = LABELS.to_owned();
    for (name, values) in names.iter().zip(categories).take(names.len() - 1) {
        let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
        schema.push_str(&format!("{name} = {{ categories = [{}] }}\n", quoted.join(", ")));
    }
    schema
}

/// Each row gets an event id; features go to one file, the label to another.
fn two_files(runner: &Runner<'_>, header: &str, rows: &[String]) -> Result<(String, String), String> {
    let (mut features, mut labels) = (String::new(), String::new());
    let lines = std::iter::once(("event".to_owned(), header));
    let lines = lines.chain(rows.iter().enumerate().map(|(number, row)| (format!("e{number}"), row.as_str())));
    for (event, line) in lines {
        let (of_features, label) = line.rsplit_once(',').ok_or("a row has columns")?;
        features.push_str(&format!("{event},{of_features}\n"));
        labels.push_str(&format!("{event},{label}\n"));
    }
    Ok((text(&runner.write("features.csv", &features)?), text(&runner.write("labels.csv", &labels)?)))
}
