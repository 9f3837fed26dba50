//! Record and replay on neighbours: one harness for whatever asks a session.
//!
//! ```text
//!   D   draws, exact answers f(D), releases f(D) + noise, model        recorded
//!   D'  the same seed; the answers f(D) take the place of f(D')        as if the draw were noise + f(D) - f(D')
//! ```
//! On two tables that differ in one unit it checks, exactly, that
//!
//! 1. number, order, distribution, scale and size of draws, charges and questions are the same, and noise is drawn after the
//!    charge and before the rows are touched;
//! 2. with the same released integers every later question (shape, encoding, weights, matrix) and the outcome are the same,
//!    since all is computed from releases;
//! 3. every exact answer moves by at most the declared sensitivity: in L2 for Gaussian noise, in L1 for Laplace noise; and
//!    what the pair can be told apart by is within what was charged.
//!
//! *A minimum with a random linear term* is two releases. The first, the exact minimum of the objective with the continuous
//! term, is virtual: the neighbour has the same one under the linear term `b' = b + grad D - grad D'` at it. So the neighbour
//! is replayed with `b'`; the shift `b' - b` must be within what the linear term was priced for, and the two answers within
//! the declared sensitivity of the second release. See `docs/methods/objective-perturbation.md`.

use std::collections::{HashMap, HashSet};

use reticent_core::account::pure::mu_of_pure_up;
use reticent_core::adjacency::{Adjacency, Relation};
use reticent_core::contribution::{CodedLabel, class_of};
use reticent_core::encoding::Encoding;
use reticent_core::engine::Engine;
use reticent_core::ledger::{Account, LedgerError, LedgerReference, LedgerStore, PlannedRelease, Request};
use reticent_core::minimum::{ANSWER_BITS, MinimumQuery, PERTURBATION_BITS, ROW_BITS, UnusableLabel};
use reticent_core::query::SumQuery;
use reticent_core::session::Session;
use reticent_core::units::{Epsilon, MU_SQUARED_FRACTION_BITS, NoiseDistribution, NoiseScale};

use crate::{SharedTape, Step, Tape, hold, taped_session};

/// Rows on the lattice of an encoding, with their labels: how the harness computes the gradient of a table itself.
pub type LatticeRows<'a> = &'a dyn Fn(&Encoding) -> Vec<(Vec<i16>, CodedLabel)>;

/// One of two neighbours.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// The rows.
    pub engine: &'a dyn Engine,
    /// The same rows for minima; not called for sums.
    pub rows: LatticeRows<'a>,
}

/// Two neighbours under a relation, and a seed for the noise that both are given.
#[derive(Clone, Copy)]
pub struct Neighbours<'a> {
    /// Whose data differ, and how.
    pub relation: &'a Relation,
    /// A table.
    pub left: World<'a>,
    /// Its neighbour.
    pub right: World<'a>,
    /// Seed of the noise.
    pub seed: u64,
}

/// Figures of the replays so far.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Pairs of neighbours.
    pub pairs: u64,
    /// Releases on the first of each pair.
    pub releases: u64,
    /// Integers drawn on the first of each pair.
    pub draws: u64,
    /// The most that an answer moved, as a share of its sensitivity.
    pub largest_share: f64,
    /// `mu²` of one answer by what was paid for: the price of a linear term takes long to compute.
    prices: HashMap<String, f64>,
}

impl Tally {
    fn price(&mut self, planned: &PlannedRelease, relation: &Relation) -> f64 {
        let compute = || {
            let price = planned.price_up(relation).expect("paid for, so it has a price");
            price.steps() as f64 / 2f64.powi(MU_SQUARED_FRACTION_BITS as i32) / f64::from(planned.times)
        };
        *self.prices.entry(format!("{planned:?} {relation}")).or_insert_with(compute)
    }
}

