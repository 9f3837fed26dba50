//! How far a coefficient along one eigenvector may be from its estimate, where the weight of the matrix there is not well known.
//!
//! A normal posterior takes the noise of a matrix times the coefficient that it found. But where that weight was found too large, the
//! coefficient was found too small, and with it its own noise: interval and estimate err together. And where one direction carries what the
//! others do not, a prior of one size for all draws it to zero. Here the coefficient is integrated over, with the noise of the weight at every
//! size of it, and with any size up to what the target allows where a direction stands out of the noise.

/// What is known of one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct DoubtfulDirection {
    /// Estimate `g` of the weight `v'X'X v`.
    pub(super) weight: f64,
    /// Variance `q` of what is not known of it.
    pub(super) weight_variance: f64,
    /// What was released along it: `z = g delta + noise`.
    pub(super) signal: f64,
    /// Variance `v` of all its noise but that of the weight.
    pub(super) noise_variance: f64,
    /// Prior variance of a coefficient like the others.
    pub(super) prior: f64,
    /// The largest that it is taken for here.
    pub(super) prior_max: f64,
    /// The coefficient that was found.
    pub(super) found: f64,
    /// Its posterior standard deviation.
    pub(super) deviation: f64,
}

/// Sizes of the coefficient from the prior to the largest.
const SIZES: u32 = 8;
/// Points of the integral: the integrand is smooth in the variable that they are even in.
const POINTS: i32 = 160;
/// How many of the largest sizes the integral goes to.
const REACH: f64 = 4.0;
/// `1/(1 + e^(-1.702 x))` is the normal distribution to within a hundredth.
const LOGISTIC_OF_NORMAL: f64 = 1.702;

impl DoubtfulDirection {
    /// Mean square of what the coefficient is off by:
    /// ```text
    ///   E[(delta - found)²],   density  pi(delta) N(z - g delta; 0, v + q delta²) Phi(m),   m = (g/q + z delta/v)/(1/q + delta²/v)^(1/2)
    ///   pi = sum of a N(0, a²) over 8 sizes a², even in their logarithm from the prior to the largest
    /// ```
    /// `Phi(m)` is the chance that the weight is above zero; in place of it a logistic one. The sizes together are nearly flat up to the largest.
    pub(super) fn mean_square_error(self) -> f64 {
        let Self { weight, weight_variance, signal, noise_variance, prior, prior_max, found, deviation } = self;
        let step = (prior_max / prior).ln() / f64::from(SIZES - 1);
        let sizes: Vec<f64> = (0..SIZES).map(|size| prior * (step * f64::from(size)).exp()).collect();
        let log_density = |delta: f64| {
            let of_prior: f64 = sizes.iter().map(|size| (-0.5 * delta * delta / size).exp()).sum();
            let variance = noise_variance + weight_variance * delta * delta;
            let precision = 1.0 / weight_variance + delta * delta / noise_variance;
            let middle = (weight / weight_variance + signal * delta / noise_variance) / precision.sqrt();
            let above_zero = -(-LOGISTIC_OF_NORMAL * middle).exp().ln_1p();
            of_prior.ln() + above_zero - 0.5 * ((signal - weight * delta).powi(2) / variance + variance.ln())
        };
        // Even in the hyperbolic sine's variable: fine near the estimate, and as far as any size goes.
        let end = (REACH * (prior_max.sqrt() + found.abs()) / deviation).asinh();
        let points: Vec<(f64, f64)> = (0..=POINTS)
            .map(|point| {
                let at = end * (2.0 * f64::from(point) / f64::from(POINTS) - 1.0);
                let away = deviation * at.sinh();
                (away, log_density(found + away) + at.cosh().ln())
            })
            .collect();
        let largest = points.iter().map(|point| point.1).fold(f64::NEG_INFINITY, f64::max);
        let (mut total, mut square) = (0.0, 0.0);
        for (away, log_weight) in points {
            let share = (log_weight - largest).exp();
            total += share;
            square += share * away * away;
        }
        square / total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAR: DoubtfulDirection = DoubtfulDirection {
        weight: 1000.0,
        weight_variance: 1.0,
        signal: 2000.0,
        noise_variance: 100.0,
        prior: 4.0,
        prior_max: 40.0,
        found: 2.0,
        deviation: 0.01,
    };

    #[test]
    fn where_the_weight_is_known_it_is_the_noise_of_the_signal() {
        let found = CLEAR.mean_square_error();
        assert!((found / 1.04e-4 - 1.0).abs() < 0.01, "{found}");
    }

    /// A weight of 50 ± 25: found too large, it makes the coefficient too small, and the doubt larger than its own size says.
    #[test]
    fn where_the_weight_is_doubtful_the_error_is_larger_than_at_the_estimate() {
        let doubtful = DoubtfulDirection {
            weight: 80.0,
            weight_variance: 600.0,
            signal: 140.0,
            noise_variance: 400.0,
            prior: 1.7,
            prior_max: 18.0,
            found: 1.6,
            deviation: 0.55,
        };
        let found = doubtful.mean_square_error().sqrt();
        assert!(found > 1.3 * doubtful.deviation && found < 3.0 * doubtful.deviation, "{found}");
        let nothing = DoubtfulDirection { weight: 1e-9, weight_variance: 1e-18, prior_max: 1.7, ..doubtful };
        let found = nothing.mean_square_error();
        assert!((found / (1.7 + 1.6 * 1.6) - 1.0).abs() < 0.05, "what is left is the prior: {found}");
    }
}
