//! A question that one organisation asks about labels that another one holds: the list of rows, its canonical name and
//! its answer.
//!
//! The asking side has features and is not trusted. It sends a [`WeightList`]: event ids, and one row of integers for each.
//! The answering side joins the ids to its labels and releases `sum_i label_i · row_i` with noise. Everything here is public
//! to both sides; features are not protected.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::adjacency::{PrivacyUnit, Relation};
use crate::contribution::CodedLabel;
use crate::hex::hex;
use crate::ledger::{Budget, PlannedRelease};
use crate::public_matrix::PublicMatrix;
use crate::query::{Map, ProductTarget};
use crate::schema::TargetKind;
use crate::target_window::TargetWindow;
use crate::units::{Delta, Epsilon, MuSquared, NoiseDistribution, NoiseScale};

/// Share of `mu²` for each of [`NUMBER_QUESTIONS`]: 1 part in 20.
const NUMBER_QUESTION_SHARE: NonZeroU32 = NonZeroU32::new(20).expect("not zero");

/// What is asked of labels that are numbers before the product: in what part of their bounds they lie, which is where all that follows
/// reads them, and the sum of their squares there.
pub const NUMBER_QUESTIONS: [(&str, Map); 2] =
    [("labels by bin", Map::LabelBins), ("sum of squared labels", Map::LabelSquares)];

/// Parts of a budget: for each of [`NUMBER_QUESTIONS`], and what they leave for the product.
#[must_use]
pub fn number_shares(budget: MuSquared) -> (MuSquared, MuSquared) {
    let share = budget.share_down(NUMBER_QUESTION_SHARE);
    let left = NUMBER_QUESTIONS.iter().try_fold(budget, |left, _| left.checked_sub(share));
    (share, left.expect("shares are less than the whole"))
}

/// Event ids with one row of integers each, in the order of whoever made the list: public, and checked when it is made.
pub struct WeightList {
    ids: Vec<Box<[u8]>>,
    matrix: Arc<PublicMatrix>,
}

/// A list that is refused: the reasons are facts of the list alone.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WeightListError {
    /// Rows and ids do not belong together.
    #[error("there are {ids} ids for {rows} rows")]
    Length {
        /// Ids.
        ids: usize,
        /// Rows of the matrix.
        rows: usize,
    },
    /// No row at all.
    #[error("there is no row; a list names at least one event")]
    Empty,
    /// A row that belongs to nothing.
    #[error("row {row} has no id")]
    NoId {
        /// Its place, counted from 1.
        row: usize,
    },
    /// One label under several rows would be worth more than its price.
    #[error(
        "row {row} has the id of an earlier row; each event may be listed once: add up its rows before they are sent"
    )]
    Repeated {
        /// The later place, counted from 1.
        row: usize,
    },
}

impl WeightList {
    /// Takes ids and rows; each id may be there once, so that one label moves one row of the sum.
    ///
    /// # Errors
    /// [`WeightListError`] names the first row that is wrong.
    pub fn new(ids: Vec<Box<[u8]>>, matrix: PublicMatrix) -> Result<Self, WeightListError> {
        if ids.len() != matrix.rows() {
            return Err(WeightListError::Length { ids: ids.len(), rows: matrix.rows() });
        }
        if ids.is_empty() {
            return Err(WeightListError::Empty);
        }
        let mut seen: HashSet<&[u8]> = HashSet::with_capacity(ids.len());
        for (row, id) in ids.iter().enumerate() {
            if id.is_empty() {
                return Err(WeightListError::NoId { row: row + 1 });
            }
            if !seen.insert(id) {
                return Err(WeightListError::Repeated { row: row + 1 });
            }
        }
        Ok(Self { ids, matrix: Arc::new(matrix) })
    }

    /// Ids in the order of the rows.
    #[must_use]
    pub fn ids(&self) -> &[Box<[u8]>] {
        &self.ids
    }

    /// The integers.
    #[must_use]
    pub fn matrix(&self) -> &Arc<PublicMatrix> {
        &self.matrix
    }

    /// Whether no sum of these rows times labels of at most `label_max` can reach `2^62`: `rows · max |q| · label_max < 2^62`.
    ///
    /// Sums are kept in 128 bits, so nothing could overflow here; the bound keeps answers within what 64-bit tools read.
    #[must_use]
    pub fn fits_62_bits(&self, label_max: u32) -> bool {
        let largest = self.matrix.values().iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        product_fits_62_bits(self.ids.len() as u64, largest, label_max)
    }
}

