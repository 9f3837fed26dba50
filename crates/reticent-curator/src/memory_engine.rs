//! Answers queries from a table in memory, with all threads.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::Encoding;
use reticent_core::engine::{Engine, EngineError};
use reticent_core::minimum::MinimumQuery;
use reticent_core::public_features::PublicFeatures;
use reticent_core::query::{Map, SumQuery};
use reticent_core::sum::PartialSum;

use crate::lattice::{LatticeBlock, Steps};
use crate::minimiser::{Labels, Problem, Rows, minimise};
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
    /// Row after row, one coordinate a column.
    features: Vec<i16>,
    steps: RowSteps,
}

/// Length of one lattice step of each row.
enum RowSteps {
    Common(f32),
    Own(Vec<f32>),
}

impl Lattice {
    /// The rows of these labels, from row `first` on.
    fn block<'a>(&'a self, first: usize, labels: &'a [CodedLabel]) -> LatticeBlock<'a> {
        let rows = first..first + labels.len();
        LatticeBlock {
            columns: self.columns,
            features: &self.features[rows.start * self.columns..rows.end * self.columns],
            steps: match &self.steps {
                RowSteps::Common(step) => Steps::Common(*step),
                RowSteps::Own(steps) => Steps::Own(&steps[rows]),
            },
            labels,
        }
    }
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
    /// When `block_rows` is zero or above `2^16`.
    #[must_use]
    pub fn with_block_rows(table: CodedTable, block_rows: usize) -> Self {
        assert!((1..=1 << 16).contains(&block_rows), "a block has rows, and its products fit 64 bits");
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
                // The old one goes first: two at once could fail after payment where one was seen to fit before it.
                *cached = None;
                let lattice = Arc::new(self.encode(encoding.clone())?);
                *cached = Some(lattice.clone());
                Ok(lattice)
            }
        }
    }

    fn encode(&self, encoding: Arc<Encoding>) -> Result<Lattice, OutOfMemory> {
        assert!(encoding.coding() == self.table.coding(), "codes are read with the coding that made them");
        let (rows, columns) = (self.table.rows(), encoding.coding().columns().len());
        let mut features = zeros::<i16>(rows.checked_mul(columns).ok_or(OutOfMemory)?)?;
        let common = encoding.common_step();
        let mut own_steps = if common.is_some() { Vec::new() } else { zeros::<f32>(rows)? };
        let encode_block = |block: usize, features: &mut [i16], steps: &mut [f32]| {
            let mut scratch = vec![0.0; columns];
            for (offset, row) in features.chunks_exact_mut(columns).enumerate() {
                let codes = self.table.codes_of_row(block * self.block_rows + offset);
                let step = encoding.encode_codes(codes, &mut scratch, row);
                if let Some(own) = steps.get_mut(offset) {
                    *own = step;
                }
            }
        };
        let blocks = features.par_chunks_mut(columns * self.block_rows);
        let steps = match common {
            Some(step) => {
                blocks.enumerate().for_each(|(block, features)| encode_block(block, features, &mut []));
                RowSteps::Common(step)
            }
            None => {
                let blocks = blocks.zip(own_steps.par_chunks_mut(self.block_rows)).enumerate();
                blocks.for_each(|(block, (features, steps))| encode_block(block, features, steps));
                RowSteps::Own(own_steps)
            }
        };
        Ok(Lattice { encoding, columns, features, steps })
    }

    /// Sums over blocks of rows, on all threads.
    fn sum_blocks(
        &self,
        query: &SumQuery,
        sum_block: impl Fn(usize, &[CodedLabel]) -> PartialSum + Sync,
    ) -> PartialSum {
        let block_rows = if matches!(query.shape().map(), Map::Gram { .. }) {
            // A sum of products may be much larger than a block: one a thread, if its products fit 64 bits.
            self.table.rows().div_ceil(rayon::current_num_threads()).clamp(self.block_rows, 1 << 16)
        } else {
            self.block_rows
        };
        let blocks = self.table.labels().par_chunks(block_rows).enumerate();
        blocks.map(|(block, labels)| sum_block(block * block_rows, labels)).reduce(
            || PartialSum::zero(query),
            |mut left, right| {
                left.merge(right);
                left
            },
        )
    }
}

/// A public matrix that does not have one row for each label.
#[derive(Debug, thiserror::Error)]
#[error("the public matrix does not have one row for each row of the table")]
struct OtherRows;

impl Engine for MemoryEngine {
    fn unit(&self) -> &PrivacyUnit {
        self.table.unit()
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        let lost = |error| EngineError(error);
        if let Some(matrix) = query.matrix() {
            // Under label adjacency, where alone such a query has a price, the number of rows is public.
            if matrix.rows() != self.table.rows() {
                return Err(lost(Box::new(OtherRows)));
            }
            return Ok(self.sum_blocks(query, |first, labels| {
                let mut sum = PartialSum::zero(query);
                labels.iter().enumerate().for_each(|(row, label)| sum.add_label(query, first + row, *label));
                sum
            }));
        }
        let encoding = query.encoding().expect("a query has a matrix or an encoding");
        if let Map::Marginals { .. } = query.shape().map() {
            assert!(encoding.coding() == self.table.coding(), "codes are read with the coding that made them");
            return Ok(self.sum_blocks(query, |first, labels| {
                let mut sum = PartialSum::zero(query);
                for (row, label) in labels.iter().enumerate() {
                    sum.add_codes(query, self.table.codes_of_row(first + row), *label);
                }
                sum
            }));
        }
        let lattice = self.lattice_of(encoding).map_err(|error| lost(Box::new(error)))?;
        Ok(self.sum_blocks(query, |first, labels| lattice.block(first, labels).sum(query)))
    }

    fn exact_minimum(&self, query: &MinimumQuery, perturbation: &[i128]) -> Result<PartialSum, EngineError> {
        let lost = |error: OutOfMemory| EngineError(Box::new(error));
        let lattice = self.lattice_of(query.encoding()).map_err(lost)?;
        let answer = minimise(&Problem {
            rows: Rows {
                features: &lattice.features,
                stride: lattice.columns,
                columns: lattice.columns,
                labels: Labels::Classes(self.table.labels()),
            },
            minimum: *query.minimum(),
            centre: query.centre(),
            perturbation,
            tolerance: query.minimum().tolerance(query.shape().rows_max()),
            block_rows: self.block_rows,
        });
        Ok(PartialSum::of_minimum(query, answer.map_err(lost)?))
    }

    fn public_features(&self) -> Result<Option<PublicFeatures>, EngineError> {
        let coding = self.table.coding();
        let columns = coding.columns().len();
        let rows = self.table.rows();
        let mut values = zeros::<f64>(rows.saturating_mul(columns)).map_err(|error| EngineError(Box::new(error)))?;
        for (row, values) in values.chunks_exact_mut(columns).enumerate() {
            coding.expand(self.table.codes_of_row(row), values);
        }
        Ok(Some(PublicFeatures { columns, values }))
    }
}
