//! Passes over a table in memory, through the engine that `reticent fit` uses.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use fastrand::Rng;
use reticent_core::coding::Coding;
use reticent_core::encoding::{Encoding, NormRule};
use reticent_core::engine::Engine;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{Loss, Map, ProductTarget, QueryShape, SumQuery};
use reticent_core::record::{Cell, Label};
use reticent_core::schema::{Schema, TargetKind};
use reticent_curator::memory_engine::MemoryEngine;
use reticent_curator::source::{Need, TableSource};
use reticent_curator::table::CodedTable;

use super::Bench;
use super::clock::{Times, on_threads};
use super::python::{JAX, OPACUS};
use super::record::Measure;
use crate::print;

/// Name of this code in tables.
pub(super) const OURS: &str = "reticent";

/// A generated table in the engine, `columns` with the intercept.
pub(crate) struct Loaded {
    engine: MemoryEngine,
    encoding: Arc<Encoding>,
    schema: Schema,
    columns: usize,
}

/// A schema with these features and two classes, `y`.
pub(crate) fn schema_of(features: &str) -> Schema {
    schema_of_classes(features, 2)
}

fn schema_of_classes(features: &str, classes: u32) -> Schema {
    let classes: Vec<u32> = (0..classes).collect();
    let text = format!(
        "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = {classes:?}\n\
         [features]\n{features}"
    );
    Schema::from_text(&text).expect("the generated schema is legal")
}

impl Loaded {
    pub(crate) fn generate(rows: usize, columns: usize) -> Self {
        Self::generate_of_classes(rows, columns, 2)
    }

    fn generate_of_classes(rows: usize, columns: usize, classes: u32) -> Self {
        let features: String = (1..columns).map(|column| format!("x{column} = {{ bounds = [-1, 1] }}\n")).collect();
        Self::of_cells(schema_of_classes(&features, classes), rows, |random| Cell::Number(2.0 * random.f64() - 1.0))
    }

    /// One of many categories in each feature.
    pub(crate) fn generate_sparse(rows: usize, features: usize, buckets: u32) -> Self {
        let features: String =
            (0..features).map(|feature| format!("k{feature} = {{ hash_buckets = {buckets} }}\n")).collect();
        Self::of_cells(schema_of(&features), rows, |random| Cell::Category(random.u32(1..=buckets)))
    }

    /// Rows of a libsvm file that list `most` of the columns, read as a fit reads them.
    fn generate_listed(rows: usize, columns: usize, most: usize) -> Result<Self, String> {
        let schema = Schema::from_text(&format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[table]\nformat = \"libsvm\"\nnonzeros_max = {most}\n\
             [target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\n\"1..{columns}\" = {{ bounds = [0, 1] }}\n"
        ));
        let schema = schema.map_err(|error| error.to_string())?;
        let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
        let mut random = Rng::with_seed(1);
        let mut text = BufWriter::new(&mut file);
        for _ in 0..rows {
            let mut line = u8::from(random.bool()).to_string();
            (0..most).for_each(|_| line.push_str(&format!(" {}:{:.3}", random.usize(1..=columns), random.f64())));
            writeln!(text, "{line}").map_err(|error| error.to_string())?;
        }
        text.flush().map_err(|error| error.to_string())?;
        drop(text);
        let source = TableSource::open(file.path(), &schema, Need::FeaturesAndTarget);
        let table = source.and_then(|source| CodedTable::read(source, &schema, &mut |_| ()));
        Ok(Self::of_table(schema, table.map_err(|error| error.to_string())?))
    }

    fn of_cells(schema: Schema, rows: usize, cell: impl Fn(&mut Rng) -> Cell) -> Self {
        let TargetKind::Classes(classes) = &schema.target().kind else { unreachable!("generated with classes") };
        let classes = classes.len() as u16;
        let mut table = CodedTable::empty(&schema);
        let mut random = Rng::with_seed(1);
        let mut cells = vec![Cell::Number(0.0); schema.features().len()];
        for _ in 0..rows {
            cells.iter_mut().for_each(|one| *one = cell(&mut random));
            table.push(&cells, Label::Class(random.u16(..classes)));
        }
        Self::of_table(schema, table)
    }

    fn of_table(schema: Schema, table: CodedTable) -> Self {
        let columns = Coding::of(&schema).columns().len();
        // Rows of norm at most 1: the clip of every row is paid here, once.
        let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
        let engine = MemoryEngine::new(table);
        engine.prepare(&encoding).expect("the shapes are for this machine's memory");
        Self { engine, encoding, schema, columns }
    }

    /// The same table with coordinates of 8 bits.
    fn coarse(self) -> Self {
        let encoding = Arc::new(Encoding::clone(&self.encoding).coarse(true));
        self.engine.prepare(&encoding).expect("smaller than before");
        Self { encoding, ..self }
    }

    fn query(&self, map: Map) -> SumQuery {
        let weights = if matches!(map, Map::Gram { .. }) {
            PassWeights::none()
        } else {
            let mut random = Rng::with_seed(2);
            let scores = if let Map::BoundedSoftmaxGradient { classes, .. } = map { classes as usize } else { 1 };
            PassWeights::quantise(&(0..self.columns * scores).map(|_| random.f64() - 0.5).collect::<Vec<_>>())
        };
        let shape = QueryShape::new(map, self.schema.privacy().unit.clone(), 1 << 31).expect("legal");
        SumQuery::new(shape, self.encoding.clone(), weights).expect("the columns are those of the table")
    }

    /// Columns, the intercept among them.
    pub(crate) fn columns(&self) -> u32 {
        self.columns as u32
    }

    /// One pass.
    pub(crate) fn pass_once(&self, map: &Map) {
        let query = self.query(map.clone());
        drop(std::hint::black_box(self.engine.exact_sum(&query).expect("in memory")));
    }

    /// Times of one pass for a query.
    fn pass(&self, map: Map, threads: usize, repeats: usize) -> Times {
        let query = self.query(map);
        on_threads(threads, || {
            Times::of(repeats, || {
                drop(std::hint::black_box(self.engine.exact_sum(&query).expect("in memory")));
            })
        })
    }

    pub(super) fn gradient(&self, threads: usize, repeats: usize) -> Times {
        self.pass(Map::Gradient { loss: Loss::Logistic, columns: self.columns as u32 }, threads, repeats)
    }
}

