//! The bound on objective perturbation against exact densities in one and two dimensions, and its price in GDP.
//!
//! The density of the minimiser at `theta` is `phi_s(g(theta)) det H(theta)`, `g` and `H` the gradient and Hessian of the
//! unperturbed objective. With `u = -g_D(theta)/s`, standard normal under `D`, the exact `delta` is
//! `E (1 - e^eps q/p)_+` over `u`: a Gaussian integral, taken on a grid.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use reticent_core::account::gdp;
use reticent_core::account::objective::ObjectiveProfile;
use reticent_core::units::Mu;
use serde_json::Value;

const EPSILONS: [f64; 10] = [0.0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0];

struct Draws(ChaCha20Rng);

impl Draws {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        (self.between(low.ln(), high.ln())).exp()
    }
    fn whole(&mut self, until: usize) -> usize {
        ((self.unit() * until as f64) as usize).min(until - 1)
    }
}

fn sigmoid(z: f64) -> f64 {
    1.0 / (1.0 + (-z).exp())
}

fn normal_density(u: f64) -> f64 {
    (-0.5 * u * u).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Rows `(x, y)` in one dimension with ridge and centre: gradient and Hessian.
struct Line {
    rows: Vec<(f64, f64)>,
    l2: f64,
    centre: f64,
}

impl Line {
    fn gradient(&self, theta: f64) -> f64 {
        self.rows.iter().map(|(x, y)| (sigmoid(x * theta) - y) * x).sum::<f64>() + self.l2 * (theta - self.centre)
    }
    fn hessian(&self, theta: f64) -> f64 {
        let curvature = |z: f64| sigmoid(z) * (1.0 - sigmoid(z));
        self.rows.iter().map(|(x, _)| curvature(x * theta) * x * x).sum::<f64>() + self.l2
    }
    fn log_density(&self, theta: f64, noise: f64) -> f64 {
        let u = self.gradient(theta) / noise;
        -0.5 * u * u + self.hessian(theta).ln()
    }
    /// The `theta` with gradient `-b`.
    fn minimiser(&self, b: f64) -> f64 {
        let reach = (self.rows.iter().map(|(x, _)| x.abs()).sum::<f64>() + b.abs()) / self.l2 + 1.0;
        let (mut low, mut high) = (self.centre - reach, self.centre + reach);
        for _ in 0..70 {
            let middle = 0.5 * (low + high);
            if self.gradient(middle) + b > 0.0 { high = middle } else { low = middle }
        }
        0.5 * (low + high)
    }
}

/// `max_eps exact delta / bound` of telling `from` apart from `to`, over [`EPSILONS`].
fn worst_ratio_on_a_line(from: &Line, to: &Line, noise: f64, bound: impl Fn(f64) -> f64) -> f64 {
    // Even steps of u, and even steps of every row's score: where ridge and noise leave u flat the scores still turn.
    let even = (0..=500).map(|step| from.minimiser((-8.5 + 0.034 * f64::from(step)) * noise));
    let turns =
        from.rows.iter().chain(&to.rows).flat_map(|(x, _)| (-120..=120).map(move |step| f64::from(step) * 0.2 / x));
    let mut thetas: Vec<f64> = even.chain(turns).collect();
    thetas.sort_by(f64::total_cmp);
    let nodes: Vec<(f64, f64)> = thetas
        .into_iter()
        .map(|theta| (from.gradient(theta) / noise, from.log_density(theta, noise) - to.log_density(theta, noise)))
        .filter(|(u, _)| u.abs() <= 8.5)
        .collect();
    let losses: Vec<(f64, f64)> = nodes
        .windows(2)
        .flat_map(|pair| {
            let half = 0.5 * (pair[1].0 - pair[0].0);
            pair.iter().map(move |(u, loss)| (normal_density(*u) * half, *loss)).collect::<Vec<_>>()
        })
        .collect();
    ratio_of(&losses, bound)
}

fn ratio_of(losses: &[(f64, f64)], bound: impl Fn(f64) -> f64) -> f64 {
    let exact =
        |epsilon: f64| losses.iter().map(|(mass, loss)| mass * (1.0 - (epsilon - loss).exp()).max(0.0)).sum::<f64>();
    // Below 1e-7 the grid says nothing.
    EPSILONS
        .iter()
        .filter(|epsilon| exact(**epsilon) > 1e-7)
        .map(|epsilon| exact(*epsilon) / bound(*epsilon))
        .fold(0.0, f64::max)
}

fn a_line(draws: &mut Draws) -> (Line, Line, f64) {
    let l2 = draws.log_between(1e-3, 1e3);
    let noise = draws.log_between(0.2, 20.0);
    let centre = if draws.unit() < 0.5 { 0.0 } else { draws.between(-90.0, 90.0) / (1.0 + l2) };
    let norm = draws.log_between(0.03, 30.0);
    let rows: Vec<(f64, f64)> =
        (0..draws.whole(6)).map(|_| (draws.between(-norm, norm), f64::from(draws.unit() < 0.5))).collect();
    let more = (draws.between(0.3, 1.0) * if draws.unit() < 0.5 { -1.0 } else { 1.0 }, f64::from(draws.unit() < 0.5));
    let without = Line { rows: rows.clone(), l2, centre };
    let with = Line { rows: rows.into_iter().chain([more]).collect(), l2, centre };
    (without, with, noise)
}

/// 150 random tables, ridges, noises and centres, with every further row of norm up to 1, in both directions. The other rows
/// may be far longer than 1: they do not enter the bound.
#[test]
fn exact_densities_in_one_dimension_stay_below_the_bound() {
    let mut draws = Draws(ChaCha20Rng::seed_from_u64(1));
    let (mut worst, mut worst_without_c) = ([0.0f64; 2], 0.0f64);
    for _ in 0..150 {
        let (without, with, noise) = a_line(&mut draws);
        // The bound of the row's own length is the sharpest test.
        let length = with.rows.last().expect("one row more").0.abs();
        let profile = ObjectiveProfile::new(2, with.l2 / (length * length), noise / length).expect("in range");
        let bound = |epsilon| profile.delta_up(epsilon);
        let unshifted = |epsilon| gdp::delta_up(profile.shift_up(), epsilon);
        worst[0] = worst[0].max(worst_ratio_on_a_line(&with, &without, noise, bound));
        worst[1] = worst[1].max(worst_ratio_on_a_line(&without, &with, noise, bound));
        worst_without_c = worst_without_c.max(worst_ratio_on_a_line(&with, &without, noise, unshifted));
    }
    for ratio in worst {
        assert!((0.98..1.003).contains(&ratio), "adding, removing: {worst:?}");
    }
    assert!(worst_without_c > 1.2, "the determinant's share is real: {worst_without_c}");
}

/// Soft labels: the slope lies in an interval of length 1 that holds 0, and the bound is the same.
#[test]
fn soft_labels_stay_below_the_same_bound() {
    let mut draws = Draws(ChaCha20Rng::seed_from_u64(2));
    let mut worst = 0.0f64;
    for _ in 0..60 {
        let (without, mut with, noise) = a_line(&mut draws);
        let last = with.rows.last_mut().expect("one row more");
        last.1 = draws.unit();
        let length = last.0.abs();
        let profile = ObjectiveProfile::new(2, with.l2 / (length * length), noise / length).expect("in range");
        worst = worst.max(worst_ratio_on_a_line(&with, &without, noise, |epsilon| profile.delta_up(epsilon)));
        worst = worst.max(worst_ratio_on_a_line(&without, &with, noise, |epsilon| profile.delta_up(epsilon)));
    }
    assert!((0.9..1.003).contains(&worst), "{worst}");
}

/// A changed label moves the gradient by a constant and leaves the Hessian: the mechanism is exactly Gaussian.
#[test]
fn a_changed_label_costs_exactly_its_shift() {
    let mut draws = Draws(ChaCha20Rng::seed_from_u64(3));
    for _ in 0..20 {
        let (_, with, noise) = a_line(&mut draws);
        let mut changed = Line { rows: with.rows.clone(), l2: with.l2, centre: with.centre };
        let last = changed.rows.last_mut().expect("one row more");
        last.1 = 1.0 - last.1;
        let shift = Mu::new(last.0.abs() / noise).expect("above zero");
        let ratio = worst_ratio_on_a_line(&with, &changed, noise, |epsilon| gdp::delta_up(shift, epsilon));
        assert!((0.98..1.003).contains(&ratio), "{ratio}");
    }
}

type Point = [f64; 2];
type Square = [[f64; 2]; 2];

/// A loss in two dimensions: gradient and Hessian of the data, ridge and centre.
trait Plane {
    fn gradient(&self, theta: Point) -> Point;
    fn hessian(&self, theta: Point) -> Square;

    fn log_density(&self, theta: Point, noise: f64) -> f64 {
        let ([g0, g1], [[a, b], [_, d]]) = (self.gradient(theta), self.hessian(theta));
        -0.5 * (g0 * g0 + g1 * g1) / (noise * noise) + (a * d - b * b).ln()
    }
    /// Damped Newton steps from `start` to the `theta` with gradient `-b`.
    fn minimiser(&self, target: Point, start: Point) -> Point {
        let residual = |theta: Point| {
            let g = self.gradient(theta);
            [g[0] + target[0], g[1] + target[1]]
        };
        let size = |g: Point| g[0].hypot(g[1]);
        let mut theta = start;
        for _ in 0..400 {
            let g = residual(theta);
            if size(g) < 1e-10 {
                return theta;
            }
            let [[a, b], [_, d]] = self.hessian(theta);
            let determinant = a * d - b * b;
            let step = [(d * g[0] - b * g[1]) / determinant, (a * g[1] - b * g[0]) / determinant];
            let mut length = 1.0;
            while length > 1e-9 {
                let next = [theta[0] - length * step[0], theta[1] - length * step[1]];
                if size(residual(next)) < size(g) {
                    theta = next;
                    break;
                }
                length *= 0.5;
            }
            if length <= 1e-9 {
                return theta;
            }
        }
        theta
    }
}

/// Two classes, two columns.
struct Logistic {
    rows: Vec<(Point, f64)>,
    l2: f64,
}

impl Plane for Logistic {
    fn gradient(&self, theta: Point) -> Point {
        let mut total = [self.l2 * theta[0], self.l2 * theta[1]];
        for (x, y) in &self.rows {
            let slope = sigmoid(x[0] * theta[0] + x[1] * theta[1]) - y;
            total = [total[0] + slope * x[0], total[1] + slope * x[1]];
        }
        total
    }
    fn hessian(&self, theta: Point) -> Square {
        let mut total = [[self.l2, 0.0], [0.0, self.l2]];
        for (x, _) in &self.rows {
            let p = sigmoid(x[0] * theta[0] + x[1] * theta[1]);
            for (row, first) in total.iter_mut().zip(x) {
                for (entry, second) in row.iter_mut().zip(x) {
                    *entry += p * (1.0 - p) * first * second;
                }
            }
        }
        total
    }
}

/// Three classes, one column. The sum of the three weights is free of the data; what is left has two dimensions.
struct Softmax {
    rows: Vec<(f64, usize)>,
    l2: f64,
}

/// Orthonormal contrasts of three classes.
const CONTRASTS: [Point; 3] = [
    [std::f64::consts::FRAC_1_SQRT_2, 0.408_248_290_463_863],
    [-std::f64::consts::FRAC_1_SQRT_2, 0.408_248_290_463_863],
    [0.0, -0.816_496_580_927_726],
];

impl Softmax {
    fn probabilities(theta: Point, x: f64) -> [f64; 3] {
        let scores = CONTRASTS.map(|contrast| x * (contrast[0] * theta[0] + contrast[1] * theta[1]));
        let largest = scores.into_iter().fold(f64::MIN, f64::max);
        let powers = scores.map(|score| (score - largest).exp());
        let sum: f64 = powers.iter().sum();
        powers.map(|power| power / sum)
    }
}

impl Plane for Softmax {
    fn gradient(&self, theta: Point) -> Point {
        let mut total = [self.l2 * theta[0], self.l2 * theta[1]];
        for (x, class) in &self.rows {
            for (k, p) in Self::probabilities(theta, *x).into_iter().enumerate() {
                let slope = (p - f64::from(u8::from(k == *class))) * x;
                total = [total[0] + slope * CONTRASTS[k][0], total[1] + slope * CONTRASTS[k][1]];
            }
        }
        total
    }
    fn hessian(&self, theta: Point) -> Square {
        let mut total = [[self.l2, 0.0], [0.0, self.l2]];
        for (x, _) in &self.rows {
            let p = Self::probabilities(theta, *x);
            let mean = |i: usize| (0..3).map(|k| p[k] * CONTRASTS[k][i]).sum::<f64>();
            for (i, row) in total.iter_mut().enumerate() {
                for (j, entry) in row.iter_mut().enumerate() {
                    let second: f64 = (0..3).map(|k| p[k] * CONTRASTS[k][i] * CONTRASTS[k][j]).sum();
                    *entry += x * x * (second - mean(i) * mean(j));
                }
            }
        }
        total
    }
}

fn worst_ratio_on_a_plane(from: &dyn Plane, to: &dyn Plane, noise: f64, bound: impl Fn(f64) -> f64) -> f64 {
    const STEPS: i32 = 50;
    let width = 12.0 / f64::from(STEPS);
    let mut losses = Vec::new();
    for i in 0..STEPS {
        let mut theta = [0.0, 0.0];
        for j in 0..STEPS {
            let u = [-6.0 + width * (f64::from(i) + 0.5), -6.0 + width * (f64::from(j) + 0.5)];
            theta = from.minimiser([u[0] * noise, u[1] * noise], theta);
            let mass = normal_density(u[0]) * normal_density(u[1]) * width * width;
            losses.push((mass, from.log_density(theta, noise) - to.log_density(theta, noise)));
        }
    }
    ratio_of(&losses, bound)
}

#[test]
fn exact_densities_in_two_dimensions_stay_below_the_bound() {
    let mut draws = Draws(ChaCha20Rng::seed_from_u64(4));
    let (mut worst, mut worst_replaced) = (0.0f64, 0.0f64);
    for _ in 0..12 {
        let (l2, noise, norm) =
            (draws.log_between(0.02, 50.0), draws.log_between(0.4, 5.0), draws.log_between(0.1, 4.0));
        let mut row = |norm: f64| {
            let angle = draws.between(0.0, std::f64::consts::TAU);
            ([norm * angle.cos(), norm * angle.sin()], f64::from(draws.unit() < 0.5))
        };
        let rows: Vec<_> = (0..4).map(|_| row(norm)).collect();
        let with = |more: (Point, f64)| Logistic { rows: rows.iter().copied().chain([more]).collect(), l2 };
        let (one, other) = (with(row(1.0)), with(row(1.0)));
        let without = Logistic { rows: rows.clone(), l2 };
        let profile = ObjectiveProfile::new(2, l2, noise).expect("in range");
        let bound = |epsilon| profile.delta_up(epsilon);
        worst = worst.max(worst_ratio_on_a_plane(&one, &without, noise, bound));
        worst = worst.max(worst_ratio_on_a_plane(&without, &one, noise, bound));
        // Replacing a row: group privacy in the equivalent GDP.
        let twice = Mu::new(2.0 * profile.equivalent_mu_up().expect("in range").get()).expect("above zero");
        worst_replaced =
            worst_replaced.max(worst_ratio_on_a_plane(&one, &other, noise, |epsilon| gdp::delta_up(twice, epsilon)));
    }
    assert!((0.6..1.01).contains(&worst), "{worst}");
    assert!((0.3..1.01).contains(&worst_replaced), "{worst_replaced}");
}

#[test]
fn exact_densities_of_three_classes_stay_below_the_bound() {
    let mut draws = Draws(ChaCha20Rng::seed_from_u64(5));
    let (mut worst, mut worst_as_binary) = (0.0f64, 0.0f64);
    for _ in 0..12 {
        let (l2, noise, norm) =
            (draws.log_between(0.02, 50.0), draws.log_between(0.4, 5.0), draws.log_between(0.1, 4.0));
        let rows: Vec<(f64, usize)> = (0..3).map(|_| (draws.between(-norm, norm), draws.whole(3))).collect();
        let with = Softmax { rows: rows.iter().copied().chain([(1.0, draws.whole(3))]).collect(), l2 };
        let without = Softmax { rows, l2 };
        let profile = ObjectiveProfile::new(3, l2, noise).expect("in range");
        for (from, to) in [(&with, &without), (&without, &with)] {
            worst = worst.max(worst_ratio_on_a_plane(from, to, noise, |epsilon| profile.delta_up(epsilon)));
            let log_determinant = 2.0 * (1.0 / (3.0 * l2)).ln_1p();
            let as_binary = |epsilon: f64| gdp::delta_up(profile.shift_up(), (epsilon - log_determinant).max(0.0));
            worst_as_binary = worst_as_binary.max(worst_ratio_on_a_plane(from, to, noise, as_binary));
        }
    }
    assert!((0.7..1.01).contains(&worst), "{worst}");
    assert!(worst_as_binary > 1.1, "one vertex instead of two is not enough: {worst_as_binary}");
}

/// Reference numbers of `testdata/golden/objective_perturbation`.
fn golden() -> Value {
    serde_json::from_str(include_str!("../../../../testdata/golden/objective_perturbation/vectors.json"))
        .expect("valid")
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("no {name} in {value}"))
}

