//! Sensitivities, ranges and steps of small shapes, and what a public matrix is held to.

use super::*;
use crate::adjacency::PrivacyUnit;
use crate::adjacency::{Adjacency, Relation};
use crate::coding::Coding;
use crate::schema::{ROWS_MAX_LIMIT, Schema};
use crate::units::SensitivitySquared;

fn shape(map: Map) -> QueryShape {
    QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small")
}

fn under(shape: &QueryShape, adjacency: Adjacency) -> Option<u128> {
    let relation = Relation { unit: shape.unit().clone(), adjacency };
    shape.sensitivity(&relation).map(SensitivitySquared::get)
}

#[test]
fn gradient_sensitivity_follows_the_table() {
    let gradient = shape(Map::Gradient { loss: Loss::Logistic, columns: 5 });
    let once = (2048u128 * 32767).pow(2);
    assert_eq!(under(&gradient, Adjacency::AddRemove), Some(once));
    assert_eq!(under(&gradient, Adjacency::Replace), Some(4 * once));
    assert_eq!(under(&gradient, Adjacency::Label), Some(once));
    assert_eq!(under(&gradient, Adjacency::Party), None);
}

#[test]
fn a_unit_of_rows_multiplies_the_sensitivity() {
    let unit = PrivacyUnit::Column { column: "patient".to_owned(), rows_max: 4 };
    let grouped = QueryShape::new(Map::ClassCount { classes: 2 }, unit, 1000).expect("small");
    assert_eq!(under(&grouped, Adjacency::AddRemove), Some(16 * (1 << 40)));
    let by_row = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
    assert_eq!(grouped.sensitivity(&by_row), None, "another unit than the query's own has no bound");
}

#[test]
fn shapes_that_could_overflow_are_refused() {
    let build = |rows_max| QueryShape::new(Map::LogLoss { classes: 2 }, PrivacyUnit::Row, rows_max);
    assert_eq!(build(0), Err(QueryError::RowsMax(0)));
    assert!(build(ROWS_MAX_LIMIT).is_ok());
    assert_eq!(build(ROWS_MAX_LIMIT + 1), Err(QueryError::RowsMax(ROWS_MAX_LIMIT + 1)));
    assert_eq!(
        QueryShape::new(Map::ClassCount { classes: 1 }, PrivacyUnit::Row, 1),
        Err(QueryError::Classes(1)),
        "a row of class 1 would have no place"
    );
    let document = r#"{"map":{"log-loss":{"classes":2}},"unit":"row","rows_max":0}"#;
    assert!(serde_json::from_str::<QueryShape>(document).is_err(), "serde goes through the constructor");
}

const PRODUCT: Map = Map::MatrixProduct {
    columns: 2,
    outputs: 1,
    target: ProductTarget::Class,
    label_low: 0,
    label_high: 1,
    rows: 0,
    row_norm_square: 25,
    eigenvalue: 0,
};
const VECTORS: Map = Map::PartyVectors { columns: 2, outputs: 1, penalty: 1, norm: 1 };
const MINIMUM: Map = Map::PartyMinimum { columns: 2, outputs: 1, rule: VoteRule::Soft, penalty: 1, parties: 5 };
const GRAM: Map =
    Map::Gram { columns: 3, target: ProductTarget::Class, diagonal: 1, off_diagonal: 1, cross: 1, square: 1 };

/// The map with some figures replaced: each is the name of a field and a number.
fn with(map: &Map, figures: &[(&str, i64)]) -> Map {
    let mut document = serde_json::to_value(map).expect("a map is a document");
    let fields = document.as_object_mut().and_then(|kinds| kinds.values_mut().next()).expect("one kind");
    for (name, number) in figures {
        *fields.get_mut(*name).expect("a field of the map") = (*number).into();
    }
    serde_json::from_value(document).expect("the same fields")
}

