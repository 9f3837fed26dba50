//! Minima over private rows: the sensitivity that is charged holds on neighbouring tables, and nothing but the rows matters.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::engine::Engine;
use reticent_core::minimum::{Minimum, MinimumQuery, UnusableLabel};
use reticent_core::query::{Map, QueryShape};
use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_math::fixed_sequence::FixedSequence;
use reticent_testkit::generate::{self, GeneratedRow};
use reticent_testkit::reveal;

use crate::spilled_engine::{place, spilled};

const COLUMNS: u32 = 1 + 2 + 4;
const PRIVACY: &str = "unit = \"row\"\nadjacency = \"add-remove\"";
const ROWS_MAX: u64 = 1000;

fn schema() -> Schema {
    generate::schema(2, 1, PRIVACY)
}

fn query(minimum: Minimum, schema: &Schema) -> MinimumQuery {
    // A bound that shortens some rows.
    let encoding = Arc::new(Encoding::plain(Coding::of(schema), NormRule::Clip(1.5)));
    let shape = QueryShape::new(Map::Minimum(minimum), PrivacyUnit::Row, ROWS_MAX).expect("in range");
    let centre: Vec<f64> = (0..shape.coordinates()).map(|place| f64::from(place) / 8.0 - 0.5).collect();
    MinimumQuery::new(shape, encoding, &centre).expect("columns fit")
}

fn minimum(l2: f64, perturbation: u64, unusable: UnusableLabel) -> Minimum {
    Minimum { classes: 2, columns: COLUMNS, l2: (l2 * 65536.0) as u64, perturbation, unusable }
}

fn answer(rows: &[GeneratedRow], query: &MinimumQuery, term: &[i128], block_rows: usize) -> Vec<i128> {
    let schema = schema();
    let mut table = CodedTable::empty(&schema);
    rows.iter().for_each(|row| table.push(&row.cells(&schema), row.label()));
    let engine = MemoryEngine::with_block_rows(table, block_rows);
    reveal(engine.exact_minimum(query, term).expect("in memory"))
}

/// A longer table than was declared has its minimum all the same: whether the search ends is no matter of the number of rows.
#[test]
fn a_longer_table_than_was_declared_has_a_minimum() {
    let rows: Vec<GeneratedRow> = (0..20_000)
        .map(|row| GeneratedRow {
            values: vec![f64::from(row % 11), f64::from(row % 7), f64::from(row % 4)],
            class: Some(u16::from(row % 3 == 0)),
        })
        .collect();
    let schema = schema();
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::Clip(1.5)));
    let of = |rows_max| {
        let map = Map::Minimum(minimum(1.0, 0, UnusableLabel::Skip));
        let shape = QueryShape::new(map, PrivacyUnit::Row, rows_max).expect("in range");
        let query = MinimumQuery::new(shape, encoding.clone(), &[0.0; COLUMNS as usize]).expect("columns fit");
        answer(&rows, &query, &[0; COLUMNS as usize], 256)
    };
    assert_eq!(of(10), of(20_000));
}

/// So many columns that no products are made of them: all but three numbers are zero, and the minimum is that of the three.
#[test]
fn a_minimum_over_thousands_of_columns_is_found_by_steps_and_gradients_alone() {
    let mut sequence = FixedSequence::new(11);
    let rows: Vec<([f64; 3], u16)> = (0..300)
        .map(|_| {
            let values = [0; 3].map(|_| 10.0 * sequence.next_share());
            let score = values[0] - 1.5 * values[1] + sequence.next_normal();
            (values, u16::from(score > -2.0) + u16::from(score > 2.0))
        })
        .collect();
    let minimum_of = |numbers: usize, classes: u32| {
        let schema = generate::schema(numbers, 0, PRIVACY);
        let coding = Coding::of(&schema);
        let columns = coding.columns().len();
        let scale = (0..columns).map(|column| if column <= 3 { 1.0 } else { 0.0 }).collect();
        let encoding = Arc::new(Encoding::new(coding, vec![0.0; columns], scale, NormRule::Clip(1.5)));
        let minimum = Minimum { classes, columns: columns as u32, ..minimum(0.5, 1, UnusableLabel::Skip) };
        let shape = QueryShape::new(Map::Minimum(minimum), PrivacyUnit::Row, ROWS_MAX).expect("in range");
        let outputs = minimum.outputs() as usize;
        let query = MinimumQuery::new(shape, encoding, &vec![0.0; outputs * columns]).expect("columns fit");
        let term: Vec<i128> =
            (0..outputs * columns).map(|place| ((place % columns % 4 + place / columns) as i128) << 38).collect();
        let mut table = CodedTable::empty(&schema);
        for (values, class) in &rows {
            let cells = (0..numbers).map(|place| Cell::Number(values.get(place).copied().unwrap_or(5.0)));
            table.push(&cells.collect::<Vec<_>>(), Label::Class(*class));
        }
        let found = reveal(MemoryEngine::new(table).exact_minimum(&query, &term).expect("in memory"));
        found.chunks(columns).flat_map(|of_class| of_class[..4].to_vec()).collect::<Vec<i128>>()
    };
    for classes in [2, 3] {
        let (few, many) = (minimum_of(3, classes), minimum_of(2100, classes));
        assert!(few.iter().any(|weight| weight.abs() > 1 << 36), "it says something: {few:?}");
        for (few, many) in few.iter().zip(&many) {
            assert!(few.abs_diff(*many) < 1 << 10, "{few} and {many} of 2^36, {classes} classes");
        }
    }
}

