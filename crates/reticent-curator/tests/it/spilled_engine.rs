//! From scratch files come the sums that come from memory, integer for integer, and nothing is left of the files.

use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::Coding;
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::engine::Engine;
use reticent_core::minimum::{Minimum, UnusableLabel};
use reticent_core::pass_weights::PassWeights;
use reticent_core::public_matrix::PublicMatrix;
use reticent_core::query::{Map, ProductTarget, QueryShape, SumQuery};
use reticent_core::schema::Schema;
use reticent_curator::external_sort::SortShape;
use reticent_curator::memory_ceiling::MemoryCeiling;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::scratch_file::ScratchPlace;
use reticent_curator::source::{Need, TableSource, UncappedRows};
use reticent_curator::spilled_engine::{CannotSpill, SpilledEngine, check, check_pages};
use reticent_curator::spilled_table::{SpilledTable, SpilledTableWriter};
use reticent_curator::table::CodedTable;
use reticent_testkit::generate::{self, GeneratedRow};
use reticent_testkit::{disclosure, reveal};

use crate::memory_engine::{COLUMNS, PRIVACY, encoding, maps, query, table};

/// Beside the program that is tested: on a disk, which the folder of temporary files need not be.
pub(crate) fn place() -> ScratchPlace {
    ScratchPlace::encrypted(PathBuf::from(env!("CARGO_TARGET_TMPDIR")))
}

pub(crate) fn spilled(
    schema: &Schema,
    rows: &[GeneratedRow],
    place: &ScratchPlace,
    block_rows: usize,
    kept_bytes: u64,
) -> SpilledEngine {
    spilled_units(schema, rows.iter().map(|row| (row, "")), place, block_rows, SortShape::USUAL, kept_bytes)
}

/// Rows with the keys of their units.
fn spilled_units<'a>(
    schema: &Schema,
    rows: impl IntoIterator<Item = (&'a GeneratedRow, &'a str)>,
    place: &ScratchPlace,
    block_rows: usize,
    sort: SortShape,
    kept_bytes: u64,
) -> SpilledEngine {
    let mut writer = SpilledTableWriter::new(schema, place, block_rows, sort).expect("a folder on a disk");
    let coding = Coding::of(schema);
    let mut codes = vec![0; coding.codes()];
    for (row, key) in rows {
        coding.encode_cells(&row.cells(schema), &mut codes);
        let labels = [row.class.map_or(UNUSABLE_LABEL, |class| class as CodedLabel)];
        let row = UncappedRows { codes: &codes, labels: &labels, keys: key.as_bytes(), key_ends: &[key.len()] };
        writer.append(row).expect("there is room");
    }
    SpilledEngine::new(writer.finish().expect("there is room"), kept_bytes).expect("there is room")
}

/// Every sum over the rows of a table.
fn all_maps() -> impl Iterator<Item = Map> {
    let clipped = Map::ClippedGradient { columns: COLUMNS as u32, clip: 1 << 20 };
    maps().into_iter().chain([clipped, Map::SquaredError])
}

