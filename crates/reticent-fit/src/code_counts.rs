//! How many rows have each code of a public number.

use rayon::prelude::*;
use reticent_core::coding::{CODE_MAX, UnitNumber};
use reticent_core::encoding::CodeRange;

/// Codes that some row has, ascending, each with its number of rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CodeCounts(Vec<(u16, u64)>);

impl CodeCounts {
    /// Of the numbers at some places of rows of `width`: one list of counts a place.
    pub(crate) fn of_places<N: UnitNumber + Sync>(rows: &[N], width: usize, places: &[usize]) -> Vec<Self> {
        // A table of all codes takes longer to go through than fewer rows to sort.
        if rows.len() / width < CODES {
            return places.par_iter().map(|place| Self::of_few(rows, width, *place)).collect();
        }
        let none = || vec![vec![0u64; CODES]; places.len()];
        // As many parts as threads: each has tables of its own.
        let rows_of_part = (rows.len() / width).div_ceil(rayon::current_num_threads());
        let parts = rows.par_chunks(rows_of_part * width).map(|rows| {
            let mut tables = none();
            for row in rows.chunks_exact(width) {
                tables.iter_mut().zip(places).for_each(|(table, place)| table[usize::from(row[*place].code())] += 1);
            }
            tables
        });
        let tables = parts.reduce(none, |mut sums, part| {
            for (sum, count) in sums.iter_mut().flatten().zip(part.into_iter().flatten()) {
                *sum += count;
            }
            sums
        });
        let of_table = |table: Vec<u64>| Self((0..).zip(table).filter(|(_, count)| *count > 0).collect());
        tables.into_iter().map(of_table).collect()
    }

    fn of_few<N: UnitNumber>(rows: &[N], width: usize, place: usize) -> Self {
        let mut codes: Vec<u16> = rows.iter().skip(place).step_by(width).map(|number| number.code()).collect();
        codes.sort_unstable();
        let runs = codes.chunk_by(|one, other| one == other);
        Self(runs.map(|run| (run[0], run.len() as u64)).collect())
    }

    /// The rows with another code than this.
    pub(crate) fn without(&self, code: u16) -> Self {
        Self(self.each().filter(|(other, _)| *other != code).collect())
    }

    /// Number of rows.
    pub(crate) fn total(&self) -> u64 {
        self.each().map(|(_, count)| count).sum()
    }

    /// Codes that some row has, ascending, each with its number of rows.
    pub(crate) fn each(&self) -> impl DoubleEndedIterator<Item = (u16, u64)> {
        self.0.iter().copied()
    }

    /// Rows beyond a range.
    pub(crate) fn beyond(&self, range: CodeRange) -> u64 {
        self.each().filter(|(code, _)| range.of(*code) != *code).map(|(_, count)| count).sum()
    }

    /// The least code and the largest.
    pub(crate) fn ends(&self) -> Option<(u16, u16)> {
        Some((self.each().next()?.0, self.each().next_back()?.0))
    }

    /// The mean of codes as they are read in a range, to the nearest.
    pub(crate) fn mean_in(&self, range: CodeRange) -> u16 {
        let sum: f64 = self.each().map(|(code, count)| f64::from(range.of(code)) * count as f64).sum();
        (sum / self.total().max(1) as f64).round() as u16
    }

    /// The shortest run of codes that so many rows have, the first of several: its ends.
    pub(crate) fn shortest_run(&self, rows: u64) -> Option<(u16, u16)> {
        let (mut shortest, mut held) = (None, 0);
        let mut ends = self.each();
        let mut high = 0;
        for (low, count) in self.each() {
            while held < rows.max(1) {
                let Some((next, more)) = ends.next() else { return shortest };
                (high, held) = (next, held + more);
            }
            if shortest
                .is_none_or(|(low_of_shortest, high_of_shortest)| high - low < high_of_shortest - low_of_shortest)
            {
                shortest = Some((low, high));
            }
            held -= count;
        }
        shortest
    }
}

const CODES: usize = CODE_MAX as usize + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Beside all runs of the sorted codes.
        #[test]
        fn the_shortest_run_is_that_of_the_sorted_codes(codes in prop::collection::vec(0u16..40, 0..60), rows in 0usize..70) {
            let counts = CodeCounts::of_places(&codes, 1, &[0]).remove(0);
            let mut sorted = codes.clone();
            sorted.sort_unstable();
            let shortest = sorted.windows(rows.max(1)).map(|run| (run[0], run[run.len() - 1])).min_by_key(|(low, high)| high - low);
            prop_assert_eq!(counts.shortest_run(rows as u64), shortest);
            prop_assert_eq!(counts.ends(), sorted.first().copied().zip(sorted.last().copied()));
            prop_assert_eq!(counts.total(), codes.len() as u64);
            let others: Vec<u16> = sorted.iter().copied().filter(|code| *code != 7).collect();
            let listed = counts.without(7).each().flat_map(|(code, count)| vec![code; count as usize]).collect::<Vec<u16>>();
            prop_assert_eq!(listed, others);
        }
    }

    #[test]
    fn places_are_counted_side_by_side_on_any_number_of_threads() {
        let rows: Vec<f64> = (0..3 * 40_000).map(|place| f64::from(place % 7) / 7.0).collect();
        let on_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a few threads can be had");
            pool.install(|| CodeCounts::of_places(&rows, 3, &[2, 0]))
        };
        let expected = vec![CodeCounts::of_few(&rows, 3, 2), CodeCounts::of_few(&rows, 3, 0)];
        assert_eq!(expected[0].total(), 40_000);
        assert_eq!(on_threads(1), expected);
        assert_eq!(on_threads(3), on_threads(1));
    }
}