/// `rows · coordinate_max · label_max < 2^62`.
fn product_fits_62_bits(rows: u64, coordinate_max: u32, label_max: u32) -> bool {
    u128::from(rows) * u128::from(coordinate_max) * u128::from(label_max) < 1 << 62
}

/// What an answer takes: one product, and before it [`NUMBER_QUESTIONS`] for labels that are numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlannedAnswer {
    /// None for classes.
    pub of_numbers: Vec<PlannedRelease>,
    /// Labels times the rows of the list ([`Map::MatrixProduct`]), with what is left of `mu²`.
    pub product: PlannedRelease,
}

impl PlannedAnswer {
    /// The releases in the order in which they are asked for.
    #[must_use]
    pub fn releases(&self) -> Vec<PlannedRelease> {
        self.of_numbers.iter().chain([&self.product]).cloned().collect()
    }

    /// Price of all of it under a relation; `None` where there is none.
    #[must_use]
    pub fn price_up(&self, relation: &Relation) -> Option<MuSquared> {
        let mut releases = self.of_numbers.iter().chain([&self.product]);
        releases.try_fold(MuSquared::ZERO, |total, planned| total.checked_add(planned.price_up(relation)?))
    }
}

/// Name of a question: SHA-256, as 64 hexadecimal digits, of everything that its answer depends on.
///
/// That is: ids, integers, smallest and largest label, bound on the rows' norm, noise of all answers, the unit and its cap, the fingerprint
/// of the label side's schema, the label of unmatched ids, and `label_set`, the identity of the ledger that all versions of
/// the labels are charged to. Every list and text is preceded by its length, so different questions differ in what is hashed.
/// Only equal questions have equal names: an answer that is kept under the name may be given again without a charge.
///
/// # Panics
/// When the planned release is no matrix product.
#[must_use]
pub fn canonical_name(
    list: &WeightList,
    label_set: &str,
    schema: &str,
    unmatched: CodedLabel,
    relation: &Relation,
    planned: &PlannedAnswer,
) -> String {
    let PlannedAnswer { of_numbers, product } = planned;
    let Map::MatrixProduct { columns, outputs, target: _, label_low, label_high, rows, row_norm_square, eigenvalue: _ } =
        *product.shape.map()
    else {
        panic!("labels are asked for by matrix products")
    };
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for text in ["reticent label query 2", label_set, schema, &relation.to_string()] {
        part(text.as_bytes());
    }
    let noise = match product.noise {
        NoiseDistribution::RoundedGaussian => 0u64,
        NoiseDistribution::DiscreteLaplace => 1,
    };
    for number in [columns.into(), outputs.into(), rows, row_norm_square, noise, product.noise_scale.get()] {
        part(&number.to_le_bytes());
    }
    for number in [label_low, label_high, unmatched.into()] {
        part(&number.to_le_bytes());
    }
    part(&product.times.to_le_bytes());
    part(&(of_numbers.len() as u64).to_le_bytes());
    of_numbers.iter().for_each(|planned| part(&planned.noise_scale.get().to_le_bytes()));
    for (id, row) in list.ids.iter().zip(list.matrix.values().chunks_exact(list.matrix.columns())) {
        part(id);
        row.iter().for_each(|value| part(&value.to_le_bytes()));
    }
    hex(&hash.finalize())
}

/// The answer, as it is kept in the label holder's ledger and sent to whoever asked: noisy, and so public.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelRelease {
    /// [`LABEL_RELEASE_FORMAT`].
    pub format: String,
    /// [`LABEL_RELEASE_VERSION`].
    pub version: u32,
    /// What is not protected, for whoever opens the file: [`NOT_PROTECTED`]. Programs say it themselves, not as the sender has it.
    pub not_protected: String,
    /// Whose labels are protected.
    pub relation: Relation,
    /// Epsilon at [`Self::delta`], as the label holder granted it.
    pub epsilon: Epsilon,
    /// Delta of the claim.
    pub delta: Delta,
    /// Name of the question: [`canonical_name`].
    pub query: String,
    /// Identity of the label holder's ledger.
    pub label_set: String,
    /// Entry of the ledger.
    pub entry: u64,
    /// Fingerprint of the label holder's schema.
    pub schema: String,
    /// The label holder's classes or bounds.
    pub target: TargetKind,
    /// Label of ids that the label holder does not know, and of labels that cannot be used, in code.
    pub unmatched: CodedLabel,
    /// Questions and noise, as charged.
    pub planned: PlannedAnswer,
    /// What was found of labels that are numbers; none for classes.
    pub numbers: Option<ReleasedNumbers>,
    /// Noisy integers of the product, output after output, as decimal text.
    pub integers: Vec<String>,
}