fn sum(engine: &dyn Engine, query: &SumQuery) -> Vec<i128> {
    reveal(engine.exact_sum(query).expect("the disk works"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn sums_are_those_of_memory(
        rows in generate::rows(3, 2, 0..150),
        block_rows in prop_oneof![Just(1usize), Just(31), 1..200usize],
        threads in 1..4usize,
        kept_bytes in prop_oneof![Just(0u64), 0..4000u64],
        is_encrypted in any::<bool>(),
        weights in prop::collection::vec(-8.0f64..8.0, COLUMNS),
        bound in 0.5f64..6.0,
    ) {
        let schema = generate::schema(3, 2, PRIVACY);
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let place = if is_encrypted { ScratchPlace::encrypted(folder) } else { ScratchPlace::unencrypted(folder) };
        let memory = MemoryEngine::new(table(&schema, &rows));
        let scratch = spilled(&schema, &rows, &place, block_rows, kept_bytes);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        // Encodings take turns, with steps of each row's own and with one for all: the file is written anew each time.
        for norm in [NormRule::OwnNorm, NormRule::Clip(bound), NormRule::OwnNorm] {
            let encoding = encoding(&schema, norm);
            for map in all_maps() {
                let query = query(map, &encoding, &weights);
                prop_assert_eq!(sum(&memory, &query), pool.install(|| sum(&scratch, &query)));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Where a unit has several rows the first of them count, whatever their labels are, and the others might as well not be there.
    #[test]
    fn sums_of_units_are_those_of_their_first_rows(
        rows in generate::rows(3, 2, 0..150),
        keys in prop::collection::vec(any::<prop::sample::Index>(), 150),
        units in 1..60usize,
        rows_max in 1..5u32,
        block_rows in prop_oneof![Just(1usize), Just(7), 1..200usize],
        (sort_block, sort_blocks) in (1..6usize, 2..5usize),
        threads in 1..4usize,
        kept_bytes in prop_oneof![Just(0u64), 0..4000u64],
        weights in prop::collection::vec(-8.0f64..8.0, COLUMNS),
    ) {
        let privacy = format!("unit = {{ column = \"person\", rows_max = {rows_max} }}\nadjacency = \"replace\"");
        let schema = generate::schema(3, 2, &privacy);
        let keys: Vec<String> = keys.iter().map(|key| format!("person {}", key.index(units))).collect();
        let keyed = || rows.iter().zip(keys.iter().map(String::as_str));
        let sort = SortShape { block_records: sort_block, blocks: sort_blocks };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let scratch = pool.install(|| spilled_units(&schema, keyed(), &place(), block_rows, sort, kept_bytes));
        prop_assert_eq!(scratch.unit(), &schema.privacy().unit);

        let is_first = |place: &usize| keys[..*place].iter().filter(|key| **key == keys[*place]).count() < rows_max as usize;
        let first: Vec<GeneratedRow> = (0..rows.len()).filter(is_first).map(|place| rows[place].clone()).collect();
        let memory = MemoryEngine::new(table(&schema, &first));
        prop_assert_eq!(scratch.row_number(&disclosure()), memory.row_number(&disclosure()));
        for norm in [NormRule::OwnNorm, NormRule::Clip(2.5)] {
            let encoding = encoding(&schema, norm);
            for map in all_maps() {
                let query = query(map, &encoding, &weights);
                prop_assert_eq!(sum(&memory, &query), pool.install(|| sum(&scratch, &query)));
            }
        }
    }
}

/// Several blocks for each buffer of the read-ahead; all of them in the file, some, and none.
#[test]
fn many_blocks_are_read_in_full() {
    let schema = generate::schema(3, 2, PRIVACY);
    let rows: Vec<GeneratedRow> = (0..10_007)
        .map(|row| GeneratedRow {
            values: vec![f64::from(row % 11), f64::from(row % 7), 3.0, f64::from(row % 4), f64::from(row % 3)],
            class: [Some(0), Some(1), None][row as usize % 3],
        })
        .collect();
    let encoding = encoding(&schema, NormRule::OwnNorm);
    let memory = MemoryEngine::new(table(&schema, &rows));
    for kept_bytes in [0, 100_000, 1 << 30] {
        let scratch = spilled(&schema, &rows, &place(), 64, kept_bytes);
        for map in all_maps() {
            let query = query(map, &encoding, &[0.5; COLUMNS]);
            assert_eq!(sum(&memory, &query), sum(&scratch, &query), "{kept_bytes} bytes in memory");
        }
    }
}

#[test]
fn a_table_is_read_from_a_file() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("visits.csv");
    std::fs::write(&path, "x0,y\n1,no\n2,yes\n3,yes\n4,neither\n").expect("written");
    let schema = generate::schema(1, 0, PRIVACY);
    let source = TableSource::open(&path, &schema, Need::FeaturesAndTarget).expect("opens");
    let table = SpilledTable::read(source, &schema, &place(), &mut |_| {}).expect("reads");
    let engine = SpilledEngine::new(table, 0).expect("there is room");
    assert_eq!(engine.unit(), &PrivacyUnit::Row);
    let shape = QueryShape::new(Map::ClassCount { classes: 2 }, PrivacyUnit::Row, 100).expect("small");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let query = SumQuery::new(shape, encoding, PassWeights::none()).expect("columns fit");
    assert_eq!(sum(&engine, &query), vec![1 << 20, 2 << 20]);
}

/// Files have no name from the beginning; and the room for all that follows is taken at once.
#[cfg(unix)]
#[test]
fn the_folder_stays_empty() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("temporary folder");
    let schema = generate::schema(3, 2, PRIVACY);
    let rows = vec![GeneratedRow { values: vec![1.0; 5], class: Some(1) }; 100];
    let is_empty = || std::fs::read_dir(folder.path()).expect("readable").next().is_none();
    let place = ScratchPlace::encrypted(folder.path().to_owned());
    let engine = spilled(&schema, &rows, &place, 7, 0);
    assert!(is_empty());
    sum(&engine, &query(maps()[1].clone(), &encoding(&schema, NormRule::OwnNorm), &[0.5; COLUMNS]));
    assert!(is_empty());
    // Nor has what sorts the keys of units, while it does and afterwards.
    let grouped = generate::schema(3, 2, GROUPED);
    let sort = SortShape { block_records: 2, blocks: 2 };
    let keyed = rows.iter().inspect(|_| assert!(is_empty())).map(|row| (row, "one of all"));
    let engine = spilled_units(&grouped, keyed, &place, 7, sort, 0);
    assert!(is_empty() && engine.row_number(&disclosure()) == Some(2));
}

const GROUPED: &str = "unit = { column = \"id\", rows_max = 2 }\nadjacency = \"add-remove\"";

fn ceiling(text: &str) -> MemoryCeiling {
    text.parse().expect("a size")
}

#[test]
fn what_needs_all_rows_in_memory_is_refused_by_public_figures() {
    let schema = generate::schema(1, 0, PRIVACY);
    let shape = |map| QueryShape::new(map, PrivacyUnit::Row, 100).expect("small");
    assert_eq!(check(ceiling("1GiB"), &schema, &all_maps().map(shape).collect::<Vec<_>>()).map(|_| ()), Ok(()));
    let votes = shape(Map::PartyVectors { columns: 2, outputs: 1, penalty: 1, norm: 1 });
    assert_eq!(check(ceiling("1GiB"), &schema, [&votes]), Err(CannotSpill::Votes));
    let product = shape(Map::MatrixProduct {
        columns: 1,
        outputs: 1,
        target: ProductTarget::Class,
        label_low: -1,
        label_high: 1,
        rows: 0,
        row_norm_square: 1,
        eigenvalue: 0,
    });
    assert_eq!(check(ceiling("1GiB"), &schema, [&product]), Err(CannotSpill::PublicFeatures));

    // Asked all the same, the engine says so and gives nothing.
    let rows = [GeneratedRow { values: vec![1.0], class: Some(1) }];
    let engine = spilled(&schema, &rows, &place(), 7, 0);
    assert!(engine.public_features(&disclosure()).is_err());
    let matrix = Arc::new(PublicMatrix::new(1, vec![1]).expect("short"));
    let query = SumQuery::of_matrix(product, matrix).expect("within its bounds");
    assert!(engine.exact_sum(&query).is_err());
}

/// More rows than a block has, in batches that do not end where blocks do; as units, and as rows of units.
#[test]
fn a_file_is_spilled_as_it_is_read_into_memory() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let path = folder.path().join("rows.csv");
    let mut text = "x0,x1,x2,id,k0,k1,y\n".to_owned();
    for row in 0..30_000u32 {
        let number = |step: u32| f64::from(row * step % 997) / 99.0;
        let category = |count: u32| ["a", "b", "c", "d"][count as usize % 4];
        let class = ["no", "yes", "no", "neither"][row as usize % 4];
        // The rows of a unit are together, or far from each other; some rows have none.
        let unit = [row / 9, row % 1013, row % 1013, row][row as usize / 7 % 4];
        let unit = if row % 11 == 0 { String::new() } else { format!("unit {unit}") };
        text.push_str(&format!(
            "{},{},{},{unit},{},{},{class}\n",
            number(1),
            number(31),
            number(57),
            category(row),
            category(row / 7)
        ));
    }
    std::fs::write(&path, text).expect("there is room");
    let mut rows_found = Vec::new();
    for privacy in [PRIVACY, GROUPED, &GROUPED.replace("add-remove", "label"), &PRIVACY.replace("add-remove", "label")]
    {
        let schema = generate::schema(3, 2, privacy);
        let source = || TableSource::open(&path, &schema, Need::FeaturesAndTarget).expect("opens");
        let memory = MemoryEngine::new(CodedTable::read(source(), &schema, &mut |_| ()).expect("reads"));
        let scratch = SpilledTable::read(source(), &schema, &place(), &mut |_| ()).expect("reads");
        let scratch = SpilledEngine::new(scratch, 0).expect("there is room");
        assert_eq!(scratch.row_number(&disclosure()), memory.row_number(&disclosure()), "{privacy}");
        rows_found.extend(scratch.row_number(&disclosure()));
        let encoding = encoding(&schema, NormRule::OwnNorm);
        let weights: Vec<f64> = (0..COLUMNS).map(|column| column as f64 / 3.0 - 1.0).collect();
        for map in all_maps() {
            let query = query(map, &encoding, &weights);
            assert_eq!(sum(&scratch, &query), sum(&memory, &query), "{privacy} {:?}", query.shape().map());
        }
    }
    let [all, capped, labelled_and_capped, labelled] = rows_found[..] else { panic!("one for each relation") };
    assert!(all == 30_000 && capped < all / 2 && labelled < all && labelled_and_capped < labelled);
    assert!(labelled_and_capped > 1000 && capped > 1000);
}

#[test]
fn a_ceiling_below_the_buffers_is_refused_with_one_that_does() {
    let schema = generate::schema(1, 0, PRIVACY);
    let Err(CannotSpill::TooLittle { needed, .. }) = check(ceiling("1MiB"), &schema, []) else {
        panic!("no program runs in a mebibyte");
    };
    assert_eq!(check(needed, &schema, []), Ok(0));
    let needed_of_one = needed;
    let more = MemoryCeiling::of_bytes(needed.bytes() + 12_345).expect("above zero");
    assert_eq!(check(more, &schema, []), Ok(12_345), "what is left is for rows");
    // What is asked counts, and so do the columns.
    let gram =
        Map::Gram { columns: 1400, target: ProductTarget::Class, diagonal: 1, off_diagonal: 1, cross: 1, square: 1 };
    let gram = QueryShape::new(gram, PrivacyUnit::Row, 100).expect("below 2^20 products");
    assert!(matches!(check(needed, &schema, [&gram]), Err(CannotSpill::TooLittle { .. })));
    // Of Parquet a mebibyte a column comes on top.
    let wide = generate::schema(300, 0, PRIVACY);
    let left = check(ceiling("1GiB"), &wide, []).expect("plenty");
    assert_eq!(check_pages(ceiling("1GiB"), left, &wide), Ok(left - (300 << 20)));
    let Err(CannotSpill::TooLittle { needed: of_pages, .. }) = check_pages(needed, 0, &wide) else {
        panic!("there is no room for a page");
    };
    assert_eq!(of_pages.bytes(), needed.bytes() + (300 << 20));
    // In so many threads: 96 MiB, 1 MiB of lattice twice for the blocks that wait and those at work, and each coordinate of the
    // largest sum.
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        let Err(CannotSpill::TooLittle { needed, .. }) = pool.install(|| check(ceiling("1MiB"), &wide, [&gram])) else {
            panic!("no program runs in a mebibyte");
        };
        // 301 columns of two bytes, 1741 rows of them in a mebibyte; step and label are six bytes more.
        let block = 1741 * (301 * 2 + 6);
        let sums = u64::from(gram.coordinates()) * (64 * threads as u64 + 128);
        let expected = (96 << 20) + (2 * threads as u64 + 4) * 2 * block + sums;
        assert_eq!(needed.bytes(), expected, "{threads} threads");
    }
    // A search for a minimum: a triangle of products a class in each thread, and their factors.
    let minimum = |classes, columns| {
        let minimum = Minimum { classes, columns, l2: 1 << 20, perturbation: 0, unusable: UnusableLabel::Skip };
        QueryShape::new(Map::Minimum(minimum), PrivacyUnit::Row, 100).expect("in range")
    };
    for (classes, outputs) in [(2, 1), (10, 10)] {
        let least = outputs * 1001 * 1001 * (8 + 4);
        let Err(CannotSpill::TooLittle { needed, .. }) =
            check(ceiling("1MiB"), &generate::schema(1, 0, PRIVACY), [&minimum(classes, 1001)])
        else {
            panic!("no program runs in a mebibyte");
        };
        assert!(needed.bytes() > needed_of_one.bytes() + least, "{needed}");
    }
    // Units of several rows take the same whatever their cap: two sorts, each with its blocks and two more.
    let grouped = generate::schema(1, 0, GROUPED);
    let Err(CannotSpill::TooLittle { needed: with_units, .. }) = check(needed_of_one, &grouped, []) else {
        panic!("keys are sorted in memory of their own");
    };
    assert_eq!(with_units.bytes() - needed_of_one.bytes(), (256 + 2) * 2048 * (32 + 8));
    // Rows that list their values are as long as their lists.
    let listed = format!(
        "[privacy]\n{PRIVACY}\n[table]\nformat = \"libsvm\"\nnonzeros_max = 100\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
         [features]\n\"1..100000\" = {{ bounds = [0, 1] }}\n"
    );
    let listed = Schema::from_text(&listed).expect("legal");
    assert!(check(ceiling("128MiB"), &listed, []).is_ok());
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let Err(CannotSpill::TooLittle { needed, .. }) = one.install(|| check(ceiling("1MiB"), &listed, [])) else {
        panic!("no program runs in a mebibyte");
    };
    // Two bytes of the intercept and six of each listed value.
    assert_eq!(needed.bytes(), (96 << 20) + 6 * 2 * 1741 * (2 + 100 * 6 + 6));
}
