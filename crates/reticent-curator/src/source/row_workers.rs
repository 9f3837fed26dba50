//! Rows of which each thread makes something, handed over in the file's order.

use std::marker::PhantomData;

use rayon::prelude::*;

use super::block_records::{BlockRecord, BlockRow, FieldRoom, RecordPlan};
use super::csv::{CsvRow, Record, fields_max};
use super::made_batch::MadeBatch;
use super::parquet::ParquetRow;
use super::parquet_values::BatchColumn;
use super::record_blocks::RecordBlock;
use super::row_readers::{RowAssembler, RowRoom};
use super::text_threads::RecordReader;
use super::{RawRow, Row, SourceError};

/// What one thread makes rows with.
pub(super) struct RowWorker<'a, W> {
    assembler: &'a RowAssembler,
    room: RowRoom,
    work: W,
}

impl<'a, W> RowWorker<'a, W> {
    pub(super) fn new(assembler: &'a RowAssembler, work: W) -> Self {
        Self { assembler, room: assembler.room(), work }
    }

    pub(super) fn add<T: Default>(&mut self, raw: &impl RawRow, batch: &mut MadeBatch<T>)
    where
        W: FnMut(Row<'_>, &mut T),
    {
        let Self { assembler, room, work } = self;
        batch.add(|made| assembler.assemble(raw, room, &mut |row| work(row, made)));
    }
}

/// Rows of Parquet that one thread makes something of: the same however many there are, because files of predictions are written in such
/// pieces.
const ROWS_OF_SHARE: usize = 1024;

/// Makes something of the rows of a batch of Parquet: each thread of a share of them.
pub(super) fn share_rows<T, W, E>(
    columns: &[BatchColumn],
    rows: usize,
    rows_at_once: usize,
    workers: &mut [(RowWorker<'_, W>, MadeBatch<T>)],
    take: &mut dyn FnMut(T) -> Result<(), E>,
) -> Result<(), E>
where
    T: Default + Send,
    W: FnMut(Row<'_>, &mut T) + Send,
    E: From<SourceError>,
{
    let share = rows_at_once.min(ROWS_OF_SHARE);
    for start in (0..rows).step_by(share * workers.len()) {
        workers.par_iter_mut().enumerate().for_each(|(place, (worker, batch))| {
            let first = start + place * share;
            (first..(first + share).min(rows)).for_each(|row| worker.add(&ParquetRow { columns, row }, batch));
        });
        workers.iter_mut().try_for_each(|(_, batch)| take(batch.take()?))?;
    }
    Ok(())
}

/// Makes something of the rows of a text.
pub(super) struct TextRows<'a, F, T> {
    assembler: &'a RowAssembler,
    plan: RecordPlan,
    /// Place in a record of each slot of a row.
    columns: Vec<usize>,
    /// What a thread begins with.
    worker: &'a F,
    made: PhantomData<fn() -> T>,
}

impl<'a, F, T> TextRows<'a, F, T> {
    pub(super) fn new(
        assembler: &'a RowAssembler,
        delimiter: u8,
        columns: Vec<usize>,
        rows_at_once: usize,
        worker: &'a F,
    ) -> Self {
        let mut is_wanted = vec![false; fields_max(&columns)];
        columns.iter().for_each(|column| is_wanted[*column] = true);
        let plan = RecordPlan { delimiter, is_wanted, rows_at_once };
        Self { assembler, plan, columns, worker, made: PhantomData }
    }
}

impl<'a, T, W, F> RecordReader for TextRows<'a, F, T>
where
    T: Default + Send,
    W: FnMut(Row<'_>, &mut T),
    F: Fn() -> W + Sync,
{
    type Scratch = (FieldRoom, RowWorker<'a, W>);
    type Batch = MadeBatch<T>;

    fn scratch(&self) -> Self::Scratch {
        (FieldRoom::default(), RowWorker::new(self.assembler, (self.worker)()))
    }

    fn read_block<E>(
        &self,
        block: &RecordBlock,
        (room, worker): &mut Self::Scratch,
        batch: &mut MadeBatch<T>,
        emit: impl FnMut(&mut MadeBatch<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let add = |record: &BlockRecord<'_>, batch: &mut _| {
            worker.add(&BlockRow { record, columns: &self.columns }, batch);
        };
        room.read(&self.plan, block, batch, add, emit)
    }

    fn read_record(&self, record: &Record, (_, worker): &mut Self::Scratch, batch: &mut MadeBatch<T>) {
        worker.add(&CsvRow { record, slots: &self.columns }, batch);
    }
}