#[test]
fn profiles_agree_with_an_independent_program() {
    let golden = golden();
    let profiles = golden["profiles"].as_array().expect("a list");
    assert!(profiles.len() >= 15);
    for case in profiles {
        let classes = number(case, "classes") as u32;
        let profile = ObjectiveProfile::new(classes, number(case, "l2"), number(case, "noise")).expect("in range");
        let (found, expected) = (profile.delta_up(number(case, "epsilon")), number(case, "delta"));
        // Three classes and more: outer integral on cells.
        let slack = if classes == 2 { 1e-9 } else { 0.05 };
        assert!(found >= expected * (1.0 - 1e-9) && found <= expected * (1.0 + slack), "{case}: {found:e}");
    }
}

#[test]
fn equivalent_gdp_agrees_with_an_independent_program_and_dominates() {
    let golden = golden();
    let cases = golden["equivalents"].as_array().expect("a list");
    assert!(cases.len() >= 10);
    for case in cases {
        let classes = number(case, "classes") as u32;
        let profile = ObjectiveProfile::new(classes, number(case, "l2"), number(case, "noise")).expect("in range");
        let (found, one_point) = (profile.equivalent_mu_up().expect("in range"), number(case, "one_point_mu"));
        let slack = if classes == 2 { 1.0015e-3 } else { 0.03 };
        assert!(found.get() >= one_point * (1.0 - 1e-8) && found.get() <= one_point * (1.0 + slack), "{case}: {found}");
        for step in 0..400 {
            let epsilon = f64::from(step) * 0.03 * found.get();
            assert!(profile.delta_up(epsilon) <= gdp::delta_up(found, epsilon), "{case} at {epsilon}");
        }
    }
}

#[test]
fn prices_grow_with_less_ridge_and_less_noise() {
    let price = |classes, l2, noise| {
        ObjectiveProfile::new(classes, l2, noise).and_then(|one| one.equivalent_mu_up()).expect("in range").get()
    };
    for classes in [2, 3, 10] {
        assert!(price(classes, 10.0, 10.0) < price(classes, 1.0, 10.0));
        assert!(price(classes, 10.0, 10.0) < price(classes, 10.0, 9.0));
        // Never below the price of changing a label.
        assert!(
            price(classes, 1e6, 10.0) >= ObjectiveProfile::new(classes, 1e6, 10.0).expect("in range").shift_up().get()
        );
    }
    assert!(ObjectiveProfile::new(2, 0.0, 1.0).is_none() && ObjectiveProfile::new(2, 1.0, 0.0).is_none());
    assert!(ObjectiveProfile::new(1, 1.0, 1.0).is_none() && ObjectiveProfile::new(2, f64::NAN, 1.0).is_none());
}
