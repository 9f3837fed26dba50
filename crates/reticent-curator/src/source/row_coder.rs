//! How rows become codes by the schema: the same for every kind of table and for all threads.
//!
//! The codes are those that [`Coding::encode_cells`] makes of the cells that [`super::RowAssembler`] makes of the same
//! row; tests compare the two.

use std::ops::Range;

use reticent_core::coding::{Coding, SlotMap};
use reticent_core::contribution::CodedLabel;
use reticent_core::record::{Cell, FeatureReader, Label, RawValue};
use reticent_core::schema::{Schema, TargetKind};

use super::RawRow;
use super::coded_batch::CodedBatch;
use super::row_readers::RowReaders;
use crate::kernel::{Instructions, NumberMaps};
use crate::table::code_label;

/// Readers of raw values, and what makes codes of what they read.
pub(super) struct RowCoder {
    pub(super) coding: Coding,
    pub(super) readers: RowReaders,
    pub(super) linear: LinearSlots,
    pub(super) instructions: Instructions,
    target_kind: TargetKind,
    /// First slot of each feature, and their number.
    first_slots: Vec<usize>,
    /// Features with slots, ascending.
    with_slots: Vec<usize>,
    /// The place of each feature among the listed columns; empty where there are none.
    listed_places: Vec<Option<usize>>,
}

/// Slots that are a number's place between its bounds.
pub(super) struct LinearSlots {
    /// The feature of a slot of this kind.
    pub(super) features: Vec<Option<usize>>,
    pub(super) maps: NumberMaps,
    /// The cell of a missing value.
    pub(super) missing: Vec<f64>,
}

impl RowCoder {
    pub(super) fn new(schema: &Schema, readers: RowReaders) -> Self {
        let coding = Coding::of(schema);
        let mut first_slots = vec![0; readers.features.len() + 1];
        // The slots of a feature are neighbours, in the order of the features.
        coding.slot_maps().for_each(|map| first_slots[map.feature() + 1] += 1);
        (1..first_slots.len()).for_each(|feature| first_slots[feature] += first_slots[feature - 1]);
        let with_slots = (0..readers.features.len()).filter(|at| first_slots[*at] < first_slots[at + 1]).collect();
        let mut listed_places = Vec::new();
        if let Some(listed) = coding.listed() {
            listed_places.resize(readers.features.len(), None);
            listed.features().iter().enumerate().for_each(|(place, feature)| listed_places[*feature] = Some(place));
        }
        let linear = LinearSlots::of(&coding, &readers.features, &first_slots);
        let target_kind = schema.target().kind.clone();
        let instructions = Instructions::best();
        Self { coding, readers, linear, instructions, target_kind, first_slots, with_slots, listed_places }
    }

    /// The slots of a feature; beyond the last feature, none after the last slot.
    pub(super) fn slots_of(&self, feature: usize) -> Range<usize> {
        let end = self.first_slots.get(feature + 1).copied();
        self.first_slots[feature]..end.unwrap_or(self.first_slots[feature])
    }

    /// Codes one row that is read value by value.
    pub(super) fn code_row(&self, raw: &impl RawRow, batch: &mut CodedBatch) {
        let start = batch.codes.len();
        batch.codes.resize(start + self.coding.codes(), 0);
        let codes = &mut batch.codes[start..];
        let cell = |feature: usize| self.readers.features[feature].cell(raw.value(feature));
        for feature in &self.with_slots {
            let cell = cell(*feature);
            self.slots_of(*feature).for_each(|slot| codes[slot] = self.coding.slot_code(slot, &cell));
        }
        if let Some(listed) = self.coding.listed() {
            let place = |feature: &usize| Some((self.listed_places.get(*feature).copied().flatten()?, *feature));
            let mut numbers: Vec<(usize, u16)> = raw
                .given()
                .unwrap_or_default()
                .iter()
                .filter_map(place)
                .map(|(place, feature)| (place, listed.code(place, &cell(feature))))
                .collect();
            numbers.sort_unstable();
            listed.write(numbers.into_iter(), &mut codes[self.linear.features.len()..]);
        }
        let (label, key) = self.readers.label_and_key(raw);
        batch.push(self.code_label(label), key);
    }

    pub(super) fn code_label(&self, label: Label) -> CodedLabel {
        code_label(&self.target_kind, label)
    }
}

impl LinearSlots {
    fn of(coding: &Coding, features: &[FeatureReader], first_slots: &[usize]) -> Self {
        let slots = coding.slots();
        let mut linear =
            Self { features: vec![None; slots], maps: NumberMaps::of_slots(slots), missing: vec![0.0; slots] };
        for (slot, map) in coding.slot_maps().enumerate() {
            if let SlotMap::Linear { feature, low, span, .. } = map
                && let Some((low_bound, high_bound)) = features[feature].bounds_of_plain_numbers()
                && let Cell::Number(missing) = features[feature].cell(RawValue::Missing)
                && first_slots[feature] + 1 == first_slots[feature + 1]
            {
                linear.features[slot] = Some(feature);
                linear.maps.set(slot, [low_bound, high_bound], low, span);
                linear.missing[slot] = missing;
            }
        }
        linear
    }
}
