//! [`ProductPass`] on a processor with a tile unit: coordinates go in two bytes, and bytes are multiplied by the thousand.
//!
//! ```text
//!   some rows ─▶ panels of 16 columns, 64 rows a tile, high and low bytes apart ─▶ four sums a pair of panels, 32 bits
//!                └ once with columns as lines, once with fours of rows             └ put together in 64 bits every 2^15 rows
//! ```
//! `(256 h + l)(256 h' + l') = 2^16 h h' + 2^8 (h l' + l h') + l l'`, each sum of its own. No sum can overflow, whatever the
//! rows are, so nothing but their number decides when sums are put together.

use std::arch::x86_64::*;

use bytemuck::cast;

use super::lanes::{GROUP, labels_of, window};
use super::products::{LabelParts, PANEL, PanelLanes, ProductPass};
use super::tile_unit::{SUM_ROWS, SplitSums, SplitTile, TILE_ROWS, TileUnit, Words};

/// Most tiles that are packed at a time, so that they stay in cache: those of one panel, and of all together.
const PANEL_TILES: usize = 8;
const PACKED_TILES: usize = 512;

/// The pass on the tile unit.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn tile_unit(unit: TileUnit, pass: &ProductPass<'_>, products: &mut [i64]) {
    // No tile has rows of two parts.
    const { assert!(SUM_ROWS.is_multiple_of(TILE_ROWS)) };
    let (columns, rows) = (pass.columns, pass.labels.len());
    let panels = (columns + 2).div_ceil(PANEL);
    let tiles = (PACKED_TILES / panels).clamp(4, PANEL_TILES).min(rows.div_ceil(TILE_ROWS));
    let lanes: Vec<_> = (0..panels).map(|panel| PanelLanes::of(panel, columns)).collect();
    let mut by_column = vec![SplitTile::ZERO; panels * tiles];
    let mut by_row = by_column.clone();
    let mut sums = vec![SplitSums::ZERO; panels * (panels + 1) / 2];
    // Sums of panels (0, 0), (0, 1), (1, 1), (0, 2), ...
    let place_of = |one: usize, other: usize| other * (other + 1) / 2 + one;
    for part in (0..rows).step_by(SUM_ROWS) {
        sums.fill(SplitSums::ZERO);
        let end = rows.min(part + SUM_ROWS);
        for first in (part..end).step_by(tiles * TILE_ROWS) {
            let filled = (end - first).min(tiles * TILE_ROWS).div_ceil(TILE_ROWS);
            for tile in 0..filled {
                pack(pass, &lanes, first + tile * TILE_ROWS, &mut by_row[tile..], tiles);
            }
            for (by_column, by_row) in by_column.chunks_exact_mut(tiles).zip(by_row.chunks_exact(tiles)) {
                for (by_column, by_row) in by_column.iter_mut().zip(&by_row[..filled]) {
                    (by_column.high, by_column.low) = (transposed(&by_row.high), transposed(&by_row.low));
                }
            }
            let mut left = &mut sums[..];
            for (other, by_row) in by_row.chunks_exact(tiles).enumerate() {
                let (sums, others) = left.split_at_mut(other + 1);
                unit.add_products(&by_column[..(other + 1) * tiles], tiles, &by_row[..filled], sums);
                left = others;
            }
        }
        pass.add_triangle(products, |one, panel| {
            let [high, mixed, also_mixed, low] = &sums[place_of(one / PANEL, panel)].parts;
            let line = one % PANEL;
            let (high, low, mixed, also_mixed) = (high[line], low[line], mixed[line], also_mixed[line]);
            std::array::from_fn(|lane| {
                let mixed = i64::from(mixed[lane]) + i64::from(also_mixed[lane]);
                (i64::from(high[lane]) << 16) + (mixed << 8) + i64::from(low[lane])
            })
        });
    }
}

/// Packs the rows of a tile from `first` on, one tile a panel: lines are fours of rows. Rows past the end are zero.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn pack(pass: &ProductPass<'_>, lanes: &[PanelLanes], first: usize, tiles: &mut [SplitTile], stride: usize) {
    let mut copy = Vec::new();
    for group in 0..TILE_ROWS / GROUP {
        let first = first + group * GROUP;
        if first >= pass.labels.len() {
            for tile in tiles.iter_mut().step_by(stride) {
                for lines in [&mut tile.high, &mut tile.low] {
                    lines[group * GROUP / 4..][..GROUP / 4].fill([0; PANEL]);
                }
            }
            continue;
        }
        let window = window(pass.features, pass.columns, first, &mut copy);
        let labels = LabelParts::of(&labels_of(pass.labels, first));
        // Four rows after four rows, in the order of memory.
        for four in 0..GROUP / 4 {
            let line = group * GROUP / 4 + four;
            for (lanes, tile) in lanes.iter().zip(tiles.iter_mut().step_by(stride)) {
                let rows = std::array::from_fn(|row| lanes.of_row(&labels, window, 4 * four + row));
                (tile.high[line], tile.low[line]) = split(rows);
            }
        }
    }
}

/// High and low bytes of four rows, those of one column next to each other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn split(rows: [[i16; PANEL]; 4]) -> ([u32; PANEL], [u32; PANEL]) {
    let [a, b, c, d] = rows.map(|row| _mm512_cvtepu16_epi32(cast(row)));
    // Words of two coordinates each, then the bytes of both in the order low, low, high, high.
    let (first, last) =
        (_mm512_or_si512(a, _mm512_slli_epi32::<16>(b)), _mm512_or_si512(c, _mm512_slli_epi32::<16>(d)));
    let order = _mm512_set1_epi32(0x03_01_02_00);
    let order =
        _mm512_add_epi32(order, _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x0404_0404, 0x0808_0808, 0x0c0c_0c0c)));
    let (first, last) = (_mm512_shuffle_epi8(first, order), _mm512_shuffle_epi8(last, order));
    let high = _mm512_mask_blend_epi16(0xaaaa_aaaa, _mm512_srli_epi32::<16>(first), last);
    let low = _mm512_mask_blend_epi16(0xaaaa_aaaa, first, _mm512_slli_epi32::<16>(last));
    (cast(high), cast(low))
}

/// Lines as columns: by pairs of words, fours of words, and twice by 128 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn transposed(lines: &Words) -> Words {
    let mut lines: [__m512i; PANEL] = cast(*lines);
    for four in lines.as_chunks_mut::<4>().0 {
        let [a, b, c, d] = *four;
        let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
        let (also_ab, also_cd) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
        *four = [
            _mm512_unpacklo_epi64(ab, cd),
            _mm512_unpackhi_epi64(ab, cd),
            _mm512_unpacklo_epi64(also_ab, also_cd),
            _mm512_unpackhi_epi64(also_ab, also_cd),
        ];
    }
    let mut columns = lines;
    for place in 0..4 {
        let [a, b, c, d] = std::array::from_fn(|four| lines[4 * four + place]);
        let (even, also_even) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0x88>(c, d));
        let (odd, also_odd) = (_mm512_shuffle_i32x4::<0xdd>(a, b), _mm512_shuffle_i32x4::<0xdd>(c, d));
        columns[place] = _mm512_shuffle_i32x4::<0x88>(even, also_even);
        columns[4 + place] = _mm512_shuffle_i32x4::<0x88>(odd, also_odd);
        columns[8 + place] = _mm512_shuffle_i32x4::<0xdd>(even, also_even);
        columns[12 + place] = _mm512_shuffle_i32x4::<0xdd>(odd, also_odd);
    }
    cast(columns)
}
