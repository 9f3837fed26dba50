//! Linear regression from one noisy Gram matrix: noise-aware posterior of the coefficients.
//!
//! Given is what a release contains, in units in which a row has norm at most 1 and the target lies in `[-1, 1]`:
//! ```text
//!   G~ = X'X + E      E symmetric Gaussian, standard deviation s off the diagonal and sqrt(2) s on it
//!   t~ = X'y + e      e Gaussian, standard deviation s_t a coordinate
//!   r~ = y'y + f      f Gaussian, standard deviation s_r
//! ```
//! Model: `y = X w + eps`, `eps ~ N(0, sigma²)`, `w ~ N(w0, tau²)`. In an eigenbasis `V` of `G~`, with `g` the estimate of
//! `diag(V' X'X V)` of [`shrunken_spectrum`], `P` the variances of [`UnknownEntries`], `delta = w - w0` and `z = V'(t~ - G~ w0)`:
//! ```text
//!   z_k = g_k delta_k + N(0, v_k),     v_k = s_t² + s² (1 + 1/d) ||w0||² + sum_l P_kl E[delta_l²] + sigma² g_k
//!   delta_k | z ~ N(tau_k² g_k z_k / c_k,  tau_k² v_k / c_k),     c_k = tau_k² g_k² + v_k
//!   r~ - 2 w0't~ + w0'G~ w0  ~  N(n sigma² + E[delta' X'X delta | z],  its variance)
//!   tau_k² = tau² + V_0k⁴ (unit²/3 - tau²)    with an intercept of its own in the first column; tau² without
//! ```
//! With a released mean of the target, of variance `u²`, let `m = unit mean/(1 + 3 u²)`, what it says under a prior of variance
//! 1/3; with a start model, `unit mean`. Without one `w0` is `m` at the intercept; so it is with a start whose intercept is more than `3 unit u` from
//! `unit mean`, and it is then one of its own. In the end the posterior, mean `w` and
//! covariance `C`, is that given one more observation, `m = h'w`, with `h` the means of the columns, 1 for the intercept and nearly zero
//! for centred ones: see `NoisyGram::centre_means`. Where nothing else is known that is the prior given the released mean, once.
//! Along each `v_k` the variance is at least what integrating over the noise of `g_k` gives: see `DoubtfulDirection`.
//! The term with `w0` is the noise of `G~ w0`: a row of `E w0` has variance `s² (||w0||² + w0_k²)`. That with `P` is what is not known
//! of the matrix, times coefficients, of which `E[delta_l²]` is first `tau_l²` and then what is found with that. `tau²` and `sigma²` are
//! integrated over a grid with weights by their marginal likelihood, so nothing is tuned on private data and a release without signal
//! gives coefficients near `w0`.
//!
//! Sources: Bernstein, Sheldon 2019, "Differentially private Bayesian linear regression" (noise-aware posterior); Bun,
//! Allez, Bouchaud, Potters 2016, "Rotational invariant estimator for general noisy matrices" (spectrum). The combination
//! is derived here; row G2 of `docs/formulas.md`.

use faer::Mat;
use faer::linalg::solvers::SelfAdjointEigen;
use thiserror::Error;

use self::doubtful_direction::DoubtfulDirection;
use crate::noisy_spectrum::{UnknownEntries, known_trace, shrunken_spectrum};
use crate::symmetric_factors::eigen;

mod doubtful_direction;

/// Standard deviations of the noise in a release, in the units of the release.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GramNoise {
    /// Of an entry of the matrix off the diagonal; entries on it have `sqrt(2)` times as much.
    pub matrix: f64,
    /// Of a coordinate of `X'y`.
    pub cross: f64,
    /// Of `y'y`.
    pub square: f64,
}

/// Standard deviation, in that of residuals, of what the mean of residuals may be where rows of their own norm have none: no line is quite right.
const MISFIT: f64 = 0.05;

/// A released mean of the target over all rows, each counted as 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetMean {
    /// The mean; the target lies in `[-1, 1]`.
    pub value: f64,
    /// Standard deviation of its noise.
    pub deviation: f64,
}

/// What is known of the target's variance before a model, in squares of its window `[-1, 1]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetVariance {
    /// The variance around its mean.
    pub value: f64,
    /// Standard deviation of its error.
    pub deviation: f64,
}

