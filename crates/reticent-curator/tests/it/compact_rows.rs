//! Rows without the zeros of wide blocks and listed columns give the sums of whole rows, from memory and from scratch files.

use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::Coding;
use reticent_core::compact_row::WIDE_BLOCK_CATEGORIES;
use reticent_core::contribution::UNUSABLE_LABEL;
use reticent_core::encoding::{Encoding, LatticeRow, NormRule};
use reticent_core::engine::Engine;
use reticent_core::minimum::{Minimum, MinimumQuery, UnusableLabel};
use reticent_core::query::{Loss, Map, ProductTarget, QueryShape, SumQuery};
use reticent_core::record::{Cell, Label};
use reticent_core::schema::Schema;
use reticent_core::sum::PartialSum;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::table::CodedTable;
use reticent_testkit::generate::GeneratedRow;
use reticent_testkit::reveal;

use crate::memory_engine::{PRIVACY, query, table};
use crate::spilled_engine::{place, spilled};

/// Categories by feature, "other" not counted: a narrow block, the narrowest wide one, a wider one.
const CATEGORIES: [usize; 3] = [3, WIDE_BLOCK_CATEGORIES - 1, 90];
/// Numbers that rows list, and how many of them.
const LISTED: usize = 6;
const LISTED_MAX: usize = 3;
/// Columns with a slot, the intercept among them.
const PLACED: usize = 1 + 2 + 4 + WIDE_BLOCK_CATEGORIES + 91;
const COLUMNS: usize = PLACED + LISTED;

fn schema(has_list: bool) -> Schema {
    let list = if has_list { format!("nonzeros_max = {LISTED_MAX}") } else { String::new() };
    let mut text = format!(
        "[privacy]\n{PRIVACY}\n[table]\nformat = \"libsvm\"\n{list}\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
         [features]\n1 = {{ bounds = [-1, 10] }}\n"
    );
    for (feature, categories) in CATEGORIES.iter().enumerate() {
        let names: Vec<String> = (0..*categories).map(|category| format!("\"c{category}\"")).collect();
        text.push_str(&format!("{} = {{ categories = [{}] }}\n", 2 + feature, names.join(", ")));
    }
    text.push_str("5 = { bounds = [-1, 10] }\n\"6..11\" = { bounds = [0, 10] }\n");
    Schema::from_text(&text).expect("legal")
}

fn rows() -> impl Strategy<Value = Vec<GeneratedRow>> {
    prop::collection::vec(row(), 0..150)
}

fn row() -> impl Strategy<Value = GeneratedRow> {
    let number = || prop_oneof![Just(0.0), Just(10.0), 0.0..10.0f64];
    let category = |feature: usize| (0..=CATEGORIES[feature]).prop_map(|category| category as f64);
    let listed = prop::collection::vec(prop_oneof![4 => Just(0.0), 1 => Just(10.0), 2 => 0.0..10.0f64], LISTED);
    let values = (number(), category(0), category(1), category(2), number(), listed);
    let class = prop_oneof![Just(Some(0)), Just(Some(1)), Just(None)];
    (values, class).prop_map(|((x, one, two, three, z, listed), class)| {
        let mut values = vec![x, one, two, three, z];
        values.extend(listed);
        GeneratedRow { values, class }
    })
}

fn maps(coding: &Coding) -> Vec<Map> {
    let columns = COLUMNS as u32;
    vec![
        Map::ClassCount { classes: 2 },
        Map::marginals(2, coding),
        Map::number_bins(coding, 8),
        Map::Gradient { loss: Loss::TwoSidedExponential, columns },
        Map::ClippedGradient { columns, clip: 1 << 23 },
        Map::SoftmaxGradient { classes: 3, columns },
        Map::BoundedSoftmaxGradient { classes: 3, columns },
        Map::Gram { columns, target: ProductTarget::Class, diagonal: 29, off_diagonal: 41, cross: 20, square: 3 },
        Map::CorrectCount { classes: 3 },
        Map::ExcessHits { classes: 3 },
        Map::ConfidenceSteps { classes: 3, models: 3 },
        Map::ResidualSteps { models: 4 },
        Map::LogLoss { classes: 2 },
        Map::ScoreHistogram { buckets: 16 },
        Map::SquaredError,
    ]
}

