//! One record of a block after another, with what was in quotes taken out of them.

use reticent_core::record::{Cell, FeatureReader, RawValue};

use super::RawRow;
use super::block_fields::{FieldVisitor, make_room_for_fields, visit_fields};
use super::made_batch::MadeBatch;
use super::record_blocks::RecordBlock;
use super::text_coder::{plain_number, unquote};

/// How the records of a text are read.
pub(super) struct RecordPlan {
    pub(super) delimiter: u8,
    /// Which fields of a record are wanted, up to the last that is.
    pub(super) is_wanted: Vec<bool>,
    /// Rows of which something is made before it is handed on.
    pub(super) rows_at_once: usize,
}

/// Buffers of one thread, used again for every block: private.
#[derive(Default)]
pub(super) struct FieldRoom {
    places: Vec<u32>,
    fields: Vec<Field>,
    unquoted: Vec<u8>,
}

/// Where what a field of a record says is.
#[derive(Clone, Copy)]
enum Field {
    /// From here to there in the block's bytes.
    InBlock(usize, usize),
    /// In what was taken out of quotes.
    Unquoted(usize, usize),
}

impl FieldRoom {
    /// Calls `add` for every record of a block; fields that are not wanted may be in quotes. When a batch has so many rows, `emit` takes it
    /// and leaves an empty one.
    pub(super) fn read<T: Default + Send, E>(
        &mut self,
        plan: &RecordPlan,
        block: &RecordBlock,
        batch: &mut MadeBatch<T>,
        add: impl FnMut(&BlockRecord<'_>, &mut MadeBatch<T>),
        emit: impl FnMut(&mut MadeBatch<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { places, fields, unquoted } = self;
        if make_room_for_fields(block, places, unquoted).is_err() {
            batch.lose();
            return Ok(());
        }
        let mut records = RecordsOfBlock { plan, block, fields, unquoted, batch, add, emit };
        visit_fields(block, plan.delimiter, plan.is_wanted.len(), places, &mut records)?;
        batch.bytes_read = block.bytes_read();
        Ok(())
    }
}

/// Record after record of a block.
struct RecordsOfBlock<'a, T, A, F> {
    plan: &'a RecordPlan,
    block: &'a RecordBlock,
    fields: &'a mut Vec<Field>,
    unquoted: &'a mut Vec<u8>,
    batch: &'a mut MadeBatch<T>,
    add: A,
    emit: F,
}

impl<T, A, F, E> FieldVisitor<E> for RecordsOfBlock<'_, T, A, F>
where
    T: Default + Send,
    A: FnMut(&BlockRecord<'_>, &mut MadeBatch<T>),
    F: FnMut(&mut MadeBatch<T>) -> Result<(), E>,
{
    #[inline]
    fn field(&mut self, place: usize, start: usize, end: usize) {
        self.fields.push(match self.block.bytes()[start..end].strip_prefix(b"\"") {
            Some(rest) if self.plan.is_wanted[place] => {
                let start = self.unquoted.len();
                unquote(rest, self.unquoted);
                Field::Unquoted(start, self.unquoted.len())
            }
            Some(_) | None => Field::InBlock(start, end),
        });
    }

    #[inline]
    fn record(&mut self, _: usize) -> Result<(), E> {
        let Self { block, fields, unquoted, batch, .. } = self;
        (self.add)(&BlockRecord { bytes: block.bytes(), unquoted, fields }, batch);
        fields.clear();
        unquoted.clear();
        if batch.rows() >= self.plan.rows_at_once {
            batch.bytes_read = block.bytes_read();
            (self.emit)(batch)?;
        }
        Ok(())
    }
}

/// One record of a block: private, unless its file is public.
pub(super) struct BlockRecord<'a> {
    bytes: &'a [u8],
    unquoted: &'a [u8],
    fields: &'a [Field],
}

impl BlockRecord<'_> {
    /// Number of fields that were looked at.
    pub(super) fn count(&self) -> usize {
        self.fields.len()
    }

    /// What a field says, if it is there.
    #[inline]
    pub(super) fn field(&self, place: usize) -> Option<&[u8]> {
        Some(match *self.fields.get(place)? {
            Field::InBlock(start, end) => &self.bytes[start..end],
            Field::Unquoted(start, end) => &self.unquoted[start..end],
        })
    }
}

/// One record of a block as the slots of a row: private.
pub(super) struct BlockRow<'a> {
    pub(super) record: &'a BlockRecord<'a>,
    /// Place in the record of each slot.
    pub(super) columns: &'a [usize],
}

impl RawRow for BlockRow<'_> {
    #[inline]
    fn value(&self, slot: usize) -> RawValue<'_> {
        self.record.field(self.columns[slot]).map_or(RawValue::Missing, RawValue::Text)
    }

    #[inline]
    fn cell(&self, slot: usize, reader: &FeatureReader) -> Cell {
        let plain = match self.record.fields.get(self.columns[slot]) {
            Some(Field::InBlock(start, end)) => plain_number(reader, self.record.bytes, *start, *end),
            Some(Field::Unquoted(..)) | None => None,
        };
        plain.unwrap_or_else(|| reader.cell(self.value(slot)))
    }
}
