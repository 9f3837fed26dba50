//! Tests of the rounded Gaussian: scripts that lead through every branch, failures, stability of values.

use super::*;
use crate::noise::scripted_source::{ScriptedSource, assert_failures_are_handed_on, assert_values_are_stable};

/// Algorithm H ends true at once on a number of at least 1/2.
const H_TRUE: u64 = 1 << 63;
/// Algorithm H ends false on 1/4 followed by anything not below it.
const H_FALSE: [u64; 2] = [1 << 62, 1 << 63];
/// Algorithm C draws the largest number below any bound, a lost trial, and so ends algorithm B.
const C_FAILS: u64 = u64::MAX;
const PLUS: u64 = 0;
const MINUS: u64 = 1 << 63;

const LOW: u64 = 1 << 60;
const QUARTER: u64 = 1 << 62;
const HALF: u64 = 1 << 63;
const HIGH: u64 = 7 << 61;

fn drawn(scale: u64, parts: &[&[u64]]) -> i128 {
    let mut source = ScriptedSource::new(&parts.concat());
    let scale = NoiseScale::new(scale).expect("in range");
    let value = sample_rounded_gaussian(scale, &mut source).expect("the script is long enough");
    assert_eq!(source.left(), 0, "the script was longer than the draw");
    value
}

/// The word that makes algorithm C draw `value` of `2k + 2`.
fn c_draws(value: u64, whole: u64) -> u64 {
    let bound = u128::from(2 * whole + 2);
    // The middle of the words that give this value.
    (((u128::from(value) << 64) + (1 << 63)) / bound) as u64
}

fn succeeds(outcome: Result<bool, crate::noise::scripted_source::Refused>, source: &ScriptedSource) -> bool {
    assert_eq!(source.left(), 0, "the script was longer than the step");
    outcome.expect("the script is long enough")
}

#[test]
fn algorithm_h_counts_the_falls_from_one_half() {
    let cases: [(&[u64], bool); 6] = [
        (&[HALF], true),
        (&[HALF - 1, HALF], false),
        (&[QUARTER, LOW, HIGH], true),
        (&[QUARTER, LOW, LOW - 1, HALF], false),
        (&[QUARTER, LOW, LOW - 1, LOW - 2, LOW], true),
        // A tie of two digits: the later number is below, then nothing is.
        (&[QUARTER, QUARTER, 5, 5, 1, 2, HALF], true),
    ];
    for (script, expected) in cases {
        let mut source = ScriptedSource::new(script);
        assert_eq!(succeeds(algorithm_h(&mut source), &source), expected, "{script:?}");
    }
}

#[test]
fn algorithm_b_counts_the_falls_that_win_their_trial() {
    let wins = c_draws(0, 1);
    let asks = c_draws(2, 1);
    let cases: [(&[u64], bool); 8] = [
        (&[c_draws(3, 1)], true),
        // The next number is not below x = 1/2.
        (&[wins, HIGH], true),
        (&[wins, QUARTER, C_FAILS], false),
        (&[wins, QUARTER, wins, HIGH], false),
        (&[wins, QUARTER, wins, LOW, C_FAILS], true),
        // The trial asks for a number below x, not below the last number of the run.
        (&[asks, QUARTER, HIGH], true),
        (&[asks, QUARTER, LOW, C_FAILS], false),
        (&[asks, LOW, QUARTER, C_FAILS], false),
    ];
    for (script, expected) in cases {
        let mut fraction = LazyUniform::draw(&mut ScriptedSource::new(&[HALF])).expect("one word");
        let mut source = ScriptedSource::new(script);
        assert_eq!(succeeds(algorithm_b(1, &mut fraction, &mut source), &source), expected, "{script:?}");
    }
}

#[test]
fn uniform_below_refuses_the_words_that_would_favour_small_values() {
    // 2^64 mod 6 = 4: of the words 0..4, whose product has a low half below 4, only 0 is refused here.
    let mut source = ScriptedSource::new(&[0, 1]);
    assert_eq!(uniform_below(6, &mut source), Ok(0));
    assert_eq!(source.left(), 0);
    // 2^64 mod 2 = 0: no word is refused.
    for (word, expected) in [(0, 0), (HALF - 1, 0), (HALF, 1), (u64::MAX, 1)] {
        assert_eq!(uniform_below(2, &mut ScriptedSource::new(&[word])), Ok(expected));
    }
    for bound in 2..20 {
        for value in 0..bound {
            let word = ((u128::from(value) << 64) + (1 << 63)) / u128::from(bound);
            assert_eq!(uniform_below(bound, &mut ScriptedSource::new(&[word as u64])), Ok(value));
        }
    }
}

#[test]
fn the_whole_part_is_zero_and_the_sign_is_kept() {
    assert_eq!(drawn(8, &[&H_FALSE, &[QUARTER, C_FAILS, PLUS]]), 2);
    assert_eq!(drawn(8, &[&H_FALSE, &[QUARTER, C_FAILS, MINUS]]), -2);
    assert_eq!(drawn(8, &[&H_FALSE, &[LOW - 1, C_FAILS, MINUS]]), 0);
    assert_eq!(drawn(1, &[&H_FALSE, &[HALF - 1, C_FAILS, PLUS]]), 0);
    assert_eq!(drawn(1, &[&H_FALSE, &[HALF, C_FAILS, PLUS]]), 1);
}

