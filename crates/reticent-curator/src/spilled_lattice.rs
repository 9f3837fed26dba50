//! A block of lattice rows in memory, between its bytes in a scratch file and the kernel.

use reticent_core::coding::Coding;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::Encoding;

use crate::kernel::{Instructions, LatticeRowsMut, encode_rows};
use crate::lattice::{ChosenCoordinates, CompactBlock, KeptBlock, LatticeBlock, Steps, narrow};
use crate::scratch_blocks::{append, fetch};
use crate::source::CodedRows;

/// Bytes of a lattice row under an encoding, with its label, and with its step where every row has its own.
pub(crate) fn row_bytes(encoding: &Encoding) -> usize {
    let step = if encoding.common_step().is_none() { size_of::<f32>() } else { 0 };
    let layout = encoding.layout();
    let chosen = layout.chosen() * (size_of::<u32>() + size_of::<i16>());
    layout.packed().len() * packed_bytes(encoding) + chosen + step + size_of::<CodedLabel>()
}

/// Bytes of a packed coordinate.
fn packed_bytes(encoding: &Encoding) -> usize {
    if encoding.is_coarse() { size_of::<i8>() } else { size_of::<i16>() }
}

/// Most bytes of a lattice row under any encoding: without the zeros of wide blocks it is shorter.
pub(crate) fn row_bytes_max(coding: &Coding) -> usize {
    coordinate_bytes_max(coding) + size_of::<f32>() + size_of::<CodedLabel>()
}

/// Most bytes of the coordinates of a row.
pub(crate) fn coordinate_bytes_max(coding: &Coding) -> usize {
    let all = coding.columns().len();
    // No method centres listed columns of private rows, which would then have a place each.
    let (placed, listed) = coding.listed().map_or((all, 0), |listed| (listed.first_column(), listed.most()));
    placed * size_of::<i16>() + listed * (size_of::<u32>() + size_of::<i16>())
}

/// Lattice rows of a block, as they are read and written: private.
#[derive(Default)]
pub(crate) struct LatticeRows {
    packed: Vec<i16>,
    /// The same of a coarse encoding.
    coarse: Vec<i8>,
    labels: Vec<CodedLabel>,
    chosen_columns: Vec<u32>,
    chosen: Vec<i16>,
    own_steps: Vec<f32>,
}

impl LatticeRows {
    pub(crate) fn fetch(&mut self, encoding: &Encoding, bytes: &[u8]) {
        let rows = bytes.len() / row_bytes(encoding);
        let (columns, blocks) = (encoding.layout().packed().len(), encoding.layout().chosen());
        let mut rest = bytes;
        let mut part = |values: usize, size: usize| {
            let (part, after) = rest.split_at(rows * values * size);
            rest = after;
            part
        };
        let of_packed = part(columns, packed_bytes(encoding));
        let of_labels = part(1, size_of::<CodedLabel>());
        let of_columns = part(blocks, size_of::<u32>());
        let of_chosen = part(blocks, size_of::<i16>());
        self.labels.resize(rows, 0);
        self.chosen_columns.resize(rows * blocks, 0);
        self.chosen.resize(rows * blocks, 0);
        if encoding.is_coarse() {
            self.coarse.resize(rows * columns, 0);
            fetch(of_packed, &mut self.coarse, i8::from_le_bytes);
        } else {
            self.packed.resize(rows * columns, 0);
            fetch(of_packed, &mut self.packed, i16::from_le_bytes);
        }
        fetch(of_labels, &mut self.labels, CodedLabel::from_le_bytes);
        fetch(of_columns, &mut self.chosen_columns, u32::from_le_bytes);
        fetch(of_chosen, &mut self.chosen, i16::from_le_bytes);
        if encoding.common_step().is_none() {
            self.own_steps.resize(rows, 0.0);
            fetch(rest, &mut self.own_steps, f32::from_le_bytes);
        }
    }

    pub(crate) fn append(&self, encoding: &Encoding, bytes: &mut Vec<u8>) {
        if encoding.is_coarse() {
            append(bytes, &self.coarse, i8::to_le_bytes);
        } else {
            append(bytes, &self.packed, i16::to_le_bytes);
        }
        append(bytes, &self.labels, CodedLabel::to_le_bytes);
        append(bytes, &self.chosen_columns, u32::to_le_bytes);
        append(bytes, &self.chosen, i16::to_le_bytes);
        if encoding.common_step().is_none() {
            append(bytes, &self.own_steps, f32::to_le_bytes);
        }
    }

    pub(crate) fn block<'a>(&'a self, encoding: &'a Encoding) -> KeptBlock<'a> {
        if encoding.is_coarse() {
            KeptBlock::Coarse(self.block_of(&self.coarse, encoding))
        } else {
            KeptBlock::Fine(self.block_of(&self.packed, encoding))
        }
    }

    fn block_of<'a, T>(&'a self, features: &'a [T], encoding: &'a Encoding) -> CompactBlock<'a, T> {
        let layout = encoding.layout();
        let steps = encoding.common_step().map_or(Steps::Own(&self.own_steps), Steps::Common);
        CompactBlock {
            layout,
            packed: LatticeBlock { columns: layout.packed().len(), features, steps, labels: &self.labels },
            chosen: ChosenCoordinates {
                per_row: layout.chosen(),
                has_list: layout.has_list(),
                columns: &self.chosen_columns,
                values: &self.chosen,
                by_column: None,
            },
        }
    }

    /// Puts coded rows on the lattice.
    pub(crate) fn encode(&mut self, encoding: &Encoding, rows: CodedRows<'_>) {
        let count = rows.labels.len();
        self.packed.resize(count * encoding.layout().packed().len(), 0);
        self.chosen_columns.resize(count * encoding.layout().chosen(), 0);
        self.chosen.resize(count * encoding.layout().chosen(), 0);
        self.labels.clear();
        self.labels.extend_from_slice(rows.labels);
        self.own_steps.resize(if encoding.common_step().is_some() { 0 } else { count }, 0.0);
        let into = LatticeRowsMut {
            packed: &mut self.packed,
            chosen_columns: &mut self.chosen_columns,
            chosen: &mut self.chosen,
            own_steps: &mut self.own_steps,
        };
        encode_rows(Instructions::best(), encoding, rows.codes, into);
        if encoding.is_coarse() {
            self.coarse.resize(self.packed.len(), 0);
            narrow(&self.packed, &mut self.coarse);
        }
    }
}
