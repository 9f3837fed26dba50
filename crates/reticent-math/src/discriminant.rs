//! The direction in which two samples of vectors differ most: Fisher's linear discriminant.

use faer::linalg::solvers::Solve;
use faer::{Mat, Side};

/// Coordinates up to which covariances between them are estimated; beyond, each coordinate counts by its own variance.
const FULL_COVARIANCE_MAX: usize = 32;

/// `S^-1 (mean of second - mean of first)`, with `S` the covariance within the samples, pooled.
///
/// Among linear statistics it tells two normal samples with covariance `S` apart best (Fisher 1936). Each sample has one
/// vector an observation, all of the same length; a coordinate that never varies gets weight 0.
///
/// # Panics
/// When a sample has fewer than two observations, or lengths differ.
#[must_use]
pub fn direction(first: &[Vec<f64>], second: &[Vec<f64>]) -> Vec<f64> {
    let (first_mean, second_mean) = (mean(first), mean(second));
    let difference: Vec<f64> = second_mean.iter().zip(&first_mean).map(|(second, first)| second - first).collect();
    let coordinates = difference.len();
    let observations = (first.len() + second.len()) as f64;
    let centred = || {
        let first = first.iter().map(|one| (one, &first_mean));
        first.chain(second.iter().map(|one| (one, &second_mean)))
    };
    let mut variances = vec![0.0; coordinates];
    for (one, mean) in centred() {
        for ((variance, value), mean) in variances.iter_mut().zip(one).zip(mean) {
            *variance += (value - mean).powi(2) / observations;
        }
    }
    let by_variance = |place: usize| if variances[place] > 0.0 { difference[place] / variances[place] } else { 0.0 };
    if coordinates > FULL_COVARIANCE_MAX {
        return (0..coordinates).map(by_variance).collect();
    }
    // In units of standard deviations, so that the small ridge that keeps the matrix invertible means the same everywhere.
    let unit = |place: usize| if variances[place] > 0.0 { variances[place].sqrt() } else { 1.0 };
    let mut covariance = Mat::<f64>::zeros(coordinates, coordinates);
    for (one, mean) in centred() {
        for column in 0..coordinates {
            let right = (one[column] - mean[column]) / unit(column);
            for row in column..coordinates {
                covariance[(row, column)] += (one[row] - mean[row]) / unit(row) * right / observations;
            }
        }
    }
    for place in 0..coordinates {
        covariance[(place, place)] += 1e-3;
    }
    let scaled = Mat::from_fn(coordinates, 1, |row, _| difference[row] / unit(row));
    match covariance.llt(Side::Lower) {
        Ok(factor) => {
            let solved = factor.solve(&scaled);
            (0..coordinates).map(|place| solved[(place, 0)] / unit(place)).collect()
        }
        Err(_) => (0..coordinates).map(by_variance).collect(),
    }
}

/// `sum_j (mean difference_j / deviation_j)²` less what it is on average for equal samples: how far two samples are apart,
/// squared, in standard deviations; an estimate, below zero at times.
///
/// # Panics
/// As [`direction`].
#[must_use]
pub fn separation_square(first: &[Vec<f64>], second: &[Vec<f64>]) -> f64 {
    let (first_mean, second_mean) = (mean(first), mean(second));
    let variance = |sample: &[Vec<f64>], mean: f64, place: usize| {
        sample.iter().map(|one| (one[place] - mean).powi(2)).sum::<f64>() / (sample.len() - 1) as f64
    };
    let by_chance = 1.0 / first.len() as f64 + 1.0 / second.len() as f64;
    (0..first_mean.len())
        .map(|place| {
            let pooled =
                0.5 * (variance(first, first_mean[place], place) + variance(second, second_mean[place], place));
            if pooled > 0.0 { (second_mean[place] - first_mean[place]).powi(2) / pooled - by_chance } else { 0.0 }
        })
        .sum()
}

fn mean(sample: &[Vec<f64>]) -> Vec<f64> {
    assert!(sample.len() > 1, "a sample has at least two observations");
    let mut mean = vec![0.0; sample[0].len()];
    for one in sample {
        assert_eq!(one.len(), mean.len(), "observations have one length");
        mean.iter_mut().zip(one).for_each(|(mean, value)| *mean += value / sample.len() as f64);
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Corners of a square, sheared: covariance [[1, 1/2], [1/2, 1/2]], twice.
    fn sheared(shift: [f64; 2]) -> Vec<Vec<f64>> {
        let corners = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]];
        corners.iter().map(|[x, y]| vec![x + shift[0], 0.5 * (x + y) + shift[1]]).collect()
    }

    #[test]
    fn the_direction_is_that_of_the_inverse_covariance() {
        // By hand: inverse of [[1, .5], [.5, .5]] is [[2, -2], [-2, 4]]; times (1, 0) it is (2, -2).
        let found = direction(&sheared([0.0, 0.0]), &sheared([1.0, 0.0]));
        assert!((found[0] - 2.0).abs() < 0.02 && (found[1] + 2.0).abs() < 0.02, "{found:?}");
        // Many coordinates are taken one by one, those without variance not at all.
        let wide = |sample: Vec<Vec<f64>>| -> Vec<Vec<f64>> {
            sample
                .into_iter()
                .map(|mut one| {
                    one.resize(40, 7.0);
                    one
                })
                .collect()
        };
        let found = direction(&wide(sheared([0.0, 0.0])), &wide(sheared([1.0, 2.0])));
        assert!((found[0] - 1.0).abs() < 1e-12 && (found[1] - 4.0).abs() < 1e-12, "{found:?}");
        assert!(found[2..].iter().all(|weight| *weight == 0.0));
    }

    #[test]
    fn separation_is_counted_in_deviations_without_what_chance_gives() {
        let found = separation_square(&sheared([0.0, 0.0]), &sheared([2.0, 0.0]));
        // Sample variance with n - 1 of (1, 1, -1, -1) is 4/3; chance gives 1/4 + 1/4 a coordinate.
        assert!((found - (4.0 / (4.0 / 3.0) - 0.5 - 0.5)).abs() < 1e-12, "{found}");
    }
}
