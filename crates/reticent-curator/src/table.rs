//! A table in memory as 16-bit codes: what is kept of the rows once they are read.

use std::ops::Range;

use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::Coding;
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::encoding::LATTICE_NORM_MAX;
use reticent_core::record::{Cell, Label};
use reticent_core::schema::{Schema, TargetKind};

use crate::source::{RowFilter, SourceError, TableSource};

/// All rows, coded by the schema and capped by unit. Private: no `Debug`, no row access outside this crate.
pub struct CodedTable {
    schema: String,
    coding: Coding,
    unit: PrivacyUnit,
    target: TargetKind,
    codes: Vec<u16>,
    labels: Vec<CodedLabel>,
    /// Which rows that are added one by one count. None for a table that was read, of whose units nothing is kept.
    added: Option<RowFilter>,
}

impl CodedTable {
    /// Reads a source to its end. `progress` is told the bytes read so far.
    ///
    /// Of the rows of one privacy unit the first `rows_max` of the table are kept. Which rows are kept depends on the rows
    /// of that unit alone.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read; never for what a row holds.
    pub fn read(source: TableSource, schema: &Schema, progress: &mut dyn FnMut(u64)) -> Result<Self, SourceError> {
        let mut table = Self { added: None, ..Self::empty(schema) };
        let mut fits = true;
        source.for_each_coded(schema, progress, &mut |rows| -> Result<(), SourceError> {
            fits = fits && table.reserve(rows.labels.len());
            if fits {
                table.codes.extend_from_slice(rows.codes);
                table.labels.extend_from_slice(rows.labels);
            }
            Ok(())
        })?;
        if fits { Ok(table) } else { Err(SourceError::OutOfMemory) }
    }

    /// A table without rows.
    #[must_use]
    pub fn empty(schema: &Schema) -> Self {
        Self {
            schema: schema.fingerprint(),
            coding: Coding::of(schema),
            unit: schema.privacy().unit.clone(),
            target: schema.target().kind.clone(),
            codes: Vec::new(),
            labels: Vec::new(),
            added: Some(RowFilter::new(schema.privacy())),
        }
    }

    /// Makes room for rows; says whether there is any. An aborting allocation would print its size, and with it the number
    /// of rows.
    fn reserve(&mut self, rows: usize) -> bool {
        self.codes.try_reserve(rows * self.coding.codes()).is_ok() && self.labels.try_reserve(rows).is_ok()
    }

    /// Appends a row that is a unit of its own, one cell a feature in the schema's order: what [`Self::read`] makes of the next line of a file.
    ///
    /// # Panics
    /// Under a schema whose units have a key: see [`Self::push_of_unit`]. For another number of cells than features, or a table that was read.
    pub fn push(&mut self, cells: &[Cell], label: Label) {
        assert!(
            self.unit == PrivacyUnit::Row,
            "rows of this schema have a unit with a key: add them by `push_of_unit`"
        );
        self.push_of_unit(&[], cells, label);
    }

    /// The same of a row with the key of its unit: beyond the cap of the unit it is left out, and without a key (an empty one) it adds nothing,
    /// because whose it is cannot be told.
    ///
    /// # Panics
    /// For another number of cells than features, or a table that was read.
    pub fn push_of_unit(&mut self, key: &[u8], cells: &[Cell], label: Label) {
        let is_owned = self.unit == PrivacyUnit::Row || !key.is_empty();
        let label = if is_owned { code_label(&self.target, label) } else { UNUSABLE_LABEL };
        let filter = self.added.as_mut().expect("rows are added to a table of which none were read");
        if !filter.keeps(label, key).unwrap_or_else(|error| panic!("{error}")) {
            return;
        }
        let start = self.codes.len();
        self.codes.resize(start + self.coding.codes(), 0);
        self.coding.encode_cells(cells, &mut self.codes[start..]);
        self.labels.push(label);
    }

    pub(crate) fn coding(&self) -> &Coding {
        &self.coding
    }

