//! Answers queries from a table in memory, with all threads.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rayon::iter::Either;
use rayon::prelude::*;
use reticent_core::adjacency::PrivacyUnit;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::Encoding;
use reticent_core::engine::{Engine, EngineError};
use reticent_core::minimum::MinimumQuery;
use reticent_core::public_features::PublicFeatures;
use reticent_core::query::SumQuery;
use reticent_core::sum::PartialSum;

use crate::kernel::{ColumnOrder, Instructions, LatticeRowsMut, encode_rows, find_largest_slopes};
use crate::lattice::{ChosenCoordinates, CompactBlock, LatticeBlock, Steps, narrow, widen};
use crate::minimiser::{Problem, Rows, minimise};
use crate::running_sum::RunningSum;
use crate::table::CodedTable;

/// A coded table with its latest lattice. Sums do not depend on the order of rows, the block size or the threads.
pub struct MemoryEngine {
    table: CodedTable,
    block_rows: usize,
    latest: Mutex<Latest>,
}

/// What the last query left: private.
enum Latest {
    /// The rows under its encoding; encoding again costs more than a pass.
    Rows(Arc<Lattice>),
    /// Memory for rows.
    Room(Room),
}

/// Rows on the lattice, without the zeros of wide blocks: private.
struct Lattice {
    encoding: Arc<Encoding>,
    /// Row after row, one coordinate a packed column.
    packed: Packed,
    steps: RowSteps,
    /// Row after row, one a wide block: the column, and the coordinate.
    chosen_columns: Vec<u32>,
    chosen: Vec<i16>,
    /// The largest slope of each row under the clip norm of the last query that had one.
    largest_slopes: Mutex<Option<(u32, Arc<Vec<i16>>)>>,
    /// The chosen coordinates of blocks of so many rows, column after column.
    by_column: Mutex<Option<(usize, Arc<Vec<ColumnOrder>>)>>,
}

/// Coordinates of packed columns.
enum Packed {
    Fine(Vec<i16>),
    /// Of a coarse encoding, in units of [`reticent_core::encoding::COARSE_STEPS`].
    Coarse(Vec<i8>),
}

/// Length of one lattice step of each row.
enum RowSteps {
    Common(f32),
    Own(Vec<f32>),
}

impl Lattice {
    fn is_of(&self, encoding: &Arc<Encoding>) -> bool {
        Arc::ptr_eq(&self.encoding, encoding) || self.encoding == *encoding
    }

