//! Which public vector stands for each row in `t = D^T y + noise`, when features are public and labels are private.
//!
//! Whatever the vectors are, privacy needs only their largest norm. So they are chosen for the estimate: of all `d_i` with
//! `||d_i|| <= 1`, those that make the expected excess loss of the noise-aware estimate small.
//!
//! ```text
//!   J = a D^T X     C = b D^T D + S^2 I     H = J^T C^-1 J + P     risk(D) = tr(H^-1 F) / 2,   F = f X^T X
//!   B = C^-1 J      Psi = H^-1 F H^-1       stationary:
//!   (B Psi B^T + lambda_i I) d_i = (a/b) B Psi x_i,   lambda_i >= 0, and 0 where ||d_i|| < 1
//! ```
//! A row whose solution with `lambda_i = 0` is short keeps it; a longer one is drawn to the unit ball in the metric of
//! `B Psi B^T`. The equation is iterated from clipped whitened rows. Every iterate is valid: it is a function of public
//! features, and the integers made of it are checked.

use faer::linalg::solvers::Solve;
use faer::{Mat, MatRef, RowRef};
use rayon::prelude::*;
use thiserror::Error;

use crate::product::product;
use crate::public_rows::PublicRows;
use crate::symmetric_factors::{cholesky, eigen};

/// Largest norm of an integer row: `d_i = q_i / 2^20`.
pub const INTEGER_NORM: i32 = 1 << 20;

/// Rows that the map is fitted to; of a longer table, rows that are spread over it. More would not change it noticeably.
const ROWS_FITTED: usize = 20_000;

/// Public features that give no design.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DesignError {
    /// No column has a value other than zero, or there is no row.
    #[error(
        "the public features have no row, or no column with a value other than zero; check the features file or the schema"
    )]
    Empty,
    /// A value that is not a number, or not finite.
    #[error("the public features hold a value that is not a finite number; replace missing values first")]
    NotFinite,
    /// The linear algebra failed.
    #[error("the public features are too badly scaled for a design; scale every column to [0, 1]")]
    Scale,
}

/// How the released statistic answers to the parameters and to the labels, at the public reference point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curvature {
    /// `a`: derivative of a row's mean with its score.
    pub slope: f64,
    /// `b`: variance of a row's label.
    pub variance: f64,
    /// `f`: second derivative of a row's loss with its score.
    pub loss: f64,
}

impl Curvature {
    /// Logistic regression where every row has probability `rate` (public: 1/2 when nothing is known).
    #[must_use]
    pub fn logistic(rate: f64) -> Self {
        let variance = rate * (1.0 - rate);
        Self { slope: variance, variance, loss: variance }
    }

    /// Multinomial regression with equally likely classes, in an orthonormal basis of contrasts: `1 / classes` each.
    #[must_use]
    pub fn multinomial(classes: usize) -> Self {
        let variance = 1.0 / classes as f64;
        Self { slope: variance, variance, loss: variance }
    }

    /// Linear regression whose label has about this variance around its mean.
    #[must_use]
    pub fn linear(variance: f64) -> Self {
        Self { slope: 1.0, variance, loss: 1.0 }
    }
}

/// A public map from a feature row to its vector, of norm at most 1: a pure function of that row.
#[derive(Clone, Debug)]
pub struct RowMap {
    /// `(a/b) E^T B Psi`, outputs × columns; `E` holds the eigenvectors of `B Psi B^T`.
    directions: Mat<f64>,
    /// Eigenvalues of `B Psi B^T`, one an output.
    stiffness: Vec<f64>,
    /// The risk `tr(H^-1 F) / 2` on the rows that it was fitted to, a row.
    excess_loss: f64,
}

