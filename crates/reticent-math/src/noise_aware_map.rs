//! Regression from one noisy linear statistic of private labels: `t = D^T Y + noise`, with `D` and the features `X` public.
//!
//! ```text
//!   r(theta) = t - D^T p(theta)         p: means of the labels given the scores X theta
//!   Cov r    = C = D^T V D + S^2 I      V: variances of the labels, S: noise of a coordinate
//!   MAP:       min  r^T C^-1 r / 2 + (theta - theta_0)^T P (theta - theta_0) / 2,       J = D^T V X
//!   posterior covariance  H^-1 = (J^T C^-1 J + P)^-1
//! ```
//! The prior keeps the problem bounded whatever the noise. Its scale is weighed by the marginal likelihood of the released
//! statistic (Laplace's approximation): choosing it costs no privacy, nor does anything else here.
//!
//! Multinomial models are fitted in an orthonormal basis `U` of contrasts (classes × classes - 1): the columns of `Y` add
//! up to 1 and their total is public, so the noise of `t U` is still `S` a coordinate, and weights add up to 0 over classes.

use faer::linalg::solvers::{Llt, Solve};
use faer::{Mat, MatRef, Side};
use thiserror::Error;

use crate::public_design::symmetric;

/// Rows that are worked on at a time.
const BLOCK: usize = 2_048;

/// How a label depends on its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseModel {
    /// Mean = score, one variance for all rows. Labels are in units in which they lie in `[-1, 1]`.
    Linear,
    /// Probability = `1 / (1 + e^-score)` of label 1, else 0.
    Logistic,
    /// Softmax of one score a class; labels are indicators.
    Multinomial {
        /// Number of classes, at least 2.
        classes: usize,
    },
}

impl ResponseModel {
    /// Scores a row, and columns of the released statistic.
    #[must_use]
    pub fn outputs(self) -> usize {
        match self {
            Self::Linear | Self::Logistic => 1,
            Self::Multinomial { classes } => classes,
        }
    }

    /// Free scores a row.
    fn contrasts(self) -> usize {
        match self {
            Self::Linear | Self::Logistic => 1,
            Self::Multinomial { classes } => classes - 1,
        }
    }

    /// `U`, outputs × contrasts: orthonormal columns, each orthogonal to the constant (Helmert).
    fn basis(self) -> Mat<f64> {
        match self {
            Self::Linear | Self::Logistic => Mat::identity(1, 1),
            Self::Multinomial { classes } => Mat::from_fn(classes, classes - 1, |class, contrast| {
                let before = (contrast + 1) as f64;
                let scale = (before * (before + 1.0)).sqrt();
                match class.cmp(&(contrast + 1)) {
                    std::cmp::Ordering::Less => 1.0 / scale,
                    std::cmp::Ordering::Equal => -before / scale,
                    std::cmp::Ordering::Greater => 0.0,
                }
            }),
        }
    }

    /// Means of a row's labels, from its scores, in place.
    pub fn mean(self, scores: &mut [f64]) {
        match self {
            Self::Linear => {}
            Self::Logistic => scores[0] = 1.0 / (1.0 + (-scores[0]).exp()),
            Self::Multinomial { .. } => {
                let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut total = 0.0;
                for score in scores.iter_mut() {
                    *score = (*score - largest).exp();
                    total += *score;
                }
                scores.iter_mut().for_each(|score| *score /= total);
            }
        }
    }
}

/// A released number and the standard deviation of its noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noisy {
    /// The number.
    pub value: f64,
    /// Standard deviation of its noise.
    pub noise: f64,
}

/// What was released about the labels, and the public rows that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Statistic<'a> {
    /// Public features `X`, n × k, the intercept's column of ones among them.
    pub features: MatRef<'a, f64>,
    /// Public vectors `D`, n × m: exactly those that the labels were multiplied by, in any unit.
    pub rows: MatRef<'a, f64>,
    /// `t = D^T Y + noise`, m × outputs, in the unit of `rows` times the unit of the labels.
    pub released: MatRef<'a, f64>,
    /// Standard deviation `S` of the noise of one coordinate, same unit.
    pub noise: f64,
    /// How many independent labels a row's label is the mean of: 1, or the number of parties that voted on it. Divides `V`
    /// in `C`.
    pub labels_per_row: f64,
    /// Linear model only: `sum y^2`, if it was released. It makes the variance of the labels known.
    pub square: Option<Noisy>,
}

/// What is believed about the weights before the release: public.
///
/// Effects of standardised columns are independent with mean `centre` and standard deviation `tau`, itself log-normal about
/// the scale at which all effects together make a score of standard deviation 1.5, for numbers 0.3 (a third of it around a start); the
/// mean score over the rows has a wide prior of its own, so that the intercept is hardly drawn to zero.
#[derive(Clone, Debug)]
pub struct Prior {
    spread_square: Vec<f64>,
    mean_row: Mat<f64>,
    mean_score_deviation: f64,
    /// Scale that `tau` is believed to be near: effects that together make a score of [`TYPICAL_SCORE`] or [`TYPICAL_SCORE_NUMBER`].
    typical_effect: f64,
    centre: Mat<f64>,
}

