//! The one door: nothing comes out that was not paid for, and what comes out is sum plus noise.

use std::sync::{Arc, Mutex};

use reticent_core::adjacency::{Adjacency, PrivacyUnit, Relation};
use reticent_core::coding::{CODE_MAX, Coding};
use reticent_core::encoding::{Encoding, LatticeRow, NormRule};
use reticent_core::engine::{Disclosure, Engine, EngineError};
use reticent_core::label_use::LabelUse;
use reticent_core::ledger::{Budget, LedgerStore, PlannedRelease, Request};
use reticent_core::minimum::{Minimum, MinimumQuery, UnusableLabel};
use reticent_core::pass_weights::PassWeights;
use reticent_core::public_features::{FEATURE_NUMBERS_MAX, PublicFeatures};
use reticent_core::query::{Map, QueryShape, SumQuery};
use reticent_core::schema::Schema;
use reticent_core::session::{Session, SessionError};
use reticent_core::sum::PartialSum;
use reticent_core::units::{Delta, Epsilon, MuSquared, NoiseDistribution, NoiseScale};
use reticent_testkit::memory_ledger::MemoryLedger;
use reticent_testkit::{generate, seeded_session};

/// Stands for the fingerprint of the schema of all rows here.
const READ_BY: &str = "s";

/// Counts `rows` rows of class 1.
struct Rows(usize, PrivacyUnit);

impl Engine for Rows {
    fn unit(&self) -> &PrivacyUnit {
        &self.1
    }

    fn schema(&self) -> &str {
        READ_BY
    }

    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError> {
        let mut sum = PartialSum::zero(query);
        for _ in 0..self.0 {
            sum.add_row(query, LatticeRow { features: &[0], step: 1.0 }, 1);
        }
        Ok(sum)
    }

    fn row_number(&self, _: &Disclosure) -> Option<u64> {
        Some(self.0 as u64)
    }

    fn public_features(&self, _: &Disclosure) -> Result<Option<PublicFeatures>, EngineError> {
        Ok(Some(PublicFeatures { columns: 1, codes: vec![CODE_MAX; self.0] }))
    }
}

/// Where each row is a unit, tables that differ in what a row holds have as many.
#[test]
fn the_number_of_rows_is_told_where_it_is_public() {
    let patients = PrivacyUnit::Column { column: "patient".to_owned(), rows_max: 1 };
    for unit in [PrivacyUnit::Row, patients] {
        let engine = Rows(5, unit.clone());
        for adjacency in Adjacency::ALL {
            let relation = Relation { unit: unit.clone(), adjacency };
            let mut ledger = MemoryLedger::promising(relation.clone(), None);
            let session = Session::open(&engine, &mut ledger, relation.clone()).expect("opens");
            let is_public = unit == PrivacyUnit::Row && [Adjacency::Replace, Adjacency::Label].contains(&adjacency);
            let told = session.public_row_number(&request(Vec::new())).expect("admitted");
            assert_eq!(told, is_public.then_some(5), "{relation:?}");
        }
    }
}

/// A row that is absent from a neighbour, or without a label in it, is a row more in the number.
#[test]
fn the_number_of_rows_and_features_are_told_only_where_every_promise_makes_them_public() {
    let engine = Rows(5, PrivacyUnit::Row);
    let relation = |adjacency| Relation { unit: PrivacyUnit::Row, adjacency };
    for (claimed, also, tells_number, shows_features) in [
        (Adjacency::Replace, Adjacency::AddRemove, false, false),
        (Adjacency::Label, Adjacency::AddRemove, false, false),
        (Adjacency::Label, Adjacency::Replace, false, false),
        (Adjacency::Replace, Adjacency::Label, true, false),
    ] {
        let mut ledger = MemoryLedger::promising_all([claimed, also].map(relation), None);
        let session = Session::open(&engine, &mut ledger, relation(claimed)).expect("both are promised");
        let told = session.public_row_number(&request(Vec::new())).expect("admitted");
        assert_eq!(told.is_some(), tells_number, "{claimed} and {also}");
        let features = session.public_features(&request(Vec::new()), 2);
        assert_eq!(matches!(features, Ok(Some(_))), shows_features, "{claimed} and {also}");
        if claimed == Adjacency::Label {
            assert!(matches!(features, Err(SessionError::PrivateFeatures { promised }) if promised == relation(also)));
        }
    }
}

