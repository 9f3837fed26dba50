//! The descent for a number: it finds the coefficients, with less budget than a matrix of products needs, and spends what it says.

use reticent_core::query::{Loss, Map};
use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_fit::model::Model;
use reticent_math::fixed_sequence::FixedSequence;

use super::gram::{engine, excess_error, schema};
use super::table::{Asked, fit};

const ROWS: usize = 4000;
/// Error of the best constant on the table of `gram`'s tests, whose true slopes are .8 and -.2.
const CONSTANT_ERROR: f64 = 5.9;

fn default() -> Asked<'static> {
    Asked::of("noisy-gd")
}

#[test]
fn with_a_large_budget_the_coefficients_are_the_true_ones() {
    for privacy in ["adjacency = \"add-remove\"", "adjacency = \"replace\"", "adjacency = \"label\""] {
        let schema = schema(privacy);
        for bits in ["16", "8"] {
            let asked = default().with("coordinate-bits", bits);
            let (_, model) = fit(&schema, &engine(&schema, ROWS, 1), &asked, 20.0, 1);
            for (place, truth) in [0.8, -0.2].into_iter().enumerate() {
                let found = &model.outputs[0].coefficients[place];
                assert!((found.coefficient - truth).abs() < 0.05, "{privacy} {bits}: {}", found.coefficient);
                assert!(found.standard_error.is_none(), "the descent knows none");
            }
            assert!(excess_error(&model) < 0.03, "{privacy} {bits}: {}", excess_error(&model));
        }
    }
}

/// `n mu` of 950, and of 110.
#[test]
fn a_usual_budget_explains_nearly_all_of_the_target_and_a_small_one_most_of_it() {
    let schema = schema("adjacency = \"add-remove\"\nrows = 4000");
    let engine = engine(&schema, ROWS, 1);
    for (epsilon, limit) in [(1.0, 0.03), (0.1, 0.5)] {
        let shares =
            (0..10).map(|seed| excess_error(&fit(&schema, &engine, &default(), epsilon, seed).1) / CONSTANT_ERROR);
        let mean = shares.sum::<f64>() / 10.0;
        assert!(mean < limit, "{epsilon}: {mean}");
    }
}

/// Columns `x0`, `x1`, .. within `[-1, 1]`, and a target in these bounds.
fn schema_of_columns(columns: usize, bounds: &str) -> Schema {
    let features: String = (0..columns).map(|place| format!("x{place} = {{ bounds = [-1, 1] }}\n")).collect();
    Schema::from_text(&format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = {bounds}\n[features]\n{features}"
    ))
    .expect("legal")
}

/// Forty columns of uniform numbers, 2000 rows; a target of all of them, by slopes of either sign.
fn many_columns() -> (Schema, MemoryEngine, impl Fn(&Model) -> f64) {
    const COLUMNS: usize = 40;
    let schema = schema_of_columns(COLUMNS, "[-12, 12]");
    let mut sequence = FixedSequence::new(7);
    let mut table = CodedTable::empty(&schema);
    let slope = |place: usize| if place.is_multiple_of(3) { -0.7 } else { 0.5 };
    for _ in 0..2000 {
        let row: Vec<f64> = (0..COLUMNS).map(|_| sequence.next_uniform()).collect();
        let noise = 0.5 * sequence.next_uniform();
        let value = row.iter().enumerate().map(|(place, x)| slope(place) * x).sum::<f64>() + noise;
        let cells: Vec<Cell> = row.into_iter().map(Cell::Number).collect();
        table.push(&cells, Label::Value(value));
    }
    // Of the variance of the target, which is a third of the squared slopes.
    let unexplained = move |model: &Model| {
        let of = |place: usize| model.outputs[0].coefficients[place].coefficient;
        let total: f64 = (0..COLUMNS).map(|place| slope(place).powi(2)).sum();
        (0..COLUMNS).map(|place| (of(place) - slope(place)).powi(2)).sum::<f64>() / total
    };
    (schema, MemoryEngine::new(table), unexplained)
}

#[test]
fn many_columns_are_found_where_noise_hides_their_matrix() {
    let (schema, engine, unexplained) = many_columns();
    for seed in 0..3 {
        let [descent, gram] =
            [default(), Asked::of("gram")].map(|asked| unexplained(&fit(&schema, &engine, &asked, 1.0, seed).1));
        assert!(descent < 0.2 && gram > 5.0 * descent, "{seed}: {descent} and {gram}");
    }
}

