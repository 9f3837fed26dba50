//! Sums are the same integers for any order, block size and number of threads, and equal the scalar reference.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::{CODE_MAX, Coding};
use reticent_core::contribution::UNUSABLE_LABEL;
use reticent_core::encoding::{Encoding, LatticeRow, NormRule};
use reticent_core::engine::Engine;
use reticent_core::pass_weights::PassWeights;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::{GRAM_MULTIPLIER_MAX, Loss, Map, ProductTarget, QueryShape, SumQuery};
use reticent_core::schema::Schema;
use reticent_core::sum::PartialSum;
use reticent_core::target_window::TargetWindow;
use reticent_curator::lattice::BLOCK_ROWS_MAX;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_math::fixed_sequence::FixedSequence;
use reticent_testkit::generate::{self, GeneratedRow};
use reticent_testkit::{disclosure, reveal};

pub(crate) const COLUMNS: usize = 1 + 3 + 2 * 4;
pub(crate) const PRIVACY: &str = "unit = \"row\"\nadjacency = \"add-remove\"";

pub(crate) fn encoding(schema: &Schema, norm: NormRule) -> Arc<Encoding> {
    let centre = (0..COLUMNS).map(|column| column as f64 / 20.0).collect();
    Arc::new(Encoding::new(Coding::of(schema), centre, vec![1.25; COLUMNS], norm))
}

pub(crate) fn query(map: Map, encoding: &Arc<Encoding>, weights: &[f64]) -> SumQuery {
    // So narrow that the few labels of these tables lie apart in it.
    let is_windowed = matches!(
        map,
        Map::TargetSum | Map::TargetBins { .. } | Map::Gram { target: ProductTarget::Number, square: 1, .. }
    );
    let columns = encoding.coding().columns().len();
    let weights: Vec<f64> = weights.iter().cycle().take(map.weights(columns)).copied().collect();
    let pass = if is_windowed {
        PassWeights::of_target(TargetWindow::new(1e-4, 2e-4))
    } else if weights.is_empty() {
        PassWeights::none()
    } else {
        PassWeights::quantise(&weights)
    };
    let shape = QueryShape::new(map, PrivacyUnit::Row, 1 << 20).expect("small");
    SumQuery::new(shape, encoding.clone(), pass).expect("columns fit")
}

fn gram(target: ProductTarget, [diagonal, off_diagonal, cross, square]: [u32; 4]) -> Map {
    Map::Gram { columns: COLUMNS as u32, target, diagonal, off_diagonal, cross, square }
}

pub(crate) fn maps() -> [Map; 25] {
    let clipped = |clip| Map::ClippedGradient { columns: COLUMNS as u32, clip };
    [
        Map::ClassCount { classes: 2 },
        Map::Gradient { loss: Loss::Logistic, columns: COLUMNS as u32 },
        Map::CorrectCount { classes: 2 },
        Map::LogLoss { classes: 2 },
        Map::ScoreHistogram { buckets: 16 },
        Map::Gradient { loss: Loss::TwoSidedExponential, columns: COLUMNS as u32 },
        Map::Gradient { loss: Loss::Huber, columns: COLUMNS as u32 },
        Map::SoftmaxGradient { classes: 3, columns: COLUMNS as u32 },
        Map::BoundedSoftmaxGradient { classes: 3, columns: COLUMNS as u32 },
        Map::CorrectCount { classes: 3 },
        Map::ExcessHits { classes: 2 },
        Map::ExcessHits { classes: 3 },
        Map::ConfidenceSteps { classes: 2, models: 4 },
        Map::ConfidenceSteps { classes: 3, models: 3 },
        Map::ResidualSteps { models: 3 },
        gram(ProductTarget::Class, [29, 41, 20, 3]),
        gram(ProductTarget::Number, [4, 5, 0, 1]),
        Map::Marginals { classes: 2, numeric: 3, categorical: 2, categories: 8 },
        Map::Marginals { classes: 0, numeric: 3, categorical: 2, categories: 8 },
        Map::NumberBins { numeric: 3, bins: 32 },
        Map::TargetSum,
        Map::TargetBins { bins: 16 },
        // Bounds of slopes are kept for the next pass, which may have another clip norm.
        clipped(1 << 22),
        clipped(1 << 20),
        clipped(1 << 22),
    ]
}

/// Each row of a unit of its own.
pub(crate) fn table(schema: &Schema, rows: &[GeneratedRow]) -> CodedTable {
    let mut table = CodedTable::empty(schema);
    for (place, row) in rows.iter().enumerate() {
        table.push_of_unit(&place.to_be_bytes(), &row.cells(schema), row.label());
    }
    table
}

