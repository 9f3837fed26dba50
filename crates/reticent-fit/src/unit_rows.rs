//! Public rows, or a party's own, with every column on the scale of the schema's bounds: numbers that every row has, and of all else the
//! few columns that are not 0.

use reticent_core::coding::{Coding, Column};
use reticent_core::encoding::CodeRange;
use reticent_core::schema::Schema;
use reticent_math::entry_lists::EntryLists;
use reticent_math::feature_table::FeatureTable;

use crate::model::transformed_bounds;
use crate::public_ranges::{bounds_with_missing, read_numbers};
use crate::raw_columns::Columns;

/// Rows without the zeros of blocks of categories and of numbers that rows list.
pub struct UnitRows {
    /// What becomes 0 and what becomes 1, by column.
    bounds: Vec<(f64, f64)>,
    /// The columns of which every row has a number, ascending, the intercept first.
    placed: Vec<usize>,
    /// Those numbers, row after row.
    numbers: Vec<f64>,
    /// The other columns of each row that are not 0.
    others: EntryLists,
}

/// The rows as solvers want them.
pub(crate) struct Solvable {
    pub(crate) features: FeatureTable,
    /// The encoded column of each column of the features.
    pub(crate) columns: Vec<usize>,
}

/// A column that is not 0 in more than one of so many rows is written out for solvers: it takes little more memory, and they are faster with it.
const PACKED_SHARE: usize = 4;

impl UnitRows {
    /// No row yet.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        let coding = Coding::of(schema);
        let listed = coding.listed().map_or(usize::MAX, |listed| listed.first_column());
        let bounds = |column: &Column| match column {
            Column::Linear { feature } | Column::SymLog { feature } => transformed_bounds(schema, *feature, column),
            Column::Intercept | Column::Category { .. } => (0.0, 1.0),
        };
        let is_placed = |(place, column): (usize, &Column)| (place < listed && !is_category(column)).then_some(place);
        Self {
            bounds: coding.columns().iter().map(bounds).collect(),
            placed: coding.columns().iter().enumerate().filter_map(is_placed).collect(),
            numbers: Vec::new(),
            others: EntryLists::default(),
        }
    }

    /// These rows.
    pub fn of<R: Columns>(schema: &Schema, rows: impl IntoIterator<Item = R>) -> Self {
        let mut all = Self::new(schema);
        rows.into_iter().for_each(|row| all.add(&row));
        all
    }

    /// Takes the raw columns of one more row ([`Coding::raw_columns`]).
    pub fn add(&mut self, row: &(impl Columns + ?Sized)) {
        let Self { bounds, placed, numbers, others } = self;
        let to_unit = |column: usize, value: f64| {
            let (low, high) = bounds[column];
            (value - low) / (high - low)
        };
        let start = numbers.len();
        numbers.extend(placed.iter().map(|column| to_unit(*column, 0.0)));
        let mut next = 0;
        others.push(row.nonzero().filter_map(|(column, value)| {
            let value = to_unit(column, value);
            while placed.get(next).is_some_and(|place| *place < column) {
                next += 1;
            }
            if placed.get(next) == Some(&column) {
                numbers[start + next] = value;
                return None;
            }
            (value != 0.0).then_some((column as u32, value))
        }));
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.others.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.others.is_empty()
    }

    /// Number of columns, the intercept first.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.bounds.len()
    }

    /// One row after another, in the units of the schema's bounds.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = UnitRow<'_>> {
        (0..self.len()).map(|index| UnitRow { rows: self, index })
    }

    /// Least value of each column, and how far the largest is from it.
    pub(crate) fn ranges(&self) -> Vec<(f64, f64)> {
        let mut ends = vec![(f64::INFINITY, f64::NEG_INFINITY); self.columns()];
        let mut widen = |column: usize, value: f64| {
            let (low, high) = ends[column];
            ends[column] = (low.min(value), high.max(value));
        };
        self.for_each_entry(&mut widen);
        for (column, zeros) in self.zeros().into_iter().enumerate() {
            if zeros > 0 {
                widen(column, 0.0);
            }
        }
        ends.into_iter().map(|(low, high)| (low, high - low)).collect()
    }

    /// Mean and standard deviation of each column.
    pub(crate) fn moments(&self) -> Vec<(f64, f64)> {
        let count = self.len() as f64;
        let mut means = vec![0.0; self.columns()];
        self.for_each_entry(|column, value| means[column] += value);
        means.iter_mut().for_each(|sum| *sum /= count);
        let mut squares = vec![0.0; self.columns()];
        self.for_each_entry(|column, value| squares[column] += (value - means[column]).powi(2));
        for ((square, mean), zeros) in squares.iter_mut().zip(&means).zip(self.zeros()) {
            *square += zeros as f64 * mean.powi(2);
        }
        means.into_iter().zip(squares).map(|(mean, square)| (mean, (square / count).sqrt())).collect()
    }

    /// Reads missing numbers as the mean of the others, [where they are apart](bounds_with_missing), and says how: one range a slot.
    pub(crate) fn read_missing_as_mean(&mut self, coding: &Coding) -> Vec<CodeRange> {
        let Self { placed, numbers, .. } = self;
        let place_of = |column| placed.binary_search(&column).expect("every row has a number of it");
        read_numbers(numbers, placed.len(), place_of, coding, bounds_with_missing)
    }

    /// All columns of all rows with `centre` subtracted and multiplied by `scale` then, row after row: as many numbers as rows times columns.
    #[must_use]
    pub(crate) fn written_out(&self, centre: &[f64], scale: &[f64]) -> Vec<f64> {
        let shapes = || centre.iter().zip(scale);
        let of_zeros: Vec<f64> = shapes().map(|(centre, scale)| (0.0 - centre) * scale).collect();
        let mut all = Vec::with_capacity(self.len() * self.columns());
        for row in self.rows() {
            let start = all.len();
            all.extend_from_slice(&of_zeros);
            for (column, value) in row.entries() {
                all[start + column] = (value - centre[column]) * scale[column];
            }
        }
        all
    }

    /// The rows with `centre` subtracted and multiplied by `scale` then, in the form that solvers take.
    pub(crate) fn solvable(self, centre: &[f64], scale: &[f64]) -> Solvable {
        let least = self.len() / PACKED_SHARE;
        let counts = self.others.counts(self.columns());
        let mut is_packed: Vec<bool> = counts.iter().map(|count| *count > least).collect();
        self.placed.iter().for_each(|column| is_packed[*column] = true);
        let (packed, listed): (Vec<usize>, Vec<usize>) = (0..self.columns()).partition(|column| is_packed[*column]);
        // Among those of its kind.
        let mut place_of = vec![0; self.columns()];
        for columns in [&packed, &listed] {
            columns.iter().enumerate().for_each(|(place, column)| place_of[*column] = place);
        }
        let mut kept = EntryLists::default();
        for index in 0..self.len() {
            let of_row = self.others.list(index).filter(|(column, _)| !is_packed[*column]);
            kept.push(of_row.map(|(column, value)| (place_of[column] as u32, value)));
        }
        let mut values = if packed.len() == self.placed.len() {
            self.numbers
        } else {
            let mut values = vec![0.0; self.len() * packed.len()];
            for (row, values) in self.rows().zip(values.chunks_exact_mut(packed.len())) {
                for (column, value) in row.entries().filter(|(column, _)| is_packed[*column]) {
                    values[place_of[column]] = value;
                }
            }
            values
        };
        for row in values.chunks_exact_mut(packed.len()) {
            for (value, column) in row.iter_mut().zip(&packed) {
                *value = scale[*column] * (*value - centre[*column]);
            }
        }
        // Their columns are about to be listed, too.
        drop(self.others);
        let mut features = FeatureTable::packed(values, packed.len());
        if !listed.is_empty() {
            let of_listed = |shape: &[f64]| listed.iter().map(|column| shape[*column]).collect();
            features = features.with_listed(kept, of_listed(centre), of_listed(scale));
        }
        Solvable { features, columns: [listed, packed].concat() }
    }

    /// In how many rows each column is 0 without being written down.
    fn zeros(&self) -> Vec<usize> {
        let counts = self.others.counts(self.columns());
        let mut zeros: Vec<usize> = counts.into_iter().map(|count| self.len() - count).collect();
        self.placed.iter().for_each(|column| zeros[*column] = 0);
        zeros
    }

    /// Column and value of everything that is written down, row after row.
    fn for_each_entry(&self, mut visit: impl FnMut(usize, f64)) {
        self.rows().for_each(|row| row.entries().for_each(|(column, value)| visit(column, value)));
    }
}

