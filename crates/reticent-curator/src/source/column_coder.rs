//! From columns of decoded values to rows of codes, in tiles that stay in the cache.

use std::ops::Range;

use arrow_array::Array;
use reticent_core::record::RawValue;

use super::RawRow;
use super::coded_batch::CodedBatch;
use super::parquet_values::BatchColumn;
use super::row_coder::{LinearSlots, RowCoder};
use crate::kernel::code_numbers;

/// Some neighbouring features of a table, and perhaps its target and its unit: the work of one thread.
#[derive(Clone)]
pub(super) struct ColumnGroup {
    pub(super) features: Range<usize>,
    /// Slots of the features.
    pub(super) slots: Range<usize>,
    /// Whether the group has what comes after the features, too.
    pub(super) is_last: bool,
}

impl ColumnGroup {
    /// Groups of about equal size, at most one a thread.
    pub(super) fn split(coder: &RowCoder, threads: usize) -> Vec<Self> {
        let features = coder.readers.features.len();
        let groups = threads.clamp(1, features.max(1));
        let place = |group: usize| group * features / groups;
        let group = |group: usize| {
            let features = place(group)..place(group + 1);
            let slots = coder.slots_of(features.start).start..coder.slots_of(features.end).start;
            Self { features, slots, is_last: group + 1 == groups }
        };
        (0..groups).map(group).collect()
    }

    /// Which of a row's raw values are read, of so many.
    pub(super) fn raw_slots(&self, all: usize) -> Range<usize> {
        self.features.start..if self.is_last { all } else { self.features.end }
    }

    /// Codes rows of decoded columns, which are those of the features in order and then, in the last group, of the target
    /// and the unit. Slots of other groups are left out; only the last group has labels and keys.
    pub(super) fn code(&self, coder: &RowCoder, columns: &[BatchColumn], rows: usize, batch: &mut CodedBatch) {
        let stride = self.slots.len();
        batch.codes.resize(rows * stride, 0);
        for first in (0..rows).step_by(TILE_ROWS) {
            let tile = first..rows.min(first + TILE_ROWS);
            let codes = &mut batch.codes[tile.start * stride..tile.end * stride];
            for (feature, column) in self.features.clone().zip(columns) {
                self.code_feature(coder, feature, column, tile.clone(), codes);
            }
        }
        if self.is_last {
            let after = &columns[self.features.len()..];
            for row in 0..rows {
                let raw = AfterFeatures { columns: after, row, first: self.features.end };
                let (label, key) = coder.readers.label_and_key(&raw);
                batch.push(coder.code_label(label), key);
            }
        }
    }

    fn code_feature(
        &self,
        coder: &RowCoder,
        feature: usize,
        column: &BatchColumn,
        rows: Range<usize>,
        codes: &mut [u16],
    ) {
        let slots = coder.slots_of(feature);
        let stride = self.slots.len();
        let first = slots.start - self.slots.start;
        if let BatchColumn::Number(numbers) = column
            && numbers.null_count() == 0
            && coder.linear.features[slots.start].is_some()
        {
            let LinearSlots { maps, missing, .. } = &coder.linear;
            let numbers = &numbers.values()[rows];
            // One loop for the arithmetic, which the compiler makes vectors of, and one for the places.
            let mut of_tile = [0; TILE_ROWS];
            let of_numbers = &mut of_tile[..numbers.len()];
            code_numbers(coder.instructions, maps, slots.start, missing[slots.start], numbers, of_numbers);
            for (codes, code) in codes.chunks_exact_mut(stride).zip(of_tile) {
                codes[first] = code;
            }
            return;
        }
        for (codes, row) in codes.chunks_exact_mut(stride).zip(rows) {
            let cell = coder.readers.features[feature].cell(column.value(row));
            for slot in slots.clone() {
                codes[slot - self.slots.start] = coder.coding.slot_code(slot, &cell);
            }
        }
    }
}

/// Target and unit of one row: private.
struct AfterFeatures<'a> {
    columns: &'a [BatchColumn],
    row: usize,
    /// Slot of the first column.
    first: usize,
}

impl RawRow for AfterFeatures<'_> {
    #[inline]
    fn value(&self, slot: usize) -> RawValue<'_> {
        self.columns[slot - self.first].value(self.row)
    }
}

/// Rows coded at a time: with a hundred slots they take 50 kB.
const TILE_ROWS: usize = 256;
