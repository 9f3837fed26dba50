//! What is declared for every kind of question is what the formulas give, computed by another program.

use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::minimum::{Minimum, UnusableLabel};
use reticent_core::query::{Loss, MINIMUM_STEPS, MINIMUM_TOLERANCE, Map, ProductTarget, QueryShape, VoteRule};
use reticent_core::units::MuSquared;
use serde_json::Value;

const GOLDEN: &str = include_str!("../../../../testdata/golden/sensitivities.json");
const COLUMNS: u32 = 8;

/// The questions of the golden file.
fn map(name: &str) -> Map {
    if let Some(multipliers) = name.strip_prefix("gram ") {
        let mut multipliers = multipliers.split(' ').map(|one| one.parse().expect("a number"));
        let mut next = || multipliers.next().expect("four of them");
        let (diagonal, off_diagonal, cross, square) = (next(), next(), next(), next());
        let target = ProductTarget::Number;
        return Map::Gram { columns: COLUMNS, target, diagonal, off_diagonal, cross, square };
    }
    let marginals =
        |classes, numeric, categorical, categories| Map::Marginals { classes, numeric, categorical, categories };
    let columns = COLUMNS;
    match name {
        "class count" => Map::ClassCount { classes: 3 },
        "score histogram" => Map::ScoreHistogram { buckets: 5 },
        "correct count" => Map::CorrectCount { classes: 3 },
        "excess hits" => Map::ExcessHits { classes: 3 },
        "confidence steps" => Map::ConfidenceSteps { classes: 3, models: 5 },
        "residual steps" => Map::ResidualSteps { models: 5 },
        "log loss" => Map::LogLoss { classes: 3 },
        "squared error" => Map::SquaredError,
        "marginals, 2 classes" => marginals(2, 3, 2, 8),
        "marginals, a number" => marginals(0, 1, 0, 0),
        "marginals, numbers and categories" => marginals(0, 4, 3, 12),
        "bins of numbers" => Map::NumberBins { numeric: 5, bins: 64 },
        "bins of the target" => Map::TargetBins { bins: 64 },
        "target sum" => Map::TargetSum,
        "logistic gradient" => Map::Gradient { loss: Loss::Logistic, columns },
        "gradient of Huber's loss" => Map::Gradient { loss: Loss::Huber, columns },
        "two-sided gradient" => Map::Gradient { loss: Loss::TwoSidedExponential, columns },
        "clipped gradient, 1000" => Map::ClippedGradient { columns, clip: 1000 },
        "clipped gradient, 60000000" => Map::ClippedGradient { columns, clip: 60_000_000 },
        "softmax gradient" => Map::SoftmaxGradient { classes: 3, columns },
        "bounded softmax gradient" => Map::BoundedSoftmaxGradient { classes: 3, columns },
        other => panic!("no question is called {other}"),
    }
}

fn integers(values: &Value) -> Option<Vec<u128>> {
    let values = values.as_array()?.iter();
    Some(values.map(|value| value.as_str().expect("digits").parse().expect("an integer")).collect())
}

#[test]
fn every_question_declares_what_the_formulas_give() {
    let cases: Vec<Value> = serde_json::from_str(GOLDEN).expect("JSON");
    assert_eq!(cases.len(), 27);
    for case in cases {
        let name = case["query"].as_str().expect("a name");
        let (l2, l1) = (integers(&case["l2_square"]).expect("three"), integers(&case["l1"]));
        for rows_max in [1u32, 3] {
            let unit = match rows_max {
                1 => PrivacyUnit::Row,
                rows_max => PrivacyUnit::Column { column: "id".to_owned(), rows_max },
            };
            let shape = QueryShape::new(map(name), unit.clone(), 1000).expect("in range");
            let rows = u128::from(rows_max);
            for (place, adjacency) in
                [Adjacency::AddRemove, Adjacency::Replace, Adjacency::Label].into_iter().enumerate()
            {
                let relation = Relation { unit: unit.clone(), adjacency };
                let declared = shape.sensitivity(&relation).expect("finite").get();
                assert_eq!(declared, rows * rows * l2[place], "{name}, {adjacency}, {rows_max} rows");
                let declared = shape.l1_sensitivity(&relation).map(|one| one.get());
                assert_eq!(declared, l1.as_ref().map(|l1| rows * l1[place]), "L1 of {name}, {adjacency}");
                assert_eq!(shape.perturbation_price_up(&relation), Some(MuSquared::ZERO));
            }
            let party = Relation { unit, adjacency: Adjacency::Party };
            assert!(shape.sensitivity(&party).is_none() && shape.l1_sensitivity(&party).is_none());
        }
    }
}

