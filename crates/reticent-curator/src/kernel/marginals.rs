//! Class counts, category counts and two moments of every number, from the codes of rows.

use reticent_core::coding::{CODE_MAX, Coding, SlotKind};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL, class_of};
use reticent_core::query::{COUNT_STEP, target_counts};

/// Which places of the totals belong to which of a row's codes.
pub struct MarginalPlaces {
    classes: u32,
    /// Codes that are asked for, the first of a row.
    slots: usize,
    /// All codes of a row.
    codes: usize,
    /// Slot and place of the first moment; the second is next to it.
    numbers: Vec<(usize, usize)>,
    /// Slot, place of the first category, and their number.
    blocks: Vec<(usize, usize, usize)>,
    totals: usize,
}

impl MarginalPlaces {
    /// The places that [`reticent_core::query::Map::Marginals`] describes, of rows of this coding; without one, those of a class
    /// count, which needs no codes.
    #[must_use]
    pub fn new(classes: u32, coding: Option<&Coding>) -> Self {
        let totals = target_counts(classes) as usize;
        let codes = coding.map_or(0, Coding::codes);
        let mut places = Self { classes, slots: 0, codes, numbers: Vec::new(), blocks: Vec::new(), totals };
        for kind in coding.into_iter().flat_map(Coding::marginal_kinds) {
            match kind {
                SlotKind::Numeric => {
                    places.numbers.push((places.slots, places.totals));
                    places.totals += 2;
                }
                SlotKind::Categories(categories) => {
                    places.blocks.push((places.slots, places.totals, categories));
                    places.totals += categories;
                }
            }
            places.slots += 1;
        }
        places
    }

    /// Codes of a row.
    #[must_use]
    pub fn codes(&self) -> usize {
        self.codes
    }

    /// Coordinates of the sum.
    pub(super) fn totals(&self) -> usize {
        self.totals
    }

    /// Counts a row, by its class where it has one; false for a row that does not count.
    #[inline(always)]
    fn count(&self, label: CodedLabel, totals: &mut [i64]) -> bool {
        if self.classes > 0 {
            let Some(class) = class_of(label, self.classes) else { return false };
            totals[class] += COUNT_STEP;
        } else {
            if label == UNUSABLE_LABEL {
                return false;
            }
            totals[0] += COUNT_STEP;
        }
        true
    }
}

/// Rows between two moves of the 32-bit sums into 64 bits: a moment is at most `2^19` in magnitude, and `2^19 · 2^11 < 2^31`.
const ROWS_MAX: usize = 1 << 11;

/// One pass over the codes of rows.
pub(super) struct MarginalPass<'a> {
    pub(super) places: &'a MarginalPlaces,
    pub(super) codes: &'a [u16],
    pub(super) labels: &'a [CodedLabel],
}

impl MarginalPass<'_> {
    /// The pass, in any instructions: it is compiled into each function below.
    #[inline(always)]
    fn run(&self, totals: &mut [i64]) {
        let places = self.places;
        let slots = places.slots;
        let mut sums = vec![[0i32; 2]; if places.numbers.is_empty() { 0 } else { slots }];
        for (part, labels) in self.labels.chunks(ROWS_MAX).enumerate() {
            sums.fill([0; 2]);
            for (row, label) in labels.iter().enumerate() {
                let row = part * ROWS_MAX + row;
                if !places.count(*label, totals) {
                    continue;
                }
                let codes = &self.codes[row * places.codes..][..slots];
                // Slots of categories are added up, too, and not looked at: one loop without a branch.
                for ([first, second], code) in sums.iter_mut().zip(codes) {
                    let moments = moments(*code);
                    *first += moments[0];
                    *second += moments[1];
                }
                for (slot, place, categories) in &places.blocks {
                    totals[place + usize::from(codes[*slot]).min(categories - 1)] += COUNT_STEP;
                }
            }
            for (slot, place) in &places.numbers {
                for (total, sum) in totals[*place..].iter_mut().zip(sums[*slot]) {
                    *total += i64::from(sum);
                }
            }
        }
    }
}

/// [`reticent_core::contribution::moments`] without division, in 32 bits.
///
/// With `f = 32767` and `a = |2c - f|`: `2^20 a = 32 a f + 32 a`, so the quotient by `f` is `q = 32 a + e` where `e` is that of
/// `32 a`; half of it, toward zero, is the first moment. With `a² = w f + r`, `q a = 32 w f + 32 r + e a`.
#[inline(always)]
fn moments(code: u16) -> [i32; 2] {
    let full = i32::from(CODE_MAX);
    let centred = 2 * i32::from(code.min(CODE_MAX)) - full;
    let apart = centred.unsigned_abs();
    let excess = over_full(32 * apart);
    let first = ((32 * apart + excess) / 2) as i32;
    let square = apart * apart;
    let whole = over_full(square);
    let rest = square - whole * full.unsigned_abs();
    let second = (32 * whole + over_full(32 * rest + excess * apart)) as i32;
    [if centred < 0 { -first } else { first }, second - (COUNT_STEP / 2) as i32]
}

/// `x / 32767`, rounded down, of `x < 2^30`: with `x = 32768 q + (r - q)` for quotient `q` and rest `r`, `x >> 15` is `q` or,
/// where `r < q`, `q - 1`, and adding it and 1 to `x` brings the top bits to `q` in both cases.
#[inline(always)]
fn over_full(x: u32) -> u32 {
    (x + (x >> 15) + 1) >> 15
}

pub(super) fn portable(pass: &MarginalPass<'_>, totals: &mut [i64]) {
    pass.run(totals);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(pass: &MarginalPass<'_>, totals: &mut [i64]) {
    pass.run(totals);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512(pass: &MarginalPass<'_>, totals: &mut [i64]) {
    pass.run(totals);
}

#[cfg(test)]
mod tests {
    use reticent_core::contribution;

    use super::moments;

    #[test]
    fn moments_of_every_code_are_those_of_core() {
        for code in 0..=u16::MAX {
            assert_eq!(moments(code).map(i64::from), contribution::moments(code), "{code}");
        }
    }
}
