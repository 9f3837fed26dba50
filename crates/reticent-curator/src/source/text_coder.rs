//! From the fields of a text to codes, without cells in between where a field is a plain number.

use reticent_core::record::{Cell, RawValue};

use super::coded_batch::CodedBatch;
use super::csv::{CsvRow, Record, fields_max};
use super::record_blocks::{MARGIN, RecordBlock};
use super::row_coder::{LinearSlots, RowCoder};
use super::row_readers::label_with_key;
use super::separators::{find_separators, keep_unquoted, places_max};
use crate::kernel::{Decimal, DecimalFields, code_decimals};
use crate::out_of_memory::make_room;

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
#[derive(Default)]
pub(super) struct Scratch {
    places: Vec<u32>,
    decimals: Option<DecimalFields>,
    kept: Vec<Option<(usize, usize)>>,
    unquoted: Vec<u8>,
}

impl TextCoder {
    pub(super) fn new(rows: RowCoder, delimiter: u8, columns: Vec<usize>) -> Self {
        let plan = TextPlan::new(&rows, delimiter, &columns);
        Self { rows, columns, plan }
    }

    /// Codes a record that is read by itself.
    pub(super) fn code_record(&self, record: &Record, batch: &mut CodedBatch) {
        self.rows.code_row(&CsvRow { record, slots: &self.columns }, batch);
    }

    /// Codes the records of a block. When the batch is full, `emit` takes it and leaves an empty one.
    pub(super) fn code_block<E>(
        &self,
        block: &RecordBlock,
        scratch: &mut Scratch,
        batch: &mut CodedBatch,
        mut emit: impl FnMut(&mut CodedBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let Scratch { places, decimals, kept, unquoted } = scratch;
        let length = block.text_in_groups().len();
        // No value is longer than the text it is in.
        if make_room(places, places_max(length)).and(make_room(unquoted, length)).is_err() {
            batch.lose();
            return Ok(());
        }
        let decimals = decimals.get_or_insert_with(|| DecimalFields::of_places(self.rows.linear.maps.places()));
        kept.resize(self.plan.kept, None);

        let delimiter = self.plan.delimiter;
        let mut count = find_separators(block.text_in_groups(), delimiter, places);
        if !block.quotations().is_empty() {
            count = keep_unquoted(&mut places[..count], block.quotations());
        }
        let bytes = block.bytes();
        let mut ends = places[..count].iter().map(|place| MARGIN + *place as usize);
        let mut start = MARGIN;
        while let Some(mut end) = ends.next() {
            if start == end && bytes[end] != delimiter {
                // A blank line is not a row.
                start = end + 1;
                continue;
            }
            let mut fields = self.plan.actions.iter();
            let mut is_last = false;
            for action in fields.by_ref() {
                match *action {
                    Action::Skip => {}
                    Action::Decimal(slot) => decimals.set(slot, bytes, start, end),
                    Action::Keep(place) => kept[place] = Some((start, end)),
                }
                is_last = bytes[end] != delimiter;
                start = end + 1;
                if is_last {
                    break;
                }
                end = ends.next().expect(ENDS_WITH_A_LINE_END);
            }
            for action in fields {
                // The fields that are not there are missing.
                match *action {
                    Action::Skip => {}
                    Action::Decimal(slot) => decimals.set_missing(slot),
                    Action::Keep(place) => kept[place] = None,
                }
            }
            while !is_last {
                // Surplus fields are ignored.
                is_last = bytes[end] != delimiter;
                start = end + 1;
                if !is_last {
                    end = ends.next().expect(ENDS_WITH_A_LINE_END);
                }
            }
            self.finish_row(bytes, decimals, kept, unquoted, batch);
            if batch.is_full() {
                batch.bytes_read = block.bytes_read();
                emit(batch)?;
            }
        }
        batch.bytes_read = block.bytes_read();
        Ok(())
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
        if let Some((low, high)) = reader.bounds_of_plain_numbers()
            && let Some((start, end)) = field
            && let Some(decimal) = Decimal::read(bytes, start, end)
        {
            return Cell::Number(decimal.value().clamp(low, high));
        }
        reader.cell(raw_value(bytes, field, unquoted))
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

/// What a field says, without its quotes; missing when it is not there. A mark inside a quotation is doubled; what
/// follows the quotation is text.
fn raw_value<'a>(bytes: &'a [u8], field: Option<(usize, usize)>, unquoted: &'a mut Vec<u8>) -> RawValue<'a> {
    let Some((start, end)) = field else { return RawValue::Missing };
    let Some(mut rest) = bytes[start..end].strip_prefix(b"\"") else { return RawValue::Text(&bytes[start..end]) };
    unquoted.clear();
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
    RawValue::Text(unquoted)
}

const ENDS_WITH_A_LINE_END: &str = "a block ends with the end of a record";
