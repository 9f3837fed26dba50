//! In which part of its bounds each number of public features is read.
//!
//! A row that is far from all others has the scale of its column to itself: its vector is drawn to the longest that is allowed, and what the others say
//! of the column is small beside the noise. And log-odds that are linear in a number for most rows seldom are so far out. So values beyond
//! what nearly all rows keep within are read as its border, by the fit and by the model. `docs/methods/walr.md`, row F177 of `docs/formulas.md`.
//!
//! An effect on a number may well be linear in a tail of the feature. There what all rows keep within is the range, and nearly all only where the others
//! are far beyond: what a model says of values that no row had is never more than of those that rows had.

use rayon::prelude::*;
use reticent_core::coding::{CODE_MAX, Coding, SlotMap, UnitNumber};
use reticent_core::encoding::CodeRange;
use reticent_core::public_features::PublicFeatures;

use crate::code_counts::CodeCounts;
use crate::number_reading::MissingNumbers;

/// One row in so many may lie beyond the range that is looked for,
const SPARED: u64 = 100;
/// and the range is as much longer at both ends, in shares of itself.
const MARGIN: f64 = 0.1;
/// Rows are far beyond a range that is less than this share of what all hold.
const FAR: f64 = 0.1;
/// Fewest different numbers of a feature beside which one more is taken for that of missing values: whole numbers up to a few dozen may have it.
const DIFFERENT_MIN: usize = 64;

/// Features with numbers in their ranges, and those ranges, one a slot of the coding.
pub(crate) fn within_ranges(features: PublicFeatures, coding: &Coding) -> (PublicFeatures, Vec<CodeRange>) {
    read_features(features, coding, range)
}

/// Features with numbers in the ranges that all rows keep within, for a target that is a number.
pub(crate) fn within_held_ranges(features: PublicFeatures, coding: &Coding) -> (PublicFeatures, Vec<CodeRange>) {
    read_features(features, coding, held_range)
}

fn read_features(
    mut features: PublicFeatures,
    coding: &Coding,
    range: impl Fn(&CodeCounts, MissingNumbers) -> CodeRange,
) -> (PublicFeatures, Vec<CodeRange>) {
    let ranges = read_numbers(&mut features.codes, features.columns, |column| column, coding, range);
    (features, ranges)
}

/// Reads the numbers of rows of `width` values, which are shares of their bounds, within the range that is found for each slot of the coding, and says
/// which; `place_of` an encoded column is its place in a row.
pub(crate) fn read_numbers<N: UnitNumber + Send + Sync>(
    values: &mut [N],
    width: usize,
    place_of: impl Fn(usize) -> usize,
    coding: &Coding,
    range: impl Fn(&CodeCounts, MissingNumbers) -> CodeRange,
) -> Vec<CodeRange> {
    let mut ranges = Vec::new();
    let mut numbers = Vec::new();
    let mut column = 1;
    for slot in coding.slot_maps() {
        if let SlotMap::Category { categories, .. } = slot {
            column += categories;
        } else {
            numbers.push(Number { slot, slot_place: ranges.len(), place: place_of(column) });
            column += 1;
        }
        ranges.push(CodeRange::BOUNDS);
    }
    // The feature whose missing values the slot before sets aside: its logarithm follows it.
    let mut apart = None;
    for numbers in numbers.chunks(NUMBERS_TOGETHER) {
        let places: Vec<usize> = numbers.iter().map(|number| number.place).collect();
        for (number, counts) in numbers.iter().zip(CodeCounts::of_places(values, width, &places)) {
            let feature = number.slot.feature();
            let range = range(&counts, MissingNumbers::of(number.slot, apart == Some(feature)));
            apart = range.sets_aside().then_some(feature);
            ranges[number.slot_place] = range;
        }
    }
    if numbers.is_empty() {
        return ranges;
    }
    let of_numbers: Vec<(usize, CodeRange)> =
        numbers.iter().map(|number| (number.place, ranges[number.slot_place])).collect();
    values.par_chunks_exact_mut(width).with_min_len(ROWS_TOGETHER).for_each(|row| {
        for (place, range) in &of_numbers {
            let code = row[*place].code();
            if range.of(code) != code {
                row[*place] = N::of_code(range.of(code));
            }
        }
    });
    ranges
}

/// A slot of numbers.
struct Number {
    slot: SlotMap,
    slot_place: usize,
    /// Its column in a row.
    place: usize,
}

/// Numbers whose columns are counted in one pass over the rows: their counts stay in the processor's cache.
const NUMBERS_TOGETHER: usize = 8;
/// Rows that a thread takes at once.
const ROWS_TOGETHER: usize = 1024;

