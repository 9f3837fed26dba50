//! Units of privacy and noise, each a type that is checked once, when it is made.
//!
//! Whoever holds an `Epsilon` holds a finite number above zero; no function checks it again. Reading one from a file
//! (serde) goes through the same constructor, so a document cannot smuggle in an illegal value.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A number that does not fit its unit, with the rule it broke.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{unit} must be {rule}, not {given}")]
pub struct UnitError {
    /// Name of the unit in the field's usual spelling.
    pub unit: &'static str,
    /// What a legal value looks like.
    pub rule: &'static str,
    /// The refused value, as text.
    pub given: String,
}

macro_rules! float_unit {
    ($(#[$doc:meta])* $name:ident, $label:literal, $rule:literal, |$value:ident| $legal:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Checks the number against the unit's rule.
            ///
            /// # Errors
            /// [`UnitError`] names the unit and the rule.
            pub fn new($value: f64) -> Result<Self, UnitError> {
                if $legal {
                    Ok(Self($value))
                } else {
                    Err(UnitError { unit: $label, rule: $rule, given: format!("{}", $value) })
                }
            }

            /// The plain number.
            #[must_use]
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = UnitError;
            fn try_from(value: f64) -> Result<Self, UnitError> {
                Self::new(value)
            }
        }

        impl From<$name> for f64 {
            fn from(unit: $name) -> f64 {
                unit.0
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                let refused = || UnitError { unit: $label, rule: $rule, given: format!("{text:?}") };
                let value: f64 = text.trim().parse().map_err(|_| refused())?;
                Self::new(value).map_err(|_| refused())
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                // As Rust decides it for debugging, but 1 and not 1.0: other numbers can have hundreds of digits.
                let readable = 1e-5..1e16;
                if readable.contains(&self.0.abs()) { write!(formatter, "{}", self.0) } else { write!(formatter, "{:e}", self.0) }
            }
        }
    };
}

float_unit! {
    /// Privacy loss bound of (epsilon, delta)-differential privacy: finite and above zero.
    Epsilon, "epsilon", "a finite number above 0", |value| value.is_finite() && value > 0.0
}

float_unit! {
    /// Failure probability of (epsilon, delta)-differential privacy: strictly between zero and one.
    Delta, "delta", "a number strictly between 0 and 1", |value| value > 0.0 && value < 1.0
}

float_unit! {
    /// Parameter of Gaussian differential privacy (Dong, Roth, Su 2022): finite and above zero.
    /// A Gaussian query of L2 sensitivity `D` and noise scale `S` has `mu = D / S`.
    Mu, "mu", "a finite number above 0", |value| value.is_finite() && value > 0.0
}

/// A spend or a budget of Gaussian differential privacy: `mu²`, exact, in steps of `2^-96`.
///
/// Composition adds `mu²`, adaptively and without loss, so this is what the ledger counts. A spend is rounded up to the
/// grid and a budget down; sums are integer sums. The largest value is `2^32`, that is `mu = 65,536`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MuSquared(u128);

/// Number of binary digits after the point of [`MuSquared`].
pub const MU_SQUARED_FRACTION_BITS: u32 = 96;

impl MuSquared {
    /// Nothing spent.
    pub const ZERO: Self = Self(0);
    /// The largest representable value. A limit that a price is compared with may stop here, as no price is above it; where there is
    /// no limit at all there is no value.
    pub const MAX: Self = Self(u128::MAX);

    /// Makes a value from its number of `2^-96` steps.
    #[must_use]
    pub const fn from_steps(steps: u128) -> Self {
        Self(steps)
    }

    /// Number of `2^-96` steps.
    #[must_use]
    pub const fn steps(self) -> u128 {
        self.0
    }

    /// The price of a Gaussian query, rounded up: `sensitivity² / scale²`.
    ///
    /// `None` when the price is above the largest representable value.
    #[must_use]
    pub fn price_up(sensitivity: SensitivitySquared, scale: NoiseScale) -> Option<Self> {
        let divisor = u128::from(scale.get()) * u128::from(scale.get());
        // Long division in base 2: `remainder < divisor <= 2^120`, so doubling never overflows.
        let mut quotient = sensitivity.get() / divisor;
        let mut remainder = sensitivity.get() % divisor;
        if quotient >> (128 - MU_SQUARED_FRACTION_BITS) != 0 {
            return None;
        }
        for _ in 0..MU_SQUARED_FRACTION_BITS {
            remainder <<= 1;
            quotient <<= 1;
            if remainder >= divisor {
                remainder -= divisor;
                quotient |= 1;
            }
        }
        let rounded = if remainder == 0 { Some(quotient) } else { quotient.checked_add(1) };
        rounded.map(Self)
    }

