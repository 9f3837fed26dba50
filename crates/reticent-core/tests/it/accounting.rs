//! Accounting against reference numbers: published closed forms, 120-digit vectors, and laws that hold for any input.
//!
//! "Outward" is checked as an inequality against the stored float, which is itself rounded: hence `REFERENCE_ROUNDING`.

use proptest::prelude::*;
use reticent_core::account::gdp::{delta_up, epsilon_up, log_delta_up, mu_down};
use reticent_core::account::normal::log_normal_cdf;
use reticent_core::account::pure::{PureLoss, mu_of_pure_up};
use reticent_core::units::{Delta, Epsilon, Mu, MuSquared};
use serde::Deserialize;
use serde_json::Value;

const PUBLISHED: &str = include_str!("../../../../testdata/golden/accounting/published_forms.json");
const NORMAL_CDF: &str = include_str!("../../../../testdata/golden/accounting/normal_cdf.json");
const PROFILE: &str = include_str!("../../../../testdata/golden/accounting/profile.json");
const BUDGET: &str = include_str!("../../../../testdata/golden/accounting/budget.json");
const PURE: &str = include_str!("../../../../testdata/golden/accounting/pure.json");

/// A stored float is within half a unit in the last place of the number it stands for.
const REFERENCE_ROUNDING: f64 = 2e-16;

/// How far above the truth an outward-rounded value may lie, relatively.
const TIGHTNESS: f64 = 1e-11;

#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    params: Value,
    expect: Value,
}

impl Case {
    fn param(&self, name: &str) -> f64 {
        self.params[name].as_f64().unwrap_or_else(|| panic!("{}: no parameter {name}", self.id))
    }

    fn expected(&self, name: &str) -> Option<f64> {
        assert!(self.expect.get(name).is_some(), "{}: no expectation {name}", self.id);
        self.expect[name].as_f64()
    }

    fn mu_of_gaussian(&self) -> Mu {
        mu(self.param("sensitivity") / self.param("sigma"))
    }

    fn delta(&self) -> Delta {
        delta(self.param("delta"))
    }

    /// `found` is not below the stored value and not above it by more than the promise.
    /// `input_rounding` is what turning the case's parameters into ours may have moved.
    fn assert_just_above(&self, name: &str, found: f64, input_rounding: f64) -> usize {
        let Some(expected) = self.expected(name) else { return 0 };
        assert_just_above(&format!("{} {name}", self.id), found, expected, input_rounding);
        1
    }
}

fn assert_just_above(label: &str, found: f64, expected: f64, input_rounding: f64) {
    assert!(found >= expected * (1.0 - REFERENCE_ROUNDING - input_rounding), "{label}: {found} below {expected}");
    assert!(found <= expected * (1.0 + TIGHTNESS + input_rounding), "{label}: {found} far above {expected}");
}

fn assert_just_below(label: &str, found: f64, expected: f64) {
    assert!(found <= expected * (1.0 + REFERENCE_ROUNDING), "{label}: {found} above {expected}");
    assert!(found >= expected * (1.0 - TIGHTNESS), "{label}: {found} far below {expected}");
}

fn mu(value: f64) -> Mu {
    Mu::new(value).expect("test mu is legal")
}

fn delta(value: f64) -> Delta {
    Delta::new(value).expect("test delta is legal")
}

fn epsilon(value: f64) -> Epsilon {
    Epsilon::new(value).expect("test epsilon is legal")
}

/// What the ledger makes of these charges: their squares are added as integers.
fn composed(mus: impl IntoIterator<Item = Mu>) -> Mu {
    let sum = mus.into_iter().try_fold(MuSquared::ZERO, |sum, one| sum.checked_add(MuSquared::charge_up(one)?));
    mu(sum.expect("far below the ceiling").mu_up())
}

fn published(kind: &str) -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_str(PUBLISHED).expect("the vectors are JSON");
    cases.into_iter().filter(|case| case.kind == kind).collect()
}

