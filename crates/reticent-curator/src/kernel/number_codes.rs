//! Numbers as codes: the place of each between its bounds.

use reticent_core::coding::number_code;

/// Slots are worked on in whole groups of this many: arrays of one value a slot are filled up to that.
pub(super) const GROUP: usize = 8;

/// How the number of each slot becomes its code. Slots of other kinds, and those that fill the last group, have some map, too.
pub(crate) struct NumberMaps {
    low_bounds: Vec<f64>,
    high_bounds: Vec<f64>,
    lows: Vec<f64>,
    spans: Vec<f64>,
}

impl NumberMaps {
    /// Maps of so many slots that are not yet given.
    pub(crate) fn of_slots(slots: usize) -> Self {
        let places = slots.next_multiple_of(GROUP);
        Self {
            low_bounds: vec![0.0; places],
            high_bounds: vec![0.0; places],
            lows: vec![0.0; places],
            spans: vec![1.0; places],
        }
    }

    /// Gives the map of a slot: a number is brought into its bounds, and then put between `low` and `low + span`.
    pub(crate) fn set(&mut self, slot: usize, [low_bound, high_bound]: [f64; 2], low: f64, span: f64) {
        self.low_bounds[slot] = low_bound;
        self.high_bounds[slot] = high_bound;
        self.lows[slot] = low;
        self.spans[slot] = span;
    }

    /// Slots, those that fill the last group counted.
    pub(crate) fn places(&self) -> usize {
        self.spans.len()
    }

    /// The maps of the first places.
    #[inline(always)]
    pub(super) fn first(&self, places: usize) -> FirstMaps<'_> {
        FirstMaps {
            low_bounds: &self.low_bounds[..places],
            high_bounds: &self.high_bounds[..places],
            lows: &self.lows[..places],
            spans: &self.spans[..places],
        }
    }

    /// The code of a number, with the arithmetic of [`reticent_core::coding::Coding::slot_code`] on the clamped number.
    #[inline(always)]
    pub(crate) fn code(&self, slot: usize, number: f64) -> u16 {
        self.first(slot + 1).code(slot, number)
    }
}

/// As many maps as there are codes to be found, so that no slot's number has to be compared with theirs.
#[derive(Clone, Copy)]
pub(super) struct FirstMaps<'a> {
    low_bounds: &'a [f64],
    high_bounds: &'a [f64],
    lows: &'a [f64],
    spans: &'a [f64],
}

impl FirstMaps<'_> {
    #[inline(always)]
    pub(super) fn code(&self, slot: usize, number: f64) -> u16 {
        // Not `clamp`, which checks its bounds for every slot.
        let number = if number < self.low_bounds[slot] { self.low_bounds[slot] } else { number };
        let number = if number > self.high_bounds[slot] { self.high_bounds[slot] } else { number };
        number_code(number, self.lows[slot], self.spans[slot])
    }
}

/// Numbers of one slot, row after row.
pub(super) struct NumberPass<'a> {
    pub(super) maps: &'a NumberMaps,
    pub(super) slot: usize,
    /// Taken for what is not a number.
    pub(super) missing: f64,
    pub(super) numbers: &'a [f64],
}

impl NumberPass<'_> {
    /// The pass, in any instructions: it is compiled into each function below.
    #[inline(always)]
    fn run(&self, codes: &mut [u16]) {
        for (code, number) in codes.iter_mut().zip(self.numbers) {
            let number = if number.is_nan() { self.missing } else { *number };
            *code = self.maps.code(self.slot, number);
        }
    }
}

pub(super) fn portable(pass: &NumberPass<'_>, codes: &mut [u16]) {
    pass.run(codes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(pass: &NumberPass<'_>, codes: &mut [u16]) {
    pass.run(codes);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512(pass: &NumberPass<'_>, codes: &mut [u16]) {
    pass.run(codes);
}
