//! The pass of all products of two columns: `XᵀX` and `Xᵀy`, exact for every table the lattice admits.
//!
//! ```text
//!   some rows ─▶ packed: panels of 16 columns, two rows side by side ─▶ tiles of 8 columns by up to 3 panels, in 32-bit lanes
//!                                                                       └ flushed into 64 bits before they could overflow
//! ```
//! When to flush is decided from the rows themselves, by Cauchy-Schwarz: over any set of rows
//! `|sum x_i x_j| <= sqrt(sum x_i²) sqrt(sum x_j²)`, and so is every partial sum. For each panel and each [`GRANULE`] the
//! largest `sum x²` of a column is at hand; granules are taken together as long as the products of their roots sum to less than
//! `2^31`. Where one granule alone could pass that, `steps` pairs of rows are taken with `steps · 2 max|x_i| max|x_j| < 2^31`;
//! one pair always fits, as `2 · 32767² < 2^31`. Only the time depends on the rows by this, as that of any early flush does;
//! the sums do not.

use std::ops::Range;

use reticent_core::contribution::UNUSABLE_LABEL;

use super::lanes::{GROUP, labels_of, window};

/// Columns of a panel.
pub(super) const PANEL: usize = 16;

/// Columns of a tile's first side: half a panel.
const SIDE: usize = PANEL / 2;

/// Most panels of a tile's second side.
const PANELS: usize = 3;

/// Pairs of rows whose bound is known: one group.
const GRANULE: usize = GROUP / 2;

/// One pair of rows in one panel: the coordinates of both rows next to each other.
type PackedPair = [[i16; 2]; PANEL];

/// Sums of products of [`SIDE`] columns with those of one panel.
type Tile = [[i64; PANEL]; SIDE];

/// One pass over one block.
pub(super) struct ProductPass<'a> {
    pub(super) columns: usize,
    pub(super) features: &'a [i16],
    /// In `-32767..=32767`; a row with [`UNUSABLE_LABEL`] adds nothing.
    pub(super) labels: &'a [i16],
}

/// What is known of one panel over one granule.
#[derive(Clone, Copy, Default)]
struct Bound {
    /// At least the root of the largest sum of squares of a column.
    norm: u64,
    /// Largest magnitude.
    largest: u64,
}

impl Bound {
    #[inline(always)]
    fn of(packed: &[PackedPair]) -> Self {
        let (mut squares, mut largest) = ([0u32; PANEL], [0i16; PANEL]);
        for pair in packed {
            for ((square, largest), [even, odd]) in squares.iter_mut().zip(&mut largest).zip(pair) {
                // Two squares fit 31 bits. A sixteenth of them, rounded up, sums without overflow over 16 pairs.
                let both = i32::from(*even) * i32::from(*even) + i32::from(*odd) * i32::from(*odd);
                *square += (both >> 4) as u32 + 1;
                *largest = (*largest).max(even.abs()).max(odd.abs());
            }
        }
        let square = squares.iter().fold(0, |most, square| most.max(*square));
        let largest = largest.iter().fold(0, |most, one| most.max(*one));
        Self { norm: (16 * u64::from(square)).isqrt() + 1, largest: largest.unsigned_abs().into() }
    }
}

/// Largest magnitude of a 32-bit sum.
const NARROW_MAX: u64 = i32::MAX as u64;

/// Panels that are packed at a time, times rows: about 2 MiB.
const PACKED_MAX: usize = 1 << 16;