/// The codes of a row, and the whole row with its step, by core's scalar code.
fn whole_row(schema: &Schema, row: &GeneratedRow, encoding: &Encoding) -> (Vec<u16>, [i16; COLUMNS], f32) {
    let mut codes = vec![0; encoding.coding().codes()];
    encoding.coding().encode_cells(&row.cells(schema), &mut codes);
    let mut features = [0i16; COLUMNS];
    let step = encoding.encode_codes(&codes, &mut [0.0; COLUMNS], &mut features);
    (codes, features, step)
}

/// Row after row by core's scalar code.
fn by_reference(schema: &Schema, rows: &[GeneratedRow], query: &SumQuery) -> Vec<i128> {
    let encoding = query.encoding().expect("asked of a table");
    let mut sum = PartialSum::zero(query);
    for row in rows {
        let (codes, features, step) = whole_row(schema, row, encoding);
        let label = row.class.map_or(UNUSABLE_LABEL, |class| class as i16);
        if matches!(query.shape().map(), Map::Marginals { .. } | Map::NumberBins { .. }) {
            sum.add_codes(query, &codes, label);
        } else {
            sum.add_row(query, LatticeRow { features: &features, step }, label);
        }
    }
    reveal(sum)
}

/// A block that is centred is not wide, and so with the list.
fn encoding(schema: &Schema, shift: f64, wide: [bool; 2], list_is_centred: bool, norm: NormRule) -> Encoding {
    let mut centre = vec![shift; COLUMNS];
    if wide[0] {
        centre[6..6 + WIDE_BLOCK_CATEGORIES].fill(0.0);
    }
    if wide[1] {
        centre[6 + WIDE_BLOCK_CATEGORIES..PLACED - 1].fill(0.0);
    }
    if !list_is_centred {
        centre[PLACED..].fill(0.0);
    }
    let scale = (0..COLUMNS).map(|column| 0.5 + column as f64 / 40.0).collect();
    Encoding::new(Coding::of(schema), centre, scale, norm)
}

