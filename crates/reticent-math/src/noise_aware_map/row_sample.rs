//! Rows that are spread over a long table: of how the release moves with the parameters they say enough for all but the last steps to a mode.

use faer::Mat;

use super::Statistic;

/// Rows that stand for all, with their vectors.
pub(super) struct RowSample {
    features: Mat<f64>,
    vectors: Mat<f64>,
    rows_each: f64,
}

impl RowSample {
    /// None of a table that is not many times longer: its own sums cost little.
    pub(super) fn of_long_table(statistic: &Statistic<'_>) -> Option<Self> {
        let rows = statistic.features.nrows();
        (rows >= TIMES_LONGER * ROWS).then(|| Self {
            features: statistic.features.spread(ROWS),
            vectors: statistic.rows.spread(ROWS),
            rows_each: rows as f64 / ROWS as f64,
        })
    }

    /// How many rows each of the sample stands for.
    pub(super) fn rows_each(&self) -> f64 {
        self.rows_each
    }

    /// A release with these rows in place of its own.
    pub(super) fn of<'a>(&'a self, statistic: &Statistic<'a>) -> Statistic<'a> {
        Statistic { features: self.features.as_ref().into(), rows: self.vectors.as_ref().into(), ..*statistic }
    }
}

/// Rows of a sample, and how many times as long a table is that has one.
const ROWS: usize = 20_000;
const TIMES_LONGER: usize = 8;