impl Prior {
    /// The prior for a model on public features; `centre` (k × outputs) is a public start model, zero if there is none.
    ///
    /// # Panics
    /// When the centre does not have a row for every column of the features and a column for every output.
    #[must_use]
    pub fn new(features: MatRef<'_, f64>, model: ResponseModel, centre: Option<MatRef<'_, f64>>) -> Self {
        let (rows, columns) = features.shape();
        let mean_row = Mat::from_fn(columns, 1, |column, _| features.col(column).sum() / rows.max(1) as f64);
        let mut of_constant = CONSTANT.0;
        let spread_square = (0..columns)
            .map(|column| {
                let (low, high) = features
                    .col(column)
                    .iter()
                    .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(*value), high.max(*value)));
                let (range, mean) = (high - low, mean_row[(column, 0)]);
                let variance =
                    features.col(column).iter().map(|value| (value - mean).powi(2)).sum::<f64>() / rows as f64;
                // A rare category must not get a huge prior effect for being rare, nor one that never occurs. Whether a column
                // is constant the range tells: rounding gives a constant a variance.
                if range > 0.0 {
                    variance.max(RARE * range * range)
                } else if mean.abs() > 0.0 {
                    std::mem::replace(&mut of_constant, CONSTANT.1) * mean * mean
                } else {
                    RARE
                }
            })
            .collect();
        if let Some(centre) = centre {
            assert_eq!(centre.shape(), (columns, model.outputs()), "one start weight for each column and output");
        }
        let mean_score_deviation = match (model, centre.is_some()) {
            (ResponseModel::Linear, false) => 1.0,
            (ResponseModel::Linear, true) => START_FACTOR,
            (ResponseModel::Logistic | ResponseModel::Multinomial { .. }, false) => 3.0,
            // Base rates of two tables of one kind differ by little: 0.5 in log-odds.
            (ResponseModel::Logistic | ResponseModel::Multinomial { .. }, true) => 0.5,
        };
        let effects = columns.saturating_sub(1).max(1) as f64;
        let typical_score = match model {
            ResponseModel::Linear => TYPICAL_SCORE_NUMBER,
            ResponseModel::Logistic | ResponseModel::Multinomial { .. } => TYPICAL_SCORE,
        };
        let typical_effect = typical_score / effects.sqrt() * if centre.is_some() { START_FACTOR } else { 1.0 };
        let centre = centre.map_or_else(|| Mat::zeros(columns, model.outputs()), |centre| centre.to_owned());
        Self { spread_square, mean_row, mean_score_deviation, typical_effect, centre }
    }

    /// The precision `P` of one output's weights, k × k, positive definite.
    #[must_use]
    pub fn precision(&self, tau: f64) -> Mat<f64> {
        let mut precision =
            &self.mean_row * self.mean_row.transpose() * faer::Scale(self.mean_score_deviation.powi(-2));
        for (column, spread) in self.spread_square.iter().enumerate() {
            precision[(column, column)] += spread / (tau * tau);
        }
        precision
    }
}

/// Columns of standard deviation below `sqrt(RARE)` times their range are treated as if it were that.
const RARE: f64 = 0.02;
/// Variance of a constant column in the prior, in squares of its mean. The first, the intercept, is left to the other part of the prior: its
/// share of the mean score is all that it does. What another one does the first does, too: it is drawn to nothing, or no release could
/// tell the two apart.
const CONSTANT: (f64, f64) = (2e-6, 1e4);

/// A fit with its uncertainty.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// Weights, k × outputs: posterior mean.
    pub weights: Mat<f64>,
    /// Posterior covariance, outputs·k square, all weights of the first output first.
    ///
    /// Sampling error and noise are both in it. `weights ± 1.96 sqrt(diagonal)` covers 95 % on average over coefficients.
    pub covariance: Mat<f64>,
    /// Prior standard deviation of a standardised effect, as the release suggests it (geometric posterior mean).
    pub tau: f64,
    /// Linear model: variance of a label around its mean.
    pub variance: Option<f64>,
}

/// A release that no model could be fitted to.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum MapError {
    /// Sizes contradict each other.
    #[error("the release does not fit the features: {0}")]
    Shape(String),
    /// A value is not finite, or a noise scale not above zero.
    #[error(
        "the release or the public features hold a value that is not a finite number, or the noise scale is not above 0"
    )]
    NotFinite,
    /// The linear algebra failed.
    #[error("the public features are too badly scaled to fit a model; scale every column to [0, 1]")]
    Scale,
}

impl Statistic<'_> {
    fn check(&self, model: ResponseModel) -> Result<(), MapError> {
        if self.features.nrows() != self.rows.nrows() || self.features.nrows() == 0 {
            let message = format!("{} feature rows and {} vectors", self.features.nrows(), self.rows.nrows());
            return Err(MapError::Shape(message));
        }
        if self.released.shape() != (self.rows.ncols(), model.outputs()) {
            return Err(MapError::Shape(format!(
                "{} x {} released numbers where {} x {} belong",
                self.released.nrows(),
                self.released.ncols(),
                self.rows.ncols(),
                model.outputs()
            )));
        }
        let finite = |matrix: MatRef<'_, f64>| matrix.norm_l2().is_finite();
        let noisy = |square: Noisy| square.value.is_finite() && square.noise.is_finite() && square.noise > 0.0;
        let finite_values = finite(self.features) && finite(self.rows) && finite(self.released);
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let usable = positive(self.noise) && positive(self.labels_per_row) && self.square.is_none_or(noisy);
        if !(finite_values && usable) {
            return Err(MapError::NotFinite);
        }
        Ok(())
    }
}

/// Fits the model; the prior's scale is averaged over, weighed by the marginal likelihood of the release.
///
/// Labels of a linear model must be in units in which they lie in `[-1, 1]`. Without [`Statistic::square`] the variance
/// of such labels is hardly determined by the release: it is averaged over values up to 1, which makes intervals wide.
///
/// # Errors
/// [`MapError`] when sizes contradict each other or values are not finite.
pub fn fit(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior) -> Result<Estimate, MapError> {
    statistic.check(model)?;
    match model {
        ResponseModel::Linear => fit_linear(statistic, prior),
        ResponseModel::Logistic | ResponseModel::Multinomial { .. } => fit_curved(statistic, model, prior),
    }
}

/// Prior scales tried: `0.01 · 2^(step)`, from no effect to speak of to effects that separate the classes.
const TAU_STEPS: u32 = 11;
/// Two standard deviations are a factor of 7: a release that is all noise must not give large scales a say.
const TAU_LOG_DEVIATION: f64 = 1.0;
/// Standard deviation of a score under the typical effects, in log-odds; and of numbers, whose labels lie in `[-1, 1]`.
const TYPICAL_SCORE: f64 = 1.5;
const TYPICAL_SCORE_NUMBER: f64 = 0.3;
/// How much less effects are believed to differ from those of a public start than from zero.
const START_FACTOR: f64 = 1.0 / 3.0;

fn tau(step: u32) -> f64 {
    0.01 * 2.0f64.powi(step as i32)
}

/// The mode at one prior scale.
#[derive(Clone, Debug)]
pub struct Mode {
    /// Weights, k × outputs.
    pub weights: Mat<f64>,
    /// Marginal likelihood of the release, up to a constant: Laplace's approximation.
    pub log_evidence: f64,
}