/// Nothing is declared for a unit that is not the question's own.
#[test]
fn another_unit_has_no_bound() {
    let unit = PrivacyUnit::Column { column: "id".to_owned(), rows_max: 2 };
    let minimum = Map::Minimum(Minimum {
        classes: 2,
        columns: COLUMNS,
        l2: 1 << 20,
        perturbation: 1 << 47,
        unusable: UnusableLabel::Skip,
    });
    let vectors = Map::PartyVectors { columns: COLUMNS, outputs: 1, penalty: 1, norm: 9 };
    for map in [Map::ClassCount { classes: 2 }, Map::SquaredError, minimum.clone(), vectors] {
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("in range");
        for adjacency in Adjacency::ALL {
            let relation = Relation { unit: unit.clone(), adjacency };
            assert!(shape.sensitivity(&relation).is_none() && shape.l1_sensitivity(&relation).is_none());
        }
    }
    let shape = QueryShape::new(minimum, PrivacyUnit::Row, 1000).expect("in range");
    let own = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
    assert!(shape.perturbation_price_up(&own).is_some_and(|price| price > MuSquared::ZERO));
    assert!(shape.perturbation_price_up(&Relation { unit, ..own }).is_none());
}

#[test]
fn what_parties_add_is_bounded_under_party_adjacency_alone() {
    let party = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Party };
    let product = |outputs, rows, eigenvalue| Map::MatrixProduct {
        columns: 3,
        outputs,
        target: ProductTarget::Class,
        label_low: if outputs > 1 { 0 } else { -4 },
        label_high: 5,
        rows,
        row_norm_square: 700,
        eigenvalue,
    };
    let square = |map: Map, relation: &Relation| {
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("in range");
        shape.sensitivity(relation).map(|one| one.get())
    };
    // Votes span 9, or 5 in each of two outputs; four rows, and an eigenvalue of 1100. 17/20 of 9/2 sqrt(4400) is 253.7.
    assert_eq!(square(product(1, 4, 1100), &party), Some(4 * 253 * 253));
    assert_eq!(square(product(3, 4, 1100), &party), Some(2 * 25 * 4 * 1100));
    assert_eq!(square(product(1, 0, 1100), &party), None);
    assert_eq!(square(product(1, 4, 0), &party), None);
    let label = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Label };
    assert_eq!(square(product(1, 4, 0), &label), Some(81 * 700));
    assert_eq!(square(product(3, 0, 0), &label), Some(2 * 25 * 700));
    // Behind one private label may be a party's votes on every row.
    assert_eq!(square(product(1, 4, 1100), &label), None);
    assert_eq!(square(product(3, 4, 1100), &label), None);
    let vectors = Map::PartyVectors { columns: 3, outputs: 2, penalty: 1, norm: 50 };
    assert_eq!(square(vectors.clone(), &party), Some(4 * 2500));
    assert_eq!(square(vectors, &label), None);
    let minimum = Map::PartyMinimum { columns: 3, outputs: 2, rule: VoteRule::Soft, penalty: 1 << 20, parties: 10 };
    assert_eq!(square(minimum, &label), None);
}

/// `2/(lambda M) + 2 tau/lambda + sqrt(d)` in lattice steps, each term rounded up, with lambda 1/2: row F92 of formulas.
#[test]
fn the_minimum_of_parties_is_priced_by_its_formula() {
    let party = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Party };
    let steps = u128::from(MINIMUM_STEPS);
    let tolerance = (4 * steps).div_ceil(u128::from(MINIMUM_TOLERANCE));
    for (rule, shared) in [(VoteRule::Majority, 4 * steps), (VoteRule::Soft, (4 * steps).div_ceil(10))] {
        let map = Map::PartyMinimum { columns: 3, outputs: 2, rule, penalty: 1 << 19, parties: 10 };
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1000).expect("in range");
        let expected = shared + tolerance + 3;
        assert_eq!(shape.sensitivity(&party).map(|one| one.get()), Some(expected * expected));
    }
}

#[test]
fn a_label_of_a_unit_moves_two_bins_and_one_square() {
    let unit = PrivacyUnit::Column { column: "person".to_owned(), rows_max: 3 };
    let bins = 9 * 2 * (1 << 40);
    let of_older_ledgers = serde_json::from_str("\"label-bins\"").expect("still read");
    for (map, expected) in [
        (Map::LabelsByBin { bins: 2 }, bins),
        (Map::LabelsByBin { bins: 256 }, bins),
        (of_older_ledgers, bins),
        (Map::LabelSquares, 9 * 32_767u128.pow(4)),
    ] {
        let shape = QueryShape::new(map, unit.clone(), 1000).expect("in range");
        let under = |adjacency| shape.sensitivity(&Relation { unit: unit.clone(), adjacency }).map(|one| one.get());
        assert_eq!(under(Adjacency::Label), Some(expected));
        for adjacency in [Adjacency::AddRemove, Adjacency::Replace, Adjacency::Party] {
            assert_eq!(under(adjacency), None, "{adjacency}");
        }
    }
}

#[test]
fn labels_of_a_unit_of_several_rows_move_a_product_together() {
    let unit = PrivacyUnit::Column { column: "person".to_owned(), rows_max: 3 };
    let map = Map::MatrixProduct {
        columns: 3,
        outputs: 1,
        target: ProductTarget::Class,
        label_low: 0,
        label_high: 5,
        rows: 4,
        row_norm_square: 700,
        eigenvalue: 0,
    };
    let shape = QueryShape::new(map, unit.clone(), 1000).expect("in range");
    let found = shape.sensitivity(&Relation { unit, adjacency: Adjacency::Label }).map(|one| one.get());
    assert_eq!(found, Some(9 * 25 * 700));
}