fn rows<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    serde_json::from_str(text).expect("the vectors are JSON")
}

#[test]
fn gaussian_sigma_vectors() {
    let mut compared = 0;
    for case in published("gaussian_sigma") {
        let (sensitivity, target) = (case.param("sensitivity"), epsilon(case.param("epsilon")));
        let found = mu_down(target, case.delta());
        if let Some(expected) = case.expected("mu") {
            assert_just_below(&case.id, found.get(), expected);
            compared += 1;
        }
        compared += case.assert_just_above("sigma", sensitivity / found.get(), 0.0);
        if let Some(classic) = case.expected("classic_sigma") {
            let found = delta_up(mu(sensitivity / classic), target.get());
            // delta falls like exp(-t²/2): the two roundings of sensitivity / classic move it by t² of them.
            let steepness = (target.get() * classic / sensitivity).powi(2) + 1.0;
            compared += case.assert_just_above("delta_of_classic_sigma", found, 4e-16 * steepness);
        }
    }
    assert_eq!(compared, 120, "mu, sigma and the classic sigma's delta, 40 each");
}

#[test]
fn gaussian_delta_vectors() {
    let (mut compared, mut underflowed) = (0, 0);
    for case in published("gaussian_delta") {
        let (mu, epsilon) = (case.mu_of_gaussian(), case.param("epsilon"));
        let (found, log_found) = (delta_up(mu, epsilon), log_delta_up(mu, epsilon));
        let expected = case.expected("delta").expect("every case has one");
        if expected > 0.0 {
            // mu = 1/sigma is rounded: see above.
            let input_rounding = 2e-16 * ((epsilon / mu.get()).powi(2) + 1.0);
            assert_just_above(&case.id, found, expected, input_rounding);
            assert!(
                (log_found - expected.ln()).abs() <= 2e-12 + 4e-16 * expected.ln().abs() + input_rounding,
                "{}",
                case.id
            );
            compared += 1;
        } else {
            // Their logarithms are in profile.json.
            assert_eq!(found.to_bits(), 1, "{}: the smallest float, never 0", case.id);
            assert!(log_found < f64::from_bits(1).ln() && log_found > -1e6, "{}: {log_found}", case.id);
            underflowed += 1;
        }
    }
    assert_eq!((compared, underflowed), (29, 6));
}

#[test]
fn gaussian_composition_vectors() {
    let mut compared = 0;
    for case in published("gaussian_composition") {
        let count = case.params["k"].as_u64().expect("k is a count");
        let composed = composed((0..count).map(|_| case.mu_of_gaussian()));
        compared += case.assert_just_above("mu", composed.get(), 1e-16);
        compared += case.assert_just_above("epsilon", epsilon_up(composed, case.delta()), 4e-16);
    }
    assert_eq!(compared, 40, "mu and epsilon, 20 each");
}

#[test]
fn gaussian_heterogeneous_vectors() {
    let mut compared = 0;
    for case in published("gaussian_heterogeneous") {
        let parts: Vec<Mu> = serde_json::from_value(case.params["mus"].clone()).expect("a list of mus");
        let composed = composed(parts);
        compared += case.assert_just_above("mu", composed.get(), 0.0);
        compared += case.assert_just_above("epsilon", epsilon_up(composed, case.delta()), 0.0);
    }
    assert_eq!(compared, 10);
}

#[test]
fn zcdp_of_a_gaussian_vectors() {
    let mut compared = 0;
    for case in published("zcdp_to_epsilon") {
        let mu = mu((2.0 * case.param("rho")).sqrt());
        compared += case.assert_just_above("gdp_if_gaussian", epsilon_up(mu, case.delta()), 4e-16);
    }
    assert_eq!(compared, 12);
}