/// What an answer says of labels that are numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReleasedNumbers {
    /// The part of their bounds in which they were read, found in their bins.
    pub window: TargetWindow,
    /// Noisy sum of their squares there, in steps of `1/32767²` of the square of half its width: an integer as decimal text.
    pub square: String,
}

/// What every answer says about features.
pub const NOT_PROTECTED: &str =
    "features, event ids and the number of rows are NOT protected: only labels are, and only against whoever asks";

/// [`LabelRelease::format`].
pub const LABEL_RELEASE_FORMAT: &str = "reticent-label-release";
/// [`LabelRelease::version`] that this software writes and reads.
pub const LABEL_RELEASE_VERSION: u32 = 2;

/// One part of that many of a budget: the sender's machine may have rounded its `mu²` otherwise, by a part in 10^11.
const CLAIM_SLACK: NonZeroU32 = NonZeroU32::new(1_000_000_000).expect("not zero");

/// A release file that cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LabelReleaseError {
    /// Another kind or version of document.
    #[error("this is not a release of labels of version {LABEL_RELEASE_VERSION}; `reticent walr measure` writes one")]
    Format,
    /// Integers that are missing, too many or no integers; noise that is not what the claim asks for.
    #[error("the release contradicts itself: {0}")]
    Inconsistent(&'static str),
    /// A text that could change what a terminal shows.
    #[error("the release has a control character in a name, and `reticent walr measure` writes none; ask for it again")]
    ControlCharacter,
    /// It answers another question.
    #[error(
        "the release answers another question: it does not belong to these weights; use the weights that were measured"
    )]
    OtherWeights,
}

impl LabelRelease {
    /// The noisy integers as numbers, after checking that they answer the question of this list.
    ///
    /// # Errors
    /// [`LabelReleaseError`].
    pub fn values_for(&self, list: &WeightList) -> Result<Vec<f64>, LabelReleaseError> {
        if self.format != LABEL_RELEASE_FORMAT || self.version != LABEL_RELEASE_VERSION {
            return Err(LabelReleaseError::Format);
        }
        if self.names().any(|name| name.chars().any(char::is_control)) {
            return Err(LabelReleaseError::ControlCharacter);
        }
        let PlannedAnswer { of_numbers, product } = &self.planned;
        let Map::MatrixProduct { target, .. } = *product.shape.map() else {
            return Err(LabelReleaseError::Inconsistent("its question is not one about labels"));
        };
        let asked = NUMBER_QUESTIONS.map(|(_, map)| map);
        let expected = if target == ProductTarget::Number { &asked[..] } else { &[] };
        let is_asked = of_numbers.iter().map(|planned| planned.shape.map()).eq(expected);
        if !is_asked || expected.is_empty() == self.numbers.is_some() {
            return Err(LabelReleaseError::Inconsistent(
                "what is asked of numbers alone belongs to a target with bounds",
            ));
        }
        if of_numbers.iter().chain([product]).any(|planned| planned.times != 1) {
            return Err(LabelReleaseError::Inconsistent("its question was not answered once"));
        }
        if self.planned.price_up(&self.relation).is_none() {
            return Err(LabelReleaseError::Inconsistent("its question has no finite price under its relation"));
        }
        if !self.noise_is_as_claimed() {
            return Err(LabelReleaseError::Inconsistent("its noise is not that of its epsilon and delta"));
        }
        let name = canonical_name(list, &self.label_set, &self.schema, self.unmatched, &self.relation, &self.planned);
        if name != self.query {
            return Err(LabelReleaseError::OtherWeights);
        }
        if self.integers.len() != product.shape.coordinates() as usize {
            return Err(LabelReleaseError::Inconsistent("it does not have one number for each question"));
        }
        self.integers.iter().map(|text| number_of(text)).collect()
    }

    /// The part of their bounds in which labels were read: all of them for classes.
    #[must_use]
    pub fn window(&self) -> TargetWindow {
        self.numbers.as_ref().map_or(TargetWindow::BOUNDS, |numbers| numbers.window)
    }

    /// The sum of squared labels, in steps, and the standard deviation of its noise; none for classes.
    ///
    /// # Errors
    /// [`LabelReleaseError::Inconsistent`] when it is no integer.
    pub fn square(&self) -> Result<Option<(f64, f64)>, LabelReleaseError> {
        let (Some(numbers), Some(planned)) = (&self.numbers, self.planned.of_numbers.last()) else { return Ok(None) };
        Ok(Some((number_of(&numbers.square)?, planned.noise.standard_deviation(planned.noise_scale))))
    }

