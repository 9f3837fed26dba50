//! Answers queries from a table in memory, with all threads.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::{Encoding, LatticeRow};
use reticent_core::engine::{Engine, EngineError};
use reticent_core::query::{Map, SumQuery};
use reticent_core::sum::PartialSum;

use crate::kernel::{LANES, add_gradient};
use crate::table::CodedTable;

/// A coded table with its latest lattice. Sums do not depend on the order of rows, the block size or the threads.
pub struct MemoryEngine {
    table: CodedTable,
    block_rows: usize,
    /// The rows under the encoding of the last query; encoding again costs more than a pass.
    lattice: Mutex<Option<Arc<Lattice>>>,
}

/// Rows on the lattice: private.
struct Lattice {
    encoding: Arc<Encoding>,
    columns: usize,
    /// Coordinates of a stored row: the columns, then zeros up to whole lanes.
    stride: usize,
    features: Vec<i16>,
    steps: Vec<f32>,
}

/// The table does not fit. An aborting allocation would print its size, and with it the number of rows.
#[derive(Debug, thiserror::Error)]
#[error(
    "not enough memory for the encoded table; use a machine with more memory, or list fewer features or categories"
)]
pub struct OutOfMemory;

fn zeros<T: Default + Clone>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length).map_err(|_| OutOfMemory)?;
    zeros.resize(length, T::default());
    Ok(zeros)
}

/// Rows that one task adds up: enough to hide the cost of a task, few enough to share out.
const BLOCK_ROWS: usize = 2048;

impl MemoryEngine {
    /// Takes the table over.
    #[must_use]
    pub fn new(table: CodedTable) -> Self {
        Self::with_block_rows(table, BLOCK_ROWS)
    }

    /// The same with another number of rows a task, which changes no sum.
    ///
    /// # Panics
    /// When `block_rows` is zero.
    #[must_use]
    pub fn with_block_rows(table: CodedTable, block_rows: usize) -> Self {
        assert!(block_rows > 0, "a block has rows");
        Self { table, block_rows, lattice: Mutex::new(None) }
    }

    /// Puts the rows on the lattice of an encoding, so that a table too large for the memory fails before anything is paid.
    ///
    /// # Errors
    /// [`OutOfMemory`], the same for every table.
    pub fn prepare(&self, encoding: &Arc<Encoding>) -> Result<(), OutOfMemory> {
        self.lattice_of(encoding).map(drop)
    }

    fn lattice_of(&self, encoding: &Arc<Encoding>) -> Result<Arc<Lattice>, OutOfMemory> {
        // A panic while the lock was held cannot have left half a lattice: it is replaced whole.
        let mut cached = self.lattice.lock().unwrap_or_else(PoisonError::into_inner);
        match &*cached {
            Some(lattice) if Arc::ptr_eq(&lattice.encoding, encoding) || lattice.encoding == *encoding => {
                Ok(lattice.clone())
            }
            Some(_) | None => {
                let lattice = Arc::new(self.encode(encoding.clone())?);
                *cached = Some(lattice.clone());
                Ok(lattice)
            }
        }
    }

    fn encode(&self, encoding: Arc<Encoding>) -> Result<Lattice, OutOfMemory> {
        assert!(encoding.coding() == self.table.coding(), "codes are read with the coding that made them");
        let (rows, columns) = (self.table.rows(), encoding.coding().columns().len());
        let stride = columns.next_multiple_of(LANES);
        let mut features = zeros::<i16>(rows.checked_mul(stride).ok_or(OutOfMemory)?)?;
        let mut steps = zeros::<f32>(rows)?;
        features
            .par_chunks_mut(stride * self.block_rows)
            .zip(steps.par_chunks_mut(self.block_rows))
            .enumerate()
            .for_each(|(block, (features, steps))| {
                let mut scratch = vec![0.0; columns];
                for (offset, (row, step)) in features.chunks_exact_mut(stride).zip(steps).enumerate() {
                    let codes = self.table.codes_of_row(block * self.block_rows + offset);
                    *step = encoding.encode_codes(codes, &mut scratch, &mut row[..columns]);
                }
            });
        Ok(Lattice { encoding, columns, stride, features, steps })
    }

    fn sum_block(
        query: &SumQuery,
        lattice: &Lattice,
        features: &[i16],
        steps: &[f32],
        labels: &[CodedLabel],
    ) -> PartialSum {
        let mut sum = PartialSum::zero(query);
        match *query.shape().map() {
            Map::Gradient { loss, .. } => {
                let mut totals = vec![0i64; lattice.columns];
                add_gradient(loss, query.weights(), features, steps, labels, &mut totals);
                sum.add_kernel_totals(&totals);
            }
            Map::ClassCount { .. } | Map::CorrectCount | Map::LogLoss | Map::ScoreHistogram { .. } => {
                for ((row, step), label) in features.chunks_exact(lattice.stride).zip(steps).zip(labels) {
                    sum.add_row(query, LatticeRow { features: &row[..lattice.columns], step: *step }, *label);
                }
            }
        }
        sum
    }
}

impl Engine for MemoryEngine {
    fn unit(&self) -> &PrivacyUnit {
        self.table.unit()
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        let lattice = self.lattice_of(query.encoding()).map_err(|error| EngineError(Box::new(error)))?;
        let sum = lattice
            .features
            .par_chunks(lattice.stride * self.block_rows)
            .zip(lattice.steps.par_chunks(self.block_rows))
            .zip(self.table.labels().par_chunks(self.block_rows))
            .map(|((features, steps), labels)| Self::sum_block(query, &lattice, features, steps, labels))
            .reduce(
                || PartialSum::zero(query),
                |mut left, right| {
                    left.merge(right);
                    left
                },
            );
        Ok(sum)
    }
}