/// Forty columns that say nothing of the target, a thousand rows: what they explain of it by chance is taken off. Without that, and at any noise,
/// predictions are wrong by .08 of its variance and more beyond it.
#[test]
fn columns_that_say_nothing_leave_the_mean() {
    let (schema, ..) = many_columns();
    let columns = schema.features().len();
    let mut sequence = FixedSequence::new(3);
    let mut table = CodedTable::empty(&schema);
    for _ in 0..1000 {
        let row = (0..columns).map(|_| Cell::Number(sequence.next_uniform())).collect::<Vec<_>>();
        table.push(&row, Label::Value(5.0 * sequence.next_uniform()));
    }
    let engine = MemoryEngine::new(table);
    for seed in 0..3 {
        let (_, model) = fit(&schema, &engine, &default(), 3.0, seed);
        let [output] = &model.outputs[..] else { panic!("one output") };
        let slopes: f64 = output.coefficients.iter().map(|one| one.coefficient.powi(2)).sum();
        // Columns and target are uniform: variances of 1/3 and 25/3.
        let excess = (slopes / 3.0 + output.intercept.powi(2)) / (25.0 / 3.0);
        assert!(excess < 0.03, "{seed}: {excess}");
    }
}

/// Costs: three rows in four have none, whatever their columns say, and so is the median; their mean is `1 + x_0`. `n mu` is 700, and 8 columns say
/// nothing. Clipped as other targets are, a sixth of the slope is lost on average.
#[test]
fn a_target_that_is_mostly_zero_is_met_at_its_mean() {
    const COLUMNS: usize = 9;
    let schema = schema_of_columns(COLUMNS, "[0, 8]");
    let mut sequence = FixedSequence::new(11);
    let mut table = CodedTable::empty(&schema);
    for _ in 0..3000 {
        let row: Vec<f64> = (0..COLUMNS).map(|_| sequence.next_uniform()).collect();
        let has_cost = sequence.next_share() < (1.0 + row[0]) / 4.0;
        let cost = if has_cost { 2.0 + 4.0 * sequence.next_share() } else { 0.0 };
        let cells: Vec<Cell> = row.into_iter().map(Cell::Number).collect();
        table.push(&cells, Label::Value(cost));
    }
    let engine = MemoryEngine::new(table);
    let slopes =
        (0..10).map(|seed| fit(&schema, &engine, &default(), 1.0, seed).1.outputs[0].coefficients[0].coefficient);
    let mean = slopes.sum::<f64>() / 10.0;
    assert!((0.95..1.15).contains(&mean), "{mean}");
}

/// A number whose effect levels off at 2, and that one row in twenty-five has five to fifty times as large: least squares explains 3 % of the target
/// by it, and where far rows weigh as much as usual ones a fit predicts worse than the mean.
#[test]
fn an_effect_that_levels_off_is_not_followed_beyond_the_mean() {
    let text = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [-10, 10]\n\
                [features]\nx = { bounds = [0, 100] }\n";
    let schema = Schema::from_text(text).expect("legal");
    let mut sequence = FixedSequence::new(5);
    let mut next = || sequence.next_share();
    let rows: Vec<[f64; 2]> = (0..20_000)
        .map(|_| {
            let x = if next() < 0.04 { 10.0 + 90.0 * next() } else { 3.0 * next() };
            // Of variance 1/2.
            let noise = (0..6).map(|_| 2.0 * next() - 1.0).sum::<f64>() / 2.0;
            [x, noise - x.min(2.0)]
        })
        .collect();
    let mut table = CodedTable::empty(&schema);
    rows.iter().for_each(|[x, y]| table.push(&[Cell::Number(*x)], Label::Value(*y)));
    let engine = MemoryEngine::new(table);
    let mean = rows.iter().map(|[_, y]| y).sum::<f64>() / rows.len() as f64;
    let variance = rows.iter().map(|[_, y]| (y - mean).powi(2)).sum::<f64>();
    for seed in 0..3 {
        let (_, model) = fit(&schema, &engine, &default(), 10.0, seed);
        let error: f64 = rows.iter().map(|[x, y]| (y - model.score(0, &[1.0, *x])).powi(2)).sum();
        let explained = 1.0 - error / variance;
        assert!((0.015..0.04).contains(&explained), "{seed}: {explained}");
    }
}

#[test]
fn gradients_are_those_of_hubers_loss_and_five_models_are_calibrated() {
    for adjacency in ["add-remove", "replace", "label"] {
        let plan = default().with("passes", 70).plan(&schema(&format!("adjacency = \"{adjacency}\"")), 1.0);
        let [.., gradients, calibration] = &plan.releases[..] else { panic!("two at least") };
        assert!(matches!(gradients.shape.map(), Map::Gradient { loss: Loss::Huber, .. }) && gradients.times == 70);
        assert!(matches!(calibration.shape.map(), Map::ResidualSteps { models: 5 }));
    }
}

#[test]
fn a_public_start_is_kept_when_the_budget_is_tiny() {
    let schema = schema("adjacency = \"add-remove\"");
    let engine = engine(&schema, ROWS, 1);
    let (_, good) = fit(&schema, &engine, &default(), 20.0, 1);
    let asked = Asked { init: Some(&good), ..default() };
    for seed in 0..3 {
        let (_, kept) = fit(&schema, &engine, &asked, 0.005, seed);
        assert!(excess_error(&kept) < 0.5 * CONSTANT_ERROR, "{seed}: {}", excess_error(&kept));
    }
}
