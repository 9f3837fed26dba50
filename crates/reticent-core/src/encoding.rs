//! What is made of a coded row: a vector of real columns, and from it a row of the lattice.
//!
//! ```text
//! codes (u16 a slot) ──Encoding──▶ lattice row (i16 a column, one step length a row)
//!                by the schema and released values
//! ```
//!
//! The map is public and pure: what it makes of a row depends on that row alone.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::coding::{CODE_MAX, Coding, SlotKind};
use crate::compact_row::{CompactLayout, truncated};

/// Largest magnitude of a lattice coordinate, and the bound on the L2 norm of a lattice row.
///
/// `i16::MIN` is excluded: 32 products of a slope and a coordinate then fit an i32.
pub const LATTICE_NORM_MAX: i16 = 32_767;

/// Lattice steps that the coordinates of a coarse encoding are whole multiples of: they fit 8 bits.
pub const COARSE_STEPS: i16 = 256;

/// How the norm of an encoded row is bounded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NormRule {
    /// Rows longer than the bound are shortened to it (*clipping*). Lattice step: `bound / 32767`, the same for all rows.
    Clip(f64),
    /// Every row is divided by its own norm and carries that norm as its step (*weighting*): a row `x` then contributes
    /// with weight `1/||x||`, and no row pays for the longest one.
    OwnNorm,
}

/// The public map from codes to a lattice row: numbers are brought into their range; `x_j = scale_j (value_j - centre_j)`; then the norm
/// rule, then truncation.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoding {
    coding: Coding,
    centre: Vec<f64>,
    scale: Vec<f64>,
    norm: NormRule,
    layout: CompactLayout,
    is_coarse: bool,
    /// One a slot: all codes where nobody looked for ranges.
    ranges: Vec<CodeRange>,
    has_ranges: bool,
}

/// The codes that a number is read within: those beyond are read as the nearest of them, but for one that may be set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeRange {
    low: u16,
    high: u16,
    /// [`NO_CODE`] where none is set aside.
    aside: u16,
    read_as: u16,
}

/// What no number is coded as.
const NO_CODE: u16 = u16::MAX;

impl CodeRange {
    /// All codes.
    pub const BOUNDS: Self = Self { low: 0, high: CODE_MAX, aside: NO_CODE, read_as: 0 };

    /// From the lowest code to the highest.
    ///
    /// # Panics
    /// When the highest is below the lowest, or above [`CODE_MAX`].
    #[must_use]
    pub fn new(low: u16, high: u16) -> Self {
        assert!(low <= high && high <= CODE_MAX, "a range of codes");
        Self { low, high, ..Self::BOUNDS }
    }

    /// The same, with the code of missing values read as another of the range: as what the rows have on average, they say nothing.
    ///
    /// # Panics
    /// When that other is not in the range.
    #[must_use]
    pub fn with_missing(self, code: u16, read_as: u16) -> Self {
        assert!(code <= CODE_MAX && (self.low..=self.high).contains(&read_as), "a code of the range");
        Self { aside: code, read_as, ..self }
    }

    /// The lowest code.
    #[must_use]
    pub fn low(self) -> u16 {
        self.low
    }

    /// The highest code, not below the lowest.
    #[must_use]
    pub fn high(self) -> u16 {
        self.high
    }

    /// Whether a code is set aside.
    #[must_use]
    pub fn sets_aside(self) -> bool {
        self.aside != NO_CODE
    }

    /// A code as it is read.
    #[must_use]
    #[inline(always)]
    pub fn of(self, code: u16) -> u16 {
        // Not `clamp`, which checks that the lowest is below the highest for every code.
        let within = code.max(self.low).min(self.high);
        if code == self.aside { self.read_as } else { within }
    }
}

/// One row on the lattice: private. `x_j ≈ step · features[j]`, never larger in magnitude.
///
/// Invariant (checked in integers when it is made): `sum features[j]² <= 32767²`.
#[derive(Clone, Copy)]
pub struct LatticeRow<'a> {
    /// One coordinate a column.
    pub features: &'a [i16],
    /// Length of one lattice step in the units of the encoded columns; positive.
    pub step: f32,
}

impl Encoding {
    /// Columns as the schema makes them: centre 0, scale 1.
    #[must_use]
    pub fn plain(coding: Coding, norm: NormRule) -> Self {
        let columns = coding.columns().len();
        Self::new(coding, vec![0.0; columns], vec![1.0; columns], norm)
    }