    /// The rows of these labels, from row `first` on, their coordinates being those of `packed`.
    fn block<'a, T>(&'a self, packed: &'a [T], first: usize, labels: &'a [CodedLabel]) -> CompactBlock<'a, T> {
        let layout = self.encoding.layout();
        let rows = first..first + labels.len();
        let columns = layout.packed().len();
        let chosen = ChosenCoordinates {
            per_row: layout.chosen(),
            has_list: layout.has_list(),
            columns: &self.chosen_columns,
            values: &self.chosen,
            by_column: None,
        };
        let packed = LatticeBlock {
            columns,
            features: &packed[rows.start * columns..rows.end * columns],
            steps: match &self.steps {
                RowSteps::Common(step) => Steps::Common(*step),
                RowSteps::Own(steps) => Steps::Own(&steps[rows.clone()]),
            },
            labels,
        };
        CompactBlock { layout, packed, chosen: chosen.of_rows(rows) }
    }

    /// The largest slope of each row whose product with it is no longer than `clip`.
    fn largest_slopes(&self, clip: u32, labels: &[CodedLabel]) -> Result<Arc<Vec<i16>>, OutOfMemory> {
        // As with the lattice: nothing half done is ever in there.
        let mut cached = self.largest_slopes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, largest)) = cached.as_ref().filter(|(of, _)| *of == clip) {
            return Ok(largest.clone());
        }
        let mut largest = zeros::<i16>(labels.len())?;
        let instructions = Instructions::best();
        let blocks = largest.par_chunks_mut(BLOCK_ROWS).zip(labels.par_chunks(BLOCK_ROWS)).enumerate();
        blocks.for_each(|(block, (largest, labels))| {
            let first = block * BLOCK_ROWS;
            match &self.packed {
                Packed::Fine(packed) => {
                    find_largest_slopes(instructions, clip, &self.block(packed, first, labels), largest);
                }
                Packed::Coarse(packed) => {
                    find_largest_slopes(instructions, clip, &self.block(packed, first, labels), largest);
                }
            }
        });
        let largest = Arc::new(largest);
        *cached = Some((clip, largest.clone()));
        Ok(largest)
    }

    /// The chosen coordinates of blocks of so many rows, column after column.
    fn by_column(&self, block_rows: usize) -> Result<Arc<Vec<ColumnOrder>>, OutOfMemory> {
        let mut cached = self.by_column.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, orders)) = cached.as_ref().filter(|(of, _)| *of == block_rows) {
            return Ok(orders.clone());
        }
        let layout = self.encoding.layout();
        let of_block = block_rows * layout.chosen();
        let blocks = self.chosen_columns.par_chunks(of_block).zip(self.chosen.par_chunks(of_block));
        let order = |(columns, values)| {
            let (per_row, has_list) = (layout.chosen(), layout.has_list());
            let chosen = ChosenCoordinates { per_row, has_list, columns, values, by_column: None };
            ColumnOrder::of(&chosen, layout.columns())
        };
        let orders = Arc::new(blocks.map(order).collect::<Result<_, _>>()?);
        *cached = Some((block_rows, Arc::clone(&orders)));
        Ok(orders)
    }

    /// Whole rows, zeros included.
    fn expanded(&self, labels: &[CodedLabel]) -> Result<Cow<'_, [i16]>, OutOfMemory> {
        let layout = self.encoding.layout();
        let packed = match &self.packed {
            Packed::Fine(packed) if layout.chosen() == 0 => return Ok(Cow::Borrowed(packed)),
            Packed::Fine(packed) => Cow::Borrowed(packed),
            Packed::Coarse(packed) => {
                let mut wider = zeros(packed.len())?;
                widen(packed, &mut wider);
                Cow::Owned(wider)
            }
        };
        let mut features = zeros::<i16>(labels.len().checked_mul(layout.columns()).ok_or(OutOfMemory)?)?;
        self.block(&packed, 0, labels).expand(&mut features);
        Ok(Cow::Owned(features))
    }
}

impl Latest {
    fn is_of(&self, encoding: &Arc<Encoding>) -> bool {
        matches!(self, Self::Rows(lattice) if lattice.is_of(encoding))
    }

    /// The memory, for other rows; none where a query on another thread still reads it.
    fn take(&mut self) -> Room {
        match std::mem::replace(self, Self::Room(Room::default())) {
            Self::Rows(lattice) => Arc::try_unwrap(lattice).map_or_else(|_| Room::default(), Room::from),
            Self::Room(room) => room,
        }
    }
}

/// Memory for the rows of a table: touched, so that it is there, and of no meaning until they are written.
#[derive(Default)]
struct Room {
    fine: Vec<i16>,
    coarse: Vec<i8>,
    chosen_columns: Vec<u32>,
    chosen: Vec<i16>,
    steps: Vec<f32>,
}

impl From<Lattice> for Room {
    fn from(lattice: Lattice) -> Self {
        let (fine, coarse) = match lattice.packed {
            Packed::Fine(fine) => (fine, Vec::new()),
            Packed::Coarse(coarse) => (Vec::new(), coarse),
        };
        let steps = match lattice.steps {
            RowSteps::Common(_) => Vec::new(),
            RowSteps::Own(steps) => steps,
        };
        Self { fine, coarse, chosen_columns: lattice.chosen_columns, chosen: lattice.chosen, steps }
    }
}