/// Fits the map to public features.
///
/// `features` is n × k; `noise` is the standard deviation `S` of one coordinate of the release, for vectors of norm 1;
/// `prior` is the prior's precision `P`, k × k and positive definite. Outputs: the rank of the features.
/// Cost: about `10 n k^2` for up to 20,000 rows.
/// Source: derived above; bounded-influence designs of this kind go back to Krasker and Welsch 1982.
///
/// # Errors
/// [`DesignError`] when the features are empty, not finite or too badly scaled.
pub fn fit<'a>(
    features: impl Into<PublicRows<'a>>,
    curvature: Curvature,
    noise: f64,
    prior: MatRef<'_, f64>,
) -> Result<RowMap, DesignError> {
    let features = features.into();
    let sample = sample(features)?;
    let scale = features.nrows() as f64 / sample.nrows() as f64;
    let gram = sample.transpose() * &sample * faer::Scale(scale);
    let fisher = &gram * faer::Scale(curvature.loss);
    let fit = Fit { sample: &sample, scale, fisher: &fisher, curvature, noise, prior };

    let mut best = whitening(&gram, features.nrows())?;
    let (risk, mut aim) = fit.risk_and_aim(&best)?;
    best.excess_loss = risk;
    let (mut current, mut share): (Option<(f64, Equation)>, f64) = (None, 1.0);
    for _ in 0..ITERATIONS {
        let (before, equation) = match &current {
            None => (f64::INFINITY, aim.clone()),
            Some((risk, solved)) => (*risk, solved.toward(&aim, share)),
        };
        // A step to where numbers are too far apart for the algebra is one that does not lower the risk.
        let solved = equation.map().and_then(|(map, turn)| Ok((fit.risk_and_aim(&map)?, map, turn)));
        if let Ok(((risk, next), mut map, turn)) = solved
            && risk < before
        {
            map.excess_loss = risk;
            (aim, share) = (next, (GROWTH * share).min(1.0));
            current = Some((risk, equation.turned(&turn)));
            if risk < best.excess_loss {
                best = map;
            }
            if risk > before * (1.0 - CONVERGED) {
                break;
            }
        } else {
            share /= 2.0;
            // The first equation is taken whole: there is nothing to step back to.
            if share < SHARE_LEAST || current.is_none() {
                break;
            }
        }
    }
    Ok(best)
}

/// Most maps that are tried.
const ITERATIONS: usize = 16;
/// Relative fall of the risk below which the equation counts as solved.
const CONVERGED: f64 = 1e-4;
/// Where noise hides most of what the labels say, whole steps lead back and forth between maps that are worse than one between them; so a
/// step that does not lower the risk is halved, down to this share, and one that does is lengthened by less: the next need not fail again.
const SHARE_LEAST: f64 = 1.0 / 16.0;
const GROWTH: f64 = 1.5;

/// What the risk is taken over.
struct Fit<'a> {
    sample: &'a Mat<f64>,
    /// Rows that one of the sample stands for.
    scale: f64,
    fisher: &'a Mat<f64>,
    curvature: Curvature,
    noise: f64,
    prior: MatRef<'a, f64>,
}

impl Fit<'_> {
    /// Risk of a map, a row, and the equation that its own `B` and `Psi` make.
    fn risk_and_aim(&self, map: &RowMap) -> Result<(f64, Equation), DesignError> {
        let rows = map.apply(self.sample.as_ref());
        let (cross, square) = (
            rows.transpose() * self.sample * faer::Scale(self.scale),
            rows.transpose() * &rows * faer::Scale(self.scale),
        );
        let outputs = square.nrows();
        let jacobian = &cross * faer::Scale(self.curvature.slope);
        let covariance = &square * faer::Scale(self.curvature.variance)
            + Mat::<f64>::identity(outputs, outputs) * faer::Scale(self.noise * self.noise);
        let weighted = cholesky(&covariance).ok_or(DesignError::Scale)?.solve(&jacobian);
        let precision = symmetric(&(jacobian.transpose() * &weighted + self.prior));
        let factor = cholesky(&precision).ok_or(DesignError::Scale)?;
        let half = factor.solve(self.fisher);
        let risk = (0..half.nrows()).map(|index| half[(index, index)]).sum::<f64>()
            / (2.0 * self.scale * self.sample.nrows() as f64);
        let psi = symmetric(&factor.solve(&half.transpose().to_owned()));
        let directions = &weighted * &psi;
        let stiffness = symmetric(&(&directions * weighted.transpose()));
        let ratio = self.curvature.slope / self.curvature.variance;
        Ok((risk, Equation { stiffness, directions: directions * faer::Scale(ratio) }))
    }
}

/// The stationary equation, whose solution is a map: `B Psi B^T` and `(a/b) B Psi`. It is these that are mixed on the way from one equation to
/// another: mixing `B` and `Psi` themselves leads past the better maps, and the way ends early.
#[derive(Clone)]
struct Equation {
    stiffness: Mat<f64>,
    directions: Mat<f64>,
}