/// Norm of the gradient of the regularised log loss at an answer, by whole rows in floating point.
fn gradient_at(answer: &[i128], schema: &Schema, rows: &[GeneratedRow], query: &MinimumQuery, l2: f64) -> f64 {
    let weights: Vec<f64> = answer.iter().map(|weight| *weight as f64 / 2f64.powi(36)).collect();
    let centre = query.centre().iter().map(|centre| *centre as f64 / 2f64.powi(57));
    let mut gradient: Vec<f64> = weights.iter().zip(centre).map(|(weight, centre)| l2 * (weight - centre)).collect();
    for row in rows {
        let Some(class) = row.class else { continue };
        let (_, features, _) = whole_row(schema, row, query.encoding());
        let features = features.map(|one| f64::from(one) / 32768.0);
        let score: f64 = weights.iter().zip(&features).map(|(weight, one)| weight * one).sum();
        let slope = 1.0 / (1.0 + (-score).exp()) - class as f64;
        gradient.iter_mut().zip(&features).for_each(|(sum, one)| *sum += slope * one);
    }
    gradient.iter().map(|one| one * one).sum::<f64>().sqrt()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// More rows than are written out at a time where products are asked of them.
    #[test]
    fn products_of_many_rows_are_those_of_whole_rows(
        rows in prop::collection::vec(row(), 1..40),
        shift in -1.0f64..1.0,
        has_list: bool,
    ) {
        let schema = schema(has_list);
        let encoding = Arc::new(encoding(&schema, shift, [true, true], false, NormRule::Clip(3.0)));
        let often = 8000 / rows.len();
        let many: Vec<_> = rows.iter().flat_map(|row| std::iter::repeat_n(row, often)).cloned().collect();
        let engine = MemoryEngine::new(table(&schema, &many));
        let products = maps(encoding.coding()).into_iter().find(|map| matches!(map, Map::Gram { .. }));
        let query = query(products.expect("one of them"), &encoding, &[]);
        let mut expected = by_reference(&schema, &rows, &query);
        expected.iter_mut().for_each(|sum| *sum *= often as i128);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let found = one.install(|| reveal(engine.exact_sum(&query).expect("in memory")));
        prop_assert!(found == expected);
    }

    #[test]
    fn a_minimum_is_that_of_whole_rows(
        rows in rows(),
        shift in -1.0f64..1.0,
        bound in 0.5f64..6.0,
        wide in [any::<bool>(), any::<bool>()],
        has_list: bool,
        list_is_centred: bool,
        is_coarse: bool,
        l2 in 1..640u32,
        block_rows in prop_oneof![Just(1usize), 1..200usize],
        kept_bytes in prop_oneof![Just(0u64), 0..4000u64],
    ) {
        let schema = schema(has_list);
        let encoding = encoding(&schema, shift, wide, list_is_centred, NormRule::Clip(bound)).coarse(is_coarse);
        let l2 = f64::from(l2) / 64.0;
        let minimum = Minimum {
            classes: 2,
            columns: COLUMNS as u32,
            l2: (l2 * 65536.0) as u64,
            perturbation: 0,
            unusable: UnusableLabel::Skip,
        };
        let shape = QueryShape::new(Map::Minimum(minimum), PrivacyUnit::Row, 1000).expect("in range");
        let centre: Vec<f64> = (0..COLUMNS).map(|column| column as f64 / 100.0 - 1.0).collect();
        let query = MinimumQuery::new(shape, Arc::new(encoding), &centre).expect("columns fit");
        let engine = MemoryEngine::new(table(&schema, &rows));
        let answer = reveal(engine.exact_minimum(&query, &[0; COLUMNS]).expect("in memory"));
        // Truncation to steps of 2^-36, times rows and ridge, and what floating point loses.
        let gradient = gradient_at(&answer, &schema, &rows, &query, l2);
        prop_assert!(gradient < 1e-7, "{gradient}");
        // Neither blocks nor where they lie show in it.
        let others: [Box<dyn Engine>; 2] = [
            Box::new(MemoryEngine::with_block_rows(table(&schema, &rows), block_rows)),
            Box::new(spilled(&schema, &rows, &place(), block_rows, kept_bytes)),
        ];
        for engine in others {
            prop_assert!(answer == reveal(engine.exact_minimum(&query, &[0; COLUMNS]).expect("is read")));
        }
    }

    #[test]
    fn sums_are_those_of_whole_rows(
        rows in rows(),
        block_rows in prop_oneof![Just(1usize), Just(33), 1..200usize],
        weights in prop::collection::vec(-8.0f64..8.0, COLUMNS),
        shift in -1.0f64..1.0,
        bound in 0.5f64..6.0,
        wide in [any::<bool>(), any::<bool>()],
        has_list: bool,
        list_is_centred: bool,
        is_coarse: bool,
        kept_bytes in prop_oneof![Just(0u64), 0..4000u64],
    ) {
        let schema = schema(has_list);
        let scratch = spilled(&schema, &rows, &place(), block_rows, kept_bytes);
        let memory = [
            MemoryEngine::new(table(&schema, &rows)),
            MemoryEngine::with_block_rows(table(&schema, &rows), block_rows),
        ];
        for norm in [NormRule::OwnNorm, NormRule::Clip(bound)] {
            let encoding = Arc::new(encoding(&schema, shift, wide, list_is_centred, norm).coarse(is_coarse));
            let listed = if has_list && !list_is_centred { LISTED_MAX } else { 0 };
            prop_assert_eq!(encoding.layout().chosen(), wide.iter().filter(|wide| **wide).count() + listed);
            // Room that was made for other rows is used for these where it fits, whatever is left in it.
            for is_coarse in [!is_coarse, is_coarse] {
                let other = Arc::new(Encoding::clone(&encoding).coarse(is_coarse));
                prop_assert!(memory[1].prepare(&other).is_ok());
            }
            for map in maps(encoding.coding()) {
                let query = query(map, &encoding, &weights);
                let expected = by_reference(&schema, &rows, &query);
                for engine in &memory {
                    let found = reveal(engine.exact_sum(&query).expect("in memory"));
                    prop_assert_eq!(&found, &expected, "{:?}", query.shape().map());
                }
                let found = reveal(scratch.exact_sum(&query).expect("the disk works"));
                prop_assert_eq!(&found, &expected, "{:?}", query.shape().map());
            }
        }
    }
}

