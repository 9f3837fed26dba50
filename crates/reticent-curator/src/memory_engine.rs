//! Answers queries from a table in memory, with all threads.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::Encoding;
use reticent_core::engine::{Disclosure, Engine, EngineError, Task};
use reticent_core::minimum::MinimumQuery;
use reticent_core::public_features::PublicFeatures;
use reticent_core::query::SumQuery;
use reticent_core::sum::PartialSum;

use crate::lattice::BLOCK_ROWS_MAX;
use crate::memory_lattice::{BLOCK_ROWS, Latest, Lattice, Room, fold_blocks};
use crate::minimiser::minimise;
pub use crate::out_of_memory::OutOfMemory;
use crate::out_of_memory::zeros;
use crate::running_sum::{RunningSum, merged};
use crate::table::CodedTable;
use crate::whole_rows::RowsInMemory;

/// A coded table with its latest lattice. Sums do not depend on the order of rows, the block size or the threads.
pub struct MemoryEngine {
    table: CodedTable,
    block_rows: usize,
    latest: Mutex<Latest>,
}

/// Parts that the rows are cut into for each thread, so that one that is held up does not hold up the others.
const TASKS_A_THREAD: usize = 8;

/// Fewest rows of a task with a larger sum: their columns are as many, so that a few rows are work enough to share.
const LARGE_SUM_ROWS: usize = 256;

/// Coordinates up to which a sum is little beside the rows of a block.
const SMALL_SUM: u32 = 1 << 12;

impl MemoryEngine {
    /// Takes the table over.
    #[must_use]
    pub fn new(table: CodedTable) -> Self {
        Self::with_block_rows(table, BLOCK_ROWS)
    }

    /// The same with another number of rows a task, which changes no sum.
    ///
    /// # Panics
    /// When `block_rows` is zero or above [`BLOCK_ROWS_MAX`].
    #[must_use]
    pub fn with_block_rows(table: CodedTable, block_rows: usize) -> Self {
        assert!((1..=BLOCK_ROWS_MAX).contains(&block_rows), "a block has rows, and its products fit 64 bits");
        Self { table, block_rows, latest: Mutex::new(Latest::Room(Room::default())) }
    }

    /// Makes room for the rows under an encoding, so that a table too large for the memory fails before anything is paid.
    ///
    /// # Errors
    /// [`OutOfMemory`], the same for every table.
    pub fn prepare(&self, encoding: &Arc<Encoding>) -> Result<(), OutOfMemory> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if !latest.is_of(encoding) {
            let room = latest.take().for_rows(self.table.rows(), encoding)?;
            *latest = Latest::Room(room);
            if RunningSum::has_many_columns(encoding.layout()) {
                // A column, a row and a value for each: seen to fit, and given back until then.
                let coordinates = self.table.rows().checked_mul(encoding.layout().chosen()).ok_or(OutOfMemory)?;
                // Unseen, the compiler may leave out what nobody reads.
                drop(std::hint::black_box(zeros::<u64>(coordinates)?));
            }
        }
        Ok(())
    }

    fn lattice_of(&self, encoding: &Arc<Encoding>) -> Result<Arc<Lattice>, OutOfMemory> {
        // A panic while the lock was held cannot have left half a lattice: it is replaced whole.
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Latest::Rows(lattice) if lattice.is_of(encoding) => Ok(lattice.clone()),
            Latest::Rows(_) | Latest::Room(_) => {
                let lattice = Arc::new(Lattice::of(&self.table, encoding.clone(), latest.take(), self.block_rows)?);
                *latest = Latest::Rows(lattice.clone());
                Ok(lattice)
            }
        }
    }

    /// Rows of the blocks that are added up for a query. A sum with many coordinates costs more to start than a small block costs to
    /// add. Then there are as many equal blocks as threads, or the least multiple of that which keeps a block within
    /// [`BLOCK_ROWS_MAX`] rows, whose products fit 64 bits; of few rows there are fewer, of [`LARGE_SUM_ROWS`].
    fn block_rows_of(&self, query: &SumQuery) -> usize {
        if !is_large(query) {
            return self.block_rows;
        }
        let (rows, threads) = (self.table.rows(), rayon::current_num_threads());
        let blocks = threads * rows.div_ceil(threads * BLOCK_ROWS_MAX).max(1);
        rows.div_ceil(blocks).max(self.block_rows.min(LARGE_SUM_ROWS))
    }

    /// Adds up blocks of rows on all threads: each task starts from `start` and adds block after block; `join` adds up two tasks.
    /// No list has an entry a block: this is after payment, and an allocation that aborted would print how many rows there are.
    fn sum_blocks<S: Send>(
        &self,
        query: &SumQuery,
        start: impl Fn() -> S + Sync,
        add: impl Fn(&mut S, usize, &[CodedLabel]) + Sync,
        join: impl Fn(S, S) -> S + Send + Sync,
    ) -> S {
        let tasks = rayon::current_num_threads() * if is_large(query) { 1 } else { TASKS_A_THREAD };
        fold_blocks(self.table.labels(), self.block_rows_of(query), tasks, &start, &add)
            .reduce_with(join)
            .unwrap_or_else(&start)
    }

    /// The labels times the rows of the query's public matrix.
    fn sum_labels(&self, query: &SumQuery) -> PartialSum {
        let add_block = |sum: &mut PartialSum, first: usize, labels: &[CodedLabel]| {
            labels.iter().enumerate().for_each(|(row, label)| sum.add_label(query, first + row, *label));
        };
        self.sum_blocks(query, || PartialSum::zero(query), add_block, merged)
    }
}

