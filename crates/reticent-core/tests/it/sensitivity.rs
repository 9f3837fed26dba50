//! The sensitivity that a query declares bounds what any row, however hostile, can add to its sum.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::coding::{CODE_MAX, Coding};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL, moments};
use reticent_core::encoding::{Encoding, LatticeRow, NormRule};
use reticent_core::pass_weights::PassWeights;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::{Loss, Map, ProductTarget, QueryShape, SumQuery, VoteRule};
use reticent_core::sum::PartialSum;
use reticent_core::target_window::TargetWindow;
use reticent_testkit::{generate, reveal};

use super::contribution::of_votes;

const COLUMNS: usize = 1 + 3 + 4;
/// Most scores of a row that a question below looks at, each with weights of its own.
const SCORES: usize = 12;

fn queries(weights: &[f64]) -> Vec<SumQuery> {
    let schema = generate::schema(3, 1, "unit = \"row\"\nadjacency = \"add-remove\"");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let maps = [
        Map::ClassCount { classes: 2 },
        Map::Gradient { loss: Loss::Logistic, columns: COLUMNS as u32 },
        Map::CorrectCount { classes: 2 },
        Map::LogLoss { classes: 2 },
        Map::ScoreHistogram { buckets: 8 },
        Map::Gradient { loss: Loss::TwoSidedExponential, columns: COLUMNS as u32 },
        Map::Gradient { loss: Loss::Huber, columns: COLUMNS as u32 },
        Map::SoftmaxGradient { classes: 3, columns: COLUMNS as u32 },
        Map::BoundedSoftmaxGradient { classes: 3, columns: COLUMNS as u32 },
        gram(ProductTarget::Number, [29, 41, 20, 3]),
        gram(ProductTarget::Class, [29, 41, 60, 0]),
        gram(ProductTarget::Number, [0, 0, 5, 1]),
        gram(ProductTarget::Number, [7, 1, 0, 0]),
        gram(ProductTarget::NumberOverNorm, [29, 41, 35, 7]),
        Map::CorrectCount { classes: 3 },
        Map::LogLoss { classes: 3 },
        Map::SquaredError,
        Map::ExcessHits { classes: 2 },
        Map::ExcessHits { classes: 3 },
        Map::ConfidenceSteps { classes: 2, models: 4 },
        Map::ConfidenceSteps { classes: 3, models: 3 },
        Map::ResidualSteps { models: 1 },
        Map::ResidualSteps { models: 5 },
        Map::ClippedGradient { columns: COLUMNS as u32, clip: 7_777_777 },
        Map::ClippedGradient { columns: COLUMNS as u32, clip: 2048 * 32767 },
        Map::ClippedGradient { columns: COLUMNS as u32, clip: 1 },
        Map::TargetSum,
        Map::TargetBins { bins: 16 },
    ];
    let query = |map: Map| {
        let has_window = matches!(map, Map::TargetSum | Map::TargetBins { .. } | Map::Gram { square: 1 | 7, .. });
        let weights: Vec<f64> = weights.iter().cycle().take(map.weights(COLUMNS)).copied().collect();
        let pass = if has_window {
            PassWeights::of_target(TargetWindow::new(-0.3, 0.1))
        } else if weights.is_empty() {
            PassWeights::none()
        } else {
            PassWeights::quantise(&weights)
        };
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
        SumQuery::new(shape, encoding.clone(), pass).expect("columns fit")
    };
    maps.into_iter().map(query).collect()
}

fn gram(target: ProductTarget, [diagonal, off_diagonal, cross, square]: [u32; 4]) -> Map {
    Map::Gram { columns: COLUMNS as u32, target, diagonal, off_diagonal, cross, square }
}

/// A lattice row as plain values: within the norm bound or not, with any step.
fn lattice_row() -> impl Strategy<Value = (Vec<i16>, f32)> {
    let coordinate = prop_oneof![Just(0i16), Just(32767), Just(-32767), Just(i16::MIN), any::<i16>(), -100..100i16];
    // From 2^-20: proptest 1.12 panics where it draws below a start that is no multiple of the last place of the end.
    let step = prop_oneof![Just(1.0f32), Just(f32::MAX), f32::EPSILON * 8.0..10.0];
    (prop::collection::vec(coordinate, COLUMNS), step)
}

