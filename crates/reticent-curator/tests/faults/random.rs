//! Numbers that a seed decides, so that every run can be had again.

use reticent_math::fixed_sequence::FixedSequence;

/// A fixed sequence, asked for what these runs need.
#[derive(Clone)]
pub(crate) struct Random(FixedSequence);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(FixedSequence::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_word()
    }

    /// From 0 to below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.next_below(end as u64) as usize
    }

    /// True in one of `times` cases.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
