//! Linear regression from one noisy Gram matrix: noise-aware posterior of the coefficients.
//!
//! Given is what a release contains, in units in which a row has norm at most 1 and the target lies in `[-1, 1]`:
//! ```text
//!   G~ = X'X + E      E symmetric Gaussian, standard deviation s off the diagonal and sqrt(2) s on it
//!   t~ = X'y + e      e Gaussian, standard deviation s_t a coordinate
//!   r~ = y'y + f      f Gaussian, standard deviation s_r
//! ```
//! Model: `y = X w + eps`, `eps ~ N(0, sigma²)`, `w ~ N(w0, tau²)`. In an eigenbasis `V` of `G~`, with `g` the estimate of
//! `diag(V' X'X V)` of [`shrunken_spectrum`], `u` the variances of [`unknown_rows`], `delta = w - w0` and `z = V'(t~ - G~ w0)`:
//! ```text
//!   z_k = g_k delta_k + N(0, v_k),     v_k = s_t² + s² (1 + 1/d) ||w0||² + u_k tau² + sigma² g_k
//!   delta_k | z ~ N(tau² g_k z_k / c_k,  tau² v_k / c_k),     c_k = tau² g_k² + v_k
//!   r~ - 2 w0't~ + w0'G~ w0  ~  N(n sigma² + E[delta' X'X delta | z],  its variance)
//! ```
//! The term with `w0` is the noise of `G~ w0`: a row of `E w0` has variance `s² (||w0||² + w0_k²)`. That with `u_k` is what is not known
//! of the matrix, times unknown coefficients. `tau²` and `sigma²` are integrated over a grid with weights by their marginal likelihood, so
//! nothing is tuned on private data and a release without signal gives coefficients near `w0`.
//!
//! Sources: Bernstein, Sheldon 2019, "Differentially private Bayesian linear regression" (noise-aware posterior); Bun,
//! Allez, Bouchaud, Potters 2016, "Rotational invariant estimator for general noisy matrices" (spectrum). The combination
//! is derived here; row G2 of `docs/formulas.md`.

use faer::linalg::solvers::SelfAdjointEigen;
use faer::{Mat, Side};
use thiserror::Error;

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
    /// Whether the first column is an intercept with a prior of its own, of standard deviation `unit/sqrt(3)`: a target's mean says
    /// nothing about the size of slopes.
    pub free_intercept: bool,
}

