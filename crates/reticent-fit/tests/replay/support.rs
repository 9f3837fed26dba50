//! From a generated pair of tables to two engines, and the loop over generated cases.

use std::io::Write;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use reticent_core::adjacency::Relation;
use reticent_core::coding::Coding;
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::encoding::{Encoding, LATTICE_NORM_MAX};
use reticent_core::engine::Engine;
use reticent_core::ledger::Request;
use reticent_core::record::Label;
use reticent_core::schema::{Schema, TargetKind};
use reticent_core::session::Session;
use reticent_core::units::{Delta, Epsilon};
use reticent_curator::memory_ceiling::MemoryCeiling;
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::scratch_file::ScratchPlace;
use reticent_curator::source::{Need, TableSource};
use reticent_curator::spilled_engine::{self, SpilledEngine};
use reticent_curator::spilled_table::SpilledTable;
use reticent_curator::table::CodedTable;
use reticent_fit::plan::PrivacyClaim;
use reticent_testkit::raw_table::{RawPair, RawRow, text};
use reticent_testkit::replay::{Neighbours, Tally, World};
use tempfile::NamedTempFile;

/// Pairs of neighbours a combination.
pub(crate) fn cases(default: u32) -> u32 {
    std::env::var("RETICENT_REPLAY_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs a property on generated values and panics with the smallest one that fails.
pub(crate) fn for_all<T: std::fmt::Debug>(name: &str, cases: u32, of: impl Strategy<Value = T>, test: impl Fn(T)) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let result = TestRunner::new(config).run(&of, |value| {
        test(value);
        Ok::<(), TestCaseError>(())
    });
    if let Err(error) = result {
        panic!("{name}: {error}");
    }
}

/// Tells the figures of a long run to the person who asked for one.
pub(crate) fn tell(name: &str, tally: &Tally) {
    if std::env::var_os("RETICENT_REPLAY_CASES").is_some() {
        let Tally { pairs, releases, draws, largest_share, .. } = tally;
        let line =
            format!("{name}: {pairs} pairs, {releases} releases, {draws} draws, largest share {largest_share:.4}\n");
        // Not `print`: the figures are told whether the test passes or not.
        std::io::stderr().write_all(line.as_bytes()).expect("the terminal takes a line");
    }
}

pub(crate) fn claim(relation: &Relation, epsilon: f64) -> PrivacyClaim {
    PrivacyClaim::new(relation.clone(), Epsilon::new(epsilon).expect("legal"), Delta::new(1e-6).expect("legal"))
}

/// What the harness varies beside the rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Circumstances {
    pub(crate) seed: u64,
    pub(crate) epsilon: f64,
    /// Where the two tables are held, and how many rows make a task in memory: sums depend on neither.
    pub(crate) stores: [Store; 2],
}

/// Where a table is held.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Store {
    Memory {
        block_rows: usize,
    },
    /// In scratch files, if the questions can be answered from there.
    Scratch,
}

/// Epsilon: from much noise to so little that weights run to their limits.
pub(crate) const EPSILONS: &[f64] = &[1.0, 0.1, 300.0];

pub(crate) fn circumstances(epsilons: &[f64]) -> impl Strategy<Value = Circumstances> + use<> {
    let memory = prop::sample::select(vec![1, 33, 2048]).prop_map(|block_rows| Store::Memory { block_rows });
    let store = prop_oneof![3 => memory, 1 => Just(Store::Scratch)];
    (any::<u64>(), prop::sample::select(epsilons.to_vec()), [store.clone(), store])
        .prop_map(|(seed, epsilon, stores)| Circumstances { seed, epsilon, stores })
}

/// A table on disk, as somebody would hand it in.
fn file(rows: &[RawRow], schema: &Schema) -> NamedTempFile {
    let mut file = NamedTempFile::with_suffix(".csv").expect("a temporary file");
    file.write_all(text(rows, schema.table().format).as_bytes()).expect("the disk takes a small table");
    file
}

/// The rows that count, coded independently of the engine: for the harness's own gradients.
struct Kept {
    codes: Vec<(Vec<u16>, CodedLabel)>,
}

