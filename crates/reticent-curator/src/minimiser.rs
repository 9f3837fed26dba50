//! Finds the minimum of a perturbed objective over lattice rows, to a certified gradient.
//!
//! ```text
//!   fast: quasi-Newton steps on gradients with 30-bit slopes     ─▶  exact: the same on gradients of 58 bits
//!                                                                ─▶  plain gradient descent, should the first two not end
//! ```
//! The answer is accepted for one reason alone: its integer gradient is below the public tolerance
//! ([`Minimum::tolerance`]). That cannot fail: gradient descent with step `1/(N/2 + lambda)` lowers the objective by a fixed
//! amount as long as the gradient is above the tolerance, and the objective is bounded below. There is no iteration cap that
//! ends the search and no message about it; how long it took is not told. Sums over rows are integer sums throughout, so the
//! answer does not depend on the order of the rows, on where they lie or on threads.

use reticent_core::contribution::CodedLabel;
use reticent_core::engine::EngineError;
use reticent_core::minimum::{
    ANSWER_SHIFT, L2_BITS, Minimum, MinimumQuery, PERTURBATION_SHIFT, ROW_BITS, SLOPE_BITS, UnusableLabel, WEIGHT_BITS,
    sigmoid, softmax,
};

use crate::kernel::{ExactWeights, Instructions, MinimumPass, add_minimum};
use crate::whole_rows::{WholeRows, bytes_at_once_max};

mod curvature;

use curvature::{Curvature, MEMORY};

/// The objective: its rows, ridge, centre and linear term.
struct Problem<'a, R> {
    /// Private. A label is a class; what is none of them is unusable.
    rows: &'a R,
    minimum: Minimum,
    /// Units of `2^-57`.
    centre: &'a [i128],
    /// Units of `2^-40`.
    perturbation: &'a [i128],
    /// Norm of the gradient at which the search ends.
    tolerance: u128,
}

/// How a row's slopes are computed.
#[derive(Clone, Copy, PartialEq)]
enum Precision {
    /// Floating point, a pure function of the row, rounded to 30 bits.
    Fast,
    /// Integers, 58 bits.
    Exact,
}

const FAST_BITS: u32 = 30;
/// Steps of each phase, before the next one is tried.
const STEPS: usize = 400;
/// Quasi-Newton steps before which the curvature is computed; more often would forget what steps have told of it since.
const REFRESHED: [usize; 3] = [0, 12, 24];
/// How often the steps with exact gradients are tried before gradient descent is left to itself.
const ROUNDS: usize = 20;

/// The answer to a question for a minimum over these rows: `trunc(2^36 omega)` at a certified approximate one.
///
/// # Errors
/// [`EngineError`] when the rows cannot be read.
pub(crate) fn minimise(
    rows: &impl WholeRows,
    query: &MinimumQuery,
    perturbation: &[i128],
) -> Result<Vec<i128>, EngineError> {
    // A table may be longer than it was declared: the search has to end there, too, and the gradient's error is that of its rows.
    let most = query.shape().rows_max().max(rows.count());
    let (minimum, centre) = (*query.minimum(), query.centre());
    Problem { rows, minimum, centre, perturbation, tolerance: minimum.tolerance(most) }.solve()
}

/// What a search takes beside the blocks of rows, in so many threads.
pub(crate) fn bytes_max(minimum: &Minimum, threads: u64) -> u64 {
    /// Of a weight: what is remembered, and as many vectors of 128 bits as the search has at once.
    const OF_WEIGHT: u64 = (MEMORY * 2 * size_of::<f64>() + 12 * size_of::<i128>()) as u64;
    let weights = u64::from(minimum.outputs()) * u64::from(minimum.columns);
    // Rows with their zeros.
    let rows = bytes_at_once_max(minimum.columns as usize) as u64;
    weights * OF_WEIGHT + threads * rows + curvature::bytes_max(minimum, threads)
}