/// The MAP estimate at a fixed prior scale `tau`, for logistic and multinomial models: Gauss–Newton with halving.
///
/// `C` is taken at the current parameters and kept fixed within a step; at the end the gradient
/// `J^T C^-1 r - P (theta - theta_0)` is zero.
///
/// # Errors
/// [`MapError`] as [`fit`].
///
/// # Panics
/// For a linear model, whose mode needs the variance of the labels: use [`fit`].
pub fn mode(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior, tau: f64) -> Result<Mode, MapError> {
    assert!(model != ResponseModel::Linear, "a linear model has no mode without the variance of its labels");
    statistic.check(model)?;
    let mut descent = Descent::start(statistic, model, prior)?;
    let posterior = descent.mode(Choice { tau, variance: 0.0, log_prior: 0.0 }, EXACT)?;
    Ok(Mode { weights: weights_of(&posterior.mean, model, prior), log_evidence: posterior.log_weight })
}

/// After so many steps the covariance `C` is no longer brought up to date, so that every further step is a descent.
const UPDATES: usize = 30;
const STEPS_MAX: usize = 80;

/// The mode under each scale of the prior, with the posterior and the marginal likelihood of the release that is treated as linear around it
/// (Laplace's approximation). Around one point for all scales, large effects would be judged where slopes are still steep, and small scales
/// would get too much of a say.
///
/// A public start may be wrong, and sure of it: steps from there, too, see means of 0 or 1, and can end far from everything. So with a start
/// the way is gone from zero weights as well, and the end that is likelier, release and prior together, is kept.
fn fit_curved(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior) -> Result<Estimate, MapError> {
    let mut from_start = Descent::start(statistic, model, prior)?;
    if prior.centre.norm_max() == 0.0 {
        return Ok(from_start.descend()?.estimate(model, prior));
    }
    let zero = stack((&prior.centre * model.basis()).as_ref()) * faer::Scale(-1.0);
    let from_zero = Descent { parameters: zero, ..Descent::start(statistic, model, prior)? };
    let ends = [from_start, from_zero].map(|mut descent| {
        let target = descent.descend()?;
        Ok::<_, MapError>((descent.cost(&target)?, target))
    });
    let likelier = ends.into_iter().flatten().min_by(|(one, _), (other, _)| one.total_cmp(other));
    likelier.map(|(_, target)| target.estimate(model, prior)).ok_or(MapError::Scale)
}

/// Squared length of the last step, in posterior standard deviations, at which a mode is found; and one that is found exactly.
const CLOSE: f64 = 1e-7;
const EXACT: f64 = 1e-18;

/// The way to the mode: present parameters (less the prior's centre) and the covariance that steps are weighed with.
struct Descent<'a> {
    statistic: &'a Statistic<'a>,
    model: ResponseModel,
    prior: &'a Prior,
    parameters: Mat<f64>,
    covariance: Llt<f64>,
}

impl<'a> Descent<'a> {
    fn start(statistic: &'a Statistic<'a>, model: ResponseModel, prior: &'a Prior) -> Result<Self, MapError> {
        let parameters = Mat::zeros(prior.centre.nrows() * model.contrasts(), 1);
        // Replaced at the first point.
        let covariance = Mat::<f64>::identity(1, 1).llt(Side::Lower).map_err(|_| MapError::Scale)?;
        Ok(Self { statistic, model, prior, parameters, covariance })
    }

    /// The posterior at the mode under every scale that is not far less likely than another: outward from the scale that is believed in.
    fn descend(&mut self) -> Result<Mixture, MapError> {
        let choices = (0..TAU_STEPS).map(|step| Choice::of_scale(step, 0.0, self.prior)).collect::<Vec<_>>();
        let believed =
            |(_, one): &(usize, &Choice), (_, other): &(usize, &Choice)| one.log_prior.total_cmp(&other.log_prior);
        let (middle, _) = choices.iter().enumerate().max_by(believed).expect("some scales");
        let mut posteriors = Mixture::default();
        posteriors.push(self.mode(choices[middle], CLOSE)?);
        let start = self.parameters.clone();
        let (smaller, larger) = (choices[..middle].iter().rev().copied(), choices[middle + 1..].iter().copied());
        for way in [smaller.collect::<Vec<_>>(), larger.collect()] {
            self.parameters.clone_from(&start);
            for choice in way {
                let posterior = self.mode(choice, CLOSE)?;
                let is_unlikely = posterior.log_weight < posteriors.best() - Mixture::NEGLIGIBLE;
                posteriors.push(posterior);
                if is_unlikely {
                    break;
                }
            }
        }
        Ok(posteriors)
    }

    /// The posterior at the mode under one scale, to within the square root of `close` standard deviations.
    fn mode(&mut self, choice: Choice, close: f64) -> Result<Component, MapError> {
        let precision = self.precision(choice.tau);
        let mut step = 0;
        loop {
            let point = self.point(step)?;
            let posterior = Information::new(&point, &self.covariance).posterior(&precision, choice)?;
            step += 1;
            if self.move_to(&point, &posterior.mean, &precision)? < close || step == STEPS_MAX {
                return Ok(posterior);
            }
        }
    }

    /// Of all contrasts.
    fn precision(&self, tau: f64) -> Mat<f64> {
        repeat(&self.prior.precision(tau), self.model.contrasts())
    }

    /// Twice the negative log of the release's likelihood and the prior's density, up to a constant, at the mean of the posteriors.
    fn cost(&self, target: &Mixture) -> Result<f64, MapError> {
        let point = Linearised::at(self.statistic, self.model, self.prior, &target.mean());
        let precision = self.precision(target.tau());
        let covariance = point.covariance.llt(Side::Lower).map_err(|_| MapError::Scale)?;
        let prior_factor = precision.llt(Side::Lower).map_err(|_| MapError::Scale)?;
        let misfit = dot(&point.residual, &covariance.solve(&point.residual)) + 2.0 * log_determinant(covariance.L());
        let of_prior =
            dot(&point.parameters, &(&precision * &point.parameters)) - 2.0 * log_determinant(prior_factor.L());
        Ok(misfit + of_prior)
    }

    fn point(&mut self, step: usize) -> Result<Linearised, MapError> {
        let point = Linearised::at(self.statistic, self.model, self.prior, &self.parameters);
        if step < UPDATES {
            self.covariance = point.covariance.llt(Side::Lower).map_err(|_| MapError::Scale)?;
        }
        Ok(point)
    }

