//! The one question that is not a sum: the minimiser of a convex loss over private rows, on a lattice.
//!
//! ```text
//!   omega = argmin  sum_i l(omega · u_i, y_i) + (lambda/2) ||omega - omega_0||² + b · omega        u_i = lattice row / 2^15
//!   answer = trunc(2^36 omega^) + round(S Z),      ||gradient at omega^|| <= tau, certified in integers
//! ```
//! *Objective perturbation* draws `b` on a lattice and needs little noise `S` on the answer; *output perturbation* has no `b`.
//! The ridge `lambda` is a total, the same in every coordinate, the intercept among them. All gradients are integers:
//!
//! | quantity | unit |
//! |---|---|
//! | weights `omega`, centre `omega_0` | `2^-57` |
//! | slopes | `2^-58` |
//! | rows `u` | `2^-15` |
//! | ridge | `2^-16` |
//! | linear term `b` | `2^-40` |
//! | gradients | `2^-73 = 2^-58 · 2^-15 = 2^-16 · 2^-57` |
//! | answer | `2^-36` |
//!
//! so a sum over rows is exact and does not depend on their order, and what an engine has to show for its answer is one
//! comparison of integers. Guarantees and their proofs: `docs/methods/objective-perturbation.md` and
//! `docs/methods/output-perturbation.md`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::account::objective::ObjectiveProfile;
use crate::adjacency::Adjacency;
use crate::ceil_sqrt::ceil_sqrt;
use crate::encoding::{Encoding, NormRule};
use crate::query::{Map, QueryError, QueryShape, outputs};
use crate::units::{Mu, MuSquared, NoiseScale};

/// Binary digits after the point of a weight while the minimum is sought.
pub const WEIGHT_BITS: u32 = 57;
/// Binary digits after the point of a slope.
pub const SLOPE_BITS: u32 = 58;
/// A lattice row is divided by 2 to this power: its norm is then below 1.
pub const ROW_BITS: u32 = 15;
/// Binary digits after the point of the ridge.
pub const L2_BITS: u32 = 16;
/// Binary digits after the point of the random linear term.
pub const PERTURBATION_BITS: u32 = 40;
/// Binary digits after the point of an answer.
pub const ANSWER_BITS: u32 = 36;

const _: () =
    assert!(SLOPE_BITS + ROW_BITS == L2_BITS + WEIGHT_BITS, "slope times row and ridge times weight have one unit");

/// Shift that brings the linear term to the unit of gradients.
pub const PERTURBATION_SHIFT: u32 = SLOPE_BITS + ROW_BITS - PERTURBATION_BITS;
/// Shift that brings a weight to the unit of answers.
pub const ANSWER_SHIFT: u32 = WEIGHT_BITS - ANSWER_BITS;

/// Smallest and largest ridge, in its unit: 2^-10 and 2^32.
pub const L2_RANGE: std::ops::RangeInclusive<u64> = 1 << 6..=1 << 48;

/// Noise of the linear term is cut off at this multiple of its scale, which changes a draw with probability below 1e-880.
pub const PERTURBATION_CUT: i128 = 64;

/// What becomes of a row whose label is missing or outside the declared classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnusableLabel {
    /// The row adds nothing.
    Skip,
    /// The row counts as one of the first class. A changed label then always leaves the curvature of the loss as it is.
    FirstClass,
}

/// Size, ridge and perturbation of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Minimum {
    /// Classes: two have one weight a column (logistic loss), more have one each (softmax loss).
    pub classes: u32,
    /// Encoded columns, the intercept among them.
    pub columns: u32,
    /// Ridge `lambda`, a total, in units of `2^-16`, for rows of norm 1.
    pub l2: u64,
    /// Scale of the rounded Gaussian `b` in units of `2^-40`; 0 for none.
    pub perturbation: u64,
    /// Rows without a usable label.
    pub unusable: UnusableLabel,
}

