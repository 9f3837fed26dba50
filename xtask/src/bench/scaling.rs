//! Time a row against the number of rows, columns and threads.

use super::Bench;
use super::passes::{Loaded, OURS, lattice_bytes};
use super::record::Measure;
use crate::{print, say};

const PART: &str = "scaling";
/// Columns of the curve over rows.
const COLUMNS: usize = 20;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), String> {
    let mut shapes: Vec<(usize, usize)> = [10_000, 100_000, 1_000_000, 10_000_000].map(|rows| (rows, COLUMNS)).to_vec();
    if bench.arguments.large {
        shapes.push((100_000_000, COLUMNS));
    }
    shapes.extend([10, 100, 1000, 10_000].map(|columns| (20_000_000 / columns, columns)));
    let mut measures = Vec::new();
    for (rows, columns) in shapes {
        let rows = bench.rows(rows);
        let table = Loaded::generate(rows, columns);
        for threads in [1, 2] {
            let times = table.gradient(threads, bench.repeats(if rows * columns > 1_000_000_000 { 3 } else { 10 }));
            let (what, bytes) = (OURS.to_owned(), Some(lattice_bytes(rows, columns)));
            measures.push(Measure { part: PART, what, rows, columns, threads, times, bytes, peak_mib: None });
        }
        say(&format!("{PART}: {rows} x {columns} done"));
    }
    print("One gradient pass over tables of other sizes.\n");
    print("| rows | columns | threads | nanoseconds a row | picoseconds a value |");
    print("|---|---|---|---|---|");
    for measure in &measures {
        let row = measure.least() / measure.rows as f64;
        let value = row / measure.columns as f64;
        let (rows, columns, threads) = (measure.rows, measure.columns, measure.threads);
        print(&format!("| {rows} | {columns} | {threads} | {:.2} | {:.0} |", row * 1e9, value * 1e12));
    }
    print("");
    bench.record.table(&measures)
}