    /// Moves toward `aim` as far as the objective falls; gives the squared length of the whole way, in the posterior's
    /// standard deviations.
    fn move_to(&mut self, point: &Linearised, aim: &Mat<f64>, precision: &Mat<f64>) -> Result<f64, MapError> {
        let objective = |residual: &Mat<f64>, parameters: &Mat<f64>| {
            dot(residual, &self.covariance.solve(residual)) + dot(parameters, &(precision * parameters))
        };
        let direction = aim - &self.parameters;
        let moved = &point.jacobian * &direction;
        let decrement = dot(&moved, &self.covariance.solve(&moved)) + dot(&direction, &(precision * &direction));
        let current = objective(&point.residual, &self.parameters);
        let mut length = 1.0;
        let next = loop {
            let next = &self.parameters + &direction * faer::Scale(length);
            if objective(&residual(self.statistic, self.model, self.prior, &next), &next) <= current || length < 1e-3 {
                break next;
            }
            length /= 2.0;
        };
        self.parameters = next;
        if decrement.is_finite() { Ok(decrement) } else { Err(MapError::Scale) }
    }
}

/// A release that is linear in the parameters: `z = r + J theta` has mean `J theta` and covariance `C`.
struct Information {
    /// `J^T C^-1 J`.
    information: Mat<f64>,
    /// `J^T C^-1 z`.
    pull: Mat<f64>,
    /// `z^T C^-1 z / 2` and half the log determinant of `C`.
    constant: f64,
}

impl Information {
    fn new(point: &Linearised, covariance: &Llt<f64>) -> Self {
        let observed = &point.residual + &point.jacobian * &point.parameters;
        let weighted = covariance.solve(&point.jacobian);
        Self {
            information: symmetric(&(point.jacobian.transpose() * &weighted)),
            pull: weighted.transpose() * &observed,
            constant: dot(&observed, &covariance.solve(&observed)) / 2.0 + log_determinant(covariance.L()),
        }
    }

    /// The posterior under a prior precision; its weight is the marginal likelihood.
    fn posterior(&self, precision: &Mat<f64>, choice: Choice) -> Result<Component, MapError> {
        let factor = symmetric(&(&self.information + precision)).llt(Side::Lower).map_err(|_| MapError::Scale)?;
        let prior_factor = precision.llt(Side::Lower).map_err(|_| MapError::Scale)?;
        let mean = factor.solve(&self.pull);
        let log_weight = choice.log_prior + dot(&self.pull, &mean) / 2.0 - self.constant - log_determinant(factor.L())
            + log_determinant(prior_factor.L());
        Ok(Component { log_weight, choice, mean, precision: factor })
    }
}

/// Residual, its derivative and its covariance at some parameters, in contrasts.
struct Linearised {
    parameters: Mat<f64>,
    residual: Mat<f64>,
    jacobian: Mat<f64>,
    covariance: Mat<f64>,
}

impl Linearised {
    fn at(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior, parameters: &Mat<f64>) -> Self {
        let (basis, contrasts) = (model.basis(), model.contrasts());
        let (outputs, columns) = (statistic.rows.ncols(), statistic.features.ncols());
        let mut residual = stack((statistic.released * &basis).as_ref());
        let mut jacobian = Mat::<f64>::zeros(outputs * contrasts, columns * contrasts);
        let mut covariance =
            Mat::<f64>::identity(outputs * contrasts, outputs * contrasts) * faer::Scale(statistic.noise.powi(2));
        each_block(statistic, model, prior, parameters, |features, rows, means| {
            residual -= stack((rows.transpose() * means * &basis).as_ref());
            // Means of the contrasts' products, less products of means: the covariance of the labels' contrasts.
            let contrast_means = means * &basis;
            for first in 0..contrasts {
                for second in 0..=first {
                    let variances: Vec<f64> = (0..rows.nrows())
                        .map(|row| match model {
                            ResponseModel::Linear => 1.0,
                            ResponseModel::Logistic => means[(row, 0)] * (1.0 - means[(row, 0)]),
                            ResponseModel::Multinomial { classes } => {
                                let both: f64 = (0..classes)
                                    .map(|class| basis[(class, first)] * basis[(class, second)] * means[(row, class)])
                                    .sum();
                                both - contrast_means[(row, first)] * contrast_means[(row, second)]
                            }
                        })
                        .collect();
                    let scaled =
                        Mat::from_fn(rows.nrows(), outputs, |row, output| rows[(row, output)] * variances[row]);
                    let (cross, square) = (scaled.transpose() * features, scaled.transpose() * rows);
                    let mut add = |first: usize, second: usize| {
                        let mut corner = jacobian.submatrix_mut(first * outputs, second * columns, outputs, columns);
                        corner += &cross;
                        let mut corner = covariance.submatrix_mut(first * outputs, second * outputs, outputs, outputs);
                        corner += &square * faer::Scale(1.0 / statistic.labels_per_row);
                    };
                    add(first, second);
                    if first != second {
                        add(second, first);
                    }
                }
            }
        });
        Self { parameters: parameters.clone(), residual, jacobian, covariance }
    }
}

/// `r(theta)` alone.
fn residual(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior, parameters: &Mat<f64>) -> Mat<f64> {
    let basis = model.basis();
    let mut residual = stack((statistic.released * &basis).as_ref());
    each_block(statistic, model, prior, parameters, |_, rows, means| {
        residual -= stack((rows.transpose() * means * &basis).as_ref());
    });
    residual
}