    /// The texts that the reader's certificate repeats.
    fn names(&self) -> impl Iterator<Item = &str> {
        let unit = match &self.relation.unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { column, rows_max: _ } => Some(column.as_str()),
        };
        let PlannedAnswer { of_numbers, product } = &self.planned;
        let purposes = of_numbers.iter().chain([product]).map(|planned| planned.purpose.as_str());
        [self.label_set.as_str(), &self.schema].into_iter().chain(purposes).chain(unit)
    }

    /// Whether each noise is the least whose price epsilon and delta allow, up to [`CLAIM_SLACK`].
    fn noise_is_as_claimed(&self) -> bool {
        let budget = Budget { epsilon: self.epsilon, delta: self.delta }.mu_squared_down();
        let PlannedAnswer { of_numbers, product } = &self.planned;
        let (share, left) = if of_numbers.is_empty() { (MuSquared::ZERO, budget) } else { number_shares(budget) };
        of_numbers.iter().all(|planned| self.is_least_noise(planned, share)) && self.is_least_noise(product, left)
    }

    fn is_least_noise(&self, planned: &PlannedRelease, budget: MuSquared) -> bool {
        let slack = budget.fraction_down(1, CLAIM_SLACK);
        let is_within = |scale: u64, budget: MuSquared| {
            let planned = NoiseScale::new(scale).map(|noise_scale| PlannedRelease { noise_scale, ..planned.clone() });
            planned.ok().and_then(|planned| planned.price_up(&self.relation)).is_some_and(|price| price <= budget)
        };
        let scale = planned.noise_scale.get();
        let (most, least) = (budget.checked_add(slack).unwrap_or(MuSquared::MAX), budget.checked_sub(slack));
        is_within(scale, most) && !least.is_some_and(|least| is_within(scale - 1, least))
    }

    /// Where in its bounds a number was read, in the label holder's own unit; none for classes, or where it is all of the bounds.
    #[must_use]
    pub fn read_range(&self) -> Option<(f64, f64)> {
        let TargetKind::Bounds { low, high } = self.target else { return None };
        let at = |share: f64| low + (high - low) * (share + 1.0) / 2.0;
        let window = self.window();
        let (centre, half) = (window.centre(), window.half());
        (window != TargetWindow::BOUNDS).then(|| (at(centre - half), at(centre + half)))
    }

    /// Standard deviation of the noise of one integer of the product.
    #[must_use]
    pub fn noise_standard_deviation(&self) -> f64 {
        let product = &self.planned.product;
        product.noise.standard_deviation(product.noise_scale)
    }
}