#[test]
fn rounded_gaussian_stays_below_the_price_of_the_gaussian() {
    let mut compared = 0;
    for case in published("rounded_gaussian_delta") {
        let shift = case.params["shift"][0].as_f64().expect("one coordinate");
        assert_eq!(case.params["shift"].as_array().map(Vec::len), Some(1), "{}", case.id);
        let bound = delta_up(mu(shift / case.param("sigma")), case.param("epsilon"));
        compared += case.assert_just_above("delta_gdp_upper_bound", bound, 1e-14);
        let exact = case.expected("delta").expect("every case has one");
        assert!(exact <= bound, "{}: {exact} above {bound}", case.id);
    }
    assert_eq!(compared, 10);
}

#[test]
fn pure_price_bounds_pure_mechanisms() {
    let mut at_kink = 0;
    for case in published("discrete_laplace_delta") {
        let mu = mu_of_pure_up(epsilon(case.expected("epsilon_pure").expect("every case has one")));
        let (bound, exact) = (delta_up(mu, case.param("epsilon")), case.expected("delta").expect("every case has one"));
        assert!(bound >= exact * (1.0 - REFERENCE_ROUNDING), "{}: {exact} above {bound}", case.id);
        if case.param("epsilon") < f64::MIN_POSITIVE && case.params["shift"] == serde_json::json!([1]) {
            // A shift of one step is randomised response: at epsilon 0 both profiles pass through the kink, so the
            // price is exact, not only safe.
            assert_just_above(&case.id, bound, exact, 0.0);
            at_kink += 1;
        }
    }
    assert_eq!(at_kink, 4);

    let (mut bounded, mut summed) = (0, 0);
    for case in published("laplace_composition") {
        let each = epsilon(1.0 / case.param("scale"));
        let count = case.param("k") as u32;
        let mu = composed((0..count).map(|_| mu_of_pure_up(each)));
        let bound = delta_up(mu, case.param("epsilon"));
        let optimistic = case.expected("delta_pld_optimistic").expect("every case has one");
        // At 1e-15 the accountant that made it cuts tails off, and its lower bound is the cut.
        if optimistic > 2e-15 {
            assert!(bound >= optimistic, "{}: {optimistic} above {bound}", case.id);
            bounded += 1;
        }
        if let Some(exact) = case.expected("delta_closed_form_k1") {
            assert!(bound >= exact, "{}", case.id);
        }
        summed += case.assert_just_above("epsilon_basic", sum_of(each, count), 1e-16 * f64::from(count));
    }
    assert_eq!((bounded, summed), (7, 8));
}

#[test]
fn pure_composition_vectors() {
    let mut compared = 0;
    for case in published("pure_composition_optimal") {
        let each = epsilon(case.param("epsilon0"));
        let count = case.param("k") as u32;
        let basic = sum_of(each, count);
        compared += case.assert_just_above("epsilon_basic", basic, 1e-16);
        assert!(basic >= case.expected("epsilon").expect("every case has one"), "{}", case.id);

        // No accounting of k-fold randomised response may promise less than the optimum.
        let mu = composed((0..count).map(|_| mu_of_pure_up(each)));
        let half = case.expected("epsilon_basic").expect("every case has one") / 2.0;
        assert!(delta_up(mu, half) >= case.expected("delta_at_half").expect("every case has one"), "{}", case.id);
        assert!(epsilon_up(mu, case.delta()) >= case.expected("epsilon").expect("every case has one"), "{}", case.id);
    }
    assert_eq!(compared, 6);
}

fn sum_of(each: Epsilon, count: u32) -> f64 {
    let sum = (0..count).try_fold(PureLoss::ZERO, |sum, _| sum.checked_add(each));
    sum.expect("far below the range of floats").get()
}