/// Rows are counted, and their features shown, by the labels that a request declares usable: of other ones that would tell the labels.
#[test]
fn nothing_public_is_told_to_a_request_that_would_be_refused() {
    let engine = Rows(5, PrivacyUnit::Row);
    let relation = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Label };
    let about = |classes: &str, releases| {
        let text = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"label\"\n[target]\ncolumn = \"y\"\nclasses = {classes}\n\
             [features]\nx = {{ bounds = [0, 1] }}\n"
        );
        let schema = Schema::from_text(&text).expect("legal");
        Request { labels: Some(LabelUse::of(&schema)), ..request(releases) }
    };
    let budget = Budget { epsilon: Epsilon::new(1.0).expect("legal"), delta: Delta::new(1e-6).expect("legal") };
    let mut ledger = MemoryLedger::promising(relation.clone(), Some(budget));
    ledger.charge(&about("[0, 1]", Vec::new())).expect("the first");
    let dear = PlannedRelease { noise_scale: NoiseScale::new(1).expect("in range"), ..count(2).1 };
    let session = Session::open(&engine, &mut ledger, relation).expect("promised");
    for (request, is_told) in [
        (about("[1, 0]", Vec::new()), true),
        (about("[0, 7]", Vec::new()), false),
        (about("[0, 1]", vec![dear]), false),
    ] {
        let number = session.public_row_number(&request);
        assert_eq!(matches!(number, Ok(Some(5))), is_told);
        assert_eq!(matches!(number, Err(SessionError::Ledger(_))), !is_told);
        let features = session.public_features(&request, 2);
        assert_eq!(matches!(features, Ok(Some(_))), is_told);
        assert_eq!(matches!(features, Err(SessionError::Ledger(_))), !is_told);
    }
}

/// An engine would show its features to anybody; the session does so only where they are public.
#[test]
fn features_are_shown_under_label_adjacency_alone() {
    let engine = Rows(5, PrivacyUnit::Row);
    for adjacency in Adjacency::ALL {
        let relation = Relation { unit: PrivacyUnit::Row, adjacency };
        let mut ledger = MemoryLedger::promising(relation.clone(), None);
        let session = Session::open(&engine, &mut ledger, relation).expect("opens");
        let shown = session.public_features(&request(Vec::new()), 2).expect("in memory").is_some();
        assert_eq!(shown, adjacency == Adjacency::Label, "{adjacency}");
        let too_many = session.public_features(&request(Vec::new()), FEATURE_NUMBERS_MAX as usize / 5 + 1);
        assert_eq!(matches!(too_many, Err(SessionError::TooManyFeatures(_))), shown, "{adjacency}");
    }
}

fn add_remove() -> Relation {
    Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove }
}

fn count(classes: u32) -> (SumQuery, PlannedRelease) {
    let schema = generate::schema(1, 0, "unit = \"row\"\nadjacency = \"add-remove\"");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
    let shape = QueryShape::new(Map::ClassCount { classes }, PrivacyUnit::Row, 1000).expect("small");
    let query = SumQuery::new(shape.clone(), encoding, PassWeights::none()).expect("columns fit");
    let noise_scale = NoiseScale::new(1 << 21).expect("in range");
    (
        query,
        PlannedRelease {
            purpose: "counts".to_owned(),
            shape,
            noise_scale,
            noise: NoiseDistribution::RoundedGaussian,
            times: 1,
        },
    )
}

fn request(releases: Vec<PlannedRelease>) -> Request {
    Request {
        purpose: "test".to_owned(),
        data: "t".to_owned(),
        schema: READ_BY.to_owned(),
        labels: None,
        table: None,
        releases,
    }
}

#[test]
fn a_release_is_charged_before_it_is_made_and_centres_on_the_sum() {
    let engine = Rows(500, PrivacyUnit::Row);
    let (query, planned) = count(2);
    let mut total = 0.0;
    for seed in 0..200 {
        let mut ledger = MemoryLedger::promising(add_remove(), None);
        let mut session = seeded_session(&engine, &mut ledger, add_remove(), seed).expect("opens");
        let mut grants = session.pay(&request(vec![planned.clone()])).expect("no limit");
        assert_eq!(grants.len(), 1);
        let release = session.release(grants.remove(0), &query).expect("granted");
        total += release.values()[1];
        drop(session);
        assert_eq!(ledger.charged.len(), 1);
        assert!((release.noise_standard_deviation - 2.0).abs() < 1e-6, "scale 2^21 in steps of 2^-20");
    }
    // Mean of 200 draws with standard deviation 2: 0.14; six of them.
    assert!((total / 200.0 - 500.0).abs() < 0.9, "{total}");
}