impl Minimum {
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        if self.classes < 2 {
            return Err(QueryError::Classes(self.classes));
        }
        if !L2_RANGE.contains(&self.l2) {
            return Err(QueryError::Range("the ridge of a minimum (--l2, for rows of norm 1: from 2^-10 to 2^32)"));
        }
        if self.perturbation > NoiseScale::MAX.get() {
            return Err(QueryError::Range("the scale of a linear term"));
        }
        Ok(())
    }

    /// Weights a column.
    #[must_use]
    pub const fn outputs(&self) -> u32 {
        outputs(self.classes) as u32
    }

    pub(crate) fn coordinates(&self) -> u64 {
        u64::from(self.outputs()) * u64::from(self.columns)
    }

    /// The ridge as a number, for rows of norm 1.
    #[must_use]
    pub fn ridge(&self) -> f64 {
        self.l2 as f64 / f64::from(1u32 << L2_BITS)
    }

    /// Bound on the error of an integer gradient, in its own unit, in L2, over at most `rows_max` rows.
    ///
    /// ```text
    ///   a row of norm below 2^15 units has slopes that are wrong by at most 2 units (two classes) or 3 K units (K classes)
    /// ```
    /// Derived at [`sigmoid`] and [`softmax`]. Everything else of a gradient is exact.
    #[must_use]
    pub fn gradient_error(&self, rows_max: u64) -> u128 {
        let slope_error = if self.classes == 2 { 2 } else { 3 * u128::from(self.classes) };
        (u128::from(rows_max) * slope_error) << ROW_BITS
    }

    /// Norm of an integer gradient at which an engine may stop, in gradient units.
    ///
    /// Four times the error of the gradient, and four times what rounding a step to the lattice of weights can change it: so
    /// gradient descent with step `1/(N/2 + lambda)` lowers the objective by a fixed amount until it gets there, and always
    /// does.
    #[must_use]
    pub fn tolerance(&self, rows_max: u64) -> u128 {
        4 * self.stop_unit(rows_max)
    }

    fn stop_unit(&self, rows_max: u64) -> u128 {
        // Largest curvature N/2 + lambda, times half a step of 2^-57 in each coordinate.
        let curvature = ((u128::from(rows_max) / 2 + 1) << ROW_BITS) + u128::from(self.l2 / 2) + 1;
        self.gradient_error(rows_max) + curvature * self.root_coordinates()
    }

    /// `sqrt(d)` rounded up.
    fn root_coordinates(&self) -> u128 {
        ceil_sqrt(u128::from(self.coordinates()))
    }

    /// The most that two engines' answers for the same exact minimum differ by, before noise: twice the distance from it, in
    /// answer units, rounded up.
    ///
    /// ```text
    ///   ||omega^ - omega|| <= (tau + 2^-41 sqrt d)/lambda       2^-41 sqrt d: the linear term stands for a continuous one
    ///   tau = 5/4 of the tolerance: the fifth part covers the error of the gradient that was compared with it
    /// ```
    fn slack(&self, rows_max: u64) -> u128 {
        // The tolerance is 4 of these units, the error of the gradient that was compared with it less than 1: what is left of
        // the fifth is far more than the rounding of the comparison.
        let mut gradient = 5 * self.stop_unit(rows_max);
        if self.perturbation > 0 {
            gradient += self.root_coordinates() << (PERTURBATION_SHIFT - 1);
        }
        // tau 2^-73 / (l2 2^-16) in units of 2^-36.
        (2 * gradient).div_ceil(u128::from(self.l2) << (SLOPE_BITS + ROW_BITS - L2_BITS - ANSWER_BITS))
    }

    /// L2 sensitivity of the answer, given the exact minimum of the perturbed objective where there is a linear term.
    ///
    /// ```text
    ///   two points within r of each other, truncated:      r + sqrt d
    ///   objective perturbation (given omega):              r = 2 (tau + 2^-41 sqrt d)/lambda                  any adjacency
    ///   output perturbation:                               r = m G/lambda + 2 tau/lambda
    ///     G = L add-remove or label, 2 L replace;  L = 1 two classes, sqrt 2 more;  m rows a unit
    /// ```
    pub(crate) fn answer_sensitivity(&self, adjacency: Adjacency, unit_rows: u32, rows_max: u64) -> Option<u128> {
        let twice = match adjacency {
            Adjacency::AddRemove | Adjacency::Label => 1u128,
            Adjacency::Replace => 2,
            Adjacency::Party => return None,
        };
        let rounding = self.slack(rows_max) + self.root_coordinates();
        if self.perturbation > 0 {
            return Some(rounding);
        }
        // G 2^16 2^36 / l2, rounded up.
        let unit = 1u128 << (L2_BITS + ANSWER_BITS);
        let length = if self.classes == 2 { unit } else { ceil_sqrt(2 * unit * unit) };
        let moved = (u128::from(unit_rows) * twice * length).div_ceil(u128::from(self.l2));
        Some(moved + rounding)
    }

    /// Price of the linear term for the exact minimum, rounded up; nothing for output perturbation.
    ///
    /// ```text
    ///   add-remove  m mu'        replace  2 m mu'        label  m mu', or m L/s where no label can make a row disappear
    /// ```
    /// `mu'`: [`ObjectiveProfile::equivalent_mu_up`]; group privacy of Dong, Roth, Su 2022, Theorem 2.14.
    pub(crate) fn perturbation_price_up(&self, adjacency: Adjacency, unit_rows: u32) -> Option<MuSquared> {
        if self.perturbation == 0 {
            return Some(MuSquared::ZERO);
        }
        let noise = self.perturbation as f64 / (1u64 << PERTURBATION_BITS) as f64;
        let profile = ObjectiveProfile::new(self.classes, self.ridge(), noise)?;
        let (one, times) = match adjacency {
            Adjacency::AddRemove => (profile.equivalent_mu_up()?, 1),
            Adjacency::Replace => (profile.equivalent_mu_up()?, 2),
            Adjacency::Label => match self.unusable {
                UnusableLabel::FirstClass => (profile.shift_up(), 1),
                UnusableLabel::Skip => (profile.equivalent_mu_up()?, 1),
            },
            Adjacency::Party => return None,
        };
        let mu = one.get() * f64::from(times) * f64::from(unit_rows);
        MuSquared::charge_up(Mu::new(mu.next_up().next_up()).ok()?)
    }

    /// The smallest scale of the linear term whose price is within a budget, to a part in 10,000, rounded up; `None` when
    /// there is none.
    ///
    /// A price takes a while for three classes or more, so the search is by secants between a scale that is enough and one that is not (the
    /// Illinois rule: Dowell, Jarratt 1971), on logarithms.
    #[must_use]
    pub fn smallest_perturbation(self, adjacency: Adjacency, unit_rows: u32, budget: MuSquared) -> Option<Self> {
        let of = |log_scale: f64| Self { perturbation: (log_scale.exp2() as u64).max(1), ..self };
        // Above 0 where the price is over the budget, infinite where there is none; below 0 and finite where it is within.
        let excess = |log_scale: f64| {
            let Some(price) = of(log_scale).perturbation_price_up(adjacency, unit_rows) else { return f64::INFINITY };
            let ratio = (price.steps().max(1) as f64 / budget.steps() as f64).log2();
            if price <= budget { ratio.min(-f64::MIN_POSITIVE) } else { ratio.max(f64::MIN_POSITIVE) }
        };
        let (mut low, mut high) = (f64::from(PERTURBATION_BITS) - 6.0, 60.0);
        let (mut above, mut below) = (f64::INFINITY, excess(high));
        if below > 0.0 {
            return None;
        }
        let mut was_enough = None;
        while high - low > PERTURBATION_PRECISION {
            let share = if above.is_finite() { above / (above - below) } else { 0.5 };
            let beside = 0.4 * PERTURBATION_PRECISION;
            let at = (low + share * (high - low)).clamp(low + beside, high - beside);
            let found = excess(at);
            let is_enough = found < 0.0;
            let again = was_enough.replace(is_enough) == Some(is_enough);
            if is_enough {
                (high, below) = (at, found);
                above *= if again { 0.5 } else { 1.0 };
            } else {
                (low, above) = (at, found);
                below *= if again { 0.5 } else { 1.0 };
            }
        }
        Some(of(high))
    }
}

