//! Lists of places and values, one after the other: the entries of each row of a table that are not 0, or those of each column.

use std::ops::Range;

/// One list after another.
#[derive(Clone, PartialEq)]
pub struct EntryLists {
    /// Where each list starts, and where the last one ends.
    starts: Vec<usize>,
    places: Vec<u32>,
    values: Vec<f64>,
}

impl Default for EntryLists {
    fn default() -> Self {
        Self { starts: vec![0], places: Vec::new(), values: Vec::new() }
    }
}

impl EntryLists {
    /// Appends a list, of which `entries` gives the places, ascending, and the values.
    pub fn push(&mut self, entries: impl Iterator<Item = (u32, f64)>) {
        for (place, value) in entries {
            self.places.push(place);
            self.values.push(value);
        }
        self.starts.push(self.places.len());
    }

    /// Number of lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries of all lists together.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.places.len()
    }

    /// Places and values of one list, the places ascending.
    ///
    /// # Panics
    /// When there are not so many lists.
    #[inline]
    pub fn list(&self, index: usize) -> impl DoubleEndedIterator<Item = (usize, f64)> + Clone {
        let list = self.starts[index]..self.starts[index + 1];
        self.places[list.clone()].iter().map(|place| *place as usize).zip(self.values[list].iter().copied())
    }

    /// Those entries of a list whose places are within a range.
    #[inline]
    pub(crate) fn within(&self, index: usize, range: &Range<usize>) -> impl Iterator<Item = (usize, f64)> {
        let start = self.starts[index];
        let list = &self.places[start..self.starts[index + 1]];
        let first = list.partition_point(|place| (*place as usize) < range.start);
        let end = list.partition_point(|place| (*place as usize) < range.end);
        let values = &self.values[start + first..start + end];
        list[first..end].iter().map(|place| *place as usize).zip(values.iter().copied())
    }

    /// How many lists have an entry at each of so many places.
    ///
    /// # Panics
    /// When an entry is beyond them.
    #[must_use]
    pub fn counts(&self, places: usize) -> Vec<usize> {
        let mut counts = vec![0; places];
        self.places.iter().for_each(|place| counts[*place as usize] += 1);
        counts
    }

    /// The entries of each place, by the lists that they are in: the columns of a table from its rows.
    ///
    /// # Panics
    /// When an entry is beyond so many places, or there are 2^32 lists.
    #[must_use]
    pub(crate) fn transposed(&self, places: usize) -> Self {
        let mut starts = vec![0];
        for count in self.counts(places) {
            starts.push(starts[starts.len() - 1] + count);
        }
        let mut free = starts.clone();
        let mut transposed = Self { starts, places: vec![0; self.entries()], values: vec![0.0; self.entries()] };
        for index in 0..self.len() {
            let own = u32::try_from(index).expect("fewer rows than 2^32");
            for (place, value) in self.list(index) {
                transposed.places[free[place]] = own;
                transposed.values[free[place]] = value;
                free[place] += 1;
            }
        }
        transposed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_entries_of_the_rows() {
        let mut rows = EntryLists::default();
        let lists: [&[(u32, f64)]; 4] = [&[(0, 1.0), (3, 2.0)], &[], &[(3, 4.0)], &[(0, 5.0), (1, 6.0)]];
        lists.iter().for_each(|list| rows.push(list.iter().copied()));
        let columns = rows.transposed(5);
        let found: Vec<Vec<(usize, f64)>> = (0..columns.len()).map(|column| columns.list(column).collect()).collect();
        assert_eq!(found, [vec![(0, 1.0), (3, 5.0)], vec![(3, 6.0)], vec![], vec![(0, 2.0), (2, 4.0)], vec![]]);
        assert_eq!(rows.counts(5), [2, 1, 0, 2, 0]);
        assert!(columns.transposed(4) == rows);
        assert_eq!(columns.within(0, &(1..4)).collect::<Vec<_>>(), [(3, 5.0)]);
    }
}