impl ProductPass<'_> {
    /// The pass with its inner loops, in any instructions: it is compiled into each function below.
    ///
    /// The label is two more columns, of 8 bits each: `label = low + 256 high`.
    #[inline(always)]
    fn run(
        &self,
        products: &mut [i64],
        pack: impl Fn(&[i16; PANEL], &[i16; PANEL]) -> PackedPair,
        tile_one: impl Fn(&[PackedPair], usize, [&[PackedPair]; 1], &mut [Tile]),
        tile_two: impl Fn(&[PackedPair], usize, [&[PackedPair]; 2], &mut [Tile]),
        tile_three: impl Fn(&[PackedPair], usize, [&[PackedPair]; 3], &mut [Tile]),
    ) {
        let columns = self.columns;
        let panels = (columns + 2).div_ceil(PANEL);
        let granules = (PACKED_MAX / (panels * GROUP)).clamp(1, 8).min(self.labels.len().div_ceil(GROUP).max(1));
        let pairs = granules * GRANULE;
        let mut packed = vec![[[0i16; 2]; PANEL]; panels * pairs];
        let mut bounds = vec![Bound::default(); panels * granules];
        let mut tiles = vec![[[0i64; PANEL]; SIDE]; 2 * panels * panels];
        let lanes: Vec<_> = (0..panels).map(|panel| PanelLanes::of(panel, columns)).collect();
        let mut copy = Vec::new();
        // Second sides of almost the same width.
        let wide = panels.div_ceil(PANELS);
        let seconds = || (0..wide).map(|second| second * panels / wide..(second + 1) * panels / wide);
        for first in (0..self.labels.len()).step_by(granules * GROUP) {
            let filled = (self.labels.len() - first).min(granules * GROUP).div_ceil(GROUP);
            for granule in 0..filled {
                let first = first + granule * GROUP;
                let window = window(self.features, columns, first, &mut copy);
                let labels = LabelParts::of(&labels_of(self.labels, first));
                // Pair after pair, in the order of memory.
                for pair in 0..GRANULE {
                    for panel in 0..panels {
                        let packed = &mut packed[panel * pairs + granule * GRANULE + pair];
                        let half = |row: usize| lanes[panel].of_row(&labels, window, row);
                        *packed = pack(&half(2 * pair), &half(2 * pair + 1));
                    }
                }
                for panel in 0..panels {
                    let packed = &packed[panel * pairs + granule * GRANULE..][..GRANULE];
                    bounds[panel * granules + granule] = Bound::of(packed);
                }
            }
            let of_panel = |panel: usize, range: &Range<usize>| &packed[panel * pairs..][range.clone()];
            // The second side stays in cache while the first passes by.
            for second in seconds() {
                for side in 0..2 * second.end {
                    // Panels left of the first side would be below the diagonal.
                    let second = second.start.max(side / 2)..second.end;
                    let mut done = 0;
                    while done < filled * GRANULE {
                        let run = Self::run_of(&bounds, granules, side / 2, &second, done..filled * GRANULE);
                        done = run.end;
                        let (one, half) = (of_panel(side / 2, &run), side % 2);
                        let other = |place: usize| of_panel(second.start + place, &run);
                        let tiles = &mut tiles[side * panels + second.start..side * panels + second.end];
                        match second.len() {
                            3 => tile_three(one, half, [other(0), other(1), other(2)], tiles),
                            2 => tile_two(one, half, [other(0), other(1)], tiles),
                            _ => tile_one(one, half, [other(0)], tiles),
                        }
                    }
                }
            }
        }
        self.add_triangle(products, |one, panel| tiles[one / SIDE * panels + panel][one % SIDE]);
    }

    /// Adds sums of products to those of all blocks. `line` has those of a column with the columns of a panel that is not left of
    /// its own; the last two columns are the parts of the label.
    #[inline(always)]
    pub(super) fn add_triangle(&self, products: &mut [i64], line: impl Fn(usize, usize) -> [i64; PANEL]) {
        let columns = self.columns;
        let (low, high) = (columns, columns + 1);
        let sum = |one: usize, other: usize| line(one, other / PANEL)[other % PANEL];
        let (of_columns, of_label) = products.split_at_mut(columns * (columns + 1) / 2);
        let mut left = of_columns;
        for one in 0..columns {
            let (of_column, others) = left.split_at_mut(columns - one);
            left = others;
            // Up to the end of its panel, then panel after panel.
            let (in_panel, after) = of_column.split_at_mut(of_column.len().min(PANEL - one % PANEL));
            let whole = in_panel.chunks_mut(PANEL).chain(after.chunks_mut(PANEL));
            for (panel, products) in (one / PANEL..).zip(whole) {
                let first = if panel == one / PANEL { one % PANEL } else { 0 };
                for (product, sum) in products.iter_mut().zip(&line(one, panel)[first..]) {
                    *product += sum;
                }
            }
        }
        for (column, product) in of_label[..columns].iter_mut().enumerate() {
            *product += sum(column, low) + 256 * sum(column, high);
        }
        of_label[columns] += sum(low, low) + 2 * 256 * sum(low, high) + 256 * 256 * sum(high, high);
    }

    /// The first pairs of rows of `left` whose products fit 32-bit sums: panel `one` with each of the panels `others`.
    #[inline(always)]
    fn run_of(
        bounds: &[Bound],
        granules: usize,
        one: usize,
        others: &Range<usize>,
        left: Range<usize>,
    ) -> Range<usize> {
        let bound_of = |granule: usize| {
            let (mut norm, mut largest) = (0, 0);
            for other in others.clone() {
                let bound = bounds[other * granules + granule];
                (norm, largest) = (bound.norm.max(norm), bound.largest.max(largest));
            }
            let bound = bounds[one * granules + granule];
            (bound.norm * norm, bound.largest * largest)
        };
        let granule = left.start / GRANULE;
        let inside = !left.start.is_multiple_of(GRANULE);
        let (sum, largest) = bound_of(granule);
        if inside || sum > NARROW_MAX {
            // At least one pair, as a coordinate is at most 32767 in magnitude.
            let steps = (NARROW_MAX / (2 * largest).max(1)).clamp(1, GRANULE as u64) as usize;
            return left.start..(left.start + steps).min((granule + 1) * GRANULE);
        }
        let mut total = sum;
        for granule in granule + 1..left.end / GRANULE {
            total += bound_of(granule).0;
            if total > NARROW_MAX {
                return left.start..granule * GRANULE;
            }
        }
        left
    }
}