/// One of the rows. As [`Columns`] it is in the user's units, but for rounding.
#[derive(Clone, Copy)]
pub struct UnitRow<'a> {
    rows: &'a UnitRows,
    index: usize,
}

impl<'a> UnitRow<'a> {
    /// Columns and values in the units of the schema's bounds: of numbers first, then those of the others that are not 0.
    fn entries(self) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.numbers().chain(self.rows.others.list(self.index))
    }

    fn numbers(self) -> impl Iterator<Item = (usize, f64)> + 'a {
        let UnitRows { placed, numbers, .. } = self.rows;
        let numbers = &numbers[self.index * placed.len()..][..placed.len()];
        placed.iter().copied().zip(numbers.iter().copied())
    }
}

impl Columns for UnitRow<'_> {
    fn nonzero(&self) -> impl Iterator<Item = (usize, f64)> {
        let mut numbers = self.numbers().peekable();
        let mut others = self.rows.others.list(self.index).peekable();
        let ascending = std::iter::from_fn(move || {
            let number = numbers.next_if(|(number, _)| others.peek().is_none_or(|(other, _)| number < other));
            number.or_else(|| others.next())
        });
        ascending.map(|(column, value)| {
            let (low, high) = self.rows.bounds[column];
            (column, low + (high - low) * value)
        })
    }

    fn count(&self) -> usize {
        self.rows.columns()
    }
}

