//! Names of questions, and releases that are read or refused.

use super::*;
use crate::account::gdp;
use crate::adjacency::{Adjacency, PrivacyUnit};
use crate::ledger::Budget;
use crate::public_matrix::PublicMatrix;
use crate::query::{ProductTarget, QueryShape};
use crate::schema::{Class, TargetKind};
use crate::target_window::TargetWindow;
use crate::units::{Delta, Epsilon, Mu, NoiseScale};

pub(super) fn list(ids: &[&str], values: &[i32]) -> Result<WeightList, WeightListError> {
    WeightList::new(EventIds::of(ids)?, PublicMatrix::new(1, values.to_vec()).expect("short rows"))
}

fn planned(label_high: i32, row_norm_square: u64, noise_scale: u64, cap: u32) -> PlannedAnswer {
    let unit = PrivacyUnit::Column { column: "user".to_owned(), rows_max: cap };
    let map = Map::MatrixProduct {
        columns: 1,
        outputs: 1,
        target: ProductTarget::Class,
        label_low: 0,
        label_high,
        rows: 2,
        row_norm_square,
        eigenvalue: 0,
    };
    PlannedAnswer { of_numbers: Vec::new(), product: once(map, unit, noise_scale) }
}

fn once(map: Map, unit: PrivacyUnit, noise_scale: u64) -> PlannedRelease {
    PlannedRelease {
        purpose: "labels".to_owned(),
        shape: QueryShape::new(map, unit, 100).expect("small"),
        noise_scale: NoiseScale::new(noise_scale).expect("legal"),
        noise: NoiseDistribution::RoundedGaussian,
        times: 1,
    }
}

/// The noise that numbers are released with for this claim.
fn planned_numbers(epsilon: f64) -> PlannedAnswer {
    let unit = PrivacyUnit::Column { column: "user".to_owned(), rows_max: 2 };
    let relation = Relation { unit: unit.clone(), adjacency: Adjacency::Label };
    let budget = Budget { epsilon: Epsilon::new(epsilon).expect("legal"), delta: Delta::new(1e-6).expect("legal") };
    let budget = budget.mu_squared_down();
    let least = |map, share| {
        let planned = once(map, unit.clone(), 1);
        let sensitivity = planned.shape.sensitivity(&relation).expect("finite");
        PlannedRelease { noise_scale: NoiseScale::smallest_within(sensitivity, share).expect("legal"), ..planned }
    };
    let product = Map::MatrixProduct {
        columns: 1,
        outputs: 1,
        target: ProductTarget::Number,
        label_low: -32_767,
        label_high: 32_767,
        rows: 2,
        row_norm_square: 16,
        eigenvalue: 0,
    };
    let (shares, left) = number_shares(budget, 2.0, &unit);
    let of_numbers = number_questions([64, 16]).into_iter().zip(shares).map(|((_, map), share)| least(map, share));
    PlannedAnswer { of_numbers: of_numbers.collect(), product: least(product, left) }
}

fn name(list: &WeightList, label_set: &str, schema: &str, unmatched: i16, planned: &PlannedAnswer) -> String {
    let relation = Relation { unit: planned.product.shape.unit().clone(), adjacency: Adjacency::Label };
    canonical_name(list, label_set, schema, unmatched, &relation, planned)
}

/// An epsilon at delta 1e-6 for which this noise is asked for.
fn claimed(planned: &PlannedRelease, relation: &Relation) -> Epsilon {
    // A little more: the price rounds up, and the budget of an epsilon down.
    let mu = (planned.price_up(relation).expect("finite").mu_up() * (1.0 + 1e-8)).max(1e-30);
    let epsilon = gdp::epsilon_up(Mu::new(mu).expect("positive"), Delta::new(1e-6).expect("legal"));
    Epsilon::new(epsilon.clamp(f64::MIN_POSITIVE, f64::MAX)).expect("positive")
}

fn classes(names: &[&str]) -> TargetKind {
    let class = |name: &&str| Class { name: (*name).to_owned(), spellings: vec![(*name).to_owned()] };
    TargetKind::Classes(names.iter().map(class).collect())
}