    /// Columns shifted and scaled by public (declared or released) values.
    ///
    /// # Panics
    /// When centre or scale do not have one finite value a column, or a clip bound is not above 0.
    #[must_use]
    pub fn new(coding: Coding, centre: Vec<f64>, scale: Vec<f64>, norm: NormRule) -> Self {
        assert_eq!(coding.columns().len(), centre.len(), "one centre a column");
        assert_eq!(coding.columns().len(), scale.len(), "one scale a column");
        assert!(centre.iter().chain(&scale).all(|value| value.is_finite()), "public values are finite");
        if let NormRule::Clip(bound) = norm {
            assert!(bound.is_finite() && bound > 0.0, "a clip bound is above zero");
        }
        let layout = CompactLayout::of(&coding, &centre);
        let ranges = vec![CodeRange::BOUNDS; coding.slots()];
        Self { coding, centre, scale, norm, layout, is_coarse: false, ranges, has_ranges: false }
    }

    /// The same with numbers that are read within public parts of their bounds, one a slot; those of categories are not looked at.
    ///
    /// # Panics
    /// When there is not one range a slot.
    #[must_use]
    pub fn within(self, ranges: Vec<CodeRange>) -> Self {
        assert_eq!(ranges.len(), self.coding.slots(), "one range a slot");
        Self { ranges, has_ranges: true, ..self }
    }

    /// The codes that each slot is read within; none where nobody looked for ranges.
    #[must_use]
    pub fn ranges(&self) -> Option<&[CodeRange]> {
        self.has_ranges.then_some(&self.ranges)
    }

    /// The codes that each slot is read within: all of them where nobody looked for ranges.
    pub(crate) fn read_ranges(&self) -> &[CodeRange] {
        &self.ranges
    }

    /// The same, or with coordinates that are whole multiples of [`COARSE_STEPS`], so that 8 bits keep one.
    ///
    /// A coordinate is wrong by up to 1/256 of the row's norm, to the nearest multiple; a row whose norm would pass the bound by
    /// that is truncated instead. Long rows are a little shorter, so that few are. No sensitivity depends on any of it: a coarse
    /// row is a lattice row.
    #[must_use]
    pub fn coarse(self, is_coarse: bool) -> Self {
        Self { is_coarse, ..self }
    }

    /// Whether coordinates are whole multiples of [`COARSE_STEPS`].
    #[must_use]
    pub fn is_coarse(&self) -> bool {
        self.is_coarse
    }

    /// The largest norm that any row can have under this encoding, by the schema alone: clipping at it changes nothing.
    #[must_use]
    pub fn largest_norm(coding: &Coding, centre: &[f64], scale: &[f64]) -> f64 {
        let square = |column: usize, value: f64| (scale[column] * (value - centre[column])).powi(2);
        let at_ends = |column: usize| square(column, 0.0).max(square(column, 1.0));
        let (mut total, columns) = square_of_slots(coding, square, at_ends, f64::max);
        if let Some(listed) = coding.listed() {
            total += columns.clone().map(|column| square(column, 0.0)).sum::<f64>();
            let mut gains: Vec<f64> =
                columns.map(|column| (square(column, 1.0) - square(column, 0.0)).max(0.0)).collect();
            gains.sort_by(|a, b| b.total_cmp(a));
            total += gains[..listed.most].iter().sum::<f64>();
        }
        total.sqrt()
    }

    /// The smallest norm that any row can have, or less: numbers between two codes are taken to be at their centre.
    #[must_use]
    pub fn shortest_norm(coding: &Coding, centre: &[f64], scale: &[f64]) -> f64 {
        let square = |column: usize, value: f64| (scale[column] * (value - centre[column])).powi(2);
        let nearest = |column: usize| square(column, centre[column].clamp(0.0, 1.0));
        let (total, columns) = square_of_slots(coding, square, nearest, f64::min);
        (total + columns.map(nearest).sum::<f64>()).sqrt()
    }

    /// The codes' meaning.
    #[must_use]
    pub fn coding(&self) -> &Coding {
        &self.coding
    }

    /// What is subtracted from each column.
    #[must_use]
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// What each centred column is multiplied by.
    #[must_use]
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// Which columns a row needs no place for.
    #[must_use]
    pub fn layout(&self) -> &CompactLayout {
        &self.layout
    }

