//! Dot products and weighted sums of 32 rows, for each set of instructions.
//!
//! A row is read in chunks of 32 coordinates. The last chunk reaches into the next row: those lanes meet zero weights in a dot
//! product, and in a weighted sum they end in places that are not read.

use bytemuck::Pod;

use super::FLUSH_ROWS;
use crate::lattice::{Steps, widen};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::encoding::COARSE_STEPS;

/// Coordinates that are read together.
pub(super) const CHUNK: usize = 32;

pub(super) type Chunk<T> = [T; CHUNK];

/// How a coordinate of a row is kept: in 16 bits or in 8.
pub trait Coordinate: Pod + Sealed {
    /// Lattice steps that one unit is worth.
    const STEPS: i32;

    /// The same units in 16 bits.
    fn widened(chunk: &[Self; CHUNK]) -> Chunk<i16>;

    /// Coordinates in lattice steps, written to `room` where they are not at hand.
    fn in_lattice_steps<'a>(coordinates: &'a [Self], room: &'a mut Vec<i16>) -> &'a [i16];
}

/// The kernels know these two and no others.
pub trait Sealed {}
impl Sealed for i16 {}
impl Sealed for i8 {}

impl Coordinate for i16 {
    const STEPS: i32 = 1;

    #[inline(always)]
    fn widened(chunk: &[Self; CHUNK]) -> Chunk<i16> {
        *chunk
    }

    #[inline(always)]
    fn in_lattice_steps<'a>(coordinates: &'a [Self], _: &'a mut Vec<i16>) -> &'a [i16] {
        coordinates
    }
}

/// Coordinates of an encoding that is coarse: see [`reticent_core::encoding::Encoding::coarse`].
impl Coordinate for i8 {
    const STEPS: i32 = COARSE_STEPS as i32;

    #[inline(always)]
    fn widened(chunk: &[Self; CHUNK]) -> Chunk<i16> {
        chunk.map(i16::from)
    }

    #[inline(always)]
    fn in_lattice_steps<'a>(coordinates: &'a [Self], room: &'a mut Vec<i16>) -> &'a [i16] {
        room.resize(coordinates.len(), 0);
        widen(coordinates, room);
        room
    }
}

/// Rows that are worked on together. Their weighted sums are flushed once: the rule of [`FLUSH_ROWS`].
pub(super) const GROUP: usize = FLUSH_ROWS;

/// Slopes of a group, those of two neighbouring rows next to each other.
pub(super) type PairedSlopes = [[i16; 2]; GROUP / 2];

/// `[slopes of even row, slopes of odd row]` of each pair of rows.
#[inline(always)]
pub(super) fn paired(slopes: &[i32; GROUP]) -> PairedSlopes {
    let mut paired = [[0; 2]; GROUP / 2];
    for (paired, slope) in paired.as_flattened_mut().iter_mut().zip(slopes) {
        *paired = *slope as i16;
    }
    paired
}

/// The rows of a group from row `first` on, readable in whole chunks: where that would pass the end of the features, a copy
/// with zeros behind it. Rows past the end are zero.
#[inline(always)]
pub(super) fn window<'a, T: Coordinate>(
    features: &'a [T],
    columns: usize,
    first: usize,
    copy: &'a mut Vec<T>,
) -> &'a [T] {
    let length = (GROUP - 1) * columns + columns.next_multiple_of(CHUNK);
    let start = first * columns;
    if let Some(window) = features.get(start..start + length) {
        return window;
    }
    let left = &features[start..];
    let left = &left[..left.len().min(GROUP * columns)];
    copy.clear();
    copy.extend_from_slice(left);
    copy.resize(length, T::zeroed());
    copy
}

/// What belongs to the rows of a group; rows past the end have `none`.
#[inline(always)]
pub(super) fn group_of<V: Copy>(values: &[V], first: usize, none: V) -> [V; GROUP] {
    let values = &values[first..];
    values.first_chunk().copied().unwrap_or_else(|| {
        let mut group = [none; GROUP];
        group[..values.len()].copy_from_slice(values);
        group
    })
}

/// The labels of a group; rows past the end have an unusable one.
#[inline(always)]
pub(super) fn labels_of(labels: &[CodedLabel], first: usize) -> [CodedLabel; GROUP] {
    group_of(labels, first, UNUSABLE_LABEL)
}