/// Labels of a group in two parts; rows without a label have zeros, in all their columns.
pub(super) struct LabelParts {
    usable: [bool; GROUP],
    all_usable: bool,
    low: [i16; GROUP],
    high: [i16; GROUP],
}

impl LabelParts {
    #[inline(always)]
    pub(super) fn of(labels: &[i16; GROUP]) -> Self {
        let mut parts = Self { usable: [false; GROUP], all_usable: true, low: [0; GROUP], high: [0; GROUP] };
        for (row, label) in labels.iter().enumerate() {
            let usable = *label != UNUSABLE_LABEL;
            let label = if usable { i32::from(*label) } else { 0 };
            let low = i32::from(label as i8);
            parts.usable[row] = usable;
            parts.all_usable &= usable;
            parts.low[row] = low as i16;
            parts.high[row] = ((label - low) >> 8) as i16;
        }
        parts
    }
}

/// Where a panel has coordinates and where the parts of the label: all bits of the lane set, or none.
pub(super) struct PanelLanes {
    /// Of a row, with the two parts of the label not counted.
    columns: usize,
    /// The first one, or 0 for a panel of the label alone, which has none to read.
    start: usize,
    /// No lane is one of the label.
    coordinates_alone: bool,
    coordinates: [i16; PANEL],
    low: [i16; PANEL],
    high: [i16; PANEL],
}

impl PanelLanes {
    pub(super) fn of(panel: usize, columns: usize) -> Self {
        let lanes =
            |is: &dyn Fn(usize) -> bool| std::array::from_fn(|place| if is(panel * PANEL + place) { -1 } else { 0 });
        Self {
            columns,
            start: if panel * PANEL < columns { panel * PANEL } else { 0 },
            coordinates_alone: (panel + 1) * PANEL <= columns,
            coordinates: lanes(&|column| column < columns),
            low: lanes(&|column| column == columns),
            high: lanes(&|column| column == columns + 1),
        }
    }

    /// The panel of one row of a window.
    #[inline(always)]
    pub(super) fn of_row(&self, labels: &LabelParts, window: &[i16], row: usize) -> [i16; PANEL] {
        let features = window[row * self.columns + self.start..].first_chunk().expect("a window has whole panels");
        if self.coordinates_alone && labels.all_usable {
            return *features;
        }
        let (usable, low, high) = (-i16::from(labels.usable[row]), labels.low[row], labels.high[row]);
        let mut lanes = [0; PANEL];
        for (place, lane) in lanes.iter_mut().enumerate() {
            let coordinate = features[place] & self.coordinates[place] & usable;
            *lane = coordinate | (low & self.low[place]) | (high & self.high[place]);
        }
        lanes
    }
}

/// See [`ProductPass::run`]: adds products of half `half` of a panel with `N` panels, over some pairs of rows.
#[inline(always)]
fn plain_tile<const N: usize>(one: &[PackedPair], half: usize, others: [&[PackedPair]; N], tiles: &mut [Tile]) {
    for (tile, other) in tiles.iter_mut().zip(others) {
        for (row, totals) in tile.iter_mut().enumerate() {
            let mut sums = [0i32; PANEL];
            for (one, other) in one.iter().zip(other) {
                let [even, odd] = one[half * SIDE + row].map(i32::from);
                for (sum, other) in sums.iter_mut().zip(other) {
                    *sum += even * i32::from(other[0]) + odd * i32::from(other[1]);
                }
            }
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total += i64::from(sum);
            }
        }
    }
}

