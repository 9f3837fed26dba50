//! The columns of a row in the user's units, for a model to score: all of them, or those that are not 0.

use reticent_core::coding::Coding;
use reticent_core::record::Cell;

/// Columns of a row, the intercept first.
pub trait Columns {
    /// Place and value of every column that may not be 0, ascending.
    fn nonzero(&self) -> impl Iterator<Item = (usize, f64)>;
}

impl<T: AsRef<[f64]> + ?Sized> Columns for T {
    fn nonzero(&self) -> impl Iterator<Item = (usize, f64)> {
        self.as_ref().iter().copied().enumerate()
    }
}

/// One row after another, as [`Coding::raw_columns`] writes them, without a look at what a row does not list: of a million columns
/// it has a few dozen.
pub struct RawColumns {
    coding: Coding,
    values: Vec<f64>,
    /// Columns that have a place in every row.
    placed: usize,
    /// The others that may not be 0, ascending.
    listed: Vec<usize>,
}

impl RawColumns {
    /// No row yet.
    #[must_use]
    pub fn new(coding: Coding) -> Self {
        let columns = coding.columns().len();
        let placed = coding.listed().map_or(columns, |listed| listed.first_column());
        Self { coding, values: vec![0.0; columns], placed, listed: Vec::new() }
    }

    /// Takes the cells of a row, one a feature, and the features that are not 0 in it, where its file tells: all others are.
    ///
    /// # Panics
    /// When there are not as many cells as the coding has features.
    pub fn set(&mut self, cells: &[Cell], given: Option<&[usize]>) {
        self.listed.drain(..).for_each(|column| self.values[column] = 0.0);
        self.coding.raw_placed_columns(cells, &mut self.values[..self.placed]);
        let Some(listed) = self.coding.listed() else { return };
        let mut take = |place: usize, feature: usize| {
            if let Cell::Number(value) = cells[feature] {
                self.values[self.placed + place] = value;
                self.listed.push(self.placed + place);
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
                self.listed.sort_unstable();
            }
        }
    }
}

impl Columns for RawColumns {
    fn nonzero(&self) -> impl Iterator<Item = (usize, f64)> {
        let placed = self.values[..self.placed].iter().copied().enumerate();
        placed.chain(self.listed.iter().map(|column| (*column, self.values[*column])))
    }
}