/// Answers every question for a minimum with the same point, and keeps the linear terms.
struct Minima(Mutex<Vec<Vec<i128>>>);

const MINIMUM: [i128; 2] = [1 << 40, -(1 << 41)];

impl Engine for Minima {
    fn unit(&self) -> &PrivacyUnit {
        &PrivacyUnit::Row
    }

    fn schema(&self) -> &str {
        READ_BY
    }

    fn exact_sum(&self, _: &SumQuery) -> Result<PartialSum, EngineError> {
        unreachable!("asked for minima")
    }

    fn exact_minimum(&self, query: &MinimumQuery, perturbation: &[i128]) -> Result<PartialSum, EngineError> {
        self.0.lock().expect("one thread").push(perturbation.to_vec());
        Ok(PartialSum::of_minimum(query, MINIMUM.to_vec()))
    }

    fn public_features(&self, _: &Disclosure) -> Result<Option<PublicFeatures>, EngineError> {
        Ok(None)
    }
}

/// Standard deviation of numbers whose mean is known, in units of `scale`.
fn spread(numbers: impl Iterator<Item = i128>, scale: u64) -> f64 {
    let squares: Vec<f64> = numbers.map(|number| (number as f64 / scale as f64).powi(2)).collect();
    (squares.iter().sum::<f64>() / squares.len() as f64).sqrt()
}

#[test]
fn a_minimum_has_a_linear_term_and_noise_of_their_scales() {
    const NOISE: u64 = 1 << 44;
    const PERTURBATION: u64 = 1 << 47;
    let schema = generate::schema(1, 0, "unit = \"row\"\nadjacency = \"add-remove\"");
    let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::Clip(2.0)));
    for perturbation in [PERTURBATION, 0] {
        let engine = Minima(Mutex::default());
        let minimum = Minimum { classes: 2, columns: 2, l2: 1 << 16, perturbation, unusable: UnusableLabel::Skip };
        let shape = QueryShape::new(Map::Minimum(minimum), PrivacyUnit::Row, 1000).expect("in range");
        let query = MinimumQuery::new(shape.clone(), encoding.clone(), &[0.0; 2]).expect("columns fit");
        let planned = PlannedRelease {
            purpose: "a minimum".to_owned(),
            shape,
            noise_scale: NoiseScale::new(NOISE).expect("in range"),
            noise: NoiseDistribution::RoundedGaussian,
            times: 2000,
        };
        let mut ledger = MemoryLedger::promising(add_remove(), None);
        let mut session = seeded_session(&engine, &mut ledger, add_remove(), 7).expect("opens");
        let grants = session.pay(&request(vec![planned])).expect("no limit");
        let releases: Vec<_> =
            grants.into_iter().map(|grant| session.release_minimum(grant, &query).expect("granted")).collect();

        // 4000 draws: a standard error of 1.1 %, six of them.
        let noise = releases.iter().flat_map(|release| release.integers.iter().zip(MINIMUM).map(|(one, at)| one - at));
        let found = spread(noise, NOISE);
        assert!((found - 1.0).abs() < 0.07, "{found}");
        let terms = engine.0.lock().expect("one thread").concat();
        assert_eq!(terms.len(), 4000);
        // Far out as well, or it would be cut off where its price counts: eleven of 4000 are expected beyond three deviations.
        let far_out = terms.iter().filter(|term| term.unsigned_abs() > 3 * u128::from(PERTURBATION)).count();
        let found = spread(terms.into_iter(), PERTURBATION);
        let expected = if perturbation == 0 { 0.0 } else { 1.0 };
        assert!((found - expected).abs() < 0.07, "{found}");
        assert_eq!(far_out > 0, perturbation > 0, "{far_out}");
        for release in &releases {
            assert_eq!(release.step.to_bits(), query.answer_step().to_bits());
            let in_steps = release.noise_standard_deviation / query.answer_step() / NOISE as f64;
            assert!((in_steps - 1.0).abs() < 1e-9, "{in_steps}");
        }
    }
}

#[test]
fn a_grant_pays_for_one_shape_only() {
    let engine = Rows(5, PrivacyUnit::Row);
    let mut ledger = MemoryLedger::promising(add_remove(), None);
    let mut session = Session::open(&engine, &mut ledger, add_remove()).expect("opens");
    let mut grants = session.pay(&request(vec![count(2).1])).expect("no limit");
    let other = count(3).0;
    assert!(matches!(session.release(grants.remove(0), &other), Err(SessionError::WrongGrant { .. })));
}

