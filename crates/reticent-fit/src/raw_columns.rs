//! The columns of a row in the user's units, for a model to score: all of them, or those that are not 0.

use reticent_core::coding::Coding;
use reticent_core::record::Cell;

/// Columns of a row, the intercept first.
pub trait Columns {
    /// Place and value of every column that may not be 0, ascending.
    fn nonzero(&self) -> impl Iterator<Item = (usize, f64)>;

    /// Number of columns, with those that are 0.
    fn count(&self) -> usize;
}

impl<T: AsRef<[f64]> + ?Sized> Columns for T {
    fn nonzero(&self) -> impl Iterator<Item = (usize, f64)> {
        self.as_ref().iter().copied().enumerate()
    }

    fn count(&self) -> usize {
        self.as_ref().len()
    }
}

/// One row after another, as [`Coding::raw_columns`] writes them, without a look at categories that it has not and at what it does not list: of
/// a million columns it has a few dozen.
pub struct RawColumns<'c> {
    coding: &'c Coding,
    /// Place and value of every column that may not be 0, ascending.
    values: Vec<(usize, f64)>,
}

impl<'c> RawColumns<'c> {
    /// No row yet.
    #[must_use]
    pub fn new(coding: &'c Coding) -> Self {
        Self { coding, values: Vec::new() }
    }

    /// Takes the cells of a row, one a feature, and the features that are not 0 in it, where its file tells: all others are.
    ///
    /// # Panics
    /// When there are not as many cells as the coding has features.
    pub fn set(&mut self, cells: &[Cell], given: Option<&[usize]>) {
        let Self { coding, values } = self;
        values.clear();
        coding.for_each_raw_placed(cells, |column, value| values.push((column, value)));
        let Some(listed) = coding.listed() else { return };
        let placed = values.len();
        let mut take = |place: usize, feature: usize| {
            if let Cell::Number(value) = cells[feature] {
                values.push((listed.first_column() + place, value));
            }
        };
        match given {
            None => listed.features().iter().enumerate().for_each(|(place, feature)| take(place, *feature)),
            Some(given) => {
                for feature in given {
                    if let Ok(place) = listed.features().binary_search(feature) {
                        take(place, *feature);
                    }
                }
                values[placed..].sort_unstable_by_key(|(column, _)| *column);
            }
        }
    }
}

impl Columns for RawColumns<'_> {
    fn nonzero(&self) -> impl Iterator<Item = (usize, f64)> {
        self.values.iter().copied()
    }

    fn count(&self) -> usize {
        self.coding.columns().len()
    }
}