    /// `mu²` of a budget, rounded down so that spending all of it never passes `mu`.
    #[must_use]
    pub fn budget_down(mu: Mu) -> Self {
        // The float product is within one rounding of mu²; two neighbours down is safely below it.
        Self::from_f64_down((mu.get() * mu.get()).next_down().next_down())
    }

    /// `mu²` of a charge that was not computed in integers, rounded up.
    ///
    /// `None` when it is above the largest representable value.
    #[must_use]
    pub fn charge_up(mu: Mu) -> Option<Self> {
        let square = (mu.get() * mu.get()).next_up().next_up();
        if square >= 2f64.powi(32) {
            return None;
        }
        Self::from_f64_down(square).0.checked_add(1).map(Self)
    }

    fn from_f64_down(value: f64) -> Self {
        // Multiplying by a power of two is exact and `as` truncates and saturates: never above `value`.
        Self((value * 2f64.powi(MU_SQUARED_FRACTION_BITS as i32)) as u128)
    }

    /// Sum, or `None` past the largest value.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// Difference, or `None` below zero.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The value `count` times, or `None` past the largest value.
    #[must_use]
    pub fn checked_mul(self, count: u32) -> Option<Self> {
        self.0.checked_mul(u128::from(count)).map(Self)
    }

    /// One of `parts` equal shares, rounded down.
    #[must_use]
    pub fn share_down(self, parts: std::num::NonZeroU32) -> Self {
        Self(self.0 / u128::from(parts.get()))
    }

    /// `numerator / denominator` of the value, rounded down; `numerator <= denominator`.
    #[must_use]
    pub fn fraction_down(self, numerator: u32, denominator: std::num::NonZeroU32) -> Self {
        assert!(numerator <= denominator.get(), "a fraction of a budget is at most the budget");
        let (numerator, denominator) = (u128::from(numerator), u128::from(denominator.get()));
        // Quotient and remainder apart, so that the product never overflows.
        Self(self.0 / denominator * numerator + self.0 % denominator * numerator / denominator)
    }

    /// `mu`, rounded up; zero for [`Self::ZERO`].
    #[must_use]
    pub fn mu_up(self) -> f64 {
        if self.0 == 0 {
            return 0.0;
        }
        // `as f64` is within one rounding of the integer; two neighbours up is safely above.
        let square = (self.0 as f64).next_up().next_up() * 2f64.powi(-(MU_SQUARED_FRACTION_BITS as i32));
        square.sqrt().next_up()
    }
}

/// Written as a decimal string of steps: JSON numbers would lose digits.
impl Serialize for MuSquared {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.to_string())
    }
}

impl<'de> Deserialize<'de> for MuSquared {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map(Self)
            .map_err(|_| serde::de::Error::custom("mu² must be a decimal integer: a number of steps of 2^-96"))
    }
}

/// Square of a query's L2 sensitivity, an integer in lattice units squared.
///
/// Only [`crate::query::QueryShape::sensitivity`] makes one: a sensitivity is computed, never typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SensitivitySquared(u128);

impl SensitivitySquared {
    pub(crate) const fn new(square: u128) -> Self {
        Self(square)
    }

    /// The integer.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }
}

/// A query's L1 sensitivity, an integer in lattice units. Computed by the query, never typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct L1Sensitivity(u128);

impl L1Sensitivity {
    pub(crate) const fn new(sensitivity: u128) -> Self {
        Self(sensitivity)
    }

    /// The integer.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// Epsilon of discrete Laplace noise of this scale, rounded up: `sensitivity / scale`.
    #[must_use]
    pub fn epsilon_up(self, scale: NoiseScale) -> f64 {
        // Each conversion and the division are within one rounding: three neighbours up is safely above.
        (self.0 as f64 / scale.get() as f64).next_up().next_up().next_up()
    }

