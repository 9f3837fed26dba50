//! Fits without privacy, for every kind of target: the yardstick and the start.

use reticent_core::schema::Schema;
use reticent_fit::labelled_rows::LabelledRows;
use reticent_fit::model::{Model, PublicData};
use reticent_fit::public_fit::{PublicFitError, fit, fit_start};
use reticent_math::fixed_sequence::FixedSequence;

use super::table::{Asked, claim};

fn schema(target: &str) -> Schema {
    let text = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\n{target}\n[features]\n\
         x = {{ bounds = [0, 10] }}\nz = {{ bounds = [-1, 1] }}\n"
    );
    Schema::from_text(&text).expect("legal")
}

/// A grid of x and z with a label.
fn rows(label: impl Fn(f64, f64) -> f64) -> Vec<([f64; 3], f64)> {
    let grid = (0..40).map(|row| (f64::from(row) / 4.0, f64::from(row % 7) / 3.0 - 1.0));
    grid.map(|(x, z)| ([1.0, x, z], label(x, z))).collect()
}

fn of(schema: &Schema, rows: &[([f64; 3], f64)]) -> [Model; 2] {
    let labelled = || LabelledRows::of(schema, rows.iter().map(|(row, label)| (row, *label))).expect("few columns");
    [fit(schema, labelled()).expect("fits"), fit_start(schema, labelled()).expect("fits")]
}

#[test]
fn a_number_is_fitted_by_least_squares() {
    let schema = schema("bounds = [-100, 100]");
    let [yardstick, start] = of(&schema, &rows(|x, z| 5.0 + 3.0 * x - 2.0 * z));
    assert!((yardstick.number(&[1.0, 4.0, 0.5]) - 16.0).abs() < 0.05, "{yardstick:?}");
    assert!((start.number(&[1.0, 4.0, 0.5]) - 16.0).abs() < 1.0, "a start has more ridge: {start:?}");
}

#[test]
fn more_classes_are_fitted_by_a_softmax() {
    let schema = schema("classes = [\"a\", \"b\", \"c\"]");
    for model in of(&schema, &rows(|x, _| (x / 3.4).floor())) {
        for (x, class) in [(0.5, 0), (5.0, 1), (9.5, 2)] {
            let probabilities = model.probabilities(&[1.0, x, 0.0]);
            assert!(probabilities.iter().all(|other| *other <= probabilities[class]), "{x}: {probabilities:?}");
        }
    }
}

/// Separable classes and a constant column: the yardstick runs away, the start does not.
#[test]
fn a_start_is_not_wild() {
    let schema = schema("classes = [\"a\", \"b\"]");
    let rows: Vec<_> = rows(|x, _| f64::from(x > 5.0)).into_iter().map(|([one, x, _], y)| ([one, x, 0.3], y)).collect();
    let [yardstick, start] = of(&schema, &rows);
    let steepest = |model: &Model| model.outputs[0].coefficients[0].coefficient;
    assert!(steepest(&start) < 2.0 && steepest(&yardstick) > 1.5 * steepest(&start), "{start:?}");
    assert!(start.outputs[0].coefficients[1].coefficient.abs() < 1e-12, "a constant column tells nothing");
}

#[test]
fn no_rows_are_an_error() {
    let schema = schema("bounds = [0, 1]");
    let rows = LabelledRows::new(&schema).expect("few columns");
    assert_eq!(fit(&schema, rows).err(), Some(PublicFitError::NoRows));
}

#[test]
fn a_plan_says_which_rows_were_declared_public() {
    let schema = schema("classes = [\"a\", \"b\"]");
    let [model, _] = of(&schema, &rows(|x, _| f64::from(x > 5.0)));
    let data = PublicData { file: "open.csv".to_owned(), sha256: "ab".repeat(32) };
    let model = model.fitted_to(data);
    assert_eq!(Model::from_json(&model.to_json()).expect("its own text"), model);
    let asked = Asked { init: Some(&model), ..Asked::of("noisy-gd") };
    let prepared = asked.prepare(&schema, &claim(schema.relation(), 1.0)).expect("fits");
    let fact = format!("the rows of open.csv (sha256 {}), declared public", "ab".repeat(32));
    assert!(prepared.plan().public.iter().any(|one| one.starts_with(&fact)), "{:?}", prepared.plan().public);
}

/// 60 rows of 100 columns that say nothing: with a ridge of 1 the scores of other rows had a standard deviation of 3.
#[test]
fn a_start_from_fewer_rows_than_columns_is_not_sure() {
    const COLUMNS: usize = 100;
    let names: String = (0..COLUMNS).map(|column| format!("x{column} = {{ bounds = [-1, 1] }}\n")).collect();
    let schema = Schema::from_text(&format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n[features]\n{names}"
    ))
    .expect("legal");
    let mut sequence = FixedSequence::new(1);
    let mut row = || -> Vec<f64> {
        std::iter::once(1.0).chain(std::iter::repeat_with(|| sequence.next_uniform()).take(COLUMNS)).collect()
    };
    let rows: Vec<Vec<f64>> = (0..60).map(|_| row()).collect();
    let labels = (0..60).map(|index| f64::from(u8::from(index % 2 == 0)));
    let rows = LabelledRows::of(&schema, rows.iter().zip(labels)).expect("few columns");
    let start = fit_start(&schema, rows).expect("fits");
    let scores: Vec<f64> = (0..1000).map(|_| start.score(0, &row())).collect();
    let deviation = (scores.iter().map(|score| score * score).sum::<f64>() / 1000.0).sqrt();
    assert!(deviation > 0.1 && deviation < 1.8, "{deviation}");
}
