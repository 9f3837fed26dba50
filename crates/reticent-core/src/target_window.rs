//! A part of a numeric target's bounds, in which products read it: public, found from released counts.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::contribution::{CodedLabel, UNUSABLE_LABEL};
use crate::encoding::LATTICE_NORM_MAX;

/// Enough that a product with the reciprocal is a quotient: see [`TargetWindow::of`].
const RECIPROCAL_BITS: u32 = 46;

/// Labels from `centre - half` to `centre + half`, in steps of `-32767..=32767` over the bounds, are mapped onto `-32767..=32767`;
/// labels beyond are brought to its border. Whatever window, a label stays within the bound that every sensitivity is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WindowDocument", into = "WindowDocument")]
pub struct TargetWindow {
    centre: i16,
    half: i16,
    /// `floor(2^46 / half) + 1`.
    reciprocal: u64,
    /// What a label that is not usable counts for where it counts at all, in the window's steps.
    missing: i16,
}

/// A window as files have it, in steps of `-32767..=32767` over the bounds.
#[derive(Serialize, Deserialize)]
struct WindowDocument {
    centre: i16,
    half: i16,
    /// 0 in documents of before it was told.
    #[serde(default)]
    missing: i16,
}

impl TargetWindow {
    /// All of the bounds.
    pub const BOUNDS: Self = Self::of_steps(0, LATTICE_NORM_MAX);

    const fn of_steps(centre: i16, half: i16) -> Self {
        Self { centre, half, reciprocal: (1 << RECIPROCAL_BITS) / half as u64 + 1, missing: 0 }
    }

    /// The window of this centre and half width, as shares of half the width of the bounds: at least one step wide, and within
    /// the bounds as far as it can be moved. What is not a number gives all of the bounds.
    #[must_use]
    pub fn new(centre: f64, half: f64) -> Self {
        if !(centre.is_finite() && half.is_finite()) {
            return Self::BOUNDS;
        }
        let full = f64::from(LATTICE_NORM_MAX);
        let half = (half * full).round().clamp(1.0, full);
        let room = full - half;
        Self::of_steps((centre * full).round().clamp(-room, room) as i16, half as i16)
    }

    /// The same window, in which labels that are not usable count as this place of the bounds where they count at all: in products with a public
    /// matrix and in squares. Else they do as the middle of the window; so does what is not a number.
    #[must_use]
    pub fn with_missing(self, place: f64) -> Self {
        let share = (place - self.centre()) / self.half();
        // A float that is not a number becomes 0.
        Self { missing: (share.clamp(-1.0, 1.0) * f64::from(LATTICE_NORM_MAX)).round() as i16, ..self }
    }

    /// That place, where the bounds are `-1` and `1`.
    #[must_use]
    pub fn missing(self) -> f64 {
        self.centre() + self.half() * f64::from(self.missing) / f64::from(LATTICE_NORM_MAX)
    }

    /// What a label counts for in products with a public matrix and in squares, in the window's steps: of a usable one what [`Self::of`] says.
    ///
    /// `usable` is 1 or 0. By products alone, as there.
    #[must_use]
    #[inline]
    pub fn counted(self, label: CodedLabel, usable: i32) -> i32 {
        i32::from(self.of(label)) * usable + i32::from(self.missing) * (1 - usable)
    }

    /// Middle of the window, where the bounds are `-1` and `1`.
    #[must_use]
    pub fn centre(self) -> f64 {
        f64::from(self.centre) / f64::from(LATTICE_NORM_MAX)
    }

    /// Half the width of the window, where the bounds are `-1` and `1`.
    #[must_use]
    pub fn half(self) -> f64 {
        f64::from(self.half) / f64::from(LATTICE_NORM_MAX)
    }

    /// A label as the window has it, within `-32767..=32767`, rounded toward its middle; one that is not usable stays so.
    ///
    /// By products alone, whose time no label changes. The quotient is exact: `x (reciprocal · half - 2^46) < 2^46` for every
    /// `x < 2^31`, because `half < 2^15`.
    #[must_use]
    #[inline]
    pub fn of(self, label: CodedLabel) -> CodedLabel {
        let full = i32::from(LATTICE_NORM_MAX);
        let apart = (i32::from(label) - i32::from(self.centre)).clamp(-full, full);
        let share = u128::from((apart * full).unsigned_abs()) * u128::from(self.reciprocal);
        let within = (((share >> RECIPROCAL_BITS) as i64).min(full.into()) as i32 * apart.signum()) as i16;
        if label == UNUSABLE_LABEL { UNUSABLE_LABEL } else { within }
    }

    /// A usable label with the window as `[-1, 1]`, brought to its border: as [`Self::of`] has it, in floats that many lanes divide at once.
    #[must_use]
    #[inline]
    pub fn share_of(self, label: CodedLabel) -> f32 {
        let apart = (i32::from(label) - i32::from(self.centre)) as f32;
        (apart / f32::from(self.half)).clamp(-1.0, 1.0)
    }
}

