//! The sensitivity that a query declares bounds what any row, however hostile, can add to its sum.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::encoding::{Coding, Encoding, LatticeRow, NormRule};
use reticent_core::query::{Loss, Map, PassWeights, QueryShape, SumQuery};
use reticent_core::sum::PartialSum;
use reticent_testkit::{generate, reveal};

const COLUMNS: usize = 1 + 3 + 4;

fn queries(weights: &[f64]) -> Vec<SumQuery> {
    let schema = generate::schema(3, 1, "unit = \"row\"\nadjacency = \"add-remove\"");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let maps = [
        Map::ClassCount { classes: 2 },
        Map::Gradient { loss: Loss::Logistic, columns: COLUMNS as u32 },
        Map::CorrectCount,
        Map::LogLoss,
        Map::ScoreHistogram { buckets: 8 },
    ];
    let query = |map: Map| {
        let pass =
            if matches!(map, Map::ClassCount { .. }) { PassWeights::none() } else { PassWeights::quantise(weights) };
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
        SumQuery::new(shape, encoding.clone(), pass).expect("columns fit")
    };
    maps.into_iter().map(query).collect()
}

/// A lattice row as plain values: within the norm bound or not, with any step.
fn lattice_row() -> impl Strategy<Value = (Vec<i16>, f32)> {
    let coordinate = prop_oneof![Just(0i16), Just(32767), Just(-32767), Just(i16::MIN), any::<i16>(), -100..100i16];
    (prop::collection::vec(coordinate, COLUMNS), prop_oneof![Just(1.0f32), Just(f32::MAX), 1e-6f32..10.0])
}

fn label() -> impl Strategy<Value = CodedLabel> {
    prop_oneof![Just(0), Just(1), Just(UNUSABLE_LABEL), any::<CodedLabel>()]
}

fn contribution(query: &SumQuery, row: &(Vec<i16>, f32), label: CodedLabel) -> Vec<i128> {
    let mut sum = PartialSum::zero(query);
    sum.add_row(query, LatticeRow { features: &row.0, step: row.1 }, label);
    reveal(sum)
}

fn distance_square(left: &[i128], right: &[i128]) -> u128 {
    left.iter().zip(right).map(|(left, right)| left.abs_diff(*right).pow(2)).sum()
}

fn bound(query: &SumQuery, adjacency: Adjacency) -> u128 {
    query.sensitivity(&Relation { unit: PrivacyUnit::Row, adjacency }).expect("finite for rows").get()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_row_passes_its_sensitivity(
        weights in prop::collection::vec(-50.0f64..50.0, COLUMNS),
        (first, second) in (lattice_row(), lattice_row()),
        (one, other) in (label(), label()),
    ) {
        for query in queries(&weights) {
            let added = contribution(&query, &first, one);
            prop_assert!(distance_square(&added, &vec![0; added.len()]) <= bound(&query, Adjacency::AddRemove));
            let replaced = contribution(&query, &second, other);
            prop_assert!(distance_square(&added, &replaced) <= bound(&query, Adjacency::Replace));
            let relabelled = contribution(&query, &first, other);
            prop_assert!(distance_square(&added, &relabelled) <= bound(&query, Adjacency::Label));
        }
    }
}

/// The bounds are not vacuous: each is reached, or nearly so, by some row.
#[test]
fn the_gradient_bound_is_tight() {
    let mut weights = vec![0.0; COLUMNS];
    weights[0] = 100.0;
    let query = &queries(&weights)[1];
    let longest = |sign: i16| {
        let mut row = vec![0; COLUMNS];
        row[0] = sign * 32767;
        (row, 1.0f32)
    };
    // A confident and wrong prediction on a row of full length.
    let added = contribution(query, &longest(1), 0);
    assert_eq!(distance_square(&added, &[0; COLUMNS]), bound(query, Adjacency::AddRemove));
    let opposite = contribution(query, &longest(-1), 1);
    assert_eq!(distance_square(&added, &opposite), 0, "both push the same weight the same way");
    let other = contribution(query, &longest(1), 1);
    assert_eq!(distance_square(&added, &other), bound(query, Adjacency::Label));
}