/// How near to each other, as logarithms to the base 2, a scale that is enough and one that is not are brought.
const PERTURBATION_PRECISION: f64 = 1e-4;

/// A question for a minimum with its public values.
#[derive(Clone, Debug)]
pub struct MinimumQuery {
    shape: QueryShape,
    minimum: Minimum,
    encoding: Arc<Encoding>,
    centre: Vec<i128>,
}

impl MinimumQuery {
    /// `centre`: weights of the encoded columns that the ridge draws to, output after output.
    ///
    /// # Errors
    /// [`QueryError`] when shape, encoding and centre do not belong together, or rows are not clipped to one bound.
    pub fn new(shape: QueryShape, encoding: Arc<Encoding>, centre: &[f64]) -> Result<Self, QueryError> {
        let Map::Minimum(minimum) = *shape.map() else { return Err(QueryError::Kind) };
        match encoding.norm() {
            NormRule::Clip(_) => {}
            NormRule::OwnNorm => return Err(QueryError::Range("the norm rule of a minimum")),
        }
        let found = encoding.coding().columns().len();
        for (expected, found) in [(minimum.columns as usize, found), (minimum.coordinates() as usize, centre.len())] {
            if expected != found {
                return Err(QueryError::Columns { expected, found });
            }
        }
        let length = row_length(&encoding);
        // Public values: rounding them only moves the point that the ridge draws to. `as` saturates and makes NaN zero.
        let places = |weight: &f64| ((weight * length).clamp(-1e9, 1e9) * (1u64 << WEIGHT_BITS) as f64).round() as i128;
        let centre = centre.iter().map(places).collect();
        Ok(Self { shape, minimum, encoding, centre })
    }

