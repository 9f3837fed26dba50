//! A table in a scratch file as 16-bit codes: what is kept of the rows once they are read, when memory is not to hold them.
//!
//! ```text
//!   codes, labels ─▶ file ──────────────────────────────────────────▶ where a unit is a column: the file anew, without the surplus
//!   keys of units ─▶ surplus_rows, sorted in files of their own ─▶ numbers of the rows beyond the cap of their unit ◀┘
//! ```

use reticent_core::adjacency::PrivacyUnit;
use reticent_core::coding::Coding;
use reticent_core::contribution::CodedLabel;
use reticent_core::schema::Schema;
use thiserror::Error;

use crate::external_sort::SortShape;
use crate::lattice::BLOCK_ROWS_MAX;
use crate::scratch_blocks::{BlockShape, ScratchBlocks, append, fetch};
use crate::scratch_file::{Keystream, ScratchError, ScratchFile, ScratchPlace};
use crate::source::{CodedRows, SourceError, TableSource, UncappedRows};
use crate::spilled_lattice::coordinate_bytes_max;
use crate::surplus_rows::{SurplusRows, UnitRows};

/// All rows, coded by the schema and capped by unit, on the disk. Private: no `Debug`, no row access outside this crate.
pub struct SpilledTable {
    schema: String,
    coding: Coding,
    unit: PrivacyUnit,
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
    /// The rows are those of [`crate::table::CodedTable`]: of one privacy unit the first `rows_max` of the table.
    ///
    /// # Errors
    /// [`SpillError`] when the table cannot be read, or the disk does not take its codes; never for what a row holds.
    pub fn read(
        source: TableSource,
        schema: &Schema,
        place: &ScratchPlace,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, SpillError> {
        let block_rows = default_block_rows(&Coding::of(schema));
        let mut writer = SpilledTableWriter::new(schema, place, block_rows, SortShape::USUAL)?;
        // The first block that the disk does not take ends the reading.
        source
            .for_each_uncapped(schema, progress, &mut |rows| -> Result<(), SpillError> { Ok(writer.append(rows)?) })?;
        Ok(writer.finish()?)
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
        let buffers = || (start(), BlockRows::default());
        let totals = self.blocks.fold(buffers, |(total, rows), block, bytes| {
            rows.fetch(slots, bytes);
            add(total, block, CodedRows { codes: &rows.codes, labels: &rows.labels })
        })?;
        Ok(totals.into_iter().map(|(total, _)| total).collect())
    }
}

/// Lays rows down, and in the end takes out those that are beyond the cap of their unit.
pub struct SpilledTableWriter {
    schema: String,
    coding: Coding,
    unit: PrivacyUnit,
    place: ScratchPlace,
    file: ScratchFile,
    blocks: BlockWriter,
    /// None when every row is a unit.
    units: Option<UnitRows>,
}

impl SpilledTableWriter {
    /// An empty table in a new scratch file; neither the number of rows of a block nor how keys are sorted changes a sum.
    ///
    /// # Errors
    /// [`ScratchError`] when the folder takes no file.
    ///
    /// # Panics
    /// When `block_rows` is zero or above [`BLOCK_ROWS_MAX`], or a sort has less than two blocks of records.
    pub fn new(
        schema: &Schema,
        place: &ScratchPlace,
        block_rows: usize,
        sort: SortShape,
    ) -> Result<Self, ScratchError> {
        assert!((1..=BLOCK_ROWS_MAX).contains(&block_rows), "a block has rows, and its products fit 64 bits");
        let (coding, unit, place) = (Coding::of(schema), schema.privacy().unit.clone(), place.clone());
        let file = place.create()?;
        let blocks = BlockWriter::new(coding.codes(), block_rows, &file)?;
        let units = match unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { rows_max, .. } => Some(UnitRows::new(rows_max, sort, &place)?),
        };
        Ok(Self { schema: schema.fingerprint(), coding, unit, place, file, blocks, units })
    }

    /// Appends coded rows.
    ///
    /// # Errors
    /// [`ScratchError`] when the disk does not take them.
    ///
    /// # Panics
    /// When the codes are not of whole rows, one a label, or a unit is a column and keys are not one a label.
    pub fn append(&mut self, rows: UncappedRows<'_>) -> Result<(), ScratchError> {
        if let Some(units) = &mut self.units {
            assert_eq!(rows.key_ends.len(), rows.labels.len(), "a key for each row");
            rows.unit_keys().try_for_each(|key| units.push(key))?;
        }
        self.blocks.append(&self.file, rows.codes, rows.labels)
    }

    /// The table of all rows that were appended and count.
    ///
    /// # Errors
    /// [`ScratchError`] when the disk does not take the last of them.
    pub fn finish(self) -> Result<SpilledTable, ScratchError> {
        let Self { schema, coding, unit, place, file, blocks, units } = self;
        let shape = blocks.shape();
        let mut written = blocks.finish(&file)?;
        if let Some(units) = units {
            written = without_surplus(&file, &written, units.surplus()?)?;
        }
        let blocks = ScratchBlocks::written(shape, written.rows, file, written.keystream);
        Ok(SpilledTable { schema, coding, unit, place, blocks })
    }
}

