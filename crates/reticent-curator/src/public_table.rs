//! Rows as plain numbers, for uses that protect nothing: rows that their owner has explicitly declared public, and a party's
//! own while it makes its votes of them.

use reticent_core::coding::Coding;
use reticent_core::record::Label;
use reticent_core::schema::Schema;

use crate::source::{SourceError, TableSource};

/// Rows as plain numbers: columns in the user's units, row after row, and labels.
pub struct PublicTable {
    columns: usize,
    values: Vec<f64>,
    labels: Vec<Label>,
}

impl PublicTable {
    /// Reads a source whose rows are public, or stay with their party. Nothing read here is protected.
    ///
    /// # Errors
    /// [`SourceError`] when the file cannot be read.
    pub fn read(source: TableSource, schema: &Schema, progress: &mut dyn FnMut(u64)) -> Result<Self, SourceError> {
        let coding = Coding::of(schema);
        let columns = coding.columns().len();
        let mut table = Self { columns, values: Vec::new(), labels: Vec::new() };
        source.for_each_row(progress, &mut |row| {
            let start = table.values.len();
            table.values.resize(start + columns, 0.0);
            coding.raw_columns(row.cells, &mut table.values[start..]);
            table.labels.push(row.label);
        })?;
        Ok(table)
    }

    /// Number of columns, the intercept first.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows with their labels.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = (&[f64], Label)> {
        self.values.chunks_exact(self.columns).zip(self.labels.iter().copied())
    }

    /// Rows whose label can be used, with the number that stands for it: the index of a class, or the value itself.
    pub fn labelled(&self) -> impl Iterator<Item = (&[f64], f64)> {
        self.rows().filter_map(|(columns, label)| Some((columns, label.number()?)))
    }
}