    /// Size and sensitivity.
    #[must_use]
    pub fn shape(&self) -> &QueryShape {
        &self.shape
    }

    /// Loss, ridge and perturbation.
    #[must_use]
    pub fn minimum(&self) -> &Minimum {
        &self.minimum
    }

    /// How codes become columns.
    #[must_use]
    pub fn encoding(&self) -> &Arc<Encoding> {
        &self.encoding
    }

    /// Centre of the ridge in units of `2^-57`.
    #[must_use]
    pub fn centre(&self) -> &[i128] {
        &self.centre
    }

    /// What one integer of the answer is worth, in weights of the encoded columns.
    #[must_use]
    pub fn answer_step(&self) -> f64 {
        1.0 / (1u64 << ANSWER_BITS) as f64 / row_length(&self.encoding)
    }
}

/// Length, in the units of the encoded columns, of a row that counts as one of norm 1: a little above the clip bound.
#[must_use]
pub fn row_length(encoding: &Encoding) -> f64 {
    encoding.contribution_step() * f64::from(1u32 << ROW_BITS)
}

/// `e^-x` in units of `2^-63`, `x >= 0` in units of `2^-57`; wrong by less than `2^-59.8`.
///
/// `x = n ln 2 + r`, `r` in `[0, ln 2)` known to `2^-63`; `e^-r = 1 - r (1 - r/2 (1 - r/3 (...)))` to 20 terms, where the
/// roundings of a factor `k` enter divided by `k` and so add up to less than `2^-60.5`. From 64 on the result is 0.
fn exp_negative(x: u128) -> u64 {
    const LN2_120: u128 = 921_350_637_599_661_305_226_344_307_672_478_454;
    const ONE: u64 = 1 << 63;
    if x >= 64 << WEIGHT_BITS {
        return 0;
    }
    let x = x << (120 - WEIGHT_BITS);
    let (halvings, rest) = (x / LN2_120, x % LN2_120);
    let rest = (rest >> (120 - 63)) as u64;
    let mut power = ONE;
    for factor in (1..=20).rev() {
        power = ONE - ((u128::from(rest) * u128::from(power)) >> 63) as u64 / factor;
    }
    // At most 92 halvings.
    if halvings >= 64 { 0 } else { power >> halvings }
}

/// A score in units of `2^-72` (weight times row), brought to `2^-57`, rounded down.
fn score(dot: i128) -> i128 {
    dot >> ROW_BITS
}

/// `sigmoid(z)` in units of `2^-58` for the exact dot product `z` in units of `2^-72`; in `[0, 2^58]`, wrong by less than 2.
///
/// Errors in those units: score rounded by `2^-57`, times a slope of at most 1/4: 1/2; exponential: 0.3; division: 1.
#[must_use]
pub fn sigmoid(dot: i128) -> i64 {
    let z = score(dot);
    let upper = ((1u128 << (63 + SLOPE_BITS)) / ((1u128 << 63) + u128::from(exp_negative(z.unsigned_abs())))) as i64;
    if z >= 0 { upper } else { (1 << SLOPE_BITS) - upper }
}