/// The steps of a group; of rows past the end, zero.
#[inline(always)]
pub(super) fn steps_of(steps: Steps<'_>, first: usize) -> [f32; GROUP] {
    match steps {
        Steps::Common(step) => [step; GROUP],
        Steps::Own(steps) => group_of(steps, first, 0.0),
    }
}

/// Weights of one score, filled up with zeros to whole chunks.
pub(super) fn chunks_of(weights: &[i16]) -> Vec<Chunk<i16>> {
    let mut chunks = vec![[0; CHUNK]; weights.len().div_ceil(CHUNK)];
    chunks.as_flattened_mut()[..weights.len()].copy_from_slice(weights);
    chunks
}

/// All bits where a row has a coordinate: see the `dots` of each set of instructions.
pub(super) fn masks_of(columns: usize) -> Vec<Chunk<i16>> {
    chunks_of(&vec![-1; columns])
}

#[inline(always)]
fn chunk_at<T: Coordinate>(window: &[T], place: usize) -> &Chunk<T> {
    window[place..].first_chunk().expect(WHOLE)
}

const WHOLE: &str = "a window has all rows of a group, readable in whole chunks";

/// The rows of a window two at a time, from a place of each row on, readable for some length of both. One look at the end of the window
/// is enough for two rows: one for every chunk cost as much as the arithmetic. Weighted sums go through them, not through a range of numbers: where
/// the compiler knows how many there are, it writes all of them out and keeps sums in memory.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn pairs_of<T>(window: &[T], columns: usize, place: usize, length: usize) -> impl Iterator<Item = &[T]> {
    let rows = &window[place..][..(GROUP - 1) * columns + length];
    rows.windows(columns + length).step_by(2 * columns)
}

/// Plain Rust, for every machine.
pub(super) mod portable {
    use super::{CHUNK, Chunk, Coordinate, GROUP, PairedSlopes, chunk_at};

    /// `weights · row` of the rows of a window; or, with `SQUARES`, `row · row`, and [`super::masks_of`] for weights.
    ///
    /// Exact in 32 bits in any order: every partial sum is at most `||weights|| ||row|| <= 65535 · 32767 < 2^31`.
    #[inline(always)]
    pub(in crate::kernel) fn dots<T: Coordinate, const SQUARES: bool>(
        weights: &[Chunk<i16>],
        window: &[T],
        columns: usize,
    ) -> [i32; GROUP] {
        let mut dots = [0; GROUP];
        for (row, dot) in dots.iter_mut().enumerate() {
            let mut sums = [0i32; CHUNK];
            for (place, weights) in weights.iter().enumerate() {
                let features = T::widened(chunk_at(window, row * columns + place * CHUNK));
                for ((sum, weight), feature) in sums.iter_mut().zip(weights).zip(features) {
                    let weight = if SQUARES { weight & feature } else { *weight };
                    *sum += i32::from(weight) * i32::from(feature);
                }
            }
            *dot = sums.iter().sum();
        }
        dots
    }

    /// Adds `sum of slope · row` over the rows of a window, for `C` lists of slopes, to their totals.
    #[inline(always)]
    pub(in crate::kernel) fn accumulate<T: Coordinate, const C: usize>(
        slopes: &[PairedSlopes; C],
        window: &[T],
        columns: usize,
        totals: [&mut [Chunk<i64>]; C],
    ) {
        for (slopes, totals) in slopes.iter().zip(totals) {
            for (place, totals) in totals.iter_mut().enumerate() {
                let mut sums = [0i32; CHUNK];
                for (row, slope) in slopes.as_flattened().iter().enumerate() {
                    let features = T::widened(chunk_at(window, row * columns + place * CHUNK));
                    for (sum, feature) in sums.iter_mut().zip(features) {
                        *sum += i32::from(*slope) * i32::from(feature);
                    }
                }
                for (total, sum) in totals.iter_mut().zip(sums) {
                    *total += i64::from(sum);
                }
            }
        }
    }
}