impl Room {
    /// Room for the rows under an encoding: what is there already where it fits, for the rest new memory.
    fn for_rows(mut self, rows: usize, encoding: &Encoding) -> Result<Self, OutOfMemory> {
        let (layout, is_coarse) = (encoding.layout(), encoding.is_coarse());
        let of_rows = |each: usize| rows.checked_mul(each).ok_or(OutOfMemory);
        let (packed, chosen) = (of_rows(layout.packed().len())?, of_rows(layout.chosen())?);
        let (fine, coarse) = if is_coarse { (0, packed) } else { (packed, 0) };
        let steps = if encoding.common_step().is_some() { 0 } else { rows };
        // What does not fit goes first: old and new together could fail after payment where one was seen to fit before it.
        keep_length(&mut self.fine, fine);
        keep_length(&mut self.coarse, coarse);
        keep_length(&mut self.chosen_columns, chosen);
        keep_length(&mut self.chosen, chosen);
        keep_length(&mut self.steps, steps);
        Ok(Self {
            fine: filled(self.fine, fine)?,
            coarse: filled(self.coarse, coarse)?,
            chosen_columns: filled(self.chosen_columns, chosen)?,
            chosen: filled(self.chosen, chosen)?,
            steps: filled(self.steps, steps)?,
        })
    }
}

fn keep_length<T>(memory: &mut Vec<T>, length: usize) {
    if memory.len() != length {
        *memory = Vec::new();
    }
}

fn filled<T: Default + Clone>(memory: Vec<T>, length: usize) -> Result<Vec<T>, OutOfMemory> {
    if memory.len() == length { Ok(memory) } else { zeros(length) }
}

/// The table does not fit. An aborting allocation would print its size, and with it the number of rows.
#[derive(Debug, thiserror::Error)]
#[error(
    "not enough memory for the encoded table; use a machine with more memory, or list fewer features or categories"
)]
pub struct OutOfMemory;

pub(crate) fn zeros<T: Default + Clone>(length: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(length).map_err(|_| OutOfMemory)?;
    zeros.resize(length, T::default());
    Ok(zeros)
}

