//! `cargo xtask study`: accuracy on real data over random splits, by the commands that a user runs.
//!
//! Each split shuffles the rows with a fixed seed, fits 80 % with `reticent fit` and measures the rest with
//! `reticent evaluate --public`; the noise is fresh each time. Beside it: the same columns without privacy.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};
use reticent_core::schema::Schema;
use reticent_curator::public_table::PublicTable;
use reticent_curator::source::{Need, TableSource};
use reticent_fit::evaluate::{Figure, public};
use reticent_fit::public_fit;
use serde_json::{Value, json};

use crate::{root, say};

#[derive(Args)]
pub(crate) struct StudyArguments {
    /// Table that comes with the repository
    #[arg(value_enum)]
    table: Table,
    /// Values of epsilon; delta is 1 / (training rows)²
    #[arg(long, value_delimiter = ',', default_value = "0.1,1")]
    epsilon: Vec<f64>,
    /// Random 80/20 splits
    #[arg(long, default_value_t = 10)]
    splits: u64,
    /// Adjacency
    #[arg(long, default_value = "add-remove")]
    adjacency: String,
    /// Declare the number of training rows in the schema instead of buying it
    #[arg(long)]
    declare_rows: bool,
    /// Write figures (JSON) and a plot (SVG) here
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// UCI Adult, the 45,222 rows without a missing value (the protocol of Iyengar et al. 2019)
    Adult,
    /// UCI Bank Marketing, all rows
    Bank,
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Self::Adult => "adult",
            Self::Bank => "bank",
        }
    }
}

/// Accuracy, AUC and log loss of one fit.
type Figures = [f64; 3];

pub(crate) fn run(arguments: &StudyArguments) -> Result<(), String> {
    let program = build()?;
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let lines = read_lines(arguments.table)?;
    let schema_text = schema_text(arguments, lines.len() - 1)?;
    let schema = Schema::from_text(&schema_text).map_err(|problems| problems.to_string())?;
    let schema_path = folder.path().join("schema.toml");
    write(&schema_path, &schema_text)?;

    let mut private = vec![Vec::new(); arguments.epsilon.len()];
    let mut open = Vec::new();
    let mut seconds = Vec::new();
    for seed in 0..arguments.splits {
        let (training, test, rows) = write_split(&lines, seed, folder.path())?;
        open.push(fit_without_privacy(&schema, &training, &test)?);
        for (epsilon, figures) in arguments.epsilon.iter().zip(&mut private) {
            let delta = (rows as f64).powi(-2);
            let model = folder.path().join("model.json");
            let started = std::time::Instant::now();
            reticent(
                &program,
                &[
                    "fit",
                    "--json",
                    "--data",
                    &text(&training),
                    "--schema",
                    &text(&schema_path),
                    "--epsilon",
                    &epsilon.to_string(),
                    "--delta",
                    &delta.to_string(),
                    "--out",
                    &text(&model),
                ],
            )?;
            seconds.push(started.elapsed().as_secs_f64());
            let evaluation = reticent(
                &program,
                &["evaluate", "--json", "--public", "--model", &text(&model), "--data", &text(&test)],
            )?;
            figures.push(["accuracy", "auc", "log_loss"].map(|name| evaluation[name].as_f64().unwrap_or(f64::NAN)));
        }
        say(&format!("split {} of {}", seed + 1, arguments.splits));
    }
    report(arguments, &private, &open, &mut seconds)
}

fn build() -> Result<PathBuf, String> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--package", "reticent-cli"])
        .current_dir(root())
        .status()
        .map_err(|error| error.to_string())?;
    let program = root().join("target/release/reticent");
    if status.success() && program.exists() { Ok(program) } else { Err("the release build failed".to_owned()) }
}

/// Header and rows of a table that comes with the repository.
fn read_lines(table: Table) -> Result<Vec<String>, String> {
    let path = root().join(format!("examples/{0}/{0}.csv.xz", table.name()));
    let file = std::fs::File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut all = String::new();
    std::io::Read::read_to_string(&mut liblzma::read::XzDecoder::new(file), &mut all)
        .map_err(|error| error.to_string())?;
    let complete = |line: &&str| table != Table::Adult || !line.split(',').any(|field| field == "?");
    Ok(all.lines().filter(complete).map(str::to_owned).collect())
}

fn schema_text(arguments: &StudyArguments, rows: usize) -> Result<String, String> {
    let path = root().join(format!("examples/{0}/{0}.toml", arguments.table.name()));
    let shipped = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut adjacency = format!("adjacency = \"{}\"", arguments.adjacency);
    if arguments.declare_rows {
        adjacency.push_str(&format!("\nrows = {}", rows * 4 / 5));
    }
    Ok(shipped.replacen("adjacency = \"add-remove\"", &adjacency, 1))
}

fn write_split(lines: &[String], seed: u64, folder: &Path) -> Result<(PathBuf, PathBuf, usize), String> {
    let (header, rows) = lines.split_first().ok_or("the table is empty")?;
    let mut order: Vec<&String> = rows.iter().collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    let (training, test) = order.split_at(rows.len() * 4 / 5);
    let save = |name: String, rows: &[&String]| {
        let path = folder.join(name);
        let body: String =
            std::iter::once(header).chain(rows.iter().copied()).map(|line| format!("{line}\n")).collect();
        write(&path, &body).map(|()| path)
    };
    Ok((save(format!("train-{seed}.csv"), training)?, save("test.csv".to_owned(), test)?, training.len()))
}