/// Log-normal hyper-prior of `tau²`: how much of the target's variance slopes of that size would explain together, however many they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlopePrior {
    /// Mean over the rows of a row's squared features, without an intercept, in units in which a coefficient of 1 is [`NoisyGram::unit`].
    pub features_square: f64,
    /// Median of `tau²` times that. A target spread evenly over `[-1, 1]` has a variance of 1/3.
    pub explained: f64,
    /// Standard deviation of its logarithm.
    pub deviation: f64,
}

impl TargetVariance {
    /// The largest that the variance of a difference from predictions of this variance can be: `(v^(1/2) + p^(1/2))²`.
    fn beside(self, predictions: f64) -> Self {
        let times = (1.0 + (predictions / self.value).sqrt()).powi(2);
        Self { value: times * self.value, deviation: times * self.deviation }
    }
}

impl TargetMean {
    /// Where it is expected, of a target that may lie anywhere in `[-1, 1]`: `value / (1 + 3 deviation²)`, as the variance of that is 1/3.
    #[must_use]
    pub fn expected(&self) -> f64 {
        self.value / (1.0 + 3.0 * self.deviation.powi(2))
    }
}

/// A noisy Gram matrix of features and target.
#[derive(Clone, Copy, Debug)]
pub struct NoisyGram<'a> {
    /// Upper triangle of `X'X` row after row, `d (d + 1) / 2` values; a row of `X` has norm at most 1.
    pub upper: &'a [f64],
    /// `X'y`, `d` values; `|y| <= 1`.
    pub cross: &'a [f64],
    /// `y'y`.
    pub square: f64,
    /// Number of rows, if known better than by the trace; it serves the estimate of `sigma²` only.
    pub rows: Option<f64>,
    /// The noise.
    pub noise: GramNoise,
    /// Mean of the prior, `d` values; `None` is zero.
    pub prior_mean: Option<&'a [f64]>,
    /// What a coefficient of 1, for a column of values about 1, is in these units: rows may have been shrunken to norm 1 and
    /// targets left as they are. The hyper-prior of coefficients is in it.
    pub unit: f64,
    /// What is expected of the slopes.
    pub slopes: SlopePrior,
    /// Whether the first column is an intercept with a prior of its own, of standard deviation `unit/sqrt(3)`: a target's mean says
    /// nothing about the size of slopes.
    pub free_intercept: bool,
    /// The mean of the target, where it was released and the first column is an intercept of ones.
    pub target_mean: Option<TargetMean>,
    /// What the mean of each column is from 0, a standard deviation, 0 for the intercept: by it and its weight each column is a part of the mean of the
    /// target. Looked at where that was released.
    pub mean_deviations: &'a [f64],
    /// The variance of the target, where it is known better than by `y'y`, and rows are divided by their own norm: slopes explain no more.
    pub target_variance: Option<TargetVariance>,
}

/// Posterior of the coefficients.
#[derive(Clone, Debug, PartialEq)]
pub struct GramPosterior {
    /// Posterior mean, one weight a column.
    pub weights: Vec<f64>,
    /// Posterior covariance, `d × d`, row after row. It contains sampling error, noise and what is not known of the two
    /// variances.
    pub covariance: Vec<f64>,
    /// Posterior mean of `tau²`, the variance of a coefficient around the prior mean; an intercept of its own is not one of them.
    pub prior_variance: f64,
    /// Posterior mean of `sigma²`, the variance of the target around the model.
    pub residual_variance: f64,
}

/// A release that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GramError {
    /// Lengths that do not belong to one number of columns.
    #[error("a Gram matrix of {columns} columns has {expected} entries in its upper triangle, not {found}")]
    Length {
        /// Columns, by the length of the cross products.
        columns: usize,
        /// Entries that belong to it.
        expected: usize,
        /// Entries found.
        found: usize,
    },
    /// A value that is not finite, or a noise that is not above zero.
    #[error("a release holds finite values and noise above zero; found another: {0}")]
    Value(&'static str),
    /// The eigenvalue iteration did not end.
    #[error("no eigenvalues were found; the matrix holds values out of range")]
    Eigenvalues,
}

