//! How fast this machine reads memory that is in no cache: the limit of every pass over a table.

use rayon::prelude::*;

use super::clock::{Times, on_threads};

const LANES: usize = 8;

/// Bytes a second by one and by two threads: the best of some reads of a large buffer.
pub(super) fn read_bandwidth(quick: bool) -> [f64; 2] {
    let words = if quick { 1 << 25 } else { 1 << 27 };
    // Different words, so that no page is shared.
    let buffer: Vec<u64> = (0..words as u64).collect();
    [1, 2].map(|threads| {
        let times = on_threads(threads, || {
            Times::of(if quick { 3 } else { 8 }, || {
                let total = buffer.par_chunks(words / threads).map(sum).reduce(|| 0, u64::wrapping_add);
                std::hint::black_box(total);
            })
        });
        (words * size_of::<u64>()) as f64 / times.least(threads)
    })
}

fn sum(part: &[u64]) -> u64 {
    let mut sums = [0u64; LANES];
    let (lanes, _) = part.as_chunks::<LANES>();
    for words in lanes {
        for (sum, word) in sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.iter().fold(0, |total, sum| total.wrapping_add(*sum))
}
