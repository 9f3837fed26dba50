//! The records of a text whose rows are public, with all their fields, read on all threads.

use std::marker::PhantomData;

use super::SourceError;
use super::block_records::{BlockRecord, FieldRoom, RecordPlan};
use super::csv::{CsvTable, Record};
use super::made_batch::{MadeBatch, ROWS_AT_ONCE, for_each_made_of_text};
use super::record_blocks::RecordBlock;
use super::text_threads::RecordReader;

/// One record of a public file.
pub(crate) struct PublicRecord<'a>(Place<'a>);

enum Place<'a> {
    InBlock(&'a BlockRecord<'a>),
    ByItself(&'a Record),
}

impl PublicRecord<'_> {
    /// Number of fields, of which no more are counted than were asked for; none of a record that is longer than is read.
    pub(crate) fn fields(&self) -> usize {
        match self.0 {
            Place::InBlock(record) => record.count(),
            Place::ByItself(record) => record.count(),
        }
    }

    /// A field, trimmed; empty where there is none.
    #[inline]
    pub(crate) fn field(&self, field: usize) -> &[u8] {
        let text = match self.0 {
            Place::InBlock(record) => record.field(field),
            Place::ByItself(record) => record.field(field),
        };
        text.unwrap_or_default().trim_ascii()
    }
}

impl CsvTable {
    /// Makes something of every remaining record, with up to `fields_max` fields, on all threads, and hands what was made of some after
    /// another to `take`, in order and on this thread, until it fails.
    pub(crate) fn for_each_public<T: Default + Send, E: From<SourceError>>(
        self,
        fields_max: usize,
        progress: &mut dyn FnMut(u64),
        make: impl Fn(&PublicRecord<'_>, &mut T) + Sync,
        take: &mut dyn FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let (cutter, delimiter) = self.into_records_of(fields_max);
        let plan = RecordPlan { delimiter, is_wanted: vec![true; fields_max], rows_at_once: ROWS_AT_ONCE };
        let reader = &PublicRecords { plan, make, made: PhantomData };
        for_each_made_of_text(reader, cutter, progress, take)
    }
}

struct PublicRecords<F, T> {
    plan: RecordPlan,
    make: F,
    made: PhantomData<fn() -> T>,
}

impl<F: Fn(&PublicRecord<'_>, &mut T) + Sync, T: Default + Send> RecordReader for PublicRecords<F, T> {
    type Scratch = FieldRoom;
    type Batch = MadeBatch<T>;

    fn scratch(&self) -> FieldRoom {
        FieldRoom::default()
    }

    fn read_block<E>(
        &self,
        block: &RecordBlock,
        room: &mut FieldRoom,
        batch: &mut MadeBatch<T>,
        emit: impl FnMut(&mut MadeBatch<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let add = |record: &BlockRecord<'_>, batch: &mut MadeBatch<T>| {
            batch.add(|made| (self.make)(&PublicRecord(Place::InBlock(record)), made));
        };
        room.read(&self.plan, block, batch, add, emit)
    }

    fn read_record(&self, record: &Record, _: &mut FieldRoom, batch: &mut MadeBatch<T>) {
        batch.add(|made| (self.make)(&PublicRecord(Place::ByItself(record)), made));
    }
}