fn sum(engine: &MemoryEngine, query: &SumQuery) -> Vec<i128> {
    reveal(engine.exact_sum(query).expect("in memory"))
}

/// One row by the scalar reference alone.
fn alone(schema: &Schema, row: &GeneratedRow, query: &SumQuery) -> Vec<i128> {
    let coding = Coding::of(schema);
    let mut codes = vec![0; coding.codes()];
    coding.encode_cells(&row.cells(schema), &mut codes);
    let mut features = vec![0i16; coding.columns().len()];
    let encoding = query.encoding().expect("asked of a table");
    let step = encoding.encode_codes(&codes, &mut vec![0.0; features.len()], &mut features);
    let label = row.class.map_or(UNUSABLE_LABEL, |class| class as i16);
    let mut sum = PartialSum::zero(query);
    if matches!(query.shape().map(), Map::Marginals { .. } | Map::NumberBins { .. }) {
        sum.add_codes(query, &codes, label);
        return reveal(sum);
    }
    sum.add_row(query, LatticeRow { features: &features, step }, label);
    reveal(sum)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn sums_do_not_depend_on_order_blocks_or_threads(
        rows in generate::rows(3, 2, 0..150),
        order in any::<u64>(),
        block_rows in prop_oneof![Just(1usize), Just(31), Just(33), 1..200usize],
        threads in 1..4usize,
        weights in prop::collection::vec(-8.0f64..8.0, COLUMNS),
        norm in prop_oneof![Just(NormRule::OwnNorm), (0.5f64..6.0).prop_map(NormRule::Clip)],
    ) {
        let schema = generate::schema(3, 2, PRIVACY);
        let encoding = encoding(&schema, norm);
        let mut shuffled = rows.clone();
        let mut sequence = FixedSequence::new(order);
        for index in (1..shuffled.len()).rev() {
            shuffled.swap(index, sequence.next_below(index as u64 + 1) as usize);
        }
        let plain = MemoryEngine::new(table(&schema, &rows));
        let other = MemoryEngine::with_block_rows(table(&schema, &shuffled), block_rows);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        for map in maps() {
            let query = query(map, &encoding, &weights);
            let found = sum(&plain, &query);
            prop_assert_eq!(&found, &pool.install(|| sum(&other, &query)));

            let mut by_row = vec![0i128; found.len()];
            for row in &rows {
                for (total, one) in by_row.iter_mut().zip(alone(&schema, row, &query)) {
                    *total += one;
                }
            }
            prop_assert_eq!(&found, &by_row, "a row counts the same alone or in company");
        }
    }

    /// More rows than a block has, of which each keeps its own place and bounds.
    #[test]
    fn sums_of_several_blocks_are_those_of_their_rows(
        rows in generate::rows(3, 2, 1..40),
        often in 60..120usize,
        weights in prop::collection::vec(-8.0f64..8.0, COLUMNS),
    ) {
        let schema = generate::schema(3, 2, PRIVACY);
        // Rows of many lengths, so that their largest slopes differ.
        let encoding = encoding(&schema, NormRule::Clip(30.0));
        let many: Vec<_> = rows.iter().flat_map(|row| std::iter::repeat_n(row, often)).cloned().collect();
        let engine = MemoryEngine::new(table(&schema, &many));
        for map in maps() {
            let query = query(map, &encoding, &weights);
            let found = sum(&engine, &query);
            let mut by_row = vec![0i128; found.len()];
            for row in &rows {
                for (total, one) in by_row.iter_mut().zip(alone(&schema, row, &query)) {
                    *total += often as i128 * one;
                }
            }
            prop_assert_eq!(&found, &by_row, "{:?}", query.shape().map());
        }
    }

    #[test]
    fn inserting_a_row_moves_the_sum_by_that_row_alone(
        rows in generate::rows(3, 2, 1..100),
        place in any::<prop::sample::Index>(),
        weights in prop::collection::vec(-8.0f64..8.0, COLUMNS),
    ) {
        let schema = generate::schema(3, 2, PRIVACY);
        let encoding = encoding(&schema, NormRule::OwnNorm);
        let query = query(maps()[1].clone(), &encoding, &weights);
        let place = place.index(rows.len());
        let mut without = rows.clone();
        let removed = without.remove(place);
        let whole = sum(&MemoryEngine::new(table(&schema, &rows)), &query);
        let rest = sum(&MemoryEngine::new(table(&schema, &without)), &query);
        let difference: Vec<i128> = whole.iter().zip(&rest).map(|(whole, rest)| whole - rest).collect();
        prop_assert_eq!(difference, alone(&schema, &removed, &query));
    }
}