/// Grid of `ln (tau²/unit²)`: bounds and number of points.
const PRIOR_GRID: (f64, f64, usize) = (1e-7, 1e3, 49);
/// Grid of `ln sigma²`.
const RESIDUAL_GRID: (f64, f64, usize) = (1e-6, 1.0, 49);
/// How much less is expected around a prior mean: a start is right to a third of a coefficient.
const AROUND_A_START: f64 = 0.1;

/// Standard deviations of its noise that a product with the target is larger than for sure.
const SURE: f64 = 3.0;
/// Share of the target's variance by which it may be wrong over rows that are divided by their own norm.
const OF_LENGTHS: f64 = 0.5;

/// Posterior of the coefficients given a release: see the module.
///
/// # Errors
/// [`GramError`] when lengths or values are not those of a release.
pub fn posterior(release: &NoisyGram<'_>) -> Result<GramPosterior, GramError> {
    check(release)?;
    let moved = release.moved_start();
    let release = &match &moved {
        Some(start) => NoisyGram { prior_mean: Some(start), free_intercept: true, ..*release },
        None => *release,
    };
    let d = release.cross.len();
    let columns = d as f64;
    let noise = release.noise;
    let matrix = symmetric(release.upper, d);
    let eigen = eigen(matrix.as_ref()).ok_or(GramError::Eigenvalues)?;
    let trace = known_trace((0..d).map(|k| matrix[(k, k)]).sum(), (2.0 * columns).sqrt() * noise.matrix);
    let mut spectrum = shrunken_spectrum(&values(&eigen), noise.matrix, trace);
    let rows = release.rows.unwrap_or(trace).max(1.0);

    let intercept = release.intercept();
    let centre = Mat::from_fn(d, 1, |k, _| match (release.prior_mean, intercept) {
        (Some(start), _) => start[k],
        (None, Some(mean)) if k == 0 => mean.value,
        (None, _) => 0.0,
    });
    let centre_square = centre.squared_norm_l2();
    let cross = Mat::from_fn(d, 1, |k, _| release.cross[k]);
    let fitted = &matrix * &centre;
    let remaining = &cross - &fitted;
    let projected = eigen.U().transpose() * &remaining;
    let signal: Vec<f64> = projected.col(0).iter().copied().collect();
    let quadratic: f64 = (0..d).map(|k| centre[(k, 0)] * (fitted[(k, 0)] - 2.0 * cross[(k, 0)])).sum();
    let square = release.square + quadratic;
    let cross_variance = noise.cross.powi(2) + noise.matrix.powi(2) * (1.0 + 1.0 / columns) * centre_square;
    let square_variance = noise.square.powi(2)
        + 4.0 * noise.cross.powi(2) * centre_square
        + 2.0 * noise.matrix.powi(2) * centre_square.powi(2);

    // What the model can explain at most: what is left of the target's squares around the centre.
    let left = square.max(0.0) + 2.0 * square_variance.sqrt();
    // (v'X'y)² <= v'X'Xv · y'y (Cauchy, Schwarz): products with the target tell how small a direction cannot be, where noise hides how large it is.
    for (g, z) in spectrum.iter_mut().zip(&signal) {
        *g = g.max((z.abs() - SURE * cross_variance.sqrt()).max(0.0).powi(2) / left);
    }
    let unknown = UnknownEntries::of(&values(&eigen), &spectrum, noise.matrix);

    // Share of a direction's prior that is the intercept's: all of it where the intercept is a direction of its own.
    let of_intercept: Vec<f64> =
        (0..d).map(|k| if release.free_intercept { eigen.U()[(0, k)].powi(4) } else { 0.0 }).collect();
    let unit_square = release.unit * release.unit;

    let around_start = if release.prior_mean.is_some() { AROUND_A_START } else { 1.0 };
    let hyper = release.slopes;
    let median = hyper.explained * around_start / hyper.features_square;

    let of_start = release.start_variance();
    let limit = release
        .target_variance
        .map(|variance| ExplainedLimit::of(variance.beside(of_start), rows, hyper.features_square));
    let mut mixture = Mixture::new(d);
    let (mut squares, mut of_matrix, mut costs) = (vec![0.0; d], vec![0.0; d], vec![0.0; d]);
    for log_prior in grid(PRIOR_GRID) {
        let prior = log_prior.exp() * unit_square;
        let priors: Vec<f64> = of_intercept.iter().map(|share| prior + share * (unit_square / 3.0 - prior)).collect();
        let log_priors: Vec<f64> = priors.iter().map(|prior| prior.ln()).collect();
        for log_residual in grid(RESIDUAL_GRID) {
            let residual = log_residual.exp();
            // What is not known of the matrix counts by the size of coefficients: first that of the prior, then what is found.
            let mut part = Part::new(d, prior, residual);
            squares.copy_from_slice(&priors);
            for _ in 0..2 {
                unknown.times(&squares, &mut of_matrix);
                for k in 0..d {
                    let g = spectrum[k];
                    let v = cross_variance + of_matrix[k] + residual * g;
                    let c = priors[k] * g * g + v;
                    part.mean[k] = priors[k] * g * signal[k] / c;
                    part.variance[k] = priors[k] * v / c;
                    squares[k] = part.mean[k].powi(2) + part.variance[k];
                    costs[k] = 0.5 * (c.ln() + signal[k] * signal[k] / c);
                }
            }
            let mut cost = 0.5 * ((log_prior - median.ln()) / hyper.deviation).powi(2) + costs.iter().sum::<f64>();
            let (mut explained, mut explained_variance) = (0.0, 0.0);
            for (k, g) in spectrum.iter().enumerate() {
                explained += g * squares[k];
                explained_variance += 2.0 * g * g * part.variance[k] * (squares[k] + part.mean[k].powi(2));
            }
            unknown.times(&squares, &mut of_matrix);
            for (k, noise) in part.noise.iter_mut().enumerate() {
                *noise = cross_variance + of_matrix[k] - unknown.own()[k] * squares[k] + residual * spectrum[k];
            }
            part.log_prior.copy_from_slice(&log_priors);
            let of_unknown: f64 = squares.iter().zip(&of_matrix).map(|(square, entries)| square * entries).sum();
            let spread = square_variance + 2.0 * rows * residual * residual + explained_variance + of_unknown;
            cost += limit.map_or(0.0, |limit| limit.cost(explained));
            cost += 0.5 * ((square - rows * residual - explained).powi(2) / spread + spread.ln());
            mixture.add(&part, cost);
        }
    }
    let explained_max = limit.map_or(left, |limit| left.min(limit.value + limit.deviation));
    let doubts: Vec<f64> = (0..d)
        .map(|k| {
            let like_others = (mixture.sum.log_prior[k] / mixture.weight).exp();
            // A hidden direction is like the others: sized by what the target allows, one that no row lies along would be without bound.
            let stands_out = (1.0 - 2.0 * unknown.own()[k] / spectrum[k].powi(2)).max(0.0);
            let apart = stands_out * (1.0 - of_intercept[k]) * (explained_max / spectrum[k] - like_others);
            let found = mixture.sum.mean[k] / mixture.weight;
            let direction = DoubtfulDirection {
                weight: spectrum[k],
                weight_variance: unknown.own()[k],
                signal: signal[k],
                noise_variance: mixture.sum.noise[k] / mixture.weight,
                prior: like_others,
                prior_max: if apart.is_finite() { like_others + apart.max(0.0) } else { like_others },
                found,
                deviation: mixture.variance(k, k).sqrt(),
            };
            let error = if spectrum[k] > f64::EPSILON * trace { direction.mean_square_error() } else { 0.0 };
            (error - mixture.variance(k, k)).max(0.0)
        })
        .collect();
    let posterior = mixture.finish(&eigen, &centre);
    let posterior = match intercept {
        Some(mean) => {
            let seen = release.centre_means();
            posterior.given_mean(mean, &seen, unit_square, rows)
        }
        None => posterior,
    };
    Ok(posterior.widened(&eigen, &doubts))
}