/// The shortest range that holds nearly all codes, and its margin; of those of missing values only where these are among the others. Where they
/// are not, but [told apart](are_told_apart), and the schema leaves open what they become, they are read as the mean of the others.
fn range(codes: &CodeCounts, missing: MissingNumbers) -> CodeRange {
    let others = codes.without(missing.code);
    let is_any_missing = others.total() < codes.total();
    let of_others = shortest_range(&others);
    if is_any_missing && !missing.are_apart && of_others.of(missing.code) == missing.code {
        return shortest_range(codes);
    }
    if missing.are_apart || (missing.is_open && are_told_apart(&others, codes.total(), of_others)) {
        return of_others.with_missing(missing.code, mean_code(&others, of_others));
    }
    of_others
}

/// The range of all codes and its margin, or [`range`] where that is less than a tenth of it: some rows are far beyond then. Missing values as there.
fn held_range(codes: &CodeCounts, missing: MissingNumbers) -> CodeRange {
    let others = codes.without(missing.code);
    let (near, held) = (range(codes, missing), whole_range(&others));
    let width = |range: CodeRange| f64::from(range.high() - range.low());
    if width(near) < FAR * width(held) {
        near
    } else if near.sets_aside() {
        held.with_missing(missing.code, mean_code(&others, held))
    } else {
        whole_range(codes)
    }
}

/// From the least code to the largest, and a margin; all of the bounds where they are one.
fn whole_range(codes: &CodeCounts) -> CodeRange {
    codes.ends().map_or(CodeRange::BOUNDS, |(low, high)| with_margin(low, high))
}

/// Whether rows with the code of missing values are missing, and not others that have that very number, as a count may have: where there are more of
/// them than of all others beyond the range, and the others are no few different numbers.
fn are_told_apart(others: &CodeCounts, rows: u64, of_others: CodeRange) -> bool {
    rows - others.total() > others.beyond(of_others) && others.each().nth(DIFFERENT_MIN - 1).is_some()
}

/// All of the bounds, with missing values as [`range`] has them, but for what it cuts off.
pub(crate) fn bounds_with_missing(codes: &CodeCounts, missing: MissingNumbers) -> CodeRange {
    if !(missing.is_open || missing.are_apart) || !range(codes, missing).sets_aside() {
        return CodeRange::BOUNDS;
    }
    let others = codes.without(missing.code);
    CodeRange::BOUNDS.with_missing(missing.code, mean_code(&others, CodeRange::BOUNDS))
}

/// The mean of codes as they are read in a range.
fn mean_code(codes: &CodeCounts, range: CodeRange) -> u16 {
    codes.mean_in(range).clamp(range.low(), range.high())
}

/// All of the bounds where the range is one code: a number that is rarely another tells by those rows alone.
fn shortest_range(codes: &CodeCounts) -> CodeRange {
    let held = codes.total() - codes.total() / SPARED;
    codes.shortest_run(held).map_or(CodeRange::BOUNDS, |(low, high)| with_margin(low, high))
}

/// Codes from one to another and a margin; all of the bounds where they are the same.
fn with_margin(low: u16, high: u16) -> CodeRange {
    if low == high {
        return CodeRange::BOUNDS;
    }
    let margin = (MARGIN * f64::from(high - low)).ceil() as u16;
    CodeRange::new(low.saturating_sub(margin), high.saturating_add(margin).min(CODE_MAX))
}

#[cfg(test)]
mod tests {
    use reticent_core::schema::Schema;

    use super::*;

    fn counts(codes: impl IntoIterator<Item = u16>) -> CodeCounts {
        let codes: Vec<u16> = codes.into_iter().collect();
        CodeCounts::of_places(&codes, 1, &[0]).remove(0)
    }

    #[test]
    fn a_range_holds_nearly_all_rows_and_a_margin() {
        // A thousand codes from 1000 on, and ten far away: the margin is a tenth of 999 steps.
        let crowd = || 1000..2000;
        assert_eq!(shortest_range(&counts(crowd().chain([30_000; 10]))), CodeRange::new(900, 2099));
        assert_eq!(
            shortest_range(&counts(crowd().chain([30_000; 11]))),
            CodeRange::new(0, CODE_MAX),
            "eleven are held"
        );
        assert_eq!(shortest_range(&counts(0..=CODE_MAX)), CodeRange::new(0, CODE_MAX), "an even number");
    }

