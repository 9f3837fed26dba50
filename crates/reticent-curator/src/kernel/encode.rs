//! Codes of rows onto the lattice: core's scalar function, row after row, its loops in the machine's instructions.

use reticent_core::compact_row::CompactRowMut;
use reticent_core::encoding::Encoding;

/// Where lattice rows are written to, row after row: private.
pub struct LatticeRowsMut<'a> {
    /// One coordinate a packed column.
    pub packed: &'a mut [i16],
    /// One column a chosen coordinate.
    pub chosen_columns: &'a mut [u32],
    /// The coordinates there.
    pub chosen: &'a mut [i16],
    /// One step a row; none where the encoding gives all rows the same.
    pub own_steps: &'a mut [f32],
}

/// Rows to be put on the lattice of an encoding.
pub(super) struct EncodePass<'a> {
    pub(super) encoding: &'a Encoding,
    /// Row after row.
    pub(super) codes: &'a [u16],
}

impl EncodePass<'_> {
    /// The pass, in any instructions: it is compiled into each function below.
    #[inline(always)]
    fn run(&self, into: LatticeRowsMut<'_>) {
        let LatticeRowsMut { packed, chosen_columns, chosen, own_steps } = into;
        let (layout, slots) = (self.encoding.layout(), self.encoding.coding().codes());
        let (columns, blocks) = (layout.packed().len(), layout.chosen());
        let mut scratch = vec![0.0; columns + blocks];
        for (row, packed) in packed.chunks_exact_mut(columns).enumerate() {
            let of_row = row * blocks..(row + 1) * blocks;
            let place = CompactRowMut {
                packed,
                chosen_columns: &mut chosen_columns[of_row.clone()],
                chosen: &mut chosen[of_row],
            };
            let codes = &self.codes[row * slots..(row + 1) * slots];
            let step = self.encoding.encode_compact(codes, &mut scratch, place);
            if let Some(own) = own_steps.get_mut(row) {
                *own = step;
            }
        }
    }
}

pub(super) fn portable(pass: &EncodePass<'_>, into: LatticeRowsMut<'_>) {
    pass.run(into);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(pass: &EncodePass<'_>, into: LatticeRowsMut<'_>) {
    pass.run(into);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512(pass: &EncodePass<'_>, into: LatticeRowsMut<'_>) {
    pass.run(into);
}