/// Calls `visit(features, rows, means)` for blocks of rows; means has one column an output.
fn each_block(
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
    parameters: &Mat<f64>,
    mut visit: impl FnMut(MatRef<'_, f64>, MatRef<'_, f64>, MatRef<'_, f64>),
) {
    let weights = weights_of(parameters, model, prior);
    let mut scores = vec![0.0; model.outputs()];
    let mut first = 0;
    while first < statistic.features.nrows() {
        let count = BLOCK.min(statistic.features.nrows() - first);
        let features = statistic.features.subrows(first, count);
        let mut means = features * &weights;
        for row in 0..count {
            for (output, score) in scores.iter_mut().enumerate() {
                *score = means[(row, output)];
            }
            model.mean(&mut scores);
            for (output, mean) in scores.iter().enumerate() {
                means[(row, output)] = *mean;
            }
        }
        visit(features, statistic.rows.subrows(first, count), means.as_ref());
        first += count;
    }
}

/// One linear fit per prior scale and label variance: each is exact.
fn fit_linear(statistic: &Statistic<'_>, prior: &Prior) -> Result<Estimate, MapError> {
    const COARSE: f64 = 0.94;
    const COARSE_STEPS: i32 = 12;
    const FINE_STEPS: i32 = 8;
    let linear = LinearModel::new(statistic, prior);
    let mut mixture = Mixture::default();
    for step in 0..COARSE_STEPS {
        linear.add((-f64::from(step) * COARSE).exp(), &mut mixture)?;
    }
    // With the sum of squares the variance is known to much better than a step of the grid: a second grid finds its place
    // between two steps, and a third one is as wide as its posterior, two standard deviations to either side.
    for level in 0..2 {
        let (log_middle, log_spread) = mixture.log_variance();
        let width = if level == 0 { log_spread.max(COARSE) } else { (2.0 * log_spread).max(0.02) };
        mixture = Mixture::default();
        for step in -FINE_STEPS..=FINE_STEPS {
            let log_variance = log_middle + width * f64::from(step) / f64::from(FINE_STEPS);
            linear.add(log_variance.exp().min(1.0), &mut mixture)?;
        }
    }
    Ok(mixture.estimate(ResponseModel::Linear, prior))
}

struct LinearModel<'a> {
    statistic: &'a Statistic<'a>,
    prior: &'a Prior,
    /// `D^T D`.
    square: Mat<f64>,
    /// `X^T X`.
    gram: Mat<f64>,
    /// At the prior's centre.
    point: Linearised,
}

impl<'a> LinearModel<'a> {
    fn new(statistic: &'a Statistic<'a>, prior: &'a Prior) -> Self {
        let jacobian = statistic.rows.transpose() * statistic.features;
        let residual = statistic.released - &jacobian * &prior.centre;
        let square = symmetric(&(statistic.rows.transpose() * statistic.rows));
        let gram = statistic.features.transpose() * statistic.features;
        let point =
            Linearised { parameters: Mat::zeros(jacobian.ncols(), 1), residual, jacobian, covariance: Mat::new() };
        Self { statistic, prior, square, gram, point }
    }

    fn add(&self, variance: f64, mixture: &mut Mixture) -> Result<(), MapError> {
        let outputs = self.square.nrows();
        let covariance = &self.square * faer::Scale(variance / self.statistic.labels_per_row)
            + Mat::<f64>::identity(outputs, outputs) * faer::Scale(self.statistic.noise.powi(2));
        let covariance = covariance.llt(Side::Lower).map_err(|_| MapError::Scale)?;
        let information = Information::new(&self.point, &covariance);
        for step in 0..TAU_STEPS {
            let choice = Choice::of_scale(step, variance, self.prior);
            let mut component = information.posterior(&self.prior.precision(tau(step)), choice)?;
            if let Some(square) = self.statistic.square {
                // E sum (x theta)^2 under the posterior, plus the labels' own variance.
                let weights = &component.mean + &self.prior.centre;
                let solved = component.precision.solve(&self.gram);
                let explained = dot(&weights, &(&self.gram * &weights)) + trace(&solved);
                let rows = self.statistic.features.nrows() as f64;
                let expected = explained + rows * variance;
                let error = square.noise.powi(2) + 2.0 * rows * variance * variance;
                component.log_weight -= (square.value - expected).powi(2) / (2.0 * error) + error.ln() / 2.0;
            }
            mixture.push(component);
        }
        Ok(())
    }
}

/// One choice of what is not known.
#[derive(Clone, Copy)]
struct Choice {
    /// Prior's scale.
    tau: f64,
    /// Variance of a label around its mean, of a linear model.
    variance: f64,
    log_prior: f64,
}

impl Choice {
    fn of_scale(step: u32, variance: f64, prior: &Prior) -> Self {
        let tau = tau(step);
        Self { tau, variance, log_prior: -((tau / prior.typical_effect).ln() / TAU_LOG_DEVIATION).powi(2) / 2.0 }
    }
}

/// The normal posterior under one choice.
struct Component {
    log_weight: f64,
    choice: Choice,
    mean: Mat<f64>,
    precision: Llt<f64>,
}

/// Posteriors under several choices, with weights.
#[derive(Default)]
struct Mixture(Vec<Component>);

impl Mixture {
    /// Components so far below the best carry no weight.
    const NEGLIGIBLE: f64 = 12.0;

    fn best(&self) -> f64 {
        self.0.iter().map(|component| component.log_weight).fold(f64::NEG_INFINITY, f64::max)
    }

    fn push(&mut self, component: Component) {
        let best = self.best().max(component.log_weight);
        self.0.push(component);
        self.0.retain(|component| component.log_weight >= best - Self::NEGLIGIBLE);
    }

    fn weighted(&self) -> impl Iterator<Item = (f64, &Component)> {
        let best = self.best();
        let total: f64 = self.0.iter().map(|component| (component.log_weight - best).exp()).sum();
        self.0.iter().map(move |component| ((component.log_weight - best).exp() / total, component))
    }

    fn mean(&self) -> Mat<f64> {
        let size = self.0.first().map_or(0, |component| component.mean.nrows());
        self.weighted()
            .fold(Mat::zeros(size, 1), |mean, (weight, component)| mean + &component.mean * faer::Scale(weight))
    }

    /// Geometric mean of the prior's scale.
    fn tau(&self) -> f64 {
        self.weighted().map(|(weight, component)| weight * component.choice.tau.ln()).sum::<f64>().exp()
    }

    /// Mean and standard deviation of the log of the labels' variance.
    fn log_variance(&self) -> (f64, f64) {
        let log = |component: &Component| component.choice.variance.ln();
        let mean: f64 = self.weighted().map(|(weight, component)| weight * log(component)).sum();
        let square: f64 = self.weighted().map(|(weight, component)| weight * (log(component) - mean).powi(2)).sum();
        (mean, square.sqrt())
    }