impl NoisyGram<'_> {
    /// What the released mean says of the intercept, and its standard deviation. Of an intercept of its own, of that of a target that may lie
    /// anywhere in `[-1, 1]`: the prior is then put around it, and is not to count twice.
    fn intercept(&self) -> Option<TargetMean> {
        let mean = self.target_mean?;
        let value = if self.free_intercept { mean.expected() } else { mean.value };
        Some(TargetMean { value: value * self.unit, deviation: mean.deviation * self.unit })
    }

    /// What predictions of a start model vary by, as if all columns varied alike and had nothing to do with each other.
    fn start_variance(&self) -> f64 {
        let slopes = self.prior_mean.map_or(&[][..], |start| &start[1..]);
        let square: f64 = slopes.iter().map(|slope| (slope / self.unit).powi(2)).sum();
        self.slopes.features_square / slopes.len().max(1) as f64 * square
    }

    /// A start model whose mean is not the released one, by more than noise makes it seem, with that in place of its intercept.
    fn moved_start(&self) -> Option<Vec<f64>> {
        let (start, mean) = (self.prior_mean?, self.target_mean?);
        let seen = self.centre_means();
        let of_start =
            |weights: &[f64]| weights.iter().zip(start).map(|(of, weight)| of * weight / self.unit).sum::<f64>();
        let apart = of_start(&seen.means) - mean.value;
        let squares = seen.variances.iter().zip(start).map(|(variance, slope)| variance * (slope / self.unit).powi(2));
        let deviation = mean.deviation.hypot(squares.sum::<f64>().sqrt());
        (apart.abs() > SURE * deviation).then(|| {
            let mut moved = start.to_vec();
            moved[0] = mean.expected() * self.unit;
            moved
        })
    }
}

