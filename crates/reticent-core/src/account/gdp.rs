//! Gaussian differential privacy read as (epsilon, delta), and back.
//!
//! A mechanism is mu-GDP when telling neighbours apart is no easier than telling `N(0,1)` from `N(mu,1)`; its privacy
//! profile is then at most
//!
//! ```text
//! delta(epsilon) = Phi(a) - e^epsilon Phi(b)      a = mu/2 - epsilon/mu,   b = -mu/2 - epsilon/mu
//! ```
//!
//! exact for the Gaussian mechanism (Balle and Wang 2018, arXiv:1805.06530, Theorem 8; Dong, Roth and Su 2022,
//! arXiv:1905.02383, Corollary 2.13). As written it loses every digit for small `mu` or small `delta`. Since
//! `phi(a) = e^epsilon phi(b)`, with `t = epsilon/mu`, `h = mu/2` and the Mills ratio `M`,
//!
//! ```text
//! delta = phi(a) (M(t - h) - M(t + h)) = phi(a) ∫_0^∞ 2 sinh(h s) exp(-t s - s²/2) ds
//! ```
//!
//! which is computed as the difference when the two ratios differ by a tenth or more, and else term by term from the
//! series of sinh, all of whose terms are positive.

use super::boundary;
use super::normal::{MOMENT_RATIOS, mills_ratio, moment_ratios, normal_density};
use crate::units::{Delta, Epsilon, Mu};

/// `delta` at which a mu-GDP mechanism is (epsilon, delta)-DP, rounded up.
///
/// Never below the true value; at most 1e-11 above it, relatively, for values from 1e-300.
/// Edges: a value below the smallest float is returned as the smallest float, never as 0; never above 1.
///
/// # Panics
/// When `epsilon` is negative or NaN.
#[must_use]
pub fn delta_up(mu: Mu, epsilon: f64) -> f64 {
    let delta = log_delta_up(mu, epsilon).exp();
    // One part in 1e13 is for exp; the neighbour is for subnormal values, which have no room for that part.
    (delta * (1.0 + 1e-13)).next_up().min(1.0)
}

/// Natural logarithm of the `delta` at which a mu-GDP mechanism is (epsilon, delta)-DP, rounded up.
///
/// Never below the true value. Above it by at most `2e-12 + 1e-15 |log delta|`; where `delta` is near 1, by at most
/// 2e-12 of `1 - delta`. So it works far below the smallest float: `mu = 1e-7, epsilon = 1e4` gives `-5e21`.
/// Edges: `epsilon` above 1e300 counts as 1e300, `mu` below 1e-300 as 1e-300 and above 1e150 as infinite, all of which
/// only raise the result; results below the range of floats become `f64::MIN`.
///
/// # Panics
/// When `epsilon` is negative or NaN.
#[must_use]
pub fn log_delta_up(mu: Mu, epsilon: f64) -> f64 {
    assert!(epsilon >= 0.0, "epsilon must be at least 0");
    if mu.get() > MU_CEILING {
        return 0.0;
    }
    let (mu, epsilon) = (mu.get().max(MU_FLOOR), epsilon.min(EPSILON_CEILING));
    let (t, h) = (epsilon / mu, 0.5 * mu);
    // The fused step keeps a to two roundings even where mu/2 and epsilon/mu nearly cancel.
    let a = mu.mul_add(mu, -2.0 * epsilon) / (2.0 * mu);
    let exponent = 0.5 * a * a;
    if !exponent.is_finite() {
        return if a < 0.0 { f64::MIN } else { 0.0 };
    }
    // The roundings of a and of its square are at most 5 half-ulps of the exponent; 8 are charged.
    let slack = |logarithm: f64| KERNEL_SLACK + 4.0 * f64::EPSILON * (exponent + logarithm.abs());

    let nearly_equal_ratios = h <= NEARLY_EQUAL * (t + 1.0);
    if a > 0.0 && !nearly_equal_ratios {
        // 1 - delta = Phi(-a) + e^epsilon Phi(b), which keeps its digits when delta is nearly 1.
        let complement_down = normal_density(a) * (mills_ratio(a) + mills_ratio(t + h)) * (1.0 - slack(0.0)).max(0.0);
        return ((-complement_down).ln_1p() * (1.0 - 4.0 * f64::EPSILON)).min(0.0);
    }
    let log_difference =
        if nearly_equal_ratios { log_small_difference(t, h) } else { (mills_ratio(-a) - mills_ratio(t + h)).ln() };
    (slack(log_difference) - exponent - LN_ROOT_TWO_PI + log_difference).min(0.0)
}

