//! From the fields of a text to codes, without cells in between where a field is a plain number.

use reticent_core::record::{Cell, FeatureReader, RawValue};

use super::block_fields::{FieldVisitor, make_room_for_fields, visit_fields};
use super::coded_batch::CodedBatch;
use super::csv::{CsvRow, Record, fields_max};
use super::record_blocks::RecordBlock;
use super::row_coder::{LinearSlots, RowCoder};
use super::row_readers::label_with_key;
use super::text_threads::RecordReader;
use crate::kernel::{Decimal, DecimalFields, code_decimals};

/// How records become rows of codes; the same for all threads.
pub(super) struct TextCoder {
    rows: RowCoder,
    /// Place in a record of each feature in the schema's order, then of the target and the unit.
    columns: Vec<usize>,
    plan: TextPlan,
}

/// What is made of the fields of a record.
struct TextPlan {
    delimiter: u8,
    /// What to do with each field up to the last that is wanted.
    actions: Vec<Action>,
    /// Features that are not read as decimals at once: place in the schema, and among the kept fields.
    features: Vec<(usize, usize)>,
    /// Kept fields of the target and of the privacy unit.
    target: Option<usize>,
    unit: Option<usize>,
    kept: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    Skip,
    /// The number of one linear slot.
    Decimal(usize),
    /// Remember where it is.
    Keep(usize),
}

/// Buffers of one thread, used again for every block: private.
pub(super) struct Scratch {
    places: Vec<u32>,
    decimals: DecimalFields,
    kept: Vec<Option<(usize, usize)>>,
    unquoted: Vec<u8>,
}

impl RecordReader for TextCoder {
    type Scratch = Scratch;
    type Batch = CodedBatch;

    fn scratch(&self) -> Scratch {
        Scratch {
            places: Vec::new(),
            decimals: DecimalFields::of_places(self.rows.linear.maps.places()),
            kept: vec![None; self.plan.kept],
            unquoted: Vec::new(),
        }
    }

    fn read_block<E>(
        &self,
        block: &RecordBlock,
        scratch: &mut Scratch,
        batch: &mut CodedBatch,
        emit: impl FnMut(&mut CodedBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let Scratch { places, decimals, kept, unquoted } = scratch;
        if make_room_for_fields(block, places, unquoted).is_err() {
            batch.lose();
            return Ok(());
        }
        let actions = &self.plan.actions[..];
        let mut rows =
            RowsOfBlock { coder: self, block, bytes: block.bytes(), actions, decimals, kept, unquoted, batch, emit };
        visit_fields(block, self.plan.delimiter, self.plan.actions.len(), places, &mut rows)?;
        batch.bytes_read = block.bytes_read();
        Ok(())
    }

    fn read_record(&self, record: &Record, _: &mut Scratch, batch: &mut CodedBatch) {
        self.rows.code_row(&CsvRow { record, slots: &self.columns }, batch);
    }
}

/// Codes row after row of a block.
struct RowsOfBlock<'a, F> {
    coder: &'a TextCoder,
    block: &'a RecordBlock,
    bytes: &'a [u8],
    actions: &'a [Action],
    decimals: &'a mut DecimalFields,
    kept: &'a mut [Option<(usize, usize)>],
    unquoted: &'a mut Vec<u8>,
    batch: &'a mut CodedBatch,
    emit: F,
}

impl<E, F: FnMut(&mut CodedBatch) -> Result<(), E>> FieldVisitor<E> for RowsOfBlock<'_, F> {
    #[inline(always)]
    fn field(&mut self, place: usize, start: usize, end: usize) {
        match self.actions[place] {
            Action::Skip => {}
            Action::Decimal(slot) => self.decimals.set(slot, self.bytes, start, end),
            Action::Keep(place) => self.kept[place] = Some((start, end)),
        }
    }

    #[inline(always)]
    fn record(&mut self, count: usize) -> Result<(), E> {
        for action in &self.actions[count..] {
            // The fields that are not there are missing.
            match *action {
                Action::Skip => {}
                Action::Decimal(slot) => self.decimals.set_missing(slot),
                Action::Keep(place) => self.kept[place] = None,
            }
        }
        self.coder.finish_row(self.bytes, self.decimals, self.kept, self.unquoted, self.batch);
        if self.batch.is_full() {
            self.batch.bytes_read = self.block.bytes_read();
            (self.emit)(self.batch)?;
        }
        Ok(())
    }
}

impl TextCoder {
    pub(super) fn new(rows: RowCoder, delimiter: u8, columns: Vec<usize>) -> Self {
        let plan = TextPlan::new(&rows, delimiter, &columns);
        Self { rows, columns, plan }
    }

