//! A trial of probability `e^(-c)` without an exponential: von Neumann's run of falling numbers.

use super::lazy_uniform::LazyUniform;
use rand_core::TryCryptoRng;

/// Whether the longest run `c > u1 > u2 > ... > un` of fresh uniform numbers has even length: true with probability `e^(-c)`.
///
/// ```text
/// P(c > u1 > ... > un) = c^n / n!     each order of n numbers below c is as likely as any other
/// P(the longest run has length n) = c^n/n! - c^(n+1)/(n+1)!
/// over even n:  1 - c + c²/2! - c³/3! + ... = e^(-c)
/// ```
///
/// `c`: a number from 0 to 1, known to `is_below_c` alone, which says whether a number is below it. The run ends with probability 1,
/// as `c^n / n!` goes to 0.
///
/// Source: von Neumann 1951, "Various techniques used in connection with random digits".
///
/// # Errors
/// The source's own error.
#[inline]
pub(super) fn longest_fall_is_even<R: TryCryptoRng>(
    source: &mut R,
    is_below_c: impl FnOnce(&mut LazyUniform, &mut R) -> Result<bool, R::Error>,
) -> Result<bool, R::Error> {
    let mut lowest = LazyUniform::draw(source)?;
    if !is_below_c(&mut lowest, source)? {
        return Ok(true);
    }
    let mut even = false;
    loop {
        let mut next = LazyUniform::draw(source)?;
        if !next.is_below(&mut lowest, source)? {
            return Ok(even);
        }
        lowest = next;
        even = !even;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::scripted_source::{Refused, ScriptedSource};

    const LOW: u64 = 1 << 60;
    const QUARTER: u64 = 1 << 62;
    const HALF: u64 = 1 << 63;
    const HIGH: u64 = 7 << 61;

    /// With `c = 3/4`.
    fn fall(source: &mut ScriptedSource) -> Result<bool, Refused> {
        let mut bound = LazyUniform::draw(&mut ScriptedSource::new(&[3 << 62])).expect("one word");
        longest_fall_is_even(source, |number, source| number.is_below(&mut bound, source))
    }

    #[test]
    fn a_fall_is_counted_until_a_number_is_not_below_the_last() {
        let cases: [(&[u64], bool); 6] = [
            (&[HIGH], true),
            (&[HALF, HIGH], false),
            (&[HALF, QUARTER, HALF], true),
            (&[HALF, QUARTER, LOW, LOW + 1], false),
            // Below 3/4, but not below the last.
            (&[QUARTER, HALF], false),
            // A tie of two digits: the later number is below, then nothing is.
            (&[QUARTER, QUARTER, 5, 5, 1, 2, HALF], true),
        ];
        for (script, expected) in cases {
            let mut source = ScriptedSource::new(script);
            assert_eq!(fall(&mut source), Ok(expected), "{script:?}");
            assert_eq!(source.left(), 0, "{script:?}: the script was longer than the fall");
        }
    }
}