/// 256-bit vectors. The intrinsics used are safe in functions with the feature; loads are casts of arrays.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx2 {
    use super::{CHUNK, Chunk, Coordinate, GROUP, PairedSlopes, WHOLE, pairs_of};
    use bytemuck::cast;
    use std::arch::x86_64::*;

    /// Half a chunk: what fills a vector once widened.
    const HALF: usize = CHUNK / 2;

    /// [`Coordinate::widened`] in one instruction; which of the two it is, the compiler knows.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn widened<T: Coordinate>(half: &[T; HALF]) -> __m256i {
        if size_of::<T>() == size_of::<i16>() { cast(*half) } else { _mm256_cvtepi8_epi16(cast(*half)) }
    }

    /// Eight sums of eight lanes each.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn sums_of_lanes(vectors: [__m256i; 8]) -> [i32; 8] {
        let pair = |one, other| _mm256_hadd_epi32(vectors[one], vectors[other]);
        let first = _mm256_hadd_epi32(pair(0, 1), pair(2, 3));
        let last = _mm256_hadd_epi32(pair(4, 5), pair(6, 7));
        let low = _mm256_permute2x128_si256::<0x20>(first, last);
        let high = _mm256_permute2x128_si256::<0x31>(first, last);
        cast(_mm256_add_epi32(low, high))
    }

    /// See [`super::portable::dots`]. `STREAMED` is for rows that come from memory: read one after the other, as what will be
    /// read is foreseen at one place better than at four. Rows of one cache line are neighbours either way.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::kernel) fn dots<T: Coordinate, const SQUARES: bool, const STREAMED: bool>(
        weights: &[Chunk<i16>],
        window: &[T],
        columns: usize,
    ) -> [i32; GROUP] {
        let (weights, _) = weights.as_flattened()[..columns.next_multiple_of(HALF)].as_chunks::<HALF>();
        match weights.len() {
            1 => dots_of_narrow::<T, SQUARES, 1>(weights, window, columns),
            2 => dots_of_narrow::<T, SQUARES, 2>(weights, window, columns),
            3 => dots_of_narrow::<T, SQUARES, 3>(weights, window, columns),
            4 => dots_of_narrow::<T, SQUARES, 4>(weights, window, columns),
            5 => dots_of_narrow::<T, SQUARES, 5>(weights, window, columns),
            6 => dots_of_narrow::<T, SQUARES, 6>(weights, window, columns),
            7 => dots_of_narrow::<T, SQUARES, 7>(weights, window, columns),
            8 => dots_of_narrow::<T, SQUARES, 8>(weights, window, columns),
            _ => dots_of_wide::<T, SQUARES, STREAMED>(weights, window, columns),
        }
    }

    /// A half and its weights, or a half and itself, multiplied and added to the sums of pairs of lanes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add_dot<const SQUARES: bool>(sum: __m256i, weights: __m256i, features: __m256i) -> __m256i {
        let weights = if SQUARES { _mm256_and_si256(weights, features) } else { weights };
        _mm256_add_epi32(sum, _mm256_madd_epi16(weights, features))
    }

    /// Of rows of so few halves that the compiler writes each out, with the weights in registers.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn dots_of_narrow<T: Coordinate, const SQUARES: bool, const H: usize>(
        weights: &[[i16; HALF]],
        window: &[T],
        columns: usize,
    ) -> [i32; GROUP] {
        let weights: &[_; H] = weights.first_chunk().expect("one a half");
        let mut pairs = pairs_of(window, columns, 0, H * HALF);
        let mut dots = [[0i32; 8]; GROUP / 8];
        for dots in &mut dots {
            let mut sums = [_mm256_setzero_si256(); 8];
            for sums in sums.as_chunks_mut::<2>().0 {
                let both = pairs.next().expect(WHOLE);
                for (sum, row) in sums.iter_mut().zip([0, columns]) {
                    for (weights, features) in weights.iter().zip(halves_at::<T, H>(both, row)) {
                        *sum = add_dot::<SQUARES>(*sum, cast(*weights), widened(features));
                    }
                }
            }
            *dots = sums_of_lanes(sums);
        }
        cast(dots)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn dots_of_wide<T: Coordinate, const SQUARES: bool, const STREAMED: bool>(
        weights: &[[i16; HALF]],
        window: &[T],
        columns: usize,
    ) -> [i32; GROUP] {
        let mut dots = [[0i32; 8]; GROUP / 8];
        for (eight, dots) in dots.iter_mut().enumerate() {
            let mut rows = [_mm256_setzero_si256(); 8];
            if STREAMED {
                for (row, sum) in rows.iter_mut().enumerate() {
                    let features = window[(eight * 8 + row) * columns..][..weights.len() * HALF].as_chunks::<HALF>().0;
                    for (weights, features) in weights.iter().zip(features) {
                        *sum = add_dot::<SQUARES>(*sum, cast(*weights), widened(features));
                    }
                }
            } else {
                // Four rows at a time meet a weight while it is in a register.
                for (four, sums) in rows.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    let row = |row: usize| {
                        let start = (eight * 8 + four * 4 + row) * columns;
                        window[start..][..weights.len() * HALF].as_chunks::<HALF>().0
                    };
                    let features = row(0).iter().zip(row(1)).zip(row(2)).zip(row(3));
                    for (weights, (((first, second), third), last)) in weights.iter().zip(features) {
                        let weights = cast(*weights);
                        sums[0] = add_dot::<SQUARES>(sums[0], weights, widened(first));
                        sums[1] = add_dot::<SQUARES>(sums[1], weights, widened(second));
                        sums[2] = add_dot::<SQUARES>(sums[2], weights, widened(third));
                        sums[3] = add_dot::<SQUARES>(sums[3], weights, widened(last));
                    }
                }
            }
            *dots = sums_of_lanes(rows);
        }
        cast(dots)
    }

    #[inline(always)]
    fn halves_at<T, const W: usize>(pair: &[T], row: usize) -> &[[T; HALF]; W] {
        pair[row..].as_chunks::<HALF>().0.first_chunk().expect(WHOLE)
    }

    /// See [`super::portable::accumulate`]. Two rows are interleaved, so that one instruction multiplies and adds both.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::kernel) fn accumulate<T: Coordinate, const C: usize>(
        slopes: &[PairedSlopes; C],
        window: &[T],
        columns: usize,
        mut totals: [&mut [Chunk<i64>]; C],
    ) {
        let halves = columns.div_ceil(HALF);
        let mut place = 0;
        if C == 1 {
            while place + 4 <= halves {
                accumulate_halves::<T, C, 4>(slopes, window, columns, &mut totals, place);
                place += 4;
            }
            if place + 3 == halves {
                return accumulate_halves::<T, C, 3>(slopes, window, columns, &mut totals, place);
            }
            if place + 2 == halves {
                return accumulate_halves::<T, C, 2>(slopes, window, columns, &mut totals, place);
            }
        }
        while place < halves {
            accumulate_halves::<T, C, 1>(slopes, window, columns, &mut totals, place);
            place += 1;
        }
    }

    /// `W` neighbouring halves of chunks from `place` on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn accumulate_halves<T: Coordinate, const C: usize, const W: usize>(
        slopes: &[PairedSlopes; C],
        window: &[T],
        columns: usize,
        totals: &mut [&mut [Chunk<i64>]; C],
        place: usize,
    ) {
        // Coordinates 0..4, 8..12 in the first vector, 4..8, 12..16 in the second.
        let mut sums = [[[_mm256_setzero_si256(); 2]; W]; C];
        for (pair, both) in (0..GROUP / 2).zip(pairs_of(window, columns, place * HALF, W * HALF)) {
            let (even, odd) = (halves_at::<T, W>(both, 0), halves_at::<T, W>(both, columns));
            for half in 0..W {
                let (even, odd) = (widened(&even[half]), widened(&odd[half]));
                let (low, high) = (_mm256_unpacklo_epi16(even, odd), _mm256_unpackhi_epi16(even, odd));
                for (sums, slopes) in sums.iter_mut().zip(slopes) {
                    let slope = _mm256_set1_epi32(cast(slopes[pair]));
                    sums[half][0] = _mm256_add_epi32(sums[half][0], _mm256_madd_epi16(low, slope));
                    sums[half][1] = _mm256_add_epi32(sums[half][1], _mm256_madd_epi16(high, slope));
                }
            }
        }
        for (sums, totals) in sums.iter().zip(totals) {
            let totals = totals.as_flattened_mut()[place * HALF..][..W * HALF].as_chunks_mut::<HALF>().0;
            for ([low, high], totals) in sums.iter().zip(totals) {
                let first = _mm256_permute2x128_si256::<0x20>(*low, *high);
                let last = _mm256_permute2x128_si256::<0x31>(*low, *high);
                let sums: [[i32; 8]; 2] = [cast(first), cast(last)];
                for (total, sum) in totals.iter_mut().zip(sums.as_flattened()) {
                    *total += i64::from(*sum);
                }
            }
        }
    }
}