#[test]
fn a_session_needs_a_promise_and_matching_rows() {
    let replace = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Replace };
    let engine = Rows(5, PrivacyUnit::Row);
    let mut ledger = MemoryLedger::promising(add_remove(), None);
    let error = Session::open(&engine, &mut ledger, replace).err().expect("not promised");
    assert!(error.to_string().contains("--promise 'row:replace'"), "{error}");

    let grouped = PrivacyUnit::Column { column: "id".to_owned(), rows_max: 2 };
    let relation = Relation { unit: grouped, adjacency: Adjacency::AddRemove };
    let mut ledger = MemoryLedger::promising(relation.clone(), None);
    assert!(matches!(Session::open(&engine, &mut ledger, relation), Err(SessionError::WrongUnit { .. })));
}

/// The second class of one schema may be the first of another.
#[test]
fn a_request_about_rows_that_were_read_by_another_schema_is_not_answered() {
    let unit = PrivacyUnit::Row;
    let labels = Relation { unit: unit.clone(), adjacency: Adjacency::Label };
    let (engine, mut ledger) = (Rows(5, unit), MemoryLedger::promising(labels.clone(), None));
    let other = Request { schema: "another".to_owned(), ..request(vec![count(2).1]) };
    let mut session = Session::open(&engine, &mut ledger, labels).expect("opens");
    assert!(matches!(session.pay(&other), Err(SessionError::WrongSchema)));
    assert!(matches!(session.hold_to_labels(&other, "no labels"), Err(SessionError::WrongSchema)));
    assert!(matches!(session.public_row_number(&other), Err(SessionError::WrongSchema)));
    assert!(matches!(session.is_without_labels(&other), Err(SessionError::WrongSchema)));
    assert!(matches!(session.public_features(&other, 2), Err(SessionError::WrongSchema)));
    drop(session);
    assert!(ledger.charged.is_empty(), "nothing is written down");
}

#[test]
fn a_release_that_is_planned_for_another_unit_is_not_paid() {
    let engine = Rows(5, PrivacyUnit::Row);
    let mut ledger = MemoryLedger::promising(add_remove(), None);
    let grouped = PrivacyUnit::Column { column: "id".to_owned(), rows_max: 2 };
    let shape = QueryShape::new(Map::ClassCount { classes: 2 }, grouped.clone(), 1000).expect("small");
    let mut session = Session::open(&engine, &mut ledger, add_remove()).expect("opens");
    let error = session.pay(&request(vec![PlannedRelease { shape, ..count(2).1 }])).err().expect("another unit");
    let SessionError::WrongPlan { planned, claimed } = error else { panic!("{error}") };
    assert_eq!((planned, claimed), (grouped, PrivacyUnit::Row));
    drop(session);
    assert_eq!(ledger.account().expect("in memory").spent[&add_remove()], MuSquared::ZERO);
}

#[test]
fn fresh_sessions_draw_fresh_noise() {
    let engine = Rows(0, PrivacyUnit::Row);
    let (query, planned) = count(2);
    let draw = || {
        let mut ledger = MemoryLedger::promising(add_remove(), None);
        let mut session = Session::open(&engine, &mut ledger, add_remove()).expect("opens");
        let mut grants = session.pay(&request(vec![planned.clone()])).expect("no limit");
        session.release(grants.remove(0), &query).expect("granted").integers
    };
    assert_ne!(draw(), draw());
}

#[test]
fn a_refused_request_gives_no_grant() {
    let engine = Rows(5, PrivacyUnit::Row);
    let mut ledger = MemoryLedger::promising(Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::Party }, None);
    assert!(ledger.charge(&request(vec![count(2).1])).is_err());
    assert!(ledger.charged.is_empty());
    assert!(Session::open(&engine, &mut ledger, add_remove()).is_err());
}

#[test]
fn a_grant_of_another_session_is_worth_nothing() {
    let engine = Rows(5, PrivacyUnit::Row);
    let (query, planned) = count(2);
    let mut cheap = MemoryLedger::promising(add_remove(), None);
    let mut other = Session::open(&engine, &mut cheap, add_remove()).expect("opens");
    let mut grants = other.pay(&request(vec![planned])).expect("no limit");
    let mut guarded = MemoryLedger::promising(add_remove(), None);
    let mut session = Session::open(&engine, &mut guarded, add_remove()).expect("opens");
    assert!(matches!(session.release(grants.remove(0), &query), Err(SessionError::ForeignGrant)));
}