fn is_large(query: &SumQuery) -> bool {
    query.shape().coordinates() > SMALL_SUM
}

/// A public matrix that does not have one row for each label.
#[derive(Debug, thiserror::Error)]
#[error("the public matrix does not have one row for each row of the table")]
struct OtherRows;

impl Engine for MemoryEngine {
    fn unit(&self) -> &PrivacyUnit {
        self.table.unit()
    }

    fn schema(&self) -> &str {
        self.table.schema()
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        let lost = |error| EngineError(error);
        if let Some(matrix) = query.matrix() {
            // Under label adjacency, where alone such a query has a price, the number of rows is public.
            if matrix.rows() != self.table.rows() {
                return Err(lost(Box::new(OtherRows)));
            }
            return Ok(self.sum_labels(query));
        }
        let encoding = query.encoding().expect("a query has a matrix or an encoding");
        if RunningSum::is_of_codes(query) {
            assert!(encoding.coding() == self.table.coding(), "codes are read with the coding that made them");
            let add = |sum: &mut RunningSum<'_>, first: usize, labels: &[CodedLabel]| {
                sum.add_codes(self.table.codes_of_rows(first..first + labels.len()), labels);
            };
            return Ok(self.sum_blocks(query, || RunningSum::zero(query), add, RunningSum::joined).finish());
        }
        let lattice = self.lattice_of(encoding).map_err(|error| lost(Box::new(error)))?;
        // Without room for them they are found again in each pass: what is asked now has been paid for.
        let largest = RunningSum::clip(query).and_then(|clip| lattice.largest_slopes(clip, self.table.labels()).ok());
        // So, too, in an order of their own.
        let block_rows = self.block_rows_of(query);
        let is_by_column = RunningSum::is_by_column(query, lattice.encoding.layout());
        let by_column = is_by_column.then(|| lattice.by_column(block_rows).ok()).flatten();
        let add = |sum: &mut RunningSum<'_>, first: usize, labels: &[CodedLabel]| {
            let largest = largest.as_ref().map(|all| &all[first..first + labels.len()]);
            let by_column = by_column.as_ref().map(|orders| &orders[first / block_rows]);
            sum.add(&lattice.kept_block(first, labels).with(by_column), largest);
        };
        Ok(self.sum_blocks(query, || RunningSum::zero(query), add, RunningSum::joined).finish())
    }

    fn exact_minimum(&self, query: &MinimumQuery, perturbation: &[i128]) -> Result<PartialSum, EngineError> {
        let lattice = self.lattice_of(query.encoding()).map_err(|error| EngineError(Box::new(error)))?;
        let rows = RowsInMemory { lattice: &lattice, labels: self.table.labels(), block_rows: self.block_rows };
        Ok(PartialSum::of_minimum(query, minimise(&rows, query, perturbation)?))
    }

    fn run_tasks(&self, tasks: Vec<Task<'_>>) {
        tasks.into_par_iter().for_each(|task| task());
    }

    fn row_number(&self, _: &Disclosure) -> Option<u64> {
        Some(self.table.rows() as u64)
    }

    fn public_features(&self, _: &Disclosure) -> Result<Option<PublicFeatures>, EngineError> {
        let coding = self.table.coding();
        let columns = coding.columns().len();
        let rows = self.table.rows();
        let mut codes = zeros::<u16>(rows.saturating_mul(columns)).map_err(|error| EngineError(Box::new(error)))?;
        let of_rows = codes.par_chunks_exact_mut(columns).enumerate();
        of_rows.for_each(|(row, codes)| coding.expand(self.table.codes_of_row(row), codes));
        Ok(Some(PublicFeatures::of_expanded(coding, codes)))
    }
}