    /// Mean and covariance of the mixture.
    fn estimate(&self, model: ResponseModel, prior: &Prior) -> Estimate {
        let mean = self.mean();
        let mut covariance = Mat::<f64>::zeros(mean.nrows(), mean.nrows());
        for (weight, component) in self.weighted() {
            let apart = &component.mean - &mean;
            let inverse = component.precision.solve(Mat::<f64>::identity(mean.nrows(), mean.nrows()));
            covariance += (inverse + &apart * apart.transpose()) * faer::Scale(weight);
        }
        let columns = prior.centre.nrows();
        let basis = model.basis();
        let lift = Mat::from_fn(columns * basis.nrows(), columns * basis.ncols(), |row, column| {
            if row % columns == column % columns { basis[(row / columns, column / columns)] } else { 0.0 }
        });
        Estimate {
            weights: weights_of(&mean, model, prior),
            covariance: symmetric(&(&lift * &covariance * lift.transpose())),
            tau: self.tau(),
            variance: (model == ResponseModel::Linear).then(|| self.log_variance().0.exp()),
        }
    }
}

/// `theta_0 + theta U^T`.
fn weights_of(parameters: &Mat<f64>, model: ResponseModel, prior: &Prior) -> Mat<f64> {
    let columns = prior.centre.nrows();
    let unstacked =
        Mat::from_fn(columns, model.contrasts(), |column, contrast| parameters[(contrast * columns + column, 0)]);
    &prior.centre + unstacked * model.basis().transpose()
}

/// Columns below each other.
fn stack(matrix: MatRef<'_, f64>) -> Mat<f64> {
    let rows = matrix.nrows();
    Mat::from_fn(rows * matrix.ncols(), 1, |index, _| matrix[(index % rows, index / rows)])
}

/// The matrix along the diagonal, `times` times.
fn repeat(matrix: &Mat<f64>, times: usize) -> Mat<f64> {
    let size = matrix.nrows();
    Mat::from_fn(size * times, size * times, |row, column| {
        if row / size == column / size { matrix[(row % size, column % size)] } else { 0.0 }
    })
}

/// Half the log determinant of `L L^T`.
fn log_determinant(factor: MatRef<'_, f64>) -> f64 {
    (0..factor.nrows()).map(|index| factor[(index, index)].ln()).sum()
}

fn dot(left: &Mat<f64>, right: &Mat<f64>) -> f64 {
    left.col(0).iter().zip(right.col(0).iter()).map(|(left, right)| left * right).sum()
}

fn trace(matrix: &Mat<f64>) -> f64 {
    (0..matrix.nrows()).map(|index| matrix[(index, index)]).sum()
}

/// Reference numbers by `testdata/golden/label_regression.py`, and the data that they are of.
#[cfg(test)]
#[allow(clippy::unreadable_literal, reason = "as printed")]
pub(crate) mod golden {
    use super::*;

    pub(crate) const OPTIMAL_COVARIANCE_TRACE: f64 = 0.796095814307775;
    pub(crate) const LOGISTIC_MODE: [f64; 3] = [0.49254832114489056, -0.7570714436464614, -0.061240282738113744];
    pub(crate) const LOGISTIC_LOG_EVIDENCE: f64 = -4.681008290681614;
    /// Class after class.
    pub(crate) const MULTINOMIAL_MODE: [f64; 9] = [
        0.3630635513283779,
        0.32269089335357615,
        -0.8396913414129052,
        0.03570428379080221,
        -0.11797146343739383,
        0.21993914845695312,
        -0.3987678351191801,
        -0.20471942991618233,
        0.6197521929559521,
    ];
    pub(crate) const DESCENT: [f64; 3] = [0.48646273852128524, -0.7365518090201411, -0.06443363430165285];
    pub(crate) const LINEAR_MEAN: [f64; 3] = [0.06198728254894593, -0.037770685641456116, -0.01922355650935693];
    pub(crate) const LINEAR_DEVIATION: [f64; 3] = [0.3084990734294913, 0.3917312551651103, 0.471636450162564];
    pub(crate) const LINEAR_LOG_EVIDENCE: f64 = -4.770645744534095;
    pub(crate) const TAU: f64 = 0.7;
    const NOISE: f64 = 1.5;

    pub(crate) struct Data {
        pub(crate) features: Mat<f64>,
        pub(crate) rows: Mat<f64>,
        pub(crate) longest: f64,
    }

    pub(crate) fn data() -> Data {
        let features = Mat::from_fn(40, 3, |row, column| match column {
            0 => 1.0,
            1 => (row % 7) as f64 / 6.0,
            _ => (row * row % 11) as f64 / 10.0,
        });
        let longest = crate::public_design::longest_row(features.as_ref());
        let rows = &features * faer::Scale(1.0 / longest);
        Data { features, rows, longest }
    }

    impl Data {
        fn release(&self, outputs: usize, label: impl Fn(usize, usize) -> f64, noise: &[f64]) -> Mat<f64> {
            let labels = Mat::from_fn(40, outputs, label);
            self.rows.transpose() * labels + Mat::from_fn(3, outputs, |row, output| noise[row * outputs + output])
        }

        pub(crate) fn logistic_release(&self) -> Mat<f64> {
            self.release(1, |row, _| f64::from(row * 5 % 8 < 4), &[1.0, -0.5, 0.75])
        }

        pub(crate) fn multinomial_release(&self) -> Mat<f64> {
            let noise = [1.0, -0.5, 0.25, 0.5, 0.0, -1.0, -0.25, 0.75, 1.5];
            self.release(3, |row, class| f64::from((row * 3 + row / 5) % 3 == class), &noise)
        }

        pub(crate) fn linear_release(&self) -> Mat<f64> {
            self.release(1, |row, _| (row as f64).sin(), &[0.3, -0.2, 0.1])
        }

        pub(crate) fn statistic<'a>(&'a self, released: &'a Mat<f64>) -> Statistic<'a> {
            let (features, rows) = (self.features.as_ref(), self.rows.as_ref());
            Statistic { features, rows, released: released.as_ref(), noise: NOISE, labels_per_row: 1.0, square: None }
        }
    }