fn label() -> impl Strategy<Value = CodedLabel> {
    prop_oneof![Just(0), Just(1), Just(2), Just(32767), Just(-32767), Just(UNUSABLE_LABEL), any::<CodedLabel>()]
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
    query.shape().sensitivity(&Relation { unit: PrivacyUnit::Row, adjacency }).expect("finite for rows").get()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_row_passes_its_sensitivity(
        weights in prop::collection::vec(-50.0f64..50.0, SCORES * COLUMNS),
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

fn taxicab(left: &[i128], right: &[i128]) -> u128 {
    left.iter().zip(right).map(|(left, right)| left.abs_diff(*right)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_row_passes_its_l1_sensitivity(
        (first, second) in (lattice_row(), lattice_row()),
        (one, other) in (label(), label()),
    ) {
        for query in queries(&[1.0; COLUMNS]) {
            let bound = |adjacency| {
                let relation = Relation { unit: PrivacyUnit::Row, adjacency };
                query.shape().l1_sensitivity(&relation).map_or(u128::MAX, |bound| bound.get())
            };
            let added = contribution(&query, &first, one);
            prop_assert!(taxicab(&added, &vec![0; added.len()]) <= bound(Adjacency::AddRemove));
            prop_assert!(taxicab(&added, &contribution(&query, &second, other)) <= bound(Adjacency::Replace));
            prop_assert!(taxicab(&added, &contribution(&query, &first, other)) <= bound(Adjacency::Label));
        }
    }

    /// Codes of three numbers and a category: any 16 bits, legal or not.
    #[test]
    fn no_row_passes_the_sensitivity_of_marginals_or_bins(
        first in prop::collection::vec(prop_oneof![Just(0u16), Just(32767), Just(16384), any::<u16>()], 4),
        second in prop::collection::vec(prop_oneof![Just(0u16), Just(32767), Just(16384), any::<u16>()], 4),
        (one, other) in (label(), label()),
        classes in prop_oneof![Just(0u32), Just(2), Just(3)],
    ) {
        let schema = generate::schema(3, 1, "unit = \"row\"\nadjacency = \"add-remove\"");
        let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
        let marginals = Map::Marginals { classes, numeric: 3, categorical: 1, categories: 4 };
        for map in [marginals, Map::NumberBins { numeric: 3, bins: 2 }, Map::NumberBins { numeric: 3, bins: 256 }] {
            let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
            let query = SumQuery::new(shape, encoding.clone(), PassWeights::none()).expect("columns fit");
            let contribution = |codes: &[u16], label| {
                let mut sum = PartialSum::zero(&query);
                sum.add_codes(&query, codes, label);
                reveal(sum)
            };
            let added = contribution(&first, one);
            prop_assert!(distance_square(&added, &vec![0; added.len()]) <= bound(&query, Adjacency::AddRemove));
            prop_assert!(distance_square(&added, &contribution(&second, other)) <= bound(&query, Adjacency::Replace));
            prop_assert!(distance_square(&added, &contribution(&first, other)) <= bound(&query, Adjacency::Label));
        }
    }

    /// One changed label, or one party's replaced votes, however hostile.
    #[test]
    fn no_label_and_no_party_passes_the_sensitivity_of_a_matrix_product(
        values in prop::collection::vec(-1000i32..1000, 12),
        (one, other) in (label(), label()),
        votes in prop::collection::vec(prop_oneof![any::<i32>(), -3..9i32], 24),
        outputs in prop_oneof![Just(1u32), Just(3)],
        target in prop_oneof![Just(ProductTarget::Number), Just(ProductTarget::Class)],
        (centre, half, place) in (-1.0..1.0f64, 0.0..1.0f64, -1.5..1.5f64),
    ) {
        let matrix = Arc::new(PublicMatrix::new(3, values).expect("short rows"));
        let (label_low, label_high) = if outputs > 1 { (0, 5) } else { (-4, 5) };
        let map = |eigenvalue| Map::MatrixProduct {
            columns: 3,
            outputs,
            target,
            label_low,
            label_high,
            rows: 4,
            row_norm_square: matrix.row_norm_square(),
            eigenvalue,
        };
        let asked = |eigenvalue| {
            let shape = QueryShape::new(map(eigenvalue), PrivacyUnit::Row, 1000).expect("small");
            SumQuery::of_matrix(shape, matrix.clone()).expect("within its own bounds")
        };
        let (query, of_votes) = (asked(0), asked(matrix.eigenvalue_bound().expect("small")));
        let relation = |adjacency| Relation { unit: PrivacyUnit::Row, adjacency };
        for query in [&query, &of_votes] {
            prop_assert!(query.shape().sensitivity(&relation(Adjacency::AddRemove)).is_none());
            prop_assert!(query.shape().sensitivity(&relation(Adjacency::Replace)).is_none());
        }
        prop_assert!(of_votes.shape().sensitivity(&relation(Adjacency::Label)).is_none());
        let number = target == ProductTarget::Number;
        let window = if number { TargetWindow::new(centre, half).with_missing(place) } else { TargetWindow::BOUNDS };
        let windowed = SumQuery::of_matrix_in(query.shape().clone(), matrix.clone(), window).expect("numbers have one");
        prop_assert_eq!(windowed.shape().sensitivity(&relation(Adjacency::Label)), query.shape().sensitivity(&relation(Adjacency::Label)));
        let of_labels = |map| QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small");
        let bins = SumQuery::of_matrix_in(of_labels(Map::LabelsByBin { bins: 64 }), matrix.clone(), window).expect("rows");
        let squares = SumQuery::of_matrix_in(of_labels(Map::LabelSquares), matrix, window).expect("rows");
        for query in [&query, &windowed, &bins, &squares] {
            for row in 0..4 {
                let labelled = |label| {
                    let mut sum = PartialSum::zero(query);
                    sum.add_label(query, row, label);
                    reveal(sum)
                };
                prop_assert!(distance_square(&labelled(one), &labelled(other)) <= bound(query, Adjacency::Label));
            }
        }
        let voted = |votes: &[i32]| {
            let mut sum = PartialSum::zero(&of_votes);
            sum.add_party(&of_votes, &votes[..4 * outputs as usize]);
            reveal(sum)
        };
        let (mine, theirs) = (voted(&votes), voted(&votes[votes.len() / 2..]));
        prop_assert!(distance_square(&mine, &theirs) <= bound(&of_votes, Adjacency::Party));
    }
}

/// A hostile votes file cannot give a row more than one vote by spreading it over the classes.
#[test]
fn the_votes_of_a_row_count_together() {
    let matrix = Arc::new(PublicMatrix::new(1, vec![1, 2, -3]).expect("short rows"));
    let query = of_votes(&matrix, 3, 0, 5);
    let voted = |votes: [i32; 9]| {
        let mut sum = PartialSum::zero(&query);
        sum.add_party(&query, &votes);
        reveal(sum)
    };
    assert_eq!(voted([0, 5, 5, 3, 4, 9, -7, i32::MAX, 5]), voted([0, 5, 0, 3, 2, 0, 0, 5, 0]));
    assert_eq!(voted([0, 5, 0, 3, 2, 0, 0, 5, 0]), [6, 5 + 4 - 15, 0]);
}

/// Both moments of a number, over all pairs of a fine grid of codes: within 13/10 of a square step, and nearly there.
#[test]
fn the_moments_of_a_number_move_by_their_bound_and_no_more() {
    let map = |numeric| Map::Marginals { classes: 2, numeric, categorical: 0, categories: 0 };
    let of = |numeric| {
        let shape = QueryShape::new(map(numeric), PrivacyUnit::Row, 1000).expect("small");
        shape.sensitivity(&Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Replace }).expect("finite").get()
    };
    let declared = of(2) - of(1);
    let codes = || (0..=CODE_MAX).step_by(61).chain([CODE_MAX]);
    let moved = |one: u16, other: u16| {
        let pairs = moments(one).into_iter().zip(moments(other));
        pairs.map(|(one, other)| u128::from(one.abs_diff(other)).pow(2)).sum::<u128>()
    };
    let largest = codes().flat_map(|one| codes().map(move |other| moved(one, other))).max().expect("pairs");
    assert!(largest <= declared && largest as f64 > 0.98 * declared as f64, "{largest} of {declared}");
}

/// Clipping each row keeps the direction of its gradient, and takes only what is too long, to the whole slope below.
#[test]
fn a_clipped_gradient_is_the_gradient_with_a_smaller_slope() {
    let mut weights = vec![0.0; COLUMNS];
    weights[0] = -100.0;
    let queries = queries(&weights);
    let clip = 7_777_777u128;
    let row = |length: i16| ([length, 0, -length / 2, 0, 0, 0, 0, 0].to_vec(), 1.0f32);
    let whole = |query: &&SumQuery| matches!(query.shape().map(), Map::Gradient { loss: Loss::Logistic, .. });
    let cut = |query: &&SumQuery| matches!(query.shape().map(), Map::ClippedGradient { .. });
    let pair = [queries.iter().find(whole).expect("listed"), queries.iter().find(cut).expect("listed")];
    let [plain, clipped] = pair.map(|query| contribution(query, &row(20_000), 1));
    let (long, short) = (plain[0].unsigned_abs(), clipped[0].unsigned_abs());
    assert!(short < long && plain[0].signum() == clipped[0].signum());
    assert_eq!(plain[0] * clipped[2], plain[2] * clipped[0], "one direction");
    let (norm, one_slope) = (clipped.iter().map(|value| value.unsigned_abs().pow(2)).sum::<u128>(), 22_361u128);
    assert!(norm <= clip.pow(2) && norm > (clip - one_slope).pow(2));
    // A short row is left alone.
    let [plain, clipped] = pair.map(|query| contribution(query, &row(2000), 1));
    assert_eq!(plain, clipped);
}

proptest! {
    /// A party's model may be anything: it is shortened in integers.
    #[test]
    fn no_party_passes_the_sensitivity_of_its_vector(
        one in prop::collection::vec(prop_oneof![any::<i64>(), -3000..3000i64], 6),
        other in prop::collection::vec(prop_oneof![any::<i64>(), -3000..3000i64], 6),
        norm in 1u32..5000,
    ) {
        let matrix = Arc::new(PublicMatrix::new(3, vec![1; 12]).expect("short rows"));
        let map = Map::PartyVectors { columns: 3, outputs: 2, penalty: 1, norm };
        let query = SumQuery::of_matrix(QueryShape::new(map, PrivacyUnit::Row, 4).expect("small"), matrix).expect("fits");
        let added = |weights: &[i64]| {
            let mut sum = PartialSum::zero(&query);
            sum.add_party_vector(&query, weights);
            reveal(sum)
        };
        prop_assert_eq!(bound(&query, Adjacency::Party), 4 * u128::from(norm).pow(2));
        prop_assert!(distance_square(&added(&one), &[0; 6]) <= u128::from(norm).pow(2));
        prop_assert!(distance_square(&added(&one), &added(&other)) <= bound(&query, Adjacency::Party));
    }
}

#[test]
fn the_minimum_of_parties_has_the_published_sensitivity_and_what_computing_it_costs() {
    let steps = |rule, penalty, parties| {
        let map = Map::PartyMinimum { columns: 9, outputs: 1, rule, penalty, parties };
        let shape = QueryShape::new(map, PrivacyUnit::Row, 100).expect("small");
        let relation = |adjacency| Relation { unit: PrivacyUnit::Row, adjacency };
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace, Adjacency::Label] {
            assert!(shape.sensitivity(&relation(adjacency)).is_none());
        }
        shape.sensitivity(&relation(Adjacency::Party)).expect("finite").get().isqrt()
    };
    // Penalty 1/2: 2 / (1/2) = 4 units of 2^24 steps; the tolerance 2 · 2^-24 / (1/2) is 4 steps; rounding sqrt(9) = 3.
    assert_eq!(steps(VoteRule::Majority, 1 << 19, 1000), (4 << 24) + 4 + 3);
    // 4 / 1000 of it, rounded up.
    assert_eq!(steps(VoteRule::Soft, 1 << 19, 1000), 67_109 + 4 + 3);
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

/// What a matrix product adds is what its definition says, although the code does not branch on the label.
#[test]
fn a_label_is_multiplied_as_defined() {
    let matrix = Arc::new(PublicMatrix::new(2, vec![3, -4]).expect("short rows"));
    let (label_low, label_high) = (-4, 5);
    for target in [ProductTarget::Number, ProductTarget::Class] {
        for outputs in [1u32, 3] {
            let map = Map::MatrixProduct {
                columns: 2,
                outputs,
                target,
                label_low: if outputs > 1 { 0 } else { label_low },
                label_high,
                rows: 1,
                row_norm_square: 25,
                eigenvalue: 0,
            };
            let shape = QueryShape::new(map, PrivacyUnit::Row, 10).expect("small");
            let query = SumQuery::of_matrix(shape, matrix.clone()).expect("within its bounds");
            for label in i16::MIN..=i16::MAX {
                let mut sum = PartialSum::zero(&query);
                sum.add_label(&query, 0, label);
                let factor = |output: u32| match (outputs, target) {
                    (3, _) if i32::from(label) == output as i32 => label_high,
                    (3, _) => 0,
                    (_, _) if label == i16::MIN => 0,
                    (_, ProductTarget::Number | ProductTarget::NumberOverNorm) => {
                        i32::from(label).clamp(label_low, label_high)
                    }
                    (_, ProductTarget::Class) => [label_low, label_high].get(label as usize).copied().unwrap_or(0),
                };
                let expected: Vec<i128> =
                    (0..outputs).flat_map(|output| [3, -4].map(|weight| i128::from(weight * factor(output)))).collect();
                assert_eq!(reveal(sum), expected, "{label} of {outputs} outputs");
            }
        }
    }
}