/// Writes a table anew in its place, under another key, without some of its rows. A block is written when at least as many have been read.
fn without_surplus(
    file: &ScratchFile,
    table: &WrittenRows,
    mut surplus: SurplusRows,
) -> Result<WrittenRows, ScratchError> {
    let WrittenRows { slots, block_rows, rows, keystream } = table;
    let mut kept = BlockWriter::new(*slots, *block_rows, file)?;
    let shape = kept.shape();
    let (mut bytes, mut block) = (Vec::new(), BlockRows::default());
    let mut next_surplus = surplus.next()?;
    for number in 0..rows.div_ceil(*block_rows as u64) {
        let first = number * *block_rows as u64;
        bytes.resize((rows - first).min(*block_rows as u64) as usize * shape.row_bytes, 0);
        file.read_at(number * shape.bytes() as u64, &mut bytes)?;
        keystream.apply(number, &mut bytes);
        block.fetch(*slots, &bytes);
        for (row, label) in block.labels.iter().enumerate() {
            if next_surplus == Some(first + row as u64) {
                next_surplus = surplus.next()?;
            } else {
                kept.append(file, &block.codes[row * slots..(row + 1) * slots], &[*label])?;
            }
        }
    }
    // Rather no answer than one with a row too many.
    assert!(next_surplus.is_none(), "numbers come in the order of the rows");
    kept.finish(file)
}

/// Rows in a file, block after block.
struct WrittenRows {
    slots: usize,
    block_rows: usize,
    rows: u64,
    keystream: Keystream,
}

/// Writes rows block after block, under a key of its own.
struct BlockWriter {
    slots: usize,
    block_rows: usize,
    keystream: Keystream,
    /// The block that is being filled.
    rows: BlockRows,
    bytes: Vec<u8>,
    /// Blocks that are written.
    blocks: u64,
}

impl BlockWriter {
    fn new(slots: usize, block_rows: usize, file: &ScratchFile) -> Result<Self, ScratchError> {
        let keystream = file.new_keystream()?;
        Ok(Self { slots, block_rows, keystream, rows: BlockRows::default(), bytes: Vec::new(), blocks: 0 })
    }

    fn shape(&self) -> BlockShape {
        BlockShape { row_bytes: row_bytes(self.slots), block_rows: self.block_rows }
    }

    /// Row after row, one code a slot and one label a row.
    fn append(&mut self, file: &ScratchFile, mut codes: &[u16], mut labels: &[CodedLabel]) -> Result<(), ScratchError> {
        assert_eq!(codes.len(), labels.len() * self.slots, "whole rows");
        while !labels.is_empty() {
            let rows = labels.len().min(self.block_rows - self.rows.labels.len());
            let (first_codes, first_labels);
            (first_codes, codes) = codes.split_at(rows * self.slots);
            (first_labels, labels) = labels.split_at(rows);
            self.rows.codes.extend_from_slice(first_codes);
            self.rows.labels.extend_from_slice(first_labels);
            if self.rows.labels.len() == self.block_rows {
                self.write_block(file)?;
            }
        }
        Ok(())
    }

    fn finish(mut self, file: &ScratchFile) -> Result<WrittenRows, ScratchError> {
        let last = self.rows.labels.len();
        let rows = self.blocks * self.block_rows as u64 + last as u64;
        if last > 0 {
            self.write_block(file)?;
        }
        let Self { slots, block_rows, keystream, .. } = self;
        Ok(WrittenRows { slots, block_rows, rows, keystream })
    }

    fn write_block(&mut self, file: &ScratchFile) -> Result<(), ScratchError> {
        self.bytes.clear();
        append(&mut self.bytes, &self.rows.codes, u16::to_le_bytes);
        append(&mut self.bytes, &self.rows.labels, CodedLabel::to_le_bytes);
        self.keystream.apply(self.blocks, &mut self.bytes);
        file.write_at(self.blocks * self.shape().bytes() as u64, &self.bytes)?;
        self.rows.codes.clear();
        self.rows.labels.clear();
        self.blocks += 1;
        Ok(())
    }
}

/// The rows of a block: private.
#[derive(Default)]
struct BlockRows {
    codes: Vec<u16>,
    labels: Vec<CodedLabel>,
}

impl BlockRows {
    fn fetch(&mut self, slots: usize, bytes: &[u8]) {
        let rows = bytes.len() / row_bytes(slots);
        self.codes.resize(rows * slots, 0);
        self.labels.resize(rows, 0);
        let (of_codes, of_labels) = bytes.split_at(rows * slots * size_of::<u16>());
        fetch(of_codes, &mut self.codes, u16::from_le_bytes);
        fetch(of_labels, &mut self.labels, CodedLabel::from_le_bytes);
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