    /// The norm rule.
    #[must_use]
    pub fn norm(&self) -> NormRule {
        self.norm
    }

    /// The step that every row has under this encoding, where the norm rule gives all rows the same.
    #[must_use]
    pub fn common_step(&self) -> Option<f32> {
        match self.norm {
            NormRule::Clip(bound) => Some((bound / f64::from(LATTICE_NORM_MAX)) as f32),
            NormRule::OwnNorm => None,
        }
    }

    /// Length of one lattice step of a *sum* of rows, in the units of a row's contribution.
    #[must_use]
    pub fn contribution_step(&self) -> f64 {
        match self.norm {
            NormRule::Clip(bound) => bound / f64::from(LATTICE_NORM_MAX),
            NormRule::OwnNorm => 1.0 / f64::from(LATTICE_NORM_MAX),
        }
    }

    /// Puts one coded row on the lattice. `scratch` and `features` have one place a column; returns the row's step.
    ///
    /// This is the definition, with all columns. Engines keep rows as [`Encoding::encode_compact`] writes them, which equals this,
    /// integer for integer.
    ///
    /// Truncation is toward zero, so it never lengthens a row; the norm is checked again in integers all the same, because
    /// the division before it is floating point.
    pub fn encode_codes(&self, codes: &[u16], scratch: &mut [f64], features: &mut [i16]) -> f32 {
        let mut read = codes.to_vec();
        for ((code, range), kind) in read.iter_mut().zip(&self.ranges).zip(self.coding.slot_kinds()) {
            if let SlotKind::Numeric = kind {
                *code = range.of(*code);
            }
        }
        self.coding.expand(&read, scratch);
        for ((value, centre), scale) in scratch.iter_mut().zip(&self.centre).zip(&self.scale) {
            *value = scale * (*value - centre);
        }
        let square = self.layout.sum_of_squares(scratch);
        let (steps_per_unit, step) = self.steps_per_unit(square.sqrt());
        for (feature, value) in features.iter_mut().zip(scratch) {
            *feature = truncated(*value * steps_per_unit);
        }
        shrink_to_norm([features]);
        if self.is_coarse {
            coarsen([features]);
        }
        step
    }

    /// Lattice steps in a unit of the encoded columns of a row of this length, and the row's step.
    pub(crate) fn steps_per_unit(&self, length: f64) -> (f64, f32) {
        let full = f64::from(LATTICE_NORM_MAX);
        let longest = if self.is_coarse { full - self.coarse_margin() } else { full };
        let (steps_per_unit, step) = match self.norm {
            NormRule::Clip(bound) if length * full <= longest * bound => (full / bound, bound / full),
            NormRule::Clip(bound) => (longest / length, bound / full),
            // A row of length zero stays zero; its step is immaterial but positive.
            NormRule::OwnNorm if length > 0.0 => (longest / length, length / longest),
            NormRule::OwnNorm => (0.0, 1.0 / full),
        };
        (steps_per_unit, step as f32)
    }

    /// Steps that long rows are shorter by, so that rounding seldom takes them past the bound. It moves a norm by the sum of the
    /// errors along the row, of standard deviation 74, and by half the sum of their squares over the norm, 1/12 a coordinate.
    fn coarse_margin(&self) -> f64 {
        let coordinates = self.layout.packed().len() + self.layout.chosen();
        (f64::from(COARSE_STEPS) + coordinates as f64 / 12.0).min(f64::from(LATTICE_NORM_MAX) / 2.0)
    }
}

/// The sum of the squares of a row's constant and of its slots, each as `of_number` has it, or the `extreme` over the categories; and the
/// columns that rows list, which follow.
fn square_of_slots(
    coding: &Coding,
    square: impl Fn(usize, f64) -> f64,
    of_number: impl Fn(usize) -> f64,
    extreme: impl Fn(f64, f64) -> f64,
) -> (f64, Range<usize>) {
    let mut total = square(0, 1.0);
    let mut column = 1;
    for slot in coding.slot_kinds() {
        match slot {
            SlotKind::Numeric => {
                total += of_number(column);
                column += 1;
            }
            SlotKind::Categories(categories) => {
                let block = column..column + categories;
                let without: f64 = block.clone().map(|other| square(other, 0.0)).sum();
                let chosen = block.map(|chosen| without - square(chosen, 0.0) + square(chosen, 1.0));
                total += chosen.reduce(&extreme).unwrap_or(0.0);
                column += categories;
            }
        }
    }
    (total, column..coding.columns().len())
}