impl Neighbours<'_> {
    /// Runs `ask` on both tables and checks all of the above. What `ask` returns is its public outcome, in full.
    ///
    /// # Panics
    /// When a check fails: the message says which.
    pub fn replay(&self, ask: &dyn Fn(&mut Session<'_>) -> String, tally: &mut Tally) {
        let first = SharedTape::default();
        let outcome = self.run(self.left, &first, ask);
        let recorded = std::mem::take(&mut hold(&first).steps);
        let (answers, linear_terms) = self.script(&recorded);

        let second = SharedTape::default();
        *hold(&second) = Tape { steps: Vec::new(), answers: answers.into(), linear_terms: linear_terms.into() };
        let again = self.run(self.right, &second, ask);
        let replayed = std::mem::take(&mut hold(&second).steps);

        check_order(&recorded);
        check_releases(&recorded);
        check_freshness(&recorded);
        check_control_flow(&recorded, &replayed);
        assert_eq!(outcome, again, "equal releases, and another outcome");
        let share = self.check_distances(&recorded, &replayed, tally);
        tally.pairs += 1;
        tally.largest_share = tally.largest_share.max(share);
        for step in &recorded {
            match step {
                Step::Drawn { values, .. } => tally.draws += values.len() as u64,
                Step::Released(_) => tally.releases += 1,
                Step::Charged(_) | Step::Summed { .. } | Step::Minimised { .. } => {}
            }
        }
    }

    fn run(&self, world: World<'_>, tape: &SharedTape, ask: &dyn Fn(&mut Session<'_>) -> String) -> String {
        let mut ledger = TapeLedger { relation: self.relation.clone(), tape: tape.clone() };
        let mut session = taped_session(world.engine, &mut ledger, self.relation.clone(), self.seed, tape)
            .unwrap_or_else(|error| panic!("a promised relation and matching rows: {error}"));
        ask(&mut session)
    }

    /// The exact answers of the first table, and the linear terms under which the second has the same virtual minima.
    fn script(&self, recorded: &[Step]) -> (Vec<Vec<i128>>, Vec<Vec<i128>>) {
        let (mut answers, mut linear_terms) = (Vec::new(), Vec::new());
        for step in recorded {
            match step {
                Step::Summed { totals, .. } => answers.push(totals.clone()),
                Step::Minimised { query, linear_term, totals } => {
                    answers.push(totals.clone());
                    let shifted = if query.minimum().perturbation > 0 {
                        let apart = gradient_apart(query, totals, self.left.rows, self.right.rows);
                        let unit = (1u64 << PERTURBATION_BITS) as f64;
                        linear_term.iter().zip(&apart).map(|(own, by)| own + (by * unit).round() as i128).collect()
                    } else {
                        linear_term.clone()
                    };
                    linear_terms.push(shifted);
                }
                Step::Charged(_) | Step::Drawn { .. } | Step::Released(_) => {}
            }
        }
        (answers, linear_terms)
    }

    /// Check 3. Returns the largest distance as a share of its sensitivity.
    fn check_distances(&self, recorded: &[Step], replayed: &[Step], tally: &mut Tally) -> f64 {
        let mut paid = paid_releases(recorded).into_iter();
        let mut largest: f64 = 0.0;
        let (mut told_apart, mut charged) = (0.0, 0.0);
        for (left, right) in recorded.iter().zip(replayed) {
            let (shape, moved, linear_term) = match (left, right) {
                (Step::Summed { query, totals }, Step::Summed { totals: other, .. }) => {
                    (query.shape(), moved(totals, other), None)
                }
                (
                    Step::Minimised { query, linear_term, totals },
                    Step::Minimised { linear_term: shifted, totals: other, .. },
                ) => {
                    let shift = (query.minimum().perturbation > 0).then(|| (query, moved(linear_term, shifted)));
                    (query.shape(), moved(totals, other), shift)
                }
                (Step::Charged(_) | Step::Drawn { .. } | Step::Released(_), _)
                | (Step::Summed { .. } | Step::Minimised { .. }, _) => continue,
            };
            let planned = paid.next().expect("compared before: every answer was paid for");
            assert_eq!(&planned.shape, shape, "an answer of another shape than was paid for");
            let scale = planned.noise_scale.get() as f64;
            let square: u128 = moved.iter().map(|by| by.pow(2)).sum();
            let share = match planned.noise {
                NoiseDistribution::RoundedGaussian => {
                    let bound = shape.sensitivity(self.relation).expect("paid for, so it has a bound").get();
                    let bound = bound + linear_term.as_ref().map_or(0, |(query, _)| own_error(query, bound));
                    assert!(square <= bound, "L2: moved by a square of {square}, charged for {bound}, {shape:?}");
                    told_apart += if linear_term.is_some() { 0.0 } else { square as f64 / (scale * scale) };
                    square as f64 / bound as f64
                }
                NoiseDistribution::DiscreteLaplace => {
                    let sum: u128 = moved.iter().sum();
                    let bound = shape.l1_sensitivity(self.relation).expect("paid for, so it has a bound").get();
                    assert!(sum <= bound, "L1: moved by {sum}, charged for {bound}, {shape:?}");
                    let epsilon =
                        planned.pure_epsilon_up(self.relation).expect("pure noise") / f64::from(planned.times);
                    assert!(sum as f64 / scale <= epsilon, "moved by {sum} at scale {scale}, charged {epsilon}");
                    told_apart += Epsilon::new(sum as f64 / scale).map_or(0.0, |one| mu_of_pure_up(one).get().powi(2));
                    (sum as f64 / bound as f64).powi(2)
                }
            };
            if let Some((query, shift)) = linear_term {
                told_apart += self.check_shift(query, &shift);
            }
            charged += tally.price(&planned, self.relation);
            largest = largest.max(share);
        }
        assert!(told_apart <= charged * (1.0 + 1e-9), "mu² of this pair is {told_apart}, and {charged} was charged");
        largest.sqrt()
    }

    /// The shift of a linear term is at most what the changed rows' slopes allow. Returns its `mu²`.
    fn check_shift(&self, query: &MinimumQuery, shift: &[u128]) -> f64 {
        let minimum = query.minimum();
        let unit = (1u64 << PERTURBATION_BITS) as f64;
        let length = shift.iter().map(|by| (*by as f64 / unit).powi(2)).sum::<f64>().sqrt();
        let slope = if minimum.classes == 2 { 1.0 } else { 2f64.sqrt() };
        let rows = f64::from(query.shape().unit().rows_max());
        let times = match self.relation.adjacency {
            Adjacency::AddRemove | Adjacency::Label => 1.0,
            Adjacency::Replace => 2.0,
            Adjacency::Party => panic!("no minimum of rows is priced for parties"),
        };
        // Each coordinate of the shift was rounded to a step of 2^-40.
        let rounding = (shift.len() as f64).sqrt() / unit;
        assert!(length <= rows * times * slope + rounding, "the linear term is shifted by {length}");
        (length / (minimum.perturbation as f64 / unit)).powi(2)
    }
}

