//! Numbers that look random and are always the same: for public choices and integrals that must come out the same every time.
//!
//! Source: Steele, Lea, Flood 2014 (SplitMix64). Nothing private may rest on it, and no noise is drawn from it.

/// A sequence that is determined by its seed.
#[derive(Clone, Debug)]
pub struct FixedSequence(u64);

impl FixedSequence {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// The next number in `[-1, 1)`.
    pub fn next_uniform(&mut self) -> f64 {
        2.0 * self.next_share() - 1.0
    }

    /// The next number in `[0, 1)`.
    pub fn next_share(&mut self) -> f64 {
        (self.next_word() >> 11) as f64 * 2f64.powi(-53)
    }

    /// The next whole number from 0 to below `end`; of an `end` far below `2^64` all come equally often, as nearly as matters.
    ///
    /// # Panics
    /// When `end` is 0.
    pub fn next_below(&mut self, end: u64) -> u64 {
        self.next_word() % end
    }

    /// The next number that is distributed as a standard normal one: Marsaglia's polar method.
    pub fn next_normal(&mut self) -> f64 {
        loop {
            let (x, y) = (self.next_uniform(), self.next_uniform());
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_sequence_is_that_of_its_source() {
        // The first outputs of SplitMix64 with seed 0: e220a8397b1dcdaf, 6e789e6aa1b965f4.
        let [mut words, mut uniform, mut shares, mut below] = [(); 4].map(|()| FixedSequence::new(0));
        for bits in [0xe220_a839_7b1d_cdafu64, 0x6e78_9e6a_a1b9_65f4] {
            assert_eq!(words.next_word(), bits);
            let expected = (bits >> 11) as f64 * 2f64.powi(-52) - 1.0;
            assert!((uniform.next_uniform() - expected).abs() < 1e-15);
            assert!((shares.next_share() - f64::midpoint(expected, 1.0)).abs() < 1e-15);
            assert_eq!(below.next_below(1000), bits % 1000);
        }
    }

    #[test]
    fn normal_numbers_have_the_moments_of_a_standard_normal() {
        let mut sequence = FixedSequence::new(1);
        let numbers: Vec<f64> = (0..100_000).map(|_| sequence.next_normal()).collect();
        // Standard errors of the first four moments: .0032, .0045, .012 and .031.
        for (power, moment, error) in [(1, 0.0, 0.0032), (2, 1.0, 0.0045), (3, 0.0, 0.012), (4, 3.0, 0.031)] {
            let found = numbers.iter().map(|number| number.powi(power)).sum::<f64>() / 1e5;
            assert!((found - moment).abs() < 4.0 * error, "{power}: {found}");
        }
    }
}