/// Under label adjacency features are public, and labels meet the public rows by their place.
#[test]
fn labels_meet_the_rows_of_a_public_matrix() {
    let schema = generate::schema(1, 0, "unit = \"row\"\nadjacency = \"label\"");
    let row = |value: f64, class| GeneratedRow { values: vec![value], class };
    let rows = [row(0.0, Some(1)), row(10.0, Some(0)), row(5.0, None), row(2.5, Some(1))];
    let engine = MemoryEngine::with_block_rows(table(&schema, &rows), 3);
    let features = engine.public_features(&disclosure()).expect("in memory").expect("has rows");
    assert_eq!((features.columns, features.rows()), (2, 3), "a row without a usable label is not there");
    assert_eq!(features.codes, [CODE_MAX, 0, CODE_MAX, CODE_MAX, CODE_MAX, CODE_MAX.div_ceil(4)]);

    let matrix = Arc::new(PublicMatrix::new(1, vec![1, 10, 1000]).expect("short rows"));
    let shape = |rows_max| {
        let map = Map::MatrixProduct {
            columns: 1,
            outputs: 1,
            target: ProductTarget::Class,
            label_low: -1,
            label_high: 1,
            rows: 0,
            row_norm_square: 1_000_000,
            eigenvalue: 0,
        };
        QueryShape::new(map, PrivacyUnit::Row, rows_max).expect("small")
    };
    let query = SumQuery::of_matrix(shape(100), matrix.clone()).expect("within its bounds");
    assert_eq!(sum(&engine, &query), [1 - 10 + 1000]);
    let query = SumQuery::of_matrix(shape(2), matrix).expect("rows are not held against their declared number");
    assert_eq!(sum(&engine, &query), [1 - 10 + 1000]);
    let short = Arc::new(PublicMatrix::new(1, vec![1, 2]).expect("short rows"));
    let query = SumQuery::of_matrix(shape(100), short).expect("within its bounds");
    assert!(engine.exact_sum(&query).is_err(), "the matrix belongs to another table");
}

/// As many rows as a block may have, all alike and at full scale, under the largest multipliers.
#[test]
fn products_of_a_full_block_fit() {
    let schema = generate::schema(1, 0, PRIVACY);
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let row = GeneratedRow { values: vec![10.0], class: Some(1) };
    let rows = vec![row.clone(); BLOCK_ROWS_MAX];
    let engine = MemoryEngine::with_block_rows(table(&schema, &rows), BLOCK_ROWS_MAX);
    let largest = GRAM_MULTIPLIER_MAX;
    let map = Map::Gram {
        columns: 2,
        target: ProductTarget::Class,
        diagonal: largest,
        off_diagonal: largest,
        cross: largest,
        square: largest,
    };
    let query = query(map, &encoding, &[]);
    let by_row: Vec<i128> = alone(&schema, &row, &query).iter().map(|one| one * BLOCK_ROWS_MAX as i128).collect();
    assert!(by_row.iter().max() > Some(&(1 << 57)), "at full scale: {by_row:?}");
    assert_eq!(sum(&engine, &query), by_row);
}

#[test]
fn a_unit_keeps_its_first_rows_only() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("visits.csv");
    std::fs::write(&path, "id,x0,y\na,1,no\nb,2,yes\na,3,yes\na,4,no\nb,5,no\n,6,no\n,7,no\n,8,no\n").expect("written");
    let schema = generate::schema(1, 0, "unit = { column = \"id\", rows_max = 2 }\nadjacency = \"add-remove\"");
    let source =
        reticent_curator::source::TableSource::open(&path, &schema, reticent_curator::source::Need::FeaturesAndTarget)
            .expect("opens");
    let engine = MemoryEngine::new(CodedTable::read(source, &schema, &mut |_| {}).expect("reads"));
    let shape = QueryShape::new(Map::ClassCount { classes: 2 }, schema.privacy().unit.clone(), 100).expect("small");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let query = SumQuery::new(shape, encoding, PassWeights::none()).expect("columns fit");
    // a: no, yes (its third row is past the cap); b: yes, no; rows without an id belong to nobody and add nothing.
    assert_eq!(sum(&engine, &query), vec![2 << 20, 2 << 20]);
}
