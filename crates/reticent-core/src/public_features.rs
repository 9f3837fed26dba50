//! Features that are public to the fitter because only labels are protected.

/// Columns of all rows as [`crate::encoding::Encoding::plain`] makes them, before any norm rule: the intercept 1, numbers in
/// `[0, 1]`, one 1 in each block of categories.
///
/// Under label adjacency features are not protected at all; under any other adjacency nothing makes one of these.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicFeatures {
    /// Columns a row, the intercept first.
    pub columns: usize,
    /// Values, row after row.
    pub values: Vec<f64>,
}

impl PublicFeatures {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }
}