fn release(list: &WeightList, planned: PlannedAnswer, integers: &[&str]) -> LabelRelease {
    let relation = Relation { unit: planned.product.shape.unit().clone(), adjacency: Adjacency::Label };
    LabelRelease {
        format: LABEL_RELEASE_FORMAT.to_owned(),
        version: LABEL_RELEASE_VERSION,
        not_protected: NOT_PROTECTED.to_owned(),
        epsilon: claimed(&planned.product, &relation),
        delta: Delta::new(1e-6).expect("legal"),
        query: canonical_name(list, "set", "schema", 0, &relation, &planned),
        relation,
        label_set: "set".to_owned(),
        entry: 1,
        schema: "schema".to_owned(),
        target_column: "clicked".to_owned(),
        target: if planned.of_numbers.is_empty() {
            classes(&["no", "yes"])
        } else {
            TargetKind::Bounds { low: 0.0, high: 1.0 }
        },
        unmatched: 0,
        planned,
        numbers: None,
        integers: integers.iter().map(|integer| (*integer).to_owned()).collect(),
    }
}

#[test]
fn a_release_is_read_for_its_own_weights_alone() {
    let list = list(&["a", "b"], &[3, 4]).expect("unique");
    let released = release(&list, planned(1, 16, 7, 2), &["-12"]);
    assert_eq!(released.values_for(&list), Ok(vec![-12.0]));
    assert!((released.noise_standard_deviation().powi(2) - 49.0 - 1.0 / 12.0).abs() < 1e-12);

    let others = super::tests::list(&["a", "c"], &[3, 4]).expect("unique");
    assert_eq!(released.values_for(&others), Err(LabelReleaseError::OtherWeights));
    let with = |change: &dyn Fn(&mut LabelRelease)| {
        let mut release = released.clone();
        change(&mut release);
        release.values_for(&list).expect_err("refused")
    };
    assert_eq!(with(&|release| release.format.push('x')), LabelReleaseError::Format);
    assert_eq!(with(&|release| release.version += 1), LabelReleaseError::Format);
    assert!(matches!(with(&|release| release.planned.product.times = 2), LabelReleaseError::Inconsistent(_)));
    assert!(matches!(with(&|release| release.integers.clear()), LabelReleaseError::Inconsistent(_)));
    assert!(matches!(with(&|release| release.integers.push("1".to_owned())), LabelReleaseError::Inconsistent(_)));
    assert!(matches!(with(&|release| release.integers[0].push('.')), LabelReleaseError::Inconsistent(_)));
    // Labels 0 and 1 of weights 3 and 4 add up to 0 to 7, and noise of 7 adds what it adds.
    let reached = |sum: i64| {
        let released = LabelRelease { integers: vec![sum.to_string()], ..released.clone() };
        released.values_for(&list).is_ok()
    };
    assert!(reached(-448) && reached(455));
    assert!(!reached(-450) && !reached(457) && !reached(i64::MAX));
    // A question about two classes answers nothing about three of them, or about a number; and no class has the number -1.
    for target in [classes(&["no"]), classes(&["a", "b", "c"]), TargetKind::Bounds { low: 0.0, high: 1.0 }] {
        assert!(matches!(with(&|release| release.target = target.clone()), LabelReleaseError::Inconsistent(_)));
    }
    for unmatched in [-1, 2, i16::MIN] {
        assert!(matches!(with(&|release| release.unmatched = unmatched), LabelReleaseError::Inconsistent(_)));
    }
    assert_eq!(released.unmatched_label(), Ok(UnmatchedLabel::Class("no")));
    let of_table = QueryShape::new(Map::ClassCount { classes: 2 }, released.planned.product.shape.unit().clone(), 100);
    let of_table = of_table.expect("small");
    assert!(matches!(
        with(&|release| release.planned.product.shape = of_table.clone()),
        LabelReleaseError::Inconsistent(_)
    ));
}

#[test]
fn a_claim_that_is_not_that_of_the_noise_is_refused() {
    let list = list(&["a", "b"], &[3, 4]).expect("unique");
    // Of a large scale, so that it tells budgets apart that lie close together.
    let released = release(&list, planned(1, 1 << 40, 1 << 21, 2), &["5"]);
    let with = |change: &dyn Fn(&mut LabelRelease)| {
        let mut release = released.clone();
        change(&mut release);
        release.values_for(&list)
    };
    assert_eq!(with(&|_| {}), Ok(vec![5.0]));
    let contradiction = Err(LabelReleaseError::Inconsistent("its noise is not that of its epsilon and delta"));
    for factor in [0.5, 0.999, 1.001, 2.0] {
        let epsilon = Epsilon::new(released.epsilon.get() * factor).expect("legal");
        assert_eq!(with(&|release| release.epsilon = epsilon), contradiction, "{factor}");
        let delta = Delta::new(released.delta.get() * factor).expect("legal");
        assert_eq!(with(&|release| release.delta = delta), contradiction, "{factor}");
        // Noise that was changed together with the name of the question.
        let scale = (released.planned.product.noise_scale.get() as f64 * factor) as u64;
        let renamed = with(&|release| {
            release.planned.product.noise_scale = NoiseScale::new(scale).expect("legal");
            release.query = canonical_name(&list, "set", "schema", 0, &release.relation, &release.planned);
        });
        assert_eq!(renamed, contradiction, "{factor}");
    }
}