/// Rows that one task adds up: enough to hide the cost of a task, few enough to share out.
const BLOCK_ROWS: usize = 2048;

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
    /// When `block_rows` is zero or above `2^16`.
    #[must_use]
    pub fn with_block_rows(table: CodedTable, block_rows: usize) -> Self {
        assert!((1..=1 << 16).contains(&block_rows), "a block has rows, and its products fit 64 bits");
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
                let lattice = Arc::new(self.encode(encoding.clone(), latest.take())?);
                *latest = Latest::Rows(lattice.clone());
                Ok(lattice)
            }
        }
    }

    fn encode(&self, encoding: Arc<Encoding>, room: Room) -> Result<Lattice, OutOfMemory> {
        assert!(encoding.coding() == self.table.coding(), "codes are read with the coding that made them");
        let rows = self.table.rows();
        let (columns, chosen_per_row) = (encoding.layout().packed().len(), encoding.layout().chosen());
        let Room { mut fine, mut coarse, mut chosen_columns, mut chosen, mut steps } =
            room.for_rows(rows, &encoding)?;
        let common = encoding.common_step();
        let cut = Cut { rows, block_rows: self.block_rows };
        let places = cut
            .blocks_of(&mut fine, columns)
            .zip(cut.blocks_of(&mut coarse, columns))
            .zip(cut.blocks_of(&mut chosen_columns, chosen_per_row))
            .zip(cut.blocks_of(&mut chosen, chosen_per_row))
            .zip(cut.blocks_of(&mut steps, 1));
        let instructions = Instructions::best();
        places.enumerate().for_each(|(block, ((((fine, coarse), chosen_columns), chosen), own_steps))| {
            let first = block * self.block_rows;
            let mut wider = vec![0i16; coarse.len()];
            let packed = if encoding.is_coarse() { &mut wider[..] } else { fine };
            let codes = self.table.codes_of_rows(first..first + packed.len() / columns);
            encode_rows(instructions, &encoding, codes, LatticeRowsMut { packed, chosen_columns, chosen, own_steps });
            narrow(&wider, coarse);
        });
        let packed = if encoding.is_coarse() { Packed::Coarse(coarse) } else { Packed::Fine(fine) };
        let steps = common.map_or(RowSteps::Own(steps), RowSteps::Common);
        Ok(Lattice {
            encoding,
            packed,
            steps,
            chosen_columns,
            chosen,
            largest_slopes: Mutex::new(None),
            by_column: Mutex::new(None),
        })
    }

    /// Rows of the blocks that are added up for a query. If the sum may be larger than the rows of a block, each thread has one, and as
    /// few of the same size as the products of a block fit 64 bits.
    fn block_rows_of(&self, query: &SumQuery) -> usize {
        if !is_large(query) {
            return self.block_rows;
        }
        let (rows, threads) = (self.table.rows(), rayon::current_num_threads());
        let blocks = threads * rows.div_ceil(threads << 16).max(1);
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
        let (block_rows, labels) = (self.block_rows_of(query), self.table.labels());
        let tasks = rayon::current_num_threads() * if is_large(query) { 1 } else { TASKS_A_THREAD };
        let task_rows = block_rows * labels.len().div_ceil(block_rows).div_ceil(tasks).max(1);
        let sum_of = |(task, labels): (usize, &[CodedLabel])| {
            let mut sum = start();
            for (block, labels) in labels.chunks(block_rows).enumerate() {
                add(&mut sum, task * task_rows + block * block_rows, labels);
            }
            sum
        };
        labels.par_chunks(task_rows).enumerate().map(sum_of).reduce_with(join).unwrap_or_else(start)
    }

    /// The labels times the rows of the query's public matrix.
    fn sum_labels(&self, query: &SumQuery) -> PartialSum {
        let add_block = |sum: &mut PartialSum, first: usize, labels: &[CodedLabel]| {
            labels.iter().enumerate().for_each(|(row, label)| sum.add_label(query, first + row, *label));
        };
        let join = |mut left: PartialSum, right| {
            left.merge(right);
            left
        };
        self.sum_blocks(query, || PartialSum::zero(query), add_block, join)
    }
}

fn is_large(query: &SumQuery) -> bool {
    query.shape().coordinates() > SMALL_SUM
}

/// Rows cut into blocks.
struct Cut {
    rows: usize,
    block_rows: usize,
}

impl Cut {
    /// The places of `each` values a row, one slice a block; empty ones where there is nothing to write.
    fn blocks_of<'v, T: Send>(
        &self,
        values: &'v mut [T],
        each: usize,
    ) -> impl IndexedParallelIterator<Item = &'v mut [T]> {
        if values.is_empty() {
            let blocks = self.rows.div_ceil(self.block_rows);
            Either::Left((0..blocks).into_par_iter().map(|_| &mut [][..]))
        } else {
            Either::Right(values.par_chunks_mut(each * self.block_rows))
        }
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
            match &lattice.packed {
                Packed::Fine(packed) => sum.add(&lattice.block(packed, first, labels).with(by_column), largest),
                Packed::Coarse(packed) => {
                    sum.add_coarse(&lattice.block(packed, first, labels).with(by_column), largest)
                }
            }
        };
        Ok(self.sum_blocks(query, || RunningSum::zero(query), add, RunningSum::joined).finish())
    }

    fn exact_minimum(&self, query: &MinimumQuery, perturbation: &[i128]) -> Result<PartialSum, EngineError> {
        let lost = |error: OutOfMemory| EngineError(Box::new(error));
        let lattice = self.lattice_of(query.encoding()).map_err(lost)?;
        let columns = lattice.encoding.layout().columns();
        let features = lattice.expanded(self.table.labels()).map_err(lost)?;
        let answer = minimise(&Problem {
            rows: Rows { features: &features, columns, labels: self.table.labels() },
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
