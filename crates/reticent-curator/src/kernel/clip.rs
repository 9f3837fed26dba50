//! How large the slope of each row may be, so that slope times row is no longer than a clip norm.
//!
//! It depends on the row and the clip norm alone, so it is found once and serves every pass.

use super::lanes::{self, Chunk, Coordinate, GROUP, masks_of, window};
use super::slopes;
use crate::lattice::CompactBlock;

/// One pass over one block.
pub(super) struct ClipPass<'a, T> {
    /// The largest length of slope times row, in steps of both.
    pub(super) clip: u32,
    pub(super) block: CompactBlock<'a, T>,
}

impl<T: Coordinate> ClipPass<'_, T> {
    /// The pass with its inner loop, in any instructions: it is compiled into each function below.
    #[inline(always)]
    fn run(&self, largest: &mut [i16], squares: impl Fn(&[Chunk<i16>], &[T], usize) -> [i32; GROUP]) {
        let CompactBlock { packed, chosen, .. } = self.block;
        let columns = packed.columns;
        let masks = masks_of(columns);
        let mut copy = Vec::new();
        for (group, largest) in largest.chunks_mut(GROUP).enumerate() {
            let first = group * GROUP;
            let mut squares = squares(&masks, window(packed.features, columns, first, &mut copy), columns);
            squares.iter_mut().for_each(|square| *square *= T::STEPS * T::STEPS);
            chosen.add_squares(first, &mut squares);
            largest.copy_from_slice(&slopes::largest(&squares, self.clip)[..largest.len()]);
        }
    }
}

pub(super) fn portable<T: Coordinate>(pass: &ClipPass<'_, T>, largest: &mut [i16]) {
    pass.run(largest, lanes::portable::dots::<T, true>);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2<T: Coordinate>(pass: &ClipPass<'_, T>, largest: &mut [i16]) {
    pass.run(largest, |masks, window, columns| lanes::avx2::dots::<T, true, true>(masks, window, columns));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512<T: Coordinate>(pass: &ClipPass<'_, T>, largest: &mut [i16]) {
    pass.run(largest, |masks, window, columns| lanes::avx512::dots::<T, true, true>(masks, window, columns));
}