impl NoisyGram<'_> {
    /// Columns were centred with an error of standard deviation `c`, or were not, and `c` is the size of their mean. The first row of the matrix
    /// shows it, as the mean over rows of their own norm, which differs from it where columns are skewed, by some `k`, and by the noise of the matrix:
    /// ```text
    ///   mean_j = W G~_0j/G~_00,   W = c²/(c² + k² + s²/G~_00²),   k² = F/(d - 1) (F/(1 + F))²/4;   left is a variance of c² (1 - W)
    /// ```
    /// with `F` the squared features of a row, and at most three times `c`.
    fn centre_means(&self) -> CentreMeans {
        let columns = self.cross.len();
        let (rows, features) = (self.upper[0].max(1.0), self.slopes.features_square);
        let skewed = features / (columns - 1).max(1) as f64 * (features / (1.0 + features)).powi(2) / 4.0;
        let hidden = skewed + (self.noise.matrix / rows).powi(2);
        let (mut means, mut variances) = (vec![1.0], vec![0.0]);
        for (product, deviation) in self.upper[1..columns].iter().zip(&self.mean_deviations[1..]) {
            let own = deviation * deviation;
            let share = if own > 0.0 { own / (own + hidden) } else { 0.0 };
            means.push((share * product / rows).clamp(-3.0 * deviation, 3.0 * deviation));
            variances.push(own * (1.0 - share));
        }
        CentreMeans { means, variances }
    }
}

impl GramPosterior {
    /// The posterior after the mean of the target was observed with noise. It is the intercept and each slope times its column's mean, of which
    /// the matrix says some, but for the sampling error that both share, `residual variance · unit²/rows`: the rows are those of the matrix, and
    /// tell nothing twice. Where the line does not hold, the mean of residuals is not that of rows of their own norm, whatever the number of rows:
    /// that is noise of the mean, [`MISFIT`] of the residuals' deviation.
    fn given_mean(mut self, mean: TargetMean, seen: &CentreMeans, unit_square: f64, rows: f64) -> Self {
        let columns = self.weights.len();
        let residual = self.residual_variance * unit_square;
        let shared = residual / rows;
        let mut with_mean: Vec<f64> = (0..columns)
            .map(|j| self.covariance[j * columns..][..columns].iter().zip(&seen.means).map(|(one, of)| one * of).sum())
            .collect();
        with_mean[0] -= shared;
        let doubt = with_mean.iter().zip(&seen.means).map(|(one, of)| one * of).sum::<f64>().max(0.0);
        // No weight goes with the mean more than its own variance and the mean's allow. A bound that is no number would end the program.
        for (j, with) in with_mean.iter_mut().enumerate() {
            let most = (self.covariance[j * columns + j] * doubt).max(0.0).sqrt();
            *with = with.clamp(-most, most);
        }
        let of_slope = |column: usize| {
            seen.variances[column] * (self.weights[column].powi(2) + self.covariance[column * (columns + 1)])
        };
        let of_slopes: f64 = (1..columns).map(of_slope).sum();
        let of_mean = mean.deviation.powi(2) + of_slopes + MISFIT.powi(2) * residual;
        let spread = doubt + of_mean;
        let apart = mean.value - self.weights.iter().zip(&seen.means).map(|(weight, of)| weight * of).sum::<f64>();
        for (j, share) in with_mean.iter().map(|one| one / spread).enumerate() {
            self.weights[j] += share * apart;
            for (entry, other) in self.covariance[j * columns..].iter_mut().zip(&with_mean) {
                *entry -= share * other;
            }
        }
        self
    }