/// A ledger that promises one relation, admits everything and writes every charge to the tape: the harness looks at the
/// price itself.
struct TapeLedger {
    relation: Relation,
    tape: SharedTape,
}

impl LedgerStore for TapeLedger {
    fn account(&self) -> Result<Account, LedgerError> {
        Ok(Account::promising([self.relation.clone()], None))
    }

    fn charge(&mut self, request: &Request) -> Result<(), LedgerError> {
        hold(&self.tape).steps.push(Step::Charged(request.clone()));
        Ok(())
    }

    fn last_entry(&self) -> Option<LedgerReference> {
        Some(LedgerReference { id: "tape".to_owned(), entry: 1, seal: None })
    }
}

/// How far apart two answers are in each coordinate.
fn moved(left: &[i128], right: &[i128]) -> Vec<u128> {
    assert_eq!(left.len(), right.len(), "answers of one size");
    left.iter().zip(right).map(|(left, right)| left.abs_diff(*right)).collect()
}

/// What the harness adds to the square of a bound on minima: it knows the virtual minimum to the lattice of answers only, so
/// the gradients that it shifts by are those of a point `sqrt d` steps and half a bound away.
fn own_error(query: &MinimumQuery, bound_square: u128) -> u128 {
    let bound = (bound_square as f64).sqrt();
    let away = f64::from(query.shape().coordinates()).sqrt() + 0.5 * bound;
    // Curvature of the rows that differ, at most 1/2 each in both tables, over the ridge.
    let error = away * f64::from(query.shape().unit().rows_max()) / query.minimum().ridge();
    let total = bound + error;
    (total * total - bound * bound).ceil() as u128
}