    #[test]
    fn missing_values_far_from_all_others_do_not_widen_a_range() {
        let of = |code, is_open| MissingNumbers { code, is_open, are_apart: false };
        let crowd = || 1000..2000;
        let with_missing =
            |count, missing| range(&counts(crowd().chain(std::iter::repeat_n(missing, count))), of(missing, false));
        for count in [20, 100, 2000] {
            assert_eq!(with_missing(count, 16_384), shortest_range(&counts(crowd())));
        }
        // What they become is open: the mean of the others.
        let codes = counts(crowd().chain(std::iter::repeat_n(16_384, 20)));
        let open = range(&codes, of(16_384, true));
        assert_eq!((open.of(16_384), open.of(16_383), open.of(1500)), (1500, open.high(), 1500));
        let whole = bounds_with_missing(&codes, of(16_384, true));
        assert_eq!([whole.of(16_384), whole.of(16_383), whole.of(0)], [1500, 16_383, 0], "nothing is cut off");
        assert_eq!(bounds_with_missing(&codes, of(16_384, false)), CodeRange::BOUNDS);
        // Of a count that is mostly 0, never much more than 1, and 2 in some rows: two is a number of it.
        let by_code = [(0, 950), (8192, 30), (16_384, 15), (24_575, 5)];
        let count = counts(by_code.into_iter().flat_map(|(code, rows)| vec![code; rows]));
        assert!(!range(&count, of(16_384, true)).sets_aside());
        // Known to be apart they are, wherever they are.
        let near = counts(crowd().chain(std::iter::repeat_n(1900, 100)));
        let read = |are_apart| range(&near, MissingNumbers { are_apart, ..of(1900, true) }).of(1900);
        assert_eq!((read(false), read(true)), (1900, 1499));
        // Near the others they are one of them.
        assert!(with_missing(100, 2050).low() > 900);
        assert_eq!(range(&counts([7; 10]), of(7, true)), CodeRange::BOUNDS);
    }

    /// By hand: a thousand codes from 1000 on, whose whole range has a margin of 100, and one row more.
    #[test]
    fn a_range_for_a_number_holds_all_rows_but_those_far_beyond() {
        let missing = MissingNumbers { code: 16_384, is_open: true, are_apart: false };
        let with = |more: &[u16]| held_range(&counts((1000..2000).chain(more.iter().copied())), missing);
        assert_eq!(with(&[]), CodeRange::new(900, 2099));
        assert_eq!(with(&[8000]), CodeRange::new(300, 8700));
        assert!(with(&[32_000]).high() < 2100, "the others hold less than a tenth of that");
        assert_eq!(held_range(&counts([7; 100]), missing), CodeRange::BOUNDS);
        // Missing values are no part of what rows hold.
        let read = with(&[16_384; 30]);
        assert_eq!([read.of(16_384), read.low(), read.high()], [1500, 900, 2099]);
        let read = held_range(&counts((1000..2000).chain([16_384; 30])), MissingNumbers { is_open: false, ..missing });
        assert_eq!(read.of(16_384), 16_384, "the middle of the bounds is what they are to be read as");
    }

    #[test]
    fn a_number_that_is_hardly_ever_another_is_read_within_its_bounds() {
        assert_eq!(shortest_range(&counts(std::iter::repeat_n(7, 1000).chain([CODE_MAX; 10]))), CodeRange::BOUNDS);
        assert_eq!(shortest_range(&counts([5])), CodeRange::BOUNDS);
        assert_eq!(shortest_range(&counts([])), CodeRange::BOUNDS);
    }

    #[test]
    fn numbers_are_brought_into_their_ranges_and_categories_stay() {
        let text = "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                    [features]\ng = { categories = [\"a\", \"b\"] }\nx = { bounds = [0, 1] }\n";
        let coding = Coding::of(&Schema::from_text(text).expect("legal"));
        let columns = coding.columns().len();
        let row = |number: u16| [CODE_MAX, CODE_MAX].into_iter().chain(vec![0; columns - 3]).chain([number]);
        let mut codes: Vec<u16> = (0..200).flat_map(|place| row(place % 100 * 131 / 4)).collect();
        codes.extend(row(CODE_MAX));
        let (read, ranges) = within_ranges(PublicFeatures { columns, codes: codes.clone() }, &coding);
        assert_eq!(ranges[0], CodeRange::BOUNDS);
        let high = f64::from(ranges[1].high()) / f64::from(CODE_MAX);
        assert!(high > 0.108 && high < 0.110, "{high}");
        assert_eq!(read.codes[200 * columns + columns - 1], ranges[1].high());
        assert_eq!(read.codes[..200 * columns], codes[..200 * columns]);
    }
}
