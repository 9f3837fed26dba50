//! Generated tables whose columns say nothing of the target: how much worse a fit is there than the base rate, or the mean, as a share of
//! what those lose.

use fastrand::Rng;

use super::case::{Case, Figures};
use super::normal::normal;
use super::report;
use super::runner::Runner;
use crate::say;

/// Fresh rows where classes are as frequent as each other, and expected rows of a rare class.
const FRESH_ROWS: usize = 4000;
const FRESH_RARE_ROWS: f64 = 100.0;
const DELTA: f64 = 1e-6;

/// What a generated table looks like.
struct Shape {
    name: &'static str,
    rows: usize,
    /// Normal numbers within four standard deviations.
    numbers: usize,
    /// Columns of sixty categories each.
    categories: usize,
    /// 0 for a normal number.
    classes: usize,
    /// Share of the second of two classes; else all are as frequent as each other.
    rare: Option<f64>,
    methods: &'static [&'static str],
}

const SHAPES: [Shape; 7] = [
    Shape {
        name: "two classes, 300 categories",
        rows: 1000,
        numbers: 0,
        categories: 5,
        classes: 2,
        rare: None,
        methods: &["noisy-gd"],
    },
    Shape {
        name: "two classes, 40 numbers",
        rows: 1000,
        numbers: 40,
        categories: 0,
        classes: 2,
        rare: None,
        methods: &["noisy-gd", "walr"],
    },
    Shape {
        name: "one row in 200, 8 numbers",
        rows: 20_000,
        numbers: 8,
        categories: 0,
        classes: 2,
        rare: Some(0.005),
        methods: &["noisy-gd", "walr"],
    },
    Shape {
        name: "one row in 2000, 8 numbers",
        rows: 300_000,
        numbers: 8,
        categories: 0,
        classes: 2,
        rare: Some(0.0005),
        methods: &["noisy-gd"],
    },
    Shape {
        name: "eight classes, 40 numbers",
        rows: 1000,
        numbers: 40,
        categories: 0,
        classes: 8,
        rare: None,
        methods: &["noisy-gd", "walr"],
    },
    Shape {
        name: "a number, 40 numbers",
        rows: 1000,
        numbers: 40,
        categories: 0,
        classes: 0,
        rare: None,
        methods: &["noisy-gd", "gram"],
    },
    Shape {
        name: "a number, 300 categories",
        rows: 3000,
        numbers: 0,
        categories: 5,
        classes: 0,
        rare: None,
        methods: &["noisy-gd", "gram"],
    },
];
const NAMES: usize = 60;

pub(super) fn run(runner: &mut Runner<'_>) -> Result<(), String> {
    for shape in &SHAPES {
        for seed in 0..runner.splits(8) {
            measure(runner, shape, seed)?;
        }
        say(&format!("{} done", shape.name));
    }
    report::table(runner, &[("excess", "beyond base rate or mean"), ("processor_seconds", "processor seconds")]);
    Ok(())
}

fn measure(runner: &mut Runner<'_>, shape: &Shape, seed: u64) -> Result<(), String> {
    let mut random = Rng::with_seed(seed);
    let (training, of_training) = rows(shape, shape.rows, &mut random);
    let (fresh, of_fresh) = rows(shape, fresh_rows(shape), &mut random);
    let (training, fresh) = (runner.write("training.csv", &training)?, runner.write("fresh.csv", &fresh)?);
    for epsilon in runner.epsilons(&[0.3, 1.0, 3.0, 10.0]) {
        for adjacency in runner.adjacencies(&["add-remove"]) {
            for method in shape.methods {
                // Its features are public.
                let adjacency = if *method == "walr" { "label" } else { &adjacency };
                let case = Case::private(shape.name, method, adjacency, epsilon, DELTA);
                let (model, seconds) = runner.fit(&case, &schema(shape), &training, shape.rows)?;
                let found = runner.evaluate(&model, &fresh)?;
                let excess = if shape.classes == 0 {
                    found["rmse"].powi(2) / mean_square(&of_fresh, mean(&of_training)) - 1.0
                } else {
                    found["log_loss"] / base_loss(shape.classes, &of_training, &of_fresh) - 1.0
                };
                runner.add(&case, seed, Figures::from([("excess", excess), ("processor_seconds", seconds)]))?;
            }
        }
    }
    Ok(())
}

/// A table as CSV, and its targets.
fn rows(shape: &Shape, count: usize, random: &mut Rng) -> (String, Vec<f64>) {
    let mut text = names(shape).map(|name| name + ",").collect::<String>();
    text.push_str("y\n");
    let mut targets = Vec::new();
    for _ in 0..count {
        (0..shape.numbers).for_each(|_| text.push_str(&format!("{},", normal(random).clamp(-4.0, 4.0))));
        (0..shape.categories).for_each(|_| text.push_str(&format!("v{},", random.usize(..NAMES))));
        let target = match shape.rare {
            Some(rate) => f64::from(u8::from(random.f64() < rate)),
            None if shape.classes == 0 => normal(random).clamp(-4.0, 4.0),
            None => random.usize(..shape.classes) as f64,
        };
        text.push_str(&format!("{target}\n"));
        targets.push(target);
    }
    (text, targets)
}

fn fresh_rows(shape: &Shape) -> usize {
    shape.rare.map_or(FRESH_ROWS, |rate| (FRESH_RARE_ROWS / rate) as usize)
}

fn names(shape: &Shape) -> impl Iterator<Item = String> {
    (0..shape.numbers).map(|place| format!("x{place}")).chain((0..shape.categories).map(|place| format!("k{place}")))
}

fn schema(shape: &Shape) -> String {
    let quoted = |prefix: &str, count: usize| -> String {
        (0..count).map(|one| format!("\"{prefix}{one}\"")).collect::<Vec<_>>().join(", ")
    };
    let target = if shape.classes == 0 {
        "bounds = [-4, 4]".to_owned()
    } else {
        format!("classes = [{}]", quoted("", shape.classes))
    };
    let mut schema = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\n{target}\n[features]\n"
    );
    for name in names(shape) {
        let kind = if name.starts_with('x') {
            "bounds = [-4, 4]".to_owned()
        } else {
            format!("categories = [{}]", quoted("v", NAMES))
        };
        schema.push_str(&format!("{name} = {{ {kind} }}\n"));
    }
    schema
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(super) fn mean_square(values: &[f64], around: f64) -> f64 {
    values.iter().map(|value| (value - around).powi(2)).sum::<f64>() / values.len() as f64
}

/// Log loss on fresh rows of the rates of the training rows.
fn base_loss(classes: usize, training: &[f64], fresh: &[f64]) -> f64 {
    let rate =
        |class: usize| training.iter().filter(|one| **one as usize == class).count() as f64 / training.len() as f64;
    let rates: Vec<f64> = (0..classes).map(rate).collect();
    mean(&fresh.iter().map(|class| -rates[*class as usize].ln()).collect::<Vec<_>>())
}