/// Smallest `epsilon` for which a mu-GDP mechanism is (epsilon, delta)-DP, rounded up.
///
/// Relative excess below 1e-11, but for `delta` within 1e-11 of the value at which `epsilon` is 0.
/// Edges: 0 when `delta(0) <= delta`; infinity when the answer is above 1e299 (`mu` above about 4e149).
#[must_use]
pub fn epsilon_up(mu: Mu, delta: Delta) -> f64 {
    let target = log_down(delta);
    let too_small = |epsilon: f64| log_delta_up(mu, epsilon) > target;
    if !too_small(0.0) {
        return 0.0;
    }
    if too_small(EPSILON_CEILING) {
        return f64::INFINITY;
    }
    boundary(0.0, EPSILON_CEILING, too_small).1
}

/// Largest `mu` for which every mu-GDP mechanism is (epsilon, delta)-DP, rounded down: the budget that is worth
/// (epsilon, delta).
///
/// Relative shortfall below 1e-11 for `delta` from 1e-299 up; below that it stays safe and may fall short by a fifth.
/// A part in 1e12 is given up so that the budget comes back: [`epsilon_up`] of this `mu`, or of a ledger filled to it,
/// is never above `epsilon`, not even by a rounding.
/// Edges: at least `1.99 delta`, whatever `epsilon`; at most 1e150.
#[must_use]
pub fn mu_down(epsilon: Epsilon, delta: Delta) -> Mu {
    let target = log_down(delta);
    // delta(epsilon) <= delta(0) = 2 Phi(mu/2) - 1 < mu / sqrt(2 pi), so mu = 2 delta is always allowed.
    let allowed = |mu: f64| Mu::new(mu).is_ok_and(|mu| log_delta_up(mu, epsilon.get()) <= target);
    let (mu, _) = boundary(2.0 * delta.get(), MU_CEILING, allowed);
    Mu::new(mu * (1.0 - ROUND_TRIP_MARGIN)).expect("close to twice a positive delta or more, at most 1e150")
}

/// `ln(M(t - h) - M(t + h))` for `h <= NEARLY_EQUAL (t + 1)`.
///
/// ```text
/// M(t - h) - M(t + h) = 2 h I_1(t) (1 + sum_k h^{2k}/(2k+1)! I_{2k+1}(t) / I_1(t)),   I_1 = r_1 / (t + r_1)
/// ```
///
/// Terms fall at least as fast as `0.04^k`. The factors are taken apart by logarithm because their product underflows.
fn log_small_difference(t: f64, h: f64) -> f64 {
    let ratios = moment_ratios(t);
    let (mut term, mut sum) = (1.0, 0.0);
    for n in (2..MOMENT_RATIOS).step_by(2) {
        // r_n and r_{n+1} stand at n - 1 and n. The factors h r are each below one, h² alone may overflow.
        let order = n as f64;
        term *= (h * ratios[n - 1] / order) * (h * ratios[n] / (order + 1.0));
        sum += term;
    }
    let first = ratios[0];
    (2.0 * h).ln() + first.ln() - (t + first).ln() + sum.ln_1p()
}

/// `ln delta`, rounded down.
fn log_down(delta: Delta) -> f64 {
    delta.get().ln() * (1.0 + 4.0 * f64::EPSILON)
}

/// Relative error allowed to the Mills ratios, their difference, exp and ln together: over ten times what was measured.
const KERNEL_SLACK: f64 = 1e-13;

/// What [`mu_down`] gives up beyond rounding, relatively: far more than two computations can differ by.
const ROUND_TRIP_MARGIN: f64 = 1e-12;

/// Mills ratios at `t ± h` count as nearly equal for `h` up to this multiple of `t + 1`.
const NEARLY_EQUAL: f64 = 0.1;

/// Largest `epsilon`, smallest and largest `mu` that are computed with; what is outside is rounded to the unfavourable side.
const EPSILON_CEILING: f64 = 1e300;
const MU_FLOOR: f64 = 1e-300;
const MU_CEILING: f64 = 1e150;

/// `ln sqrt(2 pi)`.
const LN_ROOT_TWO_PI: f64 = 0.918_938_533_204_672_8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_of_delta_is_rounded_down() {
        for delta in [1e-300, 1e-9, 0.3, 0.999] {
            let (found, plain) = (log_down(Delta::new(delta).expect("legal")), delta.ln());
            assert!(found < plain.next_down() && found > plain * (1.0 + 1e-14), "{delta}: {found} {plain}");
        }
    }
}