    pub(crate) fn assert_close(found: MatRef<'_, f64>, expected: &[f64], tolerance: f64) {
        assert_eq!(found.nrows() * found.ncols(), expected.len());
        for (place, expected) in expected.iter().enumerate() {
            let found = found[(place % found.nrows(), place / found.nrows())];
            assert!((found - expected).abs() < tolerance, "place {place}: {found} against {expected}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_sequence::FixedSequence;
    use crate::public_design::{self, Curvature};

    #[test]
    fn logistic_mode_and_evidence_agree_with_an_independent_solver() {
        let data = golden::data();
        let released = data.logistic_release();
        let prior = Prior::new(data.features.as_ref(), ResponseModel::Logistic, None);
        let mode = mode(&data.statistic(&released), ResponseModel::Logistic, &prior, golden::TAU).expect("small");
        golden::assert_close(mode.weights.as_ref(), &golden::LOGISTIC_MODE, 1e-7);
        assert!((mode.log_evidence - golden::LOGISTIC_LOG_EVIDENCE).abs() < 1e-6, "{}", mode.log_evidence);
    }

    #[test]
    fn multinomial_mode_agrees_with_an_independent_solver() {
        let data = golden::data();
        let released = data.multinomial_release();
        let model = ResponseModel::Multinomial { classes: 3 };
        let prior = Prior::new(data.features.as_ref(), model, None);
        let mode = mode(&data.statistic(&released), model, &prior, golden::TAU).expect("small");
        golden::assert_close(mode.weights.as_ref(), &golden::MULTINOMIAL_MODE, 1e-7);
    }

    #[test]
    fn linear_posterior_and_evidence_agree_with_an_independent_computation() {
        let data = golden::data();
        let released = data.linear_release();
        let statistic = data.statistic(&released);
        let prior = Prior::new(data.features.as_ref(), ResponseModel::Linear, None);
        let mut mixture = Mixture::default();
        LinearModel::new(&statistic, &prior).add(0.25, &mut mixture).expect("small");
        let of_scale = mixture.0.iter().find(|component| (component.choice.tau - 0.16).abs() < 1e-12);
        let component = of_scale.expect("0.01 · 2^4 is tried");
        golden::assert_close(component.mean.as_ref(), &golden::LINEAR_MEAN, 1e-9);
        let covariance = component.precision.solve(Mat::<f64>::identity(3, 3));
        let deviations = Mat::from_fn(3, 1, |row, _| covariance[(row, row)].sqrt());
        golden::assert_close(deviations.as_ref(), &golden::LINEAR_DEVIATION, 1e-9);
        let evidence = component.log_weight - component.choice.log_prior;
        assert!((evidence - golden::LINEAR_LOG_EVIDENCE).abs() < 1e-9, "{evidence}");
    }

    #[test]
    fn a_release_that_is_all_noise_gives_a_bounded_fit_near_the_centre() {
        let data = golden::data();
        let centre = Mat::from_fn(3, 1, |row, _| row as f64 * 0.2);
        for model in [ResponseModel::Linear, ResponseModel::Logistic] {
            let prior = Prior::new(data.features.as_ref(), model, Some(centre.as_ref()));
            // Far outside of what any labels could give: an unpenalised loss has no minimum.
            let released = Mat::from_fn(3, 1, |row, _| if row == 1 { 500.0 } else { -300.0 });
            let statistic = Statistic { noise: 400.0, ..data.statistic(&released) };
            let fitted = fit(&statistic, model, &prior).expect("bounded");
            for row in 1..3 {
                assert!((fitted.weights[(row, 0)] - centre[(row, 0)]).abs() < 0.5, "{model:?} {fitted:?}");
            }
            assert!(fitted.covariance[(1, 1)].sqrt() > 0.05, "and says that it knows little: {fitted:?}");
        }
    }

    #[test]
    fn weights_of_many_classes_add_up_to_zero_and_so_do_their_errors() {
        let data = golden::data();
        let released = data.multinomial_release();
        let model = ResponseModel::Multinomial { classes: 3 };
        let prior = Prior::new(data.features.as_ref(), model, None);
        let fitted = fit(&data.statistic(&released), model, &prior).expect("small");
        for column in 0..3 {
            let total: f64 = (0..3).map(|class| fitted.weights[(column, class)]).sum();
            assert!(total.abs() < 1e-9);
            let pairs = (0..9).map(|pair| fitted.covariance[(pair / 3 * 3 + column, pair % 3 * 3 + column)]);
            assert!(pairs.sum::<f64>().abs() < 1e-9);
        }
    }

    #[test]
    fn the_sum_of_squares_makes_the_variance_known() {
        let data = golden::data();
        let features = Mat::from_fn(4000, 3, |row, column| data.features[(row % 40, column)]);
        let labels =
            Mat::from_fn(4000, 1, |row, _| 0.3 * features[(row, 1)] + 0.2 * 2f64.sqrt() * (row as f64 * 1.3).sin());
        let rows = &features * faer::Scale(1.0 / data.longest);
        let released = rows.transpose() * &labels;
        let square = Noisy { value: labels.squared_norm_l2(), noise: 2.0 };
        let statistic = Statistic {
            features: features.as_ref(),
            rows: rows.as_ref(),
            released: released.as_ref(),
            noise: 1.0,
            labels_per_row: 1.0,
            square: Some(square),
        };
        let prior = Prior::new(features.as_ref(), ResponseModel::Linear, None);
        let fitted = fit(&statistic, ResponseModel::Linear, &prior).expect("small");
        let variance = fitted.variance.expect("linear");
        assert!((variance / 0.04 - 1.0).abs() < 0.06, "{variance}");
        let expected = (variance / (4000.0 * 0.11)).sqrt();
        let deviation = fitted.covariance[(1, 1)].sqrt();
        assert!((0.7..1.5).contains(&(deviation / expected)), "{deviation} {expected}");
    }

    /// Slopes of separable classes are as long as the prior lets them be, and there most probabilities are 0 or 1.
    #[test]
    fn separable_classes_are_told_apart() {
        const ROWS: usize = 5_000;
        let mut uniform = FixedSequence::new(7);
        let mut normal = move || (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0;
        let features = Mat::from_fn(ROWS, 7, |_, column| if column == 0 { 1.0 } else { 0.5 + 0.1 * normal() });
        let class_of = |row: usize| usize::from(features[(row, 1)] > 0.5) + usize::from(features[(row, 1)] > 0.55);
        for classes in [2, 3] {
            let (model, curvature) = if classes == 2 {
                (ResponseModel::Logistic, Curvature::logistic(0.5))
            } else {
                (ResponseModel::Multinomial { classes }, Curvature::multinomial(classes))
            };
            let class_of = |row: usize| class_of(row).min(classes - 1);
            let prior = Prior::new(features.as_ref(), model, None);
            let map = public_design::fit(features.as_ref(), curvature, 1.0, prior.precision(0.5).as_ref());
            let map = map.expect("scaled well");
            let integers = map.integer_rows(features.as_ref());
            let rows = Mat::from_fn(ROWS, map.outputs(), |row, output| {
                f64::from(integers[row * map.outputs() + output]) / f64::from(public_design::INTEGER_NORM)
            });
            let class_of_output = |output: usize| if classes == 2 { 1 } else { output };
            let labels = Mat::from_fn(ROWS, model.outputs(), |row, output| {
                f64::from(u8::from(class_of(row) == class_of_output(output)))
            });
            let exact = rows.transpose() * labels;
            for noise in [0.5, 0.5, 0.5, 1.25, 1.25, 1.25] {
                let noisy = |row, output| exact[(row, output)] + noise * normal();
                let released = Mat::from_fn(map.outputs(), model.outputs(), noisy);
                let statistic = Statistic {
                    features: features.as_ref(),
                    rows: rows.as_ref(),
                    released: released.as_ref(),
                    noise,
                    labels_per_row: 1.0,
                    square: None,
                };
                let scores = &features * &fit(&statistic, model, &prior).expect("bounded").weights;
                let likeliest = |row: usize| {
                    let score = |class: usize| {
                        if classes == 2 { class as f64 * scores[(row, 0)] } else { scores[(row, class)] }
                    };
                    (1..classes).fold(0, |best, class| if score(class) > score(best) { class } else { best })
                };
                let hits = (0..ROWS).filter(|row| likeliest(*row) == class_of(*row)).count();
                assert!(hits > ROWS * 97 / 100, "{classes} classes, noise {noise}: {hits} of {ROWS}");
            }
        }
    }

    /// Effects as large as the prior just allows, under noise that hides most of them: estimates are drawn to zero, but no more than noise calls
    /// for, and their intervals say so.
    #[test]
    fn large_effects_under_noise_are_not_drawn_to_zero_by_small_scales() {
        const ROWS: usize = 1_000;
        const TABLES: usize = 60;
        let mut uniform = FixedSequence::new(11);
        let mut normal = move || (0..12).map(|_| uniform.next_uniform()).sum::<f64>() / 2.0;
        let mut coin = FixedSequence::new(12);
        let (mut product, mut square, mut covered) = (0.0, 0.0, 0);
        for _ in 0..TABLES {
            let features = Mat::from_fn(ROWS, 5, |_, column| if column == 0 { 1.0 } else { normal() });
            let effects = Mat::from_fn(5, 1, |row, _| if row == 0 { 0.0 } else { normal() });
            let scores = &features * &effects;
            let labels = Mat::from_fn(ROWS, 1, |row, _| {
                f64::from(u8::from(0.5 * (1.0 + coin.next_uniform()) < 1.0 / (1.0 + (-scores[(row, 0)]).exp())))
            });
            let rows = &features * faer::Scale(1.0 / 4.0);
            let noisy = Mat::from_fn(5, 1, |_, _| 40.0 * normal());
            let released = rows.transpose() * &labels + noisy;
            let statistic = Statistic {
                features: features.as_ref(),
                rows: rows.as_ref(),
                released: released.as_ref(),
                noise: 40.0,
                labels_per_row: 1.0,
                square: None,
            };
            let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, None);
            let fitted = fit(&statistic, ResponseModel::Logistic, &prior).expect("bounded");
            for row in 1..5 {
                let (found, truth) = (fitted.weights[(row, 0)], effects[(row, 0)]);
                product += found * truth;
                square += truth * truth;
                covered += usize::from((found - truth).abs() < 1.96 * fitted.covariance[(row, row)].sqrt());
            }
        }
        let (slope, coverage) = (product / square, covered as f64 / (4 * TABLES) as f64);
        assert!(slope > 0.35 && coverage > 0.85, "{slope} {coverage}");
    }

    /// A start that is sure of the opposite is overruled by a release that knows better, however steep it is.
    #[test]
    fn a_wrong_start_does_not_lead_astray() {
        const ROWS: usize = 2_000;
        let mut uniform = FixedSequence::new(3);
        let features = Mat::from_fn(ROWS, 3, |_, column| if column == 0 { 1.0 } else { uniform.next_uniform() });
        let labels = Mat::from_fn(ROWS, 1, |row, _| {
            let score: f64 = 2.0 * features[(row, 1)] - features[(row, 2)];
            f64::from(u8::from(0.5 * (1.0 + uniform.next_uniform()) < 1.0 / (1.0 + (-score).exp())))
        });
        let rows = &features * faer::Scale(1.0 / 3f64.sqrt());
        let released = rows.transpose() * &labels;
        let statistic = Statistic {
            features: features.as_ref(),
            rows: rows.as_ref(),
            released: released.as_ref(),
            noise: 0.5,
            labels_per_row: 1.0,
            square: None,
        };
        let fitted = |centre: Option<&Mat<f64>>| {
            let prior = Prior::new(features.as_ref(), ResponseModel::Logistic, centre.map(Mat::as_ref));
            fit(&statistic, ResponseModel::Logistic, &prior).expect("bounded").weights
        };
        let without = fitted(None);
        for steepness in [0.5, 2.0, 4.0, 8.0, 16.0] {
            let with = fitted(Some(&(&without * faer::Scale(-steepness))));
            let apart = (&with - &without).norm_max();
            assert!(apart < 0.3, "{steepness}: {with:?} and without {without:?}");
        }
    }

    #[test]
    fn contradictory_or_unusable_input_is_an_error() {
        let data = golden::data();
        let released = data.logistic_release();
        let statistic = data.statistic(&released);
        let prior = Prior::new(data.features.as_ref(), ResponseModel::Logistic, None);
        let run = |statistic: Statistic<'_>, model| fit(&statistic, model, &prior).map(|fitted| fitted.tau);
        assert!(matches!(run(statistic, ResponseModel::Multinomial { classes: 3 }), Err(MapError::Shape(_))));
        for noise in [0.0, -1.0, f64::NAN] {
            assert_eq!(run(Statistic { noise, ..statistic }, ResponseModel::Logistic), Err(MapError::NotFinite));
        }
        let infinite = Mat::from_fn(3, 1, |_, _| f64::INFINITY);
        let broken = Statistic { released: infinite.as_ref(), ..statistic };
        assert_eq!(run(broken, ResponseModel::Logistic), Err(MapError::NotFinite));
    }
}