    /// The smallest scale at which epsilon is at most `epsilon`; `None` when it would pass [`NoiseScale::MAX`].
    #[must_use]
    pub fn smallest_scale_within(self, epsilon: Epsilon) -> Option<NoiseScale> {
        let fits = |scale: u64| self.epsilon_up(NoiseScale(scale)) <= epsilon.get();
        let guess = (self.0 as f64 / epsilon.get()).ceil();
        if guess.is_nan() || guess >= NoiseScale::MAX.0 as f64 {
            return None;
        }
        let mut scale = (guess as u64).max(1);
        // The guess is within a few roundings; steps of a relative 2^-50 end after a few rounds.
        while !fits(scale) {
            scale += (scale >> 50).max(1);
        }
        NoiseScale::new(scale).ok()
    }
}

/// Scale of the noise in lattice units: a whole number of at least 1 and at most `2^60`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct NoiseScale(u64);

impl NoiseScale {
    /// The largest scale that the samplers are proved for.
    pub const MAX: Self = Self(1 << 60);

    /// Checks the scale against the samplers' range.
    ///
    /// # Errors
    /// [`UnitError`] when it is zero or above [`Self::MAX`].
    pub fn new(scale: u64) -> Result<Self, UnitError> {
        if (1..=Self::MAX.0).contains(&scale) {
            Ok(Self(scale))
        } else {
            Err(UnitError { unit: "noise scale", rule: "between 1 and 2^60 lattice units", given: scale.to_string() })
        }
    }

    /// The smallest scale whose price does not pass `budget`: `S` minimal with `ceil(B²/S²) <= budget`.
    ///
    /// `None` when even [`Self::MAX`] costs more, or when the budget is zero.
    /// Edges: sensitivity 0 gives scale 1 at price 0.
    #[must_use]
    pub fn smallest_within(sensitivity: SensitivitySquared, budget: MuSquared) -> Option<Self> {
        let affordable =
            |scale: u64| MuSquared::price_up(sensitivity, Self(scale)).is_some_and(|price| price <= budget);
        if !affordable(Self::MAX.0) {
            return None;
        }
        let (mut too_small, mut enough) = (0, Self::MAX.0);
        while enough - too_small > 1 {
            let middle = too_small + (enough - too_small) / 2;
            if affordable(middle) {
                enough = middle;
            } else {
                too_small = middle;
            }
        }
        Some(Self(enough))
    }

    /// The plain number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// Which noise is added to each integer of a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseDistribution {
    /// `round(S Z)`, `Z` standard normal: priced by L2 sensitivity, in Gaussian differential privacy.
    #[default]
    RoundedGaussian,
    /// Two-sided geometric with scale `S`: priced by L1 sensitivity, in pure epsilon.
    DiscreteLaplace,
}

impl NoiseDistribution {
    /// Standard deviation of one draw, in lattice units.
    #[must_use]
    pub fn standard_deviation(self, scale: NoiseScale) -> f64 {
        let scale = scale.get() as f64;
        match self {
            // Rounding adds the variance of a uniform step.
            Self::RoundedGaussian => (scale * scale + 1.0 / 12.0).sqrt(),
            // sqrt(2 e^(-1/b)) / (1 - e^(-1/b)).
            Self::DiscreteLaplace => (2.0 * (-1.0 / scale).exp()).sqrt() / -(-1.0 / scale).exp_m1(),
        }
    }
}

impl TryFrom<u64> for NoiseScale {
    type Error = UnitError;
    fn try_from(scale: u64) -> Result<Self, UnitError> {
        Self::new(scale)
    }
}

