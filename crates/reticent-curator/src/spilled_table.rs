//! A table in a scratch file as 16-bit codes: what is kept of the rows once they are read, when memory is not to hold them.

use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::Coding;
use reticent_core::contribution::CodedLabel;
use reticent_core::schema::Schema;
use thiserror::Error;

use crate::lattice::BLOCK_ROWS_MAX;
use crate::scratch_blocks::{BlockShape, ScratchBlocks, append, fetch};
use crate::scratch_file::{Keystream, ScratchError, ScratchFile, ScratchPlace};
use crate::source::{CodedRows, SourceError, TableSource};
use crate::spilled_lattice::coordinate_bytes_max;

/// All rows, coded by the schema, on the disk. Private: no `Debug`, no row access outside this crate.
///
/// The privacy unit is the row: to count the rows of each unit takes a table of all keys, whose size has no bound.
pub struct SpilledTable {
    coding: Coding,
    place: ScratchPlace,
    blocks: ScratchBlocks,
}

/// A table that could not be read or laid down; never for what a row holds.
#[derive(Debug, Error)]
pub enum SpillError {
    /// The table cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The scratch file cannot be written.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
}

impl SpilledTable {
    /// Reads a source to its end. `progress` is told the bytes read so far.
    ///
    /// # Errors
    /// [`SpillError`] when the table cannot be read, or the disk does not take its codes; never for what a row holds.
    ///
    /// # Panics
    /// When the schema's privacy unit is a column: [`crate::spilled_engine::check`] comes first.
    pub fn read(
        source: TableSource,
        schema: &Schema,
        place: &ScratchPlace,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, SpillError> {
        let mut writer = SpilledTableWriter::new(schema, place, default_block_rows(&Coding::of(schema)))?;
        // The first block that the disk does not take ends the reading.
        source.for_each_coded(schema, progress, &mut |rows| -> Result<(), SpillError> {
            Ok(writer.append(rows.codes, rows.labels)?)
        })?;
        Ok(writer.finish()?)
    }

    pub(crate) fn coding(&self) -> &Coding {
        &self.coding
    }

    pub(crate) fn place(&self) -> &ScratchPlace {
        &self.place
    }

    pub(crate) fn rows(&self) -> u64 {
        self.blocks.rows()
    }

    pub(crate) fn block_rows(&self) -> usize {
        self.blocks.block_rows()
    }

    /// Hands every block of codes and labels to `add`, on all threads: see [`ScratchBlocks::fold`].
    pub(crate) fn fold<T: Send>(
        &self,
        start: impl Fn() -> T + Sync,
        add: impl Fn(&mut T, u64, CodedRows<'_>) -> Result<(), ScratchError> + Sync,
    ) -> Result<Vec<T>, ScratchError> {
        let slots = self.coding.codes();
        let buffers = || (start(), Vec::<u16>::new(), Vec::<CodedLabel>::new());
        let totals = self.blocks.fold(buffers, |(total, codes, labels), block, bytes| {
            let rows = bytes.len() / row_bytes(slots);
            codes.resize(rows * slots, 0);
            labels.resize(rows, 0);
            let (of_codes, of_labels) = bytes.split_at(rows * slots * size_of::<u16>());
            fetch(of_codes, codes, u16::from_le_bytes);
            fetch(of_labels, labels, CodedLabel::from_le_bytes);
            add(total, block, CodedRows { codes, labels })
        })?;
        Ok(totals.into_iter().map(|(total, _, _)| total).collect())
    }
}

/// Lays rows down, block after block.
pub struct SpilledTableWriter {
    coding: Coding,
    place: ScratchPlace,
    block_rows: usize,
    file: ScratchFile,
    keystream: Keystream,
    /// The block that is being filled.
    codes: Vec<u16>,
    labels: Vec<CodedLabel>,
    bytes: Vec<u8>,
    /// Blocks that are written.
    blocks: u64,
}

impl SpilledTableWriter {
    /// An empty table in a new scratch file; the number of rows of a block changes no sum.
    ///
    /// # Errors
    /// [`ScratchError`] when the folder takes no file.
    ///
    /// # Panics
    /// When `block_rows` is zero or above [`BLOCK_ROWS_MAX`], or the schema's privacy unit is a column.
    pub fn new(schema: &Schema, place: &ScratchPlace, block_rows: usize) -> Result<Self, ScratchError> {
        assert!((1..=BLOCK_ROWS_MAX).contains(&block_rows), "a block has rows, and its products fit 64 bits");
        assert!(schema.privacy().unit == PrivacyUnit::Row, "rows of a unit are not counted here");
        let (coding, place) = (Coding::of(schema), place.clone());
        let file = place.create()?;
        let keystream = file.new_keystream()?;
        let (codes, labels, bytes) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { coding, place, block_rows, file, keystream, codes, labels, bytes, blocks: 0 })
    }

    /// Appends coded rows: row after row, one code a slot and one label a row.
    ///
    /// # Errors
    /// [`ScratchError`] when the disk does not take them.
    ///
    /// # Panics
    /// When the codes are not of whole rows, one a label.
    pub fn append(&mut self, mut codes: &[u16], mut labels: &[CodedLabel]) -> Result<(), ScratchError> {
        let slots = self.coding.codes();
        assert_eq!(codes.len(), labels.len() * slots, "whole rows");
        while !labels.is_empty() {
            let rows = labels.len().min(self.block_rows - self.labels.len());
            let (first_codes, first_labels);
            (first_codes, codes) = codes.split_at(rows * slots);
            (first_labels, labels) = labels.split_at(rows);
            self.codes.extend_from_slice(first_codes);
            self.labels.extend_from_slice(first_labels);
            if self.labels.len() == self.block_rows {
                self.write_block()?;
            }
        }
        Ok(())
    }

    /// The table of all rows that were appended.
    ///
    /// # Errors
    /// [`ScratchError`] when the disk does not take the last of them.
    pub fn finish(mut self) -> Result<SpilledTable, ScratchError> {
        let last = self.labels.len();
        let rows = self.blocks * self.block_rows as u64 + last as u64;
        if last > 0 {
            self.write_block()?;
        }
        let Self { coding, place, block_rows, file, keystream, .. } = self;
        let shape = BlockShape { row_bytes: row_bytes(coding.codes()), block_rows };
        Ok(SpilledTable { coding, place, blocks: ScratchBlocks::written(shape, rows, file, keystream) })
    }

    fn write_block(&mut self) -> Result<(), ScratchError> {
        self.bytes.clear();
        append(&mut self.bytes, &self.codes, u16::to_le_bytes);
        append(&mut self.bytes, &self.labels, CodedLabel::to_le_bytes);
        self.keystream.apply(self.blocks, &mut self.bytes);
        let block_bytes = row_bytes(self.coding.codes()) * self.block_rows;
        self.file.write_at(self.blocks * block_bytes as u64, &self.bytes)?;
        self.codes.clear();
        self.labels.clear();
        self.blocks += 1;
        Ok(())
    }
}

/// Bytes of a row's codes and label.
fn row_bytes(slots: usize) -> usize {
    slots * size_of::<u16>() + size_of::<CodedLabel>()
}

/// Rows of a block, by the coordinates of a row: public.
pub(crate) fn default_block_rows(coding: &Coding) -> usize {
    const ROWS: usize = 4096;
    const LATTICE_BYTES: usize = 1 << 20;
    (LATTICE_BYTES / coordinate_bytes_max(coding)).clamp(1, ROWS)
}