/// A window that is none, or passes the bounds.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "a window of the target has a half of 1 to 32767 steps and lies within the bounds, and missing labels count as one within it"
)]
pub struct NoWindow;

impl TryFrom<WindowDocument> for TargetWindow {
    type Error = NoWindow;
    fn try_from(document: WindowDocument) -> Result<Self, NoWindow> {
        let WindowDocument { centre, half, missing } = document;
        let is_within = half >= 1
            && i32::from(centre).abs() + i32::from(half) <= i32::from(LATTICE_NORM_MAX)
            && missing >= -LATTICE_NORM_MAX;
        if is_within { Ok(Self { missing, ..Self::of_steps(centre, half) }) } else { Err(NoWindow) }
    }
}

impl From<TargetWindow> for WindowDocument {
    fn from(window: TargetWindow) -> Self {
        Self { centre: window.centre, half: window.half, missing: window.missing }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn all_of_the_bounds_change_no_label() {
        for label in i16::MIN..=i16::MAX {
            assert_eq!(TargetWindow::BOUNDS.of(label), label);
        }
        assert_eq!(TargetWindow::new(0.3, 1.0), TargetWindow::BOUNDS);
        assert_eq!(TargetWindow::new(f64::NAN, 0.5), TargetWindow::BOUNDS);
    }

    #[test]
    fn a_window_maps_its_borders_onto_those_of_the_bounds() {
        let window = TargetWindow::new(-0.75, 0.125);
        assert!((window.centre() + 0.75).abs() < 2e-5 && (window.half() - 0.125).abs() < 2e-5);
        let at = |value: f64| f64::from(window.of((value * 32_767.0) as i16)) / 32_767.0;
        for (value, expected) in [(-0.75, 0.0), (-0.625, 1.0), (-0.875, -1.0), (-0.6875, 0.5), (-1.0, -1.0), (0.9, 1.0)]
        {
            assert!((at(value) - expected).abs() < 1e-3, "{value}: {}", at(value));
        }
        // It is moved, not cut, where it would pass the bounds.
        assert!((TargetWindow::new(-1.0, 0.25).centre() + 0.75).abs() < 4e-5);
    }

    #[test]
    fn products_divide_as_quotients_do() {
        let full = i32::from(LATTICE_NORM_MAX);
        for half in (1..=LATTICE_NORM_MAX).step_by(97).chain([2, 3, LATTICE_NORM_MAX - 1, LATTICE_NORM_MAX]) {
            let window = TargetWindow::of_steps(0, half);
            for label in -LATTICE_NORM_MAX..=LATTICE_NORM_MAX {
                let expected = (i32::from(label) * full / i32::from(half)).clamp(-full, full);
                assert_eq!(i32::from(window.of(label)), expected, "{label} in {half}");
                assert!((32_767.0 * window.share_of(label) - expected as f32).abs() < 1.01, "{label} in {half}");
            }
        }
    }

    #[test]
    fn a_window_is_read_as_it_was_written_and_never_passes_the_bounds() {
        let window = TargetWindow::new(-0.75, 0.125).with_missing(-0.65);
        let text = serde_json::to_string(&window).expect("two numbers");
        assert_eq!(serde_json::from_str::<TargetWindow>(&text).expect("as written"), window);
        let before =
            serde_json::from_str::<TargetWindow>(r#"{"centre":-24575,"half":4096}"#).expect("a place was not told");
        assert_eq!(before, TargetWindow::new(-0.75, 0.125));
        for (centre, half, missing) in
            [(0, 0, 0), (0, -1, 0), (1, 32_767, 0), (-16_384, 16_384, 0), (i16::MIN, 1, 0), (0, 5, i16::MIN)]
        {
            let text = format!(r#"{{"centre":{centre},"half":{half},"missing":{missing}}}"#);
            assert!(serde_json::from_str::<TargetWindow>(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_label_that_is_not_usable_counts_as_the_place_that_is_named() {
        let window = TargetWindow::new(-0.5, 0.25);
        let counted = |window: TargetWindow, usable| window.counted(UNUSABLE_LABEL, usable);
        assert_eq!((counted(window, 0), window.missing()), (0, window.centre()));
        let named = window.with_missing(-0.4);
        assert!((named.missing() + 0.4).abs() < 2e-5 && (counted(named, 0) - 13_107).abs() <= 1, "{named:?}");
        assert_eq!(named.counted(-12_288, 1), i32::from(window.of(-12_288)), "usable labels are what they were");
        for (place, expected) in [(9.0, 32_767), (-9.0, -32_767), (f64::NAN, 0)] {
            assert_eq!(counted(window.with_missing(place), 0), expected);
        }
    }

    proptest! {
        #[test]
        fn no_label_passes_the_bounds_in_any_window(label: i16, centre in -2.0..2.0f64, half in -1.0..2.0f64) {
            let window = TargetWindow::new(centre, half);
            let found = window.of(label);
            prop_assert_eq!(found == UNUSABLE_LABEL, label == UNUSABLE_LABEL);
            prop_assert!(window.centre().abs() + window.half() <= 1.0 && window.half() > 0.0);
        }
    }
}