#[test]
fn log_normal_cdf_vectors() {
    #[derive(Deserialize)]
    struct Row {
        x: f64,
        log_cdf: f64,
    }
    let vectors: Vec<Row> = rows(NORMAL_CDF);
    assert_eq!(vectors.len(), 51);
    for row in &vectors {
        // A stored subnormal has an absolute error of half the smallest float.
        let error = (log_normal_cdf(row.x) - row.log_cdf).abs() - f64::from_bits(2);
        assert!(error <= 1e-14 * row.log_cdf.abs(), "x = {}: {} for {}", row.x, log_normal_cdf(row.x), row.log_cdf);
    }
    assert!(log_normal_cdf(f64::NAN).is_nan());
    assert!(log_normal_cdf(f64::NEG_INFINITY).is_infinite() && log_normal_cdf(f64::INFINITY).abs() < f64::MIN_POSITIVE);
}

#[test]
fn profile_vectors_from_the_smallest_to_the_largest_mu() {
    #[derive(Deserialize)]
    struct Row {
        mu: f64,
        epsilon: f64,
        log_delta: f64,
    }
    let vectors: Vec<Row> = rows(PROFILE);
    assert_eq!(vectors.len(), 178);
    for row in &vectors {
        let label = format!("mu = {:e}, epsilon = {:e}", row.mu, row.epsilon);
        let found = log_delta_up(mu(row.mu), row.epsilon);
        let excess = found - row.log_delta;
        let rounding = REFERENCE_ROUNDING * row.log_delta.abs();
        assert!(excess >= -rounding, "{label}: {found} below {}", row.log_delta);
        assert!(excess <= 2e-12 + 1e-15 * row.log_delta.abs() + rounding, "{label}: {found} above {}", row.log_delta);
        if row.log_delta > -0.5 {
            // Where delta is nearly 1 the promise is about 1 - delta.
            assert!(excess <= 1e-11 * row.log_delta.abs(), "{label}: {found} above {}", row.log_delta);
        }
        let expected = row.log_delta.exp();
        if expected > 1e-300 {
            assert_just_above(&label, delta_up(mu(row.mu), row.epsilon), expected, 4e-16 * (2.0 + row.log_delta.abs()));
        }
    }
}

#[test]
fn budget_vectors_and_back() {
    #[derive(Deserialize)]
    struct Row {
        epsilon: f64,
        delta: f64,
        mu: f64,
    }
    let vectors: Vec<Row> = rows(BUDGET);
    assert_eq!(vectors.len(), 56);
    for row in &vectors {
        let label = format!("epsilon = {:e}, delta = {:e}", row.epsilon, row.delta);
        let found = mu_down(epsilon(row.epsilon), delta(row.delta));
        assert_just_below(&label, found.get(), row.mu);
        let back = epsilon_up(found, delta(row.delta));
        assert!(back <= row.epsilon, "{label}: the budget promises {back}");
        assert!(back > row.epsilon - 1e-11 * (row.epsilon + row.mu), "{label}: the budget promises {back}");
        assert!(epsilon_up(mu(found.get() * (1.0 + 1e-9)), delta(row.delta)) > row.epsilon, "{label}: not the largest");
    }
}

#[test]
fn pure_price_vectors() {
    #[derive(Deserialize)]
    struct Row {
        epsilon: f64,
        mu: f64,
    }
    let vectors: Vec<Row> = rows(PURE);
    assert_eq!(vectors.len(), 15);
    for row in &vectors {
        let found = mu_of_pure_up(epsilon(row.epsilon)).get();
        assert_just_above(&format!("epsilon = {:e}", row.epsilon), found, row.mu, 0.0);
    }
}