/// `grad D - grad D'` at an answer, in units of a row of norm 1, computed in floating point from the rows themselves.
fn gradient_apart(query: &MinimumQuery, answer: &[i128], left: LatticeRows<'_>, right: LatticeRows<'_>) -> Vec<f64> {
    let minimum = query.minimum();
    let columns = minimum.columns as usize;
    let weights: Vec<f64> = answer.iter().map(|weight| *weight as f64 / (1u64 << ANSWER_BITS) as f64).collect();
    let mut apart = vec![0.0; answer.len()];
    for (rows, sign) in [(left, 1.0), (right, -1.0)] {
        for (features, label) in rows(query.encoding()) {
            let class = match (class_of(label, minimum.classes), minimum.unusable) {
                (Some(class), _) => class,
                (None, UnusableLabel::FirstClass) => 0,
                (None, UnusableLabel::Skip) => continue,
            };
            let row: Vec<f64> = features.iter().map(|one| f64::from(*one) / f64::from(1u32 << ROW_BITS)).collect();
            let score = |of_class: &[f64]| of_class.iter().zip(&row).map(|(weight, one)| weight * one).sum::<f64>();
            let scores: Vec<f64> = weights.chunks_exact(columns).map(score).collect();
            let slopes: Vec<f64> = if let [score] = scores[..] {
                vec![1.0 / (1.0 + (-score).exp()) - class as f64]
            } else {
                let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
                let slope = |(place, score): (usize, &f64)| {
                    (score - largest).exp() / total - if place == class { 1.0 } else { 0.0 }
                };
                scores.iter().enumerate().map(slope).collect()
            };
            for (of_class, slope) in apart.chunks_exact_mut(columns).zip(&slopes) {
                of_class.iter_mut().zip(&row).for_each(|(total, one)| *total += sign * slope * one);
            }
        }
    }
    apart
}

/// Charge, then noise, then rows, then release; and nothing before a charge.
fn check_order(steps: &[Step]) {
    let (mut charged, mut drawn, mut answered) = (false, false, false);
    for step in steps {
        match step {
            Step::Charged(_) => charged = true,
            Step::Drawn { .. } => {
                assert!(charged && !answered, "noise is drawn after the charge and before the rows are touched");
                drawn = true;
            }
            Step::Summed { .. } | Step::Minimised { .. } => {
                assert!(drawn && !answered, "rows are touched after all noise is drawn, and once");
                answered = true;
            }
            Step::Released(_) => {
                assert!(answered, "a release is an answer with noise");
                (drawn, answered) = (false, false);
            }
        }
    }
}