fn fit_without_privacy(schema: &Schema, training: &Path, test: &Path) -> Result<Figures, String> {
    let read = |path| {
        let source = TableSource::open(path, schema, Need::FeaturesAndTarget).map_err(|error| error.to_string())?;
        PublicTable::read(source, schema, &mut |_| {}).map_err(|error| error.to_string())
    };
    let training = read(training)?;
    let model = public_fit::fit(schema, training.labelled()).map_err(|error| error.to_string())?;
    let test = read(test)?;
    let evaluation = public::evaluate(&model, test.labelled());
    let value = |figure: Option<Figure>| figure.map_or(f64::NAN, |figure| figure.value);
    Ok([evaluation.accuracy, evaluation.auc, evaluation.log_loss].map(value))
}

fn reticent(program: &Path, arguments: &[&str]) -> Result<Value, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("reticent {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

fn report(
    arguments: &StudyArguments,
    private: &[Vec<Figures>],
    open: &[Figures],
    seconds: &mut [f64],
) -> Result<(), String> {
    let mut rows = vec![("non-private".to_owned(), summary(open))];
    for (epsilon, figures) in arguments.epsilon.iter().zip(private) {
        rows.push((format!("epsilon {epsilon}"), summary(figures)));
    }
    say(&format!("\n{} over {} splits, {}", arguments.table.name(), arguments.splits, arguments.adjacency));
    say(&format!("{:<14} {:>16} {:>16} {:>16}", "", "accuracy", "AUC", "log loss"));
    for (name, figures) in &rows {
        let cells: Vec<String> = figures.iter().map(|(mean, error)| format!("{mean:.4} ± {error:.4}")).collect();
        say(&format!("{name:<14} {:>16} {:>16} {:>16}", cells[0], cells[1], cells[2]));
    }
    seconds.sort_by(f64::total_cmp);
    say(&format!("seconds a fit, median: {:.2}", seconds[seconds.len() / 2]));
    let Some(folder) = &arguments.record else { return Ok(()) };
    let listed: Vec<Value> = rows
        .iter()
        .map(|(name, [accuracy, auc, log_loss])| {
            json!({ "model": name, "accuracy": accuracy, "auc": auc, "log_loss": log_loss })
        })
        .collect();
    let document = json!({
        "table": arguments.table.name(), "splits": arguments.splits, "adjacency": arguments.adjacency,
        "rows_declared": arguments.declare_rows, "delta": "1 / training rows squared", "figures": "mean, standard error",
        "rows": listed,
    });
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let stem = format!("{}-{}", arguments.table.name(), arguments.adjacency);
    write(&folder.join(format!("{stem}.json")), &format!("{document:#}\n"))?;
    plot(&folder.join(format!("{stem}.svg")), arguments, private, open)
}

/// Mean and standard error of each figure.
fn summary(figures: &[Figures]) -> [(f64, f64); 3] {
    std::array::from_fn(|figure| {
        let count = figures.len() as f64;
        let mean = figures.iter().map(|one| one[figure]).sum::<f64>() / count;
        let variance = figures.iter().map(|one| (one[figure] - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        (mean, (variance / count).sqrt())
    })
}

/// Accuracy against epsilon on a logarithmic axis, with the non-private line.
fn plot(path: &Path, arguments: &StudyArguments, private: &[Vec<Figures>], open: &[Figures]) -> Result<(), String> {
    use plotters::prelude::*;
    let points: Vec<(f64, f64, f64)> = arguments
        .epsilon
        .iter()
        .zip(private)
        .map(|(epsilon, figures)| {
            let (mean, error) = summary(figures)[0];
            (epsilon.log10(), 100.0 * mean, 100.0 * error)
        })
        .collect();
    let ceiling = 100.0 * summary(open)[0].0;
    let lowest = points.iter().map(|(_, accuracy, error)| accuracy - error).fold(ceiling, f64::min);
    let (left, right) =
        points.iter().fold((f64::MAX, f64::MIN), |(left, right), (x, _, _)| (left.min(*x), right.max(*x)));
    let draw = || -> Result<(), Box<dyn std::error::Error>> {
        let area = SVGBackend::new(path, (720, 400)).into_drawing_area();
        area.fill(&WHITE)?;
        let title = format!("{}, {}: test accuracy [%]", arguments.table.name(), arguments.adjacency);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(52)
            .build_cartesian_2d(left - 0.1..right + 0.1, lowest - 0.5..ceiling + 0.5)?;
        chart
            .configure_mesh()
            .x_desc("epsilon")
            .x_label_formatter(&|x| format!("{:.3}", 10f64.powf(*x)))
            .y_label_formatter(&|y| format!("{y:.1}"))
            .light_line_style(WHITE)
            .draw()?;
        let ceiling_line = [(left - 0.1, ceiling), (right + 0.1, ceiling)];
        chart
            .draw_series(LineSeries::new(ceiling_line, BLACK.stroke_width(1)))?
            .label("non-private")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], BLACK));
        let blue = RGBColor(31, 97, 171);
        chart
            .draw_series(LineSeries::new(points.iter().map(|(x, y, _)| (*x, *y)), blue.stroke_width(2)))?
            .label("reticent")
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], blue));
        chart.draw_series(points.iter().map(|(x, y, _)| Circle::new((*x, *y), 4, blue.filled())))?;
        let bars = points.iter().map(|(x, y, error)| PathElement::new([(*x, y - error), (*x, y + error)], blue));
        chart.draw_series(bars)?;
        chart.configure_series_labels().position(SeriesLabelPosition::LowerRight).border_style(BLACK).draw()?;
        area.present()?;
        Ok(())
    };
    draw().map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, body: &str) -> Result<(), String> {
    std::fs::write(path, body).map_err(|error| format!("{}: {error}", path.display()))
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