fn distance_square(left: &[i128], right: &[i128]) -> u128 {
    left.iter().zip(right).map(|(left, right)| left.abs_diff(*right).pow(2)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Output perturbation: the distance between the answers for neighbours is within what is charged.
    #[test]
    fn neighbours_answers_are_within_the_sensitivity(
        rows in generate::rows(2, 1, 1..12),
        other in generate::rows(2, 1, 1..2),
        l2 in prop_oneof![Just(0.01), 0.01..20.0f64],
        skip in any::<bool>(),
    ) {
        let unusable = if skip { UnusableLabel::Skip } else { UnusableLabel::FirstClass };
        let query = query(minimum(l2, 0, unusable), &schema());
        let term = vec![0; COLUMNS as usize];
        let whole = answer(&rows, &query, &term, 2048);
        let mut replaced = rows.clone();
        replaced[0] = other[0].clone();
        let mut relabelled = rows.clone();
        relabelled[0].class = other[0].class;
        for (adjacency, neighbour) in [
            (Adjacency::AddRemove, rows[1..].to_vec()),
            (Adjacency::Replace, replaced),
            (Adjacency::Label, relabelled),
        ] {
            let relation = Relation { unit: PrivacyUnit::Row, adjacency };
            let charged = query.shape().sensitivity(&relation).expect("finite").get();
            let moved = distance_square(&whole, &answer(&neighbour, &query, &term, 2048));
            prop_assert!(moved <= charged, "{adjacency}: {moved} and {charged}");
        }
    }

    /// Neither order nor blocks, and so threads, nor where rows lie show in an answer.
    #[test]
    fn answers_depend_on_rows_alone(rows in generate::rows(2, 1, 1..40), l2 in 0.01..20.0f64, seed in any::<u32>()) {
        let query = query(minimum(l2, 1 << 30, UnusableLabel::Skip), &schema());
        let term: Vec<i128> = (0..i128::from(COLUMNS)).map(|place| (i128::from(seed) * (place - 3)) << 9).collect();
        let whole = answer(&rows, &query, &term, 2048);
        let mut turned = rows.clone();
        turned.reverse();
        prop_assert_eq!(&whole, &answer(&turned, &query, &term, 3));
        prop_assert_eq!(&whole, &answer(&rows, &query, &term, 1));
        let on_disk = spilled(&schema(), &rows, &place(), 3, 0);
        prop_assert_eq!(&whole, &reveal(on_disk.exact_minimum(&query, &term).expect("is read")));
    }
}

#[test]
fn the_sensitivity_of_a_minimum_is_nearly_attained() {
    // One row at the bound against none, with so much ridge that the slope stays near 1/2.
    let schema = schema();
    let query = query(minimum(50.0, 0, UnusableLabel::Skip), &schema);
    let row = GeneratedRow { values: vec![10.0, 10.0, 1.0], class: Some(1) };
    let term = vec![0; COLUMNS as usize];
    let moved = distance_square(&answer(&[row], &query, &term, 10), &answer(&[], &query, &term, 10));
    let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
    let charged = query.shape().sensitivity(&relation).expect("finite").get();
    let ratio = (moved as f64 / charged as f64).sqrt();
    assert!((0.3..1.0).contains(&ratio), "{ratio}");
}

#[test]
fn an_empty_table_has_the_centre_as_its_minimum() {
    let query = query(minimum(2.0, 0, UnusableLabel::Skip), &schema());
    let found = answer(&[], &query, &[0; COLUMNS as usize], 10);
    for (found, centre) in found.into_iter().zip(query.centre()) {
        assert!((found - (centre >> 21)).abs() <= 1);
    }
}