/// Every release is its exact answer plus its last draw, and the draw is what was paid for.
fn check_releases(steps: &[Step]) {
    let mut paid = paid_releases(steps).into_iter();
    let mut draws: Vec<(NoiseDistribution, NoiseScale, &[i128])> = Vec::new();
    let mut exact: &[i128] = &[];
    let mut terms = 0;
    for step in steps {
        match step {
            Step::Charged(_) => {}
            Step::Drawn { noise, scale, values } => draws.push((*noise, *scale, values)),
            Step::Summed { totals, .. } => (exact, terms) = (totals, 0),
            Step::Minimised { query, linear_term, totals } => {
                (exact, terms) = (totals, usize::from(query.minimum().perturbation > 0));
                if terms > 0 {
                    let (noise, scale, values) = draws.first().expect("a linear term is drawn");
                    assert_eq!(*noise, NoiseDistribution::RoundedGaussian, "the linear term is Gaussian");
                    assert_eq!(scale.get(), query.minimum().perturbation, "scale of the linear term");
                    // No draw of a test comes near the cut.
                    assert_eq!(linear_term, values, "the linear term is the one that was drawn");
                }
            }
            Step::Released(release) => {
                let planned = paid.next().expect("no release without a payment");
                assert_eq!(draws.len(), 1 + terms, "one draw a release, and one for a linear term");
                let (noise, scale, values) = draws[terms];
                assert_eq!((noise, scale), (planned.noise, planned.noise_scale), "noise as it was paid for");
                assert_eq!(values.len(), planned.shape.coordinates() as usize, "one draw a coordinate");
                let sum: Vec<i128> = exact.iter().zip(values).map(|(exact, noise)| exact + noise).collect();
                assert_eq!(release.integers, sum, "a release is the exact answer plus the noise");
                draws.clear();
            }
        }
    }
    assert_eq!(paid.len(), 0, "what was paid for was released");
}

/// No draw stands for two: where equal draws are as good as impossible, there are none.
fn check_freshness(steps: &[Step]) {
    let mut seen = HashSet::new();
    for step in steps {
        let Step::Drawn { scale, values, .. } = step else { continue };
        // Two draws of this scale are equal with probability below 2^-29, so three of them below 2^-58.
        if scale.get() >= 1 << 28 && values.len() >= 3 {
            assert!(seen.insert(values.clone()), "two releases have the same noise");
            let all_equal = values.iter().all(|value| value.abs() == values[0].abs());
            assert!(!all_equal, "all coordinates have the same noise");
        }
    }
}

/// Checks 1 and 2: step by step the same, but for the exact answers.
fn check_control_flow(recorded: &[Step], replayed: &[Step]) {
    for (place, (left, right)) in recorded.iter().zip(replayed).enumerate() {
        let same = match (left, right) {
            (Step::Charged(left), Step::Charged(right)) => left == right,
            (
                Step::Drawn { noise, scale, values },
                Step::Drawn { noise: noise_again, scale: scale_again, values: values_again },
            ) => (noise, scale, values) == (noise_again, scale_again, values_again),
            (Step::Summed { query, .. }, Step::Summed { query: again, .. }) => public_text(query) == public_text(again),
            (Step::Minimised { query, .. }, Step::Minimised { query: again, .. }) => {
                format!("{query:?}") == format!("{again:?}")
            }
            // Debug of a float reads back to the same bits.
            (Step::Released(left), Step::Released(right)) => format!("{left:?}") == format!("{right:?}"),
            (
                Step::Charged(_)
                | Step::Drawn { .. }
                | Step::Summed { .. }
                | Step::Minimised { .. }
                | Step::Released(_),
                _,
            ) => false,
        };
        assert!(same, "step {place} differs between neighbours with equal releases");
    }
    assert_eq!(recorded.len(), replayed.len(), "neighbours with equal releases take as many steps");
}

/// Everything public of a question.
fn public_text(query: &SumQuery) -> String {
    let matrix = query.matrix().map(|matrix| matrix.values());
    format!("{query:?} {matrix:?}")
}