    /// With what each direction may be off by beyond its variance. It comes last: what a mean says is weighed by what the model expects.
    fn widened(mut self, eigen: &SelfAdjointEigen<f64>, doubts: &[f64]) -> Self {
        let columns = self.weights.len();
        let scaled = Mat::from_fn(columns, columns, |row, k| eigen.U()[(row, k)] * doubts[k].sqrt());
        let doubt = &scaled * scaled.transpose();
        for (at, entry) in self.covariance.iter_mut().enumerate() {
            let (row, column) = (at / columns, at % columns);
            *entry += 0.5 * (doubt[(row, column)] + doubt[(column, row)]);
        }
        self
    }
}

/// What is known of the means of the columns, the intercept's 1 first.
struct CentreMeans {
    means: Vec<f64>,
    /// Of what is not known of each.
    variances: Vec<f64>,
}

/// What slopes can explain, `sum g_k E[delta_k²]`, is at most the target's variance over rows of their own norm.
#[derive(Clone, Copy)]
struct ExplainedLimit {
    value: f64,
    deviation: f64,
}

impl ExplainedLimit {
    /// `rows V/(1 + features_square)`, known to half of itself: rows differ in length, and their targets with them.
    fn of(variance: TargetVariance, rows: f64, features_square: f64) -> Self {
        let per_variance = rows / (1.0 + features_square);
        let value = per_variance * variance.value;
        Self { value, deviation: (per_variance * variance.deviation).hypot(OF_LENGTHS * value) }
    }

    fn cost(self, explained: f64) -> f64 {
        0.5 * ((explained - self.value).max(0.0) / self.deviation).powi(2)
    }
}

/// Posterior at one point of the grid, in the eigenbasis.
struct Part {
    prior: f64,
    residual: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// Variance of all noise but that of a direction's own weight.
    noise: Vec<f64>,
    log_prior: Vec<f64>,
}

impl Part {
    fn new(columns: usize, prior: f64, residual: f64) -> Self {
        let [mean, variance, noise, log_prior] = std::array::from_fn(|_| vec![0.0; columns]);
        Self { prior, residual, mean, variance, noise, log_prior }
    }
}

/// Running sums over the grid, each point weighted by `exp(-cost)`, relative to the least cost so far.
struct Mixture {
    least: f64,
    weight: f64,
    sum: Part,
    /// Sum of `mean_k mean_l`, full, row after row.
    products: Vec<f64>,
}

impl Mixture {
    fn new(columns: usize) -> Self {
        Self {
            least: f64::INFINITY,
            weight: 0.0,
            sum: Part::new(columns, 0.0, 0.0),
            products: vec![0.0; columns * columns],
        }
    }

    fn add(&mut self, part: &Part, cost: f64) {
        /// Points less likely than this, in logarithms, change no digit that matters.
        const NEGLIGIBLE: f64 = 30.0;
        if cost > self.least + NEGLIGIBLE {
            return;
        }
        if cost < self.least {
            self.rescale((cost - self.least).exp());
            self.least = cost;
        }
        let share = (self.least - cost).exp();
        let columns = part.mean.len();
        self.weight += share;
        self.sum.prior += share * part.prior;
        self.sum.residual += share * part.residual;
        for k in 0..columns {
            self.sum.mean[k] += share * part.mean[k];
            self.sum.variance[k] += share * part.variance[k];
            self.sum.noise[k] += share * part.noise[k];
            self.sum.log_prior[k] += share * part.log_prior[k];
            let products = &mut self.products[k * columns..(k + 1) * columns];
            for (product, mean) in products.iter_mut().zip(&part.mean) {
                *product += share * part.mean[k] * mean;
            }
        }
    }

