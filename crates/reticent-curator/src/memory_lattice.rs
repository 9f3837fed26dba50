//! The rows of a table on the lattice, in memory, and what is kept of them from one query to the next.

use std::sync::{Arc, Mutex, PoisonError};

use rayon::iter::Either;
use rayon::prelude::*;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::Encoding;

use crate::kernel::{ColumnOrder, Instructions, LatticeRowsMut, encode_rows, find_largest_slopes};
use crate::lattice::{ChosenCoordinates, CompactBlock, KeptBlock, LatticeBlock, Steps, narrow};
use crate::out_of_memory::{OutOfMemory, zeros};
use crate::table::CodedTable;

/// What the last query left: private.
pub(crate) enum Latest {
    /// The rows under its encoding; encoding again costs more than a pass.
    Rows(Arc<Lattice>),
    /// Memory for rows.
    Room(Room),
}

/// Rows on the lattice, without the zeros of wide blocks: private.
pub(crate) struct Lattice {
    pub(crate) encoding: Arc<Encoding>,
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
    /// The rows of a table under an encoding, written into `room` by all threads, so many rows at a time.
    ///
    /// # Panics
    /// When the table is of another coding.
    pub(crate) fn of(
        table: &CodedTable,
        encoding: Arc<Encoding>,
        room: Room,
        block_rows: usize,
    ) -> Result<Self, OutOfMemory> {
        assert!(encoding.coding() == table.coding(), "codes are read with the coding that made them");
        let rows = table.rows();
        let (columns, chosen_per_row) = (encoding.layout().packed().len(), encoding.layout().chosen());
        let Room { mut fine, mut coarse, mut chosen_columns, mut chosen, mut steps } =
            room.for_rows(rows, &encoding)?;
        let common = encoding.common_step();
        let cut = Cut { rows, block_rows };
        let places = cut
            .blocks_of(&mut fine, columns)
            .zip(cut.blocks_of(&mut coarse, columns))
            .zip(cut.blocks_of(&mut chosen_columns, chosen_per_row))
            .zip(cut.blocks_of(&mut chosen, chosen_per_row))
            .zip(cut.blocks_of(&mut steps, 1));
        let instructions = Instructions::best();
        places.enumerate().for_each(|(block, ((((fine, coarse), chosen_columns), chosen), own_steps))| {
            let first = block * block_rows;
            let mut wider = vec![0i16; coarse.len()];
            let packed = if encoding.is_coarse() { &mut wider[..] } else { fine };
            let codes = table.codes_of_rows(first..first + packed.len() / columns);
            encode_rows(instructions, &encoding, codes, LatticeRowsMut { packed, chosen_columns, chosen, own_steps });
            narrow(&wider, coarse);
        });
        let packed = if encoding.is_coarse() { Packed::Coarse(coarse) } else { Packed::Fine(fine) };
        let steps = common.map_or(RowSteps::Own(steps), RowSteps::Common);
        let (largest_slopes, by_column) = (Mutex::new(None), Mutex::new(None));
        Ok(Self { encoding, packed, steps, chosen_columns, chosen, largest_slopes, by_column })
    }

    pub(crate) fn is_of(&self, encoding: &Arc<Encoding>) -> bool {
        Arc::ptr_eq(&self.encoding, encoding) || self.encoding == *encoding
    }

    /// The rows of these labels, from row `first` on.
    pub(crate) fn kept_block<'a>(&'a self, first: usize, labels: &'a [CodedLabel]) -> KeptBlock<'a> {
        match &self.packed {
            Packed::Fine(packed) => KeptBlock::Fine(self.block(packed, first, labels)),
            Packed::Coarse(packed) => KeptBlock::Coarse(self.block(packed, first, labels)),
        }
    }

    /// The same, their coordinates being those of `packed`.
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
    pub(crate) fn largest_slopes(&self, clip: u32, labels: &[CodedLabel]) -> Result<Arc<Vec<i16>>, OutOfMemory> {
        // As with the lattice: nothing half done is ever in there.
        let mut cached = self.largest_slopes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, largest)) = cached.as_ref().filter(|(of, _)| *of == clip) {
            return Ok(largest.clone());
        }
        let mut largest = zeros::<i16>(labels.len())?;
        let instructions = Instructions::best();
        let blocks = largest.par_chunks_mut(BLOCK_ROWS).zip(labels.par_chunks(BLOCK_ROWS)).enumerate();
        blocks.for_each(|(block, (largest, labels))| match self.kept_block(block * BLOCK_ROWS, labels) {
            KeptBlock::Fine(block) => find_largest_slopes(instructions, clip, &block, largest),
            KeptBlock::Coarse(block) => find_largest_slopes(instructions, clip, &block, largest),
        });
        let largest = Arc::new(largest);
        *cached = Some((clip, largest.clone()));
        Ok(largest)
    }

    /// The chosen coordinates of blocks of so many rows, column after column.
    pub(crate) fn by_column(&self, block_rows: usize) -> Result<Arc<Vec<ColumnOrder>>, OutOfMemory> {
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
}

impl Latest {
    pub(crate) fn is_of(&self, encoding: &Arc<Encoding>) -> bool {
        matches!(self, Self::Rows(lattice) if lattice.is_of(encoding))
    }

    /// The memory, for other rows; none where a query on another thread still reads it.
    pub(crate) fn take(&mut self) -> Room {
        match std::mem::replace(self, Self::Room(Room::default())) {
            Self::Rows(lattice) => Arc::try_unwrap(lattice).map_or_else(|_| Room::default(), Room::from),
            Self::Room(room) => room,
        }
    }
}

/// Memory for the rows of a table: touched, so that it is there, and of no meaning until they are written.
#[derive(Default)]
pub(crate) struct Room {
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
    pub(crate) fn for_rows(mut self, rows: usize, encoding: &Encoding) -> Result<Self, OutOfMemory> {
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

/// Rows that one task works on: enough to hide the cost of a task, few enough to share out.
pub(crate) const BLOCK_ROWS: usize = 2048;

/// Goes over rows in so many tasks: each starts from `start` and adds block after block, given its first row and its labels.
pub(crate) fn fold_blocks<S: Send>(
    labels: &[CodedLabel],
    block_rows: usize,
    tasks: usize,
    start: impl Fn() -> S + Send + Sync,
    add: impl Fn(&mut S, usize, &[CodedLabel]) + Send + Sync,
) -> impl ParallelIterator<Item = S> {
    let task_rows = block_rows * labels.len().div_ceil(block_rows).div_ceil(tasks).max(1);
    labels.par_chunks(task_rows).enumerate().map(move |(task, labels)| {
        let mut sum = start();
        for (block, labels) in labels.chunks(block_rows).enumerate() {
            add(&mut sum, task * task_rows + block * block_rows, labels);
        }
        sum
    })
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