#[test]
fn every_figure_of_a_shape_has_its_range() {
    let build = |map: &Map, figures: &[(&str, i64)]| QueryShape::new(with(map, figures), PrivacyUnit::Row, 1000);
    let rows_most = ROWS_MAX_LIMIT as i64;
    for (map, name, legal, illegal) in [
        (&GRAM, "columns", vec![1], vec![0]),
        (&GRAM, "diagonal", vec![0, 4096], vec![4097]),
        (&GRAM, "square", vec![0, 4096], vec![4097]),
        (&PRODUCT, "outputs", vec![1], vec![0]),
        (&PRODUCT, "label_low", vec![-(1 << 20), 0], vec![-(1 << 20) - 1, 1]),
        (&PRODUCT, "label_high", vec![0, 1 << 20], vec![-1, (1 << 20) + 1]),
        (&PRODUCT, "rows", vec![0, rows_most], vec![rows_most + 1]),
        (&PRODUCT, "row_norm_square", vec![0, 1 << 48], vec![(1 << 48) + 1]),
        (&VECTORS, "norm", vec![1, 1 << 30], vec![0, (1 << 30) + 1]),
        (&VECTORS, "penalty", vec![1], vec![0]),
        (&MINIMUM, "penalty", vec![1], vec![0]),
        (&MINIMUM, "parties", vec![1, rows_most], vec![0, rows_most + 1]),
    ] {
        for number in legal {
            assert!(build(map, &[(name, number)]).is_ok(), "{name} {number}");
        }
        for number in illegal {
            assert!(matches!(build(map, &[(name, number)]), Err(QueryError::Range(_))), "{name} {number}");
        }
    }
    assert_eq!(shape(GRAM).rows_max(), 1000);
}

#[test]
fn coordinates_are_counted() {
    for (map, coordinates) in [
        (GRAM, 6 + 3 + 1),
        (with(&PRODUCT, &[("columns", 3), ("outputs", 4)]), 12),
        (with(&VECTORS, &[("columns", 5), ("outputs", 4)]), 20),
        (Map::ScoreHistogram { buckets: 5 }, 10),
        (Map::ConfidenceSteps { classes: 3, models: 6 }, 6),
        (Map::ResidualSteps { models: 5 }, 5),
        (Map::SoftmaxGradient { classes: 3, columns: 7 }, 21),
        (Map::Marginals { classes: 3, numeric: 4, categorical: 1, categories: 6 }, 3 + 6 + 8),
        (Map::SquaredError, 4),
    ] {
        assert_eq!(shape(map).coordinates(), coordinates);
    }
}

#[test]
#[allow(clippy::float_cmp, reason = "powers of two")]
fn steps_of_sums_are_those_of_what_is_added_up() {
    let matrix = Arc::new(PublicMatrix::new(2, vec![3, 4]).expect("short rows"));
    let of_matrix = |map| SumQuery::of_matrix(shape(map), matrix.clone()).expect("within the bounds").sum_step();
    let steps = [of_matrix(PRODUCT), of_matrix(VECTORS), of_matrix(MINIMUM)];
    assert_eq!(steps, [1.0, 2f64.powi(-20), 2f64.powi(-24)]);

    let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                  [features]\na = { bounds = [0, 1] }\n";
    let schema = Schema::from_text(schema).expect("legal");
    let planned = QueryShape::of_schema(Map::SquaredError, &schema);
    assert_eq!(planned, QueryShape::new(Map::SquaredError, PrivacyUnit::Row, schema.privacy().rows_max));
    let coding = Coding::of(&schema);
    // Rows within norm 3: one lattice step is 3 / 32767, and a slope has 2048 steps.
    let encoding = Arc::new(Encoding::plain(coding, crate::encoding::NormRule::Clip(3.0)));
    let of_table = |map: Map| {
        let weights = map.weights(2);
        let weights = if weights == 0 { PassWeights::none() } else { PassWeights::quantise(&vec![1.0; weights]) };
        SumQuery::new(shape(map), encoding.clone(), weights).expect("two columns").sum_step()
    };
    let gradient = of_table(Map::Gradient { loss: Loss::Logistic, columns: 2 });
    assert!((gradient * 2048.0 * 32767.0 / 3.0 - 1.0).abs() < 1e-3, "{gradient}");
    assert_eq!(of_table(Map::ClassCount { classes: 2 }), 2f64.powi(-20));
    assert_eq!(of_table(Map::LogLoss { classes: 2 }), 2f64.powi(-20));
    assert_eq!(of_table(with(&GRAM, &[("columns", 2)])), 1.0);
}

