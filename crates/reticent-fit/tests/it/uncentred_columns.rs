//! Columns that are not centred have a mean score, which the intercept makes up for: of rows that list values, and of features of many categories.

use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_fit::model::Model;
use reticent_math::fixed_sequence::FixedSequence;
use reticent_math::sigmoid;

use super::table::{Asked, fit};

const ROWS: usize = 6000;
const FLAGS: usize = 24;

/// Rows that list which of some flags they have, on average a third of them: the more, the likelier the second class and the larger the number.
fn listed_rows() -> Vec<([f64; FLAGS], f64)> {
    let mut sequence = FixedSequence::new(8);
    (0..ROWS)
        .map(|_| {
            let often = (1.0 + sequence.next_uniform()) / 3.0;
            let flags = [(); FLAGS].map(|()| f64::from((1.0 + sequence.next_uniform()) / 2.0 < often));
            (flags, flags.iter().sum())
        })
        .collect()
}

fn schema_of_lists(target: &str) -> Schema {
    Schema::from_text(&format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[table]\nformat = \"libsvm\"\nnonzeros_max = {FLAGS}\n\
         [target]\ncolumn = \"label\"\n{target}\n[features]\n\"1..{FLAGS}\" = {{ bounds = [0, 1] }}\n"
    ))
    .expect("legal")
}

fn score(model: &Model, numbers: &[f64]) -> f64 {
    let output = &model.outputs[0];
    output.intercept + output.coefficients.iter().zip(numbers).map(|(one, x)| one.coefficient * x).sum::<f64>()
}

/// It was that of the base rate, .69, at any budget: what intercepts changed by was taken for noise, and the signs of all scores were the same.
#[test]
fn two_classes_that_follow_how_much_a_row_lists_are_told_apart() {
    let schema = schema_of_lists("classes = [0, 1]");
    let (mut table, mut sequence) = (CodedTable::empty(&schema), FixedSequence::new(3));
    let mut labelled = Vec::new();
    for (flags, sum) in listed_rows() {
        let class = (1.0 + sequence.next_uniform()) / 2.0 < sigmoid(1.5 * (sum - 8.0));
        table.push(&flags.map(Cell::Number), Label::Class(u16::from(class)));
        labelled.push((flags, sum, class));
    }
    let log_loss = |score: &dyn Fn(&[f64; FLAGS], f64) -> f64| -> f64 {
        let loss = |(flags, sum, class): &([f64; FLAGS], f64, bool)| {
            let margin = if *class { score(flags, *sum) } else { -score(flags, *sum) };
            (-margin).exp().ln_1p()
        };
        labelled.iter().map(loss).sum::<f64>() / labelled.len() as f64
    };
    let (truth, engine) = (log_loss(&|_, sum| 1.5 * (sum - 8.0)), MemoryEngine::new(table));
    for (epsilon, excess) in [(3.0, 0.03), (50.0, 0.005)] {
        for seed in 0..3 {
            let (_, model) = fit(&schema, &engine, &Asked::of("noisy-gd"), epsilon, seed);
            let found = log_loss(&|flags, _| score(&model, flags));
            assert!(found < truth + excess, "{epsilon} {seed}: {found}, and by the truth {truth}");
        }
    }
}

fn share_unexplained(model: &Model, rows: &[(Vec<f64>, f64)]) -> f64 {
    let mean = rows.iter().map(|(_, y)| y).sum::<f64>() / rows.len() as f64;
    let left = rows.iter().map(|(numbers, y)| (score(model, numbers) - y).powi(2)).sum::<f64>();
    left / rows.iter().map(|(_, y)| (mean - y).powi(2)).sum::<f64>()
}

/// The released mean of the target was taken for the intercept, and what columns add to all scores came on top of it.
#[test]
fn a_number_that_follows_how_much_a_row_lists_is_met() {
    let schema = schema_of_lists("bounds = [0, 40]");
    let (mut table, mut sequence, mut rows) = (CodedTable::empty(&schema), FixedSequence::new(3), Vec::new());
    for (flags, sum) in listed_rows() {
        let y = sum + sequence.next_uniform() + sequence.next_uniform();
        table.push(&flags.map(Cell::Number), Label::Value(y));
        rows.push((flags.to_vec(), y));
    }
    let engine = MemoryEngine::new(table);
    for method in ["noisy-gd", "gram"] {
        let share = |epsilon: f64, seed: u64| {
            share_unexplained(&fit(&schema, &engine, &Asked::of(method), epsilon, seed).1, &rows)
        };
        let best = share(1e4, 0);
        assert!(best < 0.06, "{method}: {best}");
        for seed in 0..3 {
            let found = share(10.0, seed);
            assert!(found < best + 0.03, "{method} {seed}: {found}, and without noise {best}");
        }
    }
}

/// A feature of 64 columns is not centred; one of fewer is. Its mean score wanders with the intercept, and the sum of both is what is known.
#[test]
fn a_feature_of_many_categories_leaves_the_mean_where_it_is() {
    let categories = 66;
    let names: Vec<String> = (0..categories).map(|place| format!("\"c{place}\"")).collect();
    let schema = Schema::from_text(&format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [-10, 10]\n\
         [features]\nk = {{ categories = [{}] }}\n",
        names.join(", ")
    ))
    .expect("legal");
    let effect = |category: u32| f64::from(category % 4) - 1.5;
    let (mut table, mut sequence, mut rows) = (CodedTable::empty(&schema), FixedSequence::new(5), Vec::new());
    for row in 0..ROWS as u32 {
        let category = 1 + row % 40;
        let y = effect(category) + sequence.next_uniform();
        table.push(&[Cell::Category(category)], Label::Value(y));
        // "Other" is the first column.
        rows.push(((0..=categories).map(|place| f64::from(place == category)).collect(), y));
    }
    let engine = MemoryEngine::new(table);
    let shift = |model: &Model| {
        rows.iter().map(|(columns, y): &(Vec<f64>, f64)| score(model, columns) - y).sum::<f64>() / rows.len() as f64
    };
    for seed in 0..5 {
        let (_, model) = fit(&schema, &engine, &Asked::of("noisy-gd"), 100.0, seed);
        assert!(shift(&model).abs() < 0.02, "{seed}: {}", shift(&model));
    }
}