/// Softmax probabilities of exact dot products in units of `2^-72`, in units of `2^-58`; wrong by less than `3 K` in L2.
///
/// Errors in those units, in L2: scores rounded by `2^-57` each, times a Jacobian of norm at most 1/2: `sqrt K`;
/// exponentials and their sum, which is at least 1: `0.3 (sqrt K + K)`; division: `sqrt K`.
pub fn softmax(dots: &[i128], probabilities: &mut [i64]) {
    let largest = dots.iter().copied().map(score).max().unwrap_or(0);
    let powers = || dots.iter().map(|dot| exp_negative((largest - score(*dot)).unsigned_abs()));
    let sum: u128 = powers().map(u128::from).sum();
    for (probability, power) in probabilities.iter_mut().zip(powers()) {
        *probability = ((u128::from(power) << SLOPE_BITS) / sum.max(1)) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adjacency::{PrivacyUnit, Relation};
    use crate::coding::Coding;
    use crate::ledger::PlannedRelease;
    use crate::schema::Schema;
    use crate::units::NoiseDistribution;

    fn logistic(perturbation: u64) -> Minimum {
        Minimum { classes: 2, columns: 9, l2: 10 << L2_BITS, perturbation, unusable: UnusableLabel::Skip }
    }

    /// As close as their comments derive it, of scores near each other and far apart, for few classes and many.
    #[test]
    fn slopes_agree_with_an_independent_program() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../../testdata/golden/minimum_slopes.json")).expect("valid");
        let dot = |text: &serde_json::Value| text.as_str().expect("text").parse::<i128>().expect("an integer");
        let sigmoids = golden["sigmoids"].as_array().expect("a list");
        assert_eq!(sigmoids.len(), 33);
        for case in sigmoids {
            let (found, expected) = (sigmoid(dot(&case["dot"])), case["slope"].as_i64().expect("given"));
            assert!((found - expected).abs() <= 2, "{case}: {found}");
        }
        let softmaxes = golden["softmaxes"].as_array().expect("a list");
        assert_eq!(softmaxes.len(), 25);
        for case in softmaxes {
            let dots: Vec<i128> = case["dots"].as_array().expect("a list").iter().map(dot).collect();
            let mut found = vec![0; dots.len()];
            softmax(&dots, &mut found);
            let expected =
                case["slopes"].as_array().expect("a list").iter().map(|slope| slope.as_i64().expect("given"));
            let error = found.iter().zip(expected).map(|(found, slope)| ((found - slope) as f64).powi(2)).sum::<f64>();
            // The error's three parts, and half a unit each for the rounding of what is expected.
            let classes = dots.len() as f64;
            assert!(error.sqrt() < 2.8 * classes.sqrt() + 0.3 * classes, "{} of {classes} classes", error.sqrt());
        }
    }

    #[test]
    fn slopes_are_monotone_symmetric_and_in_range() {
        let mut before = 0;
        for step in -7000..=7000i128 {
            let dot = step << 65;
            let found = sigmoid(dot);
            assert!(found >= before && (0..=1 << SLOPE_BITS).contains(&found));
            assert_eq!(found + sigmoid(-dot), 1 << SLOPE_BITS);
            before = found;
        }
        for extreme in [i128::MAX >> 1, i128::MIN >> 1] {
            assert!([0, 1 << SLOPE_BITS].contains(&sigmoid(extreme)));
        }
        let mut probabilities = [0; 3];
        for dots in [[0, 0, 0], [1 << 100, -(1 << 100), 0], [5 << 72, 4 << 72, 3 << 70]] {
            softmax(&dots, &mut probabilities);
            let sum: i64 = probabilities.iter().sum();
            assert!(sum <= 1 << SLOPE_BITS && sum > (1 << SLOPE_BITS) - 10);
        }
        // Two classes as a softmax.
        softmax(&[3 << 71, 0, -(1 << 100)], &mut probabilities);
        assert!((probabilities[0] - sigmoid(3 << 71)).abs() < 6);
    }

    #[test]
    fn sensitivities_follow_the_formulas() {
        let unit = PrivacyUnit::Column { column: "who".to_owned(), rows_max: 3 };
        let of = |minimum, adjacency| {
            let shape = QueryShape::new(Map::Minimum(minimum), unit.clone(), 1 << 20).expect("in range");
            shape.sensitivity(&Relation { unit: unit.clone(), adjacency }).map(|square| (square.get() as f64).sqrt())
        };
        // Output perturbation: 3 rows, ridge 10, in units of 2^-36.
        let once = 0.3 * 2f64.powi(36);
        let found = of(logistic(0), Adjacency::AddRemove).expect("finite");
        assert!(found > once && found < once * 1.001, "{found}");
        let replaced = of(logistic(0), Adjacency::Replace).expect("finite");
        assert!(replaced > 2.0 * once && replaced < 2.0 * once * 1.001);
        let many = of(Minimum { classes: 4, ..logistic(0) }, Adjacency::Label).expect("finite");
        assert!(many > once * 2f64.sqrt() && many < once * 1.4152);
        // Objective perturbation: what is left is the certificate's tolerance and truncation.
        let rest = of(logistic(1 << 45), Adjacency::Replace).expect("finite");
        assert!(rest < 1e-3 * once && rest >= 2.0, "{rest}");
        assert_eq!(of(logistic(0), Adjacency::Party), None);
    }

    #[test]
    fn tolerances_and_sensitivities_agree_with_an_independent_program() {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../../testdata/golden/minima.json")).expect("valid");
        let cases = golden.as_array().expect("a list");
        assert_eq!(cases.len(), 96);
        for case in cases {
            let whole = |name: &str| case[name].as_u64().expect("given");
            let minimum = Minimum {
                classes: whole("classes") as u32,
                columns: whole("columns") as u32,
                l2: whole("l2"),
                perturbation: u64::from(case["has_linear_term"] == true) << PERTURBATION_BITS,
                unusable: UnusableLabel::Skip,
            };
            let (rows_max, unit_rows) = (whole("rows_max"), whole("unit_rows") as u32);
            let told = |number: u128, expected: &serde_json::Value| assert_eq!(&number.to_string(), expected, "{case}");
            assert_eq!(Some(minimum.ridge()), case["ridge"].as_f64(), "{case}");
            told(minimum.gradient_error(rows_max), &case["gradient_error"]);
            told(minimum.tolerance(rows_max), &case["tolerance"]);
            let unit = match unit_rows {
                1 => PrivacyUnit::Row,
                rows_max => PrivacyUnit::Column { column: "who".to_owned(), rows_max },
            };
            let shape = QueryShape::new(Map::Minimum(minimum), unit.clone(), rows_max).expect("in range");
            for adjacency in [Adjacency::AddRemove, Adjacency::Replace, Adjacency::Label] {
                let bound = minimum.answer_sensitivity(adjacency, unit_rows, rows_max).expect("priced");
                told(bound, &case["answer"][adjacency.to_string()]);
                let taxicab = shape.l1_sensitivity(&Relation { unit: unit.clone(), adjacency }).expect("priced");
                told(taxicab.get(), &case["answer_l1"][adjacency.to_string()]);
            }
        }
    }

    /// Weights of the encoded columns are divided by the length of a row that counts as one of norm 1.
    #[test]
    fn weights_are_those_of_the_encoded_columns() {
        let text = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                    [features]\na = { bounds = [0, 1] }\n";
        let coding = Coding::of(&Schema::from_text(text).expect("legal"));
        let encoding = Arc::new(Encoding::plain(coding, NormRule::Clip(3.0)));
        let length = 3.0 * 32_768.0 / 32_767.0;
        assert!((row_length(&encoding) - length).abs() < 1e-12);
        let shape = QueryShape::new(Map::Minimum(Minimum { columns: 2, ..logistic(0) }), PrivacyUnit::Row, 10);
        let query = MinimumQuery::new(shape.expect("in range"), encoding, &[0.5, -2.0]).expect("they fit");
        assert!((query.answer_step() * length * 2f64.powi(36) - 1.0).abs() < 1e-12);
        assert_eq!(query.centre().len(), 2);
        for (found, weight) in query.centre().iter().zip([0.5, -2.0]) {
            assert!((*found as f64 / 2f64.powi(57) - weight * length).abs() < 1e-12, "{found}");
        }
    }

    /// Where an engine may stop is part of the sensitivity, on both sides.
    #[test]
    fn the_tolerance_of_the_search_is_paid_for() {
        let rows_max = 1 << 36;
        for perturbation in [0, 1 << 45] {
            let minimum = Minimum { l2: *L2_RANGE.start(), ..logistic(perturbation) };
            let shape = QueryShape::new(Map::Minimum(minimum), PrivacyUnit::Row, rows_max).expect("in range");
            let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
            let found = (shape.sensitivity(&relation).expect("finite").get() as f64).sqrt();
            // Distance from the minimum, tau / lambda, in units of 2^-36.
            let distance = minimum.tolerance(rows_max) as f64 / minimum.l2 as f64 * 2f64.powi(16 + 36 - 73);
            let moved = if perturbation > 0 { 0.0 } else { 2f64.powi(36) / minimum.ridge() };
            assert!(distance > 1e3, "this table is so large that it shows: {distance}");
            assert!(found >= moved + 2.0 * distance, "{found} for {moved} and twice {distance}");
        }
    }

    #[test]
    fn the_linear_term_is_priced_by_adjacency_and_fitted_to_a_budget() {
        let minimum = logistic(10 << PERTURBATION_BITS);
        let price =
            |minimum: Minimum, adjacency, rows| minimum.perturbation_price_up(adjacency, rows).map(MuSquared::mu_up);
        let once = price(minimum, Adjacency::AddRemove, 1).expect("finite");
        // l2 = 10, mu = 0.1: the one-point root is 0.12635.
        assert!(once > 0.1 && once < 0.14, "{once}");
        let close =
            |found: Option<f64>, expected: f64| found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9);
        assert!(close(price(minimum, Adjacency::Replace, 1), 2.0 * once));
        assert!(close(price(minimum, Adjacency::AddRemove, 4), 4.0 * once));
        assert!(close(price(minimum, Adjacency::Label, 1), once));
        let kept = Minimum { unusable: UnusableLabel::FirstClass, ..minimum };
        assert!(close(price(kept, Adjacency::Label, 3), 0.3));
        assert_eq!(price(minimum, Adjacency::Party, 1), None);
        for classes in [2, 3, 5] {
            let budget = MuSquared::budget_down(Mu::new(0.2).expect("above zero"));
            let free = Minimum { classes, ..logistic(0) };
            let fitted = free.smallest_perturbation(Adjacency::Replace, 1, budget).expect("in range");
            let spent = fitted.perturbation_price_up(Adjacency::Replace, 1).expect("finite");
            assert!(spent <= budget && spent.mu_up() > 0.2 * 0.99, "{}", spent.mu_up());
            let less = Minimum { perturbation: (fitted.perturbation as f64 * 0.9999) as u64, ..fitted };
            assert!(
                less.perturbation_price_up(Adjacency::Replace, 1).is_none_or(|price| price > budget),
                "a smaller scale would do"
            );
        }
    }

    #[test]
    fn a_gaussian_linear_term_leaves_no_pure_epsilon() {
        let pure = |perturbation| {
            let shape = QueryShape::new(Map::Minimum(logistic(perturbation)), PrivacyUnit::Row, 1000).expect("small");
            let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
            let noise_scale = NoiseScale::new(1 << 50).expect("legal");
            let noise = NoiseDistribution::DiscreteLaplace;
            PlannedRelease { purpose: "minimum".to_owned(), shape, noise_scale, noise, times: 1 }
                .pure_epsilon_up(&relation)
        };
        assert!(pure(0).is_some_and(|epsilon| epsilon > 0.0));
        assert_eq!(pure(10 << PERTURBATION_BITS), None);
    }

    #[test]
    fn minima_out_of_range_are_refused() {
        let build = |minimum| QueryShape::new(Map::Minimum(minimum), PrivacyUnit::Row, 1000);
        assert!(build(logistic(0)).is_ok());
        assert!(build(logistic(NoiseScale::MAX.get())).is_ok());
        for refused in [
            Minimum { classes: 1, ..logistic(0) },
            Minimum { l2: 0, ..logistic(0) },
            Minimum { l2: 1 << 60, ..logistic(0) },
            Minimum { columns: 0, ..logistic(0) },
            logistic(NoiseScale::MAX.get() + 1),
        ] {
            assert!(build(refused).is_err(), "{refused:?}");
        }
    }
}