#[test]
fn the_ends_of_the_range_stay_safe() {
    let (smallest, largest) = (f64::from_bits(1), f64::MAX);
    assert!((delta_up(mu(largest), 0.0) - 1.0).abs() < f64::EPSILON);
    assert_eq!(delta_up(mu(smallest), largest).to_bits(), 1);
    assert!(delta_up(mu(smallest), 0.0) >= smallest * 0.4);
    assert!((log_delta_up(mu(1e-300), 1e300) - f64::MIN).abs() < f64::EPSILON);
    assert_eq!(log_delta_up(mu(1.1e150), 1e300).to_bits(), 0, "a mu above 1e150 counts as infinite");
    assert!(epsilon_up(mu(largest), delta(0.5)).is_infinite());
    assert!(epsilon_up(mu(1e-9), delta(0.5)) < f64::MIN_POSITIVE, "delta(0) is below 0.5");
    assert!(mu_down(epsilon(smallest), delta(smallest)).get() >= 2.0 * smallest);
    assert!(mu_down(epsilon(largest), delta(0.5)).get() <= 1e150);
    assert!(mu_down(epsilon(1.0), delta(1.0 - f64::EPSILON / 2.0)).get() > 8.0);
    assert!(mu_of_pure_up(epsilon(smallest)).get() > smallest);
    assert!(mu_of_pure_up(epsilon(largest)).get() > 2e154);
    assert!(PureLoss::ZERO.checked_add(epsilon(largest)).expect("fits").checked_add(epsilon(largest)).is_none());
    assert!(PureLoss::of_times(epsilon(largest), 2).is_none());
    assert_eq!(PureLoss::of_times(epsilon(largest), 0), Some(PureLoss::ZERO));
}

#[test]
#[should_panic(expected = "epsilon must be at least 0")]
fn a_negative_epsilon_is_a_programming_error() {
    let _ = log_delta_up(mu(1.0), -1.0);
}

