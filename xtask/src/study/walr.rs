//! Label-private logistic regression on generated families: excess log loss of the default and of the published
//! solver, and how often the default's 95 % intervals hold the truth.
//!
//! 10,000 rows, 20 columns, epsilon 0.5, delta 1e-6. The published solver runs twice: with our exact noise, and at the
//! epsilon at which our accounting gives the noise of the published formulas.

use fastrand::Rng;
use reticent_core::account::gdp;
use reticent_core::units::{Delta, Mu};

use super::case::{Case, Figures};
use super::fitted::{Fitted, INTERVAL, excess_loss};
use super::normal::{dot, happens, normal};
use super::report;
use super::runner::Runner;
use crate::say;

const ROWS: usize = 10_000;
const COLUMNS: usize = 20;
const DELTA: f64 = 1e-6;
/// Categorical features of the one-hot family, and categories of each.
const BLOCKS: usize = 4;
const CATEGORIES: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    /// Independent uniform numbers.
    Uniform,
    /// Numbers with pairwise correlation of about 0.9.
    Correlated,
    /// Categories with shares in proportion to 1, 1/2, ..., 1/6.
    OneHot,
    /// The numbers of the first family with effects that nearly separate the classes.
    LargeEffects,
    /// The same with smaller effects, and one label in twenty.
    RareClass,
}

impl Family {
    const ALL: [(Self, &str); 5] = [
        (Self::Uniform, "uniform"),
        (Self::Correlated, "correlated"),
        (Self::OneHot, "one-hot"),
        (Self::LargeEffects, "large effects"),
        (Self::RareClass, "rare class"),
    ];

    /// Standard deviation of scores, were columns independent; of categories, of an effect.
    fn deviation(self) -> f64 {
        match self {
            Self::Uniform | Self::Correlated => 1.5,
            Self::OneHot | Self::RareClass => 1.0,
            Self::LargeEffects => 4.0,
        }
    }

    /// Middle of the intercepts.
    fn mean_score(self) -> f64 {
        if self == Self::RareClass { -3.5 } else { 0.0 }
    }
}

/// Generated rows with what their labels were drawn from.
struct Generated {
    schema: String,
    text: String,
    /// Columns of the model; for a categorical feature the first stands for values that the schema does not list.
    rows: Vec<Vec<f64>>,
    weights: Vec<f64>,
    intercept: f64,
}

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    for (family, name) in Family::ALL {
        for seed in 0..runner.splits(20) {
            let generated = generate(family, &mut Rng::with_seed(seed));
            let path = runner.write("training.csv", &generated.text)?;
            for epsilon in runner.epsilons(&[0.5]) {
                let published = generated.published_epsilon(epsilon);
                for (method, label, paid) in [
                    ("walr", "walr", epsilon),
                    ("walr --solver full-batch", "walr --solver full-batch", epsilon),
                    ("walr --solver full-batch", "the same, noise as published", published),
                ] {
                    let typed = Case::private(name, method, "label", paid, DELTA);
                    let (model, seconds) = runner.fit(&typed, &generated.schema, &path, ROWS)?;
                    let mut figures = generated.figures(&Fitted::read(&model)?);
                    figures.insert("processor_seconds", seconds);
                    runner.add(&Case::private(name, label, "label", epsilon, DELTA), seed, figures)?;
                }
            }
        }
        say(&format!("{name} done"));
    }
    let columns = [
        ("excess_loss", "excess log loss"),
        ("coverage", "coverage of 95 % intervals"),
        ("processor_seconds", "processor seconds"),
    ];
    report::table(runner, &columns);
    Ok(())
}