    fn finish_row(
        &self,
        bytes: &[u8],
        decimals: &mut DecimalFields,
        kept: &[Option<(usize, usize)>],
        unquoted: &mut Vec<u8>,
        batch: &mut CodedBatch,
    ) {
        let start = batch.codes.len();
        let LinearSlots { maps, features, .. } = &self.rows.linear;
        batch.codes.resize(start + maps.places(), 0);
        let codes = &mut batch.codes[start..];
        if code_decimals(self.rows.instructions, maps, bytes, decimals, codes) {
            for slot in decimals.odd_slots() {
                codes[slot] = maps.code(slot, self.odd_number(slot, bytes, decimals.field(slot), unquoted));
            }
        }
        batch.codes.truncate(start + features.len());
        let codes = &mut batch.codes[start..];
        for (feature, place) in &self.plan.features {
            let cell = self.cell(*feature, bytes, kept[*place], unquoted);
            for slot in self.rows.slots_of(*feature) {
                codes[slot] = self.rows.coding.slot_code(slot, &cell);
            }
        }
        let target = self.plan.target.map_or(RawValue::Missing, |place| raw_value(bytes, kept[place], unquoted));
        let label = self.rows.readers.label(target);
        match self.plan.unit {
            None => batch.push(self.rows.code_label(label), None),
            Some(place) => {
                let key = self.rows.readers.key(raw_value(bytes, kept[place], unquoted));
                batch.push(self.rows.code_label(label_with_key(label, key)), key);
            }
        }
    }

    /// The cell of a field, if it is there.
    fn cell(&self, feature: usize, bytes: &[u8], field: Option<(usize, usize)>, unquoted: &mut Vec<u8>) -> Cell {
        let reader = &self.rows.readers.features[feature];
        let plain = field.and_then(|(start, end)| plain_number(reader, bytes, start, end));
        plain.unwrap_or_else(|| reader.cell(raw_value(bytes, field, unquoted)))
    }

    /// A number of a linear slot that is no short decimal as it stands: in quotes, longer, with an exponent, missing.
    #[cold]
    fn odd_number(&self, slot: usize, bytes: &[u8], field: Option<(usize, usize)>, unquoted: &mut Vec<u8>) -> f64 {
        let LinearSlots { features, missing, .. } = &self.rows.linear;
        let Some((start, end)) = field else { return missing[slot] };
        if end - start > 2
            && bytes[start] == b'"'
            && bytes[end - 1] == b'"'
            && let Some(decimal) = Decimal::read(bytes, start + 1, end - 1)
        {
            return decimal.value();
        }
        let feature = features[slot].expect("only the slot of a number is given a field");
        match self.rows.readers.features[feature].cell(raw_value(bytes, field, unquoted)) {
            Cell::Number(number) => number,
            Cell::Category(_) => unreachable!("a linear slot is of a number"),
        }
    }
}

impl TextPlan {
    fn new(rows: &RowCoder, delimiter: u8, columns: &[usize]) -> Self {
        let mut plan = Self {
            delimiter,
            actions: vec![Action::Skip; fields_max(columns)],
            features: Vec::new(),
            target: None,
            unit: None,
            kept: 0,
        };
        for (slot, feature) in rows.linear.features.iter().enumerate() {
            if let Some(feature) = *feature {
                plan.actions[columns[feature]] = Action::Decimal(slot);
            }
        }
        let features = rows.readers.features.len();
        for (feature, column) in columns[..features].iter().enumerate() {
            if rows.slots_of(feature).any(|slot| rows.linear.features[slot].is_none()) {
                let place = plan.keep(*column);
                plan.features.push((feature, place));
            }
        }
        plan.target = rows.readers.target.is_some().then(|| plan.keep(columns[features]));
        plan.unit = rows.readers.keys.is_some().then(|| plan.keep(columns[features + 1]));
        plan
    }

    fn keep(&mut self, column: usize) -> usize {
        assert!(self.actions[column] == Action::Skip, "a schema names a column once");
        self.actions[column] = Action::Keep(self.kept);
        self.kept += 1;
        self.kept - 1
    }
}

/// The cell of a field of a block that is a short decimal as it stands, where any number is its own cell within bounds.
pub(super) fn plain_number(reader: &FeatureReader, bytes: &[u8], start: usize, end: usize) -> Option<Cell> {
    let (low, high) = reader.bounds_of_plain_numbers()?;
    Some(Cell::Number(Decimal::read(bytes, start, end)?.value().clamp(low, high)))
}

/// What a field says, without its quotes; missing when it is not there.
fn raw_value<'a>(bytes: &'a [u8], field: Option<(usize, usize)>, unquoted: &'a mut Vec<u8>) -> RawValue<'a> {
    let Some((start, end)) = field else { return RawValue::Missing };
    let Some(rest) = bytes[start..end].strip_prefix(b"\"") else { return RawValue::Text(&bytes[start..end]) };
    unquoted.clear();
    unquote(rest, unquoted);
    RawValue::Text(unquoted)
}

/// Appends what a field says from behind its first quotation mark on. A mark inside a quotation is doubled; what follows the quotation is
/// text.
pub(super) fn unquote(mut rest: &[u8], unquoted: &mut Vec<u8>) {
    while let Some(mark) = memchr::memchr(b'"', rest) {
        unquoted.extend_from_slice(&rest[..mark]);
        rest = &rest[mark + 1..];
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                unquoted.push(b'"');
                rest = after;
            }
            None => break,
        }
    }
    unquoted.extend_from_slice(rest);
}