#[test]
fn every_score_has_a_weight_for_each_column() {
    let columns = 7;
    for (map, scores) in [
        (Map::ClassCount { classes: 3 }, 0),
        (Map::Marginals { classes: 2, numeric: 3, categorical: 1, categories: 3 }, 0),
        (Map::NumberBins { numeric: 3, bins: 32 }, 0),
        (Map::TargetSum, 0),
        (with(&GRAM, &[("columns", 7)]), 0),
        (Map::Gradient { loss: Loss::Huber, columns }, 1),
        (Map::ClippedGradient { columns, clip: 5 }, 1),
        (Map::SoftmaxGradient { classes: 3, columns }, 3),
        (Map::BoundedSoftmaxGradient { classes: 4, columns }, 4),
        (Map::CorrectCount { classes: 2 }, 1),
        (Map::CorrectCount { classes: 3 }, 3),
        (Map::LogLoss { classes: 2 }, 1),
        (Map::LogLoss { classes: 3 }, 3),
        (Map::ScoreHistogram { buckets: 8 }, 1),
        (Map::SquaredError, 1),
        (Map::ExcessHits { classes: 2 }, 2),
        (Map::ExcessHits { classes: 3 }, 6),
        (Map::ConfidenceSteps { classes: 2, models: 4 }, 5),
        (Map::ConfidenceSteps { classes: 3, models: 3 }, 12),
        (Map::ResidualSteps { models: 3 }, 4),
    ] {
        assert_eq!(map.weights(columns as usize), scores * columns as usize, "{map:?}");
    }
}

#[test]
fn a_public_matrix_keeps_to_what_was_planned_for_it() {
    let matrix = Arc::new(PublicMatrix::new(2, vec![3, 4, 0, 5]).expect("short rows"));
    let eigenvalue = matrix.eigenvalue_bound().expect("small") as i64;
    let build = |map: &Map, figures: &[(&str, i64)]| SumQuery::of_matrix(shape(with(map, figures)), matrix.clone());
    for legal in [
        &[("row_norm_square", 25)][..],
        &[("rows", 2)],
        &[("eigenvalue", eigenvalue)],
        &[("rows", 2), ("eigenvalue", eigenvalue + 1)],
    ] {
        assert!(build(&PRODUCT, legal).is_ok(), "{legal:?}");
    }
    for illegal in [
        &[("row_norm_square", 24)][..],
        &[("rows", 1)],
        &[("rows", 3)],
        &[("eigenvalue", eigenvalue - 1)],
        &[("rows", 3), ("eigenvalue", eigenvalue)],
        &[("row_norm_square", 24), ("rows", 2)],
    ] {
        assert!(matches!(build(&PRODUCT, illegal), Err(QueryError::Matrix)), "{illegal:?}");
    }
    assert!(build(&VECTORS, &[]).is_ok() && build(&MINIMUM, &[]).is_ok());
    let empty = Arc::new(PublicMatrix::new(2, Vec::new()).expect("no row is too long"));
    for map in [VECTORS, MINIMUM] {
        assert!(matches!(SumQuery::of_matrix(shape(map), empty.clone()), Err(QueryError::Matrix)), "no rows");
    }
    let other = build(&PRODUCT, &[("columns", 3)]);
    assert!(matches!(other, Err(QueryError::Columns { expected: 3, found: 2 })));
    // How many rows there are may follow from labels: the bound that a schema declares refuses none of them.
    let one_row = QueryShape::new(PRODUCT, PrivacyUnit::Row, 1).expect("small");
    assert!(SumQuery::of_matrix(one_row, matrix.clone()).is_ok(), "more rows than declared");
    assert!(matches!(SumQuery::of_matrix(shape(GRAM), matrix), Err(QueryError::Matrix)), "a question to a table");
}