impl Kept {
    fn read(file: &NamedTempFile, schema: &Schema) -> Self {
        let source = TableSource::open(file.path(), schema, Need::FeaturesAndTarget).expect("the header fits");
        let coding = Coding::of(schema);
        let cap = schema.privacy().unit.rows_max() as usize;
        let by_row = schema.relation().unit == reticent_core::adjacency::PrivacyUnit::Row;
        let mut seen: Vec<Option<Vec<u8>>> = Vec::new();
        let mut codes = Vec::new();
        // Under label adjacency it is public which rows have a usable label.
        let only_labelled = schema.privacy().adjacency == reticent_core::adjacency::Adjacency::Label;
        let mut keep = |row: reticent_curator::source::Row<'_>| {
            if only_labelled && matches!(row.label, Label::Unusable) {
                return;
            }
            let key = row.unit.map(<[u8]>::to_vec);
            if !by_row && seen.iter().filter(|other| **other == key).count() >= cap {
                return;
            }
            seen.push(key);
            let mut of_row = vec![0; coding.codes()];
            coding.encode_cells(row.cells, &mut of_row);
            codes.push((of_row, label_code(&schema.target().kind, row.label)));
        };
        source.for_each_row(&mut |_| (), &mut keep).expect("a whole file");
        Self { codes }
    }

    fn lattice(&self, encoding: &Encoding) -> Vec<(Vec<i16>, CodedLabel)> {
        let columns = encoding.coding().columns().len();
        let place = |(codes, label): &(Vec<u16>, CodedLabel)| {
            let mut features = vec![0; columns];
            encoding.encode_codes(codes, &mut vec![0.0; columns], &mut features);
            (features, *label)
        };
        self.codes.iter().map(place).collect()
    }
}

fn label_code(target: &TargetKind, label: Label) -> CodedLabel {
    match (target, label) {
        (TargetKind::Classes(_), Label::Class(class)) => class as CodedLabel,
        (TargetKind::Bounds { low, high }, Label::Value(value)) => {
            (((value - low) / (high - low) * 2.0 - 1.0) * f64::from(LATTICE_NORM_MAX)).round() as CodedLabel
        }
        (TargetKind::Classes(_) | TargetKind::Bounds { .. }, Label::Class(_) | Label::Value(_) | Label::Unusable) => {
            UNUSABLE_LABEL
        }
    }
}

/// Replays what asks for the releases of a request on two tables, each read from a file and held where the circumstances say.
pub(crate) fn replay_on_tables(
    schema: &Schema,
    pair: &RawPair,
    circumstances: Circumstances,
    request: &Request,
    ask: &dyn Fn(&mut Session<'_>) -> String,
    tally: &mut Tally,
) {
    let relation = schema.relation();
    let files = [file(&pair.left, schema), file(&pair.right, schema)];
    let engines = [0, 1].map(|side| hold(&files[side], schema, circumstances.stores[side], request));
    let kept = files.each_ref().map(|file| Kept::read(file, schema));
    let left_rows = |encoding: &Encoding| kept[0].lattice(encoding);
    let right_rows = |encoding: &Encoding| kept[1].lattice(encoding);
    let neighbours = Neighbours {
        relation: &relation,
        left: World { engine: &*engines[0], rows: &left_rows },
        right: World { engine: &*engines[1], rows: &right_rows },
        seed: circumstances.seed,
    };
    neighbours.replay(ask, tally);
}

/// Reads a table to where it is held.
fn hold(file: &NamedTempFile, schema: &Schema, store: Store, request: &Request) -> Box<dyn Engine> {
    let source = TableSource::open(file.path(), schema, Need::FeaturesAndTarget).expect("the header fits");
    let asked = || request.releases.iter().map(|release| &release.shape);
    let plenty = MemoryCeiling::of_bytes(1 << 40).expect("above zero");
    match store {
        Store::Scratch if spilled_engine::check(plenty, schema, asked()).is_ok() => {
            let place = ScratchPlace::encrypted(PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
            let table = SpilledTable::read(source, schema, &place, &mut |_| ()).expect("a whole file");
            Box::new(SpilledEngine::new(table, 0).expect("there is room"))
        }
        Store::Scratch => hold(file, schema, Store::Memory { block_rows: 1 }, request),
        Store::Memory { block_rows } => {
            let table = CodedTable::read(source, schema, &mut |_| ()).expect("a whole file");
            Box::new(MemoryEngine::with_block_rows(table, block_rows))
        }
    }
}