/// Posterior of the coefficients.
#[derive(Clone, Debug, PartialEq)]
pub struct GramPosterior {
    /// Posterior mean, one weight a column.
    pub weights: Vec<f64>,
    /// Posterior covariance, `d × d`, row after row. It contains sampling error, noise and what is not known of the two
    /// variances.
    pub covariance: Vec<f64>,
    /// Posterior mean of `tau²`, the variance of a coefficient around the prior mean.
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

/// Grid of `ln tau²`: bounds and number of points.
const PRIOR_GRID: (f64, f64, usize) = (1e-7, 1e3, 49);
/// Grid of `ln sigma²`.
const RESIDUAL_GRID: (f64, f64, usize) = (1e-6, 1.0, 49);
/// Log-normal hyper-prior of `tau²`: median, and standard deviation of the logarithm.
const HYPER_PRIOR: (f64, f64) = (0.1, 2.0);

/// Posterior of the coefficients given a release: see the module.
///
/// # Errors
/// [`GramError`] when lengths or values are not those of a release.
pub fn posterior(release: &NoisyGram<'_>) -> Result<GramPosterior, GramError> {
    check(release)?;
    let d = release.cross.len();
    let columns = d as f64;
    let noise = release.noise;
    let matrix = symmetric(release.upper, d);
    let eigen = matrix.self_adjoint_eigen(Side::Lower).map_err(|_| GramError::Eigenvalues)?;
    let trace = known_trace((0..d).map(|k| matrix[(k, k)]).sum(), (2.0 * columns).sqrt() * noise.matrix);
    let spectrum = shrunken_spectrum(&values(&eigen), noise.matrix, trace);
    let unknown = unknown_rows(&values(&eigen), &spectrum, noise.matrix);
    let rows = release.rows.unwrap_or(trace).max(1.0);

    let centre = Mat::from_fn(d, 1, |k, _| release.prior_mean.map_or(0.0, |mean| mean[k]));
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

    // Share of a direction's prior that is the intercept's: all of it where the intercept is a direction of its own.
    let of_intercept: Vec<f64> =
        (0..d).map(|k| if release.free_intercept { eigen.U()[(0, k)].powi(4) } else { 0.0 }).collect();
    let unit_square = release.unit * release.unit;

    let mut mixture = Mixture::new(d);
    for log_prior in grid(PRIOR_GRID) {
        let prior = log_prior.exp() * unit_square;
        for log_residual in grid(RESIDUAL_GRID) {
            let residual = log_residual.exp();
            let mut part = Part::new(d, prior, residual);
            let mut cost = 0.5 * ((log_prior - HYPER_PRIOR.0.ln()) / HYPER_PRIOR.1).powi(2);
            let (mut explained, mut explained_variance, mut length) = (0.0, 0.0, 0.0);
            for k in 0..d {
                let (g, z) = (spectrum[k], signal[k]);
                let tau_squared = prior + of_intercept[k] * (unit_square / 3.0 - prior);
                let v = cross_variance + unknown[k] * prior + residual * g;
                let c = tau_squared * g * g + v;
                let (mean, variance) = (tau_squared * g * z / c, tau_squared * v / c);
                cost += 0.5 * (c.ln() + z * z / c);
                explained += g * (mean * mean + variance);
                explained_variance += 2.0 * g * g * variance * (2.0 * mean * mean + variance);
                length += mean * mean + variance;
                part.mean[k] = mean;
                part.variance[k] = variance;
            }
            let spread = square_variance
                + 2.0 * rows * residual * residual
                + explained_variance
                + 2.0 * (noise.matrix * length).powi(2);
            cost += 0.5 * ((square - rows * residual - explained).powi(2) / spread + spread.ln());
            mixture.add(&part, cost);
        }
    }
    Ok(mixture.finish(&eigen, &centre))
}

/// Posterior mean of a trace `T >= 1` of which `noisy = T + N(0, deviation²)` is known, with a prior that knows no scale (`1/T`).
///
/// Far above its noise it is what was released. Below, most of what it may be is much smaller than the noise: a release in which even the
/// number of rows drowns says nothing about coefficients.
fn known_trace(noisy: f64, deviation: f64) -> f64 {
    /// Points a factor of e: the integrand is smooth in `ln T`, except where noise is small, and then the answer is the release.
    const POINTS: f64 = 50.0;
    if noisy > 20.0 * deviation {
        return noisy.max(1.0);
    }
    let last = (noisy.max(0.0) + 10.0 * deviation).max(1.0).ln();
    let steps = (last * POINTS).ceil();
    let weigh = |step: f64| {
        let trace = (last * step / steps.max(1.0)).exp();
        (trace, (-0.5 * ((trace - noisy) / deviation).powi(2)).exp())
    };
    let (mut weight, mut sum) = (0.0, 0.0);
    for step in 0..=steps as u64 {
        let (trace, likelihood) = weigh(step as f64);
        weight += likelihood;
        sum += likelihood * trace;
    }
    if weight > 0.0 { sum / weight } else { 1.0 }
}

/// Estimates `v_k' G v_k` for the eigenvectors `v_k` of a noisy symmetric matrix `G + E`, from its eigenvalues in rising order.
///
/// ```text
///   xi_k = l_k - 2 d s² h_k,   h_k = 1/d sum_j (l_k - l_j) / ((l_k - l_j)² + s²)
/// ```
/// then made rising (isotonic regression), at least zero, and scaled to the given trace. `s` is the noise off the diagonal. Where all
/// is noise, every `xi_k` is `trace / d`; where nothing is, `xi = l`.
///
/// Source: Bun, Allez, Bouchaud, Potters 2016, additive noise: `xi = l - 2 sigma² h(l)`, here `sigma² = d s²`, with the
/// Hilbert transform smoothed over the width `s`.
#[must_use]
pub fn shrunken_spectrum(eigenvalues: &[f64], noise: f64, trace: f64) -> Vec<f64> {
    let width = noise * noise;
    let shrink = |own: f64| {
        let repelled = |other: &f64| {
            let distance = own - other;
            if distance.abs() > 0.0 { distance / (distance * distance + width) } else { 0.0 }
        };
        (own - 2.0 * width * eigenvalues.iter().map(repelled).sum::<f64>()).max(0.0)
    };
    let rising = isotonic(eigenvalues.iter().map(|own| shrink(*own)));
    let total: f64 = rising.iter().sum();
    if total > 0.0 {
        rising.into_iter().map(|value| value * trace / total).collect()
    } else {
        vec![trace / eigenvalues.len() as f64; eigenvalues.len()]
    }
}

/// Variance of what is not known of the rows of `V'GV`, for the eigenvectors `v_k` of a noisy symmetric matrix `G + E`, from its
/// eigenvalues in rising order and the `g_k` of [`shrunken_spectrum`].
///
/// ```text
///   u_k = s² sum_{l != k} max(f_k, f_l) + 2 s² g_k² / (2 s² + g_k²)
///   f_k = (1 - d s² |h_k + i p_k|² - 1/4) / (1 - 1/d - 1/4) in [0, 1],    p_k = 1/d sum_j s / ((l_k - l_j)² + s²)
/// ```
/// with `h_k` as there. `V'(G + E)V` is diagonal: what `V'GV` has off the diagonal is minus what `V'EV` has. In a well-known direction
/// that is noise of the usual size (`f = 1`); where eigenvectors are those of the noise, `V'EV` is diagonal itself (`f = 0`). The
/// second term is what is not known of `g_k`, at most all of it.
///
/// Source: `E[||G v_k||² - (v_k'G v_k)²] = d s² (1 - d s² |h + i p|²)` from the overlaps of Bun, Allez, Bouchaud, Potters 2016; derived,
/// with the two corrections, in `docs/methods/gram.md`.
#[must_use]
pub fn unknown_rows(eigenvalues: &[f64], spectrum: &[f64], noise: f64) -> Vec<f64> {
    /// What smoothing leaves of `1 - d s² |h + i p|²` under noise alone.
    const OF_NOISE: f64 = 0.25;
    let columns = eigenvalues.len() as f64;
    // A direction meets itself in p, which takes off 1/d.
    let whole = 1.0 - 1.0 / columns - OF_NOISE;
    let width = noise * noise;
    let known = |own: &f64| {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for other in eigenvalues {
            let distance = own - other;
            let weight = noise / (distance * distance + width);
            real += weight * distance;
            imaginary += weight * noise;
        }
        let share = 1.0 - (real * real + imaginary * imaginary) / columns;
        if whole > 0.0 { ((share - OF_NOISE) / whole).clamp(0.0, 1.0) } else { 1.0 }
    };
    let known: Vec<f64> = eigenvalues.iter().map(known).collect();
    let unknown = |(own, value): (&f64, &f64)| {
        let others = known.iter().map(|other| own.max(*other)).sum::<f64>() - own;
        let square = value * value;
        width * others + 2.0 * width * square / (2.0 * width + square)
    };
    known.iter().zip(spectrum).map(unknown).collect()
}

/// The nearest rising sequence in least squares: pools adjacent violators.
fn isotonic(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in values {
        let mut pool = (value, 1);
        while let Some(last) = pools.last().copied().filter(|last| last.0 > pool.0) {
            pools.pop();
            let members = last.1 + pool.1;
            pool = ((last.0 * last.1 as f64 + pool.0 * pool.1 as f64) / members as f64, members);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(value, members)| std::iter::repeat_n(value, members)).collect()
}

/// Posterior at one point of the grid, in the eigenbasis.
struct Part {
    prior: f64,
    residual: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Part {
    fn new(columns: usize, prior: f64, residual: f64) -> Self {
        Self { prior, residual, mean: vec![0.0; columns], variance: vec![0.0; columns] }
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
        let sums = self.sum.mean.iter_mut().chain(&mut self.sum.variance).chain(&mut self.products);
        sums.for_each(|sum| *sum *= factor);
    }

    fn finish(self, eigen: &SelfAdjointEigen<f64>, centre: &Mat<f64>) -> GramPosterior {
        let columns = self.sum.mean.len();
        let mean = Mat::from_fn(columns, 1, |k, _| self.sum.mean[k] / self.weight);
        let inner = Mat::from_fn(columns, columns, |k, l| {
            let between = self.products[k * columns + l] / self.weight - mean[(k, 0)] * mean[(l, 0)];
            if k == l { between + self.sum.variance[k] / self.weight } else { between }
        });
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