    /// Fingerprint of the schema.
    pub(crate) fn schema(&self) -> &str {
        &self.schema
    }

    pub(crate) fn unit(&self) -> &PrivacyUnit {
        &self.unit
    }

    pub(crate) fn rows(&self) -> usize {
        self.labels.len()
    }

    pub(crate) fn codes_of_row(&self, row: usize) -> &[u16] {
        self.codes_of_rows(row..row + 1)
    }

    /// Row after row.
    pub(crate) fn codes_of_rows(&self, rows: Range<usize>) -> &[u16] {
        let slots = self.coding.codes();
        &self.codes[rows.start * slots..rows.end * slots]
    }

    pub(crate) fn labels(&self) -> &[CodedLabel] {
        &self.labels
    }
}

/// Class indices as they are, numbers with the target's bounds mapped onto `-32767..=32767`.
pub(crate) fn code_label(target: &TargetKind, label: Label) -> CodedLabel {
    match (target, label) {
        (TargetKind::Classes(_), Label::Class(class)) => CodedLabel::try_from(class).unwrap_or(UNUSABLE_LABEL),
        (TargetKind::Bounds { low, high }, Label::Value(value)) => {
            let full = f64::from(LATTICE_NORM_MAX);
            let unit = (value - low) / (high - low) * 2.0 - 1.0;
            // `as` saturates, and turns NaN into 0; the clamp keeps the unusable label out.
            (unit * full).round().clamp(-full, full) as CodedLabel
        }
        (TargetKind::Classes(_), Label::Value(_))
        | (TargetKind::Bounds { .. }, Label::Class(_))
        | (_, Label::Unusable) => UNUSABLE_LABEL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_lie_between_their_bounds() {
        let number = TargetKind::Bounds { low: -2.0, high: 6.0 };
        let labels = [-9.0, -2.0, 0.0, 2.0, 6.0, 1e300].map(|value| code_label(&number, Label::Value(value)));
        assert_eq!(labels, [-32767, -32767, -16384, 0, 32767, 32767]);
        assert_eq!(code_label(&number, Label::Class(1)), UNUSABLE_LABEL);
        assert_eq!(code_label(&number, Label::Unusable), UNUSABLE_LABEL);
    }

    fn schema(privacy: &str) -> Schema {
        Schema::from_text(&format!(
            "[privacy]\n{privacy}\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n[features]\nx = {{ bounds = [0, 1] }}\n"
        ))
        .expect("legal")
    }

    /// As of rows that are read: `a_unit_keeps_its_first_rows_only` in `tests/it/memory_engine.rs`.
    #[test]
    fn rows_that_are_added_count_as_those_of_a_file() {
        let mut table =
            CodedTable::empty(&schema("unit = { column = \"id\", rows_max = 2 }\nadjacency = \"add-remove\""));
        for (key, class) in [("a", 0), ("b", 1), ("a", 1), ("a", 0), ("", 0)] {
            table.push_of_unit(key.as_bytes(), &[Cell::Number(0.5)], Label::Class(class));
        }
        assert_eq!(
            table.labels,
            [0, 1, 1, UNUSABLE_LABEL],
            "the third of a is beyond its cap, and nobody's adds nothing"
        );

        let mut table = CodedTable::empty(&schema("unit = \"row\"\nadjacency = \"label\""));
        table.push(&[Cell::Number(0.5)], Label::Unusable);
        table.push(&[Cell::Number(0.5)], Label::Class(1));
        assert_eq!((table.rows(), &table.labels[..]), (1, &[1][..]), "which rows have a label is public there");
    }

    #[test]
    #[should_panic(expected = "push_of_unit")]
    fn a_row_without_the_key_of_its_unit_is_refused() {
        let privacy = "unit = { column = \"id\", rows_max = 2 }\nadjacency = \"add-remove\"";
        CodedTable::empty(&schema(privacy)).push(&[Cell::Number(0.5)], Label::Class(0));
    }
}