/// 512-bit vectors with VNNI, which multiplies pairs and adds them to a sum in one instruction.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    use super::{CHUNK, Chunk, Coordinate, GROUP, PairedSlopes, WHOLE, pairs_of};
    use bytemuck::cast;
    use std::arch::x86_64::*;

    /// [`Coordinate::widened`] in one instruction; which of the two it is, the compiler knows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn widened<T: Coordinate>(chunk: &Chunk<T>) -> __m512i {
        if size_of::<T>() == size_of::<i16>() { cast(*chunk) } else { _mm512_cvtepi8_epi16(cast(*chunk)) }
    }

    /// Sums of the lanes of four vectors, each still in four parts, one in each 128 bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn quarter_sums([a, b, c, d]: [__m512i; 4]) -> __m512i {
        let one = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let other = _mm512_add_epi32(_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        _mm512_add_epi32(_mm512_unpacklo_epi64(one, other), _mm512_unpackhi_epi64(one, other))
    }

    /// Adds neighbouring 128 bits of two vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn across(one: __m512i, other: __m512i) -> __m512i {
        _mm512_add_epi32(_mm512_shuffle_i32x4::<0x88>(one, other), _mm512_shuffle_i32x4::<0xdd>(one, other))
    }

    /// See [`super::portable::dots`]. `STREAMED` is for rows that come from memory: read one after the other, as what will be
    /// read is foreseen at one place better than at four. Rows of one cache line are neighbours either way.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(in crate::kernel) fn dots<T: Coordinate, const SQUARES: bool, const STREAMED: bool>(
        weights: &[Chunk<i16>],
        window: &[T],
        columns: usize,
    ) -> [i32; GROUP] {
        match weights.len() {
            1 => dots_of_narrow::<T, SQUARES, 1>(weights, window, columns),
            2 => dots_of_narrow::<T, SQUARES, 2>(weights, window, columns),
            3 => dots_of_narrow::<T, SQUARES, 3>(weights, window, columns),
            4 => dots_of_narrow::<T, SQUARES, 4>(weights, window, columns),
            _ => dots_of_wide::<T, SQUARES, STREAMED>(weights, window, columns),
        }
    }

    /// A chunk and its weights, or a chunk and itself, multiplied and added to the sums of pairs of lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn add_dot<const SQUARES: bool>(sum: __m512i, weights: __m512i, features: __m512i) -> __m512i {
        let weights = if SQUARES { _mm512_and_si512(weights, features) } else { weights };
        _mm512_dpwssd_epi32(sum, weights, features)
    }

    /// Of rows of so few chunks that the compiler writes each out, with the weights in registers.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn dots_of_narrow<T: Coordinate, const SQUARES: bool, const N: usize>(
        weights: &[Chunk<i16>],
        window: &[T],
        columns: usize,
    ) -> [i32; GROUP] {
        let weights: &[_; N] = weights.first_chunk().expect("one a chunk");
        let mut pairs = pairs_of(window, columns, 0, N * CHUNK);
        let mut dots = [[0i32; 16]; GROUP / 16];
        for dots in &mut dots {
            let mut fours = [_mm512_setzero_si512(); 4];
            for sums in &mut fours {
                let mut rows = [_mm512_setzero_si512(); 4];
                for rows in rows.as_chunks_mut::<2>().0 {
                    let both = pairs.next().expect(WHOLE);
                    for (sum, row) in rows.iter_mut().zip([0, columns]) {
                        for (weights, features) in weights.iter().zip(chunks_at::<T, N>(both, row)) {
                            *sum = add_dot::<SQUARES>(*sum, cast(*weights), widened(features));
                        }
                    }
                }
                *sums = quarter_sums(rows);
            }
            *dots = sums_of_quarters(fours);
        }
        cast(dots)
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn dots_of_wide<T: Coordinate, const SQUARES: bool, const STREAMED: bool>(
        weights: &[Chunk<i16>],
        window: &[T],
        columns: usize,
    ) -> [i32; GROUP] {
        let mut dots = [[0i32; 16]; GROUP / 16];
        for (sixteen, dots) in dots.iter_mut().enumerate() {
            let mut fours = [_mm512_setzero_si512(); 4];
            for (four, sums) in fours.iter_mut().enumerate() {
                let row = |row: usize| {
                    let start = (sixteen * 16 + four * 4 + row) * columns;
                    window[start..][..weights.len() * CHUNK].as_chunks::<CHUNK>().0
                };
                let mut rows = [_mm512_setzero_si512(); 4];
                if STREAMED {
                    for (place, sum) in rows.iter_mut().enumerate() {
                        for (weights, features) in weights.iter().zip(row(place)) {
                            *sum = add_dot::<SQUARES>(*sum, cast(*weights), widened(features));
                        }
                    }
                } else {
                    // Four at a time, as each sum waits for the one before it.
                    let features = row(0).iter().zip(row(1)).zip(row(2)).zip(row(3));
                    for (weights, (((first, second), third), last)) in weights.iter().zip(features) {
                        let weights = cast(*weights);
                        rows[0] = add_dot::<SQUARES>(rows[0], weights, widened(first));
                        rows[1] = add_dot::<SQUARES>(rows[1], weights, widened(second));
                        rows[2] = add_dot::<SQUARES>(rows[2], weights, widened(third));
                        rows[3] = add_dot::<SQUARES>(rows[3], weights, widened(last));
                    }
                }
                *sums = quarter_sums(rows);
            }
            *dots = sums_of_quarters(fours);
        }
        cast(dots)
    }

    /// Sixteen sums, of quarters in the order of their rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn sums_of_quarters([first, second, third, last]: [__m512i; 4]) -> [i32; 16] {
        cast(across(across(first, second), across(third, last)))
    }

    #[inline(always)]
    fn chunks_at<T, const W: usize>(pair: &[T], row: usize) -> &[Chunk<T>; W] {
        pair[row..].as_chunks::<CHUNK>().0.first_chunk().expect(WHOLE)
    }

    /// See [`super::portable::accumulate`]. Two rows are interleaved, so that one instruction multiplies and adds both.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    pub(in crate::kernel) fn accumulate<T: Coordinate, const C: usize>(
        slopes: &[PairedSlopes; C],
        window: &[T],
        columns: usize,
        mut totals: [&mut [Chunk<i64>]; C],
    ) {
        let chunks = columns.div_ceil(CHUNK);
        let mut place = 0;
        if C == 1 {
            while place + 4 <= chunks {
                accumulate_chunks::<T, C, 4>(slopes, window, columns, &mut totals, place);
                place += 4;
            }
            if place + 3 == chunks {
                return accumulate_chunks::<T, C, 3>(slopes, window, columns, &mut totals, place);
            }
            if place + 2 == chunks {
                return accumulate_chunks::<T, C, 2>(slopes, window, columns, &mut totals, place);
            }
        }
        while place < chunks {
            accumulate_chunks::<T, C, 1>(slopes, window, columns, &mut totals, place);
            place += 1;
        }
    }

    /// `W` neighbouring chunks from `place` on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn accumulate_chunks<T: Coordinate, const C: usize, const W: usize>(
        slopes: &[PairedSlopes; C],
        window: &[T],
        columns: usize,
        totals: &mut [&mut [Chunk<i64>]; C],
        place: usize,
    ) {
        // Interleaving works within 128 bits: coordinates 0..4, 8..12, ... in the first vector, 4..8, 12..16, ... in the second.
        let first_half = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
        let last_half = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
        let mut sums = [[[_mm512_setzero_si512(); 2]; W]; C];
        for (pair, both) in (0..GROUP / 2).zip(pairs_of(window, columns, place * CHUNK, W * CHUNK)) {
            let (even, odd) = (chunks_at::<T, W>(both, 0), chunks_at::<T, W>(both, columns));
            for chunk in 0..W {
                let (even, odd): (__m512i, __m512i) = (widened(&even[chunk]), widened(&odd[chunk]));
                let (low, high) = (_mm512_unpacklo_epi16(even, odd), _mm512_unpackhi_epi16(even, odd));
                for (sums, slopes) in sums.iter_mut().zip(slopes) {
                    let slope = _mm512_set1_epi32(cast(slopes[pair]));
                    sums[chunk][0] = _mm512_dpwssd_epi32(sums[chunk][0], low, slope);
                    sums[chunk][1] = _mm512_dpwssd_epi32(sums[chunk][1], high, slope);
                }
            }
        }
        for (sums, totals) in sums.iter().zip(totals) {
            for ([low, high], totals) in sums.iter().zip(&mut totals[place..]) {
                for (half, order) in [first_half, last_half].into_iter().enumerate() {
                    let ordered = _mm512_permutex2var_epi64(*low, order, *high);
                    let (first, last) = (_mm512_castsi512_si256(ordered), _mm512_extracti64x4_epi64::<1>(ordered));
                    for (quarter, sums) in [first, last].into_iter().enumerate() {
                        let totals = &mut totals.as_chunks_mut::<8>().0[2 * half + quarter];
                        *totals = cast(_mm512_add_epi64(cast(*totals), _mm512_cvtepi32_epi64(sums)));
                    }
                }
            }
        }
    }
}