/// Bytes of the coordinates of a table: what a pass has to read at least.
pub(super) fn lattice_bytes(rows: usize, columns: usize) -> f64 {
    (rows * columns * size_of::<i16>()) as f64
}

pub(super) fn gradient(bench: &mut Bench<'_>) -> Result<(), String> {
    const PART: &str = "gradient";
    print("One gradient pass. Rows are put on the lattice with norm at most 1 before it.\n");
    for (rows, columns) in bench.shapes() {
        let mut measures = Vec::new();
        // Threads that have slept take as long to wake up as a pass over a small table.
        let is_large = rows * columns > 10_000_000;
        let (repeats, few) = if is_large { (15, 5) } else { (100, 100) };
        let (repeats, few) = (bench.repeats(repeats), bench.repeats(few));
        let fine = Loaded::generate(rows, columns);
        // 4000 lattice steps of at most 2048 · 32767: every row is clipped.
        let clipped = || Map::ClippedGradient { columns: columns as u32, clip: 2048 * 4000 };
        let ours = |table: &Loaded| {
            [1, 2].map(|threads| [table.gradient(threads, repeats), table.pass(clipped(), threads, few)])
        };
        let (in_sixteen, in_eight) = (ours(&fine), ours(&fine.coarse()));
        for (threads, (in_sixteen, in_eight)) in [1, 2].into_iter().zip(in_sixteen.into_iter().zip(in_eight)) {
            let names = [
                OURS,
                "reticent, each row clipped in the pass",
                "reticent, 8 bits",
                "reticent, 8 bits, each row clipped in the pass",
            ];
            for (place, (what, times)) in names.into_iter().zip(in_sixteen.into_iter().chain(in_eight)).enumerate() {
                let bytes = Some(lattice_bytes(rows, columns) / if place < 2 { 1.0 } else { 2.0 });
                let what = what.to_owned();
                measures.push(Measure { part: PART, what, rows, columns, threads, times, bytes, peak_mib: None });
            }
            let shape = [rows, columns, repeats].map(|number| number.to_string());
            let mut found = bench.python.run("passes.py", threads, &[&shape[..], &["gradient".to_owned()]].concat())?;
            if bench.arguments.jax {
                bench.python.install(&[JAX])?;
                found.extend(bench.python.run("jax_pass.py", threads, &shape)?);
            }
            if bench.arguments.opacus {
                bench.python.install(&[OPACUS])?;
                let once = [rows, columns, 1].map(|number| number.to_string());
                found.extend(bench.python.run("opacus_epoch.py", threads, &once)?);
            }
            measures.extend(found.into_iter().map(|one| Measure::of_baseline(PART, (rows, columns), threads, one)));
        }
        bench.record.table(&measures)?;
        let of_threads = |threads| {
            let ours = measures.iter().find(|one| one.threads == threads && one.what == OURS);
            ours.map_or(f64::NAN, |one| one.times.least(2))
        };
        let gain = of_threads(1) / of_threads(2);
        print(&format!("By the wall clock two threads are {gain:.2} times as fast as one.\n"));
    }
    Ok(())
}

