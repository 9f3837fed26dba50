//! Features that are public to the fitter because only labels are protected.

use thiserror::Error;

use crate::coding::Coding;

/// Most numbers of all rows together, zeros among them: 2 GiB as codes, and twice as much as the integers that a fit makes of them.
pub const FEATURE_NUMBERS_MAX: u64 = 1 << 30;

/// A table that is too large to be held with all its columns in every row.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "{rows} rows with {columns} columns each are more than the {FEATURE_NUMBERS_MAX} numbers, zeros among them, that are held in memory; \
     list fewer features, categories or hash buckets, or take fewer rows"
)]
pub struct TooManyNumbers {
    rows: u64,
    columns: usize,
}

/// Columns of all rows as [`crate::encoding::Encoding::plain`] makes them, before any norm rule: the intercept 1, numbers in
/// `[0, 1]`, one 1 in each block of categories. All are kept as the codes that tables hold anyway.
///
/// Under label adjacency features are not protected at all; under any other adjacency nothing makes one of these.
#[derive(Clone, Debug, PartialEq)]
pub struct PublicFeatures {
    /// Columns a row, the intercept first.
    pub columns: usize,
    /// Numbers in `[0, 1]` as shares of [`CODE_MAX`](crate::coding::CODE_MAX), row after row.
    pub codes: Vec<u16>,
}

impl PublicFeatures {
    /// Rows that [`Coding::expand`] wrote one after another.
    #[must_use]
    pub fn of_expanded(coding: &Coding, codes: Vec<u16>) -> Self {
        Self { columns: coding.columns().len(), codes }
    }

    /// Refuses what is too large, before memory is asked for.
    ///
    /// # Errors
    /// [`TooManyNumbers`], with what to do.
    pub fn check_size(rows: u64, columns: usize) -> Result<(), TooManyNumbers> {
        if rows.saturating_mul(columns as u64) > FEATURE_NUMBERS_MAX {
            return Err(TooManyNumbers { rows, columns });
        }
        Ok(())
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.codes.len() / self.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_refused_by_its_shape() {
        assert_eq!(PublicFeatures::check_size(FEATURE_NUMBERS_MAX / 4, 4), Ok(()));
        let error = PublicFeatures::check_size(FEATURE_NUMBERS_MAX / 4 + 1, 4).expect_err("one row too many");
        assert!(error.to_string().starts_with("268435457 rows with 4 columns each are more"), "{error}");
        assert!(PublicFeatures::check_size(u64::MAX, usize::MAX).is_err());
    }
}