/// So many columns that coordinates are added up column after column, in several blocks of rows. Rows of each block differ.
#[test]
fn sums_over_very_many_columns_are_those_of_their_rows() {
    for has_list in [false, true] {
        sums_over_very_many_columns(has_list);
    }
}

fn sums_over_very_many_columns(has_list: bool) {
    const BUCKETS: u32 = 65_535;
    let (table, listed) = if has_list {
        ("[table]\nformat = \"libsvm\"\nnonzeros_max = 2\n", "\"10..13\" = { bounds = [0, 10] }\n")
    } else {
        ("", "")
    };
    let schema = Schema::from_text(&format!(
        "[privacy]\n{PRIVACY}\n{table}[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
         [features]\n1 = {{ bounds = [-1, 1] }}\n2 = {{ hash_buckets = {BUCKETS} }}\n3 = {{ hash_buckets = 9000 }}\n{listed}"
    ))
    .expect("legal");
    let coding = Coding::of(&schema);
    let columns = coding.columns().len();
    let scale = (0..columns).map(|column| 0.5 + (column % 7) as f64).collect();
    let encoding = Arc::new(Encoding::new(coding.clone(), vec![0.0; columns], scale, NormRule::Clip(4.0)));
    let weights: Vec<f64> = (0..columns).map(|column| (column % 13) as f64 - 6.0).collect();
    let cells = |row: u32| {
        let (one, other) = (row * row * 31 % BUCKETS, row * 7 % 9000);
        let mut cells = vec![Cell::Number(f64::from(row % 10) / 10.0), Cell::Category(one), Cell::Category(other)];
        // Rows list up to two of four, and some of them none.
        let listed = |place: u32| Cell::Number(if (row + place).is_multiple_of(3) { f64::from(row % 7) } else { 0.0 });
        cells.extend((0..if has_list { 4 } else { 0 }).map(listed));
        (cells, if row % 11 == 5 { Label::Unusable } else { Label::Class((row / 3 % 2) as u16) })
    };
    let kinds = 90;
    let rows = 9 * kinds;
    let mut table = CodedTable::empty(&schema);
    (0..rows).for_each(|row| {
        let (cells, label) = cells(row / 9);
        table.push(&cells, label);
    });
    let engine = MemoryEngine::new(table);
    let two_sided = Map::Gradient { loss: Loss::TwoSidedExponential, columns: columns as u32 };
    let clipped = Map::ClippedGradient { columns: columns as u32, clip: 1 << 22 };
    let (mut codes, mut features) = (vec![0; coding.codes()], vec![0; columns]);
    for map in [two_sided.clone(), clipped, two_sided] {
        let query = query(map, &encoding, &weights);
        let mut expected = PartialSum::zero(&query);
        for row in 0..kinds {
            let (cells, label) = cells(row);
            coding.encode_cells(&cells, &mut codes);
            let step = encoding.encode_codes(&codes, &mut vec![0.0; columns], &mut features);
            let label = if let Label::Class(class) = label { class as i16 } else { UNUSABLE_LABEL };
            expected.add_row(&query, LatticeRow { features: &features, step }, label);
        }
        let expected: Vec<i128> = reveal(expected).into_iter().map(|total| 9 * total).collect();
        assert!(expected.iter().filter(|total| **total != 0).count() > 100, "rows count");
        for threads in 1..4 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let found = pool.install(|| reveal(engine.exact_sum(&query).expect("in memory")));
            assert!(found == expected, "{threads} threads, {:?}", query.shape().map());
        }
    }
}