impl<R: WholeRows> Problem<'_, R> {
    fn solve(&self) -> Result<Vec<i128>, EngineError> {
        let mut weights = self.centre.to_vec();
        let mut curvature = Curvature::new(&self.minimum, self.steepest());
        self.descend(&mut weights, &mut curvature, Precision::Fast)?;
        let mut rounds = 0..ROUNDS;
        while rounds.next().is_some() && !self.descend(&mut weights, &mut curvature, Precision::Exact)? {}
        self.crawl(&mut weights)?;
        // Truncation toward zero, as everywhere on a lattice.
        Ok(weights.into_iter().map(|weight| weight / (1 << ANSWER_SHIFT)).collect())
    }

    fn outputs(&self) -> usize {
        self.minimum.outputs() as usize
    }

    fn columns(&self) -> usize {
        self.minimum.columns as usize
    }

    /// The class that a row with this label counts as; none if it does not count.
    fn class(&self, label: CodedLabel) -> Option<usize> {
        let usable = usize::try_from(label).ok().filter(|class| *class < self.minimum.classes as usize);
        match self.minimum.unusable {
            UnusableLabel::FirstClass => Some(usable.unwrap_or(0)),
            UnusableLabel::Skip => usable,
        }
    }

    /// Gradient of the objective at `weights`, in units of `2^-73`.
    fn gradient(&self, weights: &[i128], precision: Precision) -> Result<Vec<i128>, EngineError> {
        let mut total = match precision {
            Precision::Fast => {
                let weights: Vec<f64> = weights.iter().map(|weight| to_float(*weight)).collect();
                self.sum(|features, labels, totals| {
                    let slopes = |place: usize, dots: &mut [f64], slopes: &mut [i64]| {
                        probabilities(dots);
                        for (slope, probability) in slopes.iter_mut().zip(dots) {
                            *slope = (*probability * f64::from(1u32 << FAST_BITS)) as i64;
                        }
                        self.take_label_off(labels[place], slopes, 1 << FAST_BITS)
                    };
                    add_minimum(Instructions::best(), &self.pass(features, &weights, slopes), totals);
                })?
            }
            Precision::Exact => {
                let weights = ExactWeights::new(weights, self.columns());
                self.sum(|features, labels, totals| {
                    let slopes = |place: usize, dots: &[i128], slopes: &mut [i64]| {
                        match dots {
                            [dot] => slopes[0] = sigmoid(*dot),
                            _ => softmax(dots, slopes),
                        }
                        self.take_label_off(labels[place], slopes, 1 << SLOPE_BITS)
                    };
                    add_minimum(Instructions::best(), &self.pass(features, &weights, slopes), totals);
                })?
            }
        };
        if precision == Precision::Fast {
            total.iter_mut().for_each(|one| *one <<= SLOPE_BITS - FAST_BITS);
        }
        let public = weights.iter().zip(self.centre).zip(self.perturbation);
        for (total, ((weight, centre), term)) in total.iter_mut().zip(public) {
            *total += i128::from(self.minimum.l2) * (weight - centre) + (term << PERTURBATION_SHIFT);
        }
        Ok(total)
    }

    fn pass<'p, W, S>(&self, features: &'p [i16], weights: &'p W, slopes: S) -> MinimumPass<'p, W, S> {
        MinimumPass { features, columns: self.columns(), weights, slopes }
    }

    /// What `add` adds for all rows, one place a weight.
    fn sum(&self, add: impl Fn(&[i16], &[CodedLabel], &mut [i128]) + Sync) -> Result<Vec<i128>, EngineError> {
        let zero = || vec![0i128; self.outputs() * self.columns()];
        let totals = self.rows.fold(|| Ok(zero()), |sum, features, labels| add(features, labels, sum))?;
        Ok(totals.into_iter().fold(zero(), |mut left, right| {
            left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
            left
        }))
    }

    /// Probabilities less the label, out of `one`; `false` for a row without a label that counts.
    fn take_label_off(&self, label: CodedLabel, slopes: &mut [i64], one: i64) -> bool {
        let Some(class) = self.class(label) else { return false };
        let outputs = self.outputs();
        for (output, slope) in slopes.iter_mut().enumerate() {
            // Of two classes the only output is the second's.
            let is_of_class = if outputs == 1 { class == 1 } else { class == output };
            *slope -= if is_of_class { one } else { 0 };
        }
        true
    }

    /// The certificate. Floats are within a part in 1e12 here; what is priced leaves more than a part in 1e4 for it.
    fn is_minimum(&self, gradient: &[i128]) -> bool {
        norm(&gradient.iter().map(|one| *one as f64).collect::<Vec<_>>()) <= self.tolerance as f64
    }

    /// Largest curvature of the objective, at most.
    fn steepest(&self) -> f64 {
        self.rows.count() as f64 / 2.0 + self.minimum.ridge()
    }

    /// Limited-memory quasi-Newton steps, preconditioned by the curvature of each output. Returns whether the certificate holds.
    fn descend(
        &self,
        weights: &mut Vec<i128>,
        curvature: &mut Curvature,
        precision: Precision,
    ) -> Result<bool, EngineError> {
        // Fast slopes are good to some 2^-30 a row.
        let floor = match precision {
            Precision::Fast => self.rows.count() as f64 * 2f64.powi(-28) + to_gradient(self.tolerance as i128),
            Precision::Exact => 0.0,
        };
        let mut exact = self.gradient(weights, precision)?;
        let mut gradient: Vec<f64> = exact.iter().map(|one| to_gradient(*one)).collect();
        for step in 0..STEPS {
            let is_certain = precision == Precision::Exact && self.is_minimum(&exact);
            if is_certain || norm(&gradient) <= floor {
                return Ok(is_certain);
            }
            // The fast phase leaves a good curvature to the exact one.
            let is_refreshed = precision == Precision::Fast && REFRESHED.contains(&step);
            if is_refreshed || !curvature.is_known() {
                curvature.refresh(self, weights);
            }
            let direction = curvature.direction(&gradient);
            let slope_before = dot(&gradient, &direction);
            if slope_before.is_nan() || slope_before >= 0.0 {
                curvature.forget();
                return Ok(false);
            }
            // A convex objective has surely fallen where its slope along the line is still negative or not much above 0.
            let mut length = 1.0;
            let (next, next_exact, next_gradient) = loop {
                let next: Vec<i128> =
                    weights.iter().zip(&direction).map(|(weight, step)| weight + from_float(length * step)).collect();
                let next_exact = self.gradient(&next, precision)?;
                let next_gradient: Vec<f64> = next_exact.iter().map(|one| to_gradient(*one)).collect();
                let slope_after = dot(&next_gradient, &direction);
                if slope_after <= 0.9 * slope_before.abs() || length < 1e-6 {
                    break (next, next_exact, next_gradient);
                }
                // Where the slope is zero by the secant, but never a jump to nothing.
                length *= (slope_before / (slope_before - slope_after)).clamp(0.1, 0.7);
            };
            let moved: Vec<f64> = direction.iter().map(|step| length * step).collect();
            let turned: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(after, before)| after - before).collect();
            curvature.remember(moved, turned);
            (*weights, exact, gradient) = (next, next_exact, next_gradient);
        }
        Ok(false)
    }

    /// Gradient descent with exact gradients until the certificate holds: see the module's text for why it ends.
    fn crawl(&self, weights: &mut [i128]) -> Result<(), EngineError> {
        let steepest = self.steepest();
        loop {
            let gradient = self.gradient(weights, Precision::Exact)?;
            if self.is_minimum(&gradient) {
                return Ok(());
            }
            for (weight, gradient) in weights.iter_mut().zip(gradient) {
                *weight -= from_float(to_gradient(gradient) / steepest);
            }
        }
    }
}

