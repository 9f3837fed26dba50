//! Rows that are drawn in public, as released marginals say that rows are: what scores and their changes are like where no row is looked at.
//!
//! One category of each feature, as often as its released share; all else as if it were uniform and centred. Features are drawn by themselves. By a
//! fixed sequence: the same public values give the same rows.

use reticent_math::fixed_sequence::FixedSequence;

use crate::released_marginals::{CategoryShares, ScaledColumns};

/// Fewest and most rows that are drawn, and how many weights they may look at together.
const DRAWS: (usize, usize) = (100, 1000);
const WEIGHTS_DRAWN: usize = 10_000_000;

/// What rows are drawn from.
pub(super) struct PublicRows<'a> {
    /// Of the scaled columns over rows; 0 for the intercept.
    pub(super) deviations: Vec<f64>,
    /// Features of which a row has one category.
    pub(super) categories: &'a [CategoryShares],
    /// Of the columns of categories, at their places among all.
    pub(super) centre: &'a [f64],
    pub(super) scale: &'a [f64],
}

/// Scores of public rows by a model, and what a change adds to each: one a class.
pub(super) type PublicScores = Vec<(Vec<f64>, Vec<f64>)>;

impl<'a> PublicRows<'a> {
    pub(super) fn of(scaled: &'a ScaledColumns) -> Self {
        let ScaledColumns { categories, centre, scale, .. } = scaled;
        Self { deviations: scaled.deviations(), categories, centre, scale }
    }

    /// Scores by weights `first`, and what `change` adds to them. Weights are one a column and score, score after score; one score stands for
    /// two classes, and is that of the second.
    pub(super) fn scores(&self, first: &[f64], change: &[f64]) -> PublicScores {
        let draws = (WEIGHTS_DRAWN / first.len()).clamp(DRAWS.0, DRAWS.1);
        let mut sequence = FixedSequence::new(0);
        let mut row = vec![0.0; self.deviations.len()];
        let mut draw = || {
            self.draw(&mut sequence, &mut row);
            let scores_by = |weights: &[f64]| -> Vec<f64> {
                let score = |of_class: &[f64]| of_class.iter().zip(&row).map(|(weight, value)| weight * value).sum();
                let scores: Vec<f64> = weights.chunks_exact(row.len()).map(score).collect();
                if let [score] = scores[..] { vec![0.0, score] } else { scores }
            };
            (scores_by(first), scores_by(change))
        };
        (0..draws).map(|_| draw()).collect()
    }

    fn draw(&self, sequence: &mut FixedSequence, row: &mut [f64]) {
        row[0] = 1.0;
        for (value, deviation) in row.iter_mut().zip(&self.deviations).skip(1) {
            *value = deviation * 3f64.sqrt() * sequence.next_uniform();
        }
        for feature in self.categories {
            let drawn = feature.first + drawn_by(&feature.shares, sequence.next_share());
            for (column, value) in row.iter_mut().enumerate().skip(feature.first).take(feature.shares.len()) {
                *value = self.scale[column] * (f64::from(column == drawn) - self.centre[column]);
            }
        }
    }
}

/// The category that a number from 0 to below 1 stands for. What rounding leaves of the last one's share is the last one's.
fn drawn_by(shares: &[f64], mut left: f64) -> usize {
    let is_drawn = |share: &f64| {
        left -= share;
        left < 0.0
    };
    shares.iter().position(is_drawn).unwrap_or(shares.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_deviation() {
        let rows = PublicRows { deviations: vec![0.0, 0.5, 2.0], categories: &[], centre: &[], scale: &[] };
        let drawn = rows.scores(&[0.3, 0.0, 0.0], &[0.0, 1.0, 0.25]);
        assert_eq!(drawn.len(), 1000);
        assert!(drawn.iter().all(|(before, rises)| before == &[0.0, 0.3] && rises[0].abs() < 1e-12));
        let square: f64 = drawn.iter().map(|(_, rises)| rises[1] * rises[1]).sum::<f64>() / 1000.0;
        // 1/4 + 1/4; the fourth moment of a sum of two uniform numbers: within five errors.
        assert!((square - 0.5).abs() < 0.06, "{square}");
    }

    /// Three categories with shares .2, .3 and .5, the second twice as long: scores are 1, 4 and 3, less the centre's .5.
    #[test]
    fn a_row_has_one_category_of_each_feature() {
        let (shares, centre, scale) = ([0.2, 0.3, 0.5], [0.0, 0.0, 0.25, 0.0], [1.0, 1.0, 2.0, 1.0]);
        let categories = [CategoryShares { first: 1, shares: shares.to_vec(), noise: 0.0 }];
        let deviations = vec![0.0, 0.4, 0.4, 0.4];
        let rows = PublicRows { deviations, categories: &categories, centre: &centre, scale: &scale };
        let drawn = rows.scores(&[0.0; 4], &[0.0, 2.0, 2.0, 3.0]);
        let count = |score: f64| drawn.iter().filter(|(_, rises)| (rises[1] - score).abs() < 1e-12).count();
        let found = [count(1.0), count(3.0), count(2.0)];
        assert_eq!(found.iter().sum::<usize>(), 1000, "each row has one of them: {found:?}");
        for (found, share) in found.into_iter().zip(shares) {
            // Five errors of a share are .07 at most.
            assert!((found as f64 / 1000.0 - share).abs() < 0.07, "{found} {share}");
        }
        assert_eq!([0.0, 0.19, 0.2, 0.49, 0.51].map(|share| drawn_by(&shares, share)), [0, 0, 1, 1, 2]);
        assert_eq!(drawn_by(&shares, 1.0), 2, "what rounding leaves");
    }
}