impl Equation {
    /// A share of the way to another one.
    fn toward(&self, other: &Self, share: f64) -> Self {
        let mix = |from: &Mat<f64>, to: &Mat<f64>| from * faer::Scale(1.0 - share) + to * faer::Scale(share);
        Self { stiffness: mix(&self.stiffness, &other.stiffness), directions: mix(&self.directions, &other.directions) }
    }

    /// The same for outputs in the basis of these eigenvectors.
    fn turned(&self, eigenvectors: &Mat<f64>) -> Self {
        let back = eigenvectors.transpose();
        Self { stiffness: symmetric(&(back * &self.stiffness * eigenvectors)), directions: back * &self.directions }
    }

    /// The map that solves it, and the eigenvectors that its outputs are in the basis of.
    fn map(&self) -> Result<(RowMap, Mat<f64>), DesignError> {
        let eigen = eigen(self.stiffness.as_ref()).ok_or(DesignError::Scale)?;
        let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
        let floor = values.iter().fold(0.0, |largest: f64, &value| largest.max(value)) * 1e-12;
        let map = RowMap {
            directions: eigen.U().transpose() * &self.directions,
            stiffness: values.into_iter().map(|value| value.max(floor)).collect(),
            excess_loss: f64::INFINITY,
        };
        Ok((map, eigen.U().to_owned()))
    }
}

impl RowMap {
    /// Number of values that stand for a row: the rank of the features.
    #[must_use]
    pub fn outputs(&self) -> usize {
        self.stiffness.len()
    }

    /// Expected excess loss of a row under the prior, at the public reference point: what the map was chosen to make small.
    #[must_use]
    pub fn excess_loss(&self) -> f64 {
        self.excess_loss
    }

    /// The vectors of some rows: n × outputs, each of norm at most 1 (up to rounding).
    #[must_use]
    pub fn apply(&self, features: MatRef<'_, f64>) -> Mat<f64> {
        let mut mapped = product(features, self.directions.transpose());
        let mut row = vec![0.0; self.outputs()];
        for index in 0..mapped.nrows() {
            for (output, value) in row.iter_mut().enumerate() {
                *value = mapped[(index, output)];
            }
            let multiplier = multiplier(&row, &self.stiffness);
            for (output, value) in row.iter().enumerate() {
                mapped[(index, output)] = value / (self.stiffness[output] + multiplier);
            }
        }
        mapped
    }

    /// The same as integers in steps of `1 / INTEGER_NORM`, row after row of `width`, with zeros behind the outputs; the norm of every integer row is
    /// at most [`INTEGER_NORM`].
    ///
    /// # Panics
    /// When the outputs are more than `width`.
    #[must_use]
    pub fn integer_rows<'a>(&self, features: impl Into<PublicRows<'a>>, width: usize) -> Vec<i32> {
        integers_of_blocks(features.into(), width, |block| integers_within(self.apply(block).as_ref(), 1.0))
    }
}

/// `factor` times the rows as integers, in steps of `1 / INTEGER_NORM` and no longer than that, row after row.
#[must_use]
pub fn integer_multiples<'a>(rows: impl Into<PublicRows<'a>>, factor: f64) -> Vec<i32> {
    let rows = rows.into();
    integers_of_blocks(rows, rows.ncols(), |block| integers_within(block, factor))
}

