//! Readers of the values of a row, and the rows that are made with them.

use reticent_core::adjacency::PrivacyUnit;
use reticent_core::record::{Cell, ColumnValues, FeatureReader, Label, RawValue, TargetReader};
use reticent_core::schema::Schema;

use super::{Need, RawRow, Row};

/// Readers of the values of a row by slot: the features in the schema's order, then the target, then the privacy unit.
pub(super) struct RowReaders {
    pub(super) features: Vec<FeatureReader>,
    pub(super) target: Option<TargetReader>,
    pub(super) keys: Option<KeyReader>,
}

impl RowReaders {
    pub(super) fn new(schema: &Schema, need: Need) -> Self {
        let features = if need == Need::Target { Vec::new() } else { schema.feature_readers() };
        let (target, keys) = match need {
            Need::Features => (None, None),
            Need::FeaturesAndTarget | Need::Target => (Some(schema.target_reader()), KeyReader::of(schema)),
            Need::FeaturesAndTargetOfPublicRows => (Some(schema.target_reader()), None),
        };
        Self { features, target, keys }
    }

    /// Whether a column of such values can hold what the schema lists for a slot: one category at least, or two classes.
    pub(super) fn can_be_found(&self, slot: usize, values: ColumnValues) -> bool {
        if let Some(feature) = self.features.get(slot) {
            return feature.categories_among(values).is_none_or(|found| found >= 1);
        }
        let target = self.target.as_ref().filter(|_| slot == self.features.len());
        target.and_then(|target| target.classes_among(values)).is_none_or(|found| found >= 2)
    }

    /// The label by the target alone.
    #[inline]
    pub(super) fn label(&self, target: RawValue<'_>) -> Label {
        self.target.as_ref().map_or(Label::Unusable, |reader| reader.label(target))
    }

    /// The key of the privacy unit, when there is one to be read.
    #[inline]
    pub(super) fn key<'a>(&self, unit: RawValue<'a>) -> Option<&'a [u8]> {
        self.keys.as_ref().and_then(|keys| keys.key(unit))
    }

    /// Label and key of a row; without a key that it should have, a row has no label.
    #[inline]
    pub(super) fn label_and_key<'a>(&self, raw: &'a impl RawRow) -> (Label, Option<&'a [u8]>) {
        let target_slot = self.features.len();
        let label = self.target.as_ref().map_or(Label::Unusable, |target| target.label(raw.value(target_slot)));
        let Some(keys) = &self.keys else { return (label, None) };
        let key = keys.key(raw.value(target_slot + 1));
        (label_with_key(label, key), key)
    }
}

/// The label of a row whose unit is a column: without a key it has none, because whose row it is cannot be told.
#[inline]
pub(super) fn label_with_key(label: Label, key: Option<&[u8]>) -> Label {
    if key.is_some() { label } else { Label::Unusable }
}

/// Makes rows of raw values; the same for all threads.
pub(super) struct RowAssembler {
    pub(super) readers: RowReaders,
    /// Slot of the event id, and how it is read.
    ids: Option<(usize, KeyReader)>,
    /// Cells of features that a row does not list.
    absent: Vec<Cell>,
}

/// Where one thread makes a row: private.
pub(super) struct RowRoom {
    cells: Vec<Cell>,
    /// The features that the last row listed.
    given: Vec<usize>,
}

impl RowAssembler {
    pub(super) fn new(schema: &Schema, need: Need, id_slot: Option<usize>) -> Self {
        let readers = RowReaders::new(schema, need);
        let absent: Vec<Cell> = readers.features.iter().map(|feature| feature.cell(RawValue::Number(0.0))).collect();
        let ids = id_slot.map(|slot| (slot, KeyReader::reading(schema)));
        Self { readers, ids, absent }
    }

    pub(super) fn room(&self) -> RowRoom {
        RowRoom { cells: self.absent.clone(), given: Vec::new() }
    }

    #[inline]
    pub(super) fn assemble<R: RawRow>(&self, raw: &R, room: &mut RowRoom, row: &mut dyn FnMut(Row<'_>)) {
        let RowRoom { cells, given } = room;
        match raw.given() {
            None => {
                for (slot, (cell, feature)) in cells.iter_mut().zip(&self.readers.features).enumerate() {
                    *cell = raw.cell(slot, feature);
                }
            }
            Some(listed) => {
                given.drain(..).for_each(|slot| cells[slot] = self.absent[slot]);
                given.extend(listed.iter().filter(|slot| **slot < cells.len()));
                for slot in &*given {
                    cells[*slot] = raw.cell(*slot, &self.readers.features[*slot]);
                }
            }
        }
        let (label, unit) = self.readers.label_and_key(raw);
        let id = self.ids.as_ref().and_then(|(slot, ids)| ids.key(raw.value(*slot)));
        let given = raw.given().map(|_| &given[..]);
        row(Row { cells, given, label, unit, id });
    }
}

/// Reads the key of the privacy unit, or an event id.
pub(super) struct KeyReader {
    missing: Vec<Vec<u8>>,
}

impl KeyReader {
    fn of(schema: &Schema) -> Option<Self> {
        match &schema.privacy().unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { .. } => Some(Self::reading(schema)),
        }
    }

    fn reading(schema: &Schema) -> Self {
        Self { missing: schema.table().missing.iter().map(|spelling| spelling.as_bytes().to_vec()).collect() }
    }

    fn key<'a>(&self, raw: RawValue<'a>) -> Option<&'a [u8]> {
        let key = match raw {
            RawValue::Text(text) => text.trim_ascii(),
            RawValue::Missing => return None,
            RawValue::Number(_) | RawValue::Boolean(_) => unreachable!("the readers hand keys over as text"),
        };
        let is_missing = key.is_empty() || self.missing.iter().any(|spelling| spelling == key);
        (!is_missing).then_some(key)
    }
}