#[inline(always)]
fn plain_pack(even: &[i16; PANEL], odd: &[i16; PANEL]) -> PackedPair {
    let mut packed = [[0; 2]; PANEL];
    for ((packed, even), odd) in packed.iter_mut().zip(even).zip(odd) {
        *packed = [*even, *odd];
    }
    packed
}

/// Two vectors a panel, four columns of the first side at a time: as many sums as there are registers for.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn avx2_tile<const N: usize>(one: &[PackedPair], half: usize, others: [&[PackedPair]; N], tiles: &mut [Tile]) {
    use bytemuck::cast;
    use std::arch::x86_64::*;
    for (tile, other) in tiles.iter_mut().zip(others) {
        for quarter in 0..2 {
            let mut sums = [[_mm256_setzero_si256(); 2]; SIDE / 2];
            for (one, other) in one.iter().zip(other) {
                let other: [__m256i; 2] = cast(*other);
                let one: &[[i16; 2]; SIDE / 2] = &one.as_chunks().0[2 * half + quarter];
                for (sums, one) in sums.iter_mut().zip(one) {
                    let one = _mm256_set1_epi32(cast(*one));
                    sums[0] = _mm256_add_epi32(sums[0], _mm256_madd_epi16(one, other[0]));
                    sums[1] = _mm256_add_epi32(sums[1], _mm256_madd_epi16(one, other[1]));
                }
            }
            for (totals, sums) in tile[quarter * SIDE / 2..].iter_mut().zip(sums) {
                let sums: [i32; PANEL] = cast(sums);
                for (total, sum) in totals.iter_mut().zip(sums) {
                    *total += i64::from(sum);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn avx2_pack(even: &[i16; PANEL], odd: &[i16; PANEL]) -> PackedPair {
    use bytemuck::cast;
    use std::arch::x86_64::*;
    let (even, odd): (__m256i, __m256i) = (cast(*even), cast(*odd));
    let (low, high) = (_mm256_unpacklo_epi16(even, odd), _mm256_unpackhi_epi16(even, odd));
    // Interleaving works within 128 bits.
    cast([_mm256_permute2x128_si256::<0x20>(low, high), _mm256_permute2x128_si256::<0x31>(low, high)])
}

/// One vector a panel; all sums of the tiles stay in registers.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn avx512_tile<const N: usize>(one: &[PackedPair], half: usize, others: [&[PackedPair]; N], tiles: &mut [Tile]) {
    use bytemuck::cast;
    use std::arch::x86_64::*;
    let mut sums = [[_mm512_setzero_si512(); N]; SIDE];
    let mut others = others;
    for other in &mut others {
        *other = &other[..one.len()];
    }
    for (pair, one) in one.iter().enumerate() {
        let one: &[[i16; 2]; SIDE] = &one.as_chunks().0[half];
        let mut other = [_mm512_setzero_si512(); N];
        for (other, packed) in other.iter_mut().zip(&others) {
            *other = cast(packed[pair]);
        }
        for (sums, one) in sums.iter_mut().zip(one) {
            let one = _mm512_set1_epi32(cast(*one));
            for (sum, other) in sums.iter_mut().zip(other) {
                *sum = _mm512_dpwssd_epi32(*sum, one, other);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        for (sum, tile) in sums.iter().zip(&mut *tiles) {
            let halves = [_mm512_castsi512_si256(*sum), _mm512_extracti64x4_epi64::<1>(*sum)];
            for (totals, sums) in tile[row].as_chunks_mut::<8>().0.iter_mut().zip(halves) {
                *totals = cast(_mm512_add_epi64(cast(*totals), _mm512_cvtepi32_epi64(sums)));
            }
        }
    }
}

pub(super) fn portable(pass: &ProductPass<'_>, products: &mut [i64]) {
    pass.run(products, plain_pack, plain_tile, plain_tile, plain_tile);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(pass: &ProductPass<'_>, products: &mut [i64]) {
    pass.run(
        products,
        |even, odd| avx2_pack(even, odd),
        |one, half, others, tiles| avx2_tile(one, half, others, tiles),
        |one, half, others, tiles| avx2_tile(one, half, others, tiles),
        |one, half, others, tiles| avx2_tile(one, half, others, tiles),
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512(pass: &ProductPass<'_>, products: &mut [i64]) {
    pass.run(
        products,
        |even, odd| avx2_pack(even, odd),
        |one, half, others, tiles| avx512_tile(one, half, others, tiles),
        |one, half, others, tiles| avx512_tile(one, half, others, tiles),
        |one, half, others, tiles| avx512_tile(one, half, others, tiles),
    );
}