fn is_category(column: &Column) -> bool {
    match column {
        Column::Category { .. } => true,
        Column::Intercept | Column::Linear { .. } | Column::SymLog { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use reticent_core::record::Cell;
    use reticent_math::least_squares;

    use super::*;
    use crate::raw_columns::RawColumns;

    /// Of numbers, of a category of which one value is frequent, and of numbers of which a row lists some.
    fn schemas() -> [Schema; 2] {
        let of_features = |text: &str| {
            let privacy =
                "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n";
            Schema::from_text(&format!("{privacy}{text}")).expect("legal")
        };
        [
            of_features(
                "[features]\na = { bounds = [-3, 7] }\nb = { categories = [1, 2, 3, 4] }\nc = { bounds = [0, 1000] }\n",
            ),
            of_features(
                "[table]\nformat = \"libsvm\"\nnonzeros_max = 2\n[features]\n1 = { bounds = [-3, 7] }\n\"2..6\" = { bounds = [0, 4] }\n",
            ),
        ]
    }

    fn cells(schema: &Schema, row: usize) -> Vec<Cell> {
        if schema.features().len() == 3 {
            let category = if row.is_multiple_of(2) { 2 } else { row as u32 % 5 };
            return vec![
                Cell::Number(row as f64 / 2.0 - 3.0),
                Cell::Category(category),
                Cell::Number((row * row) as f64),
            ];
        }
        let listed =
            |place: usize| if (row + place * row / 2).is_multiple_of(place + 1) { 0.3 * place as f64 } else { 0.0 };
        std::iter::once(row as f64 / 2.0 - 3.0).chain((2..7).map(listed)).map(Cell::Number).collect()
    }

    /// All rows in the user's units, and the same as they are kept.
    fn both_forms(schema: &Schema) -> (Vec<Vec<f64>>, UnitRows) {
        let coding = Coding::of(schema);
        let mut columns = RawColumns::new(&coding);
        let mut kept = UnitRows::new(schema);
        let all = (0..20).map(|row| {
            let cells = cells(schema, row);
            columns.set(&cells, None);
            kept.add(&columns);
            let mut all = vec![0.0; coding.columns().len()];
            coding.raw_columns(&cells, &mut all);
            all
        });
        (all.collect(), kept)
    }

    fn assert_close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{found} {expected}");
    }

    #[test]
    fn rows_are_given_back_as_they_came() {
        for schema in schemas() {
            let (all, kept) = both_forms(&schema);
            assert_eq!((kept.len(), kept.columns()), (20, all[0].len()));
            for (all, row) in all.iter().zip(kept.rows()) {
                let (mut last, mut found) = (None, vec![0.0; all.len()]);
                for (column, value) in row.nonzero() {
                    assert!(last < Some(column), "ascending");
                    (last, found[column]) = (Some(column), value);
                }
                found.into_iter().zip(all).for_each(|(found, value)| assert_close(found, *value));
            }
            // What is given with its zeros is kept without them.
            let mut with_zeros = UnitRows::new(&schema);
            all.iter().for_each(|row| with_zeros.add(&row[..]));
            assert!(with_zeros.numbers == kept.numbers && with_zeros.others == kept.others);
        }
    }

    #[test]
    fn zeros_count_in_ranges_and_moments() {
        for schema in schemas() {
            let (all, kept) = both_forms(&schema);
            let (ranges, moments) = (kept.ranges(), kept.moments());
            for (column, (low, high)) in kept.bounds.iter().enumerate() {
                let values = || all.iter().map(|row| (row[column] - low) / (high - low));
                let (least, most) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
                let mean = values().sum::<f64>() / 20.0;
                let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / 20.0;
                assert_close(ranges[column].0, least);
                assert_close(ranges[column].1, most - least);
                assert_close(moments[column].0, mean);
                assert_close(moments[column].1, variance.sqrt());
            }
        }
    }

    /// The solver's form against all columns of all rows.
    #[test]
    fn fits_do_not_depend_on_how_rows_are_kept() {
        for schema in schemas() {
            let (_, kept) = both_forms(&schema);
            let columns = kept.columns();
            let (centre, deviation): (Vec<f64>, Vec<f64>) = kept.moments().into_iter().unzip();
            let scale: Vec<f64> = deviation.iter().map(|deviation| 1.0 / (deviation + 0.1)).collect();
            let centre = [&[0.0], &centre[1..]].concat();
            let targets: Vec<f64> = (0..20).map(|row| f64::from(row * row % 7) - 3.0).collect();
            let all = FeatureTable::packed(kept.written_out(&centre, &scale), columns);
            let expected = least_squares::fit(&all, &targets, 0.1).expect("a solution");
            let solvable = kept.solvable(&centre, &scale);
            let found = least_squares::fit(&solvable.features, &targets, 0.1).expect("a solution");
            assert!(solvable.columns[0] != 0, "some columns are listed");
            assert!(solvable.columns.len() == columns && found.len() == columns);
            for (column, found) in solvable.columns.into_iter().zip(found) {
                assert!((found - expected[column]).abs() < 1e-9, "{column}: {found} {}", expected[column]);
            }
        }
    }
}