/// One entry for each answer that was paid for, in order.
fn paid_releases(steps: &[Step]) -> Vec<PlannedRelease> {
    let of_request = |request: &Request| {
        let times = |release: &PlannedRelease| std::iter::repeat_n(release.clone(), release.times as usize);
        request.releases.iter().flat_map(times).collect::<Vec<_>>()
    };
    let charged = |step: &Step| match step {
        Step::Charged(request) => Some(of_request(request)),
        Step::Drawn { .. } | Step::Summed { .. } | Step::Minimised { .. } | Step::Released(_) => None,
    };
    steps.iter().filter_map(charged).flatten().collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use reticent_core::adjacency::PrivacyUnit;
    use reticent_core::coding::Coding;
    use reticent_core::encoding::{LatticeRow, NormRule};
    use reticent_core::engine::EngineError;
    use reticent_core::pass_weights::PassWeights;
    use reticent_core::query::{Map, QueryShape};
    use reticent_core::sum::PartialSum;

    use super::*;
    use crate::generate;

    /// Counts a row of class 0 so many times.
    struct Rows(usize);

    impl Engine for Rows {
        fn unit(&self) -> &PrivacyUnit {
            &PrivacyUnit::Row
        }

        fn schema(&self) -> &str {
            "s"
        }

        fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
            let mut sum = PartialSum::zero(query);
            (0..self.0).for_each(|_| sum.add_row(query, LatticeRow { features: &[0, 0], step: 1.0 }, 0));
            Ok(sum)
        }
    }

    fn question() -> (SumQuery, Request) {
        let schema = generate::schema(1, 0, "unit = \"row\"\nadjacency = \"add-remove\"");
        let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
        let shape = QueryShape::new(Map::ClassCount { classes: 3 }, PrivacyUnit::Row, 100).expect("small");
        let query = SumQuery::new(shape.clone(), encoding, PassWeights::none()).expect("columns fit");
        let noise_scale = NoiseScale::new(1 << 30).expect("in range");
        let noise = NoiseDistribution::RoundedGaussian;
        let release = PlannedRelease { purpose: "count".to_owned(), shape, noise_scale, noise, times: 2 };
        let (purpose, data, schema) = ("test".to_owned(), "t".to_owned(), "s".to_owned());
        (query, Request { purpose, data, schema, labels: None, table: None, releases: vec![release] })
    }

    /// Replays on tables of 5 and `others` rows.
    fn replay(others: usize, ask: &dyn Fn(&mut Session<'_>) -> String) -> Tally {
        let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
        let (left, right) = (Rows(5), Rows(others));
        let none = |_: &Encoding| Vec::new();
        let mut tally = Tally::default();
        let neighbours = Neighbours {
            relation: &relation,
            left: World { engine: &left, rows: &none },
            right: World { engine: &right, rows: &none },
            seed: 1,
        };
        neighbours.replay(ask, &mut tally);
        tally
    }

    /// Pays for two counts and asks for so many.
    fn count(session: &mut Session<'_>, times: usize) -> String {
        let (query, request) = question();
        let grants = session.pay(&request).expect("no limit");
        let released = grants.into_iter().take(times).map(|grant| session.release(grant, &query).expect("granted"));
        format!("{:?}", released.collect::<Vec<_>>())
    }

    #[test]
    fn an_honest_question_passes_and_reaches_its_sensitivity() {
        let tally = replay(6, &|session| count(session, 2));
        assert_eq!((tally.pairs, tally.releases, tally.draws), (1, 2, 6));
        assert!((tally.largest_share - 1.0).abs() < 1e-12, "{}", tally.largest_share);
    }

    #[test]
    #[should_panic(expected = "L2: moved by")]
    fn two_rows_are_too_far_for_one() {
        replay(7, &|session| count(session, 2));
    }

    #[test]
    #[should_panic(expected = "another outcome")]
    fn an_outcome_that_knows_its_table_is_noticed() {
        let table = Cell::new(0);
        replay(6, &|session| {
            table.set(table.get() + 1);
            format!("{} {}", count(session, 2), table.get())
        });
    }

    #[test]
    #[should_panic(expected = "as many steps")]
    fn a_release_fewer_on_one_table_is_noticed() {
        let table = Cell::new(0);
        replay(6, &|session| {
            table.set(table.get() + 1);
            count(session, 3 - table.get()).len().min(1).to_string()
        });
    }

    #[test]
    #[should_panic(expected = "what was paid for was released")]
    fn a_payment_without_a_release_is_noticed() {
        replay(6, &|session| count(session, 1));
    }
}