impl From<NoiseScale> for u64 {
    fn from(scale: NoiseScale) -> u64 {
        scale.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_refuse_what_is_not_a_privacy_parameter() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Epsilon::new(bad).is_err(), "{bad}");
            assert!(Mu::new(bad).is_err(), "{bad}");
        }
        for bad in [0.0, 1.0, -0.1, 2.0, f64::NAN] {
            assert!(Delta::new(bad).is_err(), "{bad}");
        }
        assert_eq!(
            "1e400".parse::<Epsilon>().expect_err("overflows to infinity").to_string(),
            "epsilon must be a finite number above 0, not \"1e400\""
        );
        assert!(serde_json::from_str::<Delta>("1.0").is_err(), "serde goes through the constructor");
        assert!(serde_json::from_str::<NoiseScale>("0").is_err());
    }

    #[test]
    fn no_unit_is_shown_with_hundreds_of_digits() {
        for shown in ["0.1", "1", "50", "0.00001", "1e-6", "2.5e-200", "1e20"] {
            assert_eq!(shown.parse::<Epsilon>().expect("above 0").to_string(), shown);
        }
    }

    #[test]
    fn a_scale_is_written_as_its_number() {
        let scale = NoiseScale::new(7).expect("in range");
        assert_eq!(serde_json::to_string(&scale).expect("serialises"), "7");
        assert_eq!(u64::from(scale), 7);
    }

    #[test]
    fn a_laplace_scale_beyond_the_samplers_is_refused() {
        let tiny = Epsilon::new(1e-3).expect("above 0");
        assert_eq!(L1Sensitivity::new(u128::MAX).smallest_scale_within(tiny), None);
        assert_eq!(L1Sensitivity::new(1 << 60).smallest_scale_within(tiny), None);
        assert!(L1Sensitivity::new(1 << 50).smallest_scale_within(tiny).is_some());
    }

    /// The second moment, summed from the probabilities themselves.
    #[test]
    fn the_standard_deviation_is_that_of_the_distribution() {
        for scale in [1_u64, 2, 7] {
            let noise_scale = NoiseScale::new(scale).expect("in range");
            let ratio = (-1.0 / scale as f64).exp();
            let probability = |value: i32| (1.0 - ratio) / (1.0 + ratio) * ratio.powi(value.abs());
            let variance: f64 = (-400..=400).map(|value| f64::from(value).powi(2) * probability(value)).sum();
            let told = NoiseDistribution::DiscreteLaplace.standard_deviation(noise_scale);
            assert!((told - variance.sqrt()).abs() < 1e-12 * told, "Laplace of scale {scale}: {told}");
            let told = NoiseDistribution::RoundedGaussian.standard_deviation(noise_scale);
            let variance = told * told - (scale * scale) as f64;
            assert!((variance - 1.0 / 12.0).abs() < 1e-12, "Gaussian of scale {scale}: {told}");
        }
    }

    #[test]
    fn price_is_the_exact_ratio_when_it_fits() {
        let scale = NoiseScale::new(4).expect("in range");
        let price = MuSquared::price_up(SensitivitySquared::new(9), scale).expect("small");
        assert_eq!(price.steps(), 9 << (96 - 4));
        assert!(price.mu_up() >= 0.75 && price.mu_up() < 0.75 * (1.0 + 1e-14));
    }

    #[test]
    fn price_past_the_largest_value_is_refused() {
        let one = NoiseScale::new(1).expect("in range");
        assert!(MuSquared::price_up(SensitivitySquared::new(1 << 32), one).is_none());
        assert!(MuSquared::price_up(SensitivitySquared::new((1 << 32) - 1), one).is_some());
    }

    #[test]
    fn a_laplace_scale_that_only_just_fits_is_one_larger() {
        let within = |sensitivity, epsilon| {
            let scale = L1Sensitivity::new(sensitivity).smallest_scale_within(Epsilon::new(epsilon).expect("legal"));
            scale.map(NoiseScale::get)
        };
        // Ten over ten is rounded up to more than one.
        assert_eq!(within(10, 1.0), Some(11));
        assert_eq!(within(10, 3.0), Some(4));
        assert_eq!(within(1 << 59, 1.0), Some((1 << 59) + 512));
        assert_eq!(within(1 << 60, 1.0), None);
        assert_eq!(within(1 << 59, 0.25), None);
    }

    proptest! {
        #[test]
        fn price_rounds_up_by_less_than_one_step(square in 0u128..1 << 90, scale in 1u64..1 << 60) {
            let scale = NoiseScale::new(scale).expect("in range");
            if let Some(price) = MuSquared::price_up(SensitivitySquared::new(square), scale) {
                let exact = square as f64 / (scale.get() as f64 * scale.get() as f64);
                let found = price.steps() as f64 * 2f64.powi(-96);
                prop_assert!((found - exact).abs() <= exact * 1e-12 + 2f64.powi(-96));
            }
        }

        /// `price · S² >= B² 2^96`, and one step less is not, in integers.
        #[test]
        fn price_is_the_least_that_covers_the_ratio(square in 0u128..1 << 31, scale in 1u64..1 << 15) {
            let noise = NoiseScale::new(scale).expect("in range");
            let price = MuSquared::price_up(SensitivitySquared::new(square), noise).expect("below 2^32");
            // Both sides in digits of 96 bits, so that neither overflows.
            let divisor = u128::from(scale) * u128::from(scale);
            let product = |steps: u128| {
                let low = (steps & ((1 << 96) - 1)) * divisor;
                ((steps >> 96) * divisor + (low >> 96), low & ((1 << 96) - 1))
            };
            prop_assert!(product(price.steps()) >= (square, 0));
            prop_assert!(price.steps() == 0 || product(price.steps() - 1) < (square, 0));
        }

        #[test]
        fn smallest_scale_is_affordable_and_one_less_is_not(square in 1u128..1 << 80, budget in 1u128 << 40..1 << 127) {
            let (square, budget) = (SensitivitySquared::new(square), MuSquared::from_steps(budget));
            if let Some(scale) = NoiseScale::smallest_within(square, budget) {
                prop_assert!(MuSquared::price_up(square, scale).expect("affordable") <= budget);
                if scale.get() > 1 {
                    let smaller = NoiseScale::new(scale.get() - 1).expect("in range");
                    prop_assert!(MuSquared::price_up(square, smaller).is_none_or(|price| price > budget));
                }
            }
        }

        /// `scale · epsilon >= sensitivity`, in integers: epsilon is a whole number of `2^-20`.
        #[test]
        fn a_laplace_scale_covers_its_sensitivity_and_is_not_much_larger(sensitivity in 1u128..1 << 55, epsilon in 1u128..1 << 26) {
            let given = Epsilon::new(epsilon as f64 / (1 << 20) as f64).expect("above zero");
            let sensitivity = L1Sensitivity::new(sensitivity);
            let found = sensitivity.smallest_scale_within(given);
            let exact = (sensitivity.get() << 20).div_ceil(epsilon);
            prop_assert_eq!(found.is_none(), exact >= 1 << 60);
            if let Some(scale) = found {
                let scale_is = u128::from(scale.get());
                prop_assert!(scale_is >= exact && scale_is <= exact + 1 + (exact >> 49), "{} for {}", scale_is, exact);
                prop_assert!(sensitivity.epsilon_up(scale) <= given.get());
                let real = sensitivity.get() as f64 / scale.get() as f64;
                prop_assert!(sensitivity.epsilon_up(scale) > real && sensitivity.epsilon_up(scale) < real * (1.0 + 1e-14));
            }
        }

        #[test]
        fn budgets_round_down_and_charges_up(mu in 1e-9f64..1e4) {
            let mu = Mu::new(mu).expect("in range");
            let (budget, charge) = (MuSquared::budget_down(mu), MuSquared::charge_up(mu).expect("small"));
            prop_assert!(budget < charge);
            prop_assert!(charge.mu_up() >= mu.get());
            prop_assert!((budget.mu_up() / mu.get() - 1.0).abs() < 1e-9);
        }

        /// In integers: the square of a number of 24 bits is exact. From 2^-10: proptest 1.12 panics where it draws below a start that is no
        /// multiple of the last place of the end.
        #[test]
        fn a_budget_is_below_its_square_and_a_charge_above(mu in f32::EPSILON * 8192.0..1e4) {
            let mu = f64::from(mu);
            let exact = (mu * mu * 2f64.powi(96)) as u128;
            let mu = Mu::new(mu).expect("in range");
            prop_assert!(MuSquared::budget_down(mu).steps() < exact);
            prop_assert!(MuSquared::charge_up(mu).expect("small").steps() > exact);
        }

        #[test]
        fn shares_never_add_up_to_more(steps in any::<u128>(), parts in 1u32..5000) {
            let parts = std::num::NonZeroU32::new(parts).expect("above zero");
            let whole = MuSquared::from_steps(steps);
            prop_assert!(whole.share_down(parts).checked_mul(parts.get()).expect("fits") <= whole);
            prop_assert!(whole.fraction_down(1, parts) == whole.share_down(parts));
            prop_assert!(whole.fraction_down(parts.get(), parts) == whole);
        }

        #[test]
        fn a_fraction_is_that_of_the_exact_product(steps in 0..1u128 << 95, parts in 1u32.., numerator in any::<u32>()) {
            let (numerator, denominator) = (numerator % parts, std::num::NonZeroU32::new(parts).expect("above zero"));
            let exact = steps * u128::from(numerator) / u128::from(parts);
            prop_assert_eq!(MuSquared::from_steps(steps).fraction_down(numerator, denominator).steps(), exact);
        }
    }
}