/// Enforces `sum features[j]² <= 32767²` over all parts of a row, in integers, by moving every coordinate toward zero.
#[inline(always)]
pub(crate) fn shrink_to_norm<const PARTS: usize>(mut parts: [&mut [i16]; PARTS]) {
    let bound = norm_square(&[LATTICE_NORM_MAX]);
    while parts.iter().map(|part| norm_square(part)).sum::<u64>() > bound {
        for feature in parts.iter_mut().flat_map(|part| part.iter_mut()) {
            *feature -= feature.signum();
        }
    }
}

/// Brings every coordinate to the nearest multiple of [`COARSE_STEPS`], or, where the row would then pass the norm's bound, to
/// the next one toward zero.
#[inline(always)]
pub(crate) fn coarsen<const PARTS: usize>(mut parts: [&mut [i16]; PARTS]) {
    let toward_zero = |feature: i16| feature / COARSE_STEPS * COARSE_STEPS;
    let nearest = |feature: i16| toward_zero(feature.saturating_add(feature.signum() * (COARSE_STEPS / 2)));
    let square = |feature: &i16| u64::from(nearest(*feature).unsigned_abs()).pow(2);
    let is_within =
        parts.iter().flat_map(|part| part.iter()).map(square).sum::<u64>() <= norm_square(&[LATTICE_NORM_MAX]);
    for feature in parts.iter_mut().flat_map(|part| part.iter_mut()) {
        *feature = if is_within { nearest(*feature) } else { toward_zero(*feature) };
    }
}

/// `sum features[j]²` without overflow for any number of columns below `2^33`.
#[inline(always)]
pub(crate) fn norm_square(features: &[i16]) -> u64 {
    features.iter().map(|feature| u64::from(feature.unsigned_abs()).pow(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    /// A coarse row of the intercept and two numbers may be as long as the bound but for 256 steps and a quarter of one.
    #[test]
    fn a_long_coarse_row_leaves_room_for_rounding() {
        let text = "[privacy]\nunit = \"row\"\nadjacency = \"replace\"\n[target]\ncolumn = \"y\"\nbounds = [0, 1]\n\
                    [features]\na = { bounds = [0, 1] }\nb = { bounds = [0, 1] }\n";
        let coding = || Coding::of(&Schema::from_text(text).expect("legal"));
        let (long, room) = (4.0, f64::from(COARSE_STEPS) + 0.25);
        for (norm, is_coarse, steps) in [
            (NormRule::OwnNorm, true, 32_767.0 - room),
            (NormRule::OwnNorm, false, 32_767.0),
            (NormRule::Clip(2.0), true, 32_767.0 - room),
            (NormRule::Clip(2.0), false, 32_767.0),
        ] {
            let (found, _) = Encoding::plain(coding(), norm).coarse(is_coarse).steps_per_unit(long);
            assert!((found * long - steps).abs() < 1e-9, "{norm:?} {is_coarse}: {found}");
        }
        // A wide feature that is not centred has one coordinate.
        let listed =
            Coding::of(&Schema::from_text(&(text.to_owned() + "w = { hash_buckets = 300 }\n")).expect("legal"));
        let (found, _) = Encoding::plain(listed, NormRule::OwnNorm).coarse(true).steps_per_unit(long);
        assert!((found * long - (32_767.0 - 256.0 - 4.0 / 12.0)).abs() < 1e-9, "{found}");
        // Of a quarter of a million coordinates that are centred, and so have a place, half the bound is left.
        let wide: String = (0..4).map(|feature| format!("w{feature} = {{ hash_buckets = 65535 }}\n")).collect();
        let coding = Coding::of(&Schema::from_text(&(text.to_owned() + &wide)).expect("legal"));
        let columns = coding.columns().len();
        let centred = Encoding::new(coding, vec![0.5; columns], vec![1.0; columns], NormRule::OwnNorm).coarse(true);
        let (found, _) = centred.steps_per_unit(long);
        assert!((found * long - 32_767.0 / 2.0).abs() < 1e-9, "{found}");
    }
}