    fn rescale(&mut self, factor: f64) {
        self.weight *= factor;
        self.sum.prior *= factor;
        self.sum.residual *= factor;
        let Part { mean, variance, noise, log_prior, .. } = &mut self.sum;
        let sums = [mean, variance, noise, log_prior, &mut self.products];
        sums.into_iter().flatten().for_each(|sum| *sum *= factor);
    }

    /// Of two coefficients in the eigenbasis.
    fn variance(&self, k: usize, l: usize) -> f64 {
        let means = self.sum.mean[k] / self.weight * (self.sum.mean[l] / self.weight);
        let between = self.products[k * self.sum.mean.len() + l] / self.weight - means;
        if k == l { between + self.sum.variance[k] / self.weight } else { between }
    }

    /// Back to columns.
    fn finish(self, eigen: &SelfAdjointEigen<f64>, centre: &Mat<f64>) -> GramPosterior {
        let columns = self.sum.mean.len();
        let mean = Mat::from_fn(columns, 1, |k, _| self.sum.mean[k] / self.weight);
        let inner = Mat::from_fn(columns, columns, |k, l| self.variance(k, l));
        let covariance = eigen.U() * &inner * eigen.U().transpose();
        let weights = eigen.U() * &mean + centre;
        GramPosterior {
            weights: weights.col(0).iter().copied().collect(),
            covariance: (0..columns * columns)
                .map(|at| 0.5 * (covariance[(at / columns, at % columns)] + covariance[(at % columns, at / columns)]))
                .collect(),
            prior_variance: self.sum.prior / self.weight,
            residual_variance: self.sum.residual / self.weight,
        }
    }
}

fn grid((low, high, points): (f64, f64, usize)) -> impl Iterator<Item = f64> {
    let (start, length) = (low.ln(), (high / low).ln());
    (0..points).map(move |point| start + length * point as f64 / (points - 1) as f64)
}

fn values(eigen: &SelfAdjointEigen<f64>) -> Vec<f64> {
    eigen.S().column_vector().iter().copied().collect()
}

/// The full matrix of a packed upper triangle.
pub(crate) fn symmetric(upper: &[f64], columns: usize) -> Mat<f64> {
    Mat::from_fn(columns, columns, |row, column| {
        let (j, l) = (row.min(column), row.max(column));
        // Rows before row j hold d, d - 1, ... entries.
        upper[j * (2 * columns - j + 1) / 2 + (l - j)]
    })
}

fn check(release: &NoisyGram<'_>) -> Result<(), GramError> {
    let columns = release.cross.len();
    let (expected, found) = (columns * (columns + 1) / 2, release.upper.len());
    if columns == 0 || expected != found || release.prior_mean.is_some_and(|mean| mean.len() != columns) {
        return Err(GramError::Length { columns, expected, found });
    }
    let finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
    if !finite(release.upper) || !finite(release.cross) || !release.square.is_finite() {
        return Err(GramError::Value("a sum"));
    }
    if release.prior_mean.is_some_and(|mean| !finite(mean)) {
        return Err(GramError::Value("the prior mean"));
    }
    let is_mean = |mean: TargetMean| {
        mean.value.is_finite()
            && mean.deviation.is_finite()
            && mean.deviation > 0.0
            && release.mean_deviations.len() == columns
            && release.mean_deviations.iter().all(|deviation| deviation.is_finite() && *deviation >= 0.0)
    };
    if release.target_mean.is_some_and(|mean| !is_mean(mean)) {
        return Err(GramError::Value("the mean of the target"));
    }
    let positive = |number: f64| number.is_finite() && number > 0.0;
    if release.target_variance.is_some_and(|variance| !(positive(variance.value) && positive(variance.deviation))) {
        return Err(GramError::Value("the variance of the target"));
    }
    if release.rows.is_some_and(|rows| !rows.is_finite()) {
        return Err(GramError::Value("the number of rows"));
    }
    let GramNoise { matrix, cross, square } = release.noise;
    if ![matrix, cross, square].iter().all(|noise| noise.is_finite() && *noise > 0.0) {
        return Err(GramError::Value("a standard deviation"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