/// Exponents drawn evenly, so that every size of number is met.
fn spread(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn delta_falls_with_epsilon_and_rises_with_mu(
        base in spread(1e-9, 1e4), t in 0.0f64..60.0, step in spread(1e-9, 10.0),
    ) {
        // The arguments differ by more than the rounding slack, so the order must be the true one.
        let (low, high) = (mu(base), mu(base * (1.0 + step)));
        let centre = base * (0.5 * base + t);
        let here = log_delta_up(low, centre);
        let noise = 4e-12 + 4e-15 * here.abs();
        prop_assert!(log_delta_up(high, centre) >= here - noise);
        prop_assert!(log_delta_up(low, centre * (1.0 + step)) <= here + noise);
        if step > 1e-6 && here > -1e4 {
            prop_assert!(log_delta_up(high, centre) > here);
            prop_assert!(log_delta_up(low, (centre + 1e-3 * base) * (1.0 + step)) < here);
        }
        prop_assert!(here <= log_normal_cdf(0.5 * base - centre / base) + noise, "delta is at most Phi(a)");
    }

    #[test]
    fn epsilon_rises_with_mu_and_falls_with_delta(
        base in spread(1e-6, 1e3), log_delta in -600.0f64..-0.01, factor in 1.0001f64..2.0,
    ) {
        let (strict, loose) = (delta(log_delta.exp()), delta((log_delta / factor).exp()));
        let here = epsilon_up(mu(base), strict);
        prop_assert!(epsilon_up(mu(base * factor), strict) >= here);
        prop_assert!(epsilon_up(mu(base), loose) <= here);
    }

    #[test]
    fn mu_to_epsilon_and_back(base in spread(1e-6, 1e3), log_delta in -600.0f64..-1e-6) {
        let delta = delta(log_delta.exp());
        let reached = epsilon_up(mu(base), delta);
        // At epsilon 0 many mus meet the same epsilon.
        if reached > 0.0 {
            let back = mu_down(epsilon(reached), delta);
            prop_assert!((back.get() / base - 1.0).abs() < 1e-10, "{back} for {base}");
            prop_assert!(epsilon_up(back, delta) <= reached);
            // A ledger filled to the last step must not report more than was promised.
            let spent = mu(MuSquared::budget_down(back).mu_up());
            prop_assert!(epsilon_up(spent, delta) <= reached);
        }
    }

    #[test]
    fn the_profile_agrees_with_the_two_cdfs_where_these_keep_their_digits(
        base in 0.3f64..6.0, target in 0.0f64..8.0,
    ) {
        let a = log_normal_cdf(0.5 * base - target / base);
        let b = log_normal_cdf(-0.5 * base - target / base) + target;
        let naive = a.exp() - b.exp();
        let found = delta_up(mu(base), target);
        prop_assert!((found - naive).abs() <= 1e-13 * (a.exp() + b.exp()) + 1e-11 * found);
    }

    #[test]
    fn composition_is_one_mechanism_of_the_composed_mu(parts in prop::collection::vec(spread(1e-4, 3.0), 1..20)) {
        let composed = composed(parts.iter().map(|&part| mu(part)));
        let exact = parts.iter().map(|part| part * part).sum::<f64>().sqrt();
        prop_assert!(composed.get() >= exact * (1.0 - 1e-15) && composed.get() <= exact * (1.0 + 4e-14));
        let largest = parts.iter().copied().fold(0.0, f64::max);
        prop_assert!(composed.get() >= largest);
    }

    #[test]
    fn pure_price_meets_the_kink(target in spread(1e-6, 30.0)) {
        let mu = mu_of_pure_up(epsilon(target));
        // Total variation of randomised response is tanh(epsilon/2).
        let distance = (0.5 * target).tanh();
        let found = delta_up(mu, 0.0);
        prop_assert!(found >= distance * (1.0 - 2e-16) && found <= distance * (1.0 + 1e-11));
        prop_assert!(mu.get() <= mu_of_pure_up(epsilon(target * (1.0 + 1e-9))).get());
    }

    #[test]
    fn pure_sums_are_never_short(parts in prop::collection::vec(1u32..1 << 20, 1..200)) {
        // Twentieths are not binary fractions; their integer numerators give the exact sum.
        let exact = parts.iter().map(|&part| u64::from(part)).sum::<u64>() as f64;
        let sum = parts.iter().try_fold(PureLoss::ZERO, |sum, &part| sum.checked_add(epsilon(f64::from(part) / 1024.0)));
        let sum = sum.expect("small").get();
        // Multiples of 2^-10 below 2^28 are exact floats: nothing may be lost or added.
        prop_assert!((sum * 1024.0 - exact).abs() < 0.5);
        prop_assert_eq!((sum * 1024.0).to_bits(), exact.to_bits());
    }

    /// The digits of epsilon as an integer, times the number, against those of the product: exact in 128 bits.
    #[test]
    fn a_pure_product_is_the_least_float_that_is_not_short(each in spread(1e-12, 10.0), times in 1u32..) {
        let digits = |number: f64| (number.to_bits() & ((1 << 52) - 1) | 1 << 52, (number.to_bits() >> 52) as i32);
        let is_short = |product: f64| {
            let ((each, each_exponent), (product, exponent)) = (digits(each), digits(product));
            let shift = exponent - each_exponent;
            // Below a power of two the exponent is one less.
            prop_assert!((-1..40).contains(&shift), "a product with a whole number");
            Ok(u128::from(product) << (shift + 1) < (u128::from(each) * u128::from(times)) << 1)
        };
        let product = PureLoss::of_times(epsilon(each), times).expect("small").get();
        prop_assert!(!is_short(product)?);
        prop_assert!(is_short(product.next_down())?);
    }

    #[test]
    fn inexact_pure_sums_round_up(large in 1.0f64..2.0, small in spread(1e-30, 1e-2)) {
        let sum = PureLoss::ZERO.checked_add(epsilon(large)).and_then(|sum| sum.checked_add(epsilon(small)));
        let sum = sum.expect("small").get();
        // Subtraction of floats within a factor of two is exact: what came on top of `large` covers `small`.
        prop_assert!(sum - large >= small && sum > large);
        prop_assert!(sum - large - small <= 2.0 * f64::EPSILON);
    }
}
