//! Pure epsilon: its sum, and its exact price in Gaussian differential privacy.

use super::boundary;
use super::normal::{central_mass, log_normal_cdf};
use crate::units::{Epsilon, Mu};

/// Smallest `mu` for which every pure-epsilon mechanism is mu-GDP, rounded up.
///
/// ```text
/// mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)),   equivalently   2 Phi(mu/2) - 1 = tanh(epsilon/2)
/// ```
///
/// Guarantee: the trade-off curve of `mu`-GDP lies nowhere above that of epsilon-DP, which is two straight lines with a
/// kink at type I = type II error = `1 / (1 + e^epsilon)`; being convex and symmetric, it stays below both lines exactly
/// when it passes through or below the kink. Randomised response attains it, so no smaller `mu` is true. It may join an
/// adaptive sum of `mu²`.
/// Source: derived from Dong, Roth and Su 2022 (arXiv:1905.02383), Proposition 2.5 and Definition 2.6.
/// Edges: every legal epsilon works; `mu` is about `sqrt(pi/2) epsilon` near 0 and `2 sqrt(2 epsilon)` far out.
/// Relative excess below 1e-12.
#[must_use]
pub fn mu_of_pure_up(epsilon: Epsilon) -> Mu {
    let epsilon = epsilon.get();
    let (_, half) = if epsilon < SMALL {
        // In terms of the mass above one half, which keeps its digits when epsilon is tiny.
        let mass_up = ((0.5 * epsilon).tanh() * (1.0 + SLACK)).next_up();
        boundary(0.0, 2.0, |half| central_mass(half) < mass_up)
    } else {
        // In terms of the logarithm of the tail, which keeps its digits when the tail is tiny.
        let log_tail_down = -(epsilon + (-epsilon).exp().ln_1p()) * (1.0 + SLACK);
        boundary(0.0, 1e155, |half| log_normal_cdf(-half) > log_tail_down)
    };
    Mu::new(2.0 * half).expect("the upper neighbour of a boundary above 0 and below 1e155")
}

/// Running sum of pure epsilons, rounded up: the price of a sequence of pure mechanisms.
///
/// Guarantee: mechanisms that are epsilon_i-DP in one relation, each chosen with sight of the earlier releases, are
/// together `cap`-DP in it as long as the sum can never pass `cap`: on every history the likelihood ratios multiply to
/// at most `exp(sum epsilon_i)`. The setting is that of Rogers, Roth, Ullman and Vadhan 2016 (arXiv:1605.08294).
/// Each addition rounds up by at most one unit in the last place, and not at all when it is exact.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PureLoss(f64);

impl PureLoss {
    /// Nothing spent.
    pub const ZERO: Self = Self(0.0);

    /// The sum with one more mechanism, or `None` past the range of floats.
    #[must_use]
    pub fn checked_add(self, epsilon: Epsilon) -> Option<Self> {
        let (left, right) = (self.0, epsilon.get());
        let sum = left + right;
        // Knuth's two-sum: what the addition rounded away, exactly.
        let virtual_right = sum - left;
        let lost = (left - (sum - virtual_right)) + (right - virtual_right);
        let rounded = if lost > 0.0 { sum.next_up() } else { sum };
        rounded.is_finite().then_some(Self(rounded))
    }

    /// A mechanism that is used so many times, or `None` past the range of floats: `times · epsilon`, rounded up once.
    ///
    /// A file that somebody else wrote may say four thousand million times, so this is no loop.
    #[must_use]
    pub fn of_times(epsilon: Epsilon, times: u32) -> Option<Self> {
        let (epsilon, times) = (epsilon.get(), f64::from(times));
        let product = times * epsilon;
        // What the multiplication rounded away, exactly: a fused multiplication rounds once, and this has few digits.
        let lost = times.mul_add(epsilon, -product);
        let rounded = if lost > 0.0 { product.next_up() } else { product };
        rounded.is_finite().then_some(Self(rounded))
    }

    /// The plain number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

/// Relative error allowed to tanh, exp, the series and the tail together: over ten times what was measured.
const SLACK: f64 = 1e-13;

/// Below it the mass above one half is compared, from it on the tail.
const SMALL: f64 = 1.0;