#[test]
fn numbers_are_answered_with_noise_for_all_that_is_asked_of_them() {
    let list = list(&["a", "b"], &[3, 4]).expect("unique");
    let planned_once = planned_numbers(1.0);
    let epsilon = Epsilon::new(1.0).expect("legal");
    let numbers = Some(ReleasedNumbers { window: TargetWindow::new(0.5, 0.25), square: "17".to_owned() });
    let released = LabelRelease { epsilon, numbers, ..release(&list, planned_once.clone(), &["5"]) };
    assert_eq!(released.values_for(&list), Ok(vec![5.0]));
    let (from, to) = released.read_range().expect("a part of 0 to 1");
    assert!((from - 0.625).abs() < 1e-4 && (to - 0.875).abs() < 1e-4, "{from} {to}");
    let (square, noise) = released.square().expect("an integer").expect("numbers");
    assert!((square - 17.0).abs() < 1e-9);
    assert!((noise / planned_once.of_numbers[2].noise_scale.get() as f64 - 1.0).abs() < 1e-6, "{noise}");

    let with = |change: &dyn Fn(&mut LabelRelease)| {
        let mut release = released.clone();
        change(&mut release);
        release.query = canonical_name(&list, "set", "schema", 0, &release.relation, &release.planned);
        release.values_for(&list).expect_err("refused")
    };
    let noise = LabelReleaseError::Inconsistent("its noise is not that of its epsilon and delta");
    let half = |planned: &mut PlannedRelease| {
        planned.noise_scale = NoiseScale::new(planned.noise_scale.get() / 2).expect("legal");
    };
    assert_eq!(with(&|release| half(&mut release.planned.product)), noise);
    for question in 0..3 {
        assert_eq!(with(&|release| half(&mut release.planned.of_numbers[question])), noise);
    }
    let strange = LabelReleaseError::Inconsistent("what is asked of numbers alone belongs to a target with bounds");
    let classes = planned(1, 16, 7, 2);
    let changes: [&dyn Fn(&mut LabelRelease); 6] = [
        &|release| release.numbers = None,
        &|release| release.planned.of_numbers.clear(),
        &|release| release.planned.of_numbers.truncate(1),
        &|release| release.planned.of_numbers.swap(1, 2),
        &|release| release.planned.product = classes.product.clone(),
        &|release| release.planned = classes.clone(),
    ];
    for (place, change) in changes.iter().enumerate() {
        assert_eq!(with(change), strange, "case {place}");
    }
    let twice = LabelReleaseError::Inconsistent("its question was not answered once");
    assert_eq!(with(&|release| release.planned.of_numbers[1].times = 2), twice);
    let beyond = LabelReleaseError::Inconsistent("one of its numbers is larger than labels and noise can make it");
    for square in ["-1000000000000000", "1000000000000000"] {
        let numbers = ReleasedNumbers { square: square.to_owned(), ..released.numbers.clone().expect("numbers") };
        assert_eq!(with(&|release| release.numbers = Some(numbers.clone())), beyond);
    }
    let fraction = Some(ReleasedNumbers { square: "1.5".to_owned(), ..released.numbers.clone().expect("numbers") });
    let fraction = LabelRelease { numbers: fraction, ..released.clone() };
    assert!(matches!(fraction.square(), Err(LabelReleaseError::Inconsistent(_))));

    let name = |planned: &PlannedAnswer| canonical_name(&list, "set", "schema", 0, &released.relation, planned);
    let mut others = vec![planned_once.clone(); 5];
    (0..3).for_each(|question| half(&mut others[question].of_numbers[question]));
    for (question, other) in others[3..].iter_mut().enumerate() {
        other.of_numbers[question].shape = once(Map::LabelsByBin { bins: 32 }, released.relation.unit.clone(), 1).shape;
    }
    let names = others.iter().map(name);
    assert!(names.clone().all(|other| other != name(&planned_once)));
    assert_eq!(names.collect::<std::collections::BTreeSet<_>>().len(), 5);
}