#[test]
fn step_n2_is_asked_k_times_k_minus_one_times() {
    // k = 1: never. Two rounds of algorithm B follow.
    assert_eq!(drawn(8, &[&[H_TRUE], &H_FALSE, &[QUARTER, C_FAILS, C_FAILS, PLUS]]), 10);
    // k = 2: twice; k = 3: six times.
    assert_eq!(drawn(8, &[&[H_TRUE; 2], &H_FALSE, &[H_TRUE; 2], &[QUARTER], &[C_FAILS; 3], &[MINUS]]), -18);
    assert_eq!(drawn(8, &[&[H_TRUE; 3], &H_FALSE, &[H_TRUE; 6], &[QUARTER], &[C_FAILS; 4], &[MINUS]]), -26);
}

#[test]
fn a_refused_whole_part_starts_again() {
    for answered in 0..6 {
        let refused: [&[u64]; 4] = [&[H_TRUE; 3], &H_FALSE, &vec![H_TRUE; answered], &H_FALSE];
        assert_eq!(drawn(8, &[&refused.concat(), &H_FALSE, &[QUARTER, C_FAILS, PLUS]]), 2, "{answered}");
    }
}

#[test]
fn a_refused_fraction_starts_again() {
    // k = 1, x = 1/2: the second round of algorithm B falls once and is lost. Then k = 0, x = 1/4.
    let refused: [&[u64]; 3] = [&[H_TRUE], &H_FALSE, &[HALF, C_FAILS, c_draws(0, 1), QUARTER, C_FAILS]];
    assert_eq!(drawn(8, &[&refused.concat(), &H_FALSE, &[QUARTER, C_FAILS, PLUS]]), 2);
}

#[test]
fn deep_digits_of_the_rounding_are_drawn_after_the_sign() {
    // 3 x + 1/2 straddles 1 for as long as x follows 1/6 = 0.00101010... in base 2.
    let (first, next) = (0x2AAA_AAAA_AAAA_AAAA, 0xAAAA_AAAA_AAAA_AAAA);
    for depth in 0..6 {
        let straddling = vec![next; depth];
        let start: [&[u64]; 2] = [&H_FALSE, &[first, C_FAILS, MINUS]];
        assert_eq!(drawn(3, &[&start.concat(), &straddling, &[next + 1]]), -1, "depth {depth}");
        assert_eq!(drawn(3, &[&start.concat(), &straddling, &[next - 1]]), 0, "depth {depth}");
    }
}

#[test]
fn digits_that_a_tie_brought_out_are_used_by_the_rounding() {
    let (first, next) = (0x2AAA_AAAA_AAAA_AAAA, 0xAAAA_AAAA_AAAA_AAAA);
    // k = 1: z ties with x for two digits (drawn as z, x in turn) and is above it at the third, so algorithm B accepts;
    // its second round is ended by a lost trial. The third digit of x, drawn in the tie, then decides the rounding.
    for (third, expected) in [(next - 1, 3), (next + 1, 4)] {
        let tie: [&[u64]; 4] = [&[H_TRUE], &H_FALSE, &[first, c_draws(0, 1), first, next, next], &[u64::MAX, third]];
        assert_eq!(drawn(3, &[&tie.concat(), &[C_FAILS, PLUS]]), expected);
    }
}

#[test]
fn the_largest_scale_does_not_overflow() {
    let largest = NoiseScale::MAX.get();
    let script: [&[u64]; 4] = [&[H_TRUE; 9], &H_FALSE, &[H_TRUE; 72], &[u64::MAX]];
    assert_eq!(drawn(largest, &[&script.concat(), &[C_FAILS; 10], &[MINUS]]), -10 * (1 << 60));
    // One less is not a power of two, so x = 8/2^64 leaves S x + 1/2 astride 1; the digits after it hover at 8/S.
    let cases: [(&[u64], i128); 5] =
        [(&[127], 0), (&[129], 1), (&[128, 2047], 0), (&[128, 2049], 1), (&[128, 2048, 32769], 1)];
    for (digits, expected) in cases {
        let start: [&[u64]; 2] = [&H_FALSE, &[8, C_FAILS, PLUS]];
        assert_eq!(drawn(largest - 1, &[&start.concat(), digits]), expected, "{digits:?}");
    }
}

#[test]
fn every_failure_of_the_source_is_handed_on() {
    for scale in [1, 1000, (1 << 60) - 1, 1 << 60] {
        let scale = NoiseScale::new(scale).expect("in range");
        assert_failures_are_handed_on(|source| sample_rounded_gaussian(scale, source));
    }
}

#[test]
fn draws_equal_those_of_the_independent_implementation() {
    assert_values_are_stable("rounded_gaussian", |scale, source| match sample_rounded_gaussian(scale, source) {
        Ok(value) => value,
    });
}