/// What `of_block` makes of each block of rows, as many integers a row, each row at the beginning of one of `width`.
fn integers_of_blocks(
    rows: PublicRows<'_>,
    width: usize,
    of_block: impl Fn(MatRef<'_, f64>) -> Vec<i32> + Sync,
) -> Vec<i32> {
    let length = rows.rows_of_part();
    let mut integers = vec![0; rows.nrows() * width];
    let blocks = integers.par_chunks_mut(length * width).enumerate();
    blocks.for_each_init(Vec::new, |room, (block, integers)| {
        let (first, count) = (block * length, integers.len() / width);
        let made = of_block(rows.block(first..first + count, room));
        let outputs = made.len() / count;
        for (row, made) in integers.chunks_exact_mut(width).zip(made.chunks_exact(outputs)) {
            row[..outputs].copy_from_slice(made);
        }
    });
    integers
}

/// `factor · rows` as integers: times [`INTEGER_NORM`], truncated toward zero, row after row.
///
/// A row longer than 1 is shortened first, and the integers' norm is checked: it never exceeds [`INTEGER_NORM`]. A row
/// that is not finite becomes zero.
fn integers_within(rows: MatRef<'_, f64>, factor: f64) -> Vec<i32> {
    let limit = i128::from(INTEGER_NORM) * i128::from(INTEGER_NORM);
    let columns = rows.ncols();
    let (mut integers, mut row) = (vec![0; rows.nrows() * columns], vec![0.0; columns]);
    for (index, whole) in integers.chunks_exact_mut(columns.max(1)).enumerate() {
        row.iter_mut().zip(rows.row(index).iter()).for_each(|(to, value)| *to = value * factor);
        let square: f64 = row.iter().map(|value| value * value).sum();
        // The slower norm has no squares that are too large.
        let norm = if square.is_finite() { square.sqrt() } else { RowRef::from_slice(&row).norm_l2() };
        // NaN compares false: such a row is not usable either.
        if !norm.is_finite() {
            continue;
        }
        let mut scale = f64::from(INTEGER_NORM) / norm.max(1.0);
        loop {
            whole.iter_mut().zip(&row).for_each(|(to, value)| *to = (value * scale) as i32);
            let square: i128 = whole.iter().map(|&value| i128::from(value) * i128::from(value)).sum();
            if square <= limit {
                break;
            }
            scale *= 1.0 - 1e-9;
        }
    }
    integers
}

/// `lambda >= 0` with `sum_j (u_j / (w_j + lambda))^2 <= 1`, the smallest: by Newton's method on `1 / norm`.
fn multiplier(row: &[f64], stiffness: &[f64]) -> f64 {
    let norm_and_slope = |lambda: f64| {
        row.iter().zip(stiffness).fold((0.0, 0.0), |(norm, slope): (f64, f64), (value, stiffness)| {
            let part = (value / (stiffness + lambda)).powi(2);
            (norm + part, slope + part / (stiffness + lambda))
        })
    };
    let mut lambda = 0.0;
    for _ in 0..100 {
        let (square, slope) = norm_and_slope(lambda);
        if square <= 1.0 + 1e-12 {
            break;
        }
        // 1/norm is concave in lambda, so the steps come from the left and never pass the solution.
        lambda += square * (square.sqrt() - 1.0) / slope;
    }
    lambda
}

/// The start: whitened rows, clipped at their root mean square norm.
fn whitening(gram: &Mat<f64>, rows: usize) -> Result<RowMap, DesignError> {
    let eigen = eigen(gram.as_ref()).ok_or(DesignError::Scale)?;
    let values: Vec<f64> = eigen.S().column_vector().iter().copied().collect();
    let largest = values.iter().fold(0.0, |largest: f64, &value| largest.max(value));
    let kept: Vec<usize> = (0..values.len()).filter(|&index| values[index] > largest * 1e-10).collect();
    if kept.is_empty() {
        return Err(DesignError::Empty);
    }
    let columns = gram.nrows();
    Ok(RowMap {
        directions: Mat::from_fn(kept.len(), columns, |output, column| {
            eigen.U()[(column, kept[output])] / values[kept[output]].sqrt()
        }),
        // Squared whitened norms add up to the rank over all rows.
        stiffness: vec![(kept.len() as f64 / rows as f64).sqrt(); kept.len()],
        excess_loss: f64::INFINITY,
    })
}

fn sample(features: PublicRows<'_>) -> Result<Mat<f64>, DesignError> {
    let rows = features.nrows();
    if rows == 0 || features.ncols() == 0 {
        return Err(DesignError::Empty);
    }
    let sample = features.spread(ROWS_FITTED);
    if (0..sample.ncols()).any(|column| !sample.col(column).iter().all(|value| value.is_finite())) {
        return Err(DesignError::NotFinite);
    }
    Ok(sample)
}

/// Rounding makes a product slightly unsymmetric; the factorisations read one half.
pub(crate) fn symmetric(matrix: &Mat<f64>) -> Mat<f64> {
    (matrix + matrix.transpose()) * faer::Scale(0.5)
}

#[cfg(test)]
mod optimal_covariance;

#[cfg(test)]
mod tests {
    use super::optimal_covariance::{optimal_covariance, prior_aware_metric};
    use super::*;
    use crate::noise_aware_map::{Prior, ResponseModel};
    use faer::Side;
    use proptest::prelude::*;

    /// Correlated columns in [0, 1] after an intercept.
    fn features(rows: usize, columns: usize) -> Mat<f64> {
        let uniform = |seed: usize| (seed as f64 * 0.754_877_666_246_692_8).fract();
        Mat::from_fn(rows, columns, |row, column| {
            if column == 0 { 1.0 } else { 0.8 * uniform(row + 1) + 0.2 * uniform((row + 3) * (7 * column + 5)) }
        })
    }

    fn risk(features: &Mat<f64>, rows: &Mat<f64>, noise: f64, prior: &Mat<f64>) -> f64 {
        let jacobian = rows.transpose() * features * faer::Scale(0.25);
        let covariance = rows.transpose() * rows * faer::Scale(0.25)
            + Mat::<f64>::identity(rows.ncols(), rows.ncols()) * faer::Scale(noise * noise);
        let weighted = covariance.llt(Side::Lower).expect("positive").solve(&jacobian);
        let precision = symmetric(&(jacobian.transpose() * &weighted + prior));
        let fisher = features.transpose() * features * faer::Scale(0.25);
        let solved = precision.llt(Side::Lower).expect("positive").solve(&fisher);
        (0..solved.nrows()).map(|index| solved[(index, index)]).sum::<f64>() / (2.0 * features.nrows() as f64)
    }

    #[test]
    fn the_design_beats_clipping_to_the_longest_row_and_the_optimal_covariance() {
        let (features, noise) = (features(3000, 8), 8.0);
        let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None).precision(0.5);
        let map = fit(features.as_ref(), Curvature::logistic(0.5), noise, prior.as_ref()).expect("full rank");
        let rows = map.apply(features.as_ref());
        assert!(PublicRows::from(rows.as_ref()).longest_row() < 1.0 + 1e-9);
        let designed = risk(&features, &rows, noise, &prior);
        assert!((designed / map.excess_loss() - 1.0).abs() < 1e-6, "the map knows its risk");
        let isotropic = &features * faer::Scale(1.0 / PublicRows::from(features.as_ref()).longest_row());
        let metric = prior_aware_metric(features.as_ref(), 0.25, 0.3).expect("full rank");
        let optimal = optimal_covariance(features.as_ref(), metric.as_ref(), 300).expect("full rank");
        let optimal = risk(&features, &(&features * optimal.transpose()), noise, &prior);
        assert!(designed < 0.5 * risk(&features, &isotropic, noise, &prior), "against isotropic noise");
        assert!(designed < 0.95 * optimal, "{designed} against {optimal}");
    }

    /// Where noise hides effects of many columns, vectors that only count the labels are better than most: the design is no worse than those.
    #[test]
    fn a_design_under_noise_is_no_worse_than_one_that_only_counts() {
        let mut uniform = crate::fixed_sequence::FixedSequence::new(3);
        let normal = |uniform: &mut crate::fixed_sequence::FixedSequence| {
            (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0
        };
        let features = Mat::from_fn(2000, 21, |_, column| if column == 0 { 1.0 } else { normal(&mut uniform) });
        let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None).precision(0.22);
        let counts = Mat::from_fn(2000, 1, |_, _| 1.0);
        for noise in [10.0, 30.0, 60.0, 100.0, 300.0] {
            let map = fit(features.as_ref(), Curvature::logistic(0.5), noise, prior.as_ref()).expect("full rank");
            let counting = risk(&features, &counts, noise, &prior);
            assert!(map.excess_loss() < counting * 1.001, "noise {noise}: {} {counting}", map.excess_loss());
        }
    }

    /// Pixels of ten blurred shapes: a few directions vary much and many little, and the way to the best map is long.
    #[test]
    fn no_map_that_was_made_for_other_noise_is_better() {
        let (shapes, side) = (10, 8);
        let mut sequence = crate::fixed_sequence::FixedSequence::new(5);
        let centres = Mat::from_fn(2 * shapes, 2, |_, _| 7.0 * sequence.next_uniform());
        let features = Mat::from_fn(1000, side * side + 1, |row, column| {
            if column == 0 {
                return 1.0;
            }
            let at = [((column - 1) % side) as f64, ((column - 1) / side) as f64];
            let blot = |blot: usize| {
                let jitter = |seed: f64| (row as f64 * seed).sin();
                let x = at[0] - centres[(blot, 0)] - 0.7 * jitter(12.9898);
                let y = at[1] - centres[(blot, 1)] - 0.7 * jitter(78.233);
                (-(x * x + y * y) / 3.0).exp()
            };
            let shape = row % shapes;
            (blot(2 * shape) + blot(2 * shape + 1)).min(1.0)
        });
        let curvature = Curvature::multinomial(shapes);
        let prior = Prior::new(features.as_ref(), ResponseModel::Multinomial { classes: shapes }, None);
        let prior = prior.precision(1.0 / (features.ncols() as f64 - 1.0).sqrt());
        let fisher = features.transpose() * &features * faer::Scale(curvature.loss);
        let noises = [3.0, 6.0, 9.0, 12.0, 15.0, 18.0];
        let maps = noises.map(|noise| fit(features.as_ref(), curvature, noise, prior.as_ref()).expect("full rank"));
        for (noise, own) in noises.into_iter().zip(&maps) {
            let fit = Fit { sample: &features, scale: 1.0, fisher: &fisher, curvature, noise, prior: prior.as_ref() };
            for (made_for, other) in noises.into_iter().zip(&maps) {
                let (risk, _) = fit.risk_and_aim(other).expect("positive");
                assert!(
                    own.excess_loss() < 1.001 * risk,
                    "noise {noise}, map for {made_for}: {} {risk}",
                    own.excess_loss()
                );
            }
        }
    }

    #[test]
    fn no_small_change_of_a_vector_lowers_the_risk_noticeably() {
        let (features, noise) = (features(200, 4), 3.0);
        let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None).precision(0.5);
        let map = fit(features.as_ref(), Curvature::logistic(0.5), noise, prior.as_ref()).expect("full rank");
        let rows = map.apply(features.as_ref());
        let found = risk(&features, &rows, noise, &prior);
        for seed in 0..20 {
            let mut moved = rows.clone();
            for row in 0..moved.nrows() {
                let mut norm = 0.0f64;
                for column in 0..moved.ncols() {
                    moved[(row, column)] += 0.05 * ((seed * 31 + row * 7 + column * 3) as f64 * 1.7).sin();
                    norm += moved[(row, column)].powi(2);
                }
                for column in 0..moved.ncols() {
                    moved[(row, column)] /= norm.sqrt().max(1.0);
                }
            }
            assert!(risk(&features, &moved, noise, &prior) > found * (1.0 - 1e-3), "{seed}");
        }
    }

    #[test]
    fn empty_and_unusable_features_are_errors() {
        let prior = Mat::<f64>::identity(2, 2);
        let run = |features: &Mat<f64>| {
            fit(features.as_ref(), Curvature::logistic(0.5), 1.0, prior.as_ref()).map(|map| map.outputs())
        };
        assert_eq!(run(&Mat::zeros(0, 2)), Err(DesignError::Empty));
        assert_eq!(run(&Mat::zeros(5, 2)), Err(DesignError::Empty));
        assert_eq!(run(&Mat::from_fn(5, 2, |_, _| f64::NAN)), Err(DesignError::NotFinite));
        assert_eq!(run(&Mat::from_fn(5, 2, |row, column| (row * column) as f64)), Ok(1), "one column of zeros");
    }

    proptest! {
        #[test]
        fn integer_rows_never_pass_the_norm(values in prop::collection::vec(prop_oneof![-3.0..3.0f64, Just(1.0), Just(f64::NAN), Just(1e300), Just(0.6), Just(0.8)], 4)) {
            let integers = integer_multiples(MatRef::from_row_major_slice(&values, 2, 2), 1.0);
            prop_assert_eq!(integers.len(), 4);
            for (row, values) in integers.chunks_exact(2).zip(values.chunks_exact(2)) {
                let square: i64 = row.iter().map(|value| i64::from(*value).pow(2)).sum();
                prop_assert!(square <= 1 << 40);
                let norm = values[0].hypot(values[1]);
                if norm.is_finite() {
                    let scale = f64::from(INTEGER_NORM) / norm.max(1.0);
                    prop_assert!((f64::from(row[0]) - values[0] * scale).abs() < 1.01);
                }
            }
        }
    }
}