/// By hand: a signal of 600 over units of two rows is 300, which is half weak; without a signal all parts for a weak one are given.
#[test]
fn where_labels_lie_has_more_of_a_small_budget() {
    let mu = |value| Mu::new(value).expect("positive");
    let parts = |budget: f64, rows: f64, rows_max: u32| {
        let unit = PrivacyUnit::Column { column: "user".to_owned(), rows_max };
        let (shares, left) = number_shares(MuSquared::budget_down(mu(budget)), rows, &unit);
        let whole = budget * budget / 400.0;
        (
            shares.map(|share| (share.mu_up().powi(2) / whole).round() as u32),
            (left.mu_up().powi(2) / whole).round() as u32,
        )
    };
    assert_eq!(parts(1.0, 600.0, 2), ([38, 28, 15], 319));
    assert_eq!(parts(0.5, 1200.0, 2), ([38, 28, 15], 319));
    assert_eq!(parts(1e-4, 1.0, 1), ([61, 41, 20], 278));
    assert_eq!(parts(1.0, 1e6, 1), ([15, 15, 10], 360));
}

/// From one step of noise to nearly `2^60`, and with the rounding of another machine.
#[test]
fn the_least_noise_of_a_claim_is_never_refused() {
    let list = list(&["a", "b"], &[3, 4]).expect("unique");
    let mut tried = 0;
    for epsilon in [1e-9, 1e-4, 0.1, 1.0, 3.7, 30.0, 1e4, 1e12].map(|epsilon| Epsilon::new(epsilon).expect("legal")) {
        for delta in [1e-300, 1e-30, 1e-6, 0.1, 0.9].map(|delta| Delta::new(delta).expect("legal")) {
            let budget = Budget { epsilon, delta }.mu_squared_down();
            let rounding = budget.fraction_down(1, NonZeroU32::new(2_000_000_000).expect("not zero"));
            let budgets = [budget.checked_sub(rounding), Some(budget), budget.checked_add(rounding)];
            for square in [0, 1, 16, 12_345, 1 << 40] {
                let mut planned = planned(1, square, 1, 2);
                let relation = Relation { unit: planned.product.shape.unit().clone(), adjacency: Adjacency::Label };
                let sensitivity = planned.product.shape.sensitivity(&relation).expect("finite");
                for budget in budgets.into_iter().flatten() {
                    let Some(scale) = NoiseScale::smallest_within(sensitivity, budget) else { continue };
                    planned.product.noise_scale = scale;
                    let released = LabelRelease { epsilon, delta, ..release(&list, planned.clone(), &["1"]) };
                    assert_eq!(released.values_for(&list), Ok(vec![1.0]), "{epsilon} {delta:?} {square} {scale:?}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn a_release_with_a_control_character_in_a_name_is_refused() {
    let list = list(&["a", "b"], &[3, 4]).expect("unique");
    let released = release(&list, planned(1, 16, 7, 2), &["-12"]);
    let changes: [&dyn Fn(&mut LabelRelease); 4] = [
        &|release| release.label_set.push('\u{1b}'),
        &|release| release.schema.push('\n'),
        &|release| release.planned.product.purpose.push('\u{9b}'),
        &|release| release.relation.unit = PrivacyUnit::Column { column: "\r".to_owned(), rows_max: 2 },
    ];
    for (place, change) in changes.iter().enumerate() {
        let mut release = released.clone();
        change(&mut release);
        assert_eq!(release.values_for(&list), Err(LabelReleaseError::ControlCharacter), "case {place}");
    }
}

#[test]
fn every_part_of_a_question_is_in_its_name() {
    let usual = list(&["a", "b"], &[1, 2]).expect("unique");
    let plan = planned(1, 4, 7, 2);
    let reference = name(&usual, "set", "schema", 0, &plan);
    assert_eq!(reference, name(&list(&["a", "b"], &[1, 2]).expect("unique"), "set", "schema", 0, &plan));
    let others = [
        name(&list(&["a", "c"], &[1, 2]).expect("unique"), "set", "schema", 0, &plan),
        name(&list(&["b", "a"], &[1, 2]).expect("unique"), "set", "schema", 0, &plan),
        name(&list(&["a", "b"], &[1, -2]).expect("unique"), "set", "schema", 0, &plan),
        name(&usual, "tes", "schema", 0, &plan),
        name(&usual, "set", "schemb", 0, &plan),
        name(&usual, "sets", "chema", 0, &plan),
        name(&usual, "set", "schema", 1, &plan),
        name(&usual, "set", "schema", 0, &planned(2, 4, 7, 2)),
        name(&usual, "set", "schema", 0, &planned(1, 5, 7, 2)),
        name(&usual, "set", "schema", 0, &planned(1, 4, 8, 2)),
        name(&usual, "set", "schema", 0, &planned(1, 4, 7, 3)),
    ];
    for (place, other) in others.iter().enumerate() {
        assert_ne!(*other, reference, "case {place}");
        assert!(!others[..place].contains(other), "case {place}");
    }
}