fn generate(family: Family, random: &mut Rng) -> Generated {
    let mut schema = String::from(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \
         \"yes\"]\n[features]\n",
    );
    let mut header = String::new();
    let features = if family == Family::OneHot { BLOCKS } else { COLUMNS };
    for feature in 0..features {
        let values = match family {
            Family::OneHot => "categories = [\"1\", \"2\", \"3\", \"4\", \"5\", \"6\"]",
            Family::Uniform | Family::Correlated | Family::LargeEffects | Family::RareClass => "bounds = [0, 1]",
        };
        schema.push_str(&format!("x{feature} = {{ {values} }}\n"));
        header.push_str(&format!("x{feature},"));
    }
    let cells: Vec<Vec<f64>> = (0..ROWS).map(|_| cells(family, random)).collect();
    let is_one_hot = family == Family::OneHot;
    let rows = if is_one_hot { cells.iter().map(|cells| one_hot(cells)).collect() } else { cells.clone() };
    // A uniform number has a standard deviation of .289.
    let effect = family.deviation() / if is_one_hot { 1.0 } else { (COLUMNS as f64).sqrt() * 0.289 };
    let weights: Vec<f64> = (0..rows[0].len()).map(|_| effect * normal(random)).collect();
    let mean = rows.iter().map(|row| dot(row, &weights)).sum::<f64>() / ROWS as f64;
    let intercept = family.mean_score() + 0.5 * normal(random) - mean;
    let mut text = header + "y\n";
    for (cells, row) in cells.iter().zip(&rows) {
        cells.iter().for_each(|value| text.push_str(&format!("{value},")));
        text.push_str(if happens(random, intercept + dot(row, &weights)) { "yes\n" } else { "no\n" });
    }
    Generated { schema, text, rows, weights, intercept }
}

fn cells(family: Family, random: &mut Rng) -> Vec<f64> {
    match family {
        Family::Uniform | Family::LargeEffects | Family::RareClass => (0..COLUMNS).map(|_| random.f64()).collect(),
        Family::Correlated => {
            let common = normal(random);
            let one = |_| {
                let mixed = 0.9f64.sqrt() * common + 0.1f64.sqrt() * normal(random);
                1.0 / (1.0 + (-1.702 * mixed).exp())
            };
            (0..COLUMNS).map(one).collect()
        }
        Family::OneHot => (0..BLOCKS).map(|_| category(random)).collect(),
    }
}

/// A category from 1 to 6 with share in proportion to 1 / category.
fn category(random: &mut Rng) -> f64 {
    let shares: f64 = (1..=CATEGORIES).map(|category| 1.0 / category as f64).sum();
    let mut left = random.f64() * shares;
    let chosen = (1..CATEGORIES).find(|category| {
        left -= 1.0 / *category as f64;
        left <= 0.0
    });
    chosen.unwrap_or(CATEGORIES) as f64
}

fn one_hot(cells: &[f64]) -> Vec<f64> {
    let mut row = vec![0.0; cells.len() * (CATEGORIES + 1)];
    for (block, category) in cells.iter().enumerate() {
        row[block * (CATEGORIES + 1) + *category as usize] = 1.0;
    }
    row
}

impl Generated {
    /// Mean loss above the truth's on these rows, and the share of intervals that hold the true coefficient.
    fn figures(&self, model: &Fitted) -> Figures {
        let loss = |row: &Vec<f64>| excess_loss(self.intercept + dot(row, &self.weights), model.score(row));
        let excess = self.rows.iter().map(loss).sum::<f64>() / ROWS as f64;
        let mut figures = Figures::from([("excess_loss", excess)]);
        let (mut covered, mut all) = (0.0, 0.0);
        for (column, truth) in self.weights.iter().enumerate() {
            let occurs = self.rows.iter().any(|row| row[column].abs() > 0.0);
            if let (true, Some(error)) = (occurs, model.errors_off(column, *truth)) {
                covered += f64::from(u8::from(error <= INTERVAL));
                all += 1.0;
            }
        }
        if all > 0.0 {
            figures.insert("coverage", covered / all);
        }
        figures
    }

    /// Epsilon at which our accounting gives the noise that the published formulas give at `epsilon`: the norm bounded by
    /// `sqrt(k)`, and `sigma = s sqrt(2 ln(1.25 / delta)) / epsilon`. Ours has the largest norm of a row, intercept included.
    fn published_epsilon(&self, epsilon: f64) -> f64 {
        let longest = self.rows.iter().map(|row| (1.0 + dot(row, row)).sqrt()).fold(0.0, f64::max);
        let sigma = (COLUMNS as f64).sqrt() * (2.0 * (1.25 / DELTA).ln()).sqrt() / epsilon;
        gdp::epsilon_up(Mu::new(longest / sigma).expect("positive"), Delta::new(DELTA).expect("legal"))
    }
}