pub(super) fn classes(bench: &mut Bench<'_>) -> Result<(), String> {
    const PART: &str = "classes";
    const CLASSES: u32 = 10;
    print("One gradient pass of ten classes.\n");
    for (rows, columns) in bench.shapes() {
        let mut measures = Vec::new();
        let repeats = bench.repeats(8);
        let ours = |table: &Loaded| {
            let map = || Map::BoundedSoftmaxGradient { classes: CLASSES, columns: columns as u32 };
            [1, 2].map(|threads| table.pass(map(), threads, repeats))
        };
        let table = Loaded::generate_of_classes(rows, columns, CLASSES);
        let (in_sixteen, in_eight) = (ours(&table), ours(&table.coarse()));
        for (threads, times) in [1, 2].into_iter().zip(in_sixteen.into_iter().zip(in_eight)) {
            for (what, bits, times) in [(OURS, 16.0, times.0), ("reticent, 8 bits", 8.0, times.1)] {
                let (what, bytes) = (what.to_owned(), Some(lattice_bytes(rows, columns) * bits / 16.0));
                measures.push(Measure { part: PART, what, rows, columns, threads, times, bytes, peak_mib: None });
            }
            let arguments = [&[rows, columns, repeats].map(|number| number.to_string())[..], &[PART.to_owned()]];
            let found = bench.python.run("passes.py", threads, &arguments.concat())?;
            measures.extend(found.into_iter().map(|one| Measure::of_baseline(PART, (rows, columns), threads, one)));
        }
        bench.record.table(&measures)?;
    }
    Ok(())
}

pub(super) fn products(bench: &mut Bench<'_>) -> Result<(), String> {
    const PART: &str = "products";
    print("The matrix of products of (x, y), exact.\n");
    for (rows, columns) in bench.shapes() {
        let mut measures = Vec::new();
        // Minutes are enough for the widest.
        let rows = if columns > 500 { rows / 10 } else { rows };
        let repeats = bench.repeats(8);
        let table = Loaded::generate(rows, columns);
        let target = ProductTarget::Class;
        let map = Map::Gram { columns: columns as u32, target, diagonal: 1, off_diagonal: 1, cross: 1, square: 1 };
        for threads in [1, 2] {
            let times = table.pass(map.clone(), threads, if columns > 20 { bench.repeats(3) } else { repeats });
            let (what, bytes) = (OURS.to_owned(), Some(lattice_bytes(rows, columns)));
            measures.push(Measure { part: PART, what, rows, columns, threads, times, bytes, peak_mib: None });
            let mut arguments = [rows, columns, repeats].map(|number| number.to_string()).to_vec();
            arguments.push("products".to_owned());
            let found = bench.python.run("passes.py", threads, &arguments)?;
            measures.extend(found.into_iter().map(|one| Measure::of_baseline(PART, (rows, columns), threads, one)));
        }
        bench.record.table(&measures)?;
    }
    Ok(())
}

pub(super) fn fits(bench: &mut Bench<'_>) -> Result<(), String> {
    const PART: &str = "fits";
    const PASSES: usize = 50;
    print("Fits of a table in memory. Only reticent and diffprivlib are private.\n");
    for (rows, columns) in bench.shapes() {
        let mut measures = Vec::new();
        let repeats = if rows * columns > 10_000_000 { 1 } else { bench.repeats(5) };
        let table = Loaded::generate(rows, columns);
        let map = Map::Gradient { loss: Loss::Logistic, columns: columns as u32 };
        let query = table.query(map);
        let times = on_threads(1, || {
            Times::of(repeats, || {
                (0..PASSES).for_each(|_| {
                    drop(std::hint::black_box(table.engine.exact_sum(&query).expect("in memory")));
                });
            })
        });
        drop(table);
        let what = "reticent, 50 passes".to_owned();
        measures.push(Measure { part: PART, what, rows, columns, threads: 1, times, bytes: None, peak_mib: None });
        let names = if columns > 500 { "lbfgs,private" } else { "lbfgs,newton,private" };
        let mut arguments = [rows, columns, repeats].map(|number| number.to_string()).to_vec();
        arguments.push(names.to_owned());
        let found = bench.python.run("fits.py", 1, &arguments)?;
        measures.extend(found.into_iter().map(|one| Measure::of_baseline(PART, (rows, columns), 1, one)));
        bench.record.table(&measures)?;
    }
    Ok(())
}

pub(super) fn sparse(bench: &mut Bench<'_>) -> Result<(), String> {
    const PART: &str = "sparse";
    const FEATURES: usize = 50;
    const BUCKETS: u32 = 20_000;
    let (rows, columns) = (bench.rows(200_000), FEATURES * BUCKETS as usize);
    print("A pass over a sparse table: fifty features of 20,000 hash buckets, or fifty values that a row lists.\n");
    let repeats = bench.repeats(15);
    let tables = [
        (OURS.to_owned(), Loaded::generate_sparse(rows, FEATURES, BUCKETS)),
        (format!("{OURS}, listed"), Loaded::generate_listed(rows, columns, FEATURES)?),
    ];
    let mut measures = Vec::new();
    for threads in [1, 2] {
        // A column and a coordinate for each value.
        let bytes = Some((rows * FEATURES * (size_of::<u32>() + size_of::<i16>())) as f64);
        for (what, table) in &tables {
            let (what, times) = (what.clone(), table.gradient(threads, repeats));
            measures.push(Measure { part: PART, what, rows, columns, threads, times, bytes, peak_mib: None });
        }
        let arguments = [rows, columns, FEATURES, repeats].map(|number| number.to_string());
        let found = bench.python.run("sparse.py", threads, &arguments)?;
        measures.extend(found.into_iter().map(|one| Measure::of_baseline(PART, (rows, columns), threads, one)));
    }
    bench.record.table(&measures)
}