fn number_of(text: &str) -> Result<f64, LabelReleaseError> {
    let integer = text.parse::<i128>();
    integer
        .map(|integer| integer as f64)
        .map_err(|_| LabelReleaseError::Inconsistent("one of its numbers is not an integer"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::gdp;
    use crate::adjacency::Adjacency;
    use crate::query::{ProductTarget, QueryShape};
    use crate::units::Mu;

    fn list(ids: &[&str], values: &[i32]) -> Result<WeightList, WeightListError> {
        let ids = ids.iter().map(|id| id.as_bytes().into()).collect();
        WeightList::new(ids, PublicMatrix::new(1, values.to_vec()).expect("short rows"))
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
        let share = budget.share_down(NUMBER_QUESTION_SHARE);
        let left = budget.checked_sub(share).and_then(|left| left.checked_sub(share)).expect("two shares");
        let of_numbers = NUMBER_QUESTIONS.map(|(_, map)| least(map, share));
        PlannedAnswer { of_numbers: of_numbers.into(), product: least(product, left) }
    }

    fn name(list: &WeightList, label_set: &str, schema: &str, unmatched: i16, planned: &PlannedAnswer) -> String {
        let relation = Relation { unit: planned.product.shape.unit().clone(), adjacency: Adjacency::Label };
        canonical_name(list, label_set, schema, unmatched, &relation, planned)
    }

    #[test]
    fn an_id_may_be_listed_once() {
        assert!(list(&["a", "b"], &[1, 2]).is_ok());
        assert_eq!(list(&["a", "b", "a"], &[1, 2, 3]).err(), Some(WeightListError::Repeated { row: 3 }));
        assert_eq!(list(&["a", ""], &[1, 2]).err(), Some(WeightListError::NoId { row: 2 }));
        assert_eq!(list(&["a"], &[1, 2]).err(), Some(WeightListError::Length { ids: 1, rows: 2 }));
        assert_eq!(list(&[], &[]).err(), Some(WeightListError::Empty));
    }

    #[test]
    fn sums_that_could_pass_62_bits_are_noticed() {
        assert!(product_fits_62_bits((1 << 27) - 1, 1 << 20, 1 << 15));
        assert!(!product_fits_62_bits(1 << 27, 1 << 20, 1 << 15));
        assert!(!product_fits_62_bits(u64::MAX, u32::MAX, u32::MAX));
        let of_rows = |rows: u32| {
            let ids = (0..rows).map(|row| row.to_string().into_bytes().into()).collect();
            WeightList::new(ids, PublicMatrix::new(1, vec![1 << 20; rows as usize]).expect("short rows"))
        };
        assert!(of_rows(1024).expect("unique").fits_62_bits(u32::MAX));
        assert!(!of_rows(1025).expect("unique").fits_62_bits(u32::MAX));
    }

    #[test]
    fn a_list_keeps_its_ids_and_integers() {
        let list = list(&["a", "b"], &[7, -9]).expect("unique");
        assert_eq!(list.ids(), [Box::from(*b"a"), Box::from(*b"b")]);
        assert_eq!(**list.matrix(), PublicMatrix::new(1, vec![7, -9]).expect("short rows"));
    }

    /// An epsilon at delta 1e-6 for which this noise is asked for.
    fn claimed(planned: &PlannedRelease, relation: &Relation) -> Epsilon {
        // A little more: the price rounds up, and the budget of an epsilon down.
        let mu = (planned.price_up(relation).expect("finite").mu_up() * (1.0 + 1e-8)).max(1e-30);
        let epsilon = gdp::epsilon_up(Mu::new(mu).expect("positive"), Delta::new(1e-6).expect("legal"));
        Epsilon::new(epsilon.clamp(f64::MIN_POSITIVE, f64::MAX)).expect("positive")
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
            target: TargetKind::Bounds { low: 0.0, high: 1.0 },
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
        let of_table =
            QueryShape::new(Map::ClassCount { classes: 2 }, released.planned.product.shape.unit().clone(), 100);
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
        assert!((noise / planned_once.of_numbers[1].noise_scale.get() as f64 - 1.0).abs() < 1e-6, "{noise}");

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
        for question in 0..2 {
            assert_eq!(with(&|release| half(&mut release.planned.of_numbers[question])), noise);
        }
        let strange = LabelReleaseError::Inconsistent("what is asked of numbers alone belongs to a target with bounds");
        let classes = planned(1, 16, 7, 2);
        let changes: [&dyn Fn(&mut LabelRelease); 6] = [
            &|release| release.numbers = None,
            &|release| release.planned.of_numbers.clear(),
            &|release| release.planned.of_numbers.truncate(1),
            &|release| release.planned.of_numbers.swap(0, 1),
            &|release| release.planned.product = classes.product.clone(),
            &|release| release.planned = classes.clone(),
        ];
        for (place, change) in changes.iter().enumerate() {
            assert_eq!(with(change), strange, "case {place}");
        }
        let twice = LabelReleaseError::Inconsistent("its question was not answered once");
        assert_eq!(with(&|release| release.planned.of_numbers[1].times = 2), twice);
        let fraction = Some(ReleasedNumbers { square: "1.5".to_owned(), ..released.numbers.clone().expect("numbers") });
        let fraction = LabelRelease { numbers: fraction, ..released.clone() };
        assert!(matches!(fraction.square(), Err(LabelReleaseError::Inconsistent(_))));

        let name = |planned: &PlannedAnswer| canonical_name(&list, "set", "schema", 0, &released.relation, planned);
        for question in 0..2 {
            let mut other = planned_once.clone();
            half(&mut other.of_numbers[question]);
            assert_ne!(name(&other), name(&planned_once));
        }
    }

    /// From one step of noise to nearly `2^60`, and with the rounding of another machine.
    #[test]
    fn the_least_noise_of_a_claim_is_never_refused() {
        let list = list(&["a", "b"], &[3, 4]).expect("unique");
        let mut tried = 0;
        for epsilon in [1e-9, 1e-4, 0.1, 1.0, 3.7, 30.0, 1e4, 1e12].map(|epsilon| Epsilon::new(epsilon).expect("legal"))
        {
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
}