/// Probabilities of a row whose weights have no unit and whose coordinates are those of the lattice: of class 1, or of each class.
fn probabilities(dots: &mut [f64]) {
    let row = 1.0 / f64::from(1u32 << ROW_BITS);
    if let [dot] = dots {
        *dot = 1.0 / (1.0 + (-row * *dot).exp());
        return;
    }
    let largest = dots.iter().copied().fold(f64::MIN, f64::max);
    dots.iter_mut().for_each(|dot| *dot = (row * (*dot - largest)).exp());
    let sum: f64 = dots.iter().sum();
    dots.iter_mut().for_each(|dot| *dot /= sum);
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

fn to_float(weight: i128) -> f64 {
    weight as f64 / 2f64.powi(WEIGHT_BITS as i32)
}

/// A step on the lattice of weights; far steps are cut, NaN becomes none.
fn from_float(step: f64) -> i128 {
    (step.clamp(-1e9, 1e9) * 2f64.powi(WEIGHT_BITS as i32)).round() as i128
}

fn to_gradient(integer: i128) -> f64 {
    integer as f64 / 2f64.powi((L2_BITS + WEIGHT_BITS) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out_of_memory::OutOfMemory;

    /// Rows as they are, so many at once.
    pub(super) struct Rows<'a> {
        features: &'a [i16],
        columns: usize,
        labels: &'a [CodedLabel],
        at_once: usize,
    }

    impl WholeRows for Rows<'_> {
        fn count(&self) -> u64 {
            self.labels.len() as u64
        }

        fn at_once_max(&self) -> usize {
            self.at_once
        }

        fn fold<T: Send>(
            &self,
            start: impl Fn() -> Result<T, OutOfMemory> + Sync,
            add: impl Fn(&mut T, &[i16], &[CodedLabel]) + Sync,
        ) -> Result<Vec<T>, EngineError> {
            let blocks = self.features.chunks(self.at_once * self.columns).zip(self.labels.chunks(self.at_once));
            // Every block has a total of its own.
            let totals = blocks.map(|(features, labels)| {
                let mut total = start().expect("small");
                add(&mut total, features, labels);
                total
            });
            Ok(totals.collect())
        }
    }

    /// Tables of the golden file: rows, labels, ridge, centre and linear term.
    #[derive(Clone)]
    pub(super) struct Case {
        features: Vec<i16>,
        pub(super) labels: Vec<i16>,
        pub(super) centre: Vec<i128>,
        perturbation: Vec<i128>,
        pub(super) minimum: Minimum,
        theta: Vec<f64>,
    }

    pub(super) fn cases() -> Vec<Case> {
        let golden: serde_json::Value =
            serde_json::from_str(include_str!("../../../testdata/golden/objective_perturbation/vectors.json"))
                .expect("valid");
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().expect("a list").iter().map(|one| one.as_f64().expect("a number")).collect()
        };
        let scaled = |value: &serde_json::Value, bits: i32| -> Vec<i128> {
            numbers(value).into_iter().map(|one| (one * 2f64.powi(bits)) as i128).collect()
        };
        let case = |value: &serde_json::Value| Case {
            features: value["rows"]
                .as_array()
                .expect("a list")
                .iter()
                .flat_map(numbers)
                .map(|one| one as i16)
                .collect(),
            labels: numbers(&value["labels"]).into_iter().map(|one| one as i16).collect(),
            centre: scaled(&value["centre"], 57),
            perturbation: scaled(&value["b"], 40),
            minimum: Minimum {
                classes: value["classes"].as_u64().expect("a number") as u32,
                columns: 3,
                l2: (value["l2"].as_f64().expect("a number") * 65536.0) as u64,
                perturbation: 1,
                unusable: UnusableLabel::Skip,
            },
            theta: numbers(&value["theta"]),
        };
        golden["minimisers"].as_array().expect("a list").iter().map(case).collect()
    }

    pub(super) fn rows<'a>(case: &'a Case, labels: &'a [CodedLabel], at_once: usize) -> Rows<'a> {
        Rows { features: &case.features, columns: 3, labels, at_once }
    }

    pub(super) fn problem<'a>(case: &'a Case, rows: &'a Rows<'a>) -> Problem<'a, Rows<'a>> {
        Problem {
            rows,
            minimum: case.minimum,
            centre: &case.centre,
            perturbation: &case.perturbation,
            tolerance: case.minimum.tolerance(1000),
        }
    }

    fn assert_close(found: &[i128], theta: &[f64]) {
        assert_eq!(found.len(), theta.len());
        for (found, expected) in found.iter().zip(theta) {
            let found = *found as f64 / 2f64.powi(36);
            assert!((found - expected).abs() < 1e-9, "{found} and {expected}");
        }
    }

    #[test]
    fn minima_agree_with_an_independent_program() {
        let cases = cases();
        assert_eq!(cases.len(), 2);
        for case in &cases {
            let found = problem(case, &rows(case, &case.labels, 5)).solve().expect("fits");
            assert_close(&found, &case.theta);
        }
    }

    #[test]
    fn gradient_descent_alone_gets_there() {
        for case in &cases() {
            let rows = rows(case, &case.labels, 4);
            let problem = problem(case, &rows);
            let mut weights = case.centre.clone();
            problem.crawl(&mut weights).expect("in memory");
            assert!(problem.is_minimum(&problem.gradient(&weights, Precision::Exact).expect("in memory")));
            let answer: Vec<i128> = weights.iter().map(|weight| weight >> 21).collect();
            assert_close(&answer, &case.theta);
        }
    }

    #[test]
    fn labels_may_be_unusable() {
        for case in &cases() {
            // A skipped row is as good as none; as one of the first class it is as good as that.
            let mut unusable = case.labels.clone();
            unusable[3] = i16::MIN;
            let minimum_of =
                |case: &Case, labels: &[CodedLabel]| problem(case, &rows(case, labels, 100)).solve().expect("fits");
            let skipped = minimum_of(case, &unusable);
            let mut without = case.clone();
            without.features.drain(9..12);
            without.labels.remove(3);
            assert_eq!(skipped, minimum_of(&without, &without.labels));
            let mut first = case.clone();
            first.minimum.unusable = UnusableLabel::FirstClass;
            let as_first = minimum_of(&first, &unusable);
            unusable[3] = 0;
            assert_eq!(as_first, minimum_of(case, &unusable));
        }
    }
}
